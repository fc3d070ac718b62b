/* What a rank's cores and memory give, each taken for a while: work over time, interruptions and
 * all. The ranks of a host measure at the same time, and their rates add up. */
#ifndef ASSAY_MEASURES_H
#define ASSAY_MEASURES_H

#include <stddef.h>

#include "two_clocks.h"

enum measure { TRIAD, DGEMM, FREQUENCY, MEASURES };

/* As reports name them. */
extern const char *const measure_names[MEASURES];

/* Bytes that a rank's arrays and matrices take. */
size_t measures_bytes(size_t elements, int n);

/* Takes memory for three arrays of so many elements and three matrices of order n, and touches it.
 * Aborts the job without it. */
void measures_start(size_t elements, int n);

/* For `seconds`: bytes per second of the triad, counted as STREAM counts; floating-point operations
 * per second of a matrix product; cycles per second of the slowest thread's core, of which slices of
 * a millisecond with no interruption tell. */
double measures_take(enum measure measure, double seconds);

/* What interrupted the threads while their frequency was measured last: the kernel, interrupts, other
 * processes, the hypervisor. Each call of the chain is held against the shortest of its millisecond
 * or of the one before, so a clock that changes is none of it, nor what slows every call. */
struct noise {
    double share;   /* of the time, of the thread that lost most; 0 where none did */
    double longest; /* seconds of the longest interruption of a thread */
    double all;     /* shares of all threads, added up */
    double threads;
    double others; /* of its time, in which that thread was ready, and others had its CPU */
    double cpu; /* of that thread, in the end */
};
enum { NOISE_DOUBLES = sizeof(struct noise) / sizeof(double) };

struct noise measures_noise(void);

/* What whoever reads the rates holds them against, of all measurements since the last call: sums. */
struct account {
    struct {
        double work;     /* bytes, operations, cycles */
        double passes;   /* or additions, as the chain counted them */
        double by_rates; /* work again, by the rates and their times */
        double rates;
    } of[MEASURES];
    struct two_clocks clocks; /* of all threads that measured by themselves */
};
enum { ACCOUNT_DOUBLES = sizeof(struct account) / sizeof(double) };

/* Of this rank; begins a new one. */
struct account measures_account(void);

/* A word on what came out wrong, NULL if all is right; releases the memory. */
const char *measures_end(void);

#endif
