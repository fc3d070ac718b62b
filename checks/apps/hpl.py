"""A dense linear system by LU factorisation: the figure of the Top500."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildHPL
from assay.checks.sweep import ApplicationSweep
from assay.checks.upstream import UpstreamCheck
from assay.programs.hpl import Hpl as Application


@rfm.simple_test
class HPL(ApplicationCheck):
    """One run at a size."""

    application = Application()
    build = fixture(BuildHPL, scope='environment')
    # DGEMM, its limit, is multiplied for a given time, and each time is shared by an MPI_Allreduce.
    always_sends = frozenset({'messages'})


@rfm.simple_test
class HPLSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    build = fixture(BuildHPL, scope='environment')


@rfm.simple_test
class HPLUpstream(UpstreamCheck):
    """Netlib's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildHPL, scope='environment')
    package, program = 'hpl', 'xhpl'
