// SPDX-License-Identifier: BSD-2-Clause
/* Engines without the simulator's hosts around them, on its network: for exchanges that have memory and programs of their
 * own. Engine number n has one GID, all zeros but for n + 1 in its last byte. */
#ifndef PUMICE_SIM_BARE_H
#define PUMICE_SIM_BARE_H

#include "daemon/core/engine.h"
#include "tests/sim/network/net.h"

/* Zeroed memory, aligned to 64 bytes; the caller's, for free(). Never NULL. */
void *bare_zeroed(size_t len);

void bare_gid(int n, uint8_t gid[16]);

/* Brings a new RC QP to RTS, connected with one of engine number peer_number; what is not about the peer is as in like. */
void bare_connect(struct qp *qp, const struct qp *peer, int peer_number, const struct qp_attr *like);

/* Hands all that engine number from has to send to the network. */
void bare_transmit(struct engine *e, int from, struct net *net, uint64_t now);

/* Gives the engine that it is for a packet from the network, and frees it. */
void bare_receive(struct engine *e, struct wirepkt *p, struct net *net, uint64_t now);

#endif
