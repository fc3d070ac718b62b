/* limits: the machine's own limits between rank 0 and the last rank, without MPI. */
#include "bench.h"
#include "machine_limits.h"

static const struct option_spec options[] = { { .name = NULL } };

static const struct bench_about about = {
    .program = "limits",
    .purpose = "the machine's own limits for messages between two processes, without MPI",
    .text =
        "Measured between rank 0 and the last rank; other ranks sleep. A limit is a bound, so\n"
        "each is the best of many repeats. On two hosts there is no cacheline.\n"
        "  memcpy     Both ranks copy 4 MiB from one buffer to another, at the same time, again\n"
        "             and again, so that the buffers are as warm as a ping-pong's. bandwidth:\n"
        "             bytes copied (not read plus written) over the time of a copy; the slower\n"
        "             rank's. It bounds shared memory: a message is copied at least once. With a\n"
        "             single copy one rank copies all of it; with copy-in/copy-out both ranks do,\n"
        "             chunk by chunk at the same time. Either way it goes no faster than a\n"
        "             process copies, unless the two ranks copy a half each.\n"
        "  cacheline  A counter goes back and forth through a page that both processes map. Each\n"
        "             direction has a cache line, written by one side, with release stores and\n"
        "             acquire loads. latency: half the round trip.\n"
        "  socket     TCP with TCP_NODELAY; both ends poll non-blocking sockets, as MPIs do. One\n"
        "             host: over 127.0.0.1. Two: between the addresses that MPI's own TCP\n"
        "             connection of the two joins or, where it has none, by which the first host\n"
        "             knows the other. latency: half the round trip of 8 bytes. bandwidth: bytes\n"
        "             over half the round trip, for 64 KiB (bandwidth_64k) and 4 MiB (bandwidth:\n"
        "             with buffers that the kernel sizes, or with the largest it allows, whichever\n"
        "             is faster; kernel_sized: the first over that). received: the best rate at\n"
        "             which 4 MiB came in at an end, which is that of the one direction; 0 if some\n"
        "             of them were always there at its first look. link_speed: what the driver of\n"
        "             the interface states.\n",
    .examples = "  mpirun -n 2 limits\n"
                "  mpirun -n 2 limits --json limits.json\n",
    .min_ranks = 2,
};

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    limits_measure(0.05);
    limits_report();
    json_array(bench.json, "results");
    json_end(bench.json);
    return bench_end();
}
