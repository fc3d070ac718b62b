"""The screening that a contract may ask for before anything else is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from test_contract import SMALL, small

from accepted import CONTRACT, TRUSTED, close, remake, sign
from assay import AssayError, paths
from assay.acceptance import archive as archives
from assay.acceptance import contract as contracts
from assay.acceptance import journal
from assay.acceptance.canonical import digest_of
from assay.acceptance.decision import conditions
from assay.acceptance.screened import assert_screened, place
from assay.acceptance.standing import standing
from assay.acceptance.verify import verify
from assay.screening.kept import keep
from assay.screening.measured import write
from screenings import screening

ASKED = SMALL.replace('waivers: []', 'screening_first: true')
NAMED = ASKED.replace('{number: 2, may_be_missing: 1}', '{names: [n0, n1, n99]}')


@pytest.fixture
def archive(tmp_path, monkeypatch):
    return begun(tmp_path, monkeypatch, ASKED, 'generic')


def begun(folder, monkeypatch, text, system):
    monkeypatch.setattr(paths, 'SCREENINGS', folder / 'perflogs' / 'screenings')
    (folder / 'contract.yaml').write_text(text)
    return archives.create(folder / 'acceptance', folder / 'contract.yaml', system)


def now(**changes):
    """One that began since the acceptance did."""
    return replace(screening(**changes), begun=datetime.now(timezone.utc))


def hold(archive, contract=None):
    assert_screened(archive, contract or small(ASKED), 'made:up')


def last(archive):
    return journal.read(archive.journal).entries[-1]


def condition(archive):
    found = standing(small(ASKED), journal.read(archive.journal).entries, {})
    (one,) = [one for one in found.conditions if one.name == 'screening']
    return one.word, one.reason.removeprefix('the screening before the first run ')


def test_one_that_found_nothing_is_kept_with_those_before_it(archive):
    assert condition(archive) == ('undecided', 'has not been made')
    before = [keep(screening(day=day)) for day in range(3)]
    other = keep(replace(screening(day=3), fabric='ucx-ib'))
    path = keep(now())
    hold(archive)
    told = last(archive)
    assert (told.kind, told.what['screening'], told.what['found']) == ('screened', path.name, '')
    assert set(told.what['files']) == {f'screenings/{one.name}' for one in (*before, path)}
    for one in (*before, path):
        kept = archive.screenings / one.name
        assert kept.read_bytes() == one.read_bytes()
        assert told.what['files'][f'screenings/{one.name}']['sha256'] == digest_of(kept)
    assert not (archive.screenings / other.name).exists()
    assert condition(archive) == ('met', 'found nothing')


def test_it_is_told_once(archive):
    keep(now())
    hold(archive)
    journal.append(archive.journal, 'note', text='the command was stopped before the first run')
    hold(archive)
    assert [one.kind for one in journal.read(archive.journal).entries] == [
        'begun',
        'screened',
        'note',
    ]


def test_the_last_one_before_the_first_run_counts(archive):
    bad = {('dgemm alone', 3): 0.7}
    keep(now())
    hold(archive)
    keep(now(slow=bad))
    with pytest.raises(AssayError, match='the screening found: n3 is bad; see `assay screen --sys'):
        hold(archive)
    assert condition(archive) == ('undecided', 'found n3 is bad')
    with pytest.raises(AssayError, match='repair that, and run `assay screen --system made:up`'):
        hold(archive)
    assert last(archive).number == 3  # it is told once
    keep(now(day=1))
    hold(archive)
    assert condition(archive) == ('met', 'found nothing')
    assert len(last(archive).what['files']) == 3
    archives.start_run(archive, cases=[])
    keep(now(slow=bad))
    hold(archive)
    assert last(archive).kind == 'started'
    assert condition(archive) == ('met', 'found nothing')


def test_one_after_the_first_run_counts_for_nothing(archive):
    archives.start_run(archive, cases=[])
    journal.append(archive.journal, 'screened', screening='later.json', found='', files={})
    assert condition(archive) == ('undecided', 'has not been made')


def test_one_that_cannot_tell_blames_nobody(archive):
    one = now(slow={('dgemm alone', 3): 0.7})
    one.taken['alone'][3] = 0.5
    keep(one)
    with pytest.raises(AssayError) as raised:
        hold(archive)
    assert str(raised.value) == (
        'the screening cannot tell yet: n3 was disturbed; see `assay screen --system made:up '
        '--from last`, and run `assay screen --system made:up`, and then this again'
    )


@pytest.mark.parametrize(
    ('contract', 'kept', 'told'),
    [
        (ASKED, None, 'asks for a screening first: run `assay screen --system made:up`, and then'),
        (ASKED, screening, 'is from before the acceptance began'),
        (NAMED, now, r'the screening left out n99: run `.* --system made:up --nodes n\[0-1,99\]`'),
    ],
)
def test_one_that_does_not_count(archive, contract, kept, told):
    if kept:
        keep(kept())
    with pytest.raises(AssayError, match=told):
        hold(archive, small(contract))
    assert len(journal.read(archive.journal).entries) == 1
    assert not archive.screenings.exists()


def test_what_a_stopped_command_left_of_one_is_no_part_of_the_archive(archive):
    archive.screenings.mkdir()
    (archive.screenings / 'half.json').write_text('{')
    keep(now())
    hold(archive)
    assert [one.name for one in archive.screenings.iterdir()] == [last(archive).what['screening']]


def test_where_there_can_be_none_is_told_before_anything_begins():
    def site(*partitions):
        return {'systems': [{'name': 'generic', 'partitions': [*partitions]}], 'environments': []}

    local = {'name': 'node', 'scheduler': 'local', 'features': ['tcp']}
    slurm = [{'name': name, 'scheduler': 'slurm', 'features': ['tcp']} for name in 'ab']
    assert place(site(local), small()) == ''
    with pytest.raises(AssayError, match=r'^screening_first of the contract: generic has no part'):
        place(site(local), small(ASKED))
    with pytest.raises(AssayError, match=r'several partitions.*correct system, or leave out scree'):
        place(site(*slurm), small(ASKED))


def test_conditions_of_a_contract_without_one():
    assert conditions(small(), [], 0, None)[-1].name != 'screening'


@pytest.fixture
def signed(tmp_path, monkeypatch):
    """One that was signed, though nothing was measured but a screening."""
    text = CONTRACT.replace('system: golden', 'system: made:up') + 'screening_first: true\n'
    archive = begun(tmp_path, monkeypatch, text, 'made:up')
    keep(screening())
    keep(now(slow={('dgemm alone', 3): 0.7}))
    with pytest.raises(AssayError):
        hold(archive, contracts.read(archive.contract))
    keep(now(day=1))
    hold(archive, contracts.read(archive.contract))
    close(archive)
    sign(archive)
    return SimpleNamespace(archive=archive, names=[*last_screened(archive).what['files']])


def last_screened(archive):
    return [one for one in journal.read(archive.journal).entries if one.kind == 'screened'][-1]


def told(archive):
    return '\n'.join(verify(archive.folder, TRUSTED).lines())


def test_one_that_was_signed_is_judged_once_more(signed):
    found = told(signed.archive)
    first, bad, good = (name.rpartition('/')[2] for name in signed.names)
    assert f'right: the screening {bad}, held against 1 earlier one, found n3 is bad' in found
    assert f'right: the screening {good}, held against 2 earlier ones, found nothing' in found
    assert first not in found
    assert found.endswith('VERIFIED: it is what all parties signed')


def changed(archive, change):
    """With all checksums made again."""
    name = last_screened(archive).what['screening']
    path = archive.screenings / name
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    remake(archive)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (
            lambda one: one['values']['dgemm alone'].__setitem__(3, [1e8] * 8),
            'the screening found n3 is bad, and nothing is told of it',
        ),
        (
            lambda one: one.update(system='other:up'),
            'the screening is of other:up, and the contract is for made:up',
        ),
        (
            lambda one: one.update(begun='2026-01-01T00:00:00+00:00'),
            'was not made between the beginning and',
        ),
        (lambda one: one.update(fabric='ucx-ib'), 'held against are of other nodes, or another'),
        (lambda one: one.update(nodes=one['nodes'][:3]), 'not the file of a screening'),
    ],
)
def test_one_that_was_changed(signed, change, words):
    changed(signed.archive, change)
    found = told(signed.archive)
    assert words in found
    assert 'WRONG: the signature of Ada Buyer' in found


def test_one_that_left_nodes_out(signed):
    archive = signed.archive
    text = archive.contract.read_text().replace('{number: 1}', '{number: 17}')
    archive.contract.write_text(text)
    remake(archive)
    assert 'the screening left out 1 node' in told(archive)


def test_a_file_that_is_changed_removed_or_added(signed):
    path = signed.archive.folder / signed.names[0]
    data = path.read_bytes()
    path.write_bytes(data.replace(b'n15', b'n51'))
    assert f'{signed.names[0]} was changed: entry 3 of the journal' in told(signed.archive)
    path.unlink()
    assert f'{signed.names[0]} was removed: manifest.json lists it' in told(signed.archive)
    path.write_bytes(data)
    write(path.with_name('9.json'), screening())
    assert 'screenings/9.json: no entry of the journal tells of it' in told(signed.archive)


def test_an_entry_that_tells_of_another_file(signed):
    def change(entries):
        entries[2]['what']['screening'] = signed.names[0].rpartition('/')[2]

    remake(signed.archive, change)
    assert 'is not the newest of the screenings that it tells of' in told(signed.archive)


def slower(one):
    return replace(one, values={name: 0.6 * rates for name, rates in one.values.items()})


def test_one_that_was_changed_in_the_folder_is_not_held_against(archive):
    first = keep(screening())
    keep(now())
    hold(archive)
    path = archive.screenings / first.name
    write(path, slower(screening()))
    keep(now(day=1))
    with pytest.raises(AssayError, match=r'was changed: entry 2 of the journal tells what it was'):
        hold(archive)
    path.unlink()
    with pytest.raises(AssayError, match='entry 2 of the journal tells of cannot be read'):
        hold(archive)


def test_a_file_that_a_later_entry_tells_otherwise(signed):
    first = signed.names[0]
    path = signed.archive.folder / first
    write(path, slower(screening(day=2)))

    def change(entries):
        entries[1]['what']['files'][first]['sha256'] = '0' * 64

    remake(signed.archive, change)
    found = told(signed.archive)
    assert f'entry 3 tells of {first} as another file than entry 2: it was changed' in found
