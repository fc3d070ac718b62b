"""``minife``: the residuals of upstream, its own verdict, and that no damaged run passes."""

import re

import pytest
import yaml
from wrong_kernels import hardest
from wrong_kernels.minife import MUTANTS

from assay import paths
from assay.programs.application import WrongAnswerError
from assay.programs.minife import MiniFE
from families import dealt, on_one_mpi

UPSTREAM = yaml.safe_load((paths.ROOT / 'tests/golden/minife/upstream.yaml').read_text())['runs']

# Threads that wait for each other on cores they share would burn them.
PATIENT = {'OMP_WAIT_POLICY': 'passive'}


def residuals(output):
    """As they are printed, by iteration; 0 for the initial one."""
    found = re.findall(r'^(?:Initial|Iteration = (\d+)  ) Residual = (\S+)$', output, re.MULTILINE)
    return {int(iteration or 0): residual for iteration, residual in found}


def report_of(run):
    (path,) = run.files.glob('miniFE.*.yaml')
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize('upstream', UPSTREAM, ids=lambda run: run['arguments'])
@dealt(('ranks', 'threads'), [(1, 3), (2, 2), (4, 1)])
def test_residuals_of_upstream(launch, upstream, ranks, threads):
    done = launch(
        'minife', *upstream['arguments'].split(), ranks=ranks, threads=threads, env=PATIENT
    )
    assert done.code == 0, done.out + done.err
    printed = residuals(done.out)
    assert printed.items() >= upstream['equal'].items()
    for iteration, (low, high) in upstream['differ'].items():
        assert low / 2 <= float(printed[iteration]) <= 2 * high

    report = report_of(done)
    shares, matrix = upstream['ranks'][ranks], report['Matrix attributes']
    assert matrix['Global Nrows'] == upstream['rows']
    assert matrix['Global NNZ'] == upstream['nonzeros']
    assert [matrix[f'Rows per proc {which}'] for which in ('MIN', 'MAX')] == shares['rows']
    assert [matrix[f'NNZ per proc {which}'] for which in ('MIN', 'MAX')] == shares['nonzeros']
    imbalance = report['Rows-per-proc Load Imbalance']
    assert imbalance['Largest (from avg, %)'] == shares['imbalance']
    assert imbalance['Std Dev (%)'] == shares['deviation']
    fewest, most = upstream['iterations']
    assert fewest - 1 <= report['CG solve']['Iterations'] <= most + 1


def keys(part, where=''):
    """Of a report and all its parts."""
    found = {where}
    for key, value in part.items() if isinstance(part, dict) else []:
        found |= keys(value, f'{where}/{key}')
    return found


KERNELS_IN_CACHES = {
    'matvec': 'Gflop/s',
    'dot': 'Gflop/s',
    'waxpy': 'Gflop/s',
    'assembly': 'Melement/s',
}


@on_one_mpi
def test_report_and_figures(launch, tmp_path):
    problem = MiniFE().problem(6e6, ranks=2, threads=2)
    done = launch('minife', *problem.arguments, 'name=mine', ranks=2, threads=2, env=PATIENT)
    assert done.code == 0, done.out + done.err
    assert done.out.splitlines()[0].startswith('miniFE, Implementation: assay ')
    assert 'miniFE.24x24x24.P2.T2.mine.20' in done.out
    figures = MiniFE().read(done.out + done.err, tmp_path, problem, 2, 2)
    assert {'cg_rate', 'matvec_time', 'matvec_of_limit', 'total_time'} <= figures.keys()
    report = report_of(done)
    golden = paths.ROOT / 'tests/golden/minife/minife-openmp-nx100-t2-mpich-np1.yaml'
    assert keys(report) >= keys(yaml.safe_load(golden.read_text()))
    assert report['Implementation'] == 'assay'
    found = re.search(r'^Windows of MATVEC: (\d+); best (\S+) Gflop/s of ', done.out, re.MULTILINE)
    assert found is not None
    assert 0 < int(found[1]) < report['CG solve']['Iterations']
    assert figures['matvec_rate'].value == float(found[2])
    assert {'cg_rate', 'dot_rate', 'waxpy_rate', 'matvec_whole_of_best'} <= figures.keys()
    for kernel, unit in KERNELS_IN_CACHES.items():
        assert figures[f'{kernel}_in_caches_rate'].unit == unit
        assert figures[f'{kernel}_in_caches_of_control'].unit == '1'
    with pytest.raises(WrongAnswerError, match='left not one report'):
        MiniFE().read(done.out, tmp_path, problem, 4, 2)


# Boxes of one layer of elements, one row of nodes, fewer lines than threads.
@dealt('mesh', ['nx=1 ny=1 nz=4', 'nx=9 ny=9 nz=2'])
def test_thin_meshes_are_the_same_on_all_ranks(launch, mesh):
    alone = launch('minife', *mesh.split(), threads=4, env=PATIENT)
    shared = launch('minife', *mesh.split(), 'mv_overlap_comm_comp=1', ranks=2, env=PATIENT)
    assert (alone.code, shared.code) == (0, 0), alone.err + shared.err
    assert residuals(alone.out)[0] == residuals(shared.out)[0]


CG = r'True residual \S+, difference to that of CG'
HALO = 'Halo, what arrived is not what was sent'
# Rank 1 of 2 receives, and sends, one message in the product that starts CG, one in each of the 65
# iterations, and one in the check.
FAULTS = {
    'stale': ('drop_message', 5, 0, CG),
    'stale, overlapped': ('drop_message', 30, 1, CG),
    'lost in the check': ('drop_message', 66, 0, HALO),
    'zeros': ('zero_message', 12, 0, CG),
    'always zeros': ('zero_message', -1, 1, HALO),
}


@dealt('case', FAULTS)
def test_damaged_halos_are_found(launch, fault, case):
    library, message, overlap, oracle = FAULTS[case]
    done = launch(
        'minife',
        *('nx=20', f'mv_overlap_comm_comp={overlap}'),
        ranks=2,
        preload=fault(library),
        env={'DROP_MESSAGE': str(message), 'ZERO_MESSAGE': str(message)},
    )
    assert library in done.err
    assert done.code == 1
    assert re.search(rf'^{oracle}.*: FAILED$', done.out, re.MULTILINE), done.out
    assert 'Verdict: FAILED' in done.out
    assert report_of(done)['Verdict'] == 'FAILED'


@on_one_mpi
def test_perturbed_operator_is_found(launch, changed):
    product = 'weighted[Z][lane] * gradient[b][Z][lane]'
    program = changed('minife/element.cpp', product, f'1.000001 * {product}')
    done = launch(program, 'nx=12', 'verify_solution=1', ranks=2, sanitize=False)
    assert done.code == 1, done.err
    assert re.search(rf'^{CG}.*: FAILED$', done.out, re.MULTILINE), done.out


@pytest.mark.parametrize(
    ('arguments', 'ranks', 'sentence'),
    [
        ('nx=abc', 1, 'nx=abc is wrong; give a whole number from 1 to'),
        ('nz=-4', 1, 'nz=-4 is wrong; give a whole number from 1 to'),
        ('fast=1', 1, 'unknown option fast'),
        ('nx', 1, 'nx has no value'),
        ('load_imbalance=much', 1, 'load_imbalance=much is not a percentage'),
        ('nx=100000', 2, 'GiB are available; use a smaller mesh'),
        ('nx=1', 2, '1 x 1 x 1 elements are too few for 2 ranks'),
    ],
)
@on_one_mpi
def test_wrong_use(launch, arguments, ranks, sentence):
    done = launch('minife', *arguments.split(), ranks=ranks)
    assert done.code == 2
    assert sentence in done.err
    assert 'Residual' not in done.out


@on_one_mpi
def test_help(launch):
    assert 'mpirun -n 2 minife nx=100' in launch('minife', '--help').out
    dashed = launch('minife', '-nx', '4', '--ny=3')
    assert '4 x 3 x 3 elements' in dashed.out


@on_one_mpi
@pytest.mark.parametrize('mutant', hardest(MUTANTS), ids=lambda mutant: mutant.name)
def test_wrong_kernels_are_noticed(complaint, mutant):
    """The few hardest; ``measurements/mutants.py`` tries them all."""
    said = complaint('minife', mutant)
    assert said
    assert 'exit code' not in said  # it ran, and its output was refused
