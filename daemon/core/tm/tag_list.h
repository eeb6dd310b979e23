// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: the matching list of a TM-SRQ and its synchronization with the program.
 *
 * This module consumes messages, never packets; it knows neither QPs nor queues. Its user, the responder, hands it the
 * beginning of each SEND (tm_decide), sees whether the decision can be carried out (is there a buffer, room for
 * completions?), and if so makes it true (tm_commit). A decision that is not committed leaves no trace: the message
 * comes again and is decided anew. What a committed message holds, a struct tm_rx, is given back exactly once, by
 * tm_done or tm_drop.
 *
 *     program:  tm_op                                          ADD, DEL, SYNC, in the order of posting
 *     network:  tm_decide, [tm_refuse | tm_commit ... tm_done | tm_commit ... tm_drop]
 *
 * The synchronization in short. hw_cnt counts the unexpected messages that were delivered, sw_cnt is what the program
 * last said that it has seen of them, both modulo 2^16; inflight are unexpected messages that are decided and not yet
 * delivered. In sync is: hw_cnt == sw_cnt and inflight == 0. An entry that is appended while in sync is active at once,
 * else pending: the program may hold an older message that must have it. Whenever the state becomes in sync all pending
 * entries become active. So the active entries are a prefix of the list, and stay active whatever happens.
 *
 * Handles are given out by who posts, since the verbs API wants them at once: the low TM_SLOT_BITS bits are the
 * entry's slot, below max_num_tags; the others a generation that changes with each use of the slot, so that a DEL that
 * comes too late meets nobody. The poster uses a slot again when all completions of its last use were polled (the
 * ADD's if it was signaled; then the last receive completion or a successful DEL's). That is the whole of the rule
 * that max_num_tags bounds entries that are consumed and not yet polled: the engine only refuses slots that are in
 * use.
 *
 * Time may be 0 where the caller has none; the trace then has the latest that was told. */
#ifndef PUMICE_CORE_TM_TAG_LIST_H
#define PUMICE_CORE_TM_TAG_LIST_H

#include "daemon/core/tm/match.h"
#include "daemon/core/tm/trace.h"
#include "daemon/core/tm/types.h"

/* NULL: there is no such profile. */
const struct tm_profile *tm_profile(enum tm_profile_id id);

/* Bytes of zeroed, 64-byte aligned memory for tm_init. 0: a parameter is out of range. */
size_t tm_size(const struct tm_params *p);
/* mem stays the caller's, who frees it after the last call: nothing else has to be undone, entries vanish without
 * completions. NULL: the parameters break a bound. */
struct tag_list *tm_init(void *mem, const struct tm_params *p);

const struct tm_profile *tm_profile_of(const struct tag_list *tm);

/* Carries out one operation at once. A DEL whose entry is consumed or gone is WC_TM_ERR if signaled and silent if not. An
 * ADD that breaks the rules of slots or SGEs, which no honest poster sends, is always completed with
 * WC_TM_ERR, and no receive completion follows. */
void tm_op(struct tag_list *tm, const struct tm_op *op, struct tm_op_result *result, uint64_t now);

/* Reports that n more untagged buffers were posted. Needed only for a profile with min_buffers. May be called between
 * tm_decide and tm_commit. */
void tm_buffers_posted(struct tag_list *tm, uint32_t n);

#endif
