"""The words that say best why a program failed, in what real MPIs and launchers wrote.

The outputs in ``tests/golden/reasons`` are of a program of two ranks on one machine, with all that
the catalogue of fabrics makes the MPI say.
"""

import pytest
import yaml

from assay import paths
from assay.job.output import LONGEST, reason_in_output

REASONS = paths.ROOT / 'tests' / 'golden' / 'reasons'
SAID = {
    'openmpi-5.0.9-ofi': 'No components were able to be opened in the pml framework. '
    '(Host: vm; Framework: pml)',
    'openmpi-4.1.4-ofi': 'No components were able to be opened in the pml framework. '
    '(Host: vm; Framework: pml)',
    'openmpi-5.0.9-nocomp': 'A requested component was not found, or was unable to be opened. '
    '(Host: vm; Framework: pml; Component: nosuch)',
    'openmpi-4.1.4-selfonly': 'At least one pair of MPI processes are unable to reach each other '
    'for MPI communications.',
    'openmpi-5.0.9-nofile': 'prterun was unable to launch the specified application as it lacked '
    'permissions to execute an executable (Executable: ./nosuch; Node: vm)',
    'openmpi-5.0.9-slots': 'There are not enough slots available in the system to satisfy the 99 '
    'slots that were requested by the application:',
    'openmpi-5.0.9-mpiabort': 'MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD '
    'Proc: [[27890,1],1] Errorcode: 3',
    'openmpi-5.0.9-trunc': '[vm:00000] *** MPI_ERR_TRUNCATE: message truncated',
    'openmpi-5.0.9-segv': '[vm:19560:0:19560] Caught signal 11 (Segmentation fault: tkill(2) or '
    'tgkill(2) at address 0x4c68)',
    'openmpi-5.0.9-kill': 'prterun noticed that process rank 1 with PID 19594 on node vm exited on '
    'signal 9 (Killed).',
    'openmpi-5.0.9-exit': 'prterun detected that one or more processes exited with non-zero '
    'status, thus causing the job to be terminated. (Process name: [prterun-vm-19614@1,1]; Exit '
    'code: 3)',
    'openmpi-5.0.9-leftbehind': "The PMIx server's listener thread failed to start, as it does "
    'where TMPDIR (/tmp) is full or has a folder ompi.NUMBER that a killed launcher of the same '
    'process number left: remove those of processes that are gone.',
    'openmpi-4.1.4-exit': 'Primary job terminated normally, but 1 process returned a non-zero exit '
    'code.',
    'openmpi-5.0.9-own': 'hello: cannot allocate 8 GB; give a smaller --n',
    'mpich-4.3.2-ofi': 'Abort(1009379727): Fatal error in internal_Init: Other MPI error: OFI call '
    'getinfo failed (default nic=(n/a): No data available)',
    'mpich-4.3.2-trunc': 'Abort(672283406) on node 1 (rank 1 in comm 0): Fatal error in '
    'internal_Recv: Message truncated: Message from rank 0 and tag 0 truncated; 4 bytes received '
    'but buffer size is 16',
    'mpich-4.3.2-ucxnodev': '[1795337578.281705] [vm:18955:0]     ucp_context.c:1524 UCX  ERROR no '
    'usable transports/devices (asked tcp on network:mlx5_0:1 )',
    'mpich-4.3.2-nolib': './nolib: error while loading shared libraries: libnox.so.12: cannot open '
    'shared object file: No such file or directory',
    'mpich-4.3.2-noexec': '[proxy:0@vm] HYDU_create_process (/mpich-4.3.2/src/pm/hydra/lib/utils/'
    'launch.c:73): execvp error on file ./noexec (Permission denied)',
    'mpich-4.3.2-segv': 'YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault '
    '(signal 11)',
}


@pytest.mark.parametrize('name', SAID)
def test_real_failures(name):
    assert reason_in_output('hello', [(REASONS / f'{name}.out').read_text()]) == SAID[name]


def test_every_output_is_looked_at():
    assert {path.stem for path in REASONS.iterdir()} == set(SAID)


@pytest.mark.parametrize('name', SAID)
def test_the_program_knows_best(name):
    text = (REASONS / f'{name}.out').read_text()
    for own in (f'hello: it is full\n{text}', f'{text}\nhello: it is full\n'):
        assert reason_in_output('hello', [own]) == 'hello: it is full' or name.endswith('own')


@pytest.mark.parametrize(
    ('said', 'words'),
    [
        ([], 'it printed nothing'),
        (['\n', '---\n'], 'it printed nothing'),
        (['[n1:7] mca: base: close: unloading component sm\n'], 'it printed nothing'),
        (['step 1\nstep 2\n', '[n1:7] select: component ob1 selected\n'], 'step 2'),
        # The last of several killers, and what they killed.
        (
            [
                'srun: error: n1: task 0: Killed\n',
                'slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n',
            ],
            'slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.',
        ),
        # What kept a rank from starting, before what became of the others.
        (
            [
                'srun: error: task 1 launch failed: Unspecified error\n',
                'slurmstepd-n1: error: *** STEP 2.0 ON n1 CANCELLED AT 2026-11-23T16:25:34 ***\n',
                'srun: error: n1: task 0: Killed\n',
            ],
            'srun: error: task 1 launch failed: Unspecified error',
        ),
        # Shared memory that is full: Open MPI says no more of it.
        (
            [
                '[n1:96] select: initializing btl component sm\n',
                '[n1:96] select: init of component sm returned failure\n',
                '[n1:96] select: component ob1 selected\n',
                'srun: error: n1: tasks 0-1: Killed\n',
            ],
            'select: init of component sm returned failure',
        ),
        # What one rank says of its call, before a component that was not needed.
        (
            [
                '[n1:96] select: init of component ofi returned failure\n',
                'Error in MPI_Isend(0x7f, 1, MPI_BYTE, 1): 12\n',
            ],
            'Error in MPI_Isend(0x7f, 1, MPI_BYTE, 1): 12',
        ),
        # A transport was missing, and Open MPI gives a number for that.
        (
            [
                '[n1:96] select: init of component sm returned failure\n',
                'Error in MPI_Isend(942367, 1, 0x55b532f8d5a0, 0, -33, 9423) (-12)\n',
                'srun: error: n1: task 0: Killed\n',
            ],
            'MPI_Isend: no transport reaches the other process',
        ),
        (
            [
                'srun: error: n2: task 1: Exited with exit code 1\n',
                '[n2:401] select: initializing pml component ucx\n',
                '[n2:401] select: init returned failure for component ucx\n',
            ],
            'select: init returned failure for component ucx',
        ),
        # Who ended first, and not those that srun ends for it or that miss it.
        (
            [
                'srun: error: n2: task 1: Exited with exit code 15\n',
                'slurmstepd: error: *** STEP 29.0 ON n1 CANCELLED AT 2026-11-23T23:45:56 ***\n',
                'srun: error: n1: task 0: Killed\n',
            ],
            'srun: error: n2: task 1: Exited with exit code 15',
        ),
        (
            [
                'srun: error: n2: task 1: Killed\n',
                'srun: error: n1: task 0: Exited with exit code 14\n',
            ],
            'srun: error: n2: task 1: Killed',
        ),
        # A message of Open MPI without its text, before what becomes of the program.
        (
            [
                f'{"-" * 74}\nSorry!  You were supposed to get help about:\n    no-pmi\n'
                'from the file:\n    /opt/openmpi/help-mpi-runtime.txt: No such file\n'
                f"But I couldn't find that topic in the file.  Sorry!\n{'-' * 74}\n",
                '[n2:712] Local abort, not able to guarantee that all others were killed!\n',
            ],
            'Open MPI stopped with its message no-pmi, ',
        ),
        # Harmless, and in every output.
        (
            ['[1.2] [n1:7 :0] rdmacm_cm.c:928  UCX  DIAG  failed: No such device, cannot\nend\n'],
            'end',
        ),
        # A table of a program is no message of a launcher.
        (
            [f'{"-" * 80}\nT/V  N\n{"-" * 80}\nhello: the matrix is singular\n'],
            'hello: the matrix is ',
        ),
        (
            [f'{"-" * 80}\nWR11C2R4 1000 128 1 2 0.11 5.9\nHPL start Mon\n{"-" * 80}\nthe end'],
            'the end',
        ),
        ([f'{"-" * 80}\n' + 'row\n' * 50 + 'hello: too small\n'], 'hello: too small'),
        ([f'{"-" * 80}\nhello: too small\n'], 'hello: too small'),
        (
            ['Abort(1): Fatal error in PMPI_Init: Other MPI error, error stack:\n'],
            'Other MPI error',
        ),
    ],
)
def test_what_tells_most(said, words):
    assert words in reason_in_output('hello', said)


def test_an_answer_is_short():
    assert len(reason_in_output('hello', [f'hello: {"x" * 10_000}\n'])) < LONGEST + 10


REPORTED = yaml.safe_load((paths.ROOT / 'tests' / 'golden' / 'reported_reasons.yaml').read_text())


@pytest.mark.parametrize('case', REPORTED, ids=lambda case: case['source'])
def test_failures_that_somebody_reported(case):
    assert reason_in_output('hello', [case['output']]) == case['reason']
