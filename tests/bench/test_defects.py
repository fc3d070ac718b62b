"""``defects``: what it says of an MPI that is whole, and of one that is broken in a known way."""

import re

import pytest

from assay.config.defects import load_defects
from families import on_one_mpi
from running import YIELDING_COLLECTIVES, run_command

# The program says the same with each MPI.
pytestmark = on_one_mpi

NAME = 'testall-statuses'


@pytest.fixture
def defects(mpi, surroundings, build, fault, tmp_path):
    """Runs the program on two ranks, with its MPI_Testall in the way that is named."""

    def run(*arguments, testall=''):
        command = [mpi.launcher, '-n', '2', 'env', f'LD_PRELOAD={fault("testall")}']
        command += [str(build('defects') / 'defects'), *arguments]
        env = {**surroundings, **YIELDING_COLLECTIVES, 'TESTALL': testall}
        return run_command(command, env, tmp_path, 120)

    return run


def said(done):
    return re.findall('^defects: (.*)$', done.out, re.MULTILINE)


def test_an_mpi_that_is_whole(defects):
    done = defects(NAME, '60')
    assert (done.code, said(done)) == (
        0,
        [f'{NAME} begins on 2 ranks', f'{NAME} does not show'],
    ), done.err


def test_a_wrong_result_shows(defects):
    done = defects(NAME, '60', testall='wrong')
    assert (done.code, said(done)[1:]) == (0, [f'{NAME} shows']), done.err


def test_one_that_hangs_is_ended(defects):
    done = defects(NAME, '1', testall='hangs')
    assert done.code != 0
    assert said(done)[0] == f'{NAME} begins on 2 ranks'
    assert set(said(done)[1:]) == {'hangs'}


def test_one_that_crashes_has_begun_and_tells_no_result(defects):
    done = defects(NAME, '60', testall='aborts')
    assert done.code != 0
    assert said(done) == [f'{NAME} begins on 2 ranks']


@pytest.mark.parametrize('arguments', [(), (NAME,), ('nothing', '5'), (NAME, '0'), (NAME, 'x')])
def test_wrong_arguments_name_what_there_is(build, tmp_path, surroundings, arguments):
    done = run_command([str(build('defects') / 'defects'), *arguments], surroundings, tmp_path, 60)
    assert done.code == 2
    assert {*re.findall('^  (.*)$', done.err, re.MULTILINE)} == load_defects().keys()
