"""Jobs that a hypervisor gave other cores than the rest, which are not held against these."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from assay.results.diff.families import is_without_messages
from assay.results.diff.sides import CASE, JOB, Tables
from assay.results.history import History, StoredRun
from assay.running.runs import RunFolder, name_on_nodes
from assay.witness.disturbance import AS_FAR, CORE_LATENCY, CORE_MOVE, MOVED

#: The columns of a table that tell jobs apart.
Job = tuple[object, ...]

_ELSEWHERE = 'the cores of the node were farther apart or nearer than in the jobs that are compared'


@dataclass(frozen=True)
class _Cores:
    """The known facts of a job's cores.

    :param latency: nanoseconds from core to core.
    :param nodes: of the job; empty if they are not known.
    """

    is_moved: bool
    latency: float
    nodes: str = ''

    def differs(self, usual: _Cores) -> str | None:
        """How from those of most jobs, in words; None if they are alike."""
        if self.is_moved:
            return MOVED
        is_as_far = usual.latency / AS_FAR < self.latency < usual.latency * AS_FAR
        return None if is_as_far else _ELSEWHERE


def on_alike_cores(tables: Tables) -> Tables:
    """Both tables, in which of each case those jobs count whose cores were as far from each other.

    A hypervisor moves cores apart for minutes: messages take up to three times as long then,
    whatever the software does. The distance counts that most jobs of both sides have; of several
    the shortest. Figures of kernels that send nothing, and exact ones, count whatever it is.
    """
    sides = [_cores_of(table) for table in tables]
    of_cases = [_by_case(side) for side in sides]
    in_both = of_cases[0].keys() & of_cases[1].keys()
    usual = {case: _usual(*(one[case] for one in of_cases)) for case in in_both}
    before, after = (
        _without_rest(table, side, usual) for table, side in zip(tables, sides, strict=True)
    )
    return before, after


def tell_distances(own: RunFolder, history: History, before: Sequence[StoredRun]) -> None:
    """Leave in the folder of a run how far apart cores were in the runs it is compared with.

    The run measures those jobs again whose cores are farther apart than the nearest of these, of
    the same case on the same nodes.

    :raises AssayError: if the report of one can no longer be read.
    """
    found: dict[str, float] = {}
    table = history.figures(before)
    for (system, partition, environment, case, *_), cores in _cores_of(table).items():
        if not cores.is_moved:
            name = name_on_nodes(str(case), f'{system}:{partition}+{environment}', cores.nodes)
            found[name] = min(cores.latency, found.get(name, cores.latency))
    own.distances.write_text(json.dumps(found))


def _cores_of(table: pl.DataFrame) -> dict[Job, _Cores]:
    """The facts of the cores of each job that counts and reports them."""

    def told(name: str) -> pl.Expr:
        return pl.col('value').filter(pl.col('figure').cast(pl.String) == name).max().alias(name)

    found = (
        table.filter(pl.col('disturbances').is_null() & (pl.col('figure') != '-'))
        .group_by(JOB)
        .agg(told(CORE_MOVE), told(CORE_LATENCY), pl.col('nodes').cast(pl.String).first())
        .drop_nulls(CORE_LATENCY)
    )
    return {
        tuple(job): _Cores((move or 1) >= AS_FAR, latency, nodes or '')
        for *job, move, latency, nodes in found.rows()
    }


def _by_case(side: Mapping[Job, _Cores]) -> dict[Job, list[_Cores]]:
    found: dict[Job, list[_Cores]] = {}
    for job, cores in side.items():
        found.setdefault(job[: len(CASE)], []).append(cores)
    return found


def _usual(before: Sequence[_Cores], after: Sequence[_Cores]) -> _Cores:
    def in_common(usual: _Cores) -> int:
        return min(sum(not one.differs(usual) for one in side) for side in (before, after))

    return max(sorted({*before, *after}, key=lambda one: one.latency), key=in_common)


def _without_rest(
    table: pl.DataFrame, cores: Mapping[Job, _Cores], usual: Mapping[Job, _Cores]
) -> pl.DataFrame:
    rest = {
        job: said
        for job, one in cores.items()
        if (case := job[: len(CASE)]) in usual and (said := one.differs(usual[case]))
    }
    if not rest:
        return table
    reasons = pl.Series([rest.get(job) for job in table.select(JOB).rows()], dtype=pl.String)
    figures = table.select(pl.col('check', 'figure').cast(pl.String)).rows()
    any_cores = pl.Series([is_without_messages(*one) for one in figures], dtype=pl.Boolean)
    return table.with_columns(
        disturbances=pl.when(any_cores | (pl.col('better') == 'exact'))
        .then(pl.col('disturbances').cast(pl.String))
        .otherwise(pl.coalesce(pl.col('disturbances').cast(pl.String), reasons))
    )
