"""What is built once for all runs that build the same, and what is built anew."""

import shutil
import subprocess
from pathlib import Path

import pytest

from assay import paths
from assay.checks.build import SHARE
from families import FOUND

# As the script of a build has it; the program is built without CMake to save time.
SCRIPT = """
{variables}
. {share} {builds} {cc} {cxx} '{flags}' '' 'cmake {commands} {flags}'
echo building in "$PWD"
{wait}
{cc} {flags} program.c -o build/program
(cd build && assay_seal)
"""


@pytest.fixture
def build(tmp_path):
    """Starts the script of a build, with the sources in a stage folder of its own."""
    if 'mpich' not in FOUND:
        pytest.skip('needs the mpich wheel, which could not be installed')
    mpi = FOUND['mpich']

    def start(
        name,
        flags='-O0',
        commands='',
        variables='',
        wait='',
        source='int main(void){return 3;}',
        cc=mpi.cc,
    ):
        stage = tmp_path / name
        stage.mkdir()
        (stage / 'program.c').write_text(source)
        (stage / 'rfm_build.sh').write_text(
            SCRIPT.format(
                share=SHARE,
                builds=tmp_path / 'builds',
                cc=cc,
                cxx=mpi.cxx,
                flags=flags,
                commands=commands,
                variables=variables,
                wait=wait,
            )
        )
        return subprocess.Popen(
            ['bash', '-e', 'rfm_build.sh'],
            cwd=stage,
            env={'PATH': f'{paths.VENV_BIN}:/usr/bin:/bin:/sbin'},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.fixture
def built(build, tmp_path):
    """Builds; returns the folder that it is in and whether it was made now."""

    def run(name, **how):
        process = build(name, **how)
        said = process.communicate(timeout=300)[0]
        assert process.returncode == 0, said
        return (tmp_path / name / 'build').resolve(), 'building in' in said

    return run


def test_the_same_is_built_once(built):
    first, made = built('first')
    assert made
    assert subprocess.run([first / 'program']).returncode == 3
    assert built('second') == (first, False)


def test_what_differs_is_built_apart(built):
    others = (
        {'flags': '-O1'},
        {'source': 'int main(void){return 4;}'},
        {'commands': '-DCMAKE_EXE_LINKER_FLAGS=-s'},
        {'variables': 'export LDFLAGS=-s'},
    )
    found = [built(f'{number}', **how) for number, how in enumerate([{}, *others])]
    assert all(made for _, made in found)
    assert len({folder for folder, _ in found}) == len(found)
    assert all((folder / 'program').exists() for folder, _ in found)


def test_what_is_not_whole_is_built_anew(built):
    folder, _ = built('first')
    for damage in ('truncated', 'removed', 'unsealed', 'half made'):
        if damage == 'truncated':
            (folder / 'program').write_bytes((folder / 'program').read_bytes()[:100])
        elif damage == 'removed':
            (folder / 'program').unlink()
        elif damage == 'unsealed':
            (folder / '.whole').unlink()
        else:
            shutil.rmtree(folder)
            folder.mkdir()
        assert built(damage) == (folder, True), damage
        assert subprocess.run([folder / 'program']).returncode == 3


def test_what_lost_its_library_is_built_anew(built, tmp_path):
    """As where an update of Assay brings another OpenBLAS, or the same in another folder."""
    library = tmp_path / 'libsome_blas.so'

    def make(answer):
        source = f'int blas(void){{return {answer};}}'
        command = ['cc', '-shared', '-x', 'c', '-', '-o', library]
        subprocess.run(command, input=source, text=True, check=True)

    make(3)
    linked = f'-Wl,--no-as-needed,-rpath,{tmp_path} -L{tmp_path} -lsome_blas'
    how = {'flags': linked, 'source': 'int blas(void); int main(void){return blas();}'}
    folder, _ = built('first', **how)
    assert built('second', **how) == (folder, False)
    make(4)
    assert built('third', **how) == (folder, True)
    assert subprocess.run([folder / 'program']).returncode == 4


def test_another_mpi_in_a_container_is_built_for_anew(built, tmp_path):
    """Its header is no file of this machine."""
    inside, cc = tmp_path / 'inside', tmp_path / 'cc'
    inside.mkdir()
    cc.write_text(
        f'#!/bin/sh\n"{FOUND["mpich"].cc}" -I{inside} "$@" </dev/null | sed s:{inside}:/nowhere:\n'
    )
    cc.chmod(0o755)
    made = []
    for number, version in enumerate(['"5.0.2"', '"5.0.2"', '"5.0.3"']):
        (inside / 'mpi.h').write_text(f'#define MPICH_VERSION {version}\n')
        made.append(built(f'{number}', cc=cc)[1])
    assert made == [True, False, True]


def test_of_two_at_once_one_builds_and_the_other_waits(build, tmp_path):
    first = build('first', wait=f'until [[ -e {tmp_path}/go ]]; do sleep 0.05; done')
    while 'building in' not in first.stdout.readline():
        pass
    second = build('second', wait='')
    (tmp_path / 'go').touch()
    said = second.communicate(timeout=300)[0]
    assert first.wait(timeout=300) == 0
    assert 'built before: ' in said and 'building in' not in said


def test_one_that_was_killed_leaves_nothing_to_others(build, built):
    first = build('first', wait='exec sleep 600')
    while 'building in' not in first.stdout.readline():
        pass
    first.kill()
    first.communicate()
    assert built('second')[1]


def test_without_locks_each_builds_for_itself(built, tmp_path):
    (tmp_path / 'builds').write_text('in the way')
    folder, made = built('first')
    assert made and folder == Path(tmp_path, 'first', 'build')
