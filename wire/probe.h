// SPDX-License-Identifier: BSD-2-Clause
/* Probes between Pumice devices: the payload of a UD SEND Only packet to QP 2, which no verbs QP can have, with a Q_Key
 * of their own. A NIC or rxe drops such a packet without a word; a Pumice device answers with the same fields. Who asks
 * learns that all it had sent before was taken from the other's socket (flow control of datagrams), or that packets of a
 * certain size pass (connectivity checks).
 *
 *     0  magic "PMCE"              4  version 1   5  kind   6  purpose   7  reserved, 0
 *     8  sequence                 12  size of the probe's payload, padding included
 *    16  token                    24  padding of zeroes up to `size`
 *
 * All in network byte order. An answer has the sequence, size and token of its probe and no padding, so it is never longer
 * than what it answers. */
#ifndef PUMICE_WIRE_PROBE_H
#define PUMICE_WIRE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define PROBE_QPN 2u /* destination and source QP */
#define PROBE_QKEY 0x80504d43u /* with the top bit, which no unprivileged request can send */
#define PROBE_LEN 24u /* bytes of payload without padding */

enum probe_kind {
    PROBE_ASK = 1,
    PROBE_ANSWER = 2,
};
enum probe_purpose {
    PROBE_FLOW = 0, /* which datagrams have been taken in? */
    PROBE_CHECK = 1, /* does a packet of this size arrive? */
};
struct probe {
    uint8_t kind; /* enum probe_kind */
    uint8_t purpose; /* enum probe_purpose; others are answered, too */
    uint32_t sequence; /* the asker's */
    uint32_t size; /* of the probe's payload: PROBE_LEN … the path MTU */
    uint64_t token; /* the asker's */
};

/* False: the payload is no probe, of another version, or not as long as it says. */
bool probe_decode(const uint8_t *payload, uint32_t len, struct probe *out);
/* Writes PROBE_LEN bytes; a probe's padding is the caller's. */
void probe_encode(const struct probe *p, uint8_t *dst);

#endif
