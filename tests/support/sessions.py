"""Sessions that no ReFrame ran: their cases are made up and stored."""

import json
import math
import re
from datetime import timedelta
from itertools import product

import numpy as np

from assay.running import runs
from assay.running.supervise import Ended
from reports import cases, identified, made_up, measured
from stored import NOW, put

BOTH = ('openmpi', 'mpich')

FIGURES = {'latency': ('us', 'lower'), 'bandwidth': ('MB/s', 'higher')}
FABRICS = ('shm', 'tcp', 'ofi-tcp')


class Machine:
    """Takes the place of ReFrame: stores runs of made-up cases, each a little different.

    :param change: of the cases of a session: given its environment and number, the case and its
        values; both of which it may change. A case is not run if it says False.
    """

    system, mode = 'toy', 'smoke'
    checks, fabrics = ('Ring',), FABRICS
    seed, spread = 11, 0.004

    def __init__(self, database, golden_report, change=lambda *about: None):
        self.database, self.golden_report, self.change = database, golden_report, change
        self.environment = {}
        self.random = np.random.default_rng(self.seed)
        self.number = 0
        self.ran = []
        self.labels = []
        self.exports = []
        self.own = runs.begin_run()
        self.ends = {}
        self.partitions = ['node']
        self.layouts = ['packed']
        self.cases = []

    def changes(self, change):
        """Decorates what is to be the change from now on."""
        self.change = change
        return change

    def report(self, name, excluded=(), days=0.0, text=None):
        self.number += 1
        report = self.golden_report('Passed')
        begun = (NOW - timedelta(days=days)).timestamp() + 10 * self.number
        identified(report, self.number, begun, **({'label': text} if text else {}))
        plain = cases(report)[1] | {'system': 'toy', 'environ': name, 'scale': '1_node'}
        report['runs'][0]['testcases'] = []
        for check, fabric, layout, partition in product(
            self.checks, self.fabrics, self.layouts, self.partitions
        ):
            shown = f'{check} %fabric={fabric} %layout={layout} %scale=1_node'
            if any(re.search(one, shown.replace(' ', '')) for one in excluded):
                continue
            where = {'partition': partition, 'display_name': shown, 'fabric': fabric}
            case = made_up(plain, begun, FIGURES, **where, built_mpi=f'{name}@5')
            values = {one: 100 * math.exp(self.random.normal(0, self.spread)) for one in FIGURES}
            if self.alter(name, case, values) is not False:
                case = measured(case, values, FIGURES, (100, -0.9, 9))
                report['runs'][0]['testcases'].append(case)
        return report

    def alter(self, name, case, values):
        return self.change(name, self.number, case, values)

    def history(self, count):
        reports = [self.report(name, days=count - n) for n in range(count) for name in BOTH]
        put(self.database, *reports)
        self.number += 10_000  # of the sessions that follow, each a later second of today

    def run(self, own, text, options, handles, audience, purpose, exports):
        at = options.index('-p') if '-p' in options else None
        name = BOTH[0] if at is None else options[at + 1][1:-1]
        self.exports.append(exports)
        excluded = [one.partition('=')[2] for one in options if one.startswith('--exclude=')]
        (own.folder / 'stage').mkdir()
        self.ran.append((name, len(excluded)))
        self.labels.append(text)
        report = self.report(name, excluded, text=text)
        report['session_info']['purpose'] = purpose
        self.cases.append([case['display_name'] for case in cases(report)])
        put(self.database, report)
        own.report.write_text(json.dumps(report))
        return self.ends.pop(len(self.ran), Ended())
