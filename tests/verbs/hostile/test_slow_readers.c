// SPDX-License-Identifier: BSD-2-Clause
/* Clients that send requests and read no replies: on connections, in sessions, and at the metrics. The daemon does not wait
 * for them, and keeps no replies for them. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "daemon/base/sanitizer.h"
#include "tests/verbs/hostile/hostile.h"

#define CONNECTIONS 40u
#if SANITIZED
#define GROWTH_KB (20000 + 262144) /* AddressSanitizer keeps up to 256 MiB that were freed */
#else
#define GROWTH_KB 20000 /* far below what the replies would need */
#endif

static uint16_t metrics_port;

static long memory_kb(pid_t daemon)
{
    char path[64], line[256];
    long kb = -1;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    }
    if (f)
        fclose(f);
    return kb;
}

/* Sends requests until the daemon takes no more, or ends the connection. */
static void flood(int sock, uint32_t op)
{
    need(fcntl(sock, F_SETFL, O_NONBLOCK) == 0);
    for (unsigned i = 0, idle = 0; i < 20000 && idle < 10; i++) {
        if (hostile_send(sock, op, NULL, 0, NULL, 0))
            continue;
        if (errno != EAGAIN)
            return;
        idle++;
        usleep(10000);
    }
}

static void connections(const struct hostile *h)
{
    for (unsigned i = 0; i < CONNECTIONS; i++)
        flood(hostile_connect(h), i % 2 ? PM_OP_LIST : PM_OP_STATUS);
    ok(true, "requests on connections, without reading");
}

static void sessions(const struct hostile *h)
{
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int sock = hostile_connect(h);

        need(hostile_open(sock, NULL, 0) == 0);
        flood(sock, PM_OP_QUERY_PORT);
    }
    ok(true, "requests in sessions, without reading");
}

static void metrics(const struct hostile *h)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(metrics_port)};
    static const char get[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int size = 1024;

    (void)h;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
        need(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno == EINPROGRESS);
        usleep(5000);
        for (unsigned k = 0; k < 50; k++)
            (void)!send(fd, get, sizeof(get) - 1, MSG_NOSIGNAL);
    }
    ok(true, "requests for the metrics, without reading");
}

int main(void)
{
    char option[32];
    struct hostile h;

    VT_OWN("replies that nobody reads");
    metrics_port = (uint16_t)(20000 + getpid() % 10000);
    snprintf(option, sizeof(option), "--metrics=%u", metrics_port);
    hostile_start(&h, -1, option, NULL);
    need(hostile_bystander(&h));
    long before = memory_kb(h.daemon);
    hostile_attack(&h, connections, "replies on connections that nobody reads");
    hostile_attack(&h, sessions, "replies in sessions that nobody reads");
    hostile_attack(&h, metrics, "metrics that nobody reads");
    long growth = memory_kb(h.daemon) - before;
    printf("# the daemon grew by %ld KiB\n", growth);
    ok(before > 0 && growth < GROWTH_KB, "the daemon keeps no replies");
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
