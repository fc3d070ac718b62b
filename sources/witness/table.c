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

/* Fills the rows of rank 0; all ranks take part. */
static int gather(const struct summary *summary, struct row rows[CALLS])
{
    double mine[CALLS][3], sums[CALLS][3], time[CALLS], min[CALLS], max[CALLS];
    for (int call = 0; call < CALLS; call++) {
        const struct total *total = &summary->totals[call];
        mine[call][0] = (double)total->count;
        mine[call][1] = (double)total->bytes;
        mine[call][2] = time[call] = total->time;
    }
    PMPI_Reduce(mine, sums, 3 * CALLS, MPI_DOUBLE, MPI_SUM, 0, witness.comm);
    PMPI_Reduce(time, min, CALLS, MPI_DOUBLE, MPI_MIN, 0, witness.comm);
    PMPI_Reduce(time, max, CALLS, MPI_DOUBLE, MPI_MAX, 0, witness.comm);
    int count = 0;
    for (int call = 0; witness.rank == 0 && call < CALLS; call++)
        if (sums[call][0] > 0)
            rows[count++] = (struct row){ (enum call)call, sums[call][0], sums[call][1],
                                          sums[call][2], min[call], max[call] };
    return count;
}

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

void table_print(const struct summary *summary)
{
    static struct row rows[CALLS];
    int count = gather(summary, rows);
    double mine[3] = { summary->wall * summary->threads, waited(summary), 0 }, sums[3], longest;
    for (int call = 0; call < CALLS; call++)
        mine[2] += summary->totals[call].time;
    PMPI_Reduce(mine, sums, 3, MPI_DOUBLE, MPI_SUM, 0, witness.comm);
    PMPI_Reduce(&summary->wall, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, witness.comm);
    if (witness.rank != 0)
        return;
    qsort(rows, (size_t)count, sizeof *rows, by_time);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out, "# assay witness: %d ranks, %.3f s, %.2f%% in MPI, %.2f%% waiting for other ranks\n",
            witness.ranks, longest, share(sums[2], sums[0]), share(sums[1], sums[0]));
    print_rows(out, rows, count, sums[2], sums[0]);
    /* In one piece, as other ranks may be writing too. */
    if (fclose(out) == 0)
        fwrite(text, 1, size, stderr);
    free(text);
}
