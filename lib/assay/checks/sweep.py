"""Series of runs of an application in one job, on the same nodes: scaling, balance and sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError
from tabulate import tabulate

from assay import witness
from assay.checks.application import ApplicationJob
from assay.checks.cases import scales
from assay.job.launch import WITNESS, LaunchError
from assay.layout.layouts import Placement
from assay.programs import series
from assay.programs.application import Problem, WrongAnswerError
from assay.programs.figure import Figure, Quantity
from assay.witness.disturbance import greatest_figures

TABLE = 'sweep.txt'

Sweep = Literal['strong', 'weak', 'ranks-x-threads', 'size']


def series_measures(unit: str) -> dict[str, Quantity]:
    """The figures of all kinds of series, by names.

    :param unit: of the application's rate.
    """
    rate, ratio = Quantity(unit, 'higher'), Quantity('1', 'higher')
    return {
        'speedup_*': ratio,
        'efficiency_*': ratio,
        'efficiency': replace(ratio, headline=True),
        'knee': Quantity('ranks', 'higher'),
        'best': rate,
        'worst': rate,
        'worst_over_best': replace(ratio, headline=True),
        'rate_*': rate,
    }


class SweepRun(NamedTuple):
    """A run of a series: which, where its ranks go on each node, and what it computes."""

    point: series.Point
    placement: Placement
    problem: Problem


class ApplicationSweep(ApplicationJob):
    """One application again and again: over ranks and nodes, ranks x threads, or sizes.

    ``strong`` keeps one node's problem, ``weak`` grows it with the ranks; ``ranks-x-threads`` fills
    the nodes in every way; ``size`` goes from the starved problem up to the one of ``size``.
    """

    sweep: Sweep = parameter(get_args(Sweep), type=str, loggable=True)
    size: str = parameter(['cache', 'memory'], type=str, loggable=True)
    layout: str = parameter(['packed'], type=str, loggable=True)
    scale: str = parameter(scales(), type=str, loggable=True)
    time_limit = '6h'
    is_smoke_case = False

    @run_after('setup')
    def plan(self) -> None:
        cores, nodes = self.node.cores, self.node_count
        match self.sweep:
            case 'strong' | 'weak':
                points = series.scaling_points(cores, nodes, self.size, self.sweep == 'weak')
            case 'ranks-x-threads':
                points = series.factorisations(cores, nodes, self.size)
            case 'size':
                points = series.sizes_up_to(cores, nodes, self.size)
        self.skip_if(len(points) < 2, f'a node of {cores} core has nothing to sweep over')
        self.runs = [
            SweepRun(
                point,
                self.place(point.ranks // point.nodes, point.threads),
                self.problem(point.size, point.worth, point.ranks, point.threads),
            )
            for point in points
        ]

    @run_before('run')
    def launch_each_point(self) -> None:
        for point, placement, problem in self.runs:
            command = [self.program_path, *problem.arguments]
            line = self.start_line(*command, placed=(placement, point.ranks))
            self.prerun_cmds = [*self.prerun_cmds, f'echo {point.name}']
            self.start_before(point.name, line)
            self.write_files(problem, point.name)
        self.job.launcher = getlauncher('local')()
        self.executable, self.executable_opts = 'true', []
        self.keep_files = [*self.keep_files, TABLE]

    def verify(self) -> None:
        self.answers: list[dict[str, Figure]] = []
        for point, placement, problem in self.runs:
            try:
                launch = self.launch_apart(point.name, self.program_name, placement, point.ranks)
                answer = self.read_apart(launch, problem)
            except (WrongAnswerError, LaunchError) as error:
                raise SanityError(f'{self.application.name} of {point.name}: {error}') from None
            self.answers.append(answer | launch.witness_figures())
        (self.ended_job.folder / TABLE).write_text(self.table())

    @property
    def ran(self) -> witness.Report:
        return witness.read_witness(self.ended_job.folder / self.runs[0].point.name / WITNESS)

    def table(self) -> str:
        """One line a point: its rate, its fraction of the limit, and where its time went."""
        rate = self.application.rate
        columns = [
            rate,
            *(name for name in self.answers[0] if name.endswith('_of_limit')),
            'comm_share',
            'imbalance_share',
        ]
        rows = [
            [run.point.nodes, run.point.ranks, run.point.threads, run.point.size]
            + [answer[name].value if name in answer else None for name in columns]
            for run, answer in zip(self.runs, self.answers, strict=True)
        ]
        headers = ['nodes', 'ranks', 'threads', 'size']
        headers += [f'{rate} [{self.answers[0][rate].unit}]', *columns[1:]]
        table: str = tabulate(rows, headers, floatfmt='.4g')
        return table + '\n'

    def figures(self) -> dict[str, Figure]:
        rates = [answer[self.application.rate] for answer in self.answers]
        values = [rate.value for rate in rates]
        match self.sweep:
            case 'strong' | 'weak':
                return series.scaling_figures([run.point.ranks for run in self.runs], values)
            case 'ranks-x-threads':
                return series.balance_figures(values, rates[0].unit)
            case 'size':
                sizes = [f'rate_{run.point.size}' for run in self.runs]
                return dict(zip(sizes, rates, strict=True)) | series.balance_figures(
                    values, rates[0].unit
                )

    def witness_figures(self) -> dict[str, Figure]:
        """Each run's imbalance, and of the disturbances the greatest of any run."""
        imbalance = {
            f'imbalance_share_{run.point.name}': answer['imbalance_share']
            for run, answer in zip(self.runs, self.answers, strict=True)
            if run.point.ranks > 1
        }
        return imbalance | greatest_figures(self.answers)
