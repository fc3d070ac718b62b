"""The virtual cluster, as a user starts, breaks, heals and ends it."""

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from assay import AssayError, paths
from assay.running import runs
from assay.screening import measured, outputs
from assay.vcluster import cluster as vcluster
from assay.vcluster.node import INIT, RUN, unique_name
from assay.witness.disturbance import CORE_LATENCY, CORE_MOVE
from command import assay, assert_good, call, counts, heed_signals, invoke
from reports import cases
from roads import Road
from stored import put

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(vcluster.what_is_missing()),
        reason=f'a virtual cluster needs more: {"; ".join(vcluster.what_is_missing())}',
    ),
]


def traces():
    """What a cluster may leave on the machine: processes, mounts, links, cgroups, files."""
    name = unique_name(vcluster.STATE)
    # Others' may go meanwhile, which Path.rglob does not bear.
    cgroups = [
        Path(folder, one)
        for folder, folders, _ in os.walk('/sys/fs/cgroup')
        for one in folders
        if one.startswith(f'{name}-')
    ]
    processes = [
        line
        for path in Path('/proc').glob('[0-9]*/cmdline')
        if str(vcluster.STATE) in (line := read(path))  # also of INIT; tests forge others
    ]
    return {
        'processes': processes,
        'daemons': [read(path) for path in daemons()],
        'mounts': [m for m in read(Path('/proc/mounts')).splitlines() if 'vcluster' in m],
        'links': sorted(os.listdir('/sys/class/net')),
        'cgroups': cgroups,
        'files': [vcluster.STATE.exists(), (RUN / name).exists()],
    }


def daemons():
    """Those of this checkout's cluster: others may have theirs."""
    names = {'slurmctld', 'slurmd', 'slurmstepd', 'munged', 'forward'}
    return [
        path.with_name('cmdline')
        for path in Path('/proc').glob('[0-9]*/comm')
        if read(path).strip() in names and str(vcluster.STATE) in read(path.with_name('environ'))
    ]


def read(path):
    try:
        return path.read_text(errors='replace')
    except OSError:  # it ended meanwhile
        return ''


@pytest.fixture(scope='module')
def before():
    """The machine without a cluster."""
    assay('cluster', 'down')
    machine = traces()
    yield machine
    take_down(machine)


def take_down(before):
    ended = assay('cluster', 'down')
    assert ended.returncode == 0, ended.stderr
    assert traces() == before


@pytest.fixture
def nothing_left(before):
    """Whatever the test does, `down` leaves nothing of it."""
    if vcluster.STATE.exists():  # as `kept_up` leaves it
        take_down(before)
    yield
    take_down(before)


@pytest.fixture
def up(nothing_left):
    """A cluster of four nodes."""
    ended = assay('cluster', 'up')
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def kept_up(before):
    """Likewise, which the next test may have as well: after each nothing is broken any more."""
    if not vcluster.STATE.exists():
        assert_good(assay('cluster', 'up'))
    yield
    ended = assay('cluster', 'heal')
    if ended.returncode:
        assay('cluster', 'down')
    assert ended.returncode == 0, ended.stderr
    assert all(re.search(r' idle +-', line) for line in status().values())


def on(node, *command):
    ended = assay('cluster', 'exec', node, *command)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def status():
    """The lines of `status`, without the heading: words by node.

    Called in this process, as each start of the command takes a third of a second.
    """
    ended = call('cluster', 'status')
    assert ended.exit_code == 0, ended.stderr
    return {line.split()[0]: line for line in ended.stdout.splitlines()[1:]}


# Up and down -----------------------------------------------------------------------------------


@pytest.mark.quick
def test_nodes_are_hosts(kept_up):
    assert sorted(on('head', 'srun', '-N', '4', 'hostname').split()) == ['n1', 'n2', 'n3', 'n4']
    assert sorted(on('head', 'srun', '-N', '2', 'ls', '/sys/class/net').split()) == [
        *['eth0'] * 2,
        *['lo'] * 2,
    ]
    for folder in ('/tmp', '/dev/shm'):
        on('n1', 'touch', f'{folder}/of-n1')
        assert 'of-n1' in on('n1', 'ls', folder)
        assert 'of-n1' not in on('n2', 'ls', folder) + ' '.join(os.listdir(folder))
    assert on('n2', 'pwd').strip() == os.getcwd()
    assert on('n2', 'nproc') == '1\n'


WRONG_FAULTS = [
    (['delay', 'n2'], 'delay needs a number from 0 to 1e+09'),
    (['delay', 'n2', 'long'], 'delay needs a number from 0 to 1e+09'),
    (['loss', 'n2', '101'], 'loss needs a number from 0 to 100'),
    (['cpu', 'n2', '0'], 'cpu needs a number from 1 to 100'),
    (['rate', 'n2', '1', '--to', 'n3'], 'rate knows no pair of nodes: delay and loss do'),
    (['delay', 'n2', '1', '--to', 'n2'], 'a pair is two nodes, and not n2 twice'),
    (['delay', 'n2', '1', '--to', 'n9'], "unknown node 'n9'. Nodes: head, n1, n2, n3, n4."),
    (['link', 'n2', 'loose'], 'link needs down or up'),
    (['crash', 'n2', '1'], 'crash takes no value'),
    (['crash', 'head'], 'jobs do not run on the head node: choose a compute node'),
    (['delay', 'n9', '1'], "unknown node 'n9'. Nodes: head, n1, n2, n3, n4."),
    (['fire', 'n2'], "unknown fault 'fire'. Faults: delay, loss, rate, cpu, link, crash, boot."),
]


def test_what_a_cluster_is_and_what_it_refuses(kept_up):
    """None of it changes the cluster."""
    routes = on('n1', 'ip', 'route')
    assert re.fullmatch(r'198\.18\.0\.0/24 dev eth0 .*\n', routes)

    assert_nothing_has_changed()

    # There is one at a time.
    ended = assay('cluster', 'up')
    assert ended.returncode == 1
    assert ended.stderr == ('assay: a virtual cluster is up. Take it down: ./assay cluster down\n')
    assert_nothing_has_changed()

    # Only root sees its files.
    assert vcluster.STATE.stat().st_mode & 0o777 == 0o700
    denied = subprocess.run(
        ['bash', '-c', f'ls {vcluster.STATE}'], user=65534, group=65534, extra_groups=[], cwd='/'
    )
    assert denied.returncode

    for fault, words in WRONG_FAULTS:
        error = invoke('cluster', 'fault', *fault).exception
        assert (type(error), str(error)) == (AssayError, words)
    assert_nothing_has_changed()


def assert_nothing_has_changed():
    lines = status()
    assert list(lines) == ['n1', 'n2', 'n3', 'n4']
    for number, line in enumerate(lines.values(), 1):
        assert re.fullmatch(rf'n{number} +198\.18\.0\.1{number} +\d+ +idle +-', line.strip())


@pytest.mark.parametrize('seconds', [0.05, 0.4, 0.7, 1.0])
def test_up_that_was_killed(nothing_left, seconds):
    process = subprocess.Popen(
        [paths.ROOT / 'assay', 'cluster', 'up'], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


def test_up_after_one_that_was_killed(nothing_left):
    test_up_that_was_killed(None, 0.7)
    ended = assay('cluster', 'up')
    if ended.returncode:
        assert ended.stderr == (
            'assay: a virtual cluster is up. Take it down: ./assay cluster down\n'
        )
        assert assay('cluster', 'down').returncode == 0
        ended = assay('cluster', 'up')
    assert ended.returncode == 0, ended.stderr


def await_that(holds):
    deadline = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_up_that_was_stopped(before, nothing_left, number):
    """It clears up by itself, and a second signal does not keep it from that."""
    with subprocess.Popen(
        [paths.ROOT / 'assay', 'cluster', 'up', '--size', '20'],
        stderr=subprocess.DEVNULL,
        preexec_fn=heed_signals,
    ) as process:
        await_that(lambda: any(f'{INIT}\0n2\0' in line for line in traces()['processes']))
        process.send_signal(number)
        process.send_signal(number)
    assert process.returncode == 128 + number
    assert traces() == before


def test_a_node_ends_though_nobody_waited_for_what_ran_on_it(kept_up):
    """As where a signal comes just after it was started."""
    node = vcluster.Cluster.current().node('n1')
    lost = node.spawn(['true'])
    node.kill()
    assert node.pid is None
    lost.wait()


def test_exec_that_is_stopped(kept_up):
    """What it ran on the node hears of it, with all that it started, and has ended before."""

    def sleeps():
        return any(read(path) == 'sleep\x0098765\0' for path in Path('/proc').glob('*/cmdline'))

    def start(*command, **options):
        """Without a terminal, which would signal the command by itself."""
        command = [paths.ROOT / 'assay', 'cluster', 'exec', 'n1', *command]
        return subprocess.Popen(command, start_new_session=True, preexec_fn=heed_signals, **options)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with start('bash', '-c', 'sleep 98765; true') as process:
            await_that(sleeps)
            process.send_signal(number)
        assert process.returncode == 128 + number
        await_that(lambda: not sleeps())
    with start('sleep', '98765') as process:
        await_that(sleeps)
        process.kill()
    await_that(lambda: not sleeps())

    trap = 'trap "echo cleared up; exit 7" TERM; echo ready; sleep 98765 & wait'
    with start('bash', '-c', trap, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b'ready\n'
        process.terminate()
        assert process.stdout.read() == b'cleared up\n'
    assert process.returncode == 7

    with start('sleep', '98765', stderr=subprocess.PIPE) as process:
        await_that(sleeps)
        inject('crash', 'n1')
        told = b'Assay: n1 of the virtual cluster went down, and with it what ran there\n'
        assert process.stderr.read() == told
    assert process.returncode == 128 + signal.SIGKILL


def test_a_cluster_that_has_lost_its_files(up):
    shutil.rmtree(vcluster.STATE)
    ended = assay('cluster', 'status')
    assert (ended.returncode, ended.stderr) == (
        1,
        f'assay: the virtual cluster has lost its files, which were in {vcluster.STATE}. '
        f'Take it down: ./assay cluster down\n',
    )


def test_wrong_use_without_a_cluster(nothing_left):
    for arguments, words in (
        (['up', '--size', '0'], '--size 0: there can be 1 to 200 nodes'),
        (['up', '--switches', '5'], '--switches 5: each needs a node, of --size'),
        (['up', '--cpus', '1000'], '--cpus 1000: a node can have 1 to [0-9]+ CPUs here'),
        (['status'], 'no virtual cluster is up. Start one: ./assay cluster up'),
        (['exec', 'n1', 'true'], 'no virtual cluster is up. Start one: ./assay cluster up'),
        (['heal'], 'no virtual cluster is up. Start one: ./assay cluster up'),
    ):
        ended = assay('cluster', *arguments)
        assert ended.returncode == 1
        assert re.fullmatch(f'assay: {words}\n', ended.stderr)
    ended = run('srun', '-l')
    assert ended.returncode == 1
    assert ended.stderr.endswith('assay: no virtual cluster is up. Start one: ./assay cluster up\n')


# Faults ----------------------------------------------------------------------------------------

PING_PONG = """\
import socket, sys, time
role, peer = sys.argv[1:]
if role == 'server':
    with socket.create_server(('', 7007)) as server:
        connection = server.accept()[0]
        while data := connection.recv(1 << 20):
            connection.sendall(data)
else:
    for _ in range(100):
        try:
            connection = socket.create_connection((peer, 7007), timeout=20)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(30):
        began = time.perf_counter()
        connection.sendall(b'x')
        connection.recv(1)
        times.append(time.perf_counter() - began)
    print(sorted(times)[len(times) // 2] * 1e6)
"""


def round_trip():
    """Median us of a byte from n1 to n2 and back over TCP."""
    python = [str(paths.VENV_BIN / 'python'), '-c', PING_PONG]
    server = subprocess.Popen(
        [paths.ROOT / 'assay', 'cluster', 'exec', 'n2', *python, 'server', '']
    )
    try:
        return float(on('n1', *python, 'client', 'n2'))
    finally:
        server.wait(300)


def inject(*fault):
    ended = assay('cluster', 'fault', *fault)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.alone
def test_what_packets_take(kept_up):
    """A delay of a node, of a pair of nodes, and one by chance, one after the other.

    They are far longer than what a machine that others use as well adds to a round trip.
    """
    inject('delay', 'n2', '20000')
    assert 'delay 20000 us' in status()['n2']
    assert 40_000 < round_trip() < 80_000
    assert assay('cluster', 'heal', 'n2').returncode == 0
    assert round_trip() < 20_000

    inject('delay', 'n2', '20000', '--to', 'n3')
    assert 'delay 20000 us to and from n3' in status()['n2']
    assert round_trip() < 20_000
    assert assay('cluster', 'heal', 'n2').returncode == 0
    inject('delay', 'n2', '20000', '--to', 'n1')
    assert 40_000 < round_trip() < 80_000
    assert assay('cluster', 'heal', 'n2').returncode == 0

    inject('delay', 'n2', '4000', '--jitter', '32000')
    assert 'delay 4000 us + 0 to 32000 us' in status()['n2']
    assert 16_000 < round_trip() < 72_000


def test_faults_of_nodes_add_up_and_are_healed(kept_up):
    inject('delay', 'n2', '1000')
    inject('loss', 'n2', '1')
    inject('rate', 'n2', '100')
    inject('cpu', 'n2', '50')
    assert 'delay 1000 us, loss 1%, rate 100 Mbit/s, cpu 50%' in status()['n2']

    inject('link', 'n3', 'down')
    assert 'link down' in status()['n3']
    inject('link', 'n3', 'up')
    assert 'link down' not in status()['n3']

    inject('crash', 'n4')
    assert 'crashed' in status()['n4']
    ended = assay('cluster', 'exec', 'n4', 'true')
    assert ended.returncode == 1
    assert ended.stderr == 'assay: node n4 is down. Start it: ./assay cluster heal n4\n'
    inject('boot', 'n4')
    assert on('n4', 'hostname') == 'n4\n'


def test_a_carrier_dies(kept_up):
    inject('delay', 'n2', '1')
    (carrier,) = [path for path in daemons() if read(path).startswith(str(vcluster.STATE))]
    os.kill(int(carrier.parent.name), signal.SIGKILL)
    await_that(lambda: not read(carrier))
    assert 'not connected' in status()['n2']
    inject('delay', 'n2', '1')
    assert 'delay 1 us' in status()['n2']
    assert on('n1', 'bash', '-c', 'exec 3<>/dev/tcp/n2/6818; echo slurmd') == 'slurmd\n'


def test_the_uplink_of_a_switch(nothing_left):
    assert_good(assay('cluster', 'up', '--size', '4', '--switches', '2'))
    topology = on('head', 'scontrol', 'show', 'topology')
    assert re.findall(r'^SwitchName=(\w+) .* Nodes=(\S+)', topology, re.MULTILINE) == [
        ('s1', 'n1,n2'),
        ('s2', 'n3,n4'),
        ('core', 'n[1-4]'),
    ]
    inject('delay', 's1', '200000')
    inject('rate', 's2', '100')
    inject('link', 's2', 'down')
    assert 'delay 200000 us' in status()['s1']
    assert 'rate 100 Mbit/s, link down' in status()['s2']
    # Of n1 and n2, which are behind the same: else it were 400 ms.
    assert round_trip() < 200_000
    ended = assay('cluster', 'fault', 'crash', 's1')
    assert (ended.returncode, ended.stderr) == (1, 'assay: s1 is a switch: crash is for nodes\n')
    assert_good(assay('cluster', 'heal'))
    assert all(line.split()[-1] == '-' for line in status().values())


def test_nodes_that_share_a_cpu_take_turns(kept_up):
    """There is a process for each such CPU, and it wakes up often where all nodes compute."""
    own = sorted(os.sched_getaffinity(0))
    shared = [cpu for i, cpu in enumerate(own) if len(range(i, 4, len(own))) > 1]
    processes = on('head', 'ps', '-ww', '-eo', 'pid,args')
    found = re.findall(r'^ *(\d+) .*turns\.py (\d+) 1 ', processes, re.MULTILINE)
    assert sorted(int(cpu) for _, cpu in found) == shared

    def sleeps(pid):
        status = on('head', 'cat', f'/proc/{pid}/status')
        return int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)', status, re.MULTILINE)[1])

    def takes_turns(pid):
        """Whether it sleeps more often than to look, which it does 100 times a second."""
        begin, so_far = time.monotonic(), sleeps(pid)
        time.sleep(1)
        return sleeps(pid) - so_far > 200 * (time.monotonic() - begin)

    computing = ['srun', '-N', '4', 'sh', '-c', 'while :; do :; done']
    command = [paths.ROOT / 'assay', 'cluster', 'exec', 'head', *computing]
    with subprocess.Popen(command, start_new_session=True, preexec_fn=heed_signals) as process:
        try:
            for pid, _ in found:
                await_that(lambda pid=pid: takes_turns(pid))
        finally:
            process.terminate()


# Checks ----------------------------------------------------------------------------------------

BETWEEN_TWO = '^PointToPoint%fabric=tcp%layout=packed%scale=2_nodes'
ALL_FOUR = '^Ring%fabric=ucx-tcp%layout=packed%scale=4_nodes'


def run(partition, *arguments, mpi='openmpi'):
    system = f'vcluster:{partition}'
    return assay('run', '--system', system, '-p', f'^{mpi}$', *arguments)


@pytest.fixture
def label():
    """The beginning of the labels of a test's own runs, which leave the history afterwards."""
    name = f'story-{uuid.uuid4()}'
    yield name
    for one in ('run', 'earlier', 'before', 'after'):
        assay('forget', f'{name}-{one}')


@pytest.mark.alone
def test_checks_between_nodes(up, label):
    """By srun and by the MPI's own launcher; a network that has become slow is told.

    What is compared are copies, as if nobody had disturbed the jobs; the runs before the first are
    others of it, each a little different.
    """
    both = ['run', '--system', 'vcluster', '-p', '^openmpi$', '-n', BETWEEN_TWO]
    ended = assay(*both, '--label', f'{label}-run', '--max-retries=2')
    assert_good(ended)
    assert counts(ended)[2] == 2
    before = json.loads(runs.newest_report().read_text())
    copies = [copy_of(before, f'{label}-earlier', days) for days in range(1, 11)]
    put(paths.RESULTS_DATABASE, *copies, copy_of(before, f'{label}-before'))
    ended = run('srun', '-n', ALL_FOUR, '--max-retries=2', mpi='mpich')
    assert_good(ended)
    for node in ('n1', 'n2', 'n3'):
        inject('delay', node, '400')
    slow = r'^failed: PointToPoint .*@vcluster:\w+\+openmpi: latency is [\d.]+ us, but at most'
    ended = assay(*both, '--label', f'{label}-run')
    assert ended.returncode == 1, ended.stdout
    assert len(re.findall(slow, ended.stdout, re.MULTILINE)) == 2, ended.stdout
    after = json.loads(runs.newest_report().read_text())
    put(paths.RESULTS_DATABASE, copy_of(after, f'{label}-after'))
    ended = assay('compare-runs', f'{label}-before', f'{label}-after')
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert 'the machine moved: socket_latency of PointToPoint %fabric=tcp ' in ended.stdout
    assert re.search(r'\nWORSE: [1-9]\d* worse, ', ended.stdout), ended.stdout


def copy_of(report, label, days=0):
    """The same run so many days before, of jobs that nobody disturbed on cores nobody moved."""
    one = copy.deepcopy(report)
    info = one['session_info']
    info |= {'uuid': str(uuid.uuid4()), 'label': label}
    info |= {name: info[name] - 86400 * days for name in ('time_start_unix', 'time_end_unix')}
    for case in cases(one):
        case['taken_by_others'] = []
        case['perfvalues'] = {
            name: [values[0] * (1 + 0.01 * (days % 3)), *values[1:]]
            for name, values in (case.get('perfvalues') or {}).items()
            if not name.endswith((CORE_LATENCY, CORE_MOVE))
        }
    return one


# What goes wrong between nodes ------------------------------------------------------------------

RING = '^Ring%fabric=tcp%layout=packed%scale=2_nodes'


def sentences(ended):
    """The sentence for each check that failed."""
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return dict(re.findall(r'^failed: (\w+) .*?@\S+: (.*)$', ended.stdout, re.MULTILINE))


@pytest.fixture
def wide(nothing_left):
    """A cluster of two nodes with two CPUs each."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip('needs two CPUs')
    ended = assay('cluster', 'up', '--size', '2', '--cpus', '2')
    assert ended.returncode == 0, ended.stderr


def test_ranks_that_are_alone_or_on_the_wrong_nodes(wide):
    hosts = vcluster.STATE / 'three-ranks-on-n1'
    hosts.write_text('n1\nn1\nn1\nn2\n')
    alone = 'PointToPoint.env_vars=SLURM_MPI_TYPE:none'
    elsewhere = f'Ring.env_vars=SLURM_HOSTFILE:{hosts},SLURM_OVERCOMMIT:1'
    ended = run('srun', '-n', BETWEEN_TWO, '-n', RING, '-S', alone, '-S', elsewhere)
    assert sentences(ended) == {
        'PointToPoint': 'srun and Open MPI did not find each other: pt2pt ran as rank 0 of 1, not '
        'as 2 ranks; choose the PMI that Open MPI was built for, by SLURM_MPI_TYPE or --mpi '
        '(`srun --mpi=list` shows which there are)',
        'Ring': 'n1 has 3 ranks (ranks 0-2), n2 has 1 rank (rank 3), 2 on each of 2 nodes were '
        'asked for',
    }


def test_shared_memory_within_nodes(wide):
    """Open MPI's own launcher binds ranks, which this Slurm does not."""
    ended = run('mpirun', '-n', RING, '-S', 'Ring.env_vars=OMPI_MCA_btl:^usnic')
    said = sentences(ended)['Ring']
    assert said.startswith('fabric tcp was asked for, but ')
    assert 'Open MPI says: on-host: all connections are sm; ' in said
    assert 'sent within n1 TCP sockets between its ranks carried 0 B; the environment sets' in said
    assert ' OMPI_MCA_btl=^usnic, which neither Assay nor ' in said


def await_ranks(process, since):
    """Until ranks of a run's job are past MPI_Init: then the witness writes where they are."""
    stage = paths.RUNS / 'last' / 'stage'
    deadline = time.monotonic() + 600
    while not any(p.stat().st_mtime > since for p in stage.glob('vcluster/*/*/*/witness.json')):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline, 'no job has come through MPI_Init'
        time.sleep(0.05)


@contextmanager
def standing_still(program):
    """The ranks of a job, which cannot end meanwhile."""
    ranks = []
    for path in Path('/proc').glob('[0-9]*/exe'):
        with suppress(OSError):  # it has ended
            name = path.readlink()
            if name.name == program and name.is_relative_to(paths.ROOT):
                ranks.append(int(path.parent.name))
                os.kill(ranks[-1], signal.SIGSTOP)
    try:
        yield
    finally:
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.kill(rank, signal.SIGCONT)


def test_a_node_dies(up):
    """Its job names it, the next is measured on others, and one that needs it cannot start."""
    began = time.time()
    fabrics = BETWEEN_TWO.replace('=tcp', '=(tcp|ucx-tcp)')
    command = [paths.ROOT / 'assay', 'run', '--system', 'vcluster:srun', '-n', fabrics]
    command += ['-p', '^openmpi$']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        await_ranks(process, began)
        with standing_still('pt2pt'):
            inject('crash', 'n2')
            # Slurm would find out by itself, in half a minute.
            on('head', 'scontrol', 'update', 'nodename=n2', 'state=down', 'reason=crashed')
        said = process.communicate(timeout=600)[0]
    assert process.returncode == 1
    # The other ran on other nodes; where these were busy, it may have missed references.
    found = re.findall(r'^failed: (.*)', said, re.MULTILINE)
    died, *missed = sorted(found, key=lambda one: ' died ' not in one)
    assert 'a node of its job died (n2); ' in died, said
    assert all(re.search(r' is .*, but at (most|least) ', one) for one in missed), said
    assert f'FAILED: {2 - len(found)} passed, {len(found)} failed, 0 skipped of 2 cases' in said

    ended = run('srun', '-n', '^Ring%fabric=tcp%layout=packed%scale=4_nodes')
    assert ended.returncode == 1
    words = ': the scheduler did not start its job: '
    assert words in ended.stdout, ended.stdout[-4000:]


def test_a_node_dies_in_the_one_job_of_all_cases(up):
    """The case that it had names it, one that needs it is not started, and the others go on."""
    began = time.time()
    command = [paths.ROOT / 'assay', 'run', '--system', 'vcluster:srun', '--one-job']
    command += ['-n', '^Ring%fabric=(tcp|ucx-tcp)%layout=packed', '-p', '^openmpi$', '--all']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        await_ranks(process, began)
        with standing_still('ring'):
            assert len(on('head', 'squeue', '--noheader').splitlines()) == 1
            inject('crash', 'n2')
            on('head', 'scontrol', 'update', 'nodename=n2', 'state=down', 'reason=crashed')
        said = process.communicate(timeout=600)[0]
    assert process.returncode == 1
    found = re.findall(r'^failed: (.*)', said, re.MULTILINE)
    died = {one for one in found if ': a node of its job died (n2); ' in one}
    large = {
        one for one in found if re.search(r': it needs 4 nodes, and the job \d+ has 3 left', one)
    }
    assert len(died) == len(large) == 1, said
    assert all('%scale=4_nodes' in one for one in died | large), said
    missed = {*found} - died - large
    assert all('%scale=2_nodes' in one and ' is allowed' in one for one in missed), said
    assert f'FAILED: {4 - len(found)} passed, {len(found)} failed, 0 skipped of 4 cases' in said
    await_that(lambda: not on('head', 'squeue', '--noheader'))


@pytest.fixture
def reader(nothing_left, monkeypatch):
    """The folder in which somebody types what a page tells, with no history of earlier runs.

    It is none of /tmp, which the head has of its own.
    """
    folder = paths.PERFLOGS.parent / f'reader-{uuid.uuid4()}'
    folder.mkdir(parents=True)
    for name in ('assay', 'docs'):
        (folder / name).symlink_to(paths.ROOT / name)
    monkeypatch.setenv(paths.RESULTS_VARIABLE, str(folder / 'results'))
    return folder


@pytest.mark.alone
def test_a_screening_names_the_bad_node(reader):
    """It keeps an acceptance from its first run, whose road up to there it is."""
    with Road('accept-a-machine.md', until='4. Measure', root=reader) as road:
        assert_good(road.type(road.next('./assay cluster up'), '--size', '6'))
        ended = road.type(road.next('./assay accept plan '))
        assert ended.returncode == 0 and ended.stdout.endswith('\nboth risks are held\n'), ended
        begin = road.next('./assay accept run ')
        ended = road.type(begin)
        asked = 'run `assay screen --system vcluster:srun --nodes n[1-4]`, and then this again\n'
        assert ended.returncode == 3 and ended.stderr.endswith(asked), ended
        assert_good(assay('cluster', 'fault', 'cpu', 'n3', '50'))
        assert_good(assay('cluster', 'fault', 'delay', 'n5', '5000'))
        # Four would be too few to tell which two are bad.
        screened = road.type(
            road.next('./assay screen '), '--nodes', 'n[1-6]', '--environment', 'mpich'
        )
        assert screened.returncode == 1, screened.stdout + screened.stderr
        assert 'scontrol update NodeName=n3 State=DRAIN' in screened.stdout
        ended = road.type(begin)
        assert ended.returncode == 3 and 'assay: the screening found: n3 ' in ended.stderr, ended
    command = ['screen', '--system', 'vcluster:srun', '--environment', 'mpich']
    again = [assay(*command, '--from', 'last', '--json') for _ in range(2)]
    assert [one.returncode for one in again] == [1, 1], again[0].stderr
    assert again[0].stdout == again[1].stdout
    found = json.loads(again[0].stdout)
    (bad,) = (one for one in found['findings'] if one['members'] == ['n3'])
    assert bad['kind'] == 'node' and 'n3' in found['drain']
    assert 'placement' in [one['figure'] for one in bad['evidence']]
    # Whether it is named depends on how much others disturb its peers; that it is slow does not.
    path = Path(found['file'])
    assert [*outputs.output_faults(path, measured.read_screening(path))] == []
    kept = json.loads(path.read_text())
    links, n5 = kept['links'], kept['nodes'].index('n5')
    times = [
        times for ends, times in zip(links['ends'], links['latency'], strict=True) if n5 in ends
    ]
    assert len(times) == 3
    assert all(seconds > 0.005 for both in times for seconds in both)


@pytest.mark.alone
def test_nights(reader):
    """A maintenance is left alone, a fault is told once, its end as well, and one of two leaves."""
    mail, told, began, done = (reader / name for name in ('mail', 'told', 'began', 'done'))

    def spend(line, command='true'):
        """A night; its exit code, output, and the message to people."""
        told.unlink(missing_ok=True)
        mail.write_text(f'#!/bin/sh\n{command}\n{{ echo "$@"; cat; }} >{told}\n')
        mail.chmod(0o755)
        ended = road.type(line)
        said = ended.stdout + ended.stderr
        return ended.returncode, said, told.read_text() if told.exists() else None

    with Road('nightly.md', root=reader, PATH=f'{reader}:{os.environ["PATH"]}') as road:
        lines = [road.next('./assay nightly --system mycluster') for _ in range(4)]
        assert_good(road.type(road.next('./assay cluster up')))
        maintenance = ['scontrol', 'create', 'reservation', 'reservationname=repair']
        maintenance += ['starttime=now', 'duration=10', 'users=root', 'nodes=ALL']
        on('head', *maintenance, 'flags=maint,ignore_jobs')
        put_off = 'the reservation repair, of the kind MAINT, has all nodes of the'
        for line in lines:
            code, said, message = spend(re.sub(r'mycluster(:\w+)?', 'vcluster:srun', line))
            assert (code, message) == (75, None) and f'put off: {put_off}' in said, said
            if line == lines[0]:
                on('head', 'scontrol', 'delete', 'reservationname=repair')
                on('head', 'scontrol', 'update', 'partitionname=all', 'state=down')
                put_off = 'the partition all is down'
        assert not (reader / 'junit.xml').exists()
        on('head', 'scontrol', 'update', 'partitionname=all', 'state=up')

        assert_good(road.type(road.next('./assay cluster fault ')))
        line = road.next('./assay nightly ')
        code, said, message = spend(line)
        assert code == 1, said
        assert '--budget: 1 of 1 case chosen, expected to take ' in said
        headline = 'Assay: vcluster:srun (smoke) FAILED, was PASSED'
        assert message.startswith(f'-s {headline} hpc@example.org\n{headline}\n'), message
        assert 'latency is ' in message
        # While its message is written, another one leaves.
        assert_good(road.type(road.next('./assay cluster heal')))
        assert road.next('./assay nightly ') == line
        wait = f'touch {began}; for _ in $(seq 900); do [ -e {done} ] && break; sleep 0.1; done;'
        with ThreadPoolExecutor() as pool:
            first = pool.submit(spend, line, wait)
            while not began.exists() and not first.done():
                time.sleep(0.1)
            if not first.done():
                second = road.type(line)
            done.touch()
            code, said, message = first.result()
        assert_good(road.type(road.next('./assay cluster down')))
    if code == 3:  # others disturbed it, and nothing was to be told
        assert message is None
        return
    assert (second.returncode, code) == (75, 0), second.stderr + said
    assert 'another night of vcluster:srun (smoke) is under way' in second.stderr
    headline = 'Assay: vcluster:srun (smoke) PASSED, was FAILED\n'
    assert f'\n{headline}no longer:\n' in message, message


def test_a_campaign(nothing_left):
    """One of a job and one of the partition, of one check; what is healthy may be disturbed here.

    Above are a run without a PMI and a job that is not started; test_asking.py has Slurm's reasons.
    """
    chosen = ['output/truncated', 'scheduler/few_nodes']
    ended = assay('cluster', 'campaign', *chosen, '--severity', 'high')
    rows = ended.stdout.splitlines()[2:]
    assert len(rows) == len(chosen), ended.stdout + ended.stderr
    assert '**nothing**' not in ended.stdout, ended.stdout
