// SPDX-License-Identifier: BSD-2-Clause
/* Numbers the packets of a QP so that the same packet has the same number in another run: by the distance of its PSN
 * from the first PSN of the QP, and by how often it was sent. This is a pure module. */
#ifndef PUMICE_DAEMON_REPLAY_STREAM_H
#define PUMICE_DAEMON_REPLAY_STREAM_H

#include <stdint.h>

#include "pumice/abi_decisions.h"

#define QP_STREAMS (PM_STREAM_SACK + 1)

/* The numbers that the packets of a QP have got so far. All bytes are 0 at first. */
struct qp_streams {
    uint32_t qp; /* as in struct pm_packet */
    uint32_t life;
    uint64_t newest[QP_STREAMS]; /* the highest number of a packet so far, by enum pm_stream */
};

/* The QP was reset: its PSNs begin anew. */
void qp_streams_restart(struct qp_streams *s);

/* How often packets were sent that were sent more than once. It forgets those that were not sent for a long time; of
 * them, too few attempts are counted. */
#define RESEND_SETS 4096
#define RESEND_WAYS 16
struct resends {
    /* Upper 48 bits: tag of the packet. Lower 16 bits: how often it was sent again. The latest used is first. */
    uint64_t entry[RESEND_SETS][RESEND_WAYS];
};

/* Fills in number and attempt of *p, whose other members are set, and counts the packet. stream is one of QP_STREAMS.
 * first_psn: of the QP's requests, or of the requests that it receives. Returns the highest number of the stream before
 * this packet. */
uint64_t stream_number(struct qp_streams *s, struct resends *r, uint32_t first_psn, uint32_t psn, struct pm_packet *p);

#endif
