"""ReFrame's reports in tests/golden/reports, made into those of other runs."""

import json

from assay.results.cases import Run
from assay.results.reframe_report import as_run

#: ReFrame's log of a run that came to its end.
LOG = ['[  PASSED  ] Ran 3/3 test case(s) from 3 check(s) (0 failure(s), 0 skipped, 0 aborted)']


def cases(report):
    """The cases of a report, as ReFrame writes them."""
    return [case for run in report['runs'] for case in run['testcases']]


def own_cases(report):
    """Those of checks, and not of fixtures."""
    return [case for case in cases(report) if not case['fixture']]


def run_of(report):
    """The run of a report; one that was read already stays as it is."""
    return report if isinstance(report, Run) else as_run(json.dumps(report), 'report')


def passing(report, value=42.5):
    """The report as it is after all has passed."""
    for case in cases(report):
        case['result'], case['fail_phase'] = 'pass', None
        if not case['fixture']:
            case['perfvalues'] = {'toy:node:latency': [value, 42, -0.1, 0.1, 'us', 'pass']}
    return report


def identified(report, number, begun, **told):
    """The report as that of the run of this number, which began then (s since 1970)."""
    report['session_info'] |= {
        'uuid': f'{number:08x}-0000-4000-8000-{number:012x}',
        'time_start_unix': begun,
        'time_end_unix': begun + 9,
    } | told
    return report


def made_up(plain, begun, figures, **facts):
    """A case as ReFrame writes it, of a job of that run, without values.

    :param figures: their units and directions by their names.
    """
    directions = {name: better for name, (_, better) in figures.items()}
    return plain | {'job_completion_time_unix': begun + 5, 'directions': directions} | facts


def measured(case, values, figures, held=(None, None, None)):
    """The case with these values; its fields ``units`` and ``held`` come before what is given."""
    units = {name: unit for name, (unit, _) in figures.items()} | case.pop('units', {})
    own, place = case.pop('held', {}), f'{case["system"]}:{case["partition"]}'
    case['perfvalues'] = {
        f'{place}:{name}': [value, *own.get(name, held), units[name], 'pass']
        for name, value in values.items()
    }
    return case


#: What a check says of a job that others disturbed.
NO_EVIDENCE = 'latency is 42.50 us, but ...; the node was disturbed: other processes took 48%'


def disturbed(report, *numbers):
    """A report of missed references, of which these cases are no evidence; all if none is given."""
    own = own_cases(report)
    for number in numbers or range(len(own)):
        own[number] |= {
            'no_evidence': NO_EVIDENCE,
            'fail_reason': f'performance error: disturbed: {NO_EVIDENCE}',
        }
    return report


def then(report, *later, only_failed):
    """A session that goes on with further runs: retries are of what failed only."""
    option = '--max-retries=9' if only_failed else f'--reruns={len(later)}'
    report['session_info']['cmdline'] += f' {option}'
    for number, one in enumerate(later, 1):
        (run,) = one['runs']
        run['testcases'] = [
            case | {'run_index': number}
            for case in run['testcases']
            if not (only_failed and case['fixture'])
        ]
        report['runs'].append(run)
    return report
