"""ReFrame as a child: its words are passed on, signals reach it, and no job outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, Protocol

from assay import say
from assay.running import events, reframe_log
from assay.running.leftovers import PATIENCE, slurm_jobs, stop_jobs
from assay.running.runs import RunFolder
from assay.text import plain, visible

#: Seconds without a word after which it is said what is waited for.
REMINDER = 60

#: Seconds that ReFrame has to cancel its jobs and write its report once it was told to stop.
GRACE = 60

#: Seconds by which the clock of the day may be put right. ReFrame counts time limits by it, and
#: where it was set back waits for the time that was.
JUMP = 10

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Audience(Protocol):
    """The audience of a run while it goes on."""

    @property
    def hears_all(self) -> bool:
        """Whether all that ReFrame prints is passed on to it, not only what it warns of."""

    def hear(self, event: dict[str, Any]) -> bool:
        """Be told of an event (:mod:`assay.running.events`); whether anything was said of it."""


@dataclass
class Ended:
    """How ReFrame ended.

    :param code: its exit code, negative for a signal.
    :param stopped: the signal that this command was stopped by, if it was.
    :param problems: what went wrong besides, a sentence each.
    :param printed: the lines of its standard output and error.
    """

    code: int = 0
    stopped: signal.Signals | None = None
    problems: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def supervise(
    command: list[str],
    environment: dict[str, str],
    run: RunFolder,
    handles: list[int],
    audience: Audience | None = None,
) -> Ended:
    """Run ReFrame to its end.

    A first signal lets it cancel its jobs and write its report; a second kills it. Either way none
    of its local processes is left, and none of its jobs in Slurm.

    :param handles: what it is to keep open: the locks of the run.
    :param audience: it hears what goes on; ReFrame's log has what it said anyway.
    """
    end, clock = Ended(), _clock_of_the_day()
    told, tells = os.pipe()
    with _stopped_by(end) as started:
        process = subprocess.Popen(
            command,
            env={**environment, events.VARIABLE: str(tells)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors='replace',
            pass_fds=[*handles, tells],
            # Or Ctrl-C would reach it twice.
            start_new_session=True,
        )
        started(process)
        os.close(tells)
        voice = _Voice(audience)
        pumps = [
            Thread(target=voice.repeat, args=(process.stdout, sys.stdout, False), daemon=True),
            Thread(target=voice.repeat, args=(process.stderr, sys.stderr, True), daemon=True),
            Thread(target=voice.tell, args=(told,), daemon=True),
        ]
        speaker = Thread(target=voice.speak, daemon=True)
        for thread in (*pumps, speaker):
            thread.start()
        deadline = None
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            jump = _clock_of_the_day() - clock
            if abs(jump) > JUMP and deadline is None:
                end.problems.append(
                    f'the clock of this machine jumped by {jump:.0f} s, by which ReFrame counts '
                    'time limits: the run was stopped'
                )
                process.terminate()
            if (end.stopped or end.problems) and deadline is None:
                deadline = time.monotonic() + GRACE
            if deadline and time.monotonic() > deadline:
                process.kill()
            if time.monotonic() - voice.heard > REMINDER:
                voice.heard = time.monotonic()
                say(voice.waiting(run))
        for pump in pumps:
            pump.join(timeout=PATIENCE)
        left = stop_jobs(run)
        if left and deadline is None:
            end.problems.append(f'ReFrame ended and left {left} behind, which have been stopped')
        for pump in pumps:  # what kept one from its end has been stopped
            pump.join(timeout=PATIENCE)
    if any(pump.is_alive() for pump in pumps):
        end.problems.append(
            'a process that ReFrame left behind, and that cannot be found, holds its output open: '
            'whether all of it was read is unknown'
        )
    voice.close()
    speaker.join()  # as long as somebody who reads what is said takes for it
    end.code = process.returncode
    end.printed = voice.lines
    return end


def _clock_of_the_day() -> float:
    """Seconds by which it is ahead of one that nobody sets, and that goes on in suspension."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


@contextmanager
def _stopped_by(end: Ended) -> Iterator[Callable[[subprocess.Popen[str]], None]]:
    """Remember the first signal, and pass signals on to ReFrame, which is given.

    They are handled from before it is started, or one that comes meanwhile would end this command
    and leave ReFrame at work.
    """
    processes: list[subprocess.Popen[str]] = []

    def pass_on(number: int, frame: object) -> None:
        is_first = end.stopped is None
        if is_first:
            end.stopped = signal.Signals(number)
        for process in processes:
            # It takes this one for a request to end; SIGINT it may have been started to ignore.
            process.terminate() if is_first else process.kill()

    def started(process: subprocess.Popen[str]) -> None:
        processes.append(process)
        if end.stopped is not None:
            process.terminate()

    with _handled_by(pass_on):
        yield started


@contextmanager
def note_signals() -> Iterator[list[signal.Signals]]:
    """Around several runs of ReFrame: the first signal to stop is noted, a second ends at once.

    While one runs its own handlers are in place; of a signal that they took ``Ended`` tells.
    """
    told: list[signal.Signals] = []

    def note(number: int, frame: object) -> None:
        if told:
            raise SystemExit(128 + number)
        told.append(signal.Signals(number))

    with _handled_by(note):
        yield told


@contextmanager
def _handled_by(handler: Callable[[int, object], None]) -> Iterator[None]:
    before = {
        number: signal.signal(number, handler)
        for number in SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN  # as nohup and shells' & have it
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class _Voice:
    """The lines that tell people what ReFrame does.

    One thread says it, and others read: a terminal that is stopped, or words that cannot be
    written, keep neither ReFrame from going on nor a line from the verdict.
    """

    def __init__(self, audience: Audience | None) -> None:
        self.audience = audience
        self.heard = time.monotonic()
        self.lines: list[str] = []
        self._open: dict[str, None] = {}
        self._words: SimpleQueue[Callable[[], bool] | None] = SimpleQueue()

    def repeat(self, stream: IO[str], target: IO[str], is_error: bool) -> None:
        """Note lines, and pass on what is for the audience.

        :param is_error: whether it is the standard error, which is shown whole.
        """
        of_complaint = False
        for text in stream:
            line = visible(text.rstrip('\n'))
            self.lines.append(line)
            of_complaint = reframe_log.is_complaint(line, of_complaint)
            if self.audience is None:
                self.heard = time.monotonic()
            elif is_error or of_complaint or self.audience.hears_all:
                self._words.put(partial(_print, line, target))

    def tell(self, pipe: int) -> None:
        """Pass on events."""
        with open(pipe, errors='replace') as stream:
            for line in stream:
                if not line.endswith('\n'):  # ReFrame was killed meanwhile
                    return
                event = json.loads(line)
                self._note(event)
                if self.audience:
                    self._words.put(partial(self.audience.hear, event))

    def speak(self) -> None:
        """Say what is to be said in the order in which it came, and go on whatever happens."""
        has_failed = False
        for words in iter(self._words.get, None):
            try:
                if words():
                    self.heard = time.monotonic()
            except (OSError, SystemExit):  # a reader that has gone, also by Rich; a full disk
                pass
            except Exception:  # a mistake of ours is reported, and changes nothing of the run
                if not has_failed:
                    with suppress(OSError):
                        traceback.print_exc()
                has_failed = True

    def close(self) -> None:
        """Nothing more is to be said."""
        self._words.put(None)

    def _note(self, event: dict[str, Any]) -> None:
        """Note which cases are built or run."""
        for kind, case in event.items():
            if kind in (events.BUILDS, events.RUNS):
                self._open[_title(case)] = None
            elif kind == events.ENDED:
                self._open.pop(_title(case), None)

    def waiting(self, run: RunFolder) -> str:
        """The cases that have not ended, and what Slurm says of their jobs."""
        cases = list(self._open)
        words = f'still at work on {len(cases)} cases' if len(cases) > 1 else 'still at work'
        if cases:
            words += f': {cases[0]}' + (' and others' if len(cases) > 1 else '')
        if jobs := [f'{job} is {state} ({why})' for job, state, why in slurm_jobs(run)]:
            words += f'; in Slurm {", ".join(jobs[:4])}' + (', ...' if len(jobs) > 4 else '')
        return plain(words)


def _print(line: str, target: IO[str]) -> bool:
    print(line, file=target, flush=True)
    return True


def _title(case: dict[str, Any]) -> str:
    """Name, partition and environment, as ReFrame prints it."""
    where = f'{case["system"]}:{case["partition"]}+{case["environ"]}'
    return f'{case["display_name"]} @{where}'
