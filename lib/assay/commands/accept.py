"""The commands ``accept ...``: a machine is accepted by a contract."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.commands.options import ExtraOption, JsonOption, OneJobOption, command_group

if TYPE_CHECKING:
    from assay.acceptance.archive import Archive
    from assay.acceptance.status import Status

app = command_group('Accept a machine by a contract that buyer and vendor sign.')

ContractArgument = Annotated[
    Path, typer.Argument(metavar='CONTRACT', help='The contract, such as docs/contract.yaml.')
]


@app.command()
def plan(
    contract: ContractArgument, extra: ExtraOption = None, as_json: JsonOption = False
) -> None:
    """Print how likely a machine is to pass a contract, before any job.

    Prints the cases, their number of runs and duration by the history, and the probability of
    passing for machines of different quality. The exit code is 0 if both risks of the contract are
    held, 1 if they are not or more jobs are needed than were agreed, 2 if the contract is wrong,
    and 3 if the spread between runs is unknown.

    Examples:

    \b
      assay accept plan docs/contract.yaml
      assay accept plan contract.yaml --json
    """
    from assay.acceptance import show
    from assay.acceptance.plan import plan_acceptance, seconds, spreads
    from assay.acceptance.run import UNDECIDED, exiting_with, prepare_acceptance, select_cases
    from assay.acceptance.screenings import partition_to_screen
    from assay.results.case_history import case_histories
    from assay.results.history import load_history

    with exiting_with():
        asked = prepare_acceptance(contract, extra or [])
        asked.suite.assert_shared(contract)
    with exiting_with(UNDECIDED):  # a cluster that has to be started first
        asked.suite.go_to_head()
    with exiting_with():
        partition_to_screen(asked.suite.load(), asked.contract)
        selected = select_cases(asked.contract, asked.suite)
    history = load_history()
    times = seconds(case_histories(history, asked.contract.system), selected)
    found = plan_acceptance(asked.contract, selected, times, spreads(history, selected))
    if as_json:
        print(show.plan_as_json(found))
    else:
        show.show_acceptance_plan(found)
    raise typer.Exit(found.exit_code)


FolderArgument = Annotated[
    Path, typer.Argument(metavar='FOLDER', help='The folder of an acceptance.')
]


def _standing(folder: Path) -> tuple[Archive, Status]:
    """An acceptance, and where it stands."""
    from assay.acceptance.archive import find_archive
    from assay.acceptance.contract import read_contract
    from assay.acceptance.status import status_in

    archive = find_archive(folder)
    return archive, status_in(archive, read_contract(archive.contract))


@app.command()
def run(
    contract: ContractArgument,
    folder: Annotated[
        Path, typer.Option(metavar='FOLDER', help='The folder of the acceptance, new or existing.')
    ],
    job: Annotated[
        list[str] | None,
        typer.Option('--job-option', '-J', metavar='OPT', help='For each job, as of `assay run`.'),
    ] = None,
    extra: ExtraOption = None,
    one_job: OneJobOption = False,
) -> None:
    """Measure what a contract asks for, until it is decided.

    The same command continues a stopped acceptance. The journal in FOLDER records each run before
    and after it, also stopped, failed and disturbed runs. The exit code is 0 if the machine is
    accepted, 1 if something is not met, 2 if the contract or the folder is wrong, and 3 if it is
    not decided yet.

    Examples:

    \b
      assay accept run contract.yaml --folder acceptance
      assay accept run contract.yaml --folder acceptance -J reservation=acceptance
    """
    from assay.acceptance import show
    from assay.acceptance.run import (
        UNDECIDED,
        Measuring,
        allowed_variables,
        assert_no_variables,
        exiting_with,
        open_archive,
        prepare_acceptance,
        select_cases,
    )
    from assay.acceptance.screenings import assert_screened, partition_to_screen

    with exiting_with():
        assert_no_variables(job or [])
        asked = prepare_acceptance(contract, extra or [], one_job)
        asked.suite.assert_shared(contract, folder)
        allowed_variables(asked.contract.rules, os.environ)
    with exiting_with(UNDECIDED):  # a cluster that has to be started first
        asked.suite.go_to_head()
    with exiting_with():
        site = asked.suite.load()
        selected = select_cases(asked.contract, asked.suite)
        partition = partition_to_screen(site, asked.contract)
        archive, handle = open_archive(folder, contract, asked.contract.system)
    options = [word for one in job or [] for word in ('-J', one)]
    with exiting_with(UNDECIDED):
        assert_screened(archive, asked.contract, partition)
        given = replace(asked.given, jobs=job or [])
        with asked.suite.in_one_job(site, given, options, [one.case for one in selected]):
            status, code = Measuring(asked, site, archive, selected, options).run()
    os.close(handle)
    show.show_status(status)
    raise typer.Exit(code)


@app.command()
def status(folder: FolderArgument, as_json: JsonOption = False) -> None:
    """Print where an acceptance stands. The exit code is that of `accept run`.

    Example:

    \b
      assay accept status acceptance
    """
    from assay.acceptance import show
    from assay.acceptance.run import exiting_with

    with exiting_with():
        _, found = _standing(folder)
    if as_json:
        print(show.status_as_json(found))
    else:
        show.show_status(found)
    raise typer.Exit(found.verdict.exit_code)


@app.command()
def report(folder: FolderArgument) -> None:
    """Write the report of an acceptance, and close it for signatures.

    This works with any verdict: parties can also sign what is not met or not decided. The exit code
    is that of `accept run`.

    Example:

    \b
      assay accept report acceptance
    """
    from assay.acceptance import show
    from assay.acceptance.run import exiting_with

    with exiting_with():
        archive, found = _standing(folder)
        path = show.write_report(archive, found)
    show.show_status(found)
    print(f'report: {path}')
    raise typer.Exit(found.verdict.exit_code)


#: The exit code after Ctrl-C.
STOPPED = 130


@app.command()
def key(
    file: Annotated[Path, typer.Argument(metavar='FILE', help='The file of the private key.')],
) -> None:
    """Make a pair of keys to sign with.

    Keep FILE to yourself, and give FILE.pub to all others. At a terminal the command asks for a
    passphrase, with which it encrypts FILE.

    Example:

    \b
      assay accept key buyer.key
    """
    from assay.acceptance.signatures import fingerprint, make_keys, public_key

    passphrase = ''
    if sys.stdin.isatty():
        passphrase = _ask('Passphrase, empty for none')
        if passphrase and _ask('The same once more') != passphrase:
            raise AssayError('the passphrases differ: no key was made')
    path = make_keys(file, passphrase)
    without = '' if passphrase else ', without a passphrase'
    print(f'{file}{without}, and {path}: {fingerprint(public_key(path))}')


@app.command()
def sign(
    folder: FolderArgument,
    who: Annotated[
        str, typer.Option('--as', metavar='NAME', help='Who signs, as the contract names them.')
    ],
    file: Annotated[
        Path, typer.Option('--key', metavar='FILE', help='The file of an Ed25519 private key.')
    ],
) -> None:
    """Verify an acceptance, and sign it as it is now.

    Anything added later needs all signatures again.

    Example:

    \b
      assay accept sign acceptance --as 'A. Buyer' --key buyer.key
    """
    from assay.acceptance import signatures
    from assay.acceptance.archive import find_archive
    from assay.acceptance.verify import assert_may_be_signed

    private = signatures.private_key(file, lambda: _ask('Passphrase'))
    contract = assert_may_be_signed(folder)
    path = signatures.sign_archive(find_archive(folder), contract.parties, who, private)
    print(f'{path}: {signatures.describe(signatures.read_signature(path))}')


def _ask(what: str) -> str:
    """A passphrase, which may be empty.

    :raises AssayError: if there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise AssayError('the key has a passphrase, and there is no terminal to ask for it at')
    try:
        answer: str = typer.prompt(what, '', hide_input=True, show_default=False)
    except typer.Abort:
        raise typer.Exit(STOPPED) from None
    return answer


@app.command()
def verify(
    folder: FolderArgument,
    public_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar='NAME=FILE',
            help='The public key of who signs by this name; once for each.',
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Verify the folder of an acceptance.

    That is its files, journal, signatures, figures and decisions.

    Every figure is computed again from the outputs in the folder, and nothing in the folder is
    executed. This needs neither a network nor the measured system. Without --public-key the owners
    of the keys are unknown.

    The exit code is 0 only if all is right and all signers of the contract have signed.

    Examples:

    \b
      assay accept verify acceptance
      assay accept verify acceptance --public-key 'A. Buyer=buyer.pub' \\
        --public-key 'B. Vendor=vendor.pub'
    """
    from assay.acceptance.signatures import named_keys
    from assay.acceptance.verify import verify_archive

    found = verify_archive(folder, named_keys(public_key or []))
    print(found.as_json() if as_json else '\n'.join(found.lines()))
    raise typer.Exit(0 if found.is_right else 1)
