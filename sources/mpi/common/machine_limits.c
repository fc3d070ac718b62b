#include "machine_limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "memory.h"
#include "pair.h"

enum { CACHE_LINE = 64, TAG = 1, LARGE = 4 << 20, MEDIUM = 64 << 10 };

struct limits {
    double memcpy_bandwidth;     /* bytes/s */
    bool same_host;              /* of rank 0 and the last rank: only then the rest is set */
    double cacheline_latency;    /* seconds */
    double socket_latency;       /* seconds */
    double socket_bandwidth;     /* bytes/s, LARGE */
    double socket_bandwidth_64k; /* bytes/s, MEDIUM */
};

/* Seconds for which each figure's best repeat is sought. */
static const double TIME_PER_FIGURE = 0.05;

/* A peer that has not moved for so long is dead or stopped. */
static const double PATIENCE = 5;

/* Fruitless polls after which a core is offered to whoever waits for it: on a machine with fewer
 * cores than ranks, that is the peer. */
enum { POLLS_BEFORE_YIELD = 500 };

/* Starts as { 0 }. The clock is first read when a core is first offered, so that waits that end
 * soon do not pay for it. */
struct patience {
    unsigned polls;
    double deadline;
};

/* Call after each fruitless poll. */
static inline void patience_wait(struct patience *patience, const char *what)
{
    if (++patience->polls % POLLS_BEFORE_YIELD)
        return;
    sched_yield();
    double now = clock_seconds();
    if (patience->deadline == 0)
        patience->deadline = now + PATIENCE;
    if (now > patience->deadline)
        bench_abort(EXIT_BROKEN, "the other process has not answered for %g s while the %s limit "
                    "was measured; see whether it was stopped or killed", PATIENCE, what);
}

/* memcpy --------------------------------------------------------------------------------------- */

static double measure_memcpy(MPI_Comm pair)
{
    char *from = memory_allocate(LARGE), *to = memory_allocate(LARGE);
    memset(from, 1, LARGE);
    MPI_Barrier(pair);
    double best = INFINITY, start = clock_seconds(), now = start;
    while (now < start + TIME_PER_FIGURE) {
        double before = now;
        memcpy(to, from, LARGE);
        from[0] = to[LARGE - 1]; /* keeps the compiler from leaving copies out */
        now = clock_seconds();
        best = fmin(best, now - before);
    }
    free(from);
    free(to);
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, pair);
    return LARGE / best;
}

/* cache line ----------------------------------------------------------------------------------- */

struct mailbox {
    _Alignas(CACHE_LINE) _Atomic uint64_t to_echo;
    _Alignas(CACHE_LINE) _Atomic uint64_t to_caller;
};

static struct mailbox *map_shared_page(int file)
{
    void *page = mmap(NULL, sizeof(struct mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        bench_abort(EXIT_BROKEN, "cannot map a shared page: %s", strerror(errno));
    close(file);
    return page;
}

/* Rank 0 of the pair makes the page, the other opens it, and then its name goes away. */
static struct mailbox *share_page(MPI_Comm pair, int rank)
{
    char name[64];
    struct mailbox *page;
    if (rank == 0) {
        snprintf(name, sizeof name, "/assay-%ld-%.0f", (long)getpid(), clock_seconds() * 1e9);
        int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (file < 0 || ftruncate(file, sizeof(struct mailbox)) != 0)
            bench_abort(EXIT_BROKEN, "cannot make the shared page %s: %s; see whether /dev/shm is "
                        "writable and has room", name, strerror(errno));
        page = map_shared_page(file);
        MPI_Send(name, sizeof name, MPI_CHAR, 1, TAG, pair);
        MPI_Recv(NULL, 0, MPI_CHAR, 1, TAG, pair, MPI_STATUS_IGNORE);
        shm_unlink(name);
    } else {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, TAG, pair, MPI_STATUS_IGNORE);
        int file = shm_open(name, O_RDWR, 0);
        if (file < 0)
            bench_abort(EXIT_BROKEN, "cannot open the shared page %s: %s; both processes are on "
                        "one host but do not share /dev/shm (containers?)", name,
                        strerror(errno));
        page = map_shared_page(file);
        MPI_Send(NULL, 0, MPI_CHAR, 0, TAG, pair);
    }
    return page;
}

static uint64_t await_other_than(_Atomic uint64_t *flag, uint64_t last)
{
    struct patience patience = { 0 };
    uint64_t seen;
    while ((seen = atomic_load_explicit(flag, memory_order_acquire)) == last)
        patience_wait(&patience, "cache line");
    return seen;
}

static double measure_cacheline(MPI_Comm pair, int rank)
{
    enum { BATCH = 20 }; /* long for the clock, short enough to be left alone by the scheduler */
    const uint64_t stop = UINT64_MAX;
    struct mailbox *page = share_page(pair, rank);
    double best = INFINITY;
    if (rank == 0) {
        uint64_t count = 0;
        double start = clock_seconds(), now = start;
        while (now < start + TIME_PER_FIGURE) {
            double before = now;
            for (int i = 0; i < BATCH; i++) {
                atomic_store_explicit(&page->to_echo, count + 1, memory_order_release);
                count = await_other_than(&page->to_caller, count);
            }
            now = clock_seconds();
            best = fmin(best, (now - before) / BATCH / 2);
        }
        atomic_store_explicit(&page->to_echo, stop, memory_order_release);
    } else {
        uint64_t count = 0;
        while ((count = await_other_than(&page->to_echo, count)) != stop)
            atomic_store_explicit(&page->to_caller, count, memory_order_release);
    }
    munmap(page, sizeof *page);
    return best;
}

/* socket --------------------------------------------------------------------------------------- */

_Noreturn static void socket_failed(const char *what)
{
    bench_abort(EXIT_BROKEN, "cannot %s a TCP socket on 127.0.0.1: %s; the loopback interface "
                "must be up and not filtered", what, strerror(errno));
}

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        socket_failed("make");
    return fd;
}

static void accept_within_patience(int listener, int *fd)
{
    struct pollfd waiting = { .fd = listener, .events = POLLIN };
    int ready = poll(&waiting, 1, (int)(PATIENCE * 1000));
    if (ready == 0)
        errno = ETIMEDOUT;
    if (ready != 1 || (*fd = accept(listener, NULL, NULL)) < 0)
        socket_failed("accept a connection to");
}

static int connect_pair(MPI_Comm pair, int rank)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = new_socket();
    if (rank == 1) {
        int listener = fd;
        socklen_t length = sizeof address;
        if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0
            || listen(listener, 1) != 0
            || getsockname(listener, (struct sockaddr *)&address, &length) != 0)
            socket_failed("listen on");
        MPI_Send(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 0, TAG, pair);
        accept_within_patience(listener, &fd);
        close(listener);
    } else {
        MPI_Recv(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 1, TAG, pair,
                 MPI_STATUS_IGNORE);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            socket_failed("connect");
    }
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0
        || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        socket_failed("set up");
    return fd;
}

/* Sends or receives all of it, busy-polling. */
static void transfer(int fd, char *buffer, size_t size, bool sending)
{
    struct patience patience = { 0 };
    for (size_t done = 0; done < size;) {
        ssize_t moved = sending ? send(fd, buffer + done, size - done, MSG_NOSIGNAL)
                                : recv(fd, buffer + done, size - done, 0);
        if (moved > 0)
            done += (size_t)moved;
        else if (moved == 0)
            bench_abort(EXIT_BROKEN, "the other process closed the socket half-way");
        else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            patience_wait(&patience, "socket");
        else
            socket_failed(sending ? "send through" : "receive through");
    }
}

/* Half the round trip of `size` bytes. The caller's first byte tells the echo when to stop. */
static double socket_ping_pong(int fd, int rank, char *buffer, size_t size)
{
    enum { MORE = 1, STOP = 2 };
    double best = INFINITY;
    if (rank == 0) {
        double start = clock_seconds(), now = start;
        while (now < start + TIME_PER_FIGURE) {
            double before = now;
            buffer[0] = MORE;
            transfer(fd, buffer, size, true);
            transfer(fd, buffer, size, false);
            now = clock_seconds();
            best = fmin(best, (now - before) / 2);
        }
        buffer[0] = STOP;
        transfer(fd, buffer, size, true);
    } else {
        for (;;) {
            transfer(fd, buffer, size, false);
            if (buffer[0] == STOP)
                break;
            transfer(fd, buffer, size, true);
        }
    }
    return best;
}

static void measure_socket(MPI_Comm pair, int rank, struct limits *limits)
{
    char *buffer = memory_allocate(LARGE);
    int fd = connect_pair(pair, rank);
    limits->socket_latency = socket_ping_pong(fd, rank, buffer, 8);
    limits->socket_bandwidth_64k = MEDIUM / socket_ping_pong(fd, rank, buffer, MEDIUM);
    limits->socket_bandwidth = LARGE / socket_ping_pong(fd, rank, buffer, LARGE);
    close(fd);
    free(buffer);
}

/* all ------------------------------------------------------------------------------------------ */

static struct limits measure(void)
{
    struct limits limits = { .same_host = bench.host_of[0] == bench.host_of[bench.ranks - 1] };
    MPI_Comm pair = pair_enter();
    if (pair == MPI_COMM_NULL)
        return limits;
    int rank;
    MPI_Comm_rank(pair, &rank);
    limits.memcpy_bandwidth = measure_memcpy(pair);
    if (limits.same_host) {
        limits.cacheline_latency = measure_cacheline(pair, rank);
        measure_socket(pair, rank, &limits);
    }
    pair_leave(&pair);
    return limits;
}

static void print(const struct limits *limits)
{
    printf("\nLimits between rank 0 and rank %d, without MPI\n", bench.ranks - 1);
    printf("  memcpy     %10.2f MB/s (4 MiB)\n", limits->memcpy_bandwidth * 1e-6);
    if (limits->same_host) {
        printf("  cacheline  %10.3f us\n", limits->cacheline_latency * 1e6);
        printf("  socket     %10.3f us (8 B), %.2f MB/s (64 KiB), %.2f MB/s (4 MiB)\n",
               limits->socket_latency * 1e6, limits->socket_bandwidth_64k * 1e-6,
               limits->socket_bandwidth * 1e-6);
    } else {
        printf("  cacheline, socket: not measured, the two ranks are on different hosts\n");
    }
    fflush(stdout);
}

static void write_json(struct json *json, const struct limits *limits)
{
    json_object(json, "limits");
    json_object(json, "memcpy");
    json_integer(json, "size", LARGE);
    json_number(json, "bandwidth", limits->memcpy_bandwidth);
    json_end(json);
    if (limits->same_host) {
        json_object(json, "cacheline");
        json_number(json, "latency", limits->cacheline_latency);
        json_end(json);
        json_object(json, "socket");
        json_number(json, "latency", limits->socket_latency);
        json_integer(json, "size", LARGE);
        json_number(json, "bandwidth", limits->socket_bandwidth);
        json_number(json, "bandwidth_64k", limits->socket_bandwidth_64k);
        json_end(json);
    }
    json_end(json);
}

void limits_report(void)
{
    struct limits limits = measure();
    if (bench.rank != 0)
        return;
    print(&limits);
    write_json(bench.json, &limits);
}
