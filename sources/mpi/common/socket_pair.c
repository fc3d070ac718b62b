#include "socket_pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"

enum { TAG = 1 };

/* Seconds for a connection to come about. */
static const double PATIENCE = 5;

_Noreturn static void failed(const struct socket_end ends[2], const char *what)
{
    bench_abort(EXIT_BROKEN,
                "cannot %s a TCP socket between %s and %s: %s; the limit of messages "
                "is measured by one: the hosts of a job must know each other by addresses of "
                "their own, with nothing between them that filters",
                what, ends[0].address, ends[1].address, strerror(errno));
}

/* addresses ------------------------------------------------------------------------------------ */

static socklen_t length_of(const struct sockaddr_storage *socket)
{
    return socket->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static in_port_t *port_of(struct sockaddr_storage *socket)
{
    return socket->ss_family == AF_INET ? &((struct sockaddr_in *)socket)->sin_port
                                        : &((struct sockaddr_in6 *)socket)->sin6_port;
}

/* As an address of IPv6, in which those of IPv4 have a place. */
static struct in6_addr address_of(const struct sockaddr_storage *socket)
{
    if (socket->ss_family == AF_INET6)
        return ((const struct sockaddr_in6 *)socket)->sin6_addr;
    struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
    memcpy(mapped.s6_addr + 12, &((const struct sockaddr_in *)socket)->sin_addr, 4);
    return mapped;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    struct in6_addr one = address_of(a), other = address_of(b);
    return memcmp(&one, &other, sizeof one) == 0;
}

static bool is_internet(const struct sockaddr *socket)
{
    return socket && (socket->sa_family == AF_INET || socket->sa_family == AF_INET6);
}

static bool is_loopback(const struct sockaddr_storage *socket)
{
    struct in6_addr address = address_of(socket);
    return IN6_IS_ADDR_LOOPBACK(&address) ||
           (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
}

/* MPI's connections ---------------------------------------------------------------------------- */

struct connection {
    struct in6_addr own, other;
    in_port_t own_port, other_port;
};

struct connections {
    struct connection *all;
    struct sockaddr_storage *own; /* ends of all */
    int count;
};

static void add_connection(struct connections *found, int fd)
{
    struct sockaddr_storage own, other;
    socklen_t own_length = sizeof own, other_length = sizeof other;
    if (getsockname(fd, (struct sockaddr *)&own, &own_length) != 0 ||
        getpeername(fd, (struct sockaddr *)&other, &other_length) != 0 ||
        !is_internet((struct sockaddr *)&own) || !is_internet((struct sockaddr *)&other))
        return;
    size_t count = (size_t)found->count + 1;
    found->all = realloc(found->all, count * sizeof *found->all);
    found->own = realloc(found->own, count * sizeof *found->own);
    if (!found->all || !found->own)
        bench_abort(EXIT_BROKEN, "no memory for a list of %zu connections", count);
    found->all[found->count] = (struct connection){ address_of(&own), address_of(&other),
                                                    *port_of(&own), *port_of(&other) };
    found->own[found->count++] = own;
}

/* All TCP connections of this process. */
static struct connections own_connections(void)
{
    struct connections found = { 0 };
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return found;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            add_connection(&found, atoi(entry->d_name));
    closedir(folder);
    return found;
}

static bool are_ends_of_one(const struct connection *a, const struct connection *b)
{
    struct connection turned = { b->other, b->own, b->other_port, b->own_port };
    return memcmp(a, &turned, sizeof turned) == 0;
}

/* Finds a TCP connection of which each process has an end: *own is that of this rank. */
static bool find_connection_of_mpi(MPI_Comm pair, int rank, struct sockaddr_storage *own)
{
    int peer = 1 - rank, which[2] = { -1, -1 };
    /* MPIs connect when the first message is sent. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG, NULL, 0, MPI_BYTE, peer, TAG, pair,
                 MPI_STATUS_IGNORE);
    struct connections found = own_connections();
    const int size = sizeof *found.all;
    if (rank == 1) {
        MPI_Send(&found.count, 1, MPI_INT, 0, TAG, pair);
        MPI_Send(found.all, found.count * size, MPI_BYTE, 0, TAG, pair);
    } else {
        int count;
        MPI_Recv(&count, 1, MPI_INT, 1, TAG, pair, MPI_STATUS_IGNORE);
        struct connection *theirs = calloc((size_t)count + 1, sizeof *theirs);
        if (!theirs)
            bench_abort(EXIT_BROKEN, "no memory for a list of %d connections", count);
        MPI_Recv(theirs, count * size, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);
        for (int mine = 0; which[0] < 0 && mine < found.count; mine++)
            for (int their = 0; which[0] < 0 && their < count; their++)
                if (are_ends_of_one(&found.all[mine], &theirs[their])) {
                    which[0] = mine;
                    which[1] = their;
                }
        free(theirs);
    }
    MPI_Bcast(which, 2, MPI_INT, 0, pair);
    if (which[rank] >= 0)
        *own = found.own[which[rank]];
    free(found.all);
    free(found.own);
    return which[rank] >= 0;
}

/* what the hosts call each other --------------------------------------------------------------- */

/* The address by which this host knows another; no port. */
static void resolve(const char *host, struct sockaddr_storage *address)
{
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int problem = getaddrinfo(host, NULL, &wanted, &found);
    *address = (struct sockaddr_storage){ 0 };
    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        struct sockaddr_storage candidate = { 0 };
        memcpy(&candidate, one->ai_addr, one->ai_addrlen);
        if (!is_internet(one->ai_addr) || is_loopback(&candidate))
            continue;
        *address = candidate;
        break;
    }
    if (found)
        freeaddrinfo(found);
    if (!address->ss_family)
        bench_abort(EXIT_BROKEN,
                    "this host knows %s by no address that reaches it%s%s, and MPI "
                    "has no TCP connection to it; give the hosts of a job each other's addresses",
                    host, problem ? ": " : "", problem ? gai_strerror(problem) : "");
}

/* The address that the kernel would take here to reach another; no packet is sent for it. */
static struct sockaddr_storage source_towards(struct sockaddr_storage other)
{
    struct sockaddr_storage own = { 0 };
    socklen_t length = sizeof own;
    *port_of(&other) = htons(9); /* any: connect() refuses 0 on some systems */
    int fd = socket(other.ss_family, SOCK_DGRAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&other, length_of(&other)) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &length) != 0)
        bench_abort(EXIT_BROKEN, "this host has no way to the host of the last rank: %s",
                    strerror(errno));
    close(fd);
    return own;
}

/* Rank 0 looks, and tells rank 1. */
static struct sockaddr_storage find_known_address(MPI_Comm pair, int rank)
{
    struct sockaddr_storage addresses[2];
    if (rank == 0) {
        resolve(bench.hosts[bench.host_of[bench.ranks - 1]], &addresses[1]);
        addresses[0] = source_towards(addresses[1]);
    }
    MPI_Bcast(addresses, sizeof addresses, MPI_BYTE, 0, pair);
    return addresses[rank];
}

/* ends ----------------------------------------------------------------------------------------- */

/* Interfaces without a device, such as those of containers, state a speed that means nothing. */
static double stated_speed(const char *interface)
{
    char path[64];
    long megabits = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/device", interface);
    if (access(path, F_OK) != 0)
        return 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", interface);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &megabits) != 1 || megabits < 0)
        megabits = 0;
    fclose(file);
    return (double)megabits * 1e6 / 8;
}

static struct socket_end describe(struct sockaddr_storage own)
{
    struct socket_end end = { .socket = own };
    struct ifaddrs *all = NULL;
    *port_of(&end.socket) = 0;
    getnameinfo((struct sockaddr *)&own, length_of(&own), end.address, sizeof end.address, NULL, 0,
                NI_NUMERICHOST);
    if (getifaddrs(&all) != 0)
        return end;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        struct sockaddr_storage address = { 0 };
        if (!is_internet(one->ifa_addr))
            continue;
        address.ss_family = one->ifa_addr->sa_family;
        memcpy(&address, one->ifa_addr, length_of(&address));
        if (!same_address(&address, &own))
            continue;
        snprintf(end.interface, sizeof end.interface, "%s", one->ifa_name);
        end.link_speed = stated_speed(end.interface);
        break;
    }
    freeifaddrs(all);
    return end;
}

void socket_pair_find(MPI_Comm pair, int rank, struct socket_end ends[2])
{
    struct sockaddr_storage own = { 0 };
    if (bench.host_of[0] == bench.host_of[bench.ranks - 1]) {
        struct sockaddr_in *loopback = (struct sockaddr_in *)&own;
        loopback->sin_family = AF_INET;
        loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else if (!find_connection_of_mpi(pair, rank, &own)) {
        own = find_known_address(pair, rank);
    }
    struct socket_end end = describe(own);
    MPI_Allgather(&end, sizeof end, MPI_BYTE, ends, sizeof end, MPI_BYTE, pair);
}

/* connection ----------------------------------------------------------------------------------- */

/* Returns whether the socket is ready before the deadline; errno says why it is not. */
static bool await(int fd, short event, double deadline)
{
    struct pollfd waiting = { .fd = fd, .events = event };
    double left = deadline - clock_seconds();
    int ready = poll(&waiting, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    if (ready == 0)
        errno = ETIMEDOUT;
    return ready == 1;
}

static bool connect_to(int fd, const struct sockaddr_storage *other, double deadline)
{
    if (connect(fd, (const struct sockaddr *)other, length_of(other)) == 0)
        return true;
    if (errno != EINPROGRESS || !await(fd, POLLOUT, deadline))
        return false;
    int problem = 0;
    socklen_t length = sizeof problem;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
    errno = problem;
    return problem == 0;
}

/* The connection that comes from there; whoever else connects meanwhile is sent away. */
static int accept_from(int listener, struct sockaddr_storage *other, double deadline)
{
    while (await(listener, POLLIN, deadline)) {
        struct sockaddr_storage caller;
        socklen_t length = sizeof caller;
        int fd = accept(listener, (struct sockaddr *)&caller, &length);
        if (fd < 0 && errno != ECONNABORTED && errno != EAGAIN)
            return -1;
        if (fd >= 0 && same_address(&caller, other) && *port_of(&caller) == *port_of(other))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static void set_up(int fd, int buffers, const struct socket_end ends[2])
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
        (buffers && (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers) != 0 ||
                     setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers) != 0)))
        failed(ends, "set up");
}

int socket_pair_connect(MPI_Comm pair, int rank, const struct socket_end ends[2], int buffers)
{
    struct sockaddr_storage own = ends[rank].socket, other = ends[1 - rank].socket;
    socklen_t length = sizeof own;
    if (own.ss_family == AF_INET6) /* each host numbers its interfaces for itself */
        ((struct sockaddr_in6 *)&other)->sin6_scope_id =
            ((struct sockaddr_in6 *)&own)->sin6_scope_id;
    int fd = socket(own.ss_family, SOCK_STREAM, 0);
    if (fd < 0)
        failed(ends, "make");
    set_up(fd, buffers, ends); /* before it connects: the buffers decide on the window's scale */
    if (bind(fd, (struct sockaddr *)&own, length_of(&own)) != 0 ||
        (rank == 1 && listen(fd, 1) != 0) || getsockname(fd, (struct sockaddr *)&own, &length) != 0)
        failed(ends, "bind");
    MPI_Sendrecv(port_of(&own), sizeof(in_port_t), MPI_BYTE, 1 - rank, TAG, port_of(&other),
                 sizeof(in_port_t), MPI_BYTE, 1 - rank, TAG, pair, MPI_STATUS_IGNORE);
    double deadline = clock_seconds() + PATIENCE;
    if (rank == 0) {
        if (!connect_to(fd, &other, deadline))
            failed(ends, "connect");
        return fd;
    }
    int listener = fd;
    fd = accept_from(listener, &other, deadline);
    if (fd < 0)
        failed(ends, "accept");
    close(listener);
    set_up(fd, 0, ends);
    return fd;
}
