"""MPIs of environment modules, with the real tools: each test needs one of Lmod and Modules."""

import os
import re
import shutil
from pathlib import Path

import pytest
from reframe.core.exceptions import EnvironError
from reframe.core.modules import ModulesSystem

from assay import AssayError
from assay.config import environments
from assay.machine import modules as environment_modules
from assay.machine import mpi

LMOD = Path(os.environ.get('LMOD_CMD', '/usr/share/lmod/lmod/libexec/lmod'))
HEADER = '#%Module1.0'


@pytest.fixture(params=['lmod', 'envmod'])
def modules(request, elsewhere, monkeypatch):
    """An empty folder of modules, in the environment of one of the tools."""
    for name in [name for name in os.environ if 'MODULE' in name or 'LMOD' in name]:
        monkeypatch.delenv(name)
    if request.param == 'lmod':
        if not LMOD.exists():
            pytest.skip('Lmod is not installed')
        monkeypatch.setenv('LMOD_CMD', str(LMOD))
    elif not shutil.which('modulecmd'):
        pytest.skip('Environment Modules is not installed')
    folder = elsewhere / 'modules'
    folder.mkdir()
    monkeypatch.setenv('MODULEPATH', str(folder))
    monkeypatch.setenv('LOADEDMODULES', '')
    return folder


def module(folder, name, *lines):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('\n'.join([HEADER, *lines, '']))
    file.chmod(0o644)  # to root, Lmod shows none that others may not read
    for parent in file.parents:
        parent.chmod(0o755)
        if parent == folder:
            break


def installed(elsewhere, name):
    """An MPICH that says what it is; returns the line with which a module brings it."""
    bindir = elsewhere / name / 'bin'
    bindir.mkdir(parents=True)
    for command, says in [('mpicc', 'cc'), ('mpirun', 'HYDRA build details:\n Version: 4.3.2')]:
        (bindir / command).write_text(f"#!/bin/sh\necho '{says}'\n")
        (bindir / command).chmod(0o755)
    return f'prepend-path PATH {bindir}'


def load(monkeypatch, *names):
    """Load modules into the environment of this process."""
    with environment_modules._environment_restored():
        tool = ModulesSystem.create(environment_modules.modules_tool())
        for name in names:
            tool.load_module(name)
        loaded = dict(os.environ)
    for name, value in loaded.items():
        monkeypatch.setenv(name, value)


def of_modules():
    return {one.modules[-1]: one for one in mpi.find_mpis() if one.modules}


def test_versions_with_dots_and_a_default(modules, elsewhere):
    brings = installed(elsewhere, 'mpich')
    for name in ('mpich/4.3.2', 'mpich/4-3-2', 'mpich/gcc/4.3.2'):
        module(modules, name, brings)
    module(modules, 'mpich/.hidden', brings)
    (modules / 'mpich' / '.modulerc').write_text(f'{HEADER}\nmodule-version mpich/4.3.2 default\n')
    found = of_modules()
    assert set(found) == {'mpich/4.3.2', 'mpich/4-3-2', 'mpich/gcc/4.3.2'}
    assert found['mpich/4.3.2'].name == 'mpich-module-mpich-4_3_2'
    assert len({one.name for one in found.values()}) == 3
    assert all(one.fault is None for one in found.values())


def test_modules_that_do_not_work_stay(modules, elsewhere):
    module(modules, 'mpich/1', 'this is no command')
    module(modules, 'mpich/2', f'prepend-path PATH {elsewhere}/gone/bin')
    module(modules, 'mpich/3', 'prereq gone')
    found = of_modules()
    assert {name: one.family for name, one in found.items()} == dict.fromkeys(
        ['mpich/1', 'mpich/2', 'mpich/3'], 'mpich'
    )
    assert re.search('module mpich/1 .*it cannot be loaded: .*this', found['mpich/1'].fault)
    assert re.search('module mpich/2 .*there is no mpicc', found['mpich/2'].fault)
    assert re.search('module mpich/3 .*it cannot be loaded: .*gone', found['mpich/3'].fault)
    assert environments.environment(found['mpich/3'])['extras']['fault'] == found['mpich/3'].fault


def test_a_module_that_prints_is_the_only_one_that_fails(modules, elsewhere):
    """As those that have a shell read a file, in words that are no Python."""
    module(modules, 'mpich/4', installed(elsewhere, 'mpich'))
    for name in ('mpich/5', 'nvhpc/24'):
        if environment_modules.modules_tool() == 'lmod':
            module(modules, f'{name}.lua')
            (modules / f'{name}.lua').write_text('io.stdout:write("source /opt/setup.sh;\\n")\n')
        else:
            module(modules, name, 'puts stdout "source /opt/setup.sh;"')
    found = of_modules()
    assert {*found} == {'mpich/4', 'mpich/5'}
    assert found['mpich/4'].fault is None
    assert 'cannot be loaded: what it prints is no answer to ReFrame' in found['mpich/5'].fault


def test_an_mpi_that_is_named_behind_two_compilers_is_two(modules, elsewhere, monkeypatch):
    monkeypatch.setenv('MODULES_AUTO_HANDLING', '0')
    for compiler in ('gcc', 'llvm'):
        module(modules, f'{compiler}/1', f'prepend-path MODULEPATH {elsewhere}/of-{compiler}')
        brings = installed(elsewhere, f'mpich-of-{compiler}')
        module(elsewhere / f'of-{compiler}', 'mpich/4', brings)
    monkeypatch.setenv(environment_modules.PLACES, 'gcc/1 mpich/4,llvm/1 mpich/4')
    named = [one for one in mpi.find_mpis() if one.source == 'named']
    assert [one.modules for one in named] == [('gcc/1', 'mpich/4'), ('llvm/1', 'mpich/4')]
    assert [one.prefix.name for one in named] == ['mpich-of-gcc', 'mpich-of-llvm']


def test_what_lmod_fails_to_show_is_not_there():
    class Tool:
        name = 'lmod'

        def execute(self, *words):
            raise EnvironError('spider does not work')

    assert environment_modules._seen_later(Tool()) == {}


def test_modules_that_others_exclude_are_left_out_and_those_that_need_one_load_it(
    modules, elsewhere, monkeypatch
):
    monkeypatch.setenv('MODULES_AUTO_HANDLING', '0')
    brings = installed(elsewhere, 'mpich')
    module(modules, 'mpich/4', 'prereq gcc', brings)
    module(modules, 'mpich/5', 'conflict llvm', brings)
    module(modules, 'gcc/13')
    module(modules, 'llvm/19')
    found = of_modules()
    assert {name: (one.modules, one.fault) for name, one in found.items()} == {
        'mpich/4': (('gcc', 'mpich/4'), None),
        'mpich/5': (('mpich/5',), None),
    }
    load(monkeypatch, 'gcc', 'llvm')
    assert set(of_modules()) == {'mpich/4'}


def test_modules_that_need_several_load_them_or_are_left_out(modules, elsewhere, monkeypatch):
    """What cannot be loaded even then is not for this shell, which others may have set up."""
    monkeypatch.setenv('MODULES_AUTO_HANDLING', '0')
    brings = installed(elsewhere, 'mpich')
    module(modules, 'mpich/4', 'prereq gcc', 'prereq hwloc', brings)
    module(modules, 'mpich/5', 'prereq llvm', brings)
    module(modules, 'gcc/13')
    module(modules, 'hwloc/2')
    module(modules, 'llvm/19', 'this is no command')
    assert {name: (one.modules, one.fault) for name, one in of_modules().items()} == {
        'mpich/4': (('gcc', 'hwloc', 'mpich/4'), None)
    }


def test_a_module_that_another_brings_is_found_with_it(modules, elsewhere, monkeypatch):
    """As in a hierarchy: MPIs are seen once their compiler is loaded, and only in that shell."""
    monkeypatch.setenv('MODULES_AUTO_HANDLING', '0')
    brings = installed(elsewhere, 'mpich')
    module(modules, 'gcc/13', f'prepend-path MODULEPATH {elsewhere}/of-gcc')
    module(elsewhere / 'of-gcc', 'mpich/4', brings)
    module(modules, 'mpich/5', brings)
    module(modules, 'mpich/6', brings)
    module(elsewhere / 'of-gcc', 'mpich/6', installed(elsewhere, 'mpich-of-gcc'))
    module(modules, 'git/2')
    assert set(of_modules()) == {'mpich/5', 'mpich/6'}
    with monkeypatch.context() as in_this_shell:
        load(in_this_shell, 'git', 'gcc')
        found = {name: one.modules for name, one in of_modules().items()}
    assert found == {
        'mpich/4': ('git/2', 'gcc/13', 'mpich/4'),
        'mpich/5': ('mpich/5',),
        'mpich/6': ('git/2', 'gcc/13', 'mpich/6'),
    }
    kind = environment_modules.modules_tool()
    with pytest.raises(AssayError, match='module mpich/4 cannot be loaded'):
        environment_modules.environment_of(['mpich/4'], kind)
    in_another_shell = environment_modules.environment_of(found['mpich/4'], kind)
    assert f'{elsewhere}/mpich/bin' in in_another_shell['PATH'].split(':')


def test_a_shell_that_nobody_set_up_for_modules(elsewhere, monkeypatch):
    """As cron's. Environment Modules 5.2 is installed, and says this without a MODULEPATH."""
    for name in [name for name in os.environ if 'MODULE' in name or 'LMOD' in name]:
        monkeypatch.delenv(name)
    command = elsewhere / 'modulecmd'
    said = 'echo "ERROR: No module path defined" >&2; echo "_mlstatus = False"; exit 1'
    command.write_text(f'#!/bin/sh\n{said}\n')
    command.chmod(0o755)
    monkeypatch.setenv('PATH', f'{elsewhere}:{os.environ["PATH"]}')
    assert of_modules() == {}
    monkeypatch.setenv('MODULEPATH', str(elsewhere))
    with pytest.raises(AssayError, match=r'(?s)do not work: .*No module path defined'):
        mpi.find_mpis()


def test_a_tool_that_does_not_work_is_no_empty_list(modules, monkeypatch):
    if 'LMOD_CMD' in os.environ:
        monkeypatch.setenv('LMOD_CMD', '/bin/false')
    else:
        monkeypatch.setenv('MODULESHOME', '/nowhere')
        monkeypatch.setenv('PATH', '/nowhere')
    with pytest.raises(AssayError, match='environment modules of this machine do not work'):
        mpi.find_mpis()


def test_lmod_says_what_it_shows_only_later(modules, elsewhere):
    for compiler in ('gcc/12', 'gcc/13'):
        module(modules, compiler, f'prepend-path MODULEPATH {elsewhere}/of-gcc')
    module(elsewhere / 'of-gcc', 'mpich/4', installed(elsewhere, 'mpich'))
    found = {name: (one.modules, one.fault) for name, one in of_modules().items()}
    is_lmod = environment_modules.modules_tool() == 'lmod'
    assert found == ({'mpich/4': (('gcc/12', 'mpich/4'), None)} if is_lmod else {})


def test_what_only_may_bring_an_mpi_counts_once_and_is_no_fault(modules, elsewhere):
    brings = installed(elsewhere, 'mpich')
    module(modules, 'mpich/4', 'puts stderr "Welcome, ERROR is a word"', brings)
    module(modules, 'mpi/latest', brings)
    module(modules, 'apps/mpich/4', installed(elsewhere, 'of-apps'))
    module(modules, 'gompi/2023a', 'prereq gone')
    module(modules, 'mpi/2021.11', f'prepend-path PATH {elsewhere}/no-mpi/bin')
    assert {name: one.fault for name, one in of_modules().items()} == {
        'mpich/4': None,
        'apps/mpich/4': None,
    }


def test_of_too_many_modules_the_newest_are_asked(modules, elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(environment_modules, 'MOST', 3)
    brings = installed(elsewhere, 'mpich')
    for name in ('mpich/3', 'mpich/4.9', 'mpich/4.10', 'mpi/mpich/3', 'mpi/mpich/4'):
        module(modules, name, brings)
    assert set(of_modules()) == {'mpich/4.10', 'mpi/mpich/4', 'mpi/mpich/3'}
    assert '5 modules are called like an MPI, and the newest 3' in capsys.readouterr().err


def test_an_mpi_that_is_named_by_its_module(modules, elsewhere, monkeypatch):
    monkeypatch.setenv('MODULES_AUTO_HANDLING', '0')
    module(modules, 'acme/2', 'prereq gcc', installed(elsewhere, 'acme'))
    module(modules, 'gcc/13')
    monkeypatch.setenv(environment_modules.PLACES, 'gcc/13 acme/2')
    assert {name: one.modules for name, one in of_modules().items()} == {
        'acme/2': ('gcc/13', 'acme/2')
    }
    monkeypatch.setenv(environment_modules.PLACES, 'acme/2')
    with pytest.raises(AssayError, match=r'--mpi acme/2: as a module: it cannot be loaded: .*gcc'):
        mpi.find_mpis()
    monkeypatch.setenv(environment_modules.PLACES, 'gcc/13')
    with pytest.raises(AssayError, match=r'--mpi gcc/13: .*no mpicc|it brings no other mpicc'):
        mpi.find_mpis()


def test_cray_modules_put_no_wrapper_on_path(modules, elsewhere):
    installed(elsewhere, 'cray')
    module(modules, 'cray-mpich/8', f'setenv CRAY_MPICH_DIR {elsewhere}/cray')
    module(modules, 'cray-mpich/7.7.10', 'setenv CRAY_MPICH_DIR /nowhere')
    found = of_modules()
    assert found['cray-mpich/8'].cc == f'{elsewhere}/cray/bin/mpicc'
    # Its wrapper is cc, as of the compiler.
    older = found['cray-mpich/7.7.10']
    assert (older.is_stranger, older.family, older.version) == (True, None, '7.7.10')
    assert older.left_out.startswith('Cray MPICH 7.7.10 of module cray-mpich/7.7.10 is an MPI that')
