// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts in the engine: random ones in every use, compared with flat models, while all other
 * memory is watched. Also rights, bounds, atomics and lifetimes. */
#include "tests/unit/core/layout_fixture.h"

TestSuite(layout_window, .init = setup, .fini = teardown);

/* --- every use, random layouts ----------------------------------------------------------------- */

static uint8_t before[FIX_MEM];
static const char *use;

static uint32_t where(const struct window *w, uint64_t off)
{
    return REGION_AT(w->model[off].object) + w->model[off].addr;
}

/* The memory is unchanged, except for [off, off + len) of the window, which must hold the bytes from `from` on. */
static void check_written(const struct window *w, uint32_t off, uint32_t from, uint32_t len, uint64_t start)
{
    for (uint32_t i = 0; i < len; i++)
        before[where(w, off + i)] = before[from + i];
    for (uint32_t i = 0; i < FIX_MEM; i++)
        cr_assert_eq(fix.bytes[i], before[i], "LAYOUT_SEED=%lu %s: byte %u after %u bytes at %u", start, use, i, len,
                     off);
}

/* The plain buffer from `to` on must hold [off, off + len) of the window, and everything else must be unchanged. */
static void check_read(const struct window *w, uint32_t off, uint32_t to, uint32_t len, uint64_t start)
{
    for (uint32_t i = 0; i < len; i++)
        before[to + i] = before[where(w, off + i)];
    for (uint32_t i = 0; i < FIX_MEM; i++)
        cr_assert_eq(fix.bytes[i], before[i], "LAYOUT_SEED=%lu %s: byte %u after %u bytes at %u", start, use, i, len,
                     off);
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

Test(layout_window, random_layouts_in_every_use, .timeout = 300)
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
            memset(e, 0xff, sizeof(e)); /* the engine has copied it */
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

/* Thousands of pieces in one packet, from an odd offset on. */
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

/* The engine passes as many pieces at once as a vectored system call takes. */
Test(layout_window, few_calls)
{
    reconnect(3);
    column(0, 1, 1, 2, 1000, RIGHTS);
    fix.reads = fix.writes = 0;
    cr_expect_eq(rdma(WR_RDMA_READ, window[0], 0, local(0, 1000)), WC_SUCCESS);
    cr_expect_eq(fix.reads, 1, "%u calls to gather", fix.reads);
    fix.writes = 0;
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 0, local(0, 1000)), WC_SUCCESS);
    cr_expect_eq(fix.writes, 1, "%u calls to scatter", fix.writes);
}

Test(layout_window, a_billion_items)
{
    column(0, 8, 8, 0, 1000000000, RIGHTS);
    fix.bytes[PLAIN] = 0xa5;
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 7999999999, local(0, 1)), WC_SUCCESS);
    cr_expect_eq(fix.bytes[REGION_AT(0) + 15], 0xa5);
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[0], 8000000000, local(0, 1)), WC_REM_ACCESS_ERR);
}

/* --- bounds and rights ------------------------------------------------------------------------- */

/* The window has 32 bytes. A request beyond them is refused before a byte is written, even if its first packets are
 * within. */
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

/* A window of type 2B is for the peer of the QP that bound it. As an lkey, it is for every QP of the protection
 * domain. */
Test(layout_window, a_window_belongs_to_its_qp)
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
    } t[] = {{0, WC_SUCCESS},          {8, WC_REM_ACCESS_ERR}, /* half in one item, half in the next one */
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

/* The result of an atomic and the data of a READ are scattered to single bytes. */
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

/* --- lifetimes --------------------------------------------------------------------------------- */

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

/* The outer window: 8 bytes of region 1, 8 bytes of an inner window, 8 bytes of region 1. */
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

Test(layout_window, inner_windows_may_be_deallocated)
{
    nest();
    cr_expect_eq(rdma(WR_RDMA_WRITE, window[1], 0, local(0, 24)), WC_SUCCESS);
    cr_assert_eq(invalidate(a, window[0]), WC_SUCCESS);
    expect_crossing_fails("invalidated");
    /* after another bind it is another window, even with the same key */
    window[0]--;
    column(0, 0, 8, 16, 4, RIGHTS);
    expect_crossing_fails("bound again");
    cr_assert_eq(mw_dealloc(fix.e, window[0]), 0);
    expect_crossing_fails("deallocated");
    cr_assert_eq(invalidate(a, window[1]), WC_SUCCESS);
    for (unsigned i = 0; i < REGIONS; i++)
        cr_expect_eq(mr_deregister(fix.e, region[i]), 0, "%u", i);
}

/* Two levels down, the access is checked only when the pieces are needed. But a packet is written as a whole or not
 * at all. */
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

/* The window is invalidated between the packets of a message. The bytes that arrived stay, and the rest is refused. */
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
    cr_assert_eq(qp_post_send(a, &inv, NULL, NULL), 0);
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

/* A READ that is requested again is read again, and so its key is checked again. The network may have duplicated the
 * request, so nobody is at fault: there is no answer. */
Test(layout_window, a_repeated_read_after_invalidation)
{
    column(0, 0, 8, 16, 4, RIGHTS);
    uint8_t buf[16384];
    struct pkt answer,
        read = {.opcode = 0x0c, .dest_qpn = qp_number(a), .psn = 7, .migreq = true, .pkey = PKEY_DEFAULT};
    struct rx_meta meta = {.src_gid = {[15] = 1}, .dst_gid = {[15] = 1}};
    struct tx_batch batch = {.buf = buf, .cap = sizeof(buf)};
    read.reth.rkey = window[0];
    read.reth.length = 16;
    for (unsigned i = 0; i < 2; i++) {
        engine_rx(fix.e, &read, &meta, fix.now);
        batch = (struct tx_batch){.buf = buf, .cap = sizeof(buf)};
        cr_assert_eq(engine_tx(fix.e, &batch, fix.now), 1, "time %u", i);
        cr_assert_eq(pkt_decode(buf + batch.pkt[0].off, batch.pkt[0].len, &answer), PKT_OK);
        cr_expect(answer.opcode == 0x10 && answer.psn == 7 &&
                      memcmp(answer.payload + 8, fix.bytes + REGION_AT(0) + 16, 8) == 0,
                  "time %u", i);
    }
    struct send_wr inv = {.opcode = WR_LOCAL_INV, .inv_rkey = window[0]};
    cr_assert_eq(qp_post_send(a, &inv, NULL, NULL), 0);
    batch = (struct tx_batch){.buf = buf, .cap = sizeof(buf)};
    engine_tx(fix.e, &batch, fix.now);
    engine_rx(fix.e, &read, &meta, fix.now);
    batch = (struct tx_batch){.buf = buf, .cap = sizeof(buf)};
    cr_expect_eq(engine_tx(fix.e, &batch, fix.now), 0, "nothing is told of what the window showed");
    cr_expect_eq(qp_state(a), QPS_RTS);
    read.psn = 8; /* but a new one is refused */
    engine_rx(fix.e, &read, &meta, fix.now);
    batch = (struct tx_batch){.buf = buf, .cap = sizeof(buf)};
    cr_assert_eq(engine_tx(fix.e, &batch, fix.now), 1);
    cr_assert_eq(pkt_decode(buf + batch.pkt[0].off, batch.pkt[0].len, &answer), PKT_OK);
    cr_expect(answer.psn == 8 && answer.aeth.syndrome == NAK_REMOTE_ACCESS);
}

/* A window's lkey is for every QP of its protection domain, and for no other. */
Test(layout_window, lkeys_belong_to_their_domain)
{
    static uint8_t buf[16384];
    struct qp_init init = {
        .type = QPT_RC, .pd = FIX_PD + 1, .caps = {4, 4, 2, 2, 32}, .send_cq = &fix, .recv_cq = &fix, .owner = &fix};
    struct tx_batch batch = {.buf = buf, .cap = sizeof(buf)};
    struct sge sge = {.length = 8, .lkey = window[0]};
    struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1};
    struct qp *stranger;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &stranger), 0);
    fix_bring(stranger, QPS_RTS);
    column(0, 0, 8, 16, 4, RIGHTS);
    sge.lkey = window[0];
    cr_assert_eq(qp_post_send(stranger, &wr, &sge, NULL), 0);
    cr_expect_eq(engine_tx(fix.e, &batch, fix.now), 0);
    cr_assert_not_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_peek_completion(fix.e)->status, WC_LOC_PROT_ERR);
}
