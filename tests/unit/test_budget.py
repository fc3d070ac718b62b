"""What is run for a budget: what says most, within the time, and nothing is left out for ever."""

import math
import random
import re
from datetime import timedelta

import pytest

from assay import AssayError
from assay.one_run import options_for_choice
from assay.report import terminal
from assay.results.budget import BUILD, BUILT, BY_AGE, CASE, advice, fill_budget
from assay.results.case_history import CaseHistory
from assay.running.selection import leaving_out
from assay.running.session_extras import assert_ours_are_left, cases_left_out
from budgets import BUILD_OF, DAY, case, ran


def names(entries):
    return [one.name.partition(' %layout')[0] for one in entries]


def test_what_never_ran_comes_first_then_what_ran_longest_ago():
    cases = [case('Ring', one) for one in ('a', 'b', 'c', 'd')]
    ages = {'a': 1, 'b': 9, 'c': 5}
    known = {one.title: ran(ages[name]) for name, one in zip('abc', cases, strict=False)}
    choice = fill_budget(cases, known, budget=30 / BY_AGE)
    assert names(choice.chosen)[:3] == [f'Ring %fabric={one}' for one in 'dbc']
    assert names(choice.left_out) == []
    assert names(fill_budget(cases, known, budget=25).left_out) == [
        'Ring %fabric=c',
        'Ring %fabric=a',
    ]


def test_of_the_equally_old_each_part_is_covered_first():
    """Sixteen cases of Ring would come before the only ones of others by their names."""
    cases = [case('Ring', f'a{number}') for number in range(16)]
    cases += [case('Stream', 'a0'), case('Zero', 'a0', 'mpich')]
    known = {one.title: ran() for one in cases}
    found = names(fill_budget(cases, known, budget=10 * 18 / BY_AGE).chosen)
    assert {one.partition(' ')[0] for one in found[:3]} == {'Ring', 'Stream', 'Zero'}
    short = fill_budget(cases, known, budget=40)
    assert {one.partition(' ')[0] for one in names(short.chosen)} == {'Ring', 'Stream', 'Zero'}


@pytest.mark.parametrize(
    ('endings', 'figures', 'comes'),
    [
        (['good', 'failed'], {}, True),
        (['good', 'disturbed'], {}, True),
        (['failed', 'good', 'good'], {}, True),
        (['good'] * 3, {'latency': [1.0, 1.3, 0.7, 1.2]}, True),
        (['good'] * 3, {'latency': [1.0, 1.01, 0.99, 1.0]}, False),
        (['good'] * 3, {}, False),
    ],
)
def test_trouble_comes_before_age_in_the_rest(endings, figures, comes):
    """It ran last, so by age it would be the last."""
    cases = [case('Ring', f'a{number}') for number in range(9)]
    known = {one.title: ran(9 - number) for number, one in enumerate(cases)}
    known[cases[-1].title] = ran(0, endings=endings, figures=figures)
    assert (cases[-1].name in {one.name for one in fill_budget(cases, known, 80).chosen}) == comes


def test_what_is_worst_comes_first_among_what_is_in_trouble():
    cases = [case('Ring', f'a{number}') for number in range(9)]
    known = {one.title: ran(9 - number) for number, one in enumerate(cases)}
    known[cases[7].title] = ran(1, endings=['disturbed'])
    known[cases[8].title] = ran(0, endings=['failed'])
    assert names(fill_budget(cases, known, 40).chosen)[-1] == 'Ring %fabric=a8'
    suspect = fill_budget(cases, known, 40, suspects=[cases[7].title])
    assert names(suspect.chosen)[-1] == 'Ring %fabric=a7'


def test_what_nothing_covers_comes_before_age_in_the_rest():
    """The only case of Stream ran last."""
    cases = [*(case('Ring', f'a{number}') for number in range(9)), case('Stream', 'a0')]
    known = {one.title: ran(9 - number) for number, one in enumerate(cases)}
    assert 'Stream %fabric=a0' in names(fill_budget(cases, known, 80).chosen)


def test_a_check_is_chosen_with_all_its_environments_and_counted_so():
    both = [case('Ring', environment=one) for one in ('openmpi', 'mpich')]
    alone = case('Stream')
    known = {one.title: ran(2, 10) for one in both} | {alone.title: ran(1, 10)}
    choice = fill_budget([*both, alone], known, budget=25)
    assert (names(choice.chosen), choice.cases, choice.expected) == (['Ring %fabric=shm'], 2, 20)
    assert choice.titles_left_out == {alone.title}


def test_how_long_a_case_takes_is_known_or_assumed():
    cases = [case('Ring', 'a'), case('Ring', 'b'), case('Halo', 'a')]
    known = {cases[0].title: CaseHistory(DAY, None, [40.0, 50.0, 400.0], ['good'])}
    choice = fill_budget(cases, known, budget=3600)
    assert [one.seconds for one in sorted(choice.chosen, key=lambda one: one.name)] == [50] * 3
    assert choice.assumed == 2
    assert fill_budget(cases, {}, budget=3600).expected == 3 * CASE
    assert fill_budget(cases[:1], known, budget=3600, times=3).expected == 150


def test_a_build_counts_once_and_fully_only_the_first_time():
    cases = [case('Ring', one, needs=[BUILD_OF['openmpi']]) for one in ('a', 'b')]
    known = {one.title: ran() for one in cases}
    assert fill_budget(cases, known, 3600).expected == 20 + BUILD
    # It was built by the only run that needed it; later ones use that.
    for seconds, expected in ([90], BUILT), ([90, 2], 2), ([90, 80, 85], 85):
        known[BUILD_OF['openmpi']] = CaseHistory(DAY, None, [*map(float, seconds)], ['good'])
        assert fill_budget(cases, known, 3600).expected == 20 + expected


def test_nothing_selected_and_nothing_that_fits_are_errors():
    with pytest.raises(AssayError, match='no case is selected'):
        fill_budget([], {}, 100)
    one = case('Ring', needs=[BUILD_OF['mpich']])
    with pytest.raises(AssayError, match=r'nothing would run in 50 s.*less than 63 s.*more time'):
        fill_budget([one], {}, 50, beside=3)


def test_what_does_not_fit_is_passed_over_and_named():
    long, short = case('Long'), case('Short')
    known = {long.title: ran(9, 500), short.title: ran(1, 10)}
    choice = fill_budget([long, short], known, 100)
    assert (names(choice.chosen), choice.left_out) == (['Short %fabric=shm'], (*choice.too_long,))
    # It is the longest not run, and would for ever be; what takes nearly all has its turn.
    wide = case('Wide')
    choice = fill_budget([long, short, wide], known | {wide.title: ran(5, 95)}, 100)
    assert names(choice.chosen) == ['Wide %fabric=shm']


def test_what_fits_once_all_is_built_is_not_called_too_long():
    built, other = BUILD_OF['openmpi'], BUILD_OF['mpich']
    first, second = case('Ring', needs=[built]), case('Halo', environment='mpich', needs=[other])
    known = {built: CaseHistory(DAY, None, [1.0, 1.0], ['good'])}
    budget = CASE + BUILD - 1
    quick = case('Quick', environment='mpich', needs=[other])
    known |= {one.title: ran(9, CASE) for one in (first, second)} | {quick.title: ran(1, 5)}
    choice = fill_budget([first, second, quick], known, budget)
    assert (names(choice.left_out)[0], choice.too_long) == ('Halo %fabric=shm', {})
    # And so it is: the build is made for the quick one, and then used for this.
    known |= {first.title: ran(0, CASE), quick.title: ran(0, 5)}
    known[other] = CaseHistory(DAY, None, [BUILD], ['good'])
    assert names(fill_budget([first, second, quick], known, budget).chosen)[0] == 'Halo %fabric=shm'


def test_what_no_build_is_ever_made_for_is_named_with_the_budget_that_it_takes():
    """Where the build alone does not fit, it is made on no night, and its case waits for ever."""
    built, other = BUILD_OF['openmpi'], BUILD_OF['mpich']
    first, second = case('Ring', needs=[built]), case('Halo', environment='mpich', needs=[other])
    known = {built: CaseHistory(DAY, None, [1.0, 1.0], ['good'])}
    choice = fill_budget([first, second], known, CASE + BUILD - 1, beside=3)
    assert {one.name: seconds for one, seconds in choice.too_long.items()} == {
        second.name: 3 + CASE + BUILD
    }
    assert choice.turns is None
    assert not fill_budget([first, second], known, 3 + CASE + BUILD, beside=3).too_long
    # A build that takes as long each night is known to, and is no less in the way.
    known |= {other: CaseHistory(DAY, None, [90.0, 90.0], ['failed', 'failed'])}
    assert [*fill_budget([first, second], known, 100).too_long.values()] == [CASE + 90]


def test_the_budget_that_is_enough():
    assert advice(61, 'all') == '--budget 3m is enough for all'
    assert advice(3600, 'all') == '--budget 1h1m is enough for all'
    assert advice(7140, 'all') == '--budget 2h is enough for all'


def made_up(seed, most_seconds=60.0):
    """A suite as there may be one: checks over fabrics, with two MPIs, of many lengths."""
    chance = random.Random(seed)
    cases, seconds = [], {}
    for check in ('Ring', 'Halo', 'PointToPoint', 'Collectives', 'HPL', 'MiniFE', 'Clock'):
        for fabric in chance.sample(['shm', 'tcp', 'ucx-shm', 'ucx-tcp', 'ofi-tcp'], 4):
            for environment in chance.sample(['openmpi', 'mpich'], chance.randint(1, 2)):
                one = case(check, fabric, environment, needs=[BUILD_OF[environment]])
                cases.append(one)
                seconds[one.title] = chance.uniform(1, most_seconds / 2)
    return cases, seconds, chance


@pytest.mark.parametrize('seed', range(20))
def test_the_time_is_kept_and_the_choice_is_the_same_each_time(seed):
    cases, seconds, chance = made_up(seed)
    known = {
        one.title: ran(
            chance.randint(0, 9),
            seconds[one.title],
            [chance.choice(['good', 'good', 'failed', 'disturbed'])],
        )
        for one in chance.sample(cases, len(cases) * 3 // 4)
    }
    for budget in (130, 400, 1200, 4000):
        choice = fill_budget(cases, known, budget, beside=4)
        assert choice.expected <= budget
        names_chosen = {one.name for one in choice.chosen}
        ours = [one for one in cases if one.name in names_chosen]
        assert choice.cases == len(ours) and choice.cases + choice.cases_left_out == len(cases)
        chance.shuffle(cases)
        again = fill_budget(cases, dict(sorted(known.items())), budget, beside=4)
        assert [one.name for one in again.chosen] == [one.name for one in choice.chosen]
        assert math.isclose(again.expected, choice.expected)


def spent(cases, known, seconds, chance, choice, when, failing):
    """After a night: of what was chosen it is known when it ran, how long, and how it ended."""
    for title in (member.title for one in choice.chosen for member in one.cases):
        one = known.setdefault(title, CaseHistory())
        ending = 'failed' if failing(chance) else 'good'
        one.last, one.seconds = when, [*one.seconds, seconds[title]][-5:]
        one.endings = [*one.endings, ending][-3:]


FAILING = {
    'none': lambda chance: False,
    'some': lambda chance: chance.random() < 0.3,
    'all': lambda chance: True,
}


@pytest.mark.parametrize('failing', FAILING)
@pytest.mark.parametrize('seed', range(6))
def test_nothing_starves(seed, failing):
    """In any such number of nights everything is run, whichever cases fail in between.

    The number is that which the sum of all durations fills, with the share that goes by age. What
    is left of the share each night is less than the longest takes.
    """
    cases, seconds, chance = made_up(seed)
    of_entry = {}
    for one in cases:
        of_entry[one.name] = of_entry.get(one.name, 0) + seconds[one.title]
    known = {name: CaseHistory(DAY, None, [1.0, 1.0], ['good']) for name in BUILD_OF.values()}
    for one in chance.sample(cases, len(cases) // 2):
        known[one.title] = ran(chance.randint(0, 30), seconds[one.title])
    budget = 300.0
    # Known by now: what was never run is assumed to take as long as others.
    total, longest = sum(of_entry.values()), max(of_entry.values())
    nights = math.ceil(total / (BY_AGE * budget - longest - 2))
    assert nights < 8
    first, runs = None, []
    for night in range(6 * nights):
        choice = fill_budget(cases, known, budget)
        assert choice.expected <= budget
        if {one.title for one in cases} <= known.keys() and first is None:
            first = night
            assert choice.turns == nights
            assert fill_budget(cases, known, choice.seconds_needed(nights) + 1).turns == nights
            assert fill_budget(cases, known, choice.seconds_needed(nights) - 9).turns == nights + 1
        runs.append({one.name for one in choice.chosen})
        when = DAY + timedelta(days=night)
        spent(cases, known, seconds, chance, choice, when, FAILING[failing])
    assert first is not None and first <= 2 * nights
    for start in range(first, len(runs) - nights + 1):
        assert set().union(*runs[start : start + nights]) == of_entry.keys()


def test_a_day_in_the_future_keeps_nothing_from_its_turn():
    """By a wrong clock it ran in a year; and where all did, they take turns all the same."""
    cases = [case('Ring', f'a{number}') for number in range(4)]
    known = {one.title: ran(1) for one in cases}
    future = DAY + timedelta(days=365)
    known[cases[3].title] = CaseHistory(None, future, [10.0], ['good'])
    assert names(fill_budget(cases, known, 12).chosen) == ['Ring %fabric=a3']
    known = {
        one.title: CaseHistory(None, future + timedelta(days=-number), [10.0], ['good'])
        for number, one in enumerate(cases)
    }
    assert names(fill_budget(cases, known, 12).chosen) == ['Ring %fabric=a3']


def test_what_is_stored_of_it():
    cases = [case('Ring', f'a{number}') for number in range(9)]
    (*names_left_out, stored) = options_for_choice(fill_budget(cases, {}, budget=3 * CASE))
    assert len(names_left_out) == 6 and all(one.startswith('--exclude=') for one in names_left_out)
    name, _, value = stored.removeprefix('--session-extras=').partition('=')
    assert cases_left_out({name: value}) == 6
    for damaged in ('', '-1', '1e3', None, 'x', '٣'):
        assert cases_left_out({name: damaged}) == 0
    with pytest.raises(AssayError, match='only --budget leaves cases out'):
        assert_ours_are_left(f'reason=x,{name}=3')


def test_what_is_left_out_is_few_expressions_that_mean_each_name():
    names_of_many = [f'Ring %fabric=a{number} %layout=+({number})' for number in range(1000)]
    patterns = [one.partition('=')[2] for one in leaving_out(names_of_many)]
    assert len(patterns) <= 256
    for name in names_of_many:
        shown = name.replace(' ', '')
        assert sum(bool(re.search(one, shown)) for one in patterns) == 1
        assert not any(re.search(one, f'{shown}0') for one in patterns)
    assert leaving_out([]) == []


def test_what_is_said_before_and_after(capsys):
    cases = [case('Ring', f'a{number}') for number in range(9)] + [case('Long')]
    known = {one.title: ran(9 - number) for number, one in enumerate(cases[1:9])}
    known[cases[-1].title] = ran(3, 900)
    choice = fill_budget(cases, known, 60)
    terminal.show_budget(choice)
    said = capsys.readouterr().err
    assert '6 of 10 cases chosen, expected to take 60 s of 60 s' in said
    assert 'no time is known of 1 case of them' in said
    assert 'takes longer than the budget: 1 check; --budget 16m is enough for each' in said
    assert '900 s: Long %fabric=shm' in said
    assert 'left out for now: 3 cases; those longest not run:' in said
    assert (
        terminal.budget_words(choice)
        == ' (budget 60 s); only 6 of the 10 selected cases were chosen'
    )
    everything = fill_budget(cases, known, 3600)
    assert terminal.budget_words(everything) == ' (budget 3600 s); all selected cases were chosen'
