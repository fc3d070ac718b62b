"""Starts processes in new namespaces, or in those of a process that runs.

util-linux's ``nsenter`` goes by that process's id, which may be another's by then; a pidfd is never
another's. Python itself has these calls from 3.12 on.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

# <linux/sched.h>
UTS, IPC, MOUNTS, NETWORK = 0x04000000, 0x08000000, 0x00020000, 0x40000000
PROCESSES = 0x20000000  # what a process changes here holds for its children, not for itself
OWN = UTS | IPC | MOUNTS | NETWORK


def _call(name: str, *arguments: int) -> None:
    import ctypes  # which not every Python was built with

    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def why_no_namespaces() -> str | None:
    """Why processes cannot be started in another's namespaces here; None if they can. For root."""
    try:
        own = os.pidfd_open(os.getpid())
        try:
            _call('setns', own, UTS)
        finally:
            os.close(own)
    except (AttributeError, ImportError, OSError) as error:
        return f'namespaces cannot be entered by a pidfd, which takes Linux 5.8 or newer: {error}'
    return None


def spawn(
    argv: list[str], process: int | None, prepare: Callable[[], None], **options: Any
) -> subprocess.Popen[str]:
    """Start a command in the namespaces of a process, or in new ones, where it is process 1.

    :param process: a pidfd; None for new namespaces.
    :param prepare: called there, in the process that becomes the command.
    :param options: for :class:`subprocess.Popen`.
    :raises OSError: if the process has ended, or the kernel refuses.
    :raises subprocess.SubprocessError: if ``prepare`` fails.
    """
    change = ('unshare',) if process is None else ('setns', process)

    def enter() -> None:
        _call(*change, OWN)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        prepare()

    own = os.open('/proc/self/ns/pid', os.O_RDONLY)
    # Nothing is half started: what stops us does so before or after.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        _call(*change, PROCESSES)
        return subprocess.Popen(argv, preexec_fn=enter, text=True, **options)
    finally:
        _call('setns', own, PROCESSES)
        os.close(own)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)


def detach() -> None:
    """Leave this process to process 1 of its namespace, which outlives who started it.

    To be called in ``prepare``. The command that was started seems to end at once.
    """
    if os.fork():
        os._exit(0)


def end_with_parent() -> None:
    """Have this process told to end when the one that started it does, however it does."""
    set_parent_death_signal = 1  # <linux/prctl.h>
    _call('prctl', set_parent_death_signal, signal.SIGTERM)
