"""The roads that pages tell, from nothing to a verdict: tests type the lines of the page itself."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from types import TracebackType

from assay import paths
from command import as_of_a_user

#: What a page tells to type begins so, and whatever it shows of what was printed does not.
_TYPED = re.compile(r' {4}(?:\$ )?((?:\./assay|export|sed) .+)')


def lines(page: str) -> dict[str, list[str]]:
    """What a page of `docs` tells its reader to type, by the heading that it stands under."""
    found: dict[str, list[str]] = {}
    heading = ''
    for line in (paths.ROOT / 'docs' / page).read_text().splitlines():
        if line.startswith('#'):
            heading = line.lstrip('# ')
        elif typed := _TYPED.fullmatch(line):
            found.setdefault(heading, []).append(typed[1])
    return found


class Road:
    """Types what a page tells, line by line, and leaves nothing out.

    :param since: the heading with which it begins, if it is not the first.
    :param until: the heading before which it ends, if it does not go to the end of the page.
    :param root: the folder in which the lines are typed, where `./assay` is.
    :param variables: of the environment.
    """

    def __init__(
        self, page: str, since: str = '', until: str = '', *, root: Path, **variables: str
    ) -> None:
        told = lines(page)
        headings = [*told]
        first = headings.index(since) if since else 0
        last = headings.index(until) if until else len(headings)
        self.left = [line for one in headings[first:last] for line in told[one]]
        self.root, self.variables = root, variables
        self.exports: list[str] = []

    def __enter__(self) -> Road:
        return self

    def __exit__(self, kind: type | None, error: object, where: TracebackType | None) -> None:
        assert kind or not self.left, f'nobody typed {self.left}'

    def next(self, beginning: str) -> str:
        """The next line, which begins so: who reads a test sees there what it types."""
        assert self.left and self.left[0].startswith(beginning), self.left[:1]
        return self.left.pop(0)

    def type(self, line: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Type a line; what it exports is there for all that follow.

        :param more: options that a test adds to it.
        :returns: the ended process with its output.
        """
        line = ' '.join([line, *map(shlex.quote, more)])
        script = '\n'.join([*self.exports, line])
        if line.startswith('export '):
            self.exports.append(line)
        return subprocess.run(
            ['bash', '-ec', script],
            cwd=self.root,
            env=as_of_a_user(self.root) | self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3600,  # it may wait for its turn
        )
