"""What of a machine a process may use, and what descriptions of others say."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay import paths
from assay.config import settings
from assay.config.references import Layer, merge
from assay.layout.layouts import NodeShape
from assay.machine import topology
from assay.machine.topology import core_count, domain_count, of_processor, read_topology
from assay.programs.figure import Figure
from assay.programs.sizes import last_level_caches
from checks import check_on
from machines import lay
from sites import sites

SYSTEM = paths.ROOT / 'tests' / 'support' / 'system.py'


def machine(name):
    """One of the corpus."""
    (site,) = (one for one in sites('topology') if str(one) == name)
    return read_topology(lay(site.text('machine')))


def test_this_machine():
    there = topology.this_machine()
    assert len(there.cpus) == os.cpu_count()
    assert topology.usable_topology().cpus == os.sched_getaffinity(0)
    assert topology.names()['platform'] == os.uname().machine


@pytest.mark.parametrize(
    ('version', 'files'),
    [
        (2, {'cpu.max': '250000 100000'}),
        (2, {'cpu.max': '25000 10000'}),
        (1, {'cpu.cfs_quota_us': '250000', 'cpu.cfs_period_us': '100000'}),
    ],
)
def test_a_container_of_less_time_than_cpus(tmp_path, monkeypatch, version, files):
    own, groups = tmp_path / 'cgroup', tmp_path / 'groups'
    own.write_text('0::/box/job\n' if version == 2 else '3:cpu,cpuacct:/box/job\n')
    box = groups / ('' if version == 2 else 'cpu') / 'box'
    (box / 'job').mkdir(parents=True)
    for name, text in files.items():
        (box / name).write_text(f'{text}\n')
        (box / 'job' / name).write_text('max 100000\n' if version == 2 else '-1\n')
    monkeypatch.setattr(topology, 'CGROUP', own)
    monkeypatch.setattr(topology, 'CGROUPS', groups)
    monkeypatch.setattr(topology, 'this_machine', lambda: machine('epyc-rome-nps4'))
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {*range(256)})
    assert topology.usable_cores() == 2
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {0, 128})
    assert topology.usable_cores() == 1


@pytest.mark.parametrize('limit', [None, 'max'])
def test_memory_without_a_limit(tmp_path, monkeypatch, limit):
    """As on a machine of its own, whose upper group has no file of a limit."""
    own, groups = tmp_path / 'cgroup', tmp_path / 'groups'
    own.write_text('0::/user.slice/job\n')
    (groups / 'user.slice' / 'job').mkdir(parents=True)
    if limit:
        (groups / 'user.slice' / 'memory.max').write_text(f'{limit}\n')
    monkeypatch.setattr(topology, 'CGROUP', own)
    monkeypatch.setattr(topology, 'CGROUPS', groups)
    assert topology.usable_memory() == os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')


def test_a_process_of_cpus_that_are_not_shown():
    """As in a container whose /sys is another's: there is no more to know of them."""
    there = machine('alder-lake').restrict_to({40, 41})
    assert [*map(set, there.cores)] == [{40}, {41}]
    assert there.for_reframe()['num_cpus'] == 2


def test_performance_cores_alone_are_alike():
    assert machine('alder-lake').core_kinds == [6, 8]
    assert machine('alder-lake').restrict_to(range(12)).core_kinds == [6]


def test_what_reframe_found_out_by_itself():
    """It counts CPUs that are offline, and memory for a NUMA domain."""
    told = {
        'num_cpus': 8,
        'num_cpus_per_core': 2,
        'topology': {'numa_nodes': ['0x0', '0xf'], 'cores': ['0x1', '0x2', '0x4', '0x8']},
    }
    assert core_count(told) == 4 and domain_count(told) == 1
    assert of_processor(told).for_reframe()['num_cpus'] == 4


def test_what_somebody_wrote():
    assert core_count({'num_cpus': 64, 'num_cpus_per_core': 2}) == 32
    assert core_count({'num_cpus': 64}) == 64 and core_count({}) == 0
    assert domain_count({'num_cpus': 64}) == 1
    assert len(of_processor({'num_cpus': 3}).cores) == 3


def test_caches_of_kinds_that_differ():
    caches = machine('dgx-spark-gb10').for_reframe()['topology']
    assert last_level_caches(caches) == (8 << 20) + (16 << 20)


def test_a_check_has_no_more_cores_than_this_process(tmp_path, monkeypatch):
    with check_on(SYSTEM, 'golden', tmp_path, 'node/stream', 'Stream', 'mpich') as found:
        check, partition, _ = found
        check._current_partition = partition
        assert check.node == NodeShape(cores=2, numa_domains=1)
        monkeypatch.setattr(topology, 'usable_cores', lambda: 1)
        assert check.node == NodeShape(cores=1, numa_domains=1)


def test_the_generic_system_is_this_machine():
    (partition,) = settings.load_system('generic')['systems'][0]['partitions']
    there = topology.this_machine()
    assert partition['processor'] == topology.names() | there.for_reframe()
    assert partition['extras'] == {'core_kinds': there.core_kinds}


@pytest.mark.parametrize(
    ('kinds', 'file', 'is_held'),
    [([8], 'generic', True), ([6, 8], 'generic', False), ([6, 8], 'mine', True)],
)
def test_figures_that_compare_cores_of_several_kinds(kinds, file, is_held):
    class Check:
        current_partition = SimpleNamespace(extras={'core_kinds': kinds})

    check, reference = Check(), [1.0, -0.3, None, '1']
    figures = {
        'slowest_rank_of_fastest': Figure(0.5, '1', 'higher', among_cores=True),
        'undisturbed_share': Figure(1.0, '1', 'higher'),
    }
    layer = Layer(Path(f'{file}.yaml'), {check: dict.fromkeys(figures, reference)})
    held = {'slowest_rank_of_fastest', 'undisturbed_share'} if is_held else {'undisturbed_share'}
    assert merge(check, [layer], figures).keys() == held
