"""The folder of an acceptance: its contract, its journal, and all that its runs left.

::

    contract.yaml      the contract, byte for byte
    journal.jsonl      what was done, in its order (journal.py)
    screenings/        of the nodes, before the first run, with their outputs (screenings.py)
    jobs/<run>/        report.json and log of ReFrame, system.json (facts.py)
    jobs/<run>/cases/  of each case the job's script, its outputs, and what the check read
    report/            what people read, and decisions.json (show.py)
    signatures/        by whom what was signed (signatures.py)

The journal tells size and SHA-256 of each file, but of itself and of the signatures.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance import facts, journal
from assay.acceptance.contract import MOST_CONTRACT
from assay.acceptance.files import Checksum, Files, checksums_in, digest, settle
from assay.acceptance.journal import AnyEntry, Begun, Reported, RunEnded, Screened, Started
from assay.files import explain_errors, read_bounded, write_whole
from assay.machine.provenance import suite_commit
from assay.results.cases import Case, folder_left
from assay.results.reframe_report import read_reframe_report
from assay.running.runs import RunFolder

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


#: ReFrame's name of the script of a job.
SCRIPT = 'rfm_job.sh'

#: In the folder of a run.
REPORT, LOG, SYSTEM, CASES = 'report.json', 'reframe.log', 'system.json', 'cases'

#: The end of the name of a folder that is not whole yet.
_PART = '.part'


@dataclass(frozen=True)
class Archive:
    """The folder of an acceptance."""

    folder: Path

    @property
    def contract(self) -> Path:
        """The file of the contract."""
        return self.folder / 'contract.yaml'

    @property
    def journal(self) -> Path:
        """The file of the journal, which records each step of the acceptance."""
        return self.folder / 'journal.jsonl'

    @property
    def report(self) -> Path:
        """A folder with what people read."""
        return self.folder / 'report'

    @property
    def decisions(self) -> Path:
        """The file of the decisions, as data (show.py)."""
        return self.report / 'decisions.json'

    @property
    def screenings(self) -> Path:
        """A folder with the screenings of the nodes, and those that they were held against."""
        return self.folder / 'screenings'

    @property
    def signatures(self) -> Path:
        """A folder with a file of each signature."""
        return self.folder / 'signatures'

    def run(self, number: int) -> Path:
        """The folder of a run."""
        return self.folder / 'jobs' / str(number)

    def case(self, number: int, case: Case) -> Path:
        """The folder of a case of a run."""
        return self.run(number) / CASES / case_folder(case)


def case_folder(case: Case) -> str:
    """The name of a case's folder, by its place in ReFrame's report.

    :raises AssayError: if the report tells no place.
    """
    if case.place is None:
        raise AssayError(f'{case.title} has no place in the report of its run')
    return '{}-{}'.format(*case.place)


def create_archive(folder: Path, contract: Path, system: str) -> Archive:
    """Begin an acceptance, in a new folder or an empty one.

    :param system: that is measured.
    :raises AssayError: if there is something in the folder, or it cannot be made.
    """
    archive = Archive(folder)
    text = read_bounded(contract, MOST_CONTRACT)
    with explain_errors(folder, 'made'):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise AssayError(
                f'{folder} is not empty: an acceptance is begun in a folder of its own'
            )
        write_whole(archive.contract, text)
    journal.begin_journal(
        archive.journal, Begun(contract=digest(text), commit=suite_commit(), system=system)
    )
    return archive


def find_archive(folder: Path) -> Archive:
    """The acceptance of a folder.

    :raises AssayError: if there is none.
    """
    archive = Archive(folder)
    for path in (archive.contract, archive.journal):
        if not path.is_file() or path.is_symlink():
            raise AssayError(f'{folder} is no folder of an acceptance: there is no {path.name}')
    return archive


def start_run(
    archive: Archive,
    cases: Iterable[str],
    environment: str,
    folder: str,
    options: Iterable[str],
    variables: Mapping[str, str],
) -> int:
    """Tell the journal, before it is done, that a run is started.

    :returns: the number of the run; what is told of it is explained in :class:`Started`.
    :raises AssayError: as :func:`journal.append`.
    """
    number = 1 + len(journal.of(Started, journal.read_journal(archive.journal).entries))
    told = Started(
        run=number,
        cases=tuple(cases),
        environment=environment,
        folder=folder,
        options=tuple(options),
        variables=dict(variables),
    )
    journal.append(archive.journal, told)
    return number


def end_run(archive: Archive, number: int, own: RunFolder, word: str, site: _SiteConfig) -> None:
    """Keep what a run left, then tell the journal that it has ended.

    :param own: its folder.
    :param word: of its verdict.
    :param site: the configuration that it ran with.
    :raises AssayError: if it cannot be kept, or as :func:`journal.append`.
    """
    target = archive.run(number)
    draft = target.with_name(f'{number}{_PART}')
    uuid = ''
    try:
        draft.mkdir(parents=True)
        (draft / SYSTEM).write_text(facts.of_site(site).text())
        if own.log.is_file():
            _copy(own.log, draft / LOG)
        if own.report.is_file():
            _copy(own.report, draft / REPORT)
            report = read_reframe_report(own.report)
            uuid = report.uuid
            for case in report.cases:
                for name, path in _files_of(case, own.folder):
                    _copy(path, draft / CASES / case_folder(case) / name)
        files = checksums_in(draft, f'jobs/{number}/')
        draft.rename(target)
        with suppress(OSError):  # some file systems cannot
            settle(target.parent)
    except OSError as error:
        raise AssayError(
            f'run {number} cannot be kept: {error.filename}: {error.strerror}; it counts as '
            f'interrupted'
        ) from None
    journal.append(archive.journal, RunEnded(run=number, uuid=uuid, word=word, files=files))


def keep_screenings(archive: Archive, files: Iterable[Path], told: Mapping[str, Checksum]) -> Files:
    """Keep files of screenings; one that the journal tells of already stays as it is.

    :param told: those, as :func:`journaled_screenings` found them.
    :returns: what they hold, by their names in the archive.
    :raises AssayError: if they cannot be kept.
    """
    names = {f'{archive.screenings.name}/{path.name}': path for path in files}
    with explain_errors(archive.screenings, 'kept'):
        archive.screenings.mkdir(exist_ok=True)
        for path in archive.screenings.iterdir():  # left by a command that was stopped here
            if f'{archive.screenings.name}/{path.name}' not in told:
                path.unlink()
        for name, path in names.items():
            if name not in told:
                _copy(path, archive.folder / name)
        with suppress(OSError):
            settle(archive.screenings)
        return {
            name: told[name] if name in told else Checksum.of(archive.folder / name)
            for name in names
        }


def journaled_screenings(archive: Archive, entries: Iterable[AnyEntry]) -> Files:
    """Checksums of the screening files that the journal records, by their names in the archive.

    :raises AssayError: if one is not what was told.
    """
    told: Files = {}
    for entry in journal.of(Screened, entries):
        try:
            for name, one in entry.what.files.items():
                if told.get(name) != one != Checksum.of(archive.folder / name):
                    raise AssayError(
                        f'{archive.folder / name} was changed: entry {entry.number} of the journal '
                        f'tells what it was; restore it from a copy, or begin anew'
                    )
        except (OSError, ValueError) as error:
            raise AssayError(
                f'{archive.folder}: what entry {entry.number} of the journal tells of cannot be '
                f'read: {error}; restore it from a copy, or begin anew'
            ) from None
        told |= entry.what.files
    return told


def resume_archive(archive: Archive) -> list[AnyEntry]:
    """Go on with an acceptance: what was stopped counts as interrupted.

    :returns: as :func:`resume_journal`.
    :raises AssayError: likewise.
    """
    for part in (archive.folder / 'jobs').glob(f'*{_PART}'):
        shutil.rmtree(part, ignore_errors=True)
    # Of one that was stopped just before the journal was told, all is there.
    left = {
        run: checksums_in(archive.run(run), f'jobs/{run}/')
        for run in journal.open_runs(journal.read_journal(archive.journal).entries)
        if archive.run(run).is_dir()
    }
    return journal.resume_journal(archive.journal, left)


def close(archive: Archive) -> None:
    """Close an acceptance, or close it once more: tell the journal what its report is.

    Signatures that were made before are of what it was then, and have to be made again.

    :raises AssayError: as :func:`journal.append`.
    """
    journal.append(archive.journal, Reported(files=checksums_in(archive.report, 'report/')))


def contents(archive: Archive) -> Files:
    """Checksums of all files of an archive but the signatures.

    :raises AssayError: if there is anything that cannot be in one.
    """
    kept = checksums_in(archive.folder)
    return {name: one for name, one in kept.items() if not name.startswith('signatures/')}


def _files_of(case: Case, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a case that are to be kept: their names in its folder, and their paths.

    Of one that passed ReFrame has put it together; of another it lies where the job ran. Links are
    left out: they may lead anywhere.

    :param folder: of the run, outside of which nothing is read.
    """
    where = folder_left(case)
    if not where or not where.is_relative_to(folder):
        return
    if case.is_fixture or not case.files.stdout:
        return
    wanted = [SCRIPT, case.files.stdout, case.files.stderr, *case.files.kept]
    found = {path for name in wanted for path in where.glob(name)}
    found |= {inner for path in found if not path.is_symlink() for inner in path.rglob('*')}
    for path in sorted(found):
        is_inside = path.resolve().is_relative_to(where.resolve())
        if path.is_file() and not path.is_symlink() and is_inside:
            yield path.relative_to(where).as_posix(), path


def _copy(source: Path, target: Path) -> None:
    """Copy a file's content, and return once it is on the disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open('rb') as old, target.open('xb') as new:
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())
