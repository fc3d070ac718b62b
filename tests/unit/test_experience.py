"""What the plan of an acceptance takes from the history: how long cases take."""

import math
from statistics import median

from assay.acceptance.contract import Commitment
from assay.acceptance.plan import seconds, spreads
from assay.acceptance.run import SelectedCase
from assay.results.case_history import case_histories
from assay.results.history import load_history
from assay.running.selection import Listed
from reports import cases, own_cases
from stored import made, put

COMMITMENT = {
    **{'id': 'one', 'check': 'Passed', 'figure': 'latency', 'value': 2.0, 'unit': 'us'},
    **{'better': 'lower', 'statistic': 'median', 'runs': 5},
}


def test_the_time_of_a_case_is_what_it_worked(tmp_path, golden_report):
    """Not what it waited for others, which is in ReFrame's total; what is no time is none."""
    ran = (10.0, 12.0, 11.0, math.nan)
    reports = [made(golden_report, number, days=9 - number) for number in range(len(ran))]
    for time, report in zip(ran, reports, strict=True):
        for case in cases(report):
            case |= {'time_setup': 1.0, 'time_compile': None, 'time_run': time}
            case |= {'time_sanity': 0.5, 'time_performance': 0.5, 'time_total': 1e6}
    put(tmp_path / 'results.db', *reports)
    own = own_cases(reports[0])[0]
    commitment = Commitment.model_validate(COMMITMENT)
    wanted = [
        SelectedCase(commitment, Listed(name, f'toy:{own["partition"]}', own['environ']))
        for name in (own['display_name'], 'Passed %fabric=none')
    ]
    known = case_histories(load_history(tmp_path / 'results.db'), 'toy')
    assert seconds(known, wanted) == [2 + median(ran[:3]), None]


def test_a_spread_is_that_of_runs_in_which_nothing_changed(tmp_path, golden_report):
    database = tmp_path / 'results.db'
    put(database, *(made(golden_report, n, days=20 - n, value=42 + n / 10) for n in range(6)))
    own = own_cases(made(golden_report, 99))[0]
    commitment = Commitment.model_validate(COMMITMENT)
    asked = [
        SelectedCase(
            commitment, Listed(own['display_name'], f'toy:{own["partition"]}', own['environ'])
        )
    ]
    (alone,) = spreads(load_history(database), asked)
    assert alone.source == '6 runs in the history'
    others = [made(golden_report, 6 + n, days=10 - n, value=38.0 + 8 * n) for n in range(2)]
    others[0]['session_info']['purpose'] = 'campaign'
    others[1]['session_info']['time_start_unix'] += 10**9
    put(database, *others)
    assert spreads(load_history(database), asked) == [alone]
