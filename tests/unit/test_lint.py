"""The lint: the project's own checks and references are clean, and each defect is found."""

import pytest

from assay import paths
from assay.lint import lint

CHECK = '@rfm.simple_test\nclass Latency(MpiBenchmark):\n    pass\n'
GOOD = 'Latency:\n  $index: [fabric]\n  shm: {latency: [1.0, null, 0.2, us]}\n'


def test_the_project_is_clean():
    assert lint(paths.ROOT / 'checks', paths.ROOT / 'config' / 'references') == []


@pytest.fixture
def tree(tmp_path):
    (tmp_path / 'checks').mkdir()
    (tmp_path / 'references').mkdir()
    (tmp_path / 'checks' / 'latency.py').write_text(CHECK)
    (tmp_path / 'references' / 'generic.yaml').write_text(GOOD)
    return tmp_path


def run(tree):
    return lint(tree / 'checks', tree / 'references')


def test_clean_tree(tree):
    assert run(tree) == []


def test_duplicate_class(tree):
    (tree / 'checks' / 'other.py').write_text(CHECK)
    (problem,) = run(tree)
    assert 'other.py: class Latency is also in' in problem


def test_class_without_entry(tree):
    (tree / 'checks' / 'other.py').write_text(CHECK.replace('Latency', 'Bandwidth'))
    (problem,) = run(tree)
    assert 'class Bandwidth' in problem and 'has no entry' in problem


def test_entry_without_class(tree):
    (tree / 'references' / 'mine.yaml').write_text(GOOD.replace('Latency', 'Latencies'))
    (problem,) = run(tree)
    assert 'mine.yaml: Latencies: no check class' in problem


def test_unreadable_files(tree):
    (tree / 'checks' / 'other.py').write_text('x = (')
    (tree / 'references' / 'mine.yaml').write_text('Latency: [')
    check, references = run(tree)
    assert 'other.py, line 1: not valid Python' in check
    assert 'mine.yaml: not valid YAML' in references


@pytest.mark.parametrize(
    ('bounds', 'words'),
    [
        ('[1.0, null, null, us]', 'cannot fail'),
        ('[1.0, -1.0, null, us]', 'cannot fail'),
        ('[0, null, null, us]', 'cannot fail'),
        ('["$xfail", "known", [1.0, null, null, us]]', 'cannot fail'),
        ('[1.0, null, .inf, us]', 'not a finite number'),
        ('[1.0, us]', 'is no reference'),
    ],
)
def test_reference_that_cannot_fail(tree, bounds, words):
    text = GOOD.replace('[1.0, null, 0.2, us]', bounds)
    (tree / 'references' / 'generic.yaml').write_text(text)
    (problem,) = run(tree)
    assert 'Latency.shm.latency' in problem and words in problem


@pytest.mark.parametrize('bounds', ['[1.0, -0.2, null, us]', '[0, null, 5, us]'])
def test_reference_that_can_fail(tree, bounds):
    text = GOOD.replace('[1.0, null, 0.2, us]', bounds)
    (tree / 'references' / 'generic.yaml').write_text(text)
    assert run(tree) == []
