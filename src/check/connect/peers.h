// SPDX-License-Identifier: BSD-2-Clause
/* The two ends of a connection tell each other how many messages they have posted, and when. The checked processes of a
 * run share a file for that, "peers" in $PUMICE_CHECK_DIR. Without that directory, only queue pairs of one process see each
 * other. Nothing goes to the wire. */
#ifndef PUMICE_SRC_CHECK_CONNECT_PEERS_H
#define PUMICE_SRC_CHECK_CONNECT_PEERS_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "src/check/base/trace.h"

#define PEER_MESSAGES 256u /* the latest ones, whose times are known */

/* A connected queue pair of any process of the run. */
struct peer {
    _Atomic uint32_t state; /* 0: free, 1: being filled, 2: in use */
    uint32_t qpn;
    union ibv_gid gid;
    uint32_t pid;
    _Atomic uint32_t rnr_retry;
    _Atomic uint64_t sent; /* messages posted that take a receive request of the other end */
    struct {
        _Atomic uint64_t when; /* ns of the monotonic clock */
        _Atomic uint32_t where; /* a backtrace in the file of the process */
    } message[PEER_MESSAGES]; /* by number */
};

uint64_t peers_now(void);

/* Makes this process's own entry for a queue pair. NULL: no room. */
struct peer *peers_add(const union ibv_gid *gid, uint32_t qpn);
/* NULL: nothing is done. */
void peers_remove(struct peer *own);
/* The entry of any process. NULL: there is none. */
const struct peer *peers_find(const union ibv_gid *gid, uint32_t qpn);
/* Is it still that one? */
bool peers_is(const struct peer *p, const union ibv_gid *gid, uint32_t qpn);

/* The program posts a message that takes a receive request. own: may be NULL, as below. */
void peers_sent(struct peer *own, const struct trace *where);
/* The library refused it. */
void peers_unsent(struct peer *own);

#endif
