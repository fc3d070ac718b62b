"""``nodes``: each node's report, what the host has, and that wrong answers are told."""

import ctypes
import os
import subprocess
from contextlib import ExitStack

import pytest

from building import SOURCES
from families import on_one_mpi
from measured import check_head

SHORT = ('--sweeps', '2', '--budget', '0.002', '--size', '1M', '--n', '100')
TEAMS = [(2, 1), (1, 2)]
"""Ranks and threads."""


@pytest.mark.parametrize(('ranks', 'threads'), TEAMS)
def test_nodes(run, build, sanitizers, tmp_path, ranks, threads):
    # By its name no other test's.
    program = tmp_path / 'our-own-nodes'
    program.symlink_to(build('nodes', sanitizers) / 'nodes')
    done = run(program, *SHORT, ranks=ranks, env={'OMP_NUM_THREADS': str(threads)})
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'nodes', ranks)
    (node,) = report['results']
    assert node['node'] == report['hosts'][0]
    for mode in ('alone', 'together'):
        assert {*node[mode]} == {'triad', 'dgemm', 'frequency', 'taken'}
        for name in ('triad', 'dgemm', 'frequency'):
            assert len(node[mode][name]) == 2
            assert all(1e6 < value < 1e14 for value in node[mode][name])
        assert all(0 <= share <= 2 for share in node[mode]['taken'])
    parts = ('all', 'others', 'interrupts', 'stolen')
    assert {*node['noise']} == {'share', 'longest', 'cpu', *parts}
    # Ticks of the kernel may count more than the time that passed.
    for name, most in (('share', 1), ('longest', 60), *((part, 2) for part in parts)):
        assert len(node['noise'][name]) == 2
        assert all(0 <= value < most for value in node['noise'][name])
    assert {*node['noise']['cpu']} <= os.sched_getaffinity(0)
    for share, all_cores in zip(node['noise']['share'], node['noise']['all'], strict=True):
        assert all_cores <= share
    assert node.get('busiest_other', {}).get('command') != program.name
    facts = node['facts']
    assert facts['cpus'] == os.cpu_count()
    assert facts['memory'] == os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    assert 'wrong' not in node
    assert node['node'] in done.out


@on_one_mpi
@pytest.mark.parametrize(
    'wrong', [('--sweeps', '0'), ('--sweeps', '65'), ('--waves', '0'), ('--n', '0')]
)
def test_wrong_use(run, wrong):
    done = run('nodes', *wrong, ranks=1)
    assert done.code == 2
    assert wrong[0] in done.err


@on_one_mpi
def test_too_much_memory_is_refused(run):
    done = run('nodes', '--size', '100000G', ranks=1)
    assert done.code == 2
    assert 'use a smaller --size or --n' in done.err


@on_one_mpi
def test_a_wrong_answer_is_told_and_ends_nothing(run, fault):
    # Of the array in the middle, which the triad reads.
    env = {'OMP_NUM_THREADS': '1', 'FLIP_RANK': '1', 'FLIP_SIXTHS': '3'}
    done = run('nodes', *SHORT, '--size', '64M', preload=fault('flip_memory'), env=env)
    assert done.code == 0, done.err
    (node,) = done.report['results']
    assert node['wrong'] == 'an array in memory'


@on_one_mpi
def test_what_comes_in_every_millisecond_is_noise(run, fault):
    env = {'OMP_NUM_THREADS': '1'}
    done = run('nodes', *SHORT, ranks=1, preload=fault('interrupts'), env=env)
    assert done.code == 0, done.err
    assert min(done.report['results'][0]['noise']['share']) > 0.05


@on_one_mpi
def test_what_other_processes_take_is_told_apart(run):
    """Each CPU has another process that never waits."""
    with ExitStack() as stack:
        for cpu in os.sched_getaffinity(0):
            other = subprocess.Popen(['taskset', '-c', str(cpu), 'sh', '-c', 'while :; do :; done'])
            stack.callback(other.wait)
            stack.callback(other.kill)
        longer = ('--budget', '0.01')  # than a turn of the scheduler, ten times
        done = run('nodes', *SHORT, *longer, ranks=1, env={'OMP_NUM_THREADS': '1'})
    assert done.code == 0, done.err
    noise = done.report['results'][0]['noise']
    assert min(noise['others']) > 0.05 and min(noise['share']) > 0.05


# The busiest process that is none of the job's ----------------------------------------------------


class Process(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ('id', 'parent', 'session', 'cpu')),
        *((name, ctypes.c_ulonglong) for name in ('ticks', 'begun')),
        ('command', ctypes.c_char * 16),
    ]


class Processes(ctypes.Structure):
    _fields_ = [('count', ctypes.c_size_t), ('of', ctypes.POINTER(Process))]


class OwnJob(ctypes.Structure):
    _fields_ = [
        ('ranks', ctypes.POINTER(ctypes.c_int)),
        ('rank_count', ctypes.c_int),
        ('cpus', ctypes.c_ulong * 512),
        ('number', ctypes.c_char_p),
    ]


@pytest.fixture(scope='module')
def processes(tmp_path_factory):
    """The reading of processes as a library, from a tree of files named by TREE."""
    library = tmp_path_factory.mktemp('processes') / 'processes.so'
    files = (SOURCES / 'node' / 'nodes' / 'busiest.c', SOURCES / 'common' / 'system.c')
    command = ['cc', '-shared', '-fPIC', '-DASSAY_SYSTEM_ROOT=getenv("TREE")', *files]
    command += [SOURCES / 'common' / 'json.c', f'-iquote{SOURCES / "common"}']
    command += ['-std=c11', '-Wall', '-Wextra', '-Werror', '-D_POSIX_C_SOURCE=200809L']
    subprocess.run([*command, '-o', library], check=True)
    functions = ctypes.CDLL(library)
    functions.processes_read.restype = Processes
    functions.processes_busiest.restype = ctypes.POINTER(Process)
    return functions


def busiest(functions, folder, monkeypatch, before, after, ranks=()):
    """Its ID, command and ticks, beside ranks of the job 12 on the CPUs 3 and 4.

    :param before: by ID the command, user and system time, and what is not the same of all.
    """
    read = []
    for name, found in (('before', before), ('after', after)):
        for process, (command, user, system, *others) in found.items():
            stat = folder / name / 'proc' / str(process) / 'stat'
            stat.parent.mkdir(parents=True)
            of = {'parent': 1, 'session': process, 'cpu': 3, 'begun': 99, 'job': 0}
            of |= dict(*others)
            times = f'{of["parent"]} 2 {of["session"]} 4 -1 64 5 6 7 8 {user} {system} 9 9 20 0 1 0'
            stat.write_text(
                f'{process} ({command}) S {times} {of["begun"]} {"18446744073709551615 " * 15}17 '
                f'{of["cpu"]} 0\n'
            )
            stat.with_name('cgroup').write_text(f'0::/system.slice/job_{of["job"]}/step_0/user\n')
        monkeypatch.setenv('TREE', str(folder / name))
        read.append(functions.processes_read())
    seconds, job = ctypes.c_double(), OwnJob((ctypes.c_int * len(ranks))(*ranks), len(ranks))
    job.cpus[0], job.number = 0b11000, b'12'
    one = functions.processes_busiest(*map(ctypes.byref, (*read, job, seconds)))
    ticks = round(seconds.value * os.sysconf('SC_CLK_TCK'))
    return (one[0].id, one[0].command.decode(), ticks) if one else None


def test_the_busiest_process_is_none_of_the_jobs(processes, tmp_path, monkeypatch):
    before = {9: ('a) (b', 500, 50), 70: ('rank', 1, 1), 100: ('idle', 9000, 9000)}
    after = {9: ('a) (b', 510, 57), 70: ('rank', 2000, 1), 100: ('idle', 9001, 9000)}
    after[1] = ('init', 5, 5)
    after[70] = ('rank', 2000, 1, {'parent': 60})
    after[60] = ('launcher', 2000, 1, {'session': 50})
    after[51] = ('beside it', 2000, 1, {'session': 50})
    after[61] = ('srun', 2000, 1, {'job': 12})
    after[62] = ('of job 121', 3, 4, {'job': 121})
    after[63] = ('other CPUs', 2000, 1, {'cpu': 5})
    after[1234567] = ('fifteen bytes ok', 3, 4)
    found = busiest(processes, tmp_path, monkeypatch, before, after, ranks=(70, 71))
    assert found == (9, 'a) (b', 17)


@pytest.mark.parametrize(
    ('before', 'after', 'found'),
    [
        ({}, {}, None),
        ({5: ('x', 7, 7)}, {5: ('x', 7, 7)}, None),
        # Its ID has been given again.
        ({5: ('x', 7, 7)}, {5: ('other', 9, 9, {'begun': 100})}, (5, 'other', 18)),
        ({5: ('x', 7, 7)}, {6: ('longer than 15 bytes', 2, 0)}, (6, 'longer than 15 ', 2)),
    ],
)
def test_processes_that_come_and_go(processes, tmp_path, monkeypatch, before, after, found):
    assert busiest(processes, tmp_path, monkeypatch, before, after) == found
