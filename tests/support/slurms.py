"""Machines whose Slurm says what a test wants."""

import os

# As a real Slurm 22.05 printed them, but for the numbers.
NODE = (
    'NodeName={name} Arch=x86_64 CoresPerSocket={cores} CPUAlloc=0 CPUTot=1 CPULoad=0.30 '
    'AvailableFeatures={features} ActiveFeatures={features} Gres={gres} NodeAddr=127.0.0.1 '
    'NodeHostName={name} Version=22.05.8 OS=Linux 6.1.0 #1 SMP RealMemory={memory} AllocMem=0 '
    'FreeMem=20000 Sockets=2 Boards=1 State=IDLE ThreadsPerCore={threads} TmpDisk=0 Weight=1 '
    'Partitions=all BootTime=2026-11-24T01:53:54 Reason=Not responding [slurm@2026-11-24T03:26:51]'
)
PARTITION = (
    'PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL '
    'Default={default} QoS=N/A MaxNodes={most} MaxTime=UNLIMITED Nodes={nodes} '
    'OverSubscribe=NO State={state} TotalCPUs=4 TotalNodes={count} SelectTypeParameters=NONE'
)
PMIS = """\
MPI plugin types are...
	none
	pmi2
	cray_shasta
	pmix
specific pmix plugin versions available: pmix_v4
"""


def node(name, cores=32, features='(null)', gres='(null)', memory=256000, threads=1):
    return NODE.format(**locals())


def partition(name, nodes, count, default='NO', most='UNLIMITED', state='UP'):
    return PARTITION.format(**locals())


def commands_of_slurm(tmp_path, monkeypatch):
    """A function that makes Slurm say this; sbatch takes all but what has the refused word."""

    def machine(nodes, parts, refused='nothing', memory='CR_CORE'):
        (tmp_path / 'node').write_text('\n'.join(nodes) + '\n')
        (tmp_path / 'partition').write_text('\n'.join(parts) + '\n')
        (tmp_path / 'config').write_text(
            f'ClusterName             = toy\nSelectTypeParameters    = {memory}\n'
        )
        (tmp_path / 'pmis').write_text(PMIS)
        scripts = {
            'scontrol': f'for what; do :; done; cat {tmp_path}/$what',
            'srun': f'cat {tmp_path}/pmis',
            'sacct': 'echo "Slurm accounting storage is disabled" >&2; exit 1',
            'sbatch': f'case "$*" in *{refused}*) '
            'echo "sbatch: error: You must name an account" >&2; '
            'echo "allocation failure: Unspecified error" >&2; exit 1;; esac',
        }
        for name, script in scripts.items():
            (tmp_path / name).write_text(f'#!/bin/sh\n{script}\n')
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')

    return machine
