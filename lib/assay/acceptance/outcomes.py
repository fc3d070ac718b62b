"""What ReFrame's reports of an acceptance say of each commitment and of each case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assay.acceptance.contract import Commitment
from assay.acceptance.decision import CaseRun, Outcome
from assay.results.cases import Case, Run, is_no_evidence
from assay.results.failures import is_good, reason
from assay.results.rows import number
from assay.text import plain

#: Where a case that missed a reference failed: it has measured all the same.
_MEASURED = ('', 'performance')

_PARAMETER = re.compile(r'%([\w.]+)=(\S+)')


def parameters(name: str) -> dict[str, str]:
    """The parameters of a case, from the name that ReFrame prints."""
    return dict(_PARAMETER.findall(name))


def fits(commitment: Commitment, name: str, environment: str) -> bool:
    """Whether a case is the one that a commitment is about.

    :param name: with its parameters, such as ``Ring %fabric=shm %layout=packed %scale=1_node``.
    """
    is_of_check = name.partition(' ')[0] == commitment.check
    return is_of_check and not misfits(commitment, name, environment)


def misfits(commitment: Commitment, name: str, environment: str) -> int:
    """In how many fields a case of its check is not as a commitment asks for."""
    there = parameters(name)
    asked = {
        'fabric': commitment.fabric,
        'layout': commitment.layout,
        'scale': commitment.scale,
        **commitment.parameters,
    }
    others = sum(value is not None and there.get(key) != value for key, value in asked.items())
    return others + (commitment.environment not in (None, environment))


def outcomes(commitment: Commitment, reports: Iterable[tuple[int, Run]]) -> Iterator[Outcome]:
    """What the runs with the case of a commitment showed of its figure.

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
            yield Outcome(run, None, f'{len(own)} cases of the run fit')
        elif own and own[0].title != (first := first or own[0].title):
            yield Outcome(run, None, f'{own[0].title} is another case than {first}')
        elif own:
            yield _outcome(run, own[0], commitment)


def _outcome(run: int, case: Case, commitment: Commitment) -> Outcome:
    figure = case.figure(commitment.figure)
    if is_no_evidence(case):
        # Who signs has to see whether low values alone were lost so.
        told = f'; it measured {number(figure.value)}' if figure else ''
        return Outcome(run, None, f'others disturbed it{told}')
    if case.result == 'skip' or case.fail_phase not in _MEASURED:
        return Outcome(run, None, f'{case.result}: {plain(reason(case), 300)}')
    if figure is None:
        return Outcome(run, None, f'it has no figure {commitment.figure}')
    unit, better = figure.unit, figure.better
    if unit != commitment.unit:
        return Outcome(run, None, f'its unit is {plain(unit, 20)}, and not {commitment.unit}')
    if better not in (None, commitment.better):
        return Outcome(run, None, f'better is {plain(better, 20)}, and not {commitment.better}')
    return Outcome(run, figure.value, '' if figure.value is not None else 'it has no value')


def case_runs(run: int, started: Iterable[str], report: Run | None) -> list[CaseRun]:
    """What came of the cases of a run.

    :param started: titles of the cases that it was started with.
    :param report: None of a run that left no report.
    """
    ran = {}
    for case in report.own_cases if report else ():
        ran[case.title] = case
    return [_case_run(run, name, ran.get(name)) for name in dict.fromkeys([*started, *ran])]


def _case_run(run: int, name: str, case: Case | None) -> CaseRun:
    if case is None or case.result == 'abort':
        return CaseRun(run, name, 'interrupted')
    if is_no_evidence(case):
        return CaseRun(run, name, 'disturbed', case.job.nodes)
    return CaseRun(run, name, 'pass' if is_good(case) else 'fail', case.job.nodes)


def jobs_of(started: Iterable[str], run: Run | None) -> int:
    """How many jobs a run started: those of its cases, and those that replaced disturbed ones."""
    again = sum(len(case.replaced) for case in (run.counted if run else ()))
    return len([*started]) + again
