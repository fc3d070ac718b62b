"""A program that its user starts, under the witness: its lines and phases."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack

import pytest

from assay.report.console import console
from assay.report.witness import show_answer, show_difference
from assay.running import launches, program
from assay.witness.reading import read_witness
from assay.witness.sites import summarise_phases, summarise_sites
from families import on_one_mpi
from quiet import measured
from running import run_command

LATE = 0.05  # seconds, of each of three sends


@pytest.fixture
def launched(tmp_path):
    """A folder for what is known of launches."""
    (tmp_path / 'launched').mkdir()
    return tmp_path / 'launched'


@pytest.fixture
def started(mpi, surroundings, build, compiled, tmp_path, launched, monkeypatch):
    """Prepares and runs a line in the test's folder; the witness is built once for all tests."""
    library = build('assay_witness') / 'libassay_witness.so'
    monkeypatch.setattr(program, 'build_witness', lambda of: library)
    for name in ('PATH', 'LD_LIBRARY_PATH'):
        if name in surroundings:
            monkeypatch.setenv(name, surroundings[name])

    def run(*words, report='r.json'):
        with ExitStack() as stack:
            words = [*map(str, words)]
            line, unseen = launches.prepare_line(words, tmp_path / report, launched, stack)
            assert unseen is None
            return run_command(line, surroundings, tmp_path, 120, cwd=tmp_path)

    return run


def test_its_lines_and_phases(mpi, started, compiled, tmp_path, capsys):
    done = started(mpi.launcher, '-n', '2', compiled('sites'))
    assert (done.code, done.out) == (0, ''), done.err
    assert 'assay witness' not in done.err  # what is told is told in the end, by the command
    seen, problems = launches.keep_lines(tmp_path / 'r.json', read_witness(tmp_path / 'r.json'))
    assert not problems
    lines = {(one.call, one.function, one.line): one for one in summarise_sites(seen)}
    counts = {name: one.count for name, one in lines.items() if name[0] != 'MPI_Comm_rank'}
    assert counts == {
        ('MPI_Send', 'first', 13): 200,
        ('MPI_Recv', 'first', 15): 200,
        ('MPI_Send', 'second', 26): 3,
        ('MPI_Recv', 'second', 28): 3,
        ('MPI_Barrier', 'main', 46): 2,
        ('MPI_Finalize', 'main', 47): 2,
    }
    # Each rank sleeps before one of them.
    assert lines['MPI_Send', 'second', 26].computed > 3 * LATE
    assert lines['MPI_Barrier', 'main', 46].computed > LATE
    late = lines['MPI_Recv', 'second', 28]
    # On a busy machine the receiver is late too.
    assert late.waiting > LATE / 2 and late.whom == 0
    phases = {one.phase: one for one in summarise_phases(seen)}
    assert {phase: one.begun for phase, one in phases.items()} == {1: 2, 2: 1}
    assert phases[2].wall > 3 * LATE and phases[2].waiting > 0
    show_answer(seen, console(errors=True))
    told = capsys.readouterr().err
    assert 'Most computation: before MPI_Send in second (sites.c:26)' in told
    assert 'Most time in MPI: MPI_' in told and 'second (sites.c:28)' in told
    assert not [line for line in told.splitlines() if len(line) > 160]

    # The same program again: no line is lost, none is new.
    started(mpi.launcher, '-n', '2', compiled('sites'), report='again.json')
    show_difference(seen, read_witness(tmp_path / 'again.json'), console())
    told = capsys.readouterr().out
    assert 'program, MPI and settings: the same' in told
    lines = told.partition('Lines that call MPI')[2]
    assert lines.count('(sites.c:') == 6 and ' new ' not in lines


@pytest.mark.alone
@on_one_mpi
def test_a_call_from_within_another_has_not_its_computation(mpi, started, compiled, tmp_path):
    def run():
        done = started(mpi.launcher, '-n', '1', compiled('within'))
        assert done.code == 0, done.err
        lines = {one.call: one for one in summarise_sites(read_witness(tmp_path / 'r.json'))}
        assert lines['MPI_Barrier'].count == lines['MPI_Comm_dup'].count == 3
        assert lines['MPI_Comm_dup'].computed > 0.06
        return lines

    def check(lines):
        assert lines['MPI_Barrier'].computed < 0.06

    measured(run, check)


@on_one_mpi
def test_a_launch_of_a_script(mpi, surroundings, started, compiled, tmp_path, launched):
    """What a launcher runs that a script starts, after the script's own program."""
    launches.claim(launched, tmp_path / 'r.json', ['./job'], program.Program())
    earlier = tmp_path / 'r.launch-2.json.lines'
    earlier.touch()
    words = [mpi.launcher, '-n', '2', str(compiled('sites'))]
    made = launches.launch(words, tmp_path / 'r.json', launched)
    done = run_command(made, surroundings, tmp_path, 120, cwd=tmp_path)
    assert (done.code, done.out) == (0, ''), done.err
    assert not launches.problems_of_launches(launched)
    ((_, _, is_linked), (path, told, is_linked_too)) = launches.launches(launched)
    assert (is_linked, is_linked_too) == (False, True) and not earlier.exists()
    assert (
        path.name == 'r.launch-2.json' and told.endswith('/sites') and read_witness(path).ranks == 2
    )


def test_another_tool_is_refused(mpi, started, compiled, tmp_path, launched, monkeypatch):
    there = (tmp_path / 'r.json', launched, ExitStack())
    tool = tmp_path / 'libtool.so'
    source = tmp_path / 'tool.c'
    source.write_text(
        '#include <mpi.h>\nint MPI_Barrier(MPI_Comm c) { return PMPI_Barrier(c); }\n'
        'int MPI_Init(int *c, char ***v) { return PMPI_Init(c, v); }\n'
    )
    surroundings = {**os.environ, **mpi.env}
    subprocess.run([mpi.cc, '-shared', '-fPIC', source, '-o', tool], check=True, env=surroundings)
    monkeypatch.setenv('LD_PRELOAD', str(tool))
    with pytest.raises(program.AssayError, match=r'libtool\.so wraps MPI calls too'):
        launches.prepare_line([mpi.launcher, '-n', '1', str(compiled('sites'))], *there)


def test_a_static_program_is_only_run(tmp_path, launched):
    source, static = tmp_path / 'a.c', tmp_path / 'a'
    source.write_text('int main(void) { return 4; }\n')
    if subprocess.run(['cc', '-static', source, '-o', static], capture_output=True).returncode:
        pytest.skip('this compiler links nothing statically')
    words, unseen = launches.prepare_line([str(static)], tmp_path / 'r.json', launched, ExitStack())
    assert words == [str(static)] and 'is linked statically' in unseen
