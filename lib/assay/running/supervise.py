"""ReFrame as a child: its words are passed on, signals reach it, and no job outlives it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import IO

from assay import say
from assay.running.leftovers import PATIENCE, slurm_jobs, stop_jobs
from assay.running.runs import Run
from assay.text import plain, visible

#: Seconds without a word after which it is said what is waited for.
REMINDER = 60

#: Seconds that ReFrame has to cancel its jobs and write its report once it was told to stop.
GRACE = 60

#: Seconds by which the clock of the day may be put right. ReFrame counts time limits by it, and
#: where it was set back waits for the time that was.
JUMP = 10

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    run: Run,
    handles: list[int],
    aloud: bool = True,
) -> Ended:
    """Run ReFrame to its end.

    A first signal lets it cancel its jobs and write its report; a second kills it. Either way none
    of its local processes is left, and none of its jobs in Slurm.

    :param handles: what it is to keep open: the locks of the run.
    :param aloud: whether what ReFrame says is passed on; its log has it anyway.
    """
    end, clock = Ended(), _clock_of_the_day()
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors='replace',
        pass_fds=handles,
        # Or Ctrl-C would reach it twice.
        start_new_session=True,
    )
    voice = _Voice(aloud)
    pumps = [
        Thread(target=voice.repeat, args=pair, daemon=True)
        for pair in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    ]
    with _stopped_by(process, end):
        for pump in pumps:
            pump.start()
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
    end.code = process.returncode
    end.printed = voice.lines
    return end


def _clock_of_the_day() -> float:
    """Seconds by which it is ahead of one that nobody sets, and that goes on in suspension."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


@contextmanager
def _stopped_by(process: subprocess.Popen[str], end: Ended) -> Iterator[None]:
    """Pass signals on to ReFrame, and remember the first."""

    def pass_on(number: int, frame: object) -> None:
        if end.stopped is None:
            end.stopped = signal.Signals(number)
            # It takes this one for a request to end; SIGINT it may have been started to ignore.
            process.terminate()
        else:
            process.kill()

    with _handled_by(pass_on):
        yield


@contextmanager
def noted() -> Iterator[list[signal.Signals]]:
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


# `[ RUN      ] case`, `[     FAIL ] (3/12) case [reason]`
_CASE = re.compile(r'\[ +(RUN|OK|FAIL|SKIP|XFAIL|XPASS|ABORT) *\] (?:\( *\d+/\d+\) )?(.*)')


class _Voice:
    """What ReFrame says."""

    def __init__(self, aloud: bool) -> None:
        self.aloud = aloud
        self.heard = time.monotonic()
        self.lines: list[str] = []
        self._open: dict[str, None] = {}

    def repeat(self, stream: IO[str], target: IO[str]) -> None:
        """Note lines, pass them on, and note which cases have begun and not ended."""
        for line in stream:
            self.heard = time.monotonic()
            self.lines.append(visible(line.rstrip('\n')))
            self._note(self.lines[-1])
            if self.aloud:
                with suppress(OSError):  # a reader that has gone, a full disk: what is read goes on
                    print(self.lines[-1], file=target, flush=True)

    def _note(self, line: str) -> None:
        if match := _CASE.match(line):
            what, case = match.groups()
            if what == 'RUN':
                self._open[case] = None
            else:
                self._open.pop(case.partition(' [')[0], None)

    def waiting(self, run: Run) -> str:
        """What has not ended, and what Slurm says of it."""
        cases = list(self._open)
        words = f'still at work on {len(cases)} cases' if len(cases) > 1 else 'still at work'
        if cases:
            words += f': {cases[0]}' + (' and others' if len(cases) > 1 else '')
        if jobs := [f'{job} is {state} ({why})' for job, state, why in slurm_jobs(run)]:
            words += f'; in Slurm {", ".join(jobs[:4])}' + (', ...' if len(jobs) > 4 else '')
        return plain(words)
