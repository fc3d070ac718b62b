"""The command ``provenance``: what figures were measured with, and what changed since."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.commands.options import CasesOption, JsonOption, StoredSystemOption
from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.results.cases import Facts


def provenance(
    words: Annotated[
        str, typer.Argument(metavar='[RUNS]', help='Which run, as in `assay history`.')
    ] = 'last',
    after: Annotated[
        str,
        typer.Argument(
            metavar='[AFTER]',
            help='A run that came after it: print only the differences.',
            show_default=False,
        ),
    ] = '',
    name: CasesOption = '',
    system: StoredSystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what each case was built from, and what it ran with.

    RUNS and AFTER are chosen as in `assay history`; the newest of several counts. The job and its
    nodes are printed beside the case, but not compared.

    Examples:

    \b
      assay provenance -n Ring
      assay provenance last~1 last
      assay provenance old-report.json last -n 'MiniFE.*mpich'
    """
    from assay.results.history import load
    from assay.results.provenance import changed_facts, facts_by_case, where_by_case
    from assay.results.run_selectors import choose, of_cases

    stored, is_chosen = load(), of_cases(name)
    try:
        chosen = [choose(stored, one, system)[-1] for one in (words, after) if one]
    except AssayError as error:
        if after or words == 'last':
            raise
        raise AssayError(f'{error} To choose cases by name: -n {shlex.quote(words)}') from None
    runs = [stored.run_of(one) for one in chosen]
    facts = [facts_by_case(run, is_chosen) for run in runs]
    now, where = facts[-1], where_by_case(runs[-1])
    if not now:
        raise AssayError(f'no case that ran matches -n {name!r} in {after or words}.')
    if not after:
        _show(now, where, as_json)
        return
    then = facts[0]
    if not (both := [case for case in now if case in then]):
        raise AssayError(f'{words} has no case that matches -n {name!r} and ran in both.')
    changed = {case: changed_facts(then[case], now[case]) for case in both}
    _show({case: lines for case, lines in changed.items() if lines}, where, as_json)
    if not as_json:
        print(
            f'{sum(map(bool, changed.values()))} of {len(both)} cases were built or ran otherwise'
        )


def _show(facts: Mapping[str, Facts], where: Mapping[str, str], as_json: bool) -> None:
    """Print what cases were measured with; those that share it stand together, but for JSON.

    :param where: where each ran.
    """
    if as_json:
        rows = [
            {'case': case, 'where': where.get(case), 'facts': dict(lines)}
            for case, lines in facts.items()
        ]
        print(json.dumps(rows, indent=2))
        return
    cases: dict[Facts, list[str]] = {}
    for case, lines in facts.items():
        cases.setdefault(lines, []).append(f'{case}  {where.get(case, "")}'.rstrip())
    for lines, names in cases.items():
        print(*names, sep='\n')
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f'    {name:{width}} {plain(value or "-")}')
