// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/time_wait.h"

#include <string.h>

#include "daemon/core/base/psn.h"
#include "wire/syndrome.h"

bool time_wait_covers(const struct time_wait *e, const struct pkt *p, const struct rx_meta *meta)
{
    uint16_t props = op_table[p->opcode].properties;
    if (!(props & (OP_IS_SEND | OP_IS_WRITE)) || !(props & OP_IS_REQUEST))
        return false; /* the results of READs and atomics are not kept */
    return (p->opcode & OP_SERVICE_MASK) == e->service && pkey_matches(p->pkey) &&
           memcmp(meta->src_gid, e->av.dgid, 16) == 0 && (!meta->src_qpn || meta->src_qpn == e->dest_qpn) &&
           psn_diff(p->psn, e->ack_psn) <= 0;
}

void time_wait_add(struct time_wait_ring *r, const struct time_wait *qp)
{
    struct time_wait *e = &r->slot[r->tail++ % TIME_WAIT_SLOTS];
    r->pending -= e->ack_pending;
    *e = *qp;
    r->pending += e->ack_pending;
}

/* The newest QP of that number: numbers are used again after 2^24 others. */
static struct time_wait *find(struct time_wait_ring *r, uint32_t qpn)
{
    for (uint32_t i = 0; i < TIME_WAIT_SLOTS; i++) {
        struct time_wait *e = &r->slot[(r->tail - 1 - i) % TIME_WAIT_SLOTS];
        if (e->qpn == qpn && qpn != 0)
            return e;
    }
    return NULL;
}

bool time_wait_rx(struct time_wait_ring *r, const struct pkt *p, const struct rx_meta *meta)
{
    struct time_wait *e = find(r, p->dest_qpn);
    if (!e || !time_wait_covers(e, p, meta))
        return false;
    r->pending += !e->ack_pending;
    e->ack_pending = true;
    return true;
}

bool time_wait_tx(struct time_wait_ring *r, struct tx_batch *b)
{
    for (uint32_t i = 0; i < TIME_WAIT_SLOTS && r->pending; i++) {
        struct time_wait *e = &r->slot[i];
        if (!e->ack_pending)
            continue;
        struct pkt p = {
            .opcode = (uint8_t)(e->service | OP_ACK),
            .migreq = true,
            .pkey = PKEY_DEFAULT,
            .dest_qpn = e->dest_qpn,
            .psn = e->ack_psn,
            .aeth = {.syndrome = AETH_ACK | AETH_NO_CREDITS, .msn = e->ack_msn},
        };
        uint8_t *payload;
        if (!tx_append(b, &p, &e->av, e->qpn, 0, &payload))
            return false;
        e->ack_pending = false;
        r->pending--;
    }
    return true;
}
