"""Links that went down during a job: which count, and what is said of whom."""

import json
import re
import shutil
from datetime import datetime, timezone

import pytest

from assay import paths
from assay.job.launch import LaunchError
from assay.screening import outputs
from assay.screening.measured import write_screening
from assay.screening.outputs import collect
from assay.screening.verdict import judge_screening
from assay.screening.where import Where
from assay.witness.traffic import links_down, verify_links
from launched import over_infiniband
from witnessed import halo, validated

SCREENED = paths.ROOT / 'tests' / 'golden' / 'jobs' / 'Screen' / 'mpich-ucx-tcp'


def job(downs, kind='ethernet', name='eth0', hosts=2, sent=10, over='eth0'):
    """A job whose ranks on two hosts have a connection, and a device of n2 that went down."""
    content = halo(4, hosts)
    content['hosts'][-1]['devices'] = [
        {'name': name, 'kind': kind, 'sent': sent, 'received': 0, 'downs': downs}
    ]
    ends = ['10.0.0.1:1', '10.0.0.2:2']
    first, second = content['processes'][1], content['processes'][2]
    for process, (local, remote) in zip((first, second), (ends, ends[::-1]), strict=True):
        process['sockets'] = [
            {'local': local, 'remote': remote, 'device': over, 'sent': 9, 'received': 9}
        ]
    return content


@pytest.mark.parametrize(
    ('what', 'words'),
    [
        ({'downs': 1}, 'the link of n2 (eth0) went down once during the job'),
        ({'downs': 3}, 'the link of n2 (eth0) went down 3 times during the job'),
        ({'downs': 0}, None),
        # Of others' containers, of a management network, of a wireless one.
        ({'downs': 3, 'name': 'veth12ab'}, None),
        ({'downs': 3, 'over': 'eth1'}, None),
        ({'downs': 3, 'over': ''}, None),
        ({'downs': 3, 'hosts': 1}, None),
        (
            {'downs': 2, 'name': 'mlx5_0:1', 'kind': 'infiniband'},
            'the link of n2 (mlx5_0:1) went down 2 times during the job',
        ),
        ({'downs': 2, 'name': 'mlx5_1:1', 'kind': 'infiniband', 'sent': 0}, None),
        ({'downs': 2, 'name': 'mlx5_0:1', 'kind': 'infiniband', 'hosts': 1}, None),
    ],
)
def test_which_links_count(what, words):
    carrier = 'infiniband' if 'kind' in what else 'sockets'
    assert verify_links(validated(job(**what)), carrier) == words


@pytest.mark.parametrize('carrier', ['sockets', 'memory', 'cxi'])
def test_a_port_that_the_fabric_does_not_go_over_accuses_nobody(carrier):
    """Its file system may have used it, and did not lose a message of the job."""
    assert verify_links(validated(job(2, 'infiniband', 'mlx5_0:1', sent=10**9)), carrier) is None


def test_nor_does_an_interface_where_messages_went_over_ports():
    assert verify_links(validated(job(2)), 'infiniband') is None


@pytest.mark.parametrize(('sent', 'words'), [(10**6, None), (10**8, 'n2 (mlx5_1:1) went down ')])
def test_a_port_that_carried_next_to_nothing_of_it_was_not_used(sent, words):
    content = job(2, 'infiniband', 'mlx5_1:1', sent=sent)
    content['hosts'][1]['devices'] += job(0, 'infiniband', 'mlx5_0:1', sent=10**9)['hosts'][1][
        'devices'
    ]
    said = verify_links(validated(content), 'infiniband')
    assert words in said if words else said is None


def test_a_port_of_a_host_that_only_receives_is_used():
    content = job(2, 'infiniband', 'mlx5_0:1', sent=0)
    content['hosts'][1]['devices'][0]['received'] = 10**9
    assert 'went down 2 times' in verify_links(validated(content), 'infiniband')


def test_a_report_that_does_not_say():
    content = job(1)
    del content['hosts'][1]['devices'][0]['downs']
    assert verify_links(validated(content), 'sockets') is None


def test_many_links_are_counted():
    content = job(1, 'infiniband', 'a:1')
    content['hosts'][1]['devices'] = [
        content['hosts'][1]['devices'][0] | {'name': f'a:{n}'} for n in range(6)
    ]
    words = verify_links(validated(content), 'infiniband')
    assert words.endswith('n2 (a:3) went down once during the job (and 2 more like it)')


def test_the_programs_of_a_job_are_added_up():
    assert links_down(map(validated, (job(1), job(0), job(2))), 'sockets') == {'n2': {'eth0': 3}}


def test_a_link_that_went_down_fails_a_job_whose_nodes_are_not_told_apart(tmp_path):
    content = job(2, 'infiniband', 'mlx5_0:1', sent=10**9)
    content['hosts'][0]['devices'] = [content['hosts'][1]['devices'][0] | {'downs': 0}]
    launch = over_infiniband(tmp_path, content, 'inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)')
    launch.assert_as_asked(but_single_nodes=True)
    with pytest.raises(LaunchError, match=re.escape('of n2 (mlx5_0:1) went down 2 times')):
        launch.assert_as_asked()


def on_infiniband(rate):
    """Two ports of a node, the second of which runs at so many Gbit/s."""
    about = {'kind': 'infiniband', 'sent': 10**9, 'received': 0, 'up': True, 'layer': 'InfiniBand'}
    return [
        {'name': f'mlx5_{n}:1', 'speed': speed * 10**9 // 8, **about}
        for n, speed in enumerate((200, rate))
    ]


@pytest.mark.parametrize(
    ('slow', 'ports', 'named'),
    [
        (['first/', ''], {}, [('node', ('n2',))]),
        (['first/', ''], {'mlx5_0': 200, 'mlx5_1': 200}, [('node', ('n2',))]),
        (['first/'], {}, []),  # what is wrong with a port is so in both tournaments
        (['first/', ''], None, []),  # as of outputs that were kept before
    ],
)
def test_a_screening_names_the_node_whose_port_is_slow(tmp_path, slow, ports, named):
    shutil.copytree(SCREENED, tmp_path / 'job')
    for moment in ('nodes/', 'first/', ''):
        path = tmp_path / 'job' / moment / 'witness.json'
        report = json.loads(path.read_text())
        for host in report['hosts']:
            is_slow = moment in slow and host['name'] == 'n2'
            host['devices'] = on_infiniband(10 if is_slow else 200)
        path.write_text(json.dumps(report))
    begun = datetime(2026, 1, 1, tzinfo=timezone.utc)
    where = Where('a:b', 'slurm', False, 'mpich', 'ucx-ib', ports=ports)
    now = collect(tmp_path / 'job', where, begun, ['n1', 'n2'], {})
    found = judge_screening(now).findings
    assert [(one.kind, one.members) for one in found] == named
    for one in found:
        assert [evidence.figure for evidence in one.evidence] == ['ports']
        assert re.match(r'mlx5_1(:1)? runs at 10 of 200 Gbit/s', one.evidence[0].text)
    write_screening(tmp_path / 'one.json', now)
    outputs.keep_outputs(tmp_path / 'one.json', tmp_path / 'job', where, ['n1', 'n2'])
    assert [*outputs.output_faults(tmp_path / 'one.json', now)] == []


@pytest.mark.parametrize('moment', ['nodes/', 'first/', ''])
def test_a_screening_names_the_node_whose_link_went_down(tmp_path, moment):
    shutil.copytree(SCREENED, tmp_path, dirs_exist_ok=True)
    path = tmp_path / moment / 'witness.json'
    report = json.loads(path.read_text())
    (of_n2,) = (host for host in report['hosts'] if host['name'] == 'n2')
    (eth0,) = (device for device in of_n2['devices'] if device['name'] == 'eth0')
    eth0['downs'] = 4
    path.write_text(json.dumps(report))
    begun = datetime(2026, 1, 1, tzinfo=timezone.utc)
    where = Where('vcluster:srun', 'slurm', True, 'mpich', 'ucx-tcp')
    (found,) = judge_screening(collect(tmp_path, where, begun, ['n1', 'n2'], {})).findings
    assert (found.kind, found.members) == ('node', ('n2',))
    (evidence,) = found.evidence
    assert (evidence.figure, evidence.chance) == ('link', None)
    assert evidence.text == 'its link (eth0) went down 4 times during the screening'
