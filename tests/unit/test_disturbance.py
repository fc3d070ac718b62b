"""What disturbed a job: from the witness's report to a sentence."""

import pytest
from witnessed import host, process, report

from assay.disturbance import disturbance_figures, disturbed


def disturbance(foreign=0.0, steal=0.0, throttled=0.0):
    return {
        'seconds': 2.0,
        'foreign_share': foreign,
        'steal_share': steal,
        'throttled_share': throttled,
        'waited_share': foreign,
    }


def test_the_worst_host_counts():
    hosts = [
        host('n1') | {'disturbance': disturbance(foreign=0.3)},
        host('n2') | {'disturbance': disturbance(foreign=0.1, steal=0.2)},
    ]
    figures = disturbance_figures(report([process(0), process(1, on='n2')], hosts))
    shares = {name: figure.value for name, figure in figures.items()}
    assert shares == {
        'foreign_share': 0.3,
        'steal_share': 0.2,
        'throttled_share': 0.0,
        'waited_share': 0.3,
    }


def test_a_report_that_does_not_say():
    assert disturbance_figures(report([process()], [host()])) == {}


@pytest.mark.parametrize(
    ('shares', 'words'),
    [
        ({}, None),
        ({'foreign_share': 0.01, 'latency': 1.5}, None),
        ({'foreign_share': 0.48}, "other processes took 48% of the time of the job's CPUs"),
        (
            {'steal_share': 0.1, 'throttled_share': 0.05},
            'the hypervisor took 10% of the CPUs, quotas withheld 5% of the CPUs',
        ),
        # One process on one of many CPUs.
        (
            {'foreign_share': 0.004, 'waited_share': 0.5},
            'a rank waited for a CPU in 50% of its time',
        ),
    ],
)
def test_words(shares, words):
    said = disturbed(shares)
    assert said == (words and f'the node was disturbed: {words}')
