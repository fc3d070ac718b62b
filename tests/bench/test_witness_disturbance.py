"""The witness sees what else took time of the job's CPUs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from families import on_one_mpi
from quiet import measured

pytestmark = [pytest.mark.alone, on_one_mpi]

CPU = str(min(os.sched_getaffinity(0)))
CPU_INFO = Path('/proc/cpuinfo').read_text()
SHARES = ('foreign_share', 'steal_share', 'throttled_share', 'waited_share')


@pytest.fixture
def shares(witnessed, build):
    """The disturbance of one rank on one CPU for about a second."""
    load = [str(build('clock') / 'clock'), '--seconds', '0.5']

    def run(*first):
        ran = witnessed('taskset', '-c', CPU, *first, *load, ranks=1)
        assert ran.code == 0, ran.err
        disturbance = ran.report['hosts'][0]['disturbance']
        assert disturbance['seconds'] > 0.5
        return {name: disturbance[name] for name in SHARES}

    return run


def test_another_process_on_the_cpu(shares):
    spin = [sys.executable, '-c', 'while True: pass']
    # The scheduler gives sessions equal shares of a CPU, and in that of the tests there are others.
    busy = subprocess.Popen(['taskset', '-c', CPU, *spin], start_new_session=True)
    try:
        disturbed = shares()
    finally:
        busy.kill()
        busy.wait()
    assert all(0 <= share <= 1 for share in disturbed.values())
    # Half of the CPU's time, unless yet others want it, or other guests.
    assert disturbed['foreign_share'] > 0.05
    assert disturbed['waited_share'] > 0.05


def test_another_guest_may_share_a_core_unseen(witnessed, build):
    """Only there additions per cycle are counted."""
    ran = witnessed(build('clock') / 'clock', '--seconds', '0.02', ranks=2)
    assert ran.code == 0, ran.err
    seen = ran.report['hosts'][0]['disturbance']
    flags = next((line for line in CPU_INFO.splitlines() if line.startswith('flags')), '').split()
    siblings = Path('/sys/devices/system/cpu/smt/active')
    if 'hypervisor' not in flags or not siblings.exists() or siblings.read_text().strip() != '0':
        assert 'least_additions' not in seen
        return
    assert 0 < seen['least_additions'] <= seen['most_additions']
    # Not known where the two ranks did not run at once.
    latencies = [seen.get(f'{end}_core_latency', 1e-7) for end in ('least', 'most')]
    assert 0 < latencies[0] <= latencies[1] < 1e-3


def test_the_ranks_own_time_is_not_foreign(shares):
    """Root's goes before all others."""
    before_others = ['chrt', '--fifo', '1']
    if subprocess.run([*before_others, 'true'], capture_output=True).returncode:
        before_others = []

    def check(disturbance):
        assert disturbance['foreign_share'] < 0.3

    measured(lambda: shares(*before_others), check)
