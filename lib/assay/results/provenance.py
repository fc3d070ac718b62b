"""The provenance of cases: what they were built from, what they ran with, and where."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache

from assay.results.cases import Case, Facts, Run
from assay.spack.lock_file import kept_spec
from assay.text import fold_nodes
from assay.witness.settings import OF_LIBRARIES, known_to_both

# The prefix of facts of nodes. A node that does not tell one may have it all the same.
_OF_NODES = 'ran_on_'

#: The prefix of settings. A job whose witness did not look for one may have it all the same.
OF_SETTINGS = 'setting '


def facts_by_case(run: Run, is_chosen: Callable[[str], bool]) -> dict[str, Facts]:
    """The provenance of each chosen case that ran, by its title."""
    return {
        case.title: case.facts
        for case in run.last_cases
        if is_chosen(case.title) and case.fact('by')
    }


def where_by_case(run: Run) -> dict[str, str]:
    """The job and the nodes of each case that had one."""
    return {
        case.title: f'job {case.job.id} on {nodes}'
        for case in run.last_cases
        if (nodes := nodes_of_case(case))
    }


def nodes_of_case(case: Case) -> str:
    """The nodes of a case's job, such as ``n[1-4]``; empty where there was none."""
    return _abbreviated(case.job.nodes) if case.job.nodes else ''


# Thousands of cases of a history ran on the same.
@lru_cache(maxsize=1024)
def _abbreviated(nodes: tuple[str, ...]) -> str:
    return fold_nodes(nodes)


def is_of_fact(name: str) -> bool:
    """Whether a variable of a check tells a fact."""
    return name.startswith(('built_', 'ran_')) or name == 'suite_commit'


def facts_from_variables(words: Mapping[str, str]) -> Facts:
    """The facts among what is known of a case, by the names of its check's variables.

    Unknown facts of nodes are left out; each variable, setting and library is a fact.

    :raises ValueError: if variables or settings are not quoted as a shell does.
    """
    found = {
        name.removeprefix('built_'): words[name]
        for name in sorted(filter(is_of_fact, words))
        if words[name] or not name.startswith(_OF_NODES)
    }
    variables = _settings(found.pop('ran_variables', ''))
    settings = _settings(found.pop('ran_settings', ''))
    told = (
        (name if name.startswith(OF_LIBRARIES) else f'{OF_SETTINGS}{name}', value)
        for name, value in settings
    )
    return (*found.items(), *variables, *told)


# Thousands of cases of a history ran with the same.
@lru_cache(maxsize=1024)
def _settings(variables: str) -> Facts:
    """Name and value of each variable, as ``ran_variables`` has them."""
    pairs = (setting.partition('=') for setting in shlex.split(variables))
    return tuple((name, value) for name, _, value in pairs)


def both_tell(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The facts of both sides; without settings, or libraries, if one side knows of none.

    If the specs of two builds of Spack's were kept, their packages stand there one by one, in place
    of the spec as a whole.
    """
    before, after = _packages_apart(before, after)
    for kind in (OF_SETTINGS, OF_LIBRARIES):
        before, after = known_to_both(before, after, kind)
    return dict(before), dict(after)


def _packages_apart(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Replace two specs that were kept by their packages, one by one."""
    hashes = [side.get('hash', '') for side in (before, after)]
    specs = [kept_spec(one) for one in hashes]
    if hashes[0] == hashes[1] or not all(specs):
        return before, after
    apart = [
        {name: value for name, value in side.items() if name != 'spec'}
        | {f'spec of {package}': chosen for package, chosen in spec.items()}
        for side, spec in zip((before, after), specs, strict=True)
    ]
    return apart[0], apart[1]


def changed_facts(then: Facts, now: Facts) -> Facts:
    """The facts that changed, as lines of text; of nodes and settings those of both sides alone."""
    before, after = both_tell(dict(then), dict(now))
    return tuple(
        (name, f'{before.get(name) or "-"} -> {after.get(name) or "-"}')
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
        if not name.startswith(_OF_NODES) or name in before.keys() & after.keys()
    )
