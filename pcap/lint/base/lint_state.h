// SPDX-License-Identifier: BSD-2-Clause
/* The state of one run of the linter. First the linter makes a record of every packet, and appends it to a flow
 * (lint_packet). Then it pairs the flows to connections, and finds their path MTUs (lint_flow). Then it judges the
 * records in order: requests (lint_request), responses (lint_response), selective acknowledgements (lint_sack), SENDs
 * with tag matching headers (lint_tm), messages of connection management (lint_cm). */
#ifndef PUMICE_PCAP_LINT_BASE_LINT_STATE_H
#define PUMICE_PCAP_LINT_BASE_LINT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "pcap/lint/base/lint_cm_table.h"
#include "pcap/lint/base/lint_result.h"
#include "wire/mad.h"
#include "wire/pumice/sack.h"
#include "wire/tmh.h"

enum record_flags {
    RECORD_DAMAGED = 1 << 0, /* wrong ICRC: no field of the packet is reliable */
    RECORD_MALFORMED = 1 << 1, /* the headers can't be decoded; only opcode and PSN are known */
    RECORD_IGNORED = 1 << 2, /* a second copy of a packet that was captured both as it left and as it arrived */
    RECORD_NOTED = 1 << 3, /* the packet has Pumice's comment (note.h), which sets the next flags */
    RECORD_AGAIN = 1 << 4, /* a retransmission */
    RECORD_BEFORE = 1 << 5, /* captured before injected faults, which may have dropped or changed it */
};
#define RECORD_UNUSABLE (RECORD_DAMAGED | RECORD_MALFORMED | RECORD_IGNORED)
#define LINT_OPEN_MOST 256u /* so many requests that wait for responses are looked at */

/* One packet. */
struct record {
    uint64_t time_ns;
    uint64_t va; /* RETH or AtomicETH */
    uint32_t frame;
    uint32_t flow; /* index in lint.flows */
    uint32_t psn;
    uint32_t len; /* payload */
    uint32_t dmalen, rkey; /* RETH */
    uint32_t srqn;
    uint32_t msn;
    uint32_t tm; /* index in lint.tm plus one; 0: the packet is not the beginning of a SEND */
    uint32_t mad; /* index in lint.mads plus one; 0: the packet is no message of connection management */
    uint32_t sack; /* index in lint.sacks plus one; 0: the packet is no SACK */
    /* READ: the rendezvous request that counts it, as an index in the peer's rndv plus one; 0: none. */
    uint32_t rndv;
    uint8_t opcode;
    uint8_t syndrome;
    uint8_t flags; /* enum record_flags */
    uint8_t direction; /* enum pcapng_direction */
};

/* The beginning of a SEND. */
struct tm_bytes {
    uint8_t bytes[TMH_LEN + RVH_LEN]; /* the first bytes of the payload */
    uint32_t len; /* of the packet's whole payload */
    bool only; /* the message is this packet */
};

/* A message of connection management. */
struct lint_mad {
    uint8_t bytes[MAD_LEN];
};

/* The responses to a READ, atomic, FLUSH or ATOMIC WRITE. */
struct response {
    uint8_t *seen; /* one bit for each response packet */
    uint32_t got; /* bits set in seen */
    uint32_t last; /* index of the newest response packet */
    uint32_t restarts[8]; /* indexes, besides 0, at which the requester asked again */
    uint32_t num_restarts; /* more than 8: the requester may have asked again at any index */
    uint32_t stops[8]; /* indexes, besides the last, at which what it asked for again ends */
    uint32_t num_stops; /* more than 8: at any index */
    uint32_t skipped; /* frame that acknowledged a later PSN while the responses were incomplete; 0: none */
    bool reported; /* a missing response was reported */
};

/* A request packet. A READ takes several PSNs. */
struct request {
    uint64_t psn; /* extended to 64 bits */
    uint32_t span; /* PSNs that it takes; 0: a READ whose path MTU is not known */
    uint32_t record; /* index in lint.recs */
    bool damaged; /* its opcode and length are not reliable */
    bool completed; /* this and all earlier requests are acknowledged and have all their responses */
    bool requester_knows; /* the requester has received the response that completed it */
    uint32_t completed_by; /* number of that response (flow.responses) */
    uint64_t completed_ns;
    struct response *response; /* NULL: an ACK is its only response */
};

/* A rendezvous request. */
struct rndv {
    uint32_t record; /* index in lint.recs */
    struct tmh tmh;
    struct rvh rvh;
    bool no_rvh; /* the packet has no RVH */
    bool done; /* a FIN came, right or wrong */
    uint32_t memory; /* index in flow.rndv of the request that counts for this one's memory */
    /* If this request counts: */
    uint64_t offered; /* bytes that open requests offer */
    uint64_t asked; /* bytes that READs asked for */
    uint64_t fetched; /* bytes of READs whose responses have all come */
};

struct flow_key {
    uint32_t interface, ifindex;
    uint32_t qpn; /* destination QP */
    uint32_t src_qpn; /* if a comment names it (note.h); else 0 */
    uint32_t service;
    uint8_t src[16], dst[16];
};

enum credits {
    CREDITS_UNSEEN, /* no ACK was captured yet */
    CREDITS_GIVEN,
    CREDITS_NONE, /* the responder gives no credits: there is no limit */
};

/* All packets from one address, or from one QP there, to one QP. */
struct flow {
    struct flow_key key;
    UT_hash_handle hh;
    uint32_t index; /* in lint.flows */
    uint8_t direction; /* of its first packet; copies in the other direction are ignored */
    /* For a flow without src_qpn: the newest flow with the same key and a known src_qpn; NULL: there is none. */
    struct flow *newest;
    struct flow *peer; /* the other direction of the connection; NULL: not known */
    uint32_t *recs; /* its records, as indexes in lint.recs */
    size_t num_recs, cap_recs;
    uint32_t sizes[5]; /* numbers of FIRST and MIDDLE packets with 256, 512 … 4096 bytes */
    uint32_t mtu; /* 0: not known */

    /* As requester. */
    bool started;
    uint64_t next; /* PSN of the next new request */
    uint32_t slack; /* next may be too small by up to this number of PSNs, because of a READ of unknown span */
    struct request *requests; /* by PSN */
    size_t num_requests, cap_requests;
    uint32_t total_messages; /* messages that end in requests */
    size_t num_acked; /* requests[0 ... num_acked) are acknowledged */
    uint32_t acked_messages; /* messages that end in requests[0 ... num_acked) */
    /* Messages that take a receive request, counted from the beginning of the capture. */
    uint8_t credits; /* enum credits */
    bool reported_credit;
    uint32_t receives; /* begun */
    uint32_t acked_receives; /* acknowledged */
    uint32_t receive_limit; /* the responder has receive requests for the messages before it */
    size_t completed; /* requests[0 ... completed) are completed */
    uint32_t responses; /* number of responses so far */
    bool msn_known;
    uint32_t msn_low, msn_width; /* the MSN before requests[0] is from msn_low to msn_low + msn_width */

    /* As responder. */
    bool has_acked;
    uint64_t last_ack;
    bool fatal; /* has sent a fatal NAK */
    uint64_t fatal_psn;
    bool reported_midway, reported_unpaired;
    uint32_t searches; /* number of searches for another peer; limited, because each search is slow */

    /* Tag matching: SENDs in this flow begin with TMHs. */
    bool tm;
    struct rndv *rndv; /* rendezvous requests in this flow */
    size_t num_rndv, cap_rndv;
    size_t first_rndv; /* all requests before this index are done */
};

struct lint {
    const struct lint_options *options;
    struct lint_result *result;
    struct record *recs; /* all packets, in the order of the capture */
    size_t num_recs, cap_recs;
    struct tm_bytes *tm;
    size_t num_tm, cap_tm;
    struct lint_mad *mads;
    size_t num_mads, cap_mads;
    struct sack *sacks;
    size_t num_sacks, cap_sacks;
    struct lint_cm_table cm; /* the connections of these messages */
    struct flow **flows;
    size_t num_flows, cap_flows;
    struct flow *by_key;
    /* Injected faults lost or delayed packets before the capture, as the options or the capture say. */
    bool faulty;
    bool lost; /* the capture itself has lost packets */
    bool no_memory;
};

/* Makes room for one more element in array[0 ... n). Returns the array, which may have moved; or NULL, with
 * l->no_memory set. */
void *lint_grow(struct lint *l, void *array, size_t n, size_t *cap, size_t size);

/* Reports that a frame breaks a rule. */
void lint_report(struct lint *l, enum lint_rule rule, uint32_t frame, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Like lint_report, but as a note if excused is true. */
void lint_report_unless(struct lint *l, bool excused, enum lint_rule rule, uint32_t frame, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* True if packets may be missing from the capture, as the options or the capture's own statistics say. */
static inline bool lint_may_lack_packets(const struct lint *l)
{
    return l->options->incomplete || l->lost;
}

#endif
