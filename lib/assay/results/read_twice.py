"""Which runs were read twice: from perflogs, where they have other identifiers, and as they are."""

from __future__ import annotations

import polars as pl

#: No two jobs of a case end in one place in one second; perflogs have no parts of seconds.
_JOB = ('system', 'partition', 'environment', 'case', 'ended')


def read_twice(table: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The runs of a table that have a job which is in another table as well.

    :param table: of figures (:data:`assay.results.figures.SCHEMA`).
    :param other: likewise.
    :returns: their identifiers, sorted.
    """
    jobs, others = (
        one.filter(pl.col('measured').is_not_null())
        .select('run', *_JOB[:-1], ended=pl.col('measured').dt.truncate('1s'))
        .unique()
        for one in (table, other)
    )
    return sorted(jobs.join(others, on=_JOB, how='semi')['run'].cast(pl.String).unique())
