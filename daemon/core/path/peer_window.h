// SPDX-License-Identifier: BSD-2-Clause
/* The windows of destination addresses: the bytes in flight to each, and the QPs that wait for room. A window limits
 * them because all QPs that send to one address share the receive buffer of its socket.
 *
 * The state of datagram_flow.c for each address is also here. */
#ifndef PUMICE_DAEMON_CORE_PATH_PEER_WINDOW_H
#define PUMICE_DAEMON_CORE_PATH_PEER_WINDOW_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/scheduler.h"
#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/base/types.h"
#include "daemon/core/path/congestion.h"
#include "daemon/core/path/peer_features.h"
#include "daemon/core/path/reordering.h"

/* Bytes of a socket's buffer that a packet takes beside its payload: headers and the kernel's bookkeeping. */
#define PACKET_OVERHEAD 256u
#define PEER_WINDOW_BUCKETS 256u /* a power of two */

#define FLOW_PROBES 4u /* the most unanswered probes of one address */

struct datagram_flow { /* see datagram_flow.h */
    struct av av; /* the way in which the address was reached last */
    struct timer timer;
    struct list_node due; /* in datagram_flow_table.due while a probe must be sent */
    uint64_t charged; /* bytes sent so far */
    uint64_t released; /* bytes that no longer count as in flight */
    uint64_t probed; /* `charged` when the newest probe was sent */
    uint64_t probed_at; /* time of the newest probe, ns; 0: never */
    struct datagram_probe {
        uint32_t sequence;
        uint64_t mark; /* its answer releases bytes up to this value of `charged` */
    } probe[FLOW_PROBES]; /* unanswered, oldest first */
    uint8_t count; /* number of unanswered probes */
    uint8_t misses; /* how often in a row no answer came in time */
    bool answers; /* the address has answered since it was given up last */
    bool unprobed; /* the address does not answer probes: its bytes are released by time */
};

struct peer_window {
    struct list_node bucket; /* in peer_window_table.bucket, unless the entry was never used */
    uint8_t gid[16];
    /* Number of QPs connected to the address. An entry without users and bytes in flight may be reused for another
     * address. */
    uint32_t users;
    uint64_t inflight; /* bytes sent to the socket of the address, or requested from it, and not answered */
    struct list_node waiting; /* QPs that wait for room: sched_entity.waiting */
    struct congestion congestion; /* of its connected QPs */
    struct peer_features features; /* of its device */
    struct reordering reordering; /* of the packets to it */
    bool reports; /* packets to it are sent again one by one: it has sent SACKs, or is known to understand them */
    struct datagram_flow flow; /* of the bytes in flight that are never acknowledged */
};
struct peer_window_table {
    const struct engine_config *cfg;
    struct list_node bucket[PEER_WINDOW_BUCKETS];
    struct peer_window *peers; /* [size] */
    uint32_t size;
    uint32_t untouched; /* entries from this index on were never used */
    uint32_t hand; /* index at which the next search for a reusable entry starts */
};

/* peers: `size` zeroed entries. cfg stays valid as long as the table. */
void peer_window_table_init(struct peer_window_table *t, const struct engine_config *cfg, struct peer_window *peers,
                            uint32_t size);
/* The entry of an address. If more addresses are in use than there are entries, several addresses share one, which is
 * only slower. The entry stays the address's own as long as it has users or bytes in flight. */
struct peer_window *peer_window_find(struct peer_window_table *t, const uint8_t gid[16]);
/* As peer_window_find, but never gives the address a new entry. NULL: the address has none. */
struct peer_window *peer_window_lookup(const struct peer_window_table *t, const uint8_t gid[16]);
/* As peer_window_find, and adds a user. The first user starts with a new congestion window, and with a device that may
 * be another one than before. */
struct peer_window *peer_window_get(struct peer_window_table *t, const uint8_t gid[16]);
/* Removes a user. */
void peer_window_put(struct peer_window *p);

/* Are all bytes released that were charged to the flow? */
static inline bool datagram_flow_is_idle(const struct datagram_flow *f)
{
    return f->charged == f->released;
}

/* Adds cost bytes that are now in flight. */
static inline void peer_window_charge(struct peer_window *p, uint64_t cost)
{
    p->inflight += cost;
}
/* Removes cost bytes that are no longer in flight. The QPs that wait for room become ready. */
static inline void peer_window_release(struct peer_window *p, uint64_t cost)
{
    p->inflight -= cost;
    if (cost)
        sched_wake_all(&p->waiting);
}
/* The congestion window after losses that look random is at most this, in bytes. */
static inline uint64_t peer_window_capacity(const struct peer_window *p)
{
    return (uint64_t)p->users * (p->reports ? CWND_CAPACITY_SELECTIVE : CWND_CAPACITY_MOST);
}
/* Bytes that a window of so many bytes in all has room for. */
static inline uint64_t peer_window_room(const struct peer_window *p, uint64_t window_bytes)
{
    return p->inflight < window_bytes ? window_bytes - p->inflight : 0;
}

#endif
