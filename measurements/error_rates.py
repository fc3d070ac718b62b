"""False alarms and power of Assay's statistics, beside what others do, on the same data.

    .venv/bin/python measurements/error_rates.py
    .venv/bin/python measurements/error_rates.py --workers 1 --only power drift

Simulated: figures that are autocorrelated, have spells, heavy tails, outliers and two modes, with
spreads from 0.3% to 10% and a part that all figures of a run share. *Resampled* are moving blocks
of a null campaign. Seeds are fixed; each part takes at most ten minutes of one core, and prints
Markdown. The rules of others are written here from what they document; Apache Otava itself is used
if it can be imported (it is no dependency).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats

from assay.results.statistics.bounds import bounds
from assay.results.statistics.changes import find_changes
from assay.results.statistics.comparison import compare, judge_comparisons
from assay.results.statistics.multiplicity import rate_of_a_look
from assay.results.statistics.retest import (
    LOOKS,
    decide_by_pairs,
    figures_that_look_changed,
    spread_of_foursomes,
)
from assay.results.statistics.series import series
from assay.results.statistics.spread import learn

try:
    from otava.analysis import compute_change_points
except ImportError:
    compute_change_points = None

FIGURES = 100
HISTORY = 60
REPEATS = 5
#: Runs before, where the state before was measured for weeks.
MANY_BEFORE = 20
#: Runs of the second stage: both states of 12 pairs, A B B A.
PAIRS = max(LOOKS)
OLD = np.array([0, 3] * (PAIRS // 2)) + np.repeat(np.arange(PAIRS // 2) * 4, 2)
NEW = np.array([1, 2] * (PAIRS // 2)) + np.repeat(np.arange(PAIRS // 2) * 4, 2)
LENGTH = HISTORY + 2 * REPEATS + 2 * PAIRS
#: Sessions of each of two environments before `assay compare-settings` measures anything again.
FIRST = 4
SPREADS = (0.005, 0.01, 0.015, 0.03)
SLOWER = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
SHAPES = (
    'independent',
    'autocorrelated',
    'spells',
    't with 3 df',
    'outliers',
    'modes',
    'long modes',
)
#: Suspects in a suite of 100 in which nothing changed (below the first table).
OTHER_SUSPECTS = 3
#: Years that are simulated.
YEARS = 2
#: Otava takes long: it looks at each tenth of the clean suites only.
OTAVA_EACH = 10
#: Noise of nightly runs: a spell of hours or a mode of hours is over by the next night.
NIGHTLY = ('independent', 'autocorrelated', 't with 3 df', 'outliers', 'modes')
#: Lengths of histories in which nothing changed.
NIGHTS = (20, 24, 30, 45, 70, 94)
#: A run of the campaign is some minutes long, and spells are longer: blocks hold several runs.
BLOCK = 10
#: A null campaign: runs of an unchanged machine.
NULL = Path(__file__).with_name('data') / 'null.parquet'
#: Losses of a suite of two settings, and noise of which all sessions of a side may be of one mode.
LARGE = np.repeat([0.1, 0.2, 1 / 3, 0.5], 3)
NARROW_MODES = 'two narrow modes'


# ----- data -------------------------------------------------------------------------------------


def switching(rng, figures, runs, stay, share):
    """A state of 0 or 1 that is drawn anew now and then, and is 1 for a share of the time."""
    drawn = rng.random((figures, runs)) < share
    anew = rng.random((figures, runs)) >= stay
    anew[:, 0] = True
    last = np.maximum.accumulate(np.where(anew, np.arange(runs), 0), axis=1)
    return np.take_along_axis(drawn, last, axis=1).astype(float)


def autoregressive(rng, figures, runs, alike):
    values = rng.standard_normal((figures, runs))
    for i in range(1, runs):
        values[:, i] = alike * values[:, i - 1] + np.sqrt(1 - alike**2) * values[:, i]
    return values


def raw(rng, shape, figures, runs):
    """Noise of one shape; negative is worse, as of a bandwidth."""
    normal = rng.standard_normal((figures, runs))
    if shape == 'independent':
        return normal
    if shape == 'autocorrelated':
        return autoregressive(rng, figures, runs, 0.5)
    if shape == 'spells':  # six runs long on average
        return 0.8 * normal - 1.5 * switching(rng, figures, runs, 5 / 6, 0.3)
    if shape == 't with 3 df':
        return rng.standard_t(3, (figures, runs))
    if shape == 'outliers':
        return normal - (rng.random((figures, runs)) < 0.03) * rng.uniform(0, 8, (figures, runs))
    if shape == NARROW_MODES:
        return 0.05 * normal + (rng.random((figures, runs)) < 0.75) / np.sqrt(0.75 * 0.25)
    if shape == 'modes':
        return 0.6 * normal - 2 * (rng.random((figures, runs)) < 0.25)
    return 0.5 * normal - 2 * switching(rng, figures, runs, 0.85, 0.3)


def simulated(rng, figures, runs, shapes=SHAPES):
    """Logarithms of unit spread, shape (figures, runs), and a part that all figures share."""
    parts = []
    for i, shape in enumerate(shapes):
        count = len(range(i, figures, len(shapes)))
        noise = raw(rng, shape, count, runs)
        parts.append((noise - MOMENTS[shape][0]) / MOMENTS[shape][1])
    noise = np.concatenate(parts)
    weight = rng.uniform(0, 0.5, (figures, 1)) * (len(shapes) > 1)
    return np.sqrt(1 - weight**2) * noise + weight * autoregressive(rng, 1, runs, 0.5)


def moments():
    rng = np.random.default_rng(0)
    found = {shape: raw(rng, shape, 1000, 400) for shape in SHAPES}
    found = {shape: (noise.mean(), noise.std()) for shape, noise in found.items()}
    found['t with 3 df'] = (0.0, np.sqrt(3))
    return found | {NARROW_MODES: (0.0, 1.0)}


MOMENTS = moments()


def of_shape(rng, shape, figures, runs):
    """The same of one shape; *mixed* is any of them of any figure."""
    if shape == 'mixed':
        return simulated(rng, figures, runs)[rng.permutation(figures)]
    return simulated(rng, figures, runs, (shape,))


def spreads(rng, figures, least=0.003, most=0.1):
    """Evenly on a logarithmic scale, shape (figures, 1)."""
    return np.exp(rng.uniform(np.log(least), np.log(most), (figures, 1)))


def campaign(path=NULL):
    """Logarithms of the campaign's figures, shape (figures, runs); those that vary, in all runs."""
    import polars as pl

    table = pl.read_parquet(path) if path.suffix == '.parquet' else pl.read_csv(path)
    names = [
        one
        for one in table.columns
        if one in ('environment', 'fabric', 'layout', 'check', 'figure')
    ]
    wide = table.sort('begun').pivot(
        on='run', index=names, values='value', aggregate_function='first'
    )
    values = wide.drop(names).to_numpy().astype(float)
    good = (np.isfinite(values) & (values > 0)).all(axis=1) & (np.ptp(values, axis=1) > 0)
    return np.log(values[good])


def resampled(rng, logs, figures, runs):
    """Moving blocks of runs, the same of all figures (Kuensch, Annals of Statistics 17, 1989)."""
    starts = rng.integers(0, logs.shape[1] - BLOCK + 1, runs // BLOCK + 1)
    when = (starts[:, None] + np.arange(BLOCK)).ravel()[:runs]
    which = rng.choice(len(logs), min(figures, len(logs)), replace=False)
    return logs[which][:, when]


# ----- the rules of others ----------------------------------------------------------------------
# Each takes values of shape (figures, runs) and says which figures it calls worse or better.


def reframe_bounds(history, after, bound):
    """ReFrame's reference with thresholds, to which each run is held; the mean of the history."""
    reference = history.mean(axis=1, keepdims=True)
    return (np.abs(after / reference - 1) > bound).any(axis=1)


def welch(before, after):
    """A plain t-test of two samples with unequal variances, p < 0.05."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # of figures that hardly vary
        return stats.ttest_ind(before, after, axis=1, equal_var=False).pvalue < 0.05


def perfherder(before, after):
    """Perfherder: t > 7 over 12 runs before and 12 after, and 2% (treeherder, perfalert; wiki)."""
    error = (
        before.var(axis=1, ddof=1) / before.shape[1] + after.var(axis=1, ddof=1) / after.shape[1]
    )
    change = after.mean(axis=1) - before.mean(axis=1)
    return (np.abs(change) > 7 * np.sqrt(error)) & (np.abs(change) > 0.02 * before.mean(axis=1))


def conbench(history, after):
    """Conbench: a result 5 standard deviations from the mean of up to 100 before (its manual)."""
    past = history[:, -100:]
    away = np.abs(after - past.mean(axis=1, keepdims=True))
    return (away > 5 * past.std(axis=1, ddof=1, keepdims=True)).any(axis=1)


def otava(values, since):
    """Apache Otava with its defaults (window 50, p 0.001): a change point in the last runs."""
    found = []
    for one in values:
        points, _ = compute_change_points(list(one), window_len=50, max_pvalue=0.001)
        found.append(any(point.index >= since for point in points))
    return np.array(found)


def others(values, after, late, with_otava=True):
    """What each of the others calls changed; ``late`` are 12 runs after, where 5 are too few."""
    history, before = values[:, :HISTORY], values[:, HISTORY : HISTORY + REPEATS]
    past = values[:, : HISTORY + REPEATS]
    found = {
        'ReFrame, bounds of 5%': reframe_bounds(past, after, 0.05),
        'ReFrame, bounds of 10%': reframe_bounds(past, after, 0.10),
        'Welch t-test, p < 0.05': welch(before, after),
        'Perfherder, 12 runs and 12': perfherder(past[:, -12:], late),
        'Conbench, z > 5': conbench(history, after),
    }
    if compute_change_points and with_otava:
        found['Apache Otava, 12 runs after'] = otava(np.hstack([past, late]), len(past[0]) - 2)
    return found


# ----- ours -------------------------------------------------------------------------------------


def compared(values, after, kind=None, before=REPEATS):
    """Comparisons of the last runs before and 5 runs after, with the history before them."""
    start = HISTORY + REPEATS
    past = [series(one[: start - before]) for one in values]
    kind = kind or learn(past)
    return [
        compare(series(one[start - before : start]), series(new), 'higher', old, kind)
        for one, new, old in zip(values, after, past, strict=True)
    ]


def measured_again(history, pairs, count, slower=0.0, looked=None):
    """The second stage of one figure; the word, and how many pairs it took."""
    old, new = pairs[OLD], pairs[NEW] * (1 - slower)
    spread = spread_of_foursomes(np.log(history))
    for n in LOOKS:
        decision = decide_by_pairs(
            old[:n], new[:n], 'higher', count, spread=spread, suspected=looked
        )
        if decision.word:
            break
    return decision.word, n


def interleaved(values, pairs, count, slower=0.0, history=True, kind=None):
    """4 sessions of each state, interleaved, then pairs: as ``assay compare-settings`` measures.

    :param count: suspects of the suite; None for those that are found.
    :param history: whether there is one; without it pairs decide about all.
    :returns: the word of each figure that pairs decided about; None of others.
    """
    past = [series(one[:HISTORY]) for one in values]
    looked = dict.fromkeys(range(len(values)))
    if history:
        first = values[:, HISTORY : HISTORY + 2 * FIRST]
        kind = kind or learn(past)
        comparisons = [
            compare(series(one[OLD[:FIRST]]), series(new), 'higher', old, kind)
            for one, new, old in zip(first, first[:, NEW[:FIRST]] * (1 - slower), past, strict=True)
        ]
        looked = {i: direction(comparisons[i]) for i in figures_that_look_changed(comparisons)}
    words = [None] * len(values)
    for i, way in looked.items():
        own = values[i, :HISTORY] if history else values[i, :0]
        words[i], _ = measured_again(own, pairs[i], count or len(looked), slower, way)
    return np.array(words, dtype=object)


CHANGED = ('worse', 'better')


def direction(comparison):
    return 'better' if comparison.change > 0 else 'worse'


def suite(job):
    """One suite in which nothing changed: which figures each method calls changed."""
    seed, logs = job
    rng = np.random.default_rng(seed)
    if logs is None:
        spread = spreads(rng, FIGURES)
        values = np.exp(spread * simulated(rng, FIGURES, LENGTH))
    else:
        values = np.exp(resampled(rng, logs, FIGURES, LENGTH))
    start, end = HISTORY + REPEATS, HISTORY + 2 * REPEATS
    after, late, pairs = values[:, start:end], values[:, start : start + 12], values[:, end:]
    comparisons = compared(values, after)
    words = [verdict.word for verdict in judge_comparisons(comparisons)]
    found = {'Assay, 5 runs and 5': np.array([word in CHANGED for word in words])}
    words = [
        verdict.word for verdict in judge_comparisons(compared(values, after, before=MANY_BEFORE))
    ]
    found['Assay, 20 runs and 5'] = np.array([word in CHANGED for word in words])
    looked = figures_that_look_changed(comparisons)
    again = np.zeros(len(values), bool)
    for i in looked:
        word, _ = measured_again(
            values[i, :HISTORY], pairs[i], len(looked), looked=direction(comparisons[i])
        )
        again[i] = word in CHANGED
    found['Assay, suspects measured again'] = again
    for name, history in (('', True), (', no history', False)):
        if logs is not None and not history:
            continue  # blocks that are drawn twice repeat whole fours, whose own spread is then 0
        words = interleaved(values, pairs, None, history=history)
        found[f'Assay, two environments{name}'] = np.isin(words, CHANGED)
    # A baseline of the history, and one run held to it.
    past = [series(one[:start]) for one in values]
    held = bounds(past, ['higher'] * len(past))
    found['Assay, one run against a baseline'] = np.array(
        [
            not one.refused and not one.lower <= new <= one.upper
            for one, new in zip(held, after[:, 0], strict=True)
        ]
    )
    found |= others(values, after, late, seed % OTAVA_EACH == 0)
    quiet = np.log(values).std(axis=1) <= 0.015
    return {
        name: (bool(which.any()), which.mean(), which[quiet].mean() if quiet.any() else np.nan)
        for name, which in found.items()
    }, len(looked)


def year(seed):
    """A year of nightly runs of 100 figures, looked at each day: nights with an alarm."""
    rng = np.random.default_rng(seed)
    nights, first = 365, 100
    spread = spreads(rng, FIGURES)
    values = np.exp(spread * simulated(rng, FIGURES, first + nights))
    rate = rate_of_a_look(nights)
    alarms = dict.fromkeys(('Assay', *YEARLY), 0)
    for night in range(first, first + nights):
        past = [series(one[night - 99 : night - 19]) for one in values]
        kind = learn(past)
        comparisons = [
            compare(
                series(one[night - 19 : night - 4]),
                series(one[night - 4 : night + 1]),
                'higher',
                old,
                kind,
            )
            for one, old in zip(values, past, strict=True)
        ]
        alarms['Assay'] += any(
            verdict.word in CHANGED for verdict in judge_comparisons(comparisons, rate)
        )
        reference, today = values[:, :first], values[:, night : night + 1]
        alarms['ReFrame, bounds of 5%'] += reframe_bounds(reference, today, 0.05).any()
        alarms['ReFrame, bounds of 10%'] += reframe_bounds(reference, today, 0.10).any()
        alarms['Welch t-test, p < 0.05'] += welch(
            values[:, night - 9 : night - 4], values[:, night - 4 : night + 1]
        ).any()
        alarms['Perfherder, t > 7 and 2%'] += perfherder(
            values[:, night - 23 : night - 11], values[:, night - 11 : night + 1]
        ).any()
        alarms['Conbench, z > 5'] += conbench(values[:, :night], today).any()
    if compute_change_points:
        alarms['Apache Otava'] = len(
            {
                point.index
                for one in values
                for point in compute_change_points(list(one), window_len=50, max_pvalue=0.001)[0]
            }
        )
    return alarms


YEARLY = (
    'ReFrame, bounds of 5%',
    'ReFrame, bounds of 10%',
    'Welch t-test, p < 0.05',
    'Perfherder, t > 7 and 2%',
    'Conbench, z > 5',
)


def power(job):
    """How often each method finds one slow figure in a suite of 100.

    Noise is simulated with a spread, or resampled from a campaign with its own (spread 0).
    """
    seed, spread, slower, noise, many = job
    rng = np.random.default_rng(seed)
    if spread:
        wide = spreads(rng, FIGURES)
        kind = learn(
            [series(one) for one in np.exp(wide * simulated(rng, FIGURES, HISTORY, noise))]
        )
        values = np.exp(spread * simulated(rng, many, LENGTH, noise))
    else:
        values = np.exp(resampled(rng, noise, many, LENGTH))
        many, kind = len(values), learn([series(one[:HISTORY]) for one in values])
    start, end = HISTORY + REPEATS, HISTORY + 2 * REPEATS
    after = values[:, start:end] * (1 - slower)
    late, pairs = values[:, start : start + 12] * (1 - slower), values[:, end:]
    comparisons = compared(values, after, kind)
    one_of = 0.01 / FIGURES
    found = {
        'Assay, 5 runs and 5': np.array(
            [one.p_value <= one_of and one.change < 0 for one in comparisons]
        )
    }
    found['Assay, 20 runs and 5'] = np.array(
        [
            one.p_value <= one_of and one.change < 0
            for one in compared(values, after, kind, MANY_BEFORE)
        ]
    )
    again = np.zeros(many, bool)
    for i, one in enumerate(comparisons):
        if figures_that_look_changed([one]):
            # Of the other figures, so many are suspects too.
            word, _ = measured_again(
                values[i, :HISTORY], pairs[i], 1 + OTHER_SUSPECTS, slower, direction(one)
            )
            again[i] = word == 'worse'
    found['Assay, suspects measured again'] = again
    for name, history, count in (('', True, 1 + OTHER_SUSPECTS), (', no history', False, FIGURES)):
        words = interleaved(values, pairs, count, slower, history, kind)
        found[f'Assay, two environments{name}'] = words == 'worse'
    direct = [
        measured_again(one[:HISTORY], pair, 1, slower)
        for one, pair in zip(values, pairs, strict=True)
    ]
    found['Assay, up to 12 pairs'] = np.array([word == 'worse' for word, _ in direct])
    found |= others(values, after, late)
    return (
        (spread, slower),
        {name: which.mean() for name, which in found.items()},
        np.mean([n for _, n in direct]),
    )


def steady(job):
    """Suites of 94 nights in which nothing changed: whether the trend calls any figure changed."""
    seed, shapes = job
    rng = np.random.default_rng(seed)
    values = np.exp(0.01 * simulated(rng, FIGURES, 94, shapes))
    ours = np.array([bool(one) for one in find_changes([series(one) for one in values])])
    found = {'Assay, trend': ours, 'Perfherder': np.zeros(FIGURES, bool)}
    for i in range(12, 83):
        found['Perfherder'] |= perfherder(values[:, i - 12 : i], values[:, i : i + 12])
    if compute_change_points:
        found['Apache Otava'] = otava(values, 0)
    return {name: (which.any(), which.mean()) for name, which in found.items()}


def is_alarmed(job):
    """Whether the trend calls any figure of a suite of so many nights changed; none has."""
    seed, nights = job
    values = np.exp(0.01 * simulated(np.random.default_rng(seed), FIGURES, nights, NIGHTLY))
    return any(find_changes([series(one) for one in values]))


def drift(job):
    """How often 0.2% a week is found within 10 weeks of nightly runs, each in a suite of 100."""
    seed, spread, repeats, many = job
    rng = np.random.default_rng(seed)
    nights = np.arange(70)
    loss = (1 - 0.002) ** (nights / 7)
    sessions = np.repeat(nights, repeats)
    found = {'Assay, trend': 0, 'Perfherder, t > 7 and 2%': 0, 'Conbench, z > 5': 0}
    found |= {'ReFrame, bounds of 5%': 0} | ({'Apache Otava': 0} if compute_change_points else {})
    for noise in simulated(rng, many, 70 * repeats, NIGHTLY):
        values = np.exp(spread * noise) * np.repeat(loss, repeats)
        unchanged = np.exp(spread * simulated(rng, FIGURES - 1, 70, NIGHTLY))
        changes = find_changes(
            [*map(series, unchanged), series(values, sessions * 86400.0, sessions)]
        )[-1]
        found['Assay, trend'] += any(one.ratio < 1 for one in changes)
        nightly = values.reshape(70, repeats).mean(axis=1)[None]
        found['Perfherder, t > 7 and 2%'] += bool(
            any(
                perfherder(nightly[:, i - 12 : i], nightly[:, i : i + 12])[0] for i in range(12, 59)
            )
        )
        found['Conbench, z > 5'] += bool(
            any(conbench(nightly[:, :i], nightly[:, i : i + 1])[0] for i in range(20, 70))
        )
        found['ReFrame, bounds of 5%'] += bool(
            reframe_bounds(nightly[:, :10], nightly[:, 10:], 0.05)[0]
        )
        if compute_change_points:
            found['Apache Otava'] += bool(otava(nightly, 0)[0])
    shares = {name: count / many for name, count in found.items()}
    return (spread, repeats), shares | {'best linear test': best_linear(spread, loss, repeats)}


def best_linear(spread, loss, repeats):
    """How often a test would find a loss that knows its course, and how the noise is correlated.

    A matched filter beside an unknown level, at the rate of a suite (Kay, Fundamentals of
    Statistical Signal Processing, volume 2, Detection Theory, 1998, section 4.4).
    """
    signal = np.repeat(np.log(loss), repeats)
    n = len(signal)
    alike = 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    reach = stats.norm.isf(0.01 / FIGURES / 2)
    found = []
    for shape in NIGHTLY:
        own = alike if shape == 'autocorrelated' else np.eye(n)
        for weight in np.arange(0.025, 0.5, 0.05):  # as in ``simulated``
            noise = spread**2 * ((1 - weight**2) * own + weight**2 * alike)
            both = np.array([signal, np.ones(n)])
            (ss, sl), (_, ll) = both @ np.linalg.solve(noise, both.T)
            found.append(stats.norm.sf(reach - np.sqrt(ss - sl**2 / ll)))
    return np.mean(found)


def words_of_settings(job):
    """What pairs say of each figure of a suite without a history, of which twelve may have lost."""
    seed, shape, is_changed = job
    rng = np.random.default_rng(seed)
    pairs = np.exp(spreads(rng, FIGURES) * of_shape(rng, shape, FIGURES, 2 * PAIRS))
    if is_changed:
        pairs[: len(LARGE), NEW] *= 1 - LARGE[:, None]
    return interleaved(pairs, pairs, None, history=False)


def words_of_window(runs):
    """The same of successive runs of the null campaign, in which nothing was changed."""
    return interleaved(runs, runs, None, history=False)


# ----- parts, each of which prints its tables -----------------------------------------------------


def percent(share):
    return f'{100 * share:.1f}%'


def clean_table(results, title):
    """How often each method called something changed where nothing was."""
    print(f'\n### {title}\n')
    print('| method | suites alarmed | figures alarmed | of those with a spread up to 1.5% |')
    print('|---|---:|---:|---:|')
    for name in results[0][0]:
        rows = np.array([found[name] for found, _ in results if name in found], dtype=float)
        quiet = np.nanmean(rows[:, 2]) if np.isfinite(rows[:, 2]).any() else np.nan
        print(
            f'| {name} | {percent(rows[:, 0].mean())} | {100 * rows[:, 1].mean():.3f}% | '
            f'{100 * quiet:.3f}% |'
        )
    print(f'\nSuspects to measure again: {np.mean([n for _, n in results]):.2f} of a suite.')


def power_table(results, title):
    print(f'\n### {title}\n')
    print('| spread | method | ' + ' | '.join(f'{slower:.0%}' for slower in SLOWER) + ' |')
    print('|---:|---|' + '---:|' * len(SLOWER))
    table = {key: found for key, found, _ in results}
    taken = {key: pairs for key, _, pairs in results}
    for spread in sorted({spread for spread, _ in table}):
        label = f'{spread:.1%}' if spread else 'its own'
        for name in table[spread, SLOWER[0]]:
            row = ' | '.join(f'{table[spread, slower][name]:.0%}' for slower in SLOWER)
            print(f'| {label} | {name} | {row} |')
        row = ' | '.join(f'{taken[spread, slower]:.1f}' for slower in SLOWER)
        print(f'| {label} | *pairs that Assay took* | {row} |')


def of_simulated(pool, suites, figures):
    done = list(pool.map(suite, [(seed, None) for seed in range(suites)], chunksize=10))
    clean_table(done, f'{suites} simulated suites of {FIGURES} figures in which nothing changed')


def of_resampled(pool, suites, figures):
    logs = campaign()
    done = list(pool.map(suite, [(seed, logs) for seed in range(suites)], chunksize=10))
    clean_table(
        done,
        f'{suites} suites of {min(FIGURES, len(logs))} figures, resampled from {logs.shape[1]} '
        'runs of the null campaign',
    )
    jobs = [(3000 + i, 0, slower, logs, FIGURES) for i, slower in enumerate(SLOWER)]
    power_table(list(pool.map(power, jobs)), 'Power: slow-downs found, resampled')


def of_trend(pool, suites, figures):
    print('\n### Trend: suites of 94 nights of 100 figures in which nothing changed\n')
    print('| noise | method | suites alarmed | figures alarmed |\n|---|---|---:|---:|')
    for what, shapes in (
        ('mixed', NIGHTLY),
        ('spells', ('spells',) * 2),
        ('long modes', ('long modes',) * 2),
    ):
        done = list(pool.map(steady, [(seed, shapes) for seed in range(suites // 10)]))
        for name in done[0]:
            rows = np.array([one[name] for one in done]).mean(axis=0)
            print(f'| {what} | {name} | {percent(rows[0])} | {100 * rows[1]:.3f}% |')
    print('\n| nights, mixed noise | suites alarmed by Assay, trend |\n|---:|---:|')
    for nights in NIGHTS:
        jobs = [(90000 + seed, nights) for seed in range(suites)]
        share = np.mean(list(pool.map(is_alarmed, jobs, chunksize=10)))
        print(f'| {nights} | {percent(share)} |')


def of_years(pool, suites, figures):
    years = list(pool.map(year, range(YEARS)))
    print(f'\n### {YEARS} simulated years of nightly runs, looked at each day\n')
    print('| method | nights with an alarm, a year |\n|---|---:|')
    for name in years[0]:
        print(f'| {name} | {np.mean([one[name] for one in years]):.1f} |')


def of_power(pool, suites, figures):
    for shapes, title in (
        (SHAPES, 'Power, mixed noise'),
        (('independent',), 'Power, independent normal noise'),
    ):
        jobs = [
            (1000 + 10 * i + j, spread, slower, shapes, figures)
            for i, spread in enumerate(SPREADS)
            for j, slower in enumerate(SLOWER)
        ]
        power_table(list(pool.map(power, jobs)), f'{title}: slow-downs found, of {figures}')


def of_drift(pool, suites, figures):
    jobs = [(2000, spread, repeats, figures) for spread in SPREADS for repeats in (1, 5)]
    drifts = list(pool.map(drift, jobs))
    print('\n### Drift of 0.2% a week, found within 10 weeks of nightly runs\n')
    names = list(drifts[0][1])
    print('| spread | runs a night | ' + ' | '.join(names) + ' |')
    print('|---:|---:|' + '---:|' * len(names))
    for (spread, repeats), found in drifts:
        cells = ' | '.join(f'{found[name]:.0%}' for name in names)
        print(f'| {spread:.1%} | {repeats} | {cells} |')


def of_settings(pool, suites, figures):
    jobs = [(seed, 'mixed', True) for seed in range(suites // 10)]
    found = np.array([*pool.map(words_of_settings, jobs)])[:, : len(LARGE)]
    print(f'\n### Two settings in turn, without a history: {len(jobs)} suites with twelve losses\n')
    print('| loss | found | open | called the same or better |\n|---:|---:|---:|---:|')
    of_losses = [(f'{loss:.0%}', found[:, loss == LARGE]) for loss in np.unique(LARGE)]
    for name, those in (*of_losses, ('all', found)):
        shares = [(those == word).mean() for word in ('worse', 'cannot tell')]
        print(f'| {name} | {" | ".join(percent(one) for one in (*shares, 1 - sum(shares)))} |')
    print('\n| nothing differs, noise | suites | suites alarmed | figures alarmed |')
    print('|---|---:|---:|---:|')
    runs = np.exp(campaign())
    windows = [runs[:, at : at + 2 * PAIRS] for at in range(runs.shape[1] - 2 * PAIRS + 1)]
    unchanged = [
        (shape, words_of_settings, [(seed, shape, False) for seed in range(count)])
        for shape, count in (('mixed', suites), (NARROW_MODES, suites // 5))
    ]
    unchanged.append(('windows of the null campaign', words_of_window, windows))
    for name, tell, of_suites in unchanged:
        alarms = np.isin([*pool.map(tell, of_suites, chunksize=10)], CHANGED)
        shares = percent(alarms.any(axis=1).mean()), f'{100 * alarms.mean():.3f}%'
        print(f'| {name} | {len(of_suites)} | {" | ".join(shares)} |')


PARTS: dict[str, Callable[[ProcessPoolExecutor, int, int], None]] = {
    'simulated': of_simulated,
    'resampled': of_resampled,
    'trend': of_trend,
    'years': of_years,
    'power': of_power,
    'drift': of_drift,
    'settings': of_settings,
}


def options_of_parts(about: str, parts: Iterable[str], suites: int, which: str) -> ArgumentParser:
    """The options of a measurement in parts, of so many simulated suites."""
    parser = ArgumentParser(description=about.partition('\n')[0])
    parser.add_argument('--suites', type=int, default=suites, help=f'{which} (default {suites})')
    parser.add_argument('--only', nargs='+', choices=parts, default=parts, help='these parts')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    return parser


def main() -> None:
    parser = options_of_parts(__doc__, PARTS, 1000, 'clean suites')
    parser.add_argument(
        '--figures', type=int, default=140, help='figures a cell of power (default 140)'
    )
    args = parser.parse_args()
    if not compute_change_points:
        print('Apache Otava is not installed, and left out.')
    with ProcessPoolExecutor(args.workers) as pool:
        for part in args.only:
            began = time.monotonic()
            PARTS[part](pool, args.suites, args.figures)
            print(f'{part}: {time.monotonic() - began:.0f} s', file=sys.stderr, flush=True)


if __name__ == '__main__':
    main()
