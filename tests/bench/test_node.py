"""``stream``, ``clock`` and the node's limits: their figures, and that they see what is wrong."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay import paths
from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import check_distances
from building import SANITIZED, SOURCES, configure
from families import dealt, on_one_mpi
from measured import check_head, check_samples
from namespaces import needs_namespaces
from quiet import measured
from running import run_command

OPERATIONS = {'copy': 16, 'scale': 16, 'add': 24, 'triad': 24}
TEAMS = [(2, 1), (1, 2)]
"""Ranks and threads."""
ONE = {'OMP_NUM_THREADS': '1'}


def check_disturbance(report):
    """The object, whatever happened on the machine."""
    seen = report['disturbance']
    (host,) = seen['hosts']
    assert host['host'] == report['hosts'][0]
    assert host['seconds'] > 0
    assert 1 <= host['cpus'] <= os.cpu_count()
    for name in ('foreign_busy_share', 'steal_share', 'throttled_share', 'waited_share'):
        assert 0 <= seen[name] <= 1
        assert seen[name] == host[name]


@dealt(('ranks', 'threads'), TEAMS)
def test_stream(run, ranks, threads):
    env = {'OMP_NUM_THREADS': str(threads)}
    done = run('stream', '--size', '1M', '--budget', '0.05', '--alone', ranks=ranks, env=env)
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'stream', ranks)
    check_disturbance(report)
    assert report['mpi']['thread_level'] != 'single'
    assert report['threads_per_rank'] == threads
    elements = report['elements_per_rank']
    assert elements * 8 * ranks == 1 << 20
    together, alone = report['results'][:4], report['results'][4:]
    for results, mode in ((together, 'together'), (alone, 'alone')):
        assert [r['operation'] for r in results] == [*OPERATIONS]
        for entry in results:
            assert entry['ranks'] == mode
            bandwidth, own = entry['bandwidth'], entry['per_rank']
            assert 1e7 < bandwidth['median'] <= bandwidth['best'] < 1e13
            assert len(own) == ranks
            slowest, fastest = entry['slowest'], entry['fastest']
            assert slowest['bandwidth'] == own[slowest['rank']] == min(own)
            assert fastest['bandwidth'] == own[fastest['rank']] == max(own)
            assert slowest['host'] == report['hosts'][0]
            line = rf'^{entry["operation"]} +{mode} +{bandwidth["best"] / 1e9:.2f} '
            assert re.search(line, done.out, re.MULTILINE), done.out
    for entry in together:
        check_samples(entry)
        moved = OPERATIONS[entry['operation']] * elements * ranks
        bandwidth = entry['bandwidth']
        assert bandwidth['median'] == pytest.approx(moved / entry['time']['median'], rel=1e-6)
        assert bandwidth['best'] == pytest.approx(moved / entry['time']['best'], rel=1e-6)


@on_one_mpi
def test_every_thread_has_a_part_of_tiny_arrays(run):
    done = run('stream', '--size', '64', '--budget', '0.01', '--stores', 'normal', ranks=3, env=ONE)
    assert done.code == 0, done.err
    assert done.report['stores'] == 'normal'
    assert done.report['elements_per_rank'] == 8


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['stream', '--size', '0'], r'--size 0 is wrong: it takes bytes .* from 64 to'),
        (['stream', '--stores', 'fast'], '--stores fast is wrong: it takes one of normal, stream'),
        (['stream', '--size', '100000G'], r'need 300000\.00 GiB .* available; use a'),
        (['clock', '--seconds', '0'], r'--seconds 0 is wrong: it takes a number from 0\.01 to 600'),
    ],
)
@on_one_mpi
def test_wrong_use(run, arguments, sentence):
    done = run(*arguments)
    assert done.code == 2
    assert re.search(rf'^{arguments[0]}: .*{sentence}', done.err, re.MULTILINE), done.err
    assert not list(done.files.iterdir())


@on_one_mpi
def test_a_flipped_bit_is_found(run, fault):
    arguments = ['stream', '--size', '64M', '--budget', '0.1']
    done = run(*arguments, preload=fault('flip_memory'), env={**ONE, 'FLIP_RANK': '1'})
    assert done.code != 0
    assert re.search(
        r'^stream: rank 1: 1 elements of array a on host \S+ are wrong: element \d+ is '
        r'[\d.e-]+ instead of [\d.]+',
        done.err,
        re.MULTILINE,
    ), done.err
    assert not list(done.files.glob('report.json'))


def check_matrix(report, pairs):
    """:param pairs: domains of cores and of memory."""
    check_distances(report)
    assert [(r['measure'], r['from'], r['memory_of']) for r in report['results']] == [
        (measure, *pair) for measure in ('latency', 'bandwidth') for pair in pairs
    ]
    for entry in report['results']:
        check_samples(entry)
        low, high = (1e-10, 1e-4) if entry['measure'] == 'latency' else (1e7, 1e13)
        assert low < entry['value'] < high


@on_one_mpi
def test_distances(run):
    done = run('distances', '--size', '1M', '--budget', '0.01', ranks=1)
    assert done.code == 0, done.err
    check_head(done.report, 'distances', 1)
    check_disturbance(done.report)
    found = done.report['results']
    starts, ends = (sorted({one[name] for one in found}) for name in ('from', 'memory_of'))
    check_matrix(done.report, [(start, end) for start in starts for end in ends])
    refused = run('distances', ranks=2)
    assert refused.code == 2 and 'needs one rank, which may run on all cores' in refused.err


@on_one_mpi
@needs_namespaces
def test_distances_between_two_domains(build, surroundings, tmp_path):
    """Of a machine that seems to have two with a core each; the kernel has memory of one alone."""
    cpus = sorted(os.sched_getaffinity(0))
    node, program = tmp_path / 'node', build('distances') / 'distances'
    for number, cpu in ((0, cpus[0]), (3, cpus[-1])):
        folder = node / f'node{number}'
        folder.mkdir(parents=True)
        (folder / 'cpulist').write_text(f'{cpu}\n')
        (folder / 'distance').write_text('10 21\n' if number == 0 else '21 10\n')
    for name in ('online', 'has_memory'):
        (node / name).write_text('0,3\n')
    arguments = f'--size 1M --budget 0.01 --json {tmp_path}/report.json'
    shell = f'mount --bind {node} /sys/devices/system/node && exec {program} {arguments}'
    done = run_command(['unshare', '--mount', 'sh', '-c', shell], surroundings, tmp_path, 60)
    assert done.code == 0, done.err
    report = json.loads((tmp_path / 'report.json').read_text())
    check_matrix(report, [(0, 0), (3, 0)])
    assert [one['distance'] for one in report['results']] == 2 * [10, 21]
    assert 'cores of domain 3' in done.out
    report['results'][0]['in_domain'] = 0.5
    with pytest.raises(WrongAnswerError, match=r'50\.0% of the memory is in domain 0'):
        check_distances(report)
    del report['results'][0]
    with pytest.raises(WrongAnswerError, match='latency from domain 0 to 0 is missing'):
        check_distances(report)


@dealt(('ranks', 'threads'), TEAMS)
def test_clock(run, ranks, threads):
    env = {'OMP_NUM_THREADS': str(threads)}
    done = run('clock', '--seconds', '0.2', ranks=ranks, env=env)
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'clock', ranks)
    check_disturbance(report)
    assert [r['load'] for r in report['results']] == ['scalar', 'vector']
    for entry in report['results']:
        own = entry['ranks']
        assert [r['rank'] for r in own] == [*range(ranks)]
        assert all(r['threads'] == threads for r in own)
        assert all(0 < r['slowest_slice'] <= r['frequency'] <= r['fastest_slice'] for r in own)
        assert all(0 <= r['lost_share'] < 1 for r in own)
        assert all(0 < r['quantum']['shortest'] <= r['quantum']['longest'] for r in own)
        frequency = entry['frequency']
        assert 0.2e9 < frequency['median'] < 8e9
        assert frequency['min'] == own[frequency['slowest_rank']]['frequency']
        assert frequency['min'] == min(r['frequency'] for r in own)
        assert frequency['max'] == max(r['frequency'] for r in own)
        assert entry['slowest_slice'] == min(r['slowest_slice'] for r in own)
        assert entry['lost_share'] == max(r['lost_share'] for r in own)
        assert f'{entry["load"]:8s} {frequency["min"] / 1e9:8.3f}' in done.out
    vector = report['results'][1]
    cycles = sum(r['frequency'] * r['threads'] for r in vector['ranks'])
    assert vector['flops_per_cycle'] == pytest.approx(vector['flops'] / cycles, rel=1e-6)
    # Two for a multiply-add of each element, and at most four of those in a cycle.
    assert 0.5 < vector['flops_per_cycle'] < 4.4 * 2 * report['vector']['bits'] / 64


@contextmanager
def busy_processes():
    """One on each CPU, of a session of its own: the scheduler gives these equal shares."""
    program = 'import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass'
    processes = [
        subprocess.Popen([sys.executable, '-c', program, str(cpu)], start_new_session=True)
        for cpu in os.sched_getaffinity(0)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.alone
@on_one_mpi
def test_clock_sees_other_processes(run):
    def disturbed():
        with busy_processes():
            done = run('clock', '--seconds', '0.5', ranks=1, env=ONE)
        assert done.code == 0, done.err
        return done

    def check(done):
        assert done.report['disturbance']['foreign_busy_share'] > 0.05
        # A rank that has its CPU alone waits for next to nothing.
        assert done.report['disturbance']['waited_share'] > 0.05
        scalar = done.report['results'][0]
        assert scalar['lost_share'] > 0.05
        quantum = scalar['ranks'][0]['quantum']
        assert quantum['longest'] > 2 * quantum['shortest']
        assert scalar['slowest_slice'] < 0.8 * scalar['frequency']['median']

    measured(disturbed, check)


class Disturbance(ctypes.Structure):
    _fields_ = [
        ('wall', ctypes.c_double),
        ('cpus', ctypes.c_int),
        ('busy', ctypes.c_double),
        ('own', ctypes.c_double),
        ('steal', ctypes.c_double),
        ('throttled', ctypes.c_double),
        ('throttled_periods', ctypes.c_uint64),
        ('thermal_known', ctypes.c_bool),
        ('thermal_events', ctypes.c_uint64),
        ('waited', ctypes.c_double),
    ]


class Set(ctypes.Structure):
    _fields_ = [('words', ctypes.c_ulong * ((1 << 15) // (8 * ctypes.sizeof(ctypes.c_ulong))))]


READS_COUNTERS = [
    *(SOURCES / 'common' / f'{name}.c' for name in ('disturbance', 'cgroup', 'system', 'json')),
    f'-iquote{SOURCES / "common"}',
    *('-std=c11', '-Wall', '-Wextra', '-Werror', '-D_POSIX_C_SOURCE=200809L', '-lm'),
]
"""What the compiler needs for them."""


@pytest.fixture(scope='module')
def counters(tmp_path_factory):
    """The reading of disturbances as a library, from a tree of files named by TREE."""
    library = tmp_path_factory.mktemp('disturbance') / 'disturbance.so'
    command = ['cc', '-shared', '-fPIC', '-DASSAY_SYSTEM_ROOT=getenv("TREE")', *READS_COUNTERS]
    subprocess.run([*command, '-o', library], check=True)
    functions = ctypes.CDLL(library)
    functions.disturbance_read.restype = Disturbance
    functions.disturbance_since.restype = Disturbance
    functions.disturbance_foreign_share.restype = ctypes.c_double
    functions.disturbance_foreign_share.argtypes = [ctypes.POINTER(Disturbance), ctypes.c_double]
    return functions


def write_tree(root, ticks, stat, thermal, waited=0):
    """A machine with three CPUs; ``ticks`` are user, nice, system and stolen ones of CPUs 1 and 2.

    ``stat`` is cpu.stat of the process's cgroup and of the one above it; each of two threads has
    ``waited`` for some ns.
    """
    user, nice, system, steal = ticks
    line = f'{user} {nice} {system} 5000 10 20 30 {steal} 0 0\n'
    texts = {
        'proc/stat': f'cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 99999 0 0 0 0 0 0 99999 0 0\n'
        f'cpu1 {line}cpu2 {line}intr 1 2 3\n',
        'proc/self/cgroup': '0::/job/step\n',
        'proc/self/mountinfo': '30 24 0:26 / /cg rw shared:4 - cgroup2 cgroup2 rw\n',
        'proc/self/task/99999998/schedstat': f'123456789 {waited} 5\n',
        'proc/self/task/99999999/schedstat': f'123456 {waited} 5\n',
        'cg/job/step/cpu.stat': stat,
        'cg/job/cpu.stat': stat,
    }
    for cpu, events in thermal.items():
        folder = f'sys/devices/system/cpu/cpu{cpu}/thermal_throttle'
        texts[f'{folder}/core_throttle_count'] = f'{events}\n'
        texts[f'{folder}/package_throttle_count'] = f'{2 * events}\n'
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_counters_of_a_made_up_machine(counters, tmp_path, monkeypatch):
    cpus = Set()
    cpus.words[0] = 0b110
    tick = 1 / os.sysconf('SC_CLK_TCK')
    before_stat = 'nr_periods 10\nnr_throttled 2\nthrottled_usec 1000000\n'
    after_stat = 'nr_periods 90\nnr_throttled 5\nthrottled_usec 1500000\n'
    write_tree(tmp_path / 'before', (100, 10, 20, 7), before_stat, {0: 50, 1: 1, 2: 2}, 10**9)
    write_tree(tmp_path / 'after', (180, 20, 30, 12), after_stat, {0: 90, 1: 2, 2: 4}, 3 * 10**9)
    monkeypatch.setenv('TREE', str(tmp_path / 'before'))
    before = counters.disturbance_read(ctypes.byref(cpus))
    assert before.busy == pytest.approx(2 * 130 * tick)
    monkeypatch.setenv('TREE', str(tmp_path / 'after'))
    passed = counters.disturbance_since(ctypes.byref(before), ctypes.byref(cpus))
    assert passed.cpus == 2
    assert passed.busy == pytest.approx(2 * 100 * tick)
    assert passed.steal == pytest.approx(2 * 5 * tick)
    assert passed.throttled == pytest.approx(2 * 0.5)
    assert passed.throttled_periods == 2 * 3
    assert passed.thermal_known
    assert passed.thermal_events == (1 + 2) + (2 + 4)
    assert passed.waited == pytest.approx(2 * 2)
    passed.wall = 4 * 100 * tick
    assert counters.disturbance_foreign_share(passed, 20 * tick) == pytest.approx(180 / 800)
    assert counters.disturbance_foreign_share(passed, 300 * tick) == 0


def test_quotas_of_the_first_version_of_cgroups(counters, tmp_path, monkeypatch):
    write_tree(tmp_path, (1, 0, 0, 0), 'nr_throttled 3\nthrottled_time 51000000\n', {})
    (tmp_path / 'proc/self/cgroup').write_text('4:cpu,cpuacct:/job\n')
    mount = '30 24 0:26 / /cg rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n'
    (tmp_path / 'proc/self/mountinfo').write_text(mount)
    monkeypatch.setenv('TREE', str(tmp_path))
    read = counters.disturbance_read(ctypes.byref(Set()))
    assert read.throttled == pytest.approx(0.051)
    assert read.throttled_periods == 3
    assert not read.thermal_known


@pytest.mark.alone
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason='needs two CPUs')
def test_threads_on_other_cpus_are_not_counted(tmp_path):
    source = paths.ROOT / 'tests' / 'programs' / 'node' / 'bound.c'
    command = ['cc', '-pthread', source, *READS_COUNTERS, '-o', tmp_path / 'bound']
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / 'bound'], check=True, capture_output=True, text=True)
    one, both = map(float, done.stdout.split())
    assert one == pytest.approx(0.5, abs=0.1)
    assert both == pytest.approx(1.0, abs=0.1)


@pytest.fixture(scope='module')
def limits(mpi, surroundings, build, tmp_path_factory):
    """Runs tests/programs/node/limits.c, sanitized, on some ranks and threads."""
    folder = build('node_limits', SANITIZED)
    program = tmp_path_factory.mktemp('limits') / 'limits'
    command = [mpi.cc, '-std=c11', '-fopenmp', '-fsanitize=address,undefined', '-Wall', '-Werror']
    command += [f'-I{SOURCES / "common"}', paths.ROOT / 'tests' / 'programs' / 'node' / 'limits.c']
    command += [next(folder.rglob(f'lib{name}.a')) for name in ('node_limits', 'windows')]
    command += ['-o', program]
    subprocess.run(command, env=surroundings, check=True)

    def run(*arguments, ranks, threads):
        return subprocess.run(
            [mpi.launcher, '-n', str(ranks), program, *arguments],
            env={**surroundings, 'OMP_NUM_THREADS': str(threads)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@on_one_mpi
def test_limits_are_optimised_whatever_a_site_asks_for(mpi, surroundings, tmp_path):
    flags = [f'-DCMAKE_{language}_FLAGS=-O1' for language in ('C', 'CXX')]
    configure(mpi, surroundings, tmp_path, *flags)
    levels = {}
    for entry in json.loads((tmp_path / 'compile_commands.json').read_text()):
        path = Path(entry['file']).relative_to(SOURCES)
        levels[str(path)] = re.findall(r' -O\w+', entry['command'])[-1].strip()
    limits = {name for name in levels if name.startswith('node/')}
    limits |= {'common/blas.c', 'common/dgemm_limit.c'}
    assert {levels[name] for name in limits} == {'-O3'}
    assert {levels[f'{name}/main.cpp'] for name in ('hpl', 'minife', 'minighost')} == {'-O1'}


@on_one_mpi
@pytest.mark.parametrize(('ranks', 'threads'), TEAMS)
def test_limits(limits, ranks, threads):
    done = limits('10', '0', '1000', str(3 << 20), ranks=ranks, threads=threads)
    assert done.returncode == 0, done.stderr
    vector, *triads = map(float, done.stdout.split())
    assert 5e8 < vector < 1e13
    assert len(triads) == 6
    assert all(1e8 < triad < 1e14 for triad in triads)


@on_one_mpi
def test_a_limit_that_does_not_fit_into_memory_ends_the_job(limits):
    done = limits('10', str(1 << 60), ranks=2, threads=1)
    assert done.returncode != 0
    assert '0' not in done.stdout.split(), 'no figure'
    assert re.search(r'^limit_triad: cannot allocate \d+ bytes; use a smaller', done.stderr, re.M)
