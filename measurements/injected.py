"""What makes something really slower: the changes that real_changes.py makes and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: The commit before figures were made of the best windows: `Change.commit` of what is compared.
EARLIER_COMMIT = '27c6cb9'
#: Values of these files are restored when the session ends.
NET = '/proc/sys/net/ipv4'
HUGE_PAGES = '/sys/kernel/mm/transparent_hugepage/enabled'


@dataclass(frozen=True)
class Change:
    """Something that makes figures worse.

    :param name: the label of its sessions.
    :param says: what it is, for the tables.
    :param aimed_at: the figure whose change is told as its true size: check, fabric and figure.
    :param families: an expression for the names of the families that it can change, fixed before
        anything was measured; what else is called its first cause is a wrong one.
    :param variables: of the jobs.
    :param flags: of the compilers; empty for the usual ones.
    :param kernel: files of the kernel, and what is written to them for the session.
    :param sources: texts in files of the checkout, each with the file and what it becomes.
    :param commit: of the suite; empty for that of this checkout.
    :param share: of the time, in which another process computes on the last CPU.
    :param fault: of the virtual cluster, as `assay cluster fault` takes it.
    """

    name: str
    says: str
    aimed_at: tuple[str, str, str] = ('', '', '')
    families: str = ''
    variables: Mapping[str, str] = field(default_factory=dict)
    flags: str = ''
    kernel: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[tuple[str, str, str], ...] = ()
    commit: str = ''
    share: float = 0.0
    fault: tuple[str, ...] = ()


def _stencil(each: int) -> tuple[tuple[str, str, str], ...]:
    """Each so many planes of miniGhost's stencil are computed twice; the answers stay the same."""
    path = 'sources/minighost/stencil.cpp'
    return (
        (
            path,
            'for (int z = share.z0; z < share.z1; z++) {',
            'for (int z = share.z0, again = 0; z < share.z1;\n'
            f'             again || z % {each} ? (again = 0, z++) : again++) {{',
        ),
        (path, 'heat.sum += put_row(', 'heat.sum += (again ? 0.0 : 1.0) * put_row('),
        (path, 'heat.flux += weight * row_flux', 'heat.flux += (again ? 0.0 : weight) * row_flux'),
    )


UNCHANGED = Change('unchanged', 'nothing')
#: Measured in turn with the unchanged machine, to tell by how much figures got steadier.
EARLIER = Change('earlier', f'the suite at commit {EARLIER_COMMIT}', commit=EARLIER_COMMIT)

_KERNELS = '^application kernels|^applications'
_TCP = 'over (tcp|ucx-tcp|ofi-tcp)'
CHANGES = (
    Change(
        'flags',
        '`-O1` instead of `-O3` and `-O2`',
        ('MiniGhost', 'shm', 'stencil_rate'),
        f'{_KERNELS}|^halo exchange|^communication of applications',
        flags='-march=native -O1',
    ),
    Change(
        'stencil-25',
        "one kernel 25% more work: each fourth plane of miniGhost's stencil twice",
        ('MiniGhost', 'shm', 'stencil_rate'),
        _KERNELS,
        sources=_stencil(4),
    ),
    Change(
        'stencil-10',
        "one kernel 10% more work: each tenth plane of miniGhost's stencil twice",
        ('MiniGhost', 'shm', 'stencil_rate'),
        _KERNELS,
        sources=_stencil(10),
    ),
    Change(
        'buffers',
        'socket buffers of 64 KiB: `tcp_rmem` and `tcp_wmem`',
        ('PointToPoint', 'tcp', 'bandwidth'),
        _TCP,
        kernel={f'{NET}/tcp_rmem': '4096 65536 65536', f'{NET}/tcp_wmem': '4096 16384 65536'},
    ),
    Change(
        'window-scaling',
        '`tcp_window_scaling` off',
        ('PointToPoint', 'tcp', 'bandwidth'),
        _TCP,
        kernel={f'{NET}/tcp_window_scaling': '0'},
    ),
    Change(
        'single-copy',
        'single copy off: `btl_vader_single_copy_mechanism=none`',
        ('PointToPoint', 'shm', 'bandwidth'),
        'over shm',
        {'OMPI_MCA_btl_vader_single_copy_mechanism': 'none'},
    ),
    Change(
        'eager',
        'eager limit of 128 B over `shm` and `tcp`',
        ('Collectives', 'tcp', 'alltoall_8k_time'),
        'over (shm|tcp)',
        {'OMPI_MCA_btl_vader_eager_limit': '128', 'OMPI_MCA_btl_tcp_eager_limit': '128'},
    ),
    Change(
        'collectives',
        'basic collectives: `coll=basic,libnbc,self`',
        ('Collectives', 'shm', 'allreduce_time'),
        '^collectives',
        {'OMPI_MCA_coll': 'basic,libnbc,self'},
    ),
    Change(
        'huge-pages',
        'no transparent huge pages',
        ('Stream', 'shm', 'triad'),
        f'{_KERNELS}|^memory bandwidth|^DGEMM',
        kernel={HUGE_PAGES: 'never'},
    ),
    Change(
        'blas',
        'a BLAS without FMA: `OPENBLAS_CORETYPE=Sandybridge`',
        ('Dgemm', 'shm', 'rate'),
        f'{_KERNELS}|^DGEMM',
        {'OPENBLAS_CORETYPE': 'Sandybridge'},
    ),
    Change(
        'shared',
        'another process on the last CPU 30% of the time',
        ('Dgemm', 'shm', 'rate'),
        share=0.3,
    ),
)
#: What the network itself loses, its figures that no MPI touches lose as well.
_NETWORK = f'^network of the nodes|{_TCP}'
_ON_ONE_MACHINE = {one.name: one for one in CHANGES}
#: Between the nodes of the virtual cluster.
BETWEEN_NODES = (
    Change(
        'delay-60',
        '60 us more between two nodes',
        ('PointToPoint', 'tcp', 'latency'),
        _NETWORK,
        fault=('delay', 'n2', '60'),
    ),
    Change(
        'delay-20',
        '20 us more between two nodes',
        ('PointToPoint', 'tcp', 'latency'),
        _NETWORK,
        fault=('delay', 'n2', '20'),
    ),
    Change(
        'rate',
        '1 Gbit/s between two nodes',
        ('PointToPoint', 'tcp', 'bandwidth'),
        _NETWORK,
        fault=('rate', 'n2', '1000'),
    ),
    Change(
        'loss',
        '1% of the packets of one node lost',
        ('PointToPoint', 'tcp', 'bandwidth'),
        _NETWORK,
        fault=('loss', 'n2', '1'),
    ),
    replace(_ON_ONE_MACHINE['buffers'], families=_NETWORK),
    replace(_ON_ONE_MACHINE['window-scaling'], families=_NETWORK),
    replace(_ON_ONE_MACHINE['eager'], families='over tcp'),
    replace(_ON_ONE_MACHINE['collectives'], aimed_at=('Collectives', 'tcp', 'allreduce_time')),
    replace(_ON_ONE_MACHINE['shared'], aimed_at=('MiniFE', 'tcp', 'matvec_rate')),
)


def changes_of(system: str) -> tuple[Change, ...]:
    """The changes that are made on a system."""
    return BETWEEN_NODES if system == 'vcluster' else CHANGES
