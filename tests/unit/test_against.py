"""Runs held against stored ones: what is measured again, for how long, and how it ends."""

import json
import re
import signal
from dataclasses import replace

import pytest

import sessions
from assay import AssayError, one_run
from assay.comparing import against
from assay.comparing.against import (
    FIRST_LOOK,
    PURPOSE,
    Against,
    assert_cases_in_common,
    rate_of,
    runs_before,
)
from assay.report.diff import conclusion_against, show_against
from assay.results import runner
from assay.results.diff.difference import difference
from assay.results.history import load_history
from assay.results.reframe_report import read_reframe_report
from assay.results.run_selectors import choose_runs
from assay.results.runner import Concluded, Runner
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.unchanged import usual_runs
from assay.results.verdict import Verdict
from assay.running import reframe_options
from assay.running.reframe_options import read_options
from assay.running.selection import Listed
from assay.running.supervise import Ended
from changing import changing
from stored import put

CHECKS = ('Ring', 'PointToPoint', 'Halo', 'Clock')
FABRICS = ('shm', 'tcp')


class Machine(sessions.Machine):
    """Its sessions are runs of one MPI, and rounds.

    :param change: given the case, its values and the number of the round (0 of other runs), both of
        which it may change.
    """

    checks, fabrics = CHECKS, FABRICS
    seed, spread = 5, 0.01

    def __init__(self, database, golden_report):
        super().__init__(database, golden_report, lambda case, values, number: None)
        self.rounds = 0
        self.asked = []

    def report(self, label, options=()):
        excluded = [one.partition('=')[2] for one in options if one.startswith('--exclude=')]
        return super().report('mpich', excluded, days=0.125, text=label)

    def alter(self, name, case, values):
        case |= {'built_by': 'cmake', 'built_compiler': 'gcc@14'}
        case |= {'built_flags': '-O3', 'built_target': 'zen5'}
        self.change(case, values, self.rounds)
        if case['display_name'].startswith('Clock'):
            frequency = values['bandwidth']
            values.clear()
            values['scalar_frequency'], case['units'] = frequency, {'scalar_frequency': 'GHz'}
            case['directions'] = {'scalar_frequency': 'higher'}

    def runs(self, count, label):
        reports = [self.report(label) for _ in range(count)]
        put(self.database, *reports)
        return [one['session_info']['uuid'] for one in reports]

    def run(self, own, label, options, handles, audience, purpose, exports):
        self.rounds += 1
        self.asked.append(options)
        (own.folder / 'stage').mkdir()
        report = self.report(label, options)
        report['session_info']['purpose'] = purpose
        put(self.database, report)
        own.report.write_text(json.dumps(report))
        return self.ends.pop(self.rounds, Ended())


@pytest.fixture
def machine(tmp_path, golden_report, monkeypatch):
    monkeypatch.setattr('assay.paths.RUNS', tmp_path / 'runs')
    one = Machine(tmp_path / 'perflogs' / 'results.db', golden_report)

    def judged(own, end, given):
        return Concluded(read_reframe_report(own.report), [], Verdict(tuple(end.problems)))

    monkeypatch.setattr(runner, 'judge_session', judged)
    monkeypatch.setattr(runner, 'store_verdict', lambda report, verdict: [])
    monkeypatch.setattr(against, 'load_history', lambda: load_history(one.database))
    monkeypatch.setenv('COLUMNS', '160')
    return one


def names():
    return [
        f'{check} %fabric={one} %layout=packed %scale=1_node' for check in CHECKS for one in FABRICS
    ]


def held(machine, after, budget=600.0, options=()):
    stored = load_history(machine.database)
    before = choose_runs(stored, 'before')
    rounds = Runner(machine, read_options([*options]), [], PURPOSE)
    return Against(rounds, [*options], 'after', before, after, names()).decide(budget)


@changing
def slower(case, values, number, factor, fabric='tcp', check='Ring', rounds=range(1000)):
    if case['display_name'].startswith(f'{check} %fabric={fabric} ') and number in rounds:
        values['latency'] *= factor
        values['bandwidth'] /= factor


def looks_worse(machine, monkeypatch):
    """Let the statistics suspect what is worse by more than a tenth, and decide nothing by less."""

    def suspecting(*about, **options):
        found = difference(*about, **options)
        machine.rates = [*getattr(machine, 'rates', []), options['rate']]
        return Suspecting(found, machine)

    monkeypatch.setattr(against, 'difference', suspecting)


@pytest.fixture
def upgrade(machine, monkeypatch):
    """Three runs before and some after, which look worse; the identifiers of these."""

    def upgrade(change=None, runs=3):
        machine.runs(3, 'before')
        machine.change = change or slower(1.3)
        after = machine.runs(runs, 'after')
        looks_worse(machine, monkeypatch)
        return after

    return upgrade


class Suspecting:
    """A difference whose words the test makes.

    Worse from a fifth on where at least as many rounds were measured as the machine says; what is
    worse by a tenth is suspect until then.
    """

    def __init__(self, found, machine):
        self.found = found
        losses = {
            one: one.change if one.after.better == 'lower' else -one.change for one in found.figures
        }
        enough = machine.rounds >= getattr(machine, 'enough', FIRST_LOOK)
        self.is_worse = enough and any(loss > 0.2 for loss in losses.values())
        self.suspects = tuple(one for one in found.figures if losses[one] > 0.1)
        if self.is_worse:
            self.suspects = ()
        undecided = 'undecided' if self.suspects else 'not worse'
        self.verdict = 'worse' if self.is_worse else undecided

    def __getattr__(self, name):
        return getattr(self.found, name)


# What is measured again ---------------------------------------------------------------------------


def test_suspects_are_measured_again_with_controls_and_nothing_else(machine, upgrade):
    after = upgrade()
    found = held(machine, after)
    assert found.difference.is_worse
    assert (found.rounds, found.stopped) == (FIRST_LOOK, '')
    excluded = [one.partition('=')[2] for one in machine.asked[0] if one.startswith('--exclude')]
    ran = {
        name
        for name in names()
        if not any(re.search(one, name.replace(' ', '')) for one in excluded)
    }
    # The machine itself, and one case of a check that has no suspect.
    assert {one.partition(' %layout')[0] for one in ran} == {
        *('Ring %fabric=tcp', 'Clock %fabric=shm', 'Clock %fabric=tcp', 'Halo %fabric=shm'),
    }
    assert machine.asked[0][-2:] == ['-p', '^(mpich)$']
    assert machine.rates == [rate_of(0), rate_of(1)]


def test_the_environments_that_somebody_chose_stay(machine, upgrade):
    after = upgrade(runs=1)
    held(machine, after, options=['-p', 'mp'])
    assert machine.asked[0][:2] == ['-p', 'mp'] and '^(mpich)$' not in machine.asked[0]


def test_what_looked_worse_by_chance_is_not_worse(machine, upgrade):
    after = upgrade(slower(1.3, rounds=[0]))
    found = held(machine, after)
    assert (found.difference.is_worse, found.difference.suspects) == (False, ())
    assert (found.rounds, found.stopped) == (FIRST_LOOK, '')


def test_nothing_is_measured_again_where_nothing_looks_worse(machine, monkeypatch):
    machine.runs(3, 'before')
    after = machine.runs(3, 'after')
    looks_worse(machine, monkeypatch)
    assert held(machine, after).rounds == 0
    assert machine.rates == [rate_of(0)]


def noisily(of_runs):
    """Bandwidth of a case in the next runs, of which the last goes on."""
    factors = list(of_runs)

    def change(case, values, number):
        if case['display_name'].startswith('Ring %fabric=tcp '):
            values['bandwidth'] = 100 * (factors.pop(0) if len(factors) > 1 else factors[0])

    return change


@pytest.mark.parametrize(
    ('rounds', 'verdict', 'count'),
    [((0.75,), 'worse', FIRST_LOOK), ((1.0,), 'not worse', FIRST_LOOK)],
)
def test_what_looks_worse_by_itself_alone_is_measured_again(machine, rounds, verdict, count):
    """Not worse, as it is, and a busy machine may hide a loss: more sessions show it."""
    machine.change = noisily([1.035, 0.965, 1.0, 0.9, 0.88, 0.85, *rounds])
    machine.runs(3, 'before')
    after = machine.runs(3, 'after')
    first = held(machine, after, 0.0)
    assert (first.difference.verdict, first.difference.suspects) == ('not worse', ())
    # Where there is no time for that, it is said.
    assert [one.figure.figure for one in first.doubted] == ['bandwidth']
    assert re.fullmatch(
        'NOT WORSE: .*; may be worse: 1 figure, by 1[0-9.]+%: a longer --budget may tell',
        conclusion_against(first, 'PASSED'),
    )
    found = held(machine, after)
    assert (found.difference.verdict, found.rounds, found.stopped) == (verdict, count, '')
    assert not found.doubted


def test_what_others_disturbed_is_measured_again(machine, monkeypatch):
    machine.runs(3, 'before')

    def disturb(case, values, number):
        if not number and 'Clock' not in case['display_name']:
            case['taken_by_others'] = ['the node was disturbed: other processes took 40%']

    machine.change = disturb

    found = held(machine, machine.runs(3, 'after'))
    assert found.rounds == FIRST_LOOK
    assert (found.difference.verdict, found.stopped) == ('not worse', '')
    assert all(one.verdict for one in found.difference.figures)


@pytest.mark.parametrize(('left', 'rounds'), [(0.9, FIRST_LOOK), (1.0, 0)])
@pytest.mark.parametrize('disturbed', [2, 3])
def test_a_case_of_which_others_left_too_few_sessions_is_measured_again(
    machine, left, rounds, disturbed
):
    """If it looks worse by those that are left, or none is: two sessions prove no loss."""
    machine.change = noisily([1.1, 0.9, 1.0, 1.0])
    machine.runs(3, 'before')
    calm = [False] * disturbed + [True] * (3 - disturbed)

    def disturb(case, values, number):
        if case['display_name'].startswith('Ring %fabric=tcp '):
            values['bandwidth'] = 100 * left
            if not number and not calm.pop():
                case['taken_by_others'] = ['the node was disturbed: other processes took 40%']

    machine.change = disturb
    found = held(machine, machine.runs(3, 'after'))
    assert found.rounds == (FIRST_LOOK if disturbed == 3 else rounds)
    assert {one.after.series.size for one in found.difference.figures} <= {1, 3}


def test_the_rate_of_the_suite_is_spent_once(machine, upgrade):
    machine.enough = 4 * FIRST_LOOK
    after = upgrade()
    found = held(machine, after)
    assert found.rounds == 4 * FIRST_LOOK
    assert len(machine.rates) == 4 and sum(machine.rates) < SUITE_RATE
    assert sum(map(rate_of, range(1000))) == pytest.approx(SUITE_RATE)


def test_rounds_have_the_label_of_the_runs_and_teach_nothing(machine, upgrade):
    after = upgrade()
    held(machine, after)
    stored = load_history(machine.database)
    again = [run for run in choose_runs(stored, 'after') if run.summary.purpose]
    assert [run.summary.purpose for run in again] == [PURPOSE] * FIRST_LOOK
    assert not {run.uuid for run in again} & {run.uuid for run in usual_runs(stored.runs)}


# How it ends --------------------------------------------------------------------------------------


def test_a_budget_that_is_spent_ends_it(machine, upgrade, monkeypatch):
    machine.enough = 1000
    after = upgrade()
    clock = iter(range(0, 100_000, 20))
    monkeypatch.setattr(against.time, 'monotonic', lambda: next(clock))
    found = held(machine, after, 120.0)
    assert 0 < found.rounds < FIRST_LOOK
    assert found.stopped == 'the time for measuring again is over'
    machine.rounds = 0
    assert held(machine, after, 4.0).rounds == 0


def test_runs_that_used_the_budget_leave_no_time_for_rounds(machine, upgrade, capsys):
    after = upgrade()
    found = held(machine, after, 0.0)
    assert (found.rounds, found.stopped) == (0, 'the time for measuring again is over')
    assert 'measured again' not in capsys.readouterr().err
    assert conclusion_against(found, 'PASSED').endswith('is over: give it more by --budget')
    only_compared = held(machine, after, None)
    assert (only_compared.rounds, only_compared.stopped) == (0, '')


def test_a_signal_ends_it_with_what_is_known(machine, upgrade):
    after = upgrade()
    machine.ends[2] = Ended(stopped=signal.SIGINT)
    found = held(machine, after)
    assert (found.rounds, found.signal) == (1, signal.SIGINT)
    assert found.stopped == 'stopped by SIGINT'
    last = conclusion_against(found, 'PASSED')
    assert last.startswith('STOPPED: ') and last.count('SIGINT') == 1


def test_a_round_that_is_no_good_ends_it(machine, upgrade):
    after = upgrade()
    machine.ends[1] = Ended(problems=['ReFrame was killed'])
    found = held(machine, after)
    assert (found.rounds, found.is_broken) == (0, True)
    assert found.stopped == 'a round is no good: ReFrame was killed'


def test_a_round_that_is_no_good_ends_what_was_not_worse_at_first_too(machine):
    machine.change = noisily([1.035, 0.965, 1.0, 0.9, 0.88, 0.85, 1.0])
    machine.runs(3, 'before')
    machine.ends[1] = Ended(problems=['ReFrame was killed'])
    found = held(machine, machine.runs(3, 'after'))
    assert (found.difference.verdict, found.rounds, found.is_broken) == ('not worse', 0, True)
    last = conclusion_against(found, 'PASSED')
    assert last.startswith('STOPPED: NOT WORSE: ') and last.endswith('ReFrame was killed')


@pytest.mark.parametrize(
    ('word', 'factor', 'beginning'),
    [
        ('PASSED', 1, 'NOT WORSE: '),
        ('DISTURBED', 1, 'DISTURBED: some cases are no evidence; of the others: NOT WORSE: '),
        ('FAILED', 1, 'FAILED, see above; and with what was run before: NOT WORSE: '),
    ],
)
def test_the_last_line_has_the_verdict_of_the_runs_too(machine, capsys, word, factor, beginning):
    machine.runs(12, 'before')
    after = machine.runs(3, 'after')
    show_against(held(machine, after, 0.0), word)
    assert capsys.readouterr().out.splitlines()[-1].startswith(beginning)


def test_where_values_lack_no_rounds_are_said_to_decide(machine):
    machine.runs(12, 'before')
    found = held(machine, machine.runs(3, 'after'), 0.0)
    compared = found.difference
    lacking = tuple(replace(one, verdict=None, why_not='none left') for one in compared.figures)
    found = replace(found, difference=replace(compared, figures=lacking), rounds=3)
    last = conclusion_against(found, 'PASSED')
    assert last.startswith('UNDECIDED: ') and last.endswith('can be compared: run again')


@pytest.fixture
def command(machine, monkeypatch, tmp_path):
    """Makes runs and holds them against earlier ones; the exit code.

    Of each run the word of its verdict is given, of the comparison whether it is worse and what is
    in doubt.
    """

    def made(words, *options, repeat=1, factor=1.0, stopped=None):
        ended = iter(words)

        def measure(request, own, choice=None):
            word = next(ended)
            report = machine.report(request.label)
            put(machine.database, report)
            own.report.write_text(json.dumps(report))
            own.log.write_text('')
            verdict = Verdict(('a case failed',) if word == 'FAILED' else (), word == 'DISTURBED')
            return Concluded(read_reframe_report(own.report), [], verdict, stopped)

        monkeypatch.setattr(one_run, 'measure_once', measure)
        machine.runs(3, 'before')
        machine.change = slower(factor)
        before = choose_runs(load_history(machine.database), 'before')
        request = one_run.RunRequest(
            machine, None, read_options([*options]), 'after', [*options], []
        )
        code = one_run.measure_against(request, before, names(), repeat, 600.0)
        return code, [*ended]

    return made


@pytest.mark.parametrize(
    ('words', 'factor', 'code'),
    [
        (['PASSED'] * 3, 1, 0),
        (['PASSED', 'DISTURBED', 'PASSED'], 1, 3),
        (['PASSED'] * 3, 1.3, 1),
        (['DISTURBED'] * 3, 1.3, 1),
    ],
)
def test_the_exit_code_is_of_the_runs_and_of_the_comparison(
    command, machine, monkeypatch, words, factor, code
):
    looks_worse(machine, monkeypatch)
    assert command(words, repeat=3, factor=factor) == (code, [])


def test_a_run_that_failed_is_compared_but_neither_repeated_nor_measured_again(
    command, machine, monkeypatch, capsys
):
    looks_worse(machine, monkeypatch)
    assert command(['PASSED', 'FAILED', 'PASSED'], repeat=3, factor=1.3) == (1, ['PASSED'])
    assert machine.rounds == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith('FAILED, see above; and with ')


def test_a_run_that_is_stopped_ends_it(command):
    assert command(['PASSED'] * 3, repeat=3, stopped=signal.SIGTERM) == (143, ['PASSED'] * 2)


def test_what_is_worse_is_an_error_in_junit(command, machine, monkeypatch, tmp_path):
    looks_worse(machine, monkeypatch)
    file = tmp_path / 'junit.xml'
    command(['PASSED'], f'--report-junit={file}', factor=1.3)
    assert file.read_text().count('<error') == 1 and 'UNDECIDED' not in file.read_text()


def test_what_ends_without_a_verdict_is_an_error_in_junit(command, machine, monkeypatch, tmp_path):
    looks_worse(machine, monkeypatch)
    machine.ends[1] = Ended(problems=['ReFrame was killed'])
    file = tmp_path / 'junit.xml'
    assert command(['PASSED'], f'--report-junit={file}', factor=1.3) == (1, [])
    assert 'a round is no good: ReFrame was killed' in file.read_text()


# What is said before anything is measured --------------------------------------------------------


def test_runs_of_another_system_are_named(machine):
    machine.runs(1, 'before')
    stored = load_history(machine.database)
    assert [run.summary.label for run in runs_before(stored, 'before', 'toy:node')] == ['before']
    with pytest.raises(AssayError, match='before: these runs are of the system toy, not mycluster'):
        runs_before(stored, 'before', 'mycluster')
    with pytest.raises(AssayError, match="no run is meant by 'befroe': did you mean before"):
        runs_before(stored, 'befroe', 'toy')


def test_runs_that_share_no_case_are_refused(machine):
    machine.runs(1, 'before')
    stored = load_history(machine.database)
    before = choose_runs(stored, 'before')
    shared = Listed(names()[0], 'toy:node', 'mpich')
    assert_cases_in_common(stored, before, 'before', [shared, Listed('Other', 'toy:node', 'mpich')])
    with pytest.raises(
        AssayError, match=r'before: these runs share no case .* selected are Ring @toy:node.openmpi'
    ):
        assert_cases_in_common(stored, before, 'before', [Listed('Ring', 'toy:node', 'openmpi')])


@pytest.mark.parametrize(
    ('options', 'repeat', 'message'),
    [
        (['-l'], 1, '--against and --list: there would be no run to compare'),
        (['--reruns=2'], 1, r'--against and --reruns: `--repeat N` makes N runs of it'),
        (['--report-junit=x.xml'], 3, '--against, --repeat 3 and --report-junit: that file is of'),
    ],
)
def test_what_is_no_run_to_compare_is_refused(options, repeat, message):
    with pytest.raises(AssayError, match=re.escape(message).replace('\\ ', ' ')):
        reframe_options.assert_can_be_held_against(read_options(options), repeat)
    reframe_options.assert_can_be_held_against(read_options(['--report-junit=x.xml']), 1)
