"""How the job of a check is judged: first what it was, then its figures, each with what it tells of
itself: what was built, and what it ran with.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict

import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from assay import say, witness
from assay.checks.part import CheckPart
from assay.config import references
from assay.config.reference_files import ReferencesError
from assay.job.ending import why_cut_short
from assay.job.launch import LaunchError, reports_in, tell_names
from assay.layout.layouts import GIVEN, unusual_binding
from assay.machine.job_states import PREEMPTED
from assay.machine.provenance import Provenance, suite_commit
from assay.machine.slurm import SCHEDULERS
from assay.programs.figure import Figure, Quantity, figures_of
from assay.results.cases import NO_EVIDENCE
from assay.text import as_field, plain
from assay.witness.disturbance import disturbances, taken_by_others
from assay.witness.profile import slowest_ranks
from assay.witness.settings import facts, machine_facts


class IsJudged(CheckPart):
    """A check that fails unless its job was what was asked for, and its figures are in bounds."""

    # No variables, which a user could set: without them nothing would be proved.
    #: The figures that a job of the check may have, by names, in which ``*`` stands for any text.
    #: A contract is held against them. Figures of the witness are not among them.
    measures: Mapping[str, Quantity] = {}

    #: Figures that not every machine offers: a job without one is not held to its reference.
    may_lack: frozenset[str] = frozenset()

    #: Of what the witness counts, what is the same in each job of the program: not where it sends
    #: for as long as it has time. Others are no figures.
    always_sends: frozenset[str] = frozenset({'messages', 'bytes'})

    #: Names of the figures that are shown whether a reference bounds them or not.
    headlines: list[str] = variable(typ.List[str], value=[], loggable=True)

    #: Of each figure its ``better``, so that the history knows it.
    directions: dict[str, str] = variable(typ.Dict[str, str], value={}, loggable=True)

    #: What disturbed the job while figures were taken, a sentence for each kind of it.
    disturbances: list[str] = variable(typ.List[str], value=[], loggable=True)
    #: Of these what others took: such figures are no evidence in the history.
    taken_by_others: list[str] = variable(typ.List[str], value=[], loggable=True)

    #: By figure of the start and the end of the job which rank took longest, in words.
    slowest_ranks: dict[str, str] = variable(typ.Dict[str, str], value={}, loggable=True)

    #: What people are to know of the job though it passed, in a sentence; empty if nothing.
    finding: str = variable(str, value='', loggable=True)

    #: Whether the job was proved to be what was asked for, and its figures held to references.
    is_proved = False
    is_held = False

    # A case that ends before it has figures stores these as they are then.
    @run_after('init')
    def forget_what_a_user_set(self) -> None:
        self.headlines, self.directions = [], {}
        self.disturbances, self.taken_by_others, self.slowest_ranks = [], [], {}
        self.finding = ''

    def remark(self, words: str) -> None:
        """Say something of a case that passes, beside what was said of it before."""
        if words not in self.finding:
            self.finding = '; '.join(filter(None, (self.finding, words)))

    # Before any job, because a mistake in a file need not cost one; not before the setup, because
    # most checks are made but not run.
    @run_after('setup')
    def read_references(self) -> None:
        try:
            self.layers = references.layers(self)
        except ReferencesError as error:
            raise ReframeError(str(error)) from None

    def verify_answers(self) -> None:
        """Hold the program's own verdict and the problem it says it ran against what was asked.

        :raises SanityError: with a sentence that says what is wrong.
        """
        raise NotImplementedError

    def figures(self) -> dict[str, Figure]:
        """The figures of the job, by name."""
        raise NotImplementedError

    def as_figures(self, **values: float) -> dict[str, Figure]:
        """Figures that :attr:`measures` declares, by their names there.

        :raises ReframeError: if one is not declared.
        """
        if undeclared := sorted(values.keys() - self.measures.keys()):
            raise ReframeError(
                f'{type(self).__name__}: measures does not declare {", ".join(undeclared)}'
            )
        return figures_of(self.measures, values)

    def verify(self) -> None:
        """Everything that has to be right before a figure counts.

        :raises SanityError, LaunchError: with a sentence that says what is wrong.
        """
        self.launch.assert_ended_well()
        self.verify_answers()
        self.launch.assert_as_asked()

    def prove(self) -> None:
        """See that the job that has ended was what was asked for.

        :raises SanityError: with a sentence that says what is wrong.
        """
        job = self.ended_job
        if self.current_partition.scheduler.registered_name in SCHEDULERS:
            tell_names(job.folder, job.nodes)
        if reason := why_cut_short(job.state, job.folder, job.folder / job.stderr, job.nodes):
            others = NO_EVIDENCE if job.state == PREEMPTED else ''
            raise SanityError(f'{others}{reason}')
        try:
            self.verify()
        except LaunchError as error:
            raise SanityError(str(error)) from None

    def read_job(self) -> dict[str, Figure]:
        """The figures of the job that has ended, once all about it is right.

        :raises SanityError: with a sentence that says what is wrong.
        """
        self.prove()
        return self.figures() | self.witness_figures()

    @sanity_function
    def validate(self) -> bool:
        self.look_for_leftovers()
        self.prove()
        if lacks := self.launch.lacks:
            self.skip(f'layout {self.layout}: {lacks}')
        self.is_proved = True
        if self.layout == GIVEN and (told := unusual_binding(self.launch.witnessed)):
            say(plain(f'{self.display_name}: {told}'))
        return True

    def witness_figures(self) -> dict[str, Figure]:
        """Figures of the witness; exact ones only if the program always sends as much."""
        return {
            name: figure
            for name, figure in self.launch.witness_figures().items()
            if figure.better != 'exact' or name in self.always_sends
        }

    @run_before('performance')
    def collect_figures(self) -> None:
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
        self.directions = {name: figure.better for name, figure in self.measured.items()}
        reports = [*reports_in(self.ended_job.folder)]
        self.slowest_ranks = slowest_ranks(reports)
        self.disturbances = disturbances(reports)
        # Nodes that share the machine's CPUs, and the program that carries their packets, count as
        # others for each other: where a network gets slow by that, no job would be evidence of it.
        foreign = not self.current_partition.extras.get('on_this_machine')
        self.taken_by_others = taken_by_others(reports, foreign)
        for name, figure in self.measured.items():
            if not math.isfinite(figure.value):
                raise SanityError(f'figure {name} is {figure.value}: not a finite number')
            self.perf_variables[name] = sn.make_performance_function(
                sn.defer(figure.value), figure.unit
            )

    @run_before('performance', always_last=True)
    def select_references(self) -> None:
        if self.is_dry_run():
            return
        self.strict_check = True  # else ReFrame passes a figure that misses its reference
        held = references.merge(self, self.layers, self.measured)
        self.reference_problems = [
            *references.set_too_late(self, self.layers),
            *references.reference_loopholes(self, held, self.measured),
        ]
        if self.reference_problems:
            held = {}  # the figures are recorded all the same
        self.reference = {
            self.current_partition.fullname: {name: one.as_reframe() for name, one in held.items()}
        }

    @run_after('performance', always_last=True)
    def assert_held(self) -> None:
        if self.is_dry_run():
            return
        if self.reference_problems:
            raise SanityError('; '.join(self.reference_problems))
        self.is_held = True

    @run_before('cleanup', always_last=True)
    def assert_nothing_was_left_out(self) -> None:
        if not (self.is_dry_run() or (self.is_proved and self.is_held)):
            raise SanityError(
                'nothing was proved or held to a reference: leave out --skip-sanity-check and '
                '--skip-performance-check'
            )


class Attributed(CheckPart):
    """A check whose every figure tells what was measured: fields of reports and of the perflog.

    ``built_*`` is what the program was made from, ``ran_*`` what the job ran with, and ``ran_on_*``
    what its nodes are, as the witness saw it. The job's id and nodes are ReFrame's own.
    """

    built_by: str = variable(str, value='', loggable=True)
    built_spec: str = variable(str, value='', loggable=True)
    built_hash: str = variable(str, value='', loggable=True)
    built_compiler: str = variable(str, value='', loggable=True)
    built_flags: str = variable(str, value='', loggable=True)
    built_mpi: str = variable(str, value='', loggable=True)
    built_blas: str = variable(str, value='', loggable=True)
    built_target: str = variable(str, value='', loggable=True)
    built_commit: str = variable(str, value='', loggable=True)
    ran_mpi: str = variable(str, value='', loggable=True)
    ran_modules: str = variable(str, value='', loggable=True)
    ran_variables: str = variable(str, value='', loggable=True)
    ran_settings: str = variable(str, value='', loggable=True)
    ran_on_kernel: str = variable(str, value='', loggable=True)
    ran_on_processor: str = variable(str, value='', loggable=True)
    ran_on_microcode: str = variable(str, value='', loggable=True)
    ran_on_governor: str = variable(str, value='', loggable=True)
    ran_on_boost: str = variable(str, value='', loggable=True)
    ran_on_smt: str = variable(str, value='', loggable=True)
    ran_on_huge_pages: str = variable(str, value='', loggable=True)
    ran_on_numa_balancing: str = variable(str, value='', loggable=True)
    suite_commit: str = variable(str, value='', loggable=True)

    @property
    def provenance(self) -> Provenance:
        """The provenance of the program; a check that does not build its program overrides this."""
        return self.build.provenance

    @run_before('run')
    def tell_provenance(self) -> None:
        if self.is_dry_run():
            return  # nothing was built
        for name, value in asdict(self.provenance).items():
            setattr(self, f'built_{name}', value)
        self.suite_commit = suite_commit()

    @property
    def ran(self) -> witness.Report:
        """The witness's report on the job's program, or on one program that stands for all."""
        return self.launch.witnessed

    @run_after('sanity')
    def tell_what_ran(self) -> None:
        if self.is_dry_run():
            return
        report, environment = self.ran, self.current_environ
        version, _, _ = report.mpi.library.partition(',')
        variables = report.variables()
        # Without a modules system in the job, those that ReFrame loaded for it.
        modules = variables.pop('LOADEDMODULES', '') or ':'.join(environment.modules)
        settings = ' '.join(f'{name}={shlex.quote(value)}' for name, value in variables.items())
        self.ran_mpi = as_field(f'{" ".join(version.split())} ({report.mpi.path})')
        self.ran_modules, self.ran_variables = as_field(modules), as_field(settings)
        for name, value in machine_facts(report).items():
            setattr(self, f'ran_on_{name}', as_field(value))
        given = (shlex.quote(f'{name}={value}') for name, value in facts(report).items())
        self.ran_settings = as_field(' '.join(given))
        claimed = str(environment.extras.get('version', ''))
        if claimed and (fault := witness.verify_version(report, claimed, environment.name)):
            raise SanityError(fault)
