#include "control_in_caches.h"

#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>

#include "two_clocks.h"

/* Products of numbers, which lie in the second cache, with those of a vector in the first at places that
 * are read as well: as a sparse matrix has them, but in one loop, as how well a processor foresees the ends
 * of short ones depends on what else is in the program. It waits for all that kernels in caches wait for.
 * A loop in the widest vectors leaves most of a core to a neighbour. */
enum { PAGE = 4096, COLUMNS = 512, NUMBERS = 27 * COLUMNS, WINDOWS = 8 };

/* Seconds of a window: as of the kernels beside. */
static const double WINDOW = 0.5e-3;

struct control {
    long products; /* of a window */
    int column[NUMBERS];
    double value[NUMBERS], x[COLUMNS];
};

struct control *control_make(void)
{
    struct control *control = aligned_alloc(PAGE, (sizeof *control + PAGE - 1) / PAGE * PAGE);
    if (!control)
        return NULL;
    control->products = 1;
    for (int i = 0; i < NUMBERS; i++) {
        control->column[i] = (i / 27 + i % 27 * 19) % COLUMNS;
        control->value[i] = i % 7 - 3; /* whole numbers: their sums are exact in any order */
    }
    for (int i = 0; i < COLUMNS; i++)
        control->x[i] = i % 5 - 2;
    return control;
}

void control_free(struct control *control)
{
    free(control);
}

static double product(const struct control *control)
{
    const double *value = control->value, *x = control->x;
    const int *column = control->column;
    double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0; /* which do not wait for each other */
    for (int i = 0; i < NUMBERS; i += 4) {
        sum0 += value[i] * x[column[i]];
        sum1 += value[i + 1] * x[column[i + 1]];
        sum2 += value[i + 2] * x[column[i + 2]];
        sum3 += value[i + 3] * x[column[i + 3]];
    }
    return sum0 + sum1 + (sum2 + sum3);
}

/* The time of the slowest thread; negative seconds where a product was wrong or left out. */
static struct two_clocks run(const struct control *control)
{
    double slowest = 0, most = 0, sums = 0, made = 0;
    long threads = 0;
#pragma omp parallel reduction(max : slowest, most) reduction(+ : sums, made, threads)
    {
#pragma omp barrier
        struct instant start = two_clocks_now();
        for (long i = 0; i < control->products; i++) {
            sums += product(control);
            two_clocks_operation();
        }
        struct two_clocks took = two_clocks_between(start, two_clocks_now());
        slowest = took.seconds;
        most = took.most;
        made = took.made;
        threads = 1;
    }
    double expected = (double)(control->products * threads);
    bool is_right = made == expected && sums == expected * product(control);
    return (struct two_clocks){ .seconds = is_right ? slowest : -1, .most = most };
}

struct limit control_in_caches(struct control *control)
{
    double seconds[WINDOWS], longer[WINDOWS]; /* of an operation */
    for (;;) {
        bool are_long = true;
        double operations = 2.0 * NUMBERS * (double)control->products * omp_get_max_threads();
        for (int i = 0; i < WINDOWS; i++) {
            struct two_clocks took = run(control);
            if (took.seconds < 0)
                return (struct limit){ 0 };
            are_long = are_long && took.seconds >= WINDOW;
            seconds[i] = took.seconds / operations;
            longer[i] = took.most / operations;
        }
        if (are_long) /* one that others interrupt is so, however little it does */
            break;
        control->products *= 2;
    }
    return (struct limit){ .rate = 1 / windows_best(seconds, WINDOWS),
                           .least = 1 / windows_best(longer, WINDOWS) };
}
