"""Wrong kernels of what measures nodes: each on 1 rank with 2 threads and on 2 ranks if it may."""

from __future__ import annotations

import json

from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import REPORT_CHECKS, check_dgemm
from wrong_kernels import Built, read_mutants

_ORDER = 120
_ARGUMENTS = {
    'dgemm': ['--n', str(_ORDER), '--budget', '0.05'],
    'stream': ['--size', '200K', '--budget', '0.05'],  # so small that there are many passes
    'clock': ['--seconds', '0.05'],
    'distances': ['--size', '64K', '--budget', '0.02'],
    'nodes': ['--sweeps', '2', '--budget', '0.02', '--size', '1M', '--n', '60'],
}
#: Ranks and threads of a program that takes one rank alone.
_TEAMS = {'distances': ((1, 2),)}


def complaint(built: Built, program: str) -> str:
    for ranks, threads in _TEAMS.get(program, ((1, 2), (2, 1))):
        arguments = [*_ARGUMENTS[program], '--json', 'result.json']
        code, _ = built.run(program, arguments, ranks, threads)
        if code:
            return f'exit code {code}'
        report = json.loads((built.scratch / 'result.json').read_text())
        try:
            if program == 'dgemm':
                check_dgemm(report, _ORDER)
            else:
                REPORT_CHECKS[program](report)
            if wrong := [one['wrong'] for one in report['results'] if 'wrong' in one]:
                return f'wrong: {wrong}'
        except WrongAnswerError as error:
            return str(error)
    return ''


MUTANTS = read_mutants('node')
