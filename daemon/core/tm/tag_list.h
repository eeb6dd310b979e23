// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: the matching list of a TM-SRQ, and its synchronization with the program.
 *
 * This module handles messages, never packets. It knows neither QPs nor queues. Its user, the responder, passes the
 * beginning of each SEND to tm_decide. It checks whether there is a buffer, and room for completions. If so, it
 * executes the decision by tm_commit. A decision without a commit leaves no trace: the message comes again and is
 * decided again. A committed message holds resources in a struct tm_rx. tm_done or tm_drop releases them exactly once.
 *
 *     program:  tm_op                                          ADD, DEL, SYNC, in the order of posting
 *     network:  tm_decide, [tm_refuse | tm_commit ... tm_done | tm_commit ... tm_drop]
 *
 * Synchronization. hw_cnt counts the unexpected messages that were delivered. sw_cnt is the number of them that the
 * program last reported as seen. Both are modulo 2^16. inflight counts unexpected messages that are decided and not
 * yet delivered. The list is in sync if hw_cnt == sw_cnt and inflight == 0. An entry that is appended in sync is
 * active at once. Otherwise it is pending, because the program may hold an older message for it. When the list
 * becomes in sync, all pending entries become active. So the active entries are a prefix of the list, and stay
 * active.
 *
 * Handles. The poster chooses them, because the verbs API needs them at once. The low TM_SLOT_BITS bits are the
 * entry's slot, below max_num_tags. The other bits are a generation that changes with each use of the slot, so that a
 * late DEL finds no entry. The poster uses a slot again when all completions of its last use were polled (that of the
 * ADD if it was signaled; then the last receive completion or that of a successful DEL). This alone ensures that
 * max_num_tags also limits entries that are consumed and not yet polled. The engine only refuses slots that are in
 * use.
 *
 * Times may be 0 if the caller has none. The trace then uses the latest known time. */
#ifndef PUMICE_DAEMON_CORE_TM_TAG_LIST_H
#define PUMICE_DAEMON_CORE_TM_TAG_LIST_H

#include "daemon/core/tm/match.h"
#include "daemon/core/tm/trace.h"
#include "daemon/core/tm/types.h"

/* NULL: there is no such profile. */
const struct tm_profile *tm_profile(enum tm_profile_id id);

/* Bytes of zeroed, 64-byte aligned memory for tm_init. 0: a parameter is out of range. */
size_t tm_size(const struct tm_params *p);
/* The caller owns mem and frees it after the last call. Nothing else must be undone: entries vanish without
 * completions. NULL: a parameter is out of range. */
struct tag_list *tm_init(void *mem, const struct tm_params *p);

const struct tm_profile *tm_profile_of(const struct tag_list *tm);

/* Executes one operation at once. A DEL whose entry is consumed or no longer listed completes with WC_TM_ERR if it is
 * signaled, and has no completion otherwise. An ADD that breaks the rules of slots or SGEs always completes with
 * WC_TM_ERR, and no receive completion follows. A correct poster never sends such an ADD. */
void tm_op(struct tag_list *tm, const struct tm_op *op, struct tm_op_result *result, uint64_t now);

/* Reports that n more untagged buffers were posted. Needed only for a profile with min_buffers. May be called between
 * tm_decide and tm_commit. */
void tm_buffers_posted(struct tag_list *tm, uint32_t n);

#endif
