"""Our applications under others' tools for MPI: does one find an error, or count otherwise?"""

import shlex

import reframe as rfm

from assay.checks.under_tool import UnderToolCheck
from assay.layout.launchers import leave_unbound
from assay.programs import mpip, must
from assay.programs.figure import Quantity
from assay.programs.minighost import MiniGhost
from assay.programs.minimd import MiniMD

#: The exit code of `timeout` where it ended what it started.
TIMED_OUT = 124


@rfm.simple_test
class MpiP(UnderToolCheck):
    """Under mpiP, whose counts are a second opinion on those of the witness."""

    package = 'mpip'
    measures = UnderToolCheck.measures | {'mpi_share_under_tool': Quantity('1', 'lower')}

    def line_under_tool(self, *command):
        preload = f'LD_PRELOAD={self.installed.path("libmpiP.so")}'
        return self.start_line('env', preload, f'MPIP={mpip.OPTIONS}', *command)

    def hold_report(self, launch):
        launch.assert_ended_well()
        self.profile = mpip.read_profile(launch.folder, self.program_name)
        seen = [rank.calls for rank in self.launch.witnessed.processes]
        # HPL's limit, matrix products, is multiplied for a given time, which ranks share.
        mpip.check_counts(self.profile, seen, with_collectives=self.code != 'hpl')

    def figures(self):
        share = self.profile.in_mpi / self.profile.seconds
        return super().figures() | self.as_figures(mpi_share_under_tool=share)


@rfm.simple_test
class Must(UnderToolCheck):
    """Under MUST: an error that it finds fails the case, a warning is reported."""

    package = 'must'
    # A message takes some hundred times as long, and the last step's are those of the first.
    applications = UnderToolCheck.applications | {
        one.name: one for one in (MiniGhost(work=0), MiniMD(work=0))
    }
    #: What a start may take: where ranks are in a deadlock MUST reports that, and does not end.
    seconds = 240

    @property
    def ranks_per_node(self):
        # A process of its own holds all ranks against each other. It has a core, but of two.
        return min(16, max(2, self.node.cores - 1))

    def line_under_tool(self, *command):
        options, env = leave_unbound(self.launcher_words, self.placement.ranks + 1)
        launcher = self.job.launcher
        words = [
            launcher.command(self.job)[0],
            *(*options, *launcher.options[len(self.placement.options) :]),
        ]
        env = env | {
            # As an option it is one word, and the launcher's options are taken for the program.
            'MUST_MPIEXEC': shlex.quote(' '.join(words)),
            # Or what it compiles, where no prebuilt is installed, would go to the user's home.
            'XDG_CACHE_HOME': '$PWD',
        }
        start = [
            *('env', '-u', 'LD_PRELOAD', *(f'{key}={value}' for key, value in env.items())),
            *('timeout', str(self.seconds), str(self.installed.path('mustrun'))),
            *('--must:np', '-n', '-n', str(self.num_tasks)),  # it starts one more
        ]
        return ' '.join([*start, *command])

    def hold_report(self, launch):
        unended = f'ended after {self.seconds} s' if launch.exit_code == TIMED_OUT else ''
        for warning in must.check_messages(must.read_messages(launch.folder, unended)):
            self.remark(f'MUST warns: {warning}')
