// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "wire/cm_msg.h"
#include "wire/opcode.h"

#define RECENT 256 /* open rendezvous requests, or connections, that a search looks at */

/* A rendezvous request that was seen. */
struct rendezvous {
    uint32_t exchange;
    uint32_t src, dst; /* hosts */
    struct trace_tm tm;
    bool confirmed; /* a READ of the offered memory came */
};

/* A connection that messages of connection management set up. An ID of 0 is not known yet. */
struct connection {
    uint32_t host[2]; /* of the active and of the passive side */
    uint32_t id[2]; /* their communication IDs, or the request ID of a SIDR_REQ */
    uint32_t kind_of_id; /* 1: request ID */
    uint32_t opening, closing; /* exchanges; TRACE_NONE: none */
};

struct grouper {
    struct trace *t;
    const struct messages *messages;
    struct exchange *list;
    size_t n, cap;
    uint32_t *of_message; /* the exchange of each message */
    uint32_t *of_packet; /* the exchange of each packet */
    struct rendezvous recent[RECENT];
    size_t num_recent;
    struct connection connections[RECENT];
    size_t num_connections;
};

const char *exchange_name(enum exchange_kind kind)
{
    static const char *const names[EXCHANGE_KINDS] = {
        "packet",   "SEND",       "WRITE",      "READ",          "atomic",
        "datagram", "rendezvous", "connection", "disconnection", "service ID resolution",
    };

    return kind < EXCHANGE_KINDS ? names[kind] : "?";
}

static uint32_t new_exchange(struct grouper *g, enum exchange_kind kind, uint32_t message)
{
    struct exchange *list = trace_grow(g->t, g->list, g->n, &g->cap, sizeof(*list));

    if (!list)
        return TRACE_NONE;
    g->list = list;
    list[g->n] = (struct exchange){.kind = kind, .message = message};
    return (uint32_t)g->n++;
}

static enum exchange_kind kind_of(const struct message *m)
{
    uint16_t properties = op_table[m->opcode].properties;

    if ((m->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD)
        return EXCHANGE_DATAGRAM;
    if (properties & OP_IS_SEND)
        return EXCHANGE_SEND;
    if (properties & OP_IS_WRITE)
        return EXCHANGE_WRITE;
    if (properties & OP_IS_READ)
        return EXCHANGE_READ;
    return EXCHANGE_ATOMIC;
}

/* --- rendezvous --------------------------------------------------------------------------------------------------- */

static bool between(const struct trace_flow *flow, uint32_t src, uint32_t dst)
{
    return flow->key.src == src && flow->key.dst == dst;
}

/* The open rendezvous that the READ or the FIN in this message belongs to; NULL: none. */
static struct rendezvous *find_rendezvous(struct grouper *g, const struct message *m, const struct trace_tm *fin)
{
    const struct trace_flow *flow = g->t->flows[m->flow];

    for (size_t i = g->num_recent; i > 0 && i + RECENT > g->num_recent; i--) {
        struct rendezvous *r = &g->recent[(i - 1) % RECENT];

        if (!between(flow, r->dst, r->src))
            continue;
        if (fin ? r->confirmed && r->tm.tmh.tag == fin->tmh.tag && r->tm.tmh.app_ctx == fin->tmh.app_ctx
                : r->tm.rvh.rkey == m->rkey && m->va >= r->tm.rvh.va && m->va - r->tm.rvh.va < r->tm.rvh.len)
            return r;
    }
    return NULL;
}

static void join_rendezvous(struct grouper *g, uint32_t message)
{
    const struct message *m = &g->messages->list[message];
    const struct trace_packet *p = &g->t->packets[m->first];
    const struct trace_tm *tm = p->tm != TRACE_NONE ? &g->t->tms[p->tm] : NULL;
    const struct trace_flow *flow = g->t->flows[m->flow];
    struct rendezvous *r = NULL;

    if (tm && tm->tmh.opcode == TMH_RNDV && tm->rvh.len) {
        g->recent[g->num_recent++ % RECENT] =
            (struct rendezvous){g->of_message[message], flow->key.src, flow->key.dst, *tm, false};
    } else if (tm && tm->tmh.opcode == TMH_FIN) {
        r = find_rendezvous(g, m, tm);
        if (r)
            memset(&r->tm, 0, sizeof(r->tm)); /* done: nothing fits any more */
    } else if (kind_of(m) == EXCHANGE_READ) {
        r = find_rendezvous(g, m, NULL);
        if (r && !r->confirmed) {
            r->confirmed = true;
            g->list[r->exchange].kind = EXCHANGE_RENDEZVOUS;
            g->list[r->exchange].bytes = r->tm.rvh.len;
        }
    }
    if (r)
        g->of_message[message] = r->exchange;
}

static void group_messages(struct grouper *g)
{
    for (size_t i = 0; i < g->messages->n && !g->t->no_memory; i++) {
        const struct message *m = &g->messages->list[i];

        g->of_message[i] = new_exchange(g, kind_of(m), (uint32_t)i);
        if (g->of_message[i] == TRACE_NONE)
            return;
        g->list[g->of_message[i]].bytes = m->bytes;
        join_rendezvous(g, (uint32_t)i);
    }
}

/* --- connections -------------------------------------------------------------------------------------------------- */

/* The IDs of a message: that of its sender, and that of its receiver; 0: not in the message. */
static void ids_of(const struct cm_msg *m, uint32_t *local, uint32_t *remote)
{
    *local = *remote = 0;
    switch ((enum cm_attribute)m->attribute) {
    case CM_REQ:
        *local = m->req.local_comm_id;
        return;
    case CM_SIDR_REQ:
        *local = m->sidr_req.request_id;
        return;
    case CM_SIDR_REP:
        *remote = m->sidr_rep.request_id;
        return;
    case CM_MRA:
    case CM_REJ:
    case CM_REP:
    case CM_RTU:
    case CM_DREQ:
    case CM_DREP:
    case CM_LAP:
    case CM_APR: /* all of these begin with both IDs */
        *local = m->rtu.local_comm_id;
        *remote = m->rtu.remote_comm_id;
        return;
    }
}

static bool fits(uint32_t a, uint32_t b)
{
    return a == b || a == 0 || b == 0;
}

/* The connection that a message belongs to. It may be a new one. */
static struct connection *find_connection(struct grouper *g, const struct trace_flow *flow, const struct cm_msg *m)
{
    uint32_t local, remote, service = m->attribute == CM_SIDR_REQ || m->attribute == CM_SIDR_REP;

    ids_of(m, &local, &remote);
    for (size_t i = g->num_connections; i > 0 && i + RECENT > g->num_connections; i--) {
        struct connection *c = &g->connections[(i - 1) % RECENT];

        if (c->kind_of_id != service)
            continue;
        for (unsigned side = 0; side < 2; side++) { /* of the sender */
            bool sure = (local && c->id[side] == local) || (remote && c->id[!side] == remote);

            if (c->host[side] != flow->key.src || c->host[!side] != flow->key.dst || !sure ||
                !fits(c->id[side], local) || !fits(c->id[!side], remote))
                continue;
            c->id[side] = local ? local : c->id[side];
            c->id[!side] = remote ? remote : c->id[!side];
            return c;
        }
    }
    struct connection *c = &g->connections[g->num_connections++ % RECENT];
    *c = (struct connection){
        {flow->key.src, flow->key.dst}, {local, remote}, service, TRACE_NONE, TRACE_NONE,
    };
    return c;
}

static void join_connection(struct grouper *g, uint32_t packet)
{
    struct trace_packet *p = &g->t->packets[packet];
    struct cm_msg m;

    if (cm_msg_decode(g->t->mads[p->mad].bytes, &m) != CM_DECODE_OK)
        return;
    struct connection *c = find_connection(g, g->t->flows[p->flow], &m);
    bool closing = m.attribute == CM_DREQ || m.attribute == CM_DREP;
    uint32_t *at = closing ? &c->closing : &c->opening;
    if (*at == TRACE_NONE)
        *at = new_exchange(g,
                           closing         ? EXCHANGE_DISCONNECT
                           : c->kind_of_id ? EXCHANGE_LOOKUP
                                           : EXCHANGE_CONNECT,
                           p->message);
    if (*at != TRACE_NONE)
        g->of_packet[packet] = *at;
}

/* --- packets ------------------------------------------------------------------------------------------------------ */

static void group_packets(struct grouper *g, const bool *shown)
{
    for (size_t i = 0; i < g->t->num_packets && !g->t->no_memory; i++) {
        const struct trace_packet *p = &g->t->packets[i];

        g->of_packet[i] = TRACE_NONE;
        if (p->mad != TRACE_NONE)
            join_connection(g, (uint32_t)i); /* also if it is not shown: it may name the IDs of one that is */
        else if (p->message != TRACE_NONE)
            g->of_packet[i] = g->of_message[p->message];
        if (shown[i] && g->of_packet[i] == TRACE_NONE)
            g->of_packet[i] = new_exchange(g, EXCHANGE_OTHER, TRACE_NONE);
        if (!shown[i] || g->of_packet[i] == TRACE_NONE) {
            g->of_packet[i] = TRACE_NONE;
            continue;
        }
        struct exchange *x = &g->list[g->of_packet[i]];
        if (!x->num_packets++)
            x->first = (uint32_t)i;
        x->lost += (p->marks & (TRACE_LOST | TRACE_DAMAGED)) != 0;
        x->again += (p->marks & TRACE_AGAIN) != 0;
    }
}

static int by_first(const void *a, const void *b)
{
    const struct exchange *x = a, *y = b;

    if ((x->num_packets != 0) != (y->num_packets != 0))
        return x->num_packets ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Gives each exchange the list of its packets, and sorts the exchanges. */
static void fill(struct grouper *g, struct exchanges *out)
{
    size_t used = 0;

    out->packets = calloc(g->t->num_packets + 1, sizeof(*out->packets));
    if (!out->packets) {
        g->t->no_memory = true;
        return;
    }
    for (size_t i = 0; i < g->messages->n; i++)
        g->list[g->of_message[i]].num_messages++;
    for (size_t i = 0; i < g->n; i++) {
        g->list[i].packets = out->packets + used;
        used += g->list[i].num_packets;
        g->list[i].num_packets = 0;
    }
    for (size_t i = 0; i < g->t->num_packets; i++) {
        struct exchange *x = g->of_packet[i] != TRACE_NONE ? &g->list[g->of_packet[i]] : NULL;

        if (x)
            x->packets[x->num_packets++] = (uint32_t)i;
    }
    if (g->n)
        qsort(g->list, g->n, sizeof(*g->list), by_first);
    while (out->n < g->n && g->list[out->n].num_packets)
        out->n++;
}

void exchanges_find(struct exchanges *out, struct trace *t, const struct messages *messages, const bool *shown)
{
    struct grouper *g = calloc(1, sizeof(*g));

    memset(out, 0, sizeof(*out));
    if (g) {
        g->t = t;
        g->messages = messages;
        g->of_message = calloc(messages->n + 1, sizeof(*g->of_message));
        g->of_packet = calloc(t->num_packets + 1, sizeof(*g->of_packet));
    }
    if (!g || !g->of_message || !g->of_packet)
        t->no_memory = true;
    if (!t->no_memory)
        group_messages(g);
    if (!t->no_memory)
        group_packets(g, shown);
    if (!t->no_memory)
        fill(g, out);
    if (g) {
        out->list = g->list;
        free(g->of_message);
        free(g->of_packet);
    }
    free(g);
}

void exchanges_free(struct exchanges *x)
{
    free(x->list);
    free(x->packets);
    memset(x, 0, sizeof(*x));
}
