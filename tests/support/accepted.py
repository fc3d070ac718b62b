"""Acceptances made of real outputs of jobs, closed and signed by Assay itself."""

import json
import shutil
import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from reframe.core import config
from reframe.core.exceptions import PerformanceError

from assay.acceptance import archive as archives
from assay.acceptance import contract as contracts
from assay.acceptance import journal, show, signatures
from assay.acceptance.files import canonical, checksums_in, digest
from assay.acceptance.journal import Started
from assay.acceptance.status import reports, status_of
from assay.machine import topology
from assay.running.runs import RunFolder
from checks import check_on

SYSTEM = Path(__file__).with_name('system.py')
#: Of its node, however few this machine has.
CORES = 2

CONTRACT = """\
name: Golden node
parties:
  buyer: {name: Example University, signers: [Ada Buyer]}
  vendor: {name: Example Computers, signers: [Vic Vendor]}
system: golden
nodes: {number: 1}
commitments:
  - {id: ring, check: Ring, figure: hop_latency_over_limit, environment: mpich, value: 12.0,
     unit: "1", better: lower, statistic: maximum, runs: 2}
  - {id: latency, check: PointToPoint, figure: latency_over_limit, environment: openmpi,
     value: 12.0, unit: "1", better: lower, statistic: maximum, runs: 2}
rules: {category: base, text: As delivered.}
risks: {producer: 0.05, consumer: 0.05, good: 0.2, bad: 0.2}
most_jobs: 10
"""

#: Of those who sign, by their names.
KEYS = {
    name: Ed25519PrivateKey.from_private_bytes(bytes([number] * 32))
    for number, name in enumerate(('Ada Buyer', 'Vic Vendor'), 1)
}
TRUSTED = {name: key.public_key() for name, key in KEYS.items()}


def site():
    """The configuration of the golden system, as a run has it."""
    loaded = config.load_config(str(SYSTEM))
    loaded.validate()
    loaded.select_subconfig('golden')
    return loaded


def ran(run, place, files, golden, parameters, change=None):
    """What ReFrame reports of a case, and puts into its output folder, of a golden job.

    :param run: its folder.
    :param place: of the case in the report.
    :param files: the file of each check, and ``golden`` the folder of the job.
    :param change: what is done to the outputs before they are read.
    """
    name = golden.parent.name
    environment, _, _ = golden.name.partition('-')
    output = run / 'output' / str(place)
    shutil.copytree(golden, output)
    if change:
        change(output)
    (output / 'rfm_job.sh').write_text('#!/bin/bash\nexit 1 # which nobody executes again\n')
    hosts = [one for path in output.rglob('witness.json') for one in _hosts(path)]
    where = (SYSTEM, 'golden:node', run / 'stage', files[name], name, environment)
    with check_on(*where, **parameters) as (check, partition, environ):
        if name == 'Screen':
            check.asked_nodes = 2
        check.setup(partition, environ)
        check.executable = getattr(check, 'program', '')
        check._stagedir = str(output)
        check._job = SimpleNamespace(
            stdout='rfm_job.out',
            stderr='rfm_job.err',
            exitcode=0,
            state='COMPLETED',
            nodelist=sorted(set(hosts)),
        )
        check.sanity()
        result = 'pass'
        try:
            check.performance()
        except PerformanceError:
            result = 'fail'
        return {
            'display_name': check.display_name,
            'name': check.name,
            'system': 'golden',
            'partition': 'node',
            'environ': environment,
            'fixture': False,
            'result': result,
            'fail_phase': None if result == 'pass' else 'performance',
            'fail_reason': None if result == 'pass' else 'performance error: missed',
            # As ReFrame has it, which names both, of which one is there.
            'outputdir': str(output if result == 'pass' else run / 'not made' / str(place)),
            'stagedir': str(output if result == 'fail' else run / 'removed' / str(place)),
            'perfvalues': dict(check.perfvalues),
            'directions': check.directions,
            'job_stdout': 'rfm_job.out',
            'job_stderr': 'rfm_job.err',
            'job_exitcode': 0,
            'job_nodelist': sorted(set(hosts)),
            'num_tasks': check.num_tasks,
            'num_tasks_per_node': check.num_tasks_per_node,
            'executable': check.executable,
            'keep_files': [path.name for path in output.iterdir() if path.suffix != '.sh'],
        }


def _hosts(path):
    return [host['name'] for host in json.loads(path.read_text())['hosts']]


def started(run, *cases):
    """What the journal tells of a run that is started."""
    return Started(run=run, cases=cases, environment='', folder='', options=(), variables={})


def start(archive, cases=()):
    """Start a run, as ``assay accept run`` does.

    :returns: its number.
    """
    return archives.start_run(archive, cases, 'mpich', 'run', (), {})


def end(archive, number, run, cases, uuid, begun):
    """End a run with some cases, as ``assay accept run`` does."""
    for place, case in enumerate(cases):
        case['uuid'] = f'{uuid}:0:{place}'
    session = {'uuid': uuid, 'time_start_unix': begun, 'time_end_unix': time.time()}
    report = {'session_info': session, 'runs': [{'testcases': cases}]}
    (run / 'report.json').write_text(json.dumps(report))
    (run / 'reframe.log').write_text('Ran\n')
    with patch.object(topology, 'usable_cores', lambda: CORES):
        archives.end_run(archive, number, RunFolder(run), 'PASSED', site())


def close(archive):
    """Decide, write a report and close it."""
    entries = journal.read_journal(archive.journal).entries
    contract = contracts.read_contract(archive.contract)
    show.write_report(archive, status_of(contract, entries, reports(archive, entries)))


def sign(archive, keys=KEYS):
    """Let all sign."""
    parties = contracts.read_contract(archive.contract).parties
    for name, key in keys.items():
        signatures.sign_archive(archive, parties, name, key)


def remake(archive, change=lambda entries: None):
    """Change entries of the journal, and make the chain fit again: all but signatures.

    :param change: is given the entries as they are written, in a list, but for their hashes.
    """
    entries = [json.loads(line) for line in archive.journal.read_bytes().splitlines()]
    kept = checksums_in(archive.folder)
    for entry in entries:
        if 'files' in entry['what']:
            own = {name: one for name, one in kept.items() if _is_of(entry, name)}
            entry['what']['files'] = as_record(own)
    change(entries)
    before, lines = journal.NOTHING, []
    for number, entry in enumerate(entries, 1):
        if entry['kind'] == 'begun':
            entry['what']['contract'] = digest(archive.contract.read_bytes())
        line = canonical(entry | {'number': number, 'before': before})
        before = digest(line)
        lines.append(line + b'\n')
    archive.journal.write_bytes(b''.join(lines))


def as_record(files):
    """What files hold, as the journal has it."""
    return {name: one.model_dump() for name, one in files.items()}


def _is_of(entry, name):
    """Whether an entry of the journal tells of a file."""
    if entry['kind'] == 'screened':
        return name in entry['what']['files']
    where = 'report/' if entry['kind'] == 'report' else f'jobs/{entry["what"]["run"]}/'
    return name.startswith(where)


def later(text, seconds):
    """A time of an entry, so many seconds later."""
    moved = datetime.fromisoformat(text).timestamp() + seconds
    zone = datetime.fromisoformat(text).tzinfo
    return datetime.fromtimestamp(moved, zone).isoformat(timespec='microseconds')


def flipped(data, position, with_what):
    """Bytes of which one is another."""
    return data[:position] + bytes([data[position] ^ with_what]) + data[position + 1 :]
