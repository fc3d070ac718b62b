/* Where in the program calls come from, and in which phase of it.
 *
 * A site is the address that a call returns to, the call, and the phase that the program has begun by
 * MPI_Pcontrol. The report gives it as an object file's build id and an offset: no symbol is looked up
 * in the job. Where a call comes through a library of Fortran bindings, the site is where that
 * library's caller called it: such a library has frames of constant size, so the place of its return
 * address is looked for once, by unwinding, and then only read.
 *
 * To a site also belongs what the program computed before the call: what it spent outside MPI is then
 * told by lines, too. After the last call it is that of MPI_Finalize, which has a site and no tally. */
#ifndef ASSAY_SITES_H
#define ASSAY_SITES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "json.h"
#include "map.h"

/* All sites beyond so many count as one, number 0, which has no address. */
enum { SITES_MOST = 4096, SITES_NEAR = 64, PHASES_MOST = 64 };

struct site {
    uintptr_t address;
    enum call call;
    int phase;       /* an index of the phases, 0 outside all */
    uint16_t number; /* the same for all threads of the rank */
    /* In a library of bindings: from the caller's frame, the place of the address that this one
     * returns to, and the frame's size. 0 of a site in the program. */
    uint32_t beyond, frame;
    uint64_t count, timed, bytes;
    int64_t time; /* ticks, as that of a tally */
    int64_t computed; /* ticks, from the thread's last return from MPI to the call */
};

/* Those of a thread. */
struct sites {
    struct site *near[SITES_NEAR]; /* by a hash: those used last */
    struct map all;
};

extern atomic_int sites_phase;

static inline size_t site_place(uintptr_t address)
{
    return (address ^ address >> 6) % SITES_NEAR;
}

static inline bool site_is(const struct site *site, uintptr_t address, enum call call)
{
    return site && site->address == address && site->call == call &&
           site->phase == atomic_load_explicit(&sites_phase, memory_order_relaxed);
}

/* `frame`: the stack as it was before the call of the wrapper. NULL without memory. */
struct site *site_find(struct sites *sites, enum call call, uintptr_t address, uintptr_t frame);

/* The stack as it was before the call of the wrapper that this is in. Compilers that cannot say it give
 * NULL: then calls from a library of bindings are that library's. Clang's is off on some machines, by the
 * same for all calls of a wrapper, which does not matter. */
#if defined __has_builtin
#if __has_builtin(__builtin_dwarf_cfa)
#define STACK_BEFORE() ((uintptr_t)__builtin_dwarf_cfa())
#endif
#elif defined __GNUC__
#define STACK_BEFORE() ((uintptr_t)__builtin_dwarf_cfa())
#endif
#ifndef STACK_BEFORE
#define STACK_BEFORE() ((uintptr_t)0)
#endif

/* Of the wrapper that this becomes a part of. */
static inline __attribute__((always_inline)) struct site *site_here(struct sites *sites,
                                                                    enum call call)
{
    uintptr_t address = (uintptr_t)__builtin_return_address(0);
    struct site *site = sites->near[site_place(address)];
    if (site_is(site, address, call) && !site->frame)
        return site;
    return site_find(sites, call, address, STACK_BEFORE());
}

/* Adds what a thread's sites have to the rank's, and empties them. `scales`: by which the time of each
 * call has to be multiplied. */
void sites_move(struct sites *sites, const double scales[CALLS]);
size_t sites_bytes(const struct sites *sites);

/* Numbers are below this. */
int sites_count(void);

struct site_waits;
/* `waits`: of each number; NULL for none. */
void sites_write(struct json *json, const struct site_waits *waits);
void phases_write(struct json *json);
void phases_end(int64_t now);

#endif
