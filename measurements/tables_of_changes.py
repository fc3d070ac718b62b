"""The tables of what real_changes.py measured: how steady figures are, and what changes are found.

.venv/bin/python measurements/tables_of_changes.py
.venv/bin/python measurements/tables_of_changes.py --data /tmp/some.parquet
.venv/bin/python measurements/tables_of_changes.py --fewer
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from error_rates import compute_change_points
from injected import EARLIER, UNCHANGED, Change, changes_of
from real_changes import DATA
from told_of_changes import (
    NOT_WORSE,
    RUNS,
    UNDECIDED,
    WORSE,
    Pair,
    Told,
    code_of,
    difference_of,
    empty_database,
    judged,
    pairs_of,
    runs_of,
    told_of,
)

from assay.witness.profile import STARTUP

#: Sessions that show how much a figure varies.
ENOUGH = 8
#: Sessions of both sides that are left of a pair.
FEWER = ((3, 3), (3, 2), (2, 3), (2, 2), (3, 1), (1, 3), (1, 1))
#: What a run shows first, by check.
HEADLINES = {
    'Clock': ('vector_frequency',),
    'Stream': ('triad',),
    'Dgemm': ('rate',),
    'MiniFE': ('cg_rate',),
    'HPL': ('rate',),
    'MiniMD': ('performance',),
    'MiniMDMixed': ('performance',),
    'MiniGhost': ('rate',),
    'Collectives': ('allreduce_time',),
    'Pairs': ('message_rate', 'bisection_bandwidth'),
    'Ring': ('hop_latency',),
    'Halo': ('efficiency',),
    'PointToPoint': ('latency', 'bandwidth'),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', type=Path, default=DATA, help='where the figures are stored')
    parser.add_argument(
        '--fewer', action='store_true', help='only unchanged pairs, and with fewer sessions'
    )
    options = parser.parse_args()
    stored = pl.read_parquet(options.data)
    if not options.fewer:
        of_spreads(stored)
        of_tails(stored)
    known = changes_of(str(stored['system'][0]))
    changes = [one for one in (UNCHANGED, *known) if runs_of(stored, one)]
    # Polars has threads, which a forked process would wait for in vain.
    spawn = multiprocessing.get_context('spawn')
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), spawn) as pool,
    ):
        about = {'stored': stored, 'database': empty_database(Path(folder))}
        if options.fewer:
            of_fewer(pool, pairs_of(stored, UNCHANGED), partial(code_of_pair, **about))
            return
        tell = partial(told_of, **about)
        found = [(one, [*pool.map(tell, pairs_of(stored, one))]) for one in changes]
    of_changes(stored, found)
    beside_others(found)
    of_causes(found)


# ----- how steady figures are -------------------------------------------------------------------


def of_spreads(stored: pl.DataFrame) -> None:
    """Spread from session to session of the unchanged machine.

    Where the suite as it was took turns with it, of both.
    """
    turns = in_turn(stored)
    sides = {'': runs_of(stored, UNCHANGED)}
    if turns:
        sides = {side: [turn[at] for turn in turns] for at, side in enumerate(('then: ', 'now: '))}
    found = [spreads(stored, runs) for runs in sides.values()]
    both = found[0]
    for one in found[1:]:
        both = both.join(one, on=('check', 'case', 'figure'), suffix='_now')
    counts = ' and '.join(str(len(runs)) for runs in sides.values())
    print(f'\n{counts} sessions, {len(both)} figures that all have\n')
    table_head('figure', *(f'{side}{what}' for side in sides for what in ('range', 'quartiles')))
    columns = [name for name in both.columns if name.startswith(('range', 'quartiles'))]
    row('median of all', *(share(both[name].median()) for name in columns))
    for low, high in pairwise((0, 0.05, 0.15, 10.0)):
        counts = (int(both[name].is_between(low, high, closed='left').sum()) for name in columns)
        row(f'figures from {low:.0%} to {high:.0%}', *map(str, counts))
    for check, figures in HEADLINES.items():
        ours = both.filter((pl.col('check') == check) & pl.col('figure').is_in([*figures]))
        for one in ours.sort('figure', 'case').to_dicts():
            fabric = one['case'].partition('%fabric=')[2].partition(' ')[0]
            row(f'{check} {fabric} {one["figure"]}', *(share(one[name]) for name in columns))


def in_turn(stored: pl.DataFrame) -> list[tuple[str, str]]:
    """Each session of the suite as it was, and that of the unchanged machine after it."""
    order = stored.sort('begun').select('run', 'label').cast(pl.String).unique(maintain_order=True)
    follow = pairwise(order.rows())
    wanted = (EARLIER.name, UNCHANGED.name)
    return [(one, other) for (one, a), (other, b) in follow if (a, b) == wanted]


def spreads(stored: pl.DataFrame, runs: Sequence[str]) -> pl.DataFrame:
    """Of each figure that all sessions have: range and interquartile range over the median."""
    value = pl.col('value')
    ours = judged(stored.filter(pl.col('run').cast(pl.String).is_in(runs)))
    return (
        ours.cast({pl.Categorical: pl.String})
        .group_by('check', 'case', 'figure')
        .agg(
            range=(value.max() - value.min()) / value.median(),
            quartiles=(value.quantile(0.75, 'linear') - value.quantile(0.25, 'linear'))
            / value.median(),
            sessions=pl.len(),
        )
        .filter(pl.col('sessions') == len(runs))
    )


def of_tails(stored: pl.DataFrame) -> None:
    """How much figures vary that nobody disturbed, and how often they are far off.

    Beside what as many values of Student's t do: by how many robust standard deviations.
    """
    ours = judged(stored.filter(pl.col('run').cast(pl.String).is_in(runs_of(stored, UNCHANGED))))
    usable = ours.filter(
        (pl.col('value') > 0)
        & pl.col('disturbances').is_null()
        & ~pl.col('figure').cast(pl.String).is_in([*STARTUP])
    )
    groups = usable.group_by('check', 'case', 'figure').agg(pl.col('value').log().alias('logs'))
    logs = [np.array(one) for one in groups['logs'].to_list() if len(one) >= ENOUGH]
    spread = np.array([one.std(ddof=1) for one in logs])
    print()
    table_head('noise', 'median spread', 'above 10%', 'above 30%', 'beyond 3', 'beyond 5')
    wide = [share(np.median(spread)), share((spread > 0.1).mean()), share((spread > 0.3).mean())]
    row(f'{len(logs)} figures', *wide, *_far(logs))
    rng = np.random.default_rng(0)
    for freedom in (2, 3, 5, 1e6):
        row(f't with {freedom:g} df', '', '', '', *_far(rng.standard_t(freedom, (4000, ENOUGH))))


def _far(logs: Iterable[np.ndarray]) -> list[str]:
    """Shares of values beyond 3 and 5 standard deviations, by the quartiles of each figure."""
    far = []
    for one in logs:
        if quartiles := np.subtract(*np.percentile(one, [75, 25])):
            far.extend(np.abs(one - np.median(one)) / quartiles * 1.349)
    return [share((np.array(far) > size).mean()) for size in (3, 5)]


# ----- what is found ----------------------------------------------------------------------------


def of_changes(stored: pl.DataFrame, found: Sequence[tuple[Change, list[Told]]]) -> None:
    """A row for each change: its true size, and what `assay compare-runs` said of 3 and 3."""
    print()
    table_head(
        *('change', 'figure', 'spread', 'true size', 'sessions', 'pairs', 'without a common one'),
        *('WORSE, 1', 'undecided, 3', 'not worse, 0', 'right cause first'),
    )
    for change, told in found:
        codes = Counter(one.code for one in told)
        counts = [of_all(codes[code], told) for code in (WORSE, UNDECIDED, NOT_WORSE)]
        worse = [one for one in told if one.code == WORSE]
        right = of_all(sum(one.is_right for one in worse), worse) if change.families else '-'
        before, after = (len(runs_of(stored, one)) for one in (UNCHANGED, change))
        is_change = change is not UNCHANGED
        sessions = f'{before} and {after}' if is_change else str(before)
        apart = min(before, after) // RUNS if is_change else before // (2 * RUNS)
        size = true_size(stored, change)
        row(change.says, *size, sessions, str(len(told)), str(apart), *counts, right)


def code_of_pair(pair: Pair, stored: pl.DataFrame, database: Path) -> int:
    return code_of(difference_of(pair, stored, database))


def of_fewer(pool: ProcessPoolExecutor, pairs: Sequence[Pair], tell: Callable[[Pair], int]) -> None:
    """What is said of unchanged pairs that lack sessions, as if others had disturbed them."""
    print()
    table_head('sessions', 'pairs', 'WORSE, 1', 'UNDECIDED, 3', 'NOT WORSE, 0')
    for before, after in FEWER:
        ours = [replace(one, before=one.before[-before:], after=one.after[:after]) for one in pairs]
        codes = Counter(pool.map(tell, ours))
        counts = (str(codes[code]) for code in (WORSE, UNDECIDED, NOT_WORSE))
        row(f'{before} and {after}', str(len(ours)), *counts)


def true_size(stored: pl.DataFrame, change: Change) -> tuple[str, str, str]:
    """Of the figure that a change is aimed at: its name, spread unchanged, and median change."""
    check, fabric, figure = change.aimed_at
    ours = stored.filter(
        (pl.col('check') == check) & (pl.col('fabric') == fabric) & (pl.col('figure') == figure)
    )
    before, after = (
        ours.filter(pl.col('label') == one.name)['value'].drop_nulls().to_numpy()
        for one in (UNCHANGED, change)
    )
    if not check or not len(before) or not len(after):
        return f'{check} {figure}'.strip() or '-', '-', '-'
    spread = np.log(before).std(ddof=1)
    size = np.median(after) / np.median(before) - 1
    return f'{check} {fabric} {figure}', f'{spread:.1%}', f'{size:+.1%}'


def beside_others(found: Sequence[tuple[Change, list[Told]]]) -> None:
    """Shares of pairs in which each rule calls at least one figure worse."""
    rules = [*found[0][1][0].others]
    print()
    if not compute_change_points:
        print('Apache Otava is not installed, and left out.\n')
    table_head('change', 'Assay', *rules)
    for change, told in found:
        ours = of_all(sum(one.code == WORSE for one in told), told)
        row(
            change.says,
            ours,
            *(of_all(sum(one.others[name] for one in told), told) for name in rules),
        )


def of_causes(found: Sequence[tuple[Change, list[Told]]]) -> None:
    """Which families were named first, by change."""
    print()
    table_head('change', 'families named first')
    for change, told in found:
        first = Counter(one.first for one in told if one.code == WORSE)
        said = (f'{name or "a case that failed"} {count}' for name, count in first.most_common())
        row(change.says, ', '.join(said) or '-')


def of_all(count: int, told: Sequence[Told]) -> str:
    return share(count / len(told)) if told else '-'


def share(value: float | None) -> str:
    return '-' if value is None else f'{100 * value:.3g}%'


def table_head(*names: str) -> None:
    row(*names)
    row(*['---'] * len(names))


def row(*cells: str) -> None:
    print('|', ' | '.join(cells), '|')


if __name__ == '__main__':
    main()
