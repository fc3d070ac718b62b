"""Folders of runs: each its own, and none removed beneath a run."""

import os
import subprocess
import sys

import pytest

from assay import AssayError, paths
from assay.running import runs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'RUNS', tmp_path / 'runs')
    monkeypatch.delenv(runs.VARIABLE, raising=False)
    runs.this_run.cache_clear()
    return tmp_path / 'runs'


BEGIN = """
import sys
from pathlib import Path
from assay import paths
from assay.running import runs
paths.RUNS = Path(sys.argv[1])
print(runs.begin_run().folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def elsewhere(folder):
    """Begins a run in another process; returns that and the run's folder."""
    started = []

    def begin():
        process = subprocess.Popen(
            [sys.executable, '-c', BEGIN, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, runs.RunFolder(type(folder)(process.stdout.readline().strip()))

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def begun_long_ago(number, *subfolders):
    run = runs.begin_run()
    os.close(run.handle)
    for name in subfolders:
        (run.folder / name).mkdir()
    os.utime(run.folder, (number, number))
    return run.folder


def test_two_runs_have_nothing_in_common(elsewhere):
    (_, one), (_, other) = elsewhere(), elsewhere()
    assert one.folder != other.folder
    assert not set(one.exports.values()) & set(other.exports.values()) - {'yes', 'no'}


def test_a_run_is_under_way_until_its_last_process_ends(elsewhere):
    process, run = elsewhere()
    assert run.is_under_way
    process.kill()
    process.wait()
    assert not run.is_under_way
    assert not runs.RunFolder(run.folder / 'gone').is_under_way


def test_last_is_the_run_that_came_to_its_jobs_last(folder, elsewhere):
    first, second = elsewhere()[1], elsewhere()[1]
    for run in (second, first):
        runs.starts_jobs(run)
    assert (folder / 'last').resolve() == first.folder


def test_the_newest_report_is_that_of_the_run_that_ended_last(folder, elsewhere):
    with pytest.raises(AssayError, match=r'there is no report in .*run something first'):
        runs.newest_report()
    reports = [elsewhere()[1].report for _ in range(2)]
    for number, report in enumerate(reversed(reports)):
        report.write_text('{}')
        os.utime(report, (number, number))
    assert runs.newest_report() == reports[0]


def test_of_reports_of_the_same_second_the_newest_is_of_the_later_run(folder):
    """As a file system that knows no fractions of seconds has it."""
    made = []
    for number in (3, 1, 4, 2, 9, 5):
        report = folder / f'2026112{number}T120000.000000-host-1' / 'report.json'
        report.parent.mkdir(parents=True)
        report.touch()
        os.utime(report, (1000, 1000))
        made.append(report)
    assert runs.newest_report() == max(made)


def test_runs_of_other_hosts_are_left_alone(folder, monkeypatch):
    monkeypatch.setattr(runs.socket, 'gethostname', lambda: 'login-n1')
    other = runs.begin_run()
    os.close(other.handle)
    monkeypatch.setattr(runs.socket, 'gethostname', lambda: 'n1')
    assert (other.host, runs.ended_runs()) == ('login-n1', [])


def test_old_runs_go_but_not_one_under_way(monkeypatch, elsewhere):
    monkeypatch.setattr(runs, 'KEPT', 2)
    _, running = elsewhere()
    (running.folder / 'stage').mkdir()
    os.utime(running.folder, (0, 0))
    old = [begun_long_ago(number, 'stage') for number in range(1, 4)]
    listing = begun_long_ago(9)
    runs.begin_run()
    assert [path.is_dir() for path in old] == [False, True, True]
    assert not listing.exists()
    assert running.folder.is_dir()


def test_a_process_is_part_of_the_run_that_it_is_told_of(monkeypatch, folder):
    monkeypatch.setenv(runs.VARIABLE, str(folder / 'told'))
    assert runs.this_run().folder == folder / 'told'
    assert not folder.exists()


def test_else_it_begins_one_and_tells_reframe(folder):
    run = runs.this_run()
    assert runs.this_run() is run
    assert os.environ['RFM_REPORT_FILE'] == str(run.report)
    assert os.environ['RFM_STAGE_DIR'].startswith(str(run.folder))


def test_no_folder_can_be_made(folder):
    folder.write_text('a file')
    with pytest.raises(AssayError, match=r'no folder for this run: .*runs.*: '):
        runs.begin_run()
