"""Finite elements: assembly of a sparse system and conjugate gradients."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildMiniFE, UpstreamCheck
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.programs.figure import Quantity
from assay.programs.minife import MiniFE as Application


@rfm.simple_test
class MiniFE(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = Application.measures
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFESweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(Application.measures[Application.rate].unit)
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFEUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniFE, scope='environment')
    package, program = 'minife', 'miniFE.x'
    measures = Application.measures | {'cg_rate_of_ours': Quantity('1', 'higher')}
