// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable QPs in an exchange, beside the reliable ones: UC pairs, and UD QPs that send to each other and to
 * multicast groups. They use the same engines and the same faulty network. The invariants:
 *
 *     always           Each request completes exactly once and in order. A wrong request, and the requests after it
 *                      until the user has moved the QP back from SQE, never arrive. A message arrives whole or not at
 *                      all, never mixed, with the right length, immediate data, source and header area. Bytes are
 *                      written only to receive buffers that are posted and to targets of WRITEs, and targets get only
 *                      bytes meant for them. At most two copies arrive (the network duplicates a packet at most once).
 *     no duplicates,   The messages of one sender arrive in order, each at most once.
 *     no reordering
 *     no loss          Each message arrives, unless its receiver had no receive request for it. The bytes under way from
 *                      one address to another never exceed the window.
 *
 *     with an SRQ      Each of its requests is taken by one message, of any of its QPs. A UC message under way holds one
 *                      request until it ends or is dropped. Nothing else ever holds one. No request is lost.
 *
 * UC numbers packets, but accepts a message that begins with any PSN (IBA 9.8.2.2.1). So a duplicated or late message
 * is a new one. */
#ifndef PUMICE_TESTS_SIM_DATAGRAMS_DGRAM_H
#define PUMICE_TESTS_SIM_DATAGRAMS_DGRAM_H

#include "daemon/core/engine.h"
#include "tests/sim/network/net.h"

#define DG_ENDS 6
#define DG_OPS 24
#define DG_RCVS (DG_OPS * 4)
#define DG_GROUPS 2
#define DG_COPIES 2
#define DG_POOL_RCVS 256

struct sim;
struct host;

/* The fault of a request. */
enum dg_wrong {
    DG_FINE,
    DG_BAD_LKEY,
    DG_TOO_LONG, /* UD: longer than the MTU of the port */
    DG_BAD_RKEY, /* UC: the responder drops it */
    DG_BAD_QKEY, /* UD: the responder drops it */
};
struct dg_op {
    uint8_t opcode; /* enum send_op */
    uint8_t flags;
    uint8_t wrong; /* enum dg_wrong */
    int to; /* index of the end, or group number + DG_ENDS */
    uint32_t len, off; /* in the data region; of a WRITE also in the target region */
    uint64_t at;
    bool ok; /* it completed successfully */
    uint8_t arrived[DG_ENDS]; /* number of copies delivered to each end */
};
/* The SRQ of a host. It has its own buffers and its own protection domain. */
struct dg_pool {
    bool on, refill;
    bool mixed; /* also used by UC: dropped messages leave bytes in buffers */
    bool ample; /* there is a receive request, long enough, for every message */
    uint32_t max_wr, cap; /* cap: bytes of each buffer */
    int rposted, ndone;
    bool done[DG_POOL_RCVS];
    uint32_t pd, space, key;
    uint64_t va;
    uint8_t *mem;
    void *srqmem;
    struct srq *srq;
};
struct dg_end {
    struct sim *sim;
    int index, host;
    bool ud, v6;
    struct dg_pool *pool; /* NULL: the end has a receive queue */
    bool open; /* UC with an SRQ: a SEND is under way */
    bool last_wqe_reported;
    uint8_t window; /* UC: WRITEs use a window of this type; 0: the region's own key */
    uint32_t window_key;
    int peer; /* UC */
    unsigned groups; /* UD: bit set of the groups that it has joined */
    struct qp_caps caps;
    bool sig_all, refill;
    uint32_t mtu, pd, sq_psn;
    uint8_t tclass, hops;
    uint64_t kill_at; /* time of the move to ERR; UINT64_MAX: never */
    bool killed;
    struct dg_op op[DG_OPS];
    int nops, posted, sdone;
    bool broken; /* a request was wrong, and the QP is not yet back in RTS */
    int flush_end; /* requests before this index may be flushed */
    int nrcv, rposted, rdone;
    uint32_t rcv_cap; /* bytes of each receive buffer */
    bool ample; /* there is a receive request for every message */
    int last_from[DG_ENDS]; /* the newest request of each end that arrived here */

    uint32_t space; /* address space */
    uint64_t va;
    uint32_t data_len, rcv_len, tgt_len;
    uint8_t *mem; /* data to send, receive buffers, targets of the peer's WRITEs, in this order */
    uint32_t data_key, rcv_key, tgt_key;
    void *qpmem;
    struct qp *qp;
    uint32_t qpn;
};
struct dgram {
    int n;
    struct dg_end end[DG_ENDS];
    struct dg_pool pool[NET_HOSTS];
    struct prng rng;
    uint32_t qkey;
    uint8_t group[DG_GROUPS][16];
    uint64_t flying[NET_HOSTS][NET_HOSTS][2]; /* bytes under way, by source, destination and IP version */
};

void dgram_draw(struct sim *s); /* draws all of s->dg; call it after the hosts were drawn */
void dgram_build(struct sim *s);
void dgram_free(struct sim *s);
void dgram_destroy(struct sim *s);
int dgram_post(struct host *h); /* posts the requests that are due; returns their number */
bool dgram_can_post(const struct host *h); /* is a request due, and is there room for it? */
/* These return true if the argument belongs to an unreliable QP or, for a packet, to none. */
bool dgram_completion(struct host *h, const struct completion *c);
bool dgram_observe(struct host *h, const struct tx_pkt *t, const struct pkt *p);
bool dgram_refill(struct host *h, void *qp_owner);
bool dgram_refill_srq(struct host *h, void *srq_owner);
bool dgram_event(struct host *h, const struct event *ev);
/* Calls engine_rx for a packet that may be for unreliable QPs, and checks what it does. */
void dgram_rx(struct host *h, const struct pkt *p, const struct pkt_run *run, const struct rx_meta *meta);
/* Is each packet to this QP checked alone? */
bool dgram_counts_packets(struct host *h, uint32_t qpn);
/* The memory of a piece; NULL: no unreliable QP here owns it. */
uint8_t *dgram_mem(struct host *h, const struct mem_segment *p, bool write);
/* A packet of an unreliable QP leaves or (lands) arrives. */
void dgram_flies(struct sim *s, const struct wirepkt *p, bool lands);
void dgram_check_end(struct sim *s);

#endif
