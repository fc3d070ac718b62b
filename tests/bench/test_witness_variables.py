"""The variables and libraries that the witness saw: whole, and the same for two equal jobs."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

import pytest

from assay.witness.report import Report

pytestmark = pytest.mark.differs_by_mpi

# Rank 1 has one variable more, one less, one otherwise, and one whose value is no text.
UNLIKE = r"""
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
    export UCX_RNDV_THRESH=1k MPICH_OF_RANK_1="$(printf 'a\377\303\251\303(')"
    unset FI_LOG_PROV
fi
exec "$@"
"""
GIVEN = {
    'UCX_RNDV_THRESH': '8k',
    'FI_LOG_PROV': 'tcp',
    'UCX_LOG_FILE': '',
    'OMPI_MCA_coll_tuned_priority': '40',
    'PMIX_MCA_gds': 'hash',
    'MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM': 'auto',
    'OMP_NUM_THREADS': '1',
    'MALLOC_ARENA_MAX': '2',
    'LOADEDMODULES': 'gcc/13.2:openmpi/5.0.9',
}


@pytest.fixture
def library(tmp_path):
    """A library of an MPI's name, in a folder of brackets and a quote."""
    path = tmp_path / 'it]s_"[here' / 'libmpi_more.so'
    path.parent.mkdir()
    subprocess.run(
        ['cc', '-shared', '-fPIC', '-Wl,--build-id=none', '-xc', '/dev/null', '-o', path],
        check=True,
    )
    return str(path)


def test_variables_and_libraries(build, compiled, witnessed_in, library, tmp_path):
    script = tmp_path / 'unlike.sh'
    script.write_text(UNLIKE)
    preload = f'{build("assay_witness") / "libassay_witness.so"}:{library}'
    command = ['sh', str(script), str(compiled('partners')), '1', '1', '1']
    seen = []
    for name in ('a', 'b'):
        folder = tmp_path / name
        folder.mkdir()
        run = witnessed_in(folder, *command, env=GIVEN, preload=preload)
        assert run.code == 0, run.err
        report = Report.model_validate_json(json.dumps(run.report))
        seen.append((report.environment, report.processes[1].differs.environment))
    first, second = seen
    # No name of a start, of a rank or of a folder among them.
    assert first == second
    environment, differing = first
    assert environment.items() >= {**GIVEN, 'LD_PRELOAD': library}.items()
    assert not {name for name in environment if name.startswith('ASSAY')}
    assert differing == {
        'UCX_RNDV_THRESH': '1k',
        'MPICH_OF_RANK_1': 'a\ufffdé\ufffd(',
        'FI_LOG_PROV': None,
    }
    assert report.environment_of(report.processes[1]) == {
        **{name: value for name, value in environment.items() if name != 'FI_LOG_PROV'},
        'UCX_RNDV_THRESH': '1k',
        'MPICH_OF_RANK_1': 'a\ufffdé\ufffd(',
    }
    assert report.environment_of(report.processes[0]) == environment
    loaded = {one.path: one for one in report.libraries}
    assert loaded[library].build_id == ''
    assert str(Path(report.mpi.path).resolve()) in loaded
    kind, version = platform.libc_ver()
    if kind == 'glibc':  # whose file was libc-2.33.so before 2.34
        (libc,) = (one for path, one in loaded.items() if re.match('libc[-.]', Path(path).name))
        assert libc.version == version
    assert not any('libassay_' in path for path in loaded)
