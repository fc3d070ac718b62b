"""Screenings that nobody measured: of sound nodes, and what is different about one."""

import json
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

import witnessed
from assay.screening import kept, outputs
from assay.screening.measured import MEASURES, MODES, Links, Screening
from assay.screening.where import Where

BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
ALL = tuple(f'{measure} {mode}' for measure in MEASURES for mode in MODES)


def screening(n=16, seed=0, day=0, sweeps=8, noise=0.01, slow=None, facts=None, switches=None):
    """One of sound nodes that all meet; what is different about it is told by number of the node.

    :param slow: of a figure and a node, the part of its rate that is left, in all sweeps or some.
    """
    random = np.random.default_rng([seed, day])
    own = np.random.default_rng(seed).normal(0, 0.01, (len(ALL), n))
    values = {
        name: 1e9 * np.exp(usual[:, None] + random.normal(0, noise, (n, sweeps)))
        for name, usual in zip(ALL, own, strict=True)
    }
    for (figure, node), left in (slow or {}).items():
        values[figure][node] *= left
    ends = np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
    return Screening(
        system='made:up',
        environment='openmpi',
        fabric='tcp',
        begun=BEGUN + timedelta(days=day),
        nodes=tuple(f'n{i}' for i in range(n)),
        values=values,
        taken={mode: np.zeros((n, sweeps)) for mode in MODES},
        facts=tuple(
            {'processor': 'x', 'cpus': 64, 'memory': 256 << 30} | (facts or {}).get(i, {})
            for i in range(n)
        ),
        faults=tuple({} for _ in range(n)),
        noise=tuple({'share': 1e-4, 'longest': 2e-5} for _ in range(n)),
        links=Links(
            ends,
            2e-6 * np.exp(random.normal(0, 0.03, (len(ends), 2))),
            2e10 * np.exp(random.normal(0, 0.03, (len(ends), 2))),
            np.full((len(ends), 2), np.nan),
        ),
        switches=switches or {},
    )


def slow_links(one, is_slow, times=3.0, alone=False):
    """Latency of those pairs is so many times as long."""
    latency, by_itself = one.links.latency.copy(), one.links.alone.copy()
    which = [is_slow(a, b) for a, b in one.links.ends]
    latency[which] *= times
    if alone:
        by_itself[which] = 2e-6 * times, 2e10
    return replace(one, links=replace(one.links, latency=latency, alone=by_itself))


def of_few(one, bad, times=100.0, is_bandwidth=False, apart=False):
    """Packets to and from some nodes take so many times as long; of two of them as much as of both.

    :param bad: their numbers.
    :param apart: whether every other node shares its CPUs, and was measured with the rest alone.
    """
    links = one.links
    if apart:
        kept_pairs = (links.ends.sum(axis=1) % 2).astype(bool)
        links = Links(*(getattr(links, name)[kept_pairs] for name in Links.__dataclass_fields__))
    more = 1 + np.isin(links.ends, bad).sum(axis=1)[:, None] * (times - 1)
    if is_bandwidth:
        links = replace(links, bandwidth=links.bandwidth / more)
    else:
        links = replace(links, latency=links.latency * more)
    return replace(one, links=links)


def large(n, seed=0):
    """One of so many sound nodes, of which each meets some twenty others."""
    random = np.random.default_rng(seed)
    one = screening(4)
    met = [random.permutation(n)[: n - n % 2].reshape(-1, 2) for _ in range(20)]
    ends = np.unique(np.sort(np.concatenate(met), axis=1), axis=0)
    of_pairs = (len(ends), 2)
    return replace(
        one,
        nodes=tuple(f'node{i:05}' for i in range(n)),
        values={name: 1e9 * np.exp(random.normal(0, 0.01, (n, 8))) for name in one.values},
        taken={mode: np.zeros((n, 8)) for mode in one.taken},
        facts=one.facts[:1] * n,
        faults=one.faults[:1] * n,
        noise=one.noise[:1] * n,
        links=replace(
            one.links,
            ends=ends,
            latency=2e-6 * np.exp(random.normal(0, 0.03, of_pairs)),
            bandwidth=2e10 * np.exp(random.normal(0, 0.03, of_pairs)),
            alone=np.full(of_pairs, np.nan),
        ),
    )


def keep(one):
    """Keep it as `assay screen` does, with the outputs of a job that would have measured this."""
    path = kept.keep_screening(one)
    with tempfile.TemporaryDirectory() as folder:
        leave(Path(folder), one)
        where = Where(one.system, 'slurm', False, one.environment, one.fabric)
        outputs.keep_outputs(path, Path(folder), where, one.nodes)
    return path


def leave(folder, one):
    """Write the files that its job would have left."""
    results = [
        {'node': node, 'facts': dict(one.facts[number])}
        | _noise(one.noise[number], one.sweeps)
        | {
            mode: {'taken': one.taken[mode][number].tolist()}
            | {measure: one.values[f'{measure} {mode}'][number].tolist() for measure in MEASURES}
            for mode in MODES
        }
        for number, node in enumerate(one.nodes)
    ]
    hosts = [witnessed.host(node) for node in one.nodes]
    ranks = [witnessed.process(rank, on=node) for rank, node in enumerate(one.nodes)]
    seen = witnessed.entries(ranks, hosts)
    files = {'nodes/result.json': {'results': results}, 'misplaced.json': {}}
    files |= {f'{where}witness.json': seen for where in ('', 'nodes/', 'first/')}
    for number, name in enumerate(('first/result.json', 'result.json')):
        files[name] = {'pairs': [_pair(one, pair, number) for pair in range(len(one.links.ends))]}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))


def _noise(noise, sweeps):
    cores = {name: [noise[name]] * sweeps for name in ('share', 'longest')}
    if 'process' not in noise:
        return {'noise': cores}
    busiest = {'command': noise['process'], 'share': noise['process_share']}
    return {'noise': cores, 'busiest_other': busiest}


def _pair(one, pair, tournament):
    links = one.links
    found = {
        'nodes': [one.nodes[end] for end in links.ends[pair]],
        'together': {
            'latency': float(links.latency[pair, tournament]),
            'bandwidth': float(links.bandwidth[pair, tournament]),
        },
    }
    latency, bandwidth = links.alone[pair].tolist()
    if latency == latency:
        found['alone'] = {'latency': latency, 'bandwidth': bandwidth}
    return found
