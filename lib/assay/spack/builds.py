"""What Spack builds for an environment of ReFrame: installed once, then found again by its record.

Each package on each MPI has a Spack environment of its own under ``.assay/spack``, made from the
``spack.yaml`` of this checkout: what fails for one leaves the others alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from assay import AssayError, paths, say
from assay.config import settings
from assay.config.environments import OURS
from assay.machine.checksum import checksum
from assay.machine.provenance import Provenance
from assay.spack.tool import Spack, SpackError, find_spack

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


LOG = paths.LOGS / 'spack.log'


@dataclass(frozen=True)
class Build:
    """A package as Spack has installed it.

    :param sources: checksum of the sources of this checkout that it was made from; empty for
        others' packages.
    :param files: its programs and libraries, relative to the prefix.
    """

    prefix: Path
    sources: str
    files: tuple[str, ...]
    provenance: Provenance

    def path(self, name: str) -> Path:
        """The absolute path of a program or a library."""
        return self.prefix / ('lib' if '.so' in name else 'bin') / name

    def is_whole(self) -> bool:
        """Whether its files are there."""
        return all((self.prefix / name).is_file() for name in self.files)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {'prefix': str(self.prefix), 'files': list(self.files)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Build:
        return cls(
            prefix=Path(record['prefix']),
            sources=record['sources'],
            files=tuple(record['files']),
            provenance=Provenance(**record['provenance']),
        )


# The environments of Spack ------------------------------------------------------------------------


def groups() -> dict[str, list[str]]:
    """The packages of ``spack.yaml``, by group."""
    definitions = _tracked()['definitions']
    named = {name: names for each in definitions for name, names in each.items()}
    return {name: names for name, names in named.items() if name != 'mpis'}


def environment_file(system: str, spec: str) -> str:
    """``spack.yaml`` with one spec, on a system, for an environment in any folder."""
    tracked = _tracked()
    del tracked['definitions']
    tracked['include'] = [str(paths.SPACK_CONFIG / system)]
    tracked['repos'] = {name: str(paths.ROOT / folder) for name, folder in tracked['repos'].items()}
    tracked['specs'] = [spec]
    return yaml.safe_dump({'spack': tracked}, sort_keys=False)


def _tracked() -> dict[str, Any]:
    return yaml.safe_load(paths.SPACK_YAML.read_text())['spack']


def assert_prepared(system: str) -> None:
    """See that the system has been set up for Spack, and that what it relies on is still there.

    :raises AssayError: if not.
    """
    folder = paths.SPACK_CONFIG / system
    remedy = f'run `assay spack setup --system {system}`'
    try:
        packages = yaml.safe_load((folder / 'packages.yaml').read_text())['packages']
    except FileNotFoundError:
        raise AssayError(f'{folder} has no packages.yaml: {remedy}.') from None
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise AssayError(f'{folder}/packages.yaml is not valid: {error}') from None
    for package in packages.values():
        for external in package.get('externals', []):
            prefix = Path(external.get('prefix', '/'))
            if not prefix.is_dir():
                raise AssayError(
                    f'{external["spec"]} is no longer in {prefix}, where {folder}/packages.yaml '
                    f'has it: {remedy} again.'
                )


# What checks run ----------------------------------------------------------------------------------


def mpis(site: _SiteConfig, system: str) -> dict[str, str]:
    """The MPI, as Spack's spec of it, of each environment of a system that Spack builds for.

    :param site: its configuration, loaded.
    :raises AssayError: if an environment does not say it.
    """
    names = {name for part in site.get('systems/0/partitions') for name in part['environs']}
    found = {}
    for environment in site['environments']:
        name = environment['name']
        if name not in names or 'spack' not in environment.get('features', []):
            continue
        if 'spack' not in environment.get('extras', {}):
            raise AssayError(
                f"{settings.system_file(system)}: environment {name} has the feature 'spack', but "
                f"its extras do not say which MPI that is: {{'spack': 'openmpi@=5.0.8'}}, or so."
            )
        found[name] = environment['extras']['spack']
    return found


def install_for_checks(site: _SiteConfig, system: str, matching: Iterable[str] = ('.*',)) -> None:
    """Have installed what Spack builds for each environment, as its features say.

    :param site: the system's configuration, loaded.
    :param matching: expressions, one of which the environments' names match.
    :raises AssayError: if that cannot be.
    """
    features = {each['name']: each.get('features', []) for each in site['environments']}
    wanted = [
        (environ, package)
        for environ in mpis(site, system)
        if any(re.match(pattern, environ) for pattern in matching)
        for package in _packages(features[environ])
    ]
    install_on(site, system, wanted)


def _packages(features: Iterable[str]) -> Iterator[str]:
    """Those that an environment's features name: the inverse of :func:`feature`."""
    for name in features:
        if name == 'spack':
            yield OURS
        elif name.startswith('spack-'):
            yield name.removeprefix('spack-')


def install_on(
    site: _SiteConfig, system: str, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Build]:
    """Have packages installed, and tell ReFrame where.

    :param site: the system's configuration, loaded.
    :param wanted: pairs of an environment of ReFrame and a package, which the result is of.
    :raises AssayError: if one cannot be installed.
    """
    wanted = list(wanted)
    if not wanted:
        return {}
    assert_listed(package for _, package in wanted)
    name = system.partition(':')[0]
    spack = find_spack()
    assert_prepared(name)
    on = mpis(site, system)
    builds = {
        (environ, package): install(spack, name, package, on[environ])
        for environ, package in wanted
    }
    records = {_key(*pair): build.to_json() for pair, build in builds.items()}
    table = _table(name)
    # Those of other runs stay.
    if (known := _read(table)) != {**known, **records}:
        with turn(spack):
            table.parent.mkdir(exist_ok=True)
            write_whole(table, json.dumps({**_read(table), **records}, indent=1))
    return builds


def assert_listed(packages: Iterable[str]) -> None:
    """See that all packages are ones of ``spack.yaml``.

    :raises AssayError: if one is not.
    """
    known = {package for names in groups().values() for package in names}
    if unknown := set(packages) - known:
        raise AssayError(
            f'{", ".join(sorted(unknown))}: not in {paths.SPACK_YAML}, which lists what to build.'
        )


def build_of(system: str, environment: str, package: str = OURS) -> Build:
    """What Spack has installed for an environment, if it is there and of today's sources.

    :raises AssayError: if not.
    """
    remedy = f'run `assay spack install {package} --system {system}`'
    try:
        build = Build.from_json(_read(_table(system))[_key(environment, package)])
    except (KeyError, TypeError):
        raise AssayError(f'Spack has built no {package} for {environment}: {remedy}') from None
    if not build.is_whole():
        raise AssayError(f'{build.prefix} is not whole any more: {remedy}')
    if package == OURS and build.sources != checksum():
        raise AssayError(f'the sources are not those of {build.prefix}: {remedy}')
    return build


def _key(environment: str, package: str) -> str:
    return f'{package} for {environment}'


def _table(system: str) -> Path:
    return paths.SPACK / 'builds' / f'{system}.json'


def _read(table: Path) -> dict[str, Any]:
    try:
        return json.loads(table.read_text())
    except (OSError, ValueError):
        return {}


# Installing ---------------------------------------------------------------------------------------


def install(spack: Spack, system: str, package: str, mpi: str) -> Build:
    """Have Spack install a package on an MPI of a system, unless that is done.

    :raises AssayError: if it cannot, saying why.
    """
    wanted = _Environment(spack, system, package, mpi)
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
    wanted = _Environment(spack, system, package, mpi)
    if not wanted.installed():
        with turn(spack):
            wanted.concretize()
            wanted.fetch()
    return wanted.spec


class _Environment:
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
        try:
            record = json.loads((self.folder / 'installed.json').read_text())
            build = Build.from_json(record)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return build if record['fingerprint'] == self.fingerprint and build.is_whole() else None

    def concretize(self) -> None:
        """Have Spack choose all that the spec leaves open, unless it has.

        :raises AssayError: if it finds no way.
        """
        stamp = self.folder / 'concretized'
        if stamp.exists() and stamp.read_text() == self.fingerprint:
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
        self._ask('cannot install', 'install')
        prefix = Path(self._ask('has lost', 'location', '--install-dir', self.package).strip())
        found = [
            path
            for part in ('bin', 'lib', 'libexec')
            for path in sorted((prefix / part).rglob('*'))
        ]
        build = Build(
            prefix=prefix,
            sources=self.sources,
            files=tuple(str(path.relative_to(prefix)) for path in found if path.is_file()),
            provenance=from_lock(json.loads((self.folder / 'spack.lock').read_text())),
        )
        record = {'fingerprint': self.fingerprint, **build.to_json()}
        write_whole(self.folder / 'installed.json', json.dumps(record, indent=1))
        return build

    def _ask(self, failing: str, *arguments: str) -> str:
        try:
            return self.spack.run(LOG, '-e', str(self.folder), *arguments)
        except SpackError as error:
            raise AssayError(f'Spack {failing} {self.spec}: {error}') from None


@contextlib.contextmanager
def turn(spack: Spack) -> Iterator[None]:
    """Wait until no other run has Spack at work; the lock goes with the process that holds it.

    :raises AssayError: if a file cannot be written, also while it is held.
    """
    try:
        spack.state.mkdir(parents=True, exist_ok=True)
        with (spack.state / 'lock').open('a+') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                say(f'waiting for process {lock.read() or "?"}, which has Spack at work ...')
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield
    except OSError as error:
        raise AssayError(f'Spack cannot work in {spack.state}: {error}') from error


def write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old text or the new, never a part."""
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    draft.write_text(text)
    draft.replace(path)


# Reading a lock file ------------------------------------------------------------------------------


def from_lock(lock: Mapping[str, Any]) -> Provenance:
    """The facts of the one root of a ``spack.lock``."""
    specs = lock['concrete_specs']
    (root,) = lock['roots']
    spec = specs[root['hash']]

    def provider(*virtuals: str) -> str:
        """Name and version of the direct dependency that stands for one of the virtual packages."""
        for edge in spec.get('dependencies', []):
            provided = edge['parameters']['virtuals'] or [edge['name']]
            if set(virtuals) & set(provided):
                return f'{edge["name"]}@{specs[edge["hash"]]["version"]}'
        return ''

    mpi = provider('mpi')
    flags = {flag for name in FLAGS for flag in spec['parameters'].get(name, [])}
    target = spec['arch']['target']
    words = [f'{spec["name"]}@{spec["version"]}', *_variants(spec), *([f'^{mpi}'] if mpi else [])]
    return Provenance(
        by='spack',
        spec=' '.join(words),
        hash=root['hash'],
        compiler=provider('cxx', 'c'),
        flags=' '.join(sorted(flags)),
        mpi=mpi,
        blas=provider('blas', 'scipy-openblas32'),
        target=target if isinstance(target, str) else target['name'],
    )


FLAGS = ('cflags', 'cppflags', 'cxxflags', 'fflags', 'ldflags', 'ldlibs')


def _variants(spec: Mapping[str, Any]) -> Iterator[str]:
    """As Spack writes them."""
    for name, value in sorted(spec['parameters'].items()):
        if name in FLAGS:
            continue
        if isinstance(value, bool):
            yield f'{"+" if value else "~"}{name}'
        else:
            yield f'{name}={",".join(value) if isinstance(value, list) else value}'
