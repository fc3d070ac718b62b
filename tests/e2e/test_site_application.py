"""A site's own application all the way: of two commits, on two fabrics, a wrong answer, its file,
comparison."""

import re
import subprocess

import pytest

from assay import paths
from command import assay
from families import FOUND

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, sum, one = argc > 1 ? 2 : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    for (int i = 0; i < 1000; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    double time = MPI_Wtime() - start;
    if (rank == 0) {
        FILE *file = fopen("sums.json", "w");
        fprintf(file, "{\"sums\": {\"time\": %g}}\n", time);
        fclose(file);
        printf("sum = %d\n", sum);
    }
    return MPI_Finalize();
}
"""

APPLICATIONS = """\
applications:
  right: &right
    repository: ../sums
    build: mpicc sums.c -o sums
    command: [sums]
    mpi: mpich
    ranks: [2]
    answer: [{find: 'sum = (.+)', value: 2}]
    figures:
      sums_time: {file: 'sums*.json', find: '"time": ([^}]+)', unit: s, better: lower}
  wrong:
    <<: *right
    command: [sums, spoiled]
"""


@pytest.mark.slow
@pytest.mark.skipif('mpich' not in FOUND, reason='needs the mpich wheel')
def test_the_whole_road(tmp_path):
    sources, systems = tmp_path / 'sums', tmp_path / 'systems'
    systems.mkdir()
    subprocess.run(['git', 'init', '-q', sources], check=True)

    def commit(program):
        (sources / 'sums.c').write_text(program)
        git = ['git', '-C', sources, '-c', 'user.name=one', '-c', 'user.email=one@example.org']
        for words in (['add', '.'], ['commit', '-q', '-m', 'sums'], ['rev-parse', 'HEAD']):
            done = subprocess.run([*git, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    one = commit(PROGRAM)
    (systems / 'applications.yaml').write_text(APPLICATIONS)
    env = {paths.SYSTEMS_VARIABLE: str(systems), paths.RESULTS_VARIABLE: str(tmp_path / 'results')}

    def run(*words):
        return assay(*words, env=env)

    quick = ['-p', '^mpich$', '-S', 'wait_for_quiet=0']
    ended = run('run', '-n', '^SiteApplication%fabric=(shm|ofi-tcp)', *quick, '--label', 'before')
    assert ended.returncode == 1, ended.stdout + ended.stderr
    told = re.findall(r'^failed: SiteApplication .*?: (.*)$', ended.stdout, re.M)
    assert len(told) == 2, ended.stdout
    assert all('wrong: its answer is 4 ' in one and 'has to be 2' in one for one in told)
    assert '2 passed, 2 failed' in ended.stdout.splitlines()[-1]

    two = commit(f'{PROGRAM}/* again */\n')
    ended = run('run', '-n', '^SiteApplication%fabric=shm.*%application=right', *quick)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # Its run is in the history, and is compared with the one before.
    ended = run('compare-runs', 'before', 'last', '--all')
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    assert 'sums_time' in ended.stdout, ended.stdout
    assert re.search(f'^commit +{one} +{two} ', ended.stdout, re.M), ended.stdout
