/* Calls that make and free communicators and datatypes, so that handles mean what they mean. */
#include "wrap.h"

/* Makes one communicator, of which all its ranks are in the call. `own_tag`: see
 * communicator_created. */
#define CREATES_BY_TAG(name, own_tag, arguments, ...)                  \
    EXPORT int MPI_##name(__VA_ARGS__)                                 \
    {                                                                  \
        struct timing timing = call_begin_in(CALL_##name, comm);       \
        int code = PMPI_##name arguments;                              \
        call_end(&timing);                                             \
        if (code == MPI_SUCCESS && timing.thread)                      \
            communicator_created(*made, timing.communicator, own_tag); \
        return code;                                                   \
    }
#define CREATES(name, ...) CREATES_BY_TAG(name, -1, __VA_ARGS__)

CREATES(Comm_dup, (comm, made), MPI_Comm comm, MPI_Comm *made)
CREATES(Comm_dup_with_info, (comm, info, made), MPI_Comm comm, MPI_Info info, MPI_Comm *made)
CREATES(Comm_split, (comm, colour, key, made), MPI_Comm comm, int colour, int key, MPI_Comm *made)
CREATES(Comm_split_type, (comm, type, key, info, made), MPI_Comm comm, int type, int key,
        MPI_Info info, MPI_Comm *made)
CREATES(Comm_create, (comm, group, made), MPI_Comm comm, MPI_Group group, MPI_Comm *made)
CREATES_BY_TAG(Comm_create_group, tag, (comm, group, tag, made), MPI_Comm comm, MPI_Group group,
               int tag, MPI_Comm *made)
CREATES(Cart_create, (comm, dimensions, extents, periods, reorder, made), MPI_Comm comm,
        int dimensions, const int extents[], const int periods[], int reorder, MPI_Comm *made)
CREATES(Cart_sub, (comm, remaining, made), MPI_Comm comm, const int remaining[], MPI_Comm *made)
CREATES(Graph_create, (comm, nodes, index, edges, reorder, made), MPI_Comm comm, int nodes,
        const int index[], const int edges[], int reorder, MPI_Comm *made)
CREATES(Dist_graph_create,
        (comm, count, sources, degrees, destinations, weights, info, reorder, made), MPI_Comm comm,
        int count, const int sources[], const int degrees[], const int destinations[],
        const int weights[], MPI_Info info, int reorder, MPI_Comm *made)
CREATES(Dist_graph_create_adjacent,
        (comm, in, sources, source_weights, out, destinations, weights, info, reorder, made),
        MPI_Comm comm, int in, const int sources[], const int source_weights[], int out,
        const int destinations[], const int weights[], MPI_Info info, int reorder, MPI_Comm *made)
CREATES(Intercomm_create, (comm, leader, peers, remote_leader, tag, made), MPI_Comm comm,
        int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *made)
CREATES(Intercomm_merge, (comm, high, made), MPI_Comm comm, int high, MPI_Comm *made)

FREES(Comm_free, counted, MPI_Comm, struct communicator, communicator_take, communicator_put_back,
      communicator_freed)
FREES(Comm_disconnect, counted, MPI_Comm, struct communicator, communicator_take,
      communicator_put_back, communicator_freed)

/* Makes one that is looked at when it is first used. */
#define COMES(name, arguments, ...)                     \
    EXPORT int MPI_##name(__VA_ARGS__)                  \
    {                                                   \
        struct timing timing = call_begin(CALL_##name); \
        int code = PMPI_##name arguments;               \
        call_end(&timing);                              \
        if (code == MPI_SUCCESS && timing.thread)       \
            communicator_is_new(*made);                 \
        return code;                                    \
    }

COMES(Comm_spawn, (command, arguments, most, info, root, comm, made, codes), const char *command,
      char *arguments[], int most, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made,
      int codes[])
COMES(Comm_spawn_multiple, (count, commands, arguments, most, info, root, comm, made, codes),
      int count, char *commands[], char **arguments[], const int most[], const MPI_Info info[],
      int root, MPI_Comm comm, MPI_Comm *made, int codes[])
COMES(Comm_accept, (port, info, root, comm, made), const char *port, MPI_Info info, int root,
      MPI_Comm comm, MPI_Comm *made)
COMES(Comm_connect, (port, info, root, comm, made), const char *port, MPI_Info info, int root,
      MPI_Comm comm, MPI_Comm *made)
COMES(Comm_join, (socket, made), int socket, MPI_Comm *made)
COMES(Comm_idup, (comm, made, request), MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
#ifdef HAS_PMPI_Comm_idup_with_info
COMES(Comm_idup_with_info, (comm, info, made, request), MPI_Comm comm, MPI_Info info,
      MPI_Comm *made, MPI_Request *request)
#endif
#ifdef HAS_PMPI_Comm_create_from_group
COMES(Comm_create_from_group, (group, tag, info, handler, made), MPI_Group group, const char *tag,
      MPI_Info info, MPI_Errhandler handler, MPI_Comm *made)
COMES(Intercomm_create_from_groups, (group, leader, others, their_leader, tag, info, handler, made),
      MPI_Group group, int leader, MPI_Group others, int their_leader, const char *tag,
      MPI_Info info, MPI_Errhandler handler, MPI_Comm *made)
#endif

EXPORT int MPI_Type_commit(MPI_Datatype *type)
{
    bind_mpi();
    int code = PMPI_Type_commit(type);
    if (code == MPI_SUCCESS && witness.active && witness.thread_level == MPI_THREAD_MULTIPLE)
        record_committed(*type);
    return code;
}

/* Before the call, and after it: another thread may have asked for the size meanwhile. */
EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    bind_mpi();
    atomic_fetch_add(&types_freed, 1);
    int code = PMPI_Type_free(type);
    atomic_fetch_add(&types_freed, 1);
    return code;
}
