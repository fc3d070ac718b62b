"""The stored figures as Parquet, CSV, and metrics for Prometheus."""

import math

import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from assay import AssayError
from assay.results.export import as_csv, as_metrics, as_parquet
from assay.results.figures import plain_rows, table
from assay.results.history import load_history
from command import call
from reports import cases, own_cases, run_of
from stored import put


@pytest.fixture
def stored(database, made, monkeypatch):
    """Three runs, the second of them labelled, and the last of them of the future."""
    put(database, made(1, days=3), made(2, days=1, label='before', value=43.5), made(3, days=-9))
    history = load_history(database)
    monkeypatch.setattr('assay.results.history.load_history', lambda: history)
    return history


def export(*options):
    ended = call('export', *options)
    assert ended.exit_code == 0, ended.output
    return ended.stdout_bytes


def samples(content, parse=open_metrics):
    """Each metric's samples by the fabric of their case."""
    return {
        metric.name: {sample.labels['fabric']: sample.value for sample in metric.samples}
        for metric in parse(content.decode())
    }


def test_a_table_comes_back_from_parquet_and_csv(stored, tmp_path):
    figures = stored.figures(stored.runs)
    export('--output', tmp_path / 'all.parquet')
    assert pl.read_parquet(tmp_path / 'all.parquet').equals(figures)
    export('before', '--output', tmp_path / 'before.csv')
    read = pl.read_csv(tmp_path / 'before.csv', try_parse_dates=True)
    assert read.columns == figures.columns
    assert read['value'].to_list() == [43.5, 43.5]
    assert read['begun'].dtype.time_zone == 'UTC'
    assert export('before', '--output', '-') == (tmp_path / 'before.csv').read_bytes()


def test_metrics_are_those_of_the_newest_run_and_both_formats(stored, tmp_path):
    export('--output', tmp_path / 'assay.prom')
    content = (tmp_path / 'assay.prom').read_bytes()
    assert content.endswith(b'\n# EOF\n')
    assert b'# TYPE assay_figure_value gauge\n' in content
    found = samples(content)
    assert found == samples(content, prometheus)
    assert found['assay_figure_value'] == {'shm': 43.5, 'tcp': 43.5}
    assert set(found['assay_figure_verdict'].values()) == {0}
    assert min(found['assay_figure_measured_seconds'].values()) > 1.7e9
    # The text file collector refuses a file in which a sample has a time.
    assert all(
        sample.timestamp is None for one in open_metrics(content.decode()) for sample in one.samples
    )
    assert samples(export('00000001', '--output', '-.prom'))['assay_figure_value']['shm'] == 42.5


def test_a_case_that_failed_has_a_verdict_and_no_value_of_before(made, golden_report):
    good, bad = made(1), golden_report('FailedSanity')
    good['session_info']['time_start_unix'] = bad['session_info']['time_start_unix'] - 60
    for case, failed in zip(cases(good), cases(bad), strict=True):
        case['display_name'] = failed['display_name']
        failed['system'] = case['system']
    found = samples(as_metrics(table(plain_rows(run_of(good)) + plain_rows(run_of(bad)))))
    assert found['assay_figure_value'] == {}
    assert set(found['assay_figure_verdict'].values()) == {1}


def test_what_is_odd_is_written_as_the_formats_have_it(made):
    report = made(1)
    first, second = own_cases(report)
    first['perfvalues']['toy:node:latency'][0] = math.nan
    second['perfvalues']['toy:node:latency'][0] = -math.inf
    first['display_name'] = name = 'A "quoted" \\ name,\nof two lines'
    second['perfvalues']['toy:node:latency'][2:4] = [None, None]
    figures = table(plain_rows(run_of(report)))
    content = as_metrics(figures)
    for parse in (open_metrics, prometheus):
        by_case = {
            (metric.name, sample.labels['case']): sample.value
            for metric in parse(content.decode())
            for sample in metric.samples
        }
        assert math.isnan(by_case['assay_figure_value', name])
        assert by_case['assay_figure_value', second['display_name']] == -math.inf
        # No number is right, whatever held it.
        assert by_case['assay_figure_verdict', second['display_name']] == 1
    assert name in pl.read_csv(as_csv(figures))['case'].to_list()
    assert as_parquet(figures)[:4] == b'PAR1'


def test_a_file_is_written_whole_or_not_at_all(stored, tmp_path, monkeypatch):
    target = tmp_path / 'assay.prom'
    target.write_text('as it was')
    monkeypatch.setattr(
        'pathlib.Path.replace', lambda *_: (_ for _ in ()).throw(OSError(28, 'full'))
    )
    with pytest.raises(AssayError, match=r'assay\.prom: cannot be written: full'):
        export('--output', target)
    assert [path.read_text() for path in tmp_path.glob('assay*')] == ['as it was']


@pytest.mark.parametrize('target', ['figures', 'figures.xlsx', 'a.prom.gz'])
def test_an_unknown_ending_lists_the_three(stored, target):
    with pytest.raises(AssayError, match=r'must end with \.parquet, \.csv, \.prom'):
        export('--output', target)


def test_nothing_is_stored(monkeypatch, tmp_path):
    history = load_history(tmp_path / 'results.db')
    monkeypatch.setattr('assay.results.history.load_history', lambda: history)
    with pytest.raises(AssayError, match='no run is stored'):
        export('--output', tmp_path / 'x.csv')


def test_a_folder_that_is_not_there(stored, tmp_path):
    with pytest.raises(AssayError, match=r'x\.csv: cannot be written: No such file or directory'):
        export('--output', tmp_path / 'nowhere' / 'x.csv')
