"""What is generated for Spack, what is read from it, and what is said where it is not."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from assay import AssayError, paths
from assay.config import environments
from assay.machine.mpi import Mpi
from assay.machine.provenance import Provenance, checksum, tree
from assay.results import runner
from assay.results.provenance import changed_facts
from assay.spack import builds, packages
from assay.spack import setup as spack_setup
from assay.spack import tool as spack
from assay.spack.lock_file import Build, compile_flags, from_lock, keep_spec, kept_spec


@pytest.fixture
def anywhere(tmp_path, monkeypatch):
    """Folders of Spack, its configurations and logs that are empty; no Spack is found."""
    monkeypatch.setattr(paths, 'SPACK', tmp_path / 'spack')
    monkeypatch.setattr(paths, 'SPACK_CONFIG', tmp_path / 'config')
    monkeypatch.setattr(spack, 'CLONES', tmp_path / 'spack' / 'clones')
    monkeypatch.setattr(spack, 'LOG', tmp_path / 'spack.log')
    monkeypatch.setenv('PATH', os.defpath)
    monkeypatch.delenv('SPACK_ROOT', raising=False)
    spack.find_spack.cache_clear()
    yield tmp_path
    spack.find_spack.cache_clear()


# What it says of its configuration.
ANSWERS = """
case "$*" in
*'config get repos') echo 'repos: {{builtin: {packages}}}'; exit ;;
*'config get mirrors') echo 'mirrors: {{near: file:///near, far: {{source: false}}}}'; exit ;;
esac
"""


@pytest.fixture
def stand_in(anywhere, monkeypatch):
    """Makes a command that SPACK_ROOT names: Bash text that is run in place of Spack."""

    def make(text):
        root = anywhere / 'root'
        command = root / 'bin' / 'spack'
        for folder in (command.parent, root / 'lib/spack/spack', root / 'packages'):
            folder.mkdir(parents=True, exist_ok=True)
        answers = ANSWERS.format(packages=root / 'packages')
        command.write_text(f'#!/usr/bin/env bash\n{answers}\n{text}\n')
        command.chmod(0o755)
        monkeypatch.setenv('SPACK_ROOT', str(root))
        made = spack.Spack(root, '1.1.0')
        made.configure()
        return made

    return make


# Finding it ---------------------------------------------------------------------------------------


def test_no_spack_is_one_sentence_with_the_remedy(anywhere):
    with pytest.raises(AssayError, match=r'there is no Spack: .*assay spack setup --clone'):
        spack.find_spack()


def test_a_wrong_root_is_named(anywhere, monkeypatch):
    monkeypatch.setenv('SPACK_ROOT', str(anywhere))
    with pytest.raises(AssayError, match=f'SPACK_ROOT is {anywhere}, but .* is not a command'):
        spack.find_spack()


@pytest.mark.parametrize(
    ('said', 'version'), [('1.1.0 (2e907202bc)', '1.1.0'), ('1.3.0.dev0', '1.3.0.dev0')]
)
def test_a_new_enough_spack_is_taken(stand_in, said, version):
    stand_in(f'echo "{said}"')
    assert spack.find_spack().version == version


def test_an_old_spack_is_refused(stand_in):
    stand_in('echo 0.23.0')
    with pytest.raises(AssayError, match=r'Spack 0\.23\.0 in .* is too old: 1\.0 or newer'):
        spack.find_spack()


def test_a_spack_that_does_not_answer_is_refused(stand_in):
    stand_in('echo broken >&2; exit 1')
    with pytest.raises(AssayError, match='does not say a version: broken'):
        spack.find_spack()


def test_a_clone_that_cannot_be_made_leaves_nothing_and_names_the_mirror_options(anywhere):
    with pytest.raises(AssayError, match=r'cannot clone v\S+ of \S+/nowhere: .*--spack-url'):
        spack.clone(f'file://{anywhere}/nowhere', f'file://{anywhere}/nowhere')
    assert not (spack.CLONES / 'spack').exists()


# Running it ---------------------------------------------------------------------------------------


def test_it_sees_nothing_of_the_users_own_spack(stand_in, monkeypatch):
    monkeypatch.setenv('SPACK_ENV', '/home/me/environment')
    monkeypatch.setenv('SPACK_DISABLE_LOCAL_CONFIG', '1')
    used = stand_in('env')
    seen = used.run()
    names = dict(line.partition('=')[::2] for line in seen.splitlines())
    own = {name: value for name, value in names.items() if name.startswith('SPACK_')}
    assert set(own) == {
        'SPACK_ROOT',
        'SPACK_PYTHON',
        'SPACK_DISABLE_LOCAL_CONFIG',
        'SPACK_USER_CACHE_PATH',
    }
    assert own['SPACK_PYTHON'] == sys.executable
    assert own['SPACK_ROOT'] == str(used.own)
    for name in ('SPACK_USER_CACHE_PATH', 'PYTHONPYCACHEPREFIX'):
        assert names[name].startswith(str(paths.SPACK))


def configured(used, section):
    """A section of the configuration that Spack reads."""
    return yaml.safe_load((used.own / 'etc' / 'spack' / f'{section}.yaml').read_text())


def test_all_that_it_writes_is_in_one_folder(stand_in):
    used = stand_in('true')
    config = configured(used, 'config')['config']
    # With a colon they replace what other files say.
    for name in ('install_tree:', 'build_stage:', 'source_cache:'):
        assert str(used.state) in str(config[name])
    assert configured(used, 'modules') == {'modules': {'default': {'enable:': []}}}
    assert configured(used, 'upstreams') == {'upstreams:': {}}


def test_of_a_sites_configuration_it_takes_where_packages_and_sources_are(stand_in):
    used = stand_in('true')
    etc = used.root / 'etc' / 'spack'
    etc.mkdir(parents=True)
    (etc / 'config.yaml').write_text('config: {install_tree: {root: /production}}')
    used.configure()
    assert [one.name for one in sorted(used.own.joinpath('etc/spack').iterdir())] == [
        *('config.yaml', 'defaults', 'mirrors.yaml', 'modules.yaml', 'repos.yaml'),
        'upstreams.yaml',
    ]
    assert '/production' not in str(configured(used, 'config'))
    assert configured(used, 'repos') == {'repos': {'builtin:': str(used.root / 'packages')}}
    assert configured(used, 'mirrors') == {
        'mirrors:': {'near': {'url': 'file:///near', 'binary': False}}
    }


def test_names_of_folders_mean_those_of_the_site(stand_in, monkeypatch):
    """Spack takes them in any case, with braces or without; others begin alike."""
    monkeypatch.setenv('SPACK_USER_CACHE_PATH', '/cache')
    used = stand_in('true')
    command = used.root / 'bin' / 'spack'
    urls = {
        'plain': ('file://$spack/a', f'file://{used.root}/a'),
        'braces': ('file://${spack}/a', f'file://{used.root}/a'),
        'capitals': ('file://$SPACK/a', f'file://{used.root}/a'),
        'cache': ('file://${user_cache_path}/a', 'file:///cache/a'),
        'version': ('file:///a/$spack_short_version', 'file:///a/$spack_short_version'),
    }
    entries = ', '.join(f'{name}: "{url}"' for name, (url, _) in urls.items())
    command.write_text(command.read_text().replace('near: file:///near', entries))
    used.configure()
    assert configured(used, 'mirrors') == {
        'mirrors:': {name: {'url': url, 'binary': False} for name, (_, url) in urls.items()}
    }


def test_a_root_may_be_relative(stand_in, anywhere, monkeypatch):
    stand_in('echo 1.1.0')
    monkeypatch.chdir(anywhere)
    monkeypatch.setenv('SPACK_ROOT', 'root')
    used = spack.find_spack()
    used.configure()
    assert (used.own / 'lib').resolve(strict=True) == anywhere / 'root' / 'lib'


def test_a_script_that_starts_spack_is_seen_through(stand_in, anywhere):
    real = stand_in('true').root
    script = anywhere / 'usr' / 'bin' / 'spack'
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\n[ "$2" = location ] && echo {real} || {real}/bin/spack "$@"')
    script.chmod(0o755)
    used = spack.Spack(anywhere / 'usr', '1.1.0')
    used.configure()
    assert (used.own / 'lib').resolve() == real / 'lib'


def test_a_sites_clone_of_the_package_repository_is_read_and_none_is_made_there(stand_in, anywhere):
    used, clone = stand_in('true'), anywhere / 'site' / 'clone'
    command = used.root / 'bin' / 'spack'
    place = f'{{git: file:///packages.git, branch: site, destination: {clone}}}'
    command.write_text(command.read_text().replace(str(used.root / 'packages'), place))
    repository = {'git': 'file:///packages.git', 'branch': 'site'}
    used.configure()
    assert configured(used, 'repos') == {'repos': {'builtin:': repository}}
    (clone / '.git').mkdir(parents=True)
    used.configure()
    repository['destination'] = str(clone)
    assert configured(used, 'repos') == {'repos': {'builtin:': repository}}


def test_a_package_repository_that_is_gone_is_named(stand_in):
    used = stand_in('true')
    (used.root / 'packages').rmdir()
    with pytest.raises(AssayError, match=r'/packages, where Spack in .* is not there'):
        used.configure()


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('echo "==> Error: no version fits" >&2; exit 1', 'no version fits'),
        ('kill -9 $$', 'it was killed by signal 9'),
        ('echo "No space left on device"; exit 1', 'no space is left for it; make room under'),
        ('exit 3', 'it ended with exit code 3'),
        (
            "echo '==> Warning: Error constructing repository x: Failed to clone'\n"
            "echo '==> Error: Package zlib not found'; exit 1",
            r'it has no package repository \(Error constructing repository x: Failed to clone',
        ),
    ],
)
def test_a_failure_says_why_and_where_its_words_are(stand_in, text, sentence):
    used = stand_in(text)
    with pytest.raises(spack.SpackError, match=f'{sentence}.*{spack.LOG}'):
        used.run('install')


def test_nothing_of_it_is_left_when_this_process_is_killed(stand_in, anywhere):
    """Nor what it gave a process group of its own, as Spack 1.3 does with builds."""
    used = stand_in('set -m; sleep 600 & echo $! $$ >pids.new; mv pids.new pids; wait')
    text = (
        'import pathlib; from assay import paths; from assay.spack import tool\n'
        f'paths.SPACK = pathlib.Path({str(paths.SPACK)!r})\n'
        f'tool.LOG = pathlib.Path({str(spack.LOG)!r})\n'
        f"tool.Spack(pathlib.Path({str(used.root)!r}), '1.1.0').run()"
    )
    asking = subprocess.Popen(
        [sys.executable, '-c', text],
        cwd=anywhere,
        env=os.environ | {'PYTHONPATH': str(paths.ROOT / 'lib')},
    )
    there = anywhere / 'pids'
    assert within_a_minute(there.exists)
    asking.kill()
    asking.wait()
    pids = there.read_text().split()
    assert len(pids) == 2
    assert within_a_minute(lambda: not any(is_running(pid) for pid in pids))


def within_a_minute(holds):
    """Whether something comes to hold."""
    for _ in range(6000):
        if holds():
            return True
        time.sleep(0.01)
    return False


def is_running(pid):
    """Whether a process has not ended."""
    try:
        with open(f'/proc/{pid}/stat') as stat:
            return stat.read().rpartition(')')[2].split()[0] not in 'XZ'
    except OSError:
        return False


def test_one_run_waits_for_another_and_says_so(anywhere):
    """And goes on when the other one is killed."""

    def take_turn(then):
        text = (
            'import pathlib, sys; from assay import paths; from assay.spack.tool import Spack\n'
            f'paths.SPACK = pathlib.Path({str(paths.SPACK)!r})\n'
            'from assay.spack.tool import turn\n'
            f"with turn(Spack(pathlib.Path(), '1.1.0')): {then}"
        )
        return subprocess.Popen(
            [sys.executable, '-c', text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {'PYTHONPATH': str(paths.ROOT / 'lib')},
            text=True,
        )

    holder = take_turn("print('mine', flush=True); sys.stdin.read()")
    assert holder.stdout.readline() == 'mine\n'
    waiter = take_turn("print('mine', flush=True)")
    assert f'waiting for process {holder.pid}, which has Spack' in waiter.stderr.readline()
    holder.kill()
    assert waiter.communicate()[0] == 'mine\n'
    holder.communicate()


def test_a_folder_that_cannot_be_written_is_named(anywhere):
    paths.SPACK.touch()
    with (
        pytest.raises(AssayError, match=f'Spack cannot work in {paths.SPACK}/1.1.0: '),
        spack.turn(spack.Spack(anywhere, '1.1.0')),
    ):
        pass


# What is generated --------------------------------------------------------------------------------


def test_an_environment_is_one_entry_of_the_tracked_file(anywhere):
    tracked = yaml.safe_load(paths.SPACK_YAML.read_text())['spack']
    made = yaml.safe_load(packages.environment_file('generic', 'assay ^mpich@=4.3.2'))['spack']
    assert made['specs'] == ['assay ^mpich@=4.3.2']
    folder = anywhere / 'config' / 'generic'
    assert [one['path'] for one in made['include']] == [str(folder), str(folder / 'found')]
    assert made['repos'] == {'assay': str(paths.RECIPES)}
    # Spack's `reuse: dependencies` would leave out what the site has itself.
    assert made['concretizer'] == tracked['concretizer'] | {'reuse': {'exclude': ['assay']}}
    assert made['view'] is False


def test_the_tracked_file_names_every_package_once():
    names = [name for group in packages.groups().values() for name in group]
    assert len(names) == len(set(names))
    assert {'assay', 'minife', 'minimd', 'minighost', 'hpl', 'stream', 'mpip', 'must'} <= {*names}


def an_mpi(name, family, version, prefix, **more):
    fields = dict.fromkeys(('cc', 'cxx', 'launcher', 'description'), '')
    fields |= {'source': 'wheel', 'bindir': prefix / 'bin', 'prefix': prefix}
    return Mpi(name=name, family=family, version=version, **fields | more)


def test_each_mpi_has_a_prefix_of_its_own_and_none_is_built(tmp_path):
    mpis = [
        an_mpi('openmpi', 'openmpi', '5.0.9', tmp_path / 'openmpi'),
        an_mpi('openmpi-system', 'openmpi', '4.1.4', tmp_path / 'openmpi-system'),
        an_mpi('mpich-module', 'mpich', '4.3.2', tmp_path / 'mpich', modules=('mpich/4.3.2',)),
        an_mpi('mpich-other', 'mpich', '4.3.2', tmp_path / 'other'),
        an_mpi('intelmpi', 'intelmpi', '2021.16', tmp_path / 'intelmpi'),
    ]
    made = spack_setup.packages({'cmake': {'externals': []}}, mpis)
    assert made['openmpi'] == {
        'externals': [
            {'spec': 'openmpi@5.0.9', 'prefix': str(tmp_path / 'openmpi')},
            {'spec': 'openmpi@4.1.4', 'prefix': str(tmp_path / 'openmpi-system')},
        ],
        'buildable': False,
    }
    # Of two that Spack cannot tell apart it knows the first.
    assert made['mpich']['externals'] == [
        {'spec': 'mpich@4.3.2', 'prefix': str(tmp_path / 'mpich'), 'modules': ['mpich/4.3.2']}
    ]
    assert made['mpi'] == {'buildable': False}
    assert 'cmake' in made
    assert 'intelmpi' not in str(made)


def test_builds_for_every_mpi_that_it_can_tell_apart(tmp_path, monkeypatch):
    mpis = [
        an_mpi('openmpi', 'openmpi', '5.0.9', tmp_path),
        an_mpi('openmpi-module', 'openmpi', '5.0.9', tmp_path),
        an_mpi('intelmpi', 'intelmpi', '2021.16', tmp_path),
    ]
    specs = environments.spack_specs(mpis)
    assert specs == {'openmpi': 'openmpi@=5.0.9'}
    without = environments.environment(mpis[0], specs['openmpi'])
    assert 'spack' not in without['features']
    monkeypatch.setenv(environments.WITH_SPACK, 'assay,minife')
    made = [environments.environment(mpi, specs.get(mpi.name)) for mpi in mpis]
    assert {'spack', 'spack-minife'} <= set(made[0]['features'])
    assert made[0]['extras']['spack'] == 'openmpi@=5.0.9'
    assert not {'spack', 'spack-minife'} & {*made[1]['features'], *made[2]['features']}


def test_what_a_site_says_stands_beside_what_was_found(stand_in, monkeypatch):
    used = stand_in('true')
    sites = paths.SPACK_CONFIG / 'generic' / 'packages.yaml'
    sites.parent.mkdir(parents=True)
    sites.write_text('packages: {all: {require: target=zen3}}')
    assert spack_setup.write_packages(used, 'generic', []) == sites.parent / 'found/packages.yaml'
    assert sites.read_text() == 'packages: {all: {require: target=zen3}}'
    sites.write_text('packages: [')
    with pytest.raises(AssayError, match=f'{sites} is not valid'):
        spack_setup.write_packages(used, 'generic', [])


def test_without_a_blas_of_the_site_it_is_a_copy_of_the_wheel(anywhere, monkeypatch):
    """Which stays where it is when .venv is replaced."""
    monkeypatch.delenv('MKLROOT', raising=False)
    made = spack_setup.blas_packages({})
    (external,) = made['scipy-openblas32']['externals']
    assert external['prefix'].startswith(str(paths.SPACK))
    assert list((Path(external['prefix']) / 'lib').glob('libscipy_openblas*'))
    # With a requirement of its own, what a site requires of all packages would not hold for it.
    assert made['assay'] == {'prefer': ['+openblas_wheel']}


@pytest.mark.parametrize(
    'known', [{'openblas': {}}, {'blas': {}}, {'all': {'providers': {'blas': ['openblas']}}}]
)
def test_the_blas_that_a_site_names_is_taken(anywhere, known):
    assert set(spack_setup.blas_packages(known)) == {'scipy-openblas32'}


def test_the_blas_of_a_module_is_taken(anywhere, monkeypatch):
    mkl = anywhere / 'oneapi' / 'mkl' / '2025.1'
    (mkl / 'lib').mkdir(parents=True)
    monkeypatch.setenv('MKLROOT', str(mkl))
    made = spack_setup.blas_packages({})
    assert 'assay' not in made
    assert made['intel-oneapi-mkl']['externals'] == [
        {'spec': 'intel-oneapi-mkl@2025.1', 'prefix': str(anywhere / 'oneapi')}
    ]


def test_a_system_that_was_not_set_up_and_a_vanished_mpi_are_named(anywhere):
    with pytest.raises(
        AssayError, match=r'packages\.yaml is not there: run `assay spack setup --sys'
    ):
        spack_setup.assert_prepared('here')
    file = paths.SPACK_CONFIG / 'here' / 'found' / 'packages.yaml'
    file.parent.mkdir(parents=True)
    external = {'spec': 'mpich@4.3.2', 'prefix': str(anywhere / 'gone')}
    file.write_text(yaml.safe_dump({'packages': {'mpich': {'externals': [external]}}}))
    with pytest.raises(AssayError, match=r'mpich@4\.3\.2 is no longer in .*/gone, .*setup'):
        spack_setup.assert_prepared('here')
    (anywhere / 'gone').mkdir()
    spack_setup.assert_prepared('here')


def test_a_lock_file_tells_what_was_built():
    """Spack 1.1.0 wrote it."""
    lock = json.loads((paths.ROOT / 'tests' / 'golden' / 'spack' / 'spack.lock').read_text())
    assert from_lock(lock) == Provenance(
        by='spack',
        spec='assay@0.1.0 build_system=cmake build_type=Release generator=make ~ipo '
        '+openblas_wheel sources=7c930c30124eb044 ^cmake@3.25.1 ^compiler-wrapper@1.0 '
        '^gcc-runtime@12.2.0 ^gcc@12.2.0 ^glibc@2.36 ^gmake@4.3 ^mpich@4.3.2 '
        '^scipy-openblas32@0.3.34.481.3',
        hash='5xazj74fg7cmv37ekwra7jpkgy4hw7dq',
        compiler='gcc@12.2.0',
        flags='',
        mpi='mpich@4.3.2',
        blas='scipy-openblas32@0.3.34.481.3',
        target='x86_64_v4',
    )


def test_flags_are_those_of_the_wrapper_and_of_the_packages_own_build(anywhere):
    assert compile_flags(anywhere, '-g') == '-g'
    kept = anywhere / '.spack' / 'archived-files'
    kept.mkdir(parents=True)
    (kept.parent / 'spack-build-env.txt').write_text(
        "export A='b';\nexport SPACK_TARGET_ARGS_CC='-march=zen3 -mtune=zen3';\n"
        'export SPACK_TARGET_ARGS_CXX=-march=zen3;\n'
    )
    assert compile_flags(anywhere, '-g') == 'C: -march=zen3 -mtune=zen3 -g; C++: -march=zen3 -g'
    commands = [{'file': 'a.c', 'command': 'cc -O2 -c a.c'}]
    (kept / 'compile_commands.json').write_text(json.dumps(commands))
    assert compile_flags(anywhere, '') == 'C: -march=zen3 -mtune=zen3 -O2; C++: -march=zen3'


@pytest.fixture
def spec(anywhere, monkeypatch):
    """A function that keeps the spec of a build, which Spack 1.1.0 wrote, with a text replaced."""
    monkeypatch.setattr(paths, 'SPECS', anywhere / 'perflogs' / 'specs')
    kept_spec.cache_clear()
    written = (paths.ROOT / 'tests' / 'golden' / 'spack' / 'spec.json').read_text()

    def keep(full_hash, old='', new=''):
        assert old in written
        prefix = anywhere / full_hash
        (prefix / '.spack').mkdir(parents=True, exist_ok=True)
        (prefix / '.spack' / 'spec.json').write_text(written.replace(old, new))
        keep_spec(prefix, full_hash)
        return prefix

    return keep


ONE, OTHER = 'a2' * 16, 'b3' * 16


def test_a_kept_spec_tells_what_spack_chose(spec):
    spec(ONE)
    found = kept_spec(ONE)
    assert found['mpich'].startswith('@4.0.2 ~argobots build_system=autotools ')
    assert ' device=ch4 ' in found['mpich']
    assert ' target=x86_64 prefix=/opt/assay/.assay/mpi/mpich-system' in found['mpich']
    assert ' +openmp ' in found['hpcg']
    assert re.search(r' target=x86_64_v4 recipe=\w{8}$', found['hpcg'])


def test_a_spec_is_kept_once(spec):
    prefix = spec(ONE)
    (prefix / '.spack' / 'spec.json').write_text('another')
    keep_spec(prefix, ONE)
    assert kept_spec(ONE)
    keep_spec(prefix / 'nowhere', OTHER)
    assert kept_spec(OTHER) == {}
    assert [path.name for path in paths.SPECS.iterdir()] == [f'{ONE}.json']


@pytest.mark.parametrize(
    'content',
    [
        *('', '{}', '[]', '{"spec": {"nodes": [{}]}}', '\udcff'),
        '{"spec": {"nodes": [{"name": "a", "version": "1", "parameters": [], "arch": {}}]}}',
    ],
)
def test_a_kept_spec_that_is_none(spec, content):
    spec(ONE)
    (paths.SPECS / f'{ONE}.json').write_bytes(content.encode(errors='surrogateescape'))
    assert kept_spec(ONE) == {}


@pytest.mark.parametrize('name', ['', 'abc', f'../specs/{ONE}', ONE.upper()])
def test_what_is_no_hash_names_no_file(spec, name):
    spec(ONE)
    assert kept_spec(name) == {}


def test_of_two_builds_the_packages_that_differ_are_told(spec):
    spec(ONE)
    spec(OTHER, '"device":"ch4"', '"device":"ch3"')
    told = ({'hash': each, 'spec': 'hpcg ...', 'by': 'spack'} for each in (ONE, OTHER))
    changed = dict(changed_facts(*(tuple(each.items()) for each in told)))
    assert changed.keys() == {'hash', 'spec of mpich'}
    before, after = changed['spec of mpich'].split(' -> ')
    assert before.replace('device=ch4', 'device=ch3') == after != before


@pytest.mark.parametrize('kept', [(), (ONE,), (OTHER,)])
def test_where_a_spec_was_not_kept_names_and_versions_are_told(spec, kept):
    for each in kept:
        spec(each)
    changed = dict(changed_facts((('hash', ONE), ('spec', 'a')), (('hash', OTHER), ('spec', 'b'))))
    assert changed == {'hash': f'{ONE} -> {OTHER}', 'spec': 'a -> b'}


# Sources ------------------------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path):
    """The code of the recipe, and a copy of the sources to change."""
    copied = tmp_path / 'sources'
    shutil.copytree(paths.SOURCES, copied)
    return copied


def test_the_checksum_follows_the_sources_and_nothing_else(sources):
    assert checksum(sources) == checksum()
    (sources / 'build').mkdir()
    (sources / 'build' / 'CMakeCache.txt').touch()
    (sources / 'build' / 'left.c').touch()
    (sources / 'mpi' / 'ring.o').touch()
    assert checksum(sources) == checksum()
    ring = sources / 'mpi' / 'ring.c'
    ring.write_text(ring.read_text() + '\n')
    changed = checksum(sources)
    assert changed != checksum()
    ring.rename(ring.with_name('rings.c'))
    assert checksum(sources) not in (changed, checksum())


def test_every_tracked_source_file_is_copied():
    answer = subprocess.run(
        ['git', 'ls-files', '--', '.', ':!spack_repo'],
        cwd=paths.SOURCES,
        capture_output=True,
        text=True,
    )
    if answer.returncode:
        pytest.skip('needs Git and a checkout')
    copied = {str(path.relative_to(paths.SOURCES)) for path in tree.files()}
    assert set(answer.stdout.split()) <= copied


def test_the_recipe_has_the_version_of_the_sources():
    recipe = (paths.RECIPES / 'packages' / 'assay' / 'package.py').read_text()
    project = (paths.SOURCES / 'CMakeLists.txt').read_text()
    (version,) = re.findall(r"version\('(.*)'\)", recipe)
    assert f'project(assay VERSION {version} ' in project


# Installing ---------------------------------------------------------------------------------------

# Notes what it is asked; "concretizes" as Spack 1.1.0 did, and "installs" one program.
INSTALLS = f"""
shift; [ "$1" = -e ] && folder=$2 && shift 2
echo "$1" >> {{asked}}; [ "$2" != --overwrite ] || echo overwritten >> {{asked}}
case $1 in
concretize) cp {paths.ROOT}/tests/golden/spack/spack.lock "$folder" ;;
install) mkdir -p {{prefix}}/bin && touch {{prefix}}/bin/ring ;;
location) echo {{prefix}} ;;
esac
"""


def test_what_is_installed_is_recorded_and_found_again(stand_in, anywhere):
    prefix, asked = anywhere / 'prefix', anywhere / 'asked'
    used = stand_in(INSTALLS.format(prefix=prefix, asked=asked))
    assert builds.rehearse(used, 'generic', 'assay', 'mpich@=4.3.2') == 'assay ^mpich@=4.3.2'
    assert asked.read_text().split() == ['concretize', 'fetch']
    build = builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2')
    assert (build.prefix, [*build.files], build.sources) == (prefix, ['bin/ring'], checksum())
    assert build.provenance.mpi == 'mpich@4.3.2'
    said = asked.read_text()
    assert said.split()[2:] == ['clean', 'install', 'location']
    assert builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2') == build
    assert asked.read_text() == said
    (prefix / 'bin' / 'ring').unlink()
    builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2')
    # Asked for no more than that, Spack would find it installed.
    assert asked.read_text().split()[5:] == ['clean', 'install', 'overwritten', 'location']


def test_each_choice_of_packages_is_an_environment_of_its_own(stand_in, anywhere):
    used = stand_in(INSTALLS.format(prefix=anywhere / 'prefix', asked=anywhere / 'asked'))
    plain, *others = (
        builds.Environment(used, 'generic', 'assay', 'mpich@=4.3.2', chosen)
        for chosen in ('', 'cmake@=3.25.1 ~doc; assay@=0.2.0 cflags="-O1 -g"', 'cmake@=3.31.6')
    )
    assert len({one.folder for one in (plain, *others)}) == 3
    order = 'assay@=0.2.0 cflags="-O1 -g"; cmake@=3.25.1 ~doc'
    same = builds.Environment(used, 'generic', 'assay', 'mpich@=4.3.2', order)
    assert (same.folder, same.content) == (others[0].folder, others[0].content)
    assert 'packages' not in yaml.safe_load(plain.content)['spack']
    assert yaml.safe_load(others[0].content)['spack']['packages'] == {
        'cmake': {'require:': ['cmake@=3.25.1 ~doc']},
        'assay': {'require:': ['assay@=0.2.0 cflags="-O1 -g"']},
    }


def test_specs_are_parted_by_semicolons_outside_quotes():
    chosen = 'zlib@=1 cflags="-DX=1; -g" ;; foo_bar@=1; foo@=2'
    assert packages.by_package(chosen) == {
        'foo': 'foo@=2',
        'foo_bar': 'foo_bar@=1',
        'zlib': 'zlib@=1 cflags="-DX=1; -g"',
    }


NO_WAY = 'failed to concretize assay for the following reasons: 1. cannot satisfy cmake'


def test_a_choice_that_spack_cannot_make_is_told_with_the_reason(stand_in, anywhere, monkeypatch):
    monkeypatch.setattr(builds, 'assert_prepared', lambda system: None)
    chosen = 'cmake@=3.31.6'
    for script, why in (
        (INSTALLS.format(prefix=anywhere / 'prefix', asked=anywhere / 'asked'), ''),
        (f'echo "Error: {NO_WAY}" >&2; exit 1', 'Spack finds no way to build assay ^mpich'),
    ):
        used = stand_in(script)
        monkeypatch.setattr(builds, 'find_spack', lambda used=used: used)
        told = builds.why_not_chosen(Site(), 'generic:node', 'mpich', chosen)
        assert told.startswith(why) and bool(told) == bool(why)
        shutil.rmtree(used.state / 'environments')


@pytest.mark.parametrize(
    ('script', 'why'),
    [
        (f'echo "Error: {NO_WAY}" >&2; kill -9 $$', 'killed by signal 9'),
        (f'echo "No space left on device; Error: {NO_WAY}" >&2; exit 1', 'no space is left'),
        (
            f'echo "Warning: Error constructing repository x; Error: {NO_WAY}" >&2; exit 1',
            'it has no package repository',
        ),
        ('echo "Error: [Errno 13] Permission denied" >&2; exit 1', 'Permission denied'),
    ],
)
def test_what_is_no_answer_of_the_solver_is_no_reason_against_a_choice(
    stand_in, monkeypatch, script, why
):
    monkeypatch.setattr(builds, 'assert_prepared', lambda system: None)
    used = stand_in(script)
    monkeypatch.setattr(builds, 'find_spack', lambda: used)
    with pytest.raises(AssayError, match=why):
        builds.why_not_chosen(Site(), 'generic:node', 'mpich', 'cmake@=3.31.6')


def test_all_that_an_environment_has_of_spack_has_to_be_possible(stand_in, anywhere, monkeypatch):
    monkeypatch.setattr(builds, 'assert_prepared', lambda system: None)
    used = stand_in(f'case $3 in */minife-*) echo "Error: {NO_WAY}" >&2; exit 1; esac')
    monkeypatch.setattr(builds, 'find_spack', lambda: used)
    for environment, why in (('mpich', ''), ('openmpi', 'Spack finds no way to build minife ^')):
        told = builds.why_not_chosen(Site(), 'generic:node', environment, 'cmake@=3.31.6')
        assert told.startswith(why) and bool(told) == bool(why)
    with pytest.raises(AssayError, match='no partition of generic:node has the environment gone'):
        builds.why_not_chosen(Site(), 'generic:node', 'gone', 'cmake@=3.31.6')


def test_what_the_solver_refused_it_is_asked_once(stand_in, anywhere, monkeypatch):
    asked = anywhere / 'asked'
    used = stand_in(f'echo $4 >>{asked}; echo "Error: {NO_WAY}" >&2; exit 1')

    def told():
        one = builds.Environment(used, 'generic', 'assay', 'mpich@=4.3.2', 'cmake@=3.31.6')
        return one.why_refused(), one.folder / 'refused'

    (first, kept), (again, _) = told(), told()
    assert (asked.read_text().split(), again) == (
        ['concretize'],
        f'{first}; to ask again, remove {kept}',
    )
    # What is built for a session asks all the same.
    with pytest.raises(builds.NoBuildError):
        builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2', 'cmake@=3.31.6')
    assert not kept.exists()
    assert told()[0] == first
    (paths.SPACK_CONFIG / 'generic').mkdir(parents=True)
    (paths.SPACK_CONFIG / 'generic' / 'packages.yaml').write_text('packages: {}')
    assert told()[0] == first
    assert len(asked.read_text().split()) == 4


@pytest.mark.parametrize(
    ('words', 'kind'),
    [
        ('==> Error: ProcessError: Command exited with status 2', builds.NoBuildError),
        ('==> Error: ProcessError: Command exited\n\ncc1: No space left on device', AssayError),
        ('==> Error: ProcessError: 2\ng++: Killed signal terminated program cc1plus', AssayError),
        ('==> Error: Failed to install a due to InstallError: The process (signal 9)', AssayError),
        ('==> Error: Timed out waiting for a write lock', AssayError),
        ('==> Error: FetchError: All fetchers failed for spack-stage-zlib', AssayError),
    ],
)
def test_a_build_that_fails_is_told_from_one_that_could_not_be_tried(stand_in, words, kind):
    used = stand_in(f"case $* in *' install') echo '{words}' >&2; exit 1;; esac")
    with pytest.raises(AssayError, match='Spack cannot install assay') as caught:
        builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2')
    assert type(caught.value) is kind


def test_what_cannot_be_installed_is_named(stand_in):
    used = stand_in('echo "Error: no version fits" >&2; exit 1')
    with pytest.raises(AssayError, match=r'finds no way to build assay \^mpich@=4\.3\.2: no vers'):
        builds.install_package(used, 'generic', 'assay', 'mpich@=4.3.2')


# What checks are given ----------------------------------------------------------------------------


@pytest.fixture
def installed(anywhere):
    """A build of today's sources that Spack has installed for the environment mpich."""
    build = Build(
        prefix=anywhere / 'prefix',
        sources=checksum(),
        files=dict.fromkeys(('bin/ring', 'lib/libassay_witness.so'), sha256(b'').hexdigest()),
        provenance=Provenance('spack', spec='assay ^mpich@=4.3.2', hash='abc'),
    )
    for name in build.files:
        (build.prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (build.prefix / name).touch()

    def tell(build):
        table = paths.SPACK / 'builds' / 'generic.json'
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(json.dumps({'assay for mpich': build.to_json()}))

    tell(build)
    return build, tell


def test_a_check_gets_absolute_paths(installed):
    build, _ = installed
    found = builds.build_of('generic', 'mpich')
    assert found == build
    assert found.path('ring') == build.prefix / 'bin' / 'ring'
    assert found.path('libassay_witness.so') == build.prefix / 'lib' / 'libassay_witness.so'


def test_a_record_is_the_same_when_read_again(installed):
    build, _ = installed
    record = json.loads(json.dumps(build.to_json()))
    assert record == build.to_json()
    assert Build.from_json(record) == build


def test_an_environment_without_a_build_is_named(installed):
    with pytest.raises(AssayError, match='no assay for openmpi: run `assay spack install'):
        builds.build_of('generic', 'openmpi')


@pytest.mark.parametrize('change', [Path.unlink, lambda file: file.write_text('another')])
def test_a_build_whose_file_is_gone_or_replaced_is_not_run(installed, change):
    build, _ = installed
    change(build.prefix / 'bin' / 'ring')
    with pytest.raises(AssayError, match='bin/ring is not what Spack installed there: run `assay'):
        builds.build_of('generic', 'mpich')


def test_a_build_of_other_sources_is_not_run(installed):
    from dataclasses import replace

    build, tell = installed
    tell(replace(build, sources='0123456789abcdef'))
    with pytest.raises(AssayError, match=r'the sources are not those of .*: run `assay spack'):
        builds.build_of('generic', 'mpich')


# Which packages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('names', 'chosen'),
    [
        ([], 'assay'),
        (['minife'], 'assay,minife'),
        (['mpi_benchmarks', 'hpl'], 'assay,intel-mpi-benchmarks,osu-micro-benchmarks,hpl'),
        (['assay', 'applications'], 'assay,minife,minimd,minighost,hpl,hpcg,npb'),
    ],
)
def test_packages_and_groups_are_chosen_by_name(monkeypatch, names, chosen):
    monkeypatch.setenv(environments.WITH_SPACK, '')
    packages.choose_packages(names)
    assert os.environ[environments.WITH_SPACK] == chosen


@pytest.mark.parametrize(
    ('name', 'package'), [('without_mpi', 'stream'), ('stream', 'stream'), ('hpcc', 'hpcc')]
)
def test_what_no_check_runs_is_refused(monkeypatch, name, package):
    monkeypatch.setenv(environments.WITH_SPACK, '')
    with pytest.raises(AssayError) as refused:
        packages.choose_packages(['minife', name])
    assert str(refused.value) == (
        f'--with spack:{name}: no check runs {package}: `assay spack install {package}` builds it '
        f'without a run.'
    )


def test_what_checks_run_is_what_they_name():
    code = ''.join(path.read_text() for path in paths.CHECKS.rglob('*.py'))
    known = {one for names in packages.groups().values() for one in names}
    code += (paths.ROOT / 'lib' / 'assay' / 'programs' / 'osu.py').read_text()
    named = {one for one in known if re.search(rf"(?i)package\b[^=\n]* = '{one}'", code)}
    assert {*named, environments.OURS} == packages.RUN_BY_CHECKS


def test_an_unlisted_package_is_named(monkeypatch):
    monkeypatch.setenv(environments.WITH_SPACK, '')
    with pytest.raises(AssayError, match=r'^gromacs: not in .*spack\.yaml, which lists'):
        packages.choose_packages(['gromacs'])


@pytest.fixture
def built(anywhere, monkeypatch):
    """What Spack is asked to install; it does so at once."""
    asked = []

    def install(spack, system, package, mpi, chosen):
        asked.append((package, mpi))
        return Build(anywhere / package / mpi / chosen, '', {}, Provenance('spack'))

    monkeypatch.setattr(builds, 'find_spack', lambda: spack.Spack(anywhere, '1.1.0'))
    monkeypatch.setattr(builds, 'assert_prepared', lambda system: None)
    monkeypatch.setattr(builds, 'install_package', install)
    return asked


class Site(dict):
    """A configuration of two environments, of which Spack builds for both."""

    def __init__(self):
        extras = {'openmpi': 'openmpi@=5.0.9', 'mpich': 'mpich@=4.3.2'}
        features = {'openmpi': ['mpi', 'spack', 'spack-minife'], 'mpich': ['mpi', 'spack']}
        super().__init__(
            environments=[
                {'name': name, 'features': features[name], 'extras': {'spack': extras[name]}}
                for name in extras
            ]
        )

    def get(self, _):
        return [{'environs': ['openmpi', 'mpich']}]


def test_what_an_environment_has_as_a_feature_is_installed(built):
    builds.install_for_checks(Site(), 'generic:node')
    assert built == [
        ('assay', 'openmpi@=5.0.9'),
        ('minife', 'openmpi@=5.0.9'),
        ('assay', 'mpich@=4.3.2'),
    ]
    assert builds.build_of('generic', 'openmpi', 'minife').prefix.parts[-2:] == (
        'minife',
        'openmpi@=5.0.9',
    )
    with pytest.raises(AssayError, match='no minife for mpich: run `assay spack install minife'):
        builds.build_of('generic', 'mpich', 'minife')


def test_a_spack_that_is_not_there_is_told_before_a_wait_for_the_machine(anywhere):
    def take_turn(site):
        pytest.fail('it waits for the machine')

    suite = SimpleNamespace(system='generic', take_turn=take_turn)
    with pytest.raises(AssayError, match='there is no Spack'):
        runner.make_ready(suite, Site(), ['.*'])


def test_only_the_environments_that_are_run_are_built_for(built):
    builds.install_for_checks(Site(), 'generic', ['^mpich$'])
    assert built == [('assay', 'mpich@=4.3.2')]


def test_what_is_built_otherwise_for_a_comparison_is_no_other_run_s(built, monkeypatch):
    of_openmpi = ['^openmpi$']
    builds.install_for_checks(Site(), 'generic', of_openmpi)
    builds.install_for_checks(Site(), 'generic', of_openmpi, 'cmake@=3.31.6')
    assert builds.build_of('generic', 'openmpi', 'minife').prefix.name == 'openmpi@=5.0.9'
    monkeypatch.setenv(environments.OTHER_SPECS, 'cmake@=3.31.6')
    assert builds.build_of('generic', 'openmpi', 'minife').prefix.name == 'cmake@=3.31.6'
    monkeypatch.setenv(environments.OTHER_SPECS, 'cmake@=3.25.1')
    with pytest.raises(AssayError, match='Spack has built no minife for openmpi'):
        builds.build_of('generic', 'openmpi', 'minife')


def test_a_feature_of_no_package_is_named(built):
    site = Site()
    site['environments'][1]['features'].append('spack-minfie')
    with pytest.raises(AssayError, match=r'^minfie: not in .*spack\.yaml'):
        builds.install_for_checks(site, 'generic')
    assert built == []
