"""One start of an MPI program in a job: what was asked of it, and every way it ran otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from assay import witness
from assay.config.fabrics import load_catalogue
from assay.files import write_whole
from assay.job.output import Output, TooMuchError, first_match, reason_in_output
from assay.layout.launchers import is_srun
from assay.layout.layouts import GIVEN, Placement, layout_of
from assay.machine.slurm import names_of_hosts
from assay.mpis import FAMILIES
from assay.programs.figure import Figure, Quantity, figures_of
from assay.text import plain
from assay.witness import profile
from assay.witness.disturbance import CORE_LATENCY, DISTURBANCES, disturbance_figures
from assay.witness.profile import STARTUP, startup_figures
from assay.witness.rails import rails_of, verify_rails
from assay.witness.settings import verify_settings
from assay.witness.traffic import verify_links, verify_traffic
from assay.witness.variables import LONGEST, of_ranks

Value = TypeVar('Value')


class single_cached_property(Generic[Value]):  # noqa: N801
    """A cached property with room for one value: that of the object that was asked last.

    With functools.cached_property a thousand objects would keep a value each.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self._held: tuple[object, Value] | None = None
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # which asks for it on the class
        if self._held is None or self._held[0] is not instance:
            self._held = None  # the old one goes before the new one is made
            self._held = instance, self._function(instance)
        return self._held[1]


#: The figures of a profile that the witness kept.
OF_PROFILE = {
    'comm_share': Quantity('1', 'lower'),
    'imbalance_share': Quantity('1', 'lower'),
    'messages': Quantity('1', 'exact'),
    'bytes': Quantity('B', 'exact'),
}

#: All figures that the witness may give; those with a star are of a run in a series.
OF_WITNESS = {
    **OF_PROFILE,
    'imbalance_share_*': OF_PROFILE['imbalance_share'],
    **dict.fromkeys(DISTURBANCES, Quantity('1', 'lower')),
    CORE_LATENCY: Quantity('ns', 'lower'),
    **dict.fromkeys(STARTUP, Quantity('s', 'lower')),
}

#: The witness's report, in the folder of the launch.
WITNESS = 'witness.json'

#: Beside it, how long MPI_Finalize took; a pattern, as it may be missing.
FINALIZED = f'{WITNESS}.finalized*'

#: What a launch in a folder of its own leaves there beside that report.
OUTPUT, ERROR, EXIT_CODE = 'out', 'err', 'exit_code'

# What an MPI says of a launcher without the PMI that it was built for, whichever MPI that program
# is really built with. Others let each process be a rank 0 of 1.
_NO_PMI = re.compile('|'.join(mpi.refusal for mpi in FAMILIES.values() if mpi.refusal))


def line_in_folder(folder: str, command: str) -> str:
    """A line of a job's script: a command in a folder. Its failure does not end the job."""
    return f'(cd {folder} && {command} >{OUTPUT} 2>{ERROR}; echo $? >{EXIT_CODE})'


def reports_in(folder: Path) -> Iterator[witness.Report]:
    """The witness's reports on the launches of a job, from its folder if that is still there."""
    for path in folder.rglob(WITNESS):
        with suppress(witness.WitnessError):
            yield witness.read_witness(path)


def tell_names(folder: Path, nodes: Sequence[str]) -> None:
    """Leave Slurm's names of the hosts in a job's folder, where they call themselves otherwise.

    :param nodes: of the job, as Slurm calls them.
    """
    hosts: dict[str, None] = {}
    for path in folder.rglob(WITNESS):
        with suppress(
            OSError, ValueError, KeyError, TypeError
        ):  # what is wrong with it is reported later
            hosts |= dict.fromkeys(host['name'] for host in json.loads(path.read_text())['hosts'])
    if nodes and (names := names_of_hosts(hosts, nodes)):
        write_whole(folder / witness.HOSTS, json.dumps(names))


class LaunchError(Exception):
    """The program did not run to its end, or not as asked; the message is one sentence."""


#: Why there may be no report of ranks in containers.
_OF_CONTAINER = (
    ' The container has to have the variables of the job (LD_PRELOAD), its folder, and that of '
    'the library.'
)

#: What keeps them from a network that their node has (eth-cscs/sarus #28, NVIDIA/nccl #451).
_OF_DEVICE = (
    '; ranks in containers need the files of the device (those of /dev/infiniband, /dev/cxi* or '
    '/dev/hfi1*), its libraries, and locked memory without a limit'
)

#: Hydra has srun start a process on each node, which Slurm may bind
#: (mathworks/matlab-parallel-slurm-plugin #5, aws/aws-parallelcluster #3788).
_OF_LAUNCHER = (
    '; where Slurm binds tasks by itself, it binds what the launcher starts on each node: put '
    "SLURM_CPU_BIND=none into the partition's env_vars"
)

#: How an MPI says that it cannot use a device.
_NO_DEVICE = re.compile(r'(?i)\bdevices?\b|transport|provider|unreachable|no components')

#: Likewise that its launcher does not reach it, where that hands each rank an open file.
_NO_FILE = re.compile(r'PMI_Get_appnum returned|PMIU_write error')
_OF_FILE = (
    '; the open file by which its launcher speaks to a rank ends at the container: begin the '
    "container's words with -pmi-port, an option of that launcher"
)

#: And that memory is not shared.
_NO_MEMORY = re.compile(r'(?:sysv|posix|cma)/memory - |process_vm_readv|user namespaces')
_OF_MEMORY = (
    '; to share memory the containers of a node need the same IPC namespace (Podman: --ipc=host) '
    'and user namespace (Podman: no --userns; Apptainer: --sharens)'
)


@dataclass(frozen=True, eq=False)
class Launch:
    """A program that was started by an MPI's launcher and has ended.

    :param program: its name, as it begins its error messages.
    :param command: file name of what rank 0 runs; None where a script decides that.
    :param launcher: ReFrame's name of what started it.
    :param family: of the MPI.
    :param fabric: that was forced, or the best that the MPI could have taken.
    :param is_forced: whether it was forced.
    :param layout: that was asked for.
    :param placement: ranks and threads of each node, as the layout gave them.
    :param ranks: of all nodes together.
    :param folder: where it ran.
    :param output: its standard output and error.
    :param exit_code: of the launcher.
    :param ports: of the partition, with their rates in Gbit/s; empty where its file names none.
    :param is_contained: whether each rank was started in a container.
    """

    program: str
    command: str | None
    launcher: str
    family: str
    fabric: str
    layout: str
    placement: Placement
    ranks: int
    folder: Path
    output: Output
    exit_code: int
    ports: Mapping[str, float] = field(default_factory=dict)
    is_forced: bool = True
    is_contained: bool = False

    @property
    def text(self) -> str:
        """The program's own output, without the lines that the MPI logs.

        :raises LaunchError: if that is more than a program writes.
        """
        try:
            return self.output.text
        except TooMuchError as error:
            raise LaunchError(f'{self.program}: {error}') from None

    @property
    def reason(self) -> str:
        """The words of the output that say best why it failed."""
        return reason_in_output(self.program, self.output)

    def assert_ended_well(self) -> None:
        """:raises LaunchError: if launcher and MPI are strangers, or the exit code is not 0."""
        if told := self._told_by_strangers():
            mpi = FAMILIES[self.family].name
            remedy = f"start it by {mpi}'s own launcher"
            if self.is_contained:
                remedy = (
                    'ranks in containers need what the launcher gives them: its variables, open '
                    'files (MPICH), folder in /tmp and user (Open MPI)'
                )
            elif is_srun(self.launcher):
                remedy = (
                    f'choose the PMI that {mpi} was built for, by SLURM_MPI_TYPE or --mpi '
                    f'(`srun --mpi=list` shows which there are)'
                )
            raise LaunchError(
                f'{self.launcher} and {mpi} did not find each other: {told}; {remedy}'
            )
        if self.exit_code:
            raise LaunchError(
                f'{self.program} ended with exit code {self.exit_code}: {self.reason}'
                f'{self._lacked_inside}'
            )

    @property
    def _lacked_inside(self) -> str:
        """What ranks in containers lacked, by the words that they ended with; empty if unknown."""
        if not self.is_contained:
            return ''
        if _NO_FILE.search(self.reason):
            return _OF_FILE
        shares_memory = load_catalogue().fabrics[self.fabric].carrier == 'memory'
        if shares_memory and _NO_MEMORY.search(self.reason):
            return _OF_MEMORY
        return self._of_device if _NO_DEVICE.search(self.reason) else ''

    @property
    def _of_device(self) -> str:
        """What to look for if the fabric's device was not used; empty if it needs none."""
        needs_device = load_catalogue().fabrics[self.fabric].needs_device
        return _OF_DEVICE if self.is_contained and needs_device else ''

    def _told_by_strangers(self) -> str | None:
        """The sign that the launcher speaks another PMI than the MPI; None if there is none."""
        if refusal := first_match(_NO_PMI, self.output):
            return refusal[0]
        try:
            report = self._report
        except witness.WitnessError:
            return None
        mpi = FAMILIES[self.family]
        if report.ranks > 1 or self.ranks == 1 or witness.verify_mpi(report, mpi.library, mpi.name):
            return None
        # Many programs are content with that.
        return f'{self.program} ran as rank 0 of 1, not as {self.ranks} ranks'

    # Of ten thousand ranks it takes some 100 MB: a run keeps that of one job at a time.
    @single_cached_property
    def _report(self) -> witness.Report:
        return witness.read_witness(self.folder / WITNESS)

    @property
    def seen(self) -> witness.Report | None:
        """The witness's report, also of a program that did not end; None if there is no report."""
        try:
            return self._report
        except witness.WitnessError:
            return None

    @property
    def witnessed(self) -> witness.Report:
        """The witness's report on a program that has ended.

        :raises LaunchError: if there is no report, or it is not whole.
        """
        try:
            report = self._report
        except witness.WitnessError as error:
            why = _OF_CONTAINER if self.is_contained else ''
            raise LaunchError(f'{error}{why} ({self.reason})') from None
        if not report.complete:
            raise LaunchError(f'{self.program} did not reach MPI_Finalize: {self.reason}')
        return report

    def assert_as_asked(self, but_single_nodes: bool = False) -> None:
        """Hold MPI, ranks, placement, fabric, links, ports and settings against what was asked.

        :param but_single_nodes: whether what is wrong with single nodes, their placement, links,
            ports and settings, is for the caller to tell.
        :raises LaunchError: with the first fault that is found.
        """
        for fault in self._faults(but_single_nodes):
            if fault:
                raise LaunchError(fault)

    def assert_started_as_asked(self) -> None:
        """Hold program, MPI and ranks against what was asked for, of one that need not have ended.

        :raises LaunchError: with the first fault that is found, or if there is no report.
        """
        for fault in self._faults_of_start(self.seen or self.witnessed):
            if fault:
                raise LaunchError(fault)

    def placement_faults(self) -> dict[str, str]:
        """Faults of the placement by host, of the hosts that have one.

        :raises LaunchError: if there is no report, or it is not whole.
        """
        layout, report = layout_of(self.layout), self.witnessed
        found = {}
        for host in report.hosts:
            ranks = [one for one in report.processes if one.host == host.name]
            alone = report.model_copy(update={'hosts': [host], 'processes': ranks})
            if fault := layout.verify(alone, self.placement):
                found[host.name] = fault
        return found

    def _faults_of_start(self, report: witness.Report) -> Iterator[str | None]:
        mpi = FAMILIES[self.family]
        ran = ' '.join(report.command[:1])
        if self.command not in (None, Path(ran).name):
            yield f'the report of the witness is of {ran!r}, and not of {self.program}'
        yield witness.verify_mpi(report, mpi.library, mpi.name)
        if report.ranks != self.ranks:
            yield f'{self.program} ran with {report.ranks} rank(s) instead of {self.ranks}'

    def _faults(self, but_single_nodes: bool) -> Iterator[str | None]:
        catalogue = load_catalogue()
        report = self.witnessed
        yield from self._faults_of_start(report)
        if not but_single_nodes:
            fault = layout_of(self.layout).verify(report, self.placement)
            yield fault and fault + self._of_launcher(fault)
        fabric = catalogue.fabrics[self.fabric]
        # Before the proof of the fabric, which an MPI may leave for what is wrong here.
        yield verify_settings(report, fabric.carrier, only_if_all=but_single_nodes)
        if self.ranks > 1 and not self.is_forced:
            yield self._not_the_best(report)
        elif self.ranks > 1:  # a single rank sends nothing, so no MPI says which way
            counted = verify_traffic(report, fabric.carrier, self.fabric)
            # Ranks of one host need no network, and an MPI may say that they used shared memory.
            if not fabric.needs_device or len(report.hosts) > 1:
                stated = catalogue.verify(self.fabric, self.family, self.output)
                if stated and counted:
                    asked = f'fabric {self.fabric} was asked for, but '
                    stated += f'; {counted.removeprefix(asked)}'
                yield stated and stated + self._of_device
            yield counted and counted + self._of_device
        if not but_single_nodes:
            yield verify_links(report, fabric.carrier)
            yield verify_rails(report, fabric.carrier, self.ports)
            yield self._ports_of_layout[1]

    def _of_launcher(self, fault: str) -> str:
        """What to set where all ranks may have the binding of what started them on their node."""
        is_shared = self.layout == GIVEN and ' are bound to ' in fault
        return _OF_LAUNCHER if is_shared and not is_srun(self.launcher) else ''

    @property
    def lacks(self) -> str | None:
        """Why its hosts do not have what the layout asks for, in a sentence; None if they do."""
        # Of some checks the job leaves no report.
        return self._ports_of_layout[0] if layout_of(self.layout).side else None

    @single_cached_property
    def _ports_of_layout(self) -> tuple[str | None, str | None]:
        carrier = load_catalogue().fabrics[self.fabric].carrier
        rails = rails_of(self.witnessed, carrier, self.ports)
        return layout_of(self.layout).verify_ports(self.witnessed, self.placement, rails)

    def _not_the_best(self, report: witness.Report) -> str | None:
        """The fault that an MPI, left to choose, took a worse way than the best fabric there is.

        A device of another kind than the fabric's is as good.
        """
        catalogue, mpi = load_catalogue(), FAMILIES[self.family]
        best = catalogue.fabrics[self.fabric]
        carriers = {best.carrier: None}
        if best.crosses_nodes:
            carriers |= {f.carrier: None for f in catalogue.fabrics.values() if f.needs_device}
        counted = [verify_traffic(report, carrier, self.fabric) for carrier in carriers]
        shown = catalogue.fabrics_shown(mpi.key, self.output)
        if len(report.hosts) == 1:  # a network is open then as well, and for nobody
            shown = [name for name in shown if not catalogue.fabrics[name].needs_device]
        is_stated = not shown or any(catalogue.fabrics[n].carrier in carriers for n in shown)
        if None in counted and is_stated:
            return None
        asked = f'fabric {self.fabric} was asked for, but '
        found = [f'its messages went by {" or ".join(shown)}'] if not is_stated else []
        found += [counted[0].removeprefix(asked)] if counted[0] and None not in counted else []
        if words := catalogue.words(self.fabric, mpi.key, self.output):
            found.append(f'it says: {"; ".join(words)}')
        return (
            f'nothing was forced, and {mpi.name} did not take {self.fabric}, the best that the '
            f'partition has: {"; ".join(found)}; {self._to_set(report)}{self._of_device}'
        )

    def _to_set(self, report: witness.Report) -> str:
        """How to make the MPI take the fabric: the variables to set, with the values in the way."""
        recipe = load_catalogue().recipe(self.fabric, self.family)
        assert recipe, f'{self.family} has no way to force {self.fabric}'
        ranks = of_ranks(report)
        told = [
            f'{name} to {value} in place of {plain("|".join(sorted(ranks[name])), LONGEST)}'
            for name, value in recipe.env.items()
            if ranks.get(name, set()) - {value}
        ]
        if told:
            return f'set {", ".join(told)}'
        return f'what forces it is {" ".join(f"{k}={value}" for k, value in recipe.env.items())}'

    def witness_figures(self) -> dict[str, Figure]:
        """Figures of the witness: disturbance, time to start and end, and where the time went.

        The last if the witness kept a profile.
        """
        figures = disturbance_figures(self.witnessed) | startup_figures(self.witnessed)
        if not self.witnessed.has_profile:
            return figures
        seen = profile.figures(self.witnessed)
        values = {name: getattr(seen, name) for name in OF_PROFILE}
        return figures | figures_of(OF_PROFILE, values)
