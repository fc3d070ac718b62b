"""Spack itself: finding it, cloning it, and running it apart from the user's own use of it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from assay import AssayError, locks, paths, say
from assay.machine.provenance import git
from assay.tools import ask

OLDEST = (1, 0)

#: All that it said.
LOG = paths.LOGS / 'spack.log'


def _address(name: str) -> str:
    """Of one of Spack's repositories: in the bundle in use, if it has them, or the public one."""
    bundled = paths.BUNDLE / f'{name}.git'
    return str(bundled) if bundled.is_dir() else f'https://github.com/spack/{name}.git'


# What `--clone` fetches: two releases that were tried together.
SPACK_URL, SPACK_TAG = _address('spack'), 'v1.1.0'
PACKAGES_URL, PACKAGES_TAG = _address('spack-packages'), 'v2025.11.0'
CLONES = paths.SPACK / 'clones'

# A name in its configuration, in any case of letters and with braces or without.
_FOLDER = re.compile(r'\$(spack\b|user_cache_path\b|\{spack\}|\{user_cache_path\})', re.IGNORECASE)

# The folder of a bundle that is a mirror of the sources of packages.
SOURCES = 'spack-sources'


def _compiled_elsewhere() -> dict[str, str]:
    """So that Python writes nothing beside a site's files."""
    return {'PYTHONPYCACHEPREFIX': str(paths.SPACK / 'compiled')}


@dataclass(frozen=True)
class Spack:
    """A Spack, of at least version 1.0.

    :param root: its folder, as ``SPACK_ROOT`` names it.
    :param version: as it says itself, such as ``1.1.0``.
    """

    root: Path
    version: str

    @property
    def state(self) -> Path:
        """All that it writes; other versions read neither its lock files nor its database."""
        return paths.SPACK / self.version

    @property
    def downloads(self) -> Path:
        """The sources that it has fetched, laid out as in a mirror."""
        return self.state / 'downloads'

    @property
    def own(self) -> Path:
        """A Spack of Assay's own: the programs of :attr:`root`, and none of its configuration.

        Spack reads ``$SPACK_ROOT/etc/spack`` in any case, since 1.1 with precedence over
        what a user configures, and writes below ``$SPACK_ROOT``. So it is run from this folder, in
        which the programs are links.
        """
        return self.state / 'root'

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which it sees nothing of ``~/.spack``, ``/etc/spack`` or a shell's."""
        others = {name: value for name, value in os.environ.items() if name[:6] != 'SPACK_'}
        return others | {
            'SPACK_ROOT': str(self.own),
            # Where clingo is: Spack would fetch one of its own.
            'SPACK_PYTHON': sys.executable,
            'SPACK_DISABLE_LOCAL_CONFIG': '1',
            'SPACK_USER_CACHE_PATH': str(self.state / 'cache'),
            **_compiled_elsewhere(),
            # What is found in .venv goes when that is replaced.
            'PATH': os.pathsep.join(
                folder
                for folder in os.environ.get('PATH', os.defpath).split(os.pathsep)
                if Path(folder).resolve() != paths.VENV_BIN
            ),
        }

    @property
    def scope(self) -> str:
        """What it calls the configuration in :attr:`own`."""
        return 'site' if self.version.startswith('1.0.') else 'spack'

    def configure(self) -> None:
        """Make :attr:`own`, configured so that everything stays under :attr:`state`.

        Of the site's configuration it takes where packages and their sources are, no more.

        :raises SpackError: if Spack does not tell that.
        """
        import yaml  # which takes time to load

        programs = self._programs()
        draft = self.own.with_name('root.new')  # renamed when it is whole
        etc = draft / 'etc' / 'spack'
        shutil.rmtree(draft, ignore_errors=True)
        (draft / 'bin').mkdir(parents=True)
        etc.mkdir(parents=True)
        for command in sorted((programs / 'bin').iterdir()):
            (draft / 'bin' / command.name).symlink_to(command)
        # No link: it looks for the rest beside the file that it really is.
        (draft / 'bin' / 'spack').unlink()
        shutil.copy(programs / 'bin' / 'spack', draft / 'bin')
        for name in ('lib', 'share', 'etc/spack/defaults'):
            (draft / name).symlink_to(programs / name)
        config = {
            'install_tree:': {
                'root': str(self.state / 'store'),
                'projections': {
                    'all': '{architecture.platform}/{architecture.target}/{name}-{version}-{hash}'
                },
            },
            'build_stage:': [str(self.state / 'stage')],
            'test_stage:': str(self.state / 'test'),
            'source_cache:': str(self.downloads),
            'misc_cache:': str(self.state / 'cache' / 'misc'),
            'license_dir:': str(self.state / 'licenses'),
        }
        mirrors = self._sites_mirrors()
        if (sources := paths.BUNDLE / SOURCES).is_dir():
            mirrors['bundle'] = {'url': str(sources), 'binary': False}
        # A key that ends in a colon replaces what other files say.
        files: dict[str, Any] = {
            'config': {'config': config},
            'mirrors': {'mirrors:': mirrors},
            'upstreams': {'upstreams:': {}},
            'modules': {'modules': {'default': {'enable:': []}}},
            'repos': {'repos': {'builtin:': self._builtin()}},
        }
        for name, content in files.items():
            (etc / f'{name}.yaml').write_text(yaml.safe_dump(content))
        shutil.rmtree(self.own, ignore_errors=True)
        draft.rename(self.own)

    def _programs(self) -> Path:
        """Where they are: a command on PATH may be a script that starts them."""
        if (self.root / 'lib' / 'spack' / 'spack').is_dir():
            return self.root
        return Path(self._ask_site('location', '--spack-root').strip())

    def _builtin(self) -> Any:
        """Where Spack has its package repository, as its ``repos.yaml`` tells."""
        if self.root == CLONES / 'spack':
            return str(CLONES / 'packages' / 'repos' / 'spack_repo' / 'builtin')
        try:
            place = self._site_has('repos')['builtin']
        except KeyError:
            raise AssayError(f'Spack in {self.root} has no package repository builtin.') from None
        if not isinstance(place, str):
            return _of_git(place)
        place = os.path.expanduser(os.path.expandvars(place))
        if '$' in place:
            return place  # a name that only Spack knows
        folder = self._programs() / 'etc' / 'spack' / place  # where it is relative
        if not folder.is_dir():
            raise AssayError(
                f'{folder}, where Spack in {self.root} has its package repository, is not there.'
            )
        return str(folder)

    def _sites_mirrors(self) -> dict[str, Any]:
        """The site's, for sources alone: whose binaries are measured is no site's choice."""
        found = {}
        for name, mirror in self._site_has('mirrors').items():
            known = mirror if isinstance(mirror, dict) else {'url': mirror}
            if known.get('source', True):
                found[name] = {**known, 'binary': False}
        return found

    def _site_has(self, section: str) -> dict[str, Any]:
        """A section of the configuration in ``$SPACK_ROOT``, its paths as they are in there."""
        import yaml

        text = self._ask_site('config', 'get', section)
        # Only Spack knows these names, and from another root they mean other folders.
        cache = os.environ.get('SPACK_USER_CACHE_PATH') or '~/.spack'
        folders = {'spack': str(self._programs()), 'user_cache_path': os.path.expanduser(cache)}
        text = _FOLDER.sub(lambda name: folders[name[1].strip('{}').lower()], text)
        found: dict[str, Any] = yaml.safe_load(text)
        return (found or {}).get(section) or {}

    def _ask_site(self, *arguments: str) -> str:
        """What the site's own Spack answers; that neither reads a user's files nor writes any."""
        nothing = str(self.state / 'nothing')
        variables = self.variables | {
            'SPACK_ROOT': str(self.root),
            'SPACK_USER_CONFIG_PATH': nothing,
            'SPACK_SYSTEM_CONFIG_PATH': nothing,
        }
        return self._run(self.root, variables, *arguments)

    def run(self, *arguments: str) -> str:
        """Standard output of one of its commands; all of its words are added to :data:`LOG`.

        :raises SpackRefusedError: if its solver finds no way, or a build fails.
        :raises SpackError: if it fails otherwise, or is killed.
        """
        return self._run(self.own, self.variables, *arguments)

    def _run(self, root: Path, variables: dict[str, str], *arguments: str) -> str:
        LOG.parent.mkdir(parents=True, exist_ok=True)
        with LOG.open('a') as words:
            print('$ spack', *arguments, file=words, flush=True)
            begin = words.tell()
            command = [str(root / 'bin' / 'spack'), '--color=never', *arguments]
            code, answer = _watched(command, variables, words)
            words.write(answer)
        if code:
            with LOG.open(errors='replace') as words:
                words.seek(begin)
                raise _failure(code, words.read())
        return answer


def _of_git(repository: dict[str, Any]) -> dict[str, Any]:
    """A package repository of Git: the site's clone, if there is one, is read.

    Where there is none Spack would make it, in a folder that is not ours.
    """
    clone = os.path.expanduser(os.path.expandvars(repository.get('destination') or ''))
    if clone and Path(clone, '.git').exists():
        return {**repository, 'destination': clone}
    return {key: value for key, value in repository.items() if key != 'destination'}


def _watched(command: list[str], variables: dict[str, str], words: IO[str]) -> tuple[int, str]:
    """Run a command to its end, or to that of this process, if that is killed.

    :param words: where its standard error goes.
    :returns: its exit code and its standard output.
    """
    theirs, ours = os.pipe()
    watch = [sys.executable, '-I', '-S', str(Path(__file__).with_name('watch.py')), str(theirs)]
    try:
        with subprocess.Popen(
            [*watch, *command],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            errors='replace',
            pass_fds=[theirs],
            start_new_session=True,
        ) as process:
            try:
                answer, _ = process.communicate()
            finally:
                os.close(ours)  # what is still at work ends
    finally:
        os.close(theirs)
    return process.returncode, answer


class SpackError(AssayError):
    """A command of Spack did not do what it was asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'{reason} (all it said: {LOG})')


class SpackRefusedError(SpackError):
    """Spack's solver finds no way, or a package does not build: it would answer the same again."""


#: How its errors say that, from the solver and from builds.
_REFUSAL = re.compile(
    'failed to concretize|concretization failed|cannot concretize|cannot depend on|cannot satisfy|'
    'unsatisfiable|no matching version|not match any known version|no such variant|'
    'invalid values? for|'
    r'ProcessError(?!(?s:.*)Killed signal)',
    re.IGNORECASE,
)


@contextlib.contextmanager
def turn(spack: Spack) -> Iterator[None]:
    """Wait until no other run has Spack at work; the lock goes with the process that holds it.

    :raises AssayError: if a file cannot be written, also while it is held.
    """
    try:
        spack.state.mkdir(parents=True, exist_ok=True)
        with (spack.state / 'lock').open('a+') as lock:
            if not locks.try_lock(lock.fileno(), spack.state / 'lock'):
                lock.seek(0)
                say(f'waiting for process {lock.read() or "?"}, which has Spack at work ...')
                locks.lock(lock.fileno(), spack.state / 'lock')
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield
    except OSError as error:
        raise AssayError(f'Spack cannot work in {spack.state}: {error}') from error


def _failure(code: int, words: str) -> SpackError:
    """Spack's own first error, on one line."""
    if code < 0:
        return SpackError(f'it was killed by signal {-code}; run this again')
    if 'No space left on device' in words or 'Disk quota exceeded' in words:
        return SpackError(f'no space is left for it; make room under {paths.SPACK}')
    if missing := re.search(r'Warning: (Error constructing repository .*)', words):
        return SpackError(
            f'it has no package repository ({missing[1]}): name a copy, as docs/spack.md shows'
        )
    _, found, rest = words.partition('Error: ')
    if not found:
        return SpackError(f'it ended with exit code {code}')
    # Up to an empty line or its next message.
    first = re.split(r'\n\n|\n==>', rest.lstrip())[0]
    kind = SpackRefusedError if _REFUSAL.search(first) else SpackError
    return kind(textwrap.shorten(first, 400, placeholder=' ...'))


@functools.cache
def find_spack() -> Spack:
    """The Spack that ``SPACK_ROOT`` names, the one on PATH, or the clone, in this order.

    :raises AssayError: if there is none, it does not answer, or it is too old.
    """
    root = _root()
    command = root / 'bin' / 'spack'
    if not os.access(command, os.X_OK):
        raise AssayError(
            f'SPACK_ROOT is {root}, but {command} is not a command: correct or unset it.'
        )
    env = os.environ | {'SPACK_PYTHON': sys.executable} | _compiled_elsewhere()
    asked = ask([command, '--version'], env=env)
    found = re.match(r'(\d+)\.(\d+)\S*', asked.stdout)
    if asked.returncode or not found:
        raise AssayError(
            f'{command} --version does not say a version: {asked.stderr.strip()[:200]}'
        )
    if (int(found[1]), int(found[2])) < OLDEST:
        raise AssayError(
            f'Spack {found[0]} in {root} is too old: 1.0 or newer is needed. Name another one with '
            f'SPACK_ROOT, or unset it and let `assay spack setup --clone` fetch one.'
        )
    return Spack(root, found[0])


def _root() -> Path:
    if named := os.environ.get('SPACK_ROOT'):
        return Path(named).expanduser().absolute()
    if command := shutil.which('spack'):
        return Path(command).resolve().parents[1]
    if (CLONES / 'spack').is_dir():
        return CLONES / 'spack'
    raise AssayError(
        'there is no Spack: set SPACK_ROOT, put spack on PATH, or let `assay spack setup --clone` '
        'fetch it. Without --with spack the suite needs none.'
    )


def clone(spack_url: str, packages_url: str) -> Spack:
    """Fetch Spack and its package repository, unless they are there.

    :raises AssayError: if Git cannot, or another Spack comes before the clone.
    """
    _clone(spack_url, SPACK_TAG, CLONES / 'spack')
    _clone(packages_url, PACKAGES_TAG, CLONES / 'packages')
    find_spack.cache_clear()
    used = find_spack()
    if used.root != CLONES / 'spack':
        raise AssayError(
            f'Spack in {used.root} comes before the clone: unset SPACK_ROOT and take it off PATH.'
        )
    return used


def _clone(url: str, tag: str, folder: Path) -> None:
    if folder.is_dir():
        return
    # Renamed when it is whole.
    draft = folder.with_name(f'{folder.name}.new')
    shutil.rmtree(draft, ignore_errors=True)
    draft.parent.mkdir(parents=True, exist_ok=True)
    quiet = ['-c', 'advice.detachedHead=false', 'clone', '--quiet']
    options = ['--depth=1', f'--branch={tag}']
    ended = git('assay spack setup --clone', *quiet, *options, url, str(draft))
    if ended.returncode:
        raise AssayError(
            f'cannot clone {tag} of {url}: {ended.stderr.strip().splitlines()[-1]}. Name a mirror '
            f'that this machine reaches with --spack-url and --packages-url.'
        )
    draft.rename(folder)
