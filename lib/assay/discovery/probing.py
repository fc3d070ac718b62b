"""The one job for each partition's nodes of a type, which asks what only they know."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from assay import AssayError, say
from assay.config.environments import AS_ROOT
from assay.config.scales import SCALES
from assay.discovery.node import NodeFacts, read_facts
from assay.discovery.partitions import Partition, Seen
from assay.discovery.policies import own_words, refuses, remedy
from assay.job.output import Output, reason_in_output
from assay.machine import job_states
from assay.machine.modules import modules_tool
from assay.machine.mpi import Mpi
from assay.machine.slurm import RefusedError, query, query_patiently
from assay.quantities import duration_text
from assay.text import Piece
from assay.tools import NoAnswerError, ask

HERE = Path(__file__).parent

#: Seconds that a way of starting processes may take, and building a program.
PATIENCE, BUILD = 60, 300
#: Seconds between two looks at the queue: at first, and at most, for Slurm has others to answer.
INTERVAL, SELDOM = 1, 15
#: Seconds in which the last file of a job that has ended shows on a shared file system.
LATENCY = 60
#: Minutes of a job, where its partition allows them.
MINUTES = 15

#: What the way by an MPI's own launcher is called; the others are srun's, by their PMI.
MPIRUN = 'mpirun'


@dataclass(frozen=True)
class Probed:
    """The facts that a job of ``assay init`` found.

    :param facts: of each node that it had.
    :param ways: how each MPI's programs start, by the MPI's name: a PMI of srun, or ``mpirun``.
    :param faults: why an MPI's programs do not start, likewise.
    """

    facts: list[NodeFacts]
    ways: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def probe(
    seen: Seen, mpis: Sequence[Mpi], folder: Path, patience: float
) -> dict[str, Probed | str]:
    """Submit the jobs, all at once, and wait for them.

    :param folder: that the nodes have, too, and no other command uses; it is emptied.
    :param patience: seconds that jobs may wait and run.
    :returns: by the name of a partition what its job found, or why there was none.
    """
    # Jobs of a command that was killed would be taken for ours, or spoil what ours leave.
    name = f'assay-init-{hashlib.sha256(bytes(folder)).hexdigest()[:12]}'
    _cancel(name)
    shutil.rmtree(folder, ignore_errors=True)
    own = folder / str(uuid.uuid4())
    built, jobs = own / 'programs', own / 'jobs'
    for one in (built, jobs):
        one.mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        reasons = pool.map(lambda mpi: _build(mpi, built), mpis)
        faults = {mpi.name: why for mpi, why in zip(mpis, reasons, strict=True) if why}
    able = [mpi for mpi in mpis if mpi.name not in faults]
    all_jobs = [_Job(name, jobs / one.name, one, seen, able, built) for one in seen.partitions]
    try:
        for job in all_jobs:
            job.submit()
        _wait(all_jobs, patience)
        return {job.where.name: job.result(able, faults) for job in all_jobs}
    finally:
        # By name: of a job whose submission was interrupted there is no number.
        try:
            _cancel(name)
        except AssayError as error:
            say(f'jobs may be left ({error}). To cancel them: {shlex.join(_scancel(name))}')


def _scancel(name: str) -> list[str]:
    return ['scancel', f'--user={os.getuid()}', f'--name={name}']


def _cancel(name: str) -> None:
    """Cancel all jobs that are called so.

    :raises AssayError: if Slurm does not.
    """
    query(*_scancel(name))


def _build(mpi: Mpi, folder: Path) -> str | None:
    """Build the program with an MPI; why it could not be."""
    if mpi.fault:
        return mpi.fault
    program, script = folder / mpi.name, folder / f'{mpi.name}.sh'
    words = shlex.join([mpi.cc, '-O1', '-o', str(program), str(HERE / 'ranks.c')])
    script.write_text(f'{_environment(mpi)}\nexec {words}\n')
    try:
        built = ask(['bash', script], BUILD)
    except NoAnswerError as error:
        return f'{mpi.cc} does not build a program: {error}'
    if built.returncode or not program.exists():
        said = f'{built.stdout}\n{built.stderr}\n'
        why = reason_in_output(Path(mpi.compiler).name, [Piece(said)])
        return f'{mpi.cc} does not build a program: {why}'
    return None


def _environment(mpi: Mpi) -> str:
    """Lines of shell that make the environment of an MPI, as a job of a check has it."""
    from reframe.core.modules import ModulesSystem

    tool = ModulesSystem.create(modules_tool())
    lines = [line for name in mpi.modules for line in tool.emit_load_commands(name)]
    variables = [['PATH', f'{mpi.bindir}:$PATH'], *map(list, mpi.env.items())]
    variables += AS_ROOT if os.geteuid() == 0 else []
    return '\n'.join([*lines, *(f'export {name}="{value}"' for name, value in variables)])


class _Job:
    """A job, from its files to what it left.

    :param name: that all jobs of this command have, and no others.
    :param folder: of its files.
    :param built: the folder of the programs.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        where: Partition,
        seen: Seen,
        mpis: Sequence[Mpi],
        built: Path,
    ) -> None:
        self.name, self.folder, self.where = name, folder, where
        # Of more nodes than are there now the job would wait for the others.
        sizes = [SCALES[scale] for scale in where.scales_now]
        self.nodes = next((size for size in sizes if size > 1), min(sizes, default=1))
        # Of a single rank nothing tells by what it was started. A single core has no room for two,
        # nor for any case that could confirm what is said of it.
        self.ranks = 1 if self.nodes > 1 or where.type.cores == 1 else 2
        self.number: str | None = None
        self.problem: str | None = None
        self.end = ''
        folder.mkdir()
        (folder / 'addresses.json').write_text(json.dumps(seen.addresses))
        for mpi in mpis:
            (folder / f'{mpi.name}.env').write_text(self._settings(mpi, seen.pmis))
            (folder / mpi.name).symlink_to(built / mpi.name)
        numbers = [str(self.nodes), str(self.ranks), str(PATIENCE)]
        self.arguments = [*numbers, sys.executable]

    def _settings(self, mpi: Mpi, pmis: Sequence[str]) -> str:
        kind = mpi.kind
        words, variables = kind.bind('mixed', self.ranks, 1)
        ranks = ['-n', str(self.nodes * self.ranks), *' '.join(words).split()]
        command = [mpi.launcher, *ranks] if mpi.launcher else []
        lines = [
            _environment(mpi),
            *(f'export {name}={shlex.quote(value)}' for name, value in variables.items()),
            f'interface_variables={shlex.quote(" ".join(kind.interface))}',
            # The one that it is usually built for comes first.
            f'pmis=({" ".join(sorted(pmis, key=lambda pmi: pmi != kind.srun_pmi))})',
            f'mpirun=({shlex.join(command)})',
        ]
        return '\n'.join(lines) + '\n'

    def submit(self) -> None:
        """Give it to Slurm."""
        options = [
            *('--parsable', f'--job-name={self.name}', '--no-requeue'),
            *(f'--chdir={self.folder}', f'--output={self.folder / "job.out"}'),
        ]
        if not self.where.scales_now:
            least = SCALES[self.where.scales[0]]
            self.problem = f'its jobs have {least} nodes at least, and fewer can be had now'
            return
        words = self.where.job(self.nodes, self.ranks, MINUTES)
        try:
            said = query_patiently(
                'sbatch', *words, *options, str(HERE / 'probe.sh'), *self.arguments
            )
        except RefusedError as error:
            self.problem = refuses('; '.join(own_words(str(error))))
            return
        # A wrapper of the site may have printed something before.
        if not (numbers := re.findall(r'^(\d+)(?:;.*)?$', said, re.MULTILINE)):
            self.problem = f'sbatch does not say the number of a job: {" ".join(said.split())}'
            return
        self.number = numbers[-1]
        say(
            f'job {self.number} asks {self.nodes} node(s) of {self.where.slurm}: '
            f'{self.where.type.words}'
        )

    @property
    def state(self) -> str | None:
        """State and reason in the queue; None if it has ended, or left all that it was to leave.

        Slurm may call a job `COMPLETING` for a long time after its script has ended, while a node
        does not get rid of a process.
        """
        if self.number is None or 'done' in os.listdir(self.folder):
            return None
        try:
            told_state = query(
                'squeue', '--noheader', f'--jobs={self.number}', '--format=%T %r'
            ).strip()
        except AssayError as error:
            # Slurm forgets jobs some time after their end.
            return None if 'Invalid job id' in str(error) else f'unknown: {error}'
        word = told_state.partition(' ')[0]
        if word not in job_states.ENDING:
            return told_state
        self.end = f' ({word})' if word not in ('COMPLETED', 'COMPLETING') else ''
        return None

    def result(self, mpis: Sequence[Mpi], faults: dict[str, str]) -> Probed | str:
        """Read what the job found; or return why that is missing or not complete."""
        if self.problem:
            return self.problem
        wanted = {'done', *(f'node-{rank}.json' for rank in range(self.nodes))}
        deadline = time.monotonic() + LATENCY
        # A listing, since NFS may remember for a while that a file was not there.
        while not wanted <= {*(there := os.listdir(self.folder))} and time.monotonic() < deadline:
            time.sleep(INTERVAL)
        facts = [read_facts(self.folder / name) for name in sorted(wanted & {*there} - {'done'})]
        if len(facts) != self.nodes:
            return (
                f'{len(facts)} of {self.nodes} nodes of its job told something{self.end}: '
                f'{self._last_words}'
            )
        ways, faults = {}, dict(faults)
        for mpi in mpis:
            started = self.folder / f'{mpi.name}.started'
            if started.exists():
                ways[mpi.name] = started.read_text().strip()
            elif 'done' in there:
                faults[mpi.name] = '; '.join(self._tried(mpi))
            else:
                faults[mpi.name] = (
                    f'the job ended before it was started{self.end}: {self._last_words}'
                )
        return Probed(facts, ways, faults)

    @property
    def _last_words(self) -> str:
        """The last line that the job itself printed."""
        output = self.folder / 'job.out'
        if not output.exists():
            return f'it left nothing in {self.folder}, which its nodes have to have as well'
        said = [line.strip() for line in _lines(output) if line.strip()]
        return said[-1] if said else f'see {self.folder}'

    def _tried(self, mpi: Mpi) -> Iterator[str]:
        """The outcome of each way to start an MPI's program, in words."""
        for out in sorted(self.folder.glob(f'{mpi.name}.*.out')):
            way = out.name.removeprefix(f'{mpi.name}.').removesuffix('.out')
            alone = any(line.startswith('assay: rank 0 of 1,') for line in _lines(out))
            words = (
                'each process is a rank 0 of 1'
                if alone
                else reason_in_output('srun', Output((out,)))
            )
            by = way if way == MPIRUN else f'srun --mpi={way}'
            yield f'{by}: {words}'


def _lines(path: Path) -> list[str]:
    return path.read_text(errors='replace').splitlines() if path.exists() else []


def _wait(jobs: Sequence[_Job], patience: float) -> None:
    """Wait until all have ended, and say what they wait for where that changes."""
    deadline, pause = time.monotonic() + patience, float(INTERVAL)
    last: dict[str, str] = {}
    while waiting := [(job, state) for job in jobs if not job.problem and (state := job.state)]:
        for job, state in waiting:
            word, _, why = state.partition(' ')
            if last.get(str(job.number)) != state:
                last[str(job.number)] = state
                say(f'job {job.number}: {word.lower()} {why.removeprefix("None")}'.rstrip())
            if told_why := job_states.STUCK.get(word) or job_states.for_good(why):
                job.problem = f'its job {job.number} cannot start: {state}: {told_why}'
                if what := remedy(why):
                    job.problem += f' (try {what})'
            elif time.monotonic() > deadline:
                job.problem = (
                    f'its job {job.number} has not ended in {duration_text(patience)}, and '
                    f'--wait=TIME waits longer: {state}'
                )
        time.sleep(pause)
        pause = min(1.1 * pause, SELDOM)
