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
from typing import BinaryIO, ClassVar, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from assay import AssayError, locks
from assay.acceptance.files import Files, canonical, digest, parse_record, settle
from assay.files import explain_errors

#: What the first entry names as the line before it.
NOTHING = '0' * 64

#: Bytes of a journal at most: it has a line for each run, and is read whole.
MOST = 64 << 20

#: Seconds that the clock may have been set back, as by NTP, before nothing is written any more.
BACK = 2.0

_KEYS = {'number', 'time', 'kind', 'what', 'before'}


class What(BaseModel):
    """The fields of an entry: no others are allowed, and no value of another kind."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True)

    kind: ClassVar[str]


class Begun(What):
    """The acceptance was begun: the first entry, and no other.

    :param contract: SHA-256 of its file.
    :param commit: of Assay.
    :param system: that is measured.
    """

    kind = 'begun'

    contract: str
    commit: str
    system: str


class Started(What):
    """A run is started.

    :param run: its number, from 1.
    :param cases: titles of its cases.
    :param environment: of all of them.
    :param folder: name of the folder that it runs in.
    :param options: of ReFrame, for all jobs.
    :param variables: of the command that tune jobs, all of which the contract allows.
    """

    kind = 'started'

    run: int
    cases: tuple[str, ...]
    environment: str
    folder: str
    options: tuple[str, ...]
    variables: dict[str, str]


class TellsFiles(What):
    """Something that was kept.

    :param files: what they hold, by their names in the archive.
    """

    place: ClassVar[str]

    files: Files

    @property
    def where(self) -> str:
        """The prefix of the names of its files."""
        return self.place.format(self)


class Screened(TellsFiles):
    """The nodes were screened before the first run.

    :param screening: the name of its file.
    :param begun: when, UTC.
    :param nodes: that were screened.
    :param found: what it found, in words; empty for nothing.
    :param unjudged: the nodes that nothing could judge.
    """

    kind, place = 'screened', 'screenings/'

    screening: str
    begun: str
    environment: str
    fabric: str
    nodes: tuple[str, ...]
    found: str
    unjudged: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of the screening's file in the archive."""
        return f'{self.where}{self.screening}'


class EndsRun(TellsFiles):
    """A run has come to its end.

    :param run: its number.
    """

    place = 'jobs/{0.run}/'

    run: int


class RunEnded(EndsRun):
    """By itself, or by a signal.

    :param uuid: ReFrame's identifier of the session; empty if it left no report.
    :param word: of its verdict.
    """

    kind = 'ended'

    uuid: str
    word: str


class Interrupted(EndsRun):
    """Its command was killed."""

    kind = 'interrupted'


class Torn(What):
    """The machine stopped while the line before this one was written.

    :param sha256: of what there is of that line.
    :param size: bytes.
    """

    kind = 'torn'

    sha256: str
    size: int


class Resumed(What):
    """The acceptance goes on."""

    kind = 'resumed'


class Reported(TellsFiles):
    """The report was written, and the acceptance closed."""

    kind, place = 'report', 'report/'


KINDS: dict[str, type[What]] = {
    one.kind: one
    for one in (Begun, Screened, Started, RunEnded, Interrupted, Torn, Resumed, Reported)
}

W_co = TypeVar('W_co', bound=What, covariant=True)


@dataclass(frozen=True)
class JournalEntry(Generic[W_co]):
    """A line of the journal.

    :param number: from 1.
    :param time: when it was written, UTC.
    :param what: it tells.
    :param before: SHA-256 of the line before.
    :param digest: SHA-256 of its own line.
    """

    number: int
    time: datetime
    what: W_co
    before: str
    digest: str


AnyEntry: TypeAlias = JournalEntry[What]


def of(kind: type[W_co], entries: Iterable[AnyEntry]) -> list[JournalEntry[W_co]]:
    """The entries of a kind, or of several that are based on one."""
    return [cast(JournalEntry[W_co], one) for one in entries if isinstance(one.what, kind)]


@dataclass(frozen=True)
class Chain:
    """A journal that was read.

    :param entries: of the lines that are whole.
    :param head: SHA-256 of the last line.
    :param torn: what stands after it: a line that was begun when the machine stopped.
    :param faults: sentences: what was changed, and where.
    """

    entries: tuple[AnyEntry, ...]
    head: str
    torn: bytes
    faults: tuple[str, ...]

    def assert_whole(self, path: Path) -> None:
        """:raises AssayError: if anything is wrong with it."""
        if self.faults:
            raise AssayError(
                f'{path}: {self.faults[0]}; restore the journal from a copy, or begin anew'
            )


def begin_journal(path: Path, what: Begun) -> None:
    """Write the first entry of a new journal.

    :raises AssayError: if there is one, or it cannot be written.
    """
    try:
        path.touch(0o644, exist_ok=False)
        settle(path.parent)
    except FileExistsError:
        raise AssayError(
            f'{path} is there: an acceptance is begun in a folder of its own'
        ) from None
    except OSError as error:
        raise AssayError(f'{path}: cannot be made: {error.strerror}') from None
    with _locked(path) as file:
        _write(path, file, _chain(b''), [what])


def append(path: Path, what: What) -> AnyEntry:
    """Write an entry, and return once it is on the disk.

    :raises AssayError: if the journal is damaged or torn, the clock was set back, or it cannot be
        written.
    """
    with _locked(path) as file:
        chain = _chain(file.read(MOST + 1))
        chain.assert_whole(path)
        if chain.torn:
            raise AssayError(f'{path}: its last line is torn: resume the acceptance first')
        return _write(path, file, chain, [what])[-1]


def resume_journal(path: Path, files: Mapping[int, Files]) -> list[AnyEntry]:
    """Count as interrupted what a stopped machine left open: a torn line, and runs with no end.

    :param files: what such runs left all the same, by their numbers.
    :returns: the entries that were written, the last of which is :class:`Resumed`.
    :raises AssayError: if the journal is damaged in another way, or cannot be written.
    """
    with _locked(path) as file:
        chain = _chain(file.read(MOST + 1))
        chain.assert_whole(path)
        if not chain.entries:
            raise AssayError(f'{path}: nothing was begun: begin anew, in another folder')
        new: list[What] = []
        head = chain.head
        if chain.torn:
            head = digest(chain.torn)
            new.append(Torn(sha256=head, size=len(chain.torn)))
        new += [Interrupted(run=run, files=files.get(run, {})) for run in open_runs(chain.entries)]
        end = b'\n' if chain.torn else b''
        whole = Chain(chain.entries, head, b'', ())
        return _write(path, file, whole, [*new, Resumed()], end)


def read_journal(path: Path) -> Chain:
    """A journal, with what is wrong with it.

    :raises AssayError: if it cannot be read.
    """
    with explain_errors(path, 'read'), path.open('rb') as file:
        return _chain(file.read(MOST + 1))


def open_runs(entries: Iterable[AnyEntry]) -> list[int]:
    """The numbers of the runs that were started, and of which no end is told."""
    entries = [*entries]
    ended = {one.what.run for one in of(EndsRun, entries)}
    return [one.what.run for one in of(Started, entries) if one.what.run not in ended]


def run_faults(entries: Iterable[AnyEntry]) -> Iterator[str]:
    """A sentence for each run without one end, and each end without a run."""
    started = 0
    ended: set[int] = set()
    entries = [*entries]
    for entry in entries:
        if isinstance(entry.what, Started):
            run, started = entry.what.run, started + 1
            if run != started:
                yield f'entry {entry.number} starts run {run}, and run {started} is the next'
                started = run
        elif isinstance(entry.what, EndsRun):
            run = entry.what.run
            if not 1 <= run <= started:
                yield f'entry {entry.number} ends run {run}, which no entry starts'
            elif run in ended:
                yield f'entry {entry.number} ends run {run}, which has ended before'
            ended.add(run)
    for run in open_runs(entries):
        yield f'run {run} was started, and no entry tells how it ended: a run is left out'


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """The journal, while no other process writes to it."""
    with explain_errors(path, 'written'), path.open('r+b') as file:
        locks.lock(file.fileno(), path)
        yield file


def _write(
    path: Path,
    file: BinaryIO,
    chain: Chain,
    new: Iterable[What],
    end: bytes = b'',
) -> list[AnyEntry]:
    """Add entries to a locked journal that has been read to its end.

    :param end: what ends the line that is torn.
    """
    last = chain.entries[-1] if chain.entries else None
    number, head = last.number if last else 0, chain.head
    lines, entries = [end], []
    now = _now(path, last)
    for what in new:
        number += 1
        record = {
            'number': number,
            'time': now.isoformat(timespec='microseconds'),
            'kind': what.kind,
            'what': what.model_dump(mode='json'),
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


def _now(path: Path, last: AnyEntry | None) -> datetime:
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
    entries: list[AnyEntry] = []
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


def _entry(line: bytes) -> AnyEntry:
    """:raises ValueError: if the line is none, with what is wrong."""
    record = parse_record(line)
    if record.keys() != _KEYS:
        raise ValueError('it is no entry')
    number, kind, what, before = (record[key] for key in ('number', 'kind', 'what', 'before'))
    if not isinstance(number, int) or number < 1:
        raise ValueError(f'{number!r} is no number of an entry')
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f'{kind!r} is no kind of entry')
    try:
        # As JSON: there a list is a list, and a number no truth value.
        told = KINDS[kind].model_validate_json(canonical(what))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = '.'.join(map(str, first['loc'])) or 'what it tells'
        raise ValueError(f'an entry {kind} is not so: {field}: {first["msg"]}') from None
    try:
        when = datetime.fromisoformat(record['time'])
        offset = when.utcoffset()
    except (TypeError, ValueError):
        raise ValueError(f'{record["time"]!r} is no time') from None
    if offset is None or offset or when.isoformat(timespec='microseconds') != record['time']:
        raise ValueError(f'{record["time"]!r} is no time in UTC')
    return JournalEntry(number, when, told, str(before), digest(line))


def _is_told_as_torn(line: bytes, following: list[bytes]) -> bool:
    """Whether the next entry tells that the machine stopped while this line was written."""
    if not following or b'"torn"' not in following[0]:
        return False
    try:
        entry = _entry(following[0])
    except ValueError:
        return False
    own = digest(line)
    return entry.before == own and entry.what == Torn(sha256=own, size=len(line))


def _misplaced(entry: AnyEntry, earlier: list[AnyEntry], head: str, place: int) -> Iterator[str]:
    """Faults of an entry's place in the journal and of its time, a sentence each."""
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
    elif isinstance(entry.what, Begun) != (not earlier):
        yield f'entry {entry.number} is {entry.what.kind}: the first entry begins, and no other'
    if last and entry.time < last.time:
        yield (
            f'entry {entry.number} is of {entry.time:%Y-%m-%d %H:%M:%S}, before entry '
            f'{last.number} of {last.time:%Y-%m-%d %H:%M:%S}: the clock was set back'
        )
