"""The page of a run: what it says, that all in it is text, and that it needs nothing else."""

import base64
import hashlib
import json
import re

import pytest

import stored
import witnessed
from assay import AssayError, paths
from assay.report.html import page
from assay.report.html.page import embedded_json, plotly, write_stored
from assay.report.html.screened import screening_section
from assay.report.html.sections import LINES, WIDTH, last_lines, log_of
from assay.results import history as histories
from assay.results.history import load_history, of_file
from assay.results.reframe_report import case_of
from assay.results.run_selectors import choose_runs
from assay.results.store import keep_verdict
from assay.screening.verdict import judge_screening
from command import invoke
from pages import FIGURES, HOSTILE, Seen, filled, found_in, html_of
from reports import cases, disturbed, run_of
from screenings import BEGUN, large
from stored import put
from witnessed import entries, host, partner, process

# What it says -------------------------------------------------------------------------------------


def test_the_verdict_and_what_it_rests_on_stand_first(golden_report):
    seen = Seen(html_of(filled(golden_report, 2)))
    head = ' '.join(seen.text[: seen.text.index('What was measured')].split())
    assert 'PASSED : 2 passed, 0 failed, 0 skipped of 2 cases' in head.replace(
        'PASSED:', 'PASSED :'
    )
    assert 'It rests on 4 figures of 18 that were held to a reference, in 2 cases that ran.' in head
    for words in ('4 figures held', '14 figures without', '0 cases failed', '0 cases disturbed'):
        assert words in head
    assert '0 cases without any figure' in head and '0 cases skipped' in head


@pytest.mark.parametrize(
    ('word', 'kind'), [('PASSED', 'good'), ('DISTURBED', 'odd'), ('FAILED', 'bad'), ('OK', 'bad')]
)
def test_no_other_word_looks_like_a_pass(golden_report, word, kind):
    found = found_in(filled(golden_report), word)
    assert (found.shown.word, found.shown.kind) == (word, kind)
    assert Seen(page.page(found)).attributes.count(('header', 'class', kind)) == 1


def test_a_run_with_a_budget_does_not_read_like_one_of_all_cases(golden_report):
    report = filled(golden_report, 2)
    assert 'selected cases' not in Seen(html_of(report)).text
    report['session_info']['left_out'] = '50'
    text = ' '.join(Seen(html_of(report)).text.split())
    assert '0 skipped of 2 cases; only 2 of the 52 selected cases were chosen' in text
    assert '50 cases left out for time' in text


def test_what_nobody_judged_has_no_verdict(golden_report):
    found = found_in(filled(golden_report), None)
    assert (found.shown.word, found.shown.kind) == ('NO VERDICT', 'bad')
    assert 'there is no verdict' in found.shown.problems[0]


def test_why_it_failed_and_what_the_jobs_wrote_last(golden_report, tmp_path):
    report = golden_report('FailedSanity')
    for case in cases(report):
        case['stagedir'] = str(tmp_path)
    (tmp_path / 'rfm_job.out').write_text('first\n' * 99 + 'the last line\n')
    found = found_in(report, 'FAILED', ['2 of 2 cases failed'])
    (section,) = found.sections
    assert (section.anchor, len(section.told)) == ('failed', 2)
    assert section.told[0].outputs['rfm_job.out'].endswith('first\nthe last line')
    text = Seen(page.page(found)).text
    assert '2 of 2 cases failed' in text
    assert section.told[0].reason in text
    assert 'the last line' in text


def test_disturbed_and_skipped_cases_are_told_as_well(golden_report):
    found = found_in(disturbed(golden_report('FailedReference')), 'DISTURBED')
    assert [section.anchor for section in found.sections] == ['disturbed']
    assert {line.kind for line in found.first} == {'odd'}
    log = (paths.ROOT / 'tests/golden/reports/Skipped.log').read_text().splitlines()
    found = found_in(golden_report('Skipped'), 'FAILED', log=log)
    assert [section.anchor for section in found.sections] == ['skipped']
    assert 'no reason' not in found.sections[0].told[0].reason
    assert found.basis == 'It rests on nothing: no figure was held to a reference.'


def test_a_figure_that_failed_is_no_pass_in_the_table(golden_report):
    found = found_in(golden_report('FailedReference'), 'FAILED')
    assert [(line.kind, line.row.verdict) for line in found.first] == [('bad', 'fail')] * 2
    seen = Seen(page.page(found))
    assert seen.attributes.count(('tr', 'class', 'bad')) == 2
    assert seen.text.count('✗ fail') == 2


def test_figures_that_nothing_holds_are_there_too(golden_report):
    found = found_in(filled(golden_report))
    assert [line.row.figure.name for line in found.first] == [name for name, *_ in FIGURES[:4]]
    assert [line.row.figure.name for line in found.rest] == [name for name, *_ in FIGURES[4:]]
    assert [line.of_limit for line in found.first] == ['-', '-', f'{1 / 1.4:.1%}', '70.0%']
    assert [line.allowed for line in found.first] == ['-', '-', '≤ 2.300', '≥ 0.5000']
    assert [line.off_by for line in found.first] == ['-', '-', '+40.0%', '-30.0%']
    assert [line.room for line in found.first] == ['-', '-', '+90.0%', '+20.0%']
    row = re.search('<tr id=[^>]*><td>[^<]*<td>.*latency_over_limit.*', page.page(found))[0]
    assert '<td>1.400<td>1.000<td>≤ 2.300<td>+40.0%<td>+90.0%<td>71.4%' in row


def test_a_link_to_a_figure_stays(golden_report):
    first, second = (found_in(filled(golden_report, count)) for count in (2, 9))
    anchors = [line.anchor for line in [*second.first, *second.rest]]
    assert len({*anchors}) == len(anchors) == 81
    assert {line.anchor for line in first.first} < {line.anchor for line in second.first}
    repeated = filled(golden_report)
    repeated['session_info']['cmdline'] += ' --reruns=1'
    repeated['runs'].append({'testcases': repeated['runs'][0]['testcases']})
    anchors = [line.anchor for line in found_in(repeated).first]
    assert anchors[4:] == [f'{anchor}-2' for anchor in anchors[:4]]


# All in it is text --------------------------------------------------------------------------------


@pytest.mark.parametrize('text', HOSTILE)
def test_whatever_is_in_a_report_is_text(golden_report, text, tmp_path):
    report = filled(golden_report, 2, tmp_path)
    (tmp_path / 'rfm_job.out').write_bytes(text.encode(errors='replace'))
    info = report['session_info']
    info['label'] = info['hostname'] = info['user'] = text
    for case in cases(report):
        case['stagedir'] = str(tmp_path)
        case['result'], case['fail_phase'] = 'fail', 'sanity'
        case['fail_reason'] = f'sanity error: {text}'
        case['environ'] = case['fabric'] = case['layout'] = case['partition'] = text
        case['display_name'] += text
        case['ran_mpi'] = case['suite_commit'] = text
        case['ran_variables'] = ''
        case['perfvalues'] = {
            f'toy:node:{text}_of_limit': [0.5, 1, -0.9, None, text, 'pass'],
            **case['perfvalues'],
        }
    seen = Seen(html_of(report, word='FAILED', problems=[text]))
    plain = Seen(html_of(filled(golden_report, 2, tmp_path), word='FAILED', problems=['x']))
    assert {*seen.tags} <= {*plain.tags, 'ul', 'li', 'pre', 'b', 'br', 'small', 'section'}
    for tag, name, value in seen.attributes:
        assert not name.startswith('on') and name not in ('src', 'style', 'srcdoc', 'action')
        assert name != 'href' or re.fullmatch(r'#[a-z0-9-]+', value), (tag, value)
    assert seen.tags.count('script') == plain.tags.count('script') == 4
    assert not re.search(r'[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\ud800]', seen.text)
    data, _ = seen.packed
    assert not re.search(r'[<>&\u2028\x00-\x1f]', data)
    assert json.loads(data)


def test_json_ends_no_script():
    text = embedded_json(
        {'</script>': ['<!--', '\u2028', '\x1b[2J', 'x\x00', '\ud800', 1.23456, None]}
    )
    assert re.fullmatch(r'[\x20-\x7e]+', text)
    assert not {'<', '>', '&'} & {*text}
    (found,) = json.loads(text).values()
    assert found == ['<!--', ' ', r'\x1b[2J', r'x\x00', r'\ud800', 1.2346, None]
    with pytest.raises(ValueError, match='not JSON compliant'):
        embedded_json([float('nan')])


def test_an_output_of_any_length_and_kind_is_cut(golden_report, tmp_path):
    case = cases(golden_report('FailedSanity'))[-1]
    case |= {'stagedir': str(tmp_path), 'job_stdout': 'out', 'job_stderr': 'err'}
    (tmp_path / 'out').write_bytes(b'begin ' + b'\xff\x00' * 5_000_000 + b'\nend\n')
    (tmp_path / 'err').mkdir()
    ((name, text),) = last_lines(case_of(case)).items()
    assert name == 'out' and text.endswith('\nend')
    assert len(text) < LINES * (WIDTH + 9)
    assert text.replace('\n', '').isprintable()
    assert last_lines(case_of(case | {'stagedir': str(tmp_path / 'gone')})) == {}


def test_the_log_is_looked_for_where_the_run_had_it(golden_report, tmp_path):
    (tmp_path / 'log').write_bytes(b'one\n\xfftwo\n')
    report = golden_report('Passed')
    report['session_info']['log_files'] = [str(tmp_path / 'gone'), str(tmp_path / 'log')]
    assert log_of(run_of(report)) == ['one', '\ufffdtwo']
    report['session_info']['log_files'] = []
    assert log_of(run_of(report)) is None


# It needs nothing else ----------------------------------------------------------------------------


def policy_of(text):
    seen = Seen(text)
    ((_, _, policy),) = [
        one for one in seen.attributes if one[:2] == ('meta', 'content') and 'default-src' in one[2]
    ]
    return seen, dict(part.split(' ', 1) for part in policy.split('; '))


def test_its_policy_allows_what_is_in_it_and_nothing_else(golden_report, tmp_path):
    seen, policy = policy_of(html_of(filled(golden_report, 2, tmp_path)))

    def digest(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    (begin, *_, script), style = seen.raw['script'], seen.raw['style'][0]
    _, drawing = seen.packed
    assert policy.pop('script-src') == f'{digest(begin)} {digest(script)} {digest(drawing)}'
    assert policy.pop('style-src') == f'{digest(style)} {digest("")}'
    assert policy == {
        'default-src': "'none'",
        'img-src': 'data: blob:',
        'base-uri': "'none'",
        'form-action': "'none'",
    }
    assert 'plotly.js v' in drawing[:200]


def test_without_charts_nothing_that_draws_is_in_it(golden_report):
    text = html_of(golden_report('FailedSanity'), word='FAILED')
    assert len(text) < 100_000
    _, policy = policy_of(text)
    assert policy['script-src'].count('sha256') == 2


def test_a_thousand_cases_take_5_mb(golden_report, tmp_path):
    """Of applications whose ranks all send to each other, on a thousand nodes, beside as many."""
    report, other = (filled(golden_report, 1000, tmp_path / 'output') for _ in range(2))
    ranks = range(32)
    everyone = [
        process(rank, (rank,), partners=[partner(to, 9, 10**8 + 7 * rank * to) for to in ranks])
        for rank in ranks
    ]
    witness = entries(everyone, [host(domains=[ranks])])
    witnessed.write(tmp_path / 'output' / 'witness.json', witness)
    for case in [*cases(report), *cases(other)]:
        case['implementation'] = 'assay'
    for case in cases(other):
        case['system'] = 'other'
    (tmp_path / 'other.json').write_text(json.dumps(other))
    now = large(1000)
    now.values['triad alone'][::30] *= 0.5
    found = found_in(
        report,
        screened=[screening_section(now, judge_screening(now), BEGUN)],
        beside=(*of_file(tmp_path / 'other.json'), other),
    )
    assert len(found.drawn) == 77 and len(found.beside.lines) == 1000
    text = page.page(found)
    assert text.count('<tr id=') == 9000
    # Histories and the run before take 0.7 MB more (docs/report.md).
    assert len(text.encode()) <= 4_300_000


def test_the_same_run_makes_the_same_page(golden_report, tmp_path):
    report = filled(golden_report, 3, tmp_path)
    assert html_of(report) == html_of(report)
    assert plotly() is plotly()


def test_tables_can_be_read_by_all(golden_report, tmp_path):
    seen = Seen(html_of(filled(golden_report, 3, tmp_path)))
    assert seen.tags.count('caption') == seen.tags.count('table')
    assert ('html', 'lang', 'en') in seen.attributes
    headings = seen.tags.count('th')
    scopes = [one for one in seen.attributes if one[:2] == ('th', 'scope')]
    assert len(scopes) == headings
    ids = [value for _, name, value in seen.attributes if name == 'id']
    assert len({*ids}) == len(ids)
    links = {value for _, name, value in seen.attributes if name == 'href'}
    assert {link[1:] for link in links} <= {*ids}


# Stored runs --------------------------------------------------------------------------------------


def test_a_stored_run_with_its_history(golden_report, database, tmp_path):
    reports = [
        stored.made(golden_report, number, 9 - number, value=40 + number) for number in (1, 2, 3)
    ]
    put(database, *reports)
    keep_verdict(reports[2]['session_info']['uuid'], 'FAILED', ['<b>why</b>'], database)
    history = load_history(database)
    path = tmp_path / 'new' / 'report.html'
    write_stored(path, history, choose_runs(history, 'last'))
    seen = Seen(path.read_text())
    assert 'FAILED: 2 passed' in seen.text and '<b>why</b>' in seen.text
    assert re.search('▁[▄▅]█', seen.text)
    assert all(name in seen.text for name in ('00000001', '00000002', '00000003'))
    # Of an earlier run no later one is a part.
    write_stored(path, history, choose_runs(history, 'last~1'))
    text = Seen(path.read_text()).text
    assert 'NO VERDICT' in text and '00000003' not in text


def test_other_runs_stand_beside_it(golden_report, database, tmp_path):
    put(
        database,
        stored.made(golden_report, 1, 2, label='these', value=40),
        stored.made(golden_report, 2, 1, label='these', value=44),
    )
    history = load_history(database)
    write_stored(tmp_path / 'page.html', history, choose_runs(history, 'these'))
    text = Seen((tmp_path / 'page.html').read_text()).text
    assert 'in 00000001' in text
    assert '40.00+10.0%' in text.replace(' us', '')


def test_the_command(golden_report, database, tmp_path, monkeypatch):
    put(database, stored.made(golden_report, 1))
    monkeypatch.setattr(histories, 'load_history', lambda: load_history(database))
    monkeypatch.chdir(tmp_path)
    assert invoke('report').output == 'report: report.html\n'
    assert 'PASSED' not in (tmp_path / 'report.html').read_text()
    (tmp_path / 'folder').mkdir()
    ended = invoke('report', '-o', 'folder')
    assert isinstance(ended.exception, AssayError)
    assert str(ended.exception) == 'folder: cannot be written: Is a directory'
    ended = invoke('report', 'nothing')
    assert "no run is meant by 'nothing'" in str(ended.exception)


def test_a_run_of_a_report_from_elsewhere(golden_report, database, tmp_path):
    path = tmp_path / 'report.json'
    path.write_text(json.dumps(filled(golden_report)))
    history = load_history(database)
    write_stored(tmp_path / 'page.html', history, choose_runs(history, str(path)))
    text = Seen((tmp_path / 'page.html').read_text()).text
    assert 'NO VERDICT' in text and 'latency_over_limit' in text
