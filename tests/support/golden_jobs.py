"""The outputs of real jobs in tests/golden/jobs, one folder for each check, MPI and fabric."""

from pathlib import Path

JOBS = Path(__file__).parents[1] / 'golden' / 'jobs'

FILES = {
    'PointToPoint': 'mpi/pt2pt',
    'AsUsersGetIt': 'mpi/pt2pt',
    'Ring': 'mpi/ring',
    'Collectives': 'mpi/collectives',
    'Overlap': 'mpi/overlap',
    'Halo': 'mpi/halo',
    'Pairs': 'mpi/pairs',
    'Screen': 'mpi/screen',
    'KnownDefect': 'defects/known',
    'IntelMpiBenchmarks': 'mpi/imb',
    'OsuMicroBenchmarks': 'mpi/osu',
    'Stream': 'node/stream',
    'Dgemm': 'node/dgemm',
    'Clock': 'node/clock',
    'HPL': 'apps/hpl',
    'HPLSweep': 'apps/hpl',
    'HPLUpstream': 'apps/hpl',
    'HPCG': 'apps/hpcg',
    'MiniFE': 'apps/minife',
    'MiniFESweep': 'apps/minife',
    'MiniFEUpstream': 'apps/minife',
    'MiniMD': 'apps/minimd',
    'MiniMDMixed': 'apps/minimd',
    'MiniMDSweep': 'apps/minimd',
    'MiniMDUpstream': 'apps/minimd',
    'MiniGhost': 'apps/minighost',
    'MiniGhostSweep': 'apps/minighost',
    'MiniGhostUpstream': 'apps/minighost',
}


def chosen(name, fabric):
    """The parameters that a check's golden jobs were run with."""
    wanted = {'fabric': fabric, 'layout': 'packed', 'scale': '1_node'}
    if FILES[name].startswith('apps/'):
        wanted['size'] = 'cache'
    if name.endswith('Sweep'):
        wanted['sweep'] = 'strong'
    others = {
        'AsUsersGetIt': {'fabric': 'default', 'layout': 'default'},
        'Overlap': {'progress': 'none'},
        'KnownDefect': {'defect': 'any-source' if fabric == 'ucx-tcp' else 'sub-grid'},
        'MiniMDMixed': {'layout': 'mixed'},
        'Screen': {'layout': 'hybrid', 'scale': 'all_nodes'},
    }
    return wanted | others.get(name, {})


GOLDEN = sorted(path.relative_to(JOBS) for path in JOBS.glob('*/*'))
