"""OSU's tables: real outputs on two MPIs, and those of runs that went wrong."""

import re
from pathlib import Path

import pytest
import yaml

from assay.programs import osu

GOLDEN = Path(__file__).parents[1] / 'golden' / 'osu'
RUNS = yaml.safe_load((GOLDEN / 'runs.yaml').read_text())['runs']
LARGEST = 4 << 20


def output(name):
    return (GOLDEN / f'{name}.out').read_text()


def test_each_golden_output_is_described():
    assert {path.stem for path in GOLDEN.glob('*.out')} == RUNS.keys()


@pytest.mark.parametrize(
    ('name', 'size', 'value'),
    [
        ('osu_latency-openmpi', 8, 1.18e-6),
        ('osu_latency-mpich', LARGEST, 1029.36e-6),
        ('osu_bw-openmpi', LARGEST, 4360.56e6),
        ('osu_bw-mpich', 1, 13.38e6),
        ('osu_bibw-openmpi', LARGEST, 8181.57e6),
        ('osu_bibw-mpich', LARGEST, 2686.40e6),
        ('osu_allreduce-openmpi', 1, 0.46e-6),
        ('osu_allreduce-mpich', 8, 0.86e-6),
        ('osu_alltoall-openmpi', 8, 0.49e-6),
        ('osu_alltoall-mpich', 1 << 20, 2037.44e-6),
    ],
)
def test_values(name, size, value):
    assert osu.read_osu_value(output(name), name.partition('-')[0], size) == pytest.approx(value)


def test_the_tables_of_earlier_versions_have_the_same_facts_in_another_order():
    text = output('osu_latency-openmpi')
    datatype, header = '# Datatype: MPI_CHAR.\n', '# Size       Avg Latency(us)\n'
    earlier = text.replace(datatype + header, '# Size          Latency (us)\n' + datatype)
    assert earlier != text
    assert osu.read_osu_value(earlier, 'osu_latency', 8) == osu.read_osu_value(
        text, 'osu_latency', 8
    )


@pytest.mark.parametrize('mpi', ['openmpi', 'mpich'])
@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('one-rank', 'printed no table'),
        ('three-ranks', 'printed no table'),
        ('other-launcher', 'printed no table'),
        ('bad-option', 'printed no table'),
        ('no-size', 'has 0 rows of 4194304 bytes, not 1'),
        ('killed', 'has 0 rows of 4194304 bytes, not 1'),
    ],
)
def test_runs_that_went_wrong(name, mpi, words):
    run = f'fail-{name}-{mpi}'
    program = re.search(r'osu_\w+', RUNS[run]['command'])[0]
    with pytest.raises(ValueError, match=words):
        osu.read_osu_value(output(run), program, LARGEST)


ROW = '8                       1.18\n'


@pytest.mark.parametrize(
    ('old', 'new', 'words'),
    [
        ('Latency Test', 'Bandwidth Test', 'osu_latency printed no table'),
        ('# Size ', '# Bytes', 'the table of osu_latency has no header'),
        ('(us)', '(fortnights)', 'the table of osu_latency has no header'),
        (ROW, '', 'has 0 rows of 8 bytes, not 1'),
        (ROW, ROW * 2, 'has 2 rows of 8 bytes, not 1'),
        # With options that nobody gives, a row has more columns.
        (ROW, '8                       1.18                Pass\n', 'has 0 rows of 8 bytes'),
        (ROW, ROW.replace('1.18', 'nan'), 'measured nan us with 8 bytes'),
        (ROW, ROW.replace('1.18', 'inf'), 'measured inf us with 8 bytes'),
        (ROW, ROW.replace('1.18', '0.00'), 'measured 0.00 us with 8 bytes'),
        (ROW, ROW.replace('1.18', '-1.18'), 'measured -1.18 us with 8 bytes'),
        (ROW, ROW.replace('1.18', '1.1.8'), 'measured 1.1.8 us with 8 bytes'),
    ],
)
def test_a_table_that_is_not_right(old, new, words):
    text = output('osu_latency-openmpi')
    assert old in text
    with pytest.raises(ValueError, match=words):
        osu.read_osu_value(text.replace(old, new), 'osu_latency', 8)


def test_a_row_that_was_cut_short():
    text = output('osu_latency-openmpi')
    cut = text[: text.index(ROW) + len(ROW) - 2]
    assert cut.endswith(' 1.1')
    with pytest.raises(ValueError, match='has 0 rows of 8 bytes'):
        osu.read_osu_value(cut, 'osu_latency', 8)
