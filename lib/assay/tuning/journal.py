"""The record of a tuning: each round as it ends, so that the next command goes on from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from assay import AssayError, paths, say
from assay.files import append_line, strict_json, whole_lines
from assay.tuning.choosing import Trial
from assay.tuning.starts import Outcome

#: What a line is of. A subject is the first, an end the last.
SUBJECT, ROUND, END = 'subject', 'round', 'end'

#: The starts of a round, in order of time.
Starts = list[tuple[Trial, Outcome]]
_STARTS = TypeAdapter(Starts)


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

    def begin(self) -> None:
        """:raises AssayError: if it cannot be written."""
        self._write({'kind': SUBJECT, **self.subject})

    def add_round(self, starts: Starts, is_proof: bool) -> None:
        """:raises AssayError: if it cannot be written."""
        (self.proofs if is_proof else self.chosen_by).append(starts)
        entries = _STARTS.dump_python(starts, mode='json')
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
        with suppress(AssayError, KeyError, ValueError):  # a damaged one
            first, *rounds = map(strict_json, whole_lines(path))
            if first != {'kind': SUBJECT, **subject}:
                continue
            if rounds and rounds[-1]['kind'] == END:
                break
            found = TuningJournal(path, subject)
            try:
                for one in rounds:
                    starts = _STARTS.validate_python(one['starts'])
                    (found.proofs if one['is_proof'] else found.chosen_by).append(starts)
            except (KeyError, ValueError):
                say(f'{path} cannot be read: its rounds are measured again')
                continue
            if rounds:
                say(f'goes on with {path}, which has {len(rounds)} rounds')
            return found
    new = TuningJournal(folder / f'{datetime.now():%Y%m%dT%H%M%S.%f}.jsonl', subject)
    new.begin()
    return new
