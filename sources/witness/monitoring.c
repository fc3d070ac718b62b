#include "monitoring.h"

#include <stdlib.h>
#include <string.h>

#include "witness.h"

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
}

void monitoring_stop(void)
{
    is_monitored = is_monitored && read_variable(&messages, messages.values) &&
                   read_variable(&bytes, bytes.values);
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

void monitoring_write(struct json *json)
{
    (void)json;
}

#endif
