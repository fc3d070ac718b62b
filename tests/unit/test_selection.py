"""Which tests `./assay test` runs: docs/testing.md."""

import subprocess
import sys

import pytest

from assay import paths


def collected(*arguments):
    """Ids of the tests that would run."""
    command = [sys.executable, '-m', 'pytest', '--collect-only', '-q', *arguments]
    ended = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [line for line in ended.stdout.splitlines() if '::' in line]


@pytest.fixture(scope='module')
def quick():
    return collected('tests/e2e')


def test_each_part_runs_once(quick):
    functions = [name.partition('[')[0] for name in quick]
    assert sorted(set(functions)) == sorted(functions)
    assert {name.partition('::')[0] for name in functions} >= {
        'tests/e2e/test_affinity.py',
        'tests/e2e/test_command.py',
        'tests/e2e/test_suite.py',
        'tests/e2e/test_verdict.py',
    }


def test_one_speaks_for_a_file_of_slow_tests(quick):
    (of_clusters,) = [name for name in quick if 'test_vcluster' in name]
    assert of_clusters.endswith('::test_nodes_are_hosts')


def test_all_of_them(quick):
    assert set(quick) < set(collected('tests/e2e', '--all'))


def test_what_is_named_runs():
    named = collected('tests/e2e/test_campaign.py')
    assert named == ['tests/e2e/test_campaign.py::test_no_bad_run_ends_green_and_no_good_one_red']
