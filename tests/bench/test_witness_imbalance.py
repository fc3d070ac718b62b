"""The witness's shares of waiting, against a program in which one rank computes 20% longer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.machine.mpi import Mpi
from running import Run

pytestmark = pytest.mark.alone

STEPS = 15
ATTEMPTS = 3
COMPUTE = 0.020  # seconds in each step
LATE = 20  # percent
NOMINAL = 100 * LATE / (100 + LATE)  # percent of its time that a punctual rank waits
KINDS = ('late_sender', 'late_receiver', 'imbalance')

Span = tuple[float, float]


class Program:
    """A run of tests/programs/witness/imbalance.c, with what it says itself."""

    def __init__(self, run: Run) -> None:
        assert run.code == 0, run.out + run.err
        self.processes: list[dict[str, Any]] = run.report['processes']
        self.ranks = len(self.processes)
        self.steps: dict[str, list[list[Span]]] = {}
        """For each call and rank, when it began and ended in each step, in seconds."""
        for rank in range(self.ranks):
            for line in (run.files / f'times.{rank}').read_text().splitlines():
                call, *words = line.split()
                times = [float(word) for word in words]
                spans = list(zip(times[::2], times[1::2], strict=True))
                self.steps.setdefault(call, []).append(spans)

    def duration(self, call: str, rank: int) -> float:
        spans = self.steps[call][rank]
        return spans[-1][1] - spans[0][0] + COMPUTE

    def known(self, call: str, rank: int, awaited: Iterable[int]) -> float:
        """Percent of its time that a rank waited for the last of others, by the program's clock."""
        ranks = self.steps[call]
        waited = 0.0
        for step, (begin, end) in enumerate(ranks[rank]):
            latest = max((ranks[other][step][0] for other in awaited), default=begin)
            waited += max(0, min(latest, end) - begin)
        return 100 * waited / self.duration(call, rank)

    def found(self, call: str, rank: int) -> dict[str, float]:
        """Percent of its time that a rank waited, by the witness, for each kind of waiting."""
        waits = self.processes[rank]['waits'].get(call)
        if not waits:
            return dict.fromkeys(KINDS, 0)
        whole = self.processes[rank]['calls'][call]['time']
        assert waits['analysed'] == pytest.approx(whole, rel=0.05)
        scale = whole / waits['analysed'] / self.duration(call, rank)
        return {kind: 100 * scale * waits[kind] for kind in KINDS}


@pytest.fixture(scope='module', params=[2, 4], ids=['2 ranks', '4 ranks'])
def runs(
    request: pytest.FixtureRequest,
    mpi: Mpi,
    witnessed_in: Callable[..., Run],
    compiled: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Iterator[Program]]:
    """Iterators over the same few runs, which are only made when they are asked for."""
    ranks = request.param
    if ranks > len(os.sched_getaffinity(0)) and mpi.family != 'openmpi':
        pytest.skip('ranks of this MPI that wait would keep the others from the cores')
    arguments = (str(STEPS), str(round(1000 * COMPUTE)), str(LATE))
    done: list[Program] = []

    def runs() -> Iterator[Program]:
        for attempt in range(ATTEMPTS):
            if attempt == len(done):
                folder = tmp_path_factory.mktemp('imbalance')
                run = witnessed_in(folder, compiled('imbalance'), *arguments, ranks=ranks)
                done.append(Program(run))
            yield done[attempt]

    return runs


@pytest.fixture
def check(runs: Callable[[], Iterator[Program]]) -> Callable[..., None]:
    """Checks the shares of waiting in a call, all of one kind, within 2 points of a rank's time.

    ``awaited(rank, ranks)`` are those that a rank waits for; ``waits(rank, ranks)`` is the share of
    the steps in which it has to wait for a late one. Others on this machine may disturb a run, by
    the program's own clock: then another one counts.
    """

    def check(
        call: str,
        kind: str,
        awaited: Callable[[int, int], Iterable[int]],
        waits: Callable[[int, int], float],
    ) -> None:
        failure = None
        for program in runs():
            size = program.ranks
            known = [program.known(call, rank, awaited(rank, size)) for rank in range(size)]
            intended = [NOMINAL * waits(rank, size) for rank in range(size)]
            if known != pytest.approx(intended, abs=2):
                continue
            try:
                for rank in range(size):
                    shares = {**dict.fromkeys(KINDS, 0), kind: known[rank]}
                    assert program.found(call, rank) == pytest.approx(shares, abs=2), rank
                return
            except AssertionError as error:
                failure = error
        if failure:
            raise failure
        pytest.skip('this machine is too busy: no run went as it should by its own clock')

    return check


def everybody(rank: int, ranks: int) -> Iterable[int]:
    return range(ranks)


def all_but_the_last(rank: int, ranks: int) -> float:
    return rank < ranks - 1


@pytest.mark.parametrize('call', ['MPI_Allreduce', 'MPI_Barrier'])
def test_all_wait_for_the_late_rank(check, call):
    check(call, 'imbalance', everybody, all_but_the_last)


@pytest.mark.parametrize('call', ['MPI_Sendrecv', 'MPI_Waitall'])
def test_neighbours_wait_for_the_late_rank(check, call):
    """The next one from the first step on, the one after it from the second one on, ...."""
    check(
        call,
        'late_sender',
        lambda rank, ranks: [(rank - 1) % ranks],
        lambda rank, ranks: (STEPS - rank) / STEPS if rank < ranks - 1 else 0,
    )


@pytest.mark.parametrize('call', ['MPI_Ssend', 'MPI_Send'])
def test_senders_wait_for_late_receivers(check, call):
    """Even ranks send, odd ones receive."""
    check(
        call,
        'late_receiver',
        lambda rank, ranks: [] if rank % 2 else [rank + 1],
        lambda rank, ranks: rank % 2 == 0,
    )


def test_all_wait_for_a_late_root(check):
    check('MPI_Bcast', 'imbalance', lambda rank, ranks: [ranks - 1], all_but_the_last)


def test_a_root_waits_for_the_late_rank(check):
    check(
        'MPI_Reduce',
        'imbalance',
        lambda rank, ranks: [] if rank else range(ranks),
        lambda rank, ranks: rank == 0,
    )


def test_nobody_waits_for_a_late_root_that_only_takes(check):
    check('MPI_Gather', 'imbalance', lambda rank, ranks: [], lambda rank, ranks: 0)


def test_nobody_waits_in_a_balanced_program(check):
    check('MPI_Alltoall', 'imbalance', everybody, lambda rank, ranks: 0)
