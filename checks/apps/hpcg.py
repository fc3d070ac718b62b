"""Conjugate gradients with multigrid: what the HPCG list compares machines by."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_before
from reframe.core.exceptions import SanityError

from assay.checks.application import SpackApplicationCheck
from assay.checks.benchmark import RESULT, read_report, refusing
from assay.job.launch import LaunchError, apart
from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import check_stream
from assay.programs.figure import Quantity
from assay.programs.hpcg import Hpcg as Application

#: The program that measures what limits it, and the folder of its run.
STREAM = 'stream'


@rfm.simple_test
class HPCG(SpackApplicationCheck):
    """HPCG's own program, as Spack builds it, and the triad of the same cores just before.

    There is none of ours: HPCG verifies itself, and its sizes and counts are held to what was asked
    for.
    """

    application = Application()
    package, program = 'hpcg', 'xhpcg'
    layout = parameter(['packed', 'hybrid'], type=str, loggable=True)
    measures = Application.measures | {
        'triad': Quantity('GB/s', 'higher'),
        'bandwidth_of_triad': Quantity('1', 'higher'),
    }
    # It repeats its sets for a given time.
    always_sends = frozenset()

    @run_before('run')
    def run_stream_before(self):
        Path(self.stagedir, STREAM).mkdir()
        stream = self.start_line(self.benchmarks.product(STREAM), '--json', RESULT)
        self.prerun_cmds = [*self.prerun_cmds, apart(STREAM, stream)]
        self.keep_files = [*self.keep_files, STREAM]

    def verify(self):
        try:
            launch = self.launch_apart(STREAM, STREAM, self.placement, self.num_tasks)
            launch.assert_ended_well()
            report = read_report(Path(launch.folder, RESULT), STREAM, lambda: launch.reason)
            with refusing(STREAM):
                check_stream(report)
            launch.assert_as_asked()
        except LaunchError as error:
            raise SanityError(f'{STREAM}: {error}') from None
        self.triad = next(
            one['bandwidth']['best']
            for one in report['results']
            if one['operation'] == 'triad' and one['ranks'] == 'together'
        )
        super().verify()
        self.hold_against_witness()

    def hold_against_witness(self):
        report = self.launch.witnessed
        if not report.has_profile:
            return
        rank = report.processes[0]
        calls = {name: call.count for name, call in rank.calls.items()}
        try:
            self.application.check_witnessed(self.launch.folder, rank.wall, calls)
        except WrongAnswerError as error:
            raise SanityError(f'{self.program_name}: {error}') from None

    def figures(self):
        figures = super().figures()
        triad = self.triad / 1e9
        return figures | self.named(
            triad=triad, bandwidth_of_triad=figures['bandwidth'].value / triad
        )
