"""What a program was built from: the same facts whoever built it."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from archspec.cpu import host
from reframe.core.builtins import run_before, variable
from reframe.core.pipeline import RegressionTestPlugin

from assay import paths


@dataclass(frozen=True)
class Provenance:
    """The facts that tell two builds apart; empty where nobody knows."""

    by: str
    """``spack``, ``cmake``, or ``binary`` for a program that the user named."""
    spec: str = ''
    """Spack's spec, or the program's path."""
    hash: str = ''
    """Spack's full hash; else a checksum of all other facts and the sources, or of the program."""
    compiler: str = ''
    flags: str = ''
    mpi: str = ''
    blas: str = ''
    target: str = ''
    """The processor that it was built for."""


def _fingerprinted(facts: Provenance, sources: str) -> Provenance:
    """The facts of a build that has no hash of its own, with one."""
    text = json.dumps([asdict(facts), sources])
    return Provenance(**asdict(facts) | {'hash': hashlib.sha256(text.encode()).hexdigest()[:32]})


def of_binary(program: Path) -> Provenance:
    """What is known of a program that somebody else built."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:32]
    return Provenance('binary', spec=str(program), hash=digest)


def of_cmake(folder: Path, mpi: str, sources: str) -> Provenance:
    """The facts of a build, from what CMake keeps in its folder."""
    cache = (folder / 'CMakeCache.txt').read_text()
    entries = dict(re.findall(r'^(\w+):\w+=(.*)$', cache, re.MULTILINE))
    compiler = next(folder.glob('CMakeFiles/*/CMakeCXXCompiler.cmake')).read_text()
    said = dict(re.findall(r'^set\((\w+) "(.*)"\)$', compiler, re.MULTILINE))
    # GNU is gcc, as Spack says it.
    name = said['CMAKE_CXX_COMPILER_ID'].lower().replace('gnu', 'gcc')
    flags = entries['CMAKE_CXX_FLAGS'].strip()
    target = re.search(r'-march=(\S+)', flags)
    return _fingerprinted(
        Provenance(
            by='cmake',
            compiler=f'{name}@{said["CMAKE_CXX_COMPILER_VERSION"]}',
            flags=flags,
            mpi=mpi,
            blas=entries.get('ASSAY_BLAS', ''),
            target='' if target is None else target[1].replace('native', host().name),
        ),
        sources,
    )


@functools.cache
def suite() -> str:
    """The commit of this checkout, ending in -dirty if its files differ; empty outside of Git."""
    # Of a repository that is named Git does not ask who owns it; one that it finds by itself it
    # refuses everybody but the owner.
    where = [f'--git-dir={paths.ROOT / ".git"}', f'--work-tree={paths.ROOT}']
    command = ['git', *where, 'describe', '--always', '--abbrev=40', '--exclude=*', '--dirty']
    try:
        answer = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ''
    return answer.stdout.strip()


class Attributed(RegressionTestPlugin):
    """A check whose every figure tells what was measured: fields of reports and of the perflog."""

    built_by = variable(str, value='', loggable=True)
    built_spec = variable(str, value='', loggable=True)
    built_hash = variable(str, value='', loggable=True)
    built_compiler = variable(str, value='', loggable=True)
    built_flags = variable(str, value='', loggable=True)
    built_mpi = variable(str, value='', loggable=True)
    built_blas = variable(str, value='', loggable=True)
    built_target = variable(str, value='', loggable=True)
    suite_commit = variable(str, value='', loggable=True)

    @property
    def provenance(self) -> Provenance:
        """Of the program that the job runs; a check that does not build it says otherwise."""
        return self.build.provenance

    @run_before('run')
    def tell_provenance(self):
        if self.is_dry_run():
            return  # nothing was built
        for name, value in asdict(self.provenance).items():
            setattr(self, f'built_{name}', value)
        self.suite_commit = suite()
