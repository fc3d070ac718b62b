"""Keys that acceptances are signed with: Ed25519, private ones in PEM, public ones as OpenSSH's."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from assay import AssayError
from assay.acceptance.canonical import digest
from assay.acceptance.files import read_bounded

#: Bytes of a file with a key at most.
MOST = 64 << 10

#: With which OpenSSH's form of a private key begins.
_OPENSSH = b'-----BEGIN OPENSSH PRIVATE KEY-----'
#: With which what that holds begins.
_MAGIC = b'openssh-key-v1\0'


def make(path: Path, passphrase: str) -> Path:
    """Make a pair of keys.

    :param path: of the private key, which only its owner may read.
    :param passphrase: that it is encrypted with; empty for none.
    :returns: the path of the public key.
    :raises AssayError: if there is a file already, or none can be written.
    """
    public = path.with_name(f'{path.name}.pub')
    for one in (path, public):
        if os.path.lexists(one):
            raise AssayError(f'{one} is there, and no key is replaced: give another name')
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode())
        if passphrase
        else serialization.NoEncryption(),
    )
    for one, data, mode in ((path, private, 0o600), (public, _openssh(key.public_key()), 0o644)):
        try:
            handle = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with open(handle, 'wb') as file:
                file.write(data)
        except OSError as error:
            raise AssayError(f'{one}: cannot be written: {error.strerror}') from None
    return public


def private(path: Path, ask: Callable[[], str]) -> Ed25519PrivateKey:
    """A private key.

    :param ask: for its passphrase, if it has one.
    :raises AssayError: if the file holds none, or the passphrase is another.
    """
    data = read_bounded(path, MOST)
    is_openssh = data.startswith(_OPENSSH)
    # For which cryptography needs a package that is not of the suite: nobody is asked in vain.
    if is_openssh and _is_encrypted(data) and not find_spec('bcrypt'):
        raise AssayError(
            f"{path}: a key with a passphrase in OpenSSH's form cannot be read here: make one by "
            f'`assay accept key FILE`, which takes a passphrase as well, or sign with a copy '
            f"without one (`ssh-keygen -p -N '' -f COPY`) that you remove afterwards"
        )
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        try:
            key = load(data, None)
        except TypeError:  # as it is encrypted
            key = load(data, ask().encode())
    except UnsupportedAlgorithm:
        raise AssayError(
            f'{path}: a key of a kind that cannot be read here: make one by `assay accept key FILE`'
        ) from None
    except (TypeError, ValueError):
        raise AssayError(f'{path}: no private key, or not of this passphrase') from None
    if not isinstance(key, Ed25519PrivateKey):
        raise AssayError(f'{path}: no Ed25519 key: make one by `assay accept key FILE`')
    return key


def _is_encrypted(data: bytes) -> bool:
    """Whether a private key in OpenSSH's form is: its first field names the cipher."""
    text = data.removeprefix(_OPENSSH).partition(b'-----')[0]
    try:
        fields = base64.b64decode(text)
    except ValueError:
        return False
    return fields.startswith(_MAGIC) and not fields.startswith(_MAGIC + b'\0\0\0\x04none')


def public(path: Path) -> Ed25519PublicKey:
    """A public key.

    :raises AssayError: if the file holds none.
    """
    data = read_bounded(path, MOST)
    is_pem = data.lstrip().startswith(b'-----BEGIN')
    load = serialization.load_pem_public_key if is_pem else serialization.load_ssh_public_key
    try:
        key = load(data.strip())
    except (ValueError, UnsupportedAlgorithm):
        raise AssayError(f'{path}: no public key in the form of OpenSSH or PEM') from None
    if not isinstance(key, Ed25519PublicKey):
        raise AssayError(f'{path}: no Ed25519 key')
    return key


def named(words: Iterable[str]) -> dict[str, Ed25519PublicKey]:
    """The public keys of people, by their names.

    :param words: ``NAME=FILE``.
    :raises AssayError: if one is none, a name stands twice, or a file holds no key.
    """
    found: dict[str, Ed25519PublicKey] = {}
    for word in words:
        name, equals, file = word.rpartition('=')
        if not (name and equals and file):
            raise AssayError(f'--key {word}: write NAME=FILE, with the name of who signs')
        if name in found:
            raise AssayError(f'--key {word}: {name} has a key already')
        found[name] = public(Path(file))
    return found


def fingerprint(key: Ed25519PublicKey) -> str:
    """By which people tell keys apart, as ``ssh-keygen -l`` prints it."""
    blob = base64.b64decode(_openssh(key).split()[1])
    value = base64.b64encode(bytes.fromhex(digest(blob))).decode().rstrip('=')
    return f'SHA256:{value}'


def _openssh(key: Ed25519PublicKey) -> bytes:
    return (
        key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b'\n'
    )
