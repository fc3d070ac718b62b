"""Intel MPI."""

from __future__ import annotations

from assay.mpis.family import Family, Words


def _bind(layout: str, ranks: int, threads: int) -> Words:
    env = {
        'packed': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:compact'},
        'spread': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:scatter'},
        'one-per-numa': {'I_MPI_PIN_DOMAIN': 'numa'},
        'one-per-node': {'I_MPI_PIN_DOMAIN': 'node'},
        'mixed': {'I_MPI_PIN': '0'},
        'hybrid': {'I_MPI_PIN_CELL': 'core', 'I_MPI_PIN_DOMAIN': f'{threads}:compact'},
    }[layout]
    # Without it a scheduler's tasks of a node count, and not -ppn.
    return [f'-ppn {ranks}'], env | {'I_MPI_JOB_RESPECT_PROCESS_PLACEMENT': '0'}


FAMILY = Family(key='intelmpi', name='Intel MPI', bind=_bind)
