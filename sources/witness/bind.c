#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

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

static void bind_from(void *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        *(void **)symbols[i].place = dlsym(library, symbols[i].name);
}

/* A library that was loaded for itself alone. */
static int try_library(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size, (void)context;
    void *library = *object->dlpi_name ? dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!library)
        return 0;
    bool found = dlsym(library, "PMPI_Init");
    if (found)
        bind_from(library);
    dlclose(library);
    return found;
}

bool bind_mpi(void)
{
    if (!assay_PMPI_Init)
        dl_iterate_phdr(try_library, NULL);
    return assay_PMPI_Init;
}

/* Before the constructors that look whose MPI it is. */
__attribute__((constructor(101))) static void bind_linked_mpi(void)
{
    bind_from(RTLD_DEFAULT);
}
