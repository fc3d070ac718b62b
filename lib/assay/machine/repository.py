"""A Git repository on this machine: its commits, and folders in which one of them is unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from assay import AssayError, locks
from assay.files import explain_errors
from assay.machine.provenance import git
from assay.text import visible

#: Commits that stay unpacked: those that were used last, and all that were within so many seconds,
#: since another search may be at them.
KEPT, IN_USE = 20, 86400.0


@dataclass(frozen=True)
class Repository:
    """A work tree, or a bare repository, of any owner.

    :param needed_by: what of the suite needs Git, for the message if there is none.
    """

    path: Path
    needed_by: str

    @property
    def folder(self) -> Path:
        """The folder of Git.

        It is named to Git, which refuses one of another owner that it finds by itself.
        """
        own = self.path / '.git'
        return own if own.exists() else self.path

    @property
    def is_bare(self) -> bool:
        return self.folder == self.path

    def git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Git in it, to its end; its output is captured.

        :raises AssayError: if there is no Git.
        """
        tree = [] if self.is_bare else [f'--work-tree={self.path}']
        where = ['-C', str(self.path), f'--git-dir={self.folder}', *tree]
        return git(self.needed_by, *where, '--no-optional-locks', *arguments)

    def commit_of(self, name: str) -> str:
        """The commit that a name stands for.

        :raises AssayError: if there is none, or the repository cannot be read.
        """
        with explain_errors(self.path, 'read'):
            is_there = (self.folder / 'HEAD').is_file() or self.folder.is_file()
        if not is_there:
            raise AssayError(f'{self.path} is neither a Git work tree nor a bare repository')
        # No option ends in `^{commit}`; Git before 2.30 does not know `--end-of-options` here.
        asked = self.git('rev-parse', '--verify', '--quiet', f'{name}^{{commit}}')
        if asked.returncode:
            raise AssayError(f'{visible(name)} is no commit of {self.path}{self._cut_short()}')
        return asked.stdout.strip()

    def has_changes(self) -> bool:
        """Whether files that Git knows differ from those of the commit that is checked out."""
        if self.is_bare:
            return False
        return bool(self.git('status', '--porcelain', '--untracked-files=no').stdout)

    def differ(self, commits: Iterable[str], names: Iterable[str]) -> bool:
        """Whether files of two commits differ, or of one and what is checked out.

        :raises AssayError: if a commit is not there.
        """
        commits = [*commits]
        ended = self.git('diff', '--quiet', *commits, '--', *names)
        if ended.returncode not in (0, 1):
            told = ' or '.join(one[:12] for one in commits)
            raise AssayError(f'{told} is not in this repository{self._cut_short()}')
        return ended.returncode == 1

    def between(self, before: str, after: str, *names: str) -> list[tuple[str, str]]:
        """Commits and their subjects from one, without it, to another, the oldest first.

        :param names: only those that changed a file or folder of these.
        :raises AssayError: if the one does not come from the other by commits.
        """
        if self.git('merge-base', '--is-ancestor', before, after).returncode:
            told = f'{after[:12]} does not come from {before[:12]}'
            raise AssayError(f'{told}{self._cut_short()}')
        row = self.git('rev-list', '--first-parent', after).stdout.split()
        if not any(one.startswith(before) for one in row):
            raise AssayError(
                f'{before[:12]} is on a branch that was merged into {after[:12]}: not all commits '
                'between them come from it'
            )
        which = ['--first-parent', '--reverse', '--format=%H %s', f'{before}..{after}', '--']
        # Settings of the user, such as `log.showSignature`, change what `git log` prints.
        listed = self.git('rev-list', *which, *names)
        if listed.returncode:
            raise AssayError(f'git rev-list failed: {listed.stderr.strip()}')
        lines = (line.partition(' ') for line in listed.stdout.split('\n'))
        # A line before each says that a commit follows.
        return [(one, visible(subject)) for one, _, subject in lines if one not in ('commit', '')]

    def unpack(self, commit: str, into: Path, name: str = '') -> None:
        """Unpack a commit, or a file or folder of it, unless that was done.

        :param into: where it is then, in a folder of its own.
        :raises AssayError: if it cannot be had.
        """
        with explain_errors(into, 'made'):
            if not into.exists():
                above = into.parent.parent
                above.mkdir(parents=True, exist_ok=True)
                # Unpacked elsewhere: what was interrupted is never taken for whole.
                with TemporaryDirectory(dir=above, prefix='.new-') as new:
                    whole = Path(new, 'whole')
                    self._unpack(commit, whole, Path(new, 'packed.tar'), name)
                    into.parent.mkdir(exist_ok=True)
                    if not into.exists():  # another command may have been faster
                        (whole / name).rename(into)
            os.utime(into.parent)

    def _unpack(self, commit: str, folder: Path, packed: Path, name: str = '') -> None:
        folder.mkdir(exist_ok=True)
        which = [commit, *([name] if name else [])]
        ended = self.git('archive', '--output', str(packed), *which)
        if ended.returncode:
            raise AssayError(f'git archive {commit[:12]} failed: {ended.stderr.strip()}')
        with tarfile.open(packed) as archive:
            # Its links may lead anywhere, as those of a checkout.
            archive.extractall(folder, filter='tar')
        for module, its_commit, path in self._submodules(commit):
            if (folder / path).is_dir():
                with suppress(AssayError):  # it has not been fetched: its folder stays empty
                    module._unpack(its_commit, folder / path, packed)

    def _submodules(self, commit: str) -> list[tuple[Repository, str, str]]:
        """The submodules of a commit of this repository, each with its commit and its folder."""
        blob = f'--blob={commit}:.gitmodules'
        listed = self.git('config', blob, '--null', '--get-regexp', r'\.path$')
        found = []
        for entry in filter(None, listed.stdout.split('\0')):
            key, _, path = entry.partition('\n')
            name = key.removeprefix('submodule.').removesuffix('.path')
            link = self.git('rev-parse', '--verify', '--quiet', f'{commit}:{path}')
            fetched = [one / name for one in self._modules if (one / name / 'HEAD').is_file()]
            if not link.returncode and fetched:
                module = Repository(fetched[0], self.needed_by)
                found.append((module, link.stdout.strip(), path))
        return found

    @property
    def _modules(self) -> list[Path]:
        """Folders with what was fetched of submodules: for this work tree, and the first one."""
        asked = self.git('rev-parse', '--git-dir', '--git-common-dir')
        return [self.path / line / 'modules' for line in asked.stdout.splitlines()]

    def _cut_short(self) -> str:
        """The remedy if the repository is a shallow clone, which lacks commits; otherwise empty."""
        if self.git('rev-parse', '--is-shallow-repository').stdout.strip() != 'true':
            return ''
        return f': {self.path} is a shallow clone, see `git fetch --unshallow`'


def forget_old(commits: Iterable[Path]) -> None:
    """Remove folders of commits that were used long ago, where nobody is at work on one."""
    now = time.time()
    ages = {}
    for one in commits:
        with suppress(FileNotFoundError):  # another command may have removed it
            ages[one] = now - one.stat().st_mtime
    for old in sorted(ages, key=lambda one: ages[one])[KEPT:]:
        if ages[old] > IN_USE:
            lock = lock_of(old)
            with (
                suppress(AssayError),
                locks.hold_lock(lock, False) if lock.exists() else nullcontext(),
            ):
                shutil.rmtree(old, ignore_errors=True)


def lock_of(folder: Path) -> Path:
    """The file whose lock is held while a commit's folder is made or removed."""
    return folder.with_name(f'.{folder.name}.lock')
