"""Conjugate gradients with multigrid: what the HPCG list compares machines by."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.application import OF_TRIAD, BesideTriadCheck
from assay.programs.figure import Quantity
from assay.programs.hpcg import Hpcg as Application


@rfm.simple_test
class HPCG(BesideTriadCheck):
    """HPCG's own program, as Spack builds it.

    HPCG verifies itself, and its sizes and counts are held to what was asked for.
    """

    application = Application()
    package, program = 'hpcg', 'xhpcg'
    layout = parameter(['packed', 'hybrid'], type=str, loggable=True)
    measures = Application.measures | {
        **OF_TRIAD,
        'bandwidth_of_triad': Quantity('1', 'higher'),
    }

    # It repeats its sets for a given time.
    always_sends = frozenset()

    def hold_against_witness(self, wall, calls):
        self.application.check_witnessed(self.launch.folder, wall, calls)

    def figures(self):
        figures = super().figures()
        of_triad = figures['bandwidth'].value / self.triad
        return figures | self.as_figures(bandwidth_of_triad=of_triad)
