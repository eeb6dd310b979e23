// SPDX-License-Identifier: BSD-2-Clause
/* The requester keeps responses that came before a missing one (base/reorder.h), and asks again only for those that are
 * missing. A READ request that is sent again covers one gap of the responses. The requester does so only if the peer
 * understands selective acknowledgements. For others it goes back to the first missing response.
 *
 * A response and an ACK show that the responder has carried out all requests before them. So each READ, atomic and the like
 * before them has been answered, and a response that has not come was lost or is late. The scoreboard tells which. */
#ifndef PUMICE_DAEMON_CORE_SELECTIVE_HELD_RESPONSES_H
#define PUMICE_DAEMON_CORE_SELECTIVE_HELD_RESPONSES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/qp/qp.h"

struct pkt;
struct sack;

enum hold_result {
    HOLD_REFUSED, /* the QP has to go back */
    HOLD_QUIET, /* the packet is kept */
    HOLD_NEWS, /* the packet is kept, and the caller judges what is missing: it shows, fills or ends something */
};
/* A valid response came before an earlier one. cost: its part of the window. */
enum hold_result held_response(struct qp *qp, const struct pkt *p, uint64_t cost, uint64_t now);
/* Keeps an ACK that came too early: it names a request behind a READ or atomic whose response is missing. The caller then
 * judges what is missing. */
void held_ack(struct qp *qp, const struct pkt *p);
/* May responses and ACKs be kept? If not, the QP has to go back. */
bool held_allowed(const struct qp *qp, uint64_t now);
/* Lists the responses that are missing, in the form of a SACK. False: there are none. */
bool held_missing(const struct requester *r, struct sack *s);
/* The oldest packet that is kept, if una_psn has come to it. It is removed, and stays readable until the end of the batch. NULL:
 * a response before it is still missing. */
const struct pkt *held_next(struct qp *qp);

/* The QP goes back to PSN psn. Only responses that come from now on show which ones are missing. */
static inline void held_rewind(struct requester *r, uint32_t psn)
{
    if (r->behind && psn_diff(r->executed, psn) > 0)
        r->executed = psn;
    r->asked = 0;
}
/* n responses were asked for again. */
static inline void held_asked(struct requester *r, uint32_t n)
{
    if (r->asked == 0)
        r->asked_start = r->una_psn;
    r->asked += n;
    r->asked_end = r->sent_psn;
}
/* The response psn came for the second time. If the requester had asked for it again, the first one had only been late. */
void held_came_twice(struct qp *qp, uint32_t psn, uint64_t now);

#endif
