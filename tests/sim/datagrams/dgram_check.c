// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable QPs: checks of the invariants (dgram.h). */
#include "tests/sim/sim.h"
#include "wire/gid.h"
#include "wire/grh.h"
#include "wire/pumice/probe.h"

#include <string.h>

#define POISON 0xdb

/* --- completions of sends ---------------------------------------------------------------------- */

static bool is_signaled(const struct dg_end *e, const struct dg_op *o)
{
    return e->sig_all || o->flags & SEND_SIGNALED;
}

static void check_send(struct dg_end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    int index = (int)c->slot;
    sim_require(s, c->cq == e->op && index >= e->sdone && index < e->posted,
                "datagram end %d: request %d completes, but %d is next of %d", e->index, index, e->sdone, e->posted);
    struct dg_op *o = &e->op[index];
    sim_require(s, c->wr_id == 9000 + (uint64_t)index, "datagram end %d: request %d: wr_id", e->index, index);
    for (; e->sdone < index; e->sdone++) { /* requests that complete without a completion */
        struct dg_op *before = &e->op[e->sdone];
        sim_require(s, !is_signaled(e, before) && !e->broken, "datagram end %d: no completion of %d", e->index,
                    e->sdone);
        sim_require(s, before->wrong != DG_BAD_LKEY && before->wrong != DG_TOO_LONG,
                    "datagram end %d: request %d is wrong, and no completion says so", e->index, e->sdone);
        before->ok = true;
    }
    e->sdone++;
    capture_note(s, "datagram end %d: request %d completes with status %u", e->index, index, c->status);
    uint8_t own = o->wrong == DG_BAD_LKEY ? WC_LOC_PROT_ERR : o->wrong == DG_TOO_LONG ? WC_LOC_LEN_ERR : WC_SUCCESS;
    bool flushed = c->status == WC_WR_FLUSH_ERR;
    sim_require(s, flushed ? e->broken || e->killed || index < e->flush_end : c->status == own && !e->broken,
                "datagram end %d: request %d has status %u, not %u", e->index, index, c->status, own);
    o->ok = c->status == WC_SUCCESS;
    sim_require(s, !o->ok || is_signaled(e, o), "datagram end %d: request %d is unsignaled, and completes", e->index,
                index);
    e->broken = e->broken || (own != WC_SUCCESS && !flushed && index >= e->flush_end);
}

/* --- completions of receives ------------------------------------------------------------------- */

/* Finds the message that a completion reports. */
static struct dg_op *find_op(struct dg_end *e, const struct completion *c, const uint8_t *data, int *from, int *index)
{
    struct sim *s = e->sim;
    const uint8_t *tag = c->flags & WC_WITH_IMM ? c->imm : data;
    bool long_enough = c->flags & WC_WITH_IMM || c->byte_len >= (e->ud ? 40u : 0u) + 4;
    sim_require(s, long_enough && tag[0] < s->dg.n && tag[2] == 0xd6 && tag[1] < s->dg.end[tag[0]].posted,
                "datagram end %d: %u bytes that nobody sent", e->index, c->byte_len);
    *from = tag[0];
    *index = tag[1];
    return &s->dg.end[tag[0]].op[tag[1]];
}

static void check_order(struct dg_end *e, struct dg_op *o, int from, int index)
{
    struct sim *s = e->sim;
    const struct net_faults *f = &s->sc.net;
    bool orderly = f->dup == 0 && f->reorder == 0;
    o->arrived[e->index]++;
    sim_require(s, o->arrived[e->index] <= (orderly ? 1 : DG_COPIES), "datagram end %d: request %d of %d arrives again",
                e->index, index, from);
    sim_require(s, !orderly || index > e->last_from[from], "datagram end %d: request %d of %d arrives after %d",
                e->index, index, from, e->last_from[from]);
    e->last_from[from] = index;
}

static void check_grh(struct dg_end *e, const struct dg_op *o, const struct dg_end *q, int index, const uint8_t *at)
{
    struct sim *s = e->sim;
    bool group = o->to >= DG_ENDS, v6 = !group && index % 3 == 0;
    struct grh g = {.traffic_class = q->tclass, .hop_limit = q->hops};
    uint8_t want[GRH_LEN];
    memcpy(g.src, s->host[q->host].cfg.gids[v6], 16);
    memcpy(g.dst, group ? s->dg.group[o->to - DG_ENDS] : s->host[e->host].cfg.gids[v6], 16);
    g.len = (uint16_t)(BTH_LEN + DETH_LEN + (o->opcode == WR_SEND ? 0 : IMMDT_LEN) + (o->len + 3) / 4 * 4 + ICRC_LEN);
    grh_build(&g, want);
    sim_require(s, memcmp(at, want, GRH_LEN) == 0, "datagram end %d: the header area of request %d of %d is wrong",
                e->index, index, q->index);
}

static void check_delivered(struct dg_end *e, const struct completion *c, uint8_t *buf, uint32_t cap)
{
    struct sim *s = e->sim;
    int from, index;
    uint32_t head = e->ud ? GRH_LEN : 0;
    struct dg_op *o = find_op(e, c, buf + head, &from, &index);
    struct dg_end *q = &s->dg.end[from];
    bool group = o->to >= DG_ENDS;
    bool mine = e->ud ? q->ud && (group ? e->groups >> (o->to - DG_ENDS) & 1 && q != e : o->to == e->index)
                      : q->index == e->peer;
    bool write = o->opcode == WR_RDMA_WRITE_WITH_IMM;
    sim_require(s, mine && o->opcode != WR_RDMA_WRITE, "datagram end %d: request %d of %d is not for it", e->index,
                index, from);
    sim_require(s, o->wrong == DG_FINE, "datagram end %d: request %d of %d arrives in spite of fault %u", e->index,
                index, from, o->wrong);
    sim_require(s, c->opcode == (write ? WC_RECV_RDMA_WITH_IMM : WC_RECV) && c->byte_len == head + o->len,
                "datagram end %d: request %d of %d: opcode %u, byte_len %u, not %u", e->index, index, from, c->opcode,
                c->byte_len, head + o->len);
    unsigned flags = (e->ud ? WC_GRH : 0u) | (o->opcode == WR_SEND ? 0u : WC_WITH_IMM);
    sim_require(s, c->flags == flags && c->src_qp == q->qpn && c->solicited == ((o->flags & SEND_SOLICITED) != 0),
                "datagram end %d: request %d of %d: flags %#x, from QP %u", e->index, index, from, c->flags, c->src_qp);
    const uint8_t *at = write ? e->mem + e->data_len + e->rcv_len + o->off : buf + head;
    sim_require(s, memcmp(at, q->mem + o->off, o->len) == 0, "datagram end %d: request %d of %d: wrong bytes", e->index,
                index, from);
    if (e->ud) {
        check_grh(e, o, q, index, buf);
        for (uint32_t i = head + o->len; i < cap && !(e->pool && e->pool->mixed); i++) {
            sim_require(s, buf[i] == POISON, "datagram end %d: bytes behind request %d of %d", e->index, index, from);
        }
    }
    check_order(e, o, from, index);
    capture_note(s, "datagram end %d: receive %d brings request %d of %d", e->index, (int)c->slot, index, from);
}

/* With an SRQ, any receive that was not used before may complete. Returns its buffer. */
static uint8_t *check_pooled(struct dg_end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    struct dg_pool *p = e->pool;
    int index = (int)c->slot;
    sim_require(s, c->srq_owner == p && c->cq == e->last_from && index >= 0 && index < p->rposted && !p->done[index],
                "datagram end %d: receive %d of its pool completes, out of %d", e->index, index, p->rposted);
    sim_require(s, c->wr_id == 7000 + (uint64_t)index, "datagram end %d: receive %d: wr_id", e->index, index);
    p->done[index] = true;
    p->ndone++;
    return p->mem + (size_t)index * p->cap;
}

static uint8_t *check_queued(struct dg_end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    int index = (int)c->slot;
    sim_require(s, c->cq == e->last_from && index == e->rdone && index < e->rposted,
                "datagram end %d: receive %d completes, but %d is next of %d", e->index, index, e->rdone, e->rposted);
    e->rdone++;
    return e->mem + e->data_len + (size_t)index * e->rcv_cap;
}

static void check_recv(struct dg_end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    int index = (int)c->slot;
    uint8_t *buf = e->pool ? check_pooled(e, c) : check_queued(e, c);
    sim_require(s, c->status == WC_SUCCESS || (c->status == WC_WR_FLUSH_ERR && e->killed),
                "datagram end %d: receive %d has status %u", e->index, index, c->status);
    if (c->status != WC_SUCCESS) {
        return;
    }
    sim_require(s, c->inline_len <= c->byte_len && (!e->ud || c->inline_len >= GRH_LEN),
                "datagram end %d: %u bytes in a completion of %u", e->index, c->inline_len, c->byte_len);
    memcpy(buf, c->data, c->inline_len);
    check_delivered(e, c, buf, e->pool ? e->pool->cap : e->rcv_cap);
}

bool dgram_completion(struct host *h, const struct completion *c)
{
    struct sim *s = h->sim;
    struct dg_end *e = c->qp_owner;
    if (e < s->dg.end || e >= s->dg.end + DG_ENDS) {
        return false;
    }
    sim_require(s, e->host == h->index && c->qpn == e->qpn, "host %d: a completion of a datagram end elsewhere",
                h->index);
    if (c->is_recv) {
        check_recv(e, c);
    } else {
        check_send(e, c);
    }
    return true;
}

/* --- events of SRQs ---------------------------------------------------------------------------- */

bool dgram_event(struct host *h, const struct event *ev)
{
    struct sim *s = h->sim;
    struct dg_end *e = ev->qp_owner;
    if (e < s->dg.end || e >= s->dg.end + DG_ENDS) {
        return false;
    }
    sim_require(s, ev->type == EVENT_QP_LAST_WQE_REACHED && e->pool && e->killed && !e->last_wqe_reported,
                "datagram end %d: event %u, which nothing explains", e->index, ev->type);
    e->last_wqe_reported = true;
    return true;
}

static bool processed(const struct qp_info *a, const struct qp_info *b)
{
    const struct engine_counters *x = &a->counters, *y = &b->counters;
    return a->epsn != b->epsn || x->out_of_seq_request != y->out_of_seq_request || x->rx_refused != y->rx_refused ||
           x->rx_no_recv != y->rx_no_recv || x->rcvd_bytes != y->rcvd_bytes;
}

/* After this packet, the end holds a request of its SRQ if the packet is part of an unfinished UC SEND; otherwise it
 * holds none. */
static void check_held(struct dg_end *e, const struct pkt *p, const struct qp_info *before)
{
    struct sim *s = e->sim;
    struct qp_info after;
    uint16_t props = op_table[p->opcode].properties;
    qp_info(e->qp, &after);
    if (after.state == QPS_ERR) {
        return; /* the request will be flushed */
    }
    if (!e->ud && processed(before, &after)) {
        bool taken = after.counters.rcvd_bytes != before->counters.rcvd_bytes;
        e->open = taken && props & OP_IS_SEND && !(props & (OP_IS_LAST | OP_IS_ONLY));
    }
    sim_require(s, after.rq_posted == e->open, "datagram end %d: holds %u requests of its pool, must be %d", e->index,
                after.rq_posted, e->open);
}

bool dgram_counts_packets(struct host *h, uint32_t qpn)
{
    for (int i = 0; i < h->sim->dg.n; i++) {
        const struct dg_end *e = &h->sim->dg.end[i];
        if (e->host == h->index && e->pool && e->qpn == qpn) {
            return true;
        }
    }
    return false;
}

void dgram_rx(struct host *h, const struct pkt *p, const struct pkt_run *run, const struct rx_meta *meta)
{
    struct sim *s = h->sim;
    struct qp_info before[DG_ENDS];
    for (int i = 0; i < s->dg.n; i++) {
        if (s->dg.end[i].host == h->index) {
            qp_info(s->dg.end[i].qp, &before[i]);
        }
    }
    if (run) {
        engine_rx_run(h->e, run, meta, s->now);
    } else {
        engine_rx(h->e, p, meta, s->now);
    }
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *e = &s->dg.end[i];
        if (e->host == h->index && e->pool && (e->qpn == p->dest_qpn || p->dest_qpn == QPN_MULTICAST)) {
            check_held(e, p, &before[i]);
        }
    }
}

/* --- packets ----------------------------------------------------------------------------------- */

static void check_cnp(struct sim *s, const struct pkt *p)
{
    static const uint8_t zero[PKT_CNP_LEN];
    sim_require(s,
                p->opcode == OP_CNP && p->becn && !p->fecn && !p->ackreq && p->pkey == PKEY_DEFAULT &&
                    p->payload_len == PKT_CNP_LEN && memcmp(p->payload, zero, PKT_CNP_LEN) == 0,
                "a CNP that is not as it should be");
}

bool dgram_observe(struct host *h, const struct tx_pkt *t, const struct pkt *p)
{
    struct sim *s = h->sim;
    struct probe probe;
    if ((p->opcode & OP_SERVICE_MASK) == OP_SERVICE_CNP) {
        check_cnp(s, p);
        return true;
    }
    if (t->src_qpn == PROBE_QPN) {
        sim_require(s,
                    p->opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p->dest_qpn == PROBE_QPN && !p->ackreq &&
                        p->deth.qkey == PROBE_QKEY,
                    "host %d: no probe and no SACK", h->index);
        sim_require(s, observe_sack(h, p) || probe_decode(p->payload, p->payload_len, &probe),
                    "host %d: a flow probe that is none", h->index);
        sim_require(s, !gid_is_multicast(t->av->dgid), "host %d: a probe to a group", h->index);
        return true;
    }
    for (int i = 0; i < s->dg.n; i++) {
        const struct dg_end *e = &s->dg.end[i];
        if (e->host != h->index || e->qpn != t->src_qpn) {
            continue;
        }
        uint8_t service = e->ud ? OP_SERVICE_UD : OP_SERVICE_UC;
        sim_require(s, (p->opcode & OP_SERVICE_MASK) == service && !p->ackreq && p->migreq && p->pkey == PKEY_DEFAULT,
                    "datagram end %d: sends opcode %#x", i, p->opcode);
        sim_require(s, p->psn == t->psn && !t->retransmit, "datagram end %d: PSN %u is sent again", i, p->psn);
        sim_require(s, t->av->hop_limit == e->hops && t->av->traffic_class == e->tclass,
                    "datagram end %d: the address of PSN %u is gone", i, p->psn);
        sim_require(s, !e->ud || p->deth.src_qpn == e->qpn, "datagram end %d: source QP %u", i, p->deth.src_qpn);
        return true;
    }
    return false;
}

/* Multicast is paced, not acknowledged: there is no limit on its bytes under way. */
void dgram_flies(struct sim *s, const struct wirepkt *p, bool lands)
{
    uint8_t service = p->data[0] & OP_SERVICE_MASK;
    bool ours = (service == OP_SERVICE_UC || service == OP_SERVICE_UD) && !p->group && !p->stranger && !p->rogue;
    uint32_t qpn = (uint32_t)p->data[5] << 16 | (uint32_t)p->data[6] << 8 | p->data[7];
    /* several addresses share a window, and any of them may open it */
    bool shared = s->host[p->src].cfg.max_peers < 16;
    if (!ours || qpn == PROBE_QPN || !s->sc.lossless || shared) {
        return;
    }
    uint64_t *bytes = &s->dg.flying[p->src][p->dst][p->v6];
    if (lands) {
        *bytes -= p->len;
        return;
    }
    *bytes += p->len;
    uint64_t window = s->host[p->src].cfg.peer_window_bytes;
    sim_require(s, *bytes <= window, "%llu bytes are under way from host %d to %d, window %llu",
                (unsigned long long)*bytes, p->src, p->dst, (unsigned long long)window);
}

/* --- memory ------------------------------------------------------------------------------------ */

uint8_t *dgram_mem(struct host *h, const struct mem_segment *p, bool write)
{
    struct sim *s = h->sim;
    struct dg_pool *q = &s->dg.pool[h->index];
    if (q->on && q->space == p->space) {
        uint64_t off = p->va - q->va, k = off / q->cap;
        sim_require(s,
                    write && k < DG_POOL_RCVS && off + p->len <= (k + 1) * q->cap && (int)k < q->rposted && !q->done[k],
                    "datagram pool %d: buffer %llu is written, which is not posted", h->index, (unsigned long long)k);
        return q->mem + off;
    }
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *e = &s->dg.end[i];
        if (e->host != h->index || e->space != p->space) {
            continue;
        }
        uint64_t off = p->va - e->va, data = e->data_len, rcv = data + e->rcv_len, end = rcv + e->tgt_len;
        sim_require(s, off <= end && p->len <= end - off, "datagram end %d: an upcall beyond its memory", i);
        sim_require(s, write ? off >= data : off + p->len <= data, "datagram end %d: %s at %llu + %u", i,
                    write ? "written" : "read", (unsigned long long)off, p->len);
        if (write && off < rcv) {
            int k = (int)((off - data) / e->rcv_cap);
            sim_require(s, k >= e->rdone && k < e->rposted,
                        "datagram end %d: receive buffer %d is written, which is not posted", i, k);
        }
        return e->mem + off;
    }
    return NULL;
}

/* --- at the end -------------------------------------------------------------------------------- */

/* Every byte of a target is unchanged, or is the byte that the one WRITE to it brings. */
static void check_targets(const struct dg_end *q)
{
    struct sim *s = q->sim;
    const struct dg_end *e = &s->dg.end[q->peer];
    for (int i = 0; i < q->nops; i++) {
        const struct dg_op *o = &q->op[i];
        const uint8_t *at = e->mem + e->data_len + e->rcv_len + o->off, *data = q->mem + o->off;
        bool write = o->opcode == WR_RDMA_WRITE || o->opcode == WR_RDMA_WRITE_WITH_IMM;
        bool may = write && o->wrong == DG_FINE && i < q->posted;
        bool taken = o->opcode == WR_RDMA_WRITE || (e->ample && s->sc.poll_ns == 0);
        bool must = may && s->sc.lossless && o->ok && !e->killed && taken;
        for (uint32_t k = 0; k < o->len; k++) {
            bool same = at[k] == data[k];
            sim_require(s, (may && same) || (!must && at[k] == POISON),
                        "datagram end %d: byte %u of the target of request %d is wrong", q->index, k, i);
        }
    }
}

/* How often a request must have arrived at e if nothing is lost. */
static int expected(const struct dg_end *q, const struct dg_op *o, const struct dg_end *e)
{
    bool group = o->to >= DG_ENDS;
    if (!o->ok || o->wrong != DG_FINE || o->opcode == WR_RDMA_WRITE || e->ud != q->ud) {
        return 0;
    }
    return group ? e != q && e->groups >> (o->to - DG_ENDS) & 1 : o->to == e->index;
}

void dgram_check_end(struct sim *s)
{
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *q = &s->dg.end[i];
        struct qp_info info;
        qp_info(q->qp, &info);
        sim_require(s, info.sq_posted == 0 && info.deadline == NEVER && !info.waiting_rate,
                    "datagram end %d: all is quiet, but %u requests are left", i, info.sq_posted);
        bool silent = q->posted == q->nops && !q->broken;
        for (; silent && q->sdone < q->nops && !is_signaled(q, &q->op[q->sdone]); q->sdone++) {
            q->op[q->sdone].ok = true;
        }
        sim_require(s, q->sdone == q->nops, "datagram end %d: all is quiet, but %d of %d requests are done", i,
                    q->sdone, q->nops);
        if (!q->ud) {
            check_targets(q);
        }
        for (int k = 0; k < s->dg.n; k++) {
            const struct dg_end *e = &s->dg.end[k];
            bool sure = s->sc.lossless && e->ample && !e->killed && s->sc.poll_ns == 0;
            for (int n = 0; n < q->nops && sure; n++) {
                sim_require(s, q->op[n].arrived[k] == expected(q, &q->op[n], e),
                            "datagram end %d: request %d of %d has arrived %u times, not %d", k, n, i,
                            q->op[n].arrived[k], expected(q, &q->op[n], e));
            }
        }
    }
}
