/* What the machine does when it is let: the best of many windows of a loop.
 *
 * A machine that others share takes time away from a loop, and never gives any back. So the windows
 * that were not interrupted say what the program does, and the whole says how quiet it was beside. */
#ifndef ASSAY_WINDOWS_H
#define ASSAY_WINDOWS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The first decile of the times of `count` > 0 windows of equal work, by the nearest rank; sorts
 * them. A single window is not trusted where there are more: clocks step. */
double windows_best(double *seconds, long count);

/* What a machine does in a second, in the best windows, and what was done in their longer times by
 * another clock, which is no more. Fractions of a limit that is less would be too good: readers look. */
struct limit {
    double rate, least;
};

#ifdef __cplusplus
}
#endif

#endif
