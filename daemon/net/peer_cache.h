// SPDX-License-Identifier: BSD-2-Clause
/* What is the same for every packet to or from one address: socket address, GID, and the ready-made start of the ICRC.
 * A small cache; an entry that another address pushed out is made again. */
#ifndef PUMICE_DAEMON_PEER_H
#define PUMICE_DAEMON_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/address.h"
#include "wire/icrc.h"

struct peer_addr {
    bool valid;
    uint8_t gid[16];
    union addr addr; /* with the peer's port */
    struct icrc_ctx icrc;
};

#define PEER_SLOTS 256
struct peers {
    union addr own; /* with our port */
    bool incoming; /* packets come from the peers; else they go to them */
    struct peer_addr *last; /* the one looked up last */
    struct peer_addr slot[PEER_SLOTS];
};

/* own must have its port. */
void peers_init(struct peers *p, const union addr *own, bool incoming);

/* Valid until the next call of the same cache. peers_by_gid: port 4791; NULL if the GID is not of the device's family.
 */
struct peer_addr *peers_by_gid(struct peers *p, const uint8_t gid[16]);
struct peer_addr *peers_by_addr(struct peers *p, const union addr *addr);

#endif
