"""The environment that ReFrame gets, and configurations that are wrong."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from assay import AssayError, paths
from assay.config import settings

GOOD = Path(__file__).parents[1] / 'golden' / 'reports' / 'toy_system.py'


@pytest.fixture
def system(elsewhere):
    """Writes a system file."""

    def write(text, name='toy'):
        (paths.SYSTEMS / f'{name}.py').write_text(text)
        return name

    return write


def test_every_system_of_the_checkout_loads():
    assert {'generic', 'example-slurm'} <= set(settings.known_systems())
    for name in settings.known_systems():
        settings.load_system(name)


AS_REFRAME_LOADS = """
import sys
from reframe.core import config, logging
site = config.load_config('<builtin>')
site.select_subconfig('generic')
logging.configure_logging(site)
config.load_config(*sys.argv[1:])
"""


def test_the_virtual_cluster_asks_no_modules():
    """It has the wheels alone, and modules may be slow, or not work."""
    # A process of its own: ReFrame loads a file once.
    code = 'from assay.config import settings; settings.load_system("vcluster")'
    subprocess.run(
        [sys.executable, '-c', code], env={**os.environ, 'LMOD_CMD': '/gone/lmod'}, check=True
    )


def test_our_generic_system_stands_in_for_the_one_of_reframe():
    generic = settings.system_file('generic')
    command = [sys.executable, '-c', AS_REFRAME_LOADS, settings.COMMON, generic]
    assert not subprocess.run(command, capture_output=True, text=True, check=True).stdout
    twice = subprocess.run([*command, generic], capture_output=True, text=True, check=True).stdout
    assert f"redefinition of system 'generic': already defined in '{generic}'" in twice


def test_modes_are_those_of_the_common_configuration():
    assert list(settings.modes()) == ['smoke', 'maintenance', 'acceptance', 'screen', 'tune']


def test_exports_take_a_partition(system):
    system(GOOD.read_text())
    assert settings.exports('toy:node')['RFM_SYSTEM'] == 'toy:node'
    settings.load_system('toy:node')


def test_unknown_system_names_the_known_ones(system):
    system(GOOD.read_text())
    with pytest.raises(AssayError, match=r"unknown system 'other'\. Known systems: toy\."):
        settings.exports('other')


def test_unknown_partition_is_an_error(system):
    system(GOOD.read_text())
    with pytest.raises(AssayError, match=r'toy\.py: .*toy:other'):
        settings.load_system('toy:other')


def test_syntax_error_names_file_and_line(system):
    system('site_configuration = {\n  "systems": [\n')
    with pytest.raises(AssayError, match=r'toy\.py, line \d: not valid Python'):
        settings.exports('toy')


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('x = 1\n', 'not a valid Python configuration file'),
        ('site_configuration = 1 / 0\n', 'ZeroDivisionError'),
        (GOOD.read_text().replace("'local'", '7', 1), 'scheduler: 7 is not of type'),
        (GOOD.read_text().replace("'partitions'", "'parts'"), 'partitions'),
        (GOOD.read_text().replace("'name': 'toy'", "'name': 'tin'"), "'toy'"),
    ],
)
def test_wrong_configuration_names_file_and_reason(system, text, reason):
    name = system(text)
    settings.exports(name)
    with pytest.raises(AssayError, match=reason) as caught:
        settings.load_system(name)
    assert 'toy.py' in str(caught.value)


SITE = """
site_configuration = {
    'systems': [{
        'name': 'toy',
        'hostnames': ['.*'],
        'partitions': [{
            'name': 'node',
            'scheduler': 'local',
            'launcher': 'mpirun',
            'environs': ['mine'],
            'features': ['scale_1_node', 'tcp', 'gpu'],
        }],
    }],
    'environments': [{
        'name': 'mine',
        'features': ['mpi', 'openmpi', 'shm', 'spack-osu-micro-benchmarks', 'cuda'],
        'extras': {'family': 'openmpi'},
    }],
}
"""


@pytest.mark.parametrize(
    ('right', 'wrong', 'sentence'),
    [
        (
            "'tcp'",
            "'tpc'",
            "partition node has the unknown feature 'tpc': did you mean tcp.*ucx-",
        ),
        (
            "'scale_1_node'",
            "'scale_3_node'",
            "'scale_3_node': scales are scale_1_node, .*scale_all",
        ),
        ("'scale_1_node'", "'scale_01_node'", "unknown feature 'scale_01_node'"),
        ("'scale_1_node'", "'scal_1_node'", "'scal_1_node': did you mean scale_1_node"),
        ("'scale_1_node'", "'scale_all'", "the feature 'scale_all' needs the number of .* is none"),
        (
            "'features': ['scale_1_node'",
            "'extras': {'nodes': 3}, 'features': ['scale_half'",
            "'scale_half' needs .* at least 4, and there is 3",
        ),
        (
            "'features': ['scale_1_node'",
            "'extras': {'nodes': 4}, 'features': ['scale_all', 'scale_half', 'scale_97_nodes'",
            None,
        ),
        ("'shm'", "'SHM'", "environment mine has the unknown feature 'SHM': did you mean shm"),
        ("'mpi',", "'mip',", "environment mine has the unknown feature 'mip': did you mean mpi"),
        ("'family'", "'famly'", 'environment mine has the feature mpi and no family in its extras'),
        (": 'openmpi'", ": 'ompi'", "unknown family 'ompi'.*intelmpi, mpich, mvapich, openmpi"),
        ("'extras'", "'env_vars': [], 'extras'", None),
        ("'gpu'],", "'gpu'], 'extras': {'ports': {'mlx5_0': 200}},", None),
        (
            "'gpu'],",
            "'gpu'], 'extras': {'ports': ['mlx5_0']},",
            r"partition node has extras with ports \['mlx5_0'\]: write the names of its network",
        ),
        ("'openmpi'}", "'openmpi', 'container': ['apptainer', 'exec', 'x']}", None),
        (
            "'openmpi'}",
            "'openmpi', 'container': 'apptainer exec x'}",
            "environment mine has extras with container 'apptainer exec x': write the words that",
        ),
    ],
)
def test_features_and_families_that_no_check_knows(system, right, wrong, sentence):
    name = system(SITE.replace(right, wrong))
    if sentence is None:
        settings.load_system(name)
        return
    with pytest.raises(AssayError, match=sentence) as caught:
        settings.load_system(name)
    assert 'toy.py: ' in str(caught.value)


def test_results_that_cannot_be_written_where_a_variable_says(monkeypatch, tmp_path):
    file = tmp_path / 'a-file'
    file.touch(0o644)
    monkeypatch.setenv(paths.RESULTS_VARIABLE, str(file))
    monkeypatch.setattr(paths, 'LOGS', file / 'logs')
    words = f'you may not write to {file}, .*: have ASSAY_RESULTS name another folder'
    with pytest.raises(AssayError, match=words):
        settings.assert_writable()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can be somebody else for a while')
def test_a_checkout_of_somebody_else_is_one_sentence(monkeypatch, capfd):
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:
        os.chmod(folder, 0o755)
        for name in ('STATE', 'LOGS', 'RUNS', 'BUILDS', 'PERFLOGS'):
            monkeypatch.setattr(paths, name, Path(folder, 'work', name.lower()))
        settings.assert_writable()
        os.seteuid(65534)
        try:
            with pytest.raises(AssayError, match=f'you may not write to {folder}, .*git clone'):
                settings.assert_writable()
        finally:
            os.seteuid(0)


def test_path_has_our_commands_first_and_once(monkeypatch):
    monkeypatch.setenv('PATH', f'/usr/bin:{paths.VENV_BIN}:/bin')
    assert settings.exports()['PATH'] == f'{paths.VENV_BIN}:/usr/bin:/bin'


#: Prints what ReFrame has of options, as several calls with --show-config do.
SHOWN_BY_REFRAME = """
import sys
from contextlib import suppress
from reframe.frontend import cli
for option in sys.argv[1:]:
    sys.argv[1:] = [f'--show-config={option}']
    with suppress(SystemExit):
        cli.main()
"""


def shown_by_reframe(*options):
    said = subprocess.check_output(
        [paths.VENV_BIN / 'python', '-c', SHOWN_BY_REFRAME, *options],
        env={**os.environ, **settings.exports('generic')},
        text=True,
    )
    decoder, shown = json.JSONDecoder(), []
    while said := said.lstrip():
        value, end = decoder.raw_decode(said)
        shown.append(value)
        said = said[end:]
    return shown


#: Options of ReFrame's, and the variables that set them.
SET_BY_VARIABLES = {
    'general/0/check_search_path': 'RFM_CHECK_SEARCH_PATH',
    'general/0/check_search_recursive': 'RFM_CHECK_SEARCH_RECURSIVE',
    'general/0/reference_prefix': 'RFM_REFERENCE_PREFIX',
    'systems/0/name': 'RFM_SYSTEM',
    'storage/0/enable': 'RFM_ENABLE_RESULTS_STORAGE',
    'storage/0/sqlite_db_file': 'RFM_SQLITE_DB_FILE',
    'logging/0/handlers_perflog/0/basedir': 'RFM_PERFLOG_DIR',
    'general/0/trap_job_errors': 'RFM_TRAP_JOB_ERRORS',
}


def test_each_variable_takes_effect_in_reframe():
    exports = settings.exports('generic')
    shown = shown_by_reframe(*SET_BY_VARIABLES)
    for (option, variable), value in zip(SET_BY_VARIABLES.items(), shown, strict=True):
        wanted = exports[variable]
        wanted = {'yes': True, 'no': False}.get(wanted, wanted)
        assert value in (wanted, [wanted]), option


def test_a_plain_reframe_keeps_its_files_in_a_folder_of_its_own():
    """By what config/common.py sets, which ReFrame reads afterwards."""
    names = ('general/0/report_file', 'systems/0/stagedir', 'systems/0/outputdir')
    # Each process is a run of its own.
    shown, (another,) = shown_by_reframe(*names), shown_by_reframe(names[0])
    folder = Path(shown[0]).parent
    assert folder.parent == Path(another).parents[1] == paths.RUNS
    assert shown == [str(folder / name) for name in ('report.json', 'stage', 'output')]
    assert Path(another).parent != folder


def test_programs_speak_english_whatever_the_user_does():
    """Jobs and builds, of a plain ReFrame too: sentences and numbers of theirs are looked for."""
    script = f'import os, runpy; runpy.run_path({str(settings.COMMON)!r}); '
    script += 'print(*(os.environ.get(f"LC_{name}") for name in ("ALL", "MESSAGES", "CTYPE")))'
    said = subprocess.check_output(
        [paths.VENV_BIN / 'python', '-c', script], env={**os.environ, 'LC_ALL': 'de_DE'}, text=True
    )
    assert said == 'None C de_DE\n'


@pytest.mark.parametrize('name', ['gone', 'file'])
def test_a_folder_for_sessions_that_is_none_is_named(tmp_path, monkeypatch, name):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('TMPDIR', str(tmp_path / name))
    with pytest.raises(AssayError, match=f'TMPDIR is .*{name}, .*unset it'):
        settings.assert_tmpdir()
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    settings.assert_tmpdir()
    monkeypatch.delenv('TMPDIR')
    settings.assert_tmpdir()


def test_a_folder_of_a_sites_own_systems_is_known_beside_those_of_the_suite(elsewhere, monkeypatch):
    of_the_suite = elsewhere / 'suite'
    of_the_suite.mkdir()
    for folder, name in [(of_the_suite, 'a'), (of_the_suite, 'b'), (paths.SYSTEMS, 'b')]:
        (folder / f'{name}.py').touch()
    assert settings.known_systems() == ['b']
    monkeypatch.setattr(paths, 'MORE_SYSTEMS', [of_the_suite])
    assert settings.known_systems() == ['a', 'b']
    assert settings.system_file('a:node') == of_the_suite / 'a.py'
    assert settings.system_file('b') == paths.SYSTEMS / 'b.py'
