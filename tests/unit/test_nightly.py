"""Nights: what is remembered, what is worse than in good ones, who is told, and when none is."""

import os
import re
import signal
import time
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from assay import AssayError, paths
from assay.nights import measuring, night, outcome
from assay.nights.measuring import AGAINST
from assay.nights.night import PUT_OFF, Folder, Night, in_maintenance
from assay.nights.outcome import KEPT, RUN, KnownVerdict, NightMemory, NightOutcome
from assay.results import store
from assay.results.diff.difference import difference
from assay.results.history import load_history
from assay.running import reframe_options
from assay.running.supervise import Ended
from changing import changing
from nightly import failing, good_nights, late, night_site, nothing, remembered, slower, spend
from processes import ends
from reports import NO_EVIDENCE

site = pytest.fixture(night_site)


def test_good_nights_are_silent_and_remembered(site, capsys):
    for number in range(1, 4):
        assert spend(site) == (0, None)
        assert len(remembered().good) == number
    assert {*site.labels} == {'nightly'}
    out, err = capsys.readouterr()
    assert 'there is no good night yet' in err
    assert 'against 2 good nights: NOT WORSE: 0 worse' in out
    assert out.endswith('NIGHT PASSED: toy (smoke)\n')


def test_what_is_worse_than_in_good_nights_is_measured_again_and_told_once(site, capsys):
    good_nights(site)
    site.change = slower()
    site.ran.clear()
    code, told = spend(site)
    assert code == 1
    # Again the one case alone: the two others are left out.
    assert site.ran == [0, 2, 2]
    first, *lines = told.splitlines()
    assert first == 'WORSE: Assay: toy (smoke) WORSE, was PASSED'
    assert any(
        line.startswith('  latency of Ring %fabric=tcp') and 'than in good nights' in line
        for line in lines
    )
    assert lines[-1].startswith('files: ') and len(remembered().good) == 6
    assert 'WORSE: ' in capsys.readouterr().out

    code, told = spend(site)
    assert (code, told) == (1, None)
    assert ', as since 20' in capsys.readouterr().out

    site.change = nothing
    code, told = spend(site)
    assert code == 0
    assert told.splitlines()[0] == 'PASSED: Assay: toy (smoke) PASSED, was WORSE'
    assert 'no longer:\n  latency of Ring %fabric=tcp' in told


def test_what_the_job_for_all_cases_had_no_time_for_is_no_worse(site):
    good_nights(site)
    site.change = late()
    for _ in range(AGAINST):
        assert spend(site) == (0, None)
    assert len(remembered().good) == 6 + AGAINST
    site.change = slower()  # than in nights that ran it
    assert spend(site)[0] == 1


def test_what_failed_is_no_better_because_there_was_no_time_for_it(site):
    site.change = failing()
    spend(site)
    before = remembered().told.culprits
    site.change = late()
    assert spend(site) == (1, None)
    assert (remembered().told.word, remembered().told.culprits) == ('FAILED', before)


def test_what_is_many_times_as_slow_is_told_as_such(site):
    site.change = slower(factor=0.2)
    good_nights(site)
    site.change = slower(factor=8)
    _, told = spend(site)
    assert re.search(r'latency of .*: \d\d\.?\d? times as much as in good nights', told)
    assert 'x than' not in told


def test_what_is_worse_fails_the_run_as_a_whole_in_junit(site, tmp_path):
    good_nights(site)
    file = tmp_path / 'junit.xml'
    given = reframe_options.read_for('a night', [f'--report-junit={file}'])
    spend(site, given=given)
    assert '<error' not in file.read_text()
    site.change = slower()
    spend(site, given=given)
    text = file.read_text()
    assert text.count('<error') == 1 and 'than in good nights' in text
    assert text.count('<testcase') == 4


def test_a_night_on_cores_that_a_hypervisor_moved_is_no_good_one(site):
    """Nothing of it can be compared, whatever it measured."""

    @changing
    def on_cores(name, number, case, values, latency):
        if latency > 100:
            values['bandwidth'] /= 4
        values['core_latency'] = latency
        case['directions'] = case['directions'] | {'core_latency': 'lower'}
        case['units'] = {'core_latency': 'ns'}

    site.change = on_cores(40)
    good_nights(site)
    before = remembered().good
    site.change = on_cores(300)
    assert spend(site)[0] == 3
    assert remembered().good == before


def first_and_then(site, change, later):
    """A change of the next session, and another one of those that follow."""
    next_one = site.number + 1
    return lambda name, number, *about: (change if number == next_one else later)(
        name, number, *about
    )


def test_what_looked_worse_once_is_not(site):
    good_nights(site)
    site.change = first_and_then(site, slower(), nothing)
    site.ran.clear()
    code, told = spend(site)
    assert (code, told, site.ran) == (0, None, [0, 2])


def test_what_looks_worse_is_measured_again_and_if_undecided_no_success(site, monkeypatch, capsys):
    good_nights(site)

    def in_doubt(*about):
        found = difference(*about)
        return replace(found, suspects=found.figures[:1])

    monkeypatch.setattr(measuring, 'difference', in_doubt)
    site.ran.clear()
    assert spend(site) == (3, None)
    assert site.ran == [0, 2, 2]
    # Nobody is told, and it is no good night either.
    assert remembered().told == KnownVerdict() and len(remembered().good) == 6
    assert capsys.readouterr().out.endswith('NIGHT UNDECIDED: toy (smoke)\n')


def test_a_failure_is_told_and_so_is_another_one(site):
    site.change = failing()
    code, told = spend(site)
    assert code == 1
    (case,) = remembered().told.culprits
    assert case.startswith('Ring %fabric=tcp')
    assert told.startswith('FAILED: Assay: toy (smoke) FAILED, was PASSED\n')
    assert '%fabric=tcp' in told and 'no answer' in told
    assert spend(site) == (1, None)
    site.change = failing('shm')
    code, told = spend(site)
    assert code == 1 and told.startswith('FAILED: Assay: toy (smoke) FAILED, not as before\n')
    assert 'no longer:\n  Ring %fabric=tcp' in told
    assert not remembered().good


def test_a_case_that_fails_when_it_is_measured_again_has_failed(site, tmp_path):
    good_nights(site)
    site.change = first_and_then(site, slower(), failing())
    junit = tmp_path / 'junit.xml'
    given = reframe_options.read_for('a night', [f'--report-junit={junit}'])
    code, told = spend(site, given=given)
    assert code == 1 and told.startswith('FAILED: ')
    assert 'no answer' in junit.read_text()


@changing
def disturbed(name, number, case, values, *fabrics):
    if case['fabric'] in fabrics:
        case |= {
            'result': 'fail',
            'fail_phase': 'performance',
            'no_evidence': NO_EVIDENCE,
            'fail_reason': f'performance error: disturbed: {NO_EVIDENCE}',
            'taken_by_others': ['others took 48% of n1'],
        }


def test_what_is_worse_beside_what_was_disturbed_is_told(site):
    good_nights(site)

    def change(*about):
        disturbed('shm')(*about)
        slower()(*about)

    site.change = disturbed('shm')
    assert spend(site) == (3, None)
    site.change = change
    code, told = spend(site)
    assert code == 1 and told.startswith('WORSE: ') and '%fabric=shm' not in told


def test_what_was_disturbed_when_it_was_measured_again_is_worse_by_nobodys_word(site):
    good_nights(site)
    first = site.number + 1

    @site.changes
    def change(name, number, *about):
        slower()(name, number, *about)
        if number > first:
            disturbed('tcp')(name, number, *about)

    assert spend(site) == (3, None)
    assert len(remembered().good) == 6


def test_a_case_that_is_no_longer_run_is_told(site):
    good_nights(site)
    site.change = lambda name, number, case, values: case['fabric'] != 'tcp'
    code, told = spend(site)
    assert code == 1 and 'was run in good nights, and not now' in told
    assert spend(site) == (1, None)


def test_good_nights_that_are_gone_are_no_reason_to_begin_anew(site):
    good_nights(site)
    store.remove([run.uuid for run in load_history(site.database).runs], site.database)
    code, told = spend(site)
    assert code == 1 and 'the good nights are no longer in the history' in told
    assert f'rm {Folder("toy", "smoke").file}' in told


def test_an_option_for_a_check_that_is_not_measured_again_fails_nothing(site):
    good_nights(site)
    site.change = first_and_then(site, slower(), nothing)
    options = ['-S', 'Ring.rounds=9', '-P', 'Ring.layout=packed']
    given = reframe_options.read_for('a night', options)
    assert spend(site, given=given, options=options) == (0, None)
    assert site.ran[-2:] == [0, 2]


@pytest.mark.parametrize('error', [OSError(28, 'No space left'), ValueError('odd'), TypeError('?')])
def test_whatever_ends_a_night_is_told(site, monkeypatch, error, capsys):
    def fail(*about):
        raise error

    monkeypatch.setattr(measuring, 'make_ready', fail)
    code, told = spend(site)
    assert code == 1 and f'  {type(error).__name__}: ' in told
    assert 'Traceback' in capsys.readouterr().err


def test_a_maintenance_is_one_also_where_the_suite_cannot_be_prepared(site, monkeypatch):
    monkeypatch.setattr(night, 'in_maintenance', lambda *about: 'the partition all is down')
    assert spend(site, suite=AssayError('no network')) == (PUT_OFF, None)


def test_files_of_the_night_before_are_not_left(site, tmp_path, monkeypatch):
    junit, report = tmp_path / 'junit.xml', tmp_path / 'report.json'
    options = [f'--report-junit={junit}', f'--report-file={report}']
    given = reframe_options.read_for('a night', options)
    spend(site, given=given)
    assert junit.exists() and report.exists()
    spend(site, given=given, suite=AssayError('no MPI'))
    assert 'no MPI' in junit.read_text() and not report.exists()
    monkeypatch.setattr(night, 'in_maintenance', lambda *about: 'the partition all is down')
    assert spend(site, given=given) == (PUT_OFF, None)
    assert not junit.exists()


def test_a_disturbed_night_tells_nothing(site):
    site.change = failing()
    spend(site)
    before = remembered()
    site.change = disturbed('shm', 'tcp', 'ofi-tcp')
    assert spend(site) == (3, None)
    assert remembered() == before
    site.change = failing()
    assert spend(site) == (1, None)


def test_what_keeps_a_night_from_measuring_is_told(site, capsys):
    code, told = spend(site, suite=AssayError('no MPI can be installed:\nthe disk is full'))
    assert code == 1
    assert '\n  no MPI can be installed:\n  the disk is full\n' in told
    assert remembered().told.culprits == (RUN,)
    assert 'no MPI can be installed' in capsys.readouterr().err


def test_a_night_that_is_stopped_is_forgotten(site):
    spend(site)
    before = remembered()
    site.ends[2] = Ended(stopped=signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        spend(site)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert remembered() == before


def test_who_could_not_be_told_is_told_the_next_time(site, capsys):
    site.change = failing()
    assert spend(site, command='echo no server >&2; exit 4') == (1, None)
    assert "--notify 'echo no server >&2; exit 4' ended with exit code 4: no server" in (
        capsys.readouterr().err
    )
    code, told = spend(site)
    assert code == 1 and told.startswith('FAILED')
    site.change = nothing
    # The verdict is good, and that is what nobody knows.
    assert spend(site, command='false') == (1, None)
    assert spend(site)[0] == 0


def test_without_a_command_nobody_is_told_twice_either(site):
    site.change = failing()
    given = reframe_options.read_for('a night', [])
    assert Night(site, 'toy', 'smoke', given, [], 0.05, None).spend() == 1
    assert spend(site) == (1, None)


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(tmp_path, monkeypatch):
    pid, seconds = tmp_path / 'pid', 1
    script = f'sleep 600 & echo $! >{pid}.new; mv {pid}.new {pid}; wait'
    while not pid.exists():  # a busy machine may not have come to it
        monkeypatch.setattr(outcome, 'PATIENCE', seconds)
        with pytest.raises(AssayError, match=f'was stopped after {seconds} s'):
            outcome.notify(script, 'FAILED', 'it', 'is so')
        seconds *= 2
    assert ends(int(pid.read_text()))


def test_a_command_need_not_read_its_message():
    outcome.notify('exec <&-', 'FAILED', 'it', 'x' * 1_000_000)


def test_a_second_night_leaves(site, capsys):
    with Folder('toy', 'smoke').hold_lock() as handle:
        assert handle is not None
        assert spend(site) == (PUT_OFF, None)
        assert spend(site, mode='maintenance')[0] == 0
    assert 'put off: another night of toy (smoke) is under way' in capsys.readouterr().err
    assert spend(site) == (0, None)


def test_a_night_that_does_not_end_is_told(site):
    with Folder('toy', 'smoke').hold_lock():
        old = time.time() - 3600 * 49
        os.utime(paths.NIGHTS / 'toy' / 'smoke' / 'lock', (old, old))
        with pytest.raises(AssayError, match='has not ended for two days'):
            spend(site)


@pytest.mark.parametrize('name', ['/tmp', '../x', '..', '.', '', 'a b'])
def test_names_that_lead_elsewhere(name):
    for system, mode in ((name, 'smoke'), ('toy', name)):
        with pytest.raises(AssayError, match='cannot be the name'):
            Folder(system, mode)


def test_a_clock_that_was_ahead_puts_nothing_off(site, monkeypatch):
    monkeypatch.setattr(night, 'in_maintenance', lambda *about: 'the partition all is down')
    spend(site)
    ahead = datetime.now().astimezone() + timedelta(days=3650)
    Folder('toy', 'smoke').write(remembered().after(KnownVerdict(), None, ahead))
    assert spend(site) == (PUT_OFF, None)
    assert remembered().put_off < ahead - timedelta(days=3649)


def test_a_memory_that_cannot_be_read_stays(site):
    folder = Folder('toy', 'smoke')
    folder.file.mkdir(parents=True)
    with pytest.raises(AssayError, match='cannot be read'):
        spend(site)
    assert folder.file.exists()


def test_a_maintenance_is_left_alone_for_two_days(site, monkeypatch, capsys):
    monkeypatch.setattr(night, 'in_maintenance', lambda *about: 'the partition all is down')
    assert spend(site) == (PUT_OFF, None)
    assert spend(site) == (PUT_OFF, None)
    assert not site.ran
    assert 'put off: the partition all is down' in capsys.readouterr().err
    since = remembered().put_off
    folder = Folder('toy', 'smoke')
    folder.write(remembered().after(KnownVerdict(), None, since - timedelta(hours=49)))
    code, told = spend(site)
    assert code == 1 and 'nothing was measured since' in told and 'partition all is down' in told
    assert spend(site) == (1, None)
    monkeypatch.setattr(night, 'in_maintenance', lambda *about: None)
    code, told = spend(site)
    assert code == 0 and told.startswith('PASSED: ')
    assert remembered().put_off is None


def test_what_was_known_is_set_aside_where_it_is_damaged(site, capsys):
    spend(site)
    folder = Folder('toy', 'smoke')
    folder.file.write_text('{"told"')
    assert spend(site) == (0, None)
    assert 'was damaged: it is ' in capsys.readouterr().err
    assert len([*folder.path.glob('memory.json.damaged-*')]) == 1
    assert len(remembered().good) == 1


def test_what_is_remembered_has_an_end():
    memory = NightMemory()
    for number in range(KEPT + 3):
        memory = memory.after(KnownVerdict(), str(number))
    assert memory.good == tuple(map(str, range(3, KEPT + 3)))


def test_a_night_of_another_selection_is_no_good_one(site):
    spend(site)
    site.partitions = ['other']
    code, told = spend(site)
    assert code == 1 and 'cannot be held against good ones: no figure is of runs' in told
    assert 'To begin anew: rm ' in told and len(remembered().good) == 1


@pytest.mark.parametrize('option', ['--repeat=2', '--reruns=1', '--max-retries=1', '-l'])
def test_options_that_are_not_for_a_night(option):
    with pytest.raises(AssayError, match='is not for a night'):
        reframe_options.read_for('a night', [option])


def test_the_same_culprits_in_another_order_are_no_news():
    told = KnownVerdict(word='FAILED', culprits=('a', 'b'))
    assert told.is_of(NightOutcome('FAILED', ('b', 'a')))
    assert not told.is_of(NightOutcome('WORSE', ('a', 'b')))
    assert not told.is_of(NightOutcome('FAILED', ('a',)))


# Maintenance, by what a real Slurm 22.05 printed -------------------------------------------------

PARTITION = (
    'PartitionName={} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default={} '
    'QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes={} '
    'PreemptMode=OFF State={} TotalCPUs=4 TotalNodes=4 SelectTypeParameters=NONE'
)
RESERVATION = (
    'ReservationName={} StartTime=2026-11-23T20:00:00 EndTime=2026-11-23T21:00:00 '
    'Duration=01:00:00 Nodes={} NodeCnt=4 CoreCnt=4 Features=(null) PartitionName=(null) '
    'Flags={} TRES=cpu=4 Users=root Groups=(null) Accounts=(null) Licenses=(null) State={} '
    'BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)'
)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A machine of two partitions whose scontrol prints these lines."""

    def machine(partitions, reservations=(), access=('', '--partition=big')):
        for what, lines in (('partition', partitions), ('reservation', reservations)):
            (tmp_path / what).write_text(''.join(f'{line}\n' for line in lines))
        script = tmp_path / 'scontrol'
        script.write_text(f'#!/bin/sh\n[ "$1" = --oneliner ] && cat {tmp_path}/"$4"\n')
        script.chmod(0o755)
        monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
        both = [{'scheduler': 'slurm', 'access': [one]} for one in access]
        return {'systems': [{'partitions': both}]}

    return machine


UP = [PARTITION.format('all', 'YES', 'n[1-4]', 'UP'), PARTITION.format('big', 'NO', 'n[5-8]', 'UP')]
DOWN = [
    PARTITION.format('all', 'YES', 'n[1-4]', 'DOWN'),
    PARTITION.format('big', 'NO', 'n[5-8]', 'DRAIN'),
]
MAINT = 'MAINT,SPEC_NODES,ALL_NODES'


@pytest.mark.parametrize(
    ('partitions', 'reservations', 'why'),
    [
        (UP, [], None),
        (DOWN, [], 'the partition all is down; the partition big is drain'),
        ([DOWN[0], UP[1]], [], None),
        (
            UP,
            [RESERVATION.format('repair', 'n[1-8]', MAINT, 'ACTIVE')],
            'the reservation repair, of the kind MAINT, has all nodes of the partition all until '
            '2026-11-23T21:00:00; the reservation repair, of the kind MAINT, has all nodes of the '
            'partition big until 2026-11-23T21:00:00',
        ),
        (UP, [RESERVATION.format('repair', 'n[1-8]', MAINT, 'INACTIVE')], None),
        (UP, [RESERVATION.format('course', 'n[1-8]', 'SPEC_NODES', 'ACTIVE')], None),
        (UP, [RESERVATION.format('repair', 'n[1-7]', MAINT, 'ACTIVE')], None),
        ([], [], None),
        (['No partitions in the system'], ['No reservations in the system'], None),
    ],
)
def test_a_machine_in_maintenance(slurm, partitions, reservations, why):
    assert in_maintenance(slurm(partitions, reservations), []) == why


def jobs(*options):
    """What these options of ReFrame give every job."""
    return reframe_options.read_for('a night', [*options]).jobs


def test_a_run_may_be_meant_for_a_reservation(slurm):
    reserved = [RESERVATION.format('repair', 'n[1-8]', MAINT, 'ACTIVE')]
    for option in ('-J=reservation=repair', '--job-option=--reservation=repair'):
        assert in_maintenance(slurm(UP, reserved), jobs(option)) is None
    assert in_maintenance(slurm(UP, reserved), jobs('-J', 'reservation=repair')) is None
    assert in_maintenance(slurm(DOWN, reserved), jobs('-J', 'reservation=repair'))
    assert in_maintenance(slurm(UP, reserved), jobs('-Jreservation=repair')) is None
    access = ('-p all --reservation=repair', '-pbig --reservation=repair')
    assert in_maintenance(slurm(UP, reserved, access), []) is None
    assert in_maintenance(slurm(UP, reserved, ('-p all', '-p big')), [])


@pytest.mark.parametrize(
    'access', ['--account=hpc-prod --partition=big', '--ntasks-per-node=4 -p big', '-p big,big']
)
def test_the_partition_of_a_job(slurm, access):
    assert in_maintenance(slurm([UP[0], DOWN[1]], access=[access]), [])
    assert in_maintenance(slurm([DOWN[0], UP[1]], access=[access]), []) is None
    assert in_maintenance(slurm([DOWN[0], UP[1]], access=[access]), jobs('-J', 'partition=all'))


def test_the_default_partition_of_a_job(slurm):
    assert in_maintenance(slurm([DOWN[0], UP[1]], access=['--cpus-per-task=4']), [])
    assert in_maintenance(slurm([DOWN[0], UP[1]], access=['-p all,big']), []) is None


def test_where_no_scheduler_is_asked(slurm):
    site = slurm(DOWN)
    site['systems'][0]['partitions'][1]['scheduler'] = 'local'
    assert in_maintenance(site, []) is None


def test_a_slurm_that_says_nothing_is_not_in_maintenance(slurm, tmp_path):
    site = slurm(DOWN)
    (tmp_path / 'scontrol').unlink()
    assert in_maintenance(site, []) is None
