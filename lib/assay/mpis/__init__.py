"""The MPIs that the suite knows: one file a family, and nothing about it stands anywhere else."""

from __future__ import annotations

import importlib
import pkgutil

from assay.mpis.family import Family, Words

__all__ = ['FAMILIES', 'Family', 'Words']

_MODULES = (
    importlib.import_module(f'{__name__}.{found.name}') for found in pkgutil.iter_modules(__path__)
)

#: Every family by its name in environments, features and options.
FAMILIES: dict[str, Family] = {
    module.FAMILY.key: module.FAMILY for module in _MODULES if hasattr(module, 'FAMILY')
}
