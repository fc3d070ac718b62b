"""Standard output and error on which nothing is printed that a terminal obeys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from assay.text import VisibleStream, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


def write_visibly() -> None:
    """From here on this process prints nothing that a terminal obeys, whoever wrote it."""
    sys.stdout = VisibleStream(sys.stdout)
    sys.stderr = VisibleStream(sys.stderr)


def console() -> Console:
    """Standard output; wide where nobody's window limits it, so that no figure is cut.

    Only its own colours reach the terminal as such: all text in it is made visible.
    """
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for one in super().render(*arguments, **options):
                yield one if one.control else Segment(visible_lines(one.text), one.style)

    out = sys.stdout
    limited = out.isatty() or 'COLUMNS' in os.environ
    file = out.beneath if isinstance(out, VisibleStream) else out
    return VisibleConsole(file=file, highlight=False, width=None if limited else 160)
