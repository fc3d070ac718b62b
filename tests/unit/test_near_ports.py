"""Cores near to network ports and far from them: the script that finds them, and the proof."""

import os
import shlex
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

import nics
from assay.layout.launchers import add_part_script, words_of_side
from assay.layout.layouts import LAYOUTS, NodeShape
from assay.witness.rails import rails_of
from machines import lay
from sites import SITES
from witnessed import device, entries, host, partner, process, validated

GB = 10**9

# The script, on machines that were recorded -------------------------------------------------------

#: What is said in place of the CPUs of a rank that is not bound.
FREE = 'not bound'

HDR = nics.HDR
SECOND = replace(HDR, name='mlx5_1', pci='0000:a1:00.0', interface='ib1')


@pytest.fixture(scope='module')
def processors(tmp_path_factory):
    """The folder and the list of a machine's CPUs; its files are written once."""

    @cache
    def processors(machine):
        tree = lay((SITES / 'topology' / machine / 'machine').read_text())
        folder = tree.write(tmp_path_factory.mktemp(machine)) / 'sys/devices/system'
        return folder, (folder / 'cpu/online').read_text().strip()

    return processors


@pytest.fixture
def bound(processors, tmp_path):
    """The CPUs that a rank is bound to, on a machine with some ports; FREE if it is not bound."""
    tools = tmp_path / 'tools'
    tools.mkdir()
    add_part_script(tmp_path)
    unshared = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c']

    def bound(side, machine, ports, rank=0, ranks=1, allowed=None, named=(), carrier='infiniband'):
        root = nics.write(Path(mkdtemp(dir=tmp_path)), ports, 0, 0)
        folder, online = processors(machine)
        # In place of what tells, and sets, which CPUs of this machine may be used.
        for name, text in (('sed', f'echo {allowed or online}'), ('taskset', 'echo "$2"')):
            (tools / name).write_text(f'#!/bin/sh\n{text}\n')
            (tools / name).chmod(0o755)
        laid = f'mount --bind {root}/sys /sys && mount --bind {folder} /sys/devices/system'
        if subprocess.run([*unshared, laid], capture_output=True).returncode:
            pytest.skip('nothing can be laid over /sys here')
        words = shlex.split(' '.join(words_of_side(side, carrier, named, ranks * [1])))
        env = {'PATH': f'{tools}:{os.environ["PATH"]}', 'SLURM_LOCALID': str(rank)}
        command = [*unshared, f'{laid} && exec "$@"', 'sh', *words, 'echo', FREE]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert ran.returncode == 0 and not ran.stderr, ran.stderr
        return ran.stdout.strip()

    return bound


@pytest.mark.parametrize(
    ('machine', 'numa', 'near', 'far'),
    [
        ('cascade-lake-smt', 1, '8,24', '0,16'),
        # Of four domains of a socket the port is in one; far is the other socket.
        ('epyc-rome-nps4', 2, '32,160', '64,192'),
        ('sapphire-rapids-snc4', 5, '70,182', '0,112'),
        # One socket of several domains: the others are far.
        ('knights-landing-snc4-flat', 0, '0,68,136,204', '18,86,154,222'),
        ('xeon-node-numbers-with-gap', 3, '3,35', '0,32'),
        # All cores are near, and so none is far.
        ('graviton4', 0, '0', FREE),
    ],
)
def test_a_core_of_either_side(bound, machine, numa, near, far):
    ports = [replace(HDR, numa=numa)]
    assert (bound('near', machine, ports), bound('far', machine, ports)) == (near, far)


def test_a_port_of_which_no_domain_is_told(bound):
    """Firmware says -1: where it is nobody knows, and ranks stay unbound."""
    ports = [replace(HDR, numa=-1)]
    assert [bound(side, 'cascade-lake-smt', ports) for side in ('near', 'far')] == [FREE, FREE]


def test_ports_on_both_sockets(bound):
    """Ranks are dealt round the ports, so that the two interfaces work side by side."""
    ports = [HDR, replace(SECOND, numa=1)]
    seats = [bound('near', 'cascade-lake-smt', ports, rank, 4) for rank in range(4)]
    assert seats == ['0,16', '8,24', '1,17', '9,25']
    assert bound('far', 'cascade-lake-smt', ports) == FREE, 'each domain has a port'
    named = {'named': ['mlx5_1']}
    assert bound('near', 'cascade-lake-smt', ports, 1, 2, **named) == '9,25'
    assert bound('far', 'cascade-lake-smt', ports, 2, 3, **named) == '2,18'


def test_two_ports_in_one_domain_share_its_cores(bound):
    ports = [replace(HDR, numa=1), replace(SECOND, numa=1)]
    seats = [bound('near', 'cascade-lake-smt', ports, rank, 2) for rank in range(2)]
    assert seats == ['8,24', '9,25']


def test_a_job_with_a_part_of_the_cores(bound):
    """Its cgroup may have any: others of the domain, of the socket, or only far ones."""
    one = [HDR]
    assert bound('near', 'epyc-rome-nps4', one, allowed='14-40') == '14,142'
    assert bound('far', 'epyc-rome-nps4', one, allowed='14-40') == '16,144'
    assert bound('near', 'epyc-rome-nps4', one, allowed='40-90') == '40,168', 'of its socket'
    assert bound('near', 'epyc-rome-nps4', one, allowed='70-90') == FREE
    assert bound('far', 'epyc-rome-nps4', one, allowed='0-15') == FREE


def test_more_ranks_than_cores_of_the_domain(bound):
    seats = [bound('near', 'cascade-lake-smt', [HDR], rank, 9) for rank in (7, 8)]
    assert seats == ['7,23', FREE]


@pytest.mark.parametrize(
    ('other', 'far'),
    [
        ({'state': '1: DOWN'}, '8,24'),
        ({'layer': 'Ethernet', 'rate': '400 Gb/sec (4X NDR)'}, '8,24'),
        ({'rate': '40 Gb/sec (4X QDR)'}, '8,24'),
        ({'rate': '100 Gb/sec (2X HDR)'}, FREE),
    ],
)
def test_which_ports_count_where_none_is_named(bound, other, far):
    """None without a link, for storage, or slower than half of another."""
    ports = [HDR, replace(SECOND, numa=1, **other)]
    assert bound('far', 'cascade-lake-smt', ports) == far


def test_ports_of_other_kinds(bound):
    """Slingshot's, which people call by their interface, and interfaces."""
    both = nics.MACHINES['slingshot'][:2]
    where = {'carrier': 'cxi', 'named': ['hsn1']}
    assert bound('near', 'cascade-lake-smt', both, **where) == '8,24'
    lan = [nics.Nic('eth0', 'net', rate='25000', numa=1)]
    where = {'carrier': 'sockets', 'named': ['eth0']}
    assert bound('far', 'cascade-lake-smt', lan, **where) == '0,16'


def test_interfaces_that_tell_little(bound):
    """Drivers without a speed say -1, and virtual devices have no domain."""
    lan = [nics.Nic('eth0', 'net', rate='-1', numa=1)]
    assert bound('near', 'cascade-lake-smt', lan, carrier='sockets') == '8,24'
    lan = [nics.Nic('eth0', 'net', numa=None, pci='0000:42:00.0'), nics.Nic('eth1', 'net')]
    where = {'carrier': 'sockets', 'named': ['eth0', 'eth1']}
    assert bound('near', 'cascade-lake-smt', lan, **where) == '0,16'


# The proof, by reports of the witness -------------------------------------------------------------

#: Two sockets of a domain each, and of four.
TWO, NPS4 = [[0, 1], [2, 3]], [[2 * n, 2 * n + 1] for n in range(8)]


def port(name, carried, numa, package=None, **more):
    about = {'received': carried // 2, 'numa': numa, 'up': True, 'layer': 'InfiniBand'}
    package = numa if package is None else package
    return device(name, 'infiniband', carried // 2) | about | {'package': package} | more


def said(side, seats, ports, domains=TWO, named=(), carrier='infiniband', asked=None, **more):
    """What a job on two hosts lacks, and what is wrong with it, of ranks on these cores of each."""
    hosts = [host(name, domains, **more) | {'devices': ports} for name in ('n1', 'n2')]
    count = len(seats)
    processes = [
        process(
            rank,
            seats[rank % count],
            f'n{rank // count + 1}',
            partners=[partner((rank + count) % (2 * count), 100, GB, {1 << 20: 1000})],
        )
        for rank in range(2 * count)
    ]
    report = validated(entries(processes, hosts))
    layout = LAYOUTS[side]
    placement = layout.place('srun', NodeShape(16, 2), asked or count)
    assert layout.verify(report, placement) is None
    rails = rails_of(report, carrier, dict.fromkeys(named, 200))
    return layout.verify_ports(report, placement, rails)


NEAR, BOTH = [port('mlx5_0:1', 8 * GB, 0)], [port(f'mlx5_{n}:1', 8 * GB, n) for n in range(2)]


@pytest.mark.parametrize(('side', 'right', 'wrong'), [('near', 1, 2), ('far', 2, 1)])
def test_ranks_on_the_right_side_and_the_wrong_one(side, right, wrong):
    assert said(side, [(right,)], NEAR) == (None, None)
    other = {'near': 'far from', 'far': 'near to'}[side]
    assert said(side, [(wrong,)], NEAR) == (
        None,
        f'layout {side}: rank 0 on n1 has core {wrong}, {other} mlx5_0:1, which carried 8.0 GB (if '
        "messages ought to go over other ports, name those in the partition's extras: ports) (and "
        'so it is on 1 more hosts)',
    )


def test_ranks_that_are_not_bound_or_share_a_core():
    assert said('near', [(0, 1, 2, 3)], NEAR)[1].startswith('rank 0 on n1 is not bound')
    assert said('far', [(2, 3)], NEAR)[1].startswith('rank 0 on n1 is bound to cores 2-3')
    assert said('near', [(0,), (0,)], NEAR)[1].startswith('ranks 0 and 1 share core 0')


def test_four_domains_a_socket():
    """Near is the port's domain alone; far is any other, though ranks go to the other socket."""
    one = [port('mlx5_0:1', 8 * GB, 2, 0)]
    of = {'domains': NPS4, 'per_package': 4}
    assert said('near', [(4,)], one, **of) == (None, None)
    assert 'has core 6, far from mlx5_0:1' in said('near', [(6,)], one, **of)[1]
    assert said('far', [(8,)], one, **of) == (None, None)
    # Where the job has no core of that domain, those of its socket are near.
    of['allowed'] = [0, 1, 8, 9]
    assert said('near', [(0,)], one, **of) == (None, None)
    assert 'has core 0, near to mlx5_0:1' in said('far', [(0,)], one, **of)[1]


def test_ports_on_both_sockets_of_which_one_carried_all():
    """A port that carried less than its part is none that ranks are near to."""
    idle = [BOTH[0], port('mlx5_1:1', GB, 1)]
    assert said('near', [(0,)], idle, named=['mlx5_0', 'mlx5_1']) == (None, None)
    assert 'far from mlx5_0:1' in said('near', [(2,)], idle)[1]
    assert said('near', [(0,), (2,)], BOTH) == (None, None), 'each has its own port'
    lacks, wrong = said('far', [(2,)], BOTH)
    assert lacks == 'no core of the job on n1 is far from mlx5_0:1 and mlx5_1:1'
    assert wrong is None
    assert said('far', [(2,)], BOTH, named=['mlx5_0']) == (None, None)


def test_what_hosts_lack():
    """Such a job is no evidence, whichever cores its ranks have."""
    free = [(0, 1, 2, 3)]
    told = 'n1 has one NUMA domain, so that no core is nearer to a port than others'
    assert said('near', free, NEAR, domains=[[0, 1, 2, 3]]) == (told, None)
    unknown = [port('mlx5_0:1', 8 * GB, None)]
    told = 'n1 does not tell in which NUMA domain mlx5_0:1 is'
    assert said('far', free, unknown) == (told, None)
    told = 'no port is known that messages of n1 went over'
    assert said('near', free, []) == (told, None)
    told = 'no core of the job on n1 is near to mlx5_0:1'
    assert said('near', [(2, 3)], NEAR, allowed=[2, 3]) == (told, None)
    told = 'no core of the job on n1 is far from mlx5_0:1'
    assert said('far', [(0, 1)], NEAR, allowed=[0, 1]) == (told, None)


def test_more_ranks_than_cores_on_a_side():
    """Of the cores that the job may use, or of a smaller domain than the others."""
    told = 'the job on n1 has 1 core near to mlx5_0:1, and layout near needs 2'
    seats = [(1, 2, 3), (1, 2, 3)]
    assert said('near', seats, NEAR, allowed=[1, 2, 3])[1].startswith(told)
    assert said('near', [(0, 1, 2, 3)] * 2, NEAR, domains=[[1], [0, 2, 3]])[1].startswith(told)


def test_a_bond_is_where_its_parts_are():
    parts = [
        device(f'eth{n}', 'ethernet', 4 * GB)
        | {'master': 'bond0', 'nic': 'x', 'numa': 1, 'up': True}
        for n in range(2)
    ]
    bond = [device('bond0', 'ethernet', 8 * GB) | {'up': True}, *parts]
    where = {'carrier': 'sockets', 'named': ['bond0']}
    assert said('near', [(2,)], bond, **where) == (None, None)
    assert 'near to bond0' in said('far', [(2,)], bond, **where)[1]
