"""Finite elements: assembly of a sparse system and conjugate gradients."""

import reframe as rfm

from assay.checks.application import ApplicationCheck
from assay.checks.sweep import ApplicationSweep
from assay.checks.upstream import UpstreamCheck
from assay.programs.minife import MiniFE as Application


@rfm.simple_test
class MiniFE(ApplicationCheck):
    """One run at a size."""

    application = Application()


@rfm.simple_test
class MiniFESweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()


@rfm.simple_test
class MiniFEUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    package, program = 'minife', 'miniFE.x'
