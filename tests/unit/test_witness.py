"""The report of the witness: reading it, refusing what is none, and which MPI it shows."""

import json
import math

import pytest

from assay import witness
from assay.mpis import FAMILIES
from assay.text import as_list, parse_cpus
from assay.witness.reading import WitnessError
from assay.witness.settings import machine_facts
from witnessed import by_mpi, call, entries, halo, host, process, report, sent, write

ENDED = {
    'rank': 1,
    'reason': 'SIGTERM',
    'inside': 'MPI_Recv',
    'since': 280.1,
    'wall': 300.2,
    'mpi_time': 290.0,
    'calls': {'MPI_Recv': call(9, 0.5, 72)},
}


def incomplete():
    """As it stands at the end of MPI_Init: placement only."""
    content = halo(2)
    for one in content['processes']:
        for name in ('sockets', 'wall', 'mpi_time', 'mpi_threads', 'calls', 'waits', 'partners'):
            del one[name]
    return {**content, 'complete': False}


@pytest.mark.parametrize(
    ('text', 'numbers'),
    [('', []), ('0', [0]), ('0-3,8', [0, 1, 2, 3, 8]), ('1,3,5-6', [1, 3, 5, 6])],
)
def test_lists_of_cpus(text, numbers):
    assert sorted(parse_cpus(text)) == numbers
    assert as_list(numbers) == text


@pytest.mark.parametrize('text', ['x', '1-', '-1', '1,,2', '0x3', ' 1'])
def test_what_is_no_list_of_cpus(text):
    with pytest.raises(ValueError, match='not a list of numbers'):
        parse_cpus(text)


def test_a_list_has_no_more_cpus_than_a_machine():
    assert len(parse_cpus(f'1-{1 << 20}')) == 1 << 20
    with pytest.raises(ValueError, match='more than 1048576 numbers: 0-1048576'):
        parse_cpus(f'3,0-{1 << 20}')
    some = ','.join(f'{start}-{start + 1023}' for start in range(0, 2 << 20, 1024))
    for text in (some, '0-1048575,0', '3-1,' * 9 + some):
        with pytest.raises(ValueError, match='more than 1048576 numbers'):
            parse_cpus(text)


def test_a_report_is_read(tmp_path):
    found = witness.read_witness(write(tmp_path / 'r.json', halo(4)))
    assert found.complete and found.has_profile and found.has_matrix
    assert found.processes[3].cpus == {3}
    assert found.processes[0].partners[0].sizes == {8192: 100}
    assert found.hosts[0].numa[1].cpus == {2, 3}
    assert found.ended == []
    content = halo(2)
    content['processes'][0]['partners'][0]['rank'] = -1  # spawned, or connected
    assert (
        witness.read_witness(write(tmp_path / 'r.json', content)).processes[0].partners[0].rank
        == -1
    )


def test_an_incomplete_report_and_what_ranks_left(tmp_path):
    other = {**ENDED, 'rank': 0, 'reason': 'exit', 'inside': None}
    del other['since']
    path = write(tmp_path / 'r.json', incomplete(), [ENDED, other])
    # A rank that is killed while it writes leaves a part of a line.
    with path.with_name('r.json.ranks').open('a') as lines:
        lines.write('{"rank": 3, "rea')
    found = witness.read_witness(path)
    assert not (found.has_profile or found.has_matrix)
    assert [one.rank for one in found.ended] == [0, 1]
    assert found.ended[1].inside == 'MPI_Recv' and found.ended[1].since == 280.1
    assert found.ended[0].inside is None and found.ended[0].since is None


def edited(edit, content=None):
    content = content or halo(2)
    edit(content)
    return content


@pytest.mark.parametrize(
    ('edit', 'words'),
    [
        (lambda r: r.update(schema=4), 'it has schema 4, and this Assay reads schema 3'),
        (lambda r: r.pop('schema'), 'schema: Field required'),
        (lambda r: r.pop('mpi'), 'mpi: Field required'),
        (lambda r: r.update(colour='red'), 'colour: Extra inputs'),
        (lambda r: r['mpi'].pop('path'), 'mpi.path: Field required'),
        (lambda r: r['processes'][1].pop('cpus'), 'processes.1.cpus: Field required'),
        (lambda r: r['processes'][1].update(cpus='a-b'), "processes.1.cpus: not a list .* 'a-b'"),
        (lambda r: r['processes'][1].update(cpus=3), 'processes.1.cpus: .* must be a string'),
        (lambda r: r['processes'][1].update(wall='1.0'), 'processes.1.wall: .* valid number'),
        (lambda r: r['processes'][1].update(wall=math.nan), 'processes.1.wall: .*finite'),
        (lambda r: r['processes'][0].update(mpi_time=math.inf), 'processes.0.mpi_time: .*finite'),
        (
            lambda r: r['processes'][1]['calls']['MPI_Isend'].update(count=1.5),
            'processes.1.calls.MPI_Isend.count: .* valid integer',
        ),
        (
            lambda r: r['processes'][0]['threads'][0].update(origin='moon'),
            'processes.0.threads.0.origin',
        ),
        (lambda r: r['processes'][1].update(host='n9'), "processes.1.host: 'n9' is not one"),
        (lambda r: r['hosts'].append(r['hosts'][0]), 'hosts: one of them is there twice'),
        (lambda r: r['processes'].reverse(), 'not those of ranks 0 to 1 in their order'),
        (lambda r: r['processes'].pop(), 'not those of ranks 0 to 1'),
        # Only a complete report has these, and then it must.
        (lambda r: r['processes'][1].pop('wall'), 'processes.1.wall: .* in a complete report'),
        (lambda r: r['processes'][1].pop('sockets'), 'processes.1.sockets: .* complete report'),
        (lambda r: r['processes'][1].pop('calls'), 'processes.1.calls: .* complete report'),
        (lambda r: r['processes'][1].pop('partners'), 'processes.1.partners: .* complete report'),
        (lambda r: r['processes'][1]['calls'].pop('MPI_Waitall'), 'processes.1.waits.MPI_Waitall'),
        (lambda r: r['processes'][1]['partners'][0].update(rank=2), 'partners: there is no rank 2'),
        (lambda r: r['processes'][1]['partners'][0].update(rank=-2), 'there is no rank -2'),
        (lambda r: r['processes'][1].update(collectives=[sent('0-2')]), 'no ranks: 0-2'),
        (lambda r: r['processes'][1].update(collectives=[sent('1-0')]), 'no ranks: 1-0'),
        (lambda r: r['processes'][1].update(collectives=[sent('1;2')]), 'ranks: .* pattern'),
        (lambda r: r['processes'][1].update(sent_by_mpi=[by_mpi(2)]), 'mpi: there is no rank 2'),
    ],
)
def test_a_wrong_report_is_named_with_its_field(tmp_path, edit, words):
    path = write(tmp_path / 'r.json', edited(edit))
    with pytest.raises(WitnessError, match=words) as error:
        witness.read_witness(path)
    assert str(error.value).startswith(f'{path}: ')


def test_sections_that_are_off_need_not_be_there(tmp_path):
    content = halo(2)
    content['sections'] = ['placement', 'fabric']
    for one in content['processes']:
        for name in ('mpi_time', 'calls', 'waits', 'partners'):
            del one[name]
    found = witness.read_witness(write(tmp_path / 'r.json', content))
    assert not (found.has_profile or found.has_matrix)


@pytest.mark.parametrize(('faults', 'end'), [(3, 'required'), (4, r'\(and 1 more\)')])
def test_many_faults_are_counted(tmp_path, faults, end):
    content = halo(16)
    for one in content['processes'][:faults]:
        del one['pid']
    with pytest.raises(WitnessError, match=rf'processes\.2\.pid: [^;]*{end}$'):
        witness.read_witness(write(tmp_path / 'r.json', content))


def test_no_report(tmp_path):
    with pytest.raises(WitnessError, match=r'^no witness report .*r\.json: was the library prel'):
        witness.read_witness(tmp_path / 'r.json')
    with pytest.raises(WitnessError, match='cannot be read'):
        witness.read_witness(tmp_path)


@pytest.mark.parametrize('text', ['', '{"schema": 1,', 'MPI_Init', '[1, 2'])
def test_what_is_no_json(tmp_path, text):
    (tmp_path / 'r.json').write_text(text)
    with pytest.raises(WitnessError, match=r'r\.json: not JSON'):
        witness.read_witness(tmp_path / 'r.json')


def test_a_wrong_line_of_a_rank_is_named(tmp_path):
    path = write(tmp_path / 'r.json', incomplete(), [ENDED, {**ENDED, 'wall': 'long'}])
    with pytest.raises(WitnessError, match=r'r\.json\.ranks: line 2: .*wall'):
        witness.read_witness(path)


def test_the_variables_of_a_rank_are_rank_0s_but_for_those_that_differ():
    assert two().environment_of(two().processes[1]) == {'OMP_NUM_THREADS': '1'}
    found = two(environment={'OMP_PLACES': 'cores', 'OMP_NUM_THREADS': None})
    assert found.environment_of(found.processes[0]) == {'OMP_NUM_THREADS': '1'}
    assert found.environment_of(found.processes[1]) == {'OMP_PLACES': 'cores'}
    assert found.variables() == {'OMP_NUM_THREADS': '- / 1', 'OMP_PLACES': '- / cores'}


def test_a_rank_of_schema_1_has_all_of_its_own_variables():
    found = two(environment={'OMP_PLACES': 'cores'}).model_copy(update={'schema_': 1})
    assert found.environment_of(found.processes[1]) == {'OMP_PLACES': 'cores'}
    assert found.environment_of(found.processes[0]) == {'OMP_NUM_THREADS': '1'}
    assert found.variables() == {'OMP_NUM_THREADS': '- / 1', 'OMP_PLACES': '- / cores'}


def test_values_of_many_ranks_are_counted():
    ranks = [
        process(r, differs={'environment': {'UCX_TLS': f'v{r}'}} if r else {}) for r in range(9)
    ]
    assert report(ranks).variables()['UCX_TLS'] == '- / v1 / v2 / v3 / ... (9 values)'


# Which MPI ------------------------------------------------------------------------------------

MPICH = FAMILIES['mpich']
OPENMPI = FAMILIES['openmpi']


def two(**differs):
    ranks = [process(0), process(1, (1,), 'n2', differs=differs)]
    return report(ranks, [host(), host('n2')])


def test_the_mpi_asked_for():
    assert witness.verify_mpi(two(), MPICH.library, MPICH.name) is None
    # What a rank asked MPI_Init_thread for is its own affair.
    whole = {**entries([])['mpi'], 'thread_level': 'multiple'}
    level = two(mpi=whole, environment={'OMP_NUM_THREADS': '2'})
    assert witness.verify_mpi(level, MPICH.library, MPICH.name) is None


def test_another_mpi():
    assert witness.verify_mpi(two(), OPENMPI.library, OPENMPI.name) == (
        "Open MPI was asked for, but the program ran on 'MPICH Version: 4.3.2' (/x/libmpi.so.12)"
    )


def test_a_rank_with_another_mpi():
    found = two(mpi={'library': 'MPICH Version: 4.0.2', 'path': '/y/libmpi.so.12'})
    assert witness.verify_mpi(found, MPICH.library, MPICH.name) == (
        "rank 1 on n2 uses another MPI than rank 0: 'MPICH Version: 4.0.2' (/y/libmpi.so.12) "
        "instead of 'MPICH Version: 4.3.2' (/x/libmpi.so.12)"
    )
    pair = [process(rank, differs={'mpi': {'path': '/y'}} if rank > 1 else {}) for rank in range(4)]
    assert 'rank 2 on n1 (and 1 more) uses' in witness.verify_mpi(
        report(pair), MPICH.library, MPICH.name
    )
    many = [process(rank, differs={'mpi': {'path': '/y'}} if rank else {}) for rank in range(4)]
    assert 'rank 1 on n1 (and 2 more) uses' in witness.verify_mpi(
        report(many), MPICH.library, MPICH.name
    )


def test_the_report_of_the_contract(tmp_path):
    """Every field once, with the values of docs/witness.md's example."""
    content = entries([process(0), process(1, (1,))])
    content['processes'][0]['sockets'] = [
        {'local': '127.0.0.1:1', 'remote': '127.0.0.1:2', 'device': 'lo', 'sent': 1, 'received': 2}
    ]
    content['hosts'][0]['devices'] = [{'name': 'lo', 'kind': 'loopback', 'sent': 0, 'received': 0}]
    text = json.dumps(content)
    path = tmp_path / 'r.json'
    path.write_text(text)
    assert witness.read_witness(path).processes[0].sockets[0].received == 2


@pytest.mark.parametrize(
    ('library', 'claimed', 'right'),
    [
        ('Open MPI v5.0.9, package: Open MPI me@n5.0.8 Distribution, ident: 5.0.9', '5.0.9', True),
        ('Open MPI v5.0.9, package: Open MPI me@n5.0.8 Distribution, ident: 5.0.9', '5.0.8', False),
        ('Open MPI v5.0.10, package: x', '5.0.1', False),
        ('Open MPI v5.1.0rc2, package: x', '5.1.0', False),
        ('MPICH Version:      4.3.2', '4.3', True),
        ('MPICH Version:\t4.0.2', '4.0.2', True),
        ('Intel(R) MPI Library 2021.16 for Linux* OS', '2021.16', True),
        ('Intel(R) MPI Library 2021.16 for Linux* OS', '2021.15', False),
        ('MPICH Version: unreleased development copy', '4.3.2', False),
    ],
)
def test_the_version_that_ran_is_the_one_that_is_claimed(library, claimed, right):
    found = two()
    found = found.model_copy(update={'mpi': found.mpi.model_copy(update={'library': library})})
    told = witness.verify_version(found, claimed, 'gcc-openmpi')
    if right:
        assert told is None
    else:
        assert told.startswith(f'environment gcc-openmpi says version {claimed} of its MPI, but ')
        assert '(/x/libmpi.so.12)' in told


def test_hosts_that_differ_are_named_in_one_order():
    def told(*machines):
        hosts = [host(name) | {'machine': machine} for name, machine in machines]
        found = machine_facts(report([process(0, on=hosts[0]['name'])], hosts))
        return {name: value for name, value in found.items() if value}

    old, new = {'kernel': '6.1.0', 'smt': 'on'}, {'kernel': '6.5.0'}
    assert told(('n1', {'processor': ' a   b ', 'smt': 'on'})) == {'processor': 'a b', 'smt': 'on'}
    assert told(('n1', old), ('n2', old)) == old
    mixed = {'kernel': '6.1.0 (n[1-2]), 6.5.0 (n3)', 'smt': 'on (n[1-2])'}
    assert told(('n3', new), ('n2', old), ('n1', old)) == mixed
    assert told(('n1', old), ('n2', old), ('n3', new)) == mixed
    assert told(('n1', None)) == {}
