"""The table of figures, of which all statistics are taken: one row a figure of a counted attempt.

It is a Polars frame with the columns of :data:`SCHEMA`. A case that has no figure, because it
failed, has one row without a value, so that nothing disappears unseen; a skipped case has none.

Polars takes a while to load: only what needs the table imports this.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import polars as pl

from assay.results.cases import Case, Facts, Run, what_counts
from assay.results.provenance import nodes_of
from assay.results.rows import Row, rows_of

_WORD = pl.Categorical()
_TIME = pl.Datetime('ms', 'UTC')

#: The columns. Those of words are categories, which compare and join as text does; None is unknown.
SCHEMA: dict[str, Any] = {
    #: Identifier of the session, ReFrame's UUID, and when it began.
    'run': _WORD,
    'begun': _TIME,
    #: When the job ended; null where there was none.
    'measured': _TIME,
    #: What ``assay run`` was told; null of a plain ReFrame.
    'label': _WORD,
    'mode': _WORD,
    'system': _WORD,
    'partition': _WORD,
    'environment': _WORD,
    #: The class of the check, such as ``Ring``.
    'check': _WORD,
    #: Its name with all parameters, such as ``Ring %fabric=shm %layout=packed %scale=1_node``.
    'case': _WORD,
    #: Parameters of the case; ``-`` where it has no such parameter.
    'fabric': _WORD,
    'layout': _WORD,
    'scale': _WORD,
    #: Name of the figure; ``-`` of a case that has none.
    'figure': _WORD,
    #: As it was measured, NaN and infinities too; null of a case that has none.
    'value': pl.Float64,
    'unit': _WORD,
    #: ``higher``, ``lower``, ``exact``; null in runs that were stored before it was.
    'better': _WORD,
    #: What it was held to then: reference, and bounds in the figure's unit; null where open.
    'reference': pl.Float64,
    'lower': pl.Float64,
    'upper': pl.Float64,
    #: Of the figure: ``pass``, ``fail``, ``no bound``, ... (:mod:`assay.results.rows`).
    'verdict': _WORD,
    #: Of the case, in ReFrame's words.
    'result': _WORD,
    #: How many jobs the case had: 1 at once; retries, and what was measured again, count too.
    'attempt': pl.UInt16,
    #: Which time it is that the case counts in this run, from 1 (``--repeat``).
    'repeat': pl.UInt16,
    #: Such as ``n[1-4]``; null where there was no job.
    'nodes': _WORD,
    #: What others took of the job's nodes, in words, whatever its verdict is; null if nothing, and
    #: in runs stored before it was. A quota or a bad network belongs to what is measured.
    'disturbances': _WORD,
    #: What was measured: JSON of :func:`assay.results.provenance.facts`.
    'provenance': _WORD,
}


#: No two jobs of a case end in one place in one second; perflogs have no parts of seconds.
_JOB = ('system', 'partition', 'environment', 'case', 'ended')

#: One row, in the order of the columns; times are ms since 1970.
PlainRow = tuple[Any, ...]


def table(rows: Sequence[PlainRow] = ()) -> pl.DataFrame:
    """The table of rows as :func:`plain_rows` gives them."""
    plain = {name: pl.Int64 if kind == _TIME else kind for name, kind in SCHEMA.items()}
    columns = dict(zip(SCHEMA, zip(*rows, strict=True), strict=True)) if rows else None
    return pl.DataFrame(columns, schema=plain).cast({'begun': _TIME, 'measured': _TIME})


def plain_rows(run: Run) -> list[PlainRow]:
    """The rows of a run."""
    rows = []
    of_run = (run.uuid, _milliseconds(run.begun))
    times: Counter[str] = Counter()
    for tries in run.attempts:
        case = what_counts(tries)
        if case.is_fixture:
            continue
        times[case.full_name] += 1
        ended = _milliseconds(case.job.ended) if case.job.ended else None
        place = (case.system, case.partition, case.environment, case.check, case.name)
        parameters = (case.fabric or '-', case.layout or '-', case.scale or '-')
        who = (*of_run, ended, run.label, run.mode, *place, *parameters)
        jobs = len(tries) + sum(len(one.replaced) for one in tries)
        more = (case.result, jobs, times[case.full_name], *_about_job(case))
        rows += [(*who, *_held(row), *more) for row in rows_of(case)]
    return rows


def duplicate_runs(table: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The runs of a table that have a job which is in another table as well.

    So it is where one was read from perflogs, in which it has another identifier, and one as it is.

    :param table: as :func:`table` makes it.
    :param other: likewise.
    :returns: their identifiers, sorted.
    """
    jobs, others = (
        one.filter(pl.col('measured').is_not_null())
        .select('run', *_JOB[:-1], ended=pl.col('measured').dt.truncate('1s'))
        .unique()
        for one in (table, other)
    )
    return sorted(jobs.join(others, on=_JOB, how='semi')['run'].cast(pl.String).unique())


def _held(row: Row) -> PlainRow:
    """The columns from ``figure`` to ``verdict``."""
    bounds = (row.reference, row.lower, row.upper)
    return (row.figure, row.value, row.unit, row.better, *bounds, row.verdict)


def _about_job(case: Case) -> PlainRow:
    """The columns from ``nodes`` on."""
    disturbances = '; '.join(case.taken_by_others) or None
    return (nodes_of(case) or None, disturbances, _as_json(case.facts))


# Thousands of cases of a history have the same.
@lru_cache(maxsize=1024)
def _as_json(known: Facts) -> str:
    return json.dumps(dict(known))


def _milliseconds(time: datetime) -> int:
    return round(1000 * time.timestamp())
