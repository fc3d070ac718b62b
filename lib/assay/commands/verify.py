"""The command ``verify``: whether the folder of an acceptance is what was signed.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.commands.options import JsonOption


def verify(
    folder: Annotated[Path, typer.Argument(metavar='FOLDER', help='The folder of an acceptance.')],
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar='NAME=FILE',
            help='The public key of who signs by this name; once for each.',
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Verify the folder of an acceptance.

    That is its files, journal, signatures, figures and decisions.

    Every figure is computed again from the outputs in the folder, and nothing in the folder is
    executed. No network is needed, and no system. Without --key it is not known whose the keys of
    the signatures are.

    The exit code is 0 only if all is right, and signed by all who have to by the contract.

    Examples:

    \b
      assay verify acceptance
      assay verify acceptance --key 'A. Buyer=buyer.pub' --key 'B. Vendor=vendor.pub'
    """
    from assay.acceptance.signatures import named_keys
    from assay.acceptance.verify import verify as hold

    found = hold(folder, named_keys(key or []))
    print(found.as_json() if as_json else '\n'.join(found.lines()))
    raise typer.Exit(0 if found.is_right else 1)
