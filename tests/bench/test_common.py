"""What all programs share: the command line, the ways to stop, statistics, the limits."""

import ctypes
import json
import math
import os
import re
import subprocess

import pytest

from assay.machine.provenance import of_cmake
from building import SANITIZED, SOURCES, configure
from families import dealt, on_one_mpi
from measured import check_head

PROGRAMS = ['pt2pt', 'ring', 'collectives', 'overlap', 'halo', 'limits', 'pairs']


class Stats(ctypes.Structure):
    names = ('min', 'best', 'median', 'p95', 'ci_low', 'ci_high', 'mean')
    _fields_ = [
        *((name, ctypes.c_double) for name in names),
        ('best_place', 2 * ctypes.c_int),
        ('median_place', 2 * ctypes.c_int),
    ]


@pytest.fixture(scope='module')
def stats(tmp_path_factory):
    """The statistics as a library: they need no MPI."""
    library = tmp_path_factory.mktemp('stats') / 'stats.so'
    common = SOURCES / 'common'
    sources = [SOURCES / 'mpi' / 'common' / 'stats.c', common / 'windows.c']
    command = ['cc', '-std=c11', '-Wall', '-Wextra', '-shared', '-fPIC', '-iquote', common]
    command += [*sources, '-lm']
    subprocess.run([*command, '-o', library], check=True)
    functions = ctypes.CDLL(library)
    functions.stats_of.restype = Stats
    return functions


def summary(stats, values):
    return stats.stats_of((ctypes.c_double * len(values))(*values), len(values))


def interval_rank(n):
    """The largest r with P(Binomial(n, 1/2) < r) <= 0.025, in exact arithmetic."""
    below, rank = 0, 0
    while 40 * (below + math.comb(n, rank)) <= 2**n:
        below += math.comb(n, rank)
        rank += 1
    return rank


@pytest.mark.parametrize(
    ('values', 'median', 'is_it'),
    [
        ([3, 1, 2], 2, True),
        ([3, 1, 2], 2 * (1 + 1e-15), True),
        ([3, 1, 2], 2.00001, False),
        ([4, 1, 3, 2], 2.5, True),
        ([4, 1, 3, 2], 1.9999, False),
        ([1, 2, 2, 2, 9], 2, True),
    ],
)
def test_a_value_is_the_median_or_is_not(stats, values, median, is_it):
    stats.stats_is_median.restype = ctypes.c_bool
    array = (ctypes.c_double * len(values))(*values)
    assert stats.stats_is_median(ctypes.c_double(median), array, len(values)) is is_it


# Published tables of the sign test: at 11, 20 and 100 the interval runs from the 2nd, 6th and
# 40th smallest value.
@pytest.mark.parametrize(('n', 'rank'), [(5, 0), (6, 1), (11, 2), (20, 6), (100, 40)])
def test_interval_ranks_of_the_tables(stats, n, rank):
    assert interval_rank(n) == rank
    assert stats.stats_interval_rank(n) == rank


def test_interval_ranks_agree_with_exact_arithmetic(stats):
    for n in [*range(1, 400), 1000, 4096]:
        assert stats.stats_interval_rank(n) == interval_rank(n), n


def test_statistics_of_known_values(stats):
    s = summary(stats, [float(v) for v in reversed(range(1, 21))])  # 20 .. 1
    assert (s.min, s.best, s.median, s.p95) == (1, 2, 10.5, 19)
    assert (s.ci_low, s.ci_high, s.mean) == (6, 15, 10.5)
    assert (list(s.best_place), list(s.median_place)) == ([1, 2], [10, 10])
    s = summary(stats, [3.0, 1.0, 2.0, 5.0, 4.0, 100.0, 7.0, 6.0, 8.0, 9.0, 10.0])
    assert (s.min, s.best, s.median, s.p95) == (1, 2, 6, 100)
    assert (s.ci_low, s.ci_high) == (2, 10)


def test_interval_of_few_values_is_their_range(stats):
    s = summary(stats, [2.0, 1.0, 4.0])
    assert (s.ci_low, s.median, s.ci_high) == (1, 2, 4)


@dealt('program', PROGRAMS)
def test_help_and_version(run, program):
    done = run(program, '--help', ranks=1)
    assert done.code == 0, done.err
    assert f'{program}: ' in done.out
    assert '--json FILE' in done.out
    assert re.search(rf'Examples:\n  mpirun -n \d+ .*\b{program}\b', done.out)
    assert ('MPIR_CVAR_ASYNC_PROGRESS=1' in done.out) == (program == 'overlap')
    done = run(program, '--version', ranks=1)
    assert done.code == 0, done.err
    assert re.fullmatch(rf'{program} \(Assay\) \d+\.\d+\.\d+\n', done.out)
    assert not list(done.files.iterdir())


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--patern', 'ping-pong'], 'unknown option, or a value where none belongs: --patern'),
        (['--limits=yes'], 'unknown option, or a value where none belongs: --limits=yes'),
        (['--pattern', 'pingpong'], r'--pattern pingpong is wrong: it takes a list out of'),
        (['--pattern', 'ping-pong,'], r'--pattern ping-pong, is wrong'),
        (['--cache', 'maybe'], '--cache maybe is wrong: it takes one of on, off'),
        (['--max', '4X'], r'--max 4X is wrong: it takes bytes \(suffixes K, M, G\) from 0 to 1G'),
        (['--max', '-1'], '--max -1 is wrong'),
        (['--max', '2G'], '--max 2G is wrong'),
        (['--max', '99999999999999999999'], '--max 99999999999999999999 is wrong'),
        (['--budget', 'nan'], '--budget nan is wrong: it takes a number from 0.001 to 3600'),
        (['--ci', '0'], '--ci 0 is wrong'),
        (['--min', '8', '--max', '4'], '--min 8 is greater than --max 4'),
        (['ping-pong'], 'argument ping-pong is not an option'),
        (['--pattern'], r'--pattern --json is wrong'),
    ],
)
@on_one_mpi
def test_wrong_options(run, arguments, sentence):
    done = run('pt2pt', *arguments)
    assert done.code == 2
    assert re.search(rf'^pt2pt: .*{sentence}', done.err, re.MULTILINE), done.err
    assert len(re.findall('^pt2pt: ', done.err, re.MULTILINE)) == 1, 'only rank 0 speaks'
    assert not list(done.files.iterdir())


@dealt('program', ['pt2pt', 'ring', 'collectives', 'limits', 'overlap'])
def test_one_rank_is_refused(run, program):
    done = run(program, ranks=1)
    assert done.code == 2
    assert f'{program}: needs at least 2 ranks and has 1' in done.err
    assert not list(done.files.iterdir())


@on_one_mpi
def test_a_folder_that_does_not_exist_is_refused(run, tmp_path):
    done = run('pt2pt', report=tmp_path / 'none' / 'report.json')
    assert done.code == 2
    assert 'none/report.json: No such file or directory; give --json' in done.err


@on_one_mpi
def test_more_memory_than_there_is_is_refused(run):
    gibibytes = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30
    ranks = 4
    if 2 * ranks**2 <= gibibytes:
        pytest.skip(f'{gibibytes} GiB of memory would be enough')
    done = run('collectives', '--op', 'alltoall', '--max', '1G', ranks=ranks)
    assert done.code == 2
    assert re.search(r'need \d+\.\d\d GiB .* only \d+\.\d\d GiB are available; use', done.err)


def test_limits(run):
    done = run('limits', ranks=3)
    assert done.code == 0, done.err
    check_head(done.report, 'limits', 3)
    limits = done.report['limits']
    assert limits['memcpy']['size'] == limits['socket']['size'] == 4 << 20
    assert 1e8 < limits['memcpy']['bandwidth'] < 1e12
    assert 1e-9 < limits['cacheline']['latency'] < 1e-2
    assert 1e-9 < limits['socket']['latency'] < 1e-2
    assert 1e7 < limits['socket']['bandwidth'] < limits['memcpy']['bandwidth']
    # Printed from more digits than the report has, so that the last one may differ.
    printed = float(re.search(r'^  cacheline +([\d.]+) us$', done.out, re.MULTILINE)[1])
    assert printed == pytest.approx(limits['cacheline']['latency'] * 1e6, abs=0.0011)
    for line in ('Implementation: assay', 'Ranks:          3'):
        assert line in done.out


WRITES_A_NUMBER = """
#include <math.h>
#include "bench.h"
static const struct option_spec options[] = {{ {{ .name = NULL }} }};
static const struct bench_about about = {{
    .program = "writer", .purpose = "writes a number", .examples = "", .min_ranks = 1,
}};
int main(int argc, char **argv)
{{
    bench_start(&argc, &argv, &about, options);
    json_string(bench.json, "text", "a \\"quoted\\" \\\\ line\\n");
    json_number(bench.json, "number", {number});
    return bench_end();
}}
"""


@pytest.mark.parametrize('number', ['NAN', 'INFINITY', '0.1'])
@on_one_mpi
def test_only_numbers_get_into_a_report(mpi, surroundings, build, run, tmp_path, number):
    source = tmp_path / 'writer.c'
    source.write_text(WRITES_A_NUMBER.format(number=number))
    folder, program = build('bench', SANITIZED), tmp_path / 'writer'
    command = [mpi.cc, '-D_POSIX_C_SOURCE=200809L', '-fsanitize=address,undefined']
    for headers in (SOURCES / 'common', SOURCES / 'mpi' / 'common'):
        command += ['-iquote', headers]
    libraries = ['mpi/libbench.a', 'common/libjson.a', 'common/libhost.a', 'common/libwindows.a']
    command += [source, *(folder / 'parts' / name for name in libraries), '-lm', '-lrt']
    subprocess.run([*command, '-o', program], env=surroundings, check=True)
    done = run(program, ranks=1)
    if number == '0.1':
        assert done.code == 0, done.err
        assert done.report['number'] == 0.1
        assert done.report['text'] == 'a "quoted" \\ line\n'
    else:
        assert done.code != 0
        assert '"number" came out as' in done.err
        assert not list(done.files.glob('report.json*'))


@pytest.mark.slow
def test_all_is_built_without_a_warning(build, sanitizers):
    """As the other tests have it: on one MPI sanitized, on the others as users build it."""
    build('all', sanitizers)


@on_one_mpi
def test_flags_of_a_site_win(mpi, surroundings, tmp_path):
    """CMake puts its own behind them; where they ask for no optimisation it is ours."""
    configure(
        mpi, surroundings, tmp_path, '-DCMAKE_C_FLAGS=-O1 -g', '-DCMAKE_CXX_FLAGS=-march=x86-64'
    )
    commands = json.loads((tmp_path / 'compile_commands.json').read_text())
    # What measures the limits has flags of its own (test_node.py).
    of_c = [
        one['command']
        for one in commands
        if one['file'].endswith('.c')
        and not re.search(r'/node/|/(blas|dgemm_limit|control_in_caches)\.c$', one['file'])
    ]
    assert {*re.findall(r' -O\S*', ''.join(of_c))} == {' -O1'}
    flags = of_cmake(tmp_path, 'an MPI', '').flags.split('; ')
    assert flags[0].startswith('C: -O1 -g') and '-march=x86-64 -O3' in flags[1]
