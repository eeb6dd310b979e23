// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/qp_ring.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/device/device.h"
#include "daemon/objects/qp/bound_layouts.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/session.h"

#define DRAIN_MAX 256u /* send requests that one QP may pass to the engine in its turn */
#define LATE_RECV_NS NS_PER_MS
#define REFILL_MAX 64u /* receive requests passed to the engine at a time */

/* The client wrote something invalid. Its rings are no longer read. failed_queues_settle does the rest later, because
 * this may run inside a call of the engine. */
static void break_rings(struct client_qp *q, const char *what)
{
    if (q->broken)
        return;
    q->broken = what;
    client_qp_mark_failed(q);
}

static void enter_backlog(struct client_qp *q)
{
    if (q->in_backlog)
        return;
    q->in_backlog = true;
    TAILQ_INSERT_TAIL(&q->device->backlog, q, backlog_link);
}

/* A datagram whose source GID index is invalid, or names an absent address, is lost, like a datagram to an address that no host has. The QP goes
 * on. Datagrams to the other address family are dropped where packets are sent. */
static void check_address(const struct client_qp *q, struct ud_dest *ud)
{
    ud->av.sgid_index = (uint8_t)device_gid_entry(q->device, ud->av.sgid_index);
    if (gid_table_at(&q->device->gids, ud->av.sgid_index))
        return;
    ud->av.sgid_index = 0;
    memset(ud->av.dgid, 0, sizeof(ud->av.dgid));
}

/* Copies the layout of a bind request. False: the request stays in the ring. It is tried again later, unless it is
 * invalid and so breaks the ring. */
static bool take_layout(struct client_qp *q, struct mw_bind *bind)
{
    enum layouts_verdict v = layouts_take(q, bind);

    if (v == LAYOUTS_BAD)
        break_rings(q, "a request to bind a layout that is not where it says");
    return v == LAYOUTS_OK;
}

/* Copies the request at the ring's head into the engine's queue and posts it. False: it stays in the ring. */
static bool take_send(struct client_qp *q)
{
    struct send_slot slot;
    enum ring_verdict v;
    bool has_layout = false;
    int rc = qp_send_reserve(q->qp, &slot);

    if (rc == -ENOMEM)
        return false; /* the queue is full; the engine makes room when requests complete */
    if (rc == 0) {
        v = ring_read_send(&q->sq, &slot);
        if (v != RING_OK) {
            break_rings(q, ring_verdict_text(v));
            return false;
        }
        if (q->sq.has_av)
            check_address(q, &slot.wr->ud);
        else
            has_layout = slot.wr->opcode == WR_BIND_MW && slot.wr->bind.access & PM_BIND_LAYOUT;
        if (has_layout && !take_layout(q, &slot.wr->bind))
            return false;
        rc = qp_send_commit(q->qp);
    }
    if (rc) {
        if (has_layout)
            layouts_put_back(q);
        break_rings(q, "a request that the queue pair can't carry out");
        return false;
    }
    q->sq.head++;
    return true;
}

unsigned client_qp_drain_send(struct client_qp *q)
{
    unsigned done = 0;

    if (q->broken)
        return 0;
    int64_t waiting = ring_waiting(&q->sq);
    if (waiting < 0) {
        break_rings(q, "a tail beyond the end of its send queue");
        return 0;
    }
    while (done < waiting && done < DRAIN_MAX && take_send(q))
        done++;
    if (done < waiting && !q->broken)
        enter_backlog(q);
    if (unkind_is(&q->device->unkind, UNKIND_RNR) && done)
        q->session->asked_at = clock_ns();
    return done;
}

/* With end-to-end credits the peer of a QP without receive requests waits for them. So the client rings the doorbell
 * when it posts some. Returns the number of receive requests in the ring. */
static int64_t watch_posts(struct client_qp *q, int64_t waiting)
{
    bool none = waiting == 0 && qp_recv_room(q->qp) == q->caps.max_recv_wr;

    if (!q->device->config.e2e_credits || q->errored || q->rq_watched == none)
        return waiting;
    q->rq_watched = none;
    atomic_store(&q->page->rq_notify, none);
    if (!none)
        return waiting;
    /* Pairs with the client's store of rq_tail before its load of rq_notify: either the daemon sees the request, or the
     * client rings. */
    atomic_thread_fence(memory_order_seq_cst);
    return ring_waiting(&q->rq);
}

/* For an unkind device: was the request at the head of the receive queue posted too late for the message that needs it? Each
 * message finds out as if it had come up to LATE_RECV_NS earlier, but not before the last request of its program. So a
 * program that posts a receive request before it causes the message is never too late. The next try is not refused. The first
 * message of a QP is not refused either: often, programs tell each other by TCP that they are ready. */
static bool is_too_late(struct client_qp *q)
{
    struct unkind *u = &q->device->unkind;
    uint64_t now = clock_ns();

    if (!unkind_is(u, UNKIND_RNR) || q->rq.head == 0 || q->type != QPT_RC || !q->session ||
        q->device->config.e2e_credits || qp_state(q->qp) == QPS_ERR || qp_recv_room(q->qp) < q->caps.max_recv_wr)
        return false;
    uint64_t draw = q->recv_was_late ? 0 : unkind_next(u, UNKIND_RNR, q->qpn);
    uint64_t edge = now - LATE_RECV_NS > q->session->asked_at ? now - LATE_RECV_NS : q->session->asked_at;
    int32_t after = (int32_t)(ring_posted_us(&q->rq) - (uint32_t)(edge / NS_PER_US)); /* us */
    q->recv_was_late = draw % 2 && after > 0 && (uint64_t)after <= LATE_RECV_NS / NS_PER_US;
    u->counters.unkind_rnr += q->recv_was_late;
    return q->recv_was_late;
}

void client_qp_refill(void *client_qp)
{
    struct client_qp *q = client_qp;
    uint32_t room = qp_recv_room(q->qp);

    if (q->broken)
        return;
    int64_t waiting = watch_posts(q, ring_waiting(&q->rq));
    if (waiting < 0) {
        break_rings(q, "a tail beyond the end of its receive queue");
        return;
    }
    if (waiting > 0 && is_too_late(q))
        return;
    if (room > REFILL_MAX)
        room = REFILL_MAX;
    for (; waiting > 0 && room > 0; waiting--, room--) {
        struct ring_recv r;
        enum ring_verdict v = ring_read_recv(&q->rq, &r);

        if (v != RING_OK) {
            break_rings(q, ring_verdict_text(v));
            return;
        }
        if (qp_post_recv(q->qp, &r.wr, r.sge) != 0)
            return;
        q->rq.head++;
    }
}

void client_qp_rang(void *client_qp, uint64_t now)
{
    struct client_qp *q = client_qp;

    (void)now; /* the owners of other doorbells need it */
    client_qp_drain_send(q);
    if (q->errored)
        qp_kick(q->qp);
    else if (q->rq_watched)
        qp_recv_posted(q->qp);
}

void client_qp_reset_rings(struct client_qp *q)
{
    q->sq.head = atomic_load_explicit(q->sq.tail, memory_order_acquire);
    q->rq.head = atomic_load_explicit(q->rq.tail, memory_order_acquire);
    q->broken = NULL;
    q->overran = false;
    q->unreachable = NULL;
    q->errored = q->rq_watched = false;
    atomic_store(&q->page->rq_notify, 0);
}
