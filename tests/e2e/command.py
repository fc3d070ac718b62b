"""Calling the command as a user does."""

import os
import subprocess

from assay import paths


def assay(*arguments, root=paths.ROOT, env=None, seconds=900):
    """Run ``./assay`` of a checkout; returns the ended process with its output."""
    return subprocess.run(
        [root / 'assay', *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
