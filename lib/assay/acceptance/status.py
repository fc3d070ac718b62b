"""Where an acceptance stands: by its contract, its journal, and the reports of its runs alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay import AssayError
from assay.acceptance import journal
from assay.acceptance.archive import REPORT, Archive
from assay.acceptance.contract import Commitment, Contract
from assay.acceptance.decision import (
    AcceptanceVerdict,
    CaseRun,
    CommitmentDecision,
    Condition,
    FigureOutcome,
    conclude,
    conditions,
    decide_commitment,
)
from assay.acceptance.files import digest_of
from assay.acceptance.journal import AnyEntry, Begun, EndsRun, Interrupted, RunEnded, Started
from assay.acceptance.screenings import screening_status
from assay.files import DAMAGED, explain_errors
from assay.results.cases import Case, Run, check_of, is_no_evidence, parameters_of
from assay.results.failures import failure_reason, is_good
from assay.results.reframe_report import read_reframe_report
from assay.results.rows import number
from assay.text import plain


def fits(commitment: Commitment, name: str, environment: str) -> bool:
    """Whether a commitment is about this case.

    :param name: with its parameters, such as ``Ring %fabric=shm %layout=packed %scale=1_node``.
    """
    is_of_check = check_of(name) == commitment.check
    return is_of_check and not count_misfits(commitment, name, environment)


def count_misfits(commitment: Commitment, name: str, environment: str) -> int:
    """The number of fields in which a case of the same check differs from a commitment."""
    there = parameters_of(name)
    asked = {
        'fabric': commitment.fabric,
        'layout': commitment.layout,
        'scale': commitment.scale,
        **commitment.parameters,
    }
    others = sum(value is not None and there.get(key) != value for key, value in asked.items())
    return others + (commitment.environment not in (None, environment))


def outcomes(commitment: Commitment, reports: Iterable[tuple[int, Run]]) -> Iterator[FigureOutcome]:
    """The value of a commitment's figure in each run that has its case.

    All values are of one case: where the system's file was changed between runs, another one may
    fit, and it says nothing of the first.

    :param reports: of runs, with their numbers, in order.
    """
    first = ''
    for run, report in reports:
        own = [
            case
            for case in report.own_cases
            if fits(commitment, case.display_name, case.environment)
        ]
        if len(own) > 1:
            yield FigureOutcome(run, None, f'{len(own)} cases of the run fit')
        elif own and own[0].title != (first := first or own[0].title):
            yield FigureOutcome(run, None, f'{own[0].title} is another case than {first}')
        elif own:
            yield _outcome(run, own[0], commitment)


def _outcome(run: int, case: Case, commitment: Commitment) -> FigureOutcome:
    figure = case.figure(commitment.figure)
    if is_no_evidence(case):
        # Who signs has to see whether low values alone were lost so.
        told = f'; it measured {number(figure.value)}' if figure else ''
        return FigureOutcome(run, None, f'others disturbed it{told}')
    if not case.came_to_its_figures:
        return FigureOutcome(run, None, f'{case.result}: {plain(failure_reason(case), 300)}')
    if figure is None:
        return FigureOutcome(run, None, f'it has no figure {commitment.figure}')
    unit, better = figure.unit, figure.better
    if unit != commitment.unit:
        return FigureOutcome(run, None, f'its unit is {plain(unit, 20)}, and not {commitment.unit}')
    if better not in (None, commitment.better):
        return FigureOutcome(
            run, None, f'better is {plain(better, 20)}, and not {commitment.better}'
        )
    return FigureOutcome(run, figure.value, '' if figure.value is not None else 'it has no value')


def case_runs(run: int, started: Iterable[str], report: Run | None) -> list[CaseRun]:
    """The outcome of each case of a run.

    :param started: titles of the cases that it was started with.
    :param report: None of a run that left no report.
    """
    ran = {}
    for case in report.own_cases if report else ():
        ran[case.title] = case
    return [_case_run(run, name, ran.get(name)) for name in dict.fromkeys([*started, *ran])]


def _case_run(run: int, name: str, case: Case | None) -> CaseRun:
    # What was skipped did not run either: its allocation had ended, or it does not fit.
    if case is None or case.result in ('abort', 'skip'):
        return CaseRun(run, name, 'interrupted')
    if is_no_evidence(case):
        return CaseRun(run, name, 'disturbed', case.job.nodes)
    return CaseRun(run, name, 'pass' if is_good(case) else 'fail', case.job.nodes)


def jobs_of(started: Iterable[str], run: Run | None) -> int:
    """How many jobs a run started: those of its cases, and those that replaced others."""
    again = sum(len(case.replaced) for case in (run.counted if run else ()))
    return len([*started]) + again


@dataclass(frozen=True)
class Status:
    """Where an acceptance stands.

    :param runs: the cases of all runs that were started, in order.
    :param hours: how long runs went on, in all; those that were interrupted count nothing.
    :param jobs: how many were started, those that replaced disturbed ones too.
    :param interrupted: the runs whose command was killed.
    :param open: the runs of which no end is told: they go on, or nobody has noticed yet.
    """

    contract: Contract
    decisions: tuple[CommitmentDecision, ...]
    conditions: tuple[Condition, ...]
    runs: tuple[CaseRun, ...]
    hours: float
    jobs: int
    interrupted: tuple[int, ...]
    open: tuple[int, ...]
    verdict: AcceptanceVerdict


def status_of(
    contract: Contract, entries: Sequence[AnyEntry], reports: Mapping[int, Run]
) -> Status:
    """Judge an acceptance.

    :param entries: of its journal.
    :param reports: ReFrame's, by the numbers of the runs that left one.
    """
    started = {one.what.run: one for one in journal.of(Started, entries)}
    ended = {one.what.run: one for one in journal.of(EndsRun, entries)}
    ran: list[CaseRun] = []
    jobs, seconds = 0, 0.0
    for run, entry in started.items():
        report = reports.get(run)
        ran += case_runs(run, entry.what.cases, report)
        jobs += jobs_of(entry.what.cases, report)
        end = ended.get(run)
        if end and isinstance(end.what, RunEnded):
            seconds += (end.time - entry.time).total_seconds()
    numbered = [(run, reports[run]) for run in started if run in reports]
    decisions = []
    for one in contract.commitments:
        waiver = contract.waiver(one.id)
        found = [*outcomes(one, numbered)]
        decisions.append(decide_commitment(one, found, waiver.by if waiver else None))
    hours = seconds / 3600
    others = conditions(contract, ran, hours, screening_status(contract, entries))
    if jobs > contract.most_jobs:
        told = f'{jobs} jobs were started; at most {contract.most_jobs} were agreed'
        others.append(Condition('jobs', 'missed', told))
    return Status(
        contract,
        tuple(decisions),
        tuple(others),
        tuple(ran),
        hours,
        jobs,
        tuple(one.what.run for one in journal.of(Interrupted, entries)),
        tuple(run for run in started if run not in ended),
        conclude(decisions, others),
    )


def reports(archive: Archive, entries: Sequence[AnyEntry]) -> dict[int, Run]:
    """The reports of the runs that ended, by their numbers.

    :raises AssayError: if one cannot be read.
    """
    found = {}
    for entry in journal.of(RunEnded, entries):
        path = archive.run(entry.what.run) / REPORT
        if path.is_file():
            found[entry.what.run] = read_reframe_report(path)
    return found


def status_in(archive: Archive, contract: Contract) -> Status:
    """Where the acceptance of a folder stands.

    :raises AssayError: if its journal is damaged, contract or a report are not those that it tells
        of, or a report cannot be read.
    """
    chain = journal.read_journal(archive.journal)
    chain.assert_whole(archive.journal)
    try:
        with explain_errors(archive.folder, 'read'):
            _assert_as_told(archive, chain.entries)
            return status_of(contract, chain.entries, reports(archive, chain.entries))
    # Whoever makes all checksums fit can write whatever they want into a report.
    except DAMAGED as error:
        told = plain(f'{type(error).__name__}: {error}', 300)
        raise AssayError(
            f'{archive.folder}: what the runs left is not as Assay and ReFrame write it: {told}; '
            f'see `assay accept verify`'
        ) from None


def _assert_as_told(archive: Archive, entries: Sequence[AnyEntry]) -> None:
    """:raises AssayError: if contract or reports were changed since the journal told of them."""
    (begun,) = journal.of(Begun, entries[:1])
    told = {archive.contract.name: begun.what.contract}
    for entry in journal.of(RunEnded, entries):
        name = f'{entry.what.where}{REPORT}'
        if name in entry.what.files:
            told[name] = entry.what.files[name].sha256
        elif (archive.folder / name).exists():
            raise AssayError(f'{archive.folder / name}: the journal tells nothing of it')
    for name, sha256 in told.items():
        if digest_of(archive.folder / name) != sha256:
            raise AssayError(
                f'{archive.folder / name} was changed: its checksum is another one than in '
                f'{archive.journal.name}; restore it from a copy'
            )
