// SPDX-License-Identifier: BSD-2-Clause
/* The requester's responses that came before a missing one. It keeps them (base/reorder.h), takes them in when the missing
 * ones have come, and asks again only for the rest of the READ requests that these belong to (IBA 9.7.5.1.7). It does so
 * only with peers that understand SACKs: not every device answers a request that begins before the latest repetition. The
 * gaps are described as those of requests are (wire/pumice/sack.h), in one scoreboard. */
#ifndef PUMICE_DAEMON_CORE_SELECTIVE_HELD_RESPONSES_H
#define PUMICE_DAEMON_CORE_SELECTIVE_HELD_RESPONSES_H

#include "wire/pumice/sack.h"

struct qp;

/* Lists the gaps before and between the responses that are held: at least one is. Returns their number. */
uint32_t held_responses_gaps(const struct qp *qp, struct sack *s);
/* The same, and behind them the gaps of requests that a SACK has reported. False: the SACK is older than the responses. */
bool held_responses_and_sack(const struct qp *qp, const struct sack *reported, struct sack *s, uint32_t *responses);
/* The same with the gaps of requests that the scoreboard has. */
uint32_t held_responses_and_board(const struct qp *qp, struct sack *s);

#endif
