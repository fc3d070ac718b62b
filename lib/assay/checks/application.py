"""Checks of applications: one problem of a size, on our sources, a binary that exists, or Spack's.

Upstream's of ours run beside ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import reframe.core.runtime as rt
from reframe.core.builtins import fixture, parameter, run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SanityError

from assay.checks.benchmark import RESULT, as_sanity_error, read_result
from assay.checks.build import LIBRARY, BuildSources, installed_build
from assay.checks.cases import scales
from assay.checks.check import MpiCheck
from assay.checks.launching import is_script
from assay.config.environments import feature
from assay.config.fabrics import load_catalogue
from assay.config.scales import is_at_most
from assay.job.launch import Launch, LaunchError
from assay.layout.launchers import add_part_script, command_of_parts
from assay.machine.provenance import Provenance, of_binary
from assay.machine.topology import usable_memory
from assay.programs.application import CLOCK_RATE, Application, Problem, WrongAnswerError
from assay.programs.benchmarks import check_stream
from assay.programs.figure import Figure, Quantity
from assay.programs.sizes import NodeMemory, last_level_caches, working_set
from assay.spack.lock_file import Build

_CATALOGUE = load_catalogue()
GIB = float(1 << 30)


class BuildHPL(BuildSources):
    """HPL alone: what no selected case needs is not built."""

    target = 'hpl'


class BuildMiniFE(BuildSources):
    """MiniFE alone."""

    target = 'minife'


class BuildMiniMD(BuildSources):
    """MiniMD alone."""

    target = 'minimd'


class BuildMiniGhost(BuildSources):
    """MiniGhost alone."""

    target = 'minighost'


class ApplicationJob(MpiCheck):
    """The common part of all checks of applications: the program, and the memory of a node.

    A subclass gives ``application``, the fixture ``build`` of it, and the parameter ``size``. ``-S
    <class>.binary=PATH`` runs another build, such as upstream's from Spack or a vendor's.
    """

    application: Application
    needs = {**MpiCheck.needs, 'application': 'name the program and its problem'}
    size: str
    benchmarks: BuildSources = fixture(BuildSources, scope='environment')
    binary: str = variable(str, value='')
    #: Whose figures these are: they are never held against another's references.
    implementation: str = variable(str, value='assay', loggable=True)
    least_ranks = 1

    # Whatever a user set before (-S, -P): what is not ours need not be held to anything.
    @run_after('setup')
    def tell_implementation(self) -> None:
        self.implementation = os.path.basename(self.binary) if self.binary else 'assay'

    @run_after('init')
    def run_once_within_a_node(self) -> None:
        if is_at_most(self.scale, 1):
            self.narrow_to_first_fabric()

    @property
    def is_first_fabric(self) -> bool:
        """Whether this is a fabric to run applications on before others.

        Between nodes it is the first network of one of the system's MPIs, a fast one if it has one.
        """
        return is_at_most(self.scale, 1) or self.fabric in _first_networks()

    @property
    def is_maintenance_case(self) -> bool:
        return self.is_first_fabric and self.size == 'memory' and super().is_maintenance_case

    @property
    def memory(self) -> NodeMemory:
        """The caches and memory of the partition's nodes.

        :raises ReframeError: if nobody has said it.
        """
        partition = self.current_partition
        if partition.scheduler.is_local:
            total = float(usable_memory())
        elif 'memory_gib' in partition.extras:
            total = float(partition.extras['memory_gib']) * GIB
        else:
            raise ReframeError(
                f"the memory of a node of {partition.fullname} is not known: give 'memory_gib' in "
                f'the extras of its configuration'
            )
        return NodeMemory(last_level_caches(partition.processor.topology or {}), total)

    def problem(self, size: str, nodes: float, ranks: int, threads: int) -> Problem:
        """The application's problem of a size, for some nodes' (or a part of a node's) memory."""
        try:
            return self.application.problem(nodes * working_set(size, self.memory), ranks, threads)
        except ValueError as error:
            self.skip(str(error))

    def write_files(self, problem: Problem, folder: str = '') -> None:
        """Give the program its input, in the job's folder or in one that is in it."""
        for name, content in problem.files.items():
            Path(self.stagedir, folder, name).write_text(content)

    def read_apart(self, launch: Launch, problem: Problem) -> dict[str, Figure]:
        """The figures of a start in a folder of its own, once all about it is right.

        :raises WrongAnswerError, LaunchError: with a sentence that says what is wrong.
        """
        launch.assert_ended_well()
        figures = self.application.read(
            launch.text, launch.folder, problem, launch.ranks, launch.placement.threads
        )
        launch.assert_as_asked()
        return figures

    @property
    def witness_library(self) -> str:
        return self.benchmarks.product(LIBRARY)

    @property
    def program_name(self) -> str:
        return os.path.basename(self.binary) or self.application.program

    def command_of(self, program: str) -> str | None:
        own = self.binary and program == self.program_name
        return None if own and is_script(self.binary) else program

    @property
    def program_path(self) -> str:
        """The executable; absolute, as jobs run in folders of their own."""
        if self.binary:
            return os.path.abspath(self.binary)
        return self.build.product(self.application.program)

    @property
    def provenance(self) -> Provenance:
        return of_binary(Path(self.program_path)) if self.binary else super().provenance


class ApplicationCheck(ApplicationJob):
    """One run of an application. Caches' size is ``smoke``, memory's ``maintenance``."""

    size: str = parameter(['cache', 'memory', 'largest'], type=str, loggable=True)
    layout: str = parameter(['packed', 'hybrid'], type=str, loggable=True)
    scale: str = parameter(scales(), type=str, loggable=True)
    #: Another build of it for the first rank of each node, in layout ``mixed``.
    wide_binary: str = variable(str, value='')

    @property
    def is_smoke_case(self) -> bool:
        is_small = self.size == 'cache' and is_at_most(self.scale, 4)
        return self.is_first_fabric and is_small and self.is_first_layout

    @run_after('init')
    def limit_time(self) -> None:
        self.time_limit = {'cache': '5m', 'memory': '30m', 'largest': '6h'}[self.size]

    def command_of(self, program: str) -> str | None:
        if self.wide_binary and self.placement.widths:
            return None if is_script(self.wide_binary) else os.path.basename(self.wide_binary)
        return super().command_of(program)

    @cached_property
    def asked(self) -> Problem:
        """The problem that the job computes."""
        return self.problem(self.size, self.node_count, self.num_tasks, self.placement.threads)

    @run_before('run')
    def set_problem(self) -> None:
        self.write_files(self.asked)
        command = [self.program_path, *self.asked.arguments]
        if widths := self.placement.widths:
            wide = os.path.abspath(self.wide_binary) if self.wide_binary else self.program_path
            add_part_script(Path(self.stagedir))
            command = command_of_parts(widths, wide, *command)
        self.executable, *self.executable_opts = command
        # Without them nobody could read the figures once more.
        self.keep_files = [*self.keep_files, *self.application.leaves]

    def verify_answers(self) -> None:
        launch = self.launch
        threads = max(launch.placement.widths, default=launch.placement.threads)
        with as_sanity_error(launch.program):
            self.answer = self.application.read(
                launch.text, launch.folder, self.asked, launch.ranks, threads
            )

    def figures(self) -> dict[str, Figure]:
        name = self.application.headline
        if name not in self.answer:  # of a program that times no windows
            name = self.application.rate
        return self.answer | {name: replace(self.answer[name], headline=True)}


def _first_networks() -> set[str]:
    """The network of each MPI of this system that applications run on before others."""
    networks = _CATALOGUE.best_first(across_nodes=True)
    usable = (
        [name for name in networks if name in partition.features and name in environ.features]
        for partition in rt.runtime().system.partitions
        for environ in partition.environs
    )
    return {names[0] for names in usable if names}


#: The folder of our own run.
OURS = 'ours'


class PackageCheck(ApplicationCheck):
    """An application with something of a package of Spack's.

    A subclass gives ``package``. It runs in environments that Spack builds the package for
    (``assay run --with spack:<package>``).
    """

    package: str = variable(str)
    is_smoke_case = False

    @run_after('setup')
    def tell_implementation(self) -> None:
        self.implementation = self.package

    @run_after('init')
    def need_package(self) -> None:
        self.narrow_to_features(feature(self.package))

    @cached_property
    def installed(self) -> Build:
        return installed_build(self, self.package)


class SpackApplicationCheck(PackageCheck):
    """An application on the program of a package of Spack's, which a subclass names."""

    program: str = variable(str)

    @property
    def program_name(self) -> str:
        return self.program

    @property
    def program_path(self) -> str:
        return str(self.installed.path(self.program))

    @property
    def provenance(self) -> Provenance:
        return self.installed.provenance


#: The program that measures what the memory gives, and the folder of its run.
STREAM = 'stream'

#: What a check beside the triad measures of it.
OF_TRIAD = {'triad': Quantity('GB/s', 'higher')}


class BesideTriadCheck(SpackApplicationCheck):
    """Such an application that has no counterpart of ours, beside the triad of the same cores.

    The triad is measured just before, in the same job.
    """

    @run_before('run')
    def run_stream_before(self) -> None:
        stream = self.benchmarks.product(STREAM)
        self.start_before(STREAM, self.start_line(stream, '--json', RESULT))

    def verify(self) -> None:
        try:
            launch = self.launch_apart(STREAM, STREAM, self.placement, self.num_tasks)
            launch.assert_ended_well()
            report = read_result(Path(launch.folder, RESULT), STREAM, lambda: launch.reason)
            with as_sanity_error(STREAM):
                check_stream(report)
            launch.assert_as_asked()
        except LaunchError as error:
            raise SanityError(f'{STREAM}: {error}') from None
        self.triad = 1e-9 * next(
            one['bandwidth']['best']
            for one in report['results']
            if one['operation'] == 'triad' and one['ranks'] == 'together'
        )
        super().verify()
        if self.launch.witnessed.has_profile:
            first, *_ = ranks = self.launch.witnessed.processes
            with as_sanity_error(self.program_name):
                self.hold_against_witness(
                    min(rank.wall for rank in ranks),
                    {name: call.count for name, call in first.calls.items()},
                )

    def figures(self) -> dict[str, Figure]:
        return super().figures() | self.as_figures(triad=self.triad)

    def hold_against_witness(self, wall: float, calls: Mapping[str, int]) -> None:
        """Hold what the program said against what was seen of its ranks.

        :param wall: seconds from the start to the end of a rank, the shortest.
        :param calls: how often the first rank called what of MPI.
        :raises WrongAnswerError: if it said that it did more, or took longer.
        """
        if (said := self.answer[self.application.time].value) > wall * (1 + CLOCK_RATE):
            raise WrongAnswerError(f'{said:g} s are reported, but it took {wall:g} s')


class UpstreamCheck(SpackApplicationCheck):
    """The same problem as ours, read and verified the same way, on upstream's program.

    Our own program runs it just before, in the same job: the figure ``<rate>_of_ours`` is
    upstream's rate as a fraction of ours, both of the whole time, as upstream has no windows.
    """

    # Most of them are built without threads.
    layout: str = parameter(['packed'], type=str, loggable=True)

    @run_before('run')
    def run_ours_before(self) -> None:
        program = self.build.product(self.application.program)
        self.start_before(OURS, self.start_line(program, *self.asked.arguments))
        self.write_files(self.asked, OURS)

    def verify(self) -> None:
        program = self.application.program
        try:
            launch = self.launch_apart(OURS, program, self.placement, self.num_tasks)
            self.ours = self.read_apart(launch, self.asked)
        except (WrongAnswerError, LaunchError) as error:
            raise SanityError(f'our own {program}: {error}') from None
        super().verify()

    def figures(self) -> dict[str, Figure]:
        figures, time = super().figures(), self.application.time
        of_ours = self.ours[time].value / figures[time].value
        return figures | {f'{self.application.rate}_of_ours': Figure(of_ours, '1', 'higher')}
