"""Whatever is changed in an acceptance that was signed is found, and told."""

import json
import os
import random
import shutil
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accepted import (
    CONTRACT,
    KEYS,
    TRUSTED,
    close,
    end,
    flipped,
    later,
    ran,
    remake,
    sign,
    start,
)
from assay import AssayError
from assay.acceptance import archive as archives
from assay.acceptance import contract as contracts
from assay.acceptance import journal, signatures
from assay.acceptance.archive import Archive
from assay.acceptance.files import canonical
from assay.acceptance.journal import Resumed
from assay.acceptance.status import status_in
from assay.acceptance.verify import assert_may_be_signed, verify_archive
from assay.results.reframe_report import name_of
from changing import changing
from golden_jobs import FILES, JOBS, chosen

#: Single bytes that are changed, of all files together, at least.
FLIPS = 1000

RUNS = (('Ring/mpich-shm', 'PointToPoint/openmpi-shm'),) * 2


def begin(folder, text=CONTRACT, runs=RUNS, system='golden'):
    """An acceptance with some runs, that is not closed."""
    contract = folder / 'contract.yaml'
    contract.write_text(text)
    archive = archives.create_archive(folder / 'accepted', contract, system)
    for number, goldens in enumerate(runs, 1):
        add_run(archive, folder / f'run-{number}', goldens, f'{number}-{folder.name}')
    return archive


def add_run(archive, folder, goldens, uuid):
    folder.mkdir()
    cases = []
    for place, one in enumerate(goldens):
        golden = JOBS / one
        fabric = golden.name.partition('-')[2]
        cases.append(ran(folder, place, FILES, golden, chosen(golden.parent.name, fabric)))
    begun, number = time.time(), start(archive, [name_of(case).title for case in cases])
    end(archive, number, folder, cases, uuid, begun)


@pytest.fixture(scope='module')
def signed(tmp_path_factory):
    archive = begin(tmp_path_factory.mktemp('signed'))
    close(archive)
    sign(archive)
    return archive


@pytest.fixture
def copy(signed, tmp_path):
    """One to change."""
    return copied(signed, tmp_path)


def copied(archive, folder):
    shutil.copytree(archive.folder, folder / 'copy')
    return Archive(folder / 'copy')


def wrong(archive, trusted=TRUSTED):
    """What is told of an archive that is not right."""
    found = verify_archive(archive.folder, trusted)
    assert not found.is_right
    return '\n'.join(found.lines())


def test_the_untouched_one_is_right(copy):
    found = verify_archive(copy.folder, TRUSTED)
    told = '\n'.join(found.lines())
    assert found.is_right, told
    assert ' figures of 2 runs are what their outputs say' in told
    assert 'the decisions and the report follow from the figures: ACCEPTED' in told
    assert 'Ada Buyer signed for the buyer on ' in told
    assert told.endswith('VERIFIED: it is what all parties signed')
    assert json.loads(found.as_json())['verdict'] == 'VERIFIED'


def test_whose_keys_they_are_is_not_known_without_them(copy):
    (one,) = [key for name, key in TRUSTED.items() if name == 'Ada Buyer']
    found = verify_archive(copy.folder, {'Ada Buyer': one})
    assert found.is_right and found.unknown_keys == ['Vic Vendor']
    told = '\n'.join(found.lines())
    assert 'not known: whether the keys are those of Vic Vendor' in told
    assert told.endswith('VERIFIED: it is what was signed with these keys')


def test_any_byte(copy):
    """A byte of each file at many places: what was changed is named."""
    lot = random.Random(2026)
    files = [path for path in sorted(copy.folder.rglob('*')) if path.is_file()]
    # With a signature changed all figures are computed again, which takes longer.
    each = {path: 5 if path.parent == copy.signatures else 35 for path in files}
    count = 0
    for path in files:
        name, data = path.relative_to(copy.folder).as_posix(), path.read_bytes()
        for _ in range(each[path]):
            place = lot.randrange(len(data))
            path.write_bytes(flipped(data, place, lot.randrange(1, 256)))
            found = verify_archive(copy.folder, TRUSTED)
            told = [*found.faults, *found.of_signatures]
            assert any(path.name in one for one in told), f'{name}, byte {place}'
            count += 1
        path.write_bytes(data)
    assert count >= FLIPS
    assert verify_archive(copy.folder, TRUSTED).is_right


def without(number):
    return lambda entries: entries.pop(number)


def twice(number):
    return lambda entries: entries.insert(number, dict(entries[number]))


def moved(number):
    return lambda entries: entries.insert(number - 1, entries.pop(number))


@changing
def inserted(entries, number):
    new = {**entries[number], 'kind': 'resumed', 'what': {}}
    entries.insert(number, new)


@changing
def edited(entries, number):
    """One text that it has is another, or one file."""
    what = entries[number]['what']
    texts = [name for name, value in what.items() if isinstance(value, str)]
    what.update({texts[0]: 'another'} if texts else {'files': {}})


@changing
def set_back(entries, number):
    entries[number]['time'] = later(entries[number]['time'], -86400)


CHANGES = (without, twice, moved, inserted, edited, set_back)


def rewritten(archive, change):
    """Change lines of the journal, and nothing else: as with an editor."""
    entries = [json.loads(line) for line in archive.journal.read_bytes().splitlines()]
    change(entries)
    archive.journal.write_bytes(b''.join(canonical(one) + b'\n' for one in entries))


@pytest.mark.parametrize('change', CHANGES)
def test_an_entry_of_the_journal(copy, change):
    """Each, changed in each way; the file alone, and with the whole chain."""
    before = copy.journal.read_bytes()
    for number in range(1 if change is moved else 0, len(before.splitlines())):
        rewritten(copy, change(number))
        assert 'journal.jsonl' in wrong(copy), number
        copy.journal.write_bytes(before)
        remake(copy, change(number))
        assert 'WRONG: the signature of Ada Buyer' in wrong(copy), number
        copy.journal.write_bytes(before)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (without(2), 'entry 3 of the journal was removed: line 3 is entry 4'),
        (twice(2), 'entry 3 stands in line 4, after entry 3: it was repeated or moved'),
        (moved(3), 'entry 3 of the journal was removed: line 3 is entry 4'),
        (moved(3), 'entry 3 stands in line 4, after entry 4: it was repeated or moved'),
        (inserted(3), 'entry 4 stands in line 5, after entry 4: it was repeated or moved'),
        (edited(2), 'what stands before line 4 was changed: entry 4 was written after another'),
        (set_back(3), 'the clock was set back'),
        (without(0), 'entry 1 of the journal was removed'),
    ],
)
def test_what_is_told_of_an_entry(copy, change, words):
    rewritten(copy, change)
    assert words in wrong(copy)


def test_the_last_entries(copy, tmp_path):
    """Nothing in a chain tells that it went on: the signatures do."""
    for count in range(1, 5):
        shortened = copied(copy, tmp_path / f'{count}')
        lines = shortened.journal.read_bytes().splitlines(keepends=True)
        shortened.journal.write_bytes(b''.join(lines[:-count]))
        assert 'its last entry is' in wrong(shortened)
    # With all that the second run left, and a report that fits what is left.
    shortened = copied(copy, tmp_path / 'again')
    lines = shortened.journal.read_bytes().splitlines(keepends=True)
    shortened.journal.write_bytes(b''.join(lines[:3]))
    shutil.rmtree(shortened.run(2))
    close(shortened)
    told = wrong(shortened)
    assert (
        'was made when the journal had 6 entries, and it has 4: its last entries were removed'
        in told
    )


def test_a_run_that_is_left_out(copy):
    shutil.rmtree(copy.run(1))
    assert 'jobs/1/report.json was removed: entry 3 of the journal tells what it was' in wrong(copy)
    remake(copy, lambda entries: entries.__delitem__(slice(1, 3)))
    assert 'entry 2 starts run 2, and run 1 is the next' in wrong(copy)


def test_a_run_without_an_end(copy):
    remake(copy, without(4))
    told = wrong(copy)
    assert 'run 2 was started, and no entry tells how it ended: a run is left out' in told
    assert 'jobs/2/report.json: no entry of the journal tells of it' in told


def report_of(archive, number=1):
    path = archive.run(number) / archives.REPORT
    return path, json.loads(path.read_text())


def in_report(archive, change, number=1):
    """Change a run's report, and make all checksums and the chain fit: without the keys."""
    path, report = report_of(archive, number)
    change(report, report['runs'][0]['testcases'])
    path.write_text(json.dumps(report))
    remake(archive)


def test_each_figure_with_all_checksums_made_again(copy):
    """Whoever has no key, and makes everything else fit: signatures and outputs tell, both."""
    path, report = report_of(copy)
    before = path.read_bytes()
    cases = report['runs'][0]['testcases']
    changed = [(place, key) for place, case in enumerate(cases) for key in case['perfvalues']]
    for place, key in changed:

        def change(_, cases, place=place, key=key):
            values = cases[place]['perfvalues'][key]
            values[0] = values[0] * (1 + 1e-9) or 1e-9

        in_report(copy, change)
        told = wrong(copy)
        assert f'{key.rpartition(":")[2]} is ' in told and 'by the outputs' in told
        assert (
            'the signature of Vic Vendor is of a journal.jsonl whose entry 6 is another one' in told
        )
        path.write_bytes(before)


def swapped(_, cases):
    cases[0]['job_nodelist'] = ['node2']


def exchanged(_, cases):
    cases[0]['uuid'], cases[1]['uuid'] = cases[1]['uuid'], cases[0]['uuid']


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (swapped, 'its ranks ran on node1, and the report says on node2'),
        (exchanged, 'could not be computed again'),
        (lambda report, cases: cases.pop(), 'the report says of latency: met'),
        (
            lambda report, cases: cases[0].update(result='fail', fail_phase='sanity'),
            'the report says of ring: met',
        ),
        (
            lambda report, _: report['session_info'].update(uuid='other'),
            'its report is of another session than the journal tells',
        ),
        (
            lambda report, _: report['session_info'].update(time_start_unix=1.0),
            'and by the journal it ran from',
        ),
        (
            lambda report, _: report['session_info'].pop('time_end_unix'),
            'session_info: time_end_unix is missing',
        ),
    ],
)
def test_a_report_with_all_checksums_made_again(copy, change, words):
    in_report(copy, change)
    told = wrong(copy)
    assert words in told
    assert 'WRONG: the signature of Ada Buyer' in told


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (lambda what: what['cases'].pop(), 'run 1: its report has PointToPoint '),
        (lambda what: what['cases'].clear(), 'run 1: its report has Ring '),
        (
            lambda what: what.update(variables={'UCX_TLS': 'rc'}),
            'run 1: it was started with UCX_TLS, which the rules of the contract do not allow',
        ),
    ],
)
def test_what_a_run_was_started_with(copy, change, words):
    remake(copy, lambda entries: change(entries[1]['what']))
    assert words in wrong(copy)


def test_another_partition_than_the_contract_names(tmp_path):
    text = CONTRACT.replace('system: golden', 'system: golden:fast')
    archive = begin(tmp_path, text, system='golden:fast')
    close(archive)
    sign(archive)
    assert 'measured on the partition node, not on golden:fast' in wrong(archive)


def stands_now(archive):
    return status_in(archive, contracts.read_contract(archive.contract))


def test_where_it_stands_is_not_told_of_what_was_changed(copy):
    assert stands_now(copy).verdict.word == 'ACCEPTED'
    text = copy.contract.read_text()
    copy.contract.write_text(text.replace('value: 12.0', 'value: 99.0'))
    with pytest.raises(AssayError, match=r'contract.yaml was changed: its checksum'):
        stands_now(copy)
    copy.contract.write_text(text)
    path, report = report_of(copy)
    report['runs'][0]['testcases'][0]['perfvalues'] = {}
    path.write_text(json.dumps(report))
    with pytest.raises(AssayError, match=r'jobs/1/report.json was changed: its checksum'):
        stands_now(copy)
    path.unlink()
    with pytest.raises(AssayError, match=r'report.json: cannot be read'):
        stands_now(copy)


def test_a_report_that_is_none_ends_in_a_sentence(copy):
    in_report(copy, lambda report, _: report.update(runs=5))
    with pytest.raises(AssayError, match='not as ReFrame writes it: runs is no list'):
        stands_now(copy)


def test_a_run_that_is_told_twice(copy):
    """The better one, in place of the other."""
    for path in copy.run(1).rglob('*'):
        if path.is_file():
            target = copy.run(2) / path.relative_to(copy.run(1))
            target.write_bytes(path.read_bytes())
    uuid = report_of(copy)[1]['session_info']['uuid']
    remake(copy, lambda entries: entries[4]['what'].update(uuid=uuid))
    told = wrong(copy)
    assert 'run 2: its report is that of run 1' in told


def test_outputs_that_fit_a_changed_report(copy):
    """Nothing but a signature tells: who has no key cannot forge both."""
    (result,) = copy.run(1).glob('cases/0-0/result.json')
    text = result.read_text()
    assert '"program": "ring"' in text
    result.write_text(text + ' ')
    remake(copy)
    found = verify_archive(copy.folder, TRUSTED)
    assert not found.faults
    assert [one[:29] for one in found.of_signatures] == [
        'the signature of Ada Buyer is',
        'the signature of Vic Vendor i',
    ]


def test_decisions(copy):
    told = json.loads(copy.decisions.read_text())
    told['commitments']['ring']['value'] = 1.0
    copy.decisions.write_bytes(canonical(told) + b'\n')
    remake(copy)
    assert 'the report says of ring: met' in wrong(copy)


def test_what_people_read(copy):
    """Who closed it shows the other party a report that says something else, and has it signed."""
    path = copy.report / 'report.md'
    path.write_text(path.read_text().replace('**ACCEPTED**', '**NOT MET**'))
    remake(copy)
    shutil.rmtree(copy.signatures)
    with pytest.raises(AssayError, match=r'report\.md says something else than what is decided'):
        assert_may_be_signed(copy.folder)
    (copy.report / 'summary.txt').write_text('All is well.')
    remake(copy)
    assert 'report/summary.txt is nothing that Assay wrote' in wrong(copy)


def test_another_contract(copy):
    text = copy.contract.read_text()
    copy.contract.write_text(text.replace('value: 12.0', 'value: 1.0'))
    told = wrong(copy)
    assert (
        'contract.yaml was changed: it is not the contract that the acceptance was begun with'
        in told
    )
    remake(copy)
    told = wrong(copy)
    assert 'the report says of ring: met' in told and 'by the runs it is missed' in told
    assert 'the signature of Ada Buyer is of another contract' in told


def test_a_contract_for_another_system(copy):
    copy.contract.write_text(copy.contract.read_text().replace('system: golden', 'system: other'))
    remake(copy)
    assert 'entry 1 is of another system than the contract' in wrong(copy)


ADDED = {
    'file': lambda path: path.write_text('more'),
    'link': lambda path: path.symlink_to('/etc/hostname'),
    'folder link': lambda path: path.symlink_to('/etc'),
    'pipe': os.mkfifo,
}


@pytest.mark.parametrize('kind', ADDED)
def test_something_that_is_added(copy, kind):
    folders = [copy.folder, *(path for path in copy.folder.rglob('*') if path.is_dir())]
    assert len(folders) > 8
    for folder in folders:
        path = folder / 'more'
        ADDED[kind](path)
        assert 'more' in wrong(copy), folder
        path.unlink()
    assert verify_archive(copy.folder, TRUSTED).is_right


def test_a_file_in_the_place_of_which_there_is_a_link(copy, tmp_path):
    """What it leads to has the same content, today."""
    for name in ('contract.yaml', 'journal.jsonl', 'jobs/1/report.json', 'signatures/buyer-1.json'):
        path = copy.folder / name
        aside = tmp_path / path.name
        path.rename(aside)
        path.symlink_to(aside)
        try:
            told = wrong(copy)
        except AssayError as error:
            told = str(error)
        assert path.name in told
        path.unlink()
        os.link(aside, path)
        assert 'a hard link' in wrong(copy)
        path.unlink()
        aside.rename(path)


def test_a_name_that_leads_outside(copy):
    outside = copy.folder.parent / 'outside'
    outside.write_text('x')
    before = copy.journal.read_bytes()
    for name in ('../outside', str(outside), 'report/../../outside'):

        def add(entries, name=name):
            files = entries[-1]['what']['files']
            files[name] = next(iter(files.values()))

        remake(copy, add)
        assert f'{name} was removed: entry 6 of the journal' in wrong(copy)
        copy.journal.write_bytes(before)


def test_a_signature_that_is_removed(copy):
    for name, who in (
        ('buyer-1', 'Ada Buyer of the buyer'),
        ('vendor-1', 'Vic Vendor of the vendor'),
    ):
        path = copy.signatures / f'{name}.json'
        data = path.read_bytes()
        path.unlink()
        found = verify_archive(copy.folder, TRUSTED)
        assert found.word == 'NOT SIGNED' and not found.is_right
        assert f'MISSING: {who} has not signed' in '\n'.join(found.lines())
        path.write_bytes(data)
    shutil.rmtree(copy.signatures)
    assert verify_archive(copy.folder, {}).word == 'NOT SIGNED'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (CONTRACT, 'is of a journal.jsonl whose entry 6 is another one'),
        (CONTRACT.replace('12.0', '11.0'), 'is of another contract: it was made for another'),
    ],
)
def test_a_signature_of_another_acceptance(copy, tmp_path, text, words):
    folder = tmp_path / 'other'
    folder.mkdir()
    other = begin(folder, text)
    close(other)
    sign(other)
    for path in other.signatures.iterdir():
        (copy.signatures / path.name).write_bytes(path.read_bytes())
    assert words in wrong(copy)


def test_a_signature_of_another_signer(copy):
    buyer, vendor = copy.signatures / 'buyer-1.json', copy.signatures / 'vendor-1.json'
    vendor.write_bytes(buyer.read_bytes())
    told = wrong(copy)
    assert 'signatures/vendor-1.json is of Ada Buyer, and should be of Vic Vendor' in told


def test_a_signature_of_an_earlier_state(copy, tmp_path):
    """It was signed, then one run more was made and closed."""
    add_run(copy, tmp_path / 'more', RUNS[0], 'more')
    close(copy)
    told = wrong(copy)
    assert 'is of an earlier state, in which the journal had 6 entries of the 9 that' in told
    assert_may_be_signed(copy.folder)
    sign(copy)
    assert verify_archive(copy.folder, TRUSTED).is_right


def test_keys_of_somebody_else(copy):
    """Everything is made and signed anew, with keys that nobody knows."""
    strangers = {name: Ed25519PrivateKey.generate() for name in KEYS}
    sign(copy, strangers)
    assert verify_archive(copy.folder, {}).unknown_keys == [*KEYS]
    assert 'Ada Buyer signed with the key SHA256:' in wrong(copy)


def test_one_key_for_both_parties(copy):
    sign(copy, dict.fromkeys(KEYS, KEYS['Ada Buyer']))
    told = wrong(copy, {})
    assert 'Vic Vendor signed with the key of Ada Buyer: each needs a key of their own' in told


def test_a_clock_that_was_set_back_to_sign(copy):
    path = copy.signatures / 'buyer-1.json'
    record = json.loads(path.read_text())
    record.pop('signature')
    record['time'] = '2020-01-01T00:00:00+00:00'
    made = KEYS['Ada Buyer'].sign(signatures.DOMAIN + canonical(record)).hex()
    path.write_bytes(canonical(record | {'signature': made}) + b'\n')
    assert 'before the last entry of the journal: the clock was set back' in wrong(copy)


def test_a_signature_of_other_bytes(copy):
    """Without the words before them, the bytes could be signed for another purpose."""
    path = copy.signatures / 'buyer-1.json'
    record = json.loads(path.read_text())
    record.pop('signature')
    made = KEYS['Ada Buyer'].sign(canonical(record)).hex()
    path.write_bytes(canonical(record | {'signature': made}) + b'\n')
    assert 'buyer-1.json does not fit what it says: it was changed' in wrong(copy)


def test_nobody_signs_what_is_not_right(copy):
    (copy.report / 'report.md').write_text('all is well')
    with pytest.raises(AssayError, match=r'is not right, and is not signed: report/report\.md was'):
        assert_may_be_signed(copy.folder)


def test_nobody_else_signs(copy):
    with pytest.raises(AssayError, match="'Eve' is not one of those who sign by the contract: Ada"):
        sign(copy, {'Eve': KEYS['Ada Buyer']})


def test_what_is_not_closed_is_not_signed(tmp_path):
    archive = begin(tmp_path)
    with pytest.raises(AssayError, match='its last entry is no report: `assay accept report` clo'):
        assert_may_be_signed(archive.folder)


def test_an_entry_after_it_was_closed(copy):
    journal.append(copy.journal, Resumed())
    told = wrong(copy)
    assert 'is of an earlier state, in which the journal had 6 entries of the 7 that' in told
    assert 'its last entry is no report' in told


def test_it_is_verified_in_another_place(signed, tmp_path):
    """Nothing in it is a path of the machine that it was made on."""
    other = copied(signed, tmp_path / 'on' / 'another' / 'machine')
    shutil.rmtree(signed.folder.parent / 'run-1')
    assert verify_archive(other.folder, TRUSTED).is_right


def test_no_acceptance(tmp_path):
    with pytest.raises(
        AssayError, match=r'is no folder of an acceptance: there is no contract\.yaml'
    ):
        verify_archive(tmp_path, {})
