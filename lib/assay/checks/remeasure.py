"""Which jobs a check measures again: what others disturbed, and what ran on cores farther apart.

A figure that missed its reference while others disturbed the job is no evidence. A job whose cores
a hypervisor moved is evidence, but hardly comparable with the jobs of other runs.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, variable
from reframe.core.exceptions import PerformanceError

from assay import say
from assay.checks.part import CheckPart
from assay.config import references
from assay.job.launch import reports_in
from assay.machine.job_states import ENDED_BY_SCHEDULER, PREEMPTED
from assay.results.cases import NO_EVIDENCE, CaseFigure, reference_and_bounds
from assay.results.failures import describe_miss
from assay.results.rows import is_beyond, is_number
from assay.running import runs
from assay.running.processes import Others
from assay.text import fold_nodes
from assay.witness.disturbance import (
    AS_FAR,
    FARTHER_APART,
    LOST,
    MOVED,
    NOTICEABLE,
    foreign_seconds,
    interference,
)
from assay.witness.report import Report

#: Jobs of one case at most; jobs that all cases of a run may have beyond their first; and seconds
#: that all of them may wait. A longer disturbance will not pass by.
JOBS, MORE_JOBS, WAITING = 3, 20, 600

#: Of a case whose cores are elsewhere: its jobs at most, seconds before the second, twice as many
#: before each next one, and seconds that all cases of a run may take for it. Half of the spells
#: that were seen lasted 9 s, one in seven 25 s.
JOBS_ELSEWHERE, PAUSE, ELSEWHERE = 5, 2.0, 60.0

#: Cores are farther apart if a cache line takes so many times as long as over the shortest
#: distance, which is known from the luckiest of many jobs.
FARTHER = 2.0

#: Seconds over which the load of a machine is measured: the kernel counts CPU time in hundredths.
SAMPLE = 1.0

#: Of the time that ranks lost to other processes the part that others must be seen to have used.
SEEN = 0.5

#: Of what others used while they disturbed a job: if they use no more at the end of the wait, most
#: of them have left, and another job may well be good. Some services are never quiet.
REST = 0.25


@dataclass
class _Spent:
    """The jobs and time that the cases of this process have used so far to measure again."""

    jobs: int = 0
    waiting: float = 0.0
    elsewhere: float = 0.0
    #: Of their local jobs, in which something may have stayed.
    sessions: set[int] = field(default_factory=set)
    #: Seconds of a cache line from core to core, the shortest of all jobs: by host and the CPUs of
    #: each of its ranks.
    distances: dict[tuple[str, tuple[frozenset[int], ...]], float] = field(default_factory=dict)

    @property
    def waited(self) -> float:
        """Seconds, for whatever."""
        return self.waiting + self.elsewhere


_spent = _Spent()


def _patience() -> float:
    """Seconds that all cases of this run may wait: of a budget no more than its cases leave."""
    with suppress(FileNotFoundError):
        return min(WAITING, float(runs.this_run().patience.read_text()))
    return WAITING


def _distances_before() -> dict[str, float] | None:
    """Nanoseconds that the cores of cases were apart on their nodes in earlier runs.

    None where all jobs count, however they went: in an acceptance, or when settings are compared.
    """
    with suppress(FileNotFoundError):
        found: dict[str, float] = json.loads(runs.this_run().distances.read_text())
        return found
    return None


class IsMeasuredAgain(CheckPart):
    """A check whose job is measured again if a figure missed its reference while others disturbed.

    A good job is too, if a hypervisor moved its cores, or had them farther apart than those of
    others. Nothing else is: a job that was wrong, or missed a figure undisturbed, failed at once,
    however it would go the next time. The pipeline of ReFrame sees one job, that takes longer.
    """

    #: The longest that a case waits until others have left this machine; 0 to measure only once.
    wait_for_quiet: float = variable(typ.Duration, value='60s', allow_implicit=True)

    #: Why the case's job is no evidence: what it missed, and who disturbed it. Empty if it is one.
    no_evidence: str = variable(str, value='', loggable=True)

    #: Why each job before it was measured again.
    replaced: list[str] = variable(typ.List[str], value=[], loggable=True)

    _waits: Others | None = None
    #: What others used of all CPUs while the job ran that they disturbed.
    _disturbed_by = 0.0
    #: When a pause for cores that are elsewhere ends, and what it is for; None outside of one.
    _pause: tuple[float, str] | None = None
    _has_ended = False

    @run_before('run', always_last=True)
    def remember_how_it_began(self) -> None:
        # Whatever a user set.
        self.no_evidence, self.replaced = '', []
        self._not_submitted = copy.copy(self.job)
        self._files = {*Path(self.stagedir).rglob('*')}
        self._others = Others(_spent.sessions)
        self._jobs_elsewhere, self._began = 0, time.monotonic()

    def is_settled(self) -> bool:
        """Whether the job that has ended is the last of the case; called as long as it is not."""
        if self._has_ended:
            return True
        if self._waits:
            return self._has_waited_in_vain()
        if self._pause:
            ends, why = self._pause
            if time.monotonic() >= ends:
                self._pause = None
                self._measure_again(why)
            return self._has_ended
        reports = [*reports_in(Path(self.stagedir))]
        missed_by_job = cache(self._missed)  # which reads all that the job left
        self.no_evidence = self._why_not(reports, missed_by_job)
        if not self.no_evidence and self._jobs_elsewhere and (wrong := missed_by_job()):
            # Its first job missed nothing, and this one's cores may be farther apart still.
            self.no_evidence = '; '.join([*wrong, self.replaced[-1]])
        elif not self.no_evidence:
            why = self._elsewhere(reports, missed_by_job)
            self._has_ended = not why or not self._pauses_for_cores(why)
            return self._has_ended
        spent = _spent.jobs >= MORE_JOBS or _spent.waited >= _patience()
        last = len(self.replaced) - self._jobs_elsewhere + 1 >= JOBS
        if spent or last or not self.wait_for_quiet:
            self._has_ended = True
        elif self._is_local:
            say(f'{self.display_name}: {self.no_evidence}; measured again when they have gone')
            # Of all CPUs, as the wait looks at them all.
            self._disturbed_by = self._others.use().share
            self._waits, self._waits_since = Others(_spent.sessions), time.monotonic()
        else:  # wherever the scheduler puts it
            say(f'{self.display_name}: {self.no_evidence}; measured again')
            self._measure_again(self.no_evidence)
        return self._has_ended

    @property
    def _is_local(self) -> bool:
        return bool(self.current_partition.scheduler.is_local)

    def _has_waited_in_vain(self) -> bool:
        """Start the job once this machine is quiet; whether that took too long."""
        assert self._waits
        use, waited = self._waits.use(), time.monotonic() - self._waits_since
        if use.seconds < SAMPLE:
            return False
        is_over = waited >= self.wait_for_quiet or _spent.waited + waited >= _patience()
        quiet = max(NOTICEABLE, self._disturbed_by * REST) if is_over else NOTICEABLE
        if use.share < quiet:
            _spent.waiting += waited
            self._waits = None
            self._measure_again(self.no_evidence)
        elif is_over:
            _spent.waiting += waited
            self._has_ended = True
            self.no_evidence += f'; others did not leave within {waited:.0f} s'
            if use.busiest:
                self.no_evidence += f', at last {", ".join(use.busiest)}'
        else:
            self._waits = Others(_spent.sessions)
        return self._has_ended

    def _pauses_for_cores(self, why: str) -> bool:
        """Let the hypervisor have some seconds before the job is measured again; whether it may be.

        :param why: it is.
        """
        took = time.monotonic() - self._began
        pause = PAUSE * 2.0**self._jobs_elsewhere
        left = min(ELSEWHERE - _spent.elsewhere, _patience() - _spent.waited)
        is_last = self._jobs_elsewhere + 1 >= JOBS_ELSEWHERE
        if is_last or pause + took > left or not self.wait_for_quiet:
            return False
        say(f'{self.display_name}: {why}; measured again in {pause:g} s')
        _spent.elsewhere += pause + took
        self._jobs_elsewhere += 1
        self._pause = time.monotonic() + pause, why
        return True

    def _measure_again(self, why: str) -> None:
        """Submit the job once more, in a folder as it was before."""
        try:
            self._clear()
        except OSError as error:
            self._has_ended = True
            if self.no_evidence:
                self.no_evidence += f'; not measured again: {error}'
            return
        self.replaced = [*self.replaced, why]
        _spent.jobs += bool(self.no_evidence)
        self.no_evidence, self._began = '', time.monotonic()
        self._job = copy.copy(self._not_submitted)
        self._others = Others(_spent.sessions)
        # Without the hooks, which have done their work.
        rfm.RunOnlyRegressionTest.run(self)

    def _clear(self) -> None:
        """Remove what the job left: all of it, or none.

        :raises OSError: if something has to stay, as a file on NFS that a process has open.
        """
        stage = Path(self.stagedir)
        aside = Path(tempfile.mkdtemp(prefix=f'.{stage.name}.', dir=stage.parent))
        moved: list[tuple[Path, Path]] = []
        try:
            for path in sorted({*stage.rglob('*')} - self._files):
                with suppress(FileNotFoundError):  # it went with its folder
                    moved.append((path, path.rename(aside / str(len(moved)))))
        except OSError:
            for path, gone in moved:
                gone.rename(path)
            raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _elsewhere(
        self, reports: Sequence[Report], missed_by_job: Callable[[], list[str] | None]
    ) -> str:
        """How the cores of a good job were elsewhere than those of others; empty if they were not.

        Others are the jobs of this run with the same ranks on the same cores, and those of the case
        on the same nodes in earlier runs.
        """
        distances = _distances_before()
        if distances is None:
            return ''
        place = f'{self.current_partition.fullname}+{self.current_environ.name}'
        nodes = fold_nodes(self.job.nodelist or [])
        before = 1e-9 * distances.get(runs.name_on_nodes(self.display_name, place, nodes), math.inf)
        found = ''
        for report in reports:
            by_host = report.by_host()
            for host in report.hosts:
                seen = host.disturbance
                cpus = tuple(frozenset(one.cpus) for one in by_host[host.name])
                # Others than ranks on one core each the kernel itself may move.
                if not seen or not seen.most_core_latency or any(len(one) != 1 for one in cpus):
                    continue
                key = host.name, cpus
                nearest = min(seen.least_core_latency, _spent.distances.get(key, math.inf))
                _spent.distances[key] = nearest
                if seen.core_move >= AS_FAR:
                    found = MOVED
                elif seen.most_core_latency >= FARTHER * min(nearest, before):
                    found = found or FARTHER_APART
        return found if found and missed_by_job() == [] else ''

    def _why_not(
        self, reports: Sequence[Report], missed_by_job: Callable[[], list[str] | None]
    ) -> str:
        """Why the job is no evidence; nothing if it is."""
        if self._is_local:  # ReFrame starts it in a session of its own
            _spent.sessions.add(int(self.job.jobid))
        if self.job.state == PREEMPTED:
            return ENDED_BY_SCHEDULER[PREEMPTED]
        ranks = [rank for report in reports for rank in report.processes]
        use = self._others.use({cpu for rank in ranks for cpu in rank.cpus})
        if not self._is_local and self.current_partition.extras.get('on_this_machine'):
            return ''  # its nodes share CPUs: others than its ranks are its own on other nodes
        foreign = True
        if self._is_local:
            foreign = use.cpu >= max(LOST, SEEN * foreign_seconds(reports))
        others = [*interference(reports, foreign)]
        if getattr(self.job, 'was_suspended', False):
            others.append('its job was suspended: the scheduler gave its nodes to others meanwhile')
        if not others or not (wrong := missed_by_job()):
            return ''
        named = use.busiest if self._is_local and foreign else ()
        return '; '.join([*wrong, *others]) + ''.join(f', {one}' for one in named)

    def _missed(self) -> list[str] | None:
        """The figures that are beyond their bounds; None if something else is wrong with the job.

        A number of messages, or another figure that is to be exact, no others can have changed.
        """
        # What it finds must not stay, as another job may follow.
        trial = copy.copy(self)
        try:
            figures = trial.read_job()
        except Exception:  # which the check is about to tell by itself
            return None
        held = references.merge(self, self.layers, figures)
        if any(references.reference_loopholes(self, held, figures)):
            return None
        found = []
        for name, figure in figures.items():
            if not is_number(figure.value):
                return None
            reference = held.get(name)
            if not reference:
                continue
            held_to = reference.value, reference.lower, reference.upper
            seen = CaseFigure(name, figure.value, *reference_and_bounds(*held_to), figure.unit)
            misses = is_beyond(seen.value, seen.lower, seen.upper)
            if reference.excuse is not None:
                if not misses:  # which is a failure too, and not by others
                    return None
            elif misses:
                if figure.better == 'exact':
                    return None
                found.append(describe_miss(seen))
        return found

    def explain_miss(self, error: PerformanceError) -> PerformanceError:
        """The error of missed references, with what disturbed the job or moved its cores."""
        return PerformanceError(f'{NO_EVIDENCE}{self.no_evidence}') if self.no_evidence else error
