"""Random MPI programs without the witness and with it: tests/programs/witness/soak.c."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from running import Run

OPERATIONS = 30  # of a program

#: Runs the program with some arguments, in a folder, with the witness or without.
Launch = Callable[[list[str], Path, bool], Run]


class FailsAloneError(Exception):
    """The programs fail without the witness."""


def differences(launch: Launch, first: int, programs: int, ranks: int, folder: Path) -> list[str]:
    """What is not the same with the witness as without it, or not as the programs counted.

    :raises FailsAloneError: if there is nothing to compare with.
    """
    arguments = [str(first), str(programs), str(OPERATIONS)]
    without = launch(arguments, folder, False)
    if without.code:
        raise FailsAloneError(f'exit code {without.code}: {without.err[-2000:]}')
    with_it = launch(arguments, folder, True)
    if with_it.code:
        return [f'exit code {with_it.code}: {with_it.err[-2000:]}']
    if sorted(with_it.out.splitlines()) != sorted(without.out.splitlines()):
        return [f'output: {with_it.out}, without the witness: {without.out}']
    report = with_it.report
    found = [] if report['complete'] else ['the report is not complete']
    for rank in range(ranks):
        counted = json.loads((folder / f'soak-{rank}.json').read_text())
        found += differences_of_rank(report['processes'][rank], counted)
    return found


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
        {one['rank']: one for one in side} for side in (process['partners'], counted['partners'])
    )
    return found + [
        f'rank {rank} to {to}: {partners.get(to)}, counted {own.get(to)}'
        for to in sorted({*partners, *own})
        if partners.get(to) != own.get(to)
    ]
