"""The witness in Fortran programs: it sees each call once, whichever interface it came through."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.machine.mpi import Mpi
from building import PROGRAMS
from families import FOUND, MPIS

pytestmark = pytest.mark.differs_by_mpi

RANKS = 4
INTERFACES = {'mpif.h': 1, 'mpi': 2, 'mpi_f08': 3}


def _mpif90(mpi: Mpi) -> str | None:
    """Debian's wrapper is named after the family; others stand beside mpicc."""
    if mpi.source == 'debian':
        return shutil.which(f'mpif90.{mpi.family}')
    return shutil.which('mpif90', path=str(mpi.bindir))


def _with_fortran() -> list:
    """One MPI of each family that has Fortran bindings; families that have none are skipped."""
    chosen: dict[str, Mpi] = {}
    for mpi in FOUND.values():
        if _mpif90(mpi):
            chosen.setdefault(mpi.family, mpi)
    MPIS.update({mpi.name: mpi for mpi in chosen.values()})  # where the fixture `mpi` finds them
    found = []
    for family in ('openmpi', 'mpich', 'intelmpi'):
        missing = 'mpif90' if family not in chosen else 'gfortran'
        skip = pytest.mark.skipif(
            family not in chosen or not shutil.which('gfortran'),
            reason=f'no {missing} on this machine, of {family}',
        )
        name = chosen[family].name if family in chosen else family
        found.append(pytest.param(name, marks=skip, id=family))
    return found


in_fortran = pytest.mark.parametrize('mpi', _with_fortran(), indirect=True)


@pytest.fixture(scope='module')
def fortran(
    mpi: Mpi, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Builds tests/programs/witness/fortran.f90 with an interface; returns its path."""
    done: dict[str, Path] = {}

    def build(interface: str) -> Path:
        if mpi.family == 'intelmpi' and interface != 'mpif.h':
            pytest.skip(f'the wheel of Intel MPI has no module {interface}')
        if interface not in done:
            program = tmp_path_factory.mktemp('fortran') / 'fortran'
            # Without modules, a buffer of another type looks like a mistake.
            command = [_mpif90(mpi), '-cpp', f'-DINTERFACE={INTERFACES[interface]}', '-g', '-w']
            command += ['-fallow-argument-mismatch', PROGRAMS / 'fortran.f90', '-o', program]
            subprocess.run(command, env=surroundings, check=True)
            done[interface] = program
        return done[interface]

    return build


def calls_of(rank: int, tests: int) -> dict[str, tuple[int, int]]:
    """Count and bytes of each call that a rank of tests/programs/witness/fortran.f90 makes."""
    calls = {
        'Send': [(2, 20 + 40), (3, 4 + 4 + 4), (1, 8), (2, 12 + 24)][rank],
        'Ssend': [(1, 36), (1, 36), None, None][rank],
        'Recv': [(4, 3 * 32 + 24), None, (2, 4 + 36), (3, 36 + 20 + 40)][rank],
        'Irecv': (3, 3 * 40),
        'Isend': (3, 3 * 40),
        'Waitall': (1 + 3, 0),
        'Waitany': (2, 0),
        'Wait': (1 + 1, 0),
        'Test': (tests, 0),
        'Sendrecv': (1, 24),
        'Sendrecv_replace': (1, 12),
        'Start': (2, 28),  # of the two, one sends
        'Startall': (2, 2 * 28),
        'Probe': (1, 0) if rank == 2 else None,
        'Iprobe': (1, 0) if rank == 2 else None,
        'Mprobe': (1, 0) if rank == 2 else None,
        'Mrecv': (1, 4) if rank == 2 else None,
        'Barrier': (1, 0),
        'Bcast': (2, [0, 8, 40, 0][rank]),
        'Allreduce': (2, 24 + 4),
        'Iallreduce': (1, 4),
        'Reduce': (1, 0 if rank == 3 else 8),
        'Allgather': (1, 8),
        'Allgatherv': (1, 4 * (rank + 1)),
        'Alltoall': (1, 3 * 8),
        'Alltoallv': (1, 4 * (10 - (rank + 1))),
        'Gather': (1, 0 if rank == 0 else 12),
        'Scatter': (1, 3 * 8 if rank == 1 else 0),
        'Comm_split': (1, 0),
        'Comm_dup': (1, 0),
        'Cart_create': (1, 0),
        'Comm_free': (2, 0),
        'Neighbor_allgather': (1, 2 * 8),
        'Win_create': (1, 0),
        'Win_fence': (3, 0),
        'Put': (1, 12),
        'Get': (1, 8),
        'Win_free': (1, 0),
    }
    return {f'MPI_{name}': call for name, call in calls.items() if call}


def messages_of(rank: int) -> dict[int, list[int]]:
    """Sizes of the messages to each partner."""
    left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
    messages = {left: [12, 8], right: [40, 40, 40, 24, 28, 28, 28, 8, 12]}
    others = [{2: [36], 3: [20, 40]}, {0: [4], 2: [4, 4], 3: [36]}, {0: [8]}, {0: [12, 24]}]
    for partner, sizes in others[rank].items():
        messages[partner] = messages.get(partner, []) + sizes
    return messages


def partner(rank: int, sizes: list[int]) -> dict:
    """A partner as the report has it."""
    bins = Counter(str(1 << (size.bit_length() - 1)) for size in sizes)
    return {'rank': rank, 'messages': len(sizes), 'bytes': sum(sizes), 'sizes': bins}


def of_all_kinds(partners: list[dict]) -> dict[int, dict]:
    """Partners by their ranks, whatever kind of call sent the messages."""
    found: dict[int, dict] = {}
    for one in partners:
        whole = found.setdefault(one['rank'], partner(one['rank'], []))
        whole['messages'] += one['messages']
        whole['bytes'] += one['bytes']
        whole['sizes'].update(one['sizes'])
    return found


@in_fortran
@pytest.mark.parametrize('interface', INTERFACES)
def test_all_calls_are_counted_once(mpi, interface, fortran, witnessed):
    done = witnessed(fortran(interface), ranks=RANKS)
    assert done.code == 0, done.out + done.err
    tests = {int(r): int(n) for r, n in re.findall(r'rank (\d) tests (\d+)', done.out)}
    processes = done.report['processes']
    assert len(processes) == RANKS
    for rank, process in enumerate(processes):
        calls = {name: (call['count'], call['bytes']) for name, call in process['calls'].items()}
        assert calls == calls_of(rank, tests[rank])
        assert of_all_kinds(process['partners']) == {
            to: partner(to, sizes) for to, sizes in messages_of(rank).items()
        }
        assert process['mpi_threads'] == 1
        # Whatever library of bindings is between, calls come from lines of the program.
        (part,) = process['sites']
        assert part['object'] == str(fortran(interface))
        sites = Counter()
        for site in part['calls']:
            sites[site['call']] += site['count']
        # The end has a line, and no row of the profile.
        assert sites == {'MPI_Finalize': 1} | {name: count for name, (count, _) in calls.items()}

    # Three of its four receives take anything from anyone, without a status; rank 1 is late.
    receive, waits = (processes[0][part]['MPI_Recv'] for part in ('calls', 'waits'))
    assert waits['analysed'] == pytest.approx(receive['time'], rel=0.01)
    assert 0.2 < waits['late_sender'] <= receive['time']


@in_fortran
@pytest.mark.parametrize('interface', INTERFACES)
def test_an_end_by_abort_is_told(mpi, interface, fortran, witnessed):
    done = witnessed(fortran(interface), 'abort', ranks=2)
    assert done.code != 0
    assert done.report['complete'] is False
    lines = (done.files / 'report.json.ranks').read_text().splitlines()
    ends = {line['rank']: line for line in map(json.loads, lines)}
    assert ends[1]['reason'] == 'MPI_Abort'
    assert ends[1]['calls']['MPI_Barrier']['count'] == 1


@pytest.mark.parametrize('options', [(), ('-Wl,-z,now', '-Wl,-z,relro'), ('-fno-plt',)])
def test_each_way_to_refer_to_mpi_is_found(mpi, options, surroundings, witnessed, tmp_path):
    """Resolved at the first call; before, into memory that is read-only; without a call stub."""
    name = 'mpi_mpifh' if mpi.family == 'openmpi' else 'mpifort'
    cc = [mpi.cc, '-O1', PROGRAMS / 'binding.c']
    library = ['-shared', '-fPIC', *options, '-o', tmp_path / f'lib{name}-test.so']
    program = ['-DPROGRAM', f'-L{tmp_path}', f'-Wl,-rpath,{tmp_path}', f'-l{name}-test']
    program += ['-o', tmp_path / 'program']
    subprocess.run([*cc, *library], env=surroundings, check=True)
    subprocess.run([*cc, *program], env=surroundings, check=True)
    done = witnessed(tmp_path / 'program')
    assert done.code == 0, done.err
    for process in done.report['processes']:
        assert {name: call['count'] for name, call in process['calls'].items()} == {
            'MPI_Barrier': 10
        }
