"""An allocation of Slurm, in which the cases of a run are steps instead of jobs of their own.

It is that of `salloc`, or of a job that somebody has anyway, and no batch job: Slurm ends a batch
job with its first node, whatever ``--no-kill`` says, and an allocation without a script goes on
without any node that dies.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import time
from argparse import ArgumentError, ArgumentParser
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.machine import job_states
from assay.machine.job_states import forget_job_around
from assay.machine.slurm import (
    SCHEDULERS,
    ConstraintError,
    RefusedError,
    is_free,
    most_nodes,
    node_list,
    node_states,
    nodes_with,
    partitions_in,
    query,
    query_patiently,
    reserved_nodes,
    without_defaults,
)
from assay.quantities import clock_seconds
from assay.running.node_choice import NodeChoice
from assay.running.selection import Listed
from assay.running.supervise import note_signals
from assay.text import expand_nodes, fold_nodes, many, plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: The environment variable with the number of the job whose steps all cases are.
VARIABLE = 'ASSAY_ALLOCATION'

#: The one with the same number if that job was given the size that the cases need.
SIZED = 'ASSAY_ALLOCATION_SIZED'

#: The one with a file, without which no case is left out for lack of time.
TIMES = 'ASSAY_ALLOCATION_TIMES'

#: In that file, which is JSON: by the titles of cases the longest seconds that their steps took
#: lately, and the shortest that their jobs took, with the wait in the queue; titles of cases that
#: come before all others, if the time is expected to be too short for all.
STEPS, JOBS, FIRST = 'steps', 'jobs', 'first'

#: Seconds of an allocation for a budget beyond that: the run is judged, and ends, within them.
BEYOND = 300

#: Seconds in which salloc that was told to stop takes its request back.
PATIENCE = 30

#: Seconds between two questions whether the nodes of an allocation have booted.
AGAIN = 5

#: Seconds between two questions why an allocation waits.
LOOK = 60

#: Looks one after the other at which no job of the user's has nodes, and this one waits for a limit
#: on all of them: then it is more than that by itself. Once may be before Slurm tries it again.
ALONE = 5

#: What squeue says of the time left to a job that has had all of it. Slurm ends it up to half a
#: minute later, and refuses its steps at once.
OVER = ('0:00', 'INVALID')

#: What states of nodes begin with that have jobs, or may have: those in reservations are for jobs
#: of these.
IN_USE = ('idle', 'alloc', 'mix', 'comp', 'plan')

_NUMBER = re.compile(r'job allocation (\d+)')

# Of a step that holds CPUs: those above are Slurm's own (of a batch script, or of salloc's shell).
_LAST_STEP = 0xFFFFFFF0


class SignalledError(Exception):
    """A signal came while an allocation was waited for; its number is the only argument."""


@dataclass(frozen=True)
class Standing:
    """The state of an allocation, as Slurm reports it.

    :param is_running: whether steps can be started in it, or can be as soon as its nodes are up.
    :param is_booting: whether its nodes are not yet up.
    :param state: in Slurm's words; empty if Slurm does not know the job any more.
    :param nodes: its nodes; one that died is no longer among them.
    :param is_shared: whether other jobs may run on its nodes.
    :param partition: of Slurm.
    :param left: seconds until Slurm ends it.
    """

    is_running: bool
    nodes: tuple[str, ...] = ()
    is_shared: bool = False
    partition: str = ''
    is_booting: bool = False
    state: str = ''
    left: float = math.inf


def ask_standing(job: str) -> Standing:
    """Ask Slurm how an allocation stands.

    :raises AssayError: if Slurm does not answer.
    """
    said = _squeue(f'--jobs={job}', '--states=all', '--format=%A|%T|%N|%h|%P|%L')
    # By the number of one job Slurm tells all of an array, and all components of a heterogeneous
    # job by that of the first, which has the steps.
    found = [line.strip().split('|') for line in said.splitlines()]
    own = [one for one in found if one[0] == job] or found
    _, state, nodes, sharing, partition, left = [*(own[0] if own else []), *6 * ['']][:6]
    if state in job_states.RUNNING and left in OVER:
        state = 'TIMEOUT'
    is_booting = state == 'CONFIGURING'
    goes_on = is_booting or state in (*job_states.RUNNING, 'SUSPENDED')
    shared = goes_on and sharing != 'NO'
    seconds = clock_seconds(left)
    return Standing(
        *(goes_on, tuple(named_nodes(nodes)), shared, partition, is_booting, state),
        left=math.inf if seconds is None else seconds,
    )


def await_boot(job: str) -> Standing:
    """The same, once its nodes are up: Slurm ends a job whose nodes take too long.

    :raises AssayError: if Slurm does not answer.
    """
    now = ask_standing(job)
    if now.is_booting:
        say(f'waiting until the nodes of the job {job} have booted')
    while now.is_booting:
        time.sleep(AGAIN)
        now = ask_standing(job)
    return now


def running_steps(job: str) -> dict[str, set[str]]:
    """The steps that go on in an allocation and were started by srun, with their nodes.

    :raises AssayError: if Slurm does not answer.
    """
    found = {}
    for line in _squeue('--steps', f'--jobs={job}', '--format=%i|%N').splitlines():
        step, _, nodes = line.strip().partition('|')
        if re.fullmatch(r'\d+(_\d+)?\.\d+', step):  # 12_3.0 in an array
            found[step] = {*named_nodes(nodes)}
    return found


def _squeue(*options: str) -> str:
    """The output of squeue; empty for a job that it does not know."""
    try:
        return query_patiently('squeue', '--noheader', *options)
    except RefusedError as error:
        if 'Invalid job' not in str(error):
            raise
        return ''


def named_nodes(nodes: str) -> list[str]:
    """The names in ``n[1-3]``; none in what Slurm says of a job that has no nodes."""
    try:
        return expand_nodes(nodes)
    except ValueError:
        return []


def request(
    site: _SiteConfig,
    cases: Sequence[Listed],
    jobs: Iterable[str],
    budget: float | None,
    choice: NodeChoice | None = None,
) -> list[str]:
    """The options of salloc for cases: as many nodes as the site lets their jobs have at once.

    Cases that need more nodes than are up do not keep the others from running.

    :param jobs: what ``-J`` says, which overrides all else.
    :param budget: seconds that the run may take, if that is given.
    :param choice: how the nodes are chosen among the idle ones, unless they are named.
    :raises AssayError: if one allocation is not enough for the cases.
    """
    used = {case.partition.partition(':')[2] for case in cases}
    partitions = [one for one in site.get('systems/0/partitions') if one['name'] in used]
    for one in partitions:
        if one['scheduler'] not in SCHEDULERS:
            raise AssayError(
                f'--one-job is for jobs of Slurm, and the scheduler of {one["name"]} is '
                f'{one["scheduler"]}.'
            )
    access = {tuple(one.get('access', ())) for one in partitions}
    if len(access) > 1:
        raise AssayError(
            f'--one-job: no job can have the nodes of {" and ".join(sorted(used))}, whose access '
            'differs: choose a partition, as --system NAME:PARTITION.'
        )
    words = options_for_sbatch(access.pop() if access else (), jobs)
    most = max((one['max_jobs'] for one in partitions), default=1)
    asked = value_in(words, '-N', '--nodes')
    try:
        states = states_for(words)
    except ConstraintError as error:
        if not asked and not nodes_in(words, '-w', '--nodelist'):
            raise AssayError(f'--one-job: {error}: give the number as -J nodes=N.') from None
        states = {}
    able = [*states.keys() - {*out_of_use(states)}]
    if able and value_in(words_of(jobs), '-C', '--constraint'):
        constraint = value_in(words, '-C', '--constraint')
        say(f'{many(len(able), "node")} can be used with {constraint}: {fold_nodes(able)}')
    idle = [name for name, state in states.items() if is_free(state)]
    usable = int(min(len(able), most_nodes(partitions_in(' '.join(words)))))
    needs = sorted((case.nodes or len(idle) or 1 for case in cases), reverse=True) or [1]
    possible = [count for count in needs if count <= usable] or needs
    # If nodes that are out are all that a case lacks, the job has the others, which shows it.
    wanted = [count for count in needs if count <= len(states)] or needs
    named = nodes_in(words, '-w', '--nodelist')
    count = max(possible[0], min(sum(wanted[:most]), usable), len(named))
    options = ['--exclusive', f'--nodes={count}']
    if choice and not named:
        least = re.match(r'\d+', asked)
        chosen = choice.choose(idle, int(least[0]) if least else count)
        options += [f'--nodelist={node_list(chosen)}'] if chosen else []
    if budget:
        options.append(f'--time={-(-(budget + BEYOND) // 60):.0f}')
    return [*options, *_without_those_of_scripts(words)]


def states_for(words: Sequence[str]) -> dict[str, str]:
    """The states of the nodes that jobs with such options may have.

    Those are in Slurm's partition and in their reservation, where its idle nodes are idle to them,
    satisfy the constraint, and are not excluded.

    :raises ConstraintError: if only Slurm can tell which nodes satisfy the constraint.
    :raises AssayError: if Slurm does not answer.
    """
    out = nodes_in(words, '-x', '--exclude')
    states = node_states(partitions_in(' '.join(words)))
    states = {node: state for node, state in states.items() if node not in out}
    if constraint := value_in(words, '-C', '--constraint'):
        able = nodes_with(constraint)
        states = {node: state for node, state in states.items() if node in able}
    name = value_in(words, '--reservation')
    if not name:
        return states
    own = reserved_nodes(name)
    return {
        # A node in maintenance may have a reason behind its state, and a sign such as ~.
        node: 'idle' if re.fullmatch(r'(reserved|maint)[~#]?(:.*)?', state) else state
        for node, state in states.items()
        if node in own
    }


def out_of_use(states: Mapping[str, str]) -> list[str]:
    """The nodes that no job can have, by the states of all."""
    return [
        node
        for node, state in states.items()
        # Slurm does not hear of the last ones, and gives them no jobs: idle*
        if not state.startswith(IN_USE) or state.partition(':')[0].endswith('*')
    ]


def _without_those_of_scripts(words: Sequence[str]) -> list[str]:
    """Options of sbatch without those that salloc does not know."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ('--export', '--export-file', '--open-mode', '--batch', '--kill-on-invalid-dep'):
        parser.add_argument(name)
    for names in (['-i', '--input'], ['-o', '--output'], ['-e', '--error']):
        parser.add_argument(*names)
    for name in ('--propagate', '--get-user-env'):
        parser.add_argument(name, nargs='?')
    for name in ('--requeue', '--no-requeue', '--parsable', '--ignore-pbs'):
        parser.add_argument(name, action='store_true')
    # With these salloc waits for something else, and does not tell the number of the job.
    for names in (['-W', '--wait'], ['-Q', '--quiet']):
        parser.add_argument(*names, action='store_true')
    return parser.parse_known_args(words)[1]


def nodes_in(words: Sequence[str], *names: str) -> set[str]:
    """The nodes that an option of sbatch names.

    :param words: all options.
    :param names: of that one.
    """
    return {*named_nodes(value_in(words, *names))}


def value_in(words: Sequence[str], *names: str) -> str:
    """The value of an option of sbatch; empty if it is not there."""
    return take_option(words, *names)[0]


def take_option(words: Sequence[str], *names: str) -> tuple[str, list[str]]:
    """The value of an option of sbatch, empty if it is not there, and the other words.

    :raises AssayError: if it has no value.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*names, dest='value', default='')
    try:
        known, others = parser.parse_known_args(words)
    except ArgumentError as error:
        raise AssayError(f'options of jobs: {error}') from None
    return known.value, others


def words_of(jobs: Iterable[str]) -> list[str]:
    """Options of ``-J`` as those of sbatch."""
    return [word for one in jobs for word in shlex.split(_option(one))]


def options_for_sbatch(access: Iterable[str], jobs: Iterable[str]) -> list[str]:
    """Options of sbatch for a partition's jobs; of two constraints both hold, as ReFrame has it.

    :param access: of the partition.
    :param jobs: what ``-J`` says.
    """
    own, others = take_option(shlex.split(' '.join(access)), '-C', '--constraint')
    asked, more = take_option(words_of(jobs), '-C', '--constraint')
    word = f'({own})&({asked})' if own and asked else own or asked
    return [*others, *more, *([f'--constraint={word}'] if word else [])]


def _option(given: str) -> str:
    """An option of ``-J`` as ReFrame understands it: ``nodes=4``, ``N=4`` or ``--nodes=4``."""
    if given.startswith('-'):
        return given
    name, _, value = given.partition('=')
    return f'-{name} {value}' if len(name) == 1 else f'--{given}'


def cancel_reasons(site: _SiteConfig, cases: Iterable[Listed]) -> set[str]:
    """Slurm's reasons to wait for which the partitions of cases cancel jobs."""
    found: set[str] = set()
    for name in {case.partition.partition(':')[2] for case in cases}:
        options = f'systems/0/partitions/@{name}/sched_options'
        own = {*site.get(f'{options}/slurm_job_cancel_reasons')}
        if site.get(f'{options}/ignore_reqnodenotavail'):
            own.discard('ReqNodeNotAvail')
        found |= own
    return found


def obtain(options: Sequence[str], folder: Path, given_up: Collection[str] = ()) -> str:
    """Wait for an allocation.

    :param options: of salloc.
    :param folder: of the run: by it what a killed run leaves is known.
    :param given_up: reasons of Slurm's for which it is not waited for (:func:`cancel_reasons`).
    :returns: the number of its job.
    :raises AssayError: if it is refused.
    :raises StoppedError: if this command was told to stop; nothing is left of it then.
    """
    own = ['--no-shell', '--no-kill', '--wait-all-nodes=1', '--job-name=assay']
    command = ['salloc', *own, *options]
    log = folder / 'salloc.log'
    with note_signals() as signals, log.open('w') as said:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=without_defaults(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        except OSError as error:
            raise AssayError(f'salloc: {error.strerror}') from None
        began, has_told, why = time.monotonic(), False, None
        looked, since, reason, alone = began, began, '', 0
        while process.poll() is None:
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                before, reason = reason, _reason(_number(log)) or reason
                since = since if reason == before else looked
                is_own_limit = re.match(r'QOSMax\w+PerUser', reason)
                alone = alone + 1 if is_own_limit and not _has_nodes() else 0
                words = job_states.in_vain(reason, looked - since, given_up)
                if alone >= ALONE:
                    words = 'it asks for more than the QOS allows all of your jobs together'
                if words:
                    why = f'{plain(reason, 200)}: {words}'
            if signals or why:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                break
            if not has_told and time.monotonic() - began > 1:
                has_told = True
                say(f'waiting for one job for all cases: salloc {shlex.join(options)}')
            time.sleep(0.1)
        number = _number(log)
        if number and (signals or why):
            release(number)
        if signals:
            raise SignalledError(signals[0])
    if why:
        raise AssayError(
            f'no job for all cases: {why}. It was: salloc {shlex.join(options)}; ask for less by '
            '-J nodes=N, or -J time='
        )
    if process.returncode or not number:
        words = plain(log.read_text(errors='replace'), 300)
        raise AssayError(f'no job for all cases: {words or "salloc says nothing"}')
    return number


def _number(log: Path) -> str | None:
    """The number of the job in the output of salloc, among words of the site's own."""
    found = _NUMBER.findall(log.read_text(errors='replace'))
    return found[-1] if found else None


def _reason(job: str | None) -> str:
    """Why a job waits; empty if Slurm does not answer."""
    with suppress(AssayError):
        if job:
            return query('squeue', '--noheader', f'--jobs={job}', '--format=%r').strip()
    return ''


def _has_nodes() -> bool:
    """Whether some job of this user has nodes; it may if Slurm does not answer."""
    states = '--states=running,suspended,configuring,completing'
    with suppress(AssayError):
        return bool(query('squeue', '--noheader', '--me', states, '--format=%i').strip())
    return True


def release(job: str) -> None:
    """Give an allocation back; if that fails, it is said how."""
    try:
        query('scancel', job)
    except RefusedError:
        pass  # it has ended
    except AssayError as error:
        say(f'the job {job} may be left ({error}). To cancel it: scancel {job}')


def leave() -> str | None:
    """The number of the job of Slurm around this process, whose variables are taken out.

    :raises AssayError: if this process is in a step of it which leaves no CPUs to others.
    """
    number, step = os.environ.get('SLURM_JOB_ID'), os.environ.get('SLURM_STEP_ID', '')
    holds_cpus = step.isdecimal() and int(step) < _LAST_STEP
    if number and holds_cpus and 'SLURM_OVERLAP' not in os.environ:
        raise AssayError(
            f'--one-job: this command runs in the step {number}.{step}, which holds CPUs that the '
            'cases need: start it in the shell of salloc itself, in a batch script, or by '
            '`SLURM_OVERLAP=1 srun --pty bash`.'
        )
    forget_job_around(os.environ)
    return number


def _assert_suits(job: str, options: Sequence[str]) -> None:
    """:raises AssayError: if a job has other nodes than those that a system's cases are for."""
    now, named = await_boot(job), partitions_in(' '.join(options))
    if not now.is_running:
        raise AssayError(f'--one-job: the job {job} does not run.')
    if named and now.partition not in named:
        raise AssayError(
            f"--one-job: the job {job} is in Slurm's partition {now.partition}, and the cases are "
            f'for {", ".join(named)}.'
        )


@contextmanager
def one_job(
    around: str | None, options: Sequence[str], folder: Path, given_up: Collection[str] = ()
) -> Iterator[str]:
    """The number of the job in which a run's cases are steps.

    :param around: that of a job which there is already; another one is given back afterwards.
    :param options: of salloc.
    :param folder: of the run.
    :param given_up: as of :func:`obtain`.
    :raises AssayError: if there is none, or it has nodes of another partition.
    :raises StoppedError: if this command was told to stop meanwhile.
    """
    if around:
        _assert_suits(around, options)
        yield around
        return
    number = obtain(options, folder, given_up)
    try:
        _assert_suits(number, options)
        yield number
    finally:
        release(number)
