"""Upgrades that make MPI worse, one that changes nothing, and whether a comparison tells them.

    .venv/bin/python measurements/stories.py
    .venv/bin/python measurements/stories.py --again 20261122T2245

Brings a virtual cluster of two nodes up, and makes runs of it as it is: some earlier ones, and
three with the label `before`. Then each change is made that an upgrade may leave behind, three runs
are made, and it is undone; at the end there are three more in which nothing is changed. All are
real `assay run`s, in one turn on the machine (docs/runs.md), and stay in the results database.
After each change `assay compare-runs` compares its three with those before; a table has its words.
Last, half a year of nights is simulated, in which two figures get slowly worse, and `assay trend`
is asked. `--again` only compares the runs of an earlier measurement once more.

The exit code is 1 if a change or a drift was not told, what changed was not named, or an unchanged
figure was called worse or better.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars
import reframe.core.runtime as rt
from reframe.frontend.reporting import storage

from assay import AssayError, paths
from assay.results.history import load_history
from assay.results.statistics.comparison import Word
from assay.running import turn
from assay.vcluster import faults
from assay.vcluster.cluster import Cluster, take_down

SELECTION = (
    '^PointToPoint%fabric=tcp%layout=packed%scale=2_nodes',
    '^Ring%fabric=(tcp|ucx-tcp)%layout=packed%scale=2_nodes',
    '^Collectives%fabric=tcp%layout=packed%scale=2_nodes',
    '^MiniFE%fabric=tcp%layout=packed%scale=(1_node|2_nodes)%size=cache',
)
#: Runs before any is compared, and runs of each state that is.
EARLIER, RUNS = 9, 3


@dataclass(frozen=True)
class Change:
    """What an upgrade leaves behind.

    :param name: of its runs' label.
    :param says: what it is, for the table.
    :param named: an expression that what `assay compare-runs` says of it has to match; empty if
        there is nothing to say.
    :param variables: in the environment of `assay run`.
    :param fault: of the node n2, as kind and value.
    :param settings: of the kernel, on both nodes.
    """

    name: str
    says: str
    named: str
    variables: Mapping[str, str] = field(default_factory=dict)
    fault: tuple[str, str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def touches(self, figure: Mapping[str, str]) -> bool:
        """Whether it can have changed a figure: none but the network and the MPI is changed."""
        return bool(self.named) and figure['scale'] != '1_node'


BUFFERS = {
    'net.ipv4.tcp_rmem': '4096 8192 8192',
    'net.ipv4.tcp_wmem': '4096 8192 8192',
}
EAGER = {'OMPI_MCA_btl_tcp_eager_limit': '1024'}
LINEAR = {'OMPI_MCA_coll_tuned_use_dynamic_rules': '1'} | {
    f'OMPI_MCA_coll_tuned_{operation}_algorithm': '1'
    for operation in ('allreduce', 'allgather', 'alltoall', 'barrier', 'bcast', 'reduce_scatter')
}
MOVED = 'the machine moved: socket_'
CHANGES = (
    Change('buffers', 'socket buffers of 8 KiB', 'between nodes|over tcp', settings=BUFFERS),
    Change('delay', '+60 us', MOVED, fault=('delay', '60')),
    Change('rate', '8 Gbit/s', MOVED, fault=('rate', '8000')),
    Change('eager', 'eager limit 1 KiB', 'OMPI_MCA_btl_tcp_eager_limit', variables=EAGER),
    Change('collectives', 'linear collectives', 'OMPI_MCA_coll_tuned_', variables=LINEAR),
    Change('more-delay', '+200 us', f'{MOVED}.*where the time of MiniFE', fault=('delay', '200')),
    Change('unchanged', 'nothing', ''),
)
WORDS = get_args(Word)
COLUMNS = (
    *('change', 'exit code', 'worse', 'cannot tell', 'of the machine', 'groups'),
    *('what else changed', 'time told of', 'false'),
)

#: Simulated: runs of one a night, the first of them without a drift, and what it is then.
NIGHTS, STEADY, PER_WEEK = 180, 60, 0.002
#: From run to run, and where its form is from.
SPREAD, NULL = 0.005, Path(__file__).with_name('data') / 'null.parquet'


def measure(stamp: str) -> bool:
    """Make all the runs, their labels beginning with a stamp, and print the table."""
    cluster = Cluster(nodes=2)
    cluster.up()
    try:
        for name, count in (('earlier', EARLIER), ('before', RUNS)):
            for _ in range(count):
                run(f'{stamp}-{name}', {})
        good = True
        for change in CHANGES:
            as_it_was = make(cluster, change)
            for _ in range(RUNS):
                run(f'{stamp}-{change.name}', change.variables)
            faults.heal_parts(cluster, cluster.nodes)
            set_all(cluster, as_it_was)
            # At once: what a run left in its folders is kept for the newest 20 runs only.
            good = told(stamp, change) and good
    finally:
        take_down()
    return good


def run(label: str, variables: Mapping[str, str]) -> None:
    began = time.monotonic()
    command = [paths.ROOT / 'assay', 'run', '--system', 'vcluster:srun', '-p', '^openmpi$']
    command += ['--label', label, *(word for name in SELECTION for word in ('-n', name))]
    # This process has the turn for all of them.
    surroundings = {**os.environ, turn.VARIABLE: 'yes', **variables}
    done = subprocess.run(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    # 1 if something missed its reference: it is a figure all the same.
    if done.returncode not in (0, 1) or ' of 0 cases' in done.stdout:
        raise AssayError(f'a run ended with exit code {done.returncode}:\n{done.stdout[-4000:]}')
    last = done.stdout.strip().splitlines()[-1]
    print(f'{label}: {last} ({time.monotonic() - began:.0f} s)', file=sys.stderr, flush=True)


def make(cluster: Cluster, change: Change) -> dict[str, str]:
    """Make a change; returns the settings of the kernel as they were."""
    if change.fault:
        faults.inject(cluster, cluster.node('n2'), *change.fault)
    as_it_was = {name: cluster.nodes[0].run(f'sysctl -n {name}') for name in change.settings}
    set_all(cluster, change.settings)
    return as_it_was


def set_all(cluster: Cluster, settings: Mapping[str, str]) -> None:
    for node in cluster.nodes:
        for name, value in settings.items():
            node.run(f"sysctl -w {name}='{value.strip()}'")


def told(stamp: str, change: Change) -> bool:
    """Print a row of the table; whether all in it is as it should be."""
    words = ['compare-runs', f'{stamp}-before', f'{stamp}-{change.name}']
    code, text = assay(*words)
    print(text, file=sys.stderr, flush=True)
    found: dict[str, Any] = json.loads(assay(*words, '--json')[1])
    by_word = {word: [one for one in found['figures'] if one['word'] == word] for word in WORDS}
    changed = [*by_word['worse'], *by_word['better']]
    false = [one for one in changed if not change.touches(one)]
    groups = [group['title'] for group in found['groups'] if group['shared'] is not None]
    facts = [f'{fact["name"]}: {fact["before"]} -> {fact["after"]}' for fact in found['facts']]
    moved = [found['figures'][key]['figure'] for key in found['machine_moved']]
    times = [found['time'], *(group['time'] for group in found['groups'])]
    time = next((one for one in times if one), None)
    row(
        change.says,
        str(code),
        str(len(by_word['worse'])),
        str(len(by_word['cannot tell'])),
        ', '.join(sorted({*moved})) or '-',
        '<br>'.join(groups) or '-',
        '<br>'.join(facts) or '-',
        time['case'].split(' ')[0] if time else '-',
        ', '.join(f'{one["figure"]} of {one["case"]}' for one in false) or '-',
    )
    is_told = bool(code) == bool(change.named) and re.search(change.named, text, re.DOTALL)
    return bool(is_told) and not false


def drift(stamp: str, drifts: Sequence[str]) -> bool:
    """Print what `assay trend` says of simulated months; whether that is as it should be.

    A run with the label `before` is stored once for each night, through ReFrame's own storage. Its
    figures vary as those of the null campaign did, in their order, scaled to a spread.

    :param drifts: the figures of PointToPoint that get worse, from night ``STEADY`` on.
    """
    label = f'{stamp}-drift'
    (uuid,) = [run.uuid for run in load_history().runs if run.summary.label == f'{stamp}-before'][
        -1:
    ]
    # ReFrame's own JSON, which is stored again and again.
    with closing(sqlite3.connect(paths.RESULTS_DATABASE)) as connection:
        query = 'SELECT json_blob FROM sessions WHERE uuid = ?'
        ((text,),) = connection.execute(query, [uuid]).fetchall()
    report = json.loads(text)
    first = datetime.now(timezone.utc) - timedelta(days=NIGHTS)
    options = {'storage/sqlite_db_file': str(paths.RESULTS_DATABASE), 'storage/enable': True}
    with rt.temp_runtime(str(paths.SYSTEMS / 'example-slurm.py'), options=options):
        for night, factors in enumerate(_nights(report, drifts)):
            one = copy.deepcopy(report)
            begun = (first + timedelta(days=night)).timestamp()
            one['session_info'] |= {'uuid': f'{night:08x}{uuid[8:]}', 'label': label}
            one['session_info'] |= {'time_start_unix': begun, 'time_end_unix': begun + 30}
            for case in _cases(one):
                case |= {'system': 'drifting', 'taken_by_others': []}
                for name, told in (case.get('perfvalues') or {}).items():
                    told[0] *= factors.get((case['display_name'], name.rpartition(':')[2]), 1)
            storage.StorageBackend.default().store(one, None)
    try:
        code, text = assay('trend', label)
        found = json.loads(assay('trend', label, '--json')[1])
    finally:
        assay('forget', label)
    print(text, file=sys.stderr, flush=True)
    worse = [line for line in text.splitlines() if line.startswith(('drift:', 'at run'))]
    row(', '.join(drifts) or 'nothing', str(code), '<br>'.join(worse) or text.splitlines()[0])
    return bool(code) == bool(drifts) and len(found['drifts']) == len(drifts)


def _cases(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [case for run in report['runs'] for case in run['testcases']]


def _nights(
    report: dict[str, Any], drifts: Sequence[str]
) -> Iterator[dict[tuple[str, str], float]]:
    """For each night the factor of each figure, by the name of its case and its own."""
    random = np.random.default_rng(1)
    table = polars.read_parquet(NULL).sort('begun')
    noises = []
    for _, one in table.group_by('environment', 'fabric', 'check', 'figure', maintain_order=True):
        values = one['value'].to_numpy()
        if len(values) > 10 and (values > 0).all() and np.ptp(values):
            logs = np.log(values)
            noises.append((logs - logs.mean()) / logs.std(ddof=1) * SPREAD)
    figures = {
        (case['display_name'], figure): (noises[random.integers(len(noises))], random.integers(99))
        for case in _cases(report)
        for figure, better in (case.get('directions') or {}).items()
        if better != 'exact'
    }
    for night in range(NIGHTS):
        weeks = max(0, night - STEADY) / 7
        factors = {}
        for key, (noise, start) in figures.items():
            factors[key] = math.exp(noise[(start + night) % len(noise)])
            if key[0].startswith('PointToPoint') and key[1] in drifts:
                worse = -1 if key[1] == 'bandwidth' else 1
                factors[key] *= (1 + worse * PER_WEEK) ** weeks
        yield factors


def assay(*words: str) -> tuple[int, str]:
    """Exit code and output of a command.

    :raises AssayError: if it complains.
    """
    surroundings = {**os.environ, 'COLUMNS': '250'}
    command = [paths.ROOT / 'assay', *words]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    if done.stderr or done.returncode not in (0, 1):
        raise AssayError(f'assay {" ".join(words)}: exit code {done.returncode}: {done.stderr}')
    return done.returncode, done.stdout


def row(*cells: str) -> None:
    print('|', ' | '.join(cell.replace('|', '\\|') for cell in cells), '|', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--again', metavar='STAMP', help='compare the runs of that one again')
    options = parser.parse_args()
    stamp = options.again or time.strftime('%Y%m%dT%H%M')
    try:
        row(*COLUMNS)
        row(*['---'] * len(COLUMNS))
        if options.again:
            good = all([told(stamp, change) for change in CHANGES])  # noqa: C419 (each row)
        else:
            handle = turn.take(f'measurement {stamp}', lambda said: print(said, file=sys.stderr))
            good = measure(stamp)
            os.close(handle)
        print()
        row('drifts', 'exit code', 'trend says')
        row(*['---'] * 3)
        for drifts in ((), ('latency', 'bandwidth')):
            good = drift(stamp, drifts) and good
    except AssayError as error:
        sys.exit(str(error))
    sys.exit(not good)


if __name__ == '__main__':
    main()
