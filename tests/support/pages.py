"""Pages of runs: reports with as many cases as are wanted, and what is in the HTML."""

import base64
import gzip
import json
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl

from assay.report.html import page
from assay.report.html.contents import Subject, page_contents
from assay.results.figures import SCHEMA, plain_rows, table
from assay.results.history import History, of_file
from reports import LOG, own_cases, passing, run_of

#: What a job, a user or a name could bring.
HOSTILE = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '</script><script>alert(1)</script>',
    '<!--<script>',
    'javascript:alert(1)',
    '{{ 7 * 7 }} {% raw %}',
    '\x1b[2J\x1b]8;;http://example.org\x07',
    'nul\x00 line\u2028end\u202e \ufffe',
    '%{x} $\\alpha$ <b>bold</b>',
]

#: Figures of each case: name, value, reference, lower, upper, unit.
FIGURES = [
    ('latency', 0.47, 0, None, None, 'us'),
    ('bandwidth', 9000.0, 0, None, None, 'MB/s'),
    ('latency_over_limit', 1.4, 1, None, 1.3, '1'),
    ('bandwidth_of_limit', 0.7, 1, -0.5, None, '1'),
    ('comm_share', 0.4, 0, None, None, '1'),
    ('imbalance_share', 0.1, 0, None, None, '1'),
    ('foreign_share', 0.01, 0, None, None, '1'),
    ('steal_share', 0.0, 0, None, None, '1'),
    ('throttled_share', 0.0, 0, None, None, '1'),
]


def filled(golden_report, count=1, folder=None, figures=FIGURES):
    """The report of a run in which so many cases passed, with this many figures each.

    :param folder: where their jobs left a report of `pt2pt`.
    """
    report = passing(golden_report('Passed'))
    pattern = own_cases(report)[0]
    (run,) = report['runs']
    run['testcases'] = []
    for number in range(count):
        fabric, environ = ('shm', 'tcp', 'ucx-shm')[number % 3], ('openmpi', 'mpich')[number % 2]
        layout = f'packed{number // 6 or ""}'
        name = f'PointToPoint %fabric={fabric} %layout={layout} %scale=1_node'
        case = pattern | {
            'display_name': name,
            'unique_name': f'PointToPoint_{number}',
            'environ': environ,
            'fabric': fabric,
            'layout': layout,
            'scale': '1_node',
            'jobid': str(number),
            'stagedir': '/nowhere',
            'headlines': ['latency', 'bandwidth'],
            'perfvalues': {f'toy:node:{figure}': [*values, 'pass'] for figure, *values in figures},
            'outputdir': str(folder or '/nowhere'),
        }
        run['testcases'].append(case)
    if folder:
        left(folder)
    return report


def left(folder, **changed):
    """Leave a report of `pt2pt`, as its job does."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    results = [
        {
            'pattern': 'ping-pong',
            'size': size,
            'time': {'best': (size + 500) * 1e-9},
            'bandwidth': size / (size + 500) * 1e9,
        }
        for size in (0, *(1 << power for power in range(23)))
    ]
    report = {'program': 'pt2pt', 'complete': True, 'results': results} | changed
    (Path(folder) / 'result.json').write_text(json.dumps(report))


def history_of(report, count, folder):
    """So many runs, a day apart, of which a report is the newest: as the database would have them.

    ReFrame would take minutes to store those of thousands of cases.

    :param folder: in which the report is written.
    """
    path = folder / 'report.json'
    path.write_text(json.dumps(report))
    (newest,) = of_file(path)
    names = [f'{number:08x}-0000-4000-8000-{number:012x}' for number in range(count - 1)]
    runs = [
        replace(
            newest,
            uuid=uuid,
            begun=newest.begun - timedelta(days=days),
            ended=newest.ended - timedelta(days=days),
            verdict='PASSED',
            file=None,
        )
        for days, uuid in zip(reversed(range(count)), [*names, newest.uuid], strict=True)
    ]
    own = table(plain_rows(run_of(report)))
    begun = {'run': [run.uuid for run in runs], 'begun': [run.begun for run in runs]}
    times = pl.DataFrame(begun, schema={name: SCHEMA[name] for name in begun})
    figures = times.join(own.drop('run', 'begun'), how='cross').select(*SCHEMA)
    noise = np.random.default_rng(1).normal(1, 0.01, len(figures))
    noise[-len(own) :] = 1
    return History(tuple(runs), folder, figures.with_columns(pl.col('value') * noise))


def found_in(report, word='PASSED', problems=(), log=LOG, beside=None, **others):
    """What the page of a report tells."""
    if beside:
        others['beside'] = (beside[0], run_of(beside[1]))
    return page_contents(Subject(run_of(report), word, problems, log, **others))


def html_of(report, **others):
    return page.page(found_in(report, **others))


class Seen(HTMLParser):
    """The elements of a page, their attributes, and its text without scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.raw = [], [], '', {}
        self._inside = ''
        self.feed(text)

    @property
    def packed(self):
        """The texts that scripts unpack: what the charts show, and what draws them."""
        return [
            gzip.decompress(base64.b64decode(raw)).decode()
            for raw in self.raw['script']
            if raw.startswith('H4sI')
        ]

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attributes]
        self._inside = tag if tag in ('script', 'style') else ''

    def handle_endtag(self, tag):
        self._inside = ''

    def handle_data(self, data):
        if self._inside:
            self.raw.setdefault(self._inside, []).append(data)
        else:
            self.text += data
