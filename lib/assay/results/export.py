"""The table of figures for other programs: Parquet, CSV, and metrics for Prometheus.

Metrics are those of the newest run of each case, all of them gauges and none with a time of its
own: so the text is OpenMetrics 1.0 as well as Prometheus' text format 0.0.4, which is the one that
the text file collector of the node exporter reads. It refuses a file with times.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import polars as pl
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from assay import AssayError
from assay.results.rows import BAD

#: What tells metrics from each other; the columns of the table.
LABELS = (
    *('system', 'partition', 'environment', 'check', 'case', 'figure', 'unit'),
    *('fabric', 'layout', 'scale'),
)
#: The column of each metric, and what it is.
_METRICS = {
    'assay_figure_value': ('value', 'What was measured, in the unit of the label.'),
    'assay_figure_reference': ('reference', 'What the value was held to, in the same unit.'),
    'assay_figure_verdict': (
        'word',
        '0 it passed, 1 it failed, 3 it was disturbed; no sample where nothing held it.',
    ),
    'assay_figure_measured_seconds': ('time', 'When it was measured, seconds since 1970.'),
}
_WORDS = {'pass': 0, 'xfail': 0, 'disturbed': 3} | dict.fromkeys(BAD, 1)


def as_parquet(table: pl.DataFrame) -> bytes:
    """The table as Parquet."""
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def as_csv(table: pl.DataFrame) -> bytes:
    """The table as CSV in UTF-8, with names of columns; what is not known is empty."""
    return table.write_csv(datetime_format='%Y-%m-%dT%H:%M:%S%.3fZ').encode()


def as_metrics(table: pl.DataFrame) -> bytes:
    """The newest run of each case as gauges: value, reference, verdict and time of each figure."""
    newest, metrics = _newest(table), []
    for name, (column, description) in _METRICS.items():
        metric = GaugeMetricFamily(name, description, labels=LABELS)
        for *labels, value in newest.select(*LABELS, column).drop_nulls(column).iter_rows():
            metric.add_metric([label or '' for label in labels], value)
        metrics.append(metric)
    registry = SimpleNamespace(collect=lambda: metrics)
    content: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return content


def _newest(table: pl.DataFrame) -> pl.DataFrame:
    """One row a figure: the last repeat in the newest run that its case was in.

    A case that failed there has no value any more, and what it had before is not shown as if it
    were of today. A run of the future has a wrong clock.
    """
    who = ('system', 'partition', 'environment', 'case')
    time = pl.coalesce('measured', 'begun')
    return (
        table.filter(pl.col('begun') <= datetime.now(timezone.utc))
        .sort('begun', 'repeat', maintain_order=True)
        .filter(pl.col('run') == pl.col('run').last().over(who))
        .with_columns(
            pl.col(LABELS).cast(pl.String),
            time=time.dt.epoch('ms') / 1000,
            word=pl.col('verdict').cast(pl.String).replace_strict(_WORDS, default=None),
        )
        .unique(LABELS, keep='last', maintain_order=True)
        .sort(LABELS)
    )


#: What the endings of files stand for.
FORMATS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    '.parquet': as_parquet,
    '.csv': as_csv,
    '.prom': as_metrics,
}


def form(target: str) -> Callable[[pl.DataFrame], bytes]:
    """The function that writes the format of a file, by the ending of its name; for ``-`` CSV.

    :raises AssayError: if the ending is none of them.
    """
    ending = '.csv' if target == '-' else Path(target).suffix
    if ending not in FORMATS:
        raise AssayError(f'--output {target}: the name must end with {", ".join(FORMATS)}.')
    return FORMATS[ending]
