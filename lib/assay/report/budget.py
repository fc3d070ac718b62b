"""What is said of a choice for a budget: before the run, and in its last line."""

from __future__ import annotations

from assay import say
from assay.results.budget import BudgetEntry, Choice, advice
from assay.spelling import many

#: Of what is left out, so much is named.
MOST = 5


def tell(choice: Choice) -> None:
    """Say what is chosen, what is left out, and what to do."""
    of = choice.cases + choice.cases_left_out
    say(
        f'--budget: {choice.cases} of {many(of, "case")} chosen, expected to take '
        f'{choice.expected:.0f} s of {choice.budget:.0f} s, one after the other'
    )
    if choice.assumed:
        say(
            f'no time is known of {many(choice.assumed, "case")} of them: that of others is '
            'assumed, of the same check where there are any'
        )
    if choice.too_long:
        say(
            'never chosen, since each, with what is built for it, takes longer than the budget: '
            f'{many(len(choice.too_long), "check")}; '
            f'{advice(max(choice.too_long.values()), "each of them")}:'
        )
    for one, seconds in [*choice.too_long.items()][:MOST]:
        assumed = ', as is assumed' if one.assumed else ''
        say(f'    {seconds:.0f} s{assumed}: {one.name} ({many(len(one.cases), "case")})')
    if waiting := [one for one in choice.left_out if one not in choice.too_long]:
        cases = sum(len(one.cases) for one in waiting)
        say(f'left out for now: {many(cases, "case")}; those longest not run:')
        for one in waiting[:MOST]:
            say(f'    {_since(one)}: {one.name} ({many(len(one.cases), "case")})')
        say('the next runs with a budget begin with these; `assay run` without --budget takes all')


def told(choice: Choice) -> str:
    """What the last line of a run says of it."""
    of = choice.cases + choice.cases_left_out
    return (
        f' (budget {choice.budget:.0f} s); only {choice.cases} of the {of} selected cases were '
        'chosen'
        if choice.left_out
        else f' (budget {choice.budget:.0f} s); all selected cases were chosen'
    )


def _since(one: BudgetEntry) -> str:
    return 'never run' if one.last is None else f'{one.last.astimezone():%Y-%m-%d %H:%M}'
