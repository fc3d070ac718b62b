"""The documents: every page is listed, every link leads somewhere, every command is one.

Commands are taken from code blocks and from code within sentences. Each is parsed by the command
itself. Those that change nothing and need nothing are run, and must print what the document shows.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import typer
from yaml import safe_load

from assay import paths
from assay.checks.check import MpiCheck
from assay.config import settings
from assay.machine.topology import usable_cores
from assay.running import reframe_options
from command import COMMAND, invoke
from documents import ARCHITECTURE, DOCS, code, parsed, rows, tokens, uses
from families import FOUND
from wording import hold_page

ROOT = paths.ROOT
INDEX = DOCS / 'README.md'
COMMANDS = DOCS / 'commands.md'
DOCUMENTS = sorted([*ROOT.glob('*.md'), *DOCS.glob('*.md')])

#: Folders whose files are named by their path from the top of the checkout.
FOLDERS = ('checks', 'config', 'docs', 'lib', 'measurements', 'sources', 'tests')
#: Commands that change nothing, install nothing, and need nothing but the checkout.
HARMLESS = [('--version',), ('env',), ('doctor',)]
#: What is there only once a command has written it.
WRITTEN = ('config/spack/', 'config/systems/mycluster.py')
#: A name that stands for another: NAME, <system>, {name}, ...
PLACEHOLDER = re.compile(r'\b[A-Z]{3,}\b(?!\.md)|[<>{}]|\.\.\.')


def names(command: typer.core.TyperCommand, path: tuple[str, ...] = ()) -> Iterator[tuple]:
    """The names of all commands, such as ``()``, ``('run',)``, ``('cluster', 'up')``."""
    yield path
    for name, inner in getattr(command, 'commands', {}).items():
        yield from names(inner, (*path, name))


NAMES = list(names(COMMAND))


@dataclass(frozen=True)
class Command:
    """A use of ``assay`` in a document.

    :param words: what follows ``assay``; ``--help`` behind what a sentence only names.
    :param shown: the lines below it in the document, if it stands at a prompt.
    """

    document: str
    words: tuple[str, ...]
    shown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f'{self.document}: assay {shlex.join(self.words)}'


def links(path: Path) -> Iterator[str]:
    """Where the links and pictures of a document lead."""
    for token in tokens(path):
        if token.type in ('link_open', 'image'):
            yield str(token.attrs.get('href') or token.attrs['src'])


@cache
def anchors(path: Path) -> set[str]:
    """The headings of a document as links name them: the rule of GitHub and GitLab."""
    found: set[str] = set()
    for before, token in itertools.pairwise(parsed(path)):
        if before.type == 'heading_open':
            text = ''.join(one.content for one in token.children or [])
            slug = re.sub(r'[^\w\- ]', '', text.lower()).replace(' ', '-')
            repeated = (f'{slug}-{n}' for n in range(1, 100))
            found.add(next(repeated) if slug in found else slug)
    return found


@cache
def commands(path: Path) -> list[Command]:
    """The uses of ``assay`` in a document, once each."""
    return [*dict.fromkeys(_commands(path))]


def _commands(path: Path) -> Iterator[Command]:
    name = str(path.relative_to(ROOT))
    for text, is_block in code(path):
        lines = text.replace('\\\n', ' ').splitlines()
        for number, line in enumerate(lines):
            for words in uses(line):
                if not is_block and (*words,) in NAMES:
                    words = (*words, '--help')
                shown = []
                if line.startswith('$ '):
                    for below in lines[number + 1 :]:
                        if below.startswith('$ '):
                            break
                        shown.append(below)
                yield Command(name, words, tuple(shown))


def test_every_document_is_listed_once():
    listed = [link.partition('#')[0] for link in links(INDEX)]
    for path in sorted(DOCS.glob('*.md')):
        if path != INDEX:
            assert listed.count(path.name) == 1, f'{INDEX} has to list {path.name} once'


def test_the_readme_leads_to_the_documents():
    assert 'docs/README.md' in list(links(ROOT / 'README.md'))


def test_packages_of_spack_that_checks_run():
    """Those that are only built stand in a column of their own."""
    groups = safe_load((ROOT / 'spack.yaml').read_text())['spack']['definitions']
    sources = [*(ROOT / 'checks').rglob('*.py'), *(ROOT / 'lib/assay/programs').glob('*.py')]
    assigned = r"(?:package(?:, program)?|PACKAGE) = '([^']+)'"
    run = {'assay'}.union(*(re.findall(assigned, file.read_text()) for file in sources))
    rows = re.findall(r'^\| `(\w+)` \|(.*)\|(.*)\|$', (DOCS / 'spack.md').read_text(), re.MULTILINE)
    for group, packages in [(name, one[name]) for one in groups[1:] for name in one]:
        ((run_by_checks, only_built),) = [cells for name, *cells in rows if name == group]
        for package in packages:
            words = {'assay': 'our own'}.get(package, f'`{package}`')
            assert (words in run_by_checks) == (package in run), package
            assert (words in only_built) == (package not in run), package


def test_the_phases_of_a_check_are_told():
    told = {hook.strip('`'): phase for phase, hook, *_ in rows(ARCHITECTURE)}
    for hook in MpiCheck._rfm_hook_registry:
        phases = [
            name.replace('pre_', 'before ').replace('post_', 'after ') for name, _ in hook.stages
        ]
        assert told.get(hook.fn.__name__) == ', '.join(sorted(phases))


@pytest.mark.parametrize('path', DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for link in links(path):
        if re.match(r'https?:', link):
            continue
        file, _, anchor = link.partition('#')
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f'{path}: no file {file}'
        if anchor:
            assert anchor in anchors(there), f'{path}: {there.name} has no heading for #{anchor}'


@pytest.mark.parametrize('path', DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path):
    for text, is_block in code(path):
        for word in text.split() if is_block else [text]:
            word = word.rstrip('.,;:)').removeprefix('./')
            if not re.fullmatch(rf'(?:{"|".join(FOLDERS)})/[\w./*+-]+', word):
                continue
            if PLACEHOLDER.search(word) or word.startswith(WRITTEN):
                continue
            assert list(ROOT.glob(word)), f'{path}: there is no {word}'


def parse(words: tuple[str, ...]) -> None:
    """Parse a command as it would be before it runs.

    :raises typer.TyperException: if it would be refused.
    """
    command = COMMAND
    context = command.make_context('assay', list(words))
    while hasattr(command, 'resolve_command'):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    if context.command_path == 'assay run':
        reframe_options.read_options(context.args)
        assert context.params['mode'] in settings.modes()


# The changelog keeps the words that a thing came with.
@pytest.mark.parametrize(
    'path',
    [path for path in DOCUMENTS if path.name != 'CHANGELOG.md'],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_commands_are_understood(path):
    for command in commands(path):
        try:
            parse(command.words)
        except typer.Exit:
            pass  # --help and --version end here
        except typer.TyperException as error:
            pytest.fail(f'{command}: {error}')


def is_harmless(command: Command) -> bool:
    words = command.words
    if words[0] == 'witness':
        return '--picture' not in words and Path(ROOT, words[1]).is_file()
    return words in HARMLESS


def test_harmless_commands_run_as_shown():
    """Once each, with what it is shown to print."""
    found = [one for path in DOCUMENTS for one in commands(path) if is_harmless(one)]
    for command in {one.words: one for one in sorted(found, key=lambda one: one.shown)}.values():
        ended = subprocess.run(
            [ROOT / 'assay', *command.words],
            cwd=ROOT,
            env={**os.environ, 'COLUMNS': '120'},
            capture_output=True,
            text=True,
        )
        # Where there is no MPI, or one core and so no messages, the doctor says that.
        can_run = command.words[0] != 'doctor' or (FOUND and usable_cores() >= 2)
        codes = (0,) if can_run else (0, 1)
        assert ended.returncode in codes, ended.stderr or ended.stdout
        printed = (line.rstrip() for line in ended.stdout.splitlines())
        for line in command.shown:
            if line.strip() not in ('', '...'):
                assert line.rstrip() in printed, (
                    f'{command}: not printed, or not in this order: {line}'
                )


def help_page() -> str:
    """The help texts of all commands."""
    pieces = [
        '# Commands',
        'What each command prints with `--help`. `tests/unit/test_documents.py` writes this page.',
    ]
    for path in NAMES:
        shown = invoke(*path, '--help', COLUMNS='80').stdout
        pieces += [f'## {" ".join(("assay", *path))}', f'```text\n{shown.rstrip()}\n```']
    return '\n\n'.join(pieces) + '\n'


def test_help_texts_are_those_of_the_commands(request):
    page = help_page()
    cut = re.findall(r'^  .*\w\.\.\.$', page, re.MULTILINE)
    assert not cut, 'summaries that do not fit on a line'
    hold_page(request, COMMANDS, page)
