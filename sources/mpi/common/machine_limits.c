#include "machine_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
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
#include "socket_pair.h"
#include "stats.h"

enum { CACHE_LINE = 64, TAG = 1, LARGE = 4 << 20, MEDIUM = 64 << 10 };

struct limits {
    double memcpy_bandwidth;     /* bytes/s */
    bool same_host;              /* of rank 0 and the last rank */
    double cacheline_latency;    /* seconds; set only on the same host */
    struct socket_end ends[2];   /* of the socket: rank 0's, and the last rank's */
    double socket_latency;       /* seconds */
    double socket_bandwidth;     /* bytes/s, LARGE */
    double socket_bandwidth_64k; /* bytes/s, MEDIUM */
    double socket_kernel_sized;  /* of that for LARGE: with buffers that the kernel sizes */
    double socket_received[2];   /* bytes/s, LARGE, by each end */
    /* Seconds of the shortest repeats, of which the reader makes the same limits once more. */
    double copy, turns, small_round_trip, large_round_trip;
};

/* For which each figure's best repeat is sought in the present measurement. */
static double seconds_per_figure;

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
        bench_abort(EXIT_BROKEN,
                    "the other process has not answered for %g s while the %s limit "
                    "was measured; see whether it was stopped or killed",
                    PATIENCE, what);
}

/* Marks ---------------------------------------------------------------------------------------- */

/* Of each repeat other ones, so that a limit is what was moved and not what was to be moved. */
static void set_marks(char *data, size_t size, unsigned number)
{
    data[size / 2] = data[size - 1] = (char)number;
}

static void require_marks(const char *data, size_t size, unsigned number, const char *what)
{
    if (data[size / 2] != (char)number || data[size - 1] != (char)number)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "%zu bytes did not all come while the %s limit was measured", size, what);
}

/* Repeats took so long together, by two readings of the clock: no shortest one is longer than their mean. */
static void require_shortest(double shortest, double repeats, double seconds, const char *what)
{
    if (!(shortest > 0 && shortest * repeats <= seconds * (1 + 1e-9)))
        bench_abort(EXIT_BROKEN, "the shortest of %g repeats of %s took %g s, and all of them %g s",
                    repeats, what, shortest, seconds);
}

/* memcpy --------------------------------------------------------------------------------------- */

/* Seconds of the slower rank. */
static double measure_memcpy(MPI_Comm pair)
{
    char *from = memory_allocate(LARGE), *to = memory_allocate(LARGE);
    memset(from, 1, LARGE);
    MPI_Barrier(pair);
    double best = INFINITY, start = clock_seconds(), now = start;
    unsigned number = 1;
    for (; now < start + seconds_per_figure; number++) {
        double before = now;
        set_marks(from, LARGE, number);
        memcpy(to, from, LARGE);
        require_marks(to, LARGE, number, "memcpy");
        now = clock_seconds();
        best = fmin(best, now - before);
    }
    if (memcmp(to, from, LARGE) != 0)
        bench_abort(EXIT_WRONG_PAYLOAD, "memcpy did not copy all of %d bytes", LARGE);
    free(from);
    free(to);
    require_shortest(best, number - 1, now - start, "memcpy");
    double slower;
    MPI_Allreduce(&best, &slower, 1, MPI_DOUBLE, MPI_MAX, pair);
    if (slower < best)
        bench_abort(EXIT_BROKEN, "the memcpy limit is that of the faster rank");
    return slower;
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
            bench_abort(EXIT_BROKEN,
                        "cannot make the shared page %s: %s; see whether /dev/shm is "
                        "writable and has room",
                        name, strerror(errno));
        page = map_shared_page(file);
        MPI_Send(name, sizeof name, MPI_CHAR, 1, TAG, pair);
        MPI_Recv(NULL, 0, MPI_CHAR, 1, TAG, pair, MPI_STATUS_IGNORE);
        shm_unlink(name);
    } else {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, TAG, pair, MPI_STATUS_IGNORE);
        int file = shm_open(name, O_RDWR, 0);
        if (file < 0)
            bench_abort(EXIT_BROKEN,
                        "cannot open the shared page %s: %s; both processes are on "
                        "one host but do not share /dev/shm (containers?)",
                        name, strerror(errno));
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

enum { BATCH = 20 }; /* turns: long for the clock, short enough to be left alone by the scheduler */

/* Seconds of a batch. */
static double measure_cacheline(MPI_Comm pair, int rank)
{
    const uint64_t stop = UINT64_MAX;
    struct mailbox *page = share_page(pair, rank);
    double best = INFINITY;
    uint64_t turns = 0;
    if (rank == 0) {
        uint64_t count = 0;
        double start = clock_seconds(), now = start;
        for (; now < start + seconds_per_figure; turns += BATCH) {
            double before = now;
            for (int i = 0; i < BATCH; i++) {
                atomic_store_explicit(&page->to_echo, count + 1, memory_order_release);
                count = await_other_than(&page->to_caller, count);
            }
            now = clock_seconds();
            best = fmin(best, now - before);
        }
        require_shortest(best, (double)(turns / BATCH), now - start, "cache line");
        atomic_store_explicit(&page->to_echo, stop, memory_order_release);
        uint64_t echoed;
        MPI_Recv(&echoed, 1, MPI_UINT64_T, 1, TAG, pair, MPI_STATUS_IGNORE);
        if (echoed != turns)
            bench_abort(EXIT_BROKEN, "the cache line limit is of %llu turns, and there were %llu",
                        (unsigned long long)turns, (unsigned long long)echoed);
    } else {
        uint64_t count = 0;
        for (; (count = await_other_than(&page->to_echo, count)) != stop; turns++)
            atomic_store_explicit(&page->to_caller, count, memory_order_release);
        MPI_Send(&turns, 1, MPI_UINT64_T, 0, TAG, pair);
    }
    munmap(page, sizeof *page);
    return best;
}

/* socket --------------------------------------------------------------------------------------- */

/* Sends or receives all of it, busy-polling. Of a LARGE message returns the bytes/s at which it came
 * in since the receiver last found nothing, so never more than the way to it carries, whatever the
 * clock of the other host shows; 0 if some of it was there at the first look. */
static double transfer(int fd, char *buffer, size_t size, bool sending)
{
    const bool timed = !sending && size == LARGE;
    struct patience patience = { 0 };
    double looked = 0, empty = 0;
    for (size_t done = 0; done < size;) {
        if (timed && done == 0)
            looked = clock_seconds();
        ssize_t moved = sending ? send(fd, buffer + done, size - done, MSG_NOSIGNAL)
                                : recv(fd, buffer + done, size - done, 0);
        if (moved > 0) {
            done += (size_t)moved;
            patience = (struct patience){ 0 };
        } else if (moved == 0) {
            bench_abort(EXIT_BROKEN, "the other process closed the socket half-way");
        } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            if (done == 0)
                empty = looked;
            patience_wait(&patience, "socket");
        } else {
            bench_abort(EXIT_BROKEN,
                        "cannot %s through the TCP socket: %s while the socket limit "
                        "was measured",
                        sending ? "send" : "receive", strerror(errno));
        }
    }
    return empty > 0 ? (double)size / (clock_seconds() - empty) : 0;
}

/* The round trip of `size` bytes; *received rises to the best rate at which they came in here.
 * The caller's first byte tells the echo when to stop. */
static double socket_ping_pong(int fd, int rank, char *buffer, size_t size, double *received)
{
    enum { MORE = 1, STOP = 2, FEWEST = 3 }; /* TCP starts slowly, and a network may be slow */
    double best = INFINITY;
    unsigned number = 0;
    if (rank == 0) {
        double start = clock_seconds(), now = start;
        for (int i = 0; i < FEWEST || now < start + seconds_per_figure; i++) {
            double before = now;
            buffer[0] = MORE;
            set_marks(buffer, size, ++number);
            transfer(fd, buffer, size, true);
            *received = fmax(*received, transfer(fd, buffer, size, false));
            require_marks(buffer, size, ++number, "socket");
            now = clock_seconds();
            best = fmin(best, now - before);
        }
        require_shortest(best, number / 2, now - start, "socket");
        buffer[0] = STOP;
        transfer(fd, buffer, size, true);
    } else {
        for (;;) {
            *received = fmax(*received, transfer(fd, buffer, size, false));
            if (buffer[0] == STOP)
                break;
            require_marks(buffer, size, ++number, "socket");
            set_marks(buffer, size, ++number);
            transfer(fd, buffer, size, true);
        }
    }
    return best;
}

/* Both ways. */
static double bandwidth_of(double size, double round_trip)
{
    return 2 * size / round_trip;
}

static void measure_socket(MPI_Comm pair, int rank, struct limits *limits)
{
    char *buffer = memory_allocate(LARGE);
    double received[2] = { 0, 0 }, *mine = &received[rank];
    socket_pair_find(pair, rank, limits->ends);
    int fd = socket_pair_connect(pair, rank, limits->ends, 0);
    limits->small_round_trip = socket_ping_pong(fd, rank, buffer, 8, mine);
    limits->socket_latency = limits->small_round_trip / 2;
    limits->socket_bandwidth_64k =
        bandwidth_of(MEDIUM, socket_ping_pong(fd, rank, buffer, MEDIUM, mine));
    double kernel_sized = socket_ping_pong(fd, rank, buffer, LARGE, mine);
    close(fd);

    /* The kernel may have been told to keep the buffers that it sizes itself too small. */
    fd = socket_pair_connect(pair, rank, limits->ends, LARGE);
    double largest = socket_ping_pong(fd, rank, buffer, LARGE, mine);
    limits->large_round_trip = fmin(kernel_sized, largest);
    limits->socket_bandwidth = bandwidth_of(LARGE, limits->large_round_trip);
    limits->socket_kernel_sized = limits->large_round_trip / kernel_sized;
    close(fd);
    free(buffer);
    MPI_Allreduce(received, limits->socket_received, 2, MPI_DOUBLE, MPI_MAX, pair);
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
    limits.copy = measure_memcpy(pair);
    limits.memcpy_bandwidth = LARGE / limits.copy;
    if (limits.same_host) {
        limits.turns = measure_cacheline(pair, rank);
        limits.cacheline_latency = limits.turns / BATCH / 2;
    }
    measure_socket(pair, rank, &limits);
    pair_leave(&pair);
    return limits;
}

static struct limits measured[LIMITS_MOST];
static int count;

void limits_measure(double seconds)
{
    if (count == LIMITS_MOST)
        bench_abort(EXIT_BROKEN, "limits are measured %d times at most", LIMITS_MOST);
    seconds_per_figure = seconds;
    measured[count++] = measure();
}

/* The median over the measurements of the member at `offset`. */
static double middle(size_t offset)
{
    double values[LIMITS_MOST];
    for (int i = 0; i < count; i++)
        values[i] = *(const double *)((const char *)&measured[i] + offset);
    return stats_of(values, count).median;
}

static struct limits whole(void)
{
    struct limits limits = measured[count - 1];
    limits.memcpy_bandwidth = middle(offsetof(struct limits, memcpy_bandwidth));
    limits.cacheline_latency = middle(offsetof(struct limits, cacheline_latency));
    limits.socket_latency = middle(offsetof(struct limits, socket_latency));
    limits.socket_bandwidth = middle(offsetof(struct limits, socket_bandwidth));
    limits.socket_bandwidth_64k = middle(offsetof(struct limits, socket_bandwidth_64k));
    /* What disturbs one of the measurements is no matter of buffers, or of a direction. */
    for (int i = 0; i < count; i++) {
        limits.socket_kernel_sized =
            fmax(limits.socket_kernel_sized, measured[i].socket_kernel_sized);
        for (int end = 0; end < 2; end++)
            limits.socket_received[end] =
                fmax(limits.socket_received[end], measured[i].socket_received[end]);
    }
    return limits;
}

static void print(const struct limits *limits)
{
    printf("\nLimits between rank 0 and rank %d, without MPI\n", bench.ranks - 1);
    printf("  memcpy     %10.2f MB/s (4 MiB)\n", limits->memcpy_bandwidth * 1e-6);
    if (limits->same_host)
        printf("  cacheline  %10.3f us\n", limits->cacheline_latency * 1e6);
    else
        printf("  cacheline: not measured, the two ranks are on different hosts\n");
    printf("  socket     %10.3f us (8 B), %.2f MB/s (64 KiB), %.2f MB/s (4 MiB)\n",
           limits->socket_latency * 1e6, limits->socket_bandwidth_64k * 1e-6,
           limits->socket_bandwidth * 1e-6);
    for (int i = 0; i < 2; i++)
        printf("    %s %s (%s), which received %.2f MB/s\n", i == 0 ? "from" : "to  ",
               limits->ends[i].address, limits->ends[i].interface,
               limits->socket_received[i] * 1e-6);
    fflush(stdout);
}

static void write_ends(struct json *json, const struct limits *limits)
{
    json_array(json, "ends");
    for (int i = 0; i < 2; i++) {
        json_object(json, NULL);
        json_string(json, "address", limits->ends[i].address);
        json_string(json, "interface", limits->ends[i].interface);
        if (limits->ends[i].link_speed > 0)
            json_number(json, "link_speed", limits->ends[i].link_speed);
        json_number(json, "received", limits->socket_received[i]);
        json_end(json);
    }
    json_end(json);
}

static void write_measured(struct json *json)
{
    json_array(json, "measured");
    for (int i = 0; i < count; i++) {
        json_object(json, NULL);
        json_number(json, "memcpy_bandwidth", measured[i].memcpy_bandwidth);
        if (measured[i].same_host)
            json_number(json, "cacheline_latency", measured[i].cacheline_latency);
        json_number(json, "socket_latency", measured[i].socket_latency);
        json_number(json, "socket_bandwidth", measured[i].socket_bandwidth);
        json_object(json, "shortest");
        json_number(json, "memcpy_bandwidth", measured[i].copy);
        if (measured[i].same_host)
            json_number(json, "cacheline_latency", measured[i].turns);
        json_number(json, "socket_latency", measured[i].small_round_trip);
        json_number(json, "socket_bandwidth", measured[i].large_round_trip);
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

static void write_json(struct json *json, const struct limits *limits)
{
    json_object(json, "limits");
    if (count > 1)
        write_measured(json);
    json_object(json, "memcpy");
    json_integer(json, "size", LARGE);
    json_number(json, "bandwidth", limits->memcpy_bandwidth);
    json_end(json);
    if (limits->same_host) {
        json_object(json, "cacheline");
        json_number(json, "latency", limits->cacheline_latency);
        json_end(json);
    }
    json_object(json, "socket");
    json_number(json, "latency", limits->socket_latency);
    json_integer(json, "size", LARGE);
    json_number(json, "bandwidth", limits->socket_bandwidth);
    json_number(json, "bandwidth_64k", limits->socket_bandwidth_64k);
    json_number(json, "kernel_sized", limits->socket_kernel_sized);
    write_ends(json, limits);
    json_end(json);
    json_end(json);
}

void limits_report(void)
{
    if (bench.rank != 0)
        return;
    struct limits limits = whole();
    print(&limits);
    write_json(bench.json, &limits);
}
