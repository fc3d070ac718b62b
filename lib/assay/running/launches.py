"""The launches of a line that is run with the witness: its own, or those that it starts.

A line without a launcher may start some: a job script, make, a driver. Into that a small library is
preloaded (sources/witness/launch.c), by which each launcher that it starts comes here first.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from assay import AssayError, locks, paths
from assay.running.program import (
    CONTAINERS,
    LAUNCHERS,
    Program,
    find_program,
    for_report,
    output_of,
    read_line,
    to_preload,
)
from assay.witness.report import Report
from assay.witness.sites import find_lines

#: Bytes of a disk below which a report may not fit.
_LEAST_ROOM = 1 << 14


@contextmanager
def reserve_report(report: Path) -> Iterator[Path]:
    """A report that no other command writes meanwhile: the file of its lines is locked.

    :returns: the one asked for, or with ``.run-2`` in its name, and so on.
    :raises AssayError: if another file is there, or the folder cannot be written.
    """
    with ExitStack() as stack:
        for number in itertools.count(1):
            own = _numbered(report, 'run', number)
            _assert_replaceable(own)
            try:
                stack.enter_context(locks.hold_lock(lines_of(own), wait=False))
            except locks.LockedError:
                continue
            except AssayError:
                pass  # a full disk, or a file system without locks
            break
        try:
            yield own
        finally:
            with suppress(OSError):  # its folder may be gone
                if not own.exists():
                    lines_of(own).unlink(missing_ok=True)


def prepare_line(
    words: Sequence[str], asked: Path, folder: Path, stack: ExitStack
) -> tuple[list[str], str | None]:
    """Change a command line so that the witness sees its ranks.

    :param asked: where the witness is to leave its report.
    :param folder: an empty one, for what is known of the launches of a line without a launcher.
    :param stack: keeps the report reserved; of a program that will not be seen none is.
    :returns: the words; and why it will see nothing, if that is known: then they are those given.
    :raises AssayError: if the line cannot be run with the witness.
    """
    if not words or not shutil.which(words[0]):
        raise AssayError(f'there is no program {words[0] if words else ""!r} to run')
    if any(re.match(r'--container(-image|-name)?(=|$)', word) for word in words):
        return [*words], 'it is started in a container, where the witness is not'
    line = read_line(words)
    program = find_program(line)
    if program.unseen:
        return line.words, program.unseen
    report = stack.enter_context(reserve_report(asked))
    remove_earlier(report)
    libraries: list[Path] = []
    variables: dict[str, str] = {}
    if line.launcher or program.mpi:
        libraries = to_preload(line, program)
        variables = for_report(report)
        claim(folder, report, line.words, program)
    if not line.launcher:
        try:
            libraries.append(build_launch_library())
            variables |= _for_launchers(report, folder)
        except AssayError:
            if not libraries:  # else what the program itself does is seen
                raise
    return line.preloading(libraries, variables), None


def _for_launchers(report: Path, folder: Path) -> dict[str, str]:
    """Variables that the library of launches reads: see sources/witness/launch.c."""
    command = folder / 'launch'
    words = [sys.executable, '-I', '-m', 'assay.running.launched', str(report), str(folder)]
    command.write_text(f'exec {shlex.join(words)} "$@"\n')
    return {
        'ASSAY_WITNESS_LAUNCH': str(command),
        'ASSAY_WITNESS_LAUNCHERS': ':'.join(LAUNCHERS),
        'ASSAY_WITNESS_CONTAINERS': ':'.join(sorted(CONTAINERS)),
        # A program with this sanitizer would not begin behind another library.
        'ASAN_OPTIONS': ':'.join(
            filter(None, [os.environ.get('ASAN_OPTIONS'), 'verify_asan_link_order=0'])
        ),
    }


def build_launch_library() -> Path:
    """The library that is preloaded into what may start launchers.

    :raises AssayError: if it cannot be built.
    """
    source = paths.SOURCES / 'witness/launch.c'
    name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    library = paths.BUILDS / f'assay-launch-{name}.so'
    compiler = next(filter(None, map(shutil.which, ('gcc', 'clang', 'icx', 'cc'))), None)
    if not library.exists():
        if not compiler:
            raise AssayError('there is no C compiler, to see what the program starts')
        library.parent.mkdir(parents=True, exist_ok=True)
        new = library.with_name(f'{library.name}.{os.getpid()}')
        said = output_of(compiler, '-shared', '-fPIC', '-O1', str(source), '-o', str(new))
        if not new.exists():
            raise AssayError(f'{source} could not be built: {said}')
        new.rename(library)
    return library


def launch(words: list[str], report: Path, folder: Path) -> list[str]:
    """The words that a launcher started by the program is to run; as given if that fails.

    :param report: of the first launch; that of the second has ``.launch-2`` in its name, and so on.
    :param folder: where launches are noted.
    """
    own = f'{paths.BUILDS}/'
    kept = [one for one in os.environ.get('LD_PRELOAD', '').split(':') if not one.startswith(own)]
    ours = ('ASSAY_WITNESS_LAUNCH', 'ASSAY_WITNESS_CONTAINERS')
    for name in ['LD_PRELOAD', *(name for name in os.environ if name.startswith(ours))]:
        os.environ.pop(name, None)
    if any(kept):
        os.environ['LD_PRELOAD'] = ':'.join(kept)
    if all(word.startswith('-') for word in words[1:]):  # such as --version
        return words
    try:
        line = read_line(words)
        program = find_program(line)
        if program.unseen:
            raise AssayError(program.unseen)
        libraries = to_preload(line, program)
        own_report = claim(folder, report, words, program)
        remove_earlier(own_report)
        if own_report != report:  # which is the one that is reserved
            lines_of(own_report).unlink(missing_ok=True)
        return line.preloading(libraries, for_report(own_report))
    except Exception as error:  # the user's script must not fail because of us
        problems = folder / 'problems'
        with suppress(OSError), problems.open('a', errors='backslashreplace') as file:
            file.write(f'{shlex.join(words)}: {error}\n')
        return words


def claim(folder: Path, report: Path, words: Sequence[str], program: Program) -> Path:
    """The report of another launch: each has its own, also of those at one time."""
    for number in itertools.count(1):
        own = _numbered(report, 'launch', number)
        with suppress(FileExistsError), (folder / f'{number}').open('x') as file:
            file.write(json.dumps([str(own), shlex.join(words), bool(program.file)]))
            return own
    raise AssertionError


def _numbered(report: Path, word: str, number: int) -> Path:
    return report.with_stem(f'{report.stem}.{word}-{number}') if number > 1 else report


def launches(folder: Path) -> list[tuple[Path, str, bool]]:
    """The launches in order: the report, the words, and whether a program is linked with an MPI."""
    files = sorted(folder.glob('[0-9]*'), key=lambda file: int(file.name))
    # Of one that goes on in the background it may still be empty.
    found = [json.loads(text) for file in files if (text := file.read_text())]
    return [(Path(report), words, is_linked) for report, words, is_linked in found]


def why_one_rank(words: str, ranks: int) -> str | None:
    """Why a report has one rank of many, as a sentence; None if one is right.

    :param words: of the launch.
    """
    try:
        line = read_line(shlex.split(words))
    except (AssayError, OSError):  # a program, or the folder, that a script has removed since
        return None
    options = line.words[: min(line.programs)]
    asked = 0
    for word, after in pairwise([*options, '']):
        found = re.fullmatch(r'(-np?|--np?|--ntasks)(?:=?(\d+))?', word)
        if found and line.launcher and (count := found[2] or after).isdigit():
            asked = int(count)
    if not asked > ranks == 1:
        return None
    return (
        f'{Path(line.launcher).name} was asked for {asked} ranks, and each ran alone, as rank 0 of '
        '1: launcher and program are not of one MPI, or Slurm does not start this one '
        '(`srun --mpi=list` shows which it can)'
    )


def why_nothing(report: Path, is_linked: bool) -> str:
    """Why a launch most likely left no report, as a sentence without its end.

    :param is_linked: whether a program of it is linked with an MPI.
    """
    try:
        if shutil.disk_usage(report.parent).free < _LEAST_ROOM:
            return f'the disk of {report.parent} is full'
    except OSError as error:  # the program may have removed it
        return f'{report.parent}: {error.strerror}'
    if not is_linked:
        return (
            'no program of the line is linked with an MPI (`ldd` shows that): either its ranks ran '
            'alone, or a script or interpreter starts or loads what is: then no rank came out of '
            'MPI_Init, LD_PRELOAD was set anew, or MPI is called where it cannot be seen '
            '(docs/witness.md, "What it cannot see")'
        )
    return (
        'no rank came out of MPI_Init, or the program calls MPI where it cannot be seen '
        '(docs/witness.md, "What it cannot see")'
    )


def problems_of_launches(folder: Path) -> list[str]:
    """Why the witness was not started with some of them, a sentence each."""
    file = folder / 'problems'
    return [*dict.fromkeys(file.read_text().splitlines())] if file.exists() else []


def lines_of(report: Path) -> Path:
    """The file of a report's lines, beside it."""
    return report.with_name(f'{report.name}.lines')


def remove_earlier(report: Path) -> None:
    """Remove an earlier report and what is beside it.

    :raises AssayError: if another file is there, or the folder cannot be written.
    """
    _assert_replaceable(report)
    # First, since lines without a report are another's; the file may be locked by this name.
    with suppress(FileNotFoundError):
        os.truncate(lines_of(report), 0)
    for name in ('', '.ranks', '.finalized'):
        report.with_name(report.name + name).unlink(missing_ok=True)


def _assert_replaceable(report: Path) -> None:
    """:raises AssayError: if another file is there, or the folder cannot be written."""
    if report.exists():
        try:
            is_ours = json.loads(report.read_bytes()).keys() >= {'schema', 'witness'}
        except (OSError, ValueError, AttributeError):
            is_ours = False
        if not is_ours:
            raise AssayError(f'{report} is not a report of the witness: name another file by -o')
    if not os.access(report.parent, os.W_OK | os.X_OK):
        raise AssayError(f'{report.parent}: the report cannot be written there: name a file by -o')
    lines = lines_of(report)
    if not report.exists() and lines.exists() and lines.stat().st_size:
        raise AssayError(f'{lines} is there without a report: name another file by -o')


def keep_lines(path: Path, report: Report) -> tuple[Report, list[str]]:
    """Look up the lines of a report's sites, and leave them beside it.

    :returns: the report with them, and what could not be looked up.
    """
    lines, problems = find_lines(report)
    beside = lines_of(path)
    try:
        beside.write_text(json.dumps(lines))
    except OSError as error:
        problems.append(f'{beside}: cannot be written: {error.strerror}')
    return report.model_copy(update={'lines': lines}), problems
