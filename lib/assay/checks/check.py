"""The base class of all checks of MPI programs, composed of one file for each part of it.

A check names its program and its figures, and nothing about launchers, MPIs and fabrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

import reframe as rfm
from reframe.core.builtins import fixture, required, run_after
from reframe.core.exceptions import JobError, PerformanceError, ReframeError
from reframe.utility import import_module_from_file

from assay import AssayError, paths
from assay.checks.build import BuildSources
from assay.checks.cases import IN_QUEUE, HasCases, KeepsTimeLimit, TakesTurns
from assay.checks.judged import Attributed, IsJudged
from assay.checks.launching import IsStarted
from assay.checks.leftovers import TellsLeftovers
from assay.checks.remeasure import IsMeasuredAgain
from assay.config.lint import check_classes
from assay.running.site_applications import site_applications


# ReFrame runs the hooks of the last base first. Only a special class may replace a phase.
class MpiCheck(
    rfm.RunOnlyRegressionTest,
    IsStarted,
    IsJudged,
    TellsLeftovers,
    HasCases,
    Attributed,
    TakesTurns,
    KeepsTimeLimit,
    IsMeasuredAgain,
    special=True,  # type: ignore[call-arg]  # which mypy, without ReFrame's own types, misses
):
    """An MPI program on a fabric, in a layout, at a scale, with the witness preloaded.

    A subclass gives ``executable`` and ``executable_opts`` and defines :meth:`verify_answers` and
    :meth:`figures`; one that lacks what :attr:`needs` names is refused when it is loaded. It
    narrows ``layout``, ``scale`` and ``ranks`` to what it is good for. The first layout on one
    node, and between two and four, is the ``smoke`` mode, up to two nodes is ``maintenance``,
    everything is ``acceptance``.

    What happens in each phase of ReFrame's, and what a subclass may do there:

    ===========  ==============================================  ==================================
    phase        here                                            a subclass
    ===========  ==============================================  ==================================
    init         fails if the subclass lacks something; where    sets ``ranks``; narrows where its
                 each case can run, and its modes                cases run; says which are smoke
                 (:mod:`~assay.checks.cases`)
    setup        references are read; layout, fabric and         changes the environment
                 the scheduler's options
                 (:mod:`~assay.checks.launching`)
    run          waits for its turn; tells what was built; the   sets ``executable`` and
                 witness is preloaded                            ``executable_opts``; starts others
                                                                 in the same job by ``start_before``
    run ends     the job is measured again if it is no evidence
                 (:mod:`~assay.checks.remeasure`)
    sanity       the job's end; the program's answers; MPI,      ``verify_answers``, or all of
                 ranks, layout and fabric                        ``verify``
                 (:mod:`~assay.checks.judged`); variables that
                 were left (:mod:`~assay.checks.leftovers`)
    performance  figures, held to references                     ``figures``, which ``measures``
                                                                 declares
    cleanup      fails if any of that was left out
    ===========  ==============================================  ==================================
    """

    build: BuildSources = fixture(BuildSources, scope='environment')
    time_limit = '5m'
    max_pending_time = IN_QUEUE
    # None until a check is set up. Where there is a value, ReFrame 4.10.4 walks the stack twice for
    # each case, to see who used a deprecated name of it: half of the time that a start took.
    env_vars = required

    #: What a subclass has to define, and what for.
    needs: Mapping[str, str] = {
        'verify_answers': "hold the program's own verdict against what was asked",
        'figures': 'turn what the job left into figures',
    }

    @run_after('init')
    def assert_defined(self) -> None:
        mine = type(self)
        for name, purpose in self.needs.items():
            own = getattr(mine, name, None)
            # One that defines all of `verify` calls what it needs itself.
            is_spared = name == 'verify_answers' and mine.verify is not MpiCheck.verify
            if own is getattr(MpiCheck, name, None) and not is_spared:
                raise ReframeError(f'{mine.__name__} does not define {name}, to {purpose}')

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """The attributes that ReFrame logs, but one for which it walks the stack at each figure."""
        of_reframe: Any = type(cls)
        return [one for one in of_reframe.loggable_attrs(cls) if one[0] != 'variables']

    def run_complete(self) -> bool:
        try:
            return super().run_complete() and (self.is_dry_run() or self.is_settled())
        except JobError:
            if self.job.state == 'TIMEOUT':  # which ReFrame itself ended: it comes no further
                self.look_for_leftovers()
            raise

    def performance(self) -> None:
        try:
            super().performance()
        except PerformanceError as error:
            raise self.explain_miss(error) from None

    def disable_hook(self, hook_name: str) -> NoReturn:
        raise ReframeError(f'--disable-hook={hook_name}: {type(self).__name__} proves by its hooks')


@cache
def all_checks() -> dict[str, type[MpiCheck]]:
    """The check classes of this checkout, by their names.

    They are made before ReFrame has a system: afterwards they would have only its own fabrics and
    scales as parameters.

    :raises AssayError: if a file of checks cannot be loaded.
    """
    found = {}
    for path in sorted(paths.CHECKS.rglob('*.py')):
        try:
            for name in check_classes(path):
                found[name] = getattr(import_module_from_file(str(path)), name)
            # A check only where the site has applications: no decorator says so.
            if path == paths.CHECKS / 'apps' / 'site.py' and site_applications():
                found['SiteApplication'] = import_module_from_file(str(path)).SiteApplication
        except Exception as error:  # a check file is a program: it can raise anything
            told = f'{path} cannot be loaded: {type(error).__name__}: {error}'
            raise AssayError(told) from None
    return found
