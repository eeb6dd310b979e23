// SPDX-License-Identifier: BSD-2-Clause
/* A member of the group that may use a daemon, for quota.sh and control_turns.sh. Reads lines from standard input, and does one step for
 * each.
 *   member fill KIND   makes objects until one is refused; gives one back and makes another; gives back all
 *   member exchange    exchanges data between two queue pairs, with each line again; "new": makes a channel and a CQ
 *   member attack      takes as much as it can get, and holds it
 *   member flood N     opens the device N times, and N / 2 more connections, and sends requests over all of them without end
 *   member requests N  makes and destroys a CQ N times, and asks for the devices over one connection as often
 *   member silent      opens connections, of which all but one ask for nothing, and tells which the daemon closes */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "pumice/abi.h"
#include "tests/verbs/vt.h"

static void next_step(void)
{
    char line[64];
    if (!fgets(line, sizeof(line), stdin))
        exit(0);
}

/* --- without the library ----------------------------------------------------------------------- */

static int raw_connect(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", getenv("PUMICE_SOCKET"));
    need(sock >= 0 && connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    return sock;
}

/* Returns the status of the reply, or -EPIPE if there is none. Closes the descriptors of the reply. */
static int raw_call(int sock, uint32_t op, const void *rq, uint32_t len)
{
    struct pm_request head = {op, len};
    struct iovec out[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)rq, len}};
    struct msghdr request = {.msg_iov = out, .msg_iovlen = len ? 2 : 1};
    union {
        struct pm_reply head;
        char bytes[PM_MSG_MAX];
    } reply;
    struct iovec in = {&reply, sizeof(reply)};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * PM_FDS_MAX)];
    } control;
    struct msghdr answer = {
        .msg_iov = &in, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    if (sendmsg(sock, &request, MSG_NOSIGNAL) < 0 || recvmsg(sock, &answer, 0) < (ssize_t)sizeof(reply.head))
        return -EPIPE;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&answer); c; c = CMSG_NXTHDR(&answer, c))
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            close(fd);
        }
    return reply.head.status;
}

/* --- fill -------------------------------------------------------------------------------------- */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *ud;
static char memory[4096];

static void *make_session(unsigned i)
{
    int n;
    (void)i;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (!list || !n)
        return NULL;
    struct ibv_context *c = ibv_open_device(list[0]);
    int error = errno;
    ibv_free_device_list(list);
    errno = error;
    return c;
}

static int drop_session(void *o)
{
    return ibv_close_device(o);
}

static void *make_connection(unsigned i)
{
    int sock = raw_connect(), rc = raw_call(sock, PM_OP_LIST, NULL, 0);
    (void)i;
    if (rc)
        close(sock);
    errno = -rc;
    return rc ? NULL : (void *)(intptr_t)sock;
}

static int drop_connection(void *o)
{
    return close((int)(intptr_t)o);
}

static void *make_pd(unsigned i)
{
    (void)i;
    return ibv_alloc_pd(ctx);
}

static int drop_pd(void *o)
{
    return ibv_dealloc_pd(o);
}

static void *make_qp(unsigned i)
{
    struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    (void)i;
    return ibv_create_qp(pd, &a);
}

static int drop_qp(void *o)
{
    return ibv_destroy_qp(o);
}

static void *make_cq(unsigned i)
{
    (void)i;
    return ibv_create_cq(ctx, 1, NULL, NULL, 0);
}

static int drop_cq(void *o)
{
    return ibv_destroy_cq(o);
}

static void *make_srq(unsigned i)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 1, .max_sge = 1}};
    (void)i;
    return ibv_create_srq(pd, &a);
}

static int drop_srq(void *o)
{
    return ibv_destroy_srq(o);
}

static void *make_mr(unsigned i)
{
    (void)i;
    return ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
}

static int drop_mr(void *o)
{
    return ibv_dereg_mr(o);
}

static void *make_mw(unsigned i)
{
    (void)i;
    return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}

static int drop_mw(void *o)
{
    return ibv_dealloc_mw(o);
}

static void *make_channel(unsigned i)
{
    (void)i;
    return ibv_create_comp_channel(ctx);
}

static int drop_channel(void *o)
{
    return ibv_destroy_comp_channel(o);
}

static void *make_xrcd(unsigned i)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    (void)i;
    return ibv_open_xrcd(ctx, &a);
}

static int drop_xrcd(void *o)
{
    return ibv_close_xrcd(o);
}

static union ibv_gid group(unsigned i)
{
    return (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 7, 7, (uint8_t)i}};
}

static void *make_group(unsigned i)
{
    union ibv_gid gid = group(i);
    int rc = ibv_attach_mcast(ud, &gid, 0);
    errno = rc;
    return rc ? NULL : (void *)(uintptr_t)(i + 1);
}

static int drop_group(void *o)
{
    union ibv_gid gid = group((unsigned)(uintptr_t)o - 1);
    return ibv_detach_mcast(ud, &gid, 0);
}

/* Connection management: the client library answers for this file, which librdmacm opens. */
#define CM_FILE "/dev/infiniband/rdma_cm"

static void *make_cm_channel(unsigned i)
{
    int fd = open(CM_FILE, O_RDWR | O_CLOEXEC);
    (void)i;
    return fd < 0 ? NULL : (void *)(intptr_t)fd;
}

static int drop_cm_channel(void *o)
{
    return close((int)(intptr_t)o);
}

/* A process has one connection. So each object is a process. */
static void *make_cm_connection(unsigned i)
{
    int report[2], error = 0;
    need(pipe(report) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        error = make_cm_channel(i) ? 0 : errno;
        (void)!write(report[1], &error, sizeof(error));
        close(report[1]);
        pause();
        _exit(0);
    }
    close(report[1]);
    need(read(report[0], &error, sizeof(error)) == sizeof(error));
    close(report[0]);
    if (error) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    errno = error;
    return error ? NULL : (void *)(intptr_t)pid;
}

static int drop_cm_connection(void *o)
{
    kill((pid_t)(intptr_t)o, SIGKILL);
    return waitpid((pid_t)(intptr_t)o, NULL, 0) > 0 ? 0 : -1;
}

static int cm_channel = -1;

/* The command and its answer are as those of the kernel. */
static int cm_command(uint32_t number, const void *in, size_t len, size_t out)
{
    struct {
        struct rdma_ucm_cmd_hdr head;
        char body[64];
    } c = {.head = {number, (uint16_t)len, (uint16_t)out}};
    memcpy(c.body, in, len);
    return write(cm_channel, &c, sizeof(c.head) + len) < 0 ? -1 : 0;
}

static void *make_cm_id(unsigned i)
{
    struct rdma_ucm_create_id_resp rep = {0};
    struct rdma_ucm_create_id in = {.uid = i, .response = (uintptr_t)&rep, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC};
    if (cm_channel < 0)
        need((cm_channel = open(CM_FILE, O_RDWR | O_CLOEXEC)) >= 0);
    if (cm_command(RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(rep)) != 0)
        return NULL;
    return (void *)((uintptr_t)rep.id + 1); /* 0 is an ID, too */
}

static int drop_cm_id(void *o)
{
    struct rdma_ucm_destroy_id_resp rep;
    struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&rep, .id = (uint32_t)((uintptr_t)o - 1)};
    return cm_command(RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(rep));
}

/* clang-format off */
static const struct kind {
    const char *name;
    void *(*make)(unsigned i);
    int (*drop)(void *object);
    const char *needs; /* c: a device, p: a PD, q: a CQ, u: a UD QP */
} kinds[] = {
    {"sessions",    make_session,    drop_session,    ""},
    {"connections", make_connection, drop_connection, ""},
    {"pds",         make_pd,         drop_pd,         "c"},
    {"qps",         make_qp,         drop_qp,         "cpq"},
    {"cqs",         make_cq,         drop_cq,         "c"},
    {"srqs",        make_srq,        drop_srq,        "cp"},
    {"mrs",         make_mr,         drop_mr,         "cp"},
    {"mws",         make_mw,         drop_mw,         "cp"},
    {"channels",    make_channel,    drop_channel,    "c"},
    {"xrcds",       make_xrcd,       drop_xrcd,       "c"},
    {"groups",      make_group,      drop_group,      "cpqu"},
    {"cm-connections", make_cm_connection, drop_cm_connection, ""},
    {"cm-channels", make_cm_channel, drop_cm_channel, ""},
    {"cm-ids",      make_cm_id,      drop_cm_id,      ""},
    {"mappings",    make_cq,         drop_cq,         "c"},
    {"descriptors", make_channel,    drop_channel,    "c"},
    {"bytes",       make_cq,         drop_cq,         "c"},
};
/* clang-format on */
#define OBJECTS_MAX 1000u

static void prepare(const char *needs)
{
    struct ibv_qp_init_attr a = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    if (strchr(needs, 'c'))
        ctx = vt_open();
    if (strchr(needs, 'p'))
        need((pd = ibv_alloc_pd(ctx)));
    if (strchr(needs, 'q'))
        need((cq = ibv_create_cq(ctx, 1, NULL, NULL, 0)));
    if (!strchr(needs, 'u'))
        return;
    a.send_cq = a.recv_cq = cq;
    need((ud = ibv_create_qp(pd, &a)) && vt_to_init(ud) == 0);
}

static void fill(const char *name)
{
    const struct kind *k = kinds;
    void *object[OBJECTS_MAX];
    unsigned n = 0;
    while (strcmp(k->name, name) != 0)
        need(++k < kinds + sizeof(kinds) / sizeof(kinds[0]));
    prepare(k->needs);
    errno = 0;
    while (n < OBJECTS_MAX && (object[n] = k->make(n)))
        n++;
    printf("full %u %s\n", n, n < OBJECTS_MAX ? strerrorname_np(errno) : "never");
    next_step();
    need(n > 0 && k->drop(object[n - 1]) == 0);
    /* The daemon may end a session or a connection a little later. */
    double end = vt_now() + 10;
    while (!(object[n - 1] = k->make(n - 1)) && vt_now() < end)
        usleep(10000);
    printf("again %s\n", object[n - 1] ? "ok" : strerrorname_np(errno));
    next_step();
    while (n > 0)
        need(k->drop(object[--n]) == 0);
    printf("empty\n");
    next_step();
}

/* --- the other steps --------------------------------------------------------------------------- */

static void exchange(void)
{
    struct vt_pair p = {0};
    struct ibv_wc wc[2];
    char line[64];
    vt_pair_make(&p, vt_open(), NULL);
    vt_connect(&p);
    do {
        need(vt_recv(&p, 1, 1, 1024, 8) == 0 && vt_send(&p, 0, 2, 0, 8, IBV_SEND_SIGNALED) == 0);
        need(vt_poll(p.scq, 1, wc) == 1 && vt_poll(p.rcq, 1, wc + 1) == 1);
        need(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
        printf("exchanged\n");
        if (!fgets(line, sizeof(line), stdin))
            return;
        if (strcmp(line, "new\n") != 0)
            continue;
        errno = 0;
        struct ibv_comp_channel *channel = ibv_create_comp_channel(p.ctx);
        printf("channel %s ", channel ? "ok" : strerrorname_np(errno));
        struct ibv_cq *big = ibv_create_cq(p.ctx, 200000, NULL, NULL, 0);
        printf("cq %s\n", big ? "ok" : strerrorname_np(errno));
        if (channel)
            ibv_destroy_comp_channel(channel);
        if (big)
            ibv_destroy_cq(big);
    } while (true);
}

#define SESSIONS 8
static int session[SESSIONS];

/* Calls an operation in one session after the other, in each until it fails. Returns how often it succeeded. */
static unsigned take(uint32_t op, const void *rq, uint32_t len, unsigned most)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SESSIONS; i++)
        while (n < most && raw_call(session[i], op, rq, len) == 0)
            n++;
    return n;
}

static void attack(void)
{
    struct pm_create_cq_req one = {.cqe = 1};
    struct pm_open_req open_rq = {PM_ABI_VERSION, 0, 0, 0};
    struct rlimit files;
    unsigned silent;
    need(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    need(setrlimit(RLIMIT_NOFILE, &files) == 0);
    for (unsigned i = 0; i < SESSIONS; i++)
        need(raw_call(session[i] = raw_connect(), PM_OP_OPEN, &open_rq, sizeof(open_rq)) == 0);
    unsigned channels = take(PM_OP_CREATE_CHANNEL, NULL, 0, 20000);
    unsigned cqs = take(PM_OP_CREATE_CQ, &one, sizeof(one), 65420);
    for (silent = 0; silent < 1100; silent++)
        raw_connect();
    printf("holds %u CQs, %u channels, %u connections\n", cqs, channels, silent);
    next_step();
}

static void silent_connections(void)
{
    struct pollfd p[4];
    unsigned closed = 0;
    int asks = raw_connect();
    for (unsigned i = 0; i < 4; i++)
        p[i] = (struct pollfd){.fd = raw_connect(), .events = POLLIN};
    double begin = vt_now();
    while (closed < 4 && vt_now() < begin + 30) {
        need(raw_call(asks, PM_OP_LIST, NULL, 0) == 0);
        usleep(100000);
        closed = 0;
        for (unsigned i = 0; i < 4; i++)
            closed += poll(&p[i], 1, 0) == 1 && recv(p[i].fd, memory, 1, MSG_DONTWAIT) == 0;
    }
    need(raw_call(asks, PM_OP_LIST, NULL, 0) == 0);
    printf("closed %u after %s\n", closed, vt_now() - begin > 0.8 ? "a while" : "no time");
}

/* --- control requests -------------------------------------------------------------------------- */

static void make_and_destroy(struct ibv_context *c)
{
    struct ibv_cq *q = ibv_create_cq(c, 1, NULL, NULL, 0);
    need(q && ibv_destroy_cq(q) == 0);
}

static void *flood_session(void *c)
{
    for (;;)
        make_and_destroy(c);
    return NULL;
}

static void *flood_connection(void *sock)
{
    while (raw_call((int)(intptr_t)sock, PM_OP_LIST, NULL, 0) == 0)
        continue;
    return NULL;
}

static void flood(unsigned n)
{
    pthread_t thread;
    for (unsigned i = 0; i < n; i++) {
        struct ibv_context *c = make_session(i);
        need(c && pthread_create(&thread, NULL, flood_session, c) == 0);
        need(i % 2 || pthread_create(&thread, NULL, flood_connection, (void *)(intptr_t)raw_connect()) == 0);
    }
    printf("floods\n");
    next_step();
}

static void requests(unsigned n)
{
    int sock = raw_connect();
    ctx = make_session(0);
    need(ctx != NULL);
    for (unsigned i = 0; i < n; i++) {
        make_and_destroy(ctx);
        need(raw_call(sock, PM_OP_LIST, NULL, 0) == 0);
    }
    printf("done\n");
    next_step();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    need(argc >= 2);
    if (strcmp(argv[1], "fill") == 0 && argc == 3)
        fill(argv[2]);
    else if (strcmp(argv[1], "exchange") == 0)
        exchange();
    else if (strcmp(argv[1], "attack") == 0)
        attack();
    else if (strcmp(argv[1], "flood") == 0 && argc == 3)
        flood((unsigned)atoi(argv[2]));
    else if (strcmp(argv[1], "requests") == 0 && argc == 3)
        requests((unsigned)atoi(argv[2]));
    else if (strcmp(argv[1], "silent") == 0)
        silent_connections();
    else
        return 2;
    return vt_failed;
}
