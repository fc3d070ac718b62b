"""Between two hosts: namespaces of this machine that a cable joins, with some ranks each."""

import json
import os
import subprocess

import pytest

from assay.config.fabrics import load_catalogue
from families import MPIS
from namespaces import inside, needs_namespaces, two_hosts
from quiet import measured
from running import run_command

ADDRESSES = ('198.18.7.1', '198.18.7.2')

pytestmark = [
    needs_namespaces,
    # Its launcher finds its ranks by a file that they inherit, in whatever network they are.
    pytest.mark.parametrize(
        'mpi', [mpi.name for mpi in MPIS.values() if mpi.family == 'mpich'], indirect=True
    ),
]


@pytest.fixture
def hosts():
    with two_hosts({'cable': ADDRESSES}) as found:
        yield found


@pytest.fixture
def between(mpi, surroundings, build, sanitizers, tmp_path, hosts):
    """Runs a program with so many ranks on each host; those of each may be on one CPU."""

    def between(program, *arguments, env, ranks=1, cpus=(), preload='', on_second=()):
        command = [mpi.launcher]
        for number, host in enumerate(hosts):
            command += [':'] if len(command) > 1 else []
            command += ['-n', str(ranks), 'nsenter', '-t', str(host.pid), '-n', '-u']
            command += ['taskset', '-c', str(cpus[number])] if cpus else []
            command += on_second if number else []
            command += ['env', f'LD_PRELOAD={preload}'] if preload else []
            command += [str(build(program, '' if preload else sanitizers) / program), *arguments]
            command += ['--json', str(tmp_path / 'report.json')]
        return run_command(command, surroundings | env, tmp_path, 120, cwd=tmp_path)

    return between


@pytest.fixture
def limits(between):
    return lambda env: between('limits', env=env)


def over_cable(mpi):
    """The variables of a fabric of sockets over the cable."""
    catalogue = load_catalogue()
    fabric = next(f for f in ('ofi-tcp', 'ucx-tcp') if catalogue.no_recipe(f, mpi) is None)
    recipe = catalogue.recipe(fabric, 'mpich').env
    return recipe | {'FI_TCP_IFACE': 'cable', 'UCX_NET_DEVICES': 'cable'}


def ends(done):
    assert done.code == 0, done.err
    found = done.report['limits']
    assert set(found) == {'memcpy', 'socket'}
    assert 0 < found['socket']['latency'] < 1
    assert 0 < found['socket']['bandwidth'] < 1e12
    assert [end['interface'] for end in found['socket']['ends']] == ['cable', 'cable']
    return tuple(end['address'] for end in found['socket']['ends'])


def test_the_socket_goes_where_that_of_mpi_goes(mpi, hosts, limits):
    for host, name in zip(hosts, ('one.invalid', 'two.invalid'), strict=True):
        inside(host, 'hostname', name)  # by which nobody is found
    assert ends(limits(over_cable(mpi))) == ADDRESSES


def test_without_one_of_mpi_it_goes_where_the_hosts_know_each_other(limits):
    assert ends(limits({})) == ADDRESSES


@pytest.mark.alone
def test_a_direction_that_is_slow_shows_at_its_end(hosts, limits):
    """As a duplex mismatch has it: what the second host sends goes at 200 Mbit/s."""
    slow = ['rate', '200mbit', 'burst', '64kb', 'latency', '50ms']
    inside(hosts[1], 'tc', 'qdisc', 'replace', 'dev', 'cable', 'root', 'tbf', *slow)

    def received():
        done = limits({})
        assert ends(done) == ADDRESSES
        return [end['received'] for end in done.report['limits']['socket']['ends']]

    def check(speeds):
        back, there = speeds
        assert 10e6 < back < 27e6
        assert there > 4 * back

    measured(received, check)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('two.invalid', 'this host knows two.invalid by no address that reaches it'),
        ('127.0.0.2', 'this host knows 127.0.0.2 by no address that reaches it'),
        ('198.18.7.9', 'cannot bind a TCP socket between 198.18.7.1 and 198.18.7.9'),
    ],
)
def test_a_host_that_the_other_does_not_know_is_a_sentence(hosts, limits, name, words):
    inside(hosts[1], 'hostname', name)
    done = limits({})
    assert done.code != 0
    assert words in done.err
    assert not (done.files / 'report.json').exists()


def test_a_network_that_lets_no_socket_through_is_a_sentence(hosts, limits):
    inside(hosts[1], 'ip', 'route', 'add', 'prohibit', ADDRESSES[0])
    done = limits({})
    assert done.code != 0
    assert 'a TCP socket between 198.18.7.1 and 198.18.7.2: Connection timed out' in done.err


def test_hosts_are_the_nodes_of_pairs(mpi, between):
    done = between('pairs', '--large', '64K', '--budget', '0.005', env=over_cable(mpi), ranks=2)
    assert done.code == 0, done.err
    report = done.report
    assert (report['nodes'], report['ranks_per_node']) == (2, 2)
    assert [pair['nodes'] for pair in report['pairs']] == [[*ADDRESSES]]
    results = report['results']
    rates = [entry['senders'] for entry in results if entry['measure'] == 'message_rate']
    assert rates == [1, 2]
    assert results[-1]['pairs'] == 2


def test_hosts_of_one_machine_tell_how_far_apart_their_cores_are(mpi, between, build, tmp_path):
    """One of some tries: it is not known where others have a core meanwhile."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip('two ranks on one CPU have no distance')
    witness = str(build('assay_witness') / 'libassay_witness.so')
    seconds = []
    for _ in range(10):
        done = between('limits', env=over_cable(mpi), cpus=cpus, preload=witness)
        assert done.code == 0, done.err
        assert not [*tmp_path.glob('.*')]  # what they passed to and fro has gone
        hosts = json.loads((tmp_path / 'assay-witness.json').read_text())['hosts']
        seen = [host['disturbance'] for host in hosts]
        if 'least_additions' not in seen[0]:
            pytest.skip('no hypervisor may move cores unseen')
        seconds = [one['least_core_latency'] for one in seen if 'least_core_latency' in one]
        if seconds:
            break
    if not seconds:
        pytest.skip('others had a core')
    assert len(seconds) == 2
    assert seconds[0] == seconds[1] < 1e-3


#: For a host whose clock began 500 s before those of others.
AHEAD = ['unshare', '--time', '--monotonic', '500', '--fork']


@pytest.mark.skipif(
    subprocess.run([*AHEAD, 'true'], capture_output=True).returncode != 0,
    reason='the kernel gives no host a clock of its own',
)
def test_hosts_with_other_clocks_begin_a_call_at_the_same_moment(mpi, between):
    """By a clock that is taken for the same one calls would take 500 s, or begin so much later."""
    arguments = ['--op', 'bcast,reduce', '--start', 'window', '--max', '8', '--budget', '0.01']
    begun_in_time = set()
    for _ in range(10):  # others may hold up each call of a run
        done = between('collectives', *arguments, env=over_cable(mpi), on_second=AHEAD)
        assert done.code == 0, done.err
        assert 0 < done.report['clock_error'] < 100
        results = done.report['results']
        assert max(one['time']['best'] for one in results) < 100
        calls = {(one['op'], one['size']) for one in results}
        begun_in_time |= {(one['op'], one['size']) for one in results if one['late_share'] < 1}
        if begun_in_time == calls:
            return
    pytest.fail(f'in ten runs only calls of {begun_in_time} ever began in time')
