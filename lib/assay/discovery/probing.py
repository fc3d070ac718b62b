"""The one job for each type of nodes, which asks what only they know."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from assay import AssayError, say
from assay.config.environments import AS_ROOT
from assay.discovery.node import Facts, read
from assay.discovery.partitions import NodeType, Partition, Seen
from assay.machine.modules import modules_tool
from assay.machine.mpi import Mpi
from assay.machine.slurm import told

HERE = Path(__file__).parent

#: Seconds that a way of starting two processes may take.
PATIENCE = 30
#: Seconds between two looks at the queue.
INTERVAL = 1

#: What the way by an MPI's own launcher is called; the others are srun's, by their PMI.
MPIRUN = 'mpirun'


@dataclass(frozen=True)
class Probed:
    """What the job of a node type found.

    :param facts: of each node that it had.
    :param ways: how each MPI's programs start, by the MPI's name: a PMI of srun, or ``mpirun``.
    :param faults: why an MPI's programs do not start, likewise.
    """

    facts: list[Facts]
    ways: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def probe(
    seen: Seen, mpis: Sequence[Mpi], folder: Path, patience: float
) -> dict[NodeType, Probed | str]:
    """Submit the jobs, all at once, and wait for them.

    :param folder: that the nodes have, too; it is emptied.
    :param patience: seconds that jobs may wait and run.
    :returns: by node type what its job found, or why there was none.
    """
    shutil.rmtree(folder, ignore_errors=True)
    built = folder / 'programs'
    built.mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        faults = {
            one.name: fault
            for one, fault in zip(mpis, pool.map(lambda mpi: _build(mpi, built), mpis), strict=True)
            if fault
        }
    first: dict[NodeType, Partition] = {}
    for partition in seen.partitions:
        first.setdefault(partition.type, partition)
    able = [one for one in mpis if one.name not in faults]
    jobs = {kind: _Job(folder / one.name, one, seen, able, built) for kind, one in first.items()}
    found: dict[NodeType, Probed | str] = {}
    try:
        for job in jobs.values():
            job.submit()
        _wait([*jobs.values()], patience)
        for kind, job in jobs.items():
            found[kind] = job.found(able, faults)
    finally:
        for job in jobs.values():
            job.cancel()
    return found


def _build(mpi: Mpi, folder: Path) -> str | None:
    """Build the program with an MPI; why it could not be."""
    if mpi.fault:
        return mpi.fault
    program = folder / mpi.name
    script = f'{_environment(mpi)}\nexec {mpi.cc} -O1 -o {program} {HERE / "ranks.c"}\n'
    # A login shell, as a job's, knows environment modules.
    built = subprocess.run(['bash', '-l'], input=script, capture_output=True, text=True)
    if built.returncode or not program.exists():
        said = (built.stderr.strip() or built.stdout.strip()).splitlines()
        return f'{mpi.cc} does not build a program: {said[-1] if said else "it does not say why"}'
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
    """A job, from its files to what it left."""

    def __init__(
        self, folder: Path, where: Partition, seen: Seen, mpis: Sequence[Mpi], built: Path
    ) -> None:
        self.folder, self.where = folder, where
        self.nodes = 2 if '2_nodes' in where.scales else 1
        # Of a single rank nothing tells by what it was started. A single core has no room for two,
        # nor for any case that could confirm what is said of it.
        self.ranks = 1 if self.nodes > 1 or where.type.cores == 1 else 2
        self.number: str | None = None
        self.problem: str | None = None
        folder.mkdir()
        (folder / 'addresses.json').write_text(json.dumps(seen.addresses))
        for mpi in mpis:
            kind = mpi.kind
            words, variables = kind.bind('mixed', self.ranks, 1)
            count = str(self.nodes * self.ranks)
            command = [mpi.launcher, '-n', count, *' '.join(words).split()]
            lines = [
                _environment(mpi),
                *(f'export {name}={shlex.quote(value)}' for name, value in variables.items()),
                f'interface_variables={shlex.quote(" ".join(kind.interface))}',
                f'pmi_first={kind.srun_pmi if kind.srun_pmi in seen.pmis else ""}',
                f'mpirun=({" ".join(map(shlex.quote, command))})',
            ]
            (folder / f'{mpi.name}.env').write_text('\n'.join(lines) + '\n')
            (folder / mpi.name).symlink_to(built / mpi.name)
        numbers = [str(self.nodes), str(self.ranks), str(PATIENCE)]
        self.arguments = [*numbers, sys.executable, ' '.join(seen.pmis)]

    def submit(self) -> None:
        """Give it to Slurm."""
        options = [
            *('--parsable', '--job-name=assay-init', '--time=15', '--no-requeue'),
            *(f'--nodes={self.nodes}', f'--ntasks-per-node={self.ranks}'),
            f'--chdir={self.folder}',
            f'--output={self.folder / "job.out"}',
        ]
        command = ['sbatch', *options, *self.where.options, str(HERE / 'probe.sh')]
        try:
            self.number = told(*command, *self.arguments).strip().partition(';')[0]
        except AssayError as error:
            self.problem = f'Slurm refused its job: {error}'
        else:
            say(
                f'job {self.number} asks {self.nodes} node(s) of {self.where.slurm}: '
                f'{self.where.type.words}'
            )

    @property
    def state(self) -> str | None:
        """State and reason in the queue; None if it has ended."""
        if self.number is None:
            return None
        try:
            return told('squeue', '--noheader', f'--jobs={self.number}', '--format=%T %r').strip()
        except AssayError as error:
            # Slurm forgets jobs some time after their end.
            return None if 'Invalid job id' in str(error) else f'unknown: {error}'

    def cancel(self) -> None:
        """End it, if it has not ended."""
        if self.state:
            told('scancel', str(self.number))

    def found(self, mpis: Sequence[Mpi], faults: dict[str, str]) -> Probed | str:
        """What it left, or why it left nothing."""
        facts = [read(path) for path in sorted(self.folder.glob('node-*.json'))]
        if not facts:
            out = self.folder / 'job.out'
            said = [line for line in _lines(out) if line.strip()]
            why = f'its job did not run: {said[-1]}' if said else f'its job left nothing in {out}'
            return self.problem or why
        ways, faults = {}, dict(faults)
        for mpi in mpis:
            started = self.folder / f'{mpi.name}.started'
            if started.exists():
                ways[mpi.name] = started.read_text().strip()
            else:
                faults[mpi.name] = '; '.join(self._tried(mpi)) or f'see {self.folder}'
        return Probed(facts, ways, faults)

    def _tried(self, mpi: Mpi) -> Iterator[str]:
        """What each way of starting an MPI's program came to."""
        for out in sorted(self.folder.glob(f'{mpi.name}.*.out')):
            way = out.name.removeprefix(f'{mpi.name}.').removesuffix('.out')
            said = [line.strip() for line in _lines(out) if line.strip()]
            alone = any(line.startswith('assay: rank 0 of 1,') for line in said)
            words = 'each process is a rank 0 of 1' if alone else ''.join(said[-1:])
            by = way if way == MPIRUN else f'srun --mpi={way}'
            yield f'{by}: {words or f"no word in {PATIENCE} s"}'


def _lines(path: Path) -> list[str]:
    return path.read_text(errors='replace').splitlines() if path.exists() else []


def _wait(jobs: Sequence[_Job], patience: float) -> None:
    """Wait until all have ended, and say what they wait for where that changes."""
    deadline = time.monotonic() + patience
    last: dict[str, str] = {}
    while waiting := [(job, state) for job in jobs if not job.problem and (state := job.state)]:
        for job, state in waiting:
            if last.get(str(job.number)) != state:
                last[str(job.number)] = state
                say(f'job {job.number}: {state.lower().replace(" none", "")}')
            if time.monotonic() > deadline:
                job.problem = (
                    f'its job {job.number} has not ended in {patience / 60:g} min: {state}'
                )
        time.sleep(INTERVAL)
