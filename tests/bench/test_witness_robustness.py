"""The witness breaks no program, and what it gathered is there however the job ends.

Programs run twice, without the witness and with it: the same exit code, the same output. Most of
them are ``tests/programs/witness/endings.c``, which does what its arguments say.

What ranks get when a job ends badly differs between MPIs. Another rank has died, left without
MPI_Finalize or called MPI_Abort: Open MPI's launcher sends SIGTERM to the others, so they leave
their line too; MPICH's and Intel MPI's send SIGKILL, and only the rank itself leaves one. The
launcher gets SIGTERM, as at a time limit: Open MPI's and MPICH's mpirun pass it on to the ranks;
Intel MPI's mpirun is a shell script that dies of it and leaves the ranks running, but the
mpiexec.hydra that it started passes it on, so signals go to the group of processes here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.witness.reading import WitnessError, read_witness
from building import PROGRAMS, build_once, check_command, kept_builds
from families import MPIS, dealt, on_one_mpi
from namespaces import entering, needs_namespaces, starting_over, two_hosts
from running import Run, kill_session, processes_of

PASSES_SIGTERM_ON = {'openmpi'}  # when a rank has ended badly; the others send SIGKILL


@dataclass
class Job:
    """A job that runs in a session of its own."""

    process: subprocess.Popen[str]
    files: Path

    def signal(self, number: int) -> None:
        """To the launcher and what it started in its group, as a batch system does."""
        os.killpg(self.process.pid, number)

    def processes(self) -> list[int]:
        """The launcher, its helpers and the ranks."""
        return processes_of(self.process.pid)

    def kill(self) -> None:
        """SIGKILL to all of them."""
        kill_session(self.process.pid)

    def wait(self, seconds: float = 300) -> Run:
        """Its end, and that of its ranks."""
        try:
            out, err = self.process.communicate(timeout=seconds)
            until = time.monotonic() + seconds
            while self.processes() and time.monotonic() < until:
                time.sleep(0.02)
            assert not self.processes()
        finally:
            self.kill()
        return Run(self.process.returncode, out, err, self.files)


def own_session(folder: Path) -> dict[str, str]:
    """What a launcher that is killed leaves is this test's alone (see ``surroundings``)."""
    return {'TMPDIR': str(folder)}


@pytest.fixture
def job(mpi, surroundings, build, tmp_path) -> Iterator[Callable[..., Job]]:
    """Starts a program on some ranks, with the witness or without.

    ``words`` are the launcher's, which stands behind ``within``.
    """
    started: list[Job] = []

    def start(
        program: Path | str,
        *arguments: str,
        ranks: int = 2,
        env: dict[str, str] | None = None,
        preload: bool | Path = True,
        words: Sequence[str] = (),
        within: Sequence[str] = (),
    ) -> Job:
        library = build('assay_witness') / 'libassay_witness.so' if preload is True else preload
        variables = {**surroundings, 'ASSAY_WITNESS_REPORT': str(tmp_path / 'report.json')}
        variables |= own_session(tmp_path)
        command = [*within, mpi.launcher, *words, '-n', str(ranks), 'env']
        command += [f'LD_PRELOAD={library}'] if library else ['NO_PRELOAD=']
        process = subprocess.Popen(
            [*command, str(program), *arguments],
            env={**variables, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(Job(process, tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.process.communicate()


@pytest.fixture
def endings(compiled) -> Path:
    """The program that does what its arguments say."""
    return compiled('endings')


def said(run: Run) -> list[str]:
    """What the program wrote; ranks in any order, and without what launchers add at a bad end."""
    lines = [line.lstrip('\0') for line in run.out.splitlines()]
    return sorted(line for line in lines if line.startswith(('rank ', 'survived')))


@pytest.fixture
def same(job) -> Callable[..., Run]:
    """Runs a program without the witness and with it: code and output are the same.

    Returns the run with it; `code` is the one to expect.
    """

    def run_both(*arguments: Path | str, code: int | None = 0, **options) -> Run:
        without = job(*arguments, **options, preload=False).wait()
        assert code is None or without.code == code, without.out + without.err
        with_it = job(*arguments, **options).wait()
        assert with_it.code == without.code, with_it.out + with_it.err
        assert said(with_it) == said(without)
        return with_it

    return run_both


def witness_lines(run: Run) -> list[str]:
    """What the witness said to the user, its table apart."""
    return [line for line in run.err.splitlines() if line.startswith('assay witness: ')]


def lines(run: Run) -> dict[int, dict]:
    """The lines of ``report.json.ranks``, by rank; each rank has one at most."""
    path = run.files / 'report.json.ranks'
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    by_rank = {line['rank']: line for line in found}
    assert len(by_rank) == len(found)
    return by_rank


def check_complete(run: Run, ranks: int = 2) -> None:
    assert run.report['complete'] is True
    assert [process['rank'] for process in run.report['processes']] == [*range(ranks)]
    assert lines(run) == {}
    assert list(run.files.glob('*.tmp')) == []


# Programs that are not broken ---------------------------------------------------------------------

STATIC = '#include <stdio.h>\nint main(void) { return puts("static") < 0; }\n'

#: MPI if it is there, as libraries ask that do not need it.
WEAK = """
#include <stdio.h>
__attribute__((weak)) int MPI_Init(int *, char ***);
static int (*const also)(int *, char ***) = MPI_Init;
int main(void) { return puts(MPI_Init || also ? "MPI" : "no MPI") < 0; }
"""

#: The library with which a program for MPI is built to run alone: handles may be anything.
ALONE = """
#include <stdio.h>
typedef struct { double parts[4]; } MPI_Comm;
int MPI_Init(int *count, char ***words) { return (void)count, (void)words, puts("alone") < 0; }
int MPI_Barrier(MPI_Comm comm) { return printf("%g\\n", comm.parts[3]) < 0; }
"""
WITH_ALONE = """
typedef struct { double parts[4]; } MPI_Comm;
int MPI_Init(int *, char ***), MPI_Barrier(MPI_Comm);
int main(void) { return MPI_Init(0, 0) || MPI_Barrier((MPI_Comm){ { 1, 2, 3, 4 } }); }
"""


@pytest.mark.parametrize('now', [False, True], ids=['lazy', 'bind-now'])
@dealt('program', ['true', 'python3', 'bash', 'static', 'weak', 'alone'])
def test_a_program_without_mpi(build, tmp_path, program, now):
    commands = {
        'true': ['/bin/true'],
        'python3': [sys.executable, '-c', 'import ssl, sqlite3, threading; print("python")'],
        'bash': ['bash', '-c', 'seq 100 | sort -r | head -3; echo $(ls / | wc -l); exit 3'],
    }
    sources = {
        'static': {'static': (STATIC, '-static')},
        'weak': {'weak': (WEAK, '-fPIE', '-pie')},
        'alone': {
            'libalone.so': (ALONE, '-shared', '-fPIC'),
            'alone': (WITH_ALONE, '-L.', '-lalone', '-Wl,-rpath,$ORIGIN'),
        },
    }
    for name, (source, *options) in sources.get(program, {}).items():
        (tmp_path / 'source.c').write_text(source)
        made = subprocess.run(
            ['cc', 'source.c', '-o', name, *options], cwd=tmp_path, capture_output=True
        )
        if made.returncode and '-static' in options:
            pytest.skip('no static C library')
        commands[program] = [f'./{program}']
    env = {**os.environ, **({'LD_BIND_NOW': '1'} if now else {})}
    preloaded = {**env, 'LD_PRELOAD': str(build('assay_witness') / 'libassay_witness.so')}
    plain, witnessed = (
        subprocess.run(commands[program], env=one, cwd=tmp_path, capture_output=True)
        for one in (env, preloaded)
    )
    assert witnessed.returncode == plain.returncode
    assert (witnessed.stdout, witnessed.stderr) == (plain.stdout, plain.stderr)
    assert list(tmp_path.glob('assay-witness*')) == []


def test_mpi_that_never_starts(same, endings):
    run = same(endings, 'early', 'exit=4', code=4, ranks=1)
    assert not (run.files / 'report.json').exists()


def test_a_working_life(same, endings):
    """Questions before MPI_Init, children and commands, another folder, work after the end."""
    actions = ['early', 'init', 'ring', 'commands', 'forks', 'chdir=/', 'ring', 'finalize']
    check_complete(same(endings, *actions, 'compute'))
    check_complete(same(endings, *actions, 'compute', 'exit=7', code=7, ranks=1), ranks=1)


def test_bound_at_once(same, endings):
    check_complete(same(endings, 'init', 'ring', 'finalize', env={'LD_BIND_NOW': '1'}))


@pytest.mark.parametrize('level', ['single', 'funneled', 'serialized', 'multiple'])
def test_thread_levels(same, endings, level):
    run = same(endings, f'init={level}', 'ring', 'finalize')
    names = ['single', 'funneled', 'serialized', 'multiple']
    provided = next(line for line in said(run) if 'level' in line).rpartition(' ')[2]
    assert run.report['mpi']['thread_level'] == names[int(provided)]


def test_a_relative_path_counts_from_the_start(same, endings):
    run = same(endings, 'init', 'chdir=/', 'finalize', env={'ASSAY_WITNESS_REPORT': 'report.json'})
    check_complete(run)


def test_errors_are_returned_as_before(same, endings):
    check_complete(same(endings, 'init', 'errors', 'finalize'))


def test_no_datatype(same, endings):
    check_complete(same(endings, 'init', 'no-datatype', 'finalize'))


def test_sessions_only(same, endings):
    """Nothing is recorded, which is said once: to the user and to Assay."""
    run = same(endings, 'session')
    if 'no sessions' in run.out:
        pytest.skip('this MPI has no sessions')
    assert len(witness_lines(run)) == 1
    assert 'without MPI_Init nothing is recorded' in witness_lines(run)[0]
    assert (run.report['sessions'], run.report['ranks']) == (True, 2)
    with pytest.raises(WitnessError, match='sessions without MPI_Init'):
        read_witness(run.files / 'report.json')


def test_sessions_before_mpi_init(same, endings, mpi):
    if mpi.family != 'mpich':
        # Open MPI 5.0.9 hangs or aborts in 1 of 20 to 60 such jobs, Intel MPI 2021.16 in each.
        pytest.skip('this MPI cannot be relied upon to start again after its last session')
    check_complete(same(endings, 'session', 'init', 'ring', 'finalize'))


def test_a_session_around_mpi_init(same, endings, mpi):
    if mpi.family == 'intelmpi':
        pytest.skip('this MPI takes the session for a first MPI_Init')
    check_complete(same(endings, 'open', 'init', 'ring', 'finalize', 'close'))


def test_a_session_within_mpi_init(same, endings):
    """Open MPI does not compare a session's communicator with another one: it ends the program."""
    check_complete(same(endings, 'init', 'session', 'ring', 'finalize'))


# What MPIs take, and is easily broken -------------------------------------------------------------


@pytest.fixture
def harmless(compiled) -> Path:
    """The program whose error handlers count what they hear of."""
    return compiled('harmless', '-lm')


def test_error_handlers_hear_of_the_program_alone(same, harmless):
    """With types, ranks, roots and communicators that are none, and buffers in place."""
    parts = ['null-types', 'nobody', 'neighbours', 'sides', 'wrong', 'freed', 'aborting']
    check_complete(same(harmless, *parts, ranks=3), ranks=3)


def test_error_handlers_that_are_set_by_a_name_of_mpi_1(same, mpi, compiled):
    if mpi.family == 'openmpi':
        pytest.skip('Open MPI has MPI_Errhandler_set no more')
    check_complete(same(compiled('harmless', '-DBY_ITS_NAME_IN_MPI_1', '-lm'), 'wrong', 'freed'))


@pytest.mark.parametrize('part', ['truncated', 'one-frees'])
def test_finalize_joins_no_collective_of_the_program(same, harmless, part):
    """Whether the other ranks come to it, one alone cannot know."""
    check_complete(same(harmless, part, ranks=3), ranks=3)


def test_nothing_is_said_into_a_file_of_the_program(same, harmless):
    check_complete(same(harmless, 'data-file', ranks=2))


def test_no_room_for_a_report(same, harmless):
    """The report of the start stays, and the sentence that says why."""
    run = same(harmless, 'no-room', ranks=2)
    assert run.report['complete'] is False
    assert any('cannot write' in line for line in witness_lines(run))


def test_traps_of_floating_point(same, harmless):
    """Compilers of Fortran set them for all of a program (-ffpe-trap)."""
    check_complete(same(harmless, 'traps', ranks=2))


def test_mpis_settings_are_forgotten(same, harmless):
    """MPICH's collectives need them; a program that calls none afterwards need not know."""
    check_complete(same(harmless, 'tool', ranks=2))


@on_one_mpi
def test_nobody_reads_standard_error(surroundings, build, harmless, tmp_path):
    """As of a program in a pipe to ``head``."""
    reader, writer = os.pipe()
    os.close(reader)
    env = {**surroundings, 'ASSAY_WITNESS_REPORT': str(tmp_path / 'report.json')}
    env |= {'LD_PRELOAD': str(build('assay_witness') / 'libassay_witness.so')}
    done = subprocess.run([harmless], env=env, stderr=writer, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 0
    assert json.loads((tmp_path / 'report.json').read_text())['complete'] is True


def test_cancelled_and_failed(same, harmless):
    parts = ['cancelled', 'failed-waits', 'communicators', 'ignored-statuses']
    check_complete(same(harmless, *parts, ranks=2))


def test_threads_that_end_leave_their_sums_alone(same, harmless):
    run = same(harmless, 'threads', 'short-threads', ranks=1)
    (process,) = run.report['processes']
    assert process['mpi_threads'] == 1 + 2000
    assert process['calls']['MPI_Sendrecv']['count'] == 2000
    assert [partner['messages'] for partner in process['partners']] == [2000]
    assert process['state_bytes'] < 100 << 10


def test_threads_that_free(same, harmless):
    """Requests and types, of which another thread may be given the handle at once."""
    run = same(harmless, 'threads', 'requests-freed', 'types-freed', ranks=1)
    (process,) = run.report['processes']
    (partner,) = process['partners']
    assert partner['messages'] == 4 * (2000 + 2000)
    assert partner['bytes'] == 4 * (4 * 2000 + 6 * 2000)


def test_handles_that_are_given_out_again(same, compiled):
    """Before the call that frees them returns; and types freed before the call that used them."""
    run = same(compiled('reused', '-rdynamic', '-ldl'), ranks=1)
    (process,) = run.report['processes']
    sizes = {partner.get('kind'): partner['sizes'] for partner in process['partners']}
    assert sizes == {None: {'4': 50, '8': 50}, 'one_sided': {'4': 50}}


# Shared memory alone reaches no ranks that are started later.
SPAWNING = {
    'OMPI_MCA_btl': 'self,sm,tcp',
    'I_MPI_FABRICS': 'shm:ofi',
    'FI_PROVIDER': 'tcp',
    'I_MPI_SPAWN': 'on',
}


def test_spawned_ranks_have_a_report_of_their_own(job, build, endings):
    library = build('assay_witness') / 'libassay_witness.so'
    actions = ['init=single', f'spawn={library}', 'finalize']
    run = job(endings, *actions, env=SPAWNING).wait()
    assert run.code == 0, run.out + run.err
    assert sum('token 42' in line for line in said(run)) == 4
    check_complete(run)
    (children,) = (
        path for path in run.files.glob('report.json.spawned-*') if path.suffix != '.finalized'
    )
    for report in run.report, json.loads(children.read_text()):
        assert report['complete'] is True
        for process in report['processes']:
            (partner,) = process['partners']
            assert (partner['rank'], partner['messages'], partner['bytes']) == (-1, 3, 12)


def test_spawned_ranks_without_the_witness(same, endings):
    check_complete(same(endings, 'init=single', 'spawn=', 'finalize', env=SPAWNING))


def test_exceptions(same, mpi, surroundings, tmp_path):
    if not mpi.cxx:
        pytest.skip('no C++ compiler of this MPI')
    program = tmp_path / 'exceptions'
    source = PROGRAMS / 'exceptions.cc'
    check_command([mpi.cxx, '-std=c++11', '-Wall', str(source), '-o', str(program)], surroundings)
    check_complete(same(program, code=4, ranks=1), ranks=1)


def test_a_layer_of_its_own(same, compiled):
    run = same(compiled('own_layer'))
    assert said(run) == [f'rank {rank}: 3 sends, token {1 - rank}' for rank in range(2)]
    check_complete(run)


def test_mpi_that_is_loaded_later(same, compiled):
    """By an interpreter, say, and for its own use alone."""
    plugin = compiled('plugin', '-DPLUGIN', '-shared', '-fPIC')
    check_complete(same(compiled('plugin', '-ldl'), str(plugin)))


@pytest.mark.parametrize(
    'first',
    [
        'MPI_Type_commit(&pair)',
        'MPI_Type_free(&pair)',
        'MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)',
        'MPI_Send_init(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &(MPI_Request){MPI_REQUEST_NULL})',
        'MPI_Recv_init(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &(MPI_Request){MPI_REQUEST_NULL})',
    ],
)
def test_mpi_that_is_loaded_later_and_begun_unseen(same, compiled, first):
    """Whichever call the witness hears of first."""
    plugin = compiled('plugin', '-DPLUGIN', '-DUNSEEN', f'-DFIRST={first}', '-shared', '-fPIC')
    same(compiled('plugin', '-ldl'), str(plugin), ranks=1)


def test_mpi_init_that_is_not_seen(same, compiled):
    """A program may look it up by its name, as interpreters do."""
    run = same(compiled('unseen'))
    (line,) = witness_lines(run)
    assert 'called MPI_Init where it is not seen' in line


def test_mpi_finalize_that_is_not_seen(same, compiled):
    run = same(compiled('unseen', '-DBEGINS_SEEN'))
    assert {line['reason'] for line in lines(run).values()} == {
        'exit after MPI_Finalize where it was not seen'
    }


def witness_of(family: str) -> Path:
    """The witness built with the MPI of a family."""
    mpi = next((one for one in MPIS.values() if one.family == family), None)
    if not mpi:
        pytest.skip(f'no {family} on this machine')
    env = {**os.environ, **mpi.env, 'PATH': f'{mpi.bindir}:{os.environ["PATH"]}'}
    return build_once(kept_builds(mpi, env), mpi, env, 'assay_witness') / 'libassay_witness.so'


def test_the_witness_of_another_mpi_leaves(mpi, job, endings, build):
    """Handles have other types there. Other libraries stay preloaded."""
    other_witness = witness_of('mpich' if mpi.family == 'openmpi' else 'openmpi')
    actions = ['init', 'ring', 'errors', 'finalize', 'exit=7']
    without = job(endings, *actions, preload=False, ranks=1).wait()
    run = job(endings, *actions, preload=other_witness, ranks=1).wait()
    assert (run.code, said(run)) == (7, said(without))
    (sentence,) = witness_lines(run)
    assert 'it records nothing' in sentence
    assert not (run.files / 'report.json').exists()
    both = f'{other_witness}:{build("assay_witness") / "libassay_witness.so"}'
    job(endings, *actions, preload=both, ranks=1).wait()
    assert run.report['complete'] is True


def test_the_witness_of_another_abi_leaves(job, endings, build, fault):
    """The standard's ABI has the same names as an MPI's own, and other handles."""
    witness = build('assay_witness') / 'libassay_witness.so'
    run = job(endings, 'init', 'finalize', preload=f'{fault("standard_abi")}:{witness}', ranks=1)
    (sentence,) = witness_lines(run.wait())
    assert sentence.endswith(", through MPI's standard ABI: it records nothing")


def test_mpich_s_witness_under_intel_mpi(mpi, job, endings):
    """They have one ABI."""
    if mpi.family != 'intelmpi':
        pytest.skip('for Intel MPI only')
    run = job(endings, 'init', 'ring', 'finalize', preload=witness_of('mpich')).wait()
    assert run.code == 0, run.err
    check_complete(run)


@on_one_mpi
def test_only_some_ranks_have_the_witness(mpi, surroundings, build, endings, fault, tmp_path):
    """They wait for the others in MPI_Init and say so; by a clock that is ten times as fast."""
    library = f'{fault("fast_clock")}:{build("assay_witness")}/libassay_witness.so'
    program = [str(endings), 'init', 'finalize']
    command = [mpi.launcher, '-n', '1', 'env', f'LD_PRELOAD={library}', *program]
    started = time.monotonic()
    process = subprocess.Popen(
        [*command, ':', '-n', '1', *program],
        env={**surroundings, **own_session(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    job = Job(process, tmp_path)
    too_late = threading.Timer(300, job.kill)
    too_late.start()
    try:
        sentence = next((line for line in process.stderr if line.startswith('assay witness')), '')
        assert 'rank 0 has waited 20 s in MPI_Init for the other ranks' in sentence
        assert time.monotonic() - started > 1.9
    finally:
        too_late.cancel()
        job.kill()
        process.communicate()


# Where the report goes, and what is in it ---------------------------------------------------------


def test_a_path_that_cannot_be_written(same, endings, tmp_path):
    path = tmp_path / 'nowhere' / 'report.json'
    env = {'ASSAY_WITNESS_REPORT': str(path)}
    run = same(endings, 'init', 'ring', 'finalize', 'exit=7', code=7, env=env, ranks=1)
    reason = 'No such file or directory'
    assert witness_lines(run) == [f'assay witness: cannot write {path}: {reason}']


def test_a_full_disk(same, endings, tmp_path):
    disk = tmp_path / 'disk'
    disk.mkdir()
    mount = ['mount', '-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip('cannot mount a small disk')
    try:
        with contextlib.suppress(OSError), (disk / 'filled').open('wb', buffering=0) as file:
            for _ in range(100):
                file.write(bytes(4096))
        path = disk / 'report.json'
        env = {'ASSAY_WITNESS_REPORT': str(path)}
        run = same(endings, 'init', 'ring', 'finalize', 'exit=7', code=7, env=env, ranks=1)
        reason = 'No space left on device'
        assert witness_lines(run) == [f'assay witness: cannot write {path}: {reason}']
        assert [file.name for file in disk.iterdir()] == ['filled']
    finally:
        subprocess.run(['umount', str(disk)], check=True)


@pytest.mark.parametrize(
    ('asked', 'found'),
    [
        ('placement,fabric', ['placement', 'fabric']),
        ('profile', ['placement', 'fabric', 'profile']),
        ('matrix', ['placement', 'fabric', 'matrix']),
        ('nonsense', ['placement', 'fabric']),
        ('', ['placement', 'fabric']),
    ],
)
def test_sections(job, endings, asked, found):
    run = job(endings, 'init', 'ring', 'finalize', env={'ASSAY_WITNESS': asked}).wait()
    check_complete(run)
    assert run.report['sections'] == found
    for process in run.report['processes']:
        assert process['calls']['MPI_Allreduce']['count'] == 1
        assert ('waits' in process) is ('profile' in found)
        assert all(('sizes' in partner) is ('matrix' in found) for partner in process['partners'])
    assert ('# assay witness: ' in run.err) is ('profile' in found)


def test_the_table_goes_to_stderr(job, endings):
    actions = ['early', 'init', 'ring', 'compute', 'finalize']
    without = job(endings, *actions, ranks=1, preload=False).wait()
    run = job(endings, *actions, ranks=1).wait()
    assert run.out == without.out
    assert '# assay witness: 1 ranks, ' in run.err


# Ranks that end badly -----------------------------------------------------------------------------


def check_incomplete(run: Run, ranks: int) -> None:
    """The report of MPI_Init is there, with the placement."""
    assert run.report['complete'] is False
    assert [process['rank'] for process in run.report['processes']] == [*range(ranks)]
    for process in run.report['processes']:
        assert process['cpus'] and process['threads']
        assert 'wall' not in process and 'calls' not in process


def noticed(start: Callable[[], Job]) -> Run:
    """A job one of whose ranks left, which the launcher noticed.

    MPICH's overlooks one that left without MPI_Finalize now and then, and waits for ever with the
    others: 17 of some 1,700 jobs did so, without the witness. They took a tenth of a second.
    """
    for seconds in (10, 20, 40, 80):
        running = start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return running.wait(seconds)
    return start().wait()


@pytest.mark.parametrize(
    ('action', 'reason'),
    [
        ('abort=5', 'MPI_Abort'),
        ('leave=3', 'exit without MPI_Finalize'),
        ('fault', 'SIGSEGV'),
        (f'kill={signal.SIGSEGV.value}', 'SIGSEGV'),
        (f'kill={signal.SIGTERM.value}', 'SIGTERM'),
        (f'kill={signal.SIGKILL.value}', None),
    ],
    ids=['abort', 'exit', 'fault', 'SIGSEGV', 'SIGTERM', 'SIGKILL'],
)
@pytest.mark.parametrize('ranks', [1, 3])
def test_the_rank_that_ends_badly(same, job, mpi, endings, action, reason, ranks):
    last = ranks - 1
    # With others beside it, the exit code of MPICH is that of whoever ended last.
    if ranks == 1:
        run = same(endings, 'init', 'ring', action, code=None, ranks=ranks)
    else:
        run = noticed(lambda: job(endings, 'init', 'ring', action, ranks=ranks))
    assert run.code != 0
    check_incomplete(run, ranks)
    found = lines(run)
    assert (last in found) is (reason is not None)
    if reason:
        line = found.pop(last)
        assert (line['reason'], line['inside']) == (reason, None)
        assert 'since' not in line
        assert line['calls']['MPI_Allreduce']['count'] == 1
        assert 0 <= line['mpi_time'] <= line['wall'] < 300
    assert bool(found) is (ranks > 1 and mpi.family in PASSES_SIGTERM_ON)
    for line in found.values():
        assert line['reason'] == 'SIGTERM'
        # One that had no core meanwhile was not in it yet.
        assert line['inside'] in (None, 'MPI_Recv')


@pytest.fixture
def survived(job, mpi) -> Callable[..., Run]:
    """Runs a job that goes on without a rank (ULFM), until all others have left a line.

    Then it is ended: Open MPI 5.0.9 may hang at the end of its own MPI_Finalize, as it did in 24 of
    75 jobs without the witness whose rank died just before.
    """
    if 'Fault Tolerance support: yes' not in mpi.description:
        pytest.skip('this MPI ends the job')

    def run(*arguments: Path | str, ranks: int, words: Sequence[str] = (), **options) -> Run:
        running = job(*arguments, ranks=ranks, words=['--with-ft', 'ulfm', *words], **options)
        ends = running.files / 'report.json.ranks'
        until = time.monotonic() + 120
        while running.process.poll() is None and time.monotonic() < until:
            if ends.exists() and ends.read_text().count('\n') == ranks - 1:
                break
            time.sleep(0.02)
        running.kill()
        out, err = running.process.communicate()
        return Run(running.process.returncode, out, err, running.files)

    return run


def check_survivors(run: Run, ranks: int, lost: int) -> None:
    """Each of them left a line that says so, and rank 0 nothing half done."""
    assert sorted(lines(run)) == sorted({*range(ranks)} - {lost}), run.out + run.err
    assert {line['reason'] for line in lines(run).values()} == {
        'MPI_Finalize of a job that lost a rank'
    }
    assert lost == 0 or list(run.files.glob('*.tmp')) == []


def test_a_job_that_goes_on_without_a_rank(survived, endings):
    """As with ULFM: the others go on as they would, and each leaves a line."""
    run = survived(endings, 'init', 'lose=0', 'finalize', ranks=3)
    assert [line for line in said(run) if 'left' in line] == [
        'rank 1: 2 are left, sum 2',
        'rank 2: 2 are left, sum 2',
    ]
    check_incomplete(run, 3)
    check_survivors(run, 3, lost=0)


#: At the start of what is gathered, in the analysis of waits, and while rank 0 writes.
GATHERING = [
    *[(rank, *call) for rank in (0, 2) for call in (('Reduce', 1), ('Gather', 1), ('Bcast', 1))],
    *[(0, 'Gatherv', 1), (2, 'Gatherv', 1), (0, 'Scatterv', 1), (2, 'Scatterv', 1)],
    *[(0, 'Isend', 1), (2, 'Irecv', 1), (2, 'Iprobe', 1), (0, 'Ibarrier', 1), (2, 'Ibarrier', 1)],
    *[(0, 'Send', 1), (0, 'Mprobe', 1), (0, 'Mprobe', 4), (2, 'Recv', 1), (2, 'Send', 1)],
]


@pytest.mark.parametrize(('dies', 'call', 'count'), GATHERING)
def test_a_rank_that_dies_while_the_report_is_gathered(survived, compiled, dies, call, count):
    """It holds up nobody, whoever waits for whom."""
    program = compiled('dying', '-rdynamic', '-ldl')
    run = survived(program, str(dies), call, str(count), ranks=4)
    check_incomplete(run, 4)
    check_survivors(run, 4, lost=dies)


@needs_namespaces
def test_a_rank_that_dies_while_hosts_gather(survived, compiled, tmp_path):
    """Open MPI's collectives between hosts take it for a success, or wait for the others."""
    program = compiled('dying', '-rdynamic', '-ldl')
    names = ('198.18.7.1', '198.18.7.2')
    with two_hosts({'cable': names}) as hosts:
        env = starting_over('cable', dict(zip(names, hosts, strict=True)), tmp_path)
        env |= {'OMPI_MCA_btl': 'self,tcp', 'OMPI_MCA_btl_tcp_if_include': 'cable'}
        words = ['--host', ','.join(f'{name}:2' for name in names), '--map-by', 'node']
        where = {'words': words, 'env': env}
        run = survived(program, '2', 'Gather', '1', ranks=4, within=entering(hosts[0]), **where)
    check_incomplete(run, 4)
    check_survivors(run, 4, lost=2)


def test_a_rank_that_dies_when_the_report_is_there(survived, compiled):
    """Rank 0, as it prints its table: the others cannot know."""
    run = survived(compiled('dying', '-rdynamic', '-ldl'), '0', 'Reduce', '5', ranks=4)
    assert run.report['complete'] is True
    check_survivors(run, 4, lost=0)


def test_a_fault_is_told_as_before(job, endings):
    """What the MPI's handlers say of it: at which address."""
    said = [job(endings, 'init', 'fault', ranks=1, preload=it).wait().err for it in (False, True)]
    assert len({'0x1000' in text for text in said}) == 1


@pytest.mark.parametrize(
    'actions',
    [
        ['catch=15', 'init', 'take=15'],
        ['init', 'catch=15', 'take=15', 'take=15'],
        ['ignore=15', 'init', 'take=15'],
        ['init', 'ignore=15', 'take=15'],
        ['catch=11', 'init', 'take=11'],
    ],
)
def test_a_signal_that_the_program_takes(same, endings, actions):
    check_complete(same(endings, *actions, 'ring', 'finalize', ranks=1), ranks=1)


def test_a_runtime_that_works_with_faults(same, endings):
    """Its handler takes them, and the rank ends otherwise."""
    run = same(endings, 'catch=11', 'init', 'take=11', 'ring', 'leave=3', code=3, ranks=1)
    assert lines(run)[0]['reason'] == 'exit without MPI_Finalize'


def test_a_signal_taken_before_one_that_kills(same, endings):
    actions = ['catch=15', 'init', 'take=15', f'kill={signal.SIGSEGV.value}']
    run = same(endings, *actions, code=None, ranks=1)
    assert lines(run)[0]['reason'] == 'SIGSEGV'


def test_children_of_a_rank_leave_no_lines(same, endings):
    run = same(endings, 'init', 'commands', 'forks', 'ring', 'leave=3', code=3, ranks=1)
    assert lines(run)[0]['reason'] == 'exit without MPI_Finalize'
    assert 'MPI_Allreduce' in lines(run)[0]['calls']


def test_mpi_finalize_in_an_exit_handler(same, endings):
    for order in itertools.permutations(['atexit', 'init']):
        check_complete(same(endings, *order, 'ring', 'leave=3', code=3, ranks=1), ranks=1)


def hung(job: Job, ranks: int) -> float:
    """Waits until all ranks hang and returns since when; s of ``time.time``."""
    marks = [job.files / f'mark-{rank}' for rank in range(ranks)]
    until = time.monotonic() + 300
    while not all(mark.exists() for mark in marks):
        assert time.monotonic() < until and job.process.poll() is None, job.process.communicate()
        time.sleep(0.01)
    return max(mark.stat().st_mtime for mark in marks)


def test_a_time_limit(job, endings):
    """Every rank says where it was: two of them in MPI_Recv, for as long as they hang."""
    running = job(endings, 'init', 'ring', 'hang=mark', ranks=3)
    since = hung(running, 3)
    time.sleep(1.5)
    asked = time.time()
    running.signal(signal.SIGTERM)
    run = running.wait()
    ended = time.time()
    assert run.code != 0
    check_incomplete(run, 3)
    found = lines(run)
    assert {line['reason'] for line in found.values()} == {'SIGTERM'}
    assert [found[rank]['inside'] for rank in range(3)] == [None, 'MPI_Recv', 'MPI_Recv']
    assert 'since' not in found[0]
    for rank in 1, 2:
        assert asked - since - 1 < found[rank]['since'] < ended - since + 1
        assert found[rank]['since'] <= found[rank]['mpi_time'] <= found[rank]['wall']
        call = found[rank]['calls']['MPI_Recv']
        assert (call['count'], call['timed'], call['time']) == (1, 0, 0)


def stacks(job: Job, ranks: int) -> str:
    """Waits until gdb is done with all ranks; returns what it wrote."""
    until = time.monotonic() + 300
    while True:
        text = ''.join(file.read_text() for file in job.files.glob('report.json.stacks-*'))
        if len(re.findall(r'^#\d+ .* main ', text, re.MULTILINE)) == ranks:
            return text
        assert time.monotonic() < until and job.process.poll() is None, text
        time.sleep(0.02)


@pytest.fixture
def soon(job, endings) -> dict[str, str]:
    """A time for stacks that is after the start of the ranks, however long that takes here."""
    if not shutil.which('gdb'):
        pytest.skip('needs gdb')
    began = time.monotonic()
    assert job(endings, 'init', 'ring', 'finalize').wait().code == 0
    seconds = 3 + 5 * (time.monotonic() - began)
    return {'ASSAY_WITNESS_DEADLINE': str(int(time.time() + seconds))}


def test_stacks_of_ranks_that_hang(job, endings, soon):
    """They say where each rank is, and the ranks take signals as before."""
    running = job(endings, 'init', 'ring', 'hang=mark', ranks=3, env=soon)
    text = stacks(running, 3)
    assert sorted(re.findall(r'^== rank (\d) on \S+, pid \d+$', text, re.MULTILINE)) == [*'012']
    calls = re.findall(r'^#\d+ .*? in (MPI_Recv|hang) \(', text, re.MULTILINE)
    assert (calls.count('MPI_Recv'), calls.count('hang')) == (2, 3)
    running.signal(signal.SIGTERM)
    found = lines(running.wait())
    assert [found[rank]['inside'] for rank in range(3)] == [None, 'MPI_Recv', 'MPI_Recv']


def test_stacks_of_ranks_that_do_not_start(job, endings, soon, tmp_path):
    script = tmp_path / 'late.sh'
    script.write_text('mkdir first 2>/dev/null && exec sleep 60\nexec "$@"\n')
    running = job('sh', script, endings, 'init', env=soon)
    text = stacks(running, 1)
    assert re.search(r'^== a rank on \S+, pid \d+$', text, re.MULTILINE)
    assert re.search(r'^#\d+ .* in P?MPI_Init \(', text, re.MULTILINE)


def test_ranks_go_on_after_their_stacks_were_taken(job, endings, soon, tmp_path):
    running = job(endings, 'init', 'ring', 'until=go', 'ring', 'finalize', env=soon)
    assert len(re.findall('^#.* in until ', stacks(running, 2), re.MULTILINE)) == 2
    (tmp_path / 'go').touch()
    run = running.wait()
    assert run.code == 0, run.err
    check_complete(run)


def test_all_ranks_killed(job, endings):
    running = job(endings, 'init', 'ring', 'hang=mark')
    hung(running, 2)
    running.kill()
    run = running.wait()
    check_incomplete(run, 2)
    assert lines(run) == {}


def test_lines_of_an_earlier_run_are_gone(job, endings, tmp_path):
    (tmp_path / 'report.json.ranks').write_text('of an earlier run\n')
    job(endings, 'init', 'exit=3').wait()
    first = (tmp_path / 'report.json.ranks').read_text()
    assert 'earlier' not in first and 'exit without' in first
    check_complete(job(endings, 'init', 'finalize').wait())


def test_there_is_never_half_a_report(job, endings, tmp_path):
    """It is read again and again while jobs end, or are killed as they end; the last is whole."""
    path = tmp_path / 'report.json'
    seen = []
    for number in range(8):
        path.unlink(missing_ok=True)
        running = job(endings, 'init', 'ring', 'hang=mark' if number == 0 else 'finalize', ranks=3)
        until = None
        while running.process.poll() is None:
            if path.exists():
                report = json.loads(path.read_text())
                assert len(report['processes']) == report['ranks'] == 3
                seen.append(report['complete'])
                # Around the time when ranks end, each time a little later.
                until = until or time.monotonic() + 0.003 * number
            if until and time.monotonic() > until and number < 7:
                running.kill()
        running.wait()
    assert False in seen
    assert json.loads(path.read_text())['complete'] is True
