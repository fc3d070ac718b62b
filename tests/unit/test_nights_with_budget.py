"""Nights that run a part of what is selected: nothing left out is worse, or well, or forgotten."""

import json

import pytest

from assay import one_run
from assay.nights.outcome import BUDGET, KnownVerdict, NightOutcome, with_left_out
from assay.results.budget import fill_budget
from assay.results.case_history import CaseHistory
from assay.results.history import load_history
from assay.running import allocation, reframe_options
from assay.running.selection import Listed
from budgets import BUILD_OF, DAY, case, ran
from nightly import failing, good_nights, night_site, nothing, remembered, slower, spend
from sessions import FABRICS

site = pytest.fixture(night_site)

#: Seconds for two of the three cases, which take 10 s each.
TWO = 28.0


@pytest.fixture
def short(site, monkeypatch):
    """A site whose cases take 10 s, as it is known of them."""
    site.command, site.there, site.then = (), [*FABRICS], nothing
    names = {one: f'Ring %fabric={one} %layout=packed %scale=1_node' for one in FABRICS}

    def change(name, number, case, values):
        if case['fabric'] not in site.there:
            return False
        case |= {'time_setup': 0, 'time_compile': 0, 'time_run': site.seconds[case['fabric']]}
        case |= {'time_sanity': 0, 'time_performance': 0}
        return site.then(name, number, case, values)

    def listed(command, options, environment):
        return [Listed(names[one], 'toy:node', 'openmpi') for one in site.there]

    made = site.report

    def report(name, excluded=(), days=1.2, text=None):
        return made(name, excluded, days, text)  # an hour ago, and not in the future

    site.report = report
    site.change, site.seconds = change, dict.fromkeys(FABRICS, 10)
    site.names = {one: f'{name} @toy:node+openmpi' for one, name in names.items()}
    monkeypatch.setattr(one_run, 'list_cases', listed)
    monkeypatch.setattr(one_run, 'load_history', lambda: load_history(site.database))
    return site


def fabrics(site):
    """Of the cases of the newest run."""
    history = load_history(site.database)
    return {*history.figures(history.runs[-1:])['fabric'].cast(str).to_list()}


def night(site, budget=TWO, **others):
    return spend(site, budget=budget, **others)


def test_a_week_of_nights_runs_everything_and_nothing_left_out_is_worse(short, capsys):
    good_nights(short)
    ran = []
    for _ in range(7):
        assert night(short) == (0, None)
        ran.append(fabrics(short))
    assert all(len(one) == 2 for one in ran)
    assert all(ran[at] | ran[at + 1] == {*FABRICS} for at in range(6))
    out, err = capsys.readouterr()
    assert 'only 2 of the 3 selected cases were chosen' in out
    assert 'left out for now: 1 case; those longest not run:' in err


def test_the_time_left_of_the_one_job_is_a_budget(short, monkeypatch):
    good_nights(short)
    short.is_one_job = True
    now = allocation.Standing(True, ('n1',), left=TWO)
    monkeypatch.setattr(allocation, 'ask_standing', lambda job: now)
    monkeypatch.setattr(one_run.turn, 'is_needed', lambda site: True)
    assert spend(short) == (0, None)
    told = json.loads((short.own.folder / 'times.json').read_text())
    assert len(told[allocation.FIRST]) == 2


def test_others_are_waited_for_no_longer_than_the_budget_leaves(short):
    good_nights(short)
    assert night(short) == (0, None)
    assert 0 <= float(short.own.patience.read_text()) <= TWO - 20
    assert spend(short) == (0, None)
    assert not short.own.patience.exists()


def test_what_failed_is_no_better_because_it_was_left_out(short):
    good_nights(short)
    short.then = failing('shm')
    code, told = night(short)
    assert code == 1 and 'FAILED' in told and 'shm' in fabrics(short)
    assert remembered().told.culprits == (short.names['shm'],)

    short.then = nothing
    good = len(remembered().good)
    assert night(short) == (1, None)
    assert 'shm' not in fabrics(short)
    assert remembered().told.word == 'FAILED' and len(remembered().good) == good + 1

    code, told = night(short)
    assert 'shm' in fabrics(short)
    assert code == 0 and told.splitlines()[0] == 'PASSED: Assay: toy (smoke) PASSED, was FAILED'


def test_another_failure_leaves_the_one_that_was_left_out(short):
    good_nights(short)
    short.then = failing('shm')
    night(short)
    short.then = failing('tcp')
    code, told = night(short)
    assert code == 1 and 'no longer:' not in told
    assert remembered().told.culprits == tuple(sorted(short.names[one] for one in ('shm', 'tcp')))


def test_what_is_worse_is_measured_again_alone_and_what_was_left_out_stays_so(short):
    good_nights(short)
    short.then = slower('shm')
    short.ran.clear()
    code, told = night(short)
    assert code == 1 and 'latency of Ring %fabric=shm' in told
    assert short.ran == [1, 2, 2]


def test_what_people_know_to_be_worse_is_run_before_others_of_its_age(short):
    short.seconds |= {'ofi-tcp': 7, 'shm': 7, 'tcp': 15}
    good_nights(short)
    short.then = slower('shm')
    assert night(short)[0] == 1
    short.then = nothing
    code, told = night(short)
    assert (code, fabrics(short)) == (0, {'tcp', 'shm'})
    assert told.startswith('PASSED: Assay: toy (smoke) PASSED, was WORSE')


def test_a_case_that_is_none_any_more_is_told(short):
    good_nights(short)
    short.there.remove('tcp')
    code, told = night(short)
    assert code == 1 and f'{short.names["tcp"]}: was run in good nights, and not now' in told


def test_nights_that_have_nothing_in_common(short, capsys):
    short.there = ['shm']
    assert night(short)[0] == 0
    short.there = ['tcp', 'ofi-tcp', 'shm']
    assert night(short)[0] == 0
    assert 'no good night ran any of this' in capsys.readouterr().err
    assert fabrics(short) == {'tcp', 'ofi-tcp'}


def test_what_no_night_can_run_is_told(short):
    good_nights(short)
    night(short)
    night(short)
    short.seconds['tcp'] = 500
    for _ in range(6):
        code, told = spend(short)
    code, told = night(short)
    assert code == 1 and ': takes longer than the budget, so no night runs it' in told
    assert '--budget 13m is enough for all of them in 20 nights' in told
    assert fabrics(short) == {'shm', 'ofi-tcp'}
    assert night(short) == (1, None)


def test_a_budget_that_may_leave_cases_out_for_ever_is_told(short):
    good_nights(short)
    night(short)
    night(short)
    code, told = night(short, budget=13)
    assert code == 1 and f'{BUDGET}: it is so short' in told
    assert '--budget 2m is enough for all of them in 20 nights' in told
    assert night(short, budget=120)[0] == 0


def test_a_case_whose_build_no_night_has_time_for_is_told(short, monkeypatch):
    """No other case needs it, so it would never be there, and the case would wait for ever."""
    good_nights(short)
    plain = one_run.list_cases

    def listed(command, options, environment):
        needs = frozenset({BUILD_OF['mpich']})
        return [*plain(command, options, environment), Listed('New', 'toy:node', 'mpich', needs)]

    monkeypatch.setattr(one_run, 'list_cases', listed)
    code, told = night(short)
    assert code == 1 and 'New: is assumed to take longer than the budget, so no night runs' in told


def test_what_was_left_out_is_skipped_in_junit(short, tmp_path):
    good_nights(short)
    file = tmp_path / 'junit.xml'
    given = reframe_options.read_for('a night', [f'--report-junit={file}'])
    night(short, given=given)
    assert file.read_text().count('left out by --budget') == 1
    short.then = failing('shm')
    night(short, given=given)
    night(short, given=given)
    text = file.read_text()
    assert text.count('left out by --budget') == 1 and text.count('<error') == 1


@pytest.fixture
def half():
    """A choice of a case, and not of another with another MPI."""
    run, other = (
        case(check, environment=name, needs=[BUILD_OF[name]])
        for check, name in (('Ring', 'openmpi'), ('Halo', 'mpich'))
    )
    known = {run.title: ran(9), other.title: ran(1)}
    known |= {
        name: CaseHistory(DAY, None, [1.0, 1.0], ['good', 'good']) for name in BUILD_OF.values()
    }
    choice = fill_budget([run, other], known, 20)
    assert choice.titles_left_out == {other.title}
    return run, other, choice


def test_a_build_that_failed_is_no_better_because_nothing_needed_it(half):
    _, _, choice = half
    mpich, openmpi = ('BuildSources @toy:node+mpich', 'BuildSources @toy:node+openmpi')
    before = KnownVerdict(word='FAILED', culprits=('12 case(s)', mpich, openmpi))
    outcome = with_left_out(NightOutcome('PASSED'), before, choice)
    assert (outcome.word, outcome.culprits) == ('FAILED', (mpich,))


def test_what_was_bad_and_is_disturbed_is_not_forgotten_for_what_was_left_out(half):
    run, other, choice = half
    before = KnownVerdict(word='FAILED', culprits=tuple(sorted((run.title, other.title))))
    outcome = with_left_out(NightOutcome('DISTURBED'), before, choice)
    assert (outcome.word, outcome.culprits) == ('FAILED', before.culprits)
    assert with_left_out(NightOutcome('PASSED'), before, choice).culprits == (other.title,)
