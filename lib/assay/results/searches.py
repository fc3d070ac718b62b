"""Conclusions of searches for the change that made figures worse, from their journals."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import TypeAdapter

from assay import AssayError, paths
from assay.files import whole_lines

#: Of the line of a journal that has it.
CONCLUDED = 'concluded'


@dataclass(frozen=True)
class Conclusion:
    """How a search ended, the last time that it was run.

    :param before: identifiers of the runs before.
    :param after: of those after.
    :param case: whose figures were to be explained.
    :param told: the answer, in a line.
    :param command: that shows the evidence, and goes on if there is none yet.
    :param reproduce: two commands, without what did it and with it; empty without an answer.
    """

    before: frozenset[str]
    after: frozenset[str]
    case: str
    told: str
    command: str
    reproduce: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f'{self.told} ({self.case}): `{self.command}`'


#: What reads one.
CONCLUSION = TypeAdapter(Conclusion)


def conclusions_of(run: str) -> list[Conclusion]:
    """The conclusions of searches that had a run before or after, the oldest search first."""
    return [one for one in _conclusions() if run in one.before | one.after]


def conclusions_between(before: Iterable[str], after: Iterable[str]) -> list[Conclusion]:
    """The conclusions of searches between the same runs, the oldest search first."""
    sides = frozenset(before), frozenset(after)
    return [one for one in _conclusions() if (one.before, one.after) == sides]


def _conclusions() -> list[Conclusion]:
    """The last conclusion of each journal; a damaged or missing journal gives none."""
    found = []
    for path in paths.CULPRITS.glob('*.jsonl'):
        last = None
        try:
            for line in whole_lines(path):
                if line.startswith(f'{{"{CONCLUDED}"'):
                    last = CONCLUSION.validate_python(json.loads(line)[CONCLUDED])
            if last:
                found.append((path.stat().st_mtime, path.name, last))
        except (AssayError, OSError, ValueError):
            continue
    return [one for *_, one in sorted(found, key=lambda each: each[:2])]
