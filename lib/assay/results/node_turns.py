"""The last case of each node: by it nodes of the next cases are chosen, and a sentence reports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.machine.slurm import SCHEDULERS, is_free, switches
from assay.results.history import History, load_history
from assay.running import node_choice
from assay.running.allocation import IN_USE, options_for_sbatch, states_for
from assay.running.node_choice import NodeChoice, Way
from assay.running.runs import RunFolder
from assay.running.session import Suite
from assay.text import expand_nodes, fold_nodes, many

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


def _assert_has_slurm(site: _SiteConfig) -> None:
    for one in site.get('systems/0/partitions'):
        if one['scheduler'] not in SCHEDULERS:
            raise AssayError(
                f'nodes are chosen for jobs of Slurm, and the scheduler of {one["name"]} is '
                f'{one["scheduler"]}.'
            )


def use_chosen_nodes(suite: Suite, site: _SiteConfig, way: Way, own: RunFolder) -> None:
    """Have the cases of the sessions that follow on nodes chosen so.

    :param own: the folder of the first of them.
    :raises AssayError: if the scheduler takes no nodes.
    """
    _assert_has_slurm(site)
    path = own.folder / 'nodes.json'
    NodeChoice(way, last_used(load_history(), suite.system), switches()).write(path)
    suite.environment[node_choice.VARIABLE] = str(path)


@dataclass(frozen=True)
class NodeTurns:
    """The nodes of a system that are neither down nor taken out.

    :param states: in Slurm's words.
    :param late: those that had no case since some time.
    """

    states: Mapping[str, str]
    late: tuple[str, ...]

    @property
    def free(self) -> list[str]:
        """Late ones that can have a case now."""
        return [node for node in self.late if is_free(self.states[node])]

    def describe(self, when: str) -> str:
        """A sentence on the nodes that had no case.

        :param when: since that time, in words.
        """
        count = many(len(self.states), 'node')
        if not self.late:
            return f'each of {count} had a case {when}'
        return f'{len(self.late)} of {count} had no case {when}: {fold_nodes(self.late)}'


def turns(suite: Suite, site: _SiteConfig, since: float, jobs: Iterable[str] = ()) -> NodeTurns:
    """Ask Slurm for the nodes of a system, and the history for when each had a case.

    :param since: in seconds since 1970.
    :param jobs: what ``-J`` says: nodes that jobs cannot have by it do not count.
    :raises AssayError: if Slurm does not answer, is not the scheduler, or alone knows which nodes
        satisfy a constraint.
    """
    _assert_has_slurm(site)
    able: dict[str, str] = {}
    for one in site.get('systems/0/partitions'):
        states = states_for(options_for_sbatch(one.get('access', []), jobs)).items()
        able |= {node: state for node, state in states if state.startswith(IN_USE)}
    if not able:
        raise AssayError('Slurm has no node that jobs of this system can have.')
    used = last_used(load_history(), suite.system)
    return NodeTurns(able, tuple(node for node in able if used.get(node, 0.0) < since))


def tell_turns(suite: Suite, site: _SiteConfig, jobs: Iterable[str]) -> None:
    """Say which nodes of the system had no case within a week, of those that can have one.

    :param jobs: what ``-J`` says.
    """
    try:
        say(turns(suite, site, time.time() - WITHIN, jobs).describe('within a week'))
    except AssayError as error:
        say(f'which nodes had no case within a week is not known: {error}')
