#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

#define DEFINE(name) __typeof__(name) *assay_##name;
FOR_EACH_NAME(DEFINE)
#undef DEFINE

static const struct {
    const char *name;
    void *place;
} symbols[] = {
#define ENTRY(name) { #name, &assay_##name },
    FOR_EACH_NAME(ENTRY)
#undef ENTRY
};

/* Not in the headers of an MPI before version 5. */
static int (*abi_get_version)(int *major, int *minor);

/* In no mpi.h so far, but in one of Open MPI's own headers. */
static int (*comm_agree)(MPI_Comm comm, int *flag);
static int (*comm_revoke)(MPI_Comm comm);

static void bind_from(void *library)
{
    *(void **)&abi_get_version = dlsym(library, "PMPI_Abi_get_version");
    *(void **)&comm_agree = dlsym(library, "PMPIX_Comm_agree");
    *(void **)&comm_revoke = dlsym(library, "PMPIX_Comm_revoke");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        *(void **)symbols[i].place = dlsym(library, symbols[i].name);
}

static int note_name(struct dl_phdr_info *object, size_t size, void *names)
{
    (void)size;
    if (*object->dlpi_name)
        fwrite(object->dlpi_name, 1, strlen(object->dlpi_name) + 1, names);
    return 0;
}

/* A library that was loaded for itself alone. */
static bool try_library(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    bool found = dlsym(library, "PMPI_Init");
    if (found)
        bind_from(library);
    dlclose(library);
    return found;
}

/* Libraries are opened once all have been visited: a visit holds a lock, and another thread that opens
 * a library may wait for it with the lock that dlopen needs. */
bool bind_mpi(void)
{
    char *names = NULL;
    size_t size = 0;
    FILE *out = assay_PMPI_Init ? NULL : open_memstream(&names, &size);
    if (!out)
        return assay_PMPI_Init;
    dl_iterate_phdr(note_name, out);
    if (fclose(out) == 0)
        for (size_t at = 0; at < size && !try_library(names + at);)
            at += strlen(names + at) + 1;
    free(names);
    return assay_PMPI_Init;
}

bool bound_mpi_is_open(void)
{
    Dl_info where;
    return assay_PMPI_Initialized &&
           dladdr((const void *)(uintptr_t)assay_PMPI_Initialized, &where) && where.dli_sname &&
           strstr(where.dli_sname, "MPI_Initialized");
}

int bound_abi(void)
{
    int major = -1, minor = -1;
    if (abi_get_version)
        abi_get_version(&major, &minor);
    return major;
}

bool bound_agree(MPI_Comm comm, int *flag)
{
    return !comm_agree || comm_agree(comm, flag) == MPI_SUCCESS;
}

void bound_revoke(MPI_Comm comm)
{
    if (comm_revoke)
        comm_revoke(comm);
}

/* Before the constructors that look whose MPI it is. */
__attribute__((constructor(101))) static void bind_linked_mpi(void)
{
    bind_from(RTLD_DEFAULT);
}
