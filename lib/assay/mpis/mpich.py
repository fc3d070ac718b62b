"""MPICH, as of version 4 (the device ch4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay import AssayError
from assay.mpis import hydra, transports
from assay.mpis.algorithms import (
    OWN_CHOICE,
    Algorithm,
    Algorithms,
    ControlVariables,
    Rule,
    Rules,
    name_in_mpi,
    undoing,
)
from assay.mpis.family import AsyncProgress, Family, Recipe

#: What size a selection can ask for (src/mpi/coll/src/csel.c): of a message, or of all blocks. Of
#: gather and scatter it counts elements, whatever they are, so that no rule for sizes is possible.
_OF_A_MESSAGE = ('allreduce', 'alltoall', 'bcast', 'reduce')
_OF_ALL_BLOCKS = ('allgather', 'reduce_scatter')
_OPERATIONS = (*_OF_A_MESSAGE, *_OF_ALL_BLOCKS, 'barrier')

_FILE = 'MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE'
#: Of a variable: MPICH's own choice.
_AUTO = 'auto'

#: It calls the operation on communicators of nodes, on which it must not be chosen again.
_OF_NODES = 'smp'

#: Algorithms with parameters of their own, which a selection would have to give.
_HAS_PARAMETERS = re.compile(r'(?:^|_)(?:k|tree|recexch|pipelined|remexch)(?:_|$)|^recursive_multi')

# A file replaces all that MPICH would select by: it is made from the selection that the library
# holds. And it names the algorithms, which MPICH 4.0 lists in a text without separators.
_QUESTION = (
    'LC_ALL=C grep -aoE '
    '\'[{]"collective=[ -~]*"algorithm=MPIR_[ -~]*|algorithm=MPIR_[A-Za-z0-9_]+\' '
    "$(ldd {program} | grep -oE '/[^ ]*/lib(mpi|mpich)[.]so[^ ]*')"
)
# Of variables with a text MPICH 4.0.2 tells that they are empty, whatever they are.
# And an algorithm is a number there, though it is set by its name.
_QUESTION_OF_SETTINGS = f"env | grep -E '^({_FILE}|MPIR_CVAR_[A-Z_]*_INTRA_ALGORITHM)='"
_SET = re.compile(rf'^({_FILE}|MPIR_CVAR_[A-Z_]*_INTRA_ALGORITHM)=(.+)$', re.MULTILINE)
_ALGORITHM = r'algorithm=(MPIR_{operation}_(?:intra|allcomm)_(\w+))'


def _known(operation: str, answers: str) -> dict[str, str]:
    """The algorithms of an operation that a selection can name: by MPICH's short names."""
    its = name_in_mpi(operation).capitalize()
    found = re.findall(_ALGORITHM.format(operation=its), answers)
    return {short: full for full, short in found if not _HAS_PARAMETERS.search(short)}


def _variable(operation: str) -> str:
    return f'MPIR_CVAR_{name_in_mpi(operation).upper()}_INTRA_ALGORITHM'


def _in_force(variables: ControlVariables, answers: str) -> dict[str, str]:
    values = {name: variables.get(name, {}).get('value') for name in map(_variable, _OPERATIONS)}
    told = dict(_SET.findall(answers))
    found = {name: told.get(name, str(value)) for name, value in values.items() if value}
    return {**found, **({_FILE: told[_FILE]} if _FILE in told else {})}


def _offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
    _selection(answers)  # without it no rule could be written
    site = _in_force(variables, answers)
    found = []
    for operation in _OPERATIONS:
        name = _variable(operation)
        if name not in variables:
            continue
        # A variable counts more than a file.
        beside = {name: _AUTO} if name in site else {}
        its = sorted(_known(operation, answers))
        found += [Algorithm(operation, one, {name: one}, beside) for one in its]
        if site:
            own = {name: _AUTO, **({_FILE: ''} if _FILE in site else {})}
            found.append(Algorithm(operation, OWN_CHOICE, own, beside))
    return found


def _ignored(env: Mapping[str, str], variables: ControlVariables, said: str) -> dict[str, str]:
    """MPICH ends at a name or a file that it does not know; other variables are 0 for auto."""
    found = {}
    for name, wanted in env.items():
        if name not in variables:
            found[name] = 'it has no such variable'
        elif name != _FILE and (variables[name].get('value') in (0, '')) != (wanted == _AUTO):
            found[name] = 'it is not in force'
    return found


def _rules(rules: Sequence[Rule], ranks: int, answers: str) -> Rules:
    """MPICH's own selection, with ours in front for communicators of that size.

    :raises AssayError: if the library holds none.
    """
    selection = _selection(answers)
    for operation in {rule.algorithm.operation for rule in rules}:
        of_it = [rule for rule in rules if rule.algorithm.operation == operation]
        its = selection[f'collective={name_in_mpi(operation)}']
        default = its['comm_type=intra']
        ours = _guarded(operation, _by_size(operation, of_it, ranks, default, answers), default)
        # "<" would be no other: MPICH 4 takes it for "<=".
        its['comm_type=intra'] = {
            **({f'comm_size<={ranks - 1}': default} if ranks > 1 else {}),
            f'comm_size<={ranks}': ours,
            'comm_size=any': default,
        }
    return Rules(
        json.dumps(selection, indent=1) + '\n', '/* {} */', {**undoing(rules), _FILE: '{file}'}
    )


def _selection(answers: str) -> dict[str, Any]:
    """The one that the library holds."""
    found: list[dict[str, Any]] = []
    for line in answers.splitlines():
        if line.startswith('{"collective='):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    if not found:
        raise AssayError(
            "this MPICH's library holds no selection of algorithms that a file could be made from"
        )
    return max(found, key=len)


def _by_size(
    operation: str, rules: Sequence[Rule], ranks: int, default: dict[str, Any], answers: str
) -> dict[str, Any]:
    """The selection for a communicator, by the size of messages."""
    known = _known(operation, answers)

    def chosen(rule: Rule) -> dict[str, Any]:
        if rule.algorithm.name == OWN_CHOICE:
            return default
        algorithm: dict[str, Any] = {f'algorithm={known[rule.algorithm.name]}': {}}
        if rule.algorithm.name == _OF_NODES:
            return {'comm_hierarchy=parent': algorithm, 'comm_hierarchy=any': default}
        return algorithm

    is_of_all = operation in _OF_ALL_BLOCKS
    word, times = ('total_msg_size', ranks) if is_of_all else ('avg_msg_size', 1)
    steps: dict[str, Any] = {}
    for rule in sorted(rules, key=lambda one: one.least):
        if rule.end is None:
            return chosen(rule)
        if rule.least:  # where one rule ends as the next begins, nothing is between them
            steps.setdefault(f'{word}<={rule.least * times - 1}', default)
        steps[f'{word}<={rule.end * times - 1}'] = chosen(rule)
    return {**steps, f'{word}=any': default}


def _guarded(operation: str, ours: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Only for calls as they were measured: MPICH does not ask again whether one can be served."""
    if operation == 'alltoall':
        return {'is_sendbuf_inplace=yes': default, 'is_sendbuf_inplace=no': ours}
    if operation in ('allreduce', 'reduce'):
        enough = {'count<pow2': default, 'count=any': ours}
        built_in = {'is_op_built_in=yes': enough, 'is_op_built_in=no': default}
        return {'is_commutative=yes': built_in, 'is_commutative=no': default}
    if operation == 'reduce_scatter':
        return {'is_commutative=yes': ours, 'is_commutative=no': default}
    return ours


ALGORITHMS = Algorithms(
    offered=_offered,
    ignored=_ignored,
    rules=_rules,
    in_force=_in_force,
    questions=(_QUESTION, _QUESTION_OF_SETTINGS),
)


_UCX = r'ch4:.*\bucx\b'
_OFI = r'ch4:.*\bofi\b'
_IS_UCX = ['CVAR: MPIR_CVAR_NOLOCAL = 1', 'CVAR: MPIR_CVAR_CH4_NETMOD = ucx']

_RECIPES = {
    'shm': Recipe(
        # The OFI netmod carries the messages that shared memory does not, and logs its first one.
        requires=_OFI,
        env={'MPIR_CVAR_NOLOCAL': '0', 'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'},
        expect=['CVAR: MPIR_CVAR_NOLOCAL = 0', 'libfabric provider: ', '::tcp:ep_ctrl:'],
        forbid=['CVAR: MPIR_CVAR_NOLOCAL = 1', 'ep_ctrl:.*FI_CONNECTED'],
    ),
    'ucx-shm': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,sm'},
        expect=[*_IS_UCX, transports.UCX_IS_SHM],
        forbid=transports.UCX_NOT_SHM,
    ),
    'ucx-tcp': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,tcp'},
        expect=[*_IS_UCX, transports.UCX_IS_TCP],
        forbid=transports.UCX_NOT_TCP,
    ),
    'ucx-ib': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,sm,ib'},
        expect=['CVAR: MPIR_CVAR_CH4_NETMOD = ucx', transports.UCX_IS_IB],
        forbid=transports.UCX_NOT_IB,
    ),
    'ofi-tcp': Recipe(
        requires=_OFI,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'},
        expect=[
            'CVAR: MPIR_CVAR_NOLOCAL = 1',
            'libfabric provider: tcp',
            '::tcp:ep_ctrl:.*FI_CONNECTED',
        ],
        forbid=[transports.OFI_NOT_TCP, 'libfabric provider: (?!tcp)'],
    ),
    'ofi-cxi': Recipe(
        requires=_OFI,
        # Without the last one it leaves this provider alone where all ranks are on one host, and
        # has no other.
        env={
            'MPIR_CVAR_CH4_NETMOD': 'ofi',
            'FI_PROVIDER': 'cxi',
            'MPIR_CVAR_SINGLE_HOST_ENABLED': '0',
        },
        expect=['libfabric provider: cxi'],
        forbid=['libfabric provider: (?!cxi)'],
    ),
    'ofi-psm': Recipe(
        requires=_OFI,
        env={'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'psm2'},
        expect=['libfabric provider: psm2'],
        forbid=['libfabric provider: (?!psm2)'],
    ),
}

FAMILY = Family(
    key='mpich',
    name='MPICH',
    launcher_says=hydra.SAYS + hydra.VERSION,
    wrapper_says=r'^mpi\S+ for MPICH version (\d\S*)',
    hints=r'(?i)mpich|mpiexec\.hydra|hydra_pmi',
    modules='mpich',
    in_debian=True,
    beside_launcher=(hydra.PROXY,),
    description=('mpichversion',),
    compiler_variable='MPICH_CC',
    is_needed=True,
    spack='mpich',
    bind=hydra.bind,
    srun_pmi='pmi2',
    interface=(hydra.INTERFACE, *transports.INTERFACE),
    own_variables=hydra.VARIABLES,
    set_by_launcher=hydra.SETS,
    library='^MPICH',
    refusal=r'launcher not compatible with PMI\w* client',
    statement={
        'MPIR_CVAR_DEBUG_SUMMARY': '1',
        'MPIR_CVAR_DEBUG_CVARS': '1',
        **transports.STATEMENT,
    },
    quote=r'CVAR: MPIR_CVAR_(?:NOLOCAL|CH4_NETMOD) = .*|libfabric provider: .*'
    rf'|ep_ctrl:.*FI_CONNECTED|{transports.UCX_QUOTE}',
    async_progress=AsyncProgress(
        env={'MPIR_CVAR_ASYNC_PROGRESS': '1'}, expect='CVAR: MPIR_CVAR_ASYNC_PROGRESS = 1'
    ),
    algorithms=ALGORITHMS,
    recipes=_RECIPES,
    # Of the common ABI, which Intel MPI and others have as well.
    soname='libmpi.so.12',
)
