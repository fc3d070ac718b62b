"""Wrong kernels of halo exchange and overlap: each on 2 ranks and on 4."""

from __future__ import annotations

import json

from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import check_halo
from wrong_kernels import Built, Mutant

_MESH, _STEPS = (16, 16, 8), 4
_ARGUMENTS = {
    'halo': ['--n', ','.join(map(str, _MESH)), '--steps', str(_STEPS), '--budget', '0.02'],
    'overlap': ['--min', '64K', '--max', '64K', '--ratios', '1', '--budget', '0.02'],
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
        except WrongAnswerError as error:
            return str(error)
    return ''


_SECONDS = '    double seconds = clock_seconds() - start;\n    by_mpi[method].most'

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
]
