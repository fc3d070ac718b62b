"""What a run ends with: its verdict is stored, files are written, and old baselines are told."""

import json
import signal
import uuid
from functools import partial

import pytest

from assay import paths
from assay.report import progress
from assay.results import store
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.supervise import Ended
from reports import LOG, cases, passing
from stored import put

#: As `assay baseline` writes it, of the case in the report.
LEARNED = """\
Passed:
  $index: [$partition]
  toy:node:
    latency: {{reference: [42, null, 0.1, us], n: '12', days: 2026-01-01, spread: 1.0%, mpi: {}}}
"""


@pytest.fixture
def concluded(tmp_path, monkeypatch):
    """Concludes a run that left this report, or none: its verdict, and what is stored of it."""
    database = tmp_path / 'perflogs' / 'results.db'
    references = tmp_path / 'references'
    references.mkdir()
    monkeypatch.setattr(paths, 'REFERENCES', references)
    monkeypatch.setattr(store, 'keep_verdict', partial(store.keep_verdict, database=database))

    def conclude(report=None, end=None, log=LOG, copy=None, junit=None, page=None, names=()):
        run = RunFolder(tmp_path / 'run')
        run.folder.mkdir(exist_ok=True)
        run.log.write_text('\n'.join(log))
        name = str(uuid.uuid4())
        if report:
            report['session_info']['uuid'] = name
            run.report.write_text(json.dumps(report))
            put(database, report)
        given = Given(frozenset(), None, [], [*names], [], [], copy, junit, page=page)
        found = progress.conclude_run(run, end or Ended(), given, 3.2)
        return found.verdict, store.verdicts(database).get(name)

    return conclude


def test_a_good_run_is_stored_as_such_and_written_where_it_was_asked(
    concluded, golden_report, tmp_path, capsys
):
    report = passing(golden_report('Passed'))
    copy, junit = tmp_path / 'there' / 'report.json', tmp_path / 'junit.xml'
    verdict, stored = concluded(report, copy=copy, junit=junit)
    assert verdict.passed
    assert stored == ('PASSED', ())
    assert json.loads(copy.read_text()) == report
    assert '<testsuite' in junit.read_text()
    out = capsys.readouterr()
    assert out.out.splitlines()[-1] == 'PASSED: 2 passed, 0 failed, 0 skipped of 2 cases in 3 s'
    assert 'assay:' not in out.err


def test_a_name_that_no_case_is_of_fails_a_run_whose_cases_passed(concluded, golden_report, capsys):
    verdict, stored = concluded(passing(golden_report('Passed')), names=['^Passed', 'Rign'])
    problem = "no selected case is of -n 'Rign': correct it, or see `assay run -l`"
    assert verdict.problems == (problem,) and stored[0] == 'FAILED'
    out = capsys.readouterr()
    assert f'assay: {problem}' in out.err
    assert out.out.splitlines()[-1].startswith('FAILED: 2 passed, 0 failed')


@pytest.mark.parametrize(
    ('end', 'problem'),
    [
        (Ended(stopped=signal.SIGTERM), 'stopped by SIGTERM: not everything was measured'),
        (Ended(code=-9), 'ReFrame was killed by SIGKILL'),
        (Ended(problems=['the disk is full']), 'the disk is full'),
    ],
)
def test_how_it_ended_fails_it_and_is_stored(concluded, golden_report, capsys, end, problem):
    report = passing(golden_report('Passed'))
    verdict, stored = concluded(report, end)
    assert stored == ('FAILED', verdict.problems)
    assert problem in verdict.problems
    assert f'assay: {problem}' in capsys.readouterr().err


def test_nothing_is_stored_of_a_run_without_a_report(concluded, capsys):
    verdict, stored = concluded()
    assert stored is None
    assert 'no check was selected' in verdict.problems[0]
    assert capsys.readouterr().out.startswith('FAILED: 0 passed')


def test_a_file_that_cannot_be_written_fails_the_run_in_the_history_too(
    concluded, golden_report, tmp_path
):
    (tmp_path / 'file').touch()
    for name in ('copy', 'junit', 'page'):
        there = tmp_path / 'file' / 'below'
        verdict, stored = concluded(passing(golden_report('Passed')), **{name: there})
        assert f'{there}' in verdict.problems[-1]
        assert stored == ('FAILED', verdict.problems)


def test_the_page_of_a_run_has_its_verdict(concluded, golden_report, tmp_path):
    page = tmp_path / 'new' / 'report.html'
    verdict, _ = concluded(passing(golden_report('Passed')), page=page)
    assert verdict.passed
    assert '<title>PASSED: toy' in page.read_text()
    verdict, _ = concluded(golden_report('FailedSanity'), Ended(code=1), page=page)
    assert (verdict.word, verdict.exit_code) == ('FAILED', 1)
    assert '<title>FAILED: toy' in page.read_text()


def test_what_can_be_written_says_what_could_not(concluded, golden_report, tmp_path):
    (tmp_path / 'file').touch()
    there = tmp_path / 'file' / 'below'
    page, junit = tmp_path / 'report.html', tmp_path / 'junit.xml'
    concluded(passing(golden_report('Passed')), junit=there, page=page)
    assert '<title>FAILED' in page.read_text() and f'{there}' in page.read_text()
    concluded(passing(golden_report('Passed')), junit=junit, page=there)
    assert 'errors="1"' in junit.read_text() and f'{there}' in junit.read_text()


@pytest.mark.parametrize(
    ('name', 'what'),
    [('page', 'assay.report.html.page.page'), ('junit', 'assay.report.junit._add_cases')],
)
def test_a_mistake_while_a_file_is_made_hides_no_table(
    concluded, golden_report, tmp_path, monkeypatch, capsys, name, what
):
    def fall(*_, **__):
        raise KeyError('\x1b[2Jnobody thought of this')

    monkeypatch.setattr(what, fall)
    path = tmp_path / 'report'
    verdict, stored = concluded(passing(golden_report('Passed')), **{name: path})
    assert verdict.exit_code == 1 and not path.exists()
    (problem,) = verdict.problems
    assert problem == rf"{path}: not written: KeyError: '\x1b[2Jnobody thought of this'"
    assert stored == ('FAILED', verdict.problems)
    out = capsys.readouterr()
    assert '42.50 us' in out.out
    assert out.out.splitlines()[-1].startswith('FAILED: 2 passed')
    assert out.err.count('Traceback') == 1 and f'assay: {problem}' in out.err


def test_without_a_report_there_is_no_page(concluded, tmp_path):
    verdict, _ = concluded(page=tmp_path / 'report.html')
    assert verdict.problems[-1].endswith('report.html: not written, since the run left no report')


def test_a_baseline_of_another_mpi_is_told_and_fails_nothing(concluded, golden_report, capsys):
    report = passing(golden_report('Passed'))
    for case in cases(report):
        case['built_mpi'] = 'mpich@5.0.1'
    path = paths.REFERENCES / 'learned' / 'toy.yaml'
    path.parent.mkdir()
    path.write_text(LEARNED.format('mpich@5.0.1'))
    assert concluded(report)[0].passed
    assert 'were measured with' not in capsys.readouterr().err
    path.write_text(LEARNED.format('mpich@4.3.2'))
    assert concluded(report)[0].passed
    assert (
        'assay: the references of 2 figures were measured with the MPI mpich@4.3.2, this run used '
        'mpich@5.0.1: `assay baseline` renews them'
    ) in capsys.readouterr().err
