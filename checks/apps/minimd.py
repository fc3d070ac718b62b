"""Molecular dynamics: forces of short range, neighbour lists, ghost atoms."""

import reframe as rfm
from reframe.core.builtins import fixture, parameter

from assay.checks.application import ApplicationCheck, BuildMiniMD, UpstreamCheck
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.programs.figure import Quantity
from assay.programs.minimd import MiniMD as Application


@rfm.simple_test
class MiniMD(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = Application.measures
    build = fixture(BuildMiniMD, scope='environment')


@rfm.simple_test
class MiniMDSweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(Application.measures[Application.rate].unit)
    build = fixture(BuildMiniMD, scope='environment')


@rfm.simple_test
class MiniMDMixed(ApplicationCheck):
    """Ranks that differ: a wide one with many threads or of another build, and narrow ones.

    This is how the parts of host and coprocessor, or of fast and slow cores, are balanced.
    """

    application = Application()
    build = fixture(BuildMiniMD, scope='environment')
    measures = Application.measures
    layout = parameter(['mixed'], type=str)


@rfm.simple_test
class MiniMDUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniMD, scope='environment')
    package, program = 'minimd', 'miniMD_mpi'
    measures = Application.measures | {'performance_of_ours': Quantity('1', 'higher')}
