"""Two cables between two hosts, over which Open MPI, or UCX, sends parts of each message by TCP."""

from __future__ import annotations

import pytest

from assay import witness
from assay.config.fabrics import load_catalogue
from assay.witness.rails import verify_rails
from families import MPIS
from namespaces import entering, inside, needs_namespaces, starting_over, two_hosts
from running import run_command

RAILS = {'rail0': ('198.18.7.1', '198.18.7.2'), 'rail1': ('198.18.8.1', '198.18.8.2')}

pytestmark = [
    needs_namespaces,
    pytest.mark.parametrize(
        'mpi', [mpi.name for mpi in MPIS.values() if mpi.family == 'openmpi'], indirect=True
    ),
]


@pytest.fixture
def hosts():
    with two_hosts(RAILS) as found:
        yield found


@pytest.fixture
def verdict(mpi, surroundings, build, compiled, tmp_path, hosts):
    """What is said of two ranks on each host that send 32 MiB to one of the other."""
    names = RAILS['rail0']
    launched = starting_over('rail0', dict(zip(names, hosts, strict=True)), tmp_path)

    def verdict(fabric, over, rate=10.0):
        env = load_catalogue().recipe(fabric, 'openmpi').env | {
            'OMPI_MCA_btl_tcp_if_include': ','.join(over),
            'UCX_NET_DEVICES': ','.join(over),
            **launched,
        }
        library = build('assay_witness') / 'libassay_witness.so'
        report = tmp_path / 'report.json'
        command = [*entering(hosts[0]), mpi.launcher, '-n', '4']
        command += ['--host', ','.join(f'{name}:2' for name in names), '--map-by', 'node']
        # UCX looks for its devices in /sys, which shows those of the host that mounted it.
        command += [
            'unshare',
            '--mount',
            'sh',
            '-c',
            'mount -t sysfs sysfs /sys && exec "$@"',
            'sh',
        ]
        command += ['env', f'LD_PRELOAD={library}', f'ASSAY_WITNESS_REPORT={report}']
        # What applications and Halo run with.
        command += ['ASSAY_WITNESS=placement,fabric,profile,matrix', 'OMP_NUM_THREADS=1']
        command += [str(compiled('exchange', '-fopenmp')), '1', '32']
        done = run_command(command, surroundings | env, tmp_path, 120, cwd=tmp_path)
        assert done.code == 0, done.out + done.err
        found = witness.read_witness(report)
        assert len(found.hosts) == 2
        return verify_rails(found, 'sockets', dict.fromkeys(RAILS, rate) if rate else {})

    return verdict


def slow_down(hosts, rate):
    """Let the second cable carry no more."""
    for host in hosts:
        # Of a longer burst what UCX sends at once, up to 256 KiB, would go at the full rate.
        limit = ('rate', rate, 'burst', '16kb', 'latency', '20ms')
        inside(host, 'tc', 'qdisc', 'add', 'dev', 'rail1', 'root', 'tbf', *limit)


@pytest.mark.parametrize('fabric', ['tcp', 'ucx-tcp'])
def test_both_carry_their_part(verdict, fabric):
    assert verdict(fabric, RAILS) is None


def test_one_that_is_left_out(verdict):
    said = verdict('tcp', ['rail0'])
    first, second = said.split('; 198.18.7.2: ')
    assert first.startswith('198.18.7.1: rail1 carried ')
    assert first.endswith('MB; ranks 0 and 2 sit beside it')
    assert second.endswith('MB; ranks 1 and 3 sit beside it')


def test_one_that_is_switched_off(verdict, hosts):
    # Open MPI's own TCP fails in MPI_Init; UCX warns, and goes without it.
    for host in hosts:
        inside(host, 'ip', 'link', 'set', 'rail1', 'down')
    said = verdict('ucx-tcp', RAILS)
    assert said == '; '.join(f'{name}: the link of rail1 is down' for name in RAILS['rail0'])


@pytest.mark.parametrize(
    ('fabric', 'rate', 'limit'),
    [
        ('tcp', 10.0, '1gbit'),
        ('ucx-tcp', 25.0, '2500mbit'),
        ('tcp', None, '1gbit'),  # the partition names no ports
    ],
)
def test_one_at_a_tenth(verdict, hosts, fabric, rate, limit):
    slow_down(hosts, limit)
    said = verdict(fabric, RAILS, rate)
    assert 'connections over rail1 sent ' in said
    assert ' in a second, and those over rail0 ' in said
