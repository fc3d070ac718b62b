"""The check classes of this checkout."""

from __future__ import annotations

from functools import cache

from reframe.utility import import_module_from_file

# Their bases too, which files of checks name, before ReFrame has a system: see all_checks.
import assay.checks.sweep  # noqa: F401
from assay import AssayError, paths
from assay.checks.check import MpiCheck
from assay.config.lint import check_classes
from assay.running.site_applications import site_applications

_OF_SITE = paths.CHECKS / 'apps' / 'site.py'


@cache
def all_checks() -> dict[str, type[MpiCheck]]:
    """The classes by their names.

    They are made before ReFrame has a system: afterwards they would have only its own fabrics and
    scales as parameters.

    :raises AssayError: if a file of checks cannot be loaded.
    """
    found = {}
    for path in sorted(paths.CHECKS.rglob('*.py')):
        try:
            for name in check_classes(path):
                found[name] = getattr(import_module_from_file(str(path)), name)
            # A check only where the site has applications: no decorator says so.
            if path == _OF_SITE and site_applications():
                found['SiteApplication'] = import_module_from_file(str(path)).SiteApplication
        except Exception as error:  # a check file is a program: it can raise anything
            told = f'{path} cannot be loaded: {type(error).__name__}: {error}'
            raise AssayError(told) from None
    return found
