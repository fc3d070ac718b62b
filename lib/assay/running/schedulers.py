"""In ReFrame's process: the schedulers that Assay brings, in the place of ReFrame's.

They have the names of ReFrame's: a partition says ``slurm``, and gets ours, whether `assay run` or
a plain ``reframe -r`` reads its configuration.
"""

from __future__ import annotations

import os

from reframe.core import backends
from reframe.core.schedulers import JobScheduler

from assay.running import allocation, pbs_jobs, slurm_jobs

_OURS: dict[str, type[JobScheduler]] = {
    'slurm': slurm_jobs.WithDatabase,
    'squeue': slurm_jobs.WithoutDatabase,
    'pbs': pbs_jobs.Pbs,
    'pbspro': pbs_jobs.PbsPro,
    'torque': pbs_jobs.Torque,
}


def use_own_schedulers() -> None:
    """From here on; called by the configuration, before ReFrame looks for its schedulers."""
    ours_by_name = _OURS
    if os.environ.get(allocation.VARIABLE):
        from assay.running import steps

        steps.run_as_steps()
        ours_by_name = {**_OURS, **steps.SCHEDULERS}
    for name, ours in ours_by_name.items():
        if backends.getscheduler(name) is not ours:
            del backends._schedulers[name]  # a name can be given but once
            backends.register_scheduler(name)(ours)
