"""A run on one screen: its matrix of checks, MPIs and fabrics."""

import re

import pytest

from assay.report.matrix import MOST_LINES, labels, matrix
from assay.results.reframe_report import case_of
from reports import cases, disturbed, passing

MPIS = {
    'mpich': ['shm', 'ucx-shm', 'ucx-tcp', 'ofi-tcp'],
    'openmpi': ['shm', 'tcp', 'ucx-shm', 'ucx-tcp', 'ofi-tcp'],
}
#: The headlines of the smoke mode, of checks that run on one fabric and on all.
ONE_FABRIC = {
    'Clock': {'vector_frequency': (3.692, 'GHz')},
    'Stream': {'triad': (47.56, 'GB/s')},
    'Dgemm': {'rate': (108.5, 'Gflop/s')},
    'MiniFE': {'cg_rate': (9.922, 'Gflop/s')},
    'HPL': {'rate': (68.81, 'Gflop/s')},
    'MiniMD': {'performance': (13651476, 'atom-steps/s')},
    'MiniMDMixed': {'performance': (15055188, 'atom-steps/s')},
    'MiniGhost': {'rate': (47.57, 'Gflop/s')},
}
EACH_FABRIC = {
    'Collectives': {'allreduce_time': (0.26, 'us')},
    'Overlap': {'overlap': (-0.0458, '1')},
    'IntelMpiBenchmarks': {'latency': (0.32, 'us'), 'bandwidth': (17220, 'MB/s')},
    'Pairs': {'message_rate': (0.209, 'Mmessages/s'), 'bisection_bandwidth': (6.436, 'GB/s')},
    'Ring': {'hop_latency': (7.011, 'us')},
    'Halo': {'efficiency': (9e-6, '1')},
    'PointToPoint': {'latency': (6.781, 'us'), 'bandwidth': (2118, 'MB/s')},
}


@pytest.fixture
def case(golden_report):
    """A function that makes a case that passed, from what it differs in."""
    like = passing(golden_report('Passed'))['runs'][0]['testcases'][-1]

    def make(check='Ring', environment='mpich', fabric='shm', figures=None, **more):
        figures = figures or {'hop_latency': (0.3044, 'us')}
        told = {'layout': 'packed', 'scale': '1_node'} | more
        parameters = ' '.join(f'%{name}={value}' for name, value in told.items())
        return like | {
            'display_name': f'{check} %fabric={fabric} {parameters}',
            'environ': environment,
            'fabric': fabric,
            'headlines': [*figures],
            'perfvalues': {
                f'toy:node:{name}': [value, 1, None, None, unit, 'pass']
                for name, (value, unit) in figures.items()
            }
            | {'toy:node:of_limit': [0.9, 1, -0.5, None, '1', 'pass']},
        }

    return make


@pytest.fixture
def smoke(case):
    """The cases of the smoke mode with two MPIs; what is of no MPI runs with the first."""
    of_first = {'Clock', 'Stream', 'Dgemm', 'IntelMpiBenchmarks'}
    return [
        case(check, mpi, fabric, figures)
        for checks, most in ((ONE_FABRIC, 1), (EACH_FABRIC, 5))
        for check, figures in checks.items()
        for mpi, fabrics in MPIS.items()
        for fabric in fabrics[:most]
        if mpi == 'mpich' or check not in of_first
    ]


def drawn(cases, width=160):
    return [line.plain.rstrip() for line in matrix(map(case_of, cases), width)]


@pytest.mark.parametrize('width', [80, 120, 160])
def test_two_mpis_are_on_one_screen(smoke, width):
    shown = drawn(smoke, width)
    assert max(map(len, shown)) <= width
    # With two blank lines, three least margins, the count of figures and the verdict: 40.
    assert len(shown) <= MOST_LINES == 40 - 7
    # Nothing is left out, whatever the width.
    numbers = [word for line in shown for word in re.findall(r'(?<=\s)-?\d\S*', line)]
    assert len(numbers) == len(smoke) + 9 + 9 + 4  # Pairs, PointToPoint and IMB have two figures


def test_columns_stand_below_their_mpi_and_fabric(case):
    some = [
        case('Ring', mpi, fabric, {'hop_latency': (n + 0.5, 'us')})
        for mpi, fabrics in MPIS.items()
        for n, fabric in enumerate(fabrics)
    ]
    clock = case('Clock', 'openmpi', figures={'rate': (2.0, 'GHz')})
    assert drawn([clock, *some]) == [
        'openmpi                  shm',
        'Clock  rate GHz         2.00',
        '                                         mpich                          openmpi',
        '                              ucx-  ucx-  ofi-                 ucx-  ucx-  ofi-',
        '                         shm   shm   tcp   tcp      shm   tcp   shm   tcp   tcp',
        'Ring   hop_latency us  0.500  1.50  2.50  3.50    0.500  1.50  2.50  3.50  4.50',
    ]
    assert drawn(some, 60) == [
        '                             ucx-  ucx-  ofi-',
        'mpich                   shm   shm   tcp   tcp',
        'Ring  hop_latency us  0.500  1.50  2.50  3.50',
        '                                   ucx-  ucx-  ofi-',
        'openmpi                 shm   tcp   shm   tcp   tcp',
        'Ring  hop_latency us  0.500  1.50  2.50  3.50  4.50',
    ]
    # What cannot be narrower is whole.
    assert [line for line in drawn(some[:2], 10) if line.startswith('Ring')] == [
        'Ring  hop_latency us  0.500',
        'Ring  hop_latency us   1.50',
    ]


def test_a_long_name_of_an_mpi_moves_no_column(case):
    some = [case('Ring', 'openmpi-module-gcc-12-openmpi-4.1.6', one) for one in MPIS['openmpi']]
    heading, _, fabrics, figures = drawn(some, 60)
    assert heading == 'openmpi-module-gcc-12-openmpi-4.1.6'
    assert len(fabrics) == len(figures) and fabrics.split()[0] == 'shm'


@pytest.mark.parametrize('width', [80, 160])
def test_a_long_name_of_a_check_takes_no_room_of_others(case, smoke, width):
    figures = {'bandwidth_of_all_of_it_together': (2.0, 'GB/s')}
    own = [case('Mine', figures=figures, path=f'{"x" * 90}{n}') for n in range(2)]
    shown = drawn([*smoke[:13], *own], width)
    assert max(map(len, shown)) <= width
    first, second = (line for line in shown if line.startswith('Mine path=xxx'))
    assert re.match(r'.*\.\.\.x+0  bandwidth_.* GB/s +2\.00( |$)', first)
    assert re.match(r'.*\.\.\.x+1  ', second)


def test_what_tells_cases_of_a_check_apart_is_told(case):
    some = [
        case('Ring', scale='1_node'),
        case('Ring', scale='2_nodes'),
        case('Halo', layout='spread'),
        case('MiniFE', size='cache'),
        case('MiniFE', size='memory', layout='hybrid'),
    ]
    assert labels([*map(case_of, some)]) == [
        'Ring 1_node',
        'Ring 2_nodes',
        'Halo',
        'MiniFE packed size=cache',
        'MiniFE hybrid size=memory',
    ]
    some[1]['partition'] = 'other'
    assert labels([*map(case_of, some)])[:2] == ['Ring node 1_node', 'Ring other 2_nodes']


def test_what_did_not_pass_is_marked(case, golden_report):
    lost = case('Ring', 'openmpi') | {'result': 'fail', 'fail_phase': 'sanity', 'perfvalues': None}
    cells = [line.split() for line in drawn([case('Ring'), lost])]
    assert cells[-2:] == [
        ['Ring', 'hop_latency', 'us', '0.304', '!'],
        ['!', 'failed'],
    ]
    shown = drawn(cases(disturbed(golden_report('FailedReference'), 1))[1:])
    assert [word[-1] for word in shown[-2].split()[-2:]] == ['!', '?']
    assert shown[-1] == '! failed, ? disturbed'
    skipped = case('Ring', 'openmpi') | {'result': 'skip', 'perfvalues': None}
    assert drawn([case('Ring'), skipped]) == drawn([case('Ring')])
    assert drawn([skipped]) == []


def test_however_many_cases_there_are_it_is_one_screen(case):
    """And what did not pass is among the lines that are left."""
    some = [case('Ring', mpi, size=n) for n in range(500) for mpi in ('mpich', 'openmpi')]
    some[777] |= {'result': 'fail', 'fail_phase': 'sanity'}
    for width in (80, 120):
        shown = drawn(some, width)
        assert len(shown) <= MOST_LINES
        assert shown[-2].startswith('... and 4') and shown[-2].endswith(' lines more')
        assert any(line.startswith('Ring size=388 ') and '!' in line for line in shown)


def test_of_repetitions_the_median(case):
    some = [case(figures={'hop_latency': (value, 'us')}) for value in (1.0, 9.0, 2.0)]
    assert drawn(some)[-1].split()[-1] == '2.00'


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (0.0, '0'),
        (0.2604, '0.260'),
        (0.0123, '0.012'),
        (-0.0458, '-0.05'),
        (9e-6, '9e-06'),
        (108.5, '108'),
        (17220.4, '17220'),
        (123456.0, '123k'),
        (13651476.0, '13.7M'),
        (2.5e16, '25000T'),
    ],
)
def test_numbers_are_short(case, value, text):
    assert drawn([case(figures={'figure': (value, 'x')})])[-1].split()[-1] == text
