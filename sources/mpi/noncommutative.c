/* noncommutative: reductions with an operation whose order counts, checked; nothing is timed.
 *
 * MPI_Op_create takes operations that are associative alone, and MPI promises their results in the
 * order of ranks. Some algorithms change that order: an MPI takes others for such an operation by
 * itself, and may not where it was told which to take. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "memory.h"
#include "sizes.h"

enum op { REDUCE, ALLREDUCE, REDUCE_SCATTER, OPS };
static const char *const op_names[] = { "reduce", "allreduce", "reduce_scatter", NULL };

static const struct bench_about about = {
    .program = "noncommutative",
    .purpose = "reductions with an operation whose order counts, checked",
    .text =
        "Elements are maps x -> a x + b modulo a prime, one after the other: 8 bytes each. Sizes\n"
        "are those of collectives.\n",
    .examples = "  mpirun -n 4 noncommutative\n"
                "  mpirun -n 64 noncommutative --op allreduce --max 64K\n",
    .min_ranks = 2,
};

static unsigned chosen_ops = (1u << OPS) - 1;
static size_t smallest = 8, largest = (size_t)1 << 20;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "op", .kind = OPTION_CHOICES, .value = &chosen_ops, .argument = "LIST",
      .choices = op_names, .help = "what to check" },
    SIZES_OPTIONS(smallest, largest, 8, "size, a multiple of 8"),
    { .name = NULL },
};
/* clang-format on */

/* x -> a x + b. Elements repeat after a period that no block of a power of two is a multiple of. */
struct map {
    int a, b;
};
enum { PRIME = 1009, PERIOD = 1009 };

static struct map element(int rank, size_t index)
{
    index %= PERIOD;
    return (struct map){ .a = 1 + (int)((index * 7 + (size_t)rank * 31 + 3) % (PRIME - 1)),
                         .b = (int)((index * 5 + (size_t)rank * 17 + 1) % PRIME) };
}

/* First the map of the lower ranks. */
static struct map both(struct map lower, struct map higher)
{
    return (struct map){ .a = lower.a * higher.a % PRIME,
                         .b = (higher.a * lower.b + higher.b) % PRIME };
}

/* MPI's own type of an operation: the second operand is the result. */
static void combine(void *lower, void *higher, int *count, MPI_Datatype *type)
{
    (void)type;
    const struct map *first = lower;
    struct map *second = higher;
    for (int i = 0; i < *count; i++)
        second[i] = both(first[i], second[i]);
}

/* Of all ranks together. */
static struct map expected[PERIOD];

/* Aborts the job if the order does not count: then nothing would be checked. */
static void expect(void)
{
    size_t same = 0;
    for (size_t i = 0; i < PERIOD; i++) {
        struct map reversed = element(0, i);
        expected[i] = reversed;
        for (int rank = 1; rank < bench.ranks; rank++) {
            expected[i] = both(expected[i], element(rank, i));
            reversed = both(element(rank, i), reversed);
        }
        same += expected[i].a == reversed.a && expected[i].b == reversed.b;
    }
    if (same > PERIOD / 2)
        bench_abort(EXIT_BROKEN, "of %d elements %zu are the same in any order", PERIOD, same);
}

static void check(enum op which, size_t size, MPI_Op op, MPI_Datatype type, struct map *send,
                  struct map *receive)
{
    size_t count = size / sizeof *send, first = 0;
    bool has_result = true;
    for (size_t i = 0; i < count; i++)
        receive[i] = (struct map){ .a = -1, .b = -1 };
    if (which == REDUCE) {
        MPI_Reduce(send, receive, (int)count, type, op, 0, MPI_COMM_WORLD);
        has_result = bench.rank == 0;
    } else if (which == ALLREDUCE) {
        MPI_Allreduce(send, receive, (int)count, type, op, MPI_COMM_WORLD);
    } else {
        MPI_Reduce_scatter_block(send, receive, (int)count, type, op, MPI_COMM_WORLD);
        first = count * (size_t)bench.rank;
    }
    for (size_t i = 0; has_result && i < count; i++) {
        struct map wanted = expected[(first + i) % PERIOD];
        if (receive[i].a != wanted.a || receive[i].b != wanted.b)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "%s of %zu bytes gave a wrong result in element %zu: the order of ranks "
                        "was not kept",
                        op_names[which], size, i);
    }
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    if (smallest > largest || smallest % 8 || largest % 8)
        bench_refuse(
            "--min %zu and --max %zu must be multiples of 8, the first not above the second",
            smallest, largest);
    size_t elements = largest / sizeof(struct map) * (size_t)bench.ranks;
    memory_require(elements * sizeof(struct map) + largest, "use a smaller --max or fewer ranks");
    struct map *send = memory_allocate(elements * sizeof *send);
    struct map *receive = memory_allocate(largest);
    for (size_t i = 0; i < elements; i++)
        send[i] = element(bench.rank, i);
    expect();

    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(combine, 0, &op);
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (commutes)
        bench_abort(EXIT_BROKEN, "the operation was made as one whose order does not count");
    for (int which = 0; which < OPS; which++) {
        if (!(chosen_ops & 1u << which))
            continue;
        for (size_t size = smallest;; size = sizes_next(size, largest)) {
            check((enum op)which, size, op, type, send, receive);
            if (size >= largest)
                break;
        }
        if (bench.rank == 0)
            printf("%-15s %10zu to %zu bytes: in the order of ranks\n", op_names[which], smallest,
                   largest);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    free(send);
    free(receive);
    return bench_end();
}
