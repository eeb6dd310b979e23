// SPDX-License-Identifier: BSD-2-Clause
/* Binds to layouts that break a rule. Each is refused with this rule as its reason, and the window keeps its old
 * binding. */
#include "tests/verbs/layout/layouts.h"

#define MAX UINT64_MAX
#define DEPTH 8
#define RD IBV_ACCESS_REMOTE_READ

static struct vt_end a, b; /* b binds, a looks */
static struct ibv_pd *foreign_pd;
static struct ibv_mr no_region, *foreign, *read_only, *not_bindable;
static struct ibv_mw *mine; /* of type 1, for two entries */
static struct ibv_mw *unbound, *readable, *chain[DEPTH];

enum object {
    MR,
    NOTHING,
    WRONG_KIND,
    NO_REGION,
    FOREIGN,
    READ_ONLY,
    NOT_BINDABLE,
    UNBOUND,
    SELF,
    READABLE,
    DEEP,
    DEEPEST
};
#define COMPOSITE PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE
#define INTERLEAVED PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED

/* The second of two entries; the first one is sound. Addresses in regions count from the buffer's start, if they are
 * not absolute. */
struct row {
    const char *rule; /* NULL: it can't be posted, EINVAL */
    const char *what;
    unsigned type, entries;
    enum object object;
    bool absolute;
    uint64_t addr, length, repeat;
    unsigned ndim;
    struct pumice_mw_dimension dim[8];
    unsigned access; /* beyond RD */
};
#define RULE_OUTSIDE "an item lies outside of its object"
#define RULE_LENGTH "an entry has length 0"
#define RULE_STRIDED "an entry of a composite layout has dimensions"
#define RULE_REPEATED "an entry of a composite layout has a repetition"
#define RULE_PLAIN "an entry of an interleaved layout has no dimensions"
#define RULE_COUNT "a dimension has count 0"
#define RULE_ITEMS "the number of items of an entry overflows 64 bits"
#define RULE_BYTES "the bytes of an entry overflow 64 bits"
#define RULE_SPAN "the address of an item overflows 64 bits"
#define RULE_TOTAL "all entries together have more than 2^63 bytes"
#define RULE_MR_ACCESS "the window asks for rights to write that a memory region does not have"
#define RULE_MW_ACCESS "the window asks for rights that an inner window does not have"

/* clang-format off */
static const struct row rows[] = {
    {"an entry names the window itself", "itself", INTERLEAVED, 2, SELF, 1, 0, 8, 1, 1, {{8, 1}}, 0},
    {NULL, "no entries", INTERLEAVED, 0, MR, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {NULL, "more entries than descriptors", INTERLEAVED, 3, MR, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {NULL, "nine dimensions", INTERLEAVED, 2, MR, 0, 0, 8, 1, 9, {{16, 4}}, 0},
    {NULL, "2^32 - 1 dimensions", INTERLEAVED, 2, MR, 0, 0, 8, 1, UINT32_MAX, {{16, 4}}, 0},
    {NULL, "no object", INTERLEAVED, 2, NOTHING, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {NULL, "an object of no kind", INTERLEAVED, 2, WRONG_KIND, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {NULL, "other access flags", INTERLEAVED, 2, MR, 0, 0, 8, 1, 1, {{16, 4}}, IBV_ACCESS_MW_BIND},
    {"the type is neither composite nor interleaved", "type 2", 2, 2, MR, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {"the type is neither composite nor interleaved", "type 2^32 - 1", UINT32_MAX, 2, MR, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {RULE_LENGTH, "length 0", INTERLEAVED, 2, MR, 0, 0, 0, 1, 1, {{16, 4}}, 0},
    {RULE_LENGTH, "length 0 in a composite", COMPOSITE, 2, MR, 0, 0, 0, 0, 0, {{0}}, 0},
    {RULE_STRIDED, "strided in a composite", COMPOSITE, 2, MR, 0, 0, 8, 0, 1, {{16, 4}}, 0},
    {RULE_STRIDED, "one item in a composite, with a dimension", COMPOSITE, 2, MR, 0, 0, 8, 1, 1, {{0, 1}}, 0},
    {RULE_REPEATED, "repeated in a composite", COMPOSITE, 2, MR, 0, 0, 8, 2, 0, {{0}}, 0},
    {RULE_REPEATED, "2^64 - 1 times in a composite", COMPOSITE, 2, MR, 0, 0, 8, MAX, 0, {{0}}, 0},
    {RULE_PLAIN, "contiguous among strided ones", INTERLEAVED, 2, MR, 0, 0, 8, 1, 0, {{0}}, 0},
    {"an entry of an interleaved layout has repetition 0", "repetition 0", INTERLEAVED, 2, MR, 0, 0, 8, 0, 1, {{16, 4}}, 0},
    {RULE_COUNT, "count 0", INTERLEAVED, 2, MR, 0, 0, 8, 1, 1, {{16, 0}}, 0},
    {RULE_COUNT, "count 0 in the third dimension", INTERLEAVED, 2, MR, 0, 0, 8, 1, 3, {{16, 4}, {64, 2}, {0, 0}}, 0},
    {RULE_ITEMS, "2^64 items", INTERLEAVED, 2, MR, 0, 0, 1, 1, 2, {{0, 1ull << 32}, {0, 1ull << 32}}, 0},
    {RULE_ITEMS, "2^64 items in eight dimensions", INTERLEAVED, 2, MR, 0, 0, 1, 1, 8, {{0, 256}, {0, 256}, {0, 256}, {0, 256}, {0, 256}, {0, 256}, {0, 256}, {0, 256}}, 0},
    {RULE_BYTES, "2^64 bytes", INTERLEAVED, 2, MR, 0, 0, 1ull << 32, 1, 1, {{0, 1ull << 32}}, 0},
    {RULE_BYTES, "3 * 2^63 bytes", INTERLEAVED, 2, MR, 0, 0, 1ull << 63, 1, 1, {{0, 3}}, 0},
    {RULE_SPAN, "a stride that leads beyond 64 bits", INTERLEAVED, 2, MR, 0, 0, 1, 1, 1, {{1ull << 63, 3}}, 0},
    {RULE_SPAN, "strides that do together", INTERLEAVED, 2, MR, 0, 0, 1, 1, 2, {{1ull << 63, 2}, {1ull << 63, 2}}, 0},
    {RULE_SPAN, "a negative stride", INTERLEAVED, 2, MR, 0, 4096, 8, 1, 1, {{-16ull, 4}}, 0},
    {RULE_SPAN, "an address at the end of all", INTERLEAVED, 2, MR, 1, MAX - 40, 8, 1, 1, {{16, 4}}, 0},
    {RULE_SPAN, "likewise in a composite", COMPOSITE, 2, MR, 1, MAX - 6, 8, 0, 0, {{0}}, 0},
    {RULE_TOTAL, "2^63 bytes more than those of the first entry", INTERLEAVED, 2, MR, 0, 0, 1ull << 31, 1, 1, {{0, 1ull << 32}}, 0},
    {RULE_TOTAL, "likewise in a composite", COMPOSITE, 2, MR, 1, 0, 1ull << 63, 0, 0, {{0}}, 0},
    {RULE_TOTAL, "2^64 bytes with the first one", COMPOSITE, 2, MR, 1, 0, MAX, 0, 0, {{0}}, 0},
    {"an entry names an object that does not exist", "no such key", INTERLEAVED, 2, NO_REGION, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {"an entry names an object of another protection domain", "a region of another domain", INTERLEAVED, 2, FOREIGN, 0, 0, 8, 1, 1, {{16, 4}}, 0},
    {"an entry names a window that is not bound", "a window that is not bound", INTERLEAVED, 2, UNBOUND, 1, 0, 8, 1, 1, {{16, 4}}, 0},
    {"windows are nested deeper than supported", "a ninth level", COMPOSITE, 2, DEEPEST, 1, 0, 8, 0, 0, {{0}}, 0},
    {"an entry names a memory region without the right to bind windows", "a region that may not", COMPOSITE, 2, NOT_BINDABLE, 0, 0, 8, 0, 0, {{0}}, 0},
    {RULE_MR_ACCESS, "to write remotely to a region to read", COMPOSITE, 2, READ_ONLY, 0, 0, 8, 0, 0, {{0}}, IBV_ACCESS_REMOTE_WRITE},
    {RULE_MR_ACCESS, "atomics in a region to read", COMPOSITE, 2, READ_ONLY, 0, 0, 8, 0, 0, {{0}}, IBV_ACCESS_REMOTE_ATOMIC},
    {RULE_MR_ACCESS, "local access to a region to read", COMPOSITE, 2, READ_ONLY, 0, 0, 8, 0, 0, {{0}}, IBV_ACCESS_LOCAL_WRITE},
    {RULE_MW_ACCESS, "to write to a window to read", COMPOSITE, 2, READABLE, 1, 0, 8, 0, 0, {{0}}, IBV_ACCESS_REMOTE_WRITE},
    {RULE_MW_ACCESS, "atomics in a window to read", COMPOSITE, 2, READABLE, 1, 0, 8, 0, 0, {{0}}, IBV_ACCESS_REMOTE_ATOMIC},
    {RULE_MW_ACCESS, "local access to a window without", COMPOSITE, 2, READABLE, 1, 0, 8, 0, 0, {{0}}, IBV_ACCESS_LOCAL_WRITE},
    {RULE_OUTSIDE, "a byte before the region", INTERLEAVED, 2, MR, 0, -1ull, 8, 1, 1, {{16, 4}}, 0},
    {RULE_OUTSIDE, "a byte behind it", INTERLEAVED, 2, MR, 0, VT_BUF - 55, 8, 1, 1, {{16, 4}}, 0},
    {RULE_OUTSIDE, "the last of two dimensions behind it", INTERLEAVED, 2, MR, 0, 0, 8, 1, 2, {{16, 4}, {VT_BUF, 2}}, 0},
    {RULE_OUTSIDE, "all of it", COMPOSITE, 2, MR, 0, VT_BUF, 8, 0, 0, {{0}}, 0},
    {RULE_OUTSIDE, "a byte behind it in a composite", COMPOSITE, 2, MR, 0, VT_BUF - 7, 8, 0, 0, {{0}}, 0},
    {RULE_OUTSIDE, "2^62 bytes of it", COMPOSITE, 2, MR, 0, 0, 1ull << 62, 0, 0, {{0}}, 0},
    {RULE_OUTSIDE, "a byte behind a window", COMPOSITE, 2, READABLE, 1, 57, 8, 0, 0, {{0}}, 0},
    {RULE_OUTSIDE, "a window by the addresses of its region", COMPOSITE, 2, READABLE, 0, 0, 8, 0, 0, {{0}}, 0},
    {RULE_OUTSIDE, "an item behind a window", INTERLEAVED, 2, DEEP, 1, 0, 8, 1, 1, {{19, 4}}, 0},
};
/* clang-format on */
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static struct ibv_mw *bound_1(const struct pumice_mw_bind_layout *l, unsigned access)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_1, 2);
    struct pumice_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
    bind.bind_info.layout = (struct pumice_mw_bind_layout *)(uintptr_t)l;
    bind.bind_info.mw_access_flags = (int)access | PUMICE_ACCESS_BIND_MW_NONCONTIG;
    need(pumice_bind_mw(b.qp, mw, &bind) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    return mw;
}

static void make_objects(void)
{
    struct pumice_mw_bind_layout_entry e = {.mr = b.mr, .addr = (uintptr_t)b.buf, .length = 64};
    struct pumice_mw_bind_layout l = {0, COMPOSITE, 1, &e};
    need((foreign_pd = ibv_alloc_pd(b.ctx)));
    need((foreign = ibv_reg_mr(foreign_pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)));
    need((read_only = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_MW_BIND)));
    need((not_bindable = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE)));
    no_region = *b.mr;
    no_region.lkey ^= 1;
    unbound = vl_window(b.pd, IBV_MW_TYPE_1, 1);
    readable = bound_1(&l, RD);
    for (int i = 0; i < DEPTH; i++) {
        chain[i] = bound_1(&l, RD);
        e = (struct pumice_mw_bind_layout_entry){
            .mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = chain[i], .addr = 0, .length = 64};
    }
    /* the window that all of them try to change: every second byte of the first 64 */
    struct pumice_mw_dimension dim = {2, 32};
    e = (struct pumice_mw_bind_layout_entry){
        .mr = b.mr, .addr = (uintptr_t)b.buf, .length = 1, .interleaved = {1, 1, &dim}};
    l.type = INTERLEAVED;
    mine = bound_1(&l, RD);
}

static void drop_objects(void)
{
    bool gone = ibv_dealloc_mw(mine) == 0 && ibv_dealloc_mw(readable) == 0 && ibv_dealloc_mw(unbound) == 0;
    for (int i = 0; i < DEPTH; i++)
        gone &= ibv_dealloc_mw(chain[i]) == 0;
    gone &= ibv_dereg_mr(foreign) == 0 && ibv_dereg_mr(read_only) == 0 && ibv_dereg_mr(not_bindable) == 0;
    ok(gone && ibv_dealloc_pd(foreign_pd) == 0, "what is not bound to any more can go");
}

static void name_object(struct pumice_mw_bind_layout_entry *e, enum object object)
{
    struct ibv_mr *const mr[] = {[MR] = b.mr,
                                 [NO_REGION] = &no_region,
                                 [FOREIGN] = foreign,
                                 [READ_ONLY] = read_only,
                                 [NOT_BINDABLE] = not_bindable,
                                 [DEEPEST] = NULL};
    struct ibv_mw *const mw[] = {[UNBOUND] = unbound,
                                 [SELF] = mine,
                                 [READABLE] = readable,
                                 [DEEP] = chain[DEPTH - 2],
                                 [DEEPEST] = chain[DEPTH - 1]};
    e->mem_obj_type = object >= UNBOUND ? PUMICE_MW_ENTRY_USE_MW : PUMICE_MW_ENTRY_USE_MR;
    if (object >= UNBOUND)
        e->mw = mw[object];
    else
        e->mr = mr[object];
    if (object == WRONG_KIND)
        e->mem_obj_type = (enum pumice_mw_entry_type)7;
}

/* Does a see every second byte through the window, as before, and not one more? */
static bool as_it_was(uint32_t rkey)
{
    struct ibv_sge s = vt_at(&a, 0, 32);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = rkey;
    memset(a.buf, 0, 32);
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    struct ibv_wc wc = vt_next(a.scq);
    bool same = wc.status == IBV_WC_SUCCESS;
    if (!same)
        printf("#   looking at it: status %d\n", wc.status);
    for (int i = 0; i < 32; i++)
        same &= a.buf[i] == b.buf[2 * i];
    return same;
}

static int try_bind(const struct row *r)
{
    struct pumice_mw_dimension sound = {16, 4}, dims[8];
    struct pumice_mw_bind_layout_entry e[3] = {
        {.mr = b.mr, .addr = (uintptr_t)b.buf, .length = 8, .interleaved = {1, 1, &sound}}};
    struct pumice_mw_bind_layout l = {0, (enum pumice_mw_bind_layout_type)r->type, r->entries, e};
    struct pumice_mw_bind bind = {.wr_id = 3, .send_flags = IBV_SEND_SIGNALED};
    memcpy(dims, r->dim, sizeof(dims));
    if (r->type == COMPOSITE)
        e[0].interleaved.dimension_count = 0;
    e[1] = e[2] = (struct pumice_mw_bind_layout_entry){.addr = r->addr + (r->absolute ? 0 : (uintptr_t)b.buf),
                                                       .length = r->length,
                                                       .interleaved = {r->repeat, r->ndim, dims}};
    name_object(&e[1], r->object);
    name_object(&e[2], r->object);
    bind.bind_info.layout = &l;
    bind.bind_info.mw_access_flags = (int)(RD | r->access) | PUMICE_ACCESS_BIND_MW_NONCONTIG;
    return pumice_bind_mw(b.qp, mine, &bind);
}

static void refuse(const struct row *r)
{
    uint32_t was = mine->rkey;
    int rc = try_bind(r);
    bool right = rc == (r->rule ? 0 : EINVAL);
    if (r->rule && rc == 0) {
        struct ibv_wc wc = vt_next(b.scq);
        const char *said = pumice_layout_strerror(wc.vendor_err);
        right = wc.status == IBV_WC_MW_BIND_ERR && wc.wr_id == 3 && strcmp(said, r->rule) == 0;
        if (!right)
            printf("#   status %d: %s\n", wc.status, said);
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        right &= ibv_query_qp(b.qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
        connect_again();
    }
    right &= mine->rkey == was && vl_lkey(mine) == was && as_it_was(was);
    ok(right, r->what);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    static const struct row sound = {NULL, "sound", INTERLEAVED, 2, DEEP, true, 8, 8, 2, 1, {{16, 3}}, 0};
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    for (int i = 0; i < VT_BUF; i++)
        b.buf[i] = (char)(i * 7 + 1);
    connect_again();
    make_objects();
    for (unsigned i = 0; i < ROWS; i++)
        refuse(&rows[i]);
    uint32_t was = mine->rkey;
    ok(try_bind(&sound) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS && mine->rkey != was,
       "after all that, one that breaks no rule is bound");
    drop_objects();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    _Static_assert(ROWS >= 40, "every rule, and its edges");
    return vt_both(test);
}
