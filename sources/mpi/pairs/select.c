#include "select.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Read as whole numbers, doubles that are not negative have the same order. */
static uint64_t order_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double select_smallest(MPI_Comm comm, const double *values, int count, long long k)
{
    /* From the highest byte down: how many values have the bytes found so far, and which next. */
    uint64_t found = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        long long with[256] = { 0 };
        for (int i = 0; i < count; i++) {
            uint64_t order = order_of(values[i]);
            if (shift == 56 || order >> (shift + 8) == found)
                with[order >> shift & 0xff]++;
        }
        MPI_Allreduce(MPI_IN_PLACE, with, 256, MPI_LONG_LONG, MPI_SUM, comm);
        unsigned byte = 0;
        for (; byte < 255 && k >= with[byte]; byte++)
            k -= with[byte];
        found = found << 8 | byte;
    }
    double value;
    memcpy(&value, &found, sizeof value);
    return value;
}

struct usual select_usual(MPI_Comm comm, const double *values, int count, long long all)
{
    static const double LEAST = 0.25, DEVIATIONS = 6, NORMAL = 1.4826;
    long long middle = (all - 1) / 2;
    double median = select_smallest(comm, values, count, middle);
    double off[SELECT_MOST];
    for (int i = 0; i < count; i++)
        off[i] = fabs(values[i] - median);
    double deviation = NORMAL * select_smallest(comm, off, count, middle);
    return (struct usual){ median, median + fmax(LEAST * median, DEVIATIONS * deviation) };
}
