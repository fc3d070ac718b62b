"""The steps of `assay init`: what is looked at, the file that is written, and what jobs confirm."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import socket
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay import AssayError, locks, paths, say
from assay.config import settings
from assay.config.environments import AS_ROOT, environment
from assay.config.fabrics import load_catalogue
from assay.discovery.draft import Draft, InitOptions, LeftOut, draft
from assay.discovery.partitions import cluster_name, free_name, see
from assay.discovery.probing import probe
from assay.machine.modules import modules_tool
from assay.machine.mpi import Mpi, find_in, find_mpis
from assay.results.cases import Case
from assay.results.failures import failure_reason, is_good, skipped_cases
from assay.results.runner import Runner, make_ready
from assay.running import prepare, reframe_options, session
from assay.text import many, unknown_name


def init_file(name: str | None) -> Path:
    """The file of a system; of Slurm's cluster if no name is given.

    :raises AssayError: if there is no Slurm here, or no system can have the name.
    """
    if not shutil.which('sbatch'):
        raise AssayError(
            'there is no sbatch on PATH, and `assay init` asks Slurm. A single machine needs no '
            'configuration: ./assay run. For another scheduler copy '
            f'{paths.SYSTEMS / "example-slurm.py"}, and see docs/schedulers.md.'
        )
    name = name or cluster_name()
    if not re.fullmatch(r'[A-Za-z0-9_][A-Za-z0-9_-]*', name):
        raise AssayError(f'a system cannot be called {name!r}: take letters, digits, _ and -')
    return paths.SYSTEMS / f'{name}.py'


@contextmanager
def lock_out_others(name: str) -> Iterator[None]:
    """Keep out another `assay init` of the same system.

    :raises AssayError: if one is under way.
    """
    settings.assert_writable()
    paths.INIT.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        try:
            opened.enter_context(locks.hold_lock(paths.INIT / f'{name}.lock', wait=False))
        except locks.LockedError:
            raise AssayError(f'another `assay init {name}` is under way') from None
        yield


def find_system(name: str, asked: InitOptions, patience: float) -> Draft:
    """Look at everything, and submit a job for each type of nodes.

    :param name: of the system.
    :param patience: seconds that the jobs may wait and run.
    :raises AssayError: if nothing is left to make a system of, with the reasons.
    """
    seen = see(asked.partitions, asked.access)
    if not seen.partitions:
        words = [f'{key}: {why}' for key, why in seen.left_out.items()]
        raise AssayError(
            '\n'.join(
                [
                    'no partition of Slurm can be used:',
                    *(words or ['there is none']),
                    'What jobs need is named by --access, such as --access=--account=NAME.',
                ]
            )
        )
    mpis = _chosen(asked.mpis)
    say(f'MPIs: {", ".join(one.name for one in mpis)}')
    found = draft(name, asked, seen, probe(seen, mpis, paths.INIT / name, patience), mpis)
    if not found.partitions:
        raise AssayError('\n'.join(['nothing was found that works:', *found.missing]))
    return found


def _chosen(asked: tuple[str, ...]) -> list[Mpi]:
    """The MPIs that are to be used: all, or those that somebody named.

    :param asked: names of MPIs, and places where others are.
    :raises AssayError: if there is none, or one that was named is not there.
    """
    if not asked:
        return _all()
    found = {one.name: one for one in find_mpis()}
    others = []
    for name in asked:
        if name in found:
            continue
        try:
            others.append(find_in(name))
        except AssayError as error:
            known = unknown_name(name, 'MPI', found or ['none'])
            raise AssayError(f'--mpi {name}: {known}; {error}') from None
    return [*(one for name, one in found.items() if name in asked), *others]


def _all() -> list[Mpi]:
    """The MPIs of this machine; if it has none, those of wheels, which nodes have as well.

    One that cannot be driven, as a vendor's, is none.

    :raises AssayError: if there is none, and none can be had.
    """
    found = find_mpis()
    if any(not one.is_stranger for one in found):
        return found
    strange = [one.fault for one in found if one.fault]
    say('; '.join(strange) or 'there is no MPI on PATH, in modules, or in the usual places')
    try:
        prepare.install_mpis(settings.DEFAULT_SYSTEM, [])
    except AssayError as error:
        raise AssayError(
            'there is no MPI on this machine: put its mpicc and mpirun on PATH, or name its module '
            'or its folder by --mpi, such as --mpi mpi/acme/2.1 or --mpi /opt/acme. The wheels '
            f'that `assay run` uses would do, and cannot be had: {error}'
        ) from None
    return find_mpis()


# The file -----------------------------------------------------------------------------------------


TEMPLATE = Path(__file__).with_name('system.py.jinja')

#: Columns of the file.
WIDTH = 100


def system_text(made: Draft, left_out: LeftOut | None) -> str:
    """The text of the file.

    :param left_out: what was not confirmed; None before anything was.
    """
    from jinja2 import Environment, StrictUndefined

    template = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    confirmed = made.without(left_out or {})
    template.filters |= {'py': _python, 'variable': _variables(confirmed).get}
    text = template.from_string(TEMPLATE.read_text()).render(
        draft=confirmed,
        asked=asdict(made.asked),
        left_out=left_out,
        # Login nodes that differ by a number are of one kind.
        host=re.sub(r'\d+', r'\\d+', re.escape(socket.gethostname())),
        modules_system=modules_tool(),
        environments={mpi.name: environment(mpi) for mpi in confirmed.mpis},
        fabrics=set(load_catalogue().fabrics),
        as_root=AS_ROOT if os.geteuid() == 0 else [],
    )
    return f'{text.rstrip()}\n'


def _variables(made: Draft) -> dict[str, str]:
    """A name in Python for each MPI."""
    found: dict[str, str] = {}
    for mpi in made.mpis:
        found[mpi.name] = free_name(re.sub(r'\W', '_', mpi.name), found.values())
    return found


def _python(value: Any, depth: int, beside: int = 24) -> str:
    """A value as Python has it: in one line if there is room, otherwise an item a line.

    :param depth: blanks before the line in which it begins, and before its end.
    :param beside: what else stands in that line.
    """
    short = repr(value)
    if not isinstance(value, dict | list) or len(short) <= WIDTH - depth - beside:
        return short
    inner = depth + 4
    if isinstance(value, dict):
        heads = {key: f'{key!r}: ' for key in value}
        lines = [f'{heads[key]}{_python(value[key], inner, len(heads[key]) + 1)},' for key in value]
    elif all(isinstance(item, str) and ' ' not in item for item in value):
        words = ', '.join(map(repr, value)) + ','
        room = WIDTH - inner
        lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)
    else:
        lines = [f'{_python(item, inner, 1)},' for item in value]
    first, last = '{}' if isinstance(value, dict) else '[]'
    return '\n'.join([first, *(f'{" " * inner}{line}' for line in lines), f'{" " * depth}{last}'])


def read_again(path: Path) -> tuple[InitOptions, LeftOut | None]:
    """The options of an earlier `assay init` and what it did not confirm, from the file it wrote.

    :returns: for the second None where it was stopped before it confirmed anything.
    :raises AssayError: if it did not write it.
    """
    try:
        values = runpy.run_path(str(path))
        asked = {key: tuple(words) for key, words in values['asked'].items()}
        return InitOptions(**asked), values['left_out']
    except Exception as error:  # a configuration file is a program: it can raise anything
        raise AssayError(
            f'{path} is not as `assay init` writes it, which changes no other file: '
            f'choose another name ({type(error).__name__}: {error})'
        ) from error


# What jobs confirm --------------------------------------------------------------------------------


#: The check whose smoke case has one pair of ranks, on two nodes where the fabric has a reach.
CHECK = 'PointToPoint'
LABEL = 'init'

#: Partition, environment and fabric.
Way = tuple[str, str, str]


def prove(draft: Draft) -> tuple[LeftOut, dict[Way, str]]:
    """Run a smoke case of every partition, MPI and fabric of a system that is written.

    :returns: what was not confirmed and why; and what missed its references, or was disturbed.
    :raises AssayError: if it did not run.
    :raises SystemExit: if it was told to stop.
    """
    options = ['-n', f'^{CHECK}%']
    given = reframe_options.read_options(options)
    suite = session.suite(draft.name, 'smoke', [], given)
    site = suite.load()
    handles = make_ready(suite, site, given.environments)
    if any(one.is_this_machine for one in draft.partitions):
        options += ['--exec-policy=serial']  # its partitions share their CPUs as well
    say(f'confirming by {many(len(draft.pairs), "case")} of {CHECK} ...')
    found = Runner(suite, given, handles, 'init').run(suite.own, LABEL, options)
    if found.stopped:
        raise SystemExit(128 + found.stopped)
    if not found.run:
        raise AssayError('\n'.join([f'no case of {CHECK} was run:', *found.verdict.problems]))
    if found.unstored:
        raise AssayError('\n'.join(found.unstored))
    cases = {(one.partition, one.environment, one.fabric): one for one in found.run.own_cases}
    builds = {
        (case.partition, case.environment): failure_reason(case)
        for case in found.run.counted
        if case.is_fixture and case.result == 'fail'
    }
    unable = dict(skipped_cases(found.run, found.log or []))
    if found.verdict.of_session and not cases.keys() >= {*draft.pairs}:
        raise AssayError('\n'.join(['ReFrame did not run all cases:', *found.verdict.of_session]))
    left_out: LeftOut = {}
    noted: dict[Way, str] = {}
    for way in draft.pairs:
        partition, environment, fabric = way
        why = _why(cases.get(way), fabric, unable, builds)
        if why:
            left_out.setdefault(partition, {}).setdefault(environment, {})[fabric] = why
        elif not is_good(cases[way]):
            noted[way] = failure_reason(cases[way])
    return left_out, noted


def _why(
    case: Case | None,
    fabric: str,
    unable: Mapping[str, str],
    builds: Mapping[tuple[str, str], str],
) -> str | None:
    """Why a case has not confirmed what it asked for; None if it has.

    :param case: of the fabric; None if there was none.
    :param unable: why cases were skipped, by their titles.
    :param builds: why builds failed, by partition and environment.
    """
    if case is None:
        if load_catalogue().fabrics[fabric].crosses_nodes:
            return 'no case can show it here: a network takes a job of two nodes'
        return 'no case can show it here: memory takes a job of one node'
    if case.result == 'skip':
        return unable[case.title]
    if not case.fail_phase and (why := builds.get((case.partition, case.environment))):
        return f'its build failed: {why}'
    # What it asked for it has proved before its figures are held to references.
    if case.result == 'fail' and case.fail_phase == 'performance':
        return None
    return None if is_good(case) else failure_reason(case)
