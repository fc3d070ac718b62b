"""The report of the witness: its fields.

``docs/report-format.md`` explains the fields. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from assay.text import parse_cpus

SCHEMA: Final = 3
#: Partners have no kinds, and there are no collectives.
WITHOUT_KINDS: Final = 2
#: As that, its variables are OpenMP's alone, and a rank that differs has all of its own; its bytes
#: of MPI_Start and MPI_Startall count receives too.
OLD_SCHEMA: Final = 1
#: How a variable begins that reports of both have.
OLD_VARIABLES = ('OMP_', 'GOMP_', 'KMP_')
#: Of a core of any server's x86-64 CPU: also if every core is shared, the fewest are known.
FEWEST_ADDERS = 3
#: Values of a variable, where ranks differ, before the rest is only counted.
MOST_VALUES = 4


def _cpus(value: object) -> frozenset[int]:
    if not isinstance(value, str):
        raise ValueError('a list of numbers must be a string')
    return parse_cpus(value)


Cpus = Annotated[frozenset[int], BeforeValidator(_cpus)]


class _Record(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True, strict=True, allow_inf_nan=False)


class Library(_Record):
    """The MPI library of rank 0."""

    library: str
    standard: str
    thread_level: str
    path: str


class LoadedLibrary(_Record):
    """A shared library that a rank has loaded, by its real path.

    ``version`` is what it tells itself; empty for nothing. ``build_id`` is None in reports of
    earlier witnesses, which had a few libraries alone, by the paths that they were loaded by.
    """

    path: str
    version: str = ''
    build_id: str | None = None

    @model_validator(mode='before')
    @classmethod
    def _of_path(cls, told: object) -> object:
        return {'path': told} if isinstance(told, str) else told


class Domain(_Record):
    """A NUMA domain or package with the CPUs it has, allowed or not."""

    id: int
    cpus: Cpus


class Pcie(_Record):
    """The slot of a device: lanes, and transfers per second and lane in 10^9.

    ``widest`` and ``fastest`` are what both its ends could do.
    """

    width: int
    widest: int
    speed: float
    fastest: float


class Device(_Record):
    """A network device, and what its counters counted between MPI_Init and MPI_Finalize.

    ``kind`` is loopback, ethernet, infiniband, cxi, or another of Linux's. ``downs`` is how often
    its link went down; None if nobody counts that. ``mtu`` is in bytes, ``speed`` in bytes per
    second as the driver of a real device states it; 0 if unknown. ``up`` is whether its link was at
    the end; ``state`` is DOWN, INIT or ARMED of a port of an RDMA device that is not up. An
    interface may be part of a ``master``, a bond or bridge; a port may have an ``interface``.
    ``layer`` and ``link`` are of ports of RDMA devices: Ethernet or InfiniBand, and ``4X HDR``.
    ``nic`` is its PCI function, ``numa`` its NUMA domain, in ``package``.
    """

    name: str
    kind: str
    sent: int
    received: int
    downs: int | None = None
    mtu: int = 0
    speed: int = 0
    up: bool | None = None
    state: str = ''
    master: str = ''
    interface: str = ''
    layer: str = ''
    link: str = ''
    nic: str = ''
    virtual: bool = False
    numa: int | None = None
    package: int | None = None
    pcie: Pcie | None = None


class Clock(_Record):
    """A host's clocks against those of rank 0's host; ``day`` is how far that of the day is ahead.

    None in reports of earlier witnesses.
    """

    offset: float
    error: float
    day: float | None = None


class Disturbance(_Record):
    """Shares of the time of the CPUs of a host's ranks that was taken from them or withheld.

    ``foreign_share`` went to other processes, ``steal_share`` to the hypervisor's other guests,
    ``throttled_share`` was withheld by quotas. ``waited_share`` is the share of its wall time that
    the rank which waited most had threads ready to run and no CPU for them. ``thermal_events`` are
    times that heat or power slowed a CPU, where CPUs count them.

    ``most_additions`` and ``least_additions`` are those that the core of a rank carried out in a
    cycle, of all ranks at their start and end; 0 where no other guest can share a core unseen.
    ``most_core_latency`` and ``least_core_latency`` are how many seconds a cache line took from one
    rank's core to the next one's, of pairs of ranks the longest, at start or end; 0 where a
    hypervisor cannot move cores, or it is not known.
    """

    seconds: float
    foreign_share: float
    steal_share: float
    throttled_share: float
    waited_share: float
    thermal_events: int = 0
    most_additions: float = 0.0
    least_additions: float = 0.0
    most_core_latency: float = 0.0
    least_core_latency: float = 0.0

    @property
    def core_share(self) -> float:
        """The share of a core that another guest took, of the rank that lost most."""
        most = max(self.most_additions, FEWEST_ADDERS)
        return 1 - self.least_additions / most if self.least_additions else 0.0

    @property
    def core_move(self) -> float:
        """How many times as long a cache line took at the end as at the start, or the reverse."""
        return self.most_core_latency / self.least_core_latency if self.least_core_latency else 1.0


class Machine(_Record):
    """The hardware and settings of a host; empty where they could not be read.

    ``kernel`` is its release, ``huge_pages`` the setting of transparent ones. Switches are ``on``
    or ``off``; ``governor`` has strokes between where CPUs differ.
    """

    kernel: str = ''
    processor: str = ''
    microcode: str = ''
    governor: str = ''
    boost: str = ''
    smt: str = ''
    huge_pages: str = ''
    numa_balancing: str = ''


class Host(_Record):
    """A host of the job. A core's number is the lowest CPU number of its hardware threads."""

    name: str
    cpus: Cpus
    allowed: Cpus
    cores: Cpus
    numa: list[Domain]
    packages: list[Domain] = []
    devices: list[Device] = []
    clock: Clock | None = None
    disturbance: Disturbance | None = None
    machine: Machine | None = None


class MemoryPolicy(_Record):
    """The memory policy of a process."""

    policy: str
    nodes: Cpus


class Thread(_Record):
    """A thread; ``busy`` are the CPU seconds that it used."""

    tid: int
    name: str
    cpus: Cpus
    cores: Cpus
    last_cpu: int
    busy: float
    origin: Literal['main', 'mpi', 'program']


class Socket(_Record):
    """A TCP socket, its bytes of payload, and what the kernel knows of the way to the other end.

    Of ``segments`` ``resent`` were sent again. ``round_trip`` is the shortest; ``rate``, in bytes
    per second, is how fast data arrived last, if nothing but the way held it back, and ``pace`` the
    geometric mean of that rate at ``looks`` looks while it sent. None if nothing was measured.
    """

    local: str
    remote: str
    device: str | None = None
    sent: int
    received: int
    segments: int = 0
    resent: int = 0
    round_trip: float | None = None
    rate: float | None = None
    pace: float | None = None
    looks: int = 0


class Differs(_Record):
    """The values in which a rank differs from rank 0; all others are the same.

    The MPI and the libraries are whole, the variables and settings those that differ: None for one
    that it has not.
    """

    mpi: dict[str, str] = {}
    libraries: list[LoadedLibrary] = []
    environment: dict[str, str | None] = {}
    settings: dict[str, str | None] = {}


class Startup(_Record):
    """Seconds from the launcher to a rank's ``main``, where that is known, and in ``MPI_Init``."""

    main: float | None = None
    init: float


class Call(_Record):
    """The calls of one MPI function by a rank; ``time`` is an estimate if ``timed`` < ``count``."""

    count: int
    timed: int
    time: float
    bytes: int


class Wait(_Record):
    """The causes of waiting in the ``analysed`` seconds of one MPI call."""

    analysed: float
    late_sender: float
    late_receiver: float
    imbalance: float


class SiteWait(Wait):
    """As of a call; and the rank that this one waited longest for there, and how long."""

    for_rank: int | None = None
    for_time: float = 0.0


class Site(_Record):
    """The MPI calls of a rank from one place, in one phase of the program (0: none).

    ``offset`` is the address in the object file, of the call's instruction or just behind it.
    ``computed`` is what the program took before the calls, since it last returned from MPI; None in
    reports of earlier versions.
    """

    offset: str
    call: str
    phase: int = 0
    count: int
    time: float
    computed: float | None = None
    bytes: int
    waits: SiteWait | None = None


class ObjectFile(_Record):
    """The program or a library with the places in it that called MPI, those that took longest."""

    object: str
    build_id: str
    calls: list[Site]


class Phase(_Record):
    """A phase that the program began by ``MPI_Pcontrol(phase)``: how often, and how long it was."""

    phase: int
    begun: int
    wall: float


class Partner(_Record):
    """Messages to another rank; -1 for all outside MPI_COMM_WORLD.

    Those of ``neighbours`` are of the collectives of a topology.
    """

    rank: int
    kind: Literal['', 'one_sided', 'neighbours'] = ''
    messages: int
    bytes: int
    sizes: dict[int, int] = {}


class Collectives(_Record):
    """The messages that collectives send, by their arguments, from a rank to each of ``ranks``."""

    ranks: Annotated[str, Field(pattern=r'^\d+(-\d+)?(,\d+(-\d+)?)*$')]
    messages: int
    bytes: int
    sizes: dict[int, int] = {}

    @property
    def spans(self) -> list[range]:
        """The ranks: a job of thousands has them thousands of times."""
        ends = (part.split('-') for part in self.ranks.split(','))
        return [range(int(one[0]), int(one[-1]) + 1) for one in ends]


class SentByMpi(_Record):
    """All messages to a rank that Open MPI's monitoring counted, those of collectives too."""

    rank: int
    messages: int
    bytes: int


class Process(_Record):
    """A rank. An incomplete report holds its placement only."""

    rank: int
    host: str
    pid: int
    cpus: Cpus
    cores: Cpus
    numa: Cpus
    packages: Cpus
    last_cpu: int
    memory: MemoryPolicy
    cpu_limit: float | None
    threads: list[Thread]
    sockets: list[Socket] = []
    differs: Differs = Differs()
    startup: Startup | None = None
    wall: float = 0.0
    mpi_time: float = 0.0
    mpi_threads: int = 1
    calls: dict[str, Call] = {}
    waits: dict[str, Wait] = {}
    waits_incomplete: bool = False
    partners: list[Partner] = []
    collectives: list[Collectives] = []
    collectives_incomplete: bool = False
    sent_by_mpi: list[SentByMpi] | None = None
    sites: list[ObjectFile] = []
    phases: list[Phase] = []
    state_bytes: int = 0


class EndedRank(_Record):
    """A rank that ended before MPI_Finalize, and the call it was in since ``since``."""

    rank: int
    reason: str
    inside: str | None
    since: float | None = None
    wall: float
    mpi_time: float
    calls: dict[str, Call]

    @property
    def words(self) -> str:
        """How the rank ended, and what it was inside since when."""
        where = 'outside MPI'
        if self.inside:
            where = f'inside {self.inside}'
            if self.since is not None:
                where += f' since {self.since:.1f} s, for {self.wall - self.since:.1f} s'
        return f'rank {self.rank} ended by {self.reason} after {self.wall:.1f} s, {where}'


class Finalized(_Record):
    """A rank that left ``MPI_Finalize``, after so many seconds in it."""

    rank: Annotated[int, Field(ge=0)]
    finalize: float


#: By build id (or path) and offset: function, file and line; empty and 0 if unknown.
Lines = dict[str, dict[str, tuple[str, str, int]]]


class _Told(_Record):
    """A record of a file that has more fields than these."""

    model_config = ConfigDict(extra='ignore')


class PlannedGain(_Told):
    """The share of the wall time that a plan saves, as fractions."""

    expected: float
    low: float
    high: float


class PlannedRank(_Told):
    """A rank's seat in a plan: that of rank ``seat_of``, behind the switch of a number."""

    rank: int
    seat_of: int
    switch: int


class PlannedTurns(_Told):
    """The job as planned beside the job as it is, run in turn: its verdict and change."""

    verdict: str
    ratio: float | None


class KeptPlan(_Told):
    """Where ``assay place`` said that the ranks of the job that started then should sit."""

    started: str
    verdict: str
    why: str
    gain: PlannedGain
    ranks: list[PlannedRank]
    turns: PlannedTurns | None = None

    @property
    def moves(self) -> bool:
        """Whether it says that ranks should change their seats."""
        moved = any(one.rank != one.seat_of for one in self.ranks)
        return moved and self.verdict != 'leave it'


class Report(_Record):
    """The report that the witness wrote.

    ``ended`` is what ranks appended to ``<report>.ranks``, and ``finalized`` to
    ``<report>.finalized``. ``lines`` is what ``<report>.lines`` says of the sites, ``plan`` what
    ``<report>.plan`` says of the seats.
    """

    schema_: Literal[1, 2, 3] = Field(alias='schema')  # OLD_SCHEMA to SCHEMA
    witness: str
    complete: bool
    sections: list[Literal['placement', 'fabric', 'profile', 'matrix']]
    command: list[str]
    started: str
    ranks: Annotated[int, Field(ge=1)]
    mpi: Library
    libraries: list[LoadedLibrary]
    environment: dict[str, str]
    settings: dict[str, str] = {}
    hosts: list[Host]
    processes: list[Process]
    ended: list[EndedRank] = []
    finalized: list[Finalized] = []
    lines: Lines = {}
    plan: KeptPlan | None = None

    @model_validator(mode='after')
    def _is_whole(self) -> Report:
        hosts = {host.name for host in self.hosts}
        needed = ['wall', 'sockets'] if self.complete else []
        if self.complete and 'profile' in self.sections:
            needed += ['mpi_time', 'calls']
        if self.complete and 'matrix' in self.sections:
            needed += ['partners']
        if len(hosts) < len(self.hosts):
            raise ValueError('hosts: one of them is there twice')
        if [process.rank for process in self.processes] != list(range(self.ranks)):
            raise ValueError(f'processes: not those of ranks 0 to {self.ranks - 1} in their order')
        for process in self.processes:
            where = f'processes.{process.rank}'
            if process.host not in hosts:
                raise ValueError(f'{where}.host: {process.host!r} is not one of the hosts')
            for name in needed:
                if name not in process.model_fields_set:
                    raise ValueError(f'{where}.{name}: Field required in a complete report')
            if lost := set(process.waits) - set(process.calls):
                raise ValueError(f'{where}.waits.{min(lost)}: not one of the calls')
            for partner in process.partners:
                if not -1 <= partner.rank < self.ranks:
                    raise ValueError(f'{where}.partners: there is no rank {partner.rank}')
            for sent in process.sent_by_mpi or []:
                if not 0 <= sent.rank < self.ranks:
                    raise ValueError(f'{where}.sent_by_mpi: there is no rank {sent.rank}')
            for one in process.collectives:
                if any(not span or span[-1] >= self.ranks for span in one.spans):
                    raise ValueError(f'{where}.collectives: these are no ranks: {one.ranks}')
        return self

    @property
    def has_profile(self) -> bool:
        """Whether it says where time went."""
        return self.complete and 'profile' in self.sections

    @property
    def has_matrix(self) -> bool:
        """Whether it says who sent to whom."""
        return self.complete and 'matrix' in self.sections

    @property
    def has_kinds(self) -> bool:
        """Whether it tells messages, collectives and one-sided calls apart."""
        return self.schema_ > WITHOUT_KINDS

    @property
    def thread_time(self) -> float:
        """The wall time of all ranks' threads that called MPI, which shares of a job are of."""
        return sum(process.wall * process.mpi_threads for process in self.processes)

    def environment_of(self, process: Process) -> dict[str, str]:
        """The variables of MPI and OpenMP that a rank has."""
        merged = self.environment | self._otherwise(process)
        return {name: value for name, value in merged.items() if value is not None}

    def _otherwise(self, process: Process) -> dict[str, str | None]:
        """The variables that a rank has otherwise than rank 0; None for one that it has not."""
        own = process.differs.environment
        if self.schema_ == OLD_SCHEMA and 'environment' in process.differs.model_fields_set:
            return dict.fromkeys(self.environment) | own
        return own

    def variables(self) -> dict[str, str]:
        """The variables of all ranks.

        Where ranks differ their values stand with strokes between, and - for not having it.
        """
        found = self.values_of_variables()
        return {name: _joined(sorted(found[name])) for name in sorted(found)}

    def values_of_variables(self) -> dict[str, set[str]]:
        """The values that each variable has in some rank, - for not having it."""
        values = {name: {value} for name, value in self.environment.items()}
        for process in self.processes:
            for name, value in self._otherwise(process).items():
                values.setdefault(name, {'-'}).add('-' if value is None else value)
        return values

    def by_host(self) -> dict[str, list[Process]]:
        """The ranks on each host, by its name."""
        found: dict[str, list[Process]] = {host.name: [] for host in self.hosts}
        for process in self.processes:
            found[process.host].append(process)
        return found


def _joined(values: list[str]) -> str:
    more = f' / ... ({len(values)} values)' if len(values) > MOST_VALUES else ''
    return ' / '.join(values[:MOST_VALUES]) + more
