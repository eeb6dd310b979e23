// SPDX-License-Identifier: BSD-2-Clause
/* Error reports: a NAK, a dropped packet, a timeout or a QP that failed. The engine makes them, and its owner takes
 * them with engine_pop_report and writes them to a log. They have no influence on the protocol. While the ring of
 * reports is full, further reports are only counted. */
#ifndef PUMICE_DAEMON_CORE_BASE_REPORT_H
#define PUMICE_DAEMON_CORE_BASE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_kind {
    REPORT_NONE = 0,
    REPORT_NAK_SENT, /* syndrome: the kind of NAK. RNR NAKs are reported too. */
    REPORT_NAK_RCVD,
    /* No answer came within the QP's timeout. The request is sent again. retries_left: the retries that are left
     * then. */
    REPORT_TIMEOUT,
    REPORT_DROP, /* a packet was dropped; cause: enum drop_cause */
    REPORT_ERROR, /* the QP went to ERR (SQE, if it is unreliable); cause: enum error_cause */
    REPORT_KINDS, /* number of report kinds */
};
enum drop_cause {
    DROP_UNKNOWN_QP, /* no such QP */
    DROP_STATE, /* the QP is not ready to receive */
    DROP_PKEY,
    DROP_SOURCE, /* the source address is not the QP's peer */
    DROP_SOURCE_QP, /* the packet comes from a QP of this device that is not the QP's peer: peer_qpn */
    DROP_DESTINATION, /* the destination is another address of the device than the QP's */
    DROP_OPCODE, /* the opcode is of another service, or for the half that an XRC QP does not have */
    DROP_PSN, /* the PSN is farther from the expected one than any window: the packet is likely forged */
    DROP_RESPONSE, /* a response that matches no outstanding request */
    DROP_QKEY,
    DROP_NO_RECV, /* UC, UD: no receive request is posted */
    DROP_REFUSED, /* UC, UD: the packet is not allowed, too long, or part of a message that was dropped */
    /* The engine never sees these packets. Its owner reports them: */
    DROP_ICRC, /* wrong ICRC */
    DROP_NOT_LISTED, /* its source address is not in the list of peers */
    DROP_PORT, /* it claims to come from a Pumice daemon, but not from its UDP port */
    DROP_MALFORMED, /* can't be decoded */
    DROP_CAUSES,
};
enum error_cause {
    ERROR_PROGRAM, /* the program set it to ERR with modify_qp */
    ERROR_PEER_NAK, /* the peer sent a NAK: syndrome */
    ERROR_RETRY, /* no answer after retry_cnt retries */
    ERROR_RNR_RETRY, /* the peer had no receive request, and rnr_retry retries did not help */
    ERROR_LOCAL, /* one of the QP's own requests could not be carried out: status */
    ERROR_RESPONSE, /* a response did not match its request */
    ERROR_REFUSED, /* the QP answered a request with a NAK that ends the connection: syndrome */
    ERROR_RECV, /* a receive request's memory is too small or not writable: status */
    ERROR_MEMORY, /* the client's memory can no longer be accessed */
    ERROR_CAUSES,
};

struct report {
    uint8_t kind; /* enum report_kind */
    uint8_t cause; /* enum drop_cause or error_cause, as kind says */
    uint8_t syndrome; /* AETH syndrome of a NAK */
    /* enum wc_status of the completion that tells the program of the error; 0: no completion does */
    uint8_t status;
    uint8_t opcode; /* BTH opcode of the packet, if has_packet */
    uint8_t retries_left; /* of REPORT_TIMEOUT */
    bool has_packet;
    bool has_key; /* key and va are valid */
    /* The local QP. With DROP_UNKNOWN_QP, the destination QP that the packet names. */
    uint32_t qpn;
    uint32_t peer_qpn; /* the peer's QP; 0: not known */
    /* PSN of the packet. REPORT_NAK_SENT and ERROR_REFUSED: PSN of the NAK. REPORT_TIMEOUT: the oldest unacknowledged
     * PSN. REPORT_ERROR with ERROR_RECV or ERROR_PROGRAM: the expected PSN; with any other cause: the oldest
     * unacknowledged PSN. */
    uint32_t psn;
    uint32_t expected; /* PSN that the responder expects */
    uint32_t key; /* rkey. With ERROR_LOCAL and WC_LOC_PROT_ERR, the lkey. */
    uint64_t va; /* the address that was accessed with key */
    uint8_t peer[16]; /* the peer's GID */
};

#define REPORT_SLOTS 128u
struct report_ring { /* part of struct engine */
    uint32_t head, tail;
    uint64_t lost; /* reports for which the ring had no slot */
    struct report slot[REPORT_SLOTS];
};

#endif
