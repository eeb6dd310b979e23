// SPDX-License-Identifier: BSD-2-Clause
/* Deletion and match, in both orders, by packets that are held back: an entry is deleted before the message comes, or while
 * the rest of a message that has matched it is still under way. Each outcome is counted. */
#include "tests/verbs/tag_matching/tags.h"

#define LONG 2000u /* bytes of two packets */
#define ROUNDS 8u

static uint32_t unexpected; /* messages so far */

/* Only the first packet of each 64 to the receiver's QP arrives, or all do. */
static void hold_back(struct tm_pair *p, bool hold)
{
    char rule[64];
    snprintf(rule, sizeof(rule), "qpn=%u,mask=0xfffffffffffffffe", p->r.qp[0]->qp_num);
    tm_strike(hold ? rule : "");
}

static void send_long(struct tm_side *s, uint64_t tag)
{
    tm_header(s, IBV_TMH_EAGER, tag, 0);
    for (uint32_t i = 0; i < LONG; i++)
        s->buf[sizeof(struct ibv_tmh) + i] = (uint8_t)(i * 7 + tag);
    tm_post(s, 0, LONG + (uint32_t)sizeof(struct ibv_tmh), NULL);
}

/* The message has matched the entry, and its second packet is missing. */
static bool too_late(struct tm_pair *p, uint64_t i)
{
    struct tm_side *r = &p->r, *s = &p->s;
    uint32_t handle = tm_add(r, i, 60, 0, 4096);
    tm_replace(p, 0, &tm_usual); /* a rule counts the packets of a QP from its first one */
    hold_back(p, true);
    send_long(s, 60);
    bool right = tm_got(r, IBV_WC_TM_RECV, 1000 + i, IBV_WC_TM_MATCH);
    need(tm_op(r, 500, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0);
    struct tm_wc del = tm_next(r);
    right &= del.opcode == IBV_WC_TM_DEL && del.status == IBV_WC_TM_ERR && del.wr_id == 500;
    need(tm_op(r, 501, IBV_WR_TAG_DEL, 0, handle, 0) == 0);
    right &= tm_sync(r, unexpected); /* the unsignaled one has no completion before this one */
    hold_back(p, false);
    right &= tm_got(r, IBV_WC_TM_RECV, 1000 + i, IBV_WC_TM_DATA_VALID) && tm_data(r, 0, 60, LONG);
    right &= tm_sent(s) == IBV_WC_SUCCESS;
    /* The slot has a new entry, which the old handle does not delete. */
    uint32_t next = tm_add(r, 900, 61, 8192, 64);
    need(tm_op(r, 502, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0);
    del = tm_next(r);
    right &= next != handle && del.status == IBV_WC_TM_ERR && del.wr_id == 502;
    return right && tm_eager(s, 0, 61, 1) && tm_matched(r, 900, 61, 1);
}

/* The entry is deleted first: the message is unexpected. */
static bool in_time(struct tm_pair *p, uint64_t i)
{
    struct tm_side *r = &p->r, *s = &p->s;
    uint32_t handle = tm_add(r, i, 60, 0, 4096);
    need(tm_op(r, 500, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0);
    bool right = tm_got(r, IBV_WC_TM_DEL, 500, 0);
    tm_buffer(r, 90, 65536, 4096);
    send_long(s, 60);
    right &= tm_got(r, IBV_WC_TM_RECV, 90, 0) && tm_sent(s) == IBV_WC_SUCCESS;
    return tm_sync(r, ++unexpected) && right;
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    unsigned late = 0, early = 0;
    unexpected = 0;
    tm_open(&p, a, b);
    for (unsigned i = 0; i < ROUNDS; i++) {
        late += too_late(&p, i);
        early += in_time(&p, 100 + i);
    }
    printf("# %u deletions too late, %u in time\n", late, early);
    ok(late == ROUNDS, "a DEL while a matched message arrives: TM_ERR if it is signaled, else silence; the data come");
    ok(early == ROUNDS, "a DEL before the message: success, and the message is unexpected");
    tm_close(&p);
}

int main(void)
{
    VT_OWN("packets that a daemon holds back");
    tm_faults = "";
    return vt_both(test);
}
