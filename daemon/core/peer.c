// SPDX-License-Identifier: BSD-2-Clause
/* Bytes in flight per destination: all QPs that talk to one address share its socket's receive buffer. */
#include <string.h>

#include "daemon/core/engine_priv.h"

struct peer *peer_get(struct engine *e, const uint8_t gid[16])
{
    struct peer *unused = NULL;
    for (uint32_t i = 0; i < e->cfg.max_peers; i++) {
        struct peer *p = &e->peers[i];
        if (p->users == 0) {
            unused = unused ? unused : p;
        } else if (memcmp(p->gid, gid, 16) == 0) {
            p->users++;
            return p;
        }
    }
    if (!unused) {
        /* More destinations than entries: the last entry's window is shared, which is only slower. */
        unused = &e->peers[e->cfg.max_peers - 1];
        unused->users++;
        return unused;
    }
    memcpy(unused->gid, gid, 16);
    unused->users = 1;
    unused->inflight = 0;
    link_init(&unused->waiting);
    return unused;
}

void peer_put(struct peer *p)
{
    p->users--;
}

bool peer_admits(struct qp *qp, uint64_t cost)
{
    struct peer *p = qp->peer;
    if (!p)
        return true;
    /* Who has nothing in flight may always send one burst: so no QP waits for ever behind others that are stuck. */
    if (qp->req.inflight == 0 || p->inflight + cost <= qp->e->cfg.peer_window_bytes)
        return true;
    if (link_alone(&qp->peer_wait)) {
        COUNT(qp, peer_window_full);
        link_append(&p->waiting, &qp->peer_wait);
    }
    return false;
}

void peer_charge(struct qp *qp, uint64_t cost)
{
    if (!qp->peer)
        return;
    qp->req.inflight += cost;
    qp->peer->inflight += cost;
}

void peer_release(struct qp *qp, uint64_t cost)
{
    struct peer *p = qp->peer;
    if (!p)
        return;
    qp->req.inflight -= cost;
    p->inflight -= cost;
    while (cost && !link_alone(&p->waiting)) {
        struct qp *waiter = link_owner(p->waiting.next, struct qp, peer_wait);
        link_remove(&waiter->peer_wait);
        engine_ready(waiter);
    }
}
