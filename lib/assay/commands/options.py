"""Options that several commands have."""

from typing import Annotated

import typer

SystemOption = Annotated[
    str,
    typer.Option(
        '--system', metavar='NAME[:PARTITION]', help='The system: a file in config/systems.'
    ),
]

ModeOption = Annotated[
    str, typer.Option('--mode', help='Which checks: smoke, maintenance or acceptance.')
]

ExtraOption = Annotated[
    list[str] | None,
    typer.Option(
        '--with',
        metavar='WHAT',
        help='An MPI to install as well, such as intelmpi; or spack, to build with Spack; or '
        "spack:minife, spack:applications, to build and run upstream's programs as well.",
    ),
]

PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        '--mpi',
        metavar='WHERE',
        help='An MPI that is not found by its name: its folder, or its module with those that it '
        "needs, such as 'gcc/12 acme/2.1'.",
    ),
]

BudgetOption = Annotated[
    str | None,
    typer.Option(
        '--budget',
        metavar='TIME',
        help='Run only the cases that say most in this time: 90s, 20m, 1h30m. It stops no job.',
    ),
]

NodesOption = Annotated[
    str | None,
    typer.Option(
        '--choose-nodes',
        metavar='WAY',
        help='On which idle nodes of Slurm cases run: `turn`, those that had none for the longest '
        'time; `random`; or `switch`, those of one switch.',
    ),
]

OneJobOption = Annotated[
    bool,
    typer.Option(
        '--one-job',
        help='Run all cases in one job of Slurm, side by side on its nodes; in the job around this '
        'command, if there is one. -J is for that job (-J nodes=16 -J time=2h).',
    ),
]

MarginOption = Annotated[
    float,
    typer.Option('--margin', metavar='FRACTION', help='A change within this is called the same.'),
]

AllRowsOption = Annotated[
    bool, typer.Option('--all', help='Show all rows, and the figures that are the same.')
]

JsonOption = Annotated[bool, typer.Option('--json', help='Print JSON, of all that is known.')]
