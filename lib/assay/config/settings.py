"""The settings of ReFrame: the environment in which a plain ``reframe -r`` runs this suite."""

from __future__ import annotations

import os
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import AssayError, locks, paths
from assay.text import did_you_mean, similar

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

DEFAULT_SYSTEM = 'generic'
#: The virtual cluster: config/systems/vcluster.py.
CLUSTER_SYSTEM = 'vcluster'
#: Those that have the MPIs of this machine, or of wheels.
ON_THIS_MACHINE = (DEFAULT_SYSTEM, CLUSTER_SYSTEM)

COMMON = paths.CONFIG / 'common.py'


def known_systems() -> list[str]:
    """The names of the files in ``config/systems``, and in the folder of a site's own."""
    return sorted(_files())


def system_file(system: str) -> Path:
    """The configuration file of ``system``, which may be written ``name:partition``.

    :raises AssayError: if there is no such file.
    """
    name = system.partition(':')[0]
    if name not in known_systems():
        raise AssayError(
            f'unknown system {name!r}. Known systems: {", ".join(known_systems()) or "none"}. '
            f'To add one, write {paths.SYSTEMS / "<name>.py"}.'
        )
    return _files()[name]


def _files() -> dict[str, Path]:
    """The file of each system; those of the first folder hide others of the same name."""
    folders = [*reversed(paths.MORE_SYSTEMS), paths.SYSTEMS]
    return {path.stem: path for folder in folders for path in folder.glob('*.py')}


def assert_writable() -> None:
    """:raises AssayError: if runs cannot write to their folders or lock files there."""
    results = paths.folder_variables().get(paths.RESULTS_VARIABLE)
    for path in (paths.STATE, paths.LOGS, paths.RUNS, paths.BUILDS, paths.PERFLOGS):
        there = next(folder for folder in (path, *path.parents) if folder.exists())
        if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
            how = f'use a checkout of your own (git clone {paths.ROOT})'
            if results and path.is_relative_to(results):
                how = f'have {paths.RESULTS_VARIABLE} name another folder'
            raise AssayError(f'you may not write to {there}, and a run has to: {how}.')
        locks.assert_lockable(there)


def assert_tmpdir() -> None:
    """:raises AssayError: if MPIs of this machine cannot keep the files of a session in TMPDIR."""
    folder = os.environ.get('TMPDIR')
    if folder and not (
        os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK, effective_ids=True)
    ):
        raise AssayError(
            f'TMPDIR is {folder}, where you may not write, and MPIs keep the files '
            'of a session there: unset it, or name another one.'
        )


def exports(system: str = DEFAULT_SYSTEM) -> dict[str, str]:
    """The environment variables that a plain ``reframe -r`` needs, and nothing else needs to know.

    :raises AssayError: if the system is unknown or its file is not valid Python.
    """
    files = [COMMON, system_file(system)]
    for path in files:
        _compile(path)
    return {
        'PATH': _search_path(),
        'RFM_CONFIG_FILES': ':'.join(map(str, files)),
        'RFM_SYSTEM': system,
        'RFM_CHECK_SEARCH_PATH': str(paths.CHECKS),
        'RFM_CHECK_SEARCH_RECURSIVE': 'yes',
        'RFM_PERFLOG_DIR': str(paths.PERFLOGS),
        'RFM_REFERENCE_PREFIX': str(paths.REFERENCES),
        'RFM_ENABLE_RESULTS_STORAGE': 'yes',
        'RFM_SQLITE_DB_FILE': str(paths.RESULTS_DATABASE),
        # With it ReFrame 4.10.4 fails every build (config/common.py).
        'RFM_TRAP_JOB_ERRORS': 'no',
    } | paths.folder_variables()


def modes() -> dict[str, list[str]]:
    """The execution modes of ``config/common.py``: their names and ReFrame options."""
    _compile(COMMON)
    try:
        configuration = runpy.run_path(str(COMMON))['site_configuration']
    except Exception as error:  # a configuration file is a program: it can raise anything
        raise AssayError(f'{COMMON}: cannot be loaded: {_reason(error)}') from error
    return {mode['name']: mode['options'] for mode in configuration['modes']}


def options_of_mode(mode: str) -> list[str]:
    """The command line of ReFrame that a mode stands for.

    :raises AssayError: if the mode is unknown.
    """
    known = modes()
    if mode not in known:
        raise AssayError(f'unknown mode {mode!r}. Known modes: {", ".join(known)}.')
    return shlex.split(' '.join(known[mode]))


def load_system(system: str) -> _SiteConfig:
    """Load the configuration as ReFrame will, and find what is wrong with it.

    ReFrame's own message names neither the field nor, where a file raises, the file. It takes any
    word for a feature: one that is misspelled would leave out checks without a word.

    :raises AssayError: naming the file and the reason.
    """
    import jsonschema
    from reframe.core import config
    from reframe.core.exceptions import ReframeError

    files = [str(path) for path in (COMMON, system_file(system))]
    for path in files:
        try:
            config.load_config('<builtin>', path)
        except Exception as error:  # a configuration file is a program: it can raise anything
            raise AssayError(f'{path}: cannot be loaded: {_reason(error)}') from error
    site = config.load_config(*files)
    try:
        site.validate()
        site.select_subconfig(system)
    except ReframeError as error:
        cause = error.__cause__
        if isinstance(cause, jsonschema.ValidationError):
            where = '/'.join(str(part) for part in cause.absolute_path) or 'top level'
            raise AssayError(
                f'{files[-1]}: not a valid configuration: {where}: {cause.message}'
            ) from error
        raise AssayError(f'{files[-1]}: {error}') from error
    if problems := list(_misunderstood(site)):
        raise AssayError(f'{files[-1]}: {"; ".join(problems)}')
    return site


def _misunderstood(site: _SiteConfig) -> Iterator[str]:
    """Settings of the selected system that ReFrame accepts, and no check understands.

    Features that look like none of ours are the site's own.
    """
    from assay.config.fabrics import load_catalogue
    from assay.config.scales import PARTS, PREFIX, SCALES
    from assay.mpis import FAMILIES

    catalogue = load_catalogue()
    scales = [f'{PREFIX}{name}' for name in (*SCALES, *PARTS)]
    offered = {*catalogue.fabrics, *scales}
    built = {*catalogue.fabrics, *FAMILIES, 'mpi', 'imb', 'spack'}
    for environment in site['environments']:
        name, features = environment['name'], environment.get('features', [])
        yield from _misspelled(f'environment {name}', features, built)
        extras = environment.get('extras', {})
        family = extras.get('family')
        if 'mpi' in features and family not in FAMILIES and 'fault' not in extras:
            said = 'no family' if family is None else f'the unknown family {family!r}'
            yield (
                f'environment {name} has the feature mpi and {said} in its extras: write '
                f"'extras': {{'family': ...}}, with one of {', '.join(FAMILIES)}"
            )
        words = extras.get('container', [])
        if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
            yield (
                f'environment {name} has extras with container {words!r}: write the words that '
                f"start a program in it, 'container': ['apptainer', 'exec', 'image.sif']"
            )
    for partition in site['systems'][0]['partitions']:
        yield from _of_no_scale(partition)
        features = [one for one in partition.get('features', []) if not one.startswith(PREFIX)]
        where = f'partition {partition["name"]}'
        yield from _misspelled(where, features, offered)
        ports = partition.get('extras', {}).get('ports', {})
        if not isinstance(ports, dict) or not all(_is_rate(rate) for rate in ports.values()):
            yield (
                f'{where} has extras with ports {ports!r}: write the names of its network ports '
                f"with their rates in Gbit/s, 'ports': {{'mlx5_0': 200}}"
            )


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _of_no_scale(partition: dict[str, Any]) -> Iterator[str]:
    """Features of a partition that look like scales, and that no check understands."""
    from assay.config.scales import PARTS, PREFIX, is_scale, nodes_of_scale

    for feature in partition.get('features', []):
        name, where = feature.removeprefix(PREFIX), f'partition {partition["name"]}'
        if name == feature:
            continue
        if not is_scale(name):
            known = ', '.join(f'{PREFIX}{part}' for part in PARTS)
            yield (
                f'{where} has the unknown feature {feature!r}: scales are {PREFIX}1_node, '
                f'{PREFIX}2_nodes and so on with any number, {known}'
            )
            continue
        try:
            nodes_of_scale(name, partition.get('extras', {}))
        except ValueError as error:
            yield f'{where}: the feature {feature!r} {error}'


def _misspelled(where: str, features: list[str], known: set[str]) -> Iterator[str]:
    for feature in features:
        close = similar(feature.lower(), known)
        if feature not in known and not feature.startswith('spack-') and close:
            yield (
                f'{where} has the unknown feature {feature!r}: {did_you_mean(close)} '
                f'Known ones: {", ".join(sorted(known))}'
            )


def _compile(path: Path) -> None:
    try:
        compile(path.read_text(), str(path), 'exec')
    except SyntaxError as error:
        raise AssayError(f'{path}, line {error.lineno}: not valid Python: {error.msg}') from error
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: cannot be read: {_reason(error)}') from error


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, AssayError) else f'{type(error).__name__}: {error}'


def _search_path() -> str:
    """PATH with .venv/bin first, and there only once, however often it is evaluated."""
    ours = str(paths.VENV_BIN)
    others = [entry for entry in os.environ.get('PATH', os.defpath).split(':') if entry != ours]
    return ':'.join([ours, *others])
