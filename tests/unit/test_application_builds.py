"""A commit of a site's application: unpacked and built once, and what is said if that fails."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from assay import AssayError, paths
from assay.running import application_builds
from assay.running.application_builds import Toolchain, build, repository_of, seconds_of_builds
from assay.running.site_applications import SiteApplication

TOOLS = Toolchain(['bash'], ['made=$(date)'], ['gcc@12'], 60.0)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """An application whose build counts how often it was made."""
    monkeypatch.setattr(paths, 'SYSTEMS', tmp_path / 'systems')
    monkeypatch.setattr(paths, 'BUILDS', tmp_path / 'builds')
    folder = tmp_path / 'repository'
    subprocess.run(['git', 'init', '-q', folder], check=True)
    (folder / 'source').write_text('echo it')
    (tmp_path / 'systems').mkdir()
    git = ['git', '-C', folder, '-c', 'user.name=one', '-c', 'user.email=one@example.org']
    for words in (['add', '.'], ['commit', '-q', '-m', 'first']):
        subprocess.run([*git, *words], check=True)
    return SiteApplication(
        command=['it'],
        repository='../repository',
        build=f'test "$made"; echo made >>{tmp_path}/count; cp source it; chmod +x it',
        mpi='mpich',
        answer=[{'find': 'it'}],
        figures={'it': {'find': '(it)', 'unit': 's', 'better': 'lower'}},
    )


def commit(entry):
    return repository_of(entry).commit_of('HEAD')


def test_it_is_built_once_however_many_ask(entry, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: build('it', entry, commit(entry), TOOLS), range(4))]
    (folder,) = {*found}
    assert (folder / 'it').read_text() == 'echo it'
    assert (tmp_path / 'count').read_text() == 'made\n'
    (seconds,) = seconds_of_builds(['it', 'another'])
    assert seconds >= 0


def test_another_compiler_or_command_or_flag_makes_another_build(entry, monkeypatch):
    monkeypatch.delenv('CFLAGS', raising=False)
    others = [
        build('it', entry, commit(entry), TOOLS),
        build('it', entry, commit(entry), replace(TOOLS, made_with=['gcc@13'])),
        build('it', entry.model_copy(update={'build': 'true'}), commit(entry), TOOLS),
    ]
    monkeypatch.setenv('CFLAGS', '-O0')
    others.append(build('it', entry, commit(entry), TOOLS))
    assert len({*others}) == 4
    monkeypatch.setenv('LINES', '24')
    assert build('it', entry, commit(entry), TOOLS) == others[-1]


@pytest.mark.parametrize(
    ('command', 'told'),
    [
        ('echo a; echo "it.c:1: error: no it" >&2; exit 2', 'not build: it.c:1: error: no it'),
        ('false; touch it', 'not build: exit code 1'),
        ('exit 124', 'not build: exit code 124'),
    ],
)
def test_why_it_does_not_build_is_told(entry, command, told):
    entry = entry.model_copy(update={'build': command})
    for forget in (True, True, False):  # what failed is never taken for whole
        with pytest.raises(AssayError, match=f'^it: commit {commit(entry)[:12]} does {told}'):
            build('it', entry, commit(entry), TOOLS)
        if forget:
            application_builds._failed.clear()
    assert not seconds_of_builds(['it'])


def test_a_build_that_hangs_is_ended(entry):
    entry = entry.model_copy(update={'build': 'sleep 60 & sleep 60'})
    with pytest.raises(AssayError, match='was not built in 0'):
        build('it', entry, commit(entry), replace(TOOLS, seconds=0.2))


def test_a_build_finds_no_git_repository_around_it(entry, tmp_path):
    subprocess.run(['git', 'init', '-q', tmp_path], check=True)
    entry = entry.model_copy(update={'build': '! git rev-parse --git-dir'})
    build('it', entry, commit(entry), TOOLS)
