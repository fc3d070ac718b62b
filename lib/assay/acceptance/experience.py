"""What the history of a system tells of cases before they run: their time, and their spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from assay.acceptance.power import Spread, log_spread
from assay.acceptance.wanted import Wanted
from assay.results.figure_series import Figure, learn_past, measured
from assay.results.history import History
from assay.results.past import Past
from assay.results.statistics.spread import history_variance, moderated
from assay.results.unchanged import mostly_good, unchanged, usual
from assay.spelling import many

#: Sessions of a figure without which its history shows no spread.
FEWEST = 5


def spreads(history: History, wanted: Sequence[Wanted]) -> list[Spread | None]:
    """How much the figure of each commitment differs between runs; None where nobody knows.

    What was measured comes before what the contract expects.
    """
    table = history.figures(usual(history.runs))
    figures = measured(table)
    kinds = {(one.commitment.check, one.commitment.figure) for one in wanted}
    of_kinds = (one for one in figures.values() if one.kind in kinds)
    past = learn_past(unchanged(of_kinds, mostly_good(table)))
    found: list[Spread | None] = []
    for one in wanted:
        commitment = one.commitment
        system, _, partition = one.place.partition(':')
        named = (system, partition, one.environment, one.name)
        series = past.unchanged.get(Figure(*named, commitment.figure, commitment.unit))
        if series and series.has_logarithms and series.size >= FEWEST:
            kind = past.kinds[commitment.check, commitment.figure]
            own = history_variance(series.locations, kind)
            both = moderated(own, kind.variance) if kind.variance else own
            source = f'{many(series.size, "run")} in the history'
            found.append(Spread(math.sqrt(both.value), source))
        elif commitment.expected_spread is not None:
            found.append(Spread(log_spread(commitment.expected_spread), 'the contract'))
        else:
            found.append(None)
    return found


def seconds(known: Mapping[str, Past], wanted: Sequence[Wanted]) -> list[float | None]:
    """How long each case took, the median of the newest times; None where nobody knows.

    :param known: what the history tells of cases, by title.
    """
    times = [known.get(one.title, Past()).seconds for one in wanted]
    return [median(some) if some else None for some in times]
