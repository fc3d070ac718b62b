"""What the history of a system tells of cases before they run: their time, and their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from assay import AssayError
from assay.acceptance.power import Spread, log_spread
from assay.acceptance.wanted import Wanted
from assay.results import store
from assay.results.cases import counted, title
from assay.results.failures import is_good
from assay.results.figure_series import Figure, learn_past, measured
from assay.results.history import History
from assay.results.statistics.spread import history_variance, moderated
from assay.spelling import many

#: Sessions of a figure without which its history shows no spread.
FEWEST = 5
#: Newest runs whose reports are read for the time that cases took.
NEWEST = 20


def spreads(history: History, wanted: Sequence[Wanted]) -> list[Spread | None]:
    """How much the figure of each commitment differs between runs; None where nobody knows.

    What was measured comes before what the contract expects.
    """
    runs = [run for run in history.runs if not run.summary.problem]
    figures = measured(history.figures(runs))
    kinds = {(one.commitment.check, one.commitment.figure) for one in wanted}
    past = learn_past(one for one in figures.values() if one.kind in kinds)
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


def seconds(history: History, wanted: Sequence[Wanted]) -> list[float | None]:
    """How long each case took, the median of the newest runs it passed in; None where
    there is none."""
    runs = [run for run in history.runs if not run.summary.problem and run.file is None]
    times: dict[str, list[float]] = {}
    for _, report in store.reports([run.uuid for run in runs[-NEWEST:]], history.database):
        for case in [] if isinstance(report, AssayError) else counted(report):
            spent = case.get('time_total')
            if is_good(case) and isinstance(spent, int | float):
                times.setdefault(title(case), []).append(spent)
    return [median(times[one.title]) if one.title in times else None for one in wanted]
