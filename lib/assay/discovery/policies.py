"""The requests that a site allows: the limits of a partition, and the options that sbatch takes.

Every job of a partition is asked for by the same words: those that ``sbatch --test-only`` is tried
with, those of the job of ``assay init``, and, by way of the system's file, those of ReFrame's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from assay import AssayError
from assay.config.scales import SCALES
from assay.machine.slurm import Record, RefusedError, query, query_patiently
from assay.quantities import clock_seconds

#: The longest job of a check, in minutes: an application's largest problem.
LONGEST = 360
#: What is tried where sbatch takes no job of that length.
SHORTER = (240, 120, 60, 30, 20, 15, 10, 5)

#: What `sbatch --test-only` says where nodes are drained or down, for which a job would wait, and
#: where no node is like that.
_UNAVAILABLE = re.compile(
    'Requested node configuration is not available|Required node not available'
)
#: What it says beside a reason.
_NO_REASON = 'Unspecified error'

#: How its own words begin; others are of a site's wrapper.
_OWN = re.compile(r'^(?:sbatch: (?:error|fatal): |allocation failure: )')
_HEAD = re.compile(r'^(?:sbatch: )?(?:error: |fatal: |allocation failure: )*')

#: A site that does not let its users ask in advance.
_NO_TEST = re.compile(r'test[-_]only', re.IGNORECASE)

#: States of a node that jobs can have, now or when others have ended.
_UP = re.compile(r'(IDLE|MIXED|ALLOCATED)(\+(CLOUD|COMPLETING|PLANNED|RESERVED))*')

#: Options of sbatch that are set for each job, and what to do instead.
_OF_EACH_JOB = (
    (r'-p|--partition', 'where jobs run is chosen by --partition=NAME'),
    (
        r'-[na]|--(ntasks\S*|array)',
        'the size of a job is set for each; --access=--nodes=N names the most nodes',
    ),
    (r'-[wM]|--(nodelist|clusters?)', 'where jobs run is chosen by --partition or --constraint'),
    (r'-[oeDi]|--(output|error|chdir|input)', 'each job has files of its own'),
)
_OPTION = re.compile(r'(--[\w-]+|-[A-Za-z])(?:=|\s+)?(\S.*)?')

#: What to type where sbatch's words are like this; the first counts.
_REMEDIES = (
    (r'reservation', '--access=--reservation=NAME'),
    (
        r'permission denied',
        'it on a host and as a user and group that the partition allows: scontrol show partition',
    ),
    (
        r'\bsubmit limit|max\w*submit',
        'again when other jobs of yours have ended, or --access=--qos=NAME',
    ),
    (r'\bqos\b|quality of service', '--access=--qos=NAME'),
    (r'wckey', '--access=--wckey=NAME'),
    (r'licen[cs]e', '--access=--licenses=NAME'),
    (r'account|association|\bproject|budget', '--access=--account=NAME'),
    (r'constraint|feature', '--access=--constraint=NAME'),
    (r'\bgres\b|gpu', '--access=--gpus-per-node=N'),
    (r'exclusive|oversubscribe', '--access=--exclusive=user or another that leaves nodes alone'),
    (r'\bmem(ory)?\b|--mem|MaxMem', '--access=--mem=MIB or --access=--mem-per-cpu=MIB'),
    (r'time|wall', '--access=--time=MINUTES'),
    (r'partition', '--partition=NAME'),
    (r'\bnodes?\b', '--access=--nodes=N, the most nodes of a job'),
)


@dataclass(frozen=True)
class Named:
    """The options that a user gave by ``--access``.

    :param options: passed to sbatch with each job.
    :param minutes: that a job may take at most, by the user; None for no limit of his.
    :param nodes: that a job may have at most, likewise.
    """

    options: tuple[str, ...] = ()
    minutes: int | None = None
    nodes: int | None = None

    def has(self, *names: str) -> bool:
        """Whether an option is among them, by its long or short name."""
        return any(one.startswith(names) for one in self.options)

    def value(self, *names: str) -> str | None:
        """The value of an option; None if it is not among them."""
        for one in self.options:
            if (match := _OPTION.fullmatch(one)) and match[1] in names:
                return match[2]
        return None


@dataclass(frozen=True)
class Limits:
    """The most that jobs of a partition may have.

    :param minutes: at most; None for no limit, and ``whose`` limit that is.
    :param least: nodes of a job, and ``most``.
    :param memory: of a node, in MiB, at most; None for all of it.
    :param memory_per_cpu: likewise of a node's memory for each of its CPUs.
    :param default_memory: of a node, where a job does not ask for any; likewise for each CPU.
    :param is_whole_nodes: whether each job has its nodes alone, whatever it asks for.
    """

    minutes: int | None
    whose: str
    least: int
    most: int | None
    memory: int | None
    memory_per_cpu: int | None
    default_memory: int | None
    default_per_cpu: int | None
    is_whole_nodes: bool


@dataclass(frozen=True)
class NodesOfType:
    """Nodes of one type in a partition, and what is known of jobs there before sbatch is asked.

    :param records: of Slurm.
    :param options: of sbatch that choose them, and those of the user.
    :param threads: of a core.
    :param cpus: of a node, as Slurm counts them.
    :param all_memory: MiB of a node; 0 if nobody told Slurm.
    :param is_memory_given: whether memory is given out like CPUs.
    """

    records: Sequence[Record]
    options: Sequence[str]
    threads: int
    cpus: int
    all_memory: int
    is_memory_given: bool
    limits: Limits
    asked: Named

    @property
    def scales(self) -> list[str]:
        """The scales that the limits allow.

        :raises RefusedError: if they allow none.
        """
        count, limits = len(self.records), self.limits
        most = min(count, limits.most or count)
        if found := [name for name, nodes in SCALES.items() if limits.least <= nodes <= most]:
            return found
        raise RefusedError(
            f'jobs have {limits.least} to {most} nodes, and scales '
            f'{", ".join(map(str, SCALES.values()))}'
        )

    @property
    def memory(self) -> int:
        """MiB that a job may have of a node; 0 if nobody told Slurm what it has."""
        of_cpus = self.limits.memory_per_cpu and self.limits.memory_per_cpu * self.cpus
        known = (self.all_memory, self.limits.memory, of_cpus)
        return min(one for one in known if one is not None)

    def refusal(self, options: Sequence[str], minutes: int, scale: str) -> str | None:
        """Why sbatch would not take a job with these options as well; None if it would."""
        words = [*self.options, *options]
        why, _ = answer_of_sbatch(words, self.records, SCALES[scale], minutes)
        return why


@dataclass(frozen=True)
class Terms:
    """How a job of a partition is asked for.

    :param options: of sbatch, and the reason for each.
    :param minutes: that a job may take at most, and whose limit that is; None for no limit.
    :param memory: of a node that such a job has, in MiB, as far as Slurm tells.
    """

    options: tuple[tuple[str, str], ...]
    minutes: int | None
    whose: str
    memory: int | None


class UntriedError(AssayError):
    """sbatch does not let anybody ask in advance."""


def parse_access(access: Sequence[str]) -> Named:
    """The meaning of a user's options.

    :raises AssayError: if one is none, or is not for the user to name.
    """
    options: list[str] = []
    minutes = nodes = None
    for option in access:
        match = _OPTION.fullmatch(option)
        words = match[2] if match else None
        if not match or (words and re.search(r'\s-', words)):
            raise AssayError(
                f'--access={option}: name an option that sbatch needs, such as --account=NAME; '
                f'where jobs run is chosen by --partition'
            )
        name, value = match[1], words or ''
        for expression, instead in _OF_EACH_JOB:
            if re.fullmatch(expression, name):
                raise AssayError(f'--access={option}: {instead}')
        if name in ('-t', '--time'):
            if (minutes := as_minutes(value)) is None:
                raise AssayError(f'--access={option}: name the most minutes of a job: --time=60')
        elif name in ('-N', '--nodes'):
            if not (most := re.fullmatch(r'(?:\d+-)?(\d+)', value)) or not int(most[1]):
                raise AssayError(f'--access={option}: name the most nodes of a job: --nodes=2')
            nodes = int(most[1])
        else:
            options.append(option)
    return Named(tuple(options), minutes, nodes)


def as_minutes(limit: str) -> int | None:
    """A limit of Slurm's, ``1-00:00:00``, in minutes; None if it is no time."""
    seconds = clock_seconds(limit)
    return None if seconds is None else seconds // 60


def limits(record: Record, asked: Named) -> Limits:
    """The limits of a partition, of the QOS of its jobs, and of the user."""

    def number(key: str) -> int | None:
        value = record.get(key, '')
        return int(value) if value.isdigit() else None

    times = [
        (as_minutes(record.get('MaxTime', '')), f'MaxTime of {record["PartitionName"]}'),
        (asked.minutes, '--access=--time'),
    ]
    nodes = [number('MaxNodes'), asked.nodes]
    for qos in {record.get('QoS', 'N/A'), asked.value('--qos', '-q') or 'N/A'} - {'N/A'}:
        wall, most = _of_qos(qos)
        times.append((wall, f'MaxWall of the QOS {qos}'))
        nodes.append(most)
    known = [(time, whose) for time, whose in times if time]
    minutes, whose = min(known) if known else (None, '')
    return Limits(
        minutes=minutes,
        whose=whose,
        least=number('MinNodes') or 0,
        most=min((one for one in nodes if one is not None), default=None),
        memory=number('MaxMemPerNode'),
        memory_per_cpu=number('MaxMemPerCPU'),
        default_memory=number('DefMemPerNode'),
        default_per_cpu=number('DefMemPerCPU'),
        is_whole_nodes=record.get('OverSubscribe', '').startswith('EXCLUSIVE'),
    )


def with_memory_of(cluster: Mapping[str, str], partition: Record) -> Record:
    """A partition with the cluster's default and limit of memory, where it has none of its own."""
    found = dict(partition)
    for kind in ('DefMemPer', 'MaxMemPer'):
        keys = (f'{kind}Node', f'{kind}CPU')
        if not any(partition.get(key, '').isdigit() for key in keys):
            found |= {key: cluster[key] for key in keys if key in cluster}
    return found


def _of_qos(name: str) -> tuple[int | None, int | None]:
    """Minutes and nodes of a job at most; None each for no limit, and if nobody tells."""
    try:
        said = query(
            *('sacctmgr', '--noheader', '--parsable2', 'show', 'qos', name),
            'format=MaxWall,MaxTRES',
        )
    except AssayError:  # no accounting, or not from here
        return None, None
    wall, _, most = said.strip().partition('\n')[0].partition('|')
    nodes = re.search(r'\bnode=(\d+)', most)
    return as_minutes(wall), int(nodes[1]) if nodes else None


# The words of a job -----------------------------------------------------------------------------


def size_options(nodes: int, ranks: int, minutes: int) -> list[str]:
    """The options for the size of a job, as ReFrame writes them for its own jobs.

    :param ranks: on each node.
    """
    return [
        *(f'--nodes={nodes}', f'--ntasks={nodes * ranks}', f'--ntasks-per-node={ranks}'),
        f'--time={minutes}',
    ]


@dataclass(frozen=True)
class _Ask:
    """One way to ask, by the number of each choice."""

    alone: int = 0
    memory: int = 0
    threads: int = 0
    minutes: int = 0


#: What a refusal is about, if it has these words.
_ABOUT = {
    'memory': r'\bmem(ory)?\b|--mem',
    'minutes': r'time|wall',
    'alone': r'exclusive|oversubscribe|whole|full node|share|mincpus',
    'threads': r'thread|hint|smt',
}


def agree(nodes: NodesOfType) -> tuple[Terms, dict[str, str]]:
    """How sbatch takes jobs.

    :returns: the terms, and by each scale at which it refuses jobs its words.
    :raises RefusedError: if it refuses all.
    :raises UntriedError: if it does not let anybody ask.
    """
    refusals: dict[str, str] = {}
    for scale in nodes.scales:
        agreed, why = _terms(nodes, partial(nodes.refusal, scale=scale))
        if why is None:
            break
        refusals[scale] = why
        # Some partitions are for large jobs alone.
        if not re.search('node', why, re.IGNORECASE):
            break
    if why is not None:
        raise RefusedError(refuses(next(iter(refusals.values()))))
    options = [option for option, _ in agreed.options]
    for larger in nodes.scales[len(refusals) + 1 :]:
        minutes = min(agreed.minutes or LONGEST, LONGEST)
        if why := nodes.refusal(options, minutes, larger):
            shorter = [one for one in SHORTER if one < minutes]
            # Some give more nodes for less time.
            if shorter and nodes.refusal(options, shorter[-1], larger) is None:
                taken = next(one for one in shorter if not nodes.refusal(options, one, larger))
                whose = f'for {SCALES[larger]} nodes sbatch took no job of {minutes} min'
                agreed = replace(agreed, minutes=taken, whose=whose)
            else:
                refusals[larger] = why
    return agreed, refusals


def terms_without_asking(nodes: NodesOfType) -> Terms:
    """How to request a job if sbatch cannot be asked in advance."""
    agreed, _ = _terms(nodes, lambda options, minutes: None)
    return agreed


def _terms(
    nodes: NodesOfType, refusal: Callable[[Sequence[str], int], str | None]
) -> tuple[Terms, str | None]:
    """How sbatch takes a job, beginning with what measures best.

    Where it refuses, one choice is changed after the other, and what helps is kept: until a job is
    taken, or no choice helps, which is when something is missing that only the user can name.

    :param refusal: why it refuses a job with these options, which takes so many minutes.
    :returns: the terms, and why it refuses the job all the same, or None.
    """
    ways = {
        'alone': [*_ways_to_be_alone(nodes)],
        'memory': [*_ways_to_have_memory(nodes)],
        'threads': [*_ways_to_have_cores(nodes)],
    }
    most = min(nodes.limits.minutes or LONGEST, LONGEST)
    times = [most, *(one for one in SHORTER if one < most)]
    counts = {key: len(one) for key, one in ways.items()} | {'minutes': len(times)}

    def options(ask: _Ask) -> list[tuple[str, str]]:
        chosen = [ways[key][getattr(ask, key)] for key in ways]
        return [one for one in chosen if one[0]]

    def why(ask: _Ask) -> str | None:
        return refusal([option for option, _ in options(ask)], times[ask.minutes])

    ask, left = _Ask(), [*_ABOUT]
    said = first = why(ask)
    while said and left:
        # What the words are about comes first.
        left.sort(key=lambda key: not re.search(_ABOUT[key], said or '', re.IGNORECASE))
        found = _changed(ask, said, left, counts, why)
        if found is None:
            break
        key, ask, said = found
        left.remove(key)
    if said:
        return Terms((), None, '', None), said if said == first else f'{first}; {said}'
    whose, limit = nodes.limits.whose, nodes.limits.minutes
    if ask.minutes:
        # Of shorter ones only the shortest was tried.
        shorter = range(1, ask.minutes)
        number = next((n for n in shorter if why(replace(ask, minutes=n)) is None), ask.minutes)
        limit, whose = times[number], f'sbatch took no job of {times[number - 1]} min'
    kept = options(ask)
    return Terms(tuple(kept), limit, whose, _memory(nodes, dict(kept))), None


def _changed(
    ask: _Ask,
    said: str,
    keys: Iterable[str],
    counts: Mapping[str, int],
    why: Callable[[_Ask], str | None],
) -> tuple[str, _Ask, str | None] | None:
    """One choice changed such that the job is taken, or that sbatch has come to other words."""
    step = None
    for key in keys:
        # Of times the shortest tells whether it is the time.
        first = max(counts[key] - 1, 1) if key == 'minutes' else 1
        for number in range(first, counts[key]):
            other = replace(ask, **{key: number})
            now = why(other)
            if now is None:
                return key, other, None
            if step is None and now != said and not re.search(_ABOUT[key], now, re.IGNORECASE):
                step = key, other, now
    return step


def _ways_to_be_alone(nodes: NodesOfType) -> Iterator[tuple[str, str]]:
    if nodes.asked.has('--exclusive', '--oversubscribe', '-s', '--mincpus'):
        yield '', ''
        return
    yield '--exclusive', 'jobs of others would be measured as well'
    if nodes.limits.is_whole_nodes:
        yield '', ''
    else:
        yield f'--mincpus={nodes.cpus}', 'all of a node, where sbatch does not take --exclusive'


def _ways_to_have_memory(nodes: NodesOfType) -> Iterator[tuple[str, str]]:
    if nodes.asked.has('--mem=', '--mem ', '--mem-per'):
        yield '', ''
        return
    limits = nodes.limits
    has_default = limits.default_memory or limits.default_per_cpu or limits.memory_per_cpu
    given = nodes.is_memory_given or has_default
    if not given:
        yield '', ''
    # Where a job may have a part of it, sbatch may take one that asks for all, and let it wait.
    if nodes.memory == nodes.all_memory:
        yield '--mem=0', 'memory is given out like CPUs: this is all of it'
    if nodes.memory:
        yield f'--mem={nodes.memory}', 'memory is given out like CPUs: this is what a job may have'
        yield f'--mem-per-cpu={nodes.memory // nodes.cpus}', 'the same, as sbatch wants it'
    if given:
        yield '', ''


def _ways_to_have_cores(nodes: NodesOfType) -> Iterator[tuple[str, str]]:
    if nodes.threads > 1 and not nodes.asked.has('--threads-per-core'):
        # Not --hint, beside which srun does not bind.
        yield '--threads-per-core=1', 'ranks get cores, not hardware threads'
    yield '', ''


def _memory(nodes: NodesOfType, options: Iterable[str]) -> int | None:
    """MiB of a node that a job has by its options, as far as Slurm tells."""
    for word in [*options, *nodes.asked.options]:
        if match := re.fullmatch(r'--mem(-per-cpu)?=(\d+)([KMGT]?)B?', word):
            scale = {'K': 1 / 1024, '': 1, 'M': 1, 'G': 1024, 'T': 1024**2}[match[3]]
            memory = int(int(match[2]) * scale) * (nodes.cpus if match[1] else 1)
            return memory or nodes.memory or None
    of_cpus = nodes.limits.default_per_cpu and nodes.limits.default_per_cpu * nodes.cpus
    return nodes.limits.default_memory or of_cpus


# What sbatch says -------------------------------------------------------------------------------


def refuses(words: str) -> str:
    """A sentence: sbatch refuses a job, in its words, and what to type."""
    what = remedy(words)
    return f'sbatch refuses a job: {words}{f" (try {what})" if what else ""}'


def remedy(words: str) -> str | None:
    """The remedy for an error message of Slurm; None if none is known."""
    for expression, what in _REMEDIES:
        if re.search(expression, words, re.IGNORECASE):
            return what
    return None


def answer_of_sbatch(
    options: Sequence[str], nodes: Iterable[Record], count: int, minutes: int
) -> tuple[str | None, bool]:
    """Why sbatch would not take a job with these options; None if it would, once nodes are up.

    :param nodes: that it could have; of none nothing is concluded.
    :param count: of nodes that it asks for.
    :returns: also whether sbatch said so: it cannot while too few of the nodes are up.
    :raises UntriedError: if it does not let anybody ask.
    """
    try:
        # An option and its value may be two words, as in the lines of a job script.
        words = [word for option in options for word in shlex.split(option)]
        query_patiently(
            'sbatch', '--test-only', *words, *size_options(count, 1, minutes), '--wrap=true'
        )
    except ValueError as error:
        return f'{" ".join(options)}: {error}', True
    except RefusedError as error:
        lines = own_words(str(error))
        if any(_NO_TEST.search(one) for one in lines):
            raise UntriedError('; '.join(lines)) from None
        reasons = [one for one in lines if _NO_REASON not in one and not _UNAVAILABLE.search(one)]
        up = [node for node in nodes if _UP.fullmatch(node.get('State', ''))]
        if not reasons and len(up) >= count:
            # A plugin may refuse a job without a word.
            reasons = [one for one in lines if _UNAVAILABLE.search(one)] or lines
        return '; '.join(reasons) or None, bool(reasons)
    return None, True


def own_words(said: str) -> list[str]:
    """The lines by which sbatch refuses a job, without those that a site prints with every job."""
    lines = said.split('; ')
    own = [one for one in lines if _OWN.match(one)] or lines
    return list(dict.fromkeys(words for one in own if (words := _HEAD.sub('', one).strip())))
