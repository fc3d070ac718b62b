"""Wrong kernels: a file for the programs of each kind, and what these files share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.job.launch import WITNESS
from assay.programs.application import Application, Problem, WrongAnswerError

#: Of the checks of benchmarks, without the table.
_SECTIONS = 'placement,fabric,silent'

#: A change of ``common/blas.c``: what stands there, and what makes products in single precision.
SINGLE_PRECISION_PRODUCTS = (
    'NAME(dgemm_)("N", "N", &m, &n, &k, &(double){ -1 }, a, &lda, b, &ldb, &(double){ 1 }, c,\n'
    '                     &ldc);\n',
    'for (int j = 0; j < n; j++)\n'
    '            for (int i = 0; i < m; i++) {\n'
    '                float sum = 0;\n'
    '                for (int l = 0; l < k; l++)\n'
    '                    sum += (float)a[i + (long)l * lda] * (float)b[l + (long)j * ldb];\n'
    '                c[i + (long)j * ldc] -= sum;\n'
    '            }\n',
)


@dataclass(frozen=True)
class Mutant:
    """A change of the sources that makes a wrong kernel.

    :param program: its target in CMake.
    :param name: in a few words, unique among the program's.
    :param path: the file below ``sources`` that is changed.
    :param before: what stands there once.
    :param after: what is put in its place.
    :param why: why the answer or a time is wrong by it, where that cannot be seen.
    :param equivalent: why nothing is wrong by it, of one that changes no answer and no time.
    :param hard: whether it is one of the few that the short form tries.
    """

    program: str
    name: str
    path: str
    before: str
    after: str
    why: str = ''
    equivalent: str = ''
    hard: bool = False


def hardest(mutants: Sequence[Mutant]) -> list[Mutant]:
    """The few of the short form."""
    return [mutant for mutant in mutants if mutant.hard]


@dataclass(frozen=True)
class Built:
    """Where programs were built, and how they are started.

    :param folder: of the build: programs are in its top.
    :param launcher: of the MPI.
    :param env: of launcher and ranks.
    :param scratch: an empty folder for every run.
    :param seconds: that a run may take: some wrong kernels never end.
    :param witness: the library that counts calls, as in the checks' jobs.
    """

    folder: Path
    launcher: str
    env: Mapping[str, str]
    scratch: Path
    seconds: float = 60
    witness: Path | None = None

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        ranks: int = 1,
        threads: int = 1,
        files: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Exit code and output of a run in ``scratch``, emptied before; -1 if it took too long."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        for name, content in (files or {}).items():
            (self.scratch / name).write_text(content)
        preloaded = ['env', f'LD_PRELOAD={self.witness}'] if self.witness else []
        started = [*preloaded, str(self.folder / program), *arguments]
        command = [self.launcher, '-n', str(ranks), *started]
        env = {**self.env, 'OMP_NUM_THREADS': str(threads)}
        env |= {'ASSAY_WITNESS': _SECTIONS, 'ASSAY_WITNESS_REPORT': str(self.scratch / WITNESS)}
        with subprocess.Popen(
            command,
            env=env,
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return -1, f'not done after {self.seconds:g} s'
        return process.returncode, output


def complaint_of_application(
    built: Built, application: Application, problem: Problem, ranks: int, threads: int
) -> str:
    """What the check says of a run of an application; empty if it accepts it."""
    code, output = built.run(application.program, problem.arguments, ranks, threads, problem.files)
    if code:
        return f'exit code {code}'
    try:
        application.read(output, built.scratch, problem, ranks, threads)
    except WrongAnswerError as error:
        return str(error)
    return ''
