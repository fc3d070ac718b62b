"""What all checks share: fabric, layout and scale, and the verdict.

A check names its program and its figures; everything about launchers, MPIs and fabrics is here.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import reframe as rfm
import reframe.core.runtime as rt
import reframe.utility.sanity as sn
import yaml
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import ReframeError, SanityError

from assay import paths, profile, witness
from assay.fabrics import load_catalogue
from assay.layouts import DoesNotFitError, Node, Placement, place
from assay.placement import verify_placement
from assay.traffic import verify_traffic

#: Nodes of each scale. A partition offers a scale by the feature scale_<name>.
SCALES = {f'{n}_node' if n == 1 else f'{n}_nodes': n for n in (1, 2, 4, 8, 16)}

#: References of the checks that the system's own file has no entry for.
GENERIC = 'generic.yaml'

#: The witness's report, in the job's folder.
WITNESS = 'witness.json'

_CATALOGUE = load_catalogue()
# What MPIs, launchers and shells write when a job goes wrong.
_FAILURE = re.compile(
    r'UCX +ERROR|An error occurred|Abort\(|[Ff]atal|[Kk]illed|signal \d+|cannot|could not|not found'
    r'|No such file|unreachable|undefined symbol'
)


@dataclass(frozen=True)
class Figure:
    """A performance value.

    :param value: the number measured.
    :param unit: its unit; ``1`` for a fraction of a limit.
    :param better: the direction in which the figure improves; ``exact`` for one that must not
        change at all.
    """

    value: float
    unit: str
    better: Literal['higher', 'lower', 'exact']


class BuildSources(rfm.CompileOnlyRegressionTest):
    """Builds the benchmarks and the witness once for each environment."""

    valid_systems = ['*']
    valid_prog_environs = ['+mpi']
    build_system = 'CMake'
    sourcesdir = str(paths.ROOT / 'sources')

    @run_before('compile')
    def configure_out_of_source(self):
        self.build_system.builddir = 'build'
        self.build_system.max_concurrency = os.cpu_count()
        # The sources are C only, and ReFrame's defaults for the others are Cray's names.
        self.build_system.cxx = self.build_system.ftn = self.build_system.nvcc = ''

    def product(self, name: str) -> str:
        """The absolute path of what was built."""
        return os.path.join(self.stagedir, self.build_system.builddir, name)

    @sanity_function
    def built(self):
        return True


class MpiCheck(rfm.RunOnlyRegressionTest):
    """An MPI program on a fabric, in a layout, at a scale, with the witness preloaded.

    A subclass gives ``executable`` and ``executable_opts`` and defines :meth:`figures`; it narrows
    ``layout``, ``scale`` and ``ranks`` to what it is good for. The first layout on one node (two
    for fabrics that need a device) is the ``smoke`` mode, up to two nodes is ``maintenance``,
    everything is ``acceptance``.
    """

    fabric = parameter(_CATALOGUE.fabrics, type=str, loggable=True)
    layout = parameter(['packed'], type=str, loggable=True)
    scale = parameter(['1_node'], type=str, loggable=True)

    build = fixture(BuildSources, scope='environment')

    #: What the witness records beside placement and fabric; a benchmark that times single messages
    #: leaves out the profile, which costs some ns of each.
    witness_sections = variable(str, value='placement,fabric,profile,matrix')
    #: Ranks of the whole job; None for as many as the layout puts on the nodes.
    ranks = variable(int, type(None), value=None)
    #: Cores of each rank, where the layout does not set them.
    cores_per_rank = variable(int, value=1)
    time_limit = '5m'

    @run_after('init')
    def select_where_to_run(self):
        # A fabric is offered by a partition (it has the device) and by an MPI (it was built in).
        self.valid_systems = [f'+{self.fabric} +scale_{self.scale}']
        self.valid_prog_environs = [f'+mpi +{self.fabric}']
        fabric, nodes = _CATALOGUE.fabrics[self.fabric], SCALES[self.scale]
        # Within a node an MPI may answer for a network by shared memory: nothing would be shown.
        if (fabric.reach == 'node' and nodes > 1) or (fabric.device and nodes == 1):
            self.valid_systems = []

    @run_after('init')
    def select_modes(self):
        smallest = '2_nodes' if _CATALOGUE.fabrics[self.fabric].device else '1_node'
        first = self.layout == type(self).layout.values[0]
        self.tags |= {'acceptance', self.scale}
        if SCALES[self.scale] <= 2:
            self.tags |= {'maintenance'}
        if self.scale == smallest and first:
            self.tags |= {'smoke'}

    @run_after('init')
    def select_references(self):
        folder = Path(rt.runtime().get_option('general/0/reference_prefix'))
        own = folder / f'{self.current_system.name}.yaml'
        self.reference = {'$ref': own.name if type(self).__name__ in _classes(own) else GENERIC}

    @run_after('setup')
    def apply_fabric_and_layout(self):
        launcher = self.current_partition.launcher_type.registered_name
        processor = self.current_partition.processor
        nodes = SCALES[self.scale]
        if not processor.num_cores:
            raise ReframeError(
                f'the topology of {self.current_partition.fullname} is not known: give it a '
                f'processor in its configuration, or set RFM_REMOTE_DETECT=1'
            )
        cores = processor.num_cores
        if self.current_partition.scheduler.is_local:
            cores = min(cores, len(os.sched_getaffinity(0)))
        node = Node(cores=cores, numa_domains=processor.num_numa_nodes or 1)
        per_node = None if self.ranks is None else math.ceil(self.ranks / nodes)
        try:
            self.placement: Placement = place(
                self.layout,
                'srun' if launcher.startswith('srun') else self.family,
                node,
                per_node,
                self.cores_per_rank,
            )
        except DoesNotFitError as error:
            self.skip(str(error))
        placement = self.placement
        self.num_tasks = placement.ranks * nodes
        self.num_tasks_per_node = placement.ranks
        self.num_cpus_per_task = placement.threads
        self.skip_if(
            self.num_tasks < 2,
            f'layout {self.layout} puts 1 rank on {nodes} node(s): no message can be sent',
        )
        self.job.launcher.options = placement.options + self.job.launcher.options
        # Variables that the user sets (-S env_vars=...) win: the statement tells what came of it.
        self.env_vars = {
            **placement.env,
            **{
                name: shlex.quote(value)
                for name, value in _CATALOGUE.variables(self.fabric, self.family).items()
            },
            **self.env_vars,
        }

    @run_before('run')
    def preload_witness(self):
        # A library that the user preloads comes first: a tool of MPI calls then sees them.
        libraries = [self.env_vars.get('LD_PRELOAD'), self.build.product('libassay_witness.so')]
        self.env_vars['LD_PRELOAD'] = ':'.join(filter(None, libraries))
        self.env_vars['ASSAY_WITNESS'] = self.witness_sections
        self.env_vars['ASSAY_WITNESS_REPORT'] = WITNESS
        self.keep_files = [*self.keep_files, WITNESS]

    @run_before('sanity')
    def assert_job_ended_well(self):
        if code := self.job.exitcode:
            raise SanityError(f'{self.program_name} ended with exit code {code}: {self.reason}')

    @property
    def program_name(self) -> str:
        return os.path.basename(self.executable)

    @property
    def family(self) -> str:
        """The MPI family of the environment."""
        return self.current_environ.extras['family']

    @property
    def output(self) -> str:
        """Standard output and error of the job."""
        return '\n'.join(
            Path(self.stagedir, name).read_text(errors='replace')
            for name in (self.job.stdout, self.job.stderr)
        )

    @property
    def reason(self) -> str:
        """The line of the output that says best why the job failed."""
        lines = [line.strip() for line in self.output.splitlines() if re.search(r'\w', line)]
        own = [line for line in lines if line.startswith(f'{self.program_name}: ')]
        telling = [line for line in lines if _FAILURE.search(line)]
        return next(iter(own or telling or lines[-1:]), 'it printed nothing')

    def verify_answers(self) -> None:
        """Hold the program's own verdict and the problem it says it ran against what was asked.

        :raises SanityError: with a sentence that says what is wrong.
        """
        raise NotImplementedError

    def figures(self) -> dict[str, Figure]:
        """The figures of the job, by name."""
        raise NotImplementedError

    @cached_property
    def witnessed(self) -> witness.Report:
        """What the witness saw of the job.

        :raises SanityError: if there is no report, or it is not whole.
        """
        try:
            report = witness.read(Path(self.stagedir, WITNESS))
        except witness.WitnessError as error:
            raise SanityError(f'{error} ({self.reason})') from None
        if not report.complete:
            raise SanityError(f'{self.program_name} did not reach MPI_Finalize: {self.reason}')
        return report

    def faults(self) -> Iterator[str | None]:
        """Every way in which the job can have run other than asked: a sentence, None if not so."""
        report, mpi = self.witnessed, _CATALOGUE.mpis[self.family]
        yield witness.verify_mpi(report, mpi.library, mpi.name)
        if report.ranks != self.num_tasks:
            yield (
                f'{self.program_name} ran with {report.ranks} rank(s) instead of '
                f"{self.num_tasks}: was it started by another MPI's launcher?"
            )
        yield verify_placement(report, self.layout, self.placement.threads, self.placement.ranks)
        yield _CATALOGUE.verify(self.fabric, self.family, self.output)
        yield verify_traffic(report, _CATALOGUE.fabrics[self.fabric].carrier, self.fabric)

    @sanity_function
    def validate(self):
        self.verify_answers()
        for fault in self.faults():
            if fault:
                raise SanityError(fault)
        return True

    def witness_figures(self) -> dict[str, Figure]:
        """Where the time of the job went, and how much it sent."""
        if not self.witnessed.has_profile:
            return {}
        seen = profile.figures(self.witnessed)
        return {
            'comm_share': Figure(seen.comm_share, '1', 'lower'),
            'imbalance_share': Figure(seen.imbalance_share, '1', 'lower'),
            'messages': Figure(seen.messages, '1', 'exact'),
            'bytes': Figure(seen.bytes, 'B', 'exact'),
        }

    @run_before('performance')
    def collect_figures(self):
        try:
            self.measured = self.figures() | self.witness_figures()
        except (KeyError, IndexError, StopIteration, ZeroDivisionError) as error:
            raise SanityError(
                f'{self.program_name} reported no value for a figure: {error!r}'
            ) from None
        for name, figure in self.measured.items():
            if not math.isfinite(figure.value):
                raise SanityError(f'figure {name} is {figure.value}: not a finite number')
            self.perf_variables[name] = sn.make_performance_function(
                sn.defer(figure.value), figure.unit
            )

    @run_after('performance')
    def assert_references_can_fail(self):
        for key, (_, reference, lower, upper, *_) in self.perfvalues.items():
            name = key.rpartition(':')[2]
            better = self.measured[name].better
            needed = {'lower': [upper], 'higher': [lower], 'exact': [lower, upper]}[better]
            if (lower, upper) != (None, None) and None in needed:
                side = 'both sides' if better == 'exact' else 'the other side'
                raise SanityError(
                    f'the reference {reference} of {name} cannot fail: {better} is better, and '
                    f'there is no bound on {side}'
                )


@lru_cache
def _classes(references: Path) -> frozenset[str]:
    """The check classes that a file of references has entries for; none if there is no file."""
    if not references.exists():
        return frozenset()
    return frozenset(yaml.safe_load(references.read_text()) or {})
