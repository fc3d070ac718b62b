"""Open MPI."""

from __future__ import annotations

from assay.mpis.family import Family, Words


def _bind(layout: str, ranks: int, threads: int) -> Words:
    place, bind = {
        'packed': (f'slot:PE={threads}', 'core'),
        'spread': (f'numa:PE={threads}', 'core'),
        'one-per-numa': ('ppr:1:numa', 'numa'),
        'one-per-node': ('ppr:1:node', 'none'),
        'mixed': (f'ppr:{ranks}:node', 'none'),
        'hybrid': (f'ppr:{ranks}:node:PE={threads}', 'core'),
    }[layout]
    return [f'--map-by {place}', f'--bind-to {bind}'], {}


FAMILY = Family(key='openmpi', name='Open MPI', bind=_bind)
