"""The differences between two states, as changes that can be made and undone one by one.

Facts of the figures say what differs. A change that can be switched has a value before and one
after, and what a session needs for each. The other differences are told with the reason why
nothing is tried.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from assay import AssayError, paths, say
from assay.comparing import libraries, specs
from assay.comparing.specs import OF_SPECS
from assay.config.environments import OURS, feature
from assay.machine.mca import PREFIX, default_of
from assay.machine.provenance import (
    flag_kind,
    read_flags,
    suite_commit,
    write_flags,
)
from assay.machine.repository import Repository, forget_old
from assay.machine.slurm import SCHEDULERS
from assay.mpis import FAMILIES
from assay.results.diff.causes import FOLLOWING, Fact
from assay.results.figure_series import FigureKey
from assay.results.provenance import OF_SETTINGS, both_tell
from assay.running.application_builds import repository_of
from assay.running.setting import COMMIT, ENVIRONMENT, FLAGS, NODES, SOURCES, SPECS, Setting
from assay.running.site_applications import FILE, site_applications
from assay.spack.packages import by_package
from assay.text import as_field, from_field
from assay.witness.settings import OF_LIBRARIES, UNITS, set_in_file
from assay.witness.variables import OF_THE_START

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

    from assay.results.diff.compared import Compared

#: How much likelier a change of a kind is to be the cause than a variable.
_MPI, _MODULE, _LIBRARY, _FLAG, _SOURCES, _SPEC, _NODES = 4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.5
#: A variable or library of the transport that the figures are of, as many times; of another one;
#: of another MPI, or of the start of ranks alone.
_OF_THE_FABRIC, _OF_ANOTHER, _OF_NOTHING = 3.0, 0.3, 0.1
_TRANSPORTS = {
    'UCX_': 'ucx',
    'FI_': 'ofi',
    'OMPI_MCA_btl_tcp': 'tcp',
    f'{OF_LIBRARIES}libuc': 'ucx',
    f'{OF_LIBRARIES}libfabric': 'ofi',
}

#: Why nothing is tried, by the beginning of a fact's name.
_NOT_TRIED = {
    f'{OF_SETTINGS}preloaded ': 'no variable preloads it',
    OF_SETTINGS: 'settings of the machine are not switched',
    'ran_on_': 'it is of the machine',
    'compiler': 'compilers are not switched',
    'blas': 'it is not built with another one',
    'target': 'it is not built for another one',
}


_BUILT = {ENVIRONMENT, FLAGS, SOURCES, COMMIT, SPECS}
#: Facts of what Spack built that follow from the packages that it chose.
_OF_BUILDS = ('flags', 'compiler', 'blas', 'target')


@dataclass(frozen=True)
class Factor:
    """A change that can be switched.

    :param before: its value before, as it is told; - for none.
    :param after: likewise.
    :param weight: how likely it is to be a cause, against a variable.
    :param needs: what a session needs for the value before, and for that after: values of a
        setting, None for a variable that the jobs are not to have; modules, None for one that is
        not to be loaded; limits, as words of ``ulimit``; and libraries, as a line of a shell.
    :param versions: of an MPI: the changes from each version that the system has to the next one,
        from the value before to that after; empty if there is none between.
    :param libraries: names of the facts of the libraries that it switches.
    :param application: whose commit it is, of ``applications.yaml``; empty of other changes.
    :param left_out: of a step the names of those right before it that are part of it, as sessions
        of them fail.
    """

    name: str
    before: str
    after: str
    weight: float
    needs: tuple[Mapping[str, str | None], Mapping[str, str | None]]
    versions: tuple[Factor, ...] = ()
    libraries: tuple[str, ...] = ()
    application: str = ''
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = ''
        if self.left_out:
            before = self.left_out[0] if len(self.left_out) == 1 else f'one of {len(self.left_out)}'
            others = f' (or {before} before it, left out)'
        return f'{self.name}: {self.before} -> {self.after}{others}'

    @property
    def variable(self) -> str | None:
        """The variable of the jobs that it is, or stands for."""
        return next(iter(Setting(dict.fromkeys(self.needs[1], '')).variables), None)

    @property
    def is_built(self) -> bool:
        """Whether another value is another build."""
        return not _BUILT.isdisjoint({*self.needs[0], *self.needs[1]})

    @property
    def is_of_commits(self) -> bool:
        """Whether it is made of commits, or is one."""
        return not {SOURCES, COMMIT}.isdisjoint(self.needs[1])


@dataclass(frozen=True)
class Untried:
    """A difference that is not switched.

    :param why: the reason.
    """

    name: str
    before: str
    after: str
    why: str

    def __str__(self) -> str:
        return f'{self.name}: {self.before} -> {self.after} ({self.why})'


@dataclass(frozen=True)
class State:
    """The settings that a session is started with.

    :param unset: variables that its jobs are not to have.
    :param unload: modules that are not to be loaded.
    :param load: those that are.
    :param lines: of the job's script, before it starts anything.
    """

    setting: Setting
    unset: frozenset[str]
    unload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """ReFrame's, that run cases in this state alone."""
        unload = (word for name in self.unload for word in ('-u', name))
        return [
            *self.setting.options,
            *unload,
            *(word for name in self.load for word in ('-m', name)),
            *(['-S', f'prerun_cmds={",".join(self.lines)}'] if self.lines else []),
        ]

    @property
    def exports(self) -> dict[str, str | None]:
        """Variables for ReFrame; None of those that it is to lack."""
        return {**dict.fromkeys(self.unset), **self.setting.exports}


_Found = Factor | Untried


def state(factors: Sequence[Factor], switched: Collection[str]) -> State:
    """The state with some changes made, and all others undone.

    :param switched: names of those that are made.
    """
    values: dict[str, str] = {}
    unset: set[str] = set()
    unload: list[str] = []
    load: list[str] = []
    lines: list[str] = []
    for one in factors:
        is_made = one.name in switched
        for name, value in one.needs[is_made].items():
            if name.startswith(_MODULE_NAME):
                unload += filter(None, [one.needs[not is_made][name]])
                load += filter(None, [value])
            elif name.startswith(_LIMIT_NAME):
                lines.append(f'ulimit -S {value}')
            elif name.startswith(OF_LIBRARIES):
                lines += filter(None, [value])
            elif value is None:
                unset.add(name)
            elif name == FLAGS:
                values[name] = _joined(values.get(name, ''), value)
            elif name == SPECS:
                values[name] = '; '.join(filter(None, [values.get(name), value]))
            elif is_made or name not in values:  # of commits the last one that is made
                values[name] = value
    return State(Setting(values), frozenset(unset), tuple(unload), tuple(load), tuple(lines))


def differs_from(one: Factor, facts: Mapping[str, str], is_made: bool) -> str | None:
    """The value that a figure tells in place of the one that was asked for; None if there is none.

    :param facts: of a figure.
    """
    wanted = one.after if is_made else one.before
    if (variable := one.variable) and facts:
        found, place = _in_force(variable, facts)
        if (from_field(found) if found != '-' else '') == (one.needs[is_made][variable] or ''):
            return None
        return f'{found}, of {place},' if place else found
    if one.name.startswith(_LIMIT_NAME) and facts:
        found = facts.get(f'{OF_SETTINGS}{one.name}', '-')
        return None if found == wanted else found
    if told := one.needs[is_made].get(SPECS):
        return specs.package_built_instead(told, facts)
    if one.libraries:
        return libraries.library_loaded_instead(one.libraries, wanted, facts)
    if one.name.startswith(_MODULE_NAME) and 'ran_modules' in facts:
        kept = _modules_of(facts['ran_modules']).get(one.name.removeprefix(_MODULE_NAME), '-')
        return None if kept == wanted else kept
    if one.name.startswith(_FLAG_NAME) and 'flags' in facts:
        kind = one.name.removeprefix(_FLAG_NAME)
        found = write_flags(_by_kind(facts['flags']).get(kind, {})) or '-'
        # A flag that is not to be there is undone by another.
        own = {**_by_kind(wanted).get(kind, {}), **_by_kind(one.needs[is_made][FLAGS] or '')[kind]}
        return None if found in (wanted, write_flags(own)) else found
    return None


def strange_facts(
    one: Compared, here: Mapping[str, str], switched: Iterable[Factor]
) -> dict[str, tuple[str, str]]:
    """The facts that a figure has here, and had neither before nor after: they explain nothing.

    :param here: facts of a session of a search.
    :returns: by name, what it was after, and what it is.
    """
    (before, _), (after, now) = (both_tell(side.facts, here) for side in (one.before, one.after))
    follows = {*FOLLOWING, *(name for change in switched for name in _facts_of(change))}
    if here.get('hash') in (one.before.facts.get('hash'), one.after.facts.get('hash')):
        follows |= {name for name in after.keys() | now.keys() if name.startswith(OF_SPECS)}
    found = {}
    for name in (after.keys() | now.keys()) - follows:
        known = [side.get(name) or '-' for side in (before, after)]
        value = now.get(name) or '-'
        if not any(value in told.split(' / ') for told in known):
            found[name] = known[1], value
    return found


def _facts_of(one: Factor) -> set[str]:
    """Facts that are other ones with some of the changes than with all or none."""
    names = {name: [name] for name in (FLAGS, NODES, COMMIT)} | {SOURCES: ['suite_commit']}
    names[ENVIRONMENT] = ['mpi', 'ran_mpi']
    if one.name.startswith(_LIMIT_NAME):
        return {f'{OF_SETTINGS}{one.name}'}
    if one.libraries:
        return {*one.libraries}
    if told := one.needs[1].get(SPECS):
        return {*_OF_BUILDS, *(f'{OF_SPECS}{package}' for package in by_package(told))}
    found = {fact for name in one.needs[1] for fact in names.get(name, [name])}
    return {'ran_modules', *found} if one.name.startswith(_MODULE_NAME) else found


def factors_of(
    facts: Sequence[Fact],
    figures: Mapping[int, FigureKey],
    site: _SiteConfig,
    known: Mapping[str, str],
) -> tuple[list[Factor], list[Untried]]:
    """The differences that figures were measured with: those that are switched, and the others.

    :param figures: those to be explained, by their positions in the facts.
    :param site: the configuration of the system, loaded.
    :param known: all facts of one of them after.
    """
    by_name: dict[str, list[Fact]] = {}
    for fact in facts:
        if not fact.figures.isdisjoint(figures):
            by_name.setdefault(fact.name, []).append(fact)
    made = _Maker(figures, site, known, by_name)
    switched: list[Factor] = []
    untried: list[Untried] = []
    for name, those in sorted(by_name.items()):
        if name in FOLLOWING and len(by_name) > 1 and name not in made.program:
            continue
        if _has_several_values(those):
            sides = zip(*((one.before, one.after) for one in those), strict=True)
            before, after = (' / '.join(sorted({*side})) for side in sides)
            untried.append(Untried(name, before, after, 'it has several values'))
            continue
        (fact, *_) = those
        try:
            for one in made.factors(fact):
                if isinstance(one, Factor):
                    switched.append(one)
                else:
                    untried.append(one)
        except AssayError as error:
            untried.append(Untried(name, fact.before, fact.after, str(error)))
    return switched, untried


def _has_several_values(those: Sequence[Fact]) -> bool:
    """Whether a fact is not the same of all figures, before or after."""
    return len({(one.before, one.after) for one in those}) > 1 or any(
        ' / ' in text for one in those for text in (one.before, one.after)
    )


class _Maker:
    """Makes changes of facts; their methods raise the reason if there is no way."""

    def __init__(
        self,
        figures: Mapping[int, FigureKey],
        site: _SiteConfig,
        known: Mapping[str, str],
        facts: Mapping[str, Sequence[Fact]],
    ) -> None:
        self.figures, self.site, self.known, self.facts = figures, site, known, facts
        self.environments = {one['name']: one for one in site['environments']}
        self.families = {
            str(self.environments.get(one.environment, {}).get('extras', {}).get('family', ''))
            for one in figures.values()
        }
        #: The facts by which a program that others built is told from another one.
        self.program = {'binary': {'hash'}, 'repository': {'hash', 'spec'}}.get(
            known.get('by', ''), set()
        )
        if COMMIT in facts:
            self.program -= {'hash'}
        self.cases = ' '.join({one.case for one in figures.values()})

    def factors(self, fact: Fact) -> Iterator[_Found]:
        if variable := _set_by(fact.name):
            if fact.name == min(name for name in self.facts if _set_by(name) == variable):
                yield self._line(variable, fact)
        elif Setting({fact.name: ''}).variables:
            # Open MPI's launcher hands on what files set.
            if self._may_come_with_mpi(fact):
                raise AssayError('launchers of some versions of the MPI set it: it may be theirs')
            if fact.name not in map(_set_by, self.facts):
                yield self._variable(fact)
        elif fact.name.startswith(f'{OF_SETTINGS}{_LIMIT_NAME}'):
            yield _limit(fact)
        elif fact.name.startswith(OF_LIBRARIES):
            yield from self._library(fact)
        elif fact.name.startswith(OF_SPECS):
            yield from self._spec(fact)
        elif fact.name in _OF_BUILDS and self._switches_packages:
            return
        elif fact.name in ('flags', 'suite_commit') and self.known.get('by') == 'spack':
            raise AssayError('Spack builds the sources that are checked out, as it chooses')
        elif fact.name == 'flags':
            yield from _flags(fact)
        elif fact.name == 'ran_modules':
            yield from self._modules(fact)
        elif fact.name == 'ran_mpi' or (fact.name == 'mpi' and 'ran_mpi' not in self.facts):
            yield self._mpi(fact, *self.facts.get('mpi', ()))
        elif fact.name == 'suite_commit':
            yield from _sources(fact)
        elif fact.name == 'nodes':
            yield self._nodes(fact)
        elif fact.name == COMMIT:
            yield self._commit(fact)
        elif fact.name in self.program:
            raise AssayError(self._why_not_built(fact.name))
        elif fact.name.startswith(f'{OF_SETTINGS}preloaded ') and 'LD_PRELOAD' in self.facts:
            return  # that is what has changed it
        elif fact.name != 'mpi':
            reason = (why for name, why in _NOT_TRIED.items() if fact.name.startswith(name))
            raise AssayError(next(reason, 'there is no way to switch it'))

    def _may_come_with_mpi(self, fact: Fact) -> bool:
        """Whether it may be its launcher's: these set it, and another MPI has another launcher."""
        if '-' not in (fact.before, fact.after) or self.facts.keys().isdisjoint({'mpi', 'ran_mpi'}):
            return False
        patterns = [FAMILIES[one].set_by_launcher for one in self.families & FAMILIES.keys()]
        return any(one and re.fullmatch(one, fact.name) for one in patterns)

    def _variable(self, fact: Fact) -> Factor:
        sides = (None if told == '-' else from_field(told) for told in (fact.before, fact.after))
        before, after = ({fact.name: side} for side in sides)
        return Factor(fact.name, fact.before, fact.after, self._weight(fact.name), (before, after))

    def _line(self, variable: str, fact: Fact) -> Factor:
        """A line of a file that steers an MPI, as the variable that comes before the file."""
        given = {name: (value, value) for name, value in self.known.items()}
        given |= {name: (one.before, one.after) for name, (one, *_) in self.facts.items()}
        lines = {name: sides for name, sides in given.items() if _set_by(name) == variable}
        if any(name.endswith('-override.conf') for name in lines):
            raise AssayError('it comes before every variable')
        sides = []
        for side in range(2):
            values = [one[side] for one in lines.values() if one[side] != '-']
            if len(values) > 1:
                raise AssayError('several files set it')
            own = given.get(variable, ('-', '-'))[side]
            sides.append(next((one for one in (own, *values) if one != '-'), '-'))
        if any(' / ' in one or re.search(r' \([^()]*\), ', one) for one in sides):
            raise AssayError(_NOT_ALIKE)
        if sides[0] == sides[1]:
            raise AssayError('the value in force is the same before and after')
        default = None
        if '-' in sides and variable.startswith(PREFIX):
            rival = _rival(variable)
            if rival and any(rival in (name, _set_by(name)) for name in given):
                raise AssayError(f'beside {rival} Open MPI takes not even its default')
            mpis = [re.search(r'\((/.*)\)', one) for one in given.get('ran_mpi', ())]
            known = {default_of(variable, Path(one[1])) if one else None for one in mpis}
            if len(known) > 1:
                raise AssayError('its default is not known to be the same in both MPIs')
            default = next(iter(known), None)
        before, after = ({variable: default if one == '-' else from_field(one)} for one in sides)
        # A variable that is not handed on of the file would stay in force whatever is in the file.
        of_after = {'-', *(one[1] for one in lines.values())}
        is_own = given.get(variable, ('-', '-'))[1] not in of_after
        name = variable if is_own else fact.name.removeprefix(OF_SETTINGS)
        return Factor(name, sides[0], sides[1], self._weight(variable), (before, after))

    def _weight(self, name: str) -> float:
        """The weight of a variable."""
        own = {key for key, one in FAMILIES.items() if name.startswith(one.own_variables or '\0')}
        if name.startswith(OF_THE_START) or (own and own.isdisjoint(self.families)):
            return _OF_NOTHING
        for prefix, transport in _TRANSPORTS.items():
            if name.startswith(prefix):
                return _OF_THE_FABRIC if f'%fabric={transport}' in self.cases else _OF_ANOTHER
        return 1.0

    def _library(self, fact: Fact) -> Iterator[Factor]:
        """The libraries of a folder; nothing if another change has them: that of the MPI, of a
        package that Spack built, or of another library."""
        if 'ran_mpi' in self.facts and all(
            one == '-' or _mpi_folder(mpi) in one
            for one, mpi in zip(self._sides(fact.name), self._sides('ran_mpi'), strict=True)
        ):
            return
        if any(str(paths.SPACK) in one for one in self._sides(fact.name)):
            if self._switches_packages:
                return
            raise AssayError('Spack has built it, and no package that it chose is switched')
        if found := libraries.switch(fact.name, self._changed, self._files(f'{OF_LIBRARIES}libc')):
            weight = _LIBRARY * max(map(self._weight, found.facts))
            before, after = ({found.name: line} for line in found.lines)
            told = [str(one) for one in found.sides]
            sides = before, after
            yield Factor(found.name, told[0], told[1], weight, sides, libraries=found.facts)

    @cached_property
    def _changed(self) -> dict[str, libraries.Sides]:
        """All libraries that changed."""
        return {name: self._files(name) for name in self.facts if name.startswith(OF_LIBRARIES)}

    def _files(self, name: str) -> libraries.Sides:
        """A library on both sides."""
        before, after = map(libraries.read_library, self._sides(name))
        return before, after

    def _sides(self, name: str) -> tuple[str, str]:
        """A fact before and after, whether it changed or not; - for none."""
        for one in self.facts.get(name, ()):
            return one.before, one.after
        known = self.known.get(name, '-')
        return known, known

    def _mpi(self, *told: Fact) -> Factor:
        """:param told: facts that tell which MPI it is, the one that tells most first."""
        sides = [one.before for one in told], [one.after for one in told]
        names = [self._environment(side) for side in sides]
        if names[0] == names[1]:
            raise AssayError(f'the environment {names[0]} has had both')
        before, after = ({ENVIRONMENT: name} for name in names)
        versions = tuple(self._versions(*names))
        return Factor('MPI', sides[0][0], sides[1][0], _MPI, (before, after), versions)

    def _environment(self, told: Sequence[str]) -> str:
        """The environment that has an MPI."""
        library = re.search(r'\((/.*)\)', told[0])
        versions = {}
        for name, one in self.environments.items():
            places = [value for key, value in one.get('env_vars', ()) if key == 'PATH']
            prefix = places[0].partition(':')[0].removesuffix('/bin') if places else ''
            if library and prefix and library[1].startswith(f'{prefix}/'):
                return str(name)
            extras = one.get('extras', {})
            versions[f'{extras.get("family")}@{extras.get("version")}'] = str(name)
        if told[-1] in versions:
            return versions[told[-1]]
        raise AssayError(f'no environment of this system has {told[0]}')

    def _versions(self, before: str, after: str) -> list[Factor]:
        """The changes from an environment to another, by way of those of versions between.

        :returns: nothing if there are none. Of several of one version the first counts.
        """
        family, old = self._version(before)
        others, new = self._version(after)
        if family != others or family not in FAMILIES or not old or not new:
            return []
        between: dict[Version, str] = {}
        for name in self._usable():
            its, version = self._version(name)
            if its == family and version and min(old, new) < version < max(old, new):
                between.setdefault(version, name)
        if not between:
            return []
        row = sorted({**between, old: before, new: after}.items(), reverse=old > new)
        called = FAMILIES[family].name
        return [
            Factor(
                f'version {later}',
                f'{called} {earlier}',
                f'{called} {later}',
                1.0,
                ({ENVIRONMENT: one}, {ENVIRONMENT: other}),
            )
            for (earlier, one), (later, other) in pairwise(row)
        ]

    def _usable(self) -> list[str]:
        """Environments of the partition that have the fabrics of the figures."""
        partitions = {one.partition for one in self.figures.values()}
        fabrics = {*re.findall(r'%fabric=(\S+)', self.cases)}
        return [
            name
            for partition in self.site.get('systems/0/partitions')
            if partition['name'] in partitions
            for name in partition.get('environs', ())
            if fabrics <= {*self.environments.get(name, {}).get('features', ())}
        ]

    def _version(self, name: str) -> tuple[str, Version | None]:
        """Family and version of an environment's MPI; no version where it tells none."""
        extras = self.environments.get(name, {}).get('extras', {})
        try:
            return extras.get('family', ''), Version(str(extras.get('version')))
        except InvalidVersion:
            return extras.get('family', ''), None

    def _modules(self, fact: Fact) -> Iterator[Factor]:
        """A change for each module; modules load what they need themselves."""
        if self.site.get('systems/0/modules_system') == 'nomod':
            raise AssayError('the system has no modules_system')
        old, new = _modules_of(fact.before), _modules_of(fact.after)
        for name in sorted(old.keys() | new.keys()):
            key, sides = f'{_MODULE_NAME}{name}', (old.get(name), new.get(name))
            if sides[0] != sides[1]:
                told = [side or '-' for side in sides]
                needs = {key: sides[0]}, {key: sides[1]}
                yield Factor(key, told[0], told[1], _MODULE, needs)

    def _commit(self, fact: Fact) -> Factor:
        """The program of another commit, which is built as it was after."""
        if '-' in (fact.before, fact.after):
            raise AssayError(f'{FILE} had no repository for it on both sides')
        (application,) = {*re.findall(r'%application=(\S+)', self.cases)}
        entry = site_applications().get(application)
        if entry is None or entry.repository is None:
            raise AssayError(f'{FILE} has no repository for {application}')
        if as_field(entry.build) != self.known.get('spec'):
            raise AssayError(f'{FILE} builds {application} by other commands now than after')
        for side in (fact.before, fact.after):
            repository_of(entry).commit_of(side)
        before, after = ({COMMIT: side} for side in (fact.before, fact.after))
        sides = before, after
        return Factor(COMMIT, fact.before, fact.after, _SOURCES, sides, application=application)

    def _spec(self, fact: Fact) -> Iterator[Factor]:
        """The change of a package of Spack; none of the MPI, which is a change of its own."""
        package = fact.name.removeprefix(OF_SPECS)
        mpis = [side.partition('@')[0] for side in self._sides('mpi')]
        if 'mpi' in self.facts and package in mpis:
            return
        root = self.known.get('spec', '').partition('@')[0]
        if not root:
            raise AssayError('jobs after do not tell which package of Spack they ran')
        for name in {one.environment for one in self.figures.values()}:
            if feature(root) not in self.environments.get(name, {}).get('features', ()):
                raise AssayError(f'give --with {with_package(root)}')
        before, after = (
            {SPECS: one} for one in specs.specs_of_change(fact.name, fact.before, fact.after)
        )
        told = specs.what_differs(before[SPECS], after[SPECS])
        yield Factor(fact.name, *told, _SPEC, (before, after))

    @cached_property
    def _switches_packages(self) -> bool:
        """Whether a package is switched that Spack chose otherwise."""
        for name, (fact, *others) in self.facts.items():
            if name.startswith(OF_SPECS) and not _has_several_values([fact, *others]):
                with suppress(AssayError):
                    if any(self._spec(fact)):
                        return True
        return False

    def _why_not_built(self, name: str) -> str:
        if self.known['by'] == 'binary':
            return f'a program built elsewhere: a `repository` in {FILE} would tell its commit'
        if name == 'spec':
            return f'{FILE} has one `build`, that of now'
        return 'the same commit made another program: compilers are not switched'

    def _nodes(self, fact: Fact) -> Factor:
        schedulers = {one['scheduler'] for one in self.site.get('systems/0/partitions')}
        if not schedulers <= {*SCHEDULERS}:
            raise AssayError('jobs on other nodes are for systems whose jobs Slurm starts')
        before, after = ({NODES: told} for told in (fact.before, fact.after))
        return Factor('nodes', fact.before, fact.after, _NODES, (before, after))


def _mpi_folder(told: str) -> str:
    """The real folder of an MPI's library, as jobs tell that of other libraries."""
    library = re.search(r'\((/.*)\)', told)
    return f'({Path(library[1]).resolve().parent}/' if library else '-'


def _limit(fact: Fact) -> Factor:
    """A soft limit, which a line of the job's script sets before anything is started."""
    name = fact.name.removeprefix(OF_SETTINGS)
    before, after = ({name: _as_ulimit(name, told)} for told in (fact.before, fact.after))
    return Factor(name, fact.before, fact.after, 1.0, (before, after))


def _as_ulimit(name: str, told: str) -> str:
    """A limit in the words of ``ulimit``, which has all but numbers of files in KiB.

    It is told with two digits: where that is above the hard limit, the least that is told so.

    :raises AssayError: if there are no such words.
    """
    option = _LIMITS.get(name.removeprefix(_LIMIT_NAME))
    if option is None or told in ('-', 'not known'):
        raise AssayError('no option of ulimit is known' if option is None else 'a side lacks it')
    if told == 'unlimited' or (told.isdecimal() and option == '-n'):
        return f'{option} {told}'
    number, _, unit = told.partition(' ')
    if unit not in _KIB or not re.fullmatch(r'[\d.]+', number):
        raise AssayError(_NOT_ALIKE)
    size = float(number)
    if _KIB[unit] <= 1 and not (size * _KIB[unit]).is_integer():
        raise AssayError('ulimit sets whole KiB')
    least = max(1.0, size - (0.05 if size <= 10 else 0.5))
    most, least = round(size * _KIB[unit]), math.floor(least * _KIB[unit]) + 1
    return f'{option} {most} || ulimit -S {option} {least}' if least < most else f'{option} {most}'


def _set_by(name: str) -> str | None:
    """The variable that a fact's line of a file stands for."""
    line = set_in_file(name.removeprefix(OF_SETTINGS)) if name.startswith(OF_SETTINGS) else None
    return line[0] if line else None


def _rival(variable: str) -> str | None:
    """The parameter that Open MPI refuses beside another one, whatever its value is."""
    for own, other in (('include', 'exclude'), ('exclude', 'include')):
        if variable.endswith(f'_if_{own}'):
            return variable.removesuffix(own) + other
    return None


def _in_force(variable: str, facts: Mapping[str, str]) -> tuple[str, str]:
    """The value of a variable in a job, and the file that sets it; - and nothing for neither."""
    if variable in facts:
        return facts[variable] or '-', ''
    for name, value in facts.items():
        if _set_by(name) == variable and value != '-':
            return value, name.rpartition(' in ')[2]
    return '-', ''


_NOT_ALIKE = 'it is not the same on all nodes'
#: What the names of changes begin with.
_MODULE_NAME, _FLAG_NAME, _LIMIT_NAME = 'module ', 'flag ', 'limit of '
#: Options of ``ulimit``, and KiB of the units in which a limit is told.
_LIMITS = {'memlock': '-l', 'stack': '-s', 'nofile': '-n', 'core': '-c', 'as': '-v'}
_KIB = {unit: 1024.0**power for power, unit in enumerate(UNITS, -1)}


def _modules_of(loaded: str) -> dict[str, str]:
    """Modules by their names without versions."""
    names = (one for one in loaded.split(':') if one and one != '-')
    return {one.rpartition('/')[0] or one: one for one in names}


# Flags --------------------------------------------------------------------------------------------


def _flags(fact: Fact) -> Iterator[_Found]:
    """A change for each kind of flag."""
    old, new = _by_kind(fact.before), _by_kind(fact.after)
    for kind in sorted(old.keys() | new.keys()):
        sides = old.get(kind, {}), new.get(kind, {})
        if sides[0] == sides[1]:
            continue
        before, after = (write_flags(side) or '-' for side in sides)
        named = f'{_FLAG_NAME}{kind}', before, after
        try:
            needs = _flags_of(*sides), _flags_of(*reversed(sides))
        except AssayError as error:
            yield Untried(*named, str(error))
            continue
        yield Factor(*named, _FLAG, needs)


def _flags_of(side: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The flags that one side of a change needs, in the languages in which it is one."""
    changed = (one for one in {**side, **other} if side.get(one) != other.get(one))
    return {FLAGS: write_flags({one: side.get(one) or _negated(other[one]) for one in changed})}


def _by_kind(flags: str) -> dict[str, dict[str, str]]:
    """The flags of a build by their kinds, and of each by its language."""
    found: dict[str, dict[str, str]] = {}
    for language, words in read_flags(flags).items():
        for flag in words.split():
            found.setdefault(flag_kind(flag), {})[language] = flag
    return found


def _joined(flags: str, more: str) -> str:
    """The flags of two changes."""
    both = [read_flags(one) for one in (flags, more)]
    languages = {**both[0], **both[1]}
    return write_flags(
        {one: ' '.join(filter(None, (some.get(one) for some in both))) for one in languages}
    )


def _negated(flag: str) -> str:
    """The flag that undoes another.

    :raises AssayError: if there is none.
    """
    if re.match('-O', flag):
        return '-O0'
    if '=' not in flag and (match := re.match('-([fm])(no-)?', flag)):
        name = flag_kind(flag).removeprefix(f'-{match[1]}')
        return f'-{match[1]}{"" if match[2] else "no-"}{name}'
    if match := re.match(r'-D(\w+)', flag):
        return f'-U{match[1]}'
    raise AssayError(f'no flag undoes {flag}')


# Packages of Spack --------------------------------------------------------------------------------


def with_package(package: str) -> str:
    """The word for ``--with`` by which Spack builds a package."""
    return 'spack' if package == OURS else f'spack:{package}'


def one_by_one(
    factors: Sequence[Factor], why_not: Callable[[str], str]
) -> tuple[list[Factor], list[Untried]]:
    """The changes, with those of packages as one that Spack cannot make one by one.

    :param why_not: why Spack finds no way to choose packages so; empty if it finds one.
    """
    changes = {one.name: one for one in factors if SPECS in one.needs[1]}

    def reason(undone: Sequence[str]) -> str:
        return why_not(state([*changes.values()], changes.keys() - {*undone}).setting.values[SPECS])

    if not changes:
        return [*factors], []
    for undone in ((), (*changes,)):
        if told := reason(undone):
            gone = [Untried(one.name, one.before, one.after, told) for one in changes.values()]
            return [one for one in factors if one.name not in changes], gone
    groups = specs.switched_together([*changes], lambda undone: not reason(undone))
    others = [one for one in factors if one.name not in changes]
    return [*others, *(_joined_specs([changes[name] for name in names]) for names in groups)], []


def _joined_specs(parts: Sequence[Factor]) -> Factor:
    """The change that is all of these."""
    if len(parts) == 1:
        return parts[0]
    before, after = ('; '.join(one.needs[side][SPECS] or '' for one in parts) for side in range(2))
    names = [one.name.removeprefix(OF_SPECS) for one in parts]
    return Factor(
        OF_SPECS + ' and '.join(names),
        '; '.join(f'{name} {one.before}' for name, one in zip(names, parts, strict=True)),
        '; '.join(f'{name} {one.after}' for name, one in zip(names, parts, strict=True)),
        sum(one.weight for one in parts),
        ({SPECS: before}, {SPECS: after}),
    )


# Commits ------------------------------------------------------------------------------------------


#: What of the suite measures, beside its programs.
_MEASURES = ('assay', 'checks', 'config', 'lib', 'requirements.lock')


def _suite() -> Repository:
    return Repository(paths.ROOT, 'assay culprit')


def _sources(fact: Fact) -> Iterator[_Found]:
    """Programs of another commit; nothing if the suites of both are the same."""
    here = suite_commit()
    sides = fact.before, fact.after
    for one in sides:
        # What is checked out may be measured as it is, and others as they were committed.
        if one != here and one.endswith('-dirty'):
            raise AssayError(f'files were changed since {one.removesuffix("-dirty")[:12]}')
    others = [one for one in sides if one != here]
    if _suite().differ(others, _MEASURES):
        yield Untried('suite', *sides, 'how it measures is not switched')
    name = paths.SOURCES.name
    if _suite().differ(others, [name]):
        folders = (paths.SOURCES if one == here else _unpacked() / one / name for one in sides)
        before, after = ({SOURCES: str(one)} for one in folders)
        yield Factor('sources', *sides, _SOURCES, (before, after))


def steps_of(change: Factor) -> list[Factor]:
    """The changes that a change is made of: none is made without those before it.

    Of an MPI these are its versions; of others the commits that changed the suite's sources, or all
    of an application, oldest first.

    :raises AssayError: if there are none, or the one state does not come from the other by commits.
    """
    if not change.is_of_commits:
        if not change.versions:
            raise AssayError('this partition has no environment with a version between the two')
        return [*change.versions]
    sides = change.before, change.after
    if any(one.endswith('-dirty') for one in sides):
        raise AssayError('there are changes that were not committed')
    name = paths.SOURCES.name
    if change.application:
        repository = repository_of(site_applications()[change.application])
        if repository.has_changes():
            say(f'{repository.path} has changes that are not committed: they are not searched')
        found = repository.between(*sides)
    else:
        found = _suite().between(*sides, name)
    steps = []
    old, before = change.needs[0], sides[0]
    for commit, subject in found:
        new = (
            {COMMIT: commit} if change.application else {SOURCES: str(_unpacked() / commit / name)}
        )
        told = f'commit {commit[:12]} ({subject})'
        steps.append(
            Factor(told, before[:12], commit[:12], 1.0, (old, new), application=change.application)
        )
        before, old = commit, new
    return steps


def _unpacked() -> Path:
    """The folder with those of the sources that are unpacked, by commit."""
    return paths.STATE / 'sources'


def unpack(setting: Setting) -> None:
    """Unpack the sources of a setting, if they are a commit's and that is not done.

    Those that were used last stay, so that what is told of the newest searches can be reproduced.

    :raises AssayError: if they cannot be had.
    """
    sources = Path(setting.values.get(SOURCES, ''))
    if sources.parent.parent == _unpacked():
        _suite().unpack(sources.parent.name, sources, sources.name)
        forget_old(_unpacked().glob('[0-9a-f]*'))
