/* What a core does in its own caches, whatever flags but -m... the suite was built with: a control beside
 * kernels in caches.
 *
 * A neighbour on the other hardware thread of a core takes 11 to 29% of such kernels for as long as it
 * computes, and no guest is told of it. The control meets it as well. */
#ifndef ASSAY_CONTROL_IN_CACHES_H
#define ASSAY_CONTROL_IN_CACHES_H

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL where there is no memory. */
struct control *control_make(void);
void control_free(struct control *control);

/* Floating-point operations per second of this rank's threads, in its best windows of 0.5 ms, each as
 * long as its slowest thread; 0 where a product was wrong. */
struct limit control_in_caches(struct control *control);

#ifdef __cplusplus
}
#endif

#endif
