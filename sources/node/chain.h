/* A chain of integer additions of which each waits for the one before.
 *
 * An addition of two registers takes one cycle on every x86-64 and AArch64 CPU there is, so additions
 * per second are cycles per second. (Not of a register and a constant: the latest CPUs take several
 * of those in one cycle.) */
#ifndef ASSAY_CHAIN_H
#define ASSAY_CHAIN_H

/* Of one call: so many cycles between looks at the clock, which cost 100 of them. */
enum { CHAIN_ADDITIONS = 80000 };

/* Adds so often. Give it what it returned before, so that the compiler leaves it in. */
long chain(long sum, long addend);

#endif
