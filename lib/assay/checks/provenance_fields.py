"""What each figure of a check tells of itself: what was built, and what it ran with."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError
from reframe.core.pipeline import RegressionTestPlugin

from assay import witness
from assay.checks.build import BuildSources
from assay.job.launch import Launch
from assay.machine.provenance import Provenance, suite_commit
from assay.text import as_field
from assay.witness.settings import facts, machine_facts


class Attributed(RegressionTestPlugin):
    """A check whose every figure tells what was measured: fields of reports and of the perflog.

    ``built_*`` is what the program was made from, ``ran_*`` what the job ran with, and ``ran_on_*``
    what its nodes are, as the witness saw it. The job's id and nodes are ReFrame's own.
    """

    # What the bases beside it give: for mypy only.
    build: BuildSources
    if TYPE_CHECKING:

        @property
        def launch(self) -> Launch: ...

    built_by: str = variable(str, value='', loggable=True)
    built_spec: str = variable(str, value='', loggable=True)
    built_hash: str = variable(str, value='', loggable=True)
    built_compiler: str = variable(str, value='', loggable=True)
    built_flags: str = variable(str, value='', loggable=True)
    built_mpi: str = variable(str, value='', loggable=True)
    built_blas: str = variable(str, value='', loggable=True)
    built_target: str = variable(str, value='', loggable=True)
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
        """Of the program that the job runs; a check that does not build it says otherwise."""
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
        """What the witness saw of the job's program; of several of one that stands for all."""
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
