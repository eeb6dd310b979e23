// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/verbs/endurance/endurance.h"

struct options opt = {.port = 18600, .timeout = 14, .retries = 7, .stall_s = 20, .signal_every = 4};
struct params par = {.seed = 1, .count = 10000, .max_size = 65536, .depth = 32, .ops = (1u << OP_MAX) - 1, .mtu = 1024};
struct state st;

uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void die(const char *what)
{
    fprintf(stderr, "rdma_endurance: %s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

/* --- the loop ---------------------------------------------------------------------------------- */

static bool finished(bool *closing)
{
    uint64_t total;

    if (opt.host != NULL)
        return st.posted == par.count && st.done == par.count && st.checked == par.count;
    /* The client tells over TCP how many there were, once all are checked. */
    if (!*closing && now_ms() - st.last_progress >= 2 &&
        recv(st.tcp, &total, sizeof total, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof total)
        *closing = true;
    return *closing && st.credits_done == st.credits_posted;
}

static void advance(uint64_t end)
{
    if (opt.host == NULL) {
        if (st.checked - st.granted >= par.depth / 4 || (st.granted < st.checked && is_sync(st.checked - 1)))
            grant();
        return;
    }
    /* A run limited by time ends at a point where the server checks. */
    if (par.count == UINT64_MAX && now_ms() >= end && is_sync(st.posted - 1))
        par.count = st.posted;
    while (!st.failed && st.posted < par.count && st.posted < st.checked + par.depth &&
           st.posted < st.done + par.depth) {
        issue(st.posted++);
        if (par.count == UINT64_MAX && is_sync(st.posted - 1))
            break;
    }
}

static int run(void)
{
    uint64_t end = now_ms() + (uint64_t)opt.seconds * 1000;
    bool closing = false, probed = false;

    for (uint64_t i = 0; i < par.depth; i++)
        post_recv(i);
    transport_connect();
    /* Both must be ready to receive before the first packet. */
    tcp_write("r", 1);
    tcp_read((char[1]){0}, 1);
    printf("connected %llu\n", (unsigned long long)now_ms());
    st.last_progress = now_ms();
    while (!st.failed && !finished(&closing)) {
        advance(end);
        if (poll_all() > 0)
            continue;
        if (opt.events)
            wait_event();
        /* The first one may still find the QP of the dead, and a small message needs none of its memory: so once
         * more. */
        if (now_ms() - st.last_progress > 20 && st.credits_done == st.credits_posted && peer_gone()) {
            if (!probed)
                printf("peer gone\n");
            fflush(stdout);
            probed = true;
            grant();
        }
        if (now_ms() - st.last_progress > (uint64_t)opt.stall_s * 1000) {
            printf("no progress: posted %llu done %llu checked %llu\n", (unsigned long long)st.posted,
                   (unsigned long long)st.done, (unsigned long long)st.checked);
            return EXIT_STALL;
        }
    }
    return st.failed ? EXIT_STATUS : 0;
}

/* After an error, every outstanding request must come back flushed, receives as well as sends. The two queues of a QP
 * have no common order: receive requests may be flushed before the error of a send request is reported, and succeed
 * after it. */
static void drain(void)
{
    uint64_t end = now_ms() + 2000, want, sends;

    do {
        poll_all();
        sends = st.posted - st.ended + st.credits_posted - st.credits_ended;
        want = st.srq ? 0 : par.depth - st.recvs_late;
        usleep(100);
    } while (now_ms() < end && (sends > 0 || st.recvs_flushed < want));
    printf("outstanding %llu flushed %llu %llu\n", (unsigned long long)want, (unsigned long long)st.recvs_flushed,
           (unsigned long long)now_ms());
    printf("late %llu\n", (unsigned long long)st.recvs_late);
    printf("incomplete %llu\n", (unsigned long long)sends);
    for (int i = 0; i < 64; i++)
        if (st.status[i])
            printf("status %d %llu %s\n", i, (unsigned long long)st.status[i],
                   ibv_wc_status_str((enum ibv_wc_status)i));
    usleep(100000); /* for an event that comes with the error */
}

/* --- the command line -------------------------------------------------------------------------- */

static uint32_t ops_parse(char *list)
{
    uint32_t mask = 0;

    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        int i = 0;

        while (i < OP_MAX && strcmp(name, op_name[i]) != 0)
            i++;
        if (i == OP_MAX) {
            fprintf(stderr, "rdma_endurance: unknown operation %s\n", name);
            exit(1);
        }
        mask |= 1u << i;
    }
    return mask;
}

static uint32_t transport_parse(const char *name)
{
    for (uint32_t i = 0; i < TRANSPORT_MAX; i++)
        if (strcmp(name, transport_name[i]) == 0)
            return i;
    fprintf(stderr, "rdma_endurance: unknown transport %s\n", name);
    exit(1);
}

static const char usage[] =
    "usage: rdma_endurance [options] [HOST]\n"
    "  -p PORT      TCP port (18600)              -d NAME   device (the first)\n"
    "  -g INDEX     GID index (0)                 -m BYTES  path MTU (1024)\n"
    "  -n COUNT     operations (10000)            -D SEC    for a time instead\n"
    "  -s, -S SIZE  smallest, largest (0, 65536)  -q DEPTH  window of operations, 8 to 4096 (32)\n"
    "  -o LIST      send,send_imm,write,write_imm,read,faa,cas,bind\n"
    "  -r SEED      (1)                           -u N      signal every Nth request (4)\n"
    "  -c NAME      transport: RC, SRQ, XRC, UC (RC)\n"
    "  -e           wait by completion events     -T SEC    give up after this long without progress (20)\n"
    "  -t, -R N     QP timeout and retry_cnt (14, 7)\n"
    "All but -p -d -g -e -t -R -T are the client's to say.\n";

static void options_parse(int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "p:d:c:g:m:n:D:s:S:q:o:r:u:T:t:R:eh")) != -1) {
        switch (c) {
        case 'p':
            opt.port = atoi(optarg);
            break;
        case 'd':
            opt.dev = optarg;
            break;
        case 'g':
            opt.gid_index = atoi(optarg);
            break;
        case 'm':
            par.mtu = (uint32_t)atoi(optarg);
            break;
        case 'n':
            par.count = strtoull(optarg, NULL, 0);
            break;
        case 'D':
            opt.seconds = atoi(optarg), par.count = UINT64_MAX;
            break;
        case 's':
            par.min_size = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'S':
            par.max_size = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'q':
            par.depth = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'o':
            par.ops = ops_parse(optarg);
            break;
        case 'r':
            par.seed = strtoull(optarg, NULL, 0);
            break;
        case 'u':
            opt.signal_every = atoi(optarg);
            break;
        case 'T':
            opt.stall_s = atoi(optarg);
            break;
        case 't':
            opt.timeout = atoi(optarg);
            break;
        case 'R':
            opt.retries = atoi(optarg);
            break;
        case 'c':
            par.transport = transport_parse(optarg);
            break;
        case 'e':
            opt.events = true;
            break;
        default:
            fputs(usage, c == 'h' ? stdout : stderr), exit(c == 'h' ? 0 : 1);
        }
    }
    opt.host = optind < argc ? argv[optind] : NULL;
    if (par.depth < 8 || par.depth > 4096 || par.depth % 4 || par.min_size > par.max_size || par.count == 0 ||
        opt.signal_every < 1 || par.ops == 0) {
        fputs(usage, stderr);
        exit(1);
    }
    if (par.transport == TRANSPORT_UC)
        par.ops &= 1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE | 1u << OP_WRITE_IMM;
}

int main(int argc, char **argv)
{
    uint64_t total;
    int ret;

    options_parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    exchange();
    ret = run();
    if (ret != 0) {
        drain();
        return ret;
    }
    total = opt.host ? par.count : 0;
    if (opt.host) {
        tcp_write(&total, sizeof total);
        tcp_read(&total, sizeof total);
    } else {
        tcp_read(&total, sizeof total);
        tcp_write(&total, sizeof total);
        if (st.checked != total) {
            printf("checked %llu of %llu operations\n", (unsigned long long)st.checked, (unsigned long long)total);
            return EXIT_DATA;
        }
    }
    objects_destroy();
    printf("ok %llu operations %llu bytes\n", (unsigned long long)total, (unsigned long long)st.bytes);
    return 0;
}
