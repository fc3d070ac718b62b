"""What each report of a benchmark has."""

from __future__ import annotations

from typing import Any


def check_head(report: dict[str, Any], program: str, ranks: int) -> None:
    """The top of a report, the same for every program."""
    assert report['schema'] == 1
    assert report['implementation'] == 'assay'
    assert report['program'] == program
    assert report['complete'] is True
    assert report['ranks'] == ranks
    assert len(report['hosts']) == 1
    assert report['mpi']['library']


def check_samples(entry: dict[str, Any]) -> None:
    """The statistics of one result."""
    time = entry['time']
    assert 0 < time['min'] <= time['best'] <= time['median']
    assert time['min'] <= time['ci_low'] <= time['median'] <= time['ci_high']
    assert time['median'] <= time['p95']
    assert entry['samples'] >= 6
    for bout in entry.get('bouts', []):
        assert bout >= time['min']
    assert entry['iterations_per_sample'] >= 1
    assert entry['stopped_by'] in ('ci', 'budget')
