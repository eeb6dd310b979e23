// SPDX-License-Identifier: BSD-2-Clause
/* Engines on the simulator's network, but without the simulator's hosts: for exchanges with their own memory and
 * programs. Engine number n has one GID, which is all zero except for n + 1 in its last byte. */
#ifndef PUMICE_TESTS_SIM_HOST_BARE_H
#define PUMICE_TESTS_SIM_HOST_BARE_H

#include "daemon/core/engine.h"
#include "tests/sim/network/net.h"

/* Returns zeroed memory, aligned to 64 bytes. The caller frees it with free(). Never NULL. */
void *bare_zeroed(size_t len);

/* Memory whose content does not matter: everything can be read and written. */
extern const struct mem_ops bare_mem_ops;

void bare_gid(int n, uint8_t gid[16]);

/* Moves a new RC QP to RTS, connected to a QP of engine number peer_number. Attributes that do not depend on the peer
 * are copied from `like`. */
void bare_connect(struct qp *qp, const struct qp *peer, int peer_number, const struct qp_attr *like);

/* Sends everything that engine number `from` has to send to the network. */
void bare_transmit(struct engine *e, int from, struct net *net, uint64_t now);

/* Gives a packet from the network to its engine, and frees it. */
void bare_receive(struct engine *e, struct wirepkt *p, struct net *net, uint64_t now);

#endif
