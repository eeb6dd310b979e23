// SPDX-License-Identifier: BSD-2-Clause
/* Device contexts. The data path and some newer calls go through tables of functions in the context. The checker puts its
 * own functions there. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_CONTEXT_H
#define PUMICE_SRC_CHECK_REQUESTS_CONTEXT_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "src/check/base/trace.h"

/* A program has opened a device. */
void context_opened(struct ibv_context *context, const struct trace *where);
/* It is about to close it: the context gets its own functions back. */
void context_closing(struct ibv_context *context);
/* The call failed. */
void context_not_closed(struct ibv_context *context);

/* New objects, of whatever call. NULL: there is none. all_signaled: sq_sig_all. extended: with
 * send_ops_flags. */
void context_made_qp(struct ibv_qp *qp, bool all_signaled, bool extended, const struct trace *where);
/* parent: its parent domain; NULL: none. */
void context_made_cq(struct ibv_cq *cq, const struct ibv_pd *parent, const struct trace *where);
/* cq: as in struct srq_record. */
void context_made_srq(struct ibv_srq *srq, const struct ibv_cq *cq, const struct trace *where);

#endif
