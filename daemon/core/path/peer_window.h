// SPDX-License-Identifier: BSD-2-Clause
/* Destination addresses, and the bytes in flight to each: all QPs that send to one share its socket's receive buffer. */
#ifndef PUMICE_CORE_PEER_H
#define PUMICE_CORE_PEER_H

#include "daemon/core/base/list.h"
#include "daemon/core/path/datagram_flow.h"

/* Bytes that a packet of so much payload takes of a socket's buffer, headers and bookkeeping included. */
#define PACKET_OVERHEAD 256u
#define PEER_BUCKETS 256u /* a power of two */

struct peer {
    struct link bucket; /* in peer_table.bucket, unless the entry was never used */
    uint8_t gid[16];
    uint32_t users; /* QPs connected to it; 0 and nothing in flight: the entry may be taken for another address */
    uint64_t inflight; /* bytes sent to its socket, or asked from it, and not answered */
    struct link waiting; /* QPs that wait for room */
    struct flow flow; /* of the bytes in flight that nobody acknowledges */
};
struct peer_table {
    struct link bucket[PEER_BUCKETS];
    struct peer *peers; /* [size] */
    uint32_t size;
    uint32_t untouched; /* entries from here on were never used */
    uint32_t hand; /* where the search for an entry that may be taken goes on */
};

/* peers: size zeroed ones. */
void peer_table_init(struct peer_table *t, struct peer *peers, uint32_t size);
/* The entry of an address; if there are more addresses in use than entries, one that several share, which is only slower.
 * It stays the address's own as long as it has users or something in flight. */
struct peer *peer_find(struct peer_table *t, const uint8_t gid[16]);
/* NULL: no datagram was sent there of late. */
struct peer *peer_known(const struct peer_table *t, const uint8_t gid[16]);
struct peer *peer_get(struct peer_table *t, const uint8_t gid[16]); /* the same, with one user more */
void peer_put(struct peer *p);

/* READs: true if responses of cost more bytes may be sent to the QP's peer; else the QP is woken when that changes. */
bool peer_admits(struct qp *qp, uint64_t cost);
void peer_charge(struct qp *qp, uint64_t cost);
void peer_release(struct qp *qp, uint64_t cost);

/* Bytes that the window has room for. Who has nothing in flight there may send a little all the same: what is acknowledged a
 * burst, what nobody acknowledges one packet. READs go through peer_admits. */
uint64_t peer_room(const struct engine *e, const struct peer *p);
/* The QP is woken when there is more room. */
void peer_wait(struct qp *qp, struct peer *p);
/* cost bytes less are in flight. */
void peer_free(struct peer *p, uint64_t cost);

#endif
