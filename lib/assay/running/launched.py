"""A launcher that a program under `assay witness run` started: it runs, with the witness before its
programs. Started as ``python -m assay.running.launched REPORT FOLDER LAUNCHER ARGUMENTS...``.
"""

import os
import signal
import sys
from pathlib import Path

if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback before the launcher is there

from assay.running.launches import launch


def as_it_was() -> None:
    """Undo what Python changed for itself, before the launcher takes its place."""
    if b'\0LC_CTYPE=' not in b'\0' + Path('/proc/self/environ').read_bytes():
        os.environ.pop('LC_CTYPE', None)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


if __name__ == '__main__':
    report, folder, *words = sys.argv[1:]
    made = launch(words, Path(report), Path(folder))
    as_it_was()
    os.execvp(made[0], made)
