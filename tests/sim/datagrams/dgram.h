// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable QPs in an exchange, beside the reliable ones: UC pairs and UD QPs that send to each other and to multicast
 * groups, through the same engines and the same faulty network. What must hold:
 *
 *     always           each request completes exactly once and in order; one that is wrong, and those behind it until the
 *                      user has brought the QP back from SQE, never arrive; a message arrives whole or not at all, never
 *                      mixed, with the right length, immediate data, source and header area; no byte is written but in
 *                      receive buffers that are posted and in targets of WRITEs, which only get bytes meant for them;
 *                      at most two copies (the network doubles a packet at most once)
 *     no doubles, no   messages of one sender arrive in order, each at most once
 *     reordering
 *     nothing lost     each message arrives (unless its receiver had no receive request for it), and never more bytes
 *                      are under way from one address to another than the window allows
 *
 *     with an SRQ      its requests are taken by one message each, of any of its QPs; a UC message under way holds one, until
 *                      it ends or is given up, and nothing else ever does; none gets lost
 *
 * UC numbers packets, but takes a message that begins with any PSN (IBA 9.8.2.2.1): a doubled or late one is a new one. */
#ifndef PUMICE_SIM_DGRAM_H
#define PUMICE_SIM_DGRAM_H

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

enum dg_wrong { /* what is wrong with a request */
                DG_FINE,
                DG_BAD_LKEY,
                DG_TOO_LONG, /* UD: longer than the port's MTU */
                DG_BAD_RKEY, /* UC: dropped by the responder */
                DG_BAD_QKEY, /* UD: likewise */
};
struct dg_op {
    uint8_t opcode; /* enum send_op */
    uint8_t flags;
    uint8_t wrong; /* enum dg_wrong */
    int to; /* end; group number + DG_ENDS */
    uint32_t len, off; /* in the data region; a WRITE's in the target region, too */
    uint64_t at;
    bool ok; /* it completed with success */
    uint8_t arrived[DG_ENDS]; /* copies delivered to each end */
};
/* A host's SRQ: with buffers, and a protection domain, of its own. */
struct dg_pool {
    bool on, refill;
    bool mixed; /* also UC's: what was given up leaves bytes in buffers */
    bool ample; /* there is a receive request for all that may come, and long enough */
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
    struct dg_pool *pool; /* NULL: it has a receive queue */
    bool open; /* UC with an SRQ: a SEND is under way */
    bool last_wqe_reported;
    uint8_t window; /* UC: WRITEs come through one of this type; 0: by the region's own key */
    uint32_t window_key;
    int peer; /* UC */
    unsigned groups; /* UD: bits of those joined */
    struct qp_caps caps;
    bool sig_all, refill;
    uint32_t mtu, pd, sq_psn;
    uint8_t tclass, hops;
    uint64_t kill_at; /* moved to ERR then; UINT64_MAX: never */
    bool killed;
    struct dg_op op[DG_OPS];
    int nops, posted, sdone;
    bool broken; /* a request was wrong, and the QP is not back in RTS */
    int flush_end; /* requests before it may be flushed */
    int nrcv, rposted, rdone;
    uint32_t rcv_cap; /* bytes of each receive buffer */
    bool ample; /* there is a receive request for all that may come */
    int last_from[DG_ENDS]; /* newest request of each end that has arrived here */

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
    uint64_t flying[NET_HOSTS][NET_HOSTS][2]; /* bytes under way, by address */
};

void dgram_draw(struct sim *s); /* all of s->dg, after the hosts were drawn */
void dgram_build(struct sim *s);
void dgram_free(struct sim *s);
void dgram_destroy(struct sim *s);
int dgram_post(struct host *h); /* what is due; returns how many */
/* True if it was of an unreliable QP, or of none. */
bool dgram_completion(struct host *h, const struct completion *c);
bool dgram_observe(struct host *h, const struct tx_pkt *t, const struct pkt *p);
bool dgram_refill(struct host *h, void *qp_owner);
bool dgram_refill_srq(struct host *h, void *srq_owner);
bool dgram_event(struct host *h, const struct event *ev);
/* Takes in a packet that may be for unreliable QPs: engine_rx, watched. */
void dgram_rx(struct host *h, const struct pkt *p, const struct rx_meta *meta);
/* The memory of a piece; NULL: it is nobody's here. */
uint8_t *dgram_mem(struct host *h, const struct mem_segment *p, bool write);
/* A packet of an unreliable QP leaves, or is taken in. */
void dgram_flies(struct sim *s, const struct wirepkt *p, bool lands);
void dgram_check_end(struct sim *s);

#endif
