// SPDX-License-Identifier: BSD-2-Clause
#include "tests/soak/hostile/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/verbs/hostile/control_send.h"

/* --- messages ---------------------------------------------------------------------------------- */

int raw_connect(void)
{
    const char *path = getenv("PUMICE_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0 || !path || strlen(path) >= sizeof(sa.sun_path))
        return -1;
    strcpy(sa.sun_path, path);
    if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return sock;
    close(sock);
    return -1;
}

bool raw_send(int sock, uint32_t op, const void *rq, uint32_t len, const int *fd, unsigned n, bool wait)
{
    return control_send(sock, op, rq, len, fd, n, wait ? 0 : MSG_DONTWAIT);
}

void raw_close_fds(struct raw_reply *reply)
{
    while (reply->fds)
        close(reply->fd[--reply->fds]);
}

static void receive(int sock, struct raw_reply *r)
{
    struct pm_reply head;
    struct iovec iov[2] = {{&head, sizeof(head)}, {r->payload, sizeof(r->payload)}};
    _Alignas(struct cmsghdr) char ctl[CMSG_SPACE(PM_FDS_MAX * sizeof(int))];
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = ctl, .msg_controllen = sizeof(ctl)};
    r->fds = 0;
    r->len = 0;
    ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    r->status = n < (ssize_t)sizeof(head) ? -EPIPE : head.status;
    if (n >= (ssize_t)sizeof(head))
        r->len = head.len;
    for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_type != SCM_RIGHTS)
            continue;
        r->fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(r->fd, CMSG_DATA(c), r->fds * sizeof(int));
    }
}

int raw_call(int sock, uint32_t op, const void *rq, uint32_t len, struct raw_reply *reply)
{
    struct raw_reply own, *r = reply ? reply : &own;
    r->fds = 0;
    r->status = -EPIPE;
    if (raw_send(sock, op, rq, len, NULL, 0, true))
        receive(sock, r);
    if (!reply)
        raw_close_fds(r);
    return r->status;
}

/* Maps a part of the first descriptor of a reply, and closes all. */
static void *map(struct raw_reply *r, uint64_t offset, size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd[0], (off_t)offset);
    raw_close_fds(r);
    return p == MAP_FAILED ? NULL : p;
}

/* --- sessions ---------------------------------------------------------------------------------- */

static bool open_device(struct raw_session *s, uint32_t device)
{
    static uint64_t probe = 0x0123456789abcdef;
    struct pm_open_req rq = {PM_ABI_VERSION, device, (uintptr_t)&probe, probe};
    struct raw_reply r = {.status = -EPIPE};
    int fd[2] = {open("/proc/self/mem", O_RDWR | O_CLOEXEC), open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (raw_send(s->sock, PM_OP_OPEN, &rq, sizeof(rq), fd, fd[0] < 0 ? 0 : fd[1] < 0 ? 1 : 2, true))
        receive(s->sock, &r);
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
    }
    if (r.status || r.fds != 3)
        return false;
    struct pm_open_rep *rep = (struct pm_open_rep *)(void *)r.payload;
    memcpy(s->gid, rep->desc.gid, sizeof(s->gid));
    close(r.fd[2]);
    s->doorbell = r.fd[1];
    r.fds = 1;
    s->page = map(&r, 0, sizeof(*s->page));
    return s->page != NULL;
}

static bool make_parts(struct raw_session *s)
{
    struct pm_create_cq_req rq = {.cqe = RAW_CQE};
    struct raw_reply r;
    if (raw_call(s->sock, PM_OP_ALLOC_PD, NULL, 0, &r))
        return false;
    memcpy(&s->pd, r.payload, sizeof(s->pd));
    s->memory = mmap(NULL, RAW_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct pm_reg_mr_req mr = {
        .pd = s->pd, .access = 15, .va = (uintptr_t)s->memory, .length = RAW_MEMORY, .iova = (uintptr_t)s->memory};
    if (s->memory == MAP_FAILED || raw_call(s->sock, PM_OP_REG_MR, &mr, sizeof(mr), &r))
        return false;
    memcpy(&s->key, r.payload, sizeof(s->key));
    if (raw_call(s->sock, PM_OP_CREATE_CQ, &rq, sizeof(rq), &r))
        return false;
    struct pm_create_cq_rep *rep = (struct pm_create_cq_rep *)(void *)r.payload;
    s->cq = rep->handle;
    s->cq_size = rep->size;
    s->cq_page = map(&r, 0, s->cq_size);
    return s->cq_page != NULL;
}

bool raw_open(struct raw_session *s, uint32_t device)
{
    *s = (struct raw_session){.sock = raw_connect(), .doorbell = -1};
    if (s->sock >= 0 && open_device(s, device) && make_parts(s))
        return true;
    raw_close(s);
    return false;
}

void raw_close(struct raw_session *s)
{
    if (s->cq_page)
        munmap(s->cq_page, s->cq_size);
    if (s->memory && s->memory != MAP_FAILED)
        munmap(s->memory, RAW_MEMORY);
    if (s->page)
        munmap(s->page, sizeof(*s->page));
    if (s->doorbell >= 0)
        close(s->doorbell);
    if (s->sock >= 0)
        close(s->sock);
    *s = (struct raw_session){.sock = -1, .doorbell = -1};
}

/* --- queue pairs ------------------------------------------------------------------------------- */

bool raw_qp(struct raw_session *s, uint32_t wr, bool mapped, struct raw_qp *qp)
{
    struct pm_create_qp_req rq = {.pd = s->pd,
                                  .send_cq = s->cq,
                                  .recv_cq = s->cq,
                                  .type = IBV_QPT_RC,
                                  .max_send_wr = wr,
                                  .max_recv_wr = wr,
                                  .max_send_sge = 2,
                                  .max_recv_sge = 2,
                                  .max_inline = 64};
    struct raw_reply r;
    *qp = (struct raw_qp){.base = NULL};
    if (raw_call(s->sock, PM_OP_CREATE_QP, &rq, sizeof(rq), &r))
        return false;
    memcpy(&qp->rep, r.payload, sizeof(qp->rep));
    if (mapped)
        qp->base = map(&r, qp->rep.offset, qp->rep.size);
    raw_close_fds(&r);
    return !mapped || qp->base;
}

bool raw_connect_qp(struct raw_session *s, uint32_t qpn, uint32_t dest)
{
    struct pm_modify_qp_req m = {.qpn = qpn, .mask = IBV_QP_STATE, .attr.qp_state = IBV_QPS_RESET};
    if (raw_call(s->sock, PM_OP_MODIFY_QP, &m, sizeof(m), NULL))
        return false;
    m.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    m.attr.qp_state = IBV_QPS_INIT;
    m.attr.port_num = 1;
    m.attr.qp_access_flags = 15;
    if (raw_call(s->sock, PM_OP_MODIFY_QP, &m, sizeof(m), NULL))
        return false;
    m.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
    m.attr.qp_state = IBV_QPS_RTR;
    m.attr.path_mtu = IBV_MTU_4096;
    m.attr.dest_qp_num = dest;
    m.attr.max_dest_rd_atomic = 4;
    m.attr.min_rnr_timer = 1;
    memcpy(m.attr.av.dgid, s->gid, 16);
    if (raw_call(s->sock, PM_OP_MODIFY_QP, &m, sizeof(m), NULL))
        return false;
    m.mask =
        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    m.attr.qp_state = IBV_QPS_RTS;
    m.attr.timeout = 8;
    m.attr.max_rd_atomic = 4;
    return raw_call(s->sock, PM_OP_MODIFY_QP, &m, sizeof(m), NULL) == 0;
}

void raw_ring(struct raw_session *s, uint32_t d)
{
    atomic_fetch_or(&s->page->bits[d / 64], UINT64_C(1) << (d % 64));
    atomic_fetch_or(&s->page->summary[d / 64 / 64], UINT64_C(1) << (d / 64 % 64));
    if (atomic_load(&s->page->sleeping) && atomic_exchange(&s->page->sleeping, 0)) {
        uint64_t one = 1;
        (void)!write(s->doorbell, &one, sizeof(one));
    }
}
