"""Finite elements: assembly of a sparse system and conjugate gradients."""

import reframe as rfm
from reframe.core.builtins import fixture

from assay.checks.application import ApplicationCheck, BuildMiniFE
from assay.checks.benchmark import WHOLE_OF_BEST
from assay.checks.sweep import ApplicationSweep, series_measures
from assay.checks.upstream import UpstreamCheck
from assay.programs.figure import Quantity
from assay.programs.minife import MiniFE as Application

KERNELS = ('waxpy', 'dot', 'matvec', 'cg')
MEASURES = {
    **{
        f'{phase}_time': Quantity('s', 'lower')
        for phase in ('total', 'structure', 'assembly', *KERNELS)
    },
    **{f'{kernel}_rate': Quantity('Gflop/s', 'higher') for kernel in KERNELS},
    **{f'{kernel}_in_caches_rate': Quantity('Gflop/s', 'higher') for kernel in KERNELS[:3]},
    'assembly_in_caches_rate': Quantity('Melement/s', 'higher'),
    'matvec_whole_of_best': WHOLE_OF_BEST,
    'matvec_of_limit': Quantity('1', 'higher'),
}


@rfm.simple_test
class MiniFE(ApplicationCheck):
    """One run at a size."""

    application = Application()
    measures = MEASURES
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFESweep(ApplicationSweep):
    """A series of runs in one job."""

    application = Application()
    measures = series_measures(MEASURES[Application.rate].unit)
    build = fixture(BuildMiniFE, scope='environment')


@rfm.simple_test
class MiniFEUpstream(UpstreamCheck):
    """Mantevo's own, as Spack builds it."""

    application = Application()
    build = fixture(BuildMiniFE, scope='environment')
    package, program = 'minife', 'miniFE.x'
    measures = MEASURES | {'cg_rate_of_ours': Quantity('1', 'higher')}
