// SPDX-License-Identifier: BSD-2-Clause
/* What the parts of the linter share; see lint.h. First every packet becomes a record (lint_packet.c), of a half; then
 * halves are paired and path MTUs found (lint_flow.c); then the records are gone through in order, requests by
 * lint_req.c, responses by lint_resp.c, SENDs with tag matching headers by lint_tm.c. */
#ifndef PUMICE_PCAP_LINT_LINT_PRIV_H
#define PUMICE_PCAP_LINT_LINT_PRIV_H

#include <uthash.h>

#include "pcap/decap.h"
#include "pcap/lint/lint.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"
#include "wire/tmh.h"

#define FAR_PSNS 65536 /* a jump by more is a new connection */

enum rec_flags {
    REC_DAMAGED = 1 << 0, /* wrong ICRC: its fields can't be believed */
    REC_MALFORMED = 1 << 1, /* headers couldn't be decoded; opcode and PSN are all there is */
    REC_IGNORED = 1 << 2, /* the same packet on its way in as well as out */
    REC_NOTED = 1 << 3, /* a comment says what its sender knows of it; the next flags are part of that */
    REC_AGAIN = 1 << 4, /* a retransmission */
    REC_BEFORE = 1 << 5, /* whether it got anywhere is not known */
};

struct rec { /* one packet */
    uint64_t time_ns;
    uint64_t va; /* RETH or AtomicETH */
    uint32_t frame;
    uint32_t half; /* index */
    uint32_t psn;
    uint32_t len; /* payload */
    uint32_t dmalen, rkey; /* RETH */
    uint32_t srqn;
    uint32_t msn;
    uint32_t tm; /* index in lint.tm plus one; 0: not the beginning of a SEND */
    uint32_t rndv; /* of a READ: the request that it is for, as an index in the peer's rndv plus one; 0: none */
    uint8_t opcode;
    uint8_t syndrome;
    uint8_t flags; /* enum rec_flags */
    uint8_t direction; /* enum pcapng_direction */
};

struct tm_bytes { /* the beginning of a SEND */
    uint8_t bytes[TMH_LEN + RVH_LEN];
    uint32_t len; /* of the packet's payload; bytes has as many of it as fit */
    bool only; /* the message is this packet */
};

struct answer { /* what came back for a READ, atomic, FLUSH or ATOMIC WRITE */
    uint8_t *seen; /* one bit for each response */
    uint32_t got; /* how many bits are set */
    uint32_t last; /* index of the newest response */
    uint32_t starts[8]; /* where the requester asked again from, besides 0 */
    uint32_t num_starts; /* more than 8: from anywhere */
    uint32_t skipped; /* frame that acknowledged something later; 0: none did */
    bool told; /* that not all came */
};

struct sent { /* a request packet, and for a READ all PSNs that it takes */
    uint64_t psn; /* extended to 64 bits */
    uint32_t span; /* PSNs; 0: a READ whose path MTU is not known */
    uint32_t rec;
    bool damaged; /* what it was can't be told */
    bool settled; /* it and all before it are acknowledged and, where that is due, answered */
    bool informed; /* and the requester has got the response that did it */
    uint32_t settled_by; /* number of that response */
    uint64_t settled_ns;
    struct answer *answer; /* NULL for what has none */
};

struct rndv { /* a rendezvous request */
    uint32_t rec;
    struct tmh tmh;
    struct rvh rvh;
    bool bare; /* there was no RVH */
    uint64_t read; /* bytes asked for by READs */
    uint32_t open_reads; /* READs that are not answered yet */
    bool done; /* a FIN came, right or wrong */
};

struct half_key {
    uint32_t interface, ifindex;
    uint32_t qpn;
    uint32_t src_qpn; /* where a comment says it (note.h); else 0 */
    uint32_t service;
    uint8_t src[16], dst[16];
};

#define REC_UNUSABLE (REC_DAMAGED | REC_MALFORMED | REC_IGNORED)

struct half { /* everything that goes from an address, or one QP there, to a QP */
    struct half_key key;
    UT_hash_handle hh;
    uint32_t index;
    uint8_t direction; /* of its first packet; copies in the other direction are ignored */
    struct half *newest; /* of those with the same key but a known src_qpn; NULL: there is none */
    struct half *peer; /* the other direction of the connection; NULL: not known */
    uint32_t *recs; /* its records */
    size_t num_recs, cap_recs;
    uint32_t sizes[5]; /* how many FIRST and MIDDLE packets have 256, 512 … 4096 bytes */
    uint32_t mtu; /* 0: not known */
    bool incomplete; /* packets of it are known not to be in the capture */

    /* As requester. */
    bool started;
    uint64_t next; /* PSN of the next new request */
    uint32_t slack; /* so many PSNs next may be too small, because of a READ of unknown span */
    struct sent *sent; /* by PSN */
    size_t num_sent, cap_sent;
    uint32_t total; /* messages in sent */
    size_t counted; /* sent[0 ... counted) are acknowledged */
    uint32_t messages; /* in these */
    size_t settled; /* sent[0 ... settled) are settled */
    uint32_t responses; /* so far */
    bool base_known;
    uint32_t base_low, base_width; /* the MSN before sent[0] is in base_low … base_low + base_width */

    /* As responder. */
    bool acked;
    uint64_t last_ack;
    bool fatal; /* has sent a fatal NAK */
    uint64_t fatal_psn;
    bool told_midway, told_unpaired;
    uint32_t searches; /* for another peer; each takes long, so there's a bound */

    /* Tag matching: SENDs in this half begin with TMHs. */
    bool tm;
    struct rndv *rndv; /* requests in this half */
    size_t num_rndv, cap_rndv;
    size_t first_rndv; /* those before are done */
};

struct lint {
    const struct lint_options *options;
    struct lint_result *result;
    struct rec *recs;
    size_t num_recs, cap_recs;
    struct tm_bytes *tm;
    size_t num_tm, cap_tm;
    struct half **halves;
    size_t num_halves, cap_halves;
    struct half *by_key;
    size_t cap_findings;
    bool lost; /* the capture itself has lost packets */
    bool no_memory;
};

/* Room for one more element in array[0 ... n): the array, moved if need be; NULL and l->no_memory if there is none. */
void *lint_grow(struct lint *l, void *array, size_t n, size_t *cap, size_t size);

/* Writes down that rule is broken in a frame. */
void lint_tell(struct lint *l, enum lint_rule rule, uint32_t frame, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As lint_tell, but a note if excused. */
void lint_tell_unless(struct lint *l, bool excused, enum lint_rule rule, uint32_t frame, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* lint_packet.c: rules for a datagram by itself; appends its packets to the records. */
void lint_datagram(struct lint *l, const struct capread_frame *f, const struct decap *d);

/* lint_flow.c: the half of a packet, made if it is new; NULL without memory. Without src_qpn it is the newest half whose other key
 * this is, if there is one: a packet that was seen leaving is seen again as it arrives. */
struct half *lint_half(struct lint *l, const struct half_key *key);

/* May the halves be the two directions of a connection, by their addresses? */
bool lint_may_pair(const struct half *a, const struct half *b);

/* Were they captured at the same interface? */
bool lint_same_interface(const struct half *a, const struct half *b);

/* Pairs the halves and finds path MTUs. */
void lint_pair(struct lint *l);

/* Another half in the direction of h's requesters which has sent psn before record number before; NULL if none. */
struct half *lint_asker(struct lint *l, const struct half *h, uint32_t psn, uint32_t before);

void lint_half_free(struct half *h);

/* Responses that a READ of len bytes has; 0 if that isn't known. */
uint32_t lint_span(const struct half *h, uint32_t len);

/* lint_req.c */
void lint_request(struct lint *l, struct half *h, uint32_t number);
struct sent *lint_find(struct half *h, uint64_t psn); /* the request that takes psn; NULL: none */
uint64_t lint_unwrap(uint32_t psn, uint64_t near); /* psn extended to 64 bits, near to another one */
bool lint_ends(const struct lint *l, const struct sent *s); /* the last packet of a message? */

/* lint_resp.c; r is the half of the response. */
void lint_response(struct lint *l, struct half *r, uint32_t number);
void lint_unanswered(struct lint *l, struct half *x); /* at the end */

/* lint_tm.c */
void lint_tm_detect(struct lint *l);
void lint_tm_send(struct lint *l, struct half *h, uint32_t number); /* the beginning of a SEND, not a repeated one */
void lint_tm_read(struct lint *l, struct half *h, uint32_t number); /* a READ request, not a repeated one */
void lint_tm_read_done(struct lint *l, struct half *h, uint32_t number); /* READ in record number is answered in full */
void lint_tm_end(struct lint *l, struct half *h);

#endif
