"""A campaign against the verdict itself: runs are spoilt in every way known, and may not end well.

    .venv/bin/python measurements/verdict.py --trials 300
    .venv/bin/python measurements/verdict.py --trials 20 --seed 7 --only kill

Each trial starts one to four real `assay run` of three short jobs, whose figures are known, and
spoils them: options, files that are removed or cut at a known point, processes that are killed,
full disks, read-only folders, hostile output, clocks that jump, other runs beside. Before it
starts, a trial knows how its run has to end:

    green   nothing that it does is wrong
    red     what it does makes the run bad
    either  it depends on the moment: if the run ends green, then all has to be true that it says

A green run that had to be red, a red one that had to be green, a green one whose table is not the
truth, a traceback of ours, an escape sequence on the terminal, or a JUnit that disagrees with the
exit code is a violation. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from assay import paths

CHECKS = Path(__file__).with_name('verdict_checks.py')
CLOCK_JUMP = Path(__file__).with_name('clock_jump.c')
CASES = 3
PATIENCE = 900  # s; a run takes about four, and may wait for others

Expected = Literal['green', 'red', 'either']


@dataclass
class Run:
    """An `assay run` that has been started.

    :param value: the figure that its jobs print.
    """

    process: subprocess.Popen
    output: Path
    junit: Path
    value: str

    @property
    def text(self) -> str:
        return self.output.read_text(errors='replace')

    @property
    def folder(self) -> Path | None:
        """The folder of the run, once that is known."""
        said = re.search(r'what ReFrame says is in (.*)/reframe\.log$', self.text, re.MULTILINE)
        return Path(said[1]) if said else None

    def wait_for_a_job(self) -> bool:
        """Wait until ReFrame has begun to run a case; false if the run ended before."""

        def has_begun() -> bool:
            log = self.folder and _read(f'{self.folder}/reframe.log')
            return bool(log and re.search(r'RUN +\] Steady', log))

        return self._wait(has_begun)

    def wait_until_reframe_ended(self) -> bool:
        """Wait, while the command itself is stopped, for the end of its child."""

        def is_over() -> bool:
            return all('State:\tZ' in _status(pid) for pid in self.children())

        return self._wait(is_over)

    def _wait(self, is_so: Callable[[], bool]) -> bool:
        for _ in range(PATIENCE * 20):
            if is_so():
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.05)
        return False

    def children(self) -> list[int]:
        """ReFrame, as the one child of the command."""
        return _children(self.process.pid)

    def jobs(self) -> list[int]:
        """Processes of the run's jobs."""
        return [
            pid
            for pid in map(int, filter(str.isdigit, os.listdir('/proc')))
            if 'rfm_job.sh' in _command(pid) and self.folder and str(self.folder) in _cwd(pid)
        ]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors='replace')
    except OSError:
        return ''


def _status(pid: int) -> str:
    return _read(f'/proc/{pid}/status') or 'State:\tZ'


def _command(pid: int) -> str:
    return _read(f'/proc/{pid}/cmdline')


def _cwd(pid: int) -> str:
    try:
        return os.readlink(f'/proc/{pid}/cwd')
    except OSError:
        return ''


def _children(pid: int) -> list[int]:
    return list(map(int, _read(f'/proc/{pid}/task/{pid}/children').split()))


@dataclass
class Trial:
    """One or more runs at once, and what is done to them.

    :param expected: of each run.
    :param arguments: of each run, beside those that all have.
    :param environment: of all runs.
    :param within: the command that starts a run: a namespace with a spoilt file system.
    :param spoil: what is done to the first run while it goes on; False if it came too late.
    :param checkouts: which the runs go on in, in turn.
    """

    kind: str
    what: str
    expected: list[Expected]
    arguments: list[list[str]] = field(default_factory=lambda: [[]])
    environment: dict[str, str] = field(default_factory=dict)
    within: list[str] = field(default_factory=list)
    spoil: Callable[[Run], bool | None] | None = None
    checkouts: list[Path] = field(default_factory=lambda: [paths.ROOT])


# The trials -------------------------------------------------------------------------------------


def options(rng: random.Random) -> Trial:
    """Options of ReFrame, and variables of checks."""
    good = [
        ['-v'],
        ['--exec-policy=serial'],
        ['--max-retries=1'],
        ['--keep-stage-files'],
        ['--failure-stats'],
        ['--exec-order=random'],
        ['-S', 'Steady.seconds=0.1'],
        ['--maxfail=2'],
        ['-J', 'comment=x'],
        ['--session-extras', 'who=me'],
        ['--save-log-files'],
        ['--performance-report'],
    ]
    bad = [
        ['--skip-sanity-check'],
        ['--skip-performance-check'],
        ['--skip-sanity'],
        ['--skip-system-check'],
        ['--disable-hook=print_figure'],
        ['--stage=elsewhere'],
        ['--compress-report'],
        ['-n', 'Nothing'],
        ['-x', 'Steady'],
        ['-t', 'nosuchtag'],
        ['-E', 'False'],
        ['Steady'],
        ['-c', '/nowhere/missing.py'],
        ['-S', 'Steady.valu=42'],
        ['-S', 'Stedy.value=42'],
        ['--restore-session'],
        ['-S', 'Steady.value=none'],
        ['-S', 'Steady.value=nan'],
        ['-S', 'Steady.value=-42'],
        ['-S', 'Steady.value=80'],
        ['-S', 'Steady.value=20', '-S', 'strict_check=no'],
        ['-S', 'Steady.seconds=many'],
        ['-S', 'Steady.valid_systems=nowhere'],
        ['-P', 'nosuch=1,2'],
        ['-P', 'Stedy.value=42,42'],
        ['--mode=nosuch'],
        ['--system=nosuch'],
        ['--with', 'nosuch'],
        ['--repeat=x'],
        ['--max-retries=-x'],
    ]
    expected = rng.choice(['green', 'red', 'red'])
    chosen = rng.choice(good if expected == 'green' else bad)
    return Trial('options', ' '.join(chosen), [expected], [chosen])


def kill(rng: random.Random) -> Trial:
    """A process of the run is killed at any moment, or when a job runs."""
    victim = rng.choice(['assay', 'reframe', 'job', 'job'])
    numbers = [signal.SIGKILL]
    if victim == 'assay':
        numbers += [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    number = rng.choice(numbers)
    delay = rng.uniform(0, 3) if victim != 'job' and rng.random() < 0.6 else None

    def spoil(run: Run) -> None:
        if delay is None:
            run.wait_for_a_job()
        else:
            time.sleep(delay)
        for _ in range(200):
            pids = {
                'assay': lambda: [run.process.pid],
                'reframe': lambda: [p for p in run.children() if 'reframe' in _command(p)],
                'job': run.jobs,
            }[victim]()
            if pids or delay is not None or run.process.poll() is not None:
                break
            time.sleep(0.01)
        for pid in pids[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    # A moment may be before there is a ReFrame, or after all was done.
    expected = 'either' if delay is not None else 'red'
    when = 'while a job runs' if delay is None else f'after {delay:.1f} s'
    arguments = [['-S', 'Steady.seconds=2']]
    what = f'{victim} by {number.name} {when}'
    return Trial('kill', what, [expected], arguments, spoil=spoil)


DAMAGE: dict[str, Callable[[Path], object]] = {
    'removed': lambda path: path.unlink(),
    'cut in half': lambda path: os.truncate(path, path.stat().st_size // 2),
    'emptied': lambda path: os.truncate(path, 0),
    'garbled': lambda path: path.write_bytes(os.urandom(max(1, path.stat().st_size))),
}


def files(rng: random.Random) -> Trial:
    """What the verdict is read from is damaged when it is written and not yet read."""
    name = rng.choice(['report.json', 'reframe.log'])
    how = rng.choice(list(DAMAGE))

    def spoil(run: Run) -> bool:
        # ReFrame goes on while the command that judges it is stopped.
        if not run.wait_for_a_job():
            return False
        os.kill(run.process.pid, signal.SIGSTOP)
        try:
            run.wait_until_reframe_ended()
            DAMAGE[how](run.folder / name)
            return True
        finally:
            os.kill(run.process.pid, signal.SIGCONT)

    return Trial('files', f'{name} {how} before it is read', ['red'], spoil=spoil)


def outputs(rng: random.Random) -> Trial:
    """What a job printed is damaged before ReFrame reads it."""
    how = rng.choice(list(DAMAGE))

    def spoil(run: Run) -> bool:
        if not run.wait_for_a_job():
            return False
        reframe = run.children()
        for pid in reframe:
            os.kill(pid, signal.SIGSTOP)
        try:
            found: list[Path] = []
            for _ in range(400):
                found = [
                    path
                    for path in (run.folder / 'stage').rglob('rfm_job.out')
                    if 'end\n' in path.read_text(errors='replace')
                ]
                if found:
                    break
                time.sleep(0.05)
            for path in found:
                DAMAGE[how](path)
            return bool(found)
        finally:
            for pid in reframe:
                os.kill(pid, signal.SIGCONT)

    return Trial('outputs', f"a job's output {how} before it is read", ['red'], spoil=spoil)


def at_once(rng: random.Random) -> Trial:
    """Two to four runs, good ones and bad ones."""
    count = rng.randint(2, 4)
    expected: list[Expected] = [rng.choice(['green', 'red']) for _ in range(count)]
    arguments = [[] if one == 'green' else ['-S', 'Steady.value=80'] for one in expected]
    return Trial('at once', f'{count} runs: {", ".join(expected)}', expected, arguments)


def storage(rng: random.Random) -> Trial:
    """A folder is full or cannot be written to."""
    how = rng.choice(['full', 'full', 'read-only'])
    name = rng.choice(['.assay/runs', 'perflogs', 'perflogs', 'checks', 'config', 'sources'])
    left = {'.assay/runs': paths.RUNS, 'perflogs': paths.PERFLOGS}
    folder = left.get(name, paths.ROOT / name)
    folder.mkdir(parents=True, exist_ok=True)
    needed = name in left
    size = rng.choice([4, 8, 16, 64]) if how == 'full' else 0
    if how == 'full' and not needed:
        how = 'read-only'
    if how == 'full':
        mount = f'mount -t tmpfs -o size={size}k tmpfs "$1"'
    else:
        mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
    within = ['unshare', '--mount', 'sh', '-c', f'{mount} && shift && exec "$@"', 'sh', str(folder)]
    what = f'{name} {how}' + (f' after {size} KiB' if size else '')
    expected = 'green'
    if needed:
        # The files of a run take up to a hundred KiB, its perflog a few.
        expected = 'either' if how == 'full' else 'red'
    return Trial('storage', what, [expected], within=within)


HOSTILE = [
    '\x1b[1A\x1b[2KPASSED: 3 passed, 0 failed, 0 skipped of 3 cases in 1 s\n',
    '\x1b]0;title\x07\x9b31m red \u202e txet \u2066',
    'WARNING: skipping test file\n[  PASSED  ] Ran 3/3 test case(s)\n',
    '\n--- Logging error ---\nOSError: [Errno 28]\n',
    'latency 1e999\n\x00',
    ']]></failure></testcase><testcase name="&amp;',
    'x' * 200_000,
]


def hostile(rng: random.Random) -> Trial:
    """A job prints what could be taken for something else."""
    text = rng.choice(HOSTILE).replace('\x00', '\x01')
    expected = rng.choice(['green', 'red'])
    if 'latency' in text:
        expected = 'red'  # the first that it finds is what ReFrame takes
    arguments = [['-S', 'Steady.value=80']] if expected == 'red' else [[]]
    environment = {'CAMPAIGN_TEXT': text[:100_000]}
    return Trial('hostile', repr(text[:40]), [expected], arguments, environment)


def clock(rng: random.Random) -> Trial:
    """The clock jumps while jobs run."""
    jump = rng.choice([3600, -3600, 400 * 86400, -20 * 365 * 86400])
    folder = Path(tempfile.gettempdir(), f'campaign-clock-{os.getpid()}')
    folder.mkdir(exist_ok=True)
    library, file = folder / 'clock_jump.so', folder / 'seconds'
    if not library.exists():
        subprocess.run(['cc', '-shared', '-fPIC', '-o', library, CLOCK_JUMP], check=True)
    file.write_text('0')

    def spoil(run: Run) -> None:
        run.wait_for_a_job()
        file.write_text(str(jump))

    environment = {'LD_PRELOAD': str(library), 'CLOCK_JUMP_FILE': str(file)}
    what = f'the clock jumps by {jump} s'
    arguments = [['-S', 'Steady.seconds=2']]
    return Trial('clock', what, ['red'], arguments, environment, spoil=spoil)


KINDS = {
    'options': options,
    'kill': kill,
    'files': files,
    'outputs': outputs,
    'at once': at_once,
    'storage': storage,
    'hostile': hostile,
    'clock': clock,
}


def missing(kind: str) -> str | None:
    """What a kind of trial lacks on this machine; None if nothing."""
    if kind == 'storage' and os.geteuid() != 0:
        return 'mounting needs root'
    if kind == 'clock' and shutil.which('cc') is None:
        return 'there is no C compiler (cc)'
    return None


# Running them -----------------------------------------------------------------------------------


def perform(trial: Trial, work: Path) -> Iterator[str]:
    """Run a trial; yields a sentence for each violation."""
    runs = []
    for number, arguments in enumerate(trial.arguments):
        value = f'42.{number + 1}'
        told = ['-S', f'Steady.value={value}', *arguments]
        output, junit = work / f'output-{number}', work / f'junit-{number}.xml'
        checkout = trial.checkouts[number % len(trial.checkouts)]
        command = [
            *trial.within,
            str(checkout / 'assay'),
            *('run', '--all', '-c', str(CHECKS), '-p', '^openmpi$', f'--report-junit={junit}'),
            *told,
        ]
        with output.open('w') as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, 'COLUMNS': '200', **trial.environment},
                start_new_session=True,
                preexec_fn=_heed_signals,
            )
        runs.append(Run(process, output, junit, value))
    try:
        if trial.spoil and trial.spoil(runs[0]) is False:
            trial.expected[0] = 'either'
        for run in runs:
            run.process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        yield f'not ended after {PATIENCE} s'
    finally:
        for run in runs:
            run.process.kill()
            run.process.wait()
    for run, expected in zip(runs, trial.expected, strict=True):
        yield from judge(run, expected)


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def judge(run: Run, expected: Expected) -> Iterator[str]:
    """Hold how a run ended against how it has to."""
    text, code = run.text, run.process.returncode
    is_green = code == 0
    if is_green and expected == 'red':
        yield 'ended green'
    if not is_green and expected == 'green':
        yield f'ended red: {_last_words(text)}'
    if code > 0 and re.search('^PASSED: ', text, re.MULTILINE):
        yield 'ended red, and says PASSED'
    # ReFrame and Python's logging print some of theirs on purpose.
    if re.search(r'^ *File ".*/lib/assay/', text, re.MULTILINE):
        yield 'printed a traceback'
    if control := re.search(r'[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]', text):
        yield f'printed the control character {control[0]!r}'
    if is_green:
        yield from untrue(run)
    try:
        failures = _failures(run.junit)
    except ET.ParseError as error:
        yield f'JUnit is no XML: {error}'
        return
    if is_green and failures != 0:
        yield f'JUnit of a green run has {failures} failures'
    if code > 0 and failures == 0:
        yield 'JUnit of a red run has no failure'


def untrue(run: Run) -> Iterator[str]:
    """What a green run says that is not so."""
    count = rf'^PASSED: {CASES} passed, 0 failed, 0 skipped of {CASES} cases in \d+ s$'
    if not re.search(count, run.text, re.MULTILINE):
        yield f'green, and does not say that {CASES} cases passed: {_last_words(run.text)}'
    figures = re.findall(r'^Steady .* latency +(\S+) us .* pass *$', run.text, re.MULTILINE)
    if len(figures) != CASES or any(float(figure) != float(run.value) for figure in figures):
        yield f'green, with figures {figures} instead of {CASES} times {run.value}'


def _failures(junit: Path) -> int | None:
    """Failures and errors; None where there is no file."""
    if not junit.exists():
        return None
    return sum(element.tag in ('failure', 'error') for element in ET.parse(junit).getroot().iter())


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(('assay: ', 'failed: '))]
    return '; '.join(lines[-3:]) or '; '.join(text.splitlines()[-2:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--trials', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', choices=KINDS, action='append')
    parser.add_argument(
        '--beside', type=Path, metavar='CHECKOUT', help='runs at once go on in this one as well'
    )
    parser.add_argument('--words', type=Path, help='write what red runs said to this file')
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('stopped'))  # and what was started with it
    kinds = []
    for kind in chosen.only or KINDS:
        if lacking := missing(kind):
            print(f'{kind}: left out, {lacking}')
        else:
            kinds.append(kind)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    began = time.monotonic()
    for number in range(chosen.trials):
        kind = kinds[number % len(kinds)]
        trial = KINDS[kind](rng)
        if chosen.beside and kind == 'at once':
            trial.checkouts.append(chosen.beside)
        with tempfile.TemporaryDirectory(prefix='campaign-') as work:
            violations = list(perform(trial, Path(work)))
            if chosen.words:
                with chosen.words.open('a') as file:
                    for path in sorted(Path(work).glob('output-*')):
                        words = _last_words(path.read_text(errors='replace'))
                        file.write(f'{kind}: {trial.what}: {words}\n')
        runs = len(trial.arguments)
        counts[kind].update({'trials': 1, 'runs': runs, 'violations': len(violations)})
        counts[kind].update(trial.expected)
        for violation in violations:
            print(f'VIOLATION: trial {number}, {kind}: {trial.what}: {violation}', flush=True)
        if number % 10 == 9:
            done = sum(count['runs'] for count in counts.values())
            print(f'{number + 1} trials, {done} runs, {time.monotonic() - began:.0f} s', flush=True)
    columns = ('trials', 'runs', 'green', 'red', 'either', 'violations')
    print(f'\n| kind | {" | ".join(columns)} |\n|---|{"---:|" * len(columns)}')
    total: collections.Counter[str] = collections.Counter()
    for kind, count in counts.items():
        print(f'| {kind} | {" | ".join(str(count[column]) for column in columns)} |')
        total.update(count)
    print(f'| all | {" | ".join(str(total[column]) for column in columns)} |')
    sys.exit(1 if total['violations'] else 0)


if __name__ == '__main__':
    main()
