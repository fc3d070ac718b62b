"""The table of the trials of real_changes.py: what `assay run --against` said of each change.

.venv/bin/python measurements/table_of_trials.py

Other rules are given the first three runs before and after.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from injected import UNCHANGED, Change, changes_of
from real_changes import DATA_OF_TRIALS
from tables_of_changes import row, table_head
from told_of_changes import RUNS, Pair, others

WORDS = ('WORSE', 'UNDECIDED', 'DISTURBED', 'NOT WORSE', 'FAILED')
RULES = ('Perfherder', "ReFrame's comparison, 10%", 'bounds of 10%', 'bounds of 25%')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', type=Path, default=DATA_OF_TRIALS, help='where they are stored')
    options = parser.parse_args()
    trials = [json.loads(line) for line in options.data.read_text().splitlines()]
    figures = pl.read_parquet(options.data.with_suffix('.parquet'))
    changes = (UNCHANGED, *changes_of(str(figures['system'][0])))
    found = [(one, [trial for trial in trials if trial['change'] == one.name]) for one in changes]
    found = [(change, ours) for change, ours in found if ours]
    of_answers(found)
    print()
    table_head('change', 'trials', 'Assay: WORSE', *RULES)
    for change, ours in found:
        told = [other_rules(change, one, figures) for one in ours if len(one['runs']) >= 2 * RUNS]
        counts = (str(sum(one[rule] for one in told)) for rule in RULES)
        row(change.says, str(len(told)), str(sum(one['code'] == 1 for one in ours)), *counts)


def of_answers(found: Sequence[tuple[Change, list[dict[str, Any]]]]) -> None:
    """A row for each change: the answers, whether the right cause is first, and how long."""
    table_head(
        *('change', 'trials', *WORDS, 'right cause first', 'rounds, median', 'seconds, median'),
        *('load, median', 'named first'),
    )
    for change, ours in found:
        counts = Counter(word_of(one) for one in ours)
        causes = Counter(cause for one in ours if (cause := first_cause(one)))
        right = sum(n for cause, n in causes.items() if re.search(change.families, cause))
        row(
            *(change.says, str(len(ours)), *(str(counts[word]) for word in WORDS)),
            f'{right} of {causes.total()}' if change.families and causes else '-',
            *(f'{median(one[name] for one in ours):g}' for name in ('rounds', 'seconds')),
            f'{median(max(one["loads"]) for one in ours):.1f}',
            ', '.join(f'{cause} {n}' for cause, n in causes.most_common()) or '-',
        )


def word_of(trial: dict[str, Any]) -> str:
    return next((word for word in WORDS if trial['answer'].startswith(word)), 'other')


def first_cause(trial: dict[str, Any]) -> str:
    """The family that is named first as worse; empty if none is."""
    found = re.search(r'^  worse: (.+?): ', trial['said'], re.MULTILINE)
    return found[1] if found else ''


def other_rules(change: Change, trial: dict[str, Any], figures: pl.DataFrame) -> dict[str, bool]:
    runs = tuple(trial['runs'])
    pair = Pair(change, runs[:RUNS], runs[RUNS : 2 * RUNS])
    first = [*pair.before, *pair.after]
    return others(figures.filter(pl.col('run').cast(pl.String).is_in(first)), pair)


if __name__ == '__main__':
    main()
