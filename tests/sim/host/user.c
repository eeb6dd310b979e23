// SPDX-License-Identifier: BSD-2-Clause
/* The users of QPs: they post requests that are due, move QPs from state to state, and leave. */
#include "tests/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xdb

/* --- posting ----------------------------------------------------------------------------------- */

static void fill_sges(const struct end *e, const struct seg *seg, unsigned n, struct sge *sge)
{
    for (unsigned i = 0; i < n; i++) {
        sge[i] = (struct sge){seg_addr(e, &seg[i]), seg[i].len, seg_key(e, &seg[i])};
    }
}

/* The first segment that has bytes. A fault in an empty segment would have no effect. */
static struct sge *first_used(struct sge *sge, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (sge[i].length > 0) {
            return &sge[i];
        }
    }
    return &sge[0];
}

#define NO_SUCH_KEY 0xdeadbeefu

static void plant_send(const struct end *e, const struct op *o, const struct region *g, struct send_wr *wr,
                       struct sge *sge)
{
    struct sim *s = e->sim;
    const struct end *p = mem_end(e, o);
    uint64_t flat = p->space.va + g->off + o->roff; /* its address in keys of the whole arena */
    struct sge *local = first_used(sge, o->nseg);
    switch (o->plant) {
    case PLANT_BAD_RKEY:
        wr->rkey = NO_SUCH_KEY;
        break;
    case PLANT_OLD_RKEY:
        wr->rkey = p->key_old;
        wr->remote_addr = flat;
        break;
    case PLANT_RANGE:
        wr->remote_addr = g->iova + g->size;
        /* Beyond the end by one byte at least. A READ may be requested in parts, and all parts must be wrong. */
        if (o->rregion != REG_CELLS && (o->opcode != WR_RDMA_READ || o->len <= e->mtu)) {
            uint32_t span = o->opcode == WR_FLUSH ? o->flen : o->len;
            wr->remote_addr -= span - 1 - o->roff % span;
        }
        break;
    case PLANT_WRAP:
        wr->remote_addr = o->rregion == REG_CELLS ? UINT64_MAX - 7 : UINT64_MAX - o->len / 2;
        break;
    case PLANT_PD:
        wr->rkey = p->key_other_pd;
        wr->remote_addr = o->rregion == REG_CELLS ? p->space.va : flat;
        break;
    case PLANT_MR_ACCESS:
        wr->rkey = p->key_no_access;
        wr->remote_addr = o->rregion == REG_CELLS ? p->space.va : flat;
        break;
    case PLANT_MISALIGNED:
        wr->remote_addr += 1 + o->wr_id % 7;
        break;
    case PLANT_INVALIDATE:
        wr->inv_rkey = o->window < 0 ? e->peer->reg[REG_TGT].key : wr->inv_rkey;
        break;
    case PLANT_XRC_DOMAIN:
        wr->srqn = pool_alien(s, e->peer)->number;
        break;
    case PLANT_XRC_NUMBER:
        wr->srqn = 0xabcde0 + (uint32_t)(o->wr_id & 7);
        break;
    case PLANT_DEREG:
    case PLANT_REREG:
        wr->rkey = p->key_fleeting;
        break;
    case PLANT_LDEREG:
        for (unsigned i = 0; i < o->nseg; i++) {
            sge[i].lkey = e->key_fleeting;
        }
        break;
    case PLANT_LKEY:
        local->lkey = NO_SUCH_KEY;
        break;
    case PLANT_LRANGE:
        local->addr = e->reg[o->seg[0].region].iova + e->reg[o->seg[0].region].size - (local->length - 1);
        break;
    default:
        break;
    }
}

static void make_send_wr(struct end *e, int index, struct send_wr *wr, struct sge *sge)
{
    struct op *o = &e->op[index];
    const struct end *p = mem_end(e, o);
    const struct region *g = o->rregion == REG_CELLS ? &p->cells : &p->reg[o->rregion];
    *wr = (struct send_wr){.wr_id = o->wr_id,
                           .slot = (uint32_t)(1000 * (e->index + 1) + index),
                           .opcode = o->opcode,
                           .flags = o->flags,
                           .num_sge = o->nseg,
                           .rkey = g->key,
                           .remote_addr = g->iova + o->roff,
                           .compare_add = o->compare_add,
                           .swap = o->swap,
                           .srqn = o->pool ? o->pool->number : 0};
    memcpy(wr->imm, o->imm, 4);
    fill_sges(e, o->seg, o->nseg, sge);
    if (o->flags & SEND_INLINE) {
        wr->num_sge = 0;
        wr->inline_len = o->len;
    } else if (o->opcode == WR_FLUSH) {
        wr->flush = (struct flush){
            .length = o->flen, .placement = FLUSH_GLOBAL, .selectivity = o->whole ? FLUSH_REGION : FLUSH_RANGE};
    } else if (o->len == 0 && !op_takes_recv(o->opcode)) {
        wr->rkey = NO_SUCH_KEY; /* must have no effect */
    }
    if (o->window >= 0) {
        window_wr(e, o, wr);
    }
    if (o->plant) {
        plant_send(e, o, g, wr, sge);
    }
}

static void post_send(struct end *e)
{
    struct sim *s = e->sim;
    struct op *o = &e->op[e->posted];
    struct send_wr wr;
    struct sge sge[MAX_SEGS];
    uint8_t data[ENGINE_MAX_INLINE];
    make_send_wr(e, e->posted, &wr, sge);
    if (o->flags & SEND_INLINE) {
        mem_gather(e, o->seg, o->nseg, data);
    }
    int err = qp_post_send(e->qp, &wr, sge, data);
    sim_require(s, err == 0, "end %d: post_send of request %d: %d", e->index, e->posted, err);
    memset(&wr, POISON, sizeof wr);
    memset(sge, POISON, sizeof sge);
    memset(data, POISON, sizeof data);
    o->posted = true;
    o->rel = e->rel_end;
    o->npsn = op_packets(e, o);
    e->rel_end += o->npsn;
    e->posted++;
    capture_note(s, "end %d posts request %d: opcode %d, %u bytes, flags %#x, PSN %u+%u", e->index, e->posted - 1,
                 o->opcode, o->len, o->flags, (e->sq_psn + o->rel) & PSN_MASK, o->npsn);
}

/* A full queue must report that it is full, and nothing else. */
static void post_too_many(struct end *e)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED};
    int err = qp_post_send(e->qp, &wr, NULL, NULL);
    sim_require(e->sim, err == -ENOMEM, "end %d: post_send to a full queue: %d", e->index, err);
}

static bool may_send(const struct end *e)
{
    return e->qp && !e->closed && qp_state(e->qp) >= QPS_RTS;
}

/* Has this message of the peer arrived? */
static bool has_come(const struct end *e, int message)
{
    const struct op *o = &e->peer->op[message];
    return o->recv >= 0 && !o->returned && recv_end(e->peer, o)->rcv[o->recv].done;
}

/* A user whose QP has failed no longer waits. */
static bool is_due(const struct end *e, const struct op *o)
{
    bool waits = o->after >= 0 && qp_state(e->qp) != QPS_ERR && !has_come(e, o->after);
    return o->at <= e->sim->now && !waits;
}

/* Returns the number of posted requests. *more: others are due but have to wait for the next step. */
static int post_sends(struct end *e, bool *more)
{
    struct sim *s = e->sim;
    int n = 0;
    while (may_send(e) && e->posted < e->nops && is_due(e, &e->op[e->posted])) {
        if (qp_send_room(e->qp) == 0) {
            if (prng_chance(&s->rng, 100)) {
                post_too_many(e);
            }
            break;
        }
        if ((uint32_t)n >= s->sc.post_chunk) {
            *more = true;
            break;
        }
        post_send(e);
        n++;
    }
    return n;
}

void user_post_recvs(struct end *e)
{
    struct sim *s = e->sim;
    while (e->rposted < e->offered && qp_recv_room(e->qp) > 0) {
        struct rcv *v = &e->rcv[e->rposted];
        struct sge sge[MAX_SEGS];
        struct recv_wr wr = {v->wr_id, (uint32_t)(1000 * (e->index + 1) + e->rposted), v->nseg};
        fill_sges(e, v->seg, v->nseg, sge);
        if (v->plant == PLANT_RECV_LKEY) {
            first_used(sge, v->nseg)->lkey = NO_SUCH_KEY;
        }
        int err = qp_post_recv(e->qp, &wr, sge);
        sim_require(s, err == 0, "end %d: post_recv %d: %d", e->index, e->rposted, err);
        memset(sge, POISON, sizeof sge);
        e->rposted++;
    }
}

static void offer_recvs(struct end *e)
{
    if (!e->qp || e->closed || !has_rq(e)) {
        return;
    }
    while (e->offered < e->nrcv && e->rcv[e->offered].at <= e->sim->now && !e->rcv[e->offered].withheld) {
        e->offered++;
    }
    if (!e->refill) {
        user_post_recvs(e);
    } else if (qp_state(e->qp) == QPS_ERR && e->rposted < e->offered) {
        qp_kick(e->qp);
    } else if (e->rposted < e->offered) {
        qp_recv_posted(e->qp);
    }
}

int user_post(struct host *h)
{
    struct sim *s = h->sim;
    bool more = false;
    int n = dgram_post(h);
    pools_post(h);
    for (int i = 0; i < s->sc.nends; i++) {
        if (s->end[i].host == h->index) {
            offer_recvs(&s->end[i]);
            n += post_sends(&s->end[i], &more);
        }
    }
    if (more) {
        evq_push(&s->events, (struct timed){.at = s->now + US, .kind = EV_POST, .n = h->index});
    }
    return n;
}

/* --- states ------------------------------------------------------------------------------------ */

static void move(struct end *e, uint8_t state, uint32_t mask)
{
    const char *why = NULL;
    struct qp_attr a = {.state = state, .sqd_async_notify = true};
    int err = qp_modify(e->qp, &a, QPA_STATE | mask, &why);
    sim_require(e->sim, err == 0, "end %d: qp_modify to %d: %d (%s)", e->index, state, err, why ? why : "?");
}

/* Is the key of the requester's planted request still needed? Exact only if nothing is lost. */
static bool is_key_wanted(struct end *requester)
{
    const struct op *o = &requester->op[requester->plant];
    struct qp_info here, there;
    qp_info(requester->qp, &here);
    qp_info(requester->peer->qp, &there);
    uint32_t end = o->rel + o->npsn;
    if (!o->posted) {
        return true;
    }
    if (o->plant == PLANT_LDEREG) {
        return (o->opcode == WR_RDMA_READ ? psn_rel(requester, here.una_psn) : requester->rel_new) < end;
    }
    return o->opcode == WR_RDMA_READ ? o->answered < o->npsn : psn_rel(requester, there.epsn) < end;
}

static void take_key(struct end *e)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    struct end *requester = e->plant >= 0 && e->op[e->plant].plant == PLANT_LDEREG ? e : e->peer;
    if (requester->plant < 0 || e->key_gone) {
        return; /* the request completed before */
    }
    struct op *o = &requester->op[requester->plant];
    if (!is_key_wanted(requester)) {
        o->plant = PLANT_NONE;
        requester->plant = -1;
    }
    e->key_gone = true;
    if (o->plant == PLANT_REREG) {
        const struct region *g = &e->reg[o->rregion];
        struct mr_init init = {.pd = e->pd,
                               .space = e->space.id,
                               .va = e->space.va + g->off,
                               .iova = g->iova,
                               .length = g->size,
                               .access = ACCESS_LOCAL_WRITE};
        sim_require(s, mr_reregister(en, e->key_fleeting, &init) == 0, "end %d: mr_reregister", e->index);
    } else {
        sim_require(s, mr_deregister(en, e->key_fleeting) == 0, "end %d: mr_deregister", e->index);
        e->key_fleeting_free = true;
    }
}

int user_leave(struct host *h)
{
    struct sim *s = h->sim;
    int n = 0;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host != h->index || !e->leaves || e->closed || e->failed || s->closing || e->sdone < e->nops ||
            e->rdone < e->nin || qp_state(e->qp) != (e->rts_at == NEVER ? QPS_RTR : QPS_RTS)) {
            continue;
        }
        struct qp_info info;
        qp_info(e->qp, &info);
        e->left_rel = psn_rel(e->peer, info.epsn);
        struct qp_init init = build_init(e);
        struct qp_attr err = {.state = QPS_ERR};
        sim_require(s, !e->disconnects || qp_modify(e->qp, &err, QPA_STATE, NULL) == 0, "end %d: to ERR", e->index);
        qp_destroy(e->qp);
        memset(e->qpmem, POISON, qp_size(&init));
        free(e->qpmem);
        e->qp = e->qpmem = NULL;
        e->closed = e->left = true;
        capture_note(s, "end %d leaves", e->index);
        n++;
    }
    return n;
}

void user_step(struct end *e, enum end_step step)
{
    struct sim *s = e->sim;
    if (!e->qp || e->closed) {
        return;
    }
    bool dead = qp_state(e->qp) == QPS_ERR;
    switch (step) {
    case STEP_RTR:
    case STEP_RTS:
        if (!dead) {
            build_connect(e, step);
        }
        break;
    case STEP_KILL:
        e->killed = true;
        move(e, QPS_ERR, 0);
        break;
    case STEP_RESET:
        move(e, QPS_RESET, 0);
        e->closed = true;
        pool_left(e);
        break;
    case STEP_SQD:
        if (qp_state(e->qp) == QPS_RTS) {
            e->sqd_pending = true;
            move(e, QPS_SQD, QPA_EN_SQD_ASYNC_NOTIFY);
        }
        break;
    case STEP_RESUME:
        if (qp_state(e->qp) == QPS_SQD) {
            e->sqd_pending = false; /* it may not have drained yet */
            move(e, QPS_RTS, 0);
        }
        break;
    case STEP_KEY:
        take_key(e);
        break;
    case STEP_CLOSE:
        e->killed = true;
        if (dead || prng_chance(&s->rng, 600)) {
            move(e, QPS_ERR, 0);
        } else {
            move(e, QPS_RESET, 0);
            e->closed = true;
            pool_left(e);
        }
        break;
    }
    capture_note(s, "end %d: step %d, state %d", e->index, step, qp_state(e->qp));
}

bool user_idle(const struct end *e)
{
    int receives = 0;
    if (e->closed || e->rogue) {
        return true;
    }
    if (e->failed) {
        return e->sdone == e->nops && (!has_rq(e) || e->rdone == e->offered);
    }
    for (int i = 0; i < e->peer->nops; i++) {
        const struct op *o = &e->peer->op[i];
        receives += op_takes_recv(o->opcode) && o->retired && o->status == WC_SUCCESS;
    }
    return e->sdone == e->nops && e->rdone >= receives;
}
