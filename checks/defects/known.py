"""Known defects of MPIs: small reproducers, each for the MPIs that have or had it."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import PerformanceError, SanityError

from assay.checks.benchmark import as_sanity_error
from assay.checks.cases import offered_features
from assay.checks.check import MpiCheck
from assay.config.defects import load_defects
from assay.programs.calls import check_reproducer
from assay.programs.figure import Quantity

DEFECTS = load_defects()
FABRICS = list(dict.fromkeys(name for one in DEFECTS.values() for name in one.fabrics))

#: Of a job: a reproducer needs no more.
MOST_RANKS = 4


@rfm.simple_test
class KnownDefect(MpiCheck):
    """Tells whether the MPI has a defect that is known, and fails where that should be fixed.

    If a defect is known to end jobs, a job that began and did not get to its end shows it.
    """

    program = 'defects'
    witness_sections = 'placement,fabric'
    time_limit = '3m'
    defect = parameter(sorted(DEFECTS), type=str, loggable=True)
    fabric = parameter(offered_features(FABRICS), type=str, loggable=True)

    #: 1, or 0 where it shows in a version that should have it fixed.
    measures = {'as_known': Quantity('1', 'higher', headline=True)}

    @property
    def entry(self):
        return DEFECTS[self.defect]

    @run_after('init')
    def select_mpis(self):
        if self.fabric not in self.entry.fabrics:
            self.valid_systems = []
            return
        self.narrow_to_first_fabric(self.entry.fabrics)
        self.narrow_to_features(*self.entry.known)

    @property
    def is_smoke_case(self):
        return False

    def place(self, ranks, threads):
        return super().place(min(MOST_RANKS, self.node.cores), threads)

    @run_before('run')
    def use_reproducer(self):
        self.executable = self.build.product(self.program)
        self.executable_opts = [self.defect, str(self.entry.seconds)]
        self.env_vars.update(self.entry.known[self.family].env)

    @property
    def ran(self):
        """What the witness saw, though it be of a job that did not get to its end."""
        if report := self.launch.seen:
            return report
        return self.launch.witnessed

    def verify(self):
        if self.says(f'{self.defect} needs calls that this MPI lacks'):
            self.skip(f'{self.current_environ.name} lacks the calls in which {self.defect} shows')
        shown = self.how_it_shows()
        version = self.current_environ.extras.get('version', '')
        state, self.finding = self.entry.report(self.family, version, shown)
        self.is_as_known = shown is None or state != 'fixed'

    def how_it_shows(self):
        """How the job showed the defect, in words; None if it did not.

        :raises SanityError, LaunchError: if it did not begin, or was not as asked for.
        """
        if not self.says(f'{self.defect} begins on {self.num_tasks} ranks'):
            self.launch.assert_ended_well()
            raise SanityError(f'{self.program} did not begin: {self.launch.reason}')
        self.launch.assert_started_as_asked()
        if self.says(f'{self.defect} shows'):
            return 'wrong result'
        if self.says(f'{self.defect} does not show'):
            # What goes wrong after that is not this defect.
            self.launch.assert_ended_well()
            self.launch.assert_as_asked()
            with as_sanity_error(self.program):
                ranks = self.launch.witnessed.processes
                check_reproducer(self.defect, self.entry.call, [one.calls for one in ranks])
            return None
        if not self.entry.ends:
            self.launch.assert_ended_well()
        if self.says('hangs'):
            return f'it hung for {self.entry.seconds} s'
        if self.launch.exit_code:
            return f'it ended with exit code {self.launch.exit_code}'
        raise SanityError(f'{self.program} did not tell whether the defect shows')

    def says(self, words):
        return f'defects: {words}' in self.launch.text

    def figures(self):
        return self.as_figures(as_known=float(self.is_as_known))

    def explain_miss(self, error):
        if self.no_evidence:
            return super().explain_miss(error)
        return PerformanceError(f'{self.finding}: this version should have it fixed')

    def witness_figures(self):
        """None: how long a reproducer takes is nothing to measure."""
        return {}
