"""The NAS Parallel Benchmarks: what their solvers, transforms and sorting get of a machine."""

from functools import cached_property

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.application import BesideTriadCheck
from assay.programs.figure import Quantity
from assay.programs.npb import CLASSES, Npb


@rfm.simple_test
class NPB(BesideTriadCheck):
    """One of NPB's programs, as Spack builds it, in the largest class that was built and fits.

    NPB verifies its answer, and its class, steps, ranks and rate are held to what was asked for.
    """

    package = 'npb'
    kernel = parameter([*CLASSES], type=str, loggable=True)
    layout = parameter(['packed'], type=str, loggable=True)
    measures = Npb.measures | {
        'triad': Quantity('GB/s', 'higher'),
        'operations_for_byte_of_triad': Quantity('op/B', 'higher'),
    }

    @cached_property
    def application(self):
        return Npb(self.kernel, self.built_classes)

    def built_classes(self):
        programs = (self.installed.prefix / 'bin').glob(f'{self.kernel}.?.x')
        return {path.name.split('.')[1] for path in programs}

    @property
    def program_name(self):
        return f'{self.kernel}.{self.asked.facts["class"]}.x'

    @property
    def program_path(self):
        return str(self.installed.path(self.program_name))

    def figures(self):
        figures = super().figures()
        figures |= self.named(triad=self.triad / 1e9)
        if self.kernel != 'ep':  # which does not use the memory
            of_triad = figures['rate'].value / figures['triad'].value
            figures |= self.named(operations_for_byte_of_triad=of_triad)
        return figures
