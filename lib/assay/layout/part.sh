#!/usr/bin/env bash
# Starts this rank's part of the job: its program, with its threads, on cores of its own.
#
#     part <widths> <program of the node's first rank> <program of all others> [<argument>...]
#
# Widths are the threads of each rank of the node in turn, separated by commas.
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
        # CPUs that are offline stand in that list too.
        [[ $(cat "$topology/cpu$cpu/online" 2>/dev/null) != 0 ]] || continue
        siblings=$(cat "$topology/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")
        [[ " ${cores[*]-} " == *" $siblings "* ]] || cores+=("$siblings")
    done
done

needed=0
for width in "${widths[@]}"; do
    needed=$((needed + width))
done
if [[ $needed -gt ${#cores[@]} ]]; then
    echo "part: ${#cores[@]} core(s) may be used, and the ranks of this node need $needed" >&2
    exit 2
fi

first=0
for ((before = 0; before < rank; before++)); do
    first=$((first + widths[before]))
done
own=$(IFS=,; echo "${cores[*]:first:widths[rank]}")
program=$narrow
[[ $rank -eq 0 ]] && program=$wide
export OMP_NUM_THREADS=${widths[rank]} OMP_PLACES=cores OMP_PROC_BIND=close
exec taskset -c "$own" "$program" "$@"
