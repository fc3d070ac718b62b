"""The commands ``witness ...``: a program run with the witness, and what a report of it shows."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from assay import AssayError
from assay.commands.options import OutputOption, command_group

if TYPE_CHECKING:
    from assay.witness import Report


class _ShowsReports(TyperGroup):
    """``assay witness REPORT.json`` is short for ``assay witness show REPORT.json``."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        if args[:1] != ['run'] and any(word.startswith('--diff') for word in args):
            raise AssayError('two reports are compared by `assay witness BEFORE.json AFTER.json`')
        if args and args[0] not in {*self.commands, '--help'}:
            args = ['show', *args]
        return super().parse_args(context, args)


app = command_group('Run any MPI program with the witness, or show its reports.', cls=_ShowsReports)

PictureOption = Annotated[
    Path | None,
    typer.Option(
        '--picture',
        metavar='FILE.html',
        help='Also draw who sent to whom, where ranks sat and where the time went.',
    ),
]


def _assert_page(picture: Path | None) -> None:
    if picture and picture.suffix.lower() != '.html':
        raise AssayError(f'{picture}: a picture is a page for a browser: call it .html')


def _draw(picture: Path, report: Report) -> None:
    from assay.report.html import page  # which takes time to load

    page.write_page(picture, page.page_of_job(report))


@app.command()
def show(
    report: Annotated[Path, typer.Argument(metavar='REPORT.json', show_default=False)],
    after: Annotated[
        Path | None,
        typer.Argument(
            metavar='[AFTER.json]', help='Show how this report differs.', show_default=False
        ),
    ] = None,
    picture: PictureOption = None,
) -> None:
    """Show what the witness recorded in a job.

    Placement, fabric, profile, waiting, lines and messages. The witness is preloaded into every
    program of a run; its report, witness.json, is among the job's files. The word `show` can be
    left out.

    Examples:

    \b
      assay witness witness.json
      assay witness witness.json --picture job.html
      assay witness before.json after.json
    """
    from assay.report.console import console, print_line
    from assay.report.witness import show_difference, show_job
    from assay.witness.reading import read_witness
    from assay.witness.sites import with_lines

    _assert_page(picture)
    first = with_lines(read_witness(report))
    second = with_lines(read_witness(after)) if after else None
    if picture:
        _draw(picture, first)
    out = console()
    if second:
        show_difference(first, second, out)
    else:
        show_job(first, out)
    if picture:
        print_line(out, f'\npicture: {picture}')


@app.command(context_settings={'ignore_unknown_options': True, 'allow_interspersed_args': False})
def run(
    line: Annotated[
        list[str],
        typer.Argument(
            metavar='LAUNCHER [OPTIONS] PROGRAM [ARGUMENTS]',
            help='As you start it without: mpirun, mpiexec, srun or flux run, and so on.',
        ),
    ],
    output: OutputOption = Path('assay-witness.json'),
    picture: PictureOption = None,
) -> None:
    """Run an MPI program, and say where its time went.

    The program runs unchanged, with its own output, input and exit code. At its end the lines that
    took the most time are printed to standard error. The exit code is 2 if the program was not
    started. The report is kept for `assay witness`.

    Examples:

    \b
      assay witness run -- mpirun -n 4 ./program input
      assay witness run -o after.json -- srun -n 64 ./program
      assay witness before.json after.json
    """
    from assay.running.launches import launches, prepare_line, problems_of_launches
    from assay.running.program import run_passing_signals

    with ExitStack() as stack:
        try:
            _assert_page(picture)
            with tempfile.TemporaryDirectory(prefix='assay-', ignore_cleanup_errors=True) as name:
                words, unseen = prepare_line(line, output.absolute(), Path(name), stack)
                if unseen:  # before it runs: that may take days
                    print(f'assay witness: nothing will be recorded: {unseen}', file=sys.stderr)
                code, _ = run_passing_signals(words)
                started, problems = launches(Path(name)), problems_of_launches(Path(name))
        except (AssayError, OSError) as error:
            print(f'assay: {error}', file=sys.stderr)
            raise typer.Exit(2) from None
        try:
            for problem in problems:
                print(f'assay witness: not recorded: {problem}', file=sys.stderr)
            # Of a script's launches some start no MPI program.
            some = [one for one in started if one[0].exists()] or started[:1]
            for path, words_of_it, is_linked in some:
                own = picture and picture.with_stem(picture.stem + path.stem[len(output.stem) :])
                _tell(path, words_of_it, is_linked, len(some) > 1, own)
            if not (unseen or started or problems):
                print(
                    'assay witness: nothing was recorded: no start of a program by mpirun, '
                    'mpiexec, srun or another launcher was seen (docs/programs.md)',
                    file=sys.stderr,
                )
        except KeyboardInterrupt:  # the program has ended, and has its exit code
            print('assay witness: stopped before all lines were looked up', file=sys.stderr)
    if code == 128 + signal.SIGINT and os.isatty(0):
        # A shell ends its loop only if the command ended by the signal, too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    raise typer.Exit(code)


def _tell(
    report: Path, words: str, is_linked: bool, is_one_of_many: bool, picture: Path | None
) -> None:
    """Print the witness's report on a program that has ended; the exit code stays as it is.

    :param words: that started it.
    :param is_linked: whether a program of it is linked with an MPI.
    """
    from assay.report.console import console, print_line
    from assay.report.witness import show_answer
    from assay.running.launches import keep_lines, why_nothing, why_one_rank
    from assay.witness.reading import WitnessError, read_witness

    out = console(errors=True)
    try:
        seen, problems = keep_lines(report, read_witness(report))
        print_line(out, f'\nThe witness saw{f" of {words}" if is_one_of_many else ""}:')
        if fault := why_one_rank(words, seen.ranks):
            print_line(out, fault)
        show_answer(seen, out)
        for problem in problems:
            print_line(out, problem)
        if picture:
            _draw(picture, seen)
            print_line(out, f'picture: {picture}')
        print_line(out, f'report: {report} (assay witness shows all of it)')
    except WitnessError as error:
        why = error if report.exists() else why_nothing(report, is_linked)
        print_line(out, f'assay witness: nothing was recorded: {why}')
    except (AssayError, OSError) as error:
        print_line(out, f'assay witness: {error}')
