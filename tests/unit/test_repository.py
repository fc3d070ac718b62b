"""Git repositories of others: what a commit is, which lie between two, and one unpacked."""

import os
import subprocess

import pytest

from assay import AssayError, locks
from assay.machine import repository
from assay.machine.repository import Repository, forget_old, lock_of


def git(folder, *words):
    who = ['-c', 'user.name=one', '-c', 'user.email=one@example.org']
    command = ['git', '-C', folder, *who, '-c', 'protocol.file.allow=always', *words]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def commit(folder, subject, **files):
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, 'add', '.')
    git(folder, 'commit', '-q', '-m', subject)
    return git(folder, 'rev-parse', 'HEAD')


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "its 'own'"
    folder.mkdir()
    git(folder, 'init', '-q')
    return folder


def test_a_commit_has_many_names(tree):
    one = commit(tree, 'first', a='1')
    git(tree, 'tag', "it's")
    two = commit(tree, 'Say "don\'t"; $(touch x)', a='2')
    found = Repository(tree, 'a test')
    assert [found.commit_of(name) for name in ('HEAD', one[:8], "it's", 'HEAD~1')] == [
        *(two, one, one, one)
    ]
    for name in ('none', '--all', '', 'HEAD:a'):
        with pytest.raises(AssayError, match='is no commit of'):
            found.commit_of(name)
    assert found.between(one, two) == [(two, 'Say "don\'t"; $(touch x)')]
    with pytest.raises(AssayError, match='neither a Git work tree nor a bare repository'):
        Repository(tree.parent, 'a test').commit_of('HEAD')
    with pytest.raises(AssayError, match='cannot be read: File name too long'):  # or not allowed
        Repository(tree / ('a' * 300), 'a test').commit_of('HEAD')


def test_work_trees_of_all_kinds_and_bare_ones(tree, tmp_path):
    one = commit(tree, 'first', a='1')
    git(tree, 'worktree', 'add', '-q', tmp_path / 'beside', 'HEAD')
    git(tmp_path, 'clone', '-q', '--bare', tree, 'bare')
    for number, path in enumerate((tree, tmp_path / 'beside', tmp_path / 'bare')):
        found = Repository(path, 'a test')
        assert found.commit_of('HEAD') == one and not found.has_changes()
        found.unpack(one, tmp_path / str(number) / 'checkout')
        assert (tmp_path / str(number) / 'checkout' / 'a').read_text() == '1'
    (tree / 'a').write_text('2')
    assert Repository(tree, 'a test').has_changes()


@pytest.mark.skipif(os.getuid() != 0, reason='only root gives files to others')
def test_it_may_belong_to_another_user(tree, tmp_path):
    one = commit(tree, 'first', a='1')
    subprocess.run(['chown', '-R', '12345', tree], check=True)
    found = Repository(tree, 'a test')
    assert found.commit_of('HEAD') == one and not found.has_changes()
    found.unpack(one, tmp_path / 'new' / 'checkout')


def test_a_shallow_clone_lacks_what_is_earlier(tree, tmp_path):
    one, two = commit(tree, 'first', a='1'), commit(tree, 'second', a='2')
    git(tmp_path, 'clone', '-q', '--depth=1', f'file://{tree}', 'shallow')
    found = Repository(tmp_path / 'shallow', 'a test')
    with pytest.raises(AssayError, match=r'no commit of .* shallow clone, see `git fetch'):
        found.commit_of(one)
    with pytest.raises(AssayError, match=r'does not come from .* shallow clone'):
        found.between(one, two)


def test_submodules_that_were_fetched_are_unpacked_as_well(tree, tmp_path):
    library = tmp_path / 'library'
    library.mkdir()
    git(library, 'init', '-q')
    commit(library, 'old', b='old')
    git(tree, 'submodule', '--quiet', 'add', '--name', 'its library', library, 'inner/one')
    one = commit(tree, 'with the old one', a='1')
    commit(library, 'new', b='new')
    git(tree / 'inner' / 'one', 'pull', '-q')
    two = commit(tree, 'with the new one')
    for number, text in ((one, 'old'), (two, 'new')):
        Repository(tree, 'a test').unpack(number, tmp_path / number / 'checkout')
        assert (tmp_path / number / 'checkout/inner/one/b').read_text() == text
    git(tmp_path, 'clone', '-q', tree, 'clone')
    Repository(tmp_path / 'clone', 'a test').unpack(one, tmp_path / 'empty' / 'checkout')
    assert not [*(tmp_path / 'empty/checkout/inner/one').iterdir()]


def test_a_work_tree_beside_others_has_submodules_of_its_own(tree, tmp_path):
    """And where a submodule lacks the commit, its folder is empty and nothing lies beside it."""
    library = tmp_path / 'library'
    library.mkdir()
    git(library, 'init', '-q')
    commit(library, 'old', b='old')
    git(tree, 'submodule', '--quiet', 'add', library, 'inner/one')
    one = commit(tree, 'with the old one', a='1')
    git(tmp_path, 'clone', '-q', tree, 'clone')
    git(tmp_path / 'clone', 'worktree', 'add', '-q', tmp_path / 'beside', 'HEAD')
    git(tmp_path / 'beside', 'submodule', '--quiet', 'update', '--init')
    found = Repository(tmp_path / 'beside', 'a test')
    found.unpack(one, tmp_path / 'old' / 'checkout')
    assert (tmp_path / 'old/checkout/inner/one/b').read_text() == 'old'
    commit(library, 'new', b='new')
    git(tree / 'inner' / 'one', 'pull', '-q')
    two = commit(tree, 'with the new one')
    git(tmp_path / 'beside', 'fetch', '-q', '--no-recurse-submodules', 'origin')
    found.unpack(two, tmp_path / 'new' / 'checkout')
    assert [path.name for path in (tmp_path / 'new/checkout/inner').rglob('*')] == ['one']


def test_links_may_lead_out_of_a_checkout(tree, tmp_path):
    (tree / 'link').symlink_to('/etc/hostname')
    one = commit(tree, 'first')
    Repository(tree, 'a test').unpack(one, tmp_path / 'new' / 'checkout')
    assert (tmp_path / 'new/checkout/link').is_symlink()


def test_what_was_used_long_ago_is_removed_unless_somebody_is_at_it(tmp_path, monkeypatch):
    monkeypatch.setattr(repository, 'KEPT', 1)
    folders = [tmp_path / name for name in ('newest', 'at-work', 'old', 'used-today')]
    for number, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (1000 - number, 1000 - number))
    os.utime(folders[0])
    os.utime(folders[3])
    with locks.hold_lock(lock_of(folders[1])):
        forget_old([*folders, tmp_path / 'gone'])
    assert [folder.exists() for folder in folders] == [True, True, False, True]
