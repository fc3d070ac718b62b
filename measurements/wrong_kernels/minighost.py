# ruff: noqa: E501 -- a replacement stands on one line
"""Wrong kernels of miniGhost: each at the problem of the suite, on 1 rank, on 2 with 2 threads, and on 4."""

from __future__ import annotations

from assay.programs.application import Problem
from assay.programs.minighost import MiniGhost
from wrong_kernels import Built, Mutant, complaint_of_application

_SIZE = 1e6  # bytes
_STEPS = 40
_RUNS = ((1, 1), (2, 2), (4, 1))


def complaint(built: Built, program: str) -> str:
    application = MiniGhost()
    for ranks, threads in _RUNS:
        problem = _shorter(application.problem(_SIZE, ranks, threads))
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


def _shorter(problem: Problem) -> Problem:
    """The same with fewer steps: those that follow show nothing more."""
    words = list(problem.arguments)
    words[words.index('--num_tsteps') + 1] = words[words.index('--report_diffusion') + 1] = str(
        _STEPS
    )
    return Problem(words, problem.files, {**problem.facts, 'the number of time steps': _STEPS})


def _of(name: str, path: str, before: str, after: str, **more: object) -> Mutant:
    return Mutant('minighost', name, f'minighost/{path}', before, after, **more)  # type: ignore[arg-type]


_WALL = 'taken_.wall.subtract(bouts_.paused());'
_STENCIL = 'taken_.stencil.add(start, assay::Instant::now());'
_LOOP = 'number <= options_.steps; number++'
_RESULT = 'store(result_ + x, ((load(south + x) + load(middle + x)) + sum) * weight);'

MUTANTS = [
    _of(
        'fewer steps',
        'main.cpp',
        _LOOP,
        'number <= options_.steps - 1; number++',
        hard=True,
    ),
    _of('half of the steps', 'main.cpp', _LOOP, 'number <= options_.steps; number += 2'),
    _of('another step', 'main.cpp', _LOOP, 'number <= options_.steps + 1; number++'),
    _of('weight', 'stencil.cpp', 'weight = 1.0 / Kind::POINTS', 'weight = 1.000001 / Kind::POINTS'),
    _of(
        'centre counts twice', 'rows.hpp', _RESULT, _RESULT.replace('+ sum)', '+ sum + 1e-6 * sum)')
    ),
    _of('no south', 'rows.hpp', _RESULT, _RESULT.replace('load(south + x)', 'load(middle + x)')),
    _of(
        'no front plane',
        'rows.hpp',
        '(load(from - plane) + load(from + plane))',
        '(load(from - plane) + load(from - plane))',
    ),
    _of(
        'last point of a row',
        'rows.hpp',
        'std::copy(from + x, from + n, to + x);',
        'std::copy(from + x, from + n - (x < n), to + x);',
    ),
    _of(
        'last row of a share',
        'variables.cpp',
        'return { cut(layout.n[1], y, in_y), cut(layout.n[1], y + 1, in_y),',
        'return { cut(layout.n[1], y, in_y), cut(layout.n[1], y + 1, in_y) - 1,',
    ),
    _of(
        'two heats exchanged',
        'main.cpp',
        'variables_[v][place] += spike.heat[v];',
        'variables_[v][place] += spike.heat[v ^ 1];',
    ),
    _of('other heat', 'source.cpp', '(heats.next() + 1)', '(heats.next() + 1.000001)', hard=True),
    _of(
        'heat of the first',
        'source.cpp',
        'spike.heat[0] = domain.all_points();',
        'spike.heat[0] = 2 * domain.all_points();',
    ),
    _of(
        'another place',
        'source.cpp',
        '(domain.points[d] + 1) / 2',
        '(domain.points[d] + 1) / 2 + (d == 0)',
        equivalent='of an even number of points it is the other one in the middle: the mirror image',
    ),
    _of(
        'a place beside the middle',
        'source.cpp',
        '(domain.points[d] + 1) / 2',
        '(domain.points[d] + 1) / 2 + 2 * (d == 0)',
    ),
    _of('another seed', 'source.cpp', '0xbd0c5b6650c2df41', '0xbd0c5b6650c2df43'),
    _of('heat at the start', 'source.cpp', '? 0\n', '? 1e-6\n'),
    _of(
        'stale halo',
        'main.cpp',
        'if (options_.is_aggregated())\n        exchange_.run(0, options_.variables);',
        'if (options_.is_aggregated() && (number & 7))\n        exchange_.run(0, options_.variables);',
    ),
    _of(
        'halo of the last variable left out',
        'main.cpp',
        'exchange_.run(0, options_.variables);',
        'exchange_.run(0, options_.variables - 1);',
    ),
    _of(
        'halo of one side',
        'faces.cpp',
        'int index = part == Part::POINTS ? 1 : 0;',
        'int index = 1;',
    ),
    _of(
        'last line of a face',
        'faces.cpp',
        'face.lines = layout.n[outer] + 2 - 2 * edge;',
        'face.lines = layout.n[outer] + 1 - 2 * edge;',
    ),
    _of(
        'packed too early',
        'exchange.cpp',
        '        if (!uses_types_)\n            pack_link(link, first, count);',
        '        if (!uses_types_ && sent_.messages < 30)\n            pack_link(link, first, count);',
    ),
    _of(
        'unpacked never',
        'exchange.cpp',
        '        if (index < links.size())\n            unpack_link(link, first, count);',
        '        if (index < links.size() && count < 0)\n            unpack_link(link, first, count);',
    ),
    _of(
        'flux not counted',
        'main.cpp',
        'flux_[v] += heat.flux;',
        'flux_[v] += 0.999999 * heat.flux;',
    ),
    _of(
        'flux of a corner',
        'stencil.cpp',
        'int all = Kind::outside(3, in_y, in_z);',
        'int all = Kind::outside(3, in_y, 3);',
    ),
    _of(
        'sum of one thread',
        'stencil.cpp',
        'heat.sum += heat_[thread].sum;',
        'heat.sum += thread ? 0 : heat_[thread].sum;',
    ),
    _of(
        'a step done twice',
        'main.cpp',
        'variables_.swap_with_spare(v);',
        'if (v || number > 1) variables_.swap_with_spare(v);',
    ),
    _of(
        'a variable left alone',
        'main.cpp',
        'variables_.swap_with_spare(v);',
        'if (v != options_.variables - 1) variables_.swap_with_spare(v);',
    ),
    _of(
        '5 points',
        'stencil.cpp',
        'default:\n        return sweep<Points27>',
        'default:\n        return sweep<Points7>',
    ),
    _of(
        'low digits lost',
        'rows.hpp',
        _RESULT,
        'store(result_ + x, ((load(south + x) + load(middle + x)) + sum) * weight * (1 + 1e-9));',
    ),
    _of(
        'small heat thrown away',
        'rows.hpp',
        'sum += sums[i][lane];\n',
        'sum += sums[i][lane];\n    for (int i = 0; i < n; i++)\n        const_cast<double *>(from)[i] = from[i] < 1e-3 ? 0 : from[i];\n',
        why='far places keep no heat, which no sum shows',
    ),
    _of('total time scaled', 'main.cpp', _WALL, f'{_WALL} taken_.wall.seconds *= 0.998;'),
    _of('total without the exchange', 'main.cpp', _WALL, 'taken_.wall = taken_.stencil;'),
    _of(
        'stencil time scaled',
        'main.cpp',
        _STENCIL,
        f'double had = taken_.stencil.seconds; {_STENCIL} '
        'taken_.stencil.seconds -= 0.02 * (taken_.stencil.seconds - had);',
    ),
    _of(
        'stencil time scaled on its way',
        'report.cpp',
        'own.stencil = taken.stencil.seconds;',
        'own.stencil = 0.9999 * taken.stencil.seconds;',
    ),
    _of(
        'pauses counted twice',
        'main.cpp',
        _WALL,
        f'{_WALL} taken_.wall.seconds -= bouts_.paused().seconds;',
    ),
    _of(
        'clock scaled',
        '../common/application.cpp',
        'double before = system_seconds(), mpi = MPI_Wtime();',
        'double before = system_seconds(), mpi = 0.99 * MPI_Wtime();',
    ),
    _of(
        'more operations',
        'report.cpp',
        '(points_of(options.stencil) - 1);',
        'points_of(options.stencil);',
    ),
    _of(
        'bytes counted too high',
        'main.cpp',
        'BYTES_PER_UPDATE = 2 * sizeof',
        'BYTES_PER_UPDATE = 3 * sizeof',
        hard=True,
    ),
    _of(
        'windows of half the time',
        'main.cpp',
        'bouts_.add(0, taken_.stencil.seconds - before);',
        'bouts_.add(0, 0.5 * (taken_.stencil.seconds - before));',
    ),
    _of(
        'sums of the ranks not counted',
        'main.cpp',
        'taken_.sum.add(start, end);\n    taken_.sums++;',
        'taken_.sums++;',
    ),
    _of(
        'exchange timed in part',
        'exchange.cpp',
        'place_.add(start_, assay::Instant::now());\n        assay::require',
        'place_.add(start_, assay::Instant::now());\n        place_.seconds *= 0.99;\n        assay::require',
    ),
    _of(
        'wait of the fastest rank',
        'report.cpp',
        'result.most = std::max(result.most, value(rank));',
        'result.most = std::min(result.most, value(rank));',
    ),
    _of(
        'heat added up in single precision',
        'stencil.cpp',
        'heat.sum += heat_[thread].sum;',
        'heat.sum = static_cast<float>(heat.sum + heat_[thread].sum);',
    ),
    _of(
        'stencil timed behind itself',
        'main.cpp',
        'Heat heat = stencil_.apply(variables_[v], variables_.spare(), stores_);',
        'Heat heat = stencil_.apply(variables_[v], variables_.spare(), stores_);\n'
        '    start = assay::Instant::now();',
    ),
    _of(
        'sum over the ranks before its watch',
        'main.cpp',
        '    const assay::Instant start = assay::Instant::now();\n    MPI_Allreduce(&own, &all,',
        '    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n    assay::ran();\n'
        '    const assay::Instant start = assay::Instant::now();\n    if (false) MPI_Allreduce(&own, &all,',
    ),
    _of(
        'half of the calls in caches',
        '../common/application.cpp',
        'for (long i = 0; i < calls; i++)\n            kernel.run(',
        'for (long i = 0; i < calls; i += 2)\n            kernel.run(',
    ),
    _of(
        'more calls in caches',
        '../common/application.cpp',
        'windows.calls = calls[i];',
        'windows.calls = 2 * calls[i];',
    ),
    _of(
        'clock started behind the calls in caches',
        '../common/application.cpp',
        '        took.add(start, Instant::now());\n        require_runs("a kernel in',
        '        const Instant end = Instant::now();\n        took.add(start, end);\n'
        '        took.seconds = MPI_Wtime() - end.mpi;\n        require_runs("a kernel in',
    ),
    _of(
        'best in caches is the shortest',
        '../common/application.cpp',
        'take_from(slowest, &windows, 1);',
        'take_from(slowest, &windows, 1);\n        windows.best *= 0.999;',
    ),
    _of(
        'control in caches beside less than it did',
        '../common/control_in_caches.c',
        '.rate = 1 / windows_best(seconds',
        '.rate = 0.9 / windows_best(seconds',
    ),
    _of(
        'products of the control left out',
        '../common/control_in_caches.c',
        'i < control->products; i++)',
        'i < control->products; i += 2)',
    ),
    _of(
        'steps timed from the twentieth',
        'main.cpp',
        'bouts_.before(done++);',
        'if (done == 20)\n                start = assay::Instant::now();\n'
        '            bouts_.before(done++);',
    ),
    _of(
        'limit halved',
        '../common/application.cpp',
        'limits_.push_back(measure_());',
        'limits_.push_back(measure_());\n    limits_.back().rate *= 0.5;',
    ),
    _of(
        'fraction of more bytes',
        'main.cpp',
        'bouts_.of_limit(bytes)',
        'bouts_.of_limit(1.5 * bytes)',
    ),
    _of(
        'wait not timed',
        'exchange.cpp',
        '        time_[link.direction].wait.add(start, assay::Instant::now());\n',
        '',
    ),
    _of(
        'packing not timed',
        'exchange.cpp',
        '    Stopwatch watch(time_[link.direction].pack);\n',
        '',
    ),
    _of(
        'unpacking not timed',
        'exchange.cpp',
        '    Stopwatch watch(time_[link.direction].unpack);\n',
        '',
    ),
    _of(
        'sends not timed',
        'exchange.cpp',
        '        Stopwatch watch(time_[link.direction].send);\n',
        '',
    ),
    _of(
        'sums of a direction left out',
        'exchange.cpp',
        '    for (const CommTime &of_direction : time_)\n        all.add(of_direction);',
        '    for (const CommTime &of_direction : time_)\n'
        '        if (&of_direction != time_ + 2)\n'
        '            all.add(of_direction);',
    ),
    _of(
        'stencil in caches of half',
        'main.cpp',
        'const int n[] = { 64, 16, 8 * job.threads };',
        'const int n[] = { 64, 8, 8 * job.threads };',
    ),
    _of(
        'a small stencil of half',
        'stencil.cpp',
        'Share share = share_of(layout_, thread, omp_get_num_threads());',
        'Share share = share_of(layout_, thread, omp_get_num_threads());\n'
        '        if (layout_.n[0] == 64 && layout_.n[1] == 16)\n'
        '            share.y1 -= 8;',
    ),
    _of(
        'rate of an odd step',
        'main.cpp',
        'bouts_.add(0, taken_.stencil.seconds - before);',
        'bouts_.add(0, (number % 2 ? 1 : 0.9) * (taken_.stencil.seconds - before));',
    ),
    _of(
        'halo in single precision',
        'exchange.cpp',
        '    pack(variables_, first, count, link.points, link.send_buffer.data());',
        '    pack(variables_, first, count, link.points, link.send_buffer.data());\n'
        '    for (double &value : link.send_buffer)\n'
        '        value = static_cast<float>(value);',
    ),
    _of(
        'last step without its exchange',
        'main.cpp',
        'if (options_.is_aggregated())\n        exchange_.run(0, options_.variables);',
        'if (options_.is_aggregated() && number < options_.steps)\n'
        '        exchange_.run(0, options_.variables);',
    ),
    _of(
        'sums of odd steps left out',
        'main.cpp',
        'if (!is_summed(v))\n',
        'if (!is_summed(v) || number % 2)\n',
    ),
    _of(
        'sums of the last variable left out',
        'main.cpp',
        'if (!is_summed(v))\n',
        'if (!is_summed(v) || v + 1 == options_.variables)\n',
    ),
]
