/* One-sided communication with known counts, among 4 ranks. */
#include "known.h"

static int out[ROOM], in[ROOM], memory[ROOM];
static int next, last;

static MPI_Win window_on(MPI_Comm comm)
{
    MPI_Win window;
    memset(memory, 0, sizeof memory);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, comm, &window);
    next = (rank + 1) % size;
    last = (rank + size - 1) % size;
    fill(out, ROOM, rank);
    return window;
}

static void fence(void)
{
    MPI_Win window = window_on(MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    MPI_Put(out, 5, MPI_INT, next, 0, 5, MPI_INT, window);
    MPI_Put(out, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, window);
    MPI_Put(out, 0, MPI_INT, next, 0, 0, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(memory, 5, last, "MPI_Put");
    MPI_Get(in, 3, MPI_INT, next, 1, 3, MPI_INT, window);
    MPI_Get(in, 3, MPI_INT, MPI_PROC_NULL, 1, 3, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(in[2] == 1000 * rank + 3, "MPI_Get");
    MPI_Accumulate(out, 4, MPI_INT, 0, 10, 4, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    check(rank > 0 || memory[12] == 6000 + 8, "MPI_Accumulate");
    MPI_Put(out, 2, MPI_INT, rank, 20, 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(memory + 20, 2, rank, "MPI_Put to itself");
    MPI_Win_free(&window);
}

static void lock(void)
{
    MPI_Win window = window_on(MPI_COMM_WORLD);
    MPI_Request request;
    int one = 1, old, zero = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
    MPI_Rput(out, 6, MPI_INT, next, 0, 6, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(next, window);
    MPI_Rget(in, 6, MPI_INT, next, 0, 6, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(in, 6, rank, "MPI_Rget");
    MPI_Win_flush_local(next, window);
    MPI_Win_unlock(next, window);
    MPI_Win_lock_all(0, window);
    MPI_Get_accumulate(out, 2, MPI_INT, in, 2, MPI_INT, next, 30, 2, MPI_INT, MPI_REPLACE, window);
    MPI_Win_flush_all(window);
    check(in[0] == 0, "MPI_Get_accumulate");
    MPI_Fetch_and_op(&one, &old, MPI_INT, 3, 40, MPI_SUM, window);
    MPI_Win_flush_local_all(window);
    MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, next, 41, window);
    MPI_Raccumulate(out, 3, MPI_INT, next, 50, 3, MPI_INT, MPI_SUM, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(out, 1, MPI_INT, in, 1, MPI_INT, next, 55, 1, MPI_INT, MPI_SUM, window,
                        &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    check(rank != 3 || memory[40] == 4, "MPI_Fetch_and_op");
    check(memory[41] == 1, "MPI_Compare_and_swap");
    MPI_Fetch_and_op(&one, &old, MPI_INT, rank, 41, MPI_NO_OP, window); /* a get */
    MPI_Get_accumulate(out, 2, MPI_INT, in, 2, MPI_INT, rank, 40, 2, MPI_INT, MPI_NO_OP, window);
    MPI_Win_unlock(rank, window);
    check(old == 1 && in[1] == 1, "MPI_NO_OP");
    MPI_Win_free(&window);
}

/* Each posts for the last rank and starts to the next. */
static void post(void)
{
    MPI_Win window = window_on(MPI_COMM_WORLD);
    MPI_Group all, before, after;
    int flag = 0;
    long calls = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &last, &before);
    MPI_Group_incl(all, 1, &next, &after);
    MPI_Win_post(before, 0, window);
    MPI_Win_start(after, 0, window);
    MPI_Put(out, 7, MPI_INT, next, 0, 7, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    expect(memory, 7, last, "MPI_Win_post");
    MPI_Win_post(before, 0, window);
    MPI_Win_start(after, 0, window);
    MPI_Put(out, 8, MPI_INT, next, 0, 8, MPI_INT, window);
    MPI_Win_complete(window);
    for (; !flag; calls++) {
        pause_shortly();
        MPI_Win_test(window, &flag);
    }
    tell("MPI_Win_test", calls);
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
}

/* On reversed ranks, in a communicator that is freed before its windows; thrice, so that handles
 * come again. */
static void orphan(void)
{
    for (int i = 0; i < 3; i++) {
        MPI_Comm reversed, other;
        int *shared;
        MPI_Win window, allocated;
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
        window = window_on(reversed);
        MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, reversed, &shared,
                         &allocated);
        MPI_Comm_free(&reversed);
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
        MPI_Win_fence(0, window);
        MPI_Put(out, 3, MPI_INT, size - 1 - next, 0, 3, MPI_INT, window);
        MPI_Win_fence(0, window);
        expect(memory, 3, last, "MPI_Put in an orphan");
        MPI_Win_free(&window);
        MPI_Win_fence(0, allocated);
        MPI_Put(out, 1, MPI_INT, size - 1 - last, 0, 1, MPI_INT, allocated);
        MPI_Win_fence(0, allocated);
        check(shared[0] == 1000 * next, "MPI_Put in an allocated orphan");
        MPI_Win_free(&allocated);
        MPI_Comm_free(&other);
    }
}

/* Other ways to a window. */
static void windows(void)
{
    MPI_Win window;
    int *shared;
    MPI_Aint addresses[4], address;
    MPI_Win own = window_on(MPI_COMM_SELF);
    MPI_Win_free(&own);
    MPI_Win_allocate_shared(8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &shared,
                            &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, 8, MPI_INT, next, 0, 8, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(shared, 8, last, "MPI_Win_allocate_shared");
    MPI_Win_free(&window);

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, sizeof memory);
    MPI_Get_address(memory, &address);
    MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    MPI_Put(out, 9, MPI_INT, next, addresses[next], 9, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(memory, 9, last, "MPI_Win_create_dynamic");
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        { "fence", fence },   { "lock", lock },       { "post", post },
        { "orphan", orphan }, { "windows", windows }, { NULL, NULL },
    };
    return run_parts(argc, argv, parts);
}
