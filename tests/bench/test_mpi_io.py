"""``files``: its report, that it leaves no file, and that wrong data is found."""

import pytest

from assay.programs.benchmarks import check_files
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--block', '100', '--blocks', '3', '--budget', '0.01')


@pytest.fixture
def run_there(run, tmp_path, monkeypatch):
    """As ``run``, in a folder of the test's: programs run where tests do."""
    monkeypatch.chdir(tmp_path)
    return run


def test_report(run_there, tmp_path):
    done = run_there('files', *FEW, ranks=3)
    assert done.code == 0, done.err
    check_head(done.report, 'files', 3)
    check_files(done.report)
    results = done.report['results']
    for entry in results:
        check_samples(entry)
        assert entry['size'] == 900
    assert [(one['way'], one['direction']) for one in results] == [
        (way, direction)
        for way in ('independent', 'collective', 'interleaved')
        for direction in ('write', 'read')
    ]
    assert not list(tmp_path.glob('files.assay*'))


@on_one_mpi
@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        ('place', 'message from rank '),
        ('stale', 'message from rank '),
        ('refused', 'MPI_File_write_at_all on files.assay: '),
    ],
)
def test_what_is_not_as_written_is_found(run_there, fault, wrong, words):
    done = run_there('files', *FEW, preload=fault('wrong_file'), env={'WRONG_FILE': wrong})
    assert done.code != 0
    assert 'files: rank ' in done.err
    assert words in done.err
