"""The catalogue of known defects, what it says of versions, and the check that looks for them."""

from xml.etree import ElementTree

import pytest

from assay import AssayError, paths
from assay.config.defects import AffectedVersions, load_defects
from assay.report import junit, terminal
from assay.report.html.sections import sections
from assay.results import store
from assay.results.case_history import known_defects
from assay.results.failures import case_findings
from assay.results.verdict import Verdict
from reports import LOG, cases, own_cases, run_of

SOURCES = paths.SOURCES / 'mpi' / 'defects'
SERIES = AffectedVersions(since='4.1.4', fixed=['5.0.11', '6.0.2'])


@pytest.mark.parametrize(
    ('version', 'state'),
    [
        ('4.1.3', 'unknown'),
        ('4.1.4', 'known'),
        ('4.1.8', 'known'),
        ('5.0.9', 'known'),
        ('5.0.11rc1', 'known'),
        ('5.0.11', 'fixed'),
        ('5.0.12', 'fixed'),
        ('5.1.0', 'known'),
        ('6.0.1', 'known'),
        ('6.0.2', 'fixed'),
        ('6.1.0', 'fixed'),
        ('', 'unknown'),
        ('of a site', 'unknown'),
    ],
)
def test_what_is_known_of_a_version(version, state):
    assert SERIES.state(version) == state


def test_without_a_fixed_release_every_later_version_has_it():
    assert AffectedVersions(since='4.3.2').state('9.0.0') == 'known'


def test_what_a_run_says():
    defect = load_defects()['reduce-large-type']
    link = 'https://github.com/pmodels/mpich/issues/6239'
    has = f'{defect.shows} (it hung for 20 s; fixed in 4.1.0; {link})'
    hung = 'it hung for 20 s'
    assert defect.report('mpich', '4.0.2', hung) == ('known', f'MPICH 4.0.2 has: {has}')
    assert defect.report('mpich', '4.3.2', hung) == ('fixed', f'MPICH 4.3.2 has: {has}')
    said = f'MPICH 4.0.2 is known to have, and did not show: {defect.shows} ({link})'
    assert defect.report('mpich', '4.0.2', None) == ('known', said)
    assert defect.report('mpich', '4.3.2', None) == ('fixed', '')
    assert defect.report('mpich', '3.4.0', None) == ('unknown', '')


def test_each_defect_has_one_reproducer():
    files = {path.stem.replace('_', '-') for path in SOURCES.glob('*.c')} - {'defects'}
    assert files == load_defects().keys()


def test_each_link_leads_somewhere():
    for defect in load_defects().values():
        assert defect.link.startswith('https://') or (paths.ROOT / defect.link).is_file()


@pytest.mark.parametrize(
    ('entry', 'words'),
    [
        ('known: {mpich: {since: 4.3.x}}', "Invalid version: '4.3.x'"),
        ('known: {mpi: {since: 4.3.2}}', 'none of the MPIs'),
        ('known: {}', 'at least 1 item'),
        ('known: {mpich: {since: 4.3}}', 'valid string'),
        ('seconds: 90\n    known: {mpich: {since: 4.3.2}}', 'less than or equal to 60'),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path, entry, words):
    path = tmp_path / 'defects.yaml'
    path.write_text(f'defects:\n  one:\n    shows: it\n    link: there\n    {entry}\n')
    load_defects.cache_clear()
    try:
        with pytest.raises(AssayError, match=words):
            load_defects(path)
    finally:
        load_defects.cache_clear()


def with_findings(report, *found):
    """A report of passing cases of the check, with what each found."""
    own = own_cases(report)
    for number, (case, finding) in enumerate(zip(own, found, strict=True)):
        case.update(finding=finding, display_name=f'KnownDefect %defect={number}')
    return report


def test_a_run_tells_each_finding_once(golden_report, capsys, tmp_path):
    """On the terminal, in JUnit's file and on the page."""
    said = 'MPICH 4.3.2 has: it'
    run = run_of(with_findings(golden_report('Passed'), said, said))
    terminal.show_run(run, LOG)
    assert capsys.readouterr().out.count(f'finding: {said}') == 1
    junit.write_junit(tmp_path / 'junit.xml', run, Verdict(()), LOG, 1.0)
    (told,) = ElementTree.parse(tmp_path / 'junit.xml').findall('.//system-out')
    assert told.text == f'finding: {said}'
    (section,) = sections(run, LOG)
    assert [(one.case, one.reason) for one in section.told] == [(run.own_cases[0].title, said)]


def test_a_failed_case_tells_its_finding_as_its_failure(golden_report):
    report = golden_report('FailedReference')
    for case in cases(report):
        case['finding'] = 'MPICH 4.3.2 has: it'
    assert case_findings(run_of(report)) == []


def test_the_last_word_of_each_case_counts(tmp_path, golden_report, monkeypatch):
    first = run_of(with_findings(golden_report('Passed'), 'A 1 has: it', 'B 2 has: that'))
    later = run_of(with_findings(golden_report('Passed'), '', ''))
    stored = {'old': first, 'new': later}
    newest = ['new', 'old']
    monkeypatch.setattr(store, 'newest_with', lambda check, most, database: newest)
    monkeypatch.setattr(store, 'runs', lambda uuids, database: ((n, stored[n]) for n in uuids))
    assert known_defects(tmp_path) == []
    newest.remove('new')
    assert known_defects(tmp_path) == ['A 1 has: it', 'B 2 has: that']
