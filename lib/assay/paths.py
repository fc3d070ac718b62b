"""The folders of the checkout that the rest of Assay reads and writes.

Two variables name other folders: ``ASSAY_RESULTS`` for all that is left by runs, in place of those
here, and ``ASSAY_SYSTEMS`` for the files of a site's systems, beside those here. What is built and
installed stays where it is.
"""

import os
import sys
from pathlib import Path

#: The names of these variables; of an empty one the usual folders are taken.
RESULTS_VARIABLE = 'ASSAY_RESULTS'
SYSTEMS_VARIABLE = 'ASSAY_SYSTEMS'


def _named_by(variable: str) -> Path | None:
    folder = os.environ.get(variable)
    return Path(folder).resolve() if folder else None


def folder_variables() -> dict[str, str]:
    """The folders by their variables, for processes that are started elsewhere."""
    found = {name: _named_by(name) for name in (RESULTS_VARIABLE, SYSTEMS_VARIABLE)}
    return {name: str(folder) for name, folder in found.items() if folder}


_results = _named_by(RESULTS_VARIABLE)

ROOT = Path(__file__).resolve().parents[2]

# Of the running Python: .venv may be a link to a newer one by now.
VENV_BIN = Path(sys.prefix).resolve() / 'bin'
CONFIG = ROOT / 'config'
#: What is written goes to the first, in which a system is looked for first.
SYSTEMS = _named_by(SYSTEMS_VARIABLE) or CONFIG / 'systems'
MORE_SYSTEMS = [CONFIG / 'systems'] if SYSTEMS != CONFIG / 'systems' else []
REFERENCES = CONFIG / 'references'
MPI_LOCKS = CONFIG / 'mpi'
SPACK_CONFIG = CONFIG / 'spack'
SPACK_YAML = ROOT / 'spack.yaml'
CHECKS = ROOT / 'checks'
SOURCES = ROOT / 'sources'
RECIPES = SOURCES / 'spack_repo' / 'assay'

# Everything that is made here, and that can be deleted.
STATE = ROOT / '.assay'
BUNDLE = STATE / 'bundle'
BUILDS = STATE / 'builds'
MPI_PREFIXES = STATE / 'mpi'
SPACK = STATE / 'spack'

# What commands leave: of it nothing is used again.
RUNS = (_results or STATE) / 'runs'
INIT = (_results or STATE) / 'init'
LOGS = (_results or STATE) / 'logs'

# What a run leaves for good.
PERFLOGS = (_results or ROOT) / 'perflogs'
RESULTS_DATABASE = PERFLOGS / 'results.db'
SCREENINGS = PERFLOGS / 'screenings'
NIGHTS = PERFLOGS / 'nights'
TUNINGS = PERFLOGS / 'tunings'
CULPRITS = PERFLOGS / 'culprits'
SPECS = PERFLOGS / 'specs'
