"""The runs of a night: one, and where something looks worse than in good nights, up to two more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from assay import AssayError, say
from assay.comparing.sessions import without_partition
from assay.nights.outcome import (
    GONE,
    NightMemory,
    NightOutcome,
    known_bad_cases,
    no_longer_chosen,
    outcome_of_difference,
    outcome_of_run,
    suspicious_cases,
    with_left_out,
    worse_night,
)
from assay.one_run import RunRequest, choose_for, in_ordered_job, measure_once
from assay.report.diff import diff_conclusion, show_diff
from assay.results import node_turns
from assay.results.budget import Choice
from assay.results.cases import Run
from assay.results.diff.difference import Difference, difference
from assay.results.failures import failures
from assay.results.figure_series import measured_figures
from assay.results.history import History, StoredRun, load_history
from assay.results.runner import Concluded, make_ready
from assay.running import runs
from assay.running.node_choice import Way
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.selection import leaving_out
from assay.text import many

#: Good nights that one is held against, and how often what looks worse is measured again.
AGAINST, AGAIN = 5, 2


class NightMeasurement:
    """The measurement of a night.

    :param request: with the handle of the night's lock, which its jobs hold as well.
    :param memory: the file of what is known of earlier nights.
    :param budget: seconds for which cases are chosen; None to run them all.
    :param way: how nodes are chosen; None to leave them to the scheduler.
    """

    def __init__(
        self, request: RunRequest, memory: Path, budget: float | None, way: Way | None
    ) -> None:
        self.request, self.memory, self.budget, self.way = request, memory, budget, way
        #: What is run for the budget.
        self.choice: Choice | None = None

    def measure(self, memory: NightMemory, margin: float) -> tuple[NightOutcome, str | None]:
        """Measure, and hold what did not fail against good nights.

        :param margin: a change within it is called the same.
        :returns: the outcome, and the identifier of the run if it was a good one.
        :raises AssayError: if nothing could be measured.
        :raises SystemExit: if it was told to stop.
        """
        suite, site, given = self.request.suite, self.request.site, self.request.given
        handles = [*self.request.handles, *make_ready(suite, site, given.environments)]
        self.request = replace(self.request, handles=handles)
        suspects = known_bad_cases(memory.told)
        if self.budget is not None:
            self.choice = choose_for(self.request, self.budget, suspects=suspects)
        if self.way:
            node_turns.use_chosen_nodes(suite, site, self.way, suite.own)
        with in_ordered_job(self.request, self.choice, self.budget, suspects=suspects):
            ended = self._run(suite.own, given, (), self.choice)
            report, outcome = ended.run, outcome_of_run(ended.verdict, ended.run)
            outcome, good = self._held(outcome, report, memory, margin)
        if self.way:
            node_turns.tell_turns(suite, site, given.jobs)
        late = _late(report) if report else set()
        return with_left_out(outcome, memory.told, self.choice, late), good

    def _held(
        self, outcome: NightOutcome, report: Run | None, memory: NightMemory, margin: float
    ) -> tuple[NightOutcome, str | None]:
        """Compare a run that did not fail with good nights; returns the same as `measure`."""
        if outcome.word == 'FAILED' or report is None:
            return outcome, None
        tonight = report.uuid
        history = load_history()
        stored = {run.uuid: run for run in history.runs if not run.summary.problem}
        if tonight not in stored:
            raise AssayError('the run of this night is not in the history')
        good = [stored[uuid] for uuid in memory.good if uuid in stored]
        if good:
            held = self._against(history, good, report, margin)
            outcome = outcome if held.word == 'PASSED' else held
        elif memory.good:
            raise AssayError(
                'the good nights are no longer in the history: nothing is left to hold this one '
                f'against. To begin anew: rm {self.memory}'
            )
        else:
            say('there is no good night yet to hold this one against')
        return outcome, tonight if outcome.word == 'PASSED' else None

    def _run(
        self, own: RunFolder, given: Given, calm: Collection[str], choice: Choice | None = None
    ) -> Concluded:
        """A run, but for cases that are calm.

        :param calm: their names.
        :param choice: what is run, if there is a budget for it.
        """
        options = [*self.request.options, *leaving_out(calm)]
        request = replace(self.request, given=given, options=options)
        ended = measure_once(request, own, choice=choice)
        if ended.stopped:
            raise SystemExit(ended.exit_code)
        return ended

    def _against(
        self, history: History, good: list[StoredRun], run: Run, margin: float
    ) -> NightOutcome:
        """Hold this night against good ones; what looks worse is measured again first."""
        uuids = [run.uuid]
        names = {case.display_name for case in run.own_cases}
        no_more: Collection[str] = ()
        if self.choice:
            # Each of them ran another part: all that is remembered is needed.
            ran = {one.uuid: _cases(history, one) for one in good}
            tonight = {case.title for case in run.counted} - _late(run)
            no_more = no_longer_chosen(set().union(*ran.values()), self.choice)
            names |= {one.name for one in self.choice.left_out}
            good = [one for one in good if ran[one.uuid] & tonight]
            if not good:
                say('no good night ran any of this: there is nothing to hold it against')
                return (
                    worse_night(dict.fromkeys(sorted(no_more), GONE))
                    if no_more
                    else NightOutcome('PASSED')
                )
        elif not any(one.summary.left_out for one in good):
            good = good[-AGAINST:]
        found = self._difference(history, good, uuids, margin)
        for _ in range(AGAIN):
            suspects = {without_partition(case) for case in suspicious_cases(found)}
            if not suspects:
                break
            say(f'worse than in good nights, so measured again: {many(len(suspects), "case")}')
            # Options may name checks that are left out now.
            alone = replace(
                self.request.given,
                report=None,
                junit=None,
                variables=[],
                parameters=[],
                is_whole=False,
            )
            again = self._run(runs.begin_run(), alone, names - suspects)
            if again.run and failures(again.run):
                return outcome_of_run(again.verdict, again.run)
            if again.run:
                uuids.append(again.run.uuid)
            found = self._difference(load_history(), good, uuids, margin)
        if not self.choice:
            no_more = {one.test_case for one in found.only_before} - _late(run)
        outcome = outcome_of_difference(found, no_more)
        if outcome.word == 'PASSED':
            print(f'against {many(len(good), "good night")}: {diff_conclusion(found)}')
        else:
            show_diff(found)
        return outcome

    def _difference(
        self, history: History, good: list[StoredRun], uuids: Collection[str], margin: float
    ) -> Difference:
        tonight = [run for run in history.runs if run.uuid in uuids]
        try:
            return difference(history, good, tonight, margin)
        except AssayError as error:  # as where another selection is run from now on
            raise AssayError(
                f'this night cannot be held against good ones: {error} To begin anew: '
                f'rm {self.memory}'
            ) from None


def _late(run: Run) -> set[str]:
    """The cases that the job for all of them had no time left for."""
    return {case.title for case in run.own_cases if case.had_no_time}


def _cases(history: History, run: StoredRun) -> set[str]:
    """The cases that gave figures in a run."""
    return {figure.test_case for figure in measured_figures(history.figures([run]))}
