/* What a Fortran binding looks like to the witness: a library that calls PMPI, and (PROGRAM) who
 * calls it: ten barriers. */
#include <mpi.h>
#include <stddef.h>

void binding_barrier(void);

#ifdef PROGRAM
int main(void)
{
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 10; i++)
        binding_barrier();
    MPI_Finalize();
}
#else
void binding_barrier(void)
{
    PMPI_Barrier(MPI_COMM_WORLD);
}
#endif
