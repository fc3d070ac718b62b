"""How long a job took to start and to end: figures, bounds, and which rank took longest."""

from types import SimpleNamespace

import pytest

from assay.config import references
from assay.config.reference_files import Reference
from assay.programs.figure import Figure
from assay.results.failures import cases_without_reference, failures
from assay.witness.disturbance import greatest_figures
from assay.witness.profile import STARTUP, slowest_ranks, startup_figures
from assay.witness.reading import read_witness
from reports import cases, run_of
from witnessed import halo, write


def started(path, mains, inits, finalized=''):
    """A report of ranks on two hosts that took so many seconds."""
    content = halo(len(inits), 2)
    for process, main, init in zip(content['processes'], mains, inits, strict=True):
        process['startup'] = {'init': init} | ({} if main is None else {'main': main})
    write(path, content)
    if finalized:
        path.with_name(f'{path.name}.finalized').write_text(finalized)
    return read_witness(path)


def test_the_slowest_rank_counts(tmp_path):
    lines = '{"rank": 0, "finalize": 0.5}\n{"rank": 2, "finalize": 6.25}\n'
    mains, inits = (0.125, 0.25, 0.75, 0.5), (1.0, 7.5, 2.0, 3.0)
    report = started(tmp_path / 'witness.json', mains, inits, lines)
    figures = startup_figures(report)
    assert {name: figure.value for name, figure in figures.items()} == {
        'startup': 0.75,
        'mpi_init': 7.0,
        'mpi_finalize': 6.25,
    }
    assert {(figure.unit, figure.better) for figure in figures.values()} == {('s', 'lower')}
    assert slowest_ranks([report]) == {
        'startup': 'rank 2 on n2 took 0.8 s from the launcher to main',
        'mpi_init': 'rank 1 on n1 took 7.0 s in MPI_Init',
        'mpi_finalize': 'rank 2 on n2 took 6.2 s in MPI_Finalize',
    }


def test_a_rank_that_begins_late_makes_no_mpi_init_slow(tmp_path):
    """Slurm starts the ranks of one node later than those of another, by seconds: others wait."""
    mains, inits = (0.25, 0.25, 8.0, 8.25), (8.5, 8.25, 0.75, 0.5)
    figures = startup_figures(started(tmp_path / 'witness.json', mains, inits))
    assert figures['startup'].value == 8.25
    assert figures['mpi_init'].value == 0.5


def test_what_nobody_told_is_no_figure(tmp_path):
    """By a hand-made start, where no script tells when; of a job that did not end; and of old."""
    report = started(tmp_path / 'witness.json', (None,) * 2, (1.0, 2.0))
    assert startup_figures(report).keys() == {'mpi_init'}
    write(tmp_path / 'old.json', halo(2, 2))
    old = read_witness(tmp_path / 'old.json')
    assert (startup_figures(old), slowest_ranks([old])) == ({}, {})


def test_a_line_that_was_cut_does_not_count(tmp_path):
    lines = '{"rank": 0, "finalize": 0.5}\n{"rank": 1, "fina'
    report = started(tmp_path / 'witness.json', (0.1,) * 2, (1.0, 2.0), lines)
    assert startup_figures(report)['mpi_finalize'].value == 0.5


@pytest.mark.parametrize('line', ['{"rank": -1, "finalize": 1}', '{"rank": 0}', '1.125}', '\0\0\0'])
def test_a_line_that_another_host_wrote_over_does_not_count(tmp_path, line):
    """Hosts append at once where all are slow, and NFS does not keep them apart."""
    lines = f'{line}\n{{"rank": 1, "finalize": 1.5}}\n'
    report = started(tmp_path / 'witness.json', (0.1,) * 2, (1.0, 2.0), lines)
    assert startup_figures(report)['mpi_finalize'].value == 1.5


def test_a_rank_that_is_not_there_is_none(tmp_path):
    lines = '{"rank": 7, "finalize": 9.0}\n'
    report = started(tmp_path / 'witness.json', (0.1,) * 2, (1.0, 2.0), lines)
    assert 'mpi_finalize' not in startup_figures(report)


def test_of_several_starts_the_slowest_counts(tmp_path):
    first = started(tmp_path / 'a.json', (0.2, 0.2), (9.0, 1.0))
    other = started(tmp_path / 'b.json', (3.0, 3.0), (1.0, 2.0))
    found = greatest_figures([startup_figures(first), startup_figures(other)])
    assert {name: figure.value for name, figure in found.items()} == {
        'startup': 3.0,
        'mpi_init': 9.0,
    }
    assert slowest_ranks([first, other])['mpi_init'] == 'rank 0 on n1 took 9.0 s in MPI_Init'


def test_a_missed_bound_names_the_rank(golden_report):
    report = golden_report('FailedReference')
    case = cases(report)[1]
    values = next(iter(case['perfvalues'].values()))
    case['perfvalues'] = {'generic:node:mpi_init': [7.25, 0.5, None, 8.0, 's', 'fail']}
    assert len(values) == 6
    case['slowest_ranks'] = {'mpi_init': 'rank 1 on n2 took 7.2 s in MPI_Init', 'startup': 'x'}
    assert failures(run_of(report))[0].reason == (
        'mpi_init is 7.250 s, but at most 4.500 s is allowed (reference 0.5000): rank 1 on n2 took '
        '7.2 s in MPI_Init'
    )


def test_it_alone_holds_nothing(golden_report, monkeypatch):
    """A case whose figures have no other bound shows nothing of what it measured."""
    monkeypatch.setattr(references, 'file_of', lambda name: f'{name}.yaml')
    check = SimpleNamespace(
        fabric='shm',
        may_lack=frozenset(),
        implementation='assay',
        current_system=SimpleNamespace(name='generic'),
    )
    held = {name: Reference(1.0, None, 1.0, 's', excuse=None, path=None) for name in STARTUP}
    figures = {'mpi_init': Figure(0.1, 's', 'lower'), 'latency': Figure(1.0, 'us', 'lower')}
    found = [*references.reference_loopholes(check, held, figures)]
    assert len(found) == 1, 'mpi_finalize and startup may be missing'
    assert 'no figure is held to anything' in found[0]
    report = golden_report('Passed')
    (case,) = cases(report)[1:2]
    case['implementation'] = 'osu'
    case['perfvalues'] = {
        'generic:node:mpi_init': [0.1, 0.5, None, 8.0, 's', 'pass'],
        'generic:node:latency': [1.0, 0, None, None, 'us', 'pass'],
    }
    assert len(cases_without_reference(run_of(report))) == 1
