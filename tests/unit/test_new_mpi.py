"""An MPI is one file: without that of MVAPICH, the suite does not know it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay import paths

MVAPICH = Path('lib') / 'assay' / 'mpis' / 'mvapich.py'

HYDRA = 'HYDRA build details:\n    Version:                                 4.1.2\n'
COMMANDS = {
    'mvapich': {
        'mpirun': HYDRA,
        'mpicc': 'mpicc for MVAPICH version 3.0',
        'mpichversion': 'MVAPICH Version:      3.0\nMVAPICH Device:       ch4:ucx\n',
    },
    'mpich': {
        'mpirun': HYDRA,
        'mpicc': 'mpicc for MPICH version 4.1.2',
        'mpichversion': 'MPICH Version:      4.1.2\nMPICH Device:    ch4:ofi\n',
    },
}

# What each of the suite's parts makes of it, in a process that begins with the file there.
ASKED = """
import json, sys
from assay.config.environments import environment, spack_specs, tcp_over
from assay.config.fabrics import load_catalogue
from assay.layout.layouts import LAYOUTS, NodeShape
from assay.machine.modules import is_called_like_an_mpi
from assay.machine.mpi import find_mpis
from assay.mpis import FAMILIES

found = [mpi for mpi in find_mpis() if mpi.source == 'PATH']
catalogue, node = load_catalogue(), NodeShape(cores=8, numa_domains=2)
said = json.load(sys.stdin)
print(json.dumps({
    'found': [[mpi.name, mpi.family, mpi.version, mpi.fault] for mpi in found],
    'environments': [environment(mpi) for mpi in found],
    'spack': spack_specs(found),
    'interfaces': [name for name, _ in tcp_over('lo')],
    'module': is_called_like_an_mpi('mvapich/3.0'),
    'pmi': FAMILIES['mvapich'].srun_pmi,
    'layouts': {
        name: layout.place('mvapich', node, 2).options for name, layout in LAYOUTS.items()
    },
    'forced': catalogue.variables('ucx-tcp', 'mvapich'),
    'verdicts': [catalogue.verify('ucx-tcp', 'mvapich', [one]) for one in said],
    'no_recipe': [catalogue.no_recipe('tcp', mpi) for mpi in found],
}))
"""

TCP = 'ucp_worker.c:1903 UCX  INFO    ucp_context_0 intra-node cfg#1 tag(tcp/lo)  am(tcp/lo)\n'
MEMORY = 'ucp_worker.c:1903 UCX  INFO    ucp_context_0 intra-node cfg#1 tag(sysv/memory)\n'


@pytest.fixture(scope='module')
def house(tmp_path_factory):
    """A copy of the suite."""
    root = tmp_path_factory.mktemp('house')
    for name in ('lib', 'config'):
        shutil.copytree(paths.ROOT / name, root / name)
    return root


def python(house, folder, code, typed=''):
    """Run code in the copy, with a folder's commands on PATH."""
    env = {**os.environ, 'PYTHONPATH': f'{house}/lib', 'PATH': f'{folder}:/usr/bin:/bin'}
    return subprocess.run(
        [sys.executable, '-c', code], env=env, input=typed, capture_output=True, text=True
    )


@pytest.fixture(params=COMMANDS)
def told(request, house, tmp_path):
    """What the copy says of a machine with one of the two MPIs on PATH; the name of that MPI, and
    the folder of its commands."""
    bindir = tmp_path / 'bin'
    bindir.mkdir()
    for name, says in COMMANDS[request.param].items():
        # The wrapper's compiler is what it says to -show.
        answer = f'[ "$1" = -show ] && echo "cc -lmpi" || echo "{says}"'
        (bindir / name).write_text(f'#!/bin/sh\n{answer}\n')
        (bindir / name).chmod(0o755)
    (bindir / 'cc').symlink_to('/bin/true')
    (tmp_path / 'lib').mkdir()
    (tmp_path / 'lib' / 'libmpi.so.12').touch()
    (bindir / 'IMB-MPI1').write_bytes(b'linked to \0libmpi.so.12\0')
    (bindir / 'IMB-MPI1').chmod(0o755)
    ended = python(house, bindir, ASKED, json.dumps([TCP, TCP + MEMORY, '']))
    assert ended.returncode == 0, ended.stderr
    return request.param, json.loads(ended.stdout), bindir


def test_an_mpi_is_one_file(told, house, tmp_path):
    name, said, bindir = told
    if name == 'mpich':  # which has the same launcher
        assert said['found'] == [['mpich-path', 'mpich', '4.1.2', None]]
        return
    assert said['found'] == [['mvapich-path', 'mvapich', '3.0', None]]
    (made,) = said['environments']
    assert made['extras']['family'] == 'mvapich'
    assert made['features'] == ['mpi', 'mvapich', 'ucx-tcp', 'ucx-ib', 'imb']
    assert said['no_recipe'] == ['MVAPICH has no way to force it']
    assert said['spack'] == {'mvapich-path': 'mvapich@=3.0'}
    assert said['module'] and said['pmi'] == 'pmi2' and 'HYDRA_IFACE' in said['interfaces']
    assert said['layouts']['packed'] == ['-ppn 2', '-bind-to core:1 -map-by core:1']
    assert len({str(options) for options in said['layouts'].values()}) >= 4
    assert said['forced']['UCX_TLS'] == 'self,tcp'
    assert said['forced']['UCX_LOG_LEVEL'] == 'info'
    right, wrong, silent = said['verdicts']
    assert right is None
    assert wrong.startswith(
        'fabric ucx-tcp was asked for, but its use is not shown; MVAPICH says: '
    )
    assert 'tag(sysv/memory)' in wrong
    assert 'Assay has never run with MVAPICH' in wrong
    assert 'MVAPICH does not say in the output which one it used' in silent
    without = tmp_path / 'without'
    shutil.copytree(house, without, symlinks=True)
    (without / MVAPICH).unlink()
    code = 'from assay.machine.mpi import find_mpis; print(*[one.fault for one in find_mpis()])'
    assert 'MVAPICH 3.0 in ' in python(without, bindir, code).stdout


@pytest.mark.parametrize(
    ('right', 'wrong', 'words'),
    [
        ("requires=r'ch4:.*", "requires=r'(ch4:.*", 'Recipe: requires: Value error, not a valid'),
        ("'UCX_TLS': 'self,tcp'", "'UCX_TLS': 1", 'Recipe: env.UCX_TLS: '),
        (
            "        'library': '^MVAPICH",
            "        'librarian': '^MVAPICH",
            'Family: librarian: Extra inputs are not permitted',
        ),
        (
            "'ucx-tcp': Recipe",
            "'uxc-tcp': Recipe",
            'fabrics.uxc-tcp: not there, and lib/',
        ),
    ],
)
def test_a_mistake_in_it_is_named(house, tmp_path, right, wrong, words):
    text = (house / MVAPICH).read_text()
    assert right in text
    broken = tmp_path / 'house'
    shutil.copytree(house, broken)
    file = broken / MVAPICH
    file.write_text(text.replace(right, wrong, 1))
    ended = python(broken, '/bin', 'from assay.config.fabrics import *; load_catalogue()')
    said = ended.stderr.splitlines()[-1]
    assert words in said
    if 'fabrics' not in words:
        line = text[: text.index(right)].count('\n') + 1
        at = int(said.partition(f'{file}, line ')[2].partition(':')[0])
        assert 0 <= line - at <= 30  # where the Recipe or Family begins
