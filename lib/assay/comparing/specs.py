"""Packages that Spack chose otherwise, as specs that have it choose so again.

A spec names all that Spack chose of a package, so that it can choose nothing else of it. Which
packages can be switched one by one, Spack's solver tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from assay import AssayError
from assay.config.environments import OURS
from assay.spack.lock_file import kept_spec
from assay.spack.packages import by_package, specs_among

#: The beginning of the names of facts of packages.
OF_SPECS = 'spec of '
#: What a spec cannot ask for: it is of the machine, of the recipe, or follows from these.
_NOT_ASKED = re.compile('(os|prefix|recipe|patches|sources)=')
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')


def spec_for(package: str, chosen: str) -> str:
    """The spec that has Spack choose a package as it did.

    :param chosen: what it chose, as a fact tells it.
    """
    release, *words = (one for one in _WORD.findall(chosen) if not _NOT_ASKED.match(one))
    # Of the suite's own package there is but the release that is checked out.
    root = package if package == OURS else f'{package}@={release.removeprefix("@")}'
    return ' '.join([root, *words])


def specs_of_change(name: str, before: str, after: str) -> tuple[str, str]:
    """The specs that Spack is asked for to have a package as before, and as after.

    :param name: of the fact that tells what it chose.
    :raises AssayError: if no spec switches it.
    """
    if '-' in (before, after):
        raise AssayError('a package that asks for it was changed')
    if any(len(specs_among(one)) > 1 for one in (before, after)):
        raise AssayError('several of it are in one build')
    package = name.removeprefix(OF_SPECS)
    specs = spec_for(package, before), spec_for(package, after)
    if specs[0] == specs[1]:
        raise AssayError(
            "no spec asks for a recipe, sources, the suite's release or the place of what is "
            'installed'
        )
    return specs


def what_differs(before: str, after: str) -> tuple[str, str]:
    """The words of two specs of a package, those alone that the other one has not."""
    old, new = (_WORD.findall(side.replace('@', ' @', 1)) for side in (before, after))
    gone = ' '.join(one for one in old if one not in new)
    come = ' '.join(one for one in new if one not in old)
    return gone or '-', come or '-'


def package_built_instead(specs: str, facts: Mapping[str, str]) -> str | None:
    """The package that a program was built from in place of the one asked for; None without one.

    :param facts: of the figure.
    """
    chosen = kept_spec(facts.get('hash', ''))
    for package, wanted in by_package(specs).items():
        found = chosen.get(package)
        if chosen and (found is None or spec_for(package, found) != wanted):
            return f'{package}{found}' if found else f'no {package}'
    return None


def switched_together(
    changes: Sequence[str], is_possible: Callable[[Sequence[str]], bool]
) -> list[list[str]]:
    """The changes in groups, each of which Spack can undo while all others are made.

    What it can undo neither alone nor with another one is undone with all that it cannot undo
    alone.

    :param is_possible: whether it finds a way to undo these alone.
    """
    groups = {one: {one} for one in changes}
    bound = [one for one in changes if not is_possible([one])]
    likeliest_first = sorted(changes, key=lambda one: one not in bound)
    for one in bound:
        if len(groups[one]) > 1:
            continue
        others = (other for other in likeliest_first if other != one)
        with_it = next((it for it in others if is_possible([one, *groups[it]])), None)
        joined = groups[one].union(*(groups[it] for it in ([with_it] if with_it else bound)))
        groups |= dict.fromkeys(joined, joined)
    return [
        [other for other in changes if other in groups[one]]
        for one in changes
        if one == next(other for other in changes if other in groups[one])
    ]
