"""A night: put off, or measured, held against good ones, remembered, and told if it is news."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from assay import AssayError, error_text, locks, paths, say
from assay.config import settings
from assay.files import explain_errors, write_whole
from assay.machine.slurm import SCHEDULERS, Record, partitions_in, records
from assay.nights.measuring import NightMeasurement
from assay.nights.outcome import (
    KnownVerdict,
    NightMemory,
    NightOutcome,
    as_minute,
    last_line,
    message,
    notify,
    outcome_of_problem,
    subject,
)
from assay.one_run import RunRequest
from assay.report import junit
from assay.results.verdict import Verdict
from assay.running.node_choice import Way
from assay.running.reframe_options import Given
from assay.running.session import Suite
from assay.text import expand_nodes

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


# What is remembered from night to night -----------------------------------------------------------


class Folder:
    """The folder of a system and a mode in ``perflogs/nights``, with the memory of earlier nights.

    :raises AssayError: if their names are none of files.
    """

    def __init__(self, system: str, mode: str) -> None:
        for name in (system, mode):
            if not re.fullmatch(r'[\w:+-][\w.:+-]*', name):
                raise AssayError(f'{name!r} cannot be the name of a folder')
        self.path = paths.NIGHTS.joinpath(*system.split(':'), mode)
        self.file = self.path / 'memory.json'

    @contextmanager
    def hold_lock(self) -> Iterator[int | None]:
        """Hold the lock of the night: its handle, or None if another night is under way.

        A process that inherits the handle holds the lock as well, to its end.

        :raises AssayError: if that cannot be known.
        """
        path = self.path / 'lock'
        with explain_errors(self.path, 'made'):
            self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            handle: int | None = None
            with suppress(locks.LockedError):
                handle = opened.enter_context(locks.hold_lock(path, wait=False))
                os.utime(handle)
            yield handle

    def time_busy(self) -> timedelta:
        """How long another night has been under way."""
        return timedelta(seconds=time.time() - (self.path / 'lock').stat().st_mtime)

    def read(self) -> NightMemory:
        """Read the memory of earlier nights; if it is damaged, say so and start anew."""
        if not self.file.exists():
            return NightMemory()
        with explain_errors(self.file, 'read'):
            text = self.file.read_bytes()
        try:
            return NightMemory.model_validate_json(text)
        except ValidationError:
            aside = self.file.with_name(f'{self.file.name}.damaged-{datetime.now():%Y%m%dT%H%M%S}')
            with explain_errors(self.file, 'renamed'):
                self.file.rename(aside)
            say(f'what was known of the nights before was damaged: it is {aside} now')
            return NightMemory()

    def write(self, memory: NightMemory) -> None:
        """:raises AssayError: if it cannot be written."""
        with explain_errors(self.file, 'written'):
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, f'{memory.model_dump_json(indent=2)}\n')


# Maintenance --------------------------------------------------------------------------------------


#: Nights are put off for so long; then somebody has to know that nothing is measured.
LONGEST = timedelta(hours=48)

_RESERVATION = re.compile(r'(?:^|\s)--reservation[= ]')
_OPTION = re.compile(r'-{0,2}(\w+)[= ]?(\S*)')


def in_maintenance(site: _SiteConfig, jobs: Sequence[str]) -> str | None:
    """Why no job could start on a system, in words; None if one could.

    Each of its partitions is down, drained or inactive, or has all of its nodes in an active
    reservation of the kind MAINT. Reservations do not count for a run that names one.

    :param site: the configuration, with the system chosen.
    :param jobs: options of all of the run's jobs, as ReFrame's ``-J`` has them.
    """
    partitions = site['systems'][0]['partitions']
    if any(one['scheduler'] not in SCHEDULERS for one in partitions):
        return None
    known = {one['PartitionName']: one for one in _shown('partition')}
    asked = {match[1]: match[2] for one in jobs if (match := _OPTION.match(one))}
    # That of jobs that name none.
    default = [name for name, one in known.items() if one.get('Default') == 'YES']
    reserved = [
        one
        for one in _shown('reservation')
        if one.get('State') == 'ACTIVE' and 'MAINT' in one.get('Flags', '').split(',')
    ]
    found: list[str | None] = []
    for partition in partitions:
        access = ' '.join(partition.get('access', []))
        in_one = 'reservation' in asked or bool(_RESERVATION.search(access))
        chosen = asked.get('partition') or asked.get('p')
        names = chosen.split(',') if chosen else partitions_in(access) or default
        found += [_why(known.get(name), [] if in_one else reserved) for name in names]
    return '; '.join(dict.fromkeys(map(str, found))) if found and all(found) else None


def _why(partition: Record | None, reserved: list[Record]) -> str | None:
    """Why no job could start in a partition, in words."""
    if partition is None:
        return None
    name, state = partition['PartitionName'], partition.get('State', 'UP')
    if state != 'UP':
        return f'the partition {name} is {state.lower()}'
    nodes = _nodes(partition)
    for one in reserved:
        if nodes and nodes <= _nodes(one):
            return (
                f'the reservation {one["ReservationName"]}, of the kind MAINT, has all nodes of '
                f'the partition {name} until {one.get("EndTime", "its end")}'
            )
    return None


def _nodes(record: Record) -> frozenset[str]:
    """Empty where Slurm names none, or in a way that is not known."""
    try:
        return frozenset(expand_nodes(record.get('Nodes', '')))
    except ValueError:
        return frozenset()


def _shown(what: str) -> list[Record]:
    """Slurm's records; none if it does not answer, and then the run will find out why."""
    try:
        return records(what)
    except AssayError:
        return []


# A night ------------------------------------------------------------------------------------------


#: By which `assay history` finds the runs of nights.
LABEL = 'nightly'

#: The exit code of a night on which nothing was measured, and nothing is wrong: EX_TEMPFAIL of
#: sysexits.h.
PUT_OFF = 75


@dataclass(frozen=True)
class Night:
    """A night of a system and a mode.

    :param suite: what its runs are started with, or why they cannot be.
    :param given: what is asked of ReFrame.
    :param options: the same, as they were given.
    :param margin: a change within it is called the same.
    :param command: that tells people; None if they look for themselves.
    :param budget: seconds for which cases are chosen; None to run them all.
    :param way: how nodes are chosen; None to leave them to the scheduler.
    """

    suite: Suite | AssayError
    system: str
    mode: str
    given: Given
    options: Sequence[str]
    margin: float
    command: str | None
    budget: float | None = None
    way: Way | None = None

    def spend(self) -> int:
        """All of it, unless another one is under way.

        :returns: the exit code.
        :raises AssayError: if what is known of nights can be neither read nor written.
        :raises SystemExit: if it was told to stop; nothing is remembered then.
        """
        folder = Folder(self.system, self.mode)
        with folder.hold_lock() as handle:
            if handle is None:
                if folder.time_busy() > LONGEST:
                    raise AssayError(f'another night of {self._which} has not ended for two days')
                say(f'put off: another night of {self._which} is under way')
                return PUT_OFF
            memory = folder.read()
            folder.write(memory)  # before anybody hears of what could not be remembered
            put_off, good, said = None, None, ''
            measuring: NightMeasurement | None = None
            try:
                self.given.remove_files_of_an_earlier_run()
                if why := in_maintenance(settings.load_system(self.system), self.given.jobs):
                    put_off = min(memory.put_off or _now(), _now())
                    if _now() - put_off <= LONGEST:
                        folder.write(memory.after(memory.told, None, put_off))
                        say(f'put off: {why}')
                        return PUT_OFF
                    raise AssayError(f'nothing was measured since {as_minute(put_off)}: {why}')
                if isinstance(self.suite, AssayError):
                    raise self.suite
                about = self.suite, self.suite.load(), self.given, LABEL, self.options, [handle]
                request = RunRequest(*about)
                measuring = NightMeasurement(request, folder.file, self.budget, self.way)
                outcome, good = measuring.measure(memory, self.margin)
            except AssayError as error:
                said = f'{error_text(error)}\n'
                outcome = outcome_of_problem(str(error))
            except Exception as error:  # whatever it is, it has to reach people
                said = traceback.format_exc()
                outcome = outcome_of_problem(f'{type(error).__name__}: {error}')
            told, problem = self._tell(outcome, memory.told)
            folder.write(memory.after(told, good, put_off))
            print(said, end='', file=sys.stderr)
            if problem:
                say(problem)
            if outcome.word in ('FAILED', 'WORSE') and self.given.junit:
                choice = measuring.choice if measuring else None
                left_out = choice.titles_left_out if choice else ()
                own = None if isinstance(self.suite, AssayError) else self.suite.own
                verdict = Verdict(outcome.sentences)
                junit.write_of_run(self.given.junit, own, verdict, left_out)
            print(last_line(self._which, outcome, memory.told))
            return 1 if problem else outcome.exit_code

    @property
    def _which(self) -> str:
        return f'{self.system} ({self.mode})'

    def _tell(self, outcome: NightOutcome, before: KnownVerdict) -> tuple[KnownVerdict, str]:
        """Tell people what is new; what they know now, and why they could not be notified.

        A night that is undecided, or that others disturbed, says nothing: nobody is notified.
        """
        if not outcome.is_evidence or before.is_of(outcome):
            return before, ''
        headline = subject(self._which, outcome, before)
        if self.command is not None:
            where = '' if isinstance(self.suite, AssayError) else f'files: {self.suite.own.folder}'
            text = message(headline, outcome, before, where)
            try:
                notify(self.command, outcome.word, headline, text)
            except AssayError as error:
                return before, str(error)
        return KnownVerdict(word=outcome.word, culprits=outcome.culprits, since=_now()), ''


def _now() -> datetime:
    return datetime.now().astimezone()
