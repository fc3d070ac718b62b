/* What carried the bytes: the counters of the network devices, and the TCP sockets of the process.
 *
 * Devices count all their traffic, other jobs' too. Their kinds:
 * loopback, ethernet, ip-over-infiniband: the interfaces that this process can see, i.e. those of
 *   its network namespace. Tunnels and others that are no Ethernet are left out. Bytes that pass
 *   through a bond or a bridge are counted by it and by the interface below.
 * infiniband: a port of an RDMA device ("mlx5_0:1"): InfiniBand, Omni-Path, RoCE, and EFA.
 * cxi: a Slingshot NIC, with its Ethernet traffic. */
#ifndef ASSAY_WITNESS_TRAFFIC_H
#define ASSAY_WITNESS_TRAFFIC_H

#include "json.h"

void traffic_start(void); /* end of MPI_Init, on the first rank of each host: reads the counters */

/* After a call that may have waited for data: see how fast sockets send, at most every 5 ms, and
 * every 50 ms if none does. */
void traffic_look(void);

/* Member sockets: the connected TCP sockets. `device` is the interface with the local address, but
 * loopback when the remote address is this host's own as well; "" when no interface has it.
 * `segments` with payload were sent, `resent` of them again; `round_trip` is the shortest that the
 * kernel has seen in the last 5 minutes (net.ipv4.tcp_min_rtt_wlen), and `rate` (bytes/s) what
 * arrived last, if nothing but the way held it back. `pace` (bytes/s) is the geometric mean of what
 * arrived at `looks` looks at a socket that was sending. */
void traffic_write_sockets(struct json *json);

/* Member devices: change since traffic_start. Devices that appeared or were reset since then are
 * left out. `downs`, where it is counted: how often the link of an interface or of an InfiniBand port
 * went down. */
void traffic_write_devices(struct json *json);

#endif
