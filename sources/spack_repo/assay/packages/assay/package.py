"""Assay's benchmarks, applications and witness, from the checkout that holds this recipe."""

import shutil
from pathlib import Path

from spack.package import (
    InstallError,
    SkipTest,
    depends_on,
    join_path,
    license,
    run_before,
    variant,
    version,
    which,
)
from spack_repo.builtin.build_systems.cmake import CMakePackage

from . import tree

SOURCES = tree.checksum()


class Assay(CMakePackage):
    """MPI and node benchmarks, HPL, miniFE, miniMD, miniGhost and the witness of Assay."""

    # Nothing is fetched: the sources are copied out of the checkout.
    has_code = False
    root_cmakelists_dir = 'sources'

    license('BSD-3-Clause')

    version('0.2.0')

    # So that the hash tells sources apart.
    variant('sources', default=SOURCES, values=(SOURCES,), description='Checksum of the sources')
    variant(
        'openblas_wheel',
        default=False,
        description='BLAS from the wheel scipy-openblas32 in place of one that Spack knows',
    )

    depends_on('c', type='build')
    depends_on('cxx', type='build')
    depends_on('cmake@3.18:', type='build')
    depends_on('mpi')
    depends_on('scipy-openblas32', when='+openblas_wheel')
    depends_on('blas', when='~openblas_wheel')

    @property
    def archive_files(self):
        """What compiled what: Assay tells of each figure which flags its program was built with."""
        return [join_path(self.build_directory, 'compile_commands.json')]

    @run_before('cmake')
    def copy_sources(self):
        """Nothing of an earlier try, which may have been killed, is built upon."""
        copied = Path(self.stage.source_path, self.root_cmakelists_dir)
        tree.copy(copied)
        shutil.rmtree(self.build_directory, ignore_errors=True)
        if tree.checksum(copied) != self.spec.variants['sources'].value:
            raise InstallError('the sources were changed after this spec was concretized')

    def cmake_args(self):
        mpi = self.spec['mpi']
        arguments = [
            self.define('CMAKE_C_COMPILER', mpi.mpicc),
            self.define('CMAKE_CXX_COMPILER', mpi.mpicxx),
        ]
        if self.spec.satisfies('+openblas_wheel'):
            wheel = self.spec['scipy-openblas32'].prefix
            return [*arguments, self.define('ASSAY_OPENBLAS', wheel)]
        return [*arguments, self.define('BLAS_LIBRARIES', self.spec['blas'].libs.libraries)]

    def test_two_ranks(self):
        """two ranks send each other messages and check what arrives"""
        of_mpi = [self.spec['mpi'].prefix.bin]
        # Where MPI is started by the scheduler, it brings no launcher of its own.
        start = which('mpirun', 'mpiexec', path=of_mpi) or which('mpiexec', 'srun')
        if start is None:
            raise SkipTest('there is no mpirun, mpiexec or srun')
        start('-n', '2', self.prefix.bin.pt2pt, '--max', '4K')
