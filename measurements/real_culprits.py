"""Which of many changes did it: regressions of real MPI jobs, and what `assay culprit` says.

    .venv/bin/python measurements/real_culprits.py --mpis ~/mpis --from 100 --seeds 20
    .venv/bin/python measurements/real_culprits.py --table --bayesect ~/bayesect

A seed draws what makes a small MPI program (pulse.c) slower, and changes that are idle: variables,
lines of Open MPI's file, and soft limits. What it costs is measured first, without the suite: five
pairs of the program, A B and B A; below 5% the seed is left out. Then come three runs before and
three after, and `assay culprit` with a budget. `none` is a preloaded library that no record shows:
it slows both states while a file is there, which is removed again before every second search.
Flags of the compilers, and one of several commits, make a program of the suite slower, whose cost
is known from the six runs alone.

`--mpis` names a folder with MPIs of wheels, each in a prefix of its own:
`pip install --no-deps --prefix ~/mpis/mpich4.0.3 mpich==4.0.3`, and in `libblas-openblas` and
`libblas-reference` a `libblas.so.3` each. All runs are of a clone of the
suite, as it was committed when `.assay/real-culprits` was made. What each seed found is stored when
its search ends; the same command goes on with a search that was stopped, or whose budget was over.
git bisect and git_bayesect (`pip install --target ~/bayesect git_bayesect`) have the same changes
as commits in a row; what a test of theirs shows has the errors of the search's own pairs, drawn
anew, of seeds that have three or more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from culprits import Row, calibration, git_bayesect, git_bisect
from injected import UNCHANGED
from real_changes import configuration

from assay import AssayError, paths
from assay.config.environments import TUNED
from assay.machine.provenance import flag_kind
from assay.results.statistics.culprits import Flags
from assay.running import turn

DATA = Path(__file__).with_name('data') / 'real_culprits.jsonl'
HERE = Path(__file__).parent
WORK = paths.STATE / 'real-culprits'
CHECKOUT = WORK / 'checkout'
SYSTEM, ENVIRONMENT = 'real-culprits', 'mpi'
#: Runs of each state; pairs that tell the cost of a cause, and the least that is searched for.
RUNS, PAIRS, LEAST = 3, 5, 0.05
#: Pairs of a seed that tell the errors of a test.
LEAST_VALUES = 3

OPEN = 'openmpi4.1.8'
APPLICATION = 'SiteApplication'
SLOWER = 'Send on a little later'
#: What the case forces, for the pairs without the suite.
FORCED = {
    'OMPI_MCA_pml': 'ob1',
    'OMPI_MCA_btl': 'self,vader',
    'OMPI_ALLOW_RUN_AS_ROOT': '1',
    'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
}


@dataclass(frozen=True)
class Cause:
    """What makes a figure of the program slower.

    :param figure: of pulse.c.
    :param variables: of the jobs.
    :param lines: of Open MPI's file.
    :param limit: words of ``ulimit -S``.
    :param mpis: before and after.
    :param delay: nanoseconds of each call of Open MPI's progress, by what is preloaded.
    :param is_hidden: whether no record shows it.
    :param folders: in which the BLAS is, before and after.
    :param check: that measures the figure.
    :param flags: of the compilers.
    :param is_commit: whether one of several commits makes ``ring`` send on later.
    """

    figure: str
    variables: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    limit: str = ''
    mpis: tuple[str, str] = (OPEN, OPEN)
    delay: int = 0
    is_hidden: bool = False
    folders: tuple[str, ...] = ()
    check: str = APPLICATION
    flags: str = ''
    is_commit: bool = False

    def truth(self) -> list[str]:
        """What the names of the changes begin with that did it."""
        if self.is_hidden:
            return []
        names = ['LD_PRELOAD'] * bool(self.delay) + ['limit of stack'] * bool(self.limit)
        names += ['MPI'] * (self.mpis[0] != self.mpis[1]) + ['sources'] * self.is_commit
        names += ['library libblas'] * bool(self.folders)
        names += [f'flag {flag_kind(self.flags)}'] * bool(self.flags)
        return sorted([*names, *self.variables, *self.lines])


_SINGLE_COPY = {'btl_vader_single_copy_mechanism': 'none'}
_NO_BOXES = {'btl_vader_fbox_max': '0'}
_EAGER = {'btl_vader_eager_limit': '256'}
_RING = {'coll_tuned_use_dynamic_rules': '1', 'coll_tuned_allreduce_algorithm': '4'}
_NEW = ('mpich5.0.2', 'mpich5.0.2')


def _exported(lines: Mapping[str, str]) -> dict[str, str]:
    return {f'OMPI_MCA_{name}': value for name, value in lines.items()}


#: The causes of each kind, and how often it is drawn in a block of seeds.
KINDS: dict[str, tuple[int, Sequence[Cause]]] = {
    'variable': (
        4,
        [
            Cause('copy', _exported(_SINGLE_COPY)),
            Cause('hop', _exported(_NO_BOXES)),
            Cause('eager', _exported(_EAGER)),
            Cause('put', {'OMPI_MCA_osc': 'pt2pt'}),
            Cause('heap', {'MALLOC_MMAP_THRESHOLD_': '65536'}),
            Cause('spawn', {'GLIBC_TUNABLES': 'glibc.pthread.stack_cache_size=0'}),
            Cause('multiply', {'OPENBLAS_CORETYPE': 'Sandybridge'}),
            Cause('copy', {'MPIR_CVAR_CH4_CMA_ENABLE': '0'}, mpis=_NEW),
            Cause('eager', {'MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE': '1024'}, mpis=_NEW),
        ],
    ),
    'two variables': (1, [Cause('allreduce', _exported(_RING))]),
    'line of a file': (
        2,
        [
            Cause('copy', lines=_SINGLE_COPY),
            Cause('hop', lines=_NO_BOXES),
            Cause('eager', lines=_EAGER),
        ],
    ),
    'soft limit': (1, [Cause('spawn', limit='-s 65536')]),
    'preloaded': (1, [Cause('hop', delay=delay) for delay in (50, 150, 400)]),
    'library': (1, [Cause('multiply', folders=('libblas-openblas', 'libblas-reference'))]),
    'version': (
        2,
        [
            Cause('hop', mpis=('mpich4.0.3', 'mpich5.0.2')),
            Cause('hop', mpis=('mpich3.4.3', 'mpich5.0.2')),
            Cause('copy', mpis=('mpich5.0.2', 'mpich4.0.3')),
            Cause('put', mpis=('mpich4.3.2', 'mpich3.4.3')),
        ],
    ),
    'flag': (
        1,
        [Cause('rate', check='Halo', flags=flag) for flag in ('-O1', '-fno-tree-vectorize')],
    ),
    'commit': (1, [Cause('hop_latency', check='Ring', is_commit=True)]),
    'none': (2, [Cause('hop', delay=delay, is_hidden=True) for delay in (50, 150, 400)]),
}

#: Variables, lines and limits that change nothing: above all those of frameworks' own messages.
_FRAMEWORKS = (
    *('allocator', 'backtrace', 'bml', 'compress', 'crs', 'dl', 'event', 'fbtl', 'fcoll', 'fs'),
    *('hook', 'hwloc', 'if', 'installdirs', 'io', 'memchecker', 'memory', 'mpool', 'op', 'patcher'),
    *('rcache', 'reachable', 'rte', 'sharedfp', 'shmem', 'timer', 'topo', 'vprotocol', 'filem'),
)
_MESSAGES = {f'{name}_base_verbose': '0' for name in _FRAMEWORKS}
IDLE_VARIABLES = {
    **_exported(_MESSAGES),
    **{'UCX_WARN_UNUSED_ENV_VARS': 'n', 'UCX_HANDLE_ERRORS': 'bt', 'UCX_MEM_LOG_LEVEL': 'warn'},
    **{'OMP_DISPLAY_ENV': 'false', 'OMP_SCHEDULE': 'static', 'OMP_PROC_BIND': 'false'},
    **{'MPIR_CVAR_DEBUG_SUMMARY': '0', 'I_MPI_DEBUG': '0', 'FI_PERF_CNTR': 'cycles'},
    **{'OMPI_MCA_mpi_show_handle_leaks': '0', 'OMPI_MCA_mpi_abort_print_stack': '0'},
}
IDLE_LIMITS = ('-c 1024', '-n 2048')


@dataclass(frozen=True)
class Regression:
    """What a seed makes worse, among idle changes."""

    seed: int
    kind: str
    cause: Cause
    variables: tuple[str, ...]
    lines: tuple[str, ...]
    limits: tuple[str, ...]
    is_undone: bool
    commits: int = 0


def draw(seed: int) -> Regression:
    """The regression of a seed: of each block of seeds so many of each kind."""
    kinds = [kind for kind, (count, _) in KINDS.items() for _ in range(count)]
    block, place = divmod(seed, len(kinds))
    kind = kinds[np.random.default_rng(block).permutation(len(kinds))[place]]
    random = np.random.default_rng([seed, 1])
    causes = KINDS[kind][1]
    cause = causes[random.integers(len(causes))]
    names = [*map(str, random.permutation([*IDLE_VARIABLES]))]
    variables = names[: random.integers(3, 26)]
    is_open = cause.mpis == (OPEN, OPEN)
    free = [name for name in _MESSAGES if f'OMPI_MCA_{name}' not in variables]
    lines = [str(name) for name in random.permutation(free)[: is_open * random.integers(1, 5)]]
    limits = IDLE_LIMITS[: random.integers(1, 3)]
    is_undone = kind == 'none' and bool(random.integers(2))
    commits = int(random.integers(4, 13)) * cause.is_commit
    return Regression(seed, kind, cause, (*variables,), (*lines,), limits, is_undone, commits)


class Trial:
    """A regression that is measured."""

    def __init__(self, one: Regression, mpis: Path, budget: str) -> None:
        self.one, self.cause, self.mpis, self.budget = one, one.cause, mpis, budget
        self.folder = WORK / f'seed-{one.seed}'
        self.slow = self.folder / 'slow'
        self.library = WORK / f'delay-{self.cause.delay}.so'
        self.home = self.folder / 'home'

    def measure(self) -> dict[str, Any]:
        """The row of the seed."""
        begun = self.folder / 'is-searched'
        if not begun.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.home.mkdir(parents=True)
            prepare(self.mpis, self.cause)
            cost = self._cost() if self.cause.check == APPLICATION else []
            if cost and statistics.median(cost) < LEAST:
                return self._row(cost, verdict='costs nothing')
            for is_after in (False, True):
                self._make(is_after)
                for _ in range(RUNS):
                    self._assay(self._run(is_after), is_after, (0, 1, 3))
            if self.one.is_undone:
                self.slow.unlink()
            begun.write_text(json.dumps(cost))
        cost = json.loads(begun.read_text())
        in_git(CHECKOUT, 'checkout', '-q', branch(self.one.seed))
        self._configure(is_after=True, is_search=True)
        search = ['culprit', 'before', 'after', '--budget', self.budget, '--json']
        try:
            printed = self._assay(search, True, (0, 3))
        except AssayError as error:  # no figure looks worse
            return self._row(cost, verdict='not asked', conclusion=str(error)[-300:])
        for folder in (paths.ROOT, self.mpis):  # where these are tells nobody anything
            printed = printed.replace(f'{folder}/', '')
        return self._row(cost, json.loads(printed))

    def _make(self, is_after: bool) -> None:
        """Bring about a state: Open MPI's file, the file that a library looks for, the system."""
        lines = dict.fromkeys(self.one.lines, '0') | dict(self.cause.lines) if is_after else {}
        file = self.home / '.openmpi' / 'mca-params.conf'
        file.parent.mkdir(exist_ok=True)
        file.write_text(''.join(f'{name} = {value}\n' for name, value in lines.items()))
        if is_after and self.cause.is_hidden:
            self.slow.touch()
        else:
            self.slow.unlink(missing_ok=True)
        commit(self.one.commits if is_after else 0, self.one.seed)
        self._configure(is_after)

    def _configure(self, is_after: bool, is_search: bool = False) -> None:
        """Write the file of the system: the MPI of the state, in a search all of its family."""
        new = self.cause.mpis[is_after]
        mpis = {ENVIRONMENT: new}
        if is_search and self.one.kind == 'version':
            mpis |= {name.replace('.', '-'): name for name in family(self.mpis, new) if name != new}
        # Where the system's file preloads, it is no change that can be switched.
        is_preloaded = self.cause.is_hidden or (is_after and not is_search)
        preload = {'LD_PRELOAD': str(self.library)} if self.cause.delay and is_preloaded else {}
        listed = ', '.join(
            f'replace(find_in({str(self.mpis / mpi)!r}), name={name!r})'
            for name, mpi in mpis.items()
        )
        flags = ' '.join([*TUNED, self.cause.flags]) if is_after and self.cause.flags else ''
        text = configuration(replace(UNCHANGED, variables=preload, flags=flags), SYSTEM)
        assert 'in mpis_of_run()' in text
        imports = 'from dataclasses import replace\n\nfrom assay.machine.mpi import find_in\n'
        systems = self.folder / 'systems'
        systems.mkdir(exist_ok=True)
        text = imports + text.replace('in mpis_of_run()', f'in [{listed}]')
        (systems / f'{SYSTEM}.py').write_text(text)
        figure = {'find': f'{self.cause.figure} ([0-9.]+) us', 'unit': 'us', 'better': 'lower'}
        pulse = {
            'command': [str(WORK / 'pulse.sh'), self.cause.figure],
            'mpi': re.sub('[0-9.]', '', new),
            'answer': [{'find': 'done'}],
            'figures': {self.cause.figure: figure},
        }
        told = json.dumps({'applications': {'pulse': pulse}})  # which is YAML as well
        (systems / 'applications.yaml').write_text(told)

    def _surroundings(self, is_after: bool) -> dict[str, str]:
        found = {**os.environ, 'HOME': str(self.home), 'SLOW_IF': str(self.slow)}
        if not self.cause.is_hidden:
            del found['SLOW_IF']
        if is_after:
            found |= {name: IDLE_VARIABLES[name] for name in self.one.variables}
            found |= self.cause.variables
        if self.cause.folders:
            found['LD_LIBRARY_PATH'] = str(self.mpis / self.cause.folders[is_after])
        return found

    def _limited(self, is_after: bool) -> list[str]:
        """A shell that lowers or raises soft limits, and becomes what follows."""
        limits = [*self.one.limits, self.cause.limit] if is_after else []
        words = ''.join(f'ulimit -S {one} && ' for one in limits if one)
        return ['bash', '-c', f'{words}exec "$@"', 'bash']

    def _cost(self) -> list[float]:
        """The logarithms of after over before, of neighbouring runs without the suite."""
        found = []
        for number in range(PAIRS):
            sides = [0.0, 0.0]
            for is_after in (0, 1) if number % 2 == 0 else (1, 0):
                self._make(bool(is_after))
                sides[is_after] = self._direct(bool(is_after))
            found.append(math.log(sides[1] / sides[0]))
        return found

    def _direct(self, is_after: bool) -> float:
        """A value of the figure."""
        folder = self.mpis / self.cause.mpis[is_after] / 'bin'
        given = self._surroundings(is_after) | FORCED
        given['PATH'] = f'{folder}:{given["PATH"]}'
        launch = ['mpirun', '-np', '2', '-bind-to', 'core']
        launch[-2] = '--bind-to' if 'openmpi' in str(folder) else '-bind-to'
        program = [str(WORK / 'pulse.sh'), self.cause.figure]
        if self.cause.delay and (is_after or self.cause.is_hidden):
            program = ['env', f'LD_PRELOAD={self.library}', *program]
        command = [*self._limited(is_after), *launch, *program]
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=120)
        if not (match := re.search(r' ([0-9.]+) us', done.stdout)):
            raise AssayError(f'no value: {done.stdout[-500:]}{done.stderr[-1500:]}')
        return float(match[1])

    def _run(self, is_after: bool) -> list[str]:
        label = 'after' if is_after else 'before'
        command = ['run', '--mode', 'smoke', '--system', SYSTEM, '-p', f'^{ENVIRONMENT}$']
        command += ['-n', f'^{self.cause.check}%fabric=shm%layout=packed%scale=1_node']
        return [*command, '-S', 'wait_for_quiet=0', '--label', label]

    def _assay(self, words: Sequence[str], is_after: bool, codes: Iterable[int]) -> str:
        """What a command of the clone prints.

        :raises AssayError: if it fails.
        """
        given = self._surroundings(is_after) | {
            turn.VARIABLE: 'yes',
            paths.RESULTS_VARIABLE: str(self.folder),
            paths.SYSTEMS_VARIABLE: str(self.folder / 'systems'),
        }
        command = [*self._limited(is_after), str(CHECKOUT / 'assay'), *words]
        done = subprocess.run(command, env=given, capture_output=True, text=True)
        with (WORK / 'log').open('a') as log:
            log.write(f'seed {self.one.seed}: {shlex.join(words)}\n{done.stdout}{done.stderr}\n')
        if done.returncode > 128:
            raise KeyboardInterrupt
        if done.returncode not in codes:
            raise AssayError(f'{done.stdout[-500:]}{done.stderr[-500:]}')
        return done.stdout

    def _row(
        self,
        cost: Sequence[float],
        told: Mapping[str, Any] | None = None,
        verdict: str = '',
        conclusion: str = '',
    ) -> dict[str, Any]:
        truth = self.cause.truth()
        mpis = dict.fromkeys(self.cause.mpis)
        row = {
            'seed': self.one.seed,
            'kind': self.one.kind,
            'cause': ' '.join([self.cause.figure, *truth, *mpis]),
            'delay': self.cause.delay,
            'is_undone': self.one.is_undone,
            'cost': [round(one, 4) for one in cost],
            'verdict': verdict,
            'conclusion': conclusion,
            'ended': time.strftime('%Y-%m-%dT%H:%M:%S'),
            'load': round(os.getloadavg()[0], 1),
        }
        if told is None:
            return row
        kind = {0: 'none', 1: 'one', 2: 'two'}[len(truth)]
        answers = [(one['kind'], one['changes'], one['probability']) for one in told['answers'][:3]]
        steps = told['steps'] or {}
        return {
            **row,
            'verdict': told['verdict'],
            'conclusion': told['conclusion'],
            'stopped': told['stopped'],
            'changes': len(told['looked_at']),
            'answers': answers,
            'right': [one[0] == kind and are(truth, one[1]) for one in answers],
            'share_here': told['share_here'],
            'pairs': [
                [_has(truth, pair['first']) - _has(truth, pair['second']), pair['value']]
                for pair in told['pairs']
            ],
            'disturbed': [pair['why'] for pair in told['pairs'] if pair['why']],
            'seconds': round(sum(pair['seconds'] for pair in told['pairs'])),
            'not_tried': [one['name'] for one in told['not_tried']],
            'step': steps.get('conclusion'),
            'step_pairs': [pair['value'] for pair in steps.get('pairs', ())],
        }


def are(truth: Sequence[str], names: Iterable[str]) -> bool:
    """Whether changes are those that did it: of a line of a file the name of the file follows."""
    return sorted(name.partition(' in ')[0] for name in names) == [*truth]


def _has(truth: Sequence[str], names: Iterable[str]) -> float:
    """Whether changes bring the loss about."""
    made = {name.partition(' in ')[0] for name in names}
    return float(bool(truth) and made >= {*truth})


def family(mpis: Path, name: str) -> list[str]:
    """The MPIs of the folder that are of the family of one."""
    own = re.sub('[0-9.]', '', name)
    return sorted(path.name for path in mpis.glob(f'{own}[0-9]*') if path.is_dir())


def prepare(mpis: Path, cause: Cause) -> None:
    """The clone, the program of each MPI of the family, and the library that is preloaded."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not CHECKOUT.exists():
        draft = CHECKOUT.with_suffix('.draft')
        shutil.rmtree(draft, ignore_errors=True)
        subprocess.run(['git', 'clone', '-q', paths.ROOT, draft], check=True)
        # What is built for each MPI: the witness, and the programs that seeds make slower.
        file = draft / 'sources' / 'CMakeLists.txt'
        text = file.read_text()
        told = re.sub(r'(?<=assay_witness) [^)]*', ' ring halo', text)
        assert told != text, 'the target that checks build is not found'
        file.write_text(told)
        in_git(draft, 'commit', '-q', '-a', '-m', 'Build little')
        in_git(draft, 'branch', 'base')
        draft.replace(CHECKOUT)
    compile_words = ['-O2', '-Wall', '-Wextra', '-pthread', '-o']
    for name in family(mpis, cause.mpis[1]):
        if not (program := WORK / f'pulse-{name}').exists():
            compiler = mpis / name / 'bin' / 'mpicc'
            given = os.environ | {'PATH': f'{compiler.parent}:{os.environ["PATH"]}'}
            command = [compiler, *compile_words, program, HERE / 'pulse.c', '-ldl']
            subprocess.run(command, check=True, env=given)
    # The program of the MPI whose launcher comes first.
    script = WORK / 'pulse.sh'
    place = '$(basename "$(dirname "$(dirname "$(command -v mpirun)")")")'
    script.write_text(f'#!/bin/sh\nexec "{WORK}/pulse-{place}" "$@"\n')
    script.chmod(0o755)
    if cause.delay and not (library := WORK / f'delay-{cause.delay}.so').exists():
        command = ['cc', f'-DNANOSECONDS={cause.delay}', '-shared', '-fPIC', *compile_words]
        subprocess.run([*command, library, HERE / 'culprit_delay.c', '-ldl'], check=True)


def in_git(folder: Path, *words: str) -> None:
    command = ['git', '-C', folder, '-c', 'user.name=one', '-c', 'user.email=one@example.org']
    subprocess.run([*command, *words], check=True)


def branch(seed: int) -> str:
    return f'seed-{seed}'


def commit(count: int, seed: int) -> None:
    """Have so many commits to the sources of ring, one of which makes it slower."""
    in_git(CHECKOUT, 'checkout', '-q', '-B', branch(seed), 'base')
    source = CHECKOUT / 'sources' / 'mpi' / 'ring.c'
    guilty = np.random.default_rng([seed, 3]).integers(count) if count else None
    for number in range(count):
        text = f'{source.read_text()}/* {number} */\n'
        if number == guilty:
            # The calls of MPI stay as they are: the suite counts them.
            sent_on = 'MPI_Send(lap->receive'
            assert sent_on in text
            text = text.replace(sent_on, f'for (volatile int i = 0; i < 300; i++);{sent_on}')
        source.write_text(text)
        subject = SLOWER if number == guilty else f'Comment {number}'
        in_git(CHECKOUT, 'commit', '-q', '-a', '-m', subject)


def say(text: str) -> None:
    print(f'{time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


def stored() -> dict[int, dict[str, Any]]:
    """The rows by their seeds: the last one of each, where a search went on."""
    lines = DATA.read_text().splitlines() if DATA.exists() else []
    return {row['seed']: row for row in map(json.loads, lines)}


def measure(seeds: Iterable[int], mpis: Path, budget: str, minutes: float) -> None:
    """Measure the seeds that are not stored, and store each."""
    with contextlib.ExitStack() as stack:
        if turn.VARIABLE not in os.environ:
            stack.callback(os.close, turn.take('measurement of real culprits', say))
        ends = time.monotonic() + 60 * minutes
        there = {seed for seed, row in stored().items() if not row.get('stopped')}
        for seed in seeds:
            if seed in there:
                continue
            if time.monotonic() > ends:
                return
            row = Trial(draw(seed), mpis, budget).measure()
            with DATA.open('a') as file:
                file.write(json.dumps(row) + '\n')
            shown = row['conclusion'] or row['verdict']
            say(f'seed {seed}, {row["kind"]}, {row["cause"]}: {shown}')


class Machine:
    """The changes of a stored seed: a test of them has the errors of its pairs, drawn anew.

    It is what :class:`culprits.Row` asks of a machine.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.random = np.random.default_rng([row['seed'], 2])
        self.count = row['changes']
        guilty = {'none': 0, 'two variables': 2}.get(row['kind'], 1)
        self.guilty = self.random.choice(self.count, guilty, replace=False)
        pairs = _with_values(row)
        made = [value * share for share, value in pairs if share]
        self.effect = statistics.median(made) if made else 1.0
        self.errors = [value - self.effect * share for share, value in pairs]

    def pair(self, first: Flags, second: Flags, number: int) -> float:
        has = [len(self.guilty) and side[self.guilty].all() for side in (first, second)]
        error = self.random.choice(self.errors) * self.random.choice([-1, 1])
        return float(self.effect * (float(has[0]) - float(has[1])) + error)


def _with_values(row: Mapping[str, Any]) -> list[list[float]]:
    """The pairs of a seed that have a value."""
    return [pair for pair in row['pairs'] if pair[1] is not None]


def show(rows: Sequence[Mapping[str, Any]], bayesect: str | None) -> None:
    """Print the tables."""
    headings = ('kind', 'seeds', 'cost', 'changes', 'first', 'among three', 'sure', 'undecided')
    headings += ('sure and wrong', 'pairs', 'disturbed', 'seconds')
    headings += ('git bisect', 'git_bayesect', 'its tests')
    print(f'| {" | ".join(headings)} |\n|---|{"---:|" * (len(headings) - 1)}')
    searched = sorted((row for row in rows if 'pairs' in row), key=lambda row: row['kind'])
    groups = {kind: [*those] for kind, those in groupby(searched, lambda row: row['kind'])}
    groups['no pair disturbed'] = [row for row in searched if not row['disturbed']]
    groups['some disturbed'] = [row for row in searched if row['disturbed']]
    for name, those in (groups | {'all': searched}).items():
        if not those:
            continue
        sure = [row for row in those if row['verdict'] != 'undecided']
        tests = [Row(Machine(row), 1.0) for row in those if len(_with_values(row)) >= LEAST_VALUES]
        bisect = sum(git_bisect(one) for one in tests)
        by_bayesect = [git_bayesect(one, bayesect) for one in tests if bayesect]
        costs = [math.expm1(statistics.median(row['cost'])) for row in those if row['cost']]
        cells = (
            name,
            len(those),
            f'{min(costs):.0%} to {max(costs):.0%}' if costs else '-',
            f'{min(row["changes"] for row in those)} to {max(row["changes"] for row in those)}',
            sum(row['right'][0] for row in those),
            sum(any(row['right']) for row in those),
            len(sure),
            len(those) - len(sure),
            sum(not row['right'][0] for row in sure),
            f'{statistics.median(len(row["pairs"]) for row in those):g}',
            f'{sum(len(row["disturbed"]) for row in those)}',
            f'{statistics.median(row["seconds"] for row in those):.0f}',
            f'{bisect} of {len(tests)}',
            sum(bool(named) for named, _ in by_bayesect) if bayesect else '-',
            f'{statistics.median(count for _, count in by_bayesect):g}' if by_bayesect else '-',
        )
        print(f'| {" | ".join(map(str, cells))} |')
    calibration([(row['answers'][0][2], row['right'][0]) for row in searched])
    few = [row['seed'] for row in searched if len(_with_values(row)) < LEAST_VALUES]
    if few:
        print(f'too few values for git bisect and git_bayesect: seeds {few}')
    left = [row for row in rows if 'pairs' not in row]
    for row in left:
        print(f'seed {row["seed"]}, {row["cause"]}: {row["verdict"]}')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--from', dest='begin', type=int, default=0, help='the first seed')
    parser.add_argument('--seeds', type=int, default=len(KINDS), help='how many')
    parser.add_argument('--kinds', nargs='+', choices=KINDS, default=[*KINDS], help='only these')
    parser.add_argument('--mpis', type=Path, help='the folder with their prefixes')
    parser.add_argument('--budget', default='4m', help='of each search')
    parser.add_argument('--minutes', type=float, default=60, help='no seed begins after so many')
    parser.add_argument('--table', action='store_true', help='show what is stored')
    parser.add_argument('--bayesect', help='the folder that has git_bayesect.py')
    options = parser.parse_args()
    if options.table:
        show([*stored().values()], options.bayesect)
        return
    if options.mpis is None:
        parser.error('--mpis names no folder')
    seeds = range(options.begin, options.begin + options.seeds)
    those = [seed for seed in seeds if draw(seed).kind in options.kinds]
    try:
        measure(those, options.mpis.resolve(), options.budget, options.minutes)
    except (AssayError, KeyboardInterrupt) as error:
        sys.exit(str(error) or 'stopped')


if __name__ == '__main__':
    main()
