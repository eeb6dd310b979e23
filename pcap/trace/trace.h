// SPDX-License-Identifier: BSD-2-Clause
/* The packets of a capture, as pictures need them: hosts, flows between them, and the packets of each flow. The capture
 * may be of any RoCEv2 device; comments of Pumice (note.h) are used where they are. First trace_read reads the packets.
 * Then copies.h joins those that were captured twice, pair.h finds the flows that form a connection, message.h finds
 * messages, losses and retransmissions, and exchange.h groups messages. */
#ifndef PUMICE_PCAP_TRACE_TRACE_H
#define PUMICE_PCAP_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "pcap/capread.h"
#include "pcap/note.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/tmh.h"

#define TRACE_PACKETS_MAX (4u << 20) /* packets that one picture can be made from */
#define TRACE_LIST_MAX 64 /* queue pairs or addresses that options can name */
#define TRACE_NONE UINT32_MAX /* no index */
#define TRACE_FAR_PSNS 65536 /* a larger jump of PSNs means a new connection */

/* A place in the capture: a frame number, or a time since the first packet. */
struct trace_place {
    bool given;
    bool is_time;
    uint64_t value; /* frame, or nanoseconds */
};

/* The part of the capture that is wanted. All zeros: everything. */
struct trace_options {
    struct trace_place from, to; /* both are included */
    uint32_t qps[TRACE_LIST_MAX]; /* packets to or from one of these; none: all */
    unsigned num_qps;
    /* Packets between two of these, or to and from the only one; none: all. */
    uint8_t hosts[TRACE_LIST_MAX][16];
    unsigned num_hosts;
};

/* Facts about a packet, from its comment and from other packets. */
enum trace_mark {
    TRACE_LOST = 1 << 0, /* it did not arrive */
    TRACE_AGAIN = 1 << 1, /* a retransmission */
    TRACE_DAMAGED = 1 << 2, /* wrong ICRC: the receiver drops it */
    TRACE_TWICE = 1 << 3, /* the network doubled it */
    TRACE_LATE = 1 << 4, /* a fault delayed it, or a later packet overtook it */
    TRACE_CE = 1 << 5, /* marked with congestion experienced */
    TRACE_MALFORMED = 1 << 6, /* only opcode, QP and PSN are known */
    TRACE_COPY = 1 << 7, /* captured a second time where it arrived; not shown */
};
#define TRACE_UNUSABLE (TRACE_DAMAGED | TRACE_MALFORMED | TRACE_COPY)

struct trace_packet {
    uint64_t time_ns;
    uint64_t arrival_ns; /* when it arrived, if that was captured, too; else 0 */
    uint64_t psn; /* 24 bits; messages_find extends it, so that it never wraps */
    uint64_t va; /* RETH or AtomicETH */
    uint64_t wr_id; /* if has_wr */
    uint32_t frame;
    uint32_t flow; /* index in trace.flows */
    uint32_t len; /* payload */
    uint32_t dmalen, rkey; /* RETH or AtomicETH */
    uint32_t msn;
    uint32_t icrc;
    uint32_t mad; /* index in trace.mads; TRACE_NONE: no message of connection management */
    uint32_t tm; /* index in trace.tms; TRACE_NONE: no rendezvous request and no FIN */
    uint32_t sack; /* index in trace.sacks; TRACE_NONE: no selective acknowledgement of Pumice */
    uint32_t message; /* index of its message (message.h); TRACE_NONE: none */
    /* Indexes of packets, or TRACE_NONE. Set by message.h. */
    uint32_t repeats; /* the earlier packet that this one repeats */
    uint32_t reason; /* the NAK after which it is repeated */
    uint32_t about; /* SACK: the flow of the requests that it reports. Then psn is that of the first missing one. */
    uint32_t first_acked; /* ACK: the first message that it acknowledges for the first time */
    uint16_t part; /* number in its datagram, which GSO or GRO may have merged */
    uint8_t opcode;
    uint8_t syndrome;
    uint8_t direction; /* enum pcapng_direction */
    uint8_t marks; /* enum trace_mark */
    bool has_wr;
    bool noted; /* it has a comment of Pumice */
};

/* A SEND that can be a rendezvous request or FIN. Nothing in a packet says for sure that tag matching is used. */
struct trace_tm {
    struct tmh tmh;
    struct rvh rvh; /* zeros if there is none */
};

/* A selective acknowledgement (wire/pumice/sack.h). */
struct trace_sack {
    uint32_t requester, responder; /* numbers of the two QPs */
    uint32_t expected; /* PSN: the first that is missing */
    uint32_t gaps, missing; /* numbers of gaps, and of packets in them */
};

struct trace_mad {
    uint8_t bytes[MAD_LEN];
};

struct trace_host {
    uint8_t address[16];
    uint32_t index; /* in trace.hosts */
    UT_hash_handle hh;
};

struct trace_flow_key {
    uint32_t src, dst; /* indexes in trace.hosts */
    uint32_t qpn; /* destination QP */
    uint32_t src_qpn; /* 0: not known */
    uint32_t service; /* enum op_service */
};

/* The packets from one host, or from one QP of it, to one QP. */
struct trace_flow {
    struct trace_flow_key key;
    UT_hash_handle hh;
    uint32_t index; /* in trace.flows */
    uint32_t packets; /* number of packets */
    uint32_t newest; /* without src_qpn: the newest flow with it that is otherwise equal; TRACE_NONE: none */
    uint32_t peer; /* the other direction of the connection; TRACE_NONE: not known */
    uint32_t qpn_of_sender; /* from comments, DETH, or the peer; 0: not known */
    uint32_t sizes[5]; /* numbers of FIRST and MIDDLE packets with 256, 512 … 4096 bytes */
    uint32_t mtu; /* 0: not known */
    uint32_t pid; /* process that owns the sending QP; 0: not known */
    char comm[NOTE_COMM + 1];
    bool wanted; /* the options name one of its QPs, or none */
};

struct trace {
    struct trace_packet *packets; /* in the order of time */
    size_t num_packets, cap_packets;
    struct trace_host **hosts;
    size_t num_hosts, cap_hosts;
    struct trace_host *by_address;
    struct trace_flow **flows;
    size_t num_flows, cap_flows;
    struct trace_flow *by_key;
    struct trace_tm *tms;
    size_t num_tms, cap_tms;
    struct trace_sack *sacks;
    size_t num_sacks, cap_sacks;
    struct trace_mad *mads;
    size_t num_mads, cap_mads;
    uint64_t start_ns; /* time of the first RoCEv2 packet in the file */
    uint32_t frames; /* in the file */
    uint32_t roce; /* RoCEv2 packets in the file, also those that are not wanted */
    uint64_t lost; /* packets that the capture itself has lost, from its statistics */
    uint64_t faults; /* packets that injected faults lost before the capture */
    bool full; /* more than TRACE_PACKETS_MAX packets are wanted; the rest was not kept */
    bool unmerged; /* datagrams hold packets, merged by GSO or GRO, that can't be separated */
    bool icrc_unknown; /* most ICRCs are wrong, so they say nothing */
    bool no_memory;
    char error[CAPREAD_ERROR]; /* why the file, or the rest of it, can't be read; or "" */
};

/* Reads f, and closes it. Keeps the packets between options->from and ->to of the wanted hosts. Returns 0, -ENOMEM, or
 * -EINVAL if f is no capture or can't be read to its end; then the trace has the packets of the part that was read, and
 * the reason. The caller always frees *t by trace_free. */
int trace_read(struct trace *t, FILE *f, const struct trace_options *options);

/* Marks the flows whose QPs the options name. The flows must be paired before. */
void trace_select(struct trace *t, const struct trace_options *options);

void trace_free(struct trace *t);

/* Makes room for one more element in array[0 ... n). Returns the array, which may have moved; or NULL, with
 * t->no_memory set. */
void *trace_grow(struct trace *t, void *array, size_t n, size_t *cap, size_t size);

/* Bytes for the text of an address, with the end. */
#define TRACE_ADDRESS_MAX 46
void trace_address(const uint8_t address[16], char text[TRACE_ADDRESS_MAX]);

static inline const struct trace_flow *trace_flow_of(const struct trace *t, const struct trace_packet *p)
{
    return t->flows[p->flow];
}

/* True if the packet belongs to the requester's side of a reliable or unreliable connection. */
static inline bool trace_is_request(const struct trace_packet *p)
{
    return op_table[p->opcode].properties & OP_IS_REQUEST && (p->opcode & OP_SERVICE_MASK) != OP_SERVICE_UD;
}

#endif
