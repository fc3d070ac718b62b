"""The change that made figures worse, as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from assay.comparing.culprit import Culprits, Effect, effects_of
from assay.comparing.factors import Factor, state, with_package
from assay.files import json_text
from assay.report.console import as_change, as_interval, console, print_line, print_table
from assay.results.diff.compared import Compared
from assay.results.statistics.culprits import Answer
from assay.results.statistics.series import ratio
from assay.running.setting import COMMIT, ENVIRONMENT, FLAGS, NODES, SOURCES, SPECS
from assay.text import many, visible
from assay.witness.settings import OF_LIBRARIES, set_in_file

#: Answers and figures that are shown, and how likely an answer is at least.
MOST, LEAST = 8, 0.01

#: Below this share of a change sessions here are as before, and above the rest of it as after: of a
#: change that is hardly larger than what sessions vary by, one pair knows the share to some 0.4.
_GONE = 0.25


def show_culprits(found: Culprits) -> None:
    """The answer first; then the evidence, what was not tried, and what to do."""
    out = console()
    steps, named = found.steps, most_exact(found)
    print_line(out, visible(culprit_conclusion(named)))
    if steps:
        other = found if named is steps else steps
        print_line(out, visible(f'{other.question.noun}s: {culprit_conclusion(other)}'))
        noun = steps.question.noun
        print_line(out, f'{noun}s: {many(len(steps.pairs), "pair")}, {_tells(steps)}')
    elif found.no_steps:
        noun = 'commit' if found.changes[0].is_of_commits else 'version'
        print_line(out, visible(f'no {noun} is searched: {found.no_steps}'))
    asked = found.question
    if found.is_sure and found.answer.kind == 'none':
        print_line(out, _whether_still_there(found))
    disturbed = sum(pair.is_disturbed and bool(pair.figures) for pair in found.pairs)
    among = f' ({disturbed} disturbed by others)' if disturbed else ''
    print_line(
        out, f'measured: {many(len(found.pairs), "pair")} of sessions{among}, {_tells(found)}'
    )
    made = 'made here' if found.answer.changes else 'made by all'
    print_table(out, 'explained', f'<figure|<case|<environment|change|{made}|95%', _figures(found))
    print_line(out, '\npossible causes:')
    for one in found.answers[:MOST]:
        if one.probability >= LEAST:
            print_line(out, visible(f'  {_probability(one)}  {answer_in_words(found, one)}'))
    for name, (was, now) in sorted(found.strange.items()):
        told = f'not as before and after: {name}: {was}, here {now}'
        print_line(out, visible(told))
    for untried in (*asked.untried, *(steps.question.untried if steps else ())):
        print_line(out, visible(f'not tried: {untried}'))
    if asked.left:
        more = many(asked.left, 'more figure')
        print_line(out, f'{more} got worse: -n and --figure choose which are explained')
    for which, command in zip(('without', 'with'), kept_reproducer(found), strict=False):
        print_line(out, visible(f'to reproduce, {which} it: {command}'))
    if named.changes and named.is_sure:
        for told in remedies(named.changes):
            print_line(out, visible(f'to live without it: {told}'))
    stopped = [one for one in (found, steps) if one and one.stopped]
    if stopped and all(one.is_sure for one in stopped):
        print_line(out, f'not confirmed: {stopped[-1].stopped}; the same command goes on')
    elif stopped or found.signal:
        print_line(out, 'the same command goes on where it ended')


def most_exact(found: Culprits) -> Culprits:
    """The search among commits or versions if it has an answer, which is more exact."""
    steps = found.steps
    return steps if steps and steps.is_sure and steps.changes else found


def culprit_conclusion(found: Culprits) -> str:
    """The answer, in a line."""
    top = found.answer
    sure = f'probability {_probability(top)}'
    noun = found.question.noun
    count = many(len(found.question.factors), noun)
    if not found.is_sure and not any(pair.figures for pair in found.pairs):
        return f'UNDECIDED among {count}: no pair has a value; {found.stopped}'
    if found.is_opposite:
        return (
            f'UNDECIDED among {count}: all of them together make it better here, so that sessions '
            'here are not as the runs before and after were, which others may have disturbed: '
            'measure both again'
        )
    if not found.is_sure:
        likely = ', '.join(
            f'{answer_in_words(found, one)} ({one.probability:.0%})' for one in found.answers[:3]
        )
        return f'UNDECIDED among {count}: likeliest is {likely}; {found.stopped}'
    match top.kind:
        case 'none' if SOURCES in found.question.factors[0].needs[1] and noun == 'commit':
            why = f'look for files in {SOURCES}/ that were measured and are not in Git'
            return f'NONE OF THESE: none of {count} brings it back, {sure}; {why}'
        case 'none' if found.question.in_order:
            return f'NONE OF THESE: none of {count} brings it back, {sure}'
        case 'none':
            return f'NONE OF THESE: none of {count} that can be switched here did it, {sure}'
        case 'several':
            order = sorted(range(len(found.guilt)), key=lambda one: -found.guilt[one])
            names = ', '.join(found.question.factors[one].name for one in order[:3])
            return f'SEVERAL of {count} did it, none of them alone, {sure}; likeliest: {names}'
        case _:
            return f'FOUND: {answer_in_words(found, top)} did it, {sure}, of {count}'


def kept_conclusion(found: Culprits) -> str:
    """The line for pages and comparisons: the most exact answer, and any that contradicts it."""
    told, steps = culprit_conclusion(most_exact(found)), found.steps
    if steps is None or most_exact(found) is steps:
        return told
    return f'{told}; {steps.question.noun}s: {culprit_conclusion(steps)}'


def kept_reproducer(found: Culprits) -> list[str]:
    """Two commands, without what did it and with it; none without an answer."""
    named = most_exact(found)
    return reproducer(named) if named.changes and named.is_sure else []


def _whether_still_there(found: Culprits) -> str:
    """A sentence on where to look if no change did it."""
    share = found.share_here
    assert share is not None, 'no pair, no answer'
    told = f'sessions here have {share:.0%} of the change, whichever changes are made'
    if share < _GONE:
        why = 'it comes and goes'
        if found.question.others_stay:
            why = 'others made it, who disturbed all jobs that show it'
        return f'it is gone: {told}. It was undone meanwhile, or {why}'
    if share < 1 - _GONE:
        return f'{told}: run the case again, which is neither as before nor as after'
    what = 'what is not tried below, and ' if found.question.untried else ''
    return f'it is still there: {told}. Look at {what}what no job tells, such as hardware'


def _probability(one: Answer) -> str:
    """Nothing is certain."""
    return 'over 99.9%' if one.probability > 0.999 else f'{one.probability:.1%}'


def answer_in_words(found: Culprits, one: Answer) -> str:
    names = ' and '.join(str(found.question.factors[number]) for number in one.changes)
    return names or {'none': 'none of these'}.get(one.kind, 'several small ones')


def _tells(found: Culprits) -> str:
    whose = 'it alone' if len(found.answer.changes) == 1 else 'these'
    if not found.answer.changes:
        whose = 'all changes'
    if found.effect is None:
        return 'which do not tell the effect yet'
    one, left = found.effect, found.left
    told = f'of which {one.pairs} tell the effect: {whose} made {_share(one)}'
    shows = left and (left.low > 0 or left.high < 0)
    return f'{told}; not explained by it: {_share(left)}' if left and shows else told


def _share(one: Effect) -> str:
    return f'{one.share:.0%} of the change ({one.low:.0%} to {one.high:.0%}, 95% interval)'


def _figures(found: Culprits) -> Iterator[tuple[str, ...]]:
    """A row for each figure: what was seen, and what the answer makes of it here."""
    for one in found.question.figures:
        change, made = as_change(ratio(one.change)), ('-', '-')
        if ends := _made(found, one):
            made = as_change(ends[0]), as_interval(*ends[1:])
        yield one.figure.figure, one.figure.case, one.figure.environment, change, *made


def _made(found: Culprits, one: Compared) -> list[float] | None:
    """The ratio that the answer makes of a figure here, and its 95% interval."""
    effect, _ = effects_of(found.answer, found.question.factors, found.pairs, [one])
    if effect is None:
        return None
    ends = sorted(ratio(share * one.change) for share in (effect.low, effect.high))
    return [ratio(effect.share * one.change), *ends]


def reproducer(found: Culprits) -> list[str]:
    """Two commands: without the changes, and with them."""
    names = [one.name for one in found.changes]
    return [_command(found, switched) for switched in ((), names)]


def _command(found: Culprits, switched: tuple[str, ...] | list[str]) -> str:
    asked = state(found.changes, switched)
    words = []
    for name, value in asked.exports.items():
        words += ['-u', name] if value is None else [f'{name}={value}']
    mode = ['--mode', found.question.mode] if found.question.mode else []
    facts = found.question.figures[0].after.facts
    if facts.get('by') == 'spack':
        mode += ['--with', with_package(facts.get('spec', '').partition('@')[0])]
    options = [*mode, *found.question.place, *asked.options, *found.question.options]
    return shlex.join([*(['env', *words] if words else []), './assay', 'run', *options])


def remedies(changes: list[Factor]) -> Iterator[str]:
    """How to live without changes, a sentence each."""
    for change in changes:
        if line := set_in_file(change.name):
            name, path = change.name.partition(' in ')[0], line[1]
            is_set = change.before != '-'
            yield (
                f'set {name} = {change.before} in {path}'
                if is_set
                else f'remove {name} from {path}'
            )
            continue
        for name, value in change.needs[0].items():
            match name:
                case _ if name.startswith('limit of '):
                    yield f'ulimit -S {value}'
                case _ if name.startswith(OF_LIBRARIES):
                    yield str(value)
                case _ if name == FLAGS:
                    yield f'build with {value}'
                case _ if name == ENVIRONMENT:
                    yield f'run with {value}, which has {change.before}'
                case _ if name == SOURCES:
                    yield f'take the sources of {change.before}'
                case _ if name == COMMIT:
                    yield f'build commit {change.before} of {change.application}'
                case _ if name == SPECS:
                    yield f'have Spack choose {value}'
                case _ if name == NODES:
                    yield f'run on {value}; `assay screen` looks at the others'
                case _ if name.startswith('module '):
                    yield f'load {value}' if value else f'unload {change.after}'
                case _ if value is None:
                    yield f'unset {name}'
                case _:
                    yield f'export {name}={shlex.quote(value)}'


def culprits_json(found: Culprits) -> str:
    """JSON, for a ticket."""
    return json_text(_culprits(found), indent=2)


def _culprits(found: Culprits) -> dict[str, Any]:
    asked = found.question
    return {
        'verdict': found.answer.kind if found.is_sure else 'undecided',
        'conclusion': culprit_conclusion(found),
        'probability': found.answer.probability,
        'changes': [_change(one) for one in found.changes],
        'answers': [
            {
                'kind': one.kind,
                'changes': [asked.factors[number].name for number in one.changes],
                'probability': one.probability,
            }
            for one in found.answers[:MOST]
        ],
        'share_here': found.share_here if found.answer.kind == 'none' else None,
        'effect': vars(found.effect) if found.effect else None,
        'not_explained': vars(found.left) if found.left else None,
        'figures': [_figure(found, one) for one in asked.figures],
        'pairs': [
            {**vars(pair), 'value': pair.value(asked.figures), 'why': pair.why or None}
            for pair in found.pairs
        ],
        'looked_at': [_change(one) for one in asked.factors],
        'not_tried': [vars(one) for one in asked.untried],
        'not_as_before_and_after': found.strange,
        'runs_before': asked.before,
        'runs_after': asked.after,
        'reproduce': reproducer(found) if found.changes else [],
        'without_it': [*remedies(found.changes)],
        'stopped': found.stopped or None,
        'steps': _culprits(found.steps) if found.steps else None,
        'no_steps': found.no_steps or None,
    }


def _change(one: Factor) -> dict[str, Any]:
    return {'name': one.name, 'before': one.before, 'after': one.after}


def _figure(found: Culprits, one: Compared) -> dict[str, Any]:
    return {
        'figure': one.figure.figure,
        'case': one.figure.test_case,
        'ratio': ratio(one.change),
        'made_here': _made(found, one),
    }
