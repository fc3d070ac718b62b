"""The tables of what real_changes.py measured: each change, and what was said of it."""

from __future__ import annotations

import math
import sqlite3
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import get_args

import polars as pl
from injected import CHANGES, UNCHANGED
from told_of_changes import AFTER, Told, pairs_of, real, told_of

from assay.results.statistics.comparison import Word
from assay.spelling import many

#: Sizes of changes, from and to.
SIZES = (0, 0.01, 0.03, 0.1, 0.3, math.inf)
WORDS = get_args(Word)
#: Larger changes are not told apart.
MOST = 10


def tell(stored: pl.DataFrame) -> None:
    """Print the tables.

    :param stored: the table of figures of all sessions, with the column ``round``.
    """
    labels = {*stored['label'].cast(pl.String)}
    with tempfile.TemporaryDirectory() as folder:
        # Of these runs no database holds a report, which would tell where the time went.
        database = Path(folder, 'results.db')
        with closing(sqlite3.connect(database)) as connection:
            connection.execute('CREATE TABLE sessions(uuid TEXT, json_blob TEXT)')
        changes = [one for one in (UNCHANGED, *CHANGES) if one.name in labels]
        found = [told_of(one, stored, database) for one in changes]
    of_changes(stored, found)
    of_comparisons(found)
    by_size(stored, found)
    of_figures(found)


def of_changes(stored: pl.DataFrame, found: Sequence[Told]) -> None:
    """A row for each change: what was said of the figure that it is aimed at, and false alarms."""
    spreads = spreads_of(stored)
    looks = [f'{many(count, "run")} after' for count in AFTER]
    table_head(
        *('change', 'figure', 'spread', 'true size', *looks, 'pairs', 'finds'),
        *('disturbed', 'false alarms'),
    )
    for one in found:
        about = one.change.aimed_at
        said = of_figure(one, about) if about else ['-'] * (len(AFTER) + 3)
        spread = f'{spreads[about]:.1%}' if about else '-'
        disturbed = f'{one.disturbed:.0%}'
        row(one.change.says, about or '-', spread, *said, disturbed, false_alarms(one))


def of_figure(one: Told, name: str) -> list[str]:
    """The true size of a change of a figure, what was said of it, and the smallest to be found."""
    size = '-'
    if name in one.sizes:
        ratio, low, high = (f'{ratio - 1:+.1%}' for ratio in one.sizes[name])
        size = f'{ratio} ({low} to {high})'
    by_diff = [tally(each[name].word for each in one.said(n) if name in each) for n in AFTER]
    by_pairs = '-'
    if name in one.by_pairs:
        pairs = pairs_of(one.by_pairs[name])
        by_pairs = one.by_pairs[name].word + (f', {pairs} pairs' if pairs else '')
    verdicts = [each[name].verdict for each in one.said(AFTER[-1]) if name in each]
    smallest = [verdict.smallest for verdict in verdicts if verdict]
    finds = '-'
    if smallest:
        middle = statistics.median(smallest)
        finds = f'{middle:.0%}' if middle < MOST else f'>{MOST:.0%}'
    return [size, *by_diff, by_pairs, finds]


def false_alarms(one: Told) -> str:
    """How often figures that the change cannot touch were called worse or better."""
    said = [*(each for count in AFTER for each in one.said(count)), one.by_pairs]
    untouched = [
        (name, told.word) for each in said for name, told in each.items() if not one.can_touch(name)
    ]
    wrong = Counter(name for name, word in untouched if word in ('worse', 'better'))
    names = ''.join(f', {name} {count}' for name, count in wrong.most_common())
    return f'{wrong.total()} of {len(untouched)}{names}'


def of_comparisons(found: Sequence[Told]) -> None:
    """A row for each change and number of runs after: what `assay diff` said as a whole."""
    table_head(
        *('change', 'runs after', 'comparisons', 'exit code 1', *WORDS),
        *('the machine moved', 'what else changed'),
    )
    for one in found:
        for count, some in one.by_diff.items():
            if some:
                facts = sorted({fact.name for each in some for fact in each.facts})
                means = [statistics.fmean(each.counts[word] for each in some) for word in WORDS]
                row(
                    *(one.change.name, str(count), str(len(some))),
                    str(sum(each.is_worse for each in some)),
                    *(f'{mean:.1f}' for mean in means),
                    str(sum(bool(each.moved) for each in some)),
                    ', '.join(facts) or '-',
                )


def by_size(stored: pl.DataFrame, found: Sequence[Told]) -> None:
    """How many of the changes of a size are found, whatever they are of."""
    spreads = spreads_of(stored)
    looks = [f'{count} after' for count in AFTER]
    table_head('true size', 'figures', 'spread', *looks, 'pairs', 'pairs taken', 'opposite')
    for low, high in pairwise(SIZES):
        some = [
            (one, name, word)
            for one in found
            for name, word, size in real(one)
            if low <= size < high
        ]
        if not some:
            continue
        said = [
            [
                (each[name].word, word)
                for one, name, word in some
                for each in one.said(count)
                if name in each
            ]
            for count in AFTER
        ]
        paired = [(one.by_pairs[name], word) for one, name, word in some if name in one.by_pairs]
        said.append([(told.word, word) for told, word in paired])
        taken = [pairs for told, _ in paired if (pairs := pairs_of(told))]
        row(
            f'{low:.0%} to {high:.0%}' if high < math.inf else f'{low:.0%} and more',
            str(len(some)),
            f'{statistics.median(spreads[name] for _, name, _ in some):.1%}',
            *(share_found(look) for look in said),
            f'{statistics.fmean(taken):.1f}' if taken else '-',
            str(sum({told, word} == {'worse', 'better'} for look in said for told, word in look)),
        )


def share_found(look: Sequence[tuple[Word, Word]]) -> str:
    """How often what was said is what is so."""
    return f'{statistics.fmean(told == word for told, word in look):.0%}' if look else '-'


def spreads_of(stored: pl.DataFrame) -> dict[str, float]:
    """Of each figure the standard deviation of logarithms from session to session, unchanged."""
    usable = stored.filter((pl.col('label') == UNCHANGED.name) & (pl.col('value') > 0))
    names = pl.format('{} {}', 'check', 'figure').alias('name')
    return dict(usable.group_by(names).agg(pl.col('value').log().std()).rows())


def of_figures(found: Sequence[Told]) -> None:
    """A row for each figure that a change can touch."""
    looks = [f'{count} after' for count in AFTER]
    table_head('change', 'figure', 'true size', *looks, 'pairs', 'finds')
    for one in found:
        for name in sorted({name for each in one.said(1) for name in each}):
            if one.can_touch(name):
                row(one.change.name, name, *of_figure(one, name))


def tally(said: Iterable[str]) -> str:
    """Such as ``worse 11, cannot tell 1``."""
    return ', '.join(f'{word} {count}' for word, count in Counter(said).most_common()) or '-'


def table_head(*names: str) -> None:
    print()
    row(*names)
    row(*['---'] * len(names))


def row(*cells: str) -> None:
    print('|', ' | '.join(cells), '|')
