"""The result of a tuning: where the default loses, the rules that are proved, and their use."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.files import json_text
from assay.mpis import FAMILIES
from assay.report.console import as_change, as_interval, console, print_line, print_table
from assay.results.statistics.comparison import MARGIN
from assay.results.statistics.retest import Decision
from assay.text import many, visible
from assay.tuning.choosing import RuleCandidate
from assay.tuning.measuring import TuningResult, header

_COLUMNS = '<operation|<bytes|<algorithm|time, as it looked|time, by pairs|<interval|<proved'


def show_tuning(found: TuningResult, file: Path | None) -> None:
    """The answer first; then where the default loses, what failed, and how the rules are used.

    :param file: with the rules; None if none are proved.
    """
    out = console()
    print_line(out, visible(tuning_conclusion(found)))
    for line in header(found)[:-1]:
        print_line(out, visible(line.removeprefix('Rules for ')))
    rows = [_row(one, told, found) for one, told in found.wanted if one.rule]
    title = f'where an algorithm looked better than the default by more than {MARGIN:.0%}'
    print_table(out, title, _COLUMNS, rows, all_rows=True)
    lines = [*_failures(found), *_slower(found)]
    if found.fault:
        lines.append(f'the rules could not be put in force: {found.fault}')
    if lines:
        out.print()
    for line in lines:
        print_line(out, visible(line))
    if file:
        out.print()
        for line in usage(found, file):
            print_line(out, visible(line))
    print_line(out, f'\nall that was measured is in {found.journal}')


def tuning_conclusion(found: TuningResult) -> str:
    """The first line."""
    rules = len(found.proved)
    open_ones = sum(1 for one, told in found.wanted if one.rule and _is_open(told))
    measured = (
        f'{many(found.offered, "algorithm")} measured in {many(found.rounds, "round")}, rules in '
        f'{many(found.pairs, "pair")}'
    )
    if found.fault:
        return f'UNDECIDED: the rules could not be put in force ({measured})'
    if found.stopped:
        left = f'{many(open_ones, "candidate")} undecided' if found.wanted else 'nothing is decided'
        proved = f'{many(rules, "rule")} proved, ' if rules else ''
        again = 'the same command goes on from there'
        return f'UNDECIDED: {proved}{left}: {found.stopped}; {again} ({measured})'
    if rules:
        operations = ', '.join(sorted({one.operation for one, _ in found.proved}))
        return f'{many(rules, "rule").upper()} PROVED BETTER: {operations} ({measured})'
    return f'KEEP THE DEFAULTS: no algorithm is proved better ({measured})'


def _is_open(told: Decision | None) -> bool:
    return told is None or bool(told.more_pairs)


def _sizes(one: RuleCandidate) -> str:
    if one.sizes == (0,):
        return 'any'
    first, last = one.sizes[0], one.sizes[-1]
    return f'{first} to {last}' if last != first else str(first)


def _row(one: RuleCandidate, told: Decision | None, found: TuningResult) -> list[object]:
    assert one.rule
    by_pairs = ('', '') if told is None else (as_change(told.ratio), as_interval(*told.interval))
    is_proved = any(one is other for other, _ in found.proved)
    verdict = 'open' if _is_open(told) else 'yes' if is_proved else 'no'
    name = one.rule.algorithm.name
    return [one.operation, _sizes(one), name, as_change(one.looked), *by_pairs, verdict]


def _failures(found: TuningResult) -> Iterator[str]:
    """The algorithms that are not offered, a sentence each with the reason."""
    mpi = FAMILIES[found.family].name
    for one in found.excluded:
        yield (
            f'not offered: {one.algorithm.operation} with {one.algorithm.name} of {mpi} '
            f'{one.word}: {one.why}'
        )


def _slower(found: TuningResult) -> Iterator[str]:
    """Operations that lose elsewhere by the rules for them."""
    with_rules = {one.operation for one, _ in found.wanted if one.rule}
    for one, told in found.wanted:
        if one.rule or not told or told.word != 'worse':
            continue
        if one.operation in with_rules:
            yield (
                f'no rule for {one.operation}: with rules in force its other sizes take '
                f'{as_change(told.ratio)}'
            )
        else:
            yield (
                f'no rules at all: they replace what is in force, without which {one.operation} '
                f'takes {as_change(told.ratio)}'
            )


def usage(found: TuningResult, file: Path) -> Iterator[str]:
    """The exact words by which the rules are used, and tried on applications."""
    assert found.rules
    path = file.resolve()
    env = found.rules.in_force(str(path))
    yield f'The rules are in {path}. To use them:'
    if found.rules.is_script:
        yield f'  . {shlex.quote(str(path))}'
    else:
        yield from (f'  export {name}={shlex.quote(value)}' for name, value in env.items())
    settings = ' '.join(f'--after {shlex.quote(f"{name}={value}")}' for name, value in env.items())
    yield 'What they are worth to applications, measured in turn:'
    yield (
        f"  ./assay compare-settings {settings} -p '^{found.case.environment}$' "
        "-n '^(HPL|MiniFE|MiniGhost|MiniMD)%'"
    )


def tuning_json(found: TuningResult, file: Path | None) -> str:
    """JSON, of all that is known."""

    def told(one: RuleCandidate, decision: Decision | None) -> dict[str, Any]:
        pairs = decision and {
            'word': decision.word,
            'ratio': decision.ratio,
            'interval': decision.interval if decision.pairs else None,
            'pairs': decision.pairs,
        }
        return {
            'operation': one.operation,
            'sizes': one.sizes,
            'algorithm': one.rule.algorithm.name if one.rule else None,
            'looked': one.looked,
            'by_pairs': pairs,
            'is_proved': any(one is other for other, _ in found.proved),
        }

    env = found.rules.in_force(str(file.resolve())) if found.rules and file else {}
    return json_text(
        {
            'conclusion': tuning_conclusion(found),
            'mpi': found.job.version,
            'case': found.case.title,
            'ranks': found.job.ranks,
            'hosts': found.job.hosts,
            'in_force': found.in_force,
            'offered': found.offered,
            'rounds': found.rounds,
            'pairs': found.pairs,
            'candidates': [told(*one) for one in found.wanted],
            'not_offered': [
                {
                    'operation': one.algorithm.operation,
                    'algorithm': one.algorithm.name,
                    'word': one.word,
                    'why': one.why,
                }
                for one in found.excluded
            ],
            'rules': file and file.resolve(),
            'variables': env,
            'stopped': found.stopped or None,
            'fault': found.fault or None,
            'journal': found.journal,
        },
        indent=2,
    )
