// SPDX-License-Identifier: BSD-2-Clause
/* The deterministic simulator of the protocol engine: several engines, a faulty network, virtual time, and an oracle
 * that knows the expected results. One exchange is one struct sim. It is drawn from one seed (scenario.c) or scripted
 * by an entry of a table (cases.c).
 *
 *     scenario.c / cases.c   the plan of the exchange      -> struct scenario in struct sim
 *     ops.c                  random work requests
 *     windows.c              … of ends that lend each other memory
 *     build.c                memory, engines, keys, QPs
 *     run.c                  virtual time
 *     host.c, mem.c          the owner of an engine, as engine.h requires it
 *     user.c                 the users of QPs: they post, move QPs between states, and leave
 *     pool.c                 SRQs, of several QPs or XRC: their users, and a model of their receives
 *     dgram.c, dgram_check.c UC and UD: their work, and their invariants (dgram.h)
 *     rogue.c                malicious packets
 *     net.c                  the network's faults
 *     observer.c             checks every packet
 *     check.c                checks every completion and every step
 *     oracle.c               the expected content of memory
 *     counters.c             the expected values of completion counters
 *     dump.c                 the output after a failure
 *     slow.c                 separate exchanges: connections over slow paths
 *     goodput.c              a separate measurement: the speed of a lossy connection */
#ifndef PUMICE_TESTS_SIM_SIM_H
#define PUMICE_TESTS_SIM_SIM_H

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
#define READ_COPIES (1u << 16) /* read_copy_bytes with room for all READs of an exchange */
#define READ_EXACT 64 /* bytes of a READ whose repetition returns the same data */
#define MAX_SEGS 4
#define MAX_CELLS 4
#define MAX_WINDOWS 3 /* memory windows of one end */
#define US 1000u /* ns */
#define MS 1000000u
#define S_NS 1000000000u

struct sim;
struct end;
struct pool;

/* --- memory ------------------------------------------------------------------------------------ */

/* Each end has its own arena: regions with canaries between them. Each region has one purpose. So every upcall can be
 * checked by the region that it addresses. */
enum region_id {
    REG_SRC, /* data that local requests send; never written */
    REG_DST, /* results of READs and atomics */
    REG_RCV, /* receive buffers */
    REG_TGT, /* the peer WRITEs to it (and READs it back) */
    REG_RD, /* the peer READs it; never written */
    REG_COUNT,
    REG_CELLS = REG_COUNT, /* for atomics; all ends of the host share it */
};
/* Keys of a region whose key is that of a window, see shapes.c. */
struct shape_keys {
    uint32_t base, inner; /* keys of the region itself, and of the window in between */
    /* The engine's memory for the windows. NULL: the region has its own key. */
    void *in, *out;
};
struct region {
    struct shape_keys shape;
    uint32_t size;
    uint32_t off; /* in the arena */
    uint64_t iova; /* address of its first byte in work requests and packets */
    uint32_t key;
    uint32_t key2; /* a second registration of the same bytes */
};
/* An address space. */
struct space {
    uint32_t id;
    uint64_t va;
    uint32_t len;
    uint8_t *mem;
    uint8_t *want; /* the oracle's copy */
};

/* --- work -------------------------------------------------------------------------------------- */

struct seg {
    uint8_t region; /* enum region_id */
    uint32_t off; /* in the region */
    uint32_t len;
    bool second; /* use key2 */
};

/* A fault planted in one request. The table in expect.c has the expected result of each. */
enum plant {
    PLANT_NONE,
    PLANT_BAD_RKEY, /* no such key */
    PLANT_OLD_RKEY, /* deregistered */
    PLANT_RANGE, /* ends one byte or more beyond its region */
    PLANT_WRAP, /* address + length wraps */
    PLANT_PD, /* key of another protection domain */
    PLANT_MR_ACCESS, /* the region does not grant the requested access */
    PLANT_QP_ACCESS, /* the QP does not grant the requested access */
    PLANT_MISALIGNED, /* atomic */
    PLANT_NO_RD, /* responder's max_dest_rd_atomic is 0 */
    PLANT_RECV_SHORT, /* the message is longer than its receive buffer */
    PLANT_RECV_LKEY, /* the receive buffer has a bad key */
    PLANT_LKEY, /* bad local key */
    PLANT_LRANGE, /* beyond the local region */
    PLANT_LACCESS, /* READ into memory without LOCAL_WRITE */
    PLANT_RNR, /* the receive is never posted, and rnr_retry is finite */
    PLANT_READ_FAULT, /* the READ's data is gone from the responder's memory */
    PLANT_LREAD_FAULT, /* the data to send is gone from the requester's memory */
    PLANT_WRITE_FAULT, /* the responder's memory can't be written */
    PLANT_XRC_DOMAIN, /* names an SRQ outside the target's domain */
    PLANT_XRC_NUMBER, /* names no SRQ */
    PLANT_WINDOW, /* a window that is not bound, is too short, or does not grant the access */
    PLANT_BIND, /* a bind that breaks a rule */
    PLANT_LOCAL_INV, /* an invalidation that breaks a rule */
    PLANT_INVALIDATE, /* SEND_WITH_INV of a key that is not a memory window's */
    PLANT_DEREG, /* the remote key is deregistered before the request arrives */
    PLANT_REREG, /* the remote key loses its rights before the request arrives */
    PLANT_LDEREG, /* the local key is deregistered before the request is sent */
    PLANT_COUNT,
};

enum read_ends {
    ENDS_FIRST = 1, /* one of the READ's requests asks for responses up to this packet */
    ENDS_AGAIN = 2, /* a request that was sent again does */
};
struct op {
    uint8_t opcode; /* enum send_op */
    uint8_t flags; /* enum send_flags */
    uint8_t plant; /* enum plant */
    uint8_t nseg;
    uint8_t rregion; /* enum region_id at the peer */
    uint32_t len;
    uint32_t roff; /* offset in rregion */
    struct seg seg[MAX_SEGS];
    uint8_t imm[4];
    /* One of them is unique to this request. ATOMIC WRITE: compare_add is the value that it writes. */
    uint64_t compare_add, swap;
    uint32_t flen; /* FLUSH: bytes from roff on */
    bool whole; /* FLUSH: the whole region instead */
    uint64_t wr_id;
    uint64_t at; /* earliest time to post it, ns */
    int after; /* the peer's request that must arrive before it is posted; -1: none */
    /* BIND_MW, LOCAL_INV: a window of its own end. Other requests: the peer's window whose key they use. -1: none. */
    int window;
    uint8_t tag, old_tag; /* of the window's rkey; BIND_MW: the new tag and the one before */
    uint32_t woff, wlen, waccess; /* BIND_MW: the part of rregion that it opens; wlen 0: unbinds */
    int bind; /* the peer's request that bound the window */
    struct pool *pool; /* the pool that the peer takes the receive from; NULL: the peer's own queue */
    /* Index of the receive that it takes, in recv_end()'s receives. -1: none or, for a pool, not known yet. */
    int recv;
    bool returned; /* the receive was put back, perhaps with some bytes of the message in it */
    uint8_t *data; /* the message; for a READ, the expected data */

    /* progress */
    bool posted, retired, executed;
    uint8_t status; /* of the completion */
    uint32_t rel, npsn; /* its first PSN, relative to the QP's first, and the number of its PSNs */
    uint8_t *ends; /* READ, one for each packet: enum read_ends */
    uint32_t answered; /* READ, atomic: responses seen at least once */
    uint64_t old; /* atomic: the value that the responder found */
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

/* --- memory windows ---------------------------------------------------------------------------- */

struct window {
    uint8_t type; /* enum mw_type */
    uint32_t key; /* its index, with the tag of the first */
    uint8_t tag; /* while the work is drawn: the tag of its last bind */
    int after; /* while the work is drawn: the user's message that returned it; -1: none */
    bool bound; /* while the work is drawn: bound after all drawn requests */
    bool used_up; /* it stays bound forever */
};

/* --- SRQs -------------------------------------------------------------------------------------- */

/* The receives, buffers and protection domain of a pool belong to an end of the same host that has no receive queue
 * of its own: its home. A message takes the oldest receive. So the receive is known only when the message takes it. */
struct pool {
    struct sim *sim;
    int index, host;
    struct end *home;
    uint32_t xrcd; /* 0: a basic SRQ */
    uint32_t max_wr;
    bool refill; /* receives wait in a ring until the engine asks for them */
    bool resizes;
    bool first; /* destroyed before its QPs at the end of the exchange */
    bool plenty; /* no message will ever find it empty */
    /* Only rogue ends take from it. It is not known which end takes which receive, but all receives that were not
     * taken must be left. */
    bool rogue;
    int done; /* of a rogue pool: the next receive to complete */

    struct srq *srq;
    void *mem;
    uint32_t number;
    int next; /* receives before it were taken */
    int back[MAX_ENDS]; /* receives that were put back; the first one is taken last */
    int nback;
    uint32_t limit; /* armed limit; 0: not armed */
    int rearms; /* how often it will be armed again */
    int due; /* number of limit events that must come */
};

/* --- completion counters ----------------------------------------------------------------------- */

struct counted {
    struct comp_cntr cntr;
    uint64_t done, failed; /* as last taken from the engine */
    uint64_t want_done, want_failed; /* by the completions so far */
};

/* --- one end of a connection ------------------------------------------------------------------- */

/* An action of the user of an end at a certain time. */
enum end_step {
    STEP_RTR,
    STEP_RTS,
    STEP_KILL, /* to ERR */
    STEP_RESET, /* to RESET */
    STEP_SQD,
    STEP_RESUME, /* SQD to RTS */
    STEP_CLOSE, /* to ERR or RESET, at the end of the exchange */
    STEP_KEY, /* removes the key of the peer's planted request, or its own key */
};

struct end {
    struct sim *sim;
    int index, host;
    struct end *peer; /* may be itself */
    uint8_t type; /* enum qp_type */
    struct pool *pool; /* RC: its SRQ; NULL: it has a receive queue */
    uint32_t xrcd; /* of an XRC target */

    /* attributes */
    struct qp_caps caps;
    struct qp_attr attr;
    bool sig_all;
    bool refill; /* receives wait in a ring until the engine asks for them */
    /* Destroys its QP as soon as it has sent and received everything, whether or not its last ACK has arrived. */
    bool leaves, disconnects; /* disconnects: it moves the QP to ERR before */
    bool resets; /* its user resets it when a part of a message has arrived */
    bool rogue; /* its peer sends malicious packets, so the results are not known */
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
    int plant; /* index of the request with a planted fault; -1: none */

    /* memory */
    struct space space;
    struct region reg[REG_COUNT];
    struct region cells; /* the cells of the host, under this end's key */
    uint32_t key_old, key_other_pd, key_no_access;
    uint32_t key_fleeting; /* the key that STEP_KEY removes */
    bool key_gone, key_fleeting_free; /* STEP_KEY removed the key; STEP_KEY deregistered it */
    bool has_windows;
    struct window window[MAX_WINDOWS];
    uint32_t key_beneath[REG_COUNT]; /* the regions that windows are bound to */
    uint32_t room[REG_COUNT]; /* while the work is drawn: bytes in use */
    uint8_t *data; /* memory of all op[].data */
    uint8_t *ends; /* memory of all op[].ends */

    /* run */
    void *qpmem;
    struct qp *qp;
    uint32_t qpn;
    int posted; /* number of requests handed to the engine */
    int offered; /* receives that the user has posted */
    int rposted; /* of them, number handed to the engine */
    /* An RNR NAK that must still be sent: the number of receives at the moment when the responder decided to send it,
     * plus 1. 0: none. */
    int refused;
    int sdone, rdone; /* the next request and the next receive to complete */
    /* With an SRQ: the peer's request whose receive completed last, counted from 1. */
    int rlast;
    uint32_t rel_end; /* number of PSNs of the posted requests */
    uint32_t rel_new; /* the next PSN that was never sent */
    uint32_t rel_resp; /* the next PSN in the current run of READ responses; UINT32_MAX: none */
    uint32_t una; /* una after the last step */
    uint64_t una_changed; /* time when una changed, ns */
    bool rnr_waits; /* a receiver was not ready, and nothing was sent since then */
    uint32_t nak_sent; /* syndrome of the last fatal NAK; 0: none */
    bool failed; /* some completion had an error: */
    bool sfailed, rfailed; /* … of a send, of a receive */
    bool killed; /* the user moved it to ERR */
    bool closed; /* it is in RESET or destroyed */
    bool left; /* it was destroyed when everything was done: */
    uint32_t left_rel; /* … PSNs that it had received then */
    bool sqd_pending; /* it moves to SQD, and the drained event has not come */
    uint32_t events[32]; /* count by type */
    struct counted counted[CNTR_OPS];
    uint64_t failed_at;
};

/* --- hosts ------------------------------------------------------------------------------------- */

/* A memory write that waits for the end of the batch. */
struct deferred {
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
    uint32_t faulted[MAX_ENDS]; /* QPs whose deferred writes failed */
    int nfaulted;
    uint8_t *txbuf;
    size_t txcap;
    struct gso_run gso;
    bool wake_pending, poll_pending;
    uint64_t stuck; /* number of steps at the same time */
    struct icrc_ctx icrc[MAX_HOSTS][2]; /* of packets that this host sends, by destination and IP version */
};

/* --- one exchange ------------------------------------------------------------------------------ */

struct scenario {
    uint64_t seed;
    const char *name;
    int nhosts, nends;
    uint32_t mtu_code; /* enum ibv_mtu, all connections */
    struct net_faults net;
    bool defer; /* memory writes wait for the end of the batch */
    bool ip_ids; /* packets have various IP IDs, which the receiver does not know */
    bool may_exhaust; /* so many packets are lost that retries may run out */
    bool lossless; /* nothing is lost, so each fault has exactly one result */
    uint64_t wake_ns; /* a host processes packets at most this long after they came */
    uint64_t poll_ns; /* users poll completions this often; 0: at once */
    uint32_t poll_max; /* … and at most this many */
    uint64_t limit_ns; /* the exchange must be over by then */
    uint32_t post_chunk; /* number of requests posted in a row */
    bool big; /* few and long messages */
    uint32_t dgrams; /* per mille of exchanges that also have unreliable QPs */
    /* Per mille of packets that the peer of a rogue end also sends in a damaged form. */
    uint32_t rogues;
    uint32_t hold_acks; /* per mille of batches in which plain ACKs are held back */
    /* Per mille of packets that a third host, not the QP's peer, also sends in a changed form. */
    uint32_t strangers;
    /* Per mille of packets that a third host also sends with the peer's address and a PSN that it guessed. */
    uint32_t forged;
    bool direct_loop; /* packets within a host don't pass the network */
    bool hand_over; /* … and those of one message are a run (pkt_run.h) */
    bool kill_peer; /* the user moves a QP to ERR soon after its peer has failed */
};

/* The values that a named case asserts in addition to the invariants. */
struct totals {
    uint64_t done_at; /* time when the last request completed, ns */
    uint32_t packets;
    struct engine_counters counters; /* of all engines */
    uint32_t runs, handed; /* runs within hosts, and their packets */
    uint32_t writes; /* to the memory of users */
};

struct sim {
    struct scenario sc;
    struct prng rng; /* random numbers for the exchange's own decisions, not the network's */
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
    struct capture *capture; /* NULL, except when a failed exchange runs again */
};

/* --- the parts --------------------------------------------------------------------------------- */

/* Ends the exchange with a message. */
_Noreturn void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define sim_require(s, cond, ...)                                                                                      \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            sim_fail((s), __VA_ARGS__);                                                                                \
        }                                                                                                              \
    } while (0)

/* scenario.c: draws all of s->sc and the ends' attributes from s->sc.seed, then the work (ops.c). */
void scenario_draw(struct sim *s);
void scenario_defaults(struct sim *s, uint64_t seed); /* a calm scenario of two hosts and one connection, for scripts */
/* ops.c */
void ops_draw(struct end *e, int nops, bool small, enum plant plant); /* sends and writes only, if the peer leaves */
/* adds one request, with buffers and receive */
struct op *ops_add(struct end *e, uint8_t opcode, uint32_t len, uint8_t flags);
void ops_plant(struct end *e, int index, enum plant plant);
bool op_takes_recv(uint8_t opcode);
uint32_t op_packets(const struct end *e, const struct op *o);
bool op_is_atomic(uint8_t opcode);
bool op_is_read_or_atomic(uint8_t opcode);
bool op_is_write(uint8_t opcode); /* any request that writes to REG_TGT */
bool op_is_answered(uint8_t opcode); /* by a response of its own */
void ops_draw_recv(struct end *home, uint32_t cap); /* adds a receive of that size */
bool op_is_local(uint8_t opcode);
/* windows.c */
/* work of both ends; refusal: also one request that must fail */
void windows_draw(struct end *a, struct end *b, bool refusal);
void windows_build(struct end *e);
/* sets the keys and addresses of a request */
void window_wr(const struct end *e, const struct op *o, struct send_wr *wr);
void windows_destroy(struct end *e);
/* pool.c */
void pools_draw(struct sim *s, bool xrc); /* chooses the ends that use XRC, if any may, and those that use an SRQ */
void pool_script(struct sim *s, bool xrc); /* one pool for end 1, everything else as simple as possible */
void pools_draw_recvs(struct sim *s, bool limits, bool ample); /* call it when all requests are known */
struct pool *pool_draw(struct end *e); /* a pool for a request of this end */
struct pool *pool_alien(struct sim *s, const struct end *target); /* a pool that its peer must not name; NULL: none */
void pools_build(struct sim *s, int index);
void pools_free(struct sim *s);
void pools_post(struct host *h); /* posts the receives that are due */
void pool_fill(struct pool *p); /* hands receives to the engine, as many as fit */
/* calls engine_rx, or engine_rx_run if run is not NULL, and checks what it takes. k: the packet, or the first one of the run */
void pool_rx(struct host *h, const struct pkt *k, const struct pkt_run *run, const struct rx_meta *meta);
bool pool_counts_packets(struct host *h, uint32_t qpn); /* the user of the QP decides something at each packet */
void pool_left(struct end *e); /* its QP is gone; the receives that it had taken are put back */
struct pool *pool_of(struct host *h, const void *owner); /* the owner must be a pool of the host */
void pool_event(struct pool *p, uint8_t type);
void pools_check_step(struct sim *s);
void pools_check_end(struct sim *s); /* call it after all QPs were closed */
void pools_destroy(struct sim *s, bool first);
/* build.c */
void build(struct sim *s);
void build_connect(struct end *e, enum end_step step);
struct qp_init build_init(struct end *e); /* the attributes of its QP */
void build_free(struct sim *s);
/* counters.c */
void counters_attach(struct end *e); /* attaches a counter for each kind of request to the new QP */
void counters_take(struct host *h); /* takes the new values from the engine */
void counters_sent(struct end *e, const struct op *o); /* a request was retired with o->status */
void counters_received(struct end *e, const struct completion *c);
void counters_check(struct sim *s); /* when all is quiet */
/* run.c: returns 0, or -1 with s->failure set. Frees everything except s. */
int sim_run(struct sim *s);
/* host.c */
void host_step(struct host *h);
void host_packet(struct host *h, struct wirepkt *p);
void host_poll(struct host *h);
/* user.c */
int user_post(struct host *h); /* posts the requests that are due; returns the number of sends */
void user_post_recvs(struct end *e); /* hands receives to the engine, as many as fit */
int user_leave(struct host *h); /* destroys the QPs of ends that leave and are done; returns their number */
void user_step(struct end *e, enum end_step step);
bool user_idle(const struct end *e); /* it has nothing left to do */
/* rogue.c: sends packets that resemble the real one. */
void rogue_stranger(struct host *h,
                    const struct wirepkt *real); /* from an address that is not the peer's; must have no effect */
/* From the peer's address, of a reliable connection, with a PSN that no window can hold; must have no effect. */
void rogue_psn(struct host *h, const struct wirepkt *real);
void rogue_peer(struct host *h, const struct wirepkt *real); /* from the peer's address */
/* mem.c */
extern const struct mem_ops host_mem_ops;
extern const struct owner_ops host_owner_ops;
void mem_flush(struct host *h);
void mem_report_faults(struct host *h); /* tells the engine of writes that failed */
uint8_t *mem_at(struct end *e, const struct seg *g);
uint64_t seg_addr(const struct end *e, const struct seg *g);
uint32_t seg_key(const struct end *e, const struct seg *g);
void mem_gather(struct end *e, const struct seg *g, unsigned n, uint8_t *dst);
/* observer.c: checks a packet that h sends. */
bool observe_sack(struct host *h, const struct pkt *p); /* false: the packet is no SACK */
void observe_tx(struct host *h, const struct tx_pkt *t, const uint8_t *bytes, const struct pkt *p);
/* check.c */
void check_completion(struct host *h, const struct completion *c);
void check_event(struct host *h, const struct event *ev);
void check_step(struct sim *s);
void check_end(struct sim *s); /* call it when nothing moves any more */
/* shapes.c: gives the region the key of a window over layouts, and removes it again. */
void shape_make(struct end *e, struct region *g, uint32_t access);
void shape_drop(struct end *e, struct region *g);
void shape_free(struct region *g);
/* expect.c: the possible results of a request with a planted fault */
struct expectation {
    uint8_t status; /* of the requester's completion */
    uint8_t recv_status; /* of the responder's receive completion; WC_SUCCESS: none */
    uint8_t event; /* the responder's event; 0: none */
    uint8_t syndrome; /* of the NAK, 0: none */
    bool local; /* nothing is sent */
    bool partly; /* a part of the message may have been written */
};
extern const struct expectation expectations[PLANT_COUNT];
uint8_t expected_event(const struct op *o, bool deferred); /* the responder's event; 0: none */
/* True if the end's planted fault may appear only after later requests were executed. */
bool expect_late(const struct end *e);
bool expect_send(const struct end *e, int index, uint8_t status); /* may the first failure be this request? */
bool expect_recv(const struct end *e, int index, uint8_t status);
/* oracle.c */
void oracle_model(struct sim *s); /* fills op[].data */
void oracle_recv(struct end *e, const struct op *o); /* after success: the peer's message is in the buffer */
void oracle_send(struct end *e, int index); /* after success: results are here, effects are at the peer */
void oracle_final(struct sim *s); /* checks every byte of every arena */
/* slow.c: connections over slow paths. cell: the name of one of them; NULL: all. Adds the number of cells that meet the
 * requirements to *passed, and returns the number of those that do not. verbose: prints the measurements of each. */
uint64_t slow_paths(const char *cell, bool verbose, uint64_t *passed);
/* goodput.c: prints the speed of a connection at several rates of loss. */
void goodput_report(void);
/* dump.c: records an exchange that runs again because it failed. No-ops unless s->capture is set. */
struct capture *capture_start(const char *path, bool verbose); /* NULL: can't write there */
void capture_packet(struct sim *s, const struct wirepkt *p, const char *what);
void capture_note(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* for the final capture: leaves out strangers' packets and prints nothing at the end */
void capture_only_peers(struct capture *c);
void capture_end(struct capture *c); /* prints the end of the log */

static inline bool has_rq(const struct end *e)
{
    return e->type == QPT_RC && !e->pool;
}
/* The end whose receives a request of e takes, and the end whose memory it addresses. XRC uses the protection domain
 * of the SRQ. */
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
