"""Bundles of a tiny checkout: what `create` refuses, and what the launcher finds wrong with one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from assay import AssayError, bundle, paths
from assay.machine import wheels
from assay.spack import tool as spack

LAUNCHER = paths.ROOT / 'assay'


def git(*arguments, cwd):
    identity = ('-c', 'user.name=nobody', '-c', 'user.email=nobody@localhost')
    subprocess.run(['git', *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def checkout(elsewhere, monkeypatch):
    """A checkout with the launcher, and with locks that list nothing; all of it committed."""
    root = elsewhere / 'checkout'
    root.mkdir()
    shutil.copy2(LAUNCHER, root)
    for name in ('pyproject.toml', 'requirements.lock', 'requirements-test.lock'):
        (root / name).touch()
    for name in wheels.NEEDED:
        (paths.MPI_LOCKS / f'{name}.lock').touch()
    git('init', '--quiet', cwd=root)
    git('add', '--all', cwd=root)
    git('commit', '--quiet', '--message=all', cwd=root)
    monkeypatch.setattr(paths, 'ROOT', root)
    monkeypatch.setattr(bundle, 'LOG', paths.LOGS / 'bundle.log')
    return root


@pytest.fixture
def folder(checkout):
    """A bundle of it, for a Python that no machine has: there the launcher ends."""
    made = checkout.with_name('a bundle')
    bundle.create_bundle(made, [], with_spack=False)
    (made / 'python').write_text('3.99\n')
    (made / bundle.SUMS).unlink()
    bundle._write_sums(made)
    return made


@pytest.fixture
def other(folder):
    """The checkout on the other side."""
    git('clone', '--quiet', f'{folder.name}/assay.git', 'other', cwd=folder.parent)
    return folder.with_name('other')


def use(other, folder):
    return subprocess.run(
        [other / 'assay', 'bundle', 'use', folder], capture_output=True, text=True, timeout=300
    )


def test_a_whole_one_is_taken_into_use_and_says_which_python_it_is_for(other, folder):
    ended = use(other, folder)
    assert ended.returncode == 1
    assert 'no python3.99, which the bundle is for, on PATH' in ended.stderr
    assert (other / '.assay' / 'bundle').resolve() == folder
    head = ['git', 'rev-parse', 'HEAD']
    commits = {subprocess.check_output(head, cwd=root) for root in (paths.ROOT, other)}
    assert len(commits) == 1


def append(path):
    path.write_text(path.read_text() + ' ')


def link(path):
    path.symlink_to('python')


def cut(path):
    path.write_text(path.read_text()[:-20])


HARMS = [
    (append, 'assay.git/HEAD', '/a bundle/assay.git/HEAD is damaged or missing'),
    (os.unlink, 'python', '/a bundle/python is damaged or missing'),
    (Path.touch, 'more.whl', '/a bundle/more.whl was added to the bundle'),
    (link, 'link.whl', '/a bundle/link.whl was added to the bundle'),
    (cut, bundle.SUMS, 'is not a bundle, or not a complete one'),
    (os.unlink, bundle.SUMS, 'is not a bundle, or not a complete one'),
    (shutil.rmtree, '', 'there is no folder'),
]


def test_a_damaged_one_is_refused(other, folder, tmp_path):
    for number, (harm, name, sentence) in enumerate(HARMS):
        damaged = shutil.copytree(folder, tmp_path / str(number) / folder.name)
        harm(damaged / name)
        ended = use(other, damaged)
        assert ended.returncode == 1
        assert sentence in ended.stderr
        assert not (other / '.assay').exists()


def test_a_folder_that_holds_something_is_left_alone(checkout, tmp_path):
    taken = tmp_path / 'taken'
    taken.mkdir()
    (taken / 'thesis').touch()
    for folder in (taken, taken / 'thesis'):
        with pytest.raises(AssayError, match='already exists and is not empty: name a new folder'):
            bundle.create_bundle(folder, [], with_spack=False)
    assert (taken / 'thesis').exists()


def test_what_is_not_committed_would_be_missing(checkout, tmp_path):
    (checkout / 'mine.py').touch()
    append(checkout / 'requirements-test.lock')
    with pytest.raises(AssayError, match=r'would lack requirements-test\.lock, mine\.py: commit'):
        bundle.create_bundle(tmp_path / 'bundle', [], with_spack=False)


def test_a_checkout_without_git(checkout, tmp_path):
    shutil.rmtree(checkout / '.git')
    with pytest.raises(AssayError, match=r'`git -C .*` failed: '):
        bundle.create_bundle(tmp_path / 'bundle', [], with_spack=False)


@pytest.fixture
def rare(checkout, monkeypatch):
    """The name of a lock that lists what is nowhere."""
    monkeypatch.setenv('PIP_NO_INDEX', '1')
    monkeypatch.setenv('PIP_FIND_LINKS', '')
    (paths.MPI_LOCKS / 'rare.lock').write_text(f'rare==1 --hash=sha256:{"0" * 64}\n')
    return 'rare'


def test_a_bundle_that_fails_leaves_nothing(rare, tmp_path):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(AssayError, match='cannot fetch rare==1'):
        bundle.create_bundle(tmp_path / 'bundle', [rare], with_spack=False)
    assert sorted(tmp_path.iterdir()) == before


def test_what_the_bundle_in_use_lacks_is_named(rare, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'BUNDLE', tmp_path)
    with pytest.raises(AssayError, match=f'the bundle in use, {tmp_path}, has no rare==1'):
        wheels.install_wheel(rare, paths.LOGS / 'install.log')


def test_it_has_its_name_only_when_it_is_whole(checkout, tmp_path, monkeypatch):
    folder = tmp_path / 'bundle'
    write_sums = bundle._write_sums

    def last_step(draft):
        assert not folder.exists()
        write_sums(draft)

    monkeypatch.setattr(bundle, '_write_sums', last_step)
    bundle.create_bundle(folder, [], with_spack=False)
    assert (folder / bundle.SUMS).read_text().endswith(bundle.END)


def test_a_spack_of_the_site_is_not_what_a_bundle_takes(checkout, tmp_path, monkeypatch):
    command = tmp_path / 'bin' / 'spack'
    command.parent.mkdir()
    command.write_text('#!/bin/sh\necho 1.1.0\n')
    command.chmod(0o755)
    monkeypatch.setenv('SPACK_ROOT', str(tmp_path))
    bundle.find_spack.cache_clear()
    with pytest.raises(AssayError, match='takes the Spack that `assay spack setup --clone`'):
        bundle.create_bundle(tmp_path / 'bundle', [], with_spack=True)
    bundle.find_spack.cache_clear()


def test_spack_and_its_sources_come_from_the_bundle_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'BUNDLE', tmp_path / 'bundle')
    monkeypatch.setattr(paths, 'SPACK', tmp_path / 'state')
    monkeypatch.setattr(spack, 'LOG', tmp_path / 'log')
    for name in ('bin', 'lib/spack/spack'):
        (tmp_path / name).mkdir(parents=True)
    command = tmp_path / 'bin' / 'spack'
    command.write_text(f'#!/bin/sh\n[ $4 = mirrors ] || echo "repos: {{builtin: {tmp_path}}}"\n')
    command.chmod(0o755)
    used = spack.Spack(tmp_path, '1.1.0')

    def mirrors():
        used.configure()
        made = used.own / 'etc' / 'spack' / 'mirrors.yaml'
        return yaml.safe_load(made.read_text())['mirrors:']

    assert spack._address('spack').startswith('https://')
    assert mirrors() == {}
    for name in ('spack.git', bundle.SOURCES):
        (paths.BUNDLE / name).mkdir(parents=True)
    assert spack._address('spack') == str(paths.BUNDLE / 'spack.git')
    assert mirrors() == {'bundle': {'url': str(paths.BUNDLE / bundle.SOURCES), 'binary': False}}
