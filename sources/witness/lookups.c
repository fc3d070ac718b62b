/* MPI functions that a program looks up in a library by their names, as interpreters do for Python's
 * ctypes and Julia's ccall: what is preloaded has no say in that. So where dlsym finds a function of the
 * program's MPI, it returns the wrapper instead.
 *
 * All other lookups are as without: those in no particular library (RTLD_DEFAULT, RTLD_NEXT) go by the
 * place that they are made from, which is why dlsym is left by a jump; and what a tool or another MPI has
 * under such a name is its own. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "wrap.h"

#ifdef __GLIBC__ /* elsewhere the system's own could not be found */

typedef void *lookup_t(void *restrict library, const char *restrict name);

/* Of the first version that the machine has. */
static lookup_t *system_lookup(void)
{
    static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5",
                                            "GLIBC_2.27" };
    static _Atomic(lookup_t *) found;
    lookup_t *lookup = atomic_load_explicit(&found, memory_order_relaxed);
    for (size_t i = 0; !lookup && i < sizeof versions / sizeof *versions; i++)
        lookup = (lookup_t *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    atomic_store_explicit(&found, lookup, memory_order_relaxed);
    return lookup;
}

/* This library. */
static void *own_library(void)
{
    Dl_info self;
    return dladdr((const void *)(uintptr_t)own_library, &self)
               ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
               : NULL;
}

/* The wrapper of a function that the program's MPI has; NULL for all else. Its variables would be in the
 * way of the jump below. */
static __attribute__((noinline)) void *wrapper_of(lookup_t *lookup, const void *function,
                                                  const char *name)
{
    Dl_info its, mpi;
    if (!function || !bind_mpi() || !dladdr(function, &its) ||
        !dladdr((const void *)(uintptr_t)PMPI_Init, &mpi) || its.dli_fbase != mpi.dli_fbase ||
        !built_for_this_mpi())
        return NULL;
    void *own = own_library();
    void *wrapper = own ? lookup(own, name) : NULL;
    if (own)
        dlclose(own);
    return wrapper;
}

/* The last line becomes a jump (CMakeLists.txt). */
EXPORT void *dlsym(void *restrict library, const char *restrict name)
{
    lookup_t *lookup = system_lookup();
    if (library != RTLD_DEFAULT && library != RTLD_NEXT && strncmp(name, "MPI_", 4) == 0) {
        void *wrapper = wrapper_of(lookup, lookup(library, name), name);
        if (wrapper)
            return wrapper;
    }
    return lookup(library, name);
}

#endif
