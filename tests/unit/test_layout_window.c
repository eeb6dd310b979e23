// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts in the engine: random ones in every use against flat models, with all other memory watched; rights,
 * bounds, atomics, lifetimes; and binds that are refused. */
#include <errno.h>

#include "core_fixture.h"
#include "layout_model.h"

/* The fixture's memory: three regions with gaps between them, then a plain buffer. */
#define PLAIN 6656u
#define PLAIN_BYTES (FIX_MEM - PLAIN)
#define REGION_AT(i) (64u + (i) * (REGION_BYTES + 64u))
#define MOST_TOTAL (PLAIN_BYTES / 2)

#define RIGHTS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

static struct fixture fix;
static struct qp *a, *b; /* connected with each other */
static uint32_t region[REGIONS], plain;
static uint32_t window[TREE_LAYOUTS]; /* the rkeys of the tree */
static void *shape[TREE_LAYOUTS];
static struct completion last[8]; /* of the last run, the newest ones */
static unsigned completions;

static void setup_engine(void)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    memset(&fix, 0, sizeof(fix));
    engine_config_defaults(&fix.cfg);
    fix.cfg.max_qp = 8;
    fix.cfg.max_mr = 32;
    fix.cfg.max_peers = 4;
    fix.cfg.completion_slots = 64;
    fix.cfg.event_slots = 16;
    fix.cfg.num_gids = 1;
    fix.cfg.gids[0][15] = 1;
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix);
    cr_assert(fix.e);
}

static void connect(struct qp *qp, uint32_t to, uint8_t mtu)
{
    for (enum qp_state s = QPS_INIT; s <= QPS_RTS; s++) {
        struct qp_attr attr = fix_attr();
        attr.state = (uint8_t)s;
        attr.path_mtu = mtu;
        attr.av.dgid[15] = 1;
        attr.dest_qpn = to;
        attr.rq_psn = attr.sq_psn = 7;
        cr_assert_eq(qp_modify(qp, &attr, QPA_STATE | fix_required(qp_state(qp), s), fix.now, NULL), 0);
    }
}

static void reconnect(uint8_t mtu)
{
    struct qp_attr reset = {.state = QPS_RESET};
    cr_assert_eq(qp_modify(a, &reset, QPA_STATE, fix.now, NULL), 0);
    cr_assert_eq(qp_modify(b, &reset, QPA_STATE, fix.now, NULL), 0);
    connect(a, qp_number(b), mtu);
    connect(b, qp_number(a), mtu);
}

static uint32_t reg(uint32_t at, uint32_t len, uint64_t iova, uint32_t access)
{
    struct mr_init init = {.pd = FIX_PD, .space = 1, .va = FIX_VA + at, .iova = iova, .length = len, .access = access};
    uint32_t key = 0;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    return key;
}

static void setup(void)
{
    setup_engine();
    for (uint32_t i = 0; i < FIX_MEM; i++)
        fix.bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (uint32_t i = 0; i < REGIONS; i++)
        region[i] = reg(REGION_AT(i), REGION_BYTES, 0, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    plain = reg(PLAIN, PLAIN_BYTES, FIX_VA + PLAIN, RIGHTS);
    for (unsigned i = 0; i < TREE_LAYOUTS; i++) {
        shape[i] = fix_zalloc(mw_layout_size(MOST_ENTRIES));
        cr_assert_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, MOST_ENTRIES, shape[i], &window[i]), 0);
    }
    a = fix_qp(&fix);
    b = fix_qp(&fix);
    connect(a, qp_number(b), 1);
    connect(b, qp_number(a), 1);
}

static void teardown(void)
{
    for (unsigned i = 0; i < TREE_LAYOUTS; i++)
        free(shape[i]);
    fix_fini(&fix);
}
TestSuite(layout_window, .init = setup, .fini = teardown);

/* Carries packets from the engine to itself until nothing is due; the newest completion is in last[0]. */
static void run(void)
{
    static uint8_t buf[1 << 17];
    struct rx_meta meta = {.src_gid = {[15] = 1}, .dst_gid = {[15] = 1}};
    completions = 0;
    for (bool more = true; more;) {
        struct tx_batch batch = {.buf = buf, .cap = sizeof(buf)};
        const struct completion *c;
        more = engine_tx(fix.e, &batch, fix.now) > 0;
        for (uint32_t i = 0; i < batch.n; i++) {
            struct pkt p;
            cr_assert_eq(pkt_decode(buf + batch.pkt[i].off, batch.pkt[i].len, &p), PKT_OK);
            engine_rx(fix.e, &p, &meta, fix.now);
        }
        while ((c = engine_peek_completion(fix.e)) != NULL) {
            memmove(&last[1], &last[0], sizeof(last) - sizeof(last[0]));
            last[0] = *c;
            completions++;
            engine_drop_completion(fix.e);
            more = true;
        }
    }
}

static void post(struct qp *qp, struct send_wr wr, struct sge sge)
{
    wr.flags |= SEND_SIGNALED;
    wr.num_sge = sge.length || sge.lkey;
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL, fix.now), 0);
}

/* A request by itself; returns its status. */
static enum wc_status done(struct qp *qp, struct send_wr wr, struct sge sge)
{
    post(qp, wr, sge);
    run();
    for (unsigned i = 0; i < completions && i < 8; i++)
        if (!last[i].is_recv && last[i].qpn == qp_number(qp))
            return last[i].status;
    cr_assert(false, "no completion");
    return WC_GENERAL_ERR;
}

static enum wc_status bind(struct qp *qp, uint32_t *key, const struct layout_desc *d, uint32_t access)
{
    uint32_t next = (*key & ~0xffu) | ((*key + 1) & 0xff);
    struct send_wr wr = {.opcode = WR_BIND_MW, .bind = {.mw_key = next, .access = access, .layout = d}};
    enum wc_status status = done(qp, wr, (struct sge){0});
    if (status == WC_SUCCESS)
        *key = next;
    return status;
}

static enum wc_status invalidate(struct qp *qp, uint32_t key)
{
    return done(qp, (struct send_wr){.opcode = WR_LOCAL_INV, .inv_rkey = key}, (struct sge){0});
}

static enum wc_status rdma(uint8_t opcode, uint32_t rkey, uint64_t addr, struct sge local)
{
    return done(b, (struct send_wr){.opcode = opcode, .rkey = rkey, .remote_addr = addr}, local);
}

static struct sge local(uint32_t off, uint32_t len)
{
    return (struct sge){.addr = FIX_VA + PLAIN + off, .length = len, .lkey = plain};
}

/* Binds windows[i] of QP a to a layout of one kind of items in region 0. */
static void column(unsigned i, uint64_t addr, uint64_t length, uint64_t stride, uint64_t count, uint32_t access)
{
    struct layout_entry_desc e = {
        .object = region[0], .addr = addr, .length = length, .repeat = 1, .ndim = 1, .dim = {{stride, count}}};
    struct layout_desc d = {.type = LAYOUT_INTERLEAVED, .count = 1, .entry = &e};
    cr_assert_eq(bind(a, &window[i], &d, access), WC_SUCCESS);
}

/* --- every use, random layouts ---------------------------------------------------------------------------------------- */

static uint8_t before[FIX_MEM];
static const char *use;

static uint32_t where(const struct window *w, uint64_t off)
{
    return REGION_AT(w->model[off].object) + w->model[off].addr;
}

/* The memory is as it was, but for [off, off + len) of the window, which have become the bytes from `from` on. */
static void check_written(const struct window *w, uint32_t off, uint32_t from, uint32_t len, uint64_t start)
{
    for (uint32_t i = 0; i < len; i++)
        before[where(w, off + i)] = before[from + i];
    for (uint32_t i = 0; i < FIX_MEM; i++)
        cr_assert_eq(fix.bytes[i], before[i], "LAYOUT_SEED=%lu %s: byte %u after %u bytes at %u", start, use, i, len,
                     off);
}

/* The plain buffer from `to` on has become [off, off + len) of the window, and all else is as it was. */
static void check_read(const struct window *w, uint32_t off, uint32_t to, uint32_t len, uint64_t start)
{
    for (uint32_t i = 0; i < len; i++)
        before[to + i] = before[where(w, off + i)];
    for (uint32_t i = 0; i < FIX_MEM; i++)
        cr_assert_eq(fix.bytes[i], before[i], "LAYOUT_SEED=%lu %s: byte %u after %u bytes at %u", start, use, i, len,
                     off);
}

/* A small message may be in its completion: then this is the program that scatters it. */
static void scatter_inline(struct sge to)
{
    for (unsigned i = 0; i < completions && i < 8; i++)
        if (last[i].is_recv && last[i].inline_len)
            memcpy(fix.bytes + (to.addr - FIX_VA), last[i].data, last[i].inline_len);
}

static enum wc_status send_recv(struct sge from, struct sge to)
{
    struct recv_wr wr = {.num_sge = 1};
    cr_assert_eq(qp_post_recv(a, &wr, &to), 0);
    enum wc_status status = done(b, (struct send_wr){.opcode = WR_SEND}, from);
    if (to.lkey == plain)
        scatter_inline(to);
    return status;
}

static void use_window(const struct window *w, uint32_t key, uint64_t start)
{
    uint32_t most = w->total < MOST_TOTAL ? w->total : MOST_TOTAL;
    uint32_t len = 1 + (uint32_t)rnd(most), off = (uint32_t)rnd(w->total - len + 1), at = (uint32_t)rnd(MOST_TOTAL);
    struct sge mine = local(at, len), theirs = {.addr = off, .length = len, .lkey = key};
    memcpy(before, fix.bytes, FIX_MEM);
    switch (rnd(6)) {
    case 0:
        use = "RDMA WRITE into it";
        cr_assert_eq(rdma(WR_RDMA_WRITE, key, off, mine), WC_SUCCESS);
        check_written(w, off, PLAIN + at, len, start);
        break;
    case 1:
        use = "RDMA READ into it";
        cr_assert_eq(done(b, (struct send_wr){.opcode = WR_RDMA_READ, .rkey = plain, .remote_addr = mine.addr}, theirs),
                     WC_SUCCESS);
        check_written(w, off, PLAIN + at, len, start);
        break;
    case 2:
        use = "SEND received in it";
        cr_assert_eq(send_recv(mine, theirs), WC_SUCCESS);
        check_written(w, off, PLAIN + at, len, start);
        break;
    case 3:
        use = "RDMA READ from it";
        cr_assert_eq(rdma(WR_RDMA_READ, key, off, mine), WC_SUCCESS);
        check_read(w, off, PLAIN + at, len, start);
        break;
    case 4:
        use = "RDMA WRITE from it";
        cr_assert_eq(
            done(b, (struct send_wr){.opcode = WR_RDMA_WRITE, .rkey = plain, .remote_addr = mine.addr}, theirs),
            WC_SUCCESS);
        check_read(w, off, PLAIN + at, len, start);
        break;
    case 5:
        use = "SEND from it";
        cr_assert_eq(send_recv(theirs, mine), WC_SUCCESS);
        check_read(w, off, PLAIN + at, len, start);
        break;
    }
}

Test(layout_window, random_ones_in_every_use, .timeout = 300)
{
    uint64_t start = seed();
    state = start;
    for (unsigned t = 0; t < 2500; t++) {
        unsigned built = 0;
        reconnect((uint8_t)(1 + rnd(3)));
        while (built < TREE_LAYOUTS) {
            struct window *w = &tree[built];
            if (!make(w, built) || w->total == 0)
                continue;
            struct layout_entry_desc e[MOST_ENTRIES];
            struct layout_desc d = {.type = w->d.type, .count = w->d.count, .entry = e};
            memcpy(e, w->desc, w->d.count * sizeof(e[0]));
            for (uint32_t i = 0; i < d.count; i++)
                e[i].object = e[i].object < FIRST_WINDOW ? region[e[i].object] : window[e[i].object - FIRST_WINDOW];
            cr_assert_eq(bind(a, &window[built], &d, RIGHTS), WC_SUCCESS, "LAYOUT_SEED=%lu: %s", start,
                         layout_error_text(last[0].vendor_err));
            memset(e, 0xff, sizeof(e)); /* it was copied */
            for (unsigned i = 0; i < 3; i++)
                use_window(w, window[built], start);
            built++;
        }
        for (unsigned i = 0; i < TREE_LAYOUTS; i++)
            cr_assert_eq(invalidate(a, window[i]), WC_SUCCESS);
    }
    for (unsigned i = 0; i < REGIONS; i++)
        cr_expect_eq(mr_deregister(fix.e, region[i]), 0, "no window is bound to it any more");
}

/* Thousands of pieces in one packet, from an odd place on. */
Test(layout_window, single_bytes)
{
    struct window *w = &tree[0];
    w->desc[0] = (struct layout_entry_desc){.addr = 1, .length = 1, .repeat = 1, .ndim = 1, .dim = {{2, 1000}}};
    w->d = (struct layout_desc){.type = LAYOUT_INTERLEAVED, .count = 1, .entry = w->desc};
    cr_assert(model(w));
    column(0, 1, 1, 2, 1000, RIGHTS);
    for (uint8_t mtu = 1; mtu <= 3; mtu++) {
        reconnect(mtu);
        column(1, 1, 1, 2, 1000, RIGHTS); /* the QP's windows stay when it is reset */
        for (unsigned i = 0; i < 100; i++)
            use_window(w, window[i % 2], 0);
        cr_assert_eq(invalidate(a, window[1]), WC_SUCCESS);
    }
}

Test(layout_window, a_billion_items)
{
    column(0, 8, 8, 0, 1000000000, RIGHTS);
    fix.bytes[PLAIN] = 0xa5;
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 7999999999, local(0, 1)), WC_SUCCESS);
    cr_expect_eq(fix.bytes[REGION_AT(0) + 15], 0xa5);
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 8000000000, local(0, 1)), WC_REM_ACCESS_ERR);
}

/* --- bounds and rights ------------------------------------------------------------------------------------------------- */

/* 32 bytes: everything beyond is refused before a byte is written, though the first packets would be within. */
Test(layout_window, bounds)
{
    static const struct {
        uint64_t off;
        uint32_t len;
        bool ok;
    } t[] = {{0, 1000, true},
             {999, 1, true},
             {1000, 0, true},
             {5000, 0, true},
             {0, 1001, false},
             {1, 1000, false},
             {1000, 1, false},
             {1001, 1, false},
             {UINT64_MAX, 1, false},
             {UINT64_MAX, 2, false},
             {500, 501, false},
             {1ull << 32, 1, false},
             {UINT64_MAX - 499, 1000, false}};
    column(0, 0, 10, 20, 100, RIGHTS);
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct sge theirs = {.addr = t[i].off, .length = t[i].len, .lkey = window[0]}, mine = local(0, t[i].len);
        struct send_wr by_lkey = {.opcode = WR_RDMA_WRITE, .rkey = plain, .remote_addr = mine.addr};
        enum wc_status remote = t[i].ok ? WC_SUCCESS : WC_REM_ACCESS_ERR, here = t[i].ok ? WC_SUCCESS : WC_LOC_PROT_ERR;
        fix.writes = 0;
        cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], t[i].off, mine), remote, "write %u", i);
        cr_expect(t[i].ok || fix.writes == 0, "write %u: %u", i, fix.writes);
        reconnect(1);
        cr_expect_eq(rdma(WR_RDMA_READ, window[0], t[i].off, mine), remote, "read %u", i);
        reconnect(1);
        if (t[i].len == 0)
            continue;
        cr_expect_eq(done(b, by_lkey, theirs), here, "lkey %u", i);
        reconnect(1);
        by_lkey.opcode = WR_RDMA_READ;
        cr_expect_eq(done(b, by_lkey, theirs), here, "read to lkey %u", i);
        reconnect(1);
        send_recv(mine, theirs);
        cr_expect_eq(last[0].is_recv ? last[0].status : last[1].status, here, "received %u", i);
        reconnect(1);
    }
}

Test(layout_window, rights)
{
    static const uint32_t rights[] = {ACCESS_LOCAL_WRITE, ACCESS_REMOTE_WRITE, ACCESS_REMOTE_READ,
                                      ACCESS_REMOTE_ATOMIC};
    for (uint32_t set = 0; set < 16; set++) {
        uint32_t access = 0;
        for (unsigned i = 0; i < 4; i++)
            access |= set >> i & 1 ? rights[i] : 0;
        column(0, 0, 8, 16, 4, access);
        enum wc_status no = WC_REM_ACCESS_ERR, may[4];
        for (unsigned i = 0; i < 4; i++)
            may[i] = set >> i & 1 ? WC_SUCCESS : i ? no : WC_LOC_PROT_ERR;
        cr_expect_eq(done(b, (struct send_wr){.opcode = WR_RDMA_WRITE, .rkey = plain, .remote_addr = FIX_VA + PLAIN},
                          (struct sge){.addr = 0, .length = 8, .lkey = window[0]}),
                     may[0], "%#x as lkey", access);
        reconnect(1);
        cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 0, local(0, 8)), may[1], "%#x write", access);
        reconnect(1);
        cr_expect_eq(rdma(WR_RDMA_READ, window[0], 0, local(0, 8)), may[2], "%#x read", access);
        reconnect(1);
        cr_expect_eq(rdma(WR_ATOMIC_FETCH_AND_ADD, window[0], 0, local(0, 8)), may[3], "%#x atomic", access);
        reconnect(1);
        cr_assert_eq(invalidate(a, window[0]), WC_SUCCESS);
    }
}

/* A window of type 2B is for the peer of the QP that bound it, and for everyone of the protection domain as an lkey. */
Test(layout_window, belongs_to_its_qp)
{
    column(0, 0, 8, 16, 4, RIGHTS);
    struct send_wr write = {.opcode = WR_RDMA_WRITE, .rkey = window[0]};
    cr_expect_eq(done(a, write, local(0, 8)), WC_REM_ACCESS_ERR, "by the other QP");
    reconnect(1);
    cr_expect_eq(done(b, write, local(0, 8)), WC_SUCCESS);
    qp_destroy(a);
    a = fix_qp(&fix);
    reconnect(1);
    write = (struct send_wr){.opcode = WR_RDMA_WRITE, .rkey = plain, .remote_addr = FIX_VA + PLAIN};
    cr_expect_eq(done(b, write, (struct sge){.length = 8, .lkey = window[0]}), WC_LOC_PROT_ERR, "gone with its QP");
    cr_expect_eq(mr_deregister(fix.e, region[0]), 0);
}

Test(layout_window, atomics)
{
    static const struct {
        uint64_t off;
        enum wc_status status;
    } t[] = {{0, WC_SUCCESS},          {8, WC_REM_ACCESS_ERR}, /* half in this item, half in the next one */
             {12, WC_SUCCESS},         {4, WC_REM_INV_REQ_ERR}, /* resolves to 4 mod 8 */
             {16, WC_REM_INV_REQ_ERR}, {24, WC_REM_ACCESS_ERR}};
    uint64_t value = 5;
    column(0, 8, 12, 24, 2, RIGHTS); /* at 8 … 19 and 32 … 43 */
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct send_wr wr = {
            .opcode = WR_ATOMIC_FETCH_AND_ADD, .rkey = window[0], .remote_addr = t[i].off, .compare_add = 3};
        memcpy(fix.bytes + REGION_AT(0) + 8 + 2 * t[i].off, &value, 8);
        cr_expect_eq(done(b, wr, local(0, 8)), t[i].status, "offset %lu", t[i].off);
        if (t[i].status == WC_SUCCESS) {
            uint64_t now;
            memcpy(&now, fix.bytes + REGION_AT(0) + 8 + 2 * t[i].off, 8);
            cr_expect_eq(now, 8);
            cr_expect_eq(fix.bytes[PLAIN], 5);
        }
        reconnect(1);
    }
    cr_expect_eq(fix.atomics, 2);
}

/* The result of an atomic, and a READ, scattered to single bytes. */
Test(layout_window, results_are_scattered)
{
    column(0, 0, 1, 3, 8, RIGHTS);
    uint64_t value = 0x0807060504030201;
    memcpy(fix.bytes + PLAIN, &value, 8);
    cr_expect_eq(done(b,
                      (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .rkey = plain, .remote_addr = FIX_VA + PLAIN},
                      (struct sge){.length = 8, .lkey = window[0]}),
                 WC_SUCCESS);
    for (unsigned i = 0; i < 8; i++)
        cr_expect_eq(fix.bytes[REGION_AT(0) + 3 * i], i + 1);
}

/* --- lifetimes --------------------------------------------------------------------------------------------------------- */

Test(layout_window, regions_are_pinned)
{
    struct layout_entry_desc e[] = {{.object = region[0], .length = 8},
                                    {.object = region[0], .addr = 16, .length = 8},
                                    {.object = region[1], .length = 8}};
    struct layout_desc d = {.count = 3, .entry = e};
    cr_assert_eq(bind(a, &window[0], &d, RIGHTS), WC_SUCCESS);
    cr_expect_eq(mr_deregister(fix.e, region[0]), -EBUSY);
    cr_expect_eq(mr_deregister(fix.e, region[1]), -EBUSY);
    cr_expect_eq(mr_deregister(fix.e, region[2]), 0);
    cr_expect_eq(mw_dealloc(fix.e, window[0]), 0);
    cr_expect_eq(mr_deregister(fix.e, region[0]), 0);
    cr_expect_eq(mr_deregister(fix.e, region[1]), 0);
}

/* Outer: 8 bytes of region 1, 8 bytes of an inner window, 8 bytes of region 1. */
static void nest(void)
{
    column(0, 0, 8, 16, 4, RIGHTS);
    struct layout_entry_desc e[] = {{.object = region[1], .length = 8},
                                    {.object = window[0], .addr = 4, .length = 8},
                                    {.object = region[1], .addr = 100, .length = 8}};
    struct layout_desc d = {.count = 3, .entry = e};
    cr_assert_eq(bind(a, &window[1], &d, RIGHTS), WC_SUCCESS);
}

static void expect_crossing_fails(const char *when)
{
    fix.writes = 0;
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[1], 0, local(0, 24)), WC_REM_ACCESS_ERR, "%s: across", when);
    cr_expect_eq(fix.writes, 0, "%s: nothing was written", when);
    reconnect(1);
    cr_expect_eq(rdma(WR_RDMA_READ, window[1], 15, local(0, 1)), WC_REM_ACCESS_ERR, "%s: its last byte", when);
    reconnect(1);
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[1], 0, local(0, 8)), WC_SUCCESS, "%s: before it", when);
    cr_expect_eq(rdma(WR_RDMA_READ, window[1], 16, local(0, 8)), WC_SUCCESS, "%s: after it", when);
}

Test(layout_window, inner_windows_may_go)
{
    nest();
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[1], 0, local(0, 24)), WC_SUCCESS);
    cr_assert_eq(invalidate(a, window[0]), WC_SUCCESS);
    expect_crossing_fails("invalidated");
    /* bound again, under the very same key, it is another one */
    window[0]--;
    column(0, 0, 8, 16, 4, RIGHTS);
    expect_crossing_fails("bound again");
    cr_assert_eq(mw_dealloc(fix.e, window[0]), 0);
    expect_crossing_fails("deallocated");
    cr_assert_eq(invalidate(a, window[1]), WC_SUCCESS);
    for (unsigned i = 0; i < REGIONS; i++)
        cr_expect_eq(mr_deregister(fix.e, region[i]), 0, "%u", i);
}

/* Two levels down, nobody looks before the pieces are asked for. But a packet is written as a whole or not at all. */
Test(layout_window, a_packet_is_written_as_a_whole)
{
    column(0, 0, 8, 16, 4, RIGHTS);
    struct layout_entry_desc mid = {.object = window[0], .length = 8};
    struct layout_desc d = {.count = 1, .entry = &mid};
    cr_assert_eq(bind(a, &window[1], &d, RIGHTS), WC_SUCCESS);
    struct layout_entry_desc outer[] = {{.object = region[1], .length = 1, .repeat = 700, .ndim = 1, .dim = {{2, 700}}},
                                        {.object = window[1], .length = 8, .repeat = 1, .ndim = 1, .dim = {{0, 1}}}};
    d = (struct layout_desc){.type = LAYOUT_INTERLEAVED, .count = 2, .entry = outer};
    cr_assert_eq(bind(a, &window[2], &d, RIGHTS), WC_SUCCESS);
    reconnect(3);
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[2], 0, local(0, 708)), WC_SUCCESS);
    cr_assert_eq(invalidate(a, window[0]), WC_SUCCESS);
    fix.writes = 0;
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[2], 0, local(0, 708)), WC_REM_ACCESS_ERR);
    cr_expect_eq(fix.writes, 0);
    reconnect(1);
    cr_expect_eq(rdma(WR_RDMA_READ, window[2], 0, local(0, 708)), WC_REM_ACCESS_ERR);
}

/* Invalidated between the packets of a message: what has come stays, the rest is refused. */
Test(layout_window, invalidated_in_the_middle_of_a_message)
{
    column(0, 0, 8, 16, 128, RIGHTS);
    uint8_t buf[16384], payload[256];
    memset(payload, 0xee, sizeof(payload));
    struct pkt answer,
        first = {.opcode = 0x06, .dest_qpn = qp_number(a), .psn = 7, .payload = payload, .payload_len = 256};
    struct rx_meta meta = {.src_gid = {[15] = 1}, .dst_gid = {[15] = 1}};
    first.migreq = true;
    first.pkey = PKEY_DEFAULT;
    first.reth.rkey = window[0];
    first.reth.length = 1024;
    engine_rx(fix.e, &first, &meta, fix.now);
    cr_expect_eq(fix.bytes[REGION_AT(0) + 31 * 16 + 7], 0xee);
    struct send_wr inv = {.opcode = WR_LOCAL_INV, .inv_rkey = window[0], .flags = SEND_SIGNALED};
    cr_assert_eq(qp_post_send(a, &inv, NULL, NULL, fix.now), 0);
    struct tx_batch batch = {.buf = buf, .cap = sizeof(buf)};
    engine_tx(fix.e, &batch, fix.now);
    struct pkt middle = first;
    middle.opcode = 0x07;
    middle.psn = 8;
    engine_rx(fix.e, &middle, &meta, fix.now);
    batch = (struct tx_batch){.buf = buf, .cap = sizeof(buf)};
    cr_assert_eq(engine_tx(fix.e, &batch, fix.now), 1);
    cr_assert_eq(pkt_decode(buf + batch.pkt[0].off, batch.pkt[0].len, &answer), PKT_OK);
    cr_expect_eq(answer.aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(answer.psn, 8);
    cr_expect_neq(fix.bytes[REGION_AT(0) + 32 * 16], 0xee);
}

/* --- binds that are refused --------------------------------------------------------------------------------------------- */

static uint32_t unbound, other_pd, read_only, not_bindable;

/* Each breaks one rule; the completion says which; the window stays as it was. */
Test(layout_window, refused_binds)
{
    struct layout_entry_desc sound = {.object = region[0], .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}};
    struct mr_init init = {
        .pd = FIX_PD + 1, .space = 1, .va = FIX_VA, .length = 64, .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND};
    uint32_t mine, deep;
    void *mine_shape = fix_zalloc(mw_layout_size(2)), *deep_shape = fix_zalloc(mw_layout_size(1));
    cr_assert_eq(mr_register(fix.e, &init, &other_pd), 0);
    read_only = reg(0, 64, 0, ACCESS_MW_BIND);
    not_bindable = reg(0, 64, 0, ACCESS_LOCAL_WRITE);
    cr_assert_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_1, 2, mine_shape, &mine), 0);
    cr_assert_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, 1, deep_shape, &deep), 0);
    unbound = deep;
    /* a chain as deep as it may be, whose last one may only be read */
    for (unsigned i = 0; i < TREE_LAYOUTS; i++) {
        struct layout_entry_desc e = {.object = i ? window[i - 1] : region[0], .length = 64};
        struct layout_desc d = {.count = 1, .entry = &e};
        cr_assert_eq(bind(a, &window[i], &d, i < 7 ? RIGHTS : ACCESS_REMOTE_READ), WC_SUCCESS);
    }
    struct {
        enum layout_error error;
        uint32_t type, count;
        struct layout_entry_desc e; /* the second one of two */
        uint32_t access;
    } t[] = {
        {LAYOUT_OK, LAYOUT_INTERLEAVED, 2, sound, RIGHTS},
        {LAYOUT_E_TYPE, 2, 2, sound, RIGHTS},
        {LAYOUT_E_NO_ENTRIES, LAYOUT_INTERLEAVED, 0, sound, RIGHTS},
        {LAYOUT_E_ENTRIES, LAYOUT_INTERLEAVED, 3, sound, RIGHTS},
        {LAYOUT_E_MIXED_STRIDED, LAYOUT_COMPOSITE, 2, sound, RIGHTS},
        {LAYOUT_E_LENGTH,
         LAYOUT_INTERLEAVED,
         2,
         {.object = region[0], .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
        {LAYOUT_E_OUTSIDE,
         LAYOUT_INTERLEAVED,
         2,
         {.object = region[0], .length = 8, .repeat = 1, .ndim = 1, .dim = {{256, 9}}},
         RIGHTS},
        {LAYOUT_E_OBJECT,
         LAYOUT_INTERLEAVED,
         2,
         {.object = region[0] ^ 1, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
        {LAYOUT_E_PD,
         LAYOUT_INTERLEAVED,
         2,
         {.object = other_pd, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
        {LAYOUT_E_UNBOUND,
         LAYOUT_INTERLEAVED,
         2,
         {.object = unbound, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
        {LAYOUT_E_NOT_BINDABLE,
         LAYOUT_INTERLEAVED,
         2,
         {.object = not_bindable, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
        {LAYOUT_E_MR_ACCESS,
         LAYOUT_INTERLEAVED,
         2,
         {.object = read_only, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         ACCESS_REMOTE_WRITE},
        {LAYOUT_E_MR_ACCESS,
         LAYOUT_INTERLEAVED,
         2,
         {.object = read_only, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         ACCESS_LOCAL_WRITE},
        {LAYOUT_OK,
         LAYOUT_INTERLEAVED,
         2,
         {.object = read_only, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         ACCESS_REMOTE_READ},
        {LAYOUT_E_DEPTH,
         LAYOUT_INTERLEAVED,
         2,
         {.object = window[7], .length = 8, .repeat = 1, .ndim = 1, .dim = {{8, 4}}},
         ACCESS_REMOTE_READ},
        {LAYOUT_OK,
         LAYOUT_INTERLEAVED,
         2,
         {.object = window[6], .length = 8, .repeat = 1, .ndim = 1, .dim = {{8, 4}}},
         RIGHTS},
        {LAYOUT_E_OUTSIDE,
         LAYOUT_INTERLEAVED,
         2,
         {.object = window[6], .length = 8, .repeat = 1, .ndim = 1, .dim = {{19, 4}}},
         RIGHTS},
        {LAYOUT_E_SELF,
         LAYOUT_INTERLEAVED,
         2,
         {.object = 0, .length = 8, .repeat = 1, .ndim = 1, .dim = {{16, 4}}},
         RIGHTS},
    };
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct layout_entry_desc e[] = {sound, t[i].e};
        struct layout_desc d = {.type = t[i].type, .count = t[i].count, .entry = e};
        if (t[i].error == LAYOUT_E_SELF)
            e[1].object = mine;
        struct send_wr wr = {
            .opcode = WR_BIND_MW,
            .bind = {
                .mw_key = mine, .new_key = (mine & ~0xffu) | ((mine + 1) & 0xff), .access = t[i].access, .layout = &d}};
        uint32_t was = mine;
        enum wc_status status = done(a, wr, (struct sge){0});
        cr_expect_eq(status, t[i].error ? WC_MW_BIND_ERR : WC_SUCCESS, "%u: %s", i, layout_error_text(t[i].error));
        cr_expect_eq(last[0].vendor_err, t[i].error, "%u: %s", i, layout_error_text(last[0].vendor_err));
        if (t[i].error == LAYOUT_OK) {
            mine = wr.bind.new_key;
            cr_expect_eq(rdma(WR_RDMA_READ, was, 0, local(0, 8)), WC_REM_ACCESS_ERR, "%u: the old key", i);
        } else {
            reconnect(1);
            cr_expect_eq(rdma(WR_RDMA_READ, wr.bind.new_key, 0, local(0, 8)), WC_REM_ACCESS_ERR, "%u: the new key", i);
        }
        reconnect(1);
        cr_expect_eq(rdma(WR_RDMA_READ, mine, 0, local(0, 64)), WC_SUCCESS, "%u: works", i);
    }
    /* a window that was not made for it, and one of type 2B that is bound already */
    struct layout_desc d = {.type = LAYOUT_INTERLEAVED, .count = 1, .entry = &sound};
    uint32_t ordinary;
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &ordinary), 0);
    cr_expect_eq(bind(a, &ordinary, &d, ACCESS_REMOTE_READ), WC_MW_BIND_ERR);
    cr_expect_eq(last[0].vendor_err, LAYOUT_E_ENTRIES);
    reconnect(1);
    cr_expect_eq(bind(a, &window[3], &d, RIGHTS), WC_MW_BIND_ERR);
    reconnect(1);
    cr_expect_eq(rdma(WR_RDMA_READ, window[3], 0, local(0, 64)), WC_SUCCESS);
    free(mine_shape);
    free(deep_shape);
}

Test(layout_window, how_many_entries)
{
    uint32_t key;
    void *mem = fix_zalloc(mw_layout_size(1));
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, 0, mem, &key), -EINVAL);
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, LAYOUT_MAX_ENTRIES + 1, mem, &key), -EINVAL);
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, 3, 1, mem, &key), -EINVAL);
    free(mem);
}

/* An ordinary range of such a window has an lkey, too, if it was bound with the right. */
Test(layout_window, lkeys_of_ranges)
{
    for (unsigned i = 0; i < 2; i++) {
        struct send_wr wr = {.opcode = WR_BIND_MW,
                             .bind = {.mw_key = window[i],
                                      .mr_key = region[0],
                                      .addr = 100,
                                      .length = 50,
                                      .access = ACCESS_ZERO_BASED | (i ? ACCESS_LOCAL_WRITE : 0)}};
        cr_assert_eq(done(a, wr, (struct sge){0}), WC_SUCCESS);
        struct sge to = {.addr = 10, .length = 8, .lkey = window[i]};
        memset(fix.bytes + REGION_AT(0) + 110, 0, 8);
        send_recv(local(0, 8), to);
        unsigned recv = last[0].is_recv ? 0 : 1;
        cr_expect_eq(last[recv].status, i ? WC_SUCCESS : WC_LOC_PROT_ERR);
        cr_expect_eq(last[recv].inline_len, 0, "its program does not know where that is");
        cr_expect_eq(memcmp(fix.bytes + REGION_AT(0) + 110, fix.bytes + PLAIN, 8) == 0, i == 1);
        reconnect(1);
    }
}

/* Nor does it know, of a region whose addresses are not the program's. */
Test(layout_window, regions_with_other_addresses_get_their_bytes)
{
    send_recv(local(0, 8), (struct sge){.addr = 16, .length = 8, .lkey = region[0]});
    cr_expect_eq(memcmp(fix.bytes + REGION_AT(0) + 16, fix.bytes + PLAIN, 8), 0);
}
