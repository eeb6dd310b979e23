// SPDX-License-Identifier: BSD-2-Clause
/* Windows over layouts with other transports, and with ATOMIC WRITE. Datagrams and unreliable connections move a part
 * of a matrix into another part; the test checks every byte around both. */
#include "tests/verbs/layout/layouts.h"

#define ROWS 64
#define ROW 512 /* bytes of a row */
#define CELL 24 /* bytes of a row that belong to the part */
#define PART (ROWS * CELL) /* more than a packet of 1,024 */
#define FROM 40 /* offset of the sender's part in a row … */
#define TO 104 /* … and of the receiver's */
#define SIDE (ROWS * ROW) /* behind the matrix: other memory */
#define GRH 40

static struct vt_end a, b; /* a sends, b receives */
static struct ibv_qp *binder[2]; /* of a's domain, of b's; connected with each other */
static struct ibv_mw *from, *to;
static char was[VT_BUF]; /* b's buffer as it should be */

static char *byte_of(struct vt_end *e, uint32_t at, uint32_t off)
{
    return e->buf + off / CELL * ROW + at + off % CELL;
}

/* Fills both buffers, and remembers b's. */
static void fill(void)
{
    static unsigned round;
    round++;
    for (unsigned i = 0; i < VT_BUF; i++) {
        a.buf[i] = (char)(i * 5 + i / 256 + round);
        b.buf[i] = was[i] = (char)(0x80 ^ (i * 3 + round));
    }
}

/* True if b is unchanged, except that len bytes at offset t of its part equal those at offset f of a's part. */
static bool copied(uint32_t f, uint32_t t, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        was[byte_of(&b, TO, t + i) - b.buf] = *byte_of(&a, FROM, f + i);
    return memcmp(b.buf, was, VT_BUF) == 0;
}

static void open_ends(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((binder[0] = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (binder[1] = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(binder[0], &a.gid, binder[1], &b.gid);
    from = vl_items(binder[0], a.scq, a.mr, a.buf + FROM, CELL, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE);
}

static void connect_again(enum ibv_qp_type type, uint64_t ops)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, type, NULL, ops)) && (b.qp = vt_end_qp(&b, type, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static void post_recv(struct ibv_sge *list, int num)
{
    struct ibv_recv_wr wr = {.sg_list = list, .num_sge = num}, *bad;
    need(ibv_post_recv(b.qp, &wr, &bad) == 0);
}

static enum ibv_wc_status send_wr(struct ibv_send_wr wr, struct ibv_sge sge)
{
    struct ibv_send_wr *bad;
    wr.send_flags |= IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    return vt_next(a.scq).status;
}

static struct ibv_sge in(const struct ibv_mw *mw, uint32_t off, uint32_t len)
{
    return (struct ibv_sge){.addr = off, .length = len, .lkey = vl_lkey(mw)};
}

/* --- datagrams */

static void datagrams(void)
{
    static const struct {
        uint32_t f, t, len;
    } c[] = {{0, 0, 1}, {0, 0, 24}, {7, 3, 50}, {0, 500, 512}, {PART - 1000, 1, 1000}, {13, PART - 1024, 1024}};
    connect_again(IBV_QPT_UD, 0);
    to = vl_items(binder[1], b.scq, b.mr, b.buf + TO, CELL, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .hop_limit = 7}};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
    need(ah);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .wr.ud = {.ah = ah, .remote_qpn = b.qp->qp_num, .remote_qkey = VT_QKEY}};
    bool right = true;
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        struct ibv_sge list[] = {vt_at(&b, SIDE, GRH), in(to, c[i].t, c[i].len)};
        fill();
        post_recv(list, 2);
        right &= send_wr(wr, in(from, c[i].f, c[i].len)) == IBV_WC_SUCCESS;
        struct ibv_wc wc = vt_next(b.rcq);
        right &= wc.status == IBV_WC_SUCCESS && wc.byte_len == GRH + c[i].len && b.buf[SIDE + 20] == 0x45;
        memcpy(was + SIDE, b.buf + SIDE, GRH);
        right &= copied(c[i].f, c[i].t, c[i].len);
    }
    ok(right, "datagrams from a part of a matrix into a part of another, the 40 bytes in front elsewhere");

    struct ibv_sge all = in(to, 5, GRH + 300);
    fill();
    post_recv(&all, 1);
    ok(send_wr(wr, in(from, 60, 300)) == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
           *byte_of(&b, TO, 5 + 20) == 0x45,
       "those in the part as well");
    for (uint32_t i = 0; i < GRH; i++)
        was[byte_of(&b, TO, 5 + i) - b.buf] = *byte_of(&b, TO, 5 + i);
    ok(copied(60, 5 + GRH, 300), "and nothing else is touched");

    struct ibv_sge beyond[] = {vt_at(&b, SIDE, GRH), in(to, PART - 99, 100)};
    fill();
    post_recv(beyond, 2);
    ok(send_wr(wr, in(from, 0, 100)) == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_LOC_PROT_ERR,
       "a receive beyond the layout: local protection error");
    memcpy(was + SIDE, b.buf + SIDE, GRH);
    ok(memcmp(b.buf, was, VT_BUF) == 0, "without a byte of it");
    ok(send_wr(wr, in(from, PART - 99, 100)) == IBV_WC_LOC_PROT_ERR, "a send from beyond: likewise");
    need(ibv_destroy_ah(ah) == 0 && ibv_dealloc_mw(to) == 0);
}

/* --- unreliable connections */

static void unreliable(void)
{
    static const uint32_t len[] = {1, 23, 24, 25, 1000, 1024, 1025, PART};
    connect_again(IBV_QPT_UC, 0);
    to = vl_items(b.qp, b.scq, b.mr, b.buf + TO, CELL, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .wr.rdma.rkey = to->rkey};
    bool sends = true, writes = true;
    for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
        uint32_t f = (PART - len[i]) / 2, t = PART - len[i];
        struct ibv_sge room = in(to, t, len[i]);
        fill();
        post_recv(&room, 1);
        sends &= send_wr(send, in(from, f, len[i])) == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
                 copied(f, t, len[i]);
        fill();
        post_recv(NULL, 0);
        write.wr.rdma.remote_addr = t;
        writes &= send_wr(write, in(from, f, len[i])) == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
                  copied(f, t, len[i]);
    }
    ok(sends, "SENDs over an unreliable connection, of one packet and of two");
    ok(writes, "and RDMA WRITEs");
    fill();
    post_recv(NULL, 0);
    write.wr.rdma.remote_addr = 1;
    ok(send_wr(write, in(from, 0, PART)) == IBV_WC_SUCCESS && vt_quiet(b.rcq) && memcmp(b.buf, was, VT_BUF) == 0,
       "one that goes beyond the layout is dropped before a byte of it is written");
    need(ibv_dealloc_mw(to) == 0);
}

/* --- ATOMIC WRITE */

static void atomic_writes(void)
{
    connect_again(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
    to = vl_items(b.qp, b.scq, b.mr, b.buf + TO, CELL, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE, .wr.rdma.rkey = to->rkey};
    fill();
    wr.wr.rdma.remote_addr = 3 * CELL + 8;
    ok(send_wr(wr, in(from, 2 * CELL - 3, 8)) == IBV_WC_SUCCESS && copied(2 * CELL - 3, 3 * CELL + 8, 8),
       "an ATOMIC WRITE to eight bytes of an item, from eight of two");
    fill();
    wr.wr.rdma.remote_addr = CELL - 4;
    ok(send_wr(wr, vt_at(&a, 0, 8)) == IBV_WC_REM_ACCESS_ERR && memcmp(b.buf, was, VT_BUF) == 0, "not across two");
    connect_again(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
    need(ibv_dealloc_mw(to) == 0);
    /* items at 4 mod 8: it is the address in memory that has to be aligned */
    to = vl_items(b.qp, b.scq, b.mr, b.buf + TO + 4, 12, ROW, ROWS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    wr.wr.rdma.rkey = to->rkey;
    wr.wr.rdma.remote_addr = 12 + 4;
    fill();
    ok(send_wr(wr, vt_at(&a, 0, 8)) == IBV_WC_SUCCESS && memcmp(b.buf + ROW + TO + 8, a.buf, 8) == 0,
       "aligned is what is so in memory");
    memcpy(was + ROW + TO + 8, a.buf, 8);
    wr.wr.rdma.remote_addr = 24;
    ok(send_wr(wr, vt_at(&a, 0, 8)) == IBV_WC_REM_INV_REQ_ERR && memcmp(b.buf, was, VT_BUF) == 0,
       "and not the offset: invalid request");
    connect_again(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
    need(ibv_dealloc_mw(to) == 0);
    ok(vl_invalidate(binder[0], a.scq, from->rkey) == IBV_WC_SUCCESS, "the sender's window is invalidated");
    wr.wr.rdma.rkey = b.mr->rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    ok(send_wr(wr, (struct ibv_sge){.length = 8, .lkey = vl_lkey(from)}) == IBV_WC_LOC_PROT_ERR,
       "and is no source any more");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    open_ends(ca, cb);
    datagrams();
    unreliable();
    atomic_writes();
    need(ibv_dealloc_mw(from) == 0 && ibv_destroy_qp(binder[0]) == 0 && ibv_destroy_qp(binder[1]) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
