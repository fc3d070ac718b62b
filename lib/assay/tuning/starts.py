"""The starts of a job of tuning: what each is to run with, and its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

from assay import AssayError
from assay.files import strict_json, write_whole
from assay.text import plain

T = TypeVar('T')

#: In the folder of the job: what came of its starts; and the answers to an MPI's questions.
OUTCOMES, ANSWERS = 'starts.json', 'answers'

#: A start is ended after so many times the seconds of the default, within bounds: it hangs.
OF_DEFAULT, FEWEST_SECONDS, MOST_SECONDS = 10, 180, 600
#: Seconds of a job after which no start begins: its limit of time has room for one that hangs.
LATEST = 45 * 60

Word = Literal[
    'good', 'hangs', 'crashes', 'gives a wrong answer', 'did not run as asked', 'was not begun'
]


@dataclass(frozen=True)
class Start:
    """A start of the program.

    :param name: of its folder in the job's.
    :param env: variables beside the job's own.
    :param operations: that are measured; all if there are none.
    :param is_of_order: whether it is of ``noncommutative``, and not of ``collectives``.
    :param seconds: after which it is ended.
    :param latest: seconds of the job after which it does not begin.
    """

    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    is_of_order: bool = False
    seconds: int = MOST_SECONDS
    latest: int = LATEST


@dataclass(frozen=True)
class Outcome:
    """The outcome of a start.

    :param why: in words, if it is not good.
    :param times: of a good one: operation, size in bytes, and seconds of its best sample.
    :param ignored: variables of its :attr:`Start.env` that the MPI ignored, with the reason.
    :param seconds: that it took from its start to its end, if it is good.
    """

    name: str
    word: Word
    why: str = ''
    times: tuple[tuple[str, int, float], ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 0

    @property
    def by_point(self) -> dict[tuple[str, int], float]:
        """Seconds by operation and size."""
        return {(operation, size): seconds for operation, size, seconds in self.times}


@dataclass(frozen=True)
class TuningJob:
    """The results of a tuning job.

    :param version: of the MPI, as it says it.
    :param variables: its control variables, of the job's own start, the default.
    :param answers: to the questions of its family.
    """

    version: str
    ranks: int
    hosts: tuple[str, ...]
    variables: dict[str, dict[str, Any]]
    answers: str
    outcomes: tuple[Outcome, ...]

    @property
    def patience(self) -> int:
        """Seconds after which a start hangs, by how long those of this job took."""
        took = [one.seconds for one in self.outcomes if one.name and one.word == 'good']
        longest = OF_DEFAULT * max(took, default=MOST_SECONDS)
        return min(max(longest, FEWEST_SECONDS), MOST_SECONDS)


def write_plan(path: Path, starts: Sequence[Start]) -> None:
    """:raises AssayError: if it cannot be written."""
    write_whole(path, json.dumps([asdict(one) for one in starts]))


def read_plan(path: Path) -> list[Start]:
    """:raises AssayError: if it cannot be read."""
    return _read(path, TypeAdapter(list[Start]), 'the plan of the starts')


def write_job(path: Path, job: TuningJob) -> None:
    """A time that is not finite is refused by who reads it.

    :raises AssayError: if it cannot be written.
    """
    write_whole(path, json.dumps(asdict(job)))


def read_job(path: Path) -> TuningJob:
    """:raises AssayError: if it cannot be read."""
    return _read(path, TypeAdapter(TuningJob), 'what came of the starts')


def _read(path: Path, kind: TypeAdapter[T], what: str) -> T:
    try:
        return kind.validate_python(strict_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: {what} cannot be read: {plain(error, 300)}') from None
