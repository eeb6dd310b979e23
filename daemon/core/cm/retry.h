// SPDX-License-Identifier: BSD-2-Clause
/* Repeating a message until it is answered.
 *
 * The times in the messages are Linux's: a response may take 4 s, and a message is sent 16 times. If the first repetition
 * came after that time, each lost message would cost 4 s. So the first one comes after 250 ms, and the time doubles up to
 * the response time. A repeated message does no harm: the peer answers it as the first one, or by an MRA. The time until
 * the instance gives up is Linux's. */
#ifndef PUMICE_DAEMON_CORE_CM_RETRY_H
#define PUMICE_DAEMON_CORE_CM_RETRY_H

#include "daemon/core/cm/cm_id.h"

/* Repeats the kept message, which was just sent. */
void retry_start(struct cm_id *id, uint64_t now);
/* The message is answered. */
void retry_stop(struct cm_id *id);
/* The peer's program needs this much time for its answer (MRA). */
void retry_wait_longer(struct cm_id *id, uint64_t service_ns, uint64_t now);
/* The timer fired. False: the time is over, and nothing was sent. */
bool retry_expire(struct cm_id *id, uint64_t now);
/* The kept message answers repetitions of the peer's message, as long as the peer sends them. */
void retry_keep_answer(struct cm_id *id, uint64_t now);
/* The peer has repeated its message: sends the kept one again, if there is one. */
void retry_answer_again(struct cm_id *id, uint64_t now);

#endif
