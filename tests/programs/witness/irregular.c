/* Messages without a pattern, on several communicators, counted by Open MPI's own monitoring as
 * well. Each rank tells a line for each rank that it sent to, as Open MPI has it:
 * "RANK TO MESSAGES BYTES". With "both" the witness's own variables have to have the same. With "stop"
 * it stops counting, with "flush" it clears the counters.
 *
 * Monitoring counts the witness's own messages in MPI_Init and MPI_Finalize, too: so its counters
 * are read after the one and before the other. */
#include "known.h"

enum { STEPS = 400, LONGEST = 100000, COMMS = 4, MOST_RANKS = 16 };

static MPI_Comm comms[COMMS];

struct counters {
    unsigned long long messages[MOST_RANKS], bytes[MOST_RANKS];
};

static MPI_T_pvar_handle handle_of(MPI_T_pvar_session session, const char *name, int class)
{
    MPI_T_pvar_handle handle;
    MPI_Comm world = MPI_COMM_WORLD;
    int index, elements;
    check(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS, name);
    MPI_T_pvar_handle_alloc(session, index, &world, &handle, &elements);
    check(elements == size, "elements of a variable");
    check(MPI_T_pvar_start(session, handle) == MPI_SUCCESS, "start of a variable");
    return handle;
}

static void clear_counters(MPI_T_pvar_session session)
{
    MPI_T_pvar_handle handle;
    int index, elements;
    check(MPI_T_pvar_get_index("pml_monitoring_flush", MPI_T_PVAR_CLASS_GENERIC, &index) ==
              MPI_SUCCESS,
          "index of pml_monitoring_flush");
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements);
}

static struct counters read_counters(MPI_T_pvar_session session, MPI_T_pvar_handle messages,
                                     MPI_T_pvar_handle bytes)
{
    struct counters counters;
    check(MPI_T_pvar_read(session, messages, counters.messages) == MPI_SUCCESS, "messages");
    check(MPI_T_pvar_read(session, bytes, counters.bytes) == MPI_SUCCESS, "bytes");
    return counters;
}

/* The same on all ranks. */
static unsigned chance(unsigned below)
{
    static unsigned long long state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

struct step {
    MPI_Comm comm;
    int from, to, length, kind; /* ranks in comm */
};

static struct step choose(void)
{
    struct step step = { .comm = comms[chance(COMMS)], .kind = (int)chance(4) };
    int ranks;
    MPI_Comm_size(step.comm, &ranks);
    step.from = (int)chance((unsigned)ranks);
    step.to = (int)chance((unsigned)ranks);
    step.length = chance(8) ? (int)chance(2u << chance(12)) : (int)chance(LONGEST);
    return step;
}

static void take_part(const struct step *steps)
{
    static char in[STEPS][LONGEST], out[LONGEST];
    MPI_Request requests[2 * STEPS];
    int count = 0, own;
    memset(out, 'x', sizeof out);
    for (int i = 0; i < STEPS; i++) {
        MPI_Comm_rank(steps[i].comm, &own);
        if (own == steps[i].to)
            MPI_Irecv(in[i], LONGEST, MPI_CHAR, steps[i].from, i, steps[i].comm,
                      &requests[count++]);
    }
    for (int i = 0; i < STEPS; i++) {
        const struct step *step = &steps[i];
        MPI_Comm_rank(step->comm, &own);
        if (own != step->from)
            continue;
        if (step->kind == 0)
            MPI_Send(out, step->length, MPI_CHAR, step->to, i, step->comm);
        else if (step->kind == 1)
            MPI_Issend(out, step->length, MPI_CHAR, step->to, i, step->comm, &requests[count++]);
        else if (step->kind == 2)
            MPI_Isend(out, step->length, MPI_CHAR, step->to, i, step->comm, &requests[count++]);
        else
            MPI_Ssend(out, step->length, MPI_CHAR, step->to, i, step->comm);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < STEPS; i++) {
        MPI_Comm_rank(steps[i].comm, &own);
        if (own == steps[i].to && steps[i].length > 0)
            check(in[i][0] == 'x' && in[i][steps[i].length - 1] == 'x', "message");
    }
}

int main(int argc, char **argv)
{
    static struct step steps[STEPS];
    MPI_T_pvar_session session;
    int provided;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle messages =
        handle_of(session, "pml_monitoring_messages_count", MPI_T_PVAR_CLASS_SIZE);
    MPI_T_pvar_handle bytes =
        handle_of(session, "pml_monitoring_messages_size", MPI_T_PVAR_CLASS_SIZE);
    MPI_T_pvar_handle own_messages =
        handle_of(session, "assay_pt2pt_messages", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle own_bytes =
        handle_of(session, "assay_pt2pt_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
    struct counters began = read_counters(session, messages, bytes);

    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank ^ 1, &comms[3]);
    for (int i = 0; i < STEPS; i++)
        steps[i] = choose();
    take_part(steps);
    for (int i = 1; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);

    struct counters ended = read_counters(session, messages, bytes);
    struct counters own = read_counters(session, own_messages, own_bytes);
    for (int to = 0; argc > 1 && strcmp(argv[1], "both") == 0 && to < size; to++)
        check(own.messages[to] == ended.messages[to] - began.messages[to] &&
                  own.bytes[to] == ended.bytes[to] - began.bytes[to],
              "the witness's variables");
    for (int to = 0; to < size; to++)
        if (ended.messages[to] > began.messages[to])
            printf("%d %d %llu %llu\n", rank, to, ended.messages[to] - began.messages[to],
                   ended.bytes[to] - began.bytes[to]);
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "stop") == 0)
        MPI_T_pvar_stop(session, bytes);
    if (argc > 1 && strcmp(argv[1], "flush") == 0)
        clear_counters(session);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
