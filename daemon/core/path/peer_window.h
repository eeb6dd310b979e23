// SPDX-License-Identifier: BSD-2-Clause
/* Destination addresses, and the bytes in flight to each: all QPs that send to one share its socket's receive buffer. */
#ifndef PUMICE_CORE_PEER_WINDOW_H
#define PUMICE_CORE_PEER_WINDOW_H

#include "daemon/core/base/list.h"
#include "daemon/core/path/datagram_flow.h"

/* Bytes that a packet of so much payload takes of a socket's buffer, headers and bookkeeping included. */
#define PACKET_OVERHEAD 256u
#define PEER_WINDOW_BUCKETS 256u /* a power of two */

struct peer_window {
    struct list_node bucket; /* in peer_window_table.bucket, unless the entry was never used */
    uint8_t gid[16];
    uint32_t users; /* QPs connected to it; 0 and nothing in flight: the entry may be taken for another address */
    uint64_t inflight; /* bytes sent to its socket, or asked from it, and not answered */
    struct list_node waiting; /* QPs that wait for room */
    struct datagram_flow flow; /* of the bytes in flight that nobody acknowledges */
};
struct peer_window_table {
    struct list_node bucket[PEER_WINDOW_BUCKETS];
    struct peer_window *peers; /* [size] */
    uint32_t size;
    uint32_t untouched; /* entries from here on were never used */
    uint32_t hand; /* where the search for an entry that may be taken goes on */
};

/* peers: size zeroed ones. */
void peer_window_table_init(struct peer_window_table *t, struct peer_window *peers, uint32_t size);
/* The entry of an address; if there are more addresses in use than entries, one that several share, which is only slower.
 * It stays the address's own as long as it has users or something in flight. */
struct peer_window *peer_window_find(struct peer_window_table *t, const uint8_t gid[16]);
/* NULL: no datagram was sent there of late. */
struct peer_window *peer_window_lookup(const struct peer_window_table *t, const uint8_t gid[16]);
struct peer_window *peer_window_get(struct peer_window_table *t,
                                    const uint8_t gid[16]); /* the same, with one user more */
void peer_window_put(struct peer_window *p);

/* READs: true if responses of cost more bytes may be sent to the QP's peer; else the QP is woken when that changes. */
bool peer_window_admits(struct qp *qp, uint64_t cost);
void peer_window_charge(struct qp *qp, uint64_t cost);
void peer_window_release(struct qp *qp, uint64_t cost);

/* Bytes that the window has room for. Who has nothing in flight there may send a little all the same: what is acknowledged a
 * burst, what nobody acknowledges one packet. READs go through peer_window_admits. */
uint64_t peer_window_room(const struct engine *e, const struct peer_window *p);
/* The QP is woken when there is more room. */
void peer_wait(struct qp *qp, struct peer_window *p);
/* cost bytes less are in flight. */
void peer_window_free(struct peer_window *p, uint64_t cost);

#endif
