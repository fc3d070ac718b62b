"""A program as it was started and as planned, in turn, until it is known which is faster."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay import AssayError, say
from assay.results.statistics.retest import BUDGET, FOURSOME, LOOKS, Decision, decide_by_pairs
from assay.running.program import run_passing_signals

#: Signals that end it: the launcher gets them too, and has cleaned up when it ends.
STOPS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}

#: Seconds of a side.
Run = Callable[[int], float]


@dataclass(frozen=True)
class Turns:
    """The result of runs with two placements in turn.

    :param seconds: medians of the two sides are of these.
    :param decision: None if it was stopped before the first look.
    """

    seconds: tuple[tuple[float, ...], tuple[float, ...]]
    decision: Decision | None


def run_pairs(run: Run, margin: float) -> Turns:
    """Run A B B A until decided, or 12 pairs are spent, or somebody presses Ctrl-C.

    :param run: runs a side and returns its seconds.
    :param margin: a change within it is called the same.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    decision = None
    try:
        while len(seconds[1]) < BUDGET:
            four: tuple[list[float], list[float]] = ([], [])
            for side in FOURSOME:
                four[side].append(run(side))
            for side, its in enumerate(four):
                seconds[side].extend(its)
            pairs = len(seconds[0])
            say(f'pairs {pairs - 1} and {pairs} of at most {BUDGET}')
            if pairs in LOOKS:
                decision = decide_by_pairs(*seconds, 'lower', margin=margin)
                if decision.word:
                    break
    except KeyboardInterrupt:
        say('stopped: what was measured counts')
    return Turns((tuple(seconds[0]), tuple(seconds[1])), decision)


def runner(sides: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> Run:
    """Runs commands, whose output nobody needs.

    :param sides: variables and words of each.
    """

    def run(side: int) -> float:
        variables, words = sides[side]
        began = time.monotonic()
        code, signals = run_passing_signals(words, variables, subprocess.DEVNULL)
        if signals & STOPS:
            raise KeyboardInterrupt
        if code:
            raise AssayError(f'{" ".join(words)}: exit code {code}')
        return time.monotonic() - began

    return run
