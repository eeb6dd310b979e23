// SPDX-License-Identifier: BSD-2-Clause
/* ibv_post_srq_recv: posting receive requests to a shared receive queue. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_SRQ_POST_H
#define PUMICE_SRC_VERBS_DATAPATH_SRQ_POST_H

#include <infiniband/verbs.h>

/* A function that a context points to. 0 or an errno value, and then *bad_wr is the first request that was not posted.
 * EINVAL: too many SGEs. ENOMEM: the queue is full. EIO: a forked child. */
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
