"""The MPIs that the suite knows: one file a family, and nothing about it stands anywhere else.

Shared parts have files of their own: Hydra, a launcher, and the libraries that carry
messages (:mod:`assay.mpis.transports`). MPIs that have no file are recognised by their words
(:mod:`assay.mpis.strangers`).
"""

from __future__ import annotations

import importlib
import pkgutil
import traceback

from pydantic import ValidationError

from assay import AssayError
from assay.mpis.family import AsyncProgress, Family, Recipe, Words, problems_in_words

__all__ = ['FAMILIES', 'AsyncProgress', 'Family', 'Recipe', 'Words']


def _families() -> dict[str, Family]:
    """The families of the files in this folder.

    :raises AssayError: if one declares something wrong; the message has file, line and field.
    """
    found: dict[str, Family] = {}
    for entry in pkgutil.iter_modules(__path__):
        try:
            module = importlib.import_module(f'{__name__}.{entry.name}')
        except ValidationError as error:
            # The last frame is pydantic's.
            where = traceback.extract_tb(error.__traceback__)[-2]
            raise AssayError(
                f'{where.filename}, line {where.lineno}: {error.title}: {problems_in_words(error)}'
            ) from None
        if family := getattr(module, 'FAMILY', None):
            found[family.key] = family
    return found


#: Every family by its name in environments, features and options.
FAMILIES: dict[str, Family] = _families()
