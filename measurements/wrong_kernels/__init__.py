"""Wrong kernels: a file for the programs of each kind, and what these files share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.job.launch import WITNESS
from assay.programs.application import Application, Problem, WrongAnswerError

#: Of the checks of benchmarks, without the table.
_SECTIONS = 'placement,fabric,silent'


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


def read_mutants(kind: str) -> list[Mutant]:
    """Those of a file beside this one.

    ``# PROGRAM PATH`` holds for those below it, and ``@ NAME`` begins one: lines that start with a
    blank, - or + are the change as in a diff, though a line may be a part of one of the source;
    ``! hard`` and ``! KEY: TEXT`` are its other fields.
    """
    found: list[dict[str, Any]] = []
    program = path = ''
    for line in Path(__file__).with_name(f'{kind}.diff').read_text().splitlines():
        mark, text = line[:1], line[1:]
        if mark == '#':
            program, path = text.split()
        elif mark == '@':
            of = {'program': program, 'name': text.strip(), 'path': path}
            found.append({**of, 'before': [], 'after': []})
        elif mark == '!':
            key, _, value = text.strip().partition(': ')
            found[-1][key] = value or True
        else:
            for side in {'-': ('before',), '+': ('after',)}.get(mark, ('before', 'after')):
                found[-1][side].append(text)
    for one in found:
        one |= {side: '\n'.join(one[side]) for side in ('before', 'after')}
    return [Mutant(**one) for one in found]


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
