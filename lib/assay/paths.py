"""The folders of the checkout that the rest of Assay reads and writes."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Of the running Python: .venv may be a link to a newer one by now.
VENV_BIN = Path(sys.prefix).resolve() / 'bin'
CONFIG = ROOT / 'config'
SYSTEMS = CONFIG / 'systems'
REFERENCES = CONFIG / 'references'
MPI_LOCKS = CONFIG / 'mpi'
SPACK_CONFIG = CONFIG / 'spack'
SPACK_YAML = ROOT / 'spack.yaml'
CHECKS = ROOT / 'checks'
SOURCES = ROOT / 'sources'
RECIPES = SOURCES / 'spack_repo' / 'assay'

# Everything that a run makes, and that can be deleted.
STATE = ROOT / '.assay'
BUNDLE = STATE / 'bundle'
LOGS = STATE / 'logs'
RUNS = STATE / 'runs'
BUILDS = STATE / 'builds'
MPI_PREFIXES = STATE / 'mpi'
SPACK = STATE / 'spack'

# What a run leaves for good.
PERFLOGS = ROOT / 'perflogs'
RESULTS_DATABASE = PERFLOGS / 'results.db'
SCREENINGS = PERFLOGS / 'screenings'
NIGHTS = PERFLOGS / 'nights'
