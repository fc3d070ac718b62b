"""The page of a run with nothing in it, with far too much, and with numbers that are none."""

import json
import math
import re

import pytest

import stored
from assay.report.console import sparkline
from assay.report.html import page
from assay.report.html.contents import MOST_OVER
from assay.report.html.page import LONGEST, embedded_json
from assay.results.history import load_history, of_file
from pages import Seen, filled, found_in, html_of, left
from reports import cases
from stored import put

#: What is no number, or one of which the sum, the product or the percentage is none.
NUMBERS = [math.inf, -math.inf, math.nan, 1e308, -1e308, 1.7976931348623157e308, 5e-324, 0.0, -0.0]


def charts_of(seen):
    """What the page draws, if anything: by a parser that refuses what is no number."""
    return json.loads(seen.packed[0], parse_constant=pytest.fail) if seen.packed else []


@pytest.mark.parametrize('count', [0, 1])
def test_no_case_and_one(golden_report, count):
    seen = Seen(html_of(filled(golden_report, count), word='FAILED', problems=['nothing was run']))
    text = ' '.join(seen.text.split())
    assert f'{count} passed, 0 failed, 0 skipped of {count} case' in text
    assert ('It rests on nothing' in text) == (not count)
    assert seen.tags.count('tr') > 5
    assert len(charts_of(seen)) == (2 if count else 0)


@pytest.mark.parametrize('value', NUMBERS)
def test_a_figure_that_is_no_number_or_a_huge_one(golden_report, tmp_path, value):
    report = filled(golden_report, 3)
    for case in cases(report):
        for values in case['perfvalues'].values():
            values[0] = value
        case['perfvalues'] |= {
            f'toy:node:{name}': [value, value, -0.5, 0.5, '1', 'pass']
            for name in ('speedup_2', 'efficiency_2', 'speedup_4', 'knee', 'x_of_limit')
        }
        case['sweep'] = 'strong'
    seen = Seen(html_of(report, word='FAILED', problems=['x']))
    assert max(map(len, re.findall(r'[\d.]+', seen.text))) < 40
    charts_of(seen)
    other = filled(golden_report, 3)
    for case in cases(other):
        case['system'] = 'other'
    (tmp_path / 'other.json').write_text(json.dumps(other))
    assert 'other' in html_of(report, beside=(*of_file(tmp_path / 'other.json'), other))


def test_a_history_of_huge_numbers(golden_report, tmp_path):
    database = tmp_path / 'results.db'
    values = [*filter(math.isfinite, NUMBERS), 1e308, 42.0]
    put(
        database, *(stored.made(golden_report, at, 20 - at, value=v) for at, v in enumerate(values))
    )
    history = load_history(database)
    last = history.runs[-1]
    text = page.page(
        found_in(history.run_of(last), history=history, others=history.runs[:-1], word='FAILED')
    )
    assert '42.00' in Seen(text).text


def test_a_line_of_the_greatest_numbers():
    assert sparkline(range(3), [-1.7e308, 0.0, 1.7e308], 3, 3) == '▁▅█'
    assert sparkline(range(4), [1.7e308] * 4, 4, 2) == '▅▅'


def test_the_greatest_number_of_all_is_json():
    assert json.loads(embedded_json([1.7976931348623157e308, -1.7976931348623157e308])) == [
        1.7976931348623157e308,
        -1.7976931348623157e308,
    ]


def test_long_names_take_no_page_of_their_own(golden_report, tmp_path):
    report = filled(golden_report, 6, tmp_path / 'output')
    long = 10_000
    for case in cases(report):
        case['display_name'] = f'PointToPoint %fabric=x %layout={"l" * long} %other={"o" * long}'
        case['fabric'], case['layout'], case['environ'] = 'f' * long, 'l' * long, 'e' * long
        case['partition'] = 'p' * long
        case['perfvalues'] = {
            f'toy:node:{"v" * long}_{name.rpartition(":")[2]}': values
            for name, values in case['perfvalues'].items()
        }
    seen = Seen(html_of(report))
    table = seen.text[seen.text.index('Figures that are held') : seen.text.rindex('Charts')]
    assert max(map(len, table.split())) <= LONGEST
    assert len(seen.text) < 400_000
    # In its charts they are cut where they are drawn.
    assert len(seen.packed[0]) < 400_000


def test_many_runs_are_laid_over_as_far_as_anybody_can_tell_them_apart(golden_report, tmp_path):
    count = MOST_OVER + 20
    left(tmp_path / 'output')
    made = [stored.made(golden_report, at, count - at) for at in range(count)]
    for report in made:
        for case in cases(report):
            case['outputdir'] = str(tmp_path / 'output')
    put(tmp_path / 'results.db', *made)
    history = load_history(tmp_path / 'results.db')
    last, others = history.runs[-1], history.runs[:-1]
    found = found_in(history.run_of(last), history=history, others=others)
    assert len(found.runs) == count
    groups = {one.group for one in found.charts[0].series} - {''}
    assert groups == {f'run {run.name}' for run in others[-MOST_OVER:]}
    assert f'The newest {MOST_OVER} of {count - 1} other runs are laid over' in ' '.join(
        found.notes
    )


def test_a_hundred_partitions(golden_report, tmp_path):
    report = filled(golden_report, 600, tmp_path / 'output')
    for number, case in enumerate(cases(report)):
        case['partition'] = f'part{number // 6}'
    found = found_in(report)
    assert found.has_partitions
    text = page.page(found)
    assert len(text.encode()) < 5_000_000
    assert len({line.row.case.partition for line in found.first}) == 100
    assert 'and 88 more values' in Seen(text).text


@pytest.mark.parametrize('common', [0, 1])
def test_two_systems_with_next_to_nothing_in_common(golden_report, tmp_path, common):
    report, other = filled(golden_report, 2), filled(golden_report, 2)
    for number, case in enumerate(cases(other)):
        case['system'] = 'other'
        if number >= common:
            case['display_name'] += ' %of=other'
    (tmp_path / 'other.json').write_text(json.dumps(other))
    seen = Seen(html_of(report, beside=(*of_file(tmp_path / 'other.json'), other)))
    assert ('No case has the same name on both.' in seen.text) == (not common)
    own = [value for tag, name, value in seen.attributes if (tag, name) == ('table', 'id')]
    assert ('two' in own) == bool(common)
