"""The cases that ReFrame lists, which a choice is made of."""

import pytest

from assay import AssayError
from assay.running.selection import Listed, cases_of

TEXT = """\
[ReFrame Setup]
  command:           "reframe '--tag=^smoke$' --list=C"

[List of matched checks]
- Clock %fabric=shm %layout=packed %scale=1_node /228a3f0d @generic:node+openmpi-system
    ^BuildSources ~generic:node+openmpi-system 'build /53e41b0a @generic:node+openmpi-system
- HPL %fabric=shm %layout=packed %scale=1_node %size=cache /07d99fdd @my-site:gpu+mpich-4.3+gcc
    ^BuildApplications ~my-site:gpu+mpich-4.3+gcc 'build 'more /389be6bb @my-site:gpu+mpich-4.3+gcc
      ^BuildSources ~generic:node+openmpi-system 'build /53e41b0a @generic:node+openmpi-system
- Alone /6213b4c1 @generic:node+gnu
Concretized 5 test case(s)

Log file(s) saved in 'reframe.log'
"""


def test_cases_with_what_they_need():
    sources = 'BuildSources ~generic:node+openmpi-system'
    applications = 'BuildApplications ~my-site:gpu+mpich-4.3+gcc'
    clock, hpl, alone = cases_of(TEXT)
    assert clock == Listed(
        'Clock %fabric=shm %layout=packed %scale=1_node',
        'generic:node',
        'openmpi-system',
        frozenset({sources}),
    )
    assert clock.title == f'{clock.name} @generic:node+openmpi-system'
    assert (hpl.partition, hpl.environment) == ('my-site:gpu', 'mpich-4.3+gcc')
    assert hpl.needs == {sources, applications}
    assert (alone.name, alone.needs) == ('Alone', frozenset())


def test_nothing_is_selected():
    assert cases_of('[List of matched checks]\nConcretized 0 test case(s)\n') == []


@pytest.mark.parametrize(
    'text',
    [
        '',
        TEXT.replace('Concretized 5', 'Concretized 6'),
        TEXT.replace('- Alone /', '- Alone  #'),
        TEXT.replace('Concretized', 'Found'),
    ],
)
def test_what_is_not_understood_is_an_error(text):
    with pytest.raises(AssayError, match='no choice can be made'):
        cases_of(text)
