"""The screening of the nodes that a contract may ask for before anything else is measured.

Every one since the acceptance began counts. Its file is kept with those of the screenings that it
was held against, so that whoever verifies the acceptance judges it once more; and with the outputs
of its job, so that its figures are computed once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance import archive as archives
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.contract import Contract
from assay.acceptance.files import Files
from assay.acceptance.journal import AnyEntry, Screened, Started
from assay.report.screening import blame_in_words, node_set
from assay.screening import kept, outputs
from assay.screening.findings import MOST_EARLIER, UNDECIDED
from assay.screening.measured import Screening, read_screening
from assay.screening.nodes import FEWEST_PEERS
from assay.screening.verdict import ScreeningVerdict, judge_screening
from assay.screening.where import choose_where
from assay.text import many, plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


@dataclass(frozen=True)
class ScreeningStatus:
    """The combined result of all screenings before the first run.

    :param open: those whose findings no later one cleared.
    :param found: what they found, in words; empty for nothing.
    :param left_out: what the last one left out, in words, if none was of all nodes.
    :param nodes: of the last one of all nodes.
    :param unjudged: those of them that nothing could judge, in words.
    :param is_judged: whether any node could be.
    """

    open: tuple[Screened, ...]
    found: str
    left_out: str
    nodes: frozenset[str]
    unjudged: str
    is_judged: bool


def screening_status(contract: Contract, entries: Iterable[AnyEntry]) -> ScreeningStatus | None:
    """Combine the screenings before the first run; None if there were none."""
    before_runs = takewhile(lambda one: not isinstance(one.what, Started), entries)
    before = sorted(
        (one.what for one in journal.of(Screened, before_runs)), key=lambda one: one.begun
    )
    if not before:
        return None
    left: defaultdict[tuple[str, str], list[Screened]] = defaultdict(list)
    last = None
    for one in before:
        if not missing_nodes(contract, one.nodes):
            left[kind(one)].clear()
            last = one
        if one.found:
            left[kind(one)].append(one)
    found = [one for one in before if one in left[kind(one)]]
    of = last or before[-1]
    return ScreeningStatus(
        tuple(found),
        '; '.join(_told(one, before[-1]) for one in found),
        '' if last else missing_nodes(contract, of.nodes),
        frozenset(of.nodes),
        without_judgement(of.unjudged),
        bool({*of.nodes} - {*of.unjudged}),
    )


def kind(what: Screened) -> tuple[str, str]:
    """The environment and the fabric of a screening that the journal tells of."""
    return what.environment, what.fabric


def without_judgement(unjudged: Iterable[str]) -> str:
    """Which nodes nothing could judge, in words; empty for none."""
    if found := node_set(unjudged):
        return f'{found} could not be judged'
    return ''


def of_kind(what: Screened) -> str:
    """The options of `assay screen` that ask for another screening of the same kind."""
    environment, fabric = kind(what)
    return f'--environment {plain(environment, 60)} --fabric {plain(fabric, 60)}'


def missing_nodes(contract: Contract, screened_nodes: Iterable[str]) -> str:
    """The nodes of the contract that a screening left out, in words, if they are too many."""
    asked, seen = contract.nodes, {*screened_nodes}
    if asked.names is not None:
        absent = sorted({*asked.names} - seen)
        return ', '.join(absent) if len(absent) > asked.may_be_missing else ''
    count = asked.count - len(seen)
    return many(count, 'node') if count > asked.may_be_missing else ''


def _told(one: Screened, last: Screened) -> str:
    """The findings of an open screening, and how to clear them if the last one cannot have."""
    found = plain(one.found, 300)
    if kind(one) == kind(last):
        return found
    return f'{found} (only `assay screen {of_kind(one)}` of all nodes can clear that)'


def partition_to_screen(site: _SiteConfig, contract: Contract) -> str:
    """The partition, with its system, that is screened first; empty if none is asked for.

    :raises AssayError: if the contract asks for a screening where there can be none.
    """
    if not contract.screening_first:
        return ''
    try:
        return choose_where(site, contract.system).partition
    except AssayError as error:
        raise AssayError(
            f'screening_first of the contract: {error}: correct system, or leave out '
            f'screening_first'
        ) from None


def assert_screened(archive: Archive, contract: Contract, partition: str) -> None:
    """Tell the journal of the screenings since the beginning, and keep them, if no run began yet.

    :param partition: as :func:`partition_to_screen` says.
    :raises AssayError: if there is none, the last one left out nodes, something was found that no
        later one cleared, or no node could be judged.
    """
    entries = journal.read_journal(archive.journal).entries
    if not partition or journal.of(Started, entries):
        return
    how = f'run `{_command(contract, partition)}`, and then this again'
    if not [*kept.folder_of_screenings(partition).glob('*.json')]:
        raise AssayError(f'the contract asks for a screening first: {how}')
    since = kept.screenings_since(partition, entries[0].time)
    if not since:
        raise AssayError(f'the last screening is from before the acceptance began: {how}')
    if left := missing_nodes(contract, since[-1][1].nodes):
        raise AssayError(f'the screening left out {left}: {how}')
    told = {one.what.screening for one in journal.of(Screened, entries)}
    for path, one in since:
        if path.name not in told:
            _tell(archive, contract, path, one, how)
    _assert_cleared(archive, contract, partition, since[-1][0])


def _assert_cleared(archive: Archive, contract: Contract, partition: str, last: Path) -> None:
    """:param last: the newest screening."""
    entries = journal.read_journal(archive.journal).entries
    known = _read(archive, archives.journaled_screenings(archive, entries))
    found = screening_status(contract, entries)
    command = _command(contract, partition)
    if found and found.open:
        verdicts = [_judged(one.file, one.files, known) for one in found.open]
        newest = found.open[-1]
        source = str(archive.screenings / newest.screening)
        if newest.screening == last.name:
            source = kept.LAST
        else:
            command += f' {of_kind(newest)}'
        how = f'run `{command}`, and then this again'
        told = f'{found.found}; see `assay screen --system {partition} --from {source}`'
        if all(one.kind in UNDECIDED for verdict in verdicts for one in verdict.findings):
            raise AssayError(f'the screening cannot tell yet: {told}, and {how}')
        raise AssayError(f'the screening found: {told}, repair that, and {how}')
    if not found or not found.is_judged:
        told = found.unjudged if found else 'no node could be judged'
        raise AssayError(
            f'the screening found nothing; {told}: it takes {FEWEST_PEERS} nodes of a kind: screen '
            f'more nodes, or leave out screening_first of the contract and begin anew'
        )


def _tell(archive: Archive, contract: Contract, path: Path, now: Screening, how: str) -> None:
    """Keep a screening and those before it, judge what was kept, and tell the journal.

    :raises AssayError: if :func:`screening_faults` would find something wrong with that.
    """
    entries = journal.read_journal(archive.journal).entries
    # Those that are told of are held against this one as well, whatever became of their files.
    unchanged = archives.journaled_screenings(archive, entries)
    told = _read(archive, unchanged)
    where, beside = f'{archive.screenings.name}/', kept.earlier_screenings(path, now, MOST_EARLIER)
    paths = {where + other.name: other for other in beside}
    paths |= {name: archive.folder / name for name in told}
    before = {where + other.name: one for other, one in beside.items()} | told
    files = archives.keep_screenings(
        archive,
        outputs.with_outputs([*(paths[name] for name in _newest_before(now, before)), path]),
        unchanged,
    )
    known = told | _read(archive, files)
    what = _what(where + path.name, files, known)
    until = datetime.now(timezone.utc)
    wrong = [f'{path}: {one}: remove it' for one in _wrong(what, until, entries, contract, known)]
    wrong += [
        f'{path.parent}: {one}: remove that screening and its outputs'
        for one in _miscomputed(archive, what, entries, known)
    ]
    if wrong:
        archives.keep_screenings(archive, [], unchanged)  # none of it is told, and none may stay
        raise AssayError(f'{wrong[0]}, and {how}')
    journal.append(archive.journal, what)


def _newest_before(now: Screening, could: Mapping[str, Screening]) -> list[str]:
    """The names of those that a screening is held against, oldest first."""
    earlier = [
        name for name, one in could.items() if one.kind == now.kind and one.begun < now.begun
    ]
    return sorted(earlier, key=lambda name: (could[name].begun, name))[-MOST_EARLIER:]


def _read(archive: Archive, names: Iterable[str]) -> dict[str, Screening]:
    """Screenings of an archive, by the names of their files; outputs of their jobs are none."""
    return {name: read_screening(archive.folder / name) for name in names if not _is_of_job(name)}


def _files(entries: Iterable[AnyEntry]) -> set[str]:
    """The names in the archive of all that entries about screenings tell of."""
    return {name for one in journal.of(Screened, entries) for name in one.what.files}


def _of_job(name: str) -> str:
    """The name in the archive of the outputs of a screening's job, by that of the screening."""
    return outputs.outputs_file(Path(name)).as_posix()


def _is_of_job(name: str) -> bool:
    return name.endswith(outputs.SUFFIX)


def _earlier(own: str, files: Iterable[str]) -> list[str]:
    """The names of those that a screening was held against, of the files kept with it."""
    return [one for one in files if one != own and not _is_of_job(one)]


def _judged(own: str, files: Iterable[str], known: Mapping[str, Screening]) -> ScreeningVerdict:
    """The verdict on a screening by the files that were kept with it."""
    before = [known[one] for one in _earlier(own, files)]
    return judge_screening(known[own], sorted(before, key=lambda one: one.begun))


def _what(own: str, files: Files, known: Mapping[str, Screening]) -> Screened:
    """The journal's entry for a screening.

    :param own: the name of its file in the archive.
    :param files: that are kept with it.
    """
    now, verdict = known[own], _judged(own, files, known)
    return Screened(
        screening=Path(own).name,
        begun=now.begun.astimezone(timezone.utc).isoformat(timespec='microseconds'),
        environment=now.environment,
        fabric=now.fabric,
        nodes=tuple(now.nodes),
        found=findings_in_words(verdict),
        unjudged=tuple(verdict.without_peers),
        files=files,
    )


def findings_in_words(verdict: ScreeningVerdict) -> str:
    """The findings of a screening in words; empty if it found nothing."""
    return '; '.join(blame_in_words(one) for one in verdict.findings)


def screening_faults(
    archive: Archive, entries: Sequence[AnyEntry], contract: Contract
) -> Iterator[str]:
    """Sentences: where screenings are not what the journal tells of them.

    :raises AssayError: if a file is none of a screening.
    """
    known: dict[str, Screening] = {}
    for entry in journal.of(Screened, entries):
        known |= _read(archive, entry.what.files.keys() - known.keys())
        before = [one for one in entries if one.number < entry.number]
        wrong = (
            *_wrong(entry.what, entry.time, before, contract, known),
            *_miscomputed(archive, entry.what, before, known),
        )
        yield from (f'entry {entry.number} of the journal: {one}' for one in wrong)


def screening_summary(entries: Sequence[AnyEntry]) -> Iterator[str]:
    """Sentences: what screenings found."""
    for entry in journal.of(Screened, entries):
        what = entry.what
        found = _short(what.found)
        if unjudged := without_judgement(what.unjudged):
            found += f'; {unjudged}'
        before = many(sum(not _is_of_job(name) for name in what.files) - 1, 'earlier one')
        yield f'the screening {what.screening}, held against {before}, found {found}'
    names = _files(entries)
    if of_jobs := sum(map(_is_of_job, names)):
        yield f'the figures of {many(of_jobs, "screening")} are what the outputs of their jobs say'
    if left := len(names) - 2 * of_jobs:
        yield (
            f'{many(left, "earlier screening")} had no outputs of their jobs: that is not computed '
            f'again'
        )


def _wrong(
    what: Screened,
    until: datetime,
    entries: Sequence[AnyEntry],
    contract: Contract,
    known: Mapping[str, Screening],
) -> Iterator[str]:
    """Sentences: where a screening is not what an entry of the journal tells, or is to tell, of it.

    :param until: when it is told.
    :param entries: those before that one.
    :param known: the screenings that it and those tell of.
    """
    name, shown = what.file, plain(what.file, 200)
    if name not in what.files:
        yield f'{shown} is not the newest of the screenings that it tells of'
        return
    now, before = known[name], {one: known[one] for one in _earlier(name, what.files)}
    if any(one.begun >= now.begun for one in before.values()):
        yield f'{shown} is not the newest of the screenings that it tells of'
    where, begun = contract.system, entries[0].time
    if where not in (now.system, now.system.partition(':')[0]):
        yield f'the screening is of {plain(now.system, 100)}, and the contract is for {where}'
    if not begun <= now.begun <= until:
        when = f'{now.begun:%Y-%m-%d %H:%M:%S}'
        yield f'the screening of {when} was not made between the beginning and this entry'
    if any(one.kind != now.kind for one in before.values()):
        yield 'the screenings that it was held against are of other nodes, or another fabric'
    yield from _of_earlier(now, before, entries, known)
    should = _what(name, what.files, known)
    if should.found != what.found:
        yield (
            f'the screening found {_short(should.found)}, and {_short(what.found)} is told of it'
        )
    for field in ('begun', 'environment', 'fabric', 'nodes', 'unjudged'):
        if getattr(should, field) != getattr(what, field):
            yield f'the {field} of {shown} is not what is told of it'


def _of_earlier(
    now: Screening,
    before: Mapping[str, Screening],
    entries: Sequence[AnyEntry],
    known: Mapping[str, Screening],
) -> Iterator[str]:
    """Sentences: earlier screenings that nobody was told of, or that were left out again."""
    judged = {one.what.file for one in journal.of(Screened, entries)}
    for name, one in before.items():
        if one.begun >= entries[0].time and name not in judged:
            yield f'nobody was told what {plain(name, 200)} found, which is of this acceptance'
    again = {name: known[name] for name in _files(entries) if not _is_of_job(name)}
    for name in _newest_before(now, {**before} | again):
        if name not in before:
            yield f'{plain(name, 200)} was told of before, and this one was not held against it'


def _miscomputed(
    archive: Archive,
    what: Screened,
    entries: Sequence[AnyEntry],
    known: Mapping[str, Screening],
) -> Iterator[str]:
    """Sentences: where screenings say something else than the outputs of their jobs.

    Those of before the acceptance have outputs if they were still there. What earlier entries tell
    of was computed for them.

    :param entries: as of :func:`_wrong`, likewise ``known``.
    """
    if _of_job(what.file) not in what.files:
        yield (
            f'{plain(what.file, 200)}: the outputs of its job were not kept with it, so its '
            f'figures cannot be computed again'
        )
    whose, computed = {_of_job(name): name for name in known}, _files(entries)
    for job in sorted(filter(_is_of_job, what.files)):
        name = whose.get(job)
        if name is None:
            yield f'{plain(job, 200)} are the outputs of no screening'
        elif job not in computed:
            shown = plain(name, 200)
            try:
                found = outputs.output_faults(archive.folder / name, known[name])
                yield from (f'{shown}: {one}' for one in found)
            except AssayError as error:
                yield f'{shown}: its figures cannot be computed again: {error}'


def _short(found: str) -> str:
    return plain(found, 300) or 'nothing'


def _command(contract: Contract, partition: str) -> str:
    """The command that screens the nodes of a contract."""
    names = contract.nodes.names
    nodes = f' --nodes {node_set(names)}' if names and len(names) > 1 else ''
    return f'assay screen --system {partition}{nodes}'
