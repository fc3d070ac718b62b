"""Git, which copies repositories."""

from __future__ import annotations

import subprocess

from assay import AssayError


def git(needed_by: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Git to its end, whatever that is; its output is captured.

    :param needed_by: the command of the suite that needs it.
    :raises AssayError: if there is no Git.
    """
    try:
        return subprocess.run(
            ['git', *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise AssayError(f'git is not on PATH: `{needed_by}` needs it.') from None
