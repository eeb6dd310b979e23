// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching into strided memory. A tagged buffer may be a memory window over a layout. So a message becomes a
 * column of a matrix without a copy. */
#include "daemon/core/memory/layout.h"
#include "tests/unit/core/tm_engine.h"

#define CELL 8u
#define COLUMNS 5u
#define ROWS 40u
#define COLUMN 1u
#define MATRIX (FIX_VA + 2048)
#define BYTES (ROWS * CELL) /* bytes of a column */

static struct qp *binder; /* in the SRQ's protection domain */
static void *shape;
static uint32_t window;

static void setup(void)
{
    tm_setup();
    struct qp_init init = {
        .type = QPT_RC, .pd = TM_PD, .caps = {4, 0, 1, 0, 0}, .send_cq = &qp_cq, .recv_cq = &qp_cq, .owner = &fix};
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &binder), 0);
    fix_bring(binder, QPS_RTS);
    struct mr_init mr = {.pd = TM_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND};
    uint32_t region;
    cr_assert_eq(mr_register(fix.e, &mr, &region), 0);
    shape = fix_zalloc(mw_layout_size(1));
    cr_assert_eq(mw_alloc_layout(fix.e, TM_PD, MW_TYPE_2, 1, shape, &window), 0);
    static struct layout_entry_desc entry;
    entry = (struct layout_entry_desc){.object = region,
                                       .ndim = 1,
                                       .addr = MATRIX + COLUMN * CELL,
                                       .length = CELL,
                                       .repeat = 1,
                                       .dim = {{.stride = COLUMNS * CELL, .count = ROWS}}};
    static struct layout_desc column;
    column = (struct layout_desc){.type = LAYOUT_INTERLEAVED, .count = 1, .entry = &entry};
    struct send_wr wr = {.opcode = WR_BIND_MW, .flags = SEND_SIGNALED};
    wr.bind = (struct mw_bind){.mw_key = window, .layout = &column, .access = ACCESS_LOCAL_WRITE};
    cr_assert_eq(qp_post_send(binder, &wr, NULL, NULL), 0);
    turn();
    struct completion c = fix_take(&fix);
    cr_assert(c.opcode == WC_BIND_MW && c.status == WC_SUCCESS, "status %u, cause %u", c.status, c.vendor_err);
}
static void teardown(void)
{
    tm_teardown();
    free(shape);
}
TestSuite(tm_layout, .init = setup, .fini = teardown);

/* Adds an entry for bytes [from, from + len) of the column. */
static void add_column(uint32_t handle, uint64_t tag, uint32_t from, uint32_t len)
{
    struct sge sge = {.addr = from, .length = len, .lkey = window};
    struct tm_op op = {.opcode = TM_ADD,
                       .handle = handle,
                       .tag = tag,
                       .mask = EXACT,
                       .recv_wr_id = 7000 + handle,
                       .num_sge = 1,
                       .sge = &sge};
    cr_assert_eq(srq_post_op(srq, &op, 0), 0);
}

/* Expects that the column holds 1, 2, 3 ... from byte `from` on, and that all other bytes are unchanged. */
static void expect_column(uint32_t from, uint32_t len)
{
    for (uint32_t i = 0; i < FIX_MEM; i++) {
        uint32_t cell = i < MATRIX - FIX_VA ? UINT32_MAX : (i - (MATRIX - FIX_VA)) / CELL;
        uint8_t want = 0;
        if (cell < ROWS * COLUMNS && cell % COLUMNS == COLUMN) {
            uint32_t at = cell / COLUMNS * CELL + i % CELL;
            want = at >= from && at < from + len ? (uint8_t)(at - from + 1) : 0;
        }
        cr_assert_eq(fix.bytes[i], want, "byte %u is %u, not %u", i, fix.bytes[i], want);
    }
}

Test(tm_layout, an_eager_message_becomes_a_column)
{
    const uint8_t *m = message(TMH_EAGER, 9);
    add_column(0, 9, 0, BYTES);
    arrive(0, OP_SEND_FIRST, m, 256);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    cr_expect_eq(arrive(0, OP_SEND_LAST, m + 256, TMH_LEN + BYTES - 256), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, BYTES);
    expect_column(0, BYTES);
}

Test(tm_layout, a_rendezvous_becomes_part_of_a_column)
{
    add_column(0, 9, 3, 290); /* from the middle of a cell to the middle of another */
    cr_expect_eq(rndv(0, 9, 290), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    cr_assert_not_null(sent(OP_READ_REQUEST, 0));
    answer_read(0, sent(OP_READ_REQUEST, 0));
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, 290);
    expect_column(3, 290);
    cr_expect_not_null(sent(OP_SEND_ONLY, 0), "the FIN");
}

Test(tm_layout, beyond_the_layout)
{
    add_column(0, 9, 0, BYTES + 1);
    cr_expect_eq(rndv(0, 9, BYTES + 1), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    cr_expect_null(sent(OP_READ_REQUEST, 0), "there is no place for what it would bring");
    turn();
    EXPECT(0, OF_TM_ENTRY, WC_LOC_PROT_ERR, WC_TM_RECV, 0, 0, 0);
    expect_column(0, 0);
}
