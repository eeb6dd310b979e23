// SPDX-License-Identifier: BSD-2-Clause
/* Checks what programs learn, and the state when nothing happens any more. */
#include "tests/sim/connections/cms.h"

#include <errno.h>
#include <string.h>

/* --- events ------------------------------------------------------------------------------------- */

#define NOT 0xff

/* The phase after an event. NOT: the event must not come. */
static uint8_t after(const struct cms_end *e, uint8_t type)
{
    switch (type) {
    case CM_EVENT_ADDR_RESOLVED:
    case CM_EVENT_ROUTE_RESOLVED:
        return e->phase == CMS_RESOLVING ? CMS_RESOLVING : NOT;
    case CM_EVENT_CONNECT_RESPONSE:
        return e->phase == CMS_CONNECTING && !e->ud ? CMS_RESPONDED : NOT;
    case CM_EVENT_ESTABLISHED:
        return e->phase == (e->ud ? CMS_CONNECTING : CMS_ACCEPTED) ? CMS_ESTABLISHED : NOT;
    case CM_EVENT_UNREACHABLE:
        return e->phase == CMS_CONNECTING || e->phase == CMS_ACCEPTED ? CMS_ENDED : NOT;
    case CM_EVENT_REJECTED:
        return !e->ud && e->phase >= CMS_CONNECTING && e->phase <= CMS_ESTABLISHED ? CMS_ENDED : NOT;
    case CM_EVENT_DISCONNECTED:
        return e->phase == CMS_ESTABLISHED || e->phase == CMS_ACCEPTED ? CMS_DISCONNECTED : NOT;
    case CM_EVENT_TIMEWAIT_EXIT:
        return e->phase == CMS_DISCONNECTED ? CMS_EXITED : NOT;
    default:
        return NOT;
    }
}

static bool is_alive(uint8_t phase)
{
    return phase != CMS_NONE && phase != CMS_GONE;
}

/* The end that this one is connected to; NULL: it is gone. */
static struct cms_end *peer_of(struct cms *s, const struct cms_end *e)
{
    for (int i = 0; i < s->ends; i++) {
        struct cms_end *p = &s->end[i];
        if (is_alive(p->phase) && p != e && p->id->local_comm_id == e->id->remote_comm_id &&
            p->id->remote_comm_id == e->id->local_comm_id && memcmp(s->host[p->host].addr.gid, e->id->dst.gid, 16) == 0)
            return p;
    }
    return NULL;
}

static void check_reads(struct cms *s, const struct cm_qp_attr *from, const struct cm_qp_attr *to)
{
    if (from->mask & QPA_MAX_RD_ATOMIC && to->mask & QPA_MAX_DEST_RD_ATOMIC)
        cms_require(s, from->attr.max_rd_atomic == to->attr.max_dest_rd_atomic, "the ends do not agree on READs");
}

static void check_agreement(struct cms *s, const struct cms_end *e)
{
    const struct cms_end *p = peer_of(s, e);
    struct cm_qp_attr rtr, rts, peer_rtr, peer_rts;
    if (!p || p->phase != CMS_ESTABLISHED)
        return;
    if (cm_init_qp_attr(e->id, QPS_RTR, &rtr) || cm_init_qp_attr(e->id, QPS_RTS, &rts) ||
        cm_init_qp_attr(p->id, QPS_RTR, &peer_rtr) || cm_init_qp_attr(p->id, QPS_RTS, &peer_rts))
        return; /* one of them disconnects */
    cms_require(s, rtr.attr.rq_psn == peer_rts.attr.sq_psn, "the peer begins with PSN %#x, and %#x is expected",
                peer_rts.attr.sq_psn, rtr.attr.rq_psn);
    cms_require(s, rts.attr.sq_psn == peer_rtr.attr.rq_psn, "the peer does not expect the first PSN");
    cms_require(s, rtr.attr.dest_qpn == p->qpn && peer_rtr.attr.dest_qpn == e->qpn, "not the QP of the peer");
    check_reads(s, &rts, &peer_rtr);
    check_reads(s, &peer_rts, &rtr);
}

static void check_datagram(struct cms *s, const struct cms_end *e, const struct cm_event *ev)
{
    cms_require(s, ev->ud && ev->param.qkey == CM_UDP_QKEY, "the Q_Key is wrong");
    cms_require(s, memcmp(ev->av.dgid, s->host[e->to].addr.gid, 16) == 0, "the address is wrong");
    for (int i = 0; i < s->ends; i++)
        if (s->end[i].passive && s->end[i].ud && s->end[i].host == e->to && s->end[i].qpn == ev->param.qp_num)
            return;
    cms_require(s, false, "nobody has QP %u", ev->param.qp_num);
}

void cms_check_event(struct cms *s, struct cms_end *e, const struct cm_event *ev)
{
    uint8_t next = after(e, ev->type);
    cms_require(s, next != NOT, "end %d gets event %d in phase %d", (int)(e - s->end), ev->type, e->phase);
    e->phase = next;
    switch (ev->type) {
    case CM_EVENT_UNREACHABLE:
        s->unreachable++;
        if (ev->status > 0) {
            cms_require(s, e->ud, "a status of datagram services");
            break;
        }
        cms_require(s, s->deaths || s->closing, "end %d: unreachable, and all hosts live", (int)(e - s->end));
        break;
    case CM_EVENT_REJECTED:
        s->rejected++;
        cms_require(s, ev->status != CM_REJ_STALE_CONN || s->deaths, "a stale connection, and all hosts live");
        cms_require(s, (e->port != CMS_NO_PORT) || ev->status == CM_REJ_INVALID_SERVICE_ID,
                    "reason %d from a port without listener", ev->status);
        break;
    case CM_EVENT_ESTABLISHED:
        s->established++;
        if (e->ud)
            check_datagram(s, e, ev);
        else
            check_agreement(s, e);
        break;
    case CM_EVENT_DISCONNECTED:
        cms_require(s, ev->status == 0 || (ev->status == -ETIMEDOUT && s->deaths), "status %d, and all hosts live",
                    ev->status);
        break;
    default:
        break;
    }
}

/* --- quiet ---------------------------------------------------------------------------------------- */

static bool waits_for_the_peer(uint8_t state)
{
    return state == CM_ID_REQ_SENT || state == CM_ID_REP_SENT || state == CM_ID_DREQ_SENT || state == CM_ID_TIME_WAIT;
}

/* The peer had sent its REP and went, and its REJ was lost. */
static bool was_left(const struct cms *s, const struct cms_end *e)
{
    for (int i = 0; i < s->ends; i++)
        if (s->end[i].left && s->end[i].left == e->id->remote_comm_id)
            return s->loss > 0;
    return false;
}

void cms_check_quiet(struct cms *s)
{
    cms_require(s, s->in_flight == 0, "%u messages are under way", s->in_flight);
    for (int i = 0; i < s->hosts; i++)
        for (struct cm_id *id = cm_id_next(s->host[i].cm, NULL); id; id = cm_id_next(s->host[i].cm, id))
            cms_require(s, !waits_for_the_peer(id->state), "host %d: an ID in \"%s\" has no timer", i,
                        cm_id_state_name(id->state));
    for (int i = 0; i < s->ends; i++) {
        struct cms_end *e = &s->end[i];
        if (!is_alive(e->phase))
            continue;
        cms_require(s, e->phase != CMS_CONNECTING && e->phase != CMS_ACCEPTED && e->phase != CMS_RESOLVING,
                    "end %d waits forever in phase %d", i, e->phase);
        if (e->phase != CMS_ESTABLISHED || e->ud || s->deaths)
            continue;
        struct cms_end *p = peer_of(s, e);
        /* The target of XRC connections goes without a word. */
        cms_require(s, (p && p->phase == CMS_ESTABLISHED) || e->qp_type == QPT_XRC_SEND || was_left(s, e),
                    "end %d is connected to nobody", i);
    }
}

void cms_check_end(struct cms *s)
{
    cms_require(s, s->in_flight == 0, "%u messages are under way", s->in_flight);
    for (int i = 0; i < s->hosts; i++) {
        const struct cm *cm = s->host[i].cm;
        cms_require(s, cm->count == 0, "host %d: %u IDs are left, the first in \"%s\"", i, cm->count,
                    cm_id_state_name(cm_id_next(s->host[i].cm, NULL)->state));
        cms_require(s, cm->comm.used == 0, "host %d: %u communication IDs are left", i, cm->comm.used);
        cms_require(s, cm->events.used == 0, "host %d: %u events are left", i, cm->events.used);
        cms_require(s, cm->timers.count == 0, "host %d: %u timers are left", i, cm->timers.count);
        for (uint32_t p = 0; p < PORT_SPACES * PORTS; p++)
            cms_require(s, !cm->ports.first[p], "host %d: port %u is still in use", i, p % PORTS);
    }
}
