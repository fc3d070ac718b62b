"""The lint: the project's own checks and references are clean, and each defect is found."""

import os

import pytest

from assay import paths
from assay.config import lint as lint_module
from assay.config import reference_files
from assay.config.lint import lint
from assay.files import write_whole

CHECK = """
import reframe as rfm
from assay.checks.benchmark import MpiBenchmark

@rfm.simple_test
class Latency(MpiBenchmark):
    pass
"""
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


def test_a_file_that_was_written_twice_in_a_second_is_read_twice(tree):
    """As a file system that knows no fractions of seconds has it."""
    path = tree / 'references' / 'generic.yaml'
    found = []
    for value in (1.0, 2.0):
        write_whole(path, GOOD.replace('1.0', str(value)))
        os.utime(path, (1000, 1000))
        found.append(reference_files.read_reference_file(path)['Latency']['shm']['latency'][0])
    assert found == [1.0, 2.0]


def test_duplicate_class(tree):
    (tree / 'checks' / 'other.py').write_text(CHECK)
    (problem,) = run(tree)
    assert 'other.py: class Latency is also in' in problem


def test_class_without_entry(tree):
    (tree / 'checks' / 'other.py').write_text(CHECK.replace('Latency', 'Bandwidth'))
    (problem,) = run(tree)
    assert 'class Bandwidth' in problem and 'has no entry' in problem


def test_entry_without_class(tree):
    (tree / 'references' / 'zen3.yaml').write_text(GOOD.replace('Latency', 'latency'))
    (problem,) = run(tree)
    assert 'zen3.yaml: latency: no check class has this name; did you mean Latency' in problem


@pytest.mark.parametrize('name', ['vclusters.yaml', 'vcluster.yml'])
def test_file_that_nothing_reads(tree, name):
    (tree / 'references' / name).write_text(GOOD)
    (problem,) = run(tree)
    assert f'{name}: is not read' in problem and 'vcluster' in problem.partition('is not read')[2]


def test_unreadable_files(tree):
    (tree / 'checks' / 'other.py').write_text('x = (')
    (tree / 'references' / 'vcluster.yaml').write_text('Latency: [')
    check, references = run(tree)
    assert 'other.py, line 1: not valid Python' in check
    assert 'vcluster.yaml: not valid YAML: line 1' in references


def test_check_that_cannot_be_loaded(tree):
    (tree / 'checks' / 'latency.py').write_text(CHECK.replace('import reframe as rfm', ''))
    (problem,) = run(tree)
    assert "latency.py cannot be loaded: NameError: name 'rfm'" in problem


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('- Latency', 'there are no entries by check class'),
        ('Latency:', "Latency has no '$index'"),
        ('Latency: {}', "Latency has no '$index'"),
        ('Latency: {shm: {latency: [1.0, null, 0.2, us]}}', "Latency has no '$index'"),
        (GOOD.replace('[fabric]', 'fabric'), "Latency has no '$index'"),
        (GOOD.replace('[fabric]', '[]'), "Latency has no '$index'"),
        (GOOD.replace('[fabric]', "['']"), "Latency.$index: '' cannot be a parameter of a check"),
        (GOOD.replace('[fabric]', '[$fabric]'), "'$fabric' cannot be a parameter of a check"),
        (GOOD.replace('fabric', 'figures'), 'Latency.$index: no parameter has this name'),
        (GOOD.replace('fabric', 'fabrc'), 'no parameter has this name; did you mean fabric'),
        (GOOD.replace('shm', 'shmem'), 'Latency.shmem: no fabric has this name; did you mean shm'),
        (
            GOOD.replace('shm:', "'ucx.*': &a").replace('1.0', '2.0') + "  'ucx-(shm|tcp)': *a",
            'Latency.ucx-(shm|tcp): is never looked up: ucx.* stands before it',
        ),
        (GOOD.replace('shm', "''"), 'Latency.: no fabric has this name; there are ofi-cxi, '),
        (GOOD.replace('shm', "'('"), 'Latency.(: not a regular expression'),
        (GOOD.replace('shm:', 'shm: {}\n  tcp:'), 'Latency.shm: there are no figures'),
        (GOOD.replace('[fabric]', '[fabric, scale]'), 'Latency.shm.latency: there are no figures'),
        (
            GOOD + '  shm: {bandwidth: [1.0, -0.2, null, MB/s]}',
            "line 4: the key 'shm' stands twice",
        ),
        (GOOD + 'Latency: {}', "line 4: the key 'Latency' stands twice"),
    ],
)
def test_rule_that_holds_nothing(tree, text, words):
    (tree / 'references' / 'vcluster.yaml').write_text(text)
    (problem,) = run(tree)
    assert 'vcluster.yaml: ' in problem and words in problem


@pytest.mark.parametrize(
    ('bounds', 'words'),
    [
        ('[1.0, null, null, us]', 'cannot fail'),
        ('[1.0, -1.0, null, us]', 'cannot fail'),
        ('[0, null, null, us]', 'cannot fail'),
        ('[0, -0.5, null, us]', 'cannot fail'),
        ('["$xfail", "known", [1.0, null, null, us]]', 'cannot fail'),
        ('["$xfail", [1.0, null, 0.2, us]]', 'is no expected failure'),
        ('[1.0, null, .inf, us]', 'not a finite number'),
        (f'[1{"0" * 400}, null, 0.2, us]', 'not a finite number'),
        ('[.nan, null, 0.2, us]', 'not a finite number'),
        ('[1.0, us]', 'is no reference'),
        ('[1.0, null, 0.2]', 'is no reference'),
        ('{value: 1.0}', 'is no reference'),
        ('null', 'is no reference'),
        # Numbers have a point, in YAML 1.1.
        ('[1e3, null, 0.2, us]', "has '1e3' in the place of a number"),
        ('[1.0, null, "0.2", us]', "has '0.2' in the place of a number"),
        ('[1.0, null, yes, us]', 'has True in the place of a number'),
        ('[1.0, null, 0.2, null]', 'has None in the place of a unit'),
        ('[-1.0, -0.5, null, us]', 'is below 0, as no figure is'),
        ('[1.0, 0.2, null, us]', 'has a lower bound above its value'),
        ('[1.0, null, -0.2, us]', 'has an upper bound below its value'),
        ('[1.0, -2.0, 0.2, us]', 'has a lower bound below 0, as no figure is'),
    ],
)
def test_reference_that_cannot_fail(tree, bounds, words):
    text = GOOD.replace('[1.0, null, 0.2, us]', bounds)
    (tree / 'references' / 'generic.yaml').write_text(text)
    (problem, *_) = run(tree)
    assert 'Latency.shm.latency' in problem and words in problem


@pytest.mark.parametrize(
    'bounds',
    [
        '[1.0, -0.2, null, us]',
        '[1.0, -0.999999, null, us]',
        '[0, null, 5, us]',
        '[0, 0, 0, 1]',
        '["$xfail", "known", [1.0, null, 0.2, us]]',
    ],
)
def test_reference_that_can_fail(tree, bounds):
    text = GOOD.replace('[1.0, null, 0.2, us]', bounds)
    (tree / 'references' / 'generic.yaml').write_text(text)
    assert run(tree) == []


def test_a_system_may_release_a_figure(tree):
    text = GOOD.replace('[1.0, null, 0.2, us]', '[1.0, null, null, us]')
    (tree / 'references' / 'vcluster.yaml').write_text(text)
    assert run(tree) == []


def test_a_last_rule_for_what_is_left(tree):
    text = GOOD.replace('[fabric]', '[layout]').replace('shm:', 'packed: &a') + "  '.*': *a"
    (tree / 'references' / 'vcluster.yaml').write_text(text)
    assert run(tree) == []


def test_merged_keys_are_no_duplicates(tree):
    (tree / 'references' / 'vcluster.yaml').write_text(
        """
Latency:
  $index: [fabric]
  shm: &shm {latency: [1.0, null, 0.2, us], bandwidth: [1.0, -0.2, null, MB/s]}
  tcp: &tcp {<<: *shm, latency: [2.0, null, 0.2, us]}
  ofi-tcp: {<<: *tcp, latency: [3.0, null, 0.2, us]}
"""
    )
    assert run(tree) == []


def test_what_was_clean_is_linted_again_once_a_file_has_changed(monkeypatch, tmp_path, tree):
    for name in ('checks', 'references', 'runs'):
        monkeypatch.setattr(paths, name.upper(), tmp_path / name)
    monkeypatch.setattr(paths, 'CONFIG', tmp_path / 'references')
    monkeypatch.setattr(paths, 'ROOT', tmp_path)
    (tmp_path / 'runs').mkdir()
    (tree / 'checks' / os.fsdecode(b'r\xe9f.yaml')).touch()
    linted = []
    monkeypatch.setattr(lint_module, 'lint', lambda *folders: linted.append(1) or lint(*folders))
    assert [lint_module.lint_own() for _ in range(2)] == [[], []]
    assert len(linted) == 1
    (tree / 'references' / 'generic.yaml').write_text(GOOD.replace('shm', 'warp'))
    assert [bool(lint_module.lint_own()) for _ in range(2)] == [True, True]
    assert len(linted) == 3, 'what is not clean is linted each time'
