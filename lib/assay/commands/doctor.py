"""The command ``doctor``: what this machine has for the suite.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import typer


def doctor() -> None:
    """Say what this machine has and lacks, and what to do about it.

    The exit code is 0 if `assay run` can work here.

    Example:

    \b
      assay doctor
    """
    from assay.running.doctor import examine

    raise typer.Exit(0 if examine() else 1)
