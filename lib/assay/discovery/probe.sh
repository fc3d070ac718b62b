#!/usr/bin/env bash
# The job of `assay init`: what only compute nodes know. In this folder are
#   addresses.json   of each node
#   <mpi>.env        makes the environment of an MPI, and names the command of its own launcher
#   <mpi>            ranks.c, built with it
# and it leaves
#   node-<n>.json    what a node says of itself
#   <mpi>.started    the way by which all ranks found each other: srun and a PMI, or mpirun
#   <mpi>.<way>.out  what each way printed
#   done             at last
set -u
# What the job was asked for, and what a user prefers, are not for its steps.
unset SLURM_THREADS_PER_CORE
nodes=$1 ranks=$2 patience=$3 python=$4
all=$((nodes * ranks))

srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --mpi=none --cpu-bind=none \
    "$python" -m assay.discovery.node addresses.json .

# The one interface that leads to all nodes, if there is one.
interface=$(sort -u interface-*)

works() { # <output>
    [[ $(grep -cE "^assay: rank [0-9]+ of $all, and $all answered$" "$1") -eq $all ]]
}

try() { # <way> <command>...
    local out=$name.$1.out
    timeout --kill-after=5 "$patience" "${@:2}" >"$out" 2>&1 </dev/null
    # 124 and 137: it had to be ended.
    [[ $? -ne 124 && $? -ne 137 ]] || echo "it has not ended in $patience s" >>"$out"
    works "$out" && echo "$1" >"$name.started"
}

for file in *.env; do
    name=${file%.env}
    (
        interface_variables='' pmis=() mpirun=()
        # shellcheck source=/dev/null
        source "./$file"
        for variable in $interface_variables; do
            [[ ! $interface =~ ^[^[:space:]]+$ ]] || export "$variable=$interface"
        done
        for pmi in "${pmis[@]}"; do
            SLURM_MPI_TYPE=$pmi try "$pmi" srun --nodes="$nodes" --ntasks-per-node="$ranks" "./$name" && exit
        done
        # Some MPIs are started by srun alone.
        [[ ${#mpirun[@]} -eq 0 ]] || try mpirun "${mpirun[@]}" "./$name"
    )
done
touch 'done'
