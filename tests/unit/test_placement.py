"""The verdict on layouts: right seats pass on all shapes of nodes, and each fault is named."""

from itertools import product

import pytest

from assay.layout.layouts import (
    BINDINGS,
    LAYOUTS,
    DoesNotFitError,
    NodeShape,
    Placement,
    unusual_binding,
)
from assay.text import as_list
from assay.witness.placement import misplaced_progress_thread
from witnessed import cpus_of, host, process, report, thread


def verify(found, layout, threads, ranks, widths=()):
    """The verdict on a report of so many ranks on each host, each of so many threads."""
    return LAYOUTS[layout].verify(found, Placement(ranks, threads, widths=widths))


# Cores of each NUMA domain.
SHAPES = {
    'one core': [[0]],
    'two cores': [[0, 1]],
    'two domains of one core': [[0], [1]],
    'two domains': [[0, 1, 2, 3], [4, 5, 6, 7]],
    'interleaved': [[0, 2, 4, 6], [1, 3, 5, 7]],
    'four domains': [[0, 1], [2, 3], [4, 5], [6, 7]],
    'uneven': [[0, 1], [2, 3, 4, 5, 6, 7]],
}


def seats(layout, domains, ranks, threads, widths):
    """Cores of each rank of a host, as the launchers deal them."""
    cores = [core for domain in domains for core in domain]
    if layout == 'one-per-node':
        return [cores]
    if layout == 'one-per-numa':
        return domains
    if layout == 'spread':
        free = [list(domain) for domain in domains]
        dealt = []
        turn = 0
        while len(dealt) < ranks:
            domain = free[turn % len(free)]
            if len(domain) >= threads:
                dealt.append([domain.pop(0) for _ in range(threads)])
            elif all(len(domain) < threads for domain in free):
                return None
            turn += 1
        return dealt
    if layout == 'threads':
        return [[core] for core in cores for _ in range(ranks // len(cores))]
    widths = widths or [threads] * ranks
    return [cores[sum(widths[:rank]) :][: widths[rank]] for rank in range(ranks)]


def right(layout, domains, smt=1, hosts=1, ranks=None, cores_per_rank=1, **more):
    """A report with everything in its place, and what was asked; None where that does not fit."""
    node = NodeShape(sum(map(len, domains)), len(domains), threads_per_core=smt)
    try:
        asked = LAYOUTS[layout].place('srun', node, ranks, cores_per_rank)
    except DoesNotFitError:
        return None
    sat = seats(layout, domains, asked.ranks, asked.threads, asked.widths)
    if not sat:
        return None
    machine = [host(f'n{number + 1}', domains, smt) for number in range(hosts)]
    in_turn = product(machine, sat)
    if layout == 'cyclic':
        in_turn = ((on, cores) for cores, on in product(sat, machine))
    processes = [
        process(rank, cores, on['name'], cpus_of(cores, node.cores, smt))
        for rank, (on, cores) in enumerate(in_turn)
    ]
    if layout == 'threads':
        for number, one in enumerate(processes):
            one['cpus'] = str(number // smt % node.cores + number % smt * node.cores)
    environment = {'OMP_NUM_THREADS': str(asked.threads)}
    return report(processes, machine, environment=environment, **more), asked


@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('shape', SHAPES)
def test_right_seats_pass(layout, shape):
    seen = 0
    for smt, hosts, ranks, cores in product((1, 2), (1, 3), (None, 1, 2, 3), (1, 2, 3)):
        if found := right(layout, SHAPES[shape], smt, hosts, ranks, cores):
            made, asked = found
            assert LAYOUTS[layout].verify(made, asked) is None
            seen += 1
    one_domain = ('one core', 'two cores')
    lacking = {('mixed', 'one core'), *product(('near', 'far'), one_domain)}
    assert seen or (layout, shape) in lacking


def test_threads_of_a_rank_that_openmp_binds():
    """OpenMP leaves the main thread one core; the rank has those of all its threads."""
    threads = [thread(10 + core, (core,), 1.0) for core in (1, 2, 3)]
    helper = thread(20, (0,), 9.0, 'mpi')
    idle = thread(21, range(8), 0.001)
    ranks = [process(0, (0,), threads=[*threads, helper, idle]), process(1, (4, 5, 6, 7))]
    found = report(ranks, [host(domains=SHAPES['two domains'])])
    assert verify(found, 'hybrid', 4, 2) is None
    ranks[0] = process(0, (0,), threads=threads[:2])
    found = report(ranks, [host(domains=SHAPES['two domains'])])
    assert verify(found, 'hybrid', 4, 2) == (
        'rank 0 on n1 is bound to cores 0-2, layout hybrid gives each rank 4'
    )


def test_which_threads_a_rank_has():
    one_domain = [host(domains=[[0, 1, 2, 3]])]
    # An idle thread on a core of its own counts, and so does a busy one that may go anywhere.
    idle = [thread(11 + core, (core,)) for core in (1, 2, 3)]
    found = report([process(0, (0,), threads=idle)], one_domain)
    assert verify(found, 'hybrid', 4, 1) is None
    free = [thread(11, (0, 1, 2, 3), 1.0)]
    found = report([process(0, (0, 1), threads=free)], one_domain)
    assert 'is not bound' in verify(found, 'packed', 2, 1)
    # A rank of one thread has the cores of that one.
    found = report([process(0, (0,), threads=[thread(11, (1,))])], one_domain)
    assert verify(found, 'packed', 1, 1) is None


def test_an_incomplete_report_shows_placement():
    made, asked = right('packed', SHAPES['two cores'])
    made = made.model_copy(update={'complete': False})
    assert LAYOUTS['packed'].verify(made, asked) is None


@pytest.mark.parametrize(
    ('nodes', 'ranks', 'said'),
    [
        (2, [2], 'n1 has 2 ranks (ranks 0 and 1), 1 on each of 2 nodes was asked for'),
        (
            2,
            [3, 1],
            'n1 has 3 ranks (ranks 0-2), n2 has 1 rank (rank 3), 2 on each of 2 nodes were asked '
            'for',
        ),
        (4, [1, 2, 1], 'n2 has 2 ranks (ranks 1 and 2), 1 on each of 4 nodes was asked for'),
        (
            10,
            [1, 3] * 5,
            'n1 has 1 rank (rank 0), n2 has 3 ranks (ranks 1-3), n3 has 1 rank (rank 4), n4 has 3 '
            'ranks (ranks 5-7) (and 6 more hosts wrongly), 2 on each of 10 nodes were asked for',
        ),
    ],
)
def test_ranks_on_the_wrong_nodes(nodes, ranks, said):
    names = [f'n{number + 1}' for number, count in enumerate(ranks) for _ in range(count)]
    processes = [process(rank, (0,), name) for rank, name in enumerate(names)]
    found = report(processes, [host(name, [[0], [1]]) for name in dict.fromkeys(names)])
    assert verify(found, 'packed', 1, sum(ranks) // nodes) == said


def test_ranks_dealt_round_nodes():
    machine = [host(name, [[0, 1]]) for name in ('n1', 'n2')]
    for names, is_right in {('n1', 'n2') * 2: True, ('n1', 'n1', 'n2', 'n2'): False}.items():
        cores = [names[:rank].count(name) for rank, name in enumerate(names)]
        ranks = [process(n, (c,), on) for n, (c, on) in enumerate(zip(cores, names, strict=True))]
        assert verify(report(ranks, machine), 'cyclic', 1, 2) == (
            None
            if is_right
            else 'layout cyclic deals the ranks round the 2 nodes, but on n1 are ranks 0 and 1'
        )


@pytest.mark.parametrize(
    ('cpus', 'said'),
    [
        (('0', '2', '1', '3'), None),
        (('0', '2', '1', '1'), 'ranks 2 and 3 share hardware thread 1 of node n1'),
        (
            ('0,2', '0,2', '1,3', '1,3'),
            'ranks 0-3 on n1 may use 2 hardware threads (0,2), layout threads gives each rank 1',
        ),
    ],
)
def test_ranks_on_hardware_threads(cpus, said):
    ranks = [process(n, (int(mine[0]) % 2,)) for n, mine in enumerate(cpus)]
    for one, mine in zip(ranks, cpus, strict=True):
        one['cpus'] = mine
    assert verify(report(ranks, [host(domains=[[0, 1]], smt=2)]), 'threads', 1, 4) == said


BOUND = {
    'core': [(0,), (1,), (4,), (5,)],
    'numa': 2 * [(0, 1, 2, 3)] + 2 * [(4, 5, 6, 7)],
    'none': 4 * [tuple(range(8))],
}


@pytest.mark.parametrize('declared', ['', *BINDINGS])
@pytest.mark.parametrize('given', BOUND)
def test_a_binding_that_the_launcher_gives(given, declared):
    """Each is right unless another is declared; here a socket is a domain."""
    found = sat(SHAPES['two domains'], *BOUND[given])
    asked = Placement(4, 1, declared=declared)
    said = LAYOUTS['default'].verify(found, asked)
    if given == 'none' or declared in ('', given) or (declared, given) == ('socket', 'numa'):
        assert said is None or (given == 'none' and declared not in ('', 'none'))
    else:
        assert 'and the system declares that its launcher binds each rank to ' in said


def test_what_is_wrong_whatever_binds_and_what_is_unusual():
    default = LAYOUTS['default']
    domains, asked = SHAPES['two domains'], Placement(2, 1)
    on_one = sat(domains, (0,), (0,))
    assert default.verify(on_one, asked) == 'ranks 0 and 1 on n1 are bound to core 0'
    assert unusual_binding(sat(domains, (0,), (4,))) is None
    in_one = sat(domains, (0,), (1,))
    assert default.verify(in_one, asked) is None
    assert unusual_binding(in_one) == 'ranks 0 and 1 on n1 are all in NUMA domain 0 of 2'
    free = sat(domains, range(8), range(8))
    assert default.verify(free, asked) is None
    assert unusual_binding(free) == 'ranks 0 and 1 on n1 are not bound to any of its cores'


def test_domains_and_sockets_are_told_apart():
    """Two sockets of four domains each."""
    default, domains = LAYOUTS['default'], [[core] for core in range(8)]

    def of(*cores):
        ranks = [process(number, its) for number, its in enumerate(cores)]
        return report(ranks, [host(domains=domains, per_package=4)])

    in_one = of((0,), (1,), (2,), (3,))
    assert unusual_binding(in_one) == 'ranks 0-3 on n1 are all in socket 0 of 2'
    assert unusual_binding(of((0,), (4,))) is None
    asked = Placement(2, 1, declared='socket')
    assert default.verify(of((0, 1, 2, 3), (4, 5, 6, 7)), asked) is None
    assert default.verify(of((0,), (4,)), asked) == (
        'rank 0 on n1 may use core 0 (and 1 more wrongly), and the system declares that its '
        'launcher binds each rank to a socket'
    )


def test_ranks_that_differ():
    domains = SHAPES['two domains']
    asked = ('mixed', 1, 5, (4, 1, 1, 1, 1))
    wide = process(0, (0, 1, 2, 3))
    narrow = [process(rank, (3 + rank,)) for rank in (1, 2, 3, 4)]
    found = report([wide, *narrow], [host(domains=domains)])
    assert verify(found, *asked) is None
    narrow[1] = process(2, (5, 6))
    found = report([wide, *narrow], [host(domains=domains)])
    assert verify(found, *asked) == (
        'rank 2 on n1 is bound to cores 5-6, layout mixed gives the ranks 4, 1, 1, 1, 1'
    )


# Faults ---------------------------------------------------------------------------------------


def sat(domains, *cores, smt=1, allowed=None, on='n1', **more):
    """A report of one host with ranks on these cores."""
    machine = host(on, domains, smt, allowed)
    of = sum(map(len, domains))
    ranks = [process(n, c, on, cpus_of(c, of, smt), **more) for n, c in enumerate(cores)]
    return report(ranks, [machine])


FOUR = [[0, 1], [2, 3]]
EIGHT = [[0, 1, 2, 3], [4, 5, 6, 7]]
ALL = tuple(range(8))


@pytest.mark.parametrize(
    ('found', 'asked', 'sentence'),
    [
        # Ranks of a host.
        (sat(FOUR, (0,), (1,), (2,)), ('packed', 1, 2), 'n1 has 3 ranks (ranks 0-2), 2 were asked'),
        (sat(FOUR, (0,)), ('packed', 1, 2), 'n1 has 1 rank (rank 0), 2 were asked for'),
        # A cpuset, or a host, that is too small; whatever came of it.
        (
            sat(FOUR, (0,), (0,), allowed=[0]),
            ('packed', 1, 2),
            'the cpuset of the job on n1 has 1 core (0), and layout packed needs 2',
        ),
        (
            sat([[0]], (0,), (0,)),
            ('packed', 1, 2),
            'n1 has 1 core (0), and layout packed needs 2',
        ),
        (
            sat(EIGHT, (0, 1), (2, 3), allowed=[0, 1, 2, 3]),
            ('hybrid', 2, 2),
            'the cpuset of the job on n1 has cores of 1 NUMA domain (0), and layout hybrid needs 2',
        ),
        (sat([[0, 1, 2]], (0, 1), (2,)), ('packed', 2, 2), 'n1 has 3 cores (0-2), and layout '),
        # A quota below the cores.
        (
            sat(FOUR, (0,), (1,), (2,), (3,), cpu_limit=1.5),
            ('packed', 1, 4),
            'the cgroup of the job on n1 limits ranks 0-3 to 1.5 CPUs, and layout packed needs 4',
        ),
        (sat(FOUR, (0, 1), (2, 3), cpu_limit=3.5), ('packed', 2, 2), 'the cgroup of the job on n1'),
        # Not bound.
        (
            sat(EIGHT, (0,), ALL),
            ('packed', 1, 2),
            'rank 1 on n1 is not bound: it may use all 8 cores, layout packed gives each rank 1',
        ),
        (
            sat(EIGHT, ALL, ALL, smt=2),
            ('spread', 1, 2),
            'ranks 0 and 1 on n1 are not bound: they may use all 8 cores, layout spread gives each '
            'rank 1',
        ),
        (
            sat(EIGHT, ALL, ALL),
            ('one-per-numa', 1, 2),
            'ranks 0 and 1 on n1 are not bound: they may use all 8 cores, layout one-per-numa '
            'gives each rank one NUMA domain',
        ),
        (
            sat(EIGHT, ALL, ALL),
            ('hybrid', 4, 2),
            'ranks 0 and 1 on n1 are not bound: they may use all 8 cores, layout hybrid gives each '
            'rank 4',
        ),
        (
            sat(FOUR, (0, 1), (0, 1), allowed=[0, 1]),
            ('packed', 1, 2),
            'ranks 0 and 1 on n1 are not bound: they may use all 2 cores, layout packed gives each '
            'rank 1',
        ),
        # Too many or too few cores.
        (
            sat(EIGHT, (0, 1), (2,)),
            ('packed', 1, 2),
            'rank 0 on n1 is bound to cores 0-1, layout packed gives each rank 1',
        ),
        (
            sat(EIGHT, (0,), (0,)),
            ('packed', 4, 2),
            'ranks 0 and 1 on n1 are bound to core 0, layout packed gives each rank 4',
        ),
        (
            sat(EIGHT, (0,), (1,), (2,)),
            ('spread', 2, 3),
            'rank 0 on n1 is bound to core 0 (and 2 more wrongly), layout spread gives each rank 2',
        ),
        (
            sat(EIGHT, (0, 1, 2)),
            ('one-per-node', 1, 1),
            'rank 0 on n1 is bound to cores 0-2, layout one-per-node leaves it all 8',
        ),
        (
            sat(FOUR, (0,), (2, 3)),
            ('one-per-numa', 1, 2),
            'rank 0 on n1 is bound to core 0, layout one-per-numa gives each rank one NUMA domain '
            '(domain 0: cores 0-1; domain 1: cores 2-3)',
        ),
        # Shared cores.
        (sat(EIGHT, (3,), (3,)), ('packed', 1, 2), 'ranks 0 and 1 share core 3 of node n1'),
        (
            sat(EIGHT, *[(0,)] * 8),
            ('packed', 1, 8),
            'all 8 ranks of n1 share core 0',
        ),
        (sat(EIGHT, *[(5,)] * 3), ('packed', 1, 3), 'all 3 ranks of n1 share core 5'),
        (
            sat(EIGHT, (0,), (1,), (1,), (1,)),
            ('packed', 1, 4),
            'ranks 1-3 share core 1 of node n1',
        ),
        (
            sat(EIGHT, (0, 1), (1, 2)),
            ('packed', 2, 2),
            'ranks 0 and 1 share core 1 of node n1',
        ),
        (
            sat(EIGHT, (0,), (0,), (5,), (5,)),
            ('packed', 1, 4),
            'ranks 0 and 1 share core 0, ranks 2 and 3 core 5 of node n1',
        ),
        (
            sat(EIGHT, *[(n // 2,) for n in range(8)]),
            ('packed', 1, 8),
            'ranks 0 and 1 share core 0, ranks 2 and 3 core 1, ranks 4 and 5 core 2, '
            'ranks 6 and 7 core 3 of node n1',
        ),
        (
            sat([list(range(16))], *[(n // 2,) for n in range(10)]),
            ('packed', 1, 10),
            'ranks 0 and 1 share core 0, ranks 2 and 3 core 1, ranks 4 and 5 core 2, '
            'ranks 6 and 7 core 3 (and 1 more such groups) of node n1',
        ),
        (
            sat(FOUR, (2, 3), (2, 3)),
            ('one-per-numa', 1, 2),
            'ranks 0 and 1 share cores 2-3 of node n1',
        ),
        # Wrong NUMA domains.
        (
            sat(EIGHT, (0,), (4,)),
            ('packed', 1, 2),
            'layout packed fills one NUMA domain after the other, but on n1 sit domain 0: rank 0 '
            'on core 0; domain 1: rank 1 on core 4',
        ),
        (sat(FOUR, (0,), (2,), (1,), (3,)), ('packed', 1, 4), 'ranks 0 and 2 on cores 0-1'),
        (sat(EIGHT, (0, 1), (4, 5)), ('packed', 2, 2), 'layout packed fills one NUMA domain after'),
        (sat(EIGHT, (3, 4)), ('packed', 2, 1), 'domain 0: rank 0 on cores 3-4'),
        (
            sat(EIGHT, (0,), (1,)),
            ('spread', 1, 2),
            'layout spread deals the ranks round the NUMA domains, but on n1 sit domain 0: ranks 0 '
            'and 1 on cores 0-1',
        ),
        (sat(EIGHT, (0,), (1,), (2,), (4,)), ('spread', 1, 4), 'domain 0: ranks 0-2 on cores 0-2'),
        (sat(EIGHT, (2, 3), (4, 5), (1, 6)), ('spread', 2, 3), 'domain 0: ranks 0 and 2 on cores'),
        (
            sat(EIGHT, (0, 1), (2, 3)),
            ('hybrid', 2, 2),
            'layout hybrid gives each NUMA domain one rank, but on n1 sit domain 0: ranks 0 and 1',
        ),
        (sat(EIGHT, (0, 1, 2, 4), (3, 5, 6, 7)), ('hybrid', 4, 2), 'one rank, but on n1 sit'),
        (sat([[0, 1], [2, 3], [4, 5]], (0, 1), (2, 3)), ('one-per-numa', 1, 2), 'one rank, but'),
    ],
)
def test_faults(found, asked, sentence):
    verdict = verify(found, *asked)
    assert verdict is not None
    assert verdict.startswith(sentence) or (sentence in verdict and verdict.startswith('layout'))
    assert '  ' not in verdict and verdict.count('n1') >= 1


def busy(count, cores=(0,), seconds=1.0, origin='program'):
    return [thread(10 + number, cores, seconds, origin) for number in range(count)]


@pytest.mark.parametrize(
    ('threads', 'cores', 'smt', 'sentence'),
    [
        (busy(3), (0,), 1, 'rank 0 on n1 runs 4 threads on 1 core (0)'),
        (busy(1), (0,), 1, 'rank 0 on n1 runs 2 threads on 1 core (0)'),
        # The two CPUs of a core share what computes.
        (busy(0), (0,), 2, None),
        (busy(1), (0,), 2, 'rank 0 on n1 runs 2 threads on 1 core (0)'),
        (busy(1, (0, 1)), (0, 1), 2, None),
        (busy(2, (0, 1)), (0, 1), 2, 'rank 0 on n1 runs 3 threads on 2 cores (0-1)'),
        (busy(3, origin='mpi'), (0,), 1, None),
        # A thread is idle below 1% of the wall time (10 s), and below 20 ms in any case.
        (busy(3, seconds=0.09), (0,), 1, None),
        (busy(3, seconds=0.1), (0,), 1, 'runs 4 threads'),
        (busy(3, seconds=0.11), (0,), 1, 'runs 4 threads'),
    ],
)
def test_more_threads_than_cores(threads, cores, smt, sentence):
    found = sat(FOUR, cores, smt=smt, threads=threads, wall=10.0)
    verdict = verify(found, 'packed', len(cores), 1)
    assert verdict is None if sentence is None else sentence in verdict


def test_a_short_run_has_idle_threads():
    found = sat(FOUR, (0,), threads=busy(1, seconds=0.019), wall=0.1)
    assert verify(found, 'packed', 1, 1) is None
    found = sat(FOUR, (0,), threads=busy(1, seconds=0.021), wall=0.1)
    assert 'runs 2 threads' in verify(found, 'packed', 1, 1)


@pytest.mark.parametrize(
    ('value', 'sentence'),
    [
        ('1', None),
        ('4', 'rank 0 on n1 has OMP_NUM_THREADS=4 and 1 core (0) (and 1 more like it)'),
        ('4,2', 'OMP_NUM_THREADS=4'),
        ('', None),
        ('many', None),
    ],
)
def test_more_openmp_threads_than_cores(value, sentence):
    environment = {'OMP_NUM_THREADS': value}
    found = sat([[0, 1]], (0,), (1,)).model_copy(update={'environment': environment})
    verdict = verify(found, 'packed', 1, 2)
    assert verdict is None if sentence is None else sentence in verdict


def test_openmp_threads_of_one_rank():
    differs = {'environment': {'OMP_NUM_THREADS': '3'}}
    found = report([process(0), process(1, (1,), differs=differs)], [host(domains=[[0, 1]])])
    assert verify(found, 'packed', 1, 2) == ('rank 1 on n1 has OMP_NUM_THREADS=3 and 1 core (1)')


def test_openmp_threads_on_the_hardware_threads_of_one_core():
    environment = {'OMP_NUM_THREADS': '2'}
    found = sat(FOUR, (0,), smt=2).model_copy(update={'environment': environment})
    assert verify(found, 'packed', 1, 1) == ('rank 0 on n1 has OMP_NUM_THREADS=2 and 1 core (0)')


def strays(cores, smt=1, busy=1.0, origin='program', layout='packed', mine=(0,), others=(1,)):
    """The verdict where rank 0 leaves the work to a thread that may use these cores."""
    thread_of_rank_0 = thread(77, cores, busy, origin, cpus_of(cores, 4, smt))
    ranks = [
        process(0, mine, cpus=cpus_of(mine, 4, smt), threads=[thread_of_rank_0]),
        process(1, others, cpus=cpus_of(others, 4, smt)),
    ]
    ranks[0]['threads'][0]['busy'] = 0.0
    return verify(report(ranks, [host(domains=FOUR, smt=smt)]), layout, 1, 2)


def test_a_busy_thread_on_the_core_of_another_rank():
    for cores, smt in (((1,), 1), ((1,), 2), ((0, 1), 2), ((0, 1, 2, 3), 1)):
        assert strays(cores, smt) == (
            'thread halo (77) of rank 0 on n1 was busy and may use core 1 of rank 1: the rank '
            'itself has core 0'
        )
    # On a core of nobody the work was not done where the rank is bound.
    assert strays((3,)) == (
        'thread halo (77) of rank 0 on n1 was busy and may use core 3: the rank itself has core 0'
    )
    assert strays((2,), layout='one-per-numa', mine=(0, 1), others=(2, 3)).endswith(
        'may use core 2 of rank 1: the rank itself has cores 0-1'
    )


@pytest.mark.parametrize(
    ('cores', 'busy', 'origin'),
    [
        ((0,), 1.0, 'program'),
        ((1,), 0.001, 'program'),
        ((1,), 0.001, 'mpi'),
        # An MPI starts threads before it binds the rank.
        ((0, 1, 2, 3), 1.0, 'mpi'),
        # A progress thread on a core that nobody uses is where one would put it.
        ((3,), 1.0, 'mpi'),
    ],
)
def test_threads_that_take_nothing_from_others(cores, busy, origin):
    assert strays(cores, 1, busy, origin) is strays(cores, 2, busy, origin) is None


def test_a_progress_thread_on_the_core_of_another_rank():
    assert 'was busy and may use core 1 of rank 1' in strays((1,), 2, origin='mpi')


@pytest.mark.parametrize(
    ('threads', 'told'),
    [
        ([(1,)], None),
        ([], 'rank 0 on n1 has 0 progress threads, not 1'),
        ([(1,), (1,)], 'rank 0 on n1 has 2 progress threads, not 1'),
        ([(0,)], 'the progress thread (77) of rank 0 on n1 may use core 0, and has to have one'),
        ([(0, 1)], 'the progress thread (77) of rank 0 on n1 may use cores 0-1, and has to have'),
        ([(1, 2)], 'the progress thread (77) of rank 0 on n1 may use cores 1-2, and has to have'),
    ],
)
def test_a_progress_thread_has_a_core_that_its_rank_leaves(threads, told):
    own = [thread(77, cores) | {'name': 'progress'} for cores in threads]
    found = report([process(0, (0,), threads=[*own, thread(78, (0, 1))])], [host(domains=FOUR)])
    said = misplaced_progress_thread(found, 'progress')
    assert said is None if told is None else said.startswith(told)


@pytest.mark.parametrize(
    ('cores', 'own', 'told'),
    [
        (((0,), (2,)), (1, 3), None),
        (((0, 1, 2), (0, 1, 2)), (3, 3), 'may use core 3, as may the progress thread of rank 1'),
        (((0,), (1,)), (3, 3), 'may use core 3, as may the progress thread of rank 1'),
        (((0,), (1,)), (1, 0), 'may use core 1, as may rank 1'),
        (((0,), (1, 2)), (2, 3), 'may use core 2, as may rank 1'),
    ],
)
def test_a_progress_thread_has_a_core_that_all_ranks_of_its_host_leave(cores, own, told):
    def ranks(*hosts):
        return report(
            [
                process(rank, cores[rank], name, threads=[progress_thread(70 + rank, own[rank])])
                for rank, name in enumerate(hosts)
            ],
            [host(name, FOUR) for name in dict.fromkeys(hosts)],
        )

    found = misplaced_progress_thread(ranks('n1', 'n1'), 'progress')
    if told is None:
        assert found is None
    else:
        assert found.startswith(f'the progress thread (70) of rank 0 on n1 {told}')
    # On other hosts nobody is in the way.
    assert misplaced_progress_thread(ranks('n1', 'n2'), 'progress') is None


def progress_thread(tid, core):
    return thread(tid, (core,)) | {'name': 'progress'}


def test_bound_threads_on_one_core():
    threads = [thread(11, (1,), 1.0), thread(12, (2,), 1.0), thread(13, (2,), 1.0)]
    found = report([process(0, (0, 1, 2, 3), threads=threads)], [host(domains=[[0, 1, 2, 3]])])
    assert verify(found, 'hybrid', 4, 1) == (
        'threads halo (12) and halo (13) of rank 0 on n1 share core 2'
    )
    # Threads that may move do not.
    moving = [thread(11 + number, (0, 1, 2, 3), 1.0) for number in range(3)]
    found = report([process(0, (0, 1, 2, 3), threads=moving)], [host(domains=[[0, 1, 2, 3]])])
    assert verify(found, 'hybrid', 4, 1) is None


def test_a_fault_on_many_hosts_is_one_sentence():
    hosts = [host(f'n{number}', [[0, 1]]) for number in range(1, 5)]
    ranks = [process(rank, (0,), f'n{rank // 2 + 1}') for rank in range(8)]
    assert verify(report(ranks, hosts), 'packed', 1, 2) == (
        'ranks 0 and 1 share core 0 of node n1 (and so it is on 3 more hosts)'
    )
    assert verify(report(ranks[:4], hosts[:2]), 'packed', 1, 2).endswith('1 more hosts)')


def test_hosts_of_different_size():
    hosts = [host('n1', [[0, 1]]), host('n2', EIGHT)]
    ranks = [process(0, (0,), 'n1'), process(1, (1,), 'n1')]
    ranks += [process(2, (4,), 'n2'), process(3, (5,), 'n2')]
    assert verify(report(ranks, hosts), 'packed', 1, 2) is None
    ranks[3] = process(3, ALL, 'n2')
    assert verify(report(ranks, hosts), 'packed', 1, 2) == (
        'rank 3 on n2 is not bound: it may use all 8 cores, layout packed gives each rank 1'
    )


def test_the_fault_that_explains_others_comes_first():
    """A cpuset of one core leaves all ranks on it, and their threads too."""
    found = sat(FOUR, *[(0,)] * 4, allowed=[0], threads=busy(3))
    assert verify(found, 'packed', 1, 4).startswith('the cpuset of the job')
    found = sat(FOUR, *[(0,)] * 4, threads=busy(3))
    assert verify(found, 'packed', 1, 4) == 'all 4 ranks of n1 share core 0'
    found = sat(FOUR, *[(0, 1, 2, 3)] * 4, cpu_limit=1.0)
    assert 'limits ranks 0-3 to 1 CPU,' in verify(found, 'packed', 1, 4)


def test_a_long_list_of_ranks_is_cut():
    cores = list(range(40))
    ranks = [process(n, (0,) if n % 2 else (n,)) for n in range(40)]
    found = verify(report(ranks, [host(domains=[cores])]), 'packed', 1, 40)
    assert found == ('ranks 0-1,3,5,7,9,11,13,15,... (21 in all) share core 0 of node n1')


def test_a_list_of_ranks_that_is_just_short_enough():
    ranks = [process(n, (0,) if n % 2 == 0 else (n,)) for n in range(16)]
    found = verify(report(ranks, [host(domains=[list(range(16))])]), 'packed', 1, 16)
    assert found == 'ranks 0,2,4,6,8,10,12,14 share core 0 of node n1'
    ranks += [process(16, (0,))]
    found = verify(report(ranks, [host(domains=[list(range(17))])]), 'packed', 1, 17)
    assert found == 'ranks 0,2,4,6,8,10,12,14,... (9 in all) share core 0 of node n1'


def test_a_quota_of_as_many_cpus_as_cores_is_enough():
    assert verify(sat(FOUR, (0,), (1,), cpu_limit=2.0), 'packed', 1, 2) is None


def test_smt_siblings_are_one_core():
    hosts = [host('n1', [[0, 1]], smt=2)]
    ranks = [process(0, (0,), cpus=[0]), process(1, (0,), cpus=[2])]
    assert verify(report(ranks, hosts), 'packed', 1, 2) == ('ranks 0 and 1 share core 0 of node n1')
    ranks = [process(0, (0,), cpus=[0]), process(1, (1,), cpus=[3])]
    assert verify(report(ranks, hosts), 'packed', 1, 2) is None


def test_a_host_without_numa():
    found = sat([[0, 1]], (0,), (1,))
    plain = found.hosts[0].model_copy(update={'numa': []})
    found = found.model_copy(update={'hosts': [plain]})
    for layout in ('packed', 'spread'):
        assert verify(found, layout, 1, 2) is None
    one = sat([[0, 1]], (0, 1)).model_copy(update={'hosts': [plain]})
    assert verify(one, 'one-per-numa', 1, 1) is None
    assert as_list(one.processes[0].cores) == '0-1'
