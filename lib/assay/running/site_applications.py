"""A site's own applications: what is run, what its answer has to be, and which numbers are figures.

They stand in ``applications.yaml`` beside the files of the site's systems; docs/applications.md
explains the fields.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay import paths
from assay.config.fabrics import read_entry
from assay.layout.layouts import LAYOUTS
from assay.mpis import FAMILIES
from assay.mpis.family import Entry, Expression, Variables, matches, search_line
from assay.programs.figure import Quantity

FILE = 'applications.yaml'

#: Which of several matches is the number.
TAKES: dict[str, Callable[[Sequence[float]], float]] = {
    'last': lambda numbers: numbers[-1],
    'first': lambda numbers: numbers[0],
    'max': max,
    'min': min,
    'sum': math.fsum,
    'mean': statistics.fmean,
    'median': statistics.median,
}

#: Rules for the number of ranks.
RULES: dict[str, Callable[[int], bool]] = {
    'square': lambda ranks: math.isqrt(ranks) ** 2 == ranks,
    'cube': lambda ranks: round(ranks ** (1 / 3)) ** 3 == ranks,
    'power_of_two': lambda ranks: ranks.bit_count() == 1,
}


def _one_of(known: Iterable[str]) -> AfterValidator:
    names = [*known]

    def assert_known(name: str) -> str:
        if name not in names:
            raise ValueError(f'{name!r} is none of {", ".join(names)}')
        return name

    return AfterValidator(assert_known)


def _as_number(value: Any) -> Any:
    # YAML takes 1e-6 for a text, as it has no point.
    number = _number(value) if isinstance(value, str) else None
    return value if number is None else number


def _assert_rule(value: Any) -> Any:
    is_list = isinstance(value, list) and value and all(type(one) is int for one in value)
    if not (is_list and min(value) > 0) and value not in [*RULES]:
        raise ValueError(f'{value!r} is none of {", ".join(RULES)}, or a list of numbers of ranks')
    return value


def _is_outside(name: str) -> bool:
    """Whether a path does not stay in the folder that it is relative to."""
    return PurePath(name).is_absolute() or '..' in PurePath(name).parts or name in ('', '.')


def _assert_within_folder(name: str) -> str:
    if _is_outside(name):
        raise ValueError(f"{name!r} is no file of the job's folder")
    if '[' in name or '**' in name:
        raise ValueError(f'{name!r}: only * and ? stand for something, and * for no folders')
    return name


def _assert_group(find: str) -> str:
    if not re.compile(find).groups:
        raise ValueError(f'{find!r} has no group, which has to be the number')
    return find


#: As it stands in the name of a case.
Name = Annotated[str, Field(pattern=r'^[A-Za-z][A-Za-z0-9_-]*$')]
#: To infinity anything would be near, and to NaN too.
Number = Annotated[float, BeforeValidator(_as_number), Field(allow_inf_nan=False)]
Bound = Annotated[Number, Field(gt=0)]
Tolerance = Annotated[Number, Field(ge=0)]


class SitePattern(Entry):
    """Something that the program writes.

    :param file: that it is in, of the job's folder, with ``*`` and ``?`` for what differs from run
        to run; the output without it.
    :param take: which number counts if the expression matches several times.
    """

    file: Annotated[str, AfterValidator(_assert_within_folder)] | None = None
    take: Annotated[str, _one_of(TAKES)] = 'last'

    @property
    def place(self) -> str:
        """The file or output that is searched, to go on from ``lammps:`` in a sentence."""
        return self.file or 'its output'

    def number(self, find: str, text: str) -> float | None:
        """The number that an expression's group matches; None if it matches nothing.

        :raises ValueError: with the words that are no number.
        """
        words = [match[1] for match in matches(find, text)]
        if self.take in ('last', 'first'):  # what the others are does not matter
            words = words[-1:] if self.take == 'last' else words[:1]
        numbers = []
        for one in words:
            number = _number(one)
            if number is None:
                raise ValueError(f'{one!r} is no number')
            numbers.append(number)
        return TAKES[self.take](numbers) if numbers else None


class SiteAnswer(SitePattern):
    """The answer that a program has to write: words, or a number that is close enough.

    :param find: an expression; with ``value`` its group is the number.
    :param forbid: an expression that matches nothing of a right answer, in the place of ``find``.
    :param within: how far the number may be from the value, either way.
    :param relative: the same, as a fraction of the value.
    """

    find: Expression | None = None
    forbid: Expression | None = None
    value: Number | None = None
    within: Tolerance | None = None
    relative: Tolerance | None = None

    @model_validator(mode='after')
    def _can_be_held(self) -> SiteAnswer:
        if (self.find is None) == (self.forbid is None):
            raise ValueError('needs find or forbid, and not both')
        if self.value is None:
            if self.within is not None or self.relative is not None:
                raise ValueError('has a tolerance, and no value that it is of')
            return self
        if self.find is None:
            raise ValueError('forbid has no value')
        _assert_group(self.find)
        if self.within is not None and self.relative is not None:
            raise ValueError('needs within or relative, and not both')
        if self.relative is not None and self.value == 0:
            raise ValueError('a fraction of 0 is nothing: use within')
        return self

    @property
    def tolerance(self) -> float:
        """How far the number may be from the value."""
        if self.relative is None:
            return self.within or 0.0
        assert self.value is not None
        return self.relative * abs(self.value)

    def fault(self, text: str) -> str | None:
        """The fault of what the program wrote, as a sentence; None if it is right."""
        if self.forbid is not None:
            found = search_line(self.forbid, text)
            return found and f'{self.place} has {found[0]!r}'
        assert self.find is not None
        if self.value is None:
            return None if search_line(self.find, text) else f'{self.place} has no {self.find!r}'
        try:
            number = self.number(self.find, text)
        except ValueError as error:
            return f'its answer in {self.place}: {error} ({self.find!r})'
        if number is None:
            return f'{self.place} has no {self.find!r}'
        if abs(number - self.value) > self.tolerance:
            return (
                f'its answer is {number:.12g} ({self.find!r}), and has to be {self.value:.12g} '
                f'within {self.tolerance:.3g}'
            )
        return None


class SiteFigure(SitePattern):
    """A number that the program writes, and that is a figure.

    :param find: an expression whose group is the number.
    :param at_least: and ``at_most``: what the figure is held to on this site; at any value if none.
    """

    find: Annotated[Expression, AfterValidator(_assert_group)]
    unit: str
    better: Literal['higher', 'lower']
    at_least: Bound | None = None
    at_most: Bound | None = None

    @property
    def quantity(self) -> Quantity:
        return Quantity(self.unit, self.better, headline=True)

    @model_validator(mode='after')
    def _can_be_met(self) -> SiteFigure:
        if (self.at_least or 0) > (self.at_most or math.inf):
            raise ValueError('no figure is at_least this and at_most that')
        return self

    @property
    def reference(self) -> list[float | str | None] | None:
        """The bounds as ReFrame writes a reference; None without any."""
        bounds = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if not bounds:
            return None
        target = bounds[0]
        lower = None if self.at_least is None else self.at_least / target - 1
        upper = None if self.at_most is None else self.at_most / target - 1
        return [target, lower, upper, self.unit]


class SiteApplication(Entry):
    """An application.

    :param command: the program and its arguments, without a launcher.
    :param repository: a Git work tree or bare repository, of whose commits the program is built:
        its path is relative to a checkout then.
    :param build: commands of a shell that leave the program in the checkout that they run in.
    :param mpi: the family of the MPI that it is linked with.
    :param environments: an expression for the names of environments that it can run in.
    :param inputs: files that are copied into the folder that it runs in.
    :param ranks: numbers of ranks that it can run with, or a rule for them: of all nodes together.
    :param answer: what it has to write; without that a wrong run would pass.
    :param threads: of each rank.
    :param variables: that the job has; those by which a fabric is forced, or a layout made, count
        before these.
    """

    command: Annotated[list[str], Field(min_length=1)]
    repository: Annotated[str, Field(min_length=1)] | None = None
    build: str = ''
    mpi: Annotated[str, _one_of(FAMILIES)]
    environments: Expression = ''
    inputs: list[str] = []
    answer: Annotated[list[SiteAnswer], Field(min_length=1)]
    figures: Annotated[dict[Name, SiteFigure], Field(min_length=1)]
    layouts: Annotated[list[Annotated[str, _one_of(LAYOUTS)]], Field(min_length=1)] = ['packed']
    ranks: Annotated[Any, AfterValidator(_assert_rule)] = None
    threads: Annotated[int, Field(ge=1)] = 1
    variables: Variables = {}
    time_limit: Annotated[str, Field(pattern=r'^\d+[hms]$')] = '30m'

    @model_validator(mode='after')
    def _can_fail(self) -> SiteApplication:
        if self.build and self.repository is None:
            raise ValueError('build: needs a repository, of whose commits it makes the program')
        if self.repository is not None and _is_outside(self.command[0]):
            raise ValueError(
                f'command: {self.command[0]!r} is no file of a checkout of the repository; '
                'a program of another place needs none'
            )
        if not any(one.find for one in self.answer):
            raise ValueError('answer: needs a find: nothing at all would be right else')
        for name in self.files:
            own = PurePath(name)
            if given := [one for one in self.inputs if fnmatchcase(PurePath(one).name, own.name)]:
                raise ValueError(
                    f'{name!r} is to be written by the program, and {given[0]} is input'
                )
            for other in map(PurePath, self.files):
                if own.parent != other.parent and fnmatchcase(own.name, other.name):
                    raise ValueError(
                        f'{name} and {other} are kept without their folders, as one file'
                    )
        return self

    @property
    def files(self) -> list[str]:
        """The files that it has to write, as patterns."""
        written = [*self.answer, *self.figures.values()]
        return [*dict.fromkeys(one.file for one in written if one.file)]

    def allows(self, ranks: int) -> bool:
        """Whether it can run with so many ranks."""
        if self.ranks is None:
            return True
        if isinstance(self.ranks, list):
            return ranks in self.ranks
        return RULES[self.ranks](ranks)


class Applications(Entry):
    """The file."""

    applications: dict[Name, SiteApplication]


def _number(text: str | None) -> float | None:
    try:
        number = float((text or '').replace('D', 'E').replace('d', 'e'))  # as Fortran writes it
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def file() -> Path:
    """Where a site's applications stand."""
    return paths.SYSTEMS / FILE


@cache
def site_applications() -> dict[str, SiteApplication]:
    """A site's applications by their names; none without the file.

    :raises AssayError: if it cannot be read, or something in it is wrong.
    """
    if not file().exists():
        return {}
    return read_entry(file(), Applications).applications


def figures_of_all(applications: Mapping[str, SiteApplication]) -> dict[str, Quantity]:
    """The figures of all of them, as the first application with a figure of that name has it."""
    found: dict[str, Quantity] = {}
    for app in applications.values():
        for name, one in app.figures.items():
            found.setdefault(name, one.quantity)
    return found


def clash(application: str, applications: Mapping[str, SiteApplication]) -> str | None:
    """Why an application cannot be measured beside those before it, as a sentence.

    A contract knows figures of the check by name alone.
    """
    measured = figures_of_all(applications)
    for name, one in applications[application].figures.items():
        if measured[name] != one.quantity:
            first = next(other for other, its in applications.items() if name in its.figures)
            return (
                f'{FILE}: {application}.figures.{name}: {first} has a figure of that name with '
                'another unit or direction: give one of them another name'
            )
    return None
