/* An MPI that gets variables while the program runs: these stand in for its own. Their names are told by
 * their number, "mpi_0" and so on. */
#include "known.h"

static int of_mpi = 2;

int PMPI_T_pvar_get_num(int *count)
{
    *count = of_mpi;
    return MPI_SUCCESS;
}

int PMPI_T_pvar_get_index(const char *name, int class, int *index)
{
    (void)class;
    if (sscanf(name, "mpi_%d", index) == 1 && *index < of_mpi)
        return MPI_SUCCESS;
    return MPI_T_ERR_INVALID_NAME;
}

int PMPI_T_pvar_get_info(int index, char *name, int *length, int *level, int *class,
                         MPI_Datatype *type, MPI_T_enum *values, char *meaning, int *meaning_length,
                         int *object, int *readonly, int *continuous, int *atomic)
{
    (void)level, (void)class, (void)type, (void)values, (void)meaning, (void)meaning_length;
    (void)object, (void)readonly, (void)continuous, (void)atomic;
    if (index < 0 || index >= of_mpi)
        return MPI_T_ERR_INVALID_INDEX;
    snprintf(name, (size_t)*length, "mpi_%d", index);
    return MPI_SUCCESS;
}

static void tell_all(const char *when)
{
    int count, index;
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        char name[64] = "";
        int length = sizeof name, class = -1;
        MPI_T_pvar_get_info(i, name, &length, NULL, &class, NULL, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL);
        check(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i, name);
        printf("%s %d %s\n", when, i, name);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    tell_all("before");
    MPI_Init(&argc, &argv);
    of_mpi = 3;
    tell_all("after");
    of_mpi = 5;
    tell_all("later");
    of_mpi = 1;
    int count;
    MPI_T_pvar_get_num(&count);
    printf("fewer %d\n", count);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
