// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs: the control operations. What becomes of their rings is in rings.c. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/device/device.h"
#include "daemon/loop/pass.h"
#include "daemon/monitor/path_check.h"
#include "daemon/objects/objects.h"
#include "daemon/session/session.h"

/* --- creating
 * ---------------------------------------------------------------------------------------------------------- */

/* The types that are offered, and what each is made of. */
/* clang-format off */
static const struct type {
    const char *name;
    uint32_t number;
    bool send, recv; /* its queues */
} types[] = {
    {"RC",       IBV_QPT_RC,       true,  true},
    {"UC",       IBV_QPT_UC,       true,  true},
    {"UD",       IBV_QPT_UD,       true,  true},
    {"XRC_SEND", IBV_QPT_XRC_SEND, true,  false},
    {"XRC_RECV", IBV_QPT_XRC_RECV, false, false}, /* no PD either */
};
/* clang-format on */

static const struct type *type_of(uint32_t number)
{
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].number == number)
            return &types[i];
    }
    return NULL;
}

const char *client_qp_type_name(const struct client_qp *q)
{
    return type_of(q->type)->name;
}

/* What a queue pair is made of, all checked. */
struct plan {
    const struct type *type;
    struct pd *pd;
    struct cq *send_cq, *recv_cq;
    struct client_srq *srq;
    struct xrcd_open *xrcd; /* XRC_RECV; else NULL */
    struct qp_caps caps;
    struct pm_create_qp_rep layout;
};

#define UD_INLINE 128 /* bytes of inline data that a UD queue pair takes if it takes any */

static int check_caps(const struct pm_create_qp_req *r, struct control_reply *rp)
{
    if (r->max_send_wr > DEVICE_MAX_QP_WR || r->max_recv_wr > DEVICE_MAX_QP_WR)
        return control_fail(rp, -EINVAL, "%u send and %u receive requests asked, the limit is %u", r->max_send_wr,
                            r->max_recv_wr, DEVICE_MAX_QP_WR);
    if (r->max_send_sge > ENGINE_MAX_SGE || r->max_recv_sge > ENGINE_MAX_SGE)
        return control_fail(rp, -EINVAL, "%u and %u SGEs per request asked, the limit is %u", r->max_send_sge,
                            r->max_recv_sge, ENGINE_MAX_SGE);
    if (r->max_inline > ENGINE_MAX_INLINE)
        return control_fail(rp, -EINVAL, "%u bytes of inline data asked, the limit is %u", r->max_inline,
                            ENGINE_MAX_INLINE);
    return 0;
}

/* As NICs do it, what is granted of inline data is what a slot has room for, and in UD queue pairs at least UD_INLINE bytes:
 * UCX (1.13, and later) gives away the buffer of a connection request that was not sent inline when the peer's own comes
 * in, and what leaves is then what has been written there since, a reply to somebody else. Its requests are a few
 * bytes longer than the 64 that it asks for (openucx/ucx issue 6040). */
static uint32_t granted_inline(const struct qp_caps *c, bool ud)
{
    uint32_t asked = c->max_inline;

    if (!asked)
        return 0;
    if (ud && asked < UD_INLINE)
        asked = UD_INLINE;
    asked = ring_send_room(c->max_send_sge, asked, ud);
    return asked < ENGINE_MAX_INLINE ? asked : ENGINE_MAX_INLINE;
}

static void lay_out(struct plan *p)
{
    struct pm_create_qp_rep *l = &p->layout;
    bool ud = p->type->number == IBV_QPT_UD;

    p->caps.max_inline = granted_inline(&p->caps, ud);
    l->max_send_wr = p->caps.max_send_wr;
    l->max_recv_wr = p->caps.max_recv_wr;
    l->max_send_sge = p->caps.max_send_sge;
    l->max_recv_sge = p->caps.max_recv_sge;
    l->max_inline = p->caps.max_inline;
    l->sq_slots = ring_slots(p->caps.max_send_wr);
    l->rq_slots = ring_slots(p->caps.max_recv_wr);
    l->sq_stride = ring_send_stride(p->caps.max_send_sge, p->caps.max_inline, ud);
    l->rq_stride = ring_recv_stride(p->caps.max_recv_sge);
    l->sq_offset = (sizeof(struct pm_qp_page) + 63) & ~63u;
    l->rq_offset = l->sq_offset + l->sq_slots * l->sq_stride;
    l->size = (uint64_t)l->rq_offset + (uint64_t)l->rq_slots * l->rq_stride;
}
/* 16,384 slots of 1,088 bytes and as many of 528 stay far below 2^32. */
_Static_assert((uint64_t)DEVICE_MAX_QP_WR *(64 + ENGINE_MAX_INLINE + 64 + 16 + 16 * ENGINE_MAX_SGE) < UINT32_MAX / 2,
               "offsets");

/* The objects that it is made of: those that its type has, whatever else the request names. */
static int find_parts(struct session *s, const struct pm_create_qp_req *r, struct control_reply *rp, struct plan *p)
{
    p->type = type_of(r->type);
    if (!p->type)
        return control_fail(rp, -EOPNOTSUPP, "queue pairs of type %u are not offered", r->type);
    if (r->type == IBV_QPT_XRC_RECV) {
        p->xrcd = handles_get(&s->xrcds, r->xrcd);
        return p->xrcd ? 0 : control_fail(rp, -EINVAL, "no XRC domain %u", r->xrcd);
    }
    if (!(p->pd = handles_get(&s->pds, r->pd)))
        return control_fail(rp, -EINVAL, "no protection domain %u", r->pd);
    if (p->type->send && !(p->send_cq = handles_get(&s->cqs, r->send_cq)))
        return control_fail(rp, -EINVAL, "no completion queue %u", r->send_cq);
    if (p->type->recv && !(p->recv_cq = handles_get(&s->cqs, r->recv_cq)))
        return control_fail(rp, -EINVAL, "no completion queue %u", r->recv_cq);
    if (p->type->recv && r->srq && !(p->srq = handles_get(&s->srqs, r->srq)))
        return control_fail(rp, -EINVAL, "no shared receive queue %u", r->srq);
    if (p->srq && p->srq->xrcd)
        return control_fail(rp, -EINVAL, "shared receive queue %u is for XRC", r->srq);
    if (p->srq && p->srq->list.tm && r->type != IBV_QPT_RC)
        return control_fail(rp, -EINVAL, "shared receive queue %u matches tags, of messages to RC queue pairs only",
                            r->srq);
    return 0;
}

static int make_plan(struct session *s, const struct pm_create_qp_req *r, struct control_reply *rp, struct plan *p)
{
    bool send, recv;
    int rc;

    memset(p, 0, sizeof(*p));
    rc = find_parts(s, r, rp, p);
    if (rc)
        return rc;
    rc = check_caps(r, rp);
    if (rc)
        return rc;
    send = p->type->send;
    recv = p->type->recv && !p->srq;
    p->caps = (struct qp_caps){
        .max_send_wr = send ? r->max_send_wr : 0,
        .max_recv_wr = recv ? r->max_recv_wr : 0,
        .max_send_sge = send ? (r->max_send_sge ? r->max_send_sge : 1) : 0,
        .max_recv_sge = recv ? (r->max_recv_sge ? r->max_recv_sge : 1) : 0,
        .max_inline = send ? r->max_inline : 0,
    };
    lay_out(p);
    return 0;
}

static void map_rings(struct client_qp *q, const struct pm_create_qp_rep *l)
{
    uint8_t *base = q->segment.p;

    q->page = q->segment.p;
    q->sq = (struct ring){
        .base = base + l->sq_offset,
        .tail = &q->page->sq_tail,
        .slots = l->sq_slots,
        .stride = l->sq_stride,
        .max_sge = q->caps.max_send_sge,
        .max_inline = q->caps.max_inline,
        .has_av = q->type == IBV_QPT_UD,
    };
    q->rq = (struct ring){
        .base = base + l->rq_offset,
        .tail = &q->page->rq_tail,
        .slots = l->rq_slots,
        .stride = l->rq_stride,
        .max_sge = q->caps.max_recv_sge,
    };
}

/* Frees what a queue pair holds, as far as it has it. */
static void release(struct client_qp *q)
{
    if (q->bell != UINT32_MAX)
        session_drop_bell(q->session, q->bell);
    if (q->qp)
        qp_destroy(q->qp);
    segment_destroy(&q->segment);
    if (q->queues)
        munmap(q->queues, q->queues_size);
    free(q->mem);
    layouts_free(q);
    free(q);
}

/* The queues are mapped, not allocated: they come zeroed, and pages that a queue never reaches cost nothing. The queue
 * pair itself takes a good kilobyte, and thousands of them should not take a page each. */
static int engine_memory(struct client_qp *q, const struct qp_init *init)
{
    size_t size = qp_size(init), state = qp_state_size();
    void *queues;

    if (size == 0)
        return -EINVAL;
    q->mem = aligned_alloc(64, state);
    if (!q->mem)
        return -ENOMEM;
    memset(q->mem, 0, state);
    queues = mmap(NULL, size - state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (queues == MAP_FAILED)
        return -ENOMEM;
    q->queues = queues;
    q->queues_size = size - state;
    return 0;
}

static int acquire(struct client_qp *q, const struct plan *p, bool sig_all)
{
    struct qp_init init = {
        .type = q->type,
        .sq_sig_all = sig_all,
        .pd = p->pd ? p->pd->number : 0,
        .xrcd = p->xrcd ? p->xrcd->xrcd->number : 0,
        .srq = p->srq ? p->srq->srq : NULL,
        .caps = p->caps,
        .send_cq = p->send_cq,
        .recv_cq = p->recv_cq,
        .owner = q,
    };
    int rc = engine_memory(q, &init);

    if (rc)
        return rc;
    init.queues = q->queues;
    rc = segment_create(&q->segment, "pumice-qp", p->layout.size);
    if (rc)
        return rc;
    map_rings(q, &p->layout);
    if (q->session) {
        rc = session_take_bell(q->session, client_qp_rang, q);
        if (rc < 0)
            return rc;
        q->bell = (uint32_t)rc;
    }
    rc = qp_create(q->device->engine, &init, q->mem, &q->qp);
    if (rc)
        return rc;
    q->qpn = qp_number(q->qp);
    return handles_add_at(q->session ? &q->session->qps : &q->device->targets, q, q->qpn);
}

static void take_parts(struct client_qp *q, const struct plan *p)
{
    q->pd = p->pd;
    q->send_cq = p->send_cq;
    q->recv_cq = p->recv_cq;
    q->srq = p->srq;
    q->xrcd = p->xrcd ? p->xrcd->xrcd : NULL;
    if (q->pd)
        q->pd->users++;
    if (q->send_cq)
        q->send_cq->users++;
    if (q->recv_cq)
        q->recv_cq->users++;
    if (q->srq)
        q->srq->users++;
    if (q->xrcd)
        TAILQ_INSERT_TAIL(&q->xrcd->targets, q, xrcd_link);
}

static void drop_parts(struct client_qp *q)
{
    mcast_group_leave_all(&q->memberships);
    if (q->pd)
        q->pd->users--;
    if (q->send_cq)
        q->send_cq->users--;
    if (q->recv_cq)
        q->recv_cq->users--;
    if (q->srq)
        q->srq->users--;
    if (q->xrcd)
        TAILQ_REMOVE(&q->xrcd->targets, q, xrcd_link);
}

static struct client_qp *make(struct session *s, const struct plan *p)
{
    struct client_qp *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    q->device = s->device;
    q->session = p->xrcd ? NULL : s;
    q->type = (uint8_t)p->type->number;
    q->caps = p->caps;
    q->segment.fd = -1;
    q->bell = UINT32_MAX;
    TAILQ_INIT(&q->openers);
    TAILQ_INIT(&q->layouts);
    LIST_INIT(&q->memberships);
    return q;
}

static int explain(int rc, const struct plan *p, struct control_reply *rp)
{
    if (rc == -EINVAL)
        return control_fail(rp, rc, "the device does not take a queue pair of type %s with these capabilities",
                            p->type->name);
    return control_fail(rp, rc == -ENOSPC ? -ENOMEM : rc, "the device can't make another queue pair (limit %u)",
                        DEVICE_MAX_QP);
}

int client_qp_create(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_create_qp_req *r = rq;
    struct pm_create_qp_rep *rep;
    struct target_open *open;
    struct plan plan;
    struct client_qp *q;
    int rc;

    rc = make_plan(s, r, rp, &plan);
    if (rc)
        return rc;
    q = make(s, &plan);
    open = plan.xrcd ? malloc(sizeof(*open)) : NULL;
    if (!q || (plan.xrcd && !open)) {
        free(q);
        free(open);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    rc = acquire(q, &plan, r->sq_sig_all != 0);
    if (rc) {
        release(q);
        free(open);
        return explain(rc, &plan, rp);
    }
    take_parts(q, &plan);
    usage_made(s->device, s->cred.pid);
    if (q->type == IBV_QPT_UD)
        udp_want_headers(&s->device->udp); /* for the header area of receive requests */
    if (open)
        target_open_add(open, s, q, plan.xrcd);
    rep = control_payload(rp, sizeof(*rep));
    *rep = plan.layout;
    rep->qpn = q->qpn;
    rep->doorbell = q->bell == UINT32_MAX ? 0 : q->bell;
    rep->size = q->segment.size;
    control_attach(rp, segment_take_fd(&q->segment));
    return 0;
}

void client_qp_free(struct client_qp *q)
{
    struct device *d = q->device;

    if (q->in_backlog)
        TAILQ_REMOVE(&d->backlog, q, backlog_link);
    if (q->in_failed)
        TAILQ_REMOVE(&d->failed, q, failed_link);
    handles_remove(q->session ? &q->session->qps : &d->targets, q->qpn);
    usage_gone(q);
    drop_parts(q);
    release(q);
}

struct client_qp *client_qp_find(const struct session *s, uint32_t qpn)
{
    struct client_qp *q = handles_get(&s->qps, qpn);
    const struct target_open *o = q ? NULL : target_find(s, qpn);

    return o ? o->client_qp : q;
}

int client_qp_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    static const uint8_t events[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                                     IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED};
    const struct pm_handle *h = rq;
    struct client_qp *q = client_qp_find(s, h->handle);
    unsigned handles = 1;

    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", h->handle);
    if (!q->session) {
        handles = target_opens(s, q);
        target_open_free(target_find(s, h->handle));
    } else {
        device_send_posted(s->device, q);
    }
    if (TAILQ_EMPTY(&q->openers))
        client_qp_free(q);
    session_forget(s, events, sizeof(events), h->handle, handles);
    return 0;
}

void client_qp_event(struct client_qp *q, uint32_t type)
{
    const struct target_open *o;

    if (q->session)
        session_event(q->session, type, q->qpn);
    TAILQ_FOREACH(o, &q->openers, client_qp_link)
    session_event(o->session, type, q->qpn);
}

/* --- attributes
 * -------------------------------------------------------------------------------------------------------- */

/* The fields that are wider in the message than in the engine; nothing may be lost on the way. */
static bool fits(const struct pm_qp_attr *a, uint32_t mask)
{
    return (!(mask & QPA_STATE) || a->qp_state <= UINT8_MAX) &&
           (!(mask & QPA_CUR_STATE) || a->cur_qp_state <= UINT8_MAX) &&
           (!(mask & QPA_PATH_MTU) || a->path_mtu <= UINT8_MAX);
}

static int check_address(const struct session *s, const struct pm_av *av, struct control_reply *rp)
{
    const struct device *d = s->device;
    char gid[ADDR_TEXT_MAX], own[ADDR_TEXT_MAX];
    union addr to;

    if (av->sgid_index >= d->config.num_gids)
        return control_fail(rp, -EINVAL, "source GID index %u: device %s has %u", av->sgid_index, d->name,
                            d->config.num_gids);
    if (mcast_is_group(av->dgid) || !gid_to_addr(av->dgid, &d->addr, &to))
        return control_fail(rp, -EINVAL, "destination GID %s can't be reached from GID index %u, address %s",
                            gid_text(av->dgid, gid), av->sgid_index, addr_text(&d->addr, own));
    return 0;
}

static void attr_in(const struct pm_qp_attr *a, struct qp_attr *out)
{
    *out = (struct qp_attr){
        .state = (uint8_t)a->qp_state,
        .cur_state = (uint8_t)a->cur_qp_state,
        .port = a->port_num,
        .path_mtu = (uint8_t)a->path_mtu,
        .timeout = a->timeout,
        .retry_cnt = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
        .min_rnr_timer = a->min_rnr_timer,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .sqd_async_notify = a->en_sqd_async_notify != 0,
        .pkey_index = a->pkey_index,
        .access =
            a->qp_access_flags & ~(uint32_t)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND),
        .dest_qpn = a->dest_qp_num,
        .rq_psn = a->rq_psn,
        .sq_psn = a->sq_psn,
        .qkey = a->qkey,
    };
    memcpy(out->av.dgid, a->av.dgid, sizeof(out->av.dgid));
    out->av.sgid_index = a->av.sgid_index;
    out->av.traffic_class = a->av.traffic_class;
    out->av.hop_limit = a->av.hop_limit;
    out->av.sl = a->av.sl;
    out->av.flow_label = a->av.flow_label;
}

static void attr_out(const struct qp_attr *a, struct pm_qp_attr *out)
{
    *out = (struct pm_qp_attr){
        .qp_state = a->state,
        .cur_qp_state = a->state,
        .path_mtu = a->path_mtu,
        .path_mig_state = IBV_MIG_MIGRATED,
        .qkey = a->qkey,
        .rq_psn = a->rq_psn,
        .sq_psn = a->sq_psn,
        .dest_qp_num = a->dest_qpn,
        .qp_access_flags = a->access,
        .pkey_index = a->pkey_index,
        .en_sqd_async_notify = a->sqd_async_notify,
        .sq_draining = a->sq_draining,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .min_rnr_timer = a->min_rnr_timer,
        .port_num = a->port,
        .timeout = a->timeout,
        .retry_cnt = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
    };
    memcpy(out->av.dgid, a->av.dgid, sizeof(out->av.dgid));
    out->av.sgid_index = a->av.sgid_index;
    out->av.traffic_class = a->av.traffic_class;
    out->av.hop_limit = a->av.hop_limit;
    out->av.sl = a->av.sl;
    out->av.flow_label = a->av.flow_label;
}

static void after_modify(struct client_qp *q, uint32_t mask)
{
    if (!(mask & QPA_STATE))
        return;
    if (qp_state(q->qp) == QPS_RESET)
        client_qp_reset_rings(q);
    else if (qp_state(q->qp) == QPS_ERR)
        client_qp_mark_failed(q); /* settled in the next pass, before the loop sleeps */
    else if (qp_state(q->qp) == QPS_RTR)
        usage_ready(q);
}

int client_qp_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_qp_req *r = rq;
    struct client_qp *q = client_qp_find(s, r->qpn);
    const char *why = NULL;
    struct pm_handle *rep;
    struct qp_attr attr;
    int rc;

    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", r->qpn);
    if (!fits(&r->attr, r->mask))
        return control_fail(rp, -EINVAL, "an attribute is out of its range");
    if (r->mask & QPA_AV) {
        rc = check_address(s, &r->attr.av, rp);
        if (rc == 0 && r->mask & QPA_PATH_MTU && r->attr.path_mtu >= IBV_MTU_256 && r->attr.path_mtu <= IBV_MTU_4096)
            rc = path_check_use(s, r->attr.av.dgid, 128u << r->attr.path_mtu, rp);
        if (rc)
            return rc;
    }
    if (r->mask & (QPA_ALT_PATH | QPA_RATE_LIMIT))
        return control_fail(rp, -EOPNOTSUPP, "alternate paths and rate limits are not offered");
    attr_in(&r->attr, &attr);
    rc = qp_modify(q->qp, &attr, r->mask, s->device->now, &why);
    if (rc)
        return control_fail(rp, rc, "%s", why ? why : "the transition is not allowed");
    after_modify(q, r->mask);
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = qp_state(q->qp);
    return 0;
}

int client_qp_query(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct client_qp *q = client_qp_find(s, h->handle);
    struct pm_query_qp_rep *rep;
    struct qp_attr attr;

    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", h->handle);
    qp_query(q->qp, &attr);
    rep = control_payload(rp, sizeof(*rep));
    attr_out(&attr, &rep->attr);
    return 0;
}
