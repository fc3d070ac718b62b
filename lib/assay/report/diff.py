"""The difference between runs as text; :mod:`~assay.report.diff_json` has it as JSON."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import get_args

from rich.console import Console

from assay.comparing.against import AgainstResult
from assay.comparing.interleaved import Interleaved
from assay.comparing.sessions import Failing
from assay.report.console import (
    FAR,
    WIDE,
    as_change,
    as_interval,
    as_multiple,
    console,
    height,
    is_tenfold,
    percent,
    print_line,
    print_table,
)
from assay.results.diff.causes import Cause, Fact, facts_with
from assay.results.diff.compared import Compared, worst_first
from assay.results.diff.difference import Difference
from assay.results.diff.endings import Failed
from assay.results.diff.families import Finding
from assay.results.figure_series import FigureKey
from assay.results.grouping import Attribute
from assay.results.history import StoredRun
from assay.results.searches import conclusions_between
from assay.results.statistics.comparison import Word
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import ratio
from assay.results.time_spent import TimeSpent
from assay.text import first_few, many, plain, visible

#: In a narrow window the figure has one column, and what a cell of it is folded into has lines.
_NAMES, _NARROW = ('<figure', '<case', '<environment'), ('<figure',)
_COLUMNS = ('before', 'after', 'change', '95%', '~finds', '~sessions')
#: What figures share, in words.
_SHARED = {
    'node': 'on {}',
    'nodes': 'on {}',
    'partition': 'in the partition {}',
    'environment': 'with {}',
    'fabric': 'over {}',
    'reach': '{}',
    'scale': 'at the scale {}',
    'layout': 'in the layout {}',
    'quantity': 'of {}',
    'check': 'of {}',
    'figure': 'called {}',
}
#: Characters of a fact's value that are shown unless all is asked for.
_MOST_OF_A_FACT = 60
#: Lines of the window that show a comparison; causes that have a line, facts told in one, and rows
#: of the table of what changed most: at most, and at least.
SCREEN, _MOST_CAUSES, _FACTS_OF_A_CAUSE, _MOST_FIGURES, _FEWEST_FIGURES = 40, 5, 2, 8, 2


def show_diff(found: Difference, everything: bool = False) -> None:
    """The difference as text on one screen: what is worse first, and the verdict in the last line.

    :param everything: all rows of all tables, and a table of what is the same.
    """
    out = console()
    show_all(found, out, everything)
    print_line(out, diff_conclusion(found))


def show_all(found: Difference, out: Console, everything: bool) -> None:
    """All but the last line."""
    for line in _answer(found, everything):
        print_line(out, visible(line))
    out.print()
    for line in _head(found):
        print_line(out, visible(line))
    if everything:
        _show_everything(found, out)
        return
    notes = [''] + [visible(one) for one in _short_notes(found)]
    below = sum(height(one, out.width) for one in [*notes, diff_conclusion(found)])
    above = sum(height(one, out.width) for one in [*_answer(found, False), '', *_head(found)])
    _show_most_changed(found, out, SCREEN - above - below)
    for line in notes:
        print_line(out, line)


def _show_everything(found: Difference, out: Console) -> None:
    """Every section, with all rows of its tables."""
    _show_machine(found, out)
    if found.lost:
        rows = ((one.case, _ends(one)) for one in found.lost)
        title = f'lost: {many(len(found.lost), "case")} gave figures before, and none after'
        print_table(out, title, '<case|<result', rows, all_rows=True)
    if found.gone:
        title = f'gone: {many(len(found.gone), "figure")} that had a value before'
        rows = ((str(one.figure), one.reason) for one in found.gone)
        print_table(out, title, '<figure|<why', rows, all_rows=True)
    for cause in found.causes:
        _show_cause(cause, out)
    unsure = [one for one in found.figures if one.word == 'cannot tell' and not one.has_followed]
    if unsure:
        _show_unsure(unsure, out)
    if same := [one for one in found.figures if one.word == 'same']:
        _figures(out, 'same', same)
    _show_facts(found.facts, len(found.figures), out)
    out.print()
    for line in _notes(found):
        print_line(out, visible(line))


def diff_conclusion(found: Difference, decides: str | None = None) -> str:
    """The last line.

    :param decides: what would decide it, if that is known better than by stored runs alone.
    """
    told = f'{found.verdict.upper()}: {word_counts(found)}'
    if found.verdict == 'undecided':
        told += f'; {decides or _what_decides(found)}'
    elif found.verdict == 'not worse' and 2 * found.counts['cannot tell'] > len(found.figures):
        told += f'; {_at_most(median(one.most_lost for one in found.figures))}'
    return told


def _at_most(loss: float) -> str:
    """Words on the loss that undecided figures may have at most."""
    if loss > FAR - 1:
        return 'of half of them it is not known how much worse they may be: run more often'
    return f'half of them may be worse by up to {percent(loss)} (95%)'


def word_counts(found: Difference) -> str:
    """How many figures have which word, and what is missing: ``1 worse, 0 better, ...``."""
    counts = found.counts
    words = [f'{counts[word]} {word}' for word in get_args(Word)]
    missed = [
        *([f'{many(len(found.lost), "case")} lost'] if found.lost else []),
        *([f'{many(len(found.at_times), "case")} failed at times'] if found.at_times else []),
        *([f'{many(len(found.gone), "figure")} gone'] if found.gone else []),
    ]
    total = many(len(found.figures), 'figure')
    return ', '.join([f'{", ".join(words)} of {total}', *missed])


def show_against(held: AgainstResult, word: str, everything: bool = False) -> None:
    """Show the difference to runs that were measured for it, some of them again.

    :param word: of the verdict on these runs.
    """
    out = console()
    show_all(held.difference, out, everything)
    if held.rounds:
        again = f'measured again: {many(held.rounds, "round")} in {in_minutes(held.seconds)}'
        how = 'a case counts by its rounds alone once they are 3'
        print_line(out, f'{again}; {how}')
    print_line(out, visible(conclusion_against(held, word)))


def conclusion_against(held: AgainstResult, word: str) -> str:
    """The last line of :func:`show_against`."""
    found = held.difference
    if held.signal or held.is_broken:
        return f'STOPPED: {found.verdict.upper()}: {word_counts(found)}; {held.stopped}'
    told = diff_conclusion(found, _what_rounds_decide(held))
    if word == 'FAILED':
        return f'FAILED, see above; and with what was run before: {told}'
    if held.doubted:
        count = many(len(held.doubted), 'figure')
        told += f'; may be worse: {count}{_sizes_of(held.doubted)}: a longer --budget may tell'
    if word == 'DISTURBED' and found.verdict == 'not worse':
        return f'DISTURBED: some cases are no evidence; of the others: {told}'
    return told


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
    show_all(found.difference, out, everything)
    for one in found.uneven:
        print_line(out, visible(f'failed: {_failing(one, found)}'))
    for one in found.failed:
        print_line(
            out, visible(f'failed with both, which is no difference: {_failing(one, found)}')
        )
    print_line(out, visible(interleaved_conclusion(found)))


def interleaved_conclusion(found: Interleaved) -> str:
    """The last line."""
    decides = 'more time (--within), fewer cases (-n) or a quieter machine may decide it'
    told = diff_conclusion(found.difference, decides)
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


def _what_rounds_decide(held: AgainstResult) -> str:
    """Advice on figures that were measured again and still look worse; empty if there are none."""
    if not held.difference.suspects:
        return ''
    if not held.rounds:
        return f'{held.stopped}: give it more by --budget' if held.stopped else ''
    seconds = held.seconds / held.rounds
    if not (more := _fewest_runs(held.difference, rounds=True)):
        return (
            f'{held.stopped}, and no number of rounds would decide it; where the old state is '
            'still there, `assay compare-settings` measures both in turn'
        )
    # Of the runs and all rounds, as --budget has it.
    runs = sum((run.ended - run.begun).total_seconds() for run in held.difference.after)
    enough = math.ceil((runs + (more + 1) * seconds) / 60)
    return (
        f'{held.stopped}; {many(more, "more round")}, about {in_minutes(more * seconds)}, may '
        f'decide it: --budget {enough}m'
    )


def _what_decides(found: Difference) -> str:
    """Advice on figures that look worse in stored runs."""
    if not found.suspects:
        if 2 * sum(one.before.series is None for one in found.figures) > len(found.figures):
            return (
                'most figures have no values before that can be compared: choose other runs '
                'before, or run again when others use the nodes as much as then'
            )
        return 'most figures have no values before and after that can be compared: run again'
    labels = {run.summary.label for run in found.before}
    label = labels.pop() if len(labels) == 1 else None
    again = f'`assay run --against {shlex.quote(label) if label else "BEFORE"}` measures it again'
    if not (more := _fewest_runs(found)):
        return again
    seconds = median((run.ended - run.begun).total_seconds() for run in found.after)
    runs = f'{many(more, "more run")} before and after'
    return f'{runs}, about {in_minutes(2 * more * seconds)}, may decide it; {again}'


def _fewest_runs(found: Difference, rounds: bool = False) -> int | None:
    """How many more runs would show one of the suspects to be what it looks like; None if none."""
    rate = SUITE_RATE / max(1, len(found.figures))
    wanted = [
        one.verdict.comparison.more_runs(math.expm1(abs(one.change)), rate, rounds=rounds)
        for one in found.suspects
        if one.verdict and one.change
    ]
    return min(filter(None, wanted), default=None)


def in_minutes(seconds: float) -> str:
    return f'{max(1, math.ceil(seconds / 60))} min'


def _answer(found: Difference, everything: bool) -> Iterator[str]:
    """The verdict, then a line for each cause of what is worse, looks worse, or is better."""
    sides = ' and '.join(
        f'{many(len(runs), "run")} {name}'
        for name, runs in (('before', found.before), ('after', found.after))
    )
    yield f'{found.verdict.upper()}, by {sides} of {found.after[0].summary.system}'
    lines = [
        *(
            f'lost: {one.case} gave figures before, and none after ({_ends(one)})'
            for one in found.lost
        ),
        *(f'failed at times: {one.case} ({_ends(one)})' for one in found.at_times),
        *(f'gone: {one.figure}: {one.reason}' for one in found.gone),
        *_causes(found, 'worse'),
        *_suspects(found),
        *_causes(found, 'better'),
    ]
    most = len(lines) if everything else _MOST_CAUSES
    for line in lines[:most]:
        yield f'  {line}'
    if len(lines) > most:
        yield f'  ... and {len(lines) - most} more, of which --all tells'


def _causes(found: Difference, word: Word) -> Iterator[str]:
    """A line for each family that changed, then for what changed outside of any."""
    told: set[int] = set()
    for family in found.families:
        if family.word == word:
            told.update(id(one) for one in family.changed)
            yield f'{word}: {_family(family, family.changed)}'
    left = [one for one in found.figures if one.word == word and id(one) not in told]
    for one in worst_first(left):
        number = next(n for n, other in enumerate(found.figures) if other is one)
        yield f'{word}: {_figure(one)}{_with_it(facts_with(found.facts, [number], ()))}'


def _suspects(found: Difference) -> Iterator[str]:
    """A line for each family with figures that look worse."""
    in_doubt = {id(one) for one in found.suspects}
    for family in found.families:
        if of_it := [one for one in family.members if id(one) in in_doubt]:
            in_doubt -= {id(one) for one in of_it}
            yield f'looks worse, not decided: {_family(family, worst_first(of_it))}'
    for one in found.suspects:
        if id(one) in in_doubt:
            yield f'looks worse, not decided: {_figure(one)}'


def _figure(one: Compared) -> str:
    """Such as ``latency of Ring %fabric=tcp @...: +12.0%``."""
    if one.is_without_ratio:
        return f'{one.figure}: {one.before.middle_text} -> {one.after.middle_text}'
    return f'{one.figure}{f": {as_change(ratio(one.change))}" if one.change else ""}'


def _family(family: Finding, changed: Sequence[Compared]) -> str:
    """Such as ``kernels: 12 of 14 figures, by 25.0% to 49.0%; changed with it: ...``."""
    of_all = f'{len(changed)} of {many(len(family.members), "figure")}'
    return f'{family.name}: {of_all}{_sizes_of(changed)}{_with_it(family.facts)}'


def _with_it(facts: Sequence[Fact]) -> str:
    shown = ', '.join(_fact(one) for one in facts[:_FACTS_OF_A_CAUSE])
    more = f' and {len(facts) - _FACTS_OF_A_CAUSE} more' if len(facts) > _FACTS_OF_A_CAUSE else ''
    return f'; changed with it: {shown}{more}' if shown else ''


def _show_most_changed(found: Difference, out: Console, lines: int) -> None:
    """A table of what changed most, as long as a number of lines allows.

    Worse figures come first, then those that look so, then better ones.
    """
    order = [
        *worst_first(one for one in found.figures if one.word == 'worse'),
        *worst_first(one for one in found.suspects if one.word != 'worse'),
        *worst_first(one for one in found.figures if one.word == 'better'),
    ]
    if not order:
        return
    for rows in range(min(len(order), _MOST_FIGURES), 0, -1):
        with out.capture() as captured:
            _figures(out, f'changed most, of {many(len(order), "figure")}', order[:rows])
        if captured.get().count('\n') <= lines or rows <= _FEWEST_FIGURES:
            break
    _figures(out, f'changed most, of {many(len(order), "figure")}', order[:rows])


def _head(found: Difference) -> Iterator[str]:
    """Lines on the runs, and on what is wrong with them or with the machine."""
    for name, runs in (('before', found.before), ('after', found.after)):
        yield f'{name + ":":8}{_runs(runs)}'
    past = many(found.earlier.runs, 'earlier run') if found.earlier.runs else 'no earlier run'
    yield f'system {found.after[0].summary.system}; the spread is learned from {past}'
    for name, states in zip(('before', 'after'), found.states, strict=True):
        if states:
            which = f'{many(len(states.figures), "figure")} (such as {states.figures[0]})'
            told = f'{name} covers two states: {which} had a step within it, most at run'
            yield f'{told} {states.run[:8]}. Choose runs of one state.'
    if found.moved:
        worst = found.moved[0]
        times = ratio(worst.change)
        moved = f'to {as_multiple(times)}' if is_tenfold(times) else f'by {as_change(times)}'
        yield (
            f'the machine moved: {worst.figure} {moved}, which no software above the kernel can '
            'have touched. Of other figures only what changed by more is blamed on anything else.'
        )
    if found.followed:
        yield f'{many(len(found.followed), "figure")} may only have followed it'


def _runs(runs: Sequence[StoredRun]) -> str:
    when = [f'{run.begun.astimezone():%Y-%m-%d %H:%M}' for run in (runs[0], runs[-1])]
    names = first_few([run.name for run in runs])
    labels = dict.fromkeys(run.summary.label for run in runs if run.summary.label)
    told = f' with the label {", ".join(map(plain, labels))}' if labels else ''
    return f'{many(len(runs), "run")}{told}, {" to ".join(dict.fromkeys(when))} ({names})'


def _show_machine(found: Difference, out: Console) -> None:
    if not found.moved:
        return
    _figures(out, 'figures of the machine that moved', found.moved)
    if found.followed:
        title = (
            f'may only have followed it: {many(len(found.followed), "figure")}'
            f'{_sizes_of(found.followed)}'
        )
        _figures(out, title, found.followed)
    if found.time:
        print_line(out, visible(f'  {_time(found.time)}'))


def _show_cause(cause: Cause, out: Console) -> None:
    _figures(out, visible(cause_title(cause)), cause.figures)
    if places := _places(cause):
        print_line(out, visible(f'  {places}'))
    group = cause.group
    if group:
        kinds = {kind for kind, _ in (*group.likewise, *group.shared)}
        # Of a list of nodes each is common to the figures as well, and of a quantity its name.
        implied = {'node': 'nodes', 'figure': 'quantity'}
        likewise = [one for one in group.likewise if implied.get(one[0]) not in kinds]
        if likewise:
            print_line(out, visible(f'  the same figures are those {_shared(likewise, " and ")}'))
        of_it = {*group.changed, *group.others}
        for fact in cause.facts:
            others = len(fact.figures - of_it)
            where = f'here and for {many(others, "other figure")}' if others else 'only here'
            print_line(out, visible(f'  changed {where}: {_fact(fact, everything=True)}'))
    if cause.time:
        print_line(out, visible(f'  {_time(cause.time)}'))


def _places(cause: Cause) -> str:
    """The reach and fabrics of all figures, unless they name the group; empty if they do."""
    named = (
        {kind for kind, _ in (*cause.group.shared, *cause.group.likewise)} if cause.group else {}
    )
    reaches = {one.reach for one in cause.figures if 'reach' not in named}
    fabrics = sorted(
        {one.after.fabric for one in cause.figures if 'fabric' not in named} - {'-', ''}
    )
    parts = [*(reaches if len(reaches) == 1 else ()), fabrics and f'over {", ".join(fabrics)}']
    return f'all of them {", ".join(part for part in parts if part)}' if any(parts) else ''


def _time(spent: TimeSpent) -> str:
    """The time of a case by parts, such as ``computation 70.0% -> 60.0%; MPI_Send 1 -> 2 s``."""
    before, after = asdict(spent.before), asdict(spent.after)
    parts = [f'{part} {percent(share)} -> {percent(after[part])}' for part, share in before.items()]
    times = ' -> '.join(f'{time:.3g}' for time in spent.seconds)
    call = f'; {spent.call} {times} s over all ranks' if spent.call else ''
    then, now = spent.jobs
    jobs = f'medians of {many(then, "job")} before and {now} after'
    return f'where the time of {spent.case} went: {", ".join(parts)}{call}; {jobs}'


def cause_title(cause: Cause) -> str:
    """Such as ``worse: 12 of 12 figures over ofi-tcp, by 8.0% to 40.0%``."""
    changed = len(cause.figures)
    if cause.group is None:
        which = f'{many(changed, "figure")} with nothing in common'
    else:
        total = changed + len(cause.group.others)
        where = _shared(cause.group.shared, ' ') or 'of all'
        which = f'{changed} of {many(total, "figure")} {where}'
    return f'{cause.word}: {which}{_sizes_of(cause.figures)}'


def _sizes_of(figures: Iterable[Compared]) -> str:
    """Such as ``, by 8.0% to 40.0%``; empty where there is no ratio."""
    sizes = [abs(ratio(one.change) - 1) for one in figures if one.change]
    words = [as_change(1 + size).lstrip('+') for size in (min(sizes), max(sizes))] if sizes else []
    return f', by {" to ".join(dict.fromkeys(words))}' if words else ''


def _show_unsure(unsure: Sequence[Compared], out: Console) -> None:
    told = sorted((one for one in unsure if one.verdict), key=lambda one: -abs(one.change))
    title = f'cannot tell: {many(len(unsure), "figure")}'
    if told:
        _figures(out, title, told, more=True)
    else:
        print_line(out, f'\n{title}:')
    reasons: dict[str, list[Compared]] = {}
    for one in unsure:
        # How many more runs that are is not the same of all.
        reasons.setdefault(one.reason.lstrip('0123456789 '), []).append(one)
    for reason, alike in sorted(reasons.items(), key=lambda one: -len(one[1])):
        if more := sorted(int(one.reason.split()[0]) for one in alike if one.reason[:1].isdigit()):
            reason = f'{" to ".join(map(str, dict.fromkeys((more[0], more[-1]))))} {reason}'
        names = ', '.join(str(one.figure) for one in alike if not one.verdict)
        print_line(
            out, visible(f'  {many(len(alike), "figure")}: {reason}{names and f": {names}"}')
        )


def _show_facts(facts: Sequence[Fact], total: int, out: Console) -> None:
    if not facts:
        return
    rows = (
        (fact.name, *_values(fact, everything=True), f'{len(fact.figures)} of {total}')
        for fact in facts
    )
    print_table(out, 'what else changed', '<fact|<before|<after|figures', rows, all_rows=True)


def _short_notes(found: Difference) -> Iterator[str]:
    """Lines on what was not compared, what else changed, and that there is more."""
    yield from _searched(found)
    yield from _left_out(found, everything=False)
    if found.facts:
        first = found.facts[0]
        more = f', and {many(len(found.facts) - 1, "fact")} more' if found.facts[1:] else ''
        where = f'{len(first.figures)} of {many(len(found.figures), "figure")}'
        yield f'what else changed: {_fact(first)} ({where}){more}'
    yield '--all tells the rest'


def _notes(found: Difference) -> Iterator[str]:
    """Lines on what is left out, what is not in both, and the sources of errors."""
    yield from _searched(found)
    yield from _left_out(found, everything=True)
    if found.conditions:
        yield (
            f'not judged: {many(found.conditions, "figure")} that only tell how quiet the nodes '
            'were'
        )
    for term, count in _terms(found).most_common():
        yield f'error of {many(count, "figure")}: {term}'


def _searched(found: Difference) -> Iterator[str]:
    """Lines on searches for the change that did it."""
    sides = ([run.uuid for run in runs] for runs in (found.before, found.after))
    yield from map(str, conclusions_between(*sides))


def _left_out(found: Difference, everything: bool) -> Iterator[str]:
    """Lines on what is not in both, or does not count."""
    for word, figures in (('before', found.only_before), ('after', found.only_after)):
        if figures:
            cases = dict.fromkeys(figure.case for figure in figures)
            which = f'{many(len(figures), "figure")} of {many(len(cases), "case")}'
            names = _listed([*cases], everything)
            yield f'only {word}: {which} ({names}): not run, or named otherwise, on the other side'
    unusable = [one for one in found.figures if one.before.unusable or one.after.unusable]
    if unusable:
        count = sum(one.before.unusable + one.after.unusable for one in unusable)
        names = _listed([str(one.figure) for one in unusable], everything)
        yield f'left out: {many(count, "value")} that are not a number, or negative, of {names}'
    then, now = (
        sum(one.before.disturbed for one in found.figures),
        sum(one.after.disturbed for one in found.figures),
    )
    if then or now:
        sentences = [sentence for sentence, _ in found.disturbances]
        why = f': {"; ".join(sentences)}' if everything else ''
        sides = f'{then} before and {now} after'
        yield f'left out: {many(then + now, "value")} of disturbed jobs, {sides}{why}'
    if found.alike_disturbed:
        yield (
            f'counted all the same: {many(found.alike_disturbed, "value")} of disturbed jobs, of '
            'cases of which others took as much before as after'
        )
    if misses := [one for one in found.figures if one.misses]:
        yield (
            f'missed references: {many(len(misses), "figure")} called worse because all runs after '
            'miss what all before meet, whatever the spread is'
        )


def _terms(found: Difference) -> Counter[str]:
    """The sources of the errors of figures."""
    comparisons = (one.verdict.comparison for one in found.figures if one.verdict)
    return Counter(one.term for one in comparisons if one.better != 'exact' and not one.reason)


def _figures(
    out: Console,
    title: str,
    figures: Iterable[Compared],
    more: bool = False,
) -> None:
    """A table of figures, all of them.

    :param more: how many more runs would tell, too.
    """
    is_narrow = out.width < WIDE
    columns = [*(_NARROW if is_narrow else _NAMES), *_COLUMNS, *(['~more runs'] if more else [])]
    rows = (
        (*_names(one.figure, is_narrow), *_cells(one), *([_more_runs(one)] if more else []))
        for one in figures
    )
    print_table(out, title, '|'.join(columns), rows, all_rows=True)


def _names(figure: FigureKey, is_narrow: bool) -> tuple[str, ...]:
    where = figure.partition, figure.environment
    if is_narrow:  # in words that can be folded
        return (f'{figure.figure} of {figure.case} in {" with ".join(where)}',)
    return figure.figure, figure.case, '+'.join(where)


def _cells(one: Compared) -> tuple[object, ...]:
    values = (one.before.middle_text, one.after.middle_text)
    verdict = one.verdict
    if verdict is None or math.isnan(verdict.comparison.change):
        return (*values, '-', '-', '-', _sizes(one))
    sure = 'exact' if one.is_exact else as_interval(*verdict.interval)
    finds = percent(verdict.smallest) if verdict.smallest < FAR - 1 else f'>{FAR:.0f}x'
    return (*values, as_change(ratio(one.change)), sure, finds, _sizes(one))


def _more_runs(one: Compared) -> object:
    more = one.verdict.more_runs if one.verdict else None
    return '-' if more is None else more


def _sizes(one: Compared) -> str:
    sizes = [side.series.size if side.series else 0 for side in (one.before, one.after)]
    return f'{sizes[0]}+{sizes[1]}'


def _shared(attributes: Iterable[Attribute], between: str) -> str:
    # As people say it: what, with what, over what, where.
    order = [*_SHARED]
    ordered = sorted(attributes, key=lambda one: -order.index(one[0]))
    return between.join(_SHARED[kind].format(value) for kind, value in ordered)


def _values(fact: Fact, everything: bool) -> tuple[str, str]:
    most = 10_000 if everything else _MOST_OF_A_FACT
    return plain(fact.before, most), plain(fact.after, most)


def _fact(fact: Fact, everything: bool = False) -> str:
    before, after = _values(fact, everything)
    return f'{fact.name}: {before} -> {after}'


def _ends(one: Failed) -> str:
    failed = sorted((word, count) for word, count in one.ends.items() if word)
    words = ', '.join(f'{word} in {count}' for word, count in failed)
    return f'{words} of {one.ends.total()}'


def _listed(names: Sequence[str], everything: bool) -> str:
    most = len(names) if everything else 1
    more = [f'{len(names) - most} more'] if len(names) > most else []
    return ', '.join([*names[:most], *more])
