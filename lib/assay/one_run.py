"""A run of the suite up to its verdict, for the commands that make runs."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.comparing.against import PURPOSE, Against
from assay.files import explain_errors
from assay.machine.slurm import AwayError
from assay.report import junit
from assay.report.diff import conclusion_against, show_against
from assay.report.progress import Progress, conclude_run
from assay.report.terminal import show_budget
from assay.results import node_turns
from assay.results.budget import Choice, fill_budget
from assay.results.case_history import CaseHistory, case_histories
from assay.results.diff.cores import tell_distances
from assay.results.history import StoredRun, load_history
from assay.results.node_turns import NodeTurns
from assay.results.run_selectors import of_system
from assay.results.runner import Concluded, Runner
from assay.results.verdict import Verdict
from assay.running import allocation, runs, selection, session_extras, turn
from assay.running.asking import OUTAGE
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.selection import list_cases
from assay.running.session import Suite
from assay.text import many
from assay.tools import NoAnswerError

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Runs before that one is likely to be compared with.
LATEST = 10

#: Seconds between two questions whether a node is idle.
LOOK = 30

#: After how many runs that reached no other node no more are made.
IN_VAIN = 3


@dataclass(frozen=True)
class RunRequest:
    """The settings that runs are made with.

    :param site: the system's configuration.
    :param given: what was asked of ReFrame.
    :param label: of the runs.
    :param options: of ReFrame.
    :param handles: locks that are held as long as they run.
    """

    suite: Suite
    site: _SiteConfig
    given: Given
    label: str | None
    options: Sequence[str]
    handles: Sequence[int] = ()


def measure_once(
    request: RunRequest, own: RunFolder, seconds: float = 0.0, choice: Choice | None = None
) -> Concluded:
    """Let ReFrame run, and judge, show and store the results.

    :param own: the folder of the run.
    :param seconds: that the run has taken so far.
    :param choice: the cases that are run, if there is a budget for it.
    """
    suite, given, options = request.suite, request.given, request.options
    began = time.monotonic()
    own.distances.write_text('{}')
    with suppress(AssayError):  # which is reported when the run is judged
        history = load_history()
        tell_distances(own, history, of_system(history, suite.system)[-LATEST:])
    if choice:
        options = [*options, *options_for_choice(choice)]
        own.patience.write_text(f'{choice.budget - choice.expected:.1f}')
    end = suite.run(own, request.label, options, request.handles, Progress(own, given))
    if not end.code and not own.report.exists():
        selection.explain_selection(request.site, given)
    seconds += time.monotonic() - began
    return conclude_run(own, end, given, seconds, choice, request.site)


def measure_against(
    request: RunRequest,
    before: Sequence[StoredRun],
    selected: Collection[str],
    repeat: int,
    budget: float,
    choice: Choice | None = None,
) -> int:
    """Make runs, and compare them with stored ones: what looks worse is measured again.

    :param before: the stored runs.
    :param selected: names of the cases that the options select.
    :param repeat: how many runs are made before anything is compared.
    :param budget: seconds for measuring again what looks worse; with a choice for that and the runs
        together.
    :returns: the exit code: 1 if something is worse or failed, 3 if that could not be decided or
        others disturbed it, 128 and the number of a signal that stopped it.
    :raises AssayError: if nothing can be compared.
    """
    began = time.monotonic()
    after: list[str] = []
    verdicts: list[Verdict] = []
    for number in range(repeat):
        own = runs.begin_run() if number else request.suite.own
        ended = measure_once(request, own, choice=choice)
        if ended.stopped or not ended.run:
            return ended.exit_code
        after.append(ended.run.uuid)
        verdicts.append(ended.verdict)
        if ended.verdict.word == 'FAILED':  # which more runs would not mend
            break
    word = max((one.word for one in verdicts), key=('PASSED', 'DISTURBED', 'FAILED').index)
    left = budget - (time.monotonic() - began if choice else 0.0)
    given = request.given
    options = [*request.options, *(options_for_choice(choice) if choice else [])]
    # Options may name checks that are left out of a round.
    some = replace(given, variables=[], parameters=[], is_whole=False)
    runner = Runner(request.suite, some, request.handles, PURPOSE)
    about = options, request.label, before, after, selected
    held = Against(runner, *about).decide(left if word != 'FAILED' else None)
    show_against(held, word, given.everything)
    if given.junit and (held.difference.exit_code or held.is_broken or held.signal):
        problems = (*verdicts[0].problems, conclusion_against(held, word))
        unmeasured = choice.titles_left_out if choice else ()
        junit.write_of_run(given.junit, request.suite.own, Verdict(problems), unmeasured)
    if held.signal:
        return 128 + held.signal
    if word == 'FAILED' or held.is_broken:
        return 1
    return held.difference.exit_code or (3 if word == 'DISTURBED' else 0)


def measure_every_node(request: RunRequest, budget: float | None) -> int:
    """Make runs on nodes that are idle, those without a case first, until each node had one.

    :param budget: seconds after which no more run begins; None for no bound.
    :returns: the exit code: 1 if something failed, 3 if others disturbed it, 128 and the number of
        a signal that stopped it.
    :raises AssayError: if Slurm does not tell its nodes.
    """
    suite, site = request.suite, request.site
    began, end_of_budget = time.time(), time.monotonic() + (math.inf if budget is None else budget)
    codes: list[int] = []
    in_vain = 0
    now = node_turns.turns(suite, site, began, request.given.jobs)
    while now.late and _has_free(request, began, end_of_budget):
        own = runs.begin_run() if codes else suite.own
        node_turns.use_chosen_nodes(suite, site, 'turn', own)
        ended = measure_once(request, own)
        if ended.stopped or not ended.run:
            return ended.exit_code
        if codes:
            os.close(own.handle)
        codes.append(ended.exit_code)
        until = max(end_of_budget, time.monotonic() + OUTAGE)
        before, after = now, _turns(request, began, until)
        if not after:
            say(f'{many(len(codes), "run")}: which nodes had a case is not known')
            return _worst(codes)
        now = after
        in_vain = 0 if {*before.late} - {*now.late} else in_vain + 1
        if in_vain == IN_VAIN:
            say(f'no other node had a case in the last {IN_VAIN} runs, so no more are made')
            break
    say(f'{many(len(codes), "run")}: {now.describe("in them")}')
    return _worst(codes)


def _worst(codes: Sequence[int]) -> int:
    return max(codes, key=(0, 3, 1).index, default=3)


def _turns(request: RunRequest, since: float, until: float) -> NodeTurns | None:
    """Whose turn it is as soon as Slurm answers; None if it does not in time.

    :param until: that time, by the monotonic clock.
    """
    while True:
        try:
            return node_turns.turns(request.suite, request.site, since, request.given.jobs)
        except (AwayError, NoAnswerError) as error:
            left = until - time.monotonic()
            if left <= 0:
                say(str(error))
                return None
            time.sleep(min(LOOK, left))


def _has_free(request: RunRequest, since: float, until: float) -> bool:
    """Wait for a node without a case that can have one; False if there is none in time.

    :param until: that time, by the monotonic clock.
    """
    has_told = False
    while time.monotonic() < until:
        now = _turns(request, since, until)
        if not now or now.free or not now.late:
            return bool(now and now.late)
        if not has_told:
            has_told = True
            say(f'waiting until a node is idle: {now.describe("yet")}')
        time.sleep(min(LOOK, max(0.0, until - time.monotonic())))
    return False


def choose_for(
    request: RunRequest, budget: float, times: int = 1, suspects: Collection[str] = ()
) -> Choice:
    """Choose the cases that say most in a time, of those that the options select, and say which.

    :param budget: seconds.
    :param times: how often each case is run.
    :param suspects: titles of cases that are worth as much as those that failed.
    :raises AssayError: if nothing is selected, or nothing fits.
    """
    began, suite = time.monotonic(), request.suite
    cases = list_cases(suite.command, request.options, suite.environment)
    # The run itself reads the checks again.
    beside = time.monotonic() - began
    if not cases:
        selection.explain_selection(request.site, request.given)
    choice = fill_budget(
        cases, case_histories(load_history(), suite.system), budget, beside, times, suspects
    )
    show_budget(choice)
    return choice


@contextmanager
def in_ordered_job(
    request: RunRequest,
    choice: Choice | None,
    budget: float | None,
    times: int = 1,
    suspects: Collection[str] = (),
) -> Iterator[str | None]:
    """Have the one job for all cases within, if there is to be one: its number.

    Its time left is a budget: the cases that say most come first, and the others have the rest. The
    steps read that from a file, and the known times of cases, so that no case is started that would
    not end in time.

    :param choice: what was chosen for a budget.
    :param budget: seconds that the run may take, if that is given.
    :param times: how often each case is run.
    :param suspects: titles of cases that are worth as much as those that failed.
    :raises AssayError: if there is no such job, or Slurm does not answer.
    """
    suite, site, options = request.suite, request.site, request.options
    if not suite.is_one_job:
        yield None
        return
    # Before the job has nodes, which would wait for it.
    began = time.monotonic()
    cases = choice.listed if choice else list_cases(suite.command, options, suite.environment)
    beside = time.monotonic() - began  # the run itself reads the checks again
    known = case_histories(load_history(), suite.system)
    with suite.in_one_job(site, request.given, options, cases, budget) as job:
        now = allocation.ask_standing(job) if job else None
        if now and now.nodes:  # or the steps tell that it has ended
            told = _times(known)
            if not math.isinf(now.left):
                count = 1 if turn.is_needed(site) else len(now.nodes)
                with suppress(AssayError):  # nothing fits: the steps find that out by themselves
                    found = fill_budget(cases, known, now.left, beside, times, suspects, count)
                    told |= _first(found, job)
            path = suite.own.folder / 'times.json'
            with explain_errors(path, 'written'):
                path.write_text(json.dumps(told))
            suite.environment[allocation.TIMES] = str(path)
        yield job


def _first(found: Choice, job: str | None) -> dict[str, object]:
    """The order of cases for the steps of an allocation; empty if there is time for all cases."""
    if not found.left_out or found.assumed == found.cases:
        return {}
    of = found.cases + found.cases_left_out
    say(
        f'the job {job} has {found.budget:.0f} s left, expected to be enough for '
        f'{found.cases} of {many(of, "case")}, which come first'
    )
    return {allocation.FIRST: [case.title for case in found.listed]}


def _times(known: Mapping[str, CaseHistory]) -> dict[str, object]:
    """The last times of cases for :mod:`assay.running.steps`: as steps, and as jobs."""
    steps = {
        title: max(one.seconds_of_steps) for title, one in known.items() if one.seconds_of_steps
    }
    jobs = {title: min(one.seconds) for title, one in known.items() if one.seconds}
    return {allocation.STEPS: steps, allocation.JOBS: jobs}


def options_for_choice(choice: Choice) -> list[str]:
    """ReFrame's options that run what was chosen alone, and store how much that was not."""
    left_out = selection.leaving_out(one.name for one in choice.left_out)
    return [*left_out, session_extras.option_for_left_out(choice.cases_left_out)]
