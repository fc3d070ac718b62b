"""The commands ``cluster ...``: a virtual Slurm cluster on this machine."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from assay import AssayError, say
from assay.commands.options import JsonOption, command_group
from assay.files import json_text
from assay.text import plain
from assay.vcluster import KINDS

app = command_group('A virtual Slurm cluster on this machine, with faults.')

NodeName = Annotated[str, typer.Argument(metavar='NODE', show_default=False)]


@app.command()
def up(
    size: Annotated[
        int, typer.Option(metavar='N', help='The number of compute nodes: n1, n2, ...')
    ] = 4,
    cpus: Annotated[
        int,
        typer.Option(
            metavar='N', help="CPUs of each node; nodes share the machine's if there are too few."
        ),
    ] = 1,
    switches: Annotated[
        int,
        typer.Option(metavar='N', min=1, help='Switches that the nodes are behind: s1, s2, ...'),
    ] = 1,
) -> None:
    """Start a head node and compute nodes with real Slurm.

    Needs root.

    Examples:

    \b
      assay cluster up
      assay cluster up --size 2 --cpus 2
      assay cluster up --size 8 --switches 2
      assay run --system vcluster:srun -n PointToPoint
    """
    from assay.vcluster.cluster import Cluster

    began = time.monotonic()
    cluster = Cluster(size, cpus, switches)
    cluster.up()
    names = ', '.join(node.name for node in cluster.nodes)
    print(f'up in {time.monotonic() - began:.1f} s: {names}, {cpus} CPU(s) each')


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Print the nodes, their state in Slurm, and their faults.

    The exit code is 0 if a cluster is running.

    Example:

    \b
      assay cluster status
    """
    from rich.table import Table
    from rich.text import Text

    from assay.report.console import console
    from assay.vcluster import faults
    from assay.vcluster.cluster import Cluster
    from assay.vcluster.node import Node

    cluster = Cluster.current()
    states = cluster.states()
    found = [(part, faults.active_faults(cluster, part)) for part in cluster.parts]
    if as_json:
        parts = [
            {
                **{'node': one.name, 'address': one.address, 'cpus': one.cpus},
                **{'state': states.get(one.name), 'broken': broken},
            }
            if isinstance(one, Node)
            else {'switch': one.name, 'broken': broken}
            for one, broken in found
        ]
        print(json_text(parts, indent=2))
        return
    table = Table('node', 'address', 'CPUs', 'Slurm', 'broken', box=None, pad_edge=False)
    for one, broken in found:
        about = ['-', '-', '-']
        if isinstance(one, Node):
            about = [one.address, ', '.join(map(str, one.cpus)), states.get(one.name, '?')]
        row = one.name, *about, ', '.join(broken) or '-'
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


@app.command(
    name='exec',
    context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False},
)
def execute(
    node: NodeName,
    command: Annotated[list[str], typer.Argument(metavar='CMD...', show_default=False)],
) -> None:
    """Run a command on a node.

    It runs in the current folder, and its exit code is returned. Slurm's commands are for the node
    `head`.

    Examples:

    \b
      assay cluster exec head sinfo
      assay cluster exec head srun -N 4 hostname
      assay cluster exec n2 ip address
    """
    from assay.vcluster import command as on_node
    from assay.vcluster.cluster import Cluster

    raise typer.Exit(on_node.run_on_node(Cluster.current().node(node), command))


KINDS_OF_FAULTS = '\n'.join(
    f'  {name:5} NODE {kind.value:8} {kind.effect}' for name, kind in KINDS.items()
)
FAULT = f"""Inject a fault into a node, or into the uplink of a switch.

\b
{KINDS_OF_FAULTS}

Examples:

\b
  assay cluster fault delay n2 1000 --jitter 200
  assay cluster fault delay n2 1000 --to n3
  assay cluster fault rate s1 1000
  assay cluster fault rate n3 100
  assay cluster fault crash n4
"""


@app.command(help=FAULT)
def fault(
    kind: Annotated[str, typer.Argument(metavar='KIND', show_default=False)],
    node: NodeName,
    value: Annotated[str | None, typer.Argument(metavar='[VALUE]', show_default=False)] = None,
    jitter: Annotated[
        float,
        typer.Option(metavar='N', help='With delay: add a random jitter of up to so many us.'),
    ] = 0,
    to: Annotated[
        str | None,
        typer.Option(
            metavar='NODE', help='With delay and loss: only packets to and from this node.'
        ),
    ] = None,
) -> None:
    from assay.vcluster import faults
    from assay.vcluster.cluster import Cluster

    cluster = Cluster.current()
    peer = cluster.node(to) if to else None
    faults.inject(cluster, cluster.part(node), kind, value, jitter, peer)


@app.command()
def heal(
    node: Annotated[
        str | None,
        typer.Argument(metavar='[NODE]', help='All by default.', show_default=False),
    ] = None,
) -> None:
    """Undo all faults, and wait until Slurm uses the nodes again.

    Examples:

    \b
      assay cluster heal
      assay cluster heal n2
    """
    from assay.vcluster import faults
    from assay.vcluster.cluster import Cluster

    cluster = Cluster.current()
    faults.heal_parts(cluster, [cluster.part(node)] if node else cluster.parts)


@app.command()
def down() -> None:
    """Stop the cluster, or clear up after one that was killed.

    No process, namespace, mount, cgroup or file of it is left.

    Example:

    \b
      assay cluster down
    """
    from assay.vcluster import cluster

    print('down' if cluster.take_down() else 'there was no virtual cluster')


@app.command()
def campaign(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar='[FAULT]...',
            help='Faults or kinds of them, such as network/delay or node; all by default.',
            show_default=False,
        ),
    ] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option(
            metavar='SEVERITY', help='low, middle or high; may be repeated. All by default.'
        ),
    ] = None,
    one_job: Annotated[
        bool, typer.Option('--one-job', help='Run all cases of a run in one job of Slurm.')
    ] = False,
    show: Annotated[
        bool, typer.Option('--list', help='Print the faults, and inject none.')
    ] = False,
) -> None:
    """Inject faults into a cluster, and list which the suite detects.

    Starts a virtual cluster, and for each fault of tests/faults/catalogue injects it, runs the
    check that meets it, heals it, and runs the check again. Prints a table in Markdown, a row as
    soon as it is known. The exit code is 0 if each fault of middle and high severity was detected
    with a sentence that names its cause, and nothing else failed.

    Examples:

    \b
      assay cluster campaign --list
      assay cluster campaign network/delay --severity high
      assay cluster campaign >matrix.md
    """
    from assay.campaign import catalogue, look
    from assay.campaign.course import course, heading, outcome_row
    from assay.machine.mpi import find_mpis
    from assay.running.prepare import prepare_machine

    faults = catalogue.choose_faults(catalogue.load_faults(), names or [])
    if wrong := [one for one in severity or [] if one not in catalogue.SEVERITIES]:
        raise AssayError(f'--severity {wrong[0]}: it is one of {", ".join(catalogue.SEVERITIES)}')
    severities = [one for one in catalogue.SEVERITIES if one in (severity or [one])]
    if show:
        for name, fault in faults.items():
            print(plain(f'{name:32} {", ".join(fault.degrees):18} {fault.what}'))
        return
    prepare_machine('vcluster', [])
    (mpi,) = (one for one in find_mpis() if one.name == look.ENVIRONMENT)
    print(*heading(), sep='\n', flush=True)
    outcomes = []
    for outcome in course(mpi, faults, severities, ['--one-job'] if one_job else []):
        outcomes.append(outcome)
        print(plain(outcome_row(outcome)), flush=True)
    good = sum(outcome.is_good for outcome in outcomes)
    say(f'{good} of {len(outcomes)} as they should be')
    raise typer.Exit(good < len(outcomes))
