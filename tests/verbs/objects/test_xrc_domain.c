// SPDX-License-Identifier: BSD-2-Clause
/* XRC domains: which file means which domain, open flags, several processes, and what keeps a domain alive. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/verbs/ends.h"

static struct ibv_context *one, *two; /* two sessions of one host */
static char dir[] = "/tmp/vt-xrcd-XXXXXX", path[64], link_path[64];

static struct ibv_xrcd *open_fd(struct ibv_context *ctx, int fd, int oflags)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};
    errno = 0;
    return ibv_open_xrcd(ctx, &a);
}

static struct ibv_xrcd *open_path(struct ibv_context *ctx, const char *name, int oflags)
{
    int fd = open(name, O_RDONLY);
    need(fd >= 0);
    struct ibv_xrcd *x = open_fd(ctx, fd, oflags);
    int error = errno;
    close(fd); /* the domain holds the inode */
    errno = error;
    return x;
}

static struct ibv_qp *target(struct ibv_context *ctx, struct ibv_xrcd *x)
{
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x};
    return ibv_create_qp_ex(ctx, &a);
}

static struct ibv_qp *open_qp(struct ibv_context *ctx, struct ibv_xrcd *x, uint32_t qpn)
{
    struct ibv_qp_open_attr a = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                                              IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = qpn,
                                 .xrcd = x,
                                 .qp_context = &one,
                                 .qp_type = IBV_QPT_XRC_RECV};
    errno = 0;
    return ibv_open_qp(ctx, &a);
}

/* Do two handles mean one domain? A target of the first can be opened through the second, or not. */
static bool same(struct ibv_context *c1, struct ibv_xrcd *x1, struct ibv_context *c2, struct ibv_xrcd *x2)
{
    struct ibv_qp *qp = target(c1, x1);
    need(qp);
    struct ibv_qp *other = open_qp(c2, x2, qp->qp_num);
    bool is = other != NULL;
    if (other)
        need(other->qp_num == qp->qp_num && other->qp_context == &one && ibv_destroy_qp(other) == 0);
    else
        need(vt_none(other, EINVAL));
    need(ibv_destroy_qp(qp) == 0);
    return is;
}

static void flags(void)
{
    ok(vt_none(open_path(one, path, 0), EAGAIN), "no domain, no O_CREAT: EAGAIN");
    struct ibv_xrcd *x = open_path(one, path, O_CREAT | O_EXCL);
    ok(x && x->context == one, "O_CREAT | O_EXCL makes it");
    ok(vt_none(open_path(two, path, O_CREAT | O_EXCL), EINVAL), "and fails when it is there: EINVAL");
    ok(vt_none(open_path(two, path, O_EXCL), EINVAL), "O_EXCL alone likewise");
    struct ibv_xrcd *y = open_path(two, path, 0), *z = open_path(two, path, O_CREAT);
    ok(y && z && same(one, x, two, y) && same(two, z, one, x), "others open the same domain, with and without O_CREAT");
    ok(ibv_close_xrcd(x) == 0 && same(two, y, two, z), "the last reference counts");
    ok(ibv_close_xrcd(y) == 0 && ibv_close_xrcd(z) == 0 && vt_none(open_path(one, path, 0), EAGAIN), "then it is gone");
    ok(vt_none(open_fd(one, 999, O_CREAT), EBADF), "a bad descriptor: EBADF");
    ok(vt_none(open_fd(one, -1, 0), EINVAL) && vt_none(open_fd(one, -1, O_CREAT | O_EXCL), EINVAL),
       "no file: O_CREAT alone, else EINVAL");
    x = open_fd(one, -1, O_CREAT), y = open_fd(one, -1, O_CREAT);
    ok(x && y && !same(one, x, one, y), "and each time a domain of its own");
    need(ibv_close_xrcd(x) == 0 && ibv_close_xrcd(y) == 0);
    struct ibv_xrcd_init_attr a = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
    ok(vt_none(ibv_open_xrcd(one, &a), EINVAL), "a mask without flags: EINVAL");
}

static void inodes(void)
{
    struct ibv_xrcd *x = open_path(one, path, O_CREAT), *y;
    need(x && link(path, link_path) == 0);
    y = open_path(two, link_path, 0);
    ok(y && same(one, x, two, y), "a hard link is the same file");
    need(ibv_close_xrcd(y) == 0 && unlink(link_path) == 0 && unlink(path) == 0);
    close(open(path, O_CREAT | O_RDWR, 0600));
    y = open_path(two, path, O_CREAT | O_EXCL);
    ok(y && !same(one, x, two, y), "a new file of that name is another, while the old one's domain lives");
    need(ibv_close_xrcd(y) == 0 && ibv_close_xrcd(x) == 0);
}

static void busy(void)
{
    struct vt_end e;
    vt_end_open(&e, one);
    struct ibv_xrcd *x = open_path(one, path, O_CREAT);
    struct ibv_qp *qp = target(one, x);
    ok(qp && vt_fails(ibv_close_xrcd(x), EBUSY), "a domain with a target is busy");
    need(ibv_destroy_qp(qp) == 0);
    struct ibv_srq_init_attr_ex a = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                     .srq_type = IBV_SRQT_XRC,
                                     .attr = {.max_wr = 4, .max_sge = 1},
                                     .pd = e.pd,
                                     .xrcd = x,
                                     .cq = e.rcq};
    struct ibv_srq *s1 = ibv_create_srq_ex(one, &a), *s2 = ibv_create_srq_ex(one, &a);
    uint32_t n1 = 0, n2 = 0;
    ok(s1 && s2 && ibv_get_srq_num(s1, &n1) == 0 && ibv_get_srq_num(s2, &n2) == 0 && n1 && n2 && n1 != n2 &&
           n1 < 1u << 24,
       "its SRQs have numbers of their own");
    ok(vt_fails(ibv_close_xrcd(x), EBUSY), "and it is busy with them");
    ok(vt_fails(ibv_destroy_cq(e.rcq), EBUSY), "so is their CQ");
    need(ibv_destroy_srq(s1) == 0 && ibv_destroy_srq(s2) == 0);
    for (uint32_t left = IBV_SRQ_INIT_ATTR_PD; left <= IBV_SRQ_INIT_ATTR_CQ; left <<= 1) {
        struct ibv_srq_init_attr_ex b = a;
        b.comp_mask &= ~left;
        if (!ok(vt_none(ibv_create_srq_ex(one, &b), EINVAL), "an XRC SRQ without PD, domain or CQ: EINVAL"))
            break;
    }
    ok(vt_none(open_qp(one, x, 0xabcdef), EINVAL), "opening a QP that is not there: EINVAL, as on Linux");
    ok(ibv_close_xrcd(x) == 0 && vt_end_close(&e), "close");
}

/* A process that makes a target and is killed: the target lives on in the domain until that ends. */
static void killed(void)
{
    int tube[2];
    uint32_t qpn = 0;
    struct ibv_xrcd *x = open_path(one, path, O_CREAT);
    need(x && pipe(tube) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct ibv_context *c = vt_open();
        struct ibv_xrcd *cx = open_path(c, path, 0);
        struct ibv_qp *qp = cx ? target(c, cx) : NULL;
        if (qp && write(tube[1], &qp->qp_num, sizeof(qpn)) == sizeof(qpn))
            pause();
        _exit(1);
    }
    close(tube[1]);
    need(read(tube[0], &qpn, sizeof(qpn)) == sizeof(qpn));
    close(tube[0]);
    struct ibv_qp *before = open_qp(one, x, qpn);
    ok(before && before->state == IBV_QPS_RESET, "a target of another process can be opened");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    usleep(50000);
    ok(before && vt_to_init(before) == 0 && before->state == IBV_QPS_INIT, "its maker is killed; it can be modified");
    struct ibv_qp *after = open_qp(one, x, qpn);
    ok(after && after->state == IBV_QPS_INIT, "and opened again: the state is one for all");
    need(ibv_destroy_qp(before) == 0 && ibv_destroy_qp(after) == 0);
    struct ibv_xrcd *y = open_path(two, path, 0);
    need(y && ibv_close_xrcd(x) == 0 && ibv_close_xrcd(y) == 0);
    ok(vt_none(open_path(one, path, 0), EAGAIN), "with the last reference the domain ends");
}

static void types(void)
{
    struct vt_end e;
    vt_end_open(&e, one);
    struct ibv_xrcd *x = open_path(one, path, O_CREAT);
    struct ibv_qp *tgt = target(one, x), *ini = vt_end_qp(&e, IBV_QPT_XRC_SEND, NULL, 0);
    need(tgt && ini);
    struct ibv_recv_wr rwr = {.wr_id = 1}, *rbad = NULL;
    struct ibv_send_wr swr = {.opcode = IBV_WR_SEND}, *sbad = NULL;
    ok(!tgt->pd && !tgt->send_cq && !tgt->recv_cq && !tgt->srq, "a target has no PD, CQs, SRQ");
    vt_link(ini, &e.gid, tgt, &e.gid);
    ok(vt_fails(ibv_post_send(tgt, &swr, &sbad), EINVAL) && sbad == &swr &&
           vt_fails(ibv_post_recv(tgt, &rwr, &rbad), EINVAL),
       "posting to a target: EINVAL");
    ok(vt_fails(ibv_post_recv(ini, &rwr, &rbad), EINVAL) && rbad == &rwr, "receive requests to an initiator: EINVAL");
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(ibv_query_qp(ini, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS &&
           init.qp_type == IBV_QPT_XRC_SEND && init.cap.max_recv_wr == 0 && init.cap.max_send_wr >= 16,
       "query of an initiator");
    ok(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init) == 0 && attr.dest_qp_num == ini->qp_num &&
           init.qp_type == IBV_QPT_XRC_RECV && init.cap.max_send_wr == 0,
       "query of a target");
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = e.pd};
    ok(vt_none(ibv_create_qp_ex(one, &a), EINVAL), "a target without domain: EINVAL");
    struct ibv_qp_open_attr o = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD, .qp_num = 1, .xrcd = x};
    ok(vt_none(ibv_open_qp(one, &o), EINVAL), "ibv_open_qp without type and context: EINVAL");
    ok(!open_qp(one, x, ini->qp_num), "an initiator can't be opened");
    need(ibv_destroy_qp(tgt) == 0 && ibv_destroy_qp(ini) == 0 && ibv_close_xrcd(x) == 0 && vt_end_close(&e));
}

/* A target has no PD, but shows the one that it was created with: librdmacm makes the SRQ in it. */
static void pd_of_target(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(one);
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV,
                                    .comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD,
                                    .xrcd = open_fd(one, -1, O_CREAT),
                                    .pd = pd};
    need(pd && a.xrcd);
    struct ibv_qp *qp = ibv_create_qp_ex(one, &a);
    ok(qp && qp->pd == pd, "a target shows its PD");
    ok(ibv_dealloc_pd(pd) == 0, "and does not hold it");
    need(ibv_destroy_qp(qp) == 0 && ibv_close_xrcd(a.xrcd) == 0);
}

int main(void)
{
    struct ibv_device_attr d;
    one = vt_open(), two = vt_open();
    vt_needs(one, VT_XRC);
    need(ibv_query_device(one, &d) == 0 && mkdtemp(dir));
    ok(d.device_cap_flags & IBV_DEVICE_XRC, "the device has XRC");
    snprintf(path, sizeof(path), "%s/a", dir);
    snprintf(link_path, sizeof(link_path), "%s/b", dir);
    close(open(path, O_CREAT | O_RDWR, 0600));
    flags();
    inodes();
    busy();
    killed();
    types();
    if (vt_own("the PD of a target"))
        pd_of_target();
    unlink(path);
    rmdir(dir);
    ok(ibv_close_device(one) == 0 && ibv_close_device(two) == 0, "close");
    return vt_failed;
}
