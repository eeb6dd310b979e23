// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/message.h"

#include <stdlib.h>
#include <string.h>

#include "pcap/trace/psn_order.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define MOVED_MAX 65536 /* messages of a flow with larger PSNs; a message with more of them is too old to be kept */
#define ACKED_MAX 4096 /* messages that one ACK is searched for */

/* The messages of one flow. */
struct flow_messages {
    uint32_t *ids; /* indexes in messages.list, by PSN */
    size_t n, cap;
    size_t acked; /* ids[0 ... acked) are acknowledged */
    uint32_t number; /* of the newest message */
};

struct finder {
    struct trace *t;
    struct messages *out;
    struct flow_messages *flows;
};

static bool is_read(uint8_t opcode)
{
    return (opcode & OP_OPERATION_MASK) == OP_READ_REQUEST;
}

/* The number of messages of the flow that begin at or before this PSN. */
static size_t upper_bound(const struct finder *f, const struct flow_messages *fm, uint64_t psn)
{
    size_t low = 0, high = fm->n;

    if (fm->n && f->out->list[fm->ids[fm->n - 1]].psn <= psn)
        return fm->n;
    while (low < high) {
        size_t mid = (low + high) / 2;

        if (f->out->list[fm->ids[mid]].psn <= psn)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The last PSN of a message, as far as its first packet says it. */
static void set_end(const struct trace_flow *flow, struct message *m, const struct trace_packet *p)
{
    uint16_t properties = op_table[p->opcode].properties;

    m->end = m->psn;
    m->ended = properties & (OP_IS_ONLY | OP_IS_LAST) && !is_read(p->opcode);
    if (is_read(p->opcode) || (properties & OP_IS_WRITE && properties & OP_IS_FIRST)) {
        uint32_t mtu = flow->mtu ? flow->mtu : p->dmalen <= PKT_MTU_MIN ? PKT_MTU_MIN : 0;

        m->ended = mtu != 0;
        if (mtu && p->dmalen)
            m->end = m->psn + ((uint64_t)p->dmalen + mtu - 1) / mtu - 1;
    }
}

static struct message *new_message(struct finder *f, size_t at, uint32_t index)
{
    const struct trace_packet *p = &f->t->packets[index];
    struct flow_messages *fm = &f->flows[p->flow];
    uint16_t properties = op_table[p->opcode].properties;

    if (fm->n - at > MOVED_MAX)
        return NULL;
    struct message *list = trace_grow(f->t, f->out->list, f->out->n, &f->out->cap, sizeof(*list));
    uint32_t *ids = trace_grow(f->t, fm->ids, fm->n, &fm->cap, sizeof(*ids));

    if (list)
        f->out->list = list;
    if (ids)
        fm->ids = ids;
    if (!list || !ids)
        return NULL;
    memmove(ids + at + 1, ids + at, (fm->n - at) * sizeof(*ids));
    ids[at] = (uint32_t)f->out->n;
    fm->n++;
    if (at < fm->acked)
        fm->acked++;
    struct message *m = &list[f->out->n++];
    *m = (struct message){.psn = p->psn,
                          .va = p->va,
                          .rkey = p->rkey,
                          .flow = p->flow,
                          .number = ++fm->number,
                          .first = index,
                          .acked_by = TRACE_NONE,
                          .opcode = p->opcode,
                          .begun = properties & (OP_IS_FIRST | OP_IS_ONLY)};
    set_end(f->t->flows[p->flow], m, p);
    return m;
}

/* The message of a request packet: a known one, or a new one. */
static void place_request(struct finder *f, uint32_t index)
{
    struct trace_packet *p = &f->t->packets[index];
    struct flow_messages *fm = &f->flows[p->flow];
    uint16_t properties = op_table[p->opcode].properties;
    bool starts = properties & (OP_IS_FIRST | OP_IS_ONLY);
    size_t at = upper_bound(f, fm, p->psn);
    struct message *m = at ? &f->out->list[fm->ids[at - 1]] : NULL;

    bool inside = m && (p->psn == m->psn || p->psn <= m->end || (!starts && !m->ended));
    if (inside && p->psn > m->psn && is_read(p->opcode)) /* it asks for the rest of the responses */
        p->marks |= TRACE_AGAIN;
    if (!inside)
        m = new_message(f, at, index);
    if (!m)
        return;
    p->message = (uint32_t)(m - f->out->list);
    if (p->psn > m->end)
        m->end = p->psn;
    m->ended |= !starts && properties & OP_IS_LAST;
    if (properties & (OP_IS_WRITE | OP_IS_READ) && starts && !(p->marks & TRACE_AGAIN))
        m->bytes = p->dmalen;
    else if (properties & OP_IS_ATOMIC)
        m->bytes = 8;
    else if (!(properties & OP_IS_WRITE) && p->repeats == TRACE_NONE)
        m->bytes += p->len;
}

/* Marks the messages up to m as acknowledged. */
static void acknowledge(struct finder *f, struct flow_messages *fm, uint32_t index, uint64_t psn)
{
    struct trace_packet *p = &f->t->packets[index];

    for (unsigned n = 0; fm->acked < fm->n && n < ACKED_MAX; n++) {
        struct message *m = &f->out->list[fm->ids[fm->acked]];

        if (m->psn > psn || (m->ended && m->end > psn))
            break;
        if (p->first_acked == TRACE_NONE)
            p->first_acked = fm->ids[fm->acked];
        m->acked_by = index;
        fm->acked++;
    }
}

static bool acknowledges(const struct trace_packet *p)
{
    uint8_t operation = p->opcode & OP_OPERATION_MASK;

    return operation != OP_READ_RESP_MIDDLE && p->sack == TRACE_NONE && !(p->marks & TRACE_LOST) &&
           (operation != OP_ACK || (p->syndrome & AETH_KIND_MASK) == AETH_ACK);
}

static void place_response(struct finder *f, uint32_t index)
{
    struct trace_packet *p = &f->t->packets[index];
    uint32_t peer = p->sack != TRACE_NONE ? p->about : f->t->flows[p->flow]->peer;

    if (peer == TRACE_NONE || !psn_is_extended(p))
        return;
    struct flow_messages *fm = &f->flows[peer];
    size_t at = upper_bound(f, fm, p->psn);
    if (!at)
        return;
    struct message *m = &f->out->list[fm->ids[at - 1]];
    if (m->ended && p->psn > m->end)
        return;
    p->message = fm->ids[at - 1];
    if (p->psn > m->end && p->sack == TRACE_NONE)
        m->end = p->psn;
    if (is_read(m->opcode) && op_table[p->opcode].properties & OP_IS_READ &&
        op_table[p->opcode].properties & (OP_IS_LAST | OP_IS_ONLY))
        m->ended = true;
    if (acknowledges(p))
        acknowledge(f, fm, index, p->psn);
}

/* A message of its own: a datagram has no responses. */
static void place_datagram(struct finder *f, uint32_t index)
{
    struct trace_packet *p = &f->t->packets[index];
    struct message *m = new_message(f, f->flows[p->flow].n, index);

    if (!m)
        return;
    p->message = (uint32_t)(m - f->out->list);
    m->bytes = p->len;
    m->ended = true;
}

void messages_find(struct messages *out, struct trace *t)
{
    struct finder f = {t, out, calloc(t->num_flows + 1, sizeof(*f.flows))};

    memset(out, 0, sizeof(*out));
    t->no_memory |= !f.flows;
    psn_order(t);
    for (size_t i = 0; i < t->num_packets && !t->no_memory; i++) {
        const struct trace_packet *p = &t->packets[i];
        uint16_t properties = op_table[p->opcode].properties;

        if (p->marks & TRACE_UNUSABLE)
            continue;
        if (trace_is_request(p))
            place_request(&f, (uint32_t)i);
        else if (properties & OP_IS_RESPONSE || p->sack != TRACE_NONE)
            place_response(&f, (uint32_t)i);
        else if ((p->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD)
            place_datagram(&f, (uint32_t)i);
    }
    for (size_t i = 0; f.flows && i < t->num_flows; i++)
        free(f.flows[i].ids);
    free(f.flows);
}

void messages_free(struct messages *m)
{
    free(m->list);
    memset(m, 0, sizeof(*m));
}
