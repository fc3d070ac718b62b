/* Does what its arguments say, one after the other, and reports at the end what placement.c and
 * traffic.c make of it, as JSON on standard output. No MPI: the marks of its start are arguments.
 *
 *   before, after       placement_before_init, placement_after_init
 *   spawn NAME CPU MS   a thread, pinned, that computes for MS milliseconds and then sleeps
 *   name NAME           of the main thread
 *   interleave          memory policy of the main thread, over NUMA domain 0
 *   start               traffic_start
 *   tree FOLDER         from now on /proc and /sys are looked for below FOLDER
 *   connect FROM TO THERE BACK
 *                       a TCP connection between two addresses of this host, both ends in this
 *                       process; so many bytes there and back
 *   others              sockets that are no connected TCP: listening, UDP, UNIX, multipath TCP
 *   duplicate           a second file descriptor for the client of the last connection
 *   lose                the client of the last connection sends 1000 bytes, which get lost once
 *   shut                the client of the last connection sends no more
 *   old                 a kernel that knows no tcpi_bytes_sent
 *   astray              a host without loopback interface
 *   apart               a network namespace of its own, which has a link between eth0 and peer0
 *   flap TIMES          that link goes down at peer0, and up again
 *
 * Then it waits for the end of standard input, so that others can look at it.
 *
 * Built with -DASSAY_SYSTEM_ROOT='getenv("TREE")' and -Wl,--wrap=getsockopt,--wrap=getifaddrs. */
#define _GNU_SOURCE 1

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "machine.h"
#include "placement.h"
#include "traffic.h"

static bool old_kernel, no_loopback;
static int client = -1, server = -1;

static void need(bool fine, const char *what)
{
    if (!fine) {
        perror(what);
        exit(EXIT_FAILURE);
    }
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (old_kernel && level == IPPROTO_TCP)
        *size = 200; /* where tcpi_bytes_sent begins */
    return __real_getsockopt(fd, level, name, value, size);
}

int __real_getifaddrs(struct ifaddrs **interfaces);
int __wrap_getifaddrs(struct ifaddrs **interfaces)
{
    int result = __real_getifaddrs(interfaces);
    for (struct ifaddrs *at = *interfaces; no_loopback && at; at = at->ifa_next)
        if (at->ifa_flags & IFF_LOOPBACK) {
            at->ifa_flags = 0;
            at->ifa_addr = NULL;
        }
    return result;
}

struct thread {
    char *const *arguments;
    pthread_barrier_t ready;
};

static void *compute_and_sleep(void *data)
{
    struct thread *thread = data;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(thread->arguments[1]), &cpus);
    need(sched_setaffinity(0, sizeof cpus, &cpus) == 0, "sched_setaffinity");
    pthread_setname_np(pthread_self(), thread->arguments[0]);
    struct timespec used;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < atoi(thread->arguments[2]));
    pthread_barrier_wait(&thread->ready);
    pause();
    return NULL;
}

static void spawn(char *const *arguments)
{
    struct thread *thread = malloc(sizeof *thread);
    thread->arguments = arguments;
    pthread_barrier_init(&thread->ready, NULL, 2);
    pthread_t id;
    need(pthread_create(&id, NULL, compute_and_sleep, thread) == 0, "pthread_create");
    pthread_detach(id);
    pthread_barrier_wait(&thread->ready);
}

static struct sockaddr_storage address_of(const char *text, socklen_t *size)
{
    struct sockaddr_storage address = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    bool is_v6 = inet_pton(AF_INET6, text, &v6->sin6_addr) == 1;
    if (!is_v6)
        inet_pton(AF_INET, text, &v4->sin_addr);
    address.ss_family = is_v6 ? AF_INET6 : AF_INET;
    *size = is_v6 ? sizeof *v6 : sizeof *v4;
    return address;
}

static void carry(int from, int to, size_t bytes)
{
    static char buffer[1 << 16];
    while (bytes > 0) {
        size_t part = bytes < sizeof buffer ? bytes : sizeof buffer;
        need(send(from, buffer, part, 0) == (ssize_t)part, "send");
        need(recv(to, buffer, part, MSG_WAITALL) == (ssize_t)part, "recv");
        bytes -= part;
    }
}

static int listen_at(struct sockaddr_storage *address, socklen_t *size)
{
    int listener = socket(address->ss_family, SOCK_STREAM, 0);
    need(bind(listener, (struct sockaddr *)address, *size) == 0, "bind");
    need(listen(listener, 1) == 0, "listen");
    getsockname(listener, (struct sockaddr *)address, size);
    return listener;
}

static void open_connection(char *const *arguments)
{
    socklen_t size;
    struct sockaddr_storage from = address_of(arguments[0], &size);
    struct sockaddr_storage address = address_of(arguments[1], &size);
    int listener = listen_at(&address, &size);
    client = socket(address.ss_family, SOCK_STREAM, 0);
    need(bind(client, (struct sockaddr *)&from, size) == 0, "bind");
    need(connect(client, (struct sockaddr *)&address, size) == 0, "connect");
    server = accept(listener, NULL, NULL);
    need(server >= 0, "accept");
    close(listener);
    carry(client, server, strtoul(arguments[2], NULL, 10));
    carry(server, client, strtoul(arguments[3], NULL, 10));
}

static void open_others(void)
{
    socklen_t size;
    struct sockaddr_storage address = address_of("127.0.0.1", &size);
    listen_at(&address, &size);
    need(connect(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&address, size) == 0, "udp");
    int multipath = socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP of newer headers */);
    if (multipath >= 0)
        need(connect(multipath, (struct sockaddr *)&address, size) == 0, "multipath");
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
}

/* Time for a packet to arrive. */
static void wait_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static void lose(void)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog filter = { 1, &drop };
    char buffer[1000] = "";
    int unused = 0;
    need(setsockopt(server, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0, "filter");
    need(send(client, buffer, sizeof buffer, 0) == sizeof buffer, "send");
    wait_a_little();
    need(setsockopt(server, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0, "filter");
    need(recv(server, buffer, sizeof buffer, MSG_WAITALL) == sizeof buffer, "recv");
    wait_a_little();
}

static void shut(void)
{
    shutdown(client, SHUT_WR);
    wait_a_little();
}

static void be_old(void)
{
    old_kernel = true;
}

static void be_astray(void)
{
    no_loopback = true;
}

static void be_apart(void)
{
    if (unshare(CLONE_NEWNET) != 0 || system("ip link add eth0 type veth peer name peer0") != 0) {
        perror("a network namespace with a link");
        exit(77);
    }
    need(system("ip link set eth0 up && ip link set peer0 up") == 0, "ip link set up");
}

static void flap(int times)
{
    for (int i = 0; i < times; i++)
        need(system("ip link set peer0 down && ip link set peer0 up") == 0, "ip link set down");
}

static void duplicate(void)
{
    need(dup(client) >= 0, "dup");
}

static void interleave(void)
{
    unsigned long nodes = 1;
    if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, &nodes, 64) != 0) {
        perror("set_mempolicy");
        exit(77);
    }
}

/* Returns how many arguments it took. */
static int act(char *const *arguments)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } plain[] = {
        { "before", placement_before_init },
        { "after", placement_after_init },
        { "start", traffic_start },
        { "others", open_others },
        { "shut", shut },
        { "duplicate", duplicate },
        { "interleave", interleave },
        { "lose", lose },
        { "old", be_old },
        { "astray", be_astray },
        { "apart", be_apart },
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(arguments[0], plain[i].name) == 0) {
            plain[i].act();
            return 1;
        }
    if (strcmp(arguments[0], "spawn") == 0)
        return spawn(arguments + 1), 4;
    if (strcmp(arguments[0], "connect") == 0)
        return open_connection(arguments + 1), 5;
    if (strcmp(arguments[0], "flap") == 0)
        return flap(atoi(arguments[1])), 2;
    if (strcmp(arguments[0], "name") == 0)
        return pthread_setname_np(pthread_self(), arguments[1]), 2;
    need(strcmp(arguments[0], "tree") == 0, arguments[0]);
    setenv("TREE", arguments[1], 1);
    return 2;
}

int main(int argc, char **argv)
{
    setenv("TREE", "", 1);
    for (int i = 1; i < argc;)
        i += act(argv + i);
    struct json *json = json_memory();
    json_object(json, "process");
    placement_write(json);
    traffic_write_sockets(json);
    json_end(json);
    json_object(json, "host");
    placement_write_host(json);
    traffic_write_devices(json);
    machine_write(json);
    json_end(json);
    char *text = json_text(json);
    puts(text);
    free(text);
    fflush(stdout);
    getchar();
}
