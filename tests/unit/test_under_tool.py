"""What mpiP and MUST report of programs of ours, and what follows from it.

Reports in tests/golden/mpip are of version 3.5 and two ranks on MPICH 4.0.2, each with what the
witness saw of another start. The page in tests/golden/must is of MUST 1.9.2 and a miniGhost that
receives as MPI_FLOAT what is sent as MPI_DOUBLE; others are made as MUST makes them.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.layout.layouts import NodeShape
from assay.programs.application import WrongAnswerError
from assay.programs.mpip import check_counts, read_profile
from assay.programs.must import REPORT, check_messages, read_messages
from assay.witness import read_witness
from checks import check_on

SYSTEM = Path(__file__).parents[1] / 'support' / 'system.py'
MPIP = Path(__file__).parents[1] / 'golden' / 'mpip'
MUST = Path(__file__).parents[1] / 'golden' / 'must'


@pytest.fixture
def compare(tmp_path):
    """A function that holds a program's report of mpiP, rewritten, against the witness's."""

    def compare(program, edit=lambda text: text, with_collectives=True):
        text = (MPIP / f'{program}.mpiP').read_text()
        (tmp_path / f'{program}.2.711.1.mpiP').write_text(edit(text))
        profile = read_profile(tmp_path, program)
        seen = read_witness(MPIP / f'{program}.witness.json')
        check_counts(profile, [rank.calls for rank in seen.processes], with_collectives)
        return profile

    return compare


def test_mpip_counts_what_the_witness_does(compare):
    profile = compare('hpl')
    assert profile.counts[0]['MPI_Isend'] == 320
    assert profile.sent[0]['MPI_Isend'] == 11512320
    assert 0 < profile.in_mpi < profile.seconds


def test_mpip_counts_bytes_to_nobody(compare):
    # Three of the four faces of a rank are at the boundary: MPI_PROC_NULL.
    words = 'counted 1836 calls of 180486144 bytes, the witness 1836 calls of 60162048 bytes'
    with pytest.raises(WrongAnswerError, match=words):
        compare('halo')


@pytest.mark.parametrize(
    ('pattern', 'other', 'words'),
    [
        (r'(Isend +\d+ +1 +)300\b', r'\g<1>299', 'MPI_Isend on rank 1: mpiP counted 299 calls'),
        (r'(Irecv +\d+ +0 +)300\b', r'\g<1>301', 'MPI_Irecv on rank 0: mpiP counted 301 calls'),
        (r'(Isend .*)11512320\.', r'\g<1>11512319.', 'of 11512319 bytes, the witness 320 calls'),
        (r'(Allgather +\d+ +0 +)1\b', r'\g<1>2', 'MPI_Allgather on rank 0'),
        # A collective that the witness did not see at all.
        (r'(?m)^Allgather ( +\d+ +0 .*)$', r'\g<0>\nAlltoall \g<1>', 'MPI_Alltoall on rank 0'),
        (r'(?m)^ +1 +\d+\.\d+ +\d+\.\d+ +\d+\.\d+\n', '', 'the report of mpiP is not whole'),
        (r'build/hpl', 'build/minife', 'is of /opt/assay/build/minife, and not of hpl'),
        (r'@ Command', '@', 'is of nothing, and not of hpl'),
        (r'(Irecv +\d+ +0 +)300\b', r'\g<1>30 0', 'mpiP counted 30 calls'),
    ],
)
def test_a_report_of_mpip_that_is_refused(compare, pattern, other, words):
    def edit(text):
        edited = re.sub(pattern, other, text)
        assert edited != text
        return edited

    with pytest.raises(WrongAnswerError, match=words):
        compare('hpl', edit)


def test_collectives_are_compared_where_their_number_is_known(compare):
    def edit(text):
        return re.sub(r'(Allgather +\d+ +0 +)1\b', r'\g<1>2', text)

    compare('hpl', edit, with_collectives=False)


@pytest.mark.parametrize('count', [0, 2])
def test_mpip_leaves_one_report(tmp_path, count):
    for number in range(count):
        (tmp_path / f'hpl.2.711.{number}.mpiP').touch()
    with pytest.raises(WrongAnswerError, match=f'mpiP left {count} reports, not 1'):
        read_profile(tmp_path, 'hpl')


@pytest.mark.parametrize(
    ('environment', 'launcher'),
    [
        ('openmpi', 'mpirun --map-by ppr:3:node --bind-to none --oversubscribe'),
        ('mpich', 'mpirun -ppn 3 -bind-to none'),
        ('intelmpi', 'mpirun -ppn 3'),
    ],
)
def test_must_has_a_process_of_its_own(tmp_path, environment, launcher):
    # Two cores: the third process shares one.
    where = (SYSTEM, 'golden', tmp_path, 'apps/tools', 'Must', environment)
    with check_on(*where, code='minimd') as (check, partition, environ):
        check.installed = SimpleNamespace(path='/opt/must/bin/{}'.format)
        check.setup(partition, environ)
        line = check.line_under_tool('/built/minimd', '-n', '100')
    env, _, command = line.partition(' timeout 240 /opt/must/bin/mustrun ')
    # What is behind the number mustrun takes for the program: the launcher's options are no part.
    assert command == '--must:np -n -n 2 /built/minimd -n 100'
    pinning = {'intelmpi': 'I_MPI_PIN=0 I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0 '}
    assert env == (
        f"env -u LD_PRELOAD {pinning.get(environment, '')}MUST_MPIEXEC='{launcher}' "
        f'XDG_CACHE_HOME=$PWD'
    )


@pytest.mark.parametrize(('cores', 'ranks'), [(2, 2), (3, 2), (8, 7), (128, 16)])
def test_must_leaves_a_core_for_its_process(tmp_path, monkeypatch, cores, ranks):
    with check_on(SYSTEM, 'golden', tmp_path, 'apps/tools', 'Must', 'openmpi') as (check, _, _):
        monkeypatch.setattr(type(check), 'node', NodeShape(cores, numa_domains=1))
        assert check.ranks_per_node == ranks


@pytest.mark.parametrize(
    ('tool', 'code', 'option', 'steps'),
    [
        ('Must', 'minimd', '-n', '100'),
        ('Must', 'minighost', '--num_tsteps', '20'),
        ('MpiP', 'minimd', '-n', '2000'),
    ],
)
def test_must_watches_few_steps(tmp_path, tool, code, option, steps):
    where = (SYSTEM, 'golden', tmp_path, 'apps/tools', tool, 'openmpi')
    with check_on(*where, code=code) as (check, partition, environ):
        check.setup(partition, environ)
        arguments = check.asked.arguments
    assert arguments[arguments.index(option) + 1] == steps


#: The head and the end of a page, and a message: a row that is shown, and a hidden one with all.
HEAD = '<html><body><table><tr><td width="7%"><b>Rank(s)</b></td><td><b>Type</b></td></tr>\n'
END = '<p><b>MUST has completed successfully</b>, end date: Sun Nov 29.</p></body></html>'
ROW = (
    '<tr onclick="showdetail(this, \'detail0\');"><td class={0}o1 c1>{1}</td><td class={0}o2 c2>'
    '<b>{2}</b></td><td class={0}o3 c3><div class="shortmsg">{3}</div></td></tr><tr>'
    '<td colspan="3" id="detail0"><div>Details:</div><table><tr><td><b>Message</b></td></tr><tr>'
    '<td class={0}o3 c3>{3}</td><td class={0}o4 c4>{4}</td><td class={0}o5 c5>&nbsp;</td></tr>'
    '</table></td></tr>\n'
)
LEAK = ROW.format('e', '0-1', 'MUST_ERROR_LEAK_REQUEST', '1 request is not<br>freed', 'MPI_Irecv')
MISMATCH = ROW.format('e', '1', 'Error', 'MPI_INT &amp; MPI_FLOAT', 'MPI_Recv called from a.c:12')
ZERO = ROW.format('w', '1', 'Warning', 'count is zero', 'At:<br>\n<b>MPI_Send</b>call MPI_Send')
NOTHING = ROW.format('i', '&nbsp;', 'Information', 'nothing was detected', '&nbsp;')
DEADLOCK = ROW.format('e', '&nbsp;', 'MUST_ERROR_DEADLOCK', 'a deadlock', '&nbsp;')


def must(folder, *parts):
    (folder / REPORT).write_text(''.join(parts))
    return check_messages(read_messages(folder))


def test_must_finds_nothing(tmp_path):
    assert must(tmp_path, HEAD, NOTHING, END) == []


def test_what_must_warns_of_is_told(tmp_path):
    assert must(tmp_path, HEAD, ZERO, END) == ['rank 1: count is zero (At: MPI_Send call MPI_Send)']


@pytest.mark.parametrize(
    ('parts', 'words'),
    [
        ((HEAD, LEAK, END), 'MUST found an error: rank 0-1: 1 request is not freed (MPI_Irecv)'),
        (
            (HEAD, ZERO, MISMATCH, LEAK, END),
            'MUST found an error: rank 1: MPI_INT & MPI_FLOAT (MPI_Recv called from a.c:12) '
            '(and 1 more)',
        ),
        ((HEAD, DEADLOCK), 'MUST did not come to its end: a deadlock'),
        ((HEAD,), 'MUST did not come to its end: it says not why'),
        ((HEAD, LEAK[120:], END), f'{REPORT} is not a report of MUST that is known'),
    ],
)
def test_what_must_finds_is_refused(tmp_path, parts, words):
    with pytest.raises(WrongAnswerError) as error:
        must(tmp_path, *parts)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ('parts', 'words'),
    [((HEAD, DEADLOCK), 'a deadlock; ended after 240 s'), ((HEAD, ZERO, END), 'ended after 240 s')],
)
def test_a_start_under_must_that_was_ended(tmp_path, parts, words):
    (tmp_path / REPORT).write_text(''.join(parts))
    with pytest.raises(WrongAnswerError) as error:
        read_messages(tmp_path, 'ended after 240 s')
    assert str(error.value) == f'MUST did not come to its end: {words}'


def test_a_type_that_is_not_the_sender_s(tmp_path):
    words = 'rank 1: A send and a receive operation use datatypes that do not match! .* 1 more'
    with pytest.raises(WrongAnswerError, match=words) as error:
        must(tmp_path, (MUST / 'minighost.html').read_text())
    assert 'sources/minighost/exchange.cpp:' in str(error.value)


def test_must_leaves_a_report(tmp_path):
    with pytest.raises(WrongAnswerError, match=f'MUST left no {REPORT}'):
        read_messages(tmp_path)
