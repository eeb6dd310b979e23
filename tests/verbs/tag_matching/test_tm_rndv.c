// SPDX-License-Identifier: BSD-2-Clause
/* Rendezvous to TM-SRQs: the offload reads the data and sends the FIN, on QPs without send requests of their own. */
#include "tests/verbs/tag_matching/tags.h"

#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))
#define DATA 65536u /* where the sender's data are, and the receiver's go */
#define FIN 32768u /* where the sender takes FINs */

static uint8_t expected(uint32_t i, uint32_t seed)
{
    return (uint8_t)(i * 13 + (i >> 8) + seed);
}
static void fill(struct tm_side *s, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        s->buf[DATA + i] = expected(i, seed);
}
static bool filled(const struct tm_side *r, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        if (r->buf[DATA + i] != expected(i, seed))
            return false;
    return r->buf[DATA + len] == 0xee;
}

static void take_fin(struct tm_side *s, int qp)
{
    tm_recv(s, qp, 6, FIN, 64);
}
/* Posts the request for len bytes of the sender's data. */
static void request(struct tm_side *s, int qp, uint64_t tag, uint32_t len, uint32_t rkey)
{
    tm_header(s, IBV_TMH_RNDV, tag, 0xabcdef01);
    tm_rvh(s, DATA, len, rkey);
    tm_post(s, qp, HEAD, NULL);
}
/* The sender's next two completions, in any order, are the end of its request and the FIN; *fin: the latter. */
static bool ended(struct tm_side *s, struct tm_wc *fin)
{
    struct tm_wc a = tm_next(s), b = tm_next(s);
    *fin = a.opcode == IBV_WC_RECV ? a : b;
    const struct tm_wc *end = a.opcode == IBV_WC_RECV ? &b : &a;
    return end->opcode == IBV_WC_SEND && end->status == IBV_WC_SUCCESS && tm_is(fin, IBV_WC_RECV, 6, 0);
}
/* Does the same for the FIN of such a request. */
static bool finished(struct tm_side *s, uint64_t tag, uint32_t len)
{
    struct ibv_tmh h;
    struct ibv_rvh v;
    struct tm_wc wc;
    bool both = ended(s, &wc);
    memcpy(&h, s->buf + FIN, sizeof(h));
    memcpy(&v, s->buf + FIN + sizeof(h), sizeof(v));
    return both && wc.byte_len == HEAD && h.opcode == IBV_TMH_FIN && be64toh(h.tag) == tag &&
           be32toh(h.app_ctx) == 0xabcdef01 && be32toh(v.len) == len && be64toh(v.va) == (uintptr_t)s->buf + DATA;
}

static void sizes(struct tm_pair *p)
{
    static const uint32_t len[] = {0, 1, 100, 1024, 1025, 65536, 1u << 20, (3u << 20) + 1};
    struct tm_side *r = &p->r, *s = &p->s;
    for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
        struct tm_wc wc;
        int qp = (int)i & 1;
        fill(s, len[i], i);
        memset(r->buf + DATA, 0xee, len[i] + 1);
        tm_add(r, i, i + 70, DATA, len[i]);
        take_fin(s, qp);
        request(s, qp, i + 70, len[i], s->mr->rkey);
        wc = tm_next(r);
        ok(tm_is(&wc, IBV_WC_TM_RECV, i + 1000, len[i] ? IBV_WC_TM_MATCH : BOTH) && wc.tag == i + 70 &&
               wc.priv == 0xabcdef01 && wc.qpn == r->qp[qp]->qp_num,
           "the match is told");
        if (len[i]) {
            wc = tm_next(r);
            ok(tm_is(&wc, IBV_WC_TM_RECV, i + 1000, IBV_WC_TM_DATA_VALID) && wc.byte_len == len[i] && wc.tag == 0,
               "then the data");
        }
        ok(filled(r, len[i], i), "they are there");
        ok(finished(s, i + 70, len[i]), "and the sender gets the FIN");
    }
}

/* Requests that the offload can't serve alone. The whole request goes to the entry's buffer, as far as it fits. */
static void incomplete(struct tm_pair *p)
{
    static const struct {
        uint32_t room, len;
    } c[] = {{31, 100}, {32, 100}, {99, 100}, {0, 100}, {100, 101}};
    struct tm_side *r = &p->r, *s = &p->s;
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        uint32_t got = c[i].room < HEAD ? c[i].room : HEAD;
        memset(r->buf + DATA, 0xee, 256);
        tm_add(r, i, 80, DATA, c[i].room);
        request(s, 0, 80, c[i].len, s->mr->rkey);
        struct tm_wc wc = tm_next(r);
        ok(wc.status == IBV_WC_TM_RNDV_INCOMPLETE && wc.opcode == IBV_WC_TM_RECV && wc.wr_id == i + 1000 &&
               wc.flags == BOTH && wc.tag == 80 && wc.priv == 0xabcdef01,
           "the entry is too short for the data");
        ok(wc.byte_len == got && memcmp(r->buf + DATA, s->buf, got) == 0 && r->buf[DATA + got] == 0xee,
           "it has the request");
        ok(tm_sent(s) == IBV_WC_SUCCESS, "which was delivered");
    }
    tm_add(r, 9, 81, DATA, 100);
    take_fin(s, 0);
    request(s, 0, 81, 100, s->mr->rkey);
    ok(tm_got(r, IBV_WC_TM_RECV, 1009, IBV_WC_TM_MATCH) && tm_got(r, IBV_WC_TM_RECV, 1009, IBV_WC_TM_DATA_VALID) &&
           finished(s, 81, 100),
       "the QP goes on, and one that fits is finished");
}

static void unexpected(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    tm_buffer(r, 50, 0, 256);
    request(s, 1, 82, 1000, s->mr->rkey);
    tm_rvh(s, DATA, 1000, s->mr->rkey);
    struct tm_wc wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 50, 0) && wc.byte_len == HEAD && wc.tag == 0, "an unexpected request comes whole");
    ok(tm_sent(s) == 0 && memcmp(r->buf, s->buf, HEAD) == 0, "as it was sent");
    ok(tm_sync(r, 1), "and counts");
    tm_header(s, IBV_TMH_RNDV, 82, 1);
    tm_rvh(s, DATA, 0, s->mr->rkey);
    memcpy(s->buf + 1, "xyz", 3);
    tm_add(r, 1, 82, DATA, 16);
    take_fin(s, 1);
    tm_post(s, 1, HEAD + 32, NULL);
    ok(tm_got(r, IBV_WC_TM_RECV, 1001, BOTH), "with metadata, and reserved bytes that are not zero");
    ok(ended(s, &wc) && memcmp(s->buf + FIN + 1, "xyz", 3) == 0, "which the FIN brings back");
}

/* More at once than the QP may have READs. */
static void many(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    unsigned matches = 0, data = 0, fins = 0, sent = 0;
    struct tm_wc wc;
    fill(s, 1u << 20, 1);
    for (unsigned i = 0; i < 24; i++) {
        tm_add(r, i, 90 + i, DATA + i * 131072, 100000);
        take_fin(s, (int)i & 1);
    }
    for (unsigned i = 0; i < 24; i++) {
        request(s, (int)i & 1, 90 + i, 100000, s->mr->rkey);
        double end = vt_now() + 10;
        while (sent <= i && vt_now() < end) { /* the next one uses the same header */
            if (tm_poll(s->cq, &wc)) {
                sent += wc.opcode == IBV_WC_SEND && wc.status == 0;
                fins += wc.opcode == IBV_WC_RECV && wc.status == 0;
            }
        }
    }
    double end = vt_now() + 20;
    while ((data < 24 || fins < 24) && vt_now() < end) {
        if (tm_poll(r->cq, &wc)) {
            need(wc.status == 0 && wc.opcode == IBV_WC_TM_RECV);
            matches += wc.flags == IBV_WC_TM_MATCH && wc.wr_id == 1000 + matches;
            data += wc.flags == IBV_WC_TM_DATA_VALID;
        }
        if (tm_poll(s->cq, &wc))
            fins += wc.opcode == IBV_WC_RECV && wc.status == 0;
    }
    ok(sent == 24 && fins == 24, "24 requests are delivered and finished");
    ok(matches == 24 && data == 24, "24 rendezvous on two QPs match in order, and all have their data");
    bool right = true;
    for (unsigned i = 0; i < 24 * 131072; i++)
        right &= i % 131072 >= 100000 || r->buf[DATA + i] == expected(i % 131072, 1);
    ok(right, "the right ones");
}

static void failures(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_wc wc;
    tm_add(r, 1, 7, DATA, 5000);
    request(s, 0, 7, 5000, s->mr->rkey ^ 0x1000);
    ok(tm_got(r, IBV_WC_TM_RECV, 1001, IBV_WC_TM_MATCH), "a match");
    wc = tm_next(r);
    /* The sender's QP has failed, too, so a lost NAK is not sent again. */
    ok((wc.status == IBV_WC_REM_ACCESS_ERR || (tm_lossy() && wc.status == IBV_WC_RETRY_EXC_ERR)) &&
           wc.opcode == IBV_WC_TM_RECV && wc.wr_id == 1001,
       "with a wrong rkey fails");
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    ok(ibv_query_qp(r->qp[0], &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_ERR, "and the QP with it");
    wc = tm_next(s);
    /* Its ACK and the NAK of the READ are under way at the same time. Which comes first is chance. */
    ok(wc.wr_id == 5 && (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR),
       "the request ends, before its sender's QP fails or with it");
    tm_add(r, 2, 8, DATA, 100);
    request(s, 1, 8, 100, s->mr->rkey);
    ok(tm_got(r, IBV_WC_TM_RECV, 1002, IBV_WC_TM_MATCH) && tm_got(r, IBV_WC_TM_RECV, 1002, IBV_WC_TM_DATA_VALID),
       "the other QP goes on; its FIN waits for a receive request");
    usleep(20000);
    take_fin(s, 1);
    ok(finished(s, 8, 100), "and comes when there is one");
    ok(vt_to_state(r->qp[1], IBV_QPS_ERR) == 0, "the QP fails");
    ok(vt_quiet(ibv_cq_ex_to_cq(r->cq)), "no entry has a completion for that");
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    sizes(&p);
    incomplete(&p);
    unexpected(&p);
    many(&p);
    failures(&p);
    tm_close(&p);
}

int main(void)
{
    return tm_everywhere(test);
}
