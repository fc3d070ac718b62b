"""Builds of our sources for checks, one for each environment."""

from __future__ import annotations

import copy
import os
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.core.runtime as rt
import reframe.utility.osext as osext
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import BuildError, ReframeError

from assay import AssayError, paths, say
from assay.checks.cases import IN_QUEUE, KeepsTimeLimit, TakesTurns
from assay.config.environments import MORE_FLAGS, OTHER_SOURCES, OURS
from assay.config.scales import nodes_of_scale, scales_in
from assay.job.ending import ONLY_ONCE, why_cut_short
from assay.machine.job_states import PREEMPTED
from assay.machine.provenance import Provenance, checksum, of_cmake, read_flags
from assay.running import allocation
from assay.spack.builds import build_of
from assay.spack.lock_file import Build

#: The witness, which the benchmarks bring.
LIBRARY = 'libassay_witness.so'

#: Jobs of a build, where the nodes of each but the last were given to others.
JOBS = 3

SHARE = Path(__file__).with_name('share_build.sh')


def installed_build(check: rfm.RegressionTest, package: str) -> Build:
    """The build of a package that Spack has installed for the environment of a check.

    :raises ReframeError: if that is not there.
    """
    try:
        return build_of(check.current_system.name, check.current_environ.name, package)
    except AssayError as error:
        raise ReframeError(str(error)) from None


class BuildSources(
    rfm.CompileOnlyRegressionTest,
    TakesTurns,
    KeepsTimeLimit,
    special=True,  # type: ignore[call-arg]  # which mypy, without ReFrame's own types, misses
):
    """The benchmarks and the witness, by CMake; or as Spack has installed them.

    Spack builds for the environments that have the feature ``spack``, all before ReFrame starts.
    """

    valid_systems = ['*']
    valid_prog_environs = ['+mpi']
    build_system: Any = 'CMake'  # ReFrame makes an object of the name
    sourcesdir: str | None = str(paths.SOURCES)
    target = 'benchmarks'
    build_time_limit = '30m'
    max_pending_time = IN_QUEUE

    @run_after('init')
    def build_in_turn_with_jobs(self) -> None:
        # ReFrame counts local builds apart: one would disturb a job on the same machine. As a step
        # of one job for all cases it would take nodes from these.
        in_one_job = allocation.VARIABLE in os.environ
        partitions = rt.runtime().system.partitions
        if not in_one_job and all(partition.max_jobs == 1 for partition in partitions):
            self.build_locally = False

    @run_before('compile')
    def ask_for_nodes(self) -> None:
        """As many as a job of the partition has at least."""
        where = self.current_partition
        sizes = (nodes_of_scale(name, where.extras) for name in scales_in(where.features))
        self.build_job.num_tasks = min(sizes, default=1)
        self.build_job.num_tasks_per_node = 1

    @property
    def is_by_spack(self) -> bool:
        return 'spack' in self.current_environ.features

    @cached_property
    def installed(self) -> Build:
        """The build of our sources that Spack has installed."""
        return installed_build(self, OURS)

    @run_before('compile')
    def choose_how(self) -> None:
        self.sourcesdir = os.environ.get(OTHER_SOURCES, self.sourcesdir)
        if fault := self.current_environ.extras.get('fault'):
            raise ReframeError(fault)
        if self.is_by_spack:
            self.look_for_what_is_installed()
        else:
            self.configure_out_of_source()

    def look_for_what_is_installed(self) -> None:
        """Test that what Spack installed can be read where a build would run: maybe on a node."""
        self.sourcesdir = None
        self.build_system = 'CustomBuild'
        witness = shlex.quote(self.product(LIBRARY))
        self.build_system.commands = [
            f'test -r {witness} || {{ echo {witness} is not there >&2; exit 1; }}'
        ]

    def configure_out_of_source(self) -> None:
        """Build in a folder that all runs with the same build share; ``build`` links to it."""
        if not self.current_environ.cxx:
            raise ReframeError(
                f'environment {self.current_environ.name} has no C++ compiler, which the '
                f'applications need: give it cxx in its configuration, or install one for its MPI'
            )
        self.build_system.build_opts = [self.target]
        self.build_system.builddir = 'build'
        # Nothing is Fortran or CUDA, and ReFrame's defaults for these are Cray's names.
        self.build_system.ftn = self.build_system.nvcc = ''
        environ = self.current_environ
        if told := os.environ.get(MORE_FLAGS):
            more = read_flags(told)
            self.build_system.cflags = [*environ.cflags, *shlex.split(more.get('C', ''))]
            self.build_system.cxxflags = [*environ.cxxflags, *shlex.split(more.get('C++', ''))]
        flags = [' '.join(words) for words in (environ.cflags, environ.cxxflags)]
        # With all that the environment's configuration says: its other flags too.
        commands = '; '.join(self.build_system.emit_build_commands(environ))
        same = [str(paths.BUILDS), environ.cc, environ.cxx, *flags, commands]
        self.prebuild_cmds = [shlex.join(['.', str(SHARE), *same])]
        self.postbuild_cmds = ['(cd build && assay_seal)']
        # After that: how many compilers run at once makes no build another.
        self.build_system.max_concurrency = len(os.sched_getaffinity(0))

    @run_before('compile', always_last=True)
    def start_only_once(self) -> None:
        scheduler = self.current_partition.scheduler.registered_name
        if not self.build_locally:
            self.build_job.options += filter(None, [ONLY_ONCE.get(scheduler)])
        self._not_submitted = copy.copy(self.build_job)
        self._jobs = 1

    def compile_complete(self) -> bool:
        if not super().compile_complete():
            return False
        job = self.build_job
        state = (job and job.state) or ''
        if state == PREEMPTED and self._jobs < JOBS:
            say(f'{self.display_name}: its job was preempted; built again')
            self._jobs += 1
            self._build_job = copy.copy(self._not_submitted)
            self._build_job.time_limit = job.time_limit
            with osext.change_dir(self.stagedir):
                self._build_job.submit()
            return False
        # ReFrame goes on with what such a job left, if that has no exit code.
        if job and (
            reason := why_cut_short(state, Path(self.stagedir), Path(self.stagedir, job.stderr))
        ):
            raise BuildError(reason.partition(';')[0])
        return True

    def compile_wait(self) -> None:
        # A policy that runs one case after the other asks for nothing but this.
        while not self.compile_complete():
            self.build_job.wait()
        super().compile_wait()

    def product(self, name: str) -> str:
        """The absolute path of what was built."""
        if self.is_by_spack:
            return str(self.installed.path(name))
        # Not by the link: this run's stage may go before another use of the path.
        return os.path.join(os.path.realpath(os.path.join(self.stagedir, 'build')), name)

    @cached_property
    def provenance(self) -> Provenance:
        """The sources, compiler and flags of the build."""
        if self.is_by_spack:
            return self.installed.provenance
        extras = self.current_environ.extras
        mpi = f'{extras["family"]}@{extras.get("version", "")}'
        sources = checksum(Path(self.sourcesdir or paths.SOURCES))
        try:
            return of_cmake(Path(self.stagedir, self.build_system.builddir), mpi, sources)
        except FileNotFoundError as error:
            raise ReframeError(
                f'the build left no {error.filename}: see whether its node can write there'
            ) from None

    @sanity_function
    def is_built(self) -> bool:
        return True
