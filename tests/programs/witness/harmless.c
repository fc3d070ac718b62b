/* What MPIs take, but that is easily broken by who looks at it: each argument names a part. What a part
 * finds goes to stdout, a line "rank R: ..." each, and has to be the same without the witness.
 *
 *     harmless nulls finalize
 *
 * Errors are counted by a handler of the program: it must not hear of any that the witness makes.
 * BY_ITS_NAME_IN_MPI_1: it is set so. */
#define _GNU_SOURCE
#include <fenv.h>
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Open MPI refuses MPI_DATATYPE_NULL, and each rank by itself: then others wait in vain. */
#ifdef OPEN_MPI
#define NO_TYPE MPI_INT
#else
#define NO_TYPE MPI_DATATYPE_NULL
#endif

enum { ROOM = 64 };

static int rank, size, errors;
static int data[ROOM], got[ROOM];
static int zeros[ROOM], ones[ROOM], places[ROOM];
static MPI_Aint far_places[ROOM];
static MPI_Datatype nulls[ROOM], ints[ROOM];

static void say(const char *format, ...)
{
    char text[256];
    int length = snprintf(text, sizeof text, "rank %d: ", rank);
    va_list values;
    va_start(values, format);
    length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, values);
    va_end(values);
    text[length] = '\n';
    ssize_t written = write(STDOUT_FILENO, text, (size_t)length + 1);
    (void)written;
}

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    errors++;
}

/* An MPI may refuse what another takes; whether it does is told. */
static void tell(const char *what, int code)
{
    say("%s: %s, %d errors", what, code == MPI_SUCCESS ? "taken" : "refused", errors);
    errors = 0;
}

static void finish(const char *what, int code, MPI_Request *request)
{
    if (code == MPI_SUCCESS)
        code = MPI_Wait(request, MPI_STATUS_IGNORE);
    tell(what, code);
}

/* Types that are nothing where there is nothing to send, and where they have no meaning. */
static void null_types(void)
{
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD;
    tell("alltoallw of nothing",
         MPI_Alltoallw(data, zeros, places, nulls, got, zeros, places, nulls, world));
    int code =
        MPI_Ialltoallw(data, zeros, places, nulls, got, zeros, places, nulls, world, &request);
    finish("ialltoallw of nothing", code, &request);
    /* Only what goes to rank 0, and what it sends, is something. */
    int to_first[ROOM] = { 1 };
    MPI_Datatype first_int[ROOM];
    memcpy(first_int, nulls, sizeof nulls);
    first_int[0] = MPI_INT;
    tell("alltoallw to one",
         MPI_Alltoallw(data, to_first, places, first_int, got, rank == 0 ? ones : zeros, places,
                       rank == 0 ? ints : nulls, world));
    tell("alltoallw in place",
         MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, got, ones, places, ints, world));
    tell("alltoallv of nothing",
         MPI_Alltoallv(data, zeros, places, NO_TYPE, got, zeros, places, NO_TYPE, world));
    tell("alltoall of nothing", MPI_Alltoall(data, 0, NO_TYPE, got, 0, NO_TYPE, world));
    tell("allgather in place", MPI_Allgather(MPI_IN_PLACE, 0, NO_TYPE, got, 1, MPI_INT, world));
    tell("allgatherv in place",
         MPI_Allgatherv(MPI_IN_PLACE, 0, NO_TYPE, got, ones, places, MPI_INT, world));
    tell("gather in place",
         MPI_Gather(rank == 0 ? MPI_IN_PLACE : data, 1, rank == 0 ? NO_TYPE : MPI_INT, got, 1,
                    rank == 0 ? MPI_INT : NO_TYPE, 0, world));
    tell("scatter in place",
         MPI_Scatter(data, 1, rank == 0 ? MPI_INT : NO_TYPE, rank == 0 ? MPI_IN_PLACE : got, 1,
                     rank == 0 ? NO_TYPE : MPI_INT, 0, world));
    tell("reduce in place",
         MPI_Reduce(rank == 0 ? MPI_IN_PLACE : data, got, 1, MPI_INT, MPI_SUM, 0, world));
}

/* Messages to nobody. */
static void nobody(void)
{
    MPI_Request request;
    MPI_Status status;
    MPI_Win window;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    tell("send", MPI_Send(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, world));
    tell("receive", MPI_Recv(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, world, &status));
    finish("isend", MPI_Isend(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, world, &request), &request);
    finish("irecv", MPI_Irecv(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, world, &request), &request);
    tell("sendrecv", MPI_Sendrecv(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, NULL, 0, NO_TYPE,
                                  MPI_PROC_NULL, 1, world, &status));
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    tell("nothing to the next",
         MPI_Sendrecv(NULL, 0, MPI_INT, next, 1, NULL, 0, MPI_INT, before, 1, world, &status));
    int code = MPI_Send_init(NULL, 0, NO_TYPE, MPI_PROC_NULL, 1, world, &request);
    tell("send_init", code);
    if (code == MPI_SUCCESS) {
        tell("start", MPI_Start(&request));
        tell("wait", MPI_Wait(&request, &status));
        tell("free", MPI_Request_free(&request));
    }
    code = MPI_Mprobe(MPI_PROC_NULL, 1, world, &message, &status);
    tell("mprobe", code);
    if (code == MPI_SUCCESS)
        tell("mrecv", MPI_Mrecv(NULL, 0, NO_TYPE, &message, &status));
#ifndef OPEN_MPI /* which ends the program here */
    message = MPI_MESSAGE_NULL;
    tell("mrecv of no message", MPI_Mrecv(data, 1, NO_TYPE, &message, &status));
#endif
    MPI_Win_create(data, sizeof data, sizeof *data, MPI_INFO_NULL, world, &window);
    MPI_Win_fence(0, window);
    tell("put", MPI_Put(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, window));
    tell("get", MPI_Get(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, window));
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* Neighbours that are not there, of which the types are nothing. */
static void neighbours(void)
{
    int extent = size, open = 0;
    MPI_Comm line;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &open, 0, &line);
    MPI_Datatype types[2] = { rank > 0 ? MPI_INT : NO_TYPE, rank < size - 1 ? MPI_INT : NO_TYPE };
    int counts[2] = { rank > 0, rank < size - 1 };
    tell("neighbours", MPI_Neighbor_alltoallw(data, counts, far_places, types, got, counts,
                                              far_places, types, line));
    finish("neighbours",
           MPI_Ineighbor_alltoallw(data, counts, far_places, types, got, counts, far_places, types,
                                   line, &request),
           &request);
    MPI_Comm_free(&line);
}

/* One rank on one side, the others on the other. */
static void sides(void)
{
    MPI_Comm side, both;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 5, &both);
    int *counts = malloc((size_t)(rank > 0 ? size - 1 : 1) * sizeof *counts);
    for (int i = 0; counts && i < (rank > 0 ? size - 1 : 1); i++)
        counts[i] = rank > 0 ? 1 : size - 1;
    tell("reduce_scatter", MPI_Reduce_scatter(data, got, counts, MPI_INT, MPI_SUM, both));
    free(counts);
    tell("reduce_scatter_block",
         MPI_Reduce_scatter_block(data, got, rank > 0 ? 1 : size - 1, MPI_INT, MPI_SUM, both));
    int root = rank > 0 ? 0 : MPI_ROOT;
    tell("bcast", MPI_Bcast(data, 1, MPI_INT, root, both));
    tell("gather", MPI_Gather(data, 1, rank > 0 ? MPI_INT : NO_TYPE, got, 1,
                              rank > 0 ? NO_TYPE : MPI_INT, root, both));
    root = rank == 0 ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
    tell("bcast from one of many",
         MPI_Bcast(data, rank < 2 ? 1 : 0, rank < 2 ? MPI_INT : NO_TYPE, root, both));
    tell("allgather", MPI_Allgather(data, 1, MPI_INT, got, 1, MPI_INT, both));
    finish("ibarrier", MPI_Ibarrier(both, &request), &request);
    tell("alltoallw", MPI_Alltoallw(data, zeros, places, nulls, got, zeros, places, nulls, both));
    /* All ranks of the many send to the one, and this one to the first of them. */
    MPI_Sendrecv(data, 1, MPI_INT, 0, 1, got, 1, MPI_INT, MPI_PROC_NULL, 1, both,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < (rank == 0 ? size - 1 : rank == 1); i++)
        MPI_Recv(got, 1, MPI_INT, MPI_ANY_SOURCE, 1, both, MPI_STATUS_IGNORE);
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
}

/* Calls with handles that are none, and with what has been freed. */
static void wrong(void)
{
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    tell("uncommitted", MPI_Send(data, 1, pair, 0, 1, MPI_COMM_WORLD));
    MPI_Type_free(&pair);
    tell("no communicator", MPI_Send(data, 1, MPI_INT, 0, 1, none));
    tell("receive in none", MPI_Recv(data, 1, MPI_INT, 0, 1, none, MPI_STATUS_IGNORE));
    tell("barrier in none", MPI_Barrier(none));
    tell("dup of none", MPI_Comm_dup(none, &none));
    tell("free none", MPI_Comm_free(&none));
    tell("free no request", MPI_Request_free(&request));
    tell("no such rank", MPI_Recv(data, 1, MPI_INT, size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    tell("no such root", MPI_Bcast(data, 1, MPI_INT, size, MPI_COMM_WORLD));
}

/* With what was freed: where the handler returns, MPICH returns success all the same. */
static void freed(void)
{
#ifndef OPEN_MPI /* which looks into it */
    MPI_Comm copy, made;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    made = copy;
    MPI_Comm_free(&copy);
    tell("send in a freed one", MPI_Send(data, 1, MPI_INT, 0, 1, made));
    tell("barrier in a freed one", MPI_Barrier(made));
    copy = made;
    tell("dup of a freed one", MPI_Comm_dup(made, &copy));
#endif
}

/* The root has less room than comes, in the only collective. */
static void truncated(void)
{
    tell("gather",
         MPI_Gather(data, 8, MPI_INT, got, rank == 0 ? 2 : 8, MPI_INT, 0, MPI_COMM_WORLD));
}

/* MPI says that all have to free it; it waits for none of them. */
static void one_frees(void)
{
    MPI_Comm copy;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy);
    if (rank == 0)
        MPI_Comm_free(&copy);
    say("sum %d", sum);
}

/* More communicators than anything should remember for each; rank 0 frees them in another order. */
static void communicators(void)
{
    enum { ROUNDS = 20, AT_ONCE = 10 };
    MPI_Comm made[AT_ONCE];
    int sum = 0, all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            MPI_Comm_dup(i ? made[i - 1] : MPI_COMM_WORLD, &made[i]);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made[round % AT_ONCE]);
        all += sum;
        for (int i = 0; i < AT_ONCE; i++)
            MPI_Comm_free(&made[rank == 0 ? AT_ONCE - 1 - i : i]);
    }
    say("sums %d", all);
}

/* A receive that never gets its message; then messages as before. */
static void cancelled(void)
{
    MPI_Request requests[1];
    MPI_Status status;
    int flag, next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int source = MPI_ANY_SOURCE, i = 0; i < 2; i++, source = before) {
        MPI_Irecv(got, 1, MPI_INT, source, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], &status);
        MPI_Test_cancelled(&status, &flag);
        say("cancelled %d", flag);
    }
    MPI_Irecv(got, 1, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Request_free(&requests[0]);
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, next, 8, got, 1, MPI_INT, before, 8, MPI_COMM_WORLD, &status);
    say("got %d", *got);
}

/* One of two receives has no room for what comes. */
static void failed_waits(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int next = (rank + 1) % size, before = (rank + size - 1) % size, class;
    MPI_Irecv(got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(got, 8, MPI_INT, before, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(data, 8, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(data, 8, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[3]);
    int code = MPI_Waitall(4, requests, statuses);
    MPI_Error_class(code, &class);
    say("in a status: %d, %d errors", class == MPI_ERR_IN_STATUS, errors);
    errors = 0;
    for (int i = 0; i < 10; i++) {
        MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&i, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
    }
    say("got %d", *got);
}

/* As before, but the statuses are ignored; the one that comes last has an open source. */
static void ignored_statuses(void)
{
    MPI_Request requests[4];
    int next = (rank + 1) % size, before = (rank + size - 1) % size, class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(got, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(got, 8, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++)
        MPI_Isend(data, 8, MPI_INT, next, 4 + i, MPI_COMM_WORLD, &requests[2 + i]);
    MPI_Barrier(MPI_COMM_WORLD);
    int code = MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Error_class(code, &class);
    say("class %d", class);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* those that were not done at the error */
}

/* Threads that come, send one message to this rank itself, and go. */
static void *one_message(void *number)
{
    int sent = (int)(size_t)number, received = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, rank, 3, &received, 1, MPI_INT, rank, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return (void *)(size_t)received;
}

static void short_threads(void)
{
    enum { THREADS = 2000 };
    size_t sum = 0;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, one_message, (void *)i);
        pthread_join(thread, &result);
        sum += (size_t)result;
    }
    say("sum %zu", sum);
}

/* Threads that make persistent requests and free them, so that one gets the handle that another has
 * just let go of. Each message is 4 bytes to the rank itself. */
enum { FREERS = 4, FREED = 2000 };

static void *make_and_free(void *number)
{
    int tag = 10 + (int)(size_t)number, sent = tag, received;
    for (int i = 0; i < FREED; i++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Recv_init(&received, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(&sent, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    return NULL;
}

/* The same with types, which another thread's may have been. */
static void *make_types(void *number)
{
    int length = 1 + (int)(size_t)number % 2, sent[2] = { 0 }, received[2];
    for (int i = 0; i < FREED; i++) {
        MPI_Datatype type;
        MPI_Type_contiguous(length, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Sendrecv(sent, 1, type, rank, 20 + (int)(size_t)number, received, 1, type, rank,
                     20 + (int)(size_t)number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
    return NULL;
}

static void together(void *(*work)(void *))
{
    pthread_t threads[FREERS];
    for (size_t i = 0; i < FREERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < FREERS; i++)
        pthread_join(threads[i], NULL);
}

static void requests_freed(void)
{
    together(make_and_free);
}

static void types_freed(void)
{
    together(make_types);
}

/* A handler of MPI's own, which may not be freed, beside one of the program. */
static void aborting(void)
{
#ifdef MPI_ERRORS_ABORT
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT);
#endif
    null_types();
}

static void tell_data(void)
{
    say("%ld bytes of data", (long)lseek(STDERR_FILENO, 0, SEEK_END));
}

/* Where standard error was closed the next file gets its number: what is said to the end goes there. */
static void data_file(void)
{
    char name[] = "data-XXXXXX";
    close(STDERR_FILENO);
    say("file %d", mkstemp(name));
    unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    atexit(tell_data);
}

/* No file of the rank may grow, and a write that would make one grow ends it. */
static void no_room(void)
{
    struct rlimit none = { 0 };
    getrlimit(RLIMIT_FSIZE, &none);
    none.rlim_cur = 0;
    say("limited %d", setrlimit(RLIMIT_FSIZE, &none));
}

/* The first sum that is not exact ends the rank. */
static void traps(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    say("traps %d", feenableexcept(FE_ALL_EXCEPT));
}

static void tool(void)
{
    int level, variables = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_cvar_get_num(&variables);
    say("some variables: %d", variables > 0);
    say("finalized: %d", MPI_T_finalize() == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        { "null-types", null_types },
        { "nobody", nobody },
        { "neighbours", neighbours },
        { "sides", sides },
        { "wrong", wrong },
        { "truncated", truncated },
        { "one-frees", one_frees },
        { "communicators", communicators },
        { "cancelled", cancelled },
        { "failed-waits", failed_waits },
        { "ignored-statuses", ignored_statuses },
        { "freed", freed },
        { "short-threads", short_threads },
        { "requests-freed", requests_freed },
        { "types-freed", types_freed },
        { "aborting", aborting },
        { "data-file", data_file },
        { "no-room", no_room },
        { "traps", traps },
        { "tool", tool },
    };
    int provided;
    MPI_Errhandler counts;
    bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_errhandler(count_error, &counts);
#ifdef BY_ITS_NAME_IN_MPI_1
    MPI_Errhandler_set(MPI_COMM_WORLD, counts);
    MPI_Errhandler_set(MPI_COMM_SELF, counts);
#else
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counts);
#endif
    for (int i = 0; i < ROOM; i++) {
        ones[i] = 1;
        nulls[i] = NO_TYPE;
        ints[i] = MPI_INT;
    }
    for (int i = threads ? 2 : 1; i < argc; i++) {
        size_t known = 0;
        while (known < sizeof parts / sizeof *parts && strcmp(parts[known].name, argv[i]) != 0)
            known++;
        if (known == sizeof parts / sizeof *parts)
            return fprintf(stderr, "no part %s\n", argv[i]), 99;
        parts[known].run();
    }
    MPI_Finalize();
    say("finalized");
    return 0;
}
