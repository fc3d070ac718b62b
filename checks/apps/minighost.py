"""Stencils on many variables with halo exchange."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildMiniGhost
from assay.checks.benchmark import WHOLE_OF_BEST
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.checks.upstream import UpstreamCheck
from assay.programs.figure import Quantity
from assay.programs.minighost import MiniGhost as Application

MEASURES = {
    **{
        f'{phase}_time': Quantity('s', 'lower')
        for phase in (
            *('total', 'stencil', 'sum'),
            *('communication', 'pack', 'send', 'wait', 'recv', 'unpack'),
        )
    },
    'rate': Quantity('Gflop/s', 'higher'),
    'stencil_rate': Quantity('GB/s', 'higher'),
    'stencil_in_caches_rate': Quantity('GB/s', 'higher'),
    'stencil_whole_of_best': WHOLE_OF_BEST,
    'stencil_of_limit': Quantity('1', 'higher'),
}


@rfm.simple_test
class MiniGhost(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = MEASURES
    build = fixture(BuildMiniGhost, scope='environment')


@rfm.simple_test
class MiniGhostSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(MEASURES[Application.rate].unit)
    build = fixture(BuildMiniGhost, scope='environment')


@rfm.simple_test
class MiniGhostUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniGhost, scope='environment')
    package, program = 'minighost', 'miniGhost.x'
    measures = MEASURES | {'rate_of_ours': Quantity('1', 'higher')}
