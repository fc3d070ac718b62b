"""When nodes last had a case, by which those of the next cases are chosen and all are told."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.machine.slurm import SCHEDULERS, node_states, partitions_in, switches
from assay.results.history import History, load
from assay.running import node_choice
from assay.running.allocation import IN_USE
from assay.running.node_choice import NodeChoice, Way
from assay.running.session import Suite
from assay.spelling import many
from assay.text import expand_nodes, fold_nodes

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Seconds within which each node is to have had its turn: a week.
WITHIN = 7 * 24 * 3600


def last_used(history: History, system: str) -> dict[str, float]:
    """When each node last had a case that measured something, in seconds since 1970.

    :param system: it may be ``name:partition``.
    """
    import polars as pl

    name = system.partition(':')[0]
    runs = [run for run in history.runs if run.summary.system == name and not run.is_of_the_future]
    jobs = (
        history.figures(runs)
        .filter(pl.col('nodes').is_not_null() & pl.col('measured').is_not_null())
        .group_by('nodes')
        .agg(pl.col('measured').max())
    )
    found: dict[str, float] = {}
    for nodes, ended in jobs.iter_rows():
        with suppress(ValueError):  # no names of hosts
            for node in expand_nodes(nodes):
                found[node] = max(found.get(node, 0.0), ended.timestamp())
    return found


def choose_nodes(suite: Suite, site: _SiteConfig, way: Way) -> None:
    """Have the cases of the sessions that follow on nodes chosen so.

    :raises AssayError: if the scheduler cannot be told nodes.
    """
    for one in site.get('systems/0/partitions'):
        if one['scheduler'] not in SCHEDULERS:
            raise AssayError(
                f'--choose-nodes is for jobs of Slurm, and the scheduler of {one["name"]} is '
                f'{one["scheduler"]}.'
            )
    path = suite.own.folder / 'nodes.json'
    NodeChoice(way, last_used(load(), suite.system), switches()).write(path)
    suite.environment[node_choice.VARIABLE] = str(path)


def tell_turns(suite: Suite, site: _SiteConfig) -> None:
    """Say which nodes of the system had no case within a week, of those that can have one."""
    try:
        states: dict[str, str] = {}
        for one in site.get('systems/0/partitions'):
            states |= node_states(partitions_in(' '.join(one.get('access', []))))
        used = last_used(load(), suite.system)
    except AssayError as error:
        say(f'which nodes had no case within a week is not known: {error}')
        return
    since = time.time() - WITHIN
    nodes = [node for node, state in states.items() if state.startswith(IN_USE)]
    late = [node for node in nodes if used.get(node, 0.0) < since]
    if late:
        told = f'{len(late)} of {many(len(nodes), "node")} had no case within a week'
        say(f'{told}: {fold_nodes(late)}')
    else:
        say(f'each of {many(len(nodes), "node")} had a case within a week')
