// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the modules that execute requests: their verdicts, and the access to memory by a peer's rkey. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_REQUEST_H
#define PUMICE_DAEMON_CORE_RESPONDER_REQUEST_H

#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/qp.h"

enum rx_verdict { /* of the checks and the execution of a request */
                  V_OK,
                  V_DROP, /* as if the packet had been lost */
                  V_RNR, /* no receive request */
                  V_INVALID, /* invalid request */
                  V_ACCESS, /* the key does not allow it */
                  V_OPERATION, /* the responder's own fault */
                  /* Longer than the receive request: an invalid request for the peer, a length error for the user. */
                  V_LENGTH,
                  /* The receive request's memory is at fault: an operational error for the peer, a protection error for
                   * the user. */
                  V_PROTECTION,
};

/* Is a request of this operation answered by a response of its own, for which the responder keeps a resource? */
static inline bool resp_is_answered(uint8_t operation)
{
    return operation == OP_READ_REQUEST || operation == OP_CMP_SWAP || operation == OP_FETCH_ADD ||
           operation == OP_ATOMIC_WRITE || operation == OP_FLUSH;
}

/* The memory [addr, addr + len) of an rkey of the peer. pd: the protection domain that the request belongs to. */
static inline void resp_remote_iter(const struct qp *qp, struct sge_iter *s, uint32_t pd, uint32_t key, uint64_t addr,
                                    uint32_t len, uint32_t access)
{
    sge_iter_remote(s, &qp->e->keys, pd, qp_window_qpn(qp), key, addr, len, access);
}

/* Reads memory for a response. A NIC still has the pages that its user has unmapped. The daemon does not, so the peer
 * gets zeros. */
static inline enum copied resp_read(struct qp *qp, struct sge_iter *from, const struct buf *to, unsigned n)
{
    enum copied result = sge_iter_read(from, &qp->e->mem, to, n);
    if (result != COPIED_ZEROS)
        return result;
    COUNT(qp, mem_unmapped);
    return COPIED;
}

#endif
