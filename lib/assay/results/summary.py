"""A stored session in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from assay.results.cases import Run
from assay.results.verdict import counts


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


def summary(run: Run) -> Summary:
    """The summary of a run."""
    cases = run.cases
    return Summary(
        label=run.label,
        mode=run.mode,
        purpose=run.purpose,
        left_out=run.left_out,
        system=cases[0].system if cases else '',
        commit=next(filter(None, (case.fact('suite_commit') for case in cases)), ''),
        **counts(run)._asdict(),
    )
