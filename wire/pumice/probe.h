// SPDX-License-Identifier: BSD-2-Clause
/* Encodes and decodes probes between Pumice devices. A probe is the payload of a UD SEND Only packet to QP 2, a number
 * that no verbs QP has, with its own Q_Key. A NIC or rxe silently drops such a packet. A Pumice device answers with the
 * same fields. For flow control of datagrams, the answer shows that the other device has read all earlier datagrams
 * from its socket. For connectivity checks, it shows that packets of this size arrive.
 *
 *     0  magic "PMCE"              4  version 1   5  kind   6  purpose   7  flags
 *     8  sequence                 12  size of the probe's payload, padding included
 *    16  token                    24  padding of zeroes up to `size`
 *
 * An answer of version 1 also says how the device sends: every packet leaves from UDP port 4791, and its ICRC covers the
 * IP ID that is the packet's index in its GSO send, below 64. The flag 1 of an answer says that the BTH of each packet
 * has this ID (bth_icrc_id). Other devices drop packets in its name that differ (monitor/peer_identity.h). A device that
 * sends in another way must use another version. The flag 4 of an answer says that the device understands selective
 * acknowledgements of version 2 (wire/pumice/sack.h). The other flags are reserved: sent as 0, and ignored.
 *
 * All fields are in network byte order. An answer has the sequence, size and token of its probe and no padding, so it
 * is never longer than the probe. */
#ifndef PUMICE_WIRE_PUMICE_PROBE_H
#define PUMICE_WIRE_PUMICE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define PROBE_QPN 2u /* destination and source QP */
#define PROBE_QKEY 0x80504d43u /* has the top bit set, which unprivileged requests can't send */
#define PROBE_LEN 24u /* bytes of payload without padding */

enum probe_kind {
    PROBE_ASK = 1,
    PROBE_ANSWER = 2,
};
enum probe_purpose {
    PROBE_FLOW = 0, /* asks which datagrams the receiver has read */
    PROBE_CHECK = 1, /* asks whether a packet of this size arrives */
    PROBE_FEATURES = 2, /* asks what the other device can do: the flags of its answer say it */
};
struct probe {
    uint8_t kind; /* enum probe_kind */
    uint8_t purpose; /* enum probe_purpose; a device also answers other values */
    bool icrc_ids; /* of an answer: the device's packets have their bth_icrc_id */
    bool sacks; /* of an answer: the device understands selective acknowledgements */
    uint32_t sequence; /* chosen by the sender of the probe */
    uint32_t size; /* of the probe's payload: PROBE_LEN … the path MTU */
    uint64_t token; /* chosen by the sender of the probe */
};

/* Returns false if the payload is no probe, has another version, or has a wrong length. The length of a probe is its
 * size field; the length of an answer is PROBE_LEN. */
bool probe_decode(const uint8_t *payload, uint32_t len, struct probe *out);
/* Writes PROBE_LEN bytes. The caller writes the padding of a probe. */
void probe_encode(const struct probe *p, uint8_t *dst);

#endif
