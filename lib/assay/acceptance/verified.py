"""What came of verifying an acceptance, and how people and programs are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Literal

from assay.spelling import many
from assay.text import plain

#: Sentences of one kind that are shown; JSON has all.
_MOST = 20

Word = Literal['VERIFIED', 'NOT SIGNED', 'NOT RIGHT']


@dataclass
class Verified:
    """What came of it.

    :param faults: sentences: what was changed, and where.
    :param of_signatures: likewise, of signatures.
    :param unsigned: sentences: who has not signed.
    :param unknown_keys: who signed with a key that was held against none.
    :param proved: sentences: what was found to be right.
    """

    faults: list[str] = field(default_factory=list)
    of_signatures: list[str] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    unknown_keys: list[str] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)

    @property
    def word(self) -> Word:
        """In one word."""
        if self.faults or self.of_signatures:
            return 'NOT RIGHT'
        return 'NOT SIGNED' if self.unsigned else 'VERIFIED'

    @property
    def is_right(self) -> bool:
        """Whether all is right, and signed by all who have to."""
        return self.word == 'VERIFIED'

    def lines(self) -> Iterator[str]:
        """For people: what is right, what is not, and the word."""
        yield from (f'right: {one}' for one in self.proved)
        wrong = [*self.faults, *self.of_signatures]
        yield from (f'WRONG: {one}' for one in wrong[:_MOST])
        if len(wrong) > _MOST:
            yield f'WRONG: and {many(len(wrong) - _MOST, "thing")} more: --json tells all'
        yield from (f'MISSING: {one}' for one in self.unsigned)
        if self.unknown_keys:
            names = ', '.join(plain(one, 100) for one in self.unknown_keys)
            yield (
                f'not known: whether the keys are those of {names}: compare the fingerprints, or '
                f'give --key NAME=FILE'
            )
        yield f'{self.word}: {self._why()}'

    def _why(self) -> str:
        if self.faults or self.of_signatures:
            return f'{many(len(self.faults) + len(self.of_signatures), "thing")} wrong'
        if self.unsigned:
            return f'{many(len(self.unsigned), "signature")} missing; all else is right'
        if self.unknown_keys:
            return 'it is what was signed with these keys'
        return 'it is what all parties signed'

    def as_json(self) -> str:
        """All of it."""
        return json.dumps({'verdict': self.word, **asdict(self)}, indent=2)
