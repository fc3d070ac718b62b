"""The matrix of a campaign, as a page of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assay.campaign.course import FaultOutcome
from assay.campaign.look import class_of, is_of

HEADER = ('fault', 'severity', 'caught by', 'which said', 'stayed green', 'after it was healed')

#: Where its check is green.
NOTHING = '**nothing**'

#: Where its check is green, and the run names the cause all the same.
NOTED = '**green**, with a note'

#: Where its check is red, without words of the cause.
OTHERWISE = 'red, without the cause'

#: Where its check has to be green.
HARMLESS = 'nothing, as it should be'


def page_row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f'| {" | ".join(cell.replace("|", chr(92) + "|") for cell in cells)} |'


def heading() -> list[str]:
    """The first two rows."""
    return [page_row(HEADER), page_row(['---'] * len(HEADER))]


def row(outcome: FaultOutcome) -> str:
    """The row of an outcome."""
    fault = outcome.fault
    value = fault.severities.get(outcome.severity)
    by = HARMLESS
    if fault.cause:
        by = OTHERWISE if outcome.seen else NOTED if outcome.noted else NOTHING
    if outcome.caught:
        by = _short(fault.check)
    elif fault.missed:
        by += f': {fault.missed}'
    red = [one.case for one in outcome.broken.failed]
    green = [check for check in fault.green if not any(is_of(case, check) for case in red)]
    if outcome.problem:
        green = []
    return page_row(
        [
            f'`{outcome.name}`: {fault.filled(fault.what, outcome.severity)}',
            outcome.severity if value is not None else 'there or not',
            by,
            ' '.join(outcome.problem.split()) or '<br>'.join(outcome.words) or outcome.noted or '-',
            ', '.join(map(_short, green)) or '-',
            '<br>'.join(one.reason for one in outcome.healed.failed)
            or outcome.healed.note
            or ('not run' if outcome.problem else 'green'),
        ]
    )


def _short(check: str) -> str:
    """A check and the number of nodes that it has."""
    scale = re.search(r'%scale=(\w+)', check)
    return f'{class_of(check)} {scale[1]}' if scale else check
