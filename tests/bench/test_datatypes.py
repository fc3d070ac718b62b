"""``datatypes``: its report, and that data which arrives beside its place is found."""

import pytest

from assay.programs.benchmarks import check_datatypes
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--budget', '0.01')
METHODS = ('datatype', 'pack', 'hand')


def test_report(run):
    done = run('datatypes', *FEW, '--sizes', '32,96', ranks=3)
    assert done.code == 0, done.err
    check_head(done.report, 'datatypes', 3)
    check_datatypes(done.report)
    results = done.report['results']
    for entry in results:
        check_samples(entry)
    assert [(one['layout'], one['size'], one['method']) for one in results] == [
        (layout, size, method)
        for layout in ('vector', 'indexed', 'face')
        for size in (32, 96)
        for method in METHODS
    ]


@on_one_mpi
@pytest.mark.parametrize(
    ('wrong', 'layout', 'words'),
    [
        ('gap', 'vector', 'vector of 64 bytes by datatype: something was written beside its'),
        ('gap', 'face', 'face of 64 bytes by datatype: something was written beside its'),
        ('edge', 'indexed', 'by pack: something was written beside its elements, at element -1'),
        ('short', 'vector', 'vector of 64 bytes by pack returned without what was changed in them'),
        ('once', 'indexed', 'indexed of 64 bytes by pack returned without what was changed'),
    ],
)
def test_a_wrong_datatype_is_found(run, fault, wrong, layout, words):
    one = ('--layout', layout, '--sizes', '64')
    done = run(
        'datatypes',
        *FEW,
        *one,
        preload=fault('wrong_datatype'),
        env={'WRONG_DATATYPE': wrong},
        ranks=2,
    )
    assert done.code != 0
    assert 'datatypes: rank ' in done.err
    assert words in done.err
    assert not list(done.files.glob('report.json'))


@on_one_mpi
def test_sizes_that_cannot_be_measured_are_refused(run):
    done = run('datatypes', '--sizes', '64,40', ranks=2)
    assert done.code == 2
    assert 'must be multiples of 16, the bytes of two doubles, and 40 is none' in done.err
