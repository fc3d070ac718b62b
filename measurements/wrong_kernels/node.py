# ruff: noqa: E501 -- a replacement stands on one line
"""Wrong kernels of what measures nodes: each on 1 rank with 2 threads and on 2 ranks."""

from __future__ import annotations

import json

from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import check_clock, check_dgemm, check_nodes, check_stream
from wrong_kernels import SINGLE_PRECISION_PRODUCTS, Built, Mutant

_ORDER = 120
_ARGUMENTS = {
    'dgemm': ['--n', str(_ORDER), '--budget', '0.05'],
    'stream': ['--size', '200K', '--budget', '0.05'],  # so small that there are many passes
    'clock': ['--seconds', '0.05'],
    'nodes': ['--sweeps', '2', '--budget', '0.02', '--size', '1M', '--n', '60'],
}


def complaint(built: Built, program: str) -> str:
    for ranks, threads in ((1, 2), (2, 1)):
        arguments = [*_ARGUMENTS[program], '--json', 'result.json']
        code, _ = built.run(program, arguments, ranks, threads)
        if code:
            return f'exit code {code}'
        report = json.loads((built.scratch / 'result.json').read_text())
        try:
            if program == 'dgemm':
                check_dgemm(report, _ORDER)
            elif program == 'clock':
                check_clock(report)
            elif program == 'nodes':
                check_nodes(report)
                if wrong := [node['wrong'] for node in report['results'] if 'wrong' in node]:
                    return f'wrong: {wrong}'
            else:
                check_stream(report)
        except WrongAnswerError as error:
            return str(error)
    return ''


_PASSES = 'for (long pass = 0; pass < passes; pass++)'
_CALL = 'written += operate(to + part.start, from + part.start, other + part.start, ARRAYS_SCALE,\n                               part.count);'
_GEMM = 'd->times += (long)took.made;'
_TIME = 'slowest = took.seconds;'
_CHAIN = 'now - before;\n            additions'
_ADD = 'times->sum = chain(times->sum, 1);'

MUTANTS = [
    Mutant(
        'stream',
        'arrays a sixteenth as large',
        'node/stream.c',
        'return size / sizeof(double) / (size_t)ranks;',
        'return size / sizeof(double) / (size_t)ranks / 16;',
    ),
    Mutant(
        'stream',
        'one pass for many',
        'node/arrays.c',
        _PASSES,
        'for (long pass = 0; pass < 1; pass++)',
        hard=True,
    ),
    Mutant(
        'stream',
        'half of the passes',
        'node/arrays.c',
        _PASSES,
        'for (long pass = 0; pass < passes; pass += 2)',
    ),
    Mutant(
        'stream',
        'half of each part',
        'node/arrays.c',
        _CALL,
        _CALL.replace('part.count', 'part.count / 2'),
    ),
    Mutant(
        'stream',
        'last line left out',
        'node/arrays.c',
        _CALL,
        _CALL.replace('part.count', 'part.count - VECTOR_LINE'),
    ),
    Mutant(
        'stream',
        'a thread that does nothing',
        'node/arrays.c',
        _CALL,
        'if (omp_get_thread_num() != 1) ' + _CALL,
    ),
    Mutant('stream', 'another factor', 'node/arrays.h', '0.41421356237309504880', '0.41421356'),
    Mutant(
        'stream',
        'scale reads another array',
        'node/arrays.c',
        'operation == VECTOR_SCALE ? c :',
        'operation == VECTOR_SCALE ? a :',
        equivalent='c is a copy of a then: the same values, and as many bytes',
    ),
    Mutant(
        'stream',
        'triad writes another array',
        'node/arrays.c',
        'operation == VECTOR_TRIAD ? a : c;',
        'operation == VECTOR_TRIAD ? c : c;',
    ),
    Mutant(
        'stream', 'add counts as copy', 'node/stream.c', '{ 16, 16, 24, 24 }', '{ 16, 16, 16, 24 }'
    ),
    Mutant(
        'stream',
        'writes counted twice',
        'node/stream.c',
        '{ 16, 16, 24, 24 }',
        '{ 24, 24, 32, 32 }',
    ),
    Mutant(
        'stream',
        'elements of one rank more',
        'node/stream.c',
        'double bytes = element_bytes[operation] * crew->elements;',
        'double bytes = element_bytes[operation] * (crew->elements + 1);',
    ),
    Mutant(
        'stream',
        'least for best',
        'node/stream.c',
        'bytes / time.best;',
        'bytes / time.min * 1.000001;',
    ),
    Mutant(
        'stream',
        'clock scaled',
        'node/arrays.c',
        _TIME,
        'slowest = 0.9 * took.seconds;',
    ),
    Mutant(
        'dgemm',
        'one wrong element',
        'common/dgemm_limit.c',
        _GEMM,
        _GEMM + ' d->c[(size_t)d->n * d->n / 2 + 3] += 1;',
        hard=True,
    ),
    Mutant(
        'dgemm',
        'last element',
        'common/dgemm_limit.c',
        _GEMM,
        _GEMM + ' d->c[(size_t)d->n * d->n - 1] *= 1.000001;',
    ),
    Mutant(
        'dgemm',
        'one product for many',
        'node/dgemm/dgemm.c',
        'seconds += dgemm_multiply(run->dgemm);',
        'seconds += i ? 1e-9 : dgemm_multiply(run->dgemm);',
    ),
    Mutant(
        'dgemm',
        'a product left out',
        'common/dgemm_limit.c',
        'blas_subtract_product(d->n, to - from,',
        'if (d->times != 3) blas_subtract_product(d->n, to - from,',
    ),
    Mutant(
        'dgemm',
        'last row left out',
        'common/dgemm_limit.c',
        'blas_subtract_product(d->n, to',
        'blas_subtract_product(d->n - 1, to',
    ),
    Mutant(
        'dgemm',
        'a shorter sum',
        'common/dgemm_limit.c',
        'to - from, d->k, d->a',
        'to - from, d->k - 1, d->a',
    ),
    Mutant(
        'dgemm',
        'a thread that does nothing',
        'common/dgemm_limit.c',
        'blas_subtract_product(d->n, to - from,',
        'if (omp_get_thread_num() != 1) blas_subtract_product(d->n, to - from,',
    ),
    Mutant(
        'dgemm',
        'operations of a larger matrix',
        'node/dgemm/dgemm.c',
        'return 2.0 * (double)n',
        'return 2.000001 * (double)n',
    ),
    Mutant(
        'dgemm',
        'rate of another time',
        'node/dgemm/dgemm.c',
        'bench.ranks / result->time.best',
        'bench.ranks / result->time.min * 1.000001',
    ),
    Mutant(
        'dgemm',
        'clock scaled',
        'common/dgemm_limit.c',
        'return took.seconds;',
        'return 0.9 * took.seconds;',
    ),
    Mutant(
        'stream',
        'times of all ranks added up',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_SUM, comm);',
    ),
    Mutant(
        'dgemm',
        'times of all ranks added up',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_SUM, comm);',
    ),
    Mutant('clock', 'a shorter chain', 'node/chain.c', 'CHAIN_ADDITIONS / BLOCK', '790'),
    Mutant(
        'clock',
        'time of the chain in part',
        'node/clock.c',
        _CHAIN,
        '0.99 * (' + _CHAIN.replace(';', ');', 1),
    ),
    Mutant(
        'clock',
        'rates of the slices scaled',
        'node/clock.c',
        'additions / chain_seconds;\n        times->flops',
        '1.01 * additions / chain_seconds;\n        times->flops',
    ),
    Mutant(
        'clock',
        'additions counted twice',
        'node/clock.c',
        'additions += CHAIN_ADDITIONS;',
        'additions += 2 * CHAIN_ADDITIONS;',
    ),
    Mutant(
        'clock',
        'every other chain left out',
        'node/clock.c',
        _ADD,
        'if (times->slices % 2) ' + _ADD,
    ),
    Mutant(
        'clock',
        'half of the multiply-adds',
        'node/clock.c',
        'kernels->fma(FMA_ITERATIONS);',
        'kernels->fma(FMA_ITERATIONS / 2);',
        equivalent='as many are counted: the kernel says how many it made',
    ),
    Mutant(
        'clock',
        'multiply-adds of more chains',
        'node/vector_kernels.c',
        '.flops = 2.0 * isa##_chains',
        '.flops = 2.1 * isa##_chains',
    ),
    Mutant(
        'clock',
        'rates of all ranks added up wrongly',
        'node/clock.c',
        'flops += clocks[rank].flops;',
        'flops = clocks[rank].flops;',
    ),
    Mutant(
        'clock',
        'greatest for median',
        'node/clock.c',
        'json_number(bench.json, "median", stats.median);',
        'json_number(bench.json, "median", max);',
    ),
    Mutant(
        'clock',
        'lost of the best slice',
        'node/clock.c',
        'clock.chain_seconds / clock.fastest;',
        'clock.chain_seconds / clock.best;',
    ),
    Mutant(
        'clock',
        'clock scaled',
        'node/../common/two_clocks.h',
        'seconds = omp_get_wtime();',
        'seconds = 0.99 * omp_get_wtime();',
    ),
    Mutant(
        'stream',
        'arrays of zeros',
        'node/arrays.h',
        'return 1 + (double)(i % 4093) / 4096;',
        'return 0 * (double)i;',
    ),
    Mutant(
        'dgemm',
        'a matrix of zeros',
        'common/dgemm_limit.c',
        'return SCALE_OF_A * ((double)(i % 7) - 3);',
        'return 0 * (double)i;',
    ),
    Mutant(
        'dgemm',
        'single precision of A',
        'common/dgemm_limit.c',
        'd->a[i] = element_of_a(i);',
        'd->a[i] = (float)element_of_a(i);',
        equivalent='small whole numbers are the same in single precision',
    ),
    Mutant(
        'nodes',
        'rates scaled',
        'node/nodes/measures.c',
        'double rate = work / passed.seconds;',
        'double rate = 1.01 * work / passed.seconds;',
    ),
    Mutant(
        'nodes',
        'time of one pass less',
        'node/nodes/measures.c',
        'passed = two_clocks_between(start, two_clocks_now());',
        'passed = two_clocks_between(start, two_clocks_now()), passed.seconds *= 0.9;',
    ),
    Mutant(
        'nodes',
        'a product of a smaller matrix',
        'node/nodes/measures.c',
        'flops = 2.0 * n * n * n;',
        'flops = 2.0 * n * n * (n + 1);',
    ),
    Mutant(
        'nodes',
        'every other product left out',
        'node/nodes/measures.c',
        '    dgemm_multiply(dgemm);\n',
        '    static int calls = 0;\n    if (calls++ % 2)\n        dgemm_multiply(dgemm);\n',
    ),
    Mutant(
        'nodes',
        'every other chain left out',
        'node/nodes/measures.c',
        'sum = chain(sum, 1);',
        'if (count % 2)\n                    sum = chain(sum, 1);',
    ),
    Mutant(
        'nodes',
        'slices scaled',
        'node/nodes/measures.c',
        'slices[count] = additions / (now - begun);',
        'slices[count] = 1.01 * additions / (now - begun);',
    ),
    Mutant(
        'nodes',
        'rates of the fastest rank',
        'node/nodes/nodes.c',
        'measure == FREQUENCY ? MPI_MIN : MPI_SUM,',
        'measure == FREQUENCY ? MPI_MIN : MPI_MAX,',
    ),
    Mutant(
        'nodes',
        'a thread that does nothing',
        'node/arrays.c',
        _CALL,
        'if (omp_get_thread_num() != 1) ' + _CALL,
    ),
    Mutant(
        'stream',
        'clock started once more half-way',
        'node/arrays.c',
        _CALL,
        'if (pass == passes / 2) start = two_clocks_now();\n            ' + _CALL,
    ),
    Mutant(
        'stream',
        'clock started behind the passes',
        'node/arrays.c',
        'struct two_clocks took = two_clocks_between(start,',
        'start = two_clocks_now();\n        struct two_clocks took = two_clocks_between(start,',
    ),
    Mutant(
        'stream',
        'time of one thread',
        'node/arrays.c',
        _TIME,
        'slowest = omp_get_thread_num() ? 0 : took.seconds;',
    ),
    Mutant(
        'stream',
        'part of a thread done by none',
        'node/arrays.c',
        _CALL,
        _CALL.replace('part.count', 'part.count - (omp_get_thread_num() ? 8 : 0)'),
    ),
    Mutant(
        'dgemm',
        'clock started behind the product',
        'common/dgemm_limit.c',
        'struct two_clocks took = two_clocks_between(start,',
        'start = two_clocks_now();\n    struct two_clocks took = two_clocks_between(start,',
    ),
    Mutant(
        'dgemm',
        'products of a thinner matrix',
        'common/dgemm_limit.c',
        'd->b + (size_t)from * d->k, d->k,',
        'd->b + (size_t)from * d->k, d->k - 1,',
    ),
    Mutant(
        'dgemm',
        'rate of the first rank scaled',
        'node/dgemm/dgemm.c',
        'double rate = operations() / stats_of(run->own, kept).median;',
        'double rate = operations() / stats_of(run->own, kept).median * (bench.rank ? 1 : 0.99);',
    ),
    Mutant(
        'dgemm',
        'samples of a rank scaled',
        'node/dgemm/dgemm.c',
        'run->own[slot] = seconds / (double)iterations;',
        'run->own[slot] = (bench.rank ? 1 : 0.99) * seconds / (double)iterations;',
    ),
    Mutant(
        'stream',
        'bandwidth of the first rank scaled',
        'node/stream.c',
        'medians[operation] = stats_of(crew->own[operation], count).median;',
        'medians[operation] = (bench.rank ? 1 : 0.99) * stats_of(crew->own[operation], count).median;',
    ),
    Mutant(
        'stream',
        'bandwidths of a rank scaled',
        'node/stream.c',
        'slot] = element_bytes[operation] * elements / seconds[operation];',
        'slot] = (bench.rank ? 1 : 0.99) * element_bytes[operation] * elements / seconds[operation];',
    ),
    Mutant(
        'stream',
        'slowest rank is the fastest',
        'node/stream.c',
        'slowest = ranks[rank][operation] < ranks[slowest][operation] ? rank : slowest;',
        'slowest = ranks[rank][operation] > ranks[slowest][operation] ? rank : slowest;',
    ),
    Mutant(
        'dgemm',
        'limit halved',
        'node/dgemm/dgemm.c',
        'limit = limit_median(limits);',
        'limit = 0.5 * limit_median(limits);',
    ),
    Mutant(
        'clock',
        'clock started behind the first chain',
        'node/clock.c',
        _ADD,
        'if (times->sum == 0) began = two_clocks_now();\n            ' + _ADD,
    ),
    Mutant(
        'clock',
        'slices of the fastest alone',
        'node/clock.c',
        'return sorted[count - (count + 9) / 10];',
        'return sorted[count - 1] * 1.000002;',
    ),
    Mutant(
        'clock',
        'multiply-adds of the best slice scaled',
        'node/clock.c',
        'clock.flops = clock.threads * best_rate(flops, slices);',
        'clock.flops = 1.001 * clock.threads * best_rate(flops, slices);',
    ),
    Mutant(
        'dgemm',
        'each limit halved',
        'node/dgemm/dgemm.c',
        'limits[round + 1] = limit_vector(MPI_COMM_WORLD, LIMIT_WINDOWS);',
        'limits[round + 1] = limit_vector(MPI_COMM_WORLD, LIMIT_WINDOWS);\n'
        '        limits[round + 1].rate *= 0.5;',
    ),
    Mutant(
        'dgemm',
        'limit of half the multiply-adds',
        'node/node_limits.c',
        'done += kernels->fma(iterations);',
        'done += 0.5 * kernels->fma(iterations);',
    ),
    Mutant(
        'dgemm',
        'limit of the slowest window',
        'node/node_limits.c',
        '1 / windows_best(seconds, windows));',
        '(windows_best(seconds, windows), 1 / seconds[windows - 1]));',
    ),
    Mutant(
        'dgemm',
        'limit of a rank',
        'node/node_limits.c',
        'MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);',
        'MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_MAX, comm);',
    ),
    Mutant(
        'stream',
        'half of all passes but the last',
        'node/arrays.c',
        _CALL,
        _CALL.replace('part.count', 'pass + 1 < passes ? part.count / 2 : part.count'),
        hard=True,
    ),
    Mutant(
        'stream',
        'all passes but the last two on a line',
        'node/arrays.c',
        _CALL,
        _CALL.replace('part.count', 'pass + 2 < passes ? VECTOR_LINE : part.count'),
    ),
    Mutant(
        'stream',
        'one thread rests in all passes but the last',
        'node/arrays.c',
        _CALL,
        'if (omp_get_thread_num() != 1 || pass + 1 == passes) ' + _CALL,
    ),
    Mutant(
        'dgemm',
        'in single precision',
        'common/blas.c',
        *SINGLE_PRECISION_PRODUCTS,
        hard=True,
    ),
    Mutant(
        'stream',
        'elements of a rank scaled',
        'node/stream.c',
        'double elements = (double)passes * (double)crew->arrays->elements;',
        'double elements = (bench.rank ? 1 : 0.99) * (double)passes * (double)crew->arrays->elements;',
    ),
    Mutant(
        'stream',
        'another rank named slowest',
        'node/stream.c',
        'write_rank("slowest", slowest, low);',
        'write_rank("slowest", (slowest + 1) % bench.ranks, low);',
    ),
    Mutant(
        'dgemm',
        'another rank named slowest',
        'node/dgemm/dgemm.c',
        'json_integer(bench.json, "rank", slowest);',
        'json_integer(bench.json, "rank", (slowest + 1) % bench.ranks);',
    ),
    Mutant(
        'stream',
        'bandwidths of the first half of the turns',
        'node/stream.c',
        'medians[operation] = stats_of(crew->own[operation], count).median;',
        'medians[operation] = stats_of(crew->own[operation], (count + 1) / 2).median;',
    ),
    Mutant(
        'dgemm',
        'rates of the first half of the samples',
        'node/dgemm/dgemm.c',
        'double rate = operations() / stats_of(run->own, kept).median;',
        'double rate = operations() / stats_of(run->own, (kept + 1) / 2).median;',
    ),
    Mutant(
        'stream',
        'one thread rests in every other pass',
        'node/arrays.c',
        _CALL,
        'if (omp_get_thread_num() != 1 || pass % 2 == 0) ' + _CALL,
    ),
]
