"""Collective operations with each algorithm of an MPI, in turn with its default, in one job."""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SanityError

from assay.checks.benchmark import RESULT, MpiBenchmark, largest_block, read_result
from assay.checks.cases import scales
from assay.job.launch import EXIT_CODE, LaunchError, line_in_folder
from assay.mpis import FAMILIES
from assay.programs.figure import Quantity
from assay.tuning.starts import (
    ANSWERS,
    OUTCOMES,
    Outcome,
    TuningJob,
    read_plan,
    write_job,
)

#: The program that sees whether the order of ranks is kept.
ORDER = 'noncommutative'
#: In the folder of a start that was not ended by us: the seconds that it took.
ENDED = 'ended'
#: What the program says where data arrived wrong (sources/mpi/common/payload.c, collectives.c).
WRONG = ('wrong', 'payload')


@rfm.simple_test
class Tune(MpiBenchmark):
    """A start for each entry of a plan, and the default as the job's own program.

    An algorithm that crashes, hangs or gives a wrong answer fails its start alone. `assay tune`
    writes the plan and judges what came of the starts.
    """

    program = 'collectives'
    layout = parameter(['packed', 'spread'], type=str, loggable=True)
    scale = parameter(scales(), type=str, loggable=True)
    #: A file of starts; none but the job's own if it is empty.
    plan = variable(str, value='')
    # What disturbs a job disturbs the default and the algorithms alike.
    wait_for_quiet = '0s'
    time_limit = '60m'

    measures = {
        'allreduce_time': Quantity('us', 'lower', headline=True),
        'points': Quantity('1', 'higher', must_be_held=True),
    }

    @run_after('init')
    def select_modes(self):
        self.tags |= {'tune'}

    @property
    def words(self):
        """How this MPI's algorithms are chosen."""
        if found := FAMILIES[self.family].algorithms:
            return found
        raise ReframeError(
            f'how algorithms of {FAMILIES[self.family].name} are chosen is not known here: '
            f'docs/tune.md has those that are'
        )

    @run_before('run')
    def start_all(self):
        self.starts = read_plan(Path(self.plan)) if self.plan else []
        largest = f'--max {largest_block(self.num_tasks)}'
        self.arguments = [largest, '--ci 0.01', '--budget 0.003', '--algorithms']
        if self.node_count > 1:
            # Within a node the barrier behind a call takes as long as an operation of a few bytes.
            self.arguments.append('--until-all-end')
        self.executable_opts = [*self.arguments, '--json', RESULT]
        self.executable = self.build.product(self.program)
        own = shlex.quote(self.executable)
        asked = [
            f'{one.replace("{program}", own)} >>{ANSWERS} 2>&1' for one in self.words.questions
        ]
        self.prerun_cmds = [*self.prerun_cmds, *asked, *map(self.line_of, self.starts)]
        self.keep_files = [*self.keep_files, OUTCOMES, ANSWERS, *(one.name for one in self.starts)]

    def line_of(self, start):
        """The line of the job's script for a start, which is ended if it hangs."""
        Path(self.stagedir, start.name).mkdir(exist_ok=True)
        chosen = [f'--op {",".join(start.operations)}'] if start.operations else []
        chosen += self.arguments[:1] if start.is_of_order else self.arguments
        program = self.build.product(ORDER) if start.is_of_order else self.executable
        placed = self.placement, self.num_tasks
        line = self.start_line(program, *chosen, f'--json {RESULT}', placed=placed)
        env = ' '.join(f'{name}={shlex.quote(value)}' for name, value in start.env.items())
        # What times it out waits until the launcher has ended its ranks.
        line = f"trap 'exit 124' TERM; {line}; code=$?; echo $SECONDS >{ENDED}; exit $code"
        limited = f'timeout -k 10 {start.seconds} bash -c {shlex.quote(line)}'
        line = line_in_folder(start.name, f'env {env} {limited}')
        return f'[ $SECONDS -ge {start.latest} ] || {line}'

    def verify(self):
        self.launch.assert_ended_well()
        self.verify_answers()
        self.launch.assert_as_asked()
        outcomes = (self.outcome(one) for one in self.starts)
        answers = self.ended_job.folder / ANSWERS
        write_job(
            self.ended_job.folder / OUTCOMES,
            TuningJob(
                self.report['mpi']['library'],
                self.num_tasks,
                tuple(self.report['hosts']),
                variables_of(self.report),
                answers.read_text(errors='replace') if answers.exists() else '',
                (self.good('', self.report, {}, ''), *outcomes),
            ),
        )

    def outcome(self, start):
        """What came of a start."""
        program = ORDER if start.is_of_order else self.program
        folder = self.ended_job.folder / start.name
        if not (folder / EXIT_CODE).exists():
            return Outcome(start.name, 'was not begun')
        try:
            launch = self.launch_apart(start.name, program, self.placement, self.num_tasks)
        except LaunchError as error:
            return Outcome(start.name, 'did not run as asked', str(error))
        if not (folder / ENDED).exists():
            return Outcome(start.name, 'hangs', f'it had not ended after {start.seconds} s')
        try:
            launch.assert_ended_well()
        except LaunchError as error:
            is_wrong = any(word in launch.reason for word in WRONG)
            return Outcome(
                start.name, 'gives a wrong answer' if is_wrong else 'crashes', str(error)
            )
        try:
            launch.assert_as_asked()
            report = read_result(launch.folder / RESULT, program, lambda: launch.reason)
            if start.is_of_order:
                self.hold_calls(report, launch)
                return Outcome(start.name, 'good')
            self.hold(report, launch, self.placement)
        except (LaunchError, SanityError) as error:
            return Outcome(start.name, 'did not run as asked', str(error))
        seconds = int((folder / ENDED).read_text())
        return self.good(start.name, report, start.env, ''.join(launch.output), seconds)

    def good(self, name, report, env, said, seconds=0):
        """A good start: its times, and which of its variables the MPI ignored."""
        times = tuple((one['op'], one['size'], one['time']['best']) for one in report['results'])
        ignored = self.words.ignored(env, variables_of(report), said)
        return Outcome(name, 'good', '', times, ignored, seconds)

    def figures(self):
        small = self.select(op='allreduce', size=8)['time']
        points = len(self.report['results'])
        return self.as_figures(allreduce_time=small['best'] * 1e6, points=points)


def variables_of(report):
    """The MPI's control variables, by name."""
    return {one['name']: one for one in report['control_variables']}
