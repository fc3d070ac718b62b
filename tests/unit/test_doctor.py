"""What the doctor says of a machine that lacks something."""

import dataclasses
import shutil

import pytest

from assay import AssayError
from assay.config import settings
from assay.machine import mpi
from assay.machine.topology import usable_cores
from assay.running import doctor
from assay.vcluster import cluster
from found import MPICH


def lacking(monkeypatch, *names):
    which = shutil.which

    def without(name, **where):
        return None if name in names else which(name, **where)

    monkeypatch.setattr(shutil, 'which', without)


@pytest.mark.skipif(usable_cores() < 2, reason='needs two cores')
def test_this_machine_can_run(capsys):
    assert doctor.examine()
    said = capsys.readouterr().out
    for title in ('Python', 'Compilers', 'Configuration', 'Launchers', 'Spack', 'Hardware'):
        assert f'\n{title}' in said
    assert 'PROBLEM' not in said


def test_no_compiler_is_a_problem_with_a_remedy(monkeypatch, capsys):
    lacking(monkeypatch, 'cc', 'gcc', 'clang', 'icx')
    assert not doctor.examine()
    assert 'PROBLEM  no C compiler. Install gcc' in capsys.readouterr().out


def test_fabrics_that_an_mpi_lacks_have_a_reason(monkeypatch, capsys):
    monkeypatch.setattr(mpi, 'find_mpis', lambda: [MPICH])
    doctor.examine()
    said = capsys.readouterr().out
    assert 'ok       fabric ucx-tcp' in said
    assert 'no fabric ofi-tcp: this build of MPICH (4.3.2)' in said
    assert 'no wheel installed: `assay run --with intelmpi` installs it' in said


def test_defects_that_an_mpi_of_this_machine_has_shown(monkeypatch, capsys):
    monkeypatch.setattr(mpi, 'find_mpis', lambda: [MPICH])
    doctor.examine(['MPICH 4.3.2 has: it', 'MPICH 4.3.20 has: that', 'Open MPI 5.0.9 has: this'])
    said = capsys.readouterr().out
    assert '  -        MPICH 4.3.2 has: it' in said
    assert 'has: that' not in said
    assert 'has: this' not in said


def test_an_mpi_that_does_not_answer_is_a_problem(monkeypatch, capsys):
    fault = 'MPICH in /opt/mpich/bin does not answer: mpirun --version: no libhwloc'
    monkeypatch.setattr(mpi, 'find_mpis', lambda: [dataclasses.replace(MPICH, fault=fault)])
    assert not doctor.examine()
    assert f'PROBLEM  {fault}' in capsys.readouterr().out


def test_a_checkout_of_somebody_else_is_a_problem(monkeypatch, capsys):
    def refuse():
        raise AssayError('you may not write to /shared/assay')

    monkeypatch.setattr(settings, 'assert_writable', refuse)
    assert not doctor.examine()
    said = capsys.readouterr().out
    assert 'PROBLEM  you may not write to /shared/assay' in said
    assert 'assay run cannot work here' in said


def test_one_processor_is_too_few(monkeypatch, capsys):
    monkeypatch.setattr('os.sched_getaffinity', lambda pid: {0})
    assert not doctor.examine()
    assert 'messages need two ranks' in capsys.readouterr().out


def test_what_a_virtual_cluster_lacks(monkeypatch, capsys):
    had = {tool: f'/usr/bin/{tool}' for tool in cluster.TOOLS if tool not in ('slurmd', 'ip')}
    monkeypatch.setattr(shutil, 'which', lambda name, **where: had.get(name))
    doctor.examine()
    said = capsys.readouterr().out
    assert 'no virtual cluster: ' in said
    assert (
        'there is no slurmd, ip (Debian: apt install iproute2 slurm-wlm-basic-plugins slurmd)'
        in said
    )
