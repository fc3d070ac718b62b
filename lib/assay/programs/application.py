"""Applications: the problem of a size, and what their output says.

An application is the same problem from whoever built it: our own sources, upstream, or a binary of
a vendor. One class reads them all.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.programs.figure import Figure

# Written by print_limit of sources/common/application.hpp.
_LIMIT = re.compile(
    r'^Limit of (?P<kernel>[\w ]+): (?P<limit>[\w -]+) \S+ \S+; '
    r'achieved (?P<achieved>\S+) (?P<unit>\S+); fraction (?P<fraction>\S+)$',
    re.MULTILINE,
)


class WrongAnswerError(ValueError):
    """The application ran, and what it printed is not the answer to what was asked."""


@dataclass(frozen=True)
class Problem:
    """What a job is asked to compute.

    :param arguments: of the command line.
    :param files: input files of the job's folder: content by name.
    :param facts: what the output must say again, such as the mesh or the number of atoms.
    """

    arguments: list[str]
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


class Application(ABC):
    """A program with a problem, an answer and phases that take time."""

    #: Its folder in ``sources``, and its package in Spack.
    name: str
    #: The file name of the executable, ours and upstream's.
    program: str
    #: Of the figures, the rate that sizes and numbers of ranks are compared by.
    rate: str
    #: Patterns of the names of files that it leaves beside its output, and that are read.
    leaves: tuple[str, ...] = ()

    @abstractmethod
    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        """The largest problem whose working set is at most ``size`` bytes, over all ranks.

        :raises ValueError: if not even the smallest problem is that small.
        """

    @abstractmethod
    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        """The figures of a run: every phase's time and rate, and fractions of limits.

        :param output: standard output and error of the job.
        :param folder: the job's folder, where applications leave files.
        :raises WrongAnswerError: with one sentence, if the output is not whole, another problem or
            number of ranks was run, or the application's own check failed.
        """


def limit_figures(output: str) -> dict[str, Figure]:
    """Fractions of the limits that an application of ours measured in the same job.

    Empty for other implementations. Names are ``<kernel>_of_limit``.
    """
    return {
        f'{found["kernel"].lower().replace(" ", "_")}_of_limit': Figure(
            float(found['fraction']), '1', 'higher'
        )
        for found in _LIMIT.finditer(output)
    }
