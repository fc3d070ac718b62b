"""A command on a node that a terminal, or a process that ends it, takes for one that runs here."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from assay import AssayError, paths, say
from assay.vcluster import namespaces
from assay.vcluster.cluster import Cluster
from assay.vcluster.node import Node

#: What each node has of its own, and only as long as it is up (node_init.sh).
_OWN = (Path('/tmp'), Path('/dev/shm'))


def assert_shared(path: Path) -> None:
    """See that the nodes have a file or folder that this machine has.

    :raises AssayError: if they have their own there.
    """
    real = path.resolve()
    if not real.is_relative_to(paths.ROOT) and any(real.is_relative_to(one) for one in _OWN):
        raise AssayError(
            f'{path}: each node of the virtual cluster, the head too, has its own '
            f'{" and ".join(map(str, _OWN))}, which go with it: choose another place'
        )


def run_on_head() -> int | None:
    """Run this command again on the head of the cluster, as on a login node.

    :returns: its exit code; None if this is the head.
    :raises AssayError: if no cluster is up, or what is left there would go with it.
    """
    assert_shared(paths.PERFLOGS)
    head = Cluster.current().head
    return None if head.pid == 1 else run_on_node(head, [sys.executable, *sys.argv])


def run_on_node(node: Node, command: list[str]) -> int:
    """Run a command on a node in the current folder, and end as it does.

    A signal that ends this process is passed on to the command and all that it started: signals do
    not reach the nodes by themselves, except for those that a terminal sends.

    :returns: an exit code, 128 and more for a signal, as a shell has it.
    """
    from_terminal = _in_foreground()
    numbers = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
    numbers |= {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def prepare() -> None:
        namespaces.end_with_parent()
        if not from_terminal:
            os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        process = node.spawn(command, Path.cwd(), prepare)
        while process.poll() is None:
            told = signal.sigwaitinfo(numbers)
            if told.si_signo == signal.SIGCHLD:
                continue
            if not from_terminal:
                os.killpg(process.pid, told.si_signo)
            elif told.si_code <= 0:  # by a process; the kernel has told the command as well
                process.send_signal(told.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if process.returncode == -signal.SIGKILL and node.pid is None:
        say(f'{node.name} of the virtual cluster went down, and with it what ran there')
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _in_foreground() -> bool:
    """Whether a terminal sends its signals to this process, and so to what it starts."""
    try:
        with open('/dev/tty') as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
