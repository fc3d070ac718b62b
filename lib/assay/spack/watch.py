"""Runs a command, and leaves nothing of it when the process that asked for it is gone.

``watch.py HANDLE COMMAND...``: the end of a pipe that nobody else reads, and what to run. It must
be the first process of its session: Spack gives builds process groups of their own, so that a
session is what they have in common. It ends as the command does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path


def _others() -> list[int]:
    """The other processes of this session that have not ended."""
    own, session = os.getpid(), os.getsid(0)
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):  # it has gone
            fields = (folder / 'stat').read_text(errors='replace').rpartition(')')[2].split()
            if int(fields[3]) == session and int(folder.name) != own and fields[0] not in 'XZ':
                found.append(int(folder.name))
    return found


def watch() -> None:
    """Run the command of the command line."""
    asking = int(sys.argv[1])
    os.set_inheritable(asking, False)
    ended, ends = os.pipe()
    with subprocess.Popen(sys.argv[2:]) as command:

        def wait() -> None:
            command.wait()
            os.close(ends)

        threading.Thread(target=wait).start()
        select.select([asking, ended], [], [])
        while others := _others():  # and what they start in the meantime
            for pid in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    code = command.returncode
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == '__main__':
    watch()
