"""How likely a machine is to pass: against simulated acceptances, and against what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from assay.acceptance.contract import Commitment, Risks
from assay.acceptance.decision import FigureOutcome, decide_commitment
from assay.acceptance.plan import Spread, chance, check_risks, log_spread, passing

ACCEPTANCES = 10_000
#: What rounding makes of a probability, which depends on the processor. That of a mean is a sum of
#: at most 2**14 terms of a transform, each off by some 14 units in the last place of the greatest.
ROUNDED = 2**14 * 14 * np.finfo(float).eps


def commitment(**changes) -> Commitment:
    usual = {
        'id': 'one',
        'check': 'Ring',
        'figure': 'hop_latency',
        'value': 2.0,
        'unit': 'us',
        'better': 'higher',
        'statistic': 'median',
        'runs': 5,
    }
    return Commitment.model_validate({**usual, **changes})


def simulated(one: Commitment, spread: float, better_by: float) -> float:
    """The share of simulated acceptances in which a commitment is met, by the same seed always."""
    true = one.value * (1 + better_by if one.better == 'higher' else 1 - better_by)
    lots = np.random.default_rng(1).normal(math.log(true), spread, (ACCEPTANCES, one.runs))
    met = 0
    for values in np.exp(lots).tolist():
        outcomes = [FigureOutcome(run, value) for run, value in enumerate(values, 1)]
        met += decide_commitment(one, outcomes).word == 'met'
    return met / ACCEPTANCES


@pytest.mark.parametrize('better', ['higher', 'lower'])
@pytest.mark.parametrize('statistic', ['median', 'minimum', 'maximum', 'mean'])
@pytest.mark.parametrize(
    ('runs', 'limit', 'spread', 'better_by'),
    [
        (5, None, 0.03, 0.01),
        (5, 0.08, 0.03, -0.01),
        (3, 0.8, 0.4, 0.1),
    ],
)
def test_as_often_as_simulated(statistic, better, runs, limit, spread, better_by):
    one = commitment(statistic=statistic, better=better, runs=runs, largest_spread=limit)
    found = passing(one, spread, better_by)
    share = simulated(one, spread, better_by)
    error = 3 * math.sqrt(found * (1 - found) / ACCEPTANCES)
    assert share == pytest.approx(found, abs=0.01 + error)


def test_several_commitments_together():
    """Of independent figures, the probability of all is the product, and so is the share."""
    several = [
        commitment(id='one', statistic='minimum', runs=3),
        commitment(id='two', better='lower', largest_spread=0.1),
    ]
    spreads = [Spread(0.02, ''), Spread(0.03, '')]
    found = chance(several, spreads, 0.02)
    lots = np.random.default_rng(2)
    met = 0
    for _ in range(ACCEPTANCES):
        words = set()
        for one, spread in zip(several, spreads, strict=True):
            true = one.value * (1.02 if one.better == 'higher' else 0.98)
            values = true * np.exp(lots.normal(0, spread.value, one.runs))
            words.add(
                decide_commitment(one, [FigureOutcome(1 + n, v) for n, v in enumerate(values)]).word
            )
        met += words == {'met'}
    error = 3 * math.sqrt(found.independent * (1 - found.independent) / ACCEPTANCES)
    assert met / ACCEPTANCES == pytest.approx(found.independent, abs=0.01 + error)
    assert found.low <= found.independent <= found.high


def test_order_statistics_in_closed_form():
    shift = math.log(1.01) / 0.03
    assert passing(commitment(statistic='minimum'), 0.03, 0.01) == pytest.approx(
        norm.cdf(shift) ** 5, abs=1e-9
    )
    assert passing(commitment(), 0.03, 0.01) == pytest.approx(
        binom.sf(2, 5, norm.cdf(shift)), abs=1e-9
    )


@pytest.mark.parametrize('statistic', ['median', 'minimum', 'maximum', 'mean'])
def test_a_spread_that_is_never_reached_changes_nothing(statistic):
    free = commitment(statistic=statistic)
    bound = commitment(statistic=statistic, largest_spread=9.0)
    assert passing(bound, 0.03, 0.005) == pytest.approx(passing(free, 0.03, 0.005), abs=1e-6)


@pytest.mark.parametrize('statistic', ['median', 'minimum', 'maximum', 'mean'])
def test_better_machines_pass_more_often(statistic):
    one = commitment(statistic=statistic)
    chances = np.array([passing(one, 0.02, by / 100) for by in range(-10, 11)])
    assert (np.diff(chances) >= -ROUNDED).all()
    assert chances[0] < 0.001 and chances[-1] > 0.999
    is_open = (chances > 0.01) & (chances < 0.99)
    assert is_open.sum() >= 2 and (np.diff(chances[is_open]) > 0.001).all()


def test_risks_that_are_held():
    risks = Risks(producer=0.05, consumer=0.05, good=0.05, bad=0.05)
    found = check_risks([commitment()], [Spread(0.03, '')], risks)
    assert found.needed == {}
    assert found.producer <= 0.05 and found.consumer <= 0.05


def test_too_few_runs_are_told_with_how_many_would_do():
    risks = Risks(producer=0.05, consumer=0.05, good=0.02, bad=0.02)
    found = check_risks([commitment(runs=3)], [Spread(0.03, '')], risks)
    runs = found.needed['one']
    assert runs and runs % 2
    assert check_risks([commitment(runs=runs)], [Spread(0.03, '')], risks).needed == {}
    assert check_risks([commitment(runs=runs - 2)], [Spread(0.03, '')], risks).needed == {
        'one': runs
    }


def test_no_number_of_runs_helps_where_they_differ_too_much():
    risks = Risks(producer=0.05, consumer=0.05, good=0.02, bad=0.02)
    one = commitment(largest_spread=0.01)
    assert check_risks([one], [Spread(0.05, '')], risks).needed == {'one': None}


def test_the_spread_of_logarithms():
    values = np.exp(np.random.default_rng(3).normal(0, log_spread(0.3), 200_000))
    assert values.std() / values.mean() == pytest.approx(0.3, rel=0.02)
