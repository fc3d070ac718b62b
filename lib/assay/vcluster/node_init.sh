#!/usr/bin/env bash
# Process 1 of a node: makes the new namespaces that it is started in a machine, and stays.
#
#     node_init.sh <node> <state folder> <shared folder> [<cgroup>...]
#
# Says "ready" on standard output, then waits for a line on standard input, which tells that the
# network is there. What it starts dies with it.
set -euo pipefail
node=$1 state=$2 shared=$3
for group in "${@:4}"; do
    echo 0 >"$group/cgroup.procs"
done

hostname "$node"
mount --make-rprivate /
mount -t proc -o nosuid,nodev,noexec proc /proc
mount --bind "$state/hosts" /etc/hosts
# /sys shows the network interfaces of the namespace that mounts it.
mount --rbind /sys/fs/cgroup /mnt
mount -t sysfs sysfs /sys
mount --move /mnt /sys/fs/cgroup
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
# A cluster's file system stays one even where it lies in /tmp.
mount --bind "$shared" /mnt
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p "$shared"
mount --move /mnt "$shared"
cd "$state"

ip link set lo up
# What TCP learns of a route that was disturbed must not outlive the disturbance.
echo reno >/proc/sys/net/ipv4/tcp_congestion_control
echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save

echo ready
exec >&2
read -r
if [[ $node == head ]]; then
    munged --force --key-file=munge.key --socket=munge.socket --pid-file=munged.pid \
        --log-file=logs/munged.log --seed-file=munged.seed
    slurmctld -c
else
    slurmd
fi
sleep infinity &
wait
