"""What steered ranks beside their variables: which of it is told, to whom, and what fails a job."""

import copy
import json
import shutil
from datetime import datetime, timezone

import pytest

from assay import paths
from assay.job.launch import LaunchError
from assay.results.failures import failures, left_in_good_cases
from assay.results.provenance import changed_facts as changes
from assay.results.reframe_report import case_of
from assay.screening.outputs import collect
from assay.screening.verdict import find_different, judge_screening
from assay.screening.where import Where
from assay.witness.changes import setting_changes
from assay.witness.settings import (
    LEAST_LOCKED,
    binary_size,
    facts,
    host_differences,
    left_in_files,
    set_by_files,
    verify_settings,
)
from launched import over_infiniband
from reports import cases, run_of
from screenings import screening
from witnessed import halo, validated

SCREENED = paths.ROOT / 'tests' / 'golden' / 'jobs' / 'Screen' / 'mpich-ucx-tcp'
HOME, ETC = '/home/u/.openmpi/mca-params.conf', '/opt/openmpi/etc/openmpi-mca-params.conf'
BUFFERS = f'file:{HOME}:OMPI_MCA_btl_tcp_sndbuf'
SCALING = 'kernel:net.ipv4.tcp_window_scaling'
USUAL = {'limit:memlock': 'unlimited', 'limit:nofile': '1024', SCALING: '1'}


def job(settings=USUAL, hosts=2, **of_hosts):
    """Four ranks; ``n2`` are settings that the ranks of that host have otherwise."""
    content = halo(4, hosts)
    content['settings'] = dict(settings)
    for process in content['processes']:
        if other := of_hosts.get(process['host']):
            process['differs'] = {'settings': other}
    return content


def test_a_report_of_an_earlier_witness_tells_nothing():
    report = validated(halo(4, 2))
    assert (facts(report), host_differences(report), left_in_files(report)) == ({}, [], [])
    assert verify_settings(report, 'sockets') is None


def test_what_a_file_sets_was_left():
    assert left_in_files(validated(job(USUAL | {BUFFERS: '2048'}))) == [
        f'btl_tcp_sndbuf=2048 in {HOME}'
    ]


def test_of_several_files_that_set_it_the_first_wins():
    """As the witness has them: a user's file comes before that of the prefix."""
    both = {BUFFERS: '2048', f'file:{ETC}:OMPI_MCA_btl_tcp_sndbuf': '0'}
    assert left_in_files(validated(job(both))) == [f'btl_tcp_sndbuf=2048 in {HOME}']


@pytest.mark.parametrize(
    ('path', 'is_told'), [(HOME, False), (ETC.replace('.conf', '-override.conf'), True)]
)
def test_a_variable_of_the_environment_comes_before_files(path, is_told):
    """But not before those that override."""
    content = job({f'file:{path}:OMPI_MCA_btl': '^tcp'})
    content['environment'] = {'OMPI_MCA_btl': 'self,tcp'}
    assert bool(left_in_files(validated(content))) == is_told


def test_what_a_launcher_hands_on_from_a_file_is_the_files():
    """Open MPI 5's reads the user's file, and sets the same in the environment of ranks."""
    content = job({BUFFERS: '2048'})
    content['environment'] = {'OMPI_MCA_btl_tcp_sndbuf': '2048'}
    assert left_in_files(validated(content)) == [f'btl_tcp_sndbuf=2048 in {HOME}']
    assert set_by_files(validated(content)) == {'OMPI_MCA_btl_tcp_sndbuf': {'2048'}}


def test_a_file_of_one_host_is_told_with_the_host():
    content = job(n2={'file:/etc/ucx/ucx.conf:UCX_TLS': 'tcp'})
    assert left_in_files(validated(content)) == ['UCX_TLS=tcp in /etc/ucx/ucx.conf, on n2']


@pytest.mark.parametrize(
    ('by', 'words'),
    [
        ('/etc/ld.so.preload', 'preloading of /opt/slow.so in /etc/ld.so.preload, on n2'),
        ('unknown', 'preloading of /opt/slow.so, on n2'),
    ],
)
def test_a_library_that_one_host_preloads_was_left(by, words):
    assert left_in_files(validated(job(n2={'preloaded:/opt/slow.so': by}))) == [words]


def test_hosts_that_differ_are_told_with_what_they_have():
    content = job(n2={SCALING: '0', 'limit:memlock': '65536', 'preloaded:/x.so': 'unknown'})
    assert host_differences(validated(content)) == [
        'net.ipv4.tcp_window_scaling (0 on n2, 1 on n1)',
        'limit of memlock (64 KiB on n2, unlimited on n1)',
        'preloaded library /x.so (not there on n1, unknown on n2)',
    ]
    assert facts(validated(content))['net.ipv4.tcp_window_scaling'] == '0 (n2), 1 (n1)'


def test_a_variable_that_one_host_has_is_told():
    """By a prolog, say. What each rank has for itself is none of its host's, nor are modules."""
    content = halo(4, 2)
    for rank, process in enumerate(content['processes']):
        own = {'UCX_RANK': str(rank), 'LOADEDMODULES': process['host']}
        slow = {'LD_PRELOAD': '/x.so'} if process['host'] == 'n2' else {}
        process['differs'] = {'environment': own | slow}
    assert host_differences(validated(content)) == ['LD_PRELOAD (/x.so on n2, unset on n1)']


def test_ranks_of_a_host_that_differ_are_told():
    content = job(hosts=1)
    content['processes'][3]['differs'] = {'settings': {'limit:nofile': '256'}}
    assert facts(validated(content))['limit of nofile'] == '1024 / 256'
    assert host_differences(validated(content)) == []


def with_clocks(*days, error=1e-5):
    content = job(hosts=len(days)) if len(days) < 3 else _of_more_hosts(len(days))
    for host, day in zip(content['hosts'], days, strict=True):
        host['clock'] = {'offset': 0.0, 'error': error, 'day': day}
    return validated(content)


def _of_more_hosts(count):
    content = halo(2 * count, count)
    content['settings'] = dict(USUAL)
    return content


@pytest.mark.parametrize(
    ('days', 'told', 'words'),
    [
        ((0.0, 0.3), None, []),
        ((0.0, 30.0), '+30 s (n2), in step (n1)', ['n1 and n2 are 30.0 s apart']),
        ((0.0, 0.0, -30.2), '-30 s (n3), in step (n[1-2])', ['are 30.2 s apart']),
        # Rank 0's own host is the one that is off.
        ((0.0, -30.0, -30.0), '+30 s (n1), in step (n[2-3])', ['are 30.0 s apart']),
    ],
)
def test_a_clock_of_the_day_that_is_off(days, told, words):
    report = with_clocks(*days)
    assert facts(report).get('clock of the day') == told
    found = [one for one in host_differences(report) if one.startswith('clock')]
    assert len(found) == len(words)
    assert all(word in one for word, one in zip(words, found, strict=True))
    assert all('to within 0.01 ms' in one for one in found)


def test_a_clock_is_not_off_by_less_than_the_error():
    assert 'clock of the day' not in facts(with_clocks(0.0, 3.0, error=2.5))


def test_the_interface_that_was_used_is_told():
    content = job()
    ends = ['10.0.0.1:1', '10.0.0.2:2']
    for process, (local, remote) in zip(content['processes'][1:3], (ends, ends[::-1]), strict=True):
        process['sockets'] = [
            {'local': local, 'remote': remote, 'device': 'eth0', 'sent': 9, 'received': 9}
        ]
    for host, mtu in zip(content['hosts'], (9000, 1500), strict=True):
        host['devices'] = [
            {
                'name': name,
                'kind': 'ethernet',
                'sent': 1,
                'received': 1,
                'mtu': mtu,
                'speed': 3125000000,
            }
            for name in ('eth0', 'eth1')
        ]
    report = validated(content)
    assert host_differences(report) == ['MTU of eth0 (1500 on n2, 9000 on n1)']
    assert facts(report)['speed of eth0'] == '25 Gbit/s'
    assert not any('eth1' in name for name in facts(report))


@pytest.mark.parametrize(
    ('number', 'words'),
    [
        (0, '0 B'),
        (65536, '64 KiB'),
        (8388608, '8 MiB'),
        (25276514304, '24 GiB'),
        (1 << 60, '1 EiB'),
    ],
)
def test_sizes(number, words):
    assert binary_size(number) == words


@pytest.mark.parametrize('carrier', ['sockets', 'infiniband', 'cxi', 'memory'])
def test_what_is_usual_fails_nothing(carrier):
    assert verify_settings(validated(job()), carrier) is None


def test_without_window_scaling_sockets_between_hosts_fail():
    report = validated(job(n2={SCALING: '0'}))
    assert verify_settings(report, 'sockets') == (
        'TCP has no window scaling on n2 (net.ipv4.tcp_window_scaling=0), so that no connection '
        'carries more than 64 KiB in a round trip'
    )
    assert verify_settings(report, 'infiniband') is None
    assert verify_settings(validated(job({SCALING: '0'}, hosts=1)), 'sockets') is None


@pytest.mark.parametrize(
    ('settings', 'fails'),
    [
        ({'limit:memlock': '65536'}, True),
        ({'limit:memlock': str(LEAST_LOCKED)}, False),
        # What Linux has allowed since 5.16 some MPIs can do with.
        ({'limit:memlock': '8388608'}, False),
        ({'limit:memlock': '65536', 'process:may_lock': 'any'}, False),
        ({}, False),
    ],
)
def test_a_network_that_reads_memory_needs_it_locked(tmp_path, settings, fails):
    content = job({SCALING: '1', **settings})
    said = verify_settings(validated(content), 'infiniband')
    assert (said is not None) == fails
    if fails:
        assert said.startswith('ranks on n[1-2] may lock no more than 64 KiB of memory (ulimit -l)')
    assert verify_settings(validated(content), 'sockets') is None


def test_a_job_fails_by_it(tmp_path):
    content = job(n2={'limit:memlock': '65536'})
    for host in content['hosts']:
        host['devices'] = [
            {'name': 'mlx5_0:1', 'kind': 'infiniband', 'sent': 10**9, 'received': 10**9}
        ]
    launch = over_infiniband(tmp_path, content, 'mlx5_0')
    with pytest.raises(LaunchError, match='ranks on n2 may lock no more than 64 KiB'):
        launch.assert_as_asked()


def test_a_screening_leaves_single_nodes_to_be_told_by_name():
    some, every = validated(job(n2={SCALING: '0'})), validated(job({SCALING: '0'}))
    assert verify_settings(some, 'sockets', only_if_all=True) is None
    assert 'on n[1-2]' in verify_settings(every, 'sockets', only_if_all=True)


def test_a_screening_has_the_settings_of_each_node(tmp_path):
    folder = tmp_path / 'job'
    shutil.copytree(SCREENED, folder)
    report = json.loads((folder / 'nodes' / 'witness.json').read_text())
    report['settings'] = {'shm:size': '1073741824'}
    report['processes'][1]['differs'] = {'settings': {BUFFERS: '2048'}}
    (folder / 'nodes' / 'witness.json').write_text(json.dumps(report))
    where = Where('x:y', '', True, 'mpich', 'ucx-tcp')
    names = [host['name'] for host in report['hosts']]
    found = collect(folder, where, datetime.now(timezone.utc), names, {})
    told = [facts[f'btl_tcp_sndbuf in {HOME}'] for facts in found.facts]
    assert sorted(told) == ['2048', 'not set']
    assert {facts['size of /dev/shm'] for facts in found.facts} == {1 << 30}


def test_half_of_a_memory_that_is_alike_is_alike():
    """Of equal nodes kernels leave 251.4 or 251.6 GiB, which round to one more or less."""
    shm = [int(gib * (1 << 30)) for gib in (251.4, 251.4, 251.4, 251.6)]
    facts = {number: {'size of /dev/shm': one} for number, one in enumerate(shm)}
    assert find_different(screening(4, facts=facts)) == {}
    facts[3] = {'size of /dev/shm': 64 << 20}
    ((evidence,),) = find_different(screening(4, facts=facts)).values()
    assert evidence.text == '64 MiB; 3 others have 251 GiB'


@pytest.mark.parametrize(('nodes', 'is_told'), [(2, False), (3, True), (4, True), (16, True)])
def test_a_node_that_is_set_otherwise_is_different(nodes, is_told):
    scaling = 'net.ipv4.tcp_window_scaling'
    facts = {number: {scaling: '0' if number == 1 else '1'} for number in range(nodes)}
    found = find_different(screening(nodes, facts=facts))
    assert [*found] == (['n1'] if is_told else [])
    if is_told:
        (evidence,) = found['n1']
        assert (evidence.figure, evidence.text) == (scaling, f'0; {nodes - 1} others have 1')


def test_two_of_four_nodes_accuse_nobody():
    facts = {number: {'kernel': str(number // 2)} for number in range(4)}
    assert not judge_screening(screening(4, facts=facts)).findings


def test_a_failure_ends_with_what_files_set_and_how_nodes_differ(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1].update(
        leftovers=['UCX_TLS=rc'],
        leftovers_seen=True,
        leftovers_in_files=[f'btl_tcp_sndbuf=2048 in {HOME}'],
        hosts_differ_in=['limit of memlock (64 KiB on n2, unlimited on n1)'],
    )
    assert failures(run_of(report))[0].reason == (
        'another fabric was used; the environment sets UCX_TLS=rc, which neither Assay nor the '
        f"system's file does; files set btl_tcp_sndbuf=2048 in {HOME}, which neither Assay nor the "
        "system's file does; its nodes differ in limit of memlock (64 KiB on n2, unlimited on n1)"
    )


@pytest.mark.parametrize('variables', [[], ['UCX_TLS=rc']])
def test_a_good_run_says_once_what_files_set(golden_report, variables):
    report = golden_report('Passed')
    for case in cases(report):
        case.update(leftovers=variables, leftovers_in_files=['UCX_TLS=tcp in /etc/ucx/ucx.conf'])
    said = left_in_good_cases(run_of(report))
    assert said.endswith(
        "set by files for cases that passed, but neither by Assay nor by the system's file: "
        'UCX_TLS=tcp in /etc/ucx/ucx.conf (2 of 2 cases)'
    )
    assert ('UCX_TLS=rc (2 of 2 cases); ' in said) == bool(variables)


def test_what_files_set_has_no_values_of_a_variable(golden_report):
    report = golden_report('Passed')
    for number, case in enumerate(cases(report)):
        case.update(leftovers=[f'UCX_TLS={number}'], leftovers_in_files=['UCX_TLS'])
    said = left_in_good_cases(run_of(report))
    assert 'UCX_TLS (2 values, 2 of 2 cases); set by files' in said
    assert said.endswith(': UCX_TLS (2 of 2 cases)')


def test_what_an_mpi_is_packaged_with_explains_nothing(golden_report):
    """Debian's Open MPI 4.1.4."""
    file = '/etc/openmpi/openmpi-mca-params.conf'
    own = ('btl_base_warn_component_unused=0', 'mtl=^ofi', 'osc=^ucx,pt2pt', 'pml=^ucx')
    good, bad = golden_report('Passed'), golden_report('FailedSanity')
    for case in (cases(good)[1], cases(bad)[1]):
        case['leftovers_in_files'] = [f'{one} in {file}' for one in own]
    assert left_in_good_cases(run_of(good)) is None
    assert failures(run_of(bad))[0].reason == 'another fabric was used'
    for one in (f'mtl=^ofi in {HOME}', f'mtl=^ofi in {file}, on n2', f'btl=tcp,self in {file}'):
        for case in (cases(good)[1], cases(bad)[1]):
            case['leftovers_in_files'] = [one]
        assert one in left_in_good_cases(run_of(good))
        assert one in failures(run_of(bad))[0].reason


def test_settings_are_facts_of_a_case(golden_report):
    (_, case, *_) = cases(golden_report('Passed'))
    before, after = copy.deepcopy(case), copy.deepcopy(case)
    before['ran_settings'] = "net.ipv4.tcp_sack=1 'size of /dev/shm=1 GiB'"
    after['ran_settings'] = f"net.ipv4.tcp_sack=0 'size of /dev/shm=1 GiB' 'a in {HOME}=2'"
    found = dict(changes(case_of(before).facts, case_of(after).facts))
    assert found == {'setting net.ipv4.tcp_sack': '1 -> 0', f'setting a in {HOME}': '- -> 2'}
    # A case of before the witness looked for them is not known to have had others.
    before['ran_settings'] = ''
    assert changes(case_of(before).facts, case_of(after).facts) == ()


def test_two_reports_are_held_against_each_other():
    one, other = validated(job()), validated(job(USUAL | {SCALING: '0', BUFFERS: '2048'}))
    assert setting_changes(one, other) == [
        f'setting changed: btl_tcp_sndbuf in {HOME}: not set -> 2048',
        'setting changed: net.ipv4.tcp_window_scaling: 1 -> 0',
    ]
    assert setting_changes(validated(halo(4, 2)), other) == []
