"""Stencils on many variables with halo exchange."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildMiniGhost, UpstreamCheck
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.programs.figure import Quantity
from assay.programs.minighost import MiniGhost as Application


@rfm.simple_test
class MiniGhost(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = Application.measures
    build = fixture(BuildMiniGhost, scope='environment')


@rfm.simple_test
class MiniGhostSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(Application.measures[Application.rate].unit)
    build = fixture(BuildMiniGhost, scope='environment')


@rfm.simple_test
class MiniGhostUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniGhost, scope='environment')
    package, program = 'minighost', 'miniGhost.x'
    measures = Application.measures | {'rate_of_ours': Quantity('1', 'higher')}
