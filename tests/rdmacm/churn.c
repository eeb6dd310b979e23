// SPDX-License-Identifier: BSD-2-Clause
/* Opens and closes connections by rdma_cm, many times, in several processes. Each connection carries messages whose data
 * are checked. The server is one process, and runs until it is killed.
 *
 *     churn -p PORT                           the server
 *     churn -p PORT -s ADDRESS [options]      the client
 *         -n N    processes (4)
 *         -c N    connections in all (1000)
 *         -k      kills some of the processes in the middle, and starts others
 *         -l      keeps all connections of a process until all exist; prints "live N"; with -w, waits for the end of the input
 *
 * Exit code: 0 all was right; 1 something was wrong, and the output says what. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 15, LENGTH = 256, DEPTH = 4, CQ_DEPTH = 16384, BACKLOG = 1024, TIMEOUT_MS = 10000, MESSAGES = 3 };

struct conn {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t *buf; /* what was received, then what is sent */
    uint32_t generation; /* of the slot; a completion of an older one is void */
};

static struct conn conns[SLOTS];
static uint32_t slots_free[SLOTS], nfree, live;
static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *comp; /* of the server only: clients poll */
static bool server;

/* Shared by the processes of a client. */
struct shared {
    volatile uint64_t done, wanted, messages;
    volatile int failed;
};
static struct shared *shared;

static void die(const char *what)
{
    printf("churn %d: %s: %s\n", (int)getpid(), what, strerror(errno));
    fflush(stdout);
    if (shared)
        shared->failed = 1;
    _exit(1);
}

static void need(bool holds, const char *what)
{
    if (!holds)
        die(what);
}

/* --- connections ------------------------------------------------------------------------------- */

static void open_device(struct ibv_context *ctx)
{
    if (pd)
        return;
    need((pd = ibv_alloc_pd(ctx)) != NULL, "ibv_alloc_pd");
    need(!server || (comp = ibv_create_comp_channel(ctx)) != NULL, "ibv_create_comp_channel");
    need((cq = ibv_create_cq(ctx, CQ_DEPTH, NULL, comp, 0)) != NULL, "ibv_create_cq");
    need(!server || ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
}

static uint64_t wr_id(const struct conn *c, bool send)
{
    return (uint64_t)c->generation << 32 | (uint64_t)(c - conns) << 1 | send;
}

static void post_recv(struct conn *c)
{
    struct ibv_sge sge = {(uintptr_t)c->buf, LENGTH, c->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id(c, false), .sg_list = &sge, .num_sge = 1};

    need(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static int post_send(struct conn *c)
{
    struct ibv_sge sge = {(uintptr_t)c->buf + LENGTH, LENGTH, c->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id(c, true),
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};

    return ibv_post_send(c->id->qp, &wr, &bad);
}

/* A queue pair and memory for the ID, and a receive request. NULL: the peer of a request is gone already, so that the ID
 * can't have a queue pair. */
static struct conn *conn_new(struct rdma_cm_id *id)
{
    open_device(id->verbs);
    need(nfree > 0, "too many connections");
    struct conn *c = &conns[slots_free[--nfree]];
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};

    c->id = id;
    id->context = c;
    if (rdma_create_qp(id, pd, &attr) != 0) {
        need(server && errno == EINVAL, "rdma_create_qp");
        c->id = NULL;
        slots_free[nfree++] = (uint32_t)(c - conns);
        need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
        return NULL;
    }
    need((c->buf = malloc(2 * LENGTH)) != NULL, "malloc");
    need((c->mr = ibv_reg_mr(pd, c->buf, 2 * LENGTH, IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
    post_recv(c);
    live++;
    return c;
}

static void conn_free(struct conn *c)
{
    struct rdma_cm_id *id = c->id;

    rdma_destroy_qp(id);
    need(ibv_dereg_mr(c->mr) == 0, "ibv_dereg_mr");
    need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
    free(c->buf);
    c->id = NULL;
    c->generation = (c->generation + 1) & 0x7fffffff;
    slots_free[nfree++] = (uint32_t)(c - conns);
    live--;
}

/* The connection of a completion, or NULL if it is gone. */
static struct conn *conn_of(const struct ibv_wc *wc)
{
    struct conn *c = &conns[wc->wr_id >> 1 & (SLOTS - 1)];

    return c->id && c->generation == wc->wr_id >> 32 ? c : NULL;
}

/* --- the server: sends back the complement of what it receives ------------------------------------ */

static void serve_completion(const struct ibv_wc *wc)
{
    struct conn *c = conn_of(wc);

    if (!c || wc->status != IBV_WC_SUCCESS || (wc->wr_id & 1))
        return; /* the peer may have died */
    for (int i = 0; i < LENGTH; i++)
        c->buf[LENGTH + i] = (uint8_t)~c->buf[i];
    post_recv(c);
    post_send(c);
}

static void serve_completions(void)
{
    struct ibv_cq *of;
    struct ibv_wc wc[32];
    void *context;
    int n;

    need(ibv_get_cq_event(comp, &of, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(of, 1);
    need(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
    while ((n = ibv_poll_cq(cq, 32, wc)) > 0)
        for (int i = 0; i < n; i++)
            serve_completion(&wc[i]);
    need(n == 0, "ibv_poll_cq");
}

static void serve_event(void)
{
    struct rdma_cm_event *event;

    need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    struct conn *c = id->context;
    enum rdma_cm_event_type type = event->event;
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};

    need(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
    switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        c = conn_new(id);
        if (c && rdma_accept(id, &param) != 0) /* the peer is gone */
            conn_free(c);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id);
        conn_free(c);
        break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
        conn_free(c);
        break;
    default:
        break;
    }
}

static void serve(const char *port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    struct rdma_cm_id *listener;

    server = true;
    need((channel = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
    need(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    need(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0, "rdma_bind_addr");
    need(rdma_listen(listener, BACKLOG) == 0, "rdma_listen");
    for (;;) {
        struct pollfd fds[2] = {{.fd = channel->fd, .events = POLLIN}, {.fd = comp ? comp->fd : -1, .events = POLLIN}};

        need(poll(fds, 2, -1) > 0, "poll");
        if (fds[1].revents)
            serve_completions();
        if (fds[0].revents)
            serve_event();
    }
}

/* --- a client ------------------------------------------------------------------------------------ */

/* The next event must be this one. */
static void expect(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;

    need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    /* The end of the time wait of an earlier connection may come at any time. */
    while (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
        need(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
        need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    }
    if (event->event != type) {
        printf("%s, status %d, in place of %s\n", rdma_event_str(event->event), event->status, rdma_event_str(type));
        errno = 0;
        die("wrong event");
    }
    need(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
}

static struct conn *connect_to(const struct sockaddr *address)
{
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id;

    need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    need(rdma_resolve_addr(id, NULL, (struct sockaddr *)address, TIMEOUT_MS) == 0, "rdma_resolve_addr");
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    need(rdma_resolve_route(id, TIMEOUT_MS) == 0, "rdma_resolve_route");
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    struct conn *c = conn_new(id);
    need(rdma_connect(id, &param) == 0, "rdma_connect");
    expect(RDMA_CM_EVENT_ESTABLISHED);
    return c;
}

/* One message there and back. */
static void exchange(struct conn *c, uint32_t number)
{
    bool sent = false, received = false;
    struct ibv_wc wc;
    int n;

    for (int i = 0; i < LENGTH; i++)
        c->buf[LENGTH + i] = (uint8_t)((uint32_t)getpid() * 31 + number * 7 + (uint32_t)i);
    need(post_send(c) == 0, "ibv_post_send");
    while (!sent || !received) {
        while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
            ;
        need(n == 1, "ibv_poll_cq");
        if (!conn_of(&wc))
            continue; /* of a queue pair that was destroyed */
        errno = 0;
        if (wc.status != IBV_WC_SUCCESS)
            die(ibv_wc_status_str(wc.status));
        need(conn_of(&wc) == c, "a completion of another connection");
        sent |= wc.wr_id & 1;
        received |= !(wc.wr_id & 1);
    }
    for (int i = 0; i < LENGTH; i++)
        need((c->buf[i] ^ c->buf[LENGTH + i]) == 0xff, "wrong data");
    post_recv(c);
    __atomic_add_fetch(&shared->messages, 1, __ATOMIC_RELAXED);
}

static void disconnect(struct conn *c)
{
    need(rdma_disconnect(c->id) == 0, "rdma_disconnect");
    expect(RDMA_CM_EVENT_DISCONNECTED);
    conn_free(c);
}

static bool wants_more(void)
{
    return __atomic_fetch_add(&shared->wanted, -1, __ATOMIC_RELAXED) - 1 < UINT64_MAX / 2;
}

static void client_short(const struct sockaddr *address)
{
    for (uint32_t n = 0; wants_more(); n++) {
        struct conn *c = connect_to(address);

        for (uint32_t i = 0; i < MESSAGES; i++)
            exchange(c, n + i);
        disconnect(c);
        __atomic_add_fetch(&shared->done, 1, __ATOMIC_RELAXED);
    }
}

static void client_live(const struct sockaddr *address, bool wait)
{
    struct conn **all = calloc(SLOTS, sizeof(*all));
    uint32_t n = 0;
    char byte;

    need(all != NULL, "calloc");
    while (wants_more()) {
        all[n] = connect_to(address);
        exchange(all[n], n);
        n++;
    }
    for (uint32_t i = 0; i < n; i++)
        exchange(all[i], i + 1);
    printf("live %u\n", live);
    fflush(stdout);
    while (wait && read(0, &byte, 1) > 0)
        ;
    for (uint32_t i = 0; i < n; i++) {
        disconnect(all[i]);
        __atomic_add_fetch(&shared->done, 1, __ATOMIC_RELAXED);
    }
    free(all);
}

struct options {
    const char *port, *address;
    unsigned processes, connections;
    bool kill, live, wait;
};

static void child(const struct options *o)
{
    struct addrinfo *to, hints = {.ai_socktype = SOCK_STREAM};

    need(getaddrinfo(o->address, o->port, &hints, &to) == 0, "getaddrinfo");
    need((channel = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
    if (o->live)
        client_live(to->ai_addr, o->wait);
    else
        client_short(to->ai_addr);
    freeaddrinfo(to);
    if (cq)
        need(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "the end");
    rdma_destroy_event_channel(channel);
    exit(0);
}

static pid_t start_child(const struct options *o)
{
    fflush(stdout);
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0)
        child(o);
    return pid;
}

/* A process has ended: by a kill, and another one takes its place; or as it shall. Returns whether it was killed. */
static bool ended(const struct options *o, pid_t *slot, int status)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

    errno = 0;
    need(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "a process failed");
    *slot = killed ? start_child(o) : 0;
    return killed;
}

/* Waits for the processes. With -k, kills one after the other meanwhile. Returns the number of kills. */
static unsigned supervise(const struct options *o, pid_t *pids)
{
    unsigned running = o->processes, kills = 0, victim = 0;
    uint64_t seen = 0;

    while (running > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, o->kill ? WNOHANG : 0);

        for (unsigned i = 0; pid > 0 && i < o->processes; i++) {
            if (pids[i] != pid)
                continue;
            bool killed = ended(o, &pids[i], status);
            kills += killed;
            running -= !killed;
        }
        if (pid > 0)
            continue;
        usleep(1000);
        /* A kill for each 40 connections that were made, while many are left to do. */
        if (shared->done >= seen + 40 && shared->wanted < UINT64_MAX / 2 && shared->wanted > 40) {
            pid_t next = pids[victim++ % o->processes];
            seen = shared->done;
            if (next)
                kill(next, SIGKILL);
        }
    }
    return kills;
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int run_client(const struct options *o)
{
    pid_t pids[256];
    double begin = now();

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(shared != MAP_FAILED, "mmap");
    shared->wanted = o->connections;
    for (unsigned i = 0; i < o->processes; i++)
        pids[i] = start_child(o);
    unsigned kills = supervise(o, pids);
    double seconds = now() - begin;

    /* A process that was killed did not finish one connection. */
    errno = 0;
    need(!shared->failed && shared->done + kills >= o->connections, "too few connections");
    printf("ok %llu connections, %llu messages, %u processes, %u killed, in %.2f s: %.0f per second\n",
           (unsigned long long)shared->done, (unsigned long long)shared->messages, o->processes, kills, seconds,
           (double)shared->done / seconds);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.processes = 4, .connections = 1000};
    int c;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (nfree = 0; nfree < SLOTS; nfree++)
        slots_free[nfree] = SLOTS - 1 - nfree;
    while ((c = getopt(argc, argv, "p:s:n:c:klw")) != -1) {
        switch (c) {
        case 'p':
            o.port = optarg;
            break;
        case 's':
            o.address = optarg;
            break;
        case 'n':
            o.processes = (unsigned)atoi(optarg);
            break;
        case 'c':
            o.connections = (unsigned)atoi(optarg);
            break;
        case 'k':
            o.kill = true;
            break;
        case 'l':
            o.live = true;
            break;
        case 'w':
            o.wait = true;
            break;
        default:
            o.port = NULL;
            optind = argc;
        }
    }
    if (!o.port || optind < argc || o.processes < 1 || o.processes > 256) {
        fprintf(stderr, "usage: churn -p PORT [-s ADDRESS [-n PROCESSES] [-c CONNECTIONS] [-k] [-l [-w]]]\n");
        return 2;
    }
    if (!o.address)
        serve(o.port);
    return run_client(&o);
}
