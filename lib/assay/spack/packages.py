"""``spack.yaml``: the packages that there are for Spack to build, and those that were chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import yaml

from assay import AssayError, paths
from assay.config.environments import OURS, WITH_SPACK


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


def choose(names: Iterable[str] = ()) -> None:
    """Have Spack build our package for the environments of this machine, and what is named.

    :param names: packages or groups of ``spack.yaml``.
    :raises AssayError: if one is neither.
    """
    known = groups()
    packages = [OURS, *(one for name in names for one in known.get(name, [name]))]
    assert_listed(packages)
    os.environ[WITH_SPACK] = ','.join(dict.fromkeys(packages))


def environment_file(system: str, spec: str) -> str:
    """``spack.yaml`` with one spec, on a system, for an environment in any folder."""
    tracked = _tracked()
    del tracked['definitions']
    tracked['include'] = [str(paths.SPACK_CONFIG / system)]
    tracked['repos'] = {name: str(paths.ROOT / folder) for name, folder in tracked['repos'].items()}
    tracked['specs'] = [spec]
    text: str = yaml.safe_dump({'spack': tracked}, sort_keys=False)
    return text


def _tracked() -> dict[str, Any]:
    tracked: dict[str, Any] = yaml.safe_load(paths.SPACK_YAML.read_text())['spack']
    return tracked
