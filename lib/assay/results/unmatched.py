"""Names on a command line that match no case: ReFrame objects only if all of them match none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from assay.config.environments import MEASURES_NODES, OURS
from assay.results.cases import Case, Run
from assay.running.reframe_options import Given
from assay.spack.packages import RUN_BY_CHECKS, of_name
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

# `^(Ring|Halo)%fabric=(shm|tcp)`, `openmpi|mpich`: each of the words is a name. Of expressions with
# classes, escapes, groups in groups, or `(?`, which may mean the opposite, nothing is taken apart.
_SIMPLE = re.compile(r'(?:[^()\[\]\\]|\((?!\?)[^()\[\]\\]*\))*')
_BAR = re.compile(r'\|(?![^()]*\))')
_WORDS = re.compile(r'(?<=\()[^()|]*\|[^()]*(?=\)(?![*+{]))')

#: Partitions that a sentence names.
MOST = 8

# With these cases have other names and hashes than those in which ReFrame looks for -n.
_RENAMES = {'--parameterize', '--distribute'}


def unmatched_names(run: Run, given: Given) -> list[str]:
    """A sentence for each given name that fits no selected case.

    If nothing was selected at all, or all was skipped, that is reported already.
    """
    own = [case for case in run.last_cases if not case.is_fixture]
    done = [case for case in own if case.result != 'skip']
    if not done:
        return []
    # ReFrame searches names without blanks.
    names = [case.display_name.replace(' ', '') for case in own]
    environments = {case.environment for case in own}

    def is_name(one: str) -> bool:
        return any(_is_named(one, case, name) for case, name in zip(own, names, strict=True))

    return [
        *(
            f'no selected case is of -n {plain(one)!r}: correct it, or see `assay run -l`'
            for text in given.names
            if _RENAMES.isdisjoint(given.names_of_options)
            for one in _unmatched(text, is_name)
        ),
        *(
            f'no selected case is of -p {plain(one)!r}: there are cases for '
            f'{", ".join(sorted(map(plain, environments)))}'
            for text in given.environments
            if not all(map(_is_of_a_node, own))  # which one environment measures for all
            for one in _unmatched(text, lambda one: any(re.match(one, e) for e in environments))
        ),
        *(
            f'no selected case has {plain(parameter)}={plain(value)}, which -P asks for'
            for text in given.parameters
            if '--param-values-delim' not in given.names_of_options
            for parameter, values in [_values(text)]
            # One that is a number or a truth value is shown in another form.
            if 0 < len(_shown(names, parameter)) < len(values)
            for value in values
            if not _has(names, f'{parameter}={value}')
        ),
        *(sentence for what in given.extra if (sentence := _of_extra(what, done, environments))),
    ]


def misaddressed_options(
    run: Run, variables: Iterable[str], parameters: Iterable[str]
) -> list[str]:
    """A sentence for each class in an option without a case, which ReFrame would ignore.

    :param variables: what ``-S`` sets, as ``[CLASS.]NAME=VALUE``; also of fixtures.
    :param parameters: what ``-P`` sets, likewise.
    """
    classes = {case.check for case in run.cases}
    checks = {case.check for case in run.cases if not case.is_fixture}
    found = []
    for option, known, given in (('-S', classes, variables), ('-P', checks, parameters)):
        for one in given:
            name, dot, rest = one.partition('=')[0].partition('.')
            if dot and name not in known:
                found.append(
                    f'no selected check is {plain(name)!r}, of which {option} sets {plain(rest)!r}'
                )
    return found


def unmeasured_parts(site: _SiteConfig, run: Run, given: Given) -> list[str]:
    """A sentence on the partitions and MPIs of a system without a case, if there are any.

    :param site: the system's configuration, loaded for the partitions that were asked for.
    """
    own = run.last_cases
    there = {(case.partition, case.environment) for case in own}
    mpis = {one['name'] for one in site['environments'] if 'mpi' in one.get('features', ())}
    is_once = all(_is_of_a_node(case) for case in own if not case.is_fixture)
    found = []
    for partition in site['systems'][0]['partitions'] if own else ():
        name = f'{own[0].system}:{partition["name"]}'
        asked = [
            environment
            for environment in partition.get('environs', [])
            if environment in mpis and any(re.match(one, environment) for one in given.environments)
        ]
        left = [one for one in asked if (partition['name'], one) not in there]
        if left and not (is_once and len(left) < len(asked)):
            for_all = '' if len(left) == len(asked) else f' with {", ".join(left)}'
            found.append(f'{name}{for_all}')
    more = f'; and {len(found) - MOST} more' if len(found) > MOST else ''
    return [f'nothing was selected on {"; ".join(found[:MOST])}{more}'] if found else []


def _is_named(expression: str, case: Case, name: str) -> bool:
    """Whether ReFrame takes a case for one of ``-n``."""
    check, at, variant = expression.rpartition('@')
    if at and variant.isdigit():  # a report has no such number
        return name.partition('%')[0] == check
    if expression.startswith('/'):
        return case.hash == expression[1:]
    return bool(re.search(expression, name))


def _is_of_a_node(case: Case) -> bool:
    """Whether the case measures no MPI, so that a partition has it once."""
    return any(MEASURES_NODES in features for features in case.environments)


def _unmatched(expression: str, is_matched: Callable[[str], bool]) -> Iterator[str]:
    """An expression that nothing matches; of one that joins words, only those of these."""
    simple = _SIMPLE.fullmatch(expression)
    for branch in _BAR.split(expression) if simple else [expression]:
        if not is_matched(branch):
            yield branch
        elif simple:
            for group in _WORDS.finditer(branch):
                for word in group[0].split('|'):
                    alone = f'{branch[: group.start()]}{word}{branch[group.end() :]}'
                    if not is_matched(alone):
                        yield alone


def _values(text: str) -> tuple[str, list[str]]:
    """Parameter and values of ``-P [CLASS.]NAME=VALUE,VALUE``, without blanks as in names."""
    name, _, values = text.replace(' ', '').partition('=')
    return name.rpartition('.')[2], [*dict.fromkeys(values.split(','))]


def _shown(names: list[str], parameter: str) -> set[str]:
    """The values of a parameter in the cases' names."""
    form = re.compile(rf'%{re.escape(parameter)}=([^%]*)')
    return {match[1] for name in names if (match := form.search(name))}


def _has(names: list[str], parameter: str) -> bool:
    return any(re.search(rf'%{re.escape(parameter)}(?![\w-])', name) for name in names)


def _of_extra(what: str, done: list[Case], environments: set[str]) -> str:
    """A sentence on a name of ``--with`` that nothing ran for; empty if something ran."""
    kind, _, name = what.partition(':')
    if kind != 'spack':
        if what in environments:
            return ''
        why = '-n and -p leave them all out'
        if all(map(_is_of_a_node, done)):
            why = f'{", ".join(sorted(map(plain, environments)))} measures the nodes for all MPIs'
        return f'--with {what}: no selected case is for {what}: {why}'
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
    if case.result in ('fail_deps', 'abort'):  # what they would have run is unknown
        return True
    if package == OURS:
        return case.fact('by') == 'spack'
    return package in (case.implementation, case.fact('spec').split('@')[0])
