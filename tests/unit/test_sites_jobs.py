"""What becomes of jobs as schedulers of real sites tell of them: :mod:`tests/sites/jobs`.

The folder of a site has what its commands print: ``2.squeue`` the second time that squeue is asked,
and each further time if there is no ``3.squeue``. What it prints on standard error is in
``2.squeue.err``; without a ``2.squeue`` beside it the command fails. ``expect`` is of:

``scheduler``
    ReFrame's name of it.
``every``
    Seconds from one look of ReFrame's at its jobs to the next, on a clock of its own.
``state``
    In which the job ends, and ``exit_code``; or
``fails``
    the sentence that its case fails with; and in any case
``after``
    seconds until then.
``says``
    What is said meanwhile: parts of sentences, in their order.
``verdict``
    ``judged`` by what it left, ``again`` if it is no evidence, or ``fail``.
``cancelled``
    Whether the job was cancelled.
``left``
    Files that the job has left by then. In outputs ``@WORK@`` stands for its folder.
"""

import pytest

from assay.job.ending import why_cut_short
from assay.machine import job_states
from sites import sites


@pytest.mark.parametrize('site', sites('jobs'), ids=str)
def test_a_job_ends_in_a_sentence(site, a_site):
    expect = dict(site.expect)
    one = a_site(site.folder, expect.pop('scheduler'))
    for name in expect.pop('left', ()):
        (one.work / name).touch()
    why = one.play(expect.pop('every'))
    job, state = one.job, one.job.state or ''
    found = {'after': round(one.clock.now - one.clock.begun)}
    if why:
        found |= {'fails': why, 'verdict': 'fail'}
    else:
        words = why_cut_short(state, one.work, one.work / job.stderr, job.nodelist)
        found['state'] = state
        found['verdict'] = 'fail' if words else 'judged'
        if state == job_states.PREEMPTED:
            found['verdict'] = 'again'
        if job.exitcode is not None:
            found['exit_code'] = job.exitcode
    if any(call.startswith(('scancel', 'qdel')) for call in one.calls):
        found['cancelled'] = True
    if one.said:
        found['says'] = one.said
    assert found == expect
