"""A site's own applications: what is run, what its answer has to be, and which numbers are figures.

They stand in ``applications.yaml`` beside the files of the site's systems; docs/applications.md
explains the fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay import AssayError, paths
from assay.config.fabrics import read_entry
from assay.mpis import FAMILIES
from assay.mpis.family import Entry, Expression, Variables, matches, search
from assay.programs.figure import Quantity

FILE = 'applications.yaml'

#: As it stands in the name of a case.
Name = Annotated[str, Field(pattern=r'^[A-Za-z][A-Za-z0-9_-]*$')]


class ApplicationsError(AssayError):
    """The file cannot be used; the message names file, entry and field."""


class Answer(Entry):
    """What the output has to say: words that are found in it, or a number that is close enough.

    :param find: an expression; with ``value`` its group is the number.
    :param within: how far the number may be from the value, either way.
    """

    find: Expression
    value: float | None = None
    within: Annotated[float, Field(ge=0)] = 0.0

    def fault(self, text: str) -> str | None:
        """What is wrong with an output, as a sentence."""
        found = search(self.find, text)
        if found is None:
            return f'its output has no {self.find!r}'
        if self.value is None:
            return None
        number = _number(found[1])
        if number is None or abs(number - self.value) > self.within:
            return (
                f'its answer is {found[1]!r} ({self.find!r}), and has to be {self.value:g} within '
                f'{self.within:g}'
            )
        return None


class Measured(Entry):
    """A number of the output that is a figure.

    :param find: an expression whose group is the number; the last one of the output counts.
    :param at_least: and ``at_most``: what the figure is held to on this site; at any value if none.
    """

    find: Expression
    unit: str
    better: Literal['higher', 'lower']
    at_least: Annotated[float, Field(gt=0)] | None = None
    at_most: Annotated[float, Field(gt=0)] | None = None

    @property
    def quantity(self) -> Quantity:
        return Quantity(self.unit, self.better, headline=True)

    def value(self, text: str) -> float | None:
        """The figure of an output; None if it is not there."""
        found = [match[1] for match in matches(self.find, text)]
        return _number(found[-1]) if found else None

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
    :param mpi: the family of the MPI that it is linked with.
    :param environments: an expression for the names of environments that it can run in.
    :param inputs: files that are copied into the folder that it runs in.
    :param answer: what its output has to say; without that a wrong run would pass.
    :param threads: of each rank.
    :param variables: that the job has; those by which a fabric is forced, or a layout made, count
        before these.
    """

    command: Annotated[list[str], Field(min_length=1)]
    mpi: str
    environments: Expression = ''
    inputs: list[str] = []
    answer: Annotated[list[Answer], Field(min_length=1)]
    figures: Annotated[dict[Name, Measured], Field(min_length=1)]
    layouts: list[str] = ['packed']
    threads: Annotated[int, Field(ge=1)] = 1
    variables: Variables = {}
    time_limit: Annotated[str, Field(pattern=r'^\d+[hms]$')] = '30m'

    @model_validator(mode='after')
    def _can_be_run(self) -> SiteApplication:
        if self.mpi not in FAMILIES:
            raise ValueError(f'mpi: {self.mpi!r} is none of {", ".join(FAMILIES)}')
        for name, one in self.figures.items():
            if not re.compile(one.find).groups:
                raise ValueError(f'figures.{name}.find: has no group, which has to be the number')
        for answer in self.answer:
            if answer.value is not None and not re.compile(answer.find).groups:
                raise ValueError(
                    f'answer: {answer.find!r} has no group, which has to be the number'
                )
        return self


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

    :raises ApplicationsError: if it cannot be read, or something in it is wrong.
    """
    if not file().exists():
        return {}
    return read_entry(file(), Applications, ApplicationsError).applications


def measured_by(applications: Mapping[str, SiteApplication]) -> dict[str, Quantity]:
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
    measured = measured_by(applications)
    for name, one in applications[application].figures.items():
        if measured[name] != one.quantity:
            first = next(other for other, its in applications.items() if name in its.figures)
            return (
                f'{FILE}: {application}.figures.{name}: {first} has a figure of that name with '
                'another unit or direction: give one of them another name'
            )
    return None
