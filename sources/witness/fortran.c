/* Fortran programs: their calls go through the C wrappers.
 *
 * The libraries of the Fortran bindings translate what they are called with, and then call the C
 * library. Some call MPI_Send, and so the wrapper of that name. Others call PMPI_Send, which passes
 * the wrapper by: Open MPI's do always, MPICH's and Intel MPI's in mpi_f08 wherever there is no
 * buffer among the arguments, even in MPI_Init. So where such a library refers to PMPI_Send, the
 * witness puts its own MPI_Send: into the library's global offset table, before the program starts.
 * Handles, statuses, constants such as MPI_IN_PLACE, and all ways in which compilers spell
 * mpi_send, are left to the library, and nothing is counted twice.
 *
 * Fortran bindings that the program opens itself while it runs (dlopen) are not seen. */
#include "fortran.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "references.h"

/* Of the MPI that the witness was built for: handles mean something else in another. */
#ifdef OPEN_MPI
static const char *const bindings[] = { "/libmpi_mpifh", "/libmpi_usempi" };
#else
static const char *const bindings[] = { "/libmpifort", "/libmpichfort" };
#endif

static bool is_binding(const char *path)
{
    const char *file = strrchr(path, '/');
    for (size_t i = 0; file && i < sizeof bindings / sizeof *bindings; i++)
        if (strncmp(file, bindings[i], strlen(bindings[i])) == 0)
            return true;
    return false;
}

/* A wrapper has the name without the P. */
static void *wrapper_instead(const char *name, bool is_weak, void *now, void *witness)
{
    (void)is_weak;
    void *wrapper = *name == 'P' ? dlsym(witness, name + 1) : NULL;
    return wrapper ? wrapper : now;
}

static struct found {
    struct dl_phdr_info libraries[8]; /* no MPI has as many */
    size_t count;
} found;

bool fortran_is_binding(uintptr_t address)
{
    for (size_t i = 0; i < found.count; i++) {
        const struct dl_phdr_info *library = &found.libraries[i];
        for (int j = 0; j < library->dlpi_phnum; j++) {
            const ElfW(Phdr) *segment = &library->dlpi_phdr[j];
            if (segment->p_type == PT_LOAD &&
                address - library->dlpi_addr - segment->p_vaddr < segment->p_memsz)
                return true;
        }
    }
    return false;
}

/* They are looked into later: a visit holds a lock that dlsym must not be called with (bind.c). */
static int visit(struct dl_phdr_info *library, size_t size, void *context)
{
    (void)size, (void)context;
    if (is_binding(library->dlpi_name) &&
        found.count < sizeof found.libraries / sizeof *found.libraries)
        found.libraries[found.count++] = *library;
    return 0;
}

/* The loader has done all its work on the libraries by now, and none of the program's code ran. */
__attribute__((constructor)) static void redirect_bindings(void)
{
    Dl_info self;
    if (!dladdr((const void *)(uintptr_t)redirect_bindings, &self))
        return;
    void *witness = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!witness)
        return;
    dl_iterate_phdr(visit, NULL);
    for (size_t i = 0; i < found.count; i++)
        references_change(&found.libraries[i], wrapper_instead, witness);
    dlclose(witness);
}
