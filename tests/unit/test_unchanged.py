"""Which runs and which figures count as "nothing changed": each clause by itself."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from assay.results.figure_series import learn_past, measured_figures
from assay.results.history import StoredRun
from assay.results.store import BEGINNING
from assay.results.unchanged import mostly_good_runs, unchanged_figures, usual_runs
from assay.results.verdict import Summary
from tables import FIRST, RING, figures

OLD, NEW = 'mpich@4.3.2', 'mpich@5.0.1'


def run(begun=FIRST, **words):
    return StoredRun('run0', begun, begun, Summary(system='toy', **words))


def taught(*rows):
    """The values that teach, of a row a run: each passed, if it says nothing else."""
    passed = ({'value': 100.0 + day, 'result': 'pass'} | row for day, row in enumerate(rows))
    table = figures(*passed)
    (one,) = unchanged_figures(measured_figures(table).values(), mostly_good_runs(table))
    return one.values.to_list()


def told(**facts):
    return {'provenance': json.dumps(facts)}


@pytest.mark.parametrize('words', [{}, {'label': 'of a user'}, {'mode': 'smoke'}, {'failed': 1}])
def test_a_run_that_shows_how_the_machine_is_counts(words):
    assert usual_runs([run(**words)])


@pytest.mark.parametrize('purpose', ['compare', 'accept', 'init', 'screen', 'campaign', 'mine'])
def test_a_run_with_a_purpose_of_its_own_does_not(purpose):
    assert not usual_runs([run(purpose=purpose)])


def test_nor_one_that_cannot_be_read_or_of_which_nobody_knows_when_it_was():
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    assert not usual_runs([run(problem='damaged'), run(begun=tomorrow), run(begun=BEGINNING)])


def case(number, result):
    """Another case of the first run."""
    return {'run': 'run0', 'begun': FIRST, 'case': f'Ring {number}', 'result': result, 'value': 1.0}


@pytest.mark.parametrize(('failed', 'counts'), [(1, True), (2, False)])
def test_a_run_in_which_more_failed_than_passed_does_not(failed, counts):
    table = figures({'result': 'pass', 'value': 1.0}, *(case(n, 'fail') for n in range(failed)))
    assert (mostly_good_runs(table) == ['run0']) is counts
    ring = next(unchanged_figures([measured_figures(table)[RING]], mostly_good_runs(table)))
    assert len(ring.values) == counts


def test_what_was_stopped_with_its_run_is_no_failure():
    table = figures({'result': 'pass', 'value': 1.0}, case(1, 'abort'), case(2, 'abort'))
    assert mostly_good_runs(table) == ['run0']


@pytest.mark.parametrize('of_it', [{'result': 'fail'}, {'verdict': 'fail'}, {'result': None}])
def test_what_failed_does_not_count(of_it):
    assert taught({}, {'value': 300.0} | of_it, {}) == [100, 102]


def test_what_others_disturbed_does_not_count():
    assert taught({}, {'disturbances': 'others took 30% of CPU 1'}, {}) == [100, 102]


@pytest.mark.parametrize(
    ('usually', 'once'),
    [
        ({'mpi': OLD}, {'mpi': NEW}),
        ({'mpi': OLD, 'flags': '-O2'}, {'mpi': OLD, 'flags': '-O0'}),
        ({'mpi': OLD, 'target': 'zen4'}, {'mpi': OLD, 'target': 'zen2'}),
        ({'mpi': OLD}, {'mpi': OLD, 'OMPI_MCA_btl_tcp_sndbuf': '1024'}),
        ({'mpi': OLD, 'UCX_TLS': 'tcp'}, {'mpi': OLD}),
    ],
)
def test_what_was_measured_with_something_else_than_most_does_not_count(usually, once):
    assert taught(told(**usually), told(**once), told(**usually)) == [100, 102]


def test_what_was_measured_with_is_looked_at_fact_by_fact():
    """A commit that is another one each time says nothing, nor do values that tell nothing."""
    rows = [told(mpi=OLD, suite_commit=str(day), UCX_LOG_FILE=str(day)) for day in range(3)]
    assert taught(*rows, {}) == [100, 101, 102, 103]


def test_of_two_that_are_as_frequent_both_count_and_a_step_between_them_is_looked_for():
    rows = [
        {'value': value + day % 3} | told(mpi=mpi)
        for value, mpi in ((100.0, OLD), (200.0, NEW))
        for day in range(20)
    ]
    table = figures(*({'result': 'pass'} | row for row in rows))
    (one,) = unchanged_figures(measured_figures(table).values(), mostly_good_runs(table))
    assert len(one.values) == 40
    assert learn_past([one]).unchanged[RING].values.min() == 200
