// SPDX-License-Identifier: BSD-2-Clause
/* Matched entries of a QP's tag list: their completions, and their end when the QP fails or is destroyed. */
#ifndef PUMICE_DAEMON_CORE_QP_TM_ENTRY_H
#define PUMICE_DAEMON_CORE_QP_TM_ENTRY_H

#include "daemon/core/base/types.h"

struct engine;
struct qp;
struct srq;
struct tm_rx;

/* Adds a completion of a matched entry. flags: WC_TM_MATCH, WC_TM_DATA_VALID or both. The caller has checked that there
 * is room. */
struct completion *tm_complete(struct qp *qp, const struct tm_rx *rx, uint8_t status, uint8_t flags, uint64_t now);
/* Ends a matched entry that gets no more data: adds its final completion, and frees its slot. */
void tm_complete_entry(struct qp *qp, struct tm_rx *rx, uint8_t status, uint64_t now);
/* To be called when c completes a receive request of an SRQ that matches tags, with success: fills in the fields for
 * tag matching, and counts the message. */
void tm_delivered(struct qp *qp, struct completion *c, uint64_t now);
/* The message under way fails. If the message has a matched entry, completes the entry; there must be room for the
 * completion. False: it has no matched entry. */
bool tm_fail_message(struct qp *qp, uint8_t status, uint64_t now);
/* A deferred write of the QP failed, and c reports a message that may depend on it. True: c must become an error. Takes
 * the count of an unexpected message back. */
bool tm_fault(struct qp *qp, const struct completion *c, uint64_t now);

/* The QP is in ERR: gives back its entries and counts of the matching list. True: completions wait for room. */
bool tm_flush(struct qp *qp, uint64_t now);
/* The QP is being destroyed or reset: its matched entries become the engine's (engine.detached). */
void tm_detach(struct qp *qp);
/* Completes detached entries as far as there is room. */
void tm_flush_detached(struct engine *e, uint64_t now);
/* Drops the detached entries of an SRQ that is being destroyed. */
void tm_forget_detached(const struct srq *srq);

#endif
