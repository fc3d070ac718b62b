"""MPIs of environment modules."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay import AssayError, say
from assay.machine.candidates import HOMES, WRAPPERS, Candidate, in_prefix, on_path_if_broken
from assay.machine.candidates import as_name as _as_name
from assay.mpis import FAMILIES, strangers

if TYPE_CHECKING:
    from reframe.core.modules import ModulesSystem


#: Where else MPIs are, with commas between: folders, or modules with blanks between.
PLACES = 'ASSAY_MPI'

#: Modules that are loaded to see whether they bring an MPI.
MOST = 24


def name_places(places: Iterable[str]) -> None:
    """Name places for this process, and for those that it starts.

    :raises AssayError: if one has a comma.
    """
    places = [*places]
    if bad := [place for place in places if ',' in place]:
        raise AssayError(f'--mpi {bad[0]}: give the option once for each, and no commas')
    os.environ[PLACES] = ','.join([*filter(None, [os.environ.get(PLACES)]), *places])


def modules_tool() -> Literal['lmod', 'envmod', 'nomod']:
    """The modules system of this machine, as ReFrame calls it."""
    if 'LMOD_CMD' in os.environ:
        return 'lmod'
    # A command alone says little: in a shell that nobody set up for modules, such as cron's, it has
    # no folders to look into, and fails.
    if 'MODULESHOME' in os.environ or ('MODULEPATH' in os.environ and shutil.which('modulecmd')):
        return 'envmod'
    return 'nomod'


def in_modules() -> Iterator[Candidate]:
    """The MPIs of modules that are called like one.

    One that is only likely to bring an MPI counts if it brings one that no other does.

    :raises AssayError: if the tool for environment modules does not work.
    """
    if (kind := modules_tool()) == 'nomod':
        return
    from reframe.core.exceptions import ReframeError
    from reframe.core.modules import ModulesSystem

    try:
        tool = ModulesSystem.create(kind)
        names = _names_in(map(str, tool.available_modules()))
        needed = _seen_later(tool) if not any(map(is_surely_an_mpi, names)) else {}
    except ReframeError as error:
        raise AssayError(f'the environment modules of this machine do not work: {error}') from None
    brought: set[Path] = set()
    for name in _asked([*filter(is_called_like_an_mpi, names), *needed]):
        candidate = _brought_by([*needed.get(name, []), name], names, tool)
        if candidate is None:
            continue
        if not is_surely_an_mpi(name) and (
            candidate.unloadable or candidate.cc.resolve() in brought
        ):
            continue
        brought.add(candidate.cc.resolve())
        yield candidate


def in_places() -> Iterator[Candidate]:
    """The MPIs of the places that somebody named (:data:`PLACES`).

    :raises AssayError: as :func:`in_place`.
    """
    for place in filter(None, os.environ.get(PLACES, '').split(',')):
        try:
            yield in_place(place)
        except AssayError as error:
            raise AssayError(f'--mpi {place}: {error}') from None


def in_place(place: str) -> Candidate:
    """The MPI of a folder, whose name begins with a slash, or of modules, with blanks between.

    :raises AssayError: if there is no MPI.
    """
    if place.startswith('/'):
        candidate = in_prefix(Path(place))
        if not os.path.lexists(candidate.cc):
            raise AssayError(f'there is no mpicc in {candidate.bindir}')
        return candidate
    if (kind := modules_tool()) == 'nomod':
        raise AssayError(
            'it is no module, since this shell has no environment modules, and no folder, which '
            'begins with a slash'
        )
    from reframe.core.exceptions import ReframeError
    from reframe.core.modules import ModulesSystem

    try:
        found = _brought_by(place.split(), (), ModulesSystem.create(kind))
    except ReframeError as error:
        raise AssayError(f'the environment modules of this machine do not work: {error}') from None
    if found is None or found.unloadable:
        why = found.unloadable if found else 'it brings no other mpicc than is here already'
        raise AssayError(f'as a module: {why}')
    # The same MPI behind two compilers is two.
    return replace(found, source='named', suffix=f'module-{_as_name(" ".join(place.split()))}')


def _names_in(lines: Iterable[str]) -> list[str]:
    """Names of a list, each once, without the marks in brackets that may stand behind them."""
    return list(dict.fromkeys(map(_without_marks, lines)))


def _without_marks(name: str) -> str:
    return re.split('[(<]', name)[0].strip()


def _asked(names: Sequence[str], of_each: int | None = None) -> list[str]:
    """The modules to ask: the surest and newest first, and something of each name.

    Each takes a fraction of a second, in every command. Those that could not be used anyway come
    after those that can.

    :param of_each: name, whatever its version, at most so many; hidden ones, that need a compiler.
    """
    by_stem: dict[str, list[str]] = {}
    for name in sorted({*names}, key=_version, reverse=True):
        by_stem.setdefault(re.split(r'[/-]\d', name)[0], []).append(name)
    ranks = {name: rank for same in by_stem.values() for rank, name in enumerate(same)}

    def order(name: str) -> tuple[bool, bool, int]:
        return not is_surely_an_mpi(name), strangers.of_module(name) is not None, ranks[name]

    by_rank = sorted(names, key=order)
    chosen = [name for name in by_rank if ranks[name] < (of_each or MOST)][:MOST]
    if left := [name for name in by_rank if name not in chosen]:
        place = f"'COMPILER {left[0]}'" if of_each else left[0]
        say(
            f'{len(by_rank)} modules are called like an MPI, and the newest {len(chosen)} asked. '
            f'To use another one: --mpi {place}'
        )
    return sorted(chosen, key=lambda name: (not is_surely_an_mpi(name), names.index(name)))


def _version(name: str) -> list[tuple[int, str]]:
    """By which names of modules are sorted, as people do it."""
    return [(int(part or 0), text) for text, part in re.findall(r'(\D*)(\d*)', name)]


def _seen_later(tool: ModulesSystem) -> dict[str, list[str]]:
    """Modules called like an MPI that Lmod shows once others are loaded: what those are.

    The newest of each name: to ask about one takes longer than to load it. None where Lmod fails,
    as nothing says that there are any.
    """
    from reframe.core.exceptions import ReframeError

    found: dict[str, list[str]] = {}
    if tool.name != 'lmod':
        return found
    with contextlib.suppress(ReframeError):
        names = _names_in(tool.execute('-t', 'spider').splitlines())
        asked = [name for name in names if '/' in name and is_called_like_an_mpi(name)]
        for name in _asked(asked, of_each=1):
            said = tool.execute('spider', name)
            # Of lines with what has to be loaded before it any one is enough.
            if told := re.search(r'before the .* available to load\.\s*\n\s*(\S.*)', said):
                found[name] = re.split(r'[\s,]+', told[1].strip())
    return found


def _load(name: str, tool: ModulesSystem) -> None:
    """:raises ReframeError: if a module cannot be loaded, whatever the reason."""
    from reframe.core.exceptions import EnvironError, ReframeError

    try:
        tool.load_module(name)
    except ReframeError:
        raise
    # The tool's answer is run as Python, and what the module prints is in it.
    except Exception as error:
        raise EnvironError(f'what it prints is no answer to ReFrame: {error}') from None


def _brought_by(
    modules: Sequence[str], names: Collection[str], tool: ModulesSystem
) -> Candidate | None:
    """The MPI of a module, if it brings one, or should.

    :param modules: its own is the last, and loaded after the others.
    :param names: of all modules.
    """
    from reframe.core.exceptions import ReframeError

    *others, name = modules
    before = on_path_if_broken(*WRAPPERS)
    fault = None
    with _environment_restored():
        try:
            for one in modules:
                _load(one, tool)
        except ReframeError as error:
            fault = _said_by_tool(str(error))
        loaded = dict(os.environ)
    compiler = _wrapper_of(loaded)
    if fault is not None:
        first = _needed_first(fault, names)
        if first and first not in modules:
            return _brought_by([*others, first, name], names, tool)
        # Behind what nobody named it is not expected to work in this shell.
        is_excluded = re.search('because these module|due to a conflict', fault)
        if is_excluded or (others and names):
            return None
        fault = f'it cannot be loaded: {fault}'
    elif compiler is None or (compiler == before and _folders(loaded) - _folders(os.environ)):
        fault = 'once it is loaded there is no mpicc in what it adds to PATH'
    elif compiler == before:
        if name in map(str, tool.loaded_modules()) or not strangers.of_module(name):
            return None  # it is loaded already, and found on PATH
        fault = 'it adds nothing to PATH'
    if not fault and not others:
        others = _needed_by(name, compiler, tool)
    return Candidate(
        None,
        'module',
        compiler.parent if compiler and not fault else Path(),
        modules=(*others, name),
        suffix=f'module-{_as_name(name)}',
        loaded=loaded,
        unloadable=fault,
    )


def _wrapper_of(loaded: Mapping[str, str]) -> Path | None:
    """The C wrapper of an MPI where modules are loaded: on PATH, or in the folder that they name.

    :param loaded: the environment there; that of this process is without them.
    """
    on_path = on_path_if_broken(*WRAPPERS, path=loaded.get('PATH'))
    if on_path == on_path_if_broken(*WRAPPERS):
        for name in HOMES:
            file = Path(loaded.get(name, ''), 'bin', 'mpicc')
            if loaded.get(name) != os.environ.get(name) and os.path.lexists(file):
                return file
    return on_path


def _needed_by(name: str, compiler: Path | None, tool: ModulesSystem) -> list[str]:
    """The modules that are loaded here, if one does not bring the same without them.

    In a hierarchy an MPI's module is seen only where the module of its compiler is loaded, which
    another shell has not; without it there may be another of the same name.

    :param compiler: the C wrapper that it brings here.
    """
    from reframe.core.exceptions import ReframeError

    loaded: list[str] = tool.loaded_modules()
    if not loaded:
        return []
    with _environment_restored():
        try:
            tool.unload_all()
            _load(name, tool)
        except ReframeError:
            return loaded
        alone = dict(os.environ)
    return [] if _wrapper_of(alone) == compiler else loaded


def environment_of(names: Iterable[str], kind: str) -> dict[str, str]:
    """The environment in which modules are loaded.

    :param kind: of the modules system, as ReFrame calls it.
    :raises AssayError: if one cannot be loaded.
    """
    from reframe.core.exceptions import ReframeError
    from reframe.core.modules import ModulesSystem

    with _environment_restored():
        for name in names:
            try:
                _load(name, ModulesSystem.create(kind))
            except ReframeError as error:
                said = _said_by_tool(str(error))
                raise AssayError(f'module {name} cannot be loaded: {said}') from None
        return dict(os.environ)


def _folders(environment: Mapping[str, str]) -> set[str]:
    return set(environment.get('PATH', '').split(':'))


#: Names of MPIs, digits behind them, as in ``openmpi4``, and what an MPI was built for or with.
_NAMES = '|'.join(
    [
        *(one.modules for one in FAMILIES.values()),
        *(one.modules for one in strangers.KNOWN.values()),
    ]
)
_COMPILER = r'(?:gcc|gnu|intel|oneapi|nvhpc|pgi|aocc|llvm|clang|cce|cray)'
_NAMED = rf'(?:(?:{_COMPILER}[\d.]*|mpi)[-_.])?(?:{_NAMES})\d*'
_SURE = re.compile(
    rf'{_NAMED}(?:[-_.+@](?:v?\d|{_COMPILER}|x86_64|aarch64|ppc64|s390x|riscv64|i[3-6]86|icc'
    r'|nvidia|cuda|rocm|ucx|ofi|ompi|mt).*)?',
    re.IGNORECASE,
)
_LIKELY = re.compile(
    rf'(?:stack-|nci-|{_COMPILER}-)?{_NAMED}'
    r'(?:[-_.+@](?!(?:tool|doc|man|test|example|benchmark)s?\b).*)?',
    re.IGNORECASE,
)

#: What else brings an MPI: toolchains of EasyBuild, and NVIDIA's HPC SDK.
_BUNDLE = re.compile(
    r'(?:.*/)?(?:'
    r'(?:foss|gompi|iimpi|iompi|intel|gmpich|gmvapich2|gpsmpi|ipsmpi|npsmpi|nvompi)(?:c|cuda)?'
    r'/20\d\d[ab]\b.*|nvhpc(?:[-_](?:sdk|openmpi|hpcx).*)?(?:/.*)?)',
    re.IGNORECASE,
)

#: What may stand before an MPI's name in that of its module: a group, a compiler, a version.
_GROUP = (
    r'(?:mpis?|libs?|librar(?:y|ies)|compilers?|parallel|devel|dev|communication|core|base|system'
    rf'|tools|{_COMPILER})?[-_.]?v?[\d.]*'
)
_GROUPS = re.compile(rf'(?:{_GROUP}/)*', re.IGNORECASE)

#: A module called ``mpi``, as Intel's, with a version or a vendor behind it.
_MPI = re.compile(
    rf'(?:{_GROUP}/)*mpi(?:[-_./](?:v?\d|latest|default|{_COMPILER}).*)?', re.IGNORECASE
)


def is_called_like_an_mpi(module: str) -> bool:
    """Whether its name is that of an MPI, or of something that brings one: then it is asked."""
    name = _without_marks(module)
    if name.endswith('/'):
        return False
    is_mpi = any(map(_LIKELY.fullmatch, name.split('/')))
    return is_mpi or bool(_MPI.fullmatch(name) or _BUNDLE.fullmatch(name))


def is_surely_an_mpi(module: str) -> bool:
    """Whether a module of that name is broken if it brings no MPI."""
    parts = _without_marks(module).split('/')
    return any(
        _SURE.fullmatch(part) and _GROUPS.fullmatch(''.join(f'{one}/' for one in parts[:number]))
        for number, part in enumerate(parts)
    )


def _said_by_tool(error: str) -> str:
    """The output of the modules tool in one line, taken from ReFrame's message."""
    _, _, said = error.rpartition('--- stdout ---')
    said = re.sub('--- stderr ---', '', said or error)
    said = re.split(r'\n\s*(?:While processing|while executing|\(file )', said)[0]
    said = re.sub(r'^\s*(Loading \S+|Lmod has detected the following error:)', '', said)
    return ' '.join(said.split())


def _needed_first(fault: str, names: Collection[str]) -> str | None:
    """The module that has to be loaded before, if there is one of that name."""
    needed = re.search(r'must be loaded(?: first)?: (.*)|without these.* loaded: (.*)', fault)
    if needed is None:
        return None
    there = {name.partition('/')[0] for name in names} | {*names}
    return next((one for one in re.split('[ ,]+', needed[1] or needed[2]) if one in there), None)


@contextlib.contextmanager
def _environment_restored() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
