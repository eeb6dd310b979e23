// SPDX-License-Identifier: BSD-2-Clause
/* ibv_post_send and ibv_post_recv. Each call takes one lock, stores the tail once and rings one doorbell, however long
 * the list is. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_POST_H
#define PUMICE_SRC_VERBS_DATAPATH_POST_H

#include <infiniband/verbs.h>

/* The functions that a context points to. 0 or an errno value, and then *bad_wr is the first request that was not
 * posted. EINVAL: the QP can't do this, or not in its state. ENOMEM: the queue is full. EIO: a forked child. */
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
