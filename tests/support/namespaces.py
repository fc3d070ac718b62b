"""Two hosts for tests: namespaces of this machine that cables join."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

APART = ['unshare', '--net', '--uts']

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0
    or not (shutil.which('ip') and shutil.which('tc'))
    or subprocess.run([*APART, 'true'], capture_output=True).returncode != 0,
    reason='making hosts out of namespaces takes root and iproute2',
)


def inside(host: subprocess.Popen[bytes], *command: str) -> subprocess.CompletedProcess[str]:
    entered = ['nsenter', '-t', str(host.pid), '-n', '-u', *command]
    return subprocess.run(entered, check=True, capture_output=True, text=True)


@contextmanager
def two_hosts(cables: Mapping[str, tuple[str, str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes, in whose namespaces the hosts are; each is called by its first address.

    :param cables: the addresses of their ends, by the name that both interfaces have.
    """
    found = [subprocess.Popen([*APART, 'sleep', 'infinity']) for _ in range(2)]
    try:
        own = os.readlink('/proc/self/ns/net')
        deadline = time.monotonic() + 60
        while own in [os.readlink(f'/proc/{host.pid}/ns/net') for host in found]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for name in cables:
            cable = ['ip', 'link', 'add', name, 'netns', str(found[0].pid), 'type', 'veth']
            subprocess.run([*cable, 'peer', 'name', name, 'netns', str(found[1].pid)], check=True)
        for number, host in enumerate(found):
            inside(host, 'hostname', next(iter(cables.values()))[number])
            for name, ends in cables.items():
                inside(host, 'ip', 'address', 'add', f'{ends[number]}/24', 'dev', name)
            for link in ('lo', *cables):
                inside(host, 'ip', 'link', 'set', link, 'up')
        for host in found:
            # libfabric takes no interface whose carrier the kernel has not noticed yet, and that
            # can take it a second.
            for name in cables:
                show = ('ip', '-json', 'link', 'show', name, 'up')
                while '"operstate":"UP"' not in inside(host, *show).stdout:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
        yield found
    finally:
        for host in found:
            host.kill()
            host.wait()
