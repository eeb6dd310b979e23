// SPDX-License-Identifier: BSD-2-Clause
/* Matched messages that can't be stored: longer than the entry, found out by a later packet; entries with a wrong lkey or
 * without the right to write, for eager messages and for the READ of a rendezvous. Each has exactly one last completion,
 * the sender gets the NAK of the specification, and the other QP of the list goes on. */
#include "tests/verbs/tag_matching/tags.h"

#define PACKET 1024u /* path MTU of the tests */
#define TMH ((uint32_t)sizeof(struct ibv_tmh))

static int state(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(qp, &a, IBV_QP_STATE, &init) == 0 ? (int)a.qp_state : -1;
}

/* Adds an entry of 4096 bytes with this lkey. It is accepted in any case: the key is checked when data are stored. */
static void add_with_key(struct tm_side *r, uint64_t id, uint64_t tag, uint32_t lkey)
{
    struct ibv_sge s = {.addr = (uintptr_t)r->buf, .length = 4096, .lkey = lkey};
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = IBV_WR_TAG_ADD}, *bad;
    wr.tm.add.recv_wr_id = id + 1000;
    wr.tm.add.sg_list = &s;
    wr.tm.add.num_sge = 1;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = EXACT;
    need(ibv_post_srq_ops(r->srq, &wr, &bad) == 0);
}

/* The other QP still gets messages. Then both QPs of the failed pair are made anew. */
static bool goes_on(struct tm_pair *p)
{
    tm_add(&p->r, 700, 77, 0, 64);
    bool right = tm_eager(&p->s, 1, 77, 5) && tm_matched(&p->r, 700, 77, 5);
    tm_replace(p, 0, &tm_usual);
    return right;
}

/* The first packet matches. A later one exceeds the entry. */
static void overflow(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    static const uint32_t room[] = {PACKET, PACKET + 1, 2 * PACKET, 3 * PACKET - TMH - 1};
    bool right = true, ended = true;
    for (uint64_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
        memset(r->buf, 0x55, 8192);
        tm_add(r, i, 50, 0, room[i]);
        tm_header(s, IBV_TMH_EAGER, 50, 0);
        tm_post(s, 0, 3 * PACKET, NULL);
        right &= tm_got(r, IBV_WC_TM_RECV, 1000 + i, IBV_WC_TM_MATCH);
        struct tm_wc wc = tm_next(r);
        right &= wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 1000 + i;
        right &= tm_sent(s) == IBV_WC_REM_INV_REQ_ERR && r->buf[room[i]] == 0x55;
        ended &= state(r->qp[0]) == IBV_QPS_ERR && state(s->qp[0]) == IBV_QPS_ERR;
        need(goes_on(p));
    }
    ok(right,
       "a message that a later packet makes too long: MATCH, then a length error; the sender's request is invalid");
    ok(ended, "both QPs are in ERR, and the other QP goes on");
}

static void bad_keys(struct tm_pair *p, bool eager)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct ibv_mr *weak = ibv_reg_mr(r->pd, r->buf, 4096, 0);
    need(weak);
    const uint32_t keys[] = {r->mr->lkey ^ 0x5a, 0, weak->lkey};
    bool right = true, told = true, ended = true;
    for (uint64_t i = 0; i < 3; i++) {
        add_with_key(r, i, 51, keys[i]);
        tm_header(s, eager ? IBV_TMH_EAGER : IBV_TMH_RNDV, 51, 0);
        tm_rvh(s, 8192, 3000, s->mr->rkey);
        memset(r->buf, 0x55, 4096);
        tm_recv(s, 0, 9, 4096, 64); /* for a FIN, which must not come */
        tm_post(s, 0, eager ? 100 : TMH + (uint32_t)sizeof(struct ibv_rvh), NULL);
        struct tm_wc wc = tm_next(r);
        if (!eager) {
            right &= tm_is(&wc, IBV_WC_TM_RECV, 1000 + i, IBV_WC_TM_MATCH);
            wc = tm_next(r);
        }
        right &= wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 1000 + i && r->buf[0] == 0x55;
        int sent = tm_sent(s);
        told &= sent == (eager ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
        if (wc.status != IBV_WC_LOC_PROT_ERR || sent != (eager ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS))
            printf("#   key %u: receiver %d, sender %d\n", (unsigned)i, wc.status, sent);
        ended &= state(r->qp[0]) == IBV_QPS_ERR;
        if (eager) { /* the receive request is flushed */
            wc = tm_next(s);
            ended &= wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 9;
        } else {
            ended &= vt_quiet(ibv_cq_ex_to_cq(s->cq));
        }
        need(goes_on(p));
    }
    ok(right,
       eager ? "an eager message for an entry with a wrong key, none, or one that may not be written: protection error"
             : "a rendezvous for such an entry: MATCH, then a protection error, and no byte is written");
    ok(told, eager ? "the sender gets a remote operation error" : "the sender's request was delivered");
    ok(ended, eager ? "the QP is in ERR" : "the QP is in ERR, and no FIN comes");
    need(ibv_dereg_mr(weak) == 0);
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    overflow(&p);
    bad_keys(&p, true);
    bad_keys(&p, false);
    tm_close(&p);
}

int main(void)
{
    VT_OWN("the statuses of matched messages that fail, as ConnectX gives them");
    return vt_both(test);
}
