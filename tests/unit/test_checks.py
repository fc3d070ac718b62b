"""Checks held against real jobs: what passes, and each way in which a job can be wrong.

A job's output, error and report stand in ``tests/golden/jobs/<check>/<environment>-<fabric>``.
"""

import gc
import json
import math
import pickle
import re
import shutil
import subprocess
import tempfile
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from reframe import RunOnlyRegressionTest
from reframe.core.exceptions import (
    BuildError,
    JobError,
    PerformanceError,
    ReframeError,
    SanityError,
    SkipTestError,
)
from reframe.core.runtime import runtime

import witnessed
from assay import paths, witness
from assay.checks import benchmark, launching
from assay.checks.benchmark import assert_async_progress
from assay.checks.build import BuildSources
from assay.checks.check import MpiCheck
from assay.config.defects import AffectedVersions
from assay.config.lint import check_classes
from assay.config.references import layers, merge
from assay.job.launch import OF_WITNESS, WITNESS
from assay.job.output import Output
from assay.machine.provenance import Provenance
from assay.programs.figure import quantity_of
from assay.programs.guidelines import FACTOR
from assay.results.cases import NO_EVIDENCE
from assay.running import allocation
from assay.tuning.starts import Start
from assay.witness.profile import STARTUP
from assay.witness.report import Machine
from changing import changing
from checks import check_on, job_script
from golden_jobs import FILES, GOLDEN, JOBS, chosen, slow

CLUSTERS = Path(__file__).parents[1] / 'support' / 'clusters.py'
SYSTEM = Path(__file__).parents[1] / 'support' / 'system.py'
GOLDEN_NODE = SYSTEM, 'golden:node'
EXAMPLE = paths.SYSTEMS / 'example-slurm.py'
COMPUTE, SMALL = ((EXAMPLE, f'example-slurm:{name}') for name in ('compute', 'small'))

#: Jobs of the golden ones that several tests look at.
ONE = Path('PointToPoint/openmpi-shm')
RING, MINIFE = Path('Ring/mpich-shm'), Path('MiniFE/openmpi-shm')
UPSTREAM, HPCG, NPB = (Path(f'{name}/openmpi-shm') for name in ('MiniFEUpstream', 'HPCG', 'NPB'))
IMB, OSU = Path('IntelMpiBenchmarks/mpich-shm'), Path('OsuMicroBenchmarks/openmpi-shm')
PROGRESS, HUNG = Path('HaloProgress/mpich-ucx-tcp'), Path('KnownDefect/mpich-ucx-tcp')
DEFAULT = Path('AsUsersGetIt/openmpi-default')

#: Checks and the environments that they are made for.
OF_RING, OF_OVERLAP = ('mpi/ring', 'Ring', 'openmpi'), ('mpi/overlap', 'Overlap', 'mpich')
OF_PROGRESS = ('mpi/halo', 'HaloProgress', 'openmpi')


def test_every_check_has_golden_jobs():
    # What a job of Tune leaves is read by the command alone: test_tuning.py.
    assert {path.parts[0] for path in GOLDEN} == {*FILES} - {'Tune'}


@pytest.fixture
def on(tmp_path):
    """A function that makes a check before its setup, for the golden system or another one."""

    def made(file, name, environment, where=GOLDEN_NODE, **parameters):
        prefix = tmp_path / 'reframe'
        return check_on(*where, prefix, file, name, environment, **parameters)

    return made


@pytest.fixture
def job(on, tmp_path):
    """A function that makes a check look at the files of a job, as ReFrame would.

    It returns the figures, each with value, reference, bounds, unit and result; ``checks`` are
    those that it made. ``edit`` changes the job's folder, ``change`` the check before its setup.
    """

    def look_at(
        golden,
        edit=None,
        exitcode=0,
        state='COMPLETED',
        change=None,
        phases=('sanity', 'performance'),
        look=None,
        **extras,
    ):
        name, run = golden.parts
        environment, _, fabric = run.partition('-')
        shutil.copytree(JOBS / golden, tmp_path, dirs_exist_ok=True)
        if edit:
            edit(tmp_path)
        of_a_check = (FILES[name], name, environment)
        with on(*of_a_check, **chosen(name, fabric)) as (check, partition, environ):
            if name == 'Screen':
                check.asked_nodes = 2
            if change:
                change(check)
            check.setup(partition, environ)
            check.executable = getattr(check, 'program', '')
            check._stagedir = str(tmp_path)
            check._job = SimpleNamespace(
                stdout='rfm_job.out',
                stderr='rfm_job.err',
                exitcode=exitcode,
                state=state,
                nodelist=['n1', 'n2'],
            )
            environ.extras.update(extras)
            look_at.checks.append(check)
            try:
                for phase in phases:
                    getattr(check, phase)()
            finally:
                if look:
                    look(check)
            return {key.rpartition(':')[2]: value for key, value in check.perfvalues.items()}

    look_at.checks = []
    return look_at


@pytest.mark.parametrize('golden', GOLDEN, ids=str)
def test_real_jobs(job, golden):
    figures = job(golden)
    assert 1 <= len(job.checks[0].headlines) <= 2 or golden.parts[0] == 'Screen', 'for one screen'
    # HPL prints times to hundredths of a second.
    may_be_none = re.compile('overlap|.*_share.*|(panel|wait|substitution)_time')
    assert all(value > 0 or may_be_none.fullmatch(name) for name, (value, *_) in figures.items())
    held = {name for name, (_, _, low, high, *_) in figures.items() if (low, high) != (None, None)}
    # How long a start took is told by no witness of before 0.2.
    lacking = job.checks[0].may_lack - held
    assert held - {*STARTUP} == referenced(golden) - lacking, (
        'a reference is for a figure that the check does not have'
    )
    for name, figure in job.checks[0].measured.items():
        one = quantity_of({**job.checks[0].measures, **OF_WITNESS}, name)
        assert (one.unit, one.better) == (figure.unit, figure.better), name


def referenced(golden):
    """The figures that generic.yaml has references for in this check, with its parameters."""
    name, run = golden.parts
    found = yaml.safe_load((paths.REFERENCES / 'generic.yaml').read_text())[name]
    for parameter in found.pop('$index'):
        value = chosen(name, run.partition('-')[2])[parameter]
        found = next(v for k, v in found.items() if re.fullmatch(k, value))
    return set(found) - {*STARTUP}


#: A job of each check that reads a report of a program of ours.
REPORTED = {
    golden.parts[0]: golden for golden in GOLDEN if (JOBS / golden / 'result.json').exists()
}

#: What no figure and no proof follows from: what a program was asked for, what ran it, how long a
#: measurement took, how sure a value is, which rank or pair it is of; of curves the rounds, and of
#: loads, limits and sockets what only others are held by.
UNREAD = re.compile(
    r'(arguments|mpi|checks|limits\.socket|disturbance|results\.communication_share)(\..*)?'
    r'|schema|implementation|program|version|complete|hosts|ranks|rank_grid|blas|stores|suspicious'
    r'|(bytes|threads)_per_rank|ranks_per_node|vector\.name|limits\.memcpy\.size'
    r'|guidelines\.(other|clocks\.operations)'
    r'|.*\.(ci_low|ci_high|interval|stopped_by|budget|bouts|batches|host|slowest_host|slowest_rank)'
    r'|results\.(bound|cache|call|iterations_per_second_(low|high)|lost_share|n|pairs|senders|size'
    r'|distance|in_domain|set_aside'
    r'|slowest_slice|verdict|waiting|window|(slowest|fastest)\.rank|ranks\.threads)'
    r'|pairs\.(nodes|round|suspicious|together\.best_latency)|results|limits\.ping_pong'
)


@pytest.mark.parametrize('golden', REPORTED.values(), ids=str)
def test_a_report_that_lacks_a_field_is_refused(job, golden):
    passed = set()

    def look(check):
        for owner, place in fields(check.report):
            value = owner.pop(place[-1])
            with suppress(SanityError, KeyError, StopIteration):
                check.verify_answers()
                check.figures()
                passed.add('.'.join(place))
            owner[place[-1]] = value

    job(golden, look=look)
    assert {place for place in passed if not UNREAD.fullmatch(place)} == set()


def fields(report, place=()):
    """Each field of a report with its owner and its place; of entries that are alike, of one."""
    for key, value in [*report.items()]:
        yield report, (*place, key)
        if isinstance(value, dict):
            yield from fields(value, (*place, key))
        elif isinstance(value, list):
            alike = {
                tuple(v for v in one.values() if isinstance(v, str)): one
                for one in value
                if isinstance(one, dict)
            }
            for one in alike.values():
                yield from fields(one, (*place, key))


@pytest.mark.parametrize('golden', ['Ring/mpich-shm', 'HPLSweep/openmpi-shm'])
def test_the_mpi_that_ran_is_told_and_held(job, golden):
    job(Path(golden))
    (check,) = job.checks
    ran = re.fullmatch(r'(MPICH Version:|Open MPI) v?(\d\S+) \(/.*/libmpi\S*\)', check.ran_mpi)
    assert 'OMP_NUM_THREADS=1' in check.ran_variables
    job(Path(golden), version=ran[2])
    with pytest.raises(SanityError, match=r'environment \w+ says version 5\.9\.9 of its MPI, but'):
        job(Path(golden), version='5.9.9')
    # What ran is told of a failure too.
    assert job.checks[-1].ran_mpi == check.ran_mpi


def test_what_the_node_is_is_told(job):
    def edit(report):
        report['hosts'][0]['machine'] = {'kernel': '6.1.0', 'processor': 'a|b'}

    job(RING, edit_witness(edit))
    (check,) = job.checks
    assert (check.ran_on_kernel, check.ran_on_processor) == ('6.1.0', r'a\x7cb')
    assert check.ran_on_governor == ''


def test_every_fact_of_a_node_is_a_field_of_the_perflog():
    logged = (paths.ROOT / 'config' / 'common.py').read_text()
    for name in Machine.model_fields:
        assert f'%(check_ran_on_{name})s' in logged
        assert f'ran_on_{name}' in MpiCheck.var_space


def test_variables_cannot_end_a_field_of_the_perflog(job):
    def edit(report):
        report['environment'] = {'LOADEDMODULES': 'a:b', 'UCX_TLS': 'self|\x1b[2K\nsm'}

    job(RING, edit_witness(edit))
    (check,) = job.checks
    assert check.ran_modules == 'a:b'
    assert check.ran_variables == r"UCX_TLS='self\x7c\x1b[2K\x0asm'"


@changing
def edit_report(folder, change, name='result.json'):
    path = folder / name
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))


def in_folder(name, edit):
    return lambda folder: edit(folder / name)


def edit_witness(change):
    return edit_report(change, 'witness.json')


def only_rank_0(report):
    report.update(ranks=1, processes=[report['processes'][0] | {'partners': []}])


def both_on_core_0(report):
    for process in report['processes']:
        process.update(cpus='0', cores='0')


def by_sockets(report):
    """A connection between the ranks carried what they sent."""
    sent = sum(partner['bytes'] for partner in report['processes'][0]['partners'])
    ends = ['127.0.0.1:1', '127.0.0.1:2']
    for process, (local, remote) in zip(report['processes'], (ends, reversed(ends)), strict=True):
        process['sockets'].append(
            {'local': local, 'remote': remote, 'device': 'lo', 'sent': sent, 'received': sent}
        )


@changing
def rewrite(folder, name, change):
    path = folder / name
    path.write_text(change(path.read_text()))


def overwrite(name, data):
    return lambda folder: (folder / name).write_bytes(data)


@changing
def say(folder, text):
    """The job printed nothing but this."""
    (folder / 'rfm_job.out').write_text(text)
    (folder / 'rfm_job.err').write_text('')


@changing
def in_output(folder, words):
    """A reproducer says this at the place where it hung."""
    path = folder / 'rfm_job.out'
    hung = 'defects: hangs\n'
    path.write_text(path.read_text().replace(hung, f'defects: {words}\n', 1).replace(hung, ''))


@changing
def removed(folder, name):
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@changing
def replacing(folder, file, old, new):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def limits_alone_left_a_report(folder):
    shutil.copy(folder / 'witness.json', folder / 'IMB-MPI1')


def one_rank_of_imb(text):
    lone = (paths.ROOT / 'tests/golden/imb/PingPong-mpich-np1.out').read_text()
    return text.split('#----')[0] + lone


def osu_run(name, ranks=2):
    """Put a real run of OSU's that went wrong in place of the job's first."""
    outputs = paths.ROOT / 'tests' / 'golden' / 'osu'
    run = yaml.safe_load((outputs / 'runs.yaml').read_text())['runs'][name]

    def edit(folder):
        folder = folder / 'latency'
        shutil.copy(outputs / f'{name}.out', folder / 'out')
        (folder / 'err').write_text('')
        (folder / 'exit_code').write_text(f'{run["exit"]}\n')
        if ranks == 1:
            edit_witness(only_rank_0)(folder)

    return edit


def by_another_fabric(folder):
    rewrite('out', lambda text: text.partition('Host')[0] + OTHER_FABRIC)(folder)
    (folder / 'err').write_text('')


def sends_nothing(report):
    for process in report['processes']:
        del process['calls']['MPI_Isend']


def put_on_core_0(report):
    for thread in report['processes'][1]['threads']:
        thread['cores'] = thread['cpus'] = '0'


def free_to_move(report):
    (moving,) = (t for t in report['processes'][1]['threads'] if t['name'] == 'progress')
    moving['cores'] = moving['cpus'] = '0-1'


OTHER_FABRIC = (paths.ROOT / 'tests/golden/statements/openmpi-5.0.9-tcp.out').read_text()
BY_VADER, BY_TCP = (f'Using {name} btl for send' for name in ('vader', 'tcp'))
NO_BEGIN = replacing('rfm_job.out', 'any-source begins on 2 ranks', '')

#: By job what went wrong in it, the sentence for it, and the exit code if that is not 0.
WRONG = {
    ONE: [
        (removed('result.json'), 'pt2pt wrote no result.json'),
        (rewrite('result.json', lambda text: text[:-100]), 'result.json is not valid'),
        (overwrite('result.json', b'{"program": "\xff\xfe'), 'result.json is not valid'),
        (edit_report(lambda r: r.pop('complete')), 'not a complete report of pt2pt'),
        (edit_report(lambda r: r.update(program='ring')), 'not a complete report of pt2pt'),
        (removed('witness.json'), 'no witness report'),
        (edit_witness(lambda r: r.update(complete=False)), 'did not reach MPI_Finalize'),
        (edit_witness(only_rank_0), 'not find each other: pt2pt ran as rank 0 of 1, not as 2'),
        (edit_witness(lambda r: r['mpi'].update(library='MPICH 4')), "the program ran on 'MPICH"),
        (edit_witness(both_on_core_0), 'ranks 0 and 1 share core 0'),
        (edit_witness(by_sockets), 'TCP sockets between the ranks carried'),
        (edit_report(lambda r: r['results'].clear()), 'reported no value for a figure'),
        (edit_report(lambda r: r.pop('limits')), "its report has no 'limits'"),
        (
            edit_report(lambda r: r['results'][4]['time'].update(median=float('nan'))),
            'NaN is not a measured value',
        ),
        (say(OTHER_FABRIC), 'tcp was used instead'),
        (say(''), 'does not say in the output'),
        (None, 'pt2pt ended with exit code 137', 137),
    ],
    # Both have to be right.
    UPSTREAM: [
        (removed('ours'), 'our own minife: minife was not run'),
        (rewrite('ours/exit_code', lambda _: '137\n'), 'our own minife: minife ended with exit co'),
        (rewrite('ours/out', lambda text: text[:-300]), 'our own minife: miniFE printed no'),
        (rewrite('rfm_job.out', lambda text: text[:400]), 'miniFE.x: miniFE printed no residual'),
    ],
    HPCG: [
        (removed('stream'), 'stream: stream was not run'),
        (rewrite('stream/exit_code', lambda _: '1\n'), 'stream: stream ended with exit code 1'),
        (removed('stream/result.json'), 'stream wrote no result.json'),
        (rewrite('stream/result.json', lambda text: text.replace('triad', 'add')), 'measured copy'),
        (removed('witness.json'), 'witness'),
        (lambda f: next(f.glob('HPCG-*')).unlink(), 'xhpcg: HPCG left 0 reports, not 1'),
    ],
    # It is held to what it said, and was seen to do.
    NPB: [
        (removed('stream'), 'stream: stream was not run'),
        (
            replacing('rfm_job.out', '  SUCCESSFUL', 'UNSUCCESSFUL'),
            'NPB MG printed Verification = UNSUCCESSFUL, not SUCCESSFUL',
        ),
        (
            rewrite('witness.json', lambda text: re.sub(r'("wall": ?)[\d.]+', r'\g<1>0.001', text)),
            'are reported, but it took 0.001 s',
        ),
    ],
    # The reports of the limits, which are measured around it, prove nothing of IMB.
    IMB: [
        (rewrite('IMB-MPI1/out', one_rank_of_imb), 'PingPong ran with 0 rank(s) instead of 2'),
        (
            limits_alone_left_a_report,
            "IMB-MPI1: the report of the witness is of '/suite/.assay/builds/"
            "8fa207e07f7160d4da1eb1ec5ffde05f/limits', and not of IMB-MPI1",
        ),
        (removed('IMB-MPI1/witness.json'), 'IMB-MPI1: no witness report'),
        (overwrite('IMB-MPI1/exit_code', b'3\n'), 'IMB-MPI1: IMB-MPI1 ended with exit code 3'),
        (removed('before'), 'before: limits was not run'),
        (overwrite('before/exit_code', b'3\n'), 'before: limits ended with exit code 3'),
        (in_folder('before', edit_witness(both_on_core_0)), 'before: ranks 0 and 1 share core 0'),
        (removed('before/result.json'), 'limits wrote no result.json'),
    ],
    # Each program of the job is held against what was asked, by itself.
    OSU: [
        (
            osu_run('fail-one-rank-openmpi', 1),
            'latency: mpirun and Open MPI did not find each other',
        ),
        (
            osu_run('fail-other-launcher-openmpi', 1),
            'osu_latency ran as rank 0 of 1, not as 2 ranks',
        ),
        (
            osu_run('fail-other-launcher-mpich'),
            'launcher not compatible with PMI1 client; start it',
        ),
        (osu_run('fail-three-ranks-openmpi'), 'latency: osu_latency ended with exit code 1: '),
        (osu_run('fail-bad-option-openmpi'), 'latency: osu_latency ended with exit code 1: '),
        (osu_run('fail-killed-openmpi'), 'exited on signal 9 (Killed).'),
        (osu_run('fail-no-size-openmpi'), 'the table of osu_latency has 0 rows of 8 bytes, not 1'),
        (removed('bandwidth'), 'bandwidth: osu_bw was not run'),
        (removed('bandwidth/exit_code'), 'bandwidth: osu_bw was not run'),
        (removed('bandwidth/witness.json'), 'bandwidth: no witness report'),
        (
            in_folder('bandwidth', edit_witness(both_on_core_0)),
            'bandwidth: ranks 0 and 1 share core 0',
        ),
        (
            in_folder('bandwidth', edit_witness(by_sockets)),
            'bandwidth: fabric shm was asked for, but TCP sockets between the ranks carried',
        ),
        (
            in_folder('alltoall_time', by_another_fabric),
            'alltoall_time: fabric shm was asked for, but tcp was used instead',
        ),
        (edit_report(lambda r: r.pop('complete')), 'not a complete report of limits'),
    ],
    # The first tournament is held to the calls as well.
    Path('Screen/mpich-ucx-tcp'): [
        (in_folder('first', edit_witness(sends_nothing)), 'MPI_Isend follow from the report'),
    ],
    PROGRESS: [
        (edit_witness(put_on_core_0), 'thread (104) of rank 1 on n2 may use core 0, and has'),
        (
            edit_witness(free_to_move),
            'the progress thread (104) of rank 1 on n2 may use cores 0-1',
        ),
        # Of 8 chunks and the warm-up each begins with a call.
        (edit_report(lambda report: report.update(progress_calls=9)), 'never called MPI while'),
        (edit_report(lambda report: report.update(progress_calls=10**9)), 'of MPI_Iprobe follow'),
        (removed('all_cores'), 'all_cores: halo was not run'),
    ],
    # A job that did not begin shows no defect, nor does what goes wrong after its word.
    HUNG: [
        (NO_BEGIN, 'ended with exit code 1', 1),
        (NO_BEGIN, 'did not begin'),
        (in_output('any-source does not show'), 'did not reach MPI_Finalize'),
        (in_output('any-source does not show'), 'ended with exit code 3', 3),
    ],
    # What users get is held against the best.
    DEFAULT: [
        (
            replacing('rfm_job.err', BY_VADER, BY_TCP),
            'nothing was forced, and Open MPI did not take shm, the best that the partition has: '
            'its messages went by tcp; it says',
        ),
        (
            replacing('forced/err', BY_VADER, BY_TCP),
            'forced: fabric shm was asked for, but tcp was used instead',
        ),
        (replacing('forced/exit_code', '0', '9'), 'forced: pt2pt ended with exit code 9'),
        (removed('forced'), 'forced: pt2pt was not run'),
    ],
}


@pytest.mark.parametrize(
    ('golden', 'wrong'),
    [(golden, one) for golden, rows in WRONG.items() for one in rows],
    ids=lambda one: str(one) if isinstance(one, Path) else None,
)
def test_wrong_jobs(job, golden, wrong):
    edit, words, *exitcode = wrong
    with pytest.raises(SanityError) as error:
        job(golden, edit, *exitcode)
    assert words in str(error.value)


def never_started(folder):
    (folder / 'rfm_job.err').unlink()


half_a_report = replacing('witness.json', '"complete": true', '"complete": false')


@pytest.mark.parametrize(
    ('state', 'edit', 'words'),
    [
        ('TIMEOUT', None, 'at the time limit; all ranks had come to MPI_Finalize, and one did not'),
        ('TIMEOUT', edit_witness(only_rank_0), 'at the time limit; the last report is of 1 rank'),
        ('TIMEOUT', half_a_report, 'at the time limit; no rank left word of where it was'),
        (
            'TIMEOUT',
            removed('witness.json'),
            'at the time limit; its ranks had not come through MPI_Init',
        ),
        (
            'NODE_FAIL',
            rewrite('rfm_job.err', lambda text: f'{text}\nsrun: error: Node failure on n2\n'),
            'a node of its job died (n2); ',
        ),
        # That on which the script ran: there is nobody to write a line.
        ('NODE_FAIL', None, 'a node of its job died (n1); '),
        ('CANCELLED', never_started, 'its job was cancelled before it started'),
        ('CANCELLED by 0', None, 'its job was cancelled by root; '),
        ('PREEMPTED', None, f'{NO_EVIDENCE}its job was preempted'),
        ('LAUNCH_FAILED', never_started, 'the scheduler could not start its job on its nodes'),
    ],
)
def test_jobs_that_were_cut_short(job, state, edit, words):
    with pytest.raises(SanityError) as error:
        job(ONE, edit, 0, state)
    assert words in str(error.value)


BUFFER = {'OMPI_MCA_btl_tcp_sndbuf': '2048'}


@pytest.mark.parametrize('exitcode', [0, 1])
def test_what_was_left_in_the_environment_of_a_job_is_told(job, exitcode):
    edit = edit_witness(lambda report: report['environment'].update(BUFFER))
    with suppress(SanityError):
        job(ONE, edit, exitcode)
    (check,) = job.checks
    assert (check.leftovers, check.leftovers_seen) == (['OMPI_MCA_btl_tcp_sndbuf=2048'], True)


def test_what_a_launcher_handed_on_from_a_file_was_left_in_the_file(job):
    def hand_on(report):
        report['environment'].update(BUFFER)
        report['settings'] = {'file:/home/u/mca.conf:OMPI_MCA_btl_tcp_sndbuf': '2048'}

    job(ONE, edit_witness(hand_on))
    (check,) = job.checks
    assert check.leftovers == []
    assert check.leftovers_in_files == ['btl_tcp_sndbuf=2048 in /home/u/mca.conf']


@pytest.mark.parametrize('commands', [[], ['export OMPI_MCA_btl_tcp_sndbuf=2048']])
def test_what_the_check_the_system_and_its_commands_set_was_not_left(job, monkeypatch, commands):
    found = {'OMPI_MCA_pml': 'ob1', 'FI_TCP_IFACE': 'eth0', 'UCX_RNDV_THRESH': '8k'}

    def change(check):
        partition = runtime().system.partitions[0]
        monkeypatch.setattr(partition, '_prepare_cmds', commands)
        partition.local_env._env_vars['FI_TCP_IFACE'] = 'eth0'

    job(ONE, edit_witness(lambda it: it['environment'].update(found | BUFFER)), change=change)
    buffer = [] if commands else ['OMPI_MCA_btl_tcp_sndbuf=2048']
    assert job.checks[0].leftovers == [*buffer, 'UCX_RNDV_THRESH=8k']


def test_commands_of_a_systems_file_are_not_run(job, monkeypatch, tmp_path):
    """They are for the nodes of jobs: that they set something else cannot be excluded."""
    ran = tmp_path / 'ran'
    commands = [f'touch {ran}', f'export FI_X=$(touch {ran})']

    def change(check):
        partition = runtime().system.partitions[0]
        monkeypatch.setattr(partition, '_prepare_cmds', commands)
        monkeypatch.setattr(partition, '_access', ['--export=ALL,FI_Y'])
        partition.local_env._env_vars['FI_TCP_IFACE'] = f'$(touch {ran})'

    found = BUFFER | {'FI_X': '1', 'FI_Y': '1'}
    job(ONE, edit_witness(lambda it: it['environment'].update(found)), change=change)
    (check,) = job.checks
    assert not ran.exists()
    assert check.leftovers == ['OMPI_MCA_btl_tcp_sndbuf=2048']
    assert check.leftovers_unsure


@pytest.fixture
def with_module(monkeypatch):
    """A function that gives the system a module: its name, and the command that loads it."""

    def give(name, command):
        environment = runtime().system.partitions[0].local_env
        module = {'name': name, 'collection': False, 'path': None}
        monkeypatch.setattr(environment, '_modules', [module])
        monkeypatch.setattr(runtime().modules_system, 'emit_load_commands', lambda *_: [command])
        # As modules systems give it to shells.
        # By which a login shell has the modules tool of the machine in every shell.
        monkeypatch.delenv('BASH_ENV', raising=False)
        monkeypatch.setenv('BASH_FUNC_module%%', '() { export FI_OF_$2=1; }')

    return give


@pytest.mark.parametrize('has_tmp', [True, False])
def test_modules_of_a_systems_file_are_asked_and_spoil_no_case(
    job, monkeypatch, tmp_path, with_module, has_tmp
):
    name = f'M_{has_tmp}'  # what was asked once is known

    def change(check):
        with_module(name, f'module load {name}')
        if not has_tmp:
            monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))

    found = {f'FI_OF_{name}': '1'}
    job(ONE, edit_witness(lambda it: it['environment'].update(found)), change=change)
    (check,) = job.checks
    assert check.leftovers == ([] if has_tmp else [f'FI_OF_{name}=1'])
    assert check.leftovers_unsure is not has_tmp


@pytest.mark.parametrize('more', ['; touch {}', ' $(touch {})', '\ntouch {}'])
def test_what_does_more_than_to_load_a_module_is_not_run(job, tmp_path, with_module, more):
    ran = tmp_path / 'ran'
    load = f'module load x{more.format(ran)}'
    edit = edit_witness(lambda it: it['environment'].update(BUFFER))
    job(ONE, edit, change=lambda _: with_module('x', load))
    assert not ran.exists() and job.checks[0].leftovers_unsure


def test_a_search_for_leftovers_that_fails_spoils_no_case(job, monkeypatch, capsys):
    def fail(_):
        raise OSError(5, 'Input/output error')

    monkeypatch.setattr('assay.checks.leftovers.of_ranks', fail)
    job(ONE)
    assert job.checks[0].leftovers == []
    assert 'that were left could not be looked for: [Errno 5]' in capsys.readouterr().err


def test_where_no_rank_got_far_enough_the_script_tells_what_was_left(job, monkeypatch):
    """The script sets what is the check's own: of that only what a user asked for is left."""
    monkeypatch.setenv('UCX_RNDV_THRESH', '8k')
    monkeypatch.setenv('OMPI_MCA_pml', 'ucx')
    monkeypatch.setenv('LD_PRELOAD', '/overridden.so')

    def change(check):
        check.env_vars = {'OMPI_MCA_btl': '^sm', 'NOTHING_TO_MPI': '1', 'LD_PRELOAD': '/tool.so'}

    with pytest.raises(SanityError, match='had not come through MPI_Init'):
        job(ONE, removed('witness.json'), 0, 'TIMEOUT', change)
    (check,) = job.checks
    asked = {'OMPI_MCA_btl=^sm', 'LD_PRELOAD=/tool.so'}
    assert asked | {'UCX_RNDV_THRESH=8k'} <= {*check.leftovers}
    others = ('OMPI_MCA_pml', 'NOTHING', 'LD_PRELOAD=/over')
    assert not any(one.startswith(others) for one in check.leftovers)
    assert not check.leftovers_seen


def test_a_job_that_reframe_ends_at_its_time_limit_tells_what_was_left(job, monkeypatch):
    def time_out(_):
        raise JobError('job timed out')

    monkeypatch.setattr(RunOnlyRegressionTest, 'run_complete', time_out)
    edit = edit_witness(lambda report: report['environment'].update(BUFFER))
    with pytest.raises(JobError):
        job(ONE, edit, state='TIMEOUT', phases=['run_complete'])
    assert job.checks[0].leftovers == ['OMPI_MCA_btl_tcp_sndbuf=2048']


def test_slow_job_fails_its_reference(job):
    with pytest.raises(PerformanceError, match='latency_over_limit'):
        job(ONE, edit_report(slow))


def test_ours_that_is_far_slower_than_upstream_fails_the_reference(job):
    def slow(folder):
        (report,) = folder.glob('*.yaml')  # upstream's: those of ours have a second clock
        text = report.read_text()
        seconds = float(re.search(r'Total CG Time: (\S+)', text)[1])
        report.write_text(re.sub(r'(Total CG Time: )\S+', rf'\g<1>{seconds / 1000:.6f}', text))

    with pytest.raises(PerformanceError, match='cg_rate_of_ours'):
        job(UPSTREAM, slow)


def test_hpcg_that_gets_little_of_the_triad_fails_the_reference(job):
    def slow(folder):
        (report,) = folder.glob('HPCG-*')
        times = r'((?:Benchmark Time Summary::\w+|Setup Time)=)(.*)'
        rates = r'((?:Raw Total B/W|GFLOP/s rating of)=)(.*)'
        text = re.sub(times, lambda one: one[1] + str(4 * float(one[2])), report.read_text())
        text = re.sub(rates, lambda one: one[1] + str(float(one[2]) / 4), text)
        report.write_text(text)
        witness = folder / 'witness.json'
        text = re.sub(
            r'("wall": ?)([\d.]+)',
            lambda one: one[1] + str(4 * float(one[2])),
            witness.read_text(),
        )
        witness.write_text(text)

    with pytest.raises(PerformanceError, match='bandwidth_of_triad'):
        job(HPCG, slow)


@pytest.fixture
def references(tmp_path_factory, monkeypatch):
    """A function that gives the golden system these files of references and no other."""

    def write(**files):
        folder = tmp_path_factory.mktemp('references')
        (folder / 'learned').mkdir()
        for name, text in files.items():
            (folder / f'{name}.yaml').write_text(text)
        monkeypatch.setattr(paths, 'REFERENCES', folder)
        return folder

    return write


def rules(name, **figures):
    return yaml.dump({name: {'$index': ['fabric'], '.*': figures}})


def test_a_changed_number_of_messages(job, references):
    report = json.loads((JOBS / MINIFE / 'witness.json').read_text())
    sent = sum(partner['messages'] for one in report['processes'] for partner in one['partners'])
    references(golden=rules('MiniFE', messages=[sent, 0, 0, '1']))
    assert job(MINIFE)['messages'][0] == sent
    references(golden=rules('MiniFE', messages=[sent - 1, 0, 0, '1']))
    with pytest.raises(PerformanceError, match='messages'):
        job(MINIFE)


@pytest.mark.parametrize(
    ('golden', 'sent'),
    [
        ('MiniFE/openmpi-shm', {'messages', 'bytes'}),
        # DGEMM's results are shared as often as there is time for.
        ('HPL/openmpi-shm', {'messages'}),
        ('MpiP/mpich-ucx-shm', {'messages'}),  # also of HPL
        ('Halo/openmpi-shm', set()),  # so are its chunks measured
    ],
)
def test_what_a_program_sends_is_a_figure_if_it_is_always_as_much(job, golden, sent):
    figures = job(Path(golden)).keys()
    assert figures & {'messages', 'bytes'} == sent
    assert 'comm_share' in figures


@pytest.mark.parametrize('bounds', [(0, None), (None, 0)])
def test_an_exact_figure_needs_both_bounds(job, bounds, references):
    references(golden=rules('MiniFE', messages=[1012, *bounds, '1']))
    with pytest.raises(SanityError, match='no bound on both sides'):
        job(MINIFE)


@pytest.mark.parametrize(
    ('figure', 'reference', 'words'),
    [
        ('bandwidth', [12.0, -0.1, None, 'GB/s'], "12.0 of bandwidth is in 'GB/s', the figure in "),
        ('bandwidth', [12.0, -0.1, None, 'MB/S'], "is in 'MB/S', the figure in 'MB/s'"),
        ('bandwidth_of_limit', [1.0, -0.99, None, ''], "is in '', the figure in '1'"),
        # A bound on the side that nobody fears.
        ('bandwidth', [1.0, None, 1e9, 'MB/s'], 'cannot fail: higher is better'),
        ('bandwidth', [1.0, -1.0, 1e9, 'MB/s'], 'cannot fail: higher is better'),
        ('bandwidth', [0.0, -0.5, 1e9, 'MB/s'], 'cannot fail: higher is better'),
        ('latency', [1.0, -0.5, None, 'us'], 'cannot fail: lower is better'),
        (
            'latncy',
            [1.0, None, 1e9, 'us'],
            'latncy: no figure of this job has this name; did you mean',
        ),
        ('latncy', [1.0, None, 1e9, 'us'], 'did you mean latency?'),
        # Nobody looks further once a failure is expected.
        (
            'latncy',
            ['$xfail', 'known', [1.0, None, 1.0, 'us']],
            'latncy: no figure of this job has this name',
        ),
        ('bandwidth', ['$xfail', 'known', [9e9, -0.1, None, 'GB/s']], "is in 'GB/s', the figure"),
        ('latency', [1.0, None, None, 'us'], 'no figure is held to anything: give one a reference'),
    ],
)
def test_reference_that_would_pass_anything(job, references, figure, reference, words):
    folder = references(golden=rules('PointToPoint', **{figure: reference}))
    with pytest.raises(SanityError) as error:
        job(ONE)
    assert words in str(error.value) and f'{folder}/golden.yaml' in str(error.value)


def test_a_missed_reference_fails_a_check_that_is_not_strict(job, references):
    references(golden=rules('PointToPoint', bandwidth=[9e9, -0.1, None, 'MB/s']))

    def relax(check):
        may_be_free(check)
        check.strict_check = False

    with pytest.raises(PerformanceError, match='bandwidth='):
        job(ONE, change=relax)


@pytest.mark.parametrize('phases', [['performance'], ['cleanup'], ['sanity', 'cleanup']])
def test_a_job_of_which_something_was_left_out(job, phases):
    with pytest.raises(SanityError, match=r'nothing was proved.* leave out --skip-sanity-check'):
        job(ONE, phases=phases)


def test_a_job_of_which_nothing_was_left_out(job):
    job(ONE, phases=['sanity', 'performance', 'assert_nothing_was_left_out'])


def test_figures_are_held_by_the_first_file_that_names_them(job, references):
    """Those of the system, of the architecture (zen3), or of any machine; and all by one."""
    learned = {
        name: {'reference': [number, None, 1e9, unit], 'n': '12'}
        for name, number, unit in (('latency', 8.0, 'us'), ('worst_step', 9.0, '1'))
    }
    references(
        **{'learned/golden': rules('PointToPoint', **learned)},
        golden=rules('PointToPoint', latency=[1.0, None, 1e9, 'us']),
        zen3=rules('PointToPoint', latency=[2.0, None, 0, 'us'], bandwidth=[3.0, 0, None, 'MB/s']),
        generic=rules(
            'PointToPoint',
            latency=[4.0, None, 0, 'us'],
            bandwidth=[5e9, 0, None, 'MB/s'],
            bidirectional_bandwidth=[6.0, 0, None, 'MB/s'],
            worst_step=[7.0, None, 0, '1'],
        ),
        other=rules('PointToPoint', bandwidth_of_limit=[7.0, 0, None, '1']),
    )
    figures = job(ONE, change=may_be_free)
    assert {name: ref for name, (_, ref, *_) in figures.items() if ref} == {
        'latency': 1.0,
        'bandwidth': 3.0,
        'bidirectional_bandwidth': 6.0,
        'worst_step': 9.0,
    }


def test_a_check_from_outside_has_its_references_in_its_class(job, references, monkeypatch):
    """What is for one system comes first; what is for any machine last. Ours have none there."""
    generic = rules('PointToPoint', latency=[4.0, None, 1e9, 'us'])
    golden = rules('PointToPoint', bandwidth=[1.0, 0, None, 'MB/s'])
    folder = references(generic=generic, golden=golden)
    own = {
        '*': {'latency': (2.0, None, 1e9, 'us'), 'bandwidth': (3.0, 0, None, 'MB/s')},
        'golden:node': {'worst_step': (5.0, None, 1e9, '1')},
        'golden:other': {'latency': (6.0, None, 1e9, 'us')},
    }

    def of_its_own(check):
        may_be_free(check)
        check.reference = own

    def held():
        return {name: ref for name, (_, ref, *_) in job(ONE, change=of_its_own).items() if ref}

    assert held() == {'latency': 4.0, 'bandwidth': 1.0}
    monkeypatch.setattr('assay.config.references.paths', SimpleNamespace(CHECKS=folder))
    assert held() == {'latency': 2.0, 'bandwidth': 1.0, 'worst_step': 5.0}
    own = {'$index': ['fabric'], 'shm': {'latency': (2.0, None, 1e9, 'us')}}
    assert held() == {'latency': 2.0, 'bandwidth': 1.0}
    own = {'$index': ['num_tasks'], 2: {'latency': (3.0, None, 1e9, 'us')}}
    assert held() == {'latency': 3.0, 'bandwidth': 1.0}
    own = {'$index': ['num_tasks'], 4: {'latency': (3.0, None, 1e9, 'us')}}
    assert held() == {'latency': 4.0, 'bandwidth': 1.0}
    own = {'*': {'latency': (2.0, 0.5, 1e9, 'us')}}
    with pytest.raises(ReframeError, match=r'\.py: PointToPoint\.reference\.latency: .* above its'):
        held()
    references()
    with pytest.raises(SanityError, match=r'give one a reference in its class \(.*\.py\)'):
        job(ONE, change=may_be_free)


def test_a_reference_that_a_check_sets_after_it_was_read_fails(job, references, monkeypatch):
    folder = references(generic=rules('PointToPoint', latency=[4.0, None, 1e9, 'us']))
    monkeypatch.setattr('assay.config.references.paths', SimpleNamespace(CHECKS=folder))

    def set_late(check):
        may_be_free(check)
        figures = check.figures

        def figures_and_reference():
            check.reference = {'*': {'latency': (1e-9, None, 0.1, 'us')}}
            return figures()

        check.figures = figures_and_reference

    with pytest.raises(SanityError, match='PointToPoint set its reference after the setup'):
        job(ONE, change=set_late)


def test_a_figure_that_the_check_does_not_declare_is_named(job):
    def forget(check):
        check.measures = {}

    with pytest.raises(ReframeError, match=r'PointToPoint: measures does not declare bandwidth, '):
        job(ONE, change=forget)


def must_be_held(check, must=True):
    figures = check.figures
    check.figures = lambda: {k: replace(v, must_be_held=must) for k, v in figures().items()}


def may_be_free(check):
    must_be_held(check, must=False)


def test_a_figure_that_must_be_held(job, references):
    held = rules('PointToPoint', latency=[1.0, None, 1e9, 'us'])
    names = [name for name in job(ONE) if not name.endswith('share')]
    folder = references(generic=held)
    with pytest.raises(SanityError) as error:
        job(ONE, change=must_be_held)
    assert (
        f'PointToPoint over shm: bandwidth is held to nothing: give it a reference in '
        f'{folder}/golden.yaml'
    ) in str(error.value)
    # The system may say that it is not.
    free = job(ONE, change=may_be_free)
    units = {name: values[4] for name, values in free.items() if name in names}
    released = {name: [1.0, None, None, unit] for name, unit in units.items() if name != 'latency'}
    references(generic=held, golden=rules('PointToPoint', **released))
    job(ONE, change=must_be_held)


def test_a_figure_that_not_every_machine_offers_may_lack(job, references):
    link = {'socket_bandwidth_of_link': [1.0, -0.85, None, '1']}
    references(generic=rules('PointToPoint', latency=[1.0, None, 1e9, 'us'], **link))
    job(ONE, change=may_be_free)


def test_only_figures_of_another_program_need_no_reference(job, references):
    references()
    with pytest.raises(SanityError, match='Ring over shm: no figure is held to anything'):
        job(RING)


def test_nobody_says_that_a_program_of_ours_is_another(job, references):
    references()
    with pytest.raises(SanityError, match='MiniFE over shm: no figure is held to anything'):
        job(MINIFE, change=lambda check: setattr(check, 'implementation', 'another'))


def test_another_program_that_measured_nothing(job, references):
    references()
    assert job(UPSTREAM)

    def measure_nothing(check):
        check.figures = check.witness_figures = dict

    with pytest.raises(SanityError, match='nothing was measured'):
        job(UPSTREAM, change=measure_nothing)


@pytest.mark.parametrize(
    ('files', 'words'),
    [
        ({'golden': 'PointToPoint: {latency: [1, null, 1, us]}'}, "PointToPoint has no '$index'"),
        ({'golden': 'PointToPoint: {}'}, "PointToPoint has no '$index'"),
        ({'golden': 'PointToPoint:'}, "PointToPoint has no '$index'"),
        ({'golden': 'PointToPoint: ['}, 'golden.yaml: not valid YAML: line 1'),
        ({'golden': rules('PointToPoint', latency=[1, None, '1', 'us'])}, "has '1' in the place"),
        (
            {'golden': rules('PointToPoint', latency=[1, 0, 1, 'us']).replace('fabric', 'fabrik')},
            'PointToPoint.$index: no parameter has this name; did you mean fabric?',
        ),
        (
            {'golden': rules('PointToPoint', latency=[1, 0, 1, 'us']).replace('.*', 'shmem')},
            'PointToPoint.shmem: no fabric has this name; did you mean shm?',
        ),
        (
            {
                'golden': rules('PointToPoint', latency=[1, 0, 1, 'us'])
                .replace('fabric', '$partition')
                .replace('.*', 'golden:nod')
            },
            'PointToPoint.golden:nod: no $partition has this name; did you mean golden:node?',
        ),
        (
            {'generic': rules('PointToPoint', latency=[1, None, None, 'us'])},
            'cannot fail: it has no bounds',
        ),
    ],
)
def test_a_wrong_file_fails_before_the_job(job, references, files, words):
    references(**files)
    with pytest.raises(ReframeError) as error:
        job(ONE, phases=[])
    assert words in str(error.value) and '\n' not in str(error.value)


@pytest.mark.parametrize('variable', ['valid_systems', 'valid_prog_environs'])
def test_a_case_that_the_check_did_not_choose(job, variable):
    with pytest.raises(ReframeError, match='leave out --skip-system-check'):
        job(ONE, change=lambda check: setattr(check, variable, ['*']))


def test_a_job_beside_the_scheduler(job):
    with pytest.raises(ReframeError, match='leave out local=yes'):
        job(ONE, change=lambda check: setattr(check, 'local', True))


def test_hooks_are_not_disabled(job):
    with pytest.raises(ReframeError, match='--disable-hook=assert_held'):
        job(ONE, change=lambda check: check.disable_hook('assert_held'))


def test_imb_while_the_cpus_were_moved(job):
    """What IMB did is held against the slower of the limits before and after it."""
    golden = Path('IntelMpiBenchmarks/intelmpi-shm')
    before, after = (
        json.loads((JOBS / golden / folder / 'result.json').read_text())['limits']['cacheline']
        for folder in ('before', '.')
    )
    assert before['latency'] > 5 * after['latency']
    figures = job(golden)
    over = figures['latency'][0] * 1e-6 / before['latency']
    assert figures['latency_over_limit'][0] == pytest.approx(over)

    def faster(report):
        report['limits']['memcpy']['bandwidth'] *= 100

    for folder in ('before', '.'):
        moved = job(golden, in_folder(folder, edit_report(faster)))
        of = moved['bandwidth_of_limit'][0] / figures['bandwidth_of_limit'][0]
        assert 0.5 < of < 2


# Of each check one: which MPI and fabric it is of does not matter.
@pytest.mark.parametrize('golden', {path.parts[0]: path for path in GOLDEN}.values(), ids=str)
def test_a_report_of_another_program_proves_nothing(job, golden):
    def of_another(folder):
        change = edit_report(lambda report: report.update(command=['/usr/bin/other']), WITNESS)
        for path in folder.rglob(WITNESS):
            change(path.parent)

    with pytest.raises(SanityError, match=r"report of the witness is of '/usr/bin/other', and not"):
        job(golden, of_another)


def reports_in_memory():
    gc.collect()
    return sum(isinstance(one, witness.Report) for one in gc.get_objects())


def test_a_run_keeps_one_report(job):
    """ReFrame keeps every check until it ends; what jobs left must not stay with them."""
    before = reports_in_memory()
    for golden in (ONE, Path('HPL/openmpi-shm'), RING):
        job(golden)
    with pytest.raises(SanityError):
        job(ONE, say(OTHER_FABRIC))
    assert reports_in_memory() <= before + 1
    for check in job.checks:
        assert check.launch.exit_code == 0
        size = sum(len(pickle.dumps(value)) for value in vars(check.launch).values())
        assert size < 4000 and 'report' not in vars(check)


def test_what_rank_0_runs(on, tmp_path):
    """The user's binary may be a script that starts another program."""
    binary, script = tmp_path / 'xhpl', tmp_path / 'run-hpl.sh'
    binary.write_bytes(b'\x7fELF')
    script.write_text('#!/bin/sh\n')
    for layout, name in (('packed', 'MiniMD'), ('mixed', 'MiniMDMixed')):
        case = {'fabric': 'shm', 'layout': layout, 'scale': '1_node', 'size': 'cache'}
        with on('apps/minimd', name, 'openmpi', **case) as (check, partition, environ):
            check.setup(partition, environ)
            assert check.command_of(check.program_name) == 'minimd'
            check.binary = str(binary)
            assert check.command_of(check.program_name) == 'xhpl'
            check.binary = str(script)
            assert check.command_of(check.program_name) is None
            assert check.command_of('minimd') == 'minimd'
            check.wide_binary = str(binary)
            expected = 'xhpl' if layout == 'mixed' else None
            assert check.command_of(check.program_name) == expected


@pytest.mark.parametrize(
    ('file', 'name', 'parameters'),
    [('mpi/ring', 'Ring', {}), ('apps/minife', 'MiniFE', {'size': 'cache'})],
)
def test_reports_of_an_earlier_run_are_removed(on, file, name, parameters):
    """ReFrame can be told to keep a case's folder for its next run (general/clean_stagedir)."""
    case = {'fabric': 'shm', 'layout': 'packed', 'scale': '1_node', **parameters}
    with on(file, name, 'openmpi', **case) as (check, partition, environ):
        check._rfm_dry_run = True
        check.build = check.benchmarks = SimpleNamespace(product='/built/build/{}'.format)
        check.setup(partition, environ)
        stage = Path(check.stagedir)
        (stage / 'apart').mkdir()
        earlier = ['witness.json', 'witness.json.ranks', 'apart/witness.json']
        earlier += ['result.json'] if name == 'Ring' else []
        for left in earlier:
            (stage / left).write_text('{}')
        check.run()
        assert not [left for left in earlier if (stage / left).exists()]


@pytest.mark.parametrize(
    ('where', 'job', 'is_beside_jobs'),
    [(GOLDEN_NODE, '', False), (GOLDEN_NODE, '7', True), (COMPUTE, '', True)],
)
def test_builds_disturb_no_job(on, monkeypatch, where, job, is_beside_jobs):
    """ReFrame starts them beside jobs only where there can be several at once, or one for all."""
    if job:
        monkeypatch.setenv(allocation.VARIABLE, job)
    with on(*OF_RING, where) as (_, partition, environ):
        build = BuildSources()
        build.setup(partition, environ)
    assert build.build_locally == is_beside_jobs


@pytest.mark.parametrize('policy', ['async', 'serial'])
@pytest.mark.parametrize(
    ('states', 'jobs', 'words'),
    [
        (['COMPLETED'], 1, None),
        (['PREEMPTED', 'PREEMPTED', 'COMPLETED'], 3, None),
        (['PREEMPTED', 'PREEMPTED', 'PREEMPTED'], 3, 'preempted'),
        (['TIMEOUT'], 1, 'at the time limit'),
        (['NODE_FAIL'], 1, 'a node of its job died'),
    ],
)
def test_a_build_that_was_preempted_is_built_again(on, policy, states, jobs, words):
    """And no build counts as one that the scheduler ended, which has no exit code."""
    left = list(states)

    class Submitted(SimpleNamespace):
        def submit(self):
            self.state = left.pop(0)

        def finished(self):
            return True

        def wait(self):
            pass

    with on(*OF_RING) as (_, partition, environ):
        build = BuildSources()
        build.setup(partition, environ)
        build._build_job = Submitted(options=[], stderr='rfm_build.err', exitcode=None)
        Path(build.stagedir, 'rfm_build.err').touch()
        build.start_only_once()
        build.build_job.time_limit = 1800
        build.build_job.submit()
        with pytest.raises(BuildError) if words else nullcontext() as error:
            while policy == 'async' and not build.compile_complete():
                assert len(left) < len(states)
            build.compile_wait()
    assert len(states) - len(left) == jobs
    assert words is None or words in str(error.value)


@pytest.mark.parametrize('after', ['true', 'exit 0'])
def test_a_command_after_the_program_hides_no_exit_code(on, after):
    with on(*OF_RING) as (check, _, _):
        check.postrun_cmds = [after]
        check.keep_exit_code()
        script = '\n'.join(['(exit 3)', *check.postrun_cmds])
    assert subprocess.run(['bash', '-c', script]).returncode == 3


@pytest.mark.parametrize('kind', ['cflags', 'cxxflags', 'cppflags', 'ldflags'])
def test_builds_of_other_flags_are_other_builds(on, kind):
    shared = []
    with on(*OF_RING) as (_, partition, environ):
        for flags in ([], ['-DOTHER']):
            setattr(environ, f'_{kind}', flags)
            build = BuildSources()
            build.setup(partition, environ)
            build.configure_out_of_source()
            shared += build.prebuild_cmds
    assert shared[0] != shared[1]


def test_sources_of_a_setting_are_built_in_place_of_ours(on, tmp_path, monkeypatch):
    with on(*OF_RING) as (_, partition, environ):
        found = []
        for _ in range(2):
            build = BuildSources()
            build.setup(partition, environ)
            build.choose_how()
            found.append(build.sourcesdir)
            monkeypatch.setenv('ASSAY_OTHER_SOURCES', str(tmp_path))
    assert found == [str(paths.SOURCES), str(tmp_path)]


@pytest.mark.parametrize(
    ('told', 'c', 'cxx'),
    [('-O1 -g', '-O1 -g', '-O1 -g'), ('C: -O1 -g; C++: -O3', '-O1 -g', '-O3')],
)
def test_flags_of_a_setting_follow_those_of_the_environment(on, monkeypatch, told, c, cxx):
    monkeypatch.setenv('ASSAY_MORE_FLAGS', told)
    with on(*OF_RING) as (_, partition, environ):
        environ._cflags, environ._cxxflags = ['-march=native'], ['-fopenmp']
        build = BuildSources()
        build.setup(partition, environ)
        build.configure_out_of_source()
        commands = '; '.join(build.build_system.emit_build_commands(environ))
    assert f"-DCMAKE_C_FLAGS='-march=native {c}'" in commands.replace('"', "'")
    assert f"-DCMAKE_CXX_FLAGS='-fopenmp {cxx}'" in commands.replace('"', "'")
    assert f'-march=native {c}' in build.prebuild_cmds[0]


@pytest.mark.parametrize(
    ('flags', 'shown'),
    [
        ('-march=native -O1', "the suite's own"),
        # AArch64: the compiler alone knows how wide the vectors are.
        ('-mcpu=a64fx -msve-vector-bits=512', '-mcpu=a64fx -msve-vector-bits=512'),
    ],
)
def test_flags_of_what_measures_a_node(on, flags, shown):
    built = Provenance(by='cmake', hash='f00', flags=flags)
    with on('node/stream', 'Stream', 'openmpi') as (check, _, _):
        check.build = SimpleNamespace(provenance=built)
        assert check.provenance == replace(built, flags=shown)


@pytest.mark.parametrize('file', sorted((paths.CHECKS / 'apps').glob('*.py')), ids=lambda p: p.stem)
def test_of_applications_only_the_one_that_runs_is_built(on, file):
    for name in check_classes(file):
        with on(f'apps/{file.stem}', name, 'openmpi') as (check, _, _):
            needed = {one: what.cls.target for one, what in type(check).fixture_space.items()}
            of_all = name in ('HPCG', 'NPB', 'MpiP', 'Must')
            ours = 'benchmarks' if of_all else check.application.program
            assert needed == {'build': ours, 'benchmarks': 'benchmarks'}
            assert ours == 'benchmarks' or (paths.SOURCES / ours / 'CMakeLists.txt').exists()


@pytest.mark.parametrize('name', ['HPL', 'Ring'])
def test_the_witness_comes_with_the_benchmarks(on, name):
    with on(FILES[name], name, 'openmpi') as (check, partition, environ):
        check.benchmarks = check.build = SimpleNamespace(product='/benchmarks/{}'.format)
        if name == 'HPL':
            check.build = SimpleNamespace(product='/hpl/{}'.format)
        check.setup(partition, environ)
        found = []
        for where, tool in (
            (None, ''),
            (environ._env_vars, '/system.so'),
            (check.env_vars, '/mine.so'),
        ):
            if where is not None:
                where['LD_PRELOAD'] = tool
            check.preload_witness()
            found.append(check.env_vars.pop('LD_PRELOAD'))
    own = '/benchmarks/libassay_witness.so'
    assert found == [own, f'/system.so:{own}', f'/mine.so:{own}']


@pytest.mark.parametrize(
    ('name', 'environment', 'where', 'fabric', 'scale', 'is_smoke'),
    [
        # A single machine, where a network's messages stay within the node.
        ('Ring', 'openmpi', GOLDEN_NODE, 'shm', '1_node', True),
        ('Ring', 'openmpi', GOLDEN_NODE, 'tcp', '1_node', True),
        ('Ring', 'openmpi', COMPUTE, 'shm', '1_node', True),
        ('Ring', 'openmpi', COMPUTE, 'ucx-ib', '1_node', False),
        ('Ring', 'openmpi', COMPUTE, 'ucx-ib', '2_nodes', True),
        ('Ring', 'openmpi', COMPUTE, 'ucx-ib', '4_nodes', True),
        ('Ring', 'openmpi', COMPUTE, 'ucx-ib', '8_nodes', False),
        ('Ring', 'mpich', SMALL, 'ofi-tcp', '2_nodes', True),
        ('Ring', 'mpich', SMALL, 'ofi-tcp', 'all', False),
        # Applications run over the first network.
        ('MiniFE', 'mpich', GOLDEN_NODE, 'shm', '1_node', True),
        ('MiniFE', 'mpich', COMPUTE, 'shm', '1_node', True),
        ('MiniFE', 'mpich', COMPUTE, 'ucx-ib', '4_nodes', True),
        ('MiniFE', 'mpich', COMPUTE, 'ucx-ib', '8_nodes', False),
        ('MiniFE', 'mpich', COMPUTE, 'ofi-tcp', '2_nodes', False),
        ('MiniFE', 'mpich', SMALL, 'ofi-tcp', '2_nodes', True),
    ],
)
def test_smoke_is_where_a_fabric_shows_itself(
    on, name, environment, where, fabric, scale, is_smoke
):
    case = chosen(name, fabric) | {'scale': scale}
    with on(FILES[name], name, environment, where, **case) as (check, _, _):
        assert ('smoke' in check.tags) == is_smoke


def test_hooks_run_in_their_order():
    """A mistake in the references is told also where the layout does not fit the node."""
    hooks = {
        stage: [hook.__name__ for hook in found]
        for stage, found in MpiCheck.pipeline_hooks().items()
    }
    assert hooks['post_setup'] == [
        'keep_time_limit',
        'assert_chosen_here',
        'read_references',
        'apply_layout',
        'ask_for_hardware_threads',
        'start_only_once',
        'apply_fabric',
    ]
    assert hooks['pre_run'] == [
        'wait_for_turn',
        'tell_provenance',
        'remove_earlier_reports',
        'preload_witness',
        'keep_exit_code',
        'start_by_way_of_others',
        'tell_when_launched',
        'remember_how_it_began',
    ]
    assert hooks['pre_performance'] == ['collect_figures', 'select_references']


def test_no_deprecated_name_is_logged():
    """For it ReFrame would walk the stack at each figure."""
    logged = {name for name, _ in MpiCheck.loggable_attrs()}
    assert {'env_vars', 'fabric', 'leftovers', 'built_hash'} <= logged
    assert 'variables' not in logged


def test_imb_measures_the_sizes_of_its_figures(tmp_path):
    of_a_check = ('mpi/imb', 'IntelMpiBenchmarks', 'mpich')
    text = job_script(
        *GOLDEN_NODE, tmp_path, *of_a_check, fabric='shm', layout='packed', scale='1_node'
    )
    assert re.search(r'\(cd IMB-MPI1 && .*IMB-MPI1 .* -msglen \.\./sizes ', text)
    (sizes,) = tmp_path.rglob('sizes')
    assert {'8', '4194304'} < {*sizes.read_text().split()}


@pytest.mark.parametrize(('progress', 'is_smoke'), [('none', True), ('test', False)])
def test_overlap_in_the_smoke_mode_is_that_of_the_mpi_alone(on, progress, is_smoke):
    with on(*OF_OVERLAP, **chosen('Overlap', 'tcp') | {'progress': progress}) as (check, *_):
        assert ('smoke' in check.tags) == is_smoke and 'maintenance' in check.tags


@pytest.mark.parametrize(('progress', 'is_held'), [('none', False), ('async', True)])
def test_asynchronous_progress_has_to_hide_something(on, progress, is_held):
    case = chosen('Overlap', 'shm') | {'progress': progress}
    with on(*OF_OVERLAP, **case) as (check, partition, environ):
        check._current_partition, check._current_environ = partition, environ
        check.report = json.loads((JOBS / 'Overlap' / 'mpich-shm' / 'result.json').read_text())
        figures = check.figures()
        held = merge(check, layers(check), figures)
        assert figures['overlap'].must_be_held == is_held == ('overlap' in held)


@pytest.mark.parametrize(('said', 'is_on'), [('1', True), ('0', False)])
def test_asynchronous_progress_has_to_be_on(tmp_path, said, is_on):
    (tmp_path / 'out').write_text(f'CVAR: MPIR_CVAR_ASYNC_PROGRESS = {said}\n')
    launch = SimpleNamespace(output=Output((tmp_path / 'out',)))
    with nullcontext() if is_on else pytest.raises(SanityError, match='MPICH does not say that'):
        assert_async_progress('mpich', launch)


def test_how_long_a_start_took_is_held_of_every_check(job):
    @changing
    def starts(folder, init):
        def begin(report):
            for process in report['processes']:
                process['startup'] = {'main': 0.25, 'init': init}

        edit_witness(begin)(folder)
        (folder / 'witness.json.finalized').write_text('{"rank": 0, "finalize": 0.5}\n')

    figures = job(RING, edit=starts(0.125))
    assert [figures[name][0] for name in STARTUP] == [0.25, 0.125, 0.5]
    # openpmix #2036: each of 256 ranks of a node reads its topology, and nothing is wrong.
    assert job(RING, edit=starts(22.0))['mpi_init'][0] == 22.0
    with pytest.raises(PerformanceError, match=r'mpi_init=70\.0'):
        job(RING, edit=starts(70.0))
    assert job.checks[-1].slowest_ranks['mpi_init'].endswith('took 70.0 s in MPI_Init')


@pytest.mark.parametrize(
    ('lacking', 'told'),
    [
        ('figures', 'does not define figures, to turn what the job left into figures'),
        ('verify_answers', "does not define verify_answers, to hold the program's own verdict"),
    ],
)
def test_what_a_check_lacks_is_told_when_it_is_loaded(on, monkeypatch, lacking, told):
    with on('mpi/halo', 'Halo', 'mpich', **chosen('Halo', 'shm')) as (check, _, _):
        check.assert_defined()
        for name in ('verify', lacking):  # as of a check that is no benchmark
            monkeypatch.setattr(type(check), name, getattr(MpiCheck, name))
        with pytest.raises(ReframeError, match=f'^Halo {told}'):
            check.assert_defined()


@pytest.mark.parametrize(
    ('environment', 'version', 'fabric', 'sources'),
    [
        ('mpich', '4.3.2', 'ucx-tcp', 'named'),
        ('mpich', '4.3.2', 'ucx-shm', 'named,any'),
        ('mpich', '4.0.2', 'ucx-tcp', 'named,any'),
        ('openmpi', '5.0.9', 'ucx-tcp', 'named,any'),
    ],
)
def test_receives_that_are_known_to_hang_are_left_out(on, environment, version, fabric, sources):
    of_a_check = ('mpi/matching', 'Matching', environment)
    with on(*of_a_check, **chosen('Matching', fabric)) as (check, partition, environ):
        environ.extras['version'] = version
        check.setup(partition, environ)
        assert f'--source {sources}' in check.arguments


def test_threads_fill_the_cores_of_two_ranks(on):
    of_a_check = ('mpi/threads', 'Threads', 'openmpi', COMPUTE)
    with on(*of_a_check, **chosen('Threads', 'shm')) as (check, *places):
        check.setup(*places)
        assert (check.num_tasks, check.placement.threads, check.threads) == (2, 8, 8)
        assert check.processes.ranks == 16


@pytest.mark.parametrize(
    ('scaling', 'nodes', 'points'),
    [('weak', 1, (512, 1024)), ('weak', 2, (1024, 1024)), ('strong', 2, (512, 1024))],
)
def test_progress_threads_take_every_other_core(on, scaling, nodes, points):
    case = {'fabric': 'tcp', 'scale': f'{nodes}_node{"s" * (nodes > 1)}', 'scaling': scaling}
    with on(*OF_PROGRESS, COMPUTE, **case) as (check, *places):
        check.setup(*places)
        assert (check.num_tasks, check.num_cpus_per_task) == (32 * nodes, 2)
        assert check.all_cores.ranks == 64
        assert check.mesh == (*points, 128)
        assert 'acceptance' in check.tags and not check.tags & {'smoke', 'maintenance'}


def test_a_core_that_the_ranks_leave_computes_nothing_beside_them_either(on, monkeypatch):
    monkeypatch.setattr(launching, 'core_count', lambda processor: 63)
    case = {'fabric': 'tcp', 'scale': '1_node', 'scaling': 'weak'}
    with on(*OF_PROGRESS, COMPUTE, **case) as (check, *places):
        check.setup(*places)
        assert (check.num_tasks, check.all_cores.ranks) == (31, 62)
        assert math.prod(check.mesh) == 62 << 20


def test_progress_threads_against_all_cores(job):
    figures = job(PROGRESS)
    beside_threads, of_all_cores = (
        {one['method']: one for one in json.loads((JOBS / PROGRESS / name).read_text())['results']}
        for name in ('result.json', 'all_cores/result.json')
    )
    rates = [
        {method: one['points_per_second'] for method, one in results.items()}
        for results in (beside_threads, of_all_cores)
    ]
    of_all = rates[0]['threaded'] / max(rates[1]['blocking'], rates[1]['overlapped'])
    assert figures['thread_of_all_cores'][0] == pytest.approx(of_all)
    of_none = rates[0]['threaded'] / rates[0]['overlapped']
    assert figures['thread_of_no_thread'][0] == pytest.approx(of_none)
    # All of them took as many steps.
    waits = {
        method: one['communication_share']['avg'] * one['clocks']['seconds']
        for method, one in beside_threads.items()
        if method != 'compute_only'
    }
    of_blocking = waits['threaded'] / waits['blocking']
    assert figures['wait_of_blocking'][0] == pytest.approx(of_blocking)
    without = waits['overlapped'] / waits['blocking']
    assert figures['wait_of_blocking_without_thread'][0] == pytest.approx(without)


def test_the_mesh_of_a_node_on_one_node_is_measured_once(on):
    for scaling in ('weak', 'strong'):
        case = {'fabric': 'tcp', 'scale': '1_node', 'scaling': scaling}
        with on(*OF_PROGRESS, COMPUTE, **case) as (check, *_):
            assert bool(check.valid_systems) == (scaling == 'weak')


MESSAGES = 'messages that do the same'


@pytest.mark.parametrize(('factor', 'is_told'), [(1.9, False), (2.1, True)])
def test_a_guideline_that_is_violated_in_each_round_is_told(job, factor, is_told):
    def spoil(folder):
        result = json.loads((folder / 'result.json').read_text())
        for one in result['guidelines']:
            is_bad = (one['op'], one['other'], one['size']) == ('bcast', MESSAGES, 4096)
            one['factors'] = [factor if is_bad else 0.9 for _ in one['factors']]
            one['seconds'] = [[times, 1] for times in one['factors']]
        (folder / 'result.json').write_text(json.dumps(result))

    figures = job(Path('Collectives/openmpi-tcp'), spoil)
    assert bool(job.checks[0].finding) == is_told
    assert figures['worst_guideline'][0] == pytest.approx(factor / FACTOR)


def test_memory_of_other_domains_has_figures_of_its_own(job):
    """Each more than twice as far; the second domain is slower by half than the first."""
    seen = []

    def look(check):
        results = []
        for one in check.report['results']:
            slower = 1.5 if one['measure'] == 'latency' else 1 / 1.5
            for start, end in ((0, 0), (0, 1), (1, 0), (1, 1)):
                factor = slower**end * (slower**2 if start != end else 1)
                ends = {'from': start, 'memory_of': end}
                results.append(one | ends | {'value': factor * one['value']})
        check.report['results'] = results
        seen.append({name: figure.value for name, figure in check.figures().items()})

    figures = job(Path('Distances/mpich-shm'), look=look)
    (found,) = seen
    near = {name: figures[name][0] for name in ('own_latency', 'own_bandwidth')}
    assert found['own_latency'] == pytest.approx(1.5 * near['own_latency'])
    assert found['own_bandwidth'] == pytest.approx(near['own_bandwidth'] / 1.5)
    assert found['remote_latency'] == pytest.approx(1.5**3 * near['own_latency'])
    assert found['remote_bandwidth'] == pytest.approx(near['own_bandwidth'] / 1.5**3)
    assert found['slowest_domain_latency'] == pytest.approx(1.5)
    assert found['slowest_domain_bandwidth'] == pytest.approx(1 / 1.5)
    assert found['own_over_remote_latency'] == pytest.approx(1.5 / 1.5**2)
    assert 'remote_latency' not in figures


LACKING = 'threads: this MPI does not give MPI_THREAD_MULTIPLE; use one that was built with it\n'


def lacks_threads(folder):
    """What a job of an MPI without MPI_THREAD_MULTIPLE leaves."""
    (folder / 'rfm_job.err').write_text(LACKING)
    (folder / 'result.json').unlink()


@pytest.mark.parametrize(
    'name',
    [
        'Threads/mpich-shm',
        'HaloProgress/mpich-ucx-tcp',
        'Partitioned/mpich-shm',
        'Overlap/mpich-shm',
    ],
)
def test_an_mpi_without_threads_is_skipped_unless_they_are_promised(job, monkeypatch, name):
    golden = Path(name)
    with pytest.raises(SkipTestError, match='MPICH does not give MPI_THREAD_MULTIPLE here'):
        job(golden, lacks_threads, exitcode=2)

    def promise(check):  # by a feature that the environment has
        monkeypatch.setattr(benchmark, 'PROMISED', 'mpich')

    with pytest.raises(SanityError, match='does not give MPI_THREAD_MULTIPLE'):
        job(golden, lacks_threads, exitcode=2, change=promise)


def test_an_mpi_without_partitioned_messages_is_skipped(job):
    def lacks_them(folder):
        (folder / 'rfm_job.err').write_text('partitioned: this MPI has no MPI_Psend_init; use\n')
        (folder / 'result.json').unlink()

    with pytest.raises(SkipTestError, match='MPICH has no partitioned messages'):
        job(Path('Partitioned/mpich-shm'), lacks_them, exitcode=2)


def test_a_node_of_two_cores_has_no_room_for_victims_and_aggressors(job):
    def put_on_one_node(check):
        check.scale = '1_node'

    with pytest.raises(SkipTestError, match='aggressors are 4 ranks, and there are 2 cores'):
        job(Path('Congestion/openmpi-tcp'), change=put_on_one_node)


@pytest.mark.parametrize(
    ('left', 'word', 'why'),
    [
        ({}, 'was not begun', ''),
        ({'exit_code': '124'}, 'hangs', 'it had not ended after 70 s'),
        # The kernel killed a rank: that is no hang.
        ({'exit_code': '137', 'ended': '3'}, 'crashes', 'ended with exit code 137'),
        (
            {'exit_code': '3', 'ended': '3', 'err': 'collectives: rank 1: a wrong result\n'},
            'gives a wrong answer',
            'a wrong result',
        ),
    ],
)
def test_how_a_start_of_a_tuning_ended(on, tmp_path, left, word, why):
    with on('mpi/tune', 'Tune', 'openmpi', **chosen('Tune', 'shm')) as (check, partition, environ):
        check.setup(partition, environ)
        check._stagedir = str(tmp_path)
        check._job = SimpleNamespace(stdout='out', stderr='err', exitcode=0, state='', nodelist=[])
        (tmp_path / 'start').mkdir()
        for name, text in {**({'out': '', 'err': ''} if left else {}), **left}.items():
            (tmp_path / 'start' / name).write_text(text)
        outcome = check.outcome(Start('start', seconds=70))
    assert outcome.word == word
    assert why in outcome.why


def test_a_defect_that_hangs_is_told(job):
    job(HUNG, exitcode=3, version='4.3.2')
    (check,) = job.checks
    assert check.finding.startswith('MPICH 4.3.2 has: a stream of messages to MPI_ANY_SOURCE hangs')
    assert '(it hung for 20 s; no fixed release is known; ' in check.finding


def test_a_defect_that_should_be_fixed_fails(job, monkeypatch):
    monkeypatch.setattr(AffectedVersions, 'state', lambda self, version: 'fixed')
    with pytest.raises(
        PerformanceError, match=r'MPICH 4\.3\.2 has: .*: this version should have it'
    ):
        job(HUNG, exitcode=3, version='4.3.2')


@pytest.mark.parametrize(
    ('edit', 'exitcode', 'told'),
    [
        (replacing('rfm_job.out', 'defects: hangs\n', ''), 139, '(it ended with exit code 139; '),
        # The word of a reproducer counts.
        (in_output('any-source shows'), 0, '(wrong result; '),
        (in_output('any-source shows'), 139, '(wrong result; '),
    ],
)
def test_how_a_defect_showed_is_told(job, edit, exitcode, told):
    job(HUNG, edit, exitcode=exitcode, version='4.3.2')
    assert told in job.checks[0].finding


def test_what_was_left_for_a_default_that_does_not_start(job, monkeypatch):
    """What forces the fabric of the start beside it was not left."""
    monkeypatch.setenv('OMPI_MCA_pml', 'ucx')
    with pytest.raises(SanityError, match='pt2pt ended with exit code 1'):
        job(Path('AsUsersGetIt/openmpi-default'), removed('witness.json'), exitcode=1)
    (check,) = job.checks
    left = {one for one in check.leftovers if one.startswith('OMPI_MCA_')}
    assert left == {'OMPI_MCA_pml=ucx'} and not check.leftovers_seen


@pytest.mark.parametrize(
    ('offered', 'by_sockets', 'said'),
    [
        (
            ['tcp'],
            11 * 10**6,
            'Open MPI of environment openmpi sent over TCP, and the partition has ucx-ib: have it',
        ),
        (['tcp', 'ofi-psm'], 11 * 10**6, ''),  # held against the best of both
        (['tcp'], 0, ''),  # by a device of which no fabric knows
    ],
)
def test_an_mpi_without_the_network_of_the_nodes(tmp_path, offered, by_sockets, said):
    """As Spack builds Open MPI by default: spack/spack-packages #3485."""
    hosts = [witnessed.host('n1', [[0, 1]]), witnessed.host('n2', [[0, 1]])]
    ends = ('10.0.0.1:1', '10.0.0.2:1')
    ranks = [
        witnessed.process(
            rank,
            (0,),
            f'n{rank + 1}',
            partners=[witnessed.partner(1 - rank, 1, 10**7)],
            sockets=[witnessed.socket(ends[rank], ends[1 - rank], by_sockets)],
        )
        for rank in (0, 1)
    ]
    where = (CLUSTERS, 'clusters:infiniband', tmp_path, 'mpi/pt2pt', 'AsUsersGetIt', 'openmpi')
    with check_on(*where, scale='2_nodes') as (check, partition, environ):
        partition.features.append('tcp')
        environ.features[:] = ['mpi', 'openmpi', *offered]
        check.setup(partition, environ)
        check.tell_of_devices(witnessed.report(ranks, hosts))
    assert check.finding.startswith(said) and bool(check.finding) == bool(said)


def test_a_default_that_is_slow(job):
    def slow(check):
        check.best_times = lambda size: [40.0, 1.0]

    with pytest.raises(PerformanceError, match=r'latency_over_forced=40\.0'):
        job(DEFAULT, change=slow)


def test_the_binding_that_a_partition_declares(on):
    of_a_check = ('mpi/pt2pt', 'AsUsersGetIt', 'mpich')
    with on(*of_a_check, scale='1_node') as (check, partition, environ):
        assert 'maintenance' in check.tags and 'smoke' not in check.tags
        partition.extras['default_binding'] = 'core'
        check.setup(partition, environ)
        assert check.placement.declared == 'core' and check.way == 'shm'
        partition.extras['default_binding'] = 'cores'
        with pytest.raises(ReframeError, match='has to be one of core, numa, socket, none'):
            check.apply_layout()


def test_hardware_threads_against_cores(on):
    case = chosen('Halo', 'shm') | {'layout': 'threads'}
    with on('mpi/halo', 'Halo', 'mpich', **case) as (check, partition, environ):
        (golden,) = (JOBS / 'Halo').glob('mpich-*')
        check.report = json.loads((golden / 'result.json').read_text())
        check.rate_of_packed = check.select(method='blocking')['points_per_second'] / 1.5
        assert check.figures()['threads_of_packed'].value == pytest.approx(1.5)
        with pytest.raises(SkipTestError, match='layout threads is packed'):
            check.setup(partition, environ)
