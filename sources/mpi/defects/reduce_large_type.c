/* Elements of a reduction that are larger than the pieces in which an MPI pipelines it. Repeated, as
 * MPIs change to shared memory after some calls. */
#include <stdlib.h>

#include "defects.h"

enum { NUMBERS = 32 << 10, CALLS = 20 };

static void add(void *in, void *out, int *count, MPI_Datatype *type)
{
    const int *from = in;
    int *to = out;
    (void)type;
    for (long i = 0; i < (long)*count * NUMBERS; i++)
        to[i] += from[i];
}

bool reduce_large_type(int rank, int ranks)
{
    int *mine = malloc(NUMBERS * sizeof *mine), *sum = malloc(NUMBERS * sizeof *sum);
    bool is_wrong = false;
    MPI_Datatype type;
    MPI_Op op;
    if (!mine || !sum)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < NUMBERS; i++)
        mine[i] = i;
    MPI_Type_contiguous(NUMBERS, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    for (int call = 0; call < CALLS; call++) {
        sum[NUMBERS - 1] = -1;
        MPI_Reduce(mine, sum, 1, type, op, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < NUMBERS; i++)
            is_wrong = is_wrong || sum[i] != ranks * i;
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    free(mine);
    free(sum);
    return is_wrong;
}
