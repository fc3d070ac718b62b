"""What a command line names is measured, or said not to be."""

import copy
from dataclasses import replace

import pytest

from assay.results.unmatched import unmatched_names, unmeasured_parts
from assay.running import reframe_options
from reports import cases, run_of

GIVEN = reframe_options.read_options([])


def told(report, *options, extra=()):
    return unmatched_names(
        run_of(report), replace(reframe_options.read_options([*options]), extra=extra)
    )


@pytest.mark.parametrize(
    'options',
    [
        [],
        ['-n', 'Passed'],
        ['-n', '^(Passed|Pass)'],
        ['-n', 'fabric=shm%layout=packed', '-n', '/af21d0ac'],
        ['-n', '^(Passed|P.*)%fabric=(shm|s)'],
        ['-n', '^(?!Failed|Skipped)'],
        ['-n', r'Passed\b|Rign'],  # which nobody takes apart
        ['-n', 'layout=hybrid', '-n', '/12345678', '-P', 'layout=packed'],  # renamed by -P
        ['-n', '/12345678', '--distribute=all'],
        ['-p', 'gnu', '-p', '^gn'],
        ['-p', 'gnu|g'],
        ['-P', 'layout=packed'],
        ['-P', 'Passed.size=4,5'],  # which names do not show
        ['-P', 'Passed.layout=0x1p0'],  # which they show in another form
    ],
)
def test_what_is_run_is_not_told(golden_report, options):
    assert told(golden_report('Passed'), *options) == []


@pytest.mark.parametrize(
    ('options', 'problem'),
    [
        (['-n', '^Passed', '-n', 'Rign'], "no selected case is of -n 'Rign': "),
        (['-n', '^(Passed|Rign)%fabric=shm'], "no selected case is of -n '^(Rign)%fabric=shm': "),
        (['-n', '^P.*%fabric=(shm|tpc)'], "no selected case is of -n '^P.*%fabric=(tpc)': "),
        (['-n', 'Rign%fabric=(shm|s)|Passed'], "no selected case is of -n 'Rign%fabric=(shm|s)': "),
        (['-n', 'Passed', '-n', '/12345678'], "no selected case is of -n '/12345678': "),
        (['-p', 'gnu', '-p', 'mvapich'], "no selected case is of -p 'mvapich': there are "),
        (['-p', 'gnu|mvapich'], "no selected case is of -p 'mvapich': there are cases for "),
        (['-P', 'layout=packed,hybrid'], 'no selected case has layout=hybrid, which -P asks for'),
    ],
)
def test_a_name_that_no_case_is_of_fails_the_run(golden_report, options, problem):
    (found,) = told(golden_report('Passed'), *options)
    assert found.startswith(problem)


def test_what_nothing_was_selected_for_is_told_once(golden_report):
    assert told(golden_report('Skipped'), '-n', 'Rign', '-n', 'Skipped') == []


def test_what_with_names_has_to_be_run(golden_report):
    report = golden_report('Passed')
    (found,) = told(report, extra=('intelmpi', 'gnu'))
    assert found.startswith('--with intelmpi: no selected case is for intelmpi')
    (found,) = told(report, extra=('spack:minife',))
    assert found.startswith('--with spack:minife: no case ran minife: ')
    (found,) = told(report, extra=('spack:mpi_benchmarks',))
    assert 'no case ran intel-mpi-benchmarks, osu-micro-benchmarks' in found
    for case in cases(report):
        case |= {'built_by': 'spack', 'built_spec': 'minife@1.1 ^openmpi@5', 'implementation': ''}
    assert told(report, extra=('spack', 'spack:minife')) == []


def test_a_build_that_failed_is_no_mistake_in_what_with_names(golden_report):
    report = golden_report('FailedBuild')
    assert {case['result'] for case in cases(report) if not case['fixture']} == {'fail_deps'}
    assert told(report, extra=('spack', 'spack:minife')) == []


def test_nodes_are_measured_with_one_of_the_mpis_that_are_named(golden_report):
    report = golden_report('Passed')
    for case in cases(report):
        case['valid_prog_environs'] = ['+measures-nodes-by-shm']
    assert told(report, '-p', 'gnu|mpich', '-p', 'openmpi') == []
    (found,) = told(report, extra=('intelmpi',))
    assert found.endswith('is for intelmpi: gnu measures the nodes for all MPIs')


def test_what_of_a_system_nothing_was_selected_for_is_told_once(golden_report):
    partitions = [
        {'name': 'node', 'environs': ['gnu', 'mpich', 'intelmpi']},
        {'name': 'gpu', 'environs': ['gnu']},
        {'name': 'login', 'environs': ['builtin']},  # without an MPI there are no checks
    ]
    mpis = [{'name': name, 'features': ['mpi']} for name in ('gnu', 'mpich', 'intelmpi')]
    site = {
        'systems': [{'name': 'generic', 'partitions': partitions}],
        'environments': [*mpis, {'name': 'builtin'}],
    }
    report = golden_report('Passed')
    for case in cases(report):
        case |= {'system': 'generic', 'partition': 'node'}
    assert unmeasured_parts(site, run_of(report), GIVEN) == [
        'nothing was selected on generic:node with mpich, intelmpi; generic:gpu'
    ]
    for case in cases(nodes := copy.deepcopy(report)):
        case['valid_prog_environs'] = ['+measures-nodes-by-shm']
    assert unmeasured_parts(site, run_of(nodes), GIVEN) == ['nothing was selected on generic:gpu']
    only_gnu = reframe_options.read_options(['-p', 'gnu'])
    assert unmeasured_parts(site, run_of(report), only_gnu) == [
        'nothing was selected on generic:gpu'
    ]
    partitions += [{'name': f'more{n}', 'environs': ['gnu']} for n in range(20)]
    (found,) = unmeasured_parts(site, run_of(report), only_gnu)
    assert found.endswith('; generic:more6; and 13 more')
    del partitions[1:]
    assert unmeasured_parts(site, run_of(report), only_gnu) == []
