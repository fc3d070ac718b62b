"""Queries to Slurm on its partitions, nodes and reservations."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from assay import AssayError
from assay.text import as_list, expand_nodes, plain
from assay.tools import ask

#: Seconds that Slurm has for an answer.
PATIENCE = 30

#: Slurm's words of one thing, by their names.
Record = dict[str, str]

#: What ReFrame calls Slurm: with an accounting database, and without.
SCHEDULERS = ('slurm', 'squeue')

#: What states of nodes begin with that nobody has set: they failed, or Slurm lost them.
BROKEN = ('down', 'fail', 'err', 'unk', 'inval')

#: What somebody wrote at the end of a record, which looks like facts: ``set MemSpecLimit=9``.
_REMARK = re.compile(r'\s(?:Comment|Extra|Reason)=')

#: Variables that say which Slurm is meant, and who asks.
_WHICH = ('SLURM_CONF', 'SLURM_CLUSTERS', 'SLURM_JWT')
#: All others are what a user prefers, or what a job around this process was given.
_DEFAULTS = (
    *('SLURM_', 'SBATCH_', 'SALLOC_', 'SRUN_'),
    *('SQUEUE_', 'SINFO_', 'SCONTROL_', 'SACCT_', 'SCANCEL_'),
)

#: What those begin with that Slurm sets in the script of a job: how it is bound.
_OF_BATCH_JOBS = ('SBATCH_CPU_BIND', 'SBATCH_MEM_BIND')

#: What its commands say where its daemons are away, busy or want to be asked less often.
PASSES = re.compile(
    r'timed out|timeout|unable to (contact|connect)|connect(ion)? (failure|refused|reset)|'
    r'temporar(y failure|ily (un|dis)a)|(try again|retry\w*) later|zero bytes were transmitted|'
    r'\bRPC\b|rate limit|standby mode|communications? .*failure|unexpected message|shutting down|'
    r'problem talking',
    re.IGNORECASE,
)

#: Seconds after which it is asked again that has said so.
AGAIN = (1, 2, 4, 8)

#: Characters of a list of nodes that fit into an argument of a program, and a variable: Linux takes
#: 128 KiB, with the name of the variable.
LONGEST_LIST = 120_000

# A leaf switch of topology/tree, or a block of topology/block.
_LEAF = re.compile(r'(?:Switch|Block)Name=(\S+) (?:Level=0|BlockIndex=\d+) .*?Nodes=(\S+)')
_PARTITION = re.compile(r'(?:^|\s)(?:--partition(?:=|\s+)|-p\s*)(\S+)')


class RefusedError(AssayError):
    """A command of Slurm answered, and did not do it; the message is what it said."""


def records(what: str) -> list[Record]:
    """All that Slurm has of a kind.

    :param what: ``partition``, ``node`` or ``reservation``.
    :raises AssayError: if it does not answer.
    """
    # With those that are hidden: a user may name one.
    lines = query_patiently('scontrol', '--oneliner', '--all', 'show', what).splitlines()
    return [record for record in map(_record, lines) if f'{what.title()}Name' in record]


class AwayError(AssayError):
    """Slurm did not answer a command, and may do so later; the message is what that said."""


def query_patiently(*command: str) -> str:
    """As :func:`query`; if Slurm is away for a moment, it is asked again."""
    for pause in AGAIN:
        try:
            return query(*command)
        except AwayError:
            time.sleep(pause)
    return query(*command)


def query(*command: str, patience: float = PATIENCE) -> str:
    """The output of a command of Slurm; that of standard error if there is no other.

    :param patience: seconds that it has.
    :raises RefusedError: if it fails.
    :raises AwayError: if Slurm is away.
    :raises NoAnswerError: if it is not there, or does not answer in time.
    """
    answer = ask(command, patience, env=without_defaults())
    if answer.returncode:
        # A site's wrapper may say why on standard output.
        lines = (answer.stderr.strip() or answer.stdout).splitlines()
        said = '; '.join(filter(None, map(str.strip, lines)))
        if PASSES.search(said):
            raise AwayError(f'Slurm does not answer {command[0]}: {said}')
        raise RefusedError(said or f'{" ".join(command)}: exit code {answer.returncode}')
    return answer.stdout or answer.stderr


def node_states(partitions: Sequence[str]) -> dict[str, str]:
    """The state of each node, such as ``idle`` and ``drained*``, and who took it out, and why.

    :param partitions: those to ask about; none for the default one.
    :raises AssayError: if Slurm does not answer.
    """
    found = {}
    for line in query_patiently(
        'sinfo', '--all', '--Node', '--noheader', '--format=%P|%N|%T|%E'
    ).splitlines():
        partition, _, rest = line.strip().partition('|')
        node, _, rest = rest.partition('|')
        state, _, reason = rest.partition('|')
        is_asked = partition.removesuffix('*') in partitions
        if is_asked if partitions else partition.endswith('*'):
            found[node] = state if reason in ('', 'none') else f'{state}: {reason}'
    return found


def most_nodes(partitions: Sequence[str]) -> float:
    """The nodes of the largest job that one of the partitions takes (``MaxNodes``).

    :param partitions: as of :func:`node_states`.
    :returns: infinity if there is no limit, or Slurm does not answer.
    """
    found = []
    with suppress(AssayError):
        for line in query('sinfo', '--all', '--noheader', '--format=%P|%s').splitlines():
            partition, _, size = line.strip().partition('|')
            name = partition.removesuffix('*')
            if name in partitions if partitions else partition.endswith('*'):
                most = size.rpartition('-')[2]
                found.append(int(most) if most.isdecimal() else math.inf)
    return max(found, default=math.inf)


class ConstraintError(AssayError):
    """Which nodes satisfy a constraint only Slurm can tell."""


def nodes_with(constraint: str, features: Mapping[str, Collection[str]] | None = None) -> set[str]:
    """The nodes that satisfy a constraint.

    :param constraint: features with ``&`` or ``,`` between them, or with ``|``, and parentheses
        where both are.
    :param features: of each node; Slurm is asked for them if they are not known.
    :raises ConstraintError: if it has counts, brackets, or both signs without parentheses.
    :raises AssayError: if Slurm does not answer.
    """
    tokens = re.findall(r'[\w.:+-]+|\S', constraint)
    try:
        _satisfied(unread := [*tokens], {})
    except ValueError:
        unread = tokens
    if unread:
        raise ConstraintError(
            f'only Slurm can tell which nodes satisfy the constraint {plain(constraint)}'
        )
    if features is None:
        features = {
            one['NodeName']: one.get('AvailableFeatures', '').split(',') for one in records('node')
        }
    with_feature: dict[str, set[str]] = {}
    for node, own in features.items():
        for feature in own:
            with_feature.setdefault(feature, set()).add(node)
    return _satisfied(tokens, with_feature)


def _satisfied(tokens: list[str], with_feature: Mapping[str, set[str]]) -> set[str]:
    """The nodes that satisfy a constraint up to its end, or to a parenthesis that ends it.

    :param tokens: of it, those that were read are removed.
    :raises ValueError: if it is not understood.
    """
    found, signs = None, set()
    while True:
        match tokens.pop(0) if tokens else '':
            case '(':
                own = _satisfied(tokens, with_feature)
                if not tokens or tokens.pop(0) != ')':
                    raise ValueError
            case name if re.fullmatch(r'[\w.:+-]+', name):
                own = with_feature.get(name, set())
            case _:
                raise ValueError
        found = own if found is None else found | own if signs == {'|'} else found & own
        if not tokens or tokens[0] == ')':
            return found
        signs.add({'&': '&', ',': '&', '|': '|'}.get(tokens.pop(0)))
        if len(signs) > 1 or None in signs:
            raise ValueError


def reserved_nodes(reservations: str) -> set[str]:
    """The nodes of reservations; a reservation that Slurm does not know has none.

    :param reservations: names, separated by commas.
    :raises AssayError: if Slurm does not answer.
    """
    names = reservations.split(',')
    own = (one for one in records('reservation') if one['ReservationName'] in names)
    return {node for one in own for node in expand_nodes(one.get('Nodes', ''))}


def is_free(state: str) -> bool:
    """Whether a job could have a node now.

    :param state: of the node, as :func:`node_states` gives it.
    """
    # What is switched off is switched on for a job.
    return state.partition(':')[0].rstrip('~#') == 'idle'


def node_list(nodes: Sequence[str]) -> str:
    """The names of nodes as Slurm and MPIs read them, which know a range only at the end of a name.

    In their order; but thousands of them by ranges, or they would be too long for a variable.
    """
    names = ','.join(nodes)
    if len(names) <= LONGEST_LIST:
        return names
    alike: dict[tuple[str, int], set[int]] = {}
    for node in nodes:
        before = node.rstrip('0123456789')
        digits = node[len(before) :]
        alike.setdefault((before, len(digits)), set()).update([int(digits)] if digits else [])
    return ','.join(_folded(*of, numbers) for of, numbers in alike.items())


def _folded(before: str, width: int, numbers: set[int]) -> str:
    text = re.sub(r'\d+', lambda found: found[0].zfill(width), as_list(numbers))
    return f'{before}[{text}]' if len(numbers) > 1 else before + text


def switches() -> dict[str, tuple[str, ...]]:
    """The nodes behind each leaf switch, or of each block, as Slurm knows them, if it does."""
    try:
        shown = query('scontrol', '--oneliner', 'show', 'topology')
        return {name: tuple(expand_nodes(nodes)) for name, nodes in _LEAF.findall(shown)}
    except (AssayError, ValueError):
        return {}


def names_of_hosts(hosts: Iterable[str], nodes: Iterable[str]) -> dict[str, str]:
    """Slurm's names of a job's hosts, of those that call themselves otherwise.

    :param hosts: as their own programs call them.
    :param nodes: as Slurm calls them (``NodeName``).
    """
    nodes = [*nodes]
    other = [host for host in hosts if host not in nodes]
    known = _by_alias((node, [node]) for node in nodes)
    if any(_short(host) not in known for host in other):
        with suppress(AssayError):  # it does not answer: then by their names alone
            known = _by_alias(
                (name, [name, one.get('NodeHostName', name), one.get('NodeAddr', name)])
                for one in records('node')
                for name in [one['NodeName']]
                if name in nodes
            )
    return {host: known[_short(host)] for host in other if _short(host) in known}


def _by_alias(nodes: Iterable[tuple[str, list[str]]]) -> dict[str, str]:
    """The node of each name without its domain, of those that no two nodes have."""
    found: dict[str, set[str]] = {}
    for node, names in nodes:
        for name in names:
            found.setdefault(_short(name), set()).add(node)
    return {name: those.pop() for name, those in found.items() if len(those) == 1}


def _short(host: str) -> str:
    """A name without its domain; an address is all of it."""
    return host if re.fullmatch(r'[\d.]+', host) else host.partition('.')[0].lower()


def partitions_in(options: str) -> list[str]:
    """The partitions that options of sbatch name: of several such options the last counts."""
    named = _PARTITION.findall(options)
    return named[-1].split(',') if named else []


def forget_defaults() -> list[str]:
    """Take a user's defaults out of the environment.

    :returns: those for sbatch.
    """
    for_sbatch = forget_sbatch_defaults()
    for name in [name for name in os.environ if _is_default(name)]:
        del os.environ[name]
    return for_sbatch


def without_defaults() -> dict[str, str]:
    """The environment for a command of Slurm, without a user's defaults and a job around."""
    return {name: value for name, value in os.environ.items() if not _is_default(name)}


def forget_sbatch_defaults() -> list[str]:
    """Take a user's defaults for sbatch out of the environment.

    They override a job's script: ``SBATCH_PARTITION`` would send a case to
    another partition than the one that it is judged as.

    :returns: the names of those that a user has set, and not Slurm for a job around this process.
    """
    of_job = _OF_BATCH_JOBS if 'SLURM_JOB_ID' in os.environ else ()
    names = sorted(name for name in os.environ if name.startswith('SBATCH_'))
    for name in names:
        del os.environ[name]
    return [name for name in names if not name.startswith(of_job)]


def _is_default(variable: str) -> bool:
    return variable.startswith(_DEFAULTS) and variable not in _WHICH


def _record(line: str) -> Record:
    """The words of a line, each the first of its name, without the remarks at its end."""
    record: Record = {}
    for word in _REMARK.split(line)[0].split():
        key, _, value = word.partition('=')
        record.setdefault(key, value)
    return record
