"""The cases that ReFrame's options select, and the files of their checks; what there is if none."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, paths
from assay.config import settings
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.config.lint import check_classes, known_classes
from assay.config.scales import scales_in
from assay.layout.layouts import LAYOUTS
from assay.running import events, runs
from assay.text import plain
from assay.tools import ask

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

    from assay.running.reframe_options import Given


@dataclass(frozen=True)
class Listed:
    """A case that would run.

    :param name: of the check, with its parameters, as ReFrame displays it.
    :param partition: with its system: ``generic:node``.
    :param needs: names of what is built for it first.
    :param nodes: of its job; 0 for all that are idle.
    """

    name: str
    partition: str
    environment: str
    needs: frozenset[str] = frozenset()
    nodes: int = 1

    @property
    def title(self) -> str:
        """Name, partition and environment, as ReFrame prints it."""
        return f'{self.name} @{self.partition}+{self.environment}'


def list_cases(
    command: Sequence[str], options: Sequence[str], environment: dict[str, str]
) -> list[Listed]:
    """The cases that a command of ReFrame would run; none where nothing is selected.

    :param command: ReFrame, with the options of a mode.
    :param options: others of ReFrame.
    :param environment: the variables that it needs.
    :raises AssayError: if it does not list them.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile('w+') as told:
        ended = ask(
            # To run and to list is refused.
            [*command, *(one for one in options if one not in ('-r', '--run')), '--list'],
            # Another folder, or it would begin the run's log anew.
            env={**environment, runs.VARIABLE: folder, events.VARIABLE: str(told.fileno())},
            pass_fds=[told.fileno()],
        )
        told.seek(0)
        lists = [event[events.LISTED] for event in map(json.loads, told) if events.LISTED in event]
    if ended.returncode or len(lists) != 1:
        said = [one for one in ended.stdout.splitlines() if one.startswith('ERROR: ')]
        words = plain(' '.join(said) or ended.stderr or ended.stdout)
        raise AssayError(f'ReFrame could not list the cases to choose from: {words}')
    return [
        Listed(
            case['display_name'],
            f'{case["system"]}:{case["partition"]}',
            case['environ'],
            frozenset(case[events.NEEDS]),
            case[events.NODES],
        )
        for case in lists[0]
    ]


#: Expressions with which cases are left out. ReFrame compiles each anew for each case, and Python
#: remembers 512: with more of them a list of a thousand took minutes.
MOST_EXPRESSIONS = 256


def explain_selection(site: _SiteConfig, given: Given) -> None:
    """Print what there is on a system, and what in the options is none of it.

    :param site: its configuration, loaded.
    :param given: what was asked of ReFrame.
    """
    partitions = site['systems'][0]['partitions']
    features = {feature for one in partitions for feature in one.get('features', [])}
    there = {
        'environment': sorted({name for one in partitions for name in one.get('environs', [])}),
        'fabric': [*(name for name in load_catalogue().fabrics if name in features), DEFAULT],
        'layout': list(LAYOUTS),
        'scale': scales_in(features),
        'check': sorted(known_classes(paths.CHECKS)),
    }
    asked = [*_asked(given)]
    for kind, expression in dict.fromkeys(asked):
        if not _matches(expression, there[kind]):
            print(f'assay: there is no {kind} {expression!r} on this system.', file=sys.stderr)
    there['mode'] = list(settings.modes())
    for kind, names in there.items():
        print(f'{kind.capitalize()}s: {", ".join(names) or "none"}', file=sys.stderr)


def leaving_out(names: Iterable[str]) -> list[str]:
    """ReFrame's options that leave cases out, by the names that it displays."""
    # It searches names without their blanks.
    escaped = [re.escape(name.replace(' ', '')) for name in sorted(names)]
    size = -(-len(escaped) // MOST_EXPRESSIONS) or 1
    parts = (escaped[start : start + size] for start in range(0, len(escaped), size))
    return [f'--exclude=^(?:{"|".join(some)})$' for some in parts]


def _asked(given: Given) -> Iterator[tuple[str, str]]:
    """The names in the options, as kind and expression."""
    yield from (('environment', expression) for expression in given.environments)
    for text in given.names:
        # A check's name stands before its parameters: Ring%fabric=tcp, Ring %fabric=tcp %...
        if check := re.split('[ %/@]', text)[0]:
            yield 'check', check
    for text in [*given.names, *(f'%{text}' for text in given.parameters)]:
        for kind, values in re.findall(r'%(fabric|layout|scale)=([^\s%]+)', text):
            yield from ((kind, value) for value in values.split(','))


def _matches(expression: str, names: Iterable[str]) -> bool:
    """Whether one of the names is meant. ReFrame itself refuses what is no expression."""
    try:
        return any(re.search(expression, name) for name in names)
    except re.error:
        return True


#: `^Ring`, `^(Ring|Halo) %fabric=(shm|tcp)`: what names of checks begin with; what follows is about
#: their parameters. Of any other expression nobody can tell whose names it matches.
_BEGINS = re.compile(r'\^(?:(\w+)|\((\w+(?:\|\w+)*)\))(?:[ %@$](?:[^|()\[\\]|\([^()\[\\]*\))*)?')


def files_of(given: Given, checks: Path) -> list[Path]:
    """The files below the folder that hold every check that ``-n`` and ``-S`` name.

    :returns: none where all are to be read: the options name no checks, or leave open which.
    """
    beginnings: list[str] = []
    for expression in given.names:
        if not (match := _BEGINS.fullmatch(expression)):
            return []
        beginnings += (match[1] or match[2]).split('|')
    if not beginnings or '--checkpath' in given.names_of_options:
        return []
    # ReFrame warns of a variable whose class it has not read.
    setting = (one.partition('=')[0] for one in given.variables)
    beginnings += [name.partition('.')[0] for name in setting if '.' in name]
    found = []
    for path in sorted(checks.rglob('*.py')):
        with suppress(SyntaxError):  # which the lint tells
            if any(name.startswith(tuple(beginnings)) for name in check_classes(path)):
                found.append(path)
    return found
