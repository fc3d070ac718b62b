/* A TCP connection of our own between the two ranks of a pair, beside MPI's.
 *
 * On one host it goes over 127.0.0.1. Between hosts it joins the two addresses that MPI's own TCP
 * connection between the two processes joins, so that it takes the same interfaces whatever made
 * MPI choose them. Where MPI has no such connection, as over InfiniBand, it joins those by which
 * the host of rank 0 knows the other. Both are addresses of the pair's hosts: nothing is sent to
 * any other. */
#ifndef ASSAY_SOCKET_PAIR_H
#define ASSAY_SOCKET_PAIR_H

#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Where the connection ends on one of the two hosts. */
struct socket_end {
    struct sockaddr_storage socket; /* its port is 0 */
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE];
    char interface[IF_NAMESIZE]; /* "" if it was not found */
    double link_speed; /* bytes/s, as the interface's driver states it; 0 if it does not */
};

/* Collective over the pair: finds ends[0], of rank 0 of the pair, and ends[1]. */
void socket_pair_find(MPI_Comm pair, int rank, struct socket_end ends[2]);

/* Collective over the pair: returns a non-blocking socket that is connected to the other rank's,
 * with TCP_NODELAY, and with buffers of so many bytes, or of what the kernel allows; with 0 the
 * kernel sizes them. */
int socket_pair_connect(MPI_Comm pair, int rank, const struct socket_end ends[2], int buffers);

#endif
