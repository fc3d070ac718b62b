/* Handles that are given out again before the call that frees them has returned, as another thread may
 * be given them: here the same thread makes a new one inside PMPI_Request_free and PMPI_Win_free.
 *
 * And types that are freed before the call that sends with them has returned, as another thread may do
 * once it has the message: here PMPI_Sendrecv does.
 *
 * Every message is to the rank itself: ROUNDS of 4 bytes by requests, as many by windows, and as many of
 * 8 bytes by types. */
#include "known.h"

#include <dlfcn.h>

enum { ROUNDS = 50 };

static int sent = 1, received;
static MPI_Request next_request;
static MPI_Win next_window;
static bool wanted; /* the next one, inside the call */
static int same; /* how often it got the handle of the one before */

static void make_request(void)
{
    MPI_Send_init(&sent, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &next_request);
    wanted = false;
}

static void make_window(void)
{
    void *base;
    MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &next_window);
    wanted = false;
}

#define FREES(name, handle_t, make, next)                  \
    int PMPI_##name(handle_t *handle)                      \
    {                                                      \
        int (*real)(handle_t *);                           \
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name); \
        handle_t freed = *handle;                          \
        int code = real(handle);                           \
        if (wanted) {                                      \
            make();                                        \
            same += next == freed;                         \
        }                                                  \
        return code;                                       \
    }
FREES(Request_free, MPI_Request, make_request, next_request)
FREES(Win_free, MPI_Win, make_window, next_window)

static MPI_Datatype pair = MPI_DATATYPE_NULL;

int PMPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int dest, int send_tag,
                  void *receive, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Status *status)
{
    int (*real)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int,
                MPI_Comm, MPI_Status *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Sendrecv");
    int code = real(send, send_count, send_type, dest, send_tag, receive, count, type, source, tag,
                    comm, status);
    if (pair != MPI_DATATYPE_NULL)
        MPI_Type_free(&pair);
    return code;
}

static void types(void)
{
    int words[2] = { 0 }, got[2];
    MPI_Status status;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Type_contiguous(2, MPI_INT, &pair);
        MPI_Type_commit(&pair);
        MPI_Sendrecv(words, 1, pair, rank, 2, got, 1, pair, rank, 2, MPI_COMM_WORLD, &status);
        if (pair != MPI_DATATYPE_NULL) /* nobody called the PMPI_ name */
            MPI_Type_free(&pair);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request = next_request;
        if (i == 0)
            MPI_Send_init(&sent, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Recv(&received, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wanted = i < ROUNDS - 1;
        MPI_Request_free(&request);
        if (wanted) /* nobody called the PMPI_ name */
            make_request();
    }
    make_window();
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win window = next_window;
        MPI_Win_fence(0, window);
        MPI_Put(&sent, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        wanted = i < ROUNDS - 1;
        MPI_Win_free(&window);
        if (wanted)
            make_window();
    }
    types();
    tell("same", same);
    MPI_Finalize();
    return 0;
}
