"""`assay witness run`: which word of a launcher's line is the program, and what is done to it."""

import fcntl
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from assay import AssayError
from assay.commands import witness
from assay.machine.mpi import Mpi
from assay.running import launches, program
from found import MPICH


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a program `app`, and files that are none."""
    monkeypatch.chdir(tmp_path)
    for name in ('app', 'node', 'core'):
        (tmp_path / name).write_text('#!/bin/sh\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / 'hosts').write_text('n1\n')
    return tmp_path


@pytest.mark.parametrize(
    'line',
    [
        './app',
        'mpirun -n 4 ./app',
        'mpirun -np 4 --oversubscribe ./app -n 3',
        'mpirun.openmpi --map-by node --bind-to core -x A=b ./app ./app',
        '/opt/mpi/bin/mpirun --hostfile hosts --mca btl self,sm --mca pml ob1 app',
        'mpiexec -genv A b -n 2 -ppn 1 -bind-to core ./app',
        'mpiexec.hydra -genv A=b -hosts n1,n2 ./app',
        'srun -n 4 -c 2 --cpu-bind=cores -x n3 --exclusive ./app in -n',
        'srun --ntasks 4 --unknown-of-this-site value ./app',
        'flux run -n 4 -x -o cpu-affinity=per-task ./app',
        'aprun -n 4 -d 2 ./app',
        'jsrun -n 1 -a 4 ./app',
        'time -p mpirun -n 2 ./app',
        'mpirun -n 2 -- ./app',
        'mpirun -n 2 env -u B LD_PRELOAD=/mine.so ./app',
        'env A=1 ./app in',
        './app mpirun -n 2 ./app',
        'mpirun -n 2 ./app -app --multi-prog',
    ],
)
def test_the_program_of_a_line(folder, line):
    words = shlex.split(line)
    found = program.read_line(words)
    first = words.index('app') if 'app' in words else words.index('./app')
    assert [*found.programs] == [first]


def test_each_part_of_a_line_has_a_program(folder):
    words = shlex.split('mpirun -n 1 ./app : -n 2 -x A ./app b : -n 1 app')
    assert [*program.read_line(words).programs] == [3, 9, 14]
    made = program.read_line(words).preloading([Path('/w.so')], {'A': 'b c'})
    assert made.count('/w.so') == 3 and made[-1] == './app'
    assert [word for word in made if word in words] == [*words[:14], './app']  # in their order


def test_a_program_is_looked_for_where_it_starts(folder):
    (folder / 'run').mkdir()
    (folder / 'app').rename(folder / 'run' / 'app')
    for option in ('-wdir', '--wdir', '-wd', '-D'):
        found = program.read_line(['mpirun', option, 'run', '-n', '2', './app'])
        assert found.programs == {5: Path('run')}
    with pytest.raises(AssayError, match='no program was found'):
        program.read_line(['mpirun', '-n', '2', './app'])


@pytest.mark.parametrize(
    ('line', 'told'),
    [
        ('mpirun -n 4', 'no program was found'),
        ('mpirun -n 4 ./lost', 'no program was found among'),
        ('./lost', "no program './lost' to run"),
        ('srun --multi-prog hosts', 'takes its programs from a file'),
        ('mpiexec -configfile hosts', 'takes its programs from a file'),
        ('flux submit -n 4 ./app', 'only `flux run` waits'),
    ],
)
def test_a_line_without_a_program_is_not_started(folder, line, told):
    with pytest.raises(AssayError, match=told):
        program.read_line(line.split())


def test_what_a_user_preloads_stays_first(folder, monkeypatch):
    (folder / 'app').write_text('#!/bin/sh\necho "$LD_PRELOAD|$ASSAY_WITNESS_REPORT|$*"; exit 3\n')
    for before, wanted in ((None, ''), ('/nowhere/tool.so', '/nowhere/tool.so:')):
        given = {'ASSAY_WITNESS_REPORT': f'{folder}/r $x.json'}
        made = program.read_line(['./app', 'a b', '*']).preloading([Path('/no/w.so')], given)
        env = {'PATH': os.environ['PATH']} | ({'LD_PRELOAD': before} if before else {})
        done = subprocess.run(made, capture_output=True, text=True, env=env)
        assert done.returncode == 3
        assert done.stdout == f'{wanted}/no/w.so|{folder}/r $x.json|a b *\n'


@pytest.mark.parametrize(
    ('line', 'told'),
    [
        ('mpirun -n 2 apptainer exec image ./app', 'apptainer starts it in a container'),
        ('srun singularity run image', 'singularity starts it in a container'),
    ],
)
def test_a_container_gets_nothing(folder, monkeypatch, line, told):
    name = 'apptainer' if 'apptainer' in line else 'singularity'
    (folder / name).write_text('#!/bin/sh\n')
    (folder / name).chmod(0o755)
    monkeypatch.setenv('PATH', f'{folder}:{os.environ["PATH"]}')
    words, unseen = launches.prepare_line(line.split(), folder / 'r.json', folder, ExitStack())
    assert words == line.split() and told in unseen


def test_what_is_not_recorded_is_said_before_the_run(folder, monkeypatch, capfd):
    (folder / 'docker').write_text('#!/bin/sh\necho runs >&2\n')
    (folder / 'docker').chmod(0o755)
    monkeypatch.setenv('PATH', f'{folder}:{os.environ["PATH"]}')
    (folder / 'r.json').write_text("of somebody else: it is in nobody's way")
    with pytest.raises(typer.Exit) as ended:
        witness.run(['docker', 'run', 'image'], folder / 'r.json')
    assert ended.value.exit_code == 0 and not (folder / 'r.json.lines').exists()
    first, second = capfd.readouterr().err.splitlines()
    assert 'nothing will be recorded: docker starts it in a container' in first
    assert second == 'runs'


def test_a_program_with_other_rights_gets_nothing(folder, monkeypatch):
    (folder / 'app').chmod(0o4755)
    monkeypatch.setattr(program.os, 'geteuid', lambda: os.stat(folder).st_uid + 1)
    words, unseen = launches.prepare_line(
        ['mpirun', './app'], folder / 'r.json', folder, ExitStack()
    )
    assert words == ['mpirun', './app'] and 'with the rights of another' in unseen


def test_another_file_is_not_removed(folder):
    with pytest.raises(AssayError, match='hosts is not a report of the witness'):
        launches.remove_earlier(folder / 'hosts')
    (folder / 'r.json').write_text('{"schema": 2, "witness": "0.1"}')
    (folder / 'r.json.lines').write_text('{}')
    launches.remove_earlier(folder / 'r.json')
    assert not (folder / 'r.json').exists() and not (folder / 'r.json.lines').read_text()
    with pytest.raises(AssayError, match='cannot be written there'):
        launches.remove_earlier(folder / 'lost' / 'r.json')


@pytest.mark.parametrize(
    ('script', 'code'), [('exit 0', 0), ('exit 77', 77), ('kill -9 $$', 137), ('kill -15 $$', 143)]
)
def test_the_exit_code_is_the_programs(script, code):
    assert program.run_passing_signals(['sh', '-c', script]) == (code, set())


def test_the_environment_is_the_users(monkeypatch, capfd):
    """The command takes variables of Python out of its own environment."""
    monkeypatch.setenv('ASSAY_GIVEN_PYTHONPATH', '/users/modules')
    monkeypatch.delenv('PYTHONPATH', raising=False)
    program.run_passing_signals(['sh', '-c', 'echo "$PYTHONPATH|${ASSAY_GIVEN_PYTHONPATH-none}"'])
    assert capfd.readouterr().out == '/users/modules|none\n'


#: Makes itself a group and goes on as another program, as `timeout` does.
ITS_OWN_GROUP = 'import os, sys; os.setpgid(0, 0); os.execvp(sys.argv[1], sys.argv[1:])'


def counting(ready, before=()):
    """A program that passes signals on to a shell, which counts SIGUSR1 and SIGINT."""
    inner = (
        f'n=0; trap "n=\\$((n+1))" USR1 INT; trap "exit \\$((4+n))" USR2; : >{ready}; '
        'while :; do sleep 0.05; done'
    )
    code = (
        'import sys; from assay.running import program; '
        f'sys.exit(program.run_passing_signals({[*before, "sh", "-c", inner]!r})[0])'
    )
    return [sys.executable, '-c', code]


def counted(run, ready, send):
    """How many signals reached the shell."""
    end = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < end:
        time.sleep(0.02)
    send()
    time.sleep(0.3)  # until both have had the time to come
    run.send_signal(signal.SIGUSR2)
    return run.wait(timeout=60) - 4


@pytest.mark.parametrize('send', [os.kill, os.killpg], ids=['alone', 'group'])
def test_a_signal_reaches_the_program_once(tmp_path, send):
    """Also one that `timeout` or Slurm sends to the whole group."""
    ready = tmp_path / 'ready'
    with subprocess.Popen(counting(ready), start_new_session=True) as run:
        assert counted(run, ready, lambda: send(run.pid, signal.SIGUSR1)) == 1


@pytest.mark.parametrize('before', [(), (sys.executable, '-c', ITS_OWN_GROUP)], ids=['same', 'own'])
def test_ctrl_c_reaches_the_program_once(tmp_path, before):
    """Also one that has left the terminal's group."""
    ready = tmp_path / 'ready'
    terminal, its = pty.openpty()

    def take_the_terminal():
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it runs behind

    words = counting(ready, before)
    with subprocess.Popen(
        words, stdin=its, start_new_session=True, preexec_fn=take_the_terminal
    ) as run:
        assert counted(run, ready, lambda: os.write(terminal, b'\x03')) == 1
    os.close(terminal)
    os.close(its)


def test_what_it_started_ends_when_it_is_killed(tmp_path):
    ready = tmp_path / 'ready'
    inner = f'trap "echo ended; exit" TERM; : >{ready}; while :; do sleep 0.05; done'
    code = (
        f'from assay.running import program; program.run_passing_signals(["sh", "-c", {inner!r}])'
    )
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True) as run:
        end = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < end:
            time.sleep(0.02)
        run.kill()
        assert run.communicate(timeout=60)[0] == 'ended\n'


def test_the_mpi_in_another_folder_is_seen(folder, monkeypatch):
    """A relative path is one from the folder that the launcher starts the program in."""
    (folder / 'run').mkdir()
    (folder / 'app').rename(folder / 'run' / 'app')
    seen = []
    monkeypatch.setattr(
        program, '_libraries', lambda file: (seen.append(file.absolute()), ([], False))[1]
    )
    line = shlex.split('mpirun -n 1 -wdir run ./app : -n 1 ./core')
    program.find_program(program.read_line(line))
    assert seen == [folder / 'run/app', folder / 'core']


@pytest.mark.parametrize(
    ('content', 'kind'),
    [
        (b'\0ompi_mpi_comm_world\0', 'openmpi'),
        (b'\0MPIR_Process\0HPE MPT 2.25\0', 'mpich'),
        (b'\0HPE MPT 2.25  08/12/21\0', 'HPE MPT'),
        (b'\0SGI MPT 2.14\0', 'HPE MPT'),
        (b'\0Platform MPI 9.1.4\0', 'IBM Platform MPI'),
        (b'\0nothing that is known', 'mpich'),
    ],
)
def test_whose_handles_a_library_has(tmp_path, content, kind):
    library = tmp_path / 'libmpi.so'
    library.write_bytes(content)
    assert program._kind(library) == kind
    if kind not in ('openmpi', 'mpich'):
        with pytest.raises(AssayError, match=f'is of {kind}: its handles are its own'):
            program.choose_mpi(program.Program(library, (library,), library), 'mpirun')


def _mpi_in(bindir: Path) -> Mpi:
    own = {'cc': str(bindir / 'mpicc'), 'launcher': str(bindir / 'mpirun')}
    return replace(MPICH, version='5.0.2', prefix=bindir.parent, bindir=bindir, **own)


def test_a_program_of_the_standard_abi_gets_a_witness_of_that_abi(tmp_path, monkeypatch):
    library = tmp_path / 'lib/libmpi_abi.so.1'
    bindir = tmp_path / 'bin'
    for file in (library, *(bindir / name for name in ('mpicc', 'mpicxx', 'mpirun', 'mpiexec'))):
        file.parent.mkdir(exist_ok=True)
        file.touch(mode=0o755)
    mpi = _mpi_in(bindir)
    monkeypatch.setattr(program, 'find_mpis', lambda: [mpi])
    asked = program.Program(library, (library,), library)
    with pytest.raises(AssayError, match='there is no mpicc of that MPI'):
        program.choose_mpi(asked, str(bindir / 'mpiexec'))
    for name in ('mpicc_abi', 'mpicxx_abi'):
        (bindir / name).touch()
    chosen = program.choose_mpi(asked, str(bindir / 'mpiexec'))
    assert (chosen.cc, chosen.cxx) == (str(bindir / 'mpicc_abi'), str(bindir / 'mpicxx_abi'))
    # Its mpiexec and its mpirun are two files.
    assert program.choose_mpi(program.Program(), str(bindir / 'mpiexec')) == mpi


def test_mpi4py_is_asked_which_mpi_it_loads(tmp_path, monkeypatch):
    """Wheels have a module for each MPI, which are linked with libraries of any place."""
    if not shutil.which('cc'):
        pytest.skip('no C compiler')
    library = tmp_path / 'libmpi.so'
    subprocess.run(['cc', '-shared', '-o', library, '-x', 'c', '/dev/null'], check=True)
    package = tmp_path / 'mpi4py'
    package.mkdir()
    (package / '__init__.py').write_text('class rc:\n    initialize = True\n')
    (package / 'MPI.py').write_text(
        f'import ctypes, mpi4py\nif not mpi4py.rc.initialize:\n    ctypes.CDLL({str(library)!r})\n'
    )
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    assert library in program._libraries(Path(sys.executable))[0]


def test_an_import_of_mpi4py_that_hangs_tells_nothing(tmp_path, monkeypatch):
    (tmp_path / 'mpi4py.py').write_text('import time; time.sleep(98765)\n')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setattr(program, 'IMPORT', 0.5)
    assert program._loaded_by_mpi4py(Path(sys.executable)) == []


def test_lines_at_one_time_have_a_report_each(tmp_path):
    asked = tmp_path / 'r.json'
    with launches.reserve_report(asked) as first, launches.reserve_report(asked) as second:
        launches.remove_earlier(first)
        with launches.reserve_report(asked) as third:
            names = [one.name for one in (first, second, third)]
            assert names == ['r.json', 'r.run-2.json', 'r.run-3.json']
    assert not [*tmp_path.iterdir()]  # none of them wrote anything
    with launches.reserve_report(asked) as own:
        assert own == asked


def test_a_folder_that_the_program_removes_changes_nothing(tmp_path):
    gone = tmp_path / 'scratch'
    gone.mkdir()
    with launches.reserve_report(gone / 'r.json'):
        shutil.rmtree(gone)
        gone.touch()
    lost = tmp_path / 'lost'
    assert launches.why_nothing(lost / 'r.json', True).startswith(f'{lost}: No such file')


def test_a_program_without_an_mpi_is_told(folder):
    told = {is_linked: launches.why_nothing(folder / 'r.json', is_linked) for is_linked in (0, 1)}
    assert 'linked with an MPI' in told[0] and 'linked with an MPI' not in told[1]
    launches.claim(folder, folder / 'r.json', ['./app'], program.Program(folder / 'app'))
    launches.claim(folder, folder / 'r.json', ['./app', 'in'], program.Program())
    assert launches.launches(folder) == [
        (folder / 'r.json', './app', True),
        (folder / 'r.launch-2.json', './app in', False),
    ]


def test_a_report_that_is_being_removed_is_nobody_elses(folder, monkeypatch):
    """Another command may look at any moment."""
    (folder / 'r.json').write_text('{"schema": 2, "witness": "0.1"}')
    (folder / 'r.json.lines').write_text('{}')
    unlink, looks = Path.unlink, []

    def unlink_and_look(file, **options):
        unlink(file, **options)
        looks.append(launches._assert_replaceable(folder / 'r.json'))

    monkeypatch.setattr(Path, 'unlink', unlink_and_look)
    launches.remove_earlier(folder / 'r.json')
    assert looks


def test_a_launch_that_cannot_be_seen_is_run_as_it_is(folder, monkeypatch):
    """What a script starts must not fail because of us; a question to a launcher is no launch."""
    monkeypatch.setenv('LD_PRELOAD', f'/users/tool.so:{program.paths.BUILDS}/launch-1.so')
    monkeypatch.setenv('ASSAY_WITNESS_LAUNCH', 'x')
    for words in (['mpirun', '--version'], ['mpirun', '-n', '2', './lost']):
        assert launches.launch(words, folder / 'r.json', folder) == words
    assert (os.environ['LD_PRELOAD'], 'ASSAY_WITNESS_LAUNCH' in os.environ) == (
        '/users/tool.so',
        False,
    )
    (told,) = launches.problems_of_launches(folder)
    assert told.startswith('mpirun -n 2 ./lost: no program was found')
    assert not launches.launches(folder)


@pytest.fixture(scope='module')
def launch_library(tmp_path_factory):
    if not shutil.which('cc'):
        pytest.skip('no C compiler')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program.paths, 'BUILDS', tmp_path_factory.mktemp('builds'))
        return launches.build_launch_library()


@pytest.mark.parametrize(
    ('script', 'launchers'),
    [
        ('bin/mpirun -n 2 ./app', ['bin/mpirun -n 2 ./app']),
        ('PATH=$PWD/bin:$PATH; mpirun a; exec mpirun "b c"', ['mpirun a', 'mpirun b c']),
        ('bin/mpiexec.own x; env bin/mpiexec.own y', ['bin/mpiexec.own x', 'bin/mpiexec.own y']),
        ('bin/mpirunner x; ls bin/mpirun; sh bin/other', []),
        ('env -i bin/mpirun', []),
        ('unset ASSAY_WITNESS_LAUNCH; bin/mpirun x', []),
    ],
)
def test_launchers_of_a_script_are_caught(folder, launch_library, script, launchers):
    """However the script finds them: mpirun is a script itself, mpiexec.own is none."""
    (folder / 'bin').mkdir()
    for name in ('mpirun', 'mpirunner', 'other'):
        (folder / 'bin' / name).write_text('#!/bin/sh\necho "started: $*"\n')
        (folder / 'bin' / name).chmod(0o755)
    (folder / 'bin/mpiexec.own').symlink_to(shutil.which('echo'))
    command = folder / 'command'
    command.write_text('echo "$*" >>caught; exec "$@"\n')
    environment = {
        'PATH': os.environ['PATH'],
        'LD_PRELOAD': str(launch_library),
        'ASSAY_WITNESS_LAUNCH': str(command),
        'ASSAY_WITNESS_LAUNCHERS': ':'.join(program.LAUNCHERS),
    }
    done = subprocess.run(
        ['sh', '-c', script], env=environment, capture_output=True, text=True, cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, '')
    caught = folder / 'caught'
    found = caught.read_text().splitlines() if caught.exists() else []
    assert [line.replace(f'{folder}/bin/mpirun', 'mpirun') for line in found] == launchers


def test_a_container_that_a_script_starts_does_not_get_the_library(folder, launch_library):
    """It is not there, which the dynamic linker would say of each program inside."""
    (folder / 'apptainer').symlink_to(shutil.which('env'))
    (folder / 'command').touch()
    environment = {
        'PATH': os.environ['PATH'],
        'LD_PRELOAD': f'{launch_library}:/no/tool.so:{launch_library}',
        'ASSAY_WITNESS_LAUNCH': str(folder / 'command'),
        'ASSAY_WITNESS_LAUNCHERS': 'mpirun',
        'ASSAY_WITNESS_CONTAINERS': 'docker:apptainer',
    }
    inside = subprocess.check_output(
        ['sh', '-c', './apptainer'], env=environment, text=True, cwd=folder
    ).splitlines()
    assert 'LD_PRELOAD=/no/tool.so' in inside
    assert not [line for line in inside if line.startswith('ASSAY_WITNESS_LAUNCH=')]


def test_a_launcher_is_started_with_its_words(folder):
    """By the command that the library calls; what is asked of it is answered by itself."""
    (folder / 'mpirun').write_text('#!/bin/sh\necho "$0 $*"\n')
    (folder / 'mpirun').chmod(0o755)
    variables = launches._for_launchers(folder / 'r.json', folder)
    command = ['sh', variables['ASSAY_WITNESS_LAUNCH'], './mpirun', '--version']
    assert subprocess.check_output(command, text=True) == './mpirun --version\n'


@pytest.mark.parametrize(
    ('options', 'ranks', 'is_told'),
    [
        *(('-n 2', 1, True), ('--ntasks=2', 1, True), ('-n2', 1, True)),
        *(('-n 1', 1, False), ('-n 2', 2, False), ('', 1, False)),
    ],
)
def test_ranks_that_did_not_find_each_other(folder, options, ranks, is_told):
    told = launches.why_one_rank(f'srun {options} ./app -n 4', ranks)
    assert bool(told) is is_told and (not told or 'srun was asked for 2 ranks' in told)
