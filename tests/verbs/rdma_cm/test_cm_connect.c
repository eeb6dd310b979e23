// SPDX-License-Identifier: BSD-2-Clause
/* Connections by librdmacm between two hosts: what depends on the client library. Waiting on a channel, synchronous and
 * asynchronous IDs, IDs that move between channels, a server that forks after it listens, the death of the daemon. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/verbs/vt.h"

#define TIMEOUT_MS 5000
#define TEXT "a message over a connection"

/* --- the server, a process on the other host --------------------------------------------------- */
enum manner {
    ACCEPTS, /* one connection; sends back what it receives, and waits for the end */
    ENDS_FIRST, /* the same, but disconnects by itself */
    REJECTS, /* one connection, with private data */
    FORKS, /* as ACCEPTS, in a child: the process that listens has ended */
};

static struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
}

static struct sockaddr_in own_address(void)
{
    struct ibv_context *c = vt_open();
    union ibv_gid gid = vt_gid(c);
    struct sockaddr_in a = {.sin_family = AF_INET};
    memcpy(&a.sin_addr, &gid.raw[12], 4);
    ibv_close_device(c);
    return a;
}

static void echo(struct rdma_cm_id *id, bool ends)
{
    char text[64] = "";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, text, sizeof(text));
    need(mr && rdma_post_recv(id, NULL, text, sizeof(text), mr) == 0 && rdma_accept(id, NULL) == 0);
    need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    need(rdma_post_send(id, NULL, text, wc.byte_len, mr, 0) == 0 && rdma_get_send_comp(id, &wc) == 1);
    if (ends)
        need(rdma_disconnect(id) == 0);
    else {
        struct rdma_cm_event *e;
        need(rdma_get_cm_event(id->channel, &e) == 0 && e->event == RDMA_CM_EVENT_DISCONNECTED);
        need(rdma_ack_cm_event(e) == 0);
    }
    rdma_dereg_mr(mr);
}

static _Noreturn void serve(enum manner manner, int report)
{
    struct sockaddr_in address;
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_id *listener, *id;
    const char *peer = getenv("VT_PEER_SOCKET");
    if (peer)
        setenv("PUMICE_SOCKET", peer, 1);
    if (manner == FORKS) { /* a context that is open before the fork would be of no use to the child */
        pid_t child = fork();
        if (child == 0) {
            address = own_address();
            need(write(report, &address, sizeof(address)) == sizeof(address));
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else {
        address = own_address();
        need(write(report, &address, sizeof(address)) == sizeof(address));
    }
    struct sockaddr_in any = {.sin_family = AF_INET};
    need(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) == 0 &&
         rdma_bind_addr(listener, (struct sockaddr *)&any) == 0 && rdma_listen(listener, 4) == 0);
    in_port_t port = rdma_get_src_port(listener);
    need(write(report, &port, sizeof(port)) == sizeof(port));
    pid_t parent = getpid();
    if (manner == FORKS && fork() > 0)
        _exit(0);
    while (manner == FORKS && getppid() == parent)
        usleep(1000);
    need(rdma_get_request(listener, &id) == 0);
    if (manner == REJECTS)
        need(rdma_reject(id, "no", 2) == 0);
    else {
        need(rdma_create_qp(id, NULL, &attr) == 0);
        echo(id, manner == ENDS_FIRST);
        rdma_destroy_qp(id);
    }
    need(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0);
    need(write(report, "y", 1) == 1);
    _exit(0);
}

static struct {
    pid_t pid;
    int report;
    struct sockaddr_in address;
} server;

static void start(enum manner manner)
{
    int ends[2];
    need(pipe(ends) == 0);
    fflush(stdout);
    server.pid = fork();
    if (server.pid == 0)
        serve(manner, ends[1]);
    close(ends[1]);
    server.report = ends[0];
    need(read(server.report, &server.address, sizeof(server.address)) == sizeof(server.address));
    need(read(server.report, &server.address.sin_port, sizeof(in_port_t)) == sizeof(in_port_t));
}

/* Did the server do all that it had to? */
static bool served(void)
{
    char good = 0;
    (void)!read(server.report, &good, 1);
    close(server.report);
    waitpid(server.pid, NULL, 0);
    return good == 'y';
}

/* --- the client -------------------------------------------------------------------------------- */
/* Waits for the next event by poll. NULL: none came. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *e;
    return poll(&p, 1, 30000) == 1 && rdma_get_cm_event(channel, &e) == 0 ? e : NULL;
}

/* Takes the next event. Is it this one? */
static bool takes(struct rdma_event_channel *channel, struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e = next(channel);
    bool right = e && e->event == type && e->id == id;
    if (e && !right)
        printf("# %s, status %d, instead of %s\n", rdma_event_str(e->event), e->status, rdma_event_str(type));
    return e && rdma_ack_cm_event(e) == 0 && right;
}

static bool resolves(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
    return rdma_resolve_addr(id, NULL, (struct sockaddr *)&server.address, TIMEOUT_MS) == 0 &&
           takes(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED) && rdma_resolve_route(id, TIMEOUT_MS) == 0 &&
           takes(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Sends a message, and gets it back. */
static bool echoes(struct rdma_cm_id *id)
{
    char text[64] = TEXT, back[64] = "";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, text, sizeof(text)), *mr_back = rdma_reg_msgs(id, back, sizeof(back));
    bool same = mr && mr_back && rdma_post_recv(id, NULL, back, sizeof(back), mr_back) == 0 &&
                rdma_post_send(id, NULL, text, sizeof(TEXT), mr, 0) == 0 && rdma_get_send_comp(id, &wc) == 1 &&
                rdma_get_recv_comp(id, &wc) == 1 && wc.byte_len == sizeof(TEXT) && strcmp(back, TEXT) == 0;
    return rdma_dereg_mr(mr) == 0 && rdma_dereg_mr(mr_back) == 0 && same;
}

static struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

static void synchronous(enum manner manner, const char *what)
{
    struct rdma_cm_id *id;
    struct ibv_qp_init_attr attr = qp_attr();
    start(manner);
    need(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
    bool works = rdma_resolve_addr(id, NULL, (struct sockaddr *)&server.address, TIMEOUT_MS) == 0 &&
                 rdma_resolve_route(id, TIMEOUT_MS) == 0 && rdma_create_qp(id, NULL, &attr) == 0 &&
                 rdma_connect(id, &param) == 0 && echoes(id) && rdma_disconnect(id) == 0;
    rdma_destroy_qp(id);
    ok(works && rdma_destroy_id(id) == 0 && served(), what);
}

static void asynchronous(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_event *e;
    struct rdma_cm_id *id;
    struct ibv_qp_init_attr attr = qp_attr();
    start(ENDS_FIRST);
    need(channel && rdma_create_id(channel, &id, &attr, RDMA_PS_TCP) == 0);
    int flags = fcntl(channel->fd, F_GETFL);
    ok(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0 && rdma_get_cm_event(channel, &e) == -1 && errno == EAGAIN,
       "a channel with O_NONBLOCK");
    ok(resolves(channel, id) && id->context == &attr, "address and route are resolved");
    ok(id->verbs && ibv_get_device_guid(id->verbs->device) != 0, "the ID has a device");
    ok(rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0 &&
           takes(channel, id, RDMA_CM_EVENT_ESTABLISHED) && echoes(id),
       "it is connected");
    ok(takes(channel, id, RDMA_CM_EVENT_DISCONNECTED) && rdma_disconnect(id) == 0, "the peer disconnects");
    rdma_destroy_qp(id);
    ok(rdma_destroy_id(id) == 0 && served(), "it ends");
    rdma_destroy_event_channel(channel);
}

static void rejected(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct ibv_qp_init_attr attr = qp_attr();
    start(REJECTS);
    need(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && resolves(channel, id) &&
         rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0);
    struct rdma_cm_event *e = next(channel);
    ok(e && e->event == RDMA_CM_EVENT_REJECTED && e->status == 28 && e->param.conn.private_data_len >= 2 &&
           memcmp(e->param.conn.private_data, "no", 2) == 0,
       "the peer rejects, with private data");
    if (e)
        rdma_ack_cm_event(e);
    rdma_destroy_qp(id);
    ok(rdma_destroy_id(id) == 0 && served(), "the ID ends");
    attr = qp_attr(); /* it had the CQs of the old ID */
    /* Now nobody listens on the port. */
    need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && resolves(channel, id) &&
         rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0);
    e = next(channel);
    ok(e && e->event == RDMA_CM_EVENT_REJECTED && e->status == 8, "a port without a listener");
    if (e)
        rdma_ack_cm_event(e);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
}

static void moves(void)
{
    struct rdma_event_channel *first = rdma_create_event_channel(), *second = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct rdma_cm_event *e;
    struct ibv_qp_init_attr attr = qp_attr();
    start(ACCEPTS);
    need(first && second && rdma_create_id(first, &id, NULL, RDMA_PS_TCP) == 0);
    fcntl(first->fd, F_SETFL, O_NONBLOCK);
    need(rdma_resolve_addr(id, NULL, (struct sockaddr *)&server.address, TIMEOUT_MS) == 0);
    struct pollfd p = {.fd = first->fd, .events = POLLIN};
    need(poll(&p, 1, 30000) == 1);
    ok(rdma_migrate_id(id, second) == 0 && id->channel == second, "an ID moves to another channel");
    ok(takes(second, id, RDMA_CM_EVENT_ADDR_RESOLVED) && rdma_get_cm_event(first, &e) == -1 && errno == EAGAIN,
       "its event moves, too");
    ok(rdma_resolve_route(id, TIMEOUT_MS) == 0 && takes(second, id, RDMA_CM_EVENT_ROUTE_RESOLVED) &&
           rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0 &&
           takes(second, id, RDMA_CM_EVENT_ESTABLISHED) && echoes(id),
       "it goes on there");
    rdma_destroy_event_channel(first);
    ok(rdma_migrate_id(id, NULL) == 0 && rdma_disconnect(id) == 0, "and on a channel of its own");
    rdma_destroy_qp(id);
    ok(rdma_destroy_id(id) == 0 && served(), "it ends");
    rdma_destroy_event_channel(second);
}

static void late(int signal)
{
    static const char text[] = "not ok - a call hangs after the death of the daemon\n";
    (void)signal;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

/* An rsocket that listens. A thread of librdmacm polls its channel. */
static int listening_rsocket(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int s = rsocket(AF_INET, SOCK_STREAM, 0);
    need(s >= 0 && rbind(s, (struct sockaddr *)&any, sizeof(any)) == 0 && rlisten(s, 4) == 0);
    return s;
}

/* CPU time of the process in microseconds. */
static long cpu_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

/* Does the process sleep? A thread that spins uses a good part of the time. */
static bool sleeps(void)
{
    usleep(100000);
    long before = cpu_time();
    usleep(500000);
    return cpu_time() - before < 20000;
}

static void death(void)
{
    const char *pid = getenv("VT_DAEMON_PID");
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id, *listener;
    struct rdma_cm_event *e;
    struct ibv_qp_init_attr attr = qp_attr();
    struct sockaddr_in any = {.sin_family = AF_INET};
    start(ACCEPTS);
    need(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && resolves(channel, id) &&
         rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0 &&
         takes(channel, id, RDMA_CM_EVENT_ESTABLISHED) && echoes(id));
    need(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0 &&
         rdma_bind_addr(listener, (struct sockaddr *)&any) == 0 && rdma_listen(listener, 1) == 0);
    int stream = listening_rsocket();
    signal(SIGALRM, late);
    alarm(60);
    kill((pid_t)atoi(pid), SIGKILL);
    ok(takes(channel, id, RDMA_CM_EVENT_DEVICE_REMOVAL) && takes(channel, listener, RDMA_CM_EVENT_DEVICE_REMOVAL),
       "each ID gets the event that its device is gone");
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    ok(poll(&p, 1, 0) == 0, "then the channel is silent");
    ok(rdma_get_cm_event(channel, &e) == -1 && errno == ENODEV, "and has no device");
    ok(sleeps(), "no thread of librdmacm spins");
    rclose(stream);
    rdma_destroy_qp(id);
    ok(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0, "the IDs can be destroyed");
    rdma_destroy_event_channel(channel);
    alarm(0);
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
}

#ifndef __SANITIZE_ADDRESS__ /* it does not follow the way out of a cancelled thread */
static atomic_int waiter; /* number of the thread that waits */
static void *wait_for_event(void *channel)
{
    struct rdma_cm_event *e;
    waiter = (int)gettid();
    return (void *)(intptr_t)(rdma_get_cm_event(channel, &e) + 10);
}

/* Until the thread reads from the channel. If the channel were closed before, it would get an error, and that would be right. A thread that
 * sleeps may still wait for a lock of malloc. */
static bool thread_waits(void)
{
    char path[64], line[256];
    for (double end = vt_now() + vt_wait_seconds(); vt_now() < end; poll(NULL, 0, 1)) {
        if (!waiter)
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter);
        FILE *f = fopen(path, "r");
        if (!f)
            return poll(NULL, 0, 20) == 0; /* this kernel does not tell */
        if (fgets(line, sizeof(line), f) && strncmp(line, "running", 7) != 0 && atol(line) == SYS_read) {
            fclose(f);
            return true;
        }
        fclose(f);
    }
    return false;
}

/* Closes a channel for which a thread waits, while an event comes. True: the thread got the event, or waits for ever. */
static bool is_closed_quietly(struct sockaddr_in *to)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    pthread_t thread;
    void *rc;
    waiter = 0;
    need(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 &&
         pthread_create(&thread, NULL, wait_for_event, channel) == 0);
    need(thread_waits());
    need(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, TIMEOUT_MS) == 0);
    close(channel->fd);
    poll(NULL, 0, 5);
    pthread_cancel(thread);
    need(pthread_join(thread, &rc) == 0);
    return rc == PTHREAD_CANCELED || (intptr_t)rc == 10;
}

/* rping waits in this way when it ends. */
static void closed_by_another_thread(void)
{
    struct sockaddr_in to = own_address();
    bool quiet = true;
    for (unsigned i = 0; i < 100; i++)
        quiet &= is_closed_quietly(&to);
    ok(quiet, "a thread that waits for an event gets no error when another closes the channel");
}
#endif

int main(void)
{
    VT_OWN("connection management in the client library");
    signal(SIGPIPE, SIG_IGN);
    synchronous(ACCEPTS, "an ID with a channel of its own");
    asynchronous();
    rejected();
    moves();
    synchronous(FORKS, "a server that forks after it listens");
#ifndef __SANITIZE_ADDRESS__
    closed_by_another_thread();
#endif
    if (getenv("VT_DAEMON_PID"))
        death();
    return vt_failed;
}
