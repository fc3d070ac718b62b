"""Stencils on many variables with halo exchange."""

import reframe as rfm

from assay.application_check import ApplicationCheck
from assay.programs.minighost import MiniGhost as Application
from assay.sweep import ApplicationSweep
from assay.upstream import UpstreamCheck


@rfm.simple_test
class MiniGhost(ApplicationCheck):
    """One run at a size."""

    application = Application()


@rfm.simple_test
class MiniGhostSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()


@rfm.simple_test
class MiniGhostUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    package, program = 'minighost', 'miniGhost.x'
