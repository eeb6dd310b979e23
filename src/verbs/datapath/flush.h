// SPDX-License-Identifier: BSD-2-Clause
/* Completions after the death of the daemon. The library completes all requests whose completions were not polled, in
 * posting order, with IBV_WC_WR_FLUSH_ERR. The library does not know which of them the daemon had carried out. A basic
 * SRQ has no CQ. Its requests complete in the first CQ of its queue pairs that is polled. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_FLUSH_H
#define PUMICE_SRC_VERBS_DATAPATH_FLUSH_H

#include "src/verbs/objects/cq.h"

/* Makes a flushed completion of the next outstanding request of the queues that complete in cq. Returns false if there
 * is none. The caller holds the lock and retires the completion, which moves the head of its queue. A request of an SRQ
 * is retired already. */
bool vb_flush_next(struct vb_cq *cq, struct pm_cqe *out);

#endif
