"""The cases that a contract asks for, as ReFrame selects them on its system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay import AssayError
from assay.acceptance.contract import Commitment, Contract
from assay.acceptance.outcomes import fits, misfits, parameters
from assay.config.scales import SCALES
from assay.running.listing import Listed, listed
from assay.running.session import Suite

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


def _nearest(commitment: Commitment, there: Sequence[Listed]) -> list[Listed]:
    """The cases of its check, those first that a commitment is likely to mean."""
    own = [case for case in there if case.name.partition(' ')[0] == commitment.check]
    return sorted(own, key=lambda case: misfits(commitment, case.name, case.environment))


def selecting(contract: Contract) -> list[str]:
    """ReFrame's option that selects all cases of the checks of a contract, and perhaps more."""
    checks = dict.fromkeys(one.check for one in contract.commitments)
    return ['-n', f'^({"|".join(checks)})']


def wanted(contract: Contract, suite: Suite) -> list[Wanted]:
    """The case of each commitment, in their order.

    :raises AssayError: if no case fits a commitment, or several do; all of them are told.
    """
    there = listed(suite.command, selecting(contract), suite.environment)
    found, problems = [], []
    for one in contract.commitments:
        own = [case for case in there if fits(one, case.name, case.environment)]
        if len(own) == 1:
            case = own[0]
            found.append(Wanted(one, case.name, case.partition, case.environment))
            continue
        told = own or _nearest(one, there)
        names = [case.title for case in told]
        some = '; '.join(names[:_MOST]) + (
            f'; and {len(names) - _MOST} more' * (len(names) > _MOST)
        )
        if own:
            problems.append(f'{one.id}: {len(own)} cases fit, name one: {some}')
        else:
            others = f'there are {some}' if names else f'there is none of {one.check}'
            problems.append(f'{one.id}: no case on {contract.system} fits; {others}')
    if problems:
        raise AssayError('\nassay: '.join(problems))
    return found
