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

import yaml

from assay import AssayError, locks, paths, say
from assay.machine.git import git

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

# The folder of a bundle that is a mirror of the sources of packages.
SOURCES = 'spack-sources'


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
    def variables(self) -> dict[str, str]:
        """The environment in which it sees nothing of ``~/.spack``, ``/etc/spack`` or a shell's."""
        others = {name: value for name, value in os.environ.items() if name[:6] != 'SPACK_'}
        return others | {
            'SPACK_ROOT': str(self.root),
            # Where clingo is: Spack would fetch one of its own.
            'SPACK_PYTHON': sys.executable,
            'SPACK_USER_CONFIG_PATH': str(self.state / 'user'),
            'SPACK_SYSTEM_CONFIG_PATH': str(self.state / 'system'),
            'SPACK_USER_CACHE_PATH': str(self.state / 'cache'),
        }

    def configure(self) -> None:
        """Write its user configuration: everything stays under :attr:`state`."""
        config = {
            'install_tree': {'root': str(self.state / 'store')},
            'build_stage': [str(self.state / 'stage')],
            'source_cache': str(self.downloads),
            'license_dir': str(self.state / 'licenses'),
        }
        mirrors = {}
        if (sources := paths.BUNDLE / SOURCES).is_dir():
            mirrors['bundle'] = {'url': str(sources), 'binary': False}
        files = {'config': config, 'mirrors': mirrors}
        if self.root == CLONES / 'spack':
            packages = CLONES / 'packages' / 'repos' / 'spack_repo' / 'builtin'
            files['repos'] = {'builtin': str(packages)}
        (self.state / 'system').mkdir(parents=True, exist_ok=True)
        (self.state / 'user').mkdir(exist_ok=True)
        for name, content in files.items():
            path = self.state / 'user' / f'{name}.yaml'
            path.write_text(yaml.safe_dump({name: content}))

    def run(self, *arguments: str) -> str:
        """Standard output of one of its commands; all of its words are added to :data:`LOG`.

        :raises SpackError: if it fails or is killed.
        """
        LOG.parent.mkdir(parents=True, exist_ok=True)
        with LOG.open('a') as words:
            print('$ spack', *arguments, file=words, flush=True)
            begin = words.tell()
            ended = subprocess.run(
                [self.root / 'bin' / 'spack', '--color=never', *arguments],
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=words,
                text=True,
            )
            words.write(ended.stdout)
        if ended.returncode:
            with LOG.open(errors='replace') as words:
                words.seek(begin)
                raise SpackError(_reason(ended.returncode, words.read()))
        return ended.stdout


class SpackError(AssayError):
    """A command of Spack did not do what it was asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'{reason} (all it said: {LOG})')


@contextlib.contextmanager
def turn(spack: Spack) -> Iterator[None]:
    """Wait until no other run has Spack at work; the lock goes with the process that holds it.

    :raises AssayError: if a file cannot be written, also while it is held.
    """
    try:
        spack.state.mkdir(parents=True, exist_ok=True)
        with (spack.state / 'lock').open('a+') as lock:
            try:
                locks.lock(lock.fileno(), spack.state / 'lock', wait=False)
            except locks.LockedError:
                lock.seek(0)
                say(f'waiting for process {lock.read() or "?"}, which has Spack at work ...')
                locks.lock(lock.fileno(), spack.state / 'lock')
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield
    except OSError as error:
        raise AssayError(f'Spack cannot work in {spack.state}: {error}') from error


def _reason(code: int, words: str) -> str:
    """Spack's own first error, on one line."""
    if code < 0:
        return f'it was killed by signal {-code}; run this again'
    if 'No space left on device' in words or 'Disk quota exceeded' in words:
        return f'no space is left for it; make room under {paths.SPACK}'
    _, found, rest = words.partition('Error: ')
    if not found:
        return f'it ended with exit code {code}'
    # Up to an empty line or its next message.
    return textwrap.shorten(re.split(r'\n\n|\n==>', rest.lstrip())[0], 400, placeholder=' ...')


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
    asked = subprocess.run(
        [command, '--version'],
        env=os.environ | {'SPACK_PYTHON': sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
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
        return Path(named)
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
