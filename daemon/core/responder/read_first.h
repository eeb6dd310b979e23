// SPDX-License-Identifier: BSD-2-Clause
/* The responder keeps the order of requests: a request that changes memory, or that the user sees, does not overtake an
 * earlier READ of its QP. (IBA 10.8.3.3 allows it, but NICs read first, and programs count on it.)
 *
 * A READ is read when its response is sent, which is mostly before the next request comes. If such a request is earlier,
 * the data are copied then. If there is no room for the copy, the request is dropped. When the responses are sent, a NAK
 * asks for it.
 *
 * READs of READ_SMALL bytes or less always have room, in their resources. Those that came together are read together,
 * because each call of mem_ops.read costs the daemon a system call: much more than so few bytes. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_READ_FIRST_H
#define PUMICE_DAEMON_CORE_RESPONDER_READ_FIRST_H

#include "daemon/core/responder/request.h"

/* Reads the data of all earlier READs. False: the packet has to wait. */
bool read_first_copy(struct qp *qp);

/* May the packet, which has the expected PSN, be executed now? */
static inline bool read_first(struct qp *qp, const struct pkt *p)
{
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    return qp->resp->res_unread == 0 || operation == OP_READ_REQUEST || operation == OP_FLUSH || read_first_copy(qp);
}

/* The data that a response needs, from packet res->next_pkt on. Fills buf[0 … n), `bytes` in all. */
enum copied read_first_data(struct qp *qp, struct resource *res, const struct buf *buf, uint32_t n, uint32_t bytes);

#endif
