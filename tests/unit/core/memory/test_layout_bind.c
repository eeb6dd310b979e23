// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts: refused binds, and the other checks of a bind. */
#include "tests/unit/core/layout_fixture.h"

TestSuite(layout_bind, .init = setup, .fini = teardown);

static uint32_t unbound, other_pd, read_only, not_bindable;

/* Each bind breaks one rule. The completion reports which, and the window does not change. */
Test(layout_bind, refused_binds)
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
    /* a chain of the maximum depth, whose innermost window may only be read */
    for (unsigned i = 0; i < TREE_LAYOUTS; i++) {
        struct layout_entry_desc e = {.object = i ? window[i - 1] : region[0], .length = 64};
        struct layout_desc d = {.count = 1, .entry = &e};
        cr_assert_eq(bind(a, &window[i], &d, i < 7 ? RIGHTS : ACCESS_REMOTE_READ), WC_SUCCESS);
    }
    struct {
        enum layout_error error;
        uint32_t type, count;
        struct layout_entry_desc e; /* the second of two entries */
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
    /* a window that was not created for layouts, and one of type 2B that is already bound */
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

Test(layout_bind, how_many_entries)
{
    uint32_t key;
    void *mem = fix_zalloc(mw_layout_size(1));
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, 0, mem, &key), -EINVAL);
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, MW_TYPE_2, LAYOUT_MAX_ENTRIES + 1, mem, &key), -EINVAL);
    cr_expect_eq(mw_alloc_layout(fix.e, FIX_PD, 3, 1, mem, &key), -EINVAL);
    free(mem);
}

/* An ordinary range of such a window has an lkey too, if it was bound with that right. */
Test(layout_bind, lkeys_of_ranges)
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

/* The program does not know either where the bytes of a region with other addresses are, so the daemon writes them. */
Test(layout_bind, regions_with_other_addresses_get_their_bytes)
{
    send_recv(local(0, 8), (struct sge){.addr = 16, .length = 8, .lkey = region[0]});
    cr_expect_eq(memcmp(fix.bytes + REGION_AT(0) + 16, fix.bytes + PLAIN, 8), 0);
}
