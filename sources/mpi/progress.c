#define _GNU_SOURCE 1

#include "progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "bench.h"
#include "system.h"

/* A tag that no message has. */
enum { UNUSED_TAG = 99 };

static struct {
    pthread_t thread;
    pthread_barrier_t gate; /* for the rank and the thread */
    struct set cpus;
    MPI_Comm comm;
    atomic_bool is_to_pause;
    long calls;
    bool has_ended;
} progress;

static int core_of(int cpu)
{
    uint64_t lowest = (uint64_t)cpu;
    system_number(&lowest, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    return (int)lowest;
}

/* Give the thread the last core, with all its hardware threads, and the rank the rest. Returns whether the
 * rank has any. */
static bool divide_cpus(struct set *of_rank, struct set *of_thread)
{
    struct set all = { { 0 } };
    int last = -1;
    if (sched_getaffinity(0, sizeof all, (cpu_set_t *)all.words) != 0)
        bench_abort(EXIT_BROKEN, "cannot read which cores a rank may use");
    for (int cpu = set_next(&all, 0); cpu >= 0; cpu = set_next(&all, cpu + 1))
        last = cpu;
    for (int cpu = set_next(&all, 0); cpu >= 0; cpu = set_next(&all, cpu + 1))
        set_add(core_of(cpu) == core_of(last) ? of_thread : of_rank, cpu);
    return set_next(of_rank, 0) >= 0;
}

static void pin_to(const struct set *cpus)
{
    if (sched_setaffinity(0, sizeof *cpus, (const cpu_set_t *)cpus->words) != 0)
        bench_abort(EXIT_BROKEN, "cannot pin a thread to a core that the rank may use");
}

/* An MPI makes progress in any call; this one finds nothing, and waits for nothing. */
static void call_mpi(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, UNUSED_TAG, progress.comm, &flag, MPI_STATUS_IGNORE);
    progress.calls++;
}

static void *serve(void *nothing)
{
    pin_to(&progress.cpus);
    for (;;) {
        pthread_barrier_wait(&progress.gate);
        if (progress.has_ended)
            return nothing;
        call_mpi();
        pthread_barrier_wait(&progress.gate);
        while (!atomic_load_explicit(&progress.is_to_pause, memory_order_relaxed))
            call_mpi();
        pthread_barrier_wait(&progress.gate);
    }
}

void progress_start(MPI_Comm comm)
{
    struct set of_rank = { { 0 } };
    int has_two = divide_cpus(&of_rank, &progress.cpus);
    MPI_Allreduce(MPI_IN_PLACE, &has_two, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!has_two)
        bench_refuse("a progress thread needs a core of its own, and a rank may use one core only; "
                     "bind each rank to two cores or more");
    progress.comm = comm;
    pthread_barrier_init(&progress.gate, NULL, 2);
    if (pthread_create(&progress.thread, NULL, serve, NULL) != 0)
        bench_abort(EXIT_BROKEN, "cannot start the progress thread");
    pthread_setname_np(progress.thread, PROGRESS_NAME);
    pin_to(&of_rank);
}

void progress_resume(void)
{
    atomic_store(&progress.is_to_pause, false);
    pthread_barrier_wait(&progress.gate);
    pthread_barrier_wait(&progress.gate);
}

void progress_pause(void)
{
    atomic_store(&progress.is_to_pause, true);
    pthread_barrier_wait(&progress.gate);
}

long progress_calls(void)
{
    long least = 0;
    MPI_Reduce(&progress.calls, &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
    return least;
}

void progress_end(void)
{
    progress.has_ended = true;
    pthread_barrier_wait(&progress.gate);
    pthread_join(progress.thread, NULL);
    pthread_barrier_destroy(&progress.gate);
}
