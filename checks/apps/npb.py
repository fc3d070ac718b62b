"""The NAS Parallel Benchmarks: what their solvers, transforms and sorting get of a machine."""

from functools import cached_property

import reframe as rfm
from reframe.core.builtins import parameter, variable
from reframe.core.exceptions import ReframeError

from assay.checks.application import OF_TRIAD, BesideTriadCheck
from assay.programs.figure import Quantity
from assay.programs.npb import CLASSES, Npb


@rfm.simple_test
class NPB(BesideTriadCheck):
    """One of NPB's programs, as Spack builds it, in the largest class that fits.

    NPB verifies its answer, and its class, steps, ranks and rate are held to what was asked for.
    """

    package = 'npb'
    kernel = parameter([*CLASSES], type=str, loggable=True)
    layout = parameter(['packed'], type=str, loggable=True)
    #: Classes to choose from: as the recipe builds them without a variant.
    classes = variable(str, value='SWABCDEF')
    measures = Npb.measures | {
        **OF_TRIAD,
        'operations_for_byte_of_triad': Quantity('op/B', 'higher'),
    }

    @cached_property
    def application(self):
        return Npb(self.kernel, self.classes)

    @property
    def ranks_per_node(self):
        return self.most_ranks_per_node(self.application.allows)

    @property
    def program_name(self):
        return f'{self.kernel}.{self.asked.facts["class"]}.x'

    @property
    def program_path(self):
        path = self.installed.path(self.program_name)
        if not path.exists():
            raise ReframeError(
                f'{path} does not exist: -S NPB.classes=... names the classes that Spack built, '
                f'by NPB 3.4 or newer'
            )
        return str(path)

    def figures(self):
        figures = super().figures()
        if self.kernel != 'ep':  # which does not use the memory
            of_triad = figures['rate'].value / self.triad
            figures |= self.as_figures(operations_for_byte_of_triad=of_triad)
        return figures
