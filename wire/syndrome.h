// SPDX-License-Identifier: BSD-2-Clause
/* The values of AETH syndromes and RNR timer codes (IBA 9.7.5.2.1, tables 44 to 47). */
#ifndef PUMICE_WIRE_SYNDROME_H
#define PUMICE_WIRE_SYNDROME_H

#include <stdint.h>

enum aeth_kind {
    AETH_ACK = 0x00, /* low five bits: credits; 0x1f: no credits are given */
    AETH_RNR = 0x20, /* low five bits: timer code */
    AETH_NAK = 0x60, /* low five bits: code */
    AETH_RESERVED = 0x40,
};
#define AETH_KIND_MASK 0xe0 /* includes the reserved bit 7: a packet with this bit set is dropped */
#define AETH_VALUE_MASK 0x1f
#define AETH_NO_CREDITS 0x1f

enum aeth_nak {
    NAK_PSN_SEQUENCE = 0x60,
    NAK_INVALID_REQUEST = 0x61,
    NAK_REMOTE_ACCESS = 0x62,
    NAK_REMOTE_OPERATION = 0x63,
    NAK_INVALID_RD = 0x64,
};

/* The nanoseconds of an RNR timer code (0 ... 31); IBA table 46. Code 0 is the longest time, 655.36 ms. Larger codes
 * are masked to five bits. */
uint64_t rnr_timer_ns(uint8_t code);

/* End-to-end credits (IBA 9.7.7.2): the receive requests that a responder has for further messages. The code of an ACK
 * stands for their number, rounded down. */
#define AETH_CREDITS_MOST 32768u
/* The number of receive requests that a code stands for. AETH_NO_CREDITS, which stands for no number, gives 0. */
uint32_t aeth_credits(uint8_t code);
/* The code for n receive requests: that of the largest number that is not above n. */
uint8_t aeth_credit_code(uint32_t n);

#endif
