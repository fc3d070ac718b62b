"""Wrong HPLs: other systems, wrong factors and solutions, wrong norms, wrong times."""

from __future__ import annotations

from dataclasses import replace

from assay.programs.application import Problem
from assay.programs.hpl import Hpl
from wrong_kernels import SINGLE_PRECISION_PRODUCTS, Built, Mutant, complaint_of_application

#: Order, ranks and threads. Of some the greatest element of x is in the first half, of some not.
_RUNS = ((160, 2, 1), (224, 4, 1), (96, 1, 2))


def complaint(built: Built, program: str) -> str:
    """What the check says of the first run that it refuses."""
    application = Hpl()
    for order, ranks, threads in _RUNS:
        problem = _of_two_tests(application.problem(8.0 * order * order, ranks, threads))
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


def _of_two_tests(problem: Problem) -> Problem:
    lines = problem.files['HPL.dat'].splitlines()
    lines[4:6] = ['2 sizes', f'{problem.facts["n"]} {problem.facts["n"]}']
    facts = {**problem.facts, 'runs': 2}
    return replace(problem, files={'HPL.dat': '\n'.join(lines) + '\n'}, facts=facts)


MUTANTS = [
    Mutant(
        'hpl',
        'another seed',
        'hpl/matrix.cpp',
        'SEED = 100;',
        'SEED = 101;',
        hard=True,
    ),
    Mutant(
        'hpl',
        'easier matrix',
        'hpl/matrix.cpp',
        'to[row] = element(x);',
        'to[row] = element(x) + (row + row_map.block * 0 == column ? 10 : 0);',
    ),
    Mutant(
        'hpl',
        'scaled system',
        'hpl/matrix.cpp',
        'return 0.5 - static_cast<double>(x) * 0x1p-64;',
        'return 2 * (0.5 - static_cast<double>(x) * 0x1p-64);',
    ),
    Mutant(
        'hpl',
        'scaled by a millionth',
        'hpl/matrix.cpp',
        'return 0.5 - static_cast<double>(x) * 0x1p-64;',
        'return 1.000001 * (0.5 - static_cast<double>(x) * 0x1p-64);',
    ),
    Mutant(
        'hpl',
        'another increment',
        'hpl/matrix.cpp',
        '6364136223846793005, 1 };',
        '6364136223846793005, 3 };',
    ),
    Mutant(
        'hpl',
        'every column the same start',
        'hpl/matrix.cpp',
        'STEP.power(1 + first_row + global_column * order)',
        'STEP.power(2 + first_row + global_column * order)',
    ),
    Mutant(
        'hpl',
        'row sums lose the last row',
        'hpl/residual.cpp',
        'r.a_max = greatest_of(greatest_magnitude(row_sums.data(), rows)',
        'r.a_max = greatest_of(greatest_magnitude(row_sums.data(), rows / 2)',
    ),
    Mutant(
        'hpl',
        'norm of A loses columns',
        'hpl/residual.cpp',
        'r.a_one = greatest_of(greatest_magnitude(column_sums.data(), columns)',
        'r.a_one = greatest_of(greatest_magnitude(column_sums.data(), columns / 2)',
        hard=True,
    ),
    Mutant(
        'hpl',
        'norm of the residual skips half of the rows',
        'hpl/residual.cpp',
        'r.difference = greatest_of(greatest_magnitude(difference.data(), rows)',
        'r.difference = greatest_of(greatest_magnitude(difference.data(), rows / 2)',
    ),
    Mutant(
        'hpl',
        'norm of x halved',
        'hpl/residual.cpp',
        'r.x_max = greatest_of(greatest_magnitude(x, columns)',
        'r.x_max = greatest_of(greatest_magnitude(x, columns / 2)',
    ),
    Mutant(
        'hpl',
        'norm of b loses rows',
        'hpl/residual.cpp',
        'double b_max = greatest_magnitude(difference.data(), rows);',
        'double b_max = greatest_magnitude(difference.data(), rows / 2);',
    ),
    Mutant(
        'hpl',
        'residual of half of the columns',
        'hpl/residual.cpp',
        'difference[i] -= a[i] * of_x;',
        'difference[i] -= (j % 2 ? 1 : 0.999999) * a[i] * of_x;',
    ),
    Mutant(
        'hpl',
        'residual is none',
        'hpl/residual.cpp',
        'r.scaled = r.difference /',
        'r.scaled = 1e-3 * r.difference /',
    ),
    Mutant(
        'hpl',
        'single precision in U',
        'hpl/solver.cpp',
        '        interchange.take(begin, end, u_tile);\n',
        '        interchange.take(begin, end, u_tile);\n'
        '        for (int i = 0; i < width * columns; i++)\n'
        '            u_tile[i] = static_cast<float>(u_tile[i]);\n',
    ),
    Mutant(
        'hpl',
        '12 bits lost in U',
        'hpl/solver.cpp',
        '        blas_solve_unit_lower(width, columns,',
        '        for (int i = 0; i < width * columns; i++)\n'
        '            u_tile[i] = (u_tile[i] + 4096 * u_tile[i]) - 4096 * u_tile[i];\n'
        '        blas_solve_unit_lower(width, columns,',
    ),
    Mutant(
        'hpl',
        'one element of U in single precision',
        'hpl/solver.cpp',
        '        blas_solve_unit_lower(width, columns,',
        '        u_tile[0] = static_cast<float>(u_tile[0]);\n'
        '        blas_solve_unit_lower(width, columns,',
    ),
    Mutant(
        'hpl',
        'last row of the update left out',
        'hpl/solver.cpp',
        'blas_subtract_product(panel.rows - panel.diagonal_rows, columns',
        'blas_subtract_product(std::max(panel.rows - panel.diagonal_rows - 1, 0), columns',
    ),
    Mutant(
        'hpl',
        'last column of the update left out',
        'hpl/solver.cpp',
        '        const int width = panel.width, columns = end - begin;',
        '        const int width = panel.width, columns = std::max(end - begin - 1, 0);',
    ),
    Mutant(
        'hpl',
        'pivot not sought',
        'hpl/panel.cpp',
        '    std::uint64_t size = greatest_size(values + row, panel->rows - row);',
        '    std::uint64_t size = size_of(values[row]);',
        why='no partial pivoting: a larger residual',
    ),
    Mutant(
        'hpl',
        'pivots sought in half of the rows',
        'hpl/panel.cpp',
        'greatest_size(values + row, panel->rows - row);',
        'greatest_size(values + row, (panel->rows - row + 1) / 2);',
        why='less work, and a larger residual',
        hard=True,
    ),
    Mutant(
        'hpl',
        'L scaled',
        'hpl/panel.cpp',
        'const double factor = pivot != 0 ? 1 / pivot : 1;',
        'const double factor = pivot != 0 ? 1.0000001 / pivot : 1;',
    ),
    Mutant(
        'hpl',
        'elimination loses precision',
        'hpl/panel.cpp',
        'x[i] -= l[i] * by;',
        'x[i] -= static_cast<float>(l[i] * by);',
    ),
    Mutant(
        'hpl',
        'substitution without the last rows',
        'hpl/substitution.cpp',
        'y + from);',
        'y + from + (0 * to));',
        equivalent='the same address',
    ),
    Mutant(
        'hpl',
        'substitution by half',
        'hpl/substitution.cpp',
        'blas_add_product_vector(to - from, width, -1,',
        'blas_add_product_vector(to - from, width, -0.9999999,',
    ),
    Mutant(
        'hpl',
        'sum of process columns is the greatest',
        'hpl/substitution.cpp',
        'MPI_DOUBLE, MPI_SUM,',
        'MPI_DOUBLE, MPI_MAX,',
    ),
    Mutant(
        'hpl',
        'pending rows left out',
        'hpl/substitution.cpp',
        '        pending_rows = above;',
        '        pending_rows = above / 2;',
    ),
    Mutant(
        'hpl',
        'least of its times',
        'hpl/main.cpp',
        '&value, 1, MPI_DOUBLE, MPI_MAX, comm',
        '&value, 1, MPI_DOUBLE, MPI_MIN, comm',
    ),
    Mutant(
        'hpl',
        'clock runs slow',
        'hpl/main.cpp',
        'timing.whole.add(start, assay::Instant::now());',
        'timing.whole.add(start, assay::Instant::now()); timing.whole.seconds *= 0.98;',
    ),
    Mutant(
        'hpl',
        'panels not timed',
        'hpl/solver.cpp',
        'factored.add(start, assay::Instant::now());',
        ';',
    ),
    Mutant(
        'hpl',
        'pause counted twice',
        'hpl/main.cpp',
        'bouts.paused().seconds - paused_before;',
        '2 * (bouts.paused().seconds - paused_before);',
    ),
    Mutant(
        'hpl',
        'more operations',
        'hpl/report.cpp',
        '(2 * order / 3 + 1.5) * 1e-9',
        '(2.001 * order / 3 + 1.5) * 1e-9',
    ),
    Mutant(
        'hpl',
        'update timed in part',
        'hpl/solver.cpp',
        'phases.update.add(took);',
        'phases.update.add(took); phases.update.seconds -= 0.5 * took.seconds;',
        hard=True,
    ),
    Mutant(
        'hpl',
        'fewer columns solved',
        'hpl/solver.cpp',
        'for (int first = 0; first < matrix.n; first +=',
        'for (int first = 0; first < matrix.n - matrix.row_map.block; first +=',
    ),
    Mutant(
        'hpl',
        'x in single precision',
        'hpl/substitution.cpp',
        'blas_solve_upper(width, matrix.at(row, column), matrix.ld, solved);',
        'blas_solve_upper(width, matrix.at(row, column), matrix.ld, solved);\n'
        '            for (int i = 0; i < width; i++)\n'
        '                solved[i] = static_cast<float>(solved[i]);',
    ),
    Mutant(
        'hpl',
        'a row of the last interchange left where it is',
        'hpl/interchange.cpp',
        'out[map.owner(place)].push_back({ row - panel.first, map.local(place) });',
        'if (panel.first + 2 * panel.width < matrix.n || row > panel.first)\n'
        '            out[map.owner(place)].push_back({ row - panel.first, map.local(place) });',
    ),
    Mutant(
        'hpl',
        'update timed behind itself',
        'hpl/solver.cpp',
        'assay::Time took;\n        took.add(start, assay::Instant::now());\n        took.sub',
        'assay::Time took;\n        took.add(assay::Instant::now(), assay::Instant::now());\n'
        '        took.sub',
    ),
    Mutant(
        'hpl',
        'panel timed behind itself',
        'hpl/solver.cpp',
        'factorisation(panel);\n            factored',
        'factorisation(panel);\n            start = assay::Instant::now();\n            factored',
    ),
    Mutant(
        'hpl',
        'substitution timed behind itself',
        'hpl/solver.cpp',
        'const assay::Instant start = assay::Instant::now();\n    Buffer x = substitute(matrix);',
        'Buffer x = substitute(matrix);\n    const assay::Instant start = assay::Instant::now();',
    ),
    Mutant(
        'hpl',
        'test timed behind itself',
        'hpl/main.cpp',
        'const assay::Instant start = assay::Instant::now();\n'
        '    Buffer x = solve(matrix, algorithm, timing.phases, bouts, first_step);',
        'Buffer x = solve(matrix, algorithm, timing.phases, bouts, first_step);\n'
        '    const assay::Instant start = assay::Instant::now();',
    ),
    Mutant(
        'hpl',
        'updates in windows of half the time',
        'hpl/solver.cpp',
        'bouts.add(UPDATE, took,',
        'took.seconds *= 0.5, bouts.add(UPDATE, took,',
    ),
    Mutant(
        'hpl',
        'updates of more operations',
        'hpl/solver.cpp',
        'return 2 * width * order * order +',
        'return 2.2 * width * order * order +',
    ),
    Mutant(
        'hpl',
        'steps in windows of half the time',
        'hpl/solver.cpp',
        'bouts.add(FACTORISATION, took,',
        'took.seconds *= 0.5, bouts.add(FACTORISATION, took,',
    ),
    Mutant(
        'hpl',
        'steps of more operations',
        'hpl/solver.cpp',
        'return 2.0 / 3 *',
        'return 2.1 / 3 *',
    ),
    Mutant(
        'hpl',
        'windows of the narrow steps',
        'hpl/solver.cpp',
        'return first == 0 || first + matrix.row_map.block <= matrix.n / 2;',
        'return first == 0 || first + matrix.row_map.block > matrix.n / 2;',
    ),
    Mutant(
        'hpl',
        'limit of half the operations',
        'common/dgemm_limit.c',
        '.rate = 2.0 * dgemm->n',
        '.rate = 1.0 * dgemm->n',
    ),
    Mutant(
        'hpl',
        'limit of the last rank',
        'common/dgemm_limit.c',
        '* dgemm->k * ranks /',
        '* dgemm->k * (ranks > 1 ? ranks - 1 : 1) /',
    ),
    Mutant(
        'hpl',
        'fraction of more',
        'hpl/main.cpp',
        'reached.limit = bouts.of_limit(1);',
        'reached.limit = bouts.of_limit(1.1);',
    ),
    Mutant(
        'hpl',
        'panels not waited for in the time',
        'hpl/solver.cpp',
        '        phases.wait.add(start, assay::Instant::now());\n        if (!owns',
        '        if (!owns',
    ),
    Mutant(
        'hpl',
        'earlier messages not waited for in the time',
        'hpl/solver.cpp',
        '        phases.wait.add(begun);\n',
        '',
    ),
    Mutant(
        'hpl',
        'rows exchanged before the time',
        'hpl/solver.cpp',
        '        start = assay::Instant::now();\n        begun = {};\n'
        '        interchange.exchange(column, matrix.columns);',
        '        begun = {};\n'
        '        interchange.exchange(column, matrix.columns);\n'
        '        start = assay::Instant::now();',
    ),
    Mutant(
        'hpl',
        'products in single precision',
        'common/blas.c',
        *SINGLE_PRECISION_PRODUCTS,
    ),
]
