#include "report.h"

#include <stdio.h>
#include <string.h>

#include "bench.h"

const char *report_version(void)
{
    return ASSAY_VERSION;
}

void report_help(void)
{
    printf("%s: %s.\n\nUsage: mpirun -n RANKS %s [OPTION]...\n\nOptions:\n", bench.about->program,
           bench.about->purpose, bench.about->program);
    options_help(bench.options);
    if (bench.about->text)
        printf("\n%s", bench.about->text);
    printf("\nExamples:\n%s", bench.about->examples);
    printf("\nExit codes: 0 measured; %d wrong use, nothing measured; %d data arrived wrong; "
           "%d the system refused\nsomething on the way.\n",
           EXIT_WRONG_USE, EXIT_WRONG_PAYLOAD, EXIT_BROKEN);
}

/* What the MPI gives, whatever was asked for. */
static const char *thread_level(void)
{
    int level;
    MPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE     ? "multiple"
           : level == MPI_THREAD_SERIALIZED ? "serialized"
           : level == MPI_THREAD_FUNNELED   ? "funneled"
                                            : "single";
}

void report_head(void)
{
    if (bench.rank != 0)
        return;

    char library[MPI_MAX_LIBRARY_VERSION_STRING], standard[32];
    int length, version, subversion;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\r\n")] = '\0';
    MPI_Get_version(&version, &subversion);
    snprintf(standard, sizeof standard, "%d.%d", version, subversion);

    printf("Implementation: assay\n");
    printf("Program:        %s %s\n", bench.about->program, report_version());
    printf("MPI:            %s (standard %s, threads %s)\n", library, standard, thread_level());
    printf("Ranks:          %d\n", bench.ranks);
    printf("Hosts:         ");
    for (int host = 0; host < bench.host_count; host++)
        printf(" %s", bench.hosts[host]);
    printf("\nArguments:     ");
    options_print(bench.options);
    fflush(stdout);

    json_integer(bench.json, "schema", 1);
    json_string(bench.json, "implementation", "assay");
    json_string(bench.json, "program", bench.about->program);
    json_string(bench.json, "version", report_version());
    json_object(bench.json, "mpi");
    json_string(bench.json, "library", library);
    json_string(bench.json, "standard", standard);
    json_string(bench.json, "thread_level", thread_level());
    json_end(bench.json);
    json_integer(bench.json, "ranks", bench.ranks);
    json_array(bench.json, "hosts");
    for (int host = 0; host < bench.host_count; host++)
        json_string(bench.json, NULL, bench.hosts[host]);
    json_end(bench.json);
    options_json(bench.json, "arguments", bench.options);
}
