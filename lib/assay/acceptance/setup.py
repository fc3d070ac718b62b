"""A contract with the suite on its system, and the case of each of its commitments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance.contract import Commitment, Contract, read_contract
from assay.acceptance.status import fits, misfits
from assay.config import settings
from assay.results.cases import check_of
from assay.running import reframe_options, session
from assay.running.reframe_options import Given
from assay.running.selection import Listed, listed
from assay.running.session import Suite
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Cases that a sentence names.
_MOST = 4


@dataclass(frozen=True)
class SelectedCase:
    """The case of a commitment.

    :param name: with its parameters, as ReFrame prints it.
    :param place: system and partition.
    :param nodes: of a job of it.
    """

    commitment: Commitment
    name: str
    place: str
    environment: str
    nodes: int = 1

    @property
    def title(self) -> str:
        """Name, partition and environment, as they stand in reports."""
        return f'{self.name} @{self.place}+{self.environment}'


def _nearest(commitment: Commitment, there: Sequence[Listed]) -> list[Listed]:
    """The cases of its check, those first that a commitment is likely to mean."""
    own = [case for case in there if check_of(case.name) == commitment.check]
    return sorted(own, key=lambda case: misfits(commitment, case.name, case.environment))


def selection_options(contract: Contract) -> list[str]:
    """ReFrame's option that selects all cases of the checks of a contract, and perhaps more."""
    checks = dict.fromkeys(one.check for one in contract.commitments)
    return ['-n', f'^({"|".join(checks)})']


def select_cases(contract: Contract, suite: Suite) -> list[SelectedCase]:
    """The case of each commitment, in their order.

    :raises AssayError: if no case fits a commitment, or several do; all of them are told.
    """
    there = listed(suite.command, selection_options(contract), suite.environment)
    found, problems = [], []
    for one in contract.commitments:
        own = [case for case in there if fits(one, case.name, case.environment)]
        if len(own) == 1:
            case = own[0]
            about = case.name, case.partition, case.environment, case.nodes
            found.append(SelectedCase(one, *about))
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


#: The mode that all checks are in, at all scales.
MODE = 'acceptance'

#: Exit codes: a contract that cannot be used; something that has to be done first.
WRONG, UNDECIDED = 2, 3


@dataclass(frozen=True)
class Prepared:
    """A contract, and what its cases are started with."""

    contract: Contract
    suite: Suite
    given: Given

    def load(self) -> _SiteConfig:
        """:raises AssayError: as :meth:`Suite.load`."""
        return self.suite.load()

    def cases(self) -> list[SelectedCase]:
        """The case of each commitment.

        :raises AssayError: if configuration, checks or references are wrong, or no case or several
            fit a commitment.
        """
        self.load()
        return select_cases(self.contract, self.suite)


def prepared(path: Path, extra: Sequence[str], is_one_job: bool = False) -> Prepared:
    """Read a contract, and make the suite ready for its system.

    :param extra: what ``--with`` names.
    :param is_one_job: whether all cases are to be steps of one job.
    :raises AssayError: if the contract is wrong, its system is unknown, or the suite cannot be had.
    """
    contract = read_contract(path)
    settings.system_file(contract.system)
    given = reframe_options.read(selection_options(contract))
    suite = session.suite(contract.system, MODE, extra, given, is_one_job)
    return Prepared(contract, suite, given)


@contextmanager
def refusing(code: int = WRONG) -> Iterator[None]:
    """What is wrong here is told as ever, and ends with an exit code of its own.

    :raises SystemExit: instead of an AssayError.
    """
    try:
        yield
    except AssayError as error:
        for line in str(error).splitlines():
            print(f'assay: {plain(line.removeprefix("assay: "))}', file=sys.stderr)
        raise SystemExit(code) from None
