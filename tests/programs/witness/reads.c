/* Reads what the witness has counted, as docs/witness.md says: each rank tells what MPI_Send was called,
 * in numbers and bytes, between two reads. Without the witness: that there is none. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef int reader(const char *call, double values[3]);

static void ring(int rank, int size, int times, int bytes)
{
    static char in[1000], out[1000];
    for (int i = 0; i < times; i++) {
        MPI_Request request;
        MPI_Irecv(in, bytes, MPI_CHAR, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request);
        MPI_Send(out, bytes, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    double before[3], after[3], all[3];
    reader *read_witness;
    *(void **)&read_witness = dlsym(RTLD_DEFAULT, "assay_witness_read");
    if (read_witness && read_witness("MPI_Send", before))
        return 2; /* before MPI_Init */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ring(rank, size, 5, 10);
    int has_before = read_witness && read_witness("MPI_Send", before);
    ring(rank, size, 3, 1000);
    int has_after = read_witness && read_witness("MPI_Send", after);
    if (!read_witness)
        printf("rank %d: no witness\n", rank);
    else if (has_before && has_after && !read_witness("MPI_Nothing", all) &&
             read_witness(NULL, all))
        printf("rank %d: %.0f sends of %.0f bytes, %.0f calls, time %d\n", rank,
               after[0] - before[0], after[2] - before[2], all[0], after[1] > before[1]);
    MPI_Finalize();
    return read_witness && read_witness("MPI_Send", after) ? 3 : 0;
}
