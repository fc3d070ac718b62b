/* An MPI program that does what its arguments say, in their order, and ends as they say.
 *
 *     endings init ring finalize exit=7
 *
 * What it finds goes to stdout, a line "rank R: ..." each, so that runs can be compared. */
#define _GNU_SOURCE
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks;
static const char *own_path;

/* In one piece, as other ranks may be writing too. */
static void say(const char *format, ...)
{
    char text[256];
    int length = snprintf(text, sizeof text, "rank %d: ", rank);
    va_list values;
    va_start(values, format);
    length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, values);
    va_end(values);
    text[length] = '\n';
    ssize_t written = write(STDOUT_FILENO, text, (size_t)length + 1);
    (void)written;
}

/* Before MPI_Init -------------------------------------------------------------------------------- */

static void early(const char *argument)
{
    int initialized, finalized, version, subversion;
    (void)argument;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    MPI_Get_version(&version, &subversion);
    say("early %d %d, MPI %d.%d", initialized, finalized, version, subversion);
}

static void survive(int number)
{
    static const char text[] = "survived\n";
    ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);
    (void)number, (void)written;
}

static void catch(const char *number)
{
    signal(atoi(number), survive);
}

static void ignore(const char *number)
{
    signal(atoi(number), SIG_IGN);
}

static void init(const char *argument)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        { "single", MPI_THREAD_SINGLE },
        { "funneled", MPI_THREAD_FUNNELED },
        { "serialized", MPI_THREAD_SERIALIZED },
        { "multiple", MPI_THREAD_MULTIPLE },
    };
    int provided = MPI_THREAD_SINGLE;
    if (!*argument)
        MPI_Init(NULL, NULL);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(argument, levels[i].name) == 0)
            MPI_Init_thread(NULL, NULL, levels[i].level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    say("init %s of %d, level %d", argument, ranks, provided);
}

/* What a program may do on its way --------------------------------------------------------------- */

static void ring(const char *argument)
{
    int token = rank, sum;
    (void)argument;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % ranks, 1, (rank + ranks - 1) % ranks, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("ring %d, sum %d", token, sum);
}

static void said_error(const char *call, int code)
{
    int class;
    MPI_Error_class(code, &class);
    say("%s: error class %d", call, class);
}

/* Calls that fail, on a communicator of which only itself says that errors are returned. */
static void errors(const char *argument)
{
    int data[8] = { 0 }, got[8];
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    (void)argument;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    said_error("send to no rank", MPI_Send(data, 1, MPI_INT, ranks, 1, comm));
    said_error("receive from no rank", MPI_Recv(got, 1, MPI_INT, ranks, 1, comm, statuses));
    said_error("post from no rank", MPI_Irecv(got, 1, MPI_INT, -77, 1, comm, requests));
    said_error("exchange with no rank", MPI_Sendrecv(data, 1, MPI_INT, ranks, 1, got, 1, MPI_INT,
                                                     ranks + 1, 1, comm, statuses));
    said_error("count", MPI_Recv(got, -1, MPI_INT, 0, 1, comm, statuses));
    said_error("tag", MPI_Isend(data, 1, MPI_INT, 0, -77, comm, requests));
    said_error("root", MPI_Bcast(data, 1, MPI_INT, ranks, comm));
    said_error("operation", MPI_Allreduce(data, got, 1, MPI_INT, MPI_OP_NULL, comm));

    int self = ranks - 1 - rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            MPI_ERRORS_RETURN); /* MPI_Waitall has no communicator */
    MPI_Isend(data, 8, MPI_INT, self, 2, comm, requests);
    said_error("truncated", MPI_Recv(got, 2, MPI_INT, self, 2, comm, statuses));
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Irecv(got, 2, MPI_INT, self, 3, comm, requests);
    MPI_Isend(data, 8, MPI_INT, self, 3, comm, requests + 1);
    said_error("truncated, with statuses", MPI_Waitall(2, requests, statuses));
    said_error("its status", statuses[0].MPI_ERROR);
    MPI_Irecv(got, 2, MPI_INT, MPI_ANY_SOURCE, 4, comm, requests);
    MPI_Isend(data, 8, MPI_INT, self, 4, comm, requests + 1);
    said_error("truncated, without", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    ring("");
}

static void no_datatype(const char *argument)
{
    int data;
    MPI_Comm comm;
    MPI_Status status;
    (void)argument;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    said_error("send", MPI_Send(&data, 1, MPI_DATATYPE_NULL, 0, 1, comm));
    said_error("receive", MPI_Recv(&data, 1, MPI_DATATYPE_NULL, 0, 1, comm, &status));
    said_error("broadcast", MPI_Bcast(&data, 1, MPI_DATATYPE_NULL, 0, comm));
    said_error("sum", MPI_Allreduce(&rank, &data, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
}

/* Other programs in a rank. */
static void commands(const char *argument)
{
    char line[64] = "";
    (void)argument;
    int code = system("exit 3");
    say("system %d", WEXITSTATUS(code));
    FILE *pipe = popen("cat /dev/null | wc -l", "r");
    if (!pipe || !fgets(line, sizeof line, pipe))
        line[0] = '\0';
    code = pipe ? pclose(pipe) : -1;
    say("popen %d %s", code, strtok(line, "\n"));
}

/* Children without a program of their own: one exits, one is killed. */
static void forks(const char *argument)
{
    int status;
    (void)argument;
    for (int way = 0; way < 2; way++) {
        pid_t child = fork();
        if (child == 0 && way == 0)
            exit(6);
        if (child == 0)
            raise(SIGTERM);
        waitpid(child, &status, 0);
        say("child %d %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static void go_to(const char *folder)
{
    say("chdir %d", chdir(folder));
}

static void exchange(MPI_Comm between, int high)
{
    int sent = high, received = -1, token = 42 - high, local, remote;
    MPI_Comm all;
    MPI_Comm_size(between, &local);
    MPI_Comm_remote_size(between, &remote);
    for (int i = 0; i < 3; i++)
        MPI_Sendrecv(&sent, 1, MPI_INT, rank, 1, &received, 1, MPI_INT, rank, 1, between,
                     MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(between, high, &all);
    MPI_Bcast(&token, 1, MPI_INT, 0, all);
    say("%s %d of %d and %d, token %d", high ? "child got" : "parent got", received, local, remote,
        token);
    MPI_Comm_disconnect(&between);
}

/* Works until the file is there. */
static void until(const char *path)
{
    while (access(path, F_OK) != 0)
        usleep(1000);
    say("until %d", access(path, F_OK));
}

/* As many children as ranks, and messages between the two worlds. With a path, it is preloaded into
 * the children. */
static void spawn(const char *library)
{
    char preload[4096];
    MPI_Comm children;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    char *arguments[] = { preload, (char *)own_path, "init=single", "child", "finalize", NULL };
    MPI_Comm_spawn("env", arguments, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    exchange(children, 0);
}

static void child(const char *argument)
{
    MPI_Comm parent;
    (void)argument;
    MPI_Comm_get_parent(&parent);
    exchange(parent, 1);
}

#ifdef MPI_SESSION_NULL
static MPI_Session library = MPI_SESSION_NULL;
#endif

/* A library's session, open until "close". */
static void open_session(const char *argument)
{
    (void)argument;
#ifdef MPI_SESSION_NULL
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &library);
#endif
}

static void close_session(const char *argument)
{
    (void)argument;
#ifdef MPI_SESSION_NULL
    MPI_Session_finalize(&library);
#endif
}

/* MPI without MPI_Init. */
static void session(const char *argument)
{
    (void)argument;
#ifdef MPI_SESSION_NULL
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int sum;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "endings", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int token = rank;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % ranks, 1, (rank + ranks - 1) % ranks, 1,
                         comm, MPI_STATUS_IGNORE);
    MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, comm);
    say("session of %d, token %d, sum %d", ranks, token, sum);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
#else
    say("no sessions");
#endif
}

/* Ends -------------------------------------------------------------------------------------------- */

static void finalize(const char *argument)
{
    int finalized;
    (void)argument;
    MPI_Finalize();
    MPI_Finalized(&finalized);
    say("finalized %d", finalized);
}

static void finalize_at_exit(void)
{
    MPI_Finalize();
}

static void at_exit(const char *argument)
{
    (void)argument;
    atexit(finalize_at_exit);
}

static void compute(const char *argument)
{
    double sum = 0;
    (void)argument;
    for (int i = 1; i < 1000000; i++)
        sum += 1.0 / i;
    say("computed %.6f", sum);
}

static void end(const char *code)
{
    exit(atoi(code));
}

/* The last rank does it; the others wait for a message that never comes. */
static int is_last(void)
{
    int never;
    if (rank < ranks - 1)
        MPI_Recv(&never, 1, MPI_INT, ranks - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return rank == ranks - 1;
}

static void abort_all(const char *code)
{
    if (is_last())
        MPI_Abort(MPI_COMM_WORLD, atoi(code));
}

static void leave(const char *code)
{
    if (is_last())
        exit(atoi(code));
}

/* The others go on without that rank. */
static void lose(const char *number)
{
    (void)number;
#ifdef OMPI_HAVE_MPIX_COMM_GET_FAILED
    MPI_Comm rest;
    int sum = 1, left;
    if (rank == atoi(number))
        raise(SIGKILL);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &rest);
    MPI_Comm_size(rest, &left);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, rest);
    MPI_Comm_free(&rest);
    say("%d are left, sum %d", left, sum);
#endif
}

static void kill_self(const char *number)
{
    if (is_last())
        raise(atoi(number));
}

/* A fault, of which a handler is told the address. */
static void fault(const char *argument)
{
    (void)argument;
    if (is_last())
        *(volatile int *)0x1000 = 1;
}

/* All of them get the signal. */
static void take(const char *number)
{
    raise(atoi(number));
    say("took signal %s", number);
}

/* Rank 0 leaves a file and waits outside MPI, the others in it. */
static void hang(const char *argument)
{
    char path[256];
    int never;
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s-%d", argument, rank);
    FILE *mark = fopen(path, "w");
    if (mark)
        fclose(mark);
    if (rank > 0)
        MPI_Recv(&never, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(const char *argument);
    } actions[] = {
        { "early", early },
        { "catch", catch },
        { "ignore", ignore },
        { "init", init },
        { "ring", ring },
        { "errors", errors },
        { "no-datatype", no_datatype },
        { "commands", commands },
        { "forks", forks },
        { "chdir", go_to },
        { "spawn", spawn },
        { "child", child },
        { "session", session },
        { "open", open_session },
        { "close", close_session },
        { "finalize", finalize },
        { "atexit", at_exit },
        { "compute", compute },
        { "exit", end },
        { "abort", abort_all },
        { "leave", leave },
        { "kill", kill_self },
        { "lose", lose },
        { "fault", fault },
        { "take", take },
        { "hang", hang },
        { "until", until },
    };
    own_path = argv[0];
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        size_t length = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        int known = 0;
        for (size_t k = 0; k < sizeof actions / sizeof *actions; k++) {
            if (strlen(actions[k].name) == length && !strncmp(argv[i], actions[k].name, length)) {
                actions[k].act(equals ? equals + 1 : "");
                known = 1;
            }
        }
        if (!known)
            return fprintf(stderr, "no action %s\n", argv[i]), 99;
    }
    return 0;
}
