"""What a command line names, and no case is of: to ReFrame each name but one may match nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.config.environments import OURS
from assay.results.cases import Case, Report, last_cases
from assay.running.reframe_options import Given
from assay.spack.packages import RUN_BY_CHECKS, of_name
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

# `^(Ring|Halo)%fabric=tcp`, `openmpi|mpich`: each of the words is a name.
_WORDS = re.compile(r'(\^?\()([^()\[\]\\]*)(\)[^()|]*)')
_JOINED = re.compile(r'[^()\[\]\\]*')


def not_run(report: Report, given: Given) -> list[str]:
    """A sentence for each name that no selected case is of.

    Where nothing was selected at all, or all was skipped, that is told already.
    """
    own = [case for case in last_cases(report) if not case['fixture']]
    done = [case for case in own if case['result'] != 'skip']
    if not done:
        return []
    names = [_searched(case) for case in own]
    environments = {case['environ'] for case in own}
    return [
        *(
            f'no selected case is of -n {plain(one)!r}: leave it out, or see `assay run -l`'
            for text in given.names
            for one in _each(text)
            if not any(_is_named(one, case, name) for case, name in zip(own, names, strict=True))
        ),
        *(
            f'no selected case is of -p {plain(one)!r}: there are cases for '
            f'{", ".join(sorted(map(plain, environments)))}'
            for text in given.environments
            for one in _each(text)
            if not any(re.match(one, environment) for environment in environments)
        ),
        *(
            f'no selected case has {plain(parameter)}={plain(value)}, which -P asks for'
            for text in given.parameters
            if '--param-values-delim' not in given.names_of_options
            for parameter, value in _values(text)
            if _has(names, parameter) and not _has(names, f'{parameter}={value}')
        ),
        *(sentence for what in given.extra if (sentence := _of_extra(what, done, environments))),
    ]


def left_out(site: _SiteConfig, report: Report, given: Given) -> list[str]:
    """The partitions and the MPIs of a system that no case is of, a sentence each.

    :param site: the system's configuration, loaded for the partitions that were asked for.
    """
    own = last_cases(report)
    there = {(case['partition'], case['environ']) for case in own}
    found = []
    for partition in site['systems'][0]['partitions'] if own else ():
        name = f'{own[0]["system"]}:{partition["name"]}'
        asked = [
            environment
            for environment in partition.get('environs', [])
            if any(re.match(one, environment) for one in given.environments)
        ]
        left = [one for one in asked if (partition['name'], one) not in there]
        if left:
            for_all = '' if len(left) == len(asked) else f' with {", ".join(left)}'
            found.append(f'nothing was selected on {name}{for_all}')
    return found


def _searched(case: Case) -> str:
    """The name that ReFrame searches, which is without blanks."""
    return str(case['display_name']).replace(' ', '')


def _is_named(expression: str, case: Case, name: str) -> bool:
    """Whether ReFrame takes a case for one of ``-n``."""
    check, at, variant = expression.rpartition('@')
    if at and variant.isdigit():  # of which a report has no number
        return name.partition('%')[0] == check
    if expression.startswith('/'):
        return str(case.get('hashcode')) == expression[1:]
    return bool(re.search(expression, name))


def _each(expression: str) -> Iterator[str]:
    """An expression, or one for each of the words that it joins."""
    if match := _WORDS.fullmatch(expression):
        before, words, after = match.groups()
        yield from (f'{before}{word}{after}' for word in words.split('|'))
    elif _JOINED.fullmatch(expression):
        yield from expression.split('|')
    else:
        yield expression


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Parameter and values of ``-P [CLASS.]NAME=VALUE,VALUE``."""
    name, _, values = text.partition('=')
    yield from ((name.rpartition('.')[2], value) for value in values.split(','))


def _has(names: list[str], parameter: str) -> bool:
    return any(re.search(rf'%{re.escape(parameter)}(?![\w-])', name) for name in names)


def _of_extra(what: str, done: list[Case], environments: set[str]) -> str:
    """What ``--with`` names, if nothing ran of it; else an empty text."""
    kind, _, name = what.partition(':')
    if kind != 'spack':
        if what in environments:
            return ''
        return f'--with {what}: no selected case is for {what}: -n and -p leave them all out'
    packages = [one for one in of_name(name) if one in RUN_BY_CHECKS] if name else [OURS]
    left = [package for package in packages if not any(_runs(package, case) for case in done)]
    if not left:
        return ''
    return (
        f'--with {what}: no case ran {", ".join(left)}: no selected check of this mode is for it, '
        f'or no environment that Spack can build it for; programs of upstream are in '
        f'--mode maintenance and acceptance'
    )


def _runs(package: str, case: Case) -> bool:
    if package == OURS:
        return case.get('built_by') == 'spack'
    return package in (case.get('implementation'), str(case.get('built_spec', '')).split('@')[0])
