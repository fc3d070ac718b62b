#include "monitoring.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wrap.h"

#ifdef OPEN_MPI

/* One variable, with a number for each rank of MPI_COMM_WORLD. */
struct variable {
    const char *name;
    MPI_T_pvar_handle handle;
    size_t *began, *values; /* after MPI_Init, when the witness has sent already; in the end */
};

static struct variable messages = { .name = "pml_monitoring_messages_count" };
static struct variable bytes = { .name = "pml_monitoring_messages_size" };
static MPI_T_pvar_session session;
static bool is_monitored;
/* The program may have switched counting off, or begun it anew: all handles of the monitoring share one
 * switch, and one of pml_monitoring_flush clears all counters. */
static atomic_bool is_disturbed;

static bool read_variable(const struct variable *variable, size_t *values)
{
    return PMPI_T_pvar_read(session, variable->handle, values) == MPI_SUCCESS;
}

static bool open_variable(struct variable *variable)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int index, count;
    if (PMPI_T_pvar_get_index(variable->name, MPI_T_PVAR_CLASS_SIZE, &index) != MPI_SUCCESS ||
        PMPI_T_pvar_handle_alloc(session, index, &world, &variable->handle, &count) !=
            MPI_SUCCESS ||
        count != witness.ranks || PMPI_T_pvar_start(session, variable->handle) != MPI_SUCCESS)
        return false;
    variable->began = calloc((size_t)count, sizeof *variable->began);
    variable->values = calloc((size_t)count, sizeof *variable->values);
    return variable->began && variable->values && read_variable(variable, variable->began);
}

void monitoring_start(void)
{
    /* With 2 it leaves out what the program did not send itself. */
    const char *enabled = getenv("OMPI_MCA_pml_monitoring_enable");
    int provided;
    if (!witness.matrix || !enabled || strcmp(enabled, "1") != 0)
        return;
    is_monitored = PMPI_T_init_thread(witness.thread_level, &provided) == MPI_SUCCESS &&
                   PMPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
                   open_variable(&messages) && open_variable(&bytes);
    if (!is_monitored && witness.rank == 0)
        witness_say("assay witness: this Open MPI's monitoring has no counters to be read; "
                    "the report has no sent_by_mpi\n");
}

void monitoring_stop(void)
{
    is_monitored = is_monitored && !atomic_load(&is_disturbed) &&
                   read_variable(&messages, messages.values) && read_variable(&bytes, bytes.values);
}

void monitoring_program_stops(void)
{
    atomic_store(&is_disturbed, true);
}

void monitoring_program_allocates(int index)
{
    int flush;
    if (PMPI_T_pvar_get_index("pml_monitoring_flush", MPI_T_PVAR_CLASS_GENERIC, &flush) ==
            MPI_SUCCESS &&
        index == flush)
        atomic_store(&is_disturbed, true);
}

void monitoring_write(struct json *json)
{
    if (!is_monitored)
        return;
    json_array(json, "sent_by_mpi");
    for (int rank = 0; rank < witness.ranks; rank++) {
        if (messages.values[rank] <= messages.began[rank])
            continue;
        json_object(json, NULL);
        json_integer(json, "rank", rank);
        json_integer(json, "messages", (long long)(messages.values[rank] - messages.began[rank]));
        json_integer(json, "bytes", (long long)(bytes.values[rank] - bytes.began[rank]));
        json_end(json);
    }
    json_end(json);
}

#else

void monitoring_start(void) {}

void monitoring_stop(void) {}

void monitoring_program_stops(void) {}

void monitoring_program_allocates(int index)
{
    (void)index;
}

void monitoring_write(struct json *json)
{
    (void)json;
}

/* MPICH forgets its settings with the last one, and its next MPI_Allreduce fails: the program may call
 * none, and the witness does. */
EXPORT int MPI_T_finalize(void)
{
    static atomic_bool kept;
    int variables, level;
    bind_mpi();
    if (witness.active && PMPI_T_cvar_get_num(&variables) == MPI_SUCCESS &&
        !atomic_exchange(&kept, true))
        PMPI_T_init_thread(witness.thread_level, &level);
    return PMPI_T_finalize();
}

#endif
