"""References that are learned from runs, and how they come into the file of a system."""

import errno
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from reframe.core.pipeline import RegressionTestDict

import stored
from assay import AssayError, paths
from assay.config.learned import Learned, LearnedFile, parse_learned, rewrite
from assay.config.reference_files import Reference, parse_references, references_for
from assay.report.history import _change
from assay.results import cases as model
from assay.results import history
from assay.results.baseline import _fraction, changes_since_learned
from assay.results.rows import is_beyond
from command import invoke
from reports import identified, own_cases, passing, run_of

SYSTEM = 'example-slurm'
FIRST = datetime(2026, 1, 1, 12)  # by the clock of this machine, as days are told
SESSIONS, MOST = 12, 40
BUILD = {
    'built_compiler': 'gcc@12.2.0',
    'built_mpi': 'openmpi@5.0.9',
    'built_hash': '0a5738e2f62e7755',
    'built_target': 'zen3',
}
RING = 'Ring %fabric=shm %layout=packed %scale=1_node'
HALO = 'Halo %fabric=shm %layout=packed %scale=1_node'
PLACE = [f'{SYSTEM}:compute', 'mpich', 'shm', 'packed', '1_node']
INDEX = ['$partition', '$environ', 'fabric', 'layout', 'scale']
PLACES = dict(zip(INDEX, PLACE, strict=True))

_numbers = itertools.count()
_noise = np.random.default_rng(14)  # not for what tests draw: they run in any order


def noisy(value, spread=0.01, n=MOST):
    return (value * np.exp(spread * _noise.standard_normal(n))).tolist()


#: Case and partition; figure; unit, direction, values.
GOOD = {
    (RING, 'compute'): {
        'hop_latency': ('us', 'lower', noisy(0.5)),
        'hop_bandwidth': ('MB/s', 'higher', noisy(4000.0)),
        'hop_latency_over_limit': ('1', 'lower', noisy(3.0)),
        'messages': ('1', 'exact', [1012.0] * MOST),
        'foreign_share': ('1', 'lower', noisy(0.01)),
    },
    (RING, 'small'): {'hop_latency': ('us', 'lower', noisy(0.9))},
}
BAD = {
    'unknown_direction': (None, noisy(5.0)),
    'zero': ('lower', [0.0] * MOST),
    'step': ('lower', noisy(5.0, 0.005, 20) + noisy(9.0, 0.005, 20)),
    'drift': ('lower', (noisy(5.0, 0.005) * np.linspace(1, 1.3, MOST)).tolist()),
    'modes': ('lower', (noisy(5.0, 0.005) * _noise.choice([1, 1.5], MOST)).tolist()),
    'several': ('exact', [3.0, 4.0] * (MOST // 2)),
    'few': ('lower', [5.0] * 4 + [None] * (MOST - 4)),
    'not_finite': ('lower', [math.nan] * MOST),
    'wild': ('lower', noisy(5.0, 0.3)),
    'wild_rate': ('higher', noisy(5.0, 0.3)),
    'too_fast': ('lower', noisy(0.05)),
}


def perfvalue(value, unit, reference):
    """As ReFrame stores a figure that is held to a reference, or to none."""
    number, lower, upper, _ = reference or [0, None, None, unit]
    bounds = model.bound(number, lower), model.bound(number, upper)
    is_bad = is_beyond(value, *bounds)
    return [value, number, lower, upper, unit, 'fail' if is_bad else 'pass']


def put(
    database, report, measured, days=range(SESSIONS), disturbed=(), changed=None, held=None, **info
):
    """Sessions in ReFrame's own database: those of days that are in ``measured``.

    :param held: the reference of a figure, as in a file, by its name.
    """
    text, held = json.dumps(passing(report)), held or {}
    made = []
    for day in days:
        one = json.loads(text)
        begun = (FIRST + timedelta(days=day)).timestamp()
        identified(one, next(_numbers), begun, **{'label': 'accepted', **info})
        own = own_cases(one)[0]
        found = []
        for (case, partition), figures in measured.items():
            now = {
                name: (unit, *rest[:-1], rest[-1][day]) for name, (unit, *rest) in figures.items()
            }
            found.append(
                own
                | BUILD
                | (changed or {})
                | {
                    'display_name': case,
                    'system': info.get('system', SYSTEM),
                    'partition': partition,
                    'environ': 'mpich',
                    'job_completion_time_unix': begun + 5,
                    'job_nodelist': [f'n{1 + day % 4}'],
                    'directions': {name: way for name, (_, way, _) in now.items() if way},
                    'taken_by_others': ['others took CPU 1'] if day in disturbed else [],
                    'perfvalues': {
                        f'{SYSTEM}:{partition}:{name}': perfvalue(value, unit, held.get(name))
                        for name, (unit, _, value) in now.items()
                        if value is not None
                    },
                }
            )
        one['runs'][0]['testcases'] = found
        made.append(one)
    stored.put(database, *made)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of references and an empty database."""
    references = tmp_path / 'references'
    references.mkdir()
    shutil.copy(paths.REFERENCES / 'generic.yaml', references)
    monkeypatch.setattr(paths, 'REFERENCES', references)
    database = tmp_path / 'perflogs' / 'results.db'
    load = history.load_history
    monkeypatch.setattr(history, 'load_history', lambda: load(database))
    return references / 'learned' / f'{SYSTEM}.yaml'


def baseline(*options, words='accepted'):
    """What the command prints; its error is raised."""
    result = invoke('baseline', words, *options)
    if isinstance(result.exception, AssayError):
        raise result.exception
    assert result.exit_code == 0, result.exception
    return result


@pytest.fixture
def accepted(place, database, golden_report):
    """A database of sessions in which all was well."""
    put(database, golden_report('Passed'), GOOD)
    return place


def entry(path, check='Ring'):
    return parse_references(path.read_text(), path)[check]


def test_references_are_what_reframe_looks_up_and_hold_what_was_measured(accepted):
    text = baseline().stdout
    assert f'5 references were written to {accepted}' in text
    ring = entry(accepted)
    assert ring['$index'] == INDEX
    RegressionTestDict(ring)
    held = references_for(ring, PLACES)
    assert held['messages'] == [1012, 0, 0, '1']
    assert [bound is None for bound in held['hop_latency'][1:3]] == [True, False]
    assert [bound is None for bound in held['hop_bandwidth'][1:3]] == [False, True]
    # What holds on any machine: not below a tenth of the limit.
    value, lower, upper, _ = held['hop_latency_over_limit']
    assert value * (1 + lower) == pytest.approx(0.1, abs=0.004)
    assert 0.02 < upper < 0.2
    assert 'foreign_share' not in held
    other = references_for(ring, PLACES | {'$partition': f'{SYSTEM}:small'})
    assert (held['hop_latency'][0], other['hop_latency'][0]) == pytest.approx((0.5, 0.9), rel=0.02)


def test_beside_each_value_stands_what_it_was_learned_from(accepted):
    baseline()
    text = accepted.read_text()
    found = parse_learned(text, accepted).sources[('Ring', *PLACE, 'hop_latency')]
    assert found | {'spread': ''} == {
        'n': '12',
        'days': '2026-01-01..2026-01-12',
        'spread': '',
        'compiler': 'gcc@12.2.0',
        'mpi': 'openmpi@5.0.9',
        'build': '0a5738e2f62e',
        'cpu': 'zen3',
        'nodes': 'n[1-4]',
    }
    assert all(", n: '12', " in line for line in text.splitlines() if '[0.' in line)


def test_a_second_time_and_a_dry_run_change_nothing(accepted):
    change = baseline('--dry-run')
    assert not accepted.exists()
    assert change.stdout.startswith('--- /dev/null\n+++ b/')
    assert '+            hop_latency: {reference: [' in change.stdout
    assert '5 references would be written to' in change.stderr
    baseline()
    first = accepted.read_bytes()
    assert baseline('--dry-run').stdout == ''
    baseline()
    assert accepted.read_bytes() == first
    assert [*accepted.parent.glob(f'{SYSTEM}*')] == [accepted]


def test_a_name_selects_figures_and_the_rest_stays(accepted):
    assert '1 reference was written to' in baseline('--figure', 'hop_bandwidth').stdout
    assert list(references_for(entry(accepted), PLACES)) == ['hop_bandwidth']
    with pytest.raises(AssayError, match=r"-n '\(' is no regular expression"):
        baseline('-n', '(')
    with pytest.raises(AssayError, match="--figure 'no such figure' matches none of"):
        baseline('--figure', 'no such figure')


def test_what_is_not_steady_is_refused_and_keeps_its_reference(place, database, golden_report):
    bad = {name: ('us', *rest) for name, rest in BAD.items()}
    bad['hop_latency_over_limit'] = ('1', *bad.pop('too_fast')[1:])
    figures = {(RING, 'compute'): bad | GOOD[RING, 'small']}
    put(database, golden_report('Passed'), figures, range(MOST))
    old = 'Ring:\n  $index: [$partition, $environ, fabric, layout, scale]\n'
    for depth, key in enumerate(PLACE, 1):
        old += f'{"  " * depth}{key}:\n'
    step = "            step: {reference: [5.0, null, 0.1, us], n: '12', spread: 1.0%}"
    place.parent.mkdir()
    place.write_text(f'{old}{step}\n')
    told = baseline().stdout
    for name, reason in {
        'unknown_direction': 'nobody stored whether it gets better upwards or downwards',
        'zero': 'a value is 0',
        'step': 'it has a step: \\+(79|8)',
        'drift': 'it drifts',
        'modes': 'it has two modes',
        'not_finite': 'it was no finite number, or negative, in 40 values: find out why',
        'wild': 'with a spread of .*% between runs, one half as good would be within',
        'wild_rate': 'with a spread of .*% between runs, one half as good would be within',
        'several': 'it must be exact, and had several values',
        'few': '4 sessions are too few: 6 more are needed',
        'hop_latency_over_limit': 'is beyond the bounds in generic.yaml',
    }.items():
        assert re.search(f'refused: {name} of Ring .*: .*{reason}', told), (name, told)
    assert step in place.read_text()
    assert 'hop_latency: {reference: [0.' in place.read_text()


def test_where_all_is_refused_nothing_is_written(place, database, golden_report):
    put(database, golden_report('Passed'), GOOD, days=range(3))
    with pytest.raises(AssayError, match=f'nothing could be written to {place}'):
        baseline()
    assert not place.exists()


def test_disturbed_values_are_left_out_and_told(place, database, golden_report):
    put(database, golden_report('Passed'), GOOD, disturbed={3, 4, 5})
    result = invoke('baseline', 'accepted')
    assert '9 sessions are too few: 1 more are needed; 3 left out as disturbed by others' in (
        result.stdout
    )


SLOW = {(RING, 'compute'): GOOD[RING, 'compute'] | {'hop_latency': ('us', 'lower', noisy(0.85))}}


def miss(database, golden_report, path, days=range(12, 24), disturbed=()):
    """Sessions in which the latency missed the reference that was learned before."""
    held = references_for(entry(path), PLACES)
    failed = {'result': 'fail', 'fail_phase': 'performance'}
    put(
        database,
        golden_report('Passed'),
        SLOW,
        days,
        disturbed,
        changed=failed,
        held=held,
        label='slow',
    )


def test_what_missed_its_reference_is_refused(accepted, database, golden_report):
    baseline()
    old = accepted.read_text()
    miss(database, golden_report, accepted)
    told = baseline(words='slow').stdout
    assert re.search(
        'refused: hop_latency of .*: it missed its reference in 12 of 12 runs: find out why', told
    )
    (line,) = (
        one for one in old.splitlines() if re.search(r'hop_latency: \{reference: \[0\.(49|50)', one)
    )
    assert line in accepted.read_text()
    assert re.search(r'hop_bandwidth: .* days: 2026-01-13', accepted.read_text())  # passed


def test_one_miss_among_many_is_told_and_a_disturbed_one_is_none(accepted, database, golden_report):
    baseline()
    miss(database, golden_report, accepted, [20, 21], disturbed=[21])
    put(database, golden_report('Passed'), GOOD, range(24, 36), label='slow')
    assert 'it missed its reference in 1 of 13 runs' in baseline(words='slow').stdout


def test_a_change_that_is_wanted_is_accepted_and_told(accepted, database, golden_report):
    baseline()
    miss(database, golden_report, accepted)
    told = baseline('--accept', words='slow').stdout
    (line,) = (one for one in told.splitlines() if one.startswith('changed: '))
    assert re.fullmatch(
        r'changed: hop_latency of .*: was 0\.\d+, is 0\.8\d+: worse by [67]\d%', line
    )
    assert re.search(r'hop_latency: \{reference: \[0\.8', accepted.read_text())


@pytest.mark.parametrize(
    ('given', 'old', 'change'),
    [
        (
            (0.8491, None, 0.1, 'us'),
            [0.4995, None, 0.09, 'us'],
            'was 0.4995, is 0.8491: worse by 70%',
        ),
        ((0.5, -0.1, 0.1, 'us'), [1.0, -0.1, 0.1, 'us'], 'was 1.0, is 0.5: better by 50%'),
        ((1.05, None, 0.1, 'us'), [1.0, None, 0.1, 'us'], None),
        ((5.0, None, 0.1, 'us'), [0, 0, 0, 'us'], 'was 0, is 5.0'),
        ((5.0, None, 0.1, 'us'), [1.0, None, 0.1, 'ms'], 'was 1.0 ms, is 5.0 us'),
    ],
)
def test_how_a_renewed_reference_differs(given, old, change):
    assert _change(replace(LEARNED, given=given), old) == change


def test_the_direction_says_what_is_worse():
    told = [_change(replace(LEARNED, better=way), [2.0, 0, 0, 'us']) for way in ('higher', 'exact')]
    assert [one.partition(': ')[2] for one in told] == ['worse by 50%', 'changed by -50.0%']


def test_a_check_that_is_called_otherwise_now_is_refused(place, database, golden_report):
    gone = {('Rong %fabric=shm', 'compute'): GOOD[RING, 'small']}
    put(database, golden_report('Passed'), GOOD | gone)
    told = baseline().stdout
    assert 'refused: hop_latency of Rong ' in told
    assert 'no check class has this name; did you mean Ring?' in told
    assert 'Rong' not in place.read_text()


def test_wide_bounds_are_flagged(accepted):
    told = baseline('--worst', '1%').stdout
    assert re.search(
        r'wide: hop_latency of Ring .*: its bound is \d+% from its value, more than 1%', told
    )
    assert re.search(r'hop_latency: .* wide: \d+%\}', accepted.read_text())
    assert 'wide: messages' not in told
    baseline()
    assert 'wide' not in accepted.read_text()


def test_several_mpis_units_and_systems_are_refused(place, database, golden_report):
    report = golden_report('Passed')
    put(database, report, GOOD, days=range(6))
    put(database, report, GOOD, days=range(6, 12), changed={'built_mpi': 'openmpi@5.0.10'})
    sentence = 'measured with several MPI: openmpi@5.0.10, openmpi@5.0.9: choose runs of one'
    assert sentence in invoke('baseline', 'accepted').stdout
    other = {(RING, 'small'): {'hop_latency': ('ms', *GOOD[RING, 'small']['hop_latency'][1:])}}
    put(database, report, other)
    sentence = 'it was measured in ms and in us: choose runs of one unit'
    assert sentence in invoke('baseline', 'accepted').stdout
    put(
        database,
        report,
        {(HALO, 'node'): {'efficiency': ('1', 'higher', [1.0])}},
        [0],
        system='generic',
    )
    with pytest.raises(AssayError, match='of several systems, example-slurm, generic: choose'):
        baseline()
    with pytest.raises(AssayError, match='the system generic, which is any machine'):
        baseline('--system', 'generic')


HAND = f"""\
Ring:
  $index: [$partition, fabric]
  {SYSTEM}:compute:
    shm:
      hop_latency: [0.3, null, 0.5, us]  # measured on a Sunday
"""


def test_what_was_written_by_hand_comes_first(accepted):
    hand = accepted.parents[1] / accepted.name
    hand.write_text(HAND)
    told = baseline().stdout
    assert hand.read_text() == HAND
    assert re.search(
        r'by hand, left alone: hop_latency of .*:compute.*: it would have been \[0\.', told
    )
    assert '4 references were written to' in told
    held = references_for(entry(accepted), PLACES)
    assert 'hop_latency' not in held and 'hop_bandwidth' in held


LEARNED = Learned(
    name='a',
    check='Ring',
    values={'fabric': 'shm', 'scale': '2_nodes'},
    figure='x',
    better='lower',
    given=(1.0, None, 0.1, 'us'),
    source={'n': '12', 'days': '2026-01-01..2026-01-12', 'spread': '1.0%', 'nodes': 'n[1-2]'},
)


def test_what_was_learned_before_stays(tmp_path):
    """Text and its meaning are one to one, however odd the words are."""
    path = tmp_path / 'toy.yaml'
    odd = replace(LEARNED, figure='no', values={'fabric': '1', 'scale': "'a: b'"}, check='Halo')
    first = rewrite(LearnedFile(), path, [LEARNED, odd], {})
    before = parse_learned(first.text, path)
    again = rewrite(before, path, [replace(LEARNED, given=(2.0, None, 0.1, 'us'))], {})
    ((renewed, old),) = again.renewed
    assert (renewed.given[0], old) == (2.0, [1.0, None, 0.1, 'us'])
    now = parse_learned(again.text, path)
    assert now.sources == {('Ring', 'shm', '2_nodes', 'x'): LEARNED.source} | {
        ('Halo', '1', "'a: b'", 'no'): LEARNED.source
    }
    assert references_for(now.entries['Halo'], odd.values) == {'no': [1.0, None, 0.1, 'us']}
    assert rewrite(now, path, [], {}).text == again.text


def test_another_index_is_refused(tmp_path):
    path = tmp_path / 'toy.yaml'
    before = parse_learned(rewrite(LearnedFile(), path, [LEARNED], {}).text, path)
    other = replace(LEARNED, values=LEARNED.values | {'size': 'cache'})
    result = rewrite(before, path, [other], {})
    ((_, reason),) = result.refused
    assert 'has Ring by fabric, scale: remove Ring there' in reason and not result.added


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('Ring: [', r'example-slurm\.yaml: not valid YAML: line 1: expected'),
        ('Ring:\n  1_node: {}', r"example-slurm\.yaml: Ring has no '\$index'"),
        ('- Ring', 'there are no entries by check class'),
        (
            'Rong:\n  $index: [scale]\n  1_node:\n    x: [1.0, null, 0.5, us]',
            'Rong: no check class',
        ),
        (
            'Ring:\n  $index: [scale]\n  1_node:\n    x: {reference: [1.0, null], n: 1}',
            'is no reference: it needs a value, two bounds and a unit',
        ),
    ],
)
def test_a_file_with_faults_is_named_and_left_alone(accepted, text, sentence):
    accepted.parent.mkdir()
    accepted.write_text(text)
    with pytest.raises(AssayError, match=sentence):
        baseline()
    assert accepted.read_text() == text
    if 'Rong' not in text:
        accepted.rename(accepted.parents[1] / accepted.name)
        with pytest.raises(AssayError, match=sentence):
            baseline()


def test_a_file_that_is_no_text(accepted):
    accepted.parent.mkdir()
    accepted.write_bytes(b'\xff\xfe')
    with pytest.raises(AssayError, match=r'example-slurm\.yaml: not valid YAML'):
        baseline()


def test_a_file_that_cannot_be_written(accepted, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, 'No space left on device')

    baseline('--figure', '^hop_latency$')
    old = accepted.read_bytes()
    monkeypatch.setattr('pathlib.Path.replace', full)
    with pytest.raises(AssayError, match=r'example-slurm\.yaml: cannot be written: No space left'):
        baseline()
    assert [*accepted.parent.glob(f'{SYSTEM}*')] == [accepted]
    assert accepted.read_bytes() == old


def test_rounding_never_tightens():
    noise = np.random.default_rng(15)
    for value, ratio in zip(
        np.exp(noise.uniform(-12, 12, 2000)), noise.uniform(0.02, 0.99, 2000), strict=True
    ):
        value = float(f'{value:.4g}')
        for side, bound in ((-1, value * ratio), (1, value / ratio)):
            fraction = _fraction(bound, value, side)
            assert side * value * (1 + fraction) >= side * bound
            assert abs(value * (1 + fraction) - bound) <= 0.0011 * value
            assert fraction > -1
    assert _fraction(0.0, 5.0, -1) is None
    assert Reference(500.0, _fraction(0.1, 500.0, -1), None, 'us', None, paths.ROOT).excludes_below


def test_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / 'x.yaml'
    path.write_text('old')
    program = (
        'import os, signal, sys; from pathlib import Path; from assay.files import write_whole\n'
        'Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n'
        'write_whole(Path(sys.argv[1]), "new")'
    )
    environment = os.environ | {'PYTHONPATH': str(paths.ROOT / 'lib')}
    killed = subprocess.run([sys.executable, '-c', program, path], env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == 'old'


def measured_run(golden_report, **changed):
    report = passing(golden_report('Passed'))
    own = own_cases(report)[0]
    figures = {
        f'{SYSTEM}:compute:{name}': [1.0, 0, None, None, 'us', 'pass']
        for name in GOOD[RING, 'compute']
    }
    own |= (
        BUILD
        | changed
        | {
            'display_name': RING,
            'system': SYSTEM,
            'partition': 'compute',
            'environ': 'mpich',
            'perfvalues': figures,
        }
    )
    report['runs'][0]['testcases'] = [own]
    return report


def test_a_run_says_which_references_went_stale_once_a_cause(accepted, golden_report):
    folder = accepted.parents[1]
    assert (
        changes_since_learned(run_of(measured_run(golden_report)), folder) == []
    )  # nothing was learned
    baseline()
    assert changes_since_learned(run_of(measured_run(golden_report)), folder) == []
    newer = {'built_mpi': 'openmpi@5.0.10', 'built_hash': 'f00'}
    assert changes_since_learned(run_of(measured_run(golden_report, **newer)), folder) == [
        'the references of 4 figures were measured with the MPI openmpi@5.0.9, this run used '
        'openmpi@5.0.10: `assay baseline` renews them'
    ]
    (build,) = changes_since_learned(run_of(measured_run(golden_report, built_hash='f00')), folder)
    assert 'with the build 0a5738e2f62e, this run used f00' in build
    both = changes_since_learned(
        run_of(measured_run(golden_report, built_target='zen4', built_compiler='gcc@13')), folder
    )
    assert len(both) == 2
    accepted.write_text('Ring: [')
    assert changes_since_learned(run_of(measured_run(golden_report, **newer)), folder) == []
