/* Order statistics of a sample of times. No distribution is assumed. */
#ifndef ASSAY_STATS_H
#define ASSAY_STATS_H

#include <stdbool.h>

struct stats {
    double min;
    double best; /* what the machine does when it is let (windows.h): the first decile */
    double median;          /* mean of the two middle values when the number is even */
    double p95; /* nearest rank: the smallest value with at least 95% at or below it */
    double ci_low, ci_high; /* 95% confidence interval of the median */
    double mean;
    struct stats_place {
        int shorter, within; /* values less than it, and no greater */
    } best_place, median_place;
};

/* The fewest values that carry a 95% interval of the median: 2 * 0.5^6 = 3.1% < 5% < 2 * 0.5^5. */
enum { STATS_FEWEST = 6 };

/* The largest rank r (1-based) for which the r-th smallest and the r-th largest of n independent
 * values enclose the median of their distribution with a probability of at least 95%:
 * P(Binomial(n, 1/2) < r) <= 2.5%. (David and Nagaraja, Order Statistics, section 7.1.)
 * 0 when n < STATS_FEWEST. */
int stats_interval_rank(int n);

/* Sorts `values` and summarises them. n > 0; below STATS_FEWEST the interval is the range. */
struct stats stats_of(double *values, int n);

/* Half the width of the interval, relative to the median. */
double stats_uncertainty(const struct stats *of);

/* Whether a value is the median of others, but for rounding. */
bool stats_is_median(double value, const double *values, int n);

#endif
