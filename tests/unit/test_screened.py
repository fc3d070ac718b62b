"""The screening that a contract may ask for before anything else is measured."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from test_contract import SMALL, small

from assay import AssayError, paths
from assay.acceptance import archive as archives
from assay.acceptance import journal
from assay.acceptance.decision import conditions
from assay.acceptance.screened import hold_screening
from assay.acceptance.standing import standing
from assay.screening.kept import keep
from screenings import screening

ASKED = SMALL.replace('waivers: []', 'screening_first: true')
NAMED = ASKED.replace('{number: 2, may_be_missing: 1}', '{names: [n0, n99]}')


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'SCREENINGS', tmp_path / 'screenings')
    (tmp_path / 'contract.yaml').write_text(ASKED)
    return archives.create(tmp_path / 'acceptance', tmp_path / 'contract.yaml', 'made')


def later(**changes):
    return replace(screening(**changes), begun=datetime.now(timezone.utc) + timedelta(days=1))


def word(archive):
    found = standing(small(ASKED), journal.read(archive.journal).entries, {})
    return {one.name: one.word for one in found.conditions}['screening']


def test_one_that_found_nothing_is_told_to_the_journal(archive):
    assert word(archive) == 'undecided'
    path = keep(later())
    hold_screening(archive, small(ASKED), 'made:up')
    (note,) = journal.read(archive.journal).entries[1:]
    assert note.what['text'].startswith(f'screening: found nothing; {path.name}, SHA-256 ')
    assert word(archive) == 'met'


def test_one_that_found_something_is_told_and_refused(archive):
    keep(later(slow={('dgemm alone', 3): 0.7}))
    with pytest.raises(AssayError, match='the screening found node n3: see `assay screen'):
        hold_screening(archive, small(ASKED), 'made:up')
    assert 'found node n3' in journal.read(archive.journal).entries[-1].what['text']
    assert word(archive) == 'undecided'


@pytest.mark.parametrize(
    ('contract', 'kept', 'told'),
    [
        (ASKED, None, 'asks for a screening first: run `assay screen --system made:up`'),
        (ASKED, screening(), 'is from before the acceptance began'),
        (NAMED, later(), 'the screening left out n99'),
    ],
)
def test_one_that_does_not_count(archive, contract, kept, told):
    if kept:
        keep(kept)
    with pytest.raises(AssayError, match=told):
        hold_screening(archive, small(contract), 'made:up')
    assert len(journal.read(archive.journal).entries) == 1


def test_one_after_the_first_run_is_none(archive):
    archives.start_run(archive, cases=[])
    keep(later())
    hold_screening(archive, small(ASKED), 'made:up')
    assert word(archive) == 'undecided'
    assert conditions(small(), [], 0, False)[-1].name != 'screening'
