"""What a check does with a job that others disturbed: it is no evidence, and measured again."""

from __future__ import annotations

import copy
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, variable
from reframe.core.exceptions import PerformanceError
from reframe.core.pipeline import RegressionTestPlugin

from assay import say
from assay.config import references
from assay.job.launch import witnessed_in
from assay.machine.job_states import ENDED_BY_SCHEDULER, PREEMPTED
from assay.programs.figure import Figure
from assay.results.cases import NO_EVIDENCE, bound
from assay.results.failures import missed
from assay.results.rows import is_beyond, is_number
from assay.running import runs
from assay.running.processes import Others
from assay.witness.disturbance import LOST, NOTICEABLE, by_others, foreign_seconds

#: Jobs of one case at most; jobs that all cases of a run may have beyond their first; and seconds
#: that all of them may wait. A longer disturbance will not pass by.
JOBS, MORE_JOBS, WAITING = 3, 20, 600

#: Seconds over which the load of a machine is measured: the kernel counts CPU time in hundredths.
SAMPLE = 1.0

#: Of the time that ranks lost to other processes the part that others must be seen to have used.
SEEN = 0.5


@dataclass
class _Spent:
    """What the cases of this process have had so far."""

    jobs: int = 0
    waiting: float = 0.0
    #: Of their local jobs, in which something may have stayed.
    sessions: set[int] = field(default_factory=set)


_spent = _Spent()


def _patience() -> float:
    """Seconds that all cases of this run may wait: of a budget no more than its cases leave."""
    with suppress(FileNotFoundError):
        return min(WAITING, float(runs.this().patience.read_text()))
    return WAITING


class IsMeasuredAgain(RegressionTestPlugin):
    """A check whose job is measured again if a figure missed its reference while others disturbed.

    Nothing else is: a job that was wrong, or missed a figure undisturbed, failed at once, however
    it would go the next time. The pipeline of ReFrame sees one job, that takes longer.
    """

    # What the bases beside it give: for mypy only.
    if TYPE_CHECKING:

        def read_job(self) -> dict[str, Figure]: ...

    #: The longest that a case waits until others have left this machine; 0 to measure only once.
    wait_for_quiet: float = variable(typ.Duration, value='60s', allow_implicit=True)

    #: Why the case's job is no evidence: what it missed, and who disturbed it. Empty if it is one.
    no_evidence: str = variable(str, value='', loggable=True)

    #: The same of each job before it.
    replaced: list[str] = variable(typ.List[str], value=[], loggable=True)

    _waits: Others | None = None
    _has_ended = False

    @run_before('run', always_last=True)
    def remember_how_it_began(self) -> None:
        # Whatever a user set.
        self.no_evidence, self.replaced = '', []
        self._not_submitted = copy.copy(self.job)
        self._files = {*Path(self.stagedir).rglob('*')}
        self._others = Others(_spent.sessions)

    def is_settled(self) -> bool:
        """Whether the job that has ended is the last of the case; called as long as it is not."""
        if self._has_ended:
            return True
        if self._waits:
            return self._has_waited_in_vain()
        self.no_evidence = self._why_not()
        spent = _spent.jobs >= MORE_JOBS or _spent.waiting >= _patience()
        last = len(self.replaced) + 1 >= JOBS
        if not self.no_evidence or spent or last or not self.wait_for_quiet:
            self._has_ended = True
        elif self._is_local:
            say(f'{self.display_name}: {self.no_evidence}; measured again when they have gone')
            self._waits, self._waits_since = Others(_spent.sessions), time.monotonic()
        else:  # wherever the scheduler puts it
            say(f'{self.display_name}: {self.no_evidence}; measured again')
            self._measure_again()
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
        if use.share < NOTICEABLE:
            _spent.waiting += waited
            self._waits = None
            self._measure_again()
        elif waited >= self.wait_for_quiet or _spent.waiting + waited >= _patience():
            _spent.waiting += waited
            self._has_ended = True
            self.no_evidence += f'; others did not leave within {waited:.0f} s'
            if use.busiest:
                self.no_evidence += f', at last {", ".join(use.busiest)}'
        else:
            self._waits = Others(_spent.sessions)
        return self._has_ended

    def _measure_again(self) -> None:
        """Submit the job once more, in a folder as it was before."""
        try:
            self._clear()
        except OSError as error:
            self._has_ended = True
            self.no_evidence += f'; not measured again: {error}'
            return
        self.replaced = [*self.replaced, self.no_evidence]
        self.no_evidence = ''
        _spent.jobs += 1
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

    def _why_not(self) -> str:
        """Why the job is no evidence; nothing if it is."""
        if self._is_local:  # ReFrame starts it in a session of its own
            _spent.sessions.add(int(self.job.jobid))
        if self.job.state == PREEMPTED:
            return ENDED_BY_SCHEDULER[PREEMPTED]
        reports = [*witnessed_in(Path(self.stagedir))]
        ranks = [rank for report in reports for rank in report.processes]
        use = self._others.use({cpu for rank in ranks for cpu in rank.cpus})
        if not self._is_local and self.current_partition.extras.get('on_this_machine'):
            return ''  # its nodes share CPUs: others than its ranks are its own on other nodes
        foreign = True
        if self._is_local:
            foreign = use.cpu >= max(LOST, SEEN * foreign_seconds(reports))
        others = [*by_others(reports, foreign)]
        if getattr(self.job, 'was_suspended', False):
            others.append('its job was suspended: the scheduler gave its nodes to others meanwhile')
        if not others or not (wrong := self._missed()):
            return ''
        named = use.busiest if self._is_local and foreign else ()
        return '; '.join([*wrong, *others]) + ''.join(f', {one}' for one in named)

    def _missed(self) -> list[str]:
        """The figures that are beyond their bounds, where that is all that is wrong with the job.

        A number of messages, or another figure that is to be exact, no others can have changed.
        """
        # What it finds must not stay, as another job may follow.
        trial = copy.copy(self)
        try:
            figures = trial.read_job()
        except Exception:  # which the check is about to tell by itself
            return []
        held = references.merge(self, self.layers, figures)
        if any(references.problems(self, held, figures)):
            return []
        found = []
        for name, figure in figures.items():
            if not is_number(figure.value):
                return []
            reference = held.get(name)
            if not reference:
                continue
            lower, upper = (
                bound(reference.value, one) for one in (reference.lower, reference.upper)
            )
            misses = is_beyond(figure.value, lower, upper)
            if reference.excuse is not None:
                if not misses:  # which is a failure too, and not by others
                    return []
            elif misses:
                if figure.better == 'exact':
                    return []
                found.append(missed(name, figure.value, figure.unit, reference.value, lower, upper))
        return found

    def told(self, error: PerformanceError) -> PerformanceError:
        """That figures missed their references, as what it is."""
        return PerformanceError(f'{NO_EVIDENCE}{self.no_evidence}') if self.no_evidence else error
