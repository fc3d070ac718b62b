/* Point-to-point messages with known counts, among 4 ranks. */
#include "known.h"

static int next, last;
static int out[ROOM], in[ROOM];

typedef int send_t(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_t(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void find_neighbours(void)
{
    next = (rank + 1) % size;
    last = (rank + size - 1) % size;
}

static void attach(void)
{
    static char room[4096 + 100 * MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(room, sizeof room);
}

static void detach(void)
{
    void *room;
    int bytes;
    MPI_Buffer_detach(&room, &bytes);
    tell("MPI_Buffer_detach", 1);
}

static void around(send_t *send, int count)
{
    fill(out, count, rank);
    if (rank % 2 == 0)
        send(out, count, MPI_INT, next, 3, MPI_COMM_WORLD);
    MPI_Recv(in, ROOM, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2 == 1)
        send(out, count, MPI_INT, next, 3, MPI_COMM_WORLD);
    expect(in, count, last, "blocking");
}

static void blocking(void)
{
    MPI_Request request;
    find_neighbours();
    around(MPI_Send, 16);
    around(MPI_Ssend, 10);
    attach();
    around(MPI_Bsend, 3);
    detach();
    MPI_Irecv(in, ROOM, MPI_INT, last, 4, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(out, 1, rank);
    MPI_Rsend(out, 1, MPI_INT, next, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(in, 1, last, "ready");
}

/* One message of each kind to each other rank. */
static void nonblocking(void)
{
    isend_t *const sends[] = { MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend };
    MPI_Request requests[2 * 4 * 3];
    int arrived[4][4][8], sent[8], count = 0;
    fill(sent, 8, rank);
    attach();
    for (int kind = 0; kind < 4; kind++)
        for (int other = 0; other < size; other++)
            if (other != rank)
                MPI_Irecv(arrived[kind][other], 8, MPI_INT, other, kind, MPI_COMM_WORLD,
                          &requests[count++]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int kind = 0; kind < 4; kind++)
        for (int other = 0; other < size; other++)
            if (other != rank)
                sends[kind](sent, 1 << kind, MPI_INT, other, kind, MPI_COMM_WORLD,
                            &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    detach();
    for (int kind = 0; kind < 4; kind++)
        for (int other = 0; other < size; other++)
            if (other != rank)
                expect(arrived[kind][other], 1 << kind, other, "nonblocking");
}

/* A send to the next rank and a receive from the last; the requests in this order. */
static void post(MPI_Request requests[2])
{
    fill(out, 5, rank);
    fill(in, 5, -1);
    MPI_Irecv(in, 5, MPI_INT, last, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 5, MPI_INT, next, 6, MPI_COMM_WORLD, &requests[1]);
}

static void complete(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int index, indices[2], done, left, flag;
    long calls;
    find_neighbours();

    post(requests);
    MPI_Wait(&requests[0], &statuses[0]);
    check(statuses[0].MPI_SOURCE == last, "source of MPI_Wait");
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* MPI_REQUEST_NULL */
    expect(in, 5, last, "MPI_Wait");

    post(requests);
    MPI_Waitany(2, requests, &index, &statuses[0]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "MPI_Waitany of nothing");
    expect(in, 5, last, "MPI_Waitany");

    post(requests);
    for (calls = 0, left = 2; left > 0; left -= done, calls++)
        MPI_Waitsome(2, requests, &done, indices, calls ? statuses : MPI_STATUSES_IGNORE);
    MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
    check(done == MPI_UNDEFINED, "MPI_Waitsome of nothing");
    tell("MPI_Waitsome", calls + 1);
    expect(in, 5, last, "MPI_Waitsome");

    post(requests);
    for (calls = 0, left = 2; left > 0; calls++) {
        pause_shortly();
        MPI_Test(&requests[left - 1], &flag, MPI_STATUS_IGNORE);
        left -= flag;
    }
    tell("MPI_Test", calls);
    expect(in, 5, last, "MPI_Test");

    post(requests);
    for (calls = 0, flag = 0; !flag; calls++) {
        pause_shortly();
        MPI_Testall(2, requests, &flag, calls % 2 ? statuses : MPI_STATUSES_IGNORE);
    }
    tell("MPI_Testall", calls);
    expect(in, 5, last, "MPI_Testall");

    post(requests);
    for (calls = 0, left = 2; left > 0; left -= flag, calls++) {
        pause_shortly();
        MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    check(flag && index == MPI_UNDEFINED, "MPI_Testany of nothing");
    tell("MPI_Testany", calls + 1);
    expect(in, 5, last, "MPI_Testany");

    post(requests);
    for (calls = 0, left = 2; left > 0; left -= done, calls++) {
        pause_shortly();
        MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
    }
    MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
    check(done == MPI_UNDEFINED, "MPI_Testsome of nothing");
    tell("MPI_Testsome", calls + 1);
    expect(in, 5, last, "MPI_Testsome");

    post(requests);
    for (calls = 0, flag = 0; !flag; calls++) {
        pause_shortly();
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    tell("MPI_Request_get_status", calls);
    expect(in, 5, last, "MPI_Request_get_status");

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    MPI_Request none[] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    MPI_Request_get_status_all(2, none, &flag, MPI_STATUSES_IGNORE);
    tell("MPI_Request_get_status_all", 1);
    MPI_Request_get_status_any(2, none, &index, &flag, MPI_STATUS_IGNORE);
    tell("MPI_Request_get_status_any", 1);
    MPI_Request_get_status_some(2, none, &done, indices, MPI_STATUSES_IGNORE);
    tell("MPI_Request_get_status_some", 1);
#endif
}

/* Rank 0 takes what comes: 40 messages of each other rank, more than a call has room for. */
static void wildcards(void)
{
    enum { EACH = 40 };
    static int arrived[3 * EACH];
    MPI_Request requests[3 * EACH];
    int sum = 0, word = rank;
    if (rank > 0) {
        for (int i = 0; i < EACH; i++)
            MPI_Send(&word, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < EACH; i++)
            MPI_Send(&word, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < 3 * EACH; i++) {
        MPI_Recv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += in[0];
    }
    check(sum == EACH * (1 + 2 + 3), "sum of what came");
    for (int i = 0; i < 3 * EACH; i++)
        MPI_Irecv(&arrived[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(3 * EACH, requests, MPI_STATUSES_IGNORE);
    sum = 0;
    for (int i = 0; i < 3 * EACH; i++)
        sum += arrived[i];
    check(sum == EACH * (1 + 2 + 3), "sum of what came later");
}

static void exchange(void)
{
    MPI_Status status;
    find_neighbours();
    fill(out, 7, rank);
    MPI_Sendrecv(out, 7, MPI_INT, next, 1, in, ROOM, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
    check(status.MPI_SOURCE == last, "source of MPI_Sendrecv");
    expect(in, 7, last, "MPI_Sendrecv");
    MPI_Sendrecv(out, 2, MPI_INT, next, 5, in, ROOM, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(in, 2, last, "MPI_Sendrecv from anybody");
    MPI_Sendrecv(out, 2, MPI_INT, next, 6, in, ROOM, MPI_INT, last, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(in, 2, last, "MPI_Sendrecv of any tag");
    /* A line instead of a ring. */
    MPI_Sendrecv(out, 3, MPI_INT, rank < size - 1 ? next : MPI_PROC_NULL, 1, in, ROOM, MPI_INT,
                 rank > 0 ? last : MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0)
        expect(in, 3, last, "MPI_Sendrecv in a line");
    MPI_Sendrecv_replace(out, 9, MPI_INT, last, 2, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(out, 7, next, "MPI_Sendrecv_replace");
    MPI_Sendrecv_replace(out, 9, MPI_INT, MPI_PROC_NULL, 2, MPI_PROC_NULL, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    expect(out, 7, next, "MPI_Sendrecv_replace with nobody");
}

/* Rank 0 sends 6 messages to each other rank, which look before they take them. */
static void probes(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag, count;
    long calls;
    if (rank == 0) {
        fill(out, ROOM, 0);
        for (int other = 1; other < size; other++)
            for (int tag = 0; tag < 6; tag++)
                MPI_Send(out, 10 + tag, MPI_INT, other, tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Probe(0, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(count == 10, "length that MPI_Probe told");
    MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, 10, 0, "after MPI_Probe");

    for (calls = 0, flag = 0; !flag; calls++) {
        pause_shortly();
        MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    tell("MPI_Iprobe", calls);
    MPI_Recv(in, ROOM, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 12, MPI_INT, &message, &status);
    check(status.MPI_TAG == 2, "tag of MPI_Mrecv");
    expect(in, 12, 0, "MPI_Mrecv");
    MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &message, &status);
    MPI_Imrecv(in, ROOM, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    check(status.MPI_TAG == 3, "tag of MPI_Imrecv");
    expect(in, 13, 0, "MPI_Imrecv");

    for (calls = 0, flag = 0; !flag; calls++) {
        pause_shortly();
        MPI_Improbe(0, 4, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    }
    tell("MPI_Improbe", calls);
    MPI_Mrecv(in, ROOM, MPI_INT, &message, MPI_STATUS_IGNORE);
    expect(in, 14, 0, "after MPI_Improbe");
    MPI_Recv(in, 15, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, 15, 0, "last of the probes");
}

/* Four sends and three receives, started 5 times; then 2 more of the first by MPI_Start. */
static void persistent(void)
{
    enum { SENDS = 4, TIMES = 5 };
    MPI_Request requests[2 * SENDS];
    int arrived[SENDS][8], sent[8];
    find_neighbours();
    attach();
    MPI_Recv_init(arrived[0], 8, MPI_INT, last, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(arrived[1], 8, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(arrived[2], 8, MPI_INT, last, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv_init(arrived[3], 8, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Send_init(sent, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[4]);
    MPI_Bsend_init(sent, 2, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[5]);
    MPI_Ssend_init(sent, 4, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[6]);
    MPI_Send_init(sent, 4, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[7]);
    for (int i = 0; i < TIMES; i++) {
        fill(sent, 8, 100 * i + rank);
        MPI_Startall(2 * SENDS, requests);
        MPI_Waitall(2 * SENDS, requests, MPI_STATUSES_IGNORE);
        for (int kind = 0; kind < 3; kind++)
            expect(arrived[kind], 1 << kind, 100 * i + last, "persistent");
    }
    MPI_Waitall(2 * SENDS, requests, MPI_STATUSES_IGNORE); /* none is active */
    for (int i = 0; i < 2; i++) {
        MPI_Start(&requests[0]);
        MPI_Start(&requests[4]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2 * SENDS; i++)
        MPI_Request_free(&requests[i]);
    detach();

    /* A ready send may only start when its receive has. */
    MPI_Recv_init(arrived[0], 8, MPI_INT, last, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Rsend_init(sent, 8, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Start(&requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(arrived[0], 8, 100 * (TIMES - 1) + last, "persistent ready send");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Messages to nobody, to itself, and of nothing. */
static void special(void)
{
    MPI_Request requests[2];
    MPI_Message message;
    int flag;
    find_neighbours();
    fill(out, ROOM, rank);
    MPI_Send(out, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 4, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 4, MPI_INT, &message, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    MPI_Irecv(in, 6, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, 6, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect(in, 6, rank, "to itself");
    MPI_Irecv(in, 3, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Send(out, 3, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    MPI_Sendrecv(NULL, 0, MPI_INT, next, 2, NULL, 0, MPI_INT, last, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Irecv(in, 0, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 0, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Datatypes; one is freed and another made, which may get the same handle. */
static void datatypes(void)
{
    struct mixed {
        char letter;
        double number;
    } pair = { 'a', 1.5 }, got = { 0, 0 };
    int lengths[2] = { 1, 1 };
    MPI_Aint shifts[2] = { 0, 8 };
    MPI_Datatype types[2] = { MPI_CHAR, MPI_DOUBLE }, type;
    find_neighbours();
    fill(out, ROOM, rank);

    MPI_Type_vector(3, 2, 4, MPI_INT, &type); /* 24 bytes of 40 */
    MPI_Type_commit(&type);
    MPI_Sendrecv(out, 2, type, next, 1, in, ROOM, MPI_INT, last, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(in[2] == 1000 * last + 4 && in[11] == 1000 * last + 19, "vector");
    MPI_Type_free(&type);

    MPI_Type_create_struct(2, lengths, shifts, types, &type); /* 9 bytes of 16 */
    MPI_Type_commit(&type);
    MPI_Sendrecv(&pair, 1, type, next, 1, &got, 1, type, last, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(got.letter == 'a' && got.number == 1.5, "structure");
    MPI_Type_free(&type);

    for (int length = 1; length <= 20; length++) {
        MPI_Type_contiguous(length, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Sendrecv(out, 2, type, next, 1, in, 2, type, last, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        expect(in, 2 * length, last, "contiguous");
        MPI_Type_free(&type);
    }
}

/* The forms with MPI_Count. */
static void large(void)
{
#if MPI_VERSION >= 4
    MPI_Request requests[2];
    MPI_Message message;
    find_neighbours();
    fill(out, ROOM, rank);
    MPI_Irecv_c(in, 8, MPI_INT, last, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend_c(out, 8, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv_c(in, 8, MPI_INT, last, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_c(out, 7, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Issend_c(out, 6, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_c(in, 8, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv_c(out, 5, MPI_INT, next, 1, in, 8, MPI_INT, last, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    expect(in, 5, last, "MPI_Sendrecv_c");
    MPI_Sendrecv_replace_c(out, 4, MPI_INT, next, 1, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(out, 4, last, "MPI_Sendrecv_replace_c");
    MPI_Isend_c(out, 3, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(last, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv_c(in, 8, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Recv_init_c(in, 8, MPI_INT, last, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init_c(out, 2, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
}

/* Requests that are freed, cancelled, or completed in another order than they were made. */
static void requests(void)
{
    enum { MANY = 50 };
    static int arrived[MANY], sent[MANY];
    MPI_Request receives[MANY], sends[MANY], one;
    MPI_Status status;
    int cancelled;
    find_neighbours();
    for (int i = 0; i < MANY; i++) {
        sent[i] = 100 * rank + i;
        MPI_Irecv(&arrived[i], 1, MPI_INT, i % 3 ? last : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                  &receives[i]);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Isend(&sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &sends[i]);
    for (int i = 0; i < MANY; i++) {
        MPI_Wait(&receives[7 * i % MANY], &status);
        check(status.MPI_SOURCE == last && status.MPI_TAG == 7 * i % MANY, "order");
        check(arrived[7 * i % MANY] == 100 * last + 7 * i % MANY, "disorder");
    }
    MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE);

    for (int i = 0; i < MANY; i++) {
        MPI_Irecv(in, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &receives[0]);
        MPI_Isend(&sent[i], 1, MPI_INT, next, 1, MPI_COMM_WORLD, &one);
        MPI_Request_free(&one);
        MPI_Wait(&receives[0], MPI_STATUS_IGNORE);
        check(in[0] == 100 * last + i, "freed");
    }
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &one);
    MPI_Cancel(&one);
    MPI_Wait(&one, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check(cancelled, "cancelled");
}

/* On reversed ranks: requests of a communicator that is freed before they complete, or before they
 * are started again. Meanwhile another is made. */
static void orphans(void)
{
    MPI_Request requests[2];
    MPI_Comm reversed, other;
    find_neighbours();
    fill(out, 4, rank);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
        MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, 1, reversed, &requests[0]);
        MPI_Isend(out, 4, MPI_INT, size - 1 - next, 1, reversed, &requests[1]);
        MPI_Comm_free(&reversed);
        MPI_Comm_dup(MPI_COMM_SELF, &other);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(in, 4, last, "orphan");
        MPI_Comm_free(&other);

        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
        MPI_Recv_init(in, 4, MPI_INT, MPI_ANY_SOURCE, 2, reversed, &requests[0]);
        MPI_Send_init(out, 2, MPI_INT, size - 1 - next, 2, reversed, &requests[1]);
        MPI_Comm_free(&reversed);
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
        for (int k = 0; k < 2; k++) {
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            expect(in, 2, last, "persistent orphan");
        }
        MPI_Comm_free(&other);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        { "blocking", blocking },
        { "nonblocking", nonblocking },
        { "complete", complete },
        { "wildcards", wildcards },
        { "exchange", exchange },
        { "probes", probes },
        { "persistent", persistent },
        { "special", special },
        { "datatypes", datatypes },
        { "large", large },
        { "requests", requests },
        { "orphans", orphans },
        { NULL, NULL },
    };
    return run_parts(argc, argv, parts);
}
