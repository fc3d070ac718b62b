"""A dense linear system by LU factorisation: the figure of the Top500."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildHPL, UpstreamCheck
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.programs.figure import Quantity
from assay.programs.hpl import Hpl as Application


@rfm.simple_test
class HPL(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = Application.measures
    build = fixture(BuildHPL, scope='environment')
    # DGEMM, its limit, is multiplied for a given time, and each time is shared by an MPI_Allreduce.
    always_sends = frozenset({'messages'})


@rfm.simple_test
class HPLSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(Application.measures[Application.rate].unit)
    build = fixture(BuildHPL, scope='environment')


@rfm.simple_test
class HPLUpstream(UpstreamCheck):
    """Netlib's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildHPL, scope='environment')
    package, program = 'hpl', 'xhpl'
    measures = Application.measures | {'rate_of_ours': Quantity('1', 'higher')}
