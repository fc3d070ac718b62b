"""Histories that nobody wishes for, and what each command that reads them says of them.

Of two runs that write at once, and of writers that are killed, tell ``test_history``,
``test_retention`` and ``test_baseline``.
"""

import json
import math
import re
import shutil

import polars as pl
import pytest

import stored
from assay import AssayError, paths
from assay.config import learned
from assay.config.learned import read_text, replace_text
from assay.results import history
from command import invoke
from reports import own_cases

SYSTEM = 'example-slurm'
RUNS = 24
NAN = 'not a number, or negative'
NO_RUN = r'no run is stored in .*results\.db: `assay run` stores one'
SHARED = 'BEFORE and AFTER share'
CLOCK = 'run 00000017 began on .*, which is in the future: a clock was wrong'


class Stored:
    """A database with runs of one case, a day apart, and the commands on it."""

    def __init__(self, folder, golden_report, monkeypatch):
        self.folder, self.golden_report = folder, golden_report
        self.database = folder / 'perflogs' / 'results.db'
        load = history.load_history
        monkeypatch.setattr(history, 'load_history', lambda: load(self.database))
        (folder / 'references').mkdir()
        shutil.copy(paths.REFERENCES / 'generic.yaml', folder / 'references')
        monkeypatch.setattr(paths, 'REFERENCES', folder / 'references')

    def made(self, number, value, days=None, name='Ring', unit='us'):
        days = RUNS - number if days is None else days
        report = stored.made(self.golden_report, number, days, 'these', SYSTEM)
        own = own_cases(report)[0]
        report['runs'][0]['testcases'] = [own]
        own['display_name'] = f'{name} %fabric=shm %layout=packed %scale=1_node'
        own['job_completion_time_unix'] = report['session_info']['time_start_unix'] + 5
        own |= {'partition': 'compute', 'job_nodelist': ['n1'], 'directions': {'latency': 'lower'}}
        own['perfvalues'] = {f'{SYSTEM}:compute:latency': [value, 42, -0.1, 0.1, unit, 'pass']}
        return report

    def put(self, last=None, number=RUNS):
        """So many runs, and a last one that is not like them."""
        values = [42 + 0.1 * (one * one % 7) for one in range(number)]
        reports = [self.made(one, value) for one, value in enumerate(values)]
        if last:
            reports[-1] = self.made(number - 1, **{'value': 42.0, **last})
        stored.put(self.database, *reports)

    def said(self, command, *options):
        """The exit code, and all that is printed; an error is one line."""
        ended = invoke(command, *options, COLUMNS='160')
        if isinstance(ended.exception, AssayError):
            assert '\n' not in str(ended.exception)
            return 1, f'{ended.output}{ended.exception}'
        if ended.exception and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        if '--json' in options:
            json.loads(ended.stdout, parse_constant=pytest.fail)
        return ended.exit_code, ended.output


@pytest.fixture
def odd(tmp_path, golden_report, monkeypatch):
    return Stored(tmp_path, golden_report, monkeypatch)


#: What is stored, and what each command has to say: its exit code, and words.
HISTORIES = {
    'nothing': (
        None,
        {
            'history': (0, 'no run is stored'),
            'compare-runs': (1, NO_RUN),
            'baseline': (1, NO_RUN),
            'trend': (0, 'no run was looked at'),
            'export': (1, NO_RUN),
            'report': (1, NO_RUN),
        },
    ),
    'one run': (
        {'number': 1},
        {
            'history': (0, '1 of 1 runs'),
            'compare-runs': (1, "'last~1': stored is no more than 1 run"),
            'baseline': (1, '1 sessions are too few: 9 more are needed'),
            'trend': (0, '1 figure with too few runs'),
            'export': (0, ''),
            'report': (0, 'report: '),
        },
    ),
    'a value that is none': (
        {'last': {'value': math.nan}},
        {
            'history': (0, '20 of 24 runs'),
            'compare-runs': (1, 'gone: latency of Ring '),
            'baseline': (
                1,
                'refused: .*it was no finite number, or negative, in 1 value: find out why',
            ),
            'trend': (0, '1 value left out: no finite number'),
            'export': (0, ''),
            'report': (0, 'report: '),
        },
    ),
    'another unit': (
        {'last': {'value': 0.042, 'unit': 'ms'}},
        {
            'history': (0, '20 of 24 runs'),
            'compare-runs': (3, 'UNDECIDED: 0 worse, 0 better, 0 same, 1 cannot tell'),
            'baseline': (1, 'it was measured in ms and in us: choose runs of one unit'),
            'trend': (0, 'was stored in several units, each of which is a figure of its own'),
            'export': (0, ''),
            'report': (0, 'report: '),
        },
    ),
    'a check that was renamed': (
        {'last': {'name': 'Rings'}},
        {
            'history': (0, '20 of 24 runs'),
            'compare-runs': (1, r'no figure is of runs before \(Ring .* and after \(Rings'),
            'baseline': (0, 'refused: latency of Rings .*Ring'),
            'trend': (0, '1 figure with too few runs'),
            'export': (0, ''),
            'report': (0, 'report: '),
        },
    ),
    'a run of the future': (
        {'last': {'days': -400}},
        {
            'history': (0, CLOCK),
            'compare-runs': (0, 'NOT WORSE: (.|\n)*1 same'),
            'baseline': (0, 'left out: 1 run of the future(.|\n)*1 reference would be written'),
            'trend': (0, 'of 23 runs (.|\n)*1 run of the future left out'),
            'export': (0, CLOCK),
            'report': (0, CLOCK),
        },
    ),
    'nothing but the future': (
        {'last': {'days': -400}, 'number': 1},
        {
            'history': (0, 'which is in the future'),
            'compare-runs': (
                1,
                'stored is no more than 0 runs, and 1 of the future, which do not count',
            ),
            'baseline': (1, 'all of the runs are of the future'),
            'trend': (0, '1 run of the future left out'),
            'export': (0, ''),
            'report': (1, 'stored is no more than 0 runs, and 1 of the future'),
        },
    ),
}


@pytest.mark.parametrize('name', HISTORIES)
def test_what_each_command_says(odd, name):
    put, expected = HISTORIES[name]
    if put is not None:
        odd.put(**put)
    folder = odd.folder
    options = {
        'history': [],
        'compare-runs': ['last~1', 'last'],
        'baseline': ['these', '--dry-run'],
        'trend': [],
        'export': ['--output', folder / 'x.csv'],
        'report': ['-o', folder / 'x.html'],
    }
    for command, words in options.items():
        code, text = odd.said(command, *words)
        assert (command, code) == (command, expected[command][0]), text
        assert re.search(expected[command][1], text), (command, text)
    for command in ('history', 'compare-runs', 'trend'):
        assert odd.said(command, *options[command], '--json')[0] == expected[command][0]
    assert sorted(path.name for path in folder.glob('references/*')) == ['generic.yaml']
    if expected['export'][0] == 0:
        assert pl.read_csv(folder / 'x.csv').height == put.get('number', RUNS)
    else:
        assert not (folder / 'x.csv').exists()
    assert (folder / 'x.html').exists() == (expected['report'][0] == 0)


def test_equal_values_are_the_same_everywhere(odd):
    stored.put(odd.database, *(odd.made(number, 42.0) for number in range(RUNS)))
    assert '1 same' in odd.said('compare-runs', 'last~1', 'last')[1]
    assert 'nothing changed in 1 figure of 24 runs' in odd.said('trend')[1]
    code, text = odd.said('baseline', 'these', '--dry-run')
    assert code == 0 and re.search(r'latency: \{reference: \[42.0, null, 0\.0\d+, us\]', text), text


def test_what_somebody_else_wrote_meanwhile_is_not_lost(odd, monkeypatch):
    """Two of them at once, or one beside an editor: the second one begins anew."""
    odd.put()
    path = paths.REFERENCES / 'learned' / f'{SYSTEM}.yaml'
    path.parent.mkdir()
    right = learned.assert_right

    def meanwhile(text, where):
        right(text, where)
        path.write_text('# of somebody else\n')

    monkeypatch.setattr(learned, 'assert_right', meanwhile)
    code, text = odd.said('baseline', 'these')
    assert (code, path.read_text()) == (1, '# of somebody else\n')
    assert 'somebody else has changed it meanwhile, so nothing was written: try again' in text
    replace_text(path, read_text(path), 'mine')
    assert path.read_text() == 'mine'
