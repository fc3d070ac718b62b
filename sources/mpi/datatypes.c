/* datatypes: data that lies in pieces, sent by a derived datatype, by MPI_Pack, and packed by hand.
 *
 * Rank 0 and the last rank bounce a message. The last rank returns it from where it arrived, so that
 * each way of it takes the data out of one array and puts it into another. What is measured stands in
 * the help text below.
 *
 * Payload: each message differs from the one before in its first, its last and one more element, and
 * rank 0 looks for these in each that returns: who packs once for all, or not all of it, is found. The
 * last message of each batch is checked whole on both ranks, outside the time, and so is all that lies
 * between the pieces and around them: it differs on the two, and nothing may be written there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"
#include "pair.h"
#include "patience.h"
#include "payload.h"
#include "sample.h"

static const struct bench_about about = {
    .program = "datatypes",
    .purpose = "data that lies in pieces, by derived datatype, by MPI_Pack, and packed by hand",
    .text =
        "Layouts of doubles in memory; the size is that of the data without what lies between:\n"
        "  vector   every other one (MPI_Type_vector).\n"
        "  indexed  single ones with gaps of one to four (MPI_Type_create_indexed_block).\n"
        "  face     two layers of a 3-D array, normal to its contiguous dimension\n"
        "           (MPI_Type_create_subarray).\n"
        "Methods:\n"
        "  datatype MPI_Send and MPI_Recv of the datatype.\n"
        "  pack     MPI_Pack, a message of MPI_PACKED, MPI_Unpack.\n"
        "  hand     loops that copy to a buffer and from it, and a message of doubles.\n"
        "Time: half a round trip between the first and the last rank, from array to array.\n"
        "Bandwidth is the data over it. \"of hand\" is the time by hand over that of the method.\n",
    .examples = "  mpirun -n 2 datatypes\n"
                "  mpirun -n 2 datatypes --layout vector --sizes 64,65536 --json datatypes.json\n",
    .min_ranks = 2,
};

enum layout { VECTOR, INDEXED, FACE, LAYOUTS };
static const char *const layout_names[] = { "vector", "indexed", "face", NULL };
enum method { DATATYPE, PACK, HAND, METHODS };
static const char *const method_names[] = { "datatype", "pack", "hand", NULL };

enum { LARGEST = 64 << 20 };

static unsigned chosen_layouts = (1u << LAYOUTS) - 1, chosen_methods = (1u << METHODS) - 1;
static struct option_numbers sizes = { .values = { 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20 },
                                       .count = 5 };
static long patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "layout", .kind = OPTION_CHOICES, .value = &chosen_layouts, .argument = "LIST",
      .choices = layout_names, .help = "how the data lies in memory" },
    { .name = "method", .kind = OPTION_CHOICES, .value = &chosen_methods, .argument = "LIST",
      .choices = method_names, .help = "how it becomes a message" },
    { .name = "sizes", .kind = OPTION_NUMBERS, .value = &sizes, .argument = "LIST", .low = 32,
      .high = LARGEST, .help = "bytes of the data, multiples of 16" },
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

/* Layouts -------------------------------------------------------------------------------------- */

enum {
    STRIDE = 2, /* of the vector */
    MOST_STEP = 5, /* from an element of the indexed layout to the next */
    DEPTH = 2, /* layers of the face */
    ROW = 8, /* elements of the array's contiguous dimension */
    GUARD = 8, /* elements before and behind an array, which nobody may write */
};

/* Data in an array, all numbers in elements. */
struct shape {
    enum layout layout;
    size_t count; /* that are sent */
    int planes, rows; /* of the face; the array has one more on each side */
    size_t span; /* of the array */
    MPI_Datatype type;
};

/* Of the indexed layout; a smaller one has the first of them. */
static int *places;

static void list_places(size_t count)
{
    places = memory_allocate(count * sizeof *places);
    unsigned random = 1;
    for (size_t i = 1; i < count; i++) {
        random = random * 1664525u + 1013904223u; /* Numerical Recipes, second edition, 7.1 */
        places[i] = places[i - 1] + 2 + (int)(random >> 16) % (MOST_STEP - 1);
    }
}

/* As near to a square as the size allows. */
static void divide_face(struct shape *shape)
{
    int cells = (int)(shape->count / DEPTH);
    shape->planes = 1;
    for (int i = 1; i <= cells / i; i++)
        if (cells % i == 0)
            shape->planes = i;
    shape->rows = cells / shape->planes;
}

static void make_type(struct shape *shape)
{
    int count = (int)shape->count;
    if (shape->layout == VECTOR) {
        shape->span = (shape->count - 1) * STRIDE + 1;
        MPI_Type_vector(count, 1, STRIDE, MPI_DOUBLE, &shape->type);
    } else if (shape->layout == INDEXED) {
        shape->span = (size_t)places[count - 1] + 1;
        MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, &shape->type);
    } else {
        divide_face(shape);
        int whole[] = { shape->planes + 2, shape->rows + 2, ROW };
        int part[] = { shape->planes, shape->rows, DEPTH }, start[] = { 1, 1, 1 };
        shape->span = (size_t)whole[0] * (size_t)whole[1] * ROW;
        MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &shape->type);
    }
    MPI_Type_commit(&shape->type);
}

/* Where an element of the data lies. Told for one by itself, unlike in the loops that pack: the check
 * goes by it. */
static size_t place_of(const struct shape *shape, size_t i)
{
    if (shape->layout == VECTOR)
        return i * STRIDE;
    if (shape->layout == INDEXED)
        return (size_t)places[i];
    size_t rows = (size_t)shape->rows, cell = i / DEPTH;
    return ((cell / rows + 1) * (rows + 2) + cell % rows + 1) * ROW + 1 + i % DEPTH;
}

/* By hand: as one would write it for the one layout. */

static long gathered, scattered; /* so that no other method is one by hand */

static void gather(const struct shape *shape, const double *restrict array, double *restrict packed)
{
    gathered++;
    if (shape->layout == VECTOR) {
        for (size_t i = 0; i < shape->count; i++)
            packed[i] = array[i * STRIDE];
    } else if (shape->layout == INDEXED) {
        for (size_t i = 0; i < shape->count; i++)
            packed[i] = array[places[i]];
    } else {
        for (int plane = 1; plane <= shape->planes; plane++)
            for (int row = 1; row <= shape->rows; row++)
                for (int i = 0; i < DEPTH; i++)
                    *packed++ = array[(plane * (shape->rows + 2) + row) * ROW + 1 + i];
    }
}

static void scatter(const struct shape *shape, const double *restrict packed,
                    double *restrict array)
{
    scattered++;
    if (shape->layout == VECTOR) {
        for (size_t i = 0; i < shape->count; i++)
            array[i * STRIDE] = packed[i];
    } else if (shape->layout == INDEXED) {
        for (size_t i = 0; i < shape->count; i++)
            array[places[i]] = packed[i];
    } else {
        for (int plane = 1; plane <= shape->planes; plane++)
            for (int row = 1; row <= shape->rows; row++)
                for (int i = 0; i < DEPTH; i++)
                    array[(plane * (shape->rows + 2) + row) * ROW + 1 + i] = *packed++;
    }
}

/* Messages ------------------------------------------------------------------------------------- */

enum { TAG = 1 };

struct point {
    const struct shape *shape;
    enum method method;
    struct sample *sample;
    struct sample_result result;
};

/* What a rank of the pair has for all points. */
struct side {
    MPI_Comm pair;
    int rank; /* in the pair */
    double *array, *answer; /* what is sent, and on rank 0 what returns; behind their guards */
    double *packed, *expected;
    int room; /* bytes of packed */
    long batch; /* that it is, so that no two have the same data */
    double stamps; /* that there were */
    const struct point *point;
};

static size_t bytes_of(const struct shape *shape)
{
    return shape->count * sizeof(double);
}

static void send(const struct side *side, const double *array)
{
    const struct shape *shape = side->point->shape;
    int other = 1 - side->rank, position = 0;
    switch (side->point->method) {
    case DATATYPE:
        MPI_Send(array, 1, shape->type, other, TAG, side->pair);
        break;
    case PACK:
        MPI_Pack(array, 1, shape->type, side->packed, side->room, &position, side->pair);
        MPI_Send(side->packed, position, MPI_PACKED, other, TAG, side->pair);
        break;
    default:
        gather(shape, array, side->packed);
        MPI_Send(side->packed, (int)shape->count, MPI_DOUBLE, other, TAG, side->pair);
    }
}

static void receive(const struct side *side, double *array)
{
    const struct shape *shape = side->point->shape;
    int other = 1 - side->rank, position = 0;
    switch (side->point->method) {
    case DATATYPE:
        MPI_Recv(array, 1, shape->type, other, TAG, side->pair, MPI_STATUS_IGNORE);
        break;
    case PACK:
        MPI_Recv(side->packed, side->room, MPI_PACKED, other, TAG, side->pair, MPI_STATUS_IGNORE);
        MPI_Unpack(side->packed, side->room, &position, array, 1, shape->type, side->pair);
        break;
    default:
        MPI_Recv(side->packed, (int)shape->count, MPI_DOUBLE, other, TAG, side->pair,
                 MPI_STATUS_IGNORE);
        scatter(shape, side->packed, array);
    }
}

/* Payload -------------------------------------------------------------------------------------- */

/* That so many messages were packed and unpacked by hand, or none. */
static void check_hands(const struct side *side, long messages)
{
    long by_hand = side->point->method == HAND ? messages : 0;
    if (gathered != by_hand || scattered != by_hand)
        bench_abort(EXIT_BROKEN, "%ld messages by %s were packed by hand, and %ld unpacked",
                    gathered, method_names[side->point->method], scattered);
}

/* The element that a message of a batch has changed beside the first and the last one: in their turn
 * all of them. */
static size_t changed(const struct shape *shape, long message)
{
    return (size_t)message * 7919 % shape->count;
}

static void stamp(double *array, size_t first, size_t between, size_t last, double value)
{
    array[first] = array[between] = array[last] = value;
}

/* Of what lies between the pieces: another on each rank, so that it is found where it was sent. */
static int filler(int rank)
{
    return rank == 0 ? 0xa5 : 0x5a;
}

static void prepare(const struct side *side, double *array, bool is_spoiled)
{
    const struct shape *shape = side->point->shape;
    memset(array - GUARD, filler(side->rank), (shape->span + 2 * GUARD) * sizeof *array);
    if (is_spoiled)
        payload_spoil(side->expected, bytes_of(shape), 0, side->batch);
    else
        payload_fill(side->expected, bytes_of(shape), 0, side->batch);
    for (size_t i = 0; i < shape->count; i++)
        array[place_of(shape, i)] = side->expected[i];
}

/* What the last of so many messages had. */
static void expect(const struct side *side, long messages)
{
    const struct shape *shape = side->point->shape;
    double before = side->stamps - (double)messages;
    payload_fill(side->expected, bytes_of(shape), 0, side->batch);
    for (long i = 0; i < messages; i++)
        stamp(side->expected, 0, changed(shape, i), shape->count - 1, before + (double)(i + 1));
}

static void check(const struct side *side, const double *array)
{
    const struct point *point = side->point;
    const struct shape *shape = point->shape;
    const char *layout = layout_names[shape->layout], *method = method_names[point->method];
    double gap;
    memset(&gap, filler(side->rank), sizeof gap);
    size_t next = 0;
    for (size_t i = 0; i < shape->span + 2 * GUARD; i++) {
        bool is_data = next < shape->count && i == GUARD + place_of(shape, next);
        const double *expected = is_data ? &side->expected[next] : &gap;
        if (memcmp(&array[i] - GUARD, expected, sizeof gap) == 0)
            next += is_data;
        else if (is_data)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "%s of %zu bytes by %s arrived wrong in element %zu; from host %s and back",
                        layout, bytes_of(shape), method, next,
                        bench.hosts[bench.host_of[side->rank ? 0 : bench.ranks - 1]]);
        else
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "%s of %zu bytes by %s: something was written beside its elements, at "
                        "element %lld of the array",
                        layout, bytes_of(shape), method, (long long)i - GUARD);
    }
}

/* Measuring and reporting ---------------------------------------------------------------------- */

/* Of rank 0. */
static double bounce(struct side *side, long iterations)
{
    const struct shape *shape = side->point->shape;
    size_t first = place_of(shape, 0), last = place_of(shape, shape->count - 1);
    long lost = 0;
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        size_t between = place_of(shape, changed(shape, i));
        stamp(side->array, first, between, last, ++side->stamps);
        send(side, side->array);
        receive(side, side->answer);
        lost += side->answer[first] != side->stamps || side->answer[between] != side->stamps ||
                side->answer[last] != side->stamps;
        sample_operation();
    }
    double seconds = sample_since(start) / 2;
    if (lost)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "%ld of %ld messages of %s of %zu bytes by %s returned without what was "
                    "changed in them",
                    lost, iterations, layout_names[shape->layout], bytes_of(shape),
                    method_names[side->point->method]);
    return seconds;
}

static double batch(void *context, long iterations)
{
    struct side *side = context;
    double seconds = 0;
    side->batch++;
    gathered = scattered = 0;
    if (side->rank == 0)
        prepare(side, side->answer, true);
    prepare(side, side->array, side->rank != 0);
    sample_barrier(side->pair);
    if (side->rank == 0) {
        seconds = bounce(side, iterations);
    } else {
        for (long i = 0; i < iterations; i++) {
            receive(side, side->array);
            send(side, side->array);
        }
        side->stamps += (double)iterations;
    }
    check_hands(side, iterations);
    expect(side, iterations);
    check(side, side->rank == 0 ? side->answer : side->array);
    return seconds;
}

/* Of the largest array with its guards. */
static size_t array_bytes(const struct shape *shapes, int count)
{
    size_t span = 0;
    for (int i = 0; i < count; i++)
        span = shapes[i].span > span ? shapes[i].span : span;
    return (span + 2 * GUARD) * sizeof(double);
}

static struct side open_side(MPI_Comm pair, size_t array, size_t largest)
{
    return (struct side){
        .pair = pair,
        .rank = bench.rank == 0 ? 0 : 1,
        .array = (double *)memory_allocate(array) + GUARD,
        .answer = (double *)memory_allocate(array) + GUARD,
        .expected = memory_allocate(largest),
    };
}

static void close_side(struct side *side)
{
    free(side->array - GUARD);
    free(side->answer - GUARD);
    free(side->packed);
    free(side->expected);
}

/* Of MPI_Pack, which may want more than the data has. */
static void make_room(struct side *side, const struct point *points, int count)
{
    for (int i = 0; i < count; i++) {
        int room;
        MPI_Pack_size(1, points[i].shape->type, side->pair, &room);
        side->room = room > side->room ? room : side->room;
    }
    side->packed = memory_allocate((size_t)side->room);
}

static void measure_all(MPI_Comm pair, size_t array, size_t largest, const struct point *points,
                        int count)
{
    struct side side = open_side(pair, array, largest);
    make_room(&side, points, count);
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            if (!sample_is_due(points[i].sample, round))
                continue;
            side.point = &points[i];
            pair_step((double)patience + plan.budget);
            patience_start((double)patience + plan.budget, "%s by %s of %zu bytes",
                           layout_names[points[i].shape->layout], method_names[points[i].method],
                           bytes_of(points[i].shape));
            sample_bout(points[i].sample, pair, batch, &side);
        }
    patience_end();
    close_side(&side);
}

/* Those of a layout after each other; free() it. */
static struct shape *list_shapes(int *count)
{
    struct shape *shapes = memory_allocate((size_t)(LAYOUTS * sizes.count) * sizeof *shapes);
    *count = 0;
    for (int i = 0; i < LAYOUTS * sizes.count; i++) {
        if (!(chosen_layouts & 1u << i / sizes.count))
            continue;
        struct shape *shape = &shapes[(*count)++];
        *shape = (struct shape){
            .layout = i / sizes.count,
            .count = (size_t)sizes.values[i % sizes.count] / sizeof(double),
        };
        make_type(shape);
    }
    return shapes;
}

/* All methods of a shape, one after the other; free() it. */
static struct point *list_points(const struct shape *shapes, int shape_count, int *count)
{
    struct point *points = memory_allocate((size_t)(shape_count * METHODS) * sizeof *points);
    *count = 0;
    for (int i = 0; i < shape_count * METHODS; i++) {
        const struct shape *shape = &shapes[i / METHODS];
        if (chosen_methods & 1u << i % METHODS)
            points[(*count)++] = (struct point){
                .shape = shape,
                .method = i % METHODS,
                .sample = sample_start(plan, SAMPLE_ROUNDS),
            };
    }
    return points;
}

/* The time of the same data by hand; 0 if that was not measured. */
static double best_by_hand(const struct point *points, int count, const struct shape *shape)
{
    for (int i = 0; i < count; i++)
        if (points[i].shape == shape && points[i].method == HAND)
            return points[i].result.time.best;
    return 0;
}

static void report(const struct point *point, double by_hand)
{
    const struct shape *shape = point->shape;
    const struct sample_result *result = &point->result;
    size_t size = bytes_of(shape);
    double bandwidth = (double)size / result->time.best;
    printf("%-8s %-9s %10zu", layout_names[shape->layout], method_names[point->method], size);
    sample_print(result, "%12.2f %8.2f", bandwidth * 1e-6, by_hand / result->time.best);
    json_object(bench.json, NULL);
    json_string(bench.json, "layout", layout_names[shape->layout]);
    json_string(bench.json, "method", method_names[point->method]);
    json_integer(bench.json, "size", (long long)size);
    json_integer(bench.json, "span", (long long)shape->span);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, result);
    json_end(bench.json);
}

static size_t largest_size(void)
{
    size_t largest = 0;
    for (int i = 0; i < sizes.count; i++) {
        size_t size = (size_t)sizes.values[i];
        if (size % 16 || (double)size != sizes.values[i])
            bench_refuse("--sizes must be multiples of 16, the bytes of two doubles, and %.15g is "
                         "none",
                         sizes.values[i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    size_t largest = largest_size();
    list_places(largest / sizeof(double));
    int shape_count, point_count;
    struct shape *shapes = list_shapes(&shape_count);
    struct point *points = list_points(shapes, shape_count, &point_count);
    size_t array = array_bytes(shapes, shape_count);
    memory_require(pair_has_me() ? 2 * array + 2 * largest : 0, "use smaller --sizes");

    MPI_Comm pair = pair_enter();
    if (pair != MPI_COMM_NULL) {
        measure_all(pair, array, largest, points, point_count);
        pair_leave(&pair);
    }
    for (int i = 0; i < point_count; i++)
        points[i].result = sample_end(points[i].sample);
    if (bench.rank == 0)
        printf("\n%-8s %-9s %10s %12s %12s %12s %8s %8s %8s  %s\n", "layout", "method", "bytes",
               "best us", "median us", "MB/s", "of hand", "+- %", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int i = 0; bench.rank == 0 && i < point_count; i++)
        report(&points[i], best_by_hand(points, point_count, points[i].shape));
    json_end(bench.json);
    for (int i = 0; i < shape_count; i++)
        MPI_Type_free(&shapes[i].type);
    free(points);
    free(shapes);
    free(places);
    return bench_end();
}
