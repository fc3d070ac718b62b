"""miniFE's problems and reports: real outputs of upstream, whole, killed, and of the wrong run."""

import math
from pathlib import Path

import pytest

from assay.programs.application import Problem, WrongAnswerError
from assay.programs.minife import MiniFE

GOLDEN = Path(__file__).parents[1] / 'golden' / 'minife'
CUBE = Problem(['nx=100'], facts={'elements': (100, 100, 100)})
REF, OPENMP = 'minife-ref-nx100-openmpi-np2', 'minife-openmp-nx100-t2-mpich-np1'


def read(folder, name, problem=CUBE, ranks=2, threads=1, output=None, report=None):
    """What MiniFE says of a golden output, with text in place of the golden one if given."""
    if report is None and (GOLDEN / f'{name}.yaml').exists():
        report = (GOLDEN / f'{name}.yaml').read_text()
    if report is not None:
        mesh = '10x10x10' if 'nxabc' in name else '100x100x100'
        (folder / f'miniFE.{mesh}.P{ranks}.2026:11:21-00:56:51.yaml').write_text(report)
    if output is None:
        output = (GOLDEN / f'{name}.out').read_text()
    return MiniFE().read(output, folder, problem, ranks, threads)


def test_upstream(tmp_path):
    figures = read(tmp_path, REF)
    values = {name: figure.value for name, figure in figures.items()}
    assert values['assembly_time'] == 2.19345
    assert values['matvec_rate'] == pytest.approx(10.9629 / values['matvec_time'], rel=1e-4)
    assert values['cg_rate'] == pytest.approx(13.5689 / values['cg_time'], rel=1e-4)
    assert values['total_time'] > values['cg_time'] > values['matvec_time']
    assert figures['matvec_rate'].better == 'higher'
    assert figures['total_time'].better == 'lower'
    assert 'matvec_of_limit' not in figures


JOBS = GOLDEN.parent / 'jobs'
BY_BOTH = {
    'ours': (JOBS / 'MiniFE/openmpi-shm', 'Solution at the centre'),
    'upstream': (JOBS / 'MiniFEUpstream/openmpi-shm', 'solution matches analytic'),
}


@pytest.mark.parametrize('whose', BY_BOTH)
def test_a_solution_that_was_to_be_checked(whose):
    """An output that says nothing of the check is no right answer; a larger one has none."""
    folder, check = BY_BOTH[whose]
    output = (folder / 'rfm_job.out').read_text()
    checked = Problem(['nx=34', 'verify_solution=1'], facts={'elements': (34, 34, 34)})
    unchecked = Problem(['nx=34'], facts=checked.facts)
    assert check in output
    assert MiniFE().read(output, folder, checked, 2, 1)
    without = output.replace(check, 'something')
    assert MiniFE().read(without, folder, unchecked, 2, 1)
    with pytest.raises(WrongAnswerError, match='did not hold its solution against the analytic'):
        MiniFE().read(without, folder, checked, 2, 1)


def test_ours_without_its_residual():
    folder, _ = BY_BOTH['ours']
    output = (folder / 'rfm_job.out').read_text().replace('True residual', 'Residual')
    problem = Problem(['nx=34'], facts={'elements': (34, 34, 34)})
    with pytest.raises(WrongAnswerError, match='did not check its residual'):
        MiniFE().read(output, folder, problem, 2, 1)


def test_upstream_with_threads(tmp_path):
    assert 'cg_rate' in read(tmp_path, OPENMP, ranks=1, threads=2)
    with pytest.raises(WrongAnswerError, match='OpenMP Max Threads:: 2, not 1'):
        read(tmp_path, OPENMP, ranks=1, threads=1)


@pytest.mark.parametrize(
    ('name', 'sentence'),
    [
        ('fail-minife-nxabc-mpich-np1', 'not one report of 100x100x100 on 2 ranks but .*10x10x10'),
        ('fail-minife-nx1-mpich-np2', 'miniFE says: One or more processors have 0 equations'),
        ('fail-minife-sigkill-direct-openmpi-np2', 'left not one report of .* but none'),
        ('fail-minife-mpichbin-under-ompi-np2', '2 miniFE ran beside each other'),
    ],
)
def test_failures_of_upstream(tmp_path, name, sentence):
    with pytest.raises(WrongAnswerError, match=sentence):
        read(tmp_path, name)


@pytest.mark.parametrize(
    ('old', 'new', 'sentence'),
    [
        ('Initial Residual = 101.005', '', 'no residual'),
        ('Iteration = 140', 'Iteration = 141', 'no residual of iteration 140'),
        ('Residual = 0.0183581', 'Residual = nan', 'is no finite number'),
        ('Residual = 0.0183581', 'Residual = x', 'is no finite number'),
        ('Initial Residual = 101.005', 'Initial Residual = 1e-9', 'from residual 1e-09'),
        ('Final', 'max absolute error is 0.3:\nFinal', 'not the analytic one'),
        ('Final', 'True residual 1, difference 2: FAILED\nFinal', 'own check failed: True res'),
        ('Final', 'miniFE::cg_solve ERROR, numerical breakdown!\nFinal', 'numerical breakdown'),
    ],
)
def test_wrong_outputs(tmp_path, old, new, sentence):
    output = (GOLDEN / f'{REF}.out').read_text().replace(old, new)
    with pytest.raises(WrongAnswerError, match=sentence):
        read(tmp_path, REF, output=output)


@pytest.mark.parametrize(
    ('old', 'new', 'sentence'),
    [
        ('Total Program Time', 'Total', 'is not whole'),
        ('Iterations: 200', 'Iterations: many', 'no number'),
        ('Iterations: 200', 'Iterations: 0', 'in 0 iterations'),
        ('number of processors: 2', 'number of processors: 1', 'processors: 1, not 2'),
        ('ny: 100', 'ny: 10', 'dimensions: ny: 10, not 100'),
        ('Global NNZ: 27270901', 'Global NNZ: 27270900', 'Global NNZ: 27270900, not 27270901'),
        ('MATVEC Time', 'MATVEC', 'lacks CG solve: MATVEC Time'),
        ('Global Nrows: 1030301', 'Global Nrows: .inf', 'Global Nrows: inf'),
        ('Mini-Application Name: miniFE', 'Implementation: assay', 'no verdict'),
        (
            'Mini-Application Name: miniFE',
            'Implementation: assay\nVerdict: PASSED',
            'did not check its residual',
        ),
        ('Mini', '{', 'is not whole'),
    ],
)
def test_wrong_reports(tmp_path, old, new, sentence):
    report = (GOLDEN / f'{REF}.yaml').read_text()
    assert old in report
    with pytest.raises(WrongAnswerError, match=sentence):
        read(tmp_path, REF, report=report.replace(old, new, 1))


def test_a_report_with_garbage(tmp_path):
    report = tmp_path / 'miniFE.100x100x100.P2.2026:11:21-00:56:51.yaml'
    report.write_bytes(b'Mini-Application Name: \xff\xfe')
    output = (GOLDEN / f'{REF}.out').read_text()
    with pytest.raises(WrongAnswerError, match='is not whole'):
        MiniFE().read(output, tmp_path, CUBE, 2, 1)


def test_time_of_zero_is_no_rate(tmp_path):
    report = (GOLDEN / f'{REF}.yaml').read_text()
    lines = ['  DOT Time: 0' if 'DOT Time' in line else line for line in report.splitlines()]
    with pytest.raises(WrongAnswerError, match=r'dot_.* of miniFE is no number above zero'):
        read(tmp_path, REF, report='\n'.join(lines))


@pytest.mark.parametrize('size', [1e6, 8 << 20, 16 << 20, 3.7e9, 80e9])
def test_problem_fits(size):
    problem = MiniFE().problem(size, ranks=2, threads=1)
    edge = problem.facts['elements'][0]
    assert problem.arguments[0] == f'nx={edge}'
    assert 376 * (edge + 1) ** 3 <= size < 376 * (edge + 2) ** 3
    assert ('verify_solution=1' in problem.arguments) == (edge <= 200)


def test_too_small():
    with pytest.raises(ValueError, match='needs 10152 bytes at least'):
        MiniFE().problem(1000, ranks=1, threads=1)


def bisected(sizes, axis, ranks):
    """Sizes of the boxes, as in sources/minife/partition.cpp."""
    if ranks == 1:
        return [sizes]
    upper = ranks - ranks // 2
    part = int(sizes[axis] * (upper / ranks))
    boxes = []
    for count, size in ((ranks // 2, sizes[axis] - part), (upper, part)):
        box = (*sizes[:axis], size, *sizes[axis + 1 :])
        boxes += bisected(box, (axis + 2) % 3, count)
    return boxes


def test_smallest_problem_has_elements_for_all_ranks():
    for ranks in [*range(1, 70), 100, 127, 128, 129, 511, 640]:
        with pytest.raises(ValueError) as error:
            MiniFE().problem(1, ranks, 1)
        least = int(str(error.value).split('^')[0].split()[-1])
        boxes = bisected((least,) * 3, 2, ranks)
        assert len(boxes) == ranks
        assert sum(map(math.prod, boxes)) == least**3
        assert min(map(min, boxes)) >= 1
