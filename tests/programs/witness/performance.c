/* The witness's performance variables, as a program uses them: what it sent is known. */
#include "known.h"

#include <limits.h>

enum { VARIABLES = 6, MOST_RANKS = 16 };

static const char *const names[VARIABLES] = {
    "assay_pt2pt_messages",    "assay_pt2pt_bytes",        "assay_collectives_messages",
    "assay_collectives_bytes", "assay_one_sided_messages", "assay_one_sided_bytes",
};
enum { MESSAGES, BYTES, COLLECTIVES, COLLECTIVES_BYTES, PUTS, PUTS_BYTES };

typedef unsigned long long values[MOST_RANKS];

static MPI_T_pvar_session new_session(void)
{
    MPI_T_pvar_session session;
    check(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "a session");
    return session;
}

static int index_of(int variable)
{
    int index = -1, class = variable % 2 ? MPI_T_PVAR_CLASS_AGGREGATE : MPI_T_PVAR_CLASS_COUNTER;
    check(MPI_T_pvar_get_index(names[variable], class, &index) == MPI_SUCCESS, names[variable]);
    return index;
}

static MPI_T_pvar_handle new_handle(MPI_T_pvar_session session, int variable, MPI_Comm comm)
{
    MPI_T_pvar_handle handle;
    int count, ranks, inter;
    MPI_Comm_test_inter(comm, &inter);
    inter ? MPI_Comm_remote_size(comm, &ranks) : MPI_Comm_size(comm, &ranks);
    check(MPI_T_pvar_handle_alloc(session, index_of(variable), &comm, &handle, &count) ==
              MPI_SUCCESS,
          "a handle");
    check(count == ranks, "a value for each rank");
    return handle;
}

/* A value for `to`, and none for the other ranks. */
static void expect_sent(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int to,
                        unsigned long long value, const char *what)
{
    values found;
    memset(found, 0xff, sizeof found);
    check(MPI_T_pvar_read(session, handle, found) == MPI_SUCCESS, what);
    for (int i = 0; i < MOST_RANKS && found[i] != ULLONG_MAX; i++)
        check(found[i] == (i == to ? value : 0), what);
}

static void send_after(int times, int bytes)
{
    static char in[1000], out[1000];
    for (int i = 0; i < times; i++)
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % size, 0, in, bytes, MPI_CHAR,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All that there are, as a tool lists them. */
static void list(void)
{
    int of_mpi, all, seen = 0;
    PMPI_T_pvar_get_num(&of_mpi);
    MPI_T_pvar_get_num(&all);
    check(all == of_mpi + VARIABLES, "number of variables");
    for (int index = 0; index < all; index++) {
        char name[512], meaning[4096];
        int length = sizeof name, meaning_length = sizeof meaning, level, class, object, readonly,
            continuous, atomic, back = -1;
        MPI_Datatype type;
        MPI_T_enum values;
        int code = MPI_T_pvar_get_info(index, name, &length, &level, &class, &type, &values,
                                       meaning, &meaning_length, &object, &readonly, &continuous,
                                       &atomic);
        if (code != MPI_SUCCESS || index < of_mpi)
            continue; /* some of an MPI's are gone again */
        const char *own = names[seen++];
        check(strcmp(name, own) == 0 && length == (int)strlen(own) + 1, own);
        check(meaning_length == (int)strlen(meaning) + 1 && meaning_length > 20, "meaning");
        check(type == MPI_UNSIGNED_LONG_LONG && object == MPI_T_BIND_MPI_COMM, "type and object");
        check(!readonly && !continuous && atomic, "what can be done with it");
        check(MPI_T_pvar_get_index(own, class, &back) == MPI_SUCCESS && back == index, "index");
        /* Lengths alone, then a name that is cut off. */
        length = 0;
        MPI_T_pvar_get_info(index, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL);
        check(length == (int)strlen(own) + 1, "length of a name");
        length = 6;
        memset(name, 'x', sizeof name);
        MPI_T_pvar_get_info(index, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL);
        check(strcmp(name, "assay") == 0 && name[6] == 'x', "a name that is cut off");
    }
    check(seen == VARIABLES, "variables of the witness");
}

/* Through other communicators, and bound to others. */
static void communicators(void)
{
    MPI_T_pvar_session session = new_session();
    MPI_Comm reversed, half, across, none = MPI_COMM_NULL;
    int to = (rank + 1) % size, ranks;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &across);
    MPI_Comm_size(half, &ranks);
    MPI_T_pvar_handle world = new_handle(session, BYTES, MPI_COMM_WORLD),
                      back = new_handle(session, BYTES, reversed),
                      side = new_handle(session, BYTES, half),
                      other = new_handle(session, MESSAGES, across), never;
    MPI_Comm_free(&half);
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
    send_after(1, 100);
    int reversed_to = size - 1 - to, from = (rank + size - 1) % size, out = 1, in;
    MPI_Sendrecv(&out, 1, MPI_INT, reversed_to, 1, &in, 1, MPI_INT, size - 1 - from, 1, reversed,
                 MPI_STATUS_IGNORE);
    expect_sent(session, world, to, 104, "bytes in all communicators");
    expect_sent(session, back, reversed_to, 104, "bytes by ranks of another communicator");
    expect_sent(session, side, -1, 0, "bytes to others than its ranks");
    expect_sent(session, other, to / 2, 2, "messages to the other group");
    check(MPI_T_pvar_handle_alloc(session, index_of(0), &none, &never, &ranks) == MPI_T_ERR_INVALID,
          "MPI_COMM_NULL");
    MPI_T_pvar_session_free(&session);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&across);
}

static void kinds(void)
{
    MPI_T_pvar_session session = new_session();
    MPI_T_pvar_handle all[VARIABLES];
    values found[VARIABLES] = { 0 };
    int to = (rank + 1) % size, *base, word = 1, words[MOST_RANKS], sum;
    MPI_Win window;
    MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    for (int i = 0; i < VARIABLES; i++)
        all[i] = new_handle(session, i, MPI_COMM_WORLD);
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
    send_after(3, 10);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(words, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(&word, 1, MPI_INT, words, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    MPI_Put(&word, 1, MPI_INT, to, 0, 1, MPI_INT, window);
    MPI_Accumulate(&word, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < VARIABLES; i++)
        MPI_T_pvar_read(session, all[i], found[i]);
    for (int i = 0; i < size; i++) {
        unsigned messages = i == to ? 3 : 0, puts = i == to ? 2 : 0;
        unsigned sums = i != rank, broadcasts = rank == 0 && i != 0, gathers = rank != 1 && i == 1;
        check(found[MESSAGES][i] == messages && found[BYTES][i] == 10 * messages, "messages");
        check(found[COLLECTIVES][i] == sums + broadcasts + gathers, "collectives");
        check(found[COLLECTIVES_BYTES][i] == 4 * sums + 8 * broadcasts + 4 * gathers,
              "bytes of collectives");
        check(found[PUTS][i] == puts && found[PUTS_BYTES][i] == 4 * puts, "puts");
    }
    MPI_T_pvar_session_free(&session);
    MPI_Win_free(&window);
}

static void switched(void)
{
    MPI_T_pvar_session session = new_session();
    MPI_T_pvar_handle handle = new_handle(session, MESSAGES, MPI_COMM_WORLD);
    int to = (rank + 1) % size;
    values found;
    send_after(1, 1);
    expect_sent(session, handle, to, 0, "before it is started");
    MPI_T_pvar_start(session, handle);
    send_after(2, 1);
    MPI_T_pvar_start(session, handle);
    expect_sent(session, handle, to, 2, "started");
    MPI_T_pvar_stop(session, handle);
    send_after(4, 1);
    MPI_T_pvar_stop(session, handle);
    expect_sent(session, handle, to, 2, "stopped");
    MPI_T_pvar_start(session, handle);
    send_after(8, 1);
    expect_sent(session, handle, to, 10, "started again");
    MPI_T_pvar_reset(session, handle);
    expect_sent(session, handle, to, 0, "reset");
    send_after(16, 1);
    check(MPI_T_pvar_readreset(session, handle, found) == MPI_SUCCESS && found[to] == 16,
          "read and reset");
    expect_sent(session, handle, to, 0, "read and reset");
    found[to] = 100;
    check(MPI_T_pvar_write(session, handle, found) == MPI_SUCCESS, "written");
    send_after(1, 1);
    expect_sent(session, handle, to, 101, "written");
    MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES);
    send_after(1, 1);
    MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES);
    expect_sent(session, handle, to, 0, "reset where it is stopped");
    check(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS, "freed");
    check(handle == MPI_T_PVAR_HANDLE_NULL, "freed");
    MPI_T_pvar_session_free(&session);
}

static void sessions(void)
{
    MPI_T_pvar_session one = new_session(), two = new_session();
    MPI_T_pvar_handle of_one = new_handle(one, MESSAGES, MPI_COMM_WORLD),
                      of_two = new_handle(two, MESSAGES, MPI_COMM_WORLD);
    int to = (rank + 1) % size;
    MPI_T_pvar_start(one, MPI_T_PVAR_ALL_HANDLES);
    send_after(1, 1);
    expect_sent(two, of_two, to, 0, "of a session that has started none");
    MPI_T_pvar_start(two, of_two);
    send_after(1, 1);
    MPI_T_pvar_reset(one, of_one);
    send_after(1, 1);
    expect_sent(one, of_one, to, 1, "of a session that has reset it");
    expect_sent(two, of_two, to, 2, "of a session that has not reset it");
    MPI_T_pvar_session_free(&one);
    expect_sent(two, of_two, to, 2, "after the other session was freed");
    MPI_T_pvar_session_free(&two);
}

static void expect_invalid(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    values found = { 0 };
    check(MPI_T_pvar_start(session, handle) == MPI_T_ERR_INVALID_HANDLE, "start");
    check(MPI_T_pvar_stop(session, handle) == MPI_T_ERR_INVALID_HANDLE, "stop");
    check(MPI_T_pvar_read(session, handle, found) == MPI_T_ERR_INVALID_HANDLE, "read");
    check(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_INVALID_HANDLE, "reset");
    check(MPI_T_pvar_readreset(session, handle, found) == MPI_T_ERR_INVALID_HANDLE, "readreset");
    check(MPI_T_pvar_write(session, handle, found) == MPI_T_ERR_INVALID_HANDLE, "write");
    check(MPI_T_pvar_handle_free(session, &handle) == MPI_T_ERR_INVALID_HANDLE, "handle_free");
}

static void wrong(void)
{
    MPI_T_pvar_session session = new_session(), other = new_session(), freed = new_session();
    MPI_T_pvar_handle handle = new_handle(session, BYTES, MPI_COMM_WORLD), kept = handle;
    MPI_T_pvar_handle in_freed = new_handle(freed, BYTES, MPI_COMM_WORLD), never;
    MPI_T_pvar_session stale = freed;
    MPI_Comm comm = MPI_COMM_WORLD;
    int index = index_of(0), count;
    expect_invalid(other, handle);
    MPI_T_pvar_session_free(&freed);
    expect_invalid(stale, in_freed);
    check(MPI_T_pvar_handle_alloc(stale, index, &comm, &never, &count) == MPI_T_ERR_INVALID_SESSION,
          "a session that was freed");
    MPI_T_pvar_handle_free(session, &handle);
    expect_invalid(session, kept);
    check(MPI_T_pvar_handle_alloc(session, index, NULL, &never, &count) == MPI_T_ERR_INVALID,
          "no object");
    check(MPI_T_pvar_get_index(names[BYTES], MPI_T_PVAR_CLASS_TIMER, &count) ==
              MPI_T_ERR_INVALID_NAME,
          "a name of another class");
    MPI_T_pvar_session_free(&other);
    MPI_T_pvar_session_free(&session);
}

/* The MPI's own, which the witness passes on. */
static void of_the_mpi(void)
{
    MPI_T_pvar_session session = new_session();
    int all;
    PMPI_T_pvar_get_num(&all);
    for (int index = 0; index < all; index++) {
        char name[2][512] = { "", "" };
        int length[2] = { 512, 512 }, class[2] = { 0, 0 }, object = -1, continuous;
        MPI_Datatype type;
        int code = PMPI_T_pvar_get_info(index, name[0], &length[0], NULL, &class[0], NULL, NULL,
                                        NULL, NULL, NULL, NULL, NULL, NULL);
        check(MPI_T_pvar_get_info(index, name[1], &length[1], NULL, &class[1], &type, NULL, NULL,
                                  NULL, &object, NULL, &continuous, NULL) == code,
              "code of an MPI's variable");
        check(strcmp(name[0], name[1]) == 0 && length[0] == length[1] && class[0] == class[1],
              "an MPI's variable");
        if (code != MPI_SUCCESS || object != MPI_T_BIND_NO_OBJECT)
            continue;
        MPI_T_pvar_handle handle;
        int count;
        if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
            continue;
        check(continuous || MPI_T_pvar_start(session, handle) == MPI_SUCCESS, "start");
        check(continuous || MPI_T_pvar_stop(session, handle) == MPI_SUCCESS, "stop");
        check(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS, "free");
    }
    MPI_T_pvar_session_free(&session);
}

/* A category lists the MPI's own by the names that they have. */
static void categories(void)
{
    int all;
    MPI_T_category_get_num(&all);
    for (int category = 0; category < all; category++) {
        int inside[64], outside[64], count = 0;
        MPI_T_category_get_info(category, NULL, NULL, NULL, NULL, NULL, &count, NULL);
        count = count < 64 ? count : 64;
        int code = PMPI_T_category_get_pvars(category, count, inside);
        check(MPI_T_category_get_pvars(category, count, outside) == code, "code of a category");
        for (int i = 0; code == MPI_SUCCESS && i < count; i++) {
            char name[2][512] = { "", "" };
            int length[2] = { 512, 512 };
            PMPI_T_pvar_get_info(inside[i], name[0], &length[0], NULL, NULL, NULL, NULL, NULL, NULL,
                                 NULL, NULL, NULL, NULL);
            MPI_T_pvar_get_info(outside[i], name[1], &length[1], NULL, NULL, NULL, NULL, NULL, NULL,
                                NULL, NULL, NULL, NULL);
            check(strcmp(name[0], name[1]) == 0, "a category's variable");
        }
    }
}

/* Not behind MPI_Finalize: Open MPI 4.1 crashes there once its own variables had handles. */
static void end(void)
{
    check(MPI_T_finalize() == MPI_SUCCESS, "MPI_T_finalize");
}

static const struct part parts[] = {
    { "list", list },         { "communicators", communicators }, { "kinds", kinds },
    { "switched", switched }, { "sessions", sessions },           { "wrong", wrong },
    { "mpi", of_the_mpi },    { "categories", categories },       { "end", end },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    int provided, index;
    check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread");
    if (MPI_T_pvar_get_index(names[0], MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_T_ERR_INVALID_NAME)
        return 4; /* before MPI_Init */
    return run_parts(argc, argv, parts);
}
