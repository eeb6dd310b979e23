// SPDX-License-Identifier: BSD-2-Clause
/* Entries, operations and their limits while messages arrive: when a slot is free again, what a list leaves behind
 * when it stops in the middle, a full queue of operations, and destroying an SRQ that is in use. */
#include "tests/verbs/tag_matching/tags.h"

#define TAGS 64 /* of tm_open's SRQs */
#define OPS 128
#define LONG 2000u /* bytes of two packets */

static uint32_t unexpected; /* messages so far */

/* Is there exactly one free slot? It is used up, for a tag that no message has. */
static bool one_free(struct tm_side *r, uint64_t tag)
{
    struct tm_add a = {.id = tag, .tag = tag, .mask = EXACT, .len = 64};
    return tm_try_add(r, &a, NULL) == 0 && tm_try_add(r, &a, NULL) == ENOMEM;
}

/* Consumed entries count until their last completion was polled. */
static void consumed(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_add one = {.id = 99, .tag = 99, .mask = EXACT, .len = 64};
    bool right = true;
    for (uint64_t i = 0; i < TAGS; i++)
        tm_add(r, i, 100 + i, (uint32_t)i * 4096, 4096);
    ok(tm_try_add(r, &one, NULL) == ENOMEM, "there are as many entries as was agreed");
    for (uint64_t i = 0; i < TAGS; i++)
        right &= tm_eager(s, (int)i % TM_QPS, 100 + i, i == 0 ? LONG : 30);
    ok(right, "a message for each of them is delivered");
    ok(tm_try_add(r, &one, NULL) == ENOMEM, "no slot is free before a completion was polled");
    struct tm_wc match = tm_next(r);
    ok(tm_is(&match, IBV_WC_TM_RECV, 1000, IBV_WC_TM_MATCH), "the first one's match");
    ok(tm_try_add(r, &one, NULL) == ENOMEM, "is not its last completion");
    ok(tm_got(r, IBV_WC_TM_RECV, 1000, IBV_WC_TM_DATA_VALID) && tm_data(r, 0, 100, LONG), "its data");
    ok(one_free(r, 99), "one slot, and no more");
    for (uint64_t i = 1; i < TAGS; i++)
        right &= tm_matched(r, i, 100 + i, 30) && tm_data(r, (uint32_t)i * 4096, 100 + i, 30);
    ok(right, "all the others");
    for (uint64_t i = 1; i < TAGS; i++)
        tm_add(r, i, 98, 0, 64);
    ok(tm_try_add(r, &one, NULL) == ENOMEM, "as many slots are free, and no more");
    right = tm_eager(s, 0, 99, 1) && tm_matched(r, 99, 99, 1);
    for (uint64_t i = 1; i < TAGS; i++)
        right &= tm_eager(s, 1, 98, 1) && tm_matched(r, i, 98, 1);
    ok(right, "and all of them match");
}

/* The requests before the refused one are executed, and none after it. */
static void stopped(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct ibv_sge sge = tm_at(r, 0, 64);
    struct ibv_ops_wr wr[3] = {
        {.next = &wr[1], .opcode = IBV_WR_TAG_ADD}, {.next = &wr[2]}, {.opcode = IBV_WR_TAG_ADD}};
    struct ibv_ops_wr *bad = NULL;
    for (uint64_t i = 0; i < 3; i += 2) {
        wr[i].tm.add.recv_wr_id = 1000 + i;
        wr[i].tm.add.sg_list = &sge;
        wr[i].tm.add.num_sge = 1;
        wr[i].tm.add.tag = 200 + i;
        wr[i].tm.add.mask = EXACT;
    }
    wr[1].opcode = 99;
    tm_buffer(r, 7, 4096, 256);
    ok(ibv_post_srq_ops(r->srq, wr, &bad) == EINVAL && bad == &wr[1], "the second of three is refused");
    ok(tm_eager(s, 0, 202, 5) && tm_got(r, IBV_WC_TM_RECV, 7, 0), "the third is not in the list");
    ok(tm_eager(s, 0, 200, 5) && tm_matched(r, 0, 200, 5), "the first is");
    unexpected++;
    ok(tm_sync(r, unexpected), "the unexpected message is reported");
}

/* No room for another operation: matching goes on all the same. */
static void full(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    unsigned done = 0, matched = 0, other = 0;
    tm_add(r, 1, 300, 0, 64);
    tm_buffer(r, 8, 4096, 256);
    ok(tm_sync(r, unexpected), "all before is carried out");
    for (uint64_t i = 0; i < OPS; i++)
        need(tm_op(r, i, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC, 0, unexpected) == 0);
    ok(tm_op(r, 9, IBV_WR_TAG_SYNC, 0, 0, 0) == ENOMEM, "as many operations as was agreed");
    ok(tm_eager(s, 0, 300, 9) && tm_eager(s, 1, 301, 9), "messages come in");
    ok(tm_op(r, 9, IBV_WR_TAG_SYNC, 0, 0, 0) == ENOMEM, "nothing was polled yet");
    for (unsigned i = 0; i < OPS + 2; i++) {
        struct tm_wc wc = tm_next(r);
        if (wc.opcode == IBV_WC_TM_SYNC && wc.wr_id == done)
            done++;
        else if (tm_is(&wc, IBV_WC_TM_RECV, wc.flags ? 1001 : 8, wc.flags ? BOTH : 0))
            wc.flags ? matched++ : other++;
    }
    ok(done == OPS && matched == 1 && other == 1, "all operations in order, the match, and the unexpected message");
    unexpected++;
    ok(tm_sync(r, unexpected), "there is room again");
}

/* Destroyed with entries, buffers and a matched message half there. */
static void destroyed(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    char rule[64];
    for (uint64_t i = 0; i < 8; i++)
        tm_add(r, i, 400 + i, 0, 4096);
    for (uint64_t i = 0; i < 8; i++)
        tm_buffer(r, i, 4096, 256);
    ok(tm_sync(r, unexpected), "entries and buffers are there");
    snprintf(rule, sizeof(rule), "qpn=%u,only=send,mask=0xfffffffffffffffe", r->qp[0]->qp_num);
    tm_strike(rule); /* the first packet arrives */
    tm_header(s, IBV_TMH_EAGER, 400, 0);
    tm_post(s, 0, LONG, NULL);
    ok(tm_got(r, IBV_WC_TM_RECV, 1000, IBV_WC_TM_MATCH), "a message is matched, and its end is lost");
    ok(ibv_destroy_srq(r->srq) == EBUSY, "with QPs the SRQ is busy");
    ok(ibv_destroy_qp(r->qp[1]) == 0 && ibv_destroy_srq(r->srq) == EBUSY, "with one of them, too");
    ok(ibv_destroy_qp(r->qp[0]) == 0, "both are destroyed");
    struct tm_wc wc = tm_next(r);
    ok(wc.wr_id == 1000 && wc.status == IBV_WC_WR_FLUSH_ERR, "the matched entry has its last completion");
    ok(ibv_destroy_srq(r->srq) == 0, "now the SRQ goes, and what is in it");
    ok(vt_quiet(ibv_cq_ex_to_cq(r->cq)), "without completions");
    tm_strike("");
    r->qp[0] = r->qp[1] = NULL;
    for (int i = 0; i < TM_QPS; i++)
        need(ibv_destroy_qp(s->qp[i]) == 0);
    while (tm_poll(s->cq, &wc))
        ; /* what the sender was told meanwhile */
    s->qp[0] = s->qp[1] = NULL;
    need((r->srq = tm_srq(r, TAGS, OPS)));
    for (int i = 0; i < TM_QPS; i++)
        tm_replace(p, i, &tm_usual);
    tm_prime(p);
    tm_add(r, 2, 500, 0, 64);
    ok(tm_eager(s, 0, 500, 3) && tm_matched(r, 2, 500, 3), "another SRQ at the same CQ starts from nothing");
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    unexpected = 0;
    tm_open(&p, a, b);
    consumed(&p);
    stopped(&p);
    full(&p);
    destroyed(&p);
    tm_close(&p);
}

int main(void)
{
    VT_OWN("slots of the list, and packets that the daemon loses for a test");
    return tm_everywhere(test);
}
