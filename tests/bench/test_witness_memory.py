"""What the witness remembers: it grows with the partners of a rank, not with the number of ranks.

Communicators of 1,000 and of 100,000 ranks are simulated by ``tests/programs/witness/routes.c``,
with the witness's own routes.c and map.c; bytes are those that malloc gave out.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from building import SOURCES
from families import on_one_mpi

pytestmark = pytest.mark.differs_by_mpi

WITNESS = SOURCES / 'witness'
KIB = 1024


@pytest.fixture
def simulated(compiled, surroundings):
    """Runs the simulation: messages to so many partners in each of some communicators."""

    def run(ranks: int, partners: int, communicators: int = 1) -> dict[str, int]:
        program = compiled(
            'routes', '-iquote', str(WITNESS), str(WITNESS / 'routes.c'), str(WITNESS / 'map.c')
        )
        command = [str(program), str(ranks), str(partners), str(communicators)]
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize('partners', [1, 10, 26, 500])
def test_state_does_not_grow_with_the_number_of_ranks(simulated, partners):
    small, large = simulated(1_000, partners), simulated(100_000, partners)
    assert small == large
    assert small['partners'] == small['routes'] == partners


def test_ranks_of_a_communicator_are_asked_for_once(simulated):
    """Also where their list has no room, which is told."""
    state = simulated(1_000, 1)
    assert (state['asked'], state['is_full']) == (1, 1)


def test_state_of_a_rank_with_26_partners(simulated):
    """A stencil in three dimensions: its faces, edges and corners."""
    state = simulated(100_000, 26)
    assert state['malloc'] < 24 * KIB
    # All that malloc gave out is accounted for, but for its own few bytes a piece.
    assert state['routes_bytes'] <= state['malloc'] < 1.2 * state['routes_bytes']


def test_state_grows_with_partners_and_communicators(simulated):
    one = simulated(100_000, 26)
    assert simulated(100_000, 260)['malloc'] < 12 * one['malloc']
    # Partners are shared; a route in each communicator is added.
    many = simulated(100_000, 26, communicators=100)
    assert (many['partners'], many['routes']) == (26, 2600)
    assert many['malloc'] < 26 * 100 * 256


def test_freed_communicators_are_forgotten(simulated):
    """Whichever thread frees them: each looks for itself, when its routes have doubled."""
    state = simulated(1_000, 26, communicators=1000)
    assert state['routes'] == 26_000
    assert state['most_while_they_go'] <= 2 * 26 + 64 + 26
    assert state['partners_left'] == 26


@pytest.fixture
def state_bytes(compiled, witnessed):
    """The most that a rank of a real run says it remembers."""

    def run(partners: int, communicators: int, rounds: int, **env: str) -> int:
        arguments = [str(number) for number in (partners, communicators, rounds)]
        done = witnessed(compiled('partners'), *arguments, env=env)
        assert done.code == 0, done.err
        return max(process['state_bytes'] for process in done.report['processes'])

    return run


@on_one_mpi
def test_communicators_that_another_thread_frees(compiled, witnessed):
    run = witnessed(compiled('freed'), '1000', env=NO_LOGS)
    assert run.code == 0, run.err
    assert all(process['state_bytes'] < 64 * KIB for process in run.report['processes'])


NO_LOGS = {'ASSAY_WITNESS': 'placement,fabric'}


def test_state_bytes_of_a_run(state_bytes):
    """It grows with the routes, by little for each, and without logs not with the messages."""
    # To the other rank and to itself.
    bytes_of = {count: state_bytes(2, count, 1, **NO_LOGS) for count in (1, 10, 25)}
    assert bytes_of[1] < 32 * KIB
    for fewer, more in ((1, 10), (10, 25)):
        grown = bytes_of[more] - bytes_of[fewer]
        assert 0 < grown < (more - fewer) * 2 * 512 + 4 * KIB
    assert state_bytes(2, 10, 100, **NO_LOGS) == bytes_of[10]


def test_reports_of_more_ranks_than_cores(compiled, witnessed):
    """Complete and in order, and a rank needs no more than among a few."""
    run = witnessed(compiled('partners'), '2', '1', '1', ranks=32, env=NO_LOGS, timeout=300)
    assert run.code == 0, run.err
    report = run.report
    assert (report['complete'], report['ranks']) == (True, 32)
    assert [process['rank'] for process in report['processes']] == [*range(32)]
    assert [host['name'] for host in report['hosts']] == [report['processes'][0]['host']]
    for process in report['processes']:
        to = [(process['rank'] + step) % 32 for step in (1, 2)]
        assert [partner['rank'] for partner in process['partners']] == sorted(to)
        assert process['state_bytes'] < 32 * KIB
