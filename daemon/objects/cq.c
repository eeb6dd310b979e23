// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/objects/cq.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/device.h"
#include "daemon/objects/channel.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "daemon/session/wqe_ring.h"

/* An unkind NIC sends an event without an entry at most so long after the last event. */
#define EXTRA_EVENT_NS (100 * NS_PER_US)
#define EXTRA_EVENT_LOOKS 50u
#define EXTRA_EVENT_LOOK_NS (2 * NS_PER_US)

_Static_assert(sizeof(struct pm_cq_page) <= PM_CQ_ENTRIES, "the entries begin behind the page");

/* --- control operations ------------------------------------------------------------------------ */

static size_t segment_bytes(uint32_t slots)
{
    return PM_CQ_ENTRIES + (size_t)slots * sizeof(struct pm_cqe);
}

static void map(struct cq *cq)
{
    cq->page = cq->segment.p;
    cq->entries = (struct pm_cqe *)((uint8_t *)cq->segment.p + PM_CQ_ENTRIES);
}

/* The client armed the CQ while it held unread completions of the kind that the client asked for. */
static void rang(void *owner, uint64_t now)
{
    struct cq *cq = owner;
    uint32_t unread = cq->producer - atomic_load_explicit(&cq->page->consumer, memory_order_acquire);

    if (unread == 0)
        return;
    if (cq->unreported < unread)
        cq->unreported = unread;
    cq->solicited = true; /* otherwise the client would not have rung */
    cq_notify(cq, now);
}

/* Adds the CQ to its session and its channel. Returns 0 or -errno. */
static int settle(struct cq *cq, struct channel *ch)
{
    int rc = handles_add(&cq->session->cqs, cq, &cq->handle);

    cq->doorbell = DOORBELL_NONE;
    if (rc || !ch)
        return rc;
    rc = doorbells_take(&cq->session->doorbells, rang, cq);
    if (rc < 0) {
        handles_remove(&cq->session->cqs, cq->handle);
        return rc;
    }
    cq->doorbell = (uint32_t)rc;
    cq->channel = ch;
    ch->users++;
    return 0;
}

int cq_create(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_create_cq_req *r = rq;
    const uint32_t most = s->device->limits.max_cqe;
    struct pm_create_cq_rep *rep;
    struct channel *ch = NULL;
    struct cq *cq;

    if (r->cqe == 0 || r->cqe > most)
        return control_fail(rp, -EINVAL, "a completion queue has 1 to %u entries, not %u", most, r->cqe);
    if (r->comp_vector != 0)
        return control_fail(rp, -EINVAL, "the device has one completion vector, number 0");
    if (r->flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
        return control_fail(rp, -EOPNOTSUPP, "completion queue flags 0x%x are not offered", r->flags);
    if (r->channel && !(ch = handles_get(&s->channels, r->channel)))
        return control_fail(rp, -EINVAL, "no completion channel %u", r->channel);
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    cq->session = s;
    cq->slots = ring_slots(r->cqe);
    cq->ignore_overrun = r->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    cq->next.fd = -1;
    int rc = segment_create(&cq->segment, &s->owner, "pumice-cq", segment_bytes(cq->slots), rp);
    if (rc == 0 && (rc = settle(cq, ch)) != 0)
        segment_destroy(&cq->segment);
    if (rc) {
        free(cq);
        return control_explain(rp, rc == -ENOSPC ? -ENOMEM : rc, "the daemon can't make another completion queue");
    }
    segment_guard(&cq->segment, &s->memory_lost);
    map(cq);
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = cq->handle;
    rep->slots = cq->slots;
    rep->size = cq->segment.size;
    rep->doorbell = cq->doorbell == DOORBELL_NONE ? 0 : cq->doorbell;
    control_attach(rp, segment_take_fd(&cq->segment));
    return 0;
}

/* True if the CQ holds more than `slots` entries. An invalid consumer index counts as a full CQ. */
static bool exceeds(const struct cq *cq, uint32_t consumer, uint32_t slots)
{
    return cq->producer - consumer > cq->slots || cq->producer - consumer > slots;
}

int cq_resize(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_resize_cq_req *r = rq;
    const uint32_t most = s->device->limits.max_cqe;
    struct cq *cq = handles_get(&s->cqs, r->cq);
    struct pm_resize_cq_rep *rep;

    if (!cq)
        return control_fail(rp, -EINVAL, "no completion queue %u", r->cq);
    if (r->cqe == 0 || r->cqe > most)
        return control_fail(rp, -EINVAL, "a completion queue has 1 to %u entries, not %u", most, r->cqe);
    uint32_t slots = ring_slots(r->cqe);
    if (exceeds(cq, atomic_load_explicit(&cq->page->consumer, memory_order_acquire), slots))
        return control_fail(rp, -EINVAL, "the queue holds more completions than the new size of %u", r->cqe);
    segment_destroy(&cq->next);
    int rc = segment_create(&cq->next, &s->owner, "pumice-cq", segment_bytes(slots), rp);
    if (rc)
        return control_explain(rp, rc, "the daemon can't make another completion queue");
    segment_guard(&cq->next, &s->memory_lost);
    cq->next_slots = slots;
    rep = control_payload(rp, sizeof(*rep));
    rep->slots = slots;
    rep->size = cq->next.size;
    control_attach(rp, segment_take_fd(&cq->next));
    return 0;
}

/* Moves the entries that the client has not read to the new segment. Meanwhile the client waits for the reply. It does
 * not read entries or arm the CQ. If it does anyway, it damages only its own entries. */
static int move_entries(struct cq *cq, uint32_t *consumer)
{
    struct pm_cq_page *page = cq->next.p;
    struct pm_cqe *entries = (struct pm_cqe *)((uint8_t *)cq->next.p + PM_CQ_ENTRIES);
    uint32_t from = atomic_load_explicit(&cq->page->consumer, memory_order_acquire);

    if (exceeds(cq, from, cq->next_slots))
        return -EINVAL;
    for (uint32_t i = from; i != cq->producer; i++)
        memcpy(&entries[i & (cq->next_slots - 1)], &cq->entries[i & (cq->slots - 1)], sizeof(entries[0]));
    atomic_store_explicit(&page->consumer, from, memory_order_relaxed);
    atomic_store_explicit(&page->arm, atomic_load_explicit(&cq->page->arm, memory_order_relaxed), memory_order_relaxed);
    *consumer = from;
    return 0;
}

int cq_switch(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct cq *cq = handles_get(&s->cqs, h->handle);
    struct pm_switch_cq_rep *rep;
    uint32_t consumer;

    if (!cq)
        return control_fail(rp, -EINVAL, "no completion queue %u", h->handle);
    if (!cq->next.p)
        return control_fail(rp, -EINVAL, "completion queue %u is not being resized", h->handle);
    int rc = move_entries(cq, &consumer);
    if (rc) {
        segment_destroy(&cq->next);
        return control_fail(rp, rc, "the queue holds more completions than the new size of %u", cq->next_slots);
    }
    segment_destroy(&cq->segment);
    cq->segment = cq->next;
    cq->next = (struct segment){.fd = -1};
    cq->slots = cq->next_slots;
    cq->seen_consumer = consumer;
    map(cq);
    rep = control_payload(rp, sizeof(*rep));
    rep->consumer = consumer;
    return 0;
}

int cq_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_cq_req *r = rq;
    struct cq *cq = handles_get(&s->cqs, r->cq);

    if (!cq)
        return control_fail(rp, -EINVAL, "no completion queue %u", r->cq);
    /* Without a period an event might never be sent, and one entry needs no moderation. */
    cq->moderate_count = r->count > 1 && r->period ? r->count : 0;
    cq->moderate_ns = r->period * NS_PER_US;
    if (cq->held)
        cq->due = s->device->held_due = s->device->now;
    return 0;
}

static void stop_holding(struct cq *cq)
{
    if (cq->held)
        TAILQ_REMOVE(&cq->session->device->held_cqs, cq, held_link);
    cq->held = false;
}

void cq_free(struct cq *cq)
{
    handles_remove(&cq->session->cqs, cq->handle);
    stop_holding(cq);
    if (cq->dirty)
        TAILQ_REMOVE(&cq->session->device->dirty_cqs, cq, dirty_link);
    if (cq->channel) {
        cq->channel->users--;
        doorbells_release(&cq->session->doorbells, cq->doorbell);
    }
    segment_destroy(&cq->segment);
    segment_destroy(&cq->next);
    quota_release(&cq->session->owner, QUOTA_CQS);
    free(cq);
}

/* Removes the events of the CQ that the client has not read. */
static void forget_events(struct cq *cq)
{
    static const uint8_t events[] = {IBV_EVENT_CQ_ERR};
    struct event_record completion = {cq->handle, 0};

    session_forget(cq->session, events, sizeof(events), cq->handle, 1);
    if (cq->channel)
        cq->session->device->io.events_lost += event_pipe_forget(&cq->channel->pipe, &completion, 1, 1);
}

int cq_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct cq *cq = handles_get(&s->cqs, h->handle);

    if (!cq)
        return control_fail(rp, -EINVAL, "no completion queue %u", h->handle);
    if (cq->users)
        return control_fail(rp, -EBUSY, "completion queue %u is used by %u queues", h->handle, cq->users);
    forget_events(cq);
    cq_free(cq);
    return 0;
}

/* --- completions ------------------------------------------------------------------------------- */

/* True if there is a free slot. An invalid consumer index counts as a full CQ. */
static bool has_room(struct cq *cq)
{
    if (cq->producer - cq->seen_consumer < cq->slots)
        return true;
    /* Acquire: pairs with the client's release store after it has copied an entry. From then on the entry may be
     * overwritten. */
    cq->seen_consumer = atomic_load_explicit(&cq->page->consumer, memory_order_acquire);
    return cq->producer - cq->seen_consumer < cq->slots;
}

static void stop(struct cq *cq)
{
    if (!cq->overrun) {
        cq->overrun = true;
        cq->session->device->io.cq_overruns++;
        log_warn("session %u (%s, pid %d): completion queue %u with %u entries overran", cq->session->number,
                 cq->session->comm, (int)cq->session->cred.pid, cq->handle, cq->slots);
        session_event(cq->session, IBV_EVENT_CQ_ERR, cq->handle);
    }
    cq->session->device->io.completions_lost++;
}

/* enum pm_cqe_kind, without the bits that say how the entry is polled. */
/* clang-format off */
static const uint8_t kind_of[] = {
    [OF_REQUEST]       = 0,
    [OF_TM_BUFFER]     = PM_CQE_TM,
    [OF_TM_UNEXPECTED] = PM_CQE_TM,
    [OF_TM_ENTRY]      = PM_CQE_TM | PM_CQE_TM_ENTRY,
    [OF_TM_OP]         = PM_CQE_TM | PM_CQE_TM_OP,
};
/* clang-format on */

static void fill(struct pm_cqe *e, const struct completion *c, uint32_t srq)
{
    e->wr_id = c->wr_id;
    e->timestamp = c->timestamp;
    e->byte_len = c->byte_len;
    if (c->flags & WC_WITH_INV)
        e->imm = c->inv_rkey;
    else
        memcpy(&e->imm, c->imm, sizeof(e->imm));
    e->qpn = c->qpn;
    e->src_qp = c->src_qp;
    e->slot = c->slot;
    e->vendor_err = c->vendor_err;
    e->status = c->status;
    e->opcode = c->opcode;
    e->wc_flags = c->flags;
    e->kind = (uint8_t)((c->is_recv ? PM_CQE_RECV : 0) | (c->solicited ? PM_CQE_SOLICITED : 0) | kind_of[c->of]);
    e->inline_len = c->inline_len;
    e->srq = srq;
    if (c->of == OF_TM_ENTRY)
        e->tm = (struct pm_cqe_tm){.tag = c->tm_tag, .priv = c->tm_priv};
    else
        memcpy(e->data, c->data, c->inline_len <= sizeof(e->data) ? c->inline_len : sizeof(e->data));
}

bool cq_publish(struct cq *cq, const struct completion *c, uint32_t srq)
{
    if (cq->overrun || (!cq->ignore_overrun && !has_room(cq))) {
        stop(cq);
        return false;
    }
    struct pm_cqe *e = &cq->entries[cq->producer & (cq->slots - 1)];
    fill(e, c, srq);
    /* Release: pairs with the client's acquire load of seq, so that the client sees the whole entry. */
    atomic_store_explicit((_Atomic uint32_t *)&e->seq, cq->producer + 1, memory_order_release);
    cq->producer++;
    cq->unreported++;
    cq->solicited |= c->solicited || c->status != WC_SUCCESS;
    if (!cq->dirty) {
        cq->dirty = true;
        TAILQ_INSERT_TAIL(&cq->session->device->dirty_cqs, cq, dirty_link);
    }
    return true;
}

/* True if the client asked for an event about the entries that are there. */
static bool wanted(struct cq *cq)
{
    uint32_t arm;

    if (!cq->channel)
        return false;
    /* The fence stands between the stores of the entries' seq and this load. The client stores arm before its last
     * look at seq. So either the daemon sees arm, or the client sees the entry. */
    atomic_thread_fence(memory_order_seq_cst);
    arm = atomic_load_explicit(&cq->page->arm, memory_order_relaxed);
    return arm == PM_ARM_ANY || (arm == PM_ARM_SOLICITED && cq->solicited);
}

static void tell(struct cq *cq)
{
    if (atomic_exchange(&cq->page->arm, PM_ARM_NONE) != PM_ARM_NONE &&
        !event_pipe_push(&cq->channel->pipe, cq->handle, 0))
        cq->session->device->io.events_lost++;
}

static void hold(struct cq *cq, uint64_t due)
{
    struct device *d = cq->session->device;

    if (cq->held)
        return;
    cq->held = true;
    cq->due = due;
    TAILQ_INSERT_TAIL(&d->held_cqs, cq, held_link);
    if (cq->due < d->held_due)
        d->held_due = cq->due;
}

/* An unkind NIC may send another event soon, although no entry is added. Programs must expect that: the entry of an event
 * may have been polled before the event is read. */
static void perhaps_tell_again(struct cq *cq, uint64_t now)
{
    struct unkind *u = &cq->session->device->unkind;
    uint64_t draw = unkind_next(u, UNKIND_EVENTS, cq->handle);
    if (draw % 2)
        hold(cq, now + (draw >> 8) % EXTRA_EVENT_NS);
}

void cq_notify(struct cq *cq, uint64_t now)
{
    bool told = wanted(cq), unkind = unkind_is(&cq->session->device->unkind, UNKIND_EVENTS);

    if (told) {
        if (cq->unreported < cq->moderate_count && !(cq->held && cq->due <= now)) {
            hold(cq, now + cq->moderate_ns);
            return;
        }
        if (cq->unreported == 0)
            cq->session->device->unkind.counters.unkind_events++;
        tell(cq);
    }
    if (!unkind || cq->due <= now) /* else a further event is on its way */
        stop_holding(cq);
    cq->unreported = 0;
    cq->solicited = false;
    if (told && unkind)
        perhaps_tell_again(cq, now);
}

/* The event without an entry is due, but the client has not asked for one again. Looks again soon, for a while. */
static bool looks_again(struct cq *cq, uint64_t now)
{
    if (!unkind_is(&cq->session->device->unkind, UNKIND_EVENTS) || cq->unreported || wanted(cq) ||
        cq->extra_looks == EXTRA_EVENT_LOOKS) {
        cq->extra_looks = 0;
        return false;
    }
    cq->extra_looks++;
    cq->due = now + EXTRA_EVENT_LOOK_NS;
    return true;
}

unsigned cq_release_held(struct device *d, uint64_t now)
{
    uint64_t first = NEVER;
    struct cq *cq, *next;
    unsigned n = 0;

    for (cq = TAILQ_FIRST(&d->held_cqs); cq; cq = next) {
        next = TAILQ_NEXT(cq, held_link);
        if (cq->due <= now && !looks_again(cq, now)) {
            cq_notify(cq, now);
            n++;
        }
    }
    TAILQ_FOREACH (cq, &d->held_cqs, held_link)
        first = cq->due < first ? cq->due : first;
    d->held_due = first;
    return n;
}
