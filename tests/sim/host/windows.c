// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows: work for a pair of ends in which each lets the other use parts of its memory for some time.
 *
 * One round: the owner binds a window and sends a message after the bind. When the message has arrived, the user
 * reads and writes through the window. Then the user gives the window back: by a SEND with invalidate, or by a
 * message after which the owner invalidates, unbinds or rebinds it. Nothing else orders the requests of the two ends,
 * and other requests continue meanwhile. Rounds are drawn one after the other, and a request waits only for requests
 * that were drawn before it. So there is no deadlock.
 *
 * If a window opens too little, too late, or not for long enough, a request is refused. If a window opens too much,
 * the last round of some exchanges shows it, because it has a request that must be refused. */
#include "tests/sim/sim.h"

#define ROUNDS 14

/* How a window comes back. */
enum ending {
    END_STAYS, /* it does not come back */
    END_SEND_INV, /* type 2 */
    END_LOCAL, /* the owner gets a message; type 2: it invalidates, type 1: it unbinds */
    END_REBIND, /* type 1: the owner gets a message, and binds it again later */
};

/* Adds a request. At certain intervals a request must be signaled. */
static struct op *add(struct end *e, uint8_t opcode, uint32_t len, uint8_t flags)
{
    uint32_t quiet = 1;
    for (int i = e->nops; i > 0 && !(e->op[i - 1].flags & SEND_SIGNALED); i--) {
        quiet++;
    }
    if (prng_chance(&e->sim->rng, 500) || quiet >= e->caps.max_send_wr) {
        flags |= SEND_SIGNALED;
    }
    return ops_add(e, opcode, len, flags);
}

static uint32_t draw_len(struct end *e)
{
    return (uint32_t)prng_range(&e->sim->rng, 1, prng_chance(&e->sim->rng, 300) ? 3 * e->mtu : 80);
}

/* Adds a message of e. Returns its number, for requests that wait until the peer has it. */
static int message(struct end *e, int after, uint8_t flags)
{
    struct op *o = add(e, WR_SEND, draw_len(e), flags);
    o->after = after;
    return (int)(o - e->op);
}

/* Other traffic. */
static void add_noise(struct end *e)
{
    static const uint8_t opcodes[] = {WR_RDMA_WRITE,           WR_RDMA_WRITE_WITH_IMM, WR_SEND, WR_RDMA_READ,
                                      WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_WRITE,        WR_FLUSH};
    for (uint64_t n = prng_range(&e->sim->rng, 0, 2); n > 0; n--) {
        add(e, opcodes[prng_range(&e->sim->rng, 0, sizeof opcodes - 1)], draw_len(e), 0);
    }
}

/* --- one round --------------------------------------------------------------------------------- */

static uint32_t right_for(uint8_t opcode)
{
    return opcode == WR_RDMA_READ ? ACCESS_REMOTE_READ : opcode == WR_FLUSH ? ACCESS_FLUSH_GLOBAL : ACCESS_REMOTE_WRITE;
}

static uint32_t span_of(const struct op *o)
{
    return o->opcode == WR_FLUSH ? o->flen : o->len;
}

/* The owner binds its window. use() fills in the range. */
static struct op *draw_bind(struct end *owner, int window)
{
    struct prng *r = &owner->sim->rng;
    struct window *w = &owner->window[window];
    struct op *b = add(owner, WR_BIND_MW, 0, prng_chance(r, 200) ? SEND_FENCE : 0);
    b->window = window;
    b->after = w->after;
    b->old_tag = w->tag;
    if (w->type == MW_TYPE_1) {
        w->tag++;
    } else if (prng_chance(r, 300)) { /* otherwise the same tag again: the user may choose it */
        w->tag = (uint8_t)prng_next(r);
    }
    b->tag = w->tag;
    w->after = -1;
    w->bound = true;
    return b;
}

/* A request of the user through the window. The window is extended to cover it. */
static struct op *use(struct end *user, struct op *bind, int after)
{
    static const uint8_t opcodes[] = {
        WR_RDMA_WRITE, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ, WR_RDMA_READ, WR_ATOMIC_WRITE, WR_FLUSH};
    struct op *o = add(user, opcodes[prng_range(&user->sim->rng, 0, sizeof opcodes - 1)], draw_len(user), 0);
    o->after = after;
    if (bind->wlen > 0 && bind->rregion != o->rregion) {
        return o; /* uses the region's own key */
    }
    uint32_t end = o->roff + span_of(o);
    if (bind->wlen == 0) {
        bind->rregion = o->rregion;
        bind->woff = o->roff;
        bind->wlen = span_of(o);
    } else {
        end = end > bind->woff + bind->wlen ? end : bind->woff + bind->wlen;
        bind->woff = o->roff < bind->woff ? o->roff : bind->woff;
        bind->wlen = end - bind->woff;
    }
    /* Addresses that are aligned in memory must also be aligned relative to the window's start. */
    if (bind->waccess & ACCESS_ZERO_BASED) {
        bind->wlen += bind->woff & 7;
        bind->woff &= ~7u;
    }
    bind->waccess |= right_for(o->opcode);
    o->window = bind->window;
    o->tag = bind->tag;
    o->bind = (int)(bind - user->peer->op);
    return o;
}

/* A message that gives the window back. It is fenced, because READs through the window must be done. */
static int give_back(struct end *user, const struct op *bind, bool invalidate)
{
    struct op *o = add(user, invalidate ? WR_SEND_WITH_INV : WR_SEND, draw_len(user), SEND_FENCE);
    o->window = invalidate ? bind->window : -1;
    o->tag = bind->tag;
    return (int)(o - user->op);
}

static void end_round(struct end *owner, const struct op *bind, enum ending ending)
{
    struct window *w = &owner->window[bind->window];
    if (ending == END_STAYS) {
        w->used_up = true;
        return;
    }
    w->after = give_back(owner->peer, bind, ending == END_SEND_INV);
    w->bound = ending == END_REBIND;
    if (ending == END_LOCAL) {
        struct op *o = add(owner, w->type == MW_TYPE_2 ? WR_LOCAL_INV : WR_BIND_MW, 0, 0);
        o->window = bind->window;
        o->after = w->after;
        o->old_tag = o->tag = w->tag;
        if (w->type == MW_TYPE_1) {
            o->tag = ++w->tag;
        }
        w->after = -1; /* the send queue keeps the order */
    }
}

static struct op *begin_round(struct end *owner, int window, int *told)
{
    struct op *bind = draw_bind(owner, window);
    *told = message(owner, -1, 0);
    return bind;
}

static void draw_round(struct end *owner)
{
    struct prng *r = &owner->sim->rng;
    int window = (int)prng_range(r, 0, MAX_WINDOWS - 1), told;
    struct window *w = &owner->window[window];
    if (w->used_up) {
        return;
    }
    struct op *bind = begin_round(owner, window, &told);
    if (w->type == MW_TYPE_2 && prng_chance(r, 300)) {
        bind->waccess = ACCESS_ZERO_BASED;
    }
    for (uint64_t n = prng_range(r, 1, 3); n > 0; n--) {
        use(owner->peer, bind, told);
    }
    enum ending ending = w->type == MW_TYPE_2 ? (enum ending)prng_pick(r, END_SEND_INV, END_LOCAL)
                                              : (enum ending)prng_pick(r, END_LOCAL, END_REBIND);
    end_round(owner, bind, prng_chance(r, 100) ? END_STAYS : ending);
}

/* --- requests that must be refused ------------------------------------------------------------- */

static void plant(struct end *e, const struct op *o, enum plant p)
{
    ops_plant(e, (int)(o - e->op), p);
}

/* A WRITE without immediate data, so that only the key can be wrong. */
static struct op *use_to_write(struct end *user, struct op *bind, int after)
{
    struct op *o = add(user, WR_RDMA_WRITE, 8 + draw_len(user), 0);
    o->after = after;
    o->window = bind->window;
    o->tag = bind->tag;
    o->bind = (int)(bind - user->peer->op);
    bind->rregion = o->rregion;
    bind->woff = o->roff;
    bind->wlen = o->len;
    bind->waccess = ACCESS_REMOTE_WRITE;
    return o;
}

/* Uses a window that is no longer bound, or no longer has this key. */
static void plant_stale(struct end *owner, int window, enum ending ending)
{
    int told;
    struct op *bind = begin_round(owner, window, &told);
    struct op *good = use_to_write(owner->peer, bind, told);
    end_round(owner, bind, ending);
    if (ending == END_REBIND) {
        struct op *again = draw_bind(owner, window);
        again->rregion = bind->rregion;
        again->woff = bind->woff;
        again->wlen = bind->wlen;
        again->waccess = bind->waccess;
    }
    int gone = ending == END_SEND_INV ? -1 : message(owner, -1, 0);
    struct op *bad = add(owner->peer, WR_RDMA_WRITE, 1 + good->len / 2, 0);
    bad->rregion = good->rregion;
    bad->roff = good->roff;
    bad->after = gone;
    bad->window = bind->window;
    bad->tag = bind->tag;
    bad->bind = good->bind;
    plant(owner->peer, bad, PLANT_WINDOW);
}

/* Uses memory beyond the window but within its region, or uses the window without the right. */
static void plant_beyond(struct end *owner, int window, bool right)
{
    int told;
    struct op *bind = begin_round(owner, window, &told);
    struct op *o = use_to_write(owner->peer, bind, told);
    if (right) {
        bind->waccess = prng_chance(&owner->sim->rng, 500) ? ACCESS_REMOTE_READ : 0;
    } else if (prng_chance(&owner->sim->rng, 500)) {
        bind->wlen--;
    } else {
        bind->woff++;
        bind->wlen--;
    }
    plant(owner->peer, o, PLANT_WINDOW);
}

/* A bind or an invalidation that breaks a rule. */
static void plant_local(struct end *owner, int window, bool bind_twice)
{
    int told;
    struct op *bind = begin_round(owner, window, &told);
    use_to_write(owner->peer, bind, told);
    if (bind_twice) {
        struct op *o = draw_bind(owner, window);
        o->rregion = bind->rregion;
        o->woff = bind->woff;
        o->wlen = bind->wlen;
        plant(owner, o, PLANT_BIND);
        return;
    }
    end_round(owner, bind, END_LOCAL);
    struct op *o = add(owner, WR_LOCAL_INV, 0, 0);
    o->window = window;
    o->tag = bind->tag;
    plant(owner, o, PLANT_LOCAL_INV);
}

static void plant_invalidate(struct end *owner, int window)
{
    int told;
    struct op *bind = begin_round(owner, window, &told);
    use_to_write(owner->peer, bind, told);
    end_round(owner, bind, END_SEND_INV);
    struct op *o = add(owner->peer, WR_SEND_WITH_INV, draw_len(owner->peer), 0);
    o->window = window;
    o->tag = bind->tag;
    plant(owner->peer, o, PLANT_INVALIDATE);
}

static void draw_refusal(struct end *owner)
{
    struct prng *r = &owner->sim->rng;
    int one = 0, two = 1; /* their types are set in windows_draw */
    owner->window[one].used_up = owner->window[two].used_up = false;
    /* The window stayed bound and can't be bound again. */
    if (owner->window[two].bound) {
        struct op *o = add(owner, WR_LOCAL_INV, 0, 0);
        o->window = two;
        o->tag = owner->window[two].tag;
        o->after = message(owner->peer, -1, SEND_FENCE); /* then its user is done */
        owner->window[two].bound = false;
    }
    if (owner->window[one].after < 0) {
        owner->window[one].after = message(owner->peer, -1, SEND_FENCE);
    }
    switch (prng_range(r, 0, 7)) {
    case 0:
        plant_stale(owner, two, END_SEND_INV);
        break;
    case 1:
        plant_stale(owner, two, END_LOCAL);
        break;
    case 2:
        plant_stale(owner, one, END_REBIND);
        break;
    case 3:
        plant_stale(owner, one, END_LOCAL);
        break;
    case 4:
        plant_beyond(owner, (int)prng_pick(r, one, two), prng_chance(r, 500));
        break;
    case 5:
        plant_local(owner, two, true);
        break;
    case 6:
        plant_local(owner, two, false);
        break;
    default:
        plant_invalidate(owner, two);
        break;
    }
}

/* --- the whole work ---------------------------------------------------------------------------- */

void windows_draw(struct end *a, struct end *b, bool refusal)
{
    struct prng *r = &a->sim->rng;
    for (int k = 0; k < 2; k++) {
        struct end *e = k ? b : a;
        e->has_windows = true;
        for (int i = 0; i < MAX_WINDOWS; i++) {
            e->window[i] = (struct window){.after = -1};
            e->window[i].type = (uint8_t)(i == 0 ? MW_TYPE_1 : i == 1 ? MW_TYPE_2 : prng_range(r, 1, 2));
        }
    }
    for (uint64_t n = prng_range(r, 1, ROUNDS); n > 0; n--) {
        draw_round(prng_chance(r, 500) ? a : b);
        add_noise(a);
        add_noise(b);
        if (a->nops > MAX_OPS - 16 || b->nops > MAX_OPS - 16 || a->nrcv > MAX_RCV - 16 || b->nrcv > MAX_RCV - 16) {
            break;
        }
    }
    if (refusal) {
        draw_refusal(prng_chance(r, 500) ? a : b);
    }
    for (int k = 0; k < 2; k++) {
        struct end *e = k ? b : a;
        if (e->nops > 0) {
            e->op[e->nops - 1].flags |= SEND_SIGNALED;
        }
    }
}

void windows_build(struct end *e)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    static const uint32_t access[REG_COUNT] = {
        [REG_TGT] = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_FLUSH_GLOBAL,
        [REG_RD] = ACCESS_MW_BIND | ACCESS_FLUSH_GLOBAL,
    };
    for (int i = REG_TGT; i <= REG_RD && e->has_windows; i++) {
        const struct region *g = &e->reg[i];
        struct mr_init init = {.pd = e->pd,
                               .space = e->space.id,
                               .va = e->space.va + g->off,
                               .iova = g->iova,
                               .length = g->size,
                               .access = access[i]};
        sim_require(s, mr_register(en, &init, &e->key_beneath[i]) == 0, "end %d: mr_register", e->index);
    }
    for (int i = 0; i < MAX_WINDOWS && e->has_windows; i++) {
        int err = mw_alloc(en, e->pd, e->window[i].type, &e->window[i].key);
        sim_require(s, err == 0, "end %d: mw_alloc: %d", e->index, err);
    }
}

static uint32_t key_of(const struct end *owner, int window, uint8_t tag)
{
    return (owner->window[window].key & ~0xffu) | tag;
}

void window_wr(const struct end *e, const struct op *o, struct send_wr *wr)
{
    const struct end *p = e->peer;
    if (o->opcode == WR_BIND_MW) {
        const struct window *w = &e->window[o->window];
        bool one = w->type == MW_TYPE_1;
        wr->bind = (struct mw_bind){.mw_key = key_of(e, o->window, one ? o->old_tag : o->tag),
                                    .new_key = one ? key_of(e, o->window, o->tag) : 0,
                                    .mr_key = e->key_beneath[o->rregion],
                                    .access = o->waccess,
                                    .addr = e->reg[o->rregion].iova + o->woff,
                                    .length = o->wlen};
    } else if (o->opcode == WR_LOCAL_INV) {
        wr->inv_rkey = key_of(e, o->window, o->tag);
    } else if (o->opcode == WR_SEND_WITH_INV) {
        wr->inv_rkey = key_of(p, o->window, o->tag);
    } else {
        const struct op *bind = &p->op[o->bind];
        wr->rkey = key_of(p, o->window, o->tag);
        wr->remote_addr -= bind->waccess & ACCESS_ZERO_BASED ? p->reg[o->rregion].iova + bind->woff : 0;
    }
}

/* After an exchange without failures it is known which windows are bound at the end. Their regions can't be
 * deregistered. */
void windows_destroy(struct end *e)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    bool known = !e->failed && !e->peer->failed && e->plant < 0 && e->peer->plant < 0 && e->sdone == e->nops;
    bool busy[REG_COUNT] = {false}, gone[REG_COUNT] = {false};
    if (!e->has_windows) {
        return;
    }
    for (int i = 0; i < MAX_WINDOWS; i++) {
        int region = 0; /* region of the window's last bind, if it was not invalidated after that */
        for (int k = 0; k < e->nops; k++) {
            const struct op *o = &e->op[k];
            bool changes = o->opcode == WR_BIND_MW || o->opcode == WR_LOCAL_INV;
            if (changes && o->window == i) {
                region = o->wlen > 0 ? o->rregion : 0;
            }
        }
        if (e->window[i].bound) {
            busy[region] = true;
        }
    }
    for (int i = REG_TGT; i <= REG_RD; i++) {
        int err = mr_deregister(en, e->key_beneath[i]);
        gone[i] = err == 0;
        sim_require(s, !known || (err != 0) == busy[i], "end %d: region %d of windows: mr_deregister: %d", e->index, i,
                    err);
    }
    for (int i = 0; i < MAX_WINDOWS; i++) {
        sim_require(s, mw_dealloc(en, e->window[i].key) == 0, "end %d: mw_dealloc", e->index);
    }
    for (int i = REG_TGT; i <= REG_RD; i++) {
        sim_require(s, gone[i] || mr_deregister(en, e->key_beneath[i]) == 0, "end %d: mr_deregister", e->index);
    }
}
