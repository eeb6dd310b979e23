// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters: each end has one for each kind of request, half of them for bytes. They must agree with the
 * completions, and with what the peer has requested. */
#include "tests/sim/sim.h"

void counters_attach(struct end *e)
{
    struct sim *s = e->sim;
    for (unsigned op = 0; op < CNTR_OPS; op++) {
        struct counted *c = &e->counted[op];
        comp_cntr_init(&c->cntr, (e->sq_psn + op) % 2 == 0);
        int err = comp_cntr_attach(e->qp, &c->cntr, 1u << op);
        sim_require(s, err == 0, "end %d: comp_cntr_attach of kind %u: %d", e->index, op, err);
    }
}

void counters_take(struct host *h)
{
    struct comp_cntr *cntr;
    while ((cntr = engine_pop_cntr(h->e)) != NULL) {
        struct counted *c = list_entry(cntr, struct counted, cntr);
        c->done = cntr->done;
        c->failed = cntr->failed;
    }
}

static void add(struct counted *c, bool ok, uint32_t bytes)
{
    c->want_done += ok ? (c->cntr.bytes ? bytes : 1) : 0;
    c->want_failed += !ok;
}

/* Returns CNTR_OPS for a request that no counter counts. */
static enum cntr_op kind_of(uint8_t opcode)
{
    switch (opcode) {
    case WR_SEND:
    case WR_SEND_WITH_IMM:
    case WR_SEND_WITH_INV:
        return CNTR_SEND;
    case WR_RDMA_WRITE:
    case WR_RDMA_WRITE_WITH_IMM:
        return CNTR_WRITE;
    case WR_RDMA_READ:
        return CNTR_READ;
    default:
        return CNTR_OPS;
    }
}

void counters_sent(struct end *e, const struct op *o)
{
    enum cntr_op op = kind_of(o->opcode);
    if (op < CNTR_OPS) {
        add(&e->counted[op], o->status == WC_SUCCESS, o->len);
    }
}

void counters_received(struct end *e, const struct completion *c)
{
    add(&e->counted[CNTR_RECV], c->status == WC_SUCCESS, c->opcode == WC_RECV ? c->byte_len : 0);
}

/* The results of local requests are exact, except for those that completed without a completion before the QP left. */
static void check_local(struct end *e, enum cntr_op op)
{
    const struct counted *c = &e->counted[op];
    bool exact = !e->closed || e->left;
    sim_require(e->sim, exact ? c->done == c->want_done : c->done >= c->want_done,
                "end %d: completion counter %d has %llu, but %llu completed", e->index, op, (unsigned long long)c->done,
                (unsigned long long)c->want_done);
    sim_require(e->sim, exact ? c->failed == c->want_failed : c->failed >= c->want_failed,
                "end %d: completion counter %d has %llu errors, but %llu failed", e->index, op,
                (unsigned long long)c->failed, (unsigned long long)c->want_failed);
}

/* All requests of the peer that succeeded were counted, and no request twice. A READ may be requested in parts. A WRITE
 * that was refused was counted as such. (A READ may also fail because a later request was refused before the READ was
 * answered.) */
static void check_remote(struct end *e, enum cntr_op op, enum cntr_op of_peer)
{
    const struct counted *c = &e->counted[op];
    uint64_t least = 0, most = 0, refused = 0, failed = 0;
    for (int i = 0; i < e->peer->posted; i++) {
        const struct op *o = &e->peer->op[i];
        if (kind_of(o->opcode) != of_peer) {
            continue;
        }
        uint64_t value = c->cntr.bytes ? o->len : 1;
        least += o->retired && o->status == WC_SUCCESS ? value : 0;
        uint64_t parts = op == CNTR_REMOTE_READ ? o->npsn : 1;
        most += c->cntr.bytes ? value : parts;
        failed += !o->retired || o->status != WC_SUCCESS ? parts : 0;
        refused += op == CNTR_REMOTE_WRITE && o->retired && o->status == WC_REM_ACCESS_ERR;
    }
    sim_require(e->sim, c->done >= least && c->done <= most,
                "end %d: completion counter %d has %llu, but the peer requested %llu to %llu", e->index, op,
                (unsigned long long)c->done, (unsigned long long)least, (unsigned long long)most);
    sim_require(e->sim, c->failed >= refused && c->failed <= failed,
                "end %d: completion counter %d has %llu errors, but %llu to %llu requests failed", e->index, op,
                (unsigned long long)c->failed, (unsigned long long)refused, (unsigned long long)failed);
}

void counters_check(struct sim *s)
{
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        if (e->rogue || e->peer->rogue) {
            continue;
        }
        check_local(e, CNTR_SEND);
        check_local(e, CNTR_RECV);
        check_local(e, CNTR_READ);
        check_local(e, CNTR_WRITE);
        check_remote(e, CNTR_REMOTE_READ, CNTR_READ);
        check_remote(e, CNTR_REMOTE_WRITE, CNTR_WRITE);
    }
}
