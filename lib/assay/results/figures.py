"""The table of figures for all statistics: one row for each figure of an attempt that counts.

It is a Polars frame with the columns of :data:`SCHEMA`. A case that has no figure, because it
failed, has one row without a value, so that nothing disappears unseen; a skipped case has none.

The table of all stored runs is cached in one file beside the database, so that it loads at once.
The cache is no record: whatever is wrong with it, it is made again from the database, and it only
ever holds what was there. A new run costs its own reading alone; after a change of the code that
reads, everything is read anew.

Polars takes a while to load: only what needs the table imports this.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from assay import AssayError, locks
from assay.results import store
from assay.results.cases import Facts, Run, deciding_attempt
from assay.results.provenance import nodes_of_case
from assay.results.rows import Row, rows_of
from assay.results.verdict import Summary, summary

_WORD = pl.Categorical()
_TIME = pl.Datetime('ms', 'UTC')

#: The columns. Those of words are categories, which compare and join as text does; None is unknown.
SCHEMA: dict[str, Any] = {
    #: Identifier of the session, ReFrame's UUID, and when it began.
    'run': _WORD,
    'begun': _TIME,
    #: When the job ended; null where there was none.
    'measured': _TIME,
    #: Options of ``assay run``; null of a plain ReFrame.
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

#: Rows that are held as plain values at a time.
BATCH = 50_000

#: A SHA-256, and Parquet that it is of: Polars takes damaged Parquet for other values, or aborts.
_CACHE = 'figures-cache'

_DIGEST = hashlib.sha256().digest_size


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
        case = deciding_attempt(tries)
        if case.is_fixture:
            continue
        times[case.full_name] += 1
        ended = _milliseconds(case.job.ended) if case.job.ended else None
        place = (case.system, case.partition, case.environment, case.check, case.name)
        parameters = (case.fabric or '-', case.layout or '-', case.scale or '-')
        who = (*of_run, ended, run.label, run.mode, *place, *parameters)
        jobs = len(tries) + sum(len(one.replaced) for one in tries)
        disturbances = '; '.join(case.taken_by_others) or None
        more = (case.result, jobs, times[case.full_name], nodes_of_case(case) or None, disturbances)
        rows += [(*who, *_held(row), *more, _as_json(case.facts)) for row in rows_of(case)]
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
        .select('run', 'measured', *_JOB[:-1], ended=pl.col('measured').dt.truncate('1s'))
        .unique()
        for one in (table, other)
    )
    # Jobs of less than a second may end in one second; perflogs alone tell no parts of it.
    measured, of_other, ended = map(pl.col, ('measured', 'measured_of_other', 'ended'))
    is_same = (measured == of_other) | (measured == ended) | (of_other == ended)
    both = jobs.join(others, on=_JOB, suffix='_of_other').filter(is_same)
    return sorted(both['run'].cast(pl.String).unique())


def _held(row: Row) -> PlainRow:
    """The columns from ``figure`` to ``verdict``."""
    one = row.figure
    bounds = (one.reference, one.lower, one.upper)
    return (one.name, one.value, one.unit, one.better, *bounds, row.verdict)


# Thousands of cases of a history have the same.
@lru_cache(maxsize=1024)
def _as_json(known: Facts) -> str:
    return json.dumps(dict(known))


def _milliseconds(time: datetime) -> int:
    return round(1000 * time.timestamp())


@dataclass(frozen=True)
class StoredFigures:
    """The sessions and figures that were read from a database.

    :param summaries: of each session, by uuid.
    :param figures: of all of them.
    """

    summaries: dict[str, Summary]
    figures: pl.DataFrame


def load_table(database: Path, uuids: Sequence[str]) -> StoredFigures:
    """Sessions of a database, from the cache as far as they are in it.

    :raises AssayError: if the database cannot be read.
    """
    if not uuids:
        return StoredFigures({}, table())
    path = database.with_name(_CACHE)
    found = _load_file(path)
    if found and found.summaries.keys() == set(uuids):
        return found
    with _alone(path) as is_alone:
        found = _load_file(path)  # another process may have brought it up to date meanwhile
        if found is None or found.summaries.keys() != set(uuids):
            found = _brought_up_to_date(found, database, uuids)
            # In somebody else's checkout, or on a full disk, it does without.
            with suppress(OSError, pl.exceptions.PolarsError):
                _write_file(path, found, is_alone)
    return found


def _brought_up_to_date(
    old: StoredFigures | None, database: Path, uuids: Sequence[str]
) -> StoredFigures:
    """Without what was removed from the database, and with what has been added to it."""
    old = old or StoredFigures({}, table())
    stored = set(uuids)
    kept = {uuid: one for uuid, one in old.summaries.items() if uuid in stored}
    figures = old.figures
    if len(kept) < len(old.summaries):
        figures = figures.filter(pl.col('run').is_in([*kept]))
    parts, rows = [figures], list[PlainRow]()
    for uuid, run in store.runs([one for one in uuids if one not in kept], database):
        if isinstance(run, AssayError):
            kept[uuid] = Summary(problem=str(run))
            continue
        kept[uuid] = summary(run)
        rows += plain_rows(run)
        if len(rows) >= BATCH:
            parts.append(table(rows))
            rows = []
    parts.append(table(rows))
    return StoredFigures(kept, pl.concat(parts, rechunk=True))


@cache
def _code() -> str:
    """A digest of the code that reads reports and of the version of Polars.

    A cache of another digest is not used.
    """
    digest = hashlib.sha256(pl.__version__.encode())
    for path in sorted(Path(__file__).parent.glob('*.py')):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load_file(path: Path) -> StoredFigures | None:
    """Read a cache; None if it is missing, was made by other code, or is broken."""
    try:
        with path.open('rb') as file:
            digest, content = file.read(_DIGEST), file.read()
        if digest != hashlib.sha256(content).digest():
            return None
        told = pl.read_parquet_metadata(content)
        if told.get('form') != _code():
            return None
        summaries = {uuid: Summary(**one) for uuid, one in json.loads(told['sessions']).items()}
        return StoredFigures(summaries, pl.read_parquet(content))
    except (OSError, pl.exceptions.PolarsError, ValueError, KeyError, TypeError):
        return None


def _write_file(path: Path, read: StoredFigures, is_alone: bool) -> None:
    """Write so that a reader finds the old file or the new one, whole."""
    if is_alone:  # what is left of others was killed
        for left in path.parent.glob(f'.{path.name}.*'):
            left.unlink(missing_ok=True)
    draft = path.with_name(f'.{path.name}.{os.getpid()}')
    sessions = {uuid: vars(one) for uuid, one in read.summaries.items()}
    told = {'form': _code(), 'sessions': json.dumps(sessions)}
    content = io.BytesIO()
    read.figures.write_parquet(content, metadata=told, statistics=False)
    try:
        with draft.open('wb') as file:
            file.write(hashlib.sha256(content.getbuffer()).digest())
            file.write(content.getbuffer())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """One process at a time builds; whether that could be had."""
    with ExitStack() as opened:
        try:
            opened.enter_context(locks.hold_lock(path.with_name(f'.{path.name}-lock')))
        except AssayError:  # in a folder of somebody else's, or without locks
            yield False
        else:
            yield True
