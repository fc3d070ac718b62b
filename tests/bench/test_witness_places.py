"""What the witness says of CPUs, threads, cgroups, devices and sockets.

The program ``tests/programs/witness/places.c`` does what its arguments say and reports. This
machine's own /proc and /sys are read here a second time; hardware and limits that it has not are in
small trees.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import struct
import subprocess
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest

import nics
from assay.machine.topology import read_topology
from building import SOURCES
from machines import lay
from sites import sites

PROGRAM = Path(__file__).parents[1] / 'programs' / 'witness' / 'places.c'
WITNESS = SOURCES / 'witness'
CPUS = sorted(os.sched_getaffinity(0))
SKIPPED = 77


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    """The program, with sanitizers and without MPI."""
    binary = tmp_path_factory.mktemp('places') / 'places'
    command = ['cc', '-std=c11', '-O1', '-g', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE']
    command += ['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined']
    command += ['-DASSAY_SYSTEM_ROOT=getenv("TREE")']
    command += ['-Wl,--wrap=getsockopt,--wrap=getifaddrs']
    command += ['-iquote', SOURCES / 'common', '-iquote', WITNESS, PROGRAM]
    command += [WITNESS / f'{name}.c' for name in ('machine', 'placement', 'ports', 'traffic')]
    command += [SOURCES / 'common' / f'{name}.c' for name in ('system', 'cgroup', 'json')]
    command += ['-lm', '-pthread', '-o', binary]
    subprocess.run(command, check=True)
    return binary


@pytest.fixture
def places(program):
    """Runs the program and returns its report; `look` is called with its pid while it waits."""

    def run(*actions, cpus=CPUS, look=None):
        with subprocess.Popen(
            [program, *actions],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        ) as process:
            line = process.stdout.readline()
            if line and look:
                look(process.pid)
            process.stdin.close()
            errors = process.stderr.read().decode()
        if process.returncode == SKIPPED:
            pytest.skip(errors)
        assert process.returncode == 0, errors
        report = json.loads(line)
        assert report['process']['pid'] == process.pid
        return report

    return run


@pytest.fixture
def tree(tmp_path):
    """Makes a folder that has these files, by path, with their lines; '' is an empty file."""

    def make(files, name='tree'):
        for path, text in files.items():
            file = tmp_path / name / path.lstrip('/')
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text('' if text == '' else f'{text}\n')
        return tmp_path / name

    return make


def members(text):
    """The numbers of a Linux list, '0-3,8'."""
    numbers = set()
    for part in filter(None, text.strip().split(',')):
        first, _, last = part.partition('-')
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def read_members(path):
    return members(Path(path).read_text())


def cores_of(cpus):
    topology = '/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list'
    return {min(read_members(topology.format(cpu))) for cpu in cpus}


#: Machines of the corpus that have few files, each with something that not all have.
MACHINES = (
    'alder-lake',
    'a64fx-fugaku',
    'cpu0-offline',
    'lpar-cpus-apart-from-memory',
    'no-topology',
    'numa-nodes-of-all-cpus',
    'power8-smt-off-at-run-time',
    'power8-uneven-smt',
    's390-lpar',
)


@pytest.mark.parametrize('machine', MACHINES)
def test_a_host_is_what_the_suite_takes_it_for(places, tmp_path, machine):
    (site,) = (one for one in sites('topology') if str(one) == machine)
    laid = lay(site.text('machine'))
    host, there = places('tree', laid.write(tmp_path))['host'], read_topology(laid)
    assert members(host['cpus']) == there.cpus
    assert members(host['cores']) == {min(core) for core in there.cores}
    domains = [members(domain['cpus']) for domain in host['numa']]
    assert sorted(domains, key=min) == [*there.domains]


# Processes and threads of this machine


@pytest.mark.parametrize('cpus', [{CPUS[0]}, {CPUS[-1]}, set(CPUS)])
def test_a_process_shows_its_affinity(places, cpus):
    process = places(cpus=cpus)['process']
    assert members(process['cpus']) == cpus
    assert members(process['cores']) == cores_of(cpus)
    folder = Path('/sys/devices/system')
    packages = {
        int((folder / f'cpu/cpu{cpu}/topology/physical_package_id').read_text()) for cpu in cpus
    }
    assert members(process['packages']) == {max(package, 0) for package in packages}
    nodes = {
        int(node.parent.name.removeprefix('node'))
        for node in folder.glob('node/node*/cpulist')
        if read_members(node) & cpus
    }
    assert members(process['numa']) == (nodes or {0})
    assert process['last_cpu'] in cpus
    assert process['threads'][0]['last_cpu'] in cpus


def test_threads_show_their_place_work_and_origin(places):
    seen = {}

    def look(pid):
        for task in Path(f'/proc/{pid}/task').iterdir():
            status = dict(
                line.split(':\t', 1) for line in (task / 'status').read_text().splitlines()
            )
            stat = (task / 'stat').read_text().rpartition(') ')[2].split()
            busy = int((task / 'schedstat').read_text().split()[0]) / 1e9
            seen[int(task.name)] = status['Cpus_allowed_list'], int(stat[36]), busy

    first, last = str(CPUS[0]), str(CPUS[-1])
    threads = places(
        *('spawn', 'early', first, '0', 'before', 'spawn', 'of) (mpi', last, '0', 'after'),
        *('spawn', 'late', first, '200'),
        look=look,
    )['process']['threads']
    told = {thread['name']: thread for thread in threads}
    assert {name: thread['origin'] for name, thread in told.items()} == {
        'places': 'main',
        'early': 'program',
        'of) (mpi': 'mpi',
        'late': 'program',
    }
    assert {thread['tid'] for thread in threads} == set(seen)
    for name, cpu in (('early', first), ('of) (mpi', last), ('late', first)):
        allowed, last_cpu, busy = seen[told[name]['tid']]
        assert told[name]['cpus'] == allowed == cpu
        assert members(told[name]['cores']) == cores_of([int(cpu)])
        assert told[name]['last_cpu'] == last_cpu == int(cpu)
        # It slept since, but may have been about to when the report was written.
        assert 0 < told[name]['busy'] <= busy < told[name]['busy'] + 0.02
    assert 0.2 <= told['late']['busy'] < 0.3
    assert told['early']['busy'] < 0.1


def test_a_name_cut_within_a_character_is_text(places):
    assert places('name', b'caf\xc3')['process']['threads'][0]['name'] == 'caf?'


def test_memory_policy(places):
    assert places()['process']['memory'] == {'policy': 'default', 'nodes': ''}
    assert places('interleave')['process']['memory'] == {'policy': 'interleave', 'nodes': '0'}


def test_the_host_shows_its_cpus(places):
    host = places()['host']
    online = read_members('/sys/devices/system/cpu/online')
    assert members(host['cpus']) == online
    assert set(CPUS) <= members(host['allowed']) <= online
    assert members(host['cores']) == cores_of(members(host['allowed']))
    assert set().union(*(members(node['cpus']) for node in host['numa'])) == online


# Machines and cgroups unlike this one

CPU = '/sys/devices/system/cpu'
NODE = '/sys/devices/system/node'
TWO_SOCKETS = {
    f'{CPU}/online': '0-7,64,1030',
    **{f'{CPU}/cpu{n}/topology/thread_siblings_list': f'{n % 4},{n % 4 + 4}' for n in range(8)},
    **{f'{CPU}/cpu{n}/topology/physical_package_id': f'{n % 2}' for n in range(8)},
    f'{CPU}/cpu1030/topology/thread_siblings_list': '1030',
    f'{CPU}/cpu1030/topology/physical_package_id': '-1',
    f'{NODE}/has_cpu': '0,2',
    f'{NODE}/node0/cpulist': '0,2,4,6',
    f'{NODE}/node1/cpulist': '',
    f'{NODE}/node2/cpulist': '1,3,5,7,64,1030',
}
V1_CPUSET = {
    '/proc/self/cgroup': '3:cpuset:/job',
    '/proc/self/mountinfo': '9 8 0:7 / /cg/cpuset rw - cgroup cgroup rw,cpuset',
}
V2 = {
    '/proc/self/cgroup': '0::/job/step',
    '/proc/self/mountinfo': '9 8 0:7 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate',
}


@pytest.mark.skipif(not {0, 1} <= set(CPUS), reason='needs CPUs 0 and 1')
def test_two_sockets_with_smt(places, tree):
    report = places('tree', tree(TWO_SOCKETS), cpus={0, 1})
    process, host = report['process'], report['host']
    assert process['cpus'] == process['cores'] == process['packages'] == '0-1'
    assert process['numa'] == '0,2'
    assert host['cpus'] == host['allowed'] == '0-7,64,1030'
    assert host['cores'] == '0-3,64,1030'
    assert host['numa'] == [{'id': 0, 'cpus': '0,2,4,6'}, {'id': 2, 'cpus': '1,3,5,7,64,1030'}]


def test_a_machine_that_tells_nothing(places, tree):
    report = places('tree', tree({'/proc/self/cgroup': ''}), cpus=CPUS)
    process, host = report['process'], report['host']
    assert members(process['cores']) == set(CPUS)
    assert process['numa'] == process['packages'] == '0'
    assert process['last_cpu'] == -1
    assert process['cpu_limit'] is None
    assert host['numa'] == [{'id': 0, 'cpus': host['cpus']}]
    assert process['threads'] == process['sockets'] == host['devices'] == []


def test_a_kernel_without_schedstat(places, tree):
    fields = ['S', *(str(100 * n) for n in range(4, 39)), '7', '4000']
    files = {
        '/proc/self/task/4242/stat': f'4242 (a) b) {" ".join(fields)}',
        '/proc/self/task/4242/schedstat': '0 0 0',
        '/proc/self/task/4242/comm': 'a) b',
        '/proc/self/task/4243/comm': 'ended while it was looked at',
    }
    (thread,) = places('tree', tree(files))['process']['threads']
    assert thread['name'] == 'a) b'
    assert thread['last_cpu'] == 7
    assert thread['busy'] == (1400 + 1500) / os.sysconf('SC_CLK_TCK')


@pytest.mark.parametrize(
    ('files', 'allowed'),
    [
        ({**V1_CPUSET, '/cg/cpuset/job/cpuset.effective_cpus': '1-2,99,1030'}, '1-2,1030'),
        ({**V1_CPUSET, '/cg/cpuset/job/cpuset.cpus': '4-6'}, '4-6'),
        ({**V1_CPUSET, '/cg/cpuset/cpuset.effective_cpus': '3'}, '0-7,64,1030'),
        ({**V2, '/cg/job/step/cpuset.cpus.effective': '3-5'}, '3-5'),
        ({**V2, '/cg/job/cpuset.cpus.effective': '2', '/cg/cpuset.cpus.effective': '0'}, '2'),
        (V2, '0-7,64,1030'),
    ],
)
def test_cpusets(places, tree, files, allowed):
    host = places('tree', tree({**TWO_SOCKETS, **files}))['host']
    assert host['allowed'] == allowed
    assert host['cpus'] == '0-7,64,1030'


# What a machine is and how it is set


def test_this_machine_shows_what_it_is(places):
    machine = places()['host']['machine']
    info = Path('/proc/cpuinfo').read_text()
    told = dict(re.findall(r'^(model name|microcode)\t*: (.*)$', info, re.MULTILINE))
    assert machine['kernel'] == os.uname().release
    assert machine.get('microcode') == told.get('microcode')
    if 'model name' in told:
        assert machine['processor'] == told['model name'].strip()


GOVERNOR = f'{CPU}/cpufreq/policy{{}}/scaling_governor'
HUGE_PAGES = '/sys/kernel/mm/transparent_hugepage/enabled'


@pytest.mark.parametrize(
    ('files', 'told'),
    [
        ({}, {}),
        (
            {
                '/proc/sys/kernel/osrelease': '6.1.0-13-amd64',
                '/proc/sys/kernel/numa_balancing': '2',
                '/proc/cpuinfo': 'processor\t: 0\nmodel name\t: Xeon: a  \nmicrocode\t: 0x2b\n\n'
                'processor\t: 1\nmodel name\t: another\nmicrocode\t: 0x2c\n',
                **{GOVERNOR.format(n): 'schedutil' for n in range(20)},
                GOVERNOR.format(20): 'performance',
                GOVERNOR.format(21): '',
                f'{CPU}/intel_pstate/no_turbo': '0',
                f'{CPU}/smt/active': '1',
                HUGE_PAGES: 'always [madvise] never',
            },
            {
                'kernel': '6.1.0-13-amd64',
                'processor': 'Xeon: a',
                'microcode': '0x2b',
                'governor': 'performance / schedutil',
                'boost': 'on',
                'smt': 'on',
                'huge_pages': 'madvise',
                'numa_balancing': '2',
            },
        ),
        (
            {
                '/proc/sys/kernel/numa_balancing': '1',
                '/proc/cpuinfo': 'processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n',
                f'{CPU}/cpufreq/boost': '0',
                f'{CPU}/smt/active': '0',
                HUGE_PAGES: 'always',
            },
            {'processor': '0x41 0xd4f', 'boost': 'off', 'smt': 'off', 'numa_balancing': 'on'},
        ),
        (
            {'/proc/cpuinfo': 'processor\t: 0\ncpu\t\t: POWER9, altivec supported\n'},
            {'processor': 'POWER9, altivec supported'},
        ),
        ({GOVERNOR.format(n): f'g{n:02}' for n in range(20)}, None),
    ],
)
def test_what_a_machine_is_and_how_it_is_set(places, tree, files, told):
    machine = places('tree', tree({'/proc/self/cgroup': '', **files}))['host']['machine']
    if told is None:  # more than anybody sets, whichever come first
        assert len(machine['governor'].split(' / ')) == 8
    else:
        assert machine == told


def v1_cpu(*mounts):
    return {
        '/proc/self/cgroup': '5:cpuset:/\n4:cpuacct,cpu:/job/step\n1:name=systemd:/x\n0::/job',
        '/proc/self/mountinfo': '\n'.join(
            (
                '1 0 0:1 / /cg rw - tmpfs tmpfs rw',
                '2 1 0:2 / /s rw - cgroup cgroup rw,cpuset',
                *mounts,
            )
        ),
    }


V1_CPU = '9 8 0:7 / /cg/cpu rw - cgroup cgroup rw,cpuacct,cpu'
V1_STEP = {'/cg/cpu/job/step/cpu.cfs_quota_us': '-1', '/cg/cpu/job/step/cpu.cfs_period_us': '100'}
V1_JOB = {'/cg/cpu/job/cpu.cfs_quota_us': '250', '/cg/cpu/job/cpu.cfs_period_us': '100'}


@pytest.mark.parametrize(
    ('files', 'limit'),
    [
        ({**V2, '/cg/job/step/cpu.max': 'max 100000', '/cg/job/cpu.max': '150000 100000'}, 1.5),
        ({**V2, '/cg/job/step/cpu.max': '50000 100000', '/cg/job/cpu.max': '200000 100000'}, 0.5),
        ({**V2, '/cg/job/step/cpu.max': '90 10', '/cg/cpu.max': '70 10'}, 7),
        ({**V2, '/cg/job/step/cpu.max': 'max 100000', '/cg/job/other/cpu.max': '1 100000'}, None),
        ({**v1_cpu(V1_CPU), **V1_STEP, **V1_JOB}, 2.5),
        ({**v1_cpu(V1_CPU), **V1_STEP}, None),
        ({**v1_cpu(), **V1_JOB}, None),
        (
            {
                **v1_cpu(V1_CPU, '9 8 0:8 / /cg/unified rw - cgroup2 cgroup2 rw'),
                **V1_JOB,
                '/cg/unified/job/cpu.max': '125 100',
            },
            1.25,
        ),
    ],
)
def test_the_smallest_quota_counts(places, tree, files, limit):
    assert places('tree', tree(files))['process']['cpu_limit'] == limit


@pytest.mark.parametrize(
    ('root', 'path', 'limit'),
    [
        ('/', '/', 3),
        ('/docker/ab', '/docker/ab', 3),
        ('/docker/ab', '/docker/ab/in', 2),
        ('/docker/ab', '/docker/abc', None),
        ('/docker/ab', '/', None),
        ('/../..', '/', None),
        (r'/my\134x2da\040b', r'/my\x2da b/in', 2),
    ],
)
def test_in_a_container_a_part_of_the_cgroups_is_seen(places, tree, root, path, limit):
    files = {
        '/proc/self/cgroup': f'0::{path}',
        '/proc/self/mountinfo': f'9 8 0:7 {root} /cg\\040s ro - cgroup2 cgroup rw',
        '/cg s/cpu.max': '300 100',
        '/cg s/in/cpu.max': '200 100',
        '/cg sc/cpu.max': '100 100',
    }
    assert places('tree', tree(files))['process']['cpu_limit'] == limit


# Devices

IB = '/sys/class/infiniband'
CXI = '/sys/class/cxi/{}/device/telemetry/hni_sts_{}_ok_octets'


def port(name, sent, received, downs=None):
    files = {f'{name}/counters/port_xmit_data': sent, f'{name}/counters/port_rcv_data': received}
    return files if downs is None else {**files, f'{name}/counters/link_downed': downs}


def test_counters_of_high_speed_networks(places, tree):
    before = {
        **port(f'{IB}/mlx5_0/ports/1', 2**40, 7),
        **port(f'{IB}/mlx5_0/ports/2', 5, 5),
        **port(f'{IB}/mlx5_0/ports/3', 5, 5),
        **port(f'{IB}/hfi1_0/ports/1', 100, 200),
        f'{IB}/hfi1_0/device/uevent': 'DRIVER=hfi1\nPCI_CLASS=20800',
        **port(f'{IB}/iwp0/ports/1', 'N/A (no PMA)', 'N/A (no PMA)'),
        **{CXI.format('cxi0', way): '4000@1700000000.000000001' for way in ('tx', 'rx')},
    }
    after = {
        **before,
        **port(f'{IB}/mlx5_0/ports/1', 2**40 + 25, 8),
        **port(f'{IB}/mlx5_0/ports/2', 9, 4),  # reset
        **port(f'{IB}/mlx5_0/ports/3', 4, 9),  # reset
        **port(f'{IB}/hfi1_0/ports/1', 101, 202),
        **port(f'{IB}/mlx5_1/ports/1', 9, 9),  # new
        CXI.format('cxi0', 'tx'): '4007@1700000001.900000001',
        CXI.format('cxi0', 'rx'): '4900@1700000001.900000002',
    }
    trees = tree(before, 'before'), tree(after, 'after')
    devices = places('tree', trees[0], 'start', 'tree', trees[1])['host']['devices']
    assert sorted(devices, key=lambda device: device['name']) == [
        {'name': 'cxi0', 'kind': 'cxi', 'sent': 7, 'received': 900},
        {'name': 'hfi1_0:1', 'kind': 'infiniband', 'sent': 8, 'received': 16},
        {'name': 'mlx5_0:1', 'kind': 'infiniband', 'sent': 100, 'received': 4},
    ]


#: What only a port of its kind has, of those in tests/support/nics.py; and what the most have.
PORTS = {
    'infiniband-hdr': [
        {'name': 'mlx5_0:1', 'link': '4X HDR', 'interface': 'ib0', 'nic': '0000:41:00.0'},
        {'name': 'mlx5_1:1', 'link': '4X HDR', 'interface': 'ib1', 'nic': '0000:a1:00.0'}
        | {'numa': 1},
    ],
    'infiniband-init': [
        {'name': f'mlx5_{n}:1', 'link': link, 'speed': speed, 'up': False, 'state': state}
        | {'interface': f'ib{n}', 'nic': f'000a:11:00.{n}', 'numa': 2}
        | {'pcie': {'width': 8, 'widest': 16, 'speed': 8, 'fastest': 8}}
        for n, link, speed, state in (
            (0, '4X SDR', 1_250_000_000, 'DOWN'),
            (1, '4X EDR', 12_500_000_000, 'INIT'),
        )
    ],
    'roce-bond': [
        {'name': 'mlx5_bond_0:1', 'layer': 'Ethernet', 'link': '4X EDR', 'speed': 12_500_000_000}
        | {'interface': 'ens1f0np0'}
    ],
    'slingshot': [
        {'name': f'cxi{n}', 'kind': 'cxi', 'interface': f'hsn{n}', 'numa': n}
        | {'nic': f'000{n}:01:00.0'}
        for n in range(4)
    ],
    'efa': [
        {'name': 'rdmap16s27:1', 'layer': 'Unknown', 'link': '4X EDR', 'speed': 12_500_000_000}
    ],
    'omni-path': [
        {'name': 'hfi1_0:1', 'link': '4X EDR', 'speed': 12_500_000_000, 'interface': 'ib0'}
        | {'pcie': {'width': 16, 'widest': 16, 'speed': 8, 'fastest': 8}}
    ],
    'ethernet-slow': [
        {'name': 'lo', 'kind': 'loopback', 'speed': 312_500_000, 'up': True}
        | {'pcie': {'width': 8, 'widest': 8, 'speed': 8, 'fastest': 8}}
    ],
}
OF_ALL = {'sent': 4000, 'received': 800, 'nic': '0000:41:00.0', 'numa': 0}
OF_ALL |= {'pcie': {'width': 16, 'widest': 16, 'speed': 16, 'fastest': 16}}
OF_RDMA = {'kind': 'infiniband', 'up': True, 'layer': 'InfiniBand'}


@pytest.mark.parametrize('machine', nics.MACHINES)
def test_ports_of_real_machines(places, tmp_path, machine):
    ports = nics.MACHINES[machine]
    trees = [
        nics.write(tmp_path / name, ports, 8 * count, 8 * count // 5)
        for name, count in (('before', 1000), ('after', 1500))
    ]
    devices = places('tree', trees[0], 'start', 'tree', trees[1])['host']['devices']
    wanted = []
    for one in PORTS[machine]:
        rdma = OF_RDMA if 'kind' not in one else {}
        speed = {} if 'speed' in one else {'speed': 25_000_000_000}
        wanted.append({**OF_ALL, **rdma, **speed, **one})
    for one in wanted:
        one['package'] = one['numa'] // 2
        if machine == 'efa':
            del one['pcie']
    found = sorted(devices, key=lambda device: device['name'])
    for one in found:
        one.pop('mtu', None), one.pop('downs', None)
    assert found == wanted


@pytest.mark.parametrize(
    ('now', 'slot', 'pcie'),
    [
        # A card in a slot with fewer lanes, or in an older machine, has all that it can have.
        (8, (8, 16.0), {'width': 8, 'widest': 8, 'speed': 16, 'fastest': 16}),
        (8, (16, 16.0), {'width': 8, 'widest': 16, 'speed': 16, 'fastest': 16}),
        # Unknown, as switches of some machines say, and cards of virtual ones.
        (8, (255, 16.0), {'width': 8, 'widest': 16, 'speed': 16, 'fastest': 16}),
        (255, (16, 16.0), None),
        (0, (16, 16.0), None),
    ],
)
def test_what_both_ends_of_a_slot_can_do(places, tmp_path, now, slot, pcie):
    card = replace(nics.HDR, pcie=(now, 16.0), slot=slot)
    report = places('tree', nics.write(tmp_path / 'tree', [card], 8, 8), 'start')
    (port,) = report['host']['devices']
    assert port.get('pcie') == pcie


def test_ports_of_infiniband_that_went_down(places, tree):
    names = [f'{IB}/mlx5_0/ports/{number}' for number in (1, 2, 3)]
    before = [port(one, 1, 1, downs) for one, downs in zip(names, (7, 255, 'N/A'), strict=True)]
    after = [port(one, 2, 2, downs) for one, downs in zip(names, (10, 0, 'N/A'), strict=True)]
    trees = [tree(before[0] | before[1] | before[2], 'before')]
    trees += [tree(after[0] | after[1] | after[2], 'after')]
    devices = places('tree', trees[0], 'start', 'tree', trees[1])['host']['devices']
    # One that was reset, and one that counts none, say nothing.
    assert {device['name']: device.get('downs') for device in devices} == {
        'mlx5_0:1': 3,
        'mlx5_0:2': None,
        'mlx5_0:3': None,
    }


def test_interfaces_that_went_down(places):
    devices = places('apart', 'flap', '1', 'start', 'flap', '3')['host']['devices']
    (downs,) = (device['downs'] for device in devices if device['name'] == 'eth0')
    assert downs == 3
    devices = places('apart', 'flap', '1', 'start')['host']['devices']
    assert {device['downs'] for device in devices} == {0}


def test_counters_of_interfaces(places, tree):
    def interfaces(lo_received, lo_sent):
        return {
            '/proc/self/net/dev': f"""Inter-|   Receive  |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls
    lo: {lo_received} 2 3 4 5 6 7 8 {lo_sent} 10 11 12 13 14 15 16
 gone0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"""
        }

    trees = tree(interfaces(10, 20), 'before'), tree(interfaces(2**50, 21), 'after')
    devices = places('tree', trees[0], 'start', 'tree', trees[1])['host']['devices']
    (lo,) = devices
    assert (lo.pop('downs'), lo.pop('up')) == (0, True)
    assert lo.pop('mtu') == int(Path('/sys/class/net/lo/mtu').read_text())
    assert lo == {'name': 'lo', 'kind': 'loopback', 'sent': 1, 'received': 2**50 - 10}


def test_the_speed_of_an_interface_with_a_device(places, tree):
    """What others state means nothing, and -1 is none that is up."""
    counters = '/proc/self/net/dev'
    text = 'Inter-|\n face |bytes\n' + '    lo: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n'
    state = '/sys/class/net/lo/'
    speeds = []
    for name, files in {
        'real': {f'{state}device': '', f'{state}speed': '25000'},
        'down': {f'{state}device': '', f'{state}speed': '-1'},
        'none': {f'{state}speed': '10000'},
    }.items():
        devices = places('tree', tree({counters: text, **files}, name), 'start')['host']['devices']
        speeds.append([device.get('speed') for device in devices])
    assert speeds == [[3_125_000_000], [None], [None]]


def test_interfaces_of_this_machine(places):
    kinds = {'1': 'ethernet', '772': 'loopback', '32': 'ip-over-infiniband'}
    types = {
        folder.parent.name: folder.read_text().strip()
        for folder in Path('/sys/class/net').glob('*/type')
    }
    devices = places('start')['host']['devices']
    assert {device['name']: device['kind'] for device in devices} == {
        name: kinds[number] for name, number in types.items() if number in kinds
    }


def lo_bytes():
    for line in Path('/proc/net/dev').read_text().splitlines():
        name, _, numbers = line.partition(':')
        if name.strip() == 'lo':
            return int(numbers.split()[8])
    raise AssertionError('no loopback')


def test_loopback_counts_what_it_carries(places):
    before = lo_bytes()
    report = places('start', 'connect', '127.0.0.1', '127.0.0.1', '3000000', '2000000')
    after = lo_bytes()
    (lo,) = (device for device in report['host']['devices'] if device['name'] == 'lo')
    assert lo['sent'] == lo['received']
    assert 5_000_000 <= lo['sent'] <= after - before


# Sockets


def sockets(report):
    """The sockets, the one that sent the most first: the kernel lists them in any order."""
    return sorted(report['process']['sockets'], key=itemgetter('sent'), reverse=True)


def ends(report):
    """(local address, remote address, device, sent, received) of the sockets, without ports."""
    return [
        (
            end['local'].rpartition(':')[0],
            end['remote'].rpartition(':')[0],
            end['device'],
            end['sent'],
            end['received'],
        )
        for end in sockets(report)
    ]


def has_address(given):
    """Whether this machine has an address of IPv6: containers often have the sockets alone."""
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind((given, 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ('given', 'written'),
    [('127.0.0.1', '127.0.0.1'), ('::1', '[::1]'), ('::ffff:127.0.0.2', '127.0.0.2')],
)
def test_bytes_of_a_socket(places, given, written):
    if ':' in given and not has_address(given):
        pytest.skip(f'no {given} here')
    open_ports = set()

    def look(pid):
        for table in Path(f'/proc/{pid}/net').glob('tcp*'):
            for line in table.read_text().splitlines()[1:]:
                open_ports.add(int(line.split()[1].rpartition(':')[2], 16))

    report = places('connect', given, given, '3000017', '5', look=look)
    client, server = sockets(report)
    assert ends(report) == [
        (written, written, 'lo', 3000017, 5),
        (written, written, 'lo', 5, 3000017),
    ]
    assert (client['local'], client['remote']) == (server['remote'], server['local'])
    assert {int(end['local'].rpartition(':')[2]) for end in (client, server)} <= open_ports


def test_a_fin_is_no_byte(places):
    report = places('connect', '127.0.0.1', '127.0.0.1', '30', '5', 'shut')
    assert [end[3:] for end in ends(report)] == [(30, 5), (5, 30)]


@pytest.mark.skipif(os.geteuid() != 0, reason='some machines let root alone filter packets')
def test_bytes_sent_twice_count_once(places):
    report = places('connect', '127.0.0.1', '127.0.0.1', '30', '5', 'lose')
    assert [end[3:] for end in ends(report)] == [(1030, 5), (5, 1030)]
    client, server = sockets(report)
    assert client['segments'] > client['resent'] > server['resent'] == 0


def test_the_shortest_round_trip(places):
    """On loopback less than any pause of the machine could make all of them."""
    report = places('connect', '127.0.0.1', '127.0.0.1', '3000000', '5')
    for end in report['process']['sockets']:
        assert 0 < end['round_trip'] < 0.1


def test_only_connected_tcp_and_each_once(places):
    report = places('connect', '127.0.0.1', '127.0.0.1', '0', '0', 'duplicate', 'others')
    assert len(report['process']['sockets']) == 2


def test_an_old_kernel_shows_no_sockets(places):
    report = places('connect', '127.0.0.1', '127.0.0.1', '1', '1', 'old')
    assert report['process']['sockets'] == []


@pytest.fixture
def interface():
    """Name and address of an interface other than loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack('256s', name.encode())
            try:
                answer = fcntl.ioctl(any_socket, 0x8915, request)  # SIOCGIFADDR
            except OSError:
                continue
            address = socket.inet_ntoa(answer[20:24])
            if not address.startswith('127.'):
                return name, address
    return pytest.skip('no interface with an IPv4 address but loopback')


def test_loopback_carries_what_a_host_sends_itself(places, interface):
    _, address = interface
    report = places('connect', address, address, '20', '10')
    assert ends(report) == [(address, address, 'lo', 20, 10), (address, address, 'lo', 10, 20)]


def test_the_device_is_the_one_with_the_local_address(places, interface):
    name, address = interface
    report = places('connect', address, '127.0.0.1', '20', '10', 'astray')
    assert ends(report) == [
        (address, '127.0.0.1', name, 20, 10),
        ('127.0.0.1', address, '', 10, 20),
    ]
