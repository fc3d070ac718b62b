"""Jobs of schedulers: what is said of them, in our words, and which one is around this process.

Slurm's names of states serve for all schedulers, as ReFrame has them: what PBS says is translated.
``COMPLETED`` and ``FAILED`` are the two in which a job's own script came to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping

#: States in which a scheduler ended a job, and what they mean.
ENDED_BY_SCHEDULER = {
    'TIMEOUT': 'it hung: its job was killed at the time limit',
    'DEADLINE': 'its job was killed at a deadline',
    'NODE_FAIL': 'a node of its job died',
    'BOOT_FAIL': 'a node of its job did not boot',
    'OUT_OF_MEMORY': 'its job took more memory than it may',
    'CANCELLED': 'its job was cancelled',
    'PREEMPTED': 'its job was preempted: the scheduler gave its nodes to others (it would not in '
    'a partition or QOS that is not preempted)',
    'LAUNCH_FAILED': 'the scheduler could not start its job on its nodes',
    'RECONFIG_FAIL': 'the scheduler could not configure the nodes of its job as was asked',
    'KILLED': 'its job was killed by the scheduler',
}

#: Those in which its script was not run.
NEVER_STARTED = {'BOOT_FAIL', 'LAUNCH_FAILED', 'RECONFIG_FAIL'}

#: Others took the nodes: such a job says nothing of what it measured.
PREEMPTED = 'PREEMPTED'

#: States in which a job has come to its end.
ENDED = {'COMPLETED', 'FAILED', *ENDED_BY_SCHEDULER}

#: The same, of a job whose own processes have ended.
ENDING = {*ENDED, 'COMPLETING', 'STAGE_OUT'}


def has_ended(state: str | None) -> bool:
    """Whether a job has come to its end.

    :param state: maybe with who cancelled it, as ``CANCELLED by 0``.
    """
    return (state or '').partition(' ')[0] in ENDED


#: States that a job leaves only if somebody does something, and what that is.
STUCK = {
    'REQUEUE_HOLD': 'Slurm put its job back into the queue and holds it there; '
    '`scontrol show job` and the administrators know why',
    'SPECIAL_EXIT': 'Slurm put its job back into the queue and holds it there, as a prolog or an '
    'epilog of the site asked for',
    'RESV_DEL_HOLD': 'the reservation of its job was deleted, and Slurm holds the job: name '
    'another one in the access of the partition, or none',
    'REVOKED': 'another cluster of the federation runs its job, where it cannot be followed: name '
    "this cluster in the access of the partition ('--clusters=NAME')",
    'HELD': 'its job is held: ask for its release (qrls), or for the reason',
    'MOVED': 'PBS moved its job to another server, where it cannot be followed: name a queue of '
    "this server in the access of the partition ('-q QUEUE')",
}

#: States in which a job has its nodes, and its time goes by. In all others that are not
#: listed here it waits for nodes, maybe once more.
RUNNING = {'RUNNING', 'STOPPED', 'SIGNALING', 'RESIZING'}

#: States that last for a moment, and who keeps a job in one for longer.
PASSING = {
    'COMPLETING': 'a process on {nodes} cannot be killed, or an epilog hangs there',
    'STAGE_OUT': 'the burst buffer does not come to an end with what the job left',
    'REQUEUED': 'Slurm put it back into the queue, and does not start it again',
    'REQUEUE_FED': 'the federation does not put it back into a queue',
    'EXITING': 'its output does not come to its folder: PBS cannot copy it, or an epilogue hangs '
    'on {nodes}',
}

# Of a group's account of minutes, and not of those that its jobs use at once.
_BUDGET = r'(Assoc|QOS)(Grp)?(?!\w*RunMin)\w*Min(ute)?s?(Limit)?'

#: Reasons for which a job waits until somebody changes it, the cluster, or an account. From top to
#: bottom the first that fits is reported.
_FOR_GOOD = [
    (
        r'(job_?)?\w*launch[ _]failed[ _]requeued[ _]held',
        'its nodes could not start it, and Slurm holds it: ask the administrators to look at the '
        'prolog and at slurmd there',
    ),
    (
        r'user[ _]env[ _]retrieval[ _]failed[ _]requeued[ _]held',
        'Slurm could not read your environment on its node, and holds it: take --get-user-env out '
        'of the access of the partition',
    ),
    (r'JobHeldUser', 'it was held by its user: something of yours submits jobs held'),
    (r'JobHeldAdmin', 'it was held by an administrator: ask them'),
    (r'(JobHoldMaxRequeue|MaxRequeue)', 'it was started too often, and Slurm holds it'),
    (r'Partition\w*TimeLimit', 'it asks for more time than the partition allows'),
    (r'MaxMemPerLimit', 'it asks for more memory than the partition or the cluster allows'),
    (
        r'(Partition\w*NodeLimit|NodeCountLimit)',
        'it asks for more nodes than the partition allows, or fewer',
    ),
    (r'(Partition\w*Limit|PartitionConfig)', 'it asks for more than the partition allows'),
    (r'(Assoc|QOS)\w*(Per(Job|Node)|Wall)\w*', 'it asks for more than your account or QOS allows'),
    (_BUDGET, 'the hours of your account are used up: name another one, or wait for new ones'),
    (r'QOSMin\w*', 'it asks for less than the QOS takes: name another one (--qos)'),
    (r'(QOSUsageThreshold|QOSTimeLimit|QOSResourceLimit)', 'the QOS does not let it: name another'),
    (r'Account\w*NotAllowed', 'your account may not use the partition: name another (--account)'),
    (r'QOS\w*NotAllowed', 'the QOS may not use the partition: name another (--qos)'),
    (r'\w+NotAllowed', 'the partition does not let you use it'),
    (r'Invalid(Account|QOS)', 'Slurm does not know the account or QOS: name another'),
    (r'Invalid\w+', 'Slurm does not take what it asks for'),
    (r'BadConstraints', 'no nodes have what it asks for (constraint, memory, GRES)'),
    (r'DependencyNeverSatisfied', 'it waits for a job that failed'),
    (r'Reservation(Deleted|Invalid)', 'its reservation is gone: name another one, or none'),
    # PBS's comments.
    (r'Can Never Run', 'no nodes of its queue have what it asks for'),
    (r'.*too many failed attempts', 'its nodes could not start it, and PBS holds it'),
]


# Said of a reason that the system's file names.
_GIVEN_UP = 'a reason for which this system cancels jobs (slurm_job_cancel_reasons)'


def for_good(reason: str) -> str | None:
    """Why no waiting helps a job that waits for this reason; None if it may start by itself.

    :param reason: as ``squeue --format=%r`` prints it, or the comment of PBS.
    """
    for expression, words in _FOR_GOOD:
        if re.match(rf'\(?{expression}(?![A-Za-z])', reason):
            return words
    return None


#: Seconds for which nodes may be unavailable to a job. While Slurm looks through a long queue, it
#: calls all of them so for a quarter of an hour.
UNAVAILABLE = 1800.0

#: The reasons for which ReFrame cancels a job if nobody names others.
_DEFAULT_REASONS = {'ReqNodeNotAvail'}


def in_vain(reason: str, seconds: float, reasons: Iterable[str]) -> str | None:
    """Why to stop waiting for a job of Slurm; None to go on.

    :param reason: for which it waits.
    :param seconds: for which it has waited for that.
    :param reasons: for which its partition cancels jobs (``slurm_job_cancel_reasons``).
    """
    name, _, more = reason.partition(',')
    if name == 'ReqNodeNotAvail' and not re.search(r'UnavailableNodes:.', more):
        return None  # they are in use, or reserved for a while
    reasons = {*reasons}
    if reasons == _DEFAULT_REASONS:
        if name == 'ReqNodeNotAvail' and seconds > UNAVAILABLE:
            return f'nodes have been unavailable for {UNAVAILABLE / 60:.0f} min'
    elif name in reasons:
        return _GIVEN_UP
    return for_good(reason)


#: PBS's letters. What its manual calls the same may differ: T of Torque is not T of others.
_PBS = {
    **{'Q': 'QUEUED', 'H': 'HELD', 'W': 'WAITING', 'T': 'IN_TRANSIT'},
    **{'R': 'RUNNING', 'B': 'RUNNING', 'S': 'SUSPENDED', 'U': 'SUSPENDED'},
    **{'E': 'EXITING', 'C': 'COMPLETED', 'F': 'COMPLETED', 'X': 'COMPLETED', 'M': 'MOVED'},
}

#: Exit codes of PBS itself, from -1 on down: the first is of the node, the others of limits.
_PBS_CODES = {
    **dict.fromkeys((-1, -2, -3, -10, -13, -15, -21, -30), 'LAUNCH_FAILED'),
    **dict.fromkeys((-4, -5, -6, -20), 'NODE_FAIL'),
    **dict.fromkeys((-26, -27), 'OUT_OF_MEMORY'),
    -29: 'TIMEOUT',
}

#: PBS adds it to the number of the signal that ended a job.
_BY_SIGNAL = 256


def of_pbs(letter: str, code: int | None, out_of_time: bool, comment: str) -> str:
    """The state of a PBS job.

    :param letter: its ``job_state``.
    :param code: its exit code, once it has one.
    :param out_of_time: whether it used all the time that it had.
    :param comment: of PBS.
    """
    state = _PBS.get(letter, letter)
    if state != 'COMPLETED':
        return state
    if 'preempt' in comment.lower() and code != 0:
        return PREEMPTED
    if code is None:
        return 'CANCELLED' if 'terminated' in comment or 'deleted' in comment.lower() else state
    if code < 0:
        return _PBS_CODES.get(code, 'KILLED')
    if code > _BY_SIGNAL:
        return 'TIMEOUT' if out_of_time else 'CANCELLED'
    return 'FAILED' if code else state


# The job around this process ----------------------------------------------------------------------


#: By one of these a process knows that it is in a job.
_JOB_VARIABLES = ('SLURM_JOB_ID', 'SLURM_JOBID', 'PBS_JOBID', 'LSB_JOBID', 'PE_HOSTFILE')

#: What the variables of a job and of its steps begin with: of schedulers, and of those who start
#: processes in a job, by which an MPI program takes itself for one of theirs.
_OF_JOBS = (
    *('SLURM_', 'SLURMD_', 'SBATCH_', 'SRUN_', 'PBS_', 'LSB_', 'PE_HOSTFILE', 'SGE_'),
    *('PMI_', 'PMIX_', 'PALS_', 'MPI_LOCAL', 'HYDI_', 'OMPI_COMM_WORLD_'),
)

#: Of these what does not belong to a job: which Slurm or PBS is meant, and settings of PMIx.
_NOT_OF_JOBS = (
    *('SLURM_CONF', 'SLURM_CLUSTERS', 'SLURM_JWT'),
    *('PBS_CONF', 'PBS_SERVER', 'PBS_DEFAULT', 'PBS_EXEC', 'PBS_HOME', 'SGE_ROOT', 'SGE_CELL'),
    'PMIX_MCA_',
)


def forget_job_around(environment: MutableMapping[str, str]) -> str | None:
    """Take the variables of a job around out of the environment.

    :returns: which job that is; None if there is none, and nothing is taken out.
    """
    job = next((environment[name] for name in _JOB_VARIABLES if environment.get(name)), None)
    if job is None:
        return None
    for name in [*environment]:
        if name.startswith(_OF_JOBS) and not name.startswith(_NOT_OF_JOBS):
            del environment[name]
    return job
