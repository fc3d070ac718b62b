"""Programs of a site's applications, built of commits of their repositories: once for all runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay import AssayError, locks, paths
from assay.files import explain_errors, write_whole
from assay.machine.repository import Repository, forget_old, lock_of
from assay.running import site_applications
from assay.running.site_applications import SiteApplication
from assay.text import plain
from assay.tools import first_error

#: In the folder of a build: the checkout, what the build said, and, once it is whole, how many
#: seconds it took.
_CHECKOUT, _LOG, _WHOLE = 'checkout', 'log', 'whole'

#: Why a build of this process failed, by its folder: each case that needs it says the same.
_failed: dict[Path, str] = {}

#: Variables of the shell that a build takes, as one of the suite does (checks/share_build.sh).
_TAKEN = re.compile(
    r'CC|CXX|FC|(C|CXX|CPP|F|FC|LD)FLAGS|CMAKE_\w+|\w+_?ROOT'
    '|CPATH|(C|CPLUS)_INCLUDE_PATH|LIBRARY_PATH'
)

#: What ``timeout`` ends with where the time was over, or the command had to be killed for it.
_OVER = {124, 137, -9}


def repository_of(entry: SiteApplication) -> Repository:
    """The repository of an application that has one."""
    assert entry.repository is not None
    return Repository(site_applications.file().parent / entry.repository, site_applications.FILE)


@dataclass(frozen=True)
class Toolchain:
    """The shell, commands and compiler of a build.

    :param shell: and its options.
    :param commands: that load the environment in it.
    :param made_with: what makes another build of the same commit beside that, such as the compiler.
    :param seconds: that it has.
    """

    shell: Sequence[str]
    commands: Sequence[str]
    made_with: Sequence[str]
    seconds: float


def build(application: str, entry: SiteApplication, commit: str, tools: Toolchain) -> Path:
    """Have a commit unpacked and built, unless that was done; the checkout.

    :param commit: its full name.
    :raises AssayError: if it cannot be had, or does not build.
    """
    repository = repository_of(entry)
    told = [str(repository.path), entry.build, *tools.shell, *tools.commands, *tools.made_with]
    told += sorted(f'{name}={os.environ[name]}' for name in os.environ if _TAKEN.fullmatch(name))
    key = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]
    folder = _builds(application) / f'{commit}-{key}'
    if folder in _failed:
        raise AssayError(_failed[folder])
    with explain_errors(folder, 'made'):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locks.hold_lock(lock_of(folder)):
            if not (folder / _WHOLE).exists():
                if folder.exists():
                    shutil.rmtree(folder)
                repository.unpack(commit, folder / _CHECKOUT)
                try:
                    took = _build(
                        f'{application}: commit {commit[:12]}', entry.build, folder, tools
                    )
                except AssayError as error:
                    _failed[folder] = str(error)
                    raise
                write_whole(folder / _WHOLE, f'{took:.3f}\n')
            os.utime(folder)
    forget_old(folder.parent.glob('[0-9a-f]*'))
    return folder / _CHECKOUT


def _build(name: str, command: str, folder: Path, tools: Toolchain) -> float:
    """Build in a folder; how many seconds it took.

    :param name: of what is built, for the message.
    :raises AssayError: if that fails, or takes too long.
    """
    script = '\n'.join([*tools.commands, 'set -e', command])
    # With all that it has started: some of it may hold its output open.
    limit = ['timeout', '--kill-after=10', f'{tools.seconds:g}']
    log, began = folder / _LOG, time.monotonic()
    with log.open('w') as said:
        code = subprocess.run(
            [*limit, *tools.shell, '-c', script],
            cwd=folder / _CHECKOUT,
            # Git would give a build that asks for its commit that of the suite around it.
            env={**os.environ, 'GIT_CEILING_DIRECTORIES': str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        ).returncode
    took = time.monotonic() - began
    if code in _OVER and took >= tools.seconds:
        raise AssayError(f'{name} was not built in {tools.seconds / 60:.3g} min: see {log}')
    if code:
        why = plain(first_error(log) or f'exit code {code}')
        raise AssayError(f'{name} does not build: {why} (see {log})')
    return took


def seconds_of_builds(applications: Iterable[str]) -> list[float]:
    """How long each build of applications took that is still there."""
    found = []
    for application in applications:
        for whole in _builds(application).glob(f'*/{_WHOLE}'):
            with suppress(OSError, ValueError):
                found.append(float(whole.read_text()))
    return found


def _builds(application: str) -> Path:
    return paths.BUILDS / 'applications' / application
