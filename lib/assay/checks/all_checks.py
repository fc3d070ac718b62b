"""The check classes of this checkout."""

from __future__ import annotations

from functools import cache

from reframe.utility import import_module_from_file

# Their bases too, which files of checks name, before ReFrame has a system: see all_checks.
import assay.checks.node_benchmark
import assay.checks.sweep  # noqa: F401
from assay import paths
from assay.checks.check import MpiCheck
from assay.config.lint import check_classes


@cache
def all_checks() -> dict[str, type[MpiCheck]]:
    """Them by name.

    They are made before ReFrame has a system: afterwards they would have only its own fabrics and
    scales as parameters.
    """
    return {
        name: getattr(import_module_from_file(str(path)), name)
        for path in sorted(paths.CHECKS.rglob('*.py'))
        for name in check_classes(path)
    }
