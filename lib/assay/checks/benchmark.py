"""Checks of the MPI benchmarks in ``sources/mpi``, of nodes in ``sources/node``; JSON reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import reframe.core.runtime as rt
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.exceptions import SanityError

from assay.checks.cases import offered_features
from assay.checks.check import MpiCheck
from assay.config.environments import MEASURES_NODES, OURS, feature
from assay.config.fabrics import load_catalogue
from assay.files import strict_json
from assay.job.launch import Launch, LaunchError, reports_in, single_cached_property
from assay.layout.layouts import Placement
from assay.machine.provenance import Provenance
from assay.mpis import FAMILIES
from assay.mpis.family import search_line
from assay.programs.application import WrongAnswerError
from assay.programs.benchmarks import REPORT_CHECKS
from assay.programs.calls import check_calls
from assay.programs.figure import Figure, Quantity, figures_of
from assay.witness.disturbance import share_sent_once
from assay.witness.payload import payload_rate
from assay.witness.rails import ONE_SOCKET

RESULT = 'result.json'

#: What a program says of an MPI without it, and the feature of what has it.
LACKS, PROMISED = 'this MPI does not give MPI_THREAD_MULTIPLE', 'thread-multiple'

#: What a raw socket fills of the link between two hosts.
LINK_FIGURE = 'socket_bandwidth_of_link'

#: What messages fill of the ports that they go over.
PORT_FIGURE = 'bandwidth_of_port'

#: The network itself, where a fabric's messages go through it by sockets.
OF_NETWORK = {
    'socket_latency': Quantity('us', 'lower', must_be_held=True),
    'socket_bandwidth': Quantity('MB/s', 'higher', must_be_held=True),
    'kernel_buffers_of_largest': Quantity('1', 'higher', must_be_held=True),
    'slower_direction_of_faster': Quantity('1', 'higher', must_be_held=True),
    'segments_sent_once': Quantity('1', 'higher', must_be_held=True),
    LINK_FIGURE: Quantity('1', 'higher', must_be_held=True),
}

#: Bytes up to which MPIs change their protocols. A curve is judged to here: of longer messages too
#: few fit into the time of a size to tell a dip from what others did meanwhile.
CURVE_END = 64 << 10


#: Bytes of the messages of collectives that are called large, and of the largest.
LARGE, LARGEST = 64 << 10, 1 << 20
#: Ranks up to which the largest are sent: a rank may have two blocks for each.
FEW_RANKS = 64


def largest_block(ranks: int) -> int:
    """Bytes of the largest messages that collectives of so many ranks send."""
    return LARGEST if ranks <= FEW_RANKS else LARGE


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

    A subclass gives ``program``, ``arguments`` and ``measures``, and turns the report into figures.
    """

    program: str = variable(str)
    arguments: list[str] = variable(typ.List[str], value=[])
    witness_sections = 'placement,fabric'
    #: Of a rank in the check's own layout: one on each of its cores. 0 where that is no matter.
    most_threads = 0
    # Only a device's driver states a speed.
    may_lack = frozenset({LINK_FIGURE, PORT_FIGURE, f'hop_{PORT_FIGURE}'})

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
        return read_result(self.ended_job.folder / RESULT, self.program, lambda: self.launch.reason)

    def place(self, ranks: int | None, threads: int, layout: str = '') -> Placement:
        if ranks and self.most_threads and not layout:
            threads = self.threads = max(1, min(self.most_threads, self.node.cores // ranks))
        return super().place(ranks, threads, layout)

    def start_beside(self, folder: str, placement: Placement, arguments: Sequence[str]) -> None:
        """Have the job start the program otherwise as well, before, in a folder of its own."""
        placed = placement, placement.ranks * self.node_count
        command = self.start_line(self.executable, *arguments, f'--json {RESULT}', placed=placed)
        self.start_before(folder, command)

    def report_beside(self, folder: str, placement: Placement, layout: str) -> dict[str, Any]:
        """The report of that start, once all about it is right.

        :param layout: whose placement it is. Its fabric was forced.
        :raises SanityError: with a sentence that says what is wrong.
        """
        ranks = placement.ranks * self.node_count
        try:
            one = self.launch_apart(folder, self.program, placement, ranks)
            one = replace(one, layout=layout, is_forced=True)
            one.assert_ended_well()
            one.assert_as_asked()
            report = read_result(one.folder / RESULT, self.program, lambda: one.reason)
            self.hold(report, one, placement)
            return report
        except (LaunchError, SanityError) as error:
            raise SanityError(f'{folder}: {error}') from None

    def verify(self) -> None:
        # A program that asked for MPI_THREAD_MULTIPLE in vain is skipped unless that is promised.
        promised = {*self.current_partition.features, *self.current_environ.features}
        if LACKS in self.launch.reason and PROMISED not in promised:
            self.skip(
                f'{FAMILIES[self.family].name} does not give MPI_THREAD_MULTIPLE here: built '
                f'without it, or ruled out by settings or the fabric; where the feature {PROMISED} '
                f'promises it, that is a failure'
            )
        super().verify()

    def select(self, **wanted: Any) -> dict[str, Any]:
        """The one entry of the report's results that has all the wanted values."""
        return next(
            entry
            for entry in self.report['results']
            if all(entry[key] == value for key, value in wanted.items())
        )

    @property
    def limited_by(self) -> Literal['memory', 'socket'] | None:
        return load_catalogue().fabrics[self.way].limit

    def curve(self, **wanted: Any) -> list[tuple[int, float]]:
        """Sizes from 1 byte on and best times in seconds of the results with these values."""
        return [
            (entry['size'], entry['time']['best'])
            for entry in self.report['results']
            if 0 < entry['size'] <= CURVE_END
            and all(entry[key] == value for key, value in wanted.items())
        ]

    @property
    def limit(self) -> Limit | None:
        """The limit of a message on this fabric, measured in the same job; None without one."""
        return self.limit_in(self.report)

    def limit_in(self, report: dict[str, Any]) -> Limit | None:
        """A message's limit on this fabric, as a report has it; None if the fabric has none."""
        limits = report['limits']
        match self.limited_by:
            case 'memory':
                return Limit(limits['cacheline']['latency'], limits['memcpy']['bandwidth'])
            case 'socket':
                return _socket_in(report)
        return None

    @property
    def socket(self) -> Limit:
        """The latency and bandwidth of a raw TCP socket between the two ranks."""
        return _socket_in(self.report)

    @property
    def limits(self) -> list[Limit]:
        """The limit before, between and after the rounds of the measurement, or a socket's."""
        measured = self.report['limits'].get('measured')
        if measured is None:
            return 2 * [self.limit or self.socket]
        if self.limited_by == 'memory':
            return [Limit(one['cacheline_latency'], one['memcpy_bandwidth']) for one in measured]
        return [Limit(one['socket_latency'], one['socket_bandwidth']) for one in measured]

    def limit_figures(
        self, prefix: str, small: dict[str, Any], large: dict[str, Any]
    ) -> dict[str, Figure]:
        """Latency and bandwidth of two results as multiple and fraction of the fabric's limit.

        Each is held as :func:`over_limit` says. For a fabric with a device, which nothing but
        itself limits, they are those of a raw TCP socket between the same nodes: it ought to be
        better.
        """
        than = 'limit' if self.limit else 'socket'
        of_port = {} if self.limit else self._port_figure(prefix, large)
        over = over_limit(small['bouts'], [one.latency for one in self.limits])
        size = large['size']
        of = 1 / over_limit(large['bouts'], [size / one.bandwidth for one in self.limits])
        values = {f'{prefix}latency_over_{than}': over, f'{prefix}bandwidth_of_{than}': of}
        return figures_of(limit_measures(prefix), values | of_port) | self.network_figures()

    def _port_figure(self, prefix: str, large: dict[str, Any]) -> dict[str, float]:
        """The fraction of what the ports give that its messages went over, where that is known."""
        carrier = load_catalogue().fabrics[self.fabric].carrier
        rate = payload_rate(reports_in(self.ended_job.folder), carrier)
        if rate is None:
            return {}
        return {f'{prefix}{PORT_FIGURE}': large['size'] / min(large['bouts']) / rate}

    def network_figures(self) -> dict[str, Figure]:
        """The network itself, where a fabric's messages go through it by sockets.

        MPI's latency and bandwidth are held against its, and would be as good a fraction of it
        where it is broken. A network that loses packets, or is slow in one direction, or a kernel
        that gives sockets small buffers, may still be fast enough for all other bounds.
        """
        if len(self.report['hosts']) == 1 or self.limited_by != 'socket':
            return {}
        socket = self.report['limits']['socket']
        ends = socket['ends']
        slower, faster = sorted(end['received'] for end in ends)
        if not slower:
            raise SanityError(
                'the directions of the socket could not be distinguished: the ranks waited for CPUs'
            )
        values = {
            'socket_latency': self.socket.latency * 1e6,
            'socket_bandwidth': self.socket.bandwidth / 1e6,
            'kernel_buffers_of_largest': socket['kernel_sized'],
            'slower_direction_of_faster': slower / faster,
        }
        if (share := share_sent_once(reports_in(self.ended_job.folder))) is not None:
            values['segments_sent_once'] = share
        if speed := min(end.get('link_speed', 0) for end in ends):
            values[LINK_FIGURE] = self.socket.bandwidth / min(speed, ONE_SOCKET)
        return figures_of(OF_NETWORK, values)

    def verify_answers(self) -> None:
        self.hold(self.report, self.launch, self.placement)

    def hold(self, report: Mapping[str, Any], launch: Launch, placement: Placement) -> None:
        """Hold a report of the program against the calls that were counted, and against itself.

        :raises SanityError: with a sentence that says what is wrong.
        """
        self.hold_calls(report, launch)
        with as_sanity_error(self.program):
            self.check_report(report, placement)

    def check_report(self, report: Mapping[str, Any], placement: Placement) -> None:
        """Hold a report against itself, and against what was asked of ranks that are placed so.

        :raises WrongAnswerError: if it is wrong.
        """
        if check := REPORT_CHECKS.get(self.program):
            check(report)

    def hold_calls(self, report: Mapping[str, Any], launch: Launch) -> None:
        """Hold a report against the calls that the witness counted.

        Without a whole report of the witness the proof of the fabric fails, and says so.

        :raises SanityError: if there are fewer than were reported.
        """
        seen = launch.seen
        if seen and seen.complete:
            with as_sanity_error(self.program):
                self.remark(check_calls(report, [one.calls for one in seen.processes]))


def assert_async_progress(family: str, launch: Launch) -> None:
    """:raises SanityError: if the MPI does not say that its asynchronous progress is on."""
    mpi = FAMILIES[family]
    assert mpi.async_progress, f'{mpi.name} has no asynchronous progress'
    if not any(search_line(mpi.async_progress.expect, piece) for piece in launch.output):
        raise SanityError(f'{mpi.name} does not say that its asynchronous progress is on')


@contextmanager
def as_sanity_error(program: str) -> Iterator[None]:
    """Turn a wrong answer, and a report that lacks what it is held by, into what ReFrame calls one.

    :raises SanityError: instead of either.
    """
    try:
        yield
    except WrongAnswerError as error:
        raise SanityError(f'{program}: {error}') from None
    except KeyError as error:
        raise SanityError(
            f'{program}: its report has no {error}, or has it as a word that is not known'
        ) from None


def over_limit(bouts: Sequence[float], limits: Sequence[float]) -> float:
    """The best bout of a result as a multiple of its limit, in seconds both.

    The limit is the faster of the two that were measured just before and just after the bout: the
    host of a virtual machine may move its CPUs together or apart. Where others took the CPUs from
    both, it is the second fastest of all.

    :param bouts: shape (b,): the best seconds of each, of all rounds or of every n-th.
    :param limits: shape (rounds + 1,).
    """
    seconds, place = min((seconds, place) for place, seconds in enumerate(bouts))
    at = place * ((len(limits) - 1) // len(bouts))
    return seconds / min(limits[at], limits[at + 1], sorted(limits)[1])


def limit_measures(prefix: str) -> dict[str, Quantity]:
    """Declare the figures of :meth:`MpiBenchmark.limit_figures`, by their names."""
    lower = Quantity('1', 'lower', must_be_held=True)
    higher = Quantity('1', 'higher', must_be_held=True)
    return {
        **{f'{prefix}latency_over_{than}': lower for than in ('limit', 'socket')},
        **{f'{prefix}bandwidth_of_{than}': higher for than in ('limit', 'socket', 'port')},
        **OF_NETWORK,
    }


def whole_of_best(time: Mapping[str, float]) -> float:
    """The value of :data:`WHOLE_OF_BEST`."""
    return time['best'] / time['median']


def worst_step(curve: Sequence[tuple[int, float]]) -> float:
    """The worst step between neighbouring sizes of a curve, as a factor.

    A message that is r times as long as another takes at least as long, and at most r times as
    long, wherever a time is a constant and a part for each byte: that gives 1 at most. More is the
    factor by which the longer one is too slow (a change of protocol, a dip), or the shorter.

    :param curve: sizes in bytes, more than 0 and ascending, and their times.
    """
    return max(
        max(slower / faster * short / long, faster / slower)
        for (short, faster), (long, slower) in pairwise(curve)
    )


def _socket_in(report: dict[str, Any]) -> Limit:
    socket = report['limits']['socket']
    return Limit(socket['latency'], socket['bandwidth'])


def read_result(
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
        report = strict_json(text)
    except ValueError as error:
        raise SanityError(f'{program}: {RESULT} is not valid: {error}') from None
    if not isinstance(report, dict) or (report.get('program'), report.get('complete')) != (
        program,
        True,
    ):
        raise SanityError(f'{RESULT} is not a complete report of {program}')
    return report


#: The flags of what measures a node: sources/CMakeLists.txt puts them (ASSAY_LIMITS) behind a
#: site's own.
OWN_FLAGS = "the suite's own"

#: What sources/node/vector_kernels.c takes of a site's flags where it cannot ask the processor.
WIDTH_OF_VECTORS = '-msve-vector-bits='

#: The share of the CPU time that other processes, hypervisor and quotas left.
OF_DISTURBANCE = {'undisturbed_share': Quantity('1', 'higher')}

WITHIN_A_NODE = [name for name, one in load_catalogue().fabrics.items() if not one.crosses_nodes]


class NodeBenchmark(MpiBenchmark):
    """A benchmark of ``sources/node``: what a node's cores and memory give, whatever its network.

    One rank is enough. The report tells what disturbed the node while it was measured. No figure
    is of the MPI that starts the ranks, so a partition is measured with one of its environments.
    """

    fabric: str = parameter(offered_features(WITHIN_A_NODE), type=str, loggable=True)
    witness_sections = 'placement,fabric'
    least_ranks = 1

    @run_after('init')
    def run_once(self) -> None:
        mark_who_measures_nodes()
        self.valid_prog_environs = [f'+{_mark(self.fabric)}']

    @property
    def provenance(self) -> Provenance:
        """The provenance of the program; no figure of it depends on the flags of the site.

        One does, on AArch64: that which says how wide the vectors are.
        """
        built = super().provenance
        return built if WIDTH_OF_VECTORS in built.flags else replace(built, flags=OWN_FLAGS)

    def disturbance_figures(self) -> dict[str, Figure]:
        """The figures that :data:`OF_DISTURBANCE` declares."""
        lost = self.report['disturbance']
        share = 1 - sum(
            lost[name] for name in ('foreign_busy_share', 'steal_share', 'throttled_share')
        )
        return figures_of(OF_DISTURBANCE, {'undisturbed_share': max(share, 0.0)})


def mark_who_measures_nodes() -> None:
    """Give one environment of each partition a feature: by which fabric it measures the nodes.

    It is the first of the partition's ``environs``, of those that ReFrame's ``-p`` leaves; an MPI
    that does not answer comes last, and where Spack builds our programs those that it builds for
    come first.
    """
    for partition in rt.runtime().system.partitions:
        able = [
            (environment, name)
            for environment in partition.environs
            for name in WITHIN_A_NODE
            if name in partition.features and name in environment.features
        ]
        if able:
            ours = feature(OURS)
            first, fabric = min(
                able, key=lambda one: ('fault' in one[0].extras, ours not in one[0].features)
            )
            # ReFrame matches environments without their partition, which has objects of its own
            # for them, but shares their lists.
            first._features = [*{*first.features, _mark(fabric)}]


def _mark(fabric: str) -> str:
    """The feature of an environment that measures nodes by this fabric."""
    return f'{MEASURES_NODES}{fabric}'
