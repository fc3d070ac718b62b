"""Figures computed again from outputs in an archive, of every check there is."""

import json
import os
import time

import pytest

from accepted import CONTRACT, end, ran, start
from assay.acceptance import archive as archives
from assay.acceptance import facts
from assay.acceptance.recompute import _partition, compute_again
from assay.checks.check import all_checks
from assay.checks.site import SiteApplicationCheck
from assay.machine import topology
from assay.machine.topology import read_topology
from assay.results.reframe_report import read_reframe_report
from golden_jobs import FILES, GOLDEN, JOBS, chosen
from machines import lay
from sites import sites


def archived(folder, goldens, change=lambda case: None):
    """An archive with one run, of golden jobs, each of whose cases was changed."""
    contract = folder / 'contract.yaml'
    contract.write_text(CONTRACT)
    archive = archives.create_archive(folder / 'accepted', contract, 'golden')
    number, begun = start(archive), time.time()
    run = folder / 'run'
    run.mkdir()
    cases = [
        ran(run, place, FILES, JOBS / golden, chosen(golden.parts[0], _fabric(golden)))
        for place, golden in enumerate(goldens)
    ]
    for case in cases:
        change(case)
    end(archive, number, run, cases, 'a-b-c', begun)
    return archive


def _fabric(golden):
    return golden.parts[1].partition('-')[2]


def again(archive):
    folder = archive.run(1)
    known = facts.read_kept_facts(folder / archives.SYSTEM)
    (found,) = compute_again([(folder, read_reframe_report(folder / archives.REPORT))], known)
    return found


@pytest.fixture(scope='module')
def everything(tmp_path_factory):
    return archived(tmp_path_factory.mktemp('everything'), GOLDEN)


def test_every_figure_of_every_check(everything):
    found = again(everything)
    cases = read_reframe_report(everything.run(1) / archives.REPORT).cases
    assert not found.faults
    assert found.figures == sum(len(case.figures) for case in cases) > 300
    assert len(cases) == len(GOLDEN)


def test_what_a_case_left_that_missed_a_reference_is_kept_as_well(tmp_path):
    """ReFrame leaves it where the job ran, as of one that others disturbed to the end."""

    def miss(case):
        folders = {'stagedir': case['outputdir'], 'outputdir': case['stagedir']}
        case.update(folders, result='fail', fail_phase='performance', fail_reason='missed')

    ring = next(one for one in GOLDEN if one.parts[0] == 'Ring')
    found = again(archived(tmp_path, [ring], miss))
    assert not found.faults and found.figures


def test_the_domains_that_checks_saw_are_kept(monkeypatch):
    """A container, or taskset, may leave a job one socket of two."""
    (site,) = (one for one in sites('topology') if str(one) == 'cascade-lake-smt')
    there = read_topology(lay(site.text('machine')))
    assert len(there.domains) == 2
    monkeypatch.setattr(topology, 'this_machine', lambda: there)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {*there.domains[1]})
    partition = {'name': 'here', 'scheduler': 'local', 'launcher': 'mpirun'}
    known = facts._partition(None, 'generic', partition | {'processor': there.for_reframe()})
    told = _partition(known)['processor']
    assert topology.core_count(told) == len(there.cores) // 2
    assert topology.domain_count(told) == 1


@pytest.fixture
def changed(everything):
    """A function that changes the report of a case, and returns what is found; then all is undone.

    It is given what changes the case, and the class of its check.
    """
    path = everything.run(1) / archives.REPORT
    before = path.read_bytes()

    def change(how, name='Ring'):
        report = json.loads(before)
        cases = report['runs'][0]['testcases']
        case = next(one for one in cases if one['display_name'].startswith(f'{name} '))
        report['runs'][0]['testcases'] = [case]
        how(case)
        path.write_text(json.dumps(report))
        return again(everything).faults

    yield change
    path.write_bytes(before)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('Ring', 'had 2 ranks, 2 on a node, and its layout asks for 6, 2 on a node'),
        ('PointToPoint', 'this checkout has no case PointToPoint '),  # it is for two nodes at most
    ],
)
def test_a_scale_that_is_not_usual(changed, name, words):
    """The job had one node: only its number of ranks is wrong."""

    def rename(case):
        case['display_name'] = case['display_name'].replace('1_node', '3_nodes')

    (fault,) = changed(rename, name)
    assert words in fault


FIGURE = 'golden:node:hop_latency'


def of_figure(place, value):
    return lambda case: case['perfvalues'][FIGURE].__setitem__(place, value)


@pytest.mark.parametrize(
    ('how', 'words'),
    [
        (of_figure(0, 1.25), 'hop_latency is 1.25 us in the report, and '),
        (of_figure(0, None), 'hop_latency is None us in the report, and '),
        (of_figure(4, 's'), 'hop_latency is in s in the report, and in us by the outputs'),
        (of_figure(5, 'fail'), 'hop_latency is told as fail, and met its bounds'),
        (of_figure(3, -0.99), 'hop_latency is told as pass, and missed its bounds'),
        (lambda case: case['perfvalues'].pop(FIGURE), 'the report lacks hop_latency'),
        (
            lambda case: case['perfvalues'].update(
                {'golden:node:more': [1, 0, None, None, '1', '']}
            ),
            'the report has more, which the outputs do not have',
        ),
        (lambda case: case['perfvalues'].clear(), 'passed, and has no figures'),
        (lambda case: case.update(job_nodelist=['n7']), 'ran on node1, and the report says on n7'),
        (
            lambda case: case.update(no_evidence='others used 50% of the time'),
            'it is told as disturbed, and no witness saw others',
        ),
        (lambda case: case['job_nodelist'].append('n7'), 'none of its ranks ran on n7'),
        (
            lambda case: case['directions'].update(hop_latency='higher'),
            'better of hop_latency is told as higher, and is lower',
        ),
        (lambda case: case.pop('directions'), 'better of hop_latency is told as None'),
        (lambda case: case.update(job_exitcode=3), 'ended with exit code 3'),
        (lambda case: case.update(num_tasks=4), 'its job had 4 ranks'),
        (
            lambda case: case.update(system='other'),
            'the report is of other, and the facts of golden',
        ),
        (lambda case: case.update(partition='none'), 'could not be computed again'),
        (lambda case: case.update(job_stdout='../report.json'), 'is no name of an output'),
        (lambda case: case.update(job_stdout='/etc/hostname'), 'is no name of an output'),
        (
            lambda case: case.update(display_name='Strange %fabric=shm'),
            'this checkout has no check Strange',
        ),
        (
            lambda case: case.update(display_name='Ring %fabric=shm %layout=odd %scale=1_node'),
            'this checkout has no case Ring %fabric=shm %layout=odd',
        ),
        # The outputs are of another fabric than the report says.
        (
            lambda case: case.update(
                display_name='Ring %fabric=ucx-tcp %layout=packed %scale=1_node'
            ),
            'fabric ucx-tcp was asked for, but',
        ),
    ],
)
def test_what_a_report_says_otherwise(changed, how, words):
    assert any(words in fault for fault in changed(how))


def test_a_script_is_known_by_the_report(changed, monkeypatch):
    """It need not be there: as `SiteApplication` does, of which there is no case."""
    ring = all_checks()['Ring']
    monkeypatch.setattr(ring, 'command_of', SiteApplicationCheck.command_of)
    monkeypatch.setattr(ring, 'program_name', 'run.sh')
    assert any("/ring', and not of run.sh" in one for one in changed(lambda case: None))
    assert not changed(lambda case: case.update(runs_script=True))


#: Others, as the witness tells of them.
SEEN = {
    'seconds': 10.0,
    'foreign_share': 0.5,
    'steal_share': 0.0,
    'throttled_share': 0.0,
    'waited_share': 0.0,
}


def test_a_good_value_is_not_lost_as_a_disturbed_one(everything, changed):
    kept = everything.run(1) / archives.CASES
    places = [one for one in kept.iterdir() if '"program": "ring"' in _result(one)]
    files = [path for place in places for path in place.rglob('witness.json')]
    before = {path: path.read_bytes() for path in files}
    for path in files:
        report = json.loads(before[path])
        for host in report['hosts']:
            host['disturbance'] = SEEN
        path.write_text(json.dumps(report))
    try:
        faults = changed(
            lambda case: case.update(
                result='fail', fail_phase='performance', no_evidence='others used 50% of the time'
            )
        )
    finally:
        for path, data in before.items():
            path.write_bytes(data)
    assert any('told as disturbed, and none of its figures missed' in one for one in faults)


def _result(folder):
    return ''.join(path.read_text() for path in folder.glob('result.json'))


def test_outputs_that_prove_nothing_more(everything):
    kept = next(everything.run(1).glob('cases/*/miniFE.34x34x34.*.yaml'))
    before = kept.read_bytes()
    kept.write_bytes(before.replace(b'Total Program Time', b'Total Program Tome'))
    try:
        (fault,) = again(everything).faults
    finally:
        kept.write_bytes(before)
    assert 'MiniFE' in fault and 'is not whole' in fault


def test_nothing_of_an_archive_is_executed(everything, tmp_path):
    """Its scripts, and its facts, are data: neither a template nor a line of a shell."""
    path = everything.run(1) / archives.SYSTEM
    before, sign = path.read_bytes(), tmp_path / 'executed'
    known = json.loads(before)
    known['partitions'][0]['extras'] = {
        'shell': f'$(touch {sign})',
        'template': f"{{{{ cycler.__init__.__globals__.os.system('touch {sign}') }}}}",
    }
    path.write_text(json.dumps(known))
    for script in everything.run(1).glob('cases/*/rfm_job.sh'):
        script.write_text(f'touch {sign}\n')
    try:
        assert not again(everything).faults
    finally:
        path.write_bytes(before)
    assert not sign.exists()


def test_it_is_a_copy_that_is_read(everything):
    """Checks write beside what they read, and an archive stays as it is."""
    before = {path: path.stat().st_mtime_ns for path in everything.folder.rglob('*')}
    again(everything)
    assert {path: path.stat().st_mtime_ns for path in everything.folder.rglob('*')} == before
