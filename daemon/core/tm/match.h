// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching of messages: decides what happens to a message, carries the decision out, and releases what the message
 * holds when it ends. */
#ifndef PUMICE_DAEMON_CORE_TM_MATCH_H
#define PUMICE_DAEMON_CORE_TM_MATCH_H

#include "daemon/core/tm/types.h"

/* Decides what happens to a message. Changes nothing in tm. */
void tm_decide(const struct tag_list *tm, const struct tm_msg *m, struct tm_decision *d);
/* The message can't be taken now (RNR), or never (TM_ACT_REFUSE). Counts this and adds it to the trace; nothing else
 * changes. */
void tm_refuse(struct tag_list *tm, const struct tm_decision *d, uint64_t now);
/* Executes the decision. No other call that changes tm may come between tm_decide and tm_commit. */
void tm_commit(struct tag_list *tm, const struct tm_decision *d, struct tm_rx *rx, uint64_t now);
/* The message has arrived completely and without error. An unexpected message counts from now on; the returned flags
 * (WC_TM_SYNC_REQ or none) belong in its completion. For a matched message the entry's slot becomes free. Call it
 * when the last completion of the entry is made (for a rendezvous, after the READ). Afterwards rx is empty. Does
 * nothing if rx is empty. */
uint8_t tm_done(struct tag_list *tm, struct tm_rx *rx, uint64_t now);
/* The message will never be delivered, because its QP failed or its buffer was bad. It is not counted. */
void tm_drop(struct tag_list *tm, struct tm_rx *rx, uint64_t now);
/* An unexpected message was delivered, but its completion became an error before the program could see it. Takes the
 * count back. */
void tm_uncount(struct tag_list *tm, uint64_t now);

/* The completions of a message with this action. `first` are the flags of the completion at the decision, and `last`
 * those of the completion at the end. 0 in `first`: there is no completion at the decision. If the message is whole
 * at the decision, there is one completion, with the flags in `whole`. */
struct tm_wc {
    uint8_t opcode; /* enum wc_opcode; NO_TAG, FIN and garbage have WC_TM_NO_TAG instead */
    uint8_t status; /* enum wc_status of the last completion */
    uint8_t first, last, whole; /* enum wc_flags */
};
extern const struct tm_wc tm_wc_table[TM_ACTIONS];
/* enum wc_opcode of the last completion. */
uint8_t tm_wc_opcode(uint8_t action, uint8_t kind);

#endif
