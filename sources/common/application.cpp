#include "application.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "abort_job.h"
#include "host.h"

namespace assay {

namespace {

const char *program_name = "";
Job job;

constexpr double GIB = 1 << 30;

// The sentence with its values.
struct Sentence {
    char text[1024];
    Sentence(const char *format, va_list values)
    {
        std::vsnprintf(text, sizeof text, format, values);
    }
};

using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;

Name processor_name()
{
    Name name{};
    int length;
    MPI_Get_processor_name(name.data(), &length);
    return name;
}

// Of the ranks of that host. By name: by shared memory an MPI that is told not to use it finds each
// rank alone.
int first_rank_of(const Name &name)
{
    std::vector<Name> names(job.ranks);
    MPI_Allgather(name.data(), name.size(), MPI_CHAR, names.data(), name.size(), MPI_CHAR,
                  MPI_COMM_WORLD);
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

[[noreturn]] void leave(int code)
{
    std::fflush(stdout);
    MPI_Finalize();
    std::exit(code);
}

} // namespace

Job start(int *argc, char ***argv, const char *program, const char *help)
{
    program_name = program;
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    job.threads = omp_get_max_threads();
    if (job.threads > 1 && provided < MPI_THREAD_FUNNELED)
        refuse("this MPI carries no threads (it provides level %d); set OMP_NUM_THREADS=1",
               provided);
    for (int i = 1; i < *argc; i++) {
        bool wants_help = std::strcmp((*argv)[i], "--help") == 0;
        if (!wants_help && std::strcmp((*argv)[i], "--version") != 0)
            continue;
        if (job.rank == 0 && wants_help)
            std::fputs(help, stdout);
        else if (job.rank == 0)
            std::printf("%s %s\n", program, version());
        leave(EXIT_SUCCESS);
    }
    return job;
}

const char *version()
{
    return ASSAY_VERSION;
}

void refuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Sentence sentence(format, values);
    va_end(values);
    std::fflush(stdout);
    // In one piece: Open MPI's launcher may deliver the first of several as standard output.
    if (job.rank == 0)
        std::fprintf(stderr, "%s: %s\n", program_name, sentence.text);
    leave(WRONG_USE);
}

void fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Sentence sentence(format, values);
    va_end(values);
    std::fflush(stdout);
    std::fprintf(stderr, "%s: rank %d: %s\n", program_name, job.rank, sentence.text);
    abort_job(MPI_COMM_WORLD, BROKEN);
}

void require_memory(double bytes_on_this_rank, const char *remedy)
{
    Name name = processor_name();
    int first = first_rank_of(name);
    MPI_Comm host;
    MPI_Comm_split(MPI_COMM_WORLD, first, job.rank, &host);
    double need = bytes_on_this_rank;
    MPI_Allreduce(MPI_IN_PLACE, &need, 1, MPI_DOUBLE, MPI_SUM, host);
    MPI_Comm_free(&host);

    // The host that lacks most decides, and everybody learns of it.
    struct {
        double lack;
        int rank;
    } worst;
    worst.lack = need - static_cast<double>(host_available_memory());
    worst.rank = job.rank;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (worst.lack <= 0)
        return;
    MPI_Bcast(name.data(), name.size(), MPI_CHAR, worst.rank, MPI_COMM_WORLD);
    MPI_Bcast(&need, 1, MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
    refuse("the ranks on host %s need %.2f GiB but only %.2f GiB are available; %s", name.data(),
           need / GIB, (need - worst.lack) / GIB, remedy);
}

void print_limit(const char *kernel, const char *limit_name, const char *unit, double limit,
                 double achieved)
{
    if (job.rank == 0)
        std::printf("Limit of %s: %s %.6g %s; achieved %.6g %s; fraction %.6g\n", kernel,
                    limit_name, limit, unit, achieved, unit, achieved / limit);
}

int finish(bool passed)
{
    std::fflush(stdout);
    MPI_Finalize();
    return passed ? EXIT_SUCCESS : FAILED_CHECK;
}

} // namespace assay
