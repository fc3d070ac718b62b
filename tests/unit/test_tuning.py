"""Tuning of collectives: which algorithms are offered, what is proved, and the MPIs' own rules."""

import json
import math
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from assay import AssayError, paths
from assay.mpis import FAMILIES
from assay.mpis.algorithms import OWN_CHOICE, Algorithm, Rule
from assay.results.runner import StoppedError
from assay.running.selection import Listed
from assay.tuning import measuring
from assay.tuning.choosing import Trial
from assay.tuning.measuring import Tuning
from assay.tuning.starts import OUTCOMES, Outcome, TuningJob, read_job, write_job
from assay.tuning.trials import excluded_algorithms, trials

SIZES = [8 << power for power in range(18)]
OPENMPI, MPICH, INTEL = (FAMILIES[key].algorithms for key in ('openmpi', 'mpich', 'intelmpi'))
CASE = Listed('Tune %fabric=shm %layout=packed %scale=1_node', 'generic:node', 'openmpi')

SWITCH, BCAST, ALLREDUCE = (
    f'coll_tuned_{name}' for name in ('use_dynamic_rules', 'bcast_algorithm', 'allreduce_algorithm')
)
VARIABLES = {
    SWITCH: {'value': 0, 'choices': {'0': 'false', '1': 'true'}},
    'coll_tuned_dynamic_rules_filename': {'value': ''},
    BCAST: {'value': 0, 'choices': {'0': 'ignore', '1': 'linear', '2': 'chain'}},
    ALLREDUCE: {'value': 0, 'choices': {'0': 'ignore', '1': 'basic', '2': 'ring'}},
}


class Machine:
    """Simulated starts: seconds by operation and size, with noise; algorithms that fail.

    :param factor: of (operation, algorithm's name, size) over the default.
    :param fails: what becomes of (operation, algorithm's name), if it does not run.
    :param unordered: names of algorithms that do not keep the order of ranks.
    :param variables: of the MPI.
    :param most_starts: of a job; there is no time for more.
    :param hosts: that the ranks are on.
    """

    def __init__(
        self,
        factor,
        fails=(),
        noise=0.02,
        seed=1,
        stop_after=None,
        unordered=(),
        variables=VARIABLES,
        most_starts=None,
        hosts=('n1',),
    ):
        self.hosts = hosts
        self.factor, self.fails, self.unordered = factor, dict(fails), unordered
        self.variables, self.most_starts = variables, most_starts
        self.random, self.noise = random.Random(seed), noise
        self.jobs, self.stop_after, self.rules = 0, stop_after, {}

    def job(self, tuning, wanted, starts):
        self.jobs += 1
        if self.stop_after is not None and self.jobs > self.stop_after:
            raise StoppedError('stopped by SIGINT')
        outcomes = [self.outcome(tuning, *one) for one in zip(wanted, starts, strict=True)]
        for late in outcomes[self.most_starts :] if self.most_starts else ():
            outcomes[outcomes.index(late)] = Outcome(late.name, 'was not begun')
        own = self.good('', {})
        return TuningJob('Open MPI v4.1.4', 2, self.hosts, self.variables, '', (own, *outcomes))

    def outcome(self, tuning, trial, start):
        chosen = {one.operation: one.name for one in trial.algorithms}
        for key in chosen.items():
            if key in self.fails:
                return Outcome(start.name, self.fails[key], 'Segmentation fault')
        if trial.is_of_order:
            is_wrong = {*chosen.values()} & {*self.unordered}
            return Outcome(start.name, 'gives a wrong answer' if is_wrong else 'good')
        if not trial.is_rules:
            return self.good(start.name, {(op, size): chosen.get(op) for op, size in points()})
        wanted = tuning._wanted()
        rules = [one.rule for one in wanted if one.rule]
        in_force = {
            (one.algorithm.operation, size): one.algorithm.name
            for one in rules
            for size in SIZES
            if one.least <= size and (one.end is None or size < one.end)
        }
        return self.good(start.name, in_force)

    def good(self, name, chosen):
        times = tuple(
            (op, size, 1e-6 * (1 + size / 1e4) * self.of(op, chosen.get((op, size)), size))
            for op, size in points()
        )
        return Outcome(name, 'good', '', times)

    def of(self, operation, name, size):
        factor = self.factor(operation, name, size) if name else 1.0
        return factor * self.random.lognormvariate(0, self.noise)


def points():
    return [(operation, size) for operation in ('bcast', 'allreduce') for size in SIZES]


class Signals:
    """The part of a runner that a tuning needs here."""

    signals = ()


@pytest.fixture
def tune(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, 'TUNINGS', tmp_path)

    def run(machine, seconds=None):
        tuning = Tuning(Signals(), [], CASE, 'openmpi', seconds)
        asked = []
        monkeypatch.setattr(
            tuning, '_start', lambda place, trial, *rest: asked.append(trial) or start_of(place)
        )

        def job(starts):
            wanted = asked[len(asked) - len(starts) :]
            return machine.job(tuning, wanted, starts)

        monkeypatch.setattr(tuning, '_job', job)
        return tuning.run()

    return run


def start_of(place):
    return measuring.Start(f'start-{place}')


def ring_is_better(operation, name, size):
    """From 1 KiB to 64 KiB a ring of allreduce takes two thirds; all else takes half more."""
    if (operation, name) == ('allreduce', 'ring') and 1 << 10 <= size <= 64 << 10:
        return 0.66
    return 1.5


def test_a_better_algorithm_is_proved_where_it_is_better(tune):
    found = tune(Machine(ring_is_better))
    ((one, decision),) = found.proved
    assert (one.operation, one.rule.algorithm.name) == ('allreduce', 'ring')
    assert (one.rule.least, one.rule.end) == (1 << 10, 128 << 10)
    assert 0.6 < decision.ratio < 0.7
    assert found.exit_code == 0
    assert '2048 2 4 0\n' not in found.rules.text, 'sizes between those that were measured'
    assert '1024 2 4 0\n131072 0 0 0\n' in found.rules.text


def test_where_all_are_alike_the_defaults_are_kept(tune):
    for seed in range(20):
        found = tune(Machine(lambda *_: 1.0, noise=0.1, seed=seed))
        assert not found.proved and found.rules is None
        assert found.exit_code == 0 and not found.stopped


def test_rounds_that_are_cut_short_choose_as_well(tune):
    """There are more of them; and where they never reach all algorithms, nothing is decided."""
    found = tune(Machine(ring_is_better, most_starts=4))
    assert [one.rule.algorithm.name for one, _ in found.wanted if one.rule] == ['ring']
    found = tune(Machine(ring_is_better, most_starts=1))
    assert found.stopped == 'rounds were cut short, and not all algorithms were measured'
    assert found.exit_code == 3


def test_one_late_start_with_the_rules_is_no_fault(tune):
    class Late(Machine):
        def outcome(self, tuning, trial, start):
            found = super().outcome(tuning, trial, start)
            if trial.is_rules and self.late:
                self.late -= 1
                return Outcome(start.name, 'hangs', 'it had not ended after 180 s')
            return found

    for late, is_proved in ((1, True), (2, False)):
        machine = Late(ring_is_better)
        machine.late = late
        found = tune(machine)
        assert (bool(found.proved), bool(found.fault)) == (is_proved, not is_proved)


def test_one_that_fails_is_found_among_others_and_left_out(tune):
    machine = Machine(ring_is_better, fails={('bcast', 'chain'): 'hangs'})
    found = tune(machine)
    assert [(one.algorithm.name, one.word) for one in found.excluded] == [('chain', 'hangs')]
    assert [one.rule.algorithm.name for one, _ in found.proved] == ['ring']


def test_what_gives_a_wrong_answer_is_never_offered(tune):
    machine = Machine(ring_is_better, fails={('allreduce', 'ring'): 'gives a wrong answer'})
    found = tune(machine)
    assert not found.proved
    assert [one.word for one in found.excluded] == ['gives a wrong answer']


def test_what_does_not_keep_the_order_of_ranks_is_never_offered(tune):
    found = tune(Machine(ring_is_better, unordered=['ring']))
    assert not found.proved
    assert [(one.algorithm.name, one.word) for one in found.excluded] == [
        ('ring', 'gives a wrong answer')
    ]


def test_rules_that_cost_other_sizes_are_not_written(tune):
    class Costly(Machine):
        def good(self, name, chosen):
            is_rules = 0 < len(chosen) < len(points())
            found = super().good(name, chosen)
            slow = [
                (op, size, seconds * (1.3 if is_rules and (op, size) not in chosen else 1))
                for op, size, seconds in found.times
            ]
            return Outcome(name, 'good', '', tuple(slow))

    found = tune(Costly(ring_is_better))
    assert not found.proved
    assert [told.word for one, told in found.wanted if not one.rule] == ['worse']


#: A site's own rules are in force.
RULED = {
    **VARIABLES,
    SWITCH: {'value': 1, 'choices': {'0': 'false', '1': 'true'}},
    'coll_tuned_dynamic_rules_filename': {'value': '/site.rules'},
}


def test_bad_rules_of_the_site_are_seen_and_undone(tune):
    def bad(operation, name, size):
        return 0.2 if name == OWN_CHOICE and operation == 'bcast' and size >= 1024 else 1.0

    found = tune(Machine(bad, variables=RULED))
    assert [(one.operation, one.rule.algorithm.name) for one, _ in found.proved] == [
        ('bcast', OWN_CHOICE)
    ]
    assert found.in_force == {
        SWITCH.replace('use_dynamic_rules', 'dynamic_rules_filename'): '/site.rules'
    }
    assert '1024 0 4 0\n2097152' not in found.rules.text and '1024 0 4 0\n' in found.rules.text


def test_rules_that_replace_better_ones_of_the_site_are_not_written(tune):
    class Replaced(Machine):
        """With rules in force, the site's for allreduce are gone."""

        def outcome(self, tuning, trial, start):
            found = super().outcome(tuning, trial, start)
            times = [
                (op, size, seconds * (1.5 if trial.is_rules and op == 'allreduce' else 1))
                for op, size, seconds in found.times
            ]
            return replace(found, times=tuple(times))

    found = tune(Replaced(lambda op, name, size: 0.5 if name == 'chain' else 1.0, variables=RULED))
    assert any(one.rule for one, _ in found.wanted)
    assert not found.proved and found.rules is None
    assert [one.operation for one, told in found.wanted if told.word == 'worse'] == ['allreduce']


def test_what_there_was_no_time_for_is_measured_in_the_next_job(tune):
    found = tune(Machine(ring_is_better, most_starts=6))
    tried = {
        one.name
        for line in found.journal.read_text().splitlines()
        for trial, _ in json.loads(line).get('starts', ())
        if trial['is_of_order']
        for one in [Algorithm(**trial['algorithms'][0])]
    }
    assert tried == {'basic', 'ring'}
    assert 'was not begun' not in found.journal.read_text()


@pytest.mark.parametrize('after', [2, 4, 8])
def test_a_stopped_one_goes_on_where_it_was(tune, after):
    stopped = tune(Machine(ring_is_better, stop_after=after))
    assert stopped.exit_code == 3 and 'SIGINT' in stopped.stopped
    done = tune(Machine(ring_is_better, seed=2))
    assert done.journal == stopped.journal
    assert done.rounds == measuring.MOST_ROUNDS
    assert [one.rule.algorithm.name for one, _ in done.proved] == ['ring']
    assert tune(Machine(ring_is_better, seed=3)).journal != done.journal, 'that one has its end'


def test_times_of_another_way_are_left_alone(tune):
    """Those of earlier releases between nodes were taken without a barrier behind each call."""
    hosts = 'n1', 'n2'
    stopped = tune(Machine(ring_is_better, stop_after=3, hosts=hosts))
    subject, *rounds = stopped.journal.read_text().splitlines()
    earlier = {key: value for key, value in json.loads(subject).items() if key != 'timed'}
    stopped.journal.write_text('\n'.join([json.dumps(earlier), *rounds, '']))
    assert tune(Machine(ring_is_better, seed=2, hosts=hosts)).journal != stopped.journal


def test_a_journal_with_starts_of_another_form_is_told(tune, capsys):
    stopped = tune(Machine(ring_is_better, stop_after=3))
    subject, *rounds = map(json.loads, stopped.journal.read_text().splitlines())
    for one in rounds:
        one['starts'] = [{'trial': trial, 'outcome': said} for trial, said in one['starts']]
    stopped.journal.write_text(''.join(f'{json.dumps(one)}\n' for one in (subject, *rounds)))
    capsys.readouterr()
    assert tune(Machine(ring_is_better, seed=2)).journal != stopped.journal
    assert f'{stopped.journal} cannot be read: its rounds' in capsys.readouterr().err


def test_an_entry_that_was_cut_off_is_measured_again(tune):
    stopped = tune(Machine(ring_is_better, stop_after=3))
    with stopped.journal.open('a') as file:
        file.write('{"kind": "round", "starts": [{"tri')
    done = tune(Machine(ring_is_better, seed=2))
    assert done.journal == stopped.journal and done.exit_code == 0
    assert tune(Machine(ring_is_better, seed=3)).journal != done.journal


# What a round measures ----------------------------------------------------------------------------


def offered():
    return OPENMPI.offered(VARIABLES, '')


def test_algorithms_of_several_operations_share_a_start():
    names = [
        [(one.operation, one.name) for one in trial.algorithms] for trial in trials(offered(), [])
    ]
    assert names == [
        [('allreduce', 'basic'), ('bcast', 'linear')],
        [('allreduce', 'ring'), ('bcast', 'chain')],
    ]


def test_an_algorithm_that_is_ignored_is_told():
    ring = next(one for one in offered() if one.name == 'ring')
    ignored = {f'OMPI_MCA_{ALLREDUCE}': 'it is 0 in force'}
    rounds = [[(Trial((ring,)), Outcome('a', 'good', ignored=ignored))]]
    assert [(one.algorithm, one.word) for one in excluded_algorithms(rounds)] == [
        (ring, 'is ignored')
    ]


# The MPIs -----------------------------------------------------------------------------------------


def test_open_mpi_heeds_what_is_in_force():
    env = {f'OMPI_MCA_{SWITCH}': '1', f'OMPI_MCA_{BCAST}': '2'}
    forced = {**VARIABLES, SWITCH: {'value': 1}, BCAST: {'value': 2}}
    assert OPENMPI.ignored(env, forced, '') == {}
    assert OPENMPI.ignored(env, {**forced, BCAST: {'value': 0}}, '') == {
        f'OMPI_MCA_{BCAST}': 'it is 0 in force'
    }
    assert OPENMPI.ignored(env, {**forced, SWITCH: {'value': 0}}, '') == {
        f'OMPI_MCA_{SWITCH}': 'it is 0 in force'
    }


def test_algorithms_of_open_mpi_are_measured_without_what_the_site_forces():
    segments = f'{BCAST}_segmentsize'
    site = {**RULED, BCAST: {**VARIABLES[BCAST], 'value': 2}, segments: {'value': 64}}
    assert OPENMPI.in_force(site, '') == {
        'coll_tuned_dynamic_rules_filename': '/site.rules',
        BCAST: '2',
    }
    own, linear, chain = (one for one in OPENMPI.offered(site, '') if one.operation == 'bcast')
    assert (own.name, linear.name, chain.name) == (OWN_CHOICE, 'linear', 'chain')
    assert linear.env == {
        f'OMPI_MCA_{SWITCH}': '1',
        'OMPI_MCA_coll_tuned_dynamic_rules_filename': '/dev/null',
        f'OMPI_MCA_{segments}': '0',
        f'OMPI_MCA_{BCAST}': '1',
    }
    # Open MPI 5 takes it before the file.
    assert OPENMPI.rules([Rule(linear, 0, 64)], 2, '').env[f'OMPI_MCA_{BCAST}'] == '0'


def test_open_mpi_does_not_begin_to_heed_what_was_forced_without_the_switch():
    site = {**RULED, SWITCH: VARIABLES[SWITCH], ALLREDUCE: {**VARIABLES[ALLREDUCE], 'value': 1}}
    assert OPENMPI.in_force(site, '') == {}
    linear = next(one for one in OPENMPI.offered(site, '') if one.operation == 'bcast')
    assert linear.env['OMPI_MCA_coll_tuned_dynamic_rules_filename'] == '/dev/null'
    assert OPENMPI.rules([Rule(linear, 0, 64)], 2, '').env[f'OMPI_MCA_{ALLREDUCE}'] == '0'


def test_rules_of_open_mpi_are_for_these_ranks_alone():
    chain = Algorithm('bcast', 'chain', {f'OMPI_MCA_{BCAST}': '2'})
    rules = OPENMPI.rules([Rule(chain, 1024, 4096)], 4, '')
    numbers = [int(word) for word in rules.text.split()]
    assert numbers == [
        *(1, 7, 3),
        *(0, 1, 0, 0, 0, 0),
        *(4, 3, 0, 0, 0, 0, 1024, 2, 4, 0, 4096, 0, 0, 0),
        *(5, 1, 0, 0, 0, 0),
    ]
    assert rules.in_force('/f')['OMPI_MCA_coll_tuned_dynamic_rules_filename'] == '/f'


def test_rules_of_open_mpi_6_are_json():
    """As its documentation has it; no Open MPI 6 was at hand."""
    chain, linear = (
        Algorithm('bcast', name, {f'OMPI_MCA_{BCAST}': number})
        for name, number in (('chain', '2'), ('basic_linear', '1'))
    )
    its = {'OMPI_MCA_coll_tuned_reduce_scatter_block_algorithm': '3'}
    halving = Algorithm('reduce_scatter', 'recursive_halving', its)
    given = [Rule(linear, 4096, None), Rule(chain, 1024, 4096), Rule(halving, 0, 64)]
    rules = OPENMPI.rules(given, 4, 'Open MPI v6.0.0, package: x\n')
    of_ranks = {'comm_size_min': 4, 'comm_size_max': 4}

    def entry(least, last, number):
        tree = {'faninout': 4, 'seg_size': 0}
        return {'msg_size_min': least, 'msg_size_max': last, 'alg': number, **tree}

    assert json.loads(rules.text) == {
        'rule_file_version': 3,
        'module': 'tuned',
        'collectives': {
            'reduce_scatter_block': [{**of_ranks, 'rules': [entry(0, 255, 3)]}],
            'bcast': [{**of_ranks, 'rules': [entry(1024, 4095, 2), entry(4096, 'inf', 1)]}],
        },
    }
    assert not rules.is_script and not rules.comment
    classic = OPENMPI.rules(given, 4, 'Open MPI v5.0.9, package: x\n')
    assert classic.text.startswith('2\n') and classic.comment


def test_open_mpi_counts_all_blocks_of_an_alltoall():
    its = {'OMPI_MCA_coll_tuned_alltoall_algorithm': '2'}
    rules = OPENMPI.rules([Rule(Algorithm('alltoall', 'pairwise', its), 64, None)], 4, '')
    assert '256 2 4 0' in rules.text


SELECTION = {
    'collective=bcast': {
        'comm_type=intra': {'algorithm=MPIR_Bcast_intra_binomial': {}},
        'comm_type=inter': {'algorithm=MPIR_Bcast_inter_remote_send_local_bcast': {}},
    },
    'collective=gather': {'comm_type=intra': {'algorithm=MPIR_Gather_intra_binomial': {}}},
}
#: Between the ranks of all nodes alone: on the communicators that it makes MPICH would end.
OF_NODES = {
    'comm_hierarchy=parent': {'algorithm=MPIR_Bcast_intra_smp': {}},
    'comm_hierarchy=any': SELECTION['collective=bcast']['comm_type=intra'],
}
ANSWERS = '\n'.join(
    [
        'algorithm=MPIR_Bcast_intra_smp',
        'algorithm=MPIR_Bcast_allcomm_nb',
        'algorithm=MPIR_Bcast_intra_tree',
        json.dumps(SELECTION, separators=(',', ':')),
        'algorithm=MPIR_Gather_allcomm_nb',
    ]
)


def test_mpich_offers_what_a_selection_can_name():
    variables = {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': {'value': 0}}
    found = MPICH.offered(variables, ANSWERS)
    assert [one.name for one in found] == ['binomial', 'nb', 'smp']
    env = {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'smp'}
    assert MPICH.ignored(env, variables, '')
    assert not MPICH.ignored(env, {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': {'value': 3}}, '')


def test_mpich_is_measured_without_what_the_site_forces():
    name, file = 'MPIR_CVAR_BCAST_INTRA_ALGORITHM', 'MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE'
    # MPICH 4.0.2 tells of all its texts that they are empty.
    site = {name: {'value': 3}, file: {'value': ''}}
    answers = f'{ANSWERS}\n{file}=/site.json\n'
    assert MPICH.in_force(site, answers) == {name: '3', file: '/site.json'}
    set_by_name = f'{answers}{name}=scatter_ring_allgather\n'
    assert MPICH.in_force(site, set_by_name)[name] == 'scatter_ring_allgather'
    assert not MPICH.ignored({file: '/site.json'}, site, '')
    own = MPICH.offered(site, answers)[-1]
    assert (own.name, own.env) == (OWN_CHOICE, {name: 'auto', file: ''})
    assert not MPICH.ignored(own.env, {name: {'value': 0}, file: {'value': ''}}, '')
    assert MPICH.ignored(own.env, site, '')
    rules = MPICH.rules([Rule(own, 1024, 4096)], 2, ANSWERS)
    assert rules.env == {name: 'auto', file: '{file}'}
    default = SELECTION['collective=bcast']['comm_type=intra']
    found = json.loads(rules.text)['collective=bcast']['comm_type=intra']['comm_size<=2']
    assert found['avg_msg_size<=4095'] == default


def test_a_selection_of_mpich_asks_for_these_ranks_and_sizes():
    smp = Algorithm('bcast', 'smp', {})
    text = MPICH.rules([Rule(smp, 1024, 4096)], 2, ANSWERS).text
    own = SELECTION['collective=bcast']['comm_type=intra']
    found = json.loads(text)
    assert list(found['collective=bcast']['comm_type=intra'].items()) == [
        ('comm_size<=1', own),
        (
            'comm_size<=2',
            {
                'avg_msg_size<=1023': own,
                'avg_msg_size<=4095': OF_NODES,
                'avg_msg_size=any': own,
            },
        ),
        ('comm_size=any', own),
    ]
    assert found['collective=gather'] == SELECTION['collective=gather']
    assert (
        found['collective=bcast']['comm_type=inter']
        == SELECTION['collective=bcast']['comm_type=inter']
    )


def test_rules_of_mpich_that_follow_each_other_are_both_there():
    algorithms = [Algorithm('bcast', name, {}) for name in ('smp', 'nb')]
    rules = [Rule(algorithms[0], 0, 1024), Rule(algorithms[1], 1024, 4096)]
    found = json.loads(MPICH.rules(rules, 2, ANSWERS).text)
    assert found['collective=bcast']['comm_type=intra']['comm_size<=2'] == {
        'avg_msg_size<=1023': OF_NODES,
        'avg_msg_size<=4095': {'algorithm=MPIR_Bcast_allcomm_nb': {}},
        'avg_msg_size=any': SELECTION['collective=bcast']['comm_type=intra'],
    }


def test_an_mpich_without_a_selection_is_told():
    with pytest.raises(AssayError, match='holds no selection'):
        MPICH.offered({}, 'algorithm=MPIR_Bcast_intra_smp')


def test_intel_mpi_has_numbers_and_ranges():
    answers = (
        'I_MPI_ADJUST_BCAST \n  MPI Datatype:\n    MPI_CHAR\n    range: 0-2\n'
        'I_MPI_ADJUST_GATHER \n  MPI Datatype:\n    range: 0-1\n'
    )
    found = INTEL.offered({}, answers)
    assert INTEL.in_force({}, f'{answers}I_MPI_ADJUST_BCAST=2\n') == {'I_MPI_ADJUST_BCAST': '2'}
    assert [(one.operation, one.name) for one in found] == [
        ('bcast', '1'),
        ('bcast', '2'),
        ('gather', '1'),
    ]
    said = 'MPI startup(): Incorrect algorithm: BCAST=2, will be ignored\n'
    assert INTEL.ignored(found[1].env, {}, said) and not INTEL.ignored(found[0].env, {}, '')
    rules = INTEL.rules([Rule(found[1], 1024, None), Rule(found[0], 0, 512)], 4, answers)
    assert rules.env == {'I_MPI_ADJUST_BCAST': '1:0-511@4-4;2:1024-2147483647@4-4'}
    assert rules.is_script and "export I_MPI_ADJUST_BCAST='1:0" in rules.text


def test_a_time_that_is_not_finite_is_refused(tmp_path):
    own = Outcome('', 'good', times=(('bcast', 8, math.inf),))
    write_job(tmp_path / 'starts', TuningJob('Open MPI v4.1.4', 2, ('n1',), {}, '', (own,)))
    with pytest.raises(AssayError, match='cannot be read: Infinity is not a measured value'):
        read_job(tmp_path / 'starts')


def test_a_job_whose_times_cannot_be_read_is_not_released(tmp_path):
    left, released = tmp_path / 'left', []
    left.mkdir()
    case = SimpleNamespace(check='Tune', result='pass')
    case.files = SimpleNamespace(output=str(left), stage=None)
    runner = SimpleNamespace(
        assert_not_stopped=lambda: None,
        begin=lambda: SimpleNamespace(folder=tmp_path),
        run=lambda *_: SimpleNamespace(stopped=None, run=SimpleNamespace(last_cases=[case])),
        release=lambda *given: released.append(given),
    )
    tuning = Tuning(runner, [], CASE, 'openmpi', None)
    with pytest.raises(AssayError, match='what came of the starts cannot be read'):
        tuning._job([start_of(0)])
    assert not released
    job = TuningJob('Open MPI v4.1.4', 2, ('n1',), {}, '', ())
    write_job(left / OUTCOMES, job)
    assert tuning._job([start_of(0)]) == job and len(released) == 1
