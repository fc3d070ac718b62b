"""The cases that a contract asks for, as ReFrame selects them on its system."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from assay import AssayError
from assay.acceptance.contract import Commitment, Contract
from assay.acceptance.outcomes import fits, parameters
from assay.config.scales import SCALES
from assay.running import runs
from assay.running.session import Suite
from assay.text import plain

_LISTED = re.compile(r'- (?P<name>\S.*?) /[0-9a-f]+ @(?P<place>[^+\s]+)\+(?P<environment>\S+)')

#: Cases that a sentence names.
_MOST = 4


@dataclass(frozen=True)
class Wanted:
    """The case of a commitment.

    :param name: with its parameters, as ReFrame prints it.
    :param place: system and partition.
    """

    commitment: Commitment
    name: str
    place: str
    environment: str

    @property
    def title(self) -> str:
        """Name, partition and environment, as they stand in reports."""
        return f'{self.name} @{self.place}+{self.environment}'

    @property
    def nodes(self) -> int:
        """Of a job of it."""
        return SCALES.get(parameters(self.name).get('scale', ''), 1)


def selecting(contract: Contract) -> list[str]:
    """ReFrame's option that selects all cases of the checks of a contract, and perhaps more."""
    checks = dict.fromkeys(one.check for one in contract.commitments)
    return ['-n', f'^({"|".join(checks)})']


def wanted(contract: Contract, suite: Suite) -> list[Wanted]:
    """The case of each commitment, in their order.

    :raises AssayError: if no case fits a commitment, or several do; all of them are told.
    """
    listed = _listed(suite, selecting(contract))
    found, problems = [], []
    for one in contract.commitments:
        own = [entry for entry in listed if fits(one, entry[0], entry[2])]
        if len(own) == 1:
            found.append(Wanted(one, *own[0]))
            continue
        told = own or [entry for entry in listed if entry[0].partition(' ')[0] == one.check]
        names = [f'{name} @{place}+{environment}' for name, place, environment in told]
        some = '; '.join(names[:_MOST]) + (
            f'; and {len(names) - _MOST} more' * (len(names) > _MOST)
        )
        if own:
            problems.append(f'{one.id}: {len(own)} cases fit, name one: {some}')
        else:
            there = f'there are {some}' if names else f'there is none of {one.check}'
            problems.append(f'{one.id}: no case on {contract.system} fits; {there}')
    if problems:
        raise AssayError('\nassay: '.join(problems))
    return found


def _listed(suite: Suite, options: Sequence[str]) -> list[tuple[str, str, str]]:
    """Name, place and environment of each case.

    :raises AssayError: if ReFrame cannot list them.
    """
    with tempfile.TemporaryDirectory() as folder:  # or it would begin the run's log anew
        ended = subprocess.run(
            [*suite.command, *options, '-lC', '--nocolor'],
            env={**suite.environment, runs.VARIABLE: folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors='replace',
        )
    if ended.returncode:
        raise AssayError(f'the cases cannot be listed: {plain(ended.stderr or ended.stdout)}')
    matches = map(_LISTED.match, ended.stdout.splitlines())
    return [(one['name'], one['place'], one['environment']) for one in matches if one]
