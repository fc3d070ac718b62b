"""The commands ``init`` and ``doctor``: what a system has, found, confirmed and held against it."""

from __future__ import annotations

import difflib
import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError, paths, say
from assay.commands.options import TIME, PlaceOption
from assay.config import settings
from assay.files import write_whole
from assay.text import plain

if TYPE_CHECKING:
    from assay.discovery.draft import Draft, LeftOut
    from assay.discovery.init import Way


def init(
    name: Annotated[
        str | None,
        typer.Argument(metavar='[NAME]', help="The system's name; Slurm's by default."),
    ] = None,
    access: Annotated[
        list[str] | None,
        typer.Option(
            metavar='OPTION',
            help='An option for sbatch, such as --account=staff; --time and --nodes limit jobs.',
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(metavar='NAME', help='A partition of Slurm; by default all that add nodes.'),
    ] = None,
    mpi: Annotated[
        list[str] | None,
        typer.Option(
            metavar='WHERE',
            help='An MPI that `assay doctor` names, or a module or a folder in which there is '
            "one, such as 'gcc/12 acme/2.1' or /opt/acme; by default all that are found.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar='TIME',
            parser=TIME,
            help='How long the first jobs may wait and run; 60m by default.',
            show_default=False,
        ),
    ] = 3600.0,
    replace: Annotated[
        bool, typer.Option('--replace', help='Write a file that is there anew, and confirm it.')
    ] = False,
) -> None:
    """Write and confirm the configuration of this Slurm cluster.

    Asks Slurm for its partitions and types of nodes, finds the MPIs of this login node, and submits
    one short job for each type of nodes. The job reads processor, network and devices, and tries
    how programs of each MPI start. Then `init` writes config/systems/NAME.py and runs a smoke case
    of each partition, MPI and fabric. It leaves out what no job confirmed, and prints the reason.

    If the file exists, it only shows what has changed since; the exit code is then 1 if something
    has. It asks no questions and needs no root.

    Examples:

    \b
      assay init
      assay init mycluster --access=--account=staff --partition=compute
      assay init mycluster --mpi openmpi-module-openmpi-5_0_8 --mpi /opt/acme-mpi
      assay init mycluster --replace
    """
    from assay.discovery.draft import InitOptions
    from assay.discovery.init import (
        find_system,
        init_file,
        lock_out_others,
        read_again,
        system_text,
    )
    from assay.machine.slurm import forget_defaults

    # Nor may they steer the jobs that confirm.
    if defaults := forget_defaults():
        say(f'ignored: {", ".join(defaults)}. Name what sbatch needs by --access.')
    path = init_file(name)
    with lock_out_others(path.stem):
        before = _content(path)
        told, left_out = read_again(path) if before else (InitOptions(), None)
        asked = InitOptions(
            tuple(access or told.access),
            tuple(partition or told.partitions),
            tuple(mpi or told.mpis),
        )
        found = find_system(path.stem, asked, wait)
        if _content(path) != before:
            raise AssayError(f'{path} was changed meanwhile: nothing is written')
        if left_out is not None and not replace:
            raise typer.Exit(_show_change(path, system_text(found, left_out)))
        _confirm(path, found, before)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _keep(path: Path, content: bytes) -> None:
    """Keep beside a file what was in it, and all that was kept before."""
    for number in count(1):
        kept = path.with_name(f'{path.name}.before{f"-{number}" if number > 1 else ""}')
        if not os.path.lexists(kept):
            write_whole(kept, content)
            return
        if kept.is_file() and kept.read_bytes() == content:
            return


def _show_change(path: Path, now: str) -> int:
    """Print how a file differs from what would be written now; the exit code."""
    old, new = (text.splitlines(keepends=True) for text in (path.read_text('utf-8'), now))
    change = [*difflib.unified_diff(old, new, str(path), 'now')]
    print(''.join(change), end='')
    if change:
        say(f'to write it anew: ./assay init {path.stem} --replace')
    else:
        say(f'nothing has changed since {path} was written')
    return bool(change)


def _confirm(path: Path, found: Draft, before: bytes | None) -> None:
    """Write the file of a system, and keep in it what jobs confirm.

    :param before: what is in it; that again if nothing is confirmed.
    """
    from assay.discovery.init import prove, system_text

    unconfirmed = system_text(found, None).encode()
    if before and before != unconfirmed:
        _keep(path, before)
    try:
        write_whole(path, unconfirmed)
        left_out, noted = prove(found)
        if not found.without(left_out).partitions:
            _show(found, left_out, noted)
            raise AssayError(f'no job confirmed anything: {path} is not written')
        if _content(path) != unconfirmed:
            raise AssayError(f'{path} was changed meanwhile, and is left as it is')
    except BaseException:
        if _content(path) == unconfirmed:
            if before is None:
                path.unlink()
            else:
                write_whole(path, before)
        raise
    write_whole(path, system_text(found, left_out))
    _show(found, left_out, noted)
    say(f'wrote {path.relative_to(paths.ROOT)}. Next: ./assay run --system {path.stem}')


def _show(found: Draft, left_out: LeftOut, noted: dict[Way, str]) -> None:
    """Print what each partition has, and sentences on what it has not.

    :param left_out: what no job confirmed, and why.
    :param noted: what was confirmed and missed its references, or was disturbed.
    """
    from rich.table import Table
    from rich.text import Text

    from assay.report.console import console

    table = Table('partition', 'MPI', 'starts by', 'confirmed', box=None, pad_edge=False)
    for one in found.without(left_out).partitions:
        for use in one.uses:
            way = f'srun, {use.pmi}' if use.pmi else one.launcher
            row = (one.name, use.mpi.name, way, ' '.join(use.fabrics))
            table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)
    sentences = [f'not there: {one}' for one in found.missing]
    sentences += [
        f'not confirmed: {partition} {environment} {fabric}: {why}'
        for partition, environments in left_out.items()
        for environment, fabrics in environments.items()
        for fabric, why in fabrics.items()
    ]
    sentences += [f'confirmed, but: {" ".join(way)}: {why}' for way, why in noted.items()]
    for sentence in sentences:
        console().print(Text(plain(sentence)))


def doctor(
    system: Annotated[
        str | None,
        typer.Option(
            '--system',
            metavar='NAME[:PARTITION]',
            help='Check the file of this system.',
        ),
    ] = None,
    mpi: PlaceOption = None,
) -> None:
    """Check this machine's MPIs and fabrics, or a system's file.

    Lists MPIs and fabrics, what is missing and what to do, and the known defects that the last runs
    found in each MPI.

    With --system it checks the file of that system against Slurm and the MPIs: the options of
    sbatch, node counts, cores and memory, modules, versions, fabrics that each MPI was built with,
    and PMIs. It submits no job.

    The exit code is 0 if `assay run` can work here and the file is right.

    Examples:

    \b
      assay doctor
      assay doctor --system mycluster
      assay doctor --mpi /opt/acme-mpi
    """
    from assay.discovery.check_config import check_system_file
    from assay.results.case_history import known_defects
    from assay.running.doctor import Findings, examine
    from assay.running.prepare import name_mpis

    name_mpis(system or settings.DEFAULT_SYSTEM, mpi or [])
    if system is None:
        raise typer.Exit(0 if examine(known_defects()) else 1)
    found = Findings()
    check_system_file(system, found)
    raise typer.Exit(0 if found.can_run else 1)
