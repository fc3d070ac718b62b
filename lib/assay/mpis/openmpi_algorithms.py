"""Algorithms of Open MPI's component ``tuned``, and its file of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.mpis.algorithms import (
    OWN_CHOICE,
    Algorithm,
    Algorithms,
    ControlVariables,
    Rule,
    Rules,
    bytes_in_all,
    undoing,
)

#: The numbers of operations in a file of rules (ompi/mca/coll/base/coll_base_functions.h).
_NUMBERS = {
    **{'allgather': 0, 'allreduce': 2, 'alltoall': 3, 'barrier': 6, 'bcast': 7},
    **{'gather': 9, 'reduce': 11, 'reduce_scatter': 13, 'scatter': 15},
}
#: Where that is not ours: our reduce_scatter is MPI_Reduce_scatter_block.
_NAMES = {'reduce_scatter': 'reduce_scatter_block'}

_SWITCH, _FILE = 'coll_tuned_use_dynamic_rules', 'coll_tuned_dynamic_rules_filename'
_PREFIX = 'OMPI_MCA_'

#: Children of a node in chains and trees that a forced algorithm has by default: a rule says it.
_FANOUT = 4
#: Of a rule: the MPI's own choice.
_DEFAULT = 0
#: A file without rules. Open MPI 4 takes a rule of a file before an algorithm that is forced.
_NO_FILE = '/dev/null'


def _variable(operation: str) -> str:
    return f'coll_tuned_{_NAMES.get(operation, operation)}_algorithm'


def _value(variables: ControlVariables, name: str) -> str:
    """What a site or a user gave a variable; empty if nothing did: then it is 0, or no text."""
    return str(variables.get(name, {}).get('value') or '')


def _forced(variables: ControlVariables) -> dict[str, str]:
    names = map(_variable, _NUMBERS)
    return {name: value for name in names if (value := _value(variables, name))}


def _in_force(variables: ControlVariables, answers: str) -> dict[str, str]:
    if not _value(variables, _SWITCH):
        return {}  # then the others have no effect
    file = _value(variables, _FILE)
    return {**({_FILE: file} if file else {}), **_forced(variables)}


def _offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
    site, forced = _in_force(variables, answers), _forced(variables)
    found = []
    for operation in _NUMBERS:
        name = _variable(operation)
        env = {f'{_PREFIX}{_SWITCH}': '1'}
        if _value(variables, _FILE):
            env[f'{_PREFIX}{_FILE}'] = _NO_FILE
        if _value(variables, segments := f'{name}_segmentsize'):
            env[f'{_PREFIX}{segments}'] = '0'
        # Rules switch on whatever is forced, and Open MPI 5 takes that before a rule of a file.
        undone = {one for one in forced if one == name or one not in site}
        beside = dict.fromkeys((f'{_PREFIX}{one}' for one in sorted(undone)), str(_DEFAULT))
        for number, algorithm in variables.get(name, {}).get('choices', {}).items():
            is_own = int(number) == _DEFAULT
            if is_own and not site:
                continue
            its = {**env, f'{_PREFIX}{name}': number}
            found.append(Algorithm(operation, OWN_CHOICE if is_own else algorithm, its, beside))
    return found


def _ignored(env: Mapping[str, str], variables: ControlVariables, said: str) -> dict[str, str]:
    """A number that is out of range leaves the variable as it was, with a message at most."""
    found = {}
    for name, wanted in env.items():
        if (own := name.removeprefix(_PREFIX)) not in variables:
            found[name] = 'it has no such variable'
        elif str(value := variables[own].get('value')) != wanted:
            found[name] = f'it is {value} in force'
    return found


def _rules(rules: Sequence[Rule], ranks: int, answers: str) -> Rules:
    """The format that all of 4.0 to 5.0 read: counts, and behind each as many entries.

    Of communicators the entry of the greatest size counts that is not above theirs, and of those
    below all entries the first: so there is one before ours and one behind it, both without a rule.
    Of messages it is likewise.
    """
    lines = [str(len(operations := sorted({rule.algorithm.operation for rule in rules})))]
    for operation in operations:
        of_it = [rule for rule in rules if rule.algorithm.operation == operation]
        steps = [*_steps(of_it, ranks)]
        lines += [str(_NUMBERS[operation]), '3', '0', '1', f'0 {_DEFAULT} 0 0']
        lines += [str(ranks), str(len(steps)), *steps]
        lines += [str(ranks + 1), '1', f'0 {_DEFAULT} 0 0']
    env = {**undoing(rules), f'{_PREFIX}{_SWITCH}': '1', f'{_PREFIX}{_FILE}': '{file}'}
    return Rules('\n'.join(lines) + '\n', '# {}', env)


def _steps(rules: Sequence[Rule], ranks: int) -> Iterator[str]:
    """Of each size in bytes from which on something else counts: that size, and what counts."""
    at: dict[int, str] = {0: f'0 {_DEFAULT} 0 0'}
    for rule in sorted(rules, key=lambda one: one.least):
        operation = rule.algorithm.operation
        number = rule.algorithm.env[f'{_PREFIX}{_variable(operation)}']
        least = bytes_in_all(operation, rule.least, ranks)
        at[least] = f'{least} {number} {_FANOUT} 0'
        if rule.end is not None:
            end = bytes_in_all(operation, rule.end, ranks)
            at[end] = f'{end} {_DEFAULT} 0 0'
    yield from (line for _, line in sorted(at.items()))


ALGORITHMS = Algorithms(offered=_offered, ignored=_ignored, rules=_rules, in_force=_in_force)
