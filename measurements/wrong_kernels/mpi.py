"""Wrong kernels of the MPI benchmarks: each on 2 ranks and on 4."""

from __future__ import annotations

import json

from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import (
    check_collectives,
    check_halo,
    check_overlap,
    check_pairs,
    check_pt2pt,
    check_ring,
)
from wrong_kernels import Built, Mutant

_MESH, _STEPS = (16, 16, 8), 4
_ARGUMENTS = {
    'halo': ['--n', ','.join(map(str, _MESH)), '--steps', str(_STEPS), '--budget', '0.02'],
    'overlap': ['--min', '4K', '--max', '4K', '--ratios', '1', '--budget', '0.02'],
    'pt2pt': ['--max', '4K', '--min', '1K', '--budget', '0.01'],
    'ring': ['--max-words', '64', '--budget', '0.05'],
    'collectives': ['--min', '1K', '--max', '1K', '--budget', '0.01'],
    'pairs': ['--group', '1', '--large', '1K', '--budget', '0.01'],
}
_CHECKS = {
    'pt2pt': check_pt2pt,
    'ring': check_ring,
    'collectives': check_collectives,
    'pairs': check_pairs,
    'overlap': check_overlap,
}


def complaint(built: Built, program: str) -> str:
    for ranks in (2, 4):
        arguments = [*_ARGUMENTS[program], '--json', 'result.json']
        code, _ = built.run(program, arguments, ranks)
        if code:
            return f'exit code {code}'
        report = json.loads((built.scratch / 'result.json').read_text())
        try:
            if program == 'halo':
                check_halo(report, _MESH, _STEPS)
            elif program in _CHECKS:
                _CHECKS[program](report)
        except WrongAnswerError as error:
            return str(error)
    return ''


_SECONDS = '    double seconds = clock_seconds() - start;\n    by_mpi[method].most'

_EXCHANGED = (
    'MPI_Waitall(2 * point->window, requests, MPI_STATUSES_IGNORE);\n    }\n'
    '    return sample_since(start, made);'
)
_ONE_WAY = (
    'MPI_Send(NULL, 0, MPI_BYTE, point->peer, TAG, point->comm);\n    }\n'
    '    return sample_since(start, made);'
)

MUTANTS = [
    Mutant(
        'halo',
        'overlapped time without the exchange',
        'mpi/halo.c',
        _SECONDS,
        _SECONDS.replace(';', ' - inside_mpi;', 1),
        hard=True,
    ),
    Mutant(
        'halo',
        'time without the last step',
        'mpi/halo.c',
        _SECONDS,
        _SECONDS.replace('clock_seconds() - start', '(clock_seconds() - start) * 0.75'),
    ),
    Mutant(
        'halo',
        'time scaled on its way',
        'mpi/halo.c',
        'double took = run_chunk(methods[m]);',
        'double took = 0.99 * run_chunk(methods[m]);',
    ),
    Mutant(
        'halo',
        'clock scaled',
        'mpi/common/clock.h',
        'return (double)now.tv_sec +',
        'return 0.99 * (double)now.tv_sec +',
    ),
    Mutant(
        'halo',
        'no wait for the messages',
        'mpi/halo.c',
        'MPI_Waitall(2 * NEIGHBOURS, requests, MPI_STATUSES_IGNORE);',
        'MPI_Waitall(NEIGHBOURS - 1, requests, MPI_STATUSES_IGNORE);',
    ),
    Mutant(
        'halo',
        'exchange of the first step alone',
        'mpi/halo.c',
        '    exchange(in);\n    inside_mpi',
        '    if (in == mesh.field[0]) exchange(in);\n    inside_mpi',
    ),
    Mutant(
        'halo',
        'rim before the messages',
        'mpi/halo.c',
        '    update_inner(out, in);\n    start',
        '    update_inner(out, in);\n    update_rim(out, in);\n    start',
        equivalent='the rim is computed once more when the messages are there',
    ),
    Mutant(
        'halo',
        'rim not computed',
        'mpi/halo.c',
        '    inside_mpi += clock_seconds() - start;\n    update_rim(out, in);',
        '    inside_mpi += clock_seconds() - start;',
    ),
    Mutant(
        'halo',
        'fewer steps',
        'mpi/halo.c',
        'for (long step = 0; step < steps; step++) {\n        double *in',
        'for (long step = 0; step < steps - 2; step++) {\n        double *in',
    ),
    Mutant(
        'halo', 'weaker diffusion', 'mpi/halo.c', 'diffusion = 0.125;', 'diffusion = 0.1249999;'
    ),
    Mutant('halo', 'centre', 'mpi/halo.c', '- 6 * in[k]))', '- 6.0000001 * in[k]))'),
    Mutant(
        'halo',
        'points of a larger mesh',
        'mpi/halo.c',
        'double points = (double)steps / time->best * (double)whole[X]',
        'double points = (double)steps / time->best * (double)(whole[X] + 2)',
    ),
    Mutant(
        'halo',
        'more steps a second',
        'mpi/halo.c',
        'double rate = (double)steps / time->median;',
        'double rate = (double)(steps + 1) / time->median;',
    ),
    Mutant(
        'halo', 'worst for best', 'mpi/common/stats.c', '.best = best,', '.best = values[n - 1],'
    ),
    Mutant(
        'overlap',
        'message of one byte less',
        'mpi/overlap.c',
        'MPI_Isend(point->send, point->size, MPI_BYTE',
        'MPI_Isend(point->send, point->size - 1, MPI_BYTE',
    ),
    Mutant(
        'overlap',
        'no message',
        'mpi/overlap.c',
        'MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    double',
        'if (0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    double',
    ),
    Mutant(
        'overlap',
        'exchange timed in part',
        'mpi/overlap.c',
        'double seconds = sample_since(start, rounds == 0);',
        'double seconds = 0.99 * sample_since(start, rounds == 0);',
    ),
    Mutant(
        'overlap',
        'computation timed twice',
        'mpi/overlap.c',
        'return sample_since(start, 0);',
        'return 2 * sample_since(start, 0);',
    ),
    Mutant(
        'overlap',
        'every other turn left out',
        'mpi/overlap.c',
        'i < iterations; i++) {\n        seconds[COMM',
        'i < iterations; i += 2) {\n        seconds[COMM',
    ),
    Mutant(
        'overlap',
        'overlap of the longer one',
        'mpi/overlap.c',
        'double could = fmin(cpu, comm)',
        'double could = fmax(cpu, comm)',
    ),
    Mutant(
        'pt2pt',
        'latency of a round trip',
        'mpi/common/ping_pong.c',
        'return sample_since(start, made) / 2;',
        'return sample_since(start, made);',
    ),
    Mutant(
        'pt2pt',
        'latency of a third of it',
        'mpi/common/ping_pong.c',
        'return sample_since(start, made) / 2;',
        'return sample_since(start, made) / 3;',
    ),
    Mutant(
        'pt2pt',
        'another byte of the message',
        'mpi/common/ping_pong.c',
        'MPI_Send(memory_pool_next(send), size, MPI_BYTE, 1,',
        'MPI_Send(memory_pool_next(send), size - 1, MPI_BYTE, 1,',
    ),
    Mutant(
        'pt2pt',
        'payload not checked',
        'mpi/common/payload.c',
        'if (memcmp(bytes + offset, &word, 8) != 0)',
        'if (0 && memcmp(bytes + offset, &word, 8) != 0)',
        equivalent='no message is damaged by it; tests damage some',
    ),
    Mutant(
        'pt2pt',
        'message of zeros',
        'mpi/common/payload.c',
        'write_words(buffer, size, first_word(sender, message), 0);',
        'memset(buffer, 0 * sender, size); (void)message;',
    ),
    Mutant(
        'pt2pt',
        'half of the calls in a chain',
        'mpi/pt2pt.c',
        'for (long i = 0; i < iterations; i++, made++)\n        MPI_Sendrecv',
        'for (long i = 0; i < iterations; i += 2, made++)\n        MPI_Sendrecv',
    ),
    Mutant(
        'pt2pt',
        'times of the fastest rank',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_MIN, comm);',
    ),
    Mutant(
        'pt2pt',
        'a sample of more operations',
        'mpi/common/sample.c',
        'sample->seconds[result->samples++] = seconds / (double)result->iterations;',
        'sample->seconds[result->samples++] = seconds / (double)(result->iterations + 1);',
    ),
    Mutant(
        'halo',
        'a turn of more operations',
        'mpi/common/turns.c',
        'values[s] = turns.seconds[first + s][i] / (double)whole.iterations;',
        'values[s] = turns.seconds[first + s][i] / (double)(whole.iterations + 1);',
    ),
    Mutant(
        'pt2pt',
        'a message counted twice',
        'mpi/pt2pt.c',
        '[SENDRECV] = 2, [EXCHANGE] = 4,',
        '[SENDRECV] = 4, [EXCHANGE] = 4,',
    ),
    Mutant(
        'pt2pt',
        'a window of more messages',
        'mpi/pt2pt.c',
        'return seconds / window;',
        'return seconds / (window + 1);',
    ),
    Mutant(
        'pt2pt',
        'clock scaled',
        'mpi/common/clock.h',
        'return (double)now.tv_sec +',
        'return 0.99 * (double)now.tv_sec +',
    ),
    Mutant(
        'pt2pt',
        'messages of a window are not waited for',
        'mpi/pt2pt.c',
        'MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);',
        'MPI_Waitall(window, requests + window, MPI_STATUSES_IGNORE);',
    ),
    Mutant(
        'ring',
        'a hop more than there are',
        'mpi/ring.c',
        'sample_since(start, made) / bench.ranks;',
        'sample_since(start, made) / (bench.ranks + 1);',
    ),
    Mutant(
        'ring',
        'every rank but one passes another message on',
        'mpi/ring.c',
        'MPI_Send(lap->receive, lap->size, MPI_BYTE, right,',
        'MPI_Send(lap->send, lap->size, MPI_BYTE, right,',
        equivalent='that buffer holds the same message on every rank',
    ),
    Mutant(
        'ring',
        'bandwidth of a longer message',
        'mpi/ring.c',
        'double bandwidth = (double)(words * WORD) /',
        'double bandwidth = (double)(words * WORD + 1) /',
    ),
    Mutant(
        'collectives',
        'half of the calls',
        'mpi/collectives.c',
        'for (long i = 0; i < iterations; i++)\n            call(point);',
        'for (long i = 0; i < iterations; i += 2)\n            call(point);',
    ),
    Mutant(
        'collectives',
        'time scaled',
        'mpi/collectives.c',
        'seconds = sample_since(start, point->calls);',
        'seconds = 0.9 * sample_since(start, point->calls);',
    ),
    Mutant(
        'collectives',
        'sums without the last element',
        'mpi/collectives.c',
        'doubles = bytes / (int)sizeof(double);',
        'doubles = bytes / (int)sizeof(double) - 1;',
    ),
    Mutant(
        'collectives',
        'every other call of a root left out',
        'mpi/collectives.c',
        'double start = clock_seconds();\n            call(point);',
        'double start = clock_seconds();\n            if (i % 2 == 0) call(point);',
    ),
    Mutant(
        'pt2pt',
        'times of all ranks added up',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_SUM, comm);',
    ),
    Mutant(
        'halo',
        'times of all ranks added up',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_SUM, comm);',
    ),
    Mutant(
        'pairs',
        'time of both ways divided by the ranks',
        'mpi/pairs/meter.c',
        _EXCHANGED,
        _EXCHANGED.replace('made);', 'made) / bench.ranks;'),
    ),
    Mutant(
        'pairs',
        'one way timed in part',
        'mpi/pairs/meter.c',
        _ONE_WAY,
        _ONE_WAY.replace('sample_since', '0.99 * sample_since'),
    ),
    Mutant(
        'pairs',
        'latency of the whole way',
        'mpi/common/ping_pong.c',
        'return sample_since(start, made) / 2;',
        'return sample_since(start, made);',
    ),
    Mutant(
        'pairs',
        'every other window left out',
        'mpi/pairs/meter.c',
        'i < iterations; i++, made++) {\n        post_window',
        'i < iterations; i += 2, made++) {\n        post_window',
    ),
    Mutant(
        'pairs',
        'every other window one way left out',
        'mpi/pairs/meter.c',
        'i < iterations; i++, made++) {\n        if (point->first)',
        'i < iterations; i += 2, made++) {\n        if (point->first)',
    ),
    Mutant(
        'pairs',
        'times of the fastest rank',
        'mpi/common/sample.c',
        '2 * count, MPI_DOUBLE, MPI_MAX, comm);',
        '2 * count, MPI_DOUBLE, MPI_MIN, comm);',
    ),
    Mutant(
        'pairs',
        'a batch of more operations',
        'mpi/pairs/meter.c',
        'seconds / (double)iterations;',
        'seconds / (double)(iterations + 1);',
    ),
    Mutant(
        'pairs',
        'a shorter message',
        'mpi/pairs/meter.c',
        'MPI_Isend(memory_pool_slot(point->send), point->size,',
        'MPI_Isend(memory_pool_slot(point->send), point->size - 1,',
    ),
    Mutant(
        'pairs',
        'a message less in a window',
        'mpi/pairs/meter.c',
        'for (int w = 0; w < point->window; w++)\n        MPI_Isend(',
        'for (int w = 0; w < point->window; w++)\n'
        '        if (w == 0 && point->window > 2) requests[w] = MPI_REQUEST_NULL; else MPI_Isend(',
        why='as many receives are posted, and all but one of them are waited for',
    ),
    Mutant(
        'pairs',
        'messages of all nodes',
        'mpi/pairs/crowd.c',
        '(double)(nodes->count / 2) * senders * window',
        '(double)nodes->count * senders * window',
    ),
    Mutant(
        'pairs',
        'bisection one way twice',
        'mpi/pairs/crowd.c',
        'double bytes = 2.0 * pairs',
        'double bytes = 4.0 * pairs',
    ),
    Mutant(
        'pairs',
        'bandwidth of mebibytes',
        'mpi/pairs/tournament.c',
        'return 2.0 * meter_window',
        'return 1e6 / (1 << 20) * 2.0 * meter_window',
    ),
    Mutant(
        'pairs',
        'worst of the first rank',
        'mpi/pairs/tournament.c',
        'MPI_Allreduce(MPI_IN_PLACE, worst, 2, MPI_DOUBLE, MPI_MAX, leaders);',
        'MPI_Bcast(worst, 2, MPI_DOUBLE, 0, leaders);',
    ),
    Mutant(
        'pairs',
        'clock scaled',
        'mpi/common/clock.h',
        'return (double)now.tv_sec +',
        'return 0.99 * (double)now.tv_sec +',
    ),
    Mutant(
        'ring',
        'least for best',
        'mpi/common/stats.c',
        'double best = windows_best(values, n); /* which sorts them */',
        'double best = windows_best(values, n); best = values[0];',
    ),
    Mutant(
        'ring',
        'third quarter for median',
        'mpi/common/stats.c',
        'double median = (values[(n - 1) / 2] + values[n / 2]) / 2;',
        'double median = values[3 * n / 4];',
    ),
]
