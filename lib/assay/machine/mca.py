"""Parameters of Open MPI as they are without any file or variable."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from assay.tools import output_of_tool

#: Of the names of variables that set them.
PREFIX = 'OMPI_MCA_'
#: Seconds for Open MPI to list them.
_TIME = 30


def default_of(variable: str, library: Path) -> str | None:
    """The default of a parameter; None if Open MPI knows none, or its ``ompi_info`` is not here.

    :param variable: that sets it.
    :param library: Open MPI's.
    """
    # Not of the root, whose /bin is that of /usr: another MPI's.
    tools = (folder / 'bin' / 'ompi_info' for folder in library.parents[:-1])
    tool = next(filter(Path.is_file, tools), None)
    if tool is None:
        return None
    name = variable.removeprefix(PREFIX)
    found = re.search(
        rf'^mca:[^:]*:[^:]*:param:{re.escape(name)}:value:(.*)$', _listed(tool), re.MULTILINE
    )
    return found[1].strip('"') if found else None


@lru_cache(maxsize=4)
def _listed(tool: Path) -> str:
    """All parameters as ``ompi_info`` lists them; empty if it does not answer."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # Without files, whose values it would list in place of defaults.
    without = {**kept, f'{PREFIX}mca_base_param_files': 'none'}
    return output_of_tool([tool, '--all', '--parsable'], _TIME, env=without)
