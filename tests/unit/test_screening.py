"""Screenings: who is named, who is not, and what becomes of files that are damaged."""

import json
import math
import os
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pytest

from assay import AssayError, paths
from assay.commands import main as cli
from assay.config import settings
from assay.job.launch import tell_names
from assay.report import screening as report
from assay.results.runner import Concluded
from assay.results.verdict import judge_run
from assay.running import reframe_options
from assay.screening import kept, measured, measuring, outputs
from assay.screening.findings import Evidence, ScreeningFinding
from assay.screening.links import _fast_to_each_other
from assay.screening.measured import Links, read_screening, write_screening
from assay.screening.measuring import job_options
from assay.screening.outputs import collect
from assay.screening.verdict import judge_screening
from assay.screening.where import Where, choose_where, nodes_to_screen, why_left_out
from reports import LOG, cases, run_of
from screenings import ALL, BEGUN, of_few, screening, slow_links
from slurms import commands_of_slurm, node

SLURM = Where('s:p', 'slurm', False, 'openmpi', 'tcp')


def named(now, earlier=()):
    return [(one.kind, one.members) for one in judge_screening(now, earlier).findings]


@pytest.mark.parametrize('n', [2, 3, 4, 8, 16, 64])
def test_nobody_is_named_where_all_are_sound(n):
    past = [screening(n, day=day) for day in range(5)]
    for day in range(5, 10):
        assert named(screening(n, day=day), past) == []
        assert named(screening(n, day=day)) == []


def test_a_node_is_held_against_its_peers():
    assert named(screening(slow={('dgemm alone', 3): 0.75})) == [('node', ('n3',))]


def test_a_node_is_held_against_its_own_past():
    past = [screening(day=day) for day in range(5)]
    now = screening(day=5, slow={('triad together', 3): 0.95})
    assert named(now) == []
    assert named(now, past) == [('node', ('n3',))]
    # Who always was so is as it was.
    past = [screening(day=day, slow={('triad together', 3): 0.95}) for day in range(5)]
    assert named(now, past) == []


def test_a_past_of_too_few_screenings_shows_nothing():
    now = screening(day=5, slow={('triad together', 3): 0.95})
    assert named(now, [screening(day=day) for day in range(2)]) == []


def test_nodes_of_two_generations_are_not_held_against_each_other():
    old = {i: {'processor': 'old'} for i in range(8)}
    slow = {(name, i): 0.6 for name in ALL for i in range(8)}
    assert named(screening(slow=slow, facts=old)) == []
    slow['dgemm alone', 2] = 0.4
    assert named(screening(slow=slow, facts=old)) == [('node', ('n2',))]


def lapse(day=0, sweeps=(5,), node=7, figure='dgemm together'):
    """A screening in which a node is slow in single sweeps."""
    left = np.ones(8)
    left[list(sweeps)] = 0.5
    return screening(day=day, slow={(figure, node): left})


def test_who_was_slow_once_is_a_suspect():
    verdict = judge_screening(lapse(), [screening(day=2)])
    (found,) = verdict.findings
    assert (found.kind, found.members) == ('suspect', ('n7',))
    assert '1 of 8 sweeps' in found.evidence[0].text
    assert verdict.exit_code == 3 and not verdict.drain


def test_who_is_slow_more_often_than_others_is_bad():
    assert named(lapse(sweeps=(2, 4, 5))) == [('node', ('n7',))]
    (found,) = judge_screening(lapse(day=3), [lapse(), lapse(day=2)]).findings
    assert (found.kind, found.members) == ('node', ('n7',))
    assert found.evidence[0].text.endswith('; 3 times in 48, others 0 in 720')
    assert named(lapse(day=3), [lapse(node=6), lapse(node=5, day=2)]) == [('suspect', ('n7',))]


def test_where_many_are_slow_at_times_nobody_is_bad():
    past = [
        lapse(day=2 * day, node=node, sweeps=(node % 8, (node + 3) % 8))
        for day, node in enumerate(range(16))
    ]
    assert named(lapse(day=40, sweeps=(2, 5)), past) == [('suspect', ('n7',))]


def test_one_moment_in_two_figures_is_one():
    now = lapse()
    for sweep in (5, 5, 4, 3):
        assert named(now) == [('suspect', ('n7',))]
        now.values['triad together'][7, sweep] *= 0.5
    assert named(now) == [('node', ('n7',))]


def test_alone_and_together_are_different_moments():
    now = lapse(sweeps=(5, 6))
    assert named(now) == [('suspect', ('n7',))]
    now.values['dgemm alone'][7, 5] *= 0.5
    assert named(now) == [('node', ('n7',))]


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('n', [8, 64])
def test_a_node_that_slows_down_as_it_gets_hot(n, seed):
    left = 1 - np.linspace(0.05, 0.45, 8)
    assert ('node', ('n3',)) in named(screening(n, seed, slow={('dgemm together', 3): left}))


def test_who_is_slow_in_little_more_than_half_of_its_sweeps_is_a_suspect_at_least():
    left = np.array([0.4, 1, 0.5, 0.85, 1, 0.7, 0.6, 1])
    verdict = judge_screening(screening(64, slow={('dgemm together', 3): left}))
    assert {one.members for one in verdict.findings} == {('n3',)} and verdict.exit_code


def test_what_else_a_bad_node_does_is_evidence():
    now = lapse()
    now.values['frequency alone'][7] *= 0.7
    (found,) = judge_screening(now).findings
    assert found.kind == 'node' and len(found.evidence) == 2


def test_peers_that_happen_to_be_alike_make_no_outlier():
    now = screening(8, noise=1e-4, sweeps=8)
    for values in now.values.values():
        values[:] = 1e9 * np.exp(np.random.default_rng(2).normal(0, 0.002, values.shape))
    now.values['triad alone'][3] = 1e9 * np.exp([-0.5, 0.1, -0.25, -0.22, -0.18, -0.05, 0.3, -0.4])
    assert named(now) == [('suspect', ('n3',))]
    now.values['triad alone'][3] = 0.75e9
    assert named(now) == [('node', ('n3',))]


def test_what_others_took_is_no_evidence():
    now = screening(slow={('dgemm together', 7): 0.5})
    now.taken['together'][7] = 0.5
    verdict = judge_screening(now)
    assert [(one.kind, one.members) for one in verdict.findings] == [('disturbed', ('n7',))]
    assert verdict.exit_code == 3 and not verdict.drain


@pytest.mark.parametrize(
    'fault, words',
    [
        ({'uncorrected': 2}, '2 uncorrected errors'),
        ({'corrected': 5, 'new': 1}, '1 errors during'),
        ({'wrong': 'a matrix product'}, 'a matrix product came out wrong'),
        ({'placement': 'n2 has 1 core'}, 'n2 has 1 core'),
    ],
)
def test_what_is_counted_needs_no_peers(fault, words):
    now = screening(3)
    now = replace(now, faults=({}, {}, fault))
    (found,) = judge_screening(now).findings
    assert (found.kind, found.members) == ('node', ('n2',))
    assert words in found.evidence[0].text and found.chance is None


def went_down(n, *numbers, switches=None):
    down = {'link': 'its link (eth0) went down once during the screening'}
    faults = tuple(down if i in numbers else {} for i in range(n))
    return replace(screening(n, switches=switches), faults=faults)


@pytest.mark.parametrize(('n', 'numbers'), [(16, (3,)), (16, (3, 5, 8, 9)), (2, (1,))])
def test_links_of_few_nodes_are_their_own(n, numbers):
    assert named(went_down(n, *numbers)) == [('node', (f'n{i}',)) for i in numbers]


@pytest.mark.parametrize(('n', 'numbers'), [(8, (1, 3, 6)), (2, (0, 1)), (8, range(8))])
def test_links_of_many_nodes_that_went_down_drain_none(n, numbers):
    verdict = judge_screening(went_down(n, *numbers))
    (found,) = verdict.findings
    assert (found.kind, found.members) == ('group', tuple(f'n{i}' for i in numbers))
    assert not verdict.drain and verdict.exit_code == 1 and found.chance is None
    assert f'links of {len(numbers)} of {n} nodes went down; n{numbers[0]}: its' in (
        found.evidence[0].text
    )


def test_ports_of_many_nodes_drain_none():
    slow = {'ports': 'mlx5_1:1 runs at 100 of 200 Gbit/s'}
    now = screening(8)
    (found,) = judge_screening(replace(now, faults=({}, slow, *[{}] * 6))).findings
    assert (found.kind, found.members) == ('node', ('n1',))
    down = {'link': 'its link (mlx5_0:1) went down once during the screening'}
    faults = (slow | down, slow, slow, *[{}] * 5)
    found = {one.kind: one for one in judge_screening(replace(now, faults=faults)).findings}
    assert found['node'].members == ('n0',) and found['node'].evidence[0].figure == 'link'
    assert found['group'].members == ('n0', 'n1', 'n2')
    assert found['group'].evidence[0].text == (
        'network ports of 3 of 8 nodes are slow, down or idle; n0: mlx5_1:1 runs at 100 of 200 '
        'Gbit/s'
    )


def test_links_of_all_nodes_of_a_switch_are_the_switchs():
    switches = {'s1': ('n1', 'n2'), 's2': ('n3', 'n4', 'n5'), 'spine': ('n1', 'n2', 'n6')}
    verdict = judge_screening(went_down(16, 1, 2, 4, switches=switches))
    assert [(one.kind, one.members, one.name) for one in verdict.findings] == [
        ('node', ('n4',), ''),
        ('group', ('n1', 'n2'), 's1'),
    ]
    (found,) = judge_screening(went_down(16, 1, 2, 6, switches=switches)).findings
    assert (found.members, found.name) == (('n1', 'n2', 'n6'), 'spine')


def test_who_shares_a_switch_that_went_down_is_still_bad_for_what_is_its_own():
    now = went_down(8, *range(8))
    faults = ({**now.faults[0], 'wrong': 'a matrix product'}, *now.faults[1:])
    found = {one.kind: one for one in judge_screening(replace(now, faults=faults)).findings}
    assert found['node'].members == ('n0',)
    assert [one.figure for one in found['node'].evidence] == ['answers']
    assert found['group'].members == now.nodes


def test_corrected_errors_of_long_ago_are_no_fault():
    assert named(replace(screening(3), faults=({}, {}, {'corrected': 5, 'new': 0}))) == []


def test_a_node_that_is_slow_to_all_others():
    assert named(slow_links(screening(8), lambda a, b: 5 in (a, b))) == [('node', ('n5',))]


def test_a_pair_is_named_if_it_is_slow_alone_as_well():
    def is_slow(a, b):
        return (a, b) == (2, 5)

    assert named(slow_links(screening(8), is_slow, alone=True)) == [('pair', ('n2', 'n5'))]
    assert named(slow_links(screening(8), is_slow)) == []


def test_a_slow_pair_makes_no_node_of_few_pairs_bad():
    now = slow_links(screening(8), lambda a, b: (a, b) == (2, 5), times=30, alone=True)
    # As where nodes share CPUs: those of two have two pairs each.
    kept_pairs = np.array(
        [{a, b} & {2, 5} == set() or {a, b} <= {2, 5, 0} for a, b in now.links.ends]
    )
    links = Links(*(getattr(now.links, name)[kept_pairs] for name in Links.__dataclass_fields__))
    assert named(replace(now, links=links)) == [('pair', ('n2', 'n5'))]


def test_a_slow_pair_is_of_its_bad_node():
    now = slow_links(screening(8), lambda a, b: 5 in (a, b), alone=True)
    assert named(now) == [('node', ('n5',))]


@pytest.mark.parametrize('is_known', [True, False])
def test_nodes_that_are_slow_to_all_but_each_other(is_known):
    switches = {f's{i // 4}': tuple(f'n{j}' for j in range(i, i + 4)) for i in range(0, 16, 4)}
    now = screening(switches=switches if is_known else None)
    now = slow_links(now, lambda a, b: (a // 4 == 1) != (b // 4 == 1))
    (found,) = judge_screening(now).findings
    assert (found.kind, found.members) == ('group', ('n4', 'n5', 'n6', 'n7'))
    assert found.name == ('s1' if is_known else '')
    assert not judge_screening(now).drain


def test_a_link_that_was_slow_in_one_tournament_only_is_not_confirmed():
    now = screening(8)
    latency = now.links.latency.copy()
    latency[[5 in pair for pair in now.links.ends], 0] *= 30
    assert named(replace(now, links=replace(now.links, latency=latency))) == []


def test_nor_is_a_pair():
    now = slow_links(screening(8), lambda a, b: (a, b) == (2, 5), times=30, alone=True)
    latency = now.links.latency.copy()
    latency[:, 1] = screening(8).links.latency[:, 1]
    assert named(replace(now, links=replace(now.links, latency=latency))) == []


def test_a_node_that_is_slow_in_fewer_than_half_of_the_sweeps_is_not_slow_for_good():
    now = screening(sweeps=3)
    now.values['triad alone'][:] *= np.exp([0, -0.5, -1])  # all of them alike
    now.values['triad alone'][4] *= np.exp([1, -0.4, 0.1])
    assert named(now) == []


@pytest.mark.parametrize(
    ('n', 'is_bandwidth'),
    [*((n, False) for n in (3, 4, 5, 8, 16)), (3, True), (4, True), (5, True)],
)
def test_one_slow_node_of_few_is_named(n, is_bandwidth):
    now = of_few(screening(n, day=9), [1], 20, is_bandwidth)
    assert named(now) == [('node', ('n1',))]
    past = [screening(n, day=day) for day in range(3)]
    assert named(now, past) == [('node', ('n1',))]


@pytest.mark.parametrize(
    ('n', 'apart'), [*((n, False) for n in (4, 5, 6, 8, 16)), (4, True), (5, True), (6, True)]
)
def test_two_slow_nodes_of_few_are_named(n, apart):
    """Of four, five of six pairs are slow, and the one that is not tells."""
    now = of_few(screening(n, day=9), [0, 1], 20, apart=apart)
    assert named(now) == [('node', ('n0',)), ('node', ('n1',))]
    past = [of_few(screening(n, day=day), [], apart=apart) for day in range(3)]
    assert named(now, past) == [('node', ('n0',)), ('node', ('n1',))]


@pytest.mark.parametrize('past', [0, 3])
@pytest.mark.parametrize(('n', 'is_told'), [(5, False), (6, False), (7, True), (8, True)])
def test_three_slow_nodes_are_no_groups_that_have_a_node_in_common(n, past, is_told):
    """Two groups have fewer parts than three nodes, but then no two of them are seen to be fast."""
    now = of_few(screening(n, day=9), [0, 1, 2], 5)
    told = named(now, [screening(n, day=day) for day in range(past)])
    assert [one for one in told if one[0] != 'machine'] == [
        ('node', (f'n{i}',)) for i in range(3 if is_told else 0)
    ]


def test_what_a_few_nodes_show_is_told_in_words():
    (found,) = judge_screening(of_few(screening(4), [1])).findings
    assert found.evidence[0].text == '101 times as long as between the 3 other pairs'
    (found,) = judge_screening(of_few(screening(3), [1], is_bandwidth=True)).findings
    assert found.evidence[0].text == '99% less than between n0 and n2'


@pytest.mark.parametrize('past', [0, 3])
def test_a_slow_pair_of_few_nodes(past):
    before = [screening(4, day=day) for day in range(past)]
    slow = slow_links(screening(4, day=9), lambda a, b: (a, b) == (1, 2), 30, alone=True)
    assert named(slow, before) == [('pair', ('n1', 'n2'))]
    # As fast as others when nobody else sends, or nobody knows.
    assert named(slow_links(slow, lambda a, b: True, 1, alone=True), before) == []


def test_of_three_nodes_a_slow_pair_may_be_both_of_its_nodes():
    now = slow_links(screening(3), lambda a, b: (a, b) == (1, 2), 30)
    (found,) = judge_screening(now).findings
    assert not judge_screening(now).drain and judge_screening(now).exit_code == 1
    words = 'the link between n1 and n2, or both of them, is bad: more nodes would tell'
    assert report.blame_in_words(found) == words


def test_where_a_node_was_in_one_pair_alone_nobody_can_say_which_of_the_two_it_is():
    (found,) = judge_screening(of_few(screening(3), [0], apart=True)).findings
    words = 'n0, or the link between n0 and n1, is bad: more nodes would tell'
    assert report.blame_in_words(found) == words


def test_two_nodes_are_held_against_their_past():
    past = [screening(2, day=day) for day in range(3)]
    now = of_few(screening(2, day=9), [0])
    assert named(now) == []
    (found,) = judge_screening(now, past).findings
    words = 'n0, n1, or the link between them, is bad: more nodes would tell'
    assert report.blame_in_words(found) == words
    assert [one.text for one in found.evidence] == ['99.9 times as long as in 3 earlier screenings']


def test_everything_is_slower_only_if_no_node_explains_it():
    past = [screening(4, day=day) for day in range(3)]
    for bad, found in ([1], [('node', ('n1',))]), ([0, 1, 2, 3], [('machine', ())]):
        assert named(of_few(screening(4, day=9), bad), past) == found
    # All of three are slow in one way or another: that is everything.
    now = of_few(screening(3, day=9), [0, 1])
    past = [screening(3, day=day) for day in range(3)]
    assert ('machine', ()) in named(now, past) and not judge_screening(now, past).drain


@pytest.mark.parametrize(('n', 'past'), [(2, 3), (3, 0), (3, 3), (4, 3)])
@pytest.mark.parametrize('figure', ALL)
def test_what_a_node_of_few_gives(n, past, figure):
    before = [screening(n, day=day) for day in range(past)]
    bad = range(2 if n == 4 else 1)
    now = screening(n, day=9, slow={(figure, one): 0.5 for one in bad})
    assert named(now, before) == [('node', (f'n{one}',)) for one in bad]


@pytest.mark.parametrize(
    ('slow_sweeps', 'kinds'), [(4, []), (5, ['suspect']), (6, ['node']), (8, ['node'])]
)
def test_a_node_of_few_is_bad_against_its_past_only_if_it_is_slow_for_good(slow_sweeps, kinds):
    """Clocks that go up and down by themselves move the middle of eight sweeps by chance."""
    past = [screening(3, day=day) for day in range(3)]
    now = screening(3, day=9)
    now.values['dgemm alone'][1, :slow_sweeps] *= 0.7
    assert [kind for kind, _ in named(now, past)] == kinds


@pytest.mark.parametrize('n', [2, 4])
def test_of_two_halves_nobody_can_say_which_is_as_it_should_be(n):
    half = range(n // 2)
    verdict = judge_screening(screening(n, slow={('dgemm alone', one): 0.5 for one in half}))
    assert [(one.kind, one.members) for one in verdict.findings] == [
        ('suspect', (f'n{one}',)) for one in half
    ]
    assert verdict.exit_code == 3


def test_a_node_of_few_that_others_disturb_is_no_evidence():
    now = screening(3, slow={('dgemm alone', 1): 0.5})
    now.taken['alone'][1] = 0.5
    assert named(now) == [('disturbed', ('n1',))]


@pytest.mark.parametrize('by', [1.4, 1.9])
def test_a_switch_further_away_is_no_fault_of_few_nodes(by):
    assert named(of_few(screening(3), [1], by)) == []
    assert named(slow_links(screening(4), lambda a, b: (a < 2) != (b < 2), 20)) == []


def test_everything_is_slower_than_before():
    past = [screening(day=day) for day in range(8)]
    now = screening(day=8, slow={('triad alone', i): 0.7 for i in range(16)})
    (found,) = judge_screening(now, past).findings
    assert found.kind == 'machine'
    assert [one.figure for one in found.evidence] == ['triad alone']


def of_one_machine(now):
    """A screening of nodes that share CPUs."""
    alone = {name: values for name, values in now.values.items() if name.endswith('alone')}
    return replace(now, values=alone)


@pytest.mark.parametrize(('times', 'kinds'), [(2, []), (30, ['machine'])])
def test_nodes_that_share_cpus_differ_from_time_to_time(times, kinds):
    past = [of_one_machine(screening(day=day)) for day in range(6)]
    now = slow_links(of_one_machine(screening(day=6)), lambda a, b: True, times=times)
    assert [one.kind for one in judge_screening(now, past).findings] == kinds


def joined(n, of=8):
    """Switches of so many nodes each."""
    return {
        f's{i // of}': tuple(f'n{j}' for j in range(i, min(i + of, n))) for i in range(0, n, of)
    }


def test_what_joins_two_switches_is_slower_than_before():
    """Nobody can say which of two halves is to blame, but it is what lies between them."""
    past = [screening(day=day, switches=joined(16)) for day in range(5)]
    now = screening(day=5, switches=joined(16))
    (found,) = judge_screening(slow_links(now, lambda a, b: (a < 8) != (b < 8)), past).findings
    assert (found.kind, found.members, found.name) == ('uplinks', (), 's0, s1')
    assert [one.figure for one in found.evidence] == ['latency between switches']
    blamed = report.blame_in_words(found)
    assert blamed == 'what joins the switches s0, s1 is slower than before'
    # As where pairs behind one switch wait for those that are slow.
    worse = slow_links(now, lambda a, b: (a < 8) == (b < 8), times=2)
    worse = slow_links(worse, lambda a, b: (a < 8) != (b < 8), times=30)
    (found,) = judge_screening(worse, past).findings
    assert found.kind == 'uplinks'
    assert [one.figure for one in found.evidence] == [
        'latency between switches',
        'latency behind one switch',
    ]
    # If their nodes reach each other as slowly, it is not.
    (found,) = judge_screening(slow_links(now, lambda a, b: True), past).findings
    assert found.kind == 'machine'
    assert [one.figure for one in found.evidence] == ['latency']


@pytest.mark.parametrize('known', ['never', 'now', 'before'])
def test_where_switches_were_not_known_each_time_all_pairs_tell(known):
    past = [
        screening(day=day, switches=joined(16) if known == 'before' else None) for day in range(5)
    ]
    now = screening(day=5, switches=joined(16) if known == 'now' else None)
    (found,) = judge_screening(slow_links(now, lambda a, b: (a < 8) != (b < 8)), past).findings
    assert found.kind == 'machine'
    assert [one.figure for one in found.evidence] == ['latency']


def test_one_slow_switch_of_three_is_that_switch_and_not_what_joins_all():
    past = [screening(24, day=day, switches=joined(24)) for day in range(5)]
    now = screening(24, day=5, switches=joined(24))
    (found,) = judge_screening(slow_links(now, lambda a, b: (a < 8) != (b < 8)), past).findings
    assert (found.kind, found.name) == ('group', 's0')


def test_a_node_that_is_different():
    facts = {i: {'kernel': '6.2'} for i in range(16)}
    facts[3]['memory'] = 224 << 30
    facts[5]['kernel'] = '6.1'
    facts[6]['memory'] = (256 << 30) - (1 << 20)  # kernels differ by as much
    found = {one.members: one for one in judge_screening(screening(facts=facts)).findings}
    assert {*found} == {('n3',), ('n5',)}
    assert {one.kind for one in found.values()} == {'different'}
    (memory,), (kernel,) = (found[name,].evidence for name in ('n3', 'n5'))
    assert memory.text == '224.0 GiB; 15 others have 256.0 GiB'
    assert kernel.text == '6.1; 15 others have 6.2'


DAEMON = {'share': 0.0103, 'longest': 0.0101, 'process_share': 0.0098, 'process': 'stray'}


def interrupted(n, found, **changes):
    """Screening of n nodes, some of which lose time to interruptions."""
    now = screening(n, **changes)
    return replace(now, noise=tuple(found.get(i, one) for i, one in enumerate(now.noise)))


def noisy(now):
    """The nodes whose noise is told, of a screening in which nothing else is found."""
    verdict = judge_screening(now)
    assert verdict.findings == () and verdict.exit_code == 0
    return {*verdict.noise}


@pytest.mark.parametrize('n', [3, 4, 16])
def test_a_stray_daemon_is_told_and_decides_nothing(n):
    now = interrupted(n, {1: DAEMON})
    assert noisy(now) == {'n1'}
    for told in ('1.0%', '10.1 ms', 'stray'):
        assert told in judge_screening(now).noise['n1']


def test_what_took_the_time_of_a_core_is_told_apart():
    parts = {'all': 0.002, 'others': 0.009, 'interrupts': 0.0007, 'stolen': 0.0}
    now = interrupted(4, {1: DAEMON | parts})
    assert noisy(now) == {'n1'}
    words = judge_screening(now).noise['n1']
    assert '(0.9% to other processes, 0.1% to interrupts, 0.1% to the kernel)' in words
    assert 'all cores lost 0.20%' in words
    stolen = judge_screening(interrupted(4, {1: DAEMON | parts | {'stolen': 0.005}})).noise['n1']
    assert '0.5% to the hypervisor, 0.0% to the kernel' in stolen


def test_parts_of_noise_are_means_of_the_sweeps():
    parts = {
        'all': [0.0, 0.02],
        'others': [0.01, 0.03],
        'interrupts': [0.0, 0.01],
        'stolen': [0, 0],
    }
    entry = {'noise': {'share': [0.02, 0.04], 'longest': [0.001, 0.002], 'cpu': [0, 1], **parts}}
    noise = outputs._noise(entry, has_own_cpus=True)
    means = {'all': 0.01, 'others': 0.02, 'interrupts': 0.005, 'stolen': 0.0}
    assert noise == pytest.approx({'share': 0.03, 'longest': 0.002, **means})


@pytest.mark.parametrize('key', ['share', 'process'])
def test_cores_and_processes_are_compared_each_by_itself(key):
    """Interrupts have no process; of nodes that share CPUs only processes are known."""
    noise = {name: value for name, value in DAEMON.items() if name.startswith(key)}
    if key == 'share':
        noise['longest'] = 0.01
    ((node, words),) = judge_screening(interrupted(4, {3: noise})).noise.items()
    assert node == 'n3' and ('stray' in words) == (key == 'process')


@pytest.mark.parametrize(
    ('n', 'noise'),
    [
        (2, {1: DAEMON}),  # either may be as it should be
        (4, dict.fromkeys(range(4), DAEMON)),  # they are meant to have it
        (4, {1: DAEMON, 2: DAEMON}),
        (16, dict.fromkeys(range(8), DAEMON)),
        (4, {1: DAEMON | {'share': 0.0049, 'process_share': 0.0049}}),
        (4, {i: DAEMON | {'share': 0.002 * 2**i, 'process_share': 0.0} for i in range(4)}),
        (4, {i: {} for i in range(4)}),
        (4, {i: {} for i in range(3)}),
    ],
)
def test_noise_that_is_no_single_nodes(n, noise):
    assert noisy(interrupted(n, noise)) == set()


def test_of_many_nodes_a_quarter_may_be_noisy():
    assert noisy(interrupted(16, dict.fromkeys((3, 7, 11), DAEMON))) == {'n3', 'n7', 'n11'}


@pytest.mark.parametrize(
    ('kind', 'slow', 'taken'),
    [
        ('node', 0.5, 0.0),
        ('suspect', np.array([1, 1, 1, 1, 1, 0.5, 1, 1]), 0.0),
        ('disturbed', 0.5, 0.3),
    ],
)
def test_noise_of_a_slow_node_is_its_likely_reason(kind, slow, taken):
    now = screening(slow={('dgemm alone', 7): slow})
    now.taken['alone'][7] = taken
    (alone,) = judge_screening(now).findings
    verdict = judge_screening(replace(now, noise=(*now.noise[:7], DAEMON, *now.noise[8:])))
    (found,) = verdict.findings
    assert found.kind == kind and 'stray' in found.reason and not verdict.noise
    assert replace(found, reason='') == alone
    assert report.evidence_lines(found)[-1] == f'likely reason: {found.reason}'


@pytest.mark.parametrize('taken', [0.0, 0.3])
def test_noise_is_no_reason_of_what_is_counted(taken):
    now = interrupted(16, {7: DAEMON})
    now.taken['alone'][7] = taken
    verdict = judge_screening(replace(now, faults=({},) * 7 + ({'uncorrected': 3},) + ({},) * 8))
    (found,) = verdict.findings
    assert found.kind == 'node' and not found.reason and {*verdict.noise} == {'n7'}


def test_a_process_without_a_name_has_its_number():
    busiest = {'command': '', 'process': 77, 'share': 0.1}
    noise = outputs._noise({'busiest_other': busiest}, has_own_cpus=True)
    assert noise['process'] == 'process 77'


@pytest.mark.parametrize('n', [3, 4])
def test_a_single_node_of_another_generation_is_no_exception(n):
    """Small sites have one fat node, or one newer one; of equal nodes a single one is told."""
    older = {n - 1: {'processor': 'y', 'cpus': 32, 'microcode': '0x1'}}
    assert named(screening(n, facts=older)) == []
    (found,) = named(screening(n, facts={n - 1: {'microcode': '0x1'}}))
    assert found == ('different', (f'n{n - 1}',))


def test_the_same_data_give_the_same_verdict(tmp_path):
    now = screening(slow={('dgemm alone', 3): 0.7, ('triad alone', 9): 0.6})
    texts = []
    for name in ('a', 'b'):
        write_screening(tmp_path / name, now)
        again = read_screening(tmp_path / name)
        texts.append(report.screening_json(again, judge_screening(again), 'slurm', tmp_path))
    assert (
        texts[0] == texts[1] == report.screening_json(now, judge_screening(now), 'slurm', tmp_path)
    )


def test_nodes_that_did_not_meet_are_kept_as_well(tmp_path):
    empty = np.empty((0, 2))
    now = replace(screening(4), links=Links(empty.astype(int), empty, empty, empty))
    write_screening(tmp_path / 'one', now)
    assert judge_screening(read_screening(tmp_path / 'one')).findings == ()


@pytest.mark.parametrize('value', [math.inf, math.nan])
def test_a_figure_that_is_not_finite_is_not_kept(tmp_path, value):
    now = screening(4)
    now.values['triad alone'][0] = value
    with pytest.raises(ValueError, match='not JSON compliant'):
        write_screening(tmp_path / 'one', now)
    assert not any(tmp_path.iterdir())


def edited(path, change):
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    'change, words',
    [
        (lambda r: r.pop('values'), "KeyError 'values'"),
        (lambda r: r.update(schema=2), 'schema 2 is not 1'),
        (lambda r: r['nodes'].append('n0'), 'cannot reshape'),
        (lambda r: r['nodes'].__setitem__(1, 'n0'), 'not unique'),
        (lambda r: r['values']['triad alone'][0].__setitem__(0, -1), 'not above 0'),
        (lambda r: r['noise'][0].update(share='much'), 'share of a node is no noise'),
        (lambda r: r['noise'][0].update(share=-0.1), 'share of a node is -0.1'),
        (lambda r: r['noise'][0].update(other=1.0), 'other of a node is no noise'),
        (lambda r: r['noise'][0].pop('longest'), 'one of share and longest'),
        (lambda r: r['noise'].pop(), 'facts of nodes are missing'),
        (lambda r: r['taken']['alone'][0].__setitem__(0, None), 'no numbers'),
        (lambda r: r['links']['ends'][0].__setitem__(0, 99), 'not of its nodes'),
        (lambda r: r.update(begun='yesterday'), 'yesterday'),
        (lambda r: r.update(facts=[]), 'facts of nodes are missing'),
        (lambda r: r.update(switches=[]), 'AttributeError'),
        (lambda r: r['values']['triad alone'][0].__setitem__(0, 10**400), 'too large'),
        (lambda r: r.update(begun='2026-01-01T00:00:00'), 'no time with its zone'),
        (lambda r: r.update(begun='0001-01-01T00:00:00+14:00'), 'no time with its zone'),
        (lambda r: r['facts'][0].__setitem__('processor', [1]), 'neither a word nor a number'),
        (lambda r: r['facts'][0].__setitem__('memory', 10**400), 'neither a word nor a number'),
        (lambda r: r['faults'][0].__setitem__('new', {}), 'neither a word nor a number'),
        (lambda r: r['links']['alone'].__setitem__(0, [1e300 * 1e300, 1]), 'not a measured value'),
        (lambda r: r['links']['alone'].__setitem__(0, [0, 1]), 'alone has values'),
        (lambda r: r['links']['ends'][0].__setitem__(1, 1.5), 'not of numbers of nodes'),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, words):
    path = tmp_path / 'one.json'
    write_screening(path, screening(4))
    edited(path, change)
    with pytest.raises(AssayError, match='is damaged, or not the file of a screening') as refused:
        read_screening(path)
    assert words in str(refused.value) and str(path) in str(refused.value)


def test_a_number_without_end_is_no_measured_value(tmp_path):
    path = tmp_path / 'one.json'
    write_screening(path, screening(4))
    path.write_text(path.read_text().replace('[null, null]', '[1e999, 1e999]', 1))
    with pytest.raises(AssayError, match=r'is damaged, .*alone has values that are not above 0'):
        read_screening(path)


def test_what_is_no_file_or_too_large_is_not_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / 'pipe')
    with pytest.raises(AssayError, match='pipe: is no file'):
        read_screening(tmp_path / 'pipe')
    write_screening(tmp_path / 'large', screening(4))
    monkeypatch.setattr(measured, 'MOST', 100)
    with pytest.raises(AssayError, match='large has more than 100 bytes'):
        read_screening(tmp_path / 'large')


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(AssayError, match='cannot be read: No such file'):
        read_screening(tmp_path / 'none.json')


def test_screenings_are_kept_and_found(tmp_path, monkeypatch):
    monkeypatch.setattr(kept.paths, 'SCREENINGS', tmp_path)
    with pytest.raises(AssayError, match='no screening of made:up'):
        kept.find_screening('last', 'made:up')
    files = [kept.keep_screening(screening(4, day=day)) for day in range(4)]
    kept.keep_screening(
        replace(screening(4, day=2), environment='mpich', begun=BEGUN + timedelta(days=2, hours=5))
    )
    assert kept.find_screening('last', 'made:up') == files[-1]
    days = [
        one.begun.day
        for one in kept.earlier_screenings(files[-1], read_screening(files[-1]), 2).values()
    ]
    assert days == [2, 3]


def test_an_earlier_one_that_is_damaged_is_told_and_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kept.paths, 'SCREENINGS', tmp_path)
    files = [kept.keep_screening(screening(4, day=day)) for day in range(3)]
    files[1].write_text('{')
    assert len(kept.earlier_screenings(files[-1], read_screening(files[-1]), most=5)) == 1
    assert f'left out: {files[1]}: is damaged, or not the file' in capsys.readouterr().err


def test_those_that_began_later_are_not_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kept.paths, 'SCREENINGS', tmp_path)
    files = [kept.keep_screening(screening(4, day=day)) for day in range(3)]
    files[2].write_text('{')
    assert len(kept.earlier_screenings(files[1], read_screening(files[1]), most=5)) == 1
    assert kept.newest('made:up', BEGUN + timedelta(days=1))[0] == files[1]
    assert capsys.readouterr().err == ''


def test_the_last_one_is_not_known_if_it_may_be_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(kept.paths, 'SCREENINGS', tmp_path)
    files = [kept.keep_screening(screening(4, day=day)) for day in range(3)]
    files[0].write_text('{')
    assert kept.find_screening('last', 'made:up') == files[2]
    files[2].write_text('{')
    with pytest.raises(AssayError, match='is damaged'):
        kept.find_screening('last', 'made:up')


def test_the_newest_began_last_whatever_its_file_is_called(tmp_path, monkeypatch):
    monkeypatch.setattr(kept.paths, 'SCREENINGS', tmp_path)
    zone = timezone(timedelta(hours=14))
    east = replace(screening(4), begun=BEGUN.astimezone(zone))
    path = kept.keep_screening(east)
    assert path.name == '20260101T000000.000000.json'
    new = kept.keep_screening(replace(screening(4), begun=BEGUN + timedelta(hours=1)))
    assert kept.find_screening('last', 'made:up') == new
    assert [*kept.earlier_screenings(new, read_screening(new), 5)] == [path]
    assert not kept.earlier_screenings(path, east, 5)
    assert kept.screenings_since('made:up', BEGUN + timedelta(minutes=1))[0][0] == new
    copy = write_screening(
        path.with_name('a copy.json'), replace(east, begun=BEGUN + timedelta(hours=2))
    )
    assert copy is None and kept.find_screening('last', 'made:up').name == 'a copy.json'


GOLDEN = paths.ROOT / 'tests' / 'golden' / 'jobs' / 'Screen' / 'mpich-ucx-tcp'


def test_a_real_job_is_collected(tmp_path):
    where = Where('vcluster:srun', 'slurm', False, 'mpich', 'ucx-tcp')
    found = collect(GOLDEN, where, BEGUN, ['n1', 'n2'], {})
    assert found.nodes == ('n1', 'n2')
    assert found.sweeps == 3 and {*found.values} == {*ALL}
    assert found.facts[0]['cpus'] == 2 and found.facts[0]['processor']
    assert found.links.ends.tolist() == [[0, 1]] and found.links.latency.shape == (1, 2)
    write_screening(tmp_path / 'one', found)
    again = read_screening(tmp_path / 'one')
    assert (
        judge_screening(again).without_peers == ('n1', 'n2')
        and judge_screening(again).exit_code == 0
    )


def test_nodes_that_share_cpus_are_measured_alone_only():
    where = Where('vcluster:srun', 'slurm', True, 'mpich', 'ucx-tcp')
    found = collect(GOLDEN, where, BEGUN, ['n1', 'n2'], {})
    assert {name.rpartition(' ')[2] for name in found.values} == {'alone'}
    assert not len(found.links.ends)


@pytest.mark.parametrize('name', ['nodes/result.json', 'first/result.json', 'misplaced.json'])
def test_a_file_that_the_job_did_not_leave(tmp_path, name):
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).unlink()
    with pytest.raises(AssayError, match=f'{name}: cannot be read'):
        collect(tmp_path, SLURM, BEGUN, [], {})


def test_a_host_is_called_as_the_scheduler_does(tmp_path):
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.rglob('*.json'):
        path.write_text(re.sub(r'"(n[12])"', r'"\1.cluster.test"', path.read_text()))
    assert collect(tmp_path, SLURM, BEGUN, ['n1', 'n2'], {}).nodes == ('n1', 'n2')
    names = ('n1.cluster.test', 'n2.cluster.test')
    assert collect(tmp_path, SLURM, BEGUN, names, {}).nodes == names


def test_a_host_whose_name_in_slurm_is_another(tmp_path, monkeypatch):
    """What is told to drain is a node of Slurm's, also where nobody asks Slurm any more."""
    folder = tmp_path / 'job'
    shutil.copytree(GOLDEN, folder)
    commands_of_slurm(tmp_path, monkeypatch)(
        [node(f'hpc-{i}').replace(f'HostName=hpc-{i}', f'HostName=n{i}') for i in (1, 2)], []
    )
    tell_names(folder, ['hpc-1', 'hpc-2'])
    (tmp_path / 'scontrol').write_text('#!/bin/sh\nexit 1\n')
    found = collect(folder, SLURM, BEGUN, ['hpc-1', 'hpc-2'], {})
    assert found.nodes == ('hpc-1', 'hpc-2')
    assert np.array_equal(found.links.latency, collect(GOLDEN, SLURM, BEGUN, [], {}).links.latency)
    path = tmp_path / 'one.json'
    write_screening(path, found)
    outputs.keep_outputs(path, folder, SLURM, ['hpc-1', 'hpc-2'])
    assert [*outputs.output_faults(path, read_screening(path))] == []


def test_what_is_shown(capsys, tmp_path):
    now = screening(slow={('dgemm alone', 3): 0.7})
    report.show_screening(now, judge_screening(now), 'slurm', tmp_path)
    shown = capsys.readouterr().out
    assert 'n3 is bad (by chance ' in shown
    assert 'dgemm alone: 3' in shown and '15 peers' in shown
    assert "scontrol update NodeName=n3 State=DRAIN Reason='assay screen 2026-01-01" in shown
    assert shown.endswith('FOUND: 1 bad node of 16 nodes\n')
    assert 'resume' not in shown.lower()
    found = json.loads(report.screening_json(now, judge_screening(now), 'pbs', tmp_path))
    assert found['drain'] == ['n3'] and found['exit_code'] == 1
    assert found['drain_commands'][0].startswith("pbsnodes -o -C 'assay screen")


@pytest.mark.parametrize(
    ('chance', 'words'),
    [
        (1e-7, 'less than once in a million screenings'),
        (1 / 61, 'once in 61 screenings'),
        (0.5, 'once in 2 screenings'),
        (3.04, '3.0 times in each screening'),
    ],
)
def test_how_often_it_would_be_chance(chance, words):
    suspect = ScreeningFinding('suspect', ('n1',), (Evidence('triad alone', 'slow', 0.5, chance),))
    assert report.headline(suspect) == f'n1 is a suspect: screen again (by chance {words})'


def test_nothing_found_is_said(capsys, tmp_path):
    report.show_screening(screening(), judge_screening(screening()), 'slurm', tmp_path)
    assert capsys.readouterr().out.endswith('NOTHING FOUND of 16 nodes\n')


def test_nodes_that_were_not_measured_are_named(capsys, tmp_path):
    left = {'n7': 'drained: bad DIMM', 'n8': 'allocated', 'n9': 'allocated'}
    now = replace(screening(4), left_out=left)
    write_screening(tmp_path / 'one', now)
    now = read_screening(tmp_path / 'one')
    report.show_screening(now, judge_screening(now), 'slurm', tmp_path)
    shown = capsys.readouterr().out
    assert '\nnot measured: n7 (drained: bad DIMM)\nnot measured: n[8-9] (allocated)\n' in shown
    assert shown.endswith('NOTHING FOUND of 4 of 7 nodes\n') and judge_screening(now).exit_code == 0
    found = json.loads(report.screening_json(now, judge_screening(now), 'slurm', tmp_path))
    assert found['left_out'] == left


@pytest.mark.parametrize('state', ['down*', 'idle*', 'down: Not responding', 'failing'])
def test_a_node_that_gives_no_answer_is_not_nothing(capsys, tmp_path, state):
    now = replace(screening(4), left_out={'n7': state})
    verdict = judge_screening(now)
    report.show_screening(now, verdict, 'slurm', tmp_path)
    assert verdict.exit_code == 3
    words = 'CANNOT TELL: no answer of n7; nothing found of 4 of 5 nodes\n'
    assert capsys.readouterr().out.endswith(words)
    # Who has taken one out knows of it.
    now = replace(screening(4), left_out={'n7': 'drained*: bad DIMM'})
    assert judge_screening(now).exit_code == 0
    now = replace(screening(4, slow={('dgemm alone', 1): 0.5}), left_out={'n7': state})
    assert judge_screening(now).exit_code == 1


def test_slurm_tells_which_nodes_are_left_out(tmp_path, monkeypatch, capsys):
    words = """short*|n1|idle|none
short*|n2|drained|bad DIMM: slot 3 | 4
short*|n3|down*|Not responding
long|n4|mixed|none
"""
    fake = tmp_path / 'sinfo'
    fake.write_text(f"#!/bin/sh\ncat <<'EOF'\n{words}EOF\n")
    fake.chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    assert why_left_out(SLURM, ['n1']) == {
        'n2': 'drained: bad DIMM: slot 3 | 4',
        'n3': 'down*: Not responding',
    }
    assert why_left_out(replace(SLURM, access=('--partition=long',)), []) == {'n4': 'mixed'}
    assert why_left_out(replace(SLURM, scheduler='pbs'), []) == {}
    fake.write_text('#!/bin/sh\necho no controller >&2; exit 1\n')
    assert why_left_out(SLURM, []) == {}
    words = 'Assay: which nodes of s:p were left out is not known: no controller\n'
    assert capsys.readouterr().err == words


def test_nodes_without_peers_are_told(capsys, tmp_path):
    report.show_screening(screening(2), judge_screening(screening(2)), 'slurm', tmp_path)
    assert 'too few of a kind to be judged: n[0-1]' in capsys.readouterr().out


def test_nodes_and_reservations_reach_slurm():
    assert job_options(SLURM, 'n[1-3]', 'repair', True) == [
        *('-S', 'Screen.quick=yes', '-J', 'nodelist=n1,n2,n3', '-S', 'Screen.asked_nodes=3'),
        *('-J', 'reservation=repair'),
    ]
    with pytest.raises(AssayError, match='are for Slurm; s:p has pbs'):
        job_options(replace(SLURM, scheduler='pbs'), 'n[1-3]', None, False)


@pytest.mark.parametrize('text, words', [('n[1-', 'n'), ('n1', 'name two'), ('', 'name two')])
def test_wrong_sets_of_nodes(text, words):
    with pytest.raises(AssayError, match=words):
        nodes_to_screen(text)


@pytest.mark.parametrize('option', ['-n=Ring', '--repeat=2', '-p=mpich', '-l'])
def test_options_that_are_not_for_a_screening(option):
    with pytest.raises(AssayError, match='is not for a screening'):
        reframe_options.read_for('a screening', [option])


def test_a_single_machine_is_refused():
    with pytest.raises(AssayError, match='generic has no partition with a scheduler'):
        choose_where(settings.load_system('generic'), 'generic')


def test_a_kept_screening_is_not_measured():
    with pytest.raises(AssayError, match='--from judges what was measured'):
        cli.app(['screen', '--from', 'last', '--nodes', 'n[1-2]'], standalone_mode=False)


def test_where_latency_and_bandwidth_are_explained_no_group_is_left():
    """Pairs were measured, but none of their figures is to be looked at any more."""
    ends = np.array([[0, 1], [0, 2], [1, 2]])
    now = SimpleNamespace(nodes=['n1', 'n2', 'n3'], links=SimpleNamespace(ends=ends))
    assert [*_fast_to_each_other(now, [], {'n1', 'n2'})] == []


def test_a_screening_whose_build_failed_says_so(golden_report, monkeypatch):
    report = golden_report('FailedBuild')
    for case in cases(report):
        if not case['fixture']:
            case['display_name'] = 'Screen'
    run = run_of(report)
    ended = Concluded(run, LOG, judge_run(run, 1, LOG))
    suite = SimpleNamespace(own=None, in_one_job=lambda *about: nullcontext())
    given = reframe_options.read_options([])
    monkeypatch.setattr(measuring, 'make_ready', lambda *about: [])
    monkeypatch.setattr(measuring.Runner, 'run', lambda *about, **more: ended)
    with pytest.raises(AssayError, match=r'(?s)the screening did not measure:.*build job failed'):
        measuring.measure_nodes(suite, None, SLURM, given, [], [], None)
