// SPDX-License-Identifier: BSD-2-Clause
/* Regions under the key of a memory window over layouts. The bytes are in the same places, one after the other, but
 * the engine finds them through a window of two levels. Its items are interleaved, and not all have the same length.
 * So everything that the simulator does to these regions goes through layouts, and its knowledge of the regions stays
 * valid. */
#include "tests/sim/sim.h"

#include "daemon/core/memory/layout.h"

#include <stdlib.h>
#include <string.h>

#define TURNS 3u /* entries of the inner window */

static void *zeroed(size_t size)
{
    void *p = calloc(1, size);
    if (!p) {
        abort();
    }
    return p;
}

/* Binds a window through a QP that exists only for this purpose. */
static void bind(struct end *e, uint32_t *key, const struct layout_desc *d, uint32_t access)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    struct qp_init init = {
        .type = QPT_RC, .pd = e->pd, .caps = {1, 1, 1, 1, 0}, .send_cq = e, .recv_cq = e, .owner = e};
    struct qp_attr a = {.port = 1, .path_mtu = 1, .dest_qpn = 17, .max_rd_atomic = 1};
    static const uint32_t masks[] = {
        QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
        QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
        QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC};
    size_t size = (qp_size(&init) + 63) / 64 * 64;
    void *mem = aligned_alloc(64, size);
    struct qp *qp = NULL;
    if (!mem) {
        abort();
    }
    memset(mem, 0, size);
    sim_require(s, qp_create(en, &init, mem, &qp) == 0, "end %d: a queue pair to bind windows", e->index);
    memcpy(a.av.dgid, s->host[e->host].cfg.gids[0], 16);
    for (unsigned i = 0; i < 3; i++) {
        a.state = (uint8_t)(QPS_INIT + i);
        sim_require(s, qp_modify(qp, &a, masks[i], NULL) == 0, "end %d: to state %d", e->index, a.state);
    }
    struct send_wr wr = {.opcode = WR_BIND_MW,
                         .flags = SEND_SIGNALED,
                         .bind = {.mw_key = *key, .new_key = (*key & ~0xffu) | 0x5a, .access = access, .layout = d}};
    uint8_t buf[256];
    struct tx_batch b = {.buf = buf, .cap = sizeof(buf)};
    sim_require(s, qp_post_send(qp, &wr, NULL, NULL) == 0, "end %d: a bind", e->index);
    engine_tx(en, &b, s->now);
    const struct completion *c = engine_peek_completion(en);
    sim_require(s, c && c->status == WC_SUCCESS, "end %d: bind to a layout: %s", e->index,
                c ? layout_error_text(c->vendor_err) : "nothing");
    engine_drop_completion(en);
    *key = wr.bind.new_key;
    qp_destroy(qp);
    free(mem);
}

void shape_make(struct end *e, struct region *g, uint32_t access)
{
    struct engine *en = e->sim->host[e->host].e;
    uint32_t item = 1 + e->sq_psn % 61, items = g->size / item, rest = g->size % item;
    struct layout_entry_desc turn[TURNS], part[2];
    struct layout_desc in = {.type = LAYOUT_INTERLEAVED, .entry = turn},
                       out = {.type = LAYOUT_COMPOSITE, .entry = part};
    struct shape_keys *k = &g->shape;
    k->base = g->key;
    if (mw_alloc_layout(en, e->pd, MW_TYPE_1, TURNS, k->in = zeroed(mw_layout_size(TURNS)), &k->inner) ||
        mw_alloc_layout(en, e->pd, MW_TYPE_1, 2, k->out = zeroed(mw_layout_size(2)), &g->key)) {
        sim_fail(e->sim, "end %d: no key for a window", e->index);
    }
    for (uint32_t i = 0; i < TURNS && i < items; i++) { /* item i, i + TURNS, i + 2 * TURNS … */
        turn[in.count++] = (struct layout_entry_desc){.object = k->base,
                                                      .addr = g->iova + i * item,
                                                      .length = item,
                                                      .repeat = 1,
                                                      .ndim = 1,
                                                      .dim = {{TURNS * item, (items - i + TURNS - 1) / TURNS}}};
    }
    if (items) {
        bind(e, &k->inner, &in, access);
        part[out.count++] = (struct layout_entry_desc){.object = k->inner, .length = items * item};
    }
    if (rest) {
        part[out.count++] =
            (struct layout_entry_desc){.object = k->base, .addr = g->iova + items * item, .length = rest};
    }
    bind(e, &g->key, &out, access);
    g->iova = 0;
}

void shape_drop(struct end *e, struct region *g)
{
    struct engine *en = e->sim->host[e->host].e;
    struct shape_keys *k = &g->shape;
    if (!k->out) {
        return;
    }
    sim_require(e->sim, mr_deregister(en, k->base) != 0, "end %d: a region goes, though windows are bound to it",
                e->index);
    sim_require(e->sim, mw_dealloc(en, g->key) == 0 && mw_dealloc(en, k->inner) == 0, "end %d: mw_dealloc", e->index);
    g->key = k->base;
}

void shape_free(struct region *g)
{
    free(g->shape.in);
    free(g->shape.out);
}
