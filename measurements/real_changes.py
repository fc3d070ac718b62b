"""Changes that really make something slower here, and what `assay diff` and pairs say of them.

    .venv/bin/python measurements/real_changes.py --minutes 30
    .venv/bin/python measurements/real_changes.py --only blas --rounds 3 --data /tmp/blas.parquet
    .venv/bin/python measurements/real_changes.py --again

Every session is a real `assay run` of a few cases. First come sessions of this machine as it is,
then rounds: in each of them every change is made and measured twice, in the order of the changes
and back, with a session of the unchanged machine before and after them all. So a spell of the
machine, or a drift, meets all of them alike. A change is one of the system's configuration, as a
site makes it (variables of jobs, flags of the compilers), or a process beside the jobs.

The figures are stored after each round, so that it can be stopped at any time. From them come the
tables (tables_of_changes.py), which `--again` prints without measuring. The turn on this machine
(docs/runs.md) is held for all sessions.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from injected import CHANGES, UNCHANGED, Change
from tables_of_changes import tell

from assay import AssayError, paths
from assay.results.cases import read_report
from assay.results.figures import plain_rows, table
from assay.running import turn

DATA = Path(__file__).with_name('data') / 'real_changes.parquet'
#: The system of these sessions, of this checkout for as long as they last.
SYSTEM = 'real-changes'
SELECTION = '^(Collectives|Stream|Dgemm)%fabric=shm%layout=packed%scale=1_node'
#: Seconds of which a process beside the jobs works for its share.
PERIOD = 0.02


class Measuring:
    """Sessions, one after the other, and what was measured so far."""

    def __init__(self, data: Path, minutes: float) -> None:
        self.data, self.ends = data, time.monotonic() + 60 * minutes
        self.tables: list[pl.DataFrame] = []
        self.took: list[float] = []

    def session(self, change: Change, number: int) -> None:
        """Measure once, with a change made.

        :param number: of the round; 0 before the first.
        :raises AssayError: if no figure came of it.
        """
        began = time.monotonic()
        configure(change)
        with beside(change), tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'report.json')
            command = [paths.ROOT / 'assay', 'run', '--system', SYSTEM, '-p', '^openmpi$']
            # What others disturb is no evidence, and what a change disturbs would be so again.
            command += ['--label', change.name, '-S', 'wait_for_quiet=0', f'--report-file={path}']
            command += ['-n', SELECTION]
            # This process has the turn for all of them.
            surroundings = {**os.environ, turn.VARIABLE: 'yes'}
            done = subprocess.run(
                command, env=surroundings, capture_output=True, text=True, timeout=1800
            )
            # 1 if something missed its reference, 3 if it was disturbed: that is measured as well.
            if done.returncode not in (0, 1, 3) or not path.exists():
                said = (done.stdout + done.stderr)[-4000:]
                raise AssayError(f'a run ended with exit code {done.returncode}:\n{said}')
            figures = table(plain_rows(read_report(path)))
        # Where this checkout is tells nobody anything.
        told = pl.col('provenance').cast(pl.String)
        told = told.str.replace_all(str(paths.ROOT), '.', literal=True)
        self.tables.append(
            figures.with_columns(
                provenance=told.cast(pl.Categorical()), round=pl.lit(number, pl.UInt8)
            )
        )
        self.took.append(time.monotonic() - began)
        last = done.stdout.strip().splitlines()[-1]
        say(f'round {number}, {change.name}: {last} ({self.took[-1]:.0f} s)')

    def round(self, number: int, changes: list[Change]) -> bool:
        """Measure all changes twice, there and back; whether there was time for it."""
        there = [UNCHANGED, *changes]
        states = [*there, *reversed(there)]
        usual = statistics.fmean(self.took[-10:])
        if time.monotonic() + len(states) * usual > self.ends:
            say(f'no time is left for round {number}: {len(states)} sessions of {usual:.0f} s')
            return False
        for change in states:
            self.session(change, number)
        self.store()
        return True

    def store(self) -> None:
        self.data.parent.mkdir(exist_ok=True)
        draft = self.data.with_suffix('.draft')
        whole = pl.concat(self.tables)
        whole.write_parquet(draft, compression='zstd', compression_level=19)
        draft.replace(self.data)


def configure(change: Change) -> None:
    """Write the configuration of the system: that of this machine, with a change made."""
    generic = (paths.SYSTEMS / 'generic.py').read_text()
    named = generic.replace("'name': 'generic'", f"'name': '{SYSTEM}'")
    lines = [named.replace("stand_in_for('generic')\n", '')]
    variables = [[*one] for one in change.variables.items()]
    lines += ["(system,) = site_configuration['systems']"]
    lines += [f"system['partitions'][0]['env_vars'] += {variables}"]
    if change.flags:
        lines += ["for environment in site_configuration['environments']:"]
        lines += [
            f'    environment |= dict.fromkeys(("cflags", "cxxflags"), {change.flags.split()})'
        ]
    (paths.SYSTEMS / f'{SYSTEM}.py').write_text('\n'.join(lines) + '\n')


@contextlib.contextmanager
def beside(change: Change) -> Iterator[None]:
    """Have another process use the last CPU of this machine, if that is the change."""
    if not change.beside:
        yield
        return
    worker = multiprocessing.Process(target=work, args=change.beside, daemon=True)
    worker.start()
    try:
        yield
    finally:
        worker.kill()
        worker.join()


def work(copies: bool, share: float) -> None:
    """Compute or copy memory for a share of the time, without an end."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    source = np.ones(1 << 20)  # 8 MiB at a time of 256
    target = np.empty((32, source.size))
    chunk = 0
    while True:
        ends = time.perf_counter() + share * PERIOD
        while time.perf_counter() < ends:
            if copies:
                chunk = (chunk + 1) % len(target)
                target[chunk] = source
        time.sleep((1 - share) * PERIOD)


def say(text: str) -> None:
    print(f'{time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, changes: list[Change]) -> None:
    measuring = Measuring(options.data, options.minutes)
    handle = turn.take('measurement of real changes', say)
    try:
        # What they need is built, before any of them counts.
        for change in (UNCHANGED, *(one for one in changes if one.flags)):
            measuring.session(change, 0)
        measuring.tables.clear()
        measuring.took.clear()
        for _ in range(options.earlier):
            measuring.session(UNCHANGED, 0)
        measuring.store()
        for number in range(1, options.rounds + 1):
            asked = [one for one in changes if one.rounds is None or number <= one.rounds]
            if not measuring.round(number, asked):
                break
    finally:
        (paths.SYSTEMS / f'{SYSTEM}.py').unlink(missing_ok=True)
        os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [one.name for one in CHANGES]
    parser.add_argument(
        '--minutes', type=float, default=30, help='no round begins that would end later'
    )
    parser.add_argument('--earlier', type=int, default=12, help='sessions before the first round')
    parser.add_argument('--rounds', type=int, default=8, help='at most')
    parser.add_argument(
        '--only', nargs='+', choices=names, default=names, help='only these changes'
    )
    parser.add_argument('--data', type=Path, default=DATA, help='where the figures are stored')
    parser.add_argument('--again', action='store_true', help='measure nothing: print the tables')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('stopped'))  # and the configuration removed
    try:
        if not options.again:
            measure(options, [one for one in CHANGES if one.name in options.only])
        tell(pl.read_parquet(options.data))
    except AssayError as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
