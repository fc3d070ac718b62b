"""What ReFrame goes on without, and what a job prints to look better, in whole runs."""

import pytest

from command import TOYS, run_toy

CHECKS = '''
import sys
sys.path.insert(0, {folder!r})
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import fixture, run_after, sanity_function
from toys import Toy


class Unmakeable(rfm.RunOnlyRegressionTest):
    @run_after('init')
    def fail(self):
        raise ValueError('cannot be made')


@rfm.simple_test
class PassedLax(Toy):
    """Its reference is missed, and it is told not to mind."""

    strict_check = False
    reference = {{'*': {{'latency': (80, -0.1, 0.1, 'us')}}}}


@rfm.simple_test
class PassedUnits(Toy):
    reference = {{'*': {{'latency': (42, -0.1, 0.1, 'GB/s')}}}}


@rfm.simple_test
class Dependent(Toy):
    made = fixture(Unmakeable, scope='environment')


@rfm.simple_test
class Hostile(Toy):
    printed = 'latency 42.5'
    reference = {{'*': {{'latency': (42, -0.1, 0.1, 'us')}}}}

    @sanity_function
    def printed_something(self):
        return sn.assert_found('x', self.stdout, msg='\\x1b[1A\\x1b[2K\\nPASSED: 70 passed')
'''


def written(folder):
    path = folder / 'checks.py'
    path.write_text(CHECKS.format(folder=str(TOYS.parent)))
    return str(path)


def test_what_reframe_goes_on_without_fails_a_run(tmp_path):
    path = written(tmp_path)
    options = ['-S', 'Passed.binry=1', '-P', 'depth=1,2', '--perflogdir', '/proc/nothing']
    ended = run_toy('(Passed|Dependent)', '-c', path, '-c', str(tmp_path / 'missing.py'), *options)
    assert ended.returncode == 1
    for sentence in (
        "skipping fixture 'Unmakeable",
        'skipping all dependent test cases - Dependent',
        "missing.py' does not exist",
        'reference unit (',
        "'/proc/nothing' (and 6 more like it)",
        "Passed does not have the variable 'binry'",
        "no selected check has the parameter or variable 'depth'",
    ):
        assert sentence in ended.stderr
    assert 'latency is 42.50 us, but 72.00 to 88.00 us is allowed' in ended.stdout
    assert 'FAILED: 4 passed, 2 failed' in ended.stdout


@pytest.mark.slow
def test_an_option_that_a_check_has_fails_nothing():
    """The check that builds the program lacks it."""
    ended = run_toy('Passed', '-S', 'printed=latency 42.1', '--repeat=2', '-v')
    assert ended.returncode == 0, ended.stderr
    assert 'PASSED: 4 passed' in ended.stdout


def test_what_a_job_prints_cannot_look_like_our_verdict(tmp_path):
    ended = run_toy('Hostile', '-c', written(tmp_path))
    assert ended.returncode == 1
    _, _, ours = ended.stdout.partition('\n\n')
    assert r'\x1b[1A PASSED: 70 passed' in ours
    assert ours.replace('\n', '').isprintable()
    assert 'PASSED: 70' not in {line[:10] for line in ours.splitlines()}
