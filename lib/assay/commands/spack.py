"""The commands ``spack ...``: what Spack builds for this suite.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Annotated

import typer

from assay import AssayError, paths
from assay.commands.options import SystemOption
from assay.config import settings
from assay.spack.tool import PACKAGES_URL, SPACK_URL

app = typer.Typer(
    help='What Spack builds for this suite, apart from your own use of Spack.',
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def setup(
    system: SystemOption = settings.DEFAULT_SYSTEM,
    group: Annotated[
        list[str] | None,
        typer.Option(help='A group of packages of spack.yaml to try as well: applications, ...'),
    ] = None,
    clone: Annotated[
        bool, typer.Option('--clone', help='Fetch Spack and its package repository.')
    ] = False,
    spack_url: Annotated[str, typer.Option(help='Git address of Spack.')] = SPACK_URL,
    packages_url: Annotated[
        str, typer.Option(help='Git address of its package repository.')
    ] = PACKAGES_URL,
) -> None:
    """Tell Spack what this machine has, and see what it can build here.

    Writes config/spack/<system>/packages.yaml, which is yours to edit. The exit code is 0 if our
    own package can be built on every MPI.

    Examples:

    \b
      assay spack setup
      assay spack setup --clone
      assay spack setup --group applications --group mpi_benchmarks
    """
    from assay.config.environments import OURS, spack_specs
    from assay.machine.mpi import find_mpis
    from assay.spack import builds as spack_builds
    from assay.spack import setup as spack_setup
    from assay.spack import tool as spack

    known = spack_builds.groups()
    if unknown := set(group or []) - set(known):
        raise AssayError(
            f'unknown group {", ".join(sorted(unknown))}. Groups of {paths.SPACK_YAML}: '
            f'{", ".join(known)}.'
        )
    if clone:
        spack.clone(spack_url, packages_url)
    used = spack.find_spack()
    if clone and used.root != spack.CLONES / 'spack':
        raise AssayError(
            f'Spack in {used.root} comes before the clone: unset SPACK_ROOT and take it off PATH.'
        )
    print(f'Spack {used.version} in {used.root}')
    choose()
    name = system.partition(':')[0]
    file = paths.SPACK_CONFIG / name / 'packages.yaml'
    found = find_mpis()
    with spack_builds.turn(used):
        written = spack_setup.write_packages(used, name, found)
    print(f'{file}: {"written" if written else "edited by somebody, left as it is"}')
    specs = spack_specs(found)
    for mpi in found:
        if mpi.name not in specs:
            print(f'  no   {mpi.name}: Spack cannot use it, or tell it from another; CMake builds')
    spack_builds.assert_prepared(name)
    mpis = dict.fromkeys(spack_builds.mpis(settings.load(system), system).values())
    if not mpis:
        raise AssayError(
            f'no environment of {system} is for Spack: give one an MPI first, by `assay run -l` or '
            f'in {settings.system_file(system)}.'
        )
    bad = False
    for package in dict.fromkeys([OURS, *(p for g in group or [] for p in known[g])]):
        for mpi in mpis:
            began = time.monotonic()
            try:
                spec = spack_builds.rehearse(used, name, package, mpi)
            except AssayError as error:
                print(f'  no   {error}')
                bad |= package == OURS
            else:
                print(f'  ok   {spec} ({time.monotonic() - began:.0f} s)')
    raise typer.Exit(1 if bad else 0)


@app.command()
def install(
    packages: Annotated[
        list[str] | None, typer.Argument(metavar='[PACKAGE]...', help='Of spack.yaml.')
    ] = None,
    system: SystemOption = settings.DEFAULT_SYSTEM,
) -> None:
    """Install packages on every MPI of a system, and print where they are.

    Without a package it is our own. `assay run --with spack` does the same before it starts.

    Examples:

    \b
      assay spack install
      assay spack install minife
    """
    from assay.config.environments import OURS
    from assay.spack import builds as spack_builds

    choose()
    site = settings.load(system)
    wanted = [
        (environment, package)
        for package in packages or [OURS]
        for environment in spack_builds.mpis(site, system)
    ]
    builds = spack_builds.install_on(site, system, wanted)
    for (environment, package), build in builds.items():
        print(f'{package} for {environment}: {build.prefix}')


def choose(names: Iterable[str] = ()) -> None:
    """Have Spack build our package for the environments of this machine, and what is named.

    :param names: packages or groups of ``spack.yaml``.
    :raises AssayError: if one is neither.
    """
    from assay.config.environments import OURS, WITH_SPACK
    from assay.spack import builds as spack_builds

    groups = spack_builds.groups()
    packages = [OURS, *(one for name in names for one in groups.get(name, [name]))]
    spack_builds.assert_listed(packages)
    os.environ[WITH_SPACK] = ','.join(dict.fromkeys(packages))
