// SPDX-License-Identifier: BSD-2-Clause
/* TM-SRQs as objects: their parameters, list operations, handles, limits, and their destruction. */
#include "tests/verbs/tag_matching/tags.h"

static struct ibv_context *ctx;
static int max_sge; /* of the device */
static uint32_t max_num_tags;

static void capabilities(void)
{
    struct ibv_device_attr_ex a;
    ok(ibv_query_device_ex(ctx, NULL, &a) == 0 && a.tm_caps.flags == IBV_TM_CAP_RC, "the device matches tags");
    ok(a.tm_caps.max_ops >= 8192 && a.tm_caps.max_rndv_hdr_size >= 64, "8,192 operations, 64 bytes of headers");
    if (tm_strict(ctx))
        ok(a.tm_caps.max_num_tags == 127 && a.tm_caps.max_rndv_hdr_size == 64, "the strict device: 127 tags, one SGE");
    else
        ok(a.tm_caps.max_num_tags >= 4095 && a.tm_caps.max_sge >= 16, "4,095 tags, 16 SGEs");
    max_sge = (int)a.tm_caps.max_sge;
    max_num_tags = a.tm_caps.max_num_tags;
}

/* --- creation */

static bool refused(struct ibv_srq_init_attr_ex a)
{
    errno = 0;
    return !ibv_create_srq_ex(ctx, &a) && errno == EINVAL;
}

static void creation(struct tm_side *e)
{
    static const uint32_t bits[] = {IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_CQ,
                                    IBV_SRQ_INIT_ATTR_TM};
    struct ibv_device_attr_ex caps;
    struct ibv_srq_init_attr_ex good = {.attr = {.max_wr = 10, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = e->pd,
                                        .cq = ibv_cq_ex_to_cq(e->cq),
                                        .tm_cap = {max_num_tags, 8192}};
    struct ibv_srq_init_attr_ex a = good;
    need(ibv_query_device_ex(ctx, NULL, &caps) == 0);
    for (int i = 0; i < 4; i++) {
        a.comp_mask = good.comp_mask & ~bits[i];
        ok(refused(a), "each bit of comp_mask must be there");
    }
    a = good;
    a.cq = e->other;
    ok(refused(a), "the CQ must be an extended one");
    a = good;
    a.cq = NULL;
    ok(refused(a), "there must be a CQ");
    a = good;
    a.tm_cap.max_num_tags = caps.tm_caps.max_num_tags + 1;
    ok(refused(a), "not more tags than there can be");
    a.tm_cap.max_num_tags = 0;
    ok(refused(a), "not without tags");
    a = good;
    a.tm_cap.max_ops = caps.tm_caps.max_ops + 1;
    ok(refused(a), "not more operations than there can be");
    a.tm_cap.max_ops = 0;
    ok(refused(a), "not without operations");
    a = good;
    struct ibv_srq *srq = ibv_create_srq_ex(ctx, &a);
    need(srq);
    ok(a.attr.max_wr >= 10 && a.attr.max_sge >= 1, "a good one is made, and says what it has");
    struct ibv_srq_attr more = {.max_wr = 20};
    ok(ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR) == EINVAL, "it can't be resized");
    ok(ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)) == EBUSY, "it holds its CQ");
    ok(ibv_destroy_srq(srq) == 0, "and can be destroyed");
}

static void queue_pairs(struct tm_side *e)
{
    struct ibv_qp_init_attr a = {.send_cq = e->other, .recv_cq = e->other, .srq = e->srq, .qp_type = IBV_QPT_UC};
    ok(!ibv_create_qp(e->pd, &a) && errno == EINVAL, "a UC QP can't have it");
    a.qp_type = IBV_QPT_UD;
    ok(!ibv_create_qp(e->pd, &a) && errno == EINVAL, "nor a UD QP");
    a.qp_type = IBV_QPT_RC;
    struct ibv_qp *qp = ibv_create_qp(e->pd, &a);
    ok(qp, "an RC QP can, with no requests of its own");
    ok(ibv_destroy_srq(e->srq) == EBUSY, "the SRQ can't be destroyed then");
    ok(ibv_destroy_qp(qp) == 0, "before the QP is");
    struct ibv_cq_init_attr_ex plain = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &plain);
    ok(cq && !cq->read_tm_info && e->cq->read_tm_info, "read_tm_info is there if it was asked for");
    ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0, "and that CQ goes");
}

/* --- operations */

static void lists(struct tm_side *e)
{
    struct ibv_srq_init_attr basic = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(e->pd, &basic);
    struct ibv_ops_wr wr[3] = {{.wr_id = 1, .next = &wr[1], .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED},
                               {.wr_id = 2, .next = &wr[2], .opcode = 99, .flags = IBV_OPS_SIGNALED},
                               {.wr_id = 3, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED}};
    struct ibv_ops_wr *bad = NULL;
    need(srq);
    ok(ibv_post_srq_ops(srq, wr, &bad) == EINVAL && bad == wr, "a basic SRQ has no list");
    ok(ibv_destroy_srq(srq) == 0, "it goes");
    ok(ibv_post_srq_ops(e->srq, wr, &bad) == EINVAL && bad == &wr[1], "an unknown operation, the second of three");
    ok(tm_got(e, IBV_WC_TM_SYNC, 1, 0), "the first was carried out");
    wr[1].opcode = IBV_WR_TAG_ADD;
    wr[1].tm.add.num_sge = max_sge + 1;
    ok(ibv_post_srq_ops(e->srq, &wr[1], &bad) == EINVAL && bad == &wr[1], "too many SGEs");
    wr[1].tm.add.num_sge = 0;
    wr[1].flags = 64;
    ok(ibv_post_srq_ops(e->srq, &wr[1], &bad) == EINVAL && bad == &wr[1], "an unknown flag");
    ok(vt_quiet(ibv_cq_ex_to_cq(e->cq)), "of those that were refused nothing came");
}

static void max_ops(struct tm_side *e)
{
    struct ibv_srq *kept = e->srq;
    struct ibv_ops_wr wr[5] = {{0}}, *bad = NULL;
    need((e->srq = tm_srq(e, 4, 4)));
    for (int i = 0; i < 5; i++) {
        wr[i].wr_id = (uint64_t)i;
        wr[i].opcode = IBV_WR_TAG_SYNC;
        wr[i].flags = IBV_OPS_SIGNALED;
        wr[i].next = i < 4 ? &wr[i + 1] : NULL;
    }
    for (int round = 0; round < 3; round++) {
        ok(ibv_post_srq_ops(e->srq, wr, &bad) == ENOMEM && bad == &wr[4], "one operation too many");
        usleep(20000);
        ok(tm_op(e, 9, IBV_WR_TAG_SYNC, 0, 0, 0) == ENOMEM, "they count until they are polled");
        for (uint64_t i = 0; i < 4; i++)
            ok(tm_got(e, IBV_WC_TM_SYNC, i, 0), "in the order of posting");
    }
    for (int i = 0; i < 100; i++) { /* unsignaled ones make room as they are carried out */
        double end = vt_now() + 5;
        int rc;
        while ((rc = tm_op(e, 9, IBV_WR_TAG_SYNC, 0, 0, 0)) == ENOMEM && vt_now() < end)
            ;
        need(rc == 0);
    }
    ok(true, "a hundred unsignaled operations pass");
    ok(ibv_destroy_srq(e->srq) == 0, "the small SRQ goes, its operations with it");
    e->srq = kept;
}

static bool can_add(struct tm_side *e, uint32_t *handle)
{
    struct tm_add a = {.id = 8, .tag = 8, .mask = EXACT};
    double end = vt_now() + 5;
    int rc;
    while ((rc = tm_try_add(e, &a, handle)) == ENOMEM && vt_now() < end)
        ;
    return rc == 0;
}

static void handles(struct tm_side *e)
{
    struct ibv_srq *kept = e->srq;
    struct tm_add a = {.id = 1, .tag = 1, .mask = EXACT, .flags = IBV_OPS_SIGNALED};
    uint32_t h[4], again;
    struct tm_wc wc;
    need((e->srq = tm_srq(e, 3, 32)));
    for (int i = 0; i < 3; i++)
        ok(tm_try_add(e, &a, &h[i]) == 0, "an entry");
    ok(tm_try_add(e, &a, &h[3]) == ENOMEM, "one more than there can be");
    ok(tm_op(e, 2, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, h[0], 0) == 0, "one is deleted");
    usleep(20000);
    ok(tm_try_add(e, &a, &h[3]) == ENOMEM, "its slot is taken until its completions are polled");
    for (int i = 0; i < 3; i++)
        ok(tm_got(e, IBV_WC_TM_ADD, 1, 0), "the ADD's");
    ok(tm_try_add(e, &a, &h[3]) == ENOMEM, "all of them");
    ok(tm_got(e, IBV_WC_TM_DEL, 2, 0), "and the DEL's");
    ok(tm_try_add(e, &a, &again) == 0 && again != h[0], "then there is an entry, by another handle");
    ok(tm_got(e, IBV_WC_TM_ADD, 1, 0), "which is added");
    ok(tm_op(e, 3, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, h[0], 0) == 0, "the old handle");
    wc = tm_next(e);
    ok(wc.opcode == IBV_WC_TM_DEL && wc.status == IBV_WC_TM_ERR && wc.wr_id == 3, "names nothing any more");
    ok(tm_op(e, 4, IBV_WR_TAG_DEL, 0, h[0], 0) == 0, "without IBV_OPS_SIGNALED it fails silently");
    ok(tm_op(e, 5, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, 0xffffffff, 0) == 0, "a handle that never was");
    wc = tm_next(e);
    ok(wc.opcode == IBV_WC_TM_DEL && wc.status == IBV_WC_TM_ERR && wc.wr_id == 5, "likewise");
    h[0] = again;
    for (int round = 0; round < 20; round++) { /* unsignaled: the slot comes back by itself */
        need(tm_op(e, 6, IBV_WR_TAG_DEL, 0, h[round % 3], 0) == 0);
        need(can_add(e, &h[round % 3]));
    }
    ok(true, "slots of unsignaled deletions come back");
    ok(vt_quiet(ibv_cq_ex_to_cq(e->cq)), "without a completion");
    ok(ibv_destroy_srq(e->srq) == 0, "entries vanish with their SRQ");
    ok(vt_quiet(ibv_cq_ex_to_cq(e->cq)), "without completions");
    e->srq = kept;
}

/* Completions that were not polled are freed with the SRQ. */
static void purge(struct tm_side *e)
{
    struct ibv_srq *kept = e->srq;
    need((e->srq = tm_srq(e, 3, 32)));
    for (int i = 0; i < 5; i++)
        need(tm_op(e, 6, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED, 0, 0) == 0);
    usleep(20000);
    ok(ibv_destroy_srq(e->srq) == 0, "an SRQ with completions that were not polled");
    ok(vt_quiet(ibv_cq_ex_to_cq(e->cq)), "they are gone");
    e->srq = kept;
    ok(tm_sync(e, 0), "those of another SRQ come");
}

int main(void)
{
    struct tm_side e;
    ctx = vt_open();
    vt_needs(ctx, VT_TAG_MATCHING);
    capabilities();
    tm_side_open(&e, ctx);
    creation(&e);
    need((e.srq = tm_srq(&e, 64, 64)));
    queue_pairs(&e);
    lists(&e);
    max_ops(&e);
    handles(&e);
    purge(&e);
    ok(tm_side_close(&e) == 0, "all is destroyed");
    ok(ibv_close_device(ctx) == 0, "the device is closed");
    return vt_failed;
}
