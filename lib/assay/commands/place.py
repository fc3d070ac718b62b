"""The command ``place``: where the ranks of a program should sit."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.commands.options import CasesOption, JsonOption, OutputOption, StoredSystemOption

if TYPE_CHECKING:
    from assay.placing.plan import Sat
    from assay.placing.turns import Turns
    from assay.witness.report import Report


def place(
    report: Annotated[Path, typer.Argument(metavar='REPORT.json', show_default=False)],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar='[-- COMMAND...]',
            help='The command that started the program: run as it is and as planned, in turn.',
            show_default=False,
        ),
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            '--for',
            metavar='LAUNCHER',
            help="Write the launcher's file: openmpi, slurm or cray; or split, the keys for "
            'MPI_Comm_split.',
        ),
    ] = None,
    output: OutputOption = Path('placement'),
    stay: Annotated[
        str, typer.Option(metavar='RANKS', help='Ranks that keep their seats, such as 0,4-7.')
    ] = '',
    check: Annotated[
        Path | None,
        typer.Option(metavar='AFTER', help='The report of a run as planned: whether ranks sat so.'),
    ] = None,
    for_page: Annotated[
        bool,
        typer.Option(
            '--for-page',
            help='Keep the plan beside the report (REPORT.json.plan): pages of the job draw it.',
        ),
    ] = False,
    system: StoredSystemOption = None,
    cases: CasesOption = '',
    as_json: JsonOption = False,
) -> None:
    """Plan which rank should sit where.

    REPORT.json is the witness's, of a job: who sent to whom. Costs of messages by distance come
    from the stored runs of PointToPoint and the newest screening of the job's nodes; without those
    they are assumed, and the output says so. The plan assigns the ranks anew to the seats that they
    had. The output has the gain and the verdict: place, leave it, or cannot tell.

    With --for it writes a file for the launcher. A command after -- must start the same program on
    the same nodes. It is run as it is and as planned, A B B A, until the faster one is known, or 12
    pairs are spent.

    The exit code is 0; 1 if ranks did not sit as planned, or the plan was slower; 3 if it is
    undecided whether the plan gains.

    Examples:

    \b
      assay place witness.json
      assay place witness.json --for openmpi -o ranks --stay 0
      assay place witness.json --for slurm -- srun -n 64 ./app
      assay place witness.json --for slurm --check after.json
      assay place witness.json --for-page
    """
    from assay.files import write_whole
    from assay.placing import files, show, turns
    from assay.placing.costs import costs_of
    from assay.placing.plan import LEAST, hold_against_plan, plan_seats
    from assay.report.console import console, print_line
    from assay.results.history import load_history
    from assay.text import parse_cpus, unknown_name

    if launcher is not None and launcher not in files.LAUNCHERS:
        raise AssayError(f'--for {launcher}: {unknown_name(launcher, "launcher", files.LAUNCHERS)}')
    if command and launcher in (None, files.SPLIT):
        raise AssayError('a command is started as planned by its launcher: name that with --for.')
    try:
        kept = parse_cpus(stay)
    except ValueError as error:
        raise AssayError(f'--stay {stay}: {error}') from None
    if command and check:
        raise AssayError('--check holds a run that has ended: leave out the command, or --check.')
    before = _read(report)
    library = before.mpi.library
    hosts = [host.name for host in before.hosts]
    by_node = launcher is not None and files.LAUNCHERS[launcher].by_node
    made = plan_seats(before, costs_of(hosts, system, cases, load_history()), kept, by_node)
    how = None
    if check:
        how = hold_against_plan(made, before, _read(check), launcher == files.SPLIT, by_node)
    plan_of_job = report.with_name(f'{report.name}.plan')
    if for_page:  # before a command that may take days
        write_whole(plan_of_job, show.plan_json(made, before, how, None))
    out = console()
    if not as_json:
        show.show_seat_plan(made, out)
    written = launcher is not None and made.word != 'leave it' and check is None
    measured = None
    if launcher is not None and written:
        write_whole(output, files.LAUNCHERS[launcher].content(made))
        if not as_json:
            use = files.use_in_words(launcher, str(output), library, made.seats.overlap)
            print_line(out, f'{output}: {use}')
        if command:
            planned = files.with_plan(
                launcher, str(output.absolute()), library, command, made.seats.overlap
            )
            measured = turns.run_pairs(turns.runner([({}, command), planned]), LEAST)
    elif command and not as_json:
        print_line(out, 'the command was not run: nothing is to be changed')
    told = show.plan_json(made, before, how, measured)
    if for_page and measured:
        write_whole(plan_of_job, told)
    if as_json:
        print(told)
    if how and not as_json:
        print_line(out, show.sat_in_words(made, how))
    if measured and not as_json:
        print_line(out, show.turns_in_words(made, measured))
    raise typer.Exit(_code(made.word, how, measured))


def _read(file: Path) -> Report:
    """A report whose hosts have Slurm's names, where there is a Slurm."""
    from assay.machine.slurm import names_of_hosts, records
    from assay.witness.reading import read_witness, with_host_names

    report, names = read_witness(file), {}
    with suppress(AssayError):
        nodes = [one['NodeName'] for one in records('node')]
        names = names_of_hosts([host.name for host in report.hosts], nodes)
    return with_host_names(report, names)


def _code(word: str, how: Sat | None, measured: Turns | None) -> int:
    if how:
        return 1 if how.elsewhere else 0
    if measured:
        decided = measured.decision and measured.decision.word
        return {'better': 0, 'same': 0, 'worse': 1}.get(decided or '', 3)
    return 3 if word == 'cannot tell' else 0
