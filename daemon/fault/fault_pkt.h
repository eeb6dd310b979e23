// SPDX-License-Identifier: BSD-2-Clause
/* The packet that fault injection decides about. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_PKT_H
#define PUMICE_DAEMON_FAULT_FAULT_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_pkt {
    const uint8_t *src_gid; /* 16 bytes each */
    const uint8_t *dst_gid;
    uint32_t dest_qpn;
    uint32_t src_qpn; /* 0: not known */
    uint32_t psn;
    uint8_t opcode; /* BTH opcode */
    uint8_t syndrome; /* of its AETH, if it has one */
    uint8_t tm; /* 1 + the operation of the tag matching header that it begins with (enum tmh_op); 0: none */
    uint16_t cm_attribute; /* enum cm_attribute: the packet is this message of connection management; 0: it is none */
};

/* Describes the packet p[0 … len), BTH to ICRC, in the fields that are read from it: all but the addresses and src_qpn. */
void fault_pkt_read(struct fault_pkt *f, const uint8_t *p, size_t len);

/* Is it an ACK, a NAK or an atomic ACK? */
bool fault_is_ack(uint8_t opcode);

#endif
