/* files: MPI-IO writes a file, reads it back, and looks at every byte.
 *
 * All ranks share one file. Each writes its blocks, and the file is synchronised; then each reads those
 * of the rank behind it, so that data that another process wrote and that lies elsewhere is seen.
 * What is measured stands in the help text below.
 *
 * Payload: each rank's blocks have a pattern of the rank and of the number of the writing, which
 * grows. After each batch, outside the time, all ranks read what was written last, or look at what
 * they read last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"
#include "memory.h"
#include "patience.h"
#include "payload.h"
#include "sample.h"

static const struct bench_about about = {
    .program = "files",
    .purpose = "MPI-IO writes a file, reads it back, and looks at every byte",
    .text =
        "The file is made in the folder where it runs, and removed at the end. Ways:\n"
        "  independent   MPI_File_write_at, MPI_File_read_at; each rank's blocks are together.\n"
        "  collective    MPI_File_write_at_all, MPI_File_read_at_all; the same places.\n"
        "  interleaved   MPI_File_write_all, MPI_File_read_all by a view of the file in which the\n"
        "                blocks of the ranks take turns.\n"
        "Time: of writing all blocks and MPI_File_sync, or of reading them, on the slowest rank;\n"
        "a barrier, which is not timed, precedes each. Bandwidth is the whole file over it. What\n"
        "is read has just been written: it may come from memory.\n",
    .examples = "  mpirun -n 4 files\n"
                "  mpirun -n 4 files --block 1M --blocks 16 --json files.json\n",
    .min_ranks = 1,
};

enum way { INDEPENDENT, COLLECTIVE, INTERLEAVED, WAYS };
static const char *const way_names[] = { "independent", "collective", "interleaved" };
enum direction { WRITE, READ, DIRECTIONS };
static const char *const direction_names[] = { "write", "read" };

static size_t block = (size_t)64 << 10;
static long blocks = 4, patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "block", .kind = OPTION_SIZE, .value = &block, .argument = "BYTES", .low = 1,
      .high = (size_t)1 << 30, .help = "of a block" },
    { .name = "blocks", .kind = OPTION_COUNT, .value = &blocks, .argument = "COUNT", .low = 1,
      .high = 1 << 16, .help = "of each rank" },
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

static const char *const path = "files.assay";

static MPI_File file;
static MPI_Datatype turns; /* a rank's blocks in the file, where ranks take turns */
static char *written, *read_back;
static size_t bytes; /* of a rank */
static long message; /* of the last writing */

struct point {
    enum way way;
    enum direction direction;
    struct sample *sample;
};

/* Files return errors, and do not end the job. */
static void must(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, reason, &length);
    bench_abort(EXIT_BROKEN, "%s on %s: %s", what, path, reason);
}

static void must_be_whole(MPI_Status *status, const char *what)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    if ((size_t)count != bytes)
        bench_abort(EXIT_WRONG_PAYLOAD, "%s moved %d of %zu bytes", what, count, bytes);
}

/* Where the blocks of a rank are. */
static void look_at(enum way way, int rank)
{
    MPI_Offset start = way == INTERLEAVED ? (MPI_Offset)rank * (MPI_Offset)block : 0;
    MPI_Datatype places = way == INTERLEAVED ? turns : MPI_BYTE;
    must(MPI_File_set_view(file, start, MPI_BYTE, places, "native", MPI_INFO_NULL),
         "MPI_File_set_view");
}

static MPI_Offset place_of(int rank)
{
    return (MPI_Offset)rank * (MPI_Offset)bytes;
}

static void write_blocks(enum way way)
{
    MPI_Status status;
    int count = (int)bytes;
    switch (way) {
    case INDEPENDENT:
        must(MPI_File_write_at(file, place_of(bench.rank), written, count, MPI_BYTE, &status),
             "MPI_File_write_at");
        break;
    case COLLECTIVE:
        must(MPI_File_write_at_all(file, place_of(bench.rank), written, count, MPI_BYTE, &status),
             "MPI_File_write_at_all");
        break;
    default:
        must(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
        must(MPI_File_write_all(file, written, count, MPI_BYTE, &status), "MPI_File_write_all");
    }
    must_be_whole(&status, way_names[way]);
    must(MPI_File_sync(file), "MPI_File_sync");
    sample_operation();
}

static int rank_behind(void)
{
    return (bench.rank + 1) % bench.ranks;
}

static void read_blocks(enum way way)
{
    MPI_Status status;
    int count = (int)bytes;
    switch (way) {
    case INDEPENDENT:
        must(MPI_File_read_at(file, place_of(rank_behind()), read_back, count, MPI_BYTE, &status),
             "MPI_File_read_at");
        break;
    case COLLECTIVE:
        must(MPI_File_read_at_all(file, place_of(rank_behind()), read_back, count, MPI_BYTE,
                                  &status),
             "MPI_File_read_at_all");
        break;
    default:
        must(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
        must(MPI_File_read_all(file, read_back, count, MPI_BYTE, &status), "MPI_File_read_all");
    }
    must_be_whole(&status, way_names[way]);
    sample_operation();
}

/* Contents of the next writing, and what nobody wrote. */
static void prepare(void)
{
    message++;
    payload_fill(written, bytes, bench.rank, message);
    payload_spoil(read_back, bytes, rank_behind(), message);
}

/* What others wrote is seen after a sync, a barrier and a sync (MPI 4.1, section 14.6.1). */
static void meet(void)
{
    must(MPI_File_sync(file), "MPI_File_sync");
    MPI_Barrier(MPI_COMM_WORLD);
    must(MPI_File_sync(file), "MPI_File_sync");
}

/* The last block that was read, at the place that it has in the file of all ranks. */
static void check_turns(void)
{
    size_t before = bytes - block;
    MPI_Offset place = ((MPI_Offset)(blocks - 1) * bench.ranks + rank_behind()) * (MPI_Offset)block;
    MPI_Status status;
    look_at(INDEPENDENT, bench.rank);
    must(MPI_File_read_at(file, place, written, (int)block, MPI_BYTE, &status), "MPI_File_read_at");
    if (memcmp(written, read_back + before, block) != 0)
        bench_abort(EXIT_WRONG_PAYLOAD, "the last block of rank %d is not at byte %lld of the file",
                    rank_behind(), (long long)place);
}

static double batch(void *context, long iterations)
{
    const struct point *point = context;
    bool writes = point->direction == WRITE;
    prepare();
    look_at(point->way, bench.rank);
    if (!writes) {
        write_blocks(point->way);
        meet();
        look_at(point->way, rank_behind());
    }
    long lacking = 0;
    struct sample_parts parts = sample_parts_start();
    for (long i = 0; i < iterations; i++) {
        /* A byte of what was read last, which has to be read once more. */
        char *place = read_back + payload_place(bytes, i), held = *place;
        bool is_again = !writes && i > 0;
        if (is_again)
            *place = (char)~held;
        sample_barrier(MPI_COMM_WORLD);
        struct sample_mark start = sample_mark();
        if (writes)
            write_blocks(point->way);
        else
            read_blocks(point->way);
        sample_parts_add(&parts, start);
        lacking += is_again && *place != held;
    }
    double seconds = sample_parts_end(&parts);
    if (lacking > 0)
        bench_abort(EXIT_WRONG_PAYLOAD, "%ld readings by %s of %zu bytes left old content", lacking,
                    way_names[point->way], bytes);
    if (writes) {
        meet();
        look_at(point->way, rank_behind());
        read_blocks(point->way);
    }
    payload_check(read_back, bytes, rank_behind(), message);
    if (point->way == INTERLEAVED)
        check_turns();
    return seconds;
}

static void report(const struct point *point)
{
    struct sample_result result = sample_end(point->sample);
    if (bench.rank != 0)
        return;
    size_t size = bytes * (size_t)bench.ranks;
    double bandwidth = (double)size / result.time.best;
    printf("%-12s %-6s %12zu", way_names[point->way], direction_names[point->direction], size);
    sample_print(&result, "%12.2f", bandwidth * 1e-6);
    json_object(bench.json, NULL);
    json_string(bench.json, "way", way_names[point->way]);
    json_string(bench.json, "direction", direction_names[point->direction]);
    json_integer(bench.json, "size", (long long)size);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, &result);
    json_end(bench.json);
}

static void open_file(void)
{
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    must(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "MPI_File_open");
    MPI_Group group;
    int ranks;
    must(MPI_File_get_group(file, &group), "MPI_File_get_group");
    MPI_Group_size(group, &ranks);
    MPI_Group_free(&group);
    if (ranks != bench.ranks)
        bench_abort(EXIT_BROKEN, "%d of %d ranks opened the file together", ranks, bench.ranks);
    MPI_Datatype one;
    MPI_Type_contiguous((int)block, MPI_BYTE, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)block * bench.ranks, &turns);
    MPI_Type_commit(&turns);
    MPI_Type_free(&one);
}

/* That it is in the folder where it runs. Of what other hosts wrote this one may hear later. */
static void check_file(void)
{
    struct stat found;
    if (bench.rank != 0)
        return;
    if (stat("files.assay", &found) != 0 || (size_t)found.st_size < bytes)
        bench_abort(EXIT_BROKEN, "files.assay in this folder does not hold %zu bytes", bytes);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    bytes = (size_t)blocks * block;
    if (bytes > (size_t)1 << 30)
        bench_refuse("--block %zu and --blocks %ld are more than 1 GiB for a rank", block, blocks);
    memory_require(2 * bytes, "use a smaller --block or fewer ranks per host");
    written = memory_allocate(bytes);
    read_back = memory_allocate(bytes);
    patience_start((double)patience, "MPI_File_open");
    open_file();

    struct point points[WAYS * DIRECTIONS];
    for (int i = 0; i < WAYS * DIRECTIONS; i++)
        points[i] = (struct point){ .way = i / DIRECTIONS,
                                    .direction = i % DIRECTIONS,
                                    .sample = sample_start(plan, SAMPLE_ROUNDS) };
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < WAYS * DIRECTIONS; i++) {
            if (!sample_is_due(points[i].sample, round))
                continue;
            patience_start((double)patience + plan.budget, "%s %s", way_names[points[i].way],
                           direction_names[points[i].direction]);
            sample_bout(points[i].sample, MPI_COMM_WORLD, batch, &points[i]);
        }
    check_file();
    patience_start((double)patience, "MPI_File_close");
    must(MPI_File_close(&file), "MPI_File_close");
    patience_end();
    MPI_Type_free(&turns);

    if (bench.rank == 0)
        printf("\n%-12s %-6s %12s %12s %12s %12s %8s %8s  %s\n", "way", "", "bytes", "best us",
               "median us", "MB/s", "+- %", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int i = 0; i < WAYS * DIRECTIONS; i++)
        report(&points[i]);
    json_end(bench.json);
    free(written);
    free(read_back);
    return bench_end();
}
