"""The functions of ``scipy.special``, which is loaded when one is first used.

That takes as long as all else that a run imports, and a run that is not compared uses none.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    found = globals()[name] = getattr(special, name)
    return found
