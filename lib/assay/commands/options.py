"""Options that several commands have."""

from typing import Annotated

import typer

SystemOption = Annotated[
    str,
    typer.Option(
        '--system', metavar='NAME[:PARTITION]', help='The system: a file in config/systems.'
    ),
]
