"""What a session of ReFrame is started with."""

import os

from assay import paths
from assay.running import prepare, reframe_options, session


def test_what_a_user_prefers_of_sbatch_moves_no_case(elsewhere, monkeypatch, capsys):
    """sbatch would heed it before the partition of the job's script."""
    monkeypatch.setattr(prepare, 'prepare', lambda system, extra: None)
    monkeypatch.setenv('SBATCH_PARTITION', 'debug')
    monkeypatch.setenv('SLURM_CONF', '/etc/slurm/slurm.conf')
    paths.SYSTEMS.joinpath('toy.py').write_text('site_configuration = {}\n')
    suite = session.suite('toy', 'smoke', [], reframe_options.read([]))
    assert 'SBATCH_PARTITION' not in {*suite.environment, *os.environ}
    assert suite.environment['SLURM_CONF'] == '/etc/slurm/slurm.conf'
    assert 'not heeded: SBATCH_PARTITION. What jobs need ' in capsys.readouterr().err
