"""The table of all stored figures in one file beside the database, so that it loads at once.

It is no record: whatever is wrong with it, it is made again from the database, and it only ever
holds what was there. What was already read of the database is kept, so that a new session costs its
own reading; after a change of the code that reads, everything is read anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from assay import AssayError, locks
from assay.results import store
from assay.results.figures import PlainRow, plain_rows, table
from assay.results.summary import Summary, summary

#: Rows that are held as plain values at a time.
BATCH = 50_000

#: A SHA-256, and Parquet that it is of: Polars takes damaged Parquet for other values, or aborts.
_NAME = 'figures-cache'
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Read:
    """What was read of a database.

    :param summaries: of each session, by uuid.
    :param figures: of all of them.
    """

    summaries: dict[str, Summary]
    figures: pl.DataFrame


def read(database: Path, uuids: Sequence[str]) -> Read:
    """Sessions of a database, from the cache as far as they are in it.

    :raises AssayError: if the database cannot be read.
    """
    if not uuids:
        return Read({}, table())
    path = database.with_name(_NAME)
    found = _load(path)
    if found and found.summaries.keys() == set(uuids):
        return found
    with _alone(path) as is_alone:
        found = _load(path)  # another process may have brought it up to date meanwhile
        if found is None or found.summaries.keys() != set(uuids):
            found = _brought_up_to_date(found, database, uuids)
            # In somebody else's checkout, or on a full disk, it does without.
            with suppress(OSError, pl.exceptions.PolarsError):
                _write(path, found, is_alone)
    return found


def _brought_up_to_date(old: Read | None, database: Path, uuids: Sequence[str]) -> Read:
    """Without what was removed from the database, and with what has been added to it."""
    old = old or Read({}, table())
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
    return Read(kept, pl.concat(parts, rechunk=True))


@cache
def _form() -> str:
    """Of what made a cache: the code that reads reports."""
    digest = hashlib.sha256(pl.__version__.encode())
    for path in sorted(Path(__file__).parent.glob('*.py')):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load(path: Path) -> Read | None:
    """What is in a cache; None if it is not there, of other code, or broken."""
    try:
        with path.open('rb') as file:
            digest, content = file.read(_DIGEST), file.read()
        if digest != hashlib.sha256(content).digest():
            return None
        told = pl.read_parquet_metadata(content)
        if told.get('form') != _form():
            return None
        summaries = {uuid: Summary(**one) for uuid, one in json.loads(told['sessions']).items()}
        return Read(summaries, pl.read_parquet(content))
    except (OSError, pl.exceptions.PolarsError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, read: Read, is_alone: bool) -> None:
    """Write so that whoever reads finds the old file or the new one, whole."""
    if is_alone:  # what is left of others was killed
        for left in path.parent.glob(f'.{path.name}.*'):
            left.unlink(missing_ok=True)
    draft = path.with_name(f'.{path.name}.{os.getpid()}')
    sessions = {uuid: vars(one) for uuid, one in read.summaries.items()}
    told = {'form': _form(), 'sessions': json.dumps(sessions)}
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
            opened.enter_context(locks.held(path.with_name(f'.{path.name}-lock')))
        except AssayError:  # in a folder of somebody else's, or without locks
            yield False
        else:
            yield True
