"""What differs between runs: verdicts, groups, facts, and what the command says of them."""

import itertools
import json
import math
import re
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from assay import AssayError, paths
from assay.report.console import FURTHEST, as_interval, as_multiple, is_tenfold
from assay.report.diff import SCREEN
from assay.results.diff.cores import tell_distances
from assay.results.diff.difference import difference
from assay.results.figure_series import CONDITIONS
from assay.results.grouping import Member, group_changes
from assay.results.history import load_history
from assay.results.run_selectors import choose_runs
from assay.running.runs import RunFolder
from assay.witness.disturbance import DISTURBANCES
from assay.witness.profile import figures
from assay.witness.reading import read_witness
from changing import changing
from command import call
from reports import cases, identified, made_up, measured
from stored import put

NOW = datetime.now(timezone.utc).replace(microsecond=0)
FABRICS = {'shm': '1_node', 'ofi-tcp': '2_nodes', 'tcp': '2_nodes'}
HALO = paths.ROOT / 'tests' / 'golden' / 'jobs' / 'Halo'
CHECKS = ('Ring', 'PointToPoint')
FIGURES = {'latency': ('us', 'lower'), 'bandwidth': ('MB/s', 'higher')}


class Site:
    """A system whose runs are stored in a real database, a day apart, each a little different."""

    def __init__(self, database, golden_report):
        self.database, self.golden_report = database, golden_report
        self.random = np.random.default_rng(7)
        self.number = 0

    def runs(self, count, change=None, **session):
        """Store runs.

        :param change: of a case and the values of its figures by name, both of which it may change.
        """
        reports = []
        for _ in range(count):
            self.number += 1
            reports.append(self.run(change, **session))
        put(self.database, *reports)
        return reports

    def run(self, change, **session):
        report = self.golden_report('Passed')
        (run,) = report['runs']
        plain = cases(report)[1] | {'system': 'toy', 'environ': 'mpich'}
        begun = (NOW - timedelta(days=100 - self.number)).timestamp()
        identified(report, self.number, begun, **session)
        run['testcases'] = []
        for check, (fabric, scale) in itertools.product(CHECKS, FABRICS.items()):
            case = made_up(
                plain,
                begun,
                FIGURES,
                display_name=f'{check} %fabric={fabric} %scale={scale} %layout=packed',
                fabric=fabric,
                scale=scale,
                job_nodelist=['n1'] if scale == '1_node' else ['n1', 'n2'],
                built_by='cmake',
                built_mpi='mpich@4.3.2',
            )
            values = {name: 100 * math.exp(self.random.normal(0, 0.004)) for name in FIGURES}
            if change:
                change(case, values)
            run['testcases'].append(measured(case, values, FIGURES))
        return report

    def add_socket_latency(self, case, values, factor):
        """Give a case a figure of the network itself: so many times its usual value."""
        latency = 50 * math.exp(self.random.normal(0, 0.004)) * factor
        add(case, values, 'us', 'lower', socket_latency=latency)

    def sides(self, before, after):
        """Store a run for each change on either side; the difference of the sides."""
        for label, changes in (('before', before), ('after', after)):
            for change in changes:
                self.runs(1, change, label=label)
        return self.difference('before', 'after')

    def difference(self, before='last~1', after='last', **options):
        history = load_history(self.database)
        return difference(
            history, choose_runs(history, before), choose_runs(history, after), **options
        )


@pytest.fixture
def site(tmp_path, golden_report):
    return Site(tmp_path / 'perflogs' / 'results.db', golden_report)


@pytest.fixture
def told(site, monkeypatch):
    """Runs the command on the site's database: its exit code and its output.

    It is all of it, unless one screen is asked for.
    """

    def run(*options, width=200, screen=False):
        stored = load_history(site.database)
        monkeypatch.setattr('assay.results.history.load_history', lambda: stored)
        ended = call('compare-runs', *options, *([] if screen else ['--all']), COLUMNS=str(width))
        return ended.exit_code, ended.output

    return run


def add(case, values, unit='1', better='higher', **figures):
    """Give a case more figures."""
    values |= figures
    case['directions'] = case['directions'] | dict.fromkeys(figures, better)
    case['units'] = case.get('units', {}) | dict.fromkeys(figures, unit)


def failed(case, values):
    values.clear()
    case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': 'a reason'}


def busy(case, _):
    case['taken_by_others'] = ['the node was disturbed: other processes took 40%']


@changing
def slower(case, values, factor, of=lambda case: True):
    if of(case):
        values['latency'] *= factor
        values['bandwidth'] /= factor


def is_tcp_of_libfabric(case):
    return case['fabric'] == 'ofi-tcp'


def upgraded(case, values):
    """A new MPI, which is worse over one fabric."""
    case['built_mpi'] = 'mpich@5.0.1'
    slower(1.2, is_tcp_of_libfabric)(case, values)


# Stories ------------------------------------------------------------------------------------------


def test_an_upgrade_that_makes_a_fabric_worse_is_one_group(site, told, wording):
    site.runs(10)
    site.runs(1, upgraded)
    code, text = told('last~1', 'last')
    way_back, better = told('last', 'last~1')
    assert (code, way_back) == (1, 0)
    assert site.difference().counts == {'worse': 4, 'same': 8}
    wording(text, better)


def test_an_upgrade_that_changes_nothing_is_silent(site, told, wording):
    site.runs(11)
    site.runs(1, lambda case, _: case.update(built_mpi='mpich@5.0.1'))
    code, text = told('last~1', 'last')
    assert code == 0
    assert site.difference().counts == {'same': 12}
    assert 'mpich@5.0.1  12 of 12' in text
    wording(text)


def test_a_node_that_is_slow_is_named_with_what_changed_there_alone(site, told, wording):
    def quiet(case, _):
        case['ran_governor'] = 'performance'

    def slow_node(case, values):
        case |= {'ran_governor': 'performance', 'built_mpi': 'mpich@5.0.1'}
        if case['display_name'].startswith('Ring'):
            case |= {'job_nodelist': ['n3'], 'ran_governor': 'powersave'}
            slower(1.3)(case, values)

    site.runs(10, quiet)
    site.runs(1, slow_node)
    assert site.difference().counts == {'worse': 6, 'same': 6}
    wording(told('last~1', 'last')[1])


def test_counts_that_cannot_change_are_no_exceptions_of_a_group(site, told):
    @changing
    def counted(case, values, change=None):
        if change:
            change(case, values)
        add(case, values, better='exact', messages=7)

    site.runs(10, counted())
    site.runs(1, counted(upgraded))
    assert 'worse: 4 of 4 figures over ofi-tcp' in told('last~1', 'last')[1]


def test_a_machine_that_moved_is_told_and_software_is_not_blamed(site, told, wording):
    @changing
    def with_a_socket(case, values, factor):
        if case['scale'] == '2_nodes':
            site.add_socket_latency(case, values, factor)
            slower(factor)(case, values)
        elif factor > 1:
            values['latency'] *= 1.1  # which stays within a node

    site.runs(10, with_a_socket(1))
    site.runs(1, with_a_socket(1.3))
    code, text = told('last~1', 'last')
    assert code == 1
    wording(text)
    found = site.difference()
    assert {one.reason[:60] for one in found.followed} == {
        'the machine moved: a figure that the change cannot touch mov'
    }
    worse = {(one.figure.figure, one.after.fabric) for one in found.figures if one.word == 'worse'}
    assert worse == {('socket_latency', 'tcp'), ('socket_latency', 'ofi-tcp'), ('latency', 'shm')}


def test_a_machine_that_moved_manyfold_is_told_in_words(site, told, wording):
    @changing
    def with_a_socket(case, values, factor):
        if case['scale'] == '2_nodes':
            site.add_socket_latency(case, values, factor)
            slower(factor)(case, values)

    site.runs(10, with_a_socket(1))
    site.runs(1, with_a_socket(40))
    wording(told('last~1', 'last')[1])


@pytest.mark.parametrize(
    ('times', 'words'),
    [
        (40.04, '40 times as much'),
        (0.025, '0.025 times as much'),
        (1e9, f'more than {FURTHEST:g} times as much'),
        (0, f'less than {1 / FURTHEST:g} times as much'),
        (math.inf, f'more than {FURTHEST:g} times as much'),
    ],
)
def test_what_changed_beyond_tenfold_is_a_multiple(times, words):
    assert is_tenfold(times) and as_multiple(times) == words


def test_what_got_worse_although_the_machine_got_better_is_blamed(site, told):
    @changing
    def with_a_socket(case, values, socket, mpi):
        if case['scale'] == '2_nodes':
            site.add_socket_latency(case, values, socket)
            slower(mpi)(case, values)

    site.runs(10, with_a_socket(1, 1))
    site.runs(1, with_a_socket(0.8, 1.15))
    assert told('last~1', 'last')[0] == 1
    found = site.difference()
    assert {one.figure.figure for one in found.moved} == {'socket_latency'}
    worse = {one.figure.figure for one in found.figures if one.word == 'worse'}
    assert worse == {'latency', 'bandwidth'}


@changing
def of_job(case, values, folder, change=None):
    if case['display_name'].startswith('Ring'):
        case['outputdir'] = str(folder)
    if change:
        change(case, values)


def test_where_the_time_went_is_told_of_jobs_that_are_still_there(site, told, tmp_path, wording):
    site.runs(10, of_job(HALO / 'openmpi-shm'))
    site.runs(1, of_job(HALO / 'mpich-ucx-shm', upgraded))
    wording(told('last~1', 'last')[1])
    (group,) = json.loads(told('last~1', 'last', '--json')[1])['groups']
    assert sum(group['time']['before'].values()) == pytest.approx(1)
    assert group['time']['jobs'] == [1, 1]
    damaged = tmp_path / 'job'
    damaged.mkdir()
    (damaged / 'witness.json').write_text('{')
    site.runs(1, lambda case, values: (upgraded(case, values), case.update(outputdir=str(damaged))))
    code, text = told('last~2', 'last')
    assert code == 1
    assert 'where the time' not in text


def test_where_the_time_went_is_the_median_of_all_jobs_that_still_tell(
    site, told, tmp_path, wording
):
    jobs = [HALO / name for name in ('openmpi-shm', 'intelmpi-ofi-tcp', 'mpich-ucx-shm')]
    seen = {job: figures(read_witness(job / 'witness.json')) for job in jobs}
    in_transfer = sorted(jobs, key=lambda job: seen[job].transfer_share)
    site.runs(10)
    # The median is neither the first nor the last.
    for job in (in_transfer[0], in_transfer[1], in_transfer[2], tmp_path):
        site.runs(1, of_job(job), label='before')
    site.runs(1, of_job(jobs[0], upgraded), label='after')
    (group,) = json.loads(told('before', 'after', '--json')[1])['groups']
    assert group['time']['jobs'] == [3, 1]
    assert group['time']['before']['transfer'] == seen[in_transfer[1]].transfer_share
    wording(told('before', 'after')[1])


def test_where_the_time_went_is_told_of_what_followed_the_machine(site, told, wording):
    @changing
    def on_a_network(case, values, factor, job):
        values['latency'] *= factor if case['scale'] == '2_nodes' else 1
        if case['display_name'].startswith('Ring') and case['scale'] == '2_nodes':
            site.add_socket_latency(case, values, factor)
        elif case['fabric'] == 'tcp':
            case['outputdir'] = str(HALO / job)

    site.runs(10, on_a_network(1, 'openmpi-shm'))
    site.runs(1, on_a_network(1.3, 'mpich-ucx-shm'))
    wording(told('last~1', 'last')[1])


@pytest.mark.parametrize(
    ('flags', 'is_of'), [(('-O2', '-O2'), 'node'), (('-O2', '-O1'), ''), ((None, None), '')]
)
def test_what_a_compiler_can_change_is_of_the_machine_only_if_built_alike(site, flags, is_of):
    @changing
    def stream(case, values, flag):
        case['display_name'] = case['display_name'].replace('Ring', 'Stream')
        case |= dict.fromkeys(('built_compiler', 'built_target'), 'one')
        case |= {'built_flags': flag} if flag else {}
        add(case, values, 'GB/s', triad=10.0)

    for flag in flags:
        site.runs(1, stream(flag))
    found = {one.is_of for one in site.difference().figures if one.after.check == 'Stream'}
    assert found == {is_of, ''}


# The screen --------------------------------------------------------------------------------------


@pytest.mark.parametrize('width', [80, 120, 200])
def test_what_is_said_fits_on_one_screen_with_the_answer_first_and_last(site, told, width, wording):
    site.runs(10)
    site.runs(3, upgraded, label='after')
    code, text = told('last~3', 'after', screen=True, width=width)
    lines = text.splitlines()
    assert code == 1
    assert len(lines) + sum(len(line) // (width + 1) for line in lines) <= SCREEN
    wording(text)


def test_three_runs_before_and_after_decide_a_great_loss_without_a_history(site, told):
    """As the page about upgrades has it, however unsteady the machine is."""

    @changing
    def unsteady(case, values, left):
        for name in values:
            values[name] *= math.exp(site.random.normal(0, 0.2))
        if case['fabric'] == 'shm':
            values['bandwidth'] *= left

    site.runs(3, unsteady(1), label='before')
    site.runs(3, unsteady(0.2), label='after')
    code, text = told('before', 'after', screen=True)
    assert code == 1
    assert '\n  worse: bandwidth over shm of mpich: 2 of 2 figures, by ' in text
    assert re.search('^WORSE: 2 worse, 0 better, ', text, re.M)


def test_many_causes_and_figures_are_counted_beyond_the_screen(site, told):
    @changing
    def many_figures(case, values, change=lambda case, values: None):
        times = {f'time_{n}': 100 * math.exp(site.random.normal(0, 0.004)) for n in range(30)}
        add(case, values, 's', 'lower', **times)
        change(case, values)

    def wild(case, values):
        for name in values:
            values[name] *= math.exp(site.random.normal(0, 0.3))

    site.runs(10, many_figures())
    site.runs(1, many_figures(wild))
    _, text = told('last~1', 'last', screen=True)
    assert len(text.splitlines()) <= SCREEN
    assert re.search(r'^  \.\.\. and \d+ more, of which --all tells$', text, re.M)
    assert '  worse: ' in text


def test_what_looks_worse_and_could_not_be_decided_is_no_success(site, told):
    """Whatever else is said: no exit code 0 beside a loss of two fifths."""
    site.runs(1)
    site.runs(1, slower(1 / 0.6, lambda case: case['fabric'] == 'tcp'), label='before')
    code, text = told('last', 'last~1')
    assert code == 0
    code, text = told('last~1', 'last', screen=True)
    assert code == 3
    assert re.search(r'^  looks worse, not decided: .*tcp.*6\d\.\d%', text, re.M)
    last = text.splitlines()[-1]
    assert last.startswith('UNDECIDED: 0 worse, ')
    assert last.endswith('`assay run --against BEFORE` measures it again')
    told_as_json = json.loads(told('last~1', 'last', '--json')[1])
    assert told_as_json['verdict'] == 'undecided'
    assert told_as_json['suspects']


@changing
def of_one(case, values, factor):
    """Of one figure."""
    if case['display_name'].startswith('Ring %fabric=shm'):
        values['bandwidth'] *= factor


#: By how much sessions of a figure with heavy tails are off.
TAILS = (1.0, 0.98, 1.03, 0.45, 0.95, 1.02, 0.72, 1.04)


@pytest.mark.parametrize(
    ('before', 'after', 'verdict'),
    [
        # Modes after an upgrade, all of which are slower, and of which one is not.
        ((1, 1, 1), (0.2, 0.22, 0.45), 'undecided'),
        ((1, 1, 1), (0.15, 0.55, 0.3), 'undecided'),
        ((1, 1, 1), (0.2, 0.22, 1.1), 'not worse'),
        # Others were disturbed, or one is an outlier: the rarer an order, the less has to be lost.
        ((1, 0.6, 0.9), (0.15, 0.3), 'undecided'),
        ((1, 1), (0.25, 0.3, 0.35), 'undecided'),
        ((1, 0.6), (0.15, 0.3), 'undecided'),
        ((1, 0.5, 1), (0.45, 0.25), 'not worse'),
        ((1, 0.4, 0.9), (0.1,), 'undecided'),
        ((0.8,), (0.05, 0.1, 0.35), 'undecided'),
        ((1, 1, 1), (0.1, 0.12, 1.1), 'undecided'),
        ((1, 0.1, 1), (0.1, 0.12, 0.15), 'undecided'),
        ((1, 0.8, 0.95), (0.65, 0.3, 0.55), 'undecided'),
        ((1, 0.5, 1), (0.4, 0.15, 0.95), 'not worse'),
        ((1, 0.1, 0.9, 0.95), (0.1, 0.12), 'undecided'),
        ((1, 1, 0.1), (0.3, 0.35, 0.25, 0.3), 'undecided'),
        # Tails hide a loss of a third of eight runs from their mean, not from their order.
        (TAILS, [0.67 * factor for factor in reversed(TAILS)], 'undecided'),
        (TAILS, TAILS[::-1], 'not worse'),
    ],
)
def test_few_sessions_hide_no_great_loss(site, before, after, verdict):
    found = site.sides(map(of_one, before), map(of_one, after))
    assert found.verdict == verdict
    assert [one.figure.figure for one in found.suspects] == ['bandwidth'] * len(found.suspects)


@changing
def with_figure(case, values, name, value, better='higher'):
    """One more figure in the ring over shared memory, such as in another unit."""
    if case['display_name'].startswith('Ring %fabric=shm'):
        add(case, values, better=better, **{name: value * values['bandwidth'] / 100})


@changing
def both(case, values, *changes):
    for one in changes:
        one(case, values)


@pytest.mark.parametrize(('other', 'verdict'), [(True, 'undecided'), (False, 'not worse')])
def test_one_bad_session_before_hides_no_loss_of_all_figures_of_a_kind(site, other, verdict):
    in_unit = [with_figure('bandwidth_of_limit', 0.8)] if other else []
    sides = (1, 0.5, 1), (0.15, 0.55, 0.3)
    found = site.sides(*([both(of_one(one), *in_unit) for one in side] for side in sides))
    assert found.verdict == verdict
    assert len(found.suspects) == (2 if other else 0)


@pytest.mark.parametrize(
    ('name', 'verdict'), [('whole_of_best', 'undecided'), ('imbalance_of_best', 'not worse')]
)
def test_a_great_loss_of_quiet_is_in_doubt_but_no_difference_near_nothing(site, name, verdict):
    """Which doubles by itself."""

    site.runs(3, with_figure(name, 0.9), label='before')
    for factor in (0.2, 0.5, 0.35):
        site.runs(1, with_figure(name, 0.9 * factor), label='after')
    found = site.difference('before', 'after')
    assert (found.verdict, found.counts['worse']) == (verdict, 0)


def test_two_noisy_runs_before_hide_no_great_loss(site):
    """Whose spread two runs of a busy machine show as tenfold."""
    for factor in (0.4, 1):
        site.runs(1, of_one(factor))
    site.runs(3, label='before')
    site.runs(3, of_one(0.72), label='after')
    found = site.difference('before', 'after')
    assert found.verdict == 'undecided'
    assert [one.figure.figure for one in found.suspects] == ['bandwidth']


@changing
def only(case, values, check, change=lambda case, values: None):
    """A change of one check; the others are skipped."""
    change(case, values)
    if not case['display_name'].startswith(check):
        case |= {'result': 'skip'}
        values.clear()


def test_what_was_measured_again_counts_by_that_alone(site):
    """Else what was chosen because it looked bad would look bad for that reason."""

    def disturbed(case, values):
        if case['fabric'] == 'tcp':
            case['taken_by_others'] = ['others']

    site.runs(10)
    site.runs(1, label='before')
    site.runs(3, slower(1.3), label='after')
    site.runs(3, only('Ring', disturbed), label='after')
    stored = load_history(site.database)
    before, after = choose_runs(stored, 'before'), choose_runs(stored, 'after')
    found = difference(stored, before, after, remeasured=after[3:])
    words = {(one.after.check, one.after.fabric, one.word) for one in found.figures}
    sizes = {(one.after.check, one.after.fabric): one.after.series.size for one in found.figures}
    assert ('Ring', 'shm', 'same') in words and ('Ring', 'ofi-tcp', 'same') in words
    # Others disturbed it each time: the first values are all that there is.
    assert ('Ring', 'tcp', 'worse') in words
    assert {word for check, _, word in words if check == 'PointToPoint'} == {'worse'}
    assert {*sizes.values()} == {3}


@pytest.mark.parametrize(
    ('first', 'rounds'), [((0.2, 0.22, 0.45), (0.45,)), ((0.2, 0.45), (0.22, 0.45))]
)
def test_too_few_rounds_take_no_doubt_away(site, first, rounds):
    """Values that are as bad as more of them leave less doubt than these."""
    site.runs(3, label='before')
    for factor in first:
        site.runs(1, of_one(factor), label='after')
    for factor in rounds:
        site.runs(1, only('Ring %fabric=shm', of_one(factor)), label='after')
    stored = load_history(site.database)
    before, after = choose_runs(stored, 'before'), choose_runs(stored, 'after')
    found = difference(stored, before, after, remeasured=after[len(first) :])
    (doubtful,) = found.suspects
    assert (found.verdict, doubtful.after.series.size) == ('undecided', 4)


# What cannot be told, and what is left out --------------------------------------------------------


def test_nothing_or_too_little_is_stored(site, told):
    with pytest.raises(AssayError, match='no run is stored'):
        told('last~1', 'last')
    site.runs(1)
    with pytest.raises(AssayError, match='stored is no more than 1 run'):
        told('last~1', 'last')
    with pytest.raises(AssayError, match='share 00000001'):
        told('last', 'last')


def test_two_runs_without_a_history_tell_nothing_and_say_why(site, told, wording):
    site.runs(2)
    code, text = told('last~1', 'last')
    assert code == 0
    assert site.difference().counts == {'cannot tell': 12}
    wording(text)


@pytest.mark.parametrize('earlier', [0, 1, 2, 3])
def test_with_few_runs_it_is_said_that_nothing_is_known_of_the_size(site, told, earlier):
    def wild(case, values):
        case['built_hash'] = f'{site.number:040x}'
        values |= {name: one ** site.random.normal(1, 0.5) for name, one in values.items()}

    site.runs(earlier + 2, wild)
    found = site.difference()
    assert {one.word for one in found.figures} == {'cannot tell'}
    assert max(one.verdict.interval[1] for one in found.figures) > 1e5
    for width in (80, 200):
        text = told('last~1', 'last', width=width)[1]
        assert not re.search(r'\d{4}[.\d]*%|e[+]\d+%|inf|nan', text)
        table = text[text.index('\nfigure ') : text.index('\n  12 figures: ')]
        facts = text[text.index('\nfact ') :].partition('\n\n')[0]
        assert 'unknown' in table and 'hash' in facts
        assert max(map(len, [*table.splitlines(), *facts.splitlines()])) <= width
    figures = json.loads(told('last~1', 'last', '--json')[1], parse_constant=pytest.fail)['figures']
    assert all(one['interval'][0] < one['ratio'] for one in figures)


@pytest.mark.parametrize(
    ('before', 'seconds', 'verdicts'),
    [
        (0.03, 0.15, []),
        (0.5, 0.9, []),
        (0.1, 0.5, ['worse']),
        (0.1, 5.0, ['worse']),
    ],
)
def test_starts_of_less_than_a_second_are_compared_if_they_grew(site, before, seconds, verdicts):
    @changing
    def starts(case, values, slowest):
        slowest *= math.exp(site.random.normal(0, 0.004))
        add(case, values, 's', 'lower', startup=slowest)

    site.runs(10, starts(before))
    site.runs(1, starts(seconds))
    found = [one for one in site.difference().figures if one.figure.figure == 'startup']
    assert [*{str(one.verdict.word) for one in found}] == verdicts


@pytest.mark.parametrize(('software', 'verdict'), [(1.0, 'not worse'), (0.7, 'worse')])
def test_what_slows_a_core_is_no_loss_of_a_kernel_beside_a_control(site, software, verdict):
    """A neighbour on the other hardware thread; a slower core is for Clock and Dgemm to find."""

    def kernels(core, left):
        def change(case, values):
            for kernel in ('waxpy', 'assembly'):
                ratio = left * math.exp(site.random.normal(0, 0.01))
                add(case, values, 'Gflop/s', **{f'{kernel}_in_caches_rate': 8 * core * ratio})
                add(case, values, **{f'{kernel}_in_caches_of_control': ratio})

        return change

    site.runs(3, kernels(1.0, 1.0), label='before')
    site.runs(3, kernels(0.7, software), label='after')
    found = site.difference('before', 'after')
    assert found.verdict == verdict
    assert not any(one.figure.figure.endswith('in_caches_rate') for one in found.figures)
    assert not found.gone


def test_a_ratio_to_a_control_is_surer_than_a_rate_of_the_same_spread(site):
    @changing
    def both(case, values, left):
        value = left * math.exp(site.random.normal(0, 0.01))
        add(case, values, 'Gflop/s', dot_rate=8 * value)
        add(case, values, waxpy_in_caches_of_control=value)

    site.runs(3, both(1.0), label='before')
    site.runs(3, both(0.9), label='after')
    errors = {
        one.figure.figure: one.verdict.comparison.error
        for one in site.difference('before', 'after').figures
        if one.verdict
    }
    assert errors['waxpy_in_caches_of_control'] < 0.9 * errors['dot_rate']


def test_a_kernel_whose_control_is_too_new_is_judged_by_its_rate(site):
    @changing
    def kernels(case, values, rate, has_control):
        measured = rate * math.exp(site.random.normal(0, 0.01))
        add(case, values, 'Gflop/s', waxpy_in_caches_rate=measured)
        if has_control:
            add(case, values, waxpy_in_caches_of_control=rate / 8)

    site.runs(2, kernels(8.0, False), label='before')
    site.runs(1, kernels(8.0, True), label='before')
    site.runs(3, kernels(4.8, True), label='after')
    found = {one.figure.figure: one for one in site.difference('before', 'after').figures}
    assert found['waxpy_in_caches_rate'].verdict.word == 'worse'
    assert 'waxpy_in_caches_of_control' not in found


def test_a_slow_start_of_one_case_is_no_slow_start_of_all(site):
    """Chosen one by one, those that grew by chance would be an index of their own."""

    @changing
    def starts(case, values, slowest):
        is_one = case['display_name'].startswith('Ring %fabric=shm')
        add(case, values, 's', 'lower', startup=slowest if is_one else 0.05)

    found = site.sides([starts(0.05)] * 3, [starts(0.3)] * 3).figures
    assert not any(one.figure.figure == 'startup' for one in found)


def test_how_many_more_runs_would_tell_is_said_in_any_window(site, told):
    def noisy(case, values):
        spread = 0.02 if case['fabric'] == 'tcp' else 0.06
        values |= {name: 100 * math.exp(site.random.normal(0, spread)) for name in values}

    site.runs(14, noisy)
    more = [one.verdict.more_runs for one in site.difference().figures]
    told_by = [one for one in more if one]
    assert min(told_by) < max(told_by)
    for width in (80, 200):
        text = told('last~1', 'last', width=width)[1]
        assert f' {min(told_by)} to {max(told_by)} more runs before and after would tell 5%' in text


@pytest.mark.parametrize(
    ('ends', 'words'),
    [
        ((0.95, 1.2), '-5.0% to +20.0%'),
        ((0.1, 1e9), '-90.0% to >1000x'),
        ((0.09, 10.1), 'unknown'),
        ((0.0, math.inf), 'unknown'),
        ((11.0, 40.0), '11x to 40x'),
        ((0.025, 0.5), '0.025x to -50.0%'),
        ((0.0, 1e-4), '<0.001x to <0.001x'),
    ],
)
def test_from_where_to_where_in_words(ends, words):
    assert as_interval(*ends) == words


def test_equal_values_have_a_spread_all_the_same(site):
    def equal(case, values):
        values |= dict.fromkeys(values, 100.0)

    site.runs(11, equal)
    assert site.difference().counts == {'same': 12}
    site.runs(1, lambda case, values: (equal(case, values), slower(1.2)(case, values)))
    assert site.difference().counts == {'worse': 12}


@pytest.mark.parametrize('value', [math.nan, math.inf, -3.0])
def test_what_is_no_value_is_counted_and_named(site, told, value, wording):
    site.runs(10)
    site.runs(
        1, lambda case, values: values.update({'latency': value} if case['fabric'] == 'tcp' else {})
    )
    code, text = told('last~1', 'last', '--all')
    assert code == 1
    wording(text)


def test_disturbed_values_are_left_out_with_what_disturbed_them(site, told, wording):
    site.runs(10)
    site.runs(1, busy)
    code, text = told('last~1', 'last')
    assert (code, site.difference().verdict) == (3, 'undecided')
    wording(text)


def test_where_the_runs_before_were_disturbed_more_runs_after_are_not_advised(site, told):
    site.runs(3, busy, label='before')
    site.runs(3, label='after')
    code, text = told('before', 'after')
    assert code == 3
    last = text.splitlines()[-1]
    assert last.startswith('UNDECIDED: ') and 'choose other runs before' in last


@pytest.mark.parametrize(('taken', 'counts'), [(0.4, True), (0.5, False), (None, False)])
def test_disturbed_values_count_where_others_took_as_much_before(site, told, taken, counts):
    """They are always there: to leave out what they disturb would leave nothing."""

    @changing
    def shared(case, values, share):
        busy(case, values)
        if share is not None:
            add(case, values, better='lower', foreign_share=share)

    found = site.sides([shared(0.41)] * 3, [shared(taken)] * 3)
    assert any(one.verdict for one in found.figures) == counts
    assert found.alike_disturbed == (72 if counts else 0)
    text = told('before', 'after', '--all')[1]
    assert ('counted all the same: 72 values of disturbed jobs' in text) == counts


def test_a_job_of_which_others_took_more_than_of_the_rest_stays_left_out(site):
    """Half as fast, now and then."""

    @changing
    def shared(case, values, share):
        if share:
            case['taken_by_others'] = ['the node was disturbed: other processes took 45%']
            values['bandwidth'] /= 2
        add(case, values, better='lower', foreign_share=share)

    side = [shared(0.0), shared(0.0), shared(0.45)]
    found = site.sides(side, side)
    assert {len(one.after.values) for one in found.figures} == {2}
    assert found.alike_disturbed == 0


def on_cores(latency, move=1.0):
    """Jobs of PointToPoint and MiniFE on cores so many nanoseconds apart.

    :param move: how many times as long it took at the end.
    """

    def change(case, values):
        if 'Ring' in case['display_name']:
            name = case['display_name'].replace('Ring', 'MiniFE')
            case |= {'display_name': name, 'directions': {}}
            values.clear()
            add(case, values, 'Gflop/s', waxpy_rate=100 * math.exp(random.normal(0, 0.004)))
        elif latency and (latency > 100 or move > 2):
            values['bandwidth'] /= 4
        if latency:
            add(case, values, 'ns', 'lower', core_latency=latency)
            add(case, values, '1', 'lower', core_move=move)

    random = np.random.default_rng(11)
    return change


@pytest.mark.parametrize(
    ('before', 'after', 'counted'),
    [
        ((40, 40, 40), (40, 300, 41), (3, 2)),
        ((40, 300, 300), (300, 40, 290), (2, 2)),
        ((40, 45, 55), (50, 44, 38), (3, 3)),
        # Nothing is known of these.
        ((40, 300, 300), (None, None, None), (3, 3)),
    ],
)
def test_jobs_whose_cores_a_hypervisor_moved_are_left_out(site, before, after, counted):
    found = site.sides(map(on_cores, before), map(on_cores, after))
    sizes = {
        one.figure.figure: (len(one.before.values), len(one.after.values)) for one in found.figures
    }
    assert sizes == {'latency': counted, 'bandwidth': counted, 'waxpy_rate': (3, 3)}


def test_a_job_whose_cores_were_moved_meanwhile_is_left_out(site):
    found = site.sides([on_cores(40)] * 3, [on_cores(40), on_cores(40), on_cores(150, move=3.7)])
    sizes = {one.figure.figure: len(one.after.values) for one in found.figures}
    assert sizes == {'latency': 2, 'bandwidth': 2, 'waxpy_rate': 3}
    assert found.exit_code == 0


def test_a_run_is_told_how_near_cores_were_in_the_runs_before(site, tmp_path):
    for latency, move in ((300, 1.0), (44, 1.0), (41, 1.1), (30, 3.0)):
        site.runs(1, on_cores(latency, move))
    history = load_history(site.database)
    own = RunFolder(tmp_path)
    tell_distances(own, history, history.runs[:1])
    told = json.loads(own.distances.read_text())
    assert {*told.values()} == {300}
    tell_distances(own, history, history.runs)
    # One that was moved was only near at one of its ends.
    assert {*json.loads(own.distances.read_text()).values()} == {41}
    cases = {one.figure.test_case for one in site.difference('last~3', 'last').figures}
    assert {name.rpartition(' on ')[0] for name in told} == cases
    assert {name.rpartition(' on ')[2] for name in told} == {'n1', 'n[1-2]'}


def test_where_all_cores_were_moved_only_figures_of_kernels_are_compared(site, told):
    site.runs(3, on_cores(40), label='before')
    site.runs(3, on_cores(300), label='after')
    code, text = told('before', 'after')
    assert code == 3
    assert 'the cores of the node were farther apart or nearer' in text
    found = site.difference('before', 'after')
    compared = {one.figure.figure for one in found.figures if one.verdict}
    assert compared == {'waxpy_rate'}


def test_a_side_of_one_session_proves_nothing_without_a_history(site):
    """It may have met a spell: three before do not show how often that is."""

    def slow(case, values):
        values['bandwidth'] /= 2

    site.runs(3, label='before')
    site.runs(1, slow, label='after')
    found = site.difference('before', 'after')
    assert found.verdict == 'undecided'
    verdicts = [one.verdict for one in found.figures if one.figure.figure == 'bandwidth']
    assert {one.reason for one in verdicts} == {'a side of one run may be an outlier: run again'}
    site.runs(1, slow, label='after')
    assert site.difference('before', 'after').verdict == 'worse'


def noisy(factor):
    def change(case, values):
        values['bandwidth'] = factor * 100 * math.exp(noise.uniform(-1, 1))
        case['held'] = {'bandwidth': (100, -0.8, None)}

    noise = np.random.default_rng(3)
    return change


def test_a_reference_that_is_missed_since_is_worse_however_wide_the_spread_is(site, told, wording):
    site.runs(10, noisy(1))
    site.runs(2, noisy(0.07), label='after')
    code, text = told('last~2', 'after')
    assert code == 1
    wording(text)
    found = site.difference('last~2', 'after').figures
    assert [one.misses for one in found if one.word == 'worse'] == [True] * 6


@pytest.mark.parametrize(('earlier', 'one_missed'), [(2, False), (10, True)])
def test_a_reference_may_be_missed_by_chance(site, earlier, one_missed):
    site.runs(1, noisy(0.05 if one_missed else 1))
    site.runs(earlier, noisy(1))
    site.runs(1, noisy(0.05))
    assert not any(one.misses for one in site.difference().figures)


def test_a_reference_that_is_missed_by_little_since_is_worse(site, told):
    @changing
    def within(case, values, lowest, highest):
        values['bandwidth'] = 100 * math.exp(site.random.uniform(lowest, highest))
        case['held'] = {'bandwidth': (100, -0.014, None)}

    site.runs(40, within(-0.013, 0.013))
    site.runs(1, within(-0.017, -0.016), label='after')
    code, text = told('last~1', 'after')
    assert code == 1
    assert re.search(r'\nWORSE: 6 worse, 0 better, 6 same', text)


def test_a_reference_that_was_only_tightened_makes_nothing_worse(site, told):
    def held_to(reference):
        def change(case, values):
            values['bandwidth'] *= math.exp(noise.uniform(-0.3, 0.3))
            case['held'] = {'bandwidth': (reference, -0.1, None)}

        noise = np.random.default_rng(5)
        return change

    site.runs(20, held_to(50))
    site.runs(2, held_to(200), label='after')
    code, text = told('last~2', 'after')
    assert code != 1
    assert 'missed references' not in text


def test_a_reference_that_is_missed_since_the_machine_moved_is_worse(site):
    def noisy_with_a_socket(factor, moved):
        slow = noisy(factor)

        def change(case, values):
            slow(case, values)
            if case['scale'] == '2_nodes':
                site.add_socket_latency(case, values, moved)

        return change

    site.runs(20, noisy_with_a_socket(1, 1))
    site.runs(2, noisy_with_a_socket(0.05, 1.3), label='after')
    found = site.difference('last~2', 'after')
    assert found.moved
    missed = [one for one in found.figures if one.figure.figure == 'bandwidth']
    assert {(one.word, one.has_followed) for one in missed} == {('worse', False)}
    assert any(one.misses for one in missed)


def test_most_figures_have_to_be_told_for_a_verdict(site, told):
    @changing
    def busy_but_for(case, _, check):
        if not case['display_name'].startswith(check):
            case['taken_by_others'] = ['others']

    site.runs(10)
    site.runs(1, busy_but_for('Ring'))
    assert told('last~1', 'last')[1].splitlines()[-1].startswith('NOT WORSE: ')
    site.runs(1, lambda case, _: case['fabric'] == 'tcp' or case.update(taken_by_others=['others']))
    assert told('last~2', 'last')[1].splitlines()[-1].startswith('UNDECIDED: ')


def test_a_unit_that_changed_is_told(site, told, wording):
    site.runs(10)
    site.runs(1, lambda case, _: case.update(units={'latency': 'ms'}))
    code, text = told('last~1', 'last')
    assert code == 0
    assert site.difference().counts == {'same': 6, 'cannot tell': 6}
    wording(text)


def test_a_direction_is_never_guessed(site, told):
    site.runs(11, lambda case, _: case.update(directions={}))
    site.runs(1, lambda case, values: (case.update(directions={}), slower(2)(case, values)))
    code, text = told('last~1', 'last')
    assert code == 3
    assert 'the direction in which it gets better was not stored yet' in text


@pytest.mark.parametrize(
    ('earlier', 'word', 'reason'),
    [
        ([7] * 20, 'worse', ''),
        ([7] * 19, 'cannot tell', 'it is said to be exact, which takes 20 equal runs'),
        ([7, 7, 8, 7, 7, 7], 'cannot tell', 'it is said to be exact, and varied before as well'),
    ],
)
def test_a_count_is_exact_if_it_was_before(site, told, earlier, word, reason):
    @changing
    def sent(case, values, count):
        add(case, values, better='exact', messages=count)

    for count in [*earlier, 9]:
        site.runs(1, sent(count))
    code, text = told('last~1', 'last')
    assert code == (word == 'worse')
    assert reason in text
    words = {one.word for one in site.difference().figures if one.figure.figure == 'messages'}
    assert words == {word}


def test_a_case_that_fails_after_is_lost_and_that_is_worse(site, told, wording):
    site.runs(10)
    site.runs(1, lambda case, values: case['fabric'] == 'tcp' and failed(case, values))
    code, text = told('last~1', 'last')
    way_back, better = told('last', 'last~1')
    assert (code, way_back) == (1, 0)
    assert len(site.difference().lost) == 2
    wording(text, better)


def test_all_that_was_run_may_be_lost_and_what_fails_at_times_is_worse(site, told, wording):
    site.runs(10)
    site.runs(1, failed, label='new')
    code, text = told('last~1', 'last')
    way_back, better = told('last', 'last~1')
    assert (code, way_back) == (1, 0)
    assert len(site.difference().lost) == 6
    with pytest.raises(AssayError, match=r'before and after both \(Point.*, \.\.\.\) ever gave'):
        site.runs(1, failed)
        told('last~1', 'last')
    site.runs(3, label='new')
    code, at_times = told('last~5', 'new')
    assert code == 1
    assert len(site.difference('last~5', 'new').at_times) == 6
    wording(text, better, at_times)


def test_what_was_stopped_with_its_run_did_not_fail(site, told, wording):
    def stopped(case, values):
        if case['fabric'] == 'tcp':
            values.clear()
            case |= {'result': 'abort', 'fail_phase': 'run', 'fail_reason': 'a signal'}

    site.runs(10)
    site.runs(1, stopped, label='new')
    code, text = told('last~1', 'last')
    assert (code, site.difference().lost) == (0, ())
    site.runs(1, label='new')
    code, later = told('last~2', 'new')
    found = site.difference('last~2', 'new')
    assert (code, found.at_times, found.counts) == (0, (), {'same': 12})
    wording(text, later)


def test_renamed_checks_are_only_before_and_only_after(site, told, wording):
    def renamed(case, _):
        case['display_name'] = case['display_name'].replace('Ring', 'Circle')

    site.runs(10)
    site.runs(1, renamed)
    code, text = told('last~1', 'last')
    assert code == 0
    wording(text)
    site.runs(1, lambda case, _: case.update(display_name='Other'))
    with pytest.raises(AssayError, match=r'no figure is of runs before .* both: choose runs'):
        told('last~1', 'last')


def test_systems_are_never_compared(site, told):
    site.runs(1)
    site.runs(1, lambda case, _: case.update(system='other'))
    with pytest.raises(AssayError, match='are of several systems, other, toy'):
        told('last~1', 'last')


def test_a_run_of_the_future_teaches_nothing(site, told):
    site.runs(10)
    site.number += 500
    site.runs(1, slower(3))
    site.number -= 500
    assert site.difference().earlier.runs == 8
    code, text = told('last', f'{site.number + 500:08x}')
    assert code == 1
    assert 'which is in the future: a clock was wrong' in text


def broken(case, values):
    """As while faults are brought in."""
    slower(3)(case, values)
    case['result'] = 'pass' if case['fabric'] == 'shm' else 'fail'


def test_what_was_made_for_a_purpose_or_failed_teaches_nothing(site):
    """The verdicts are those without these runs, to the last digit."""

    def between(day, change, **session):
        site.runs(1, change, time_start_unix=(NOW - timedelta(days=day)).timestamp(), **session)

    site.runs(14)
    alone = site.difference('0000000d', '0000000e')
    between(98.5, slower(2), purpose='compare', label='compare a with b: a')
    between(97.5, slower(4), purpose='campaign')
    between(95.5, broken)
    found = site.difference('0000000d', '0000000e')
    assert (alone.earlier.runs, found.earlier.runs) == (12, 12)
    assert [one.verdict for one in found.figures] == [one.verdict for one in alone.figures]


def test_a_run_may_be_a_report_of_another_place(site, told, tmp_path):
    site.runs(11)
    path = tmp_path / 'report.json'
    site.number += 1
    path.write_text(json.dumps(site.run(slower(1.2))))
    code, text = told('last', str(path))
    assert code == 1
    assert 'worse: 12 of 12 figures of all' in text


def day(number):
    """Of a run, by the clock of this machine."""
    return f'{(NOW - timedelta(days=100 - number)).astimezone():%Y-%m-%d}'


def test_a_side_of_two_states_is_told(site, told, wording):
    site.runs(20)
    site.runs(15, slower(1.2, is_tcp_of_libfabric))
    site.runs(1)
    days = [day(number) for number in (11, 35)]
    code, text = told('..'.join(days), 'last')
    assert code == 0
    wording(text)
    found = json.loads(told('last', '..'.join(days), '--json')[1])['two_states']
    assert found['before'] is None
    assert found['after']['run'].startswith('00000015')
    assert all('ofi-tcp' in one['case'] for one in found['after']['figures'])
    # A step between the sides is none within one.
    days = [day(number) for number in (1, 20, 21, 35)]
    _, text = told('..'.join(days[:2]), '..'.join(days[2:]))
    assert 'worse: 4 of 4' in text and 'two states' not in text


def perflogs_of(reports, folder):
    """The lines that ReFrame writes of such runs."""
    columns = (
        'job_completion_time|system|partition|environ|display_name|perf_var|perf_value|perf_ref'
        '|perf_lower_thres|perf_upper_thres|perf_unit|result|perf_result'
    )
    lines = [columns]
    for report in reports:
        for case in report['runs'][0]['testcases']:
            ended = datetime.fromtimestamp(case['job_completion_time_unix'])
            of_case = f'{ended:%Y-%m-%dT%H:%M:%S}|toy|node|mpich|{case["display_name"]}'
            for name, (value, *_, unit, _) in case['perfvalues'].items():
                figure = f'{name.rpartition(":")[2]}|{value}|null|null|null|{unit}'
                lines.append(f'{of_case}|{figure}|pass|pass')
    folder.mkdir()
    (folder / 'Ring.log').write_text(''.join(f'{line}\n' for line in lines))
    return f'{folder}/'


def test_runs_that_are_read_twice_are_never_compared_with_themselves(site, told, tmp_path):
    stored = site.runs(12)
    folder = perflogs_of(stored[6:], tmp_path / 'perflogs-of-some')
    with pytest.raises(AssayError, match='0000000c of AFTER ran jobs that are in BEFORE as well'):
        told(folder, 'last')
    # Nor do they teach the spread that they are held against.
    site.runs(1)
    assert site.difference(folder, 'last').earlier.runs == 6
    assert site.difference('last~1', 'last').earlier.runs == 11


def test_jobs_that_ended_in_one_second_are_two(site, told):
    second = int(NOW.timestamp()) - 3600
    for part in (0.25, 0.75):
        site.runs(1, lambda case, _, at=second + part: case.update(job_completion_time_unix=at))
    code, text = told('last~1', 'last')
    assert code == 0, text


@pytest.mark.parametrize('margin', ['0%', '500%'])
def test_a_margin_is_between_nothing_and_all(site, told, margin):
    site.runs(2)
    with pytest.raises(AssayError, match='a margin is between 0% and 100%'):
        told('last~1', 'last', '--margin', margin)


def test_what_tells_of_a_jobs_conditions_is_not_judged(site, told):
    def lost(case, values):
        values['foreign_share'] = 0.0
        case['units'] = {'foreign_share': '1'}

    site.runs(11, lost)
    _, text = told('last~1', 'last')
    assert 'not judged: 6 figures that only tell how quiet the nodes were' in text
    assert text.endswith(' of 12 figures\n')
    assert {*DISTURBANCES} < CONDITIONS


@pytest.mark.parametrize('value', [None, math.nan, -1.0, 0.0])
def test_a_figure_without_a_value_of_a_case_that_ran_is_gone_and_that_is_worse(
    site, told, wording, value
):
    def without(_, values):
        del values['bandwidth']
        if value is not None:
            values['bandwidth'] = value

    site.runs(10)
    site.runs(1, without)
    code, text = told('last~1', 'last')
    assert code == 1
    wording(text)
    assert len(json.loads(told('last~1', 'last', '--json')[1])['gone']) == 6


def test_a_share_that_is_below_0_by_chance_is_not_gone(site, told):
    """Such as of overlap, where nothing overlaps."""

    def shares(*values):
        def change(case, by_name):
            add(case, by_name, overlap=next(left))

        left = itertools.cycle(values)
        return change

    site.runs(10, shares(0.03, 0.01, 0.02))
    site.runs(1, shares(-0.02, -0.01))
    code, text = told('last~1', 'last', '--all')
    assert code == 0
    assert 'no value after is left: all are below 0, of which there is no ratio' in text
    site.runs(3, shares(0.7, 0.68), label='before')
    site.runs(3, shares(-0.02, -0.01), label='after')
    gone = site.difference('before', 'after').gone
    assert {one.reason for one in gone} == {'it is below 0'} and len(gone) == 6


@pytest.mark.parametrize(
    ('before', 'after', 'runs', 'word', 'code'),
    [
        (0.0, 5.0, 3, 'worse', 1),
        (0.0, 5.0, 1, 'cannot tell', 3),
        (5.0, 0.0, 3, 'better', 0),
        (0.0, 0.0, 3, 'same', 0),
        (0.0, 0.01, 3, 'cannot tell', 0),  # it may have been rounded
    ],
)
def test_what_is_0_each_time_on_a_side_needs_no_ratio(site, before, after, runs, word, code):
    """Such as messages that were sent again."""

    @changing
    def sent_again(case, values, value):
        values['latency'] = value

    found = site.sides([sent_again(before)] * runs, [sent_again(after)] * runs)
    assert {one.word for one in found.figures if one.figure.figure == 'latency'} == {word}
    assert found.exit_code == code


@pytest.mark.parametrize(
    ('better', 'before', 'after', 'code'),
    [
        ('higher', (0.0, 100.5, 99.5), (0.0, 0.0, 0.0), 3),
        ('higher', (0.0, 100.5, 99.5), (0.0, 98.5, 101.5), 0),
        ('higher', (0.0, 100.5, 99.5), (0.0, 0.0, 101.5), 0),  # by chance in half of such figures
        ('lower', (0.0, 0.5, 0.0), (5.5, 6.5, 5.5), 3),
        ('lower', (0.0, 0.5, 0.0), (0.5, 0.5, 0.5), 0),
        ('lower', (0.0, 0.01, 0.0), (0.01, 0.02, 0.01), 0),  # it may have been rounded
        ('higher', (0.0, 0.0, *range(97, 103)), (0.0, 0.0, 5.0, 5.1, 4.9, 5.0, 5.0, 5.2), 3),
    ],
)
def test_what_is_0_at_times_is_not_lost_silently(site, better, before, after, code):
    def valued(*values):
        def change(case, by_name):
            add(case, by_name, better=better, overlap=next(left))

        left = iter(np.repeat(values, 6).tolist())
        return change

    site.runs(len(before), valued(*before), label='before')
    site.runs(len(after), valued(*after), label='after')
    found = site.difference('before', 'after')
    assert {one.word for one in found.figures if one.figure.figure == 'overlap'} == {'cannot tell'}
    assert found.exit_code == code
    assert {one.figure.figure for one in found.suspects} == ({'overlap'} if code else set())


def test_another_direction_is_another_figure(site, told):
    def turned(case, _):
        case['directions'] = case['directions'] | {'latency': 'higher'}

    site.runs(10)
    site.runs(1, turned)
    assert 'it got better lower, and now gets better higher' in told('last~1', 'last')[1]


def test_json_has_everything(site, told):
    site.runs(10)
    site.runs(1, upgraded)
    code, text = told('last~1', 'last', '--json')
    found = json.loads(text)
    assert (code, found['verdict'], found['past_runs']) == (1, 'worse', 9)
    words = {'worse': 4, 'better': 0, 'same': 8, 'cannot_tell': 0}
    assert found['counts'] == words | {'lost': 0, 'failed_at_times': 0, 'gone': 0}
    (group,) = found['groups']
    assert group['shared'] == [{'kind': 'fabric', 'value': 'ofi-tcp'}]
    figures = [found['figures'][number] for number in group['figures']]
    assert {one['fabric'] for one in figures} == {'ofi-tcp'}
    assert all(one['interval'][0] < one['ratio'] < one['interval'][1] for one in figures)
    (fact,) = group['facts']
    assert (fact['name'], fact['before'], len(fact['figures'])) == ('mpi', 'mpich@4.3.2', 12)
    page = (paths.ROOT / 'docs' / 'diff.md').read_text().partition('## JSON')[2].partition('## ')[0]
    rows = [row.split('|') for row in page.splitlines() if row.startswith('| `')]
    fields = {name for row in rows for name in re.findall(r'`(\w+)`', row[1])}
    assert {'interval', 'smallest', 'before'} < fields <= figures[0].keys()


# Groups -------------------------------------------------------------------------------------------


def members(*rows):
    """Members from what they share, such as ``('fabric=tcp check=Ring', 'worse')``."""
    return [
        Member(
            number,
            frozenset(tuple(one.split('=')) for one in text.split()),
            word == 'worse',
            word != 'cannot tell',
        )
        for number, (text, word) in enumerate(rows)
    ]


def shared(rows):
    groups, alone = group_changes(members(*rows))
    return [
        (' '.join('='.join(one) for one in group.shared), group.changed) for group in groups
    ], alone


def test_a_group_is_what_changed_figures_share_and_others_do_not():
    rows = [
        (f'fabric={fabric} check={check}', 'worse' if fabric == 'tcp' else 'same')
        for fabric in ('tcp', 'shm')
        for check in 'ABCDE'
    ]
    assert shared(rows) == ([('fabric=tcp', (0, 1, 2, 3, 4))], [])


def test_a_group_may_take_two_attributes():
    places = [f'environment={mpi} fabric={fabric}' for mpi in 'xy' for fabric in ('tcp', 'shm')]
    rows = [
        (f'{place} check={check}', 'worse' if place == places[0] else 'same')
        for place in places
        for check in 'AB'
    ]
    assert shared(rows) == ([('environment=x fabric=tcp', (0, 1))], [])


def test_a_quantity_is_named_before_its_figures(site, told, wording):
    def narrow(case, values):
        add(case, values, 'MB/s', hop_bandwidth=values['bandwidth'])
        add(case, values, 's', 'lower', time=100 * values['latency'])

    def narrower(case, values):
        narrow(case, values)
        if case['scale'] == '2_nodes':
            values['bandwidth'] /= 3
            values['hop_bandwidth'] /= 3

    site.runs(10, narrow)
    site.runs(1, narrower)
    wording(told('last~1', 'last')[1])


def test_what_is_left_of_a_group_may_be_another_and_the_rest_stands_alone():
    rows = [
        *[(f'fabric=tcp check={check}', 'worse') for check in 'ABC'],
        *[(f'fabric=shm check={check}', 'same') for check in 'ABC'],
        *[(f'fabric=shm check={check}', 'worse') for check in 'DDE'],
    ]
    assert shared(rows) == ([('fabric=tcp', (0, 1, 2)), ('check=D', (6, 7))], [8])


def test_all_figures_may_have_changed():
    assert shared([(f'check={check}', 'worse') for check in 'ABC']) == ([('', (0, 1, 2))], [])


def test_a_few_exceptions_are_no_other_group_and_what_cannot_be_told_does_not_count():
    rows = [
        *[('fabric=tcp', 'worse')] * 8,
        *[('fabric=tcp', 'same')] * 2,
        *[('fabric=tcp', 'cannot tell')] * 5,
        *[('fabric=shm', 'same')] * 20,
    ]
    assert shared(rows) == ([('fabric=tcp', tuple(range(8)))], [])
    rows += [('fabric=tcp', 'cannot tell')] * 2  # then it is less than half
    assert shared(rows) == ([], list(range(8)))


def test_a_group_is_not_made_wider_than_what_it_explains():
    rows = [
        *[('fabric=tcp', 'worse')] * 20,
        *[('fabric=shm', 'worse')] * 2,
        *[('fabric=shm', 'same')] * 5,
    ]
    assert shared(rows) == ([('fabric=tcp', tuple(range(20)))], [20, 21])


def test_what_explains_just_the_same_is_named_as_well():
    rows = [('fabric=tcp nodes=n[1-2]', 'worse')] * 3 + [('fabric=shm', 'same')] * 3
    (group,), _ = group_changes(members(*rows))
    assert (group.shared, group.likewise) == ((('fabric', 'tcp'),), (('nodes', 'n[1-2]'),))


def test_nothing_changed():
    assert group_changes([]) == ([], [])
    assert shared([('check=A', 'same'), ('check=B', 'worse')]) == ([], [1])
