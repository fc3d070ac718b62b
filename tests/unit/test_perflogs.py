"""Runs of which there are only perflogs."""

import math
import shutil
from datetime import datetime, timedelta

import pytest

from assay import AssayError, paths
from assay.results.cases import CaseFigure
from assay.results.history import load_history, of_file
from assay.results.perflogs import PAUSE, runs_of
from assay.results.run_selectors import choose_runs

BEGAN = datetime(2026, 11, 1, 12)
COLUMNS = (
    'job_completion_time|version|system|partition|environ|display_name|perf_var|perf_value|perf_ref'
    '|perf_lower_thres|perf_upper_thres|perf_unit|result|perf_result|built_mpi|ran_variables'
    '|ran_on_kernel|suite_commit'
)
SHM = 'Ring %fabric=shm %layout=packed %scale=1_node'


def line(
    seconds,
    case=SHM,
    figure='latency',
    value='1.5',
    bounds='1.0|-0.1|0.5',
    ended='pass|pass',
    system='toy',
    where='node|gnu',
):
    at = (BEGAN + timedelta(seconds=seconds)).isoformat()
    facts = "mpich@5|A=1 B='x y'|6.1.0|abc"
    return f'{at}|4.10.4|{system}|{where}|{case}|{figure}|{value}|{bounds}|us|{ended}|{facts}'


@pytest.fixture
def perflogs(tmp_path):
    """Writes perflogs of a check, one line after another below their columns."""

    def write(*lines, name='Ring.log', columns=COLUMNS):
        path = tmp_path / 'perflogs' / 'toy' / 'node' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(''.join(f'{one}\n' for one in (columns, *lines)))
        return tmp_path / 'perflogs'

    return write


@pytest.fixture
def history(tmp_path):
    return load_history(tmp_path / 'results.db')


def test_a_line_tells_what_a_report_would(perflogs, history):
    folder = perflogs(line(7), line(7, figure='rate', value='3', ended='fail|fail'))
    (run,) = choose_runs(history, f'{folder}/')
    assert (run.begun, run.ended) == ((BEGAN + timedelta(seconds=7)).astimezone(),) * 2
    assert (run.summary.system, run.summary.commit, run.summary.label) == ('toy', 'abc', None)
    first, second = history.figures([run]).rows(named=True)
    assert first.pop('measured') == first.pop('begun') == run.begun
    assert first == {
        'run': run.uuid,
        'label': None,
        'mode': None,
        'system': 'toy',
        'partition': 'node',
        'environment': 'gnu',
        'check': 'Ring',
        'case': SHM,
        'fabric': 'shm',
        'layout': 'packed',
        'scale': '1_node',
        'figure': 'latency',
        'value': 1.5,
        'unit': 'us',
        'better': None,
        'reference': 1.0,
        'lower': 0.9,
        'upper': 1.5,
        'verdict': 'pass',
        'result': 'pass',
        'attempt': 1,
        'repeat': 1,
        'nodes': None,
        'disturbances': None,
        'provenance': '{"mpi": "mpich@5", "ran_on_kernel": "6.1.0", "suite_commit": "abc", '
        '"A": "1", "B": "x y"}',
    }
    assert (second['figure'], second['value'], second['verdict']) == ('rate', 3.0, 'fail')


def test_values_that_are_none_and_references_that_are_open(perflogs, history):
    folder = perflogs(
        line(1, value='nan'),
        line(2, case='Halo', value='inf', bounds='0|null|null'),
        line(3, case='Build ~toy:node+gnu', figure='null', value='null', bounds='null|null|null'),
    )
    figures = history.figures(of_file(folder))
    assert math.isnan(figures['value'][0]) and figures['value'][1] == math.inf
    assert figures['reference'].to_list() == [1.0, None]
    assert figures['verdict'].to_list() == ['fail', 'fail']


def test_a_run_ends_where_a_case_comes_again_or_after_a_pause(perflogs, history):
    folder = perflogs(
        line(0), line(50), line(50, figure='rate'), line(60), line(60), line(61 + PAUSE)
    )
    perflogs(
        *(line(10, case='Halo'), line(40, case='Halo', system='far')),
        *(line(61 + PAUSE, case='Halo'), line(62 + 2 * PAUSE, case='Halo')),
        name='Halo.log.h0',
    )
    runs = of_file(folder)
    seconds = [round((run.begun - BEGAN.astimezone()).total_seconds()) for run in runs]
    assert seconds == [0, 40, 50, 60, 60, 61 + PAUSE, 62 + 2 * PAUSE]
    figures = history.figures(runs)
    assert [figures.filter(run=run.uuid).height for run in runs] == [2, 1, 2, 1, 1, 2, 1]
    assert [run.uuid for run in of_file(folder)] == [run.uuid for run in runs]
    assert [run.summary.system for run in choose_runs(history, f'{folder}/', 'far')] == ['far']
    assert len({run.uuid for run in runs}) == len(runs)
    assert history.figures(runs[1:3])['run'].n_unique() == 2
    with pytest.raises(AssayError, match='is of the system toy, not nowhere'):
        choose_runs(history, f'{folder}/', 'nowhere')


@pytest.mark.parametrize(
    ('bad', 'sentence'),
    [
        ('2026-11-2', r'Ring\.log: line 3 is damaged, or has no time: remove it'),
        (line(1).replace(line(1).partition('|')[0], 'null', 1), 'or has no time: remove it'),
        (line(1) + '|more', 'line 3 is damaged'),
        (line(1, value='many'), 'line 3 is damaged'),
        (line(1).replace('2026', 'null', 1), 'line 3 is damaged'),
        (line(1, system=''), 'line 3 is damaged'),
        ('job_completion_time|system', r'Ring\.log has no column partition, without which'),
    ],
)
def test_what_is_damaged_is_named(perflogs, history, bad, sentence):
    folder = perflogs(line(0), bad, line(2))
    with pytest.raises(AssayError, match=sentence) as caught:
        choose_runs(history, f'{folder}/')
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    ('name', 'figures'),
    [
        (
            'reframe-4.10',
            [
                ('Stream', 'Copy', 100.0, 100.0, 'MB/s', 'pass'),
                ('Stream', 'Scale', 90.0, None, 'MB/s', 'no bound'),
            ]
            * 2,
        ),
        (
            'reframe-3',
            [
                ('Stream', 'Copy', 100.0, 95.0, 'MB/s', 'pass'),
                ('Stream', 'Scale', 80.0, 95.0, 'MB/s', 'fail'),
                ('Stream', 'Copy', 101.0, None, 'MB/s', 'no bound'),
            ],
        ),
    ],
)
def test_what_reframe_writes_by_itself_is_read(tmp_path, history, name, figures):
    shutil.copy(paths.ROOT / 'tests' / 'golden' / 'perflogs' / f'{name}.log', tmp_path)
    rows = history.figures(of_file(tmp_path)).rows(named=True)
    columns = ('check', 'figure', 'value', 'reference', 'unit', 'verdict')
    assert [tuple(row[column] for column in columns) for row in rows] == figures


def test_columns_of_a_figure_may_have_shorter_names(perflogs):
    columns = 'job_completion_time|version|display_name|system|partition|environ|jobid|result'
    folder = perflogs(
        '2026-11-01T10:00:00+00:00|4.6.1|Stream %x=1|sys|part|gnu|12|pass|100.0|90|-0.1|null|MB/s',
        columns=f'{columns}|Copy|Copy_ref|Copy_lower|Copy_upper|Copy_unit',
    )
    (run,) = runs_of(folder)
    (case,) = run.cases
    assert case.figures == (CaseFigure('Copy', 100.0, 90.0, 81.0, None, 'MB/s'),)


def test_a_folder_without_perflogs(perflogs, history, tmp_path):
    for folder in (tmp_path, perflogs()):
        with pytest.raises(AssayError, match='has no perflogs of ReFrame with a line in them'):
            choose_runs(history, f'{folder}/')
    file = perflogs() / 'toy' / 'node' / 'Ring.log'
    file.write_text('12:00|Stream|100\n')
    with pytest.raises(AssayError, match='line 1 has no columns with names before it'):
        choose_runs(history, f'{tmp_path}/')
    file.write_bytes(b'\xff')
    with pytest.raises(AssayError, match=r'Ring\.log: cannot be read'):
        choose_runs(history, f'{tmp_path}/')
