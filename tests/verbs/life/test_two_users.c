// SPDX-License-Identifier: BSD-2-Clause
/* Two users of one daemon. One knows everything about a connection of the other: numbers, PSNs, key and address. It aims
 * a QP of its own at it, and neither writes the other's memory nor disturbs the connection. Runs daemons of its own as
 * root, and two processes with other user numbers. */
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "tests/verbs/ends.h"

#define VICTIM_UID 65531
#define ATTACKER_UID 65532
#define GROUP "nogroup"

enum { FORGED = 'x', TRUE_DATA = 'v', LEN = 64, AIM = 4096 };

/* Where the daemon's devices have their addresses, and how packets between its own QPs travel. */
struct layout {
    const char *name, *first, *second; /* second NULL: one device */
    const char *loopback;
};

/* The numbers that the victim tells, as if the attacker had read it somewhere. */
struct secret {
    uint32_t target_qpn, rkey;
    uint64_t address;
    union ibv_gid gid; /* of the target */
    int ok;
};

static char dir[] = "/tmp/pumice-users-XXXXXX", socket_path[64];
static pid_t daemon_pid;

static void start_daemon(const struct layout *l)
{
    char program[4096], ready[16], line[8] = "";
    int p[2];
    need(pipe(p) == 0);
    snprintf(program, sizeof(program), "%s/bin/pumiced", getenv("VT_BUILD"));
    daemon_pid = fork();
    need(daemon_pid >= 0);
    if (daemon_pid == 0) {
        unsetenv("LD_PRELOAD");
        close(p[0]);
        snprintf(ready, sizeof(ready), "%d", p[1]);
        const char *arg[] = {program,     "--socket", socket_path,  "--group", GROUP, "--loopback", l->loopback,
                             "--address", l->first,   "--ready-fd", ready,     NULL,  NULL,         NULL};
        if (l->second) {
            arg[11] = "--address";
            arg[12] = l->second;
        }
        execv(program, (char **)arg);
        _exit(127);
    }
    close(p[1]);
    need(read(p[0], line, sizeof(line)) > 0 && !strncmp(line, "ready", 5));
    close(p[0]);
}

static void stop_daemon(void)
{
    kill(daemon_pid, SIGTERM);
    waitpid(daemon_pid, NULL, 0);
}

static void become(uid_t uid)
{
    gid_t gid = getgrnam(GROUP)->gr_gid;
    need(setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0);
    need(prctl(PR_SET_DUMPABLE, 1) == 0); /* as a program that was started by this user */
    setenv("PUMICE_SOCKET", socket_path, 1);
}

static struct ibv_context *open_number(int number)
{
    char name[16];
    snprintf(name, sizeof(name), "pumice%d", number);
    return vt_open_named(name);
}

/* With few retries, since the attacker's QP gets no answer. */
static void to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1, .rnr_retry = 1, .sq_psn = 1, .max_rd_atomic = 1};
    need(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN |
                           (vt_acks(qp) ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                        : 0)) == 0);
}

static enum ibv_wc_status write_aim(struct vt_end *e, const struct secret *s, char what)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = s->address + AIM;
    wr.wr.rdma.rkey = s->rkey;
    memset(e->buf, what, LEN);
    need(vt_end_post(e, &wr, 0, LEN) == 0);
    return vt_next(e->scq).status;
}

static bool holds(const struct vt_end *e, char what)
{
    for (int i = 0; i < LEN; i++) {
        if (e->buf[AIM + i] != what)
            return false;
    }
    return true;
}

/* Waits for data that may come after their completion at the sender, as with UC. */
static bool comes_to_hold(const struct vt_end *e, char what)
{
    double end = vt_now() + 5;
    while (!holds(e, what) && vt_now() < end)
        usleep(1000);
    return holds(e, what);
}

/* The other user: one QP on the device of the victim's sender, aimed at the victim's target. */
static void attack(enum ibv_qp_type type, int from, int to)
{
    struct secret s;
    struct vt_end e;
    become(ATTACKER_UID);
    need(read(from, &s, sizeof(s)) == (ssize_t)sizeof(s) && s.ok);
    struct ibv_context *ctx = open_number(0);
    need(ctx);
    vt_end_open(&e, ctx);
    need((e.qp = vt_end_qp(&e, type, NULL, 0)));
    need(vt_to_init(e.qp) == 0 && vt_to_rtr_at(e.qp, s.target_qpn, &s.gid) == 0);
    to_rts(e.qp);
    int status = (int)write_aim(&e, &s, FORGED);
    usleep(100000); /* packets may still be on their way through the kernel */
    need(write(to, &status, sizeof(status)) == (ssize_t)sizeof(status));
    exit(0);
}

/* The victim: a target on the last device, and a QP of its own on the first that is connected to it. */
static void be_the_victim(enum ibv_qp_type type, int last, int to, int from)
{
    struct vt_end target, peer;
    int status = -1;
    become(VICTIM_UID);
    struct ibv_context *a = open_number(0), *b = open_number(last);
    need(a && b);
    vt_end_open(&peer, a);
    vt_end_open(&target, b);
    need((peer.qp = vt_end_qp(&peer, type, NULL, 0)) && (target.qp = vt_end_qp(&target, type, NULL, 0)));
    vt_link(peer.qp, &peer.gid, target.qp, &target.gid);
    struct secret s = {target.qp->qp_num, target.mr->rkey, (uintptr_t)target.buf, target.gid, 1};
    need(write(to, &s, sizeof(s)) == (ssize_t)sizeof(s));
    need(read(from, &status, sizeof(status)) == (ssize_t)sizeof(status));
    if (type == IBV_QPT_RC)
        ok(status == IBV_WC_RETRY_EXC_ERR, "the attacker's WRITE gets no answer");
    ok(holds(&target, 0), "the victim's memory is as before");
    ok(write_aim(&peer, &s, TRUE_DATA) == IBV_WC_SUCCESS, "the victim's own WRITE completes");
    ok(comes_to_hold(&target, TRUE_DATA), "and its data are there");
    exit(vt_failed);
}

static void try(const struct layout *l, enum ibv_qp_type type)
{
    int secret[2], result[2], status;
    printf("# %s, %s\n", l->name, type == IBV_QPT_RC ? "RC" : "UC");
    fflush(stdout);
    need(pipe(secret) == 0 && pipe(result) == 0);
    pid_t attacker = fork();
    if (attacker == 0)
        attack(type, secret[0], result[1]);
    pid_t victim = fork();
    if (victim == 0)
        be_the_victim(type, l->second ? 1 : 0, secret[1], result[0]);
    close(secret[1]);
    close(result[1]);
    need(waitpid(victim, &status, 0) == victim);
    vt_failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    close(secret[0]);
    need(waitpid(attacker, &status, 0) == attacker);
    vt_failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    close(result[0]);
}

int main(void)
{
    static const struct layout layouts[] = {
        {"within the device", "127.0.77.1", NULL, "engine"},
        {"through the socket of the device", "127.0.77.2", NULL, "wire"},
        {"from one device to another", "127.0.77.3", "127.0.77.4", "engine"},
    };
    VT_OWN("users of one daemon");
    if (geteuid() != 0 || !getenv("VT_BUILD") || !getgrnam(GROUP)) {
        printf("skip - two users: this is not root, or there is no group " GROUP "\n");
        return 77;
    }
    need(mkdtemp(dir) && chmod(dir, 0755) == 0);
    snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        start_daemon(&layouts[i]);
        try(&layouts[i], IBV_QPT_RC);
        try(&layouts[i], IBV_QPT_UC);
        stop_daemon();
    }
    rmdir(dir);
    return vt_failed;
}
