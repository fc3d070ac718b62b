/* halo: 3-D heat diffusion with halo exchange, blocking and overlapped with computation.
 *
 * du/dt = alpha laplacian(u), explicit in time, 7 points in space, on NX x NY x NZ points that are
 * equally far apart in all directions. The ranks form a 2-D grid over x and y; z, contiguous in
 * memory, stays whole. A face in x is one contiguous message; a face in y is strided, and sent as
 * an MPI derived datatype.
 *
 * How the answer is known: the field starts as one Fourier mode, an eigenvector of the discrete
 * operator, so that after s steps it has to be g^s times that mode, to rounding. What is checked,
 * always outside timed regions, at every chunk of steps that is measured:
 * - before it, one exchange: every halo value bit for bit, as the mode is known everywhere. Then
 *   the halos are filled with NaN, so that a message that never comes cannot pass;
 * - after it, every point of every rank against g^s times the mode;
 * - and the fingerprint of all bits against that of the first chunk: arithmetic and start are the
 *   same each time, whatever the method, so that damage below the rounding error shows too.
 * At the end, the amplitude against exp(-k^2 alpha t), to the order of the scheme. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "memory.h"
#include "progress.h"
#include "turns.h"

static bool progress_thread = false;

static const struct bench_about about = {
    .program = "halo",
    .purpose = "3-D heat diffusion with halo exchange, blocking and overlapped with computation",
    .text =
        "The mesh is divided over a 2-D grid of ranks in x and y, unevenly where it has to be.\n"
        "A face in x is one contiguous message; a face in y is strided (MPI_Type_vector).\n"
        "Methods:\n"
        "  blocking      MPI_Sendrecv with each neighbour, then the update of all points.\n"
        "  overlapped    MPI_Irecv, MPI_Isend, update of the inner points, MPI_Waitall, update\n"
        "                of the points next to the halo.\n"
        "  threaded      overlapped, while a progress thread of each rank calls MPI_Iprobe on a\n"
        "                core of its own, which does not compute in any of the methods; only with\n"
        "                --progress-thread, for which each rank needs two cores.\n"
        "  compute_only  the update of all points without any exchange, always measured: the\n"
        "                limit of the same ranks in the same job.\n"
        "They take turns, a chunk of steps each, so that drifts of the machine meet all alike.\n"
        "Figures: iterations/s from the median over chunks, each the slowest rank's, with its 95%\n"
        "interval; points/s of the whole mesh in the best chunks (the first decile); efficiency,\n"
        "the rate over that of compute_only; communication, the share of a rank's time inside MPI\n"
        "calls: least, mean and greatest of the ranks. It includes waiting for slower ranks.\n"
        "The start is a Fourier mode, for which the exact answer of the discrete equation is\n"
        "known; all ranks check all points of each chunk.\n",
    .examples = "  mpirun -n 2 halo\n"
                "  mpirun -n 4 halo --n 256,256,256 --method overlapped --budget 10\n"
                "  mpirun -n 4 halo --boundary periodic --steps 20 --json halo.json\n"
                "  mpirun -n 4 halo --progress-thread\n",
    .min_ranks = 1,
    .thread_multiple = &progress_thread,
};

enum method { COMPUTE_ONLY, BLOCKING, OVERLAPPED, THREADED, METHODS };
static const char *const result_names[] = { "compute_only", "blocking", "overlapped", "threaded" };
enum { ONLY_BLOCKING, ONLY_OVERLAPPED, BOTH };
static const char *const method_names[] = { "blocking", "overlapped", "both", NULL };
enum boundary { FIXED, PERIODIC };
static const char *const boundary_names[] = { "fixed", "periodic", NULL };

enum { X, Y, Z, MOST_POINTS = 10000000 };

static struct option_numbers wanted = { .values = { 128, 128, 128 }, .count = 3 };
static int whole[3]; /* the same, as integers: points of the whole mesh */
static long steps = 50;
static int chosen_method = BOTH;
static int boundary = FIXED;
static struct sample_plan plan = { .ci = 0.02, .budget = 3 };

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "n", .kind = OPTION_NUMBERS, .value = &wanted, .argument = "NX,NY,NZ", .low = 1,
      .high = MOST_POINTS, .help = "points of the whole mesh in x, y and z" },
    { .name = "steps", .kind = OPTION_COUNT, .value = &steps, .argument = "COUNT", .low = 1,
      .high = 1000000, .help = "steps in a chunk" },
    { .name = "method", .kind = OPTION_CHOICE, .value = &chosen_method, .argument = "METHOD",
      .choices = method_names, .help = "what to measure" },
    { .name = "progress-thread", .kind = OPTION_FLAG, .value = &progress_thread,
      .help = "measure threaded as well; asks the MPI for MPI_THREAD_MULTIPLE" },
    { .name = "boundary", .kind = OPTION_CHOICE, .value = &boundary, .argument = "KIND",
      .choices = boundary_names, .help = "zero around the mesh, or its other end" },
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

/* Mesh and ranks ------------------------------------------------------------------------------- */

/* One direction of the whole mesh. Points are numbered from 0; -1 and `points` are the boundary,
 * or with periodic boundaries the other end. */
struct axis {
    int points;
    double theta;          /* k h: the mode's phase from one point to the next */
    double *cosine, *sine; /* of the phase at points -1 .. points, from [0] on */
};

/* Neighbours come in pairs: neighbour ^ 1 lies opposite. A message's tag is the neighbour's name
 * for the rank that sends it. */
enum { WEST, EAST, SOUTH, NORTH, NEIGHBOURS };
static const char *const neighbour_names[] = { "west", "east", "south", "north" };

struct neighbour {
    int rank;          /* or MPI_PROC_NULL */
    size_t face, halo; /* where in a field the message to it and from it begins */
    int count;
    MPI_Datatype type;
};

static struct {
    struct axis axis[3];
    MPI_Comm comm; /* its ranks are those of MPI_COMM_WORLD */
    int ranks[2];  /* of the grid of ranks */
    int start[2];  /* this rank's first point */
    int size[2];   /* this rank's points, without the halo */
    struct neighbour neighbours[NEIGHBOURS];
    MPI_Datatype strided;
    double *field[2]; /* a step reads one and writes the other; both with a halo in x and y */
    double *mode_row;
} mesh;

/* Where row (i, j) begins in a field, in this rank's numbers: -1 and size[] are the halo. */
static size_t row(int i, int j)
{
    return ((size_t)(i + 1) * (size_t)(mesh.size[Y] + 2) + (size_t)(j + 1)) *
           (size_t)mesh.axis[Z].points;
}

/* Up to where a row after the last one of the halo would begin. */
static size_t field_bytes(void)
{
    return row(mesh.size[X] + 1, -1) * sizeof(double);
}

static void read_mesh(void)
{
    bool right = wanted.count == 3;
    for (int d = X; right && d <= Z; d++) {
        whole[d] = (int)wanted.values[d];
        right = whole[d] == wanted.values[d];
    }
    if (!right)
        bench_refuse("--n takes three whole numbers, as in --n 128,128,128");
    for (int d = X; d <= Z; d++)
        mesh.axis[d].points = whole[d];
}

static void divide(void)
{
    int place[2], periods[2] = { boundary == PERIODIC, boundary == PERIODIC };
    MPI_Dims_create(bench.ranks, 2, mesh.ranks);
    for (int d = X; d <= Y; d++)
        if (whole[d] < mesh.ranks[d])
            bench_refuse("--n has %d points in %c for %d ranks in that direction; give it at "
                         "least %d there, or start fewer ranks",
                         whole[d], "xy"[d], mesh.ranks[d], mesh.ranks[d]);
    MPI_Cart_create(MPI_COMM_WORLD, 2, mesh.ranks, periods, 0, &mesh.comm);
    MPI_Cart_coords(mesh.comm, bench.rank, 2, place);
    for (int d = X; d <= Y; d++) {
        int share = whole[d] / mesh.ranks[d], rest = whole[d] % mesh.ranks[d];
        mesh.size[d] = share + (place[d] < rest);
        mesh.start[d] = place[d] * share + (place[d] < rest ? place[d] : rest);
    }
    memory_require(2 * field_bytes(), "use a smaller --n or more hosts");

    /* On the rank with most points, so that all ranks refuse together. */
    double plane = (double)((whole[Y] + mesh.ranks[Y] - 1) / mesh.ranks[Y] + 2) * (double)whole[Z];
    if (plane > INT_MAX)
        bench_refuse("--n makes planes of %.0f points, more than MPI can count (%d); make it "
                     "smaller in y or z",
                     plane, INT_MAX);
}

static void meet_neighbours(void)
{
    int rows = mesh.size[Y], nz = mesh.axis[Z].points;
    MPI_Type_vector(mesh.size[X], nz, (rows + 2) * nz, MPI_DOUBLE, &mesh.strided);
    MPI_Type_commit(&mesh.strided);

    struct neighbour *to = mesh.neighbours;
    int last[2] = { mesh.size[X] - 1, mesh.size[Y] - 1 };
    to[WEST] = (struct neighbour){ .face = row(0, 0), .halo = row(-1, 0) };
    to[EAST] = (struct neighbour){ .face = row(last[X], 0), .halo = row(last[X] + 1, 0) };
    to[SOUTH] = (struct neighbour){ .face = row(0, 0), .halo = row(0, -1) };
    to[NORTH] = (struct neighbour){ .face = row(0, last[Y]), .halo = row(0, last[Y] + 1) };
    for (int d = X; d <= Y; d++) {
        MPI_Cart_shift(mesh.comm, d, 1, &to[2 * d].rank, &to[2 * d + 1].rank);
        for (int side = 2 * d; side <= 2 * d + 1; side++) {
            to[side].count = d == X ? rows * nz : 1;
            to[side].type = d == X ? MPI_DOUBLE : mesh.strided;
        }
    }
}

/* The mode ------------------------------------------------------------------------------------- */

static const double pi = 3.14159265358979323846;

/* r = alpha dt / h^2. Stable up to 1/6; a power of two, so that multiplying by it is exact. */
static const double diffusion = 0.125;

/* Half waves (fixed boundaries) or whole ones (periodic) along x, y and z; different ones, so that
 * swapped neighbours or axes give a wrong answer. */
static const int wanted_waves[] = { 2, 3, 1 };

/* The fewest parts of the mode that may be left at the end of a chunk, for there to be something
 * to check. */
static const double least_decay = 1e-3;

static void make_axis(struct axis *axis, int wanted)
{
    /* On few points, more waves than these would look like fewer, or none. */
    int points = axis->points, most = boundary == PERIODIC ? points / 2 : points;
    int waves = wanted < most ? wanted : most;
    int period = boundary == PERIODIC ? points : 2 * (points + 1);
    axis->theta = 2 * pi * waves / period;
    axis->cosine = memory_allocate(sizeof(double) * ((size_t)points + 2));
    axis->sine = memory_allocate(sizeof(double) * ((size_t)points + 2));
    for (int i = -1; i <= points; i++) {
        /* The remainder makes both ends of a periodic mesh the same, bit for bit. The sine of
         * fixed boundaries is 0 at point -1. */
        long place = boundary == PERIODIC ? i + points : i + 1;
        double phase = 2 * pi * (double)(place * waves % period) / period;
        axis->cosine[i + 1] = cos(phase);
        axis->sine[i + 1] = sin(phase);
    }
}

/* Row (i, j) of the mode, in mesh.mode_row. Fixed boundaries: the product of three sines.
 * Periodic: the plane wave cos(x + y + z), which is not its own mirror image.
 * One place, never inlined: all ranks and all uses must agree bit for bit. */
__attribute__((noinline)) static const double *mode(int i, int j)
{
    const struct axis *x = &mesh.axis[X], *y = &mesh.axis[Y], *z = &mesh.axis[Z];
    int at_x = mesh.start[X] + i + 1, at_y = mesh.start[Y] + j + 1;
    double cosines = 0, sines = x->sine[at_x] * y->sine[at_y];
    if (boundary == PERIODIC) {
        cosines = x->cosine[at_x] * y->cosine[at_y] - x->sine[at_x] * y->sine[at_y];
        sines = -(x->sine[at_x] * y->cosine[at_y] + x->cosine[at_x] * y->sine[at_y]);
    }
    for (int k = 0; k < z->points; k++)
        mesh.mode_row[k] = cosines * z->cosine[k + 1] + sines * z->sine[k + 1];
    return mesh.mode_row;
}

/* What a chunk multiplies the mode by: g^steps with g = 1 - 2 r sum(1 - cos theta), written
 * without its cancellation. */
static double discrete_decay(void)
{
    double sum = 0;
    for (int d = X; d <= Z; d++)
        sum += pow(sin(mesh.axis[d].theta / 2), 2);
    return pow(1 - 4 * diffusion * sum, (double)steps);
}

static double sum_of_thetas(double power)
{
    double sum = 0;
    for (int d = X; d <= Z; d++)
        sum += pow(mesh.axis[d].theta, power);
    return sum;
}

/* What the differential equation multiplies it by: exp(-k^2 alpha t). */
static double analytic_decay(void)
{
    return exp(-diffusion * sum_of_thetas(2) * (double)steps);
}

/* How far the two may be apart. The scheme is of first order in time and second in space. With
 * S = sum theta^2 and Q = sum theta^4, Taylor's remainders bound one step's error:
 * |exp(-r S) - (1 - r S)| <= (r S)^2 / 2 and |theta^2 - 2 (1 - cos theta)| <= theta^4 / 12.
 * No factor exceeds 1, so that s steps add up to s of these at most. */
static double scheme_error(void)
{
    return (double)steps *
           (pow(diffusion * sum_of_thetas(2), 2) / 2 + diffusion * sum_of_thetas(4) / 12);
}

/* How far rounding may take a field of amplitude 1 from g^steps times the mode. The coefficients
 * of a step are positive and add up to 1, so that errors never grow; each step adds its own. The
 * intermediate values of an update are at most 2, 2, 2, 4, 6, 6, 12 (all divided by 8 in the end)
 * and 1: with u = DBL_EPSILON / 2 that is (34 / 8 + 1) u < 3 DBL_EPSILON. The rounding of g adds
 * one u a step, the start and the power a few once. */
static double rounding_error(void)
{
    return 4 * DBL_EPSILON * (double)(steps + 2);
}

static void make_mode(void)
{
    for (int d = X; d <= Z; d++)
        make_axis(&mesh.axis[d], wanted_waves[d]);
    if (fabs(discrete_decay()) < least_decay)
        bench_refuse("%ld steps would leave %.1e of the starting field, too little to check; use "
                     "fewer --steps or a larger --n",
                     steps, fabs(discrete_decay()));
    mesh.mode_row = memory_allocate(sizeof(double) * (size_t)mesh.axis[Z].points);
    mesh.field[0] = memory_allocate(field_bytes());
    mesh.field[1] = memory_allocate(field_bytes());
}

/* The step ------------------------------------------------------------------------------------- */

/* Seconds of this rank in MPI calls and in computation, and the operations that were counted in them:
 * a start and an end of each exchange in one, the steps in the other. */
static struct sample_mark communication[METHODS], computation[METHODS];
static struct sample_mark last; /* the end of the part before */

static void end_part(struct sample_mark *part)
{
    struct sample_mark now = sample_mark();
    part->seconds += now.seconds - last.seconds;
    part->made += now.made - last.made;
    last = now;
}

static long rows_updated;

/* The loop vectorises; both ends of z stand outside of it. Never inlined: every method has to
 * round alike, in whatever region it updates the row. */
__attribute__((noinline)) static void update_row(double *restrict out, const double *in,
                                                 const double *west, const double *east,
                                                 const double *south, const double *north,
                                                 int points, bool periodic)
{
#define UPDATE(k, below, above) \
    (in[k] +                    \
     diffusion * ((west[k] + east[k]) + (south[k] + north[k]) + ((below) + (above)) - 6 * in[k]))
    int last = points - 1;
    double bottom = periodic ? in[last] : 0, top = periodic ? in[0] : 0;
    for (int k = 1; k < last; k++)
        out[k] = UPDATE(k, in[k - 1], in[k + 1]);
    out[0] = UPDATE(0, bottom, last > 0 ? in[1] : top);
    if (last > 0)
        out[last] = UPDATE(last, in[last - 1], top);
#undef UPDATE
    rows_updated++;
}

/* Rows from_i <= i < to_i, from_j <= j < to_j. */
static void update(double *out, const double *in, int from_i, int to_i, int from_j, int to_j)
{
    for (int i = from_i; i < to_i; i++)
        for (int j = from_j; j < to_j; j++)
            update_row(out + row(i, j), in + row(i, j), in + row(i - 1, j), in + row(i + 1, j),
                       in + row(i, j - 1), in + row(i, j + 1), mesh.axis[Z].points,
                       boundary == PERIODIC);
}

static void update_all(double *out, const double *in)
{
    update(out, in, 0, mesh.size[X], 0, mesh.size[Y]);
}

static void update_inner(double *out, const double *in)
{
    update(out, in, 1, mesh.size[X] - 1, 1, mesh.size[Y] - 1);
}

static void update_rim(double *out, const double *in)
{
    int last_i = mesh.size[X] - 1, last_j = mesh.size[Y] - 1;
    update(out, in, 0, 1, 0, last_j + 1);
    if (last_i > 0)
        update(out, in, last_i, last_i + 1, 0, last_j + 1);
    update(out, in, 1, last_i, 0, 1);
    if (last_j > 0)
        update(out, in, 1, last_i, last_j, last_j + 1);
}

static void exchange(double *field)
{
    for (int side = WEST; side < NEIGHBOURS; side++) {
        const struct neighbour *to = &mesh.neighbours[side], *from = &mesh.neighbours[side ^ 1];
        MPI_Sendrecv(field + to->face, to->count, to->type, to->rank, side, field + from->halo,
                     from->count, from->type, from->rank, side, mesh.comm, MPI_STATUS_IGNORE);
    }
    sample_operation();
    sample_operation();
}

static void start_exchange(double *field, MPI_Request requests[2 * NEIGHBOURS])
{
    for (int side = WEST; side < NEIGHBOURS; side++) {
        const struct neighbour *from = &mesh.neighbours[side];
        MPI_Irecv(field + from->halo, from->count, from->type, from->rank, side ^ 1, mesh.comm,
                  &requests[side]);
    }
    for (int side = WEST; side < NEIGHBOURS; side++) {
        const struct neighbour *to = &mesh.neighbours[side];
        MPI_Isend(field + to->face, to->count, to->type, to->rank, side, mesh.comm,
                  &requests[NEIGHBOURS + side]);
    }
    sample_operation();
}

static void finish_exchange(MPI_Request requests[2 * NEIGHBOURS])
{
    MPI_Waitall(2 * NEIGHBOURS, requests, MPI_STATUSES_IGNORE);
    sample_operation();
}

static void blocking_step(double *out, double *in)
{
    end_part(&computation[BLOCKING]);
    exchange(in);
    end_part(&communication[BLOCKING]);
    update_all(out, in);
}

static void overlapped_step(enum method method, double *out, double *in)
{
    MPI_Request requests[2 * NEIGHBOURS];
    end_part(&computation[method]);
    start_exchange(in, requests);
    end_part(&communication[method]);
    update_inner(out, in);
    end_part(&computation[method]);
    finish_exchange(requests);
    end_part(&communication[method]);
    update_rim(out, in);
}

/* Checks --------------------------------------------------------------------------------------- */

/* What the checks found, over all chunks of this rank. */
static struct {
    double error;         /* the greatest distance from the right answer */
    double along, length; /* the last field's product with the mode, and the mode's with itself */
    uint64_t fingerprint; /* of the first field; 0 before it */
} checked;

/* Fills the halos that messages go to; those at a fixed boundary stay 0. */
static void fill_halos(double *field, double value)
{
    for (int side = WEST; side < NEIGHBOURS; side++) {
        bool along_x = side == WEST || side == EAST;
        int rows = along_x ? mesh.size[Y] : mesh.size[X];
        if (mesh.neighbours[side].rank == MPI_PROC_NULL)
            continue;
        for (int i = 0; i < rows; i++) {
            double *halo = field + mesh.neighbours[side].halo + (along_x ? row(0, i) : row(i, 0)) -
                           row(0, 0);
            for (int k = 0; k < mesh.axis[Z].points; k++)
                halo[k] = value;
        }
    }
}

static void check_halo_row(const double *field, int side, int i, int j)
{
    const double *found = field + row(i, j), *expected = mode(i, j);
    for (int k = 0; k < mesh.axis[Z].points; k++)
        if (memcmp(&found[k], &expected[k], sizeof found[k]) != 0)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "the halo from the %s (rank %d) arrived wrong at its point (%d,%d,%d): "
                        "expected %.17g, found %.17g",
                        neighbour_names[side], mesh.neighbours[side].rank, i, j, k, expected[k],
                        found[k]);
}

static void check_halos(const double *field)
{
    const struct neighbour *from = mesh.neighbours;
    for (int side = WEST; side <= EAST; side++)
        for (int j = 0; j < mesh.size[Y] && from[side].rank != MPI_PROC_NULL; j++)
            check_halo_row(field, side, side == WEST ? -1 : mesh.size[X], j);
    for (int side = SOUTH; side <= NORTH; side++)
        for (int i = 0; i < mesh.size[X] && from[side].rank != MPI_PROC_NULL; i++)
            check_halo_row(field, side, i, side == SOUTH ? -1 : mesh.size[Y]);
}

/* The mode, and after an exchange that is checked, NaN where messages have to arrive. */
static void start_field(enum method method)
{
    double *field = mesh.field[0];
    for (int i = 0; i < mesh.size[X]; i++)
        for (int j = 0; j < mesh.size[Y]; j++)
            memcpy(field + row(i, j), mode(i, j), sizeof(double) * (size_t)mesh.axis[Z].points);
    if (method == COMPUTE_ONLY) {
        fill_halos(mesh.field[0], 0);
        fill_halos(mesh.field[1], 0);
        return;
    }
    fill_halos(field, NAN);
    if (method == BLOCKING) {
        exchange(field);
    } else {
        MPI_Request requests[2 * NEIGHBOURS];
        start_exchange(field, requests);
        finish_exchange(requests);
    }
    check_halos(field);
    fill_halos(mesh.field[0], NAN);
    fill_halos(mesh.field[1], NAN);
}

/* Every bit of the field counts, and where it stands. */
static uint64_t add_to_fingerprint(uint64_t fingerprint, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fingerprint = (fingerprint ^ bits) * 0x9e3779b97f4a7c15u;
    return fingerprint ^ fingerprint >> 32;
}

static void check_field(const double *field, enum method method)
{
    double factor = discrete_decay(), tolerance = rounding_error();
    uint64_t fingerprint = 1;
    checked.along = checked.length = 0;
    for (int i = 0; i < mesh.size[X]; i++)
        for (int j = 0; j < mesh.size[Y]; j++) {
            const double *found = field + row(i, j), *start = mode(i, j);
            for (int k = 0; k < mesh.axis[Z].points; k++) {
                double error = fabs(found[k] - factor * start[k]);
                if (!(error <= tolerance)) /* so written, NaN is wrong */
                    bench_abort(EXIT_WRONG_PAYLOAD,
                                "the field is wrong after %ld %s steps, at point (%d,%d,%d) of the "
                                "mesh: expected %.17g, found %.17g, tolerance %.1e; halo data was "
                                "lost, late or damaged",
                                steps, result_names[method], mesh.start[X] + i, mesh.start[Y] + j,
                                k, factor * start[k], found[k], tolerance);
                checked.error = error > checked.error ? error : checked.error;
                checked.along += found[k] * start[k];
                checked.length += start[k] * start[k];
                fingerprint = add_to_fingerprint(fingerprint, found[k]);
            }
        }
    if (checked.fingerprint == 0)
        checked.fingerprint = fingerprint;
    if (fingerprint != checked.fingerprint)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "the field after %ld %s steps differs from that of the first chunk, though by "
                    "less than the tolerance of %.1e; halo data was damaged in a low bit",
                    steps, result_names[method], tolerance);
}

/* What is left of the mode after a chunk: measured, over all ranks, as its projection. */
static double measured_decay(void)
{
    double sums[2] = { checked.along, checked.length };
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sums[0] / sums[1];
}

/* Measuring ------------------------------------------------------------------------------------ */

static enum method methods[METHODS]; /* those measured, in turn */
static int method_count;

/* The time that chunks are said to have taken, and within which bounds it is by MPI's clock, which is
 * read just before and just after ours. lib/assay/programs/benchmarks.py holds one against the other. */
static struct {
    double seconds, least, most;
    long steps;
} by_mpi[METHODS];

/* Of a step without any exchange in each chunk, another each time; not of the first one, whose fields may
 * not be in the caches. */
static struct sample_twins twins;
static struct {
    long chunks, step; /* the step that has a twin, or 0 */
    double seconds;
} twin;

static void choose_twin(void)
{
    bool is_due = steps > 1 && sample_twins_are_due(&twins, twin.chunks++);
    twin.step = is_due ? 1 + twin.chunks % (steps - 1) : 0;
}

/* Behind each step. */
static void time_twin(long step)
{
    if (step + 1 == twin.step)
        twin.seconds = -clock_seconds();
    else if (step == twin.step)
        twin.seconds += clock_seconds();
}

/* As many steps behind a barrier: where ranks share cores, one that has just left it has its core for a
 * while, and a step right behind it would take less. */
static void measure_twin(void)
{
    double seconds = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long step = 0; step <= twin.step; step++) {
        double start = clock_seconds();
        update_all(mesh.field[(step + 1) % 2], mesh.field[step % 2]);
        seconds = clock_seconds() - start;
    }
    sample_twins_add(MPI_COMM_WORLD, &twins, twin.seconds, seconds);
}

static double run_chunk(enum method method)
{
    start_field(method);
    if (method == COMPUTE_ONLY)
        choose_twin();
    if (method == THREADED)
        progress_resume();
    rows_updated = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double outer = MPI_Wtime();
    struct sample_mark start = last = sample_mark();
    double inner = MPI_Wtime();
    for (long step = 0; step < steps; step++) {
        double *in = mesh.field[step % 2], *out = mesh.field[(step + 1) % 2];
        if (method == BLOCKING)
            blocking_step(out, in);
        else if (method != COMPUTE_ONLY)
            overlapped_step(method, out, in);
        else
            update_all(out, in);
        sample_operation();
        if (method == COMPUTE_ONLY)
            time_twin(step);
    }
    by_mpi[method].least += MPI_Wtime() - inner;
    end_part(&computation[method]);
    by_mpi[method].most += MPI_Wtime() - outer;
    by_mpi[method].steps += steps;
    if (method == THREADED)
        progress_pause();
    double seconds = last.seconds - start.seconds;
    if (rows_updated != steps * mesh.size[X] * mesh.size[Y])
        bench_abort(EXIT_BROKEN, "%ld rows were updated in %ld %s steps", rows_updated, steps,
                    result_names[method]);
    if (method != COMPUTE_ONLY)
        check_field(mesh.field[steps % 2], method);
    return seconds;
}

static void run_chunks(void *context, long iterations, double *seconds)
{
    (void)context;
    for (int m = 0; m < method_count; m++)
        seconds[m] = 0;
    for (long i = 0; i < iterations; i++)
        for (int m = 0; m < method_count; m++) {
            double took = run_chunk(methods[m]);
            seconds[m] += took;
            by_mpi[methods[m]].seconds += took;
            if (methods[m] == COMPUTE_ONLY && twin.step > 0)
                measure_twin();
        }
}

struct share {
    double min, avg, max;
};

/* The parts have to be the whole of the time, and each what it is said to be. */
static void check_parts(enum method method)
{
    struct sample_mark in = communication[method], out = computation[method];
    double parts = in.seconds + out.seconds, whole = by_mpi[method].seconds;
    long exchanges = method == COMPUTE_ONLY ? 0 : by_mpi[method].steps;
    /* A difference of two readings is right to some 1e-11 s. */
    if (!(fabs(parts - whole) <= 1e-7 * whole + 1e-9 * (double)by_mpi[method].steps))
        bench_abort(EXIT_BROKEN, "the parts of %s took %g s, all of it %g s", result_names[method],
                    parts, whole);
    if (in.made != 2 * exchanges || out.made != by_mpi[method].steps)
        bench_abort(EXIT_BROKEN, "of %ld %s steps %ld were timed, and half of %ld exchanges",
                    by_mpi[method].steps, result_names[method], out.made, in.made);
}

/* What rank 0 will report, by each rank's own parts of the whole. */
static void check_share(enum method method, struct share share)
{
    double whole = by_mpi[method].seconds, own = communication[method].seconds / whole, sum;
    double slack = 1e-7 + 1e-9 * (double)by_mpi[method].steps / whole;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&share, sizeof share, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (!(share.min <= own + slack && own <= share.max + slack) ||
        !(fabs(share.avg - sum / bench.ranks) <= slack))
        bench_abort(EXIT_BROKEN, "messages took %g of %s, not %g, %g and %g", own,
                    result_names[method], share.min, share.avg, share.max);
}

static struct share communication_share(enum method method)
{
    check_parts(method);
    double in = communication[method].seconds, own = in / (in + computation[method].seconds);
    struct share share = { 0 };
    MPI_Reduce(&own, &share.min, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &share.max, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &share.avg, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    share.avg /= bench.ranks;
    check_share(method, share);
    return share;
}

/* Reporting ------------------------------------------------------------------------------------ */

static void report_mesh(void)
{
    if (bench.rank == 0)
        printf("Rank grid:      %d x %d, %d to %d x %d to %d x %d points on a rank\n",
               mesh.ranks[X], mesh.ranks[Y], whole[X] / mesh.ranks[X], mesh.size[X],
               whole[Y] / mesh.ranks[Y], mesh.size[Y], whole[Z]);
    json_array(bench.json, "rank_grid");
    json_integer(bench.json, NULL, mesh.ranks[X]);
    json_integer(bench.json, NULL, mesh.ranks[Y]);
    json_end(bench.json);
}

static void report_method(enum method method, const struct sample_result *result, double limit_rate,
                          struct share share)
{
    const struct stats *time = &result->time;
    double rate = (double)steps / time->median;
    double points = (double)steps / time->best * (double)whole[X] * (double)whole[Y] *
                    (double)whole[Z];

    printf("%-14s %12.1f %12.1f %12.1f %12.2f", result_names[method], rate,
           (double)steps / time->ci_high, (double)steps / time->ci_low, points * 1e-6);
    if (method == COMPUTE_ONLY)
        printf(" %7s %7s %7s %11s", "-", "-", "-", "-");
    else
        printf(" %7.1f %7.1f %7.1f %10.1f%%", share.min * 100, share.avg * 100, share.max * 100,
               rate / limit_rate * 100);
    printf(" %8d  %s\n", result->samples, result->stopped_by);

    json_object(bench.json, NULL);
    json_string(bench.json, "method", result_names[method]);
    json_number(bench.json, "iterations_per_second", rate);
    json_number(bench.json, "iterations_per_second_low", (double)steps / time->ci_high);
    json_number(bench.json, "iterations_per_second_high", (double)steps / time->ci_low);
    json_number(bench.json, "points_per_second", points);
    if (method != COMPUTE_ONLY) {
        json_number(bench.json, "efficiency", rate / limit_rate);
        json_object(bench.json, "communication_share");
        json_number(bench.json, "min", share.min);
        json_number(bench.json, "avg", share.avg);
        json_number(bench.json, "max", share.max);
        json_end(bench.json);
    }
    json_object(bench.json, "clocks");
    json_number(bench.json, "seconds", by_mpi[method].seconds);
    json_number(bench.json, "least", by_mpi[method].least);
    json_number(bench.json, "most", by_mpi[method].most);
    json_integer(bench.json, "operations", by_mpi[method].steps);
    json_end(bench.json);
    sample_json(bench.json, result);
    json_end(bench.json);
}

static void report_checks(void)
{
    double error = 0, measured = measured_decay();
    MPI_Reduce(&checked.error, &error, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (bench.rank != 0)
        return;
    double analytic = analytic_decay(), allowed = scheme_error() + rounding_error();
    if (!(fabs(measured - analytic) <= allowed))
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "the mode decayed to %.12g, but exp(-k^2 alpha t) is %.12g and the scheme may "
                    "differ by %.1e",
                    measured, analytic, allowed);
    printf("\nChecked: greatest error %.2e (tolerance %.2e); decay in %ld steps %.12g, analytic "
           "%.12g (tolerance %.1e)\n",
           error, rounding_error(), steps, measured, analytic, allowed);

    json_object(bench.json, "checks");
    json_number(bench.json, "error", error);
    json_number(bench.json, "error_tolerance", rounding_error());
    json_number(bench.json, "decay", measured);
    json_number(bench.json, "decay_discrete", discrete_decay());
    json_number(bench.json, "decay_analytic", analytic);
    json_number(bench.json, "decay_tolerance", allowed);
    json_end(bench.json);
}

static void measure(void)
{
    methods[method_count++] = COMPUTE_ONLY;
    if (chosen_method != ONLY_OVERLAPPED)
        methods[method_count++] = BLOCKING;
    if (chosen_method != ONLY_BLOCKING)
        methods[method_count++] = OVERLAPPED;
    if (progress_thread)
        methods[method_count++] = THREADED;

    /* Pages, connections and caches are warm after this; the shares leave it out. */
    double warm_up[METHODS];
    run_chunks(NULL, 1, warm_up);
    memset(communication, 0, sizeof communication);
    memset(computation, 0, sizeof computation);
    memset(by_mpi, 0, sizeof by_mpi);
    memset(&twins, 0, sizeof twins);

    struct sample_result results[METHODS];
    turns_run(plan, MPI_COMM_WORLD, method_count, run_chunks, NULL, results);
    sample_twins_require(&twins, "the update without any exchange");

    if (bench.rank == 0)
        printf("\n%-14s %12s %25s %12s %23s %11s\n%-14s %12s %12s %12s %12s %7s %7s %7s %11s %8s"
               "  %s\n",
               "", "", "95% interval", "", "communication %", "", "method", "iterations/s", "low",
               "high", "Mpoints/s", "min", "avg", "max", "efficiency", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int m = 0; m < method_count; m++) {
        struct share share = communication_share(methods[m]);
        if (bench.rank == 0)
            report_method(methods[m], &results[m], (double)steps / results[0].time.median, share);
    }
    json_end(bench.json);
    if (progress_thread)
        json_integer(bench.json, "progress_calls", progress_calls());
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    read_mesh();
    divide();
    make_mode();
    meet_neighbours();
    report_mesh();
    if (progress_thread)
        progress_start(mesh.comm);
    measure();
    report_checks();

    for (int d = X; d <= Z; d++) {
        free(mesh.axis[d].cosine);
        free(mesh.axis[d].sine);
    }
    free(mesh.mode_row);
    free(mesh.field[0]);
    free(mesh.field[1]);
    MPI_Type_free(&mesh.strided);
    MPI_Comm_free(&mesh.comm);
    int code = bench_end();
    if (progress_thread)
        progress_end();
    return code;
}
