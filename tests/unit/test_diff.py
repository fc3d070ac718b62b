"""What differs between runs: verdicts, groups, facts, and what the command says of them."""

import json
import math
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from test_history import put
from typer.testing import CliRunner

from assay import AssayError
from assay.commands.main import app
from assay.results.cases import cases
from assay.results.choice import choose
from assay.results.diff import difference
from assay.results.grouping import Member, grouped
from assay.results.history import load
from assay.results.machine_figures import CONDITIONS
from assay.witness.disturbance import DISTURBANCES

NOW = datetime.now(timezone.utc).replace(microsecond=0)
FABRICS = {'shm': '1_node', 'ofi-tcp': '2_nodes', 'tcp': '2_nodes'}
CHECKS = ('Ring', 'PointToPoint')
FIGURES = {'latency': ('us', 'lower'), 'bandwidth': ('MB/s', 'higher')}


class Site:
    """A system whose runs are stored in a real database, a day apart, each a little different."""

    def __init__(self, database, golden_report):
        self.database, self.golden_report = database, golden_report
        self.random = np.random.default_rng(7)
        self.number = 0

    def runs(self, count, change=None, **session):
        """Store runs.

        :param change: of a case and the values of its figures by name, both of which it may change.
        """
        reports = []
        for _ in range(count):
            self.number += 1
            reports.append(self.run(change, **session))
        put(self.database, *reports)
        return reports

    def run(self, change, **session):
        report = self.golden_report('Passed')
        (run,) = report['runs']
        plain = cases(report)[1] | {'system': 'toy', 'environ': 'mpich'}
        begun = (NOW - timedelta(days=100 - self.number)).timestamp()
        report['session_info'] |= {
            'uuid': f'{self.number:08x}-0000-4000-8000-{self.number:012x}',
            'time_start_unix': begun,
            'time_end_unix': begun + 9,
        } | session
        run['testcases'] = []
        for check in CHECKS:
            for fabric, scale in FABRICS.items():
                case = plain | {
                    'display_name': f'{check} %fabric={fabric} %scale={scale} %layout=packed',
                    'fabric': fabric,
                    'scale': scale,
                    'job_completion_time_unix': begun + 5,
                    'job_nodelist': ['n1'] if scale == '1_node' else ['n1', 'n2'],
                    'directions': {name: better for name, (_, better) in FIGURES.items()},
                    'built_by': 'cmake',
                    'built_mpi': 'mpich@4.3.2',
                }
                values = {name: 100 * math.exp(self.random.normal(0, 0.004)) for name in FIGURES}
                if change:
                    change(case, values)
                case['perfvalues'] = {
                    f'toy:node:{name}': [
                        value,
                        None,
                        None,
                        None,
                        FIGURES.get(name, ('1', ''))[0],
                        'pass',
                    ]
                    for name, value in values.items()
                } | case.pop('also', {})
                run['testcases'].append(case)
        return report

    def difference(self, before='last~1', after='last', **options):
        history = load(self.database)
        return difference(history, choose(history, before), choose(history, after), **options)


@pytest.fixture
def site(tmp_path, golden_report):
    return Site(tmp_path / 'perflogs' / 'results.db', golden_report)


@pytest.fixture
def told(site, monkeypatch):
    """Runs the command on the site's database: its exit code and its output."""

    def run(*options):
        stored = load(site.database)
        monkeypatch.setattr('assay.results.history.load', lambda: stored)
        monkeypatch.setenv('COLUMNS', '200')
        result = CliRunner().invoke(app, ['diff', *options])
        if isinstance(result.exception, AssayError):
            raise result.exception
        return result.exit_code, result.output

    return run


def slower(factor, of=lambda case: True):
    def change(case, values):
        if of(case):
            values['latency'] *= factor
            values['bandwidth'] /= factor

    return change


def is_tcp_of_libfabric(case):
    return case['fabric'] == 'ofi-tcp'


def upgraded(case, values):
    """A new MPI, which is worse over one fabric."""
    case['built_mpi'] = 'mpich@5.0.1'
    slower(1.2, is_tcp_of_libfabric)(case, values)


# Stories ------------------------------------------------------------------------------------------


def test_an_upgrade_that_makes_a_fabric_worse_is_one_group(site, told):
    site.runs(10)
    site.runs(1, upgraded)
    code, text = told('last~1', 'last')
    print(text)
    assert code == 1
