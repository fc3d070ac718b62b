/* What a network device is besides its counters: what its link gives, where it sits, and how it is
 * joined to the processor.
 *
 * What the kernel does not tell, as of devices of virtual machines, is left out, and all of what has
 * no hardware behind it. */
#ifndef ASSAY_WITNESS_PORTS_H
#define ASSAY_WITNESS_PORTS_H

#include "json.h"

/* Members of a device, an object that is open:
 * up       (of a port of an RDMA device) whether its link is
 * layer    (likewise) InfiniBand, also of Omni-Path, or Ethernet
 * link     (likewise) lanes and generation, "4X HDR"
 * speed    bytes per second, as the driver states them: up to FDR those before the coding of the line
 * interface of a port of an RDMA device or of a Slingshot NIC, where it has one
 * nic      the PCI function, "0000:41:00.0"
 * virtual  whether it is a virtual function of a card that this host has
 * numa     its NUMA domain, and package that of this domain
 * pcie     lanes (width) and transfers per second and lane (speed, in 10^9) of its slot, and what it
 *          and the other end can do at best (widest, fastest)
 *
 * name, kind: as traffic.c has them. */
void ports_write(struct json *json, const char *name, const char *kind);

#endif
