// SPDX-License-Identifier: BSD-2-Clause
/* Tagged buffers of a TM-SRQ that are windows over layouts. Messages, and data that a rendezvous fetches, become a
 * column of a matrix without a copy by the program, also when packets are lost. */
#include "tests/verbs/tag_matching/tags.h"
/* after it */
#include "tests/verbs/layout/layouts.h"

#define ROWS 1000u
#define ROW 1000u /* bytes */
#define CELL 24u
#define COLUMN 40u /* offset of the column in a row */
#define MATRIX (TM_BUF - ROWS * ROW)
#define BYTES (ROWS * CELL)
#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))
#define DATA 65536u /* where the sender's data are */
#define FIN 32768u /* where the sender takes FINs */

static struct ibv_qp *binder[2]; /* of the receiver's domain */
static struct ibv_cq *binds;
static struct ibv_mw *column;

static void open_window(struct tm_side *r)
{
    need((binds = ibv_create_cq(r->ctx, 16, NULL, NULL, 0)));
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr a = {.send_cq = binds, .recv_cq = binds, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        need((binder[i] = ibv_create_qp(r->pd, &a)));
    }
    vt_link(binder[0], &r->gid, binder[1], &r->gid);
    column = vl_items(binder[0], binds, r->mr, r->buf + MATRIX + COLUMN, CELL, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE);
}

static void close_window(void)
{
    need(ibv_dealloc_mw(column) == 0 && ibv_destroy_qp(binder[0]) == 0 && ibv_destroy_qp(binder[1]) == 0 &&
         ibv_destroy_cq(binds) == 0);
}

/* An entry whose buffer is plain bytes at the start of the receiver's, if there are any, and then bytes of the
 * column. */
static void add(struct tm_side *r, uint64_t id, uint64_t tag, uint32_t plain, uint32_t off, uint32_t len)
{
    struct ibv_sge s[] = {tm_at(r, 0, plain), {.addr = off, .length = len, .lkey = vl_lkey(column)}};
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = IBV_WR_TAG_ADD}, *bad;
    wr.tm.add.recv_wr_id = id + 1000;
    wr.tm.add.sg_list = plain ? s : s + 1;
    wr.tm.add.num_sge = plain ? 2 : 1;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = EXACT;
    need(ibv_post_srq_ops(r->srq, &wr, &bad) == 0);
}

/* Are bytes [off, off + len) of the column what the sender has at `from`, and all others of the matrix untouched? */
static bool is_column(const struct tm_side *r, const uint8_t *from, uint32_t off, uint32_t len)
{
    const uint8_t *m = r->buf + MATRIX;
    for (uint32_t i = 0; i < ROWS * ROW; i++) {
        uint32_t in = i % ROW - COLUMN, at = i / ROW * CELL + in;
        bool meant = in < CELL && at >= off && at < off + len;
        if (m[i] != (meant ? from[at - off] : 0xee))
            return false;
    }
    return true;
}

static void fill(struct tm_pair *p, uint32_t seed)
{
    memset(p->r.buf + MATRIX, 0xee, ROWS * ROW);
    for (uint32_t i = 0; i < BYTES + 64; i++)
        p->s.buf[DATA + i] = (uint8_t)(i * 13 + (i >> 8) + seed);
}

/* A whole eager message that matched: one completion if it came in one packet, else one for the match and one for the
 * data. */
static bool arrived(struct tm_side *r, uint64_t id, uint32_t len)
{
    struct tm_wc wc = tm_next(r);
    if (wc.flags == IBV_WC_TM_MATCH && wc.status == IBV_WC_SUCCESS && wc.wr_id == id + 1000) {
        wc = tm_next(r);
        return tm_is(&wc, IBV_WC_TM_RECV, id + 1000, IBV_WC_TM_DATA_VALID) && wc.byte_len == len;
    }
    return tm_is(&wc, IBV_WC_TM_RECV, id + 1000, BOTH) && wc.byte_len == len;
}

static const struct {
    uint32_t off, len;
} ranges[] = {{0, 1}, {0, 24}, {23, 2}, {100, 1000}, {5, 4096}, {0, BYTES}};
#define RANGES (sizeof(ranges) / sizeof(ranges[0]))

static void eager(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    bool right = true;
    for (uint32_t i = 0; i < RANGES; i++) {
        fill(p, i);
        add(r, i, 70 + i, 0, ranges[i].off, ranges[i].len);
        right &= tm_eager(s, (int)i & 1, 70 + i, ranges[i].len) && arrived(r, i, ranges[i].len) &&
                 is_column(r, s->buf + sizeof(struct ibv_tmh), ranges[i].off, ranges[i].len);
    }
    ok(right, "eager messages of 1 byte to all of it");
    fill(p, 1);
    add(r, 30, 99, 10, 50, 2000);
    ok(tm_eager(s, 0, 99, 2010) && arrived(r, 30, 2010) && memcmp(r->buf, s->buf + sizeof(struct ibv_tmh), 10) == 0 &&
           is_column(r, s->buf + sizeof(struct ibv_tmh) + 10, 50, 2000),
       "a list of plain memory and the column");
}

static void rendezvous(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    bool right = true;
    for (uint32_t i = 0; i < RANGES; i++) {
        int qp = (int)i & 1;
        struct ibv_sge sge = tm_at(s, FIN, 64);
        struct ibv_recv_wr wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1}, *bad;
        fill(p, i);
        add(r, i, 80 + i, 0, ranges[i].off, ranges[i].len);
        need(ibv_post_recv(s->qp[qp], &wr, &bad) == 0);
        tm_header(s, IBV_TMH_RNDV, 80 + i, 5);
        tm_rvh(s, DATA, ranges[i].len, s->mr->rkey);
        tm_post(s, qp, HEAD, NULL);
        right &= tm_got(r, IBV_WC_TM_RECV, i + 1000, IBV_WC_TM_MATCH);
        struct tm_wc wc = tm_next(r), a = tm_next(s), b = tm_next(s);
        right &= tm_is(&wc, IBV_WC_TM_RECV, i + 1000, IBV_WC_TM_DATA_VALID) && wc.byte_len == ranges[i].len &&
                 is_column(r, s->buf + DATA, ranges[i].off, ranges[i].len);
        right &= a.status == IBV_WC_SUCCESS && b.status == IBV_WC_SUCCESS && s->buf[FIN] == IBV_TMH_FIN;
    }
    ok(right, "rendezvous of 1 byte to all of it, and the sender is told");
}

/* The last test: it costs the queue pair its life. */
static void invalidated(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    fill(p, 1);
    add(r, 40, 110, 0, 0, 100);
    ok(vl_invalidate(binder[0], binds, column->rkey) == IBV_WC_SUCCESS, "invalidated while it waits for a message");
    ok(!tm_eager(s, 0, 110, 100), "the sender's message fails");
    struct tm_wc wc = tm_next(r);
    ok(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 1040 && is_column(r, s->buf, 0, 0),
       "and the entry, with not a byte written");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    struct tm_pair p;
    tm_open(&p, cb, ca);
    open_window(&p.r);
    eager(&p);
    rendezvous(&p);
    invalidated(&p);
    close_window();
    tm_close(&p);
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return tm_everywhere(test);
}
