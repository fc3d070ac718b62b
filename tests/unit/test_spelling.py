"""Names that nothing has, and which were meant."""

import pytest

from assay.text import did_you_mean, similar, unknown_name


def test_names_that_are_spelled_alike():
    assert similar('--max-retires', ['--reruns', '--max-retries']) == ['--max-retries']
    assert similar('gromacs', ['minife', 'hpl']) == []


@pytest.mark.parametrize(
    ('names', 'words'), [([], ''), (['a'], 'did you mean a?'), (['a', 'b'], 'did you mean a or b?')]
)
def test_the_question(names, words):
    assert did_you_mean(names) == words


def test_what_is_unknown_is_asked_for_or_all_that_is_known_is_said():
    assert (
        unknown_name('shmem', 'fabric', {'tcp', 'shm'})
        == 'no fabric has this name; did you mean shm?'
    )
    assert (
        unknown_name('x', 'fabric', {'tcp', 'shm'}) == 'no fabric has this name; there are shm, tcp'
    )
