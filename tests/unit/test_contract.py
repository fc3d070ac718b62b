"""A contract: what one says, and the sentence for each mistake in one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from assay import AssayError, paths
from assay.acceptance.contract import Contract, read_contract
from assay.checks.check import all_checks
from assay.config import settings
from assay.vcluster.cluster import Cluster
from contracts import SMALL, small

DOCS = paths.ROOT / 'docs'
EXAMPLE = DOCS / 'contract.yaml'
SCHEMA = DOCS / 'contract.schema.json'

TWO = SMALL.replace(
    'rules:',
    """\
  - {id: two, check: Ring, figure: hop_bandwidth, value: 1, unit: MB/s, better: higher,
     statistic: mean, runs: 2}
rules:""",
)


def refused(text: str) -> list[str]:
    with pytest.raises(AssayError) as raised:
        small(text)
    return str(raised.value).splitlines()


def test_what_it_says():
    contract = small()
    (one,) = contract.commitments
    assert (one.id, one.value, one.runs, one.statistic) == ('ring', 3.5, 5, 'median')
    assert contract.nodes.count == 2
    assert contract.stability.share == 0.9
    assert contract.waiver('ring') is None


def test_the_example_is_a_contract_and_explains_each_field():
    contract = read_contract(EXAMPLE)
    assert contract.name
    text = EXAMPLE.read_text()
    fields = {'expected_spread', 'largest_spread', 'screening_first', 'most_jobs', 'waivers'}
    assert all(f'{field}:' in text for field in fields)
    assert {'category', 'hours', 'consumer', 'may_be_missing'} <= set(
        text.replace(':', ' ').split()
    )


def test_the_one_for_the_virtual_cluster():
    """It asks for all nodes of one, on the partition that can be screened."""
    contract = read_contract(DOCS / 'contract-vcluster.yaml')
    nodes = Cluster().nodes
    assert contract.nodes.names == tuple(node.name for node in nodes)
    assert contract.system.partition(':')[::2] == (settings.CLUSTER_SYSTEM, 'srun')
    assert contract.screening_first
    assert f'{len(nodes)}_nodes' in {one.scale for one in contract.commitments}


@pytest.mark.parametrize('scale', ['3_nodes', '768_nodes', 'half', 'all'])
def test_any_number_of_nodes_is_a_scale(scale):
    assert small(SMALL.replace('scale: 1_node', f'scale: {scale}')).commitments[0].scale == scale


def test_the_schema_is_that_of_the_code():
    """To write it anew: remove it, run this, look at it."""
    now = json.dumps(Contract.model_json_schema(), indent=2) + '\n'
    if not SCHEMA.exists():
        SCHEMA.write_text(now)
    assert SCHEMA.read_text() == now


def test_the_digest_is_of_what_it_says():
    other = '# a comment\n' + SMALL.replace('hours: 2', 'hours: 2.0')
    assert small(other).digest == small().digest
    assert small(SMALL.replace('3.5', '3.50001')).digest != small().digest


@pytest.mark.parametrize(
    ('old', 'new', 'told'),
    [
        ('fabric: shm', 'fabric: shn', 'line 11: commitments[0].fabric: no fabric has this name; '),
        ('check: Ring', 'check: Rign', 'line 9: commitments[0].check: no check has this name; '),
        ('figure: hop_latency', 'figure: hop_latncy', 'line 10: commitments[0].figure: '),
        ('layout: packed', 'layout: pakced', 'line 12: commitments[0].layout: no layout has this'),
        (
            'scale: 1_node',
            'scale: 1_nodes',
            'line 13: commitments[0].scale: no scale has this name',
        ),
        (
            'better: lower',
            'better: less',
            "line 16: commitments[0].better: is 'less'; it must be h",
        ),
        (
            'value: 3.5',
            'value: .nan',
            'line 14: commitments[0].value: is nan; it must be what is c',
        ),
        (
            'value: 3.5',
            'value: .inf',
            'line 14: commitments[0].value: is inf; it must be what is c',
        ),
        (
            'value: 3.5',
            'value: yes',
            'line 14: commitments[0].value: is true; it must be what is c',
        ),
        ('value: 3.5', 'value: 0', 'line 14: commitments[0].value: is 0; it must be what is commi'),
        (
            'value: 3.5',
            'value: fast',
            "line 14: commitments[0].value: is 'fast'; it must be what i",
        ),
        (
            'runs: 5',
            'runs: 4',
            'line 18: commitments[0].runs: is 4; a median needs an odd number: 3 or',
        ),
        (
            'runs: 5',
            'runs: 5.0',
            'line 18: commitments[0].runs: is 5.0; it must be how many runs, a w',
        ),
        ('runs: 5', 'runs: 1', 'line 19: commitments[0].largest_spread: one run has no spread: '),
        (
            'unit: us',
            'unit: 1',
            'line 15: commitments[0].unit: is 1; it must be the unit of the fig',
        ),
        ('name: A machine', 'name: 2026-01-01', "line 1: name: '2026-01-01' is neither a text nor"),
        ('name: A machine', 'name:', 'line 1: name: is empty; it must be what is accepted, a text'),
        (
            'name: A machine',
            'nmae: A machine',
            'line 1: name: is missing: what is accepted, a text',
        ),
        (
            'system: generic',
            'systeem: generic',
            'line 5: systeem: no such field; did you mean system?',
        ),
        (
            '[Ada Buyer]',
            '[]',
            'line 3: parties.buyer.signers: is an empty list; it must be a list of',
        ),
        ('number: 2', 'number: 1', 'line 6: nodes.may_be_missing: all of 1 might be missing'),
        ('number: 2', 'names: [a, b], number: 2', 'line 6: nodes: give either names or number'),
        ('number: 2', 'names: [a, a, b]', 'line 6: nodes.names: a stands there 2 times: name each'),
        ('share: 0.9', 'share: 1.5', 'line 21: stability.share: is 1.5; it must be share of cases'),
        ('good: 0.02', 'good: 2', 'line 23: risks.good: is 2; it must be by which fraction above'),
        ('most_jobs: 20', 'most_jobs: 4', 'line 24: most_jobs: is 4; there must be at least 5, as'),
        ('most_jobs: 20', 'name: Other', 'line 24: name: stands twice, also in line 1: remove one'),
        (
            'text: As',
            'variables: [X], text: As',
            'line 20: rules.variables: of base no variable may',
        ),
        ('value: 3.5', '1: 3.5', 'line 14: commitments[0]: a key that is no text: quote it'),
        ('name: A machine', 'name: !!python/object:os.x {}', 'line 1: name: is a mapping; it must'),
        ('name: A machine', 'name: "a\\nb"', 'line 1: name: is '),
    ],
)
def test_a_mistake_is_told_with_its_line_and_field(old, new, told):
    assert SMALL.count(old) == 1
    assert any(
        line.startswith(f'contract.yaml, {told}') for line in refused(SMALL.replace(old, new))
    )


@pytest.mark.parametrize('signers', ['[Ada Buyer, Ada Buyer]', '[Vic Vendor, Ada Buyer]'])
def test_nobody_signs_twice_or_for_both(signers):
    (told,) = refused(SMALL.replace('signers: [Vic Vendor]', f'signers: {signers}'))
    assert 'times: each signs once, for one party' in told


@pytest.mark.parametrize(
    ('waivers', 'told'),
    [
        ('{commitment: rnig, by: Ada Buyer, reason: x}', "has the id 'rnig'; did you mean ring?"),
        ('{commitment: two, by: Vic Vendor, reason: x}', "'Vic Vendor' is no signer of the buyer"),
        ('{commitment: two, by: Ada Buyer, reason: ""}', "reason: is ''; it must be why, a text"),
        (
            '{commitment: two, by: Ada Buyer, reason: x}, {commitment: two, by: Ada Buyer, '
            'reason: y}',
            'two is given up twice',
        ),
        (
            '{commitment: two, by: Ada Buyer, reason: x}, {commitment: ring, by: Ada Buyer, '
            'reason: y}',
            'every commitment is given up',
        ),
    ],
)
def test_who_may_give_up_what(waivers, told):
    assert any(
        told in line for line in refused(TWO.replace('waivers: []', f'waivers: [{waivers}]'))
    )


def test_two_commitments_of_one_name():
    assert (
        "commitments[1].id: 'ring' is also in line 8"
        in refused(TWO.replace('id: two', 'id: ring'))[0]
    )


def test_all_mistakes_are_told_at_once_in_the_order_of_lines():
    found = refused(
        SMALL.replace('shm', 'shn').replace('3.5', 'fast').replace('runs: 5', 'runs: 0')
    )
    # Names are looked up once the rest is right.
    assert [line.partition(':')[0].rpartition(' ')[2] for line in found[:1]] == ['14']
    assert len(found) == 2
    names = refused(SMALL.replace('shm', 'shn').replace('packed', 'pakced'))
    assert [', line 11: ' in names[0], ', line 12: ' in names[1]] == [True, True]


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        ('a: &x 1\nb: *x\n', 'line 2: an alias (*x): write it out instead'),
        ('[' * 40 + ']' * 40, 'line 1: more than 12 levels deep'),
        ('a: [1\nb: 2\n', 'not valid YAML'),
        ('a: "\x00"\n', 'not valid YAML'),
        ('x' * 300_000, 'line 1: it has more than 262144 characters'),
        ('', 'line 1: the contract: is empty'),
        ('- 1\n', 'line 1: the contract: is a list'),
    ],
)
def test_what_no_person_writes(text, told):
    assert any(told in line for line in refused(text))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(AssayError, match='cannot be read: No such file'):
        read_contract(tmp_path / 'no.yaml')
    path = tmp_path / 'contract.yaml'
    path.write_bytes(b'name: \xff\n')
    with pytest.raises(AssayError, match='is no text in UTF-8'):
        read_contract(path)


def test_what_a_user_names_may_be_a_pipe(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, SMALL.encode())
    os.close(writing)
    assert read_contract(Path(f'/dev/fd/{reading}'), may_be_pipe=True) == small()
    os.close(reading)
    with pytest.raises(AssayError, match='cannot be read: Is a directory'):
        read_contract(tmp_path, may_be_pipe=True)


def test_a_figure_is_as_its_check_declares_it():
    """Also one of many of a kind, and one of the witness."""
    for check, figure, unit in (
        ('MiniFE', 'assembly_time', 's'),
        ('HPLSweep', 'speedup_48', '1'),
        ('Halo', 'imbalance_share', '1'),
    ):
        text = SMALL.replace('check: Ring', f'check: {check}').replace(
            'unit: us', f'unit: "{unit}"'
        )
        text = text.replace('hop_latency', figure).replace('    layout: packed\n', '')
        better = 'higher' if check == 'HPLSweep' else 'lower'
        small(text.replace('better: lower', f'better: {better}'))
    (told,) = refused(SMALL.replace('hop_latency', 'hop_bandwith_of_limit'))
    assert 'did you mean hop_bandwidth_of_limit?' in told
    (told,) = refused(SMALL.replace('hop_latency', 'speedup_48'))
    assert 'figure: no figure of Ring has this name; there are ' in told
    unit, better = refused(SMALL.replace('hop_latency', 'hop_bandwidth'))
    assert "line 15: commitments[0].unit: is 'us'; hop_bandwidth is measured in 'MB/s'" in unit
    assert 'line 16: commitments[0].better: is lower; of hop_bandwidth it is higher' in better


def test_a_file_of_checks_that_cannot_be_loaded_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'CHECKS', tmp_path)
    (tmp_path / 'bad.py').write_text('@simple_test\nclass Bad:\n    pass\n')
    with pytest.raises(AssayError, match=r'bad\.py cannot be loaded: NameError: name'):
        all_checks.__wrapped__()
