"""OpenBLAS as the Python package of the same name brings it, for machines that have no other."""

from spack.package import version
from spack_repo.builtin.build_systems.generic import Package


class ScipyOpenblas32(Package):
    """OpenBLAS whose symbols begin with scipy_. No provider of blas: only Assay knows the names.

    Never installed by Spack: an external, which `assay spack setup` writes.
    """

    has_code = False

    version('0.3.34.481.3')
