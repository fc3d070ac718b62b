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
