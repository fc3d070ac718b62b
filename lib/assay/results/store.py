"""ReFrame's results database: the sessions in it, and what only ``assay run`` knows of them.

The database is the one record of what was measured. ReFrame writes a row of ``sessions`` for each
session, with the whole report as JSON; we add tables of our own, whose rows go with theirs.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay import AssayError, locks, paths
from assay.results.cases import Run
from assay.results.reframe_report import as_run

#: Of a session whose times are damaged.
BEGINNING = datetime.fromtimestamp(0, timezone.utc)

#: ReFrame's version of its tables.
SCHEMA = '1.0'

#: Seconds that another process may take to write a session, as ReFrame waits itself.
PATIENCE = 60.0

#: ReFrame's lock beside the database, by which its processes create it one at a time.
LOCK = '.db.lock'

# A session with a damaged identifier gets a text by which it can be named and removed.
_NAME = """
CASE WHEN typeof(uuid) = 'text' AND length(uuid) = 36 AND uuid NOT GLOB '*[^0-9a-f-]*'
THEN uuid ELSE printf('%08x-damaged', rowid) END
"""

_OURS = """
CREATE TABLE IF NOT EXISTS assay_verdicts(
    session_uuid TEXT PRIMARY KEY REFERENCES sessions(uuid) ON DELETE CASCADE,
    verdict TEXT NOT NULL,
    problems TEXT NOT NULL)
"""

_CAUSES = """
CREATE TABLE IF NOT EXISTS assay_triage(
    session_uuid TEXT NOT NULL REFERENCES sessions(uuid) ON DELETE CASCADE,
    failed TEXT NOT NULL,
    class TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (session_uuid, failed))
"""


@dataclass(frozen=True)
class StoredSession:
    """A row of ReFrame's table.

    :param uuid: of the session.
    :param begun: when it began, UTC; 1970 if the times are damaged.
    :param ended: when it ended, likewise.
    :param problem: what is damaged in the row; None if nothing is.
    """

    uuid: str
    begun: datetime
    ended: datetime
    problem: str | None = None


#: The word of the last line of ``assay run``, and why it was no other, a sentence each.
StoredVerdict = tuple[str, tuple[str, ...]]


def sessions(database: Path = paths.RESULTS_DATABASE) -> list[StoredSession]:
    """All stored sessions, oldest first, and damaged rows; none where nothing was stored yet.

    :raises AssayError: if the database is damaged, locked, of another form, or cannot be read.
    """
    # No column that is behind the JSON: SQLite would go through all of that to get there.
    columns = f'{_NAME}, uuid IS {_NAME}, session_start_unix, session_end_unix'
    found = _rows(database, 'sessions', columns)
    return sorted((_session(database, *row) for row in found), key=lambda one: one.begun)


def runs(
    uuids: Iterable[str], database: Path = paths.RESULTS_DATABASE
) -> Iterator[tuple[str, Run | AssayError]]:
    """Sessions as they were measured, one at a time in memory; of a damaged one, what is wrong.

    :raises AssayError: as :func:`sessions`.
    """
    with _opened(database) as connection:
        for uuid in uuids:
            # As bytes: text that is not UTF-8 is the damage of one session, not of all.
            query = 'SELECT CAST(json_blob AS BLOB) FROM sessions WHERE uuid = ?'
            for (text,) in connection.execute(query, [uuid]).fetchall():
                try:
                    yield uuid, as_run(text or b'', f'{database}: session {uuid}')
                except AssayError as error:
                    yield uuid, error


def newest_with(check: str, most: int, database: Path) -> list[str]:
    """The uuids of the last sessions in which a check ran, the newest first.

    :raises AssayError: as :func:`sessions`.
    """
    query = (
        'SELECT session_uuid FROM testcases WHERE name = ? OR name LIKE ? '
        'GROUP BY session_uuid ORDER BY max(job_completion_time_unix) DESC LIMIT ?'
    )
    with _opened(database) as connection:
        return [uuid for (uuid,) in connection.execute(query, [check, f'{check} %', most])]


def verdicts(database: Path = paths.RESULTS_DATABASE) -> dict[str, StoredVerdict | AssayError]:
    """The verdicts of ``assay run`` on sessions, by uuid; for a damaged row, its fault.

    A plain ReFrame leaves nothing.

    :raises AssayError: as :func:`sessions`.
    """
    rows = _rows(database, 'assay_verdicts', 'session_uuid, verdict, problems')
    return {uuid: _judged(database, uuid, word, text) for uuid, word, text in rows}


def keep_verdict(
    uuid: str, verdict: str, problems: Iterable[str], database: Path = paths.RESULTS_DATABASE
) -> None:
    """Store what ``assay run`` made of a session, if ReFrame stored that session.

    :raises AssayError: if it cannot be written.
    """
    if not _is_there(database):
        return
    with _opened(database) as connection, connection:
        connection.execute(_OURS)
        connection.execute(
            'INSERT OR REPLACE INTO assay_verdicts SELECT uuid, ?, ? FROM sessions WHERE uuid = ?',
            [verdict, json.dumps([*problems]), uuid],
        )


@dataclass(frozen=True)
class TriageCause:
    """The cause that somebody found for a failure.

    :param failed: name, partition and environment of the case.
    :param kind: one of :data:`assay.results.triage.CLASSES`.
    :param note: by the person who found it; empty for none.
    """

    failed: str
    kind: str
    note: str


def causes(database: Path = paths.RESULTS_DATABASE) -> dict[str, tuple[TriageCause, ...]]:
    """The causes that were found for the failures of sessions, by uuid.

    :raises AssayError: as :func:`sessions`.
    """
    found: dict[str, list[TriageCause]] = {}
    for uuid, *words in _rows(database, 'assay_triage', '*'):
        found.setdefault(str(uuid), []).append(TriageCause(*map(str, words)))
    return {uuid: tuple(of_session) for uuid, of_session in found.items()}


def keep_cause(uuid: str, cause: TriageCause, database: Path) -> None:
    """Store what is behind a failure of a stored session, in place of what was stored of it.

    :raises AssayError: if it cannot be written.
    """
    with _opened(database) as connection, connection:
        connection.execute(_CAUSES)
        connection.execute(
            'INSERT OR REPLACE INTO assay_triage SELECT uuid, ?, ?, ? FROM sessions WHERE uuid = ?',
            [cause.failed, cause.kind, cause.note, uuid],
        )


def remove(uuids: Iterable[str], database: Path = paths.RESULTS_DATABASE) -> None:
    """Remove sessions with all that belongs to them, and give back the space they took.

    :raises AssayError: if that cannot be written.
    """
    with _opened(database) as connection:
        with connection:
            connection.execute('PRAGMA foreign_keys = ON')
            command = f'DELETE FROM sessions WHERE {_NAME} = ?'
            connection.executemany(command, [[one] for one in uuids])
        connection.execute('VACUUM')


def set_aside_if_damaged(database: Path = paths.RESULTS_DATABASE) -> Path | None:
    """See that ReFrame will be able to store: a damaged database is set aside, nothing is lost.

    :returns: where a damaged one lies now.
    :raises AssayError: if the database is locked, of another form, or cannot be written.
    """
    if not _is_there(database):
        return None
    if not os.access(database, os.W_OK):
        raise AssayError(f'{database} cannot be written, and the figures of a run go there.')
    with _locked(database):
        # Under the lock: another process may have set it aside, and begun a new one, meanwhile.
        if not _is_there(database) or not _damage(database):
            return None
        aside = database.with_name(f'{database.name}.damaged-{datetime.now():%Y%m%dT%H%M%S.%f}')
        try:
            # The journal of the old one, if it were left, would be applied to the new one.
            with suppress(FileNotFoundError):
                _beside(database, '-journal').rename(_beside(aside, '-journal'))
            return database.rename(aside)
        except OSError as error:
            raise AssayError(
                f'{database} is damaged, and cannot be set aside: {error.strerror}.'
            ) from None


def damaged_databases(database: Path) -> list[Path]:
    """The damaged databases that lie beside this one."""
    found = sorted(database.parent.glob(f'{database.name}.damaged-*'))
    return [path for path in found if not path.name.endswith('-journal')]


def _damage(database: Path) -> str | None:
    """The damage of a database, in words; None if it is whole.

    :raises AssayError: if that is not known.
    """
    try:
        with closing(_connect(database)) as connection:
            if not {'sessions', 'testcases'} <= _tables(connection):
                return 'it has no tables of ReFrame'
            _assert_form(connection, database)
            ((said,),) = connection.execute('PRAGMA quick_check(1)')
            return None if said == 'ok' else str(said)
    except sqlite3.OperationalError as error:
        raise _told(database, error) from None
    except sqlite3.DatabaseError as error:
        return str(error)


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database of ReFrame's.

    :raises AssayError: if it is none, and for whatever goes wrong with it.
    """
    try:
        with closing(_connect(database)) as connection:
            if not _has_sessions(connection, database):
                raise sqlite3.DatabaseError('it has no tables of ReFrame')
            _assert_form(connection, database)
            # Text that is not UTF-8 is the damage of one row, not of all.
            connection.text_factory = lambda text: text.decode(errors='replace')
            yield connection
    except sqlite3.Error as error:
        raise _told(database, error) from None


def _rows(database: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order in which they were written; none where it is not there."""
    if not _is_there(database):
        return []
    with _opened(database) as connection:
        if table not in _tables(connection):
            return []
        return connection.execute(f'SELECT {columns} FROM {table} ORDER BY rowid').fetchall()


def _connect(database: Path) -> sqlite3.Connection:
    """Connect to a database; if it is writable, SQLite undoes what a killed process half wrote."""
    writable = os.access(database, os.W_OK) and os.access(database.parent, os.W_OK)
    mode = 'rw' if writable else 'ro'
    return sqlite3.connect(f'file:{quote(str(database))}?mode={mode}', timeout=PATIENCE, uri=True)


def _has_sessions(connection: sqlite3.Connection, database: Path) -> bool:
    """Whether it has ReFrame's table; where ReFrame is just making that, once it has."""
    if 'sessions' not in _tables(connection):
        with suppress(AssayError), _locked(database):  # as ReFrame does meanwhile
            pass
    return 'sessions' in _tables(connection)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute('SELECT name FROM sqlite_master')}


def _assert_form(connection: sqlite3.Connection, database: Path) -> None:
    """:raises AssayError: if another version of ReFrame wrote it."""
    if 'metadata' not in _tables(connection):
        return
    row = connection.execute('SELECT schema_version FROM metadata').fetchone()
    if row and row[0] != SCHEMA:
        raise AssayError(
            f'{database} has the form {row[0]}, and the ReFrame of this checkout reads {SCHEMA}: '
            'use the version of Assay that wrote it, or move the file away.'
        )


def _told(database: Path, error: sqlite3.Error) -> AssayError:
    if 'locked' in str(error):
        return AssayError(
            f'{database} is locked by another process for more than {PATIENCE:.0f} s: end what '
            'uses it, and try again.'
        )
    if isinstance(error, sqlite3.OperationalError):
        return AssayError(f'{database} cannot be used: {error}.')
    return AssayError(
        f'{database} is damaged ({error}): the next `assay run` sets it aside and begins a new '
        'one. `sqlite3 FILE .recover` saves what can be read of it.'
    )


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Keep ReFrame from creating or writing the database."""
    try:
        with open(database.with_name(LOCK), 'a') as file:
            locks.lock_as_reframe(file.fileno(), database.with_name(LOCK))
            yield
    except OSError as error:
        raise AssayError(f'{error.filename}: {error.strerror}') from None


def _beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)


def _is_there(database: Path) -> bool:
    """:raises AssayError: if that is not known."""
    try:
        return database.exists()
    except OSError as error:
        raise AssayError(f'{database}: {error.strerror}') from None


def _session(database: Path, uuid: str, is_whole: int, *seconds: float) -> StoredSession:
    if not is_whole:
        return StoredSession(uuid, BEGINNING, BEGINNING, f'{database}: a session has no identifier')
    try:
        begun, ended = map(_time, seconds)
    except (OSError, OverflowError, TypeError, ValueError) as error:
        problem = f'{database}: session {uuid}: the times {seconds!r} are damaged: {error}'
        return StoredSession(uuid, BEGINNING, BEGINNING, problem)
    return StoredSession(uuid, begun, ended)


def _judged(database: Path, uuid: str, word: object, text: str) -> StoredVerdict | AssayError:
    try:
        problems = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        problems = None
    if isinstance(word, str) and isinstance(problems, list):
        return word, tuple(map(str, problems))
    return AssayError(f'{database}: session {uuid}: what `assay run` made of it is damaged')


def _time(seconds: float) -> datetime:
    """:raises OSError, OverflowError, TypeError, ValueError: if it is none, here or in UTC."""
    return datetime.fromtimestamp(seconds).astimezone(timezone.utc)
