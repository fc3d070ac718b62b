"""What all checks share: fabric, layout and scale, and the verdict.

A check names its program and its figures; everything about launchers, MPIs and fabrics is here.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import reframe as rfm
import reframe.core.runtime as rt
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import ReframeError, ReframeFatalError, SanityError

from assay.checks.attributed import Attributed
from assay.checks.build import BuildSources
from assay.checks.waiting import IN_QUEUE, TakesTurns
from assay.config import references
from assay.config.fabrics import load_catalogue
from assay.config.references import ReferencesError
from assay.config.scales import SCALES
from assay.job.ending import ONLY_ONCE, cut_short
from assay.job.launch import ERROR, EXIT_CODE, OUTPUT, WITNESS, Launch, LaunchError
from assay.job.output import Output
from assay.job.stacks import FILES, taken_after
from assay.layout.launchers import SRUN, is_srun
from assay.layout.layouts import layout_of
from assay.layout.placement import DoesNotFitError, Node, Placement
from assay.programs.figure import Figure

_CATALOGUE = load_catalogue()


def offers(feature: str) -> bool:
    """Whether a partition of this system has the feature. Yes where ReFrame has no system yet."""
    try:
        partitions = rt.runtime().system.partitions
    except ReframeFatalError:
        return True
    return any(feature in partition.features for partition in partitions)


def offered(names: Iterable[str], prefix: str = '') -> list[str]:
    """Those of the names that a partition of this system has as a feature, with that prefix.

    A check that no partition can run costs as much to make as one that runs. The first name where
    the system has none: a parameter needs a value.
    """
    names = list(names)
    return [name for name in names if offers(f'{prefix}{name}')] or names[:1]


class MpiCheck(rfm.RunOnlyRegressionTest, Attributed, TakesTurns):
    """An MPI program on a fabric, in a layout, at a scale, with the witness preloaded.

    A subclass gives ``executable`` and ``executable_opts`` and defines :meth:`figures`; it narrows
    ``layout``, ``scale`` and ``ranks`` to what it is good for. The first layout on one node, and
    between two and four, is the ``smoke`` mode, up to two nodes is ``maintenance``, everything is
    ``acceptance``.
    """

    fabric = parameter(offered(_CATALOGUE.fabrics), type=str, loggable=True)
    layout = parameter(['packed'], type=str, loggable=True)
    scale = parameter(['1_node'], type=str, loggable=True)

    build = fixture(BuildSources, scope='environment')

    # No variables, which a user could set: without them nothing would be proved.
    #: What the witness records beside placement and fabric; a benchmark that times single messages
    #: leaves out the profile, which costs some ns of each.
    witness_sections = 'placement,fabric,profile,matrix'
    #: Fewer ranks than these show nothing.
    least_ranks = 2
    #: Figures that not every machine offers: a job without one is not held to its reference.
    may_lack = frozenset()

    #: Ranks of the whole job; None for as many as the layout puts on the nodes.
    ranks = variable(int, type(None), value=None)
    #: Cores of each rank, where the layout does not set them.
    cores_per_rank = variable(int, value=1)
    #: Names of the figures that are shown whether a reference bounds them or not.
    headlines = variable(typ.List[str], value=[], loggable=True)
    time_limit = '5m'
    max_pending_time = IN_QUEUE

    #: Whether the job was proved to be what was asked for, and its figures held to references.
    is_proved = False
    is_held = False

    @run_after('init')
    def select_where_to_run(self):
        # A fabric is offered by a partition (it has the device) and by an MPI (it was built in).
        self.valid_systems = [f'+{self.fabric} +scale_{self.scale}']
        self.valid_prog_environs = [f'+mpi +{self.fabric}']
        fabric, nodes = _CATALOGUE.fabrics[self.fabric], SCALES[self.scale]
        # Within a node an MPI may answer for a network by shared memory: nothing would be shown.
        if (nodes > 1 and not fabric.crosses_nodes) or (nodes == 1 and fabric.needs_device):
            self.valid_systems = []

    def narrow_to_first_fabric(self) -> None:
        """Leave only the environments of which this fabric is the first.

        Within a node such a check shows nothing of a fabric that the MPI benchmarks do not.
        """
        earlier = takewhile(lambda name: name != self.fabric, offered(_CATALOGUE.fabrics))
        wanted = ['+mpi', f'+{self.fabric}', *(f'-{name}' for name in earlier)]
        self.valid_prog_environs = [' '.join(wanted)]

    def narrow_to_features(self, *features: str) -> None:
        """Leave only the environments that have one of the features as well."""
        self.valid_prog_environs = [
            f'{wanted} +{one}' for wanted in self.valid_prog_environs for one in features
        ]

    @property
    def is_smoke_case(self) -> bool:
        """Whether this is the first layout, on one node or, for a network, on two or four.

        On a system of single nodes a network's messages stay within the node.
        """
        fabric = _CATALOGUE.fabrics[self.fabric]
        has_network = fabric.crosses_nodes and offers('scale_2_nodes')
        scales = {'2_nodes', '4_nodes'} if has_network else {'1_node'}
        return self.scale in scales and self.is_first_layout

    @property
    def is_first_layout(self) -> bool:
        return self.layout == type(self).layout.values[0]

    @run_after('init')
    def select_modes(self):
        self.tags |= {'acceptance', self.scale}
        if SCALES[self.scale] <= 2:
            self.tags |= {'maintenance'}
        if self.is_smoke_case:
            self.tags |= {'smoke'}

    @run_after('setup')
    def assert_chosen_here(self):
        # What ReFrame's options put in the place of what the check asks for.
        if '*' in (*self.valid_systems, *self.valid_prog_environs):
            raise ReframeError(
                f'{type(self).__name__} runs where partition and environment offer {self.fabric}: '
                f'leave out --skip-system-check and --skip-prgenv-check'
            )
        if self.local:
            where = self.current_partition.fullname
            raise ReframeError(f'{where} has a scheduler and a launcher: leave out local=yes')

    # Before any job, because a mistake in a file need not cost one; not before the setup, because
    # most checks are made but not run.
    @run_after('setup')
    def read_references(self):
        try:
            self.layers = references.layers(self)
        except ReferencesError as error:
            raise ReframeError(str(error)) from None

    @property
    def node(self) -> Node:
        """What the partition's nodes have.

        :raises ReframeError: if nobody has said it.
        """
        partition = self.current_partition
        processor = partition.processor
        if not processor.num_cores:
            raise ReframeError(
                f'the topology of {partition.fullname} is not known: give it a processor in its '
                f'configuration, or set RFM_REMOTE_DETECT=1'
            )
        cores = processor.num_cores
        if partition.scheduler.is_local:
            cores = min(cores, len(os.sched_getaffinity(0)))
        return Node(cores=cores, numa_domains=processor.num_numa_nodes or 1)

    def place(self, ranks: int | None, threads: int) -> Placement:
        """Where the layout puts ranks with their threads on each node; skips what does not fit."""
        words = SRUN if is_srun(self.started_by) else self.family
        try:
            return layout_of(self.layout).place(words, self.node, ranks, threads)
        except DoesNotFitError as error:
            self.skip(str(error))

    @run_after('setup')
    def apply_layout(self):
        nodes = SCALES[self.scale]
        per_node = None if self.ranks is None else math.ceil(self.ranks / nodes)
        self.placement = self.place(per_node, self.cores_per_rank)
        self.num_tasks = self.placement.ranks * nodes
        self.num_tasks_per_node = self.placement.ranks
        self.num_cpus_per_task = self.placement.cpus
        self.skip_if(
            self.num_tasks < self.least_ranks,
            f'layout {self.layout} puts 1 rank on {nodes} node(s): no message can be sent',
        )
        self.job.launcher.options = self.placement.options + self.job.launcher.options

    @run_after('setup')
    def start_only_once(self):
        scheduler = self.current_partition.scheduler.registered_name
        self.job.options += filter(None, [ONLY_ONCE.get(scheduler)])

    @run_after('setup')
    def apply_fabric(self):
        forced = _CATALOGUE.variables(self.fabric, self.family)
        # Variables that the user sets (-S env_vars=...) win: the statement tells what came of it.
        self.env_vars = {
            **self.placement.env,
            **{name: shlex.quote(value) for name, value in forced.items()},
            **self.env_vars,
        }

    @run_before('run')
    def remove_earlier_reports(self):
        # ReFrame can be told to keep the folder of a case for its next run.
        for earlier in Path(self.stagedir).rglob(f'{WITNESS}*'):
            earlier.unlink()

    @run_before('run')
    def preload_witness(self):
        # A library that the user preloads comes first: a tool of MPI calls then sees them.
        libraries = [self.env_vars.get('LD_PRELOAD'), self.build.product('libassay_witness.so')]
        self.env_vars['LD_PRELOAD'] = ':'.join(filter(None, libraries))
        self.env_vars['ASSAY_WITNESS'] = self.witness_sections
        self.env_vars['ASSAY_WITNESS_REPORT'] = WITNESS
        if self.time_limit:
            seconds = taken_after(self.time_limit)
            self.env_vars['ASSAY_WITNESS_DEADLINE'] = f"$(date -d '+{seconds} seconds' +%s)"
        self.keep_files = [*self.keep_files, WITNESS, FILES]

    @run_before('run', always_last=True)
    def keep_exit_code(self):
        # Or that of a job would be that of the last command a user has it run after the program.
        if self.postrun_cmds:
            self.postrun_cmds = ['trap "exit $?" EXIT', *self.postrun_cmds]

    @property
    def family(self) -> str:
        """The MPI family of the environment."""
        return self.current_environ.extras['family']

    @property
    def started_by(self) -> str:
        """ReFrame's name of the launcher."""
        return self.current_partition.launcher_type.registered_name

    @property
    def program_name(self) -> str:
        """As the program begins its error messages."""
        return os.path.basename(self.executable)

    def command_of(self, program: str) -> str | None:
        """File name of what rank 0 of a program runs; None where nobody knows."""
        return program

    def start_line(self, *command: str) -> str:
        """The line of the job's script that starts a program as the job's own is started."""
        self.job.num_tasks = self.num_tasks  # ReFrame itself sets it after the hooks
        return ' '.join([self.job.launcher.run_command(self.job), *command])

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
            fabric=self.fabric,
            layout=self.layout,
            placement=placement,
            ranks=ranks,
            folder=folder,
            output=Output(tuple(folder / name for name in files)),
            exit_code=exit_code,
        )

    def launch_apart(self, name: str, program: str, placement: Placement, ranks: int) -> Launch:
        """A start of a program in a folder of its own (:func:`assay.job.launch.apart`).

        :raises LaunchError: if there was none.
        """
        folder = Path(self.stagedir, name)
        try:
            exit_code = int((folder / EXIT_CODE).read_text())
        except (FileNotFoundError, ValueError):
            raise LaunchError(f'{program} was not run') from None
        return self.launch_in(folder, program, (OUTPUT, ERROR), exit_code, placement, ranks)

    @cached_property
    def launch(self) -> Launch:
        """The start of the program that is the job's own."""
        return self.launch_in(
            Path(self.stagedir),
            self.program_name,
            (self.job.stdout, self.job.stderr),
            self.job.exitcode or 0,
            self.placement,
            self.num_tasks,
        )

    def verify_answers(self) -> None:
        """Hold the program's own verdict and the problem it says it ran against what was asked.

        :raises SanityError: with a sentence that says what is wrong.
        """
        raise NotImplementedError

    def figures(self) -> dict[str, Figure]:
        """The figures of the job, by name."""
        raise NotImplementedError

    def verify(self) -> None:
        """Everything that has to be right before a figure counts.

        :raises SanityError, LaunchError: with a sentence that says what is wrong.
        """
        self.launch.assert_ended_well()
        self.verify_answers()
        self.launch.assert_as_asked()

    @sanity_function
    def validate(self):
        folder = Path(self.stagedir)
        nodes = self.job.nodelist or []
        if reason := cut_short(self.job.state or '', folder, folder / self.job.stderr, nodes):
            raise SanityError(reason)
        try:
            self.verify()
        except LaunchError as error:
            raise SanityError(str(error)) from None
        self.is_proved = True
        return True

    def witness_figures(self) -> dict[str, Figure]:
        """Where the time went, and how much was sent."""
        return self.launch.witness_figures()

    @run_before('performance')
    def collect_figures(self):
        if self.is_dry_run():  # nothing ran
            return
        if not self.is_proved:
            raise SanityError('nothing was proved: leave out --skip-sanity-check')
        try:
            self.measured = self.figures() | self.witness_figures()
        except (KeyError, IndexError, StopIteration, ZeroDivisionError) as error:
            raise SanityError(
                f'{type(self).__name__} reported no value for a figure: {error!r}'
            ) from None
        self.headlines = [name for name, figure in self.measured.items() if figure.headline]
        for name, figure in self.measured.items():
            if not math.isfinite(figure.value):
                raise SanityError(f'figure {name} is {figure.value}: not a finite number')
            self.perf_variables[name] = sn.make_performance_function(
                sn.defer(figure.value), figure.unit
            )

    @run_before('performance', always_last=True)
    def select_references(self):
        if self.is_dry_run():
            return
        self.strict_check = True  # else ReFrame passes a figure that misses its reference
        held = references.merge(self, self.layers)
        self.misheld = list(references.misheld(self, held, self.measured))
        # Where these are wrong, the figures are recorded without them.
        found = {} if self.misheld else {name: one.as_reframe() for name, one in held.items()}
        self.reference = {self.current_partition.fullname: found}

    @run_after('performance', always_last=True)
    def assert_held(self):
        if self.is_dry_run():
            return
        if self.misheld:
            raise SanityError('; '.join(self.misheld))
        self.is_held = True

    @run_before('cleanup', always_last=True)
    def assert_nothing_was_left_out(self):
        if not (self.is_dry_run() or (self.is_proved and self.is_held)):
            raise SanityError(
                'nothing was proved or held to a reference: leave out --skip-sanity-check and '
                '--skip-performance-check'
            )

    def disable_hook(self, hook_name):
        raise ReframeError(f'--disable-hook={hook_name}: {type(self).__name__} proves by its hooks')
