"""What all checks share: fabric, layout and scale, and the verdict.

A check names its program and its figures; everything about launchers, MPIs and fabrics is here.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import reframe as rfm
import reframe.core.runtime as rt
import reframe.utility.sanity as sn
import yaml
from reframe.core.builtins import (
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import ReframeError, SanityError

from assay.fabrics import load_catalogue
from assay.layouts import DoesNotFitError, Node, place

#: Nodes of each scale. A partition offers a scale by the feature scale_<name>.
SCALES = {f'{n}_node' if n == 1 else f'{n}_nodes': n for n in (1, 2, 4, 8, 16)}

#: References of the checks that the system's own file has no entry for.
GENERIC = 'generic.yaml'

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
    :param better: the direction in which the figure improves.
    """

    value: float
    unit: str
    better: Literal['higher', 'lower']


class MpiCheck(rfm.RunOnlyRegressionTest):
    """An MPI program on a fabric, in a layout, at a scale.

    A subclass gives ``executable`` and ``executable_opts`` and defines :meth:`figures`; it narrows
    ``layout``, ``scale`` and ``ranks`` to what it is good for. The first layout on one node (two
    for fabrics that need a device) is the ``smoke`` mode, up to two nodes is ``maintenance``,
    everything is ``acceptance``.
    """

    fabric = parameter(_CATALOGUE.fabrics, type=str, loggable=True)
    layout = parameter(['packed'], type=str, loggable=True)
    scale = parameter(['1_node'], type=str, loggable=True)

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
            placement = place(
                self.layout,
                'srun' if launcher.startswith('srun') else self.family,
                node,
                per_node,
                self.cores_per_rank,
            )
        except DoesNotFitError as error:
            self.skip(str(error))
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

    @sanity_function
    def validate(self):
        self.verify_answers()
        if wrong := _CATALOGUE.verify(self.fabric, self.family, self.output):
            raise SanityError(wrong)
        return True

    @run_before('performance')
    def collect_figures(self):
        try:
            self.measured = self.figures()
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
            if (lower, upper) != (None, None) and (upper if better == 'lower' else lower) is None:
                raise SanityError(
                    f'the reference {reference} of {name} cannot fail: {better} is better, and '
                    f'there is no bound on the other side'
                )


@lru_cache
def _classes(references: Path) -> frozenset[str]:
    """The check classes that a file of references has entries for; none if there is no file."""
    if not references.exists():
        return frozenset()
    return frozenset(yaml.safe_load(references.read_text()) or {})
