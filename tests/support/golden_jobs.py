"""The outputs of real jobs in tests/golden/jobs, one folder for each check, MPI and fabric."""

from pathlib import Path

from assay import paths
from assay.config.lint import check_classes

JOBS = Path(__file__).parents[1] / 'golden' / 'jobs'

#: By check the file that it is in, without its ending, from the folder of the checks.
FILES = {
    name: str(path.relative_to(paths.CHECKS).with_suffix(''))
    for path in paths.CHECKS.rglob('*.py')
    for name in check_classes(path)
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
        'CollectivesOverlap': {'operation': 'allreduce'},
        'Congestion': {'scale': '2_nodes'},
        'Distances': {'layout': 'one-per-node'},
        'HaloProgress': {'scale': '2_nodes', 'scaling': 'weak'},
        'KnownDefect': {'defect': 'any-source' if fabric == 'ucx-tcp' else 'sub-grid'},
        'NPB': {'kernel': 'mg'},
        **{tool: {'size': 'starved', 'code': 'minife'} for tool in ('MpiP', 'Must')},
        'MiniMDMixed': {'layout': 'mixed'},
        'Screen': {'layout': 'hybrid', 'scale': 'all_nodes'},
    }
    return wanted | others.get(name, {})


GOLDEN = sorted(path.relative_to(JOBS) for path in JOBS.glob('*/*'))


def slow(report):
    """Make a report of pt2pt one of messages that took a thousand times as long."""
    for entry in report['results']:
        places = {name: entry['time'].pop(name) for name in ('best_place', 'median_place')}
        counts = {name: entry['clocks'].pop(name) for name in ('batches', 'operations')}
        for times in (entry['time'], entry['clocks']):
            times.update({name: value * 1000 for name, value in times.items()})
        entry['time'] |= places
        entry['clocks'] |= counts
        entry['bouts'] = [value * 1000 for value in entry['bouts']]
        entry['kept'] *= 1000
        entry['bandwidth'] /= 1000
