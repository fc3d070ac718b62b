/* Carries packets between two interfaces, both ways, late or not at all.
 *
 *     forward A B DELAY JITTER LOSS PEER
 *
 * Each packet to or from the IPv4 address PEER, or "any", is delayed by DELAY us and up to JITTER us
 * more, evenly distributed; none overtakes another. LOSS percent of them are dropped. All others are
 * carried at once. A packet is what the kernel hands over: with segmentation offload, as between veth
 * interfaces, up to 64 KiB. Says "ready" once it carries.
 *
 * The kernel's own netem would do, where it is built in: often it is not, and then there is no way
 * to bring it in. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum {
    WAITING = 8192,        /* packets that may wait; more are dropped */
    LARGEST = 70000,       /* bytes of a packet with its header */
    BURST = 64,            /* packets read before those that are due are sent */
    SOCKET_BUFFER = 64 << 20,
};

struct packet {
    int64_t due;
    size_t length;
    char *bytes;
};

/* One way: from a socket to another, through a ring of packets that wait. */
struct way {
    int from, to;
    struct packet ring[WAITING];
    unsigned first, end; /* counted on for ever: modulo WAITING */
};

static int64_t delay, jitter; /* ns */
static double loss;
static in_addr_t peer = INADDR_ANY; /* whose packets are disturbed */

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "forward: ");
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* All that arrives at the interface, with the header that says what the sender left to the hardware:
 * checksums and segments. */
static int listen_at(const char *interface)
{
    int on = 1, size = SOCKET_BUFFER;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)if_nametoindex(interface),
    };
    struct packet_mreq all = {
        .mr_ifindex = address.sll_ifindex,
        .mr_type = PACKET_MR_PROMISC,
    };
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
        fail(interface);
    return fd;
}

/* Whether a packet, which begins with what PACKET_VNET_HDR asks for, is to be disturbed. */
static int concerns_peer(const char *bytes, size_t length)
{
    size_t ethernet = sizeof(struct virtio_net_hdr), ip = ethernet + sizeof(struct ether_header);
    struct ether_header frame;
    struct iphdr packet;
    if (peer == INADDR_ANY)
        return 1;
    if (length < ip + sizeof packet)
        return 0;
    memcpy(&frame, bytes + ethernet, sizeof frame);
    memcpy(&packet, bytes + ip, sizeof packet);
    return frame.ether_type == htons(ETHERTYPE_IP) &&
           (packet.saddr == peer || packet.daddr == peer);
}

static void take_in(struct way *way)
{
    static char bytes[LARGEST];
    for (int i = 0; i < BURST && way->end - way->first < WAITING; i++) {
        ssize_t length = recv(way->from, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length <= 0)
            return;
        if (!concerns_peer(bytes, (size_t)length)) {
            /* One that the interface refuses is lost, as on a wire. */
            (void)!send(way->to, bytes, (size_t)length, 0);
            continue;
        }
        if (drand48() < loss)
            continue;
        struct packet *packet = &way->ring[way->end % WAITING];
        packet->bytes = malloc((size_t)length);
        if (!packet->bytes)
            continue;
        memcpy(packet->bytes, bytes, (size_t)length);
        packet->length = (size_t)length;
        packet->due = now() + delay + (int64_t)(drand48() * (double)jitter);
        way->end++;
    }
}

static void send_what_is_due(struct way *way)
{
    while (way->first != way->end && way->ring[way->first % WAITING].due <= now()) {
        struct packet *packet = &way->ring[way->first++ % WAITING];
        (void)!send(way->to, packet->bytes, packet->length, 0);
        free(packet->bytes);
    }
}

/* When the next packet is due; INT64_MAX if none waits. */
static int64_t next_due(const struct way *way)
{
    return way->first == way->end ? INT64_MAX : way->ring[way->first % WAITING].due;
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || value < 0) {
        fprintf(stderr, "forward: %s is not a number of 0 or more\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs("usage: forward A B DELAY JITTER LOSS PEER (us, us, percent, IPv4 or any)\n", stderr);
        return 2;
    }
    struct in_addr address;
    if (strcmp(argv[6], "any") != 0) {
        if (inet_pton(AF_INET, argv[6], &address) != 1) {
            fprintf(stderr, "forward: %s is not an IPv4 address\n", argv[6]);
            return 2;
        }
        peer = address.s_addr;
    }
    delay = (int64_t)(1000 * number(argv[3]));
    jitter = (int64_t)(1000 * number(argv[4]));
    loss = number(argv[5]) / 100;
    int a = listen_at(argv[1]), b = listen_at(argv[2]);
    static struct way ways[2];
    ways[0].from = ways[1].to = a;
    ways[0].to = ways[1].from = b;

    /* It is a wire: it must not wait for its turn behind the ranks. */
    struct sched_param priority = { .sched_priority = 10 };
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0 || prctl(PR_SET_TIMERSLACK, 1ul) != 0)
        fail("real-time scheduling");
    puts("ready");
    fflush(stdout);

    for (;;) {
        int64_t due = INT64_MAX;
        for (int i = 0; i < 2; i++) {
            send_what_is_due(&ways[i]);
            if (next_due(&ways[i]) < due)
                due = next_due(&ways[i]);
        }
        int64_t wait = due == INT64_MAX ? 0 : due - now();
        if (wait < 0)
            wait = 0;
        struct timespec time = { .tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000 };
        struct pollfd sources[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
        if (ppoll(sources, 2, due == INT64_MAX ? NULL : &time, NULL) < 0)
            fail("ppoll");
        take_in(&ways[0]);
        take_in(&ways[1]);
    }
}
