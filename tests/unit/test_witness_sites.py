"""Lines that call MPI: of all ranks together, by phases, and of two jobs."""

import shutil
import subprocess

import pytest
from rich.console import Console

from assay.report.witness import show_slower_line
from assay.witness import sites
from assay.witness.reading import read_witness
from witnessed import halo, validated, write


def site(offset, call='MPI_Recv', time=1.0, count=10, waits=None, phase=0, computed=None):
    found = {'offset': offset, 'call': call, 'count': count, 'time': time, 'bytes': 80}
    found |= {} if computed is None else {'computed': computed}
    found |= {'phase': phase} if phase else {}
    return found | ({'waits': waits} if waits else {})


def part(*calls, build_id='ab12', path='/x/halo'):
    return {'object': path, 'build_id': build_id, 'calls': [*calls]}


def waiting(analysed, late_sender=0.0, for_rank=None, for_time=0.0):
    found = {'analysed': analysed, 'late_sender': late_sender}
    found |= {'late_receiver': 0.0, 'imbalance': 0.0}
    return found | ({} if for_rank is None else {'for_rank': for_rank, 'for_time': for_time})


def job(*parts_of_ranks, phases=()):
    content = halo(len(parts_of_ranks))
    for process, parts in zip(content['processes'], parts_of_ranks, strict=True):
        process['sites'] = parts
        process['phases'] = [*phases]
    return content


LINES = {'ab12': {'0x10': ('exchange', '/src/halo.c', 12), '0x20': ('reduce', '/src/halo.c', 30)}}


def read(content, lines=LINES):
    return validated(content).model_copy(update={'lines': lines})


def test_a_line_is_that_of_all_ranks():
    slow = site('0x10', time=2.0, waits=waiting(1.0, 0.5, for_rank=1, for_time=0.4))
    seen = read(job([part(slow, site('0x20', 'MPI_Allreduce'))], [part(site('0x10'))]))
    first, second = sites.summarise_sites(seen)
    assert (first.call, first.where) == ('MPI_Recv', 'exchange (halo.c:12)')
    assert (first.count, first.time, first.bytes) == (20, 3.0, 160)
    # Half of what was analysed was waiting, and so half of that rank's time.
    assert first.waiting == pytest.approx(1.0)
    assert first.whom == 1 and first.waited_for[1] == pytest.approx(0.8)
    assert first.ranks == {0: 2.0, 1: 1.0}
    assert (second.where, second.whom) == ('reduce (halo.c:30)', None)


def test_an_unknown_line_has_its_offset():
    seen = read(job([part(site('0x30'))], [part(site('0x30'), build_id='', path='')]))
    assert {one.where for one in sites.summarise_sites(seen)} == {'halo+0x30', '?+0x30'}


def test_phases_have_what_was_called_in_them():
    calls = part(site('0x10', time=1.0, phase=1), site('0x10', time=0.5, phase=7), site('0x20'))
    phases = ({'phase': 1, 'begun': 2, 'wall': 4.0}, {'phase': 7, 'begun': 1, 'wall': 1.0})
    seen = read(job([calls], [calls], phases=phases))
    first, second = sites.summarise_phases(seen)
    assert (first.phase, first.begun, first.wall, first.in_mpi) == (1, 2, 4.0, 0.25)
    assert (second.phase, second.in_mpi) == (7, 0.5)
    assert len(sites.summarise_sites(seen)) == 2  # the phases together


def test_another_build_of_the_program_is_compared_by_functions():
    """Lines have moved by ten, and the first of two calls in `exchange` became slower."""
    old = {'ab12': {'0x10': ('exchange', 'halo.c', 12), '0x18': ('exchange', 'halo.c', 15)}}
    new = {'cd34': {'0x90': ('exchange', 'halo.c', 22), '0x98': ('exchange', 'halo.c', 25)}}
    before = read(job([part(site('0x10'), site('0x18'))]), old)
    after = read(job([part(site('0x90', time=9.0), site('0x98'), build_id='cd34')]), new)
    first, second = sites.compare_sites(before, after)
    assert first.both('time') == (1.0, 9.0) and first.after.line == 22 and first.before.line == 12
    assert second.both('time') == (1.0, 1.0) and second.after.line == 25


def test_a_place_that_is_only_in_one_job_is_new_or_gone():
    before, after = read(job([part(site('0x10'))])), read(job([part(site('0x20'))]))
    times = {change.both('time') for change in sites.compare_sites(before, after)}
    assert times == {(1.0, 0.0), (0.0, 1.0)}


def slower(before, after):
    found = sites.slower_most(sites.compare_sites(before, after), least=0.1)
    return found and (found[0].after.line, found[1])


def test_the_line_behind_which_the_program_became_slower():
    """One rank computes 1 s longer before the exchange; the sums of three wait for it."""

    def ranks(computed, time, waiting):
        late = [part(site('0x10', computed=computed), site('0x20', 'MPI_Allreduce', computed=0.5))]
        waits = waiting(time, time - 1.0, for_rank=0, for_time=time - 1.0)
        sums = site('0x20', 'MPI_Allreduce', time=time, waits=waits, computed=0.5)
        return read(job(late, *3 * [[part(site('0x10', computed=1.0), sums)]]))

    before = ranks(1.0, 1.0, waiting)
    assert slower(before, ranks(2.0, 2.0, waiting)) == (12, 'computed')
    # No line took longer by itself: some wait.
    assert slower(before, ranks(1.0, 2.0, waiting)) == (30, 'time')
    assert slower(before, before) is None


def test_a_line_that_is_slower_but_for_its_waiting(capsys):
    """It took a second less, of which it waited three less."""

    def ranks(time, waited):
        waits = waiting(time, waited, for_rank=0, for_time=waited)
        return read(job(*2 * [[part(site('0x10', time=time, waits=waits, computed=0.5))]]))

    before, after = ranks(5.0, 4.0), ranks(4.0, 1.0)
    assert slower(before, after) == (12, 'transfer')
    show_slower_line(before, after, Console(width=200))
    assert '2.000000 -> 6.000000 s of all ranks (+200.0%)' in capsys.readouterr().out


def test_an_earlier_report_says_nothing_of_computation():
    before = read(job([part(site('0x10'))]))
    assert slower(before, read(job([part(site('0x10', computed=9.0))]))) is None


@pytest.mark.parametrize(
    ('function', 'name'),
    [
        ('exchange', 'exchange'),
        ('LAMMPS_NS::Comm::forward(int, void (*)(int))', 'LAMMPS_NS::Comm::forward'),
        ('(anonymous namespace)::send(int) const', '(anonymous namespace)::send'),
        ('operator()', 'operator()'),
        ('MAIN__', 'MAIN__'),
    ],
)
def test_a_function_is_named_without_its_parameters(function, name):
    assert sites._without_parameters(function) == name


@pytest.mark.skipif(not (shutil.which('cc') and shutil.which('addr2line')), reason='no compiler')
def test_lines_are_looked_up_in_the_build_that_ran(tmp_path):
    source, program = tmp_path / 'a.c', tmp_path / 'a'
    source.write_text('int exchange(int n)\n{\n    return n;\n}\nint main(void) { return 0; }\n')
    command = ['cc', '-g', '-Wl,--build-id=0xfeed', str(source), '-o', str(program)]
    subprocess.run(command, check=True)
    names = subprocess.run(['nm', program], capture_output=True, text=True, check=True).stdout
    (address,) = (hex(int(row.split()[0], 16)) for row in names.splitlines() if 'exchange' in row)
    found, problems = sites.find_lines(
        read(job([part(site(address), build_id='feed', path=str(program))]), {})
    )
    function, file, line = found['feed'][address]
    assert (function, file, line in (1, 2)) == ('exchange', str(source), True)
    assert not problems
    other = part(site(address), build_id='dead', path=str(program))
    found, problems = sites.find_lines(read(job([other]), {}))
    assert not found and 'is another build than the one that ran' in problems[0]


def test_a_name_is_only_of_its_function(monkeypatch):
    """Of a stripped file a tool names what stands before; symbols may stand within others."""
    table = '0000000000000100 0000000000000080 T all\n0000000000000110 0000000000000008 t part\n'
    said = {'nm': table, 'addr2line': 'all\n??:0\n' * 4}
    monkeypatch.setattr(sites, 'output_of_tool', lambda command, *_: said[command[0]])
    found = sites._look_up('addr2line', 'lib.so', ['0xff', '0x100', '0x17f', '0x180'])
    assert [name for name, *_ in found.values()] == ['', 'all', 'all', '']


def test_lines_that_were_kept_are_read(tmp_path):
    path = write(tmp_path / 'r.json', job([part(site('0x10'))]))
    (tmp_path / 'r.json.lines').write_text('{"ab12": {"0x10": ["exchange", "/src/halo.c", 12]}}')
    assert sites.summarise_sites(read_witness(path))[0].where == 'exchange (halo.c:12)'
    (tmp_path / 'r.json.lines').write_text('{"ab12": 3')  # of a full disk
    assert sites.summarise_sites(read_witness(path))[0].where == 'halo+0x10'
