"""Wrong kernels of miniMD: each at the problem of the suite, on 1 rank and on 2 with 2 threads."""

from __future__ import annotations

from assay.programs.application import Problem
from assay.programs.minimd import MiniMD
from wrong_kernels import Built, complaint_of_application, read_mutants

_SIZE = 5e5  # bytes: 4 x 4 x 4 cells and more
_STEPS = 200
_RUNS = ((1, 1), (2, 2))
_EMBEDDED_ATOM = """\
Embedded atoms: copper
written by Assay
metal
none
eam
1.0 1.0
5 5 5
30
0.001
600
0.07041125
20
4.95 1.0
10
"""


def complaint(built: Built, program: str) -> str:
    application = MiniMD()
    for ranks, threads in _RUNS:
        whole = application.problem(_SIZE, ranks, threads)
        # Short: the first ones are all made once more, and some of these as of longer runs.
        problem = Problem(
            [*whole.arguments, '-n', str(_STEPS)], whole.files, {**whole.facts, 'steps': _STEPS}
        )
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    # No check runs EAM: its verdict is the program's own.
    code, output = built.run('minimd', ['-i', 'in'], 2, 2, {'in': _EMBEDDED_ATOM})
    failed = [line.strip() for line in output.splitlines() if line.endswith(': FAILED')]
    return ', '.join(failed) or (f'exit code {code}' if code else '')


MUTANTS = read_mutants('minimd')
