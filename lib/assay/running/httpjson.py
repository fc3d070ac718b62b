"""Figures sent to an HTTP server as cases end, for Elastic and Grafana: ReFrame's ``httpjson``.

ReFrame opens the handler, which is left out where the server cannot be reached. What it would send
by itself it waits for without an end, and a server that went away in mid-run would make it say that
figures were lost, which fails a run. So they are sent here: within bounds, and no more after the
first that did not arrive.
"""

from __future__ import annotations

import json
import math
import os
from logging import LogRecord
from typing import Any
from urllib.parse import urlsplit

#: ReFrame's own variable: the URL that objects are posted to.
VARIABLE = 'RFM_HTTPJSON_URL'
#: Seconds to connect within, and to answer within.
PATIENCE = 5.0

#: What a figure is sent as, and ReFrame's names of it; it makes a record for each figure.
_FIELDS = {
    'measured': 'check_job_completion_time',
    'system': 'check_system',
    'partition': 'check_partition',
    'environment': 'check_environ',
    'case': 'check_display_name',
    'fabric': 'check_fabric',
    'layout': 'check_layout',
    'scale': 'check_scale',
    'figure': 'check_perf_var',
    'value': 'check_perf_value',
    'unit': 'check_perf_unit',
    'reference': 'check_perf_ref',
    # As fractions of the reference.
    'lower_threshold': 'check_perf_lower_thres',
    'upper_threshold': 'check_perf_upper_thres',
    'verdict': 'check_perf_result',
    'result': 'check_result',
    'nodes': 'check_job_nodelist',
    'mpi': 'check_built_mpi',
    'suite_commit': 'check_suite_commit',
}

_gone = False


def handlers() -> list[dict[str, Any]]:
    """The handlers for ReFrame's configuration; none as long as no URL is set.

    :raises ConfigError: ReFrame's, if the URL has a host that cannot be looked up, on which it
        would end with a traceback; all else that may be wrong with a URL it says itself.
    """
    url = os.environ.get(VARIABLE)
    if not url:
        return []
    try:
        (urlsplit(url).hostname or '').encode('idna')
    except ValueError:
        from reframe.core.exceptions import ConfigError

        raise ConfigError(f'{VARIABLE}: its host is no name and no address') from None
    return [{'type': 'httpjson', 'url': url, 'level': 'info', 'json_formatter': send}]


def send(record: LogRecord, extras: object, ignore_keys: object) -> None:
    """Post the figure of a record; ReFrame has nothing left to send then.

    A value that is not finite is null: JSON has no other numbers. A redirect is not followed: most
    make a GET of the POST, whose figure is lost.
    """
    global _gone
    import requests
    from reframe.core.logging import getlogger
    from urllib3.exceptions import HTTPError

    told = vars(record)
    if _gone or told.get('check_perf_var') is None:
        return
    figure = {name: _plain(told.get(theirs)) for name, theirs in _FIELDS.items()}
    if figure['lower_threshold'] is None and figure['upper_threshold'] is None:
        figure['reference'] = figure['reference'] or None  # a missing one is 0 in ReFrame
    try:
        with requests.post(
            os.environ[VARIABLE],
            data=json.dumps(figure, allow_nan=False),
            headers={'Content-Type': 'application/json'},
            timeout=PATIENCE,
            stream=True,
            allow_redirects=False,
        ) as answer:
            if 200 <= answer.status_code < 300:
                return
            why = f'the server answered {answer.status_code} {answer.reason}'
    # Of some URLs requests lets through what urllib3 and codecs raise.
    except (OSError, ValueError, HTTPError) as error:
        # Its text may hold the URL, and with it a password.
        why = type(error).__name__
    _gone = True
    getlogger().warning(f'httpjson: no more figures are sent: {why}')


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | list) else str(value)
