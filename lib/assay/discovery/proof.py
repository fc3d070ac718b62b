"""What a configuration promises, held against jobs: a case for each way of messages."""

from __future__ import annotations

from collections.abc import Mapping

from assay import AssayError, say
from assay.config.fabrics import load_catalogue
from assay.discovery.draft import Draft, LeftOut
from assay.results.cases import Case
from assay.results.failures import is_good, reason, skipped
from assay.results.runner import Runner, make_ready
from assay.running import reframe_options, session
from assay.spelling import many

#: The check whose smoke case has one pair of ranks, on two nodes where the fabric has a reach.
CHECK = 'PointToPoint'
LABEL = 'init'

#: Partition, environment and fabric.
Way = tuple[str, str, str]


def prove(draft: Draft) -> tuple[LeftOut, dict[Way, str]]:
    """Run a smoke case of every partition, MPI and fabric of a system that is written.

    :returns: what was not confirmed and why; and what missed its references, or was disturbed.
    :raises AssayError: if it did not run.
    :raises SystemExit: if it was told to stop.
    """
    options = ['-n', f'^{CHECK}%']
    given = reframe_options.read(options)
    suite = session.suite(draft.name, 'smoke', [], given)
    site = suite.load()
    handles = make_ready(suite, site, given.environments)
    if any(one.is_this_machine for one in draft.partitions):
        options += ['--exec-policy=serial']  # its partitions share their CPUs as well
    say(f'confirming by {many(len(draft.pairs), "case")} of {CHECK} ...')
    found = Runner(suite, given, handles, 'init').run(suite.own, LABEL, options)
    if found.stopped:
        raise SystemExit(128 + found.stopped)
    if not found.run:
        raise AssayError('\n'.join([f'no case of {CHECK} was run:', *found.verdict.problems]))
    if found.unstored:
        raise AssayError('\n'.join(found.unstored))
    cases = {_way(case): case for case in found.run.own_cases}
    builds = {
        (case.partition, case.environment): reason(case)
        for case in found.run.counted
        if case.is_fixture and case.result == 'fail'
    }
    unable = dict(skipped(found.run, found.log or []))
    if found.verdict.of_session and not cases.keys() >= {*draft.pairs}:
        raise AssayError('\n'.join(['ReFrame did not run all cases:', *found.verdict.of_session]))
    left_out: LeftOut = {}
    noted: dict[Way, str] = {}
    for way in draft.pairs:
        partition, environment, fabric = way
        why = _why(cases.get(way), fabric, unable, builds)
        if why:
            left_out.setdefault(partition, {}).setdefault(environment, {})[fabric] = why
        elif not is_good(cases[way]):
            noted[way] = reason(cases[way])
    return left_out, noted


def _way(case: Case) -> Way:
    return case.partition, case.environment, case.fabric


def _why(
    case: Case | None,
    fabric: str,
    unable: Mapping[str, str],
    builds: Mapping[tuple[str, str], str],
) -> str | None:
    """Why a case has not confirmed what it asked for; None if it has.

    :param case: of the fabric; None if there was none.
    :param unable: why cases were skipped, by their titles.
    :param builds: why builds failed, by partition and environment.
    """
    if case is None:
        if load_catalogue().fabrics[fabric].crosses_nodes:
            return 'no case can show it here: a network takes a job of two nodes'
        return 'no case can show it here: memory takes a job of one node'
    if case.result == 'skip':
        return unable[case.title]
    if not case.fail_phase and (why := builds.get((case.partition, case.environment))):
        return f'its build failed: {why}'
    # What it asked for it has proved before its figures are held to references.
    if case.result == 'fail' and case.fail_phase == 'performance':
        return None
    return None if is_good(case) else reason(case)
