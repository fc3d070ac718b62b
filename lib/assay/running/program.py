"""Any MPI program, started as its user starts it, with the witness preloaded into its ranks.

Nothing else is changed: the launcher runs as it would, on the same terminal, and its exit code is
that of the command. The program's word in the launcher's line gets a shell before it, which adds
the witness to ``LD_PRELOAD`` and becomes the program: so the launcher and its helpers do not load
it, whichever launcher it is, and what a user preloads is kept.

Launches that a line without a launcher may start are in :mod:`assay.running.launches`.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from assay import AssayError, locks, paths, say
from assay.machine import candidates
from assay.machine.mpi import Mpi, examine_mpi, find_mpis
from assay.machine.provenance import checksum
from assay.mpis import strangers
from assay.tools import NoAnswerError, ask

LIBRARY = 'libassay_witness.so'

#: Seconds after which an import of mpi4py hangs.
IMPORT = 60.0

#: What users start MPI programs with; a suffix is of the MPI, as in ``mpirun.openmpi``.
LAUNCHERS = (
    *('mpirun', 'mpiexec', 'orterun', 'prterun', 'prun', 'srun', 'flux', 'aprun', 'jsrun'),
    *('ibrun', 'palsrun', 'mpirun_rsh'),
)
_LAUNCHER = re.compile(rf'({"|".join(LAUNCHERS)})([.-].*)?')

#: What starts a program in a container, in which the witness's file is not there.
CONTAINERS = {
    *('apptainer', 'singularity', 'shifter', 'shifterimg', 'podman', 'podman-hpc', 'docker'),
    *('sarus', 'enroot', 'ch-run', 'pcocc-rs', 'bwrap', 'udocker', 'nerdctl'),
}

#: What may stand before a launcher.
_BEFORE = {
    *('time', 'nohup', 'nice', 'ionice', 'chrt', 'env', 'stdbuf', 'timeout', 'setsid', 'sudo'),
    *('numactl', 'taskset', 'salloc', 'perf', 'strace', 'ltrace', 'catchsegv', 'unbuffer'),
    *('xvfb-run', 'prlimit', 'systemd-run'),
}

#: Options of launchers whose programs stand in a file.
_IN_A_FILE = {'--multi-prog', '-configfile', '--app', '-app'}

# Options with two values behind them, and with one; all others are taken for flags, and a word
# behind a flag for the program only if it is one.
_TWO_VALUES = '-genv -env -mca --mca --gmca -gmca --omca --prtemca --pmixmca'
_ONE_VALUE = """
    -np --np -wd -wdir --wdir -path --path -prefix --prefix -am --am -tune --tune -ppr
    -host --host -hosts --hosts -hostfile --hostfile -machinefile --machinefile
    -npernode --npernode -npersocket --npersocket -ppn --ppn -perhost -rankfile
    --rankfile -rf --map-by -map-by --bind-to -bind-to --rank-by -rank-by
    -genvlist -envlist -membind -iface -launcher -bootstrap -rmk -launcher-exec
    -bootstrap-exec -outfile-pattern -errfile-pattern -usize -timeout --timeout
    -output-filename --output-filename --output --stdin -stdin --display --dvm
    --cpu-set --cpu-list --pset --personality --runtime-options --add-hostfile
    --add-host --default-hostfile --launch-agent --report-uri
    --ntasks --nodes --cpus-per-task --partition --time --job-name --error --input
    --nodelist --exclude --account --constraint --chdir --distribution --relative
    --mpi --mem --mem-per-cpu --gres --gpus --qos --reservation --cluster --export
    --ntasks-per-node --cpu-bind --mem-bind --het-group --jobid --threads-per-core
    --setopt --setattr --env --env-remove --cores-per-task --gpus-per-task --queue
    --bank --requires --cores --gpus-per-node --tasks-per-node --rlimit --cwd
    --nrs --rs_per_host --cpu_per_rs --gpu_per_rs --tasks_per_rs --launch_distribution
"""
_TWO = frozenset(_TWO_VALUES.split())
_ONE = frozenset(_ONE_VALUE.split())
#: Those whose value is the folder that the program starts in.
_FOLDERS = {'-wd', '-wdir', '--wdir', '--chdir', '--cwd', '-D'}
#: Of one letter, which mean something else to each launcher; the last of those that have no entry.
_LETTERS = {
    'mpirun': {f'-{letter}' for letter in 'ncNHfxs'},
    'srun': {f'-{letter}' for letter in 'nNcptJoeiwxACDdmrTWBSqMLG'},
    'flux': {f'-{letter}' for letter in 'nNcgtoqB'},
    '': {f'-{letter}' for letter in 'nNdSLjemprcaglbo'},
}


@dataclass(frozen=True)
class Line:
    """A line that starts an MPI program.

    :param words: of the line.
    :param programs: the places of the programs' words, several of a line with ``:``; and the
        folder that the launcher is told to start each in.
    :param launcher: its word; empty where there is none.
    """

    words: list[str]
    programs: dict[int, Path]
    launcher: str = ''

    def preloading(self, libraries: Iterable[Path], variables: Mapping[str, str]) -> list[str]:
        """The words, with what preloads something before each program.

        :param libraries: that come behind the user's own ``LD_PRELOAD``.
        :param variables: that the programs get.
        """
        found: list[str] = []
        given = [':'.join(map(str, libraries)), *map('='.join, variables.items()), '--']
        for place, word in enumerate(self.words):
            if place in self.programs:
                found += ['/bin/sh', '-c', _SCRIPT, *given]
                # In the working folder, where launchers find none without a stroke.
                word = f'./{word}' if '/' not in word and not shutil.which(word) else word
            found.append(word)
        return found


_SCRIPT = (
    'export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0"; '
    'while [ "$1" != -- ]; do export "$1"; shift; done; shift; exec "$@"'
)


def for_report(report: Path) -> dict[str, str]:
    """The variables by which the witness leaves a report there."""
    return {'ASSAY_WITNESS': 'profile,matrix,silent', 'ASSAY_WITNESS_REPORT': str(report)}


def read_line(words: Sequence[str]) -> Line:
    """Find the programs in a line.

    :raises AssayError: if there is none, or the line does not name it.
    """
    names = [Path(word).name for word in words]
    launcher = next((n for n, name in enumerate(names) if _LAUNCHER.fullmatch(name)), None)
    if launcher is None or (launcher and names[0] not in _BEFORE):
        if not words or not _executable(words[0]):
            raise AssayError(f'there is no program {words[0] if words else ""!r} to run')
        return Line([*words], {_behind_env(words, 0): Path()})
    name = names[launcher]
    start = launcher + 1
    if name == 'flux':
        if words[start : start + 1] != ['run']:
            raise AssayError('of flux only `flux run` waits for its program: use that')
        start += 1
    programs = {}
    while start < len(words):
        place, folder = _program(name, words, start)
        programs[_behind_env(words, place, folder)] = folder
        # Each part of a line with `:` has a program of its own.
        behind = [n for n in range(place + 1, len(words)) if words[n] == ':']
        start = behind[0] + 1 if behind else len(words)
    if not programs:
        raise AssayError(f'{name} is given no program')
    return Line([*words], programs, words[launcher])


def _program(launcher: str, words: Sequence[str], start: int) -> tuple[int, Path]:
    """The place of the first word that is a program, and not a value of an option; its folder."""
    kind = 'mpirun' if launcher.startswith(('mpi', 'orte', 'pr')) else launcher
    one = _ONE | _TWO | _LETTERS.get(kind, _LETTERS[''])
    place, folder = start, Path()
    while place < len(words):
        word = words[place]
        option, joined, value = word.partition('=')
        if option in _IN_A_FILE:
            raise AssayError(
                f'{launcher} {option} takes its programs from a file: name the program in the line'
            )
        if option in _FOLDERS:
            folder = Path(value if joined else ''.join(words[place + 1 : place + 2]))
        if word == '--':
            place += 1
            break
        if not word.startswith('-') and _executable(word, folder):
            return place, folder
        if option in _TWO and not joined and '=' not in ''.join(words[place + 1 : place + 2]):
            place += 3
        elif option in one and not joined:
            place += 2
        else:  # a flag, or the value of an option that is not known here
            place += 1
    if place < len(words) and _executable(words[place], folder):
        return place, folder
    raise AssayError(
        f'no program was found among {" ".join(words[start:])!r}: write its path, and all options '
        f'of {launcher} before it'
    )


def _behind_env(words: Sequence[str], place: int, folder: Path = Path()) -> int:
    """The place of the program that ``env`` starts there: it may set ``LD_PRELOAD`` anew."""
    behind = place
    if Path(words[place]).name == 'env':
        behind += 1
        while behind < len(words) and (words[behind].startswith('-') or '=' in words[behind]):
            behind += 2 if words[behind] in ('-u', '--unset', '-C', '--chdir') else 1
    return behind if behind < len(words) and _executable(words[behind], folder) else place


def _executable(word: str, folder: Path = Path()) -> Path | None:
    """The file that a word starts, as launchers look for it: on PATH, and in the working folder.

    :param folder: that the launcher is told to start it in.
    """
    found = shutil.which(word) or shutil.which(str(folder.absolute() / word))
    return Path(found) if found else None


# What the program is ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """The program that a command line starts, as far as its files tell.

    :param file: the first program with an MPI; None if none was found.
    :param libraries: that it loads.
    :param mpi: the file of the MPI's library among them; None if they are of several MPIs.
    :param unseen: why the witness would see nothing of it, as a sentence.
    """

    file: Path | None = None
    libraries: tuple[Path, ...] = ()
    mpi: Path | None = None
    unseen: str | None = None


#: Libraries of an MPI by which programs are linked with it; others are parts or bindings of them.
_MPI_LIBRARY = re.compile(
    r'lib(mpi|mpich|pmpich|mpi_(abi|cray|gnu|intel|nvidia|amd|aocc|pgi|ibm|mt)(_?\w+)?)\.so[.\d]*'
)
#: A sanitizer's runtime, which has to be the first that is loaded.
_SANITIZER = re.compile(r'lib(asan|tsan|lsan|ubsan|clang_rt\.[at]san)[-\w]*\.so[.\d]*')


def find_program(line: Line) -> Program:
    """The program that a line starts; of several the first that is linked with an MPI."""
    parts = [_look_at_part(line, place) for place in line.programs]
    # A rank without the witness would let the others wait for it.
    for part in parts:
        if part.unseen:
            return part
    return next((part for part in parts if part.file), parts[0])


def _look_at_part(line: Line, place: int) -> Program:
    """The program that one part of a line starts, by the words from its program on."""
    its = itertools.takewhile(lambda word: word != ':', line.words[place:])
    for number, word in enumerate(its):
        # Without a launcher the others are arguments of a script or of a driver.
        is_started = bool(line.launcher) or number == 0
        if is_started and Path(word).name in CONTAINERS:
            name = Path(word).name
            return Program(unseen=f'{name} starts it in a container, where the witness is not')
        if not (file := _executable(word, line.programs[place])):
            continue
        status = file.stat()
        is_of_another = (status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()) or (
            status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
        )
        if is_started and is_of_another:
            return Program(unseen=f'{file} runs with the rights of another: nothing is preloaded')
        libraries, is_static = _libraries(file)
        if is_started and is_static:
            return Program(unseen=f'{file} is linked statically: nothing can be preloaded into it')
        if mpis := [one for one in libraries if _MPI_LIBRARY.fullmatch(one.name)]:
            is_one = len({_kind(one.resolve()) for one in mpis}) == 1
            return Program(file, tuple(libraries), mpis[0] if is_one else None)
    return Program()


def _libraries(file: Path) -> tuple[list[Path], bool]:
    """Libraries that a program loads (for Python, that its mpi4py loads); and whether it is static.

    :returns: none of what is no program.
    """
    begin = b''  # of a file that may be run and not read
    with suppress(OSError), file.open('rb') as opened:
        begin = opened.read(256)
    if begin.startswith(b'#!'):
        interpreter = begin[2:].split(b'\n')[0].split()
        words = [word.decode(errors='replace') for word in interpreter if b'=' not in word]
        # `#!/usr/bin/env python3`
        named = _executable(words[-1 if Path(words[0]).name == 'env' else 0]) if words else None
        return _libraries(named) if named and named.resolve() != file.resolve() else ([], False)
    if not begin.startswith(b'\x7fELF'):
        return [], False
    if re.fullmatch(r'python[\d.]*', file.name) and (loaded := _loaded_by_mpi4py(file)):
        return loaded, False
    return _loaded_by(file)


def _loaded_by(file: Path) -> tuple[list[Path], bool]:
    said = output_of('ldd', str(file))
    if re.search(r'not a dynamic executable|statically linked', said):
        return [], True
    return [Path(path) for path in re.findall(r'(?:=> |^\s*)(/.*) \(0x', said, re.M)], False


def output_of(*command: str, seconds: float | None = None) -> str:
    """The output of a command; empty if it does not exist, or takes longer."""
    try:
        done = ask(command, seconds, env=given_environment() | {'LC_ALL': 'C'})
    except NoAnswerError:
        return ''
    return done.stdout + done.stderr


def _loaded_by_mpi4py(python: Path) -> list[Path]:
    """The libraries in memory once its mpi4py is imported, without MPI_Init.

    Only that tells: the wheels of PyPI have a module for each MPI, and look for the MPI themselves.
    """
    script = (
        'import mpi4py; mpi4py.rc.initialize = False; import mpi4py.MPI; '
        'maps = open("/proc/self/maps"); '
        'print(*(line.split(maxsplit=5)[5] for line in maps if ".so" in line), sep="")'
    )
    loaded = output_of(str(python), '-c', script, seconds=IMPORT).splitlines()
    return [Path(path) for path in dict.fromkeys(loaded) if path.startswith('/')]


def other_tool(program: Program, files: Iterable[Path]) -> Path | None:
    """The first file that has MPI calls of its own, and is no MPI: a tool such as this one.

    :param files: that are preloaded.
    """
    wraps = re.compile(r' [TW] MPI_(Init|Send|Recv|Isend|Allreduce|Finalize|File_open)$', re.M)
    for file in filter(None, [*files, program.file, *program.libraries]):
        with suppress(OSError):
            if b'MPI_' not in file.read_bytes():  # which saves most questions
                continue
        said = output_of('nm', '-D', '--defined-only', str(file))
        if file == program.file:  # a tool may be linked into it
            said += output_of('nm', '--defined-only', str(file))
        if wraps.search(said) and ' PMPI_Init\n' not in said:
            return file
    return None


# The witness for it -------------------------------------------------------------------------------


#: MPIs whose handles are neither Open MPI's nor MPICH's.
_OWN_HANDLES = {'HPE MPT', 'IBM Platform MPI'}


@cache
def _kind(library: Path) -> str:
    """Whose handles an MPI library has: Open MPI's, those of the standard's ABI, or MPICH's; or the
    name of the MPI whose own they are.
    """
    if library.name.startswith('libmpi_abi'):
        return 'abi'
    with suppress(OSError):
        content = library.read_bytes()
        if b'ompi_mpi_comm_world' in content:
            return 'openmpi'
        if b'MPIR_Process' in content:
            return 'mpich'
        if (one := strangers.in_library(content)) and one.name in _OWN_HANDLES:
            return one.name
    return 'mpich'


def choose_mpi(program: Program, launcher: str) -> Mpi:
    """The MPI whose compiler builds the witness: the program's, or one with the same handles.

    Those that the program or its launcher is a part of are asked first: to ask all takes long.

    :param launcher: whose MPI is taken where the program does not tell its own.
    :raises AssayError: if there is no such compiler.
    """
    library = program.mpi.resolve() if program.mpi else None
    kind = _kind(library) if library else None
    if kind in _OWN_HANDLES:
        raise AssayError(
            f'the program runs on {library}, which is of {kind}: its handles are its own, and '
            'there is no witness for them'
        )
    found = shutil.which(launcher)
    started = Path(found).resolve() if found else None
    for mpis in (_near(library, started), find_mpis):
        usable = [mpi for mpi in mpis() if not mpi.fault and Path(mpi.cc).exists()]
        beside = [mpi for mpi in usable if started in mpi.launchers]
        if library is None:
            if beside:
                return beside[0]
            continue
        if kind == 'abi':
            alike = [*filter(None, map(_of_standard_abi, usable))]
        else:
            alike = [mpi for mpi in usable if ('mpich', 'openmpi')[mpi.family == 'openmpi'] == kind]
        # That of Debian has a folder of links, and its compiler leads to where it is.
        own = [mpi for mpi in alike if Path(mpi.cc).resolve().parent.parent in library.parents]
        if own:
            return next((mpi for mpi in own if mpi in beside), own[0])
    if library is None and usable:
        # A witness with other handles than the program's would end it.
        if len({mpi.family == 'openmpi' for mpi in usable}) > 1:
            raise AssayError(
                'neither the program nor its launcher tells which MPI it runs on, and there are '
                'several: load that one alone, or start it by the path of its own mpirun'
            )
        return usable[0]
    if library is None:
        raise AssayError('there is no mpicc to build the witness with: load the MPI of the program')
    if alike:
        return alike[0]
    raise AssayError(
        f'the program runs on {library}, and there is no mpicc of that MPI to build the witness '
        'with: load it, or install it'
    )


def _of_standard_abi(mpi: Mpi) -> Mpi | None:
    """The MPI with its compilers for the standard's ABI, if it has them."""
    cc, cxx = (Path(mpi.cc).with_name(name) for name in ('mpicc_abi', 'mpicxx_abi'))
    return replace(mpi, cc=str(cc), cxx=str(cxx)) if cc.exists() and cxx.exists() else None


def _near(*known_files: Path | None) -> Callable[[], Iterator[Mpi]]:
    """Asks the MPIs in whose folders a library or a launcher is; environment modules are not."""
    files = [one for one in known_files if one]
    prefixes = [
        folder for file in files for folder in [*file.parents][:4] if folder.name not in ('', 'usr')
    ]

    def ask() -> Iterator[Mpi]:
        known = [*candidates.wheels(), *candidates.debian()]
        named = [candidates.in_prefix(one) for one in prefixes if (one / 'bin/mpicc').exists()]
        above = {folder for file in files for folder in file.parents}
        near = [one for one in [*known, *named] if one.cc.resolve().parent.parent in above]
        yield from filter(None, map(examine_mpi, near))

    return ask


def build_witness(mpi: Mpi) -> Path:
    """The witness built with an MPI's compiler: once for each MPI and state of the sources.

    :raises AssayError: if it cannot be built; the message names the log.
    """
    facts = [checksum(paths.SOURCES), mpi.cc, mpi.version, mpi.description, mpi.compiler]
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    folder = paths.BUILDS / f'witness-{name}'
    library = folder / LIBRARY
    if library.exists():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssayError(f'{folder}: the witness cannot be built there: {error.strerror}') from None
    with locks.hold_lock(folder / '.lock'):
        if library.exists():
            return library
        say(f'building the witness with {mpi.cc} ...')
        cmake = str(paths.VENV_BIN / 'cmake')
        compilers = [f'-DCMAKE_C_COMPILER={mpi.cc}']
        compilers += [f'-DCMAKE_CXX_COMPILER={mpi.cxx}'] if mpi.cxx else []
        built = folder / 'build'
        log = folder / 'log'
        with log.open('w') as out:
            for command in (
                [cmake, '-S', str(paths.SOURCES), '-B', str(built), *compilers],
                [cmake, '--build', str(built), '--target', 'assay_witness', '--parallel', '4'],
            ):
                if subprocess.run(
                    command, stdout=out, stderr=out, env={**os.environ, **mpi.env}
                ).returncode:
                    raise AssayError(f'the witness could not be built with {mpi.cc}: see {log}')
        shutil.copy2(built / LIBRARY, folder / f'{LIBRARY}.new')
        (folder / f'{LIBRARY}.new').rename(library)
        shutil.rmtree(built)
    return library


# Running it ---------------------------------------------------------------------------------------

#: How the command keeps what it takes from the environment for itself, and the program gets back.
GIVEN = 'ASSAY_GIVEN_'


def given_environment() -> dict[str, str]:
    """The environment as the user's shell gave it to the command."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(GIVEN)}
    given = {
        name.removeprefix(GIVEN): value
        for name, value in os.environ.items()
        if name.startswith(GIVEN)
    }
    return own | given


def preloaded_libraries(words: Iterable[str]) -> Iterator[Path]:
    """The libraries that the user preloads, by a variable or an option of the launcher."""
    texts = [os.environ.get('LD_PRELOAD', '')]
    texts += [word.partition('LD_PRELOAD=')[2] for word in words if 'LD_PRELOAD=' in word]
    for name in re.split(r'[\s:,]+', ' '.join(texts)):
        if name:
            yield Path(name)


#: Signals that are for the program.
_PASSED_ON = {
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH),
}


def run_passing_signals(
    words: Sequence[str],
    variables: Mapping[str, str] | None = None,
    output: int | None = None,
) -> tuple[int, set[int]]:
    """Run a program in place of this one.

    Where a terminal is its input, it is in the process group of this process, and gets what the
    terminal sends, as the shell around does; what is sent to this process alone is passed on, and
    all signals if it makes itself a group (`timeout`). Ctrl-Z stops this process alone then.
    Elsewhere it has a group of its own, so that it gets each signal once: what is sent to the group
    that this process is in (by `timeout`, Slurm) is passed on.

    :param variables: that it gets beside those of the user.
    :param output: where its output goes if nobody is to see it: then it has no input either.
    :returns: its exit code, 128 and its number of a signal; and the signals that were passed on.
    :raises AssayError: if it cannot be started.
    """
    is_alone = output is not None or not os.isatty(0)
    passed = {one for one in _PASSED_ON if signal.getsignal(one) != signal.SIG_IGN}
    if not is_alone:
        passed.discard(signal.SIGTSTP)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else nobody hears how it ended
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*passed, signal.SIGCHLD})

    def begin() -> None:
        if is_alone:
            os.setpgid(0, 0)
        # The kernel sends SIGTERM when the parent has been killed: PR_SET_PDEATHSIG.
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        try:
            process = subprocess.Popen(
                words,
                env={**given_environment(), **(variables or {})},
                stdin=None if output is None else subprocess.DEVNULL,
                stdout=output,
                preexec_fn=begin,
            )
        except OSError as error:
            raise AssayError(f'{words[0]}: {error.strerror}') from None
        code, got = _wait_for(process.pid, is_alone, passed)
        process.returncode = code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return code, got


def _wait_for(pid: int, is_alone: bool, passed: set[signal.Signals]) -> tuple[int, set[int]]:
    """Wait for a program; one that is alone in its group is stopped and continued with us."""
    got: set[int] = set()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG | (os.WUNTRACED if is_alone else 0))
        if ended and os.WIFSTOPPED(status):
            # Who stopped it without us continues it without us.
            if signal.SIGTSTP in got:
                got.discard(signal.SIGTSTP)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.killpg(pid, signal.SIGCONT)
        elif ended:
            code = os.waitstatus_to_exitcode(status)
            return (128 - code if code < 0 else code), got
        told = signal.sigwaitinfo({*passed, signal.SIGCHLD})
        if told.si_signo == signal.SIGCHLD:
            continue
        with suppress(OSError):  # it has ended, or is another user's
            # A positive code is the kernel's: the terminal has told our whole group.
            if told.si_code <= 0 or os.getpgid(pid) != os.getpgrp():
                got.add(told.si_signo)
                (os.killpg if is_alone else os.kill)(pid, told.si_signo)


def to_preload(line: Line, program: Program) -> list[Path]:
    """The witness for a line's programs, behind what has to be the first.

    :raises AssayError: if there is none for them.
    """
    if tool := other_tool(program, preloaded_libraries(line.words)):
        raise AssayError(
            f'{tool} wraps MPI calls too, and of two such tools each would miss calls or count '
            'those of the other: run with one of them'
        )
    sanitizers = [one for one in program.libraries if _SANITIZER.fullmatch(one.name)]
    return [*sanitizers, build_witness(choose_mpi(program, line.launcher))]
