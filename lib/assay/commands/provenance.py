"""The command ``provenance``: what figures were measured with, and what changed since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.results.cases import Facts


def provenance(
    check: Annotated[
        str, typer.Argument(metavar='CHECK', help='A regular expression that selects cases.')
    ] = '',
    report: Annotated[
        Path | None,
        typer.Option(metavar='FILE', help='The report of a run; the newest by default.'),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar='FILE', help='An earlier report: print only the differences.'),
    ] = None,
) -> None:
    """Print what each case was built from, and what it ran with.

    The job and its nodes are printed beside the case, but not compared.

    Examples:

    \b
      assay provenance Ring
      assay provenance 'MiniFE.*mpich' --against old-report.json
    """
    from assay.results.provenance import changed_facts, facts_by_case, where_by_case
    from assay.results.reframe_report import read_report
    from assay.running import runs

    path = report or runs.newest_report()
    run = read_report(path)
    now, where = facts_by_case(run, check), where_by_case(run)
    if not now:
        raise AssayError(f'no case that ran matches {check!r} in {path}.')
    if against is None:
        _show(now, where)
        return
    then = facts_by_case(read_report(against), check)
    if not (both := [case for case in now if case in then]):
        raise AssayError(f'{against} has no case that matches {check!r} and ran in both.')
    changed = {case: changed_facts(then[case], now[case]) for case in both}
    _show({case: lines for case, lines in changed.items() if lines}, where)
    print(f'{sum(map(bool, changed.values()))} of {len(both)} cases were built or ran otherwise')


def _show(facts: Mapping[str, Facts], where: Mapping[str, str]) -> None:
    """Print what cases were measured with; those that share it stand together.

    :param where: where each ran.
    """
    cases: dict[Facts, list[str]] = {}
    for case, lines in facts.items():
        cases.setdefault(lines, []).append(f'{case}  {where.get(case, "")}'.rstrip())
    for lines, names in cases.items():
        print(*names, sep='\n')
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f'    {name:{width}} {plain(value or "-")}')
