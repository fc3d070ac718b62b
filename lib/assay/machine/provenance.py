"""The sources, compiler and flags of a program: the same facts for each way to build. And Git."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shlex
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from archspec.cpu import host

from assay import AssayError, paths
from assay.tools import NoAnswerError, ask, output_of_tool


@dataclass(frozen=True)
class Provenance:
    """The facts that distinguish two builds; empty if unknown."""

    by: str
    """``spack``, ``cmake``, ``binary`` for a program that the user named, or ``repository`` for one
    that was built of a commit."""
    spec: str = ''
    """Spack's spec, the program's path, or the commands that built a commit."""
    hash: str = ''
    """Spack's full hash; otherwise a checksum of all other facts and the sources or program."""
    compiler: str = ''
    flags: str = ''
    """The flags that count, from the commands that compiled it."""
    mpi: str = ''
    blas: str = ''
    target: str = ''
    """The processor that it was built for."""
    commit: str = ''
    """The commit of the repository that it was built from."""


def of_binary(program: Path) -> Provenance:
    """The provenance of a program that somebody else built."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:32]
    return Provenance('binary', spec=str(program), hash=digest)


def of_cmake(folder: Path, mpi: str, sources: str) -> Provenance:
    """The facts of a build, from what CMake keeps in its folder."""
    cache = (folder / 'CMakeCache.txt').read_text()
    entries = dict(re.findall(r'^(\w+):\w+=(.*)$', cache, re.MULTILINE))
    compiler = next(folder.glob('CMakeFiles/*/CMakeCXXCompiler.cmake')).read_text()
    said = dict(re.findall(r'^set\((\w+) "(.*)"\)$', compiler, re.MULTILINE))
    # GNU is gcc, as Spack says it.
    name = said['CMAKE_CXX_COMPILER_ID'].lower().replace('gnu', 'gcc')
    flags = flags_by_language(folder / 'compile_commands.json')
    target = re.search(r'-march=(\S+)', flags['C++'])
    facts = Provenance(
        by='cmake',
        compiler=f'{name}@{said["CMAKE_CXX_COMPILER_VERSION"]}',
        flags='; '.join(f'{language}: {shared}' for language, shared in flags.items()),
        mpi=mpi,
        blas=entries.get('ASSAY_BLAS', ''),
        target='' if target is None else target[1].replace('native', host().name),
    )
    text = json.dumps([asdict(facts), sources])
    return replace(facts, hash=hashlib.sha256(text.encode()).hexdigest()[:32])


def flags_by_language(commands: Path) -> dict[str, str]:
    """The flags that count for C and for C++, from a ``compile_commands.json`` of CMake.

    :raises OSError: if it cannot be read.
    """
    by_language: dict[str, list[str]] = defaultdict(list)
    for entry in json.loads(commands.read_text()):
        by_language['C' if entry['file'].endswith('.c') else 'C++'].append(entry['command'])
    return {language: shared_flags(lines) for language, lines in sorted(by_language.items())}


_LANGUAGES = ('C', 'C++')


def read_flags(told: str) -> dict[str, str]:
    """Flags by language, as a build tells them; for C and for C++ if no language is named."""
    if not re.match(r'C(\+\+)?:', told):
        return dict.fromkeys(_LANGUAGES, told)
    parts = (part.partition(':') for part in re.split(r';\s*(?=C(?:\+\+)?:)', told))
    return {language: flags.strip() for language, _, flags in parts}


def write_flags(flags: Mapping[str, str]) -> str:
    """Flags by language in the same form; empty for none."""
    some = {language: flags[language] for language in _LANGUAGES if flags.get(language)}
    if len(some) == len(_LANGUAGES) and len({*some.values()}) == 1:
        return some['C']
    return '; '.join(f'{language}: {told}' for language, told in some.items())


def shared_flags(commands: Iterable[str]) -> str:
    """The common flags of several compilations: of each kind the one that most of them obey.

    Warnings, folders, files and the language's standard, which our sources choose, are left out.
    """
    commands = list(commands)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for command in commands:
        for kind, flag in _effective_flags(command).items():
            kinds[kind][flag] += 1
    return ' '.join(
        seen.most_common(1)[0][0] for seen in kinds.values() if seen.total() == len(commands)
    )


def _effective_flags(command: str) -> dict[str, str]:
    """A compilation's flags by their kind: the compiler obeys the last of a kind."""
    found: dict[str, str] = {}
    words = iter(shlex.split(command)[1:])
    for word in words:
        if word in ('-o', '-c', '-include', '-iquote', '-isystem', '-I', '-MF', '-MT', '-MQ'):
            next(words, None)
        elif word.startswith('-') and not word.startswith(('-W', '-I', '-M', '-std=')):
            found[flag_kind(word)] = word
    return found


def flag_kind(flag: str) -> str:
    """The kind of a compiler flag; of several flags of one kind the compiler obeys the last."""
    kind = '-O' if flag.startswith('-O') else flag.partition('=')[0]
    # `-fno-stack-protector` alone takes back -strong and -all.
    kind = re.sub('^(-f(?:no-)?stack-protector)-.*', r'\1', kind)
    return re.sub('^-U', '-D', re.sub('^-([fm])no-', r'-\1', kind))


@functools.cache
def suite_commit() -> str:
    """The commit of this checkout, ending in -dirty if its files differ; empty outside of Git."""
    # Of a repository that is named Git does not ask who owns it; one that it finds by itself it
    # refuses everybody but the owner.
    where = [f'--git-dir={paths.ROOT / ".git"}', f'--work-tree={paths.ROOT}']
    command = ['git', *where, 'describe', '--always', '--abbrev=40', '--exclude=*', '--dirty']
    return output_of_tool(command, cwd=paths.ROOT).strip()


# The suite's sources ------------------------------------------------------------------------------


_spec = spec_from_file_location('tree', paths.RECIPES / 'packages' / 'assay' / 'tree.py')
assert _spec and _spec.loader, 'a path that ends in .py always has a loader'
tree = module_from_spec(_spec)
_spec.loader.exec_module(tree)

checksum = tree.checksum


def git(needed_by: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Git to its end, whatever that is; its output is captured.

    :param needed_by: the command of the suite that needs it.
    :raises AssayError: if there is no Git, or it cannot be started.
    """
    try:
        return ask(['git', *arguments])
    except NoAnswerError as error:
        raise AssayError(f'{error}: `{needed_by}` needs it.') from None
