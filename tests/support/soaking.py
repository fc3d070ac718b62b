"""Random MPI programs without the witness and with it: tests/programs/witness/soak.c."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from assay.text import parse_cpus
from running import Run

OPERATIONS = 30  # of a program
#: Programs of a launch are this far apart: all with threads, or all without.
STEP = 2

#: Runs the program with some arguments, in a folder, with the witness or without.
Launch = Callable[[list[str], Path, bool], Run]


class Verdict(NamedTuple):
    """What became of a launch's programs: ``same``, ``different`` or ``fails alone``."""

    outcome: str
    found: list[str]
    good: int
    """So many of the first programs are not the reason; all where it is not known."""


def compare(launch: Launch, first: int, programs: int, ranks: int, folder: Path) -> Verdict:
    """Are they the same with the witness as without it, and as they counted themselves?"""
    arguments = [str(first), str(programs), str(OPERATIONS)]
    without = launch(arguments, folder, False)
    if without.code:
        return Verdict('fails alone', [_end_of(without)], _ended(without, first, programs, ranks))
    with_it = launch(arguments, folder, True)
    if with_it.code:
        return Verdict('different', [_end_of(with_it)], _ended(with_it, first, programs, ranks))
    if sums := sorted({*with_it.out.splitlines()} ^ {*without.out.splitlines()}):
        return Verdict('different', sums, min((_program_of(line) - first) // STEP for line in sums))
    report = with_it.report
    found = [] if report['complete'] else ['the report is not complete']
    for rank in range(ranks):
        counted = json.loads((folder / f'soak-{rank}.json').read_text())
        found += differences_of_rank(report['processes'][rank], counted)
    return Verdict('different' if found else 'same', found, programs)


def _end_of(run: Run) -> str:
    return f'exit code {run.code}: {run.err[-2000:]}'


def _program_of(line: str) -> int:
    return int(line.split(':')[1].split()[1])


def _ended(run: Run, first: int, programs: int, ranks: int) -> int:
    """How many of the first programs all ranks wrote their line of."""
    lines = [line for line in run.out.splitlines(keepends=True) if line.endswith('\n')]
    written = [_program_of(line) for line in lines if line.startswith('rank ')]
    for number in range(programs):
        if written.count(first + number * STEP) < ranks:
            return number
    return programs


def differences_of_rank(process: dict[str, Any], counted: dict[str, Any]) -> list[str]:
    """Where a process of the report is not what its rank counted."""
    rank = process['rank']
    calls = {name: [call['count'], call['bytes']] for name, call in process['calls'].items()}
    found = [
        f'rank {rank}: {name}: {calls.get(name)}, counted {counted["calls"].get(name)}'
        for name in sorted({*calls, *counted['calls']})
        if calls.get(name) != counted['calls'].get(name)
    ]
    partners, own = (
        _partners_of(process),
        _summed((one['kind'], one['rank'], one) for one in counted['partners']),
    )
    return found + [
        f'rank {rank} to {to}: {partners.get(to)}, counted {own.get(to)}'
        for to in sorted({*partners, *own})
        if partners.get(to) != own.get(to)
    ]


def _partners_of(process: dict[str, Any]) -> dict[tuple[str, int], Counter[str]]:
    """By kind and rank what was sent; collectives send to several ranks alike."""
    return _summed(
        [(one.get('kind', ''), one['rank'], one) for one in process['partners']]
        + [
            ('collectives', to, one)
            for one in process['collectives']
            for to in parse_cpus(one['ranks'])
        ]
    )


def _summed(
    sent: Iterable[tuple[str, int, dict[str, Any]]],
) -> dict[tuple[str, int], Counter[str]]:
    found: dict[tuple[str, int], Counter[str]] = {}
    for kind, to, one in sent:
        entry = {'messages': one['messages'], 'bytes': one['bytes'], **one['sizes']}
        found.setdefault((kind, to), Counter()).update(entry)
    return found
