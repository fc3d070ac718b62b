"""The command `witness`: what it shows, of small and large jobs, and its exit codes."""

import pytest

from assay.commands import main as cli
from witnessed import call, halo, partner, socket, write


@pytest.fixture
def assay(monkeypatch, capsys):
    """Calls the command; returns its exit code (or sentence) and what it printed."""

    def run(*arguments, width=160):
        monkeypatch.setattr('sys.argv', ['assay', 'witness', *map(str, arguments)])
        monkeypatch.setenv('COLUMNS', str(width))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capsys.readouterr().out

    return run


def line(shown, start):
    """The cells of the line that starts so, with one space between them."""
    found = [one for one in shown.splitlines() if one.strip().startswith(start)]
    assert found, f'no line starts with {start!r} in:\n{shown}'
    return ' '.join(found[0].split())


def test_what_a_job_is_called_obeys_no_terminal(tmp_path, assay):
    """A report is what a program of anybody's left."""
    path = write(tmp_path / 'r.json', halo(2))
    hostile = r'\u001b[1A\u001b[2J\nPASSED\u202e'
    path.write_text(path.read_text().replace('n1', hostile).replace('./halo', hostile))
    _, shown = assay(path)
    assert shown.count(r'\x1b[1A\x1b[2J PASSED\u202e') >= 4  # command, placement, hosts, fabric
    assert shown.replace('\n', '').isprintable()
    assert not any(one.startswith('PASSED') for one in shown.splitlines())


def test_a_small_job(tmp_path, assay):
    code, shown = assay(write(tmp_path / 'r.json', halo(2)))
    assert not code
    assert shown.startswith('./halo --n 64\nranks: 2, hosts: 1, started 2026-11-21T06:10:00Z, wall')
    assert 'MPICH Version: 4.3.2 (/x/libmpi.so.12), thread level single' in shown
    assert line(shown, '1  n1') == '1 n1 101 1 1 0 0 1 1 default -'
    assert line(shown, 'n1  ') == 'n1 2 0-1 0-1 0-1 0: 0; 1: 1'
    assert line(shown.partition('Fabric')[2], 'n1') == 'n1 2 2.0 MB 0 B'
    assert 'Profile (30.0% of the time in MPI; 200 messages, 4000160 bytes):' in shown
    assert line(shown, 'MPI_Allreduce') == (
        'MPI_Allreduce 20 0.300000 50.0% 15.0% 0.100000 0.150000 0.200000 50.0% 160 B'
    )
    assert line(shown, 'mean') == 'mean 70.0% 17.3% 7.5% 3.9% 1.3%'
    assert '83.3% of the time in MPI was analysed for wait states' in shown
    assert 'An infinitely fast network would save at most 20.0%, ' in shown
    assert 'perfect balance at most 12.7%' in shown
    assert line(shown, '0  n1         0.8') == '0 n1 0.800000 80.0% 8.2% 11.8%'
    assert line(shown, '0  ->') == '0 -> 1 100 1.0 MB 10.0 kB'
    assert line(shown, '8192') == '8192 16383 200 ' + '#' * 40
    assert 'more' not in shown


def test_a_large_job_is_cut_and_counted(tmp_path, assay):
    code, shown = assay(write(tmp_path / 'r.json', halo(1000, 20)))
    assert not code
    assert len(shown.splitlines()) < 120
    for rest in ('... and 984 more', '... and 4 more', '... and 1984 more'):
        assert rest in shown
    assert 'MPI_Waitall' in shown and '\n  15  n1' in shown and '\n  16  n1' not in shown


@pytest.mark.parametrize('width', [60, 80, 100, 160])
def test_nothing_is_cut_in_a_narrow_window(tmp_path, assay, width):
    content = halo(2)
    for process in content['processes']:
        process['calls']['MPI_Reduce_scatter_block'] = call(123456, 0.12345, 10**9)
    _, shown = assay(write(tmp_path / 'r.json', content), width=width)
    row = line(shown, 'MPI_Reduce_scatter_block')
    assert row.startswith('MPI_Reduce_scatter_block 246912 0.246900 ')
    assert row.endswith(' 2.0 GB')
    assert ('avg s' in shown) == (width >= 100)
    assert '…' not in shown


def test_partners_outside_and_a_histogram_to_scale(tmp_path, assay):
    content = halo(2)
    content['processes'][0]['partners'] = [
        partner(-1, 1, 2 * 10**6, {1048576: 1}),
        partner(0, 40, 320, {8: 40}),
        partner(1, 80, 320, {0: 80}),
    ]
    content['processes'][1]['partners'] = []
    _, shown = assay(write(tmp_path / 'r.json', content))
    pairs = shown.partition('Matrix')[2]
    assert line(pairs, '0  ->') == '0 -> outside 1 2.0 MB 2.0 MB'
    assert '0  ->         0        40' in pairs and '0  ->         1        80' in pairs
    sizes = shown.partition('Sizes')[2]
    assert line(sizes, '0 ') == '0 0 80 ' + '#' * 40
    assert line(sizes, '8 ') == '8 15 40 ' + '#' * 20
    assert line(sizes, '1048576') == '1048576 2097151 1 #'


def test_hosts_decide_what_had_to_travel(tmp_path, assay):
    _, shown = assay(write(tmp_path / 'r.json', halo(4)))
    assert 'what the ranks of a host sent to each other, and' in shown
    _, shown = assay(write(tmp_path / 'r.json', halo(4, 2)))
    assert 'what the ranks of a host sent to other hosts, and' in shown
    # Of two neighbours in the ring one is on the other host.
    assert line(shown.partition('Fabric')[2], 'n2') == 'n2 2 2.0 MB 0 B'


def test_the_network_between_two_hosts(tmp_path, assay):
    content = halo(2, 2)
    ends = '10.0.0.1:1', '10.0.0.2:1'
    ways = {'segments': 2000, 'resent': 30, 'round_trip': 0.0021}
    for process, (local, remote) in zip(content['processes'], (ends, ends[::-1]), strict=True):
        process['sockets'] = [socket(local, remote, 10**6) | ways]
    _, shown = assay(write(tmp_path / 'r.json', content))
    assert line(shown.partition('Network')[2], 'n1') == 'n1 n2 4000 1.5% 2.100'
    assert 'The network was disturbed: 1.5% of the segments between n1 and n2' in shown


def test_devices_and_sections_that_are_off(tmp_path, assay):
    content = halo(2)
    content['hosts'][0]['devices'] = [
        {'name': 'eth0', 'kind': 'ethernet', 'sent': 1234, 'received': 5}
    ]
    content['sections'] = ['placement', 'fabric']
    _, shown = assay(write(tmp_path / 'r.json', content))
    assert line(shown, 'n1    eth0') == 'n1 eth0 ethernet 1.2 kB 5 B'
    for title in ('Profile', 'Time of the ranks', 'Matrix'):
        assert title not in shown


ENDED = [
    {
        'rank': 1,
        'reason': 'SIGTERM',
        'inside': 'MPI_Recv',
        'since': 280.1,
        'wall': 300.2,
        'mpi_time': 290.0,
        'calls': {},
    },
    {
        'rank': 0,
        'reason': 'MPI_Abort',
        'inside': None,
        'wall': 300.2,
        'mpi_time': 290.0,
        'calls': {},
    },
]


def test_an_incomplete_report_says_so_first(tmp_path, assay):
    content = {**halo(2), 'complete': False}
    code, shown = assay(write(tmp_path / 'r.json', content, ENDED))
    assert not code
    assert shown.splitlines()[1:4] == [
        'INCOMPLETE: the job did not get to MPI_Finalize; its placement is known.',
        '  rank 0 ended by MPI_Abort after 300.2 s, outside MPI',
        '  rank 1 ended by SIGTERM after 300.2 s, inside MPI_Recv since 280.1 s, for 20.1 s',
    ]
    assert 'Placement:' in shown and 'Profile' not in shown and 'Fabric' not in shown


def test_many_ranks_that_ended(tmp_path, assay):
    content = {**halo(100), 'complete': False}
    ended = [{**ENDED[0], 'rank': rank} for rank in range(100)]
    _, shown = assay(write(tmp_path / 'r.json', content, ended))
    assert '  ... and 84 more' in shown
    _, shown = assay(write(tmp_path / 'some.json', content, ended[:97]))
    assert 'as after SIGKILL, from ranks: 97-99' in shown
    _, shown = assay(write(tmp_path / 'none.json', content))
    assert 'MPI_Finalize, or the disk was full;' in shown
    assert 'No rank left word of its end.' in shown
    (tmp_path / 'none.json.finalized').write_text('{"rank": 0, "finalize": 0.1}\n')
    _, shown = assay(tmp_path / 'none.json')
    assert 'INCOMPLETE: the report could not be written at its end' in shown


def test_two_equal_jobs(tmp_path, assay):
    path = write(tmp_path / 'r.json', halo(2))
    code, shown = assay(path, path)
    assert not code
    assert shown.startswith('program, MPI and settings: the same\n')
    assert line(shown, 'wall s') == 'wall s 1.000000 1.000000 ='
    assert 'Placement: the same' in shown


def test_two_jobs_side_by_side(tmp_path, assay):
    after = halo(2)
    first, second = after['processes']
    first['calls']['MPI_Send'] = call(120, 0.1, 8)
    first['calls']['MPI_Test'] = call(5000, 0.0)
    first['calls']['MPI_Waitall']['time'] *= 3
    first['mpi_time'] *= 1.5
    first['partners'][0]['messages'] += 20
    second.update(cores='0', cpus='0')
    after['environment'] = {'OMP_NUM_THREADS': '2'}
    after['mpi']['library'] = 'MPICH Version: 4.0.2\nmore'
    code, shown = assay(write(tmp_path / 'a.json', halo(2)), write(tmp_path / 'b.json', after))
    assert not code
    assert shown.splitlines()[:5] == [
        'program changed: 200 -> 220 messages',
        'program changed: MPI_Send 0 -> 120 calls',
        'program changed: MPI_Send 0 -> 8 bytes',
        'MPI library changed: MPICH Version: 4.3.2 -> MPICH Version: 4.0.2',
        'environment changed: OMP_NUM_THREADS: 1 -> 2',
    ]
    # How often a program polls is no property of the program.
    assert 'MPI_Test 0' not in shown
    assert line(shown, 'messages') == 'messages 200 220 +10.0%'
    assert line(shown, 'time in MPI') == 'time in MPI 30.0% 35.0% +5.0 points'
    calls = shown.partition('Calls')[2]
    assert line(calls, 'MPI_') == 'MPI_Waitall 200 200 0.260000 0.420000 +61.5% 0 B 0 B'
    by_change = [row.split()[0] for row in calls.splitlines() if row.startswith('MPI_')]
    assert by_change[:2] == ['MPI_Waitall', 'MPI_Send']
    assert line(calls, 'MPI_Send') == 'MPI_Send 0 120 0.000000 0.100000 new 0 B 8 B'
    assert 'Placement (ranks that sat elsewhere: 1):' in shown
    assert line(shown, '1  n1') == '1 n1 1 0 -> n1 0 0'


@pytest.mark.parametrize(('before', 'is_told'), [(0, False), (4, True)])
def test_bytes_of_files_that_an_earlier_witness_did_not_know(tmp_path, assay, before, is_told):
    jobs = halo(2), halo(2)
    for job, bytes in zip(jobs, (before, 8), strict=True):
        job['processes'][0]['calls']['MPI_File_write'] = call(1, 0.0, bytes)
    paths = [write(tmp_path / f'{bytes}.json', job) for bytes, job in enumerate(jobs)]
    _, shown = assay(*paths)
    assert ('program changed: MPI_File_write' in shown) is is_told


def test_settings_of_any_rank_are_compared(tmp_path, assay):
    before, after = halo(3), halo(3)
    before['environment']['UCX_TLS'] = after['environment']['UCX_TLS'] = 'self,sm'
    after['environment']['OMPI_MCA_btl_sm_eager_limit'] = '512'
    after['processes'][2]['differs'] = {
        'environment': {'UCX_TLS': None},
        'mpi': {**after['mpi'], 'path': '/y/libmpi.so.12'},
    }
    before['settings'] = after['settings'] = {'limit:core': '0'}
    before['libraries'] = [{'path': '/x/libfabric.so.1', 'version': '1.20.1', 'build_id': ''}]
    after['libraries'] = [{'path': '/y/libfabric.so.1', 'build_id': '0123456789'}]
    paths = write(tmp_path / 'a.json', before), write(tmp_path / 'b.json', after)
    _, shown = assay(paths[0], paths[1])
    assert shown.splitlines()[:4] == [
        'MPI path changed: /x/libmpi.so.12 -> /x/libmpi.so.12, /y/libmpi.so.12',
        'environment changed: OMPI_MCA_btl_sm_eager_limit: unset -> 512',
        'environment changed: UCX_TLS: self,sm -> - / self,sm',
        'setting changed: library libfabric: 1.20.1 (/x/libfabric.so.1) -> '
        '01234567 (/y/libfabric.so.1)',
    ]


def test_libraries_of_earlier_reports_are_compared_by_their_paths(tmp_path, assay):
    before, after = halo(2), halo(2)
    before['libraries'], after['libraries'] = ['/x/libucp.so.0'], ['/y/libucp.so.0']
    paths = write(tmp_path / 'a.json', before), write(tmp_path / 'b.json', after)
    _, shown = assay(paths[0], paths[1])
    assert shown.splitlines()[:2] == [
        'library no longer loaded: /x/libucp.so.0',
        'library newly loaded: /y/libucp.so.0',
    ]


def test_hosts_are_compared_as_far_as_both_tell(tmp_path, assay):
    before, after = halo(2), halo(2)
    before['hosts'][0]['machine'] = {'kernel': '6.1.0', 'huge_pages': 'always', 'smt': 'on'}
    after['hosts'][0]['machine'] = {'kernel': '6.1.0', 'huge_pages': 'never', 'boost': 'on'}
    paths = write(tmp_path / 'a.json', before), write(tmp_path / 'b.json', after)
    _, shown = assay(paths[0], paths[1])
    assert shown.splitlines()[0] == 'machine changed: huge pages: always -> never'
    assert 'kernel' not in shown and 'smt' not in shown and 'boost' not in shown


def test_a_report_of_schema_1_says_nothing_of_most_variables(tmp_path, assay):
    old, new = {**halo(2), 'schema': 1}, halo(2)
    new['environment'] = {'OMP_NUM_THREADS': '2', 'UCX_TLS': 'self,sm'}
    path = write(tmp_path / 'a.json', old)
    _, shown = assay(path, write(tmp_path / 'b.json', new))
    assert shown.startswith('a report is of an earlier witness: it has no variables but those of')
    assert 'environment changed: OMP_NUM_THREADS: 1 -> 2' in shown and 'UCX_TLS' not in shown


def test_counts_are_compared_without_times(tmp_path, assay):
    jobs = [{**halo(2), 'sections': ['placement', 'fabric']} for _ in range(2)]
    jobs[1]['processes'][0]['calls']['MPI_Send'] = call(1)
    paths = [write(tmp_path / f'{number}.json', job) for number, job in enumerate(jobs)]
    _, shown = assay(paths[0], paths[1])
    assert shown.startswith('program changed: MPI_Send 0 -> 1 calls\n')
    # A matrix that is not there has no fewer messages.
    jobs[0]['sections'] = ['placement', 'fabric', 'matrix']
    jobs[0]['processes'][0]['partners'] = []
    _, shown = assay(write(paths[0], jobs[0]), paths[1])
    assert 'messages' not in shown
    assert 'Figures' not in shown


def test_many_changes_of_the_program_are_cut(tmp_path, assay):
    other = halo(2)
    other['environment'] = {**other['environment'], 'UCX_TLS': 'self'}
    other['processes'][0]['calls'] |= {f'MPI_{number}': call() for number in range(20)}
    _, shown = assay(write(tmp_path / 'a.json', halo(2)), write(tmp_path / 'b.json', other))
    assert shown.count('program changed: ') == 16
    assert '\n... and 4 more\nenvironment changed: UCX_TLS' in shown


def test_jobs_of_different_size_and_an_incomplete_one(tmp_path, assay):
    two, four = write(tmp_path / 'a.json', halo(2)), write(tmp_path / 'b.json', halo(4))
    _, shown = assay(two, four)
    assert shown.startswith('ranks changed: 2 -> 4\n')
    half = write(tmp_path / 'c.json', {**halo(2), 'complete': False}, ENDED)
    _, shown = assay(two, half)
    assert shown.startswith('INCOMPLETE second report: ')
    assert 'Figures' not in shown


def test_ranks_that_gave_up_are_told(tmp_path, assay):
    job = halo(4)
    job['processes'][1]['waits_incomplete'] = job['processes'][2]['waits_incomplete'] = True
    _, shown = assay(write(tmp_path / 'r.json', job))
    assert 'INCOMPLETE: ranks that gave up comparing what they waited for: 1-2.' in shown
    _, shown = assay(write(tmp_path / 'r.json', halo(4)))
    assert 'INCOMPLETE' not in shown


def test_ranks_with_collectives_in_no_matrix_are_told(tmp_path, assay):
    job = halo(4)
    job['processes'][3]['collectives_incomplete'] = True
    _, shown = assay(write(tmp_path / 'r.json', job))
    assert 'INCOMPLETE: ranks with collectives in no matrix: 3.' in shown


def test_a_picture(tmp_path, assay):
    path = tmp_path / 'job.html'
    code, shown = assay(write(tmp_path / 'r.json', halo(2)), '--picture', path)
    assert not code
    assert shown.endswith(f'picture: {path}\n')
    assert 'What the time of each rank went into' in path.read_text()


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['absent.json'], 'assay: no witness report absent.json: was the library preloaded'),
        (['r.json', 'absent.json'], 'assay: no witness report absent.json'),
        (['r.json', '--picture', 'job.pdf'], 'assay: job.pdf: a picture is a page for a browser'),
        (['r.json', '--diff', 'r.json'], 'assay: two reports are compared by `assay witness BEF'),
        (['--diff', 'r.json', 'r.json'], 'assay: two reports are compared by `assay witness BEF'),
        (['broken.json'], 'assay: broken.json: not JSON'),
        (['sessions.json'], 'assay: sessions.json: the program uses MPI sessions without MPI_Init'),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(tmp_path, monkeypatch, assay, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / 'r.json', halo(2))
    (tmp_path / 'broken.json').write_text('{')
    (tmp_path / 'sessions.json').write_text('{"schema": 2, "sessions": true, "ranks": 2}')
    code, shown = assay(*arguments)
    assert code.startswith(sentence) and shown == ''


def test_help_has_examples(assay):
    code, shown = assay('show', '--help')
    assert not code
    assert 'assay witness before.json after.json' in shown
