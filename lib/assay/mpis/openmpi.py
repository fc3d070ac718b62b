"""Open MPI, as of version 4."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.mpis import transports
from assay.mpis.algorithms import (
    OWN_CHOICE,
    Algorithm,
    Algorithms,
    ControlVariables,
    Rule,
    Rules,
    bytes_in_all,
    name_in_mpi,
    undoing,
)
from assay.mpis.family import Family, Recipe, Words

#: The numbers of operations in a file of rules (ompi/mca/coll/base/coll_base_functions.h).
_NUMBERS = {
    **{'allgather': 0, 'allreduce': 2, 'alltoall': 3, 'barrier': 6, 'bcast': 7},
    **{'gather': 9, 'reduce': 11, 'reduce_scatter': 13, 'scatter': 15},
}
_SWITCH, _FILE = 'coll_tuned_use_dynamic_rules', 'coll_tuned_dynamic_rules_filename'
_PREFIX = 'OMPI_MCA_'

#: Children of a node in chains and trees that a forced algorithm has by default: a rule says it.
_FANOUT = 4
#: Of a rule: the MPI's own choice.
_DEFAULT = 0
#: Of the major versions: those before read the classic format alone. This one reads it as well, but
#: gives the entry of a communicator's size to the smaller ones (as its sources were in 2025).
_FIRST_WITH_JSON = 6
#: A file without rules. Open MPI 4 takes a rule of a file before an algorithm that is forced.
_NO_FILE = '/dev/null'


def _variable(operation: str) -> str:
    return f'coll_tuned_{name_in_mpi(operation)}_algorithm'


def _value(variables: ControlVariables, name: str) -> str:
    """The value that a site or a user gave a variable.

    Empty if nobody set it, which 0 and an empty text count as.
    """
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
    env = {**undoing(rules), f'{_PREFIX}{_SWITCH}': '1', f'{_PREFIX}{_FILE}': '{file}'}
    told = re.search(r'^Open MPI v(\d+)\.', answers, re.MULTILINE)
    if told and int(told[1]) >= _FIRST_WITH_JSON:
        return Rules(_json_rules(rules, ranks), '', env)
    return Rules(_classic_rules(rules, ranks), '# {}', env)


def _json_rules(rules: Sequence[Rule], ranks: int) -> str:
    """Rules as JSON, which has no comments. The MPI chooses where no rule applies."""
    collectives: dict[str, Any] = {}
    for rule in sorted(rules, key=lambda one: one.least):
        operation = rule.algorithm.operation
        of_ranks = {'comm_size_min': ranks, 'comm_size_max': ranks, 'rules': []}
        (entry,) = collectives.setdefault(name_in_mpi(operation), [of_ranks])
        last = 'inf' if rule.end is None else bytes_in_all(operation, rule.end, ranks) - 1
        entry['rules'].append(
            {
                'msg_size_min': bytes_in_all(operation, rule.least, ranks),
                'msg_size_max': last,
                'alg': int(rule.algorithm.env[f'{_PREFIX}{_variable(operation)}']),
                'faninout': _FANOUT,
                'seg_size': 0,
            }
        )
    whole = {'rule_file_version': 3, 'module': 'tuned', 'collectives': collectives}
    return json.dumps(whole, indent=1) + '\n'


def _classic_rules(rules: Sequence[Rule], ranks: int) -> str:
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
    return '\n'.join(lines) + '\n'


def _steps(rules: Sequence[Rule], ranks: int) -> Iterator[str]:
    """The lines of a rules file: each size in bytes at which the choice changes, and the choice."""
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


def _bind(layout: str, ranks: int, threads: int) -> Words:
    if layout == 'default':  # slots say how many ranks a node has
        return [], {}
    place, bind = {
        'packed': (f'slot:PE={threads}', 'core'),
        'spread': (f'numa:PE={threads}', 'core'),
        'one-per-numa': ('ppr:1:numa', 'numa'),
        'one-per-node': ('ppr:1:node', 'none'),
        'mixed': (f'ppr:{ranks}:node', 'none'),
        'threads': ('hwthread', 'hwthread'),
        'cyclic': (f'node:PE={threads}', 'core'),
        'hybrid': (f'ppr:{ranks}:node:PE={threads}', 'core'),
    }[layout]
    # Or cores were its slots. As of version 5 it is a word for --map-by :hwtcpus, which 4 has not.
    counts = ['--use-hwthread-cpus'] if layout == 'threads' else []
    return [*counts, f'--map-by {place}', f'--bind-to {bind}'], {}


_UCX = r'MCA pml: ucx\b'
_OFI = r'MCA mtl: ofi\b'

# Transports (BTLs) of Open MPI's own, which it opens beside UCX and libfabric for one-sided
# messages. Version 5 sleeps for a second when it closes `ofi` again.
_NO_RDMA_BTL = {'OMPI_MCA_btl': '^ofi,openib,uct'}


def _ucx(tls: str) -> dict[str, str]:
    return {
        'OMPI_MCA_pml': 'ucx',
        **_NO_RDMA_BTL,
        'OMPI_MCA_opal_common_ucx_tls': 'any',
        'OMPI_MCA_opal_common_ucx_devices': 'any',
        'UCX_TLS': tls,
    }


def _ofi(provider: str) -> dict[str, str]:
    return {
        'OMPI_MCA_pml': 'cm',
        'OMPI_MCA_mtl': 'ofi',
        'OMPI_MCA_opal_common_ofi_provider_include': provider,
        'FI_PROVIDER': provider,
    }


# One-sided operations by ob1's BTLs, and not by UCX. Version 4.1 takes its `rdma` first, which
# fails where no BTL has RDMA (open-mpi/ompi issues 9871 and 11466); its `pt2pt` sends messages.
_ONE_SIDED = {'OMPI_MCA_osc': '^ucx', 'OMPI_MCA_osc_rdma_priority': '1'}
#: Version 4 prefers its BTLs for them, within a node by memory, whatever messages take.
_BY_UCX = {'OMPI_MCA_osc': 'ucx'}

_OFF_HOST_NOT_OFI = 'off-host: +(?! |all connections are (?:ofi|n/a))'

_RECIPES = {
    'shm': Recipe(
        requires=r'MCA btl: (?:sm|vader)\b',
        env={'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,vader'},  # version 4's name for sm
        expect=['on-host: +all connections are sm|bml: Using (?:sm|vader) btl for send'],
        forbid=[
            'o(?:n|ff)-host: +(?! |all connections are (?:sm|n/a))',
            r'bml: Using (?!self|sm|vader)\w+ btl for send',
        ],
    ),
    'tcp': Recipe(
        requires=r'MCA btl: tcp\b',
        env={'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,tcp'},
        expect=['o(?:n|ff)-host: +all connections are tcp|bml: Using tcp btl for send'],
        forbid=[
            'o(?:n|ff)-host: +(?! |all connections are (?:tcp|self|n/a))',
            r'bml: Using (?!self|tcp)\w+ btl for send',
        ],
        one_sided=_ONE_SIDED,
    ),
    'ucx-shm': Recipe(
        requires=_UCX,
        env=_ucx('self,sm'),
        expect=[
            'on-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_SHM,
        ],
        forbid=transports.UCX_NOT_SHM,
        one_sided=_BY_UCX,
    ),
    'ucx-tcp': Recipe(
        requires=_UCX,
        env=_ucx('self,tcp'),
        expect=[
            'o(?:n|ff)-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_TCP,
        ],
        forbid=transports.UCX_NOT_TCP,
        one_sided=_BY_UCX,
    ),
    'ucx-ib': Recipe(
        requires=_UCX,
        env=_ucx('self,sm,ib'),
        expect=[
            'off-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_IB,
        ],
        forbid=transports.UCX_NOT_IB,
        one_sided=_BY_UCX,
    ),
    'ofi-tcp': Recipe(
        requires=_OFI,
        env=_ofi('tcp;ofi_rxm') | _NO_RDMA_BTL,
        expect=[
            'o(?:n|ff)-host: +all connections are ofi|select: component cm selected',
            '::ofi_rxm:ep_ctrl:',
        ],
        forbid=[
            transports.OFI_NOT_TCP,
            'o(?:n|ff)-host: +(?! |all connections are (?:ofi|self|n/a))',
        ],
        one_sided=None,  # they go by BTLs, within a node by memory
    ),
    'ofi-cxi': Recipe(
        requires=_OFI,
        env=_ofi('cxi'),
        expect=['off-host: +all connections are ofi', '::cxi:'],
        forbid=[transports.OFI_OTHERS, _OFF_HOST_NOT_OFI],
    ),
    'ofi-psm': Recipe(
        requires=_OFI,
        env=_ofi('psm2'),
        expect=['off-host: +all connections are ofi', '::psm2:'],
        forbid=[transports.OFI_OTHERS, _OFF_HOST_NOT_OFI],
    ),
}

# Version 4's launcher hands its options on, and what it found out for all ranks.
_SETS = (
    'OMPI_MCA_(?:rmaps_base_mapping_policy|hwloc_base_binding_policy|mpi_oversubscribe|pmix'
    '|shmem_RUNTIME_QUERY_hint)|PMIX_MCA_mca_base_component_show_load_errors'
)

FAMILY = Family(
    key='openmpi',
    name='Open MPI',
    launcher_says=r'(?:Open MPI|OpenRTE)\)? v?(\d\S*)',
    wrapper_says=r'^(?:\S*/)?mpi\S+: Open MPI v?(\d\S*)',
    wrapper_option='--showme:version',
    hints=r'(?i)open-?mpi|\bompi|opal|orte|open-rte|prte',
    # HPC-X and NVIDIA's HPC SDK bring it under their own names.
    modules='open-?mpi|ompi|hpc-?x',
    in_debian=True,
    description=('ompi_info',),
    needs_description=True,
    compiler_variable='OMPI_CC',
    is_needed=True,
    spack='openmpi',
    bind=_bind,
    srun_pmi='pmix',
    interface=('OMPI_MCA_btl_tcp_if_include', *transports.INTERFACE),
    # In a container root is the usual user.
    as_root={'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'},
    own_variables=('OMPI_MCA_', 'PRTE_MCA_', 'PMIX_MCA_'),
    set_by_launcher=_SETS,
    library='^Open MPI',
    refusal="OMPI was not built with SLURM's PMI support",
    statement={
        'OMPI_MCA_ompi_display_comm': 'mpi_finalize',  # Open MPI 5: a table per pair of hosts
        'OMPI_MCA_btl_base_verbose': '20',  # Open MPI 4: the transport (BTL) of each peer
        'OMPI_MCA_pml_base_verbose': '10',  # Open MPI 4: the point-to-point layer (PML)
        **transports.STATEMENT,
    },
    quote=r'o(?:n|ff)-host: .*|bml: Using (?!self).* btl for send|select: component \w+ selected'
    rf'|{transports.UCX_QUOTE}',
    algorithms=ALGORITHMS,
    recipes=_RECIPES,
    soname='libmpi.so.40',
)
