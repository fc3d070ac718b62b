"""Intel MPI, as of 2021."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.mpis import hydra
from assay.mpis.algorithms import (
    Algorithm,
    Algorithms,
    ControlVariables,
    Rule,
    Rules,
    name_in_mpi,
)
from assay.mpis.family import AsyncProgress, Family, Recipe, Words

_PREFIX = 'I_MPI_ADJUST_'
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
    return f'{_PREFIX}{name_in_mpi(operation).upper()}'


def _offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
    most = {f'{_PREFIX}{name}': int(last) for name, last in _RANGE.findall(answers)}
    return [
        Algorithm(operation, str(number), {_variable(operation): str(number)})
        for operation in _OPERATIONS
        for number in range(1, most.get(_variable(operation), 0) + 1)
    ]


def _ignored(env: Mapping[str, str], variables: ControlVariables, said: str) -> dict[str, str]:
    """Variables that Intel MPI ignored: it says that it has no such algorithm, and goes on."""
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
    in_force=lambda variables, answers: dict(_SET.findall(answers)),
    offered=_offered,
    ignored=_ignored,
    rules=_rules,
)


def _bind(layout: str, ranks: int, threads: int) -> Words:
    env = {
        'default': {},
        'packed': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:compact'},
        'spread': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:scatter'},
        'one-per-numa': {'I_MPI_PIN_DOMAIN': 'numa'},
        'one-per-node': {'I_MPI_PIN_DOMAIN': 'node'},
        'mixed': {'I_MPI_PIN': '0'},
        'threads': {'I_MPI_PIN_CELL': 'unit', 'I_MPI_PIN_DOMAIN': '1:compact'},
        'cyclic': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:compact'},
        'hybrid': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:compact'},
    }[layout]
    # Modules of sites switch it off for users of srun, and domains then bind nothing.
    if 'I_MPI_PIN_DOMAIN' in env:
        env['I_MPI_PIN'] = '1'
    # Without it a scheduler's tasks of a node count, and not -ppn.
    return [f'-ppn {hydra.ppn(layout, ranks)}'], env | {'I_MPI_JOB_RESPECT_PROCESS_PLACEMENT': '0'}


def _wheel_env(prefix: Path) -> dict[str, str]:
    """Its wheel is made to be moved: its scripts hold a placeholder for the prefix."""
    if not (prefix / 'bin' / 'impi_info').exists():
        return {}
    libraries = [f'{prefix}/lib', os.environ.get('LD_LIBRARY_PATH')]
    return {
        'I_MPI_ROOT': str(prefix),
        'FI_PROVIDER_PATH': f'{prefix}/lib',
        'LD_LIBRARY_PATH': ':'.join(filter(None, libraries)),
    }


# As of 2019 all its networks are libfabric's, and its words are these.
_OVER_LIBFABRIC = r'Version 20(?:19|[2-9]\d)'

_RECIPES = {
    'shm': Recipe(
        requires=_OVER_LIBFABRIC,
        env={'I_MPI_FABRICS': 'shm'},
        expect=['shm segment size '],
        forbid=['libfabric provider: '],
    ),
    'ofi-tcp': Recipe(
        requires=_OVER_LIBFABRIC,
        # Without the last one small collectives go through shared memory all the same.
        env={
            'I_MPI_FABRICS': 'ofi',
            'I_MPI_OFI_PROVIDER': 'tcp',
            'FI_PROVIDER': 'tcp',
            'I_MPI_COLL_INTRANODE': 'pt2pt',
        },
        expect=['libfabric provider: tcp'],
        forbid=['shm segment size ', 'libfabric provider: (?!tcp)'],
    ),
    'ofi-cxi': Recipe(
        requires=_OVER_LIBFABRIC,
        env={'I_MPI_FABRICS': 'shm:ofi', 'I_MPI_OFI_PROVIDER': 'cxi', 'FI_PROVIDER': 'cxi'},
        expect=['libfabric provider: cxi'],
        forbid=['libfabric provider: (?!cxi)'],
    ),
    'ofi-psm': Recipe(
        requires=_OVER_LIBFABRIC,
        env={'I_MPI_FABRICS': 'shm:ofi', 'I_MPI_OFI_PROVIDER': 'psm2', 'FI_PROVIDER': 'psm2'},
        expect=['libfabric provider: psm2'],
        forbid=['libfabric provider: (?!psm2)'],
    ),
}

# What its launcher tells ranks of their places, as it worked them out.
_SETS = (
    'I_MPI_(?:PIN_DOMAIN_SIZE|PIN_ORDER|PIN_MAPPING|HYDRA_TOPOLIB|INTERNAL_MEM_POLICY'
    '|BIND_WIN_ALLOCATE|RETURN_WIN_MEM_NUMA)'
)

FAMILY = Family(
    key='intelmpi',
    name='Intel MPI',
    launcher_says=r'Intel\(R\) MPI Library.*Version (\d\S*)',
    wrapper_says=r'for the Intel\(R\) MPI Library (\d\S*)',
    hints=r'(?i)intel-?mpi|\bimpi|oneapi/(?:mpi|\d[\d.]*)\b',
    wrappers={'mpicc': 'mpicxx', 'mpigcc': 'mpigxx', 'mpiicx': 'mpiicpx', 'mpiicc': 'mpiicpc'},
    modules='intel[-_]?(?:oneapi-)?mpi|i_?mpi',
    compiler_variable='I_MPI_CC',
    wheel_env=_wheel_env,
    # No Spack: the wheel is not laid out as Spack's package of it expects.
    bind=_bind,
    interface=('FI_TCP_IFACE',),
    own_variables=('I_MPI_', *hydra.VARIABLES),
    set_by_launcher=rf'{hydra.SETS}|{_SETS}',
    library=r'^Intel\(R\) MPI',
    # MPICH's, from which it is made.
    refusal=r'launcher not compatible with PMI\w* client',
    statement={'I_MPI_DEBUG': '10'},
    quote='libfabric provider: .*|shm segment size .*|I_MPI_FABRICS=.*',
    async_progress=AsyncProgress(
        env={'I_MPI_ASYNC_PROGRESS': '1'}, expect='threading: async_progress: 1'
    ),
    algorithms=ALGORITHMS,
    recipes=_RECIPES,
    # Of the common ABI, which MPICH has as well.
    soname='libmpi.so.12',
)
