// SPDX-License-Identifier: BSD-2-Clause
/* The keys of windows whose bind is refused, flushed or never posted. The program sees the keys that the device
 * knows, and they work. */
#include "tests/verbs/layout/layouts.h"

static struct vt_end a, b; /* b binds, a looks */
static struct ibv_qp *other; /* of b: what the windows of type 2 belong to, so that they outlive b.qp */
static struct ibv_qp *user; /* of a, connected with it */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) &&
         (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, IBV_QP_EX_WITH_BIND_MW)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

/* Every second byte from `at` on; if `bad`, beyond the end of the region. */
static struct pumice_mw_bind_layout *bytes_from(uint32_t at, bool bad)
{
    static struct pumice_mw_dimension dim;
    static struct pumice_mw_bind_layout_entry e;
    static struct pumice_mw_bind_layout l;
    dim = (struct pumice_mw_dimension){2, bad ? VT_BUF : 32};
    e = (struct pumice_mw_bind_layout_entry){
        .mr = b.mr, .addr = (uintptr_t)b.buf + at, .length = 1, .interleaved = {1, 1, &dim}};
    l = (struct pumice_mw_bind_layout){0, PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, 1, &e};
    return &l;
}

/* Does the peer of qp read every second byte from `at` on by this key? */
static bool shows(struct ibv_qp *qp, uint32_t rkey, uint32_t at)
{
    struct ibv_sge s = vt_at(&a, 0, 32);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = rkey;
    memset(a.buf, 0, 32);
    need(ibv_post_send(qp, &wr, &bad) == 0);
    bool same = vt_next(a.scq).status == IBV_WC_SUCCESS;
    for (uint32_t i = 0; i < 32; i++)
        same &= a.buf[i] == b.buf[at + 2 * i];
    return same;
}

static int bind1(struct ibv_mw *mw, struct pumice_mw_bind_layout *l, unsigned flags)
{
    struct pumice_mw_bind bind = {.wr_id = 1, .send_flags = flags};
    bind.bind_info.layout = l;
    bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | PUMICE_ACCESS_BIND_MW_NONCONTIG;
    return pumice_bind_mw(b.qp, mw, &bind);
}

static bool keys_are(const struct ibv_mw *mw, uint32_t key)
{
    return mw->rkey == key && vl_lkey(mw) == key;
}

static void type1(void)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_1, 1);
    need(bind1(mw, bytes_from(100, false), IBV_SEND_SIGNALED) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    uint32_t key = mw->rkey;
    need(bind1(mw, bytes_from(0, true), 0) == 0);
    ok(mw->rkey != key && keys_are(mw, mw->rkey), "a bind gives a window of type 1 its new keys when it is posted");
    need(bind1(mw, bytes_from(200, false), 0) == 0 && bind1(mw, bytes_from(300, false), IBV_SEND_SIGNALED) == 0);
    ok(vt_next(b.scq).status == IBV_WC_MW_BIND_ERR && keys_are(mw, key), "refused, it has the old ones again");
    ok(vt_next(b.scq).status == IBV_WC_WR_FLUSH_ERR && vt_next(b.scq).status == IBV_WC_WR_FLUSH_ERR &&
           keys_are(mw, key),
       "and keeps them when the binds behind it are flushed");
    need(bind1(mw, bytes_from(400, false), 0) == 0);
    ok(vt_next(b.scq).status == IBV_WC_WR_FLUSH_ERR && keys_are(mw, key), "likewise in the error state");
    connect_again();
    ok(shows(a.qp, mw->rkey, 100), "its rkey shows what it showed");
    need(bind1(mw, bytes_from(500, false), IBV_SEND_SIGNALED) == 0);
    ok(vt_next(b.scq).status == IBV_WC_SUCCESS && mw->rkey != key && shows(a.qp, mw->rkey, 500),
       "and a sound bind changes it");
    need(ibv_dealloc_mw(mw) == 0);
}

/* ibv_bind_mw and an ordinary window. */
static void ordinary(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = b.mr,
                                             .addr = (uintptr_t)b.buf + VT_BUF - 8,
                                             .length = 16,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
    need(mw);
    uint32_t key = mw->rkey;
    need(ibv_bind_mw(b.qp, mw, &bind) == 0 && mw->rkey != key);
    ok(vt_next(b.scq).status == IBV_WC_MW_BIND_ERR && mw->rkey == key, "ibv_bind_mw: the old rkey again");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0);
}

/* Programs note the new key of a window of type 2 themselves, after posting, or don't. */
static void type2(bool notes)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_2, 1);
    need(vl_post_bind(other, mw, bytes_from(600, false), IBV_ACCESS_REMOTE_READ) == 0 &&
         vt_next(b.scq).status == IBV_WC_SUCCESS);
    uint32_t key = mw->rkey;
    need(vl_post_bind(b.qp, mw, bytes_from(700, false), IBV_ACCESS_REMOTE_READ) == 0);
    need(mw->rkey != key && vl_lkey(mw) == mw->rkey);
    if (!notes)
        mw->rkey = key;
    ok(vt_next(b.scq).status == IBV_WC_MW_BIND_ERR && keys_are(mw, key), "type 2, bound already: the old keys again");
    connect_again();
    ok(shows(user, mw->rkey, 600), "which are valid");
    need(ibv_dealloc_mw(mw) == 0);
}

/* Built by ibv_wr_*, and not posted. */
static void never_posted(void)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_2, 1);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(b.qp);
    struct ibv_mw_bind_info info = pumice_mw_bind_info(bytes_from(0, false), IBV_ACCESS_REMOTE_READ);
    uint32_t key = mw->rkey; /* its low byte may be 0xff, so the next keys are those of ibv_inc_rkey */
    uint32_t first = ibv_inc_rkey(key), second = ibv_inc_rkey(first), third = ibv_inc_rkey(second);
    ibv_wr_start(q);
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(q, mw, first, &info);
    ibv_wr_bind_mw(q, mw, second, &info);
    ibv_wr_abort(q);
    ok(keys_are(mw, key), "binds that are given up leave the keys");
    ibv_wr_start(q);
    ibv_wr_bind_mw(q, mw, first, &info);
    info.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
    ibv_wr_bind_mw(q, mw, second, &info);
    ok(ibv_wr_complete(q) == EINVAL && keys_are(mw, key), "and those of a batch that can't be posted");
    info.mw_access_flags &= ~(unsigned)IBV_ACCESS_ON_DEMAND;
    ibv_wr_start(q);
    ibv_wr_bind_mw(q, mw, third, &info);
    ok(ibv_wr_complete(q) == 0 && vl_lkey(mw) == third && vt_next(b.scq).status == IBV_WC_SUCCESS &&
           shows(a.qp, third, 0),
       "one that is posted counts");
    need(ibv_dealloc_mw(mw) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    for (int i = 0; i < VT_BUF; i++)
        b.buf[i] = (char)(i * 7 + i / 256 + 1);
    need((user = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (other = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(user, &a.gid, other, &b.gid);
    connect_again();
    type1();
    ordinary();
    type2(true);
    type2(false);
    never_posted();
    need(ibv_destroy_qp(user) == 0 && ibv_destroy_qp(other) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
