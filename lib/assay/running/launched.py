"""A launcher that a program under `assay witness run` started: it runs, with the witness before its
programs. Started as ``python -m assay.running.launched REPORT FOLDER LAUNCHER ARGUMENTS...``.
"""

import os
import sys
from pathlib import Path

from assay.running.program import launch

if __name__ == '__main__':
    report, folder, *words = sys.argv[1:]
    made = launch(words, Path(report), Path(folder))
    os.execvp(made[0], made)
