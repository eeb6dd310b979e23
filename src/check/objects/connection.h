// SPDX-License-Identifier: BSD-2-Clause
/* The attributes with which a program has connected a queue pair. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_CONNECTION_H
#define PUMICE_SRC_CHECK_OBJECTS_CONNECTION_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "src/check/base/trace.h"

struct connection {
    union ibv_gid gid, peer_gid;
    uint32_t peer; /* the QP number; 0: not connected */
    enum ibv_mtu path_mtu;
    uint32_t rq_psn, sq_psn;
    uint8_t rd_atomic, dest_rd_atomic; /* max_rd_atomic, max_dest_rd_atomic */
    uint8_t rnr_retry;
    unsigned access; /* qp_access_flags */
    uint64_t since; /* the change to RTR, in ns of the monotonic clock */
    const struct trace *where; /* of that */
    const struct trace *ready_at, *access_at; /* the changes to RTS, and of the access flags; NULL: none */
};

#endif
