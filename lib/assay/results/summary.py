"""A stored session in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from assay import AssayError
from assay.results.cases import Report, assert_text, cases
from assay.results.verdict import counts
from assay.running.session_extras import label_of, left_out_of, mode_of, purpose_of


@dataclass(frozen=True)
class Summary:
    """What a list of sessions tells of one.

    :param label: that it was given; None for none.
    :param mode: of ``assay run``; None of a plain ReFrame.
    :param purpose: of one that was not made to show how the machine is; None of all others.
    :param system: ReFrame's name of it.
    :param commit: of the suite, with ``-dirty`` where files were changed; empty if no case tells.
    :param passed: how many cases passed; fixtures are none.
    :param failed: how many failed.
    :param disturbed: how many did neither, because others disturbed them.
    :param skipped: how many were skipped.
    :param left_out: how many of those selected a budget left out; they are not in the run.
    :param problem: why nothing of it can be read; None if it can.
    """

    label: str | None = None
    mode: str | None = None
    purpose: str | None = None
    system: str = ''
    commit: str = ''
    passed: int = 0
    failed: int = 0
    disturbed: int = 0
    skipped: int = 0
    left_out: int = 0
    problem: str | None = None


def summary(report: Report) -> Summary:
    """The summary of a report.

    :raises AssayError: if something in it is as ReFrame does not write it.
    """
    try:
        info, all_cases = report['session_info'], cases(report)
        system = next((case['system'] for case in all_cases), '')
        commit = next(filter(None, (case.get('suite_commit') for case in all_cases)), '')
        assert_text(system, commit)
        return Summary(
            label=label_of(info),
            mode=mode_of(info),
            purpose=purpose_of(info),
            left_out=left_out_of(info),
            system=system,
            commit=commit,
            **counts(report)._asdict(),
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise AssayError(f'not as ReFrame writes it: {type(error).__name__}: {error}') from error
