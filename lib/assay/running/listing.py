"""The cases that ReFrame's options select, as ReFrame itself lists them before any job."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from assay import AssayError
from assay.running import runs
from assay.text import plain

# `- Ring %fabric=shm /228a3f0d @generic:node+mpich`, and below it, deeper, what it needs first:
# `    ^BuildSources ~generic:node+mpich 'build /53e41b0a @generic:node+mpich`
_CASE = re.compile(r'- (.+) /[0-9a-f]{8} @([^\s+]+)\+(\S+)')
_NEEDED = re.compile(r" +\^(.+?)(?: '\w+)* /[0-9a-f]{8} @\S+")
_COUNT = re.compile(r'Concretized (\d+) test case\(s\)')


@dataclass(frozen=True)
class Listed:
    """A case that would run.

    :param name: of the check, with its parameters, as ReFrame displays it.
    :param partition: with its system: ``generic:node``.
    :param needs: names of what is built for it first.
    """

    name: str
    partition: str
    environment: str
    needs: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """Name, partition and environment, as ReFrame prints it."""
        return f'{self.name} @{self.partition}+{self.environment}'


def listed(
    command: Sequence[str], options: Sequence[str], environment: dict[str, str]
) -> list[Listed]:
    """The cases that a command of ReFrame would run; none where nothing is selected.

    :param command: ReFrame, with the options of a mode.
    :param options: others of ReFrame.
    :param environment: the variables that it needs.
    :raises AssayError: if it does not list them, or not in a form that is known.
    """
    with tempfile.TemporaryDirectory() as folder:  # or it would begin the run's log anew
        ended = subprocess.run(
            # Of several ways to list the last counts; to run and to list is refused.
            [*command, *(one for one in options if one not in ('-r', '--run')), '--list=C'],
            env={**environment, runs.VARIABLE: folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors='replace',
        )
    if ended.returncode:
        said = [one for one in ended.stdout.splitlines() if one.startswith('ERROR: ')]
        words = plain(' '.join(said) or ended.stderr or ended.stdout)
        raise AssayError(f'ReFrame could not list the cases to choose from: {words}')
    return cases_of(ended.stdout)


def cases_of(text: str) -> list[Listed]:
    """The cases of what ``reframe --list=C`` printed.

    :raises AssayError: if not all that it counts was understood.
    """
    found: list[Listed] = []
    needed: set[str] = set()
    for line in text.splitlines():
        if case := _CASE.fullmatch(line):
            found.append(Listed(case[1], case[2], case[3]))
        elif (what := _NEEDED.fullmatch(line)) and found:
            needed.add(what[1])
            last = found[-1]
            needs = last.needs | {what[1]}
            found[-1] = Listed(last.name, last.partition, last.environment, needs)
    count = _COUNT.search(text)
    if count is None or int(count[1]) != len(found) + len(needed):
        raise AssayError(
            f'ReFrame listed {count[1] if count else "an unknown number of"} cases, and '
            f'{len(found) + len(needed)} of them were understood: no choice can be made.'
        )
    return found
