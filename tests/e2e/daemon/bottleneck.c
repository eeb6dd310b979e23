// SPDX-License-Identifier: BSD-2-Clause
/* A router with one slow port, for bottleneck.sh. The router has an interface in each of three network namespaces. Two of these are senders,
 * the third is the receiver. Packets to the receiver wait in one queue, and the slow port sends them at a fixed rate. If the queue is full,
 * the router drops the packet that arrives (tail drop). If the queue is longer than MARK_FROM, the router marks the packet with CE, if its
 * sender allows that (RFC 3168). Packets to the senders do not wait.
 *   bottleneck SENDER1 SENDER2 RECEIVER MBIT_PER_S QUEUE MARK_FROM   (names of namespaces; lengths in packets)
 * The interfaces are called t0. On SIGTERM it prints what it did. Standard output says "ready" when the interfaces are there. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MOST = 4096, PACKET_MOST = 1600, ECN_MASK = 3, CE = 3, RECEIVER = 2, PORTS = 3 };

struct packet {
    uint32_t len; /* bytes */
    uint8_t bytes[PACKET_MOST];
};

static struct packet queue[QUEUE_MOST];
static uint32_t head, used, limit, mark_from;
static uint64_t ns_per_byte_1024; /* 1,024 times the time that the port needs for a byte */
static uint64_t leaves_at; /* when the first packet of the queue has left */
static unsigned long forwarded, dropped, marked, longest;
static unsigned long seen; /* the sum of the lengths that packets found */
static volatile sig_atomic_t told_to_end;

static void end_when_told(int number)
{
    (void)number;
    told_to_end = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "bottleneck: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int interface_in(const char *namespace)
{
    char path[300];
    snprintf(path, sizeof(path), "/run/netns/%s", namespace);
    int where = open(path, O_RDONLY | O_CLOEXEC);
    if (where < 0 || setns(where, CLONE_NEWNET) != 0)
        die(path);
    close(where);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "t0"};
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
        die("/dev/net/tun");
    return fd;
}

/* Sets CE in an IPv4 header and corrects its checksum (RFC 1624). Returns false if the packet can't be marked. */
static bool mark(uint8_t *bytes)
{
    struct iphdr *ip = (struct iphdr *)bytes;
    if (ip->version != 4 || (ip->tos & ECN_MASK) == 0)
        return false;
    uint32_t sum = (uint16_t)~ntohs(ip->check) + (uint32_t)(ip->tos | CE) + (uint16_t) ~(uint16_t)ip->tos;
    ip->tos |= CE;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ip->check = htons((uint16_t)~sum);
    return true;
}

static uint64_t time_of(uint32_t len)
{
    return len * ns_per_byte_1024 / 1024;
}

/* Sends what has left by then. */
static void transmit(int fd, uint64_t then)
{
    while (used > 0 && leaves_at <= then) {
        struct packet *p = &queue[head % QUEUE_MOST];
        if (write(fd, p->bytes, p->len) < 0 && errno != EAGAIN && errno != EIO)
            die("write");
        forwarded++;
        head++;
        if (--used > 0)
            leaves_at += time_of(queue[head % QUEUE_MOST].len);
    }
}

static void enqueue(const struct packet *p, uint64_t then)
{
    if (used >= limit) {
        dropped++;
        return;
    }
    struct packet *to = &queue[(head + used) % QUEUE_MOST];
    to->len = p->len;
    memcpy(to->bytes, p->bytes, p->len);
    seen += used;
    if (used >= mark_from && mark(to->bytes))
        marked++;
    if (used++ == 0)
        leaves_at = then + time_of(to->len);
    if (used > longest)
        longest = used;
}

/* Reads the packets that have arrived since the time `from`. This process may have slept since then, and does not know when each packet
 * arrived. So it spreads the arrivals evenly over that time. Otherwise all packets of that time would count as one burst. */
static void receive(const struct pollfd *port, uint64_t from, uint64_t now)
{
    static struct packet came[2 * QUEUE_MOST];
    uint32_t n = 0;
    for (bool more = true; more && n + 1 < 2 * QUEUE_MOST;) { /* in turns, as they would have come */
        more = false;
        for (int i = 0; i < RECEIVER; i++) {
            ssize_t got = read(port[i].fd, came[n].bytes, PACKET_MOST);
            if (got <= 0)
                continue;
            came[n++].len = (uint32_t)got;
            more = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t then = from + (now - from) * (i + 1) / n;
        transmit(port[RECEIVER].fd, then);
        enqueue(&came[i], then);
    }
}

/* Passes on the packets from the receiver to the senders, whose addresses end in 1 and 2. */
static void back(const struct pollfd *port)
{
    static uint8_t bytes[65536];
    ssize_t n;
    while ((n = read(port[RECEIVER].fd, bytes, sizeof(bytes))) > 0) {
        uint32_t to = ntohl(((struct iphdr *)bytes)->daddr) & 0xff;
        if (n >= (ssize_t)sizeof(struct iphdr) && to >= 1 && to <= RECEIVER &&
            write(port[to - 1].fd, bytes, (size_t)n) < 0 && errno != EAGAIN && errno != EIO)
            die("write");
    }
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: bottleneck SENDER1 SENDER2 RECEIVER MBIT_PER_S QUEUE MARK_FROM\n");
        return 2;
    }
    ns_per_byte_1024 = 8000 * 1024ull / (uint64_t)atoi(argv[4]);
    limit = (uint32_t)atoi(argv[5]);
    mark_from = (uint32_t)atoi(argv[6]);
    if (limit > QUEUE_MOST)
        limit = QUEUE_MOST;
    struct pollfd port[PORTS];
    for (int i = 0; i < PORTS; i++)
        port[i] = (struct pollfd){.fd = interface_in(argv[1 + i]), .events = POLLIN};
    signal(SIGTERM, end_when_told);
    printf("ready\n");
    fflush(stdout);
    uint64_t before = now_ns();
    while (!told_to_end) {
        struct timespec wait = {0, 50000000};
        uint64_t now = now_ns();
        if (used > 0)
            wait.tv_nsec = leaves_at > now ? (long)(leaves_at - now) : 0;
        if (ppoll(port, PORTS, &wait, NULL) < 0 && errno != EINTR)
            die("ppoll");
        now = now_ns();
        receive(port, before, now);
        transmit(port[RECEIVER].fd, now);
        back(port);
        before = now;
    }
    printf("forwarded %lu dropped %lu marked %lu longest %lu mean %lu\n", forwarded, dropped, marked, longest,
           forwarded ? seen / forwarded : 0);
    return 0;
}
