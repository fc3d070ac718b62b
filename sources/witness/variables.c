#include "variables.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "witness.h"

extern char **environ;

/* clang-format off */
static const char *const steering[] = {
    "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "HYDRA_", "MV2_", "MVP_",
    "UCX_", "UCC_", "HCOLL_", "SHARP_", "FI_", "PSM_", "PSM2_", "PSM3_",
    "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_",
    "MALLOC_", "GLIBC_TUNABLES", "LD_AUDIT", "LOADEDMODULES",
};
/* Of those, what launchers tell each rank or each start of a program: two equal jobs differ in them. */
static const char *const of_a_start[] = {
    "OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_initial_wdir", "OMPI_MCA_num_procs",
    "OMPI_MCA_cpu_type", "OMPI_MCA_PREFIXES", "MPICH_INTERFACE_HOSTNAME",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "I_MPI_MPIRUN", "I_MPI_HYDRA_UUID", "I_MPI_INFO_",
    "I_MPI_PIN_INFO", "HYDRA_BSTRAP_",
};
/* clang-format on */
#define COUNT(list) (sizeof(list) / sizeof *(list))

static struct entries own; /* where a name stands twice, getenv finds the first */

static bool begins_as_one_of(const char *variable, const char *const prefixes[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

char *variables_preloaded(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    Dl_info self;
    if (!preloaded || !dladdr(&witness, &self) || !self.dli_fname)
        return NULL;
    char *names = strdup(preloaded), *others = calloc(1, strlen(preloaded) + 1);
    bool found = false;
    for (char *name = names && others ? strtok(names, ": ") : NULL; name;
         name = strtok(NULL, ": ")) {
        if (strcmp(name, self.dli_fname) == 0 || strcmp(name, basename(self.dli_fname)) == 0) {
            found = true;
            continue;
        }
        if (*others)
            strcat(others, ":");
        strcat(others, name);
    }
    free(names);
    if (found)
        return others;
    free(others);
    return NULL;
}

void variables_before_init(void)
{
    if (own.text)
        return;
    FILE *out = open_memstream(&own.text, &own.size);
    if (!out)
        return;
    for (char **variable = environ; *variable; variable++)
        if (begins_as_one_of(*variable, steering, COUNT(steering)) &&
            !begins_as_one_of(*variable, of_a_start, COUNT(of_a_start)))
            fwrite(*variable, 1, strlen(*variable) + 1, out);
    char *others = variables_preloaded();
    if (others && *others)
        fprintf(out, "LD_PRELOAD=%s%c", others, '\0');
    free(others);
    fclose(out);
}

void variables_write(struct json *json)
{
    entries_write(json, &own);
}

char *variables_differing(void)
{
    return entries_differing(&own);
}
