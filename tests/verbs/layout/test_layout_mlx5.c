// SPDX-License-Identifier: BSD-2-Clause
/* Conversions between layouts and mlx5dv's layouts (pumice/mlx5.h). Every byte keeps its place, by the definitions of
 * both, and when both are bound and read. A layout that has no such form, or does not fit, is refused. */
#include <pumice/mlx5.h>

#include "tests/verbs/layout/layouts.h"

#define ROOM 64
#define MOST 8192 /* bytes of a layout here */

static struct vt_end a, b;
static struct ibv_sge list[ROOM];
static struct mlx5dv_mr_interleaved woven[ROOM];
static uint64_t random_state = 1;

static uint64_t rnd(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

/* --- what both mean, byte by byte; returns how many */

static size_t flat_layout(const struct pumice_mw_bind_layout *l, uint64_t *at)
{
    uint64_t done[ROOM] = {0}, items[ROOM];
    size_t n = 0;
    bool more = true;
    for (uint32_t i = 0; i < l->entry_count; i++) {
        items[i] = 1;
        for (uint32_t d = 0; d < l->entries[i].interleaved.dimension_count; d++)
            items[i] *= l->entries[i].interleaved.dimension[d].count;
    }
    while (more) {
        more = false;
        for (uint32_t i = 0; i < l->entry_count; i++) {
            const struct pumice_mw_bind_layout_entry *e = &l->entries[i];
            uint64_t repeat = e->interleaved.repeat_count ? e->interleaved.repeat_count : 1;
            for (uint64_t r = 0; r < repeat && done[i] < items[i]; r++, done[i]++) {
                uint64_t k = done[i], addr = e->addr;
                for (uint32_t d = 0; d < e->interleaved.dimension_count; d++) {
                    addr += k % e->interleaved.dimension[d].count * e->interleaved.dimension[d].stride;
                    k /= e->interleaved.dimension[d].count;
                }
                for (uint64_t byte = 0; byte < e->length; byte++)
                    at[n++] = addr + byte;
            }
            more |= done[i] < items[i];
        }
    }
    return n;
}

/* As mlx5dv's manual has it. */
static size_t flat_mkey(const struct pumice_mlx5_mkey *m, uint64_t *at)
{
    size_t n = 0;
    for (uint32_t i = 0; m->repeat_count == 0 && i < m->num; i++)
        for (uint64_t byte = 0; byte < m->list[i].length; byte++)
            at[n++] = m->list[i].addr + byte;
    for (uint64_t round = 0; round < m->repeat_count; round++)
        for (uint32_t i = 0; i < m->num; i++)
            for (uint64_t byte = 0; byte < m->interleaved[i].bytes_count; byte++)
                at[n++] = m->interleaved[i].addr +
                          round * ((uint64_t)m->interleaved[i].bytes_count + m->interleaved[i].bytes_skip) + byte;
    return n;
}

static struct pumice_mlx5_mkey room(void)
{
    return (struct pumice_mlx5_mkey){.max = ROOM, .list = list, .interleaved = woven};
}

/* --- there and back */

static uint64_t want[MOST], got[MOST];

/* Does the layout, as mlx5dv has it, and as a layout again, mean the same? */
static bool round_trip(const struct pumice_mw_bind_layout *l, struct pumice_mw_bind_layout *back)
{
    static struct pumice_mw_bind_layout_entry e[ROOM];
    static struct pumice_mw_dimension dim[ROOM];
    struct pumice_mlx5_mkey m = room();
    struct ibv_mr *regions[] = {a.mr, b.mr};
    size_t n = flat_layout(l, want);
    if (pumice_layout_to_mlx5(l, NULL, &m) != 0 || flat_mkey(&m, got) != n || memcmp(want, got, n * sizeof(want[0])))
        return false;
    memset(got, 0, sizeof(got));
    return pumice_layout_from_mlx5(&m, regions, 2, back, e, dim) == 0 && flat_layout(back, got) == n &&
           memcmp(want, got, n * sizeof(want[0])) == 0;
}

static enum ibv_wc_status bind_and_read(const struct pumice_mw_bind_layout *l, uint32_t to, uint32_t len)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_2, ROOM);
    need(vl_post_bind(b.qp, mw, l, IBV_ACCESS_REMOTE_READ) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    struct ibv_sge s = vt_at(&a, to, len);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.rkey = mw->rkey;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    enum ibv_wc_status status = vt_next(a.scq).status;
    need(ibv_dealloc_mw(mw) == 0);
    return status;
}

/* A layout that has the form: up to four entries with the same number of rounds. */
static void draw(struct pumice_mw_bind_layout *l, struct pumice_mw_bind_layout_entry *e,
                 struct pumice_mw_dimension (*d)[3])
{
    uint64_t rounds = 1 + rnd(6);
    *l = (struct pumice_mw_bind_layout){.type = rnd(3) ? PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED
                                                       : PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE,
                                        .entry_count = 1 + (uint32_t)rnd(4),
                                        .entries = e};
    for (uint32_t i = 0; i < l->entry_count; i++) {
        e[i] = (struct pumice_mw_bind_layout_entry){
            .mr = b.mr, .addr = (uintptr_t)b.buf + rnd(1000), .length = 1 + rnd(20)};
        if (l->type == PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE)
            continue;
        uint64_t inner = rnd(2) ? 1 : 1 + rnd(3), repeat = inner * (1 + rnd(3)), items = repeat * rounds;
        unsigned n = 0;
        if (inner > 1)
            d[i][n++] = (struct pumice_mw_dimension){.stride = rnd(50), .count = inner};
        if (rnd(2))
            d[i][n++] = (struct pumice_mw_dimension){.stride = rnd(50), .count = 1};
        d[i][n++] = (struct pumice_mw_dimension){.stride = e[i].length + rnd(80), .count = items / inner};
        e[i].interleaved.repeat_count = repeat;
        e[i].interleaved.dimension_count = n;
        e[i].interleaved.dimension = d[i];
    }
}

static void random_ones(void)
{
    struct pumice_mw_bind_layout l, back;
    struct pumice_mw_bind_layout_entry e[4];
    struct pumice_mw_dimension d[4][3];
    bool same = true, seen = true;
    for (unsigned i = 0; i < 20000 && same; i++) {
        uint64_t from = random_state;
        draw(&l, e, d);
        same = round_trip(&l, &back);
        if (same && i % 200 == 0) { /* the device is of the same opinion */
            uint32_t len = (uint32_t)flat_layout(&l, want);
            seen &= bind_and_read(&l, 0, len) == IBV_WC_SUCCESS && bind_and_read(&back, MOST, len) == IBV_WC_SUCCESS;
            for (uint32_t k = 0; k < len; k++)
                seen &= a.buf[k] == *(const char *)(uintptr_t)want[k] && a.buf[MOST + k] == a.buf[k];
        }
        if (!same || !seen)
            printf("# random_state %llu\n", (unsigned long long)from);
    }
    ok(same, "20000 layouts there and back: every byte stays where it was");
    ok(seen, "a hundred of them bound and read in both forms");
}

/* --- by hand */

static struct pumice_mw_bind_layout_entry entry(uint64_t at, uint64_t length, uint64_t repeat, unsigned ndim,
                                                struct pumice_mw_dimension *d)
{
    return (struct pumice_mw_bind_layout_entry){
        .mr = b.mr, .addr = (uintptr_t)b.buf + at, .length = length, .interleaved = {repeat, ndim, d}};
}

static int translate(unsigned type, uint32_t count, struct pumice_mw_bind_layout_entry *e,
                     const struct pumice_mlx5_limits *limits, struct pumice_mlx5_mkey *m)
{
    struct pumice_mw_bind_layout l = {0, (enum pumice_mw_bind_layout_type)type, count, e};
    *m = room();
    return pumice_layout_to_mlx5(&l, limits, m);
}

static bool element(unsigned i, uint64_t at, uint32_t bytes, uint32_t skip)
{
    return woven[i].addr == (uintptr_t)b.buf + at && woven[i].bytes_count == bytes && woven[i].bytes_skip == skip &&
           woven[i].lkey == b.mr->lkey;
}

static void known_ones(void)
{
    struct pumice_mlx5_mkey m;
    struct pumice_mw_dimension rows = {40, 4}, tens = {10, 3}, pairs = {16, 4}, cube[] = {{8, 5}, {160, 3}};
    struct pumice_mw_bind_layout_entry e[4] = {entry(8, 8, 1, 1, &rows)};
    ok(translate(1, 1, e, NULL, &m) == 0 && m.num == 1 && m.repeat_count == 4 && element(0, 8, 8, 32),
       "the column of a matrix: 8 bytes, 32 to skip, 4 times");
    e[0] = entry(0, 8, 1, 1, &tens), e[1] = entry(64, 8, 1, 1, &tens);
    ok(translate(1, 2, e, NULL, &m) == 0 && m.num == 2 && m.repeat_count == 3 && element(0, 0, 8, 2) &&
           element(1, 64, 8, 2),
       "two buffers in turn");
    e[0] = entry(0, 4, 2, 1, &pairs);
    ok(translate(1, 1, e, NULL, &m) == 0 && m.num == 2 && m.repeat_count == 2 && element(0, 0, 4, 28) &&
           element(1, 16, 4, 28),
       "two items at a time are two elements");
    e[0] = entry(0, 8, 5, 2, cube);
    ok(translate(1, 1, e, NULL, &m) == 0 && m.num == 5 && m.repeat_count == 3 && element(4, 32, 8, 152),
       "a line of the inner dimension at a time, too");
    e[0] = (struct pumice_mw_bind_layout_entry){.mr = b.mr, .addr = 7, .length = 100};
    e[1] = (struct pumice_mw_bind_layout_entry){.mr = a.mr, .addr = 9, .length = 50};
    ok(translate(0, 2, e, NULL, &m) == 0 && m.num == 2 && m.repeat_count == 0 && list[0].length == 100 &&
           list[1].addr == 9 && list[1].lkey == a.mr->lkey,
       "a composite is a list");
    struct ibv_mw *mw = vl_items(b.qp, b.scq, b.mr, b.buf, 8, 16, 4, VL_ALL);
    e[1] =
        (struct pumice_mw_bind_layout_entry){.mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = mw, .addr = 8, .length = 16};
    ok(translate(0, 2, e, NULL, &m) == 0 && list[1].lkey == vl_lkey(mw) && list[1].addr == 8,
       "an inner window by its lkey");
    need(ibv_dealloc_mw(mw) == 0);
}

static void refused(void)
{
    struct pumice_mlx5_mkey m;
    struct pumice_mw_dimension d8 = {16, 8}, d6 = {16, 6}, none = {16, 0}, tight = {4, 8}, far = {65536, 4},
                               near = {65535, 4}, plane[] = {{8, 4}, {160, 3}}, many = {2, 1ull << 32};
    struct pumice_mw_bind_layout_entry e[4] = {entry(0, 8, 1, 1, &d8), entry(0, 8, 1, 1, &d6)};
    ok(translate(1, 2, e, NULL, &m) == EOPNOTSUPP, "entries that run out in different rounds");
    e[0] = entry(0, 8, 3, 1, &d8);
    ok(translate(1, 1, e, NULL, &m) == EOPNOTSUPP, "a round that is not full");
    e[0] = entry(0, 8, 1, 2, plane);
    ok(translate(1, 1, e, NULL, &m) == EOPNOTSUPP, "two dimensions, an item at a time");
    e[0] = entry(0, 8, 1, 1, &tight);
    ok(translate(1, 1, e, NULL, &m) == EOPNOTSUPP, "items that overlap");
    e[0] = entry(0, 8, 1, 1, &far);
    ok(translate(1, 1, e, NULL, &m) == ERANGE, "a distance of 2^16");
    e[0] = entry(0, 8, 1, 1, &near);
    ok(translate(1, 1, e, NULL, &m) == 0, "one less");
    near.stride = 65536, e[0] = entry(0, 65536, 1, 1, &near);
    ok(translate(1, 1, e, NULL, &m) == ERANGE, "an item of 2^16 bytes");
    e[0] = entry(0, 1, 1, 1, &many);
    ok(translate(1, 1, e, NULL, &m) == ERANGE, "2^32 rounds");
    e[0] = entry(0, 0, 1, 1, &d8);
    ok(translate(1, 1, e, NULL, &m) == EINVAL, "items without bytes");
    e[0] = entry(0, 8, 0, 1, &d8);
    ok(translate(1, 1, e, NULL, &m) == EINVAL, "a repetition of 0");
    e[0] = entry(0, 8, 1, 1, &none);
    ok(translate(1, 1, e, NULL, &m) == EINVAL, "a count of 0");
    e[0] = entry(0, 8, 1, 0, NULL);
    ok(translate(1, 1, e, NULL, &m) == EINVAL, "no dimension");
    ok(translate(2, 1, e, NULL, &m) == EINVAL, "no such type");
    e[0] = (struct pumice_mw_bind_layout_entry){.mr = b.mr, .length = 1ull << 32};
    ok(translate(0, 1, e, NULL, &m) == ERANGE, "an entry of 2^32 bytes in a composite");
    e[0] = entry(0, 8, 2, 1, &d8);
    ok(translate(0, 1, e, NULL, &m) == EINVAL, "a mixture");
    e[0] = entry(0, 8, 65, 1, &(struct pumice_mw_dimension){16, 130});
    ok(translate(1, 1, e, NULL, &m) == ENOMEM, "more elements than there is room for");
    e[0] = entry(0, 8, 1, 1, &d8);
    need(translate(1, 1, e, NULL, &m) == 0);
    struct ibv_mr *others[] = {a.mr};
    struct pumice_mw_bind_layout l;
    struct pumice_mw_dimension dim[1];
    ok(pumice_layout_from_mlx5(&m, others, 1, &l, e, dim) == EINVAL, "a key that is of none of the regions");
    m.num = 0;
    ok(pumice_layout_from_mlx5(&m, others, 1, &l, e, dim) == EINVAL, "no elements");
}

/* A request without more inline data takes four entries of a list, or three interleaved ones and their header. */
static void limits(void)
{
    struct pumice_mlx5_mkey m;
    struct pumice_mlx5_limits by = {.max_entries = 100, .max_inline_data = 0};
    struct pumice_mw_dimension d = {16, 8};
    struct pumice_mw_bind_layout_entry e[8], c[8];
    for (unsigned i = 0; i < 8; i++) {
        e[i] = entry(i, 1, 1, 1, &d);
        c[i] = (struct pumice_mw_bind_layout_entry){.mr = b.mr, .addr = i, .length = 1};
    }
    ok(translate(1, 3, e, &by, &m) == 0 && translate(1, 4, e, &by, &m) == ENOMEM, "three interleaved in a request");
    ok(translate(0, 4, c, &by, &m) == 0 && translate(0, 5, c, &by, &m) == ENOMEM, "four of a list");
    by.max_inline_data = 128;
    ok(translate(1, 7, e, &by, &m) == 0 && translate(1, 8, e, &by, &m) == ENOMEM && translate(0, 8, c, &by, &m) == 0,
       "more with more inline data");
    by = (struct pumice_mlx5_limits){.max_entries = 3, .max_inline_data = 128};
    ok(translate(1, 2, e, &by, &m) == 0 && translate(1, 3, e, &by, &m) == ENOMEM,
       "the header takes an entry of the mkey");
    ok(translate(0, 3, c, &by, &m) == 0 && translate(0, 4, c, &by, &m) == ENOMEM, "a list has none");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    for (int i = 0; i < VT_BUF; i++)
        b.buf[i] = (char)(i * 7 + i / 251);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    known_ones();
    random_ones();
    refused();
    limits();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
