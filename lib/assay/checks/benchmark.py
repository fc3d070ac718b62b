"""Checks of the MPI benchmarks in ``sources/mpi``, and their JSON report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, variable
from reframe.core.exceptions import SanityError

from assay.checks.check import MpiCheck
from assay.config.fabrics import load_catalogue
from assay.job.launch import witnessed_in
from assay.job.single_cache import single_cached_property
from assay.programs.figure import Figure
from assay.witness.disturbance import sent_once

RESULT = 'result.json'

#: What a raw socket fills of the link between two hosts.
LINK_FIGURE = 'socket_bandwidth_of_link'

#: Bytes per second of a link that any core can fill by one socket: 10 Gbit/s.
FAST = 1.25e9


@dataclass(frozen=True)
class Limit:
    """The bound of a message between two ranks.

    :param latency: seconds, of the smallest message one way.
    :param bandwidth: bytes per second, of a large message.
    """

    latency: float
    bandwidth: float


class MpiBenchmark(MpiCheck):
    """A benchmark of ``sources/mpi``.

    A subclass gives ``program`` and ``arguments`` and turns the report into figures.
    """

    program: str = variable(str)
    arguments: list[str] = variable(typ.List[str], value=[])
    witness_sections = 'placement,fabric'
    # Only a device's driver states a speed.
    may_lack = frozenset({LINK_FIGURE})

    @run_before('run')
    def use_built_program(self) -> None:
        self.executable = self.build.product(self.program)
        self.executable_opts = [*self.arguments, '--json', RESULT]
        Path(self.stagedir, RESULT).unlink(missing_ok=True)  # of an earlier run, if it was kept
        self.keep_files = [*self.keep_files, RESULT]

    @single_cached_property
    def report(self) -> dict[str, Any]:
        """The program's JSON report.

        :raises SanityError: if it is missing or not whole.
        """
        return read_report(Path(self.stagedir, RESULT), self.program, lambda: self.launch.reason)

    def select(self, **wanted: Any) -> dict[str, Any]:
        """The one entry of the report's results that has all the wanted values."""
        return next(
            entry
            for entry in self.report['results']
            if all(entry[key] == value for key, value in wanted.items())
        )

    @property
    def limited_by(self) -> Literal['memory', 'socket'] | None:
        return load_catalogue().fabrics[self.fabric].limit

    @property
    def limit(self) -> Limit | None:
        """What bounds a message on this fabric, measured in the same job; None if nothing was."""
        return self.limit_in(self.report)

    def limit_in(self, report: dict[str, Any]) -> Limit | None:
        """What bounds a message on this fabric, by a report."""
        limits = report['limits']
        match self.limited_by:
            case 'memory':
                return Limit(limits['cacheline']['latency'], limits['memcpy']['bandwidth'])
            case 'socket':
                return _socket_in(report)
        return None

    @property
    def socket(self) -> Limit:
        """What a raw TCP socket between the two ranks did."""
        return _socket_in(self.report)

    def limit_figures(
        self, prefix: str, small: dict[str, Any], large: dict[str, Any]
    ) -> dict[str, Figure]:
        """Latency and bandwidth of two results as multiple and fraction of the fabric's limit.

        The best time is held against the best of the machine, so that a passing disturbance of the
        machine does not count. Of a fabric with a device, which nothing but itself limits, they are
        those of a raw TCP socket between the same nodes: it ought to be better.
        """
        than, limit = ('limit', self.limit) if self.limit else ('socket', self.socket)
        over = small['time']['min'] / limit.latency
        of = large['size'] / large['time']['min'] / limit.bandwidth
        return {
            f'{prefix}latency_over_{than}': Figure(over, '1', 'lower', must_be_held=True),
            f'{prefix}bandwidth_of_{than}': Figure(of, '1', 'higher', must_be_held=True),
            **self.network_figures(),
        }

    def network_figures(self) -> dict[str, Figure]:
        """The network itself, where a fabric's messages go through it by sockets.

        MPI's latency and bandwidth are held against its, and would be as good a fraction of it
        where it is broken. A network that loses packets, or is slow in one direction, or a kernel
        that gives sockets small buffers, may still be fast enough for all other bounds.
        """
        if len(self.report['hosts']) == 1 or self.limited_by != 'socket':
            return {}
        figures = {
            'socket_latency': Figure(self.socket.latency * 1e6, 'us', 'lower', must_be_held=True),
            'socket_bandwidth': Figure(
                self.socket.bandwidth / 1e6, 'MB/s', 'higher', must_be_held=True
            ),
        }
        socket = self.report['limits']['socket']
        figures['kernel_buffers_of_largest'] = Figure(
            socket['kernel_sized'], '1', 'higher', must_be_held=True
        )
        ends = socket['ends']
        slower, faster = sorted(end['received'] for end in ends)
        if not slower:
            raise SanityError(
                'the directions of the socket could not be told apart: the ranks waited for CPUs'
            )
        figures['slower_direction_of_faster'] = Figure(
            slower / faster, '1', 'higher', must_be_held=True
        )
        if (share := sent_once(witnessed_in(Path(self.stagedir)))) is not None:
            figures['segments_sent_once'] = Figure(share, '1', 'higher', must_be_held=True)
        if speed := min(end.get('link_speed', 0) for end in ends):
            of = self.socket.bandwidth / min(speed, FAST)
            figures[LINK_FIGURE] = Figure(of, '1', 'higher', must_be_held=True)
        return figures

    def verify_answers(self) -> None:
        assert self.report, 'reading it says what is wrong with it'


def _socket_in(report: dict[str, Any]) -> Limit:
    socket = report['limits']['socket']
    return Limit(socket['latency'], socket['bandwidth'])


def read_report(
    path: Path, program: str, why: Callable[[], str] = lambda: 'see what it wrote'
) -> dict[str, Any]:
    """The JSON report of a program.

    :param why: tells, if there is no report, why the program did not get to its end.
    :raises SanityError: if it is missing, not whole, or another program's.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise SanityError(
            f'{program} wrote no {RESULT}: it did not get to its end ({why()})'
        ) from None
    try:
        report = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise SanityError(f'{program}: {RESULT} is not valid: {error}') from None
    if not isinstance(report, dict) or (report.get('program'), report.get('complete')) != (
        program,
        True,
    ):
        raise SanityError(f'{RESULT} is not a complete report of {program}')
    return report


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is not a measured value')
