"""Screenings that nobody measured: of sound nodes, and what is different about one."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np

from assay.screening.measured import MEASURES, MODES, Links, Screening

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
        links=replace(
            one.links,
            ends=ends,
            latency=2e-6 * np.exp(random.normal(0, 0.03, of_pairs)),
            bandwidth=2e10 * np.exp(random.normal(0, 0.03, of_pairs)),
            alone=np.full(of_pairs, np.nan),
        ),
    )
