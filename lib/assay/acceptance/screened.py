"""The screening of the nodes that a contract may ask for before anything else is measured.

Its file is kept with those of the screenings that it was held against, so that whoever verifies the
acceptance judges it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance import archive as archives
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.contract import Contract
from assay.acceptance.files import as_record, read_bounded
from assay.acceptance.journal import Entry
from assay.report.screening import blamed, node_set
from assay.screening import kept
from assay.screening.findings import UNDECIDED
from assay.screening.measured import Screening, parse, read
from assay.screening.nodes import MOST_EARLIER
from assay.screening.verdict import Verdict, judge
from assay.screening.where import choose
from assay.spelling import many
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Bytes of a file of a screening at most: 10,000 nodes take some 30 MB.
MOST = 256 << 20


def place(site: _SiteConfig, contract: Contract) -> str:
    """The partition, with its system, that is screened first; empty if none is asked for.

    :raises AssayError: if the contract asks for a screening where there can be none.
    """
    if not contract.screening_first:
        return ''
    try:
        return choose(site, contract.system).partition
    except AssayError as error:
        raise AssayError(
            f'screening_first of the contract: {error}: correct system, or leave out '
            f'screening_first'
        ) from None


def assert_screened(archive: Archive, contract: Contract, partition: str) -> None:
    """Tell the journal of the newest screening, and keep it, if no run began yet.

    :param partition: as :func:`place` says.
    :raises AssayError: if there is none since the acceptance began, it left out nodes, or it found
        something.
    """
    entries = journal.read(archive.journal).entries
    if not partition or any(one.kind == 'started' for one in entries):
        return
    how = f'run `{_command(contract, partition)}`, and then this again'
    if not [*kept.folder_of(partition).glob('*.json')]:
        raise AssayError(f'the contract asks for a screening first: {how}')
    path = kept.find(kept.LAST, partition)
    now = read(path)
    if now.begun < entries[0].time:
        raise AssayError(f'the last screening is from before the acceptance began: {how}')
    if left := _left_out(now, contract):
        raise AssayError(f'the screening left out {left}: {how}')
    verdict = _judged(archive, entries, path, now)
    if not verdict.findings:
        return
    told = f'{in_words(verdict)}; see `assay screen --system {partition} --from last`'
    if all(one.kind in UNDECIDED for one in verdict.findings):
        raise AssayError(f'the screening cannot tell yet: {told}, and {how}')
    raise AssayError(f'the screening found: {told}, repair that, and {how}')


def _judged(archive: Archive, entries: tuple[Entry, ...], path: Path, now: Screening) -> Verdict:
    """Keep a screening and those before it, judge what was kept, and tell the journal, once."""
    told = [one for one in entries if one.kind == 'screened'][-1:]
    if told and told[0].what['screening'] == path.name:
        return _judge(archive, told[0].what['files'])
    files = archives.keep_screenings(
        archive, [*kept.earlier_by_file(path, now, MOST_EARLIER), path]
    )
    verdict = _judge(archive, files)
    record = as_record(files)
    journal.append(
        archive.journal, 'screened', screening=path.name, found=in_words(verdict), files=record
    )
    return verdict


def _judge(archive: Archive, names: Iterable[str]) -> Verdict:
    """The verdict on the newest of some screenings of an archive, held against the others."""
    *before, now = _read(archive, names)
    return judge(now, before)


def _read(archive: Archive, names: Iterable[str]) -> list[Screening]:
    """Screenings of an archive, the oldest first; their names tell when they began."""
    paths = [archive.folder / name for name in sorted(names)]
    return [parse(read_bounded(path, MOST), path) for path in paths]


def in_words(verdict: Verdict) -> str:
    """What a screening found, in words; empty for nothing."""
    return '; '.join(blamed(one) for one in verdict.findings)


def disagreements(
    archive: Archive, entries: tuple[Entry, ...], contract: Contract
) -> Iterator[str]:
    """Sentences: where screenings are not what the journal tells of them.

    :raises AssayError: if a file is none of a screening.
    """
    for entry in entries:
        if entry.kind == 'screened':
            wrong = _wrong(archive, entry, entries[0], contract)
            yield from (f'entry {entry.number} of the journal: {one}' for one in wrong)


def told(entries: Iterable[Entry]) -> Iterator[str]:
    """Sentences: what screenings found."""
    for entry in entries:
        if entry.kind == 'screened':
            found = _short(str(entry.what['found']))
            before = many(len(entry.what['files']) - 1, 'earlier one')
            yield f'the screening {entry.what["screening"]}, held against {before}, found {found}'


def _wrong(archive: Archive, entry: Entry, begun: Entry, contract: Contract) -> Iterator[str]:
    """Sentences: where a screening is not what an entry of the journal tells of it."""
    name = f'{archive.screenings.name}/{entry.what["screening"]}'
    names = sorted(entry.what['files'])
    if names[-1:] != [name]:
        yield f'{plain(name, 200)} is not the newest of the screenings that it tells of'
        return
    *before, now = _read(archive, names)
    where = contract.system
    if where not in (now.system, now.system.partition(':')[0]):
        yield f'the screening is of {plain(now.system, 100)}, and the contract is for {where}'
    if not begun.time <= now.begun <= entry.time:
        when = f'{now.begun:%Y-%m-%d %H:%M:%S}'
        yield f'the screening of {when} was not made between the beginning and this entry'
    if left := _left_out(now, contract):
        yield f'the screening left out {left}'
    if len({(one.system, one.environment, one.fabric) for one in (*before, now)}) > 1:
        yield 'the screenings that it was held against are of other nodes, or another fabric'
    found, said = in_words(judge(now, before)), str(entry.what['found'])
    if found != said:
        yield f'the screening found {_short(found)}, and {_short(said)} is told of it'


def _short(found: str) -> str:
    return plain(found, 300) or 'nothing'


def _command(contract: Contract, partition: str) -> str:
    """What screens the nodes of a contract."""
    names = contract.nodes.names
    nodes = f' --nodes {node_set(names)}' if names and len(names) > 1 else ''
    return f'assay screen --system {partition}{nodes}'


def _left_out(now: Screening, contract: Contract) -> str:
    """The nodes of the contract that a screening left out, in words, if they are too many."""
    nodes = contract.nodes
    if nodes.names is not None:
        absent = sorted({*nodes.names} - {*now.nodes})
        return ', '.join(absent) if len(absent) > nodes.may_be_missing else ''
    absent_count = nodes.count - len(now.nodes)
    return many(absent_count, 'node') if absent_count > nodes.may_be_missing else ''
