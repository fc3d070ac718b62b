"""``spack.yaml``: the packages that there are for Spack to build, and those that were chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import yaml

from assay import AssayError, paths, say
from assay.config.environments import OTHER_SPECS, OURS, WITH_SPACK

#: Those that checks run; others are built for users to run.
RUN_BY_CHECKS = frozenset(
    [
        *(OURS, 'minife', 'minimd', 'minighost', 'hpl', 'hpcg', 'npb'),
        *('intel-mpi-benchmarks', 'osu-micro-benchmarks', 'mpip', 'must'),
    ]
)


def groups() -> dict[str, list[str]]:
    """The packages of ``spack.yaml``, by group."""
    definitions = _tracked()['definitions']
    named = {name: names for each in definitions for name, names in each.items()}
    return {name: names for name, names in named.items() if name != 'mpis'}


def of_groups(names: Iterable[str]) -> list[str]:
    """The packages of groups.

    :raises AssayError: if a group is unknown.
    """
    names, known = list(names), groups()
    if unknown := set(names) - set(known):
        raise AssayError(
            f'unknown group {", ".join(sorted(unknown))}. Groups of {paths.SPACK_YAML}: '
            f'{", ".join(known)}.'
        )
    return [package for name in names for package in known[name]]


def assert_listed(packages: Iterable[str]) -> None:
    """See that all packages are ones of ``spack.yaml``.

    :raises AssayError: if one is not.
    """
    known = {package for names in groups().values() for package in names}
    if unknown := set(packages) - known:
        raise AssayError(
            f'{", ".join(sorted(unknown))}: not in {paths.SPACK_YAML}, which lists what to build.'
        )


def choose_packages(names: Iterable[str] = ()) -> None:
    """Have Spack build our package for the environments of this machine, and what is named.

    :param names: packages or groups of ``spack.yaml``.
    :raises AssayError: if one is neither, or no check would run anything of it.
    """
    packages = [OURS]
    for name in names:
        named = of_name(name)
        assert_listed(named)
        if not RUN_BY_CHECKS.intersection(named):
            many = ' '.join(named)
            raise AssayError(
                f'--with spack:{name}: no check runs {", ".join(named)}: '
                f'`assay spack install {many}` builds it without a run.'
            )
        packages += [one for one in named if one in RUN_BY_CHECKS]
        if beside := [one for one in named if one not in RUN_BY_CHECKS]:
            say(f'not built: no check runs {", ".join(beside)} of the group {name}')
    os.environ[WITH_SPACK] = ','.join(dict.fromkeys(packages))


def of_name(name: str) -> list[str]:
    """The packages of a group, or the one of that name."""
    return groups().get(name, [name])


def environment_file(system: str, spec: str, chosen: str = '') -> str:
    """``spack.yaml`` with one spec, on a system, for an environment in any folder.

    :param chosen: what Spack is to choose of packages, as :data:`OTHER_SPECS` has it.
    """
    tracked = _tracked()
    del tracked['definitions']
    folder = paths.SPACK_CONFIG / system
    # The first has precedence: what a site says before what was found.
    tracked['include'] = [
        {'path': str(one), 'optional': True} for one in (folder, folder / 'found')
    ]
    tracked['repos'] = {name: str(paths.ROOT / folder) for name, folder in tracked['repos'].items()}
    tracked['specs'] = [spec]
    # As `dependencies`, except that a package is taken which the site has itself (an external).
    tracked['concretizer'] |= {'reuse': {'exclude': [spec.split()[0]]}}
    # A key that ends in a colon replaces what a site requires of the package.
    required = {name: {'require:': [one]} for name, one in by_package(chosen).items()}
    if required:
        tracked['packages'] = required
    text: str = yaml.safe_dump({'spack': tracked}, sort_keys=False)
    return text


def chosen_specs() -> str:
    """What Spack is to choose of packages in place of what it would; empty for nothing."""
    return os.environ.get(OTHER_SPECS, '')


def by_package(chosen: str) -> dict[str, str]:
    """The specs that Spack is asked for, by the names of their packages, in their order."""
    return {re.split('[^a-z0-9_-]', one)[0]: one for one in sorted(specs_among(chosen))}


def specs_among(chosen: str) -> list[str]:
    """Specs that semicolons part; one in quotes is of a value."""
    found = (one.strip() for one in re.findall('(?:"[^"]*"|[^;])+', chosen))
    return [one for one in found if one]


def _tracked() -> dict[str, Any]:
    tracked: dict[str, Any] = yaml.safe_load(paths.SPACK_YAML.read_text())['spack']
    return tracked
