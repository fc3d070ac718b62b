"""IMB's tables: real outputs of several MPIs, whole, killed, and of the wrong run."""

from pathlib import Path

import pytest

from assay.programs.imb import read_imb_tables

GOLDEN = Path(__file__).parents[1] / 'golden' / 'imb'


def tables(name):
    return read_imb_tables((GOLDEN / f'{name}.out').read_text())


@pytest.mark.parametrize(
    ('name', 'benchmark', 'rows', 'size', 'time', 'bandwidth'),
    [
        ('PingPong-mpich-np2', 'PingPong', 24, 8, 0.54e-6, 14.87e6),
        ('PingPong-openmpi-np2', 'PingPong', 24, 4194304, 1199.01e-6, 3498.14e6),
        ('Sendrecv-openmpi-np2', 'Sendrecv', 24, 8, 0.72e-6, 22.19e6),
        ('Allreduce-mpich-np2', 'Allreduce', 22, 16, 5.97e-6, None),
        ('Allreduce-openmpi-np2', 'Allreduce', 22, 4194304, 2476.08e-6, None),
    ],
)
def test_rows(name, benchmark, rows, size, time, bandwidth):
    processes, table = tables(name)[benchmark]
    assert (processes, len(table)) == (2, rows)
    row = next(row for row in table if row.size == size)
    assert row.time == pytest.approx(time)
    assert row.bandwidth == (None if bandwidth is None else pytest.approx(bandwidth))


def test_all_benchmarks_of_one_run():
    found = tables('all-intelmpi-np2')
    assert list(found) == ['PingPong', 'PingPing', 'Sendrecv', 'Exchange', 'Allreduce', 'Alltoall']
    assert all(processes == 2 for processes, _ in found.values())


def test_killed_run():
    with pytest.raises(ValueError, match='did not get to its end'):
        tables('killed-mpich-np2')


def test_one_process_measures_nothing():
    assert tables('PingPong-mpich-np1') == {}


def test_garbled_row():
    text = (GOLDEN / 'PingPong-mpich-np2.out').read_text()
    with pytest.raises(ValueError, match="PingPong: not a row of its table: '8 1000 nonsense"):
        read_imb_tables(text.replace('8         1000         0.54', '8 1000 nonsense', 1))


def test_a_statement_of_the_mpi_between_rows():
    text = (GOLDEN / 'PingPong-mpich-np2.out').read_text()
    line = '[1795233794.04] [vm:1:0] ucp_worker.c:1903 UCX  INFO  intra-node cfg#0 tag(sysv/memory)'
    row = '            8         1000         0.54'
    assert read_imb_tables(text.replace(row, f'{line}\n{row}')) == read_imb_tables(text)
