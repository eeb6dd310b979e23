// SPDX-License-Identifier: BSD-2-Clause
/* Matched entries of a QP's tag list: their completions, and their end when the QP fails or goes. */
#ifndef PUMICE_CORE_QP_TM_ENTRY_H
#define PUMICE_CORE_QP_TM_ENTRY_H

#include "daemon/core/base/types.h"

struct engine;
struct qp;
struct srq;
struct tm_rx;

/* Adds a completion of a matched entry. flags: WC_TM_MATCH, WC_TM_DATA_VALID or both. The caller has checked that there
 * is room. */
struct completion *tm_complete(struct qp *qp, const struct tm_rx *rx, uint8_t status, uint8_t flags, uint64_t now);
/* Adds the final completion of a matched entry that will get no more data. */
void tm_complete_entry(struct qp *qp, struct tm_rx *rx, uint8_t status, uint64_t now);
/* c completes successfully a receive request of an SRQ that matches tags. */
void tm_delivered(struct qp *qp, struct completion *c, uint64_t now);
/* The message under way fails. If it has a matched entry, completes that; there must be room. False: it has none. */
bool tm_fail_message(struct qp *qp, uint8_t status, uint64_t now);
/* A deferred write failed that c reports. Must c become an error? */
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
