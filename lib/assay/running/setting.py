"""Two settings of the suite to compare: how a session of each is started, the names of its cases,
and whether there is anything to compare.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay import AssayError, paths
from assay.config.environments import MORE_FLAGS, OTHER_SOURCES, OTHER_SPECS
from assay.machine.slurm import SCHEDULERS
from assay.text import unknown_name

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

    from assay.running.reframe_options import Given
    from assay.running.selection import Listed

# `OMPI_MCA_pml`; and a parameter of a check, or a word of ours.
_VARIABLE = re.compile(r'[A-Z_][A-Za-z0-9_]*', re.ASCII)
_WORD = re.compile(r'[a-z][a-z0-9_]*', re.ASCII)
_PARAMETER = re.compile(r'%(\w+)=([^\s%]+)')

#: Words that are no parameters of checks.
ENVIRONMENT, FLAGS, NODES, SOURCES, COMMIT = 'env', 'flags', 'nodes', 'sources', 'commit'
#: What Spack chooses, which only `assay culprit` sets: no word of a command line has a blank.
SPECS = 'specs of packages'
_WORDS = {ENVIRONMENT, FLAGS, NODES, SOURCES, COMMIT, SPECS}


@dataclass(frozen=True)
class Setting:
    """One side of a comparison; where it says nothing, the suite is as it is.

    :param values: by the names ``env``, ``flags``, ``nodes``, ``sources``, ``commit``, ``specs of
        packages``, of parameters of the checks, such as ``fabric``, and of variables of the jobs,
        which begin with a capital.
    """

    values: Mapping[str, str]

    def __str__(self) -> str:
        told = (
            value if name == ENVIRONMENT else f'{name}={value}'
            for name, value in self.values.items()
        )
        return ', '.join(told) or 'unchanged'

    @property
    def environment(self) -> str | None:
        """The environment of its cases; None for those that the selection has."""
        return self.values.get(ENVIRONMENT)

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The parameters of its cases."""
        return {
            name: value
            for name, value in self.values.items()
            if name not in _WORDS and not _VARIABLE.fullmatch(name)
        }

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its jobs."""
        return {name: value for name, value in self.values.items() if _VARIABLE.fullmatch(name)}

    @property
    def options(self) -> list[str]:
        """ReFrame's options that run its cases alone, as it says."""
        found = []
        if self.environment is not None:
            found += ['-p', f'^{re.escape(self.environment)}$']
        # ReFrame joins several -n by "or"; it searches names without their blanks.
        for name, value in self.parameters.items():
            found.append(f'--exclude=^(?!.*%{name}={re.escape(value)}(?:%|$))')
        if self.variables:
            # ReFrame writes them into the job's script as they are.
            quoted = {name: shlex.quote(value) for name, value in self.variables.items()}
            found += ['-S', f'env_vars={json.dumps(quoted)}']
        if NODES in self.values:
            found += ['-J', f'nodelist={self.values[NODES]}']
        if COMMIT in self.values:
            found += ['-S', f'SiteApplication.commit={self.values[COMMIT]}']
        return found

    @property
    def exports(self) -> dict[str, str]:
        """Variables for ReFrame itself."""
        names = {FLAGS: MORE_FLAGS, SOURCES: OTHER_SOURCES, SPECS: OTHER_SPECS}
        return {name: self.values[word] for word, name in names.items() if word in self.values}

    def name_here(self, name: str) -> str:
        """The name, in this setting, of a case of another one; also within a title."""
        for parameter, value in self.parameters.items():
            name = _with(name, parameter, value)
        return name

    def shared_title(self, title: str) -> str:
        """The title of a case without the parts that settings choose: the same in both."""
        if self.environment is not None:
            title = title.removesuffix(f'+{self.environment}')
        return Setting(dict.fromkeys(self.parameters, '*')).name_here(title)


class Settings(NamedTuple):
    """The two sides of a comparison."""

    before: Setting
    after: Setting

    def as_after(self, title: str) -> str:
        """The title of a case before, as the same case is called after."""
        old, new = self.before.environment, self.after.environment
        title = title.removesuffix(f'+{old}') + f'+{new}' if old and new else title
        return self.after.name_here(title)


def read_settings(before: Iterable[str], after: Iterable[str]) -> Settings:
    """The settings of a command line.

    :param before: ``NAME=VALUE`` of each.
    :param after: likewise.
    :raises AssayError: if one is no setting, they are equal, or a side does not say which of its
        cases are held against those of the other.
    """
    found = Settings(_read('--before', before), _read('--after', after))
    if found.before == found.after:
        raise AssayError(
            f'{found.before} is compared with itself: give two settings that differ, such as '
            '--before fabric=tcp --after fabric=shm.'
        )
    for name in (ENVIRONMENT, *found.before.parameters, *found.after.parameters):
        options = ('--before', '--after')
        for option, side, other in zip(options, found, reversed(found), strict=True):
            if name in other.values and name not in side.values:
                raise AssayError(
                    f'{name}={other.values[name]} is held against no other {name}: give '
                    f'{option} {name}=... as well. (Variables of jobs begin with a capital.)'
                )
    return found


def _read(option: str, words: Iterable[str]) -> Setting:
    values: dict[str, str] = {}
    for word in words:
        name, is_given, value = word.partition('=')
        is_variable = bool(_VARIABLE.fullmatch(name))
        if not (is_given and (is_variable or (value.strip() and _WORD.fullmatch(name)))):
            raise AssayError(
                f'{option} {word!r}: a setting is NAME=VALUE, such as env=mpich, fabric=tcp, '
                'flags=-O1, sources=../other-checkout, nodes=n[1-4] or OMPI_MCA_pml=ob1.'
            )
        if name in values:
            raise AssayError(f'{option} gives {name} twice.')
        values[name] = _sources(value) if name == SOURCES else value
    return Setting(values)


def _sources(checkout: str) -> str:
    """The sources of a checkout of the suite."""
    folder = Path(checkout).resolve() / paths.SOURCES.name
    if not (folder / 'CMakeLists.txt').is_file():
        raise AssayError(f'sources={checkout} is no checkout of Assay: there is no {folder}.')
    return str(folder)


def assert_settable(settings: Settings, site: _SiteConfig, given: Given) -> None:
    """See that the system and the other options leave both settings something to set.

    :param site: the configuration of the system, loaded.
    :param given: what is asked of ReFrame for both.
    :raises AssayError: if not.
    """
    names = {name for one in settings for name in one.values}
    if ENVIRONMENT in names and '--prgenv' in given.names_of_options:
        raise AssayError('-p is not for a comparison of environments: they are its settings.')
    if any(one.variables for one in settings):
        for text in given.variables:
            if text.partition('=')[0].rpartition('.')[2] == 'env_vars':
                raise AssayError(
                    f'-S {text}: give it as a setting of both, --before NAME=VALUE --after ...'
                )
    partitions = site.get('systems/0/partitions')
    if NODES in names and not all(one['scheduler'] in SCHEDULERS for one in partitions):
        raise AssayError('nodes=... is for systems whose jobs Slurm starts.')
    if told := names & {FLAGS, SOURCES}:
        by_spack = [
            one['name'] for one in site['environments'] if 'spack' in one.get('features', ())
        ]
        if by_spack:
            raise AssayError(
                f'{min(told)}=... is not for what Spack builds (for {", ".join(by_spack)}): '
                'leave out --with spack.'
            )


def with_nodes(given: Given, settings: Settings) -> Given:
    """Add the nodes of both settings to what is asked of ReFrame, for one job of both."""
    named = [one.values[NODES] for one in settings if NODES in one.values]
    return replace(given, jobs=[*given.jobs, *([f'nodelist={",".join(named)}'] if named else [])])


def cases_in_common(settings: Settings, sides: Sequence[Sequence[Listed]]) -> set[str]:
    """The common names of the cases of both sides.

    :param sides: the cases of each.
    """
    before, after = (
        {setting.shared_title(one.title) for one in side}
        for setting, side in zip(settings, sides, strict=True)
    )
    return before & after


def why_nothing_in_common(
    settings: Settings, sides: Sequence[Sequence[Listed]], cases: Sequence[Listed]
) -> str:
    """Why no case is run with both, and what there is.

    :param sides: the cases of each.
    :param cases: those that are selected, whatever the settings.
    """
    if not cases:
        return 'no check was selected, so nothing was measured.'
    for name in (ENVIRONMENT, *settings.after.parameters):
        known = _values(cases, name)
        for value in (one.values[name] for one in settings if name in one.values):
            if not known:
                return (
                    f'{name}={value}: no selected case has a parameter {name!r}. Variables of jobs '
                    'begin with a capital, such as OMPI_MCA_pml=ob1.'
                )
            if value not in known:
                told = unknown_name(value, f'{name} of the selected cases', known)
                return f'{name}={value}: {told} (-n, -p, --mode choose cases)'
    told = ' and '.join(
        f'{len(side)} with {one}' for side, one in zip(sides, settings, strict=True)
    )
    return (
        f'no case is run with both {settings.before} and {settings.after}: of those selected '
        f'there are {told}. `assay run -l` lists all.'
    )


def _with(name: str, parameter: str, value: str) -> str:
    """The name of a case with another value of a parameter, if it has that."""
    # By a function, as a text would be a template.
    return re.sub(rf'(?<=%{parameter}=)[^\s%]+', lambda _: value, name)


def _values(cases: Iterable[Listed], name: str) -> set[str]:
    """The values of a name that cases have."""
    if name == ENVIRONMENT:
        return {one.environment for one in cases}
    return {
        value for one in cases for other, value in _PARAMETER.findall(one.name) if other == name
    }
