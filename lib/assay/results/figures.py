"""The table of figures, of which all statistics are taken: one row a figure of a counted attempt.

It is a Polars frame with the columns of :data:`SCHEMA`. A case that has no figure, because it
failed, has one row without a value, so that nothing disappears unseen; a skipped case has none.

Polars takes a while to load: only what needs the table imports this.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

import polars as pl

from assay import AssayError
from assay.results.cases import (
    Case,
    Report,
    assert_text,
    attempts,
    case_name,
    class_name,
    what_counts,
)
from assay.results.provenance import Facts, facts, nodes_of
from assay.results.rows import Row, rows_of
from assay.running.session_extras import label_of, mode_of

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


#: One row, in the order of the columns; times are ms since 1970.
PlainRow = tuple[Any, ...]


def table(rows: Sequence[PlainRow] = ()) -> pl.DataFrame:
    """The table of rows as :func:`plain_rows` gives them."""
    plain = {name: pl.Int64 if kind == _TIME else kind for name, kind in SCHEMA.items()}
    columns = dict(zip(SCHEMA, zip(*rows, strict=True), strict=True)) if rows else None
    return pl.DataFrame(columns, schema=plain).cast({'begun': _TIME, 'measured': _TIME})


def plain_rows(report: Report) -> list[PlainRow]:
    """The rows of a report.

    :raises AssayError: if something in it is as ReFrame does not write it.
    """
    rows = []
    try:
        info = report['session_info']
        of_run = (info['uuid'], _milliseconds(info['time_start_unix']))
        asked = (label_of(info), mode_of(info))
        times: Counter[str] = Counter()
        for tries in attempts(report):
            case = what_counts(tries)
            if case['fixture']:
                continue
            times[case_name(case)] += 1
            place = (case['system'], case['partition'], case['environ'])
            names = (class_name(case), re.sub(r' ~\S+', '', case['display_name']))
            jobs = len(tries) + sum(len(one.get('replaced') or ()) for one in tries)
            about = (*place, *names, *_parameters(case))
            told = _told(case)
            # Polars takes nothing else, and would tell neither the run nor the case.
            assert_text(info['uuid'], *about, case['result'], *filter(None, (*asked, *told)))
            counts = (jobs, times[case_name(case)])
            ended = _milliseconds(case['job_completion_time_unix'])
            for row in rows_of(case):
                who = (*of_run, ended, *asked, *about)
                rows.append((*who, *_held(case, row), case['result'], *counts, *told))
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise AssayError(f'not as ReFrame writes it: {type(error).__name__}: {error}') from error
    return rows


def _parameters(case: Case) -> tuple[str, ...]:
    return tuple(str(case.get(name) or '-') for name in ('fabric', 'layout', 'scale'))


def _held(case: Case, row: Row) -> PlainRow:
    """The columns from ``figure`` to ``verdict``."""
    better = (case.get('directions') or {}).get(row.figure)
    assert_text(row.figure, row.unit, row.verdict, '' if better is None else better)
    numbers = [None if one is None else float(one) for one in (row.reference, row.lower, row.upper)]
    value = None if row.value is None else float(row.value)
    return (row.figure, value, row.unit, better, *numbers, row.verdict)


def _told(case: Case) -> PlainRow:
    """The columns from ``nodes`` on."""
    disturbances = '; '.join(case.get('taken_by_others') or ()) or None
    return (nodes_of(case) or None, disturbances, _as_json(facts(case)))


# Thousands of cases of a history have the same.
@lru_cache(maxsize=1024)
def _as_json(known: Facts) -> str:
    return json.dumps(dict(known))


def _milliseconds(seconds: float | None) -> int | None:
    """:raises OSError, OverflowError, ValueError: if it is no time."""
    if seconds is None:
        return None
    datetime.fromtimestamp(seconds, timezone.utc)
    return round(1000 * seconds)
