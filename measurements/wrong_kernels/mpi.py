# ruff: noqa: E501 -- a replacement stands on one line
"""Wrong kernels of the MPI benchmarks: each on 2 ranks and on 4, held as the checks hold them."""

from __future__ import annotations

import json
from functools import partial

from assay.config.defects import load_defects
from assay.job.launch import WITNESS
from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import (
    check_collectives,
    check_datatypes,
    check_files,
    check_halo,
    check_matching,
    check_onesided,
    check_overlap,
    check_pairs,
    check_partitioned,
    check_pt2pt,
    check_ring,
    check_threads,
)
from assay.programs.calls import check_calls, check_reproducer
from assay.witness import read_witness
from wrong_kernels import Built, Mutant

_MESH, _STEPS = (32, 32, 16), 4
_THREADS = 3
_ARGUMENTS = {
    'halo': ['--n', ','.join(map(str, _MESH)), '--steps', str(_STEPS), '--budget', '0.1'],
    'overlap': [
        '--min',
        '64K',
        '--max',
        '64K',
        '--ratios',
        '1',
        '--progress',
        'test',
        '--budget',
        '0.02',
    ],
    'pt2pt': ['--limits', '--max', '4K', '--min', '1K', '--budget', '0.01'],
    'ring': ['--max-words', '64', '--budget', '0.2'],
    'noncommutative': ['--max', '1K'],
    'collectives': ['--limits', '--guidelines', '--min', '1K', '--max', '1K', '--budget', '0.01'],
    'pairs': ['--group', '1', '--large', '1K', '--budget', '0.05'],
    'matching': ['--large', '8K', '--lines', '16', '--budget', '0.01', '--patience', '20'],
    'onesided': ['--min', '1K', '--max', '1K', '--budget', '0.01'],
    'datatypes': ['--sizes', '1024', '--budget', '0.01'],
    'partitioned': ['--sizes', '4096', '--partitions', '1,4', '--budget', '0.01'],
    'files': ['--block', '1000', '--budget', '0.01'],
    'threads': [
        '--threads',
        str(_THREADS),
        '--thread-multiple',
        '--window',
        '4',
        '--budget',
        '0.02',
    ],
}
_CALLS = ['--op', 'bcast,allreduce', '--call', 'nonblocking,persistent']
_MORE = {'collectives': [*_CALLS, '--min', '1K', '--max', '1K', '--budget', '0.01']}
_CHECKS = {
    'pt2pt': check_pt2pt,
    'ring': check_ring,
    'collectives': check_collectives,
    'pairs': check_pairs,
    'overlap': check_overlap,
    'matching': check_matching,
    'onesided': check_onesided,
    'datatypes': check_datatypes,
    'partitioned': check_partitioned,
    'files': check_files,
    'threads': partial(check_threads, threads=_THREADS),
}


#: Of two known defects, neither of which ends a job.
_DEFECTS = ('sub-grid', 'group-of-grid')


def _complaint_of_defects(built: Built) -> str:
    for defect in _DEFECTS:
        code, output = built.run('defects', [defect, '20'], 2)
        if code:
            return f'exit code {code}'
        seen = read_witness(built.scratch / WITNESS)
        try:
            if 'does not show' in output:
                call = load_defects()[defect].call
                check_reproducer(defect, call, [one.calls for one in seen.processes])
        except WrongAnswerError as error:
            return str(error)
    return ''


def complaint(built: Built, program: str) -> str:
    if program == 'defects':
        return _complaint_of_defects(built)
    runs = [(2, _ARGUMENTS[program]), (4, _ARGUMENTS[program])]
    if program in _MORE:
        runs.append((2, _MORE[program]))
    for ranks, arguments in runs:
        code, _ = built.run(program, [*arguments, '--json', 'result.json'], ranks)
        if code:
            return f'exit code {code}'
        report = json.loads((built.scratch / 'result.json').read_text())
        try:
            if program == 'halo':
                check_halo(report, _MESH, _STEPS)
            elif program in _CHECKS:
                _CHECKS[program](report)
            if built.witness:
                seen = read_witness(built.scratch / WITNESS)
                if left := check_calls(report, [one.calls for one in seen.processes]):
                    return left
        except WrongAnswerError as error:
            return str(error)
    return ''


_SECONDS = 'double seconds = last.seconds - start.seconds;'

_COUNTED = '        sample_operation();\n    }\n    double seconds = sample_since(start);'
_MARKED = '        lacking += lacks_mark(point, iterations - 1 - i);\n'
_EXCHANGED = _MARKED + _COUNTED
_PING = (
    '    double seconds =\n        ping_pong(player->pair, (int)ping->size, &player->send, '
    '&player->receive, iterations);\n    check_line(player);\n'
)
_ONE_WAY = 'MPI_Send(NULL, 0, MPI_BYTE, point->peer, TAG, point->comm);\n' + _COUNTED

MUTANTS = [
    Mutant(
        'halo',
        'overlapped time without the exchange',
        'mpi/halo.c',
        _SECONDS,
        _SECONDS.replace(';', ' - communication[OVERLAPPED].seconds * (method == OVERLAPPED);'),
        hard=True,
    ),
    Mutant(
        'halo',
        'time without the last step',
        'mpi/halo.c',
        _SECONDS,
        _SECONDS.replace(' = ', ' = 0.75 * ').replace(
            'last.seconds - start.seconds', '(last.seconds - start.seconds)'
        ),
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
        'return (double)now.tv_sec - 1e-11 * (double)now.tv_nsec +',
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
        '    exchange(in);\n    end_part',
        '    if (in == mesh.field[0]) exchange(in);\n    end_part',
    ),
    Mutant(
        'halo',
        'rim before the messages',
        'mpi/halo.c',
        '    update_inner(out, in);\n    end_part',
        '    update_inner(out, in);\n    update_rim(out, in);\n    end_part',
        why='the rim is computed once more when the messages are there: more work than is counted',
    ),
    Mutant(
        'halo',
        'rim not computed',
        'mpi/halo.c',
        'end_part(&communication[OVERLAPPED]);\n    update_rim(out, in);',
        'end_part(&communication[OVERLAPPED]);',
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
        'MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    sample_op',
        'if (0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    sample_op',
    ),
    Mutant(
        'overlap',
        'exchange timed in part',
        'mpi/overlap.c',
        'double seconds = sample_since(start);',
        'double seconds = 0.99 * sample_since(start);',
    ),
    Mutant(
        'overlap',
        'computation timed twice',
        'mpi/overlap.c',
        'return sample_since(start);',
        'return 2 * sample_since(start);',
    ),
    Mutant(
        'overlap',
        'every other turn left out',
        'mpi/overlap.c',
        'i < iterations; i++) {\n        seconds[COMM',
        'i < iterations; i++) {\n        static long turns;\n        if (turns++ % 2)\n'
        '            continue;\n        seconds[COMM',
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
        'sample_since(start) / 2;',
        'sample_since(start);',
    ),
    Mutant(
        'pt2pt',
        'latency of a third of it',
        'mpi/common/ping_pong.c',
        'sample_since(start) / 2;',
        'sample_since(start) / 3;',
    ),
    Mutant(
        'pt2pt',
        'another byte of the message',
        'mpi/common/ping_pong.c',
        'MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1,',
        'MPI_Send(memory_pool_slot(send), size - 1, MPI_BYTE, 1,',
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
        'for (long i = 0; i < iterations; i++) {\n        struct payload_mark mark = mark_next(point, iterations - 1 - i);\n        MPI_Sendrecv',
        'for (long i = 0; i < iterations; i += 2) {\n        struct payload_mark mark = mark_next(point, iterations - 1 - i);\n        MPI_Sendrecv',
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
        'return (double)now.tv_sec - 1e-11 * (double)now.tv_nsec +',
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
        'sample_since(start) / bench.ranks;',
        'sample_since(start) / (bench.ranks + 1);',
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
        'i < iterations; i++) {\n        mark(point, iterations - 1 - i);\n        call(point);',
        'i < iterations; i += 2) {\n        mark(point, iterations - 1 - i);\n        call(point);',
    ),
    Mutant(
        'collectives',
        'time scaled',
        'mpi/collectives.c',
        'seconds = sample_since(start);',
        'seconds = 0.9 * sample_since(start);',
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
        'sample_mark();\n        call(point);',
        'sample_mark();\n        static long calls;\n        if (calls++ % 2) call(point);',
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
        _EXCHANGED.replace('start);', 'start) / bench.ranks;'),
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
        'sample_since(start) / 2;',
        'sample_since(start);',
    ),
    Mutant(
        'pairs',
        'every other window left out',
        'mpi/pairs/meter.c',
        '        post_window(point, requests);\n        send',
        '        static long calls;\n        if (calls++ % 2) {\n'
        '            payload_unmark(mark);\n            continue;\n        }\n'
        '        post_window(point, requests);\n        send',
    ),
    Mutant(
        'pairs',
        'every other window one way left out',
        'mpi/pairs/meter.c',
        '        if (point->first)\n            send_window',
        '        static long calls;\n        if (calls++ % 2) {\n'
        '            payload_unmark(mark);\n            continue;\n        }\n'
        '        if (point->first)\n            send_window',
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
        'return (double)now.tv_sec - 1e-11 * (double)now.tv_nsec +',
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
    Mutant(
        'pt2pt',
        'clock started once more half-way',
        'mpi/common/ping_pong.c',
        '        MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1,',
        '        if (i == iterations / 2) start = sample_now();\n'
        '        MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1,',
    ),
    Mutant(
        'pt2pt',
        'clock started behind a window',
        'mpi/pt2pt.c',
        'other, TAG, comm, &requests[window + w]);\n        MPI_Waitall',
        'other, TAG, comm, &requests[window + w]);\n'
        '        if (i == 0) start = sample_now();\n        MPI_Waitall',
        why='of one operation its sends are not timed',
    ),
    Mutant(
        'ring',
        'clock started behind the laps',
        'mpi/ring.c',
        '        seconds = sample_since(start) /',
        '        start = sample_now();\n        seconds = sample_since(start) /',
    ),
    Mutant(
        'ring',
        'time of the second half of the laps',
        'mpi/ring.c',
        'MPI_Send(lap->send,',
        'if (i == iterations / 2) start = sample_now();\n            MPI_Send(lap->send,',
    ),
    Mutant(
        'collectives',
        'clock of a root started behind the call',
        'mpi/collectives.c',
        'struct sample_mark start = sample_mark();\n        call(point);',
        'call(point);\n        struct sample_mark start = sample_mark();',
    ),
    Mutant(
        'collectives',
        'time of a root scaled',
        'mpi/collectives.c',
        'sample_parts_end(&calls);',
        '0.9 * sample_parts_end(&calls);',
    ),
    Mutant(
        'collectives',
        'time of a root in part',
        'mpi/common/sample.c',
        'parts->seconds += after.seconds - before.seconds;',
        'parts->seconds += 0.9 * (after.seconds - before.seconds);',
    ),
    Mutant(
        'collectives',
        'clock started once more half-way',
        'mpi/collectives.c',
        '        call(point);\n        unmark(',
        '        if (i == iterations / 2) start = sample_now();\n'
        '        call(point);\n        unmark(',
    ),
    Mutant('collectives', 'no barrier', 'mpi/collectives.c', 'POST(Barrier, barrier, comm);', ';'),
    Mutant(
        'collectives',
        'barrier of one rank',
        'mpi/collectives.c',
        'POST(Barrier, barrier, comm);',
        'POST(Barrier, barrier, MPI_COMM_SELF);',
    ),
    Mutant(
        'collectives',
        'barrier of all but the last',
        'mpi/collectives.c',
        'POST(Barrier, barrier, comm);',
        'POST(Barrier, barrier, bench.rank + 1 == bench.ranks ? MPI_COMM_SELF : comm);',
    ),
    Mutant(
        'collectives',
        'broadcast of half',
        'mpi/collectives.c',
        'POST(Bcast, bcast, bench.rank == 0 ? send : receive, bytes,',
        'POST(Bcast, bcast, bench.rank == 0 ? send : receive, bytes / 2,',
    ),
    Mutant(
        'collectives',
        'sum of all but the own part',
        'mpi/collectives.c',
        'POST(Allreduce, allreduce, send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm);',
        'POST(Allreduce, allreduce, send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm);\n'
        '        ((double *)receive)[doubles - 1] -= 1e-6;',
    ),
    Mutant(
        'collectives',
        'gathered at the root alone',
        'mpi/collectives.c',
        'POST(Allgather, allgather, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, comm);',
        'POST(Gather, gather, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, comm);',
    ),
    Mutant(
        'overlap',
        'half of the computation beside the messages',
        'mpi/overlap.c',
        'seconds[TOTAL] += exchange(point, point->rounds);',
        'seconds[TOTAL] += exchange(point, point->rounds / 2);',
    ),
    Mutant(
        'overlap',
        'time of both scaled',
        'mpi/overlap.c',
        'seconds[TOTAL] += exchange(point, point->rounds);',
        'seconds[TOTAL] += 0.9 * exchange(point, point->rounds);',
    ),
    Mutant(
        'overlap',
        'messages waited for behind the time',
        'mpi/overlap.c',
        '    finish(requests);\n    double seconds = sample_since(start);',
        '    double seconds = sample_since(start);\n    finish(requests);',
    ),
    Mutant(
        'overlap',
        'messages sent before the time',
        'mpi/overlap.c',
        'compute(rounds, requests);\n',
        'if (rounds) start = sample_now();\n    compute(rounds, requests);\n',
        why='Ttotal without what posting takes',
    ),
    Mutant(
        'overlap',
        'hidden over what took longer',
        'mpi/overlap.c',
        'hiding->could += could;',
        'hiding->could += fmax(cpu, comm);',
    ),
    Mutant(
        'overlap',
        'more hidden at a size',
        'mpi/overlap.c',
        'double overlap = hiding.was / hiding.could;',
        'double overlap = 1.00001 * hiding.was / hiding.could;',
    ),
    Mutant(
        'overlap',
        'another series',
        'mpi/overlap.c',
        'double total = results[TOTAL].time.median;',
        'double total = results[COMPUTATION].time.median;',
    ),
    Mutant(
        'pairs',
        'clock started once more half-way',
        'mpi/pairs/meter.c',
        '        post_window(point, requests);\n        send',
        '        if (i == iterations / 2) start = sample_now();\n'
        '        post_window(point, requests);\n        send',
    ),
    Mutant(
        'pairs',
        'answers not waited for in the time',
        'mpi/pairs/meter.c',
        'if (point->first)\n            MPI_Recv(NULL, 0,',
        'if (point->first && i + 1 == iterations) sample_operation(), start = sample_now();\n'
        '        if (point->first)\n            MPI_Recv(NULL, 0,',
    ),
    Mutant(
        'halo',
        'clock started once more half-way',
        'mpi/halo.c',
        'double *in = mesh.field[step % 2], *out',
        'if (step == steps / 2)\n'
        '            outer = MPI_Wtime(), start = sample_mark(), inner = MPI_Wtime();\n'
        '        double *in = mesh.field[step % 2], *out',
    ),
    Mutant(
        'halo',
        'blocking messages not counted in their share',
        'mpi/halo.c',
        'part->seconds += now.seconds - last.seconds;',
        'if (part != communication + BLOCKING)\n'
        '        part->seconds += now.seconds - last.seconds;',
    ),
    Mutant(
        'halo',
        'waiting not counted as communication',
        'mpi/halo.c',
        'end_part(&communication[OVERLAPPED]);\n    update_rim(out, in);',
        'end_part(&computation[OVERLAPPED]);\n    update_rim(out, in);',
    ),
    Mutant(
        'halo',
        'share of the messages scaled',
        'mpi/halo.c',
        'own = in / (in + computation[method].seconds);',
        'own = 0.999 * in / (in + computation[method].seconds);',
    ),
    Mutant(
        'halo',
        'share of one rank more',
        'mpi/halo.c',
        'share.avg /= bench.ranks;',
        'share.avg /= bench.ranks + 1;',
    ),
    Mutant(
        'halo',
        'efficiency of the rate itself',
        'mpi/halo.c',
        'json_number(bench.json, "efficiency", rate / limit_rate);',
        'json_number(bench.json, "efficiency", 1.001 * rate / limit_rate);',
    ),
    Mutant(
        'matching',
        'a message more in the burst',
        'mpi/matching.c',
        'return sample_parts_end(&parts) / messages_of(bursts->incast);',
        'return sample_parts_end(&parts) / (messages_of(bursts->incast) + 1);',
    ),
    Mutant(
        'matching',
        'senders that send the same message again',
        'mpi/matching.c',
        'MPI_Isend(memory + (size_t)i * incast->size,',
        'MPI_Isend(memory,',
    ),
    Mutant(
        'matching',
        'receives of another size',
        'mpi/matching.c',
        'MPI_Irecv(memory + (size_t)slot * incast->size, (int)incast->size, MPI_BYTE, source',
        'MPI_Irecv(memory, (int)incast->size, MPI_BYTE, source',
    ),
    Mutant(
        'onesided',
        'every other operation left out',
        'mpi/onesided.c',
        'call(side, &fetched);',
        'if (i % 2 == 0) call(side, &fetched);',
    ),
    Mutant(
        'onesided',
        'put of a byte less',
        'mpi/onesided.c',
        'MPI_Put(local(side), bytes, MPI_BYTE, TARGET, 0, bytes,',
        'MPI_Put(local(side), bytes - 1, MPI_BYTE, TARGET, 0, bytes - 1,',
    ),
    Mutant(
        'onesided',
        'get of what is before',
        'mpi/onesided.c',
        'MPI_Get(local(side), bytes, MPI_BYTE, TARGET, 0, bytes,',
        'MPI_Get(local(side), bytes - 8, MPI_BYTE, TARGET, 8, bytes - 8,',
    ),
    Mutant(
        'onesided',
        'clock started once more half-way',
        'mpi/onesided.c',
        '        int64_t fetched = -1;',
        '        if (i == iterations / 2) start = sample_now();\n        int64_t fetched = -1;',
    ),
    Mutant(
        'onesided',
        'bandwidth of the median',
        'mpi/onesided.c',
        'double bandwidth = (double)point->size / time->best;',
        'double bandwidth = (double)point->size / time->median;',
    ),
    Mutant(
        'datatypes',
        'packed once for all',
        'mpi/datatypes.c',
        '        gather(shape, array, side->packed);\n',
        '        static long packed;\n'
        '        if (packed != side->batch)\n'
        '            gather(shape, array, side->packed);\n'
        '        packed = side->batch;\n',
        hard=True,
    ),
    Mutant(
        'datatypes',
        'every other message not unpacked',
        'mpi/datatypes.c',
        '        scatter(shape, side->packed, array);\n',
        '        static unsigned turn;\n'
        '        if (turn++ % 2 == 0)\n'
        '            scatter(shape, side->packed, array);\n',
    ),
    Mutant(
        'datatypes',
        'vector without what lies between',
        'mpi/datatypes.c',
        'MPI_Type_vector(count, 1, STRIDE,',
        'MPI_Type_vector(1, count, count,',
    ),
    Mutant(
        'datatypes',
        'vector sent with what lies between',
        'mpi/datatypes.c',
        'MPI_Type_vector(count, 1, STRIDE,',
        'MPI_Type_contiguous(count * STRIDE - 1, MPI_DOUBLE, &shape->type);\n'
        '        if (0)\n'
        '            MPI_Type_vector(count, 1, STRIDE,',
    ),
    Mutant(
        'datatypes',
        'one layer of the face',
        'mpi/datatypes.c',
        'part[] = { shape->planes, shape->rows, DEPTH }',
        'part[] = { shape->planes, shape->rows, 1 }',
    ),
    Mutant(
        'datatypes',
        'MPI_Pack of half of the data',
        'mpi/datatypes.c',
        'MPI_Pack(array, 1, shape->type, side->packed, side->room, &position, side->pair);',
        'MPI_Pack(array, (int)shape->count / 2, MPI_DOUBLE, side->packed, side->room, &position,\n'
        '                 side->pair);',
    ),
    Mutant(
        'datatypes',
        'time of a whole round trip',
        'mpi/datatypes.c',
        'double seconds = sample_since(start) / 2;',
        'double seconds = sample_since(start);',
    ),
    Mutant(
        'datatypes',
        'bandwidth with what lies between',
        'mpi/datatypes.c',
        'double bandwidth = (double)size / time->best;',
        'double bandwidth = (double)shape->span * sizeof(double) / time->best;',
    ),
    Mutant(
        'datatypes',
        'every other message twice',
        'mpi/datatypes.c',
        '        sample_operation();\n    }\n    double seconds = sample_since(start) / 2;',
        '        sample_operation();\n        if (i % 2)\n            sample_operation(), i++;\n'
        '    }\n    double seconds = sample_since(start) / 2;',
        why='operations are counted that were not made',
    ),
    Mutant(
        'partitioned',
        'arrival not asked for',
        'mpi/partitioned.c',
        'int has_arrived = point->way != PARTITIONED;',
        'int has_arrived = 1;',
        hard=True,
    ),
    Mutant(
        'partitioned',
        'arrival asked for once',
        'mpi/partitioned.c',
        'while (!has_arrived)\n            MPI_Parrived',
        'if (!has_arrived)\n            MPI_Parrived',
    ),
    Mutant(
        'partitioned',
        'one partition whatever was asked for',
        'mpi/partitioned.c',
        'MPI_Psend_init(side->sent, point->partitions, bytes, MPI_BYTE,',
        'MPI_Psend_init(side->sent, 1, bytes * point->partitions, MPI_BYTE,',
    ),
    Mutant(
        'partitioned',
        'ready before it is written',
        'mpi/partitioned.c',
        '        write_words(side->sent + (size_t)i * part, part, word_of(side->messages, i, '
        'side->rank));\n'
        '        if (point->way == PARTITIONED)\n'
        '            MPI_Pready(i, side->send[0]);\n'
        '        else\n'
        '            MPI_Start(&side->send[i]);\n',
        '        if (point->way == PARTITIONED)\n'
        '            MPI_Pready(i, side->send[0]);\n'
        '        else\n'
        '            MPI_Start(&side->send[i]);\n'
        '        write_words(side->sent + (size_t)i * part, part, word_of(side->messages, i, '
        'side->rank));\n',
    ),
    Mutant(
        'partitioned',
        'messages of one partition',
        'mpi/partitioned.c',
        'side->requests = point->partitions;',
        'side->requests = 1;\n    bytes *= point->partitions;',
    ),
    Mutant(
        'partitioned',
        'clock started behind the first message',
        'mpi/partitioned.c',
        '        side->messages++;\n',
        '        side->messages++;\n        if (i == 1)\n            start = sample_now();\n',
    ),
    Mutant(
        'partitioned',
        'bandwidth of a partition',
        'mpi/partitioned.c',
        'double bandwidth = (double)point->size / time->best;',
        'double bandwidth = (double)part_size(point) / time->best;',
    ),
    Mutant(
        'files',
        'time without the synchronisation',
        'mpi/files.c',
        'must_be_whole(&status, way_names[way]);\n    must(MPI_File_sync(file), "MPI_File_sync");',
        'must_be_whole(&status, way_names[way]);',
        why='what is written is synchronised after the time alone',
    ),
    Mutant(
        'files',
        'each rank reads its own',
        'mpi/files.c',
        'return (bench.rank + 1) % bench.ranks;',
        'return bench.rank;',
        equivalent='all is still written, read and looked at',
    ),
    Mutant(
        'files',
        'blocks of another rank',
        'mpi/files.c',
        'must(MPI_File_write_at(file, place_of(bench.rank),',
        'must(MPI_File_write_at(file, place_of(0),',
    ),
    Mutant(
        'files',
        'bandwidth of a block',
        'mpi/files.c',
        'double bandwidth = (double)size / time->best;',
        'double bandwidth = (double)bytes / time->best;',
    ),
    Mutant(
        'threads',
        'one thread that works alone',
        'mpi/threads.c',
        'if (task.measure == ONE && worker->number > 0)',
        'if (worker->number > 0)',
    ),
    Mutant(
        'threads',
        'rate of a thread more',
        'mpi/threads.c',
        'double messages = (double)threads * (double)window',
        'double messages = (double)(threads + 1) * (double)window',
    ),
    Mutant(
        'threads',
        'time until the first thread is done',
        'mpi/threads.c',
        'pthread_barrier_wait(&end);\n    count_windows();\n    double seconds = sample_since',
        'count_windows();\n    double seconds = sample_since(start);\n'
        '    pthread_barrier_wait(&end);\n    if (0) sample_since',
        why='the others may still send',
    ),
    Mutant(
        'halo',
        'compute only computes twice',
        'mpi/halo.c',
        '        else\n            update_all(out, in);\n',
        '        else {\n            update_all(out, in);\n'
        '            update_all(out, in);\n        }\n',
    ),
    Mutant(
        'halo',
        'compute only without the last rows',
        'mpi/halo.c',
        '        else\n            update_all(out, in);\n',
        '        else\n            update(out, in, 0, mesh.size[X] - 1, 0, mesh.size[Y]);\n',
    ),
    Mutant(
        'halo',
        'blocking computes the rim alone',
        'mpi/halo.c',
        'end_part(&communication[BLOCKING]);\n    update_all(out, in);',
        'end_part(&communication[BLOCKING]);\n    update_all(out, in);\n    update_rim(out, in);',
    ),
    Mutant(
        'halo',
        'corners and edges too few',
        'mpi/halo.c',
        'MPI_Type_vector(mesh.size[X], nz,',
        'MPI_Type_vector(mesh.size[X], nz - 1,',
    ),
    Mutant(
        'collectives',
        'ping-pong of twice the time',
        'mpi/collectives.c',
        'ping_pong(volley->pair, volley->size, &volley->send, &volley->receive, iterations);\n',
        '2 * ping_pong(volley->pair, volley->size, &volley->send, &volley->receive, iterations);\n',
    ),
    Mutant(
        'collectives',
        'latency of a ping-pong twice as long',
        'mpi/collectives.c',
        'json_number(bench.json, "latency", small.time.best);',
        'json_number(bench.json, "latency", 2 * small.time.best);',
    ),
    Mutant(
        'collectives',
        'ping-pong of the median',
        'mpi/collectives.c',
        'json_number(bench.json, "latency", small.time.best);',
        'json_number(bench.json, "latency", small.time.p95);',
    ),
    Mutant(
        'collectives',
        'bandwidth of half of a ping-pong',
        'mpi/collectives.c',
        'double bandwidth = (double)largest / longest.time.best;',
        'double bandwidth = 0.5 * (double)largest / longest.time.best;',
    ),
    Mutant(
        'pt2pt',
        'limit is not the median',
        'mpi/common/machine_limits.c',
        'limits.memcpy_bandwidth = middle(offsetof(struct limits, memcpy_bandwidth));',
        'limits.memcpy_bandwidth = 0.5 * middle(offsetof(struct limits, memcpy_bandwidth));',
    ),
    Mutant(
        'pt2pt',
        'limit of half a copy',
        'mpi/common/machine_limits.c',
        'memcpy(to, from, LARGE);',
        'memcpy(to, from, LARGE / 2);',
    ),
    Mutant(
        'pt2pt',
        'limit of the faster copy',
        'mpi/common/machine_limits.c',
        'MPI_Allreduce(&best, &slower, 1, MPI_DOUBLE, MPI_MAX, pair);',
        'MPI_Allreduce(&best, &slower, 1, MPI_DOUBLE, MPI_MIN, pair);',
    ),
    Mutant(
        'pt2pt',
        'limit of half of the turns of a cache line',
        'mpi/common/machine_limits.c',
        'for (int i = 0; i < BATCH; i++) {',
        'for (int i = 0; i < BATCH / 2; i++) {',
    ),
    Mutant(
        'pt2pt',
        'limit of half a message through a socket',
        'mpi/common/machine_limits.c',
        'for (size_t done = 0; done < size;) {',
        'for (size_t done = 0; done < size / 2;) {',
    ),
    Mutant(
        'pt2pt',
        'the same receive buffer for a window',
        'mpi/pt2pt.c',
        'slots[w] = memory_pool_next(&receiving);',
        'slots[w] = w ? slots[0] : memory_pool_next(&receiving);',
    ),
    Mutant(
        'onesided',
        'put and get once for all',
        'mpi/onesided.c',
        'call(side, &fetched);\n        complete',
        'if (i == 0 || side->point->op > GET) call(side, &fetched);\n        complete',
    ),
    Mutant(
        'onesided',
        'flush left out',
        'mpi/onesided.c',
        'MPI_Win_flush(TARGET, side->window);',
        'if (side->point->op == FETCH_ADD) MPI_Win_flush(TARGET, side->window);',
        hard=True,
    ),
    Mutant(
        'onesided',
        'every second get is short',
        'mpi/onesided.c',
        'MPI_Win window = side->window;\n    int bytes = (int)side->point->size,',
        'MPI_Win window = side->window;\n    static unsigned turn;\n'
        '    int bytes = (side->point->op == GET && turn++ % 2) ? 8 : (int)side->point->size,',
    ),
    Mutant(
        'threads',
        'shared is none',
        'mpi/threads.c',
        'task.measure == SHARED ? workers[0].own : worker->own',
        'worker->own',
        hard=True,
    ),
    Mutant(
        'threads',
        'all share one',
        'mpi/threads.c',
        'task.measure == SHARED ? workers[0].own : worker->own',
        'workers[0].own',
    ),
    Mutant(
        'threads',
        'answer not waited for',
        'mpi/threads.c',
        'MPI_Recv(NULL, 0, MPI_BYTE, partner(), tag, comm, MPI_STATUS_IGNORE);',
        'MPI_Request late;\n'
        '    MPI_Irecv(NULL, 0, MPI_BYTE, partner(), tag, comm, &late);\n'
        '    MPI_Request_free(&late);',
        hard=True,
    ),
    Mutant(
        'matching',
        'receives in line are not posted',
        'mpi/matching.c',
        'static void ask_for_line(const struct player *player)\n{\n'
        '    for (int i = 0; i < player->ping->waiting; i++)',
        'static void ask_for_line(const struct player *player)\n{\n'
        '    for (int i = 0; i < player->ping->waiting; i++)\n'
        '        player->asked[i] = MPI_REQUEST_NULL,\n'
        '        payload_fill(player->line_received + (size_t)i * WORD, WORD,\n'
        '                     player->other_world, i);\n'
        '    for (int i = 0; i < 0; i++)',
        hard=True,
    ),
    Mutant(
        'matching',
        'receives in line are posted behind the ping-pong',
        'mpi/matching.c',
        f'    if (is_posted)\n        ask_for_line(player);\n    else\n        send_line(player);\n'
        f'{_PING}    if (is_posted)\n',
        f'    if (!is_posted)\n        send_line(player);\n{_PING}    if (is_posted)\n'
        '        ask_for_line(player);\n    if (is_posted)\n',
    ),
    Mutant(
        'matching',
        'any source is named',
        'mpi/matching.c',
        'incast->source == ANY ? MPI_ANY_SOURCE : 1 + i % (bench.ranks - 1)',
        '1 + i % (bench.ranks - 1)',
    ),
    Mutant(
        'matching',
        'named ones are any',
        'mpi/matching.c',
        'incast->source == ANY ? MPI_ANY_SOURCE : 1 + i % (bench.ranks - 1)',
        'MPI_ANY_SOURCE',
    ),
    Mutant(
        'overlap',
        'requests not looked after',
        'mpi/overlap.c',
        '        if (!done)\n            MPI_Testall',
        '        if (0)\n            MPI_Testall',
        hard=True,
    ),
    Mutant(
        'collectives',
        'persistent ones are started every second time',
        'mpi/collectives.c',
        '        MPI_Start(&point->persistent);\n        MPI_Wait',
        '        static long starts;\n        if (starts++ % 2 == 0)\n'
        '            MPI_Start(&point->persistent);\n        MPI_Wait',
    ),
    Mutant(
        'collectives',
        'persistent ones are made anew',
        'mpi/collectives.c',
        'if (point->how == PERSISTENT) {',
        'if (0) {',
    ),
    Mutant(
        'collectives',
        'guideline: barrier is not run',
        'mpi/guidelines.c',
        'for (int part = 0; part < way->parts; part++)\n        way->run',
        'for (int part = 0; part < way->parts; part++)\n        if (way->run != barrier) way->run',
    ),
    Mutant(
        'collectives',
        'guideline: barrier by messages is not run',
        'mpi/guidelines.c',
        'for (int part = 0; part < way->parts; part++)\n        way->run',
        'for (int part = 0; part < way->parts; part++)\n'
        '        if (way->run != barrier_by_messages) way->run',
    ),
    Mutant(
        'collectives',
        'guideline: twice the bytes are once',
        'mpi/guidelines.c',
        '{ "itself with twice the bytes", run, 1, 2 }',
        '{ "itself with twice the bytes", run, 1, 1 }',
    ),
    Mutant(
        'collectives',
        'guideline: two halves are one',
        'mpi/guidelines.c',
        '{ "itself twice with half the bytes", run, 2, 1 }',
        '{ "itself twice with half the bytes", run, 1, 1 }',
    ),
    Mutant(
        'collectives',
        'guideline: barrier by allreduce is none',
        'mpi/guidelines.c',
        'allreduce(send, receive, 1);',
        'memcpy(receive, send, sizeof *send);',
    ),
    Mutant(
        'collectives',
        'guideline: allgather by alltoall is allgather',
        'mpi/guidelines.c',
        'alltoall(scratch, receive, n);\n}',
        'allgather(send, receive, n);\n}',
    ),
    Mutant(
        'collectives',
        'guideline: reduce by allreduce is reduce',
        'mpi/guidelines.c',
        'BY_MESSAGES(reduce), BY("allreduce", allreduce),',
        'BY_MESSAGES(reduce), BY("allreduce", reduce),',
    ),
    Mutant(
        'collectives',
        'guideline: scatter by bcast is scatter',
        'mpi/guidelines.c',
        'BY("bcast", scatter_by_bcast)',
        'BY("bcast", scatter)',
    ),
    Mutant(
        'collectives',
        'guideline: messages that do the same are the operation',
        'mpi/guidelines.c',
        '#define BY_MESSAGES(name) BY("messages that do the same", name##_by_messages)',
        '#define BY_MESSAGES(name) BY("messages that do the same", name)',
    ),
    Mutant(
        'collectives',
        'guideline: no barrier before a call',
        'mpi/guidelines.c',
        'MPI_Barrier(world);\n    struct sample_mark',
        'struct sample_mark',
    ),
    Mutant(
        'collectives',
        'guideline: no barrier behind an operation with a root',
        'mpi/guidelines.c',
        'if (operation->from_root || operation->to_root)',
        'if (0)',
    ),
    Mutant(
        'collectives',
        'guideline: time of a way scaled',
        'mpi/guidelines.c',
        'own[way] += time_of_call',
        'own[way] += (way ? 1 : 0.9) * time_of_call',
    ),
    Mutant(
        'collectives',
        'guideline: ratio turned over',
        'mpi/guidelines.c',
        'double ratio = slowest[0] / slowest[way];',
        'double ratio = slowest[way] / slowest[0];',
    ),
    Mutant(
        'noncommutative',
        'sizes left out',
        'mpi/noncommutative.c',
        'size = sizes_next(size, largest)',
        'size = largest',
    ),
    Mutant(
        'noncommutative',
        'one operation alone',
        'mpi/noncommutative.c',
        'if (!(chosen_ops & 1u << which))',
        'if (which != REDUCE)',
    ),
    Mutant(
        'noncommutative',
        'half of the elements',
        'mpi/noncommutative.c',
        'size_t count = size / sizeof *send, first = 0;',
        'size_t count = (size / sizeof *send + 1) / 2, first = 0;',
    ),
    Mutant(
        'noncommutative',
        'result computed without a reduction',
        'mpi/noncommutative.c',
        'MPI_Allreduce(send, receive, (int)count, type, op, MPI_COMM_WORLD);',
        'for (size_t i = 0; i < count; i++) receive[i] = expected[i % PERIOD];',
    ),
    Mutant(
        'noncommutative',
        'elements of all ranks are the same',
        'mpi/noncommutative.c',
        '(index * 7 + (size_t)rank * 31 + 3) % (PRIME - 1)),\n'
        '                         .b = (int)((index * 5 + (size_t)rank * 17 + 1) % PRIME) };',
        '(index * 7 + 3 + 0 * (size_t)rank) % (PRIME - 1)),\n'
        '                         .b = (int)((index * 5 + 1) % PRIME) };',
    ),
    Mutant(
        'noncommutative',
        'operation that commutes',
        'mpi/noncommutative.c',
        'MPI_Op_create(combine, 0, &op);',
        'MPI_Op_create(combine, 1, &op);',
    ),
    Mutant(
        'defects',
        'reproducer is not run',
        'mpi/defects/defects.c',
        'int mine = reproducers[found].shows(rank, ranks), any = 0;',
        'int mine = 0, any = 0;',
    ),
    Mutant(
        'defects',
        'part of a grid is a copy',
        'mpi/defects/sub_grid.c',
        'MPI_Cart_sub(ring, &remains, &part);',
        'MPI_Comm_dup(ring, &part);',
    ),
    Mutant(
        'pairs',
        'first window alone is whole',
        'mpi/pairs/meter.c',
        '        post_window(point, requests);\n'
        '        send_window(point, requests + point->window);',
        '        int size = point->size;\n'
        '        point->size = i && size > 64 ? 64 : size;\n'
        '        post_window(point, requests);\n'
        '        send_window(point, requests + point->window);\n'
        '        point->size = size;',
    ),
    Mutant(
        'pairs',
        'half of the pairs by half',
        'mpi/pairs/meter.c',
        '        MPI_Isend(memory_pool_slot(point->send), point->size, MPI_BYTE, point->peer, TAG,',
        '        MPI_Isend(memory_pool_slot(point->send), bench.rank == 2 ? '
        'point->size / 2 : point->size,\n'
        '                  MPI_BYTE, point->peer, TAG,',
    ),
    Mutant(
        'collectives',
        'sums in single precision',
        'mpi/collectives.c',
        '    case ALLREDUCE:\n'
        '        POST(Allreduce, allreduce, send, receive, doubles, MPI_DOUBLE, '
        'MPI_SUM, comm);\n'
        '        break;',
        '    case ALLREDUCE:\n'
        '        POST(Allreduce, allreduce, send, receive, doubles, MPI_DOUBLE, '
        'MPI_SUM, comm);\n'
        '        for (int i = 0; point->how == BLOCKING && i < doubles; i++)\n'
        '            ((double *)receive)[i] = (float)((double *)receive)[i];\n'
        '        break;',
        hard=True,
    ),
    Mutant(
        'collectives',
        'sums by the greatest rank',
        'mpi/collectives.c',
        'receive, doubles, MPI_DOUBLE, MPI_SUM, comm);\n        break;\n    case SCAN',
        'receive, doubles, MPI_DOUBLE, bench.ranks > 3 ? MPI_MAX : MPI_SUM, comm);\n'
        '        break;\n'
        '    case SCAN',
    ),
    Mutant(
        'pt2pt',
        'warm-up counted',
        'mpi/common/sample.c',
        '++sample->batches <= warm_ups(sample, whole)',
        '++sample->batches < warm_ups(sample, whole)',
    ),
    Mutant(
        'pt2pt',
        'no warm-up',
        'mpi/common/sample.c',
        '++sample->batches <= warm_ups(sample, whole)',
        '++sample->batches <= 0 * warm_ups(sample, whole)',
    ),
    *(
        Mutant(
            program,
            'slow batches thrown away',
            'mpi/common/sample.c',
            '    result->kept += seconds;',
            '    if (result->samples > 2 && seconds / (double)result->iterations > 1.05 '
            '* sample->seconds[0])\n'
            '        return true;\n'
            '    result->kept += seconds;',
        )
        for program in ('pt2pt', 'ring')
    ),
    Mutant(
        'pt2pt',
        'shorter messages but for the last',
        'mpi/pt2pt.c',
        '        MPI_Isend(memory_pool_slot(&sending), size, MPI_BYTE, other, TAG, '
        'comm, &request);\n'
        '        MPI_Recv(',
        '        MPI_Isend(memory_pool_slot(&sending), i + 1 < iterations ? size / 2 '
        ': size, MPI_BYTE, other, TAG,\n'
        '                  comm, &request);\n'
        '        MPI_Recv(',
    ),
    Mutant(
        'pt2pt',
        'ping-pong of shorter messages but for the last',
        'mpi/common/ping_pong.c',
        '        MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1, TAG, pair);',
        '        MPI_Send(memory_pool_slot(send), i + 1 < iterations ? size / 2 : '
        'size, MPI_BYTE, 1, TAG, pair);',
    ),
    Mutant(
        'halo',
        'low bit lost on the last rank',
        'mpi/halo.c',
        '    update_inner(out, in);\n    end_part',
        '    update_inner(out, in);\n'
        '    if (bench.rank + 1 == bench.ranks)\n'
        '        out[row(1, 1)] *= 1 + 2.3e-16;\n'
        '    end_part',
    ),
    Mutant(
        'halo',
        'an odd step without its halo',
        'mpi/halo.c',
        '    exchange(in);\n    end_part',
        '    if (in != mesh.field[1] || rows_updated == 0)\n'
        '        exchange(in);\n'
        '    else\n'
        '        sample_operation(), sample_operation();\n'
        '    end_part',
    ),
    *(
        Mutant(
            program,
            'old content but for the last',
            'mpi/common/ping_pong.c',
            'MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1, TAG, pair);',
            'static char old[1 << 20];\n'
            '        MPI_Send(i + 1 < iterations ? old : memory_pool_slot(send), size, MPI_BYTE, 1,\n'
            '                 TAG, pair);',
        )
        for program in ('pt2pt', 'pairs', 'matching')
    ),
    Mutant(
        'pt2pt',
        'received elsewhere but for the last',
        'mpi/common/ping_pong.c',
        'MPI_Recv(memory_pool_next(receive), size, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);',
        'static char other[1 << 20];\n'
        '        char *next = memory_pool_next(receive);\n'
        '        MPI_Recv(i + 1 < iterations ? other : next, size, MPI_BYTE, 1, TAG, pair,\n'
        '                 MPI_STATUS_IGNORE);',
    ),
    *(
        Mutant(
            'pt2pt',
            f'{pattern} of old content but for the last',
            'mpi/pt2pt.c',
            f'{call}(memory_pool_slot(&sending), size,',
            'static char old[1 << 20];\n'
            f'        {call}(i + 1 < iterations ? old : memory_pool_slot(&sending), size,',
        )
        for pattern, call in (('ping-ping', 'MPI_Isend'), ('sendrecv', 'MPI_Sendrecv'))
    ),
    Mutant(
        'pt2pt',
        'exchange of old content but for the last',
        'mpi/pt2pt.c',
        'char *message = memory_pool_slot(&sending);',
        'static char old[1 << 20];\n'
        '        char *message = i + 1 < iterations ? old : memory_pool_slot(&sending);',
    ),
    Mutant(
        'pt2pt',
        'window received elsewhere but for the last',
        'mpi/pt2pt.c',
        'MPI_Irecv(slots[w], size,',
        'static char other[1 << 24];\n'
        '            MPI_Irecv(i + 1 < iterations ? other + (size_t)w * (size_t)size : slots[w], size,',
    ),
    Mutant(
        'ring',
        'old content but for the last',
        'mpi/ring.c',
        'MPI_Send(lap->send, lap->size,',
        'static char old[1 << 20];\n'
        '            MPI_Send(i + 1 < iterations ? old : lap->send, lap->size,',
    ),
    Mutant(
        'ring',
        'old content passed on but for the last',
        'mpi/ring.c',
        'MPI_Send(lap->receive, lap->size,',
        'MPI_Send(i + 1 < iterations ? lap->send : lap->receive, lap->size,',
    ),
    Mutant(
        'pairs',
        'windows of old content but for the last',
        'mpi/pairs/meter.c',
        '            send_window(point, requests);',
        '        {\n'
        '            static char old[1 << 20];\n'
        '            char *memory = point->send->memory;\n'
        '            if (i + 1 < iterations)\n'
        '                point->send->memory = old;\n'
        '            send_window(point, requests);\n'
        '            point->send->memory = memory;\n'
        '        }',
    ),
    Mutant(
        'threads',
        'old content but for the last window',
        'mpi/threads.c',
        'send_window(worker, comm, worker->number);',
        'static char old[1 << 20];\n'
        '            char *memory = worker->memory;\n'
        '            if (left)\n'
        '                worker->memory = old;\n'
        '            send_window(worker, comm, worker->number);\n'
        '            worker->memory = memory;',
    ),
    *(
        Mutant(
            'collectives',
            f'{what} but for the last call',
            'mpi/collectives.c',
            '        call(point);\n        unmark(',
            'static char other[1 << 20];\n'
            f'        char *held = point->{buffer};\n'
            '        if (i + 1 < iterations)\n'
            f'            point->{buffer} = other;\n'
            '        call(point);\n'
            f'        point->{buffer} = held;\n'
            '        unmark(',
        )
        for what, buffer in (('old content', 'send'), ('results elsewhere', 'receive'))
    ),
    Mutant(
        'collectives',
        'results of a root elsewhere but for the last call',
        'mpi/collectives.c',
        'struct sample_mark start = sample_mark();\n        call(point);',
        'static char other[1 << 20];\n'
        '        char *held = point->receive;\n'
        '        if (i + 1 < iterations)\n'
        '            point->receive = other;\n'
        '        struct sample_mark start = sample_mark();\n'
        '        call(point);\n'
        '        point->receive = held;',
    ),
    Mutant(
        'files',
        'read elsewhere but for the last',
        'mpi/files.c',
        '            read_blocks(point->way);\n        sample_parts',
        '        {\n'
        '            char *held = read_back;\n'
        '            if (i + 1 < iterations && i > 0)\n'
        '                read_back = written;\n'
        '            read_blocks(point->way);\n'
        '            read_back = held;\n'
        '        }\n'
        '        sample_parts',
    ),
    Mutant(
        'halo',
        'computation without messages twice',
        'mpi/halo.c',
        '            update_all(out, in);\n        sample_operation();',
        '        {\n'
        '            update_all(out, in);\n'
        '            update_all(out, in);\n'
        '            rows_updated -= (long)mesh.size[X] * mesh.size[Y];\n'
        '        }\n'
        '        sample_operation();',
    ),
    Mutant(
        'overlap',
        'slower computation alone',
        'mpi/overlap.c',
        '    compute(point->rounds, NULL);\n    sample_operation();',
        '    compute(point->rounds, NULL);\n'
        '    rounds_made -= point->rounds;\n'
        '    compute(point->rounds, NULL);\n'
        '    sample_operation();',
    ),
    Mutant(
        'files',
        'clock started behind the work',
        'mpi/files.c',
        'struct sample_mark start = sample_mark();\n        if (writes)\n            write_blocks(point->way);\n        else\n            read_blocks(point->way);\n',
        'if (writes)\n            write_blocks(point->way);\n        else\n            read_blocks(point->way);\n        struct sample_mark start = sample_mark();\n',
    ),
    Mutant(
        'files',
        'collective writes by each rank alone',
        'mpi/files.c',
        'must(MPI_File_write_at_all(file, place_of(bench.rank), written, count, MPI_BYTE, &status),',
        'must(MPI_File_write_at(file, place_of(bench.rank), written, count, MPI_BYTE, &status),',
    ),
    Mutant(
        'files',
        'collective reads by each rank alone',
        'mpi/files.c',
        'must(MPI_File_read_at_all(file, place_of(rank_behind()), read_back, count, MPI_BYTE,\n                                  &status),',
        'must(MPI_File_read_at(file, place_of(rank_behind()), read_back, count, MPI_BYTE,\n                                  &status),',
    ),
    Mutant(
        'files',
        'blocks take no turns',
        'mpi/files.c',
        'MPI_Datatype places = way == INTERLEAVED ? turns : MPI_BYTE;',
        'MPI_Datatype places = way == INTERLEAVED && bench.ranks > 99 ? turns : MPI_BYTE;',
    ),
    Mutant(
        'files',
        'turns of one rank more',
        'mpi/files.c',
        'MPI_Type_create_resized(one, 0, (MPI_Aint)block * bench.ranks, &turns);',
        'MPI_Type_create_resized(one, 0, (MPI_Aint)block * (bench.ranks - 1), &turns);',
    ),
    Mutant(
        'files',
        'half of each writing',
        'mpi/files.c',
        'must(MPI_File_write_at(file, place_of(bench.rank), written, count,',
        'must(MPI_File_write_at(file, place_of(bench.rank), written, count / 2,',
    ),
    Mutant(
        'files',
        'every other synchronisation left out',
        'mpi/files.c',
        'must_be_whole(&status, way_names[way]);\n    must(MPI_File_sync(file), "MPI_File_sync");',
        'must_be_whole(&status, way_names[way]);\n    static int calls = 0;\n    if (calls++ % 2)\n        must(MPI_File_sync(file), "MPI_File_sync");',
    ),
    Mutant(
        'files',
        'every other writing left out',
        'mpi/files.c',
        '        if (writes)\n            write_blocks(point->way);\n        else\n',
        '        static long calls;\n        if (writes && calls++ % 2)\n            sample_operation();\n        else if (writes)\n            write_blocks(point->way);\n        else\n',
    ),
    Mutant(
        'files',
        'read from its own memory',
        'mpi/files.c',
        'must(MPI_File_read_at(file, place_of(rank_behind()), read_back, count, MPI_BYTE, &status),\n             "MPI_File_read_at");',
        'payload_fill(read_back, bytes, rank_behind(), message);\n        return;',
    ),
    Mutant(
        'files',
        'size of one rank more',
        'mpi/files.c',
        'size_t size = bytes * (size_t)bench.ranks;',
        'size_t size = bytes * (size_t)(bench.ranks + 1);',
    ),
    Mutant(
        'threads',
        'the others work beside the one',
        'mpi/threads.c',
        'if (task.measure == ONE && worker->number > 0)\n        return;',
        'if (task.measure == ONE && worker->number > 1)\n        return;',
        why='a slower single thread makes all of them look better',
    ),
    Mutant(
        'threads',
        'threads that only say that they worked',
        'mpi/threads.c',
        '    if (task.measure == ONE && worker->number > 0)\n        return;',
        '    if (task.measure == ONE && worker->number > 0)\n        return;\n    if (worker->number == 2) {\n        worker->made += task.iterations;\n        return;\n    }',
    ),
    Mutant(
        'threads',
        'the last message of a window is not waited for',
        'mpi/threads.c',
        '        MPI_Irecv(worker->memory + (size_t)i * size, (int)size, MPI_BYTE, partner(), tag, comm,\n                  &worker->requests[i]);\n    MPI_Waitall((int)window,',
        '        MPI_Irecv(worker->memory + (size_t)i * size, (int)size, MPI_BYTE, partner(), tag, comm,\n                  &worker->requests[i]);\n    MPI_Waitall((int)window - (window > 1),',
    ),
    Mutant(
        'threads',
        'no answer is waited for',
        'mpi/threads.c',
        '    MPI_Recv(NULL, 0, MPI_BYTE, partner(), tag, comm, MPI_STATUS_IGNORE);\n',
        '    if (bench.ranks == 0)\n        MPI_Recv(NULL, 0, MPI_BYTE, partner(), tag, comm, MPI_STATUS_IGNORE);\n',
    ),
    Mutant(
        'threads',
        'threads without a tag of their own',
        'mpi/threads.c',
        'send_window(worker, comm, worker->number);',
        'send_window(worker, comm, task.measure == SHARED ? 0 : worker->number);',
    ),
    Mutant(
        'threads',
        'a byte less',
        'mpi/threads.c',
        'MPI_Isend(worker->memory + (size_t)i * size, (int)size, MPI_BYTE,',
        'MPI_Isend(worker->memory + (size_t)i * size, (int)size - 1, MPI_BYTE,',
    ),
    Mutant(
        'threads',
        'half of the windows of the other threads',
        'mpi/threads.c',
        'i < task.iterations; i++) {\n        long left',
        'i < task.iterations; i += worker->number ? 2 : 1) {\n        long left',
    ),
    Mutant(
        'threads',
        'messages of the first one alone',
        'mpi/threads.c',
        'MPI_Isend(worker->memory + (size_t)i * size,',
        'MPI_Isend(worker->memory,',
    ),
    Mutant(
        'threads',
        'rate of one thread more',
        'mpi/threads.c',
        'double messages = (double)threads * (double)window',
        'double messages = (double)(threads + 1) * (double)window',
    ),
    Mutant(
        'threads',
        'windows of all threads for those of one',
        'mpi/threads.c',
        'sample_operations += least;',
        'sample_operations += least * working_threads();',
    ),
    Mutant(
        'onesided',
        'gets from itself',
        'mpi/onesided.c',
        'MPI_Get(local(side), bytes, MPI_BYTE, TARGET, 0,',
        'MPI_Get(local(side), bytes, MPI_BYTE, side->point->sync == FENCE ? ORIGIN : TARGET, 0,',
    ),
    Mutant(
        'onesided',
        'accumulates by replacing',
        'mpi/onesided.c',
        'MPI_Accumulate(local(side), doubles, MPI_DOUBLE, TARGET, 0, doubles, MPI_DOUBLE, MPI_SUM,',
        'MPI_Accumulate(local(side), doubles, MPI_DOUBLE, TARGET, 0, doubles, MPI_DOUBLE, MPI_REPLACE,',
    ),
    Mutant(
        'onesided',
        'accumulates all but the last element',
        'mpi/onesided.c',
        'doubles = bytes / (int)sizeof(double);',
        'doubles = bytes / (int)sizeof(double) - (bytes > 8);',
    ),
    Mutant(
        'onesided',
        'flushes locally alone',
        'mpi/onesided.c',
        'MPI_Win_flush(TARGET, side->window);',
        'MPI_Win_flush_local(TARGET, side->window);',
    ),
    Mutant(
        'onesided',
        'puts a word less',
        'mpi/onesided.c',
        'MPI_Put(local(side), bytes, MPI_BYTE, TARGET, 0, bytes,',
        'MPI_Put(local(side), bytes - 8, MPI_BYTE, TARGET, 0, bytes - 8,',
    ),
    Mutant(
        'onesided',
        'puts at another place',
        'mpi/onesided.c',
        'MPI_Put(local(side), bytes, MPI_BYTE, TARGET, 0, bytes,',
        'MPI_Put(local(side), bytes - 8, MPI_BYTE, TARGET, 8, bytes - 8,',
    ),
    Mutant(
        'onesided',
        'adds two for one',
        'mpi/onesided.c',
        'static const int64_t one = 1;',
        'static const int64_t one = 2;',
    ),
    Mutant(
        'onesided',
        'numbers that are fetched without being added to',
        'mpi/onesided.c',
        'MPI_Fetch_and_op(&one, fetched, MPI_INT64_T, TARGET, 0, MPI_SUM, window);',
        'MPI_Fetch_and_op(&one, fetched, MPI_INT64_T, TARGET, 0, MPI_NO_OP, window);\n        *fetched = -1;',
    ),
    Mutant(
        'onesided',
        'clock started behind the first epoch',
        'mpi/onesided.c',
        '        int64_t fetched = -1;\n',
        '        int64_t fetched = -1;\n        if (i == 1)\n            start = sample_now();\n',
    ),
    Mutant(
        'onesided',
        'the target starts no epoch twice',
        'mpi/onesided.c',
        'MPI_Win_post(side->other, 0, side->window);\n            MPI_Win_wait(side->window);',
        'MPI_Win_post(side->other, 0, side->window);\n            int flag = 0;\n            while (!flag)\n                MPI_Win_test(side->window, &flag);',
    ),
]
