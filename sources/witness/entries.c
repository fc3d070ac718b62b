#include "entries.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "witness.h"

static const char *next(const struct entries *entries, const char *entry)
{
    const char *after = entry ? entry + strlen(entry) + 1 : entries->text;
    return entries->text && after < entries->text + entries->size ? after : NULL;
}

/* The entry of the same name. */
static const char *counterpart(const struct entries *entries, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (const char *entry = next(entries, NULL); entry; entry = next(entries, entry))
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

void entries_write(struct json *json, const struct entries *entries)
{
    for (const char *entry = next(entries, NULL); entry; entry = next(entries, entry))
        if (counterpart(entries, entry) == entry)
            write_entry(json, entry, true);
}

static char *differing_from(const struct entries *own, const struct entries *first)
{
    struct json *json = json_memory();
    bool any = false;
    for (const char *entry = next(own, NULL); entry; entry = next(own, entry)) {
        const char *other = counterpart(first, entry);
        if (counterpart(own, entry) != entry || (other && strcmp(other, entry) == 0))
            continue;
        write_entry(json, entry, true);
        any = true;
    }
    for (const char *entry = next(first, NULL); entry; entry = next(first, entry)) {
        if (counterpart(first, entry) != entry || counterpart(own, entry))
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

char *entries_differing(const struct entries *own)
{
    uint64_t size = own->text ? own->size : 0;
    PMPI_Bcast(&size, 1, MPI_UINT64_T, 0, witness.comm);
    /* A rank without memory takes part all the same. */
    char *text = witness.rank == 0 ? own->text : malloc(size + 1);
    int can = text || !size, all_can;
    PMPI_Allreduce(&can, &all_can, 1, MPI_INT, MPI_MIN, witness.comm);
    if (all_can && size)
        PMPI_Bcast(text, (int)size, MPI_CHAR, 0, witness.comm);
    if (witness.rank == 0)
        return NULL;
    struct entries first = { text, (size_t)size };
    char *differing = all_can ? differing_from(own, &first) : NULL;
    free(text);
    return differing;
}
