"""The fabric catalogue: how a fabric is forced on an MPI, and how its use is proved.

The catalogue is ``config/fabrics.yaml``; its header explains the fields.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assay import AssayError, paths

if TYPE_CHECKING:
    from assay.machine.mpi import Mpi

CATALOGUE = paths.ROOT / 'config' / 'fabrics.yaml'

#: Statements of an MPI that a sentence quotes, and the pieces of an output that they are taken
#: from, but for the first that speaks against a fabric.
MOST, QUOTED = 6, 4

FamilyName = Literal['openmpi', 'mpich', 'intelmpi']


class CatalogueError(AssayError):
    """The catalogue cannot be used; the message names file, entry and field."""


def _expression(value: object) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise ValueError('an expression must be a string')
    try:
        return re.compile(value, re.MULTILINE)
    except re.error as error:
        raise ValueError(f'not a valid expression: {error}') from None


Expression = Annotated[re.Pattern[str], BeforeValidator(_expression)]
Variables = dict[Annotated[str, Field(pattern=r'^[A-Za-z_][A-Za-z0-9_]*$')], str]


class _Entry(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True, strict=True)


class Recipe(_Entry):
    """How one MPI is made to use one fabric, and what it must then say of itself."""

    requires: Expression
    env: Variables
    expect: list[Expression] = Field(min_length=1)
    forbid: list[Expression] = []

    def shown_by(self, output: Iterable[str]) -> bool:
        """Whether the MPI's statement says that this fabric was used.

        :param output: pieces of whole lines.
        """
        missing = list(self.expect)
        for piece in output:
            if any(e.search(piece) for e in self.forbid):
                return False
            missing = [e for e in missing if not e.search(piece)]
        return not missing


class Fabric(_Entry):
    """A way for messages to travel."""

    description: str
    reach: Literal['node', 'network']
    carrier: Literal['memory', 'sockets', 'infiniband', 'cxi']
    limit: Literal['memory', 'socket'] | None = None
    device: str | None = None
    openmpi: Recipe | None = None
    mpich: Recipe | None = None
    intelmpi: Recipe | None = None


class AsyncProgress(_Entry):
    """How an MPI's asynchronous progress is switched on, and what it then says of itself."""

    env: Variables
    expect: Expression


class Family(_Entry):
    """What all fabrics of one MPI share."""

    name: str
    library: Expression
    statement: Variables
    quote: Expression
    async_progress: AsyncProgress | None = None


class Catalogue(_Entry):
    """All fabrics and MPIs that the suite knows."""

    mpis: dict[FamilyName, Family]
    fabrics: dict[Annotated[str, Field(pattern=r'^[a-z0-9]+(-[a-z0-9]+)*$')], Fabric]

    def recipe(self, fabric: str, family: str) -> Recipe | None:
        """The recipe of ``fabric`` for an MPI family, or None where it has none."""
        return getattr(self.fabrics[fabric], family)

    def variables(self, fabric: str, family: str) -> dict[str, str]:
        """Environment variables that force ``fabric`` and make the MPI state what it used."""
        return {**self.mpis[family].statement, **self.recipe(fabric, family).env}

    def missing(self, fabric: str, mpi: Mpi) -> str | None:
        """Why ``mpi`` cannot use ``fabric`` on this machine, as a sentence; None if it can."""
        entry = self.fabrics[fabric]
        if absent := self.no_recipe(fabric, mpi):
            return absent
        if entry.device and not glob.glob(entry.device):
            return f'this machine has no such device: nothing matches {entry.device}'
        return None

    def no_recipe(self, fabric: str, mpi: Mpi) -> str | None:
        """Why this build of ``mpi`` can use ``fabric`` on no machine; None if it can."""
        recipe = self.recipe(fabric, mpi.family)
        name = self.mpis[mpi.family].name
        if recipe is None:
            return f'{name} has no way to force it'
        if not recipe.requires.search(mpi.description):
            return (
                f'this build of {name} ({mpi.version}) has not what it needs: '
                f'nothing in its description matches {recipe.requires.pattern!r}'
            )
        return None

    def verify(self, fabric: str, family: str, output: Iterable[str]) -> str | None:
        """Hold the MPI's own statement in a job's output against the fabric asked for.

        :param output: the job's standard output and error, in pieces of whole lines; gone through
            several times.
        :returns: None if the statement proves ``fabric``; otherwise one sentence that says what
            was used instead, with the MPI's own words.
        """
        recipe = self.recipe(fabric, family)
        if recipe.shown_by(output):
            return None
        mpi = self.mpis[family]
        words = _words(mpi, recipe, output)
        if not words:
            return (
                f'fabric {fabric} was asked for, but {mpi.name} does not say in the output which '
                f'one it used: the job ended too early, or its statement was switched off'
            )
        others = [
            name
            for name in self.fabrics
            if (other := self.recipe(name, family)) and other.shown_by(output)
        ]
        instead = f'{" or ".join(others)} was used instead' if others else 'its use is not shown'
        return f'fabric {fabric} was asked for, but {instead}; {mpi.name} says: {"; ".join(words)}'


def _words(mpi: Family, recipe: Recipe, output: Iterable[str]) -> list[str]:
    """What an MPI said of the ways of its messages; first what speaks against the recipe."""
    against: dict[str, None] = {}
    others: dict[str, None] = {}
    for number, piece in enumerate(output):
        # Each statement stands there for many pairs of ranks.
        is_news = not against and any(expression.search(piece) for expression in recipe.forbid)
        if number >= QUOTED and not is_news:
            continue
        for match in mpi.quote.finditer(piece):
            words = match[0].strip()
            if words in against or words in others:
                continue
            is_against = any(expression.search(words) for expression in recipe.forbid)
            said = against if is_against else others
            if len(said) < MOST:
                said[words] = None
    return [*against, *others][:MOST]


@lru_cache(maxsize=1)
def load_catalogue(path: Path = CATALOGUE) -> Catalogue:
    """Read and validate the catalogue.

    :raises CatalogueError: if the file cannot be read, is not YAML, or an entry is wrong.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise CatalogueError(f'{path}: cannot be read: {error.strerror}') from None
    except yaml.YAMLError as error:
        raise CatalogueError(f'{path}: not valid YAML: {error}') from None
    try:
        return Catalogue.model_validate(data)
    except ValidationError as error:
        problems = '; '.join(
            f'{".".join(str(part) for part in e["loc"]) or "top level"}: {e["msg"]}'
            for e in error.errors()
        )
        raise CatalogueError(f'{path}: {problems}') from None
