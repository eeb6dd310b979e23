// SPDX-License-Identifier: BSD-2-Clause
/* Caches the data that is the same for every packet to or from one address: socket address, GID, and the precomputed
 * start of the ICRC. The cache is small. An entry that another address replaced is computed again. */
#ifndef PUMICE_DAEMON_NET_PEER_CACHE_H
#define PUMICE_DAEMON_NET_PEER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/address.h"
#include "wire/icrc.h"

struct peer_addr {
    bool valid;
    uint8_t gid[16];
    union addr addr; /* with the port of the peer */
    socklen_t addr_len;
    bool multicast; /* a group */
    bool other_port; /* its port is not 4791 */
    bool like_pumice; /* it has sent a packet that only a Pumice device sends */
    /* The receiver's result for the address, and for which list of peers. 0: none yet. */
    bool refused;
    uint32_t refused_by;
    struct icrc_ctx icrc;
};

#define PEER_SLOTS 256
struct peers {
    union addr own; /* with our port */
    bool incoming; /* the packets come from the peers; false: they go to the peers */
    struct peer_addr *last; /* result of the latest lookup */
    struct peer_addr slot[PEER_SLOTS];
};

/* own must include its port. */
void peers_init(struct peers *p, const union addr *own, bool incoming);

/* The result is valid until the next call on the same cache. peers_by_gid uses port 4791; it returns NULL if the GID
 * is not of the device's address family. */
struct peer_addr *peers_by_gid(struct peers *p, const uint8_t gid[16]);
struct peer_addr *peers_by_addr(struct peers *p, const union addr *addr);

#endif
