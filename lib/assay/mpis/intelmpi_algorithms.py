"""Algorithms of Intel MPI, which have numbers, and its variables with ranges of sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.mpis.algorithms import Algorithm, Algorithms, ControlVariables, Rule, Rules

_PREFIX = 'I_MPI_ADJUST_'
#: Intel's names where they are not ours: our reduce_scatter is MPI_Reduce_scatter_block.
_NAMES = {'reduce_scatter': 'reduce_scatter_block'}
_OPERATIONS = (
    *('allgather', 'allreduce', 'alltoall', 'barrier', 'bcast'),
    *('gather', 'reduce', 'reduce_scatter', 'scatter'),
)

_RANGE = re.compile(
    rf'^{_PREFIX}(\w+)(?:(?!^I_MPI_).)*?range: *\d+-(\d+)', re.MULTILINE | re.DOTALL
)
_SET = re.compile(rf'^({_PREFIX}\w+)=(.+)$', re.MULTILINE)
_REFUSED = re.compile(r'Incorrect algorithm: (\w+)=')


def _variable(operation: str) -> str:
    return f'{_PREFIX}{_NAMES.get(operation, operation).upper()}'


def _offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
    most = {f'{_PREFIX}{name}': int(last) for name, last in _RANGE.findall(answers)}
    return [
        Algorithm(operation, str(number), {_variable(operation): str(number)})
        for operation in _OPERATIONS
        for number in range(1, most.get(_variable(operation), 0) + 1)
    ]


def _in_force(variables: ControlVariables, answers: str) -> dict[str, str]:
    return dict(_SET.findall(answers))


def _ignored(env: Mapping[str, str], variables: ControlVariables, said: str) -> dict[str, str]:
    """Of a number that it does not have it says so, and goes on."""
    refused = {f'{_PREFIX}{name}' for name in _REFUSED.findall(said)}
    return {name: 'it says that there is no such algorithm' for name in env if name in refused}


def _rules(rules: Sequence[Rule], ranks: int, answers: str) -> Rules:
    by_variable: dict[str, list[str]] = {}
    for rule in sorted(rules, key=lambda one: one.least):
        operation = rule.algorithm.operation
        sizes = f'{rule.least}-{2**31 - 1 if rule.end is None else rule.end - 1}'
        of_it = by_variable.setdefault(_variable(operation), [])
        of_it.append(f'{rule.algorithm.name}:{sizes}@{ranks}-{ranks}')
    env = {name: ';'.join(parts) for name, parts in sorted(by_variable.items())}
    lines = (f"export {name}='{value}'" for name, value in env.items())
    return Rules('\n'.join(lines) + '\n', '# {}', env)


ALGORITHMS = Algorithms(
    questions=(
        *(f'impi_info -v {_variable(operation)}' for operation in _OPERATIONS),
        f'env | grep ^{_PREFIX}',
    ),
    in_force=_in_force,
    offered=_offered,
    ignored=_ignored,
    rules=_rules,
)
