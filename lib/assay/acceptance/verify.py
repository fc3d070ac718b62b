"""Whether the folder of an acceptance is what was signed, and says what its outputs say.

From what costs little to what costs much: what the files are; what the journal tells of them; who
signed; the figures, computed again; the decisions, made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from assay import AssayError
from assay.acceptance import contract as contracts
from assay.acceptance import decided, facts, journal, screened, signature, written
from assay.acceptance.archive import MOST_CONTRACT, REPORT, SYSTEM, Archive, contents, find
from assay.acceptance.contract import Contract
from assay.acceptance.files import Kept, found_in, from_record, read_bounded, read_manifest
from assay.acceptance.journal import BACK, Chain, Entry
from assay.acceptance.keys import fingerprint
from assay.acceptance.recompute import compute_again
from assay.acceptance.standing import Standing, standing
from assay.acceptance.verified import Verified
from assay.results.cases import Run
from assay.results.reframe_report import as_run
from assay.spelling import many
from assay.text import plain

#: Bytes of a report at most, of ReFrame's of a run and of ours.
MOST_REPORT = 256 << 20

#: Where the files are that an entry tells of, if they are not those of a run.
_WHERE = {'report': 'report/', 'screened': 'screenings/'}


def verify(folder: Path, trusted: Mapping[str, Ed25519PublicKey]) -> Verified:
    """Verify an acceptance.

    :param trusted: the keys of signers, by their names.
    :raises AssayError: if there is no acceptance in the folder.
    """
    found, archive = Verified(), find(folder)
    try:
        chain, kept = journal.read(archive.journal), contents(archive)
        found.faults += _of_files(archive, chain, kept)
        contract = contract_of(archive)
        _hold_signatures(archive, contract, chain, trusted, found)
        # Of what was changed the figures would say nothing more.
        if not found.faults:
            found.proved += _told_of_files(chain, kept)
            found.faults += screened.disagreements(archive, chain.entries, contract)
            found.proved += [] if found.faults else screened.told(chain.entries)
            _compute(archive, chain, contract, found)
    except AssayError as error:
        found.faults.append(str(error))
    # Whoever makes all checksums fit can write whatever they want into a report.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        told = plain(f'{type(error).__name__}: {error}', 300)
        found.faults.append(f'what the runs left is not as Assay and ReFrame write it: {told}')
    return found


def assert_may_be_signed(folder: Path) -> Contract:
    """Let nobody sign what is not right.

    :returns: its contract.
    :raises AssayError: if anything but signatures is wrong.
    """
    if faults := verify(folder, {}).faults:
        raise AssayError(f'{folder} is not right, and is not signed: {faults[0]}')
    return contract_of(find(folder))


def contract_of(archive: Archive) -> Contract:
    """The contract of an archive.

    :raises AssayError: if it is none.
    """
    return _parsed(read_bounded(archive.contract, MOST_CONTRACT), archive.contract)


@lru_cache(maxsize=4)
def _parsed(data: bytes, path: Path) -> Contract:
    try:
        return contracts.parse(data.decode(), path)
    except UnicodeError:
        raise AssayError(f'{path}: is no text in UTF-8') from None


def _of_files(archive: Archive, chain: Chain, kept: Mapping[str, Kept]) -> Iterator[str]:
    """Sentences: where files, manifest and journal are not what they were."""
    if archive.manifest.is_file():
        yield from _against(read_manifest(archive.manifest), kept)
    else:
        yield 'there is no manifest: `assay accept report` closes an acceptance'
    yield from (f'the journal: {one}' for one in chain.faults)
    if chain.torn:
        yield 'the journal: its last line is torn, or was changed: an entry is not whole'
    yield from (f'the journal: {one}' for one in journal.miscounted(chain.entries))
    if not chain.entries:
        return
    first, last = chain.entries[0], chain.entries[-1]
    if first.what.get('contract') != kept[archive.contract.name].sha256:
        yield 'contract.yaml is not the contract that the acceptance was begun with'
    if first.what.get('system') != contract_of(archive).system:
        yield 'the journal: entry 1 is of another system than the contract'
    if last.kind != 'report':
        yield f'the journal: its last entry is {last.kind}, and no report: entries were removed'
    yield from _of_entries(chain.entries, kept, {archive.contract.name, archive.journal.name})


def _against(listed: Mapping[str, Kept], kept: Mapping[str, Kept]) -> Iterator[str]:
    for name in sorted(listed.keys() | kept.keys()):
        shown = plain(name, 200)
        if name not in kept:
            yield f'{shown} was removed: manifest.json lists it'
        elif name not in listed:
            yield f'{shown} was added: manifest.json does not list it'
        elif listed[name].size != kept[name].size:
            was, now = listed[name].size, kept[name].size
            yield f'{shown} was changed: it has {now} bytes, and by manifest.json {was}'
        elif listed[name] != kept[name]:
            yield f'{shown} was changed: its checksum is another one than in manifest.json'


def _of_entries(
    entries: Iterable[Entry], kept: Mapping[str, Kept], others: set[str]
) -> Iterator[str]:
    """Sentences: where files are not what the journal tells of them.

    :param others: names of files that no entry tells of.
    """
    told: dict[str, tuple[Kept, int]] = {}
    for entry in entries:
        if 'files' not in entry.what:
            continue
        if entry.kind == 'report':  # instead of one before it
            told = {name: one for name, one in told.items() if not name.startswith('report/')}
        try:
            files = from_record(entry.what['files'])
        except ValueError as error:
            yield f'the journal: entry {entry.number} was changed: {error}'
            continue
        where = _WHERE.get(entry.kind, f'jobs/{entry.what.get("run")}/')
        for name, one in files.items():
            if not name.startswith(where):
                yield f'the journal: entry {entry.number} tells of {plain(name, 200)}: not its own'
            before, number = told.get(name, (one, 0))
            if before != one:
                yield (
                    f'the journal: entry {entry.number} tells of {plain(name, 200)} as another '
                    f'file than entry {number}: it was changed meanwhile'
                )
            told[name] = one, entry.number
    for name in sorted(kept.keys() - told.keys() - others):
        yield (
            f'{plain(name, 200)}: no entry of the journal tells of it: it was added, or its run '
            f'was left out'
        )
    for name, (one, number) in told.items():
        if kept.get(name) != one:
            what = 'was changed' if name in kept else 'was removed'
            yield f'{plain(name, 200)} {what}: entry {number} of the journal tells what it was'


def _hold_signatures(
    archive: Archive,
    contract: Contract,
    chain: Chain,
    trusted: Mapping[str, Ed25519PublicKey],
    found: Verified,
) -> None:
    """Hold the signatures against who has to sign, what there is, and which keys are known."""
    wanted = signature.signers(contract.parties)
    if unknown := trusted.keys() - {who for _, who in wanted.values()}:
        raise AssayError(f'--key {sorted(unknown)[0]}: nobody of this name signs by the contract')
    names = set()
    if archive.signatures.is_dir():
        names = {name for name, _ in found_in(archive.signatures)}
    for name in sorted(names - wanted.keys()):
        found.of_signatures.append(f'signatures/{plain(name, 200)} is of nobody who has to sign')
    keys: dict[bytes, str] = {}
    for name, (party, who) in wanted.items():
        if name not in names:
            found.unsigned.append(f'{plain(who, 100)} of the {party} has not signed')
            continue
        try:
            one = signature.read(archive.signatures / name)
            now = signature.state_of(archive, chain)
        except AssayError as error:
            found.of_signatures.append(str(error))
            continue
        wrong = [*signature.disagreements(one, now, chain)]
        if (one.who, one.party) != (who, party):
            wrong.append(f'signatures/{name} is of {plain(one.who, 100)}, and should be of {who}')
        key = one.key.public_bytes_raw()
        if (other := keys.setdefault(key, who)) != who:
            wrong.append(f'{who} signed with the key of {other}: each needs a key of their own')
        if who in trusted and trusted[who].public_bytes_raw() != key:
            wrong.append(
                f'{who} signed with the key {fingerprint(one.key)}, and the key that was given is '
                f'{fingerprint(trusted[who])}'
            )
        found.of_signatures += wrong
        if not wrong:
            found.proved.append(signature.told(one))
            if who not in trusted:
                found.unknown_keys.append(who)


def _told_of_files(chain: Chain, kept: Mapping[str, Kept]) -> Iterator[str]:
    """Sentences: what of files and journal was found to be right."""
    kinds = [entry.kind for entry in chain.entries]
    begun = chain.entries[0]
    lost = kinds.count('interrupted') + kinds.count('cancelled')
    yield f'{many(len(kept), "file")} are what the manifest says'
    yield (
        f'{len(kinds)} entries of the journal are one chain: '
        f'{many(kinds.count("started"), "run")} started, {lost} interrupted or cancelled'
    )
    yield f'begun with the contract on {begun.time:%Y-%m-%d %H:%M} UTC by {_commit(begun)}'


def _commit(begun: Entry) -> str:
    commit = plain(str(begun.what['commit']), 100) or 'of no known commit'
    return f'Assay {commit}'


def _compute(archive: Archive, chain: Chain, contract: Contract, found: Verified) -> None:
    """Compute figures and decisions again."""
    ended = {one.what['run']: one for one in chain.entries if one.kind == 'ended'}
    started = {one.what['run']: one for one in chain.entries if one.kind == 'started'}
    reports: dict[int, Run] = {}
    faults: dict[int, list[str]] = {run: [] for run in ended}
    # ReFrame is told of a system once, and most runs are of the same.
    by_facts: dict[str, tuple[facts.Facts, list[int]]] = {}
    uuids: dict[str, int] = {}
    for run, entry in ended.items():
        folder = archive.run(run)
        if not (folder / REPORT).is_file():
            continue
        reports[run] = _report(folder / REPORT, run)
        known = facts.read(folder / SYSTEM)
        by_facts.setdefault(known.text(), (known, []))[1].append(run)
        faults[run] += _of_session(reports[run], entry, started[run], uuids)
        faults[run] += _not_started(reports[run], started[run], contract)
        if known.system != contract.system.partition(':')[0]:
            faults[run].append(f'it was measured on {known.system}, not on {contract.system}')
    figures = without = 0
    for known, runs in by_facts.values():
        again = compute_again([(archive.run(run), reports[run]) for run in runs], known)
        for run, one in zip(runs, again, strict=True):
            faults[run] += one.faults
            figures, without = figures + one.figures, without + one.without
    found.faults += [f'run {run}: {plain(one)}' for run in faults for one in faults[run]]
    found.proved.append(
        f'{many(figures, "figure")} of {many(len(ended), "run")} are what their outputs say'
    )
    if without:
        found.proved.append(
            f'{many(without, "case")} ended before there were figures: that is not computed again'
        )
    if left := len(ended) - len(reports):
        found.proved.append(f'{many(left, "run")} ended without a report of ReFrame')
    found.faults += _not_allowed(started.values(), contract)
    now = standing(contract, chain.entries, reports)
    wrong = [*decided.differences(archive, now), *_of_report(archive, chain, now)]
    found.faults += wrong
    if not wrong:
        found.proved.append(
            f'the decisions and the report follow from the figures: {now.verdict.word}'
        )


def _of_report(archive: Archive, chain: Chain, now: Standing) -> Iterator[str]:
    """Sentences: where what people read, and sign, is not what was decided."""
    for name, path in found_in(archive.report):
        if name == written.NAME:
            should = written.text(now, chain.entries[:-1]).encode()
            if read_bounded(path, MOST_REPORT) != should:
                yield (
                    f'report/{name} says something else than what is decided: it was changed, or '
                    f'another version of Assay wrote it'
                )
        elif path != archive.decisions:
            yield f'report/{plain(name, 200)} is nothing that Assay wrote: it cannot be made again'


def _report(path: Path, run: int) -> Run:
    """ReFrame's report of a run.

    :raises AssayError: if it is none.
    """
    return as_run(read_bounded(path, MOST_REPORT), f'jobs/{run}/{path.name}')


def _not_started(run: Run, started: Entry, contract: Contract) -> Iterator[str]:
    """Sentences: cases that a run was not started with, or of another place than the contract's."""
    own = [case for case in run.cases if not case.is_fixture]
    for name in dict.fromkeys(one.title for one in own):
        if name not in started.what.get('cases', ()):
            yield f'its report has {name}, which it was not started with'
    partition = contract.system.partition(':')[2]
    for name in sorted({one.partition for one in own}):
        if partition and name != partition:
            yield f'it was measured on the partition {name}, not on {contract.system}'


def _not_allowed(started: Iterable[Entry], contract: Contract) -> Iterator[str]:
    """Sentences: runs with variables that the rules do not allow."""
    for entry in started:
        if strange := sorted({*entry.what.get('variables', ())} - {*contract.rules.variables}):
            yield (
                f'run {entry.what["run"]}: it was started with {plain(", ".join(strange), 200)}, '
                f'which the rules of the contract do not allow'
            )


def _of_session(report: Run, ended: Entry, started: Entry, uuids: dict[str, int]) -> Iterator[str]:
    """Sentences: where a report is not of the session that the journal tells of.

    :param uuids: of the sessions before, with their runs.
    """
    begun, end, run = report.begun, report.ended, ended.what['run']
    if report.uuid != ended.what['uuid']:
        yield 'its report is of another session than the journal tells'
    if (other := uuids.setdefault(report.uuid, run)) != run:
        yield f'its report is that of run {other}'
    slack = timedelta(seconds=BACK)
    if not (started.time - slack <= begun <= end <= ended.time + slack):
        yield (
            f'its report is of {begun:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S}, and by the journal it '
            f'ran from {started.time:%Y-%m-%d %H:%M:%S} to {ended.time:%H:%M:%S}'
        )
