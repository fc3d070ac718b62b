#include "references.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

struct change {
    const struct dl_phdr_info *library;
    references_instead *instead;
    void *witness;
    bool is_open; /* for writing */
};

static void change_table(struct change *change, const struct tables *tables,
                         const ElfW(Rela) * relocations, size_t bytes)
{
    for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++) {
        size_t number = ELF64_R_SYM(relocations[i].r_info);
        const ElfW(Sym) *symbol = &tables->symbols[number];
        const char *name = tables->names + symbol->st_name;
        if (!number || !(strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0))
            continue;
        void **place = (void **)(change->library->dlpi_addr + relocations[i].r_offset);
        bool is_weak = ELF64_ST_BIND(symbol->st_info) == STB_WEAK && symbol->st_shndx == SHN_UNDEF;
        void *instead = change->instead(name, is_weak, *place, change->witness);
        if (instead == *place)
            continue;
        if (!change->is_open && !protect(change->library, PROT_READ | PROT_WRITE))
            return;
        change->is_open = true;
        *place = instead;
    }
}

void references_change(const struct dl_phdr_info *library, references_instead *instead,
                       void *witness)
{
    struct tables tables = tables_of(library);
    struct change change = { .library = library, .instead = instead, .witness = witness };
    if (!tables.symbols || !tables.names)
        return;
    change_table(&change, &tables, tables.calls, tables.calls_bytes);
    change_table(&change, &tables, tables.others, tables.others_bytes);
    if (change.is_open)
        protect(library, PROT_READ);
}

/* Programs and libraries tell by a weak reference whether there is an MPI, or whether it has a call
 * (`if (MPI_Init)`). The witness has all names: one that the MPI does not have has to stay nothing. */
static void *nothing_instead(const char *name, bool is_weak, void *now, void *witness)
{
    char layer[128];
    if (!is_weak || !now || *name == 'P' || now != dlsym(witness, name) ||
        snprintf(layer, sizeof layer, "P%s", name) >= (int)sizeof layer)
        return now;
    return dlsym(RTLD_DEFAULT, layer) ? now : NULL;
}

static int note(struct dl_phdr_info *library, size_t size, void *out)
{
    (void)size;
    fwrite(library, sizeof *library, 1, out);
    return 0;
}

/* The loader has done all its work on the libraries by now, and none of the program's code ran. */
__attribute__((constructor)) static void leave_weak_references(void)
{
    Dl_info self;
    char *noted = NULL;
    size_t size = 0;
    void *witness = dladdr((const void *)(uintptr_t)leave_weak_references, &self)
                        ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                        : NULL;
    FILE *out = witness ? open_memstream(&noted, &size) : NULL;
    if (out) {
        dl_iterate_phdr(note, out);
        if (fclose(out) != 0)
            size = 0;
        for (size_t at = 0; at + sizeof(struct dl_phdr_info) <= size;
             at += sizeof(struct dl_phdr_info))
            references_change((const void *)(noted + at), nothing_instead, witness);
        free(noted);
    }
    if (witness)
        dlclose(witness);
}
