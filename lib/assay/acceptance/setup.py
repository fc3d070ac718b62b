"""A contract with the suite on its system, for the commands that list or run its cases."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance.contract import Contract, read
from assay.acceptance.wanted import Wanted, selecting, wanted
from assay.config import settings
from assay.running import reframe_options, session
from assay.running.reframe_options import Given
from assay.running.session import Suite
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

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

    def wanted(self) -> list[Wanted]:
        """The case of each commitment.

        :raises AssayError: if configuration, checks or references are wrong, or no case or several
            fit a commitment.
        """
        self.load()
        return wanted(self.contract, self.suite)


def prepared(path: Path, extra: Sequence[str]) -> Prepared:
    """Read a contract, and make the suite ready for its system.

    :param extra: what ``--with`` names.
    :raises AssayError: if the contract is wrong, its system is unknown, or the suite cannot be had.
    """
    contract = read(path)
    settings.system_file(contract.system)
    given = reframe_options.read(selecting(contract))
    return Prepared(contract, session.suite(contract.system, MODE, extra, given), given)


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
