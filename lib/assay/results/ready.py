"""What has to be there before the jobs of a run: its turn, a database that takes it, and builds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from assay import say
from assay.results import store
from assay.running.session import Suite
from assay.spack import builds

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def make_ready(suite: Suite, site: _SiteConfig, environments: Iterable[str]) -> list[int]:
    """Wait for the turn, set a damaged database aside, and build what cannot wait for a job.

    :param site: the configuration, loaded.
    :param environments: expressions, one of which an environment of the run matches.
    :returns: handles to be kept open as long as the turn lasts.
    :raises AssayError: if something cannot be had.
    """
    # Before a wait that may be long.
    builds.assert_possible(site, suite.system, environments)
    handles = suite.take_turn(site)
    if aside := store.make_ready():
        say(f'the results database was damaged: it is {aside} now, and a new one begins')
    # Before any job: what cannot be built fails here.
    builds.install_for_checks(site, suite.system, environments)
    return handles
