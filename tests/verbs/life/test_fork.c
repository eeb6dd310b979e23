// SPDX-License-Identifier: BSD-2-Clause
/* fork(): the child's copy of a context is dead, and its calls say so. The child does not disturb the parent, and can
 * open the device itself. */
#include <sys/wait.h>

#include "tests/verbs/vt.h"

static struct vt_pair p;

static bool works(struct vt_pair *q)
{
    struct ibv_wc wc;
    return vt_recv(q, 1, 1, 64, 8) == 0 && vt_send(q, 0, 2, 0, 8, IBV_SEND_SIGNALED) == 0 &&
           vt_poll(q->scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && vt_poll(q->rcq, 1, &wc) == 1 &&
           wc.status == IBV_WC_SUCCESS;
}

/* Runs in the child: makes every kind of call on the inherited objects. */
static int dead_copy(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_port_attr port;
    struct ibv_async_event ev;
    struct ibv_wc wc;
    vt_failed = 0;
    ok(vt_send(&p, 0, 2, 0, 8, 0) == EIO && vt_recv(&p, 0, 2, 0, 8) == EIO, "child: posting fails with EIO");
    ok(ibv_poll_cq(p.scq, 1, &wc) < 0 && ibv_req_notify_cq(p.scq, 0) == EIO, "child: polling and arming fail");
    ok(ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init) == EIO && ibv_query_port(p.ctx, 1, &port) == EIO,
       "child: queries fail");
    ok(!ibv_alloc_pd(p.ctx) && errno == EIO && !ibv_reg_mr(p.pd, p.buf, 8, 0) && errno == EIO,
       "child: making objects fails");
    ok(ibv_get_async_event(p.ctx, &ev) == -1 && errno == EIO, "child: no asynchronous events");
    ok(vt_pair_end(&p) && ibv_close_device(p.ctx) == 0, "child: closing and destroying work");
    return vt_failed;
}

static int own_device(void)
{
    struct vt_pair q = {0};
    vt_failed = 0;
    vt_pair_make(&q, vt_open(), NULL);
    vt_connect(&q);
    ok(works(&q), "child: a device that it opened itself");
    ok(vt_send(&p, 0, 2, 0, 8, 0) == EIO, "child: the inherited one is still dead");
    ok(vt_pair_end(&q) && ibv_close_device(q.ctx) == 0, "child: closes its own");
    return vt_failed;
}

static bool in_child(int (*f)(void))
{
    int status, err[2];
    char said[4096] = "";
    need(pipe(err) == 0);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        dup2(err[1], 2);
        int rc = f();
        fflush(stdout);
        _exit(rc);
    }
    close(err[1]);
    size_t at = 0;
    for (ssize_t n; at < sizeof(said) - 1 && (n = read(err[0], said + at, sizeof(said) - 1 - at)) > 0;)
        at += (size_t)n;
    close(err[0]);
    char *first = strstr(said, "fork()");
    ok(first && !strstr(first + 1, "fork()"), "child: told once on stderr");
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    VT_OWN("the copy of a context in a child");
    struct ibv_context *ctx = vt_open();
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    ok(works(&p), "parent: works before");
    ok(in_child(dead_copy), "the first child");
    ok(works(&p), "parent: works after the child closed its copy");
    ok(in_child(own_device), "the second child");
    ok(works(&p), "parent: works after the second child");
    /* The parent's buffers are copy-on-write now: what the daemon writes must reach the parent. */
    memset(p.buf, 'p', 4096);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sleep(2);
        _exit(p.buf[2048] == 'p' ? 0 : 1);
    }
    strcpy(p.buf, "a message that is longer than what fits in a completion entry: it goes through the daemon's copy");
    uint32_t len = (uint32_t)strlen(p.buf) + 1;
    struct ibv_wc wc;
    need(vt_recv(&p, 1, 1, 2048, 256) == 0 && vt_send(&p, 0, 2, 0, len, IBV_SEND_SIGNALED) == 0);
    ok(vt_poll(p.rcq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && !strcmp(p.buf, p.buf + 2048) &&
           vt_poll(p.scq, 1, &wc) == 1,
       "copy-on-write memory: the parent gets the data");
    int status;
    ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "and the child keeps its own");
    ok(vt_pair_end(&p) && ibv_close_device(ctx) == 0, "parent: closes");
    return vt_failed;
}
