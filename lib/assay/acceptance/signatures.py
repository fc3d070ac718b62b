"""Signatures of an acceptance: who signed what it was at a time, with which key.

What is signed is the last line of the journal with the number of its entries: the journal tells
what all other files hold.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from assay import AssayError
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.contract import Parties
from assay.acceptance.files import canonical, digest, digest_of, parse_record
from assay.acceptance.journal import Chain
from assay.files import explain_errors, read_bounded, write_whole
from assay.text import plain

#: Bytes of a file with a key, and of one with a signature, at most.
MOST = 64 << 10

#: With which OpenSSH's form of a private key begins.
_OPENSSH = b'-----BEGIN OPENSSH PRIVATE KEY-----'
#: With which what that holds begins.
_MAGIC = b'openssh-key-v1\0'


def make_keys(path: Path, passphrase: str) -> Path:
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
        with explain_errors(one, 'written'):
            handle = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with open(handle, 'wb') as file:
                file.write(data)
    return public


def private_key(path: Path, ask: Callable[[], str]) -> Ed25519PrivateKey:
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


def public_key(path: Path) -> Ed25519PublicKey:
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


def named_keys(words: Iterable[str]) -> dict[str, Ed25519PublicKey]:
    """The public keys of people, by their names.

    :param words: ``NAME=FILE``.
    :raises AssayError: if one is none, a name stands twice, or a file holds no key.
    """
    found: dict[str, Ed25519PublicKey] = {}
    for word in words:
        name, equals, file = word.rpartition('=')
        if not (name and equals and file):
            raise AssayError(f'--public-key {word}: write NAME=FILE, with the name of who signs')
        if name in found:
            raise AssayError(f'--public-key {word}: {name} has a key already')
        found[name] = public_key(Path(file))
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


#: Before what is signed, so that no signature of anything else is one of an acceptance.
DOMAIN = b'assay acceptance signature 1\n'


_KEYS = {'who', 'party', 'key', 'state', 'time', 'signature'}


@dataclass(frozen=True)
class SignedState:
    """The state of an archive at a time.

    :param contract: SHA-256 of the contract.
    :param head: SHA-256 of the last line of the journal.
    :param entries: how many entries the journal has.
    """

    contract: str
    head: str
    entries: int


@dataclass(frozen=True)
class Signature:
    """A file of a signature.

    :param who: signed, for which ``party``.
    :param key: that it was made with.
    :param time: UTC, as the machine of who signed had it.
    """

    who: str
    party: str
    key: Ed25519PublicKey
    state: SignedState
    time: datetime


def state_of(archive: Archive, chain: Chain) -> SignedState:
    """The state of an archive now.

    :raises AssayError: if it cannot be read.
    """
    with explain_errors(archive.contract, 'read'):
        return SignedState(digest_of(archive.contract), chain.head, len(chain.entries))


def signers(parties: Parties) -> dict[str, tuple[str, str]]:
    """The signers with their parties, by the name of the signature's file."""
    return {
        f'{party}-{number}.json': (party, who)
        for party, one in (('buyer', parties.buyer), ('vendor', parties.vendor))
        for number, who in enumerate(one.signers, 1)
    }


def sign_archive(archive: Archive, parties: Parties, who: str, key: Ed25519PrivateKey) -> Path:
    """Sign what an archive is now; an earlier signature of the same signer is replaced.

    :returns: the file of the signature.
    :raises AssayError: if the contract does not name the signer, or it cannot be written.
    """
    places = {signer: (name, party) for name, (party, signer) in signers(parties).items()}
    if who not in places:
        known = ', '.join(places)
        raise AssayError(f'{who!r} is not one of those who sign by the contract: {known}')
    name, party = places[who]
    chain = journal.read_journal(archive.journal)
    chain.assert_whole(archive.journal)
    record = {
        'who': who,
        'party': party,
        'key': key.public_key().public_bytes_raw().hex(),
        'state': vars(state_of(archive, chain)),
        'time': datetime.now(timezone.utc).isoformat(timespec='seconds'),
    }
    made = key.sign(DOMAIN + canonical(record)).hex()
    path = archive.signatures / name
    with explain_errors(path, 'written'):
        archive.signatures.mkdir(exist_ok=True)
        write_whole(path, canonical(record | {'signature': made}) + b'\n')
    return path


def read_signature(path: Path) -> Signature:
    """The signature of a file, which fits what it says.

    :raises AssayError: if it does not, or is none.
    """
    data = read_bounded(path, MOST)
    try:
        if not data.endswith(b'\n'):
            raise ValueError('it does not end with a line')
        record = parse_record(data[:-1])
        if record.keys() != _KEYS:
            raise ValueError('it is no signature of an acceptance')
        key = Ed25519PublicKey.from_public_bytes(_bytes(record['key'], 32))
        made = _bytes(record.pop('signature'), 64)
        key.verify(made, DOMAIN + canonical(record))
        when = datetime.fromisoformat(record['time'])
        if when.utcoffset() != timedelta(0):
            raise ValueError('its time is none in UTC')
        state = SignedState(**record['state'])
        if type(state.entries) is not int or state.entries < 1:
            raise ValueError('it is of no journal')
        return Signature(str(record['who']), str(record['party']), key, state, when)
    except InvalidSignature:
        raise AssayError(
            f'the signature {path.name} does not fit what it says: it was changed'
        ) from None
    except (TypeError, ValueError) as error:
        told = plain(str(error), 200)
        raise AssayError(f'the signature {path.name} was changed: {told}') from None


def signature_faults(one: Signature, now: SignedState, chain: Chain) -> Iterator[str]:
    """Sentences: where a signature is of something else than what an archive is now."""
    whose, then = f'the signature of {plain(one.who, 100)}', one.state
    if then == now:
        if chain.entries and one.time < chain.entries[-1].time.replace(microsecond=0):
            yield (
                f'{whose} is of {one.time:%Y-%m-%d %H:%M:%S}, before the last entry of the '
                f'journal: the clock was set back'
            )
        return
    if then.contract != now.contract:
        yield f'{whose} is of another contract: it was made for another acceptance'
    elif then.entries > now.entries:
        yield (
            f'{whose} was made when the journal had {then.entries} entries, and it has '
            f'{now.entries}: its last entries were removed, or it is of another acceptance'
        )
    elif chain.entries[then.entries - 1].digest != then.head:
        yield (
            f'{whose} is of a journal.jsonl whose entry {then.entries} is another one: an entry up '
            f'to it was changed, or it is of another acceptance'
        )
    else:
        yield (
            f'{whose} is of an earlier state, in which the journal had {then.entries} entries of '
            f'the {now.entries} that it has now: it has to be made again'
        )


def describe(one: Signature) -> str:
    """A sentence: who signed with which key."""
    return (
        f'{plain(one.who, 100)} signed for the {one.party} on {one.time:%Y-%m-%d %H:%M} UTC with '
        f'the key {fingerprint(one.key)}'
    )


def _bytes(text: Any, count: int) -> bytes:
    """:raises ValueError: if a text is not so many bytes, in the one way to write them."""
    data = bytes.fromhex(text)
    if len(data) != count or data.hex() != text:
        raise ValueError('its key and signature are not written as Assay writes them')
    return data
