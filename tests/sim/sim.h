// SPDX-License-Identifier: BSD-2-Clause
/* The deterministic simulator of the protocol engine: several engines, a faulty network, virtual time, and an oracle that knows
 * what must come out. One exchange = one struct sim, drawn from one seed (scenario.c) or scripted by a row of a table (cases.c).
 *
 *     scenario.c / cases.c   what is to happen             -> struct scenario in struct sim
 *     ops.c                  work requests from chance
 *     windows.c              … of ends that lend each other memory
 *     build.c                memory, engines, keys, QPs
 *     run.c                  virtual time
 *     host.c, mem.c          the owner of an engine, as engine.h asks it to be
 *     user.c                 the users of QPs: post, move, leave
 *     pool.c                 SRQs, of several QPs or XRC: their users, and a model of who gets what
 *     dgram.c, dgram_check.c UC and UD: what they do, what must hold (dgram.h)
 *     rogue.c                packets from those who mean no good
 *     net.c                  what happens to packets
 *     observer.c             judges every packet
 *     check.c                judges every completion and every step
 *     oracle.c               what memory must look like
 *     dump.c                 what a failure leaves behind
 *     goodput.c              apart from all that: how fast a lossy connection is */
#ifndef PUMICE_SIM_H
#define PUMICE_SIM_H

#include "daemon/core/engine.h"
#include "tests/sim/datagrams/dgram.h"
#include "tests/sim/network/net.h"
#include "wire/icrc.h"

#include <setjmp.h>
#include <stdio.h>

#define MAX_HOSTS NET_HOSTS
#define MAX_ENDS 8
#define MAX_OPS 72 /* work requests of one QP and queue */
#define MAX_RCV 288 /* receive requests of one QP or SRQ */
#define MAX_POOLS 8
#define MAX_SEGS 4
#define MAX_CELLS 4
#define MAX_WINDOWS 3 /* memory windows of one end */
#define US 1000u /* ns */
#define MS 1000000u
#define S_NS 1000000000u

struct sim;
struct end;
struct pool;

/* --- memory --------------------------------------------------------------------------------------------------------- */

/* Each end has an arena of its own: regions with canaries between them. Each region has one purpose, so that every
 * upcall can be judged by where it points. */
enum region_id {
    REG_SRC, /* what local requests send; never written */
    REG_DST, /* where READs and atomics bring their results */
    REG_RCV, /* receive buffers */
    REG_TGT, /* what the peer WRITEs to (and READs back) */
    REG_RD, /* what the peer READs; never written */
    REG_COUNT,
    REG_CELLS = REG_COUNT, /* the host's atomics, which all its ends share */
};
struct shape_keys { /* of a region whose key is that of a window, see shapes.c */
    uint32_t base, inner; /* keys of the region itself, and of the window between */
    void *in, *out; /* the engine's memory for the windows; NULL: the region's key is its own */
};
struct region {
    struct shape_keys shape;
    uint32_t size;
    uint32_t off; /* in the arena */
    uint64_t iova; /* its first byte in work requests and packets */
    uint32_t key;
    uint32_t key2; /* a second registration of the same bytes */
};
struct space { /* an address space */
    uint32_t id;
    uint64_t va;
    uint32_t len;
    uint8_t *mem;
    uint8_t *want; /* the oracle's copy */
};

/* --- what is to be done --------------------------------------------------------------------------------------------- */

struct seg {
    uint8_t region; /* enum region_id */
    uint32_t off; /* in the region */
    uint32_t len;
    bool second; /* use key2 */
};

/* A fault planted in one request; expect.c's table says what must come of each. */
enum plant {
    PLANT_NONE,
    PLANT_BAD_RKEY, /* no such key */
    PLANT_OLD_RKEY, /* deregistered */
    PLANT_RANGE, /* reaches one byte and more beyond its region */
    PLANT_WRAP, /* address + length wraps */
    PLANT_PD, /* key of another protection domain */
    PLANT_MR_ACCESS, /* the region grants not what is asked */
    PLANT_QP_ACCESS, /* the QP grants not what is asked */
    PLANT_MISALIGNED, /* atomic */
    PLANT_NO_RD, /* responder's max_dest_rd_atomic is 0 */
    PLANT_RECV_SHORT, /* message is longer than its receive buffer */
    PLANT_RECV_LKEY, /* receive buffer has a bad key */
    PLANT_LKEY, /* bad local key */
    PLANT_LRANGE, /* beyond the local region */
    PLANT_LACCESS, /* READ into memory without LOCAL_WRITE */
    PLANT_RNR, /* the receive never comes, rnr_retry is finite */
    PLANT_READ_FAULT, /* what a READ asks for is gone from the responder's memory */
    PLANT_LREAD_FAULT, /* what is to be sent is gone from the requester's */
    PLANT_WRITE_FAULT, /* the responder's memory can't be written */
    PLANT_XRC_DOMAIN, /* names an SRQ that is not of the target's domain */
    PLANT_XRC_NUMBER, /* names no SRQ */
    PLANT_WINDOW, /* a window that is not bound, or does not reach or allow so much */
    PLANT_BIND, /* a bind that is against the rules */
    PLANT_LOCAL_INV, /* likewise an invalidation */
    PLANT_INVALIDATE, /* SEND_WITH_INV of a key that is no memory window's */
    PLANT_DEREG, /* the remote key is deregistered meanwhile */
    PLANT_REREG, /* the remote key loses its rights meanwhile */
    PLANT_LDEREG, /* the local key is deregistered meanwhile */
    PLANT_COUNT,
};

struct op {
    uint8_t opcode; /* enum send_op */
    uint8_t flags; /* enum send_flags */
    uint8_t plant; /* enum plant */
    uint8_t nseg;
    uint8_t rregion; /* enum region_id at the peer */
    uint32_t len;
    uint32_t roff; /* in rregion */
    struct seg seg[MAX_SEGS];
    uint8_t imm[4];
    uint64_t compare_add, swap; /* one of them is unique to this request; ATOMIC WRITE: compare_add is what it writes */
    uint32_t flen; /* FLUSH: bytes from roff on */
    bool whole; /* FLUSH: of the whole region instead */
    uint64_t wr_id;
    uint64_t at; /* not posted before */
    int after; /* nor before the peer's request of this number has come; -1: none */
    int window; /* BIND_MW, LOCAL_INV: of its own end; else of the peer, by whose key it reaches memory; -1: none */
    uint8_t tag, old_tag; /* of the window's rkey, BIND_MW: the new one and the one before */
    uint32_t woff, wlen, waccess; /* BIND_MW: what it opens of rregion; wlen 0: unbinds */
    int bind; /* the peer's request that has bound the window */
    struct pool *pool; /* the peer takes its receives from there; NULL: from its own queue */
    int recv; /* which of recv_end()'s receives it takes; -1: none, or, of a pool, none yet */
    bool returned; /* it was put back, perhaps with some bytes of the message in it */
    uint8_t *data; /* the message; a READ's is what must arrive */

    /* how it is going */
    bool posted, retired, executed;
    uint8_t status; /* of its completion */
    uint32_t rel, npsn; /* its first PSN, counted from the QP's first, and how many */
    uint8_t *ends; /* READ, one per packet: one of its requests asks for responses up to this packet */
    uint32_t answered; /* READ, atomic: responses seen at least once */
    uint64_t old; /* atomic: what the responder found */
    uint64_t first_sent; /* ns */
};

struct rcv {
    uint8_t nseg;
    uint8_t plant;
    bool withheld; /* never posted */
    uint32_t cap; /* bytes of all segments */
    struct seg seg[MAX_SEGS];
    uint64_t wr_id;
    uint64_t at;
    bool done;
    uint8_t status;
};

/* --- memory windows ------------------------------------------------------------------------------------------------- */

struct window {
    uint8_t type; /* enum mw_type */
    uint32_t key; /* its index, with the tag of the first */
    uint8_t tag; /* while the work is drawn: of its last bind */
    int after; /* likewise: the user's message by which it came back; -1: none */
    bool bound; /* likewise: after all that was drawn */
    bool used_up; /* it stays bound for ever */
};

/* --- SRQs ----------------------------------------------------------------------------------------------------------- */

/* Its receives, their buffers and their protection domain are those of an end of the same host that has no receive
 * queue of its own, its home. Which of them a message takes is known when it takes it: the oldest. */
struct pool {
    struct sim *sim;
    int index, host;
    struct end *home;
    uint32_t xrcd; /* 0: a basic one */
    uint32_t max_wr;
    bool refill; /* receives wait in a ring until the engine asks for them */
    bool resizes;
    bool first; /* at the end it goes before its QPs do */
    bool plenty; /* no message will ever find it empty */
    bool rogue; /* only rogue ends take from it: who takes what is not known, but all that nobody took must be there */
    int done; /* if so: next receive that is to complete */

    struct srq *srq;
    void *mem;
    uint32_t number;
    int next; /* receives before it were taken */
    int back[MAX_ENDS]; /* of them, those that were put back, first to be taken last */
    int nback;
    uint32_t limit; /* armed; 0: not */
    int rearms; /* how often it will be armed again */
    int due; /* limit events that must come */
};

/* --- one end of a connection ---------------------------------------------------------------------------------------- */

enum end_step { /* what the user of an end does at a certain time */
                STEP_RTR,
                STEP_RTS,
                STEP_KILL, /* to ERR */
                STEP_RESET, /* to RESET */
                STEP_SQD,
                STEP_RESUME, /* SQD to RTS */
                STEP_CLOSE, /* to ERR or RESET, at the end of the exchange */
                STEP_KEY, /* the key of the peer's planted request goes, or its own one */
};

struct end {
    struct sim *sim;
    int index, host;
    struct end *peer; /* may be itself */
    uint8_t type; /* enum qp_type */
    struct pool *pool; /* of RC: its SRQ; NULL: it has a receive queue */
    uint32_t xrcd; /* XRC target */

    /* attributes */
    struct qp_caps caps;
    struct qp_attr attr;
    bool sig_all;
    bool refill; /* receives wait in a ring until the engine asks for them */
    bool leaves; /* destroys its QP as soon as it has sent and received all, whether or not its last ACK has arrived */
    bool resets; /* its user moves it to RESET when some message is half there */
    bool rogue; /* its peer sends packets that are out of its mind: nothing is known about the results */
    uint64_t rtr_at, rts_at; /* ns */
    uint32_t sq_psn; /* its first PSN */
    uint32_t mtu; /* bytes */
    uint32_t pd;
    bool v6;

    /* work */
    struct op op[MAX_OPS];
    struct rcv rcv[MAX_RCV];
    int nops, nrcv;
    int nin; /* messages of its peer that take a receive */
    int plant; /* index of the request with a fault planted; -1: none */

    /* memory */
    struct space space;
    struct region reg[REG_COUNT];
    struct region cells; /* the host's, by this end's key */
    uint32_t key_old, key_other_pd, key_no_access;
    uint32_t key_fleeting; /* what STEP_KEY takes away */
    bool key_gone, key_fleeting_free; /* it has; and deregistered it */
    bool has_windows;
    struct window window[MAX_WINDOWS];
    uint32_t key_beneath[REG_COUNT]; /* what windows are bound to */
    uint32_t room[REG_COUNT]; /* while the work is drawn: bytes given out */
    uint8_t *data; /* of all op[].data */
    uint8_t *ends; /* of all op[].ends */

    /* run */
    void *qpmem;
    struct qp *qp;
    uint32_t qpn;
    int posted; /* requests handed to the engine */
    int offered; /* receives that the user has posted */
    int rposted; /* of them, handed to the engine */
    int ready; /* receives there when the last packets were taken in */
    int sdone, rdone; /* next request and receive that is to complete */
    int rlast; /* with an SRQ: the peer's request whose receive completed last, counted from 1 */
    uint32_t rel_end; /* PSNs given to posted requests */
    uint32_t rel_new; /* next PSN never sent */
    uint32_t rel_resp; /* next PSN in the present run of READ responses; UINT32_MAX: none */
    uint32_t una; /* of the last step */
    uint64_t una_changed; /* when, ns */
    bool rnr_waits; /* a receiver was not ready, and nothing was sent since */
    uint32_t nak_sent; /* syndrome of the last fatal NAK, 0: none */
    bool failed; /* some completion had an error: */
    bool sfailed, rfailed; /* a send's, a receive's */
    bool killed; /* the user moved it to ERR */
    bool closed; /* RESET or destroyed */
    bool left; /* destroyed, when all was done: */
    uint32_t left_rel; /* PSNs that it had received then */
    bool sqd_pending; /* to SQD moved, drained event not seen */
    uint32_t events[32]; /* by type */
    uint64_t failed_at;
};

/* --- hosts ---------------------------------------------------------------------------------------------------------- */

struct deferred { /* a memory write that waits for the end of the batch */
    struct mem_segment dst[ENGINE_MAX_SGE];
    unsigned ndst;
    uint32_t qpn;
    const uint8_t *src;
    size_t len;
};
struct host {
    struct sim *sim;
    int index;
    struct engine_config cfg;
    void *mem;
    struct engine *e;
    struct space cells;
    struct wirepkt **inbox;
    size_t ninbox, cap_inbox;
    struct deferred *deferred;
    size_t ndeferred, cap_deferred;
    uint8_t *txbuf;
    size_t txcap;
    struct gso_run row;
    bool wake_pending, poll_pending;
    uint64_t stuck; /* steps without time going on */
    struct icrc_ctx icrc[MAX_HOSTS][2]; /* of what this host sends, by destination and version */
};

/* --- one exchange --------------------------------------------------------------------------------------------------- */

struct scenario {
    uint64_t seed;
    const char *name;
    int nhosts, nends;
    uint32_t mtu_code; /* enum ibv_mtu, all connections */
    struct net_faults net;
    bool defer; /* memory writes wait for the end of the batch */
    bool ip_ids; /* packets have various IP IDs, which the receiver must guess */
    bool may_exhaust; /* so much is lost that retries may run out */
    bool lossless; /* nothing is lost: each fault has exactly one outcome */
    uint64_t wake_ns; /* a host takes in packets at most this long after they came */
    uint64_t poll_ns; /* users take completions this often; 0: at once */
    uint32_t poll_max; /* and this many */
    uint64_t limit_ns; /* it must be over by then */
    uint32_t post_chunk; /* requests posted in a row */
    bool big; /* few and long messages */
    uint32_t dgrams; /* per mille of exchanges with unreliable QPs beside the others */
    uint32_t rogues; /* per mille of packets are also sent, spoilt, by the peer of a rogue end */
    uint32_t hold_acks; /* per mille of batches in which plain ACKs stay back */
    uint32_t strangers; /* per mille of packets are also sent, altered, by somebody who is not the QP's peer */
    bool direct_loop; /* packets within a host don't pass the network */
    bool kill_peer; /* the user moves a QP to ERR soon after its peer has failed */
};

/* What a named case asserts beyond the invariants. */
struct totals {
    uint64_t done_at; /* ns, when the last request completed */
    uint32_t packets;
    struct engine_counters counters; /* of all engines */
};

struct sim {
    struct scenario sc;
    struct prng rng; /* of the exchange's own decisions, not the network's */
    struct host host[MAX_HOSTS];
    struct end end[MAX_ENDS];
    struct pool pool[MAX_POOLS];
    int npools;
    struct dgram dg;
    struct evq events;
    struct net net;
    uint64_t now;
    uint64_t steps;
    uint64_t trace; /* hash of everything that was sent and completed */
    struct totals totals;
    bool closing;

    /* failure */
    jmp_buf fail_to;
    char failure[512];
    struct capture *capture; /* NULL unless a failed exchange is run again */
};

/* --- the parts ------------------------------------------------------------------------------------------------------ */

/* Ends the exchange with a message. */
_Noreturn void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define sim_require(s, cond, ...)                                                                                      \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            sim_fail((s), __VA_ARGS__);                                                                                \
        }                                                                                                              \
    } while (0)

/* scenario.c: all of s->sc and the ends' attributes, from s->sc.seed; then ops.c's work. */
void scenario_draw(struct sim *s);
void scenario_defaults(struct sim *s, uint64_t seed); /* a calm one of two hosts and one connection, for scripts */
/* ops.c */
void ops_draw(struct end *e, int nops, bool small, enum plant plant); /* sends and writes only, if the peer leaves */
struct op *ops_add(struct end *e, uint8_t opcode, uint32_t len, uint8_t flags); /* one, buffers and receive included */
void ops_plant(struct end *e, int index, enum plant plant);
bool op_takes_recv(uint8_t opcode);
uint32_t op_packets(const struct end *e, const struct op *o);
bool op_is_atomic(uint8_t opcode);
bool op_is_read_or_atomic(uint8_t opcode);
bool op_is_write(uint8_t opcode); /* any that writes to REG_TGT */
bool op_is_answered(uint8_t opcode); /* by a response of its own */
void ops_draw_recv(struct end *home, uint32_t cap); /* adds a receive of that size */
bool op_is_local(uint8_t opcode);
/* windows.c */
void windows_draw(struct end *a, struct end *b, bool refusal); /* work of both; refusal: and one that must fail */
void windows_build(struct end *e);
void window_wr(const struct end *e, const struct op *o, struct send_wr *wr); /* keys and addresses of a request */
void windows_destroy(struct end *e);
/* pool.c */
void pools_draw(struct sim *s, bool xrc); /* which ends are of XRC, if any may be, and which have an SRQ */
void pool_script(struct sim *s, bool xrc); /* one for end 1, and all as simple as can be */
void pools_draw_recvs(struct sim *s, bool limits, bool ample); /* when all requests are known */
struct pool *pool_draw(struct end *e); /* for a request of this end */
struct pool *pool_alien(struct sim *s, const struct end *target); /* one that its peer must not name; NULL: none */
void pools_build(struct sim *s, int index);
void pools_free(struct sim *s);
void pools_post(struct host *h); /* what is due */
void pool_fill(struct pool *p); /* hands to the engine what fits */
void pool_rx(struct host *h, const struct pkt *k, const struct rx_meta *meta); /* engine_rx, watched */
void pool_left(struct end *e); /* its QP is gone: what it had taken is put back */
struct pool *pool_of(struct host *h, const void *owner); /* must be one of the host */
void pool_event(struct pool *p, uint8_t type);
void pools_check_step(struct sim *s);
void pools_check_end(struct sim *s); /* after all QPs were closed */
void pools_destroy(struct sim *s, bool first);
/* build.c */
void build(struct sim *s);
void build_connect(struct end *e, enum end_step step);
struct qp_init build_init(struct end *e); /* how its QP is created */
void build_free(struct sim *s);
/* run.c: 0, or -1 with s->failure set; frees everything but s. */
int sim_run(struct sim *s);
/* host.c */
void host_step(struct host *h);
void host_packet(struct host *h, struct wirepkt *p);
void host_poll(struct host *h);
/* user.c */
int user_post(struct host *h); /* what is due; returns how many sends */
void user_post_recvs(struct end *e); /* hands to the engine what fits */
int user_leave(struct host *h); /* destroys QPs of those who leave and are done; returns how many */
void user_step(struct end *e, enum end_step step);
bool user_idle(const struct end *e); /* nothing is expected from it any more */
/* rogue.c: sends packets that resemble the real one. */
void rogue_stranger(struct host *h,
                    const struct wirepkt *real); /* from an address that is not the peer's: must have no effect */
void rogue_peer(struct host *h, const struct wirepkt *real); /* from the peer's address */
/* mem.c */
extern const struct mem_ops host_mem_ops;
void mem_flush(struct host *h);
uint8_t *mem_at(struct end *e, const struct seg *g);
uint64_t seg_addr(const struct end *e, const struct seg *g);
uint32_t seg_key(const struct end *e, const struct seg *g);
void mem_gather(struct end *e, const struct seg *g, unsigned n, uint8_t *dst);
/* observer.c: judges a packet that h sends. */
void observe_tx(struct host *h, const struct tx_pkt *t, const uint8_t *bytes, const struct pkt *p);
/* check.c */
void check_completion(struct host *h, const struct completion *c);
void check_event(struct host *h, const struct event *ev);
void check_step(struct sim *s);
void check_end(struct sim *s); /* when all is quiet */
/* shapes.c: makes a window over layouts the region's key, from then on; and takes it away again */
void shape_make(struct end *e, struct region *g, uint32_t access);
void shape_drop(struct end *e, struct region *g);
void shape_free(struct region *g);
/* expect.c: what may become of a request with a fault planted */
struct expectation {
    uint8_t status; /* requester's */
    uint8_t recv_status; /* responder's receive completion; WC_SUCCESS: none */
    uint8_t event; /* responder's, 0: none */
    uint8_t syndrome; /* of the NAK, 0: none */
    bool local; /* nothing is sent */
    bool partly; /* some of the message may have been placed */
};
extern const struct expectation expectations[PLANT_COUNT];
uint8_t expected_event(const struct op *o, bool deferred); /* responder's, 0: none */
/* True if the end's planted fault shows only when requests behind it may have been carried out already. */
bool expect_late(const struct end *e);
bool expect_send(const struct end *e, int index, uint8_t status); /* may the first failure be this one? */
bool expect_recv(const struct end *e, int index, uint8_t status);
/* oracle.c */
void oracle_model(struct sim *s); /* fills op[].data */
void oracle_recv(struct end *e, const struct op *o); /* after a success: the peer's message is in the buffer */
void oracle_send(struct end *e, int index); /* after a success: results are here, effects are there */
void oracle_final(struct sim *s); /* every byte of every arena */
/* goodput.c: prints how fast a connection is at several rates of loss. */
void goodput_report(void);
/* dump.c: what is seen of an exchange that is run again because it failed. No-ops unless s->capture is set. */
struct capture *capture_start(const char *path, bool verbose); /* NULL: can't write there */
void capture_packet(struct sim *s, const struct wirepkt *p, const char *what);
void capture_note(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void capture_only_peers(
    struct capture *c); /* to be kept: without strangers' packets, and nothing is printed in the end */
void capture_end(struct capture *c); /* prints the end of the log */

static inline bool has_rq(const struct end *e)
{
    return e->type == QPT_RC && !e->pool;
}
/* Whose receives a request of e takes, and whose memory it addresses: XRC goes by the SRQ's protection domain. */
static inline struct end *recv_end(const struct end *e, const struct op *o)
{
    return o->pool ? o->pool->home : e->peer;
}
static inline struct end *mem_end(const struct end *e, const struct op *o)
{
    return o->pool && o->pool->xrcd ? o->pool->home : e->peer;
}

static inline uint32_t psn_rel(const struct end *requester, uint32_t psn)
{
    return (psn - requester->sq_psn) & PSN_MASK;
}

#endif
