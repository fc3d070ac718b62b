"""What is held against one start of a program."""

import json
import re
from dataclasses import replace

import pytest

from assay import witness
from assay.job import output
from assay.job.launch import WITNESS, LaunchError, tell_names
from assay.job.output import Output
from assay.layout.layouts import Placement
from launched import over_infiniband
from slurms import commands_of_slurm, node
from witnessed import device, entries, halo, host, partner, process, socket


def printed(folder, text):
    (folder / 'out').write_text(text)
    return Output((folder / 'out',))


def launch_on(hosts, folder):
    """One of which UCX names shared memory alone."""
    return over_infiniband(folder, halo(4, hosts), 'intra-node cfg#1 tag(sysv/memory cma/memory)')


def test_ranks_of_one_host_need_no_network(tmp_path):
    launch_on(1, tmp_path).assert_as_asked()


def test_ranks_of_two_hosts_need_the_network(tmp_path):
    with pytest.raises(LaunchError, match='ucx-ib was asked for, but ucx-shm was used instead'):
        launch_on(2, tmp_path).assert_as_asked()


def test_sentences_have_the_names_of_slurm(tmp_path, monkeypatch):
    """As a job has it: in its folder are the launches, and the names beside them."""
    commands_of_slurm(tmp_path, monkeypatch)(
        [node(f'hpc-{i}').replace(f'HostName=hpc-{i}', f'HostName=n{i}') for i in (1, 2)], []
    )
    (tmp_path / 'launch').mkdir()
    launch = launch_on(2, tmp_path / 'launch')
    hosts = {host.name for host in launch.witnessed.hosts}
    tell_names(tmp_path, ['hpc-1', 'hpc-2'])
    report = witness.read_witness(tmp_path / 'launch' / WITNESS)
    assert hosts == {'n1', 'n2'} and {*report.by_host()} == {'hpc-1', 'hpc-2'}
    tell_names(tmp_path, ['hpc-1', 'hpc-2'])
    assert json.loads((tmp_path / witness.HOSTS).read_text()) == {'n1': 'hpc-1', 'n2': 'hpc-2'}


# Nothing forced --------------------------------------------------------------------------------

MB = 10**6
OVER_IB = 'ucp.c:1 UCX  INFO    ucp_context_0 inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)'
OVER_TCP = 'bml: Using tcp btl for send to n2'


def unforced(folder, fabric, said, by_sockets=0, by_device=0, hosts=2, **variables):
    """Two ranks that exchanged 20 MB, started with nothing forced.

    :param fabric: the best that there is.
    """
    machine = [host(f'n{number + 1}', [[0, 1]]) for number in range(hosts)]
    for one in machine:
        one['devices'] = [device('mlx5_0:1', 'infiniband', by_device)]
    ends = ('10.0.0.1:1', '10.0.0.2:1')
    ranks = [
        process(
            rank,
            (rank,),
            machine[rank % hosts]['name'],
            partners=[partner(1 - rank, 1, 10 * MB)],
            sockets=[socket(ends[rank], ends[1 - rank], by_sockets)],
        )
        for rank in (0, 1)
    ]
    content = entries(ranks, machine, environment=variables)
    found = over_infiniband(folder, content, said)
    placement = Placement(2 // hosts, threads=1)
    return replace(
        found, fabric=fabric, is_forced=False, layout='default', placement=placement, ranks=2
    )


@pytest.mark.parametrize(
    ('fabric', 'said', 'carried'),
    [
        ('ucx-ib', OVER_IB, {'by_device': 11 * MB}),
        # The device by a way that no fabric of the catalogue knows the words of.
        ('ucx-ib', 'select: component cm selected', {'by_device': 11 * MB}),
        # Better than what is the best that this MPI can be forced to.
        ('ofi-tcp', OVER_IB, {'by_device': 11 * MB}),
        ('tcp', OVER_TCP, {'by_sockets': 11 * MB}),
        ('shm', 'on-host:  all connections are sm', {'hosts': 1}),
        # The same memory by another transport.
        ('shm', 'ucx_context intra-node cfg#1 tag(sysv/memory cma/memory)', {'hosts': 1}),
    ],
)
def test_nothing_was_forced_and_the_best_taken(tmp_path, fabric, said, carried):
    unforced(tmp_path, fabric, said, **carried).assert_as_asked()


@pytest.mark.parametrize(
    ('fabric', 'said', 'carried', 'sentence'),
    [
        (
            'ucx-ib',
            OVER_TCP,
            {'by_sockets': 11 * MB},
            'nothing was forced, and Open MPI did not take ucx-ib, the best that the partition '
            'has: its messages went by tcp; TCP sockets between the hosts carried 11.0 MB of the '
            '10.0 MB that n1 sent to others; it says: select: component ucx selected; bml: Using '
            'tcp btl for send; what forces it is OMPI_MCA_pml=ucx OMPI_MCA_btl=^ofi,openib,uct ',
        ),
        (
            'ucx-ib',
            OVER_TCP,
            {'by_sockets': 11 * MB, 'UCX_TLS': 'tcp,self'},
            '; set UCX_TLS to self,sm,ib in place of tcp,self',
        ),
        # The counters agree, and the MPI names TCP alone.
        ('ucx-ib', OVER_TCP, {'by_device': 11 * MB}, 'the partition has: its messages went by tcp'),
        ('shm', OVER_TCP, {'by_sockets': 11 * MB, 'hosts': 1}, 'did not take shm, the best that'),
        ('tcp', '', {}, 'of 10.0 MB that n1 sent to others TCP sockets between the hosts carried'),
    ],
)
def test_nothing_was_forced_and_another_way_taken(tmp_path, fabric, said, carried, sentence):
    with pytest.raises(LaunchError) as error:
        unforced(tmp_path, fabric, said, **carried).assert_as_asked()
    assert sentence in str(error.value)


@pytest.mark.parametrize(('launcher', 'is_told'), [('mpirun', True), ('srun', False)])
def test_ranks_on_the_core_of_what_started_them(tmp_path, launcher, is_told):
    """As by MPICH's launcher where slurm.conf says TaskPluginParam=cores."""
    launch = unforced(tmp_path, 'shm', 'on-host:  all connections are sm', hosts=1)
    content = json.loads((tmp_path / WITNESS).read_text())
    for one in content['processes']:
        one.update(cpus='0', cores='0')
    (tmp_path / WITNESS).write_text(json.dumps(content))
    with pytest.raises(LaunchError, match='ranks 0 and 1 on n1 are bound to core 0') as error:
        replace(launch, launcher=launcher).assert_as_asked()
    assert ('put SLURM_CPU_BIND=none into' in str(error.value)) == is_told


# What MPICH 5.0.2 printed under `srun --mpi=pmix`, and Debian's Open MPI 4.1.4 under `--mpi=none`.
MPICH_REFUSES = """\
srun: error: n2: task 1: Exited with exit code 15
[unset]: launcher not compatible with PMI1 client
Abort(1008331023): Fatal error in internal_Init: Other MPI error, error stack:
"""
OPENMPI_REFUSES = """\
[n1:00160] OPAL ERROR: Unreachable in file ext3x_client.c at line 112
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute. There are several options for building PMI support under
"""


@pytest.mark.parametrize(
    ('family', 'output', 'said'),
    [
        ('mpich', MPICH_REFUSES, 'srun and MPICH did not find each other: launcher not compatible'),
        (
            'openmpi',
            OPENMPI_REFUSES,
            "srun and Open MPI did not find each other: OMPI was not built with SLURM's PMI support"
            '; choose the PMI that Open MPI was built for, by SLURM_MPI_TYPE or --mpi (`srun ',
        ),
    ],
)
def test_an_mpi_that_refuses_the_launcher(tmp_path, family, output, said):
    launch = replace(launch_on(1, tmp_path), family=family, exit_code=1)
    printed(tmp_path, output)
    (tmp_path / WITNESS).unlink()
    with pytest.raises(LaunchError) as error:
        launch.assert_ended_well()
    assert str(error.value).startswith(said)


@pytest.mark.parametrize('exit_code', [0, 2])
@pytest.mark.parametrize(
    ('launcher', 'remedy'),
    [
        ('srun', 'choose the PMI that Open MPI was built for, by SLURM_MPI_TYPE or --mpi '),
        ('mpirun', "start it by Open MPI's own launcher"),
    ],
)
def test_each_rank_the_only_one(tmp_path, launcher, remedy, exit_code):
    launch = replace(launch_on(2, tmp_path), launcher=launcher, exit_code=exit_code)
    content = halo(1)
    content['mpi']['library'] = 'Open MPI v5.0.9'
    (tmp_path / WITNESS).write_text(json.dumps(content))
    with pytest.raises(LaunchError) as error:
        launch.assert_ended_well()
    assert str(error.value).startswith(
        f'{launcher} and Open MPI did not find each other: halo ran as rank 0 of 1, not as 4 '
        f'ranks; {remedy}'
    )


def test_ranks_in_containers_that_lack_something(tmp_path):
    launch = replace(launch_on(2, tmp_path), launcher='mpirun', is_contained=True)
    content = halo(1)
    content['mpi']['library'] = 'Open MPI v5.0.9'
    (tmp_path / WITNESS).write_text(json.dumps(content))
    with pytest.raises(LaunchError, match='not as 4 ranks; ranks in containers need what the'):
        launch.assert_ended_well()
    (tmp_path / WITNESS).unlink()
    launch = replace(launch)
    with pytest.raises(LaunchError, match=r'into the program\? The container has to have the var'):
        launch.assert_as_asked()


INSIDE = 'ranks in containers need the files of the device (those of /dev/infiniband'


def test_ranks_in_containers_without_the_device_of_their_node(tmp_path):
    """Where nothing is forced MPIs go over TCP, otherwise they end or take another way."""
    free = unforced(tmp_path, 'ucx-ib', OVER_TCP, by_sockets=11 * MB)
    forced = replace(free, is_forced=True, layout='packed')
    for launch in (free, forced):
        with pytest.raises(LaunchError) as outside:
            launch.assert_as_asked()
        with pytest.raises(LaunchError) as inside:
            replace(launch, is_contained=True).assert_as_asked()
        assert str(inside.value).startswith(f'{outside.value}; {INSIDE}')


# By Podman without rights, but for the first, which is UCX's.
NO_DEVICE = 'UCX  ERROR   no usable transports/devices (asked self,sm,ib)'
NO_PMI = 'Abort(605677839): Fatal error in internal_Init: PMI_Get_appnum returned -1'
NO_MEMORY = 'UCX ERROR no active messages transport to x: sysv/memory - Destination is unreachable'


@pytest.mark.parametrize(
    ('fabric', 'words', 'remedy'),
    [
        ('ucx-ib', NO_DEVICE, INSIDE),
        ('ucx-tcp', NO_DEVICE, ''),
        ('shm', NO_PMI, "begin the container's words with -pmi-port"),
        ('ucx-shm', NO_MEMORY, 'need the same IPC namespace (Podman: --ipc=host)'),
        ('ucx-ib', 'Caught signal 11 (Segmentation fault)', ''),
    ],
)
def test_ranks_in_containers_that_end_say_what_they_lack(tmp_path, fabric, words, remedy):
    launch = replace(over_infiniband(tmp_path, halo(4), words), fabric=fabric, exit_code=1)
    with pytest.raises(LaunchError) as outside:
        launch.assert_ended_well()
    with pytest.raises(LaunchError) as inside:
        replace(launch, is_contained=True).assert_ended_well()
    assert f'exit code 1: {words}' in str(outside.value)
    more = str(inside.value).removeprefix(str(outside.value))
    assert remedy in more and bool(more) == bool(remedy)


def test_the_only_rank_of_another_mpi(tmp_path):
    launch = launch_on(2, tmp_path)
    (tmp_path / WITNESS).write_text(json.dumps(halo(1)))
    launch.assert_ended_well()
    with pytest.raises(LaunchError, match="Open MPI was asked for, but the program ran on 'MPICH"):
        launch.assert_as_asked()


def test_one_rank_that_was_asked_for(tmp_path):
    launch = replace(launch_on(1, tmp_path), ranks=1)
    (tmp_path / WITNESS).write_text(json.dumps(halo(1)))
    launch.assert_ended_well()


@pytest.mark.parametrize(
    ('seen', 'words'),
    [
        (['/opt/bin/halo', '--n', '64'], None),
        (
            ['/built/build/limits', '--json', 'result.json'],
            "'/built/build/limits', and not of halo",
        ),
        (['/opt/bin/halo-of-before'], "is of '/opt/bin/halo-of-before', and not of halo"),
        ([], "the report of the witness is of '', and not of halo"),
    ],
)
def test_a_report_is_of_the_program_asked_for(tmp_path, seen, words):
    launch = launch_on(1, tmp_path)
    report = json.loads((tmp_path / WITNESS).read_text())
    (tmp_path / WITNESS).write_text(json.dumps({**report, 'command': seen}))
    replace(launch, command=None).assert_as_asked()  # what a script starts is its own business
    if words is None:
        launch.assert_as_asked()
    else:
        with pytest.raises(LaunchError, match=re.escape(words)):
            replace(launch).assert_as_asked()


def test_a_program_that_writes_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(output, 'MOST', 1000)
    launch = launch_on(1, tmp_path)
    assert 'cfg#1' in launch.text
    printed(tmp_path, 'x\n' * 1000)
    with pytest.raises(LaunchError, match='halo: out hold more than'):
        launch.text  # noqa: B018
    launch.assert_ended_well()


def test_both_proofs_of_another_fabric(tmp_path):
    output = 'on-host:  all connections are sm\n'
    launch = replace(launch_on(2, tmp_path), fabric='tcp')
    printed(tmp_path, output)
    with pytest.raises(LaunchError) as error:
        launch.assert_as_asked()
    assert str(error.value).endswith(
        'Open MPI says: on-host:  all connections are sm; of 2.0 MB sent within n1 TCP sockets '
        'between its ranks carried 0 B'
    )
