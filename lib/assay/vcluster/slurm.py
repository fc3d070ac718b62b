"""The files that Slurm and MUNGE read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from assay.vcluster.node import Node, Switch

#: MiB of a node in Slurm's configuration; nothing holds a job to it.
MEMORY = 4000

CONFIGURATION = """\
ClusterName=vcluster
SlurmctldHost={head.name}({head.address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={state}/munge.socket
StateSaveLocation={state}/slurmctld
SlurmdSpoolDir={state}/%n
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/%n.pid
SlurmctldLogFile={state}/logs/slurmctld.log
SlurmdLogFile={state}/logs/slurmd-%n.log

TaskPlugin={task_plugin}
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE

# Each MPI is given its own by --mpi or SLURM_MPI_TYPE: with a default of pmix, MPICH's launcher
# finds both PMI and PMIx, and stops.
MpiDefault=none

# What sacct reads here: a database would take longer to come up than all the rest.
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={state}/logs/jobs

# Soon, as jobs here last seconds and nodes are broken on purpose.
SchedulerParameters=bf_interval=2
KillWait=2
# The end of an epilog makes Slurm start the next job at once. Without one it waits for its next
# look at the queue, a second or two.
Epilog=/bin/true
SlurmdTimeout=10
ReturnToService=2

NodeName={names} NodeAddr={addresses} CPUs={cpus} RealMemory={memory} State=UNKNOWN
# Jobs that measure take it, one after the other: all nodes are the same few CPUs.
Licenses=machine:1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{topology}"""

#: Stands for sacct, which knows no jobs that have not ended.
SACCT = Path(__file__).with_name('sacct.sh')


def write_slurm_files(
    state: Path, head: Node, nodes: list[Node], switches: list[Switch], sacct: str
) -> None:
    """Write all files of a cluster into the folder ``state``.

    :param sacct: where Slurm's own ``sacct`` is.
    """
    # slurmd counts a node's CPUs from 0, and binds to them, whichever it has.
    has_first_cpus = all(node.cpus == tuple(range(len(node.cpus))) for node in nodes)
    (state / 'slurm.conf').write_text(
        CONFIGURATION.format(
            state=state,
            head=head,
            names=','.join(node.name for node in nodes),
            addresses=','.join(node.address for node in nodes),
            cpus=len(nodes[0].cpus),
            memory=MEMORY,
            task_plugin='task/affinity' if has_first_cpus else 'task/none',
            topology='TopologyPlugin=topology/tree\n' if switches else '',
        )
    )
    leaves = [
        f'SwitchName={one.name} Nodes={",".join(n.name for n in nodes if n.bridge == one.bridge)}\n'
        for one in switches
    ]
    core = f'SwitchName=core Switches={",".join(one.name for one in switches)}\n'
    (state / 'topology.conf').write_text(''.join([*leaves, core] if switches else []))
    # Not used, but slurmd looks for a version that it knows.
    (state / 'cgroup.conf').write_text('CgroupPlugin=cgroup/v1\n')
    hosts = [('127.0.0.1', 'localhost'), *((node.address, node.name) for node in [head, *nodes])]
    (state / 'hosts').write_text(''.join(f'{address} {name}\n' for address, name in hosts))
    key = state / 'munge.key'
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    for folder in ('bin', 'logs', 'slurmctld', *(node.name for node in nodes)):
        (state / folder).mkdir()
    shutil.copyfile(SACCT, state / 'bin' / 'sacct')
    (state / 'bin' / 'sacct').chmod(0o755)
    (state / 'bin' / 'slurm-sacct').symlink_to(sacct)
