"""Messages of several threads of a rank at once, against as many ranks of one thread."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.benchmarks import check_threads
from assay.programs.figure import Quantity

#: The folder of the start with a rank instead of each thread, and the layout of these.
PROCESSES, PACKED = 'processes', 'packed'


@rfm.simple_test
class Threads(MpiBenchmark):
    """Rate of small messages between two ranks with a thread on each of their cores.

    Threads have communicators of their own, or share one. In the same job as many pairs of ranks
    with one thread each send the same, without MPI_THREAD_MULTIPLE. An MPI that was built without
    it is skipped, unless partition or environment promise it by a feature.
    """

    program = 'threads'
    always_sends = frozenset()  # as many batches as there is time for
    ranks = 2
    most_threads = 8  # more would take too long to start
    scale = parameter(scales(2), type=str)
    is_smoke_case = False
    may_lack = frozenset({'threads_over_one', 'communicators_over_shared'})

    measures = {
        'rate': Quantity('Mmessages/s', 'higher', headline=True),
        'rate_of_processes': Quantity('Mmessages/s', 'higher'),
        'threads_of_processes': Quantity('1', 'higher', must_be_held=True),
        'threads_over_one': Quantity('1', 'higher'),
        'communicators_over_shared': Quantity('1', 'higher'),
    }

    @property
    def processes(self):
        return self.place(self.threads * self.placement.ranks, 1, PACKED)

    @run_after('setup')
    def set_threads(self):
        self.arguments = [f'--threads {self.threads}', '--thread-multiple']

    @run_before('run')
    def run_processes_first(self):
        self.start_beside(PROCESSES, self.processes, [])

    def check_report(self, report, placement):
        check_threads(report, placement.threads)

    def verify_answers(self):
        super().verify_answers()
        self.beside = self.report_beside(PROCESSES, self.processes, PACKED)

    def figures(self):
        rates = {entry['measure']: entry['rate'] for entry in self.report['results']}
        rate = rates.get('communicators', rates['one'])
        of_processes = self.beside['results'][0]['rate']
        figures = self.as_figures(
            rate=rate / 1e6,
            rate_of_processes=of_processes / 1e6,
            threads_of_processes=rate / of_processes,
        )
        if self.threads > 1:
            figures |= self.as_figures(
                threads_over_one=rate / rates['one'],
                communicators_over_shared=rate / rates['shared'],
            )
        return figures
