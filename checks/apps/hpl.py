"""A dense linear system by LU factorisation: the figure of the Top500."""

import reframe as rfm

from assay.application_check import ApplicationCheck
from assay.programs.hpl import Hpl as Application
from assay.sweep import ApplicationSweep
from assay.upstream import UpstreamCheck


@rfm.simple_test
class HPL(ApplicationCheck):
    """One run at a size."""

    application = Application()


@rfm.simple_test
class HPLSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()


@rfm.simple_test
class HPLUpstream(UpstreamCheck):
    """Netlib's own, as Spack builds it."""

    application = Application()
    package, program = 'hpl', 'xhpl'
