"""Makes reports of the witness by hand, for its tests."""

import copy
import json
from pathlib import Path

from assay import witness
from assay.text import as_list

CORES_OF_N1 = [[0, 1], [2, 3]]


def call(count=1, time=0.0, size=0, timed=None):
    return {'count': count, 'timed': timed or count, 'time': time, 'bytes': size}


def wait(analysed, imbalance=0.0, late_sender=0.0, late_receiver=0.0):
    return {
        'analysed': analysed,
        'imbalance': imbalance,
        'late_sender': late_sender,
        'late_receiver': late_receiver,
    }


def partner(rank, messages=1, size=0, sizes=None):
    return {'rank': rank, 'messages': messages, 'bytes': size, 'sizes': sizes or {}}


def sent(ranks, messages=1, size=0, sizes=None):
    """Collectives."""
    return {'ranks': ranks, 'messages': messages, 'bytes': size, 'sizes': sizes or {}}


def by_mpi(rank, messages=1, size=0):
    return {'rank': rank, 'messages': messages, 'bytes': size}


def socket(local, remote, sent):
    return {'local': local, 'remote': remote, 'device': 'lo', 'sent': sent, 'received': sent}


def device(name, kind, sent):
    return {'name': name, 'kind': kind, 'sent': sent, 'received': 0}


def host(name='n1', domains=CORES_OF_N1, smt=1, allowed=None, per_package=1):
    """A host with these cores in each NUMA domain, so many of which are a package.

    With ``smt`` 2 core c has the CPUs c and c + the number of cores. ``allowed``: cores that the
    cpuset leaves.
    """
    cores = [core for domain in domains for core in domain]
    left = cores if allowed is None else allowed
    packages = [
        [core for domain in domains[first : first + per_package] for core in domain]
        for first in range(0, len(domains), per_package)
    ]
    return {
        'name': name,
        'cpus': as_list(cpus_of(cores, len(cores), smt)),
        'allowed': as_list(cpus_of(left, len(cores), smt)),
        'cores': as_list(left),
        'numa': [
            {'id': number, 'cpus': as_list(cpus_of(domain, len(cores), smt))}
            for number, domain in enumerate(domains)
        ],
        'packages': [
            {'id': number, 'cpus': as_list(cpus_of(of_it, len(cores), smt))}
            for number, of_it in enumerate(packages)
        ],
        'devices': [],
        'clock': {'offset': 0.0, 'error': 0.0},
    }


def cpus_of(cores, of, smt=1):
    return [core + of * sibling for core in cores for sibling in range(smt)]


def thread(tid=1, cores=(0,), busy=0.0, origin='program', cpus=None):
    return {
        'tid': tid,
        'name': 'halo',
        'cpus': as_list(list(cpus or cores)),
        'cores': as_list(list(cores)),
        'last_cpu': min(cores),
        'busy': busy,
        'origin': origin,
    }


def process(rank=0, cores=(0,), on='n1', cpus=None, **more):
    main = thread(100 + rank, cores, 1.0, 'main', cpus)
    entry = {
        'rank': rank,
        'host': on,
        'pid': 100 + rank,
        'cpus': main['cpus'],
        'cores': main['cores'],
        'numa': '0',
        'packages': '0',
        'last_cpu': min(cores),
        'memory': {'policy': 'default', 'nodes': ''},
        'cpu_limit': None,
        'threads': [main],
        'sockets': [],
        'wall': 1.0,
        'mpi_time': 0.0,
        'mpi_threads': 1,
        'calls': {},
        'waits': {},
        'partners': [],
        'state_bytes': 20000,
    }
    entry['threads'] += more.pop('threads', [])
    return {**entry, **more}


def entries(processes, hosts=None, **more):
    """The report as it stands in the file."""
    return {
        'schema': 3,
        'witness': '0.1.0',
        'complete': True,
        'sections': ['placement', 'fabric', 'profile', 'matrix'],
        'command': ['./halo', '--n', '64'],
        'started': '2026-11-21T06:10:00Z',
        'ranks': len(processes),
        'mpi': {
            'library': 'MPICH Version: 4.3.2\nMPICH Release date: 2025',
            'standard': '4.1',
            'thread_level': 'single',
            'path': '/x/libmpi.so.12',
        },
        'libraries': ['/x/libfabric.so.1'],
        'environment': {'OMP_NUM_THREADS': '1'},
        'hosts': copy.deepcopy(hosts or [host()]),
        'processes': processes,
        **more,
    }


def validated(content):
    """The report of what stands in its file."""
    return witness.Report.model_validate_json(json.dumps(content))


def report(processes, hosts=None, **more):
    return validated(entries(processes, hosts, **more))


def write(path: Path, content, ended=()):
    """A report in a file, and lines of ranks that ended early beside it."""
    path.write_text(json.dumps(content))
    if ended:
        lines = ''.join(json.dumps(one) + '\n' for one in ended)
        path.with_name(path.name + '.ranks').write_text(lines)
    return path


def halo(ranks, hosts=1, bytes_each=10**6):
    """A job whose ranks send to their neighbours in a ring; rank 0 computes longest."""
    per_host = ranks // hosts
    cores = [list(range(per_host // 2)), list(range(per_host // 2, per_host))]
    machine = [host(f'n{number + 1}', cores) for number in range(hosts)]
    processes = []
    for rank in range(ranks):
        in_mpi = 0.2 + 0.2 * rank / max(1, ranks - 1)
        waits = {
            'MPI_Allreduce': wait(in_mpi / 2, in_mpi / 4),
            'MPI_Waitall': wait(0.1, 0, 0.03, 0.01),
        }
        processes.append(
            process(
                rank,
                (rank % per_host,),
                f'n{rank // per_host + 1}',
                wall=1.0,
                mpi_time=in_mpi,
                calls={
                    'MPI_Isend': call(200, 0.01, 2 * bytes_each),
                    'MPI_Irecv': call(200, 0.01, 2 * bytes_each),
                    'MPI_Waitall': call(100, in_mpi / 2 - 0.02),
                    'MPI_Allreduce': call(10, in_mpi / 2, 80),
                },
                waits=waits,
                partners=[
                    partner((rank + step) % ranks, 100, bytes_each, {8192: 100})
                    for step in ((1, -1) if ranks > 2 else (1,))
                ],
            )
        )
    return entries(processes, machine)


def kept_plan(seats, **more):
    """What ``assay place`` keeps of a job; every other two seats are behind another switch."""
    return {
        'started': entries([])['started'],
        'verdict': 'place',
        'why': 'messages take half of the time',
        'gain': {'expected': 0.25, 'low': 0.2, 'high': 0.3, 'share_of_messages': 0.5},
        'ranks': [
            {'rank': rank, 'host': '', 'seat_of': seat, 'switch': seat // 2 % 2}
            for rank, seat in enumerate(seats)
        ],
        **more,
    }


def disturbance(foreign=0.0, steal=0.0, throttled=0.0, waited=0.0, seconds=2.0, **additions):
    return additions | {
        'seconds': seconds,
        'foreign_share': foreign,
        'steal_share': steal,
        'throttled_share': throttled,
        'waited_share': waited,
    }
