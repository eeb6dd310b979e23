// SPDX-License-Identifier: BSD-2-Clause
/* QPs of a TM-SRQ with send requests of their own. Programs may use these QPs beside the offload: for rendezvous that
 * the device leaves to them, and for windows that messages invalidate. A strict device keeps these send queues for
 * itself. */
#include "tests/verbs/tag_matching/tags.h"

#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))
#define SENDS 16
#define DATA 65536u /* where the sender's data are, and the receiver's go */
#define INBOX 32768u /* where the sender receives: 64 bytes for each */
#define LEN 20000u

static const struct tm_how how = {
    .own_sends = SENDS, .max_rd_atomic = 4, .rnr_retry = 7, .timeout = 14, .retry_cnt = 7};

/* --- the sender */

static void inbox(struct tm_side *s, int qp, uint64_t id)
{
    tm_recv(s, qp, id, INBOX + (uint32_t)id * 64, 64);
}
static void request(struct tm_side *s, int qp, uint64_t tag, uint32_t len)
{
    tm_header(s, IBV_TMH_RNDV, tag, 0xabcdef01);
    tm_rvh(s, DATA, len, s->mr->rkey);
    tm_post(s, qp, HEAD, NULL);
    for (uint32_t i = 0; i < len; i++)
        s->buf[DATA + i] = (uint8_t)(i * 7 + tag);
}
/* The request and its FIN, in any order; the FIN came to inbox id. */
static bool finished(struct tm_side *s, uint64_t id, uint64_t tag)
{
    struct tm_wc a = tm_next(s), b = tm_next(s);
    const struct tm_wc *fin = a.opcode == IBV_WC_RECV ? &a : &b, *end = fin == &a ? &b : &a;
    const struct ibv_tmh *h = (const void *)(s->buf + INBOX + id * 64);
    return end->opcode == IBV_WC_SEND && end->status == 0 && tm_is(fin, IBV_WC_RECV, id, 0) && fin->byte_len == HEAD &&
           h->opcode == IBV_TMH_FIN && be64toh(h->tag) == tag && be32toh(h->app_ctx) == 0xabcdef01;
}

/* --- the receiver's own requests */

static int own(struct tm_side *r, int qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = 30,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {remote, rkey}},
                       *bad;
    return ibv_post_send(r->qp[qp], &wr, &bad);
}
static bool own_done(struct tm_side *r, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = vt_next(r->other);
    return wc.status == IBV_WC_SUCCESS && wc.opcode == opcode && wc.wr_id == 30;
}

/* A program serves a request that the offload has left to it: READ, then FIN. head: where the request is in memory. */
static bool by_program(struct tm_side *r, int qp, const uint8_t *head, bool reads)
{
    struct ibv_tmh h;
    struct ibv_rvh v;
    memcpy(&h, head, sizeof(h));
    memcpy(&v, head + sizeof(h), sizeof(v));
    if (reads && (own(r, qp, IBV_WR_RDMA_READ, tm_at(r, DATA, be32toh(v.len)), be64toh(v.va), be32toh(v.rkey)) != 0 ||
                  !own_done(r, IBV_WC_RDMA_READ)))
        return false;
    h.opcode = IBV_TMH_FIN;
    memcpy(r->buf, &h, sizeof(h));
    memcpy(r->buf + sizeof(h), &v, sizeof(v));
    return own(r, qp, IBV_WR_SEND, tm_at(r, 0, HEAD), 0, 0) == 0 && own_done(r, IBV_WC_SEND);
}

static void software(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    tm_buffer(r, 50, 4096, 256);
    inbox(s, 0, 0);
    request(s, 0, 60, LEN);
    struct tm_wc wc = tm_next(r);
    ok(tm_is(&wc, IBV_WC_TM_RECV, 50, 0) && wc.byte_len == HEAD && tm_sync(r, 1), "an unexpected request");
    ok(by_program(r, 0, r->buf + 4096, true) && tm_data(r, DATA, 60, LEN) && finished(s, 0, 60),
       "is finished by the program, on the same QP");
    tm_add(r, 1, 61, 8192, LEN - 1);
    inbox(s, 0, 1);
    request(s, 0, 61, LEN);
    wc = tm_next(r);
    ok(wc.status == IBV_WC_TM_RNDV_INCOMPLETE && wc.wr_id == 1001 && wc.flags == BOTH, "so is one that does not fit");
    ok(by_program(r, 0, r->buf + 8192, true) && tm_data(r, DATA, 61, LEN) && finished(s, 1, 61), "likewise");
}

/* The program's sends and the offload's READs and FINs take turns. */
static void together(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    unsigned fins = 0, mine = 0, ends = 0, data = 0, sends = 0;
    struct tm_wc wc;
    struct ibv_wc done;
    for (uint64_t i = 0; i < SENDS; i++) {
        tm_add(r, i, 100 + i, DATA + (uint32_t)i * 32768, LEN);
        inbox(s, 0, 2 * i);
        inbox(s, 0, 2 * i + 1);
    }
    memset(r->buf, 0x77, 16);
    for (uint64_t i = 0; i < SENDS; i++) {
        request(s, 0, 100 + i, LEN);
        need(own(r, 0, IBV_WR_SEND, tm_at(r, 0, 16), 0, 0) == 0);
        double end = vt_now() + 10; /* until the request is delivered: the next one uses the same header */
        while (ends <= i && vt_now() < end) {
            if (!tm_poll(s->cq, &wc))
                continue;
            ends += wc.opcode == IBV_WC_SEND && wc.status == 0;
            fins += wc.opcode == IBV_WC_RECV && wc.byte_len == HEAD;
            mine += wc.opcode == IBV_WC_RECV && wc.byte_len == 16;
        }
    }
    double end = vt_now() + 20;
    while ((fins < SENDS || mine < SENDS || data < SENDS || sends < SENDS) && vt_now() < end) {
        if (tm_poll(s->cq, &wc)) {
            fins += wc.opcode == IBV_WC_RECV && wc.byte_len == HEAD;
            mine += wc.opcode == IBV_WC_RECV && wc.byte_len == 16;
        }
        if (tm_poll(r->cq, &wc))
            data += wc.status == 0 && wc.flags == IBV_WC_TM_DATA_VALID;
        if (ibv_poll_cq(r->other, 1, &done) == 1)
            sends += done.status == 0 && done.opcode == IBV_WC_SEND;
    }
    ok(fins == SENDS && mine == SENDS, "the sender gets all FINs, and all messages");
    ok(data == SENDS && sends == SENDS, "rendezvous and sends of one QP complete side by side");
}

/* --- invalidation */

static struct ibv_mw *window;

/* Binds the window again, to the receiver's data. */
static void bind_window(struct tm_side *r)
{
    struct ibv_send_wr wr = {.wr_id = 30, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    uint32_t rkey = ibv_inc_rkey(window->rkey);
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = r->mr, .addr = (uintptr_t)r->buf, .length = 4096, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    need(ibv_post_send(r->qp[0], &wr, &bad) == 0 && own_done(r, IBV_WC_BIND_MW));
    window->rkey = rkey;
}
static void send_invalidating(struct tm_side *s, uint32_t len)
{
    struct ibv_sge sge = tm_at(s, 0, len);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_INV,
                             .send_flags = IBV_SEND_SIGNALED,
                             .invalidate_rkey = window->rkey},
                       *bad;
    need(ibv_post_send(s->qp[0], &wr, &bad) == 0);
}
/* Writes through the window; the status. */
static int write_through(struct tm_pair *p)
{
    struct ibv_sge sge = tm_at(&p->s, 0, 8);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p->r.buf, window->rkey}},
                       *bad;
    need(ibv_post_send(p->s.qp[0], &wr, &bad) == 0);
    return tm_next(&p->s).status;
}

static void invalidation(struct tm_pair *p)
{
    static const struct {
        const char *what;
        uint8_t op;
        uint32_t len; /* of the message */
        bool entry;
        unsigned first, last; /* flags; 0: no first completion */
    } c[] = {{"an eager message", IBV_TMH_EAGER, 100, true, 0, BOTH},
             {"one of several packets", IBV_TMH_EAGER, 3000, true, IBV_WC_TM_MATCH, IBV_WC_TM_DATA_VALID},
             {"a rendezvous without data", IBV_TMH_RNDV, HEAD, true, 0, BOTH},
             {"an unexpected message", IBV_TMH_EAGER, 100, false, 0, 0},
             {"one of several packets", IBV_TMH_EAGER, 3000, false, 0, 0}};
    struct tm_side *r = &p->r, *s = &p->s;
    uint32_t unexp = 1; /* from before */
    need((window = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2)));
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        bind_window(r);
        ok(write_through(p) == IBV_WC_SUCCESS, "a window is bound");
        if (c[i].entry)
            tm_add(r, i, 70, DATA, 4096);
        else
            tm_buffer(r, i + 1000, DATA, 4096);
        if (c[i].op == IBV_TMH_RNDV)
            inbox(s, 0, 0);
        tm_header(s, c[i].op, 70, 0xabcdef01);
        tm_rvh(s, DATA, 0, 0);
        send_invalidating(s, c[i].len);
        if (c[i].first)
            ok(tm_got(r, IBV_WC_TM_RECV, i + 1000, c[i].first), "the match is told first");
        struct tm_wc wc = tm_next(r);
        ok(tm_is(&wc, IBV_WC_TM_RECV, i + 1000, c[i].last | IBV_WC_WITH_INV) && wc.imm == window->rkey, c[i].what);
        ok(c[i].op == IBV_TMH_RNDV ? finished(s, 0, 70) : tm_sent(s) == IBV_WC_SUCCESS, "invalidates it");
        unexp += !c[i].entry;
    }
    ok(tm_sync(r, unexp), "the unexpected ones are counted");
    int status = write_through(p); /* the receiver's QP fails, too, so a lost NAK is not sent again */
    ok(status == IBV_WC_REM_ACCESS_ERR || (tm_lossy() && status == IBV_WC_RETRY_EXC_ERR), "nobody gets through then");
    ok(ibv_dealloc_mw(window) == 0, "the window goes");
}

/* --- a QP that may not READ */

static void no_reads(struct tm_pair *p, bool strict)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_how none = how;
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    none.max_rd_atomic = 0;
    none.own_sends = strict ? 0 : SENDS;
    tm_replace(p, 0, &none);
    tm_add(r, 1, 62, 8192, LEN);
    inbox(s, 0, 3);
    request(s, 0, 62, LEN);
    struct tm_wc wc = tm_next(r);
    ok(wc.status == IBV_WC_TM_RNDV_INCOMPLETE && wc.wr_id == 1001 && wc.flags == BOTH && wc.tag == 62 &&
           wc.priv == 0xabcdef01 && wc.byte_len == HEAD,
       "without READs a rendezvous is left to the program");
    ok(memcmp(r->buf + 8192, s->buf, HEAD) == 0, "which gets the request");
    ok(ibv_query_qp(r->qp[0], &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_RTS, "the QP goes on");
    if (strict)
        ok(tm_sent(s) == IBV_WC_SUCCESS, "the request was delivered");
    else
        ok(by_program(r, 0, r->buf + 8192, false) && finished(s, 3, 62), "and the program's FIN is sent");
    tm_add(r, 2, 63, 0, 64);
    need(tm_eager(s, 0, 63, 20));
    ok(tm_matched(r, 2, 63, 20), "eager messages match");
}

/* A strict device takes no message before 33 untagged buffers were there, not even one that matches; another
 * does not ask for any. */
static void first_buffers(struct ibv_context *a, struct ibv_context *b, bool strict)
{
    struct tm_how bare = how;
    struct tm_pair p;
    bare.unprimed = true;
    tm_open_as(&p, a, b, &bare);
    for (uint64_t i = 0; i < 32 && strict; i++)
        tm_buffer(&p.r, i, 65536, 64);
    tm_add(&p.r, 1, 64, 0, 64);
    tm_header(&p.s, IBV_TMH_EAGER, 64, 67);
    tm_post(&p.s, 0, (uint32_t)sizeof(struct ibv_tmh) + 20, NULL);
    if (strict) {
        usleep(20000);
        ok(vt_quiet(ibv_cq_ex_to_cq(p.r.cq)), "32 buffers are too few for the strict device");
        tm_buffer(&p.r, 32, 65536, 64);
    }
    ok(tm_matched(&p.r, 1, 64, 20) && tm_sent(&p.s) == IBV_WC_SUCCESS,
       strict ? "with the 33rd the message matches" : "a message matches without any buffer");
    tm_close(&p);
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    bool strict = tm_strict(a);
    tm_open_as(&p, a, b, &how);
    if (strict) {
        ok(own(&p.r, 0, IBV_WR_SEND, tm_at(&p.r, 0, 16), 0, 0) == EINVAL, "the send queue is the device's");
        printf("# nothing else of the program's own requests: the strict device refuses them\n");
    } else {
        software(&p);
        together(&p);
        invalidation(&p);
    }
    no_reads(&p, strict);
    tm_close(&p);
    first_buffers(a, b, strict);
}

int main(void)
{
    VT_OWN("send requests on queue pairs of a matching list");
    return tm_everywhere(test);
}
