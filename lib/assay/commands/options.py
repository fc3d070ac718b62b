"""Options that several commands have, and how their values are written.

One grammar for all commands, which tests/unit/test_grammar.py holds: an option has one meaning, one
metavar and one type wherever it stands.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from assay import AssayError
from assay.quantities import fraction_of, seconds_of


def command_group(text: str, **options: Any) -> typer.Typer:
    """A command with commands of its own.

    :param text: of its help.
    """
    return typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None, **options)


def _value(read: Callable[[str], float]) -> Callable[[str | float], float]:
    """Make a parser of an option's value; Typer calls it with the default as well."""

    def parse(given: str | float) -> float:
        if isinstance(given, float):
            return given
        try:
            return read(given)
        except AssayError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


#: What reads a time into seconds, and a percentage into a fraction.
TIME, PERCENT = _value(seconds_of), _value(fraction_of)

SystemOption = Annotated[
    str,
    typer.Option(
        '--system', metavar='NAME[:PARTITION]', help='The system: a file in config/systems.'
    ),
]

StoredSystemOption = Annotated[
    str | None,
    typer.Option(
        '--system',
        metavar='NAME[:PARTITION]',
        help='Only runs of this system, on all of its partitions.',
    ),
]

ModeOption = Annotated[
    str,
    typer.Option('--mode', metavar='MODE', help='Which checks: smoke, maintenance or acceptance.'),
]

CasesOption = Annotated[
    str,
    typer.Option(
        '--name',
        '-n',
        metavar='REGEX',
        help="Only cases whose name matches, such as 'Ring .*%fabric=shm .*mpich'.",
        show_default=False,
    ),
]

FiguresOption = Annotated[
    str,
    typer.Option(
        '--figure',
        metavar='REGEX',
        help='Only figures whose name matches, such as latency.',
        show_default=False,
    ),
]

ExtraOption = Annotated[
    list[str] | None,
    typer.Option(
        '--with',
        metavar='WHAT',
        help='An MPI to install too, such as intelmpi; spack: build with Spack; spack:minife, '
        "spack:applications: also build and run upstream's programs.",
    ),
]

PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        '--mpi',
        metavar='WHERE',
        help='An MPI that Assay does not find: its folder, or its module after those that it '
        "needs, such as 'gcc/12 acme/2.1'.",
    ),
]

BudgetOption = Annotated[
    float | None,
    typer.Option(
        '--budget',
        metavar='TIME',
        parser=TIME,
        help='Run only the cases that tell most in this time: 90s, 20m, 1h30m. Stops no job.',
    ),
]

NodesOption = Annotated[
    str | None,
    typer.Option(
        '--choose-nodes',
        metavar='WAY',
        help='Choose idle Slurm nodes for cases: `turn`, those without a case for the longest '
        'time; `random`; or `switch`, those of one switch.',
    ),
]

OneJobOption = Annotated[
    bool,
    typer.Option(
        '--one-job',
        help='Run all cases in one Slurm job, side by side on its nodes; or in the job around this '
        'command, if there is one. -J is for that job (-J nodes=16 -J time=2h).',
    ),
]

MarginOption = Annotated[
    float,
    typer.Option(
        '--margin',
        metavar='PERCENT',
        parser=PERCENT,
        help='Changes within this count as the same; 5% by default.',
        show_default=False,
    ),
]

DryRunOption = Annotated[
    bool, typer.Option('--dry-run', help='Only print what would change or be removed.')
]

OutputOption = Annotated[
    Path, typer.Option('--output', '-o', metavar='FILE', help='The file to write.')
]

AllRowsOption = Annotated[
    bool, typer.Option('--all', help='Show all rows, also of unchanged figures.')
]

JsonOption = Annotated[bool, typer.Option('--json', help='Print JSON with all details.')]
