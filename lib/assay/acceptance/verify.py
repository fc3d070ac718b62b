"""Whether the folder of an acceptance is what was signed, and says what its outputs say.

From what costs little to what costs much: what the files are; what the journal tells of them; who
signed; the figures, computed again; the decisions, made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from assay import AssayError
from assay.acceptance import facts, journal, screenings, show, signatures
from assay.acceptance.archive import REPORT, SYSTEM, Archive, contents, find_archive
from assay.acceptance.contract import Contract, read_contract
from assay.acceptance.files import Checksum, files_in
from assay.acceptance.journal import (
    BACK,
    AnyEntry,
    Begun,
    Chain,
    Interrupted,
    JournalEntry,
    Reported,
    RunEnded,
    Started,
    TellsFiles,
)
from assay.acceptance.recompute import compute_again
from assay.acceptance.signatures import fingerprint
from assay.acceptance.status import Status, status_of
from assay.files import DAMAGED, json_text, read_bounded
from assay.results.cases import Run
from assay.results.reframe_report import as_run
from assay.text import many, plain

#: Sentences of one kind that are shown; JSON has all.
_MOST = 20

Word = Literal['VERIFIED', 'NOT SIGNED', 'NOT RIGHT']


@dataclass
class Verification:
    """The result of verifying an archive.

    :param faults: sentences: what was changed, and where.
    :param of_signatures: likewise, of signatures.
    :param unsigned: sentences: who has not signed.
    :param unknown_keys: who signed with a key that was held against none.
    :param proved: sentences: what was found to be right.
    """

    faults: list[str] = field(default_factory=list)
    of_signatures: list[str] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    unknown_keys: list[str] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)

    @property
    def word(self) -> Word:
        """The result in a word."""
        if self.faults or self.of_signatures:
            return 'NOT RIGHT'
        return 'NOT SIGNED' if self.unsigned else 'VERIFIED'

    @property
    def is_right(self) -> bool:
        """Whether all is right, and signed by all who have to."""
        return self.word == 'VERIFIED'

    def lines(self) -> Iterator[str]:
        """For people: what is right, what is not, and the word."""
        yield from (f'right: {one}' for one in self.proved)
        wrong = [*self.faults, *self.of_signatures]
        yield from (f'WRONG: {one}' for one in wrong[:_MOST])
        if len(wrong) > _MOST:
            yield f'WRONG: and {many(len(wrong) - _MOST, "thing")} more: --json tells all'
        yield from (f'MISSING: {one}' for one in self.unsigned)
        if self.unknown_keys:
            names = ', '.join(plain(one, 100) for one in self.unknown_keys)
            yield (
                f'not known: whether the keys are those of {names}: compare the fingerprints, or '
                f'give --public-key NAME=FILE'
            )
        yield f'{self.word}: {self._why()}'

    def _why(self) -> str:
        if self.faults or self.of_signatures:
            return f'{many(len(self.faults) + len(self.of_signatures), "thing")} wrong'
        if self.unsigned:
            return f'{many(len(self.unsigned), "signature")} missing; all else is right'
        if self.unknown_keys:
            return 'it is what was signed with these keys'
        return 'it is what all parties signed'

    def as_json(self) -> str:
        """All of it."""
        return json_text({'verdict': self.word, **vars(self)}, indent=2)


#: Bytes of a report at most, of ReFrame's of a run and of ours.
MOST_REPORT = 256 << 20


def verify_archive(folder: Path, trusted: Mapping[str, Ed25519PublicKey]) -> Verification:
    """Verify an acceptance.

    :param trusted: the keys of signers, by their names.
    :raises AssayError: if there is no acceptance in the folder.
    """
    found, archive = Verification(), find_archive(folder)
    try:
        chain, kept = journal.read_journal(archive.journal), contents(archive)
        found.faults += _of_files(archive, chain, kept)
        contract = read_contract(archive.contract)
        _hold_signatures(archive, contract, chain, trusted, found)
        # Of what was changed the figures would say nothing more.
        if not found.faults:
            found.proved += _told_of_files(chain, kept)
            found.faults += screenings.screening_faults(archive, chain.entries, contract)
            found.proved += [] if found.faults else screenings.screening_summary(chain.entries)
            _compute(archive, chain, contract, found)
    except AssayError as error:
        found.faults.append(str(error))
    # Whoever makes all checksums fit can write whatever they want into a report.
    except DAMAGED as error:
        told = plain(f'{type(error).__name__}: {error}', 300)
        found.faults.append(f'what the runs left is not as Assay and ReFrame write it: {told}')
    return found


def assert_may_be_signed(folder: Path) -> Contract:
    """Let nobody sign what is not right.

    :returns: its contract.
    :raises AssayError: if anything but signatures is wrong.
    """
    if faults := verify_archive(folder, {}).faults:
        raise AssayError(f'{folder} is not right, and is not signed: {faults[0]}')
    return read_contract(find_archive(folder).contract)


def _of_files(archive: Archive, chain: Chain, kept: Mapping[str, Checksum]) -> Iterator[str]:
    """Sentences: where files and journal are not what they were."""
    yield from (f'journal.jsonl: {one}' for one in chain.faults)
    if chain.torn:
        yield 'journal.jsonl: its last line is torn, or was changed: an entry is not whole'
    yield from (f'journal.jsonl: {one}' for one in journal.run_faults(chain.entries))
    for begun in journal.of(Begun, chain.entries[:1]):
        if begun.what.contract != kept[archive.contract.name].sha256:
            yield (
                'contract.yaml was changed: it is not the contract that the acceptance was begun '
                'with'
            )
        if begun.what.system != read_contract(archive.contract).system:
            yield 'journal.jsonl: entry 1 is of another system than the contract'
    if not journal.of(Reported, chain.entries[-1:]):
        yield (
            'journal.jsonl: its last entry is no report: `assay accept report` closes an '
            'acceptance, or entries were removed'
        )
    yield from _of_entries(chain.entries, kept, {archive.contract.name, archive.journal.name})


def _of_entries(
    entries: Iterable[AnyEntry], kept: Mapping[str, Checksum], others: set[str]
) -> Iterator[str]:
    """Sentences: where files are not what the journal tells of them.

    :param others: names of files that no entry tells of.
    """
    told: dict[str, tuple[Checksum, int]] = {}
    for entry in journal.of(TellsFiles, entries):
        where, number = entry.what.where, entry.number
        if isinstance(entry.what, Reported):  # instead of one before it
            told = {name: one for name, one in told.items() if not name.startswith(where)}
        for name, one in entry.what.files.items():
            if not name.startswith(where):
                yield f'journal.jsonl: entry {number} tells of {plain(name, 200)}: not its own'
            before, earlier = told.get(name, (one, 0))
            if before != one:
                yield (
                    f'journal.jsonl: entry {number} tells of {plain(name, 200)} as another file '
                    f'than entry {earlier}: it was changed meanwhile'
                )
            told[name] = one, number
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
    found: Verification,
) -> None:
    """Hold the signatures against who has to sign, what there is, and which keys are known."""
    wanted = signatures.signers(contract.parties)
    if unknown := trusted.keys() - {who for _, who in wanted.values()}:
        name = min(unknown)
        raise AssayError(f'--public-key {name}: nobody of this name signs by the contract')
    names = set()
    if archive.signatures.is_dir():
        names = {name for name, _ in files_in(archive.signatures)}
    for name in sorted(names - wanted.keys()):
        found.of_signatures.append(f'signatures/{plain(name, 200)} is of nobody who has to sign')
    keys: dict[bytes, str] = {}
    for name, (party, who) in wanted.items():
        if name not in names:
            found.unsigned.append(f'{plain(who, 100)} of the {party} has not signed')
            continue
        try:
            one = signatures.read_signature(archive.signatures / name)
            now = signatures.state_of(archive, chain)
        except AssayError as error:
            found.of_signatures.append(str(error))
            continue
        wrong = [*signatures.signature_faults(one, now, chain)]
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
            found.proved.append(signatures.describe(one))
            if who not in trusted:
                found.unknown_keys.append(who)


def _told_of_files(chain: Chain, kept: Mapping[str, Checksum]) -> Iterator[str]:
    """Sentences: what of files and journal was found to be right."""
    entries = chain.entries
    started, lost = journal.of(Started, entries), journal.of(Interrupted, entries)
    yield f'{many(len(kept) - 1, "file")} are what the journal tells'
    yield (
        f'{len(entries)} entries of the journal are one chain: '
        f'{many(len(started), "run")} started, {len(lost)} interrupted'
    )
    for begun in journal.of(Begun, entries):
        commit = plain(begun.what.commit, 100) or 'of no known commit'
        yield f'begun with the contract on {begun.time:%Y-%m-%d %H:%M} UTC by Assay {commit}'


def _compute(archive: Archive, chain: Chain, contract: Contract, found: Verification) -> None:
    """Compute figures and decisions again."""
    ended = {one.what.run: one for one in journal.of(RunEnded, chain.entries)}
    started = {one.what.run: one for one in journal.of(Started, chain.entries)}
    reports: dict[int, Run] = {}
    faults: dict[int, list[str]] = {run: [] for run in ended}
    # ReFrame is told of a system once, and most runs are of the same.
    by_facts: dict[str, tuple[facts.Facts, list[int]]] = {}
    uuids: dict[str, int] = {}
    for run, entry in ended.items():
        folder = archive.run(run)
        if not (folder / REPORT).is_file():
            continue
        report = read_bounded(folder / REPORT, MOST_REPORT)
        reports[run] = as_run(report, f'jobs/{run}/{REPORT}')
        known = facts.read_kept_facts(folder / SYSTEM)
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
    now = status_of(contract, chain.entries, reports)
    wrong = [*show.decision_faults(archive, now), *_of_report(archive, chain, now)]
    found.faults += wrong
    if not wrong:
        found.proved.append(
            f'the decisions and the report follow from the figures: {now.verdict.word}'
        )


def _of_report(archive: Archive, chain: Chain, now: Status) -> Iterator[str]:
    """Sentences: where what people read, and sign, is not what was decided."""
    for name, path in files_in(archive.report):
        if name == show.REPORT_NAME:
            should = show.report_text(now, chain.entries[:-1]).encode()
            if read_bounded(path, MOST_REPORT) != should:
                yield (
                    f'report/{name} says something else than what is decided: it was changed, or '
                    f'another version of Assay wrote it'
                )
        elif path != archive.decisions:
            yield f'report/{plain(name, 200)} is nothing that Assay wrote: it cannot be made again'


def _not_started(run: Run, started: JournalEntry[Started], contract: Contract) -> Iterator[str]:
    """Sentences: cases that a run was not started with, or of another place than the contract's."""
    own = [case for case in run.cases if not case.is_fixture]
    for name in dict.fromkeys(one.title for one in own):
        if name not in started.what.cases:
            yield f'its report has {name}, which it was not started with'
    partition = contract.system.partition(':')[2]
    for name in sorted({one.partition for one in own}):
        if partition and name != partition:
            yield f'it was measured on the partition {name}, not on {contract.system}'


def _not_allowed(started: Iterable[JournalEntry[Started]], contract: Contract) -> Iterator[str]:
    """Sentences: runs with variables that the rules do not allow."""
    for entry in started:
        if strange := sorted({*entry.what.variables} - {*contract.rules.variables}):
            yield (
                f'run {entry.what.run}: it was started with {plain(", ".join(strange), 200)}, '
                f'which the rules of the contract do not allow'
            )


def _of_session(
    report: Run,
    ended: JournalEntry[RunEnded],
    started: JournalEntry[Started],
    uuids: dict[str, int],
) -> Iterator[str]:
    """Sentences: where a report is not of the session that the journal tells of.

    :param uuids: of the sessions before, with their runs.
    """
    begun, end, run = report.begun, report.ended, ended.what.run
    if report.uuid != ended.what.uuid:
        yield 'its report is of another session than the journal tells'
    if (other := uuids.setdefault(report.uuid, run)) != run:
        yield f'its report is that of run {other}'
    slack = timedelta(seconds=BACK)
    if not (started.time - slack <= begun <= end <= ended.time + slack):
        yield (
            f'its report is of {begun:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S}, and by the journal it '
            f'ran from {started.time:%Y-%m-%d %H:%M:%S} to {ended.time:%H:%M:%S}'
        )
