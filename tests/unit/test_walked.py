"""Of three pages, each line that a user types is typed by a test from end to end."""

import re

import pytest

from assay import paths
from documents import DOCS, code, uses
from roads import Road, lines

#: For who upgraded a machine, who measures every night, and who accepts a machine.
PAGES = ['after-an-upgrade.md', 'nightly.md', 'accept-a-machine.md']

WALK = re.compile(r"Road\(\s*'([\w-]+\.md)',(?: (since|until)='([^']+)')?")


@pytest.mark.parametrize('page', PAGES)
def test_a_page_is_walked_whole_or_in_two_parts(page):
    texts = [file.read_text() for file in (paths.ROOT / 'tests' / 'e2e').glob('*.py')]
    walks = {walk[1:] for text in texts for walk in WALK.findall(text) if walk[0] == page}
    if walks != {('', '')}:
        (heading,) = {heading for _, heading in walks}
        assert walks == {('until', heading), ('since', heading)}
        assert heading in lines(page)


@pytest.mark.parametrize('page', PAGES)
def test_no_command_of_a_page_is_overlooked(page):
    typed = [line for under in lines(page).values() for line in under]
    for text, is_block in code(DOCS / page):
        shown = [line.removeprefix('$ ') for line in text.splitlines() if [*uses(line)]]
        assert not is_block or {*shown} <= {*typed}


def test_what_nobody_typed_is_told(tmp_path):
    with (
        pytest.raises(AssertionError, match=r'nobody typed .*cluster down'),
        walk(tmp_path) as road,
    ):
        road.left = road.left[-1:]


def test_a_line_is_typed_in_its_turn_and_heeds_what_was_exported(tmp_path):
    road = walk(tmp_path)
    with pytest.raises(AssertionError, match='assay nightly'):
        road.next('./assay run')
    assert road.type('export SETTING="a  b"').returncode == 0
    ended = road.type('echo "$SETTING" n[1-4]', 'c d')
    assert (ended.returncode, ended.stdout) == (0, 'a  b n[1-4] c d\n')


def test_a_part_ends_where_the_other_begins(tmp_path):
    page, heading = 'accept-a-machine.md', '4. Measure'
    parts = [Road(page, **{end: heading}, root=tmp_path).left for end in ('until', 'since')]
    assert [*parts[0], *parts[1]] == Road(page, root=tmp_path).left
    assert parts[1][0] == lines(page)[heading][0]


def walk(folder):
    return Road('nightly.md', root=folder)
