"""Ranks that differ: each takes its own threads, cores and program when it starts.

Launchers bind all ranks alike, or each in other words of its own. So they bind none, and start this
script in place of the program; it knows its place on the node from the launcher's variable.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The script's name in the job's folder.
SCRIPT = 'part'

#: Its text, for bash and taskset. The arguments are the widths, separated by commas, the program of
#: the node's first rank, that of all others, and what both get.
TEXT = r"""#!/usr/bin/env bash
# Starts this rank's part of the job: its program, with its threads, on cores of its own.
set -euo pipefail

IFS=, read -ra widths <<<"$1"
wide=$2 narrow=$3
shift 3
rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-}}}
if [[ -z $rank || $rank -ge ${#widths[@]} ]]; then
    echo "part: rank '$rank' of this node has no part among ${#widths[@]}" >&2
    exit 2
fi

# The hardware threads of each core that the job may use.
cores=()
topology=/sys/devices/system/cpu
IFS=, read -ra ranges <<<"$(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status)"
for range in "${ranges[@]}"; do
    for ((cpu = ${range%-*}; cpu <= ${range#*-}; cpu++)); do
        siblings=$(cat "$topology/cpu$cpu/topology/thread_siblings_list" || echo "$cpu")
        [[ " ${cores[*]-} " == *" $siblings "* ]] || cores+=("$siblings")
    done
done

first=0
for ((before = 0; before < rank; before++)); do
    first=$((first + widths[before]))
done
own=$(IFS=,; echo "${cores[*]:first:widths[rank]}")
program=$narrow
[[ $rank -eq 0 ]] && program=$wide
export OMP_NUM_THREADS=${widths[rank]} OMP_PLACES=cores OMP_PROC_BIND=close
exec taskset -c "$own" "$program" "$@"
"""


def command(widths: Sequence[int], wide: str, narrow: str, *arguments: str) -> list[str]:
    """What the launcher starts in place of a program.

    :param widths: threads of each rank of a node in turn, as its placement has them.
    :param wide: the program of each node's first rank.
    :param narrow: the program of all others.
    :param arguments: of both.
    """
    return ['bash', SCRIPT, ','.join(map(str, widths)), wide, narrow, *arguments]
