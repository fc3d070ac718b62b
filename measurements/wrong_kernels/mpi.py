"""Wrong kernels of the MPI benchmarks: each on 2 ranks and on 4, held as the checks hold them."""

from __future__ import annotations

import json
from functools import partial

from assay.config.defects import load_defects
from assay.job.launch import WITNESS
from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import REPORT_CHECKS, check_halo, check_threads
from assay.programs.calls import check_calls, check_reproducer
from assay.witness import read_witness
from wrong_kernels import Built, read_mutants

_MESH, _STEPS = (32, 32, 16), 4
_THREADS = 3
_SHORT = '--budget 0.01'
_ARGUMENTS = {
    'halo': f'--n {",".join(map(str, _MESH))} --steps {_STEPS} --budget 0.1',
    'overlap': '--min 64K --max 64K --ratios 1 --progress test --budget 0.02',
    'pt2pt': f'--limits --max 4K --min 1K {_SHORT}',
    'ring': '--max-words 64 --budget 0.2',
    'noncommutative': '--max 1K',
    'collectives': f'--limits --guidelines --min 1K --max 1K {_SHORT}',
    'pairs': '--group 1 --large 1K --budget 0.05',
    'matching': f'--large 8K --lines 16 --patience 20 {_SHORT}',
    'onesided': f'--min 1K --max 1K {_SHORT}',
    'datatypes': f'--sizes 1024 {_SHORT}',
    'partitioned': f'--sizes 4096 --partitions 1,4 {_SHORT}',
    'congestion': '--size 4096 --budget 0.02 --patience 20',
    'files': f'--block 1000 {_SHORT}',
    'threads': f'--threads {_THREADS} --thread-multiple --window 4 --budget 0.02',
}
#: Of programs that cannot do with two: one of these has an aggressor more than victims.
_RANKS = {'congestion': (4, 5)}
_MORE = {
    'partitioned': f'--sizes 4096 --partitions 4 --threads 3 --thread-multiple {_SHORT}',
    'collectives': (
        f'--op bcast,allreduce --call nonblocking,persistent --min 1K --max 1K {_SHORT}'
    ),
}
_CHECKS = {
    **REPORT_CHECKS,
    'halo': partial(check_halo, mesh=_MESH, steps=_STEPS),
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
    runs = [(ranks, _ARGUMENTS[program]) for ranks in _RANKS.get(program, (2, 4))]
    if program in _MORE:
        runs.append((2, _MORE[program]))
    for ranks, arguments in runs:
        code, _ = built.run(program, [*arguments.split(), '--json', 'result.json'], ranks)
        if code:
            return f'exit code {code}'
        report = json.loads((built.scratch / 'result.json').read_text())
        try:
            if program in _CHECKS:
                _CHECKS[program](report)
            if built.witness:
                seen = read_witness(built.scratch / WITNESS)
                if left := check_calls(report, [one.calls for one in seen.processes]):
                    return left
        except WrongAnswerError as error:
            return str(error)
    return ''


MUTANTS = read_mutants('mpi')
