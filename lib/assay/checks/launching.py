"""How the program of a check is started: layout, fabric, witness, and the launcher's line."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError

from assay.checks.build import LIBRARY
from assay.checks.part import CheckPart
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.config.scales import nodes_of_scale
from assay.job.ending import FILES, ONLY_ONCE, EndedJob, seconds_until_stacks
from assay.job.launch import (
    ERROR,
    EXIT_CODE,
    FINALIZED,
    OUTPUT,
    WITNESS,
    Launch,
    LaunchError,
    line_in_folder,
)
from assay.job.output import Output
from assay.layout.launchers import SRUN, add_part_script, is_srun, srun_step, words_of_side
from assay.layout.layouts import (
    BINDINGS,
    DECLARED,
    THREADS,
    DoesNotFitError,
    NodeShape,
    Placement,
    layout_of,
)
from assay.machine import topology
from assay.machine.slurm import SCHEDULERS
from assay.machine.topology import core_count, domain_count
from assay.mpis import FAMILIES
from assay.running import runs
from assay.witness import HOSTS

_CATALOGUE = load_catalogue()

#: The extra of an environment with the words that start each rank's program in a container.
CONTAINER = 'container'

#: By it the witness tells how long ranks took to come to ``main``, which ``date`` tells in ns.
LAUNCHED = 'ASSAY_WITNESS_LAUNCHED=$(date +%s%N)'


def is_script(path: str | Path) -> bool:
    """Whether the file is a script, so that rank 0 runs another program."""
    with open(path, 'rb') as file:
        return file.read(2) == b'#!'


class IsStarted(CheckPart):
    """A check whose programs a launcher starts, in a layout, on a fabric, with the witness."""

    # No variables, which a user could set: without them nothing would be proved.
    #: What the witness records beside placement and fabric; a benchmark that times single messages
    #: leaves out the profile, which costs some ns of each.
    witness_sections = 'placement,fabric,profile,matrix'
    #: Fewer ranks than these show nothing.
    least_ranks = 2

    #: Ranks of the whole job; None for as many as the layout puts on the nodes.
    ranks: int | None = variable(int, type(None), value=None)
    #: Cores of each rank, where the layout does not set them.
    cores_per_rank: int = variable(int, value=1)

    @property
    def node(self) -> NodeShape:
        """The cores and NUMA domains of the partition's nodes.

        :raises ReframeError: if nobody has said it.
        """
        partition = self.current_partition
        processor = partition.processor.info
        cores = core_count(processor)
        if not cores:
            raise ReframeError(
                f'the topology of {partition.fullname} is not known: give it a processor in its '
                f'configuration, or set RFM_REMOTE_DETECT=1'
            )
        domains = domain_count(processor)
        threads = processor.get('num_cpus_per_core') or 1
        if partition.scheduler.is_local:
            cores = min(cores, topology.usable_cores())
            here = topology.usable_topology()
            domains = min(domains, len(here.domains))
            # A limit of CPU time leaves fewer cores than there are: it counts threads as cores.
            is_whole = cores >= len(here.cores)
            threads = min(threads, len(here.cpus) // cores) if is_whole else 1
        return NodeShape(cores, numa_domains=min(domains, cores), threads_per_core=threads)

    def place(self, ranks: int | None, threads: int, layout: str = '') -> Placement:
        """Where a layout puts ranks with their threads on each node; skips what does not fit.

        :param layout: its name; the check's own if empty.
        """
        declared = self.current_partition.extras.get(DECLARED, '')
        if declared not in ('', *BINDINGS):
            raise ReframeError(
                f'{self.current_partition.fullname}: {DECLARED} is {declared!r}, and has to be one '
                f'of {", ".join(BINDINGS)}'
            )
        try:
            placement = layout_of(layout or self.layout).place(
                self.launcher_words, self.node, ranks, threads
            )
        except DoesNotFitError as error:
            self.skip(str(error))
        return replace(placement, declared=declared)

    @property
    def node_count(self) -> int:
        """Nodes of the job."""
        try:
            return nodes_of_scale(self.scale, self.current_partition.extras)
        except ValueError as error:
            where = self.current_partition.fullname
            raise ReframeError(f'{where}: scale {self.scale} {error}') from None

    @property
    def ranks_per_node(self) -> int | None:
        """Ranks on each node; None for as many as the layout puts there."""
        return None if self.ranks is None else math.ceil(self.ranks / self.node_count)

    def most_ranks_per_node(self, allows: Callable[[int], bool]) -> int | None:
        """The most ranks on each node that the layout takes and a program runs with; None if none.

        :param allows: whether it runs with a number of ranks in all.
        """
        most = self.place(None, self.cores_per_rank).ranks
        for count in range(most, 0, -1):
            is_put = self.place(count, self.cores_per_rank).ranks == count
            if is_put and allows(count * self.node_count):
                return count
        return None

    @run_after('setup')
    def apply_layout(self) -> None:
        nodes = self.node_count
        self.placement = self.place(self.ranks_per_node, self.cores_per_rank)
        self.num_tasks = self.placement.ranks * nodes
        self.num_tasks_per_node = self.placement.ranks
        self.num_cpus_per_task = self.placement.cpus
        self.skip_if(
            self.num_tasks < self.least_ranks,
            f'layout {self.layout} puts 1 rank on {nodes} node(s): no message can be sent',
        )
        self.skip_if(
            layout_of(self.layout).is_packed(self.node, self.placement),
            f'on the nodes of {self.current_partition.fullname} layout {self.layout} is packed',
        )
        self.job.launcher.options = self.placement.options + self.job.launcher.options

    @run_after('setup')
    def ask_for_hardware_threads(self) -> None:
        # A partition's access may keep jobs off them; of an option that is given twice the last one
        # counts.
        is_slurm = self.current_partition.scheduler.registered_name in SCHEDULERS
        if self.layout == THREADS and is_slurm:
            self.job.options.append(f'--threads-per-core={self.node.threads_per_core}')

    @run_after('setup')
    def start_only_once(self) -> None:
        scheduler = self.current_partition.scheduler.registered_name
        self.job.options += filter(None, [ONLY_ONCE.get(scheduler)])

    @property
    def way(self) -> str:
        """The fabric that messages must take: where none is forced, the best that there is."""
        if self.fabric != DEFAULT:
            return self.fabric
        if best := self.best_fabric:
            return best
        self.skip('partition and environment offer no fabric that what they take could be held to')

    @property
    def best_fabric(self) -> str | None:
        """The first of the catalogue's order that partition and environment both offer."""
        offered = {*self.current_partition.features} & {*self.current_environ.features}
        names = _CATALOGUE.best_first(self.node_count > 1)
        return next((name for name in names if name in offered), None)

    @property
    def devices_not_offered(self) -> list[str]:
        """Fabrics with a device that the nodes have, if the environment has no such fabric."""
        names = _CATALOGUE.best_first(across_nodes=True)
        devices = [name for name in names if _CATALOGUE.fabrics[name].needs_device]
        if self.node_count == 1 or {*devices} & {*self.current_environ.features}:
            return []
        return [name for name in devices if name in self.current_partition.features]

    @run_after('setup')
    def apply_fabric(self) -> None:
        way, mpi = self.way, FAMILIES[self.family]
        is_forced = self.fabric != DEFAULT
        forced = _CATALOGUE.variables(way, mpi.key) if is_forced else mpi.statement
        self.own_variables = {
            **self.placement.env,
            **{name: shlex.quote(value) for name, value in forced.items()},
        }
        # Variables that the user sets (-S env_vars=...) win: the statement shows the effect.
        self.asked_for = dict(getattr(self, 'env_vars', {}))
        self.env_vars = {**self.own_variables, **self.asked_for}

    @run_before('run')
    def remove_earlier_reports(self) -> None:
        # ReFrame can be told to keep the folder of a case for its next run.
        for earlier in Path(self.stagedir).rglob(f'{WITNESS}*'):
            earlier.unlink()

    @run_before('run')
    def preload_witness(self) -> None:
        # What the user or the system's file preloads comes first: a tool of MPI calls then
        # sees them.
        places = self.current_partition.local_env, self.current_environ, self
        asked = [one.env_vars['LD_PRELOAD'] for one in places if 'LD_PRELOAD' in one.env_vars]
        libraries = [*asked[-1:], self.witness_library]
        self.env_vars['LD_PRELOAD'] = ':'.join(filter(None, libraries))
        self.env_vars['ASSAY_WITNESS'] = self.witness_sections
        self.env_vars['ASSAY_WITNESS_REPORT'] = WITNESS
        if self.time_limit:
            seconds = seconds_until_stacks(self.time_limit)
            self.env_vars['ASSAY_WITNESS_DEADLINE'] = f"$(date -d '+{seconds} seconds' +%s)"
        # Whatever a user set: by it a process that uses this machine is known for one of this run.
        if self.current_partition.scheduler.is_local and (run := os.environ.get(runs.VARIABLE)):
            self.env_vars[runs.VARIABLE] = shlex.quote(run)
        self.keep_files = [*self.keep_files, WITNESS, FINALIZED, FILES, HOSTS]

    # Right before the program, whatever a check runs first.
    @run_before('run', always_last=True)
    def tell_when_launched(self) -> None:
        self.prerun_cmds = [*self.prerun_cmds, f'export {LAUNCHED}']

    # After the last start_line, which has these words already.
    @run_before('run', always_last=True)
    def start_by_way_of_others(self) -> None:
        if self.bound_by:
            add_part_script(Path(self.stagedir))
        words = [*self.bound_by, *self.container]
        self.job.launcher.options = [*self.job.launcher.options, *words]

    @run_before('run', always_last=True)
    def keep_exit_code(self) -> None:
        # Or that of a job would be that of the last command a user has it run after the program.
        if self.postrun_cmds:
            self.postrun_cmds = ['trap "exit $?" EXIT', *self.postrun_cmds]

    @property
    def witness_library(self) -> str:
        """The absolute path of what is preloaded."""
        return self.build.product(LIBRARY)

    @property
    def family(self) -> str:
        """The MPI family of the environment."""
        family: str = self.current_environ.extras['family']
        return family

    @property
    def container(self) -> list[str]:
        """The words between launcher and program, as the shell has them; none where it runs bare.

        ReFrame's ``container_platform`` has one program for each job, and no Podman.
        """
        return [*self.current_environ.extras.get(CONTAINER, [])]

    @property
    def bound_by(self) -> list[str]:
        """The words before these that bind each rank on its node, where launchers cannot."""
        side = layout_of(self.layout).side
        if not side:
            return []
        carrier = _CATALOGUE.fabrics[self.way].carrier
        ports = self.current_partition.extras.get('ports', {})
        return words_of_side(side, carrier, ports, self.placement.cores)

    @property
    def started_by(self) -> str:
        """ReFrame's name of the launcher."""
        name: str = self.current_partition.launcher_type.registered_name
        return name

    @property
    def is_by_srun(self) -> bool:
        """Whether that is srun, and not the MPI's own."""
        return is_srun(self.started_by)

    @property
    def launcher_words(self) -> str:
        """Whose options start ranks, a key of :data:`assay.layout.launchers.WORDS`."""
        return SRUN if self.is_by_srun else self.family

    @property
    def program_name(self) -> str:
        """As the program begins its error messages."""
        return os.path.basename(self.executable)

    def command_of(self, program: str) -> str | None:
        """File name of what rank 0 of a program runs; None if unknown."""
        return program

    def start_line(self, *command: str, placed: tuple[Placement, int] | None = None) -> str:
        """The line of the job's script that starts a program.

        :param placed: where ranks go on each node, and how many they are in all; None for those
            of the job's own program.
        """
        job, launcher = self.job, self.job.launcher
        own, exports = launcher.options, f'export {LAUNCHED} && '
        job.num_tasks = self.num_tasks  # ReFrame itself sets it after the hooks
        if placed:
            placement, job.num_tasks = placed
            launcher.options = placement.options + own[len(self.placement.options) :]
            if self.is_by_srun:
                nodes = job.num_tasks // placement.ranks
                launcher.options += srun_step(nodes, job.num_tasks, placement.threads)
            values = (f'{key}={shlex.quote(value)}' for key, value in placement.env.items())
            exports = f'export {" ".join([LAUNCHED, *values])} && '
        words = [*([] if placed else self.bound_by), *self.container]
        line = exports + ' '.join([launcher.run_command(job), *words, *command])
        job.num_tasks, launcher.options = self.num_tasks, own
        return line

    def start_before(self, folder: str, line: str) -> None:
        """Have the job run a line before its program, in a folder of its own, which is kept."""
        Path(self.stagedir, folder).mkdir(exist_ok=True)
        self.prerun_cmds = [*self.prerun_cmds, line_in_folder(folder, line)]
        self.keep_files = [*self.keep_files, folder]

    def launch_in(
        self,
        folder: Path,
        program: str,
        files: Iterable[str],
        exit_code: int,
        placement: Placement,
        ranks: int,
    ) -> Launch:
        """A start of a program in this job.

        :param files: of its standard output and error, in the folder.
        """
        return Launch(
            program=program,
            command=self.command_of(program),
            launcher=self.started_by,
            family=self.family,
            fabric=self.way,
            is_forced=self.fabric != DEFAULT,
            layout=self.layout,
            placement=placement,
            ranks=ranks,
            folder=folder,
            output=Output(tuple(folder / name for name in files)),
            exit_code=exit_code,
            ports=self.current_partition.extras.get('ports', {}),
            is_contained=bool(self.container),
        )

    def launch_apart(self, name: str, program: str, placement: Placement, ranks: int) -> Launch:
        """A start of a program in a folder of its own (:meth:`start_before`).

        :raises LaunchError: if there was none.
        """
        folder = self.ended_job.folder / name
        try:
            exit_code = int((folder / EXIT_CODE).read_text())
        except (FileNotFoundError, ValueError):
            raise LaunchError(f'{program} was not run') from None
        return self.launch_in(folder, program, (OUTPUT, ERROR), exit_code, placement, ranks)

    @cached_property
    def ended_job(self) -> EndedJob:
        """The job, once it has ended; set by what reads a job that was kept."""
        job = self.job
        return EndedJob(
            Path(self.stagedir),
            job.stdout,
            job.stderr,
            job.exitcode or 0,
            job.state or '',
            tuple(job.nodelist or ()),
        )

    @cached_property
    def launch(self) -> Launch:
        """The start of the program that is the job's own."""
        job = self.ended_job
        files = job.stdout, job.stderr
        about = self.placement, self.num_tasks
        return self.launch_in(job.folder, self.program_name, files, job.exit_code, *about)
