"""`assay witness run`: which word of a launcher's line is the program, and what is done to it."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from assay import AssayError
from assay.running import program


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
    assert program.[*zip(*program.read_line(words).programs.items())][0] == X
    made = program.read_line(words).with_witness('/w.so', folder / 'r.json')
    assert made.count('/w.so') == 3 and made[-1] == './app'
    assert [word for word in made if word in words] == [*words[:14], './app']  # in their order


def test_a_program_is_looked_for_where_it_starts(folder):
    (folder / 'run').mkdir()
    (folder / 'app').rename(folder / 'run' / 'app')
    for option in ('-wdir', '--wdir', '-wd', '-D'):
        assert program.read_line(['mpirun', option, 'run', '-n', '2', './app']).programs == [5]
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
        made = program.read_line(['./app', 'a b', '*']).with_witness('/no/w.so', folder / 'r.json')
        env = {'PATH': os.environ['PATH']} | ({'LD_PRELOAD': before} if before else {})
        done = subprocess.run(made, capture_output=True, text=True, env=env)
        assert done.returncode == 3
        assert done.stdout == f'{wanted}/no/w.so|{folder}/r.json|a b *\n'


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
    words, unseen = program.prepare(line.split(), folder / 'r.json')
    assert words == line.split() and told in unseen


def test_another_file_is_not_removed(folder):
    with pytest.raises(AssayError, match='hosts is not a report of the witness'):
        program.remove_earlier(folder / 'hosts')
    (folder / 'r.json').write_text('{"schema": 2, "witness": "0.1"}')
    (folder / 'r.json.lines').write_text('{}')
    program.remove_earlier(folder / 'r.json')
    assert not [*folder.glob('r.json*')]
    with pytest.raises(AssayError, match='cannot be written there'):
        program.remove_earlier(folder / 'lost' / 'r.json')


@pytest.mark.parametrize(
    ('script', 'code'), [('exit 0', 0), ('exit 77', 77), ('kill -9 $$', 137), ('kill -15 $$', 143)]
)
def test_the_exit_code_is_the_programs(script, code):
    assert program.run_passing_signals(['sh', '-c', script]) == code


def test_the_environment_is_the_users(monkeypatch, capfd):
    """The command takes variables of Python out of its own environment."""
    monkeypatch.setenv('ASSAY_GIVEN_PYTHONPATH', '/users/modules')
    monkeypatch.delenv('PYTHONPATH', raising=False)
    program.run_passing_signals(['sh', '-c', 'echo "$PYTHONPATH|${ASSAY_GIVEN_PYTHONPATH-none}"'])
    assert capfd.readouterr().out == '/users/modules|none\n'


def test_signals_reach_the_program(tmp_path):
    """Those sent to the command alone; it ends when the program has ended."""
    ready = tmp_path / 'ready'
    inner = f'trap "echo got; exit 5" USR1; : >{ready}; while :; do sleep 0.05; done'
    code = (
        'import sys; from assay.running import program; '
        f'sys.exit(program.run_passing_signals(["sh", "-c", {inner!r}]))'
    )
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True) as run:
        end = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < end:
            time.sleep(0.02)
        run.send_signal(signal.SIGUSR1)
        out, _ = run.communicate(timeout=60)
    assert (out, run.returncode) == ('got\n', 5)
