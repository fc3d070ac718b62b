#define _GNU_SOURCE 1

#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h> /* not netinet/tcp.h: the struct tcp_info there ends before the bytes */
#include <math.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ports.h"
#include "system.h"
#include "ticks.h"

struct device {
    char name[96];
    const char *kind;
    uint64_t sent, received;
    uint64_t downs; /* times that its link went down */
    bool downs_known;
    uint32_t mtu; /* bytes; 0 if unknown */
    bool is_interface, up;
    uint32_t index, master; /* of an interface, and of that which it is part of; 0 if of none */
};

struct devices {
    struct device *list;
    size_t count;
};

static struct devices at_start;

static void add_device(struct devices *devices, const struct device *device)
{
    struct device *longer = realloc(devices->list, (devices->count + 1) * sizeof *longer);
    if (!longer)
        return;
    longer[devices->count++] = *device;
    devices->list = longer;
}

/* By its type, which /sys would tell too, but of another network namespace in some containers. */
static const char *interface_kind(const char *name)
{
    struct ifreq request = { .ifr_flags = 0 };
    memcpy(request.ifr_name, name, strnlen(name, sizeof request.ifr_name - 1));
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = ioctl(any, SIOCGIFHWADDR, &request) == 0;
    close(any);
    if (!known)
        return NULL;
    switch (request.ifr_hwaddr.sa_family) {
    case ARPHRD_LOOPBACK:
        return "loopback";
    case ARPHRD_ETHER:
        return "ethernet";
    case ARPHRD_INFINIBAND:
        return "ip-over-infiniband";
    default:
        return NULL;
    }
}

static void read_interfaces(struct devices *devices)
{
    char *text = system_text("/proc/self/net/dev"), *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        struct device device;
        /* Of 8 values for receiving and 8 for sending, the first are bytes. */
        if (sscanf(line, " %15[^: ]: %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, device.name,
                   &device.received, &device.sent) == 3 &&
            (device.kind = interface_kind(device.name)))
            add_device(devices, &device);
    }
    free(text);
}

static struct device *find_device(const struct devices *devices, const char *name)
{
    for (size_t i = 0; i < devices->count; i++)
        if (strcmp(devices->list[i].name, name) == 0)
            return &devices->list[i];
    return NULL;
}

/* MTU, state and carrier_down_count: as /sys/class/net/<interface> has them, which may be of another
 * network namespace. Kernels before 4.16 do not count. */
static void note_link(const struct devices *devices, const struct nlmsghdr *message)
{
    struct ifinfomsg *about = NLMSG_DATA(message);
    int left = (int)IFLA_PAYLOAD(message);
    const char *name = NULL;
    uint32_t downs = 0, mtu = 0, master = 0;
    bool known = false;
    for (struct rtattr *at = IFLA_RTA(about); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
        if (at->rta_type == IFLA_IFNAME)
            name = RTA_DATA(at);
        known |= at->rta_type == IFLA_CARRIER_DOWN_COUNT;
        if (at->rta_type == IFLA_CARRIER_DOWN_COUNT)
            memcpy(&downs, RTA_DATA(at), sizeof downs);
        if (at->rta_type == IFLA_MTU)
            memcpy(&mtu, RTA_DATA(at), sizeof mtu);
        if (at->rta_type == IFLA_MASTER)
            memcpy(&master, RTA_DATA(at), sizeof master);
    }
    struct device *device = name ? find_device(devices, name) : NULL;
    if (device) {
        device->mtu = mtu;
        device->is_interface = true;
        device->up = (about->ifi_flags & IFF_UP) && (about->ifi_flags & IFF_RUNNING);
        device->index = (uint32_t)about->ifi_index;
        device->master = master;
    }
    if (device && known) {
        device->downs = downs;
        device->downs_known = true;
    }
}

/* What else interfaces have, where the kernel tells. */
static void read_links(const struct devices *devices)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg about;
    } request = { .head = { .nlmsg_len = sizeof request,
                            .nlmsg_type = RTM_GETLINK,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
    /* The kernel puts no more than this into an answer to a dump. */
    static union {
        struct nlmsghdr first;
        char bytes[1 << 15];
    } answer;
    int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool more = send(kernel, &request, sizeof request, 0) == (ssize_t)sizeof request;
    while (more) {
        ssize_t size = recv(kernel, &answer, sizeof answer, MSG_DONTWAIT); /* it answers at once */
        int left = size > 0 ? (int)size : 0;
        more = left > 0;
        for (struct nlmsghdr *at = &answer.first; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
            if (at->nlmsg_type == RTM_NEWLINK)
                note_link(devices, at);
            else
                more = false; /* the end, or an error */
        }
    }
    close(kernel);
}

/* The unit of a port's counters. The InfiniBand specification says 4 bytes; the driver of Omni-Path
 * passes on what its hardware counts, flits of 8 bytes (pma_get_ib_portcounters_ext in Linux'
 * drivers/infiniband/hw/hfi1/mad.c). */
static unsigned port_unit(const char *device)
{
    char *event = system_text("/sys/class/infiniband/%s/device/uevent", device);
    bool omni_path = event && strstr(event, "DRIVER=hfi1\n");
    free(event);
    return omni_path ? 8 : 4;
}

/* The bytes of a port with counters of the InfiniBand specification. */
static bool read_specified(struct device *device, const char *path, const char *name)
{
    if (!system_number(&device->sent, "%s/counters/port_xmit_data", path) ||
        !system_number(&device->received, "%s/counters/port_rcv_data", path))
        return false;
    device->sent *= port_unit(name);
    device->received *= port_unit(name);
    device->downs_known = system_number(&device->downs, "%s/counters/link_downed", path);
    return true;
}

static uint64_t sum_of(const char *path, const char *const files[3])
{
    uint64_t sum = 0, number;
    for (int i = 0; i < 3; i++)
        if (system_number(&number, "%s/hw_counters/%s", path, files[i]))
            sum += number;
    return sum;
}

/* The bytes of an Elastic Fabric Adapter, which has counters of its own, in bytes
 * (drivers/infiniband/hw/efa/efa_verbs.c in Linux): of all packets, and of each way to send. Nobody
 * says whether the first count the others, so the greater is what went. */
static bool read_elastic(struct device *device, const char *path)
{
    static const char *const out[] = { "send_bytes", "rdma_write_bytes", "rdma_read_resp_bytes" };
    static const char *const in[] = { "recv_bytes", "rdma_write_recv_bytes", "rdma_read_bytes" };
    if (!system_number(&device->sent, "%s/hw_counters/tx_bytes", path) ||
        !system_number(&device->received, "%s/hw_counters/rx_bytes", path))
        return false;
    uint64_t sent = sum_of(path, out), received = sum_of(path, in);
    device->sent = sent > device->sent ? sent : device->sent;
    device->received = received > device->received ? received : device->received;
    return true;
}

/* The files of RoCE NICs count RDMA only, and the interface of the same NIC all else (mlx5; drivers
 * that do not count have no such files). Of InfiniBand they count all, so IP over InfiniBand shows
 * twice: here and as interface. */
static void read_infiniband(struct devices *devices)
{
    glob_t paths = system_paths("/sys/class/infiniband/*/ports/*");
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        const char *path = system_path(&paths, i);
        struct device device = { .kind = "infiniband" };
        char name[64];
        if (sscanf(path, "/sys/class/infiniband/%63[^/]", name) == 1 &&
            (read_specified(&device, path, name) || read_elastic(&device, path))) {
            snprintf(device.name, sizeof device.name, "%s:%d", name, system_path_number(path));
            add_device(devices, &device);
        }
    }
    globfree(&paths);
}

/* The files hold "value@time" (docs/ABI/testing/sysfs-class-cxi in HPE's shs-cxi-driver). Which
 * there are is in cassini-telemetry-sysfs-defs.h of its shs-cassini-headers, by name only: these
 * two count, in 56 bits, the bytes of good frames at the network port, headers included. */
static void read_cxi(struct devices *devices)
{
    glob_t paths = system_paths("/sys/class/cxi/*");
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        const char *path = system_path(&paths, i);
        struct device device = { .kind = "cxi" };
        snprintf(device.name, sizeof device.name, "%s", strrchr(path, '/') + 1);
        if (system_number(&device.sent, "%s/device/telemetry/hni_sts_tx_ok_octets", path) &&
            system_number(&device.received, "%s/device/telemetry/hni_sts_rx_ok_octets", path))
            add_device(devices, &device);
    }
    globfree(&paths);
}

static struct devices read_devices(void)
{
    struct devices devices = { .count = 0 };
    read_interfaces(&devices);
    read_links(&devices);
    read_infiniband(&devices);
    read_cxi(&devices);
    return devices;
}

void traffic_start(void)
{
    at_start = read_devices();
}

/* What the kernel told of an interface beside its bytes. Bonds, bridges and teams are masters. */
static void write_link(struct json *json, const struct devices *devices,
                       const struct device *device)
{
    if (device->mtu)
        json_integer(json, "mtu", device->mtu);
    if (device->is_interface)
        json_boolean(json, "up", device->up);
    for (size_t i = 0; device->master && i < devices->count; i++)
        if (devices->list[i].index == device->master)
            json_string(json, "master", devices->list[i].name);
}

void traffic_write_devices(struct json *json)
{
    struct devices now = read_devices();
    json_array(json, "devices");
    for (size_t i = 0; i < now.count; i++) {
        const struct device *device = &now.list[i];
        const struct device *before = find_device(&at_start, device->name);
        if (!before || device->sent < before->sent || device->received < before->received)
            continue;
        json_object(json, NULL);
        json_string(json, "name", device->name);
        json_string(json, "kind", device->kind);
        json_integer(json, "sent", (long long)(device->sent - before->sent));
        json_integer(json, "received", (long long)(device->received - before->received));
        if (before->downs_known && device->downs_known && device->downs >= before->downs)
            json_integer(json, "downs", (long long)(device->downs - before->downs));
        write_link(json, &now, device);
        ports_write(json, device->name, device->kind);
        json_end(json);
    }
    json_end(json);
    free(now.list);
}

/* One end of a connection. Addresses of IPv4 are kept as IPv6 writes them, "::ffff:1.2.3.4". */
struct end {
    struct in6_addr address;
    int port;
};

static bool end_of(const struct sockaddr *address, struct end *end)
{
    if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        *end = (struct end){ .address = v6->sin6_addr, .port = ntohs(v6->sin6_port) };
        return true;
    }
    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        *end = (struct end){ .port = ntohs(v4->sin_port) };
        memset(&end->address.s6_addr[10], 0xff, 2);
        memcpy(&end->address.s6_addr[12], &v4->sin_addr, 4);
        return true;
    }
    return false;
}

static void write_end(struct json *json, const char *key, const struct end *end)
{
    char address[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + sizeof "[]:65535"];
    bool v4 = IN6_IS_ADDR_V4MAPPED(&end->address);
    const unsigned char *bytes = end->address.s6_addr;
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &bytes[12] : bytes, address, sizeof address);
    snprintf(text, sizeof text, v4 ? "%s:%d" : "[%s]:%d", address, end->port);
    json_string(json, key, text);
}

/* The interface that has the address; NULL if none here has. All of 127.0.0.0/8 is loopback's. */
static const struct ifaddrs *interface_with(const struct ifaddrs *interfaces, const struct end *end)
{
    const unsigned char *bytes = end->address.s6_addr;
    bool loopback = IN6_IS_ADDR_V4MAPPED(&end->address) && bytes[12] == 127;
    for (const struct ifaddrs *at = interfaces; at; at = at->ifa_next) {
        struct end own;
        if (loopback
                ? at->ifa_flags & IFF_LOOPBACK
                : end_of(at->ifa_addr, &own) && IN6_ARE_ADDR_EQUAL(&own.address, &end->address))
            return at;
    }
    return NULL;
}

/* What the kernel sends to one of its own addresses goes through loopback, whichever interface has
 * the address. */
static const char *device_of(const struct ifaddrs *interfaces, const struct end *local,
                             const struct end *remote)
{
    if (interface_with(interfaces, remote))
        for (const struct ifaddrs *at = interfaces; at; at = at->ifa_next)
            if (at->ifa_flags & IFF_LOOPBACK)
                return at->ifa_name;
    const struct ifaddrs *interface = interface_with(interfaces, local);
    return interface ? interface->ifa_name : "";
}

/* As netinet/tcp.h has them, which cannot stand beside linux/tcp.h. */
enum { CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };

/* A connected TCP socket, and a kernel that counts its bytes (Linux 4.19). Multipath TCP would tell
 * those of one path only. */
static bool read_socket(int fd, struct end *local, struct end *remote, struct tcp_info *info)
{
    int protocol;
    socklen_t size = sizeof protocol;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP)
        return false;
    struct sockaddr_storage here, there;
    socklen_t here_size = sizeof here, there_size = sizeof there;
    if (getsockname(fd, (struct sockaddr *)&here, &here_size) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &there_size) != 0 ||
        !end_of((struct sockaddr *)&here, local) || !end_of((struct sockaddr *)&there, remote))
        return false;
    size = sizeof *info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0 &&
           size >= offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info->tcpi_bytes_retrans;
}

enum {
    LOOKED_AT = 256, /* file descriptors: more sockets than a rank needs for all ports to show */
    LOOK_NS = 5000000, /* between two looks */
    IDLE_NS = 50000000, /* if no socket was sending, as over fabrics without TCP */
    LOOK_SHARE = 100, /* of the time at most one part in so many is for looking */
    FLOWING = 1 << 18, /* bytes since the last look: then messages are on the way */
};

/* How fast data arrived when a socket was looked at while it sent. A rate is of a few packets, so that
 * only many of them say what the way gives: their geometric mean, as some are of a pause and some of
 * a burst. */
static struct pace {
    uint64_t sent;
    double logarithms; /* sum of those of bytes/s */
    unsigned looks;
} paces[LOOKED_AT];

static const struct pace *pace_of(int fd, const struct tcp_info *info)
{
    if (fd >= LOOKED_AT || !paces[fd].looks || paces[fd].sent > info->tcpi_bytes_sent)
        return NULL;
    return &paces[fd];
}

/* A rate at which the program held data back is kept by the kernel only if it is above the last
 * (tcp_rate_gen in Linux' net/ipv4/tcp_rate.c), and so it counts as well. */
static bool look_at(int fd)
{
    struct pace *pace = &paces[fd];
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_retrans))
        return false;
    if (info.tcpi_bytes_sent < pace->sent) /* another socket */
        *pace = (struct pace){ .sent = 0 };
    if (info.tcpi_bytes_sent - pace->sent < FLOWING)
        return false;
    pace->sent = info.tcpi_bytes_sent;
    if (info.tcpi_delivery_rate) {
        pace->logarithms += log((double)info.tcpi_delivery_rate);
        pace->looks++;
    }
    return true;
}

void traffic_look(void)
{
    static _Atomic int64_t next;
    int64_t now = monotonic_ns(), due = next;
    if (now < due || !atomic_compare_exchange_strong(&next, &due, INT64_MAX))
        return;
    bool any = false;
    int own = errno; /* the program's */
    for (int fd = 0; fd < LOOKED_AT; fd++)
        any |= look_at(fd);
    errno = own;
    int64_t end = monotonic_ns(), pause = LOOK_SHARE * (end - now), least = any ? LOOK_NS : IDLE_NS;
    next = end + (pause > least ? pause : least);
}

static void write_socket(struct json *json, int fd, const struct ifaddrs *interfaces)
{
    struct end local, remote;
    struct tcp_info info;
    if (!read_socket(fd, &local, &remote, &info))
        return;
    /* Not tcpi_bytes_acked: that counts the SYN of the side that connected, and its FIN. What was
     * received counts the peer's FIN, which it has sent in these states. */
    bool fin = info.tcpi_state == CLOSE_WAIT || info.tcpi_state == LAST_ACK ||
               info.tcpi_state == CLOSING;
    json_object(json, NULL);
    write_end(json, "local", &local);
    write_end(json, "remote", &remote);
    json_string(json, "device", device_of(interfaces, &local, &remote));
    json_integer(json, "sent", (long long)(info.tcpi_bytes_sent - info.tcpi_bytes_retrans));
    json_integer(json, "received", (long long)info.tcpi_bytes_received - fin);
    json_integer(json, "segments", info.tcpi_data_segs_out);
    json_integer(json, "resent", info.tcpi_total_retrans);
    if (info.tcpi_min_rtt != UINT32_MAX) /* which stands for never measured */
        json_number(json, "round_trip", 1e-6 * info.tcpi_min_rtt);
    /* The program did not hold it back, nor did a receiver whose buffer was full. */
    if (info.tcpi_delivery_rate > 0 && !info.tcpi_delivery_rate_app_limited &&
        info.tcpi_rwnd_limited <= info.tcpi_busy_time / 100)
        json_number(json, "rate", (double)info.tcpi_delivery_rate);
    const struct pace *pace = pace_of(fd, &info);
    if (pace) {
        json_number(json, "pace", exp(pace->logarithms / pace->looks));
        json_integer(json, "looks", pace->looks);
    }
    json_end(json);
}

struct file {
    ino_t inode;
    int fd;
};

static int by_inode(const void *a, const void *b)
{
    ino_t x = ((const struct file *)a)->inode, y = ((const struct file *)b)->inode;
    return (x > y) - (x < y);
}

void traffic_write_sockets(struct json *json)
{
    glob_t paths = system_paths("/proc/self/fd/*");
    struct file *files = calloc(paths.gl_pathc + 1, sizeof *files);
    size_t count = 0;
    for (size_t i = 0; files && i < paths.gl_pathc; i++) {
        int fd = system_path_number(paths.gl_pathv[i]);
        struct stat about;
        if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode))
            files[count++] = (struct file){ .inode = about.st_ino, .fd = fd };
    }
    globfree(&paths);
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) != 0)
        interfaces = NULL;
    json_array(json, "sockets");
    /* A socket with several file descriptors counts once. */
    if (count > 0)
        qsort(files, count, sizeof *files, by_inode);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || files[i].inode != files[i - 1].inode)
            write_socket(json, files[i].fd, interfaces);
    json_end(json);
    if (interfaces)
        freeifaddrs(interfaces);
    free(files);
}
