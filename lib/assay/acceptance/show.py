"""The output of an acceptance: tables, report.md and decisions.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.acceptance import archive as archives
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.contract import Commitment
from assay.acceptance.decision import CommitmentDecision
from assay.acceptance.files import canonical, parse_record
from assay.acceptance.plan import Asked, Plan
from assay.acceptance.status import Status
from assay.files import explain_errors, json_text, read_bounded, write_whole
from assay.report.console import console, percent, print_line, print_table
from assay.results.rows import number
from assay.text import many, plain

_ASKED = '<commitment|<statistic|asked|spread|<known from|a run'
_STANDS = '<commitment|<statistic|value|asked|margin|spread|<word'


def show_acceptance_plan(plan: Plan) -> None:
    """Print cases, cost, the chance of a machine to pass, and whether the risks are held."""
    out = console()
    contract = plan.contract
    print_line(out, f'{contract.name}: on {contract.system}, digest {contract.digest[:16]}')
    for one in dict.fromkeys(one.case.title for one in plan.asked):
        print_line(out, f'  {one}')
    print_table(out, 'commitments', _ASKED, map(_asked, plan.asked), all_rows=True)
    out.print()
    print_line(out, _cost(plan))
    if not plan.curve:
        unknown = [one.commitment.id for one in plan.asked if not one.spread]
        print_line(
            out,
            f'probability of passing: unknown, since nobody knows how much runs of '
            f'{", ".join(unknown)} differ: give expected_spread, or measure it 5 times',
        )
        return
    print_table(
        out,
        'probability of passing, by how much better all figures really are than committed',
        'better by|passes|at least|at most|<least likely',
        (_chance(plan, number) for number in range(len(plan.curve))),
        all_rows=True,
    )
    print_line(
        out,
        'passes: if the commitments are independent; at least, at most: however they depend\n'
        'on each other. Failed cases, hours and nodes are not in it.',
    )
    out.print()
    for sentence in risks(plan):
        print_line(out, sentence)


def _asked(one: Asked) -> list[object]:
    commitment = one.commitment
    return [
        commitment.id + (' (waived)' if one.is_waived else ''),
        f'{commitment.statistic} of {commitment.runs}',
        _limit(commitment),
        percent(one.spread.value) if one.spread else 'unknown',
        one.spread.source if one.spread else '-',
        f'{one.seconds:.0f} s' if one.seconds is not None else 'unknown',
    ]


def _limit(commitment: Commitment) -> str:
    side = '>=' if commitment.better == 'higher' else '<='
    unit = '' if commitment.unit == '1' else f' {commitment.unit}'
    return f'{side} {number(commitment.value)}{unit}'


def _cost(plan: Plan) -> str:
    most = plan.contract.most_jobs
    text = f'at least {many(plan.jobs, "job")} of at most {most} agreed'
    if plan.seconds is None or plan.node_hours is None:
        return f'{text};\nhow long they take is unknown: no run of them is in the history'
    return f'{text}, {plan.seconds / 60:.1f} min in all, {plan.node_hours:.2f} node-hours'


def _chance(plan: Plan, place: int) -> list[object]:
    one = plan.curve[place]
    worst = min(range(len(one.each)), key=lambda number: one.each[number])
    values = (one.independent, one.low, one.high)
    return [f'{one.better_by:+.1%}', *map(percent, values), plan.names[worst]]


def risks(plan: Plan) -> list[str]:
    """Whether both risks are held, a sentence each; of too few runs, how many would do."""
    agreed, found = plan.contract.risks, plan.held
    if found is None:
        return []
    good, bad = f'{100 * agreed.good:g}%', f'{100 * agreed.bad:g}%'
    told = [
        f'a good machine ({good} better in all) fails in {percent(found.producer)} of acceptances;'
        f' agreed: {100 * agreed.producer:g}%',
        f'a bad machine ({bad} worse in one) passes in {percent(found.consumer)} of acceptances; '
        f'agreed: {100 * agreed.consumer:g}%',
    ]
    for name, runs in found.needed.items():
        if runs is None:
            told.append(f'{name}: no number of runs holds its part of both risks')
        else:
            told.append(f'{name}: {many(runs, "run")} would hold its part of both risks')
    word = 'both risks are held' if plan.is_held else 'CONTRACT CANNOT MEET ITS AGREED RISKS'
    if plan.jobs > plan.contract.most_jobs:
        told.append(f'{plan.jobs} jobs are needed, and {plan.contract.most_jobs} were agreed')
    return [*told, word]


def plan_as_json(plan: Plan) -> str:
    """JSON of all that is known."""
    cost = {'jobs': plan.jobs, 'seconds': plan.seconds, 'node_hours': plan.node_hours}
    curve = [
        {
            'better_by': one.better_by,
            'passes': one.independent,
            'at_least': one.low,
            'at_most': one.high,
            'each': dict(zip(plan.names, one.each, strict=True)),
        }
        for one in plan.curve
    ]
    found: dict[str, Any] = {
        'name': plan.contract.name,
        'digest': plan.contract.digest,
        'commitments': [
            {
                **one.commitment.model_dump(mode='json'),
                'case': one.case.title,
                'nodes': one.case.nodes,
                'seconds': one.seconds,
                'spread': one.spread,
                'is_waived': one.is_waived,
            }
            for one in plan.asked
        ],
        **cost,
        'curve': curve,
        'risks': plan.held,
        'is_held': plan.is_held,
        'sentences': risks(plan),
    }
    return json_text(found, indent=2)


def show_status(status: Status) -> None:
    """Commitments, conditions, what gave no value, and the verdict."""
    out = console()
    contract = status.contract
    print_line(out, f'{contract.name}: on {contract.system}, digest {contract.digest[:16]}')
    print_table(out, 'commitments', _STANDS, map(cells, status.decisions), all_rows=True)
    out.print()
    for sentence in sentences(status):
        print_line(out, plain(sentence))


def cells(one: CommitmentDecision) -> list[str]:
    """The columns of a commitment: statistic, value, margin to what is asked for, spread, word."""
    commitment = one.commitment
    margin = '-'
    if one.value is not None:
        sign = 1 if commitment.better == 'higher' else -1
        margin = f'{sign * (one.value / commitment.value - 1):+.1%}'
    return [
        commitment.id,
        f'{commitment.statistic} of {len(one.runs)}/{commitment.runs}',
        number(one.value),
        _limit(commitment),
        margin,
        '-' if one.spread is None else percent(one.spread),
        one.word,
    ]


def sentences(status: Status) -> list[str]:
    """Remarks on an acceptance, a sentence each; the verdict is the last line."""
    told = [
        f'{one.commitment.id}: run {run} gave no value: {why}'
        for one in status.decisions
        for run, why in one.without
    ]
    told += [
        f'run {run} was interrupted: its command was killed, so it has no values; its jobs count'
        for run in status.interrupted
    ]
    told += [
        f'run {run} has no end yet: it goes on, or its command was killed, as the next '
        f'`assay accept run` finds out'
        for run in status.open
    ]
    told += [
        f'{one.commitment.id}: {one.reason}'
        for one in status.decisions
        if one.word in ('missed', 'waived') or (one.word == 'undecided' and one.is_final)
    ]
    told += [f'{one.name}: {one.word}: {one.reason}' for one in status.conditions]
    runs = len({one.run for one in status.runs})
    most = status.contract.most_jobs
    told.append(f'{many(runs, "run")}, {status.jobs} of {many(most, "job")} agreed')
    names = ', '.join(one.partition(':')[0] for one in status.verdict.reasons)
    return [*told, status.verdict.word + (f': {names}' if names else '')]


def status_as_json(status: Status) -> str:
    """JSON of all that is known."""
    found = {
        'name': status.contract.name,
        'digest': status.contract.digest,
        'verdict': status.verdict.word,
        'reasons': status.verdict.reasons,
        'jobs': status.jobs,
        'hours': status.hours,
        'commitments': [
            {**vars(one), 'commitment': one.commitment.model_dump(mode='json')}
            for one in status.decisions
        ],
        'conditions': status.conditions,
        'runs': status.runs,
    }
    return json_text(found, indent=2)


#: Bytes of such a file at most.
MOST_DECISIONS = 64 << 20


def decisions_text(status: Status) -> bytes:
    """The content of decisions.json: decisions on commitments and conditions, and the verdict."""
    return canonical(_record(status)) + b'\n'


def _record(status: Status) -> dict[str, Any]:
    return {
        'verdict': status.verdict.word,
        'reasons': [*status.verdict.reasons],
        'jobs': status.jobs,
        'hours': status.hours,
        'commitments': {
            one.commitment.id: {
                'word': one.word,
                'says': one.says,
                'value': one.value,
                # Infinite where a run measured nothing at all, which JSON has no word for.
                'spread': None if one.spread is None else repr(one.spread),
                'runs': [*one.runs],
                'without': [[run, why] for run, why in one.without],
                'reason': one.reason,
            }
            for one in status.decisions
        },
        'conditions': {
            one.name: {'word': one.word, 'reason': one.reason} for one in status.conditions
        },
    }


def decision_faults(archive: Archive, status: Status) -> Iterator[str]:
    """Sentences: where the file of an archive says something else than what is decided by its runs.

    :raises AssayError: if it is no such file.
    """
    path = archive.decisions
    data = read_bounded(path, MOST_DECISIONS)
    if data == decisions_text(status):
        return
    try:
        told = parse_record(data.rstrip(b'\n'))
    except ValueError as error:
        raise AssayError(f'{path.name} of the report was changed: {error}') from None
    now = _record(status)
    for kind in ('commitments', 'conditions'):
        then = told.get(kind)
        for name in now[kind]:
            was = then.get(name) if isinstance(then, Mapping) else None
            if was != now[kind][name]:
                yield (
                    f'the report says of {plain(name, 100)}: {_said(was)}; and by the runs it is '
                    f'{_said(now[kind][name])}'
                )
    yield (
        f'the report says {plain(str(told.get("verdict")), 100)}, and by the runs it is '
        f'{now["verdict"]}: {path.name} was changed'
    )


def _said(one: Any) -> str:
    if not isinstance(one, Mapping):
        return 'nothing'
    return plain(f'{one.get("word")} ({one.get("reason")})', 300)


REPORT_NAME = 'report.md'


def write_report(archive: Archive, status: Status) -> Path:
    """Write the report, and close the acceptance.

    :returns: the file that people read.
    :raises AssayError: if a run has no end, or it cannot be written.
    """
    entries = journal.read_journal(archive.journal).entries
    if left := journal.open_runs(entries):
        raise AssayError(
            f'{archive.folder}: run {left[0]} has no end: end it by `assay accept run` first'
        )
    path = archive.report / REPORT_NAME
    with explain_errors(path, 'written'):
        archive.report.mkdir(exist_ok=True)
        write_whole(archive.decisions, decisions_text(status))
        write_whole(path, report_text(status, entries))
    archives.close(archive)
    return path


def report_text(status: Status, entries: tuple[journal.AnyEntry, ...]) -> str:
    """The report: of the same acceptance the same, so that it can be made again.

    :param entries: of the journal, but for that of the report itself.
    """
    return ''.join(f'{line}\n' for line in _lines(status, entries))


def _lines(status: Status, entries: tuple[journal.AnyEntry, ...]) -> Iterator[str]:
    contract = status.contract
    yield f'# Acceptance: {_escaped(contract.name)}'
    yield ''
    yield f'**{status.verdict.word}**'
    yield ''
    for party, one in (('Buyer', contract.parties.buyer), ('Vendor', contract.parties.vendor)):
        yield f'- {party}: {_escaped(one.name)}; signs: {_escaped(", ".join(one.signers))}'
    yield f'- System: {contract.system}'
    yield f'- Rules: {contract.rules.category}: {_escaped(contract.rules.text)}'
    yield f'- Digest of what the contract says: {contract.digest}'
    yield ''
    yield from _markdown(
        'Commitment|Statistic|Value|Asked for|Margin|Spread|Word',
        (cells(one) for one in status.decisions),
    )
    yield from _markdown(
        'Commitment|Values of the runs that count, in order|Unit',
        ([one.commitment.id, _values(one.values), one.commitment.unit] for one in status.decisions),
    )
    for sentence in sentences(status):
        yield f'- {_escaped(sentence)}'
    yield ''
    if contract.waivers:
        rows = ([one.commitment, one.by, one.reason] for one in contract.waivers)
        yield from _markdown('Given up|By|Reason', rows)
    yield from _markdown(
        'Run|Case|Word|Nodes',
        ([str(one.run), one.case, one.word, ' '.join(one.nodes)] for one in status.runs),
    )
    yield from _markdown(
        'Entry|Time (UTC)|What|Run',
        (
            [
                str(one.number),
                f'{one.time:%Y-%m-%d %H:%M:%S}',
                one.what.kind,
                str(getattr(one.what, 'run', '')),
            ]
            for one in entries
        ),
    )


def _values(values: tuple[float, ...]) -> str:
    return ' '.join(f'{one:.6g}' for one in values)


def _markdown(columns: str, rows: Iterator[list[str]]) -> Iterator[str]:
    headings = columns.split('|')
    yield f'| {" | ".join(headings)} |'
    yield f'|{"---|" * len(headings)}'
    for row in rows:
        yield f'| {" | ".join(map(_escaped, row))} |'
    yield ''


def _escaped(text: str) -> str:
    """Foreign text in which nothing is Markdown or HTML."""
    line = plain(text)
    for sign in '\\`*_{}[]<>#|&':
        line = line.replace(sign, f'\\{sign}')
    return line
