"""The commands ``spack ...``: what Spack builds for this suite."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import SystemOption, command_group
from assay.config import settings
from assay.spack.tool import PACKAGES_URL, SPACK_URL

app = command_group('Build with Spack, separately from your own use of it.')


@app.command()
def setup(
    system: SystemOption = settings.DEFAULT_SYSTEM,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar='GROUP',
            help='A group of packages in spack.yaml to try as well: applications, ...',
        ),
    ] = None,
    clone: Annotated[
        bool, typer.Option('--clone', help='Fetch Spack and its package repository.')
    ] = False,
    spack_url: Annotated[str, typer.Option(metavar='URL', help='Git URL of Spack.')] = SPACK_URL,
    packages_url: Annotated[
        str, typer.Option(metavar='URL', help='Git URL of its package repository.')
    ] = PACKAGES_URL,
) -> None:
    """Tell Spack what is on this machine, and try what it can build.

    Writes config/spack/<system>/found/packages.yaml. Add yours in config/spack/<system>, which has
    precedence. The exit code is 0 if Assay's own package can be built with every MPI.

    Examples:

    \b
      assay spack setup
      assay spack setup --clone
      assay spack setup --group applications --group mpi_benchmarks
    """
    from assay.config.environments import OURS, spack_specs
    from assay.machine.mpi import find_mpis
    from assay.spack import builds, packages, tool
    from assay.spack import setup as spack_setup

    wanted = packages.of_groups(group or [])
    used = tool.clone(spack_url, packages_url) if clone else tool.find_spack()
    print(f'Spack {used.version} in {used.root}')
    packages.choose_packages()
    name = system.partition(':')[0]
    found = find_mpis()
    print(f'{spack_setup.write_packages(used, name, found)}: written')
    specs = spack_specs(found)
    for one in found:
        if one.name not in specs:
            print(f'  no   {one.name}: Spack cannot use it, or tell it from another; CMake builds')
    spack_setup.assert_prepared(name)
    mpis = builds.mpis_to_build_for(settings.load_system(system), system)
    bad = False
    for package in dict.fromkeys([OURS, *wanted]):
        for mpi in mpis:
            began = time.monotonic()
            try:
                spec = builds.rehearse(used, name, package, mpi)
            except AssayError as error:
                print(f'  no   {error}')
                bad |= package == OURS
            else:
                print(f'  ok   {spec} ({time.monotonic() - began:.0f} s)')
    raise typer.Exit(1 if bad else 0)


@app.command()
def install(
    packages: Annotated[
        list[str] | None,
        typer.Argument(metavar='[PACKAGE]...', help='Packages listed in spack.yaml.'),
    ] = None,
    system: SystemOption = settings.DEFAULT_SYSTEM,
) -> None:
    """Install packages with every MPI, and print where they are.

    The default is Assay's own package. `assay run --with spack` does the same before it starts.

    Examples:

    \b
      assay spack install
      assay spack install minife
    """
    from assay.config.environments import OURS
    from assay.spack import builds
    from assay.spack.packages import choose_packages

    choose_packages()
    site = settings.load_system(system)
    wanted = [
        (environment, package)
        for package in packages or [OURS]
        for environment in builds.mpis(site, system)
    ]
    installed = builds.install_on(site, system, wanted)
    for (environment, package), build in installed.items():
        print(f'{package} for {environment}: {build.prefix}')
