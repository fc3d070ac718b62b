"""The checks of the campaign against the verdict: three jobs of a second, one figure each."""

import os
import shlex

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    parameter,
    performance_function,
    run_before,
    sanity_function,
    variable,
)


@rfm.simple_test
class Steady(rfm.RunOnlyRegressionTest):
    """Prints what it is told to, waits, and prints the figure."""

    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {'smoke'}
    executable = 'bash'
    fabric = parameter(['shm', 'tcp', 'ucx-tcp'], loggable=True)
    value = variable(str, value='42')
    seconds = variable(float, value=0.5)
    reference = {'*': {'latency': (42, -0.1, 0.1, 'us')}}

    @run_before('run')
    def print_figure(self):
        said = shlex.quote(os.environ.get('CAMPAIGN_TEXT', ''))
        lines = f'printf %s {said}; sleep {self.seconds}; echo; echo latency {self.value}; echo end'
        self.executable_opts = ['-c', shlex.quote(lines)]

    @sanity_function
    def came_to_its_end(self):
        return sn.assert_found('^end$', self.stdout)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'^latency (\S+)$', self.stdout, 1, float)
