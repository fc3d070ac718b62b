"""The record of a tuning: each round as it ends, so that the next command goes on from there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from assay import AssayError, paths, say
from assay.files import append_line, strict_json, whole_lines
from assay.mpis.algorithms import Algorithm
from assay.tuning.choosing import Trial
from assay.tuning.starts import Outcome, outcome_of

#: What a line is of. A subject is the first, an end the last.
SUBJECT, ROUND, END = 'subject', 'round', 'end'

#: The starts of a round, in order of time.
Starts = list[tuple[Trial, Outcome]]


class TuningJournal:
    """A file with an entry a line.

    :param subject: what is tuned; only a tuning of the same goes on.
    """

    def __init__(self, path: Path, subject: Mapping[str, Any]) -> None:
        self.path, self.subject = path, dict(subject)
        #: Rounds of all algorithms, and those with the rules in force.
        self.chosen_by: list[Starts] = []
        self.proofs: list[Starts] = []

    @property
    def rules(self) -> Path:
        """The file with the rules that are being proved."""
        return self.path.with_suffix('.rules')

    @property
    def is_new(self) -> bool:
        return not (self.chosen_by or self.proofs)

    def begin(self) -> None:
        """:raises AssayError: if it cannot be written."""
        self._write({'kind': SUBJECT, **self.subject})

    def add_round(self, starts: Starts, is_proof: bool) -> None:
        """:raises AssayError: if it cannot be written."""
        entries = [
            {'trial': asdict(trial), 'outcome': asdict(outcome)} for trial, outcome in starts
        ]
        (self.proofs if is_proof else self.chosen_by).append(starts)
        self._write({'kind': ROUND, 'is_proof': is_proof, 'starts': entries})

    def end(self) -> None:
        """No later command goes on with it.

        :raises AssayError: if it cannot be written.
        """
        self._write({'kind': END})

    def _write(self, entry: Mapping[str, Any]) -> None:
        append_line(self.path, json.dumps(entry, allow_nan=False))


def open_journal(subject: Mapping[str, Any]) -> TuningJournal:
    """The journal of the newest tuning of this subject, if it has no end; otherwise a new one.

    :param subject: with ``partition``, as ``system:partition``.
    """
    folder = paths.TUNINGS.joinpath(*str(subject['partition']).split(':'))
    for path in sorted(folder.glob('*.jsonl'), reverse=True):
        with suppress(AssayError):
            entries = [*_entries(path)]
            if not entries or entries[0] != {'kind': SUBJECT, **subject}:
                continue
            if entries[-1]['kind'] == END:
                break
            found = TuningJournal(path, subject)
            _fill(found, entries)
            if not found.is_new:
                rounds = len(found.chosen_by) + len(found.proofs)
                say(f'goes on with {path}, which has {rounds} rounds')
            return found
    new = TuningJournal(folder / f'{datetime.now():%Y%m%dT%H%M%S.%f}.jsonl', subject)
    new.begin()
    return new


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """:raises AssayError: if the file cannot be read."""
    for number, line in enumerate(whole_lines(path), 1):
        try:
            yield strict_json(line)
        except ValueError:
            raise AssayError(f'{path}, line {number}: cannot be read') from None


def _trial(told: Mapping[str, Any]) -> Trial:
    algorithms = tuple(Algorithm(**one) for one in told['algorithms'])
    return Trial(**{**told, 'algorithms': algorithms})


def _fill(journal: TuningJournal, entries: Sequence[dict[str, Any]]) -> None:
    for entry in entries:
        if entry['kind'] != ROUND:
            continue
        starts = [(_trial(one['trial']), outcome_of(one['outcome'])) for one in entry['starts']]
        (journal.proofs if entry['is_proof'] else journal.chosen_by).append(starts)
