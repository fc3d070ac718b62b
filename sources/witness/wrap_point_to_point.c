/* Sends, receives and probes; requests are completed in wrap_completion.c. */
#include "wrap.h"

#define SEND(name, suffix, count_t)                                                               \
    EXPORT int MPI_##name##suffix(const void *buffer, count_t count, MPI_Datatype type, int dest, \
                                  int tag, MPI_Comm comm)                                         \
    {                                                                                             \
        struct timing timing = call_begin_in(CALL_##name, comm);                                  \
        int code = PMPI_##name##suffix(buffer, count, type, dest, tag, comm);                     \
        call_end(&timing);                                                                        \
        if (code == MPI_SUCCESS) {                                                                \
            int64_t bytes = message_bytes(&timing, dest, count, type);                            \
            uint64_t serial = record_send(&timing, comm, dest, tag, bytes);                       \
            if (serial)                                                                           \
                record_wait(&timing, &serial, 1);                                                 \
        }                                                                                         \
        return code;                                                                              \
    }
#define SENDS(name) SEND(name, , int) LARGE(SEND(name, _c, MPI_Count))

SENDS(Send)
SENDS(Bsend)
SENDS(Ssend)
SENDS(Rsend)

/* A request is only followed where the call that made it was timed. */
static void remember_send(MPI_Request request, uint64_t serial)
{
    if (serial)
        request_remember(request, &(struct request){ .side = SENDER, .serial = serial });
}

#define ISEND(name, suffix, count_t)                                                              \
    EXPORT int MPI_##name##suffix(const void *buffer, count_t count, MPI_Datatype type, int dest, \
                                  int tag, MPI_Comm comm, MPI_Request *request)                   \
    {                                                                                             \
        struct timing timing = call_begin_in(CALL_##name, comm);                                  \
        int code = PMPI_##name##suffix(buffer, count, type, dest, tag, comm, request);            \
        call_end(&timing);                                                                        \
        if (code == MPI_SUCCESS) {                                                                \
            int64_t bytes = message_bytes(&timing, dest, count, type);                            \
            remember_send(*request, record_send(&timing, comm, dest, tag, bytes));                \
        }                                                                                         \
        return code;                                                                              \
    }
#define ISENDS(name) ISEND(name, , int) LARGE(ISEND(name, _c, MPI_Count))

ISENDS(Isend)
ISENDS(Ibsend)
ISENDS(Issend)
ISENDS(Irsend)

static void count_posted(const struct timing *timing, int rank, int64_t count, MPI_Datatype type)
{
    if (timing->thread)
        add_bytes(timing, message_bytes(timing, rank, count, type));
}

/* After a blocking receive. */
static uint64_t record_arrival(const struct timing *timing, MPI_Comm comm, const MPI_Status *status)
{
    return record_receive(timing, comm, status->MPI_SOURCE, status->MPI_TAG, timing->begin);
}

#define RECV(suffix, count_t)                                                               \
    EXPORT int MPI_Recv##suffix(void *buffer, count_t count, MPI_Datatype type, int source, \
                                int tag, MPI_Comm comm, MPI_Status *status)                 \
    {                                                                                       \
        struct timing timing = call_begin_in(CALL_Recv, comm);                              \
        bool before = timing.communicator && is_exact(source, tag);                         \
        uint64_t serial = NO_MESSAGE;                                                       \
        MPI_Status own;                                                                     \
        /* While it waits for the message it has the time for this. */                      \
        if (before)                                                                         \
            serial = record_receive(&timing, comm, source, tag, timing.begin);              \
        else if (status == MPI_STATUS_IGNORE)                                               \
            status = &own;                                                                  \
        int code = PMPI_Recv##suffix(buffer, count, type, source, tag, comm, status);       \
        call_end(&timing);                                                                  \
        if (code == MPI_SUCCESS) {                                                          \
            count_posted(&timing, source, count, type);                                     \
            if (!before)                                                                    \
                serial = record_arrival(&timing, comm, status);                             \
            if (serial)                                                                     \
                record_wait(&timing, &serial, 1);                                           \
        }                                                                                   \
        return code;                                                                        \
    }

RECV(, int)
LARGE(RECV(_c, MPI_Count))

static void remember_receive(const struct timing *timing, MPI_Comm comm, int source, int tag,
                             MPI_Request request)
{
    if (!timing->thread || source == MPI_PROC_NULL)
        return;
    struct request entry = {
        .side = RECEIVER, .rank = source, .tag = tag, .posted = timing->begin
    };
    if (is_exact(source, tag))
        entry.serial = record_receive(timing, comm, source, tag, timing->begin);
    else
        entry.communicator = record_communicator(timing, comm);
    if (entry.serial || !is_exact(source, tag))
        request_remember(request, &entry);
}

#define IRECV(suffix, count_t)                                                               \
    EXPORT int MPI_Irecv##suffix(void *buffer, count_t count, MPI_Datatype type, int source, \
                                 int tag, MPI_Comm comm, MPI_Request *request)               \
    {                                                                                        \
        struct timing timing = call_begin_in(CALL_Irecv, comm);                              \
        int code = PMPI_Irecv##suffix(buffer, count, type, source, tag, comm, request);      \
        call_end(&timing);                                                                   \
        if (code == MPI_SUCCESS) {                                                           \
            count_posted(&timing, source, count, type);                                      \
            remember_receive(&timing, comm, source, tag, *request);                          \
        }                                                                                    \
        return code;                                                                         \
    }

IRECV(, int)
LARGE(IRECV(_c, MPI_Count))

/* Both messages of a call that sends and receives; `status` is never MPI_STATUS_IGNORE. */
static void record_exchange(const struct timing *timing, MPI_Comm comm, int dest, int send_tag,
                            int64_t sent, int source, const MPI_Status *status)
{
    uint64_t serials[2] = { record_send(timing, comm, dest, send_tag, sent), NO_MESSAGE };
    if (source != MPI_PROC_NULL)
        serials[1] = record_arrival(timing, comm, status);
    if (serials[0] || serials[1])
        record_wait(timing, serials, 2);
}

#define SENDRECV(suffix, count_t)                                                                 \
    EXPORT int MPI_Sendrecv##suffix(const void *send, count_t send_count, MPI_Datatype send_type, \
                                    int dest, int send_tag, void *receive, count_t count,         \
                                    MPI_Datatype type, int source, int tag, MPI_Comm comm,        \
                                    MPI_Status *status)                                           \
    {                                                                                             \
        struct timing timing = call_begin_in(CALL_Sendrecv, comm);                                \
        MPI_Status own;                                                                           \
        if (status == MPI_STATUS_IGNORE)                                                          \
            status = &own;                                                                        \
        int code = PMPI_Sendrecv##suffix(send, send_count, send_type, dest, send_tag, receive,    \
                                         count, type, source, tag, comm, status);                 \
        call_end(&timing);                                                                        \
        if (code == MPI_SUCCESS)                                                                  \
            record_exchange(&timing, comm, dest, send_tag,                                        \
                            message_bytes(&timing, dest, send_count, send_type), source, status); \
        return code;                                                                              \
    }

SENDRECV(, int)
LARGE(SENDRECV(_c, MPI_Count))

#define SENDRECV_REPLACE(suffix, count_t)                                                          \
    EXPORT int MPI_Sendrecv_replace##suffix(void *buffer, count_t count, MPI_Datatype type,        \
                                            int dest, int send_tag, int source, int tag,           \
                                            MPI_Comm comm, MPI_Status *status)                     \
    {                                                                                              \
        struct timing timing = call_begin_in(CALL_Sendrecv_replace, comm);                         \
        MPI_Status own;                                                                            \
        if (status == MPI_STATUS_IGNORE)                                                           \
            status = &own;                                                                         \
        int code = PMPI_Sendrecv_replace##suffix(buffer, count, type, dest, send_tag, source, tag, \
                                                 comm, status);                                    \
        call_end(&timing);                                                                         \
        if (code == MPI_SUCCESS)                                                                   \
            record_exchange(&timing, comm, dest, send_tag,                                         \
                            message_bytes(&timing, dest, count, type), source, status);            \
        return code;                                                                               \
    }

SENDRECV_REPLACE(, int)
LARGE(SENDRECV_REPLACE(_c, MPI_Count))

/* A request for both messages: it stands for the one that is received. */
#define ISENDRECV(suffix, count_t)                                                                 \
    EXPORT int MPI_Isendrecv##suffix(const void *send, count_t send_count, MPI_Datatype send_type, \
                                     int dest, int send_tag, void *receive, count_t count,         \
                                     MPI_Datatype type, int source, int tag, MPI_Comm comm,        \
                                     MPI_Request *request)                                         \
    {                                                                                              \
        struct timing timing = call_begin_in(CALL_Isendrecv, comm);                                \
        int code = PMPI_Isendrecv##suffix(send, send_count, send_type, dest, send_tag, receive,    \
                                          count, type, source, tag, comm, request);                \
        call_end(&timing);                                                                         \
        if (code == MPI_SUCCESS) {                                                                 \
            record_send(&timing, comm, dest, send_tag,                                             \
                        message_bytes(&timing, dest, send_count, send_type));                      \
            remember_receive(&timing, comm, source, tag, *request);                                \
        }                                                                                          \
        return code;                                                                               \
    }                                                                                              \
    EXPORT int MPI_Isendrecv_replace##suffix(void *buffer, count_t count, MPI_Datatype type,       \
                                             int dest, int send_tag, int source, int tag,          \
                                             MPI_Comm comm, MPI_Request *request)                  \
    {                                                                                              \
        struct timing timing = call_begin_in(CALL_Isendrecv_replace, comm);                        \
        int code = PMPI_Isendrecv_replace##suffix(buffer, count, type, dest, send_tag, source,     \
                                                  tag, comm, request);                             \
        call_end(&timing);                                                                         \
        if (code == MPI_SUCCESS) {                                                                 \
            record_send(&timing, comm, dest, send_tag, message_bytes(&timing, dest, count, type)); \
            remember_receive(&timing, comm, source, tag, *request);                                \
        }                                                                                          \
        return code;                                                                               \
    }

#ifdef HAS_PMPI_Isendrecv
ISENDRECV(, int)
#endif
#ifdef HAS_PMPI_Isendrecv_c
ISENDRECV(_c, MPI_Count)
#endif

EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct timing timing = call_begin_in(CALL_Probe, comm);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    int code = PMPI_Probe(source, tag, comm, status);
    call_end(&timing);
    uint64_t serial = NO_MESSAGE;
    if (code == MPI_SUCCESS)
        serial = record_probe(&timing, comm, status->MPI_SOURCE, status->MPI_TAG);
    if (serial)
        record_wait(&timing, &serial, 1);
    return code;
}

EXPORT int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct timing timing = call_begin(CALL_Iprobe);
    int code = PMPI_Iprobe(source, tag, comm, flag, status);
    call_end(&timing);
    return code;
}

/* A matched probe takes the message out of the channel: its receive is the probe. */
EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct timing timing = call_begin_in(CALL_Mprobe, comm);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    int code = PMPI_Mprobe(source, tag, comm, message, status);
    call_end(&timing);
    uint64_t serial = NO_MESSAGE;
    if (code == MPI_SUCCESS)
        serial = record_arrival(&timing, comm, status);
    if (serial)
        record_wait(&timing, &serial, 1);
    return code;
}

EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                       MPI_Status *status)
{
    struct timing timing = call_begin_in(CALL_Improbe, comm);
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    int code = PMPI_Improbe(source, tag, comm, flag, message, status);
    call_end(&timing);
    if (code == MPI_SUCCESS && *flag)
        record_arrival(&timing, comm, status);
    return code;
}

/* Known to be nobody, or any rank. */
static int source_of(MPI_Message message)
{
    return message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : MPI_ANY_SOURCE;
}

#define MRECV(suffix, count_t)                                                   \
    EXPORT int MPI_Mrecv##suffix(void *buffer, count_t count, MPI_Datatype type, \
                                 MPI_Message *message, MPI_Status *status)       \
    {                                                                            \
        struct timing timing = call_begin(CALL_Mrecv);                           \
        int source = source_of(*message);                                        \
        int code = PMPI_Mrecv##suffix(buffer, count, type, message, status);     \
        call_end(&timing);                                                       \
        if (code == MPI_SUCCESS)                                                 \
            count_posted(&timing, source, count, type);                          \
        return code;                                                             \
    }

MRECV(, int)
LARGE(MRECV(_c, MPI_Count))

#define IMRECV(suffix, count_t)                                                   \
    EXPORT int MPI_Imrecv##suffix(void *buffer, count_t count, MPI_Datatype type, \
                                  MPI_Message *message, MPI_Request *request)     \
    {                                                                             \
        struct timing timing = call_begin(CALL_Imrecv);                           \
        int source = source_of(*message);                                         \
        int code = PMPI_Imrecv##suffix(buffer, count, type, message, request);    \
        call_end(&timing);                                                        \
        if (code == MPI_SUCCESS)                                                  \
            count_posted(&timing, source, count, type);                           \
        return code;                                                              \
    }

IMRECV(, int)
LARGE(IMRECV(_c, MPI_Count))

/* Persistent requests count their messages when they are started. */
static void remember_persistent(enum side side, bool unordered, MPI_Comm comm, int rank, int tag,
                                int64_t count, MPI_Datatype type, MPI_Request request)
{
    struct timing timing = begin_uncounted(comm);
    if (!timing.thread || rank == MPI_PROC_NULL)
        return;
    request_remember(request, &(struct request){ .side = side,
                                                 .persistent = true,
                                                 .unordered = unordered,
                                                 .communicator = record_communicator(&timing, comm),
                                                 .rank = rank,
                                                 .tag = tag,
                                                 .bytes = bytes_of(&timing, count, type) });
}

#define SEND_INIT(name, suffix, count_t)                                                          \
    EXPORT int MPI_##name##suffix(const void *buffer, count_t count, MPI_Datatype type, int dest, \
                                  int tag, MPI_Comm comm, MPI_Request *request)                   \
    {                                                                                             \
        bind_mpi();                                                                               \
        int code = PMPI_##name##suffix(buffer, count, type, dest, tag, comm, request);            \
        if (code == MPI_SUCCESS)                                                                  \
            remember_persistent(SENDER, false, comm, dest, tag, count, type, *request);           \
        return code;                                                                              \
    }
#define SENDS_INIT(name) SEND_INIT(name, , int) LARGE(SEND_INIT(name, _c, MPI_Count))

SENDS_INIT(Send_init)
SENDS_INIT(Bsend_init)
SENDS_INIT(Ssend_init)
SENDS_INIT(Rsend_init)

#define RECV_INIT(suffix, count_t)                                                               \
    EXPORT int MPI_Recv_init##suffix(void *buffer, count_t count, MPI_Datatype type, int source, \
                                     int tag, MPI_Comm comm, MPI_Request *request)               \
    {                                                                                            \
        bind_mpi();                                                                              \
        int code = PMPI_Recv_init##suffix(buffer, count, type, source, tag, comm, request);      \
        if (code == MPI_SUCCESS)                                                                 \
            remember_persistent(RECEIVER, false, comm, source, tag, count, type, *request);      \
        return code;                                                                             \
    }

RECV_INIT(, int)
LARGE(RECV_INIT(_c, MPI_Count))

/* All partitions together are a message. */
#ifdef HAS_PMPI_Psend_init
EXPORT int MPI_Psend_init(const void *buffer, int partitions, MPI_Count count, MPI_Datatype type,
                          int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    bind_mpi();
    int code = PMPI_Psend_init(buffer, partitions, count, type, dest, tag, comm, info, request);
    if (code == MPI_SUCCESS)
        remember_persistent(SENDER, true, comm, dest, tag, partitions * count, type, *request);
    return code;
}

#define PARTITIONS(name, arguments, ...)                \
    EXPORT int MPI_##name(__VA_ARGS__)                  \
    {                                                   \
        struct timing timing = call_begin(CALL_##name); \
        int code = PMPI_##name arguments;               \
        call_end(&timing);                              \
        return code;                                    \
    }

PARTITIONS(Pready, (partition, request), int partition, MPI_Request request)
PARTITIONS(Pready_range, (first, last, request), int first, int last, MPI_Request request)
PARTITIONS(Pready_list, (count, partitions, request), int count, PARTITION_LIST partitions[],
           MPI_Request request)
PARTITIONS(Parrived, (request, partition, flag), MPI_Request request, int partition, int *flag)
#endif

static void record_unordered(const struct timing *timing, const struct request *request)
{
    const int *ranks = NULL;
    int count = request->parts ? communicator_neighbours(request->communicator, &ranks) : 0;
    for (int i = 0; i < count; i++)
        if (ranks[i] != MPI_PROC_NULL)
            record_put(timing, NEIGHBOURS, request->communicator, ranks[i], request->parts[i]);
    if (request->collective)
        record_collective(timing, request->communicator,
                          &(struct sent){ request->bytes, request->rank, request->each });
    else if (!request->parts && request->side == SENDER)
        record_put(timing, POINT_TO_POINT, request->communicator, request->rank, request->bytes);
}

static void record_start(const struct timing *timing, MPI_Request handle)
{
    struct request request;
    if (!timing->thread || !request_find(handle, &request) || !request.persistent)
        return;
    request.posted = timing->begin;
    /* One call may start both kinds: only what leaves the rank are its bytes. */
    if (request.unordered) {
        record_unordered(timing, &request);
        return;
    }
    if (request.side == SENDER)
        request.serial =
            record_send_in(timing, request.communicator, request.rank, request.tag, request.bytes);
    else if (is_exact(request.rank, request.tag))
        request.serial = record_receive_in(timing, request.communicator, request.rank, request.tag,
                                           timing->begin);
    request_remember(handle, &request);
}

EXPORT int MPI_Start(MPI_Request *request)
{
    struct timing timing = call_begin(CALL_Start);
    int code = PMPI_Start(request);
    call_end(&timing);
    if (code == MPI_SUCCESS)
        record_start(&timing, *request);
    return code;
}

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    struct timing timing = call_begin(CALL_Startall);
    int code = PMPI_Startall(count, requests);
    call_end(&timing);
    for (int i = 0; code == MPI_SUCCESS && i < count; i++)
        record_start(&timing, requests[i]);
    return code;
}

/* These wait for all messages in a buffer. */
COUNTS(Buffer_detach, , (buffer, size), void *buffer, int *size)
#ifdef HAS_PMPI_Buffer_detach_c
COUNTS(Buffer_detach, _c, (buffer, size), void *buffer, MPI_Count *size)
#endif
#ifdef HAS_PMPI_Buffer_flush
COUNTS(Buffer_flush, , (), void)
COUNTS(Comm_flush_buffer, , (comm), MPI_Comm comm)
COUNTS(Comm_detach_buffer, , (comm, buffer, size), MPI_Comm comm, void *buffer, int *size)
COUNTS(Comm_detach_buffer, _c, (comm, buffer, size), MPI_Comm comm, void *buffer, MPI_Count *size)
#endif
