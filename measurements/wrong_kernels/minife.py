"""Wrong miniFEs: other equations, wrong conjugate gradients, stale halos, wrong times."""

from __future__ import annotations

from assay.programs.minife import MiniFE
from wrong_kernels import Built, Mutant, complaint_of_application

#: Bytes of the problem, ranks and threads: 13 and 16 elements an edge.
_RUNS = ((1.1e6, 1, 3), (1.9e6, 3, 1))


def complaint(built: Built, program: str) -> str:
    """What the check says of the first run that it refuses."""
    application = MiniFE()
    for size, ranks, threads in _RUNS:
        problem = application.problem(size, ranks, threads)
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


MUTANTS = [
    Mutant(
        'minife',
        'dot loses the last thread',
        'minife/solver.cpp',
        'for (const Partial &partial : partials)\n        result += partial.sum;',
        'for (std::size_t t = 0; t + 1 < partials.size() || t == 0; t++)\n'
        '        result += partials[t].sum;',
        hard=True,
    ),
    Mutant(
        'minife',
        'dot loses the other ranks',
        'minife/solver.cpp',
        '    MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n'
        '    return result;',
        '    return result;',
    ),
    Mutant(
        'minife',
        'dot takes the greatest rank',
        'minife/solver.cpp',
        '&result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);',
        '&result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);',
    ),
    Mutant(
        'minife',
        'dot without its last element',
        'minife/solver.cpp',
        '        for (std::int64_t i = part.begin; i < part.end; i++)\n'
        '            sum += x[i] * y[i];',
        '        for (std::int64_t i = part.begin; i < part.end - 1; i++)\n'
        '            sum += x[i] * y[i];',
    ),
    Mutant(
        'minife',
        'alpha too large by 1e-5',
        'minife/solver.cpp',
        'advance(rows, rr / pq, p, q, x, r);',
        'advance(rows, 1.00001 * rr / pq, p, q, x, r);',
    ),
    Mutant(
        'minife',
        'alpha wrong once',
        'minife/solver.cpp',
        'advance(rows, rr / pq, p, q, x, r);',
        'advance(rows, (k == 15 ? 1.001 : 1) * rr / pq, p, q, x, r);',
    ),
    Mutant(
        'minife',
        'beta too small by 1e-5',
        'minife/solver.cpp',
        'beta = rr / before;',
        'beta = 0.99999 * rr / before;',
    ),
    Mutant(
        'minife',
        'beta is none',
        'minife/solver.cpp',
        'beta = rr / before;',
        'beta = 0 * rr / before;',
    ),
    Mutant(
        'minife',
        'beta wrong late',
        'minife/solver.cpp',
        'beta = rr / before;',
        'beta = (k > 12 ? 0.999 : 1) * rr / before;',
    ),
    Mutant(
        'minife',
        '100 iterations',
        'minife/solver.cpp',
        'k <= MOST_ITERATIONS && solution',
        'k <= MOST_ITERATIONS / 10 && solution',
    ),
    Mutant(
        'minife',
        'stops early',
        'minife/solver.cpp',
        'solution.residual > EPSILON; k++',
        'solution.residual > 1e-12; k++',
    ),
    Mutant(
        'minife',
        'says more iterations',
        'minife/solver.cpp',
        'solution.iterations = k;',
        'solution.iterations = k + 1;',
    ),
    Mutant(
        'minife',
        'source too large by 1e-6',
        'minife/element.cpp',
        'batch.source[a][lane] += shape.value',
        'batch.source[a][lane] += 1.000001 * shape.value',
    ),
    Mutant(
        'minife',
        'diffusion too large by 1e-6',
        'minife/element.cpp',
        'sum[lane] += weighted[X][lane] * gradient[b][X][lane] +',
        'sum[lane] += 1.000001 * weighted[X][lane] * gradient[b][X][lane] +',
    ),
    Mutant(
        'minife',
        'shape at a wrong point',
        'minife/element.cpp',
        'double at = corner_at(point, axis) ? GAUSS : -GAUSS;',
        'double at = corner_at(point, axis) ? GAUSS : -0.99 * GAUSS;',
    ),
    Mutant(
        'minife',
        'anisotropic',
        'minife/element.cpp',
        'slope[axis] = sign / 2;',
        'slope[axis] = (axis == 2 ? 1.0001 : 1) * sign / 2;',
    ),
    Mutant(
        'minife',
        'face of another value',
        'minife/assembly.cpp',
        'return x == mesh.elements[X] ? 1 : 0;',
        'return x == mesh.elements[X] ? 1.00001 : 0;',
        why='the oracle asks the same function',
    ),
    Mutant(
        'minife',
        'face at x = 0',
        'minife/assembly.cpp',
        'return x == mesh.elements[X] ? 1 : 0;',
        'return x == 0 ? 1 : 0;',
        why='the oracle asks the same function',
    ),
    Mutant(
        'minife',
        'edges of the face prescribed too',
        'minife/assembly.cpp',
        'return edge ? 0 : prescribed(mesh, x);',
        'return edge ? 0 * x : 1.00001 * prescribed(mesh, x);',
        why='the oracle asks the same function',
    ),
    Mutant(
        'minife',
        'boundary column stays',
        'minife/assembly.cpp',
        '                    entry = 0;',
        '                    entry *= 1e-6;',
    ),
    Mutant(
        'minife',
        'right-hand side keeps its sign',
        'minife/assembly.cpp',
        'right -= entry *',
        'right += entry *',
    ),
    Mutant(
        'minife',
        'one lane left out',
        'minife/assembly.cpp',
        'for (int lane = 0; lane < count; lane++)\n        for (int corner_x',
        'for (int lane = 0; lane < std::max(count - 1, 1); lane++)\n        for (int corner_x',
    ),
    Mutant(
        'minife',
        'halo sent from a wrong place',
        'minife/halo.cpp',
        'send_buffer[i] = x[to_send[i]];',
        'send_buffer[i] = x[to_send[i ? i - 1 : 0]];',
    ),
    Mutant(
        'minife',
        'halo is never renewed',
        'minife/matvec.cpp',
        '    halo.start(x);\n',
        '    static int calls = 0;\n    if (calls++ < 3)\n        halo.start(x);\n',
    ),
    Mutant(
        'minife',
        'product without its last row',
        'minife/matvec.cpp',
        'rows_times(matrix, part.begin, part.end, x.data(), y.data());',
        'rows_times(matrix, part.begin, part.end - (part.end == matrix.rows), x.data(), y.data());',
    ),
    Mutant(
        'minife',
        'product loses odd parts',
        'minife/matvec.cpp',
        '    even += odd;',
        '    even += 0.999999 * odd;',
    ),
    Mutant(
        'minife',
        'product loses the rest',
        'minife/matvec.cpp',
        '+ rest;',
        '+ 0.99999 * rest;',
    ),
    Mutant(
        'minife',
        'x moves along r',
        'minife/solver.cpp',
        'x[i] += alpha * p[i];',
        'x[i] += alpha * (p[i] + 1e-6 * r[i]);',
    ),
    Mutant(
        'minife',
        'r moves too far',
        'minife/solver.cpp',
        'r[i] -= alpha * q[i];',
        'r[i] -= 1.0001 * alpha * q[i];',
    ),
    Mutant(
        'minife',
        'starts elsewhere',
        'minife/solver.cpp',
        'return from[i] - minus[i]; });',
        'return 1.000001 * from[i] - minus[i]; });',
    ),
    Mutant(
        'minife',
        'CG timed from the fastest rank',
        'minife/main.cpp',
        'MPI_Allreduce(MPI_IN_PLACE, &time.seconds, 1, MPI_DOUBLE, MPI_MAX',
        'MPI_Allreduce(MPI_IN_PLACE, &time.seconds, 1, MPI_DOUBLE, MPI_MIN',
    ),
    Mutant(
        'minife',
        "half of CG's time",
        'minife/solver.cpp',
        'times.total.subtract(times.checked);',
        'times.total.subtract(times.checked); times.total.seconds *= 0.5;',
        hard=True,
    ),
    Mutant(
        'minife',
        'products not timed',
        'minife/solver.cpp',
        'Stopwatch stopwatch(times.matvec);',
        'assay::Time elsewhere; Stopwatch stopwatch(elsewhere);',
    ),
    Mutant(
        'minife',
        'watch runs slow',
        'minife/solver.cpp',
        'total.add(start, assay::Instant::now());\n        assay::require_runs("a kernel',
        'double had = total.seconds;\n        total.add(start, assay::Instant::now());\n'
        '        total.seconds -= 0.1 * (total.seconds - had);\n'
        '        assay::require_runs("a kernel',
    ),
    Mutant(
        'minife',
        'beta wrong in one iteration',
        'minife/solver.cpp',
        'beta = rr / before;',
        'beta = (k == 17 ? 1.00001 : 1) * rr / before;',
        hard=True,
    ),
    Mutant(
        'minife',
        'direction mixed wrong late',
        'minife/solver.cpp',
        'return from[i] + beta * own[i]; });',
        'return from[i] + (i != 1000 || k < 14 ? beta : 0) * own[i]; });',
    ),
    Mutant(
        'minife',
        'windows of half the time',
        'minife/solver.cpp',
        'bouts.add(MATVEC, times.matvec.seconds - before_all.matvec.seconds);',
        'bouts.add(MATVEC, 0.5 * (times.matvec.seconds - before_all.matvec.seconds));',
    ),
    Mutant(
        'minife',
        'windows of more operations',
        'minife/report.cpp',
        'return { 3 * length * 3, 2 * length * 2, 2 * nonzeros };',
        'return { 3 * length * 3, 2 * length * 2, 2.0002 * nonzeros };',
    ),
    Mutant(
        'minife',
        'more operations of a product',
        'minife/report.cpp',
        'one.matvec * (iterations + 1) };',
        'one.matvec * (iterations + 2) };',
    ),
    Mutant(
        'minife',
        'assembly timed in part',
        'minife/main.cpp',
        'take_slowest(name, time);',
        'time.seconds *= 0.99; take_slowest(name, time);',
    ),
    Mutant(
        'minife',
        'total without the set-up',
        'minife/main.cpp',
        'phases.total.add(start, assay::Instant::now());',
        'phases.total.seconds = 0;',
    ),
    Mutant(
        'minife',
        'products of a dot in single precision',
        'minife/solver.cpp',
        'sum += x[i] * y[i];',
        'sum += static_cast<float>(x[i] * y[i]);',
    ),
    Mutant(
        'minife',
        'halo of one neighbour stale',
        'minife/halo.cpp',
        '    for (const Link &link : links)\n        MPI_Irecv(&x[link.first_ghost], ',
        '    static double elsewhere[10000];\n    for (const Link &link : links)\n'
        '        MPI_Irecv(&link == links.data() ? elsewhere : &x[link.first_ghost], ',
    ),
    Mutant(
        'minife',
        'each seventh step left out',
        'minife/solver.cpp',
        'advance(rows, rr / pq, p, q, x, r);',
        'if (k % 7) advance(rows, rr / pq, p, q, x, r);',
    ),
    Mutant(
        'minife',
        'product before its watch',
        'minife/solver.cpp',
        'Stopwatch stopwatch(times.matvec);\n        product(p, q);',
        'product(p, q);\n        Stopwatch stopwatch(times.matvec);',
    ),
    Mutant(
        'minife',
        'assembly before its watch',
        'minife/main.cpp',
        'phases.assembly = timed("assembly", [&] { assemble(*mesh, matrix, b); });',
        'assemble(*mesh, matrix, b);\n        phases.assembly = timed("assembly", [&] {});',
    ),
    Mutant(
        'minife',
        'structure behind its watch',
        'minife/main.cpp',
        'matrix = matrix_structure(*mesh);\n        });',
        '});\n        matrix = matrix_structure(*mesh);',
    ),
    Mutant(
        'minife',
        'scalar product in caches counted twice',
        'minife/main.cpp',
        '1e-9 * 2 * n_rows',
        '1e-9 * 4 * n_rows',
    ),
    Mutant(
        'minife',
        'scalar product in caches left out',
        'minife/main.cpp',
        'wrong += own_dot(rows, copies[i].p, copies[i].x) != copies[i].times * square;',
        'wrong += i < 0;',
    ),
    Mutant(
        'minife',
        'best window scaled',
        'common/application.cpp',
        'windows.best = best(seconds);',
        'windows.best = 0.999 * best(seconds);',
    ),
    Mutant(
        'minife',
        'a smaller mesh in caches',
        'minife/main.cpp',
        'n = { 8, 8, 8 * job.threads };',
        'n = { 4, 4, 4 * job.threads };',
    ),
    Mutant(
        'minife',
        'assembly in caches of more elements',
        'minife/main.cpp',
        '1e-6 * elements,',
        '1.0001e-6 * elements,',
    ),
    Mutant(
        'minife',
        'time in caches scaled',
        'common/application.cpp',
        'require_runs("a kernel in caches", took, calls);',
        'require_runs("a kernel in caches", took, calls); took.seconds *= 0.99;',
        hard=True,
    ),
    Mutant(
        'minife',
        'scalar product before its watch',
        'minife/solver.cpp',
        'Stopwatch stopwatch(times.dot);\n        return dot(rows, u, v);',
        'double result = dot(rows, u, v);\n        Stopwatch stopwatch(times.dot);\n'
        '        return result;',
    ),
    Mutant(
        'minife',
        'limit halved',
        'common/application.cpp',
        'limits_.push_back(measure_());',
        'limits_.push_back(measure_());\n    limits_.back().rate *= 0.5;',
    ),
    Mutant(
        'minife',
        'limit of fewer bytes',
        'node/node_limits.c',
        'TRIAD_BYTES = 24,',
        'TRIAD_BYTES = 16,',
    ),
    Mutant(
        'minife',
        'limit of two thirds',
        'node/node_limits.c',
        'rate += (double)done / seconds;',
        'rate += 0.66 * (double)done / seconds;',
    ),
    Mutant(
        'minife',
        'limit of the slowest window',
        'node/node_limits.c',
        'TRIAD_BYTES / windows_best(seconds, windows),',
        'TRIAD_BYTES / (windows_best(seconds, windows), seconds[windows - 1]),',
    ),
    Mutant(
        'minife',
        'traffic of more than there is',
        'minife/main.cpp',
        'bouts->of_limit(spread_over_ranks(traffic',
        'bouts->of_limit(1.1 * spread_over_ranks(traffic',
    ),
    Mutant(
        'minife',
        'fraction of the best bout',
        'common/application.cpp',
        'found.fraction = median(fractions);',
        'found.fraction = *std::max_element(fractions.begin(), fractions.end());',
    ),
    Mutant(
        'minife',
        'fraction of the lower slice',
        'common/application.cpp',
        'std::max(limits_[bout].rate, limits_[bout + 1].rate)',
        'std::min(limits_[bout].rate, limits_[bout + 1].rate)',
    ),
    Mutant(
        'minife',
        'iterations of half the time',
        'minife/solver.cpp',
        'bouts.add(ITERATION, times.iterations.seconds - '
        'before_all.iterations.seconds -\n'
        '                                 (times.checked.seconds - '
        'before_all.checked.seconds));',
        'bouts.add(ITERATION, 0.5 * (times.iterations.seconds - '
        'before_all.iterations.seconds -\n'
        '                                 (times.checked.seconds - '
        'before_all.checked.seconds)));',
    ),
    Mutant(
        'minife',
        'iterations of more operations',
        'minife/main.cpp',
        '1e-9 * flops.total()',
        '1.01e-9 * flops.total()',
    ),
    Mutant(
        'minife',
        'steady windows scaled',
        'common/application.cpp',
        'for (const Window &window : steady(all))\n        seconds.push_back(window.seconds);',
        'for (const Window &window : steady(all))\n'
        '        seconds.push_back(0.9 * window.seconds);',
    ),
    Mutant(
        'minife',
        'windows of the fastest rank',
        'common/application.cpp',
        'MPI_DOUBLE, MPI_MAX,\n                  comm_);',
        'MPI_DOUBLE, MPI_MIN,\n                  comm_);',
    ),
    Mutant(
        'minife',
        'scalar product in caches of half',
        'minife/main.cpp',
        'own_dot(rows, copies',
        'own_dot(rows / 2, copies',
    ),
    Mutant(
        'minife',
        'WAXPY in caches of half',
        'minife/main.cpp',
        'advance(rows, 1.0,',
        'advance(rows / 2, 1.0,',
    ),
    Mutant(
        'minife',
        'product of a small mesh of half',
        'minife/matvec.cpp',
        'Part part = own_part(matrix.rows);',
        'Part part = own_part(matrix.rows < 1000 ? matrix.rows / 2 : matrix.rows);',
    ),
    Mutant(
        'minife',
        'total without what was checked, twice',
        'minife/main.cpp',
        'phases.total.subtract(solution.times.checked);',
        'phases.total.subtract(solution.times.checked); '
        'phases.total.subtract(solution.times.checked);',
    ),
    Mutant(
        'minife',
        'curvature by the residual',
        'minife/solver.cpp',
        'double pq = timed_dot(p, q);',
        'double pq = timed_dot(r, q);',
        equivalent='r is p less a multiple of the direction before, to which A p is orthogonal',
    ),
    Mutant(
        'minife',
        'solution in single precision at the end',
        'minife/solver.cpp',
        '    bouts.end();\n',
        '    for (std::int64_t i = 0; i < rows; i++)\n'
        '        x[i] = static_cast<float>(x[i]);\n    bouts.end();\n',
    ),
    Mutant(
        'minife',
        'residual of the last but one',
        'minife/solver.cpp',
        'solution.residual = std::sqrt(rr);\n        if (rr == 0)',
        'solution.residual = std::sqrt(k > 1 ? solution.squares.back() : rr);\n'
        '        if (rr == 0)',
    ),
    Mutant(
        'minife',
        'CG begun anew once',
        'minife/solver.cpp',
        'beta = rr / before;',
        'beta = k == 17 ? 0 : rr / before;',
        hard=True,
    ),
    Mutant(
        'minife',
        'residual squared wrong once',
        'minife/solver.cpp',
        'beta = rr / before;\n',
        'rr *= k == 17 ? 1.0000001 : 1;\n            beta = rr / before;\n',
    ),
    Mutant(
        'minife',
        'one product in single precision',
        'minife/matvec.cpp',
        '    even += odd;',
        '    static long calls = 0;\n'
        '    if (calls++ / 64 == 312)\n'
        '        odd[1] = static_cast<float>(odd[1]);\n'
        '    even += odd;',
    ),
    Mutant(
        'minife',
        'one thread late by a product',
        'minife/matvec.cpp',
        '        rows_times(matrix, part.begin, part.end, x.data(), y.data());\n'
        '    }\n'
        '    assay::ran();\n'
        '}\n'
        '\n'
        'double',
        '        static int calls = 0;\n'
        '        if (omp_get_thread_num() != 1 || calls++ != 20)\n'
        '            rows_times(matrix, part.begin, part.end, x.data(), y.data());\n'
        '    }\n'
        '    assay::ran();\n'
        '}\n'
        '\n'
        'double',
    ),
    Mutant(
        'minife',
        'halo stale in one product',
        'minife/halo.cpp',
        'send_buffer[i] = x[to_send[i]];',
        '{ static long calls = 0; if (calls++ != 4321) send_buffer[i] = x[to_send[i]]; }',
    ),
    Mutant(
        'minife',
        'matrix in single precision',
        'minife/matvec.cpp',
        '    std::memcpy(&values, value, sizeof values);',
        '    std::memcpy(&values, value, sizeof values);\n'
        '    values[3] = static_cast<float>(values[3]);',
    ),
]
