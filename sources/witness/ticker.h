/* A number that goes up every 5 ms: a clock that costs as little to read as any other number.
 *
 * It is set by a thread of its own that sleeps; it runs only in ranks that had a burst of calls. */
#ifndef ASSAY_TICKER_H
#define ASSAY_TICKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TICKER_NS = 5000000 };

extern _Atomic uint32_t ticker;

static inline uint32_t ticker_now(void)
{
    return atomic_load_explicit(&ticker, memory_order_relaxed);
}

/* Starts it unless it runs; false where there can be no such thread. */
bool ticker_start(void);
void ticker_stop(void);

#endif
