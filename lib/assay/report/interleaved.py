"""Two settings that were measured in turn, as text and as JSON."""

from __future__ import annotations

from assay.comparing.interleaved import Interleaved
from assay.comparing.sessions import Failing
from assay.files import json_text
from assay.report import diff
from assay.report.console import console, print_line
from assay.report.diff_json import diff_as_object
from assay.text import many, visible

#: What decides on what still looks worse.
_DECIDES = 'more time (--within), fewer cases (-n) or a quieter machine may decide it'


def show_interleaved(found: Interleaved, everything: bool = False) -> None:
    """The settings, then the difference as of stored runs, and at its end the cases that failed.

    :param everything: all rows of all tables, and a table of what is the same.
    """
    out = console()
    before, after = found.settings
    if found.stopped:
        print_line(out, visible(f'what follows is what was known when it ended: {found.stopped}'))
    print_line(out, visible(f'before is {before}, after is {after}'))
    again = f'{many(found.suspects, "figure")} measured again in {many(found.pairs, "pair")}'
    print_line(out, f'{again}, A B B A; of these the pairs alone decide')
    diff.show_all(found.difference, out, everything)
    for one in found.uneven:
        print_line(out, visible(f'failed: {_failing(one, found)}'))
    for one in found.failed:
        print_line(
            out, visible(f'failed with both, which is no difference: {_failing(one, found)}')
        )
    print_line(out, visible(interleaved_conclusion(found)))


def interleaved_conclusion(found: Interleaved) -> str:
    """The last line."""
    told = diff.diff_conclusion(found.difference, _DECIDES)
    if found.uneven:
        counts, cases = told.partition(': ')[2], many(len(found.uneven), 'case')
        told = f'WORSE: {counts}, {cases} failed more often with one setting'
    return f'STOPPED: {told}; {found.stopped}' if found.stopped else told


def _failing(one: Failing, found: Interleaved) -> str:
    told = (
        f'{bad} of {many(ran, "session")} with {setting}'
        for bad, ran, setting in zip(one.failed, one.ran, found.settings, strict=True)
    )
    return f'{one.case}: {", ".join(told)}'


def interleaved_json(found: Interleaved) -> str:
    """JSON: that of stored runs, and what is known beside it."""
    told = {
        'settings': [str(one) for one in found.settings],
        'measured_again': found.suspects,
        'pairs': found.pairs,
        'stopped': found.stopped or None,
        'uneven': found.uneven,
        'failed_with_both': found.failed,
        **diff_as_object(found.difference),
    }
    told['verdict'] = found.verdict
    return json_text(told, indent=2)
