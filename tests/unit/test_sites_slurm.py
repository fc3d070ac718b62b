"""What `assay init` makes of the Slurm of each site of the corpus.

``expect`` has what a user types, ``asked`` (options of sbatch) and ``partition``, and what comes of
it:

- ``partitions``: options, scales, minutes and MiB of a node that a job of each may have;
- ``left_out``: sentences on what is no partition, or no size of one; none if it is not there;
- ``calls``: the most times that sbatch is asked, 4 if it is not there;
- ``job``: what squeue tells of the job of `init` each time, how many ``nodes`` told their facts,
  whether it ``is_done``, and what ``comes`` of it;
- ``names``: instead of all that, Slurm's names of hosts, and ``nodes``, those of the job.
"""

import json
import re
from dataclasses import asdict

import pytest

from assay.discovery import probing
from assay.discovery.partitions import see
from assay.discovery.probing import probe
from assay.machine.slurm import names_of_hosts
from found import facts
from sites import sites
from slurm_sites import lay

SITES = sites('slurm')


@pytest.fixture(params=SITES, ids=str)
def site(request, tmp_path, monkeypatch):
    one = request.param
    monkeypatch.setenv('PATH', lay(one, tmp_path / 'slurm'))
    # What a user is, is not of the site.
    monkeypatch.setattr('os.geteuid', lambda: 1000)
    return one


def test_a_site(site, tmp_path, monkeypatch):
    expect = site.expect
    if 'names' in expect:
        told = {host: name for host, name in expect['names'].items() if host != name}
        assert names_of_hosts(expect['names'], expect['nodes']) == told
        return
    seen = see([*filter(None, [expect.get('partition')])], expect.get('asked', []))
    if 'partitions' in expect:
        found = {one.name: one for one in seen.partitions}
        assert found.keys() == expect['partitions'].keys()
        for name, told in expect['partitions'].items():
            assert {key: as_told(found[name], key) for key in told} == told
    assert seen.left_out == expect.get('left_out', {})
    asked = tmp_path / 'slurm' / 'calls'
    calls = len(asked.read_text().splitlines()) if asked.exists() else 0
    assert calls <= expect.get('calls', 4), 'see `calls` of site.yaml'
    if 'job' in expect:
        assert job_of(seen, expect['job'], tmp_path, monkeypatch) == expect['job']['comes']


def as_told(partition, key):
    """What a partition has, as a site's file has it."""
    value = getattr(partition, key)
    return ' '.join(value) if isinstance(value, list | tuple) else value


def job_of(seen, job, tmp_path, monkeypatch):
    """What came of the job of `init`, of whose nodes some told their facts."""
    answers = iter(job['squeue'])
    monkeypatch.setattr(probing, 'LATENCY', 0)
    monkeypatch.setattr(probing, 'INTERVAL', 0)
    folder = tmp_path / 'init'

    def submitted(one):
        original(one)
        for rank in range(job.get('nodes', one.nodes)):
            (one.folder / f'node-{rank}.json').write_text(json.dumps(asdict(facts(f'c{rank + 1}'))))
        if job.get('is_done'):
            (one.folder / 'done').touch()

    def query(*command):
        if command[0] == 'squeue':
            (tmp_path / 'slurm' / 'squeue').write_text(next(answers) + '\n')
        return ask(*command)

    original, ask = probing._Job.submit, probing.query
    monkeypatch.setattr(probing._Job, 'submit', submitted)
    monkeypatch.setattr(probing, 'query', query)
    (found,) = probe(seen, [], folder, job.get('patience', 1000)).values()
    if isinstance(found, str):
        return re.sub(re.escape(str(folder)) + r'[^\s,]*', 'FOLDER', found)
    return f'{len(found.facts)} node(s) told their facts'
