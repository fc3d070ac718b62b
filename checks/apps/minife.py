"""Finite elements: assembly of a sparse system and conjugate gradients."""

import reframe as rfm

from assay.application_check import ApplicationCheck
from assay.programs.minife import MiniFE as Application
from assay.sweep import ApplicationSweep
from assay.upstream import UpstreamCheck


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
