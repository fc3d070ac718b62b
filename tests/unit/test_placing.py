"""Where ranks should sit: the best of all ways, what launchers take, and what may be promised."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array

import placing_programs
import witnessed
from assay import AssayError
from assay.commands import place
from assay.placing import costs, files, mapping, plan, turns
from assay.placing.problem import PlacingProblem, seats_of
from assay.results.history import History
from assay.witness import read_witness
from assay.witness.placement import DISTANCES
from command import call, heed_signals
from screenings import screening, slow_links

#: Near seats are cheap, far ones are not; as if it had been measured.
KNOWN = costs.Costs(
    tuple(
        costs.Cost(latency * 1e-6, 1e10 / (far + 1), 'measured')
        for far, latency in enumerate((0.2, 0.4, 0.8, 20.0, 100.0))
    ),
    {},
)


def problem(groups, edges, kinds=None, fixed=(), latency=None):
    """A problem of so many messages between each two ranks, of 100 bytes each."""
    groups = np.array(groups)
    n = groups.shape[1]
    one, other, messages = np.array(edges, dtype=float).reshape(-1, 3).T
    ends = np.array([[*one, *other], [*other, *one]], dtype=int)
    both = coo_array((np.tile(messages, 2), tuple(ends)), (n, n)).tocsr()
    steps = np.arange(len(groups) + 1.0)
    stays = np.isin(np.arange(n), fixed)
    return PlacingProblem(
        both,
        both * 100,
        groups,
        10.0**steps if latency is None else np.array(latency),
        steps / 10,
        np.array(kinds if kinds is not None else [0] * n),
        stays,
    )


def least_of_all(one):
    """What the best permutation costs."""
    ranks = np.arange(one.ranks)
    return min(
        one.cost(np.array(seat))
        for seat in itertools.permutations(ranks)
        if (one.kinds[list(seat)] == one.kinds).all()
        and (np.array(seat)[one.fixed] == ranks[one.fixed]).all()
    )


MACHINES = {
    'two nodes': [[0, 0, 0, 1, 1, 1]],
    'unequal nodes': [[0, 1, 1, 2, 2, 2]],
    'sockets and nodes': [[0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 1]],
    'unequal switches': [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]],
    'a rank a node': [[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 1]],
    'all alike': [[0, 1, 2, 3, 4, 5]],
}


@pytest.mark.parametrize('groups', MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize('more', [{}, {'fixed': [0, 4]}, {'kinds': [0, 1, 0, 1, 0, 0]}])
def test_of_few_ranks_no_way_is_better(groups, more):
    random = np.random.default_rng(1)
    for _ in range(3):
        edges = [
            (a, b, random.integers(1, 100))
            for a, b in itertools.combinations(range(6), 2)
            if random.random() < 0.6
        ]
        one = problem(groups, edges, **more)
        seat = mapping.best_seats(one)
        assert sorted(seat) == [*range(6)]
        assert (one.kinds[seat] == one.kinds).all()
        assert (seat[one.fixed] == np.flatnonzero(one.fixed)).all()
        assert one.cost(seat) == pytest.approx(least_of_all(one))


def grid(rows, columns):
    edges = [(i, i + 1, 5) for i in range(rows * columns) if (i + 1) % columns]
    return edges + [(i, i + columns, 5) for i in range((rows - 1) * columns)]


def test_of_many_ranks_a_grid_is_cut_along_its_lines():
    n = 256
    # 16 x 16 points on 16 nodes of two sockets behind two switches, dealt round.
    node = np.arange(n) % 16
    one = problem([node * 2 + np.arange(n) // 16 % 2, node, node // 8], grid(16, 16))
    seat = mapping.best_seats(one)
    assert sorted(seat) == [*range(n)]
    # Blocks of 4 x 4, halved into 4 x 2: by hand, 192 links cut, and of those 16 by switches.
    point = np.arange(n)
    row, column = point // 16, point % 16
    block = row // 4 + 4 * (column // 4)
    by_hand = np.lexsort((np.argsort(point), column // 2 % 2, block))
    seats = np.lexsort((np.argsort(point), one.groups[0], node))
    ideal = np.empty(n, dtype=int)
    ideal[by_hand] = seats
    assert one.cost(seat) <= 1.1 * one.cost(ideal)
    again = mapping.best_seats(one)
    assert (again == seat).all(), 'who asks again gets the same plan'


def test_of_many_ranks_those_stay_that_have_to_and_kinds_are_kept():
    n = 48
    node = np.arange(n) % 6
    kinds = np.where(np.arange(n) < 6, 1, 0)
    one = problem([node], grid(6, 8), kinds=kinds)
    seat = mapping.best_seats(one)
    assert one.cost(seat) < one.cost(np.arange(n)) and (kinds[seat] == kinds).all()
    one = problem([node], grid(6, 8), fixed=[0, 7, 47])
    seat = mapping.best_seats(one)
    assert [*seat[[0, 7, 47]]] == [0, 7, 47] and one.cost(seat) < 0.7 * one.cost(np.arange(n))


# A job -------------------------------------------------------------------------------------------


def ring(hosts, per_host, dealt, transfer=0.5, waits=0.0, pairs_only=False, **more):
    """A ring of ranks, that spend such a share of their time in messages and such a one waiting."""
    n = hosts * per_host
    machine = [witnessed.host(f'n{number}', [[*range(per_host)]]) for number in range(hosts)]
    ranks = []
    for rank in range(n):
        where, core = (rank % hosts, rank // hosts) if dealt else divmod(rank, per_host)
        in_mpi = transfer + waits
        steps = ((1,) if rank % 2 == 0 else (-1,)) if pairs_only else (1, -1)
        entry = {
            'wall': 10.0,
            'mpi_time': 10 * in_mpi,
            'calls': {'MPI_Sendrecv': witnessed.call(1000, 10 * in_mpi, 8000)},
            'waits': {'MPI_Sendrecv': witnessed.wait(10 * in_mpi, 10 * waits)} if waits else {},
            'partners': [witnessed.partner((rank + step) % n, 500, 4000) for step in steps],
        }
        ranks.append(witnessed.process(rank, (core,), f'n{where}', **(entry | more)))
    return witnessed.entries(ranks, machine)


def planned(entries, known=KNOWN, **more):
    return plan.plan_seats(witnessed.validated(entries), known, **more)


def test_a_ring_that_was_dealt_round_is_put_together():
    made = planned(ring(2, 4, dealt=True, pairs_only=True))
    assert made.word == 'place'
    hosts = [made.seats.hosts[seat] for seat in made.seat]
    assert all(hosts[rank] == hosts[rank + 1] for rank in range(0, 8, 2))
    # All messages crossed, none does: half of the time was theirs.
    assert made.now[3] == 1 and made.then[0] == pytest.approx(1)
    assert 0.4 < made.gain.low <= made.gain.expected <= made.gain.most == 0.5
    assert made.gain.expected <= made.gain.high <= made.gain.most + plan.UNKNOWN


def test_what_is_waited_for_is_not_promised():
    made = planned(ring(2, 4, dealt=True, pairs_only=True, transfer=0.1, waits=0.6))
    assert made.gain.high <= made.gain.most + plan.UNKNOWN and made.gain.most == pytest.approx(0.1)


def test_costs_that_nobody_measured_widen_the_interval():
    assumed = costs.Costs(costs.ASSUMED, {})
    made = planned(ring(2, 4, dealt=True, pairs_only=True), assumed)
    known = planned(
        ring(2, 4, dealt=True, pairs_only=True),
        costs.Costs(tuple(replace(one, source='x') for one in costs.ASSUMED), {}),
    )
    assert made.gain.low < known.gain.low and made.gain.high > known.gain.high
    assert any('were not measured here' in note for note in made.notes)
    assert not known.notes


@pytest.mark.parametrize(
    ('entries', 'why'),
    [
        (ring(1, 1, False), 'there is one rank'),
        (ring(2, 2, True, partners=[]), 'no rank sent a message to another one'),
        (ring(1, 4, False), 'all seats are equally far apart: within a NUMA domain'),
        (ring(4, 1, False), 'all seats are equally far apart: between nodes of a switch'),
        (ring(2, 4, False), 'no better way to seat the ranks was found'),
        (ring(2, 4, True, transfer=0.01), 'messages between ranks took 1.0% of the time'),
        (ring(2, 4, True, calls={'MPI_Bcast': witnessed.call(5, 5.0, 80)}), '0.0% of'),
    ],
)
def test_leave_it(entries, why):
    made = planned(entries)
    assert made.word == 'leave it' and why in made.why
    assert not made.notes or 'equally far apart' not in why  # costs do not matter then
    assert made.gain.expected <= made.gain.most


def test_collectives_that_lose_count_against_it():
    """Partners that have no numbers in common: whoever puts them together parts neighbours."""
    entries = ring(2, 4, dealt=False)
    for one, other in {0: 7, 1: 4, 2: 5, 3: 6}.items():
        for rank, far in ((one, other), (other, one)):
            entries['processes'][rank]['partners'] = [witnessed.partner(far, 500, 4000)]
    alone = planned(entries)
    assert alone.word == 'place'
    for one in entries['processes']:
        one['calls'] = {
            'MPI_Sendrecv': witnessed.call(1000, 1.0, 8000),
            'MPI_Allreduce': witnessed.call(1000, 4.0, 8000),
        }
        one['waits'] = {}
    both = planned(entries)
    assert both.gain.expected < alone.gain.expected and both.word != 'place'


@pytest.mark.parametrize('name', ['MPI_Request_get_status', 'MPI_Request_get_status_any'])
def test_to_look_at_a_request_is_to_wait_for_its_message(name):
    """Not a collective, unless some were started that do not block."""
    calls = {'MPI_Isend': witnessed.call(1000, 1.0, 8000), name: witnessed.call(5000, 4.0, 0)}
    made = planned(ring(2, 4, dealt=True, calls=calls))
    assert made.word == 'place' and made.gain.most == pytest.approx(0.5)
    calls['MPI_Ibcast'] = witnessed.call(1, 0.0, 8)
    assert planned(ring(2, 4, dealt=True, calls=calls)).gain.most == pytest.approx(0.1)


def test_a_job_that_others_disturbed_is_no_evidence():
    entries = ring(2, 4, dealt=True)
    entries['hosts'][0]['disturbance'] = witnessed.disturbance(steal=0.3)
    made = planned(entries)
    assert made.word == 'cannot tell' and 'measure it again' in made.why


def test_reports_that_do_not_say_enough():
    entries = ring(2, 2, True)
    entries['sections'].remove('matrix')
    with pytest.raises(AssayError, match='who sent to whom'):
        planned(entries)
    with pytest.raises(AssayError, match='there is no rank 8 of 4'):
        planned(ring(2, 2, True), stay={8})


def test_ranks_that_stay_and_messages_that_leave_the_world():
    entries = ring(2, 4, dealt=True)
    entries['processes'][3]['partners'].append(witnessed.partner(-1, 7, 70))
    made = planned(entries, stay={0, 3})
    assert made.seat[0] == 0 and made.seat[3] == 3 and made.moved
    assert '7 messages to ranks outside MPI_COMM_WORLD do not count' in made.notes


def distances(seats):
    """How far the first rank sits from each."""
    return (seats.groups != seats.groups[:, :1]).sum(axis=0).tolist()


def test_seats():
    """Sockets whose CPUs alternate, with hardware threads: hwloc counts one after the other."""
    machine = [witnessed.host('n0', [[0, 2], [1, 3]], smt=2)]
    ranks = [
        witnessed.process(rank, (core,), 'n0', numa=str(core % 2), packages=str(core % 2))
        for rank, core in enumerate((3, 0, 1, 2))
    ]
    seats = seats_of(witnessed.report(ranks, machine), {})
    assert seats.cores == ({3}, {0}, {2}, {1})
    assert distances(seats) == [0, 2, 0, 2]
    far = ring(4, 1, False)
    seats = seats_of(witnessed.validated(far), {'s1': ['n0', 'n1'], 's2': ['n2']})
    assert distances(seats) == [0, 3, 4, 4]
    assert len(DISTANCES) == 1 + len(seats.groups)


def test_a_domain_without_cpus_has_no_seats():
    """Memory alone, or CPUs that are all offline."""
    machine = [witnessed.host('n0', [[0], [], [1]])]
    ranks = [witnessed.process(rank, (rank,), 'n0') for rank in range(2)]
    assert seats_of(witnessed.report(ranks, machine), {}).cores == ({0}, {1})


def test_hosts_that_slurm_does_not_tell_apart_keep_their_names(tmp_path, monkeypatch):
    monkeypatch.setattr('assay.machine.slurm.records', lambda _: [{'NodeName': 'n0'}])
    text = json.dumps(ring(2, 2, dealt=True)).replace('"n0"', '"n0.a"').replace('"n1"', '"n0.b"')
    (tmp_path / 'r.json').write_text(text)
    found = place._read(tmp_path / 'r.json')
    assert [host.name for host in found.hosts] == ['n0.a', 'n0.b']


# What launchers take ------------------------------------------------------------------------------


def test_files_of_launchers():
    made = planned(ring(2, 2, dealt=True, pairs_only=True))
    assert [*made.seat] == [0, 2, 1, 3]
    own = {name: one.content(made) for name, one in files.LAUNCHERS.items()}
    assert own['openmpi'] == (
        'rank 0=n0 slot=0\nrank 1=n0 slot=1\nrank 2=n1 slot=0\nrank 3=n1 slot=1\n'
    )
    assert own['slurm'] == 'n0\nn0\nn1\nn1\n'
    # The seats of n0 are those of ranks 0 and 2 now: Cray fills a node before the next one.
    assert own['cray'] == '0,1,2,3\n' and own['split'] == '0\n2\n1\n3\n'
    told = {
        (name, library): files.with_plan(name, 'F', library, [one.starters[0], '-n', '4', 'ls'])
        for name, one in files.LAUNCHERS.items()
        for library in ('Open MPI v4.1.4, package', 'Open MPI v5.0.9, package')
    }
    old, new = (told['openmpi', f'Open MPI v{v}, package'] for v in ('4.1.4', '5.0.9'))
    assert old == ({}, ['mpirun', '--rankfile', 'F', '-n', '4', 'ls'])
    assert new == ({}, ['mpirun', '--map-by', 'rankfile:file=F', '-n', '4', 'ls'])
    assert told['slurm', 'Open MPI v5.0.9, package'][0] == {'SLURM_HOSTFILE': 'F'}
    # Of two ways to deal ranks the last would win.
    for command, way in (
        ('srun -m cyclic ls -m cyclic_module', ''),
        ('srun --distribution=block:cyclic ls -m cyclic_module', ':cyclic'),
        ('srun -mplane=2:block ls -m cyclic_module', ':block'),
    ):
        words = files.with_plan('slurm', 'F', '', command.split())[1]
        assert words == ['srun', f'--distribution=arbitrary{way}', 'ls', '-m', 'cyclic_module']
    words = files.with_plan('openmpi', 'F', '', ['mpirun', '-rf', 'f', '-n', '4', 'ls'])[1]
    assert words == ['mpirun', '--map-by', 'rankfile:file=F', '-n', '4', 'ls']
    with pytest.raises(AssayError, match='begins with the launcher itself'):
        files.with_plan('slurm', 'F', '', ['time', 'srun', 'ls'])


def test_seats_that_share_cores_need_leave():
    """As those of ranks that are not bound: Open MPI 5 starts nothing otherwise."""
    seats = planned(ring(2, 2, dealt=True, pairs_only=True)).seats
    assert not seats.overlap
    assert replace(seats, cores=(frozenset({0, 1}), *seats.cores[1:])).overlap
    new, old = 'Open MPI v5.0.9, package', 'Open MPI v4.1.4, package'
    leave = ['--bind-to', ':overload-allowed']

    def made(library, *options):
        return files.with_plan('openmpi', 'F', library, ['mpirun', *options, 'ls'], True)[1]

    assert made(new) == ['mpirun', '--map-by', 'rankfile:file=F', *leave, 'ls']
    own = ['--bind-to', 'none']
    assert made(new, *own) == ['mpirun', '--map-by', 'rankfile:file=F', *own, 'ls']
    assert made(old) == ['mpirun', '--rankfile', 'F', 'ls']


def test_a_rankfile_names_cores_of_the_job():
    """The host's first rank may see another cpuset than the others."""
    made = planned(ring(2, 2, dealt=True, pairs_only=True))
    cores = made.seats.cores
    unknown = replace(made, seats=replace(made.seats, cores=(*cores[:3], frozenset())))
    with pytest.raises(AssayError, match='rank 3 sat on cores that are none of the job on n1'):
        files.rankfile(unknown)
    assert files.hosts(unknown) == files.hosts(made)


def test_roles_are_dealt_by_seats_and_not_by_ranks():
    """Three ranks in a circle: what is planned for whom, and who plays whom, are inverse."""
    made = planned(ring(2, 4, dealt=True))
    turned = replace(made, seat=np.array([1, 2, 0, 3, 4, 5, 6, 7]))
    assert files.role_of_each(turned)[:3] == [2, 0, 1]
    packed = replace(turned, seats=replace(made.seats, hosts=('n0',) * 8))
    assert files.cray_order(packed).startswith('2,0,1,3')


def test_a_launcher_that_chooses_nodes_alone_is_promised_no_more():
    """Four ranks on two domains of a node: srun deals them in their order."""
    entries = ring(1, 4, dealt=False)
    for one in entries['processes']:
        one['numa'] = str(one['rank'] % 2)
        one['partners'] = [witnessed.partner(one['rank'] ^ 1, 500, 4000)]
    entries['hosts'][0]['numa'] = witnessed.host('n0', [[0, 2], [1, 3]])['numa']
    assert planned(entries).moved == 2
    assert planned(entries, by_node=True).word == 'leave it'


# Whether it was done ------------------------------------------------------------------------------


def test_whether_ranks_sat_as_planned():
    entries = ring(2, 4, dealt=True)
    before = witnessed.validated(entries)
    made = planned(entries)
    after = ring(2, 4, dealt=True)
    for rank, seat in enumerate(made.seat.tolist()):
        for name in ('host', 'cores', 'cpus'):
            after['processes'][rank][name] = entries['processes'][seat][name]
    as_planned = plan.hold_against_plan(made, before, witnessed.validated(after), False, False)
    assert as_planned.elsewhere == ()
    # On other nodes, which of them is which does not matter.
    text = json.dumps(after).replace('"n0"', '"x"').replace('"n1"', '"n0"')
    renamed = witnessed.validated(json.loads(text))
    assert plan.hold_against_plan(made, before, renamed, False, False).elsewhere == ()
    same = plan.hold_against_plan(made, before, before, False, False)
    assert same.elsewhere == tuple(np.flatnonzero(made.seat != np.arange(8)))
    # A program that deals the roles itself starts as it did.
    assert plan.hold_against_plan(made, before, before, True, False).elsewhere == ()
    with pytest.raises(AssayError, match='4 ranks'):
        plan.hold_against_plan(made, before, witnessed.validated(ring(2, 2, True)), False, False)


def test_runs_in_turn_until_decided():
    random = np.random.default_rng(3)
    sides = []

    def run(side):
        sides.append(side)
        return (10.0, 8.0)[side] * np.exp(random.normal(0, 0.01))

    found = turns.run_pairs(run, 0.02)
    assert found.decision.word == 'better' and sides[:4] == [0, 1, 1, 0]
    assert found.decision.ratio == pytest.approx(0.8, abs=0.03)

    def stopped(side):
        raise KeyboardInterrupt

    assert turns.run_pairs(stopped, 0.02) == turns.Turns(((), ()), None)
    with pytest.raises(AssayError, match='false: exit code 1'):
        turns.runner([({}, ['false'])])(0)


def test_a_launcher_that_is_interrupted_cleans_up(tmp_path):
    """What was measured counts, and nobody kills the launcher meanwhile."""
    launcher = 'trap "sleep 0.5; : >cleaned; exit 1" INT; : >ready; while :; do sleep 0.05; done'
    code = (
        'from assay.placing import turns; '
        f'print(turns.run_pairs(turns.runner([({{}}, ["sh", "-c", {launcher!r}])]), 0.02))'
    )
    with subprocess.Popen(
        [sys.executable, '-c', code],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=heed_signals,
    ) as run:
        end = time.monotonic() + 60
        while not (tmp_path / 'ready').exists() and time.monotonic() < end:
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)
    assert out == 'Turns(seconds=((), ()), decision=None)\n' and (tmp_path / 'cleaned').exists()


# What messages cost -------------------------------------------------------------------------------


def stored(*rows):
    """A history of PointToPoint; rows of case, layout, scale, latency in us and MB/s."""
    table = [
        {
            'check': 'PointToPoint',
            'system': 'generic',
            'partition': 'node',
            'result': result,
            'case': f'PointToPoint %fabric={fabric} %layout={layout} %scale={scale}',
            'environment': 'mpich',
            'layout': layout,
            'scale': scale,
            'figure': figure,
            'value': value,
            'begun': number,
        }
        for number, (fabric, layout, scale, *values, result) in enumerate(rows)
        for figure, value in zip(('latency', 'bandwidth'), values, strict=True)
    ]
    return History((), None, pl.DataFrame(table))


def test_costs_of_the_history():
    history = stored(
        ('tcp', 'packed', '1_node', 5.0, 5000.0, 'pass'),
        ('shm', 'packed', '1_node', 0.2, 9000.0, 'pass'),
        ('shm', 'packed', '1_node', 0.4, 9000.0, 'pass'),
        ('shm', 'packed', '1_node', 0.001, 9000.0, 'fail'),
        ('tcp', 'packed', '2_nodes', 20.0, 1000.0, 'pass'),
    )
    found = costs.of_history(history, None, '')
    assert found.keys() == {0, 3, 4}
    assert found[0].latency == pytest.approx(0.3e-6) and 'fabric=shm' in found[0].source
    assert (found[3].latency, found[3].bandwidth) == (pytest.approx(20e-6), 1e9)
    assert costs.of_history(history, None, 'fabric=tcp')[0].latency == pytest.approx(5e-6)


def test_costs_of_a_screening():
    two = {'s1': [f'n{i}' for i in range(8)], 's2': [f'n{i}' for i in range(8, 16)]}
    one = slow_links(screening(16, switches=two), lambda a, b: (a < 8) != (b < 8), 50)
    found = costs.of_screening(one)
    assert found[3].latency == pytest.approx(2e-6, rel=0.1)
    assert found[4].latency == pytest.approx(1e-4, rel=0.1)
    assert found[3].bandwidth == pytest.approx(1e10, rel=0.1) and 'made:up' in found[4].source


def test_a_longer_way_costs_no_less():
    odd = costs.Costs(tuple(costs.Cost(one, 1 / one) for one in (3, 1, 2, 5, 4)), {})
    assert odd.curves == ([3, 3, 3, 5, 5], [3, 3, 3, 5, 5])


# The command --------------------------------------------------------------------------------------


def test_the_command(tmp_path, monkeypatch):
    nothing = History((), None, pl.DataFrame())
    monkeypatch.setattr('assay.results.history.load_history', lambda: nothing)
    monkeypatch.setattr('assay.placing.costs.costs_of', lambda *_: KNOWN)
    path = witnessed.write(tmp_path / 'r.json', ring(2, 4, dealt=True, pairs_only=True))
    ended = call('place', path, '--for', 'openmpi', '-o', tmp_path / 'ranks')
    assert ended.exit_code == 0 and ended.stdout.startswith('place: ')
    assert 'expected gain: ' in ended.stdout and f'rankfile:file={tmp_path}' in ended.stdout
    assert (tmp_path / 'ranks').read_text().count('rank ') == 8
    told = json.loads(call('place', path, '--json').stdout)
    assert told['verdict'] == 'place' and sorted(one['seat_of'] for one in told['ranks']) == [
        *range(8)
    ]
    call('place', path, '--for-page')
    kept = read_witness(path).plan
    assert kept and [one.seat_of for one in kept.ranks] == [one['seat_of'] for one in told['ranks']]
    # What the plan gained is kept with it.
    told['turns'] = {'verdict': 'better', 'ratio': 0.8}
    path.with_name('r.json.plan').write_text(json.dumps(told))
    ended = call('place', path, '--for', 'openmpi', '--check', path, '--for-page')
    kept = read_witness(path).plan
    assert kept and kept.turns and kept.turns.ratio == 0.8
    assert ended.exit_code == 1 and 'not as planned: ' in ended.stdout
    packed = witnessed.write(tmp_path / 'p.json', ring(2, 4, dealt=False))
    ended = call('place', packed, '--for', 'slurm', '-o', tmp_path / 'none')
    assert ended.stdout.startswith('leave it: ') and not (tmp_path / 'none').exists()
    ended = call('place', packed, '--for', 'slurm', '--', 'srun', 'false')
    assert 'the command was not run: ' in ended.stdout and ended.exit_code == 0
    for words, why in (
        (['--for', 'slrm'], 'did you mean slurm'),
        (['--stay', 'x'], 'not a list of numbers'),
        (['--', 'mpirun', 'app'], 'name that with --for'),
        (['--for', 'slurm', '--check', path, '--', 'srun', 'ls'], 'a run that has ended'),
    ):
        with pytest.raises(AssayError, match=why):
            call('place', path, *words)


def test_blas_starts_no_threads_that_only_spin():
    """What a command starts has the environment of the user."""
    code = (
        'import os, assay.placing.mapping\n'
        'print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))'
    )
    env = {name: value for name, value in os.environ.items() if name != 'OPENBLAS_NUM_THREADS'}
    done = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ['1', 'None'], done.stderr


# What comes true ----------------------------------------------------------------------------------


def test_no_loss_is_called_a_gain():
    """100 random programs; tests/support/placing_programs.py plays more."""
    found = [placing_programs.promised_and_gained(number) for number in range(100)]
    sold = [gained for made, gained in found if made.word == 'place']
    assert len(sold) >= 5 and min(sold) > 0
    inside = [made.gain.low <= gained <= made.gain.high for made, gained in found if made.moved]
    assert sum(inside) >= 0.9 * len(inside)
