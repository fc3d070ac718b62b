"""Hydra: the launcher of MPICH and of MPIs that are made from it."""

from __future__ import annotations

from assay.mpis.family import Words

#: The first words of its answer to ``--version``; its own version comes next.
SAYS = r'HYDRA build details:'
VERSION = r'\s+Version:\s+(\d\S*)'

#: What it starts on each node.
PROXY = 'hydra_pmi_proxy'

#: Names the network interface by which it talks to its proxies.
INTERFACE = 'HYDRA_IFACE'

#: What variables of MPIs begin with that are made from MPICH, as their launchers are.
VARIABLES = ('MPIR_CVAR_', 'MPICH_')

#: What it tells ranks of itself: by which interface it talks, and that they are bound.
SETS = 'HYDRA_(?:USER_PROVIDED_BINDING|IP_VERSION|LAUNCH_TYPE)|MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE'


def bind(layout: str, ranks: int, threads: int) -> Words:
    """Its options for a layout."""
    if layout == 'default':
        return [f'-ppn {ranks}'], {}
    bind = {
        'packed': f'-bind-to core:{threads} -map-by core:{threads}',
        'spread': f'-bind-to core:{threads} -map-by numa',
        'one-per-numa': '-bind-to numa -map-by numa',
        'one-per-node': '-bind-to none',
        'mixed': '-bind-to none',
        'hybrid': f'-bind-to core:{threads} -map-by core:{threads}',
        'threads': '-bind-to hwthread -map-by hwthread',
        'cyclic': f'-bind-to core:{threads} -map-by core:{threads}',
    }[layout]
    return [f'-ppn {ppn(layout, ranks)}', bind], {}


def ppn(layout: str, ranks: int) -> int:
    """Ranks that it puts on a node before it goes to the next; after the last comes the first."""
    return 1 if layout == 'cyclic' else ranks
