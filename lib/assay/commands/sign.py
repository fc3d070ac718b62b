"""The commands ``accept key`` and ``accept sign``: by which parties sign an acceptance.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def key(
    file: Annotated[Path, typer.Argument(metavar='FILE', help='The file of the private key.')],
) -> None:
    """Make a pair of keys to sign with: FILE, which stays with you, and FILE.pub for all others.

    They are Ed25519 keys in OpenSSH's form; one that ssh-keygen made does as well.

    Example:

    \b
      assay accept key buyer.key
    """
    from assay.acceptance.keys import fingerprint, make, public

    passphrase = typer.prompt(
        'Passphrase, empty for none',
        '',
        hide_input=True,
        show_default=False,
        confirmation_prompt=True,
    )
    path = make(file, passphrase)
    print(f'{file} and {path}: {fingerprint(public(path))}')


def sign(
    folder: Annotated[Path, typer.Argument(metavar='FOLDER', help='The folder of an acceptance.')],
    who: Annotated[
        str, typer.Option('--as', metavar='NAME', help='Who signs, as the contract names them.')
    ],
    file: Annotated[
        Path, typer.Option('--key', metavar='FILE', help='The file of an Ed25519 private key.')
    ],
) -> None:
    """Sign an acceptance as it is now, once all in it has been verified but the signatures.

    Whatever is added to it later needs all signatures once more.

    Example:

    \b
      assay accept sign acceptance --as 'A. Buyer' --key buyer.key
    """
    from assay.acceptance import keys, signature
    from assay.acceptance.archive import find
    from assay.acceptance.verify import assert_may_be_signed

    private = keys.private(file, lambda: typer.prompt('Passphrase', hide_input=True))
    contract = assert_may_be_signed(folder)
    path = signature.sign(find(folder), contract.parties, who, private)
    print(f'{path}: {signature.told(signature.read(path))}')
