"""What the jobs of a run left in its folder, as far as that is still there.

A job wrote it: it may be anything, of any length.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from assay.results.cases import Case, Run, left_in
from assay.text import visible_lines

#: What is shown of an output at most: lines, characters of one, and bytes that are read.
LINES, WIDTH, TAIL = 20, 240, 1 << 14
#: Bytes of a benchmark's report, of which no real one has so many.
MOST = 1 << 24

RESULT = 'result.json'


def log_of(run: Run) -> list[str] | None:
    """The lines of ReFrame's log; None where that is gone."""
    for name in run.logs:
        try:
            return Path(name).read_text(errors='replace').splitlines()
        except OSError:
            continue
    return None


def result(where: Path) -> dict[str, Any] | None:
    """The report of a benchmark; None where there is none, or it cannot be read."""
    try:
        path = where / RESULT
        if not path.is_file() or path.stat().st_size > MOST:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


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
