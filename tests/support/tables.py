"""Tables of figures, as the history has them."""

from datetime import datetime, timedelta, timezone

import polars as pl

from assay.results.figure_series import FigureKey
from assay.results.figures import SCHEMA

RING = FigureKey('toy', 'login', 'mpich', 'Ring %fabric=shm', 'latency', 'us')
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
PLACE = {'system': 'toy', 'partition': 'login', 'environment': 'mpich', 'case': 'Ring %fabric=shm'}
ROW = PLACE | {'check': 'Ring', 'figure': 'latency', 'unit': 'us', 'better': 'lower'}


def figures(*rows):
    """A table of values of Ring's latency, a day apart, with what rows say beside that."""
    full = [
        ROW | {'run': f'run{day}', 'begun': FIRST + timedelta(days=day)} | row
        for day, row in enumerate(rows)
    ]
    return pl.DataFrame(full, schema=SCHEMA)
