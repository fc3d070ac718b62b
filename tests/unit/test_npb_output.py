"""NPB's classes and what its programs print: real runs of two ranks, and runs that went wrong."""

import re
from pathlib import Path

import pytest

from assay.programs.application import Problem, WrongAnswerError
from assay.programs.npb import CLASSES, Npb

OUTPUTS = sorted((Path(__file__).parents[1] / 'golden' / 'npb').glob('*.out'))
MG = next(path for path in OUTPUTS if path.name.startswith('mg')).read_text()
GB = 1e9


def npb(kernel, classes='SWABC'):
    return Npb(kernel, classes)


def read(text, kernel='mg', name='W', ranks=2):
    return npb(kernel).read(text, Path(), Problem([], facts={'class': name}), ranks, 1)


def test_each_program_has_a_real_output():
    assert {path.name.partition('.')[0] for path in OUTPUTS} == {*CLASSES}


@pytest.mark.parametrize('path', OUTPUTS, ids=lambda path: path.name)
def test_real_outputs(path):
    kernel, name, _ = path.name.split('.')
    text = path.read_text()
    figures = read(text, kernel, name)
    rate = float(re.search(r'Mop/s total += +(\S+)', text)[1])
    seconds = float(re.search(r'Time in seconds = +(\S+)', text)[1])
    assert figures['rate'].value == pytest.approx(rate / 1e3)
    assert figures['time'].value == pytest.approx(seconds, abs=0.006)


def edited(what, value):
    """The output with another value at its end."""
    return re.sub(rf'( {what} *=).*', rf'\g<1> {value}', MG)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (edited('Verification', 'UNSUCCESSFUL'), 'Verification = UNSUCCESSFUL'),
        (edited('Verification', 'NOT PERFORMED'), 'Verification = NOTPERFORMED'),
        (edited('Class', 'U'), 'Class = U'),
        (edited('Size', '64x 64x 64'), 'Size = 64x64x64'),
        (edited('Iterations', '1'), 'Iterations = 1'),
        (edited('Total processes', '4'), 'Total processes = 4'),
        (edited('Active processes', '1'), 'Active processes = 1'),
        (edited('Mop/s total', '4000.0'), 'would take'),
        (edited('Mop/s total', '0.00'), 'a rate of 0'),
        (edited('Mop/s total', 'NaN'), 'not a number'),
        (edited('Mop/s total', '************'), 'not a number'),
        (edited('Time in seconds', '0.70'), 'would take'),
        (MG.partition(' Verification    =')[0], 'Verification = nothing'),
        (MG.partition(' MG Benchmark Completed')[0], 'came to its end 0 times'),
        (MG + MG, 'came to its end 2 times'),
        ('', 'came to its end 0 times'),
    ],
)
def test_wrong_outputs(text, words):
    with pytest.raises(WrongAnswerError) as error:
        read(text)
    assert words in str(error.value)


def test_a_rate_of_the_time_that_was_printed_is_read_to_its_digits():
    """Runs of milliseconds print 0.00 s: the rate alone tells their time."""
    operations = CLASSES['mg']['W'].operations
    text = re.sub(r'( Time in seconds *=).*', r'\1 0.00', MG)
    text = re.sub(r'( Mop/s total *=).*', rf'\g<1> {operations / 1e6 / 0.004:.2f}', text)
    assert read(text)['time'].value == pytest.approx(0.004, rel=1e-4)


@pytest.mark.parametrize(
    ('kernel', 'size', 'ranks', 'classes', 'name'),
    [
        ('mg', 0.5 * GB, 2, 'SWABC', 'B'),  # as large as A, with more steps
        ('mg', 0.5 * GB, 2, 'SWA', 'A'),
        ('mg', 1e12, 2, 'SWABC', 'C'),
        ('cg', 1 * GB, 8, 'SWABC', 'C'),
        ('ft', 1 * GB, 1, 'SWABC', 'A'),
        ('is', 2 * GB, 4, 'SWABCD', 'C'),
        ('lu', 1e12, 6, 'SWABCDE', 'E'),
        ('ep', 0, 3, 'SWABCD', 'A'),
        ('ep', 1e12, 16, 'SWABCD', 'C'),
        ('lu', 1e12, 8192, 'SWABC', None),  # grid of 64 x 128
        ('lu', 1e12, 512, 'SWABC', 'C'),
    ],
)
def test_the_largest_class_that_fits(kernel, size, ranks, classes, name):
    if name is None:
        with pytest.raises(ValueError, match=r'no class of NPB LU \(S, W, A, B, C\) fits'):
            npb(kernel, classes).problem(size, ranks, 1)
    else:
        assert npb(kernel, classes).problem(size, ranks, 1).facts == {'class': name}


@pytest.mark.parametrize(
    ('kernel', 'allowed'),
    [
        ('cg', [1, 2, 4, 8, 16]),
        ('lu', [1, 2, 4, 6, 8, 9, 12, 15, 16, 18, 20]),
        ('ep', [*range(1, 21)]),
    ],
)
def test_numbers_of_ranks(kernel, allowed):
    assert [ranks for ranks in range(1, 21) if npb(kernel).allows(ranks)] == allowed


@pytest.mark.parametrize(
    ('kernel', 'size', 'ranks', 'classes', 'words'),
    [
        ('cg', GB, 6, 'SWA', 'NPB CG takes a power of two of ranks, not 6'),
        ('is', GB, 3, 'SWA', 'NPB IS takes a power of two of ranks, not 3'),
        ('lu', GB, 5, 'SWA', 'NPB LU takes a nearly square grid of ranks, not 5'),
        ('lu', GB, 3, 'SWA', 'NPB LU takes a nearly square grid of ranks, not 3'),
        ('mg', 1e5, 2, 'SWA', 'fits 1e+05 bytes on 2 ranks'),
    ],
)
def test_what_npb_cannot_take_is_said_before_it_runs(kernel, size, ranks, classes, words):
    with pytest.raises(ValueError) as error:
        npb(kernel, classes).problem(size, ranks, 1)
    assert words in str(error.value)
