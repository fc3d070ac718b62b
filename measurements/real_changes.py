"""Changes that really make something slower here: sessions to be compared three and three.

    .venv/bin/python measurements/real_changes.py --minutes 60
    .venv/bin/python measurements/real_changes.py --between-nodes --minutes 15
    .venv/bin/python measurements/tables_of_changes.py
    .venv/bin/python measurements/real_changes.py --trials 2 --minutes 30
    .venv/bin/python measurements/table_of_trials.py

Every session is a real `assay run` of the smoke mode of Debian's Open MPI over `shm` and `tcp`,
with the machine's turn (docs/runs.md), or of two nodes of the virtual cluster. Some of the
unchanged machine come first, then every change in turn, forth and back, with a session of the
unchanged machine after each three (on the cluster each two), and of the suite as it was at an
earlier commit before each second of those, unless `--only` leaves it out. A change is one of the
system's configuration, as a site makes it (variables of jobs, flags of the compilers), of a setting
of the kernel's, of the suite's sources (in a clone of its own), a process beside the jobs, or a
fault of the cluster.

A trial is a whole upgrade day: three runs of the unchanged machine, then `run --against` them with
a change made. Their order was drawn by lot beforehand (`order_of_trials`).

The figures are stored after each session or trial: the measurement may be stopped at any time, and
goes on where it was. Kernel settings are restored when a session ends, and after a signal. Needs
root for those. The cluster has to be up: `./assay cluster up --size 2`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from injected import BETWEEN_NODES, CHANGES, EARLIER, UNCHANGED, Change

from assay import AssayError, paths
from assay.quantities import seconds_of
from assay.results.figures import plain_rows, table
from assay.results.history import load_history
from assay.results.reframe_report import read_reframe_report
from assay.running import turn
from assay.vcluster.cluster import Cluster

DATA = Path(__file__).with_name('data') / 'upgrade_day.parquet'
DATA_BETWEEN_NODES = DATA.with_stem('upgrade_day_between_nodes')
DATA_OF_TRIALS = DATA.with_name('trials_of_against.jsonl')
#: What the sessions leave, and the clones of the suite that changes are made in.
WORK = paths.STATE / 'upgrade-day'
#: Sessions of the unchanged machine before the first round.
FIRST = 6
#: Of the order of trials.
SEED = 34
#: Seconds of which a process beside the jobs works for its share.
PERIOD = 0.02


@dataclass(frozen=True)
class Place:
    """Where sessions are measured.

    :param environments: an expression.
    :param cases: those that are measured, an expression.
    :param built: those for which everything is built.
    :param each: sessions of changes between two of the unchanged machine.
    :param nodes: of the virtual cluster, as it is configured; none of this machine.
    :param with_earlier: whether the suite as it was takes turns with that of today.
    :param is_shared: whether others use it all the while, who are not waited for.
    """

    system: str
    environments: str
    changes: Sequence[Change]
    cases: str
    built: str
    each: int = 3
    nodes: tuple[str, ...] = ()
    with_earlier: bool = False
    is_shared: bool = False


#: A system of its own on this machine, configured for each change.
HERE = Place(
    'upgrade-day',
    '^openmpi-system$',
    CHANGES,
    '%fabric=(shm|tcp)',
    '^(Clock|MiniFE|HPL|MiniMD|MiniGhost)%fabric=shm%layout=packed',
)
#: A trial whose cases --cases does not choose is of MiniFE and what the change is aimed at; if that
#: is nothing, of this.
AIMED_AT_NOTHING = ('MiniGhost', 'shm', '')
BETWEEN_TWO = (
    '^((PointToPoint|Ring|Collectives|MiniFE)%fabric=tcp|PointToPoint%fabric=ucx-tcp)'
    '%layout=packed%scale=2_nodes'
)
#: Nodes of the virtual cluster, which has to be up.
CLUSTER = Place(
    'vcluster:srun',
    '^(openmpi|mpich)$',
    BETWEEN_NODES,
    BETWEEN_TWO,
    BETWEEN_TWO,
    each=2,
    nodes=('n1', 'n2'),
)


def next_of(stored: Sequence[str], place: Place) -> Change:
    """What is measured next: a change with the fewest sessions, forth and back.

    :param stored: the labels of the sessions so far, in their order.
    """
    counts = Counter(stored)
    since = [*itertools.takewhile(lambda label: label != UNCHANGED.name, reversed(stored))]
    if counts[UNCHANGED.name] < FIRST or EARLIER.name in since:
        return UNCHANGED
    if len(since) >= place.each:
        is_even = counts[UNCHANGED.name] % 2 == 0
        return EARLIER if place.with_earlier and is_even else UNCHANGED
    fewest = min(counts[one.name] for one in place.changes)
    candidates = [one for one in place.changes if counts[one.name] == fewest]
    return candidates[-1 if fewest % 2 else 0]


def session(change: Change, number: int, place: Place, cases: str) -> pl.DataFrame:
    """The figures of one session, with a change made.

    :param number: of the session.
    :param cases: those that are measured, an expression.
    :raises AssayError: if no figure came of it.
    """
    with made(change, place) as root, tempfile.TemporaryDirectory(dir=WORK) as folder:
        path = Path(folder, 'report.json')
        arguments = ['-n', cases, '--label', change.name, f'--report-file={path}']
        code, said = run(root, place, change, arguments, WORK / 'results')
        # 1 if something missed its reference, 3 if it was disturbed: that is measured as well.
        if code not in (0, 1, 3) or not path.exists():
            raise AssayError(f'a run ended with exit code {code}:\n{said[-4000:]}')
        figures = table(plain_rows(read_reframe_report(path)))
    say(f'session {number}, {change.name}: {said.strip().splitlines()[-1]}')
    return without_root(figures, root)


def without_root(figures: pl.DataFrame, root: Path) -> pl.DataFrame:
    """Figures that do not tell where this checkout is, nor a clone of it."""
    told = pl.col('provenance').cast(pl.String)
    for folder in (root, paths.ROOT):
        told = told.str.replace_all(str(folder), '.', literal=True)
    return figures.with_columns(provenance=told.cast(pl.Categorical()))


def order_of_trials(changes: Sequence[Change], each: int) -> list[Change]:
    """Each change so many times, and the unchanged machine once for three of them, drawn by lot.

    Each change has had its first trial before any has its second.
    """
    lots = random.Random(SEED)
    once = [*[UNCHANGED] * math.ceil(len(changes) / 3), *changes]
    return [one for _ in range(each) for one in lots.sample(once, len(once))]


def cases_of(change: Change) -> str:
    """The cases of a trial, an expression: MiniFE, and what the change is aimed at."""
    check, fabric, _ = change.aimed_at if change.aimed_at[0] else AIMED_AT_NOTHING
    return f'^(MiniFE%fabric=shm|{check}%fabric={fabric})%layout=packed'


def run_before(place: Place, cases: str, results: Path) -> None:
    """One of the three runs of the unchanged machine that a trial begins with.

    :param results: where it is stored: a trial has a history of its own.
    :raises AssayError: if it failed.
    """
    with made(UNCHANGED, place) as root:
        code, said = run(root, place, UNCHANGED, ['-n', cases, '--label', 'before'], results)
    if code not in (0, 3):
        raise AssayError(f'a run before ended with exit code {code}:\n{said[-4000:]}')


def trial(
    change: Change, number: int, place: Place, cases: str, budget: str, before: Path
) -> tuple[dict[str, Any], pl.DataFrame]:
    """`run --against` with a change made.

    :param number: of the trial.
    :param before: where the runs before are stored.
    :returns: what is stored of it: the change, when it began, the suite's commit, whether others
        use the machine, load averages of a minute as it began and ended, exit code, seconds,
        number of rounds, answer, what was said, and the identifiers of all its runs, oldest first.
        And their figures.
    :raises AssayError: if it measured nothing.
    """
    results = before.with_name(f'{number}-{time.time():.0f}')
    shutil.copytree(before, results, symlinks=True)
    told: dict[str, Any] = {
        'change': change.name,
        'begun': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'commit': commit(),
        'is_shared': place.is_shared,
        'loads': [os.getloadavg()[0]],
    }
    began = time.monotonic()
    with made(change, place) as root:
        arguments = ['-n', cases, '--label', 'after', '--against', 'before', '--repeat', '3']
        arguments += ['--budget', budget]
        code, said = run(root, place, change, arguments, results)
    history = load_history(results / 'perflogs' / 'results.db')
    if not any(one.summary.label == 'after' for one in history.runs):
        raise AssayError(f'nothing was measured:\n{said[-4000:]}')
    told['loads'].append(os.getloadavg()[0])
    told |= {
        'code': code,
        'seconds': round(time.monotonic() - began, 1),
        'rounds': len(re.findall(r'^Assay: round \d+$', said, re.MULTILINE)),
        'answer': said.strip().splitlines()[-1],
        'said': said.replace(f'{paths.ROOT}/', ''),
        'runs': [run.uuid for run in history.runs],
    }
    say(f'trial {number}, {change.name}: {told["seconds"]} s, {told["answer"]}')
    return told, without_root(history.figures(history.runs), root)


@contextlib.contextmanager
def made(change: Change, place: Place) -> Iterator[Path]:
    """Have a change made, with the machine's turn; gives the suite's folder."""
    WORK.mkdir(parents=True, exist_ok=True)
    root = checkout(change)
    if not place.nodes:
        configure(change, place.system)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, turn.take('measurement of real changes', say))
        stack.enter_context(kernel_set_to(change, place))
        stack.enter_context(beside(change, place))
        stack.enter_context(broken(change))
        yield root


def run(
    root: Path, place: Place, change: Change, arguments: Sequence[str], results: Path
) -> tuple[int, str]:
    """`assay run` of a place, with the variables of a change: the exit code, and what it said."""
    command = [str(root / 'assay'), 'run', '--system', place.system, '-p', place.environments]
    if change.share or place.is_shared:  # what is disturbed would be so again
        command += ['-S', 'wait_for_quiet=0']
    surroundings = os.environ | {
        turn.VARIABLE: 'yes',
        paths.RESULTS_VARIABLE: str(results),
    }
    if place.nodes:
        surroundings |= change.variables  # as a user exports them
    else:
        surroundings[paths.SYSTEMS_VARIABLE] = str(WORK / 'systems')
    with contextlib.ExitStack() as stack:
        # Signals of a terminal are this process's, which ends the run by its own.
        process = subprocess.Popen(
            [*command, *arguments],
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        stack.callback(end, process)
        said, _ = process.communicate(timeout=1800)
    return process.returncode, said


def end(process: subprocess.Popen[str]) -> None:
    """End a run that is still there."""
    if process.poll() is None:
        process.terminate()
        process.wait(timeout=60)


def checkout(change: Change) -> Path:
    """The suite's folder for a change: a clone, if its sources or its commit are others."""
    if not change.sources and not change.commit:
        return paths.ROOT
    folder = WORK / f'{change.name}-{commit()}'  # or it would differ by what came since, too
    if not folder.exists():
        draft = folder.with_suffix('.draft')
        shutil.rmtree(draft, ignore_errors=True)
        subprocess.run(['git', 'clone', '-q', paths.ROOT, draft], check=True)
        if change.commit:
            subprocess.run(['git', '-C', draft, 'checkout', '-q', change.commit], check=True)
        for name, before, after in change.sources:
            text = (draft / name).read_text()
            if text.count(before) != 1:
                raise AssayError(f'{name} has not one {before!r}')
            (draft / name).write_text(text.replace(before, after))
        draft.replace(folder)
    return folder


def commit() -> str:
    """Of this checkout, in short."""
    git = ['git', '-C', str(paths.ROOT), 'rev-parse', '--short', 'HEAD']
    return subprocess.run(git, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def configure(change: Change, name: str) -> None:
    """Write the configuration of the system."""
    (WORK / 'systems').mkdir(parents=True, exist_ok=True)
    (WORK / 'systems' / f'{name}.py').write_text(configuration(change, name))


def configuration(change: Change, name: str) -> str:
    """The configuration of a system: that of this machine, with a change made."""
    generic = (paths.CONFIG / 'systems' / 'generic.py').read_text()
    named = generic.replace("'name': 'generic'", f"'name': '{name}'")
    lines = [named.replace("stand_in_for('generic')\n", '')]
    variables = [[*one] for one in change.variables.items()]
    lines += ["(system,) = site_configuration['systems']"]
    lines += [f"system['partitions'][0]['env_vars'] += {variables}"]
    if change.flags:
        lines += ["for environment in site_configuration['environments']:"]
        lines += [
            f'    environment |= dict.fromkeys(("cflags", "cxxflags"), {change.flags.split()})'
        ]
    return '\n'.join(lines) + '\n'


@contextlib.contextmanager
def kernel_set_to(change: Change, place: Place) -> Iterator[None]:
    """Have the kernel's settings as the change has them, and then as they were.

    Each node of the cluster has its own of the network.
    """
    enter = [[paths.ROOT / 'assay', 'cluster', 'exec', node] for node in place.nodes] or [[]]
    files = [[*where, 'tee', path] for where in enter for path in change.kernel]
    before = [written([*file[:-2], 'cat', file[-1]]) for file in files]
    try:
        for file in files:
            written(file, change.kernel[str(file[-1])])
        yield
    finally:
        for file, value in zip(files, before, strict=True):
            written(file, current(value))


def written(command: Sequence[str | Path], text: str = '') -> str:
    """What a command writes that is given a text."""
    done = subprocess.run(command, check=True, input=text, stdout=subprocess.PIPE, text=True)
    return done.stdout


def current(text: str) -> str:
    """What a file of the kernel's has; of several choices the one in brackets."""
    return text.partition('[')[2].partition(']')[0] or text


@contextlib.contextmanager
def beside(change: Change, place: Place) -> Iterator[None]:
    """Have another process use the last CPU, or that of the last node, if that is the change."""
    if not change.share:
        yield
        return
    worker = multiprocessing.Process(
        target=work, args=(change.share, place.nodes[-1:]), daemon=True
    )
    worker.start()
    try:
        yield
    finally:
        worker.kill()
        worker.join()


@contextlib.contextmanager
def broken(change: Change) -> Iterator[None]:
    """Have the cluster's fault, if that is the change."""
    if not change.fault:
        yield
        return
    cluster = [paths.ROOT / 'assay', 'cluster']
    subprocess.run([*cluster, 'fault', *change.fault], check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*cluster, 'heal'], check=True, stdout=subprocess.DEVNULL)


def work(share: float, nodes: Sequence[str]) -> None:
    """Compute for a share of the time, without an end.

    :param nodes: of the cluster: one, whose share of the machine it has; of none the last CPU.
    """
    for name in nodes:
        group = Cluster.current().node(name).group
        assert group, f'{name} is no compute node'
        group.join()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    while True:
        ends = time.perf_counter() + share * PERIOD
        while time.perf_counter() < ends:
            pass
        time.sleep((1 - share) * PERIOD)


def say(text: str) -> None:
    print(f'{time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


def store(data: Path, sessions: Sequence[pl.DataFrame]) -> None:
    data.parent.mkdir(exist_ok=True)
    draft = data.with_suffix('.draft')
    pl.concat(sessions).write_parquet(draft, compression='zstd', compression_level=19)
    draft.replace(data)


def build(place: Place, changes: Sequence[Change], cases: str) -> None:
    """Have what measurements need built, before any of them counts."""
    for change in changes:
        if change in (UNCHANGED, EARLIER) or change.flags or change.sources:
            session(change, 0, place, cases)


def measure(data: Path, minutes: float, place: Place) -> None:
    """Measure for so long, and store after each session."""
    ends = time.monotonic() + 60 * minutes
    sessions = [pl.read_parquet(data)] if data.exists() else []
    if not sessions:
        earlier = [EARLIER] if place.with_earlier else []
        changes = [] if place.nodes else place.changes
        build(place, [UNCHANGED, *earlier, *changes], place.built)
    stored = labels_of(sessions[0]) if sessions else []
    while time.monotonic() < ends:
        change = next_of(stored, place)
        stored.append(change.name)
        sessions.append(session(change, len(stored), place, place.cases))
        store(data, sessions)


def measure_trials(
    data: Path, minutes: float, place: Place, each: int, cases: str | None, budget: str
) -> None:
    """Make trials for so long, and store each: its figures beside what is told of it.

    What a trial begins with may be from an earlier time.
    """
    ends = time.monotonic() + 60 * minutes
    figures = data.with_suffix('.parquet')
    if not data.exists():
        build(place, [UNCHANGED, *place.changes], cases or place.built)
        data.touch()
    took = 0.0
    while time.monotonic() + took < ends:
        done = Counter(json.loads(line)['change'] for line in data.read_text().splitlines())
        number, change = done.total() + 1, None
        for one in order_of_trials(place.changes, each):
            # Others' figures would change with the kernel's settings.
            if not done[one.name] and not (place.is_shared and one.kernel):
                change = one
                break
            done[one.name] -= 1
        if change is None:
            return
        ours = cases or cases_of(change)
        before = WORK / 'trials' / f'{number}-before'
        runs = [one for one in load_history(before / 'perflogs' / 'results.db').runs if one.verdict]
        if len(runs) < 3:
            began = time.monotonic()
            run_before(place, ours, before)
            took = time.monotonic() - began
        elif time.monotonic() + seconds_of(budget) <= ends:
            told, measured = trial(change, number, place, ours, budget, before)
            store(figures, [*([pl.read_parquet(figures)] if figures.exists() else []), measured])
            with open(data, 'a') as file:
                file.write(f'{json.dumps(told)}\n')
        else:
            return


def labels_of(stored: pl.DataFrame) -> list[str]:
    """The label of each session, in their order."""
    order = stored.sort('begun').unique('run', maintain_order=True)
    return order['label'].cast(pl.String).to_list()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = {one.name: None for one in (EARLIER, *CHANGES, *BETWEEN_NODES)}
    parser.add_argument(
        '--minutes', type=float, default=60, help='no session or trial begins after so many'
    )
    parser.add_argument(
        '--only', nargs='+', choices=names, default=names, help='only these changes'
    )
    parser.add_argument(
        '--between-nodes', action='store_true', help='on the virtual cluster, which has to be up'
    )
    parser.add_argument('--data', type=Path, help='where the figures, or trials, are stored')
    parser.add_argument(
        '--trials', type=int, help='so many of `run --against` of each change, and some of none'
    )
    parser.add_argument(
        '--shared', action='store_true', help='others use the machine: do not wait for them'
    )
    parser.add_argument('--cases', help='those of the trials, an expression')
    parser.add_argument('--budget', default='3m', help='of each trial')
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):  # and settings are restored
        signal.signal(number, lambda *_: sys.exit('stopped'))
    try:
        place, data = (CLUSTER, DATA_BETWEEN_NODES) if options.between_nodes else (HERE, DATA)
        changes = [one for one in place.changes if one.name in options.only]
        with_earlier = not place.nodes and EARLIER.name in options.only
        place = replace(place, changes=changes, with_earlier=with_earlier, is_shared=options.shared)
        if options.trials:
            data = options.data or DATA_OF_TRIALS
            measure_trials(
                data, options.minutes, place, options.trials, options.cases, options.budget
            )
        else:
            measure(options.data or data, options.minutes, place)
    except (AssayError, KeyboardInterrupt) as error:
        sys.exit(str(error) or 'stopped')


if __name__ == '__main__':
    main()
