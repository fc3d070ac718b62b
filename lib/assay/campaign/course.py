"""The campaign: a healthy run, each fault in the cluster, a healthy run after it, and the table."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from assay import AssayError, paths
from assay.campaign import catalogue, look
from assay.campaign.catalogue import Fault, Severity
from assay.campaign.look import Look, class_of, is_of
from assay.machine.mpi import Mpi
from assay.results.failures import Failure
from assay.tools import ask
from assay.vcluster import faults
from assay.vcluster.cluster import STATE, Cluster, take_down
from assay.vcluster.node import Node

PROGRAMS = paths.ROOT / 'tests' / 'programs' / 'faults'

#: Seconds until Slurm must have noticed that a node does not answer.
PATIENCE = 120


# A fault that is in the cluster, and gone again ---------------------------------------------------


@contextmanager
def injection(cluster: Cluster, fault: Fault, severity: Severity) -> Iterator[None]:
    """Bring a fault into the nodes; afterwards they are as before, and Slurm uses them.

    :raises AssayError: if it cannot be brought in, or healed.
    """
    with ExitStack() as undone:
        undone.callback(faults.heal_parts, cluster, cluster.parts)
        for on_node in fault.on_nodes:
            node = cluster.node(on_node.node)
            command = fault.fill(on_node.run, severity)
            if on_node.undo:
                undone.callback(_finish, node, on_node.undo)
                _finish(node, command)
            else:
                undone.callback(_end, _begin(node, command))
        for line in fault.cluster:
            _inject(cluster, *fault.fill(line, severity).split())
        if fault.moment == 'long before':
            _await_slurm(cluster)
        yield


def _inject(
    cluster: Cluster,
    kind: str,
    name: str,
    value: str | None = None,
    jitter: str = '0',
    peer: str | None = None,
) -> None:
    other = cluster.node(peer) if peer else None
    faults.inject(cluster, cluster.part(name), kind, value, float(jitter), other)


def variables(fault: Fault, severity: Severity, mpi: Mpi) -> dict[str, str]:
    """The variables of every job that the fault is in.

    :param mpi: that the jobs use; its compiler builds what is preloaded.
    :raises AssayError: if that cannot be built.
    """
    found = {name: fault.fill(value, severity) for name, value in fault.variables.items()}
    if fault.preload:
        found['LD_PRELOAD'] = _built(fault.preload, mpi)
    return found


def _built(name: str, mpi: Mpi) -> str:
    # Beside the cluster's own files, which its nodes see: each has a /tmp of its own.
    library = STATE / f'{name}.so'
    command = [mpi.cc, '-shared', '-fPIC', str(PROGRAMS / f'{name}.c'), '-o', str(library)]
    done = ask(command)
    if done.returncode:
        raise AssayError(f'{name}.c does not compile: {done.stderr.strip()}')
    return str(library)


def _finish(node: Node, command: str) -> None:
    node.run(shlex.join(['bash', '-c', command]))


def _begin(node: Node, command: str) -> subprocess.Popen[str]:
    """Start a command on a node that goes on; standard output is the matrix's alone."""
    bash = ['bash', '-c', command]
    return node.spawn(bash, stdout=subprocess.DEVNULL, start_new_session=True)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command on a node, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _await_slurm(cluster: Cluster) -> None:
    """Wait until Slurm knows that a node does not answer."""
    deadline = time.monotonic() + PATIENCE
    while not any(state.startswith('down') for state in cluster.states().values()):
        if time.monotonic() > deadline:
            raise AssayError(f'after {PATIENCE} s Slurm calls no node down')
        time.sleep(0.1)


# The campaign -------------------------------------------------------------------------------------


#: Times that a check may fail, before anything is broken, on a machine that others use as well.
ATTEMPTS = 3

#: The check that builds our programs.
BUILD = 'BuildSources'


@dataclass(frozen=True)
class FaultOutcome:
    """The runs of the suite with a fault and after it.

    :param name: of the fault in the catalogue.
    :param severity: at which it was there.
    :param broken: the run with it.
    :param healed: the run after it.
    :param problem: why it could not be brought in, or healed.
    """

    name: str
    fault: Fault
    severity: Severity
    broken: Look = field(default_factory=Look)
    healed: Look = field(default_factory=Look)
    problem: str = ''

    @property
    def seen(self) -> list[Failure]:
        """The failed or disturbed cases of the fault's check, and of the build it waits for."""
        found = [*self.broken.failed, *self.broken.disturbed]
        return [
            one
            for one in found
            if look.is_of(one.case, self.fault.check) or look.is_of(one.case, BUILD)
        ]

    @property
    def caught(self) -> list[Failure]:
        """Those of the cases seen whose reason names the cause."""
        cause = self.fault.cause
        return [one for one in self.seen if cause and re.search(cause, one.reason)]

    @property
    def words(self) -> list[str]:
        """The sentences on its check; if some name the cause, only their parts that do."""
        parts = [part for one in self.caught for part in one.reason.split('; ')]
        named = [part for part in parts if re.search(self.fault.cause or '', part)]
        return named or [one.reason for one in self.seen]

    @property
    def noted(self) -> str | None:
        """The note of the run that names the cause without a failure; None if there is none."""
        note, cause = self.broken.note, self.fault.cause
        return note if note and cause and re.search(cause, note) else None

    @property
    def wrongly_red(self) -> list[Failure]:
        """Failures of what should have stayed green, and those after it was healed."""
        fault, broken = self.fault, self.broken.failed
        green = [*fault.green, *([] if fault.cause else [fault.check])]
        wrong = [one for one in broken if any(look.is_of(one.case, check) for check in green)]
        if fault.check == catalogue.SCREEN:  # it names the culprit and nobody else
            wrong += [one for one in broken if one not in self.caught]
        return [*wrong, *self.healed.failed]

    @property
    def is_good(self) -> bool:
        """Whether it was caught, or is slight, harmless or known to be missed, and nothing was
        wrongly red."""
        may_be_green = self.severity == 'low' or not self.fault.cause or self.fault.missed
        is_wrong = self.wrongly_red or self.healed.note or self.problem
        return bool(self.caught or may_be_green) and not is_wrong


def course(
    mpi: Mpi, faults: dict[str, Fault], severities: list[Severity], options: Sequence[str]
) -> Iterator[FaultOutcome]:
    """Bring in each fault at each of the severities that it has, one after the other.

    Faults that need the same cluster are brought into the same one.

    :param mpi: that the jobs use.
    :param options: of ``assay run`` and ``assay screen``.
    :raises AssayError: if a check fails before anything is broken.
    """
    clusters: dict[tuple[int, int, int], dict[str, Fault]] = {}
    for name, fault in faults.items():
        size = fault.nodes, fault.cpus, fault.switches
        clusters.setdefault(size, {})[name] = fault
    for size, own in clusters.items():
        yield from _in_one(Cluster(*size), mpi, own, severities, options)


def _in_one(
    cluster: Cluster,
    mpi: Mpi,
    faults: dict[str, Fault],
    severities: list[Severity],
    options: Sequence[str],
) -> Iterator[FaultOutcome]:
    cluster.up()
    try:
        _see_that_all_is_well(faults.values(), options)
        for name, fault in faults.items():
            for severity in [one for one in fault.degrees if one in severities]:
                try:
                    yield _meet(cluster, mpi, name, fault, severity, options)
                except AssayError as error:
                    yield FaultOutcome(name, fault, severity, problem=str(error))
                    take_down()
                    cluster.up()
    finally:
        take_down()


def _see_that_all_is_well(faults: Iterable[Fault], options: Sequence[str]) -> None:
    faults = [*faults]
    screenings = [fault.past for fault in faults if fault.check == catalogue.SCREEN]
    checks = {check for fault in faults for check in [fault.check, *fault.green]}
    if others := sorted(checks - {catalogue.SCREEN}):
        _see_green(others, options)
    for _ in range(max(screenings, default=0)):
        _see_green([catalogue.SCREEN], options)


def _see_green(checks: list[str], options: Sequence[str]) -> None:
    for _ in range(ATTEMPTS):
        failed = look.run_checks(checks, {}, options).failed
        if not failed:
            return
    raise AssayError(f'{failed[0].case} fails where nothing is broken: {failed[0].reason}')


def _meet(
    cluster: Cluster,
    mpi: Mpi,
    name: str,
    fault: Fault,
    severity: Severity,
    options: Sequence[str],
) -> FaultOutcome:
    checks = [fault.check, *fault.green]
    given = variables(fault, severity, mpi)
    since = time.time()
    if fault.moment == 'under a running job':
        with look.started_run(checks, given, options) as run:
            look.await_ranks(since)
            with injection(cluster, fault, severity):
                broken = look.await_end(run, checks)
    else:
        with injection(cluster, fault, severity):
            broken = look.run_checks(checks, given, options, is_kept=False)
    return FaultOutcome(name, fault, severity, broken, look.run_checks(checks, {}, options))


# Its table ----------------------------------------------------------------------------------------


HEADER = ('fault', 'severity', 'caught by', 'which said', 'stayed green', 'after it was healed')

#: Where its check is green.
NOTHING = '**nothing**'

#: Where its check is green, and the run names the cause all the same.
NOTED = '**green**, with a note'

#: Where its check is red, without words of the cause.
OTHERWISE = 'red, without the cause'

#: Where its check has to be green.
HARMLESS = 'nothing, as it should be'


def page_row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f'| {" | ".join(cell.replace("|", chr(92) + "|") for cell in cells)} |'


def heading() -> list[str]:
    """The first two rows."""
    return [page_row(HEADER), page_row(['---'] * len(HEADER))]


def outcome_row(outcome: FaultOutcome) -> str:
    """The row of an outcome."""
    fault = outcome.fault
    value = fault.severities.get(outcome.severity)
    by = HARMLESS
    if fault.cause:
        by = OTHERWISE if outcome.seen else NOTED if outcome.noted else NOTHING
    if outcome.caught:
        by = _short(fault.check)
    elif fault.missed:
        by += f': {fault.missed}'
    red = [one.case for one in outcome.broken.failed]
    green = [check for check in fault.green if not any(is_of(case, check) for case in red)]
    if outcome.problem:
        green = []
    return page_row(
        [
            f'`{outcome.name}`: {fault.fill(fault.what, outcome.severity)}',
            outcome.severity if value is not None else 'there or not',
            by,
            ' '.join(outcome.problem.split()) or '<br>'.join(outcome.words) or outcome.noted or '-',
            ', '.join(map(_short, green)) or '-',
            '<br>'.join(one.reason for one in outcome.healed.failed)
            or outcome.healed.note
            or ('not run' if outcome.problem else 'green'),
        ]
    )


def _short(check: str) -> str:
    """A check and the number of nodes that it has."""
    scale = re.search(r'%scale=(\w+)', check)
    return f'{class_of(check)} {scale[1]}' if scale else check
