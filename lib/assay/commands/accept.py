"""The commands ``accept ...``: a machine is accepted by a contract.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.commands.options import ExtraOption, JsonOption

app = typer.Typer(
    help='Accept a machine by a contract that buyer and vendor sign.',
    no_args_is_help=True,
    rich_markup_mode=None,
)

ContractArgument = Annotated[
    Path, typer.Argument(metavar='CONTRACT', help='The contract, such as docs/contract.yaml.')
]


@app.command()
def plan(
    contract: ContractArgument, extra: ExtraOption = None, as_json: JsonOption = False
) -> None:
    """Say what a contract asks for, and how likely a machine is to pass, before any job.

    Prints the cases, how often they run and how long that takes by the history, and the probability
    of passing by how good the machine really is. The exit code is 0 if both risks of the contract
    are held, 1 if they are not or more jobs are needed than were agreed, 2 if the contract is
    wrong, and 3 if nobody knows how much the runs differ.

    Examples:

    \b
      assay accept plan docs/contract.yaml
      assay accept plan contract.yaml --json
    """
    from assay.acceptance import showing
    from assay.acceptance.experience import seconds, spreads
    from assay.acceptance.plan import plan as make
    from assay.acceptance.preparing import prepared, refusing
    from assay.results.history import load

    with refusing():
        asked = prepared(contract, extra or [])
    if (code := asked.suite.on_head()) is not None:
        raise typer.Exit(code)
    with refusing():
        wanted = asked.wanted()
    history = load()
    found = make(asked.contract, wanted, seconds(history, wanted), spreads(history, wanted))
    if as_json:
        print(showing.plan_as_json(found))
    else:
        showing.show_plan(found)
    raise typer.Exit(found.exit_code)
