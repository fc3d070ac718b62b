"""Where the ranks of a program should sit, what that gains, and whether they sat so."""

import os
import sys

if 'numpy' not in sys.modules and 'OPENBLAS_NUM_THREADS' not in os.environ:
    # BLAS starts its threads when it is loaded. For matrices as small as those here they only spin:
    # a plan of 10,000 ranks took three times the CPU time. Programs that are started do not get the
    # variable.
    os.environ['OPENBLAS_NUM_THREADS'] = '1'
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401

    del os.environ['OPENBLAS_NUM_THREADS']
