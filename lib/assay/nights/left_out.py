"""Nights with a budget: what was left out is neither worse nor well, and is not forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from assay.nights.folder import KEPT, Told
from assay.nights.outcome import Outcome, Word, worse_by
from assay.results.budget import Choice, advice

#: The culprit where a budget is too short for what it has to choose from.
BUDGET = 'the budget'

#: The words of nights that are reported to people, the worst first.
_BAD: tuple[Word, ...] = ('FAILED', 'WORSE')


def with_left_out(outcome: Outcome, before: Told, choice: Choice) -> Outcome:
    """What came of a night with a budget, and what the budget kept from being seen.

    A fault that people know of stays although it was left out. A case that no night runs is
    reported.

    :param before: what people know.
    """
    known = before.culprits if before.word in _BAD else ()
    bad = [one for one in known if _is_left_out(one, choice)]
    told = dict.fromkeys(bad, 'was bad in an earlier night, and was left out of this one')
    enough = advice(choice.enough(KEPT), f'all of them in {KEPT} nights')
    for one in choice.too_long:
        takes = 'is assumed to take' if one.assumed else 'takes'
        told[one.name] = f'{takes} longer than the budget, so no night runs it; {enough}'
    if not choice.too_long and (choice.turns or KEPT + 1) > KEPT:
        told[BUDGET] = f'it is so short that some cases may have no turn in {KEPT} nights; {enough}'
    if not told:
        return outcome
    if not outcome.is_evidence:  # which alone would leave what people know as it is
        others = [one for one in known if one not in told]
        told |= dict.fromkeys(others, 'was bad in an earlier night, and others disturbed this one')
        bad += others
    bad_words = [one for one in (outcome.word, *([before.word] if bad else [])) if one in _BAD]
    more = worse_by(told)
    is_bad = outcome.word in _BAD
    return Outcome(
        min(bad_words, key=_BAD.index, default='WORSE'),
        tuple(sorted({*(outcome.culprits if is_bad else ()), *more.culprits})),
        (*(outcome.sentences if is_bad else ()), *more.sentences),
    )


def _is_left_out(culprit: str, choice: Choice) -> bool:
    """Whether a culprit is a case that was left out, or what is built for such cases alone."""
    if case_of(culprit) in choice.titles_left_out:
        return True
    some, others = (
        frozenset[str]().union(*(one.needs for one in entries))
        for entries in (choice.left_out, choice.chosen)
    )
    # `Build ~toy:node+mpich`, which as a case is `Build @toy:node+mpich`.
    built = [name.replace(' ~', ' @') for name in some - others]
    return any(culprit == one or culprit.startswith((f'{one}:', f'{one}+')) for one in built)


def suspects(told: Told) -> set[str]:
    """The cases that people know to be bad."""
    return {case_of(one) for one in told.culprits if told.word in _BAD}


def gone(good: Iterable[str], choice: Choice) -> set[str]:
    """Cases that were run in good nights, and that no night can choose any more."""
    chosen = {case.title for one in choice.chosen for case in one.cases}
    return {*good} - chosen - choice.titles_left_out


def case_of(culprit: str) -> str:
    """The case that a culprit is, or whose figure it is."""
    return culprit.rpartition(' of ')[2]
