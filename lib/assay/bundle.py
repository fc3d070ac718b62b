"""All that a checkout fetches from elsewhere, in one folder, for a machine that cannot fetch it.

The launcher takes it into use: it has to be checked before there is any Python that could run this.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from assay import AssayError, paths, say
from assay.machine.provenance import git
from assay.machine.wheels import NEEDED, STAMP, pip
from assay.spack.tool import CLONES, PACKAGES_TAG, SOURCES, SPACK_TAG, Spack, find_spack

LOG = paths.LOGS / 'bundle.log'

# The checksums of all other files, as sha256sum reads them; a list that was cut lacks the end.
SUMS = 'SHA256SUMS'
END = '# whole\n'


def create_bundle(folder: Path, mpis: Iterable[str], with_spack: bool) -> None:
    """Gather the suite, its wheels and those of MPIs, and all that Spack has fetched, in a folder.

    :param mpis: names of lock files in ``config/mpi``, besides those that any machine may need
        and those that are installed here.
    :raises AssayError: if something is in the way; then there is no such folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AssayError(f'{folder} already exists and is not empty: name a new folder.')
    _assert_committed()
    spack = _cloned_spack() if with_spack else None
    installed = {path.parent.name for path in paths.MPI_PREFIXES.glob(f'*/{STAMP}')}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # It gets its name when it is whole.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f'.{folder.name}-') as around:
            draft = Path(around, folder.name)
            draft.mkdir()
            _copy_repository(
                paths.ROOT, 'HEAD:refs/heads/main', draft / 'assay.git', '--update-shallow'
            )
            _fetch_wheels(sorted({*NEEDED, *installed, *mpis}), draft)
            if spack:
                _copy_spack(spack, draft)
            _write_sums(draft)
            draft.rename(folder)
    except OSError as error:
        raise AssayError(f'cannot make {folder}: {error}') from error


def _assert_committed() -> None:
    changed = _git('-C', str(paths.ROOT), 'status', '--porcelain').splitlines()
    if changed:
        names = ', '.join(line[3:] for line in changed)
        raise AssayError(
            f'a bundle has what is committed, and would lack {names}: commit or remove that first.'
        )


def _cloned_spack() -> Spack:
    spack = find_spack()
    if spack.root != CLONES / 'spack':
        raise AssayError(
            f'a bundle takes the Spack that `assay spack setup --clone` fetched, not the one in '
            f'{spack.root}: unset SPACK_ROOT, take it off PATH, and let that command fetch it.'
        )
    return spack


def _fetch_wheels(mpis: list[str], draft: Path) -> None:
    say(f'fetching the wheels of the suite, {", ".join(mpis)} ...')
    # The lock of the tests has all that the other one has.
    locks = [paths.ROOT / 'requirements-test.lock']
    locks += [paths.MPI_LOCKS / f'{name}.lock' for name in mpis]
    options = [option for lock in locks for option in ('-r', str(lock))]
    pip('fetching the wheels', LOG, 'download', '--dest', str(draft / 'wheels'), *options)
    # The launcher takes the Python that they are for.
    (draft / 'python').write_text(f'{sys.version_info.major}.{sys.version_info.minor}\n')


def _copy_spack(spack: Spack, draft: Path) -> None:
    """Sources, and no binaries: the other side builds with its own compilers and MPIs."""
    say('copying Spack, its packages and the sources that it has fetched ...')
    for clone, tag, name in (
        ('spack', SPACK_TAG, 'spack.git'),
        ('packages', PACKAGES_TAG, 'spack-packages.git'),
    ):
        release = f'refs/tags/{tag}:refs/tags/{tag}'
        _copy_repository(CLONES / clone, release, draft / name, '--depth=1')
    if spack.downloads.is_dir():
        shutil.copytree(spack.downloads, draft / SOURCES)


def _copy_repository(source: Path, reference: str, target: Path, depth: str) -> None:
    """One commit, in few files; ``depth`` is Git's option that says how much of its history."""
    _git('init', '--quiet', '--bare', '--template=', '--initial-branch=main', str(target))
    _git(
        *('-C', str(target), 'fetch', '--quiet', '--no-tags', '--no-write-fetch-head', depth),
        *(str(source), reference),
    )


def _git(*arguments: str) -> str:
    ended = git('assay bundle create', *arguments)
    if ended.returncode:
        reason = ''.join(ended.stderr.strip().splitlines()[-1:])
        raise AssayError(f'`git {" ".join(arguments)}` failed: {reason}')
    return ended.stdout


def _write_sums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob('*') if path.is_file())
    lines = [
        f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n'
        for path in files
    ]
    (folder / SUMS).write_text(''.join([*lines, END]))
