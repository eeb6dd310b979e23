// SPDX-License-Identifier: BSD-2-Clause
/* Eager messages to TM-SRQs: which match, which are unexpected, their order, and their completions. */
#include "tests/verbs/tag_matching/tags.h"

#define TMH ((uint32_t)sizeof(struct ibv_tmh))

/* Entries in any order; wildcards; bits outside of the mask. */
static void rules(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    for (uint64_t t = 1; t < 6; t++)
        tm_add(r, t, t, (uint32_t)t * 256, 256);
    for (uint64_t t = 5; t > 0; t--) {
        need(tm_eager(s, (int)t & 1, t, 100));
        ok(tm_matched(r, t, t, 100) && tm_data(r, (uint32_t)t * 256, t, 100), "sent in the other order");
    }
    struct tm_add never = {.id = 1, .tag = 0x1ff, .mask = 0xff}, some = {.id = 2, .tag = 0x30, .mask = 0xf0},
                  any = {.id = 3};
    uint32_t handle;
    never.len = some.len = any.len = 256;
    need(tm_try_add(r, &never, &handle) == 0 && tm_try_add(r, &some, NULL) == 0 && tm_try_add(r, &any, NULL) == 0);
    tm_add(r, 4, 0x35, 0, 256);
    need(tm_eager(s, 0, 0x35, 8) && tm_matched(r, 2, 0x35, 8));
    ok(true, "a wildcard that was posted earlier wins over an exact entry");
    need(tm_eager(s, 1, 0x35, 8) && tm_matched(r, 3, 0x35, 8));
    ok(true, "and so does one for any tag");
    need(tm_eager(s, 0, 0x35, 8) && tm_matched(r, 4, 0x35, 8));
    ok(true, "then it is the exact one's turn");
    ok(tm_op(r, 9, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0 && tm_got(r, IBV_WC_TM_DEL, 9, 0),
       "an entry with tag bits outside of its mask was never matched");
    tm_add(r, 5, 0xfedcba9876543210, 0, 64);
    need(tm_eager(s, 0, 0xfedcba9876543210, 64));
    struct tm_wc wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 1005, BOTH) && wc.tag == 0xfedcba9876543210 && wc.priv == 0x76543213 &&
           wc.qpn == r->qp[0]->qp_num,
       "tag and context come in host order, with the number of the QP");
}

/* Messages of one and of several packets; the path MTU is 1024. */
static void sizes(struct tm_pair *p)
{
    static const uint32_t len[] = {0,    1,    15,   16,   1007, 1008, 1009, 1024,
                                   2031, 2032, 2033, 3055, 3056, 3057, 4096, 1u << 20};
    struct tm_side *r = &p->r, *s = &p->s;
    for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
        bool one = len[i] + TMH <= 1024;
        memset(r->buf, 0xee, len[i] + 8);
        tm_add(r, i, i, 0, len[i]);
        need(tm_eager(s, 0, i, len[i]));
        if (!one) {
            struct tm_wc wc = tm_next(r);
            ok(tm_is(&wc, IBV_WC_TM_RECV, i + 1000, IBV_WC_TM_MATCH) && wc.tag == i && wc.byte_len == 0,
               "the match is told first");
        }
        struct tm_wc wc = tm_next(r);
        ok(tm_is(&wc, IBV_WC_TM_RECV, i + 1000, one ? BOTH : IBV_WC_TM_DATA_VALID) && wc.byte_len == len[i] &&
               wc.tag == (one ? i : 0) && wc.priv == (one ? i + 3 : 0),
           "then the data, without a tag");
        ok(tm_data(r, 0, i, len[i]) && r->buf[len[i]] == 0xee, "which are where they belong");
    }
    if (tm_strict(r->ctx)) {
        printf("# no list of SGEs: the strict device takes one\n");
        return;
    }
    struct ibv_sge part[3] = {tm_at(r, 0, 10), tm_at(r, 4096, 0), tm_at(r, 8192, 2000)};
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD,
                            .tm.add = {.recv_wr_id = 7, .sg_list = part, .num_sge = 3, .tag = 7, .mask = EXACT}},
                      *bad;
    need(ibv_post_srq_ops(r->srq, &wr, &bad) == 0 && tm_eager(s, 0, 7, 2000));
    ok(tm_got(r, IBV_WC_TM_RECV, 7, IBV_WC_TM_MATCH) && tm_got(r, IBV_WC_TM_RECV, 7, IBV_WC_TM_DATA_VALID),
       "a list of SGEs");
    memmove(r->buf + 8182, r->buf, 10);
    ok(tm_data(r, 8182, 7, 2000), "is filled one after the other");
}

/* Unexpected messages, their count, and operations that wait for it. */
static void unexpected(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_add late = {.id = 1, .tag = 21, .mask = EXACT, .at = 0, .len = 64, .flags = IBV_OPS_SIGNALED};
    struct tm_wc wc;
    for (uint64_t i = 0; i < 4; i++)
        tm_buffer(r, 50 + i, 65536 + (uint32_t)i * 4096, 4096);
    tm_add(r, 0, 20, 4096, 64);
    need(tm_eager(s, 0, 21, 40));
    wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 50, 0) && wc.byte_len == 40 + TMH && wc.tag == 0 && wc.priv == 0,
       "an unexpected message comes whole, without a tag");
    const struct ibv_tmh *h = (const void *)(r->buf + 65536);
    ok(h->opcode == IBV_TMH_EAGER && be64toh(h->tag) == 21 && tm_data(r, 65536 + TMH, 21, 40), "header and data");
    ok(tm_try_add(r, &late, NULL) == 0 && tm_got(r, IBV_WC_TM_ADD, 1, IBV_WC_TM_SYNC_REQ),
       "an ADD that doesn't know of it asks for synchronization");
    need(tm_eager(s, 1, 21, 41));
    wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 51, 0) && wc.byte_len == 41 + TMH,
       "its entry is pending: the next is unexpected, too");
    need(tm_eager(s, 1, 20, 10));
    ok(tm_matched(r, 0, 20, 10), "older entries go on matching");
    ok(tm_op(r, 2, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED, 0, 1) == 0 && tm_got(r, IBV_WC_TM_SYNC, 2, IBV_WC_TM_SYNC_REQ),
       "a count that is behind");
    ok(tm_sync(r, 0x10002), "the right one, modulo 2^16");
    need(tm_eager(s, 0, 21, 42));
    ok(tm_matched(r, 1, 21, 42), "makes it active");
    late.id = 3;
    late.tag = 22;
    late.count = 77; /* ignored, without the flag */
    ok(tm_try_add(r, &late, NULL) == 0 && tm_got(r, IBV_WC_TM_ADD, 3, 0), "an ADD in sync");
    need(tm_eager(s, 0, 22, 1));
    ok(tm_matched(r, 3, 22, 1), "is active at once");
    need(tm_eager(s, 0, 99, 5));
    ok(tm_got(r, IBV_WC_TM_RECV, 52, 0), "a third unexpected message");
    late.id = 4;
    late.count = 3;
    late.flags |= IBV_OPS_TM_SYNC;
    ok(tm_try_add(r, &late, NULL) == 0 && tm_got(r, IBV_WC_TM_ADD, 4, 0), "an ADD that knows of it");
    need(tm_eager(s, 0, 22, 2));
    ok(tm_matched(r, 4, 22, 2), "is active at once, too");
}

/* Messages without a tag, with one untagged buffer left from before. */
static void untagged(struct tm_pair *p)
{
    static const struct {
        uint8_t op;
        uint32_t len;
        const char *what;
    } msg[] = {{IBV_TMH_NO_TAG, 1, "NO_TAG of one byte"},
               {IBV_TMH_NO_TAG, 2000, "NO_TAG of several packets"},
               {IBV_TMH_NO_TAG, 0, "no bytes at all"},
               {IBV_TMH_FIN, 32, "a FIN"},
               {IBV_TMH_EAGER, 15, "a header cut short"},
               {IBV_TMH_RNDV, 31, "a rendezvous header cut short"},
               {4, 40, "an unknown operation"}};
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_add any = {.id = 3, .len = 4096};
    struct tm_wc wc;
    need(tm_try_add(r, &any, NULL) == 0);
    for (unsigned i = 0; i < sizeof(msg) / sizeof(msg[0]); i++) {
        tm_buffer(r, 60 + i, 65536, 4096);
        tm_header(s, msg[i].op, 1, 1);
        memset(r->buf + 65536, 0, 64);
        tm_post(s, (int)i & 1, msg[i].len, NULL);
        need(tm_sent(s) == IBV_WC_SUCCESS);
        wc = tm_next(r);
        ok(tm_is(&wc, IBV_WC_TM_NO_TAG, i ? 60 + i - 1 : 53, 0) && wc.byte_len == msg[i].len && wc.tag == 0,
           msg[i].what);
    }
    ok(tm_sync(r, 3), "none of them counted");
    need(tm_eager(s, 0, 5, 10));
    ok(tm_matched(r, 3, 5, 10), "none was matched");
}

static void immediate(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    uint32_t imm = htonl(0x12345678), zero = 0;
    struct tm_wc wc;
    tm_add(r, 1, 1, 0, 4096);
    tm_add(r, 2, 2, 0, 4096);
    tm_header(s, IBV_TMH_EAGER, 1, 0);
    tm_post(s, 0, TMH, &zero);
    wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 1001, BOTH | IBV_WC_WITH_IMM) && wc.imm == 0,
       "immediate data of 0 are immediate data");
    need(tm_sent(s) == 0);
    tm_header(s, IBV_TMH_EAGER, 2, 0);
    tm_post(s, 0, 3000, &imm);
    wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 1002, IBV_WC_TM_MATCH), "with several packets,");
    wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 1002, IBV_WC_TM_DATA_VALID | IBV_WC_WITH_IMM) && wc.imm == imm,
       "they come with the data");
    need(tm_sent(s) == 0);
    tm_buffer(r, 80, 65536, 4096);
    tm_header(s, IBV_TMH_EAGER, 3, 0);
    tm_post(s, 0, 30, &imm);
    for (int i = 0; i < 2; i++) { /* one untagged buffer is left from before */
        wc = tm_next(r);
        ok(wc.opcode == IBV_WC_TM_RECV && wc.flags == IBV_WC_WITH_IMM && wc.imm == imm, "with an unexpected message");
        need(tm_sent(s) == 0);
        if (i == 0)
            tm_post(s, 0, 30, &imm);
    }
    ok(tm_sync(r, 5), "which is counted");
}

/* No buffer: the message leaves no trace, and is matched when it comes again. */
static void not_ready(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    tm_header(s, IBV_TMH_EAGER, 30, 33);
    tm_post(s, 0, 100 + TMH, NULL);
    usleep(30000);
    ok(vt_quiet(ibv_cq_ex_to_cq(r->cq)), "no buffer, no completion");
    tm_add(r, 1, 30, 0, 4096);
    ok(tm_matched(r, 1, 30, 100), "an entry that comes later matches");
    ok(tm_sent(s) == IBV_WC_SUCCESS && tm_sync(r, 5), "nothing was counted");
}

/* Deletion and match at about the same time: exactly one of them has the entry. Returns the count of unexpected
 * messages. */
static uint32_t races(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    unsigned deleted = 0, matched = 0;
    uint32_t unexp = 5;
    for (unsigned i = 0; i < 60; i++) {
        uint32_t handle = tm_add(r, i, 40, 0, 4096);
        tm_buffer(r, 90, 65536, 4096);
        tm_header(s, IBV_TMH_EAGER, 40, 0);
        tm_post(s, 0, 64, NULL);
        for (volatile unsigned spin = 0; spin < i * 400; spin++)
            ;
        need(tm_op(r, 500, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0);
        struct tm_wc a = tm_next(r), b = tm_next(r);
        struct tm_wc del = a.opcode == IBV_WC_TM_DEL ? a : b, rx = a.opcode == IBV_WC_TM_DEL ? b : a;
        need(del.opcode == IBV_WC_TM_DEL && rx.opcode == IBV_WC_TM_RECV && tm_sent(s) == 0);
        if (del.status == IBV_WC_TM_ERR && rx.flags == BOTH && rx.wr_id == 1000 + i)
            matched++;
        else if (del.status == IBV_WC_SUCCESS && rx.flags == 0 && rx.wr_id == 90 && tm_sync(r, ++unexp))
            deleted++;
        if (rx.flags == BOTH) { /* the buffer is still there: use it up */
            tm_header(s, IBV_TMH_NO_TAG, 0, 0);
            tm_post(s, 0, 1, NULL);
            need(tm_sent(s) == 0 && tm_got(r, IBV_WC_TM_NO_TAG, 90, 0));
        }
    }
    printf("#   %u deleted, %u matched\n", deleted, matched);
    ok(deleted + matched == 60, "each entry was deleted or matched");
    for (unsigned i = 0; i < 500; i++) { /* more than there are slots, so each was given back */
        need(tm_op(r, 1, IBV_WR_TAG_DEL, 0, tm_add(r, i, 41, 0, 64), 0) == 0);
        need(tm_sync(r, unexp));
    }
    ok(true, "no slot was lost");
    return unexp;
}

/* The same by the classic call. unexp: messages that were unexpected so far. */
static void classic(struct tm_pair *p, uint32_t unexp)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct ibv_cq *cq = ibv_cq_ex_to_cq(r->cq);
    struct tm_add a = {.id = 1, .tag = 1, .mask = EXACT, .len = 64, .flags = IBV_OPS_SIGNALED};
    struct ibv_wc wc;
    need(tm_try_add(r, &a, NULL) == 0);
    wc = vt_next(cq);
    ok(wc.status == 0 && wc.opcode == IBV_WC_TM_ADD && wc.wr_id == 1 && (int)wc.opcode == 130, "ibv_poll_cq: an ADD");
    need(tm_eager(s, 1, 1, 20));
    wc = vt_next(cq);
    ok(wc.status == 0 && wc.opcode == IBV_WC_TM_RECV && wc.wr_id == 1001 && wc.wc_flags == BOTH && wc.byte_len == 20 &&
           wc.qp_num == r->qp[1]->qp_num,
       "a match");
    need(tm_op(r, 2, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED, 0, 0x8000) == 0);
    wc = vt_next(cq);
    ok(wc.opcode == IBV_WC_TM_SYNC && wc.wr_id == 2 && wc.wc_flags == IBV_WC_TM_SYNC_REQ, "a SYNC out of sync");
    need(tm_sync(r, unexp));
    need(tm_op(r, 3, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, 4, 0) == 0);
    wc = vt_next(cq);
    ok(wc.opcode == IBV_WC_TM_DEL && wc.wr_id == 3 && wc.status == IBV_WC_TM_ERR, "a DEL of nothing");
    tm_buffer(r, 4, 0, 64);
    tm_header(s, IBV_TMH_NO_TAG, 0, 0);
    tm_post(s, 0, 16, NULL);
    wc = vt_next(cq);
    ok(wc.opcode == IBV_WC_TM_NO_TAG && wc.wr_id == 4 && wc.byte_len == 16 && wc.wc_flags == 0, "NO_TAG");
    need(tm_sent(s) == 0);
}

/* A message that is longer than its entry; and what becomes of completions when the QP goes. */
static void overflow(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_wc wc;
    tm_add(r, 1, 50, 0, 63);
    tm_add(r, 2, 50, 0, 63);
    tm_header(s, IBV_TMH_EAGER, 50, 0);
    tm_post(s, 0, 64 + TMH, NULL);
    int status = tm_sent(s); /* the receiver's QP has failed, too, so a lost NAK is not sent again */
    ok(status == IBV_WC_REM_INV_REQ_ERR || (tm_lossy() && status == IBV_WC_RETRY_EXC_ERR),
       "too long for the entry: the sender is told");
    wc = tm_next(r);
    ok(wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 1001, "and the receiver");
    need(tm_eager(s, 1, 50, 63));
    usleep(20000);
    need(ibv_destroy_qp(r->qp[1]) == 0);
    r->qp[1] = NULL;
    ok(tm_matched(r, 2, 50, 63), "what was received outlives its QP, another one than that which failed");
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    rules(&p);
    sizes(&p);
    unexpected(&p);
    untagged(&p);
    immediate(&p);
    not_ready(&p);
    classic(&p, races(&p));
    overflow(&p);
    tm_close(&p);
}

/* WRITEs with immediate data to a TM-SRQ take untagged buffers. The limit of the SRQ counts these buffers only. */
static void buffers(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct ibv_srq_attr limit = {.srq_limit = 2}, is;
    struct ibv_sge sge = tm_at(s, 0, 8);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htonl(77),
                             .wr.rdma = {(uintptr_t)r->buf + 4096, r->mr->rkey}},
                       *bad;
    for (uint64_t i = 0; i < 3; i++)
        tm_buffer(r, 40 + i, 65536, 4096);
    ok(ibv_modify_srq(r->srq, &limit, IBV_SRQ_LIMIT) == 0, "a limit of two untagged buffers");
    for (uint64_t i = 0; i < 4; i++) {
        tm_add(r, i, 60, 0, 64); /* the same buffer each time, which does no harm */
        need(tm_eager(s, 1, 60, 20) && tm_matched(r, i, 60, 20));
    }
    ok(vt_no_event(r->ctx), "matches don't touch it");
    need(ibv_post_send(s->qp[1], &wr, &bad) == 0);
    struct tm_wc wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_RECV_RDMA_WITH_IMM, 40, IBV_WC_WITH_IMM) && wc.imm == htonl(77) && wc.tag == 0,
       "a WRITE with immediate data takes a buffer");
    need(tm_next(s).status == IBV_WC_SUCCESS);
    ok(vt_no_event(r->ctx), "two are left");
    need(tm_eager(s, 1, 61, 20) && tm_got(r, IBV_WC_TM_RECV, 41, 0));
    ok(vt_event(r->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, NULL), "an unexpected message is below the limit");
    ok(ibv_query_srq(r->srq, &is) == 0 && is.srq_limit == 0, "which is said once");
}

static void other_ways(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    buffers(&p);
    tm_close(&p);
}

/* IBV_WC_TM_SYNC_REQ comes with each message that is one too many without a report, not before, and modulo 2^16. */
static void sync_request(struct ibv_context *a, struct ibv_context *b)
{
    enum { BURST = 32 };
    const unsigned total = tm_lossy() ? 17000 : 70000;
    struct tm_pair p;
    unsigned wrong = 0;
    tm_open(&p, a, b);
    tm_header(&p.s, IBV_TMH_EAGER, 1, 0);
    for (unsigned i = 0; i < 2 * BURST; i++)
        tm_buffer(&p.r, 1, 65536, 64);
    for (unsigned n = 1; n <= total; n++) {
        struct tm_wc wc;
        for (unsigned i = 0; (n - 1) % BURST == 0 && i < BURST; i++)
            tm_post(&p.s, 0, TMH, NULL);
        wc = tm_next(&p.r);
        need(wc.opcode == IBV_WC_TM_RECV && wc.status == 0);
        bool asks = (n & 0xffff) > 0x3fff;
        if (wc.flags != (asks ? IBV_WC_TM_SYNC_REQ : 0) && wrong++ == 0)
            printf("# message %u: flags %x\n", n, wc.flags);
        tm_buffer(&p.r, 1, 65536, 64);
        need(tm_sent(&p.s) == 0);
    }
    ok(wrong == 0, "message 16,384 asks for synchronization, and those behind it until the count wraps");
    for (unsigned n = total; n % BURST; n++)
        need(tm_sent(&p.s) == 0 && tm_next(&p.r).status == 0);
    ok(tm_sync(&p.r, (total + BURST - 1) / BURST * BURST), "and gets it");
    tm_close(&p);
}

int main(void)
{
    tm_everywhere(test);
    tm_everywhere(other_ways);
    tm_everywhere(sync_request);
    return vt_failed;
}
