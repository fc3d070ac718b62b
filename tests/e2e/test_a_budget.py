"""A run in a given time: of checks that nobody has measured yet not all fit, and it says so."""

import re
import uuid

from command import assay

CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class {name}(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {{'smoke'}}
    local = True
    executable = 'echo'
    executable_opts = ['latency', '42.5']
    number = parameter(range(10), loggable=True)
    reference = {{'*': {{'latency': (42, -0.1, 0.1, 'us')}}}}

    @sanity_function
    def has_answered(self):
        return sn.assert_found('latency', self.stdout)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'latency (\\S+)', self.stdout, 1, float)
"""


def test_what_does_not_fit_is_left_out_and_told(tmp_path):
    """Of a check without a history 20 s are assumed for each of ten cases."""
    name = f'Told{uuid.uuid4().hex}'
    check = tmp_path / 'told.py'
    check.write_text(CHECK.format(name=name))
    words = ['-c', check, '-n', f'^{name}', '-p', '^openmpi$', '--label', name]
    ended = assay('run', *words, '--budget', '190s')
    assert ended.returncode == 0, ended.stdout + ended.stderr
    chosen, left = (
        int(re.search(pattern, ended.stderr)[1])
        for pattern in (r'--budget: (\d+) of 10 cases chosen', r'left out for now: (\d+) cases?;')
    )
    assert chosen + left == 10 and left
    assert f'never run: {name} %number=' in ended.stderr
    last = ended.stdout.splitlines()[-1]
    assert last.startswith(f'PASSED: {chosen} passed, 0 failed, 0 skipped of {chosen} case'), last
    assert last.endswith(f'(budget 190 s); only {chosen} of the 10 selected cases were chosen')
