"""The job scripts that checks write for networks and schedulers which no test machine has.

``tests/golden/scripts`` has them whole. After a change that is meant, delete a script and run the
test again: it writes the new one, and fails so that somebody reviews it.
"""

import difflib
import re
import subprocess
from pathlib import Path

import pytest

from assay import paths
from checks import job_script

CLUSTERS = Path(__file__).parents[1] / 'support' / 'clusters.py'
GOLDEN = Path(__file__).parents[1] / 'golden' / 'scripts'
FILES = {
    'PointToPoint': 'mpi/pt2pt',
    'Ring': 'mpi/ring',
    'MiniFE': 'apps/minife',
    'MiniFESweep': 'apps/minife',
    'MiniMDMixed': 'apps/minimd',
}
FABRICS = {
    'infiniband': 'ucx-ib',
    'slingshot': 'ofi-cxi',
    'omnipath': 'ofi-psm',
    'pbs': 'ucx-ib',
}
SMALL = {'size': 'cache', 'scale': '2_nodes'}
SCRIPTS = {
    # Account, reservation, constraint and GRES; --nodes.
    'infiniband-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'infiniband-mpich-Ring': {'layout': 'spread', 'scale': '4_nodes'},
    'infiniband-openmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    # Ranks that may use more CPUs than they have threads for.
    'infiniband-mpich-MiniMDMixed': SMALL | {'layout': 'mixed'},
    'slingshot-mpich-Ring': {'layout': 'one-per-numa', 'scale': '4_nodes'},
    'slingshot-openmpi-Ring': {'layout': 'one-per-node', 'scale': '4_nodes'},
    'slingshot-openmpi-PointToPoint': {'layout': 'spread', 'scale': '2_nodes'},
    # Steps on one node of a job that has two.
    'slingshot-mpich-MiniFESweep': SMALL | {'layout': 'packed', 'sweep': 'strong'},
    # The MPIs' own launchers inside a Slurm job.
    'omnipath-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'omnipath-intelmpi-Ring': {'layout': 'packed', 'scale': '4_nodes'},
    'omnipath-intelmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    # The MPIs' own launchers inside a PBS job.
    'pbs-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'pbs-openmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    'pbs-mpich-Ring': {'layout': 'spread', 'scale': '4_nodes'},
}


@pytest.mark.parametrize('stem', SCRIPTS)
def test_is_the_golden_script(stem, tmp_path):
    partition, environment, name = stem.split('-')
    where = (CLUSTERS, f'clusters:{partition}', tmp_path, FILES[name], name, environment)
    written = job_script(*where, fabric=FABRICS[partition], **SCRIPTS[stem])
    golden = GOLDEN / f'{stem}.sh'
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(written)
        pytest.fail(f'{golden} was missing; it has been written: review it')
    lines = difflib.unified_diff(
        golden.read_text().splitlines(),
        written.splitlines(),
        golden.name,
        'written now',
        n=1,
        lineterm='',
    )
    if difference := '\n'.join(lines):
        pytest.fail(difference, pytrace=False)


def test_each_golden_script_is_tested():
    assert {path.stem for path in GOLDEN.iterdir()} == set(SCRIPTS)


@pytest.mark.parametrize('stem', SCRIPTS)
def test_is_a_script_for_any_machine(stem):
    golden = GOLDEN / f'{stem}.sh'
    subprocess.run(['bash', '-n', golden], check=True)
    assert str(paths.ROOT) not in golden.read_text()


def test_the_documentation_shows_a_golden_script():
    text = (paths.ROOT / 'docs' / 'schedulers.md').read_text()
    quoted = re.search(r'`tests/golden/scripts/([^`]+)\.sh`.*?```sh\n(.*?)```', text, re.DOTALL)
    stem, shown = quoted.groups()
    parts = re.split(r'[ \n]\.\.\.\n', shown)
    whole = (GOLDEN / f'{stem}.sh').read_text()
    assert len(parts) > 1 and all(part in whole for part in parts)
