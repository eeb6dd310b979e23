// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/objects/srq/tm_srq.h"

#include <errno.h>

#include "daemon/base/log.h"
#include "daemon/core/tm/trace.h"
#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

_Static_assert(PM_TM_SLOT_BITS == TM_SLOT_BITS, "handles go to the engine as they are");

/* --- setting up a list ------------------------------------------------------------------------- */

int tm_srq_check(const struct device *d, const struct pm_create_srq_req *r, struct control_reply *rp,
                 struct tm_params *p)
{
    enum tm_profile_id id;
    const struct tm_profile *profile = profile_tag_matching(&d->limits, d->settings->tm_profile, &id);

    if (!profile)
        return control_fail(rp, -EOPNOTSUPP, "profile %s has no tag matching", profile_name(d->settings->profile));
    *p = (struct tm_params){
        .max_num_tags = r->max_num_tags,
        .max_ops = r->max_ops,
        .trace_slots = TM_SRQ_TRACE_SLOTS,
        .profile = (uint8_t)id,
    };
    if (r->max_num_tags == 0 || r->max_num_tags > profile->max_num_tags)
        return control_fail(rp, -EINVAL, "a matching list has 1 to %u entries, not %u", profile->max_num_tags,
                            r->max_num_tags);
    if (r->max_ops == 0 || r->max_ops > profile->max_ops)
        return control_fail(rp, -EINVAL, "a matching list has 1 to %u outstanding operations, not %u", profile->max_ops,
                            r->max_ops);
    return 0;
}

int tm_srq_acquire(struct tm_srq *l, const struct tm_params *p, const struct quota_owner *owner,
                   struct control_reply *rp)
{
    if (p->max_num_tags == 0)
        return 0;
    l->params = *p;
    int rc = mapping_create(&l->mem, owner, tm_size(p), rp);
    if (rc)
        return rc;
    l->list = tm_init(l->mem.p, p);
    return l->list ? 0 : -EINVAL;
}

void tm_srq_release(struct tm_srq *l)
{
    mapping_destroy(&l->mem);
    l->list = NULL;
}

static uint32_t max_sge(const struct tm_params *p)
{
    return tm_profile(p->profile)->max_sge;
}

size_t tm_srq_ring_bytes(const struct tm_params *p)
{
    return p->max_num_tags ? (size_t)ring_slots(p->max_ops) * ring_tm_stride(max_sge(p)) : 0;
}

void tm_srq_map(struct client_srq *q, uint32_t offset)
{
    struct tm_srq *l = &q->tm;

    if (!l->list)
        return;
    l->base = (uint8_t *)q->segment.p + offset;
    l->ring = (struct ring){
        .base = l->base,
        .tail = &q->page->ops_tail,
        .slots = ring_slots(l->params.max_ops),
        .stride = ring_tm_stride(max_sge(&l->params)),
        .max_sge = max_sge(&l->params),
    };
}

void tm_srq_forget(struct client_srq *q)
{
    if (q->tm.waiting)
        TAILQ_REMOVE(&q->session->device->waiting_tm_srqs, q, tm.waiting_link);
    q->tm.waiting = false;
}

/* --- operations -------------------------------------------------------------------------------- */

static void wait_for_room(struct client_srq *q)
{
    if (q->tm.waiting)
        return;
    q->tm.waiting = true;
    TAILQ_INSERT_TAIL(&q->session->device->waiting_tm_srqs, q, tm.waiting_link);
}

/* This deletion has no completion that the client could poll. So a flag in the ring tells the client that it may use
 * the slot again. */
static void mark_deleted(struct tm_srq *l)
{
    struct pm_tm_op *w =
        (struct pm_tm_op *)(void *)(l->base + (size_t)(l->ring.head & (l->ring.slots - 1)) * l->ring.stride);

    __atomic_store_n(&w->deleted, 1, __ATOMIC_RELAXED); /* the release store of ops_head follows */
}

/* Logs the first odd count of a list, because its program likely counts wrong. The list goes on: it is out of sync. */
static void log_odd_count(struct client_srq *q, uint32_t count)
{
    const struct session *s = q->session;
    struct tm_info info;

    if (q->tm.odd_count_logged)
        return;
    q->tm.odd_count_logged = true;
    tm_info(q->tm.list, &info);
    log_warn("session %u (%s, pid %d): the matching list of shared receive queue %u (queue pair 0x%06x): the program "
             "reports unexpected_cnt %u, but the device has delivered %u unexpected messages (modulo 65536); expected "
             "a count that grows up to this number; further such reports are only counted (odd_counts)",
             s->number, s->comm, (int)s->cred.pid, q->handle, q->newest_qpn, count, info.hw_cnt);
}

/* Executes the operation at the ring's head. False: it stays there. */
static bool take(struct client_srq *q, uint64_t now)
{
    struct tm_srq *l = &q->tm;
    struct tm_op_result result;
    struct ring_tm_op r;
    enum ring_verdict v = ring_read_tm_op(&l->ring, &r);

    if (v != RING_OK) {
        client_srq_break(q, ring_verdict_text(v));
        return false;
    }
    if (srq_carry_out(q->srq, &r.op, &result, now) != 0) {
        wait_for_room(q);
        return false;
    }
    if (result.odd_count)
        log_odd_count(q, r.op.unexpected_cnt);
    if (r.op.opcode == TM_DEL && !result.complete && result.status == WC_SUCCESS)
        mark_deleted(l);
    l->ring.head++;
    return true;
}

unsigned tm_srq_drain(struct client_srq *q, uint64_t now)
{
    struct tm_srq *l = &q->tm;
    unsigned done = 0;

    if (q->broken)
        return 0;
    int64_t waiting = ring_waiting(&l->ring);
    if (waiting < 0) {
        client_srq_break(q, "a tail beyond the end of its list operations");
        return 0;
    }
    while (done < waiting && take(q, now))
        done++;
    /* Release: pairs with the client's acquire before it writes the slots again. */
    if (done)
        atomic_store_explicit(&q->page->ops_head, l->ring.head, memory_order_release);
    return done;
}

void tm_srq_before_match(void *client_srq)
{
    struct client_srq *q = client_srq;

    tm_srq_drain(q, q->session->device->now);
}

unsigned tm_srq_drain_waiting(struct device *d, uint64_t now)
{
    struct client_srq_list list = TAILQ_HEAD_INITIALIZER(list);
    struct client_srq *q;
    unsigned n = 0;

    TAILQ_CONCAT(&list, &d->waiting_tm_srqs, tm.waiting_link);
    while ((q = TAILQ_FIRST(&list)) != NULL) {
        TAILQ_REMOVE(&list, q, tm.waiting_link);
        q->tm.waiting = false;
        n += tm_srq_drain(q, now);
    }
    return n;
}

bool tm_srq_busy(struct client_srq *q, uint64_t now)
{
    if (!q->tm.list || q->broken)
        return false;
    tm_srq_drain(q, now);
    return !q->broken && ring_waiting(&q->tm.ring) > 0;
}
