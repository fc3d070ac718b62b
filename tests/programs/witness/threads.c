/* MPI_THREAD_MULTIPLE: threads of 2 ranks that send to each other, with known counts.
 *
 *   threads [race]    race: all threads also write to one variable of the program
 *
 * Each of the threads has a communicator of its own; some they share, on which they have tags of
 * their own. Another reads meanwhile what the witness has counted. */
#include "known.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, SHARED = 8, ROUNDS = 40 };

static MPI_Comm own[THREADS], shared[SHARED];
static pthread_barrier_t at_once;
static MPI_Request posted[THREADS];
static int arrived[THREADS];
static bool race;
static int contended;

/* In its own communicator, in which peer and order are those of the world. */
static void alone(int thread, int round)
{
    int other = 1 - rank, in[8], out[8];
    MPI_Request requests[2];
    fill(out, 8, 10 * thread + rank);
    MPI_Irecv(in, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, own[thread], &requests[0]);
    MPI_Isend(out, 1 + thread, MPI_INT, other, round, own[thread], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(in, 1 + thread, 10 * thread + other, "in an own communicator");
    if (round % 4 == 0) {
        int sum;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, own[thread]);
        check(sum == 1, "MPI_Allreduce");
    }
}

/* In a shared one, of reversed ranks. All threads begin to use it at once. */
static void together(int thread, int round)
{
    MPI_Comm comm = shared[round % SHARED];
    int peer = rank, in[8], out[8]; /* the other one has this one's number there */
    if (round < SHARED)
        pthread_barrier_wait(&at_once);
    fill(out, 8, 10 * thread + rank);
    MPI_Sendrecv(out, 4, MPI_INT, peer, thread, in, 8, MPI_INT, peer, thread, comm,
                 MPI_STATUS_IGNORE);
    expect(in, 4, 10 * thread + 1 - rank, "MPI_Sendrecv in a shared communicator");
    MPI_Send(out, round % 2 ? 8 : 0, MPI_INT, peer, THREADS + thread, comm);
    MPI_Recv(in, 8, MPI_INT, MPI_ANY_SOURCE, THREADS + thread, comm, MPI_STATUS_IGNORE);
    if (round % 2)
        expect(in, 8, 10 * thread + 1 - rank, "a wildcard in a shared communicator");
}

/* Handles come and go while other threads use theirs. */
static void make_and_free(int thread)
{
    int words[6] = { 0 };
    MPI_Comm made;
    MPI_Datatype type;
    MPI_Comm_split(own[thread], 0, -rank, &made);
    MPI_Type_contiguous(1 + thread, MPI_INT, &type);
    MPI_Type_commit(&type);
    /* To the first of reversed ranks, which is rank 1. */
    if (rank == 0)
        MPI_Send(words, 1, type, 0, 1, made);
    else
        MPI_Recv(words, 1, type, 1, 1, made, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Comm_free(&made);
}

static void *work(void *argument)
{
    int thread = *(int *)argument;
    if (race)
        contended++;
    for (int round = 0; round < ROUNDS; round++) {
        alone(thread, round);
        together(thread, round);
        if (round % 8 == 0)
            make_and_free(thread);
    }
    /* What the main thread has posted. */
    MPI_Send(&thread, 1, MPI_INT, 1 - rank, thread, MPI_COMM_WORLD);
    MPI_Wait(&posted[thread], MPI_STATUS_IGNORE);
    check(arrived[thread] == thread, "posted by another thread");
    return NULL;
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle bytes;
static atomic_bool done;

static void watch(void)
{
    const char *name = "assay_pt2pt_bytes";
    MPI_Comm world = MPI_COMM_WORLD;
    int provided, index = -1, count;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    check(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_AGGREGATE, &index) == MPI_SUCCESS, name);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, &world, &bytes, &count);
    MPI_T_pvar_start(session, bytes);
}

static void *read_on(void *nothing)
{
    unsigned long long before = 0, now[2];
    while (!atomic_load(&done)) {
        check(MPI_T_pvar_read(session, bytes, now) == MPI_SUCCESS, "read");
        check(now[rank] == 0 && now[1 - rank] >= before, "bytes so far");
        before = now[1 - rank];
        pause_shortly();
    }
    return nothing;
}

/* As sent by each of them, which have ended. */
static void expect_bytes(void)
{
    unsigned long long now[2], sent = 0;
    for (int thread = 0; thread < THREADS; thread++)
        sent += 4 * ((1 + thread) * ROUNDS + 4 * ROUNDS + 8 * ROUNDS / 2 + 1 +
                     (rank == 0 ? (1 + thread) * ROUNDS / 8 : 0));
    MPI_T_pvar_read(session, bytes, now);
    check(now[1 - rank] == sent, "bytes in the end");
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], reader;
    int provided, numbers[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
    race = argc > 1 && strcmp(argv[1], "race") == 0;
    for (int i = 0; i < SHARED; i++)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &shared[i]);
    pthread_barrier_init(&at_once, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
        MPI_Irecv(&arrived[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1 - rank, i, MPI_COMM_WORLD,
                  &posted[i]);
        numbers[i] = i;
    }
    watch();
    pthread_create(&reader, NULL, read_on, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    expect_bytes();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&own[i]);
    for (int i = 0; i < SHARED; i++)
        MPI_Comm_free(&shared[i]);
    MPI_Finalize();
    return 0;
}
