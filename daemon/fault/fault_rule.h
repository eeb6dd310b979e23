// SPDX-License-Identifier: BSD-2-Clause
/* One rule of a fault specification in numbers. daemon/fault/fault_spec.h explains the text behind it. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_RULE_H
#define PUMICE_DAEMON_FAULT_FAULT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define FAULT_DELAY_MAX_NS 10000000000ull /* limit of each of delay, jitter and reorder-by */
#define FAULT_TIME_MAX_NS 1000000000000000ull /* limit of from, until and for: a million seconds */
#define FAULT_COUNT_MAX 1000000000u /* limit of after, count, message and #N */
#define FAULT_NO_END UINT64_MAX

/* The packets that a rule may be limited to (only=). */
enum fault_class {
    FAULT_ANY,
    FAULT_REQUEST,
    FAULT_RESPONSE,
    FAULT_ACK, /* ACKs, NAKs, atomic ACKs */
    FAULT_SEND,
    FAULT_WRITE,
    FAULT_READ, /* READ requests and responses */
    FAULT_ATOMIC, /* atomics and their ACKs */
    FAULT_CM, /* messages of connection management */
    FAULT_NAK, /* all NAKs, RNR NAKs included */
    FAULT_RNR_NAK,
    FAULT_TM, /* SENDs that begin with a tag matching header */
    FAULT_OPCODES, /* those of a set of opcodes */
};

/* The effect of a rule. */
enum fault_effect {
    FAULT_ON_SENDING, /* on packets that leave */
    FAULT_ON_RECEIVING, /* rnr */
    FAULT_ON_LINK,
    FAULT_ON_DAEMON,
};

/* Probabilities are multiples of 2^-32; FAULT_ALWAYS is 100 %. */
#define FAULT_ALWAYS (1ull << 32)

struct fault_rule {
    uint8_t peer[16]; /* valid if has_peer; IPv4 as ::ffff:a.b.c.d */
    uint32_t qpn, src_qpn; /* valid if has_qpn, has_src_qpn */
    bool has_peer, has_qpn, has_src_qpn;
    bool has_ack_loss; /* ack_loss replaces loss for ACKs */
    bool link_up; /* FAULT_ON_LINK: up; else down */
    uint8_t effect; /* enum fault_effect */
    uint8_t only; /* enum fault_class */
    uint8_t tm; /* FAULT_TM: 1 + enum tmh_op; 0: all operations */
    uint16_t message; /* FAULT_CM: enum cm_attribute; 0: all messages */
    uint64_t opcodes[4]; /* FAULT_OPCODES: bit n is set if opcode n belongs to the class */
    uint32_t after; /* so many packets that the rule covers pass first */
    uint32_t count; /* only so many of those after them; 0: all */
    uint32_t nth_message; /* only this message; 0: all */
    uint64_t from_ns, until_ns; /* since the faults were set; until_ns FAULT_NO_END: no end */
    uint64_t for_ns; /* since the first packet that the rule applies to; 0: no end */
    uint64_t loss, ack_loss, dup, corrupt, truncate, reorder, ce, rnr; /* probabilities */
    uint64_t reorder_ns, delay_ns, jitter_ns;
    uint64_t mask;
};

#endif
