// SPDX-License-Identifier: BSD-2-Clause
/* Random work requests. Each gets its own buffers, so that the oracle knows every byte. The exceptions are
 * deliberate: WRITEs over earlier WRITEs (a duplicate that is executed late would show), READs of memory that was
 * written before, fenced requests that send the data of a READ, and atomics of several QPs on the same cells. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

bool op_takes_recv(uint8_t opcode)
{
    return opcode == WR_SEND || opcode == WR_SEND_WITH_IMM || opcode == WR_RDMA_WRITE_WITH_IMM ||
           opcode == WR_SEND_WITH_INV;
}

bool op_is_local(uint8_t opcode)
{
    return opcode == WR_BIND_MW || opcode == WR_LOCAL_INV;
}

uint32_t op_packets(const struct end *e, const struct op *o)
{
    if (op_is_local(o->opcode)) {
        return 0;
    }
    return o->len == 0 || o->rregion == REG_CELLS ? 1 : (o->len + e->mtu - 1) / e->mtu;
}

bool op_is_atomic(uint8_t opcode)
{
    return opcode == WR_ATOMIC_CMP_AND_SWP || opcode == WR_ATOMIC_FETCH_AND_ADD;
}

bool op_is_read_or_atomic(uint8_t opcode)
{
    return opcode == WR_RDMA_READ || op_is_atomic(opcode);
}

bool op_is_write(uint8_t opcode)
{
    return opcode == WR_RDMA_WRITE || opcode == WR_RDMA_WRITE_WITH_IMM || opcode == WR_ATOMIC_WRITE;
}

bool op_is_answered(uint8_t opcode)
{
    return op_is_read_or_atomic(opcode) || opcode == WR_ATOMIC_WRITE || opcode == WR_FLUSH;
}

/* --- buffers ----------------------------------------------------------------------------------- */

/* e: the owner of the region. */
static uint32_t take(struct end *e, enum region_id region, uint32_t len)
{
    uint32_t off = e->room[region];
    e->room[region] += len + (uint32_t)prng_range(&e->sim->rng, 0, 9);
    return off;
}

/* Divides len bytes into one to max segments of one region. */
static uint8_t draw_segs(struct end *e, enum region_id region, uint32_t len, unsigned max, struct seg *seg)
{
    struct prng *r = &e->sim->rng;
    unsigned n = prng_chance(r, 600) ? 1 : (unsigned)prng_range(r, 1, max);
    if (len == 0 && prng_chance(r, 500)) {
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        uint32_t part = i + 1 == n ? len : (uint32_t)prng_range(r, 0, len);
        seg[i] = (struct seg){
            .region = (uint8_t)region, .off = take(e, region, part), .len = part, .second = prng_chance(r, 300)};
        len -= part;
    }
    return (uint8_t)n;
}

static bool overlap(uint32_t a, uint32_t alen, uint32_t b, uint32_t blen)
{
    return a < b + blen && b < a + alen;
}

/* True if an earlier READ reads these bytes of the peer's target region, and they must not change. A READ of a few bytes
 * returns what was there before, even if it is repeated after a loss. A longer one that is repeated reads again. */
static bool is_read_later(const struct end *e, const struct end *where, uint32_t off, uint32_t len)
{
    for (int i = 0; i < e->nops; i++) {
        const struct op *o = &e->op[i];
        if (o->opcode == WR_RDMA_READ && o->rregion == REG_TGT && mem_end(e, o) == where && o->len > READ_EXACT &&
            !e->sim->sc.lossless && overlap(off, len, o->roff, o->len)) {
            return true;
        }
    }
    return false;
}

static const struct op *earlier(struct end *e, bool (*want)(const struct op *, uint32_t), uint32_t len)
{
    int start = e->nops ? (int)prng_range(&e->sim->rng, 0, (uint64_t)e->nops - 1) : 0;
    for (int i = 0; i < e->nops; i++) {
        const struct op *o = &e->op[(start + i) % e->nops];
        if (o->plant == PLANT_NONE && want(o, len)) {
            return o;
        }
    }
    return NULL;
}

static bool is_long_write(const struct op *o, uint32_t len)
{
    return op_is_write(o->opcode) && o->rregion == REG_TGT && o->len >= len;
}

static bool is_read_of(const struct op *o, uint32_t len)
{
    return o->opcode == WR_RDMA_READ && o->len == len && o->nseg > 0;
}

static void place_write(struct end *e, struct op *o)
{
    const struct op *old = o->len && prng_chance(&e->sim->rng, 300) ? earlier(e, is_long_write, o->len) : NULL;
    struct end *where = mem_end(e, o);
    o->rregion = REG_TGT;
    if (old && mem_end(e, old) == where) {
        uint32_t off = old->roff + (uint32_t)prng_range(&e->sim->rng, 0, old->len - o->len);
        if (!is_read_later(e, where, off, o->len)) {
            o->roff = off;
            return;
        }
    }
    o->roff = take(where, REG_TGT, o->len);
}

static void place_read(struct end *e, struct op *o)
{
    const struct op *old = o->len && prng_chance(&e->sim->rng, 400) ? earlier(e, is_long_write, o->len) : NULL;
    if (old && mem_end(e, old) == mem_end(e, o)) {
        o->rregion = REG_TGT;
        o->roff = old->roff + (uint32_t)prng_range(&e->sim->rng, 0, old->len - o->len);
    } else {
        o->rregion = REG_RD;
        o->roff = take(mem_end(e, o), REG_RD, o->len);
    }
}

/* Draws an aligned address, in an aligned region (build.c). */
static void draw_atomic_write(struct end *e, struct op *o)
{
    struct end *where = mem_end(e, o);
    const struct op *old = prng_chance(&e->sim->rng, 500) ? earlier(e, is_long_write, 8) : NULL;
    prng_fill(&e->sim->rng, (uint8_t *)&o->compare_add, 8);
    o->len = 8;
    o->rregion = REG_TGT;
    if (old && mem_end(e, old) == where) {
        uint32_t off = (old->roff + 7) & ~7u;
        if (off + 8 <= old->roff + old->len && !is_read_later(e, where, off, 8)) {
            o->roff = off;
            return;
        }
    }
    where->room[REG_TGT] = (where->room[REG_TGT] + 7) & ~7u;
    o->roff = take(where, REG_TGT, 8);
}

/* Moves the request to a place where the misaligned address is also within the region. */
static void plant_misaligned(struct end *e, struct op *o)
{
    if (o->opcode == WR_ATOMIC_WRITE) {
        struct end *where = mem_end(e, o);
        where->room[REG_TGT] = (where->room[REG_TGT] + 7) & ~7u;
        o->roff = take(where, REG_TGT, 16);
    }
}

static void draw_flush(struct end *e, struct op *o)
{
    struct prng *r = &e->sim->rng;
    o->len = 0;
    o->flen = (uint32_t)prng_pick(r, 1, 8, 100);
    o->whole = prng_chance(r, 300);
    o->rregion = (uint8_t)prng_pick(r, REG_TGT, REG_RD);
    o->roff = take(mem_end(e, o), (enum region_id)o->rregion, o->flen);
}

/* --- one request ------------------------------------------------------------------------------- */

void ops_draw_recv(struct end *home, uint32_t cap)
{
    struct prng *r = &home->sim->rng;
    struct rcv *v = &home->rcv[home->nrcv++];
    *v = (struct rcv){.wr_id = prng_next(r)};
    v->cap = cap + (uint32_t)prng_pick(r, 0, 0, 1, 17, 300);
    v->nseg = draw_segs(home, REG_RCV, v->cap, home->caps.max_recv_sge, v->seg);
}

static void add_recv(struct end *e, struct op *o)
{
    struct end *p = e->peer;
    p->nin++;
    if (has_rq(p)) {
        o->recv = p->nrcv;
        ops_draw_recv(p, o->opcode == WR_RDMA_WRITE_WITH_IMM ? 0 : o->len);
    }
}

static void draw_atomic(struct end *e, struct op *o)
{
    struct prng *r = &e->sim->rng;
    uint64_t unique =
        ((uint64_t)(e->index + 1) << 48) | ((uint64_t)(e->nops + 1) << 32) | prng_range(r, 1, 0xffffffffu);
    o->len = 8;
    o->rregion = REG_CELLS;
    o->roff = 8 * (uint32_t)prng_range(r, 0, MAX_CELLS - 1);
    if (o->opcode == WR_ATOMIC_CMP_AND_SWP) {
        o->swap = unique;
        o->compare_add = 0;
        for (int i = 0; i < e->nops; i++) { /* the current value of the cell, if no other request changes it */
            if (e->op[i].opcode == WR_ATOMIC_CMP_AND_SWP && e->op[i].roff == o->roff) {
                o->compare_add = e->op[i].swap;
            }
        }
    } else {
        o->compare_add = unique;
    }
    o->seg[0] = (struct seg){.region = REG_DST, .off = take(e, REG_DST, 8), .len = 8};
    o->nseg = 1;
}

static void draw_source(struct end *e, struct op *o)
{
    struct prng *r = &e->sim->rng;
    const struct op *read = prng_chance(r, 300) ? earlier(e, is_read_of, o->len) : NULL;
    if ((o->flags & SEND_INLINE) && o->len <= e->caps.max_inline) {
        o->seg[0] = (struct seg){.region = REG_SRC, .off = take(e, REG_SRC, o->len), .len = o->len};
        o->nseg = 1;
        return;
    }
    o->flags &= (uint8_t)~SEND_INLINE;
    if (read && read->nseg <= e->caps.max_send_sge) {
        o->flags |= SEND_FENCE;
        o->nseg = read->nseg;
        for (int i = 0; i < read->nseg; i++) {
            o->seg[i] = read->seg[i];
        }
        return;
    }
    o->nseg = draw_segs(e, REG_SRC, o->len, e->caps.max_send_sge, o->seg);
}

struct op *ops_add(struct end *e, uint8_t opcode, uint32_t len, uint8_t flags)
{
    struct prng *r = &e->sim->rng;
    struct op *o = &e->op[e->nops];
    if (e->nops == MAX_OPS) {
        fprintf(stderr, "sim: an end has more than %d requests\n", MAX_OPS);
        abort();
    }
    *o = (struct op){.opcode = opcode, .len = len, .flags = flags, .recv = -1, .wr_id = prng_next(r)};
    o->after = o->window = -1;
    o->pool = pool_draw(e);
    prng_fill(r, o->imm, sizeof o->imm);
    if (opcode == WR_RDMA_READ) {
        o->flags &= (uint8_t)~SEND_INLINE;
        o->nseg = draw_segs(e, REG_DST, len, e->caps.max_send_sge, o->seg);
        place_read(e, o);
    } else if (op_is_atomic(opcode)) {
        o->flags &= (uint8_t)~SEND_INLINE;
        draw_atomic(e, o);
    } else if (opcode == WR_ATOMIC_WRITE) {
        o->flags &= (uint8_t)~SEND_INLINE;
        draw_atomic_write(e, o);
    } else if (op_is_local(opcode)) {
        o->rregion = REG_TGT;
    } else if (opcode == WR_FLUSH) {
        o->flags &= (uint8_t)~SEND_INLINE;
        draw_flush(e, o);
    } else {
        draw_source(e, o);
        if (op_is_write(opcode)) {
            place_write(e, o);
        }
    }
    if (op_takes_recv(opcode)) {
        add_recv(e, o);
    }
    e->nops++;
    return o;
}

/* --- planted faults ---------------------------------------------------------------------------- */

void ops_plant(struct end *e, int index, enum plant plant)
{
    struct prng *r = &e->sim->rng;
    struct op *o = &e->op[index];
    o->plant = (uint8_t)plant;
    e->plant = index;
    switch (plant) {
    case PLANT_RECV_SHORT: {
        struct rcv *v = &e->peer->rcv[o->recv];
        v->plant = (uint8_t)plant;
        v->nseg = 1;
        v->seg[0] = (struct seg){.region = REG_RCV, .off = take(e->peer, REG_RCV, o->len)};
        v->seg[0].len = v->cap = (uint32_t)prng_range(r, 0, o->len - 1);
        break;
    }
    case PLANT_RECV_LKEY:
        e->peer->rcv[o->recv].plant = (uint8_t)plant;
        break;
    case PLANT_RNR:
        for (int i = o->recv; i < e->peer->nrcv; i++) {
            e->peer->rcv[i].withheld = true;
        }
        e->attr.rnr_retry = (uint8_t)prng_range(r, 0, 4);
        break;
    case PLANT_LACCESS:
        o->nseg = 1;
        o->seg[0] = (struct seg){.region = REG_SRC, .off = take(e, REG_SRC, o->len), .len = o->len};
        break;
    case PLANT_READ_FAULT:
        o->rregion = REG_RD;
        o->roff = take(mem_end(e, o), REG_RD, o->len);
        break;
    case PLANT_WRITE_FAULT:
        o->roff = take(e->peer, REG_TGT, o->len);
        break;
    case PLANT_LREAD_FAULT:
        o->nseg = 1;
        o->seg[0] = (struct seg){.region = REG_SRC, .off = take(e, REG_SRC, o->len), .len = o->len};
        break;
    case PLANT_NO_RD:
        e->peer->attr.max_dest_rd_atomic = 0;
        break;
    case PLANT_MISALIGNED:
        plant_misaligned(e, o);
        break;
    case PLANT_RANGE:
    case PLANT_WRAP:
        o->whole = false; /* otherwise the range would not be checked */
        break;
    case PLANT_QP_ACCESS:
        e->peer->attr.access &= ~(uint32_t)(o->opcode == WR_RDMA_READ ? ACCESS_REMOTE_READ
                                            : o->opcode == WR_FLUSH   ? ACCESS_FLUSH_GLOBAL
                                            : op_is_atomic(o->opcode) ? ACCESS_REMOTE_ATOMIC
                                                                      : ACCESS_REMOTE_WRITE);
        break;
    case PLANT_DEREG:
    case PLANT_REREG:
        o->rregion = o->opcode == WR_RDMA_READ ? REG_RD : REG_TGT;
        o->roff = take(e->peer, (enum region_id)o->rregion, o->len);
        break;
    default:
        break;
    }
}

/* An opcode that can have the fault. */
static uint8_t plant_opcode(struct prng *r, enum plant plant)
{
    switch (plant) {
    case PLANT_MISALIGNED:
        return (uint8_t)prng_pick(r, WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_WRITE);
    case PLANT_NO_RD:
        return (uint8_t)prng_pick(r, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_WRITE,
                                  WR_FLUSH);
    case PLANT_RECV_SHORT:
    case PLANT_RECV_LKEY:
        return (uint8_t)prng_pick(r, WR_SEND, WR_SEND_WITH_IMM);
    case PLANT_LKEY:
    case PLANT_LRANGE:
        return (uint8_t)prng_pick(r, WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD);
    case PLANT_LACCESS:
        return (uint8_t)prng_pick(r, WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD);
    case PLANT_RNR:
        return (uint8_t)prng_pick(r, WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE_WITH_IMM);
    case PLANT_READ_FAULT:
        return WR_RDMA_READ;
    case PLANT_INVALIDATE:
        return WR_SEND_WITH_INV;
    case PLANT_XRC_DOMAIN:
    case PLANT_XRC_NUMBER:
        return (uint8_t)prng_pick(r, WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ,
                                  WR_ATOMIC_FETCH_AND_ADD);
    case PLANT_DEREG:
    case PLANT_REREG:
        return (uint8_t)prng_pick(r, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ);
    case PLANT_LDEREG:
        return (uint8_t)prng_pick(r, WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ);
    case PLANT_LREAD_FAULT:
        return (uint8_t)prng_pick(r, WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM);
    case PLANT_WRITE_FAULT:
        return (uint8_t)prng_pick(r, WR_SEND, WR_RDMA_WRITE);
    default:
        return (uint8_t)prng_pick(r, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
                                  WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_WRITE, WR_FLUSH);
    }
}

/* May this request not be used with the fault? A missing right must not be used before the fault shows it. */
static bool plant_forbids(enum plant plant, uint8_t planted, uint8_t opcode)
{
    if (plant == PLANT_NO_RD) {
        return op_is_answered(opcode);
    }
    if (plant != PLANT_QP_ACCESS) {
        return false;
    }
    if (planted == WR_RDMA_READ || planted == WR_FLUSH) {
        return opcode == planted;
    }
    if (op_is_atomic(planted)) {
        return op_is_atomic(opcode);
    }
    return op_is_write(opcode);
}

/* --- all requests ------------------------------------------------------------------------------ */

static uint32_t draw_len(struct end *e, bool small)
{
    struct prng *r = &e->sim->rng;
    uint32_t mtu = e->mtu;
    if (e->sim->sc.big) {
        return (uint32_t)prng_range(r, 1, 60) * mtu + (uint32_t)prng_range(r, 0, mtu);
    }
    if (small) {
        return (uint32_t)prng_range(r, 0, 80);
    }
    uint32_t most = mtu > 1024 ? 3 : 6;
    switch (prng_range(r, 0, 9)) {
    case 0:
        return (uint32_t)prng_pick(r, 0, 0, 1, 3, 4);
    case 1:
    case 2:
        return (uint32_t)prng_range(r, 1, 128);
    case 3:
        return mtu - 1 + (uint32_t)prng_range(r, 0, 2);
    case 4:
    case 5:
    case 6:
        return mtu * (uint32_t)prng_range(r, 1, most) - 1 + (uint32_t)prng_range(r, 0, 2);
    case 7:
        return (uint32_t)prng_range(r, 1, mtu);
    default:
        return (uint32_t)prng_range(r, 1, mtu * most);
    }
}

static uint8_t draw_flags(struct end *e, uint32_t unsignaled)
{
    struct prng *r = &e->sim->rng;
    uint8_t f = prng_chance(r, unsignaled) ? 0 : SEND_SIGNALED;
    f |= prng_chance(r, 150) ? SEND_FENCE : 0;
    f |= prng_chance(r, 200) ? SEND_SOLICITED : 0;
    f |= prng_chance(r, 250) ? SEND_INLINE : 0;
    return f;
}

static uint8_t draw_opcode(struct end *e, uint8_t last)
{
    struct prng *r = &e->sim->rng;
    static const uint8_t all[] = {WR_RDMA_WRITE,           WR_RDMA_WRITE_WITH_IMM, WR_SEND,
                                  WR_SEND_WITH_IMM,        WR_RDMA_READ,           WR_ATOMIC_CMP_AND_SWP,
                                  WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_WRITE,        WR_FLUSH};
    uint8_t opcode = all[prng_range(r, 0, sizeof all - 1)];
    if (last != 0xff && prng_chance(r, 300)) {
        opcode = last; /* several of one kind in a row */
    }
    return e->attr.max_rd_atomic == 0 && op_is_answered(opcode) ? WR_SEND : opcode;
}

void ops_draw(struct end *e, int nops, bool small, enum plant plant)
{
    struct prng *r = &e->sim->rng;
    int at = plant ? (int)prng_range(r, 0, (uint64_t)nops - 1) : -1;
    uint8_t planted = plant ? plant_opcode(r, plant) : 0;
    uint32_t unsignaled = (uint32_t)prng_pick(r, 0, 300, 700, 900);
    int quiet = 0; /* number of unsignaled requests in a row: a queue must be able to drain */
    uint64_t when = 0;
    uint8_t last = 0xff;
    for (int i = 0; i < nops; i++) {
        uint8_t opcode = draw_opcode(e, last);
        uint8_t flags = draw_flags(e, unsignaled);
        uint32_t len = draw_len(e, small);
        if (i == at) {
            opcode = planted;
            len = len == 0 ? 1 + (uint32_t)prng_range(r, 0, 3 * e->mtu) : len;
            flags &= (uint8_t)~SEND_INLINE;
            /* a shorter message may travel in the completion */
            len += plant == PLANT_WRITE_FAULT ? COMPLETION_INLINE : 0;
            len = plant == PLANT_LRANGE ? 1 + len % e->mtu : len; /* so that no part of it can be sent */
            len += plant >= PLANT_DEREG ? (uint32_t)prng_range(r, 0, 30) * e->mtu : 0; /* so that it takes some time */
        } else if (i < at && plant_forbids(plant, planted, opcode)) {
            opcode = WR_SEND;
        }
        if (e->peer->leaves && (op_is_answered(opcode) || (i + 1 == nops && !op_takes_recv(opcode)))) {
            /* An end that leaves answers no READs, and must see the last message. */
            opcode = WR_SEND;
        }
        quiet = (flags & SEND_SIGNALED) || e->sig_all ? 0 : quiet + 1;
        if (i + 1 == nops || quiet >= (int)e->caps.max_send_wr) {
            flags |= SEND_SIGNALED;
            quiet = 0;
        }
        struct op *o = ops_add(e, opcode, len, flags);
        when += prng_chance(r, 150) ? prng_range(r, 1, 200 * US) : 0;
        o->at = when;
        last = i == at ? last : opcode;
    }
    if (plant) {
        ops_plant(e, at, plant);
    }
}
