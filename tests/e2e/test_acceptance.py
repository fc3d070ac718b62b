"""The acceptance of this machine by a tiny contract: killed half way, gone on with, and signed."""

import json
import subprocess
import time

import pytest

from assay import paths
from assay.acceptance import journal
from command import assay
from families import FOUND
from roads import Road

# Any machine meets it, also a busy one; half of the cases may fail, as where others use the node.
CONTRACT = """\
name: A tiny machine
parties:
  buyer: {name: University, signers: [Ada Buyer]}
  vendor: {name: Computers, signers: [Vic Vendor]}
system: generic
nodes: {number: 1}
commitments:
  - {id: ring, check: Ring, figure: hop_latency, fabric: shm, layout: packed, environment: mpich,
     value: 100000, unit: us, better: lower, statistic: maximum, runs: 2, expected_spread: 0.1}
rules: {category: base, text: As it is delivered.}
stability: {hours: 0, share: 0.1, most_failed_nodes: 1}
risks: {producer: 0.05, consumer: 0.05, good: 0.5, bad: 0.5}
most_jobs: 12
"""


@pytest.fixture
def contract(tmp_path):
    path = tmp_path / 'contract.yaml'
    path.write_text(CONTRACT)
    return path


def kinds(folder):
    return [
        (one.what.kind, getattr(one.what, 'run', None))
        for one in journal.read_journal(folder / 'journal.jsonl').entries
    ]


def started(folder):
    path = folder / 'journal.jsonl'
    return path.exists() and ('started', 1) in kinds(folder)


@pytest.mark.alone  # beside other tests each of its jobs waits for them to leave
@pytest.mark.slow
@pytest.mark.skipif('mpich' not in FOUND, reason='needs the mpich wheel')
def test_killed_gone_on_with_and_signed(tmp_path):
    """The second part of the road, with a contract that is for this machine and asks no screening.

    The first is in test_vcluster.py.
    """
    (tmp_path / 'assay').symlink_to(paths.ROOT / 'assay')
    contract = tmp_path / 'docs' / 'contract-vcluster.yaml'
    contract.parent.mkdir()
    contract.write_text(CONTRACT)
    folder = tmp_path / 'acceptance'
    with Road('accept-a-machine.md', since='4. Measure', root=tmp_path) as road:
        measure = road.next('./assay accept run ')
        with subprocess.Popen(
            ['bash', '-c', f'exec {measure}'],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            # However long others have the turn: what hangs is ended by the limit of all tests.
            while not started(folder):
                assert process.poll() is None, process.stdout.read()
                time.sleep(0.05)
            process.kill()
        assert kinds(folder) == [('begun', None), ('started', 1)]

        status = road.next('./assay accept status acceptance')
        ended = road.type(status)
        assert ended.returncode == 3
        assert 'NOT DECIDED' in ended.stdout

        ended = road.type(measure)
        told = kinds(folder)
        assert told[2:4] == [('interrupted', 1), ('resumed', None)], ended.stdout + ended.stderr
        ran = [run for kind, run in told if kind == 'ended']
        assert ran == [*range(2, 2 + len(ran))]
        said = road.type(status, '--json')
        found = json.loads(said.stdout)
        # Each disturbed job is followed by another, until none of those agreed is left.
        assert (ended.returncode == 0) == (found['verdict'] == 'ACCEPTED') or found['jobs'] >= 12
        assert found['jobs'] >= 1 + len(ran)
        assert found['runs'][0]['word'] == 'interrupted'
        assert len(found['commitments'][0]['values']) == 2 or found['jobs'] >= 12

        other = tmp_path / 'other.yaml'
        other.write_text(CONTRACT.replace('100000', '200000'))
        refused = assay('accept', 'run', other, '--folder', folder)
        assert refused.returncode == 2
        assert 'was begun with another contract' in refused.stderr

        ended = road.type(road.next('./assay accept report acceptance'))
        assert ended.returncode == said.returncode, ended.stderr
        report = (folder / 'report' / 'report.md').read_text()
        assert f'**{found["verdict"]}**' in report
        assert '| 1 | interrupted |' not in report and 'interrupted' in report

        assert assay('accept', 'verify', folder).returncode == 1  # nobody has signed
        for _ in range(2):
            for beginning in ('./assay accept key ', './assay accept sign acceptance '):
                ended = road.type(road.next(beginning))
                assert ended.returncode == 0, ended.stderr
        ended = road.type(road.next('./assay accept verify acceptance '))
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert ended.stdout.count('right: Ada Buyer signed for the buyer on ') == 1
        assert ended.stdout.endswith('VERIFIED: it is what all parties signed\n')


def test_a_wrong_contract_is_no_verdict(contract, tmp_path):
    contract.write_text(CONTRACT.replace('check: Ring', 'check: Rign'))
    for command in (['plan', contract], ['run', contract, '--folder', tmp_path / 'f']):
        ended = assay('accept', *command)
        assert ended.returncode == 2
        assert 'line 8: commitments[0].check: no check has this name; did you mean' in ended.stderr
    assert not (tmp_path / 'f').exists()


def test_a_screening_that_cannot_be_made_is_told_before_anything_begins(contract, tmp_path):
    contract.write_text(f'{CONTRACT}screening_first: true\n')
    ended = assay('accept', 'run', contract, '--folder', tmp_path / 'f')
    assert ended.returncode == 2
    assert 'screening_first of the contract: generic has no partition with a' in ended.stderr
    assert not (tmp_path / 'f').exists()
