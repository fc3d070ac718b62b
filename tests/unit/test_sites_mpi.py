"""The corpus of sites: which MPI it is, by what its commands and its library say.

``commands.yaml`` has the answers of each command to its arguments; ``library`` is text that the
library holds. ``site.yaml`` expects ``family`` and ``version``, and what the fault ``says``, or the
``fabrics`` of the build. ``launcher: null`` is one without, which srun starts.
"""

import shlex
from pathlib import Path

import pytest
import yaml

from assay.config.environments import environment
from assay.config.fabrics import load_catalogue
from assay.machine.candidates import Candidate
from assay.machine.mpi import examine_mpi
from sites import sites


def script(answers):
    """A command that answers questions; any other fails."""
    lines = ['case "$*" in']
    for question, answer in answers.items():
        code = 0
        if isinstance(answer, dict):
            code, answer = answer['exit'], answer['says']
        lines.append(f'{shlex.quote(question)}) printf %s {shlex.quote(answer)}; exit {code};;')
    return '\n'.join(['#!/bin/sh', *lines, 'esac', 'echo "unknown option: $*" >&2', 'exit 1', ''])


@pytest.fixture(params=sites('mpi'), ids=str)
def found(request, tmp_path, monkeypatch):
    """What is made of a site's MPI, and what is expected."""
    commands = yaml.safe_load(request.param.text('commands.yaml'))
    bindir, path = tmp_path / 'opt' / 'bin', tmp_path / 'bin'
    for folder in (bindir, path, tmp_path / 'opt' / 'lib'):
        folder.mkdir(parents=True)
    for name, answers in commands.items():
        file = (path if name == 'srun' else bindir) / name
        file.write_text(script(answers))
        file.chmod(0o755)
    for compiler in ('cc', 'gcc', 'icx', 'fcc', 'xlc_r'):
        (path / compiler).symlink_to('/bin/true')
    (path / 'sh').symlink_to('/bin/sh')
    if text := request.param.text('library'):
        content = b'\x7fELF\0' + text.encode() + b'\0'
        (tmp_path / 'opt' / 'lib' / 'libmpi.so').write_bytes(content)
    monkeypatch.setenv('PATH', str(path))
    mpi = examine_mpi(Candidate(None, 'PATH', bindir, suffix='path'))
    assert mpi
    return mpi, request.param.expect


def test_mpis_of_sites(found):
    mpi, expect = found
    assert (mpi.family, mpi.version) == (expect['family'], expect['version'])
    assert mpi.is_stranger == (mpi.family is None)
    if says := expect.get('says'):
        assert says in mpi.fault
    else:
        assert mpi.fault is None
        assert bool(mpi.launcher) == ('launcher' not in expect)
        assert bool(mpi.left_out) == ('launcher' in expect)
    if 'cc' in expect:
        assert (Path(mpi.cc).name, Path(mpi.cxx).name) == (expect['cc'], expect['cxx'])
    if 'fabrics' in expect:
        catalogue = load_catalogue()
        usable = [name for name in catalogue.fabrics if not catalogue.no_recipe(name, mpi)]
        assert usable == expect['fabrics']
        assert set(usable) < {*environment(mpi)['features']}
