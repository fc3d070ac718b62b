"""Algorithms of Open MPI's component ``tuned``, and its file of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.mpis.algorithms import (
    Algorithm,
    Algorithms,
    ControlVariables,
    Rule,
    Rules,
    bytes_in_all,
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


def _variable(operation: str) -> str:
    return f'coll_tuned_{_NAMES.get(operation, operation)}_algorithm'


def _offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
    return [
        Algorithm(
            operation,
            name,
            {f'{_PREFIX}{_SWITCH}': '1', f'{_PREFIX}{_variable(operation)}': number},
        )
        for operation in _NUMBERS
        for number, name in variables.get(_variable(operation), {}).get('choices', {}).items()
        if int(number) != _DEFAULT
    ]


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
    env = {f'{_PREFIX}{_SWITCH}': '1', f'{_PREFIX}{_FILE}': '{file}'}
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


ALGORITHMS = Algorithms(offered=_offered, ignored=_ignored, rules=_rules)
