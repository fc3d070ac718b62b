"""Which of many changes did it: regressions in real MPI jobs, and what `assay culprit` says.

    .venv/bin/python measurements/real_culprits.py --mpis ~/mpis --seeds 10
    .venv/bin/python measurements/real_culprits.py --table --bayesect ~/bayesect

A seed draws what makes a case slower, in blocks of one of each kind, and variables that change
nothing for it. Three runs before and three after are made, those before once for all seeds of a
case, and what others disturbed is run again; then `assay culprit` searches, and its answer is
stored. All are real sessions of the smallest cases, in a clone of the suite, with the machine's
turn (docs/runs.md).

`--mpis` names a folder with MPIs of wheels, each in a prefix of its own:
`pip install --no-deps --prefix ~/mpis/mpich4.0.3 mpich==4.0.3`. It may be stopped at any time, and
goes on where it was: pairs are in the journal of each search. `--table` shows what is stored.
git bisect and git_bayesect (`pip install --target ~/bayesect git_bayesect`) have the same changes
as commits in a row; what a test of theirs shows has the errors of the search's own pairs of that
seed, drawn anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from culprits import Outcome, Row, bound, git_bayesect, git_bisect, show
from injected import CHANGES, UNCHANGED, Change
from real_changes import configuration
from stories import LINEAR

from assay import AssayError, paths
from assay.results.figures import plain_rows, table
from assay.results.reframe_report import read_report
from assay.running import turn

DATA = Path(__file__).with_name('data') / 'real_culprits.parquet'
WORK = paths.STATE / 'real-culprits'
CHECKOUT = WORK / 'checkout'
SYSTEM, ENVIRONMENT = 'real-culprits', 'mpi'
#: Runs of each state; tries of each in a row, which others may disturb.
RUNS, TRIES = 3, 5
#: Seconds that a search may have, and after which no other command of a seed begins.
BUDGET = 600.0

OPEN, OLD, NEW = 'openmpi4.1.8', 'mpich4.0.3', 'mpich5.0.2'
_RING = 'Ring', 'shm', 'hop_latency'
_LIBRARY = WORK / 'culprit_delay.so'
_INJECTED = {one.name: one for one in CHANGES}
_RULES = ('OMPI_MCA_coll_tuned_use_dynamic_rules', 'OMPI_MCA_coll_tuned_allreduce_algorithm')

#: Of each kind the changes that are drawn from.
KINDS: dict[str, list[Change]] = {
    'variable': [_INJECTED[name] for name in ('single-copy', 'collectives', 'blas')],
    'preload': [Change('delay', 'slower progress', _RING, variables={'LD_PRELOAD': str(_LIBRARY)})],
    'flags': [_INJECTED['flags']],
    'version': [Change('version', f'{NEW} instead of {OLD}', _RING)],
    'commit': [_INJECTED['stencil-25']],
    'pair': [
        Change(
            'rules',
            'an algorithm that counts only with the rules',
            ('Collectives', 'shm', 'allreduce_time'),
            variables={name: LINEAR[name] for name in _RULES},
        )
    ],
    'none': [Change('file', 'a file that no job reports', _RING)],
}

#: Variables with values that change nothing: those of frameworks' own messages, and some more.
_FRAMEWORKS = (
    *('allocator', 'backtrace', 'bml', 'btl', 'coll', 'compress', 'crs', 'dl', 'event', 'fbtl'),
    *('fcoll', 'fs', 'hook', 'hwloc', 'if', 'installdirs', 'io', 'memchecker', 'memory', 'mpool'),
    *(
        'mtl',
        'op',
        'osc',
        'patcher',
        'pml',
        'pmix',
        'rcache',
        'reachable',
        'rml',
        'rte',
        'sharedfp',
    ),
    *('shmem', 'sm', 'timer', 'topo', 'vprotocol', 'ess', 'grpcomm', 'iof', 'odls', 'oob', 'plm'),
)
IDLE = {f'OMPI_MCA_{name}_base_verbose': '0' for name in _FRAMEWORKS} | {
    **{'UCX_LOG_LEVEL': 'warn', 'UCX_WARN_UNUSED_ENV_VARS': 'n', 'FI_LOG_LEVEL': 'warn'},
    **{'OMP_DISPLAY_ENV': 'false', 'OMP_SCHEDULE': 'static', 'MPIR_CVAR_DEBUG_SUMMARY': '0'},
    **{'I_MPI_DEBUG': '0', 'OMPI_MCA_mpi_abort_print_stack': '0', 'UCX_HANDLE_ERRORS': 'bt'},
    **{'OMPI_MCA_mpi_show_handle_leaks': '0', 'OMPI_MCA_mpi_param_check': '1'},
    **{'OMP_PROC_BIND': 'false', 'UCX_MEM_LOG_LEVEL': 'warn', 'FI_PERF_CNTR': 'cycles'},
}


class OverError(Exception):
    """The time is over: what was measured is kept."""


@dataclass(frozen=True)
class Regression:
    """What a seed makes worse.

    :param idle: names of :data:`IDLE`.
    :param commits: in the row of which one has the change; of a commit alone.
    :param place: of that one.
    """

    seed: int
    kind: str
    change: Change
    idle: tuple[str, ...]
    commits: int = 0
    place: int = 0

    @property
    def truth(self) -> list[str]:
        """Names of the changes that did it."""
        if self.kind in ('version', 'commit', 'flags', 'none'):
            return {'version': ['MPI'], 'commit': ['sources'], 'flags': ['flag -O']}.get(
                self.kind, []
            )
        return sorted(self.change.variables)

    @property
    def case(self) -> str:
        """The smallest that shows it."""
        check, fabric, _ = self.change.aimed_at
        return f'^{check}%fabric={fabric}%layout=packed%scale=1_node'

    @property
    def mpis(self) -> tuple[str, str]:
        """Before and after."""
        return (OLD, NEW) if self.kind == 'version' else (OPEN, OPEN)


def draw(seed: int) -> Regression:
    """The regression of a seed."""
    block, place = divmod(seed, len(KINDS))
    kind = [*KINDS][np.random.default_rng(block).permutation(len(KINDS))[place]]
    random = np.random.default_rng([seed, 1])
    change = KINDS[kind][random.integers(len(KINDS[kind]))]
    own = {*change.variables}
    names = [name for name in IDLE if name not in own]
    idle = random.choice(names, int(random.integers(10, 61)), replace=False)
    commits = int(random.integers(4, 9)) if kind == 'commit' else 0
    place = int(random.integers(commits)) if commits else 0
    return Regression(seed, kind, change, tuple(sorted(map(str, idle))), commits, place)


@dataclass
class Trial:
    """A regression that is measured.

    :param ends: when its time is over, by the monotonic clock.
    """

    regression: Regression
    mpis: Path
    ends: float
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = WORK / f'seed-{self.regression.seed}'

    def measure(self) -> dict[str, object]:
        """The row of the seed.

        :raises OverError: if the time is over before.
        """
        one = self.regression
        (WORK / 'slow').unlink(missing_ok=True)
        earlier = WORK / f'before-{one.change.aimed_at[0]}-{one.kind == "none"}-{one.mpis[0]}'
        first, last = commits(one)
        checked_out(first)
        self._runs(earlier, 'before', self._surroundings(earlier, is_after=False))
        if not self.folder.exists():
            draft = self.folder.with_suffix('.draft')
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(earlier, draft, symlinks=True)
            draft.replace(self.folder)
        checked_out(last)
        if one.kind == 'none':
            (WORK / 'slow').touch()
        self._runs(self.folder, 'after', self._surroundings(self.folder, is_after=True))
        self._configure(is_search=True)
        return self._search(self._surroundings(self.folder, is_after=True))

    def _surroundings(self, results: Path, is_after: bool) -> dict[str, str]:
        one = self.regression
        found = {
            **os.environ,
            turn.VARIABLE: 'yes',
            paths.RESULTS_VARIABLE: str(results),
            paths.SYSTEMS_VARIABLE: str(WORK / 'systems'),
        }
        if one.kind == 'none':
            found['SLOW_IF'] = str(WORK / 'slow')
        if is_after:
            found |= {name: IDLE[name] for name in one.idle}
            # No job gets what a shell preloads.
            found |= {key: of for key, of in one.change.variables.items() if key != 'LD_PRELOAD'}
            if one.kind == 'flags':
                found['ASSAY_MORE_FLAGS'] = one.change.flags
        self._configure(is_after)
        return found

    def _configure(self, is_after: bool = True, is_search: bool = False) -> None:
        """Write the file of the system: the MPI of the state, and in a search all of its family."""
        one = self.regression
        new = one.mpis[is_after]
        mpis = {ENVIRONMENT: self.mpis / new}
        if is_search and one.kind == 'version':
            family = new.rstrip('0123456789.')
            others = (path for path in self.mpis.glob(f'{family}[0-9]*') if path.is_dir())
            mpis |= {path.name.replace('.', '-'): path for path in others if path.name != new}
        preloaded = one.kind == 'none' or (one.kind == 'preload' and is_after and not is_search)
        variables = {'LD_PRELOAD': str(_LIBRARY)} if preloaded else {}
        listed = ', '.join(
            f'replace(find_in({str(path)!r}), name={name!r})' for name, path in mpis.items()
        )
        text = configuration(replace(UNCHANGED, variables=variables), SYSTEM)
        text = text.replace('in find_mpis()', f'in [{listed}]')
        imports = 'from dataclasses import replace\n\nfrom assay.machine.mpi import find_in\n'
        (WORK / 'systems').mkdir(parents=True, exist_ok=True)
        (WORK / 'systems' / f'{SYSTEM}.py').write_text(imports + text)

    def _runs(self, results: Path, label: str, surroundings: Mapping[str, str]) -> None:
        """Run the case until there are enough runs that nobody disturbed.

        :raises OverError: if the time is over before.
        """
        one = self.regression
        results.mkdir(exist_ok=True)
        command = ['run', '--mode', 'smoke', '--system', SYSTEM, '-p', f'^{ENVIRONMENT}$']
        command += ['-n', one.case, '-S', 'wait_for_quiet=0', '--label', label]
        for _ in range(RUNS + TRIES):
            done = [*results.glob(f'{label}-[0-9]*.json')]
            if len(done) >= RUNS:
                return
            report = results / f'{label}-new.json'
            report.unlink(missing_ok=True)
            said = self._assay([*command, f'--report-file={report}'], surroundings, (0, 1, 3))
            figures = table(plain_rows(read_report(report)))
            is_calm = figures['value'].count() > 0 and not figures['disturbances'].count()
            how = said.splitlines()[-1] if is_calm else 'disturbed'
            say(f'seed {one.seed}, {label}: {how}')
            if is_calm:
                report.rename(results / f'{label}-{len(done)}.json')
        raise OverError(f'others disturbed {TRIES} runs')

    def _search(self, surroundings: Mapping[str, str]) -> dict[str, object]:
        """What `assay culprit` answers.

        :raises OverError: if it is to go on another time.
        """
        one = self.regression
        left = self.ends - time.monotonic()
        if left < 0:
            raise OverError('the time was over')
        command = ['culprit', 'before', 'after', '--budget', f'{left:.0f}s', '--json']
        told = json.loads(self._assay(command, surroundings, (0, 3)))
        seconds = sum(pair['seconds'] for pair in told['pairs'])
        if told['verdict'] == 'undecided' and seconds < BUDGET and 'time' in told['stopped']:
            raise OverError(f'{told["conclusion"]} ({seconds:.0f} s so far)')
        answers = [(each['kind'], sorted(each['changes'])) for each in told['answers']]
        kind = {0: 'none', 1: 'one', 2: 'two'}[len(one.truth)]
        right = kind, one.truth
        steps = told['steps'] or {}
        return {
            'seed': one.seed,
            'kind': one.kind,
            'change': one.change.name,
            'changes': len(told['looked_at']),
            'truth': ' '.join(one.truth) or 'none',
            'answer': ' '.join(answers[0][1]) or answers[0][0],
            'first': answers[0] == right,
            'three': right in answers[:3],
            'verdict': told['verdict'],
            'probability': told['probability'],
            'step': ' '.join(each['name'] for each in steps.get('changes', ())),
            'step_probability': steps.get('probability'),
            'step_pairs': len(steps.get('pairs', ())),
            'pairs': len(told['pairs']),
            'disturbed': sum(bool(pair['why']) for pair in told['pairs']),
            'seconds': seconds,
            'shares': json.dumps(
                [
                    (_share(one, pair['first'], told) - _share(one, pair['second'], told), value)
                    for pair in told['pairs']
                    if (value := pair['value']) is not None
                ]
            ),
            'conclusion': told['conclusion'].replace(str(paths.ROOT), '.'),
            'stopped': told['stopped'] or '',
            'commit': git('rev-parse', 'main'),
            'ended': time.strftime('%Y-%m-%dT%H:%M:%S'),
        }

    def _assay(
        self, words: Sequence[str], surroundings: Mapping[str, str], codes: Sequence[int]
    ) -> str:
        """What a command of the clone prints.

        :raises OverError: if there is no time for it, or it was stopped.
        :raises AssayError: if it fails.
        """
        left = self.ends - time.monotonic()
        if left < 0:
            raise OverError('the time was over')
        done = subprocess.run(
            [CHECKOUT / 'assay', *words], env=surroundings, capture_output=True, text=True
        )
        if done.returncode > 128:
            raise OverError(f'stopped by {signal.Signals(done.returncode - 128).name}')
        if done.returncode not in codes:
            said = f'{done.stdout[-2000:]}{done.stderr[-2000:]}'
            raise AssayError(f'assay {words[0]}: exit code {done.returncode}: {said}')
        return done.stdout


def _share(one: Regression, made: Sequence[str], told: Mapping[str, object]) -> float:
    """Of the effect, that changes have."""
    return float(bool(one.truth) and {*one.truth} <= {*made})


def git(*words: str) -> str:
    who = ['-c', 'user.name=one', '-c', 'user.email=one@example.org']
    command = ['git', '-C', CHECKOUT, *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def prepare() -> None:
    """A clone of the suite, and the library that is preloaded."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not CHECKOUT.exists():
        draft = CHECKOUT.with_suffix('.draft')
        shutil.rmtree(draft, ignore_errors=True)
        subprocess.run(['git', 'clone', '-q', paths.ROOT, draft], check=True)
        draft.replace(CHECKOUT)
        git('branch', '-M', 'main')
    source = Path(__file__).with_name('culprit_delay.c')
    build = ['cc', '-O2', '-Wall', '-Wextra', '-shared', '-fPIC', '-o', _LIBRARY, source, '-ldl']
    subprocess.run(build, check=True)


def commits(one: Regression) -> tuple[str, str]:
    """The commits of the clone that a seed is measured with, before and after; made if missing."""
    if one.kind != 'commit':
        return 'main', 'main'
    name = f'seed-{one.seed}'
    if not git('branch', '--list', name):
        git('checkout', '-q', '-B', f'{name}-draft', 'main')
        for number in range(one.commits):
            if number == one.place:
                for path, before, after in one.change.sources:
                    file = CHECKOUT / path
                    file.write_text(file.read_text().replace(before, after))
            else:
                with (CHECKOUT / one.change.sources[0][0]).open('a') as file:
                    file.write(f'// {number}\n')
            git(
                'commit',
                '-q',
                '-a',
                '-m',
                one.change.name if number == one.place else f'idle {number}',
            )
        git('branch', '-M', name)
    return 'main', name


def checked_out(branch: str) -> None:
    git('checkout', '-q', branch)


def say(text: str) -> None:
    print(f'{time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


class Machine:
    """The changes of a stored seed: what tests show has the errors of its pairs, drawn anew.

    It is what :class:`culprits.Row` asks of a machine.
    """

    def __init__(self, row: Mapping[str, object]) -> None:
        self.random = np.random.default_rng([row['seed'], 2])
        self.kind, self.count = row['kind'], row['changes']
        self.guilty = self.random.choice(
            self.count, {'pair': 2, 'none': 0}.get(self.kind, 1), False
        )
        pairs = np.array(json.loads(row['shares'])).reshape(-1, 2)
        made = np.abs(pairs[:, 0]) == 1
        self.effect = np.median(pairs[made, 1] * pairs[made, 0]) if made.any() else 1.0
        self.errors = pairs[:, 1] - self.effect * pairs[:, 0]

    def pair(self, first: np.ndarray, second: np.ndarray, number: int) -> float:
        share = float(bool(len(self.guilty)))
        share *= float(first[self.guilty].all()) - float(second[self.guilty].all())
        return self.effect * share + self.random.choice(self.errors) * self.random.choice([-1, 1])


def outcome(row: Mapping[str, object], bayesect: str | None) -> Outcome:
    """What came of a stored seed, beside git bisect and git_bayesect."""
    machine = Machine(row)
    tests = Row(machine, 1.0)
    by_bayesect, count = git_bayesect(tests, bayesect)
    spread = max(0.01, float(np.sqrt(np.mean(machine.errors**2)))) / abs(machine.effect)
    kind = {'pair': 'both', 'none': 'none'}.get(machine.kind, 'one')
    return Outcome(
        machine.kind,
        row['first'],
        None,
        row['three'],
        None,
        row['pairs'],
        max(1.0, bound(kind, machine.count, 1.0, spread)),
        row['probability'],
        git_bisect(tests),
        by_bayesect,
        count,
    )


def store(rows: Sequence[Mapping[str, object]]) -> None:
    draft = DATA.with_suffix('.draft')
    pl.DataFrame(rows, infer_schema_length=None).sort('seed').write_parquet(draft)
    draft.replace(DATA)


def measure(seeds: Sequence[int], mpis: Path, minutes: float) -> None:
    """Measure the seeds that are not stored, and store each."""
    handle = turn.take('measurement of real culprits', say)
    try:
        prepare()
        ends = time.monotonic() + 60 * minutes
        for seed in seeds:
            rows = pl.read_parquet(DATA).to_dicts() if DATA.exists() else []
            if seed in {row['seed'] for row in rows}:
                continue
            try:
                row = Trial(draw(seed), mpis, ends).measure()
            except OverError as error:
                say(f'seed {seed}: goes on another time: {error}')
                if time.monotonic() > ends:
                    return
                continue
            store([*rows, row])
            say(f'seed {seed}, {row["kind"]}: {row["conclusion"]}')
    finally:
        os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--from', dest='begin', type=int, default=0, help='the first seed')
    parser.add_argument('--seeds', type=int, default=7, help='how many')
    parser.add_argument('--mpis', type=Path, help='the folder with their prefixes')
    parser.add_argument('--minutes', type=float, default=60, help='no session begins after so many')
    parser.add_argument('--table', action='store_true', help='show what is stored')
    parser.add_argument('--bayesect', help='the folder that has git_bayesect.py')
    options = parser.parse_args()
    if options.table:
        rows = pl.read_parquet(DATA).to_dicts()
        show([outcome(row, options.bayesect) for row in rows])
        return
    if options.mpis is None:
        parser.error('--mpis names no folder')
    try:
        seeds = range(options.begin, options.begin + options.seeds)
        measure(seeds, options.mpis.resolve(), options.minutes)
    except (AssayError, KeyboardInterrupt) as error:
        sys.exit(str(error) or 'stopped')


if __name__ == '__main__':
    main()
