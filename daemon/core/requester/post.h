// SPDX-License-Identifier: BSD-2-Clause
/* Posting of send requests. */
#ifndef PUMICE_CORE_REQUESTER_POST_H
#define PUMICE_CORE_REQUESTER_POST_H

#include "daemon/core/base/types.h"

struct qp;

/* Posts a copy of a request. sge: wr->num_sge entries, or data: wr->inline_len bytes if SEND_INLINE. 0, -EINVAL (state RESET, INIT or
 * RTR; more SGEs or inline data than the QP's caps; opcode not of the QP's type; message over 2^31 bytes), -ENOMEM (queue full). In
 * ERR the request is accepted and flushed. */
int qp_post_send(struct qp *qp, const struct send_wr *wr, const struct sge *sge, const void *data, uint64_t now);
/* Free entries of the private send queue. */
uint32_t qp_send_room(const struct qp *qp);

#endif
