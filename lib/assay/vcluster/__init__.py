"""A virtual Slurm cluster on one Linux machine.

Real Slurm daemons, and nodes that are sets of namespaces: each has its own host name, network
interface, processes, ``/tmp``, ``/dev/shm`` and CPUs, so that MPI and Slurm see hosts that only a
network joins. The network is a bridge that leads nowhere else.

=============  ===================================================================================
cluster.py     up, down, status
node.py        a node: boot, enter, crash; and a switch that some nodes are behind
link.py        a link between them, and how it is disturbed
command.py     a command on a node, as one that runs here
node_init.sh   process 1 of a node
locks.py       which processes are the cluster's
namespaces.py  starts processes in the namespaces of a node
cgroup.py      the CPUs of a node, and how much of their time it gets
slurm.py       the files that Slurm and MUNGE read
sacct.sh       stands for Slurm's sacct, which needs a database to know all jobs
faults.py      what can be broken, and healed
forward.c      carries packets between two interfaces with a delay
=============  ===================================================================================
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """The kind of a fault: the value behind its name, and its effect on a node or a switch."""

    value: str
    effect: str


#: Here, so that a help text costs no import of what injects them.
KINDS = {
    'delay': Kind('US', 'delay packets to and from it by US microseconds'),
    'loss': Kind('PERCENT', 'drop PERCENT of packets to and from it'),
    'rate': Kind('MBITS', 'limit its link to MBITS Mbit/s each way'),
    'cpu': Kind('PERCENT', 'limit its CPU time to PERCENT'),
    'link': Kind('down|up', 'take its link down, or bring it up'),
    'crash': Kind('', 'power it off without a shutdown'),
    'boot': Kind('', 'power it on'),
}
