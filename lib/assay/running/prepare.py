"""Prepare what a run needs and the machine may lack: MPIs, and packages that Spack builds."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from assay import AssayError, paths, say
from assay.config import settings
from assay.files import explain_errors, write_whole
from assay.machine import modules, mpi, wheels
from assay.running import runs
from assay.running.runs import RunFolder
from assay.spack import packages

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def prepare_machine(system: str, extra: Iterable[str]) -> list[mpi.Mpi]:
    """Have installed what the system lacks, and chosen what Spack builds.

    :param extra: what ``--with`` names: MPIs, ``spack``, ``spack:PACKAGE`` or ``spack:GROUP``.
    :returns: the MPIs of this machine, if the system has them.
    :raises AssayError: if one is unknown or cannot be installed, or there is no C compiler.
    """
    extra = list(extra)
    by_spack = [what for what in extra if what.partition(':')[0] == 'spack']
    if by_spack:
        packages.choose_packages(filter(None, (what.partition(':')[2] for what in by_spack)))
    return install_mpis(system, [what for what in extra if what not in by_spack])


def name_mpis(system: str, places: list[str]) -> None:
    """Have the MPIs of places that a user names used as well, by this process and its children.

    :raises AssayError: if the system does not look for MPIs.
    """
    if places and system.partition(':')[0] != settings.DEFAULT_SYSTEM:
        raise AssayError(
            f'--mpi {places[0]}: the file of the system {system} says which MPIs it has. '
            'To have it written anew: ./assay init NAME --mpi ... --replace'
        )
    modules.name_places(places)


def install_mpis(system: str, extra: list[str]) -> list[mpi.Mpi]:
    """Give the systems on this machine what they lack; others bring their MPIs themselves.

    :returns: as :func:`prepare_machine`.
    :raises AssayError: if something cannot be installed, or there is no C compiler.
    """
    name = system.partition(':')[0]
    if name not in settings.ON_THIS_MACHINE:
        if extra:
            systems = ' and '.join(settings.ON_THIS_MACHINE)
            raise AssayError(f'--with is for the systems {systems} only.')
        return []

    def install(name: str) -> bool:
        log = paths.LOGS / f'install-{name}.log'
        if is_new := wheels.install_wheel(name, log):
            say(f'installed {name} in {paths.MPI_PREFIXES / name}')
        return is_new

    known = wheels.wheel_names()
    if unknown := set(extra) - set(known):
        raise AssayError(
            f'unknown MPI {", ".join(sorted(unknown))}. Known ones: {", ".join(known)}.'
        )
    found = _to_be_used()
    installed = {one.name for one in found if one.source == 'wheel'}
    brought = {one.family for one in found if one.source != 'wheel'}
    if name == settings.CLUSTER_SYSTEM:
        brought = set()  # it has the wheels only
    wanted = sorted(installed | {*extra} | ({*wheels.NEEDED} - brought))
    if missing := [name for name in wanted if not (paths.MPI_PREFIXES / name).exists()]:
        say(f'first use, installing {", ".join(missing)} ...')
    with ThreadPoolExecutor() as pool:
        # Another run may have installed what was not there yet when this one looked.
        if any([*pool.map(install, wanted)]) or not installed.issuperset(wanted):
            found = [one for one in mpi.find_mpis() if not one.left_out]
    # One that does not answer fails the checks that are built for it; here nothing else is left.
    if all(one.fault for one in found):
        raise AssayError('; '.join(one.fault for one in found if one.fault) or 'there is no MPI.')
    return found


def keep_mpis(run: RunFolder, found: list[mpi.Mpi]) -> None:
    """Keep the MPIs of this machine for the configuration that a run loads.

    :raises AssayError: if they cannot be written.
    """
    # JSON has no names that are not UTF-8: with such a one the configuration asks again.
    with suppress(ValueError), explain_errors(run.mpis, 'written'):
        write_whole(run.mpis, _mpis().dump_json(found))


def mpis_of_run() -> list[mpi.Mpi]:
    """The MPIs of this machine, which a run asks once, when it begins.

    `assay run` loads the configuration, and the ReFrame that it starts does too. A plain `reframe`,
    and each later session of a command with many, asks them itself.

    :raises AssayError: as :func:`assay.machine.mpi.find_mpis`.
    """
    try:
        return _mpis().validate_json(runs.this_run().mpis.read_bytes())
    except FileNotFoundError:
        return mpi.find_mpis()


def _mpis() -> TypeAdapter[list[mpi.Mpi]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[mpi.Mpi])


def _to_be_used() -> list[mpi.Mpi]:
    """The MPIs of this machine but those that are left out, which is said.

    :raises AssayError: if a user named one of these.
    """
    found = mpi.find_mpis()
    for one in found:
        if one.left_out and one.source == 'named':
            raise AssayError(f'--mpi: {one.left_out}.')
        if one.left_out:
            say(f'not measured: {one.left_out}')
    return [one for one in found if not one.left_out]
