"""Small checks, one for each way that a run can end; the reports beside this file are theirs.

Made anew by ``regenerate`` beside this file; also run end to end by tests/e2e/test_command.py.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    fixture,
    parameter,
    performance_function,
    run_after,
    run_before,
    sanity_function,
    variable,
)


class Build(rfm.CompileOnlyRegressionTest):
    build_system = 'SingleSource'
    sourcesdir = None
    sourcepath = 'toy.c'
    source = variable(str, value='int main(void){return 0;}')

    @run_before('compile')
    def write_source(self):
        self.prebuild_cmds = [f"echo '{self.source}' > toy.c"]

    @sanity_function
    def built(self):
        return True


class BrokenBuild(Build):
    source = 'int main(void){return x;}'


class Toy(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {'smoke'}
    local = True
    fabric = parameter(['shm', 'tcp'], loggable=True)
    layout = parameter(['packed'], loggable=True)
    build = fixture(Build, scope='environment')
    printed = variable(str, value='latency 42.5')

    @run_before('run')
    def print_figures(self):
        self.executable = 'echo'
        self.executable_opts = self.printed.split()

    @sanity_function
    def printed_something(self):
        return sn.assert_found('latency', self.stdout)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'latency (\S+)', self.stdout, 1, float)


@rfm.simple_test
class Passed(Toy):
    reference = {'*': {'latency': (42, -0.1, 0.1, 'us')}}


@rfm.simple_test
class FailedReference(Toy):
    reference = {'*': {'latency': (20, None, 0.1, 'us')}}


@rfm.simple_test
class FailedSanity(Toy):
    reference = {'*': {'latency': (42, -0.1, 0.1, 'us')}}

    @sanity_function
    def printed_something(self):
        return sn.assert_found('bandwidth', self.stdout, msg='another fabric was used')


@rfm.simple_test
class NoFigures(Toy):
    printed = 'latency none'


@rfm.simple_test
class NotANumber(Toy):
    printed = 'latency nan'


@rfm.simple_test
class NoReference(Toy):
    pass


@rfm.simple_test
class Skipped(Toy):
    @run_after('setup')
    def skip_always(self):
        self.skip(f'this machine has no {self.fabric}')


@rfm.simple_test
class FailedBuild(Toy):
    build = fixture(BrokenBuild, scope='environment')
