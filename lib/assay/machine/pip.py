"""Python's package installer: how wheels come to this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from assay import AssayError, paths


def pip(purpose: str, log: Path, command: str, *options: str) -> None:
    """Have pip do something with the wheels of lock files, and with no others.

    :param purpose: what it is for, for the message of a failure: ``installing mpich``.
    :param log: where its output goes.
    :raises AssayError: if it fails, saying what could not be fetched.
    """
    words = [sys.executable, '-m', 'pip', command, '--disable-pip-version-check', '--no-input']
    words += ['--require-hashes', '--only-binary', ':all:', *options]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open('w') as out:
        code = subprocess.run(words, stdout=out, stderr=subprocess.STDOUT).returncode
    if code == 0:
        return
    text = log.read_text(errors='replace')
    missing = re.search(r'No matching distribution found for (\S+)', text)
    if missing and paths.BUNDLE.exists():
        raise AssayError(
            f'the bundle in use, {paths.BUNDLE.resolve()}, has no {missing[1]} that fits this '
            f"machine: make one that has, with `assay bundle create`. pip's log: {log}"
        )
    if missing:
        raise AssayError(
            f'cannot fetch {missing[1]}: that needs a package index that this machine reaches and '
            'that has it for this platform. Connect the machine, name a mirror with PIP_INDEX_URL, '
            f"or bring a bundle (docs/closed-networks.md). pip's log: {log}"
        )
    last = ' / '.join(line.strip() for line in text.splitlines()[-3:])
    raise AssayError(f"{purpose} failed: {last}. pip's log: {log}")
