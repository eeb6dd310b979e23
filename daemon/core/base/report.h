// SPDX-License-Identifier: BSD-2-Clause
/* Reports of what went wrong: NAKs, packets dropped, timeouts, queue pairs that fail. The engine's owner takes them
 * (engine_pop_report) and writes them to a log. Nothing of the protocol depends on them. Reports that find no room are counted. */
#ifndef PUMICE_CORE_BASE_REPORT_H
#define PUMICE_CORE_BASE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_kind {
    REPORT_NONE = 0,
    REPORT_NAK_SENT, /* syndrome says which; RNR NAKs, too */
    REPORT_NAK_RCVD,
    REPORT_TIMEOUT, /* the QP's timeout passed without an answer: another try, of which retries_left are left */
    REPORT_DROP, /* a packet was dropped; cause: enum drop_cause */
    REPORT_ERROR, /* the QP went to ERR (SQE, if it is unreliable); cause: enum error_cause */
    REPORT_KINDS, /* their number */
};
enum drop_cause {
    DROP_UNKNOWN_QP, /* no such QP */
    DROP_STATE, /* the QP is not ready to receive */
    DROP_PKEY,
    DROP_SOURCE, /* the source address is not the QP's peer */
    DROP_OPCODE, /* not of the QP's service */
    DROP_RESPONSE, /* answers nothing that was asked */
    DROP_QKEY,
    DROP_NO_RECV, /* UC, UD: no receive request */
    DROP_REFUSED, /* UC, UD: not allowed, too long, or of a message given up */
    /* By the engine's owner, which has not handed it over: */
    DROP_ICRC, /* wrong ICRC */
    DROP_MALFORMED, /* can't be decoded */
    DROP_CAUSES,
};
enum error_cause {
    ERROR_PROGRAM, /* modify_qp to ERR, or its owner closed it so */
    ERROR_PEER_NAK, /* the peer refused: syndrome */
    ERROR_RETRY, /* no answer after retry_cnt retries */
    ERROR_RNR_RETRY, /* the peer had no receive request, rnr_retry times */
    ERROR_LOCAL, /* a request of its own could not be carried out: status */
    ERROR_RESPONSE, /* a response did not fit its request */
    ERROR_REFUSED, /* it refused what the peer sent: syndrome */
    ERROR_RECV, /* a receive request's memory can't be written, or is too small: status */
    ERROR_MEMORY, /* client memory is gone */
    ERROR_CAUSES,
};

struct report {
    uint8_t kind; /* enum report_kind */
    uint8_t cause; /* enum drop_cause or error_cause, by kind */
    uint8_t syndrome; /* AETH, of NAKs */
    uint8_t status; /* enum wc_status, of errors that a completion tells; else 0 */
    uint8_t opcode; /* BTH, of the packet that it is about, if has_packet */
    uint8_t retries_left; /* REPORT_TIMEOUT */
    bool has_packet;
    bool has_key; /* key and va mean something */
    uint32_t qpn; /* the QP here; of REPORT_DROP with DROP_UNKNOWN_QP: that was meant */
    uint32_t peer_qpn; /* the QP there; 0: not known */
    uint32_t psn; /* of the packet; of errors of requests the oldest unacknowledged, of others the expected one */
    uint32_t expected; /* PSN that the responder expects */
    uint32_t key; /* rkey, or lkey of ERROR_LOCAL */
    uint64_t va; /* address that goes with it */
    uint8_t peer[16]; /* its GID */
};

#define REPORT_SLOTS 128u
struct report_ring { /* part of struct engine */
    uint32_t head, tail;
    uint64_t lost; /* found no room */
    struct report slot[REPORT_SLOTS];
};

#endif
