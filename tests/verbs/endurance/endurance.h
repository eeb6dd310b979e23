// SPDX-License-Identifier: BSD-2-Clause
/* Data-checked traffic between two processes, over a connected transport.
 *
 *     rdma_endurance [options]                 the server
 *     rdma_endurance [options] HOST            the client; it issues the operations
 *
 * Both ends derive the same list of operations from one seed (the client's), so each knows what every byte must be: the
 * server checks each SEND, WRITE and WRITE with immediate, the client each READ and atomic. The server grants credit as
 * it checks, so traffic flows both ways and no buffer is overwritten before it was looked at. Addresses are exchanged
 * over TCP.
 *
 * Exit code: 0 all data right; 1 set-up failed; 2 wrong data; 3 a completion with an error (all of them are counted and
 * printed by status); 4 no progress for the time of -T. Lines on stdout are made for scripts: "event TYPE T TEXT"
 * (asynchronous events), "first-error STATUS T TEXT", "status STATUS COUNT TEXT", "outstanding N flushed N T" (receive
 * requests), "late N" (receive requests that ended after the first error, and were not flushed), "incomplete N" (send
 * requests that never completed), "ok N operations N bytes"; types and statuses are the numbers of the verbs API, T is
 * CLOCK_MONOTONIC in ms.
 *
 *   operation.c   what operation number k is, and which bytes belong to it
 *   setup.c       memory and objects         transport.c  what differs between transports
 *   exchange.c    the two ends find each other
 *   traffic.c     posting and completions    main.c       the loop, the end, the command line */
#ifndef PUMICE_TESTS_VERBS_ENDURANCE_ENDURANCE_H
#define PUMICE_TESTS_VERBS_ENDURANCE_ENDURANCE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_FAA, OP_CAS, OP_BIND, OP_MAX };
/* OP_BIND binds the client's window of type 2, or invalidates it if it is bound. */
extern const char *const op_name[OP_MAX];

enum transport {
    TRANSPORT_RC,
    TRANSPORT_SRQ, /* RC with receive requests from a shared receive queue */
    TRANSPORT_XRC,
    TRANSPORT_UC, /* no READ, no atomics, and nothing may be lost */
    TRANSPORT_MAX
};
extern const char *const transport_name[TRANSPORT_MAX];

enum { ATOMIC_WORDS = 8, MAX_SGE = 3, CREDIT_BYTES = 16, EXIT_DATA = 2, EXIT_STATUS = 3, EXIT_STALL = 4 };
/* The wr_id of an operation is its number. A receive request has its index and this bit. All credits have the same. */
#define RECV_WR (UINT64_C(1) << 63)
#define CREDIT_WR (UINT64_C(1) << 62)

/* The client's parameters apply to both ends. */
struct params {
    uint64_t seed;
    uint64_t count; /* operations; UINT64_MAX: until the client's time is over */
    uint32_t min_size, max_size;
    uint32_t depth; /* the most operations between issue and check */
    uint32_t ops; /* bit mask of enum op */
    uint32_t mtu;
    uint32_t transport; /* enum transport */
};

/* The data exchanged over TCP. Both ends have the same architecture. */
struct peer {
    struct params params;
    uint32_t qpn; /* of the QP that receives */
    uint32_t sender; /* of the QP that sends; with XRC it is another QP */
    uint32_t srqn; /* XRC */
    uint32_t psn, rkey, pad;
    uint64_t addr;
    union ibv_gid gid;
};

extern struct options {
    const char *host, *dev; /* host: NULL on the server */
    int port, gid_index, timeout, retries, stall_s, seconds, signal_every;
    bool events;
} opt;
extern struct params par;

/* One registered block: `depth` slots for sent or received data, `depth` slots as target of WRITEs (server) or READs
 * (client), the source of READs, the atomics, and the credits. */
extern struct state {
    int tcp;
    struct ibv_context *ctx;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp; /* sends */
    struct ibv_qp *target; /* XRC: the QP that receives; else NULL */
    struct ibv_srq *srq; /* NULL: receive requests go to qp */
    struct ibv_xrcd *xrcd;
    struct ibv_mr *mr;
    struct ibv_mw *mw; /* client: the window that is bound and invalidated; NULL if no operation does it */
    bool bound; /* by the requests posted so far */
    uint8_t *block, *scratch;
    uint64_t msg_at, target_at, source_at, atomic_at, credit_at, size; /* offsets in the block */
    uint32_t slot_size, inline_max;
    struct peer local, remote;
    uint64_t posted, done; /* client: operations posted and completed */
    uint64_t checked; /* server: operations checked; client: operations that the server has granted */
    uint64_t granted; /* server: the last credit sent */
    uint64_t credits_posted, credits_done;
    uint64_t atomic[ATOMIC_WORDS]; /* client: the current values of the server's words */
    uint64_t expect[4096]; /* client: the expected result of an atomic, by operation modulo depth */
    uint64_t bytes;
    uint64_t status[64]; /* completions by status */
    uint64_t last_progress;
    bool failed;
    uint64_t recvs_flushed;
    uint64_t recvs_late; /* ended after the first error, and were not flushed; nobody posted them again */
    uint64_t ended, credits_ended; /* operations and credits that have completed, with whatever status */
    uint64_t before_credit; /* operations posted before the newest credit */
} st;

uint64_t now_ms(void);
/* Prints what failed, with errno, and exits with 1. */
void die(const char *what);

/* --- operation.c ------------------------------------------------------------------------------- */

struct operation {
    enum op op;
    uint32_t size;
    uint32_t word; /* atomics */
    uint64_t source; /* READ: offset in the source */
    uint32_t cut; /* SGEs: the length of the first one */
    bool inlined, solicited, fence;
};

uint64_t mix(uint64_t x);
struct operation operation_get(uint64_t k);
bool is_sync(uint64_t k);
bool is_received(enum op op);
/* Fills p with the bytes that belong to (stream, offset). A reader may start at any multiple of 8. */
void pattern(uint8_t *p, uint32_t size, uint64_t stream, uint64_t offset);
/* Compares the data of operation k. Exits with EXIT_DATA if they are wrong. */
void check(uint64_t k, const struct operation *o, const uint8_t *data, uint64_t stream, uint64_t offset);

/* --- setup.c, transport.c, exchange.c ---------------------------------------------------------- */

void block_make(void);
void objects_create(void);
void objects_destroy(void);
/* Create the transport's QPs in INIT, connect them, and destroy them. */
void transport_create(int access);
void transport_connect(void);
void transport_destroy(void);
/* Makes a TCP connection over which both ends exchange their parameters. Creates the objects in between. */
void exchange(void);
void tcp_write(const void *p, size_t n);
void tcp_read(void *p, size_t n);
/* The peer has died. Checks that newly posted requests complete with an error. */
bool peer_gone(void);

/* --- traffic.c --------------------------------------------------------------------------------- */

void post_recv(uint64_t index);
/* Client: issues operation k. */
void issue(uint64_t k);
/* Server: tells the client how far it has checked. Both ends also use it as a probe when the peer's TCP connection
 * has ended: an end with nothing outstanding would never learn from its QP that the peer is dead. */
void grant(void);
/* Handles all waiting completions and returns their number. */
int poll_all(void);
/* Waits on the completion channel, for 100 ms at most, so that time limits are noticed. */
void wait_event(void);

#endif
