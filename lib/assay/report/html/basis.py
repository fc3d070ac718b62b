"""What a verdict rests on: how much was held, and how much was not, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.report.html.figures import Line
from assay.results.verdict import Counts
from assay.spelling import many


@dataclass(frozen=True)
class Tile:
    """A count, and what it is of.

    :param kind: ``good``, ``bad``, ``odd`` or ``none``.
    :param link: the part of the page that tells more of it.
    """

    count: int
    words: str
    kind: str
    link: str


def tiles(table: Sequence[Line], found: Counts, left_out: int) -> list[Tile]:
    """What was held stands beside what was not.

    :param left_out: how many cases a budget left out.
    """
    held = sum(line.is_held for line in table)
    lost = sum(line.row.figure == '-' for line in table)
    free = len(table) - held - lost
    counted = [
        (held, 'held to references', 'figure', 'good', 'figures'),
        (free, 'without a reference', 'figure', 'none', 'figures'),
        (found.passed, 'passed', 'case', 'good', 'figures'),
        (found.failed, 'failed', 'case', 'bad', 'failed'),
        (found.disturbed, 'disturbed', 'case', 'odd', 'disturbed'),
        (lost, 'without any figure', 'case', 'bad', 'figures'),
        (found.skipped, 'skipped', 'case', 'odd', 'skipped'),
    ]
    if left_out:
        counted.append((left_out, 'left out by a budget', 'case', 'odd', 'about'))
    return [
        Tile(count, f'{what}{"s" * (count != 1)} {words}', kind if count else 'none', link)
        for count, words, what, kind, link in counted
    ]


def sentence(table: Sequence[Line], found: Counts) -> str:
    """What the verdict rests on, in one sentence."""
    held = sum(line.is_held for line in table)
    measured = sum(line.row.figure != '-' for line in table)
    if not held:
        return 'It rests on nothing: no figure was held to a reference.'
    return (
        f'It rests on {many(held, "figure")} of {measured} that were held to a reference, in '
        f'{many(sum(found) - found.skipped, "case")} that ran.'
    )
