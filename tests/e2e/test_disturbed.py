"""Runs on a machine that others really use: processes of this test on the CPUs of the ranks."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from xml.etree import ElementTree

import pytest

from assay import paths
from command import assay
from families import FOUND
from quiet import measured

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(
        'mpich' not in FOUND,
        reason='needs the mpich wheel, which could not be installed',
    ),
]

# What others take is itself held to a reference, which on a quiet machine nothing misses: no speed
# decides. The scheduler gives sessions equal shares of a CPU: 50% was seen, and 30% before each
# process had its own; it is less where the hypervisor gives the CPU to other guests. The launcher
# and what else there is took up to 6%.
CHECK = """
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after
from reframe.core.pipeline import RegressionTestDict
from reframe.utility import import_module_from_file

from assay import paths
from assay.config.references import Layer

Ring = import_module_from_file(str(paths.CHECKS / 'mpi' / 'ring.py')).Ring


@rfm.simple_test
class Held(Ring):
    def figures(self):
        return {}

    @run_after('setup')
    def read_references(self):
        held = {'$index': ['fabric'], '.*': {'foreign_share': [0, None, 0.2, '1']}}
        self.layers = [Layer(Path(__file__), RegressionTestDict(held))]
"""
SELECTED = ('-n', '^Held%fabric=shm%layout=packed%scale=1_node', '-p', '^mpich$')
SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
test = os.getppid()
while os.getppid() == test:  # and no longer, however that ends
    pass
"""
CASE = r'Held .*: foreign_share is 0\.\d+, but at most 0\.2000 is allowed'
DISTURBED = rf"{CASE}.*; the node was disturbed: other processes took \d+% of the time of the job's"


@contextmanager
def others():
    """A process on each CPU that ranks may have, and what ends them."""
    processes = [
        subprocess.Popen([sys.executable, '-c', SPIN, str(cpu)], start_new_session=True)
        for cpu in os.sched_getaffinity(0)
    ]

    def stop():
        for process in processes:
            process.kill()
            process.wait()

    try:
        yield stop
    finally:
        stop()


@pytest.fixture
def check(tmp_path):
    """The options that select it."""
    path = tmp_path / 'held.py'
    path.write_text(CHECK)
    return ['-c', str(path), *SELECTED]


def test_a_case_that_others_disturbed_is_measured_again_when_they_have_gone(check):
    command = [paths.ROOT / 'assay', 'run', *check, '-S', 'wait_for_quiet=20s']

    def run():
        said = []
        with (
            others() as stop,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process,
        ):
            for line in process.stdout:
                said.append(line)
                if line.endswith('; measured again when they have gone\n'):
                    stop()
        text = ''.join(said)
        assert 'measured again when they have gone' in text
        assert process.returncode in (0, 3), text
        return process.returncode, text

    def check_passed(ended):
        code, text = ended
        if 'others did not leave within ' in text:
            pytest.skip('this machine is too busy: what is left of others is noticed')
        assert code == 0, text

    _, text = measured(run, check_passed, attempts=2)  # each measures several times
    # Others than those of this test may disturb the second job, and the hypervisor moves cores.
    assert re.search(rf'^passed at the [2-7]\w\w attempt: {DISTURBED}', text, re.MULTILINE)
    assert re.search(r'^PASSED: 1 passed, 0 failed, 0 skipped of 1 cases', text, re.MULTILINE)


def test_a_case_that_others_never_leave_alone_is_neither_good_nor_bad(check, tmp_path):
    junit = tmp_path / 'junit.xml'
    with others():
        ended = assay('run', *check, '-v', '-S', 'wait_for_quiet=1s', f'--report-junit={junit}')
    assert ended.returncode == 3, ended.stdout + ended.stderr
    (told,) = re.findall(rf'^disturbed: {DISTURBED}.*', ended.stdout, re.MULTILINE)
    assert re.search(r', \S+ \(process \d+\) for [\d.]+ s', told)
    assert re.search(r'; others did not leave within \d+ s', told)
    # What plain ReFrame says of it.
    assert re.search(r'\* Reason: performance error: disturbed: foreign_share is', ended.stdout)
    assert ended.stdout.splitlines()[-1].startswith('DISTURBED: 0 passed, 0 failed, 1 disturbed, ')
    root = ElementTree.parse(junit).getroot()
    assert root.find('.//skipped').get('message').startswith('disturbed: foreign_share is')
    assert root.find('.//error').get('type') == 'disturbed'
    assert not root.findall('.//failure')
