"""Two hosts for tests: namespaces of this machine that cables join."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

APART = ['unshare', '--net', '--uts']

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0
    or not (shutil.which('ip') and shutil.which('tc'))
    or subprocess.run([*APART, 'true'], capture_output=True).returncode != 0,
    reason='making hosts out of namespaces takes root and iproute2',
)


#: Called by Open MPI's launcher as ssh would be: options, a host's name, a command.
_AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
"""


def inside(host: subprocess.Popen[bytes], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*entering(host), *command], check=True, capture_output=True, text=True)


def entering(host: subprocess.Popen[bytes]) -> list[str]:
    """What a command on a host begins with."""
    return ['nsenter', '-t', str(host.pid), '-n', '-u']


def starting_over(
    cable: str, hosts: Mapping[str, subprocess.Popen[bytes]], folder: Path
) -> dict[str, str]:
    """Variables by which Open MPI's launcher starts daemons on such hosts, given by name."""
    agent = folder / 'agent'
    starts = [
        f'[ "$host" != {name} ] || exec {" ".join(entering(host))} sh -c "$*"\n'
        for name, host in hosts.items()
    ]
    agent.write_text(_AGENT + ''.join(starts))
    agent.chmod(0o755)
    return {
        # Of Open MPI 5 and 4.
        'PRTE_MCA_prte_if_include': cable,
        'PRTE_MCA_plm_ssh_agent': str(agent),
        'OMPI_MCA_oob_tcp_if_include': cable,
        'OMPI_MCA_plm_rsh_agent': str(agent),
    }


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
