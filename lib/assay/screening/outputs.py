"""The files of a screening's job: from them to what was measured, and how they are kept beside it.

They are text, and stand together in one file of JSON, which gzip packs to a tenth. Figures are
computed again from them.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from assay import AssayError, witness
from assay.config.fabrics import load_catalogue
from assay.files import DAMAGED, explain_errors, write_whole
from assay.machine.slurm import names_of_hosts
from assay.screening.measured import MEASURES, MODES, PARTS_OF_NOISE, Links, Screening
from assay.screening.where import Where
from assay.text import plain
from assay.witness import HOSTS, names_in
from assay.witness.rails import faults_of_ports
from assay.witness.report import Machine
from assay.witness.settings import OF_MEMORY, by_host, label, setting_in_words
from assay.witness.traffic import links_down, times

#: What the job leaves: of `nodes`, and of the two tournaments of `pairs` (checks/mpi/screen.py).
NODES, WITNESS = 'nodes/result.json', 'nodes/witness.json'
TOURNAMENTS = ('first/result.json', 'result.json')
WITNESSES_OF_TOURNAMENTS = ('first/witness.json', 'witness.json')
MISPLACED = 'misplaced.json'

_ALONE = ('latency', 'bandwidth')
#: A command's name has at most 15 bytes, and any user chooses it.
MOST_OF_A_COMMAND = 16


def collect(
    folder: Path,
    where: Where,
    begun: datetime,
    nodelist: Sequence[str],
    switches: Mapping[str, tuple[str, ...]],
) -> Screening:
    """Collect the measurements of a screening's job.

    :param folder: of its files.
    :param nodelist: the nodes of the job, as the scheduler calls them.
    :raises AssayError: if one is missing or damaged.
    """
    try:
        results = _read_json(folder / NODES)['results']
        hosts = [entry['node'] for entry in results]
        known = witness.names_in(folder) or names_of_hosts(hosts, nodelist)
        name_of = {host: known.get(host, host) for host in hosts}
        names = [*name_of.values()]
        for entry in results:
            entry['node'] = name_of[entry['node']]
        report = witness.with_host_names(witness.read_witness(folder / WITNESS), known)
        misplaced = {
            known.get(host, host): why for host, why in _read_json(folder / MISPLACED).items()
        }
        carrier = load_catalogue().fabrics[where.fabric].carrier
        of_ports: list[dict[str, str]] = []

        def seen(one: witness.Report) -> witness.Report:
            if where.ports is not None:
                of_ports.append(faults_of_ports(one, carrier, where.ports))
            return one

        # One after the other: of a large machine each is large.
        more = (
            witness.with_host_names(witness.read_witness(folder / one), known)
            for one in WITNESSES_OF_TOURNAMENTS
        )
        down = links_down(map(seen, chain([report], more)), carrier)
        apart = _share_no_cpus(report) if where.on_this_machine else _any_two
        have_their_own = apart is _any_two or all(apart(*two) for two in combinations(names, 2))
        return Screening(
            system=where.partition,
            environment=where.environment,
            fabric=where.fabric,
            begun=begun,
            nodes=tuple(names),
            values={
                f'{measure} {mode}': np.array([entry[mode][measure] for entry in results])
                for measure in MEASURES
                for mode in (MODES if have_their_own else MODES[:1])
            },
            taken={mode: np.array([entry[mode]['taken'] for entry in results]) for mode in MODES},
            facts=_facts(results, report),
            faults=_faults(results, misplaced, down, _of_tournaments(of_ports)),
            noise=tuple(_noise(entry, have_their_own) for entry in results),
            links=_links([_read_json(folder / one) for one in TOURNAMENTS], name_of, apart),
            switches=switches,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AssayError(
            f'{folder}: not the files of a screening: {type(error).__name__}: {error}'
        ) from None
    except witness.WitnessError as error:
        raise AssayError(str(error)) from None


def _any_two(_: str, __: str) -> bool:
    return True


def _share_no_cpus(report: witness.Report) -> Callable[[str, str], bool]:
    """Whether two nodes have none in common: else each waits for the other's turns."""
    allowed = {host.name: {*host.allowed} for host in report.hosts}
    return lambda a, b: not allowed[a] & allowed[b]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: cannot be read: {error}') from None


def _facts(
    results: list[dict[str, Any]], report: witness.Report
) -> tuple[dict[str, str | int], ...]:
    """The facts of each node that the program and the witness saw; unknown ones are left out."""
    machines = {host.name: host.machine or Machine() for host in report.hosts}
    settings = by_host(report)
    keys = sorted({key for of_host in settings.values() for key in of_host})
    return tuple(
        {name: fact for name, fact in machines[entry['node']].model_dump().items() if fact}
        | {label(key): _setting(key, settings[entry['node']].get(key)) for key in keys}
        | entry['facts']
        for entry in results
    )


def _setting(key: str, value: str | None) -> str | int:
    """The value of a setting in words; a number for a part of the memory, which differs by host."""
    return (
        int(value)
        if key == OF_MEMORY and value and value.isdecimal()
        else setting_in_words(key, value)
    )


def _of_tournaments(faults: list[dict[str, str]]) -> dict[str, str]:
    """Faults of nodes' ports that both tournaments have, in the words of the second.

    :param faults: by node, in each of the job's programs: none of them if nobody looked.
    """
    first, second = faults[1:] or ({}, {})
    return {node: words for node, words in second.items() if node in first}


def _faults(
    results: list[dict[str, Any]],
    misplaced: dict[str, str],
    down: dict[str, dict[str, int]],
    ports: dict[str, str],
) -> tuple[dict[str, str | int], ...]:
    """Faults of each node that need no comparison with other nodes.

    :param down: how often links went down, by node and device.
    :param ports: what is wrong with network ports, by node.
    """
    return tuple(
        entry.get('memory_errors', {})
        | ({'wrong': entry['wrong']} if 'wrong' in entry else {})
        | ({'placement': misplaced[entry['node']]} if entry['node'] in misplaced else {})
        | ({'link': _told(down[entry['node']])} if entry['node'] in down else {})
        | ({'ports': ports[entry['node']]} if entry['node'] in ports else {})
        for entry in results
    )


def _noise(entry: dict[str, Any], has_own_cpus: bool) -> dict[str, str | float]:
    """The noise on the cores of a node.

    :param has_own_cpus: otherwise its cores are interrupted by the other nodes.
    """
    noise: dict[str, str | float] = {}
    if has_own_cpus and 'noise' in entry:
        noise['share'] = float(np.median(entry['noise']['share']))
        noise['longest'] = float(max(entry['noise']['longest']))
        # The kernel counts some of them in ticks, and a sweep has few.
        parts = [name for name in PARTS_OF_NOISE if name in entry['noise']]
        noise |= {name: float(np.mean(entry['noise'][name])) for name in parts}
    if busiest := entry.get('busiest_other'):
        command = plain(str(busiest['command']), MOST_OF_A_COMMAND)
        noise['process'] = command or f'process {busiest["process"]}'
        noise['process_share'] = float(busiest['share'])
    return noise


def _told(down: dict[str, int]) -> str:
    """How often the links of a node went down."""
    links = ', '.join(f'its link ({device}) went down {times(n)}' for device, n in down.items())
    return f'{links} during the screening'


def _links(
    tournaments: list[dict[str, Any]], name_of: dict[str, str], counts: Callable[[str, str], bool]
) -> Links:
    """The pairs that met in all tournaments, of those that count.

    :param name_of: the scheduler's name of each host, in the order of the nodes.
    """
    number = {host: at for at, host in enumerate(name_of)}
    met = [
        {
            (number[a], number[b]): pair
            for pair in one['pairs']
            for a, b in [pair['nodes']]
            if counts(name_of[a], name_of[b])
        }
        for one in tournaments
    ]
    both = sorted(set.intersection(*map(set, met)))

    def together(figure: str) -> np.ndarray:
        rows = [[one[pair]['together'][figure] for one in met] for pair in both]
        return np.array(rows, dtype=np.float64).reshape(-1, len(met))

    alone = [
        [met[-1][pair].get('alone', {}).get(figure, np.nan) for figure in _ALONE] for pair in both
    ]
    return Links(
        np.array(both, dtype=np.int64).reshape(-1, 2),
        together('latency'),
        together('bandwidth'),
        np.array(alone, dtype=np.float64).reshape(-1, 2),
    )


#: Those that figures are computed of, by their names in the folder of the job.
FILES = (NODES, WITNESS, *TOURNAMENTS, *WITNESSES_OF_TOURNAMENTS, MISPLACED)
#: The end of the name of the file that has them all, its form, and how many bytes it unpacks to at
#: most: of 10,000 nodes some 60 MB.
SUFFIX, FORM, MOST = '.outputs.json.gz', 1, 1 << 30
#: Nodes or pairs of a figure that are reported.
_MOST_TOLD = 3


def outputs_file(path: Path) -> Path:
    """The file with the outputs of a screening's job.

    :param path: of the screening.
    """
    return path.with_name(f'{path.stem}{SUFFIX}')


def with_outputs(screenings: Iterable[Path]) -> Iterator[Path]:
    """Files of screenings, each with that of its outputs, where they were kept."""
    for path in screenings:
        yield path
        if outputs_file(path).is_file():
            yield outputs_file(path)


def keep_outputs(path: Path, folder: Path, where: Where, nodelist: Sequence[str]) -> None:
    """Keep the files of a screening's job beside it.

    :param path: of the screening.
    :param folder: of the job.
    :param nodelist: the nodes of the job, as the scheduler calls them.
    :raises AssayError: if that cannot be.
    """
    record = {
        'form': FORM,
        'screening': path.name,
        'shares_cpus': where.on_this_machine,
        'ports': where.ports,
        'nodes': [*nodelist],
        'hosts': names_in(folder),
        'files': {name: (folder / name).read_text() for name in FILES},
    }
    with explain_errors(outputs_file(path), 'written'):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(outputs_file(path), gzip.compress(json.dumps(record).encode(), mtime=0))


def output_faults(path: Path, told: Screening) -> Iterator[str]:
    """Sentences: where a screening says something else than the outputs of its job.

    :param path: of the screening.
    :param told: what it says.
    :raises AssayError: if the outputs cannot be read, or are not those of a screening.
    """
    record = _read(outputs_file(path))
    try:
        yield from _differences(record, path.name, told)
    # A job wrote them, and anybody who changed them may have written anything.
    except (OSError, *DAMAGED) as error:
        raise AssayError(f'not the files of a screening: {plain(error, 300)}') from None


def _differences(record: dict[str, Any], name: str, told: Screening) -> Iterator[str]:
    if record['screening'] != name:
        yield f'its outputs are those of {plain(record["screening"], 200)}'
    again = _computed(record, told)
    if again.nodes != told.nodes:
        yield 'its nodes are not those of the outputs of its job'
        return
    if missing := sorted(again.values.keys() ^ told.values.keys()):
        yield f'{", ".join(missing)} is in the outputs of its job or in its file, and not in both'
    tables = {
        name: (told.values[name], again.values[name])
        for name in told.values
        if name in again.values
    }
    tables |= {f'taken {mode}': (told.taken[mode], again.taken[mode]) for mode in told.taken}
    for name, both in tables.items():
        yield from _of_table(name, both, told.nodes)
    for what, ours, others in (
        ('what is known', told.facts, again.facts),
        ('what is wrong', told.faults, again.faults),
        ('what interrupts the cores', told.noise, again.noise),
    ):
        for node, one, other in zip(told.nodes, ours, others, strict=True):
            if one != other:
                yield f'{what} of {plain(node, 100)} is not what the outputs of its job say'
    if not np.array_equal(told.links.ends, again.links.ends):
        yield 'its pairs of nodes are not those of the outputs of its job'
        return
    pairs = [f'{told.nodes[a]} and {told.nodes[b]}' for a, b in told.links.ends]
    for name in ('latency', 'bandwidth', 'alone'):
        label = 'pairs alone' if name == 'alone' else name
        both = getattr(told.links, name), getattr(again.links, name)
        yield from _of_table(label, both, pairs)


def _of_table(name: str, both: tuple[Any, Any], whose: Sequence[str]) -> Iterator[str]:
    told, again = both
    if not (told.size or again.size):  # no pairs, of whatever number of tournaments
        return
    if told.shape != again.shape:
        yield f'{name} was measured another number of times by the outputs of its job'
        return
    rows = [
        row for row in range(len(told)) if not np.array_equal(told[row], again[row], equal_nan=True)
    ]
    for row in rows[:_MOST_TOLD]:
        differs = (told[row] != again[row]) & ~(np.isnan(told[row]) & np.isnan(again[row]))
        column = int(np.flatnonzero(differs)[0])
        yield (
            f'{name} of {plain(whose[row], 200)} is {told[row][column]:.6g}, and '
            f'{again[row][column]:.6g} by the outputs of its job'
        )
    if more := len(rows[_MOST_TOLD:]):
        yield f'{name} of {more} more is another one by the outputs of its job'


def _read(path: Path) -> dict[str, Any]:
    """:raises AssayError: if it is no file of outputs, or too large."""
    try:
        with gzip.open(path) as file:
            data = file.read(MOST + 1)
        if len(data) > MOST:
            raise ValueError(f'it has more than {MOST} bytes')
        record: dict[str, Any] = json.loads(data)
        if record['form'] != FORM or record['files'].keys() != {*FILES}:
            raise ValueError(f'it is not of form {FORM}')
        return record
    except (OSError, EOFError, zlib.error, *DAMAGED) as error:
        raise AssayError(
            f'{path}: is damaged, or not the outputs of a screening: {plain(error, 300)}'
        ) from None


def _computed(record: dict[str, Any], told: Screening) -> Screening:
    """Compute a screening from its outputs; the switches are not in them, as Slurm told those."""
    where = Where(
        *(told.system, '', bool(record['shares_cpus']), told.environment, told.fabric),
        ports=record['ports'],
    )
    try:
        with tempfile.TemporaryDirectory(prefix='assay-verify-') as scratch:
            for name in FILES:
                path = Path(scratch, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(record['files'][name])
            Path(scratch, HOSTS).write_text(json.dumps(record['hosts']))
            return collect(Path(scratch), where, told.begun, record['nodes'], told.switches)
    except AssayError as error:
        raise AssayError(plain(str(error).replace(f'{scratch}/', ''), 300)) from None
