/* Ping-pongs of 8 bytes between 2 ranks, with pauses between them.
 *
 *   bursts MESSAGES BURSTS PAUSE WHO    WHO pauses for PAUSE ms before each burst: both, or one
 *
 * Where one pauses, it is rank 0, and rank 1 waits for its message. Each rank tells the seconds
 * that it was in the MPI library: it times every call below the witness, which calls PMPI_Send,
 * too. */
#include "known.h"

#include <dlfcn.h>

static double in_library, cost_of_clock;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void find_cost_of_clock(void)
{
    enum { READINGS = 20000 };
    double began = now();
    for (int i = 0; i < READINGS; i++)
        now();
    cost_of_clock = (now() - began) / READINGS;
}

typedef int send_t(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int receive_t(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
static send_t *library_send;
static receive_t *library_receive;

/* The witness sees all of both readings of the clock; between them is but one. */
int PMPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    double began = now();
    int code = library_send(buffer, count, type, dest, tag, comm);
    in_library += now() - began + cost_of_clock;
    return code;
}

int PMPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status *status)
{
    double began = now();
    int code = library_receive(buffer, count, type, source, tag, comm, status);
    in_library += now() - began + cost_of_clock;
    return code;
}

static void play(int messages)
{
    double ball = 0;
    for (int i = 0; i < messages; i++) {
        if (rank == 0)
            MPI_Send(&ball, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&ball, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            ball += 1;
            MPI_Send(&ball, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        }
    }
    check((int)ball == messages, "ball");
}

int main(int argc, char **argv)
{
    library_send = (send_t *)dlsym(RTLD_NEXT, "PMPI_Send");
    library_receive = (receive_t *)dlsym(RTLD_NEXT, "PMPI_Recv");
    find_cost_of_clock();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(argc == 5, "arguments");
    int messages = atoi(argv[1]), bursts = atoi(argv[2]);
    bool pauses = rank == 0 || strcmp(argv[4], "both") == 0;
    in_library = 0; /* the witness has its own calls */
    for (int i = 0; i < bursts; i++) {
        if (pauses)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000l * atoi(argv[3]) }, NULL);
        play(messages);
    }
    printf("%d %.9f\n", rank, in_library);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
