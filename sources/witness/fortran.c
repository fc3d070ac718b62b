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
#include <sys/mman.h>
#include <unistd.h>

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

static const ElfW(Phdr) * segment_of(const struct dl_phdr_info *library, ElfW(Word) type)
{
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == type)
            return &library->dlpi_phdr[i];
    return NULL;
}

/* What the loader has made read-only after it had filled it in: it may hold the table. */
static bool protect(const struct dl_phdr_info *library, int protection)
{
    const ElfW(Phdr) *segment = segment_of(library, PT_GNU_RELRO);
    if (!segment)
        return true;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (library->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    uintptr_t end = (library->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
    return begin == end || mprotect((void *)begin, end - begin, protection) == 0;
}

/* Where the library refers to what; these are the tables of 64-bit machines. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * calls, *others;
    size_t calls_bytes, others_bytes;
};

static struct tables tables_of(const struct dl_phdr_info *library)
{
    struct tables tables = { 0 };
    const ElfW(Phdr) *segment = segment_of(library, PT_DYNAMIC);
    if (!segment)
        return tables;
    const ElfW(Dyn) *entry = (const void *)(library->dlpi_addr + segment->p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) value = entry->d_un.d_ptr;
        /* Most loaders have made these addresses, some have left them offsets. */
        const void *table =
            (const void *)(value < library->dlpi_addr ? library->dlpi_addr + value : value);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = table;
            break;
        case DT_STRTAB:
            tables.names = table;
            break;
        case DT_JMPREL:
            tables.calls = table;
            break;
        case DT_RELA:
            tables.others = table;
            break;
        case DT_PLTRELSZ:
            tables.calls_bytes = entry->d_un.d_val;
            break;
        case DT_RELASZ:
            tables.others_bytes = entry->d_un.d_val;
            break;
        }
    }
    return tables;
}

/* `witness`: what dlopen calls this library. A wrapper has the name without the P. */
static void redirect(const struct dl_phdr_info *library, const struct tables *tables,
                     const ElfW(Rela) * relocations, size_t bytes, void *witness)
{
    for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++) {
        const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocations[i].r_info)];
        const char *name = tables->names + symbol->st_name;
        void *wrapper = strncmp(name, "PMPI_", 5) == 0 ? dlsym(witness, name + 1) : NULL;
        if (wrapper)
            *(void **)(library->dlpi_addr + relocations[i].r_offset) = wrapper;
    }
}

static void redirect_library(const struct dl_phdr_info *library, void *witness)
{
    struct tables tables = tables_of(library);
    if (tables.symbols && tables.names && protect(library, PROT_READ | PROT_WRITE)) {
        redirect(library, &tables, tables.calls, tables.calls_bytes, witness);
        redirect(library, &tables, tables.others, tables.others_bytes, witness);
        protect(library, PROT_READ);
    }
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
        redirect_library(&found.libraries[i], witness);
    dlclose(witness);
}
