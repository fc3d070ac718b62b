"""The journal of an acceptance: a line for each thing that was done, each naming the one before.

An entry holds the SHA-256 of the line before it, so that none can be changed, removed, inserted or
moved without all that follow. Only the last ones can go: signatures tell how many there were.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

from assay import AssayError, locks
from assay.acceptance.files import canonical, digest, parse

#: What an entry of each kind holds at least.
KINDS: dict[str, frozenset[str]] = {
    'begun': frozenset({'contract', 'commit', 'system'}),
    'screened': frozenset(
        {
            *('screening', 'begun', 'environment', 'fabric', 'nodes'),
            *('found', 'unjudged', 'files'),
        }
    ),
    'started': frozenset({'run'}),
    'ended': frozenset({'run', 'uuid', 'word', 'files'}),
    'cancelled': frozenset({'run', 'reason'}),
    'interrupted': frozenset(),
    'resumed': frozenset(),
    'note': frozenset({'text'}),
    'report': frozenset({'files'}),
}

#: What the first entry names as the line before it.
NOTHING = '0' * 64

#: Bytes of a journal at most: it has a line for each run, and is read whole.
MOST = 64 << 20

#: Seconds that the clock may have been set back, as by NTP, before nothing is written any more.
BACK = 2.0

_KEYS = {'number', 'time', 'kind', 'what', 'before'}


@dataclass(frozen=True)
class Entry:
    """A line of the journal.

    :param number: from 1.
    :param time: when it was written, UTC.
    :param kind: one of :data:`KINDS`.
    :param what: more of it, by name.
    :param before: SHA-256 of the line before.
    :param digest: SHA-256 of its own line.
    """

    number: int
    time: datetime
    kind: str
    what: dict[str, Any]
    before: str
    digest: str


@dataclass(frozen=True)
class Chain:
    """A journal that was read.

    :param entries: of the lines that are whole.
    :param head: SHA-256 of the last line.
    :param torn: what stands after it: a line that was begun when the machine stopped.
    :param faults: sentences: what was changed, and where.
    """

    entries: tuple[Entry, ...]
    head: str
    torn: bytes
    faults: tuple[str, ...]

    def assert_whole(self, path: Path) -> None:
        """:raises AssayError: if anything is wrong with it."""
        if self.faults:
            raise AssayError(
                f'{path}: {self.faults[0]}; restore the journal from a copy, or begin anew'
            )


def begin(path: Path, what: dict[str, Any]) -> None:
    """Write the first entry of a new journal.

    :param what: of its kind ``begun``.
    :raises AssayError: if there is one, or it cannot be written.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # or the file's name might not outlive a power cut
        finally:
            os.close(folder)
    except FileExistsError:
        raise AssayError(
            f'{path} is there: an acceptance is begun in a folder of its own'
        ) from None
    except OSError as error:
        raise AssayError(f'{path}: cannot be made: {error.strerror}') from None
    with _locked(path) as file:
        _write(path, file, _chain(b''), [('begun', what)])


def append(path: Path, kind: str, **what: Any) -> Entry:
    """Write an entry, and return once it is on the disk.

    :raises AssayError: if the journal is damaged or torn, the clock was set back, or it cannot be
        written.
    """
    with _locked(path) as file:
        chain = _chain(file.read(MOST + 1))
        chain.assert_whole(path)
        if chain.torn:
            raise AssayError(f'{path}: its last line is torn: resume the acceptance first')
        return _write(path, file, chain, [(kind, what)])[-1]


def resume(path: Path, files: Mapping[int, Any]) -> list[Entry]:
    """Count as interrupted what a stopped machine left open: a torn line, and runs with no end.

    :param files: what such runs left all the same, by their numbers.
    :returns: the entries that were written, the last of kind ``resumed``.
    :raises AssayError: if the journal is damaged in another way, or cannot be written.
    """
    with _locked(path) as file:
        chain = _chain(file.read(MOST + 1))
        chain.assert_whole(path)
        if not chain.entries:
            raise AssayError(f'{path}: nothing was begun: begin anew, in another folder')
        new: list[tuple[str, dict[str, Any]]] = []
        head = chain.head
        if chain.torn:
            head = digest(chain.torn)
            new.append(('interrupted', {'torn': head, 'bytes': len(chain.torn)}))
        new += [
            ('interrupted', {'run': run, 'files': files.get(run, {})})
            for run in open_runs(chain.entries)
        ]
        end = b'\n' if chain.torn else b''
        whole = Chain(chain.entries, head, b'', ())
        return _write(path, file, whole, [*new, ('resumed', {})], end)


def read(path: Path) -> Chain:
    """A journal, with what is wrong with it.

    :raises AssayError: if it cannot be read.
    """
    try:
        with path.open('rb') as file:
            return _chain(file.read(MOST + 1))
    except OSError as error:
        raise AssayError(f'{path}: cannot be read: {error.strerror}') from None


def open_runs(entries: Iterable[Entry]) -> list[int]:
    """The numbers of the runs that were started, and of which no end is told."""
    runs: dict[int, None] = {}
    for entry in entries:
        if entry.kind == 'started':
            runs[entry.what['run']] = None
        elif entry.kind in ('ended', 'cancelled', 'interrupted'):
            runs.pop(entry.what.get('run', 0), None)
    return list(runs)


def miscounted(entries: Iterable[Entry]) -> Iterator[str]:
    """Sentences: where runs and their ends are not one for one."""
    started = 0
    ended: set[int] = set()
    entries = list(entries)
    for entry in entries:
        run = entry.what.get('run')
        if entry.kind == 'started':
            started += 1
            if run != started:
                yield f'entry {entry.number} starts run {run}, and run {started} is the next'
                started = run if isinstance(run, int) else started
        elif run is not None and entry.kind in ('ended', 'cancelled', 'interrupted'):
            if not isinstance(run, int) or not 1 <= run <= started:
                yield f'entry {entry.number} ends run {run}, which no entry starts'
            elif run in ended:
                yield f'entry {entry.number} ends run {run}, which has ended before'
            else:
                ended.add(run)
    for run in open_runs(entries):
        yield f'run {run} was started, and no entry tells how it ended: a run is left out'


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """The journal, while no other process writes to it."""
    try:
        with path.open('r+b') as file:
            locks.lock(file.fileno(), path)
            yield file
    except OSError as error:
        raise AssayError(f'{path}: cannot be written: {error.strerror}') from None


def _write(
    path: Path,
    file: BinaryIO,
    chain: Chain,
    new: Iterable[tuple[str, dict[str, Any]]],
    end: bytes = b'',
) -> list[Entry]:
    """Add entries to a locked journal that has been read to its end.

    :param end: what ends the line that is torn.
    """
    last = chain.entries[-1] if chain.entries else None
    number, head = last.number if last else 0, chain.head
    lines, entries = [end], []
    now = _now(path, last)
    for kind, what in new:
        if missing := KINDS[kind] - what.keys():
            raise ValueError(f'an entry {kind} needs {", ".join(sorted(missing))}')
        number += 1
        record = {
            'number': number,
            'time': now.isoformat(timespec='microseconds'),
            'kind': kind,
            'what': what,
            'before': head,
        }
        line = canonical(record)
        entries.append(_entry(line))
        lines.append(line + b'\n')
        head = entries[-1].digest
    file.write(b''.join(lines))
    file.flush()
    os.fsync(file.fileno())
    return entries


def _now(path: Path, last: Entry | None) -> datetime:
    """The time, which is none before that of the last entry.

    :raises AssayError: if the clock was set back.
    """
    now = datetime.now(timezone.utc)
    back = (last.time - now).total_seconds() if last else 0.0
    if last and back > BACK:
        raise AssayError(
            f'{path}: the clock says {now:%Y-%m-%d %H:%M:%S} UTC, and the last entry is of '
            f'{last.time:%Y-%m-%d %H:%M:%S}: set the clock of this machine right'
        )
    while last and now < last.time:
        time.sleep(back)
        now = datetime.now(timezone.utc)
    return now


def _chain(data: bytes) -> Chain:
    if len(data) > MOST:
        return Chain((), NOTHING, b'', (f'it has more than {MOST >> 20} MiB',))
    *lines, torn = data.split(b'\n')
    entries: list[Entry] = []
    faults: list[str] = []
    head = NOTHING
    for place, line in enumerate(lines, 1):
        # Also one of which nothing but its end is missing: nobody could know that then.
        if not _is_told_as_torn(line, lines[place : place + 1]):
            try:
                entry = _entry(line)
            except ValueError as error:
                faults.append(f'line {place} was changed: {error}')
            else:
                faults += _misplaced(entry, entries, head, place)
                entries.append(entry)
        head = digest(line)
    if not entries and not torn:
        faults.append('it is empty')
    return Chain(tuple(entries), head, torn, tuple(faults))


def _entry(line: bytes) -> Entry:
    """:raises ValueError: if the line is none, with what is wrong."""
    record = parse(line)
    if record.keys() != _KEYS:
        raise ValueError('it is no entry')
    number, kind, what, before = (record[key] for key in ('number', 'kind', 'what', 'before'))
    if not isinstance(number, int) or number < 1:
        raise ValueError(f'{number!r} is no number of an entry')
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f'{kind!r} is no kind of entry')
    if not isinstance(what, dict) or KINDS[kind] - what.keys():
        raise ValueError(f'an entry {kind} says more than that')
    if kind == 'interrupted' and not what.keys() & {'run', 'torn'}:
        raise ValueError('an entry interrupted says what was')
    if 'run' in KINDS[kind] | what.keys() and type(what['run']) is not int:
        raise ValueError(f'{what["run"]!r} is no number of a run')
    try:
        when = datetime.fromisoformat(record['time'])
        offset = when.utcoffset()
    except (TypeError, ValueError):
        raise ValueError(f'{record["time"]!r} is no time') from None
    if offset is None or offset or when.isoformat(timespec='microseconds') != record['time']:
        raise ValueError(f'{record["time"]!r} is no time in UTC')
    return Entry(number, when, kind, what, str(before), digest(line))


def _is_told_as_torn(line: bytes, following: list[bytes]) -> bool:
    """Whether the next entry tells that the machine stopped while this line was written."""
    if not following or b'"torn"' not in following[0]:
        return False
    try:
        entry = _entry(following[0])
    except ValueError:
        return False
    told = (entry.kind, entry.what.get('torn'), entry.what.get('bytes'), entry.before)
    return told == ('interrupted', digest(line), len(line), digest(line))


def _misplaced(entry: Entry, earlier: list[Entry], head: str, place: int) -> Iterator[str]:
    """What is wrong with where an entry stands: one sentence, and one of its time."""
    last = earlier[-1] if earlier else None
    expected = last.number + 1 if last else 1
    if entry.number > expected:
        gap = f'entry {expected}' if entry.number == expected + 1 else f'entries from {expected} on'
        yield f'{gap} of the journal was removed: line {place} is entry {entry.number}'
    elif entry.number < expected:
        yield (
            f'entry {entry.number} stands in line {place}, after entry {expected - 1}: it was '
            f'repeated or moved'
        )
    elif entry.before != head:
        yield (
            f'what stands before line {place} was changed: entry {entry.number} was written after '
            f'another line'
        )
    elif (entry.kind == 'begun') != (not earlier):
        yield f'entry {entry.number} is {entry.kind}: the first entry begins, and no other'
    if last and entry.time < last.time:
        yield (
            f'entry {entry.number} is of {entry.time:%Y-%m-%d %H:%M:%S}, before entry '
            f'{last.number} of {last.time:%Y-%m-%d %H:%M:%S}: the clock was set back'
        )
