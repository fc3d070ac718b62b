"""Finite elements: assembly of a sparse system and conjugate gradients."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildMiniFE
from assay.checks.sweep import ApplicationSweep
from assay.checks.upstream import UpstreamCheck
from assay.programs.minife import MiniFE as Application


@rfm.simple_test
class MiniFE(ApplicationCheck):
    """One run at a size."""

    application = Application()
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFESweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFEUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniFE, scope='environment')
    package, program = 'minife', 'miniFE.x'
