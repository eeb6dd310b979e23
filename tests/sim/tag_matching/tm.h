// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching over a faulty network. Senders run on two hosts. On a third host, a program receives as MPI does: with
 * an SRQ that matches tags, with its own list and queue, and with the synchronization between them. One exchange is
 * drawn from one seed.
 *
 *     tm.c        hosts, memory, network, time
 *     tm_send.c   the senders
 *     tm_recv.c   the receiving program
 *     tm_check.c  the checks at the end */
#ifndef PUMICE_TESTS_SIM_TAG_MATCHING_TM_H
#define PUMICE_TESTS_SIM_TAG_MATCHING_TM_H

#include "daemon/core/engine.h"
#include "daemon/core/tm/tag_list.h"
#include "tests/sim/network/net.h"

#define TMS_HOSTS 3 /* host 0 receives */
#define TMS_QPS 4
#define TMS_MSGS 40
#define TMS_RECVS 160
#define TMS_BUFS 16 /* untagged buffers */
#define TMS_REGION 8192u /* bytes of memory for each message, receive and buffer */
#define TMS_NONE (-1)

enum { TMS_RECV_AREA = 0, TMS_BUF_AREA = TMS_RECVS, TMS_REGIONS = TMS_RECVS + TMS_BUFS };

struct tms_msg {
    int qp;
    uint8_t opcode; /* enum tmh_op */
    uint64_t tag;
    uint32_t len; /* bytes of payload, or bytes to fetch */
    uint32_t meta; /* rendezvous: bytes of metadata in the request */
    bool with_imm;
    bool posted, sent_done, fin, received;
    int recv; /* the receive that took it; TMS_NONE */
};

enum tms_recv_state {
    RECV_IDLE, /* not posted yet, or never posted */
    RECV_POSTED,
    RECV_MATCHED, /* data will come */
    RECV_READING, /* the program reads the data */
    RECV_DONE,
    RECV_CANCELED,
    RECV_FAILED, /* its QP died */
};
struct tms_recv {
    uint64_t tag, mask;
    uint32_t cap;
    uint32_t handle;
    uint8_t state; /* enum tms_recv_state */
    int msg; /* TMS_NONE: none yet */
    int order; /* order of posting */
    bool add_pending; /* a completion of its ADD will come */
    bool listed; /* the program believes that the device has it */
    bool canceling; /* a signaled DEL is under way */
    bool final; /* its last completion was polled */
    bool started; /* its MATCH was polled */
};

/* A sender's QP, and the receiver's QP. */
struct tms_conn {
    struct qp *from, *to;
    void *from_mem, *to_mem;
    int host; /* of the sender */
    int order[TMS_MSGS], count, next; /* its messages, their number, and the next one to post */
    int completed; /* completed sends */
    uint32_t fin_bufs; /* receive requests that the sender has posted for FINs */
    bool dead; /* one end was killed */
    bool gone; /* the receiver's QP was destroyed */
};

struct tms_host {
    void *mem;
    struct engine *e;
    struct engine_config cfg;
    uint8_t *bytes; /* TMS_REGIONS regions */
    uint64_t va;
    uint32_t key;
    bool touched;
};

struct tms {
    uint64_t seed;
    struct prng rng;
    struct evq events;
    struct net net;
    uint64_t now;
    struct tms_host host[TMS_HOSTS];
    struct tms_conn conn[TMS_QPS];
    int conns;
    uint32_t mtu;
    struct tms_msg msg[TMS_MSGS];
    int msgs;
    bool small; /* eager messages fit into the shortest receives */

    /* the receiver */
    struct tag_list *tm;
    void *tm_mem, *srq_mem;
    struct srq *srq;
    uint32_t slots; /* max_num_tags */
    struct tms_recv recv[TMS_RECVS];
    int recvs; /* number of receives posted so far */
    int planned; /* number of drawn receives; the ones after them match everything */
    int slot_owner[TM_MAX_TAGS]; /* the receive; TMS_NONE: the slot is free */
    uint32_t generation[TM_MAX_TAGS];
    struct tm_op op[1024]; /* posted but not executed operations */
    struct sge op_sge[1024][2];
    uint32_t op_head, op_tail;
    uint32_t count; /* number of unexpected messages that the program has handled */
    int unexpected[TMS_MSGS], num_unexpected; /* messages without a receive */
    int unexpected_buf[TMS_MSGS];
    int free_buf[TMS_BUFS], num_free_buf;
    int match_log[TMS_MSGS], matches; /* receives in the order of their messages */
    uint32_t hw_matches, sw_matches, incompletes, cancels, late_cancels, dead_entries;

    uint64_t start; /* ns; nothing is sent earlier */
    int kill; /* the connection that is killed; TMS_NONE */
    uint64_t kill_at;
    uint8_t kill_way;
    bool verbose;
    char failure[256];
};

/* Runs one exchange. Returns 0, or -1 with the reason in s->failure. */
int tms_run(struct tms *s, uint64_t seed, bool verbose);

/* --- tm.c -------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void tms_fail(struct tms *s, const char *format, ...);
__attribute__((format(printf, 2, 3))) void tms_say(const struct tms *s, const char *format, ...);
/* Address and bytes of a region of a host. */
uint64_t tms_va(const struct tms *s, int host, int region);
uint8_t *tms_bytes(const struct tms *s, int host, int region);
/* Byte i of a message's payload. */
uint8_t tms_byte(int msg, uint32_t i);

/* --- tm_send.c --------------------------------------------------------------------------------- */

void tms_draw_messages(struct tms *s);
void tms_send_step(struct tms *s, int host);
void tms_send_completion(struct tms *s, const struct completion *c);

/* --- tm_recv.c --------------------------------------------------------------------------------- */

void tms_draw_receives(struct tms *s);
void tms_recv_step(struct tms *s);
void tms_recv_completion(struct tms *s, const struct completion *c);
/* The receiver's QP of a connection was reset or destroyed: the program's requests there are gone. */
void tms_recv_requests_vanish(struct tms *s, int conn);

/* --- tm_check.c -------------------------------------------------------------------------------- */

bool tms_settled(const struct tms *s);
/* Fails the exchange, which did not settle, and reports what is missing. */
void tms_unsettled(struct tms *s);
void tms_check(struct tms *s);

#endif
