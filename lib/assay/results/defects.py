"""Known defects of MPIs that stored runs have shown."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from assay import AssayError, paths
from assay.results import store
from assay.results.cases import Run
from assay.results.failures import is_good
from assay.text import plain

#: The check that looks for them, and how many of its runs are looked through, from the newest on.
CHECK, MOST_RUNS = 'KnownDefect', 10


def found_last(database: Path = paths.RESULTS_DATABASE) -> list[str]:
    """The sentences of cases whose last run showed a known defect.

    What is wrong with the database is for the commands to tell that show the history.
    """
    said: dict[str, str] = {}
    with suppress(AssayError):
        for _, run in store.runs(store.newest_with(CHECK, MOST_RUNS, database), database):
            for case in run.own_cases if isinstance(run, Run) else ():
                if case.check == CHECK and is_good(case):
                    said.setdefault(case.full_name, plain(case.finding))
    return sorted({one for one in said.values() if ' has: ' in one})
