#include "stats.h"

#include <math.h>

#include "windows.h"

int stats_interval_rank(int n)
{
    double below = 0; /* P(Binomial(n, 1/2) < rank) */
    int rank = 0;
    for (;;) {
        below += exp(lgamma(n + 1.0) - lgamma(rank + 1.0) - lgamma(n - rank + 1.0) -
                     n * 0.69314718055994530942);
        if (below > 0.025)
            return rank;
        rank++;
    }
}

/* Counted, where it was chosen by its place in the order: a reader holds one against the other. */
static struct stats_place place_of(double value, const double *values, int n)
{
    struct stats_place place = { 0, 0 };
    for (int i = 0; i < n; i++) {
        place.shorter += values[i] < value;
        place.within += values[i] <= value;
    }
    return place;
}

bool stats_is_median(double value, const double *values, int n)
{
    static const double ROUNDING = 1e-12;
    int shorter = place_of(value * (1 - ROUNDING), values, n).shorter;
    int within = place_of(value * (1 + ROUNDING), values, n).within;
    return 2 * shorter <= n && n <= 2 * within;
}

double stats_uncertainty(const struct stats *of)
{
    return (of->ci_high - of->ci_low) / 2 / of->median;
}

struct stats stats_of(double *values, int n)
{
    double best = windows_best(values, n); /* which sorts them */
    int rank = n < STATS_FEWEST ? 1 : stats_interval_rank(n);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    return (struct stats){
        .min = values[0],
        .best = best,
        .median = median,
        .p95 = values[(95 * n + 99) / 100 - 1],
        .ci_low = values[rank - 1],
        .ci_high = values[n - rank],
        .mean = sum / n,
        .best_place = place_of(best, values, n),
        .median_place = place_of(median, values, n),
    };
}
