"""The cases that did not simply pass: why not, and what their jobs wrote last. And what was
measured, once for all cases: where, with which software, and by which suite.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.report.terminal import ordinal
from assay.results.cases import Case, Run, left_in
from assay.results.failures import (
    Failure,
    disturbed_cases,
    failures,
    findings,
    retried,
    skipped,
    unheld,
)
from assay.results.provenance import nodes_of
from assay.results.store import TriageCause
from assay.text import plain, visible_lines

#: Sentences of one kind, and outputs, of a page; the rest is only counted.
MOST, MOST_OUTPUTS = 200, 40


@dataclass(frozen=True)
class Told:
    """A sentence about a case.

    :param files: where those of its job are.
    :param cause: what somebody found to be behind it, in words; empty for nothing.
    :param outputs: the ends of its outputs, by the names of their files.
    """

    case: str
    reason: str
    files: str = ''
    cause: str = ''
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Cases with the same result.

    :param kind: ``bad`` or ``odd``.
    :param more: how many are not told.
    """

    anchor: str
    title: str
    kind: str
    told: Sequence[Told]
    more: int


def sections(
    run: Run, log: Sequence[str] | None, causes: Sequence[TriageCause] = ()
) -> list[Section]:
    """The sections that have a case.

    :param log: the lines of ReFrame's log; None to look for it where the run had it.
    :param causes: what is behind failures, as far as somebody said so.
    """
    lines = log if log is not None else log_of(run) or []
    late = (
        Told(one.case, f'passed at the {ordinal(one.attempts)} attempt; first: {one.reason}')
        for one in retried(run)
    )
    free = (
        Told(one.title, f'{one.implementation} has right answers, held to no reference')
        for one in unheld(run)
    )
    found = [
        _section('failed', 'Failed', 'bad', _with_outputs(failures(run), causes)),
        _section(
            'disturbed',
            'Disturbed: neither pass nor fail',
            'odd',
            _with_outputs(disturbed_cases(run), ()),
        ),
        _section(
            'findings',
            'Found in cases that passed',
            'odd',
            (Told(title, finding) for finding, title in findings(run)),
        ),
        _section('skipped', 'Skipped', 'odd', (Told(*one) for one in skipped(run, lines))),
        _section('late', 'Passed, but not at once', 'odd', late),
        _section('unheld', 'Held to nothing', 'odd', free),
    ]
    return [section for section in found if section.told]


def _section(anchor: str, name: str, kind: str, told: Iterable[Told]) -> Section:
    every = [*told]
    return Section(anchor, name, kind, every[:MOST], len(every[MOST:]))


def _with_outputs(failed: Sequence[Failure], causes: Sequence[TriageCause]) -> list[Told]:
    known = {one.failed: ': '.join(filter(None, (one.kind, one.note))) for one in causes}
    return [
        Told(
            one.case,
            one.reason,
            ' '.join(one.files),
            known.get(one.case, ''),
            last_lines(one.ran) if number < MOST_OUTPUTS and one.ran else {},
        )
        for number, one in enumerate(failed)
    ]


# What jobs left, which may be anything, of any length ---------------------------------------------


#: What is shown of an output at most: lines, characters of one, and bytes that are read.
LINES, WIDTH, TAIL = 20, 240, 1 << 14


def log_of(run: Run) -> list[str] | None:
    """The lines of ReFrame's log; None where that is gone."""
    for name in run.logs:
        try:
            return Path(name).read_text(errors='replace').splitlines()
        except OSError:
            continue
    return None


def last_lines(case: Case) -> dict[str, str]:
    """The end of each output of a case, by the name of its file; of what is empty or gone, none."""
    if not (where := left_in(case)):
        return {}
    return {name: text for name in case.output_names if (text := _end(where / name))}


def _end(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe would wait for somebody who writes
            return ''
        with path.open('rb') as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = visible_lines(file.read(TAIL).decode(errors='replace'))
    except OSError:
        return ''
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return '\n'.join(
        line if len(line) <= WIDTH else f'{line[:WIDTH]} ...' for line in lines[-LINES:]
    )


#: Facts in words; a fact that is not listed keeps its name.
NAMES = {
    'by': 'built by',
    'spec': 'Spack spec',
    'hash': 'hash of the build',
    'mpi': 'MPI, built with',
    'flags': 'compiler flags',
    'target': 'built for',
    'suite_commit': 'commit of the suite',
    'ran_mpi': 'MPI, as it ran',
}

#: Values of one fact that are told.
MOST_VALUES = 12


@dataclass(frozen=True)
class MeasuredWith:
    """What was measured with, in one respect.

    :param values: each value, and in how many cases.
    :param more: how many values are not told.
    """

    name: str
    values: Sequence[tuple[str, int]]
    more: int = 0


def measured_with(cases: Sequence[Case]) -> tuple[list[MeasuredWith], list[MeasuredWith]]:
    """Facts of some cases, and the environment variables that their jobs had."""
    told: dict[str, Counter[str]] = {
        name: Counter() for name in ('system', 'partition', 'environment', 'fabric', 'nodes')
    }
    variables: dict[str, Counter[str]] = {}
    for case in cases:
        told['system'][case.system] += 1
        told['partition'][case.partition] += 1
        told['environment'][case.environment] += 1
        told['fabric'][case.fabric] += 1
        told['nodes'][nodes_of(case)] += 1
        for name, value in case.facts:
            kind = variables if re.fullmatch(r'[A-Z].*', name) else told
            kind.setdefault(name, Counter())[value] += 1
    return _as_facts(told), _as_facts(variables)


def _as_facts(told: dict[str, Counter[str]]) -> list[MeasuredWith]:
    found = []
    for name, counts in told.items():
        values = [(plain(value), count) for value, count in counts.most_common() if value]
        if values:
            words = NAMES.get(name, name.removeprefix('ran_on_').removeprefix('ran_'))
            label = plain(words if name.isupper() else words.replace('_', ' '))
            found.append(MeasuredWith(label, values[:MOST_VALUES], len(values[MOST_VALUES:])))
    return found
