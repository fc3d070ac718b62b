"""Two settings measured in turn, by the command itself, in real sessions."""

import json
import re

import pytest

from command import assay

CHECK = '''
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Told(rfm.RunOnlyRegressionTest):
    """Says a number; over tcp nothing comes of MPICH."""

    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {'smoke'}
    local = True
    executable = 'echo'
    executable_opts = ['latency', '${TOLD:-42.5}']
    fabric = parameter(['shm', 'tcp'], loggable=True)
    reference = {'*': {'latency': (42, -0.1, 0.1, 'us')}}

    @sanity_function
    def has_answered(self):
        is_lost = self.fabric == 'tcp' and self.current_environ.name.startswith('mpich')
        return sn.assert_false(is_lost, 'no answer')

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'latency (\\S+)', self.stdout, 1, float)
'''


def test_four_sessions_and_what_fails_with_one_environment(tmp_path):
    check = tmp_path / 'told.py'
    check.write_text(CHECK)
    words = ['--within', '1s', '-c', str(check), '-n', '^Told']
    ended = assay('compare-settings', 'openmpi', 'mpich', *words)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    order = re.findall(r'session \d: (\w+)', ended.stderr)
    assert order == ['openmpi', 'mpich', 'mpich', 'openmpi']
    assert 'failed: Told %fabric=tcp @generic:node+mpich: no answer' in ended.stderr
    told = (
        'Told %fabric=tcp @generic:node: 0 of 2 sessions with openmpi, 2 of 2 sessions with mpich'
    )
    assert f'failed: {told}' in ended.stdout
    last = ended.stdout.splitlines()[-1]
    assert last.startswith('STOPPED: WORSE: 0 worse, ')
    assert '1 case failed more often with one setting' in last
    listed = assay('history', 'compare openmpi with mpich: mpich', '--last', '2')
    assert listed.stdout.count('compare openmpi with mpich: mpich') == 2


def test_a_parameter_is_held_against_another_and_a_variable_reaches_the_jobs(tmp_path):
    check = tmp_path / 'told.py'
    check.write_text(CHECK)
    sides = ['--before', 'fabric=tcp', '--after', 'fabric=shm', '--after', 'TOLD=46']
    words = ['--within', '1s', '-c', str(check), '-n', '^Told', '-p', '^openmpi$', '--json']
    ended = assay('compare-settings', *sides, *words)
    # A check that does not say in which direction its figures get better: they are not judged.
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    order = re.findall(r'session \d: (.+)', ended.stderr)
    assert order == ['fabric=tcp', *['fabric=shm, TOLD=46'] * 2, 'fabric=tcp']
    told = json.loads(ended.stdout)
    assert told['settings'] == ['fabric=tcp', 'fabric=shm, TOLD=46']
    (one,) = told['figures']
    assert one['case'].startswith('Told %fabric=shm')
    assert [one[side]['value'] for side in ('before', 'after')] == pytest.approx([42.5, 46])
