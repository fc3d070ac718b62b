"""What figures were measured with: read from builds, and shown."""

import json
import os
import re
import subprocess

import pytest

from assay import AssayError, paths
from assay.commands import history as history_commands
from assay.machine import provenance
from assay.results.provenance import changed_facts, facts_from_variables


@pytest.fixture
def build(tmp_path):
    """Writes what CMake leaves in a folder of a build, as far as it is read."""

    def write(flags='-march=x86-64-v3', optimised='-O2'):
        compiler = tmp_path / 'CMakeFiles' / '3.31.10' / 'CMakeCXXCompiler.cmake'
        compiler.parent.mkdir(parents=True, exist_ok=True)
        compiler.write_text(
            'set(CMAKE_CXX_COMPILER "/opt/mpi/bin/mpicxx")\n'
            'set(CMAKE_CXX_COMPILER_ID "GNU")\n'
            'set(CMAKE_CXX_COMPILER_VERSION "12.2.0")\n'
        )
        (tmp_path / 'CMakeCache.txt').write_text(
            '//What the programs are linked with\n'
            'ASSAY_BLAS:INTERNAL=/usr/lib/libopenblas.so\n'
            'CMAKE_CXX_FLAGS:STRING= -march=of-the-cache\n'
        )
        sources = {'ring.c': '', 'halo.c': '-O3 -fopenmp', 'json.c': '-fPIC', 'main.cpp': ''}
        commands = [
            {
                'directory': str(tmp_path),
                'command': f'/opt/mpi/bin/mpicc -iquote /a/mpi {flags} '
                f'{optimised} -std=c11 -Wall {own} -o parts/{name}.o -c /a/{name}',
                'file': f'/a/{name}',
            }
            for name, own in sources.items()
        ]
        (tmp_path / 'compile_commands.json').write_text(json.dumps(commands))
        return tmp_path

    return write


def test_a_build_by_cmake_tells_the_same_facts(build):
    found = provenance.of_cmake(build(), 'mpich@4.3.2', 'abc')
    assert (found.by, found.spec) == ('cmake', '')
    assert found.compiler == 'gcc@12.2.0'
    assert found.mpi == 'mpich@4.3.2'
    assert found.blas == '/usr/lib/libopenblas.so'
    assert found.target == 'x86-64-v3'
    assert re.fullmatch(r'[0-9a-f]{32}', found.hash)


@pytest.mark.parametrize(
    ('given', 'obeyed'),
    [
        ('-march=x86-64-v3', '-march=x86-64-v3 -O2'),
        ('-O1', '-O2'),  # by what comes behind it
        ('-march=native -march=x86-64 -g -DSITE=1', '-march=x86-64 -g -DSITE=1 -O2'),
        ('-funroll-loops -fno-unroll-loops', '-fno-unroll-loops -O2'),
    ],
)
def test_flags_are_those_that_the_compiler_obeyed(build, given, obeyed):
    found = provenance.of_cmake(build(given), 'mpich@4.3.2', 'abc')
    assert found.flags == f'C: {obeyed}; C++: {obeyed}'


def test_native_is_this_processor(build):
    found = provenance.of_cmake(build('-march=native'), 'mpich@4.3.2', 'abc')
    assert found.target not in ('', 'native')
    assert provenance.of_cmake(build(''), 'mpich@4.3.2', 'abc').target == ''


def test_builds_that_differ_in_anything_have_other_checksums(build):
    folder = build()
    checksums = {
        provenance.of_cmake(folder, 'mpich@4.3.2', 'abc').hash,
        provenance.of_cmake(folder, 'mpich@4.3.3', 'abc').hash,
        provenance.of_cmake(folder, 'mpich@4.3.2', 'abd').hash,
        provenance.of_cmake(build(optimised='-O3'), 'mpich@4.3.2', 'abc').hash,
    }
    assert len(checksums) == 4


def test_a_named_program_is_known_by_its_content(tmp_path):
    program = tmp_path / 'xhpl'
    program.write_text('one')
    before = provenance.of_binary(program)
    assert (before.by, before.spec) == ('binary', str(program))
    program.write_text('two')
    assert provenance.of_binary(program).hash != before.hash


# A run's report -----------------------------------------------------------------------------------


def a_report(path, **facts):
    """A report of two cases, one of which did not run."""

    where = {'system': 'generic', 'partition': 'node', 'environ': 'mpich'}
    built = {'built_by': 'spack', 'built_mpi': 'mpich@4.3.2', 'suite_commit': 'abc'}
    ran = {
        'ran_mpi': 'MPICH Version: 4.3.2 (/x/libmpi.so.12)',
        'ran_modules': 'gcc/13.2',
        'ran_variables': "FI_PROVIDER=tcp UCX_TLS='self sm'",
        'jobid': '12',
        'job_nodelist': ['n1', 'n2'],
    }
    built |= ran | facts
    where |= {'fixture': False, 'result': 'pass', 'perfvalues': {}}
    cases = [
        {'display_name': 'Ring %scale=1_node', **where, **built},
        {'display_name': 'Halo %scale=1_node', **where, 'built_by': ''},
    ]
    info = {'uuid': 'x', 'time_start_unix': 1, 'time_end_unix': 2}
    path.write_text(json.dumps({'session_info': info, 'runs': [{'testcases': cases}]}))
    return path


def test_facts_are_shown_for_cases_that_ran(tmp_path, capsys):
    history_commands.provenance(str(a_report(tmp_path / 'now.json')))
    shown = capsys.readouterr().out
    assert re.search(r'Ring .*  job 12 on n\[1-2\]\n +by +spack\n +mpi +mpich@4\.3\.2\n', shown)
    assert re.search(r'\n +ran_mpi +MPICH Version: 4\.3\.2 \(/x/libmpi\.so\.12\)\n', shown)
    assert re.search(r'\n +FI_PROVIDER +tcp\n +UCX_TLS +self sm\n', shown)
    assert 'Halo' not in shown


def test_two_reports_show_the_difference_only(tmp_path, capsys):
    before = {'ran_variables': 'FI_PROVIDER=tcp', 'jobid': '7', 'job_nodelist': ['n3']}
    then = a_report(tmp_path / 'then.json', built_mpi='mpich@4.3.1', **before)
    now = a_report(tmp_path / 'now.json')
    history_commands.provenance(str(then), str(now), name='Ring')
    shown = capsys.readouterr().out
    assert re.search(r'mpi +mpich@4\.3\.1 -> mpich@4\.3\.2', shown)
    assert re.search(r'UCX_TLS +- -> self sm', shown)
    assert 'spack' not in shown and 'FI_PROVIDER' not in shown
    assert '1 of 1 cases were built or ran otherwise' in shown
    history_commands.provenance(str(then), str(now), as_json=True)
    (case,) = json.loads(capsys.readouterr().out)
    assert case['case'].startswith('Ring') and case['where'] == 'job 12 on n[1-2]'
    assert case['facts']['mpi'] == 'mpich@4.3.1 -> mpich@4.3.2' and 'by' not in case['facts']
    history_commands.provenance(str(now), str(now), name='Ring')
    assert capsys.readouterr().out == '0 of 1 cases were built or ran otherwise\n'


def test_what_nobody_knows_of_a_node_is_no_change(tmp_path, capsys):
    then = a_report(tmp_path / 'then.json', ran_on_kernel='6.1.0', ran_on_smt='', ran_on_boost='on')
    now = a_report(tmp_path / 'now.json', ran_on_kernel='6.5.0', ran_on_smt='on', ran_on_boost='')
    history_commands.provenance(str(then), str(now), name='Ring')
    shown = capsys.readouterr().out
    assert re.search(r'\n +ran_on_kernel +6\.1\.0 -> 6\.5\.0\n', shown)
    assert 'smt' not in shown and 'boost' not in shown
    history_commands.provenance(str(now), name='Ring')
    assert 'boost' not in capsys.readouterr().out


def test_libraries_are_compared_where_both_looked_for_them():
    def facts(*libraries):
        given = ' '.join(f"'library {one}'" for one in libraries)
        return facts_from_variables({'ran_settings': f"'limit of core=0 B' {given}"})

    old = facts('libucp=1.15.0 294c74f6 (/a b/libucp.so.0)', 'libm=d6e6f9e3 (/lib/libm.so.6)')
    new = facts('libucp=1.16.0 d013dfae (/c/libucp.so.0)', 'libm=d6e6f9e3 (/lib/libm.so.6)')
    assert changed_facts(old, new) == (
        (
            'library libucp',
            '1.15.0 294c74f6 (/a b/libucp.so.0) -> 1.16.0 d013dfae (/c/libucp.so.0)',
        ),
    )
    assert changed_facts(facts(), new) == changed_facts(old, facts()) == ()


def test_nothing_that_matches_is_an_error(tmp_path):
    with pytest.raises(AssayError, match='no case that ran matches'):
        history_commands.provenance(str(a_report(tmp_path / 'now.json')), name='Halo')


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, which is the checkout; returns its folder."""
    root = tmp_path / 'checkout'
    committer = ['-c', 'user.name=a', '-c', 'user.email=a@b']
    subprocess.run(['git', 'init', '--quiet', root], check=True)
    (root / 'file').touch()
    subprocess.run(['git', '-C', root, 'add', 'file'], check=True)
    subprocess.run(['git', '-C', root, *committer, 'commit', '--quiet', '-m', 'one'], check=True)
    monkeypatch.setattr(paths, 'ROOT', root)
    provenance.suite_commit.cache_clear()
    yield root
    provenance.suite_commit.cache_clear()


def head(root):
    command = ['git', '-C', root, 'rev-parse', 'HEAD']
    return subprocess.check_output(command, text=True).strip()


def test_the_commit_of_the_checkout(repository):
    commit = head(repository)
    assert provenance.suite_commit() == commit
    provenance.suite_commit.cache_clear()
    (repository / 'file').write_text('changed')
    assert provenance.suite_commit() == f'{commit}-dirty'


def test_the_commit_of_a_worktree(repository, monkeypatch):
    other = repository.with_name('other')
    subprocess.run(['git', '-C', repository, 'worktree', 'add', '-q', other], check=True)
    monkeypatch.setattr(paths, 'ROOT', other)
    assert provenance.suite_commit() == head(repository)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody else's checkout")
def test_the_commit_of_somebody_elses_checkout(repository, monkeypatch):
    commit = head(repository)
    monkeypatch.setenv('GIT_CONFIG_GLOBAL', '/dev/null')
    for path in (repository, *repository.rglob('*')):
        os.chown(path, 65534, 65534)
    assert provenance.suite_commit() == commit


def test_a_git_that_may_not_be_started(tmp_path, monkeypatch):
    (tmp_path / 'git').touch()
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(AssayError, match=r'^git: Permission denied: `assay culprit` needs it'):
        provenance.git('assay culprit', 'log')


def test_a_copy_inside_another_repository_has_no_commit(repository, monkeypatch):
    (repository / 'copy').mkdir()
    monkeypatch.setattr(paths, 'ROOT', repository / 'copy')
    assert provenance.suite_commit() == ''


@pytest.mark.parametrize(
    'told', ['C: -O2; C++: -O3 -g', 'C: -O2;C++: -O3 -g', 'C++: -O3 -g; C: -O2']
)
def test_flags_by_language(told):
    assert provenance.read_flags(told) == {'C': '-O2', 'C++': '-O3 -g'}
    assert provenance.read_flags('-O2') == {'C': '-O2', 'C++': '-O2'}
