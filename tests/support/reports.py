"""ReFrame's reports in tests/golden/reports, made into those of other runs."""

from assay.results.cases import cases

#: ReFrame's log of a run that came to its end.
LOG = ['[  PASSED  ] Ran 3/3 test case(s) from 3 check(s) (0 failure(s), 0 skipped, 0 aborted)']


def passing(report, value=42.5):
    """The report as it is after all has passed."""
    for case in cases(report):
        case['result'], case['fail_phase'] = 'pass', None
        if not case['fixture']:
            case['perfvalues'] = {'toy:node:latency': [value, 42, -0.1, 0.1, 'us', 'pass']}
    return report


def then(report, *later, only_failed):
    """A session that goes on with further runs: retries are of what failed only."""
    report['session_info']['cmdline'] += ' --max-retries=9' if only_failed else ' --reruns=9'
    for number, one in enumerate(later, 1):
        (run,) = one['runs']
        run['testcases'] = [
            case | {'run_index': number}
            for case in run['testcases']
            if not (only_failed and case['fixture'])
        ]
        report['runs'].append(run)
    return report
