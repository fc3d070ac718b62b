"""Runs in a database of ReFrame's, stored by ReFrame itself."""

from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import cache

import reframe.core.runtime as rt
from reframe.frontend.reporting import storage

from assay import paths
from reports import cases, identified, passing

NOW = datetime.now(timezone.utc).replace(microsecond=0)


@cache
def _runtime():
    """A runtime of ReFrame's. To check its configuration takes longer than to store a run."""
    with rt.temp_runtime(str(paths.CONFIG / 'systems' / 'example-slurm.py')) as runtime:
        runtime.site_config.add_sticky_option('storage/enable', True)
        return runtime


@contextmanager
def reframes(database):
    """ReFrame's own storage."""
    _runtime().site_config.add_sticky_option('storage/sqlite_db_file', str(database))
    with rt.temp_runtime(None):
        rt._runtime_context = _runtime()
        yield


def put(database, *reports):
    """Store runs as ReFrame does, but all at once: one after the other waits for the disk."""
    with reframes(database):
        backend = storage.StorageBackend.default()
        with backend._db_write(backend._db_file()) as connection:
            for report in reports:
                backend._db_store_report(connection, report, None)


def made(golden_report, number, days=0.0, label=None, system='toy', value=42.5, purpose=None):
    """A report of a run that passed, so many days ago."""
    report = passing(golden_report('Passed'), value)
    for case in cases(report):
        case['system'] = system
    told = {name: told for name, told in (('label', label), ('purpose', purpose)) if told}
    begun = (NOW - timedelta(days=days)).timestamp()
    return identified(report, number, begun, mode='smoke', **told)
