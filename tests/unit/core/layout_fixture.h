// SPDX-License-Identifier: BSD-2-Clause
/* For tests of memory windows over layouts in an engine: two connected QPs, regions, and requests between them. */
#ifndef PUMICE_TESTS_UNIT_CORE_LAYOUT_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_LAYOUT_FIXTURE_H

#include <errno.h>

#include "tests/unit/core/core_fixture.h"
#include "tests/unit/core/layout_model.h"

/* The fixture's memory: three regions with gaps between them, then a plain buffer. */
#define PLAIN 6656u
#define PLAIN_BYTES (FIX_MEM - PLAIN)
#define REGION_AT(i) (64u + (i) * (REGION_BYTES + 64u))
#define MOST_TOTAL (PLAIN_BYTES / 2)

#define RIGHTS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

static struct fixture fix;
static struct qp *a, *b; /* connected to each other */
static uint32_t region[REGIONS], plain;
static uint32_t window[TREE_LAYOUTS]; /* the rkeys of the tree */
static void *shape[TREE_LAYOUTS];
static struct completion last[8]; /* of the last run; the newest one first */
static unsigned completions;

static inline void setup_engine(void)
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
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert(fix.e);
}

static inline void connect(struct qp *qp, uint32_t to, uint8_t mtu)
{
    for (enum qp_state s = QPS_INIT; s <= QPS_RTS; s++) {
        struct qp_attr attr = fix_attr();
        attr.state = (uint8_t)s;
        attr.path_mtu = mtu;
        attr.av.dgid[15] = 1;
        attr.dest_qpn = to;
        attr.rq_psn = attr.sq_psn = 7;
        cr_assert_eq(qp_modify(qp, &attr, QPA_STATE | fix_required(qp_state(qp), s), NULL), 0);
    }
}

static inline void reconnect(uint8_t mtu)
{
    struct qp_attr reset = {.state = QPS_RESET};
    cr_assert_eq(qp_modify(a, &reset, QPA_STATE, NULL), 0);
    cr_assert_eq(qp_modify(b, &reset, QPA_STATE, NULL), 0);
    connect(a, qp_number(b), mtu);
    connect(b, qp_number(a), mtu);
}

static inline uint32_t reg(uint32_t at, uint32_t len, uint64_t iova, uint32_t access)
{
    struct mr_init init = {.pd = FIX_PD, .space = 1, .va = FIX_VA + at, .iova = iova, .length = len, .access = access};
    uint32_t key = 0;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    return key;
}

static inline void setup(void)
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

static inline void teardown(void)
{
    for (unsigned i = 0; i < TREE_LAYOUTS; i++)
        free(shape[i]);
    fix_fini(&fix);
}
/* Carries packets from the engine to itself until nothing is due. The newest completion is in last[0]. */
static inline void run(void)
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

static inline void post(struct qp *qp, struct send_wr wr, struct sge sge)
{
    wr.flags |= SEND_SIGNALED;
    wr.num_sge = sge.length || sge.lkey;
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* Executes one request and returns its status. */
static inline enum wc_status done(struct qp *qp, struct send_wr wr, struct sge sge)
{
    post(qp, wr, sge);
    run();
    for (unsigned i = 0; i < completions && i < 8; i++)
        if (!last[i].is_recv && last[i].qpn == qp_number(qp))
            return last[i].status;
    cr_assert(false, "no completion");
    return WC_GENERAL_ERR;
}

static inline enum wc_status bind(struct qp *qp, uint32_t *key, const struct layout_desc *d, uint32_t access)
{
    uint32_t next = (*key & ~0xffu) | ((*key + 1) & 0xff);
    struct send_wr wr = {.opcode = WR_BIND_MW, .bind = {.mw_key = next, .access = access, .layout = d}};
    enum wc_status status = done(qp, wr, (struct sge){0});
    if (status == WC_SUCCESS)
        *key = next;
    return status;
}

static inline enum wc_status invalidate(struct qp *qp, uint32_t key)
{
    return done(qp, (struct send_wr){.opcode = WR_LOCAL_INV, .inv_rkey = key}, (struct sge){0});
}

static inline enum wc_status rdma(uint8_t opcode, uint32_t rkey, uint64_t addr, struct sge local)
{
    return done(b, (struct send_wr){.opcode = opcode, .rkey = rkey, .remote_addr = addr}, local);
}

static inline struct sge local(uint32_t off, uint32_t len)
{
    return (struct sge){.addr = FIX_VA + PLAIN + off, .length = len, .lkey = plain};
}

/* Binds window[i] through QP a to a layout of equal items in region 0. */
static inline void column(unsigned i, uint64_t addr, uint64_t length, uint64_t stride, uint64_t count, uint32_t access)
{
    struct layout_entry_desc e = {
        .object = region[0], .addr = addr, .length = length, .repeat = 1, .ndim = 1, .dim = {{stride, count}}};
    struct layout_desc d = {.type = LAYOUT_INTERLEAVED, .count = 1, .entry = &e};
    cr_assert_eq(bind(a, &window[i], &d, access), WC_SUCCESS);
}

/* A small message may travel in its completion. Then this function copies it to the buffer, as a program does. */
static inline void scatter_inline(struct sge to)
{
    for (unsigned i = 0; i < completions && i < 8; i++)
        if (last[i].is_recv && last[i].inline_len)
            memcpy(fix.bytes + (to.addr - FIX_VA), last[i].data, last[i].inline_len);
}

static inline enum wc_status send_recv(struct sge from, struct sge to)
{
    struct recv_wr wr = {.num_sge = 1};
    cr_assert_eq(qp_post_recv(a, &wr, &to), 0);
    enum wc_status status = done(b, (struct send_wr){.opcode = WR_SEND}, from);
    if (to.lkey == plain)
        scatter_inline(to);
    return status;
}

#endif
