"""Changes over the runs of a history, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from assay.files import json_text
from assay.report.console import FAR, as_change, console, print_line, print_table, sparkline
from assay.results.figure_series import FigureKey
from assay.results.history import StoredRun
from assay.results.rows import number
from assay.results.statistics.changes import FEWEST
from assay.results.trend import RATE, FigureTrend, Trend, TrendFinding
from assay.text import many, plain

#: Characters of a sparkline, in a wide window and in a narrow one.
WIDE_LINE, NARROW_LINE = 24, 12

_CHANGED = '<figure|<trend|change|~first bad run|~plausible|~before|now|<state'
_UNCHANGED = '<figure|<trend|runs|newest|<state'


def show_trend(found: Trend, show_all: bool) -> None:
    """Groups of steps, drifts, and a sentence about all.

    :param show_all: each figure, those in which nothing changed too.
    """
    out = console()
    lines = {line.figure: line for line in found.lines}
    for group in found.groups:
        title = f'at run {_run(group.run)}: {_how_many(group.found)}'
        between = 'between the last good run and the first bad one'
        _show(out, title, between, group.found, lines, found, show_all)
    if found.drifts:
        title = f'drift: {_how_many(found.drifts)}'
        between = 'since the drift may have begun'
        _show(out, title, between, found.drifts, lines, found, show_all)
    if show_all:
        changed = {one.figure for one in found.found}
        rest = [line for line in found.lines if line.figure not in changed]
        rows = [_unchanged(out, line, found) for line in rest]
        print_table(out, f'{len(rest)} figures without a change', _UNCHANGED, rows, all_rows=True)
    if found.groups or found.drifts or show_all:
        out.print()
    for sentence in trend_sentences(found):
        print_line(out, plain(sentence))


def trend_sentences(found: Trend) -> list[str]:
    """Sentences: how much was found in how many figures, and which could not be looked at."""
    runs, states = found.runs, found.states()
    looked = sum(states.values()) - sum(states[one] for one in ('too few', 'has zeros', 'one time'))
    if not runs:
        told = ['no run was looked at']
    else:
        days = f'{runs[0].begun.astimezone():%Y-%m-%d} to {runs[-1].begun.astimezone():%Y-%m-%d}'
        words = [
            f'{states[word]} {text}'
            for word, text in (
                ('worse', 'worse'),
                ('better', 'better'),
                ('changed', 'changed (which way is better was not stored)'),
                ('repaired', 'as before again'),
            )
            if states[word]
        ]
        of = f'{many(len(runs), "run")} from {days}'
        if words:
            told = [f'of {many(looked, "figure")} in {of}: {", ".join(words)}']
        else:
            told = [f'nothing changed in {many(looked, "figure")} of {of}']
    if few := states['too few']:
        told.append(f'{many(few, "figure")} with too few runs (fewer than {FEWEST}) to tell')
    if zeros := states['has zeros']:
        told.append(f'{many(zeros, "figure")} with zeros, of which no ratio can be taken')
    if same := states['one time']:
        told.append(f'{many(same, "figure")} whose runs all began at one time, in no known order')
    if found.empty:
        told.append(f'{many(len(found.empty), "figure")} without any value to use')
    disturbed = sum(line.measured.disturbed for line in found.lines)
    unusable = sum(line.measured.unusable for line in found.lines)
    for count, why in (
        (disturbed, 'others used the nodes'),
        (unusable, 'no finite number, or negative'),
    ):
        if count:
            told.append(f'{many(count, "value")} left out: {why}')
    units = Counter(str(one.figure) for one in found.lines)
    if several := [figure for figure, count in units.items() if count > 1]:
        told.append(
            f'{several[0]} was stored in several units, each of which is a figure of its own'
            + (f' (and {len(several) - 1} more)' if several[1:] else '')
        )
    if found.of_the_future:
        told.append(f'{many(found.of_the_future, "run")} of the future left out')
    return told


def _show(
    out: Console,
    title: str,
    between: str,
    some: Sequence[TrendFinding],
    lines: dict[FigureKey, FigureTrend],
    found: Trend,
    show_all: bool,
) -> None:
    """Changes that belong together: how many, what else changed, and then each."""
    rows = (_changed(out, one, lines[one.figure], found) for one in some)
    whole = '\n'.join([title, *_facts(some, between), '  the figures'])
    print_table(out, whole, _CHANGED, rows, all_rows=show_all)


def _changed(out: Console, one: TrendFinding, line: FigureTrend, found: Trend) -> list[object]:
    if one.form == 'drift':
        before = line.values[:FEWEST]
    else:
        before = line.values[: line.sessions.index(found.runs.index(one.bad))][-FEWEST:]
    return [
        *(line.figure, _spark(out, line, found), change_text(one), _run(one.first)),
        *(f'{one.earliest.name} to {one.latest.name}', _typical(before)),
        *(_typical(line.values[-3:]), one.state),
    ]


def _typical(values: Any) -> str:
    return number(float(np.median(values))) if len(values) else '-'


def _unchanged(out: Console, line: FigureTrend, found: Trend) -> list[object]:
    newest = number(line.measured.values[-1])
    return [line.figure, _spark(out, line, found), len(line.sessions), newest, line.state]


def _spark(out: Console, line: FigureTrend, found: Trend) -> str:
    width = WIDE_LINE if out.width >= 140 else NARROW_LINE
    values = line.values if len(line.values) else line.measured.values.to_list()
    places = line.sessions if len(line.values) else range(len(values))
    return sparkline(places, values, len(found.runs), width, out.encoding)


def change_text(one: TrendFinding) -> str:
    """Such as ``-12.0%`` or ``-0.50% a week``."""
    return f'{one.per_week:+.2%} a week' if one.form == 'drift' else as_change(one.ratio)


def _how_many(some: Sequence[TrendFinding]) -> str:
    """``14 figures worse by 3% to 12%, 1 figure better by 2%``."""
    told = []
    for direction in ('worse', 'better', 'changed'):
        sizes = sorted(
            abs(one.per_week if one.form == 'drift' else one.ratio - 1)
            for one in some
            if one.direction == direction
        )
        if not sizes:
            continue
        least, most = _size(sizes[0]), _size(sizes[-1])
        week = ' a week' if some[0].form == 'drift' else ''
        by = least if least == most else f'{least} to {most}'
        told.append(f'{many(len(sizes), "figure")} {direction} by {by}{week}')
    return ', '.join(told)


def _size(fraction: float) -> str:
    if fraction > FAR - 1:
        return as_change(1 + fraction)
    return f'{100 * fraction:.2g}%' if fraction < 0.1 else f'{fraction:.0%}'


def _facts(some: Sequence[TrendFinding], between: str) -> list[str]:
    """A line for each fact that changed, with how many figures it changed in if not in all."""
    facts = Counter(fact for one in some for fact in one.facts)
    if not facts:
        return [f'  nothing changed of what is stored {between}']
    return [f'  changed {between}:'] + [
        f'    {plain(name)}: {plain(change)}'
        + ('' if count == len(some) else f' (of {count} of these figures)')
        for (name, change), count in facts.most_common()
    ]


def _run(run: StoredRun) -> str:
    return f'{run.name}, {run.begun.astimezone():%Y-%m-%d}'


def trend_json(found: Trend) -> str:
    """JSON: what was looked at, each change, and each figure; times in ISO 8601 (UTC)."""
    whole = {
        'runs': len(found.runs),
        'first': _plain_run(found.runs[0]) if found.runs else None,
        'last': _plain_run(found.runs[-1]) if found.runs else None,
        'of_the_future': found.of_the_future,
        'rate_of_false_alarms': RATE,
        'worse': found.is_bad,
        'groups': [
            {
                'first_bad': _plain_run(group.run),
                'changes': [_plain_change(one) for one in group.found],
            }
            for group in found.groups
        ],
        'drifts': [_plain_change(one) for one in found.drifts],
        'figures': [
            {
                **vars(line.figure),
                'better': line.measured.better,
                'state': line.state,
                'sessions': len(line.sessions),
                'disturbed': line.measured.disturbed,
                'unusable': line.measured.unusable,
            }
            for line in found.lines
        ],
        'without_values': [vars(figure) for figure in found.empty],
    }
    return json_text(whole, indent=2)


def _plain_change(one: TrendFinding) -> dict[str, Any]:
    return {
        **vars(one.figure),
        'form': one.form,
        'direction': one.direction,
        'ratio': one.ratio,
        'per_week': one.per_week,
        'p_value': one.p_value,
        'first_bad': _plain_run(one.first),
        'earliest': _plain_run(one.earliest),
        'latest': _plain_run(one.latest),
        'compared': [_plain_run(one.last_good), _plain_run(one.bad)],
        'what_changed': dict(one.facts),
        'repaired': one.is_repaired,
    }


def _plain_run(run: StoredRun) -> dict[str, Any]:
    return {'run': run.uuid, 'begun': run.begun}
