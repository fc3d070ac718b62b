"""From the files of a screening's job to what was measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from assay import AssayError, witness
from assay.config.fabrics import load_catalogue
from assay.machine.slurm import names_of_hosts
from assay.screening.measured import MEASURES, MODES, Links, Screening
from assay.screening.where import Where
from assay.witness.report import Machine
from assay.witness.settings import OF_MEMORY, by_host, label, told
from assay.witness.traffic import links_down, times

#: What the job leaves: of `nodes`, and of the two tournaments of `pairs` (checks/mpi/screen.py).
NODES, WITNESS = 'nodes/result.json', 'nodes/witness.json'
TOURNAMENTS = ('first/result.json', 'result.json')
WITNESSES_OF_TOURNAMENTS = ('first/witness.json', 'witness.json')
MISPLACED = 'misplaced.json'

_ALONE = ('latency', 'bandwidth')


def collect(
    folder: Path,
    where: Where,
    begun: datetime,
    nodelist: Sequence[str],
    switches: Mapping[str, tuple[str, ...]],
) -> Screening:
    """What the job of a screening measured.

    :param folder: of its files.
    :param nodelist: the nodes of the job, as the scheduler calls them.
    :raises AssayError: if one is missing or damaged.
    """
    try:
        results = _read(folder / NODES)['results']
        hosts = [entry['node'] for entry in results]
        known = witness.names_in(folder) or names_of_hosts(hosts, nodelist)
        name_of = {host: known.get(host, host) for host in hosts}
        names = [*name_of.values()]
        for entry in results:
            entry['node'] = name_of[entry['node']]
        report = witness.named(witness.read(folder / WITNESS), known)
        misplaced = {known.get(host, host): why for host, why in _read(folder / MISPLACED).items()}
        # One after the other: of a large machine each is large.
        more = (
            witness.named(witness.read(folder / one), known) for one in WITNESSES_OF_TOURNAMENTS
        )
        carrier = load_catalogue().fabrics[where.fabric].carrier
        down = links_down(chain([report], more), carrier)
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
            faults=_faults(results, misplaced, down),
            links=_links([_read(folder / one) for one in TOURNAMENTS], name_of, apart),
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


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: cannot be read: {error}') from None


def _facts(
    results: list[dict[str, Any]], report: witness.Report
) -> tuple[dict[str, str | int], ...]:
    """What each node is, as the program and the witness saw it; what nobody told is left out."""
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
    """In words, except for a part of the memory: hosts have different amounts of memory."""
    return int(value) if key == OF_MEMORY and value and value.isdecimal() else told(key, value)


def _faults(
    results: list[dict[str, Any]], misplaced: dict[str, str], down: dict[str, dict[str, int]]
) -> tuple[dict[str, str | int], ...]:
    """What nobody need compare with other nodes.

    :param down: how often links went down, by node and device.
    """
    return tuple(
        entry.get('memory_errors', {})
        | ({'wrong': entry['wrong']} if 'wrong' in entry else {})
        | ({'placement': misplaced[entry['node']]} if entry['node'] in misplaced else {})
        | ({'link': _told(down[entry['node']])} if entry['node'] in down else {})
        for entry in results
    )


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
