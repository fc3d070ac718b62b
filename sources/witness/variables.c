#include "variables.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "witness.h"

extern char **environ;

/* clang-format off */
static const char *const steering[] = {
    "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "HYDRA_", "MV2_", "MVP_",
    "UCX_", "UCC_", "HCOLL_", "SHARP_", "FI_", "PSM_", "PSM2_", "PSM3_",
    "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_",
    "MALLOC_", "GLIBC_TUNABLES", "LOADEDMODULES",
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

/* NAME=VALUE, each with its '\0', one after the other. */
struct block {
    char *text;
    size_t size;
};
static struct block own;

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

static const char *next(const struct block *block, const char *entry)
{
    const char *after = entry ? entry + strlen(entry) + 1 : block->text;
    return block->text && after < block->text + block->size ? after : NULL;
}

/* The entry of the same name. */
static const char *counterpart(const struct block *block, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (const char *entry = next(block, NULL); entry; entry = next(block, entry))
        if (strncmp(entry, variable, length) == 0)
            return entry;
    return NULL;
}

/* `value`: whether it has one, or is null. */
static void write_entry(struct json *json, const char *variable, bool value)
{
    size_t length = strcspn(variable, "=");
    char *name = strndup(variable, length);
    if (name && value)
        json_string(json, name, variable + length + 1);
    else if (name)
        json_raw(json, name, "null");
    free(name);
}

void variables_write(struct json *json)
{
    for (const char *entry = next(&own, NULL); entry; entry = next(&own, entry))
        if (counterpart(&own, entry) == entry) /* the first one of a name is what getenv finds */
            write_entry(json, entry, true);
}

static char *differing_from(const struct block *first)
{
    struct json *json = json_memory();
    bool any = false;
    for (const char *entry = next(&own, NULL); entry; entry = next(&own, entry)) {
        const char *other = counterpart(first, entry);
        if (counterpart(&own, entry) != entry || (other && strcmp(other, entry) == 0))
            continue;
        write_entry(json, entry, true);
        any = true;
    }
    for (const char *entry = next(first, NULL); entry; entry = next(first, entry)) {
        if (counterpart(first, entry) != entry || counterpart(&own, entry))
            continue;
        write_entry(json, entry, false);
        any = true;
    }
    char *text = json_text(json);
    if (any)
        return text;
    free(text);
    return NULL;
}

char *variables_differing(void)
{
    uint64_t size = own.text ? own.size : 0;
    PMPI_Bcast(&size, 1, MPI_UINT64_T, 0, witness.comm);
    /* A rank without memory takes part all the same. */
    char *text = witness.rank == 0 ? own.text : malloc(size + 1);
    int can = text || !size, all_can;
    PMPI_Allreduce(&can, &all_can, 1, MPI_INT, MPI_MIN, witness.comm);
    if (all_can && size)
        PMPI_Bcast(text, (int)size, MPI_CHAR, 0, witness.comm);
    if (witness.rank == 0)
        return NULL;
    struct block first = { text, (size_t)size };
    char *differing = all_can ? differing_from(&first) : NULL;
    free(text);
    return differing;
}
