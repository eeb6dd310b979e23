// SPDX-License-Identifier: BSD-2-Clause
/* The instance: its memory, messages in and out, timers, queries. */
#include <stdalign.h>
#include <string.h>

#include "daemon/core/cm/handlers.h"

#define NODES_PER_ID 3u /* in the table of communication IDs */
#define EVENTS_PER_ID 2u /* of IDs that nobody owns: the request, and its end */
#define SPARE_EVENTS 64u

/* --- memory --------------------------------------------------------------------------------------- */

void cm_config_defaults(struct cm_config *cfg)
{
    *cfg = (struct cm_config){
        .max_ids = 4096,
        .response_timeout = 20,
        .max_retries = 15,
        .packet_life = 18,
        .ack_delay = 0,
        .first_port = 32768,
        .last_port = 60999,
    };
}

/* The parts of the block, in this order. */
struct layout {
    size_t pool, events, out, timers, comm, ports, total;
};

static size_t add(size_t *total, size_t bytes)
{
    size_t at = *total;
    *total += (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    return at;
}

static uint32_t num_events(const struct cm_config *cfg)
{
    return EVENTS_PER_ID * cfg->max_ids + SPARE_EVENTS;
}

static struct layout lay_out(const struct cm_config *cfg)
{
    struct layout l = {.total = 0};
    size_t n = cfg->max_ids;
    add(&l.total, sizeof(struct cm));
    l.pool = add(&l.total, n * sizeof(struct cm_id));
    l.events = add(&l.total, num_events(cfg) * sizeof(struct queued_event));
    l.out = add(&l.total, CM_OUT_SLOTS * sizeof(struct cm_datagram));
    l.timers = add(&l.total, n * sizeof(struct heap_timer *));
    l.comm = add(&l.total, comm_table_size(NODES_PER_ID * cfg->max_ids));
    l.ports = add(&l.total, port_table_size());
    return l;
}

size_t cm_size(const struct cm_config *cfg)
{
    return lay_out(cfg).total;
}

struct cm *cm_init(void *mem, const struct cm_config *cfg)
{
    struct layout l = lay_out(cfg);
    uint8_t *at = mem;
    struct cm *cm = mem;
    cm->cfg = *cfg;
    cm->pool = (void *)(at + l.pool);
    cm->untouched = cfg->max_ids;
    list_init(&cm->free);
    list_init(&cm->ids);
    list_init(&cm->ending);
    event_list_init(&cm->events, (void *)(at + l.events), num_events(cfg));
    cm->out = (void *)(at + l.out);
    cm->timers = (struct timer_heap){.timer = (void *)(at + l.timers)};
    comm_table_init(&cm->comm, at + l.comm, NODES_PER_ID * cfg->max_ids, &cfg->secret);
    port_table_init(&cm->ports, at + l.ports, cfg->first_port, cfg->last_port, &cfg->secret);
    return cm;
}

/* --- owners and events ------------------------------------------------------------------------------ */

void *cm_id_owner(const struct cm_id *id)
{
    return id->owner;
}

void cm_id_set_owner(struct cm_id *id, void *owner)
{
    if (id->listener && !id->owner && owner)
        id->listener->unowned--;
    if (id->listener && id->owner && !owner)
        id->listener->unowned++;
    id->owner = owner;
    if (owner)
        event_list_release(&id->cm->events, &id->events);
    CM_CHECK(id->cm);
}

bool cm_pop_event(struct cm *cm, struct cm_event *out)
{
    return event_list_pop(&cm->events, out);
}

/* The owner may post any number of events, so some room stays for those of the protocol. */
void cm_post_event(struct cm_id *id, const struct cm_event *ev)
{
    struct cm_event own = *ev;
    own.id = id;
    if (id->cm->events.used < id->cm->events.size / 2)
        cm_id_report(id, &own);
}

/* --- network -------------------------------------------------------------------------------------- */

bool cm_pop_datagram(struct cm *cm, struct cm_datagram *out)
{
    if (cm->out_head == cm->out_tail)
        return false;
    *out = cm->out[cm->out_head++ % CM_OUT_SLOTS];
    if (cm->out_head == cm->out_tail)
        cm->out_head = cm->out_tail = 0; /* the first slots are warm */
    return true;
}

static void dispatch(const struct received *r)
{
    struct cm_counters *c = &r->cm->counters;
    switch (r->m->attribute) {
    case CM_REQ:
        c->req_received++;
        handle_req(r);
        break;
    case CM_MRA:
        c->mra_received++;
        handle_mra(r);
        break;
    case CM_REJ:
        c->rej_received++;
        handle_rej(r);
        break;
    case CM_REP:
        c->rep_received++;
        handle_rep(r);
        break;
    case CM_RTU:
        c->rtu_received++;
        handle_rtu(r);
        break;
    case CM_DREQ:
        c->dreq_received++;
        handle_dreq(r);
        break;
    case CM_DREP:
        c->drep_received++;
        handle_drep(r);
        break;
    case CM_SIDR_REQ:
        c->req_received++;
        handle_sidr_req(r);
        break;
    case CM_SIDR_REP:
        c->rep_received++;
        handle_sidr_rep(r);
        break;
    case CM_LAP:
        c->lap_received++;
        handle_lap(r);
        break;
    default: /* APR: no LAP is ever sent */
        c->bad_messages++;
        break;
    }
}

void cm_rx(struct cm *cm, const struct cm_datagram *d, const struct cm_route *route, uint64_t now)
{
    struct cm_msg m;
    struct received r = {cm, d, route, &m, now};
    switch (cm_msg_decode(d->mad, &m)) {
    case CM_DECODE_OK:
        dispatch(&r);
        break;
    case CM_DECODE_VERSION:
        cm->counters.bad_messages++;
        if (m.attribute == CM_REQ)
            message_answer_reject(&r, CM_REJ_INVALID_CLASS_VERSION);
        break;
    default:
        cm->counters.bad_messages++;
        break;
    }
    CM_CHECK(cm);
}

/* --- time ----------------------------------------------------------------------------------------- */

uint64_t cm_deadline(const struct cm *cm)
{
    return timer_heap_earliest(&cm->timers);
}

/* If the ring of datagrams is full, the remaining timers stay due: the owner takes the datagrams and comes back. */
void cm_expire(struct cm *cm, uint64_t now)
{
    struct heap_timer *t;
    while (message_has_room(cm) && (t = timer_heap_pop(&cm->timers, now)) != NULL)
        handle_timer(list_entry(t, struct cm_id, timer), now);
    CM_CHECK(cm);
}

/* --- queries -------------------------------------------------------------------------------------- */

const struct cm_counters *cm_counters(const struct cm *cm)
{
    return &cm->counters;
}

const char *cm_id_state_name(enum cm_id_state state)
{
    static const char *const names[] = {
        [CM_ID_IDLE] = "idle",
        [CM_ID_BOUND] = "bound",
        [CM_ID_LISTEN] = "listening",
        [CM_ID_ADDR_RESOLVED] = "address resolved",
        [CM_ID_ROUTE_RESOLVED] = "route resolved",
        [CM_ID_REQ_SENT] = "REQ sent",
        [CM_ID_REQ_RECEIVED] = "REQ received",
        [CM_ID_REP_SENT] = "REP sent",
        [CM_ID_REP_RECEIVED] = "REP received",
        [CM_ID_ESTABLISHED] = "established",
        [CM_ID_DREQ_SENT] = "DREQ sent",
        [CM_ID_DREQ_RECEIVED] = "DREQ received",
        [CM_ID_TIME_WAIT] = "time wait",
        [CM_ID_DISCONNECTED] = "disconnected",
    };
    return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

void cm_id_query(const struct cm_id *id, struct cm_id_info *out)
{
    *out = (struct cm_id_info){
        .state = (enum cm_id_state)id->state,
        .port_space = id->bind.port_space,
        .qp_type = id->qp_type,
        .src = id->bind.addr,
        .dst = id->dst,
        .route = id->route,
        .backlog = id->backlog,
        .waiting = id->waiting,
        .local_comm_id = id->local_comm_id,
        .remote_comm_id = id->remote_comm_id,
        .local_qpn = id->local_qpn,
        .remote_qpn = id->remote_qpn,
        .retries = id->retries,
        .last_reject = id->last_reject,
        .sent_reject = id->sent_reject,
        .last_status = id->last_status,
    };
}

struct cm_id *cm_id_next(struct cm *cm, const struct cm_id *id)
{
    const struct list_node *n = id ? id->all.next : cm->ids.next;
    return n == &cm->ids ? NULL : list_entry((void *)(uintptr_t)n, struct cm_id, all);
}
