"""The corpus of sites: what schedulers, modules, MPIs and kernels of real sites print.

``tests/sites/<kind>/<name>/`` is one situation. Its ``site.yaml`` says what it is; the files beside
it are what the site's programs print, or what its kernel shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay import paths
from assay.config.yaml_file import read_yaml

SITES = paths.ROOT / 'tests' / 'sites'


@dataclass(frozen=True)
class Site:
    """A situation that a site is in.

    :param folder: with the files of the site.
    :param situation: what is the case there, a sentence without a full stop.
    :param outcome: what Assay makes of it, likewise.
    :param source: where somebody reported or documented it, such as ``openpmix/prrte #1396``; None
        if nobody did that is known of.
    :param expect: what a test holds; its form is up to the kind.
    """

    folder: Path
    situation: str
    outcome: str
    source: str | None
    expect: Any

    @property
    def kind(self) -> str:
        return self.folder.parent.name

    def text(self, name: str) -> str:
        """What one of its files holds; empty if it has no such file."""
        file = self.folder / name
        return file.read_text() if file.exists() else ''

    def __str__(self) -> str:
        return self.folder.name


def sites(kind: str = '*') -> list[Site]:
    """All situations of a kind, by their names."""
    return [_read(file) for file in sorted(SITES.glob(f'{kind}/*/site.yaml'))]


@cache
def _read(file: Path) -> Site:
    try:
        return Site(folder=file.parent, **read_yaml(file))
    except TypeError as error:
        raise TypeError(f'{file}: {error}') from None
