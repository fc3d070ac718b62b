"""Where an acceptance stands: by its contract, its journal, and the reports of its runs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.acceptance.archive import REPORT, Archive
from assay.acceptance.cleared import screened
from assay.acceptance.contract import Contract
from assay.acceptance.decision import (
    CaseRun,
    Condition,
    Decision,
    Verdict,
    conclude,
    conditions,
    decide,
)
from assay.acceptance.journal import Entry
from assay.acceptance.outcomes import case_runs, jobs_of, outcomes
from assay.results.cases import Run
from assay.results.reframe_report import read_report

_ENDS = ('ended', 'cancelled', 'interrupted')


@dataclass(frozen=True)
class Standing:
    """Where an acceptance stands.

    :param runs: the cases of all runs that were started, in order.
    :param hours: how long runs went on, in all; those that were interrupted count nothing.
    :param jobs: how many were started, those that replaced disturbed ones too.
    :param interrupted: the runs whose command was killed.
    :param open: the runs of which no end is told: they go on, or nobody has noticed yet.
    """

    contract: Contract
    decisions: tuple[Decision, ...]
    conditions: tuple[Condition, ...]
    runs: tuple[CaseRun, ...]
    hours: float
    jobs: int
    interrupted: tuple[int, ...]
    open: tuple[int, ...]
    verdict: Verdict


def standing(contract: Contract, entries: Sequence[Entry], reports: Mapping[int, Run]) -> Standing:
    """Judge an acceptance.

    :param entries: of its journal.
    :param reports: ReFrame's, by the numbers of the runs that left one.
    """
    started = {one.what['run']: one for one in entries if one.kind == 'started'}
    ended = {one.what['run']: one for one in entries if one.kind in _ENDS and 'run' in one.what}
    ran: list[CaseRun] = []
    jobs, seconds = 0, 0.0
    for run, entry in started.items():
        names = [str(name) for name in entry.what.get('cases', ())]
        report = reports.get(run)
        ran += case_runs(run, names, report)
        jobs += jobs_of(names, report)
        end = ended.get(run)
        if end and end.kind == 'ended':
            seconds += (end.time - entry.time).total_seconds()
    numbered = [(run, reports[run]) for run in started if run in reports]
    decisions = []
    for one in contract.commitments:
        waiver = contract.waiver(one.id)
        found = [*outcomes(one, numbered)]
        decisions.append(decide(one, found, waiver.by if waiver else None))
    hours = seconds / 3600
    others = conditions(contract, ran, hours, screened(contract, entries))
    if jobs > contract.most_jobs:
        told = f'{jobs} jobs were started; at most {contract.most_jobs} were agreed'
        others.append(Condition('jobs', 'missed', told))
    return Standing(
        contract,
        tuple(decisions),
        tuple(others),
        tuple(ran),
        hours,
        jobs,
        tuple(run for run in started if run in ended and ended[run].kind == 'interrupted'),
        tuple(run for run in started if run not in ended),
        conclude(decisions, others),
    )


def reports(archive: Archive, entries: Sequence[Entry]) -> dict[int, Run]:
    """The reports of the runs that ended, by their numbers.

    :raises AssayError: if one cannot be read.
    """
    found = {}
    for entry in entries:
        if entry.kind == 'ended':
            path = archive.run(entry.what['run']) / REPORT
            if path.is_file():
                found[entry.what['run']] = read_report(path)
    return found
