// SPDX-License-Identifier: BSD-2-Clause
/* Odd cases between two RDMA devices, as a table: errors of all kinds, limits, windows, atomics, late receives.
 *
 *     odd [options]              the server: the end that receives, and whose memory is read and written
 *     odd [options] HOST         the client: it posts the requests of each case, and prints the results
 *
 * Both ends have the same table. For each case they make new queue pairs. The client posts the requests and waits for
 * their completions. Then both ends compare all of their memory with the memory that the table leads to. The
 * client prints one line per case: name, "same" or "differs", what happened, what should have happened, separated by
 * tabs. The expected result is the one of the specification. Exit code: 0 if the program came to its end.
 *
 *   cases.c     the table               end.c       objects, memory and queue pairs of an end
 *   model.c     the expected memory     requests.c  posting, completions, events
 *   main.c      the two ends meet, the course of a case, the command line */
#ifndef PUMICE_TESTS_RXE_ODD_ODD_H
#define PUMICE_TESTS_RXE_ODD_ODD_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_REQUESTS = 6, MAX_TEXT = 160, QUEUE_DEPTH = 128, GRH_BYTES = 40, MAX_SGE = 3 };

/* Memory of an end: one block. The peer may reach the target only. The guards show writes beyond it. */
enum {
    GUARD = 8192,
    TARGET = GUARD,
    TARGET_BYTES = 65536,
    SOURCE = TARGET + TARGET_BYTES + GUARD, /* the local buffers of requests */
    SOURCE_BYTES = 65536,
    RECEIVE = SOURCE + SOURCE_BYTES + GUARD, /* the buffers of receive requests, one after the other */
    RECEIVE_BYTES = 131072,
    BLOCK_BYTES = RECEIVE + RECEIVE_BYTES + GUARD
};

/* The key that a request or a receive request uses. */
enum key {
    KEY_GOOD, /* local: the whole block; remote: the server's target */
    KEY_NONE, /* no region has this key */
    KEY_STALE, /* the index of a region, with another variant */
    KEY_OTHER_PD, /* a region of another protection domain */
    KEY_NO_WRITE, /* a local region without IBV_ACCESS_LOCAL_WRITE */
    KEY_WINDOW /* the server's window */
};

/* The state of the server's QP when the client begins. */
enum peer_state { PEER_READY, PEER_RESET, PEER_INIT, PEER_ERROR, PEER_GONE };

enum operation { NONE, SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, FETCH_ADD, COMPARE_SWAP };

/* One work request of the client. Its remote address is TARGET + remote, its local buffer SOURCE + local. With `count`
 * requests, each begins where the one before ended. */
struct request {
    enum operation op; /* NONE: the end of the list */
    uint32_t length; /* 8 for atomics */
    uint32_t local;
    int32_t remote;
    uint32_t count; /* 0 counts as 1 */
    enum key rkey, lkey;
    unsigned flags; /* IBV_SEND_FENCE, _SOLICITED, _INLINE */
    bool silent; /* no completion if it succeeds */
    bool fails; /* it has no effect */
    bool split; /* three SGEs */
    bool equal; /* COMPARE_SWAP: compare with the value that the server begins with */
    uint64_t compare_add, swap; /* as in struct ibv_send_wr */
};

/* A window that the server binds to TARGET + at before the client begins. */
struct window {
    enum ibv_mw_type type; /* 0: none */
    uint32_t at, length;
    unsigned access;
    bool invalidated; /* the server takes it away again */
};

struct odd_case {
    const char *name;
    enum ibv_qp_type type; /* 0: RC */
    struct request request[MAX_REQUESTS];

    /* the server */
    uint32_t receives, receive_bytes; /* receive requests, and the size of each */
    enum key receive_key;
    bool srq; /* they are posted to an SRQ */
    uint32_t srq_limit;
    uint32_t late_ms; /* they are posted this long after the client began */
    enum peer_state peer;
    unsigned refuse; /* rights that the target does not have */
    unsigned qp_refuse; /* rights that the QP does not have */
    struct window window;
    bool group; /* UD: the server joins a multicast group, and the client sends to it */
    uint32_t arrives; /* receive completions to wait for */

    /* the QPs */
    uint32_t psn; /* the first PSN of both directions; 0: any */
    int32_t psn_ahead; /* the client begins this many PSNs later than the server expects */
    uint32_t mtu; /* bytes; 0: 1024 */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer; /* 0: 14, 7, 7, 1 (NEVER stands for 0) */
    uint8_t max_rd_atomic; /* 0: 16 */
    uint32_t wrong_qpn, wrong_qkey; /* not 0: the client sends to this QP, with this Q_Key */

    /* what must happen */
    const char *client; /* the statuses of the client's completions */
    const char *server; /* receive completions of the server; NULL: none */
    const char *states; /* of both QPs at the end; NULL: "RTS RTS" */
    const char *event; /* asynchronous events of the server; NULL: not looked at */
};
#define NEVER 255 /* in place of 0 for fields whose 0 has another meaning */

extern const struct odd_case odd_cases[];
extern const size_t odd_cases_num;

/* The data that both ends exchange for each case. */
struct info {
    uint32_t qpn, psn, rkey, other_rkey, window_rkey, pad;
    uint64_t target; /* the address of the target */
    union ibv_gid gid;
};

struct end {
    bool server;
    struct ibv_context *ctx;
    int gid_index;
    union ibv_gid gid;
    struct ibv_pd *pd, *other_pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *all, *target, *other, *no_write;
    struct ibv_mw *mw;
    struct ibv_ah *ah;
    uint8_t *block, *expected;
    uint8_t *ignore; /* bytes of the block that the specification leaves open */
    struct info peer;
};

/* Prints what failed, with errno, and exits with 1. */
void die(const char *what);

/* --- end.c --- */
void end_open(struct end *e, const char *device, int gid_index);
/* Makes the objects of a case. The QP is in INIT, or, as the case says, in RESET. */
void end_make(struct end *e, const struct odd_case *c);
/* Connects the QP to the peer and prepares what the case asks of this end. */
void end_connect(struct end *e, const struct odd_case *c, const struct info *own);
/* Frees all objects of the case, and fetches its events. */
void end_free(struct end *e, const struct odd_case *c);
union ibv_gid end_group(const struct end *e);

/* --- model.c --- */
/* Fills the block with the bytes that this end begins with. */
void model_fill(uint8_t *block, bool server);
/* The word of eight bytes that the server's block has at this place at first. */
uint64_t model_word(uint32_t at);
/* Computes the bytes that the block of this end must have at the end of the case. */
void model_run(struct end *e, const struct odd_case *c);
/* "right", or where the first wrong byte is. */
void model_compare(const struct end *e, char *text, size_t size);

/* --- requests.c --- */
void receives_post(struct end *e, const struct odd_case *c);
/* Binds the window of the case and invalidates it, if the case says so. */
void window_bind(struct end *e, const struct odd_case *c);
/* Posts the client's requests, waits for the completions, and describes them. */
void requests_run(struct end *e, const struct odd_case *c, char *text, size_t size);
/* Waits for the server's receive completions and describes them. */
void receives_run(struct end *e, const struct odd_case *c, char *text, size_t size);
void events_describe(struct end *e, char *text, size_t size);
const char *state_name(const struct end *e);
uint32_t request_count(const struct request *r);

#endif
