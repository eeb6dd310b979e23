// SPDX-License-Identifier: BSD-2-Clause
/* Taking completions: ibv_poll_cq, and the functions that it shares with extended polling. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_POLL_H
#define PUMICE_SRC_VERBS_DATAPATH_POLL_H

#include "src/verbs/objects/cq.h"

/* ibv_poll_cq, a function that a context points to: completions, or -EIO in a forked child. */
int vb_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);

/* The same of an unkind device, which may take fewer completions than there are. */
int vb_poll_cq_fewer(struct ibv_cq *cq, int num, struct ibv_wc *wc);

/* Takes the next completion: the daemon gets its CQ entry back, its request leaves the queue, and its inline data is
 * scattered. out gets all fields but that data; of a datagram's GRH area it gets the first byte, which says whether
 * there is an IPv6 header. Returns false if there is none. The caller holds the lock. */
bool vb_cq_take(struct vb_cq *cq, struct pm_cqe *out);

/* The service level of a completion. RoCE has none. For a datagram, NICs report in this field which headers the
 * datagram had, and UCX reads it before it looks at the GRH area. Bit 3 is set if the headers end with UDP. Bits 2 to 0
 * are 1 for IPv6 and 2 for IPv4. */
static inline uint8_t vb_wc_sl(const struct pm_cqe *e)
{
    if (!(e->wc_flags & IBV_WC_GRH))
        return 0;
    return e->data[0] >> 4 == 6 ? 0x8 | 1 : 0x8 | 2;
}

#endif
