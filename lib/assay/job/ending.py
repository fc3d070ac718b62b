"""Jobs that something else than their program ended: a time limit, or a node that died."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path

from assay import witness
from assay.job.launch import WITNESS
from assay.job.output import Output, found
from assay.job.stacks import innermost_calls
from assay.machine.job_states import ENDED_BY_SCHEDULER, NEVER_STARTED

#: What keeps a scheduler from starting a job again, on other nodes, when one of its own died: then
#: nobody would hear of that node.
ONLY_ONCE = {
    'slurm': '--no-requeue',
    'squeue': '--no-requeue',
    'pbs': '-r n',
    'pbspro': '-r n',
    'torque': '-r n',
}

_NODE_FAILURE = re.compile('node failure', re.IGNORECASE)

#: Ranks whose end is reported.
MOST = 4


def cut_short(state: str, folder: Path, errors: Path, nodes: Sequence[str] = ()) -> str | None:
    """Why a job did not get to its end, and where its ranks were then; None if it did.

    :param state: the scheduler's word for how the job ended.
    :param folder: where the job ran.
    :param errors: the job's standard error, in which Slurm names the node that died.
    :param nodes: the nodes of the job; Slurm runs its script on the first.
    """
    for name, words in ENDED_BY_SCHEDULER.items():
        if state.startswith(name):
            words += _by_whom(state)
            if name in NEVER_STARTED:
                return words
            if not errors.exists():
                return f'{words} before it started'
            output = Output((errors,))
            said = dict.fromkeys(
                host for piece in output for host in re.findall(r'[Nn]ode failure on (\S+)', piece)
            )
            if name == 'NODE_FAIL' and not found(_NODE_FAILURE, output):
                said = dict.fromkeys(nodes[:1])  # nobody was left on it to say so
            which = f' ({", ".join(said)})' if said else ''
            seen = filter(None, [last_seen(folder), innermost_calls(folder)])
            return f'{words}{which}; {"; ".join(seen)}'
    return None


def _by_whom(state: str) -> str:
    """Who cancelled a job, of ``CANCELLED by 0``."""
    user = state.partition(' by ')[2]
    if not user.isdigit():
        return ''
    if int(user) == os.getuid() != 0:
        return ' by you'
    try:
        return f' by {pwd.getpwuid(int(user)).pw_name}'
    except KeyError:
        return f' by user {user}'


def last_seen(folder: Path) -> str:
    """Where the ranks of the newest program in a job's folder were, by what the witness left."""
    reports = sorted(folder.rglob(WITNESS), key=lambda path: (path.stat().st_mtime, path))
    if not reports:
        return 'its ranks had not come through MPI_Init'
    try:
        report = witness.read(reports[-1])
    except witness.WitnessError as error:
        return str(error)
    if report.complete:
        return 'all ranks had come to MPI_Finalize, and one did not come out of it'
    ended = [one.words for one in report.ended[:MOST]]
    return '; '.join(ended) or 'no rank left word of where it was'
