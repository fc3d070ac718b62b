/* distances: latency and bandwidth of the memory of each NUMA domain, from the cores of each.
 *
 * One rank, which may run on all cores that are to be measured, binds its threads itself. The kernel is asked
 * for memory of a domain (mbind), and one of its threads touches it first, which is enough where the kernel
 * may not be asked, as in many containers. Either way it tells in the end in which domain the pages are: they
 * are elsewhere if the domain has too little left.
 *
 * Each line of a block of memory holds the number of the next one to go to, which is another cycle through
 * all lines for each number of them, and its own in all other words. So where a walk of so many steps ends
 * is known, and what all words add up to. */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "disturbance.h"
#include "host.h"
#include "memory.h"
#include "sample.h"
#include "system.h"
#include "watch.h"

static const struct bench_about about = {
    .program = "distances",
    .purpose = "latency and bandwidth of the memory of each NUMA domain, from the cores of each",
    .text =
        "Latency: one core goes from line to line of a block, where each tells the next one, in an\n"
        "order that no prefetcher guesses. Bandwidth: all cores of a domain read a block.\n"
        "Points are measured in turn, in up to 4 bouts each. Blocks are in huge pages if the\n"
        "system grants them. Distance is the firmware's, 10 within a domain.\n",
    .examples = "  mpirun -n 1 distances\n"
                "  mpirun -n 1 --bind-to none distances --size 1G --json distances.json\n",
    .min_ranks = 1,
    .thread_funneled = true,
};

static size_t size = 0; /* the default is found out at the start */
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "BYTES", .low = 1 << 16,
      .high = 1.1e12, .help = "of the block in each domain, rounded down to a power of two; 8 times a "
                              "last-level cache or more shows the memory" },
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

/* Virtual machines may have caches of some hundred MiB, by what they are told. */
static const size_t LARGEST_DEFAULT = (size_t)1 << 30;

enum { WORDS = 8, STEPS = 1000, MOST_DOMAINS = 64, PREFERRED = 1, ALLOWED = 4, ALIGNED = 2 << 20 };

/* As of the kernel's <numaif.h>, which many systems lack. */
static const int policy_preferred = PREFERRED, of_allowed_domains = ALLOWED;

struct domain {
    int number;
    int cores[SET_MEMBERS], core_count; /* a CPU of each that the rank may run on */
    bool has_memory;
    uint64_t *memory;
    double share; /* of its block, in the end: less than 0 where the kernel does not tell */
};

struct point {
    bool is_latency;
    const struct domain *from, *to;
    struct sample *sample;
};

static struct domain domains[MOST_DOMAINS];
static int domain_count;
static struct set allowed; /* CPUs of this rank */
static size_t lines;       /* of a block, a power of two */

static size_t block_bytes(void)
{
    return lines * WORDS * sizeof(uint64_t);
}

/* Domains -------------------------------------------------------------------------------------- */

static void bind_to(int cpu)
{
    struct set one = { { 0 } };
    set_add(&one, cpu);
    if (sched_setaffinity(0, sizeof one, (const cpu_set_t *)one.words))
        bench_abort(EXIT_BROKEN, "cannot bind a thread to CPU %d", cpu);
}

static void release(void)
{
    sched_setaffinity(0, sizeof allowed, (const cpu_set_t *)allowed.words);
}

/* One CPU of each core: the first that the rank may use. */
static void add_cores(struct domain *domain, const struct set *cpus)
{
    struct set own = set_both(cpus, &allowed);
    for (int cpu = set_next(&own, 0); cpu >= 0; cpu = set_next(&own, cpu + 1)) {
        struct set siblings =
            system_set("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        siblings = set_both(&siblings, &allowed);
        int first = set_next(&siblings, 0);
        if (first < 0 || first == cpu)
            domain->cores[domain->core_count++] = cpu;
    }
}

/* A kernel without NUMA has one domain, with all. */
static void find_domains(void)
{
    struct set online = system_set("/sys/devices/system/node/online"), memory = { { 0 } };
    disturbance_add_cpus(&allowed);
    if (set_next(&online, 0) < 0) {
        domains[0] = (struct domain){ .has_memory = true };
        add_cores(&domains[0], &allowed);
        domain_count = 1;
        return;
    }
    if (syscall(SYS_get_mempolicy, NULL, memory.words, (unsigned long)SET_MEMBERS, NULL,
                of_allowed_domains) != 0)
        memory = online; /* in many containers */
    struct set has_memory = system_set("/sys/devices/system/node/has_memory");
    memory = set_both(&memory, &has_memory);
    for (int node = set_next(&online, 0); node >= 0 && domain_count < MOST_DOMAINS;
         node = set_next(&online, node + 1)) {
        struct set cpus = system_set("/sys/devices/system/node/node%d/cpulist", node);
        struct domain *domain = &domains[domain_count];
        *domain = (struct domain){ .number = node, .has_memory = set_has(&memory, node) };
        add_cores(domain, &cpus);
        domain_count += domain->has_memory || domain->core_count > 0;
    }
}

/* The firmware's; 0 where it is not told. */
static int distance_between(const struct domain *from, const struct domain *to)
{
    struct set online = system_set("/sys/devices/system/node/online");
    char *text = system_text("/sys/devices/system/node/node%d/distance", from->number);
    char *rest = text, *word;
    int found = 0, node = set_next(&online, 0);
    while (rest && (word = strsep(&rest, " \n")) && node >= 0) {
        if (node == to->number)
            found = atoi(word);
        node = set_next(&online, node + 1);
    }
    free(text);
    return found;
}

/* Blocks --------------------------------------------------------------------------------------- */

/* A walk through all lines: a linear congruence of full period. */
static const uint64_t multiplier = UINT64_C(6364136223846793005),
                      increment = UINT64_C(1442695040888963407);

static uint64_t after(uint64_t line)
{
    return (line * multiplier + increment) & (lines - 1);
}

/* The line after so many steps, by their binary digits. */
static uint64_t after_steps(uint64_t line, uint64_t steps)
{
    uint64_t factor = multiplier, term = increment;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            line = line * factor + term;
        term *= factor + 1;
        factor *= factor;
    }
    return line & (lines - 1);
}

static void take_block(struct domain *domain)
{
    size_t bytes = block_bytes();
    char *room =
        mmap(NULL, bytes + ALIGNED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        bench_abort(EXIT_BROKEN, "cannot allocate %zu bytes; use a smaller --size", bytes);
    room += ALIGNED - (uintptr_t)room % ALIGNED;
    madvise(room, bytes, MADV_HUGEPAGE);
    struct set here = { { 0 } };
    set_add(&here, domain->number);
    bool is_bound = syscall(SYS_mbind, room, bytes, policy_preferred, here.words,
                            (unsigned long)SET_MEMBERS, 0) == 0;
    if (!is_bound && domain->core_count == 0) {
        domain->has_memory = false; /* nobody can touch it first */
        munmap(room, bytes);
        return;
    }
    if (domain->core_count > 0)
        bind_to(domain->cores[0]);
    domain->memory = (uint64_t *)(void *)room;
    for (uint64_t line = 0; line < lines; line++) {
        domain->memory[line * WORDS] = after(line);
        for (int word = 1; word < WORDS; word++)
            domain->memory[line * WORDS + (uint64_t)word] = line;
    }
    release();
}

static double share_in_domain(const struct domain *domain)
{
    char *text = system_text("/proc/self/numa_maps"), *rest = text, *line;
    unsigned long begin = (unsigned long)(uintptr_t)domain->memory;
    double here = 0, all = 0;
    while (rest && (line = strsep(&rest, "\n"))) {
        unsigned long at = strtoul(line, NULL, 16);
        if (at < begin || at >= begin + block_bytes())
            continue;
        for (char *word; (word = strsep(&line, " "));) {
            int node;
            double pages;
            if (sscanf(word, "N%d=%lf", &node, &pages) == 2) {
                all += pages;
                here += node == domain->number ? pages : 0;
            }
        }
    }
    free(text);
    return all > 0 ? here / all : -1;
}

/* Measuring ------------------------------------------------------------------------------------ */

/* Where a walk is, so that the next one does not find in the caches what the one before left there. */
static uint64_t place;

static double walk(const struct point *point, long iterations)
{
    const uint64_t *memory = point->to->memory;
    bind_to(point->from->cores[0]);
    uint64_t line = place, expected = after_steps(place, (uint64_t)iterations * STEPS);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        for (int step = 0; step < STEPS; step++)
            line = memory[line * WORDS];
        sample_operation();
    }
    double seconds = sample_since(start);
    release();
    if (line != expected)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "a walk in the memory of domain %d came to line %" PRIu64
                    ", and not to %" PRIu64,
                    point->to->number, line, expected);
    place = line;
    return seconds;
}

static double read_all(const struct point *point, long iterations)
{
    const uint64_t *memory = point->to->memory;
    uint64_t sum = 0, words = lines * WORDS;
    double seconds = 0;
#pragma omp parallel num_threads(point->from->core_count) reduction(+ : sum)
    {
        uint64_t team = (uint64_t)omp_get_num_threads(), number = (uint64_t)omp_get_thread_num();
        uint64_t first = words / team * number;
        uint64_t end = number + 1 == team ? words : words / team * (number + 1);
        struct sample_instant start = { 0 };
        bind_to(point->from->cores[number]);
#pragma omp barrier
        if (number == 0)
            start = sample_now();
        for (long i = 0; i < iterations; i++) {
            uint64_t own = 0;
#pragma omp simd reduction(+ : own)
            for (uint64_t word = first; word < end; word++)
                own += memory[word];
            sum += own;
            /* Else it would be enough to read once. */
            __asm__ volatile("" : : : "memory");
            if (number == 0)
                sample_operation();
        }
#pragma omp barrier
        if (number == 0)
            seconds = sample_since(start);
        release();
    }
    uint64_t expected = (uint64_t)iterations * WORDS * (lines / 2 * (lines - 1));
    if (sum != expected)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "what was read in the memory of domain %d adds up to %" PRIu64
                    ", and not to %" PRIu64,
                    point->to->number, sum, expected);
    return seconds;
}

static double batch(void *context, long iterations)
{
    const struct point *point = context;
    return point->is_latency ? walk(point, iterations) : read_all(point, iterations);
}

/* Reporting ------------------------------------------------------------------------------------ */

static double value_of(const struct point *point, const struct sample_result *result)
{
    double bytes = (double)block_bytes();
    return point->is_latency ? result->time.best / STEPS : bytes / result->time.best;
}

static void report(const struct point *point, const struct sample_result *result)
{
    int distance = distance_between(point->from, point->to);
    json_object(bench.json, NULL);
    json_string(bench.json, "measure", point->is_latency ? "latency" : "bandwidth");
    json_integer(bench.json, "from", point->from->number);
    json_integer(bench.json, "memory_of", point->to->number);
    json_integer(bench.json, "cores", point->is_latency ? 1 : point->from->core_count);
    if (distance > 0)
        json_integer(bench.json, "distance", distance);
    if (point->to->share >= 0)
        json_number(bench.json, "in_domain", point->to->share);
    json_number(bench.json, "value", value_of(point, result));
    sample_json(bench.json, result);
    json_end(bench.json);
}

static void print_matrix(const char *title, const double *values, double scale)
{
    printf("\n%-24s", title);
    for (int to = 0; to < domain_count; to++)
        if (domains[to].memory)
            printf(" %9s%-2d", "memory ", domains[to].number);
    for (int from = 0; from < domain_count; from++) {
        if (domains[from].core_count == 0)
            continue;
        printf("\n  cores of domain %-6d", domains[from].number);
        for (int to = 0; to < domain_count; to++)
            if (domains[to].memory)
                printf(" %11.2f", scale * values[from * domain_count + to]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    size = 8 * host_last_level_cache() < LARGEST_DEFAULT ? 8 * host_last_level_cache()
                                                         : LARGEST_DEFAULT;
    bench_start(&argc, &argv, &about, options);
    if (bench.ranks > 1)
        bench_refuse("needs one rank, which may run on all cores, and has %d", bench.ranks);
    find_domains();
    for (lines = 1; 2 * lines * WORDS * sizeof(uint64_t) <= size;)
        lines *= 2;
    memory_require((size_t)domain_count * block_bytes(), "use a smaller --size");
    for (int i = 0; i < domain_count; i++)
        if (domains[i].has_memory)
            take_block(&domains[i]);

    int pairs = domain_count * domain_count, count = 0;
    struct point *points = memory_allocate(2 * (size_t)pairs * sizeof *points);
    double *values = memory_allocate(2 * (size_t)pairs * sizeof *values);
    for (int i = 0; i < 2 * pairs; i++) {
        const struct domain *from = &domains[i % pairs / domain_count];
        const struct domain *to = &domains[i % domain_count];
        if (from->core_count > 0 && to->memory)
            points[count++] =
                (struct point){ i < pairs, from, to, sample_start(plan, SAMPLE_ROUNDS) };
    }
    if (count == 0)
        bench_refuse("no NUMA domain has both cores and memory that this rank may use");
    watch_start();
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < count; i++)
            if (sample_is_due(points[i].sample, round))
                sample_bout(points[i].sample, MPI_COMM_SELF, batch, &points[i]);
    /* The kernel goes through all pages to tell. */
    for (int i = 0; i < domain_count; i++)
        if (domains[i].memory)
            domains[i].share = share_in_domain(&domains[i]);
    json_integer(bench.json, "bytes", (long long)block_bytes());
    json_integer(bench.json, "steps", STEPS);
    json_integer(bench.json, "last_line", (long long)place);
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++) {
        struct sample_result result = sample_end(points[i].sample);
        long from = points[i].from - domains, to = points[i].to - domains;
        values[(points[i].is_latency ? 0 : pairs) + from * domain_count + to] =
            value_of(&points[i], &result);
        report(&points[i], &result);
    }
    json_end(bench.json);
    print_matrix("Latency, ns", values, 1e9);
    print_matrix("Bandwidth, GB/s", values + pairs, 1e-9);
    watch_report();
    free(points);
    free(values);
    return bench_end();
}
