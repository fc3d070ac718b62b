"""The witness's analysis of waits: who waited for whom, from what each rank logged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay import paths
from assay.machine.mpi import Mpi
from building import SOURCES
from quiet import measured

DRIVER = paths.ROOT / 'tests' / 'programs' / 'witness' / 'waits.c'
Ranks = list[dict[str, Any]]
MEGABYTE = 2**20


@pytest.fixture(scope='module')
def driver(
    mpi: Mpi,
    surroundings: dict[str, str],
    sanitizers: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The driver with the files under test, under the sanitizers if any."""
    program = tmp_path_factory.mktemp(f'{mpi.name}-waits') / 'waits'
    witness = SOURCES / 'witness'
    names = ('messages', 'instances', 'clocks', 'waits', 'ticks', 'map')
    sources = [*(witness / f'{name}.c' for name in names), SOURCES / 'common' / 'json.c', DRIVER]
    command = [mpi.cc, '-std=gnu11', '-O1', '-g', '-Wall', '-Wextra', '-Werror']
    if sanitizers:
        command += [f'-fsanitize={sanitizers}', '-fno-sanitize-recover=undefined']
    for function in ('clock_gettime', 'malloc', 'calloc', 'realloc'):
        command.append(f'-Wl,--wrap={function}')
    command += ['-iquote', SOURCES / 'common', '-iquote', witness]
    subprocess.run([*command, *sources, '-o', program, '-lm'], env=surroundings, check=True)
    return program


@pytest.fixture
def waits(
    mpi: Mpi, driver: Path, surroundings: dict[str, str], tmp_path: Path
) -> Callable[..., Ranks]:
    """Runs the driver; ``last``: what the last rank is started with, variables or a command."""

    def waits(*arguments: object, ranks: int = 2, last: list[str] | None = None) -> Ranks:
        out = tmp_path / 'out'
        program = [str(driver), str(out), *map(str, arguments)]
        command = [mpi.launcher, '-bind-to', 'none', '-n', str(ranks - bool(last)), *program]
        if last:
            command += [':', '-n', '1', 'env', *last, *program]
        done = subprocess.run(
            command,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(Path(f'{out}.{rank}').read_text()) for rank in range(ranks)]

    return waits


@pytest.fixture
def play(waits: Callable[..., Ranks], tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Plays calls at given times, a line each (see the driver), and returns each rank's waits.

    In microseconds, as (analysed, late sender, late receiver, imbalance).
    """

    def play(script: str, **how: Any) -> list[dict[str, Any]]:
        path = tmp_path / 'script'
        path.write_text(script)
        kinds = ('analysed', 'late_sender', 'late_receiver', 'imbalance')
        return [
            {
                call.removeprefix('MPI_'): tuple(round(1e6 * of[kind], 3) for kind in kinds)
                for call, of in rank['waits'].items()
            }
            for rank in waits('script', path, **how)
        ]

    return play


#: Scripts, and what each rank then waited for. Times in us.
#: `post NAME SIDE CHANNEL SEQUENCE TAG PEER TIME`, `wait CALL BEGIN END NAME...`
SCRIPTS = {
    'a late sender': (
        """
        0 post a sender 5 0 7 1 140
        0 wait Send 140 150 a
        1 post a receiver 5 0 7 0 100
        1 wait Recv 100 152 a
        """,
        [{'Send': (10, 0, 0, 0)}, {'Recv': (52, 40, 0, 0)}],
    ),
    'a late receiver': (
        """
        0 post a sender 5 0 7 1 100
        0 wait Send 100 150 a
        1 post a receiver 5 0 7 0 130
        1 wait Recv 130 155 a
        """,
        [{'Send': (50, 0, 30, 0)}, {'Recv': (25, 0, 0, 0)}],
    ),
    'a buffered send waits for nobody': (
        """
        0 post a sender 5 0 7 1 100
        0 wait Send 100 110 a
        1 post a receiver 5 0 7 0 130
        1 wait Recv 130 131 a
        """,
        [{'Send': (10, 0, 0, 0)}, {'Recv': (1, 0, 0, 0)}],
    ),
    'a message sent after it was received shows the error of clocks': (
        """
        0 post a sender 5 0 7 1 160
        1 post a receiver 5 0 7 0 100
        1 wait Recv 100 150 a
        """,
        [{}, {'Recv': (50, 50, 0, 0)}],
    ),
    'several messages wait for the latest': (
        """
        0 post a sender 5 0 7 2 120
        1 post b sender 6 0 7 2 170
        1 post c receiver 9 0 7 2 150
        2 post a receiver 5 0 7 0 90
        2 post b receiver 6 0 7 1 91
        2 post c sender 9 0 7 1 92
        2 wait Waitall 100 180 a - b c
        """,
        [{}, {}, {'Waitall': (80, 70, 0, 0)}],
    ),
    'the latest is a receiver': (
        """
        0 post a sender 5 0 7 2 120
        1 post b sender 6 0 7 2 149
        1 post c receiver 9 0 7 2 150
        2 post a receiver 5 0 7 0 90
        2 post b receiver 6 0 7 1 91
        2 post c sender 9 0 7 1 92
        2 wait Waitall 100 180 a - b c
        """,
        [{}, {}, {'Waitall': (80, 0, 50, 0)}],
    ),
    'an exchange both ways': (
        """
        0 post out sender 5 0 7 1 100
        0 post in receiver 6 0 7 1 100
        0 wait Sendrecv 100 160 in out
        1 post out sender 6 0 7 0 150
        1 post in receiver 5 0 7 0 150
        1 wait Sendrecv 150 162 in out
        """,
        [{'Sendrecv': (60, 50, 0, 0)}, {'Sendrecv': (12, 0, 0, 0)}],
    ),
    # One with wildcards: who sends is known late, and other receives were posted meanwhile.
    'a receive that is logged when its message has arrived': (
        """
        0 post a sender 5 0 7 1 140
        0 post b sender 5 1 7 1 200
        1 post b receiver 5 1 7 0 160
        1 wait Recv 160 210 b
        1 post a receiver 5 0 7 0 100
        1 wait Wait 130 150 a
        """,
        [{}, {'Recv': (50, 40, 0, 0), 'Wait': (20, 10, 0, 0)}],
    ),
    **{
        f'probe and receive are one message{name}': (
            f"""
            0 post a sender 5 0 7 1 140
            0 wait Ssend 140 165 a
            1 post p receiver 5 0 7 0 100
            1 wait Probe 100 150 p
            1 post a receiver 5 0 7 0 160
            1 wait Recv 160 166 a
            {more}""",
            [{'Ssend': (25, 0, 20, 0)}, {'Probe': (50, 40, 0, 0), 'Recv': (6, 0, 0, 0)}],
        )
        for name, more in {'': '', ', probed twice': '1 post p receiver 5 0 7 0 100'}.items()
    },
    'messages to itself': (
        """
        0 post in receiver 5 0 7 0 100
        0 post out sender 5 0 7 0 120
        0 wait Send 120 130 out
        0 wait Wait 110 140 in
        """,
        [{'Send': (10, 0, 0, 0), 'Wait': (30, 10, 0, 0)}],
    ),
    # Two tags of a class: what was sent first is not what was received first.
    'tags received in another order are left out': (
        """
        0 post a sender 5 0 7 1 140
        0 post b sender 5 1 23 1 160
        0 post c sender 5 2 7 1 200
        1 post b receiver 5 0 23 0 100
        1 wait Recv 100 165 b
        1 post a receiver 5 1 7 0 170
        1 wait Recv 170 175 a
        1 post c receiver 5 2 7 0 180
        1 wait Recv 180 210 c
        """,
        [{}, {'Recv': (30, 20, 0, 0)}],
    ),
    'a message that the other side does not know is left out': (
        """
        0 post a sender 5 0 7 1 140
        1 post a receiver 5 0 7 0 100
        1 post b receiver 5 1 7 0 100
        1 post c receiver 8 0 7 0 160
        1 wait Recv 160 170 c
        1 wait Waitall 100 150 a b
        1 wait Wait 100 150 a
        1 wait Waitany 150 160 -
        """,
        [{}, {'Wait': (50, 40, 0, 0)}],
    ),
    'nothing of one rank': ('', [{}]),
    'nothing of three': ('', [{}, {}, {}]),
    # `collective ID CALL ARRIVAL ROOT BEGIN END`: of ALL_WAIT_FOR_ALL, ALL_WAIT_FOR_ROOT,
    # ROOT_WAITS_FOR_ALL; id 1 is MPI_COMM_WORLD
    'all wait for the last': (
        """
        0 collective 1 Allreduce 0 0 100 155
        1 collective 1 Allreduce 0 0 150 156
        2 collective 1 Allreduce 0 0 130 140
        """,
        # The last one no longer than to its end.
        [{'Allreduce': (55, 0, 0, 50)}, {'Allreduce': (6, 0, 0, 0)}, {'Allreduce': (10, 0, 0, 10)}],
    ),
    'all wait for the root': (
        """
        0 collective 1 Bcast 1 0 100 145
        1 collective 1 Bcast 1 1 140 142
        2 collective 1 Bcast 1 0 170 171
        """,
        [{'Bcast': (45, 0, 0, 40)}, {'Bcast': (2, 0, 0, 0)}, {'Bcast': (1, 0, 0, 0)}],
    ),
    'a broadcast without a root is left out': ('* collective 1 Bcast 1 0 100 145', [{}, {}]),
    'the root waits for all': (
        """
        0 collective 1 Reduce 2 0 100 101
        1 collective 1 Reduce 2 1 110 175
        2 collective 1 Reduce 2 0 170 171
        """,
        [{'Reduce': (1, 0, 0, 0)}, {'Reduce': (65, 0, 0, 60)}, {'Reduce': (1, 0, 0, 0)}],
    ),
    # Rows and columns of 2 x 2 ranks; the ids are not in the order in which they were made.
    'split communicators': (
        """
        * split 50 0,1,0,1
        * split 10 0,0,1,1
        * split 30 -,-,-,0
        0 collective 50 Barrier 0 0 100 130
        2 collective 50 Barrier 0 0 120 130
        1 collective 51 Barrier 0 0 100 190
        3 collective 51 Barrier 0 0 180 190
        0 collective 10 Alltoall 0 0 200 230
        1 collective 10 Alltoall 0 0 205 230
        2 collective 11 Alltoall 0 0 207 230
        3 collective 11 Alltoall 0 0 200 230
        3 collective 30 Scan 0 0 300 303
        * collective 1 Barrier 0 0 400 401
        """,
        [
            {'Barrier': (31, 0, 0, 20), 'Alltoall': (30, 0, 0, 5)},
            {'Barrier': (91, 0, 0, 80), 'Alltoall': (25, 0, 0, 0)},
            {'Barrier': (11, 0, 0, 0), 'Alltoall': (23, 0, 0, 0)},
            {'Barrier': (11, 0, 0, 0), 'Alltoall': (30, 0, 0, 7), 'Scan': (3, 0, 0, 0)},
        ],
    ),
    'members with unlike logs are left out': (
        """
        0 collective 1 Barrier 0 0 100 130
        0 collective 1 Barrier 0 0 140 150
        1 collective 1 Barrier 0 0 100 130
        """,
        [{}, {}],
    ),
}


def test_who_waits_for_whom(play):
    """As the logs say: an MPI only carries them from rank to rank."""
    found = {name: play(script, ranks=len(ranks)) for name, (script, ranks) in SCRIPTS.items()}
    assert found == {name: ranks for name, (_, ranks) in SCRIPTS.items()}


@pytest.mark.parametrize('when', ['log', 'analysis'])
def test_a_rank_without_memory(play, when):
    """It leaves out its own waits and those for it, and nobody hangs."""
    script = """
        0 post a sender 5 0 7 1 140
        0 wait Send 140 150 a
        1 post a receiver 5 0 7 0 100
        1 wait Recv 100 152 a
        1 post b sender 6 0 7 2 200
        1 wait Send 200 210 b
        2 post b receiver 6 0 7 1 205
        2 wait Recv 205 212 b
        * collective 1 Barrier 0 0 300 301
    """
    messages = {'Send': (10, 0, 0, 0)}, {'Recv': (52, 40, 0, 0)}
    assert play(script, ranks=3, last=[f'NO_MEMORY={when}']) == [*messages, {}]


def share(waits: dict[str, Any], kind: str) -> float:
    """A kind's share of what was analysed, in percent."""
    return 100 * waits[kind] / waits['analysed']


# 50,000 messages a second; 8 at a time in long waits; 5,000,000 a second.
@pytest.mark.parametrize(
    ('count', 'period', 'width'), [(1_000_000, 20_000, 1), (100_000, 10**6, 8), (10**6, 200, 1)]
)
def test_a_log_of_messages_that_is_thinned_out(waits, count, period, width):
    _, receiver = waits('messages', count, period, width)
    known = 100 * receiver['waited'] / receiver['whole']
    found = receiver['waits']['MPI_Waitall']
    assert share(found, 'late_sender') == pytest.approx(known, abs=2)
    assert found['late_receiver'] == 0
    assert found['analysed'] < receiver['whole'] * 0.8
    assert receiver['messages_bytes'] <= 8 * MEGABYTE


def test_logs_that_are_not_thinned_out_alike(waits):
    """Rank 0 has three times the messages of the others."""
    sender, *receivers = waits('messages', 600_000, 20_000, 1, ranks=4)
    assert sender['messages_bytes'] <= 8 * MEGABYTE
    for rank in receivers:
        known = 100 * rank['waited'] / rank['whole']
        assert share(rank['waits']['MPI_Waitall'], 'late_sender') == pytest.approx(known, abs=2)


def test_a_log_of_collectives_that_is_sampled(waits):
    ranks = waits('collectives', 100_000, ranks=3)
    for rank in ranks:
        found = rank['waits']['MPI_Allreduce']
        known = 100 * rank['waited'] / rank['whole']
        assert share(found, 'imbalance') == pytest.approx(known, abs=2)
        assert found['analysed'] < rank['whole'] / 2
        assert rank['instances_bytes'] < MEGABYTE / 4
    assert ranks[0]['waited'] > 0.4 * ranks[0]['whole']


def check_real_calls(ranks: Ranks) -> None:
    """Rank 0 naps for 3 ms before each of 20 calls of a kind, and ranks noted who waited."""
    kinds = {'MPI_Send': 'late_receiver', 'MPI_Ssend': 'late_receiver'}
    kinds |= {'MPI_Recv': 'late_sender', 'MPI_Barrier': 'imbalance'}
    for rank in ranks:
        allowed = 20 * (rank['clock']['error'] + 1e-4)
        for call, waited in rank['waited'].items():
            found = rank['waits'][call]
            assert found[kinds[call]] == pytest.approx(waited, rel=0.05, abs=allowed)
            assert sum(found[kind] for kind in set(kinds.values())) == found[kinds[call]]
    assert ranks[1]['waited']['MPI_Recv'] > 0.01


@pytest.mark.alone
def test_real_calls(waits):
    measured(lambda: waits('program'), check_real_calls)


@pytest.mark.alone
def test_ranks_of_one_host_have_one_clock(waits):
    first, other = waits('clocks')
    assert other['clock'] == first['clock'] == {'offset': 0, 'error': 0, 'day': 0}
    assert first['before'] < other['between'] < first['after']


def two_hosts(waits: Callable[..., Ranks], case: str, last: list[str]) -> Ranks:
    """A run of two ranks whose clocks have to be compared."""
    ranks = waits(case, last=['WAITS_HOST=1', *last])
    assert ranks[0]['clock'] == {'offset': 0, 'error': 0, 'day': 0}
    assert ranks[1]['clock']['error'] > 0
    return ranks


def check_clocks(ranks: Ranks) -> None:
    """They were compared while both ranks had a core."""
    assert ranks[1]['clock']['error'] < 2e-4


def check_moments(ranks: Ranks) -> None:
    """Rank 1's moment lies between two moments of rank 0 on the clock of both."""
    first, other = ranks
    error = 1e9 * other['clock']['error'] + 1000
    assert first['before'] - error <= other['between'] <= first['after'] + error


@pytest.mark.alone
def test_clocks_of_two_hosts(waits):
    """The other's clock is 1000 s ahead, and gains a hundredth: 0.6 ms between measurements."""

    def check(ranks):
        check_clocks(ranks)
        ahead = ranks[1]['clock']['offset'] - 1000
        elapsed = 1e-9 * ranks[0]['after']
        assert 0.01 * elapsed <= ahead < 0.01 * elapsed + 0.01
        check_moments(ranks)

    measured(lambda: two_hosts(waits, 'clocks', ['AHEAD=1000', 'DRIFT=0.01']), check)


@pytest.mark.alone
def test_waits_between_hosts(waits):
    def ahead():
        ranks = two_hosts(waits, 'program', ['AHEAD=-1000'])
        clock = ranks[1]['clock']
        assert clock['offset'] == pytest.approx(-1000, abs=clock['error'] + 1e-7)
        return ranks

    def check(ranks):
        check_clocks(ranks)
        check_real_calls(ranks)

    measured(ahead, check)


@pytest.mark.alone
def test_clocks_of_two_time_namespaces(waits):
    enter = ['unshare', '--time', '--fork', '--monotonic', '5000']
    try:
        tried = subprocess.run([*enter, 'true'], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip('no unshare of util-linux here')
    if tried.returncode:
        pytest.skip(f'no time namespace: {tried.stderr.strip()}')

    def ahead():
        ranks = two_hosts(waits, 'clocks', enter)
        clock = ranks[1]['clock']
        assert clock['offset'] == pytest.approx(5000, abs=clock['error'] + 1e-7)
        check_moments(ranks)
        return ranks

    measured(ahead, check_clocks)
