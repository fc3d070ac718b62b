"""Random programs of eight ranks, played through on a machine whose links are fast and slow.

    PYTHONPATH=measurements .venv/bin/python tests/support/placing_programs.py 1000

plays so many as their ranks sit and as planned, and says which plans kept what they promised.
"""

import sys
from dataclasses import dataclass

import numpy as np
from placing import coloured, graphs

import witnessed
from assay.placing import costs, plan

RANKS, STEPS = 8, 12
#: Four nodes of two ranks, two behind each switch.
SWITCHES = {'s0': ['n0', 'n1'], 's1': ['n2', 'n3']}
#: Seconds that a call takes, and bytes up to which a message does not wait for its receiver.
CALL, EAGER = 1e-6, 16384
#: What a step ends with.
COLLECTIVES = ['', '', '', 'MPI_Allreduce', 'MPI_Barrier', 'MPI_Iallreduce']
#: By how much costs that were measured are off, at most.
OFF = 1.15


@dataclass(frozen=True)
class Program:
    """Messages of each step, two ranks and a size each; and the machine it runs on.

    :param at_once: whether a rank's messages of a step are completed together, or in their order.
    :param computing: seconds of each rank between steps, in the mean.
    :param collective: the call that a step ends with, if any.
    :param nodes: of each rank.
    :param latency: and ``per_byte``: seconds, by distance.
    """

    edges: list
    at_once: bool
    computing: float
    collective: str
    nodes: np.ndarray
    latency: np.ndarray
    per_byte: np.ndarray


@dataclass(frozen=True)
class Played:
    """Seconds of each rank: its end, in calls for messages and waiting in them; in collectives."""

    ends: np.ndarray
    calls: np.ndarray
    late: np.ndarray
    collectives: np.ndarray
    early: np.ndarray


def program(random):
    """A program of any kind of graph, ranks in any order, dealt in blocks or round the nodes."""
    kinds = graphs(RANKS, random)
    edges = kinds[str(random.choice([*kinds]))]
    label = random.permutation(RANKS) if random.random() < 0.5 else np.arange(RANKS)
    size = 2 ** random.uniform(3, 17) / max(weight for *_, weight in edges)
    sized = [(int(label[a]), int(label[b]), max(1, int(size * weight))) for a, b, weight in edges]
    near, slower = 10 ** random.uniform(-5.3, -4), 10 ** random.uniform(0.1, 2.5)
    rate, narrower = 10 ** random.uniform(9, 10), random.uniform(1, 4)
    return Program(
        coloured(sized),
        at_once=random.random() < 0.5,
        computing=float(random.choice([0, 1e-5, 1e-4, 1e-3])),
        collective=str(random.choice(COLLECTIVES)),
        nodes=np.arange(RANKS) % 4 if random.random() < 0.5 else np.arange(RANKS) // 2,
        latency=np.array([5e-7, 6e-7, 7e-7, near, near * slower]),
        per_byte=1 / np.array([8e9, 8e9, 8e9, rate, rate / narrower]),
    )


def play(one, nodes, random):
    """Play a program through with its ranks on these nodes."""
    switch = nodes // 2
    far = 3 * (nodes[:, None] != nodes) + (switch[:, None] != switch)
    now, calls, late, collectives, early = np.zeros((5, RANKS))
    for _ in range(STEPS):
        now = now + one.computing * random.lognormal(0, 0.1, RANKS)
        if one.at_once:
            ends, starts, sizes = now.copy(), now.copy(), np.zeros(RANKS)
            for a, b, size in one.edges:
                for rank, other in ((a, b), (b, a)):
                    ends[rank] = max(ends[rank], now[other] + one.latency[far[a, b]] + CALL)
                    starts[rank] = max(starts[rank], now[other])
                    sizes[rank] += size * one.per_byte[far[a, b]]
            ends += sizes
            calls += ends - now
            late += np.minimum(ends, starts) - now
            now = ends
        else:
            for a, b, size in one.edges:
                cost = one.latency[far[a, b]] + size * one.per_byte[far[a, b]]
                begun = now[[a, b]] + CALL
                ends = np.maximum(begun, begun[::-1] + cost)
                if size > EAGER:
                    ends = np.full(2, begun.max() + one.latency[far[a, b]] + cost)
                calls[[a, b]] += ends - now[[a, b]]
                late[[a, b]] += np.clip(begun[::-1] - begun, 0, ends - now[[a, b]])
                now[[a, b]] = ends
        if one.collective:
            rank = np.arange(RANKS)
            steps = sum(one.latency[far[rank, rank ^ 1 << bit]].max() for bit in range(3))
            collectives += now.max() + steps - now
            early += now.max() - now
            now = np.full(RANKS, now.max() + steps)
    return Played(now, calls, late, collectives, early)


def report(one, played):
    """What the witness would say of it."""
    name = 'MPI_Waitall' if one.at_once else 'MPI_Sendrecv'
    ranks = []
    for rank in range(RANKS):
        sizes = {}
        for a, b, size in one.edges:
            if rank in (a, b):
                sizes.setdefault(a + b - rank, []).append(size)
        calls = {name: witnessed.call(STEPS, played.calls[rank], 8)}
        if one.at_once:
            started = witnessed.call(STEPS * sum(map(len, sizes.values())))
            calls |= {'MPI_Isend': started, 'MPI_Irecv': started}
        waits = {name: witnessed.wait(played.calls[rank], late_sender=played.late[rank])}
        if one.collective:
            time = played.collectives[rank]
            ends_in = 'MPI_Wait' if one.collective == 'MPI_Iallreduce' else one.collective
            calls |= dict.fromkeys((one.collective, ends_in), witnessed.call(STEPS, 0.0, 0))
            calls[one.collective]['bytes'] = 0 if one.collective == 'MPI_Barrier' else 8 * STEPS
            calls[ends_in] = calls[ends_in] | {'time': time}
            waits[ends_in] = witnessed.wait(time, imbalance=played.early[rank])
        ranks.append(
            witnessed.process(
                rank,
                (int((one.nodes[:rank] == one.nodes[rank]).sum()),),
                f'n{one.nodes[rank]}',
                wall=played.ends[rank],
                mpi_time=played.calls[rank] + played.collectives[rank],
                calls=calls,
                waits=waits,
                partners=[
                    witnessed.partner(other, STEPS * len(its), STEPS * sum(its))
                    for other, its in sizes.items()
                ],
            )
        )
    return witnessed.validated(
        witnessed.entries(ranks, [witnessed.host(f'n{node}', [[0, 1]]) for node in range(4)])
    )


def promised_and_gained(number):
    """The plan of a random program, and what it gains of the wall time."""
    random = np.random.default_rng(number)
    one = program(random)
    before = play(one, one.nodes, np.random.default_rng(number))
    # Within a node costs are of one measurement.
    off = OFF ** random.uniform(-1, 1, (2, 5))[:, [0, 0, 0, 3, 4]]
    known = costs.Costs(
        tuple(map(costs.Cost, one.latency * off[0], 1 / (one.per_byte * off[1]), 'mmmmm')), SWITCHES
    )
    made = plan.plan_seats(report(one, before), known)
    after = play(one, one.nodes[made.seat], np.random.default_rng(number))
    return made, 1 - after.ends.max() / before.ends.max()


def main():
    found = [promised_and_gained(number) for number in range(int(sys.argv[1]))]
    moved = [(made, gained) for made, gained in found if made.moved]
    inside = sum(made.gain.low <= gained <= made.gain.high for made, gained in moved)
    sold = [(made.gain.expected, gained) for made, gained in moved if made.word == 'place']
    near = sum(abs(expected - gained) <= 0.2 * gained for expected, gained in sold)
    lost = sum(gained < 0 for _, gained in sold)
    print(
        f'{len(found)} programs, {len(moved)} plans that move ranks: {inside} gains within the '
        f'interval; {len(sold)} plans to place: {lost} lost, {near} expected within 20%'
    )


if __name__ == '__main__':
    main()
