r"""UCX and libfabric: their variables and their logs, in any MPI.

UCX lists the lanes of a connection with all that they are for,
``intra-node cfg#1 tag(sysv/memory cma/memory)  am(sysv/memory)``: every lane counts.
"""

from __future__ import annotations

#: Variables that name the network interface of their TCP.
INTERFACE = ('FI_TCP_IFACE', 'UCX_NET_DEVICES')

#: Make UCX log the lanes of each connection, and libfabric each connection of a provider.
STATEMENT = {'UCX_LOG_LEVEL': 'info', 'FI_LOG_LEVEL': 'info', 'FI_LOG_SUBSYS': 'ep_ctrl'}

#: Finds UCX's lines, for error messages.
UCX_QUOTE = r'(?:int(?:er|ra)-node )?(?:cfg#\d+|ep_cfg\[\d+\]:) tag\((?!self/).*'

_LANE = r'cfg[#\[]\d+\S* .*[( ]'
_MEMORY = 'sysv|posix|xpmem|cma|knem'

UCX_IS_SHM = rf'tag\((?:{_MEMORY})/'
UCX_NOT_SHM = [rf'{_LANE}(?!(?:self|{_MEMORY})/)\w+/']

UCX_IS_TCP = r'tag\(tcp/'
UCX_NOT_TCP = [rf'{_LANE}(?!(?:self|tcp)/)\w+/']

UCX_IS_IB = r'inter-node cfg#\d+ tag\((?:rc|dc|ud)_|ep_cfg\[\d+\]: tag\((?:rc|dc|ud)_'
UCX_NOT_IB = [
    rf'{_LANE}(?!(?:self|{_MEMORY})/|(?:rc|dc|ud|gga)_)\w+/',
    r'inter-node cfg#\d+ .*[( ](?!(?:rc|dc|ud|gga)_)\w+/',
]

OFI_NOT_TCP = r'::(?!(?:tcp|ofi_rxm|core):)\w+:ep_ctrl:'
#: Providers that are there on any network.
OFI_OTHERS = r'::(?:tcp|sockets|udp|verbs|ofi_rxm|ofi_rxd):'
