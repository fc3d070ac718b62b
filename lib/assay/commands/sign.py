"""The commands ``accept key``, ``sign`` and ``verify``: signatures of an acceptance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import JsonOption

#: The exit code after Ctrl-C.
STOPPED = 130


def key(
    file: Annotated[Path, typer.Argument(metavar='FILE', help='The file of the private key.')],
) -> None:
    """Make a pair of keys to sign with.

    FILE stays with you, and FILE.pub is for all others.

    FILE is encrypted with the passphrase that is asked for, where there is a terminal.

    Example:

    \b
      assay accept key buyer.key
    """
    from assay.acceptance.signatures import fingerprint, make_keys, public_key

    passphrase = ''
    if sys.stdin.isatty():
        passphrase = _ask('Passphrase, empty for none')
        if passphrase and _ask('The same once more') != passphrase:
            raise AssayError('the passphrases differ: no key was made')
    path = make_keys(file, passphrase)
    without = '' if passphrase else ', without a passphrase'
    print(f'{file}{without}, and {path}: {fingerprint(public_key(path))}')


def sign(
    folder: Annotated[Path, typer.Argument(metavar='FOLDER', help='The folder of an acceptance.')],
    who: Annotated[
        str, typer.Option('--as', metavar='NAME', help='Who signs, as the contract names them.')
    ],
    file: Annotated[
        Path, typer.Option('--key', metavar='FILE', help='The file of an Ed25519 private key.')
    ],
) -> None:
    """Verify an acceptance, and sign it as it is now.

    Whatever is added to it later needs all signatures once more.

    Example:

    \b
      assay accept sign acceptance --as 'A. Buyer' --key buyer.key
    """
    from assay.acceptance import signatures
    from assay.acceptance.archive import find
    from assay.acceptance.verify import assert_may_be_signed

    private = signatures.private_key(file, lambda: _ask('Passphrase'))
    contract = assert_may_be_signed(folder)
    path = signatures.sign(find(folder), contract.parties, who, private)
    print(f'{path}: {signatures.describe(signatures.read_signature(path))}')


def _ask(what: str) -> str:
    """A passphrase, which may be empty.

    :raises AssayError: if there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise AssayError('the key has a passphrase, and there is no terminal to ask for it at')
    try:
        answer: str = typer.prompt(what, '', hide_input=True, show_default=False)
    except typer.Abort:
        raise typer.Exit(STOPPED) from None
    return answer


def verify(
    folder: Annotated[Path, typer.Argument(metavar='FOLDER', help='The folder of an acceptance.')],
    public_key: Annotated[
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
    executed. No network is needed, and no system. Without --public-key it is not known whose the
    keys of the signatures are.

    The exit code is 0 only if all is right, and signed by all who have to by the contract.

    Examples:

    \b
      assay accept verify acceptance
      assay accept verify acceptance --public-key 'A. Buyer=buyer.pub' \\
        --public-key 'B. Vendor=vendor.pub'
    """
    from assay.acceptance.signatures import named_keys
    from assay.acceptance.verify import verify as hold

    found = hold(folder, named_keys(public_key or []))
    print(found.as_json() if as_json else '\n'.join(found.lines()))
    raise typer.Exit(0 if found.is_right else 1)
