"""The folder of a run: its log, its report and its jobs' files, which no other run touches.

Several runs may go on at once in one checkout, also on several hosts of one file system. Each
process that starts ReFrame has such a folder: `assay run` makes it and names it to ReFrame in the
environment, a plain `reframe` makes its own (config/common.py).
"""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from assay import AssayError, locks, paths
from assay.files import explain_errors

#: Runs whose files stay; older ones go when a new one begins.
KEPT = 20

#: The file that tells whether a run is under way. For a lock NFS wants it open for writing.
LOCK = 'lock'

#: The environment variable that names a run's folder, to ReFrame and to every local job of it.
VARIABLE = 'ASSAY_RUN'


def name_on_nodes(case: str, place: str, nodes: str) -> str:
    """The name of a case on given nodes; on other nodes its cores are elsewhere.

    :param place: ``system:partition+environment``.
    :param nodes: such as ``n[1-4]``; empty if they are not known.
    """
    return f'{case} @{place} on {nodes}'


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run of the suite.

    :param folder: with all its files.
    :param handle: of its lock, held as long as a process has it open; -1 if another made the run.
    """

    folder: Path
    handle: int = -1

    @property
    def log(self) -> Path:
        """The file of ReFrame's log."""
        return self.folder / 'reframe.log'

    @property
    def report(self) -> Path:
        """ReFrame's report."""
        return self.folder / 'report.json'

    @property
    def patience(self) -> Path:
        """The file with the seconds that its cases may wait for others, if there is a budget."""
        return self.folder / 'patience'

    @property
    def distances(self) -> Path:
        """The file with the distances of cores in earlier runs, if any is known.

        JSON: nanoseconds by what :func:`name_on_nodes` gives.
        """
        return self.folder / 'distances.json'

    @property
    def mpis(self) -> Path:
        """The file with the MPIs of this machine, as they answered when the run began."""
        return self.folder / 'mpis.json'

    @property
    def exports(self) -> dict[str, str]:
        """The environment variables that keep ReFrame's files in the folder."""
        return {
            VARIABLE: str(self.folder),
            'RFM_PREFIX': str(self.folder),
            'RFM_STAGE_DIR': str(self.folder / 'stage'),
            'RFM_OUTPUT_DIR': str(self.folder / 'output'),
            'RFM_REPORT_FILE': str(self.report),
            'RFM_GENERATE_FILE_REPORTS': 'yes',
            'RFM_COMPRESS_REPORT': 'no',
        }

    @property
    def host(self) -> str:
        """The host that it was begun on."""
        return self.folder.name.partition('-')[2].rpartition('-')[0]

    @property
    def is_under_way(self) -> bool:
        """Whether a process still has it open."""
        path = self.folder / LOCK
        try:
            with path.open('r+b') as file:
                return not locks.try_lock(file.fileno(), path)
        except FileNotFoundError:
            return False
        except AssayError:  # a file system without locks
            return True


def begin_run() -> RunFolder:
    """Make the folder of a new run, and remove those of runs that were long ago.

    :raises AssayError: if it cannot be made.
    """
    name = f'{datetime.now():%Y%m%dT%H%M%S.%f}-{socket.gethostname()}-{os.getpid()}'
    draft = paths.RUNS / f'.{name}'
    try:
        draft.mkdir(parents=True)
        # Locked before anybody else can see it, and so can take it for one that has ended.
        handle = os.open(draft / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        locks.lock(handle, draft / LOCK, wait=False)
        run = RunFolder(draft.rename(paths.RUNS / name), handle)
    except OSError as error:
        raise AssayError(f'no folder for this run: {error.filename}: {error.strerror}') from None
    _remove_old(run)
    return run


@cache
def this_run() -> RunFolder:
    """The run that this process is part of; a new one, if it is of none."""
    if folder := os.environ.get(VARIABLE):
        return RunFolder(Path(folder))
    run = begin_run()
    os.environ.update(run.exports)
    return run


def ended_runs() -> list[RunFolder]:
    """The runs of this host without a process, oldest first.

    Of another host's it may not be known: not every file system shows its locks to all hosts.
    """
    folders = [path for path in paths.RUNS.glob('[0-9]*') if path.is_dir()]
    folders.sort(key=time_of_change)
    here = [run for run in map(RunFolder, folders) if run.host == socket.gethostname()]
    return [run for run in here if not run.is_under_way]


def starts_jobs(run: RunFolder) -> None:
    """Let ``last`` be another name of a run: what only lists checks is none.

    :raises AssayError: if it cannot be written.
    """
    draft = paths.RUNS / f'.last-{run.folder.name}'
    with explain_errors(draft, 'made'):
        draft.unlink(missing_ok=True)
        draft.symlink_to(run.folder.name)
        draft.replace(paths.RUNS / 'last')


def newest_report() -> Path:
    """ReFrame's report of the run that ended last.

    :raises AssayError: if there has been none.
    """
    reports = sorted(paths.RUNS.glob('[0-9]*/report.json'), key=time_of_change)
    if not reports:
        raise AssayError(f'there is no report in {paths.RUNS}: run something first.')
    return reports[-1]


def time_of_change(path: Path) -> tuple[float, Path]:
    """When a file changed, in seconds since 1970; 0 if another run has removed it meanwhile.

    Some file systems know whole seconds only. The later name of two in the same one is the newer.
    """
    with suppress(FileNotFoundError):
        return path.stat().st_mtime, path
    return 0.0, path


def _remove_old(new: RunFolder) -> None:
    """Keep the newest :data:`KEPT` that had jobs; others only listed checks."""
    others = [run for run in ended_runs() if run.folder != new.folder]
    real = [run for run in others if (run.folder / 'stage').is_dir()]
    for run in {*others} - {*real[-KEPT:]}:
        shutil.rmtree(run.folder, ignore_errors=True)
