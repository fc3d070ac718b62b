"""What was decided, as data beside the report that people read: ``report/decisions.json``.

It is written when an acceptance is closed, and made again by whoever verifies it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay import AssayError
from assay.acceptance.archive import Archive
from assay.acceptance.canonical import canonical, parse
from assay.acceptance.files import read_bounded
from assay.acceptance.status import Standing
from assay.text import plain

#: Bytes of such a file at most.
MOST = 64 << 20


def text(standing: Standing) -> bytes:
    """What was decided of commitments and conditions, and the verdict."""
    return canonical(_record(standing)) + b'\n'


def _record(standing: Standing) -> dict[str, Any]:
    return {
        'verdict': standing.verdict.word,
        'reasons': [*standing.verdict.reasons],
        'jobs': standing.jobs,
        'hours': standing.hours,
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
            for one in standing.decisions
        },
        'conditions': {
            one.name: {'word': one.word, 'reason': one.reason} for one in standing.conditions
        },
    }


def differences(archive: Archive, standing: Standing) -> Iterator[str]:
    """Sentences: where the file of an archive says something else than what is decided by its runs.

    :raises AssayError: if it is no such file.
    """
    path = archive.decisions
    data = read_bounded(path, MOST)
    if data == text(standing):
        return
    try:
        told = parse(data.rstrip(b'\n'))
    except ValueError as error:
        raise AssayError(f'{path.name} of the report was changed: {error}') from None
    now = _record(standing)
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
