"""Which of the free nodes a case has, where a run says how they are chosen.

The command writes what it knows into a file; ReFrame's process chooses by that, for each job.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal, get_args

from assay import AssayError
from assay.files import explain_errors, json_text
from assay.text import unknown_name

#: The environment variable with the file.
VARIABLE = 'ASSAY_CHOOSE_NODES'

#: Those that had no case for the longest time; any; or nodes of one switch, of these the same.
Way = Literal['turn', 'random', 'switch']


class NodeChoice:
    """How nodes are chosen.

    :param used: when nodes last had a case, in seconds since 1970; the others never had one.
    :param switches: the nodes behind each leaf switch.
    """

    def __init__(
        self,
        way: Way,
        used: Mapping[str, float],
        switches: Mapping[str, Collection[str]],
    ) -> None:
        self.way, self.switches = way, switches
        self._used = {**used}

    def choose(self, free: Collection[str], count: int) -> list[str]:
        """So many of the free nodes; none if there are too few."""
        if len(free) < count:
            return []
        if self.way == 'random':
            return SystemRandom().sample(sorted(free), count)
        if self.way == 'turn':
            return self._longest_unused(free)[:count]
        groups = self._behind_switches(free)
        fitting = [self._longest_unused(group)[:count] for group in groups if len(group) >= count]
        if fitting:
            return min(fitting, key=lambda nodes: [self._used.get(node, 0.0) for node in nodes])
        # As few switches as possible.
        groups.sort(key=len, reverse=True)
        return [node for group in groups for node in self._longest_unused(group)][:count]

    def take(self, free: Collection[str], count: int) -> list[str]:
        """The same, for a case that has them from now on."""
        found = self.choose(free, count)
        self._used.update(dict.fromkeys(found, time.time()))
        return found

    def _longest_unused(self, nodes: Iterable[str]) -> list[str]:
        return sorted(nodes, key=lambda node: (self._used.get(node, 0.0), node))

    def _behind_switches(self, nodes: Collection[str]) -> list[list[str]]:
        """The nodes of each switch; those of none are as if they had one of their own."""
        groups = [[node for node in those if node in nodes] for those in self.switches.values()]
        others = {*nodes}.difference(*groups)
        return [group for group in (*groups, sorted(others)) if group]

    def write(self, path: Path) -> None:
        """Keep it for :func:`choice_of_run`.

        :raises AssayError: if it cannot be written.
        """
        own = {'way': self.way, 'used': self._used, 'switches': self.switches}
        with explain_errors(path, 'written'):
            path.write_text(json_text(own))


def way_of(text: str) -> Way:
    """:raises AssayError: if it is none."""
    for way in get_args(Way):
        if way == text:
            found: Way = way
            return found
    raise AssayError(f'--choose-nodes {text}: {unknown_name(text, "way", get_args(Way))}')


def choice_of_run(environment: Mapping[str, str] = os.environ) -> NodeChoice | None:
    """The choice of nodes that a command wrote for its runs; None to leave it to the scheduler."""
    path = environment.get(VARIABLE)
    return _read(path) if path else None


@cache
def _read(path: str) -> NodeChoice:
    return NodeChoice(**json.loads(Path(path).read_text()))


class Promised:
    """The nodes of jobs that have not ended: to a scheduler those of a job that waits are free."""

    def __init__(self, has_ended: Callable[[Any], bool]) -> None:
        self._has_ended = has_ended
        self._jobs: list[tuple[Any, list[str]]] = []

    def add(self, job: Any, nodes: list[str]) -> None:
        """A job is to have these nodes."""
        self._jobs.append((job, nodes))

    @property
    def nodes(self) -> set[str]:
        """The nodes that jobs have, or wait for."""
        self._jobs = [(job, nodes) for job, nodes in self._jobs if not self._has_ended(job)]
        return {node for _, nodes in self._jobs for node in nodes}
