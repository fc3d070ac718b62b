/* MPI's performance variables (MPI_T), and some of the witness's own: what this rank has sent to each
 * rank of a communicator. A program finds, starts, stops, resets and reads them like the MPI's.
 *
 * They stand behind those that the MPI has when the program first asks, after MPI_Init. What the MPI
 * gets later stands behind them, so that no index ever changes. Their handles are addresses in an array
 * that nobody reads or writes: an MPI's handle is never one of them, and a handle that was freed still
 * belongs to the witness. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "communicators.h"
#include "map.h"
#include "monitoring.h"
#include "tally.h"
#include "wrap.h"

static const struct variable {
    const char *name, *meaning;
    enum kind kind;
    bool bytes;
} variables[] = {
#define VARIABLES_OF(kind, name, text)                                       \
    { "assay_" name "_messages",                                             \
      "Number of " text " sent to each rank of the communicator since "      \
      "the variable was started",                                            \
      kind, false },                                                         \
    {                                                                        \
        "assay_" name "_bytes",                                              \
            "Bytes of " text " sent to each rank of the communicator since " \
            "the variable was started",                                      \
            kind, true                                                       \
    }
    VARIABLES_OF(POINT_TO_POINT, "pt2pt", "point-to-point messages"),
    VARIABLES_OF(COLLECTIVES, "collectives", "messages of collectives, by their arguments,"),
    VARIABLES_OF(ONE_SIDED, "one_sided", "puts and accumulates"),
#undef VARIABLES_OF
};
enum { VARIABLES = sizeof variables / sizeof *variables, MOST_HANDLES = 1 << 16 };

/* A value is `values`, and while it runs what was sent so far as well. All is modulo 2^64. */
struct handle {
    MPI_T_pvar_handle name; /* what the program has of it */
    MPI_T_pvar_session session;
    const struct variable *variable;
    bool runs;
    int count;
    int *receivers; /* their ranks in MPI_COMM_WORLD; negative outside it */
    unsigned long long *values;
    struct handle *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map sessions; /* those that are not freed */
static struct handle *handles;
static char names[MOST_HANDLES];
static int first = -1; /* index of the first variable of the witness's */

/* Index of the first variable of the witness's; -1 where there are none. */
static int find_first(void)
{
    int count;
    pthread_mutex_lock(&lock);
    if (first < 0 && witness.active && witness.matrix && PMPI_T_pvar_get_num(&count) == MPI_SUCCESS)
        first = count;
    int found = first;
    pthread_mutex_unlock(&lock);
    return found;
}

/* What an index of the MPI's is to the program. */
static int index_outside(int index)
{
    int begin = find_first();
    return begin >= 0 && index >= begin ? index + VARIABLES : index;
}

/* The variable of the witness's that an index stands for, or NULL: then `index` becomes the MPI's. */
static const struct variable *variable_at(int *index)
{
    int begin = find_first();
    if (begin < 0 || *index < begin)
        return NULL;
    if (*index < begin + VARIABLES)
        return &variables[*index - begin];
    *index -= VARIABLES;
    return NULL;
}

/* MPI_SUCCESS where a program may use them: from MPI_T_init_thread to MPI_T_finalize. */
static int tools_state(void)
{
    int count;
    return PMPI_T_pvar_get_num(&count);
}

static int class_of(const struct variable *variable)
{
    return variable->bytes ? MPI_T_PVAR_CLASS_AGGREGATE : MPI_T_PVAR_CLASS_COUNTER;
}

EXPORT int MPI_T_pvar_get_num(int *count)
{
    bind_mpi();
    int begin = find_first();
    int code = PMPI_T_pvar_get_num(count);
    if (code == MPI_SUCCESS && begin >= 0)
        *count = (*count > begin ? *count : begin) + VARIABLES;
    return code;
}

EXPORT int MPI_T_pvar_get_index(const char *name, int class, int *index)
{
    bind_mpi();
    int begin = find_first();
    int code = PMPI_T_pvar_get_index(name, class, index);
    if (code == MPI_SUCCESS)
        *index = index_outside(*index);
    for (int i = 0; code == MPI_T_ERR_INVALID_NAME && begin >= 0 && i < VARIABLES; i++) {
        if (strcmp(name, variables[i].name) != 0 || class != class_of(&variables[i]))
            continue;
        *index = begin + i;
        return MPI_SUCCESS;
    }
    return code;
}

EXPORT int MPI_T_category_get_pvars(int category, int room, int indices[])
{
    int count = 0;
    bind_mpi();
    find_first();
    int code = PMPI_T_category_get_pvars(category, room, indices);
    if (code == MPI_SUCCESS)
        code = PMPI_T_category_get_info(category, NULL, NULL, NULL, NULL, NULL, &count, NULL);
    for (int i = 0; code == MPI_SUCCESS && i < count && i < room; i++)
        indices[i] = index_outside(indices[i]);
    return code;
}

static void give_text(char *place, int *length, const char *text)
{
    if (!length)
        return;
    if (place && *length > 0) {
        strncpy(place, text, (size_t)*length - 1);
        place[*length - 1] = '\0';
    }
    *length = (int)strlen(text) + 1;
}

#define GIVE(place, value)      \
    do {                        \
        if (place)              \
            *(place) = (value); \
    } while (0)

EXPORT int MPI_T_pvar_get_info(int index, char *name, int *name_length, int *verbosity, int *class,
                               MPI_Datatype *type, MPI_T_enum *enumeration, char *meaning,
                               int *meaning_length, int *object, int *readonly, int *continuous,
                               int *atomic)
{
    bind_mpi();
    const struct variable *variable = variable_at(&index);
    if (!variable)
        return PMPI_T_pvar_get_info(index, name, name_length, verbosity, class, type, enumeration,
                                    meaning, meaning_length, object, readonly, continuous, atomic);
    int code = tools_state();
    if (code != MPI_SUCCESS)
        return code;
    give_text(name, name_length, variable->name);
    give_text(meaning, meaning_length, variable->meaning);
    GIVE(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    GIVE(class, class_of(variable));
    GIVE(type, MPI_UNSIGNED_LONG_LONG);
    GIVE(enumeration, MPI_T_ENUM_NULL);
    GIVE(object, MPI_T_BIND_MPI_COMM);
    GIVE(readonly, 0);
    GIVE(continuous, 0);
    GIVE(atomic, 1);
    return MPI_SUCCESS;
}

static uint64_t key_of(MPI_T_pvar_session session)
{
    return (uint64_t)(uintptr_t)session;
}

EXPORT int MPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    bind_mpi();
    int code = PMPI_T_pvar_session_create(session);
    pthread_mutex_lock(&lock);
    if (code == MPI_SUCCESS && !map_put(&sessions, key_of(*session), &sessions))
        code = MPI_T_ERR_MEMORY;
    pthread_mutex_unlock(&lock);
    return code;
}

static void free_handle(struct handle *handle)
{
    free(handle->receivers);
    free(handle->values);
    free(handle);
}

/* Takes a handle of a session from the list, or with MPI_T_PVAR_ALL_HANDLES all of them. */
static bool remove_handles(MPI_T_pvar_session session, MPI_T_pvar_handle name)
{
    bool found = false;
    for (struct handle **link = &handles; *link;) {
        struct handle *handle = *link;
        if (handle->session != session ||
            (name != MPI_T_PVAR_ALL_HANDLES && name != handle->name)) {
            link = &handle->next;
            continue;
        }
        *link = handle->next;
        free_handle(handle);
        found = true;
    }
    return found;
}

/* Before the call: another thread may be given the same session before it returns. */
EXPORT int MPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
    bind_mpi();
    if (session) {
        pthread_mutex_lock(&lock);
        map_remove(&sessions, key_of(*session));
        remove_handles(*session, MPI_T_PVAR_ALL_HANDLES);
        pthread_mutex_unlock(&lock);
    }
    return PMPI_T_pvar_session_free(session);
}

static bool is_own(MPI_T_pvar_handle name)
{
    return (uintptr_t)name - (uintptr_t)names < sizeof names;
}

static bool is_in_use(MPI_T_pvar_handle name)
{
    const struct handle *handle = handles;
    while (handle && handle->name != name)
        handle = handle->next;
    return handle;
}

/* A name is used again as late as possible. */
static MPI_T_pvar_handle next_name(void)
{
    static size_t given;
    for (size_t tried = 0; tried < MOST_HANDLES; tried++) {
        uintptr_t name = (uintptr_t)&names[given++ % MOST_HANDLES];
        if (!is_in_use((MPI_T_pvar_handle)name))
            return (MPI_T_pvar_handle)name;
    }
    return MPI_T_PVAR_HANDLE_NULL;
}

static struct handle *new_handle(const struct variable *variable, MPI_Comm comm)
{
    struct communicator *communicator = communicator_hold_instead(NULL, comm, true);
    struct handle *handle = communicator ? calloc(1, sizeof *handle) : NULL;
    if (handle) {
        handle->variable = variable;
        handle->count = communicator->remote_size;
        handle->receivers = communicator_receivers(communicator);
        handle->values = calloc((size_t)handle->count + 1, sizeof *handle->values);
    }
    communicator_release(communicator);
    if (!handle || (handle->receivers && handle->values))
        return handle;
    free_handle(handle);
    return NULL;
}

/* Takes `handle`. */
static int add_handle(MPI_T_pvar_session session, struct handle *handle)
{
    int code = !map_get(&sessions, key_of(session)) ? MPI_T_ERR_INVALID_SESSION
               : !(handle->name = next_name())      ? MPI_T_ERR_OUT_OF_HANDLES
                                                    : MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        free_handle(handle);
        return code;
    }
    handle->session = session;
    handle->next = handles;
    handles = handle;
    return MPI_SUCCESS;
}

EXPORT int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object,
                                   MPI_T_pvar_handle *name, int *count)
{
    bind_mpi();
    const struct variable *variable = variable_at(&index);
    if (!variable) {
        monitoring_program_allocates(index);
        return PMPI_T_pvar_handle_alloc(session, index, object, name, count);
    }
    int code = tools_state();
    if (code != MPI_SUCCESS)
        return code;
    const MPI_Comm *comm = object;
    if (!witness.active || !name || !count || !comm || *comm == MPI_COMM_NULL)
        return MPI_T_ERR_INVALID;
    struct handle *handle = new_handle(variable, *comm);
    if (!handle)
        return MPI_T_ERR_MEMORY;
    pthread_mutex_lock(&lock);
    code = add_handle(session, handle);
    if (code == MPI_SUCCESS) {
        *name = handle->name;
        *count = handle->count;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *name)
{
    bind_mpi();
    if (!name || !is_own(*name))
        return PMPI_T_pvar_handle_free(session, name);
    pthread_mutex_lock(&lock);
    bool found = remove_handles(session, *name);
    pthread_mutex_unlock(&lock);
    if (!found)
        return MPI_T_ERR_INVALID_HANDLE;
    *name = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

/* What was sent so far, `times` 1 or -1, is added to the values of a handle that runs. */
static int add_sent(const struct handle *handle, int times, unsigned long long *values)
{
    if (!handle->runs)
        return MPI_SUCCESS;
    unsigned long long *sums = calloc((size_t)witness.ranks, sizeof *sums);
    if (!sums)
        return MPI_T_ERR_MEMORY;
    tally_add_sent(handle->variable->kind, handle->variable->bytes, sums);
    for (int i = 0; i < handle->count; i++)
        if (handle->receivers[i] >= 0)
            values[i] += (unsigned long long)times * sums[handle->receivers[i]];
    free(sums);
    return MPI_SUCCESS;
}

static size_t bytes_of_values(const struct handle *handle)
{
    return (size_t)handle->count * sizeof *handle->values;
}

/* The operations; `buffer` is the program's. */
typedef int operation(struct handle *handle, unsigned long long *buffer);

static int start(struct handle *handle, unsigned long long *buffer)
{
    (void)buffer;
    if (handle->runs)
        return MPI_SUCCESS;
    handle->runs = true;
    return add_sent(handle, -1, handle->values);
}

static int stop(struct handle *handle, unsigned long long *buffer)
{
    (void)buffer;
    int code = add_sent(handle, 1, handle->values);
    handle->runs = false;
    return code;
}

static int give(struct handle *handle, unsigned long long *buffer)
{
    memcpy(buffer, handle->values, bytes_of_values(handle));
    return add_sent(handle, 1, buffer);
}

static int take(struct handle *handle, unsigned long long *buffer)
{
    memcpy(handle->values, buffer, bytes_of_values(handle));
    return add_sent(handle, -1, handle->values);
}

static int reset(struct handle *handle, unsigned long long *buffer)
{
    (void)buffer;
    memset(handle->values, 0, bytes_of_values(handle));
    return add_sent(handle, -1, handle->values);
}

static int give_and_reset(struct handle *handle, unsigned long long *buffer)
{
    int code = give(handle, buffer);
    for (int i = 0; code == MPI_SUCCESS && i < handle->count; i++)
        handle->values[i] -= buffer[i];
    return code;
}

/* On a handle of the witness's, or with MPI_T_PVAR_ALL_HANDLES on all of a session. */
static int operate(operation *operation, MPI_T_pvar_session session, MPI_T_pvar_handle name,
                   unsigned long long *buffer)
{
    bind_mpi();
    int code = is_own(name) ? tools_state() : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        return code;
    pthread_mutex_lock(&lock);
    code = is_own(name) ? MPI_T_ERR_INVALID_HANDLE : MPI_SUCCESS;
    for (struct handle *handle = handles; handle; handle = handle->next)
        if (handle->session == session && (name == handle->name || name == MPI_T_PVAR_ALL_HANDLES))
            code = operation(handle, buffer);
    pthread_mutex_unlock(&lock);
    return code;
}

/* `before`: what comes before the MPI's own. */
#define CHANGES(name, before)                                                          \
    EXPORT int MPI_T_pvar_##name(MPI_T_pvar_session session, MPI_T_pvar_handle handle) \
    {                                                                                  \
        int code = operate(name, session, handle, NULL);                               \
        if (is_own(handle) || code != MPI_SUCCESS)                                     \
            return code;                                                               \
        before;                                                                        \
        return PMPI_T_pvar_##name(session, handle);                                    \
    }
CHANGES(start, (void)0)
CHANGES(stop, monitoring_program_stops())
CHANGES(reset, (void)0)

#define MOVES(name, operation, buffer_t)                                                  \
    EXPORT int MPI_T_pvar_##name(MPI_T_pvar_session session, MPI_T_pvar_handle handle,    \
                                 buffer_t buffer)                                         \
    {                                                                                     \
        bind_mpi();                                                                       \
        if (!is_own(handle))                                                              \
            return PMPI_T_pvar_##name(session, handle, buffer);                           \
        return buffer ? operate(operation, session, handle, (unsigned long long *)buffer) \
                      : MPI_T_ERR_INVALID;                                                \
    }
MOVES(read, give, void *)
MOVES(readreset, give_and_reset, void *)
MOVES(write, take, const void *)
