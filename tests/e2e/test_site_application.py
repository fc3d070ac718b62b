"""A site's own application all the way: two fabrics, a wrong answer, comparison, contract."""

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
    command: [./sums]
    mpi: mpich
    ranks: [2]
    answer: [{find: 'sum = (.+)', value: 2}]
    figures:
      sums_time: {file: 'sums*.json', find: '"time": ([^}]+)', unit: s, better: lower}
  wrong:
    <<: *right
    command: [./sums, spoiled]
"""

CONTRACT = """\
name: A tiny machine
parties:
  buyer: {name: University, signers: [Ada Buyer]}
  vendor: {name: Computers, signers: [Vic Vendor]}
system: generic
nodes: {number: 1}
commitments:
  - {id: sums, check: SiteApplication, parameters: {application: right}, figure: sums_time,
     fabric: shm, environment: mpich, value: 1000, unit: s, better: lower, statistic: maximum,
     runs: 1, expected_spread: 0.1}
rules: {category: base, text: As it is delivered.}
stability: {hours: 0, share: 0.1, most_failed_nodes: 1}
risks: {producer: 0.05, consumer: 0.05, good: 0.5, bad: 0.5}
most_jobs: 3
"""


@pytest.mark.slow
def test_the_whole_road(tmp_path):
    if 'mpich' not in FOUND:
        pytest.skip('needs the mpich wheel, which could not be installed')
    source, systems = tmp_path / 'sums.c', tmp_path / 'systems'
    systems.mkdir()
    source.write_text(PROGRAM)
    subprocess.run([FOUND['mpich'].cc, source, '-o', systems / 'sums'], check=True)
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

    (tmp_path / 'contract.yaml').write_text(CONTRACT)
    archive = tmp_path / 'acceptance'
    ended = run('accept', 'run', tmp_path / 'contract.yaml', '--folder', archive)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert 'ACCEPTED' in ended.stdout
    # The file that the program wrote is in the archive, and the figure is computed again from it.
    (kept,) = archive.rglob('sums.json')
    assert '"time"' in kept.read_text()
    assert run('accept', 'report', archive).returncode == 0
    ended = run('accept', 'verify', archive)
    assert re.search('^right: .* are what their outputs say', ended.stdout, re.M), ended.stdout

    # Its run is in the history, and is compared with the one before.
    ended = run('compare-runs', 'before', 'last', '--all')
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    assert 'sums_time' in ended.stdout, ended.stdout
