"""Signatures of an acceptance: who signed what it was at a time, with which key.

What is signed is the state of the whole archive: its contract, the last line of its journal with
the number of its entries, its manifest, and its report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from assay import AssayError
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.canonical import canonical, digest, digest_of, parse
from assay.acceptance.contract import Parties
from assay.acceptance.files import read_bounded
from assay.acceptance.journal import Chain
from assay.acceptance.keys import fingerprint
from assay.files import write_whole
from assay.text import plain

#: Before what is signed, so that no signature of anything else is one of an acceptance.
DOMAIN = b'assay acceptance signature 1\n'

#: Bytes of a file of a signature at most.
MOST = 64 << 10

_KEYS = {'who', 'party', 'key', 'state', 'time', 'signature'}


@dataclass(frozen=True)
class State:
    """What an archive is at a time.

    :param contract: SHA-256 of the contract.
    :param head: SHA-256 of the last line of the journal.
    :param entries: how many entries the journal has.
    :param manifest: SHA-256 of the manifest.
    :param report: SHA-256 of the list of the files of the report, as the journal tells it.
    """

    contract: str
    head: str
    entries: int
    manifest: str
    report: str


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
    state: State
    time: datetime


def state_of(archive: Archive, chain: Chain) -> State:
    """What an archive is now.

    :raises AssayError: if it cannot be read.
    """
    try:
        contract, manifest = digest_of(archive.contract), digest_of(archive.manifest)
    except OSError as error:
        raise AssayError(f'{error.filename}: cannot be read: {error.strerror}') from None
    told = [entry.what['files'] for entry in chain.entries if entry.kind == 'report']
    report = digest(canonical(told[-1] if told else {}))
    return State(contract, chain.head, len(chain.entries), manifest, report)


def signers(parties: Parties) -> dict[str, tuple[str, str]]:
    """Who has to sign: party and name, by the name of the signature's file."""
    return {
        f'{party}-{number}.json': (party, who)
        for party, one in (('buyer', parties.buyer), ('vendor', parties.vendor))
        for number, who in enumerate(one.signers, 1)
    }


def sign(archive: Archive, parties: Parties, who: str, key: Ed25519PrivateKey) -> Path:
    """Sign what an archive is now; an earlier signature of the same signer is replaced.

    :returns: the file of the signature.
    :raises AssayError: if the contract does not name the signer, or it cannot be written.
    """
    places = [name for name, one in signers(parties).items() if one[1] == who]
    if len(places) != 1:
        known = ', '.join(one for _, one in signers(parties).values())
        raise AssayError(f'{who!r} is not one of those who sign by the contract: {known}')
    (name,) = places
    chain = journal.read(archive.journal)
    chain.assert_whole(archive.journal)
    record = {
        'who': who,
        'party': signers(parties)[name][0],
        'key': key.public_key().public_bytes_raw().hex(),
        'state': vars(state_of(archive, chain)),
        'time': datetime.now(timezone.utc).isoformat(timespec='seconds'),
    }
    made = key.sign(DOMAIN + canonical(record)).hex()
    path = archive.signatures / name
    try:
        archive.signatures.mkdir(exist_ok=True)
        write_whole(path, canonical(record | {'signature': made}) + b'\n')
    except OSError as error:
        raise AssayError(f'{path}: cannot be written: {error.strerror}') from None
    return path


def read(path: Path) -> Signature:
    """The signature of a file, which fits what it says.

    :raises AssayError: if it does not, or is none.
    """
    data = read_bounded(path, MOST)
    try:
        if not data.endswith(b'\n'):
            raise ValueError('it does not end with a line')
        record = parse(data[:-1])
        if record.keys() != _KEYS:
            raise ValueError('it is no signature of an acceptance')
        key = Ed25519PublicKey.from_public_bytes(_bytes(record['key'], 32))
        made = _bytes(record.pop('signature'), 64)
        key.verify(made, DOMAIN + canonical(record))
        when = datetime.fromisoformat(record['time'])
        if when.utcoffset() != timedelta(0):
            raise ValueError('its time is none in UTC')
        state = State(**record['state'])
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


def disagreements(one: Signature, now: State, chain: Chain) -> Iterator[str]:
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
            f'{whose} is of a journal whose entry {then.entries} is another one: an entry up to '
            f'it was changed, or it is of another acceptance'
        )
    elif then.entries < now.entries:
        yield (
            f'{whose} is of an earlier state, in which the journal had {then.entries} entries of '
            f'the {now.entries} that it has now: it has to be made again'
        )
    else:
        what = 'report' if then.report != now.report else 'manifest'
        yield f'{whose} is of another {what}: it was changed after it was signed'


def told(one: Signature) -> str:
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
