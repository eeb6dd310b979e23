// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows: which binds are permitted, and what a peer can do with the window. The test sends the peer's
 * requests itself. */
#include "tests/unit/core/mw_fixture.h"

TestSuite(mw, .init = setup, .fini = teardown);

/* --- allocation -------------------------------------------------------------------------------- */

Test(mw, windows_have_a_type_and_a_domain)
{
    uint32_t key;
    cr_expect_eq(mw_alloc(fix.e, FIX_PD, 0, &key), -EINVAL);
    cr_expect_eq(mw_alloc(fix.e, FIX_PD, 3, &key), -EINVAL);
    cr_expect_eq(mw_alloc(fix.e, 0, MW_TYPE_1, &key), -EINVAL);
}

Test(mw, windows_and_regions_share_the_table)
{
    uint32_t key[7], more;
    for (int i = 0; i < 7; i++)
        key[i] = alloc((uint8_t)(1 + i % 2));
    cr_expect_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_1, &more), -ENOMEM);
    cr_expect_eq(mr_deregister(fix.e, key[0]), -ENOENT, "it is no region");
    cr_expect_eq(mw_dealloc(fix.e, mr), -ENOENT, "it is no window");
    cr_expect_eq(mw_dealloc(fix.e, tagged(key[3], 99)), 0, "the index names it");
    cr_expect_eq(mw_dealloc(fix.e, key[3]), -ENOENT, "twice");
    cr_expect_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &more), 0);
    cr_expect_neq(more, key[3], "a key does not come back at once");
}

Test(mw, an_unbound_window_opens_nothing)
{
    cr_expect_eq(ask(READ, alloc(MW_TYPE_1), IOVA, 8), NAK_REMOTE_ACCESS);
    cr_expect_eq(ask(READ, alloc(MW_TYPE_2), IOVA, 8), NAK_REMOTE_ACCESS);
    cr_expect_eq(ask(READ, alloc(MW_TYPE_2), 0, 8), NAK_REMOTE_ACCESS);
}

/* --- binding ----------------------------------------------------------------------------------- */

/* Each row changes one thing in a valid bind: bytes 256 … 511 of a region, for reading and writing. */
struct row {
    const char *what;
    uint32_t mr_access, mr_pd, mw_pd; /* 0: FIX_PD */
    uint32_t access;
    uint64_t addr, length;
    /* what is wrong with type 1's new key, and with the region's key */
    bool no_key, key_of_other, wrong_lkey, lkey_of_window;
    bool ok1, ok2; /* whether a window of type 1, of type 2 may be bound like this */
};
#define R(...)                                                                                                         \
    {                                                                                                                  \
        .mr_access = LW | BIND, .access = RW | RR, .addr = IOVA + 256, .length = 256, __VA_ARGS__                      \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
/* clang-format off */
static const struct row rows[] = {
    R(.what = "as it should be", .ok1 = true, .ok2 = true),
    R(.what = "no MW_BIND", .mr_access = LW),
    R(.what = "no MW_BIND, but remote rights", .mr_access = LW | RW | RR),
    R(.what = "WRITE without LOCAL_WRITE", .mr_access = BIND),
    R(.what = "ATOMIC without LOCAL_WRITE", .mr_access = BIND | RR, .access = RA),
    R(.what = "READ without LOCAL_WRITE", .mr_access = BIND, .access = RR, .ok1 = true, .ok2 = true),
    R(.what = "no rights", .access = 0, .ok1 = true, .ok2 = true),
    R(.what = "rights that windows don't have", .access = LW | RR),
    R(.what = "MW_BIND for a window", .access = BIND | RR),
    R(.what = "unknown rights", .access = 1u << 20),
    R(.what = "zero-based", .access = RW | RR | ZERO, .ok2 = true),
    R(.what = "region of another domain", .mr_pd = OTHER_PD),
    R(.what = "window of another domain", .mw_pd = OTHER_PD),
    R(.what = "both of another domain than the QP", .mr_pd = OTHER_PD, .mw_pd = OTHER_PD),
    R(.what = "all of the region", .addr = IOVA, .length = LENGTH, .ok1 = true, .ok2 = true),
    R(.what = "its last byte", .addr = IOVA + LENGTH - 1, .length = 1, .ok1 = true, .ok2 = true),
    R(.what = "a byte more", .addr = IOVA, .length = LENGTH + 1),
    R(.what = "a byte behind", .addr = IOVA + LENGTH, .length = 1),
    R(.what = "a byte before", .addr = IOVA - 1, .length = 2),
    R(.what = "a range that wraps", .addr = IOVA + 8, .length = UINT64_MAX - 4),
    R(.what = "an address near the top", .addr = UINT64_MAX - 7, .length = 8),
    R(.what = "nothing: unbinds type 1", .length = 0, .ok1 = true),
    R(.what = "nothing, of nothing", .length = 0, .wrong_lkey = true, .mr_access = 0, .ok1 = true),
    R(.what = "no new key", .no_key = true, .ok2 = true),
    R(.what = "another window's new key", .key_of_other = true),
    R(.what = "a stale lkey", .wrong_lkey = true),
    R(.what = "a window beneath", .lkey_of_window = true),
};
/* clang-format on */
#pragma GCC diagnostic pop

static void check_row(const struct row *r, uint8_t type)
{
    uint32_t region = reg(r->mr_pd ? r->mr_pd : FIX_PD, r->mr_access);
    uint32_t beneath = window_2(RR);
    uint32_t key = 0;
    cr_assert_eq(mw_alloc(fix.e, r->mw_pd ? r->mw_pd : FIX_PD, type, &key), 0);
    uint32_t new = tagged(key, (uint8_t)(key + 1));
    struct mw_bind b = {.mw_key = type == MW_TYPE_1 ? key : new,
                        .new_key = type == MW_TYPE_1 && !r->no_key ? new : 0,
                        .mr_key = r->wrong_lkey       ? region ^ 1
                                  : r->lkey_of_window ? beneath
                                                      : region,
                        .access = r->access,
                        .addr = r->addr,
                        .length = r->length};
    if (r->key_of_other)
        b.new_key = new + 0x100;
    bool ok = type == MW_TYPE_1 ? r->ok1 : r->ok2;
    cr_expect_eq(bind_it(b), ok ? WC_SUCCESS : WC_MW_BIND_ERR, "type %u: %s", type, r->what);
    int busy = ok && r->length ? -EBUSY : 0;
    cr_expect_eq(mr_deregister(fix.e, region), busy, "type %u: %s: region", type, r->what);
    if (!ok) {
        renew();
        cr_expect_eq(ask(READ, new, r->addr, 1), NAK_REMOTE_ACCESS, "type %u: %s: opens", type, r->what);
    }
    cr_expect_eq(mw_dealloc(fix.e, key), 0);
    cr_expect_eq(mr_deregister(fix.e, region), busy ? 0 : -ENOENT);
    cr_expect_eq(mw_dealloc(fix.e, beneath), 0);
}

Test(mw, binds_that_are_allowed_and_refused)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row(&rows[i], MW_TYPE_1);
        renew();
        check_row(&rows[i], MW_TYPE_2);
        renew();
    }
}

Test(mw, keys_of_other_kinds_are_not_bound)
{
    uint32_t gone = alloc(MW_TYPE_1);
    cr_assert_eq(mw_dealloc(fix.e, gone), 0);
    const uint32_t keys[] = {mr, gone, 0, 0x123456 << 8, UINT32_MAX};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct mw_bind b = {.mw_key = keys[i], .new_key = keys[i] ^ 1, .mr_key = mr, .addr = IOVA, .length = 8};
        cr_expect_eq(bind_it(b), WC_MW_BIND_ERR, "key %#x", keys[i]);
        renew();
    }
    cr_expect_eq(mr_deregister(fix.e, mr), 0);
}

Test(mw, type_2_is_bound_once)
{
    uint32_t key = window_2(RR);
    struct mw_bind b = {.mw_key = key ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_expect_eq(bind_it(b), WC_MW_BIND_ERR, "it is not free");
}

Test(mw, type_2_takes_the_users_tag)
{
    uint32_t key = alloc(MW_TYPE_2);
    for (unsigned tag = 0; tag < 256; tag++) {
        uint32_t now = tagged(key, (uint8_t)tag);
        struct mw_bind b = {.mw_key = now, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
        cr_assert_eq(bind_it(b), WC_SUCCESS);
        cr_expect_eq(ask(READ, now, IOVA, 8), 0);
        cr_assert_eq(invalidate(now), WC_SUCCESS);
    }
}

/* The owner tells its user the next key before the bind runs, and does not hear of binds that fail. So the window
 * takes whatever key the owner names, and only the index identifies the window. */
Test(mw, type_1_takes_the_key_that_the_bind_returned)
{
    uint32_t key = alloc(MW_TYPE_1);
    struct mw_bind b = {.mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    const uint8_t tags[] = {1, 2, 200, 201, 7, 7};
    uint32_t last = key;
    for (size_t i = 0; i < sizeof tags; i++) {
        b.mw_key = tagged(key, (uint8_t)(tags[i] - 1));
        b.new_key = tagged(key, tags[i]);
        cr_assert_eq(bind_it(b), WC_SUCCESS);
        cr_expect_eq(ask(READ, b.new_key, IOVA, 8), 0);
        if (last != b.new_key)
            cr_expect_eq(ask(READ, last, IOVA, 8), NAK_REMOTE_ACCESS, "the former key is stale");
        last = b.new_key;
    }
    b.mw_key = last;
    b.new_key = tagged(key, 90);
    b.mr_key = 0;
    cr_assert_eq(bind_it(b), WC_MW_BIND_ERR);
    renew();
    cr_expect_eq(ask(READ, last, IOVA, 8), 0, "a bind that fails changes nothing");
}

Test(mw, a_thousand_rebinds)
{
    uint32_t key = alloc(MW_TYPE_1), other = alloc(MW_TYPE_2);
    for (unsigned i = 1; i <= 1000; i++) {
        struct mw_bind b = {.mw_key = key, .new_key = tagged(key, (uint8_t)(key + 1)), .mr_key = mr};
        b.access = RR | RW;
        b.addr = IOVA + i % 512;
        b.length = 1 + i % 100;
        cr_assert_eq(bind_it(b), WC_SUCCESS);
        key = b.new_key;
        b.mw_key = other = tagged(other, (uint8_t)i);
        b.new_key = 0;
        cr_assert_eq(bind_it(b), WC_SUCCESS);
        cr_expect_eq(ask(READ, key, b.addr, (uint32_t)b.length), 0);
        cr_expect_eq(ask(WRITE, other, b.addr, (uint32_t)b.length), 0);
        cr_assert_eq(invalidate(other), WC_SUCCESS);
    }
    cr_expect_eq(mr_deregister(fix.e, mr), -EBUSY, "type 1 is still bound");
    cr_expect_eq(mw_dealloc(fix.e, key), 0);
    cr_expect_eq(mr_deregister(fix.e, mr), 0, "as often unbound as bound");
}

/* --- access ------------------------------------------------------------------------------------ */

Test(mw, each_right_allows_its_own_operation_only)
{
    static const uint32_t right[] = {[WRITE] = RW, [READ] = RR, [ATOMIC] = RA};
    for (unsigned access = 0; access < 16; access += 2) {
        for (int kind = WRITE; kind <= ATOMIC; kind++) {
            uint32_t key = window_2(access);
            uint8_t want = access & right[kind] ? 0 : NAK_REMOTE_ACCESS;
            cr_expect_eq(ask((enum kind)kind, key, IOVA, 8), want, "access %#x, operation %d", access, kind);
            cr_expect_eq(mw_dealloc(fix.e, key), 0);
        }
    }
    cr_expect_eq(ask(READ, mr, IOVA, 8), NAK_REMOTE_ACCESS, "the region itself has no remote rights");
}

static void check_bounds(uint32_t key, uint64_t first, uint64_t va)
{
    static const struct {
        uint64_t off;
        uint32_t len;
        bool ok;
    } bounds[] = {
        {0, 1, true},
        {0, 256, true},
        {255, 1, true},
        {256, 1, false},
        {255, 2, false},
        {1, 256, false},
        {(uint64_t)-1, 1, false},
        {(uint64_t)-1, 2, false},
        {(uint64_t)-1, 256, false},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint32_t at = 100;
        memset(fix.bytes, 0x77, FIX_MEM);
        struct qp *q = qp;
        uint8_t s = ask_of(q, &at, WRITE, key, first + bounds[i].off, bounds[i].len);
        cr_expect_eq(s, bounds[i].ok ? 0 : NAK_REMOTE_ACCESS, "row %zu: %#x", i, s);
        for (uint32_t k = 0; k < FIX_MEM; k++) {
            uint64_t in = FIX_VA + k - va - bounds[i].off;
            cr_assert_eq(fix.bytes[k], bounds[i].ok && in < bounds[i].len ? 0 : 0x77, "row %zu: byte %u", i, k);
        }
        renew();
        struct mw_bind b = {.mr_key = mr, .access = RW, .addr = IOVA + 512, .length = 256};
        b.mw_key = tagged(key, 0x2b);
        if (first == 0)
            b.access |= ZERO;
        cr_assert_eq(bind_it(b), WC_SUCCESS, "bound again, since its QP went");
    }
}

Test(mw, bounds_are_exact)
{
    uint32_t key = tagged(alloc(MW_TYPE_2), 0x2b);
    struct mw_bind b = {.mw_key = key, .mr_key = mr, .access = RW, .addr = IOVA + 512, .length = 256};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    check_bounds(key, IOVA + 512, FIX_VA + START + 512);
}

Test(mw, zero_based_windows_count_from_their_start)
{
    uint32_t key = tagged(alloc(MW_TYPE_2), 0x2b);
    struct mw_bind b = {.mw_key = key, .mr_key = mr, .access = RW | ZERO, .addr = IOVA + 512, .length = 256};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    check_bounds(key, 0, FIX_VA + START + 512);
}

Test(mw, in_a_zero_based_region_addresses_are_offsets)
{
    struct mr_init init = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA + START, .length = LENGTH, .access = LW | BIND | ZERO};
    uint32_t region, key = alloc(MW_TYPE_1);
    cr_assert_eq(mr_register(fix.e, &init, &region), 0);
    struct mw_bind b = {.mw_key = key, .new_key = key ^ 1, .mr_key = region, .access = RR, .addr = 16, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_expect_eq(ask(READ, key ^ 1, 16, 8), 0);
    cr_expect_eq(ask(READ, key ^ 1, 0, 8), NAK_REMOTE_ACCESS);
    init.iova = 8;
    cr_expect_eq(mr_register(fix.e, &init, &region), -EINVAL, "zero-based, and does not begin at 0");
}

Test(mw, type_1_opens_for_every_qp_of_its_domain_and_type_2_for_one)
{
    struct qp *second = fix_qp(&fix);
    fix_bring(second, QPS_RTS);
    uint32_t one = alloc(MW_TYPE_1), two = window_2(RR), at = 100;
    struct mw_bind b = {.mw_key = one, .new_key = one ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_expect_eq(ask(READ, two, IOVA, 8), 0);
    cr_expect_eq(ask_of(second, &at, READ, one ^ 1, IOVA, 8), 0);
    cr_expect_eq(ask_of(second, &at, READ, two, IOVA, 8), NAK_REMOTE_ACCESS);
}

Test(mw, other_domains_cannot_use_the_window)
{
    struct qp_init init = {
        .type = QPT_RC, .pd = OTHER_PD, .caps = {4, 4, 2, 2, 32}, .send_cq = &fix, .recv_cq = &fix, .owner = &fix};
    struct qp *second;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    uint32_t at = 100, one = alloc(MW_TYPE_1);
    struct mw_bind b = {.mw_key = one, .new_key = one ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(qp_create(fix.e, &init, mem, &second), 0);
    fix_bring(second, QPS_RTS);
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_expect_eq(ask_of(second, &at, READ, one ^ 1, IOVA, 8), NAK_REMOTE_ACCESS);
}

Test(mw, windows_are_no_lkeys)
{
    static uint8_t buf[16384];
    struct tx_batch batch = {.buf = buf, .cap = sizeof buf};
    uint32_t key = window_2(RW | RR);
    struct sge sge = {IOVA, 8, key};
    struct send_wr wr = {.opcode = WR_RDMA_READ, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
    cr_expect_eq(engine_tx(fix.e, &batch, fix.now), 0u);
    cr_assert_not_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_peek_completion(fix.e)->status, WC_LOC_PROT_ERR);
}

/* --- the region beneath ------------------------------------------------------------------------ */

Test(mw, a_region_with_windows_cannot_be_changed)
{
    struct mr_init same = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA + START, .iova = IOVA, .length = LENGTH, .access = LW | BIND | RR};
    uint32_t key = window_2(RR | RW);
    cr_expect_eq(mr_reregister(fix.e, mr, &same), 0, "more rights");
    for (int i = 0; i < 7; i++) {
        struct mr_init init = same;
        init.pd += i == 0;
        init.va += i == 1;
        init.iova += i == 2;
        init.length -= i == 3;
        init.space += i == 4;
        init.access &= ~(uint32_t)(i == 5 ? LW : i == 6 ? BIND : 0);
        cr_expect_eq(mr_reregister(fix.e, mr, &init), -EBUSY, "change %d", i);
    }
    cr_expect_eq(mr_deregister(fix.e, mr), -EBUSY);
    cr_expect_eq(ask(WRITE, key, IOVA, 8), 0, "as before");
    cr_assert_eq(invalidate(key), WC_SUCCESS);
    same.length--;
    cr_expect_eq(mr_reregister(fix.e, mr, &same), 0);
    cr_expect_eq(mr_deregister(fix.e, mr), 0);
}

Test(mw, rebinding_to_another_region_frees_the_first)
{
    uint32_t key = alloc(MW_TYPE_1), second = reg(FIX_PD, LW | BIND);
    struct mw_bind b = {.mw_key = key, .new_key = key ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    b.mr_key = second;
    b.new_key = key ^ 2;
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_expect_eq(mr_deregister(fix.e, mr), 0);
    cr_expect_eq(mr_deregister(fix.e, second), -EBUSY);
    b.length = 0;
    b.new_key = key ^ 3;
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_expect_eq(ask(READ, key ^ 3, IOVA, 8), NAK_REMOTE_ACCESS, "unbound");
    cr_expect_eq(mr_deregister(fix.e, second), 0);
}

Test(mw, windows_of_a_destroyed_qp_are_free)
{
    uint32_t key[3], one = alloc(MW_TYPE_1);
    for (int i = 0; i < 3; i++)
        key[i] = window_2(RR);
    struct mw_bind b = {.mw_key = one, .new_key = one ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    cr_assert_eq(invalidate(key[1]), WC_SUCCESS, "the one in the middle of the list");
    renew();
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask(READ, key[i], IOVA, 8), NAK_REMOTE_ACCESS);
    cr_expect_eq(ask(READ, one ^ 1, IOVA, 8), 0, "type 1 is not the QP's");
    cr_expect_eq(mw_dealloc(fix.e, one), 0);
    cr_expect_eq(mr_deregister(fix.e, mr), 0);
    mr = reg(FIX_PD, LW | BIND);
    b = (struct mw_bind){.mw_key = key[2], .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_expect_eq(bind_it(b), WC_SUCCESS, "and can be bound again");
}
