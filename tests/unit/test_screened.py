"""The screening that a contract may ask for before anything else is measured."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from accepted import CONTRACT, TRUSTED, as_record, close, remake, sign, start
from assay import AssayError, paths
from assay.acceptance import archive as archives
from assay.acceptance import contract as contracts
from assay.acceptance import journal
from assay.acceptance.decision import CaseRun, conditions
from assay.acceptance.files import checksums_in, digest_of
from assay.acceptance.journal import Resumed, Screened, Started
from assay.acceptance.screenings import (
    assert_screened,
    partition_to_screen,
    screening_status,
    screening_summary,
)
from assay.acceptance.status import status_of
from assay.acceptance.verify import verify_archive
from assay.screening import outputs
from assay.screening.measured import read_screening, write_screening
from assay.screening.outputs import collect
from assay.screening.where import Where
from changing import changing
from contracts import SMALL, small
from golden_jobs import JOBS
from screenings import BEGUN, keep, screening, slow_links

GENERIC = SMALL.replace('waivers: []', 'screening_first: true')
ASKED = GENERIC.replace('system: generic', 'system: made:up')
NAMED = ASKED.replace('{number: 2, may_be_missing: 1}', '{names: [n0, n1, n99]}')


@pytest.fixture
def archive(tmp_path, monkeypatch):
    return begun(tmp_path, monkeypatch, ASKED, 'made:up')


def begun(folder, monkeypatch, text, system):
    monkeypatch.setattr(paths, 'SCREENINGS', folder / 'perflogs' / 'screenings')
    (folder / 'contract.yaml').write_text(text)
    return archives.create_archive(folder / 'acceptance', folder / 'contract.yaml', system)


def now(**changes):
    """One that began since the acceptance did."""
    return replace(screening(**changes), begun=datetime.now(timezone.utc))


def hold(archive, contract=None):
    assert_screened(archive, contract or small(ASKED), 'made:up')


def last(archive):
    return journal.read_journal(archive.journal).entries[-1]


def records(files):
    """The screenings of an entry's files, without the outputs of their jobs."""
    return [name for name in files if not name.endswith(outputs.SUFFIX)]


def condition(archive):
    found = status_of(small(ASKED), journal.read_journal(archive.journal).entries, {})
    (one,) = [one for one in found.conditions if one.name == 'screening']
    return one.word, one.reason.removeprefix('the screening before the first run ')


def test_one_that_found_nothing_is_kept_with_those_before_it(archive):
    assert condition(archive) == ('undecided', 'has not been made')
    before = [keep(screening(day=day)) for day in range(3)]
    other = keep(replace(screening(day=3), fabric='ucx-ib'))
    path = keep(now())
    hold(archive)
    told = last(archive)
    assert (told.what.screening, told.what.found) == (path.name, '')
    files = [file for one in (*before, path) for file in (one, outputs.outputs_file(one))]
    assert set(told.what.files) == {f'screenings/{one.name}' for one in files}
    for one in files:
        kept = archive.screenings / one.name
        assert kept.read_bytes() == one.read_bytes()
        assert told.what.files[f'screenings/{one.name}'].sha256 == digest_of(kept)
    assert not (archive.screenings / other.name).exists()
    assert condition(archive) == ('met', 'found nothing')


def test_it_is_told_once(archive):
    keep(now())
    hold(archive)
    journal.append(archive.journal, Resumed())  # it was stopped before the first run
    hold(archive)
    assert [one.what.kind for one in journal.read_journal(archive.journal).entries] == [
        'begun',
        'screened',
        'resumed',
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
    assert len(records(last(archive).what.files)) == 3
    start(archive)
    keep(now(slow=bad))
    hold(archive)
    assert isinstance(last(archive).what, Started)
    assert condition(archive) == ('met', 'found nothing')


def test_one_after_the_first_run_counts_for_nothing(archive):
    start(archive)
    texts = dict.fromkeys(('screening', 'begun', 'environment', 'fabric', 'found'), '')
    later = Screened(**texts, nodes=(), unjudged=(), files={})
    journal.append(archive.journal, later)
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
    assert len(journal.read_journal(archive.journal).entries) == 1
    assert not archive.screenings.exists()


def test_what_a_stopped_command_left_of_one_is_no_part_of_the_archive(archive):
    archive.screenings.mkdir()
    (archive.screenings / 'half.json').write_text('{')
    keep(now())
    hold(archive)
    kept_ones = records(one.name for one in archive.screenings.iterdir())
    assert kept_ones == [last(archive).what.screening]


def test_where_there_can_be_none_is_told_before_anything_begins():
    def site(*partitions):
        return {'systems': [{'name': 'generic', 'partitions': [*partitions]}], 'environments': []}

    local = {'name': 'node', 'scheduler': 'local', 'features': ['tcp']}
    slurm = [{'name': name, 'scheduler': 'slurm', 'features': ['tcp']} for name in 'ab']
    assert partition_to_screen(site(local), small()) == ''
    with pytest.raises(AssayError, match=r'^screening_first of the contract: generic has no part'):
        partition_to_screen(site(local), small(GENERIC))
    with pytest.raises(AssayError, match=r'several partitions.*correct system, or leave out scree'):
        partition_to_screen(site(*slurm), small(GENERIC))


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
        hold(archive, contracts.read_contract(archive.contract))
    keep(now(day=1))
    hold(archive, contracts.read_contract(archive.contract))
    close(archive)
    sign(archive)
    return SimpleNamespace(archive=archive, names=records(last_screened(archive).what.files))


def last_screened(archive):
    return journal.of(Screened, journal.read_journal(archive.journal).entries)[-1]


def told(archive):
    return '\n'.join(verify_archive(archive.folder, TRUSTED).lines())


def test_one_that_was_signed_is_judged_once_more(signed):
    found = told(signed.archive)
    first, bad, good = (name.rpartition('/')[2] for name in signed.names)
    assert f'right: the screening {bad}, held against 1 earlier one, found n3 is bad' in found
    assert f'right: the screening {good}, held against 2 earlier ones, found nothing' in found
    assert first not in found
    assert found.endswith('VERIFIED: it is what all parties signed')


def changed(archive, change):
    """With all checksums made again."""
    name = last_screened(archive).what.screening
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
    assert 'decisions.json' in told(archive)


def test_a_file_that_is_changed_removed_or_added(signed):
    path = signed.archive.folder / signed.names[0]
    data = path.read_bytes()
    path.write_bytes(data.replace(b'n15', b'n51'))
    assert f'{signed.names[0]} was changed: entry 3 of the journal' in told(signed.archive)
    path.unlink()
    assert f'{signed.names[0]} was removed: entry 3 of the journal' in told(signed.archive)
    path.write_bytes(data)
    write_screening(path.with_name('9.json'), screening())
    assert 'screenings/9.json: no entry of the journal tells of it' in told(signed.archive)


def test_an_entry_that_tells_of_another_file(signed):
    def change(entries):
        entries[2]['what']['screening'] = signed.names[0].rpartition('/')[2]

    remake(signed.archive, change)
    assert 'is not the newest of the screenings that it tells of' in told(signed.archive)


def slower(one):
    return replace(one, values={name: 0.6 * rates for name, rates in one.values.items()})


BAD = {('dgemm alone', 3): 0.7}


def test_what_one_fabric_shows_another_does_not_clear(archive):
    keep(slow_links(now(), lambda a, b: {a, b} == {2, 9}, 3.0, alone=True))
    with pytest.raises(AssayError, match='the link between n2 and n9 is bad'):
        hold(archive)
    bad = last(archive).what.screening
    keep(replace(now(day=1), fabric='ucx-tcp'))
    with pytest.raises(AssayError) as raised:
        hold(archive)
    asks = '--environment openmpi --fabric tcp'
    told = f'found the link between n2 and n9 is bad (only `assay screen {asks}` of all nodes can'
    assert f'--from {archive.screenings / bad}`, repair' in str(raised.value)
    assert f'run `assay screen --system made:up {asks}`, and then' in str(raised.value)
    assert condition(archive) == ('undecided', f'{told} clear that)')
    keep(now(day=2))
    hold(archive)
    assert condition(archive) == ('met', 'found nothing')


def test_what_nobody_was_told_of_is_judged_as_well(archive):
    keep(now(slow=BAD))
    keep(replace(now(day=1), environment='mpich'))
    with pytest.raises(AssayError, match='the screening found: n3 is bad'):
        hold(archive)
    assert [one.what.kind for one in journal.read_journal(archive.journal).entries][1:] == [
        'screened'
    ] * 2
    assert condition(archive)[0] == 'undecided'


def test_one_of_some_nodes_clears_nothing(archive):
    keep(now(slow=BAD))
    keep(now(n=1))
    with pytest.raises(AssayError, match='the screening left out 1 node'):
        hold(archive, small(ASKED.replace('may_be_missing: 1', 'may_be_missing: 0')))
    keep(replace(now(day=1), fabric='ucx-tcp'))
    contract = small(ASKED.replace('may_be_missing: 1', 'may_be_missing: 0'))
    with pytest.raises(AssayError, match='n3 is bad'):
        hold(archive, contract)
    found = status_of(contract, journal.read_journal(archive.journal).entries, {})
    assert 'n3 is bad' in found.conditions[-1].reason


def test_earlier_ones_that_were_removed_are_held_against_from_the_folder(signed_again):
    archive = signed_again
    assert len(records(last_screened(archive).what.files)) == 6
    assert 'everything is slower than before' in last_screened(archive).what.found

    def change(entries):
        files = entries[-2]['what']['files']
        first = min(records(files))
        for name in (first, outputs.outputs_file(Path(first)).as_posix()):
            files.pop(name)

    assert told(archive).count('WRONG') == 0
    remake(archive, change)
    assert 'was told of before, and this one was not held against it' in told(archive)


@pytest.fixture
def signed_again(tmp_path, monkeypatch):
    """One of which the earlier screenings were removed after they were told of."""
    text = CONTRACT.replace('system: golden', 'system: made:up') + 'screening_first: true\n'
    archive = begun(tmp_path, monkeypatch, text, 'made:up')
    before = [keep(screening(day=day)) for day in range(4)]
    for day in (4, 5):
        keep(slower(now(day=day)))
        with pytest.raises(AssayError, match='everything is slower than before'):
            hold(archive, contracts.read_contract(archive.contract))
        for path in before:
            path.unlink(missing_ok=True)
    close(archive)
    sign(archive)
    return archive


def test_entries_that_are_left_out_are_missed(signed):
    def change(entries):
        del entries[1]

    remake(signed.archive, change)
    assert f'nobody was told what {signed.names[1]} found' in told(signed.archive)


def test_the_one_that_is_judged_began_last(signed):
    path = signed.archive.folder / signed.names[0]
    write_screening(path, replace(screening(), begun=datetime.now(timezone.utc)))
    remake(signed.archive)
    assert 'is not the newest of the screenings that it tells of' in told(signed.archive)


def test_nodes_that_nothing_could_judge_are_told(archive):
    keep(now(n=2))
    with pytest.raises(AssayError, match=r'found nothing; n\[0-1\] could not be judged: it takes'):
        hold(archive)
    assert condition(archive) == ('undecided', 'found nothing; n[0-1] could not be judged')
    keep(now(n=6, facts={i: {'cpus': 8} for i in range(2)}))
    hold(archive)
    assert condition(archive) == ('met', 'found nothing; n[0-1] could not be judged')
    told_of = [*screening_summary(journal.read_journal(archive.journal).entries)]
    assert told_of[1].endswith('found nothing; n[0-1] could not be judged')


def test_one_that_left_out_nodes_is_none_of_the_machine(archive):
    keep(now())
    hold(archive)
    more = small(ASKED.replace('number: 2, may_be_missing: 1', 'number: 17'))
    one = status_of(more, journal.read_journal(archive.journal).entries, {}).conditions[-1]
    told = 'the screening before the first run left out 1 node'
    assert (one.word, one.reason) == ('undecided', told)


def test_cases_on_nodes_that_were_not_screened(archive):
    keep(now())
    hold(archive)
    ran = [CaseRun(1, 'x', 'pass', ('n1', 'n99'))]
    found = screening_status(small(ASKED), journal.read_journal(archive.journal).entries)
    one = conditions(small(ASKED), ran, 0, found)[-1]
    assert one.word == 'undecided'
    assert one.reason.endswith('found nothing; cases were run on n99, which it left out')


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'begun': datetime(2100, 1, 1, tzinfo=timezone.utc)}, 'was not made between the beginni'),
        ({'system': 'old:up'}, 'the screening is of old:up, and the contract is for made:up'),
    ],
)
def test_what_would_not_be_verified_is_not_told(archive, change, words):
    path = keep(now())
    write_screening(path, replace(now(), **change))
    with pytest.raises(AssayError, match=words):
        hold(archive)
    assert len(journal.read_journal(archive.journal).entries) == 1
    assert [*archive.screenings.iterdir()] == []


def test_earlier_ones_of_another_system_are_not_held_against(archive):
    path = keep(screening())
    write_screening(path, replace(screening(), system='old:up'))
    keep(now())
    hold(archive)
    assert len(records(last(archive).what.files)) == 1


def test_one_that_was_changed_in_the_folder_is_not_held_against(archive):
    first = keep(screening())
    keep(now())
    hold(archive)
    path = archive.screenings / first.name
    write_screening(path, slower(screening()))
    keep(now(day=1))
    with pytest.raises(AssayError, match=r'was changed: entry 2 of the journal tells what it was'):
        hold(archive)
    path.unlink()
    with pytest.raises(AssayError, match='entry 2 of the journal tells of cannot be read'):
        hold(archive)


def test_a_file_that_a_later_entry_tells_otherwise(signed):
    first = signed.names[0]
    path = signed.archive.folder / first
    write_screening(path, slower(screening(day=2)))

    def change(entries):
        entries[1]['what']['files'][first]['sha256'] = '0' * 64

    remake(signed.archive, change)
    found = told(signed.archive)
    assert f'entry 3 tells of {first} as another file than entry 2: it was changed' in found


# The outputs of their jobs ------------------------------------------------------------------------


def in_outputs(path, change):
    """Change what is kept of a job."""
    record = json.loads(gzip.decompress(outputs.outputs_file(path).read_bytes()))
    change(record)
    outputs.outputs_file(path).write_bytes(gzip.compress(json.dumps(record).encode()))


@changing
def in_file(record, name, change):
    """A change of one of a job's files."""
    content = json.loads(record['files'][name])
    change(content)
    record['files'][name] = json.dumps(content)


def of_node(mode, what, value):
    return in_file('nodes/result.json', lambda one: one['results'][3][mode].update({what: value}))


def of_pair(number, value):
    def change(content):
        content['pairs'][number]['together']['latency'] = value

    return in_file('first/result.json', change)


def last_kept(signed):
    return signed.archive.folder / signed.names[-1]


def test_their_figures_are_computed_once_more(signed):
    assert 'right: the figures of 3 screenings are what the outputs of their jobs say' in told(
        signed.archive
    )


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        *(
            (of_node(mode, what, [5e9] * 8), f'{what} {mode} of n3 is ')
            for mode in ('alone', 'together')
            for what in ('triad', 'dgemm', 'frequency')
        ),
        (of_node('alone', 'triad', [5e9] * 8), ', and 5e+09 by the outputs of its job'),
        (of_node('alone', 'triad', [5e9] * 7), 'its figures cannot be computed again: '),
        (of_node('together', 'taken', [0.5] * 8), 'taken together of n3 is 0, and 0.5 by'),
        (of_node('noise', 'share', [0.02] * 8), 'what interrupts the cores of n3 is not what the'),
        (of_node('facts', 'cpus', 2), 'what is known of n3 is not what the outputs'),
        (of_pair(17, 1.0), 'latency of n1 and n4 is '),
        (
            in_file(
                'result.json', lambda one: one['pairs'][0].update(alone=one['pairs'][1]['together'])
            ),
            'pairs alone of n0 and n1 is nan, and ',
        ),
        (
            in_file('result.json', lambda one: one['pairs'].pop()),
            'its pairs of nodes are not those',
        ),
        (in_file('misplaced.json', lambda one: one.update(n5='elsewhere')), 'what is wrong of n5'),
        (in_file('nodes/result.json', lambda one: one['results'].reverse()), 'its nodes are not'),
        (lambda one: one.update(shares_cpus=True), 'dgemm together, frequency together, triad tog'),
        (lambda one: one.update(screening='x.json'), 'its outputs are those of x.json'),
        (lambda one: one.update(form=2), 'it is not of form 1'),
        (lambda one: one['files'].pop('result.json'), 'it is not of form 1'),
        (lambda one: one['files'].update({'../x': ''}), 'it is not of form 1'),
        (lambda one: one['files'].update({'result.json': '[' * 10**5}), 'cannot be computed again'),
        (lambda one: one['files'].update({'result.json': 7}), 'cannot be computed again: '),
        (lambda one: one['files'].update({'result.json': '\ud800'}), 'cannot be computed again: '),
        (lambda one: one.pop('screening'), 'cannot be computed again: '),
        (of_node('alone', 'triad', ['fast'] * 8), 'cannot be computed again: '),
        (
            in_file('nodes/result.json', lambda one: one.update(results=7)),
            'cannot be computed again',
        ),
    ],
)
def test_outputs_that_were_changed(archive, change, words):
    path = keep(screening())
    in_outputs(path, change)
    try:
        found = '\n'.join(outputs.output_faults(path, read_screening(path)))
    except AssayError as error:
        found = f'its figures cannot be computed again: {error}'
    assert words in found


def test_outputs_that_were_changed_with_all_checksums_made_again(signed):
    in_outputs(last_kept(signed), of_node('alone', 'triad', [5e9] * 8))
    name = outputs.outputs_file(last_kept(signed)).name
    found = told(signed.archive)
    assert f'screenings/{name} was changed: ' in found and 'by the outputs' not in found
    remake(signed.archive)
    found = told(signed.archive)
    assert f'{signed.names[-1]}: triad alone of n3 is ' in found
    assert 'WRONG: the signature of Ada Buyer' in found
    in_outputs(last_kept(signed), of_node('alone', 'triad', [5e9] * 7))
    remake(signed.archive)
    found = told(signed.archive)
    assert f'{signed.names[-1]}: its figures cannot be computed again: ' in found


def test_a_record_that_was_changed_says_something_else_than_its_outputs(signed):
    def a_little(one):
        one['values']['triad alone'][5][2] *= 1 + 1e-12
        one['links']['bandwidth'][4][1] *= 1.001

    changed(signed.archive, a_little)
    found = told(signed.archive)
    assert 'triad alone of n5 is ' in found and 'bandwidth of n0 and n5 is ' in found
    assert 'is told of it' not in found  # it still finds the same


def test_a_record_and_outputs_that_fit_each_other(signed):
    """Nothing but a signature tells: who has no key cannot forge both."""

    def slower(entries):
        entries['results'][5]['alone']['triad'] = [1.1e9] * 8

    in_outputs(last_kept(signed), in_file('nodes/result.json', slower))
    changed(signed.archive, lambda one: one['values']['triad alone'].__setitem__(5, [1.1e9] * 8))
    found = verify_archive(signed.archive.folder, TRUSTED)
    assert not found.faults
    assert [one[:29] for one in found.of_signatures] == [
        'the signature of Ada Buyer is',
        'the signature of Vic Vendor i',
    ]


def test_outputs_of_two_that_are_exchanged(signed):
    records_of_both = [signed.archive.folder / name for name in signed.names[1:]]
    one, other = map(outputs.outputs_file, records_of_both)
    one.rename(one.with_name('aside'))
    other.rename(one)
    one.with_name('aside').rename(other)
    assert f'screenings/{one.name} was changed: ' in told(signed.archive)
    remake(signed.archive)
    found = '\n'.join(verify_archive(signed.archive.folder, TRUSTED).faults)
    assert all(f'its outputs are those of {path.name}' in found for path in records_of_both)
    for path in records_of_both:
        in_outputs(path, lambda record, path=path: record.update(screening=path.name))
    remake(signed.archive)
    found = told(signed.archive)
    assert 'its outputs are those of' not in found
    assert found.count(' by the outputs of its job') > 2


def test_outputs_that_are_left_out(signed):
    path = outputs.outputs_file(last_kept(signed))
    path.unlink()
    assert f'screenings/{path.name} was removed: entry 3 of the journal' in told(signed.archive)
    remake(signed.archive)
    words = 'the outputs of its job were not kept with it, so its figures cannot be computed again'
    assert f'{signed.names[-1]}: {words}' in told(signed.archive)


def test_outputs_of_no_screening(signed):
    path = outputs.outputs_file(signed.archive.screenings / '9.json')
    path.write_bytes(outputs.outputs_file(last_kept(signed)).read_bytes())

    def change(entries):
        one = checksums_in(signed.archive.folder)[f'screenings/{path.name}']
        entries[-2]['what']['files'] |= as_record({f'screenings/{path.name}': one})

    remake(signed.archive, change)
    assert f'screenings/{path.name} are the outputs of no screening' in told(signed.archive)


def test_outputs_that_are_no_file_of_theirs(signed, monkeypatch):
    path = outputs.outputs_file(last_kept(signed))
    data = path.read_bytes()
    for content in (b'', b'x', data[:-20], gzip.compress(b'[]'), gzip.compress(b'\xff')):
        path.write_bytes(content)
        remake(signed.archive)
        assert 'is damaged, or not the outputs of a screening' in told(signed.archive)
    path.write_bytes(data)
    remake(signed.archive)
    monkeypatch.setattr(outputs, 'MOST', 1000)
    assert 'it has more than 1000 bytes' in told(signed.archive)


def test_one_of_before_outputs_were_kept(archive):
    """It counts as an earlier one, and cannot be the one that is asked for."""
    outputs.outputs_file(keep(screening())).unlink()
    path = keep(now())
    data = outputs.outputs_file(path).read_bytes()
    outputs.outputs_file(path).unlink()
    with pytest.raises(AssayError, match='the outputs of its job were not kept with it'):
        hold(archive)
    assert [*archive.screenings.iterdir()] == []
    outputs.outputs_file(path).write_bytes(data)
    hold(archive)
    assert [*screening_summary(journal.read_journal(archive.journal).entries)][1:] == [
        'the figures of 1 screening are what the outputs of their jobs say',
        '1 earlier screening had no outputs of their jobs: that is not computed again',
    ]


def test_outputs_that_say_something_else_are_not_taken(archive):
    path = keep(now())
    in_outputs(path, of_node('alone', 'dgemm', [5e9] * 8))
    with pytest.raises(
        AssayError, match=r'dgemm alone of n3 is .* by the outputs of its job: remov'
    ):
        hold(archive)
    assert len(journal.read_journal(archive.journal).entries) == 1


def test_a_real_job_computes_to_what_was_kept(tmp_path):
    """Nodes that share CPUs have no pairs that count, and no figures together."""
    for is_here in (False, True):
        where = Where('vcluster:srun', 'slurm', is_here, 'mpich', 'ucx-tcp')
        one = collect(JOBS / 'Screen' / 'mpich-ucx-tcp', where, BEGUN, ['n1', 'n2'], {})
        path = tmp_path / f'{is_here}.json'
        write_screening(path, one)
        outputs.keep_outputs(path, JOBS / 'Screen' / 'mpich-ucx-tcp', where, ['n1', 'n2'])
        assert [*outputs.output_faults(path, read_screening(path))] == []


def test_outputs_that_are_told_of_later_than_their_screening_are_computed_as_well(signed_again):
    archive = signed_again
    first = min(records(last_screened(archive).what.files))
    path = outputs.outputs_file(archive.folder / first)
    path.write_bytes(b'anything')
    name = path.relative_to(archive.folder).as_posix()

    def change(entries):
        before, after = (one['what']['files'] for one in entries if one['kind'] == 'screened')
        del before[name]
        after |= as_record({name: checksums_in(archive.folder)[name]})

    remake(archive, change)
    assert f'{first}: its figures cannot be computed again: ' in told(archive)
