// SPDX-License-Identifier: BSD-2-Clause
/* A batch of packets to be sent, as engine_tx fills it. The packets lie in the owner's buffer without gaps, so that
 * packets of equal length can go out by one GSO send. Packets that stay within the device may be a run (pkt_run.h). A run
 * takes as many bytes and entries of the batch as its packets would. So batches are the same with and without runs. */
#ifndef PUMICE_DAEMON_CORE_BASE_TX_BATCH_H
#define PUMICE_DAEMON_CORE_BASE_TX_BATCH_H

#include "daemon/core/base/pkt_run.h"
#include "daemon/core/base/types.h"
#include "wire/pkt.h"

#define TX_BATCH_PKTS 128
#define TX_BATCH_RUNS (TX_BATCH_PKTS / 2) /* packets that would be a further run are single packets */
struct tx_pkt {
    /* Destination. It stays valid until the QP is modified or destroyed or, for UD, until a request is posted to it. So
     * it is valid until the owner's next call, except engine_tx and the calls that take results. The owner may give
     * packets of the batch back to engine_rx, because owner_ops.refill only posts receive requests. */
    const struct av *av;
    /* Offset in batch->buf: BTH, headers, payload, pad, then 4 bytes that the owner fills with the ICRC. */
    uint32_t off;
    uint32_t len; /* including those 4 bytes */
    uint32_t src_qpn, psn; /* for traces and faults */
    uint64_t wr_id; /* for traces: wr_id of the send request, if has_wr */
    uint16_t header_len;
    bool has_wr; /* the packet belongs to a send request */
    bool cnp; /* a CNP. The engine's owner may send it with another traffic class than av's */
    bool retransmit;
    bool apart; /* not in a run: the owner has sent the packet by itself, will send it later, or never */
    /* NULL: a packet. Otherwise this entry stands for all packets of the run, and the next run->n - 1 entries are not set.
     * off and len are those of the packets together. The run is in the batch. */
    const struct pkt_run *run;
    struct pkt *plain; /* not NULL: a packet that was not encoded. It is in the batch, its payload at off. */
};
/* Limits of one GSO send: packets of one length, the last of which may be shorter. */
struct gso_run {
    uint32_t bytes, pkts; /* at most; 0: the owner sends each packet alone */
    bool whole; /* the receiver gets all packets of a run at once, because it is on this machine */
};
struct tx_batch {
    uint8_t *buf; /* the caller's */
    size_t cap; /* bytes */
    size_t used; /* in and out */
    uint32_t n; /* packets, in and out */
    /* In: plain ACKs of QPs with nothing else to send stay back. The owner sets it when it expects new send requests
     * for these QPs at once. */
    bool hold_acks;
    bool held; /* out: set when an ACK stayed back */
    /* In: QPs of the device hand their packets to each other as runs. The owner sets it when nobody wants to see
     * packets, and gives runs to engine_rx_run. */
    bool hand_over;
    uint32_t runs; /* in and out: entries of run[] in use */
    struct pkt_run run[TX_BATCH_RUNS];
    struct pkt plain[TX_BATCH_PKTS]; /* with the index of their entries */
    /* In: a GSO send that does not fit as a whole is mostly left for the next batch. tx_run_length uses it, too. */
    struct gso_run gso;
    struct { /* the last run, if n > 0 */
        uint32_t len, bytes, pkts; /* len: of its packets; 0: no packet can join the run any more */
    } last;
    /* ACKs and NAKs in the batch: since when each was due, ns. The owner sets acks to 0 with n. */
    uint32_t acks;
    uint64_t ack_due[TX_BATCH_PKTS];
    struct tx_pkt pkt[TX_BATCH_PKTS];
};

/* The result when a QP, or one half of it, has put its packets into a batch. */
enum tx_result {
    TX_DONE, /* nothing more to send until something happens */
    TX_MORE, /* more to send, after the other QPs had their turn */
    TX_FULL, /* the batch has no room */
};

/* Reserves room in the batch for a packet of headers, payload, pad and ICRC. NULL: there is no room, or the packet
 * begins a run that should go into the next batch. Writes headers and pad; *payload is where the caller puts the
 * payload. av must stay valid as struct tx_pkt says. */
struct tx_pkt *tx_append(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                         uint32_t payload_len, uint8_t **payload);
/* As tx_append, for a packet that stays within the device: nothing is written but *p, and the payload later. */
struct tx_pkt *tx_append_plain(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                               uint32_t payload_len, uint8_t **payload);
/* Reserves room in the batch for packets of one message that stay within the device: as many of them as tx_append would
 * find room for. r: the headers of the first packet, the opcodes of the others, and the number and payload of all; *r is
 * copied. Returns the run that fits, with its n, payload_len and payload: the caller puts the bytes at *payload, and the
 * headers of the last packet into `last`. NULL: there is no room. */
struct pkt_run *tx_append_run(struct tx_batch *b, const struct pkt_run *r, const struct av *av, uint32_t src_qpn,
                              uint8_t **payload);
/* How many packets one GSO send can carry, beginning with pkt[first] and ending before pkt[end]: at least 1. They are
 * adjacent in memory, go to one destination, and have equal length. Only the last one may be shorter. Packets that are
 * `apart` count, too. */
uint32_t tx_run_length(const struct tx_batch *b, uint32_t first, uint32_t end);
/* Sets the batch back to an earlier state: n packets in so many bytes. */
void tx_take_back(struct tx_batch *b, uint32_t n, size_t used);

#endif
