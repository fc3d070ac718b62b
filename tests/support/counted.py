"""The calls and bytes that a program should have, and those that the witness reports."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from running import Run

#: Of partners, in the order of the report.
KINDS = ('', 'one_sided', 'neighbours')
ONE_SIDED = re.compile(r'MPI_(R?(put|accumulate|get_accumulate)|Fetch_and_op|Compare_.*)', re.I)


class Expected:
    """What each rank should have called and sent, as the report writes it."""

    def __init__(self, ranks: int = 4) -> None:
        self.calls: list[dict[str, list[int]]] = [defaultdict(lambda: [0, 0]) for _ in range(ranks)]
        self.sizes: list[dict[tuple[int, str], Counter[int]]] = [
            defaultdict(Counter) for _ in range(ranks)
        ]

    def call(self, ranks: int | Iterable[int], name: str, bytes: int = 0, times: int = 1) -> None:
        """Each of ``ranks`` calls it so many times, with so many bytes each time."""
        for rank in [ranks] if isinstance(ranks, int) else ranks:
            self.calls[rank][name][0] += times
            self.calls[rank][name][1] += times * bytes

    def plain(self, ranks: int | Iterable[int], **times: int) -> None:
        """Calls that carry nothing, by their names without ``MPI_``."""
        for name, count in times.items():
            self.call(ranks, f'MPI_{name}', times=count)

    def put(
        self, rank: int, name: str, to: int, bytes: int, times: int = 1, kind: str = ''
    ) -> None:
        """Messages of calls that are counted elsewhere; of a kind that their name does not tell."""
        if 'eighbor_' in name:
            kind = 'neighbours'
        elif ONE_SIDED.fullmatch(name):
            kind = 'one_sided'
        self.calls[rank][name][1] += times * bytes
        self.sizes[rank][to, kind][bytes] += times

    def send(self, rank: int, name: str, to: int, bytes: int, times: int = 1) -> None:
        """Calls with a message each."""
        self.call(rank, name, 0, times)
        self.put(rank, name, to, bytes, times)

    def count(self, out: str) -> None:
        """Calls that a program had to repeat until they succeeded, by its own word."""
        for line in out.splitlines():
            words = line.split()
            if len(words) == 3 and words[1].startswith('MPI_'):
                self.call(int(words[0]), words[1], times=int(words[2]))

    def processes(self) -> list[dict[str, Any]]:
        """The members ``calls`` and ``partners`` of each process."""
        return [
            {
                'calls': {
                    name: {'count': count, 'timed': count, 'bytes': bytes}
                    for name, (count, bytes) in calls.items()
                },
                'partners': [
                    {
                        'rank': to,
                        **({'kind': kind} if kind else {}),
                        'messages': sizes.total(),
                        'bytes': sum(size * times for size, times in sizes.items()),
                        'sizes': dict(binned(sizes)),
                    }
                    for (to, kind), sizes in sorted(partners.items(), key=_in_order)
                ],
            }
            for calls, partners in zip(self.calls, self.sizes, strict=True)
        ]


def _in_order(entry: tuple[tuple[int, str], Any]) -> tuple[int, int]:
    (to, kind), _ = entry
    return to, KINDS.index(kind)


def binned(sizes: Counter[int]) -> Counter[str]:
    """The number of messages by the power of two that is not above their size."""
    bins: Counter[str] = Counter()
    for size, times in sizes.items():
        bins[str(2 ** (size.bit_length() - 1) if size else 0)] += times
    return bins


def recorded(run: Run) -> list[dict[str, Any]]:
    """What the report says, in the form of :meth:`Expected.processes`."""
    assert run.code == 0, run.out + run.err
    assert run.report['complete']
    processes = run.report['processes']
    assert [process['rank'] for process in processes] == list(range(run.report['ranks']))
    for process in processes:
        total = sum(call['time'] for call in process['calls'].values())
        assert process['mpi_time'] == pytest.approx(total)
        assert 0 <= total <= process['wall'] * process['mpi_threads']
    return [
        {
            'calls': {
                name: {key: call[key] for key in ('count', 'timed', 'bytes')}
                for name, call in process['calls'].items()
            },
            'partners': process['partners'],
        }
        for process in processes
    ]
