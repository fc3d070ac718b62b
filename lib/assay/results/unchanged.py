"""The rule for "nothing changed": which runs, and which of their figures, teach a spread.

Whatever learns from the past uses this one rule. A run counts if

- it can be read, and it is known when it began: not in the future, and not in 1970;
- it was made to show how the machine is: by ``assay run``, ``assay nightly`` or a plain ReFrame.
  ``compare``, ``accept``, ``init``, ``screen`` and the campaign store that they made it for a
  purpose of their own: they bring in faults, try a draft, or measure within minutes what differs
  less than from day to day. A user's experiment is one with ``--session-extras purpose=TEXT``;
- of its cases at least as many passed as failed: otherwise something was broken that is likely to
  have slowed the others. The verdict on the whole run is no matter: where one case has always
  failed, the others would never teach anything.

Of such a run a figure counts if

- its case passed, and so did the figure itself;
- nobody disturbed its job (:func:`assay.results.figure_series.measured_figures` leaves that out);
- it was measured with what most of the figure's values were: the same compiler and flags, MPI,
  processors and variables. Where none of their values has a majority, as after many upgrades, the
  steps between them are looked for instead (:func:`assay.results.figure_series.learn_past`).

Labels are a user's words and mean nothing here. Two uses look at more runs: whether a reference was
met before counts the cases that failed by it, and ``assay baseline`` takes the runs that somebody
chose and refuses each figure that failed or was measured in several ways.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import polars as pl

from assay.results.cases import GOOD
from assay.results.figure_series import NEWEST, Measured
from assay.results.history import StoredRun
from assay.results.rows import BAD

#: What makes a figure another one, beside variables, whose names begin with a capital.
_FACTS = ('compiler', 'flags', 'mpi', 'target')


def usual_runs(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs that show the state of the machine, good or bad, and have a known time."""
    return [
        run
        for run in runs
        if not (run.summary.problem or run.summary.purpose or run.is_of_the_future) and run.is_dated
    ]


def mostly_good_runs(table: pl.DataFrame) -> list[str]:
    """The runs in which no more cases failed than passed, by their identifiers.

    :param table: of figures (:data:`assay.results.figures.SCHEMA`), of runs that :func:`usual_runs`
        gives.
    """
    case = ('run', 'system', 'partition', 'environment', 'case', 'repeat')
    is_good = pl.col('result').cast(pl.String).is_in([*GOOD])
    found = (
        table.filter(pl.col('result').cast(pl.String).ne_missing('abort'))
        .group_by(case)
        .agg(is_good.first())
        .group_by(pl.col('run').cast(pl.String))
        .agg(pl.col('result').mean())
        .filter(pl.col('result') >= 0.5)
    )
    return found['run'].to_list()


def unchanged_figures(figures: Iterable[Measured], runs: Sequence[str]) -> Iterator[Measured]:
    """The figures, with those of their values that may teach a spread.

    :param runs: those that count, as :func:`mostly_good_runs` gives them.
    """
    counting = pl.Series(runs, dtype=pl.String).implode()
    for one in figures:
        passed = one.results.cast(pl.String).is_in([*GOOD])
        failed = one.verdicts.cast(pl.String).is_in([*BAD])
        counts = one.runs.cast(pl.String).is_in(counting)
        kept = passed.fill_null(False) & ~failed.fill_null(False) & counts
        yield _of_one_kind(one.filter(kept).newest(NEWEST))


def _of_one_kind(one: Measured) -> Measured:
    """A figure without values that were measured with anything else than most of them."""
    texts = Counter(one.provenance.cast(pl.String).fill_null('').to_list())
    if len(texts) == 1:
        return one
    majorities = _majorities(texts)
    others = [
        text
        for text in texts
        if (source := _source(text))
        and any(source.get(name, '') != setting for name, setting in majorities.items())
    ]
    kept = ~one.provenance.cast(pl.String).fill_null('').is_in(others)
    return one.filter(kept) if others else one


def _majorities(texts: Mapping[str, int]) -> dict[str, str]:
    """By its name the setting of each fact that more than half of the values have, if there is one.

    Values that tell nothing of what they were measured with have no say.

    :param texts: what they tell, and how many of them do.
    """
    told = {text: count for text, count in texts.items() if _source(text)}
    names = {name for text in told for name in _source(text)}
    found = {}
    for name in names:
        settings: Counter[str] = Counter()
        for text, count in told.items():
            settings[_source(text).get(name, '')] += count
        ((setting, count),) = settings.most_common(1)
        if 2 * count > settings.total():
            found[name] = setting
    return found


# Thousands of values of a history have the same.
@lru_cache(maxsize=1024)
def _source(provenance: str) -> dict[str, str]:
    """The part of a provenance that changes a figure; empty if it tells nothing."""
    known: dict[str, str] = json.loads(provenance or '{}')
    return {
        name: value
        for name, value in known.items()
        if value and (name in _FACTS or name[:1].isupper())
    }
