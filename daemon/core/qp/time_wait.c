// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/time_wait.h"

#include <string.h>

#include "daemon/core/base/psn.h"
#include "wire/syndrome.h"

void time_wait_add(struct time_wait_ring *r, const struct time_wait *qp)
{
    struct time_wait *l = &r->slot[r->tail++ % TIME_WAIT_SLOTS];
    r->pending -= l->ack_pending;
    *l = *qp;
    r->pending += l->ack_pending;
}

/* The newest QP of that number: numbers are used again after 2^24 others. */
static struct time_wait *find(struct time_wait_ring *r, uint32_t qpn)
{
    for (uint32_t i = 0; i < TIME_WAIT_SLOTS; i++) {
        struct time_wait *l = &r->slot[(r->tail - 1 - i) % TIME_WAIT_SLOTS];
        if (l->qpn == qpn && qpn != 0)
            return l;
    }
    return NULL;
}

bool time_wait_rx(struct time_wait_ring *r, const struct pkt *p, const struct rx_meta *meta)
{
    uint16_t props = op_table[p->opcode].properties;
    if (!(props & (OP_IS_SEND | OP_IS_WRITE)) || !(props & OP_IS_REQUEST))
        return false; /* the results of READs and atomics are not kept */
    struct time_wait *l = find(r, p->dest_qpn);
    if (!l || (p->opcode & OP_SERVICE_MASK) != l->service || !pkey_matches(p->pkey) ||
        memcmp(meta->src_gid, l->av.dgid, 16) != 0 || psn_diff(p->psn, l->ack_psn) > 0)
        return false;
    r->pending += !l->ack_pending;
    l->ack_pending = true;
    return true;
}

bool time_wait_tx(struct time_wait_ring *r, struct tx_batch *b)
{
    for (uint32_t i = 0; i < TIME_WAIT_SLOTS && r->pending; i++) {
        struct time_wait *l = &r->slot[i];
        if (!l->ack_pending)
            continue;
        struct pkt p = {
            .opcode = (uint8_t)(l->service | OP_ACK),
            .migreq = true,
            .pkey = PKEY_DEFAULT,
            .dest_qpn = l->dest_qpn,
            .psn = l->ack_psn,
            .aeth = {.syndrome = AETH_ACK | AETH_NO_CREDITS, .msn = l->ack_msn},
        };
        uint8_t *payload;
        if (!tx_append(b, &p, &l->av, l->qpn, 0, &payload))
            return false;
        l->ack_pending = false;
        r->pending--;
    }
    return true;
}
