"""A run on another system beside the one that is shown: its verdict, and figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.report.html.sections import MeasuredWith, facts_and_variables
from assay.results.cases import Case
from assay.results.rows import Row, is_number, number, rows_of, with_unit
from assay.text import many

#: Figures of the table: with more the page would be too large to be sent.
MOST = 1000

#: A case that has the same name on both systems: its check with all parameters, its environment,
#: and whose program it ran. Then the figure, and its unit.
Key = tuple[str, str, str, str, str]

#: Verdicts of figures that need no word.
GOOD_WORDS = {'pass', 'xfail', 'no bound'}

#: In which direction a figure gets better, in words.
_WORDS = {'higher': 'higher is better', 'lower': 'lower is better', 'exact': 'neither is'}


@dataclass(frozen=True)
class JudgedRun:
    """A run of the page, with its verdict.

    :param kind: of its verdict: ``good``, ``bad`` or ``odd``.
    :param counts: how many cases went which way, in words.
    :param problems: why the verdict is no other.
    :param facts: name and value of what is known of the run itself.
    :param cases: that were not skipped.
    """

    word: str
    kind: str
    counts: str
    problems: Sequence[str]
    facts: Sequence[tuple[str, str]]
    cases: Sequence[Case]

    @property
    def system(self) -> str:
        return dict(self.facts)['system']


@dataclass(frozen=True)
class BesideLine:
    """A figure of a case that both systems have.

    :param better: the system on which it is better; ``same``, or ``-`` where nobody has said which
        direction is, or one of the values is no evidence.
    :param values: here and there, with unit, and the verdict where it did not pass.
    :param ratio: of here over there; ``-`` if there is none.
    :param direction: in which it gets better, in words.
    """

    better: str
    row: Row
    values: tuple[str, str]
    ratio: str
    direction: str


@dataclass(frozen=True)
class Beside:
    """Two systems side by side.

    :param systems: the one that is shown, and the other.
    :param other: the run on the other system.
    :param runs: what is known of each run, by name.
    :param facts: of each name what was measured with on each system.
    :param notes: what is not compared, a sentence each.
    """

    systems: tuple[str, str]
    other: JudgedRun
    runs: Sequence[tuple[str, str, str]]
    facts: Sequence[tuple[str, MeasuredWith | None, MeasuredWith | None]]
    lines: Sequence[BesideLine]
    notes: Sequence[str]


@dataclass(frozen=True)
class _Seen:
    """A figure of a case on one system.

    :param row: of several repetitions the first that did not pass, if there is one.
    :param value: of several repetitions their median.
    """

    row: Row
    value: float


def compare_systems(shown: JudgedRun, other: JudgedRun) -> Beside:
    """Compare the run that is shown with one on another system."""
    systems = shown.system, other.system
    here, there = _figures(shown.cases), _figures(other.cases)
    pairs = [*_pairs(here, there)]
    notes = ['Whether a difference is more than chance is not known: each system has one run here.']
    for system, found in zip(systems, (here, there), strict=True):
        if alone := sum(map(len, found.values())) - len(pairs):
            notes.append(f'{many(alone, "figure")} of {system} have no partner of the same name.')
    kept = sorted(range(len(pairs)), key=lambda at: _weight(*pairs[at]))[:MOST]
    if len(pairs) > MOST:
        notes.append(
            f'These are {MOST} of {len(pairs)} figures: those that are held to references or asked '
            'for first, then those that differ most.'
        )
    of_other = dict(other.facts)
    own, others = (
        {fact.name: fact for fact in facts_and_variables(run.cases)[0]} for run in (shown, other)
    )
    return Beside(
        systems,
        other,
        [(name, value, of_other.get(name, '-')) for name, value in shown.facts],
        [(name, own.get(name), others.get(name)) for name in {**own, **others}],
        [_line(*pairs[at], systems) for at in sorted(kept)],
        notes,
    )


def _figures(cases: Sequence[Case]) -> dict[Key, dict[str, _Seen]]:
    """The figures that have a value, by partition."""
    rows: dict[Key, dict[str, list[Row]]] = {}
    for case in cases:
        for row in rows_of(case):
            one = row.figure
            key = case.name, case.environment, case.implementation, one.name, one.unit
            if is_number(one.value):
                rows.setdefault(key, {}).setdefault(case.partition, []).append(row)
    return {
        key: {partition: _seen(some) for partition, some in by_partition.items()}
        for key, by_partition in rows.items()
    }


def _seen(rows: Sequence[Row]) -> _Seen:
    worst = max(rows, key=lambda row: row.verdict not in GOOD_WORDS)
    values = [row.figure.value for row in rows]
    return _Seen(worst, median(filter(is_number, values)))


def _pairs(
    here: Mapping[Key, Mapping[str, _Seen]], there: Mapping[Key, Mapping[str, _Seen]]
) -> Iterator[tuple[_Seen, _Seen]]:
    """Figures of the same partition, or of the only ones: systems call theirs as they like."""
    for key, own in here.items():
        others = there.get(key, {})
        yield from ((one, others[name]) for name, one in own.items() if name in others)
        left = [one for name, one in own.items() if name not in others]
        left_there = [one for name, one in others.items() if name not in own]
        if len(left) == len(left_there) == 1:
            yield left[0], left_there[0]


def _weight(one: _Seen, other: _Seen) -> tuple[bool, float]:
    """The order of figures if there is no room for all."""
    is_asked_for = one.row.verdict != 'no bound' or one.row.figure.is_headline
    ratio = _ratio(one, other)
    return not is_asked_for, -abs(math.log(ratio)) if ratio else 0.0


def _ratio(one: _Seen, other: _Seen) -> float | None:
    ratio = one.value / other.value if one.value > 0 and other.value > 0 else 0.0
    return ratio if 0 < ratio < math.inf else None


def _line(one: _Seen, other: _Seen, systems: tuple[str, str]) -> BesideLine:
    known = {one.row.figure.better, other.row.figure.better} - {None}
    better = known.pop() if len(known) == 1 else None
    ratio = _ratio(one, other)
    return BesideLine(
        '-'
        if 'disturbed' in (one.row.verdict, other.row.verdict)
        else _better(one.value, other.value, better, systems),
        one.row,
        (_value(one), _value(other)),
        '-' if ratio is None else number(ratio),
        _WORDS.get(better or '', 'not known'),
    )


def _better(one: float, other: float, better: str | None, systems: tuple[str, str]) -> str:
    if number(one) == number(other):
        return 'same'
    if better not in ('higher', 'lower'):
        return '-'
    return systems[(one > other) != (better == 'higher')]


def _value(one: _Seen) -> str:
    verdict = '' if one.row.verdict in GOOD_WORDS else f' ({one.row.verdict})'
    return with_unit(number(one.value), one.row.figure.unit) + verdict
