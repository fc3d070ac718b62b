"""What a session of ReFrame is started with."""

import os

import pytest

from assay import AssayError, paths
from assay.machine import slurm
from assay.running import prepare, reframe_options, runs, session, turn
from assay.running.site_applications import FILE as FILE_OF_APPLICATIONS

FILE = """
site_configuration = {{
    'systems': [
        {{
            'name': 'toy',
            'hostnames': ['x'],
            'partitions': [
                {{'name': 'p', 'scheduler': '{}', 'launcher': 'local', 'environs': ['e']}},
            ],
        }},
    ],
    'environments': [{{'name': 'e', 'target_systems': ['toy']}}],
}}
"""


@pytest.mark.parametrize('scheduler', ['slurm', 'local'])
def test_what_a_user_prefers_of_sbatch_moves_no_case(elsewhere, monkeypatch, capsys, scheduler):
    """sbatch would heed it before the partition of the job's script."""
    monkeypatch.setattr(prepare, 'prepare_machine', lambda system, extra: [])
    monkeypatch.setattr(session, 'lint_own', list)
    session._tell.cache_clear()  # of this process
    monkeypatch.setenv('SBATCH_PARTITION', 'debug')
    monkeypatch.setenv('SBATCH_MEM_BIND_TYPE', 'none')
    monkeypatch.setenv('SLURM_JOB_ID', '1')
    monkeypatch.setenv('SLURM_CONF', '/etc/slurm/slurm.conf')
    paths.SYSTEMS.joinpath('toy.py').write_text(FILE.format(scheduler))
    suite = session.suite('toy', 'smoke', [], reframe_options.read_options([]))
    for _ in range(2):
        suite.load()
    here = {*suite.environment, *os.environ}
    assert not [name for name in here if name.startswith('SBATCH_')]
    assert suite.environment['SLURM_CONF'] == '/etc/slurm/slurm.conf'
    said = "ignored: SBATCH_PARTITION. Write what jobs need into the partition (access: ['--acc"
    assert capsys.readouterr().err.count(said) == (scheduler == 'slurm')


def test_a_mistake_in_applications_ends_what_loads_the_suite(elsewhere, monkeypatch):
    monkeypatch.setattr(session, 'lint_own', list)
    paths.SYSTEMS.joinpath('toy.py').write_text(FILE.format('local'))
    paths.SYSTEMS.joinpath(FILE_OF_APPLICATIONS).write_text('applications: {a: {mpi: lam}}\n')
    session.site_applications.cache_clear()
    suite = session.Suite(runs.this_run(), 'toy', 'smoke', ('reframe',), {})
    with pytest.raises(AssayError, match=r'line 1: applications\.a\.mpi'):
        suite.load()


def test_what_a_user_binds_outside_of_jobs_is_told(monkeypatch):
    monkeypatch.delenv('SLURM_JOB_ID', raising=False)
    monkeypatch.setenv('SBATCH_MEM_BIND', 'local')
    assert slurm.forget_sbatch_defaults() == ['SBATCH_MEM_BIND']


def test_variables_of_one_session_are_for_that_one(tmp_path, monkeypatch):
    """And are stronger than those of the suite."""
    monkeypatch.setattr('assay.paths.RUNS', tmp_path)
    seen = []
    monkeypatch.setattr(
        session.supervise, 'supervise', lambda command, given, *rest: seen.append(given)
    )
    own = runs.begin_run()
    suite = session.Suite(own, 'toy', 'smoke', ('reframe',), {'A': '1', 'B': '2'})
    suite.run(own, None, [], [], exports={'B': '3'})
    suite.run(own, None, [], [])
    assert [(one['A'], one['B']) for one in seen] == [('1', '3'), ('1', '2')]


@pytest.mark.parametrize('waits', [False, True])
def test_who_waits_for_a_turn_asks_the_mpis_again(tmp_path, monkeypatch, waits):
    own = runs.RunFolder(tmp_path)
    own.mpis.touch()
    monkeypatch.delenv(turn.VARIABLE, raising=False)
    monkeypatch.setattr(turn, 'is_needed', lambda site: True)
    monkeypatch.setattr(turn, 'take', lambda run, tell: waits and tell('another run'))
    monkeypatch.setattr(session, 'stop_what_was_left', lambda: None)
    session.Suite(own, 'toy', 'smoke', (), {}).take_turn(None)
    assert own.mpis.exists() is not waits
