// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/srq/srq.h"

#include "daemon/device/device.h"
#include "daemon/session/session.h"

/* May run inside a call of the engine. So failed_queues_settle does the rest later. */
void client_srq_break(struct client_srq *q, const char *what)
{
    if (q->broken)
        return;
    q->broken = what;
    srq_fail(q->srq); /* sends the client an event, and fails XRC targets that need a request of this SRQ */
    if (!q->in_failed) {
        q->in_failed = true;
        TAILQ_INSERT_TAIL(&q->session->device->failed_srqs, q, failed_link);
    }
}

void client_srq_refill(void *client_srq)
{
    struct client_srq *q = client_srq;
    uint32_t room = srq_room(q->srq);

    if (q->broken)
        return;
    int64_t waiting = ring_waiting(&q->ring);
    if (waiting < 0) {
        client_srq_break(q, "a tail beyond the end of the queue");
        return;
    }
    for (; waiting > 0 && room > 0; waiting--, room--) {
        struct ring_recv r;
        enum ring_verdict v = ring_read_recv(&q->ring, &r);

        if (v != RING_OK) {
            client_srq_break(q, ring_verdict_text(v));
            return;
        }
        if (srq_post_recv(q->srq, &r.wr, r.sge) != 0)
            return;
        q->ring.head++;
    }
}
