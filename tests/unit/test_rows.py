"""Tables and charts of nothing, of one row, and of very many."""

import io

import pytest
from rich.console import Console

from assay.commands import history
from assay.report import witness
from assay.report.console import MOST_ROWS, print_table, sparkline
from assay.report.html.page import page, page_of_job
from assay.report.matrix import matrix
from assay.witness import WitnessError, read_witness
from pages import filled, found_in
from reports import cases, run_of
from witnessed import call, entries, partner, process, report, wait, write

COUNTS = [0, 1, 1000]


@pytest.fixture
def out():
    return Console(file=io.StringIO(), width=100)


def shown(out):
    return out.file.getvalue()


@pytest.mark.parametrize('count', COUNTS)
@pytest.mark.parametrize('cell', ['', 'x', 'word ' * 30])
@pytest.mark.parametrize('columns', ['<a|b', '<|<', '|', '~a|<b', '<|~<'])
def test_a_table(out, count, cell, columns):
    print_table(out, 'Title', columns, [[cell, cell]] * count)
    assert ('Title: none' in shown(out)) == (not count)
    assert (f'... and {count - MOST_ROWS} more' in shown(out)) == (count > MOST_ROWS)


def job(ranks, calls, partners):
    """A job whose ranks made so many kinds of calls, and sent to so many others."""
    names = [f'MPI_Call_{number}' for number in range(calls)]
    return report(
        [
            process(
                rank,
                (rank,),
                mpi_time=0.1 * bool(calls),
                calls={name: call(1, 0.1 / calls) for name in names},
                waits={name: wait(0.1 / calls) for name in names},
                partners=[
                    partner(to, 1, 1 << to % 40, {str(1 << to % 40): 1}) for to in range(partners)
                ],
            )
            for rank in range(ranks)
        ]
    )


@pytest.mark.parametrize(('ranks', 'calls', 'partners'), [(1, 0, 0), (1, 1, 1), (20, 200, 20)])
def test_a_job(out, ranks, calls, partners):
    found = job(ranks, calls, partners)
    witness.show_job(found, out)
    assert ('Sizes of messages: none' in shown(out)) == (not partners)
    assert (': none' in shown(out)) == (not partners)
    witness.show_difference(found, job(1, 0, 0), out)
    assert page_of_job(found)


def test_a_job_of_no_ranks_is_none(tmp_path):
    path = write(tmp_path / 'r.json', entries([]))
    with pytest.raises(WitnessError, match='ranks'):
        read_witness(path)


@pytest.mark.parametrize('count', COUNTS)
def test_lines_of_text(capsys, golden_report, count):
    assert len(sparkline(range(count), [1.0] * count, count, 40)) == min(count, 40)
    history._show_facts({'case': (('name', 'value'),) * count}, {}, as_json=False)
    assert capsys.readouterr().out.count('value') == count
    few = filled(golden_report, min(count, 60))
    assert len(matrix(run_of(few).cases, 100)) <= 40
    assert page(found_in(few))


@pytest.mark.parametrize('sweep', [None, 'strong'])
@pytest.mark.parametrize('count', [0, 1, 60])
def test_charts_of_cases_without_figures(golden_report, count, sweep):
    report = filled(golden_report, count)
    for case in cases(report):
        case['perfvalues'], case['sweep'] = {}, sweep
    assert page(found_in(report))
