"""MPICH."""

from __future__ import annotations

from assay.mpis.family import Family, Words


def _bind(layout: str, ranks: int, threads: int) -> Words:
    bind = {
        'packed': f'-bind-to core:{threads} -map-by core:{threads}',
        'spread': f'-bind-to core:{threads} -map-by numa',
        'one-per-numa': '-bind-to numa -map-by numa',
        'one-per-node': '-bind-to none',
        'mixed': '-bind-to none',
        'hybrid': f'-bind-to core:{threads} -map-by core:{threads}',
    }[layout]
    return [f'-ppn {ranks}', bind], {}


FAMILY = Family(key='mpich', name='MPICH', bind=_bind)
