"""Two environments to be compared: whether a system has both, on the same partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay import AssayError
from assay.config import settings
from assay.spelling import unknown

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def assert_both(site: _SiteConfig, system: str, first: str, second: str) -> None:
    """See that cases can be run with both.

    :param site: the configuration of the system, loaded.
    :raises AssayError: if they are one, one is unknown, or no partition has both.
    """
    if first == second:
        raise AssayError(f'{first!r} is compared with itself: name two environments.')
    there = _environments(site)
    known = {name for names in there.values() for name in names}
    for name in (first, second):
        if name in known:
            continue
        whole, _, partition = system.partition(':')
        if partition:
            others = _environments(settings.load(whole))
            if has := [one for one, names in others.items() if name in names]:
                raise AssayError(
                    f'{name!r} is an environment of the partition {", ".join(has)} of {whole}, '
                    f'and none of {partition}.'
                )
        raise AssayError(f'{name!r}: {unknown(name, f"environment of {system}", known)}.')
    if not any({first, second} <= {*names} for names in there.values()):
        told = '; '.join(f'{one} has {", ".join(names)}' for one, names in there.items())
        raise AssayError(f'no partition of {system} has both {first} and {second}: {told}.')


def _environments(site: _SiteConfig) -> dict[str, list[str]]:
    """Those of each partition of the selected system."""
    return {one['name']: one.get('environs', []) for one in site.get('systems/0/partitions')}
