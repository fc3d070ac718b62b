"""One package on one MPI, in an environment of Spack's of its own: concretised, fetched, installed.

It is under ``.assay/spack``, made from the ``spack.yaml`` of this checkout: what fails for one
leaves the others alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

from assay import AssayError, paths, say
from assay.config.environments import OURS
from assay.files import write_whole
from assay.machine.provenance import Provenance, checksum
from assay.spack.lock_file import compiled_with, from_lock
from assay.spack.packages import environment_file, groups
from assay.spack.record import Build, checksums
from assay.spack.tool import Spack, SpackError, turn


def install(spack: Spack, system: str, package: str, mpi: str) -> Build:
    """Have Spack install a package on an MPI of a system, unless that is done.

    :raises AssayError: if it cannot, saying why.
    """
    wanted = Environment(spack, system, package, mpi)
    if build := wanted.installed():
        return build
    with turn(spack):
        if build := wanted.installed():
            return build  # by another run, in the meantime
        say(f'Spack installs {wanted.spec} ...')
        wanted.concretize()
        return wanted.install()


def rehearse(spack: Spack, system: str, package: str, mpi: str) -> str:
    """See whether a package can be built on an MPI here, as far as that shows without building it.

    :returns: its spec.
    :raises AssayError: if not, saying why.
    """
    wanted = Environment(spack, system, package, mpi)
    if not wanted.installed():
        with turn(spack):
            wanted.concretize()
            wanted.fetch()
    return wanted.spec


class Environment:
    """An environment of Spack, in its folder. What it holds is right, or is made again."""

    def __init__(self, spack: Spack, system: str, package: str, mpi: str) -> None:
        self.spack = spack
        self.package = package
        self.spec = package if package in groups()['without_mpi'] else f'{package} ^{mpi}'
        self.content = environment_file(system, self.spec)
        self.sources = checksum() if package == OURS else ''
        name = re.sub(r'[^\w.-]+', '-', self.spec)
        self.folder = spack.state / 'environments' / system / name
        self.fingerprint = self._fingerprint(paths.SPACK_CONFIG / system)

    def _fingerprint(self, config: Path) -> str:
        """Changes with everything that the outcome depends on."""
        facts = '\n'.join([str(self.spack), self.content, self.sources])
        digest = hashlib.sha256(facts.encode())
        for folder in (config, paths.RECIPES):
            for path in sorted(folder.rglob('*.*')):
                if path.suffix in ('.py', '.yaml'):
                    digest.update(f'{path}\n'.encode() + path.read_bytes())
        return digest.hexdigest()

    def installed(self) -> Build | None:
        """What was installed from just what there is now, if it is still there."""
        build = self._recorded()
        return None if build is None or build.changed() else build

    def _recorded(self) -> Build | None:
        """What was installed from just what there is now, whatever became of it."""
        try:
            record = json.loads((self.folder / 'installed.json').read_text())
            build = Build.from_json(record)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return build if record['fingerprint'] == self.fingerprint else None

    def concretize(self) -> None:
        """Have Spack choose all that the spec leaves open, unless it has.

        :raises AssayError: if it finds no way.
        """
        stamp = self.folder / 'concretized'
        if stamp.exists() and stamp.read_text() == self.fingerprint and self.spack.own.is_dir():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        self.spack.configure()
        write_whole(self.folder / 'spack.yaml', self.content)
        self._ask('finds no way to build', 'concretize', '--force', '--quiet')
        write_whole(stamp, self.fingerprint)

    def fetch(self) -> None:
        """Have all downloaded that the spec is made from.

        :raises AssayError: if something cannot be.
        """
        self._ask('cannot fetch what it takes for', 'fetch', '--dependencies')

    def install(self) -> Build:
        """Have it built and installed, and write down what came of it.

        :raises AssayError: if that fails.
        """
        # Spack refuses what failed before, though the cause may be gone.
        self._ask('cannot install', 'clean', '--failures')
        # Nor does it look whether files that it installed are still what they were.
        recorded = self._recorded()
        again = ['--overwrite', '--yes-to-all'] if recorded and recorded.changed() else []
        self._ask('cannot install', 'install', *again)
        prefix = Path(self._ask('has lost', 'location', '--install-dir', self.package).strip())
        found = [
            path
            for part in ('bin', 'lib', 'libexec')
            for path in sorted((prefix / part).rglob('*'))
        ]
        build = Build(
            prefix=prefix,
            sources=self.sources,
            files=checksums(prefix, (path for path in found if path.is_file())),
            provenance=self._provenance(prefix),
        )
        record = {'fingerprint': self.fingerprint, **build.to_json()}
        write_whole(self.folder / 'installed.json', json.dumps(record, indent=1))
        return build

    def _provenance(self, prefix: Path) -> Provenance:
        facts = from_lock(json.loads((self.folder / 'spack.lock').read_text()))
        return replace(facts, flags=compiled_with(prefix, facts.flags))

    def _ask(self, failing: str, *arguments: str) -> str:
        try:
            return self.spack.run('-e', str(self.folder), *arguments)
        except SpackError as error:
            raise AssayError(f'Spack {failing} {self.spec}: {error}') from None
