"""Check the report of an MPI benchmark against the MPI calls that the witness counted.

A program counts its operations itself, and would count one that it left out. The witness counts
what came to MPI. Of each call there have to be as many as the reported operations take, and as many
bytes; not exactly as many: a program calls more between its batches, and an MPI may call itself.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import ROUNDS_OF_CONGESTION

#: Each batch of a benchmark ends with this call on all of its ranks.
_OF_EACH_BATCH = 'Allreduce'
#: Others that a program surely makes: some tools (Darshan) wrap the calls for files alone.
_OPENED = {'files': ('File_open',)}


_Ranks = range | frozenset[int]


class Counted(Protocol):
    """The number and bytes of a rank's calls of one MPI function, as the witness counted them."""

    @property
    def count(self) -> int: ...

    @property
    def bytes(self) -> int: ...


class _Claims:
    """Calls that a report says were made, and the bytes that left a rank by them, by ranks."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.ranks: int = report['ranks']
        self.all = range(self.ranks)
        #: The first and the last rank, which measure for all in many programs.
        self.ends = range(0, self.ranks, max(1, self.ranks - 1))
        self.root, self.others = range(1), range(1, self.ranks)
        #: By the ranks that each made so many, or whose calls had so many bytes.
        self.counts: dict[_Ranks, Counter[str]] = defaultdict(Counter)
        self.bytes: dict[_Ranks, Counter[str]] = defaultdict(Counter)
        #: Of all ranks together.
        self.whole: Counter[str] = Counter()
        self.whole_bytes: Counter[str] = Counter()

    def add(self, ranks: _Ranks, count: float, *calls: str, size: float = 0) -> None:
        """So many of each of these calls on each of the ranks, each of ``size`` bytes."""
        for call in calls:
            self.counts[ranks][call] += round(count)
            self.bytes[ranks][call] += round(count * size)


def _of_rank(by_ranks: Mapping[_Ranks, Counter[str]], rank: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for ranks, counts in by_ranks.items():
        if rank in ranks:
            found.update(counts)
    return found


def check_calls(report: Mapping[str, Any], counted: Sequence[Mapping[str, Counted]]) -> str:
    """Hold the report of an MPI benchmark against what the witness counted on each rank.

    :param counted: by the ranks in their order, and by the names of calls.
    :returns: why it could not be held against them; empty if it was, or has no such calls.
    :raises WrongAnswerError: if fewer calls or bytes were counted than the report says, or of
        another number of ranks.
    """
    program = report['program']
    claim = _CLAIMS.get(program)
    if not claim:
        return ''
    if report['ranks'] != len(counted):
        raise WrongAnswerError(
            f'{program} says that it ran on {report["ranks"]} ranks, and the witness counted the '
            f'calls of {len(counted)}'
        )
    for surely in (_OF_EACH_BATCH, *_OPENED.get(program, ())):
        if f'MPI_{surely}' not in counted[0]:
            return (
                f'{program} was not held against the calls that the witness counted: it counted no '
                f'MPI_{surely} on rank 0, as where another tool takes the calls before it'
            )
    claims = _Claims(report)
    claim(claims, report)
    whole: Counter[str] = Counter()
    whole_bytes: Counter[str] = Counter()
    for rank, calls in enumerate(counted):
        made = Counter({name.removeprefix('MPI_'): call.count for name, call in calls.items()})
        sizes = Counter({name.removeprefix('MPI_'): call.bytes for name, call in calls.items()})
        _hold(f'calls on rank {rank}', made, _of_rank(claims.counts, rank))
        _hold(f'bytes on rank {rank}', sizes, _of_rank(claims.bytes, rank))
        whole.update(made)
        whole_bytes.update(sizes)
    _hold('calls', whole, claims.whole)
    _hold('bytes', whole_bytes, claims.whole_bytes)
    return ''


def check_reproducer(defect: str, call: str, counted: Sequence[Mapping[str, Counted]]) -> None:
    """Hold it against what the witness counted that a defect does not show.

    :param call: that its reproducer cannot do without.
    :param counted: as of :func:`check_calls`.
    :raises WrongAnswerError: if the call was not made in which the defect would show.
    """
    calls = {name for one in counted for name in one}
    if call not in calls and f'MPI_{_OF_EACH_BATCH}' in calls:
        raise WrongAnswerError(f'{defect} is said not to show, and there was no {call}')


def _hold(what: str, counted: Counter[str], reported: Counter[str]) -> None:
    for call, least in reported.items():
        if counted[call] < least:
            raise WrongAnswerError(
                f'{least} {what} of MPI_{call} follow from the report, and the witness counted '
                f'{counted[call]}'
            )


def _batches(result: Mapping[str, Any]) -> int:
    """All that there were, also those of which no sample was kept."""
    return int(result['clocks']['batches'])


def _operations(result: Mapping[str, Any]) -> int:
    """All that there were, also those of which no sample was kept."""
    return int(result['clocks']['operations'])


def _of_pt2pt(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        count, size = _operations(result), result['size']
        match result['pattern']:
            case 'ping-pong':
                _add_ping_pong(claims, result, size)
            case 'ping-ping':
                claims.add(claims.ends, count, 'Isend', size=size)
                claims.add(claims.ends, count, 'Recv', 'Wait')
            case 'sendrecv':
                claims.add(claims.all, count, 'Sendrecv', size=size)
            case 'exchange':
                claims.add(claims.all, 2 * count, 'Isend', size=size)
                claims.add(claims.all, 2 * count, 'Recv')
                claims.add(claims.all, count, 'Waitall')
            case 'bidirectional':
                claims.add(claims.ends, result['window'] * count, 'Isend', 'Irecv', size=size)
                claims.add(claims.ends, count, 'Waitall')


def _add_ping_pong(claims: _Claims, result: Mapping[str, Any], size: int) -> None:
    claims.add(claims.ends, _operations(result), 'Send', 'Recv', size=size)


def _of_ring(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        claims.add(claims.all, _operations(result), 'Send', 'Recv', size=result['size'])


#: Things that sources/mpi/overlap.c measures in turn: messages alone and beside the computation.
_SERIES, _WITH_MESSAGES = 3, 2


def _of_overlap(claims: _Claims, report: Mapping[str, Any]) -> None:
    arguments = report['arguments']
    operation = arguments['operation']
    of_pair = operation == 'exchange'
    ranks = claims.ends if of_pair else claims.all
    for result in report['results']:
        exchanges = _operations(result)
        for point in result['points']:
            count = _operations(point['communication']) // _SERIES
            exchanges += _WITH_MESSAGES * count
            if arguments['progress'] == 'test':  # at least once, before it knows that all is done
                claims.add(ranks, count, 'Testall')
        if of_pair:
            claims.add(ranks, exchanges, 'Isend', 'Irecv', size=result['size'])
        else:
            _add_collective(claims, operation, exchanges, result['size'], 'I')
        claims.add(ranks, exchanges, 'Waitall')


#: Operations that sources/mpi/collectives.c separates by barriers.
_AFTER_BARRIERS = {'bcast', 'reduce', 'scatter', 'gather', 'scatterv', 'gatherv', 'scan', 'exscan'}
#: Calls of another name than the operation.
_CALLED = {'reduce_scatter': 'Reduce_scatter_block'}


def _of_collectives(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        op, how, count = result['op'], result.get('call', 'blocking'), _operations(result)
        if how == 'persistent':
            claims.add(claims.all, count, 'Start', 'Wait')
        else:
            _add_collective(claims, op, count, result['size'], '' if how == 'blocking' else 'I')
        if how == 'nonblocking':
            claims.add(claims.all, count, 'Wait')
        start = result.get('start', 'usual')
        is_one_by_one = op in _AFTER_BARRIERS or start != 'usual'
        claims.add(claims.all, count if is_one_by_one else _batches(result), 'Barrier')
        claims.add(claims.all, _batches(result), _OF_EACH_BATCH, 'Bcast')
        if start == 'window':  # in which rank 0 names the moment
            claims.add(claims.all, count, 'Bcast')
    if 'limits' in report:
        limit = report['limits']['ping_pong']
        for result, size in ((limit['small'], 8), (limit['largest'], limit['size'])):
            _add_ping_pong(claims, result, size)
            claims.add(claims.ends, _batches(result), _OF_EACH_BATCH, 'Bcast', 'Barrier')
    _add_guidelines(claims, report.get('guidelines', ()))


def _add_collective(claims: _Claims, op: str, count: float, size: float, prefix: str = '') -> None:
    """:param size: bytes of a block."""
    name = _CALLED.get(op, op.capitalize())
    name = prefix + (name.lower() if prefix else name)
    others = claims.ranks - 1
    # From which ranks so many blocks leave.
    leaving: Mapping[str, tuple[_Ranks, int]] = {
        'bcast': (claims.root, 1),
        **dict.fromkeys(('scatter', 'scatterv'), (claims.root, others)),
        **dict.fromkeys(('gather', 'gatherv', 'reduce'), (claims.others, 1)),
        **dict.fromkeys(('alltoall', 'alltoallv', 'reduce_scatter'), (claims.all, others)),
        **dict.fromkeys(('allreduce', 'allgather', 'allgatherv'), (claims.all, 1)),
        **dict.fromkeys(('scan', 'exscan'), (range(others), 1)),
    }
    claims.add(claims.all, count, name)
    if op in leaving:
        ranks, blocks = leaving[op]
        claims.bytes[ranks][name] += round(count * size * blocks)


#: Bytes of an element of sources/mpi/guidelines.c.
_ELEMENT = 8
#: Its operations with a root, each call of which a barrier of messages follows.
_WITH_ROOT = {'bcast', 'reduce', 'scatter', 'gather'}


def _add_guidelines(claims: _Claims, entries: Iterable[Mapping[str, Any]]) -> None:
    points: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for one in entries:
        points[one['op'], one['size']].append(one)
    steps = math.ceil(math.log2(claims.ranks))
    for (op, size), others in points.items():
        # All ways in turn, the operation itself first.
        count = _operations(others[0]) // (1 + len(others))
        claims.add(claims.all, (1 + len(others)) * count, 'Barrier')
        # What is timed, and when to end, by all ranks.
        claims.add(claims.all, 2 * _batches(others[0]), _OF_EACH_BATCH)
        if op in _WITH_ROOT:
            claims.add(claims.all, (1 + len(others)) * count * steps, 'Sendrecv')
        for words in ('', *(one['other'] for one in others)):
            _add_way(claims, op, words, count, size)


def _add_way(claims: _Claims, op: str, words: str, count: int, size: int) -> None:
    """One of the ways to the result of an operation.

    :param size: bytes of a block of the operation.
    """
    part = math.ceil(size / _ELEMENT / claims.ranks) * _ELEMENT
    half = size // 2 // _ELEMENT * _ELEMENT
    whole = claims.ranks * size
    # Operations with the bytes of a block of each, where they are not those of the operation.
    parts: Mapping[str, Sequence[tuple[str, int]]] = {
        # Of the operation that three barriers are held against: an element.
        '': [(op, size or _ELEMENT)],
        'itself with twice the bytes': [(op, 2 * size)],
        'itself twice with half the bytes': [(op, half), (op, half)],
        'scatter and allgather': [('scatter', part), ('allgather', part)],
        'reduce_scatter and gather': [('reduce_scatter', part), ('gather', part)],
        'reduce_scatter and allgather': [('reduce_scatter', part), ('allgather', part)],
        'gather and bcast': [('gather', size), ('bcast', whole)],
        'reduce and scatter': [('reduce', whole), ('scatter', size)],
        'reduce and bcast': [('reduce', size), ('bcast', size)],
        'three barriers': 3 * [('barrier', 0)],
        'allreduce': [(words, {'barrier': _ELEMENT, 'reduce_scatter': whole}.get(op, size))],
        'bcast': [(words, whole)],
    }
    if words == 'messages that do the same':
        _add_messages(claims, op, count, size)
        return
    for one, its_size in parts.get(words, [(words, size)]):
        _add_collective(claims, one, count, its_size)


def _add_messages(claims: _Claims, op: str, count: int, size: int) -> None:
    """By what anybody would write with messages."""
    others = claims.ranks - 1
    match op:
        case 'barrier':
            claims.add(claims.all, count * math.ceil(math.log2(claims.ranks)), 'Sendrecv')
        case 'bcast' | 'scatter':
            claims.add(claims.others, count, 'Recv', size=size)
        case 'reduce' | 'gather':
            claims.add(claims.others, count, 'Send', size=size)
        case 'allreduce':
            steps = math.floor(math.log2(claims.ranks))
            claims.add(range(2**steps), count * steps, 'Sendrecv', size=size)
            claims.add(range(2**steps, claims.ranks), count, 'Send', 'Recv', size=size)
        case _:
            claims.add(claims.all, count * others, 'Isend', 'Irecv', size=size)


def _of_matching(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        count, size = _operations(result), result['size']
        if result['measure'] == 'incast':
            claims.add(claims.root, count * result['messages'], 'Irecv', size=size)
            claims.add(claims.root, count * result['messages'], 'Wait')
            burst = result['messages'] // (claims.ranks - 1)
            claims.add(claims.others, count * burst, 'Isend', size=size)
            claims.add(claims.all, count, 'Barrier')
            continue
        _add_ping_pong(claims, result, size)
        if waiting := result['waiting']:
            claims.add(claims.ends, _batches(result) * waiting, 'Isend', 'Irecv', size=8)


#: Calls of the origin and of the target for each operation of sources/mpi/onesided.c.
_OF_SYNC: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    'fence': (('Win_fence',), ('Win_fence',)),
    'pscw': (('Win_start', 'Win_complete'), ('Win_post', 'Win_wait')),
    'lock': (('Win_lock', 'Win_unlock'), ()),
    'flush': (('Win_flush',), ()),
}
_ONE_SIDED = {'put': 'Put', 'get': 'Get', 'accumulate': 'Accumulate', 'fetch_add': 'Fetch_and_op'}


def _of_onesided(claims: _Claims, report: Mapping[str, Any]) -> None:
    last = range(claims.ranks - 1, claims.ranks)
    for result in report['results']:
        count, size = _operations(result), result['size']
        if result['op'] == 'ping_pong':
            _add_ping_pong(claims, result, size)
            continue
        claims.add(claims.root, count, _ONE_SIDED[result['op']], size=size)
        for ranks, calls in zip((claims.root, last), _OF_SYNC[result['sync']], strict=True):
            claims.add(ranks, count, *calls)


def _of_datatypes(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        _add_ping_pong(claims, result, result['size'])


def _of_partitioned(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        count, parts = _operations(result), result['partitions']
        claims.add(claims.ends, 2 * count, 'Waitall')
        claims.add(claims.ends, count, 'Startall')
        if result['way'] == 'partitioned':
            claims.add(claims.ends, count, 'Start', size=result['size'])
            claims.add(claims.ends, count * parts, 'Pready', 'Parrived')
        else:
            claims.add(claims.ends, count * parts, 'Start', size=result['size'] // parts)


# Of sources/mpi/congestion.c: operations before each turn of a victim, which are in no histogram,
# and those between which victims agree.
_WARM_UPS_OF_CONGESTION, _BATCH_OF_CONGESTION = 4, 8


def _of_congestion(claims: _Claims, report: Mapping[str, Any]) -> None:
    victims = frozenset(report['victims'])
    aggressors = frozenset(claims.all) - victims
    first = frozenset([min(aggressors)])
    turns = 2 * ROUNDS_OF_CONGESTION  # alone and beside
    claims.add(claims.all, len(report['results']) * turns, 'Ibarrier')
    for result in report['results']:
        operations = _operations(result['alone']) + _operations(result['beside'])
        if result['victim'] == 'allreduce':
            operations = operations // len(victims)
            # They agree behind each batch whether to go on.
            agreed = operations / _BATCH_OF_CONGESTION
            operations += turns * _WARM_UPS_OF_CONGESTION
            claims.add(victims, operations, 'Allreduce', size=8)
            claims.add(victims, agreed, 'Allreduce', size=4)
        else:  # of an odd number of victims another one has no partner in each round
            operations += turns * _WARM_UPS_OF_CONGESTION * (len(victims) // 2)
            claims.whole['Send'] += 2 * operations
            claims.whole['Recv'] += 2 * operations
            claims.whole_bytes['Send'] += 2 * operations * 8
        load = result['load']
        messages, size = load['all_rounds'] * load['messages'], load['size']
        match result['aggressor']:
            case 'incast':
                others = aggressors - first
                claims.add(others, messages, 'Send', size=size)
                claims.whole['Send'] += messages * len(others)
                claims.whole_bytes['Send'] += messages * len(others) * size
                claims.add(first, messages * len(others), 'Irecv', 'Wait')
            case 'alltoall':
                claims.add(aggressors, messages, 'Alltoall', size=size * (len(aggressors) - 1))
            case 'shift':
                claims.add(aggressors, messages, 'Sendrecv', size=size)


def _of_threads(claims: _Claims, report: Mapping[str, Any]) -> None:
    half, window = claims.ranks // 2, report['arguments']['window']
    senders, receivers = range(half), range(half, claims.ranks)
    for result in report['results']:
        # Of each thread.
        windows = _operations(result) * result['threads']
        for ranks, start, answer in ((senders, 'Isend', 'Recv'), (receivers, 'Irecv', 'Send')):
            claims.add(ranks, windows * window, start, size=result['size'])
            claims.add(ranks, windows, 'Waitall', answer)


_OF_FILES = {
    'independent': ('File_write_at', 'File_read_at'),
    'collective': ('File_write_at_all', 'File_read_at_all'),
    'interleaved': ('File_write_all', 'File_read_all'),
}


def _of_files(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        count, (write, read) = _operations(result), _OF_FILES[result['way']]
        batches, size = _batches(result), result['size'] / claims.ranks
        # What a batch writes is read after it, and what it reads is written before; all ranks
        # synchronise twice in between.
        if result['direction'] == 'write':
            claims.add(claims.all, count, write, size=size)
            claims.add(claims.all, batches, read, size=size)
            claims.add(claims.all, count + 2 * batches, 'File_sync')
        else:
            claims.add(claims.all, count, read, size=size)
            claims.add(claims.all, batches, write, size=size)
            claims.add(claims.all, 3 * batches, 'File_sync')


#: Neighbours of a rank of sources/mpi/halo.c.
_NEIGHBOURS = 4


def _of_halo(claims: _Claims, report: Mapping[str, Any]) -> None:
    for result in report['results']:
        steps = _operations(result)
        if result['method'] == 'blocking':
            claims.add(claims.all, _NEIGHBOURS * steps, 'Sendrecv')
        elif result['method'] in ('overlapped', 'threaded'):
            claims.add(claims.all, _NEIGHBOURS * steps, 'Irecv', 'Isend')
            claims.add(claims.all, steps, 'Waitall')
    claims.add(claims.all, report.get('progress_calls', 0), 'Iprobe')


def _of_pairs(claims: _Claims, report: Mapping[str, Any]) -> None:
    windows = {result['measure']: result['window'] for result in report['results']}
    # Of all ranks together.
    count = {name: int(one['operations']) for name, one in report['clocks'].items()}
    exchanges, one_way = count.get('exchange', 0), count.get('one way', 0) // 2
    messages = exchanges * windows['bandwidth'] + one_way * windows.get('message_rate', 0)
    for call in ('Isend', 'Irecv'):
        claims.whole[call] += messages
    sizes = {result['measure']: result['size'] for result in report['results']}
    claims.whole_bytes['Isend'] += exchanges * windows['bandwidth'] * sizes['bandwidth']
    if one_way:
        rate = windows['message_rate'] * sizes['message_rate']
        claims.whole_bytes['Isend'] += one_way * rate
    claims.whole['Waitall'] += exchanges + 2 * one_way
    for call in ('Send', 'Recv'):
        claims.whole[call] += count.get('ping-pong', 0) + one_way


def _of_noncommutative(claims: _Claims, report: Mapping[str, Any]) -> None:
    arguments = report['arguments']
    sizes = [arguments['min'], arguments['max']]
    power = 1 << sizes[0].bit_length()
    sizes[1:1] = [power << i for i in range((sizes[1] - 1).bit_length()) if power << i < sizes[1]]
    for op in arguments['op']:
        for size in dict.fromkeys(sizes):
            _add_collective(claims, op, 1, size)


_CLAIMS: Mapping[str, Callable[[_Claims, Mapping[str, Any]], None]] = {
    'pt2pt': _of_pt2pt,
    'ring': _of_ring,
    'overlap': _of_overlap,
    'collectives': _of_collectives,
    'matching': _of_matching,
    'onesided': _of_onesided,
    'datatypes': _of_datatypes,
    'partitioned': _of_partitioned,
    'congestion': _of_congestion,
    'threads': _of_threads,
    'files': _of_files,
    'halo': _of_halo,
    'pairs': _of_pairs,
    'noncommutative': _of_noncommutative,
}
