"""The commands ``bundle ...``: what a machine without a network needs, in a folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from assay import AssayError, paths
from assay.commands.options import command_group

app = command_group('A folder of all downloads, for machines without a network.')

Folder = Annotated[Path, typer.Argument(metavar='FOLDER', show_default=False)]


@app.command()
def create(
    folder: Folder,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            '--with',
            metavar='WHAT',
            help='An MPI that is not installed here, such as intelmpi; or spack, with '
            'everything that it has downloaded here.',
        ),
    ] = None,
) -> None:
    """Gather everything that the suite would download.

    The folder is for machines with the same version of Python, the same processor architecture,
    and a C library that is no older. It can be copied by any means.

    Examples:

    \b
      assay bundle create ../bundle
      assay bundle create ../bundle --with intelmpi --with spack
    """
    from assay import bundle
    from assay.machine import wheels

    mpis = {name for name in extra or [] if name != 'spack'}
    known = wheels.wheel_names()
    if unknown := mpis - set(known):
        raise AssayError(
            f'unknown: --with {", ".join(sorted(unknown))}. Known: {", ".join(known)}, spack.'
        )
    bundle.create_bundle(folder, mpis, 'spack' in (extra or []))
    size = sum(path.stat().st_size for path in folder.rglob('*') if path.is_file())
    print(f'{folder}: {size / 1e6:.0f} MB. Where it is to be used:')
    name = shlex.quote(folder.resolve().name)
    print(f'  git clone {name}/assay.git assay')
    print(f'  assay/assay bundle use {name}')


@app.command()
def use(folder: Folder) -> None:
    """Install from a bundle from now on, without a network.

    Every file of the bundle is checked first. The bundle has to stay where it is.

    Examples:

    \b
      assay bundle use ../bundle
    """
    # The script `assay` has done it all: it had to, before there was any Python to run this.
    if not (paths.BUNDLE.exists() and paths.BUNDLE.samefile(folder)):
        raise AssayError(f'{folder} has not been checked: {paths.ROOT / "assay"} does that.')
    print(f'This checkout needs no network from now on: it installs from {folder.resolve()}.')
