"""The fabric catalogue: how a fabric is forced on an MPI, and how its use is proved.

``config/fabrics.yaml`` says what a fabric is, and its header explains the fields; how an MPI is
made to use it stands in the MPI's own file (:mod:`assay.mpis`), or in the fabric's entry.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from assay import AssayError, paths
from assay.config.yaml_file import line_of, parse_yaml
from assay.files import explain_errors
from assay.mpis import FAMILIES, Family, Recipe
from assay.mpis.family import Entry, matches, problem, search_line
from assay.text import Piece

if TYPE_CHECKING:
    from assay.machine.mpi import Mpi

CATALOGUE = paths.ROOT / 'config' / 'fabrics.yaml'

AnyEntry = TypeVar('AnyEntry', bound=Entry)

#: Of cases in which nothing is forced, in the place of a fabric's name.
DEFAULT = 'default'

#: Statements of an MPI that a sentence quotes, and the pieces of an output that they are taken
#: from, except for the first that contradicts a fabric.
MOST, QUOTED = 6, 4


def _known_family(name: str) -> str:
    if name not in FAMILIES:
        raise ValueError(f'neither a field nor one of the MPIs {", ".join(FAMILIES)}')
    return name


class Fabric(Entry):
    """A way for messages to travel.

    An entry may also have recipes, by the names of MPI families.
    """

    model_config = ConfigDict(extra='allow')
    __pydantic_extra__: dict[Annotated[str, AfterValidator(_known_family)], Recipe]

    description: str
    reach: Literal['node', 'network']
    carrier: Literal['memory', 'sockets', 'infiniband', 'cxi']
    limit: Literal['memory', 'socket'] | None = None
    device: str | None = None

    @property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes of its entry, by MPI families."""
        return self.__pydantic_extra__

    @property
    def crosses_nodes(self) -> bool:
        """Whether it is a network: the others end at the node."""
        return self.reach == 'network'

    @property
    def needs_device(self) -> bool:
        """Whether it is for machines with a device that not every machine has."""
        return self.device is not None


class FabricCatalogue(Entry):
    """All fabrics that the suite knows."""

    fabrics: dict[Annotated[str, Field(pattern=r'^[a-z0-9]+(-[a-z0-9]+)*$')], Fabric]

    def recipe(self, fabric: str, family: str) -> Recipe | None:
        """The recipe of ``fabric`` for an MPI family, or None where it has none."""
        return FAMILIES[family].recipes.get(fabric) or self.fabrics[fabric].recipes.get(family)

    def variables(self, fabric: str, family: str) -> dict[str, str]:
        """Environment variables that force ``fabric`` and make the MPI state what it used.

        :param family: one that has a recipe for it.
        """
        recipe = self.recipe(fabric, family)
        assert recipe, f'{family} has no way to force {fabric}'
        return {**FAMILIES[family].statement, **recipe.env}

    def why_missing(self, fabric: str, mpi: Mpi) -> str | None:
        """Why ``mpi`` cannot use ``fabric`` on this machine, as a sentence; None if it can."""
        entry = self.fabrics[fabric]
        if absent := self.no_recipe(fabric, mpi):
            return absent
        if entry.device and not glob.glob(entry.device):
            return f'this machine has no such device: nothing matches {entry.device}'
        return None

    def no_recipe(self, fabric: str, mpi: Mpi) -> str | None:
        """Why this build of ``mpi`` can use ``fabric`` on no machine; None if it can."""
        name = mpi.kind.name
        recipe = self.recipe(fabric, mpi.kind.key)
        if recipe is None:
            return f'{name} has no way to force it'
        if not search_line(recipe.requires, mpi.description):
            return (
                f'this build of {name} ({mpi.version}) has not what it needs: '
                f'nothing in its description matches {recipe.requires!r}'
            )
        return None

    def best_first(self, across_nodes: bool) -> list[str]:
        """The fabrics between nodes, or within one: those with a device of their own first."""
        names = [n for n, fabric in self.fabrics.items() if fabric.crosses_nodes == across_nodes]
        return sorted(names, key=lambda name: not self.fabrics[name].needs_device)

    def fabrics_shown(self, family: str, output: Iterable[Piece]) -> list[str]:
        """The fabrics whose use an MPI states in a job's output."""
        recipes = ((name, self.recipe(name, family)) for name in self.fabrics)
        return [name for name, recipe in recipes if recipe and recipe.is_shown_by(output)]

    def words(self, fabric: str, family: str, output: Iterable[Piece]) -> list[str]:
        """Statements of an MPI on the ways of its messages; first those against a fabric."""
        recipe = self.recipe(fabric, family)
        assert recipe, f'{family} has no way to force {fabric}'
        return _words(FAMILIES[family], recipe, output)

    def verify(self, fabric: str, family: str, output: Iterable[Piece]) -> str | None:
        """Hold the MPI's own statement in a job's output against the fabric asked for.

        :param family: one that has a recipe for it.
        :param output: the job's standard output and error, in pieces of whole lines; gone through
            several times.
        :returns: None if the statement proves ``fabric``; otherwise one sentence that says what
            was used instead, with the MPI's own words.
        """
        recipe = self.recipe(fabric, family)
        assert recipe, f'{family} has no way to force {fabric}'
        if recipe.is_shown_by(output):
            return None
        mpi = FAMILIES[family]
        words = _words(mpi, recipe, output)
        if not words:
            return (
                f'fabric {fabric} was asked for, but {mpi.name} does not say in the output which '
                f'one it used: the job ended too early, or its statement was switched off'
            )
        others = self.fabrics_shown(family, output)
        instead = f'{" or ".join(others)} was used instead' if others else 'its use is not shown'
        said = f'fabric {fabric} was asked for, but {instead}; {mpi.name} says: {"; ".join(words)}'
        return said if mpi.was_run else f'{said} ({never_run(mpi)})'


def never_run(mpi: Family) -> str:
    """The warning on an MPI that Assay has a file for, but has never run with."""
    return (
        f'Assay has never run with {mpi.name}: how it is made to use a fabric is from its documents'
    )


def _words(mpi: Family, recipe: Recipe, output: Iterable[Piece]) -> list[str]:
    """Statements of an MPI on the ways of its messages; first those against the recipe."""
    against: dict[str, None] = {}
    others: dict[str, None] = {}
    for number, piece in enumerate(output):
        # Each statement stands there for many pairs of ranks.
        is_news = not against and any(
            search_line(expression, piece) for expression in recipe.forbid
        )
        if number >= QUOTED and not is_news:
            continue
        for match in matches(mpi.quote, piece):
            words = match[0].strip()
            if words in against or words in others:
                continue
            is_against = any(search_line(expression, words) for expression in recipe.forbid)
            said = against if is_against else others
            if len(said) < MOST:
                said[words] = None
    return [*against, *others][:MOST]


def read_entry(path: Path, kind: type[AnyEntry]) -> AnyEntry:
    """Read and validate a file that is one entry.

    :raises AssayError: if the file cannot be read, is not YAML, or something in it is wrong: a line
        for each field, with that of the file.
    """
    with explain_errors(path, 'read'):
        text = path.read_bytes()
    try:
        return kind.model_validate(parse_yaml(text, path))
    except ValidationError as error:
        told = (f'line {line_of(text, one["loc"])}: {problem(one)}' for one in error.errors())
        raise AssayError('\n'.join(f'{path}, {one}' for one in told)) from None


@lru_cache(maxsize=1)
def load_catalogue(path: Path = CATALOGUE) -> FabricCatalogue:
    """Read and validate the catalogue.

    :raises AssayError: if the file cannot be read, is not YAML, or an entry is wrong.
    """
    catalogue = read_entry(path, FabricCatalogue)
    if disputed := '; '.join(_disputed(catalogue)):
        raise AssayError(f'{path}: {disputed}')
    return catalogue


def _disputed(catalogue: FabricCatalogue) -> Iterator[str]:
    """Contradictions between the catalogue and the files of the MPIs."""
    if DEFAULT in catalogue.fabrics:
        yield f'fabrics.{DEFAULT}: the name is of cases in which nothing is forced: choose another'
    for key, family in FAMILIES.items():
        file = f'lib/assay/mpis/{key}.py'
        for name in family.recipes:
            if name not in catalogue.fabrics:
                yield f'fabrics.{name}: not there, and {file} has a recipe for it'
            elif key in catalogue.fabrics[name].recipes:
                yield f'fabrics.{name}.{key}: {file} has a recipe for it as well: keep one of them'
