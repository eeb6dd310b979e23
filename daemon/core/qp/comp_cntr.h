// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters. A counter counts the requests of the chosen kinds that complete on the QPs to which it is
 * attached, whether or not a request makes a completion. Requests that vanish without a completion, because their QP
 * is reset or destroyed, do not count.
 *
 * A request of the peer counts when the QP has carried it out: a WRITE with its last packet, a READ when its last
 * response is sent for the first time. It counts as failed when the QP refuses it. */
#ifndef PUMICE_DAEMON_CORE_QP_COMP_CNTR_H
#define PUMICE_DAEMON_CORE_QP_COMP_CNTR_H

#include "daemon/core/qp/comp_cntr_state.h"

struct completion;
struct engine;
struct qp;

/* Initializes a counter at 0. The caller owns it, and must not free it while it has users or is in the list of changed
 * counters (comp_cntr_fini). */
void comp_cntr_init(struct comp_cntr *c, bool bytes);
/* Takes a counter without users out of the list of changed counters. */
void comp_cntr_fini(struct comp_cntr *c);
/* Lets the counter count the requests of these kinds (bits of enum cntr_op), until the QP is destroyed. -EINVAL: ops is
 * 0 or has unknown bits, or the QP is neither in RESET nor in INIT. -EBUSY: another counter already counts one of the
 * kinds. */
int comp_cntr_attach(struct qp *qp, struct comp_cntr *c, uint32_t ops);
/* Takes the next counter whose values have changed since it was last taken. NULL: there is none. The owner takes
 * counters after it has carried out deferred writes, as it takes completions. */
struct comp_cntr *engine_pop_cntr(struct engine *e);

/* --- inside the engine ------------------------------------------------------------------------ */

/* Ends the use of counters by a QP that is being destroyed. */
void comp_cntr_detach(struct qp *qp);
/* A completion that was counted as done turns into a failed one, because its data could not be written to memory. */
void comp_cntr_undo(struct qp *qp, const struct completion *c);

#endif
