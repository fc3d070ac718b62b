"""Check a system's file against Slurm and the MPIs on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from reframe.utility.typecheck import Duration

from assay import AssayError
from assay.config import settings
from assay.config.fabrics import load_catalogue
from assay.config.scales import PREFIX, nodes_of_scale, scales_in
from assay.discovery import policies
from assay.discovery.partitions import names_of_nodes, node_type, select_nodes, ways_of_srun
from assay.machine import modules
from assay.machine.candidates import WRAPPERS, Candidate
from assay.machine.mpi import Mpi, examine_mpi
from assay.machine.slurm import SCHEDULERS, Record, partitions_in, records
from assay.machine.topology import core_count
from assay.running.doctor import Findings

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


#: Names the PMI to srun.
PMI = 'SLURM_MPI_TYPE'

_UNTOLD = 'sbatch does not tell while its nodes are not up'


def check_system_file(system: str, found: Findings) -> None:
    """Hold each partition of a system against what is there, and its environments.

    :raises AssayError: if the system's file is wrong.
    """
    name = system.partition(':')[0]
    partitions = settings.load_system(system)['systems'][0]['partitions']
    for full_name in [f'{name}:{one["name"]}' for one in partitions]:
        site = settings.load_system(full_name)
        (partition,) = site['systems'][0]['partitions']
        found.section(f'Partition {full_name}')
        try:
            _hold_partition(partition, found)
        except AssayError as error:
            found.problem(str(error))
        for environment in partition.get('environs', []):
            found.section(f'Environment {environment} in {full_name}')
            try:
                chosen = next(one for one in site['environments'] if one['name'] == environment)
                _hold_environment(chosen, site, partition, found)
            except AssayError as error:
                found.problem(str(error))


# Partitions -------------------------------------------------------------------------------------


def _hold_partition(partition: Mapping[str, Any], found: Findings) -> None:
    scheduler = partition['scheduler']
    if scheduler not in SCHEDULERS:
        found.note(f'the scheduler {scheduler} is not asked')
        return
    access: list[str] = partition.get('access', [])
    known = {one['PartitionName']: one for one in records('partition')}
    names = partitions_in(' '.join(access)) or [
        name for name, one in known.items() if one.get('Default') == 'YES'
    ]
    if lacking := [name for name in names if name not in known]:
        found.problem(f'Slurm has no partition {", ".join(lacking)}')
        return
    nodes = {one['NodeName']: one for one in records('node')}
    members = {node for name in names for node in names_of_nodes(known[name].get('Nodes', ''))}
    chosen, unread = select_nodes(access, [nodes[name] for name in sorted(members & nodes.keys())])
    minutes = _hold_time_limit(partition, [known[name] for name in names], access, found)
    # Of nodes that only Slurm can tell nothing is concluded.
    job = _Job(access, [] if unread else chosen, minutes)
    try:
        if not _hold_access(partition, job, found):
            return
        if not chosen:
            words = ' '.join(access) or 'the default partition'
            found.problem(f'{words}: there are no such nodes')
            return
        _hold_scales(partition, job, len(chosen), found)
    except policies.UntriedError as error:
        found.note(f'sbatch does not tell what it takes: {error}')
    if unread:
        found.note(f'cores and memory are not asked: which nodes {unread} takes is for Slurm')
    else:
        _hold_nodes(partition, chosen, found)
    found.note('interface, devices and binding only a job shows: -n PointToPoint')


@dataclass(frozen=True)
class _Job:
    """A job of a partition.

    :param nodes: that it could have; none where only Slurm can tell.
    :param minutes: that the longest takes.
    """

    access: list[str]
    nodes: list[Record]
    minutes: int

    def answer(self, count: int) -> tuple[str | None, bool]:
        """Why sbatch refuses it on so many nodes, if it does, and whether it said so."""
        return policies.answer_of_sbatch(self.access, self.nodes, count, self.minutes)


def _scales(partition: Mapping[str, Any]) -> dict[str, int]:
    """The scales of a partition, with their nodes."""
    extras = partition.get('extras', {})
    return {name: nodes_of_scale(name, extras) for name in scales_in(partition.get('features', []))}


def _hold_time_limit(
    partition: Mapping[str, Any], slurm: list[Record], access: list[str], found: Findings
) -> int:
    """Minutes that the longest job asks for."""
    limit = partition.get('time_limit')
    minutes = (
        min(int(Duration.__rfm_cast_str__(limit)) // 60, policies.LONGEST)
        if limit
        else policies.LONGEST
    )
    for record in slurm:
        have = policies.limits(record, policies.Named(tuple(access)))
        if have.minutes and have.minutes < minutes:
            found.problem(
                f'jobs may ask for {minutes} min, and {have.whose} is {have.minutes} min: give the '
                f"partition 'time_limit': '{have.minutes}m'"
            )
            return have.minutes
    return minutes


def _hold_access(partition: Mapping[str, Any], job: _Job, found: Findings) -> bool:
    """Whether sbatch takes a job of the partition."""
    words = ' '.join(job.access) or 'no option of access'
    answer = job.answer(min(_scales(partition).values(), default=1))
    refused, good = f'sbatch refuses a job with {words}', f'sbatch takes a job with {words}'
    return _hold_answer(answer, found, words, refused, good)


def _hold_scales(partition: Mapping[str, Any], job: _Job, count: int, found: Findings) -> None:
    for scale, nodes in _scales(partition).items():
        if nodes > count:
            found.problem(f'feature {PREFIX}{scale}: Slurm has {count} node(s) for it')
            continue
        name = f'{PREFIX}{scale}'
        refused = f'feature {name}: sbatch refuses a job'
        _hold_answer(job.answer(nodes), found, name, refused, name)


def _hold_answer(
    answer: tuple[str | None, bool], found: Findings, about: str, refused: str, good: str
) -> bool:
    """Note the answer of sbatch on a job, in the given words; return whether it takes the job."""
    why, is_said = answer
    if why:
        found.problem(f'{refused}: {why}')
    elif is_said:
        found.confirm(good)
    else:
        found.note(f'{about}: {_UNTOLD}')
    return not why


def _hold_nodes(partition: Mapping[str, Any], nodes: list[dict[str, str]], found: Findings) -> None:
    types = [node_type(node) for node in nodes]
    processor = partition.get('processor', {})
    if cores := core_count(processor):
        # Slurm keeps some for itself.
        own = [int(node.get('CoreSpecCount', 0)) for node in nodes]
        there = sorted({one.cores - kept for one, kept in zip(types, own, strict=True)})
        told = f'the processor has {cores} core(s)'
        if [cores] == there:
            found.confirm(told)
        else:
            found.problem(f'{told}, Slurm has nodes of {", ".join(map(str, there))}')
    else:
        found.note('no processor: ReFrame asks a node, where RFM_REMOTE_DETECT=1 is set')
    if memory := partition.get('extras', {}).get('memory_gib'):
        least = min((one.memory for one in types if one.knows_memory), default=None)
        if least is None:
            found.note(f'{memory} GiB of memory: Slurm does not know what its nodes have')
        elif 1024 * memory <= least:
            found.confirm(f'{memory} GiB of memory')
        else:
            found.problem(
                f'extras have {memory} GiB of memory, Slurm has nodes of {least / 1024:.4g} GiB'
            )


# Environments -----------------------------------------------------------------------------------


def _hold_environment(
    environment: Mapping[str, Any],
    site: _SiteConfig,
    partition: Mapping[str, Any],
    found: Findings,
) -> None:
    if 'mpi' not in environment.get('features', []):
        found.note('it has not the feature mpi: no check of MPI runs in it')
        return
    mpi = _asked(environment, site['systems'][0].get('modules_system', 'nomod'))
    if mpi.fault:
        found.problem(mpi.fault)
        return
    told = environment.get('extras', {})
    is_told = f'{mpi.kind.name} {mpi.version} in {mpi.prefix}'
    for key, value in (('family', mpi.family), ('version', mpi.version)):
        if told.get(key, value) != value:
            found.problem(f'extras have the {key} {told[key]!r}, and there is {is_told}')
            break
    else:
        found.confirm(is_told)
    _hold_fabrics(environment, partition, mpi, found)
    if partition['launcher'] == 'srun' and partition['scheduler'] in SCHEDULERS:
        _hold_pmi(environment, partition, found)


def _hold_fabrics(
    environment: Mapping[str, Any], partition: Mapping[str, Any], mpi: Mpi, found: Findings
) -> None:
    catalogue = load_catalogue()
    for fabric in catalogue.fabrics:
        has, offers = (fabric in one.get('features', []) for one in (environment, partition))
        why = catalogue.no_recipe(fabric, mpi)
        if has and why:
            found.problem(f'feature {fabric}: {why}')
        elif has and offers:
            found.confirm(f'fabric {fabric}')
        elif offers and not why:
            found.note(f'no feature {fabric}, which this build has, and the partition')


def _hold_pmi(
    environment: Mapping[str, Any], partition: Mapping[str, Any], found: Findings
) -> None:
    pairs = [*partition.get('env_vars', []), *environment.get('env_vars', [])]
    words, versions = ways_of_srun()
    known = [*words, *versions]
    chosen = dict(pairs).get(PMI)
    if chosen is None:
        found.note(f'no {PMI} among its env_vars: what starts it is left to Slurm')
    elif chosen in known:
        found.confirm(f'srun knows {PMI}={chosen}')
    else:
        found.problem(f'srun does not know {PMI}={chosen}: it has {", ".join(known) or "none"}')


def _asked(environment: Mapping[str, Any], system: str) -> Mpi:
    """The MPI of an environment, asked with its modules and variables.

    :param system: of modules, as ReFrame calls it.
    :raises AssayError: if a module cannot be loaded, or no MPI that we know is there.
    """
    names = tuple(environment.get('modules', []))
    if names and system == 'nomod':
        raise AssayError('its modules are not loaded: the system has no modules_system')
    loaded = modules.environment_of(names, system) if names else dict(os.environ)
    for name, value in environment.get('env_vars', []):
        loaded[name] = Template(value).safe_substitute(loaded)
    command = environment.get('cc', 'cc')
    compiler = shutil.which(command, path=loaded.get('PATH'))
    if compiler is None:
        raise AssayError(f'there is no {command} where its modules and PATH lead')
    if Path(compiler).name not in WRAPPERS:
        raise AssayError(f'{compiler} is not an mpicc: what is behind it is not asked')
    folder = Path(compiler).parent
    mpi = examine_mpi(Candidate(environment['name'], 'PATH', folder, names, loaded=loaded))
    if mpi is None:
        raise AssayError(f'{compiler} is of no MPI that is known')
    return mpi
