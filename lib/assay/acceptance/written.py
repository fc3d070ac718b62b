"""The report of an acceptance: what both parties read and sign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay import AssayError
from assay.acceptance import archive as archives
from assay.acceptance import decided, journal
from assay.acceptance.archive import Archive
from assay.acceptance.show import cells, sentences
from assay.acceptance.status import Standing
from assay.files import write_whole
from assay.text import plain

NAME = 'report.md'


def write(archive: Archive, standing: Standing) -> Path:
    """Write the report, and close the acceptance.

    :returns: the file that people read.
    :raises AssayError: if a run has no end, or it cannot be written.
    """
    entries = journal.read(archive.journal).entries
    if left := journal.open_runs(entries):
        raise AssayError(
            f'{archive.folder}: run {left[0]} has no end: end it by `assay accept run` first'
        )
    path = archive.report / NAME
    try:
        archive.report.mkdir(exist_ok=True)
        write_whole(archive.decisions, decided.text(standing))
        write_whole(path, text(standing, entries))
    except OSError as error:
        raise AssayError(f'{error.filename}: cannot be written: {error.strerror}') from None
    archives.seal(archive)
    return path


def text(standing: Standing, entries: tuple[journal.Entry, ...]) -> str:
    """The report: of the same acceptance the same, so that it can be made again.

    :param entries: of the journal, but for that of the report itself.
    """
    return ''.join(f'{line}\n' for line in _lines(standing, entries))


def _lines(standing: Standing, entries: tuple[journal.Entry, ...]) -> Iterator[str]:
    contract = standing.contract
    yield f'# Acceptance: {_text(contract.name)}'
    yield ''
    yield f'**{standing.verdict.word}**'
    yield ''
    for party, one in (('Buyer', contract.parties.buyer), ('Vendor', contract.parties.vendor)):
        yield f'- {party}: {_text(one.name)}; signs: {_text(", ".join(one.signers))}'
    yield f'- System: {contract.system}'
    yield f'- Rules: {contract.rules.category}: {_text(contract.rules.text)}'
    yield f'- Digest of what the contract says: {contract.digest}'
    yield ''
    yield from _table(
        'Commitment|Statistic|Value|Asked for|Margin|Spread|Word',
        (cells(one) for one in standing.decisions),
    )
    yield from _table(
        'Commitment|Values of the runs that count, in order|Unit',
        (
            [one.commitment.id, _values(one.values), one.commitment.unit]
            for one in standing.decisions
        ),
    )
    for sentence in sentences(standing):
        yield f'- {_text(sentence)}'
    yield ''
    if contract.waivers:
        rows = ([one.commitment, one.by, one.reason] for one in contract.waivers)
        yield from _table('Given up|By|Reason', rows)
    yield from _table(
        'Run|Case|Word|Nodes',
        ([str(one.run), one.case, one.word, ' '.join(one.nodes)] for one in standing.runs),
    )
    yield from _table(
        'Entry|Time (UTC)|What|Run',
        (
            [
                str(one.number),
                f'{one.time:%Y-%m-%d %H:%M:%S}',
                one.kind,
                str(one.what.get('run', '')),
            ]
            for one in entries
        ),
    )


def _values(values: tuple[float, ...]) -> str:
    return ' '.join(f'{one:.6g}' for one in values)


def _table(columns: str, rows: Iterator[list[str]]) -> Iterator[str]:
    headings = columns.split('|')
    yield f'| {" | ".join(headings)} |'
    yield f'|{"---|" * len(headings)}'
    for row in rows:
        yield f'| {" | ".join(map(_text, row))} |'
    yield ''


def _text(text: str) -> str:
    """Foreign text in which nothing is Markdown or HTML."""
    line = plain(text)
    for sign in '\\`*_{}[]<>#|&':
        line = line.replace(sign, f'\\{sign}')
    return line
