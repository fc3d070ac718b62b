"""Algorithms of collective operations: what an MPI offers, how one is forced, and its own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Operations whose sizes are of the block of a rank (sources/mpi/collectives.c); of the others it
#: is the whole message.
OF_BLOCKS = ('allgather', 'alltoall', 'gather', 'reduce_scatter', 'scatter')


def name_in_mpi(operation: str) -> str:
    """The standard's name of an operation, without MPI_: our reduce_scatter has blocks."""
    return 'reduce_scatter_block' if operation == 'reduce_scatter' else operation


#: Where a site has settings in force: what the MPI does without them.
OWN_CHOICE = "the MPI's own choice"

#: An MPI's control variables by name, as ``collectives --algorithms`` reports them.
ControlVariables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Algorithm:
    """One that an MPI offers.

    :param operation: as sources/mpi/collectives.c calls it.
    :param name: the MPI's own.
    :param env: variables that force it, whatever a site's own settings say.
    :param beside: variables that rules with it need: they undo a site's own settings.
    """

    operation: str
    name: str
    env: Mapping[str, str]
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Which no other one of the MPI has."""
        return self.operation, self.name


@dataclass(frozen=True)
class Rule:
    """Where an algorithm is better than the default.

    :param least: bytes, of sizes as sources/mpi/collectives.c counts them.
    :param end: the first size in bytes that it is not for; None of an operation without sizes.
    """

    algorithm: Algorithm
    least: int
    end: int | None


@dataclass(frozen=True)
class Rules:
    """An MPI's own rules.

    :param text: of a file, without a header.
    :param comment: what a header is written with; ``{}`` is a line of it. Empty if there is no way.
    :param env: variables that put them in force. ``{file}`` in a value is the path of the file;
        where none has it the file is a script of the shell that sets them.
    """

    text: str
    comment: str
    env: Mapping[str, str]

    def in_force(self, file: str) -> dict[str, str]:
        """Variables that put them in force.

        :param file: path of the file with their text.
        """
        return {name: value.replace('{file}', file) for name, value in self.env.items()}

    @property
    def is_script(self) -> bool:
        """Whether the file sets the variables itself."""
        return not any('{file}' in value for value in self.env.values())


def undoing(rules: Iterable[Rule]) -> dict[str, str]:
    """The variables that rules need beside their file, as they undo a site's own settings."""
    return {name: value for rule in rules for name, value in rule.algorithm.beside.items()}


def bytes_in_all(operation: str, size: int, ranks: int) -> int:
    """The bytes of an operation, where an MPI counts all blocks together."""
    return size * ranks if operation in OF_BLOCKS else size


@dataclass(frozen=True)
class Algorithms:
    """How the algorithms of an MPI are chosen.

    :param questions: commands of a job whose answers :attr:`offered` reads; ``{program}`` is one
        that was built with the MPI.
    :param offered: the algorithms, by its control variables and those answers.
    :param ignored: which of the variables that were to force algorithms, or rules, the MPI did not
        use, with the reason, by its control variables and what it said.
    :param rules: its own rules for a number of ranks, by its version and those answers, on lines.
    :param in_force: the settings of algorithms that a site or a user has in force, by variable.
    """

    offered: Callable[[ControlVariables, str], list[Algorithm]]
    ignored: Callable[[Mapping[str, str], ControlVariables, str], dict[str, str]]
    rules: Callable[[Sequence[Rule], int, str], Rules]
    in_force: Callable[[ControlVariables, str], dict[str, str]]
    questions: tuple[str, ...] = ()
