"""What the witness saw that steers ranks beside variables: files, limits, kernel and libraries."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest

from assay.witness.report import Report
from assay.witness.settings import left_in_files

pytestmark = pytest.mark.differs_by_mpi

# Rank 1 may lock less memory, and does without huge pages.
UNLIKE = r"""
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
    ulimit -S -l 64
fi
exec "$@"
"""
MCA = """\
# btl_tcp_rcvbuf = 1
  btl_tcp_sndbuf = 2048\t
coll_tuned_priority=40
"""
# What UCX is told for some machines only, it alone can tell of.
UCX = """\
UCX_TCP_MAX_POLL=7
[of another machine]
CPU model=*Nobody*
UCX_MM_FIFO_SIZE=128
[of any]
; UCX_TCP_RX_SEG_SIZE=1
UCX_TCP_TX_SEG_SIZE=8k
"""
# Hides that it was preloaded, but not before the program runs that it is meant for.
HIDDEN = """\
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void hide(void)
{
    if (strcmp(program_invocation_short_name, "partners") == 0)
        unsetenv("LD_PRELOAD");
}
"""


@pytest.fixture
def seen(build, compiled, witnessed_in, tmp_path):
    """Runs two ranks in a folder, and returns the witness's report."""

    def run(*command, env=None, preload=None):
        script = tmp_path / 'unlike.sh'
        script.write_text(UNLIKE)
        command = ['sh', str(script), *command, str(compiled('partners')), '1', '1', '1']
        done = witnessed_in(tmp_path, *command, env=env, preload=preload)
        assert done.code == 0, done.err
        return Report.model_validate_json(json.dumps(done.report))

    return run


def test_limits_and_the_kernel(seen):
    report = seen()
    kernel = {
        f'kernel:{name}': ' '.join(path.read_text().split())
        for name in (
            *('net.ipv4.tcp_window_scaling', 'net.ipv4.tcp_sack', 'net.ipv4.tcp_rmem'),
            *('net.ipv4.tcp_congestion_control', 'net.core.rmem_max'),
        )
        if (path := Path('/proc/sys', name.replace('.', '/'))).exists()
    }
    assert report.settings.items() >= kernel.items()
    shm = os.statvfs('/dev/shm')
    assert report.settings['shm:size'] == str(shm.f_blocks * shm.f_frsize)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert report.settings['limit:nofile'] == str(soft)
    assert report.processes[1].differs.settings == {'limit:memlock': '65536'}
    assert all(one.startup and one.startup.init > 0 for one in report.processes)


def test_files(seen, mpi, tmp_path):
    """Only those that the MPI and its transports read, and none that is no regular file."""
    home = tmp_path / 'home'
    for name, text in (('.openmpi/mca-params.conf', MCA), ('ucx.conf', UCX)):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    # What MVAPICH reads other MPIs never open, nor does anybody for them.
    (home / '.mvapich2.conf').write_text('MV2_EAGER_LIMIT = 128\n')
    pipe = home / 'pipe'
    os.mkfifo(pipe)
    report = seen(env={'HOME': str(home)})
    assert seen(env={'HOME': str(home), 'MV2_USER_CONFIG': str(pipe)}).settings == report.settings
    of_files = {
        name.removeprefix(f'file:{home}/'): value
        for name, value in report.settings.items()
        if name.startswith(f'file:{home}/')
    }
    expected = {}
    if mpi.family == 'openmpi':
        expected['.openmpi/mca-params.conf:OMPI_MCA_btl_tcp_sndbuf'] = '2048'
        expected['.openmpi/mca-params.conf:OMPI_MCA_coll_tuned_priority'] = '40'
    if any('/libucp' in one.path for one in report.libraries):
        expected['ucx.conf:UCX_TCP_MAX_POLL'] = '7'
        expected['ucx.conf:UCX_TCP_TX_SEG_SIZE'] = '8k'
    assert of_files == expected
    if mpi.family == 'openmpi':
        assert f'btl_tcp_sndbuf=2048 in {home}/.openmpi/mca-params.conf' in left_in_files(report)


def test_a_file_that_is_too_large_is_read_in_part(seen, mpi, tmp_path):
    file = tmp_path / 'home' / '.openmpi' / 'mca-params.conf'
    if mpi.family == 'openmpi':
        file.parent.mkdir(parents=True)
        # Twice what is read of a file: Open MPI compares each with all before it.
        file.write_text('\n'.join(f'never_read_{number:015} = 1' for number in range(4_000)))
    report = seen(env={'HOME': str(tmp_path / 'home')})
    counted = [name for name in report.settings if name.startswith(f'file:{file}:')]
    assert len(counted) == (64 if mpi.family == 'openmpi' else 0)


def test_a_preloaded_library_that_hides_is_told(seen, build, tmp_path):
    """The witness is none, nor what LD_PRELOAD names."""
    library = tmp_path / 'hidden.so'
    command = ['cc', '-shared', '-fPIC', '-xc', '-', '-o', str(library)]
    subprocess.run(command, check=True, input=HIDDEN.encode())
    witness = str(build('assay_witness') / 'libassay_witness.so')
    report = seen(preload=f'{witness}:{library}')
    assert report.settings.get(f'preloaded:{library}') == 'unknown'
    report = seen(preload=witness)
    assert not [name for name in report.settings if name.startswith('preloaded:')]


def test_how_long_the_start_took(seen, tmp_path):
    """From the launcher on where somebody told when that was; and how long the end took."""
    assert all(one.startup.main is None for one in seen().processes)
    # Ten seconds ago.
    launched = time.time_ns() - 10 * 10**9
    report = seen(env={'ASSAY_WITNESS_LAUNCHED': str(launched)})
    assert all(one.startup.main >= 10 for one in report.processes)
    lines = (tmp_path / 'report.json.finalized').read_text().splitlines()
    assert json.loads(lines[0]).keys() == {'rank', 'finalize'}
    assert json.loads(lines[0])['rank'] == 0


def test_a_clock_that_is_set_makes_no_start_slow(seen, build, fault):
    """What keeps the clocks of hosts in step sets that of a booted one while its first job runs."""
    preload = f'{fault("clock_set")}:{build("assay_witness")}/libassay_witness.so'
    launched = time.time_ns() - 10 * 10**9
    report = seen(env={'ASSAY_WITNESS_LAUNCHED': str(launched)}, preload=preload)
    first, other = report.processes
    assert first.host != other.host
    assert all(10 <= one.startup.main < 1000 for one in report.processes)
