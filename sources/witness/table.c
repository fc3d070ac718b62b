#include "table.h"

#include <stdio.h>
#include <stdlib.h>

/* One call over all ranks; times in s. */
struct row {
    enum call call;
    double count, bytes, sum, min, max;
};

static int by_time(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->sum < b->sum) - (a->sum > b->sum);
}

/* What ranks add up, and of what the most is asked for: the least is the most of the negative. */
struct sums {
    double count[CALLS], bytes[CALLS], time[CALLS], wall, waited;
};
struct extremes {
    double most[CALLS], negative_least[CALLS], wall;
};

static double share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* Rank-seconds in which ranks waited for others, the rest of what they analysed counted alike. */
static double waited(const struct summary *summary)
{
    double seconds = 0;
    for (int call = 0; call < CALLS; call++) {
        const struct waits *waits = &summary->waits[call];
        double late = waits->imbalance + waits->late_sender + waits->late_receiver;
        if (waits->analysed > 0)
            seconds += late / waits->analysed * summary->totals[call].time;
    }
    return seconds;
}

static void print_rows(FILE *out, const struct row *rows, int count, double mpi, double wall)
{
    fprintf(out, "# %-26s %12s %12s %6s %6s %11s %11s %11s %12s\n", "call", "count", "time", "%MPI",
            "%wall", "min/rank", "avg/rank", "max/rank", "bytes");
    for (int i = 0; i < count; i++)
        fprintf(out, "# %-26s %12.0f %12.6f %6.2f %6.2f %11.6f %11.6f %11.6f %12.0f\n",
                call_name(rows[i].call), rows[i].count, rows[i].sum, share(rows[i].sum, mpi),
                share(rows[i].sum, wall), rows[i].min, rows[i].sum / witness.ranks, rows[i].max,
                rows[i].bytes);
}

/* All ranks' sums and extremes, on rank 0. */
static void gather(const struct summary *summary, struct sums *sums, struct extremes *extremes)
{
    struct sums mine = { .wall = summary->wall * summary->threads, .waited = waited(summary) };
    struct extremes own = { .wall = summary->wall };
    for (int call = 0; call < CALLS; call++) {
        const struct total *total = &summary->totals[call];
        mine.count[call] = (double)total->count;
        mine.bytes[call] = (double)total->bytes;
        mine.time[call] = own.most[call] = total->time;
        own.negative_least[call] = -total->time;
    }
    PMPI_Reduce(&mine, sums, sizeof mine / sizeof(double), MPI_DOUBLE, MPI_SUM, 0, witness.comm);
    PMPI_Reduce(&own, extremes, sizeof own / sizeof(double), MPI_DOUBLE, MPI_MAX, 0, witness.comm);
}

static int fill(const struct sums *sums, const struct extremes *extremes, struct row rows[CALLS])
{
    int count = 0;
    for (int call = 0; call < CALLS; call++)
        if (sums->count[call] > 0)
            rows[count++] = (struct row){ (enum call)call,
                                          sums->count[call],
                                          sums->bytes[call],
                                          sums->time[call],
                                          -extremes->negative_least[call],
                                          extremes->most[call] };
    qsort(rows, (size_t)count, sizeof *rows, by_time);
    return count;
}

void table_print(const struct summary *summary)
{
    static struct row rows[CALLS];
    struct sums sums;
    struct extremes extremes;
    gather(summary, &sums, &extremes);
    if (witness.rank != 0)
        return;
    int count = fill(&sums, &extremes, rows);
    double mpi = 0;
    for (int i = 0; i < count; i++)
        mpi += rows[i].sum;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out,
            "# assay witness: %d ranks, %.3f s, %.2f%% in MPI, %.2f%% waiting for other ranks\n",
            witness.ranks, extremes.wall, share(mpi, sums.wall), share(sums.waited, sums.wall));
    print_rows(out, rows, count, mpi, sums.wall);
    if (fclose(out) == 0)
        witness_say("%s", text);
    free(text);
}
