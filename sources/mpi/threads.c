/* threads: rate of small messages of several threads of a rank at once.
 *
 * Rank i of the first half sends to rank i of the second half, thread t to thread t: windows of
 * messages, each answered by an empty one. What is measured stands in the help text below. The same
 * program with one thread on each of as many ranks tells what processes reach instead.
 *
 * Payload: a message has a pattern of its sender, its thread and its place in the window. The last
 * window of each batch is checked whole, outside the time, and so is which communicator it used. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "memory.h"
#include "patience.h"
#include "payload.h"
#include "sample.h"

static bool thread_multiple = false;

static const struct bench_about about = {
    .program = "threads",
    .purpose = "rate of small messages of several threads of a rank at once",
    .text =
        "Rank i of the first half of the ranks sends to rank i of the second half, each thread to\n"
        "its counterpart: a window of messages by MPI_Isend, which an empty one answers.\n"
        "  one            one thread alone.\n"
        "  communicators  all threads at once, each on a communicator of its own.\n"
        "  shared         all threads at once on the same communicator, with tags of their own.\n"
        "Time: of a window of all of them. Rate: the messages of all ranks and threads over it.\n"
        "With one thread only the first is measured.\n",
    .examples = "  mpirun -n 2 threads --threads 8 --thread-multiple\n"
                "  mpirun -n 16 threads --json processes.json\n",
    .min_ranks = 2,
    .thread_multiple = &thread_multiple,
};

enum measure { ONE, COMMUNICATORS, SHARED, MEASURES };
static const char *const measure_names[] = { "one", "communicators", "shared" };

enum { MOST_THREADS = 64, MOST_WINDOW = 4096 };

static long thread_count = 1, window = 64;
static size_t size = 8;
static long patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "threads", .kind = OPTION_COUNT, .value = &thread_count, .argument = "COUNT",
      .low = 1, .high = MOST_THREADS, .help = "threads of each rank" },
    { .name = "thread-multiple", .kind = OPTION_FLAG, .value = &thread_multiple,
      .help = "ask the MPI for MPI_THREAD_MULTIPLE, which several threads need" },
    { .name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "BYTES", .low = 1,
      .high = (size_t)1 << 20, .help = "of a message" },
    { .name = "window", .kind = OPTION_COUNT, .value = &window, .argument = "COUNT", .low = 1,
      .high = MOST_WINDOW, .help = "messages that a thread sends before it is answered" },
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

struct worker {
    pthread_t thread;
    int number;
    MPI_Comm own; /* a communicator of this thread and of its counterparts */
    char *memory; /* of a window */
    MPI_Request *requests;
    long made; /* windows, since they were counted */
    long lacking; /* those whose message had no mark */
    MPI_Comm used; /* by the last of them */
};

/* What the threads of this rank do next; written by the first of them while the others wait. */
static struct {
    enum measure measure;
    long iterations;
    bool has_ended;
} task;

static struct worker *workers;
static pthread_barrier_t begin, end; /* of the threads of this rank */

static bool is_sender(void)
{
    return bench.rank < bench.ranks / 2;
}

static int partner(void)
{
    return is_sender() ? bench.rank + bench.ranks / 2 : bench.rank - bench.ranks / 2;
}

static long message_number(const struct worker *worker, long place)
{
    return (long)worker->number * MOST_WINDOW + place;
}

static void send_window(struct worker *worker, MPI_Comm comm, int tag)
{
    worker->used = comm;
    for (long i = 0; i < window; i++)
        MPI_Isend(worker->memory + (size_t)i * size, (int)size, MPI_BYTE, partner(), tag, comm,
                  &worker->requests[i]);
    MPI_Waitall((int)window, worker->requests, MPI_STATUSES_IGNORE);
    MPI_Recv(NULL, 0, MPI_BYTE, partner(), tag, comm, MPI_STATUS_IGNORE);
}

static void receive_window(struct worker *worker, MPI_Comm comm, int tag)
{
    worker->used = comm;
    for (long i = 0; i < window; i++)
        MPI_Irecv(worker->memory + (size_t)i * size, (int)size, MPI_BYTE, partner(), tag, comm,
                  &worker->requests[i]);
    MPI_Waitall((int)window, worker->requests, MPI_STATUSES_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, partner(), tag, comm);
}

/* Of a window one message has a mark, another each time. */
static char *marked(const struct worker *worker, long left)
{
    return worker->memory + (size_t)(left % window) * size;
}

static void work(struct worker *worker)
{
    if (task.measure == ONE && worker->number > 0)
        return;
    MPI_Comm comm = task.measure == SHARED ? workers[0].own : worker->own;
    for (long i = 0; i < task.iterations; i++) {
        long left = task.iterations - 1 - i;
        if (is_sender()) {
            struct payload_mark mark = payload_mark(marked(worker, left), size, left);
            send_window(worker, comm, worker->number);
            payload_unmark(mark);
        } else {
            receive_window(worker, comm, worker->number);
            worker->lacking += payload_lacks_mark(marked(worker, left), size, left);
        }
        worker->made++;
    }
}

/* Of all threads but the first. */
static void *follow(void *context)
{
    struct worker *worker = context;
    for (;;) {
        pthread_barrier_wait(&begin);
        if (task.has_ended)
            return NULL;
        work(worker);
        pthread_barrier_wait(&end);
    }
}

/* Payload -------------------------------------------------------------------------------------- */

static void fill(const struct worker *worker)
{
    for (long i = 0; i < window; i++) {
        char *message = worker->memory + (size_t)i * size;
        if (is_sender())
            payload_fill(message, size, bench.rank, message_number(worker, i));
        else
            payload_spoil(message, size, partner(), message_number(worker, i));
    }
}

static void check(const struct worker *worker)
{
    payload_require_marks(worker->lacking, size);
    for (long i = 0; i < window; i++) {
        char *message = worker->memory + (size_t)i * size;
        payload_check(message, size, partner(), message_number(worker, i));
        payload_spoil(message, size, partner(), message_number(worker, i));
    }
}

static long working_threads(void)
{
    return task.measure == ONE ? 1 : thread_count;
}

/* Each thread's own one, or that of the first thread. */
static void check_communicators(void)
{
    for (long i = 1; i < working_threads(); i++) {
        bool is_shared = workers[i].used == workers[0].used;
        if (is_shared != (task.measure == SHARED))
            bench_abort(EXIT_BROKEN, "thread %ld %s the communicator of the first one in %s", i + 1,
                        is_shared ? "used" : "did not use", measure_names[task.measure]);
    }
}

/* An operation is a window of all threads: so many as the slowest has made. */
static void count_windows(void)
{
    long least = workers[0].made;
    for (long i = 0; i < thread_count; i++) {
        bool works = i < working_threads();
        if (!works && workers[i].made > 0)
            bench_abort(EXIT_BROKEN, "thread %ld worked beside the only one", i + 1);
        least = works && workers[i].made < least ? workers[i].made : least;
        workers[i].made = 0;
    }
    sample_operations += least;
}

/* Measuring and reporting ---------------------------------------------------------------------- */

static double batch(void *context, long iterations)
{
    task.measure = *(const enum measure *)context;
    task.iterations = iterations;
    sample_barrier(MPI_COMM_WORLD);
    pthread_barrier_wait(&begin);
    struct sample_instant start = sample_now();
    work(&workers[0]);
    pthread_barrier_wait(&end);
    count_windows();
    double seconds = sample_since(start);
    check_communicators();
    for (long i = 0; !is_sender() && i < working_threads(); i++)
        check(&workers[i]);
    return seconds;
}

static void start_threads(void)
{
    workers = memory_allocate((size_t)thread_count * sizeof *workers);
    pthread_barrier_init(&begin, NULL, (unsigned)thread_count);
    pthread_barrier_init(&end, NULL, (unsigned)thread_count);
    for (int i = 0; i < thread_count; i++) {
        struct worker *worker = &workers[i];
        worker->number = i;
        worker->memory = memory_allocate((size_t)window * size);
        worker->requests = memory_allocate((size_t)window * sizeof *worker->requests);
        MPI_Comm_dup(MPI_COMM_WORLD, &worker->own);
        fill(worker);
    }
    for (int i = 1; i < thread_count; i++)
        if (pthread_create(&workers[i].thread, NULL, follow, &workers[i]) != 0)
            bench_abort(EXIT_BROKEN, "cannot start thread %d of %ld", i + 1, thread_count);
}

static void end_threads(void)
{
    task.has_ended = true;
    pthread_barrier_wait(&begin);
    for (int i = 1; i < thread_count; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&begin);
    pthread_barrier_destroy(&end);
    for (int i = 0; i < thread_count; i++) {
        MPI_Comm_free(&workers[i].own);
        free(workers[i].memory);
        free(workers[i].requests);
    }
    free(workers);
}

static void report(enum measure measure, struct sample *sample)
{
    struct sample_result result = sample_end(sample);
    if (bench.rank != 0)
        return;
    long threads = measure == ONE ? 1 : thread_count;
    double messages = (double)threads * (double)window * (bench.ranks / 2);
    double rate = messages / result.time.best;
    printf("%-14s %8ld", measure_names[measure], threads);
    sample_print(&result, "%12.3f", rate * 1e-6);
    json_object(bench.json, NULL);
    json_string(bench.json, "measure", measure_names[measure]);
    json_integer(bench.json, "threads", threads);
    json_integer(bench.json, "size", (long long)size);
    json_number(bench.json, "rate", rate);
    sample_json(bench.json, &result);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    if (bench.ranks % 2)
        bench_refuse("needs an even number of ranks and has %d: one half sends to the other",
                     bench.ranks);
    if (thread_count > 1 && !thread_multiple)
        bench_refuse("--threads %ld needs --thread-multiple", thread_count);
    memory_require((size_t)(thread_count * window) * size, "use a smaller --window or --size");

    start_threads();
    int measures = thread_count > 1 ? MEASURES : 1;
    struct sample *samples[MEASURES];
    for (int i = 0; i < measures; i++)
        samples[i] = sample_start(plan, SAMPLE_ROUNDS);
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < measures; i++) {
            if (!sample_is_due(samples[i], round))
                continue;
            enum measure measure = i;
            patience_start((double)patience + plan.budget, "messages of %ld threads, %s",
                           i == ONE ? 1 : thread_count, measure_names[i]);
            sample_bout(samples[i], MPI_COMM_WORLD, batch, &measure);
            patience_end();
        }
    end_threads();
    if (bench.rank == 0)
        printf("\n%-14s %8s %12s %12s %12s %8s %8s  %s\n", "measure", "threads", "best us",
               "median us", "M messages/s", "+- %", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int i = 0; i < measures; i++)
        report(i, samples[i]);
    json_end(bench.json);
    return bench_end();
}
