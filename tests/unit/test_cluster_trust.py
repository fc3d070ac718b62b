"""What root takes for a part of its virtual cluster, where other users try to be one."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from assay import AssayError, paths
from assay.vcluster import cluster, node
from assay.vcluster.link import Carried, Link
from assay.vcluster.locks import Locks, check_private
from assay.vcluster.node import INIT, Node, are_up, kill_all, locks

NOBODY = 65534
HIDDEN = ['unshare', '--user', '--map-root-user', '--net', '--uts', '--ipc', '--pid', '--mount']
HIDDEN += ['--fork', '--kill-child']


def as_nobody(command, **options):
    return subprocess.Popen(
        command, user=NOBODY, group=NOBODY, extra_groups=[], cwd='/', text=True, **options
    )


def lacking():
    if os.uname().sysname != 'Linux' or os.geteuid() != 0:
        return 'only root on Linux has virtual clusters'
    with as_nobody([*HIDDEN, 'true'], stderr=subprocess.PIPE) as process:
        said = process.communicate()[1].strip()
    return f'users have no namespaces of users here: {said}' if process.returncode else None


pytestmark = pytest.mark.skipif(bool(lacking()), reason=str(lacking()))


@pytest.fixture
def state(tmp_path):
    """The state folder of a cluster that is not up; its locks are where those of others are."""
    folder = tmp_path / 'vcluster'
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(node.RUN / node.unique_name(folder), ignore_errors=True)


@pytest.fixture
def forged():
    """Runs a process of nobody, who is root in a namespace of users, with this command line."""
    started = []

    def forge(first, *others):
        # cat says what it cannot read, and waits at the "-".
        command = ['bash', '-c', f'exec -a {first} cat "$@" -', 'forged', *others]
        process = as_nobody(
            [*HIDDEN, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        line = '\0'.join([first, *others])
        deadline = time.monotonic() + 60
        while not any(read(path).startswith(line) for path in Path('/proc').glob('*/cmdline')):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        return process

    yield forge
    for process in started:
        process.kill()
        process.communicate()


def read(path):
    try:
        return path.read_text(errors='replace')
    except OSError:  # it ended meanwhile
        return ''


def test_a_process_that_looks_like_a_node_is_none(state, forged):
    process = forged('bash', str(INIT), 'head', str(state), str(paths.ROOT))
    assert not are_up(state)
    assert Node(state, 0).pid is None
    with pytest.raises(AssayError, match='node head is down'):
        Node(state, 0).run('true')
    kill_all(state)
    time.sleep(0.1)
    assert process.poll() is None


def test_a_process_that_looks_like_a_carrier_is_none(state, forged):
    forged(str(state / 'forward'), 'n1', 'n1-near', '5', '0', '0', 'any')
    assert Link.of(Node(state, 0), Node(state, 1)).read_carried() == Carried()


@pytest.fixture
def held(state):
    found = locks(state)
    found.create()
    return found


def hold(locks, number):
    """A process that holds the lock, until it is killed."""
    file = locks.open()
    try:
        return subprocess.Popen(
            ['sleep', '1000'], pass_fds=[file], preexec_fn=lambda: Locks.take(file, number)
        )
    finally:
        os.close(file)


def test_who_holds_a_lock_is_found_until_it_ends(held):
    with hold(held, 3) as process:
        assert [held.holder(number) for number in (2, 3, 4)] == [None, process.pid, None]
        assert held.command_line(3) == ['sleep', '1000']
        with pytest.raises(subprocess.SubprocessError):
            hold(held, 3)
        process.kill()
    assert held.holder(3) is held.command_line(3) is held.process(3) is None


def test_only_who_holds_the_lock_is_killed(held):
    with hold(held, 3) as killed, hold(held, 4) as other:
        held.kill([2, 3])
        assert killed.wait() == -signal.SIGKILL
        assert other.poll() is None
        other.kill()


def test_others_cannot_take_a_lock(held):
    os.close(held.open())
    script = f'exec 3<>{held.folder}/processes'
    command = ['env', 'LC_ALL=C', 'bash', '-c', script]
    with as_nobody(command, stderr=subprocess.PIPE) as process:
        assert 'Permission denied' in process.communicate()[1]


@pytest.mark.parametrize('wrong', ['nobodys', 'open', 'link'])
def test_a_folder_that_others_may_have_filled_is_refused(tmp_path, wrong):
    folder = tmp_path / 'folder'
    folder.mkdir(mode=0o700)
    check_private(folder)
    if wrong == 'nobodys':
        os.chown(folder, NOBODY, NOBODY)
    elif wrong == 'open':
        folder.chmod(0o755)
    else:
        folder = tmp_path / 'link'
        folder.symlink_to('folder')
    with pytest.raises(AssayError, match=f'{folder} is not a folder that only root can use'):
        check_private(folder)
    with pytest.raises(AssayError, match='only root can use'):
        Locks(folder).create()


def test_a_state_folder_that_others_could_exchange_is_refused(state, monkeypatch):
    monkeypatch.setattr(cluster, 'STATE', state)
    cluster._check_state()
    state.parent.chmod(0o777)
    with pytest.raises(AssayError, match=f'chmod o-w {state.parent}$'):
        cluster._check_state()


def test_what_stays_is_not_down(state, monkeypatch):
    """A link that another user has put in place of the state folder is not followed."""
    aim = state.with_name('aim')
    aim.mkdir()
    state.rmdir()
    state.symlink_to(aim)
    monkeypatch.setattr(cluster, 'STATE', state)
    with pytest.raises(AssayError, match=f'{state} cannot be removed: '):
        cluster.take_down()
    assert aim.is_dir()


def test_others_are_told_that_the_cluster_is_roots(held):
    os.close(held.open())
    os.seteuid(NOBODY)
    try:
        with pytest.raises(AssayError, match='the virtual cluster needs root: you cannot read'):
            held.holder(0)
    finally:
        os.seteuid(0)


def test_a_system_is_known_to_those_who_cannot_use_it(state, monkeypatch):
    (state / cluster.RECORD).write_text('{"nodes": 7, "cpus": 2}')
    state.parent.chmod(0o755)
    monkeypatch.setattr(cluster, 'STATE', state)
    assert cluster.size() == (7, 2)
    os.seteuid(NOBODY)
    try:
        assert cluster.size() == (4, 1)
    finally:
        os.seteuid(0)


# What a slurmctld says of a slurm.conf with unknown nodes, and the log of one that starts.
FATAL = (
    'slurmctld: error: Node n9 in partition all is not known\n'
    'slurmctld: fatal: Invalid node names in partition all\n'
)
STARTS = '[2026-11-25T22:41:00.101] slurmctld version 22.05.8 started on cluster vcluster\n'


def test_the_last_words_of_a_daemon_are_told(tmp_path):
    logs = tmp_path / 'logs'
    logs.mkdir()
    (logs / 'slurmctld.log').write_text(STARTS)
    assert cluster.fatal_line(tmp_path) is None
    (logs / 'head.log').write_text(FATAL)
    assert cluster.fatal_line(tmp_path) == 'head: Invalid node names in partition all'
