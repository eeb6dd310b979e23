// SPDX-License-Identifier: BSD-2-Clause
/* The expected content of memory. The requests of one direction take effect in order. They touch nothing that another
 * direction touches, except the cells of atomics, which mem.c checks. So a sequential model is exact. After a
 * failure, some requests may have been executed without a report. Then each of their bytes is either the old or the
 * new one. */
#include "tests/sim/sim.h"

#include <string.h>

static bool is_write(const struct op *o)
{
    return op_is_write(o->opcode);
}

/* --- effects ----------------------------------------------------------------------------------- */

static void put_segs(struct end *e, const struct seg *seg, unsigned n, const uint8_t *data, uint32_t len, uint8_t *mem)
{
    for (unsigned i = 0; i < n && len > 0; i++) {
        uint32_t part = seg[i].len < len ? seg[i].len : len;
        memcpy(mem + e->reg[seg[i].region].off + seg[i].off, data, part);
        data += part;
        len -= part;
    }
}

/* Applies a request to the `want` copies. */
static void apply(struct end *e, const struct op *o)
{
    struct end *p = mem_end(e, o);
    if (o->opcode == WR_FLUSH || op_is_local(o->opcode)) {
        return;
    }
    if (o->opcode == WR_RDMA_READ) {
        put_segs(e, o->seg, o->nseg, o->data, o->len, e->space.want);
    } else if (op_is_read_or_atomic(o->opcode)) {
        put_segs(e, o->seg, o->nseg, (const uint8_t *)&o->old, 8, e->space.want);
    } else if (is_write(o)) {
        memcpy(p->space.want + p->reg[REG_TGT].off + o->roff, o->data, o->len);
    } else {
        p = recv_end(e, o);
        const struct rcv *v = &p->rcv[o->recv];
        put_segs(p, v->seg, v->nseg, o->data, o->len, p->space.want);
    }
}

void oracle_model(struct sim *s)
{
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        for (int i = 0; i < e->nops; i++) {
            struct op *o = &e->op[i];
            struct end *p = mem_end(e, o);
            if (o->opcode == WR_RDMA_READ) {
                memcpy(o->data, p->space.want + p->reg[o->rregion].off + o->roff, o->len);
            } else if (o->opcode == WR_ATOMIC_WRITE) {
                memcpy(o->data, &o->compare_add, 8);
            } else if (!op_is_read_or_atomic(o->opcode)) {
                uint8_t *to = o->data;
                for (unsigned g = 0; g < o->nseg; g++) {
                    memcpy(to, e->space.want + e->reg[o->seg[g].region].off + o->seg[g].off, o->seg[g].len);
                    to += o->seg[g].len;
                }
            }
            /* later requests take effect only if this one does */
            bool may_be_done = o->plant == PLANT_NONE || o->plant >= PLANT_DEREG;
            if (may_be_done && (o->opcode == WR_RDMA_READ || is_write(o))) {
                apply(e, o);
            }
        }
    }
    for (int k = 0; k < s->sc.nends; k++) {
        memcpy(s->end[k].space.want, s->end[k].space.mem, s->end[k].space.len);
    }
}

/* --- checks at completions --------------------------------------------------------------------- */

static bool segs_hold(struct end *e, const struct seg *seg, unsigned n, const uint8_t *data, uint32_t len)
{
    for (unsigned i = 0; i < n && len > 0; i++) {
        uint32_t part = seg[i].len < len ? seg[i].len : len;
        if (memcmp(mem_at(e, &seg[i]), data, part) != 0) {
            return false;
        }
        data += part;
        len -= part;
    }
    return len == 0;
}

void oracle_recv(struct end *e, const struct op *o)
{
    struct end *home = recv_end(e->peer, o);
    const struct rcv *v = &home->rcv[o->recv];
    sim_require(e->sim, is_write(o) || segs_hold(home, v->seg, v->nseg, o->data, o->len),
                "end %d: receive %d does not hold the message", e->index, o->recv);
}

static bool is_overwritten(const struct end *e, int index)
{
    const struct op *o = &e->op[index];
    for (int i = index + 1; i < e->posted; i++) {
        const struct op *l = &e->op[i];
        if (is_write(l) && mem_end(e, l) == mem_end(e, o) && l->roff < o->roff + o->len && o->roff < l->roff + l->len) {
            return true;
        }
    }
    return false;
}

void oracle_send(struct end *e, int index)
{
    struct sim *s = e->sim;
    const struct op *o = &e->op[index];
    struct end *p = mem_end(e, o);
    if (o->opcode == WR_RDMA_READ) {
        sim_require(s, segs_hold(e, o->seg, o->nseg, o->data, o->len), "end %d: READ %d has not brought its data",
                    e->index, index);
    } else if (op_is_read_or_atomic(o->opcode)) {
        uint64_t got;
        memcpy(&got, mem_at(e, &o->seg[0]), 8);
        sim_require(s, o->executed, "end %d: atomic %d completes, but was not carried out", e->index, index);
        sim_require(s, got == o->old, "end %d: atomic %d returns %#llx, not %#llx", e->index, index,
                    (unsigned long long)got, (unsigned long long)o->old);
    } else if (is_write(o) && o->len > 0 && !is_overwritten(e, index)) {
        sim_require(s, memcmp(p->space.mem + p->reg[REG_TGT].off + o->roff, o->data, o->len) == 0,
                    "end %d: WRITE %d completes, but its data is not there", e->index, index);
    }
}

/* --- checks at the end ------------------------------------------------------------------------- */

enum effect {
    EFFECT_NONE,
    EFFECT_MAYBE,
    EFFECT_DONE,
};

static enum effect effect_of(const struct end *e, int index)
{
    const struct op *o = &e->op[index];
    if (!o->posted) {
        return EFFECT_NONE;
    }
    if (o->retired && o->status == WC_SUCCESS) {
        return EFFECT_DONE;
    }
    if (e->plant >= 0 && index >= e->plant) {
        return expect_late(e) || (index == e->plant && expectations[o->plant].partly) ? EFFECT_MAYBE : EFFECT_NONE;
    }
    return EFFECT_MAYBE;
}

/* The value that request o of end e writes to byte `off` of the owner's arena; NULL: it does not write there. */
static const uint8_t *byte_from(const struct end *e, const struct op *o, const struct end *owner, uint32_t off)
{
    const struct end *p = mem_end(e, o);
    const struct seg *seg = o->seg;
    unsigned n = o->nseg;
    const uint8_t *data =
        op_is_read_or_atomic(o->opcode) && o->opcode != WR_RDMA_READ ? (const uint8_t *)&o->old : o->data;
    if (is_write(o)) {
        uint32_t from = p->reg[REG_TGT].off + o->roff;
        return owner == p && off >= from && off < from + o->len ? data + (off - from) : NULL;
    }
    if (!op_is_read_or_atomic(o->opcode)) {
        p = recv_end(e, o);
        if (o->recv < 0) {
            return NULL;
        }
        seg = p->rcv[o->recv].seg;
        n = p->rcv[o->recv].nseg;
        e = p;
    }
    uint32_t left = o->len;
    for (unsigned i = 0; owner == e && i < n && left > 0; i++) {
        uint32_t part = seg[i].len < left ? seg[i].len : left;
        uint32_t from = e->reg[seg[i].region].off + seg[i].off;
        if (off >= from && off < from + part) {
            return data + (off - from);
        }
        data += part;
        left -= part;
    }
    return NULL;
}

static bool may_be(struct sim *s, const struct end *owner, uint32_t off)
{
    for (int k = 0; k < s->sc.nends; k++) {
        const struct end *e = &s->end[k];
        for (int i = 0; i < e->posted; i++) {
            if (effect_of(e, i) == EFFECT_MAYBE) {
                const uint8_t *b = byte_from(e, &e->op[i], owner, off);
                if (b && *b == owner->space.mem[off]) {
                    return true;
                }
            }
        }
    }
    return false;
}

static const char *region_name(const struct end *e, uint32_t off, uint32_t *in)
{
    static const char *const names[REG_COUNT] = {"src", "dst", "rcv", "tgt", "rd"};
    for (int i = 0; i < REG_COUNT; i++) {
        if (off >= e->reg[i].off && off < e->reg[i].off + e->reg[i].size) {
            *in = off - e->reg[i].off;
            return names[i];
        }
    }
    *in = off;
    return "canary";
}

void oracle_final(struct sim *s)
{
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        for (int i = 0; i < e->nops && !e->rogue; i++) {
            if (effect_of(e, i) == EFFECT_DONE) {
                apply(e, &e->op[i]);
            }
        }
    }
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        if (e->rogue || memcmp(e->space.mem, e->space.want, e->space.len) == 0) {
            continue;
        }
        for (uint32_t off = 0; off < e->space.len; off++) {
            uint32_t in;
            const char *name = region_name(e, off, &in);
            sim_require(s, e->space.mem[off] == e->space.want[off] || may_be(s, e, off),
                        "end %d: memory: byte %u of %s is %#x, must be %#x", k, in, name, e->space.mem[off],
                        e->space.want[off]);
        }
    }
}
