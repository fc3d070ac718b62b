"""A run of the suite up to its verdict, for the commands that make runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.report.conclusion import conclude
from assay.report.progress import Progress
from assay.results.verdict import Verdict
from assay.running import selection
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.session import Suite
from assay.running.supervise import Ended

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def measure(
    suite: Suite,
    site: _SiteConfig,
    own: Run,
    given: Given,
    label: str | None,
    options: Sequence[str],
    handles: Sequence[int],
    seconds: float = 0.0,
) -> tuple[Verdict, Ended]:
    """Let ReFrame run, and judge, show and store what came of it.

    :param own: the folder of the run.
    :param options: of ReFrame.
    :param handles: locks that are held as long as it runs.
    :param seconds: that the run has taken so far.
    """
    began = time.monotonic()
    end = suite.run(own, label, options, handles, Progress(own, given))
    if not end.code and not own.report.exists():
        selection.explain(site, suite.environment, given)
    return conclude(own, end, given, seconds + time.monotonic() - began), end
