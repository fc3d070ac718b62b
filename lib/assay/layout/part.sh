#!/usr/bin/env bash
# Starts this rank's part of the job: its program, with its threads, on cores of its own.
#
#     part <where> <widths> <program of the node's first rank> <program of all others> [<argument>...]
#
# Where is "anywhere", or near:<carrier>:<ports> or far:<carrier>:<ports>, of a fabric's carrier and
# the partition's ports, separated by commas (lib/assay/layout/sides.py says what near is). Where
# there are too few such cores the rank is not bound, and the check says why. Widths are the threads
# of each rank of the node in turn, separated by commas. A first program that is empty is that of
# all others.
set -euo pipefail
shopt -s nullglob

IFS=: read -r side carrier named <<<"$1"
IFS=, read -ra widths <<<"$2"
wide=${3:-$4} narrow=$4
shift 4
rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-}}}
if [[ -z $rank || $rank -ge ${#widths[@]} ]]; then
    echo "part: rank '$rank' of this node has no part among ${#widths[@]}" >&2
    exit 2
fi

# Puts the first line of a file into `line`. As it is done for each CPU it starts no process.
look() {
    line=''
    { read -r line <"$1"; } 2>/dev/null || true
}

text() {
    look "$1"
    echo "$line"
}

# The numbers of a list such as 0-3,8.
expanded() {
    local range
    for range in ${1//,/ }; do
        seq "${range%-*}" "${range#*-}"
    done
}

# The hardware threads of each core that the job may use, and the CPU that stands for the core.
cores=() cpus=()
topology=/sys/devices/system/cpu
for cpu in $(expanded "$(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status)"); do
    # CPUs that are offline stand in that list too.
    look "$topology/cpu$cpu/online"
    [[ $line != 0 ]] || continue
    look "$topology/cpu$cpu/topology/thread_siblings_list"
    [[ " ${cores[*]-} " == *" ${line:-$cpu} "* ]] || cores+=("${line:-$cpu}") cpus+=("$cpu")
done

# Near to network ports, and far from them ---------------------------------------------------------

# A line for each port of the carrier: its names, whether it is up, its link layer, device, and the
# text of its rate, if any.
list_ports() {
    local port device interface name up
    case $carrier in
    infiniband)
        for port in /sys/class/infiniband/*/ports/*; do
            device=${port%/ports/*} name=${port%/ports/*}
            name=${name##*/}:${port##*/} up=no
            [[ $(text "$port/state") != *ACTIVE* ]] || up=yes
            echo "$name,${name%:1} $up $(text "$port/link_layer") $device/device $(text "$port/rate")"
        done
        ;;
    cxi)
        for device in /sys/class/cxi/*; do
            interface=("$device"/device/net/*)
            name=${interface[0]-$device} up=yes
            [[ $(text "/sys/class/net/${name##*/}/operstate") != down ]] || up=no
            echo "${device##*/},${name##*/} $up - $device/device"
        done
        ;;
    sockets)
        for interface in /sys/class/net/*; do
            name=${interface##*/} up=no
            [[ $(text "$interface/operstate") != up ]] || up=yes
            # A bond has the devices of its parts.
            for device in "$interface"/{device,lower_*/device}; do
                [[ ! -e $device ]] || echo "$name $up - $device $(text "$interface/speed")"
            done
        done
        ;;
    esac
}

# The NUMA domains of the ports that are named or, if there are none, of those that messages ought
# to go over: InfiniBand before Ethernet, and none that is less than half as fast as another.
domains_of_ports() {
    local names up layer rate device name most=0 has_infiniband='' rows=() found=()
    while read -r names up layer device rate; do
        for name in ${names//,/ }; do
            [[ ,$named, != *,$name,* ]] || found+=("$device")
        done
        [[ $up == yes ]] || continue
        rate=${rate%%[. ]*}
        [[ $rate =~ ^[0-9]+$ ]] || rate=0 # -1 where the driver states none
        rows+=("$layer $rate $device")
        [[ $layer != InfiniBand ]] || has_infiniband=yes
    done < <(list_ports)
    if [[ ${#found[@]} -eq 0 ]]; then
        for row in ${rows[@]+"${rows[@]}"}; do
            read -r layer rate device <<<"$row"
            [[ -z $has_infiniband || $layer == InfiniBand ]] || continue
            ((rate <= most)) || most=$rate
        done
        for row in ${rows[@]+"${rows[@]}"}; do
            read -r layer rate device <<<"$row"
            [[ -z $has_infiniband || $layer == InfiniBand ]] || continue
            ((rate * 2 < most)) || found+=("$device")
        done
    fi
    for device in ${found[@]+"${found[@]}"}; do
        text "$device/numa_node" # -1, where no core is, if firmware does not tell
    done | awk NF | sort -nu
}

# The cores of those in a place, by the places of all cores.
cores_at() {
    local -n at=$1
    local number
    for number in "${!cores[@]}"; do
        [[ -z $2 || ${at[number]-} != "$2" ]] || echo "${cores[number]}"
    done
}

# The groups of cores that are near to a port, each as a line.
near_groups() {
    local group
    for domain in "${port_domains[@]}"; do
        group=$(cores_at domain_of "$domain")
        [[ -n $group ]] || group=$(cores_at package_of "$(package_at "$domain")")
        [[ -z $group ]] || echo "$group" | paste -sd ' '
    done | awk '!seen[$0]++'
}

# The CPUs of the package that a NUMA domain is in, by those of its first CPU.
package_at() {
    local first
    first=$(text "/sys/devices/system/node/node$1/cpulist")
    first=${first%%[-,]*}
    [[ -z $first ]] || text "$topology/cpu$first/topology/core_siblings_list"
}

# What is not near: of other packages, or else of other domains.
far_group() {
    local number packages=' ' elsewhere=() others=()
    for domain in "${port_domains[@]}"; do
        packages+="$(package_at "$domain") "
    done
    for number in "${!cores[@]}"; do
        [[ " ${near[*]-} " != *" ${cores[number]} "* ]] || continue
        others+=("${cores[number]}")
        [[ $packages == *" ${package_of[number]} "* ]] || elsewhere+=("${cores[number]}")
    done
    [[ ${#elsewhere[@]} -eq 0 ]] || others=("${elsewhere[@]}")
    echo "${others[*]-}"
}

choose_side() {
    local number node cpu
    local -A node_of=()
    package_of=() domain_of=()
    for node in /sys/devices/system/node/node[0-9]*; do
        for cpu in $(expanded "$(text "$node/cpulist")"); do
            node_of[$cpu]=${node##*/node}
        done
    done
    for number in "${!cores[@]}"; do
        # shellcheck disable=SC2034 # cores_at is given its name
        domain_of[number]=${node_of[${cpus[number]}]-}
        look "$topology/cpu${cpus[number]}/topology/core_siblings_list"
        package_of[number]=$line
    done
    mapfile -t port_domains < <(domains_of_ports)
    near=()
    [[ ${#port_domains[@]} -eq 0 ]] || mapfile -t near < <(near_groups)
    # Ranks are dealt round the ports.
    place=$rank
    if [[ ${#near[@]} -eq 0 ]]; then
        cores=()
    elif [[ $side == far ]]; then
        read -ra cores <<<"$(far_group)"
    else
        read -ra cores <<<"${near[rank % ${#near[@]}]}"
        place=$((rank / ${#near[@]}))
    fi
    first=$((place * widths[rank]))
}

# --------------------------------------------------------------------------------------------------

needed=0
for width in "${widths[@]}"; do
    needed=$((needed + width))
done
if [[ $side == anywhere && $needed -gt ${#cores[@]} ]]; then
    echo "part: ${#cores[@]} core(s) may be used, and the ranks of this node need $needed" >&2
    exit 2
fi

first=0
for ((before = 0; before < rank; before++)); do
    first=$((first + widths[before]))
done
[[ $side == anywhere ]] || choose_side
program=$narrow
[[ $rank -eq 0 ]] && program=$wide
export OMP_NUM_THREADS=${widths[rank]} OMP_PLACES=cores OMP_PROC_BIND=close
((first + widths[rank] <= ${#cores[@]})) || exec "$program" "$@"
own=$(IFS=,; echo "${cores[*]:first:widths[rank]}")
exec taskset -c "$own" "$program" "$@"
