/* nodes: what each node of a job gives, alone and all at once, again and again.
 *
 * For finding the node that is not like the others: every node does the same, and each sweep is a
 * measurement of its own, so that what is slow once is told from what is slow for good. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "busiest.h"
#include "caches.h"
#include "disturbance.h"
#include "facts.h"
#include "measures.h"
#include "memory.h"
#include "rest.h"
#include "stats.h"
#include "system.h"

static const struct bench_about about = {
    .program = "nodes",
    .purpose =
        "what each node gives alone and all at once, to find one that is not like the others",
    .text =
        "A node is a host with its ranks; their rates add up. Measured again and again:\n"
        "  triad       bytes per second of a = b + s c, 24 bytes an element\n"
        "  dgemm       floating-point operations per second of a product of --n rows a rank\n"
        "  frequency   cycles per second of the node's slowest core\n"
        "Alone: the nodes take turns in up to --waves waves, in which all others sleep.\n"
        "Together: all nodes at once. What other processes and the hypervisor took of the CPUs'\n"
        "time meanwhile is told of each sweep. Then, for ten times as long (65 s at most), all\n"
        "nodes count what interrupts their cores: the time of the core that loses most and by what,\n"
        "that of all, and the longest interruption (FWQ). Of each node the busiest other process is told, the memory, CPUs,\n"
        "firmware, and the errors that its memory's controllers counted before and after.\n",
    .examples =
        "  mpirun -n 4 --map-by node nodes --json nodes.json\n"
        "  OMP_NUM_THREADS=16 OMP_PLACES=cores mpirun -n 64 --map-by numa nodes --sweeps 3\n",
    .min_ranks = 1,
    .thread_funneled = true,
};

enum { MOST_SWEEPS = 64 };

static long sweeps = 8, waves = 8, n = 1000;
static size_t size = 0; /* the default is found out at the start */
static double budget = 0.1;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "sweeps", .kind = OPTION_COUNT, .value = &sweeps, .argument = "TIMES", .low = 1,
      .high = MOST_SWEEPS, .help = "that everything is measured" },
    { .name = "waves", .kind = OPTION_COUNT, .value = &waves, .argument = "WAVES", .low = 1,
      .high = 1024, .help = "at most so many, when nodes are measured alone" },
    { .name = "budget", .kind = OPTION_NUMBER, .value = &budget, .argument = "SECONDS",
      .low = 1e-3, .high = 60, .help = "time of each measurement" },
    { .name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "BYTES", .low = 64,
      .high = 1.1e15, .help = "of each of the three arrays, over all ranks of a node; twice its "
                              "last-level caches or more shows the memory" },
    { .name = "n", .kind = OPTION_COUNT, .value = &n, .argument = "ROWS", .low = 1, .high = 30000,
      .help = "of the matrices of each rank" },
    { .name = NULL },
};
/* clang-format on */

/* Interruptions come rarely: what takes a core once in a second is to be in most sweeps. */
static const double LISTENING = 10;

enum mode { ALONE, TOGETHER, MODES };

static const char *const mode_names[] = { "alone", "together" };

/* What is known of a node: on its first rank, and in the end on rank 0. */
struct node {
    char name[MPI_MAX_PROCESSOR_NAME];
    struct facts facts;
    struct memory_errors before, after;
    uint64_t thermal_events;
    double values[MODES][MEASURES][MOST_SWEEPS];
    double taken[MODES][MOST_SWEEPS]; /* by others, as a share of the CPUs' time */
    struct noise noise[MOST_SWEEPS];
    /* Of the time of the CPU that lost most, as the kernel counts them. */
    struct taken {
        double interrupts, stolen;
    } of_noise[MOST_SWEEPS];
    struct process busiest;           /* of the others; id 0: none */
    double busiest_share;             /* of one core, over all sweeps */
    struct account account;           /* of all ranks and sweeps */
    char wrong[64];                   /* what was computed wrongly; empty: nothing */
};

static MPI_Comm host;    /* the ranks of this host */
static MPI_Comm leaders; /* the first rank of each host; MPI_COMM_NULL on the others */
static struct set cpus;  /* that the ranks of the host may run on */

static void find_hosts(void)
{
    int place;
    MPI_Comm_split(MPI_COMM_WORLD, bench.host_of[bench.rank], bench.rank, &host);
    MPI_Comm_rank(host, &place);
    MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, bench.rank, &leaders);
    cpus = (struct set){ { 0 } };
#pragma omp parallel
    {
#pragma omp critical
        disturbance_add_cpus(&cpus);
    }
    MPI_Allreduce(MPI_IN_PLACE, cpus.words, SET_MEMBERS / SET_WORD, MPI_UNSIGNED_LONG, MPI_BOR,
                  host);
}

/* The ranks of a node at the same time. */
static void measure(struct node *node, enum mode mode, long sweep)
{
    struct disturbance before = disturbance_read(&cpus);
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        MPI_Barrier(host);
        double value = measures_take(measure, budget);
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, measure == FREQUENCY ? MPI_MIN : MPI_SUM,
                      host);
        node->values[mode][measure][sweep] = value;
    }
    struct disturbance passed = disturbance_since(&before, &cpus);
    double own;
    MPI_Allreduce(&passed.own, &own, 1, MPI_DOUBLE, MPI_SUM, host);
    node->taken[mode][sweep] = disturbance_foreign_share(&passed, own) +
                               passed.steal / (passed.wall * passed.cpus);
    node->thermal_events += passed.thermal_known ? passed.thermal_events : 0;
}

/* By the text of /proc/stat; nothing of a CPU that it does not list. */
static struct cpu_times times_of(const char *text, int wanted)
{
    int cpu;
    struct cpu_times times;
    for (const char *line = text; line;) {
        if (disturbance_cpu_times(line, &cpu, &times) && cpu == wanted)
            return times;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return (struct cpu_times){ 0 };
}

/* Of the ranks of a host: the core that lost most, and the sums. */
static struct noise worst_of(const struct noise *noises, int ranks)
{
    struct noise worst = noises[0];
    for (int rank = 1; rank < ranks; rank++) {
        struct noise before = worst, one = noises[rank];
        if (one.share > worst.share)
            worst = one;
        worst.longest = before.longest > one.longest ? before.longest : one.longest;
        worst.all = before.all + one.all;
        worst.threads = before.threads + one.threads;
    }
    return worst;
}

/* All cores of all nodes at once, which loads nothing that they share. */
static void listen(struct node *node, long sweep)
{
    int place, ranks;
    MPI_Comm_rank(host, &place);
    MPI_Comm_size(host, &ranks);
    struct noise *all = memory_allocate((size_t)ranks * sizeof *all);
    char *before = place == 0 ? system_text("/proc/stat") : NULL;
    double start = MPI_Wtime();
    MPI_Barrier(host);
    measures_take(FREQUENCY, LISTENING * budget);
    struct noise noise = measures_noise();
    MPI_Gather(&noise, NOISE_DOUBLES, MPI_DOUBLE, all, NOISE_DOUBLES, MPI_DOUBLE, 0, host);
    if (place == 0) {
        char *after = system_text("/proc/stat");
        double seconds = MPI_Wtime() - start;
        noise = worst_of(all, ranks);
        int cpu = (int)noise.cpu;
        struct cpu_times was = times_of(before, cpu), is = times_of(after, cpu);
        node->noise[sweep] = noise;
        node->of_noise[sweep] = (struct taken){ (is.interrupts - was.interrupts) / seconds,
                                                (is.steal - was.steal) / seconds };
        free(after);
    }
    free(before);
    free(all);
}

static void sweep_once(struct node *node, long sweep)
{
    int used = bench.host_count < waves ? bench.host_count : (int)waves;
    for (int wave = 0; wave < used; wave++) {
        if (bench.host_of[bench.rank] % used == wave)
            measure(node, ALONE, sweep);
        rest_until_all(MPI_COMM_WORLD);
    }
    measure(node, TOGETHER, sweep);
    listen(node, sweep);
    rest_until_all(MPI_COMM_WORLD);
}

static void sweep_all(struct node *node)
{
    int place, ranks, own = (int)getpid();
    MPI_Comm_rank(host, &place);
    MPI_Comm_size(host, &ranks);
    int *ids = memory_allocate((size_t)ranks * sizeof *ids);
    MPI_Gather(&own, 1, MPI_INT, ids, 1, MPI_INT, 0, host);
    struct processes before = { 0 }, after;
    if (place == 0)
        before = processes_read();
    double start = MPI_Wtime(), took;
    for (long sweep = 0; sweep < sweeps; sweep++)
        sweep_once(node, sweep);
    if (place == 0) {
        after = processes_read();
        struct own_job job = { ids, ranks, cpus, getenv("SLURM_JOB_ID") };
        const struct process *busiest = processes_busiest(&before, &after, &job, &took);
        if (busiest) {
            node->busiest = *busiest;
            node->busiest_share = took / (MPI_Wtime() - start);
        }
        free(before.of);
        free(after.of);
    }
    free(ids);
}

/* The first rank of the host has what any of its ranks found. */
static void find_wrong(struct node *node)
{
    const char *found = measures_end();
    int rank, first, none;
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &none);
    first = found ? rank : none;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, host);
    snprintf(node->wrong, sizeof node->wrong, "%s", found ? found : "");
    if (first < none)
        MPI_Bcast(node->wrong, sizeof node->wrong, MPI_CHAR, first, host);
}

static double median_of(const double *values)
{
    double sorted[MOST_SWEEPS];
    for (long i = 0; i < sweeps; i++)
        sorted[i] = values[i];
    return stats_of(sorted, (int)sweeps).median;
}

static void print_node(const struct node *node)
{
    printf("%-20s", node->name);
    for (enum mode mode = 0; mode < MODES; mode++)
        for (enum measure measure = 0; measure < MEASURES; measure++)
            printf(" %10.3f", median_of(node->values[mode][measure]) * 1e-9);
    printf(" %8.1f%%", 100 * median_of(node->taken[TOGETHER]));
    if (*node->wrong)
        printf("  %s is wrong", node->wrong);
    putchar('\n');
}

static void json_numbers(const char *key, const double *values)
{
    json_array(bench.json, key);
    for (long i = 0; i < sweeps; i++)
        json_number(bench.json, NULL, values[i]);
    json_end(bench.json);
}

static void json_noise(const struct node *node)
{
    enum { SHARE, LONGEST, ALL, OTHERS, INTERRUPTS, STOLEN, CPU, FIELDS };
    static const char *const names[] = { "share",      "longest", "all", "others",
                                         "interrupts", "stolen",  "cpu" };
    double values[FIELDS][MOST_SWEEPS];
    for (long i = 0; i < sweeps; i++) {
        const struct noise *noise = &node->noise[i];
        values[SHARE][i] = noise->share;
        values[LONGEST][i] = noise->longest;
        values[ALL][i] = noise->all / noise->threads;
        values[OTHERS][i] = noise->others;
        values[INTERRUPTS][i] = node->of_noise[i].interrupts;
        values[STOLEN][i] = node->of_noise[i].stolen;
        values[CPU][i] = noise->cpu;
    }
    json_object(bench.json, "noise");
    for (int field = 0; field < FIELDS; field++)
        json_numbers(names[field], values[field]);
    json_end(bench.json);
}

static void json_account(const struct account *account)
{
    json_object(bench.json, "account");
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        json_object(bench.json, measure_names[measure]);
        json_number(bench.json, "work", account->of[measure].work);
        json_number(bench.json, "passes", account->of[measure].passes);
        json_number(bench.json, "by_rates", account->of[measure].by_rates);
        json_number(bench.json, "rates", account->of[measure].rates);
        json_end(bench.json);
    }
    two_clocks_json(bench.json, account->clocks);
    json_end(bench.json);
}

static void json_node(const struct node *node)
{
    json_object(bench.json, NULL);
    json_string(bench.json, "node", node->name);
    for (enum mode mode = 0; mode < MODES; mode++) {
        json_object(bench.json, mode_names[mode]);
        for (enum measure measure = 0; measure < MEASURES; measure++)
            json_numbers(measure_names[measure], node->values[mode][measure]);
        json_numbers("taken", node->taken[mode]);
        json_end(bench.json);
    }
    json_noise(node);
    if (node->busiest.id) {
        json_object(bench.json, "busiest_other");
        json_string(bench.json, "command", node->busiest.command);
        json_integer(bench.json, "process", node->busiest.id);
        json_number(bench.json, "share", node->busiest_share);
        json_end(bench.json);
    }
    json_account(&node->account);
    facts_write(bench.json, &node->facts);
    if (node->after.known) {
        json_object(bench.json, "memory_errors");
        json_integer(bench.json, "corrected", (long long)node->after.corrected);
        json_integer(bench.json, "uncorrected", (long long)node->after.uncorrected);
        json_integer(bench.json, "new",
                     (long long)(node->after.corrected - node->before.corrected +
                                 node->after.uncorrected - node->before.uncorrected));
        json_end(bench.json);
    }
    json_integer(bench.json, "thermal_events", (long long)node->thermal_events);
    if (*node->wrong)
        json_string(bench.json, "wrong", node->wrong);
    json_end(bench.json);
}

static void report(const struct node *nodes)
{
    printf("\n%-20s %32s %32s\n%-20s", "", "alone", "all at once", "median of the sweeps");
    for (enum mode mode = 0; mode < MODES; mode++)
        printf(" %10s %10s %10s", "GB/s", "Gflop/s", "GHz");
    printf(" %9s\n", "others'");
    json_array(bench.json, "results");
    for (int i = 0; i < bench.host_count; i++) {
        print_node(&nodes[i]);
        json_node(&nodes[i]);
    }
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    size = 2 * caches_last_level();
    bench_start(&argc, &argv, &about, options);
    MPI_Bcast(&size, sizeof size, MPI_BYTE, 0, MPI_COMM_WORLD); /* all nodes do the same */
    find_hosts();
    int ranks;
    MPI_Comm_size(host, &ranks);
    size_t elements = size / sizeof(double) / (size_t)ranks;
    memory_require(measures_bytes(elements, (int)n), "use a smaller --size or --n");
    struct node *own = memory_allocate(sizeof *own), *all = NULL;
    snprintf(own->name, sizeof own->name, "%s", bench.hosts[bench.host_of[bench.rank]]);
    own->facts = facts_read();
    own->before = facts_memory_errors();
    measures_start(elements, (int)n);
    for (enum measure measure = 0; measure < MEASURES; measure++)
        measures_take(measure, budget / 10); /* brings caches and clocks up */
    rest_until_all(MPI_COMM_WORLD);

    measures_account();
    sweep_all(own);
    struct account account = measures_account();
    MPI_Reduce(&account, &own->account, ACCOUNT_DOUBLES, MPI_DOUBLE, MPI_SUM, 0, host);
    own->after = facts_memory_errors();
    find_wrong(own);

    if (bench.rank == 0)
        all = memory_allocate((size_t)bench.host_count * sizeof *all);
    if (leaders != MPI_COMM_NULL) {
        MPI_Gather(own, sizeof *own, MPI_BYTE, all, sizeof *own, MPI_BYTE, 0, leaders);
        MPI_Comm_free(&leaders);
    }
    if (bench.rank == 0)
        report(all);
    MPI_Comm_free(&host);
    free(all);
    free(own);
    return bench_end();
}
