"""Slurm as a site of the corpus has it: small commands that print the site's files.

``nodes``, ``partitions`` and ``partitions.hidden`` are records as ``scontrol --oneliner`` prints
them, without the words that nothing depends on; where names are folded, ``NodeName=c[1-4]``, one
stands for as many. ``config`` is what ``scontrol show config`` prints, and ``qos`` what
sacctmgr prints of one. ``refuse`` is what the site does with a job: bash, with options of sbatch
as its arguments, which prints why and ends with 1. What a site has no file of is as in ``COMMON``.
"""

from __future__ import annotations

import os
import shlex
import textwrap
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from sites import Site

COMMON = {
    'config': 'ClusterName = site\nSelectTypeParameters = CR_CORE_MEMORY\n',
    'nodes': 'NodeName=c[1-4] CPUTot=64 CoresPerSocket=32 Sockets=2 ThreadsPerCore=1 '
    'RealMemory=256000 State=IDLE Gres=(null) NodeAddr=127.0.0.1 NodeHostName=c[1-4]\n',
    'partitions': 'PartitionName=batch Default=YES Hidden=NO MaxTime=UNLIMITED MinNodes=0 '
    'MaxNodes=UNLIMITED Nodes=c[1-4] OverSubscribe=NO QoS=N/A State=UP TotalNodes=4\n',
    'mpi': 'MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n',
}

SCONTROL = """
    hidden= words=()
    for word; do
        case $word in --all) hidden=partitions.hidden ;; --oneliner) ;; *) words+=("$word") ;; esac
    done
    case ${words[*]} in
        'show config') cat config ;;
        'show node') cat nodes ;;
        'show partition') cat partitions; [[ ! -e $hidden ]] || cat $hidden ;;
        *) echo "scontrol: ${words[*]} is not recorded" >&2; exit 1 ;;
    esac
"""
SBATCH = """
    echo "$*" >>calls
    [[ ! -e refuse ]] || bash refuse "$@" || exit 1
    [[ " $* " == *' --test-only '* ]] || echo 7
"""
NO_ACCOUNTING = 'echo "Slurm accounting storage is disabled" >&2; exit 1'

COMMANDS = {
    'scontrol': SCONTROL,
    'sbatch': SBATCH,
    'srun': 'cat mpi',
    'sacct': NO_ACCOUNTING,
    'sacctmgr': f'[[ ! -e qos ]] || exec cat qos\n{NO_ACCOUNTING}',
    'squeue': 'cat squeue',
    'scancel': 'true',
}


def lay(site: Site, folder: Path) -> str:
    """Put a site's Slurm into a folder; PATH with its commands is returned."""
    commands = folder / 'bin'
    commands.mkdir(parents=True)
    for name in {*COMMON, *(file.name for file in site.folder.iterdir())} - {'site.yaml'}:
        text = site.text(name) or COMMON[name]
        (folder / name).write_text(_unfolded(text) if name == 'nodes' else text)
    head = f'#!/usr/bin/env bash\ncd {shlex.quote(str(folder))}\n'
    for name, script in COMMANDS.items():
        file = commands / name
        file.write_text(f'{head}{textwrap.dedent(script)}\n')
        file.chmod(0o755)
    return f'{commands}:{os.environ["PATH"]}'


def _unfolded(records: str) -> str:
    """A record for each node that one stands for."""
    lines = []
    for record in records.splitlines():
        words = [word.partition('=')[::2] for word in record.split()]
        folded = {key: [*NodeSet(value)] for key, value in words if '[' in value}
        lines += [
            ' '.join(f'{key}={folded[key][at] if key in folded else value}' for key, value in words)
            for at in range(len(NodeSet(words[0][1])))
        ]
    return '\n'.join(lines) + '\n'
