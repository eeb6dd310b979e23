// SPDX-License-Identifier: BSD-2-Clause
/* The engine's upcalls, on plain arrays. Each is checked by the address that it uses, so an engine that misses a
 * check is caught at the exact byte. In some of the runs, writes are deferred as in the daemon. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* --- addresses --------------------------------------------------------------------------------- */

uint8_t *mem_at(struct end *e, const struct seg *g)
{
    return e->space.mem + e->reg[g->region].off + g->off;
}

uint64_t seg_addr(const struct end *e, const struct seg *g)
{
    return e->reg[g->region].iova + g->off;
}

uint32_t seg_key(const struct end *e, const struct seg *g)
{
    return g->second ? e->reg[g->region].key2 : e->reg[g->region].key;
}

void mem_gather(struct end *e, const struct seg *g, unsigned n, uint8_t *dst)
{
    for (unsigned i = 0; i < n; i++) {
        memcpy(dst, mem_at(e, &g[i]), g[i].len);
        dst += g[i].len;
    }
}

/* Returns the host memory of a piece. The piece must lie within one region of the allowed kinds (bits of enum
 * region_id). */
static uint8_t *resolve(struct host *h, const struct mem_segment *p, unsigned regions, const char *what)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host != h->index || e->space.id != p->space) {
            continue;
        }
        for (int k = 0; k < REG_COUNT; k++) {
            uint64_t from = e->space.va + e->reg[k].off;
            if (p->va >= from && p->len <= e->reg[k].size && p->va - from <= e->reg[k].size - p->len) {
                sim_require(s, regions & (1u << k), "host %d: %s of %u bytes in region %d of end %d is not allowed",
                            h->index, what, p->len, k, i);
                return e->space.mem + (p->va - e->space.va);
            }
        }
        sim_fail(s, "host %d: %s of %u bytes at arena offset %lld of end %d is in no region", h->index, what, p->len,
                 (long long)(p->va - e->space.va), i);
    }
    uint64_t from = h->cells.va + (h->cells.len - 8 * MAX_CELLS - 8) / 2;
    if (p->space == h->cells.id && p->va >= from && p->len == 8 && p->va - from <= 8 * (MAX_CELLS - 1)) {
        sim_require(s, regions & (1u << REG_CELLS), "host %d: %s in the cells is not allowed", h->index, what);
        return h->cells.mem + (p->va - h->cells.va);
    }
    uint8_t *at = dgram_mem(h, p, regions & (1u << REG_RCV));
    if (at) {
        return at;
    }
    sim_fail(s, "host %d: %s of %u bytes at space %u, va %#llx: no such memory", h->index, what, p->len, p->space,
             (unsigned long long)p->va);
}

/* --- deferred writes --------------------------------------------------------------------------- */

static void scatter(struct host *h, const struct mem_segment *dst, unsigned ndst, const uint8_t *src, size_t len)
{
    for (unsigned i = 0; i < ndst; i++) {
        sim_require(h->sim, dst[i].len <= len, "host %d: pieces are longer than what is to be written", h->index);
        uint8_t *to = resolve(h, &dst[i], 1u << REG_DST | 1u << REG_RCV | 1u << REG_TGT, "write");
        memcpy(to, src, dst[i].len);
        src += dst[i].len;
        len -= dst[i].len;
    }
    sim_require(h->sim, len == 0, "host %d: %zu bytes of a write have no piece", h->index, len);
}

/* True if this write carries the first bytes of a request with PLANT_WRITE_FAULT: the responder's memory is gone. */
static bool is_faulty(struct host *h, uint32_t qpn, const struct mem_segment *dst, unsigned ndst)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        const struct end *e = &s->end[i];
        const struct end *q = e->peer;
        if (e->host != h->index || e->qpn != qpn || q->plant < 0 || q->op[q->plant].plant != PLANT_WRITE_FAULT ||
            ndst == 0) {
            continue;
        }
        const struct op *o = &q->op[q->plant];
        const struct rcv *v = o->recv >= 0 ? &e->rcv[o->recv] : NULL;
        for (int k = 0; k < (v ? v->nseg : 1); k++) {
            uint64_t from = e->space.va + (v ? e->reg[REG_RCV].off + v->seg[k].off : e->reg[REG_TGT].off + o->roff);
            if (dst[0].space == e->space.id && dst[0].va >= from && dst[0].va < from + (v ? v->seg[k].len : o->len)) {
                return true;
            }
        }
    }
    return false;
}

void mem_flush(struct host *h)
{
    size_t n = h->ndeferred;
    for (size_t i = 0; i < n; i++) {
        struct deferred d = h->deferred[i];
        if (is_faulty(h, d.qpn, d.dst, d.ndst)) {
            sim_require(h->sim, h->nfaulted < MAX_ENDS, "host %d: too many writes fail", h->index);
            h->faulted[h->nfaulted++] = d.qpn;
        } else {
            scatter(h, d.dst, d.ndst, d.src, d.len);
        }
    }
    sim_require(h->sim, n == h->ndeferred, "host %d: memory written while writes are carried out", h->index);
    h->ndeferred = 0;
}

void mem_report_faults(struct host *h)
{
    while (h->nfaulted > 0) {
        engine_mem_fault(h->e, h->faulted[--h->nfaulted], h->sim->now);
    }
}

/* --- upcalls ----------------------------------------------------------------------------------- */

/* True if a planted fault has removed this memory. */
static bool is_gone(struct host *h, const struct mem_segment *p)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        const struct end *q = &s->end[i];
        const struct op *o = &q->op[q->plant >= 0 ? q->plant : 0];
        bool local = o->plant == PLANT_LREAD_FAULT;
        if (q->plant < 0 || (!local && o->plant != PLANT_READ_FAULT)) {
            continue;
        }
        const struct end *e = local ? q : mem_end(q, o);
        uint64_t from = e->space.va + (local ? e->reg[REG_SRC].off + o->seg[0].off : e->reg[REG_RD].off + o->roff);
        if (e->host == h->index && p->space == e->space.id && p->va < from + o->len && from < p->va + p->len) {
            return true;
        }
    }
    return false;
}

static int up_read(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    struct host *h = ctx;
    size_t at = 0; /* position in dst[0] */
    mem_flush(h);
    for (unsigned i = 0; i < nsrc; i++) {
        if (is_gone(h, &src[i])) {
            return -1;
        }
        const uint8_t *from = resolve(h, &src[i], 1u << REG_SRC | 1u << REG_DST | 1u << REG_TGT | 1u << REG_RD, "read");
        for (size_t left = src[i].len; left > 0;) {
            sim_require(h->sim, ndst > 0, "host %d: read has more to gather than room", h->index);
            size_t n = dst->len - at < left ? dst->len - at : left;
            memcpy(dst->p + at, from, n);
            from += n;
            left -= n;
            at += n;
            if (at == dst->len) {
                dst++;
                ndst--;
                at = 0;
            }
        }
    }
    while (ndst > 0 && dst->len == at) {
        dst++;
        ndst--;
        at = 0;
    }
    sim_require(h->sim, ndst == 0, "host %d: read has more room than to gather", h->index);
    return 0;
}

static int up_write(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                    size_t len)
{
    struct host *h = ctx;
    sim_require(h->sim, ndst <= ENGINE_MAX_SGE, "host %d: write of %u pieces", h->index, ndst);
    h->sim->totals.writes++;
    if (!h->sim->sc.defer) {
        if (is_faulty(h, qpn, dst, ndst)) {
            return -1;
        }
        scatter(h, dst, ndst, src, len);
        return 0;
    }
    if (h->ndeferred == h->cap_deferred) {
        h->cap_deferred = h->cap_deferred ? 2 * h->cap_deferred : 16;
        h->deferred = realloc(h->deferred, h->cap_deferred * sizeof *h->deferred);
        if (!h->deferred) {
            abort();
        }
    }
    struct deferred *d = &h->deferred[h->ndeferred++];
    *d = (struct deferred){.ndst = ndst, .qpn = qpn, .src = src, .len = len};
    memcpy(d->dst, dst, ndst * sizeof *dst);
    return 0;
}

/* Finds the request of an atomic by its unique operand. */
static struct op *find_atomic(struct sim *s, enum mem_atomic op, uint64_t compare_add, uint64_t swap)
{
    uint64_t unique = op == MEM_CMP_SWAP ? swap : compare_add;
    uint64_t end = unique >> 48, index = (unique >> 32) & 0xffff;
    if (end == 0 || end > (uint64_t)s->sc.nends || index == 0 || index > (uint64_t)s->end[end - 1].nops) {
        return NULL;
    }
    struct op *o = &s->end[end - 1].op[index - 1];
    bool same = op == MEM_CMP_SWAP
                    ? o->opcode == WR_ATOMIC_CMP_AND_SWP && o->swap == swap && o->compare_add == compare_add
                    : o->opcode == WR_ATOMIC_FETCH_AND_ADD && o->compare_add == compare_add;
    return same ? o : NULL;
}

static bool has_rogue(const struct host *h)
{
    for (int i = 0; i < h->sim->sc.nends; i++) {
        if (h->sim->end[i].rogue && h->sim->end[i].host == h->index) {
            return true;
        }
    }
    return false;
}

static bool is_rogues(const struct sim *s, const struct op *o)
{
    for (int i = 0; i < s->sc.nends; i++) {
        if (o >= s->end[i].op && o < s->end[i].op + MAX_OPS) {
            return s->end[i].rogue;
        }
    }
    return false;
}

static int up_atomic(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add,
                     uint64_t swap, uint64_t *old)
{
    static struct op nobodys;
    struct host *h = ctx;
    struct sim *s = h->sim;
    mem_flush(h);
    sim_require(s, where->len == 8 && where->va % 8 == 0, "host %d: atomic on %u bytes at %#llx", h->index, where->len,
                (unsigned long long)where->va);
    uint8_t *p = resolve(h, where, 1u << REG_CELLS, "atomic");
    struct op *o = find_atomic(s, op, compare_add, swap);
    if (has_rogue(h) && (!o || o->executed || is_rogues(s, o))) {
        o = &nobodys;
        *o = (struct op){.roff = (uint32_t)(p - h->cells.mem) - (h->cells.len - 8 * MAX_CELLS - 8) / 2};
    }
    sim_require(s, o, "host %d: nobody asked for this atomic (operands %#llx, %#llx)", h->index,
                (unsigned long long)compare_add, (unsigned long long)swap);
    sim_require(s, p == h->cells.mem + (h->cells.len - 8 * MAX_CELLS - 8) / 2 + o->roff,
                "host %d: atomic on the wrong cell", h->index);
    sim_require(s, !o->executed, "host %d: atomic carried out twice (operands %#llx, %#llx)", h->index,
                (unsigned long long)compare_add, (unsigned long long)swap);
    memcpy(old, p, 8);
    uint64_t new = op == MEM_FETCH_ADD ? *old + compare_add : *old == compare_add ? swap : *old;
    memcpy(p, &new, 8);
    o->executed = true;
    o->old = *old;
    return 0;
}

static void up_refill(void *ctx, void *qp_owner)
{
    struct host *h = ctx;
    struct end *e = qp_owner;
    if (dgram_refill(h, qp_owner)) {
        return;
    }
    sim_require(h->sim, e >= h->sim->end && e < h->sim->end + MAX_ENDS && e->host == h->index,
                "host %d: refill for an unknown owner", h->index);
    sim_require(h->sim, has_rq(e), "end %d: refill, but it has no receive queue", e->index);
    user_post_recvs(e);
}

static void up_refill_srq(void *ctx, void *srq_owner)
{
    if (dgram_refill_srq(ctx, srq_owner)) {
        return;
    }
    struct pool *p = pool_of(ctx, srq_owner);
    if (p->refill) {
        pool_fill(p);
    }
}

const struct mem_ops host_mem_ops = {.read = up_read, .write = up_write, .atomic = up_atomic};
const struct owner_ops host_owner_ops = {.refill = up_refill, .refill_srq = up_refill_srq};
