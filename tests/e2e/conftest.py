"""What tests of whole runs share."""

import subprocess

import pytest

from checkouts import copy_of_the_checkout


@pytest.fixture(scope='session')
def first_uses(tmp_path_factory):
    """A checkout with a half-made .venv, after two first uses at once, and what these printed."""
    root = copy_of_the_checkout(tmp_path_factory.mktemp('first'))
    (root / '.venv' / 'bin').mkdir(parents=True)
    (root / '.venv' / 'bin' / 'python').symlink_to('/nowhere')
    both = [
        subprocess.Popen(['./assay', 'env'], cwd=root, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [one.communicate(timeout=900)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], errors
    return root, errors
