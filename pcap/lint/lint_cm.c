// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_cm.h"

#include <string.h>

#include "pcap/lint/base/lint_flow.h"
#include "pcap/pcapng.h"
#include "wire/cm_msg.h"
#include "wire/pkt.h"

/* A REQ is repeated as long as it has no answer, and an MRA makes its sender wait for about a minute. So an answer without
 * a request in this time before it answers nothing. Earlier in the capture, the request may be older than the capture. */
#define ANSWER_NS 600000000000u

/* A message that is judged. */
struct judged {
    struct lint *l;
    const struct flow *flow;
    const struct record *r;
    uint32_t mad; /* index in l->mads */
    struct cm_msg m;
    const char *name;
};

/* The connection of a message, and the side that sent it. */
struct sender {
    struct lint_cm_conn *conn; /* NULL: not known */
    enum lint_cm_side side;
};

static enum lint_cm_side other(enum lint_cm_side side)
{
    return side == LINT_CM_ACTIVE ? LINT_CM_PASSIVE : LINT_CM_ACTIVE;
}

static struct lint_cm_sent *sent(struct lint_cm_conn *c, enum lint_cm_side side, uint16_t attribute)
{
    return &c->end[side].sent[attribute - CM_REQ];
}

static uint64_t response_time(uint8_t exponent)
{
    return 4096ull << (exponent & 31);
}

/* --- the same message again ------------------------------------------------------------------------------ */

/* Messages that their sender keeps and sends again. The others are answers, which are made again for each request. */
static bool is_kept(uint16_t attribute)
{
    return attribute == CM_REQ || attribute == CM_REP || attribute == CM_RTU || attribute == CM_DREQ ||
           attribute == CM_LAP || attribute == CM_SIDR_REQ;
}

static bool is_limited(uint16_t attribute)
{
    return attribute == CM_REQ || attribute == CM_REP || attribute == CM_DREQ;
}

/* Is the packet not newer than the newest one with this message? Then the network made a copy of it, or the capture saw it
 * at two places. */
static bool is_copy(const struct lint_cm_sent *s, uint32_t psn)
{
    return ((psn - s->psn) & PSN_MASK) - 1 >= PSN_MASK / 2;
}

static void judge_repetition(const struct judged *j, const struct sender *from, const struct lint_cm_sent *s)
{
    struct lint *l = j->l;
    struct lint_cm_conn *c = from->conn;
    uint64_t response = c->end[from->side].response_ns, after = j->r->time_ns - s->time_ns;
    uint32_t most = 1u + c->max_retries;

    if (j->m.attribute == CM_REP) /* a REQ that comes again is answered again */
        most += sent(c, other(from->side), CM_REQ)->n - 1;
    if (is_kept(j->m.attribute) && memcmp(l->mads[s->mad].bytes, l->mads[j->mad].bytes, MAD_LEN) != 0)
        lint_report(l, LINT_CM_REPEAT_DIFFERS, j->r->frame, "the %s differs from the first one", j->name);
    else
        lint_report(l, LINT_CM_REPEAT, j->r->frame, "the %s is sent again, now %u times", j->name, s->n + 1);
    if (is_limited(j->m.attribute) && s->n == most)
        lint_report(l, LINT_CM_RETRIES, j->r->frame, "the %s is sent more than %u times", j->name, most);
    /* Half of the time, because Linux and others round it. */
    if (is_limited(j->m.attribute) && j->m.attribute != CM_REP && after < response / 2)
        lint_report(l, LINT_CM_EARLY_REPEAT, j->r->frame,
                    "the %s is repeated after %.3g ms; its peer has %.3g ms to answer", j->name, (double)after / 1e6,
                    (double)response / 1e6);
}

/* Counts the message. True: it is the first of its kind. */
static bool count(const struct judged *j, const struct sender *from)
{
    struct lint_cm_sent *s = sent(from->conn, from->side, j->m.attribute);
    bool first = s->n == 0;

    if (first)
        s->mad = j->mad;
    else if (is_copy(s, j->r->psn))
        return false;
    else
        judge_repetition(j, from, s);
    s->n++;
    s->psn = j->r->psn;
    s->time_ns = j->r->time_ns;
    return first;
}

/* --- the connection of a message -------------------------------------------------------------------------- */

static bool fits(const struct lint_cm_end *e, uint32_t id)
{
    return !e->has_id || id == 0 || e->comm_id == id;
}

/* Finds who sent a message with these communication IDs. Each host numbers for itself, so both hosts may have an active
 * side with the number: the other ID decides. */
static struct sender find_sender(const struct judged *j, uint32_t local, uint32_t remote)
{
    const struct lint_cm_table *t = &j->l->cm;
    const struct flow_key *k = &j->flow->key;
    struct lint_cm_conn *a = lint_cm_find(t, k->src, k->dst, local, false);
    struct lint_cm_conn *p = lint_cm_find(t, k->dst, k->src, remote, false);

    if (a && (!p || fits(&a->end[LINT_CM_PASSIVE], remote)))
        return (struct sender){a, LINT_CM_ACTIVE};
    return (struct sender){p, LINT_CM_PASSIVE};
}

/* The request of this answer is not in the capture. */
static void report_unknown(const struct judged *j)
{
    bool begun = j->r->time_ns < j->l->recs[0].time_ns + ANSWER_NS;
    bool any_time =
        j->m.attribute == CM_DREQ || j->m.attribute == CM_DREP || j->m.attribute == CM_LAP || j->m.attribute == CM_APR;

    if (begun || any_time)
        lint_report(j->l, LINT_CM_MIDWAY, j->r->frame, "%s of a connection whose REQ is not in the capture", j->name);
    else
        lint_report_unless(j->l, lint_may_lack_packets(j->l), LINT_CM_UNASKED, j->r->frame,
                           "%s without a request in the minutes before it", j->name);
}

/* An answer of the passive side whose communication ID no REQ has. Its transaction ID may be that of one. */
static void report_unknown_answer(const struct judged *j, uint32_t remote)
{
    const struct flow_key *k = &j->flow->key;
    const struct lint_cm_conn *c = lint_cm_find_tid(&j->l->cm, k->dst, k->src, j->m.transaction_id);

    if (c)
        lint_report(j->l, LINT_CM_IDS, j->r->frame, "%s for ID 0x%08x, but the request in frame %u has 0x%08x", j->name,
                    remote, c->frame, c->key.id);
    else
        report_unknown(j);
}

static void unasked(const struct judged *j, const char *missing)
{
    lint_report_unless(j->l, lint_may_lack_packets(j->l), LINT_CM_UNASKED, j->r->frame, "%s, but no %s before it",
                       j->name, missing);
}

/* Checks both communication IDs, as far as they are known. */
static void check_ids(const struct judged *j, const struct sender *from, uint32_t local, uint32_t remote)
{
    const struct lint_cm_end *mine = &from->conn->end[from->side], *peer = &from->conn->end[other(from->side)];

    if ((mine->has_id && mine->comm_id != local) || (peer->has_id && peer->comm_id != remote))
        lint_report(j->l, LINT_CM_IDS, j->r->frame, "%s with IDs 0x%08x, 0x%08x, its connection has 0x%08x, 0x%08x",
                    j->name, local, remote, mine->comm_id, peer->comm_id);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

/* A REQ or SIDR_REQ. With another transaction ID, the same communication ID is that of a new connection. */
static struct sender begin(const struct judged *j, uint32_t id, bool sidr)
{
    struct lint_cm_table *t = &j->l->cm;
    const struct flow_key *k = &j->flow->key;
    struct lint_cm_conn *c = lint_cm_find(t, k->src, k->dst, id, sidr);

    if (!c || c->tid_key.tid != j->m.transaction_id) {
        struct lint_cm_key key = {.id = id, .sidr = sidr};

        memcpy(key.active, k->src, 16);
        memcpy(key.passive, k->dst, 16);
        c = lint_cm_add(t, &key, j->m.transaction_id);
        if (c)
            c->frame = j->r->frame;
        else
            j->l->no_memory = true;
    }
    return (struct sender){c, LINT_CM_ACTIVE};
}

static void on_req(const struct judged *j)
{
    const struct cm_req *q = &j->m.req;
    struct sender from = begin(j, q->local_comm_id, false);

    if (!from.conn || !count(j, &from))
        return;
    struct lint_cm_conn *c = from.conn;
    c->xrc = q->transport == CM_TRANSPORT_EXTENDED;
    c->max_retries = q->max_cm_retries;
    struct lint_cm_end *active = &c->end[LINT_CM_ACTIVE], *passive = &c->end[LINT_CM_PASSIVE];
    active->comm_id = q->local_comm_id;
    active->has_id = true;
    active->qpn = q->local_qpn;
    active->response_ns = response_time(q->remote_response_timeout);
    passive->response_ns = response_time(q->local_response_timeout);
    passive->first_psn = q->starting_psn;
}

static void on_rep(const struct judged *j)
{
    const struct cm_rep *p = &j->m.rep;
    const struct flow_key *k = &j->flow->key;
    struct sender from = {lint_cm_find(&j->l->cm, k->dst, k->src, p->remote_comm_id, false), LINT_CM_PASSIVE};

    if (!from.conn) {
        report_unknown_answer(j, p->remote_comm_id);
        return;
    }
    check_ids(j, &from, p->local_comm_id, p->remote_comm_id);
    if (!count(j, &from))
        return;
    struct lint_cm_end *active = &from.conn->end[LINT_CM_ACTIVE], *passive = &from.conn->end[LINT_CM_PASSIVE];
    passive->comm_id = p->local_comm_id;
    passive->has_id = true;
    passive->qpn = from.conn->xrc ? p->local_eecn : p->local_qpn;
    active->first_psn = p->starting_psn;
    if (!lint_cm_add_qp(&j->l->cm, k->src, passive->qpn, from.conn, LINT_CM_PASSIVE) ||
        !lint_cm_add_qp(&j->l->cm, k->dst, active->qpn, from.conn, LINT_CM_ACTIVE))
        j->l->no_memory = true;
}

/* Messages that both sides know the connection for: RTU, DREQ, DREP, LAP, APR. */
static void on_connected(const struct judged *j, uint32_t local, uint32_t remote)
{
    struct sender from = find_sender(j, local, remote);
    uint16_t attribute = j->m.attribute;
    uint16_t asked = attribute == CM_DREP ? CM_DREQ : attribute == CM_APR ? CM_LAP : 0;

    if (!from.conn || (attribute == CM_RTU && from.side != LINT_CM_ACTIVE)) {
        report_unknown(j);
        return;
    }
    struct lint_cm_conn *c = from.conn;
    check_ids(j, &from, local, remote);
    if (!c->end[LINT_CM_PASSIVE].has_id)
        unasked(j, "REP");
    else if (asked && !sent(c, other(from.side), asked)->n)
        unasked(j, cm_attribute_name(asked));
    uint32_t qpn = attribute == CM_LAP ? j->m.lap.remote_qpn : j->m.dreq.remote_qpn;
    const struct lint_cm_end *peer = &c->end[other(from.side)];
    if ((attribute == CM_DREQ || attribute == CM_LAP) && peer->has_id && qpn != peer->qpn)
        lint_report(j->l, LINT_CM_IDS, j->r->frame, "%s for QP 0x%06x, its connection has 0x%06x", j->name, qpn,
                    peer->qpn);
    count(j, &from);
    if (attribute == CM_RTU)
        c->ready = true;
    if ((attribute == CM_DREQ || attribute == CM_DREP) && !c->end[from.side].closed)
        c->end[from.side].closed = j->r->frame;
}

/* MRA and REJ. The sender of a REJ may not know the connection, so its own ID is not judged. */
static void on_answer(const struct judged *j, uint8_t answers, uint32_t local, uint32_t remote)
{
    struct sender from = find_sender(j, local, remote);

    if (j->m.attribute == CM_REJ)
        lint_report(j->l, LINT_CM_REJ, j->r->frame, "refused, reason %u: %s", j->m.rej.reason,
                    cm_reject_reason_text(j->m.rej.reason));
    if (!from.conn) {
        if (answers == CM_ANSWERS_REQ)
            report_unknown_answer(j, remote);
        else
            report_unknown(j);
        return;
    }
    if (answers == CM_ANSWERS_REP && !from.conn->end[LINT_CM_PASSIVE].has_id)
        unasked(j, "REP");
    count(j, &from);
}

static void on_sidr_req(const struct judged *j)
{
    struct sender from = begin(j, j->m.sidr_req.request_id, true);

    if (from.conn)
        count(j, &from);
}

static void on_sidr_rep(const struct judged *j)
{
    const struct cm_sidr_rep *p = &j->m.sidr_rep;
    const struct flow_key *k = &j->flow->key;
    struct sender from = {lint_cm_find(&j->l->cm, k->dst, k->src, p->request_id, true), LINT_CM_PASSIVE};
    struct cm_msg request;

    if (!from.conn) {
        report_unknown_answer(j, p->request_id);
        return;
    }
    if (cm_msg_decode(j->l->mads[sent(from.conn, LINT_CM_ACTIVE, CM_SIDR_REQ)->mad].bytes, &request) == CM_DECODE_OK &&
        p->status == CM_SIDR_SUCCESS && p->service_id != request.sidr_req.service_id)
        lint_report(j->l, LINT_CM_IDS, j->r->frame,
                    "SIDR_REP for service ID 0x%016llx, the request in frame %u has another",
                    (unsigned long long)p->service_id, from.conn->frame);
    count(j, &from);
}

void lint_cm_message(struct lint *l, const struct flow *flow, uint32_t record)
{
    struct judged j = {.l = l, .flow = flow, .r = &l->recs[record], .mad = l->recs[record].mad - 1};

    if (cm_msg_decode(l->mads[j.mad].bytes, &j.m) != CM_DECODE_OK)
        return;
    j.name = cm_attribute_name(j.m.attribute);
    switch ((enum cm_attribute)j.m.attribute) {
    case CM_REQ:
        on_req(&j);
        break;
    case CM_REP:
        on_rep(&j);
        break;
    case CM_MRA:
        on_answer(&j, j.m.mra.answers, j.m.mra.local_comm_id, j.m.mra.remote_comm_id);
        break;
    case CM_REJ:
        on_answer(&j, j.m.rej.answers, j.m.rej.local_comm_id, j.m.rej.remote_comm_id);
        break;
    case CM_RTU:
    case CM_DREP:
    case CM_DREQ:
    case CM_LAP:
    case CM_APR: /* they all begin with the two IDs */
        on_connected(&j, j.m.rtu.local_comm_id, j.m.rtu.remote_comm_id);
        break;
    case CM_SIDR_REQ:
        on_sidr_req(&j);
        break;
    case CM_SIDR_REP:
        on_sidr_rep(&j);
        break;
    }
}

/* --- data ------------------------------------------------------------------------------------------------------ */

/* The number of PSNs from the one to the other, forwards. */
static uint32_t distance(uint32_t from, uint32_t to)
{
    return (to - from) & PSN_MASK;
}

/* Does the packet belong to the connection? A QP may serve another connection later, without messages of connection
 * management. Then its PSNs are far from those of this connection. */
static bool is_near(const struct flow *flow, const struct lint_cm_end *e, uint32_t psn)
{
    uint32_t expected = flow->started ? (uint32_t)flow->next & PSN_MASK : e->first_psn;

    return distance(expected, psn) < FAR_PSNS || distance(psn, expected) < FAR_PSNS;
}

/* The first request of a side. Where packets leave, none is missing before it. */
static bool judge_first(struct lint *l, const struct flow *flow, const struct record *r, const struct lint_cm_end *e)
{
    bool strict = flow->direction == PCAPNG_DIR_OUT && !lint_may_lack_packets(l) && !(r->flags & RECORD_AGAIN);

    if (strict ? r->psn == e->first_psn : distance(e->first_psn, r->psn) < FAR_PSNS)
        return true;
    lint_report(l, LINT_CM_PSN, r->frame, "the first packet has PSN 0x%06x, its peer asked for 0x%06x", r->psn,
                e->first_psn);
    return false;
}

/* Reports a rule that packets break by their order. Where packets do not leave, the network may have changed it. */
static void report_order(struct lint *l, const struct flow *flow, const struct record *r, enum lint_rule rule,
                         const char *text, uint32_t frame)
{
    bool excused = flow->direction != PCAPNG_DIR_OUT || lint_may_lack_packets(l);

    lint_report_unless(l, excused, rule, r->frame, "%s %u", text, frame);
}

/* Returns true for the first request of a new connection. */
static bool judge_data(struct lint *l, const struct flow *flow, const struct record *r, struct lint_cm_conn *c,
                       enum lint_cm_side side)
{
    struct lint_cm_end *mine = &c->end[side], *peer = &c->end[other(side)];
    bool closed = mine->closed || peer->closed, first = !mine->started && !closed;

    if (flow->key.src_qpn && flow->key.src_qpn != mine->qpn && !closed) {
        lint_report(l, LINT_CM_QPN, r->frame, "QP 0x%06x sends to a QP whose peer is 0x%06x", flow->key.src_qpn,
                    mine->qpn);
        mine->reported = true;
    } else if (first) {
        mine->reported = !judge_first(l, flow, r, mine);
        if (side == LINT_CM_PASSIVE && !c->ready && !peer->started)
            report_order(l, flow, r, LINT_CM_BEFORE_RTU, "data before the RTU for the REQ in frame", c->frame);
    } else if (mine->closed && is_near(flow, mine, r->psn)) {
        report_order(l, flow, r, LINT_CM_AFTER_DREQ, "a request after the DREQ or DREP in frame", mine->closed);
        mine->reported = true;
    }
    mine->started = true;
    return first;
}

bool lint_cm_data(struct lint *l, const struct flow *flow, uint32_t record)
{
    const struct record *r = &l->recs[record];

    if (!l->cm.qps || r->flags & RECORD_UNUSABLE)
        return false;
    struct lint_cm_qp *to = lint_cm_find_qp(&l->cm, flow->key.dst, flow->key.qpn);
    if (!to)
        return false;
    enum lint_cm_side side = other(to->side);
    const uint8_t *sender = side == LINT_CM_ACTIVE ? to->conn->key.active : to->conn->key.passive;
    return memcmp(sender, flow->key.src, 16) == 0 && !to->conn->end[side].reported &&
           judge_data(l, flow, r, to->conn, side);
}
